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

    pub(crate) fn element_len(&self) -> usize {
        self.element_len
    }
}

/// Gathers the bytes of equal significance; `dst` is as long as `src`.
pub(crate) fn shuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "a shuffle keeps the length");
    if element_len <= 1 {
        dst.copy_from_slice(src);
        return;
    }
    let tail_len = src.len().checked_rem(element_len).unwrap_or(0);
    let (whole, tail) = src.split_at(src.len().saturating_sub(tail_len));
    let (planes, dst_tail) = dst.split_at_mut(whole.len());
    dst_tail.copy_from_slice(tail);
    general_shuffle(whole, element_len, planes);
}

/// Puts the bytes of equal significance back into their elements; `dst` is as long as `src`.
pub(crate) fn unshuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "a shuffle keeps the length");
    if element_len <= 1 {
        dst.copy_from_slice(src);
        return;
    }
    let tail_len = src.len().checked_rem(element_len).unwrap_or(0);
    let (planes, tail) = src.split_at(src.len().saturating_sub(tail_len));
    let (whole, dst_tail) = dst.split_at_mut(planes.len());
    dst_tail.copy_from_slice(tail);
    general_unshuffle(planes, element_len, whole);
}

fn general_shuffle(whole: &[u8], element_len: usize, planes: &mut [u8]) {
    let count = whole.len().checked_div(element_len).unwrap_or(0).max(1);
    for (at, plane) in planes.chunks_exact_mut(count).enumerate() {
        let column = whole.get(at..).unwrap_or_default().iter();
        for (to, from) in plane.iter_mut().zip(column.step_by(element_len)) {
            *to = *from;
        }
    }
}

fn general_unshuffle(planes: &[u8], element_len: usize, whole: &mut [u8]) {
    let count = whole.len().checked_div(element_len).unwrap_or(0).max(1);
    for (at, plane) in planes.chunks_exact(count).enumerate() {
        let column = whole.get_mut(at..).unwrap_or_default().iter_mut();
        for (to, from) in column.step_by(element_len).zip(plane) {
            *to = *from;
        }
    }
}
