//! Elements that lie in a file at fixed distances, so that any box of them can be read.
//!
//! Holds [`Flat`]. Must not know any format: a reader says where the first element is and how far apart neighbours are.

use std::fs::File;
use std::io;

use orthant::Elements;

use super::{Boxes, Refusal};

/// Where bytes come from.
#[derive(Debug)]
pub(crate) enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Bytes {
    /// Fills `out` from `at` on.
    pub(crate) fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file) => read_exact_at(file, at, out),
            Self::Memory(bytes) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let end = start.saturating_add(out.len());
                let part = bytes.get(start..end);
                out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, at: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut at: u64, mut out: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt as _;
    while !out.is_empty() {
        match file.seek_read(out, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                at = at.saturating_add(n as u64);
                out = out.get_mut(n..).unwrap_or_default();
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Elements at fixed distances.
pub(crate) struct Flat {
    bytes: Bytes,
    offset: u64,
    /// Bytes of one element in the file.
    item: usize,
    shape: Vec<u64>,
    /// Bytes from one element to its neighbour, per axis.
    strides: Vec<u64>,
    decode: Decode,
}

/// What makes elements of their bytes.
pub(crate) type Decode = Box<dyn Fn(Vec<u8>) -> Elements + Send + Sync>;

impl std::fmt::Debug for Flat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flat")
            .field("offset", &self.offset)
            .field("item", &self.item)
            .field("shape", &self.shape)
            .field("strides", &self.strides)
            .finish_non_exhaustive()
    }
}

/// Which axis has its neighbours side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    LastFastest,
    FirstFastest,
}

impl Flat {
    /// Elements without gaps from `offset` on; none where they cannot be counted.
    pub(crate) fn packed(
        bytes: Bytes,
        offset: u64,
        item: usize,
        shape: &[u64],
        order: Order,
        decode: Decode,
    ) -> Option<Self> {
        let mut strides = vec![0; shape.len()];
        let mut next = item as u64;
        let mut set = |axis: usize| -> Option<()> {
            *strides.get_mut(axis)? = next;
            next = next.checked_mul(*shape.get(axis)?)?;
            Some(())
        };
        match order {
            Order::LastFastest => (0..shape.len()).rev().try_for_each(&mut set)?,
            Order::FirstFastest => (0..shape.len()).try_for_each(&mut set)?,
        }
        let flat = Self {
            bytes,
            offset,
            item,
            shape: shape.to_vec(),
            strides,
            decode,
        };
        flat.end().map(|_| flat)
    }

    /// The same, but for the distance from one element to its neighbour on an axis.
    pub(crate) fn with_stride(mut self, axis: usize, stride: u64) -> Option<Self> {
        *self.strides.get_mut(axis)? = stride;
        self.end().map(|_| self)
    }

    /// The first byte behind the last element.
    pub(crate) fn end(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(self.offset);
        }
        let mut axes = self.shape.iter().zip(&self.strides);
        let last = axes.try_fold(self.offset, |at, (n, stride)| {
            at.checked_add(n.saturating_sub(1).checked_mul(*stride)?)
        })?;
        last.checked_add(self.item as u64)
    }

    /// The axes, the one with the longest stride first.
    fn axes(&self) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..self.shape.len()).collect();
        axes.sort_by_key(|a| std::cmp::Reverse(self.strides.get(*a).copied().unwrap_or(0)));
        axes
    }

    fn start_of(&self, lower: &[u64]) -> Option<u64> {
        let mut axes = lower.iter().zip(&self.strides);
        axes.try_fold(self.offset, |at, (x, stride)| {
            at.checked_add(x.checked_mul(*stride)?)
        })
    }
}

impl Boxes for Flat {
    fn read(&self, lower: &[u64], shape: &[u64]) -> Result<Elements, Refusal> {
        let too_many = || "more elements than fit in memory".to_owned();
        let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
        let len = count.and_then(|n| usize::try_from(n).ok()?.checked_mul(self.item));
        let len = len.ok_or_else(too_many)?;
        let mut out = vec![0; len];
        if len > 0 {
            let plan = Plan::new(self, shape).ok_or_else(too_many)?;
            let start = self.start_of(lower).ok_or_else(too_many)?;
            plan.run(&self.bytes, start, self.item, &mut out)
                .map_err(|e| match e.kind() {
                    io::ErrorKind::UnexpectedEof => "it is cut: elements lie past its end".into(),
                    _ => format!("it cannot be read: {e}"),
                })?;
        }
        Ok((self.decode)(out))
    }

    fn first_axis_fastest(&self) -> bool {
        self.axes().first().is_some_and(|a| *a != 0)
    }

    fn bytes(&self) -> u64 {
        let count = self.shape.iter().fold(1_u64, |n, e| n.saturating_mul(*e));
        count.saturating_mul(self.item as u64)
    }
}

/// Elements of a box in C order, in the low corner of a larger one that is zero elsewhere; none where that is more than
/// memory holds.
pub(crate) fn padded(inner: &[u8], item: usize, shape: &[u64], whole: &[u64]) -> Option<Vec<u8>> {
    if shape == whole {
        return Some(inner.to_vec());
    }
    let count = whole.iter().try_fold(1_u64, |n, e| n.checked_mul(*e))?;
    let len = usize::try_from(count).ok()?.checked_mul(item)?;
    let mut out = Vec::new();
    out.try_reserve_exact(len).ok()?;
    out.resize(len, 0);
    let row = usize::try_from(*shape.last()?).ok()?.checked_mul(item)?;
    let mut at = vec![0_u64; shape.len()];
    for part in inner.chunks_exact(row.max(1)) {
        let place = at
            .iter()
            .zip(whole)
            .try_fold(0_u64, |flat, (i, n)| flat.checked_mul(*n)?.checked_add(*i))?;
        let start = usize::try_from(place).ok()?.checked_mul(item)?;
        let end = start.checked_add(row)?;
        out.get_mut(start..end)?.copy_from_slice(part);
        // The next row, the last axis being the row itself.
        for (i, n) in at.iter_mut().zip(shape).rev().skip(1) {
            *i = i.checked_add(1)?;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
    Some(out)
}

/// One axis of a box that is read: how many steps, and how far each leads in the file and in the output.
struct Axis {
    count: u64,
    from: u64,
    to: usize,
}

/// A box as loops around runs of bytes.
struct Plan {
    /// Outermost first.
    loops: Vec<Axis>,
    /// Bytes of the file that follow each other, elements of them apart by `to` in the output.
    run: Axis,
}

impl Plan {
    fn new(flat: &Flat, shape: &[u64]) -> Option<Self> {
        let mut to = vec![0; shape.len()];
        let mut next = flat.item;
        for axis in (0..shape.len()).rev() {
            *to.get_mut(axis)? = next;
            next = next.checked_mul(usize::try_from(*shape.get(axis)?).ok()?)?;
        }
        let mut loops = Vec::new();
        for axis in flat.axes() {
            loops.push(Axis {
                count: *shape.get(axis)?,
                from: *flat.strides.get(axis)?,
                to: *to.get(axis)?,
            });
        }
        let item = flat.item as u64;
        let mut run = match loops.last() {
            Some(last) if last.from == item => loops.pop()?,
            _ => Axis {
                count: 1,
                from: item,
                to: flat.item,
            },
        };
        // Axes whose elements follow each other in both places are one.
        while let Some(outer) = loops.last()
            && outer.from == run.count.checked_mul(item)?
            && run.to == flat.item
            && outer.to == usize::try_from(outer.from).ok()?
        {
            run.count = run.count.checked_mul(outer.count)?;
            loops.pop();
        }
        Some(Self { loops, run })
    }

    fn run(&self, bytes: &Bytes, start: u64, item: usize, out: &mut [u8]) -> io::Result<()> {
        let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let count = usize::try_from(self.run.count).unwrap_or(usize::MAX);
        let len = count.saturating_mul(item);
        let straight = self.run.to == item;
        // Where runs have to be taken apart, neighbours in the output are had from as many runs at once.
        let beside = self.beside(item, len).filter(|_| !straight);
        let mut scratch = Vec::new();
        let mut at = vec![0_u64; self.loops.len()];
        loop {
            let (from, to) = self.place(start, &at).ok_or_else(end)?;
            if straight {
                let part = out.get_mut(to..to.saturating_add(len)).ok_or_else(end)?;
                bytes.read_at(from, part)?;
            } else {
                let left = beside.and_then(|b| b.left(&self.loops, &at));
                let (axis, runs) = left.unwrap_or((self.loops.len(), 1));
                scratch.resize(len.saturating_mul(runs), 0);
                let step = self.loops.get(axis).map_or(0, |a| a.from);
                for (i, part) in (0_u64..).zip(scratch.chunks_exact_mut(len.max(1))) {
                    let ahead = i.checked_mul(step).and_then(|n| n.checked_add(from));
                    bytes.read_at(ahead.ok_or_else(end)?, part)?;
                }
                let targets = out.get_mut(to..).unwrap_or_default();
                scatter(&scratch, (len, item), self.run.to, targets);
                if let Some(i) = at.get_mut(axis) {
                    // The step below counts the last of them.
                    *i = i.saturating_add(runs as u64).saturating_sub(1);
                }
            }
            let next = match beside {
                Some(b) => advance_by(&mut at, &self.loops, b.axis),
                None => advance(&mut at, &self.loops),
            };
            if !next {
                return Ok(());
            }
        }
    }

    /// Where a step of the loops begins, in the file and in the output.
    fn place(&self, start: u64, at: &[u64]) -> Option<(u64, usize)> {
        let mut axes = self.loops.iter().zip(at);
        axes.try_fold((start, 0_usize), |(from, to), (axis, i)| {
            let step = usize::try_from(*i).ok()?.checked_mul(axis.to)?;
            Some((
                from.checked_add(i.checked_mul(axis.from)?)?,
                to.checked_add(step)?,
            ))
        })
    }

    /// The loop whose steps are neighbours in the output, and how many of them are taken at once.
    fn beside(&self, item: usize, len: usize) -> Option<Beside> {
        let axis = self
            .loops
            .iter()
            .position(|a| a.to == item && a.count > 1)?;
        let most = BESIDE_LEN.checked_div(len.max(1)).unwrap_or(1);
        let lines = LINE.checked_div(item.max(1)).unwrap_or(1).max(2);
        Some(Beside {
            axis,
            runs: most.min(lines).max(1),
        })
    }
}

/// Bytes of runs that are held at once, at most.
const BESIDE_LEN: usize = 4 << 20;
/// Bytes of neighbours in the output that are worth writing together.
const LINE: usize = 256;

#[derive(Clone, Copy)]
struct Beside {
    axis: usize,
    runs: usize,
}

impl Beside {
    /// The loop, and how many of its steps are taken from here.
    fn left(self, loops: &[Axis], at: &[u64]) -> Option<(usize, usize)> {
        let done = *at.get(self.axis)?;
        let left = loops.get(self.axis)?.count.checked_sub(done)?;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        Some((self.axis, left.min(self.runs).max(1)))
    }
}

/// Lays runs of `len` bytes into `out`: elements of one run are `to` apart, those of the next lie behind them.
fn scatter(runs: &[u8], (len, item): (usize, usize), to: usize, out: &mut [u8]) {
    for (start, target) in (0..len).step_by(item.max(1)).zip(out.chunks_mut(to.max(1))) {
        let elements = runs.get(start..).unwrap_or_default().chunks(len.max(1));
        for (element, place) in elements.zip(target.chunks_exact_mut(item.max(1))) {
            if let Some(element) = element.get(..item) {
                place.copy_from_slice(element);
            }
        }
    }
}

/// As [`advance`], the loop `first` running fastest.
fn advance_by(at: &mut [u64], loops: &[Axis], first: usize) -> bool {
    if let (Some(i), Some(axis)) = (at.get_mut(first), loops.get(first)) {
        *i = i.saturating_add(1);
        if *i < axis.count {
            return true;
        }
        *i = 0;
    }
    let mut others = at.iter_mut().zip(loops).enumerate().rev();
    others.any(|(n, (i, axis))| {
        if n == first {
            return false;
        }
        *i = i.saturating_add(1);
        let more = *i < axis.count;
        if !more {
            *i = 0;
        }
        more
    })
}

/// The next step of nested loops; false after the last.
fn advance(at: &mut [u64], loops: &[Axis]) -> bool {
    for (i, axis) in at.iter_mut().zip(loops).rev() {
        *i = i.saturating_add(1);
        if *i < axis.count {
            return true;
        }
        *i = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(order: Order, strides: Option<Vec<u64>>) -> Flat {
        let bytes = Bytes::Memory((0..200).collect());
        let mut flat =
            Flat::packed(bytes, 3, 2, &[3, 4, 5], order, Box::new(Elements::Fixed)).unwrap();
        if let Some(strides) = strides {
            flat.strides = strides;
        }
        flat
    }

    /// The same by the definition: each element by itself.
    fn slow(flat: &Flat, lower: &[u64], shape: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                for k in 0..shape[2] {
                    let index = [i + lower[0], j + lower[1], k + lower[2]];
                    let at = flat.start_of(&index).unwrap();
                    let mut element = [0; 2];
                    flat.bytes.read_at(at, &mut element).unwrap();
                    out.extend(element);
                }
            }
        }
        out
    }

    #[test]
    fn every_box_is_what_its_elements_are_one_by_one() {
        for flat in [
            flat(Order::LastFastest, None),
            flat(Order::FirstFastest, None),
            flat(Order::LastFastest, Some(vec![50, 10, 2])),
            flat(Order::LastFastest, Some(vec![2, 50, 10])),
            flat(Order::LastFastest, Some(vec![60, 12, 3])),
        ] {
            for (lower, shape) in [
                ([0, 0, 0], [3, 4, 5]),
                ([1, 2, 3], [2, 2, 2]),
                ([0, 1, 0], [3, 2, 5]),
                ([2, 3, 4], [1, 1, 1]),
                ([0, 0, 0], [3, 0, 5]),
            ] {
                let Elements::Fixed(read) = flat.read(&lower, &shape).unwrap() else {
                    panic!()
                };
                assert_eq!(
                    read,
                    slow(&flat, &lower, &shape),
                    "{flat:?} {lower:?} {shape:?}"
                );
            }
        }
    }

    #[test]
    fn many_runs_beside_each_other_are_what_their_elements_are_one_by_one() {
        let bytes = Bytes::Memory((0..60_000_u32).flat_map(u32::to_le_bytes).collect());
        let shape = [7, 9, 300];
        let order = Order::FirstFastest;
        let flat = Flat::packed(bytes, 0, 2, &shape, order, Box::new(Elements::Fixed)).unwrap();
        for (lower, shape) in [
            ([0, 0, 0], shape),
            ([2, 3, 5], [5, 6, 290]),
            ([6, 0, 0], [1, 9, 300]),
        ] {
            let Elements::Fixed(read) = flat.read(&lower, &shape).unwrap() else {
                panic!()
            };
            assert_eq!(read, slow(&flat, &lower, &shape), "{lower:?} {shape:?}");
        }
    }

    #[test]
    fn a_padded_box_has_its_elements_in_the_low_corner() {
        let inner: Vec<u8> = (1..=8).collect();
        assert_eq!(
            padded(&inner, 2, &[2, 2], &[3, 3]).unwrap(),
            [1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(padded(&inner, 8, &[1], &[1]).unwrap(), inner);
        assert_eq!(padded(&inner, 2, &[1, 2, 2], &[2, 2, 3]).unwrap().len(), 24);
        assert!(padded(&inner, 2, &[2, 2], &[u64::MAX, 2]).is_none());
    }

    #[test]
    fn elements_past_the_end_are_an_error() {
        let bytes = Bytes::Memory(vec![0; 10]);
        let decode: Decode = Box::new(Elements::Fixed);
        let flat = Flat::packed(bytes, 0, 4, &[3], Order::LastFastest, decode).unwrap();
        assert_eq!(flat.end(), Some(12));
        assert!(flat.read(&[0], &[2]).is_ok());
        assert!(flat.read(&[0], &[3]).unwrap_err().contains("cut"));
        let huge = Flat::packed(
            Bytes::Memory(Vec::new()),
            0,
            8,
            &[u64::MAX, 2],
            Order::LastFastest,
            Box::new(Elements::Fixed),
        );
        assert!(huge.is_none());
    }
}
