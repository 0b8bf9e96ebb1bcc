//! The frame of Blosc 1: its header, the starts of its blocks, the streams of a block.
//!
//! Holds [`Frame`] for reading and [`Header`] for writing. Must not compress or shuffle.
//!
//! Invariants of a read frame: `block_len` is at least 1; every stream lies within the frame.

use smallvec::SmallVec;

use super::super::deflate::{Deflate, Framing};
use super::super::output::bad;
use super::super::zstd::Zstd;
use super::{BLOCK_LEN, Blosc, DECODED_LEN_MAX, Filter, Method, NAME, broken};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};

/// Bytes before the starts of blocks.
pub(super) const HEADER_LEN: usize = 16;
/// Version of the frame, and of each compressor's stream in it.
const VERSION: u8 = 2;
const STREAM_VERSION: u8 = 1;
const BYTE_SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BIT_SHUFFLED: u8 = 0x04;
const NOT_SPLIT: u8 = 0x10;
/// A block is split into a stream for each byte of an element up to this many.
const SPLITS_MAX: usize = 16;
/// A block whose streams would be shorter than this is not split.
const STREAM_LEN_MIN: usize = 128;

/// The compressor that a frame names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "blosclz" => Self::BloscLz,
            "lz4" | "lz4hc" => Self::Lz4,
            "snappy" => Self::Snappy,
            "zlib" => Self::Zlib,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }

    fn from_code(code: u8) -> Result<Self> {
        Ok(match code {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Snappy,
            3 => Self::Zlib,
            4 => Self::Zstd,
            _ => return Err(bad(NAME, format_args!("compressor {code}"))),
        })
    }

    fn code(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }

    /// Whether there is an encoder for it here.
    pub(super) fn is_written(self) -> bool {
        !matches!(self, Self::BloscLz | Self::Snappy)
    }

    /// What packs streams, at Blosc's `level`, and turns them back.
    pub(super) fn method(self, level: i32, window_len_max: u64) -> Result<Method> {
        Ok(match self {
            Self::BloscLz => Method::BloscLz,
            Self::Lz4 => Method::Lz4,
            Self::Snappy => {
                return Err(Error::unsupported("blosc frame of Snappy").reason("codec"));
            }
            Self::Zlib => Method::Zlib(Deflate::new(Framing::Zlib, level)),
            // The levels that c-blosc takes for its own nine.
            Self::Zstd => {
                let level = match level {
                    9 => 22,
                    _ => level.saturating_mul(2).saturating_sub(1).max(1),
                };
                Method::Zstd(Zstd::new(level, window_len_max))
            }
        })
    }
}

/// A frame that is read.
pub(super) struct Frame<'a> {
    src: &'a [u8],
    pub(super) compressor: Compressor,
    pub(super) filter: Filter,
    pub(super) element_len: usize,
    pub(super) decoded_len: usize,
    pub(super) block_len: usize,
    flags: u8,
    block_count: usize,
}

impl<'a> Frame<'a> {
    pub(super) fn read(src: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new("header of a blosc frame", 0, src);
        let version = r.u8()?;
        if !(1..=VERSION).contains(&version) {
            return Err(bad(NAME, format_args!("a frame of version {version}")));
        }
        let _stream_version = r.u8()?;
        let flags = r.u8()?;
        let element_len = usize::from(r.u8()?).max(1);
        let mut len = || r.u32().map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let (decoded_len, block_len, frame_len) = (len()?, len()?, len()?);
        if frame_len != src.len() {
            return Err(bad(
                NAME,
                format_args!("a frame of {frame_len} bytes in {}", src.len()),
            ));
        }
        if decoded_len > 0 && block_len == 0 {
            return Err(broken("blocks of no bytes"));
        }
        let filter = match (flags & BYTE_SHUFFLED, flags & BIT_SHUFFLED) {
            (0, 0) => Filter::None,
            (_, 0) => Filter::Bytes,
            (0, _) => Filter::Bits,
            _ => return Err(broken("both shuffles at once")),
        };
        Ok(Self {
            src,
            compressor: Compressor::from_code(flags >> 5)?,
            filter,
            element_len,
            decoded_len,
            block_len: block_len.max(1),
            flags,
            block_count: decoded_len.div_ceil(block_len.max(1)),
        })
    }

    /// The bytes, where they are stored as they are.
    pub(super) fn stored(&self) -> Result<Option<&'a [u8]>> {
        if self.flags & STORED == 0 && self.decoded_len > 0 {
            return Ok(None);
        }
        match self.src.get(HEADER_LEN..) {
            Some(bytes) if bytes.len() == self.decoded_len => Ok(Some(bytes)),
            _ => Err(broken("a stored frame of another length")),
        }
    }

    /// The streams of a block of `len` decoded bytes: one, or one for each byte of an element.
    pub(super) fn streams(&self, number: usize, len: usize) -> Result<SmallVec<[&'a [u8]; 16]>> {
        let at = number.saturating_mul(4).saturating_add(HEADER_LEN);
        let start = self.u32(at)?;
        let first = self
            .block_count
            .saturating_mul(4)
            .saturating_add(HEADER_LEN);
        if start < first {
            return Err(broken("a block within the header"));
        }
        let split = self.flags & NOT_SPLIT == 0
            && self.element_len <= SPLITS_MAX
            && len == self.block_len
            && len.checked_div(self.element_len).unwrap_or(0) >= STREAM_LEN_MIN;
        let count = if split { self.element_len } else { 1 };
        if len.checked_rem(count) != Some(0) {
            return Err(broken("a block that does not split evenly"));
        }
        let mut streams = SmallVec::new();
        let mut at = start;
        for _ in 0..count {
            let len = self.u32(at)?;
            let from = at.saturating_add(4);
            let to = from.saturating_add(len);
            let stream = self.src.get(from..to);
            streams.push(stream.ok_or_else(|| broken("a stream past the end of the frame"))?);
            at = to;
        }
        Ok(streams)
    }

    fn u32(&self, at: usize) -> Result<usize> {
        let word = self.src.get(at..).and_then(|s| s.first_chunk::<4>());
        let word = word.ok_or_else(|| broken("a frame cut short"))?;
        Ok(usize::try_from(u32::from_le_bytes(*word)).unwrap_or(usize::MAX))
    }
}

/// The header of a frame that is written.
pub(super) struct Header {
    flags: u8,
    element_len: u8,
    len: u32,
    block_len: u32,
    block_count: usize,
}

impl Header {
    pub(super) fn new(codec: &Blosc, len: usize) -> Result<Self> {
        let too_long = || {
            Error::limit("input of codec blosc")
                .expected(format_args!("at most {DECODED_LEN_MAX} bytes"))
                .found(len)
                .help("choose a smaller chunk, or zstd")
        };
        let len = Some(len).filter(|len| *len <= DECODED_LEN_MAX);
        let len = len.ok_or_else(too_long)?;
        let filter = match codec.filter {
            Filter::None => 0,
            Filter::Bytes => BYTE_SHUFFLED,
            Filter::Bits => BIT_SHUFFLED,
        };
        let block_len = len.clamp(1, BLOCK_LEN);
        Ok(Self {
            flags: filter | NOT_SPLIT | (codec.compressor.code() << 5),
            element_len: u8::try_from(codec.element_len).unwrap_or(1),
            len: u32::try_from(len).map_err(|_| too_long())?,
            block_len: u32::try_from(block_len).map_err(|_| too_long())?,
            block_count: len.div_ceil(block_len),
        })
    }

    /// Room for the header and the starts of blocks.
    pub(super) fn start(&self, out: &mut Vec<u8>) {
        out.resize(
            self.block_count
                .saturating_mul(4)
                .saturating_add(HEADER_LEN),
            0,
        );
    }

    /// Appends a block of one stream.
    pub(super) fn push(number: usize, stream: &[u8], out: &mut Vec<u8>) {
        let at = number.saturating_mul(4).saturating_add(HEADER_LEN);
        let start = u32::try_from(out.len()).unwrap_or(u32::MAX).to_le_bytes();
        if let Some(place) = out.get_mut(at..at.saturating_add(4)) {
            place.copy_from_slice(&start);
        }
        out.extend(
            u32::try_from(stream.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes(),
        );
        out.extend_from_slice(stream);
    }

    /// Fills the header in, now that the length of the frame is known.
    pub(super) fn finish(&self, out: &mut [u8]) {
        self.put(self.flags, out);
    }

    /// The whole frame, its bytes stored as they are.
    pub(super) fn stored(&self, src: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.resize(HEADER_LEN, 0);
        out.extend_from_slice(src);
        self.put(self.flags | STORED, out);
    }

    fn put(&self, flags: u8, out: &mut [u8]) {
        let mut w = Writer::with_capacity(HEADER_LEN);
        w.u8(VERSION);
        w.u8(STREAM_VERSION);
        w.u8(flags);
        w.u8(self.element_len);
        w.u32(self.len);
        w.u32(self.block_len);
        w.u32(u32::try_from(out.len()).unwrap_or(u32::MAX));
        if let Some(place) = out.get_mut(..HEADER_LEN) {
            place.copy_from_slice(w.as_slice());
        }
    }
}
