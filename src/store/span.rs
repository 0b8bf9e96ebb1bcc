//! Bytes lent by a medium.
//!
//! Holds [`Span`], which keeps its lender alive. Must not copy.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Something that can lend stretches of its memory for as long as it lives.
pub trait Lend: Send + Sync {
    /// The bytes `offset..offset + len`; empty when they do not lie inside.
    fn lend(&self, offset: usize, len: usize) -> &[u8];
}

/// A stretch of a medium's memory, held alive by the span.
#[derive(Clone)]
pub struct Span {
    lender: Arc<dyn Lend>,
    offset: usize,
    len: usize,
}

impl Span {
    /// `len` bytes of `lender` from `offset`.
    pub fn new(lender: Arc<dyn Lend>, offset: usize, len: usize) -> Self {
        Self {
            lender,
            offset,
            len,
        }
    }
}

impl Deref for Span {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.lender.lend(self.offset, self.len)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({} + {})", self.offset, self.len)
    }
}
