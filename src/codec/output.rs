//! Where a decoder writes, and how much it may write.
//!
//! Holds [`Output`] and [`Fault`]. Must not know any codec.

use crate::error::{Error, Result};

/// First guess for an output of unknown length.
const GUESS_LEN_MIN: usize = 4096;
/// Growth of a wrong guess: the work repeated is then at most a third of the last attempt.
const GUESS_GROWTH: usize = 4;

/// The place for decoded bytes.
#[derive(Debug)]
pub(crate) enum Output<'a> {
    /// The length is known: fill all of it.
    Exact(&'a mut [u8]),
    /// Only a bound is known: set the vector to what comes out, at most `max` bytes. Its length on entry means nothing.
    AtMost {
        /// Takes the bytes.
        out: &'a mut Vec<u8>,
        /// More is an error, found before the memory for it is asked for.
        max: usize,
    },
}

/// Why a codec could not decode.
#[derive(Debug)]
pub(crate) enum Fault {
    /// More bytes come out than the space given.
    Full,
    /// The input breaks the codec's own rules, in that codec's words.
    Bad(&'static str),
}

impl Output<'_> {
    /// Runs `decode`, which fills a slice from its start and gives how much it filled.
    ///
    /// With an unknown length the call is repeated with a larger slice, starting at `guess` (never trusted beyond `max`).
    pub(crate) fn fill(
        self,
        codec: &'static str,
        guess: usize,
        mut decode: impl FnMut(&mut [u8]) -> Result<usize, Fault>,
    ) -> Result<()> {
        match self {
            Output::Exact(out) => {
                let len = out.len();
                match decode(out) {
                    Ok(n) if n == len => Ok(()),
                    Ok(n) => Err(wrong_len(codec, len, n)),
                    Err(Fault::Full) => Err(wrong_len(codec, len, "more")),
                    Err(Fault::Bad(why)) => Err(bad(codec, why)),
                }
            }
            Output::AtMost { out, max } => {
                let mut len = guess.max(GUESS_LEN_MIN).min(max);
                loop {
                    out.resize(len, 0);
                    match decode(out) {
                        Ok(n) => {
                            out.truncate(n);
                            return Ok(());
                        }
                        Err(Fault::Full) if len < max => {
                            len = len.saturating_mul(GUESS_GROWTH).min(max);
                        }
                        Err(Fault::Full) => {
                            return Err(Error::limit(format!("payload of codec {codec}"))
                                .expected(format_args!("at most {max} decoded bytes"))
                                .found("more"));
                        }
                        Err(Fault::Bad(why)) => return Err(bad(codec, why)),
                    }
                }
            }
        }
    }

    /// A slice of exactly `len` bytes to be filled whole, if the output takes that many.
    pub(crate) fn exactly(&mut self, codec: &'static str, len: usize) -> Result<&mut [u8]> {
        match self {
            Output::Exact(out) => {
                if out.len() == len {
                    Ok(out)
                } else {
                    Err(wrong_len(codec, out.len(), len))
                }
            }
            Output::AtMost { out, max } if len <= *max => {
                out.resize(len, 0);
                Ok(out)
            }
            Output::AtMost { max, .. } => Err(Error::limit(format!("payload of codec {codec}"))
                .expected(format_args!("at most {max} decoded bytes"))
                .found(len)),
        }
    }
}

/// The error for a payload that decodes to another length than the chunk's.
pub(crate) fn wrong_len(
    codec: &'static str,
    expected: usize,
    found: impl std::fmt::Display,
) -> Error {
    Error::corrupt(format!("payload of codec {codec}"))
        .reason("decoded_length")
        .expected(format_args!("{expected} decoded bytes"))
        .found(found)
}

/// The error for a payload that breaks its codec's rules.
pub(crate) fn bad(codec: &'static str, why: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("payload of codec {codec}")).found(why)
}
