//! Where a transaction's payload bytes go before the commit.
//!
//! Holds [`Tail`]: the bump pointer at the end of the file, the buffer that gathers small payloads, and the buffers on
//! their way to the medium. Must not do I/O: callers write what it hands out, outside its lock.
//!
//! Invariant: every byte between the transaction's start and `end` is in `open`, in `sealed`, or handed to the medium
//! by the caller that reserved it.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Small payloads are gathered up to this many bytes before one write.
const GATHER: usize = 1 << 20;
/// Payloads of at least this many bytes are written alone, outside the lock.
pub(crate) const LARGE: usize = 256 << 10;

/// Bytes with a place in the file that the medium does not have yet.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) offset: u64,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// A thread is writing it.
    claimed: bool,
}

/// The growing end of a transaction.
#[derive(Debug)]
pub(crate) struct Tail {
    /// Where the transaction's own bytes begin.
    start: u64,
    /// The next free position.
    end: u64,
    /// Gathered bytes; they end at `end`.
    open: Vec<u8>,
    /// Full buffers the medium does not have yet, in no order.
    sealed: Vec<Sealed>,
}

impl Tail {
    /// A tail that begins at `start`, the first byte of a block that holds nothing committed.
    pub(crate) fn new(start: u64) -> Self {
        Self {
            start,
            end: start,
            open: Vec::new(),
            sealed: Vec::new(),
        }
    }

    /// Forgets everything reserved.
    pub(crate) fn rewind(&mut self) {
        *self = Self::new(self.start);
    }

    /// The exclusive end of everything reserved.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Where this transaction's bytes begin.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Takes a place for `bytes` and keeps a copy to be written later.
    pub(crate) fn gather(&mut self, bytes: &[u8], align: u64) -> Result<u64> {
        let (offset, end) = self.place(bytes.len(), align)?;
        let gap = usize::try_from(offset.saturating_sub(self.end)).unwrap_or(0);
        let zeros = self.open.len().saturating_add(gap);
        self.open.resize(zeros, 0);
        self.open.extend_from_slice(bytes);
        self.end = end;
        if self.open.len() >= GATHER {
            self.seal();
        }
        Ok(offset)
    }

    /// Takes a place for `len` bytes that the caller writes itself.
    pub(crate) fn reserve(&mut self, len: usize, align: u64) -> Result<u64> {
        let (offset, end) = self.place(len, align)?;
        self.seal();
        self.end = end;
        Ok(offset)
    }

    /// Closes the open buffer, so that it can be written.
    pub(crate) fn seal(&mut self) {
        if !self.open.is_empty() {
            let len = self.open.len() as u64;
            let next = Vec::with_capacity(if self.open.len() >= GATHER {
                GATHER + LARGE
            } else {
                0
            });
            let bytes = std::mem::replace(&mut self.open, next);
            self.sealed.push(Sealed {
                offset: self.end.saturating_sub(len),
                bytes: Arc::new(bytes),
                claimed: false,
            });
        }
    }

    /// A full buffer that nobody is writing; the caller is, from now on, until it says what came of it.
    pub(crate) fn claim(&mut self) -> Option<Sealed> {
        let sealed = self.sealed.iter_mut().find(|s| !s.claimed)?;
        sealed.claimed = true;
        Some(sealed.clone())
    }

    /// Leaves a claimed buffer to the next who claims one: the medium refused it.
    pub(crate) fn unclaim(&mut self, offset: u64) {
        for sealed in &mut self.sealed {
            sealed.claimed &= sealed.offset != offset;
        }
    }

    /// Forgets a buffer that the medium now has.
    pub(crate) fn written(&mut self, offset: u64) {
        self.sealed.retain(|s| s.offset != offset);
    }

    /// The bytes of `range`, as far as they are here and not on the medium.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let open = self.end.saturating_sub(self.open.len() as u64);
        within(open, &self.open, range).or_else(|| {
            self.sealed
                .iter()
                .find_map(|s| within(s.offset, &s.bytes, range))
        })
    }

    fn place(&self, len: usize, align: u64) -> Result<(u64, u64)> {
        let offset = self.end.checked_next_multiple_of(align);
        let end = offset.and_then(|o| o.checked_add(len as u64));
        match (offset, end) {
            // Locks live from 2^62 on; no data may reach them.
            (Some(offset), Some(end)) if end < 1 << 62 => Ok((offset, end)),
            _ => Err(Error::limit("container length").expected("less than 2^62 bytes")),
        }
    }
}

/// A copy of `range` out of `bytes`, which lie at `offset`.
fn within(offset: u64, bytes: &[u8], range: &Range<u64>) -> Option<Vec<u8>> {
    let lo = usize::try_from(range.start.checked_sub(offset)?).ok()?;
    let hi = usize::try_from(range.end.checked_sub(offset)?).ok()?;
    bytes.get(lo..hi).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_payloads_share_a_buffer_and_gaps_are_zeros() {
        let mut t = Tail::new(0x4000);
        assert_eq!(t.gather(&[1, 2, 3], 8).unwrap(), 0x4000);
        assert_eq!(t.gather(&[4], 64).unwrap(), 0x4040);
        t.seal();
        let sealed = t.claim().unwrap();
        assert_eq!(sealed.offset, 0x4000);
        assert_eq!(&sealed.bytes[..4], &[1, 2, 3, 0]);
        assert_eq!(sealed.bytes[0x40], 4);
        assert!(t.claim().is_none(), "one thread writes it");
        t.unclaim(0x4000);
        assert!(t.claim().is_some());
        assert_eq!(t.bytes(&(0x4040..0x4041)), Some(vec![4]));
        t.written(0x4000);
        assert_eq!(t.bytes(&(0x4040..0x4041)), None);
    }

    #[test]
    fn a_large_payload_closes_the_buffer_before_it() {
        let mut t = Tail::new(0x4000);
        t.gather(&[1; 10], 8).unwrap();
        assert_eq!(t.reserve(LARGE, 8).unwrap(), 0x4010);
        assert_eq!(t.claim().unwrap().bytes.len(), 10);
        assert_eq!(t.end(), 0x4010 + LARGE as u64);
    }
}
