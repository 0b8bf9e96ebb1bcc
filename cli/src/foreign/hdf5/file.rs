//! The bytes of an HDF5 file, and the border around the crate that reads its trees and heaps.
//!
//! Holds [`File`] and [`guarded`]. The crate never sees more than [`METADATA_LEN_MAX`] bytes at once, and a panic of its
//! own becomes a refusal. Must not know objects.

use std::sync::Arc;

use hdf5_reader::error::{Error, Result as Read};
use hdf5_reader::storage::{Storage, StorageBuffer};
use hdf5_reader::superblock::Superblock;

use crate::foreign::cursor::Cursor;
use crate::foreign::flat::Bytes;
use crate::foreign::{Refusal, border};

/// Longest piece of an index, a heap or a header.
const METADATA_LEN_MAX: usize = 48 << 20;

/// A file with an HDF5 superblock. Addresses count from there: what a user put before it is not HDF5's.
#[derive(Debug)]
pub(super) struct File {
    bytes: Bytes,
    /// Bytes from the superblock on.
    len: u64,
    /// Where the superblock is.
    pub(super) base: u64,
    /// The object header of the root group.
    pub(super) root: u64,
    /// Bytes of an address.
    pub(super) offset_size: u8,
    /// Bytes of a length.
    pub(super) length_size: u8,
}

impl File {
    /// A file of `len` bytes.
    pub(super) fn open(file: std::fs::File, len: u64) -> Result<Arc<Self>, Refusal> {
        let mut this = Self {
            bytes: Bytes::File(file),
            len,
            base: 0,
            root: 0,
            offset_size: 8,
            length_size: 8,
        };
        let block = guarded(|| Superblock::parse_from_storage(&this))?;
        let sizes = [2, 4, 8];
        if !sizes.contains(&block.offset_size) || !sizes.contains(&block.length_size) {
            return Err(format!(
                "addresses of {} and lengths of {} bytes",
                block.offset_size, block.length_size
            ));
        }
        this.base = block.base_address;
        this.len = len.saturating_sub(this.base);
        this.root = guarded(|| block.root_object_header_address())?;
        this.offset_size = block.offset_size;
        this.length_size = block.length_size;
        Ok(Arc::new(this))
    }

    /// A second handle on the bytes.
    pub(super) fn bytes(&self) -> Result<Bytes, Refusal> {
        match &self.bytes {
            Bytes::File(file) => file
                .try_clone()
                .map(Bytes::File)
                .map_err(|e| format!("it cannot be opened again: {e}")),
            Bytes::Memory(bytes) => Ok(Bytes::Memory(bytes.clone())),
        }
    }

    /// The bytes from an address on; past the end of the file is a refusal, before anything is allocated.
    pub(super) fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, Refusal> {
        self.check(address, len as u64)?;
        let mut out = vec![0; len];
        self.bytes
            .read_at(self.base.saturating_add(address), &mut out)
            .map_err(|e| format!("it cannot be read: {e}"))?;
        Ok(out)
    }

    /// Refuses bytes that lie past the end of the file.
    pub(super) fn check(&self, address: u64, len: u64) -> Result<(), Refusal> {
        let end = address.checked_add(len);
        if end.is_none_or(|end| end > self.len) {
            return Err(format!(
                "it is cut: {len} bytes are wanted at address {address}, the file ends at {}",
                self.len
            ));
        }
        Ok(())
    }

    /// An address as it stands in the file; none where it is the undefined one.
    pub(super) fn address(&self, cursor: &mut Cursor<'_>) -> Result<Option<u64>, Refusal> {
        let size = usize::from(self.offset_size);
        let address = cursor.uint(size)?;
        let undefined =
            u64::MAX.checked_shr(64_u32.saturating_sub(u32::from(self.offset_size) * 8));
        Ok(Some(address).filter(|a| Some(*a) != undefined))
    }

    /// A length as it stands in the file.
    pub(super) fn length(&self, cursor: &mut Cursor<'_>) -> Result<u64, Refusal> {
        cursor.uint(usize::from(self.length_size))
    }
}

impl Storage for File {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_range(&self, offset: u64, len: usize) -> Read<StorageBuffer> {
        if len > METADATA_LEN_MAX {
            return Err(Error::Other(format!(
                "an index or a heap of {len} bytes, where {METADATA_LEN_MAX} are the most"
            )));
        }
        self.read(offset, len)
            .map(StorageBuffer::from_vec)
            .map_err(Error::Other)
    }
}

/// Runs something of the crate; its errors and panics are refusals.
pub(super) fn guarded<T>(run: impl FnOnce() -> Read<T>) -> Result<T, Refusal> {
    border::guarded("HDF5", || run().map_err(|e| e.to_string()))
}
