//! Bounds-checked little-endian reading and writing, and CRC32C.
//!
//! All numbers from a file pass through [`Reader`]: it returns an error with the absolute position and never panics.
//! Must not know any structure. `byteorder` is used here and nowhere else, on arrays already split off.

mod reader;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// CRC32C (Castagnoli) of `bytes`, as the format stores it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// CRC32C of what `crc` covers followed by `bytes`.
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}
