//! What a user asks of an array's domain: grow, cut, roll, move.
//!
//! Holds those calls of [`DynArray`], each a new domain computed from the old one and handed to `growth`, and the
//! arithmetic on the bounds of one axis. Must not touch chunks.

use crate::error::{Error, Result};
use crate::format::document::ArrayDocument;
use crate::grid::{ChunkGrid, Domain, Picked};

use super::element::Source;
use super::growth::{self, Reshape};
use super::handle::{Compiled, DynArray, check_block};
use super::layout::Layout;
use super::receipt::{ShrinkReceipt, WriteReceipt};
use super::write::Content;

/// What happens at the other edge when an axis grows at one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Roll {
    /// Nothing.
    Keep,
    /// As much is cut as is added.
    Same,
    /// What lies outside a window of this width is cut, down to the chunk edge outside it when aligned.
    Window { width: u64, aligned: bool },
}

/// An edge of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Low,
    High,
}

impl DynArray {
    /// How many cells fit at the low and the high edge of an axis before a chunk is added: prepending or appending no
    /// more than that rewrites the edge chunks, aligned growth rewrites nothing.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`) for an axis the array does not have.
    pub fn room(&self, axis: usize) -> Result<(u64, u64)> {
        let compiled = self.compiled()?;
        let (lo, hi) = axis_range(&compiled.layout.domain, axis)?;
        let grid = &compiled.layout.chunk.grid;
        let extent = grid.shape().get(axis).copied().unwrap_or(1);
        let pad = |x: i64| grid.offset_at(axis, x).unsigned_abs();
        Ok((
            pad(lo),
            (extent.unsigned_abs())
                .saturating_sub(pad(hi))
                .checked_rem(extent.unsigned_abs())
                .unwrap_or(0),
        ))
    }

    /// Moves the bounds of an axis outward: `lo` coordinates at the low edge, `hi` at the high one. New elements are fill.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`) for an axis the array does not have; `LimitExceeded` (`index_limit`); `ReadOnly`.
    pub fn grow(&self, axis: usize, lo: u64, hi: u64) -> Result<ShrinkReceipt> {
        self.set_domain_by(|d, _| moved(d, axis, -i128::from(lo), i128::from(hi)))
    }

    /// Moves the bounds of an axis inward. What is cut is gone: growing again reads fill.
    ///
    /// # Errors
    /// As [`DynArray::grow`]; `InvalidArgument` (`trim_too_much`) for more than there is.
    pub fn trim(&self, axis: usize, lo: u64, hi: u64) -> Result<ShrinkReceipt> {
        self.set_domain_by(|d, _| trimmed(d, axis, lo, hi))
    }

    /// As [`DynArray::trim`], but each bound stops at the chunk edge outside it, so that no chunk is rewritten: up to a
    /// chunk less is cut.
    ///
    /// # Errors
    /// As [`DynArray::trim`].
    pub fn trim_aligned(&self, axis: usize, lo: u64, hi: u64) -> Result<ShrinkReceipt> {
        self.set_domain_by(|d, grid| {
            let exact = trimmed(d, axis, lo, hi)?;
            let ((old_lo, old_hi), (new_lo, new_hi)) =
                (axis_range(d, axis)?, axis_range(&exact, axis)?);
            let extent = grid.shape().get(axis).copied().unwrap_or(1);
            let down = new_lo
                .saturating_sub(grid.offset_at(axis, new_lo))
                .max(old_lo);
            let over = grid.offset_at(axis, new_hi);
            let up = if over == 0 {
                new_hi
            } else {
                new_hi.saturating_add(extent.saturating_sub(over))
            }
            .min(old_hi);
            with_range(d, axis, down, up)
        })
    }

    /// Gives the array any other domain of its rank. Elements in both keep their value, all others are fill.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`, `reversed`), `LimitExceeded` (`index_limit`), `ReadOnly`.
    pub fn set_domain(&self, domain: impl super::IntoDomain) -> Result<ShrinkReceipt> {
        let domain = self.placed(|| domain.into_domain())?;
        self.set_domain_by(|d, _| same_rank(d, &domain).map(|()| domain.clone()))
    }

    /// Moves the window of an axis by `by` coordinates: as much is cut at one end as is added at the other.
    ///
    /// # Errors
    /// As [`DynArray::grow`].
    pub fn advance(&self, axis: usize, by: i64) -> Result<ShrinkReceipt> {
        self.set_domain_by(|d, _| moved(d, axis, i128::from(by), i128::from(by)))
    }

    /// Moves all coordinates: domain and origin together. No key and no byte of a chunk changes.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`), `LimitExceeded` (`index_limit`), `ReadOnly`.
    pub fn translate(&self, by: &[i64]) -> Result<()> {
        self.retried(|compiled| {
            let mut document = compiled.layout.document.clone();
            if by.len() != document.domain.len() {
                return Err(Error::invalid("translation")
                    .expected(format_args!("{} axes", document.domain.len()))
                    .found(by.len())
                    .reason("rank"));
            }
            for (axis, (bounds, (origin, &by))) in document
                .domain
                .iter_mut()
                .zip(document.origin.iter_mut().zip(by))
                .enumerate()
            {
                let moved = |x: i64| {
                    x.checked_add(by).ok_or_else(|| {
                        crate::grid::index_limit(axis, i128::from(x).wrapping_add(i128::from(by)))
                    })
                };
                *bounds = (moved(bounds.0)?, moved(bounds.1)?);
                *origin = moved(*origin)?;
                crate::grid::check_bounds(axis, bounds.0, bounds.1)?;
                crate::grid::check_bounds(axis, *origin, *origin)?;
            }
            // Domain and grid move together, so every chunk keeps its coordinate and its elements: the document is all.
            let writer = self.view().writer()?;
            let _hold = writer.hold();
            let value = self.document_value(&document)?;
            let change = (compiled.key.clone(), Some(value));
            let staged = writer.stage_if(
                std::iter::once(compiled.guard().expectation()),
                std::iter::once(&change),
            );
            Ok(staged.ok())
        })
    }

    /// Grows an axis by the slab's extent at the low (`front`) or high edge and writes the slab there, in one step. With
    /// `roll`, as much is cut at the other edge.
    pub(crate) fn attach(
        &self,
        axis: usize,
        end: End,
        roll: Roll,
        shape: &[u64],
        source: Source<'_>,
    ) -> Result<(WriteReceipt, ShrinkReceipt)> {
        let content = Content::Block(source);
        self.retried(|compiled| {
            let layout = &compiled.layout;
            let (lo, hi) = axis_range(&layout.domain, axis)?;
            check_cross_section(&layout.domain, axis, shape)?;
            let n = i128::from(shape.get(axis).copied().unwrap_or(0));
            let grown = match (end, roll) {
                (End::Low, Roll::Keep) => moved(&layout.domain, axis, -n, 0)?,
                (End::Low, _) => moved(&layout.domain, axis, -n, -n)?,
                (End::High, Roll::Keep) => moved(&layout.domain, axis, 0, n)?,
                (End::High, Roll::Same) => moved(&layout.domain, axis, n, n)?,
                (End::High, Roll::Window { width, aligned }) => {
                    let (_, new_hi) = axis_range(&moved(&layout.domain, axis, 0, n)?, axis)?;
                    let exact = new_hi.saturating_sub_unsigned(width).max(lo);
                    let edge = exact
                        .saturating_sub(layout.chunk.grid.offset_at(axis, exact))
                        .max(lo);
                    with_range(
                        &layout.domain,
                        axis,
                        if aligned { edge } else { exact },
                        new_hi,
                    )?
                }
            };
            let (new_lo, new_hi) = axis_range(&grown, axis)?;
            let added = match end {
                End::Low => (new_lo, lo),
                End::High => (hi, new_hi),
            };
            // A slab longer than the window fills it whole: only its outer part is kept.
            let slab = with_range(&layout.domain, axis, added.0, added.1)?;
            if !grown.encloses(&slab) {
                return Err(Error::invalid(format!("slab on axis {axis}"))
                    .expected(format_args!(
                        "at most the window's {} coordinates",
                        hi.abs_diff(lo)
                    ))
                    .found(n)
                    .reason("trim_too_much"));
            }
            check_block(layout, &Picked::whole(&slab), None, &content)?;
            let mut document = layout.document.clone();
            document.domain = grown.bounds().to_vec();
            let done = self.reshape(compiled, document, Some((&Picked::whole(&slab), &content)))?;
            Ok(done.map(|(cut, written)| (written, cut)))
        })
    }

    fn set_domain_by(
        &self,
        next: impl Fn(&Domain, &ChunkGrid) -> Result<Domain>,
    ) -> Result<ShrinkReceipt> {
        self.retried(|compiled| {
            let domain = next(&compiled.layout.domain, &compiled.layout.chunk.grid)?;
            let mut document = compiled.layout.document.clone();
            document.domain = domain.bounds().to_vec();
            Ok(self.reshape(compiled, document, None)?.map(|(cut, _)| cut))
        })
    }

    fn reshape(
        &self,
        compiled: &Compiled,
        document: ArrayDocument,
        slab: Option<(&Picked, &Content<'_>)>,
    ) -> Result<Option<(ShrinkReceipt, WriteReceipt)>> {
        let view = self.view();
        let writer = view.writer()?;
        let _hold = writer.hold();
        let value = self.document_value(&document)?;
        let new = Layout::new(document, view.limits())?;
        let reshape = Reshape {
            view,
            id: self.id(),
            old: &compiled.layout,
            new: &new,
            document: value,
            slab,
        };
        growth::reshape(&reshape, &compiled.guard())
    }
}

fn check_cross_section(domain: &Domain, axis: usize, shape: &[u64]) -> Result<()> {
    if shape.len() != domain.rank() {
        return Err(Error::invalid("slab")
            .expected(format_args!(
                "{} axes, as the domain {domain} has",
                domain.rank()
            ))
            .found(shape.len())
            .reason("rank"));
    }
    for (i, (want, &found)) in domain.extents().zip(shape).enumerate() {
        if i != axis && want != found {
            return Err(Error::invalid(format!("slab on axis {i}"))
                .expected(format_args!("extent {want}, for the domain {domain}"))
                .found(found)
                .reason("shape"));
        }
    }
    Ok(())
}

fn same_rank(old: &Domain, new: &Domain) -> Result<()> {
    if old.rank() == new.rank() {
        return Ok(());
    }
    Err(Error::invalid("domain")
        .expected(format_args!("{} axes, as {old} has", old.rank()))
        .found(new)
        .reason("rank"))
}

fn axis_range(domain: &Domain, axis: usize) -> Result<(i64, i64)> {
    match domain.bounds().get(axis) {
        Some(&range) => Ok(range),
        None if domain.rank() == 0 => Err(Error::invalid(format!("axis {axis}"))
            .expected("an axis; this array has no axes")
            .reason("rank")),
        None => Err(Error::invalid(format!("axis {axis}"))
            .expected(format_args!(
                "an axis below {}, for the domain {domain}",
                domain.rank()
            ))
            .reason("rank")),
    }
}

fn with_range(domain: &Domain, axis: usize, lo: i64, hi: i64) -> Result<Domain> {
    Domain::new(
        domain
            .ranges()
            .enumerate()
            .map(|(i, r)| if i == axis { lo..hi } else { r }),
    )
}

/// The domain with both bounds of an axis moved.
fn moved(domain: &Domain, axis: usize, lo: i128, hi: i128) -> Result<Domain> {
    let (old_lo, old_hi) = axis_range(domain, axis)?;
    let at = |x: i64, by: i128| {
        let x = i128::from(x).saturating_add(by);
        i64::try_from(x).map_err(|_| crate::grid::index_limit(axis, x))
    };
    with_range(domain, axis, at(old_lo, lo)?, at(old_hi, hi)?)
}

fn trimmed(domain: &Domain, axis: usize, lo: u64, hi: u64) -> Result<Domain> {
    let (old_lo, old_hi) = axis_range(domain, axis)?;
    if i128::from(lo).saturating_add(i128::from(hi)) > i128::from(old_hi.abs_diff(old_lo)) {
        return Err(Error::invalid(format!("trim on axis {axis}"))
            .expected(format_args!(
                "at most {} coordinates, for the domain {domain}",
                old_hi.abs_diff(old_lo)
            ))
            .found(i128::from(lo).saturating_add(i128::from(hi)))
            .reason("trim_too_much"));
    }
    moved(domain, axis, i128::from(lo), -i128::from(hi))
}
