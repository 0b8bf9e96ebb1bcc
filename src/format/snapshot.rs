//! Snapshot record: keeps the root of an old generation reachable. Spec: `format-spec/08-snapshots-history.md`.
//!
//! Holds [`SnapshotRecord`] and its validation. Must not check labels against each other: that needs the whole tree.

use unicode_normalization::is_nfc;

use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::limits::{MESSAGE_LEN_MAX, NAME_LEN_MAX};

use super::slot::Root;

const REFERENCED: u32 = 1;

/// A retained generation, under the key that holds its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotRecord {
    pub(crate) root: Root,
    pub(crate) label: String,
    /// Bytes that are kept and not interpreted.
    pub(crate) extension: Vec<u8>,
    /// References to its extents were handed out.
    pub(crate) referenced: bool,
    pub(crate) time: i64,
}

impl SnapshotRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(40);
        self.root.encode(&mut w);
        w.u8(u8::try_from(self.label.len()).unwrap_or(u8::MAX));
        w.u16(u16::try_from(self.extension.len()).unwrap_or(u16::MAX));
        w.u32(if self.referenced { REFERENCED } else { 0 });
        w.i64(self.time);
        w.slice(self.label.as_bytes());
        w.slice(&self.extension);
        w.into_vec()
    }

    /// Reads a record; `offset` is that of the node it stands in.
    pub(crate) fn decode(bytes: &[u8], offset: u64) -> Result<Self> {
        let mut r = Reader::new("snapshot record", offset, bytes);
        let root = Root::decode(&mut r)?;
        let label_len = usize::from(r.u8()?);
        let extension_len = usize::from(r.u16()?);
        let flags = r.u32()?;
        if flags & !REFERENCED != 0 {
            return Err(Error::unsupported("snapshot")
                .at(offset)
                .expected("flag 0 alone")
                .found(format_args!("{flags:#x}"))
                .help("a newer release of orthant reads this snapshot"));
        }
        let time = r.i64()?;
        if label_len == 0 || label_len > NAME_LEN_MAX || extension_len > MESSAGE_LEN_MAX {
            return Err(r
                .fault()
                .expected("a label of 1..=255 and an extension of at most 1,024 bytes")
                .found(format_args!("{label_len} and {extension_len}")));
        }
        let label = r.take(label_len)?;
        let Some(label) = std::str::from_utf8(label).ok().filter(|l| is_nfc(l)) else {
            return Err(r
                .fault()
                .expected("a label in NFC UTF-8")
                .found("other bytes"));
        };
        let extension = r.take(extension_len)?.to_vec();
        r.finish()?;
        Ok(Self {
            root,
            label: label.to_owned(),
            extension,
            referenced: flags & REFERENCED != 0,
            time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::format::extent::NodeRef;

    fn sample() -> SnapshotRecord {
        SnapshotRecord {
            root: Root {
                node: NodeRef {
                    offset: 0x4068,
                    len: 99,
                    crc: 3,
                    count: 1,
                },
                level: 2,
            },
            label: "run-1".to_owned(),
            extension: vec![1, 2],
            referenced: true,
            time: 12,
        }
    }

    #[test]
    fn a_record_reads_back_and_no_cut_does() {
        let bytes = sample().encode();
        assert_eq!(bytes.len(), 47);
        assert_eq!(SnapshotRecord::decode(&bytes, 0).unwrap(), sample());
        for len in 0..bytes.len() {
            assert!(SnapshotRecord::decode(&bytes[..len], 0).is_err());
        }
        assert!(SnapshotRecord::decode(&[&bytes[..], &[0]].concat(), 0).is_err());
    }

    #[test]
    fn an_unknown_flag_is_unsupported_and_an_empty_or_denormal_label_corrupt() {
        let kind = |bytes: &[u8]| SnapshotRecord::decode(bytes, 0).unwrap_err().kind();
        let mut bytes = sample().encode();
        bytes[28] = 3;
        assert_eq!(kind(&bytes), ErrorKind::Unsupported);
        let empty = SnapshotRecord {
            label: String::new(),
            ..sample()
        };
        assert_eq!(kind(&empty.encode()), ErrorKind::Corrupt);
        let denormal = SnapshotRecord {
            label: "e\u{301}".to_owned(),
            ..sample()
        };
        assert_eq!(kind(&denormal.encode()), ErrorKind::Corrupt);
    }
}
