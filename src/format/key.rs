//! Keys of the index: a tag, then order-preserving numbers and names. Spec: `format-spec/05-keys.md`.
//!
//! Holds the signed varint and the key builders and readers. Must not know values, nor which keys exist.
//!
//! Invariant: byte order of keys equals the order of what they say (tag, ids, coordinates, names), and every key
//! has one spelling.

use smallvec::SmallVec;

use super::{Generation, ObjectId};
use crate::error::{Error, Result};

/// A key. Inline up to 32 bytes, which covers chunk keys of ordinary ranks.
pub(crate) type Key = SmallVec<[u8; 32]>;
/// A value. Inline up to 32 bytes, which covers chunk records.
pub(crate) type Value = SmallVec<[u8; 32]>;

/// First byte of a key: what the rest says and what the value is.
pub(crate) mod tag {
    /// (parent id, child name) -> child.
    pub(crate) const CHILD: u8 = 0x01;
    /// object id -> document blob.
    pub(crate) const DOCUMENT: u8 = 0x02;
    /// (object id, attribute name) -> value blob.
    pub(crate) const ATTRIBUTE: u8 = 0x03;
    /// (array id, chunk coordinate) -> chunk record.
    pub(crate) const CHUNK: u8 = 0x08;
    /// generation -> snapshot record.
    pub(crate) const SNAPSHOT: u8 = 0x10;
    /// generation -> history record.
    pub(crate) const HISTORY: u8 = 0x11;
    /// From here on keys are for private use: kept, not interpreted.
    pub(crate) const PRIVATE: u8 = 0xE0;
}

/// Bytes from here to `LONG_POSITIVE` are one-byte numbers; lower ones open a long negative number.
const SHORT_FIRST: u8 = 0x08;
/// First byte from which on a long positive number follows.
const LONG_POSITIVE: u8 = 0xF8;
/// Largest magnitude in either long form: one more would leave `i64`.
const MAGNITUDE_MAX: u64 = (1 << 63) - 121;

/// Appends `v`, so that byte order is numeric order and no number is a prefix of another.
pub(crate) fn push_vint(key: &mut Key, v: i64) {
    match v {
        -120..=119 => {
            let [.., byte] = be_bytes(v.wrapping_add(128).cast_unsigned());
            key.push(byte);
        }
        120.. => push_long(key, v.wrapping_sub(120).cast_unsigned(), 0xF7, 0),
        _ => push_long(key, (-121_i64).wrapping_sub(v).cast_unsigned(), 8, u64::MAX),
    }
}

/// The long forms: a first byte `length_base` +- length, then the magnitude xor `flip`, big-endian.
fn push_long(key: &mut Key, magnitude: u64, length_base: u8, flip: u64) {
    let zeros = magnitude.leading_zeros().min(56) >> 3;
    let bytes = be_bytes(magnitude ^ flip);
    let digits = bytes.get(zeros as usize..).unwrap_or(&bytes);
    // 1 to 8 digits: `zeros` is at most 7.
    let [.., len] = be_bytes(8_u64.wrapping_sub(u64::from(zeros)));
    key.push(if flip == 0 {
        length_base.wrapping_add(len)
    } else {
        length_base.wrapping_sub(len)
    });
    key.extend_from_slice(digits);
}

/// Takes one number off the front of `bytes`; refuses every spelling but the shortest.
pub(crate) fn take_vint(bytes: &mut &[u8]) -> Result<i64> {
    decode_vint(bytes).ok_or_else(|| {
        Error::corrupt("key")
            .expected("a number in its shortest form")
            .found(format_args!(
                "{:02x?}",
                bytes.get(..bytes.len().min(9)).unwrap_or(bytes)
            ))
    })
}

fn decode_vint(bytes: &mut &[u8]) -> Option<i64> {
    let (&first, rest) = bytes.split_first()?;
    if (SHORT_FIRST..LONG_POSITIVE).contains(&first) {
        *bytes = rest;
        return Some(i64::from(first).wrapping_sub(128));
    }
    let positive = first >= LONG_POSITIVE;
    let len = if positive {
        first.wrapping_sub(0xF7)
    } else {
        8_u8.wrapping_sub(first)
    };
    let (digits, rest) = rest.split_at_checked(usize::from(len))?;
    let flip = if positive { 0 } else { 0xFF };
    let magnitude = digits
        .iter()
        .fold(0_u64, |m, &b| (m << 8) | u64::from(b ^ flip));
    let shortest = len == 1 || digits.first().is_some_and(|&b| b != flip);
    if !shortest || magnitude > MAGNITUDE_MAX {
        return None;
    }
    *bytes = rest;
    let magnitude = magnitude.cast_signed();
    Some(if positive {
        magnitude.wrapping_add(120)
    } else {
        (-121_i64).wrapping_sub(magnitude)
    })
}

#[expect(
    clippy::big_endian_bytes,
    reason = "keys are ordered as bytes, so their digits are big-endian"
)]
fn be_bytes(v: u64) -> [u8; 8] {
    v.to_be_bytes()
}

/// The first eight bytes as a number whose order is the byte order; missing bytes count as zero.
#[expect(
    clippy::big_endian_bytes,
    reason = "byte order of a key must become numeric order"
)]
pub(crate) fn prefix_u64(bytes: &[u8]) -> u64 {
    if let Some(head) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut padded = [0; 8];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_be_bytes(padded)
}

fn numbered(tag: u8, id: u64) -> Key {
    let mut key = Key::new();
    key.push(tag);
    push_vint(&mut key, id.cast_signed());
    key
}

fn named(tag: u8, id: ObjectId, name: &str) -> Key {
    let mut key = numbered(tag, id.0);
    key.extend_from_slice(name.as_bytes());
    key
}

/// Key of the directory entry of `name` in the group `parent`.
pub(crate) fn child(parent: ObjectId, name: &str) -> Key {
    named(tag::CHILD, parent, name)
}

/// What all directory entries of the group `parent` start with.
pub(crate) fn child_prefix(parent: ObjectId) -> Key {
    numbered(tag::CHILD, parent.0)
}

/// Key of an object's document.
pub(crate) fn document(id: ObjectId) -> Key {
    numbered(tag::DOCUMENT, id.0)
}

/// Key of one attribute.
pub(crate) fn attribute(id: ObjectId, name: &str) -> Key {
    named(tag::ATTRIBUTE, id, name)
}

/// What all attributes of an object start with.
pub(crate) fn attribute_prefix(id: ObjectId) -> Key {
    numbered(tag::ATTRIBUTE, id.0)
}

/// Key of the chunk at `coords`, whose axes stand in the order that `key_order` names.
///
/// An axis that `key_order` does not name is left out, so the order must be a permutation of the axes.
pub(crate) fn chunk(array: ObjectId, coords: &[i64], key_order: &[u8]) -> Key {
    debug_assert_eq!(coords.len(), key_order.len());
    let mut key = chunk_prefix(array);
    for &axis in key_order {
        if let Some(&c) = coords.get(usize::from(axis)) {
            push_vint(&mut key, c);
        }
    }
    key
}

/// What all chunks of an array start with.
pub(crate) fn chunk_prefix(array: ObjectId) -> Key {
    numbered(tag::CHUNK, array.0)
}

/// Reads the `rank` coordinates of a chunk key into `coords`, each at its own axis.
pub(crate) fn decode_chunk(
    key: &[u8],
    rank: usize,
    key_order: &[u8],
    coords: &mut [i64],
) -> Result<()> {
    let (_, mut rest) = split_object(key)?;
    debug_assert_eq!((rank, rank), (key_order.len(), coords.len()));
    for &axis in key_order {
        let c = take_vint(&mut rest)?;
        if let Some(slot) = coords.get_mut(usize::from(axis)) {
            *slot = c;
        }
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Error::corrupt("chunk key")
            .expected(format_args!("{rank} coordinates"))
            .found("more bytes"))
    }
}

/// Splits the key of an object's own entry (tags 1, 2, 3 and 8) into the object's id and the rest.
pub(crate) fn split_object(key: &[u8]) -> Result<(ObjectId, &[u8])> {
    let (id, rest) = split_number(key)?;
    Ok((ObjectId(id), rest))
}

/// The generation that a snapshot or history key names.
pub(crate) fn split_generation(key: &[u8]) -> Result<Generation> {
    let (generation, rest) = split_number(key)?;
    if rest.is_empty() {
        Ok(generation)
    } else {
        Err(Error::corrupt("generation key")
            .expected("its end")
            .found("more bytes"))
    }
}

fn split_number(key: &[u8]) -> Result<(u64, &[u8])> {
    let mut rest = key.get(1..).unwrap_or(&[]);
    let v = take_vint(&mut rest)?;
    match u64::try_from(v) {
        Ok(id) if id < crate::limits::GENERATION_END => Ok((id, rest)),
        _ => Err(Error::corrupt("key")
            .expected("an id or generation in 0..2^61")
            .found(v)),
    }
}

/// Key of the record that retains a generation.
pub(crate) fn snapshot(generation: Generation) -> Key {
    numbered(tag::SNAPSHOT, generation)
}

/// Key of a commit's history record.
pub(crate) fn history(generation: Generation) -> Key {
    numbered(tag::HISTORY, generation)
}

/// Whether the history counts a change of this key: what commits write about themselves does not count.
pub(crate) fn counts_as_change(key: &[u8]) -> bool {
    !matches!(key.first(), Some(&(tag::SNAPSHOT | tag::HISTORY)))
}

/// The least key above every key that starts with `prefix`; `None` when there is none (all bytes 0xFF).
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|&b| b != 0xFF)?;
    let mut end = Key::from_slice(prefix.get(..=last)?);
    if let Some(b) = end.last_mut() {
        *b = b.wrapping_add(1);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vint(v: i64) -> Key {
        let mut key = Key::new();
        push_vint(&mut key, v);
        key
    }

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write;
        bytes.iter().fold(String::new(), |mut text, b| {
            write!(text, "{b:02X}").unwrap();
            text
        })
    }

    #[test]
    fn numbers_have_the_bytes_of_the_specification() {
        for (v, bytes) in [
            (-121, "07FF"),
            (-376, "0700"),
            (-377, "06FEFF"),
            (-65_656, "060000"),
            (-120, "08"),
            (-1, "7F"),
            (0, "80"),
            (119, "F7"),
            (120, "F800"),
            (375, "F8FF"),
            (376, "F90100"),
            (65_655, "F9FFFF"),
            (i64::MAX, "FF7FFFFFFFFFFFFF87"),
            (i64::MIN, "008000000000000078"),
        ] {
            let key = vint(v);
            assert_eq!(hex(&key), bytes, "{v}");
            let mut rest = key.as_slice();
            assert_eq!(take_vint(&mut rest).unwrap(), v);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn longer_spellings_short_input_and_magnitudes_beyond_i64_are_corrupt() {
        for bytes in [
            &b""[..],
            b"\xF9\x00\x01",
            b"\x06\xFF\xFE",
            b"\xF8",
            b"\xFF\x7F\xFF\xFF",
            b"\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\x88",
            b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
            b"\x00\x80\x00\x00\x00\x00\x00\x00\x77",
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ] {
            let mut rest = bytes;
            assert!(
                take_vint(&mut rest).unwrap_err().is_corruption(),
                "{}",
                hex(bytes)
            );
            assert_eq!(rest, bytes, "nothing is taken");
        }
    }

    #[test]
    fn byte_order_is_coordinate_order_across_zero_and_at_both_ends() {
        let edges = [
            i64::MIN,
            i64::MIN + 1,
            -65_657,
            -65_656,
            -377,
            -376,
            -122,
            -121,
            -120,
            -1,
            0,
            1,
            118,
            119,
            120,
            121,
            375,
            376,
            65_655,
            65_656,
            i64::MAX - 1,
            i64::MAX,
        ];
        for a in edges {
            for b in edges {
                assert_eq!(vint(a).cmp(&vint(b)), a.cmp(&b), "{a} {b}");
            }
        }
    }

    #[test]
    fn chunk_keys_sort_as_the_foreign_vectors_do() {
        let text = include_str!("../../tests/data/key-order.json");
        let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
        let keys: Vec<Key> = vectors["in_order"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| {
                let c: Vec<i64> = v["chunk"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|x| x.as_i64().unwrap())
                    .collect();
                chunk(ObjectId(7), &c, &[0, 1])
            })
            .collect();
        assert!(keys.len() > 8);
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn keys_have_tag_id_and_rest_and_lie_under_their_prefix() {
        assert_eq!(hex(&child(ObjectId(0), "a")), "018061");
        assert_eq!(hex(&document(ObjectId(120))), "02F800");
        assert_eq!(hex(&attribute(ObjectId(1), "u")), "038175");
        assert_eq!(hex(&chunk(ObjectId(1), &[-1, 2], &[1, 0])), "0881827F");
        assert_eq!(hex(&snapshot(5)), "1085");
        assert_eq!(hex(&history(376)), "11F90100");
        assert_eq!(
            split_object(&attribute(ObjectId(1), "u")).unwrap(),
            (ObjectId(1), &b"u"[..])
        );
        assert_eq!(split_generation(&history(376)).unwrap(), 376);
        let prefix = chunk_prefix(ObjectId(375));
        assert_eq!(hex(&prefix), "08F8FF");
        let end = prefix_end(&prefix).unwrap();
        assert_eq!(hex(&end), "08F9");
        assert!(chunk(ObjectId(375), &[i64::MAX], &[0]) < end);
        assert_eq!(prefix_end(&[0xFF, 0xFF]), None);
    }

    #[test]
    fn a_chunk_key_with_the_wrong_number_of_coordinates_is_corrupt() {
        let key = chunk(ObjectId(1), &[-1, 2], &[0, 1]);
        let mut one = [0];
        assert!(
            decode_chunk(&key, 1, &[0], &mut one)
                .unwrap_err()
                .is_corruption()
        );
        let mut three = [0; 3];
        assert!(
            decode_chunk(&key, 3, &[0, 1, 2], &mut three)
                .unwrap_err()
                .is_corruption()
        );
        let negative = [tag::CHUNK, 0x7F];
        assert!(split_object(&negative).unwrap_err().is_corruption());
    }

    proptest! {
        #[test]
        fn keys_order_as_coordinates_and_read_back(
            a in prop::array::uniform3(coordinate()), b in prop::array::uniform3(coordinate())
        ) {
            let (ka, kb) = (chunk(ObjectId(3), &a, &[0, 1, 2]), chunk(ObjectId(3), &b, &[0, 1, 2]));
            prop_assert_eq!(ka.cmp(&kb), a.cmp(&b));
            let mut back = [0; 3];
            decode_chunk(&ka, 3, &[0, 1, 2], &mut back).unwrap();
            prop_assert_eq!(back, a);
        }
    }

    fn coordinate() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -700_i64..700, Just(i64::MIN), Just(i64::MAX)]
    }
}
