//! A container as a store of the [zarrs](https://docs.rs/zarrs) crate.
//!
//! Holds [`SnapshotStore`], which reads, and [`WriterStore`], which reads and writes: zarrs' traits over `tree`, where keys
//! are found, and `put`, where they are made. Documents are made and read, chunks are handed over as they are stored.
//!
//! Every array of the container is an array of version 3 with the default chunk keys, `/` between the numbers. One that does
//! not begin at coordinate 0 is seen from the chunk edge at or below its lower bounds, and says where it lies in its attribute
//! `orthant`. A key that is neither a document nor a chunk is kept as an array of bytes of that path, which is marked by an
//! attribute, as are groups without a document of their own.
//!
//! ```
//! use std::sync::Arc;
//! use orthant::{ArraySpec, Container, region};
//! use orthant_zarr::store::SnapshotStore;
//! use zarrs_storage::ReadableStorageTraits;
//!
//! let c = Container::in_memory()?;
//! let w = c.writer()?;
//! w.create_array("t", ArraySpec::<f32>::new(region![-4..4]).chunks([4]))?.write_scalar(region![..], 1.0)?;
//! w.commit()?;
//! let store = Arc::new(SnapshotStore::new(&c.snapshot()?));
//! // `zarrs::array::Array::open(store, "/t")` goes on from here.
//! assert!(store.get(&"t/zarr.json".try_into()?)?.is_some());
//! assert!(store.get(&"t/c/1".try_into()?)?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod put;
mod tree;

use orthant::{Error, ErrorKind, Snapshot, Writer};
use zarrs_storage::byte_range::{ByteRange, ByteRangeIterator, InvalidByteRangeError};
use zarrs_storage::{
    Bytes, ListableStorageTraits, MaybeBytesIterator, OffsetBytesIterator, ReadableStorageTraits,
    StorageError, StoreKey, StoreKeys, StoreKeysPrefixes, StorePrefix, WritableStorageTraits,
    store_set_partial_many,
};

use self::tree::{Found, Tree};

/// One committed generation as a store that is read.
#[derive(Debug)]
pub struct SnapshotStore {
    tree: Tree,
}

impl SnapshotStore {
    /// A store over all of a snapshot, which it holds.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            tree: Tree::new(snapshot.root(), true),
        }
    }
}

/// A writer's uncommitted state as a store that is read and written.
///
/// Nothing is durable, or seen by others, before [`Writer::commit`]; all that was set since the last commit becomes so at once.
/// Not for several threads that set documents of one array at the same time; chunks may be set from any thread.
#[derive(Debug)]
pub struct WriterStore {
    tree: Tree,
}

impl WriterStore {
    /// A store over all of a container.
    pub fn new(writer: &Writer) -> Self {
        Self {
            tree: Tree::new(writer.root(), false),
        }
    }
}

/// What a container says, in the words of a store.
fn storage(e: &Error) -> StorageError {
    match e.kind() {
        ErrorKind::ReadOnly => StorageError::ReadOnly,
        ErrorKind::Unsupported => StorageError::Unsupported(e.to_string()),
        _ => StorageError::Other(e.to_string()),
    }
}

/// The bytes that a range names of `size`, if they are there.
fn resolve(range: ByteRange, size: u64) -> Result<std::ops::Range<u64>, StorageError> {
    let found = match range {
        ByteRange::FromStart(start, None) => Some(start..size),
        ByteRange::FromStart(start, Some(len)) => start.checked_add(len).map(|end| start..end),
        ByteRange::Suffix(len) => size.checked_sub(len).map(|start| start..size),
    };
    found
        .filter(|r| r.start <= r.end && r.end <= size)
        .ok_or_else(|| InvalidByteRangeError::new(range, size).into())
}

impl Tree {
    fn parts<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let Some(found) = self.find(key.as_str())? else {
            return Ok(None);
        };
        let part = move |range: ByteRange| {
            let range = resolve(range, found.len())?;
            found.read(range).map(Bytes::from)
        };
        Ok(Some(Box::new(ranges.map(part))))
    }

    fn size_of(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        Ok(self.find(key.as_str())?.map(|found| found.len()))
    }

    fn listed(&self, prefix: &StorePrefix) -> Result<StoreKeys, StorageError> {
        let keys = self.keys(prefix.as_str())?;
        keys.into_iter().map(|k| Ok(StoreKey::new(k)?)).collect()
    }

    fn folder(&self, prefix: &StorePrefix) -> Result<StoreKeysPrefixes, StorageError> {
        let (keys, below) = self.folder_of(prefix.as_str())?;
        let keys: Result<_, StorageError> =
            keys.into_iter().map(|k| Ok(StoreKey::new(k)?)).collect();
        let below: Result<_, StorageError> = below
            .into_iter()
            .map(|p| Ok(StorePrefix::new(p)?))
            .collect();
        Ok(StoreKeysPrefixes::new(keys?, below?))
    }

    fn size_below(&self, prefix: &StorePrefix) -> Result<u64, StorageError> {
        let sizes = self.keys(prefix.as_str())?.into_iter().map(|key| {
            let found = self.find(&key)?;
            Ok(found.map_or(0, |found: Found| found.len()))
        });
        sizes.sum()
    }
}

/// Both stores read and list alike.
macro_rules! reads_as_a_tree {
    ($($store:ty),*) => {$(
        impl ReadableStorageTraits for $store {
            fn get_partial_many<'a>(
                &'a self,
                key: &StoreKey,
                byte_ranges: ByteRangeIterator<'a>,
            ) -> Result<MaybeBytesIterator<'a>, StorageError> {
                self.tree.parts(key, byte_ranges)
            }

            fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
                self.tree.size_of(key)
            }

            fn supports_get_partial(&self) -> bool {
                true
            }
        }

        impl ListableStorageTraits for $store {
            fn list(&self) -> Result<StoreKeys, StorageError> {
                self.tree.listed(&StorePrefix::root())
            }

            fn list_prefix(&self, prefix: &StorePrefix) -> Result<StoreKeys, StorageError> {
                self.tree.listed(prefix)
            }

            fn list_dir(&self, prefix: &StorePrefix) -> Result<StoreKeysPrefixes, StorageError> {
                self.tree.folder(prefix)
            }

            fn size_prefix(&self, prefix: &StorePrefix) -> Result<u64, StorageError> {
                self.tree.size_below(prefix)
            }
        }
    )*};
}

reads_as_a_tree!(SnapshotStore, WriterStore);

impl WritableStorageTraits for WriterStore {
    fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StorageError> {
        self.tree.set(key, &value)
    }

    fn set_partial_many(
        &self,
        key: &StoreKey,
        offset_values: OffsetBytesIterator,
    ) -> Result<(), StorageError> {
        store_set_partial_many(self, key, offset_values)
    }

    fn erase(&self, key: &StoreKey) -> Result<(), StorageError> {
        self.tree.erase(key.as_str())
    }

    fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StorageError> {
        self.tree.erase_below(prefix.as_str())
    }

    fn supports_set_partial(&self) -> bool {
        false
    }
}
