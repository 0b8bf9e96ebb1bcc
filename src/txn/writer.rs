//! The single mutable handle of a container.
//!
//! Holds [`WriterState`]: staging of changes, placing of payload bytes, commit and abort. All calls take `&self`, so that
//! many threads fill one transaction. Must not interpret keys or payloads.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::bytes::crc32c;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::{ALIGN, BLOCK, Generation, ObjectId};
use crate::limits::{GENERATION_END, MESSAGE_LEN_MAX};

use super::engine::Published;
use super::overlay::Overlay;
use super::payload::{self, Payload};
use super::tail::{self, Tail};
use super::{Change, Engine, Key, SnapshotState, Value};

/// How many keys can be locked at once by [`WriterState::lock_key`] without sharing a lock.
const KEY_LOCKS: usize = 64;

/// A writer and its open transaction. Dropping it aborts.
#[derive(Debug)]
pub(crate) struct WriterState {
    engine: Arc<Engine>,
    base: RwLock<Arc<SnapshotState>>,
    /// Shared by every call that adds to the transaction, taken alone by commit and abort.
    gate: RwLock<()>,
    overlay: Overlay,
    tail: Mutex<Tail>,
    next_object_id: AtomicU64,
    message: Mutex<Vec<u8>>,
    key_locks: Vec<Mutex<()>>,
}

/// Keeps a commit or an abort of another thread from happening in the middle of one operation.
pub(crate) struct Hold<'a> {
    _gate: RwLockReadGuard<'a, ()>,
}

impl WriterState {
    pub(super) fn new(engine: Arc<Engine>, base: Arc<SnapshotState>) -> Self {
        Self {
            engine,
            tail: Mutex::new(Tail::new(transaction_start(&base))),
            next_object_id: AtomicU64::new(base.next_object_id()),
            base: RwLock::new(base),
            gate: RwLock::new(()),
            overlay: Overlay::default(),
            message: Mutex::default(),
            key_locks: (0..KEY_LOCKS).map(|_| Mutex::new(())).collect(),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The committed state this transaction builds on.
    pub(crate) fn base(&self) -> Arc<SnapshotState> {
        Arc::clone(&self.base.read())
    }

    pub(super) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Holds off commit and abort until dropped. An operation that appends payloads and then stages their keys holds
    /// one for its whole length; threads it starts need none of their own, but may take one.
    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold {
            // Recursive: a waiting commit must not block the second hold of a thread that has one.
            _gate: self.gate.read_recursive(),
        }
    }

    /// Stages a value; it replaces what was staged for `key` before.
    pub(crate) fn put(&self, key: Key, value: Value) {
        let _hold = self.hold();
        self.overlay.set(key, Some(value));
    }

    /// Stages a deletion; of an absent key it does nothing.
    pub(crate) fn delete(&self, key: &[u8]) {
        let _hold = self.hold();
        self.overlay.set(Key::from_slice(key), None);
    }

    /// Stages all of `changes` at once: another thread's view, or commit, sees all or none.
    pub(crate) fn stage(&self, changes: Vec<Change>) {
        let _hold = self.hold();
        self.overlay.extend(changes);
    }

    /// Stages all of `changes` at once if every key of `expected` still has the value it was read with (through this
    /// writer, under the same [`WriterState::hold`]). So a read-merge-write needs no lock while it decodes and encodes.
    ///
    /// # Errors
    /// The number of the first expected key that another thread has changed; nothing is staged then.
    pub(crate) fn stage_if<'a>(
        &self,
        expected: impl Iterator<Item = (&'a Key, Option<&'a Value>)>,
        changes: impl Iterator<Item = &'a Change>,
    ) -> Result<(), usize> {
        let _hold = self.hold();
        // A key nobody staged still has its committed value: the hold keeps commits away.
        self.overlay.extend_if(expected, changes)
    }

    /// Gives `bytes` a place in the file, at a multiple of `align` (a power of two, at least 8), and returns it with
    /// their checksum. They can be read back at once through this writer's views, and by others once a key that
    /// names them is committed.
    ///
    /// # Errors
    /// `InvalidArgument` for no bytes or a wrong `align`; `Io` when the medium refuses (the transaction stays as it was).
    pub(crate) fn append(&self, bytes: &[u8], align: u64) -> Result<Extent> {
        if bytes.is_empty() || !align.is_power_of_two() || align < ALIGN {
            return Err(Error::invalid("payload")
                .expected("at least one byte, at a power of two from 8 on")
                .found(format_args!("{} bytes, alignment {align}", bytes.len())));
        }
        let crc = crc32c(bytes);
        let _hold = self.hold();
        let offset = if bytes.len() < tail::LARGE {
            self.tail.lock().gather(bytes, align)?
        } else {
            let offset = self.tail.lock().reserve(bytes.len(), align)?;
            self.write(offset, bytes)?;
            offset
        };
        self.write_waiting()?;
        Ok(Extent {
            offset,
            len: bytes.len() as u64,
            crc,
        })
    }

    /// An id for a new object, never given out before.
    pub(crate) fn next_object_id(&self) -> Result<ObjectId> {
        let _hold = self.hold();
        let next = |id: u64| (id < GENERATION_END).then_some(id.saturating_add(1));
        self.next_object_id
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .map(ObjectId)
            .map_err(|_| Error::limit("object ids").expected("less than 2^61"))
    }

    /// Serialises reading, merging and writing of one key (a chunk that two regions share). One at a time a thread:
    /// two keys may share a lock. No parallel work may be started while it is held.
    pub(crate) fn lock_key(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let slot = usize::try_from(hasher.finish() % KEY_LOCKS as u64).unwrap_or(0);
        #[expect(
            clippy::indexing_slicing,
            reason = "the remainder is below the vector's length"
        )]
        self.key_locks[slot].lock()
    }

    /// Sets the message of the next commit.
    ///
    /// # Errors
    /// `LimitExceeded` above 1,024 bytes.
    pub(crate) fn set_message(&self, message: &str) -> Result<()> {
        if message.len() > MESSAGE_LEN_MAX {
            return Err(Error::limit("commit message")
                .expected(format_args!("at most {MESSAGE_LEN_MAX} bytes"))
                .found(message.len()));
        }
        message.as_bytes().clone_into(&mut self.message.lock());
        Ok(())
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self.overlay.get(key) {
            Some(staged) => Ok(staged),
            None => self.base().get(key),
        }
    }

    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        let bytes = self.payload_range(extent, 0..extent.len)?;
        payload::verify(extent, &bytes)?;
        Ok(bytes)
    }

    pub(crate) fn payload_range(&self, extent: Extent, range: Range<u64>) -> Result<Payload> {
        let (offset, len) = payload::locate(extent, &range)?;
        {
            let tail = self.tail.lock();
            if extent.offset < tail.start() {
                drop(tail);
                return self.base().payload_range(extent, range);
            }
            payload::check_bounds(extent, tail.end())?;
            let end = offset.saturating_add(len as u64);
            if let Some(bytes) = tail.bytes(&(offset..end)) {
                return Ok(Payload::Owned(bytes));
            }
        }
        payload::read(self.engine.storage(), offset, len)
    }

    /// Makes everything staged durable and visible, and returns the new generation. The writer goes on from there.
    ///
    /// A commit with nothing staged is a commit like any other: it takes a generation, keeps the message and the time.
    pub(crate) fn commit(&self) -> Result<Generation> {
        let _alone = self.gate.write();
        self.tail.lock().seal();
        self.write_waiting()?;
        let base = self.base();
        let mut entries = BTreeMap::clone(base.entries());
        for (key, value) in self.overlay.take() {
            match value {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
        let state = Published {
            generation: base.generation().saturating_add(1),
            committed_end: self.tail.lock().end(),
            next_object_id: self.next_object_id.load(Ordering::Acquire),
            entries: Arc::new(entries),
        };
        self.engine.publish(state);
        let base = self.engine.snapshot()?;
        *self.tail.lock() = Tail::new(transaction_start(&base));
        self.message.lock().clear();
        let generation = base.generation();
        *self.base.write() = base;
        Ok(generation)
    }

    /// Forgets everything staged; the writer goes on from its base.
    pub(crate) fn abort(&self) {
        let _alone = self.gate.write();
        let base = self.base();
        drop(self.overlay.take());
        *self.tail.lock() = Tail::new(transaction_start(&base));
        self.next_object_id
            .store(base.next_object_id(), Ordering::Release);
        self.message.lock().clear();
    }

    /// Writes the buffers that are full. One that fails stays, readable and tried again later.
    fn write_waiting(&self) -> Result<()> {
        let waiting = {
            let tail = self.tail.lock();
            if !tail.has_waiting() {
                return Ok(());
            }
            tail.waiting()
        };
        for sealed in waiting {
            self.write(sealed.offset, &sealed.bytes)?;
            self.tail.lock().written(sealed.offset);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.engine
            .storage()
            .write_all_at(offset, bytes)
            .map_err(|e| Error::io("cannot write a payload", e).at(offset))
    }
}

impl Drop for WriterState {
    fn drop(&mut self) {
        self.engine.release_writer();
    }
}

/// The first block that holds nothing committed.
fn transaction_start(base: &SnapshotState) -> u64 {
    base.committed_end().next_multiple_of(BLOCK)
}
