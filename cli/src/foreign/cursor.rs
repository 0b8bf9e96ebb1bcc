//! Numbers out of bytes that other software wrote, in either byte order, without a panic.
//!
//! Holds [`Cursor`]. Must not know formats.

use super::Refusal;

/// A place in bytes; whatever would lie past their end is a refusal.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn little(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            big: false,
        }
    }

    pub(crate) fn big(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            big: true,
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Refusal> {
        let end = self.at.checked_add(len);
        let part = end.and_then(|end| self.bytes.get(self.at..end));
        let part = part.ok_or_else(|| {
            format!(
                "it is cut: {len} bytes are wanted at byte {} of {}",
                self.at,
                self.bytes.len()
            )
        })?;
        self.at = self.at.saturating_add(len);
        Ok(part)
    }

    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Refusal> {
        self.take(len).map(drop)
    }

    /// A number of `len` bytes, at most 8.
    pub(crate) fn uint(&mut self, len: usize) -> Result<u64, Refusal> {
        let part = self.take(len)?;
        let add = |n: u64, b: &u8| n.wrapping_shl(8) | u64::from(*b);
        Ok(if self.big {
            part.iter().fold(0, add)
        } else {
            part.iter().rev().fold(0, add)
        })
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Refusal> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Refusal> {
        self.uint(2).map(|n| u16::try_from(n).unwrap_or_default())
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Refusal> {
        self.uint(4).map(|n| u32::try_from(n).unwrap_or_default())
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Refusal> {
        self.uint(8)
    }

    /// A number of four bytes that counts bytes or elements.
    pub(crate) fn count(&mut self) -> Result<usize, Refusal> {
        Ok(usize::try_from(self.u32()?).unwrap_or(usize::MAX))
    }

    /// Bytes up to a zero, which is passed over.
    pub(crate) fn until_zero(&mut self) -> Result<&'a [u8], Refusal> {
        let len = self.rest().iter().position(|b| *b == 0);
        let text = self.take(len.ok_or("a name without an end")?)?;
        self.skip(1)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_both_orders_and_end_with_the_bytes() {
        let bytes = [1, 2, 3, 4, 5, b'a', 0, 9];
        let mut little = Cursor::little(&bytes);
        assert_eq!(little.u16(), Ok(0x0201));
        assert_eq!(little.uint(3), Ok(0x0005_0403));
        assert_eq!(little.until_zero(), Ok(&b"a"[..]));
        assert!(little.u32().is_err());
        assert_eq!((little.position(), little.u8()), (7, Ok(9)));
    }
}
