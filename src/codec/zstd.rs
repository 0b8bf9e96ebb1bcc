//! Codec `zstd`: bytes to bytes, compressor (RFC 8878).
//!
//! Produces: one frame with its content size in the header. Reads: what the format calls a payload, one or more frames,
//! skippable ones among them, with or without content size, as numcodecs does; at least one must hold data, and
//! nothing may follow the last.
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
/// Magic of skippable frames, whose low four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;

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

    pub(crate) fn decode(&self, src: &[u8], output: Output<'_>) -> Result<()> {
        let declared = self.check_frames(src)?;
        if let (Some(declared), Output::Exact(out)) = (declared, &output)
            && usize::try_from(declared).ok() != Some(out.len())
        {
            return Err(wrong_len(NAME, out.len(), declared));
        }
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

    /// Walks the frames before any of them is decoded: headers within the limits, the end where it must be.
    ///
    /// Gives the sum of the content sizes where each frame declares one. Linear in the input.
    fn check_frames(&self, src: &[u8]) -> Result<Option<u64>> {
        let mut rest = src;
        let mut declared = Some(0u64);
        let mut data_frames = false;
        while !rest.is_empty() {
            let header = Header::read(rest)?;
            if let Header::Data { window, content } = header {
                if window > self.window_len_max {
                    return Err(Error::limit("window of a zstd frame")
                        .expected(format_args!("at most {} bytes", self.window_len_max))
                        .found(window));
                }
                data_frames = true;
                declared = match (declared, content) {
                    (Some(sum), Some(len)) => Some(sum.saturating_add(len)),
                    _ => None,
                };
            }
            let len =
                find_frame_compressed_size(rest).map_err(|code| bad(NAME, get_error_name(code)))?;
            rest = match rest.get(len..) {
                Some(after) if len > 0 => after,
                _ => return Err(bad(NAME, "a frame cut short")),
            };
        }
        if data_frames {
            Ok(declared)
        } else {
            Err(bad(NAME, "no frame with data"))
        }
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
enum Header {
    Skippable,
    Data { window: u64, content: Option<u64> },
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new("header of a zstd frame", 0, bytes);
        match r.u32()? {
            MAGIC => {}
            magic if magic & 0xffff_fff0 == SKIPPABLE => return Ok(Self::Skippable),
            magic => {
                return Err(bad(
                    NAME,
                    format_args!("{magic:#010x} where a frame must start"),
                ));
            }
        }
        let descriptor = r.u8()?;
        let single_segment = descriptor & 0x20 != 0;
        if descriptor & 0x08 != 0 {
            return Err(bad(NAME, "a reserved bit in a frame's header"));
        }
        let window = if single_segment {
            0
        } else {
            let byte = r.u8()?;
            // RFC 8878, 3.1.1.1.2: exponent in the upper five bits, eighths in the lower three; 2^41 + 7/8 at most.
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
        // A single segment's window is its content: the decoder writes to the output and needs no other buffer.
        Ok(Self::Data { window, content })
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
