//! A growing buffer that takes little-endian numbers.
//!
//! Holds [`Writer`]. Must not decide layout: the structures in `format` do.

use byteorder::{ByteOrder, LittleEndian};

/// Appends fixed-width little-endian numbers and slices to a buffer.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.bytes
    }

    /// Empties the buffer and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, v: u8) {
        self.bytes.push(v);
    }

    pub(crate) fn u16(&mut self, v: u16) {
        let mut b = [0; 2];
        LittleEndian::write_u16(&mut b, v);
        self.slice(&b);
    }

    pub(crate) fn u32(&mut self, v: u32) {
        let mut b = [0; 4];
        LittleEndian::write_u32(&mut b, v);
        self.slice(&b);
    }

    pub(crate) fn u64(&mut self, v: u64) {
        let mut b = [0; 8];
        LittleEndian::write_u64(&mut b, v);
        self.slice(&b);
    }

    pub(crate) fn i64(&mut self, v: i64) {
        let mut b = [0; 8];
        LittleEndian::write_i64(&mut b, v);
        self.slice(&b);
    }

    /// Appends `len` zero bytes.
    pub(crate) fn zeros(&mut self, len: usize) {
        self.bytes.resize(self.bytes.len().saturating_add(len), 0);
    }

    /// Fills with zeros up to `len` bytes in all; does nothing when that many are there.
    pub(crate) fn pad_to(&mut self, len: usize) {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
    }
}
