//! From picked coordinates to chunks: which chunks a selection meets, and which of their elements go where.
//!
//! Holds [`Plan`]. Pure: must not read the index or payloads. Work and memory follow what is asked for, never the domain.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::grid::{Axis, AxisMap, AxisSet, ChunkGrid, Picked};

/// A selection laid over a chunk grid.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    grid: &'a ChunkGrid,
    axes: SmallVec<[PlannedAxis; 8]>,
}

#[derive(Debug)]
enum PlannedAxis {
    Range {
        lo: i64,
        hi: i64,
        step: u64,
        chunks: AxisSet,
    },
    /// Per chunk of the set, in its order: pairs of (offset in the chunk, position in the result).
    List {
        chunks: AxisSet,
        pairs: Vec<Vec<(usize, usize)>>,
        len: usize,
    },
}

impl<'a> Plan<'a> {
    /// Lays `picked` over `grid`; the ranks agree.
    pub(crate) fn new(grid: &'a ChunkGrid, picked: &Picked) -> Result<Self> {
        let axes = picked
            .axes
            .iter()
            .enumerate()
            .map(|(axis, pick)| PlannedAxis::new(grid, axis, pick));
        Ok(Self {
            grid,
            axes: axes.collect::<Result<_>>()?,
        })
    }

    /// The chunk coordinates met on each axis.
    pub(crate) fn sets(&self) -> impl ExactSizeIterator<Item = &AxisSet> {
        self.axes.iter().map(PlannedAxis::chunks)
    }

    pub(crate) fn set(&self, axis: usize) -> Option<&AxisSet> {
        self.axes.get(axis).map(PlannedAxis::chunks)
    }

    /// How many chunks are met.
    pub(crate) fn chunk_count(&self) -> Result<u64> {
        let too_many = || {
            Error::limit("chunks of one call")
                .expected("fewer than 2^64")
                .reason("too_large")
        };
        self.sets()
            .try_fold(1_u64, |n, set| n.checked_mul(set.len()))
            .ok_or_else(too_many)
    }

    /// The shape of the result, dropped axes included.
    pub(crate) fn shape(&self) -> Result<SmallVec<[usize; 8]>> {
        self.axes.iter().map(PlannedAxis::len).collect()
    }

    /// True when `axis` is a range, so that chunk by chunk its result positions ascend without gaps.
    pub(crate) fn is_range(&self, axis: usize) -> bool {
        matches!(self.axes.get(axis), Some(PlannedAxis::Range { .. }))
    }

    /// From positions in chunk `c` (of this axis) to positions in the result.
    pub(crate) fn map(&self, axis: usize, c: i64) -> AxisMap {
        match self.axes.get(axis) {
            Some(a) => a.map(self.grid, axis, c),
            None => AxisMap::Pairs(Vec::new()),
        }
    }

    /// Maps of all axes for chunk `c`.
    pub(crate) fn maps<'s>(&'s self, c: &'s [i64]) -> impl Iterator<Item = AxisMap> + 's {
        c.iter().enumerate().map(|(axis, &c)| self.map(axis, c))
    }

    /// True when the selection takes every element of `covered`, the part of chunk `c` inside the domain.
    pub(crate) fn covers(&self, c: &[i64], covered: &crate::grid::Domain) -> bool {
        self.axes
            .iter()
            .zip(c)
            .zip(covered.extents())
            .enumerate()
            .all(|(axis, ((a, &c), want))| match a {
                PlannedAxis::Range { step, .. } => {
                    let n = a.map(self.grid, axis, c).len() as u64;
                    n == want && (*step == 1 || n <= 1)
                }
                // Pairs may repeat an element, so their count proves nothing.
                PlannedAxis::List { .. } => false,
            })
    }
}

impl PlannedAxis {
    fn new(grid: &ChunkGrid, axis: usize, pick: &Axis) -> Result<Self> {
        match pick {
            Axis::Range { lo, hi, step, .. } => {
                let (first, end) = grid.chunks_of(axis, *lo, *hi);
                let extent = grid.shape().get(axis).copied().unwrap_or(1);
                let wide = i64::try_from(*step).map_or(true, |s| s > extent);
                let chunks = if wide && first < end {
                    AxisSet::List(stepped_chunks(grid, axis, *lo, *hi, *step))
                } else {
                    AxisSet::Range(first, end)
                };
                Ok(Self::Range {
                    lo: *lo,
                    hi: *hi,
                    step: *step,
                    chunks,
                })
            }
            Axis::List(list) => {
                let mut all: Vec<(i64, usize, usize)> = Vec::with_capacity(list.len());
                for (dst, &x) in list.iter().enumerate() {
                    all.push((grid.chunk_at(axis, x), index(grid.offset_at(axis, x))?, dst));
                }
                all.sort_unstable();
                let mut chunks = Vec::new();
                let mut pairs: Vec<Vec<(usize, usize)>> = Vec::new();
                for (c, src, dst) in all {
                    match (chunks.last(), pairs.last_mut()) {
                        (Some(&last), Some(group)) if last == c => group.push((src, dst)),
                        _ => {
                            chunks.push(c);
                            pairs.push(vec![(src, dst)]);
                        }
                    }
                }
                Ok(Self::List {
                    chunks: AxisSet::List(chunks),
                    pairs,
                    len: list.len(),
                })
            }
        }
    }

    fn chunks(&self) -> &AxisSet {
        match self {
            Self::Range { chunks, .. } | Self::List { chunks, .. } => chunks,
        }
    }

    fn len(&self) -> Result<usize> {
        match self {
            Self::Range { lo, hi, step, .. } => {
                let n = hi.abs_diff(*lo).div_ceil(*step);
                usize::try_from(n).map_err(|_| {
                    Error::limit("read")
                        .expected("a block that fits in memory")
                        .found(n)
                        .reason("too_large")
                })
            }
            Self::List { len, .. } => Ok(*len),
        }
    }

    fn map(&self, grid: &ChunkGrid, axis: usize, c: i64) -> AxisMap {
        match self {
            Self::Range { lo, hi, step, .. } => range_map(grid, axis, c, (*lo, *hi, *step)),
            Self::List {
                chunks: AxisSet::List(chunks),
                pairs,
                ..
            } => {
                let found = chunks.binary_search(&c).ok().and_then(|i| pairs.get(i));
                AxisMap::Pairs(found.cloned().unwrap_or_default())
            }
            Self::List { .. } => AxisMap::Pairs(Vec::new()),
        }
    }
}

/// The elements of chunk `c` that `lo..hi` by `step` picks.
fn range_map(grid: &ChunkGrid, axis: usize, c: i64, (lo, hi, step): (i64, i64, u64)) -> AxisMap {
    let start = grid.start(axis, c);
    let extent = i128::from(grid.shape().get(axis).copied().unwrap_or(1));
    let (lo, hi, step) = (i128::from(lo), i128::from(hi), i128::from(step));
    // First pick at or above the chunk's start; all values are far inside i128.
    let skipped = start
        .wrapping_sub(lo)
        .max(0)
        .wrapping_add(step)
        .wrapping_sub(1)
        .div_euclid(step);
    let first = lo.wrapping_add(skipped.wrapping_mul(step));
    let end = hi.min(start.wrapping_add(extent));
    let len = end
        .wrapping_sub(first)
        .max(0)
        .wrapping_add(step)
        .wrapping_sub(1)
        .div_euclid(step);
    let to = |x: i128| usize::try_from(x).unwrap_or(0);
    AxisMap::Run {
        src: to(first.wrapping_sub(start)),
        dst: to(skipped),
        len: to(len),
        src_step: to(step),
        dst_step: 1,
    }
}

/// The chunks that hold a pick, where the step is longer than a chunk.
fn stepped_chunks(grid: &ChunkGrid, axis: usize, lo: i64, hi: i64, step: u64) -> Vec<i64> {
    let mut chunks = Vec::new();
    let mut x = lo;
    while x < hi {
        chunks.push(grid.chunk_at(axis, x));
        let Some(next) = i64::try_from(step).ok().and_then(|s| x.checked_add(s)) else {
            break;
        };
        x = next;
    }
    chunks
}

fn index(offset: i64) -> Result<usize> {
    usize::try_from(offset).map_err(|_| Error::limit("chunk offset").found(offset))
}
