//! A file in memory.
//!
//! Holds [`Mapper`]: a map longer than the file, so that growth seldom needs a new one. One of the two places that say
//! `unsafe`; it hands out copies of bytes, and spans that only payload decoding reads.
//!
//! Invariants: no byte past the file's known length is touched; a mapping lives as long as any span of it. What no
//! process can prevent is that a foreign program cuts the file short: touching the lost pages then raises a signal. The
//! container's own writers never shorten a file, and `Access::Read` avoids the map.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::RwLock;

use super::{Lend, Span};

/// A map reaches at least this far beyond the file.
const AHEAD: u64 = 1 << 30;

/// A promise about the file of a container, on which elements are lent where they lie in the map. See
/// [`Undisturbed::promise`].
#[derive(Debug, Clone, Copy)]
pub struct Undisturbed(());

impl Undisturbed {
    /// Promises that nobody disturbs the file of the container whose chunks are lent on this word.
    ///
    /// # Safety
    ///
    /// As long as any chunk lent on the promise lives, no program may change the bytes of the container's file in place or
    /// cut it short, other than through this library (its writers leave alone what a snapshot with its locks can reach,
    /// and never shorten a file). A change would be one of memory behind a shared reference, which is undefined behaviour; a
    /// cut ends the process by a signal. So: no copy over the file, no restore into it, no download into it, no
    /// network file system that another machine writes through, and no writer anywhere that was opened without locks.
    ///
    /// ```
    /// # use orthant::{ArraySpec, Codec, Container, Undisturbed, region};
    /// # fn main() -> orthant::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let c = Container::create(folder.path().join("a.orth"))?;
    /// let w = c.writer()?;
    /// let spec = ArraySpec::<f32>::new(region![0..64, 0..64]).chunks([32, 64]).codecs(Codec::raw_profile());
    /// w.create_array("a", spec)?.write_scalar(region![3, ..], 1.5)?;
    /// w.commit()?;
    ///
    /// // SAFETY: the file lies in a folder of this process's own, and nothing else writes there.
    /// let promise = unsafe { Undisturbed::promise() };
    /// let a = c.snapshot()?.array::<f32>("a")?;
    /// let chunk = a.chunk_view(&[0, 0], promise)?.unwrap();
    /// assert_eq!((chunk.shape(), chunk[3 * 64]), (&[32, 64][..], 1.5));
    /// # Ok(())
    /// # }
    /// ```
    #[expect(
        unsafe_code,
        reason = "no code here can check what the caller promises; see Safety"
    )]
    pub unsafe fn promise() -> Self {
        Self(())
    }
}

/// The current mapping of one file.
#[derive(Debug, Default)]
pub(super) struct Mapper {
    current: RwLock<Option<Arc<Mapping>>>,
    /// Set when the system refused a map; reads go without from then on.
    refused: AtomicBool,
}

/// One map of a file, and how many of its bytes the file is known to have.
struct Mapping {
    map: MmapRaw,
    known: AtomicU64,
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.map.len())
    }
}

impl Mapper {
    /// Fills `buf` from the map; false when these bytes are not mapped.
    pub(super) fn copy(&self, file: &File, offset: u64, buf: &mut [u8]) -> bool {
        self.reaching(file, offset, buf.len())
            .is_some_and(|(m, at)| m.copy(at, buf))
    }

    /// A span over the map; none when these bytes are not mapped.
    pub(super) fn lend(&self, file: &File, offset: u64, len: usize) -> Option<Span> {
        let (mapping, at) = self.reaching(file, offset, len)?;
        Some(Span::new(mapping, at, len))
    }

    /// The mapping that holds `len` bytes at `offset`, made anew when the file has outgrown it.
    fn reaching(&self, file: &File, offset: u64, len: usize) -> Option<(Arc<Mapping>, usize)> {
        let at = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len as u64)?;
        let current = self.current.read().clone();
        if let Some(mapping) = current
            && mapping.reaches(file, end)
        {
            return Some((mapping, at));
        }
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut current = self.current.write();
        if let Some(mapping) = current.as_ref()
            && mapping.reaches(file, end)
        {
            return Some((Arc::clone(mapping), at));
        }
        let file_len = file.metadata().ok()?.len();
        if end > file_len {
            return None;
        }
        let Some(mapping) = Mapping::new(file, file_len) else {
            self.refused.store(true, Ordering::Relaxed);
            return None;
        };
        let mapping = Arc::new(mapping);
        *current = Some(Arc::clone(&mapping));
        Some((mapping, at))
    }
}

impl Mapping {
    fn new(file: &File, file_len: u64) -> Option<Self> {
        let ahead = file_len
            .saturating_mul(2)
            .max(file_len.saturating_add(AHEAD));
        let len = usize::try_from(ahead).ok()?;
        let map = MmapOptions::new().len(len).map_raw_read_only(file).ok()?;
        Some(Self {
            map,
            known: AtomicU64::new(file_len),
        })
    }

    /// True when the file has `end` bytes and the map covers them.
    fn reaches(&self, file: &File, end: u64) -> bool {
        if end > self.map.len() as u64 {
            return false;
        }
        if end <= self.known.load(Ordering::Acquire) {
            return true;
        }
        let Ok(metadata) = file.metadata() else {
            return false;
        };
        self.known.fetch_max(metadata.len(), Ordering::AcqRel);
        end <= metadata.len()
    }

    /// True when `len` bytes at `offset` lie in the map and in the file as last seen.
    fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| {
            end <= self.map.len() && end as u64 <= self.known.load(Ordering::Acquire)
        })
    }

    #[expect(
        unsafe_code,
        reason = "the map is memory that other processes write; it is copied by pointer"
    )]
    fn copy(&self, offset: usize, buf: &mut [u8]) -> bool {
        if !self.holds(offset, buf.len()) {
            return false;
        }
        // SAFETY: `holds` has checked that `offset` lies inside the map.
        let from = unsafe { self.map.as_ptr().add(offset) };
        // SAFETY: `holds` has checked the source's length, `buf` is as long and is not part of the map. Another process
        // may write these bytes meanwhile: the copy may then be torn, which its checksum shows. If a foreign program has
        // cut the file short, the access raises a signal; nothing in this process can prevent that.
        unsafe { std::ptr::copy_nonoverlapping(from, buf.as_mut_ptr(), buf.len()) };
        true
    }
}

impl Lend for Mapping {
    #[expect(unsafe_code, reason = "decoders read payloads in place; see SAFETY")]
    fn lend(&self, offset: usize, len: usize) -> &[u8] {
        if !self.holds(offset, len) {
            return &[];
        }
        // SAFETY: `holds` has checked that `offset` lies inside the map.
        let from = unsafe { self.map.as_ptr().add(offset) };
        // SAFETY: the bytes lie in the map and the file, and `self` outlives the slice. Writers of the format never
        // change the bytes of an extent that a committed generation reaches (the horizon rule), so nothing the library
        // reads through spans is written while they live. A foreign program that overwrites or cuts the file breaks
        // this; that is stated as a condition of mapped reading, and `Access::Read` does without.
        unsafe { std::slice::from_raw_parts(from, len) }
    }
}
