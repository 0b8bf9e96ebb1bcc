//! The medium: file, map, memory; locks; creation and replacement of files.
//!
//! Holds [`Storage`], the one way to the bytes of a container, and [`Folder`], the one way to its name. Must not know the
//! meaning of bytes.

#[cfg(any(unix, windows))]
mod file;
#[cfg(any(unix, windows))]
mod folder;
pub(crate) mod lock;
#[cfg(all(unix, target_pointer_width = "64"))]
mod map;
mod memory;
mod span;

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

#[cfg(any(unix, windows))]
pub(crate) use folder::Directory;
pub use lock::LockMode;
pub(crate) use lock::Owner;
#[cfg(all(unix, target_pointer_width = "64"))]
pub use map::Undisturbed;
pub use memory::Memory;
pub use span::{Lend, Span};

/// Bytes between two wanted ranges of a local file that cost less to read than a second call.
const LOCAL_GAP: u64 = 64 << 10;

/// The bytes of one container. Everything the engine reads or writes passes through here, so that tests can put a
/// recording or a faulting medium in its place.
///
/// Calls may come from many threads at once. Bytes written are seen by later reads of the same handle; they survive a
/// power cut only once [`Storage::sync`] has returned.
#[expect(
    clippy::len_without_is_empty,
    reason = "asking can fail, and no container is empty"
)]
pub trait Storage: Send + Sync + Debug {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset`; `UnexpectedEof` when the bytes end before.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, growing the medium where needed.
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes all earlier writes durable, with the length needed to read them back.
    fn sync(&self) -> io::Result<()>;

    /// The bytes at `offset` without a copy, where the medium can lend them.
    fn map(&self, offset: u64, len: usize) -> Option<Span> {
        let _ = (offset, len);
        None
    }

    /// Two wanted ranges that no more than this many bytes part are better fetched as one; `None` where the medium has no
    /// ranges and payloads are fetched whole.
    fn fetch_gap(&self) -> Option<u64> {
        Some(LOCAL_GAP)
    }

    /// Whether anybody else can write to the medium.
    fn is_shared(&self) -> bool {
        true
    }

    /// How many names the file has.
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }

    /// What tells this file from every other on the machine; none where there is no such thing.
    fn identity(&self) -> Option<FileId> {
        None
    }

    /// Takes the lock of one byte, without waiting; false when another holder is in the way. Locks belong to the handle
    /// and go with it, and with its process.
    ///
    /// # Errors
    /// `Unsupported` where the file system gives no locks.
    fn try_lock(&self, byte: u64, mode: LockMode) -> io::Result<bool> {
        let _ = (byte, mode);
        Ok(true)
    }

    /// Lets the lock of one byte go.
    fn unlock(&self, byte: u64) -> io::Result<()> {
        let _ = byte;
        Ok(())
    }

    /// The first byte of `bytes` that another handle holds so that a lock of `mode` would be refused.
    fn conflict(&self, bytes: Range<u64>, mode: LockMode) -> io::Result<Option<u64>> {
        let _ = (bytes, mode);
        Ok(None)
    }
}

/// The names around one container.
pub trait Folder: Send + Sync + Debug {
    /// Opens the file called `name`.
    fn open(&self, name: &OsStr, write: bool) -> crate::Result<Arc<dyn Storage>>;

    /// Starts a file that nobody sees under `name` until it is published.
    fn create(&self, name: &OsStr) -> crate::Result<Box<dyn Unfinished>>;

    /// A medium for the time of one call, seen by nobody else, gone with its handle.
    fn scratch(&self) -> io::Result<Arc<dyn Storage>> {
        Ok(Arc::new(Memory::default()))
    }

    /// As [`Folder::create`], for a file that takes the place of what `name` names: that may exist, and hands down who may
    /// read and write it.
    fn create_beside(&self, name: &OsStr) -> crate::Result<Box<dyn Unfinished>>;

    /// Where the file that `name` names really is, when `name` is a link; none when it is no link.
    fn resolve(&self, name: &OsStr) -> io::Result<Option<(Arc<dyn Folder>, OsString)>> {
        let _ = name;
        Ok(None)
    }

    /// Removes what a killed process may have left beside `name`, if nobody is at work on it.
    fn tidy(&self, name: &OsStr) {
        let _ = name;
    }

    /// Makes earlier changes of names durable.
    fn sync(&self) -> io::Result<()>;

    /// What `name` names now.
    fn identity(&self, name: &OsStr) -> io::Result<Option<FileId>>;
}

/// A file in the making. Dropping it removes it.
pub trait Unfinished: Debug {
    /// Its bytes.
    fn storage(&self) -> Arc<dyn Storage>;

    /// What has to be removed should this process end before the file has its name.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Gives it its name, which nothing may have yet.
    fn publish(self: Box<Self>) -> io::Result<()>;

    /// Gives it its name in place of what has it, in one step.
    fn replace(self: Box<Self>) -> io::Result<()>;
}

/// Device and inode, or what stands for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device or volume.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
}

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Through a map where the platform and the file system suit it, else by positioned reads.
    Map,
    /// By positioned reads: a file that another program may cut short then gives an error instead of a signal.
    Read,
}
