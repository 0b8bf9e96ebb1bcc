//! The bytes of one tile or strip, unpacked to little-endian elements.
//!
//! Holds [`unpacked`]: compression, predictor, single bits, byte order, in that order. Decompressors are libraries'; what is
//! written here is the run-length coding and the two predictors of the TIFF specification and its technical note 3. Must not
//! read files. What comes out is as long as was asked for, or an error.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use weezl::{BitOrder, LzwStatus, decode::Decoder};

use super::page::{DEFLATE, LZW, NONE, OLD_DEFLATE, PACK_BITS, Page};
use crate::foreign::Refusal;

/// Unpacks `raw`, a piece of `across` samples a row (`samples` of them a pixel) and `down` rows.
pub(super) fn unpacked(
    page: &Page,
    raw: &[u8],
    (across, samples, down): (usize, usize, usize),
) -> Result<Vec<u8>, Refusal> {
    let large = || "a piece larger than memory holds".to_owned();
    let bits = usize::try_from(page.bits).map_err(|_| large())?;
    let row = across.checked_mul(bits).map(|n| n.div_ceil(8));
    let row = row.filter(|n| *n > 0).ok_or_else(large)?;
    let due = row.checked_mul(down).ok_or_else(large)?;
    let mut out = decompressed(page.compression, raw, due)?;
    if out.len() != due {
        return Err(format!("{} bytes where {due} are due", out.len()));
    }
    let width = bits.div_ceil(8);
    match page.predictor {
        1 => {}
        2 if bits >= 8 => {
            for row in out.chunks_exact_mut(row) {
                sum(row, width, samples, page.big_endian);
            }
        }
        3 if page.format == 3 => {
            for row in out.chunks_exact_mut(row) {
                gather(row, width, samples);
            }
            // The planes are in the order of significance, whatever the file's is.
            return Ok(out);
        }
        other => return Err(format!("predictor {other} of samples of {bits} bits")),
    }
    if bits == 1 {
        return Ok(out
            .chunks_exact(row)
            .flat_map(|row| single_bits(row, across))
            .collect());
    }
    if page.big_endian {
        page.data_type()?.swap_bytes(&mut out);
    }
    Ok(out)
}

/// At most `due` bytes of what is inside.
fn decompressed(compression: u64, raw: &[u8], due: usize) -> Result<Vec<u8>, Refusal> {
    match compression {
        NONE => Ok(raw.get(..due).unwrap_or(raw).to_vec()),
        DEFLATE | OLD_DEFLATE => {
            let mut out = Vec::new();
            let mut inside = ZlibDecoder::new(raw).take(due as u64);
            let read = inside.read_to_end(&mut out);
            read.map_err(|e| format!("its deflate is broken: {e}"))?;
            Ok(out)
        }
        LZW => lzw(raw, due),
        PACK_BITS => Ok(runs(raw, due)),
        other => Err(format!("compression {other}")),
    }
}

fn lzw(raw: &[u8], due: usize) -> Result<Vec<u8>, Refusal> {
    // No code of 9 bits or more stands for more than 4096 bytes: what promises more cannot keep it.
    if due > raw.len().saturating_mul(4096) {
        return Err(format!("{due} bytes are more than its LZW can hold"));
    }
    let mut decoder = Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let mut out = vec![0; due];
    let (mut from, mut to) = (0_usize, 0_usize);
    while let Some(target) = out.get_mut(to..).filter(|t| !t.is_empty()) {
        let result = decoder.decode_bytes(raw.get(from..).unwrap_or_default(), target);
        from = from.saturating_add(result.consumed_in);
        to = to.saturating_add(result.consumed_out);
        match result.status {
            Ok(LzwStatus::Ok) => {}
            Ok(LzwStatus::Done | LzwStatus::NoProgress) => break,
            Err(e) => return Err(format!("its LZW is broken: {e}")),
        }
    }
    out.truncate(to);
    Ok(out)
}

/// `PackBits`: a count of bytes to take, or of times to repeat one.
fn runs(raw: &[u8], due: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = raw;
    while let Some((&count, after)) = rest.split_first() {
        if out.len() >= due {
            break;
        }
        rest = after;
        let count = count.cast_signed();
        if count >= 0 {
            let n = usize::from(count.unsigned_abs()).saturating_add(1);
            let (run, after) = rest.split_at(n.min(rest.len()));
            out.extend_from_slice(run);
            rest = after;
        } else if count != i8::MIN
            && let Some((&byte, after)) = rest.split_first()
        {
            let n = usize::from(count.unsigned_abs()).saturating_add(1);
            out.resize(out.len().saturating_add(n), byte);
            rest = after;
        }
    }
    out.truncate(due);
    out
}

/// Undoes the horizontal predictor: each sample is the difference to that of the pixel before.
fn sum(row: &mut [u8], width: usize, samples: usize, big_endian: bool) {
    let step = width.saturating_mul(samples);
    let mut at = step;
    while let Some((done, rest)) = row.split_at_mut_checked(at) {
        let before = done.len().saturating_sub(step);
        let (Some(before), Some(sample)) = (done.get(before..), rest.get_mut(..width)) else {
            return;
        };
        let mut carry = 0_u16;
        for i in 0..width {
            let place = if big_endian {
                width.saturating_sub(i).saturating_sub(1)
            } else {
                i
            };
            if let (Some(byte), Some(more)) = (sample.get_mut(place), before.get(place)) {
                let [low, high] = u16::from(*byte)
                    .wrapping_add(u16::from(*more))
                    .wrapping_add(carry)
                    .to_le_bytes();
                *byte = low;
                carry = u16::from(high);
            }
        }
        at = at.saturating_add(width);
    }
}

/// Undoes the floating point predictor: bytes are differences, and those of one significance stand together.
fn gather(row: &mut [u8], width: usize, samples: usize) {
    let mut last = vec![0_u8; samples];
    for pixel in row.chunks_mut(samples.max(1)) {
        for (byte, last) in pixel.iter_mut().zip(&mut last) {
            *byte = byte.wrapping_add(*last);
            *last = *byte;
        }
    }
    let planes = row.to_vec();
    let count = row.len().checked_div(width).unwrap_or(0).max(1);
    // The most significant plane is the first.
    for (plane, bytes) in planes.chunks_exact(count).enumerate() {
        let place = width.saturating_sub(plane).saturating_sub(1);
        for (sample, byte) in row.chunks_exact_mut(width).zip(bytes) {
            if let Some(target) = sample.get_mut(place) {
                *target = *byte;
            }
        }
    }
}

/// The bits of a row, a byte each.
fn single_bits(row: &[u8], across: usize) -> impl Iterator<Item = u8> {
    let bits = row
        .iter()
        .flat_map(|b| (0..8).rev().map(move |i| (b >> i) & 1));
    bits.take(across)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_those_of_the_specifications_example() {
        let packed = [
            0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7,
            0xaa,
        ];
        let plain = [
            0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0x22,
            0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
        ];
        assert_eq!(runs(&packed, 24), plain);
        assert_eq!(runs(&packed, 3), [0xaa; 3]);
        assert_eq!(runs(&[0x80, 5, 1], 9), [1]);
        assert!(runs(&[0xff], 9).is_empty());
    }

    #[test]
    fn sums_carry_in_the_files_byte_order() {
        let mut row = [0xff, 0x00, 0x02, 0x01, 0xff, 0xff];
        sum(&mut row, 2, 1, false);
        assert_eq!(row, [0xff, 0x00, 0x01, 0x02, 0x00, 0x02]);
        let mut row = [0x00, 0xff, 0x01, 0x02, 0xff, 0xff];
        sum(&mut row, 2, 1, true);
        assert_eq!(row, [0x00, 0xff, 0x02, 0x01, 0x02, 0x00]);
        let mut row = [1, 10, 1, 10, 1, 10];
        sum(&mut row, 1, 2, false);
        assert_eq!(row, [1, 10, 2, 20, 3, 30]);
    }

    #[test]
    fn lzw_that_promises_more_than_it_can_hold_is_refused_before_memory_is_taken() {
        assert!(
            lzw(&[0x80, 0x0b, 0x60], 1 << 20)
                .unwrap_err()
                .contains("more")
        );
        assert!(decompressed(99, &[], 1).is_err());
    }
}
