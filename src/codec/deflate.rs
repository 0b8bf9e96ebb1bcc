//! Codecs `numcodecs.zlib` (RFC 1950) and `gzip` (RFC 1952): bytes to bytes, compressors.
//!
//! Produce: one deflate stream in the framing that the name says. `gzip` is written with no name and time 0, so that
//! equal input gives equal output. Read: exactly one zlib stream or gzip member.
//! Parameters: `level` 0..=9 (for zlib also -1, the library's default), by default 1 for zlib and 5 for gzip, as outside.
//! Output: at most `len + len/256 + 64` bytes. Empty input gives 8 bytes (zlib) or 20 (gzip).

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::config::Config;
use super::output::{Fault, Output, bad, wrong_len};
use crate::error::{Error, Result};

/// Window of all streams written and read: 32 KiB, deflate's largest.
const WINDOW_BITS: u8 = 15;

/// The framing around the deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Zlib,
    Gzip,
}

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deflate {
    framing: Framing,
    level: u32,
}

/// The compressor a thread used last, with what it was made for.
type Kept = RefCell<Option<((Framing, u32), Compress)>>;

thread_local! {
    static COMPRESSOR: Kept = const { RefCell::new(None) };
    static INFLATER: RefCell<Option<Decompress>> = const { RefCell::new(None) };
}

impl Deflate {
    pub(crate) fn parse(mut config: Config<'_>, framing: Framing) -> Result<Self> {
        let (lowest, by_default) = match framing {
            Framing::Zlib => (-1, 1),
            Framing::Gzip => (0, 5),
        };
        let level = config.int("level", lowest..=9)?.unwrap_or(by_default);
        config.finish()?;
        Ok(Self {
            framing,
            // -1 is the library's own default.
            level: u32::try_from(level).unwrap_or_else(|_| Compression::default().level()),
        })
    }

    /// The codec at a level of 0..=9.
    #[cfg(feature = "blosc")]
    pub(crate) fn new(framing: Framing, level: i32) -> Self {
        Self {
            framing,
            level: u32::try_from(level).unwrap_or(0),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.framing {
            Framing::Zlib => "numcodecs.zlib",
            Framing::Gzip => "gzip",
        }
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        // The fast levels let noise grow by a twentieth; blocks stored as they are keep to the bound.
        if self.run(self.level, src, out)? || self.run(0, src, out)? {
            Ok(())
        } else {
            Err(failed("the bound of stored blocks was passed"))
        }
    }

    /// Compresses at `level`; false when the result would be longer than the bound.
    fn run(&self, level: u32, src: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        out.resize(bound(src.len()), 0);
        COMPRESSOR.with(|slot| {
            let mut slot = slot.borrow_mut();
            let wanted = (self.framing, level);
            let compressor = match &mut *slot {
                Some((made_for, kept)) if *made_for == wanted => {
                    kept.reset();
                    kept
                }
                other => &mut other.insert((wanted, self.compressor(level))).1,
            };
            let status = compressor.compress(src, out, FlushCompress::Finish);
            let len = usize::try_from(compressor.total_out()).unwrap_or(usize::MAX);
            out.truncate(len);
            match status {
                Ok(status) => Ok(status == Status::StreamEnd),
                Err(e) => Err(failed(e)),
            }
        })
    }

    /// Looks at a stream of `exact` decoded bytes, where that is known, without decoding it: RFC 1950, 2.2; RFC 1952, 2.3.
    pub(crate) fn glance(&self, src: &[u8], exact: Option<usize>) -> Result<()> {
        let cut = || bad(self.name(), "a stream cut short");
        match (self.framing, src) {
            (Framing::Zlib, [method, flags, .., _, _, _, _, _]) => {
                let check = (u16::from(*method) << 8) | u16::from(*flags);
                if method & 0x0f != 8 || check.checked_rem(31) != Some(0) || flags & 0x20 != 0 {
                    return Err(bad(self.name(), "no zlib stream without a dictionary"));
                }
                Ok(())
            }
            (Framing::Gzip, [0x1f, 0x8b, 8, _, _, _, _, _, _, _, .., a, b, c, d]) => {
                let told = u32::from_le_bytes([*a, *b, *c, *d]);
                match exact {
                    // The trailer has the length without what is above 32 bits.
                    Some(len) if len as u64 & 0xffff_ffff != u64::from(told) => {
                        Err(wrong_len(self.name(), len, told))
                    }
                    _ => Ok(()),
                }
            }
            (Framing::Gzip, [0x1f, 0x8b, ..]) | (Framing::Zlib, _) => Err(cut()),
            (Framing::Gzip, _) => Err(bad(self.name(), "no gzip stream")),
        }
    }

    pub(crate) fn decode(&self, src: &[u8], output: Output<'_>) -> Result<()> {
        let guess = src.len().saturating_mul(4);
        if self.framing == Framing::Gzip {
            // Its reset would make it one for zlib, so each payload has a new one.
            return output.fill(self.name(), guess, |out| {
                inflate(&mut Decompress::new_gzip(WINDOW_BITS), src, out)
            });
        }
        INFLATER.with(|slot| {
            let mut slot = slot.borrow_mut();
            let inflater = slot.get_or_insert_with(|| Decompress::new(true));
            output.fill(self.name(), guess, |out| {
                inflater.reset(true);
                inflate(inflater, src, out)
            })
        })
    }

    fn compressor(&self, level: u32) -> Compress {
        let level = Compression::new(level);
        match self.framing {
            Framing::Zlib => Compress::new(level, true),
            Framing::Gzip => Compress::new_gzip(level, WINDOW_BITS),
        }
    }
}

/// Room for `len` bytes in stored blocks, of which each has a header of five bytes.
fn bound(len: usize) -> usize {
    len.saturating_add(len >> 8).saturating_add(64)
}

fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::io("cannot deflate", std::io::Error::other(why))
}

/// One stream, which must end where the input does; gives the bytes written.
fn inflate(
    inflater: &mut Decompress,
    src: &[u8],
    out: &mut [u8],
) -> std::result::Result<usize, Fault> {
    let status = inflater.decompress(src, out, FlushDecompress::Finish);
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (read, written) = (count(inflater.total_in()), count(inflater.total_out()));
    match status {
        Ok(Status::StreamEnd) if read == src.len() => Ok(written),
        Ok(Status::StreamEnd) => Err(Fault::Bad("bytes after the end of the stream")),
        Ok(_) if written >= out.len() && read < src.len() => Err(Fault::Full),
        Ok(_) => Err(Fault::Bad("a stream cut short")),
        Err(_) => Err(Fault::Bad("a damaged stream")),
    }
}
