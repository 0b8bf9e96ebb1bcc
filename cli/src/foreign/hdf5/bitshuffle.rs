//! The filter bitshuffle, number 32008: bits of one weight side by side, in blocks, each alone or through LZ4.
//!
//! Holds [`undo`]. After the layout that the filter's own documentation gives. Must not know chunks.

use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

/// Bytes that a block aims at where none are given.
const BLOCK_LEN: usize = 8192;
/// Elements of a block: a multiple of this, and at least so many where none are given.
const MULTIPLE: usize = 8;
const ELEMENTS_MIN: usize = 128;

/// A chunk's elements; `values` are two versions, bytes of an element, elements of a block, and the compressor.
pub(super) fn undo(bytes: &[u8], values: &[u32], most: usize) -> Result<Vec<u8>, Refusal> {
    let value = |place: usize| {
        let value = values.get(place).copied().unwrap_or_default();
        usize::try_from(value).unwrap_or(usize::MAX)
    };
    let item = value(2);
    if item == 0 || item > most {
        return Err(format!("bitshuffle of elements of {item} bytes"));
    }
    match value(4) {
        0 => {
            let elements = match value(3) {
                0 => default_elements(item),
                n => n,
            };
            blocks(Cursor::big(bytes), bytes.len(), item, elements, None)
        }
        2 => {
            let mut cursor = Cursor::big(bytes);
            let total = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
            let block_len = cursor.count()?;
            if total > most {
                return Err(format!("a chunk that says it has {total} bytes"));
            }
            let elements = block_len.checked_div(item).unwrap_or_default();
            blocks(cursor, total, item, elements, Some(unlz4))
        }
        other => Err(format!("bitshuffle with compressor {other}")),
    }
}

fn default_elements(item: usize) -> usize {
    let elements = BLOCK_LEN.checked_div(item).unwrap_or_default();
    let whole = elements.saturating_sub(elements.checked_rem(MULTIPLE).unwrap_or_default());
    whole.max(ELEMENTS_MIN)
}

/// Unpacks one block to so many bytes.
type Unpack = fn(&[u8], usize) -> Result<Vec<u8>, Refusal>;

fn unlz4(bytes: &[u8], len: usize) -> Result<Vec<u8>, Refusal> {
    let mut out = vec![0; len];
    let written = lz4_flex::block::decompress_into(bytes, &mut out)
        .map_err(|e| format!("bitshuffle: LZ4: {e}"))?;
    if written == len {
        Ok(out)
    } else {
        Err("bitshuffle: an LZ4 block that is too short".to_owned())
    }
}

/// Blocks of `elements` each, a shorter one of whole groups of eight, and what is left as it is.
fn blocks(
    mut cursor: Cursor<'_>,
    total: usize,
    item: usize,
    elements: usize,
    unpack: Option<Unpack>,
) -> Result<Vec<u8>, Refusal> {
    if elements == 0 || elements.checked_rem(MULTIPLE) != Some(0) {
        return Err(format!("bitshuffle in blocks of {elements} elements"));
    }
    let mut left = total.checked_div(item).unwrap_or_default();
    let mut out = Vec::new();
    while left >= MULTIPLE {
        let tail = left.checked_rem(MULTIPLE).unwrap_or_default();
        let count = elements.min(left.saturating_sub(tail));
        let len = count.saturating_mul(item);
        match unpack {
            Some(unpack) => {
                let packed = cursor.count()?;
                let packed = cursor.take(packed)?;
                unshuffle(&unpack(packed, len)?, count, item, &mut out);
            }
            None => unshuffle(cursor.take(len)?, count, item, &mut out),
        }
        left = left.saturating_sub(count);
    }
    let rest = total.saturating_sub(out.len());
    out.extend_from_slice(cursor.take(rest)?);
    Ok(out)
}

/// Puts the bits of a block together again: each plane holds one bit of every element.
fn unshuffle(planes: &[u8], count: usize, item: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start.saturating_add(planes.len()), 0);
    let elements = out.get_mut(start..).unwrap_or_default();
    let plane_len = count.checked_div(MULTIPLE).unwrap_or_default().max(1);
    for (plane, bits) in planes.chunks_exact(plane_len).enumerate() {
        let (byte, bit) = (plane >> 3, plane & 7);
        let column = elements.get_mut(byte..).unwrap_or_default();
        for (element, target) in column.iter_mut().step_by(item.max(1)).enumerate() {
            let word = bits.get(element >> 3).copied().unwrap_or_default();
            *target |= (word >> (element & 7) & 1) << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_of_bits_are_elements_again_and_the_rest_is_as_it_was() {
        // Nine elements of two bytes: eight whose second is set in bit 3 of the low byte, and one left over.
        let mut planes = vec![0; 16];
        planes[3] = 0b0000_0010;
        planes[8] = 0b1000_0000;
        planes.extend([0xaa, 0xbb]);
        let out = undo(&planes, &[0, 3, 2, 8, 0], 18).unwrap();
        let mut wanted = vec![0; 16];
        wanted[2] = 8;
        wanted[15] = 1;
        wanted.extend([0xaa, 0xbb]);
        assert_eq!(out, wanted);
        assert!(undo(&planes, &[0, 3, 2, 7, 0], 18).is_err());
        assert!(undo(&planes[..10], &[0, 3, 0, 8, 0], 18).is_err());
    }
}
