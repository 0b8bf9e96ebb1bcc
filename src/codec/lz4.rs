//! Codec `numcodecs.lz4`: bytes to bytes, compressor.
//!
//! Produces: the input's length as u32, little-endian, then one LZ4 block (the layout of numcodecs' `LZ4`; not the LZ4
//! frame format).
//! Parameters: `acceleration`, read and kept, without effect here: this encoder has one speed.
//! Output: at most `4 + 20 + len * 1.1` bytes in memory while it is made, in practice `len + len/255 + 20`. Input up to
//! 2^31 - 1 bytes, as in numcodecs. Empty input gives four zeros and one byte.

use std::cell::RefCell;

use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into,
    get_maximum_output_size,
};

use super::config::Config;
use super::output::{Fault, Output, bad, wrong_len};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};

const NAME: &str = "numcodecs.lz4";
/// Longest input: numcodecs holds lengths in a C `int`.
const DECODED_LEN_MAX: usize = 0x7fff_ffff;
/// Bytes before the block.
const PREFIX_LEN: usize = 4;
/// A byte of a block stands for at most this many decoded ones.
const EXPANSION_MAX: usize = 255;
/// From this length on the encoder uses its large table. The choice must follow from the input alone: each table
/// finds other matches, and payloads may not depend on what a thread compressed before.
const LARGE_LEN: usize = 1 << 16;

thread_local! {
    static SMALL: RefCell<CompressTable> = RefCell::new(CompressTable::small());
    static LARGE: RefCell<CompressTable> = RefCell::new(CompressTable::large());
}

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lz4;

impl Lz4 {
    pub(crate) fn parse(mut config: Config<'_>, decoded_len: Option<usize>) -> Result<Self> {
        config.int("acceleration", i64::from(i32::MIN)..=i64::from(i32::MAX))?;
        if let Some(len) = decoded_len.filter(|len| *len > DECODED_LEN_MAX) {
            return Err(too_long(len));
        }
        config.finish()?;
        Ok(Self)
    }

    pub(crate) fn encode(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let len = u32::try_from(src.len())
            .ok()
            .filter(|_| src.len() <= DECODED_LEN_MAX)
            .ok_or_else(|| too_long(src.len()))?;
        let mut prefix = Writer::with_capacity(PREFIX_LEN);
        prefix.u32(len);
        out.clear();
        out.extend_from_slice(prefix.as_slice());
        Self::append_block(src, out)
    }

    /// Replaces `out` by one LZ4 block, without the length.
    #[cfg(feature = "blosc")]
    pub(crate) fn encode_block(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        Self::append_block(src, out)
    }

    fn append_block(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(get_maximum_output_size(src.len()).saturating_add(start), 0);
        let table = if src.len() < LARGE_LEN {
            &SMALL
        } else {
            &LARGE
        };
        let block = out.get_mut(start..).unwrap_or_default();
        let block_len = table
            .with(|table| compress_into_with_table(src, block, &mut table.borrow_mut()))
            .map_err(|e| Error::io("cannot compress with LZ4", std::io::Error::other(e)))?;
        out.truncate(block_len.saturating_add(start));
        Ok(())
    }

    /// Looks at a payload of `exact` decoded bytes, where that is known, without decoding it.
    pub(crate) fn glance(src: &[u8], exact: Option<usize>) -> Result<()> {
        let claimed = Reader::new("payload of codec numcodecs.lz4", 0, src).u32()?;
        match exact {
            Some(len) if usize::try_from(claimed).ok() != Some(len) => {
                Err(wrong_len(NAME, len, claimed))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn decode(src: &[u8], mut output: Output<'_>) -> Result<()> {
        let mut r = Reader::new("payload of codec numcodecs.lz4", 0, src);
        let claimed = usize::try_from(r.u32()?).unwrap_or(usize::MAX);
        let block = r.rest();
        if claimed > block.len().saturating_mul(EXPANSION_MAX) {
            return Err(bad(
                NAME,
                format_args!("{claimed} bytes claimed by a block of {}", block.len()),
            ));
        }
        Self::decode_block(NAME, block, output.exactly(NAME, claimed)?)
    }

    /// Fills `out` from one LZ4 block of the codec `name`.
    pub(crate) fn decode_block(name: &'static str, block: &[u8], out: &mut [u8]) -> Result<()> {
        match decompress_into(block, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => Err(wrong_len(name, out.len(), n)),
            Err(e) => match fault(&e) {
                Fault::Full => Err(wrong_len(name, out.len(), "more")),
                Fault::Bad(why) => Err(bad(name, why)),
            },
        }
    }
}

fn fault(error: &DecompressError) -> Fault {
    match error {
        DecompressError::OutputTooSmall { .. } => Fault::Full,
        DecompressError::LiteralOutOfBounds => Fault::Bad("literals past the end of the block"),
        DecompressError::ExpectedAnotherByte => Fault::Bad("a block cut short"),
        DecompressError::OffsetZero | DecompressError::OffsetOutOfBounds => {
            Fault::Bad("a match before the start of the output")
        }
        _ => Fault::Bad("a damaged block"),
    }
}

fn too_long(len: usize) -> Error {
    Error::limit("input of codec numcodecs.lz4")
        .expected(format_args!("at most {DECODED_LEN_MAX} bytes"))
        .found(len)
        .help("choose a smaller chunk, or zstd")
}
