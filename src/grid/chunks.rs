//! The lattice of chunks: from coordinates to chunk coordinates and back, by floor division.
//!
//! Holds [`ChunkGrid`] and [`AxisSet`] (the chunk coordinates a read touches on one axis). Must not know keys.
//!
//! Invariants: every extent is at least 1; origins and coordinates keep the index limit, so `x - origin` fits an `i64`.

use super::{Coords, Domain};
use crate::error::{Error, Result};

/// A regular grid of chunks: chunk `c` covers `[origin + c*shape, origin + (c+1)*shape)` on each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkGrid {
    origin: Coords,
    shape: smallvec::SmallVec<[i64; 8]>,
}

impl ChunkGrid {
    /// A grid of chunks of `shape` whose chunk 0 starts at `origin`. Extents are 1..=2^32-1 (checked by the document).
    pub(crate) fn new(origin: &[i64], shape: &[u64]) -> Result<Self> {
        if origin.len() != shape.len() {
            return Err(Error::invalid("chunk grid")
                .expected(format_args!("{} extents", origin.len()))
                .found(shape.len())
                .reason("rank"));
        }
        let shape = shape
            .iter()
            .enumerate()
            .map(|(axis, &n)| match i64::try_from(n) {
                Ok(n) if n >= 1 => Ok(n),
                _ => Err(Error::invalid(format!("chunk length on axis {axis}"))
                    .expected("at least 1")
                    .found(n)),
            });
        Ok(Self {
            origin: origin.into(),
            shape: shape.collect::<Result<_>>()?,
        })
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Elements per axis of every chunk.
    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Chunk coordinate of `x` on `axis`: `floor((x - origin) / extent)`. The axis must exist.
    pub(crate) fn chunk_at(&self, axis: usize, x: i64) -> i64 {
        let (origin, extent) = self.axis(axis);
        x.wrapping_sub(origin).div_euclid(extent)
    }

    /// Position of `x` within its chunk, `0..extent`.
    pub(crate) fn offset_at(&self, axis: usize, x: i64) -> i64 {
        let (origin, extent) = self.axis(axis);
        x.wrapping_sub(origin).rem_euclid(extent)
    }

    /// First element coordinate of chunk `c`, exact for every `i64`.
    pub(crate) fn start(&self, axis: usize, c: i64) -> i128 {
        let (origin, extent) = self.axis(axis);
        // i128 holds the product of two i64 and a third one.
        i128::from(origin).wrapping_add(i128::from(c).wrapping_mul(i128::from(extent)))
    }

    /// Half-open range of chunk coordinates that meet `lo..hi`; empty for an empty range.
    pub(crate) fn chunks_of(&self, axis: usize, lo: i64, hi: i64) -> (i64, i64) {
        if lo >= hi {
            return (0, 0);
        }
        // `hi - 1` cannot overflow: `hi > lo`. The chunk of a coordinate within the limit lies far below i64::MAX.
        (
            self.chunk_at(axis, lo),
            self.chunk_at(axis, hi.wrapping_sub(1)).wrapping_add(1),
        )
    }

    /// The elements of chunk `c` that lie in `domain`; empty where the chunk is wholly outside.
    ///
    /// Any `c` is allowed, also one that a damaged file holds: the arithmetic is in `i128`.
    pub(crate) fn covered(&self, c: &[i64], domain: &Domain) -> Domain {
        let axes = domain.bounds().iter().enumerate().map(|(axis, &(lo, hi))| {
            let start = self.start(axis, c.get(axis).copied().unwrap_or(0));
            let end = start.wrapping_add(i128::from(self.axis(axis).1));
            let a = start.clamp(i128::from(lo), i128::from(hi));
            let b = end.clamp(i128::from(lo), i128::from(hi));
            // Both are clamped between two i64.
            (
                i64::try_from(a).unwrap_or(lo),
                i64::try_from(b.max(a)).unwrap_or(lo),
            )
        });
        Domain::from_checked(axes)
    }

    /// True when chunk `c` lies wholly inside `domain`.
    pub(crate) fn is_inside(&self, c: &[i64], domain: &Domain) -> bool {
        domain.bounds().iter().enumerate().all(|(axis, &(lo, hi))| {
            let start = self.start(axis, c.get(axis).copied().unwrap_or(0));
            start >= i128::from(lo)
                && start.wrapping_add(i128::from(self.axis(axis).1)) <= i128::from(hi)
        })
    }

    /// True when chunk `c` and `domain` share an element.
    pub(crate) fn meets(&self, c: &[i64], domain: &Domain) -> bool {
        !self.covered(c, domain).is_empty()
    }

    /// Number of chunks that meet `domain`, or `None` past `u128`.
    pub(crate) fn chunk_count(&self, domain: &Domain) -> Option<u128> {
        if domain.is_empty() {
            return Some(0);
        }
        domain
            .bounds()
            .iter()
            .enumerate()
            .try_fold(1_u128, |n, (axis, &(lo, hi))| {
                let (a, b) = self.chunks_of(axis, lo, hi);
                n.checked_mul(u128::from(b.abs_diff(a)))
            })
    }

    fn axis(&self, axis: usize) -> (i64, i64) {
        match (self.origin.get(axis), self.shape.get(axis)) {
            (Some(&origin), Some(&extent)) => (origin, extent),
            // Callers iterate over the rank; a missing axis behaves as one endless chunk at 0.
            _ => (0, i64::MAX),
        }
    }
}

/// The chunk coordinates that matter on one axis, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AxisSet {
    /// All of a half-open range.
    Range(i64, i64),
    /// The listed ones: sorted, unique.
    List(Vec<i64>),
}

impl AxisSet {
    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(lo, hi) => hi.abs_diff(*lo),
            Self::List(list) => list.len() as u64,
        }
    }

    pub(crate) fn contains(&self, c: i64) -> bool {
        match self {
            Self::Range(lo, hi) => *lo <= c && c < *hi,
            Self::List(list) => list.binary_search(&c).is_ok(),
        }
    }

    /// The smallest member at or above `c`.
    pub(crate) fn at_or_above(&self, c: i64) -> Option<i64> {
        match self {
            Self::Range(lo, hi) => Some(c.max(*lo)).filter(|c| c < hi),
            Self::List(list) => list.get(list.partition_point(|&x| x < c)).copied(),
        }
    }

    pub(crate) fn first(&self) -> Option<i64> {
        self.at_or_above(i64::MIN)
    }

    /// All members in order.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = i64> + '_> {
        match self {
            Self::Range(lo, hi) => Box::new(*lo..*hi),
            Self::List(list) => Box::new(list.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> serde_json::Value {
        serde_json::from_str(include_str!("../../tests/data/vectors/signed/arith.json")).unwrap()
    }

    fn int(v: &serde_json::Value) -> i64 {
        v.as_i64().unwrap()
    }

    #[test]
    fn points_divide_by_floor_up_to_the_index_limits() {
        let points = vectors();
        let points = points["points"].as_array().unwrap();
        assert!(points.len() > 100);
        for p in points {
            let g = ChunkGrid::new(&[int(&p["origin"])], &[p["chunk"].as_u64().unwrap()]).unwrap();
            let x = int(&p["x"]);
            assert_eq!(g.chunk_at(0, x), int(&p["id"]), "{p}");
            assert_eq!(g.offset_at(0, x), int(&p["offset"]), "{p}");
            assert_eq!(
                g.start(0, int(&p["id"])),
                i128::from(int(&p["start"])),
                "{p}"
            );
        }
    }

    #[test]
    fn ranges_meet_the_listed_chunks_and_an_empty_one_meets_none() {
        let ranges = vectors();
        let ranges = ranges["ranges"].as_array().unwrap();
        assert_eq!(ranges.len(), 14);
        for r in ranges {
            let g = ChunkGrid::new(&[int(&r["origin"])], &[r["chunk"].as_u64().unwrap()]).unwrap();
            let (lo, hi) = g.chunks_of(0, int(&r["min"]), int(&r["max"]));
            let expected = &r["count"];
            assert_eq!(
                i128::from(hi) - i128::from(lo),
                i128::from(int(expected)),
                "{r}"
            );
            if lo < hi {
                assert_eq!((lo, hi - 1), (int(&r["first"]), int(&r["last"])), "{r}");
            }
        }
    }

    #[test]
    fn a_chunk_coordinate_from_a_damaged_file_covers_nothing_and_does_not_overflow() {
        let g = ChunkGrid::new(&[(1 << 62) - 2], &[(1 << 32) - 1]).unwrap();
        let domain = Domain::new([-5..8]).unwrap();
        for c in [i64::MIN, i64::MAX] {
            assert!(!g.meets(&[c], &domain));
        }
    }

    #[test]
    fn the_next_member_of_a_set_is_found_from_any_start() {
        let r = AxisSet::Range(-2, 3);
        assert_eq!(
            (r.at_or_above(-9), r.at_or_above(2), r.at_or_above(3)),
            (Some(-2), Some(2), None)
        );
        let l = AxisSet::List(vec![-7, 0, 4]);
        assert_eq!(
            (l.at_or_above(-7), l.at_or_above(1), l.at_or_above(5)),
            (Some(-7), Some(4), None)
        );
        assert!(l.contains(0) && !l.contains(1));
    }
}
