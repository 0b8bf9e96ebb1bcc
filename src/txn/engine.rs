//! One open container: its medium, its caps, its newest committed state, its one writer.
//!
//! Holds [`Engine`]. Must not interpret keys or payloads, nor know the order of a commit.

use std::ffi::{OsStr, OsString};
#[cfg(any(unix, windows))]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::format::commit::CommitRecord;
use crate::format::extent::NodeRef;
use crate::format::header::Header;
use crate::format::node::Node;
use crate::format::slot::{Slot, slot_index, slot_offset};
use crate::index::{Load, Loader, NodeCache, ReadNode};
use crate::limits::Limits;
#[cfg(any(unix, windows))]
use crate::store::Directory;
use crate::store::{Folder, Memory, Storage};

mod admission;
mod generations;

pub(super) use admission::Writing;

use super::create;
use super::open::{self, OpenReport};
use super::pins::Pins;
#[cfg(any(unix, windows))]
use super::publish::Unnamed;
use super::publish::{self, Taken};
use super::snapshot::Committed;
use super::{EngineOptions, NewContainer, PayloadCache, Scratch};

/// How often all bytes are read anew when commits come in between.
const BYTES_TRIES: u32 = 100;

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

    /// Makes a new container that is to be called as `path` says, and opens it while it has no name.
    #[cfg(any(unix, windows))]
    pub(crate) fn create_unnamed_at(
        path: &Path,
        new: &NewContainer,
        options: EngineOptions,
    ) -> Result<(Arc<Self>, Unnamed)> {
        let make = || {
            let (folder, name) = Directory::of(path, options.access)?;
            let unfinished = create::unfinished(&folder, &name, new, &options)?;
            let engine = Self::build(unfinished.storage(), None, options, Some(path.to_owned()))?;
            Ok((engine, Unnamed::new(Box::new(folder), unfinished)))
        };
        make().map_err(|e: Error| e.in_file(path))
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
        let unfinished = create::unfinished(folder.as_ref(), name, new, &options)?;
        publish::give_name(folder.as_ref(), unfinished, Taken::Refused)?;
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
        self.check_process()?;
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

    /// Refuses a handle to a forked child: the locks are its parent's, and what a thread of the parent was doing at the
    /// fork is never done here.
    pub(super) fn check_process(&self) -> Result<()> {
        if self.pins.are_ours() {
            return Ok(());
        }
        Err(self.place(
            Error::lock_unavailable("this handle belongs to the process that opened it")
                .help("a forked child opens the container anew"),
        ))
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

    /// Adds the container's path to an error.
    pub(super) fn place(&self, e: Error) -> Error {
        match &self.file {
            Some(file) => e.in_file(file),
            None => e,
        }
    }
}

impl Load for Engine {
    #[inline]
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        Loader::new(Nodes(self.storage.as_ref()), &self.cache).load(reference)
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
