//! Bit shuffle, as Blosc has it: bits of equal significance gathered.
//!
//! Holds [`shuffle`] and [`unshuffle`]. For each byte of an element, from the first, and each of its bits, from the lowest,
//! one row: that bit of all elements, eight to a byte, the first lowest. Only blocks of a multiple of eight elements are
//! shuffled; others, and the tail behind the last element, stay as they are. Must not know frames.

/// Gathers bits; `dst` is as long as `src`.
pub(super) fn shuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    let Some((whole, row)) = split(src.len(), element_len) else {
        dst.copy_from_slice(src);
        return;
    };
    let (items, tail) = src.split_at(whole);
    let (rows, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    for (at, planes) in rows.chunks_exact_mut(row.saturating_mul(8)).enumerate() {
        for i in 0..row {
            let mut bytes = [0_u8; 8];
            let first = i.saturating_mul(8);
            for (j, byte) in bytes.iter_mut().enumerate() {
                let from = first.saturating_add(j).saturating_mul(element_len);
                *byte = items.get(from.saturating_add(at)).copied().unwrap_or(0);
            }
            let turned = transpose(u64::from_le_bytes(bytes)).to_le_bytes();
            for (plane, byte) in planes.chunks_exact_mut(row).zip(turned) {
                if let Some(place) = plane.get_mut(i) {
                    *place = byte;
                }
            }
        }
    }
}

/// Puts gathered bits back; `dst` is as long as `src`.
pub(super) fn unshuffle(src: &[u8], element_len: usize, dst: &mut [u8]) {
    let Some((whole, row)) = split(src.len(), element_len) else {
        dst.copy_from_slice(src);
        return;
    };
    let (rows, tail) = src.split_at(whole);
    let (items, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    for (at, planes) in rows.chunks_exact(row.saturating_mul(8)).enumerate() {
        for (i, items) in items
            .chunks_exact_mut(element_len.saturating_mul(8))
            .enumerate()
        {
            let mut bytes = [0_u8; 8];
            for (byte, plane) in bytes.iter_mut().zip(planes.chunks_exact(row)) {
                *byte = plane.get(i).copied().unwrap_or(0);
            }
            let turned = transpose(u64::from_le_bytes(bytes)).to_le_bytes();
            for (item, byte) in items.chunks_exact_mut(element_len).zip(turned) {
                if let Some(place) = item.get_mut(at) {
                    *place = byte;
                }
            }
        }
    }
}

/// Bytes that are shuffled, and bytes of a row; none where nothing is.
fn split(len: usize, element_len: usize) -> Option<(usize, usize)> {
    let count = len.checked_div(element_len)?;
    if count == 0 || !count.is_multiple_of(8) {
        return None;
    }
    Some((count.checked_mul(element_len)?, count >> 3))
}

/// Rows become columns of eight by eight bits.
fn transpose(mut x: u64) -> u64 {
    // Swaps of ever larger blocks across the diagonal.
    for (shift, mask) in [
        (7, 0x00aa_00aa_00aa_00aa_u64),
        (14, 0x0000_cccc_0000_cccc),
        (28, 0x0000_0000_f0f0_f0f0),
    ] {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}

#[cfg(test)]
#[expect(clippy::integer_division, reason = "rows are whole bytes")]
mod tests {
    use super::*;

    #[test]
    fn each_bit_goes_where_the_rule_says() {
        let (element_len, count) = (3, 16);
        let src: Vec<u8> = (0..48_u8).map(|i| i.wrapping_mul(91) ^ 0x35).collect();
        let mut out = vec![0; 48];
        shuffle(&src, element_len, &mut out);
        for item in 0..count {
            for byte in 0..element_len {
                for bit in 0..8 {
                    let before = src[item * element_len + byte] >> bit & 1;
                    let row = (byte * 8 + bit) * count / 8;
                    assert_eq!(out[row + item / 8] >> (item % 8) & 1, before);
                }
            }
        }
        let mut back = vec![0; 48];
        unshuffle(&out, element_len, &mut back);
        assert_eq!(back, src);
    }

    #[test]
    fn blocks_of_other_counts_stay_and_a_tail_stays() {
        let src: Vec<u8> = (0..47).collect();
        let mut out = vec![0; 47];
        shuffle(&src, 4, &mut out);
        assert_eq!(out, src);
        let src: Vec<u8> = (0..34).collect();
        let mut out = vec![0; 34];
        shuffle(&src, 4, &mut out);
        assert_eq!(out[32..], src[32..]);
        assert_ne!(out, src);
    }
}
