//! A chunk's bytes as its whole pipeline makes them, by ranges: what a store hands to other software.
//!
//! Holds [`EncodedChunk`]. Must not decode a chunk that is stored as its pipeline made it.

use std::ops::Range;
use std::sync::Arc;

use super::element::Elements;
use super::handle::DynArray;
use super::layout::verified_key;
use crate::codec::Shard;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::txn::{CacheKey, View};

/// The bytes that an array's pipeline makes of a chunk. From [`DynArray::encoded`].
#[derive(Debug, Clone)]
pub struct EncodedChunk {
    view: View,
    held: Held,
}

#[derive(Debug, Clone)]
enum Held {
    /// In the file, as the pipeline made them.
    Stored {
        extent: Extent,
        /// The note that the whole was verified; none where parts carry checksums of their own.
        seen: Option<CacheKey>,
    },
    /// Made for this: the chunk is a declared value, or skipped a codec.
    Made(Vec<u8>),
}

impl DynArray {
    /// The bytes that the whole pipeline makes of a chunk, to be read by ranges; `None` where it is absent or declared fill.
    /// Those of a stored chunk are not fetched yet.
    ///
    /// # Errors
    /// As [`DynArray::read_chunk`].
    pub fn encoded(&self, coord: &[i64]) -> Result<Option<EncodedChunk>> {
        let found = self.with_record(coord, |layout, record| {
            let held = match record {
                ChunkRecord::Fill => return Ok(None),
                ChunkRecord::Stored { extent, mask: 0 } => {
                    let sharded = layout.sharded().map(|(shard, _)| shard);
                    let checks_itself = sharded.is_some_and(Shard::checks_itself);
                    let key = || verified_key(layout.cache_key(self.id(), extent));
                    Held::Stored {
                        extent,
                        seen: (!checks_itself).then(key),
                    }
                }
                ChunkRecord::Stored { .. } | ChunkRecord::Constant(_) => {
                    let elements = Elements::load(layout, self.view(), &record)?;
                    let mut bytes = Vec::new();
                    elements.encode(&layout.chunk, &mut bytes)?;
                    Held::Made(bytes)
                }
            };
            Ok(Some(EncodedChunk {
                view: self.view().clone(),
                held,
            }))
        })?;
        Ok(found.flatten())
    }
}

impl EncodedChunk {
    /// How many bytes there are.
    #[expect(
        clippy::len_without_is_empty,
        reason = "an encoded chunk is never empty"
    )]
    pub fn len(&self) -> u64 {
        match &self.held {
            Held::Stored { extent, .. } => extent.len,
            Held::Made(bytes) => bytes.len() as u64,
        }
    }

    /// Some of the bytes. The checksum of the whole is compared before the first part is given out, once a chunk, unless it
    /// is a shard whose parts carry checksums of their own, which the reader then compares.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that reaches beyond the bytes; `Corrupt`; `Io`.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::invalid("range of an encoded chunk")
                .expected(format_args!("inside 0..{}", self.len()))
                .found(format_args!("{range:?}")));
        }
        match &self.held {
            Held::Made(bytes) => {
                let part = usize::try_from(range.start)
                    .ok()
                    .zip(usize::try_from(range.end).ok());
                let part = part.and_then(|(start, end)| bytes.get(start..end));
                Ok(part.unwrap_or_default().to_vec())
            }
            Held::Stored { extent, .. } if range == (0..extent.len) => self
                .view
                .payload(*extent)
                .map(crate::txn::Payload::into_vec),
            Held::Stored { .. } if range.is_empty() => Ok(Vec::new()),
            Held::Stored { extent, seen } => {
                if let Some(seen) = seen
                    && self.view.shards().get::<()>(seen).is_none()
                {
                    self.view.verify(*extent)?;
                    self.view.shards().put(*seen, Arc::new(()), 0);
                }
                Ok(self.view.payload_range(*extent, range)?.into_vec())
            }
        }
    }
}
