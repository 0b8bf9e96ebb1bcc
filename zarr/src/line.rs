//! Labels of an axis, written out for readers that have no origins.
//!
//! Holds [`Line`]. Must not name places in files.

use orthant::{Block, Codec, Container, DataType, Domain, DynArraySpec, Elements, Result};

/// A one-dimensional array that stands whole in one chunk, as labels of an axis do.
#[derive(Debug)]
pub struct Line {
    /// The type of a label.
    pub data_type: DataType,
    /// The labels.
    pub elements: Elements,
    /// How many there are.
    pub len: u64,
}

impl Line {
    /// The integers `first..first + len`.
    pub fn count_from(first: i64, len: u64) -> Self {
        let values = (0..len).map(|i| first.saturating_add_unsigned(i));
        Self {
            data_type: DataType::Int64,
            elements: Elements::Fixed(values.flat_map(i64::to_le_bytes).collect()),
            len,
        }
    }

    /// The one chunk's bytes after the codecs `bytes` (or those of variable length) and `zstd`.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let container = Container::in_memory()?;
        let writer = container.writer()?;
        let spec = DynArraySpec::new(self.data_type.clone(), Domain::from_shape(&[self.len])?)
            .chunks([self.len.max(1)])
            .fill_bytes(vec![0; self.data_type.item_size().unwrap_or(0)])
            .codecs([Codec::zstd(3)]);
        let array = writer.create_dyn_array("line", &spec)?;
        let block = Block {
            data_type: self.data_type.clone(),
            shape: vec![self.len],
            elements: self.elements.clone(),
        };
        // A chunk of nothing but zeros would stay absent, which reads the same.
        array.write_chunk(&[0], &block)?;
        Ok(array.encoded_chunk(&[0])?.unwrap_or_default())
    }
}
