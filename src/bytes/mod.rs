//! Bounds-checked little-endian reading and writing, and the two checksums.
//!
//! All numbers from a file pass through [`Reader`]: it returns an error with the absolute position and never panics.
//! Must not know any structure. `byteorder` is used here and nowhere else, on arrays already split off.

mod reader;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// CRC-32C (Castagnoli) of `bytes`, as the structures of the format carry it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// CRC32C of what `crc` covers followed by `bytes`.
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

/// CRC-32 (that of gzip and zip) of `bytes`, as records carry it for what is stored. Payloads may end in their own
/// CRC-32C, over which another CRC-32C would tell nothing but the length.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32 of what `crc` covers followed by `bytes`.
pub(crate) fn crc32_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new_with_initial(crc);
    sum.update(bytes);
    sum.finalize()
}
