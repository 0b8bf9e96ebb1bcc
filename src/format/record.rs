//! Chunk records: where a chunk's stored bytes lie, or what stands for them. Spec: `format-spec/06-records.md`.
//!
//! Holds the encodings of kinds 0, 2, 3 and 4, and which extent any entry of the index owns. Must not read the
//! file that extents point into, nor know the array that a record belongs to.

use super::extent::Extent;
use super::key::{Value, tag};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};

const KIND_EXTENT: u8 = 0;
const KIND_CONSTANT: u8 = 2;
const KIND_FILL: u8 = 3;
const KIND_LONG_EXTENT: u8 = 4;
/// Where the kind stands in every record, of this version or a later one.
const KIND_AT: usize = 16;
/// Shortest record, and the length of kinds 0, 2 and 3.
const RECORD_LEN: usize = 20;
const LONG_RECORD_LEN: usize = 28;

const BLOB_INLINE: u8 = 0;
const BLOB_EXTENT: u8 = 2;

/// What the index says about one stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkRecord {
    /// The encoded payload lies at `extent`.
    Stored {
        extent: Extent,
        /// Bit i: codec i of the pipeline was skipped for this chunk.
        mask: u8,
    },
    /// Every element has these little-endian bytes, zero padded.
    Constant([u8; 16]),
    /// Every element is the fill value, and someone said so.
    Fill,
}

impl ChunkRecord {
    pub(crate) fn encode(&self) -> Value {
        let mut w = Writer::with_capacity(LONG_RECORD_LEN);
        match self {
            Self::Stored { extent, mask } => {
                let short = u32::try_from(extent.len).ok();
                w.u64(extent.offset);
                w.u32(short.unwrap_or(0));
                w.u32(extent.crc);
                w.u8(if short.is_some() {
                    KIND_EXTENT
                } else {
                    KIND_LONG_EXTENT
                });
                w.u8(*mask);
                w.u16(0);
                if short.is_none() {
                    w.u64(extent.len);
                }
            }
            Self::Constant(element) => {
                w.slice(element);
                w.u8(KIND_CONSTANT);
                w.zeros(3);
            }
            Self::Fill => {
                w.zeros(KIND_AT);
                w.u8(KIND_FILL);
                w.zeros(3);
            }
        }
        Value::from_slice(w.as_slice())
    }

    /// Reads the record `value`, which lies at byte `at`, in a snapshot that ends at `end`.
    ///
    /// # Errors
    /// `Unsupported` for a kind or flag of a later version: the other chunks stay readable. Else `Corrupt`.
    pub(crate) fn decode(value: &[u8], at: u64, end: u64) -> Result<Self> {
        let mut r = Reader::new("chunk record", at, value);
        let body = r.array::<KIND_AT>()?;
        let (kind, mask, flags) = (r.u8()?, r.u8()?, r.u16()?);
        let expected_len = match kind {
            KIND_EXTENT | KIND_CONSTANT | KIND_FILL => RECORD_LEN,
            KIND_LONG_EXTENT => LONG_RECORD_LEN,
            _ => return Err(Error::unsupported("chunk record kind").at(at).found(kind)),
        };
        if flags != 0 {
            return Err(Error::unsupported("chunk record flags")
                .at(at)
                .found(format_args!("{flags:#06x}")));
        }
        if value.len() != expected_len {
            return Err(Error::corrupt("chunk record")
                .at(at)
                .expected(format_args!("{expected_len} bytes for kind {kind}"))
                .found(format_args!("{} bytes", value.len())));
        }
        let mut body = Reader::new("chunk record", at, &body);
        if matches!(kind, KIND_EXTENT | KIND_LONG_EXTENT) {
            let extent = Self::extent(kind, &mut body, &mut r)?;
            extent.check("chunk extent", end)?;
            return Ok(Self::Stored { extent, mask });
        }
        if mask != 0 {
            return Err(Error::corrupt("chunk record")
                .at(at)
                .expected("a zero byte at 17")
                .found(mask));
        }
        if kind == KIND_FILL {
            body.zeros(KIND_AT, "reserved bytes")?;
            return Ok(Self::Fill);
        }
        body.array().map(Self::Constant)
    }

    fn extent(kind: u8, body: &mut Reader<'_>, tail: &mut Reader<'_>) -> Result<Extent> {
        let offset = body.u64()?;
        if kind == KIND_EXTENT {
            let (len, crc) = (body.u32()?, body.u32()?);
            return Ok(Extent {
                offset,
                len: u64::from(len),
                crc,
            });
        }
        body.zeros(4, "reserved bytes")?;
        let crc = body.u32()?;
        let at = tail.position();
        let len = tail.u64()?;
        if u32::try_from(len).is_ok() || i64::try_from(len).is_err() {
            return Err(Error::corrupt("long chunk extent")
                .at(at)
                .expected("a length of 2^32..2^63")
                .found(len));
        }
        Ok(Extent { offset, len, crc })
    }
}

/// Who the bytes of an extent belong to: the two are counted apart in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A chunk's payload.
    Payload,
    /// A document or an attribute value; counts as index.
    Blob,
}

/// The extent that the entry (`key`, `value`) owns, if any, inside a snapshot that ends at `end`.
///
/// # Errors
/// `Unsupported` when a later version's record hides whether there is one; `Corrupt` when the value breaks a rule.
pub(crate) fn extent_of(
    key: &[u8],
    value: &[u8],
    at: u64,
    end: u64,
) -> Result<Option<(Extent, Owner)>> {
    match key.first() {
        Some(&tag::CHUNK) => Ok(match ChunkRecord::decode(value, at, end)? {
            ChunkRecord::Stored { extent, .. } => Some((extent, Owner::Payload)),
            ChunkRecord::Constant(_) | ChunkRecord::Fill => None,
        }),
        Some(&(tag::DOCUMENT | tag::ATTRIBUTE)) => {
            Ok(blob_extent(value, at, end)?.map(|extent| (extent, Owner::Blob)))
        }
        _ => Ok(None),
    }
}

fn blob_extent(value: &[u8], at: u64, end: u64) -> Result<Option<Extent>> {
    let mut r = Reader::new("blob", at, value);
    let form = r.u8()?;
    let _content = r.u8()?;
    match form {
        BLOB_INLINE => Ok(None),
        BLOB_EXTENT => {
            let (offset, len) = (r.u64()?, u64::from(r.u32()?));
            let (_raw_len, crc) = (r.u32()?, r.u32()?);
            r.finish()?;
            let extent = Extent { offset, len, crc };
            extent.check("blob extent", end)?;
            Ok(Some(extent))
        }
        _ => Err(Error::unsupported("blob form").at(at).found(form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::format::{ObjectId, key};

    const END: u64 = 1 << 62;

    fn decode(bytes: &[u8]) -> Result<ChunkRecord> {
        ChunkRecord::decode(bytes, 0x4000, END)
    }

    fn stored(len: u64) -> ChunkRecord {
        let extent = Extent {
            offset: 0x3008,
            len,
            crc: 0x0403_0201,
        };
        ChunkRecord::Stored { extent, mask: 5 }
    }

    #[test]
    fn records_have_the_bytes_of_the_specification() {
        let short = [
            8, 0x30, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 2, 3, 4, 0, 5, 0, 0,
        ];
        assert_eq!(stored(7).encode().as_slice(), short);
        assert_eq!(decode(&short).unwrap(), stored(7));
        let long = [
            8, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 5, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
        ];
        assert_eq!(stored((1 << 32) + 2).encode().as_slice(), long);
        assert_eq!(decode(&long).unwrap(), stored((1 << 32) + 2));
        let mut fill = [0; 20];
        fill[16] = 3;
        assert_eq!(ChunkRecord::Fill.encode().as_slice(), fill);
        assert_eq!(decode(&fill).unwrap(), ChunkRecord::Fill);
        let mut constant = [9; 20];
        constant[16..].copy_from_slice(&[2, 0, 0, 0]);
        assert_eq!(ChunkRecord::Constant([9; 16]).encode().as_slice(), constant);
        assert_eq!(decode(&constant).unwrap(), ChunkRecord::Constant([9; 16]));
    }

    fn altered(record: ChunkRecord, at: usize, byte: u8) -> ErrorKind {
        let mut bytes = record.encode();
        bytes[at] = byte;
        decode(&bytes).unwrap_err().kind()
    }

    #[test]
    fn a_later_kind_or_flag_is_unsupported_and_a_broken_rule_is_corrupt() {
        for (at, byte) in [(16, 1), (16, 5), (18, 1), (19, 0x80)] {
            assert_eq!(altered(stored(7), at, byte), ErrorKind::Unsupported);
        }
        // An empty extent, an unaligned one, one in the slots; a kind whose length differs.
        for (at, byte) in [(8, 0), (0, 9), (1, 0x20), (16, 4)] {
            assert_eq!(altered(stored(7), at, byte), ErrorKind::Corrupt);
        }
        // A long extent with bytes where the short length stands, one that is short, one of 2^63 bytes.
        for (at, byte) in [(8, 1), (24, 0), (27, 0x80)] {
            assert_eq!(altered(stored(1 << 32), at, byte), ErrorKind::Corrupt);
        }
        assert_eq!(altered(ChunkRecord::Fill, 3, 1), ErrorKind::Corrupt);
        assert_eq!(altered(ChunkRecord::Fill, 17, 1), ErrorKind::Corrupt);
        assert_eq!(
            altered(ChunkRecord::Constant([9; 16]), 17, 1),
            ErrorKind::Corrupt
        );
        assert_eq!(decode(&[0; 19]).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(decode(&[0; 21]).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn an_entry_owns_the_extent_that_its_tag_and_value_say() {
        let chunk = key::chunk(ObjectId(1), &[0], &[0]);
        let (extent, owner) = extent_of(&chunk, &stored(7).encode(), 0, END)
            .unwrap()
            .unwrap();
        assert_eq!(
            (extent.offset, extent.len, owner),
            (0x3008, 7, Owner::Payload)
        );
        assert_eq!(
            extent_of(&chunk, &ChunkRecord::Fill.encode(), 0, END).unwrap(),
            None
        );
        let mut blob = vec![
            2, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 1, 2, 3, 4,
        ];
        let document = key::document(ObjectId(0));
        let (extent, owner) = extent_of(&document, &blob, 0, END).unwrap().unwrap();
        assert_eq!(
            (extent.offset, extent.len, extent.crc),
            (0x4000, 9, 0x0403_0201)
        );
        assert_eq!(owner, Owner::Blob);
        assert_eq!(extent_of(&key::history(1), &blob, 0, END).unwrap(), None);
        assert_eq!(extent_of(&document, b"\x00\x00{}", 0, END).unwrap(), None);
        blob.push(0);
        assert!(
            extent_of(&document, &blob, 0, END)
                .unwrap_err()
                .is_corruption()
        );
        let e = extent_of(&document, b"\x03\x00", 0, END).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
    }
}
