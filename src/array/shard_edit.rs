//! Changing some inner chunks of a shard: what does not change keeps its encoded bytes.
//!
//! Holds [`OldShard`], what was there, and [`edit`], which lays out what is to be there. Must not know why an inner chunk
//! changes.
//!
//! The old record's checksum is compared before anything of it is used, so damage is never copied into a new shard.

use std::ops::Range;

use crate::codec::{Shard, ShardIndex};
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::grid::Coords;
use crate::txn::{Payload, View};

use super::element::Elements;
use super::layout::{Layout, Tile};
use super::parallel;

/// Work of one shard, in bytes of decoded inner chunks, below which it stays on the caller's thread.
const PARALLEL_MIN: usize = 1 << 20;

/// What stands for a shard before it changes.
pub(super) struct OldShard {
    content: OldContent,
}

enum OldContent {
    /// Nothing but fill, declared or not.
    Fill,
    /// One value everywhere.
    Constant(Vec<u8>),
    Stored {
        extent: Extent,
        payload: Payload,
        index: ShardIndex,
    },
}

/// What becomes of an inner chunk.
pub(super) enum Part {
    /// It stays as it is.
    Kept,
    /// It goes: nothing but fill.
    Absent,
    /// It is encoded anew.
    New(Vec<u8>),
}

/// What an inner chunk becomes, and whether the old one was decoded for it.
pub(super) struct Change {
    pub(super) part: Part,
    pub(super) decoded: bool,
}

/// A shard after its change, and what that cost.
#[derive(Debug, Default)]
pub(super) struct Edited {
    /// The new payload; none where no inner chunk is left.
    pub(super) payload: Option<Vec<u8>>,
    /// Some inner chunk is not what it was.
    pub(super) changed: bool,
    pub(super) decoded: u64,
    pub(super) encoded: u64,
    pub(super) kept: u64,
}

impl OldShard {
    /// The shard that `record` stands for, its checksum verified.
    pub(super) fn open(view: &View, layout: &Layout, record: Option<&ChunkRecord>) -> Result<Self> {
        let content = match record {
            None | Some(ChunkRecord::Fill) => OldContent::Fill,
            Some(ChunkRecord::Constant(element)) => {
                OldContent::Constant(layout.chunk.constant(element)?.to_vec())
            }
            Some(&ChunkRecord::Stored { extent, mask }) => {
                let (shard, _) = parts(layout)?;
                let place = |e: Error| e.at_or(extent.offset).spanning(extent.len);
                layout.chunk.pipeline.check_mask(mask).map_err(place)?;
                let payload = view.payload(extent)?;
                let index = shard.index_of(&payload).map_err(place)?;
                OldContent::Stored {
                    extent,
                    payload,
                    index,
                }
            }
        };
        Ok(Self { content })
    }

    /// The elements of an inner chunk, and whether they had to be decoded.
    pub(super) fn elements(&self, layout: &Layout, number: usize) -> Result<(Elements, bool)> {
        let (shard, tile) = parts(layout)?;
        match &self.content {
            OldContent::Fill => Ok((Elements::repeated(tile, &tile.fill)?, false)),
            OldContent::Constant(element) => Ok((Elements::repeated(tile, element)?, false)),
            OldContent::Stored { .. } => match self.bytes(shard, number)? {
                None => Ok((Elements::repeated(tile, &tile.fill)?, false)),
                Some(bytes) => {
                    let decoded = Elements::decode(tile, bytes, 0);
                    Ok((decoded.map_err(|e| self.place(shard, number, e))?, true))
                }
            },
        }
    }

    /// True when an inner chunk holds anything but fill, as far as its entry tells.
    pub(super) fn has(&self, layout: &Layout, number: usize) -> Result<bool> {
        let (shard, _) = parts(layout)?;
        Ok(match &self.content {
            OldContent::Fill => false,
            OldContent::Constant(_) => true,
            OldContent::Stored { .. } => self.bytes(shard, number)?.is_some(),
        })
    }

    /// The encoded bytes of an inner chunk of a stored shard.
    fn bytes(&self, shard: &Shard, number: usize) -> Result<Option<&[u8]>> {
        let OldContent::Stored { payload, index, .. } = &self.content else {
            return Ok(None);
        };
        let range = index
            .get(number)
            .map_err(|e| self.place(shard, number, e))?;
        Ok(range.and_then(|range| slice(payload, &range)))
    }

    fn place(&self, shard: &Shard, number: usize, e: Error) -> Error {
        let e = e.in_inner(&shard.position(number));
        match &self.content {
            OldContent::Stored { extent, .. } => e.at_or(extent.offset).spanning(extent.len),
            _ => e,
        }
    }
}

/// Changes the inner chunks `touched` (ascending numbers with their coordinates on the grid of inner chunks) as `change`
/// says, all others keep their encoded bytes.
pub(super) fn edit(
    layout: &Layout,
    old: &OldShard,
    touched: Vec<(usize, Coords)>,
    change: impl Fn(usize, &[i64]) -> Result<Change> + Sync + Send,
) -> Result<Edited> {
    let (shard, tile) = parts(layout)?;
    let run = |(number, coords): (usize, Coords)| {
        let change = change(number, &coords).map_err(|e| e.in_inner(&shard.position(number)))?;
        Ok((number, change))
    };
    let work = touched.len().saturating_mul(tile.byte_len());
    let changes: Vec<(usize, Change)> = if work < PARALLEL_MIN {
        touched.into_iter().map(run).collect::<Result<_>>()?
    } else {
        parallel::map(touched, run)?
    };
    let mut edited = Edited::default();
    let constant = encoded_constant(old, tile)?;
    let mut parts: Vec<Option<&[u8]>> = Vec::with_capacity(shard.index().count());
    let mut changes = changes.iter().peekable();
    for number in 0..shard.index().count() {
        let change = changes.next_if(|(n, _)| *n == number).map(|(_, c)| c);
        edited.decoded += u64::from(change.is_some_and(|c| c.decoded));
        let part = match change.map(|c| &c.part) {
            None | Some(Part::Kept) => {
                let bytes = match &constant {
                    Some(bytes) => Some(bytes.as_slice()),
                    None => old.bytes(shard, number)?,
                };
                edited.kept += u64::from(bytes.is_some());
                bytes
            }
            Some(Part::Absent) => {
                edited.changed |= old.has(layout, number)?;
                None
            }
            Some(Part::New(bytes)) => {
                edited.changed = true;
                edited.encoded += 1;
                Some(bytes.as_slice())
            }
        };
        parts.push(part);
    }
    let mut payload = Vec::new();
    if shard.index().assemble(parts.into_iter(), &mut payload)? {
        edited.payload = Some(payload);
    }
    Ok(edited)
}

/// All inner chunks of shard `chunk`, by number, with their coordinates on the grid of inner chunks.
pub(super) fn all_inner(shard: &Shard, chunk: &[i64]) -> Vec<(usize, Coords)> {
    let coords = |number: usize| {
        let position = shard.position(number);
        let axes = chunk.iter().zip(shard.counts()).zip(&position);
        axes.map(|((&c, &count), &at)| {
            c.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
                .saturating_add_unsigned(at)
        })
        .collect()
    };
    (0..shard.index().count())
        .map(|number| (number, coords(number)))
        .collect()
}

/// What every inner chunk of a constant shard is encoded as.
fn encoded_constant(old: &OldShard, tile: &Tile) -> Result<Option<Vec<u8>>> {
    let OldContent::Constant(element) = &old.content else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    Elements::repeated(tile, element)?.encode(tile, &mut bytes)?;
    Ok(Some(bytes))
}

fn parts(layout: &Layout) -> Result<(&Shard, &Tile)> {
    layout
        .sharded()
        .ok_or_else(|| Error::invalid("array").expected("shards"))
}

fn slice<'p>(payload: &'p Payload, range: &Range<u64>) -> Option<&'p [u8]> {
    let start = usize::try_from(range.start).ok()?;
    payload.get(start..usize::try_from(range.end).ok()?)
}
