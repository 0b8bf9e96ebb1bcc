//! The half-open signed box of an array's valid elements.
//!
//! Holds [`Domain`]. Must not hold anything about chunks.

use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::limits::{INDEX_MAX, RANK_MAX, UPPER_MAX};

/// One half-open range of signed coordinates per axis. Rank 0 is a single element.
///
/// Coordinates are absolute: growing at a low edge makes the lower bound smaller and renumbers nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Domain {
    axes: SmallVec<[(i64, i64); 8]>,
}

impl Domain {
    /// A domain of the given ranges.
    ///
    /// # Errors
    /// `InvalidArgument` for more than 32 axes (`rank`) or a range whose end lies below its start (`reversed`);
    /// `LimitExceeded` (`index_limit`) for a bound outside `-(2^62-2)..=2^62-1`.
    pub fn new(ranges: impl IntoIterator<Item = Range<i64>>) -> Result<Self> {
        let axes: SmallVec<[(i64, i64); 8]> =
            ranges.into_iter().map(|r| (r.start, r.end)).collect();
        if axes.len() > RANK_MAX {
            return Err(Error::limit("rank")
                .expected(format_args!("at most {RANK_MAX} axes"))
                .found(axes.len())
                .reason("rank"));
        }
        for (axis, &(lo, hi)) in axes.iter().enumerate() {
            check_bounds(axis, lo, hi)?;
        }
        Ok(Self { axes })
    }

    /// The domain `[0, n)` per axis, for shapes of systems that count from zero.
    ///
    /// # Errors
    /// As [`Domain::new`].
    pub fn from_shape(shape: &[u64]) -> Result<Self> {
        let axes = shape
            .iter()
            .enumerate()
            .map(|(axis, &n)| match i64::try_from(n) {
                Ok(n) => Ok(0..n),
                Err(_) => Err(index_limit(axis, n)),
            });
        Self::new(axes.collect::<Result<Vec<_>>>()?)
    }

    /// Bounds that were checked before, such as those of an intersection.
    pub(crate) fn from_checked(axes: impl IntoIterator<Item = (i64, i64)>) -> Self {
        Self {
            axes: axes.into_iter().collect(),
        }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// The bounds of each axis, `(lower, exclusive upper)`.
    pub fn bounds(&self) -> &[(i64, i64)] {
        &self.axes
    }

    /// The range of one axis, or `None` past the rank.
    pub fn range(&self, axis: usize) -> Option<Range<i64>> {
        self.axes.get(axis).map(|&(lo, hi)| lo..hi)
    }

    /// The ranges of all axes.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<i64>> + '_ {
        self.axes.iter().map(|&(lo, hi)| lo..hi)
    }

    /// Upper minus lower bound per axis.
    pub fn shape(&self) -> Vec<u64> {
        self.extents().collect()
    }

    /// Upper minus lower bound per axis, without an allocation.
    pub(crate) fn extents(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.axes.iter().map(|&(lo, hi)| hi.abs_diff(lo))
    }

    /// Number of elements, or `None` when it passes `u128`.
    pub fn element_count(&self) -> Option<u128> {
        if self.is_empty() {
            return Some(0);
        }
        self.extents()
            .try_fold(1_u128, |n, e| n.checked_mul(u128::from(e)))
    }

    /// True when some axis has no coordinate.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(|&(lo, hi)| lo >= hi)
    }

    /// True when `point` has this rank and lies inside.
    pub fn contains(&self, point: &[i64]) -> bool {
        point.len() == self.axes.len()
            && self
                .axes
                .iter()
                .zip(point)
                .all(|(&(lo, hi), &x)| lo <= x && x < hi)
    }

    /// True when every coordinate of `other` lies inside; an empty box must keep within the bounds too.
    pub fn encloses(&self, other: &Self) -> bool {
        self.rank() == other.rank()
            && self
                .axes
                .iter()
                .zip(&other.axes)
                .all(|(&(lo, hi), &(a, b))| lo <= a && b <= hi)
    }

    /// What both boxes share; empty on an axis where they are apart. Ranks must agree, the shorter one rules.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let axes = self.axes.iter().zip(&other.axes);
        Self {
            axes: axes
                .map(|(&(lo, hi), &(a, b))| {
                    let lower = lo.max(a);
                    (lower, hi.min(b).max(lower))
                })
                .collect(),
        }
    }
}

/// The rules of one axis: ordered bounds within the index limit.
pub(crate) fn check_bounds(axis: usize, lo: i64, hi: i64) -> Result<()> {
    if lo > hi {
        return Err(Error::invalid(format!("domain on axis {axis}"))
            .expected("an upper bound at or above the lower one")
            .found(format_args!("{lo}:{hi}"))
            .reason("reversed"));
    }
    if !(-INDEX_MAX..=UPPER_MAX).contains(&lo) {
        return Err(index_limit(axis, lo));
    }
    if hi > UPPER_MAX {
        return Err(index_limit(axis, hi));
    }
    Ok(())
}

/// The error for a coordinate that no array can have.
pub(crate) fn index_limit(axis: usize, found: impl fmt::Display) -> Error {
    Error::limit(format!("index on axis {axis}"))
        .expected(format_args!(
            "a coordinate within +-{INDEX_MAX}, the limit 2^62-2"
        ))
        .found(found)
        .reason("index_limit")
}

impl fmt::Display for Domain {
    /// `[-10:5, 0:100]`, valid as a selection again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, (lo, hi)) in self.axes.iter().enumerate() {
            write!(f, "{}{lo}:{hi}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_keep_the_index_limit_and_their_order() {
        assert!(Domain::new([-INDEX_MAX..UPPER_MAX]).is_ok());
        for (r, reason) in [
            (-INDEX_MAX - 1..0, "index_limit"),
            (0..UPPER_MAX + 1, "index_limit"),
            (Range { start: 3, end: 2 }, "reversed"),
        ] {
            assert_eq!(Domain::new([r]).unwrap_err().reason_code(), Some(reason));
        }
        assert_eq!(
            Domain::new(std::iter::repeat_n(0..1, 33))
                .unwrap_err()
                .reason_code(),
            Some("rank")
        );
    }

    #[test]
    fn an_empty_box_keeps_its_place() {
        let d = Domain::new([5..5]).unwrap();
        assert_ne!(d, Domain::new([0..0]).unwrap());
        assert!(d.is_empty());
        assert_eq!(d.to_string(), "[5:5]");
    }

    #[test]
    fn the_largest_box_counts_without_overflow() {
        let d = Domain::new([-INDEX_MAX..UPPER_MAX, -INDEX_MAX..UPPER_MAX]).unwrap();
        let side = (1_u128 << 63) - 3;
        assert_eq!(d.element_count(), Some(side * side));
        let d = Domain::new([-INDEX_MAX..UPPER_MAX, 0..UPPER_MAX, 0..UPPER_MAX]).unwrap();
        assert_eq!(d.element_count(), None);
    }
}
