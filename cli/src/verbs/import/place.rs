//! Where the chunks of a source lie in the array that takes them.
//!
//! Holds [`Placed`]. Must not read or write.

use orthant::{Domain, DynArray};

use crate::foreign::{Facts, Grid};
use crate::slabs::stored_shape;

/// The chunks of a source, laid over an array of a container.
#[derive(Debug)]
pub(super) struct Placed {
    /// The container's coordinate of the first element of the source's chunk 0.
    start: Vec<i128>,
    /// Elements per axis of a chunk of the source.
    pub(super) chunk: Vec<u64>,
    /// The box of the container that the source fills.
    pub(super) room: Domain,
}

/// Where a chunk of the source's grid starts, counted from the first element of its domain.
pub(super) fn lead(facts: &Facts, grid: &Grid) -> Option<Vec<i64>> {
    let bounds = facts.domain.bounds().iter();
    let axes = bounds
        .zip(&grid.chunk)
        .zip(grid.origin.iter().zip(&grid.first));
    axes.map(|(((lo, _), len), (origin, first))| {
        let start = i128::from(*first)
            .checked_mul(i128::from(*len))?
            .checked_add(i128::from(*origin))?
            .checked_sub(i128::from(*lo))?;
        i64::try_from(start).ok()
    })
    .collect()
}

impl Placed {
    /// A source whose elements fill `room`; none where its chunks lie past what can be counted.
    pub(super) fn new(facts: &Facts, grid: &Grid, room: &Domain) -> Option<Self> {
        let lead = lead(facts, grid)?;
        let axes = room.bounds().iter().zip(&lead);
        Some(Self {
            start: axes
                .map(|((lo, _), lead)| i128::from(*lo).saturating_add(i128::from(*lead)))
                .collect(),
            chunk: grid.chunk.clone(),
            room: room.clone(),
        })
    }

    /// The container's coordinate where chunk 0 starts on an axis.
    pub(super) fn start_of(&self, axis: usize) -> Option<i128> {
        self.start.get(axis).copied()
    }

    /// First element and length per axis of a chunk.
    fn extent(&self, coord: &[u64]) -> impl Iterator<Item = Option<(i128, i128)>> {
        let axes = self.start.iter().zip(&self.chunk).zip(coord);
        axes.map(|((start, len), c)| {
            let len = i128::from(*len);
            let at = i128::from(*c).checked_mul(len)?.checked_add(*start)?;
            Some((at, len))
        })
    }

    /// What of the room a chunk covers; none where that is nothing.
    pub(super) fn covered(&self, coord: &[u64]) -> Option<Domain> {
        self.within(coord, &self.room)
    }

    /// What of a box a chunk covers; none where that is nothing.
    pub(super) fn within(&self, coord: &[u64], of: &Domain) -> Option<Domain> {
        let mut ranges = Vec::new();
        for (extent, (lo, hi)) in self.extent(coord).zip(of.bounds()) {
            let (start, len) = extent?;
            let lower = start.max(i128::from(*lo));
            let upper = start.checked_add(len)?.min(i128::from(*hi));
            if lower >= upper {
                return None;
            }
            ranges.push(i64::try_from(lower).ok()?..i64::try_from(upper).ok()?);
        }
        Domain::new(ranges).ok()
    }

    /// A whole chunk, wherever it reaches.
    pub(super) fn whole(&self, coord: &[u64]) -> Option<Domain> {
        let ranges: Option<Vec<_>> = self
            .extent(coord)
            .map(|extent| {
                let (start, len) = extent?;
                let end = start.checked_add(len)?;
                Some(i64::try_from(start).ok()?..i64::try_from(end).ok()?)
            })
            .collect();
        Domain::new(ranges?).ok()
    }

    /// The array's coordinate of the source's chunk 0, where every chunk of the source is one of the array.
    pub(super) fn first_in(&self, into: &DynArray) -> Option<Vec<i64>> {
        if stored_shape(into) != self.chunk {
            return None;
        }
        let origin = into.origin().ok()?;
        let axes = self.start.iter().zip(&self.chunk).zip(&origin);
        axes.map(|((start, len), origin)| {
            let step = start.checked_sub(i128::from(*origin))?;
            let len = i128::from(*len);
            if step.checked_rem_euclid(len)? != 0 {
                return None;
            }
            i64::try_from(step.checked_div_euclid(len)?).ok()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use orthant::DataType;

    use super::*;

    fn facts(shape: &[u64], grid: Grid) -> (Facts, Grid) {
        let facts = Facts::plain(DataType::Int8, shape).unwrap();
        (facts, grid)
    }

    #[test]
    fn a_chunk_covers_what_of_the_room_it_meets() {
        let (facts, grid) = facts(&[5, 3], Grid::from_zero(vec![2, 2]));
        let room = Domain::new([-7..-2, 10..13]).unwrap();
        let placed = Placed::new(&facts, &grid, &room).unwrap();
        let covered = |c: &[u64]| placed.covered(c).map(|d| d.to_string());
        assert_eq!(covered(&[0, 0]).unwrap(), "[-7:-5, 10:12]");
        assert_eq!(covered(&[2, 1]).unwrap(), "[-3:-2, 12:13]");
        assert_eq!(covered(&[3, 0]), None);
        assert_eq!(covered(&[u64::MAX, 0]), None);
        assert_eq!(placed.whole(&[2, 1]).unwrap().to_string(), "[-3:-1, 12:14]");
    }

    #[test]
    fn a_grid_with_a_margin_starts_before_the_room() {
        let (mut facts, mut grid) = facts(&[4], Grid::from_zero(vec![3]));
        // Elements 10..14 on a grid whose chunk 0 starts at 1: chunk 3 is the source's first.
        facts.domain = Domain::new([11..15]).unwrap();
        grid.origin = vec![1];
        grid.first = vec![3];
        assert_eq!(lead(&facts, &grid), Some(vec![-1]));
        let room = Domain::new([0..4]).unwrap();
        let placed = Placed::new(&facts, &grid, &room).unwrap();
        assert_eq!(placed.covered(&[0]).unwrap().to_string(), "[0:2]");
        assert_eq!(placed.covered(&[1]).unwrap().to_string(), "[2:4]");
    }
}
