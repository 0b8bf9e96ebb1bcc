//! History record: what a commit says about itself in the tree. Spec: `format-spec/08-snapshots-history.md`.
//!
//! Holds [`HistoryRecord`] and its validation. Must not know how many are kept.

use crate::bytes::{Reader, Writer};
use crate::error::Result;
use crate::limits::MESSAGE_LEN_MAX;

const RESTORE: u16 = 1;

/// One commit, under the key that holds its generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryRecord {
    pub(crate) time: i64,
    /// Keys put or deleted; snapshots and history do not count.
    pub(crate) changed: u64,
    pub(crate) restore: bool,
    pub(crate) message: String,
}

impl HistoryRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(20);
        w.i64(self.time);
        w.u64(self.changed);
        w.u16(if self.restore { RESTORE } else { 0 });
        w.u16(u16::try_from(self.message.len()).unwrap_or(u16::MAX));
        w.slice(self.message.as_bytes());
        w.into_vec()
    }

    /// Reads a record; `offset` is that of the node it stands in.
    pub(crate) fn decode(bytes: &[u8], offset: u64) -> Result<Self> {
        let mut r = Reader::new("history record", offset, bytes);
        let time = r.i64()?;
        let changed = r.u64()?;
        let flags = r.u16()?;
        if flags & !RESTORE != 0 {
            return Err(r
                .fault()
                .expected("flag 0 alone")
                .found(format_args!("{flags:#x}")));
        }
        let len = usize::from(r.u16()?);
        if len > MESSAGE_LEN_MAX {
            return Err(r
                .fault()
                .expected(format_args!("a message of at most {MESSAGE_LEN_MAX} bytes"))
                .found(len));
        }
        let Ok(message) = std::str::from_utf8(r.take(len)?) else {
            return Err(r
                .fault()
                .expected("a message in UTF-8")
                .found("other bytes"));
        };
        r.finish()?;
        Ok(Self {
            time,
            changed,
            restore: flags & RESTORE != 0,
            message: message.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_no_cut_does() {
        let record = HistoryRecord {
            time: 5,
            changed: 3,
            restore: true,
            message: "hi".to_owned(),
        };
        let bytes = record.encode();
        assert_eq!(bytes.len(), 22);
        assert_eq!(HistoryRecord::decode(&bytes, 0).unwrap(), record);
        for len in 0..bytes.len() {
            assert!(HistoryRecord::decode(&bytes[..len], 0).is_err());
        }
        let mut bad = bytes;
        bad[16] = 2;
        assert!(HistoryRecord::decode(&bad, 0).unwrap_err().is_corruption());
    }
}
