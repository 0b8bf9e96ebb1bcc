//! What readers of other software need to find an array's chunks: places in the file, or bytes where no place will do.
//!
//! Holds [`ChunkReference`], [`DynArray::for_each_reference`] and [`DynArray::encode_chunk`]. Must not know how references are written down.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::element::Elements;
use super::handle::{Block, DynArray};
use super::layout::{Layout, Tile};
use super::plan::Plan;
use super::scan;
use crate::codec::Shard;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Region, Selection};

/// A chunk, or an inner chunk of a shard, for a reader that knows the pipeline and nothing of this format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkReference {
    /// Its coordinate in the grid of chunks, or in that of inner chunks.
    pub coord: Vec<i64>,
    /// Where its encoded bytes are.
    pub place: ReferencePlace,
}

/// Where the encoded bytes of a chunk are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferencePlace {
    /// In the file, as the whole pipeline made them.
    InFile {
        /// Absolute position.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// Nowhere: the chunk is a declared value, or skipped a codec. These are the bytes that the whole pipeline makes.
    Encoded(Vec<u8>),
}

impl DynArray {
    /// Calls `f`, until it breaks, for every chunk that holds something, in key order: with `inner` for the chunks within shards, else for the
    /// chunks that are stored. What is not named reads as fill. Reads the index, the indexes of shards, and the payload of
    /// chunks that skipped a codec.
    ///
    /// # Errors
    /// As [`DynArray::chunks_in`]; `InvalidArgument` with `inner` where the array has no shards whose chunks can be had by
    /// themselves; `Unsupported` for a shard that skipped a codec, with `inner`.
    pub fn for_each_reference(
        &self,
        inner: bool,
        mut f: impl FnMut(ChunkReference) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut told = ControlFlow::Continue(());
        let mut f = |reference| {
            if told.is_continue() {
                told = f(reference);
            }
        };
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            let picked = Selection::from(Region::all()).resolve(&layout.domain, false)?;
            if picked.is_empty() {
                return Ok(());
            }
            let sharded = match (inner, layout.sharded()) {
                (true, None) => {
                    return Err(Error::invalid("inner chunks")
                        .expected("an array of shards whose chunks can be had by themselves"));
                }
                (true, sharded) => sharded,
                (false, _) => None,
            };
            let plan = Plan::new(&layout.chunk.grid, &picked)?;
            let sets: SmallVec<[&AxisSet; 8]> = plan.sets().collect();
            let view = self.view();
            scan::each_stored(view, self.id(), layout.key_order(), &sets, |entry| {
                let record = entry.record()?;
                let coord = &entry.coords;
                let told = match sharded {
                    None => self.whole(layout, &record).map(|place| {
                        if let Some(place) = place {
                            let coord = coord.to_vec();
                            f(ChunkReference { coord, place });
                        }
                    }),
                    Some((shard, tile)) => self.within(shard, tile, &record, coord, &mut f),
                };
                told.map_err(|e| e.in_chunk(coord))
            })
        })
    }

    /// The stored bytes that a whole chunk with these elements would have here, all codecs applied; `None` when every element
    /// is fill. Writes nothing: for other software's files with this array's chunks and codecs.
    ///
    /// # Errors
    /// `TypeMismatch` or `InvalidArgument` where the block is not one stored chunk of this array's type.
    pub fn encode_chunk(&self, block: &Block) -> Result<Option<Vec<u8>>> {
        self.placed(|| {
            let compiled = self.compiled()?;
            let (layout, tile) = (&compiled.layout, &compiled.layout.chunk);
            if block.data_type != layout.document.data_type {
                return Err(Error::type_mismatch("block")
                    .expected(&layout.document.data_type)
                    .found(&block.data_type));
            }
            if block.shape != layout.document.chunk_shape
                || block.elements.len(tile.item) != tile.len
            {
                return Err(Error::invalid("block")
                    .expected(format_args!("a chunk of {:?}", layout.document.chunk_shape))
                    .found(format_args!("{:?}", block.shape)));
            }
            if block.elements.is_fill(layout.fill()) {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            block.elements.encode(tile, &mut bytes)?;
            Ok(Some(bytes))
        })
    }

    fn whole(&self, layout: &Layout, record: &ChunkRecord) -> Result<Option<ReferencePlace>> {
        Ok(match record {
            ChunkRecord::Fill => None,
            ChunkRecord::Stored {
                extent: Extent { offset, len, .. },
                mask: 0,
            } => Some(ReferencePlace::InFile {
                offset: *offset,
                len: *len,
            }),
            ChunkRecord::Stored { .. } | ChunkRecord::Constant(_) => {
                let elements = Elements::load(layout, self.view(), record)?;
                Some(encoded(&elements, &layout.chunk)?)
            }
        })
    }

    fn within(
        &self,
        shard: &Shard,
        tile: &Tile,
        record: &ChunkRecord,
        coord: &[i64],
        f: &mut impl FnMut(ChunkReference),
    ) -> Result<()> {
        let mut tell = |number: usize, place: ReferencePlace| {
            let within = shard.position(number);
            let per_axis = coord.iter().zip(shard.counts()).zip(within);
            let inner = per_axis.map(|((c, count), at)| {
                let first = i64::try_from(*count).ok().and_then(|n| c.checked_mul(n));
                first.and_then(|first| first.checked_add_unsigned(at))
            });
            let coord = inner.collect::<Option<Vec<i64>>>();
            let coord = coord.ok_or_else(|| Error::limit("coordinate of an inner chunk"))?;
            f(ChunkReference { coord, place });
            Ok(())
        };
        match record {
            ChunkRecord::Fill => Ok(()),
            ChunkRecord::Constant(element) => {
                let elements = Elements::repeated(tile, tile.constant(element)?)?;
                let place = encoded(&elements, tile)?;
                (0..shard.index().count()).try_for_each(|number| tell(number, place.clone()))
            }
            ChunkRecord::Stored { extent, mask: 0 } => {
                let range = shard.index().range(extent.len)?;
                let bytes = self.view().payload_range(*extent, range)?;
                let index = shard.index().decode(&bytes, extent.len)?;
                for number in 0..shard.index().count() {
                    if let Some(range) = index.get(number)? {
                        let offset = extent.offset.saturating_add(range.start);
                        let len = range.end.saturating_sub(range.start);
                        tell(number, ReferencePlace::InFile { offset, len })?;
                    }
                }
                Ok(())
            }
            ChunkRecord::Stored { mask, .. } => Err(Error::unsupported("inner chunks of a shard")
                .expected("a shard that went through all codecs")
                .found(format_args!("filter mask {mask:#x}"))),
        }
    }
}

fn encoded(elements: &Elements, tile: &Tile) -> Result<ReferencePlace> {
    let mut bytes = Vec::new();
    elements.encode(tile, &mut bytes)?;
    Ok(ReferencePlace::Encoded(bytes))
}
