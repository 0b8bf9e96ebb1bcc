//! One element repeated: filling a block with it, and recognising such a block.
//!
//! Holds [`repeat`] and [`is_repeated`]. Must not know which element is the fill value.

/// Repeats `pattern` over `out`, whose length is a multiple of it.
pub(crate) fn repeat(pattern: &[u8], out: &mut [u8]) {
    match pattern {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|b| b == first) => out.fill(*first),
        _ => {
            let Some(head) = out.get_mut(..pattern.len()) else {
                return;
            };
            head.copy_from_slice(pattern);
            let mut done = pattern.len();
            while done < out.len() {
                let (from, to) = out.split_at_mut(done);
                let n = from.len().min(to.len());
                if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
                    to.copy_from_slice(from);
                }
                done = done.saturating_add(n);
            }
        }
    }
}

/// True when `bytes` is nothing but repetitions of `pattern`.
pub(crate) fn is_repeated(pattern: &[u8], bytes: &[u8]) -> bool {
    // Equal to itself shifted by one element, and starting right: then every element equals the first.
    let shift = pattern.len();
    match bytes.get(..shift) {
        None => bytes.is_empty(),
        Some(head) => {
            head == pattern && bytes.get(shift..) == bytes.get(..bytes.len().saturating_sub(shift))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_repeat_and_are_recognised_bit_for_bit() {
        let mut out = vec![9; 12];
        repeat(&[1, 2, 3, 4], &mut out);
        assert_eq!(out, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
        assert!(is_repeated(&[1, 2, 3, 4], &out));
        out[11] = 5;
        assert!(!is_repeated(&[1, 2, 3, 4], &out));
        assert!(!is_repeated(&[0, 0, 0, 0], &[0, 0, 0, 0x80]));
        repeat(&[7, 7], &mut out);
        assert!(is_repeated(&[7, 7], &out));
    }
}
