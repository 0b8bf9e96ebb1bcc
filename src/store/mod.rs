//! The medium: file, map, memory; locks; creation and replacement of files.
//!
//! Holds [`Storage`], the one way to the bytes of a container. Must not know the meaning of bytes.

mod memory;
mod span;

use std::fmt::Debug;
use std::io;

pub use memory::Memory;
pub use span::{Lend, Span};

/// The bytes of one container. Everything the engine reads or writes passes through here, so that tests can put a
/// recording or a faulting medium in its place.
///
/// Calls may come from many threads at once. Bytes written are seen by later reads of the same handle; they survive a
/// power cut only once [`Storage::sync`] has returned.
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
}
