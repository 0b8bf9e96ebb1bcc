//! Codec `zstd`: bytes to bytes, compressor (RFC 8878).
//!
//! Produces: one frame with its content size in the header. Reads: exactly one frame, with or without content size and
//! frame checksum. numcodecs also reads frames joined together and skippable ones; no writer of chunks makes them, and
//! one frame keeps the cost of a hostile payload in proportion to its chunk.
//! Parameters: `level` (-131072..=22, 0 is the library's default), `checksum` (false unless given).
//! Output: at most `len + len/256 + 64` bytes. Empty input gives a frame of 9 bytes.
//!
//! Contexts live as long as their thread, because making one costs more than a small chunk's decoding.

use std::cell::RefCell;

use ::zstd::zstd_safe::{
    CCtx, CParameter, DCtx, ErrorCode, compress_bound, find_frame_compressed_size, get_error_name,
    is_error_kind, zstd_sys::ZSTD_ErrorCode,
};

use super::config::Config;
use super::output::{Fault, Output, bad, wrong_len};
use crate::bytes::Reader;
use crate::error::{Error, Result};

const NAME: &str = "zstd";
const MAGIC: u32 = 0xfd2f_b528;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// A context and the parameters it is set to.
struct Compressor {
    context: CCtx<'static>,
    set: Option<(i32, bool)>,
}

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zstd {
    level: i32,
    checksum: bool,
    window_len_max: u64,
}

impl Zstd {
    pub(crate) fn parse(mut config: Config<'_>, window_len_max: u64) -> Result<Self> {
        let level = config.int("level", -131_072..=22)?.unwrap_or(0);
        let checksum = config.bool("checksum")?.unwrap_or(false);
        config.finish()?;
        Ok(Self {
            level: i32::try_from(level).unwrap_or(0),
            checksum,
            window_len_max,
        })
    }

    /// The codec without a checksum.
    #[cfg(feature = "blosc")]
    pub(crate) fn new(level: i32, window_len_max: u64) -> Self {
        Self {
            level,
            checksum: false,
            window_len_max,
        }
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(compress_bound(src.len()));
        COMPRESSOR.with(|slot| {
            let mut slot = slot.borrow_mut();
            let compressor = match &mut *slot {
                Some(compressor) => compressor,
                none => none.insert(Compressor {
                    context: CCtx::try_create().ok_or_else(no_memory)?,
                    set: None,
                }),
            };
            let result = compressor.run(self.level, self.checksum, src, out);
            if result.is_err() {
                // Its state is unknown: the next call makes a new one.
                *slot = None;
            }
            result.map_err(|code| failed(get_error_name(code)))
        })
    }

    /// Looks at a frame that decodes to `exact` bytes, where that is known, without decoding it.
    pub(crate) fn glance(&self, src: &[u8], exact: Option<usize>) -> Result<()> {
        let header = Header::read(src)?;
        if header.window > self.window_len_max {
            return Err(Error::limit("window of a zstd frame")
                .expected(format_args!("at most {} bytes", self.window_len_max))
                .found(header.window));
        }
        if let (Some(content), Some(len)) = (header.content, exact)
            && usize::try_from(content).ok() != Some(len)
        {
            return Err(wrong_len(NAME, len, content));
        }
        // The decompressor would take what follows for another frame.
        match find_frame_compressed_size(src) {
            Ok(len) if len == src.len() => Ok(()),
            Ok(_) => Err(bad(NAME, "bytes after the end of the frame")),
            Err(code) => Err(bad(NAME, get_error_name(code))),
        }
    }

    pub(crate) fn decode(&self, src: &[u8], output: Output<'_>) -> Result<()> {
        let exact = match &output {
            Output::Exact(out) => Some(out.len()),
            Output::AtMost { .. } => None,
        };
        self.glance(src, exact)?;
        DECOMPRESSOR.with(|slot| {
            let mut slot = slot.borrow_mut();
            let context = match &mut *slot {
                Some(context) => context,
                none => none.insert(DCtx::try_create().ok_or_else(no_memory)?),
            };
            let guess = src.len().saturating_mul(4);
            output.fill(NAME, guess, |out| {
                context.decompress(out, src).map_err(fault)
            })
        })
    }
}

impl Compressor {
    fn run(
        &mut self,
        level: i32,
        checksum: bool,
        src: &[u8],
        out: &mut Vec<u8>,
    ) -> std::result::Result<(), ErrorCode> {
        if self.set != Some((level, checksum)) {
            self.context
                .set_parameter(CParameter::CompressionLevel(level))?;
            self.context
                .set_parameter(CParameter::ChecksumFlag(checksum))?;
            self.set = Some((level, checksum));
        }
        self.context.compress2(out, src).map(|_| ())
    }
}

/// What a frame's header says.
struct Header {
    /// Memory that a decoder of the stream needs; 0 for a frame that is one segment, whose window is its content.
    window: u64,
    content: Option<u64>,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new("header of a zstd frame", 0, bytes);
        let magic = r.u32()?;
        if magic != MAGIC {
            return Err(bad(
                NAME,
                format_args!("{magic:#010x} where a frame must start"),
            ));
        }
        let descriptor = r.u8()?;
        let single_segment = descriptor & 0x20 != 0;
        if descriptor & 0x08 != 0 {
            return Err(bad(NAME, "a reserved bit in the frame's header"));
        }
        let window = if single_segment {
            0
        } else {
            // RFC 8878, 3.1.1.1.2: the exponent in the upper five bits, eighths in the lower three.
            let byte = r.u8()?;
            let base = 1024u64 << (byte >> 3);
            base.saturating_add((base >> 3).saturating_mul(u64::from(byte & 7)))
        };
        let dictionary_id = match descriptor & 0x03 {
            0 => 0,
            1 => u32::from(r.u8()?),
            2 => u32::from(r.u16()?),
            _ => r.u32()?,
        };
        if dictionary_id != 0 {
            return Err(bad(NAME, "a frame that needs a dictionary"));
        }
        let content = match (descriptor >> 6, single_segment) {
            (0, false) => None,
            (0, true) => Some(u64::from(r.u8()?)),
            (1, _) => Some(u64::from(r.u16()?).saturating_add(256)),
            (2, _) => Some(u64::from(r.u32()?)),
            _ => Some(r.u64()?),
        };
        Ok(Self { window, content })
    }
}

fn fault(code: ErrorCode) -> Fault {
    if is_error_kind(code, ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) {
        Fault::Full
    } else {
        Fault::Bad(get_error_name(code))
    }
}

fn failed(why: &'static str) -> Error {
    Error::io("cannot compress with zstd", std::io::Error::other(why))
}

fn no_memory() -> Error {
    Error::io(
        "cannot make a zstd context",
        std::io::Error::from(std::io::ErrorKind::OutOfMemory),
    )
}
