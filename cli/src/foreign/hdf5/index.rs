//! Chunk indexes: where each stored chunk of a dataset is. After the "HDF5 File Format Specification", III.A.1 and
//! VII.
//!
//! Holds [`Indexed`]. The tree of version 1, which most files have, is walked node by node; the others are the crate's.
//! Must not read chunks.

use hdf5_reader::chunk_index::{ChunkEntry, collect_v2_chunk_entries_storage};
use hdf5_reader::error::Result as Read;
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;

use super::file::{File, guarded};
use super::space::{Chunked, Index};
use crate::foreign::cursor::Cursor;
use crate::foreign::{Refusal, Stop};

/// Deepest tree.
const DEPTH_MAX: u8 = 32;
/// How many chunks of a grid are looked up at once.
const AT_ONCE: u64 = 1 << 18;
/// Most chunks of a grid that are looked up at all, rather than taken from what is stored.
const LISTED_MAX: u64 = 1 << 28;

/// Where one chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) mask: u32,
}

/// What is done with each chunk: its coordinate, and where it is.
pub(super) type Take<'a> = dyn FnMut(&[u64], Place) -> Result<(), Stop> + 'a;

/// The first and the last chunk of a box of them, where there is one.
type Bounds<'a> = Option<(&'a [u64], &'a [u64])>;

/// The chunks of one dataset.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) chunked: Chunked,
    pub(super) extents: Vec<u64>,
    pub(super) limits: Option<Vec<u64>>,
    /// Bytes of a chunk without filters.
    pub(super) chunk_len: u64,
}

impl Indexed {
    /// Every stored chunk that meets the extents.
    pub(super) fn for_each(&self, file: &File, take: &mut Take<'_>) -> Result<(), Stop> {
        let Some(address) = self.chunked.address else {
            return Ok(());
        };
        if self.extents.contains(&0) {
            return Ok(());
        }
        match self.chunked.index {
            Index::BTree1 => {
                let mut walk = Walk {
                    file,
                    indexed: self,
                    last: None,
                    take,
                };
                walk.node(address, None)
            }
            Index::Single { len, mask } => {
                let place = Place {
                    address,
                    len: len.unwrap_or(self.chunk_len),
                    mask,
                };
                take(&vec![0; self.extents.len()], place)
            }
            Index::Implicit => self.implicit(address, take),
            Index::FixedArray | Index::ExtensibleArray | Index::BTree2 => {
                self.bands(&mut |bounds| {
                    let entries = guarded(|| self.entries(file, address, bounds))?;
                    entries.iter().try_for_each(|entry| self.entry(entry, take))
                })
            }
        }
    }

    /// The chunks of an index that the crate reads, within bounds where some are given.
    fn entries(&self, file: &File, address: u64, bounds: Bounds<'_>) -> Read<Vec<ChunkEntry>> {
        let (o, l) = (file.offset_size, file.length_size);
        let (chunk, extents) = (&self.chunked.chunk, &self.extents);
        match self.chunked.index {
            Index::FixedArray => collect_fixed_array_chunk_entries_storage(
                file, address, o, l, extents, chunk, bounds,
            ),
            Index::ExtensibleArray => {
                let limits = self.limits.as_deref();
                collect_extensible_array_chunk_entries_storage(
                    file, address, o, l, extents, limits, chunk, bounds,
                )
            }
            _ => {
                let rank = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
                collect_v2_chunk_entries_storage(file, address, o, l, rank, chunk, bounds)
            }
        }
    }

    /// Boxes of chunk coordinates, the last chunk of each among them, that together are the grid: none where it is small,
    /// or so large that only what is stored can be gone through.
    fn bands(&self, run: &mut dyn FnMut(Bounds<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
        let counts = self.counts();
        let total = counts.iter().fold(1_u64, |n, c| n.saturating_mul(*c));
        if !(AT_ONCE..=LISTED_MAX).contains(&total) {
            return run(None);
        }
        let (mut inner, mut axis) = (1_u64, counts.len());
        while let Some(count) = axis.checked_sub(1).and_then(|a| counts.get(a))
            && inner.saturating_mul(*count) <= AT_ONCE
        {
            inner = inner.saturating_mul(*count);
            axis = axis.saturating_sub(1);
        }
        // The axis that is cut; those after it are whole, those before it go one by one.
        let axis = axis.saturating_sub(1);
        let step = AT_ONCE.checked_div(inner).unwrap_or(1).max(1);
        let mut first = vec![0; counts.len()];
        loop {
            let mut last: Vec<u64> = counts.iter().map(|c| c.saturating_sub(1)).collect();
            for (place, (to, from)) in last.iter_mut().zip(&first).enumerate() {
                if place < axis {
                    *to = *from;
                } else if place == axis {
                    *to = (*to).min(from.saturating_add(step).saturating_sub(1));
                }
            }
            run(Some((&first, &last)))?;
            let mut more = false;
            for place in (0..=axis).rev() {
                let (Some(at), Some(count)) = (first.get_mut(place), counts.get(place)) else {
                    break;
                };
                *at = at.saturating_add(if place == axis { step } else { 1 });
                if *at < *count {
                    more = true;
                    break;
                }
                *at = 0;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Chunks per axis.
    fn counts(&self) -> Vec<u64> {
        let axes = self.extents.iter().zip(&self.chunked.chunk);
        axes.map(|(n, c)| n.div_ceil(u64::from(*c).max(1)))
            .collect()
    }

    fn entry(&self, entry: &ChunkEntry, take: &mut Take<'_>) -> Result<(), Stop> {
        let len = if entry.size == 0 {
            self.chunk_len
        } else {
            entry.size
        };
        let place = Place {
            address: entry.address,
            len,
            mask: entry.filter_mask,
        };
        match self.coord(&entry.offsets)? {
            Some(coord) => take(&coord, place),
            None => Ok(()),
        }
    }

    /// The chunk at an offset in elements; none where that lies past the extents.
    fn coord(&self, offsets: &[u64]) -> Result<Option<Vec<u64>>, Refusal> {
        let mut coord = Vec::new();
        for (at, chunk) in offsets.iter().zip(&self.chunked.chunk) {
            let chunk = u64::from(*chunk).max(1);
            if at % chunk != 0 {
                return Err(format!(
                    "a chunk at {offsets:?}, which no chunk begins with"
                ));
            }
            coord.push(at.div_euclid(chunk));
        }
        if coord.len() != self.extents.len() {
            return Err(format!("a chunk at {offsets:?}, of another rank"));
        }
        let inside = offsets.iter().zip(&self.extents).all(|(at, n)| at < n);
        Ok(inside.then_some(coord))
    }

    /// Chunks one after the other, all of them.
    fn implicit(&self, address: u64, take: &mut Take<'_>) -> Result<(), Stop> {
        let counts = self.counts();
        let mut coord = vec![0; counts.len()];
        let mut place = Place {
            address,
            len: self.chunk_len,
            mask: 0,
        };
        loop {
            take(&coord, place)?;
            let next = place.address.checked_add(self.chunk_len.max(1));
            place.address = next.ok_or_else(|| "chunks past the end".to_owned())?;
            let mut axes = coord.iter_mut().zip(&counts).rev();
            let more = axes.any(|(i, n)| {
                *i = i.saturating_add(1);
                if *i < *n {
                    return true;
                }
                *i = 0;
                false
            });
            if !more {
                return Ok(());
            }
        }
    }
}

/// A walk through a tree of version 1. Keys only ever rise, so that a node reached twice ends it.
struct Walk<'a, 'b> {
    file: &'a File,
    indexed: &'a Indexed,
    last: Option<Vec<u64>>,
    take: &'a mut Take<'b>,
}

impl Walk<'_, '_> {
    fn node(&mut self, address: u64, wanted: Option<u8>) -> Result<(), Stop> {
        let file = self.file;
        let offset_size = usize::from(file.offset_size);
        let rank = self.indexed.extents.len();
        // The offset within an element comes last.
        let key_len = rank.saturating_add(2).saturating_mul(8);
        let head_len = offset_size.saturating_mul(2).saturating_add(8);
        let head = file.read(address, head_len)?;
        let mut cursor = Cursor::little(&head);
        if cursor.take(4)? != b"TREE" || cursor.u8()? != 1 {
            return Err(Stop::Source("a tree of chunks that is none".to_owned()));
        }
        let level = cursor.u8()?;
        let count = usize::from(cursor.u16()?);
        let fits = wanted.map_or(level <= DEPTH_MAX, |wanted| wanted == level && count > 0);
        if !fits {
            return Err(Stop::Source(
                "a tree of chunks whose levels do not fit".to_owned(),
            ));
        }
        let len = key_len.saturating_add(offset_size).saturating_mul(count);
        let body = file.read(address.saturating_add(head_len as u64), len)?;
        let mut cursor = Cursor::little(&body);
        for _ in 0..count {
            let len = u64::from(cursor.u32()?);
            let mask = cursor.u32()?;
            let mut offsets = Vec::new();
            for _ in 0..rank {
                offsets.push(cursor.u64()?);
            }
            cursor.skip(8)?;
            let address = file.address(&mut cursor)?;
            let address = address.ok_or_else(|| "a chunk that is nowhere".to_owned())?;
            if level > 0 {
                self.node(address, Some(level.saturating_sub(1)))?;
                continue;
            }
            if self.last.as_ref().is_some_and(|last| *last >= offsets) {
                return Err(Stop::Source("chunks that are not in order".to_owned()));
            }
            if let Some(coord) = self.indexed.coord(&offsets)? {
                (self.take)(&coord, Place { address, len, mask })?;
            }
            self.last = Some(offsets);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(extents: &[u64], chunk: &[u32]) -> Indexed {
        Indexed {
            chunked: Chunked {
                chunk: chunk.to_vec(),
                item: 1,
                index: Index::FixedArray,
                address: Some(0),
                bare_edges: false,
            },
            extents: extents.to_vec(),
            limits: None,
            chunk_len: 1,
        }
    }

    #[test]
    fn bands_are_the_grid_each_chunk_once() {
        for (extents, chunk) in [
            (vec![3_000, 1_000], vec![1, 1]),
            (vec![2, 1_000_000], vec![1, 1]),
            (vec![5, 700, 999], vec![2, 1, 1]),
            (vec![600_001], vec![1]),
        ] {
            let indexed = indexed(&extents, &chunk);
            let total: u64 = indexed.counts().iter().product();
            let (mut sum, mut bands, mut next) = (0, 0, vec![0; chunk.len()]);
            indexed
                .bands(&mut |bounds| {
                    let (first, last) = bounds.unwrap();
                    assert_eq!(first, next, "bands follow each other");
                    let size: u64 = first.iter().zip(last).map(|(a, b)| b - a + 1).product();
                    assert!(size <= AT_ONCE);
                    sum += size;
                    bands += 1;
                    // The chunk after the last one, in C order.
                    next = last.to_vec();
                    for (at, count) in next.iter_mut().zip(indexed.counts()).rev() {
                        *at += 1;
                        if *at < count {
                            break;
                        }
                        *at = 0;
                    }
                    Ok(())
                })
                .unwrap();
            assert_eq!(sum, total);
            assert!(bands > 1);
        }
        let mut whole = 0;
        for extents in [[10, 10], [1 << 40, 1 << 20]] {
            indexed(&extents, &[1, 1])
                .bands(&mut |bounds| {
                    assert!(bounds.is_none());
                    whole += 1;
                    Ok(())
                })
                .unwrap();
        }
        assert_eq!(whole, 2);
    }
}
