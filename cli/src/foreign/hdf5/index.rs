//! Chunk indexes: where each stored chunk of a dataset is. After the "HDF5 File Format Specification", III.A.1 and
//! VII.
//!
//! Holds [`Indexed`]. The tree of version 1, which most files have, is walked node by node; the others are the crate's.
//! Must not read chunks.

use hdf5_reader::chunk_index::{ChunkEntry, collect_v2_chunk_entries_storage};
use hdf5_reader::extensible_array::collect_extensible_array_chunk_entries_storage;
use hdf5_reader::fixed_array::collect_fixed_array_chunk_entries_storage;

use super::file::{File, guarded};
use super::space::{Chunked, Index};
use crate::foreign::cursor::Cursor;
use crate::foreign::{Refusal, Stop};

/// Deepest tree.
const DEPTH_MAX: u8 = 32;

/// Where one chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) mask: u32,
}

/// What is done with each chunk: its coordinate, and where it is.
pub(super) type Take<'a> = dyn FnMut(&[u64], Place) -> Result<(), Stop> + 'a;

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
        let (o, l) = (file.offset_size, file.length_size);
        let chunk = &self.chunked.chunk;
        let entries = match self.chunked.index {
            Index::BTree1 => {
                let mut walk = Walk {
                    file,
                    indexed: self,
                    last: None,
                    take,
                };
                return walk.node(address, None);
            }
            Index::Single { len, mask } => {
                let place = Place {
                    address,
                    len: len.unwrap_or(self.chunk_len),
                    mask,
                };
                return take(&vec![0; self.extents.len()], place);
            }
            Index::Implicit => return self.implicit(address, take),
            Index::FixedArray => guarded(|| {
                collect_fixed_array_chunk_entries_storage(
                    file,
                    address,
                    o,
                    l,
                    &self.extents,
                    chunk,
                    None,
                )
            })?,
            Index::ExtensibleArray => guarded(|| {
                collect_extensible_array_chunk_entries_storage(
                    file,
                    address,
                    o,
                    l,
                    &self.extents,
                    self.limits.as_deref(),
                    chunk,
                    None,
                )
            })?,
            Index::BTree2 => {
                let rank = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
                guarded(|| {
                    collect_v2_chunk_entries_storage(file, address, o, l, rank, chunk, None)
                })?
            }
        };
        entries.iter().try_for_each(|entry| self.entry(entry, take))
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
        let counts: Vec<u64> = self
            .extents
            .iter()
            .zip(&self.chunked.chunk)
            .map(|(n, c)| n.div_ceil(u64::from(*c).max(1)))
            .collect();
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
