//! One open container: its medium, its caps, its newest committed state, its one writer.
//!
//! Holds [`Engine`]. Must not interpret keys or payloads, nor know the order of a commit.

use std::ffi::{OsStr, OsString};
#[cfg(any(unix, windows))]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::error::{Error, ErrorKind, Result};
use crate::format::commit::{self, CommitRecord};
use crate::format::extent::{Extent, NodeRef};
use crate::format::header::Header;
use crate::format::node::Node;
use crate::format::slot::{Slot, slot_index, slot_offset};
use crate::format::{Generation, key};
use crate::index::{Load, Loader, NodeCache, ReadNode};
use crate::limits::{Limits, MESSAGE_LEN_MAX};
#[cfg(any(unix, windows))]
use crate::store::Directory;
use crate::store::lock::{WRITER, WriterEntry};
use crate::store::{Folder, LockMode, Memory, Storage};

use super::create;
use super::open::{self, OpenReport, Pair};
use super::pins::{Pinned, Pins, Target};
use super::snapshot::{Committed, Protection};
use super::writer::Held;
use super::{
    EngineOptions, NewContainer, PayloadCache, Scratch, SnapshotState, View, WriterState, retained,
};

/// How often all bytes are read anew when commits come in between.
const BYTES_TRIES: u32 = 100;
/// How often a waiting writer tries again.
const TRY_EVERY: Duration = Duration::from_millis(5);
/// How soon one who waits for a commit looks again at first, and how seldom at last.
const LOOK_FIRST: Duration = Duration::from_micros(200);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What all handles of one open container share.
#[derive(Debug)]
pub(crate) struct Engine {
    storage: Arc<dyn Storage>,
    home: Option<Home>,
    /// The path as the caller gave it, for messages.
    file: Option<PathBuf>,
    header: Header,
    options: EngineOptions,
    cache: NodeCache,
    /// Decoded chunks and inner chunks.
    chunks: PayloadCache,
    /// Shard indexes, and which payloads have been verified whole.
    shards: PayloadCache,
    report: OpenReport,
    /// The newest state this process knows.
    published: RwLock<Arc<Committed>>,
    /// A writer of this engine lives: nobody else commits, so the published state is the newest.
    writing: AtomicBool,
    /// The generations that this handle reads.
    pins: Pins,
}

/// How payloads can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// In ranges, those as one that no more than this many bytes part.
    Ranges(u64),
    /// Whole only: the medium gives nothing less.
    Whole,
    /// Whole only: the caller wants it so.
    Off,
}

/// What leads back from a generation.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) other: Option<Slot>,
    pub(crate) records: Vec<CommitRecord>,
    pub(crate) fault: Option<Error>,
}

/// Where a container has its name.
#[derive(Debug)]
struct Home {
    folder: Arc<dyn Folder>,
    name: OsString,
}

impl Engine {
    /// Makes a new container at `path`, which must not exist, and opens it.
    #[cfg(any(unix, windows))]
    pub(crate) fn create_at(
        path: &Path,
        new: &NewContainer,
        options: EngineOptions,
    ) -> Result<Arc<Self>> {
        let (folder, name) = Directory::of(path, options.access)?;
        Self::create(Arc::new(folder), &name, new, options, Some(path.to_owned()))
            .map_err(|e| e.in_file(path))
    }

    /// Opens the container at `path`.
    #[cfg(any(unix, windows))]
    pub(crate) fn open_at(path: &Path, options: EngineOptions) -> Result<Arc<Self>> {
        let (folder, name) = Directory::of(path, options.access)?;
        Self::open(Arc::new(folder), &name, options, Some(path.to_owned()))
            .map_err(|e| e.in_file(path))
    }

    /// Makes a new container called `name` and opens it. It appears whole or not at all.
    pub(crate) fn create(
        folder: Arc<dyn Folder>,
        name: &OsStr,
        new: &NewContainer,
        options: EngineOptions,
        file: Option<PathBuf>,
    ) -> Result<Arc<Self>> {
        let image = create::image(new, &options)?;
        let unfinished = folder.create(name)?;
        let storage = unfinished.storage();
        let refuse = |e| Error::io("cannot write the new container", e);
        storage.write_all_at(0, &image).map_err(refuse)?;
        storage.sync().map_err(refuse)?;
        drop(storage);
        unfinished.publish().map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::already_exists("the file").help("another process has just created it")
            }
            _ => Error::io("cannot give the new container its name", e),
        })?;
        folder
            .sync()
            .map_err(|e| Error::io("cannot make the new container's name durable", e))?;
        Self::open(folder, name, options, file)
    }

    /// Opens the container called `name`. Writes nothing and needs no write permission.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        name: &OsStr,
        options: EngineOptions,
        file: Option<PathBuf>,
    ) -> Result<Arc<Self>> {
        let storage = folder.open(name, false)?;
        let home = Home {
            folder,
            name: name.to_owned(),
        };
        Self::build(storage, Some(home), options, file)
    }

    /// A new container in memory, holding the root group alone.
    pub(crate) fn create_in_memory(
        new: &NewContainer,
        options: EngineOptions,
    ) -> Result<Arc<Self>> {
        Self::from_bytes(create::image(new, &options)?, options)
    }

    /// A container in memory with the bytes of a file.
    pub(crate) fn from_bytes(bytes: Vec<u8>, options: EngineOptions) -> Result<Arc<Self>> {
        Self::from_storage(Arc::new(Memory::from_bytes(bytes)), options)
    }

    /// A container on any medium that has no name.
    pub(crate) fn from_storage(
        storage: Arc<dyn Storage>,
        options: EngineOptions,
    ) -> Result<Arc<Self>> {
        Self::build(storage, None, options, None)
    }

    /// A container in memory for tests of the rooms above.
    #[cfg(test)]
    pub(crate) fn in_memory(limits: Limits) -> Arc<Self> {
        let options = EngineOptions {
            limits,
            ..EngineOptions::default()
        };
        Self::create_in_memory(&NewContainer::default(), options).unwrap()
    }

    fn build(
        storage: Arc<dyn Storage>,
        home: Option<Home>,
        options: EngineOptions,
        file: Option<PathBuf>,
    ) -> Result<Arc<Self>> {
        let header = open::read_header(storage.as_ref())?;
        let cache = NodeCache::new(options.limits.node_cache_bytes);
        let nodes = Loader::new(Nodes(storage.as_ref()), &cache);
        let (pair, tree) = open::newest(storage.as_ref(), &nodes, &header)?;
        let len = storage
            .len()
            .map_err(|e| Error::io("cannot read the length of the container", e))?;
        let report = pair.report(len);
        let committed = Committed {
            slot: pair.newest,
            tree,
            retained: false,
            deferred: None,
        };
        let payloads = |bytes_max| {
            let cache = PayloadCache::new(bytes_max);
            cache.publish(committed.slot.generation, committed.slot.horizon);
            cache
        };
        Ok(Arc::new(Self {
            storage,
            home,
            file,
            header,
            cache,
            chunks: payloads(options.cache_bytes),
            shards: payloads(options.limits.node_cache_bytes),
            options,
            report,
            published: RwLock::new(Arc::new(committed)),
            writing: AtomicBool::new(false),
            pins: Pins::new(),
        }))
    }

    /// All bytes of the newest durable state, as a file that was closed after it would hold them.
    ///
    /// # Errors
    /// `Busy` when commits follow one another faster than the bytes can be read.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        for _ in 0..BYTES_TRIES {
            if let Some(bytes) = self.try_bytes().map_err(|e| self.place(e))? {
                return Ok(bytes);
            }
        }
        Err(self.place(
            Error::busy("commits change the container while its bytes are read")
                .help("copy a snapshot to bytes instead"),
        ))
    }

    /// None when a commit has come in between: while none does, all that both slots reach stays as it is.
    fn try_bytes(&self) -> Result<Option<Vec<u8>>> {
        let storage = self.storage.as_ref();
        let pair = open::read_slots(storage, &self.header, false)?;
        let slots = || std::iter::once(&pair.newest).chain(&pair.other);
        let end = slots().map(|slot| slot.committed_end).max().unwrap_or(0);
        let too_long = || {
            Error::limit("container")
                .expected("a length that memory holds")
                .found(end)
        };
        let mut bytes = Vec::new();
        let len = usize::try_from(end).map_err(|_| too_long())?;
        bytes.try_reserve_exact(len).map_err(|_| too_long())?;
        bytes.resize(len, 0);
        storage
            .read_exact_at(0, &mut bytes)
            .map_err(|e| Error::io("cannot read the container", e))?;
        // A writer may be in the middle of a slot, whose old content it was then.
        for slot in slots() {
            let at = usize::try_from(slot_offset(slot_index(slot.generation))).unwrap_or(0);
            let block = slot.encode();
            if let Some(place) = bytes.get_mut(at..).and_then(|b| b.get_mut(..block.len())) {
                place.copy_from_slice(&block);
            }
        }
        let after = open::read_slots(storage, &self.header, false)?;
        Ok((after.newest == pair.newest).then_some(bytes))
    }

    /// Length of the file.
    pub(crate) fn file_len(&self) -> Result<u64> {
        self.storage
            .len()
            .map_err(|e| Error::io("cannot read the length of the container", e))
    }

    /// The container's folder and name; none on a medium without a name.
    pub(super) fn named(&self) -> Option<(&Arc<dyn Folder>, &OsStr)> {
        let home = self.home.as_ref()?;
        Some((&home.folder, &home.name))
    }

    /// Whether both have the same file open, so that equal references mean equal bytes.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        let identity = self.storage.identity();
        std::ptr::eq(self, other) || identity.is_some() && identity == other.storage.identity()
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn options(&self) -> &EngineOptions {
        &self.options
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    pub(crate) fn file(&self) -> Option<&std::path::Path> {
        self.file.as_deref()
    }

    /// What opening found.
    pub(crate) fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Decoded chunks and inner chunks.
    pub(crate) fn chunks(&self) -> &PayloadCache {
        &self.chunks
    }

    /// Shard indexes, and which payloads have been verified whole.
    pub(crate) fn shards(&self) -> &PayloadCache {
        &self.shards
    }

    /// The gap between two wanted ranges of a payload up to which they are fetched as one; none where parts of a payload
    /// cannot be fetched, or are not to be.
    pub(crate) fn fetch_gap(&self) -> Fetch {
        match (self.options.partial_reads, self.storage.fetch_gap()) {
            (false, _) => Fetch::Off,
            (true, None) => Fetch::Whole,
            (true, Some(gap)) => Fetch::Ranges(gap),
        }
    }

    /// A medium for the time of one call: a file beside the container, or memory where the container is in memory.
    pub(crate) fn scratch(&self) -> Result<Scratch> {
        let Some(home) = &self.home else {
            return Ok(Scratch::new(Arc::new(Memory::default())));
        };
        let made = home.folder.scratch();
        made.map(Scratch::new)
            .map_err(|e| Error::io("cannot make a temporary file beside the container", e))
    }

    /// The newest committed state that this process knows, pinned; a newer one where the space of that one may have been
    /// reused meanwhile.
    ///
    /// # Errors
    /// `Io` when the lock cannot be taken or the slots not be read; what opening finds wrong.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Result<Arc<SnapshotState>> {
        loop {
            let (pinned, committed) = self
                .pins
                .acquire(self.lock_medium(), || {
                    let committed = Arc::clone(&self.published.read());
                    (committed.pin(), committed)
                })
                .map_err(|e| self.place(Error::io("cannot pin a generation", e)))?;
            let target = committed.pin();
            let generation = target.generation;
            let protection = protection(pinned, target);
            let seen = committed.slot.generation;
            let state = SnapshotState::new(Arc::clone(self), committed, protection, seen);
            if pinned != Pinned::Unsure {
                return Ok(Arc::new(state));
            }
            // At this second look the only build in progress overwrites what the horizon read here has passed, and no later
            // one overlooks the lock.
            let pair = open::read_slots(self.storage.as_ref(), &self.header, false)
                .map_err(|e| self.place(e))?;
            if generation >= pair.newest.horizon {
                self.pins.make_sure(generation);
                return Ok(Arc::new(state));
            }
            drop(state);
            self.advance().map_err(|e| self.place(e))?;
        }
    }

    /// The medium whose locks pins are: none are taken where the caller wants no locks.
    fn lock_medium(&self) -> &dyn Storage {
        if self.options.without_locks && self.storage.is_shared() {
            &NoLocks
        } else {
            self.storage.as_ref()
        }
    }

    pub(super) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The slot beside the newest, if it is valid and the newest is that of `state`; and the commit records from the one of
    /// `state` down to the horizon, newest first, with what is wrong where they end before it.
    pub(crate) fn chain(&self, state: &SnapshotState) -> Result<Chain> {
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        let slot = state.slot();
        let mut chain = Chain {
            other: pair.other.filter(|_| pair.newest == *slot),
            records: Vec::new(),
            fault: None,
        };
        let mut at = slot.record;
        let mut above = slot.generation.saturating_add(1);
        loop {
            let longest = (commit::FIXED_LEN + MESSAGE_LEN_MAX) as u64;
            let bounded = at.len >= commit::FIXED_LEN as u64 && at.len <= longest;
            let record = at
                .check("commit record reference", slot.committed_end)
                .and_then(|()| {
                    if bounded {
                        open::record_at(self.storage.as_ref(), at)
                    } else {
                        Err(Error::corrupt("commit record reference").found(at.len))
                    }
                })
                .and_then(|record| {
                    if record.generation < above && record.uuid == self.header.uuid {
                        return Ok(record);
                    }
                    Err(Error::corrupt("commit record")
                        .at(at.offset)
                        .expected(format_args!("a generation below {above} of this file"))
                        .found(record.generation))
                });
            let record = match record {
                Ok(record) => record,
                Err(e) => {
                    // A writer at work may have passed it meanwhile.
                    let now = open::read_slots(self.storage.as_ref(), &self.header, false)?;
                    let passed = above.saturating_sub(1) < now.newest.horizon;
                    chain.fault = (!passed).then_some(e);
                    return Ok(chain);
                }
            };
            above = record.generation;
            let previous = record.previous;
            chain.records.push(record);
            match previous {
                // Below the horizon its bytes may be another's.
                Some(previous) if above > slot.horizon.max(1) => at = previous,
                _ => return Ok(chain),
            }
        }
    }

    /// The generations that somebody reads, ascending; none where the locks of others cannot be asked for.
    pub(crate) fn pinned(&self) -> Result<Option<Vec<Generation>>> {
        match self.pins.all(self.storage.as_ref()) {
            Ok(all) => Ok(Some(all)),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(e) => Err(self.place(Error::io("cannot ask for the locks of readers", e))),
        }
    }

    pub(super) fn unpin(&self, target: Target) {
        self.pins.release(self.lock_medium(), target);
    }

    /// Refuses a state without protection whose space may have been reused by now.
    pub(super) fn check_whole(&self, state: &SnapshotState) -> Result<()> {
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        if state.committed().pin().generation >= pair.newest.horizon {
            return Ok(());
        }
        if state.is_retained() {
            let tree = open::tree_of(&pair.newest);
            if tree
                .get(self, &key::snapshot(state.generation()))?
                .is_some()
            {
                return Ok(());
            }
        }
        Err(Error::snapshot_expired(format!(
            "generation {}",
            state.generation()
        ))
        .expected(format_args!("at least {}", pair.newest.horizon))
        .help("a writer has reused its space; take a newer snapshot, or open the container where locks work"))
    }

    /// The generation that `lister` retains under this number.
    ///
    /// # Errors
    /// `NotFound`; what reading it finds wrong.
    pub(crate) fn retained(
        self: &Arc<Self>,
        lister: &Arc<SnapshotState>,
        generation: Generation,
    ) -> Result<Arc<SnapshotState>> {
        let view = View::Snapshot(Arc::clone(lister));
        let record = retained::get(&view, generation)?.ok_or_else(|| {
            self.place(
                Error::not_found(format!("generation {generation}"))
                    .expected("the newest generation or a retained one")
                    .help("`snapshot ls` lists those that are kept"),
            )
        })?;
        let committed =
            retained::committed(lister, generation, &record).map_err(|e| self.place(e))?;
        let target = committed.pin();
        let (pinned, ()) = self
            .pins
            .acquire(self.lock_medium(), || (target, ()))
            .map_err(|e| self.place(Error::io("cannot pin a generation", e)))?;
        let state = SnapshotState::new(
            Arc::clone(self),
            Arc::new(committed),
            protection(pinned, target),
            lister.committed().pin().generation,
        );
        // The lister may be old itself, and what it lists released since.
        self.check_whole(&state).map_err(|e| self.place(e))?;
        self.pins.make_sure(generation);
        Ok(Arc::new(state))
    }

    /// Waits for a generation above `known`, looking every few milliseconds; none when `wait` has passed.
    ///
    /// # Errors
    /// As [`Engine::refresh`].
    pub(crate) fn wait_newer(
        self: &Arc<Self>,
        known: Generation,
        wait: Duration,
    ) -> Result<Option<Arc<SnapshotState>>> {
        let until = Instant::now().checked_add(wait);
        let mut pause = LOOK_FIRST;
        loop {
            let state = self.refresh()?;
            if state.generation() > known && state.deferred().is_none() {
                return Ok(Some(state));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
            pause = pause.saturating_mul(2).min(LOOK_EVERY);
        }
    }

    /// Looks for commits of other processes, and gives the newest state.
    ///
    /// # Errors
    /// As opening; `Replaced` when the path now names another file.
    pub(crate) fn refresh(self: &Arc<Self>) -> Result<Arc<SnapshotState>> {
        if !self.writing.load(Ordering::Acquire) && self.storage.is_shared() {
            self.check_name(self.storage.as_ref())
                .map_err(|e| self.place(e))?;
            self.advance().map_err(|e| self.place(e))?;
        }
        self.snapshot()
    }

    /// Publishes the newest state if it is newer than what is published.
    fn advance(&self) -> Result<()> {
        let known = self.published.read().slot.generation;
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        if pair.newest.generation <= known {
            return Ok(());
        }
        let (pair, tree) = open::newest(self.storage.as_ref(), self, &self.header)?;
        self.publish_newer(Arc::new(Committed {
            slot: pair.newest,
            tree,
            retained: false,
            deferred: None,
        }));
        Ok(())
    }

    pub(super) fn published(&self) -> Arc<Committed> {
        Arc::clone(&self.published.read())
    }

    /// Goes back to a durable state from a deferred one.
    pub(super) fn publish_again(&self, committed: Arc<Committed>) {
        *self.published.write() = committed;
    }

    /// Drops a node whose bytes may be written over from now on.
    pub(super) fn forget_node(&self, extent: &Extent) {
        self.cache.forget(extent);
    }

    /// As [`Engine::publish`], unless another thread has been faster.
    fn publish_newer(&self, committed: Arc<Committed>) {
        let mut published = self.published.write();
        if committed.slot.generation > published.slot.generation {
            for payloads in [&self.chunks, &self.shards] {
                payloads.publish(committed.slot.generation, committed.slot.horizon);
            }
            *published = committed;
        }
    }

    pub(super) fn publish(&self, committed: Arc<Committed>) {
        let mut published = self.published.write();
        for payloads in [&self.chunks, &self.shards] {
            // A deferred commit frees and reuses nothing.
            if committed.deferred.is_none() {
                payloads.publish(committed.slot.generation, committed.slot.horizon);
            }
        }
        *published = committed;
    }

    /// The one writer of the container.
    ///
    /// # Errors
    /// `Busy` at once while another one lives, in this process or another; `ReadOnly` and `Io` where writing is not
    /// possible; `Replaced` when the path names another file; what opening finds wrong.
    pub(crate) fn writer(self: &Arc<Self>) -> Result<Arc<WriterState>> {
        self.writer_within(Duration::ZERO)
    }

    /// As [`Engine::writer`], but waits up to `wait` for another writer to go.
    pub(crate) fn writer_within(self: &Arc<Self>, wait: Duration) -> Result<Arc<WriterState>> {
        let until = (!wait.is_zero()).then(|| Instant::now().checked_add(wait));
        loop {
            let e = match self.try_writer() {
                Ok(writer) => return Ok(writer),
                Err(e) => self.place(e),
            };
            // A wait too long to be told is for ever.
            let goes_on = match until {
                None => false,
                Some(None) => true,
                Some(Some(until)) => Instant::now() < until,
            };
            if e.kind() != ErrorKind::Busy || !goes_on {
                return Err(e);
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    fn try_writer(self: &Arc<Self>) -> Result<Arc<WriterState>> {
        if self.options.read_only {
            return Err(Error::read_only("the container was opened for reading")
                .help("open it without `read_only` to write"));
        }
        let busy = || {
            Error::busy("another writer holds this container")
                .help("wait for it with a timeout, or try again later")
        };
        let flag = Writing::new(self).ok_or_else(busy)?;
        let medium = match &self.home {
            Some(home) => home.folder.open(&home.name, true)?,
            None => Arc::clone(&self.storage),
        };
        if medium.identity() != self.storage.identity() {
            return Err(replaced());
        }
        let entry = WriterEntry::new(medium.identity()).ok_or_else(busy)?;
        let mut locked = false;
        match medium.try_lock(WRITER, LockMode::Exclusive) {
            Ok(true) => locked = true,
            Ok(false) => return Err(busy()),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {
                if !self.options.without_locks {
                    return Err(Error::lock_unavailable("the file system gives no locks")
                        .help("write without them only where no other writer can exist"));
                }
            }
            Err(e) => return Err(Error::io("cannot take the writer's lock", e)),
        }
        self.check_name(medium.as_ref())?;
        if let Some(home) = &self.home {
            home.folder.tidy(&home.name);
        }
        let pair = open::read_slots(medium.as_ref(), &self.header, true)?;
        self.catch_up(&pair)?;
        let held = Held {
            medium,
            reuses: locked && self.options.reuse && !self.options.without_locks,
            _entry: entry,
            _flag: flag,
        };
        WriterState::open(Arc::clone(self), held, &pair)
    }

    /// Makes the pair's newest slot the published state, be it newer or older: after a failed commit of this process the
    /// file decides.
    fn catch_up(&self, pair: &Pair) -> Result<()> {
        if pair.newest.ro_compat != 0 {
            return Err(Error::unsupported("features of this container")
                .expected("none that forbid writing")
                .found(format_args!("bits {:#x}", pair.newest.ro_compat))
                .help("a newer release of orthant writes this file"));
        }
        if self.published.read().slot != pair.newest {
            let tree = open::verify(self.storage.as_ref(), self, &self.header, &pair.newest)?;
            self.publish(Arc::new(Committed {
                slot: pair.newest.clone(),
                tree,
                retained: false,
                deferred: None,
            }));
        }
        Ok(())
    }

    /// Refuses to go on when the name leads to another file than `medium`.
    pub(super) fn check_name(&self, medium: &dyn Storage) -> Result<()> {
        let Some(home) = &self.home else {
            return Ok(());
        };
        let named = home
            .folder
            .identity(&home.name)
            .map_err(|e| Error::io("cannot look at the container's path", e))?;
        // A name that is gone is no other file: readers and the writer of an unlinked file go on.
        if named.is_some() && named != medium.identity() {
            return Err(replaced());
        }
        Ok(())
    }

    /// Adds the container's path to an error.
    pub(super) fn place(&self, e: Error) -> Error {
        match &self.file {
            Some(file) => e.in_file(file),
            None => e,
        }
    }
}

fn protection(pinned: Pinned, target: Target) -> Protection {
    match pinned {
        Pinned::Not => Protection::None,
        Pinned::Sure | Pinned::Unsure => Protection::Pin(target),
    }
}

fn replaced() -> Error {
    Error::replaced("the path now names another file than this handle").help("open the path again")
}

impl Load for Engine {
    #[inline]
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        Loader::new(Nodes(self.storage.as_ref()), &self.cache).load(reference)
    }
}

/// A medium that has no locks to give, whatever the container's has.
#[derive(Debug)]
struct NoLocks;

impl Storage for NoLocks {
    fn len(&self) -> std::io::Result<u64> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn write_all_at(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self, _: u64, _: LockMode) -> std::io::Result<bool> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Private copies of nodes.
struct Nodes<'a>(&'a dyn Storage);

impl ReadNode for Nodes<'_> {
    fn read_node(&self, offset: u64, len: usize) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; len].into_boxed_slice();
        self.0
            .read_exact_at(offset, &mut bytes)
            .map_err(|e| Error::io("cannot read an index node", e).at(offset))?;
        Ok(bytes)
    }
}

/// The mark that a writer of an engine lives, taken back when dropped.
#[derive(Debug)]
pub(super) struct Writing(Arc<Engine>);

impl Writing {
    /// None when one lives.
    fn new(engine: &Arc<Engine>) -> Option<Self> {
        (!engine.writing.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(engine)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::Release);
    }
}
