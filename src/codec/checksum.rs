//! Codecs `crc32c` and `numcodecs.fletcher32`: bytes to bytes, checksums.
//!
//! Produce: the input followed by four bytes, the checksum in little-endian order. `crc32c` is CRC32C (Castagnoli) as
//! in the Zarr v3 codec of that name; `numcodecs.fletcher32` is HDF5's Fletcher-32 over big-endian 16-bit words, so
//! that a chunk taken over from HDF5 keeps its trailer.
//! Parameters: none. Output: 4 bytes longer than the input. Empty input gives the checksum of nothing (four zeros).

use crate::bytes::{Reader, Writer, crc32c};
use crate::error::{Error, Result};

/// Length of both trailers.
pub(crate) const TRAILER_LEN: usize = 4;

/// Which checksum a payload carries behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    Crc32c,
    Fletcher32,
}

impl Checksum {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "crc32c",
            Self::Fletcher32 => "numcodecs.fletcher32",
        }
    }

    /// Appends the checksum of `bytes` to them.
    pub(crate) fn append(self, bytes: &mut Vec<u8>) {
        let mut trailer = Writer::with_capacity(TRAILER_LEN);
        trailer.u32(self.of(bytes));
        bytes.extend_from_slice(trailer.as_slice());
    }

    /// The bytes before the trailer, which is the right one.
    pub(crate) fn verify(self, bytes: &[u8]) -> Result<&[u8]> {
        let cut = || {
            Error::corrupt(format!("payload of codec {}", self.name()))
                .reason("checksum")
                .expected(format_args!("a trailer of {TRAILER_LEN} bytes"))
                .found(format_args!("{} bytes in all", bytes.len()))
        };
        let len = bytes.len().checked_sub(TRAILER_LEN).ok_or_else(cut)?;
        let (content, trailer) = bytes.split_at_checked(len).ok_or_else(cut)?;
        let stored = Reader::new("checksum trailer", 0, trailer).u32()?;
        let computed = self.of(content);
        if stored == computed {
            return Ok(content);
        }
        Err(Error::corrupt(format!("payload of codec {}", self.name()))
            .reason("checksum")
            .expected(format_args!("checksum {stored:08x}"))
            .found(format_args!("{computed:08x}")))
    }

    fn of(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Crc32c => crc32c(bytes),
            Self::Fletcher32 => fletcher32(bytes),
        }
    }
}

/// HDF5's Fletcher-32: two running sums of 16-bit words, each folded as in one's complement arithmetic.
fn fletcher32(bytes: &[u8]) -> u32 {
    /// Words whose sums cannot overflow 32 bits before they are folded.
    const BLOCK_WORDS: usize = 360;
    let fold = |sum: u32| (sum & 0xffff).wrapping_add(sum >> 16);
    let (words, odd) = bytes.as_chunks::<2>();
    let (mut sum1, mut sum2) = (0u32, 0u32);
    for block in words.chunks(BLOCK_WORDS) {
        for &[high, low] in block {
            let word = (u32::from(high) << 8) | u32::from(low);
            sum1 = sum1.wrapping_add(word);
            sum2 = sum2.wrapping_add(sum1);
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [last] = odd {
        sum1 = sum1.wrapping_add(u32::from(*last) << 8);
        sum2 = sum2.wrapping_add(sum1);
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    // The second fold takes up the carry of the first.
    (fold(sum2) << 16) | fold(sum1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_verified_and_cut_off_and_anything_else_is_an_error() {
        for checksum in [Checksum::Crc32c, Checksum::Fletcher32] {
            for content in [&b""[..], b"a", b"123456789"] {
                let mut bytes = content.to_vec();
                checksum.append(&mut bytes);
                assert_eq!(bytes.len(), content.len() + TRAILER_LEN);
                assert_eq!(checksum.verify(&bytes).unwrap(), content);
                for bit in 0..bytes.len() * 8 {
                    bytes[bit >> 3] ^= 1 << (bit & 7);
                    assert!(checksum.verify(&bytes).is_err(), "{checksum:?} bit {bit}");
                    bytes[bit >> 3] ^= 1 << (bit & 7);
                }
                assert!(checksum.verify(&bytes[..3]).is_err());
            }
        }
    }

    #[test]
    fn the_checksum_of_the_nine_digits_is_the_published_one() {
        let mut bytes = b"123456789".to_vec();
        Checksum::Crc32c.append(&mut bytes);
        assert_eq!(bytes[9..], [0x83, 0x92, 0x06, 0xe3]);
    }
}
