//! A view of an array that counts from zero.
//!
//! Holds [`ZeroBased`]: unsigned positions, pinned to one snapshot, for code that wants indexes from 0. Positions are
//! never stored and mean something else after the domain's low edge has moved, hence a type of their own.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::grid::{Domain, Region};

use super::handle::{Block, DynArray};
use super::receipt::Receipt;

/// An array of one snapshot, addressed by unsigned positions: position `i` is the coordinate `lower bound + i`.
///
/// `chunk_origin` and `array_origin` are those of the long-standing request for negative chunk indexes in Zarr: where
/// chunk 0 has its corner in the array, and where the array starts within its first chunks.
#[derive(Debug, Clone)]
pub struct ZeroBased {
    array: DynArray,
    domain: Domain,
}

impl ZeroBased {
    pub(crate) fn new(array: DynArray) -> Result<Self> {
        let domain = array.domain()?;
        Ok(Self { array, domain })
    }

    /// The array itself, addressed by coordinates.
    pub fn array(&self) -> &DynArray {
        &self.array
    }

    /// Elements per axis.
    pub fn shape(&self) -> Vec<u64> {
        self.domain.shape()
    }

    /// The position of the lower corner of chunk 0 per axis: negative where chunk 0 starts below the array.
    ///
    /// # Errors
    /// As [`DynArray::origin`].
    pub fn chunk_origin(&self) -> Result<Vec<i64>> {
        let lower = self.domain.bounds().iter().map(|b| b.0);
        // Both keep the index limit, so their difference fits.
        Ok(self
            .array
            .origin()?
            .iter()
            .zip(lower)
            .map(|(&origin, lo)| origin.wrapping_sub(lo))
            .collect())
    }

    /// How many positions of the first chunk lie below the array, per axis: less than a chunk.
    ///
    /// # Errors
    /// As [`DynArray::origin`].
    pub fn array_origin(&self) -> Result<Vec<u64>> {
        self.with_grid(|grid, axis, lo| grid.offset_at(axis, lo).unsigned_abs())
    }

    /// The chunk coordinate of the first chunk per axis.
    ///
    /// # Errors
    /// As [`DynArray::origin`].
    pub fn first_chunk(&self) -> Result<Vec<i64>> {
        self.with_grid(crate::grid::ChunkGrid::chunk_at)
    }

    /// The coordinates of a box of positions.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`, `reversed`), `OutOfDomain` for a position past the shape.
    pub fn domain_of(&self, positions: &[Range<u64>]) -> Result<Domain> {
        if positions.len() != self.domain.rank() {
            return Err(Error::invalid("positions")
                .expected(format_args!("{} axes", self.domain.rank()))
                .found(positions.len())
                .reason("rank"));
        }
        let axes =
            positions
                .iter()
                .zip(self.domain.bounds())
                .enumerate()
                .map(|(axis, (p, &(lo, hi)))| {
                    let extent = hi.abs_diff(lo);
                    if p.start > p.end {
                        return Err(Error::invalid(format!("positions on axis {axis}"))
                            .expected("an end at or above the start")
                            .found(format_args!("{}..{}", p.start, p.end))
                            .reason("reversed"));
                    }
                    if p.end > extent {
                        return Err(Error::out_of_domain(format!(
                            "positions {}..{} are outside [0,{extent}) on axis {axis}",
                            p.start, p.end
                        ))
                        .reason("out_of_domain"));
                    }
                    // At most the extent, so the sum is at most the upper bound.
                    Ok(lo.wrapping_add_unsigned(p.start)..lo.wrapping_add_unsigned(p.end))
                });
        Domain::new(axes.collect::<Result<Vec<_>>>()?)
    }

    /// Reads a box of positions.
    ///
    /// # Errors
    /// As [`ZeroBased::domain_of`] and [`DynArray::read`].
    pub fn read(&self, positions: &[Range<u64>]) -> Result<(Block, Receipt)> {
        self.array
            .read_with_receipt(Region::from(self.domain_of(positions)?))
    }

    fn with_grid<R>(&self, f: impl Fn(&crate::grid::ChunkGrid, usize, i64) -> R) -> Result<Vec<R>> {
        let compiled = self.array.compiled()?;
        let grid = &compiled.layout.chunk.grid;
        Ok(self
            .domain
            .bounds()
            .iter()
            .enumerate()
            .map(|(axis, b)| f(grid, axis, b.0))
            .collect())
    }
}
