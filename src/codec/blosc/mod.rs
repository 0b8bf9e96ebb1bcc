//! Codec `blosc`: bytes to bytes, filter and compressor in one.
//!
//! Produces: one Blosc 1 frame (c-blosc 1.x, format version 2) in blocks that are not split, with LZ4, zlib or zstd; what
//! does not shrink, and what is asked for in `BloscLZ` or Snappy, for which there is no encoder here, is stored as it is,
//! which every reader of Blosc takes. Reads: frames of `BloscLZ`, LZ4, zlib and zstd with either shuffle, whatever the
//! parameters say, since the frame says it itself.
//! Parameters: `cname`, `clevel` 0..=9, `shuffle` (`noshuffle`, `shuffle`, `bitshuffle`), `typesize` 1..=255, `blocksize`
//! (kept, without effect here).
//! Output: at most `len + 16` bytes. Empty input gives 16 bytes. Input up to 2^31 - 17 bytes, as outside.

mod bits;
mod frame;
mod lz;

use self::frame::{Compressor, Frame, HEADER_LEN, Header};
use super::config::Config;
use super::deflate::Deflate;
use super::lz4::Lz4;
use super::output::{Fault, Output, bad, wrong_len};
use super::shuffle::{shuffle, unshuffle};
use super::zstd::Zstd;
use crate::error::{Error, Result};

const NAME: &str = "blosc";
/// Longest input: c-blosc holds lengths in a C `int`.
const DECODED_LEN_MAX: usize = 0x7fff_ffff - HEADER_LEN;
/// Bytes of a block that is written: it fits the second cache, and a multiple of eight elements up to 64 bytes each.
const BLOCK_LEN: usize = 256 << 10;

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blosc {
    compressor: Compressor,
    level: i32,
    filter: Filter,
    element_len: usize,
    window_len_max: u64,
}

/// What stands before the compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    None,
    Bytes,
    Bits,
}

impl Blosc {
    pub(crate) fn parse(mut config: Config<'_>, window_len_max: u64) -> Result<Self> {
        let compressor = match config.text("cname")? {
            None => Compressor::Lz4,
            Some(name) => Compressor::from_name(name).ok_or_else(|| {
                config
                    .fault()
                    .expected("blosclz, lz4, lz4hc, snappy, zlib or zstd as `cname`")
                    .found(name)
            })?,
        };
        let filter = match config.text("shuffle")? {
            None | Some("noshuffle") => Filter::None,
            Some("shuffle") => Filter::Bytes,
            Some("bitshuffle") => Filter::Bits,
            Some(other) => {
                return Err(config
                    .fault()
                    .expected("noshuffle, shuffle or bitshuffle as `shuffle`")
                    .found(other));
            }
        };
        let level = config.int("clevel", 0..=9)?.unwrap_or(5);
        let element_len = match config.int("typesize", 1..=255)? {
            None if filter != Filter::None => {
                return Err(config.fault().expected("`typesize`").found("none"));
            }
            given => given.and_then(|n| usize::try_from(n).ok()).unwrap_or(1),
        };
        config.int("blocksize", 0..=i64::from(i32::MAX))?;
        config.finish()?;
        Ok(Self {
            compressor,
            level: i32::try_from(level).unwrap_or(5),
            filter,
            element_len,
            window_len_max,
        })
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let header = Header::new(self, src.len())?;
        out.clear();
        if self.level > 0 && !src.is_empty() && self.compressor.is_written() {
            let method = self.compressor.method(self.level, self.window_len_max)?;
            header.start(out);
            let mut filtered = Vec::new();
            let mut packed = Vec::new();
            for (number, block) in src.chunks(BLOCK_LEN).enumerate() {
                let block = self.filtered(block, &mut filtered);
                method.encode(block, &mut packed)?;
                let kept = if packed.len() < block.len() {
                    packed.as_slice()
                } else {
                    block
                };
                Header::push(number, kept, out);
                if out.len() >= src.len() {
                    break;
                }
            }
        }
        if out.is_empty() || out.len() >= src.len() {
            header.stored(src, out);
        } else {
            header.finish(out);
        }
        Ok(())
    }

    /// One block after the filter.
    fn filtered<'a>(&self, block: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match self.filter {
            Filter::Bytes if self.element_len > 1 => {
                scratch.resize(block.len(), 0);
                shuffle(block, self.element_len, scratch);
                scratch
            }
            Filter::Bits if block.len() >= self.element_len => {
                scratch.resize(block.len(), 0);
                bits::shuffle(block, self.element_len, scratch);
                scratch
            }
            _ => block,
        }
    }

    /// Looks at a frame of `exact` decoded bytes, where that is known, without decoding it.
    pub(crate) fn glance(src: &[u8], exact: Option<usize>) -> Result<()> {
        let frame = Frame::read(src)?;
        match exact {
            Some(len) if len != frame.decoded_len => Err(wrong_len(NAME, len, frame.decoded_len)),
            _ => Ok(()),
        }
    }

    pub(crate) fn decode(&self, src: &[u8], mut output: Output<'_>) -> Result<()> {
        let frame = Frame::read(src)?;
        let out = output.exactly(NAME, frame.decoded_len)?;
        if let Some(stored) = frame.stored()? {
            out.copy_from_slice(stored);
            return Ok(());
        }
        let method = frame.compressor.method(0, self.window_len_max)?;
        let mut scratch = Vec::new();
        for (number, block) in out.chunks_mut(frame.block_len).enumerate() {
            let streams = frame.streams(number, block.len())?;
            let filtered = match frame.filter {
                Filter::Bytes if frame.element_len > 1 => true,
                Filter::Bits => block.len() >= frame.element_len,
                _ => false,
            };
            if !filtered {
                unpack(&method, &streams, block)?;
                continue;
            }
            scratch.resize(block.len(), 0);
            unpack(&method, &streams, &mut scratch)?;
            match frame.filter {
                Filter::Bytes => unshuffle(&scratch, frame.element_len, block),
                _ => bits::unshuffle(&scratch, frame.element_len, block),
            }
        }
        Ok(())
    }
}

/// What packs one stream of a block, and turns it back.
pub(super) enum Method {
    /// Read only.
    BloscLz,
    Lz4,
    Zlib(Deflate),
    Zstd(Zstd),
}

impl Method {
    fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::BloscLz => {
                out.clear();
                out.extend_from_slice(src);
                Ok(())
            }
            Self::Lz4 => Lz4::encode_block(src, out),
            Self::Zlib(deflate) => deflate.encode(src, out),
            Self::Zstd(zstd) => zstd.encode(src, out),
        }
    }

    fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        match self {
            Self::BloscLz => Output::Exact(out).fill(NAME, 0, |out| lz::decode(src, out)),
            Self::Lz4 => Lz4::decode_block(NAME, src, out),
            Self::Zlib(deflate) => deflate.decode(src, Output::Exact(out)),
            Self::Zstd(zstd) => zstd.decode(src, Output::Exact(out)),
        }
    }
}

/// Fills `out` from the streams of a block, each an equal part of it.
fn unpack(method: &Method, streams: &[&[u8]], out: &mut [u8]) -> Result<()> {
    let len = out.len().checked_div(streams.len()).unwrap_or(0);
    for (stream, part) in streams.iter().zip(out.chunks_mut(len.max(1))) {
        if stream.len() == part.len() {
            part.copy_from_slice(stream);
        } else {
            method.decode(stream, part)?;
        }
    }
    Ok(())
}

/// A frame that breaks Blosc's rules.
fn broken(why: &'static str) -> Error {
    bad(NAME, why)
}

#[cfg(test)]
#[expect(
    clippy::integer_division,
    clippy::arithmetic_side_effects,
    reason = "small numbers of a test, and the rule of the vectors"
)]
mod tests {
    use super::*;
    use crate::format::json::Json;
    use crate::format::pipeline::CodecSpec;
    use crate::limits::Limits;

    /// Frames of numcodecs 0.16.6 (c-blosc 1.21); `tests/data/codec/README.md`.
    const VECTORS: &str = include_str!("../../../tests/data/codec/blosc_vectors.json");

    fn codec(configuration: &str) -> Blosc {
        let spec = format!(r#"{{"name":"blosc","configuration":{configuration}}}"#);
        let spec = CodecSpec::from_json(&spec.parse().unwrap()).unwrap();
        Blosc::parse(Config::new(&spec), 1 << 27).unwrap()
    }

    fn unhex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    fn decode(codec: &Blosc, frame: &[u8], len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0xaa; len];
        codec.decode(frame, Output::Exact(&mut out))?;
        Ok(out)
    }

    /// The bytes that the generator of the vectors makes: a slow ramp with noise in its low bits.
    fn raw(seed: u32, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut out = Vec::new();
        for i in 0..len.div_ceil(4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let i = u32::try_from(i).unwrap();
            let word = (i / 7).wrapping_mul(3).wrapping_add((state >> 28) & 3);
            out.extend(word.to_le_bytes());
        }
        out.truncate(len);
        out
    }

    fn vectors() -> Vec<(Json, Vec<u8>, Vec<u8>)> {
        let all = Json::parse(VECTORS, &Limits::default()).unwrap();
        let cases = all.get("cases").unwrap().as_array().unwrap().iter();
        cases
            .map(|case| {
                let number = |key: &str| case.get(key).and_then(Json::as_u64).unwrap();
                let seed = u32::try_from(number("seed")).unwrap();
                let len = usize::try_from(number("len")).unwrap();
                let frame = unhex(case.get("frame").and_then(Json::as_str).unwrap());
                (case.clone(), raw(seed, len), frame)
            })
            .collect()
    }

    #[test]
    fn every_foreign_frame_decodes_to_its_bytes() {
        let any = codec("{}");
        let vectors = vectors();
        assert!(vectors.len() > 30);
        for (case, raw, frame) in vectors {
            match decode(&any, &frame, raw.len()) {
                Ok(decoded) => assert_eq!(decoded, raw, "{case}"),
                Err(e) => panic!("{case}: {e}"),
            }
        }
    }

    #[test]
    fn what_is_encoded_decodes_and_noise_is_stored_as_it_is() {
        for cname in ["lz4", "lz4hc", "zlib", "zstd", "blosclz", "snappy"] {
            for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
                for (element_len, level) in [(1, 5), (3, 1), (4, 9), (16, 5), (4, 0)] {
                    let codec = codec(&format!(
                        r#"{{"cname":"{cname}","shuffle":"{shuffle}","typesize":{element_len},"clevel":{level}}}"#
                    ));
                    for len in [0, 1, 3, 64, 1000, BLOCK_LEN - 1, BLOCK_LEN * 2 + 13] {
                        let raw = raw(7, len);
                        let mut frame = Vec::new();
                        codec.encode(&raw, &mut frame).unwrap();
                        assert!(frame.len() <= len + HEADER_LEN);
                        assert_eq!(decode(&codec, &frame, len).unwrap(), raw, "{codec:?} {len}");
                    }
                }
            }
        }
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        })
        .take(999)
        .collect();
        let mut frame = Vec::new();
        codec(r#"{"cname":"lz4"}"#)
            .encode(&noise, &mut frame)
            .unwrap();
        assert_eq!(frame.len(), noise.len() + HEADER_LEN);
    }

    #[test]
    fn no_damage_to_a_frame_is_more_than_an_error() {
        let any = codec("{}");
        for (_, raw, frame) in vectors() {
            for cut in 0..frame.len().min(80) {
                assert!(decode(&any, &frame[..cut], raw.len()).is_err());
            }
            for at in 0..frame.len().min(120) {
                for bit in [0x01, 0x80, 0xff] {
                    let mut frame = frame.clone();
                    frame[at] ^= bit;
                    let _ = decode(&any, &frame, raw.len());
                }
            }
            assert!(decode(&any, &frame, raw.len() + 1).is_err());
        }
    }
}
