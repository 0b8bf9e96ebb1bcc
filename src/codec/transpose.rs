//! Codec `transpose`: array to array.
//!
//! Produces: the chunk with its axes permuted; axis `i` of the result is axis `order[i]` of the input (Zarr v3 codec
//! "transpose"). Elements are moved, never changed.
//! Parameters: `order`, a permutation of the axes. Output: as long as the input. Empty input gives empty output.

use super::config::Config;
use crate::error::Result;
use crate::format::json::Json;

/// The parsed codec for one chunk shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transpose {
    /// Walk that encodes: per axis of the result, its extent and its stride in the input, in elements.
    forth: Vec<(usize, usize)>,
    /// Walk that decodes.
    back: Vec<(usize, usize)>,
    order: Vec<usize>,
}

impl Transpose {
    /// The codec, and the shape of what it produces.
    pub(crate) fn parse(mut config: Config<'_>, shape: &[usize]) -> Result<(Self, Vec<usize>)> {
        let order = match config.list("order")? {
            Some(list) => permutation(list, shape.len()),
            None => None,
        };
        let Some(order) = order else {
            return Err(config.fault().expected(format_args!(
                "`order`, a permutation of the axes 0..{}",
                shape.len()
            )));
        };
        config.finish()?;
        let permuted: Vec<usize> = order
            .iter()
            .filter_map(|&a| shape.get(a).copied())
            .collect();
        let mut inverse = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            if let Some(slot) = inverse.get_mut(from) {
                *slot = to;
            }
        }
        let this = Self {
            forth: walk(shape, &order),
            back: walk(&permuted, &inverse),
            order,
        };
        Ok((this, permuted))
    }

    /// The shape of a block whose permuted shape is `after`.
    pub(crate) fn shape_before(&self, after: &[usize]) -> Vec<usize> {
        let mut before = after.to_vec();
        for (axis, &extent) in self.order.iter().zip(after) {
            if let Some(slot) = before.get_mut(*axis) {
                *slot = extent;
            }
        }
        before
    }

    pub(crate) fn encode(&self, src: &[u8], item_len: usize, dst: &mut [u8]) {
        gather(src, &self.forth, item_len, dst);
    }

    pub(crate) fn decode(&self, src: &[u8], item_len: usize, dst: &mut [u8]) {
        gather(src, &self.back, item_len, dst);
    }
}

fn permutation(list: &[Json], rank: usize) -> Option<Vec<usize>> {
    let mut seen = vec![false; rank];
    let order = list.iter().map(|axis| match axis {
        Json::I64(axis) => {
            let axis = usize::try_from(*axis).ok()?;
            let seen = seen.get_mut(axis).filter(|seen| !**seen)?;
            *seen = true;
            Some(axis)
        }
        _ => None,
    });
    order
        .collect::<Option<Vec<_>>>()
        .filter(|order| order.len() == rank)
}

/// Extents and input strides in the order of the result's axes; axes that stay neighbours are merged, those of
/// extent 1 dropped.
fn walk(shape: &[usize], order: &[usize]) -> Vec<(usize, usize)> {
    let mut strides = vec![1usize; shape.len()];
    let mut stride = 1usize;
    for (slot, extent) in strides.iter_mut().zip(shape).rev() {
        *slot = stride;
        stride = stride.saturating_mul(*extent);
    }
    let mut walk: Vec<(usize, usize)> = Vec::with_capacity(order.len());
    for &axis in order {
        let (Some(&extent), Some(&stride)) = (shape.get(axis), strides.get(axis)) else {
            continue;
        };
        match walk.last_mut() {
            _ if extent == 1 => {}
            Some((outer, outer_stride)) if *outer_stride == stride.saturating_mul(extent) => {
                *outer = outer.saturating_mul(extent);
                *outer_stride = stride;
            }
            _ => walk.push((extent, stride)),
        }
    }
    walk
}

/// Fills `dst` in its own order from the strided places of `src`.
fn gather(src: &[u8], walk: &[(usize, usize)], item_len: usize, dst: &mut [u8]) {
    match item_len {
        1 => gather_items::<1>(src, walk, dst),
        2 => gather_items::<2>(src, walk, dst),
        4 => gather_items::<4>(src, walk, dst),
        8 => gather_items::<8>(src, walk, dst),
        16 => gather_items::<16>(src, walk, dst),
        _ => gather_any(src, walk, item_len, dst),
    }
}

fn gather_items<const N: usize>(src: &[u8], walk: &[(usize, usize)], dst: &mut [u8]) {
    let (src, dst) = (src.as_chunks::<N>().0, dst.as_chunks_mut::<N>().0);
    let Some((&(inner, stride), outer)) = walk.split_last() else {
        dst.copy_from_slice(src);
        return;
    };
    if inner == 0 {
        return;
    }
    let mut rows = Odometer::new(outer);
    for row in dst.chunks_exact_mut(inner) {
        let from = src.get(rows.next()..).unwrap_or_default();
        if stride == 1 {
            row.copy_from_slice(from.get(..inner).unwrap_or_default());
        } else {
            for (to, item) in row.iter_mut().zip(from.iter().step_by(stride.max(1))) {
                *to = *item;
            }
        }
    }
}

fn gather_any(src: &[u8], walk: &[(usize, usize)], item_len: usize, dst: &mut [u8]) {
    let mut items = Odometer::new(walk);
    for item in dst.chunks_exact_mut(item_len.max(1)) {
        let at = items.next().saturating_mul(item_len);
        let from = src.get(at..).and_then(|rest| rest.get(..item_len));
        item.copy_from_slice(from.unwrap_or_default());
    }
}

/// Counts through the extents of a walk, last axis fastest, and gives the position in the input.
struct Odometer<'a> {
    walk: &'a [(usize, usize)],
    index: Vec<usize>,
    at: usize,
}

impl<'a> Odometer<'a> {
    fn new(walk: &'a [(usize, usize)]) -> Self {
        Self {
            walk,
            index: vec![0; walk.len()],
            at: 0,
        }
    }

    /// The present position; then moves on.
    fn next(&mut self) -> usize {
        let here = self.at;
        for (index, (extent, stride)) in self.index.iter_mut().zip(self.walk).rev() {
            *index = index.saturating_add(1);
            self.at = self.at.saturating_add(*stride);
            if *index < *extent {
                break;
            }
            self.at = self.at.saturating_sub(extent.saturating_mul(*stride));
            *index = 0;
        }
        here
    }
}
