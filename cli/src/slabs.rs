//! Cutting a box into pieces that fit in memory and follow each other in C order.
//!
//! Holds [`slabs`]. Pieces end on chunk edges where that fits the budget, so that a chunk is decoded once. Must not read.

use orthant::DynArray;

/// Bytes that one piece aims to stay below.
pub(crate) const BUDGET: u64 = 64 << 20;

/// What is cut: a box with steps, and the grid it lies over.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    pub(crate) bounds: &'a [(i64, i64)],
    pub(crate) step: &'a [u64],
    pub(crate) chunk_shape: &'a [u64],
    pub(crate) origin: &'a [i64],
    /// Bytes an element takes.
    pub(crate) item: u64,
    /// Bytes that one piece aims to stay below.
    pub(crate) budget: u64,
}

/// Elements per axis of what is stored as one: a shard, or a chunk.
pub(crate) fn stored_shape(array: &DynArray) -> Vec<u64> {
    array.shard_shape().unwrap_or_else(|| array.chunk_shape())
}

/// The pieces in C order; together they are the box. A box without elements has no piece.
pub(crate) fn slabs(cut: Cut<'_>) -> Slabs<'_> {
    let mut waiting = Vec::new();
    if cut.bounds.iter().all(|&(lo, hi)| lo < hi) {
        waiting.push((cut.bounds.to_vec(), 0));
    }
    Slabs { cut, waiting }
}

/// The pieces one after the other. A box may have more of them than memory holds, so none is made before it is asked for.
#[derive(Debug)]
pub(crate) struct Slabs<'a> {
    cut: Cut<'a>,
    /// What is left, the next part last, each with the axis to split it on: at most one part an axis.
    waiting: Vec<(Vec<(i64, i64)>, usize)>,
}

impl Slabs<'_> {
    /// Elements of the whole box, for progress bars.
    pub(crate) fn elements(&self) -> u64 {
        count(self.cut.bounds, self.cut.step)
    }
}

impl Iterator for Slabs<'_> {
    type Item = Vec<(i64, i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut piece, mut axis) = self.waiting.pop()?;
        let budget = u128::from(self.cut.budget);
        while size(&self.cut, &piece) > budget {
            let Some(&(lo, hi)) = piece.get(axis) else {
                break;
            };
            let step = self.cut.step.get(axis).copied().unwrap_or(1).max(1);
            if elements(lo, hi, step) <= 1 {
                axis = axis.saturating_add(1);
                continue;
            }
            let grid = self.cut.grid(&piece, axis);
            let with = |lo: i64, hi: i64| {
                let mut part = piece.clone();
                if let Some(range) = part.get_mut(axis) {
                    *range = (lo, hi);
                }
                part
            };
            let mut end = next_cut(lo, hi, &grid);
            let fits = grid.fit > 0 && size(&self.cut, &with(lo, end)) <= budget.saturating_mul(4);
            if !fits {
                // Not even one row fits: a row is cut on the next axis.
                end = lo.saturating_add_unsigned(step).min(end);
            }
            let part = with(lo, end);
            if end < hi {
                self.waiting.push((with(end, hi), axis));
            }
            piece = part;
            if fits {
                break;
            }
            axis = axis.saturating_add(1);
        }
        Some(piece)
    }
}

/// Elements of a box with steps.
pub(crate) fn count(bounds: &[(i64, i64)], step: &[u64]) -> u64 {
    let axes = bounds.iter().zip(step);
    axes.fold(1, |n: u64, (&(lo, hi), &step)| {
        n.saturating_mul(elements(lo, hi, step))
    })
}

fn elements(lo: i64, hi: i64, step: u64) -> u64 {
    hi.abs_diff(lo).div_ceil(step.max(1))
}

fn size(cut: &Cut<'_>, piece: &[(i64, i64)]) -> u128 {
    piece
        .iter()
        .zip(cut.step)
        .fold(u128::from(cut.item.max(1)), |n, (&(lo, hi), &step)| {
            n.saturating_mul(elements(lo, hi, step).into())
        })
}

impl Cut<'_> {
    /// What decides where `piece`, whose earlier axes are one element long, is cut on `axis`.
    fn grid(&self, piece: &[(i64, i64)], axis: usize) -> Grid {
        let step = self.step.get(axis).copied().unwrap_or(1).max(1);
        let (lo, hi) = piece.get(axis).copied().unwrap_or((0, 0));
        let row = size(self, piece)
            .checked_div(elements(lo, hi, step).into())
            .unwrap_or(1)
            .max(1);
        let fit = u128::from(self.budget).checked_div(row).unwrap_or(1);
        Grid {
            step,
            fit: u64::try_from(fit).unwrap_or(u64::MAX),
            extent: self.chunk_shape.get(axis).copied().unwrap_or(1).max(1),
            origin: self.origin.get(axis).copied().unwrap_or(0),
        }
    }
}

struct Grid {
    step: u64,
    fit: u64,
    extent: u64,
    origin: i64,
}

/// Where the piece that starts at `at` ends: on the last chunk edge within the budget, at least one chunk on, and a whole
/// number of steps away.
fn next_cut(at: i64, hi: i64, g: &Grid) -> i64 {
    let (at_wide, step, extent) = (i128::from(at), i128::from(g.step), i128::from(g.extent));
    let into_chunk = (at_wide - i128::from(g.origin)).rem_euclid(extent);
    let to_edge = extent - into_chunk;
    let reach = step.saturating_mul(i128::from(g.fit.max(1)));
    let more = (reach - to_edge)
        .max(0)
        .div_euclid(extent)
        .saturating_mul(extent);
    // Up to the next coordinate that the step takes.
    let ahead = to_edge + more;
    let steps = (ahead + step - 1).div_euclid(step).max(1);
    let next = at_wide.saturating_add(steps.saturating_mul(step));
    i64::try_from(next).unwrap_or(i64::MAX).min(hi)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(
        bounds: &[(i64, i64)],
        step: &[u64],
        chunk: &[u64],
        budget: u64,
    ) -> Vec<Vec<(i64, i64)>> {
        let origin = vec![1; bounds.len()];
        slabs(Cut {
            bounds,
            step,
            chunk_shape: chunk,
            origin: &origin,
            item: 1,
            budget,
        })
        .collect()
    }

    // Cutting the largest domain took all memory, since every piece was made first.
    #[test]
    fn a_domain_of_any_size_is_cut_as_it_is_asked_for() {
        let most = (1 << 62) - 2;
        let bounds = [(-most, most), (0, 3)];
        let mut pieces = slabs(Cut {
            bounds: &bounds,
            step: &[1, 1],
            chunk_shape: &[1000, 3],
            origin: &[0, 0],
            item: 8,
            budget: 1 << 20,
        });
        assert_eq!(pieces.elements(), u64::MAX);
        assert_eq!(pieces.next().unwrap()[0].0, -most);
        assert!(pieces.take(1000).all(|p| p[0].0 < p[0].1));
    }

    #[test]
    fn pieces_end_on_chunk_edges_and_make_up_the_box() {
        let pieces = cut(&[(-5, 20), (0, 10)], &[1, 1], &[4, 10], 90);
        assert_eq!(
            pieces.iter().map(|p| p[0]).collect::<Vec<_>>(),
            [(-5, 1), (1, 9), (9, 17), (17, 20)]
        );
        assert!(pieces.iter().all(|p| p[1] == (0, 10)));
    }

    #[test]
    fn what_fits_is_one_piece_and_nothing_is_none() {
        assert_eq!(cut(&[(0, 3)], &[1], &[1], 100).len(), 1);
        assert_eq!(cut(&[], &[], &[], 100), [Vec::<(i64, i64)>::new()]);
        assert!(cut(&[(0, 3), (2, 2)], &[1, 1], &[1, 1], 100).is_empty());
    }

    #[test]
    fn every_piece_starts_on_a_step_and_counts_add_up() {
        for step in 1..7 {
            for budget in [1, 3, 10, 50] {
                let bounds = [(-7, 31), (3, 12)];
                let pieces = cut(&bounds, &[step, 2], &[5, 4], budget);
                let mut seen = Vec::new();
                for p in &pieces {
                    for x in (p[0].0..p[0].1).step_by(usize::try_from(step).unwrap()) {
                        for y in (p[1].0..p[1].1).step_by(2) {
                            seen.push((x, y));
                        }
                    }
                }
                let mut want = Vec::new();
                for x in (-7..31).step_by(usize::try_from(step).unwrap()) {
                    for y in (3..12).step_by(2) {
                        want.push((x, y));
                    }
                }
                assert_eq!(seen, want, "step {step}, budget {budget}");
            }
        }
    }
}
