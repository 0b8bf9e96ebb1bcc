//! The handles a program starts from: the container, its snapshots, its writer.
//!
//! Holds [`Container`], [`OpenOptions`], [`Snapshot`] and [`Writer`]. Thin: must not hold algorithms.

use std::ops::ControlFlow;
use std::path::Path;
#[cfg(any(unix, windows))]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::array::{
    Array, ArraySpec, DynArray, DynArraySpec, Element, Rechunk, RechunkReceipt, ZeroBased,
};
use crate::error::{Error, Result};
use crate::group::{Group, Member};

use crate::limits::Limits;
use crate::store::{Access, Storage};
use crate::txn::{
    self, CACHE_BYTES, CacheStatistics, Engine, EngineOptions, OpenReport, SnapshotState, View,
    WriterState,
};

/// Decoded bytes kept of a stranger's file.
const CACHE_BYTES_UNTRUSTED: u64 = 64 << 20;

/// How reads reach the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadVia {
    /// Through a memory map: the default for local files. Another program that truncates the file kills the process.
    #[default]
    Mmap,
    /// Through positioned reads: for files that others may truncate, and for network file systems.
    Pread,
}

/// What a writer does where the file system gives no locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// Refuses with [`crate::ErrorKind::LockUnavailable`].
    #[default]
    Required,
    /// Writes without a lock: the caller sees to it that there is no second writer. Space is never reused then.
    Off,
}

/// How to open or create a container.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    read_only: bool,
    via: ReadVia,
    locking: Locking,
    limits: Limits,
    cache_bytes: u64,
    partial_reads: bool,
    reuse_space: bool,
    max_file_bytes: u64,
    uuid: Option<[u8; 16]>,
    created: Option<i64>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// Reading and writing, through a map, with the default limits.
    pub fn new() -> Self {
        Self {
            read_only: false,
            via: ReadVia::Mmap,
            locking: Locking::Required,
            limits: Limits::default(),
            cache_bytes: CACHE_BYTES as u64,
            partial_reads: true,
            reuse_space: true,
            max_file_bytes: u64::MAX,
            uuid: None,
            created: None,
        }
    }

    /// For a file from a stranger: positioned reads, private copies, and the tighter limits.
    pub fn untrusted() -> Self {
        Self {
            read_only: true,
            via: ReadVia::Pread,
            limits: Limits::untrusted(),
            cache_bytes: CACHE_BYTES_UNTRUSTED,
            ..Self::new()
        }
    }

    /// Refuses to write; needs no write permission.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// How reads reach the bytes.
    #[must_use]
    pub fn via(mut self, via: ReadVia) -> Self {
        self.via = via;
        self
    }

    /// What a writer does where there are no locks.
    #[must_use]
    pub fn locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// The caps on counts, lengths and depths.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Most bytes of decoded chunks and inner chunks that the container keeps for later reads, shared by all its handles.
    /// Default: 256 MiB; 0 keeps none.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether parts of a shard are fetched by themselves, which is the default; without it a shard is fetched whole, and
    /// only what is asked for is decoded. For comparison: results never differ.
    #[must_use]
    pub fn partial_reads(mut self, partial_reads: bool) -> Self {
        self.partial_reads = partial_reads;
        self
    }

    /// Whether commits write into space that nothing reaches any more, which is the default. Without it the file only grows.
    #[must_use]
    pub fn reuse_space(mut self, reuse_space: bool) -> Self {
        self.reuse_space = reuse_space;
        self
    }

    /// The most bytes that the file may grow to: a write past that is [`crate::ErrorKind::FileFull`], and changes nothing.
    #[must_use]
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = bytes;
        self
    }

    /// The identity of a container that is created; random when not given.
    #[must_use]
    pub fn uuid(mut self, uuid: [u8; 16]) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// The time of creation, in nanoseconds since the Unix epoch; now when not given.
    #[must_use]
    pub fn created(mut self, nanoseconds: i64) -> Self {
        self.created = Some(nanoseconds);
        self
    }

    /// Opens an existing container. Writes nothing.
    ///
    /// # Errors
    /// `NotContainer` (the message says what the file looks like), `Corrupt`, `Unsupported`, `Busy` when a writer was in the
    /// middle of a commit for a second, `Io` for a missing path, a folder, a FIFO or a device.
    #[cfg(any(unix, windows))]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Container> {
        Engine::open_at(path.as_ref(), self.engine()).map(Container::new)
    }

    /// Creates a container; an existing file is refused. It appears whole or not at all.
    ///
    /// # Errors
    /// `AlreadyExists`, `Io`.
    #[cfg(any(unix, windows))]
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Container> {
        Engine::create_at(path.as_ref(), &self.new_container(), self.engine()).map(Container::new)
    }

    /// Creates a container that appears under its name only when [`NewContainer::publish`] gives it that: filled and
    /// committed before, so that a process that ends in between leaves no half of it. An existing file is refused.
    ///
    /// # Errors
    /// `AlreadyExists`; `Busy` while another process makes a file of the same name; `Io`.
    #[cfg(any(unix, windows))]
    pub fn create_unnamed(&self, path: impl AsRef<Path>) -> Result<NewContainer> {
        let path = path.as_ref();
        let (engine, file) = Engine::create_unnamed_at(path, &self.new_container(), self.engine())?;
        Ok(NewContainer {
            container: Container::new(engine),
            file,
            path: path.to_owned(),
            options: self.clone(),
        })
    }

    /// Creates a container in memory.
    ///
    /// # Errors
    /// `Unsupported` where the platform has no clock or randomness and none was given.
    pub fn create_in_memory(&self) -> Result<Container> {
        Engine::create_in_memory(&self.new_container(), self.engine()).map(Container::new)
    }

    /// Opens a container whose bytes are in memory.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn from_bytes(&self, bytes: Vec<u8>) -> Result<Container> {
        Engine::from_bytes(bytes, self.engine()).map(Container::new)
    }

    /// Opens a container on any medium: for this project's own tests, as all of [`crate::testing`].
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    #[doc(hidden)]
    pub fn open_storage(&self, storage: Arc<dyn Storage>) -> Result<Container> {
        Engine::from_storage(storage, self.engine()).map(Container::new)
    }

    fn engine(&self) -> EngineOptions {
        EngineOptions {
            limits: self.limits.clone(),
            access: match self.via {
                ReadVia::Mmap => Access::Map,
                ReadVia::Pread => Access::Read,
            },
            cache_bytes: usize::try_from(self.cache_bytes).unwrap_or(usize::MAX),
            partial_reads: self.partial_reads,
            read_only: self.read_only,
            without_locks: self.locking == Locking::Off,
            reuse: self.reuse_space,
            file_bytes_max: self.max_file_bytes,
            ..EngineOptions::default()
        }
    }

    fn new_container(&self) -> txn::NewContainer {
        txn::NewContainer {
            uuid: self.uuid,
            created: self.created,
            ..txn::NewContainer::default()
        }
    }
}

/// A container whose file has no name yet. Dropped, it leaves nothing; a process that is killed leaves a hidden file that the
/// next one to create or write a container of that name takes away.
///
/// ```
/// # use orthant::{ArraySpec, Container, OpenOptions, region};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cube.orth");
/// let new = OpenOptions::new().create_unnamed(&path)?;
/// let writer = new.container().writer()?;
/// writer
///     .create_array("cube", ArraySpec::<f32>::new(region![0..4]))?
///     .write_slice(region![..], &[1.0; 4])?;
/// writer.commit()?;
/// assert!(!path.exists());
/// let container = new.publish()?;
/// assert_eq!(container.snapshot()?.array::<f32>("cube")?.read_vec(region![..])?, [1.0; 4]);
/// # Ok::<(), orthant::Error>(())
/// ```
#[cfg(any(unix, windows))]
#[derive(Debug)]
pub struct NewContainer {
    container: Container,
    file: txn::Unnamed,
    path: PathBuf,
    options: OpenOptions,
}

#[cfg(any(unix, windows))]
impl NewContainer {
    /// The container, to be filled. Nobody else can open it.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Where the file is meanwhile: what to remove should the process have to end before.
    pub fn temporary_path(&self) -> Option<&Path> {
        self.file.path()
    }

    /// Gives the file its name, durably, and opens it by that. What its writer has not committed is not in it. The writer may
    /// live on until this returns, and should: meanwhile nobody else takes the file for one left behind.
    ///
    /// # Errors
    /// `AlreadyExists` where another process was faster; `Io`.
    pub fn publish(self) -> Result<Container> {
        self.file.publish().map_err(|e| e.in_file(&self.path))?;
        self.options.open(&self.path)
    }
}

/// One file of arrays. Cheap to clone, usable from many threads.
#[derive(Debug, Clone)]
pub struct Container {
    engine: Arc<Engine>,
}

impl Container {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Creates a container; an existing file is refused. See [`OpenOptions::create`].
    ///
    /// # Errors
    /// As [`OpenOptions::create`].
    #[cfg(any(unix, windows))]
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().create(path)
    }

    /// Opens a container for reading and writing. See [`OpenOptions::open`].
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    #[cfg(any(unix, windows))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a container for reading: needs no lock and no write permission.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    #[cfg(any(unix, windows))]
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().read_only(true).open(path)
    }

    /// A new container in memory.
    ///
    /// # Errors
    /// As [`OpenOptions::create_in_memory`].
    pub fn in_memory() -> Result<Self> {
        OpenOptions::new().create_in_memory()
    }

    /// Opens a container whose bytes are in memory.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        OpenOptions::new().from_bytes(bytes)
    }

    /// What all handles share.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// As [`Container::engine`], for what keeps it.
    pub(crate) fn engine_shared(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The bytes of the newest durable state, as a file would hold them: dead space, retained snapshots and all. Sees
    /// commits of other processes. [`Snapshot::copy_to_bytes`] gives the same without dead space.
    ///
    /// # Errors
    /// `Busy` when commits follow one another faster than the bytes can be read; `LimitExceeded`; `Io`.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.engine.to_bytes()
    }

    /// How the container was opened: which generation, and whether the newest slot was damaged.
    pub fn report(&self) -> &OpenReport {
        self.engine.report()
    }

    /// The file's path; none in memory.
    pub fn path(&self) -> Option<&Path> {
        self.engine.file()
    }

    /// What the cache of decoded chunks holds and has done.
    pub fn cache_statistics(&self) -> CacheStatistics {
        self.engine.chunks().statistics()
    }

    /// The newest state that this process knows, pinned: it stays as it is for as long as it lives, whatever is committed
    /// meanwhile by whomever. Costs a lock and a read of the slots. Where the system gives no locks it is not pinned, and a
    /// read of it may answer `SnapshotExpired`.
    ///
    /// # Errors
    /// `Io`; as [`OpenOptions::open`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.engine.snapshot().map(Snapshot::from_state)
    }

    /// The newest state on disk: sees commits of other processes.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn latest(&self) -> Result<Snapshot> {
        self.engine.refresh().map(Snapshot::from_state)
    }

    /// As [`Container::latest`]; looks for commits of other processes with two small reads, and none where this process is
    /// the one that writes.
    ///
    /// # Errors
    /// As [`OpenOptions::open`]; `Replaced` when the path now names another file.
    pub fn refresh(&self) -> Result<Snapshot> {
        self.latest()
    }

    /// Waits for a generation newer than `known`, committed by any process; `None` when `timeout` has passed.
    ///
    /// # Errors
    /// As [`Container::refresh`].
    pub fn wait_newer(&self, known: u64, timeout: Duration) -> Result<Option<Snapshot>> {
        let newer = self.engine.wait_newer(known, timeout)?;
        Ok(newer.map(Snapshot::from_state))
    }

    /// The one writer, across threads and processes.
    ///
    /// # Errors
    /// `Busy` at once while another one lives; `LockUnavailable`; `ReadOnly`; `Replaced`; `Io`.
    pub fn writer(&self) -> Result<Writer> {
        self.writer_timeout(Duration::ZERO)
    }

    /// The one writer; waits up to `timeout` for another one to end.
    ///
    /// # Errors
    /// As [`Container::writer`].
    pub fn writer_timeout(&self, timeout: Duration) -> Result<Writer> {
        Ok(Writer {
            state: self.engine.writer_within(timeout)?,
        })
    }
}

/// A pinned generation: reads the same for as long as it lives, beside any writer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    view: View,
}

impl Snapshot {
    pub(crate) fn from_state(state: Arc<SnapshotState>) -> Self {
        Self {
            view: View::Snapshot(state),
        }
    }

    /// What this state is read through.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The generation.
    pub fn generation(&self) -> u64 {
        self.view.generation()
    }

    /// Which of the deferred commits over the last durable generation this is; `None` for a durable one. The generation is
    /// then the one that the next durable commit will have.
    pub fn deferred(&self) -> Option<u64> {
        match &self.view {
            View::Snapshot(state) => state.deferred(),
            View::Writer(_) => None,
        }
    }

    /// The root group.
    pub fn root(&self) -> Group {
        Group::root(self.view.clone())
    }

    /// The group at `path`; `""` and `"/"` are the root.
    ///
    /// # Errors
    /// `NotFound`, `InvalidArgument` for a path that no object can have, `Corrupt`, `Io`.
    pub fn group(&self, path: &str) -> Result<Group> {
        self.root().group(path)
    }

    /// The array at `path`, its elements read as `T`.
    ///
    /// # Errors
    /// As [`Snapshot::group`]; `TypeMismatch`; `Unsupported` for a type, codec or feature this build does not have.
    pub fn array<T: Element>(&self, path: &str) -> Result<Array<T>> {
        self.dyn_array(path)?.typed()
    }

    /// The array at `path`, its type known at run time.
    ///
    /// # Errors
    /// As [`Snapshot::array`].
    pub fn dyn_array(&self, path: &str) -> Result<DynArray> {
        self.root().dyn_array(path)
    }

    /// The array at `path`, addressed by unsigned positions from 0.
    ///
    /// # Errors
    /// As [`Snapshot::dyn_array`].
    pub fn zero_based(&self, path: &str) -> Result<ZeroBased> {
        ZeroBased::new(self.dyn_array(path)?)
    }

    /// Every object below the root, parents before members, siblings by name.
    ///
    /// # Errors
    /// As [`Group::walk`].
    pub fn walk(&self) -> Result<impl Iterator<Item = Result<Member>> + use<>> {
        self.root().walk()
    }
}

/// The single mutable handle of a container: stages changes, reads them back, commits them all at once.
///
/// Shared by reference between threads: many fill one transaction. Dropping it forgets what is not committed.
#[derive(Debug)]
pub struct Writer {
    state: Arc<WriterState>,
}

impl Writer {
    pub(crate) fn state(&self) -> &Arc<WriterState> {
        &self.state
    }

    fn view(&self) -> View {
        View::Writer(Arc::clone(&self.state))
    }

    /// The root group, as this transaction has it.
    pub fn root(&self) -> Group {
        Group::root(self.view())
    }

    /// The group at `path`.
    ///
    /// # Errors
    /// As [`Snapshot::group`].
    pub fn group(&self, path: &str) -> Result<Group> {
        self.root().group(path)
    }

    /// The array at `path`, its elements read and written as `T`.
    ///
    /// # Errors
    /// As [`Snapshot::array`].
    pub fn array<T: Element>(&self, path: &str) -> Result<Array<T>> {
        self.dyn_array(path)?.typed()
    }

    /// The array at `path`, its type known at run time.
    ///
    /// # Errors
    /// As [`Snapshot::dyn_array`].
    pub fn dyn_array(&self, path: &str) -> Result<DynArray> {
        self.root().dyn_array(path)
    }

    /// Creates a group and its missing parents.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidArgument` for a path that no object can have or that leads through an array.
    pub fn create_group(&self, path: &str) -> Result<Group> {
        self.root().create_group(path)
    }

    /// Creates an array and its missing parent groups.
    ///
    /// # Errors
    /// As [`Writer::create_group`]; `InvalidArgument` for what the specification gets wrong; `LimitExceeded` for a chunk above
    /// the limit (with its size); `Unsupported` for a codec this build does not have.
    pub fn create_array<T: Element>(&self, path: &str, spec: ArraySpec<T>) -> Result<Array<T>> {
        self.create_dyn_array(path, &spec.into_dyn())?.typed()
    }

    /// Creates an array whose type is known at run time.
    ///
    /// # Errors
    /// As [`Writer::create_array`].
    pub fn create_dyn_array(&self, path: &str, spec: &DynArraySpec) -> Result<DynArray> {
        self.root().create_dyn_array(path, spec)
    }

    /// Removes the object at `path`; a group that has members only with `recursive`.
    ///
    /// # Errors
    /// As [`Group::remove`].
    pub fn remove(&self, path: &str, recursive: bool) -> Result<()> {
        self.root().remove(path, recursive)
    }

    /// Moves or renames an object. Costs the same whatever is below it.
    ///
    /// # Errors
    /// As [`Group::rename`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.root().rename(from, to)
    }

    /// Stores an array in other chunks, shards or codecs, in bounded memory, every block compared after it was written, and
    /// puts it in the old one's place with the next commit: handles of the old one are of no use from then on. Elements
    /// keep their bits; chunks of one value, or declared, are stored as any other.
    ///
    /// `progress` is told how many of how many steps are done and can end the work; the answer is `None` then, and nothing
    /// has changed. Until the call returns, a commit waits: `progress` must not ask for one.
    ///
    /// Where one pass would decode chunks more than twice in that memory, the elements go through a temporary file of no
    /// name beside the container, as long as they are together.
    ///
    /// # Errors
    /// As [`Writer::create_array`]; `InvalidArgument` where another thread has written to the array meanwhile;
    /// `LimitExceeded` where the memory is too little for arrays of that size; `Corrupt` where a chunk is damaged; `Io`. A
    /// call that fails changes nothing.
    pub fn rechunk(
        &self,
        path: &str,
        wanted: &Rechunk,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<(DynArray, RechunkReceipt)>> {
        self.root().rechunk(path, wanted, &mut progress)
    }

    /// Sets the message of the next commit, for the container's history.
    ///
    /// # Errors
    /// `LimitExceeded` above 1,024 bytes.
    pub fn message(&self, message: &str) -> Result<()> {
        self.state.set_message(message)
    }

    /// Makes everything staged durable and visible, all of it or nothing, and returns the new generation. The writer goes
    /// on from there.
    ///
    /// # Errors
    /// `Io` when the medium refuses before anything is published: the transaction stays as it was, so that the caller can
    /// free space and commit again, or drop the writer. `Poisoned` when a sync or the slot's write failed: the last
    /// acknowledged generation is named, the outcome of the next is unknown; drop the writer and open again.
    pub fn commit(&self) -> Result<u64> {
        self.state.commit()
    }

    /// Makes everything staged visible to this process at once, and durable with the next [`Writer::commit`]: no sync, no
    /// generation of its own. Snapshots taken from now on see it; other processes do not. A crash loses it, and so does
    /// dropping the writer before that commit; the file is never damaged by it. Returns how many such commits there are
    /// since the last durable one.
    ///
    /// # Errors
    /// As [`Writer::commit`], `Poisoned` apart.
    pub fn commit_deferred(&self) -> Result<u64> {
        self.state.commit_deferred()
    }

    /// Forgets everything staged; the writer goes on from the last commit.
    pub fn abort(&self) {
        self.state.abort();
    }
}

impl DynArray {
    /// Copies this array with its attributes to `path` of a writer, of this container or another. Chunks are taken over as
    /// they are stored, verified and not decoded. Missing parent groups are made.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidArgument` for a path that no object can have; `Corrupt` where a chunk is damaged; `Io`. A
    /// call that fails changes nothing.
    pub fn copy_array_to(&self, writer: &Writer, path: &str) -> Result<Self> {
        let copied = self.copy_array_with(writer, path, |_, _| ControlFlow::Continue(()))?;
        copied.ok_or_else(|| Error::invalid("copy").expected("an end"))
    }

    /// As [`DynArray::copy_array_to`]; `progress` is told how many of how many chunks are done and can end the work: the
    /// answer is `None` then, and nothing has changed. Until the call returns, a commit waits: `progress` must not ask for
    /// one.
    ///
    /// # Errors
    /// As [`DynArray::copy_array_to`].
    pub fn copy_array_with(
        &self,
        writer: &Writer,
        path: &str,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Self>> {
        writer.root().copy_here(self, path, &mut progress)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Handles that outlive the writer read on, but nothing of theirs is ever committed.
        self.state.close();
    }
}
