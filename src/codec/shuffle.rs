//! Codec `numcodecs.shuffle`: bytes to bytes, filter.
//!
//! Produces: the first byte of every element, then the second of every element, and so on; a tail shorter than one
//! element is copied unchanged behind them. The same bytes as HDF5's shuffle filter and numcodecs' `Shuffle`.
//! Parameters: `elementsize`, by default the array's item size. Output: as long as the input. Empty input gives empty
//! output.

use super::config::Config;
use super::lanes::{deinterleave, interleave};
use super::output::Output;
use crate::error::Result;

const NAME: &str = "numcodecs.shuffle";

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shuffle {
    /// Bytes of an element, at least 1.
    element_len: usize,
}

impl Shuffle {
    pub(crate) fn parse(mut config: Config<'_>, item_len: Option<usize>) -> Result<Self> {
        let given = config.int("elementsize", 1..=i64::from(i32::MAX))?;
        let element_len = given.and_then(|n| usize::try_from(n).ok()).or(item_len);
        let Some(element_len @ 1..) = element_len else {
            return Err(config.fault().expected("`elementsize`").found("none"));
        };
        config.finish()?;
        Ok(Self { element_len })
    }

    /// Bytes of an element.
    pub(crate) fn element_len(&self) -> usize {
        self.element_len
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) {
        // No `clear`: every byte is overwritten, so what is there already need not be zeroed.
        out.resize(src.len(), 0);
        shuffle(src, self.element_len, out);
    }

    pub(crate) fn decode(&self, src: &[u8], mut output: Output<'_>) -> Result<()> {
        unshuffle(src, self.element_len, output.exactly(NAME, src.len())?);
        Ok(())
    }
}

/// Elements that the general path takes at a time, so that what it reads again is still in the first cache.
const BLOCK_ITEMS: usize = 512;

/// Gathers the bytes of equal significance; `dst` is as long as `src`.
pub(crate) fn shuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "a shuffle keeps the length");
    let count = src.len().checked_div(element_len).unwrap_or(0);
    if element_len <= 1 || count == 0 {
        dst.copy_from_slice(src);
        return;
    }
    let (whole, tail) = src.split_at(count.saturating_mul(element_len));
    let (planes, dst_tail) = dst.split_at_mut(whole.len());
    dst_tail.copy_from_slice(tail);
    let done = match element_len {
        2 => split_blocks::<2>(whole, planes),
        4 => split_blocks::<4>(whole, planes),
        8 => split_blocks::<8>(whole, planes),
        16 => split_blocks::<16>(whole, planes),
        _ => 0,
    };
    for start in (done..count).step_by(BLOCK_ITEMS) {
        let items = whole
            .get(start.saturating_mul(element_len)..)
            .unwrap_or_default();
        for (at, plane) in planes.chunks_exact_mut(count).enumerate() {
            let to = plane.iter_mut().skip(start).take(BLOCK_ITEMS);
            let from = items
                .get(at..)
                .unwrap_or_default()
                .iter()
                .step_by(element_len);
            for (to, from) in to.zip(from) {
                *to = *from;
            }
        }
    }
}

/// Puts the bytes of equal significance back into their elements; `dst` is as long as `src`.
pub(crate) fn unshuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "a shuffle keeps the length");
    let count = src.len().checked_div(element_len).unwrap_or(0);
    if element_len <= 1 || count == 0 {
        dst.copy_from_slice(src);
        return;
    }
    let (planes, tail) = src.split_at(count.saturating_mul(element_len));
    let (whole, dst_tail) = dst.split_at_mut(planes.len());
    dst_tail.copy_from_slice(tail);
    unshuffle_run(planes, element_len, 0, whole);
}

/// Puts together the elements from number `start` on, as many as `dst` holds, out of whole planes.
pub(crate) fn unshuffle_run(planes: &[u8], element_len: usize, start: usize, dst: &mut [u8]) {
    match element_len {
        2 => join(Columns::<2>::of(planes), start, dst),
        4 => join(Columns::<4>::of(planes), start, dst),
        8 => join(Columns::<8>::of(planes), start, dst),
        16 => join(Columns::<16>::of(planes), start, dst),
        _ => join_any(planes, element_len, start, dst),
    }
}

/// The planes of elements of `P` bytes, found once for many runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a, const P: usize>([&'a [u8]; P]);

impl<'a, const P: usize> Columns<'a, P> {
    pub(crate) fn of(planes: &'a [u8]) -> Self {
        let count = planes.len().checked_div(P).unwrap_or(0);
        let mut planes = planes.chunks_exact(count.max(1));
        Self(std::array::from_fn(|_| planes.next().unwrap_or_default()))
    }

    /// Puts together the elements from number `start` on, as many as `dst` holds; those that are not there stay as they
    /// were.
    #[inline]
    pub(crate) fn join(&self, start: usize, dst: &mut [[u8; P]]) {
        let run = start..start.saturating_add(dst.len());
        let columns = self
            .0
            .map(|plane| plane.get(run.clone()).unwrap_or_default());
        let lanes = columns.map(|c| c.as_chunks::<16>().0);
        let (blocks, _) = dst.as_chunks_mut::<16>();
        for (i, block) in blocks.iter_mut().enumerate() {
            let planes = lanes.map(|lane| lane.get(i).copied().unwrap_or_default());
            let whole = block.as_flattened_mut().as_chunks_mut::<16>().0;
            // All of the array at once: taken lane by lane it would pass through memory, at a third of the speed.
            if let Some(whole) = whole.first_chunk_mut::<P>() {
                *whole = interleave(planes);
            }
        }
        let done = blocks.len() << 4;
        let rest = dst.get_mut(done..).unwrap_or_default();
        for (i, item) in rest.iter_mut().enumerate() {
            for (to, column) in item.iter_mut().zip(&columns) {
                if let Some(from) = column.get(done.wrapping_add(i)) {
                    *to = *from;
                }
            }
        }
    }
}

fn join<const P: usize>(columns: Columns<'_, P>, start: usize, dst: &mut [u8]) {
    columns.join(start, dst.as_chunks_mut::<P>().0);
}

/// Elements of any size, a block at a time, plane by plane.
fn join_any(planes: &[u8], element_len: usize, start: usize, dst: &mut [u8]) {
    let count = planes.len().checked_div(element_len).unwrap_or(0);
    let run = dst.len().checked_div(element_len).unwrap_or(0);
    for first in (0..run).step_by(BLOCK_ITEMS) {
        let items = dst
            .get_mut(first.saturating_mul(element_len)..)
            .unwrap_or_default();
        for (at, plane) in planes.chunks_exact(count.max(1)).enumerate() {
            let from = plane.iter().skip(start.saturating_add(first));
            let to = items
                .get_mut(at..)
                .unwrap_or_default()
                .iter_mut()
                .step_by(element_len);
            for (to, from) in to.zip(from.take(BLOCK_ITEMS)) {
                *to = *from;
            }
        }
    }
}

/// Splits as many whole blocks of 16 elements as there are; gives the number of elements done.
fn split_blocks<const P: usize>(whole: &[u8], planes: &mut [u8]) -> usize {
    let count = whole.len().checked_div(P).unwrap_or(0);
    let mut planes = planes.chunks_exact_mut(count.max(1));
    let mut columns: [&mut [[u8; 16]]; P] =
        std::array::from_fn(|_| planes.next().unwrap_or_default().as_chunks_mut().0);
    let blocks = whole.as_chunks::<16>().0.as_chunks::<P>().0;
    for (i, block) in blocks.iter().enumerate() {
        let lanes = deinterleave(*block);
        // By reference: an array that is iterated over by value passes through memory.
        for (column, lane) in columns.iter_mut().zip(&lanes) {
            if let Some(to) = column.get_mut(i) {
                *to = *lane;
            }
        }
    }
    blocks.len() << 4
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "whole elements, low bytes, and a rate"
)]
mod tests {
    use super::*;

    /// The definition, byte by byte.
    fn defined(src: &[u8], len: usize) -> Vec<u8> {
        let count = src.len() / len;
        let mut dst = src.to_vec();
        for item in 0..count {
            for at in 0..len {
                dst[at * count + item] = src[item * len + at];
            }
        }
        dst
    }

    #[test]
    fn every_path_does_what_the_definition_says_at_every_length() {
        let bytes: Vec<u8> = (0..40_000u32).map(|n| ((n * 40_503) >> 7) as u8).collect();
        let lens = (0..300).chain([1023, 1024, 1025, 8191, 8192, 16_384 + 17, 39_999]);
        for len in lens {
            let src = &bytes[..len];
            for element_len in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 255, 5000] {
                let expected = defined(src, element_len);
                let mut dst = vec![0xee; len];
                shuffle(src, element_len, &mut dst);
                assert_eq!(dst, expected, "shuffle of {len} by {element_len}");
                let mut back = vec![0xee; len];
                unshuffle(&expected, element_len, &mut back);
                assert_eq!(back, src, "unshuffle of {len} by {element_len}");
            }
        }
    }

    #[test]
    fn a_run_of_elements_is_put_together_alone() {
        for element_len in [2, 3, 4, 8, 16] {
            let count = 100;
            let whole: Vec<u8> = (0..count * element_len)
                .map(|x| u8::try_from(x % 251).unwrap())
                .collect();
            let mut planes = vec![0; whole.len()];
            shuffle(&whole, element_len, &mut planes);
            for (start, n) in [(0, 100), (7, 64), (99, 1), (13, 0), (1, 17)] {
                let mut run = vec![0; n * element_len];
                unshuffle_run(&planes, element_len, start, &mut run);
                assert_eq!(run, whole[start * element_len..(start + n) * element_len]);
            }
        }
    }

    #[test]
    fn unshuffling_goes_the_other_way() {
        let mut dst = [0; 8];
        unshuffle(&[1, 3, 5, 7, 2, 4, 6, 8], 2, &mut dst);
        assert_eq!(dst, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// A measurement, not a check: `cargo test --release --lib shuffle_speed -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement: cargo test --release --lib -- --ignored --nocapture shuffle_speed"]
    fn shuffle_speed() {
        let src: Vec<u8> = (0..1u32 << 17).map(|n| ((n * 40_503) >> 7) as u8).collect();
        let mut dst = vec![0; src.len()];
        let mut rate = |f: &dyn Fn(&[u8], &mut [u8])| {
            let best = (0..200)
                .map(|_| {
                    let start = std::time::Instant::now();
                    f(std::hint::black_box(&src), std::hint::black_box(&mut dst));
                    start.elapsed().as_secs_f64()
                })
                .fold(f64::MAX, f64::min);
            src.len() as f64 / best / 1e9
        };
        for len in [2, 3, 4, 8, 12, 16] {
            let forth = rate(&|src, dst| shuffle(src, len, dst));
            let back = rate(&|src, dst| unshuffle(src, len, dst));
            println!("elements of {len}: shuffle {forth:.1} GB/s, unshuffle {back:.1} GB/s");
        }
    }
}
