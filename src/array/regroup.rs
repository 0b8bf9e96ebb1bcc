//! Elements on their way from the blocks of one pass to those of the next, outside of memory.
//!
//! Holds [`Pieces`]: boxes of elements that are put aside, and what they are put aside for. Must not know chunks.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::bytes::Reader;
use crate::codec::is_repeated;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::grid::{AxisMap, Coords, Copier, Domain};
use crate::txn::Scratch;

use super::chunk::{for_each_pair, reserve};
use super::element::Elements;

/// What lies between the two passes.
#[derive(Debug)]
pub(super) struct Pieces {
    scratch: Scratch,
    /// What each block of the second pass is made of.
    by_block: BTreeMap<Coords, Vec<Piece>>,
    /// One element.
    fill: Vec<u8>,
    item: Option<usize>,
}

#[derive(Debug)]
struct Piece {
    part: Domain,
    extent: Extent,
}

impl Pieces {
    pub(super) fn new(scratch: Scratch, fill: &[u8], item: Option<usize>) -> Self {
        Self {
            scratch,
            by_block: BTreeMap::new(),
            fill: fill.to_vec(),
            item,
        }
    }

    /// The blocks that something was put for.
    pub(super) fn blocks(&self) -> Vec<Coords> {
        self.by_block.keys().cloned().collect()
    }

    /// Takes the elements of `part` out of those of `whole` and keeps them for `block`; nothing but fill is not kept.
    pub(super) fn put(
        &mut self,
        block: &Coords,
        part: &Domain,
        whole: &Domain,
        elements: &Elements,
    ) -> Result<()> {
        let copier = between(part, whole, part)?;
        let bytes = match elements {
            Elements::Fixed(from) => {
                let item = self.item.unwrap_or(1);
                let mut bytes = reserve(copier.len().checked_mul(item))?;
                copier.copy_bytes(item, from, &mut bytes);
                if is_repeated(&self.fill, &bytes) {
                    return Ok(());
                }
                bytes
            }
            Elements::Variable(from) => {
                let mut items: Vec<&[u8]> = vec![&[]; copier.len()];
                for_each_pair(&copier, |src, dst| {
                    if let (Some(to), Some(from)) = (items.get_mut(dst), from.get(src)) {
                        *to = from;
                    }
                });
                if items.iter().all(|item| *item == self.fill) {
                    return Ok(());
                }
                let mut bytes = Vec::new();
                for item in items {
                    bytes.extend_from_slice(&(item.len() as u64).to_le_bytes());
                    bytes.extend_from_slice(item);
                }
                bytes
            }
        };
        let piece = Piece {
            part: part.clone(),
            extent: self.scratch.put(&bytes)?,
        };
        self.by_block.entry(block.clone()).or_default().push(piece);
        Ok(())
    }

    /// Puts the pieces of a block, which is `whole`, into `elements`, which hold fill.
    pub(super) fn take(
        &self,
        block: &Coords,
        whole: &Domain,
        elements: &mut Elements,
    ) -> Result<()> {
        for piece in self.by_block.get(block).into_iter().flatten() {
            let bytes = self.scratch.take(piece.extent)?;
            let copier = between(&piece.part, &piece.part, whole)?;
            match elements {
                Elements::Fixed(to) => copier.copy_bytes(self.item.unwrap_or(1), &bytes, to),
                Elements::Variable(to) => {
                    let items = items(&bytes, copier.len())?;
                    for_each_pair(&copier, |src, dst| {
                        if let (Some(to), Some(from)) = (to.get_mut(dst), items.get(src)) {
                            *to = Box::from(*from);
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

fn items(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>> {
    let mut reader = Reader::new("temporary file", 0, bytes);
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let len = usize::try_from(reader.u64()?).map_err(|_| Error::limit("element"))?;
        items.push(reader.take(len)?);
    }
    Ok(items)
}

/// The copy of the elements of `part` out of a block that is `from` into one that is `to`.
fn between(part: &Domain, from: &Domain, to: &Domain) -> Result<Copier> {
    let maps = part
        .bounds()
        .iter()
        .zip(from.bounds().iter().zip(to.bounds()))
        .map(|(&(lo, hi), (&(from, _), &(to, _)))| AxisMap::Run {
            src: distance(from, lo),
            dst: distance(to, lo),
            len: distance(lo, hi),
            src_step: 1,
            dst_step: 1,
        });
    Copier::new(maps, &shape(from), &shape(to))
}

fn distance(lo: i64, hi: i64) -> usize {
    usize::try_from(hi.abs_diff(lo)).unwrap_or(usize::MAX)
}

fn shape(domain: &Domain) -> SmallVec<[usize; 8]> {
    let length = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    domain.extents().map(length).collect()
}
