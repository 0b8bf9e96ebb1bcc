//! A cursor over bytes from outside.
//!
//! Holds [`Reader`]: every read is bounds-checked and an error names the absolute position. Must not allocate.

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Error, Result};

/// Reads little-endian numbers and slices from `bytes`, which lie at `base` in the file.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// Absolute position of the first byte of `bytes`.
    base: u64,
    /// The structure being read, for error messages.
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A cursor over `what`, whose bytes lie at the absolute position `base`.
    pub(crate) fn new(what: &'static str, base: u64, bytes: &'a [u8]) -> Self {
        Self { bytes, base, what }
    }

    /// Absolute position of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.base
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.bytes.split_at_checked(len) else {
            return Err(self.short(len));
        };
        self.bytes = tail;
        // `len` fits: it is at most the length of a slice in memory.
        self.base = self.base.saturating_add(len as u64);
        Ok(head)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, tail)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.short(N));
        };
        self.bytes = tail;
        self.base = self.base.saturating_add(N as u64);
        Ok(*head)
    }

    /// All bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.bytes);
        self.base = self.base.saturating_add(rest.len() as u64);
        rest
    }

    /// A cursor confined to the next `len` bytes, which this one skips.
    pub(crate) fn sub(&mut self, what: &'static str, len: usize) -> Result<Self> {
        let base = self.base;
        Ok(Self {
            bytes: self.take(len)?,
            base,
            what,
        })
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array::<2>().map(|b| LittleEndian::read_u16(&b))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array::<4>().map(|b| LittleEndian::read_u32(&b))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array::<8>().map(|b| LittleEndian::read_u64(&b))
    }

    #[inline]
    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array::<8>().map(|b| LittleEndian::read_i64(&b))
    }

    /// Refuses `len` reserved bytes that are not all zero.
    pub(crate) fn zeros(&mut self, len: usize, field: &'static str) -> Result<()> {
        let at = self.position();
        if self.take(len)?.iter().all(|&b| b == 0) {
            Ok(())
        } else {
            Err(Error::corrupt(self.what)
                .at(at)
                .expected(format_args!("{field} of zeros"))
                .found("other bytes"))
        }
    }

    /// Refuses bytes that are left over.
    pub(crate) fn finish(self) -> Result<()> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(Error::corrupt(self.what)
                .at(self.base)
                .expected("its end")
                .found(format_args!("{} more bytes", self.bytes.len())))
        }
    }

    /// An error about the structure being read, at the present position.
    pub(crate) fn fault(&self) -> Error {
        Error::corrupt(self.what).at(self.base)
    }

    #[cold]
    fn short(&self, wanted: usize) -> Error {
        self.fault()
            .expected(format_args!("{wanted} more bytes"))
            .found(format_args!("{} bytes", self.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_the_position_is_absolute() {
        let mut r = Reader::new("test", 100, &[1, 2, 0, 3, 0, 0, 0]);
        assert_eq!(r.u8().unwrap(), 1);
        assert_eq!(r.u16().unwrap(), 2);
        assert_eq!(r.position(), 103);
        assert_eq!(r.u32().unwrap(), 3);
        r.finish().unwrap();
    }

    #[test]
    fn a_short_read_is_an_error_with_its_position_and_takes_nothing() {
        let mut r = Reader::new("test", 100, &[1, 2, 3]);
        let e = r.u32().unwrap_err();
        assert_eq!((e.offset(), e.is_corruption()), (Some(100), true));
        assert_eq!(r.remaining(), 3);
    }

    #[test]
    fn reserved_bytes_and_leftovers_are_refused() {
        let mut r = Reader::new("test", 0, &[0, 0, 1]);
        r.zeros(2, "reserved").unwrap();
        assert!(r.clone().zeros(1, "reserved").is_err());
        assert!(r.finish().is_err());
    }
}
