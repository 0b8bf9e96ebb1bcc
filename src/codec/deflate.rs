//! Codecs `numcodecs.zlib` (RFC 1950) and `gzip` (RFC 1952): bytes to bytes, compressors.
//!
//! Produce: one deflate stream in the framing that the name says. `gzip` is written with no name and time 0, so that
//! equal input gives equal output. Read: exactly one zlib stream or gzip member.
//! Parameters: `level` 0..=9 (for zlib also -1, the library's default), by default 1 for zlib and 5 for gzip, as outside.
//! Output: at most `len + len/1000 + 64` bytes. Empty input gives 8 bytes (zlib) or 20 (gzip).

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::config::Config;
use super::output::{Fault, Output};
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
type Kept = RefCell<Option<(Framing, u32, Compress)>>;

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

    pub(crate) fn name(&self) -> &'static str {
        match self.framing {
            Framing::Zlib => "numcodecs.zlib",
            Framing::Gzip => "gzip",
        }
    }

    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(bound(src.len()));
        COMPRESSOR.with(|slot| {
            let mut slot = slot.borrow_mut();
            let compressor = match &mut *slot {
                Some((framing, level, kept))
                    if (*framing, *level) == (self.framing, self.level) =>
                {
                    kept.reset();
                    kept
                }
                other => {
                    &mut other
                        .insert((self.framing, self.level, self.compressor()))
                        .2
                }
            };
            loop {
                let read = usize::try_from(compressor.total_in()).unwrap_or(usize::MAX);
                let rest = src.get(read..).unwrap_or_default();
                match compressor.compress_vec(rest, out, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => return Ok(()),
                    // The bound was too small: deflate promises none to its callers, so make room and go on.
                    Ok(_) => out.reserve(out.len().max(1024)),
                    Err(e) => {
                        return Err(Error::io("cannot deflate", std::io::Error::other(e)));
                    }
                }
            }
        })
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

    fn compressor(&self) -> Compress {
        let level = Compression::new(self.level);
        match self.framing {
            Framing::Zlib => Compress::new(level, true),
            Framing::Gzip => Compress::new_gzip(level, WINDOW_BITS),
        }
    }
}

/// Room that one deflate stream takes for `len` bytes that do not shrink.
fn bound(len: usize) -> usize {
    len.saturating_add(len / 1000).saturating_add(64)
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
