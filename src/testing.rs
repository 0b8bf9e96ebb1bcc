//! A way to the engine for this project's own tests and fuzz targets. No part of the public surface: anything here may
//! change with any release.
//!
//! Holds the two traits of the medium and thin handles on keys and payloads below groups and arrays. Must not hold
//! switches that make a container less safe: those live in the tests' own media.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use crate::bytes::{Reader, Writer, crc32c, crc32c_append};
use crate::codec::{self, Codec, Pipeline};
use crate::container::Container;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::dtype::DataType;
use crate::format::key::{self, Key, Value};
use crate::format::record::{ChunkRecord, Owner, extent_of};
use crate::index::{Visit, Visited, exclusive, walk};
use crate::limits::Limits;
use crate::limits::RANK_MAX;
use crate::txn::{Engine, EngineOptions, NewContainer, SnapshotState, View, WriterState, retained};

pub mod parse;

pub use crate::store::{FileId, Folder, Lend, LockMode, Memory, Span, Storage, Unfinished};
pub use crate::txn::{OpenReport, OtherSlot};

/// An error of the system about `what`, for media in tests.
pub fn io_error(what: &'static str, source: std::io::Error) -> Error {
    Error::io(what, source)
}

/// One open container, seen as keys and payloads.
#[derive(Debug, Clone)]
pub struct Raw(Arc<Engine>);

/// The writer of a [`Raw`].
#[derive(Debug)]
pub struct RawWriter(Arc<WriterState>);

/// One entry of the index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RawEntry {
    /// The key, tag byte first.
    pub key: Vec<u8>,
    /// What it stands for: the stored bytes it names, or its value where it names none.
    pub content: Vec<u8>,
}

/// Same bytes for same operations: fixed identities, and a clock that stands still.
fn fixed() -> EngineOptions {
    EngineOptions {
        clock: Arc::new(|| Some(1_700_000_000_000_000_000)),
        writer_id: Some([7; 16]),
        ..EngineOptions::default()
    }
}

fn new_container() -> NewContainer {
    NewContainer {
        uuid: Some(*b"orthant's tests!"),
        ..NewContainer::default()
    }
}

impl Raw {
    /// Makes a container in a folder.
    pub fn create(folder: Arc<dyn Folder>, name: &OsStr) -> Result<Self> {
        Engine::create(folder, name, &new_container(), fixed(), None).map(Self)
    }

    /// As [`Raw::create`], with an engine that reuses space this many generations too early.
    pub fn create_hasty(folder: Arc<dyn Folder>, name: &OsStr, horizon_error: u64) -> Result<Self> {
        let options = EngineOptions {
            horizon_error,
            ..fixed()
        };
        Engine::create(folder, name, &new_container(), options, None).map(Self)
    }

    /// Opens a container in a folder.
    pub fn open(folder: Arc<dyn Folder>, name: &OsStr) -> Result<Self> {
        Engine::open(folder, name, fixed(), None).map(Self)
    }

    /// Makes a container at a path.
    #[cfg(any(unix, windows))]
    pub fn create_at(path: &std::path::Path) -> Result<Self> {
        Engine::create_at(path, &NewContainer::default(), EngineOptions::default()).map(Self)
    }

    /// Opens a container at a path.
    #[cfg(any(unix, windows))]
    pub fn open_at(path: &std::path::Path) -> Result<Self> {
        Engine::open_at(path, EngineOptions::default()).map(Self)
    }

    /// Makes a container in memory.
    pub fn in_memory() -> Result<Self> {
        Engine::create_in_memory(&new_container(), fixed()).map(Self)
    }

    /// Makes the container in memory that `format-spec/vectors/empty.orth` is: nobody's, version 0.
    pub fn new_by_hand(uuid: [u8; 16], created: i64) -> Result<Self> {
        let new = NewContainer {
            uuid: Some(uuid),
            created: Some(created),
            ..NewContainer::default()
        };
        let options = EngineOptions {
            writer_id: Some([0; 16]),
            writer_version: 0,
            ..fixed()
        };
        Engine::create_in_memory(&new, options).map(Self)
    }

    /// Opens the bytes of a container.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Engine::from_bytes(bytes, fixed()).map(Self)
    }

    /// Opens the bytes of a container from a stranger.
    pub fn from_untrusted(bytes: Vec<u8>) -> Result<Self> {
        let options = EngineOptions {
            clock: fixed().clock,
            writer_id: fixed().writer_id,
            ..EngineOptions::untrusted()
        };
        Engine::from_bytes(bytes, options).map(Self)
    }

    /// Opens a container on a medium without a name.
    pub fn from_storage(storage: Arc<dyn Storage>) -> Result<Self> {
        Engine::from_storage(storage, fixed()).map(Self)
    }

    /// The same container through the public surface.
    pub fn container(&self) -> Container {
        Container::new(Arc::clone(&self.0))
    }

    /// What opening found.
    pub fn report(&self) -> OpenReport {
        self.0.report().clone()
    }

    /// The newest generation this handle knows.
    pub fn generation(&self) -> Result<u64> {
        Ok(self.0.snapshot()?.generation())
    }

    /// Looks for newer commits, and gives the newest generation.
    pub fn refresh(&self) -> Result<u64> {
        Ok(self.0.refresh()?.generation())
    }

    /// All bytes of the newest committed state.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.0.to_bytes()
    }

    /// Every entry of the newest generation, every payload and blob verified.
    pub fn entries(&self) -> Result<Vec<RawEntry>> {
        entries(&View::Snapshot(self.0.snapshot()?))
    }

    /// Every entry of every retained generation that the newest one lists, every payload and blob verified.
    pub fn retained_entries(&self) -> Result<Vec<(u64, Vec<RawEntry>)>> {
        let snapshot = self.0.snapshot()?;
        let view = View::Snapshot(Arc::clone(&snapshot));
        let (all, _) = retained::list(&view)?;
        all.into_iter()
            .map(|r| {
                let state = self.0.retained(&snapshot, r.generation)?;
                Ok((r.generation, entries(&View::Snapshot(state))?))
            })
            .collect()
    }

    /// Live payload and index bytes as the slot states them.
    pub fn live(&self) -> Result<(u64, u64)> {
        let snapshot = self.0.snapshot()?;
        Ok((snapshot.slot().live_payload, snapshot.slot().live_index))
    }

    /// Live payload and index bytes, counted anew.
    pub fn live_counted(&self) -> Result<(u64, u64)> {
        let snapshot = self.0.snapshot()?;
        let mut live = Live::default();
        walk(self.0.as_ref(), snapshot.tree(), &mut live)?;
        Ok((live.payload, live.index))
    }

    /// Generations and messages in the history, oldest first.
    pub fn history(&self) -> Result<Vec<(u64, String)>> {
        let all = self.0.snapshot()?.history()?;
        Ok(all.into_iter().map(|(g, h)| (g, h.message)).collect())
    }

    /// A reader's hold on the newest generation.
    pub fn snapshot(&self) -> Result<RawSnapshot> {
        self.0.snapshot().map(RawSnapshot)
    }

    /// The generations that the newest state retains, ascending.
    pub fn retained_generations(&self) -> Result<Vec<u64>> {
        let (all, _) = retained::list(&View::Snapshot(self.0.snapshot()?))?;
        Ok(all.into_iter().map(|r| r.generation).collect())
    }

    /// A generation that the newest state retains.
    pub fn retained(&self, generation: u64) -> Result<RawSnapshot> {
        let newest = self.0.snapshot()?;
        self.0.retained(&newest, generation).map(RawSnapshot)
    }

    /// Bytes of payloads, blobs and nodes that these retained generations reach, and nothing else that is kept does.
    pub fn held_alone(&self, generations: &[u64]) -> Result<u64> {
        let newest = self.0.snapshot()?;
        let (mut theirs, mut others) = (Vec::new(), vec![*newest.tree()]);
        for generation in self.retained_generations()? {
            let tree = *self.retained(generation)?.0.tree();
            if generations.contains(&generation) {
                theirs.push(tree);
            } else {
                others.push(tree);
            }
        }
        let held = exclusive(self.0.as_ref(), &theirs, &others)?;
        Ok(held.iter().map(|extent| extent.len).sum())
    }

    /// The length of the medium.
    pub fn file_len(&self) -> Result<u64> {
        self.0.file_len()
    }

    /// The generations that somebody reads, ascending.
    pub fn pinned(&self) -> Result<Vec<u64>> {
        Ok(self.0.pinned()?.unwrap_or_default())
    }

    /// The horizon of the newest slot.
    pub fn horizon(&self) -> Result<u64> {
        Ok(self.0.snapshot()?.slot().horizon)
    }

    /// The one writer.
    pub fn writer(&self) -> Result<RawWriter> {
        self.0.writer().map(RawWriter)
    }

    /// The one writer, after waiting up to `wait` for another to go.
    pub fn writer_within(&self, wait: Duration) -> Result<RawWriter> {
        self.0.writer_within(wait).map(RawWriter)
    }
}

/// One generation of a [`Raw`].
#[derive(Debug, Clone)]
pub struct RawSnapshot(Arc<SnapshotState>);

impl RawSnapshot {
    /// The generation.
    pub fn generation(&self) -> u64 {
        self.0.generation()
    }

    /// Every entry, every payload and blob verified.
    pub fn entries(&self) -> Result<Vec<RawEntry>> {
        entries(&View::Snapshot(Arc::clone(&self.0)))
    }

    /// Whether the array `id` has an entry for a chunk.
    pub fn has_chunk(&self, id: u64, coords: &[i64]) -> Result<bool> {
        Ok(self.0.get(&chunk_key(id, coords))?.is_some())
    }
}

/// An array's codecs without an array.
#[derive(Debug)]
pub struct RawPipeline(Pipeline);

impl RawPipeline {
    /// Compiles `codecs` for chunks of this type and shape, whose fill value is zero.
    pub fn new(codecs: &[Codec], data_type: &DataType, chunk_shape: &[u64]) -> Result<Self> {
        let fill = vec![0; data_type.item_size().unwrap_or(0)];
        let codecs = codec::resolve(codecs, data_type)?;
        Pipeline::new(&codecs, data_type, chunk_shape, &fill, &Limits::default()).map(Self)
    }

    /// The payload of a decoded chunk.
    pub fn encode(&self, decoded: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.0.encode(decoded, &mut out)?;
        Ok(out)
    }

    /// Decodes a payload into a chunk's bytes.
    pub fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.decode(encoded, 0, out)
    }
}

impl RawWriter {
    /// Stages a chunk of the array `id`.
    pub fn put_chunk(&self, id: u64, coords: &[i64], payload: &[u8]) -> Result<()> {
        let _hold = self.0.hold();
        let extent = self.0.append(payload, 8)?;
        let record = ChunkRecord::Stored { extent, mask: 0 };
        self.0.put(chunk_key(id, coords), record.encode());
        Ok(())
    }

    /// Stages the deletion of a chunk.
    pub fn delete_chunk(&self, id: u64, coords: &[i64]) {
        self.0.delete(&chunk_key(id, coords));
    }

    /// Stages any entry.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        self.0.put(Key::from_slice(key), Value::from_slice(value));
    }

    /// Stages the deletion of any entry.
    pub fn delete(&self, key: &[u8]) {
        self.0.delete(key);
    }

    /// Retains the last committed generation from the next commit on.
    pub fn retain(&self, name: &str) -> Result<u64> {
        self.0.retain(name)
    }

    /// Releases a retained generation with the next commit.
    pub fn release(&self, name: &str) -> Result<()> {
        let found = retained::find(&View::Writer(Arc::clone(&self.0)), name)?;
        self.0.release(&found)
    }

    /// Stages the content of an older generation.
    pub fn restore(&self, old: &RawSnapshot) -> Result<()> {
        self.0.restore(&old.0)
    }

    /// Free bytes below the end of the file, as this writer knows them, and bytes that wait for the horizon.
    pub fn reusable(&self) -> (u64, u64) {
        self.0.reusable()
    }

    /// Commits without durability.
    pub fn commit_deferred(&self) -> Result<u64> {
        self.0.commit_deferred()
    }

    /// Every entry as this writer would commit it.
    pub fn entries(&self) -> Result<Vec<RawEntry>> {
        entries(&View::Writer(Arc::clone(&self.0)))
    }

    /// The message of the next commit.
    pub fn message(&self, message: &str) -> Result<()> {
        self.0.set_message(message)
    }

    /// Commits.
    pub fn commit(&self) -> Result<u64> {
        self.0.commit()
    }

    /// Aborts.
    pub fn abort(&self) {
        self.0.abort();
    }
}

/// Stored lengths, as a slot counts them.
#[derive(Default)]
struct Live {
    payload: u64,
    index: u64,
}

impl Visit for Live {
    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        self.index = self.index.saturating_add(u64::from(visited.reference.len));
        if visited.node.is_leaf() {
            for i in 0..visited.node.count() {
                let found = extent_of(&visited.node.key(i), visited.node.value(i), 0, u64::MAX)?;
                match found {
                    Some((extent, Owner::Payload)) => {
                        self.payload = self.payload.saturating_add(extent.len);
                    }
                    Some((extent, Owner::Blob)) => {
                        self.index = self.index.saturating_add(extent.len);
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }
}

/// The key of a chunk.
fn chunk_key(id: u64, coords: &[i64]) -> Key {
    let order: [u8; RANK_MAX] = std::array::from_fn(|axis| u8::try_from(axis).unwrap_or(u8::MAX));
    key::chunk(
        ObjectId(id),
        coords,
        order.get(..coords.len()).unwrap_or(&order),
    )
}

/// CRC-32C, as structures carry it.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c(bytes)
}

/// The same bytes with right checksums in the header, the slots, and the commit record and root that each slot names:
/// what lies behind the checksums is then reached.
pub fn with_right_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    fix(&mut bytes, 0, 252);
    for slot in [0x1000, 0x2000] {
        if let Some((offset, len)) = place(&bytes, slot + 32) {
            fix_node(&mut bytes, offset, len);
            copy_word(&mut bytes, offset + 28, slot + 44);
            // The record repeats the root's reference, so it follows it.
            let Some((record, record_len)) = place(&bytes, slot + 64) else {
                continue;
            };
            copy_word(&mut bytes, slot + 44, record + 44);
            if record_len > 4 {
                fix(&mut bytes, record, record_len - 4);
                copy_word(&mut bytes, record + record_len - 4, slot + 76);
            }
        }
        copy_word(&mut bytes, 252, slot + 248);
        fix(&mut bytes, slot, 252);
    }
    bytes
}

/// Offset and length of the reference at `at`, where they lie inside `bytes`.
fn place(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut r = Reader::new("reference", 0, bytes.get(at..)?);
    let offset = usize::try_from(r.u64().ok()?).ok()?;
    let len = usize::try_from(r.u32().ok()?).ok()?;
    bytes.get(offset..)?.get(..len)?;
    Some((offset, len))
}

/// Writes the checksum of `len` bytes from `start` on right behind them.
fn fix(bytes: &mut [u8], start: usize, len: usize) {
    let Some(end) = start.checked_add(len) else {
        return;
    };
    if let Some(covered) = bytes.get(start..end) {
        put_word(bytes, end, crc32c(covered));
    }
}

/// Writes a node's checksum, which covers all but itself, into it.
fn fix_node(bytes: &mut [u8], offset: usize, len: usize) {
    let head = bytes.get(offset..).and_then(|b| b.get(..28));
    let tail = bytes.get(offset..).and_then(|b| b.get(32..len));
    if let (Some(head), Some(tail)) = (head, tail) {
        put_word(bytes, offset + 28, crc32c_append(crc32c(head), tail));
    }
}

fn copy_word(bytes: &mut [u8], from: usize, to: usize) {
    if let Some(rest) = bytes.get(from..)
        && let Ok(word) = Reader::new("checksum", 0, rest).u32()
    {
        put_word(bytes, to, word);
    }
}

fn put_word(bytes: &mut [u8], at: usize, word: u32) {
    let mut w = Writer::with_capacity(4);
    w.u32(word);
    if let Some(to) = bytes.get_mut(at..).and_then(|b| b.get_mut(..4)) {
        to.copy_from_slice(w.as_slice());
    }
}

fn entries(view: &View) -> Result<Vec<RawEntry>> {
    let mut cursor = view.cursor(&[], &[0xFF; 16])?;
    let mut all = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        let content = match extent_of(&key, &value, 0, u64::MAX)? {
            Some((extent, _)) => view.payload(extent)?.into_vec(),
            None => value.to_vec(),
        };
        all.push(RawEntry {
            key: key.to_vec(),
            content,
        });
    }
    Ok(all)
}
