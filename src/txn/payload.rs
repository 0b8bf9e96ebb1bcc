//! Bytes of a payload or blob, as the rooms above see them.
//!
//! Holds [`Payload`] and the checks every read of an extent passes. Must not decode.

use std::ops::{Deref, Range};

use smallvec::SmallVec;

use crate::bytes::crc32;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::store::{Span, Storage};

/// Stored bytes: lent by the medium, or a private copy.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Lent by the map; held alive by the span.
    Lent(Span),
    /// Copied; an element or a short row needs no memory of its own.
    Owned(SmallVec<[u8; 64]>),
}

impl Payload {
    /// The bytes as a vector of the caller's own.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Lent(span) => span.to_vec(),
            Self::Owned(bytes) => bytes.into_vec(),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(span) => span,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The absolute position and length of `range` within `extent`.
pub(crate) fn locate(extent: Extent, range: &Range<u64>) -> Result<(u64, usize)> {
    let len = range.end.checked_sub(range.start);
    let offset = extent.offset.checked_add(range.start);
    match (offset, len.map(usize::try_from)) {
        (Some(offset), Some(Ok(len))) if range.end <= extent.len => Ok((offset, len)),
        _ => Err(Error::corrupt("extent")
            .at(extent.offset)
            .spanning(extent.len)
            .expected("a range inside the extent")
            .found(format_args!("{}..{}", range.start, range.end))),
    }
}

/// Reads `len` bytes at `offset`, without a copy where the medium can lend them.
pub(crate) fn read(storage: &dyn Storage, offset: u64, len: usize) -> Result<Payload> {
    if let Some(span) = storage.map(offset, len) {
        return Ok(Payload::Lent(span));
    }
    read_owned(storage, offset, len)
}

/// Reads a private copy of `len` bytes at `offset`.
pub(crate) fn read_owned(storage: &dyn Storage, offset: u64, len: usize) -> Result<Payload> {
    let mut bytes = SmallVec::new();
    bytes.try_reserve_exact(len).map_err(|_| {
        Error::limit("memory for a payload")
            .at(offset)
            .expected("a length that this machine can hold")
            .found(len)
    })?;
    bytes.resize(len, 0);
    storage
        .read_exact_at(offset, &mut bytes)
        .map_err(|e| Error::io("cannot read a payload", e).at(offset))?;
    Ok(Payload::Owned(bytes))
}

/// Refuses bytes whose checksum is not the one their record holds.
pub(crate) fn verify(extent: Extent, bytes: &[u8]) -> Result<()> {
    judge(extent, crc32(bytes))
}

/// Refuses a checksum that is not the one a record holds.
pub(super) fn judge(extent: Extent, found: u32) -> Result<()> {
    if found == extent.crc {
        return Ok(());
    }
    Err(Error::corrupt("payload")
        .at(extent.offset)
        .spanning(extent.len)
        .expected(format_args!("crc32 {:#010x}", extent.crc))
        .found(format_args!("{found:#010x}"))
        .help("the stored bytes are damaged; restore them from a copy, or erase the chunk"))
}
