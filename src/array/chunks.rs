//! Single chunks, by chunk coordinate.
//!
//! Holds the chunk-level calls of [`DynArray`] and [`Array`]: a chunk decoded, its overhang included, or as stored bytes.
//! Must not merge or plan.

use crate::error::{Error, Result};
use crate::format::key;
use crate::format::record::ChunkRecord;

use super::element::{Element, Elements};
use super::handle::{Block, DynArray};
use super::layout::Layout;
use super::scan;
use super::typed::Array;

impl DynArray {
    /// A whole chunk, decoded; `None` when it is absent (then every element is fill). Elements outside the domain are fill.
    ///
    /// # Errors
    /// `OutOfDomain` for a chunk that does not meet the domain; `InvalidArgument` (`rank`); `Corrupt`, `Unsupported`, `Io`.
    pub fn read_chunk(&self, coord: &[i64]) -> Result<Option<Block>> {
        self.with_record(coord, |layout, record| {
            let elements = Elements::load(layout, self.view(), &record)?;
            let shape = layout.document.chunk_shape.clone();
            Ok(Block {
                data_type: layout.document.data_type.clone(),
                shape,
                elements,
            })
        })
    }

    /// The stored bytes of a chunk, its checksum verified; `None` when it has no payload (absent, or a declared value).
    ///
    /// # Errors
    /// As [`DynArray::read_chunk`].
    pub fn encoded_chunk(&self, coord: &[i64]) -> Result<Option<Vec<u8>>> {
        let stored = self.with_record(coord, |_, record| match record {
            ChunkRecord::Stored { extent, .. } => {
                self.view().payload(extent).map(|p| Some(p.into_vec()))
            }
            ChunkRecord::Constant(_) | ChunkRecord::Fill => Ok(None),
        })?;
        Ok(stored.flatten())
    }

    fn with_record<R>(
        &self,
        coord: &[i64],
        f: impl FnOnce(&Layout, ChunkRecord) -> Result<R>,
    ) -> Result<Option<R>> {
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            if coord.len() != layout.chunk.grid.rank() {
                return Err(Error::invalid("chunk coordinate")
                    .expected(format_args!("{} axes", layout.chunk.grid.rank()))
                    .found(coord.len())
                    .reason("rank"));
            }
            if !layout.chunk.grid.meets(coord, &layout.domain) {
                return Err(Error::out_of_domain(format!(
                    "the chunk lies outside {}",
                    layout.domain
                ))
                .reason("out_of_domain")
                .in_chunk(coord));
            }
            let Some(value) = self
                .view()
                .get(&key::chunk(self.id(), coord, layout.key_order()))?
            else {
                return Ok(None);
            };
            let done = scan::decode(&value).and_then(|record| f(layout, record));
            done.map(Some).map_err(|e| e.in_chunk(coord))
        })
    }
}

impl<T: Element> Array<T> {
    /// A whole chunk in C order; `None` when it is absent. Elements outside the domain are fill.
    ///
    /// # Errors
    /// As [`DynArray::read_chunk`].
    pub fn read_chunk(&self, coord: &[i64]) -> Result<Option<Vec<T>>> {
        let block = DynArray::read_chunk(self, coord)?;
        block.map(|b| T::collect(b.elements)).transpose()
    }
}
