//! Chunks that other software has encoded, taken over.
//!
//! Holds [`DynArray::adopt_chunk`], [`DynArray::decode_payload`] and what becomes of such a chunk, [`Adopted`]. A payload is
//! decoded only where it reaches beyond the domain; elsewhere its outside is looked at. Must not know formats.

use crate::error::Result;

use super::chunks::{OVERHANG, check_payload, covered};
use super::element::Elements;
use super::handle::{Block, DynArray};
use super::receipt::WriteReceipt;

/// What became of a chunk that was taken over.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adopted {
    /// Its bytes are stored as they came.
    Verbatim,
    /// It held other elements than fill outside the domain, so its part inside was encoded anew.
    Scrubbed(WriteReceipt),
}

impl DynArray {
    /// Stores a chunk as the bytes that other software has made of it with this array's codecs. `skipped` has a bit for each
    /// codec, by its place in the list, that this chunk went without, as chunks of HDF5 may.
    ///
    /// A chunk that lies inside the domain is not decoded: its length, frame headers, checksums and shard indexes are looked
    /// at, and damage within a compressed stream shows when it is read. [`DynArray::decode_payload`] finds that before. One
    /// that reaches beyond the domain is decoded, and is stored as it is where there is nothing but fill outside; else its
    /// part inside is written anew.
    ///
    /// # Errors
    /// As [`DynArray::write`]; `OutOfDomain` for a chunk that does not meet the domain; `Corrupt` for bytes that are no
    /// payload of these codecs or had to be decoded and cannot be, and for a codec that cannot be skipped.
    pub fn adopt_chunk(&self, coord: &[i64], payload: &[u8], skipped: u8) -> Result<Adopted> {
        let stored = self.store_encoded(coord, payload, skipped, |layout| {
            layout.chunk.pipeline.check_mask(skipped)?;
            covered(layout, coord)?;
            if layout.chunk.grid.is_inside(coord, &layout.domain) {
                return layout
                    .chunk
                    .pipeline
                    .glance(payload, skipped)
                    .map_err(|e| e.in_chunk(coord));
            }
            check_payload(layout, coord, payload, skipped).map_err(|e| e.in_chunk(coord))
        });
        match stored {
            Ok(()) => Ok(Adopted::Verbatim),
            Err(e) if e.reason_code() == Some(OVERHANG) => {
                let block = self.decode_payload(payload, skipped)?;
                self.write_chunk(coord, &block).map(Adopted::Scrubbed)
            }
            Err(e) => Err(e),
        }
    }

    /// The elements of a chunk of which other software has made `payload` with this array's codecs; nothing is stored. For
    /// `skipped` see [`DynArray::adopt_chunk`].
    ///
    /// # Errors
    /// `Corrupt` for bytes that cannot be decoded, and for a codec that cannot be skipped.
    pub fn decode_payload(&self, payload: &[u8], skipped: u8) -> Result<Block> {
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            Ok(Block {
                data_type: layout.document.data_type.clone(),
                shape: layout.document.chunk_shape.clone(),
                elements: Elements::decode(&layout.chunk, payload, skipped)?,
            })
        })
    }
}
