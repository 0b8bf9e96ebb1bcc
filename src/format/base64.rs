//! Base64 with padding, RFC 4648 section 4.
//!
//! Holds both directions, strict: the one text of some bytes, nothing else. Must not be used for secrets (not constant
//! in time).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The padded text of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let digit = |group: u32, shift: u32| {
        let index = usize::try_from(group >> shift & 63).unwrap_or(0);
        char::from(ALPHABET.get(index).copied().unwrap_or(b'='))
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.push(digit(group, 18));
        text.push(digit(group, 12));
        text.push(if chunk.len() > 1 {
            digit(group, 6)
        } else {
            '='
        });
        text.push(if chunk.len() > 2 {
            digit(group, 0)
        } else {
            '='
        });
    }
    text
}

/// The bytes of `text`; `None` unless it is exactly what [`encode`] gives for them.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let (quads, []) = text.as_bytes().as_chunks::<4>() else {
        return None;
    };
    let mut bytes = Vec::with_capacity(quads.len().saturating_mul(3));
    for (i, quad) in quads.iter().enumerate() {
        let is_last = i.saturating_add(1) == quads.len();
        let pads = quad.iter().rev().take_while(|b| **b == b'=').count();
        if pads > 2 || (pads > 0 && !is_last) {
            return None;
        }
        let mut group = 0_u32;
        for (j, digit) in quad.iter().enumerate() {
            let value = if j.saturating_add(pads) >= 4 {
                0
            } else {
                value_of(*digit)?
            };
            group = group << 6 | value;
        }
        // Bits that the padding cuts off must be zero, or two texts would mean the same bytes.
        let [c, b, a, _] = group.to_le_bytes();
        let (keep, cut): (&[u8], &[u8]) = match pads {
            0 => (&[a, b, c], &[]),
            1 => (&[a, b], &[c]),
            _ => (&[a], &[b, c]),
        };
        if cut.iter().any(|b| *b != 0) {
            return None;
        }
        bytes.extend_from_slice(keep);
    }
    Some(bytes)
}

fn value_of(digit: u8) -> Option<u32> {
    let index = ALPHABET.iter().position(|d| *d == digit)?;
    u32::try_from(index).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_hold_in_both_directions() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn only_the_one_text_of_some_bytes_is_read() {
        for text in [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "====", "Zm 9", "Zm9v\n", "-_8=",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
