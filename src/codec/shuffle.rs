//! Codec `numcodecs.shuffle`: bytes to bytes, filter.
//!
//! Produces: the first byte of every element, then the second of every element, and so on; a tail shorter than one
//! element is copied unchanged behind them. The same bytes as HDF5's shuffle filter and numcodecs' `Shuffle`.
//! Parameters: `elementsize`, by default the array's item size. Output: as long as the input. Empty input gives empty
//! output.

use super::config::Config;
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
        2 => shuffle_2(whole, planes),
        4 => shuffle_4(whole, planes),
        8 => shuffle_words::<1>(whole, count, planes),
        16 => shuffle_words::<2>(whole, count, planes),
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
    let done = match element_len {
        2 => unshuffle_2(planes, whole),
        4 => unshuffle_4(planes, whole),
        8 => unshuffle_words::<1>(planes, count, whole),
        16 => unshuffle_words::<2>(planes, count, whole),
        _ => 0,
    };
    for start in (done..count).step_by(BLOCK_ITEMS) {
        let items = whole
            .get_mut(start.saturating_mul(element_len)..)
            .unwrap_or_default();
        for (at, plane) in planes.chunks_exact(count).enumerate() {
            let from = plane.iter().skip(start).take(BLOCK_ITEMS);
            let to = items
                .get_mut(at..)
                .unwrap_or_default()
                .iter_mut()
                .step_by(element_len);
            for (to, from) in to.zip(from) {
                *to = *from;
            }
        }
    }
}

// The fast paths below take as many whole blocks as there are and give the number of elements done. They are written in
// arithmetic on whole words because the compiler turns that into vector code, and byte-wise copies it does not.

#[expect(
    clippy::cast_possible_truncation,
    reason = "taking the lowest byte is the purpose"
)]
fn shuffle_2(whole: &[u8], planes: &mut [u8]) -> usize {
    let items = whole.as_chunks::<2>().0;
    let (low, high) = planes.split_at_mut(items.len());
    for ((item, low), high) in items.iter().zip(low).zip(high) {
        let word = u16::from_le_bytes(*item);
        *low = word as u8;
        *high = (word >> 8) as u8;
    }
    items.len()
}

fn unshuffle_2(planes: &[u8], whole: &mut [u8]) -> usize {
    let items = whole.as_chunks_mut::<2>().0;
    let (low, high) = planes.split_at(items.len());
    for ((item, low), high) in items.iter_mut().zip(low).zip(high) {
        *item = (u16::from(*low) | (u16::from(*high) << 8)).to_le_bytes();
    }
    items.len()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "taking the lowest byte is the purpose"
)]
fn shuffle_4(whole: &[u8], planes: &mut [u8]) -> usize {
    let blocks = whole.as_chunks::<64>().0;
    let [a, b, c, d] = columns_mut::<4, 16>(planes, whole.len() >> 2);
    let columns = a.iter_mut().zip(b).zip(c).zip(d);
    for (block, (((a, b), c), d)) in blocks.iter().zip(columns) {
        let mut words = [0u32; 16];
        for (word, item) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*item);
        }
        *a = words.map(|word| word as u8);
        *b = words.map(|word| (word >> 8) as u8);
        *c = words.map(|word| (word >> 16) as u8);
        *d = words.map(|word| (word >> 24) as u8);
    }
    blocks.len().saturating_mul(16)
}

fn unshuffle_4(planes: &[u8], whole: &mut [u8]) -> usize {
    let [a, b, c, d] = columns::<4, 1>(planes, whole.len() >> 2);
    let items = whole.as_chunks_mut::<4>().0;
    let columns = a.iter().zip(b).zip(c).zip(d);
    for (item, ((([a], [b]), [c]), [d])) in items.iter_mut().zip(columns) {
        let low = u32::from(*a) | (u32::from(*b) << 8);
        *item = (low | (u32::from(*c) << 16) | (u32::from(*d) << 24)).to_le_bytes();
    }
    items.len()
}

/// Elements of `W` words of eight bytes. Whole lines of 64 bytes are collected before they are written: the planes lie
/// at distances that are often powers of two, where writes of eight bytes to 16 places evict each other's lines.
fn shuffle_words<const W: usize>(whole: &[u8], count: usize, planes: &mut [u8]) -> usize {
    let mut planes = planes.chunks_exact_mut(count);
    let mut words: [[&mut [[u8; 64]]; 8]; W] = std::array::from_fn(|_| {
        std::array::from_fn(|_| planes.next().unwrap_or_default().as_chunks_mut().0)
    });
    let blocks = whole.chunks_exact(W.saturating_mul(512));
    let done = blocks.len().saturating_mul(64);
    for (index, block) in blocks.enumerate() {
        for (word, columns) in words.iter_mut().enumerate() {
            let mut lines = [[0u8; 64]; 8];
            for (at, items) in block.chunks_exact(W.saturating_mul(64)).enumerate() {
                let items = items.as_chunks::<8>().0.iter().skip(word).step_by(W);
                let mut rows = [0u64; 8];
                for (row, item) in rows.iter_mut().zip(items) {
                    *row = u64::from_le_bytes(*item);
                }
                for (line, row) in lines.iter_mut().zip(transpose_8x8(rows)) {
                    if let Some(to) = line.as_chunks_mut().0.get_mut(at) {
                        *to = row.to_le_bytes();
                    }
                }
            }
            for (column, line) in columns.iter_mut().zip(&lines) {
                if let Some(to) = column.get_mut(index) {
                    *to = *line;
                }
            }
        }
    }
    done
}

fn unshuffle_words<const W: usize>(planes: &[u8], count: usize, whole: &mut [u8]) -> usize {
    let mut planes = planes.chunks_exact(count);
    let words: [[&[[u8; 8]]; 8]; W] = std::array::from_fn(|_| {
        std::array::from_fn(|_| planes.next().unwrap_or_default().as_chunks().0)
    });
    let blocks = whole.chunks_exact_mut(W.saturating_mul(64));
    let done = blocks.len().saturating_mul(8);
    for (index, block) in blocks.enumerate() {
        let items = block.as_chunks_mut::<8>().0;
        for (word, columns) in words.iter().enumerate() {
            let rows = columns.map(|column| {
                let bytes = column.get(index).copied().unwrap_or_default();
                u64::from_le_bytes(bytes)
            });
            let items = items.iter_mut().skip(word).step_by(W);
            for (item, row) in items.zip(transpose_8x8(rows)) {
                *item = row.to_le_bytes();
            }
        }
    }
    done
}

/// The first `P` planes of `count` bytes, each in blocks of `N`.
fn columns<const P: usize, const N: usize>(planes: &[u8], count: usize) -> [&[[u8; N]]; P] {
    let mut planes = planes.chunks_exact(count.max(1));
    std::array::from_fn(|_| planes.next().unwrap_or_default().as_chunks().0)
}

fn columns_mut<const P: usize, const N: usize>(
    planes: &mut [u8],
    count: usize,
) -> [&mut [[u8; N]]; P] {
    let mut planes = planes.chunks_exact_mut(count.max(1));
    std::array::from_fn(|_| planes.next().unwrap_or_default().as_chunks_mut().0)
}

/// Byte `j` of row `i` becomes byte `i` of row `j`; swaps blocks of one, two, then four bytes across the diagonal.
#[inline]
fn transpose_8x8(rows: [u64; 8]) -> [u64; 8] {
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    const PAIRS: u64 = 0x0000_ffff_0000_ffff;
    const QUADS: u64 = 0x0000_0000_ffff_ffff;
    let exchange = |a: u64, b: u64, shift: u32, mask: u64| {
        let swapped = ((a >> shift) ^ b) & mask;
        (a ^ (swapped << shift), b ^ swapped)
    };
    let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
    let (r0, r1) = exchange(r0, r1, 8, BYTES);
    let (r2, r3) = exchange(r2, r3, 8, BYTES);
    let (r4, r5) = exchange(r4, r5, 8, BYTES);
    let (r6, r7) = exchange(r6, r7, 8, BYTES);
    let (r0, r2) = exchange(r0, r2, 16, PAIRS);
    let (r1, r3) = exchange(r1, r3, 16, PAIRS);
    let (r4, r6) = exchange(r4, r6, 16, PAIRS);
    let (r5, r7) = exchange(r5, r7, 16, PAIRS);
    let (r0, r4) = exchange(r0, r4, 32, QUADS);
    let (r1, r5) = exchange(r1, r5, 32, QUADS);
    let (r2, r6) = exchange(r2, r6, 32, QUADS);
    let (r3, r7) = exchange(r3, r7, 32, QUADS);
    [r0, r1, r2, r3, r4, r5, r6, r7]
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
    fn unshuffling_goes_the_other_way() {
        let mut dst = [0; 8];
        unshuffle(&[1, 3, 5, 7, 2, 4, 6, 8], 2, &mut dst);
        assert_eq!(dst, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// A measurement, not a check: `cargo test --release --lib shuffle_speed -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
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
