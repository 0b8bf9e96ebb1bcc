//! What catalog and arrays read through.
//!
//! Holds [`View`]: one committed generation, or a writer's uncommitted state. Must not interpret keys.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::crc32_append;
use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::Extent;
use crate::limits::Limits;

use super::payload;
use super::{CacheKey, Cursor, Engine, Payload, PayloadCache, SnapshotState, Value, WriterState};

/// Piece of an extent that is held in memory while its checksum is computed.
const VERIFY_PIECE: u64 = 1 << 20;

/// A consistent state to read: a committed generation, or what a writer would commit now.
#[derive(Debug, Clone)]
pub(crate) enum View {
    /// One committed generation.
    Snapshot(Arc<SnapshotState>),
    /// The writer's base with its own uncommitted changes over it.
    Writer(Arc<WriterState>),
}

impl View {
    /// The value of `key`, the writer's own uncommitted one first.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match self {
            Self::Snapshot(s) => s.get(key),
            Self::Writer(w) => w.get(key),
        }
    }

    /// A cursor over the keys in `lower..upper`, ascending. One of a writer sees changes staged while it runs.
    pub(crate) fn cursor(&self, lower: &[u8], upper: &[u8]) -> Result<Cursor> {
        match self {
            Self::Snapshot(s) => Cursor::over_snapshot(s, lower, upper),
            Self::Writer(w) => Cursor::over_writer(w, lower, upper),
        }
    }

    /// All bytes of `extent`, its bounds and checksum verified.
    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        match self {
            Self::Snapshot(s) => s.payload(extent),
            Self::Writer(w) => w.payload(extent),
        }
    }

    /// Some bytes of `extent`, bounds-checked but NOT verified: the caller verifies what it decodes (shards carry
    /// checksums inside). `range` counts from the extent's first byte.
    pub(crate) fn payload_range(&self, extent: Extent, range: Range<u64>) -> Result<Payload> {
        match self {
            Self::Snapshot(s) => s.payload_range(extent, range),
            Self::Writer(w) => w.payload_range(extent, range),
        }
    }

    /// Compares an extent's checksum, holding a piece of it at a time.
    pub(crate) fn verify(&self, extent: Extent) -> Result<()> {
        let (mut crc, mut start) = (0, 0);
        while start < extent.len {
            let end = start.saturating_add(VERIFY_PIECE).min(extent.len);
            crc = crc32_append(crc, &self.payload_range(extent, start..end)?);
            start = end;
        }
        payload::judge(extent, crc)
    }

    /// Decoded chunks and inner chunks that are kept.
    pub(crate) fn chunks(&self) -> Kept<'_> {
        Kept {
            view: self,
            cache: self.engine().chunks(),
        }
    }

    /// Shard indexes that are kept, and marks of payloads that were verified whole.
    pub(crate) fn shards(&self) -> Kept<'_> {
        Kept {
            view: self,
            cache: self.engine().shards(),
        }
    }

    /// The caps that hold for everything read through this view.
    pub(crate) fn limits(&self) -> &Limits {
        self.engine().limits()
    }

    /// The committed generation; of a writer: the one it builds on.
    pub(crate) fn generation(&self) -> Generation {
        match self {
            Self::Snapshot(s) => s.generation(),
            Self::Writer(w) => w.base().generation(),
        }
    }

    /// The container's path; none in memory.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.engine().file()
    }

    /// The writer behind this view.
    ///
    /// # Errors
    /// `ReadOnly` on a snapshot.
    pub(crate) fn writer(&self) -> Result<&Arc<WriterState>> {
        match self {
            Self::Writer(w) => Ok(w),
            Self::Snapshot(_) => Err(Error::read_only("a snapshot cannot be written")
                .help("write through the handle a `Writer` gives")),
        }
    }

    /// The open container behind this view.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        match self {
            Self::Snapshot(s) => s.engine(),
            Self::Writer(w) => w.engine(),
        }
    }
}

/// A cache of the container, as a view may use it: what is uncommitted, or may be overwritten, is neither kept nor found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept<'a> {
    view: &'a View,
    cache: &'a PayloadCache,
}

impl Kept<'_> {
    fn seen(&self, key: &CacheKey) -> Option<Generation> {
        match self.view {
            View::Snapshot(s) => s.seen(),
            View::Writer(w) => w.seen(key.offset()),
        }
    }

    /// True when a value of `cost` bytes would be kept.
    pub(crate) fn takes(&self, cost: usize) -> bool {
        self.cache.takes(cost)
    }

    /// The value of `key`.
    pub(crate) fn get<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        self.cache.get(key, self.seen(key)?)
    }

    /// The value of `key`, without a trace of the question.
    pub(crate) fn peek<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        self.seen(key)?;
        self.cache.peek(key)
    }

    /// Keeps `value`, which takes `cost` bytes.
    pub(crate) fn put<T: Any + Send + Sync>(&self, key: CacheKey, value: Arc<T>, cost: usize) {
        if let Some(seen) = self.seen(&key) {
            self.cache.put(key, seen, value, cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::{Key, SnapshotState};

    fn key(bytes: &[u8]) -> Key {
        Key::from_slice(bytes)
    }

    fn keys(view: &View, lower: &[u8], upper: &[u8]) -> Vec<Vec<u8>> {
        let mut cursor = view.cursor(lower, upper).unwrap();
        let mut all = Vec::new();
        while let Some((key, _)) = cursor.next().unwrap() {
            all.push(key.to_vec());
        }
        all
    }

    #[test]
    fn a_writer_reads_its_own_changes_and_a_snapshot_does_not() {
        let engine = Engine::in_memory(Limits::default());
        let snapshot = View::Snapshot(engine.snapshot().unwrap());
        let w = engine.writer().unwrap();
        let view = View::Writer(Arc::clone(&w));
        w.put(key(b"\xE0a"), key(b"1"));
        w.put(key(b"\xE0c"), key(b"3"));
        let extent = w.append(b"payload", 8).unwrap();
        assert_eq!(view.get(b"\xE0a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(&*view.payload(extent).unwrap(), b"payload");
        assert_eq!(&*view.payload_range(extent, 1..3).unwrap(), b"ay");
        assert_eq!(snapshot.get(b"\xE0a").unwrap(), None);
        assert!(snapshot.payload(extent).is_err());
        assert_eq!(w.commit().unwrap(), 3);
        let after = View::Snapshot(engine.snapshot().unwrap());
        assert_eq!(&*after.payload(extent).unwrap(), b"payload");
        assert_eq!(keys(&after, b"\xE0", b"\xE1").len(), 2);
        assert_eq!(snapshot.get(b"\xE0a").unwrap(), None);
        assert!(snapshot.writer().is_err());
    }

    #[test]
    fn a_cursor_merges_staged_changes_and_skips_forward() {
        let engine = Engine::in_memory(Limits::default());
        let w = engine.writer().unwrap();
        for k in [b"b", b"d", b"f", b"h"] {
            w.put(key(k), key(b"old"));
        }
        w.commit().unwrap();
        w.put(key(b"c"), key(b"new"));
        w.put(key(b"d"), key(b"new"));
        w.delete(b"f");
        let view = View::Writer(Arc::clone(&w));
        assert_eq!(keys(&view, b"b", b"h"), [b"b", b"c", b"d"]);
        assert_eq!(keys(&view, b"b", b"z"), [b"b", b"c", b"d", b"h"]);
        let mut cursor = view.cursor(b"a", b"z").unwrap();
        cursor.seek(b"d").unwrap();
        let (k, v) = cursor.next().unwrap().unwrap();
        assert_eq!((&*k, &*v), (&b"d"[..], &b"new"[..]));
        cursor.seek(b"a").unwrap();
        assert_eq!(&*cursor.next().unwrap().unwrap().0, b"h");
        assert_eq!(cursor.next().unwrap(), None);
        w.abort();
        assert_eq!(keys(&view, b"b", b"z"), [b"b", b"d", b"f", b"h"]);
    }

    #[test]
    fn views_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<View>();
        check::<SnapshotState>();
    }
}
