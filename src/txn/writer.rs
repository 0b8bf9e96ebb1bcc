//! The single mutable handle of a container.
//!
//! Holds [`WriterState`]: staging of changes and placing of payload bytes. The commit protocol's writes and syncs in their
//! order stand in `protocol`. All calls take `&self`, so that many threads fill one transaction. Must not interpret keys or
//! payloads.
//!
//! Invariants: no byte that a committed generation reaches is ever written; the slot is written after sync 1 has
//! returned; nothing is retried after a failed sync.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::bytes::crc32;
use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::slot::Slot;
use crate::format::{ALIGN, Generation, ObjectId};
use crate::limits::{GENERATION_END, MESSAGE_LEN_MAX};
use crate::store::lock::WriterEntry;
use crate::store::{Owner, Storage};

mod protocol;

use self::protocol::own_state;
use super::commit::{self, Kind};
use super::engine::Writing;
use super::open::Pair;
use super::overlay::Overlay;
use super::payload::{self, Payload};
use super::reuse::Reuse;
use super::snapshot::{Committed, Protection};
use super::space::Space;
use super::tail::{self, Tail};
use super::{Change, Engine, Key, SnapshotState, Value};

/// How many keys can be locked at once by [`WriterState::lock_key`] without sharing a lock.
const KEY_LOCKS: usize = 64;

/// What makes a writer the only one; dropped as one when it closes.
#[derive(Debug)]
pub(super) struct Held {
    /// The handle that writes, and that the lock belongs to.
    pub(super) medium: Arc<dyn Storage>,
    /// Locks tell who reads what, so that space can be reused.
    pub(super) reuses: bool,
    pub(super) _entry: WriterEntry,
    pub(super) _flag: Writing,
}

/// Why a writer does not write any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Live,
    /// A sync or slot write failed after this generation.
    Poisoned(Generation),
    /// The path names another file.
    Replaced,
}

/// The last durable state, the slot before it, and what is deferred over them.
#[derive(Debug)]
struct Slots {
    newest: Arc<Committed>,
    other: Option<Slot>,
    /// Deferred commits since, and the keys they changed.
    deferred: u64,
    changed: u64,
}

/// A writer and its open transaction. Closing or dropping it aborts.
#[derive(Debug)]
pub(crate) struct WriterState {
    engine: Arc<Engine>,
    held: Mutex<Option<Arc<Held>>>,
    health: Mutex<Health>,
    /// The process that opened it: a forked child must not write.
    owner: Owner,
    id: [u8; 16],
    /// What the transaction builds on: the last durable generation, or a deferred commit over it.
    base: RwLock<Arc<SnapshotState>>,
    /// What the slots say, as far as this writer knows.
    slots: Mutex<Slots>,
    /// Which roots the free space follows from.
    reuse: Mutex<Reuse>,
    /// The base slot is marked unconfirmed and the first commit clears the mark.
    confirms: AtomicBool,
    /// History records of the base.
    history: AtomicU64,
    /// Shared by every call that adds to or reads the transaction, taken alone by commit, abort and close.
    gate: RwLock<()>,
    overlay: Overlay,
    tail: Mutex<Tail>,
    next_object_id: AtomicU64,
    message: Mutex<String>,
    /// The generation that the staged changes bring back: it must stay whole until they are committed.
    restoring: Mutex<Option<Arc<SnapshotState>>>,
    /// How many attributes an object has, as far as the catalog has counted.
    attribute_counts: Mutex<HashMap<ObjectId, u64>>,
    key_locks: Vec<Mutex<()>>,
    /// What the layers above have taken but not staged yet.
    pending: Mutex<Vec<Arc<dyn Pending>>>,
}

/// Work that a layer above has accepted for this transaction and stages late: at the latest when the writer commits.
pub(crate) trait Pending: std::fmt::Debug + Send + Sync {
    /// Stages everything accepted.
    fn flush(&self) -> Result<()>;
    /// Forgets everything accepted.
    fn discard(&self);
}

/// Keeps a commit or an abort of another thread from happening in the middle of one operation.
#[must_use]
pub(crate) struct Hold<'a> {
    /// None in a forked child, where nothing commits.
    _gate: Option<RwLockReadGuard<'a, ()>>,
}

impl WriterState {
    /// A writer on the newest slot of `pair`, which the engine has published. Heals an invalid slot.
    pub(super) fn open(engine: Arc<Engine>, held: Held, pair: &Pair) -> Result<Arc<Self>> {
        let newest = engine.published();
        let base = own_state(&engine, &newest);
        let end = pair.other.as_ref().map_or(0, |slot| slot.committed_end);
        let space = Space::new(
            end.max(base.committed_end()),
            engine.options().file_bytes_max,
        );
        let writer = Self {
            owner: Owner::here(),
            id: engine.options().writer_id()?,
            confirms: AtomicBool::new(pair.newest.unconfirmed && pair.other.is_some()),
            history: AtomicU64::new(commit::count_history(&base)?),
            tail: Mutex::new(Tail::new(space)),
            slots: Mutex::new(Slots {
                newest,
                other: pair.other.clone(),
                deferred: 0,
                changed: 0,
            }),
            reuse: Mutex::new(Reuse::new(held.reuses)),
            next_object_id: AtomicU64::new(base.slot().next_object_id),
            base: RwLock::new(base),
            engine,
            held: Mutex::new(Some(Arc::new(held))),
            health: Mutex::new(Health::Live),
            gate: RwLock::new(()),
            overlay: Overlay::default(),
            message: Mutex::default(),
            restoring: Mutex::default(),
            attribute_counts: Mutex::default(),
            key_locks: (0..KEY_LOCKS).map(|_| Mutex::new(())).collect(),
            pending: Mutex::default(),
        };
        if pair.other.is_none() {
            let _alone = writer.gate.write();
            writer.commit_changes(&mut Vec::new(), Kind::Healing)?;
        }
        Ok(Arc::new(writer))
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The committed state this transaction builds on.
    pub(crate) fn base(&self) -> Arc<SnapshotState> {
        Arc::clone(&self.base.read())
    }

    /// The generation by which what is decoded of the extent at `offset` is kept; none for what is not committed, and while
    /// a restore is staged, whose extents no present root holds.
    pub(super) fn seen(&self, offset: u64) -> Option<Generation> {
        if self.restoring.lock().is_some() || self.tail.lock().owns(offset) {
            return None;
        }
        self.base().seen()
    }

    /// Whether the transaction still builds on `base`.
    pub(super) fn is_on(&self, base: &Arc<SnapshotState>) -> bool {
        Arc::ptr_eq(&self.base.read(), base)
    }

    pub(super) fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Holds off commit and abort until dropped. An operation that appends payloads and then stages their keys holds
    /// one for its whole length; threads it starts need none of their own, but may take one. A thread that holds one
    /// must not commit.
    pub(crate) fn hold(&self) -> Hold<'_> {
        let owns = self.owner.is_here();
        Hold {
            // Recursive: a waiting commit must not block the second hold of a thread that has one.
            _gate: owns.then(|| self.gate.read_recursive()),
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
    /// `InvalidArgument` for no bytes or a wrong `align`; `Io` when the medium refuses (the transaction stays as it was);
    /// `Poisoned`, `Replaced` and `ReadOnly` when this writer writes no more.
    pub(crate) fn append(&self, bytes: &[u8], align: u64) -> Result<Extent> {
        if bytes.is_empty() || !align.is_power_of_two() || align < ALIGN {
            return Err(Error::invalid("payload")
                .expected("at least one byte, at a power of two from 8 on")
                .found(format_args!("{} bytes, alignment {align}", bytes.len())));
        }
        self.check_process()?;
        let crc = crc32(bytes);
        let _hold = self.hold();
        let medium = self.medium()?;
        let offset = if bytes.len() < tail::LARGE {
            self.begun_tail()?.gather(bytes, align)?
        } else {
            let offset = self.begun_tail()?.reserve(bytes.len(), align)?;
            self.write(medium.as_ref(), offset, bytes)?;
            offset
        };
        let worth_writing = self.tail.lock().is_worth_writing();
        if worth_writing {
            self.write_waiting(medium.as_ref())?;
        }
        Ok(Extent {
            offset,
            len: bytes.len() as u64,
            crc,
        })
    }

    /// A place for a payload so long that it is written by itself; `None` where [`WriterState::append`] gathers it with
    /// others. Places follow one another in the order of the calls, so many threads can then write what one has placed.
    pub(crate) fn reserve(&self, len: usize, align: u64) -> Result<Option<u64>> {
        if !Self::places(len) {
            return Ok(None);
        }
        let _hold = self.hold();
        self.check_health()?;
        self.begun_tail()?.reserve(len, align).map(Some)
    }

    /// True when [`WriterState::reserve`] gives payloads of this length a place.
    pub(crate) fn places(len: usize) -> bool {
        len >= tail::LARGE
    }

    /// Writes a payload at its reserved place.
    pub(crate) fn write_reserved(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _hold = self.hold();
        self.write(self.medium()?.as_ref(), offset, bytes)
    }

    /// An id for a new object, never given out before.
    pub(crate) fn next_object_id(&self) -> Result<ObjectId> {
        let _hold = self.hold();
        self.check_health()?;
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

    /// Counts that the catalog keeps, so that setting many attributes does not count them each time. Valid for what is
    /// staged: an abort clears them.
    pub(crate) fn attribute_counts(&self) -> &Mutex<HashMap<ObjectId, u64>> {
        &self.attribute_counts
    }

    /// Sets the message of the next commit.
    ///
    /// # Errors
    /// `LimitExceeded` above 1,024 bytes.
    pub(crate) fn set_message(&self, message: &str) -> Result<()> {
        self.check_process()?;
        if message.len() > MESSAGE_LEN_MAX {
            return Err(Error::limit("commit message")
                .expected(format_args!("at most {MESSAGE_LEN_MAX} bytes"))
                .found(message.len()));
        }
        let _hold = self.hold();
        message.clone_into(&mut self.message.lock());
        Ok(())
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.engine.check_process()?;
        let _hold = self.hold();
        match self.overlay.get(key) {
            Some(staged) => Ok(staged),
            None => self.base().get(key),
        }
    }

    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        let bytes = self.payload_range(extent, 0..extent.len)?;
        payload::verify(extent, &bytes).map_err(|e| self.engine.place(e))?;
        Ok(bytes)
    }

    pub(crate) fn payload_range(&self, extent: Extent, range: Range<u64>) -> Result<Payload> {
        self.engine.check_process()?;
        let _hold = self.hold();
        let (offset, len) = payload::locate(extent, &range)?;
        {
            let tail = self.tail.lock();
            if !tail.owns(extent.offset) {
                drop(tail);
                return self.base().payload_range(extent, range);
            }
            extent.check("extent", tail.high())?;
            let end = offset.saturating_add(len as u64);
            if let Some(bytes) = tail.bytes(&(offset..end)) {
                return Ok(Payload::Owned(bytes.into()));
            }
        }
        // A copy: these bytes may be overwritten after an abort.
        payload::read_owned(self.engine.storage(), offset, len).map_err(|e| self.engine.place(e))
    }

    /// Free bytes below the end of the file, as far as this writer knows, and bytes that wait for the horizon.
    pub(crate) fn reusable(&self) -> (u64, u64) {
        self.tail.lock().space.reusable()
    }

    /// Whether somebody pins `generation`, as far as locks tell.
    pub(super) fn is_read(&self, generation: Generation) -> Result<bool> {
        match self
            .engine
            .pins()
            .is_held(self.medium()?.as_ref(), generation)
        {
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Ok(false),
            Err(e) => Err(Error::io("cannot ask for the locks of readers", e)),
            Ok(held) => Ok(held),
        }
    }

    /// Marks the transaction as one that brings back `old`.
    pub(super) fn begin_restore(&self, old: Arc<SnapshotState>) {
        *self.restoring.lock() = Some(old);
        // They were counted in the state that goes away.
        self.attribute_counts.lock().clear();
    }

    /// Makes everything staged durable and visible, and returns the new generation. The writer goes on from there.
    ///
    /// A commit with nothing staged is a commit like any other: it takes a generation, keeps the message and the time.
    ///
    /// # Errors
    /// `Io` (a full disk) and `LimitExceeded` before anything reachable has changed: the transaction is as it was, and
    /// may be committed again or aborted. `Poisoned` when a sync or slot write failed: this writer is done for.
    pub(crate) fn commit(&self) -> Result<Generation> {
        self.check_process()?;
        self.flush_pending()?;
        let _alone = self.gate.write();
        let mut changes = self.overlay.take();
        let history = Kind::Full(self.history.load(Ordering::Acquire));
        let committed = self.commit_changes(&mut changes, history);
        if committed.is_err() {
            self.overlay.restore(changes);
        }
        committed.map_err(|e| self.engine.place(e))
    }

    /// Makes everything staged visible to this process, not durable: no sync, no slot, no generation. The next
    /// [`WriterState::commit`] makes it durable; until then a crash, or closing the writer, loses it. Gives how many such
    /// commits there are since the last durable one.
    ///
    /// # Errors
    /// As [`WriterState::commit`], but nothing poisons the writer.
    pub(crate) fn commit_deferred(&self) -> Result<u64> {
        self.check_process()?;
        self.flush_pending()?;
        let _alone = self.gate.write();
        let mut changes = self.overlay.take();
        let committed = self.defer_changes(&mut changes);
        if committed.is_err() {
            self.overlay.restore(changes);
        }
        committed.map_err(|e| self.engine.place(e))
    }

    /// Takes in what `pending` accepts from now on, until the writer is closed or nobody else holds it.
    pub(crate) fn hold_pending(&self, pending: Arc<dyn Pending>) {
        self.pending.lock().push(pending);
    }

    fn flush_pending(&self) -> Result<()> {
        // Flushing stages through this writer, so the list is not locked meanwhile.
        let pending = self.pending.lock().clone();
        pending.iter().try_for_each(|p| p.flush())?;
        drop(pending);
        self.pending.lock().retain(|p| Arc::strong_count(p) > 1);
        Ok(())
    }

    /// Forgets everything staged; the writer goes on from its base.
    pub(crate) fn abort(&self) {
        if self.check_process().is_err() {
            return;
        }
        self.discard_pending();
        let _alone = self.gate.write();
        self.forget();
    }

    /// Aborts and lets the container go, whoever still holds this state: its views read on, nothing writes. In a forked child
    /// it does nothing: the writer is the parent's.
    pub(crate) fn close(&self) {
        if self.check_process().is_err() {
            return;
        }
        // What is pending holds views of this writer: the list would keep it alive.
        drop(std::mem::take(&mut *self.pending.lock()));
        let _alone = self.gate.write();
        self.forget();
        let held = self.held.lock().take();
        let newest = {
            let slots = self.slots.lock();
            (slots.deferred > 0).then(|| Arc::clone(&slots.newest))
        };
        if let Some(newest) = newest {
            // What was deferred is lost. Those who read it go on, and keep the lock until they are done.
            self.engine.publish_again(newest);
        }
        // Views of this writer read on: from now on they need a pin like others, taken before another writer can be.
        let newest = Arc::clone(&self.slots.lock().newest);
        *self.base.write() = self.engine.snapshot().unwrap_or_else(|_| {
            let generation = newest.slot.generation;
            let engine = Arc::clone(&self.engine);
            Arc::new(SnapshotState::new(
                engine,
                newest,
                Protection::None,
                generation,
            ))
        });
        drop(held);
    }

    /// Before the gate is taken: whoever flushes waits for the gate with its own lock held.
    fn discard_pending(&self) {
        let pending = self.pending.lock().clone();
        for p in pending {
            p.discard();
        }
    }

    fn forget(&self) {
        drop(self.overlay.take());
        self.tail.lock().rewind();
        let next = self.base.read().slot().next_object_id;
        self.next_object_id.store(next, Ordering::Release);
        self.attribute_counts.lock().clear();
        self.message.lock().clear();
        drop(self.restoring.lock().take());
    }

    /// The handle to write with.
    fn medium(&self) -> Result<Arc<dyn Storage>> {
        self.check_health()?;
        match self.held.lock().as_ref() {
            Some(held) => Ok(Arc::clone(&held.medium)),
            None => Err(Error::read_only("this writer was closed")
                .help("take a new writer from the container")),
        }
    }

    /// A forked child must neither write nor wait for what a thread of its parent held.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.owner.is_here_for_sure() {
            return Ok(());
        }
        Err(self.engine.place(
            Error::lock_unavailable("this writer belongs to another process")
                .help("a forked child opens the container anew"),
        ))
    }

    fn check_health(&self) -> Result<()> {
        self.check_process()?;
        match *self.health.lock() {
            Health::Live => Ok(()),
            Health::Poisoned(last) => Err(Error::poisoned("a sync or slot write has failed", last)
                .help("drop this writer and open the container again")),
            Health::Replaced => Err(Error::replaced(
                "the path names another file than this writer's",
            )
            .help("open the path again")),
        }
    }

    /// Writes the buffers that are full. One that fails stays, readable and tried again later.
    fn write_waiting(&self, medium: &dyn Storage) -> Result<()> {
        loop {
            // A statement of its own: the tail is not locked while the medium works.
            let claimed = self.tail.lock().claim();
            let Some(sealed) = claimed else {
                return Ok(());
            };
            if let Err(e) = self.write(medium, sealed.offset, &sealed.bytes) {
                self.tail.lock().unclaim(sealed.offset);
                return Err(e);
            }
            self.tail.lock().written(sealed.offset);
        }
    }

    fn write(&self, medium: &dyn Storage, offset: u64, bytes: &[u8]) -> Result<()> {
        medium.write_all_at(offset, bytes).map_err(|e| {
            self.engine
                .place(Error::io("cannot write to the container", e).at(offset))
        })
    }
}
