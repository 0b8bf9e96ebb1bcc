//! One decoded chunk or inner chunk: filled, loaded, merged, scrubbed, encoded.
//!
//! Holds the operations on [`Elements`] of one [`Tile`]. Must not know the index or where payloads lie.

use crate::codec::{VariableItems, is_repeated, repeat};
use crate::error::{Error, Result};
use crate::format::record::ChunkRecord;
use crate::grid::{AxisMap, Copier, Domain};
use crate::txn::View;

use super::element::{Elements, Source};
use super::layout::{Layout, Tile};

impl Elements {
    /// A chunk with the value `element` everywhere.
    pub(crate) fn repeated(tile: &Tile, element: &[u8]) -> Result<Self> {
        match tile.item {
            Some(item) => {
                let mut bytes = reserve(tile.len.checked_mul(item))?;
                repeat(element, &mut bytes);
                Ok(Self::Fixed(bytes))
            }
            None => Ok(Self::Variable(vec![element.into(); tile.len])),
        }
    }

    /// Decodes a payload; `mask` says which codecs it skipped.
    pub(crate) fn decode(tile: &Tile, payload: &[u8], mask: u8) -> Result<Self> {
        if tile.item.is_some() {
            let mut bytes = reserve(Some(tile.byte_len()))?;
            tile.pipeline.decode(payload, mask, &mut bytes)?;
            return Ok(Self::Fixed(bytes));
        }
        let items = tile.pipeline.decode_variable(payload, mask)?;
        Ok(Self::Variable(items.iter().map(Box::from).collect()))
    }

    /// Bytes that these elements take in memory.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.capacity(),
            Self::Variable(items) => {
                let slots = items.capacity().saturating_mul(size_of::<Box<[u8]>>());
                items
                    .iter()
                    .fold(slots, |n, item| n.saturating_add(item.len()))
            }
        }
    }

    /// How many there are, of `item` bytes each.
    pub(crate) fn len(&self, item: Option<usize>) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.len().checked_div(item.unwrap_or(1)).unwrap_or(0),
            Self::Variable(items) => items.len(),
        }
    }

    /// Bytes of the elements themselves.
    pub(crate) fn byte_len(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes.len() as u64,
            Self::Variable(items) => items.iter().map(|i| i.len() as u64).sum(),
        }
    }

    /// The chunk that `record` stands for, decoded.
    pub(crate) fn load(layout: &Layout, view: &View, record: &ChunkRecord) -> Result<Self> {
        match record {
            ChunkRecord::Fill => Self::repeated(&layout.chunk, layout.fill()),
            ChunkRecord::Constant(element) => {
                Self::repeated(&layout.chunk, layout.chunk.constant(element)?)
            }
            ChunkRecord::Stored { extent, mask } => {
                let payload = view.payload(*extent)?;
                Self::decode(&layout.chunk, &payload, *mask)
                    .map_err(|e| e.at_or(extent.offset).spanning(extent.len))
            }
        }
    }

    /// Encodes the chunk into `out`.
    pub(crate) fn encode(&self, tile: &Tile, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Fixed(bytes) => tile.pipeline.encode(bytes, out),
            Self::Variable(items) => tile
                .pipeline
                .encode_variable(&items.iter().collect::<VariableItems>(), out),
        }
    }

    /// True when every element equals the fill value, bit for bit.
    pub(crate) fn is_fill(&self, fill: &[u8]) -> bool {
        match self {
            Self::Fixed(bytes) => is_repeated(fill, bytes),
            Self::Variable(items) => items.iter().all(|i| **i == *fill),
        }
    }

    /// Copies what `copier` says out of a caller's block.
    pub(crate) fn take_from(
        &mut self,
        tile: &Tile,
        source: &Source<'_>,
        copier: &Copier,
    ) -> Result<()> {
        match (self, source) {
            (Self::Fixed(bytes), Source::Fixed(from)) => {
                copier.copy_bytes(tile.item.unwrap_or(1), from, bytes);
                Ok(())
            }
            (Self::Variable(items), Source::Variable(from)) => {
                for_each_pair(copier, |src, dst| {
                    if let (Some(to), Some(from)) = (items.get_mut(dst), from.get(src)) {
                        *to = Box::from(*from);
                    }
                });
                Ok(())
            }
            _ => Err(Error::type_mismatch("elements").expected("the array's kind of element")),
        }
    }

    /// Sets the elements that `copier` names as destinations to `element`.
    pub(crate) fn set(&mut self, tile: &Tile, element: &[u8], copier: &Copier) {
        match self {
            Self::Fixed(bytes) => {
                let item = tile.item.unwrap_or(1);
                for_each_pair(copier, |_, dst| {
                    let start = dst.saturating_mul(item);
                    if let Some(to) = bytes.get_mut(start..start.saturating_add(item)) {
                        to.copy_from_slice(element);
                    }
                });
            }
            Self::Variable(items) => for_each_pair(copier, |_, dst| {
                if let Some(to) = items.get_mut(dst) {
                    *to = element.into();
                }
            }),
        }
    }

    /// Resets every element outside `keep` (a part of chunk `c`) to fill. Tells whether anything changed.
    pub(crate) fn scrub(&mut self, tile: &Tile, c: &[i64], keep: &Domain) -> Result<bool> {
        let mut clean = Self::repeated(tile, &tile.fill)?;
        let copier = Copier::new(inside(tile, c, keep), &tile.shape, &tile.shape)?;
        match (&mut clean, &*self) {
            (Self::Fixed(to), Self::Fixed(from)) => {
                copier.copy_bytes(tile.item.unwrap_or(1), from, to);
            }
            (Self::Variable(to), Self::Variable(from)) => for_each_pair(&copier, |src, dst| {
                if let (Some(to), Some(from)) = (to.get_mut(dst), from.get(src)) {
                    to.clone_from(from);
                }
            }),
            _ => {
                return Err(
                    Error::type_mismatch("elements").expected("the array's kind of element")
                );
            }
        }
        let changed = clean != *self;
        *self = clean;
        Ok(changed)
    }
}

/// Maps of the elements of chunk `c` that lie in `part`, from their place in the chunk to the same place.
pub(crate) fn inside<'a>(
    tile: &'a Tile,
    c: &'a [i64],
    part: &'a Domain,
) -> impl Iterator<Item = AxisMap> + 'a {
    part.bounds()
        .iter()
        .zip(c)
        .enumerate()
        .map(|(axis, (&(lo, hi), &c))| {
            let start = tile.grid.start(axis, c);
            let at = usize::try_from(i128::from(lo).wrapping_sub(start)).unwrap_or(0);
            let len = usize::try_from(hi.abs_diff(lo)).unwrap_or(0);
            AxisMap::Run {
                src: at,
                dst: at,
                len,
                src_step: 1,
                dst_step: 1,
            }
        })
}

/// Calls `f(src, dst)` for every element a copier moves.
pub(crate) fn for_each_pair(copier: &Copier, mut f: impl FnMut(usize, usize)) {
    copier.for_each(|run| {
        let (mut src, mut dst) = (run.src, run.dst);
        for _ in 0..run.len {
            f(src, dst);
            src = src.wrapping_add(run.src_step);
            dst = dst.wrapping_add(run.dst_step);
        }
    });
}

/// A zeroed buffer of a length that limits allow but this machine may not have.
pub(crate) fn reserve(len: Option<usize>) -> Result<Vec<u8>> {
    let fault = || {
        Error::limit("memory for a block")
            .expected("a length that this machine can hold")
            .reason("too_large")
    };
    let len = len.ok_or_else(fault)?;
    // Probed first, so that a refusal is an error and not an abort; `vec![0; n]` then gets pages the system has zeroed.
    Vec::<u8>::new()
        .try_reserve_exact(len)
        .map_err(|_| fault().found(len))?;
    Ok(vec![0; len])
}
