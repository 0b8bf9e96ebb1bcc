//! A group of arrays as Zarr sees it: zero-based, unsigned, with its own documents.
//!
//! Holds [`cover`], where each array's index 0 lies and which axes need an index of their labels, and [`document`], the
//! metadata of versions 3 and 2; [`group`] walks the hierarchy. `refs` and `export` build on both. Must not write files or name places in them.

pub(crate) mod cover;
pub(crate) mod document;
mod extend;
pub(crate) mod group;
pub(crate) mod window;

pub(crate) use extend::extend;

use clap::ValueEnum;
use orthant::{Codec, Container, DataType, Domain, DynArraySpec, Elements};

use crate::exit::Result;

/// Version of the Zarr documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// `zarr.json`
    #[value(name = "3", alias = "zarr3")]
    V3,
    /// `.zarray`, `.zattrs`, `.zgroup`
    #[value(name = "2", alias = "zarr2")]
    V2,
}

/// A one-dimensional array that stands whole in one chunk, as labels of an axis do.
pub(crate) struct Line {
    pub(crate) data_type: DataType,
    pub(crate) elements: Elements,
    pub(crate) len: u64,
}

impl Line {
    /// The integers `first..first + len`.
    pub(crate) fn count_from(first: i64, len: u64) -> Self {
        let values = (0..len).map(|i| first.saturating_add_unsigned(i));
        Self {
            data_type: DataType::Int64,
            elements: Elements::Fixed(values.flat_map(i64::to_le_bytes).collect()),
            len,
        }
    }

    /// The one chunk's bytes after the codecs `bytes` (or those of variable length) and `zstd`.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let container = Container::in_memory()?;
        let writer = container.writer()?;
        let spec = DynArraySpec::new(self.data_type.clone(), Domain::from_shape(&[self.len])?)
            .chunks([self.len.max(1)])
            .fill_bytes(vec![0; self.data_type.item_size().unwrap_or(0)])
            .codecs([Codec::zstd(3)]);
        let array = writer.create_dyn_array("line", &spec)?;
        let block = orthant::Block {
            data_type: self.data_type.clone(),
            shape: vec![self.len],
            elements: self.elements.clone(),
        };
        // A chunk of nothing but zeros would stay absent, which reads the same.
        array.write_chunk(&[0], &block)?;
        Ok(array.encoded_chunk(&[0])?.unwrap_or_default())
    }
}
