//! Commit record: lets `salvage` find a generation when both slots are lost. Spec: `format-spec/09-commit.md`.
//!
//! Holds [`CommitRecord`] and its validation. Must not follow its links.

use crate::bytes::{Reader, Writer, crc32c};
use crate::error::{Error, Result};
use crate::limits::MESSAGE_LEN_MAX;

use super::Generation;
use super::extent::Extent;
use super::slot::Root;

const MAGIC: [u8; 4] = *b"ORTC";
/// Length of a record without a message.
pub(crate) const FIXED_LEN: usize = 102;

/// What one durable commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    pub(crate) generation: Generation,
    /// The record before; none for the first.
    pub(crate) previous: Option<Extent>,
    pub(crate) root: Root,
    pub(crate) time: i64,
    pub(crate) uuid: [u8; 16],
    /// How many keys the commit put or deleted.
    pub(crate) changed: u64,
    pub(crate) message: Vec<u8>,
}

impl CommitRecord {
    /// How many bytes the record takes.
    pub(crate) fn encoded_len(&self) -> usize {
        FIXED_LEN.saturating_add(self.message.len())
    }

    /// The record's bytes and the checksum at their end.
    pub(crate) fn encode(&self) -> (Vec<u8>, u32) {
        let len = self.encoded_len();
        let mut w = Writer::with_capacity(len);
        w.slice(&MAGIC);
        w.u32(u32::try_from(len).unwrap_or(u32::MAX));
        w.u64(self.generation);
        let previous = self.previous.unwrap_or(Extent {
            offset: 0,
            len: 0,
            crc: 0,
        });
        w.u64(previous.offset);
        w.u32(u32::try_from(previous.len).unwrap_or(u32::MAX));
        w.u32(previous.crc);
        self.root.encode(&mut w);
        w.zeros(7);
        w.i64(self.time);
        w.slice(&self.uuid);
        w.u64(self.changed);
        w.u16(u16::try_from(self.message.len()).unwrap_or(u16::MAX));
        w.slice(&self.message);
        let crc = crc32c(w.as_slice());
        w.u32(crc);
        (w.into_vec(), crc)
    }

    /// Reads the record whose bytes lie at `offset`; `bytes` is the whole record and nothing else.
    pub(crate) fn decode(bytes: &[u8], offset: u64) -> Result<Self> {
        let mut r = Reader::new("commit record", offset, bytes);
        let Some((covered, _)) = bytes.split_last_chunk::<4>() else {
            return Err(r
                .fault()
                .expected(format_args!("at least {FIXED_LEN} bytes"))
                .found(bytes.len()));
        };
        if r.array()? != MAGIC {
            return Err(r.fault().expected("the magic ORTC").found("another"));
        }
        let len = r.u32()?;
        if u64::from(len) != bytes.len() as u64 {
            return Err(r
                .fault()
                .expected(format_args!("length {}", bytes.len()))
                .found(len));
        }
        let generation = r.u64()?;
        let previous = previous(&mut r)?;
        let root = Root::decode(&mut r)?;
        let mut reserved = r.sub("commit record", 7)?;
        let time = r.i64()?;
        let uuid = r.array()?;
        let changed = r.u64()?;
        let message_len = usize::from(r.u16()?);
        if message_len > MESSAGE_LEN_MAX {
            return Err(r
                .fault()
                .expected(format_args!("a message of at most {MESSAGE_LEN_MAX} bytes"))
                .found(message_len));
        }
        let message = r.take(message_len)?;
        let crc = r.u32()?;
        let computed = crc32c(covered);
        if crc != computed {
            return Err(r
                .fault()
                .expected(format_args!("crc32c {computed:08x}"))
                .found(format_args!("{crc:08x}")));
        }
        reserved.zeros(7, "reserved bytes")?;
        check_text(message, &r)?;
        r.finish()?;
        Ok(Self {
            generation,
            previous,
            root,
            time,
            uuid,
            changed,
            message: message.to_vec(),
        })
    }
}

/// Refuses a message that is not UTF-8.
fn check_text(message: &[u8], r: &Reader<'_>) -> Result<()> {
    match std::str::from_utf8(message) {
        Ok(_) => Ok(()),
        Err(_) => Err(r
            .fault()
            .expected("a message in UTF-8")
            .found("other bytes")),
    }
}

fn previous(r: &mut Reader<'_>) -> Result<Option<Extent>> {
    let at = r.position();
    let extent = Extent {
        offset: r.u64()?,
        len: u64::from(r.u32()?),
        crc: r.u32()?,
    };
    match extent {
        Extent {
            offset: 0,
            len: 0,
            crc: 0,
        } => Ok(None),
        Extent { offset: 0, .. } => Err(Error::corrupt("commit record")
            .at(at)
            .expected("zeros without a previous record")
            .found("a length or checksum")),
        _ => Ok(Some(extent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::extent::NodeRef;

    pub(crate) fn sample() -> CommitRecord {
        CommitRecord {
            generation: 5,
            previous: Some(Extent {
                offset: 0x4000,
                len: 102,
                crc: 7,
            }),
            root: Root {
                node: NodeRef {
                    offset: 0x6068,
                    len: 99,
                    crc: 3,
                    count: 1,
                },
                level: 0,
            },
            time: -1,
            uuid: [4; 16],
            changed: 2,
            message: "sönderbar".as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_record_ends_in_its_checksum_and_reads_back() {
        let (bytes, crc) = sample().encode();
        assert_eq!(bytes.len(), 112);
        assert_eq!(bytes[108..], crc.to_le_bytes());
        assert_eq!(CommitRecord::decode(&bytes, 0x6000).unwrap(), sample());
        let first = CommitRecord {
            previous: None,
            message: Vec::new(),
            ..sample()
        };
        let (bytes, _) = first.encode();
        assert_eq!(bytes.len(), FIXED_LEN);
        assert_eq!(CommitRecord::decode(&bytes, 0x3000).unwrap(), first);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_an_error() {
        let (bytes, _) = sample().encode();
        for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            assert!(CommitRecord::decode(&bad, 0).unwrap_err().is_corruption());
        }
        for len in 0..bytes.len() {
            assert!(
                CommitRecord::decode(&bytes[..len], 0)
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }
}
