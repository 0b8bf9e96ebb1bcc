//! Strided n-dimensional copies between a chunk and a caller's block.
//!
//! Holds [`AxisMap`] (which elements of one axis go where) and [`Copier`] (all axes, run by run). Works on element
//! indexes, so that fixed-size and variable-length elements share it. Must not know coordinates or types.
//!
//! Invariant: a `Copier` is built for buffers of stated shapes; every index it yields lies inside them.

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// Where the elements of one axis come from and go to, as positions on that axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AxisMap {
    /// `len` elements: `src + i*src_step` goes to `dst + i*dst_step`.
    Run {
        src: usize,
        dst: usize,
        len: usize,
        src_step: usize,
        dst_step: usize,
    },
    /// Listed pairs `(src, dst)`.
    Pairs(Vec<(usize, usize)>),
}

impl AxisMap {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Run { len, .. } => *len,
            Self::Pairs(pairs) => pairs.len(),
        }
    }

    /// Smallest and largest source position, `None` when nothing is copied.
    pub(crate) fn src_bounds(&self) -> Option<(usize, usize)> {
        match self {
            Self::Run { len: 0, .. } => None,
            Self::Run { src, len, .. } => Some((*src, self.at(len.wrapping_sub(1)).0)),
            Self::Pairs(pairs) => Some((
                pairs.iter().map(|p| p.0).min()?,
                pairs.iter().map(|p| p.0).max()?,
            )),
        }
    }

    /// The same map the other way round.
    #[must_use]
    pub(crate) fn reversed(&self) -> Self {
        match self {
            Self::Run {
                src,
                dst,
                len,
                src_step,
                dst_step,
            } => Self::Run {
                src: *dst,
                dst: *src,
                len: *len,
                src_step: *dst_step,
                dst_step: *src_step,
            },
            Self::Pairs(pairs) => Self::Pairs(pairs.iter().map(|&(s, d)| (d, s)).collect()),
        }
    }

    fn at(&self, i: usize) -> (usize, usize) {
        match self {
            Self::Run {
                src,
                dst,
                src_step,
                dst_step,
                ..
            } => (
                src.wrapping_add(i.wrapping_mul(*src_step)),
                dst.wrapping_add(i.wrapping_mul(*dst_step)),
            ),
            Self::Pairs(pairs) => pairs.get(i).copied().unwrap_or((0, 0)),
        }
    }

    /// Largest source and destination position, `None` when nothing is copied.
    fn last(&self) -> Option<(usize, usize)> {
        match self {
            Self::Run { len: 0, .. } => None,
            Self::Run { len, .. } => Some(self.at(len.wrapping_sub(1))),
            Self::Pairs(pairs) => Some((
                pairs.iter().map(|p| p.0).max()?,
                pairs.iter().map(|p| p.1).max()?,
            )),
        }
    }
}

/// Elements per step of each axis of a C-order block, and the number of elements in all.
pub(crate) fn c_strides(shape: &[usize]) -> Option<(SmallVec<[usize; 8]>, usize)> {
    let mut strides: SmallVec<[usize; 8]> = SmallVec::from_elem(0, shape.len());
    let mut n = 1_usize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = n;
        n = n.checked_mul(extent)?;
    }
    Some((strides, n))
}

/// A run of the innermost axis: `len` elements from `src` (step `src_step`) to `dst` (step `dst_step`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) len: usize,
    pub(crate) src_step: usize,
    pub(crate) dst_step: usize,
}

/// A copy between two C-order blocks, axis by axis.
#[derive(Debug)]
pub(crate) struct Copier {
    axes: SmallVec<[Axis; 8]>,
    /// Added to every source position, wrapping.
    shift: usize,
}

impl Copier {
    /// A copy of `maps` from a block of `src_shape` into one of `dst_shape`; the ranks must agree.
    ///
    /// Neighbouring axes that are whole and contiguous on both sides are merged, so that a run is as long as it can be.
    pub(crate) fn new(
        maps: impl IntoIterator<Item = AxisMap>,
        src_shape: &[usize],
        dst_shape: &[usize],
    ) -> Result<Self> {
        let fault = || {
            Error::invalid("copy plan")
                .expected("positions inside both blocks")
                .found("a position outside")
        };
        let ((src_strides, _), (dst_strides, _)) = c_strides(src_shape)
            .zip(c_strides(dst_shape))
            .ok_or_else(fault)?;
        let mut axes: SmallVec<[Axis; 8]> = SmallVec::new();
        let extents = src_shape.iter().zip(dst_shape);
        for (map, ((&src_len, &dst_len), (&ss, &ds))) in maps
            .into_iter()
            .zip(extents.zip(src_strides.iter().zip(&dst_strides)))
        {
            if map
                .last()
                .is_some_and(|(s, d)| s >= src_len || d >= dst_len)
            {
                return Err(fault());
            }
            let merged = axes
                .last_mut()
                .is_some_and(|outer| merge(outer, &map, src_len, dst_len, ss, ds));
            if !merged {
                axes.push((map, ss, ds));
            }
        }
        Ok(Self { axes, shift: 0 })
    }

    /// Takes the source for a part of the block the maps were made for: position `p` is at `p + by` (wrapping) there.
    pub(crate) fn shift(&mut self, by: usize) {
        self.shift = by;
    }

    /// Number of elements copied.
    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|a| a.0.len()).product()
    }

    /// The only run, where all elements lie side by side on both sides.
    pub(crate) fn single(&self) -> Option<Run> {
        let outer = self.axes.split_last().map_or(&[][..], |(_, outer)| outer);
        if outer.iter().any(|a| a.0.len() != 1) {
            return None;
        }
        let mut only = None;
        self.for_each(|run| only = Some(run));
        only.filter(|run| {
            run.len == self.len() && (run.len <= 1 || (run.src_step == 1 && run.dst_step == 1))
        })
    }

    /// Calls `f` for every run, in the order of the destination's axes.
    pub(crate) fn for_each(&self, mut f: impl FnMut(Run)) {
        if let Some((inner, outer)) = self.axes() {
            for (src, dst) in self.rows(outer) {
                runs(inner, src, dst, &mut f);
            }
        }
    }

    /// The innermost axis and those outside it; `None` where nothing is copied.
    fn axes(&self) -> Option<(&Axis, &[Axis])> {
        if self.axes.iter().any(|a| a.0.len() == 0) {
            return None;
        }
        Some(self.axes.split_last().unwrap_or((&ONE, &[])))
    }

    fn rows<'c>(&self, outer: &'c [Axis]) -> Rows<'c> {
        let mut rows = Rows {
            next_to_innermost: &ONE,
            outer,
            at: SmallVec::new(),
            shift: self.shift,
            base: (0, 0),
            next: 0,
        };
        if let Some((rows_axis, outer)) = outer.split_last() {
            (rows.next_to_innermost, rows.outer) = (rows_axis, outer);
        }
        rows.at.resize(rows.outer.len(), 0);
        rows.find_base();
        rows
    }

    /// Copies elements of `item` bytes each. Blocks shorter than the shapes this was built for leave the rest untouched.
    pub(crate) fn copy_bytes(&self, item: usize, src: &[u8], dst: &mut [u8]) {
        match item {
            1 => self.copy_items::<1>(src, dst),
            2 => self.copy_items::<2>(src, dst),
            4 => self.copy_items::<4>(src, dst),
            8 => self.copy_items::<8>(src, dst),
            16 => self.copy_items::<16>(src, dst),
            _ => self.for_each(|run| copy_run(item, run, src, dst)),
        }
    }

    fn copy_items<const N: usize>(&self, src: &[u8], dst: &mut [u8]) {
        let (src_items, dst_items) = (src.as_chunks::<N>().0, dst.as_chunks_mut::<N>().0);
        self.for_each(|run| {
            let (Some(s), Some(d)) = (src_items.get(run.src..), dst_items.get_mut(run.dst..))
            else {
                return;
            };
            if run.src_step == 1 && run.dst_step == 1 {
                if let (Some(s), Some(d)) = (s.get(..run.len), d.get_mut(..run.len)) {
                    d.copy_from_slice(s);
                }
                return;
            }
            let from = s.iter().step_by(run.src_step.max(1)).take(run.len);
            for (d, s) in d.iter_mut().step_by(run.dst_step.max(1)).zip(from) {
                *d = *s;
            }
        });
    }
}

/// One axis: its map, and what a step is on either side.
type Axis = (AxisMap, usize, usize);

/// An axis of one position, which is all there is of none.
const ONE: Axis = (
    AxisMap::Run {
        src: 0,
        dst: 0,
        len: 1,
        src_step: 1,
        dst_step: 1,
    },
    1,
    1,
);

/// Positions on all axes but the innermost.
struct Rows<'c> {
    /// Rows side by side along this axis share all positions but their own.
    next_to_innermost: &'c Axis,
    outer: &'c [Axis],
    at: SmallVec<[usize; 8]>,
    shift: usize,
    base: (usize, usize),
    next: usize,
}

impl Rows<'_> {
    fn find_base(&mut self) {
        let (mut src, mut dst) = (self.shift, 0_usize);
        for ((map, ss, ds), &i) in self.outer.iter().zip(&self.at) {
            let (s, d) = map.at(i);
            src = src.wrapping_add(s.wrapping_mul(*ss));
            dst = dst.wrapping_add(d.wrapping_mul(*ds));
        }
        self.base = (src, dst);
    }
}

impl Iterator for Rows<'_> {
    type Item = (usize, usize);

    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        let (map, ss, ds) = self.next_to_innermost;
        if self.next == map.len() {
            if !advance(&mut self.at, self.outer) {
                return None;
            }
            self.find_base();
            self.next = 0;
        }
        let (s, d) = map.at(self.next);
        self.next = self.next.wrapping_add(1);
        Some((
            self.base.0.wrapping_add(s.wrapping_mul(*ss)),
            self.base.1.wrapping_add(d.wrapping_mul(*ds)),
        ))
    }
}

/// The runs of the innermost axis where the axes outside it have come to `src` and `dst`.
#[inline]
fn runs((inner, ss, ds): &Axis, src: usize, dst: usize, f: &mut impl FnMut(Run)) {
    match inner {
        AxisMap::Run {
            src: s,
            dst: d,
            len,
            src_step,
            dst_step,
        } => f(Run {
            src: src.wrapping_add(s.wrapping_mul(*ss)),
            dst: dst.wrapping_add(d.wrapping_mul(*ds)),
            len: *len,
            src_step: src_step.wrapping_mul(*ss),
            dst_step: dst_step.wrapping_mul(*ds),
        }),
        AxisMap::Pairs(pairs) => {
            for &(s, d) in pairs {
                f(Run {
                    src: src.wrapping_add(s.wrapping_mul(*ss)),
                    dst: dst.wrapping_add(d.wrapping_mul(*ds)),
                    len: 1,
                    src_step: 1,
                    dst_step: 1,
                });
            }
        }
    }
}

fn copy_run(item: usize, run: Run, src: &[u8], dst: &mut [u8]) {
    let place = |at: usize, len: usize| {
        let start = at.checked_mul(item)?;
        Some(start..start.checked_add(len.checked_mul(item)?)?)
    };
    let mut put = |s: usize, d: usize, len: usize| {
        let from = place(s, len).and_then(|r| src.get(r));
        let to = place(d, len).and_then(|r| dst.get_mut(r));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
    };
    if run.src_step == 1 && run.dst_step == 1 {
        put(run.src, run.dst, run.len);
        return;
    }
    let (mut s, mut d) = (run.src, run.dst);
    for _ in 0..run.len {
        put(s, d, 1);
        s = s.wrapping_add(run.src_step);
        d = d.wrapping_add(run.dst_step);
    }
}

/// Folds `map` into the axis outside it when both sides are whole there; tells whether it did.
fn merge(
    outer: &mut Axis,
    map: &AxisMap,
    src_len: usize,
    dst_len: usize,
    ss: usize,
    ds: usize,
) -> bool {
    let AxisMap::Run {
        src: 0,
        dst: 0,
        len,
        src_step: 1,
        dst_step: 1,
    } = *map
    else {
        return false;
    };
    if len != src_len || len != dst_len {
        return false;
    }
    let (
        AxisMap::Run {
            src,
            dst,
            len: n,
            src_step: 1,
            dst_step: 1,
        },
        outer_ss,
        outer_ds,
    ) = outer
    else {
        return false;
    };
    // The outer axis now counts inner elements: its positions scale by the inner extent.
    *src = src.wrapping_mul(len);
    *dst = dst.wrapping_mul(len);
    *n = n.wrapping_mul(len);
    (*outer_ss, *outer_ds) = (ss, ds);
    true
}

fn advance(at: &mut [usize], axes: &[Axis]) -> bool {
    for (i, axis) in at.iter_mut().zip(axes).rev() {
        *i = i.wrapping_add(1);
        if *i < axis.0.len() {
            return true;
        }
        *i = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(src: usize, dst: usize, len: usize) -> AxisMap {
        AxisMap::Run {
            src,
            dst,
            len,
            src_step: 1,
            dst_step: 1,
        }
    }

    #[test]
    fn a_box_is_copied_row_by_row() {
        let src: Vec<u8> = (0..20).collect();
        let mut dst = vec![99; 6];
        Copier::new([run(1, 0, 2), run(2, 0, 3)], &[4, 5], &[2, 3])
            .unwrap()
            .copy_bytes(1, &src, &mut dst);
        assert_eq!(dst, [7, 8, 9, 12, 13, 14]);
    }

    #[test]
    fn whole_inner_axes_become_one_run() {
        let copier = Copier::new(
            [run(1, 0, 2), run(0, 0, 5), run(0, 0, 3)],
            &[4, 5, 3],
            &[2, 5, 3],
        )
        .unwrap();
        let mut runs = Vec::new();
        copier.for_each(|r| runs.push(r));
        assert_eq!(
            runs,
            [Run {
                src: 15,
                dst: 0,
                len: 30,
                src_step: 1,
                dst_step: 1
            }]
        );
        assert_eq!(copier.len(), 30);
    }

    #[test]
    fn steps_pairs_and_every_item_size_agree_with_a_plain_loop() {
        for item in [1, 2, 3, 4, 8, 16] {
            let src: Vec<u8> = (0..6 * 7 * item)
                .map(|x| u8::try_from(x % 251).unwrap())
                .collect();
            let mut dst = vec![0; 3 * 4 * item];
            let rows = AxisMap::Pairs(vec![(5, 0), (0, 2), (0, 1)]);
            let cols = AxisMap::Run {
                src: 0,
                dst: 0,
                len: 4,
                src_step: 2,
                dst_step: 1,
            };
            Copier::new([rows, cols], &[6, 7], &[3, 4])
                .unwrap()
                .copy_bytes(item, &src, &mut dst);
            for (r, from) in [(0, 5), (1, 0), (2, 0)] {
                for c in 0..4 {
                    let (s, d) = ((from * 7 + 2 * c) * item, (r * 4 + c) * item);
                    assert_eq!(dst[d..d + item], src[s..s + item]);
                }
            }
        }
    }

    #[test]
    fn rank_zero_copies_one_element_and_an_empty_axis_none() {
        let mut dst = [0; 4];
        Copier::new([], &[], &[])
            .unwrap()
            .copy_bytes(4, &[1, 2, 3, 4], &mut dst);
        assert_eq!(dst, [1, 2, 3, 4]);
        Copier::new([run(0, 0, 0), run(0, 0, 2)], &[0, 2], &[3, 2])
            .unwrap()
            .copy_bytes(1, &[], &mut dst);
        assert_eq!(dst, [1, 2, 3, 4]);
    }

    #[test]
    fn a_position_outside_a_block_is_refused_when_the_plan_is_made() {
        assert!(Copier::new([run(2, 0, 3)], &[4], &[3]).is_err());
        assert!(Copier::new([run(0, 1, 3)], &[4], &[3]).is_err());
    }
}
