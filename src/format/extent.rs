//! Where stored bytes lie, and the checksum they must have. Spec: `format-spec/01-layout.md`.
//!
//! Holds [`Extent`] and [`NodeRef`] with their validation. Must not read the file they point into.
//!
//! Invariants of a valid extent: at least one byte, a start at a multiple of 8, inside the data region.

use super::{ALIGN, DATA_START};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::limits::NODE_LEN_MAX;

/// Stored bytes in the file: a payload, a blob or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Absolute position, a multiple of 8.
    pub(crate) offset: u64,
    /// Length in bytes, at least 1.
    pub(crate) len: u64,
    /// CRC32C of those bytes (of a node: the value at its byte 28).
    pub(crate) crc: u32,
}

impl Extent {
    /// First byte after it; saturates, so that a nonsensical length fails every bound.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Refuses an extent that is empty, unaligned or not inside `[DATA_START, end)`.
    #[inline]
    pub(crate) fn check(&self, what: &'static str, end: u64) -> Result<()> {
        let inside = self.offset >= DATA_START
            && self.offset.checked_add(self.len).is_some_and(|e| e <= end);
        if inside && self.len > 0 && self.offset.is_multiple_of(ALIGN) {
            return Ok(());
        }
        Err(Error::corrupt(what)
            .at(self.offset)
            .spanning(self.len)
            .expected(format_args!(
                "at least one byte at a multiple of {ALIGN} within {DATA_START}..{end}"
            )))
    }
}

/// A reference to an index node, as it stands in a slot or a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeRef {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) crc: u32,
    /// Leaf entries below: advisory, never sizes an allocation.
    pub(crate) count: u64,
}

impl NodeRef {
    /// Bytes of an encoded reference.
    pub(crate) const LEN: usize = 24;

    /// Reads a reference. Its range is checked by [`NodeRef::check`], which needs to know the snapshot's end.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            offset: r.u64()?,
            len: r.u32()?,
            crc: r.u32()?,
            count: r.u64()?,
        })
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u64(self.offset);
        w.u32(self.len);
        w.u32(self.crc);
        w.u64(self.count);
    }

    /// Refuses a reference that no node inside `[DATA_START, end)` can have.
    pub(crate) fn check(&self, end: u64) -> Result<()> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        if len <= super::node::HEADER_LEN || len > NODE_LEN_MAX {
            return Err(Error::corrupt("node reference")
                .at(self.offset)
                .expected(format_args!("a length of 33..={NODE_LEN_MAX}"))
                .found(self.len));
        }
        self.extent().check("node reference", end)
    }

    /// The bytes of the node.
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            offset: self.offset,
            len: u64::from(self.len),
            crc: self.crc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_aligned_non_empty_and_inside_the_data_region() {
        let ok = Extent {
            offset: DATA_START,
            len: 8,
            crc: 0,
        };
        ok.check("extent", DATA_START + 8).unwrap();
        for (offset, len) in [
            (DATA_START, 9),
            (DATA_START, 0),
            (DATA_START - 8, 8),
            (DATA_START + 4, 4),
            (DATA_START, u64::MAX),
            (u64::MAX - 7, 8),
        ] {
            let bad = Extent {
                offset,
                len,
                crc: 0,
            };
            assert!(
                bad.check("extent", DATA_START + 8)
                    .unwrap_err()
                    .is_corruption(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_node_reference_has_24_bytes_and_a_length_that_a_node_can_have() {
        let node = NodeRef {
            offset: 0x3000,
            len: 33,
            crc: 0x0403_0201,
            count: 5,
        };
        let mut w = Writer::default();
        node.encode(&mut w);
        let bytes = w.into_vec();
        assert_eq!(
            bytes,
            [
                0, 0x30, 0, 0, 0, 0, 0, 0, 33, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0
            ]
        );
        let back = NodeRef::decode(&mut Reader::new("reference", 0, &bytes)).unwrap();
        assert_eq!(back, node);
        node.check(0x3000 + 33).unwrap();
        assert!(node.check(0x3000 + 32).is_err());
        for len in [0, 32, 65_537] {
            assert!(
                NodeRef { len, ..node }
                    .check(1 << 40)
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }
}
