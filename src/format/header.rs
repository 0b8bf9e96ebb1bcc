//! Static header: the first bytes of a container, written once. Spec: `format-spec/02-header.md`.
//!
//! Holds [`Header`], its 256 bytes and their validation, and what a foreign file looks like ([`identify`] is in
//! `foreign.rs`). Must not read the slots.

use crate::bytes::{Reader, Writer, crc32c};
use crate::error::{Error, Result};

use super::foreign::identify;
use super::{BLOCK, DATA_START, MAJOR, MINOR};

/// Bytes of the header that carry meaning.
pub(crate) const HEADER_LEN: usize = 256;
/// First bytes of every container.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'O', b'R', b'T', 0x0D, 0x0A, 0x1A, 0x0A];
/// Bytes that the checksum covers.
const COVERED: usize = HEADER_LEN - 4;
const HEADER_LEN_FIELD: u32 = 256;
const BLOCK_LOG2: u8 = 12;
const SLOT_STRIDE: u32 = 4096;
const SLOT_COUNT: u8 = 2;

/// Identity and origin of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) minor: u16,
    pub(crate) uuid: [u8; 16],
    /// Nanoseconds since the Unix epoch.
    pub(crate) created: i64,
    /// Bytes worth fetching at once when opening; 0 stands for 65,536. A hint.
    pub(crate) front_len: u64,
    /// Informative text, zero padded.
    pub(crate) application: [u8; 16],
    /// The file this one replaced; zero: none.
    pub(crate) parent: [u8; 16],
    /// Checksum of the rest, repeated in both slots.
    pub(crate) crc: u32,
}

impl Header {
    /// The header of a new container.
    pub(crate) fn new(uuid: [u8; 16], created: i64, application: [u8; 16]) -> Self {
        Self::whole(uuid, created, application, 0, [0; 16])
    }

    /// The header of a container that is written whole.
    pub(crate) fn whole(
        uuid: [u8; 16],
        created: i64,
        application: [u8; 16],
        front_len: u64,
        parent: [u8; 16],
    ) -> Self {
        let mut header = Self {
            minor: MINOR,
            uuid,
            created,
            front_len,
            application,
            parent,
            crc: 0,
        };
        header.crc = crc32c(&header.covered());
        header
    }

    /// The full block at offset 0.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.covered();
        let crc = crc32c(&bytes);
        let mut tail = Writer::with_capacity(4);
        tail.u32(crc);
        bytes.extend_from_slice(tail.as_slice());
        bytes.resize(BLOCK_LEN, 0);
        bytes
    }

    fn covered(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(BLOCK_LEN);
        w.slice(&MAGIC);
        w.u16(MAJOR);
        w.u16(self.minor);
        w.u32(HEADER_LEN_FIELD);
        w.slice(&self.uuid);
        w.i64(self.created);
        w.u8(BLOCK_LOG2);
        w.u8(SLOT_COUNT);
        w.zeros(2);
        w.u32(SLOT_STRIDE);
        w.u64(BLOCK);
        w.u64(DATA_START);
        w.u64(self.front_len);
        w.u64(0);
        w.slice(&self.application);
        w.slice(&self.parent);
        w.pad_to(COVERED);
        w.into_vec()
    }

    /// Reads the header of a file of `file_len` bytes from its first ones, at most [`HEADER_LEN`] of which count.
    ///
    /// # Errors
    /// In this order: `NotContainer` by the magic, `Corrupt` for a short file or a wrong checksum, `Unsupported` for
    /// another version or layout, `Corrupt` for reserved bytes.
    pub(crate) fn decode(bytes: &[u8], file_len: u64) -> Result<Self> {
        if bytes.is_empty() || !MAGIC.starts_with(bytes.get(..MAGIC.len()).unwrap_or(bytes)) {
            return Err(Error::not_container(identify(bytes, file_len))
                .help("give the path of a `.orth` file, or `orthant import` this one"));
        }
        let Some(covered) = bytes.get(..COVERED) else {
            return Err(too_short(file_len));
        };
        if file_len < DATA_START {
            return Err(too_short(file_len));
        }
        let mut r = Reader::new(
            "header",
            COVERED as u64,
            bytes.get(COVERED..).unwrap_or(&[]),
        );
        let crc = r.u32()?;
        let computed = crc32c(covered);
        if crc != computed {
            return Err(Error::corrupt("header")
                .at(COVERED as u64)
                .expected(format_args!("crc32c {computed:08x}"))
                .found(format_args!("{crc:08x}"))
                .help("the file's first bytes are damaged; restore it from a copy"));
        }
        Self::fields(Reader::new("header", 0, covered), crc)
    }

    fn fields(mut r: Reader<'_>, crc: u32) -> Result<Self> {
        r.take(MAGIC.len())?;
        check_major(r.u16()?, r.position())?;
        let minor = r.u16()?;
        fixed(
            "header_len",
            r.position(),
            HEADER_LEN as u64,
            u64::from(r.u32()?),
        )?;
        let uuid = r.array()?;
        let created = r.i64()?;
        fixed(
            "block_log2",
            r.position(),
            u64::from(BLOCK_LOG2),
            u64::from(r.u8()?),
        )?;
        fixed(
            "slot_count",
            r.position(),
            u64::from(SLOT_COUNT),
            u64::from(r.u8()?),
        )?;
        let reserved = r.sub("header", 2)?;
        fixed("slot_stride", r.position(), BLOCK, u64::from(r.u32()?))?;
        fixed("slot0_offset", r.position(), BLOCK, r.u64()?)?;
        fixed("data_start", r.position(), DATA_START, r.u64()?)?;
        let front_len = r.u64()?;
        check_incompat("header", r.u64()?)?;
        let application = r.array()?;
        let parent = r.array()?;
        let mut reserved = reserved;
        reserved.zeros(2, "reserved bytes")?;
        r.zeros(112 + 28, "reserved bytes")?;
        r.finish()?;
        Ok(Self {
            minor,
            uuid,
            created,
            front_len,
            application,
            parent,
            crc,
        })
    }
}

/// The block length where memory is sized by it.
pub(super) const BLOCK_LEN: usize = 4096;

/// Refuses a major version that this library does not know.
pub(super) fn check_major(major: u16, after: u64) -> Result<()> {
    if major == MAJOR {
        return Ok(());
    }
    Err(Error::unsupported("format version")
        .at(after.saturating_sub(2))
        .expected(format_args!("major version {MAJOR}"))
        .found(format_args!("major version {major}"))
        .help("a newer release of orthant reads this file"))
}

/// Refuses features a reader must know; version 0 defines none.
pub(super) fn check_incompat(what: &'static str, flags: u64) -> Result<()> {
    if flags == 0 {
        return Ok(());
    }
    Err(
        Error::unsupported(format!("incompatible features in the {what}"))
            .expected("none")
            .found(format_args!("bits {flags:#x}"))
            .help("a newer release of orthant reads this file"),
    )
}

fn fixed(field: &'static str, at: u64, expected: u64, found: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::unsupported(format!("layout ({field})"))
        .at(at)
        .expected(expected)
        .found(found)
        .help("a newer release of orthant may read this file"))
}

fn too_short(file_len: u64) -> Error {
    Error::corrupt("header")
        .at(0)
        .expected(format_args!("at least {DATA_START} bytes"))
        .found(format_args!("a file of {file_len} bytes"))
        .help("the file is cut short; restore it from a copy")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn sample() -> Header {
        Header::new(
            [7; 16],
            1_600_000_000_000_000_000,
            *b"tests\0\0\0\0\0\0\0\0\0\0\0",
        )
    }

    fn decode(bytes: &[u8]) -> Result<Header> {
        Header::decode(bytes.get(..HEADER_LEN).unwrap_or(bytes), 12_569)
    }

    /// The header with `change` applied and its checksum made right again.
    fn forged(change: impl Fn(&mut [u8])) -> Result<Header> {
        let mut bytes = sample().encode();
        change(&mut bytes);
        let crc = crc32c(&bytes[..252]);
        let mut w = Writer::default();
        w.u32(crc);
        bytes[252..256].copy_from_slice(w.as_slice());
        decode(&bytes)
    }

    #[test]
    fn a_header_reads_back_and_every_flipped_bit_is_an_error() {
        let bytes = sample().encode();
        assert_eq!(bytes.len(), 4096);
        assert_eq!(decode(&bytes).unwrap(), sample());
        for (at, bit) in (0..256).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            assert!(decode(&bad).is_err(), "bit {bit} of byte {at}");
        }
    }

    #[test]
    fn rules_hold_behind_a_right_checksum() {
        let kind = |r: Result<Header>| r.unwrap_err().kind();
        let e = forged(|b| b[8] = 1).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(
            e.to_string().contains("major version 0") && e.to_string().contains("major version 1")
        );
        for at in [12, 40, 41, 44, 48, 56, 72] {
            assert_eq!(kind(forged(|b| b[at] ^= 1)), ErrorKind::Unsupported, "{at}");
        }
        for at in [42, 112, 251] {
            assert_eq!(kind(forged(|b| b[at] = 1)), ErrorKind::Corrupt, "{at}");
        }
        assert_eq!(forged(|b| b[10] = 9).unwrap().minor, 9);
        assert_eq!(forged(|b| b[64] = 9).unwrap().front_len, 9);
    }

    #[test]
    fn a_cut_header_is_told_apart_from_a_foreign_file() {
        let bytes = sample().encode();
        for len in 0..256 {
            let e = Header::decode(&bytes[..len], len as u64).unwrap_err();
            let expected = if len == 0 {
                ErrorKind::NotContainer
            } else {
                ErrorKind::Corrupt
            };
            assert_eq!(e.kind(), expected, "{len}");
        }
        let zeros = Header::decode(&[&MAGIC[..], &[0; 248]].concat(), 12_569).unwrap_err();
        assert_eq!(zeros.kind(), ErrorKind::Corrupt);
    }
}
