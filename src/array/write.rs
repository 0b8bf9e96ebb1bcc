//! Writing a selection: whole chunks encode straight from the source, partly covered ones are read, merged, encoded.
//!
//! Holds [`write`] and [`erase`]. One call changes all its chunks or none: payloads are appended first, then all keys are
//! staged at once. Must not know handles or element types.
//!
//! Many threads may write through one writer. A partly covered chunk is staged only if its entry is still the one that was
//! merged; else that chunk alone is done again. So no lock is held while anything is decoded or encoded, and no update of
//! a neighbouring element is lost. Chunks are appended in key order whatever the number of threads, so equal writes make
//! equal files.

mod placed;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::bytes::crc32;
use crate::codec::{Shard, is_repeated, repeat};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::extent::Extent;
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisMap, AxisSet, Coords, Copier, Picked};
use crate::limits::WRITE_CHUNKS_MAX;
use crate::txn::{Change, Key, Value, View, WriterState};

use super::element::{Elements, Source};
use super::layout::{Layout, Tile};
use super::parallel;
use super::plan::Plan;
use super::receipt::WriteReceipt;
use super::scan;
use super::shard_edit::{self, Change as InnerChange, OldShard, Part};
use super::shards;

/// Encoded chunks held in memory before they are appended.
const BATCH_BYTES: usize = 32 << 20;
/// Most chunks of one batch, whatever their size.
const BATCH_MAX: usize = 4096;
/// Work of one batch, in bytes of decoded chunks, below which it stays on the caller's thread.
const PARALLEL_MIN: usize = 1 << 20;

/// What goes into the selected elements.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    /// A block of the selection's shape, C order.
    Block(Source<'a>),
    /// One value for every element; whole chunks become constants.
    Scalar(&'a [u8]),
    /// The fill value, declared: whole chunks are recorded as written.
    DeclaredFill,
}

/// What a call does to one chunk.
enum Outcome {
    /// Encoded bytes to append, and their checksum.
    Payload(Vec<u8>, u32),
    /// A record without payload.
    Record(ChunkRecord),
    /// Nothing but fill: no entry.
    Absent,
}

/// What a chunk's new elements were laid over.
enum Base {
    /// Nothing: the chunk is covered whole.
    Whole,
    /// This entry (or its absence), which must still be the same when the chunk is staged.
    Merged(Option<Value>),
}

struct Prepared {
    key: Key,
    outcome: Outcome,
    base: Base,
    decoded: bool,
    /// Inner chunks decoded, encoded and kept.
    inner: (u64, u64, u64),
}

/// A write whose keys are ready to be staged.
#[derive(Default)]
pub(crate) struct Staged {
    pub(crate) changes: Vec<Change>,
    /// Entries that must still be what they were, by their index in `changes`.
    pub(crate) merged: Vec<(usize, Option<Value>)>,
    pub(crate) receipt: WriteReceipt,
    /// Payloads that have their place in the file but are not written yet.
    late: Vec<(u64, Vec<u8>)>,
}

/// A piece of a batch: both kinds run side by side, so that no thread waits for the medium alone.
enum Work {
    Encode(Coords),
    Write(u64, Vec<u8>),
}

/// What must not have changed when a write's keys are staged.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    /// The array's document entry as the layout was compiled from.
    pub(crate) document: (&'a Key, &'a Value),
}

impl Guard<'_> {
    /// The guard as the first expectation of a staging.
    pub(crate) fn expectation(&self) -> (&Key, Option<&Value>) {
        (self.document.0, Some(self.document.1))
    }
}

/// Writes `content` into the elements `picked` selects and stages it.
///
/// The answer is `None`, and nothing is staged, where the array's document is no longer the guard's.
pub(crate) fn write(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
    content: &Content<'_>,
    guard: &Guard<'_>,
) -> Result<Option<WriteReceipt>> {
    let writer = view.writer()?;
    let _hold = writer.hold();
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let job = Job {
        view,
        writer,
        id,
        layout,
        content,
        plan: &plan,
        inner: inner_plan(layout, picked)?,
        shape: &plan.shape()?,
        over: None,
        spare: Mutex::default(),
    };
    let mut staged = if picked.is_empty() {
        Staged::default()
    } else {
        job.prepare()?
    };
    loop {
        match staged.stage(writer, guard) {
            Ok(()) => return Ok(Some(staged.receipt)),
            Err(Moved::Document) => return Ok(None),
            Err(Moved::Chunk(i)) => job.redo(&mut staged, i)?,
        }
    }
}

/// Appends the payloads of a write that another operation stages together with its own changes, `over`.
pub(crate) fn prepare(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
    content: &Content<'_>,
    over: &BTreeMap<Key, Option<Value>>,
) -> Result<Staged> {
    if picked.is_empty() {
        return Ok(Staged::default());
    }
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let writer = view.writer()?;
    Job {
        view,
        writer,
        id,
        layout,
        content,
        plan: &plan,
        inner: inner_plan(layout, picked)?,
        shape: &plan.shape()?,
        over: Some(over),
        spare: Mutex::default(),
    }
    .prepare()
}

/// The selection over the grid of inner chunks, where there are shards.
fn inner_plan<'l>(layout: &'l Layout, picked: &Picked) -> Result<Option<Plan<'l>>> {
    let sharded = layout.sharded();
    sharded
        .map(|(_, tile)| Plan::new(&tile.grid, picked))
        .transpose()
}

/// What another thread changed between the reading and the staging of a write.
enum Moved {
    Document,
    /// The entry of this change.
    Chunk(usize),
}

impl Staged {
    fn stage(&self, writer: &WriterState, guard: &Guard<'_>) -> Result<(), Moved> {
        let merged = self
            .merged
            .iter()
            .filter_map(|(i, old)| self.changes.get(*i).map(|c| (&c.0, old.as_ref())));
        let expected = std::iter::once(guard.expectation()).chain(merged);
        match writer.stage_if(expected, self.changes.iter()) {
            Ok(()) => Ok(()),
            // Number 0 is the document, the merged chunks follow in their order.
            Err(n) => Err(n
                .checked_sub(1)
                .and_then(|n| self.merged.get(n))
                .map_or(Moved::Document, |m| Moved::Chunk(m.0))),
        }
    }
}

/// Larger chunks are not kept by a thread.
const KEPT_BYTES_MAX: usize = 64 << 20;

thread_local! {
    /// One chunk a thread as it is gathered from a caller's block, kept between writes.
    static CHUNK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Job<'a> {
    view: &'a View,
    writer: &'a Arc<WriterState>,
    id: ObjectId,
    layout: &'a Layout,
    content: &'a Content<'a>,
    plan: &'a Plan<'a>,
    inner: Option<Plan<'a>>,
    shape: &'a [usize],
    /// Entries as the same call is about to change them: these are merged instead of the staged ones.
    over: Option<&'a BTreeMap<Key, Option<Value>>>,
    /// Buffers of payloads that have been written, for the next ones.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Job<'_> {
    /// Appends the payloads of all chunks and lists what is to be staged.
    fn prepare(&self) -> Result<Staged> {
        let mut staged = Staged::default();
        let count = self.plan.chunk_count()?;
        if count > WRITE_CHUNKS_MAX {
            return Err(Error::limit("chunks of one write")
                .expected(format_args!("at most {WRITE_CHUNKS_MAX}"))
                .found(count)
                .reason("too_large"));
        }
        let fits = BATCH_BYTES
            .checked_div(self.layout.chunk.byte_len())
            .unwrap_or(BATCH_MAX);
        // Within a shard inner chunks run in parallel, so one at a time is enough where they are large.
        let least = match self.inner {
            Some(_) => 1,
            None => parallel::width().saturating_mul(2),
        };
        let batch = fits.clamp(least, BATCH_MAX);
        let mut waiting: Vec<Coords> = Vec::new();
        let sets: SmallVec<[&AxisSet; 8]> = self.plan.sets().collect();
        scan::for_each_coords(self.layout.key_order(), &sets, |c| {
            waiting.push(c.into());
            if waiting.len() >= batch {
                self.flush(&mut waiting, &mut staged)
            } else {
                Ok(())
            }
        })?;
        self.flush(&mut waiting, &mut staged)?;
        // Once more for the payloads that the last batch has placed.
        self.flush(&mut waiting, &mut staged)?;
        Ok(staged)
    }

    /// Encodes the waiting chunks while the payloads of the batch before are written.
    fn flush(&self, waiting: &mut Vec<Coords>, staged: &mut Staged) -> Result<()> {
        let late = std::mem::take(&mut staged.late);
        let mut chunks = std::mem::take(waiting);
        if self.write_placed(&chunks, staged)? {
            chunks.clear();
        }
        let pieces = chunks.len().saturating_add(late.len());
        let writes = late
            .into_iter()
            .map(|(offset, bytes)| Work::Write(offset, bytes));
        let work: Vec<Work> = writes.chain(chunks.into_iter().map(Work::Encode)).collect();
        let run = |work| match work {
            Work::Encode(c) => self.chunk(&c).map(Some),
            Work::Write(offset, bytes) => {
                self.writer.write_reserved(offset, &bytes)?;
                self.spare.lock().push(bytes);
                Ok(None)
            }
        };
        let prepared = if pieces.saturating_mul(self.layout.chunk.byte_len()) < PARALLEL_MIN {
            work.into_iter().map(run).collect::<Result<Vec<_>>>()?
        } else {
            parallel::map(work, run)?
        };
        for p in prepared.into_iter().flatten() {
            self.append(p, staged, None)?;
        }
        Ok(())
    }

    /// Does one chunk again that another thread has changed.
    fn redo(&self, staged: &mut Staged, i: usize) -> Result<()> {
        let mut coords = Coords::from_elem(0, self.layout.chunk.grid.rank());
        let Some(change) = staged.changes.get(i) else {
            return Ok(());
        };
        key::decode_chunk(
            &change.0,
            coords.len(),
            self.layout.key_order(),
            &mut coords,
        )?;
        let prepared = self.chunk(&coords)?;
        self.append(prepared, staged, Some(i))
    }

    fn append(&self, p: Prepared, staged: &mut Staged, at: Option<usize>) -> Result<()> {
        let receipt = &mut staged.receipt;
        let value = match p.outcome {
            Outcome::Payload(bytes, crc) => {
                let (len, align) = (bytes.len() as u64, self.layout.payload_align());
                receipt.bytes_written = receipt.bytes_written.saturating_add(len);
                let place = match at {
                    None => self.writer.reserve(bytes.len(), align)?,
                    Some(_) => None,
                };
                let extent = match place {
                    Some(offset) => {
                        staged.late.push((offset, bytes));
                        Extent { offset, len, crc }
                    }
                    None => {
                        let extent = self.writer.append(&bytes, align)?;
                        self.spare.lock().push(bytes);
                        extent
                    }
                };
                Some(ChunkRecord::Stored { extent, mask: 0 }.encode())
            }
            Outcome::Record(record) => Some(record.encode()),
            Outcome::Absent => None,
        };
        receipt.chunks_decoded = receipt.chunks_decoded.saturating_add(u64::from(p.decoded));
        let (decoded, encoded, kept) = p.inner;
        receipt.inner_decoded = receipt.inner_decoded.saturating_add(decoded);
        receipt.inner_encoded = receipt.inner_encoded.saturating_add(encoded);
        receipt.inner_kept = receipt.inner_kept.saturating_add(kept);
        match at {
            Some(i) => {
                if let Some(change) = staged.changes.get_mut(i) {
                    change.1 = value;
                }
                for (_, old) in staged.merged.iter_mut().filter(|m| m.0 == i) {
                    if let Base::Merged(now) = &p.base {
                        old.clone_from(now);
                    }
                }
            }
            None => {
                let counter = if value.is_some() {
                    &mut receipt.chunks_written
                } else {
                    &mut receipt.chunks_removed
                };
                *counter = counter.saturating_add(1);
                if let Base::Merged(old) = p.base {
                    staged.merged.push((staged.changes.len(), old));
                }
                staged.changes.push((p.key, value));
            }
        }
        Ok(())
    }

    fn chunk(&self, c: &[i64]) -> Result<Prepared> {
        self.try_chunk(c).map_err(|e| e.in_chunk(c))
    }

    fn try_chunk(&self, c: &[i64]) -> Result<Prepared> {
        let layout = self.layout;
        let key = key::chunk(self.id, c, layout.key_order());
        let covered = layout.chunk.grid.covered(c, &layout.domain);
        let whole = self.plan.covers(c, &covered);
        if whole && let Some(outcome) = self.without_payload(c) {
            return Ok(Prepared {
                key,
                outcome,
                base: Base::Whole,
                decoded: false,
                inner: (0, 0, 0),
            });
        }
        if let (Some((shard, tile)), Some(plan)) = (layout.sharded(), &self.inner) {
            return self.shard(key, c, whole, shard, tile, plan);
        }
        if whole && let Content::Block(Source::Fixed(block)) = self.content {
            return Ok(Prepared {
                key,
                outcome: self.encode_block(c, block)?,
                base: Base::Whole,
                decoded: false,
                inner: (0, 0, 0),
            });
        }
        let (mut elements, base, record) = if whole {
            (
                Elements::repeated(&layout.chunk, layout.fill())?,
                Base::Whole,
                None,
            )
        } else {
            let (old, record) = self.old(&key)?;
            let elements = Elements::load(
                layout,
                self.view,
                record.as_ref().unwrap_or(&ChunkRecord::Fill),
            )?;
            (elements, Base::Merged(old), record)
        };
        let decoded = matches!(record, Some(ChunkRecord::Stored { .. }));
        self.fill_in(self.plan, &layout.chunk, c, &mut elements)?;
        let outcome = if elements.is_fill(layout.fill()) {
            self.emptied(record)
        } else {
            let mut bytes = self.spare.lock().pop().unwrap_or_default();
            elements.encode(&layout.chunk, &mut bytes)?;
            let crc = crc32(&bytes);
            Outcome::Payload(bytes, crc)
        };
        Ok(Prepared {
            key,
            outcome,
            base,
            decoded,
            inner: (0, 0, 0),
        })
    }

    /// A shard: the inner chunks that the call touches are merged and encoded, all others keep their bytes.
    fn shard(
        &self,
        key: Key,
        c: &[i64],
        whole: bool,
        shard: &Shard,
        tile: &Tile,
        plan: &Plan<'_>,
    ) -> Result<Prepared> {
        let layout = self.layout;
        let (base, record) = if whole {
            (Base::Whole, None)
        } else {
            let (old, record) = self.old(&key)?;
            (Base::Merged(old), record)
        };
        let old = OldShard::open(self.view, layout, record.as_ref())?;
        let touched = shards::met(shard, plan, c).into_vec();
        let edited = shard_edit::edit(layout, &old, touched, |number, inner| {
            let covered = tile.grid.covered(inner, &layout.domain);
            let (mut elements, decoded) = if plan.covers(inner, &covered) {
                (Elements::repeated(tile, &tile.fill)?, false)
            } else {
                old.elements(layout, number)?
            };
            self.fill_in(plan, tile, inner, &mut elements)?;
            let part = if elements.is_fill(&tile.fill) {
                Part::Absent
            } else {
                let mut bytes = Vec::new();
                elements.encode(tile, &mut bytes)?;
                Part::New(bytes)
            };
            Ok(InnerChange { part, decoded })
        })?;
        Ok(Prepared {
            key,
            outcome: match edited.payload {
                Some(bytes) => {
                    let crc = crc32(&bytes);
                    Outcome::Payload(bytes, crc)
                }
                None => self.emptied(record),
            },
            base,
            decoded: edited.decoded > 0,
            inner: (edited.decoded, edited.encoded, edited.kept),
        })
    }

    /// The entry of a chunk as it is now, and what it says.
    fn old(&self, key: &Key) -> Result<(Option<Value>, Option<ChunkRecord>)> {
        let old = match self.over.and_then(|o| o.get(key)) {
            Some(value) => value.clone(),
            None => self.view.get(key)?,
        };
        let record = old.as_deref().map(scan::decode).transpose()?;
        Ok((old, record))
    }

    /// What becomes of a chunk in which nothing but fill is left.
    fn emptied(&self, record: Option<ChunkRecord>) -> Outcome {
        match (self.content, record) {
            // A declared chunk stays declared under more fill; a declaration that empties a stored one declares it.
            (_, Some(ChunkRecord::Fill)) | (Content::DeclaredFill, Some(_)) => {
                Outcome::Record(ChunkRecord::Fill)
            }
            _ => Outcome::Absent,
        }
    }

    /// Encodes a wholly covered chunk.
    fn encode_block(&self, c: &[i64], block: &[u8]) -> Result<Outcome> {
        self.with_elements(c, block, |elements| self.encode_fixed(elements))
    }

    /// Lends the elements of a wholly covered chunk to `f`: straight from the block where they lie side by side there.
    fn with_elements<R>(
        &self,
        c: &[i64],
        block: &[u8],
        f: impl FnOnce(&[u8]) -> Result<R>,
    ) -> Result<R> {
        let tile = &self.layout.chunk;
        let item = tile.item.unwrap_or(1);
        let copier = self.copier(c)?;
        if let Some(run) = copier.single().filter(|run| run.len == tile.len) {
            let start = run.src.saturating_mul(item);
            let elements = block.get(start..start.saturating_add(tile.byte_len()));
            return f(elements.unwrap_or_default());
        }
        CHUNK.with_borrow_mut(|chunk| {
            chunk.resize(tile.byte_len(), 0);
            if copier.len() < tile.len {
                repeat(&tile.fill, chunk);
            }
            copier.copy_bytes(item, block, chunk);
            let result = f(chunk);
            if chunk.len() > KEPT_BYTES_MAX {
                *chunk = Vec::new();
            }
            result
        })
    }

    /// The copy from the caller's block into a chunk.
    fn copier(&self, c: &[i64]) -> Result<Copier> {
        let maps = self.plan.maps(c).map(|m| m.reversed());
        Copier::new(maps, self.shape, &self.layout.chunk.shape)
    }

    fn encode_fixed(&self, elements: &[u8]) -> Result<Outcome> {
        if is_repeated(self.layout.fill(), elements) {
            return Ok(Outcome::Absent);
        }
        let mut bytes = self.spare.lock().pop().unwrap_or_default();
        self.layout.chunk.pipeline.encode(elements, &mut bytes)?;
        let crc = crc32(&bytes);
        Ok(Outcome::Payload(bytes, crc))
    }

    /// What a wholly covered chunk becomes where no element needs to be stored.
    fn without_payload(&self, c: &[i64]) -> Option<Outcome> {
        let layout = self.layout;
        match self.content {
            Content::DeclaredFill => Some(Outcome::Record(ChunkRecord::Fill)),
            Content::Scalar(element) if **element == *layout.fill() => Some(Outcome::Absent),
            // A constant says something about every element of the chunk, so none may lie outside the domain: a later
            // grow would show it.
            Content::Scalar(element)
                if layout.item().is_some() && layout.chunk.grid.is_inside(c, &layout.domain) =>
            {
                let mut padded = [0; 16];
                padded.get_mut(..element.len())?.copy_from_slice(element);
                Some(Outcome::Record(ChunkRecord::Constant(padded)))
            }
            _ => None,
        }
    }

    fn fill_in(
        &self,
        plan: &Plan<'_>,
        tile: &Tile,
        c: &[i64],
        elements: &mut Elements,
    ) -> Result<()> {
        let maps = plan.maps(c).map(|m| m.reversed());
        match self.content {
            Content::Block(source) => {
                let copier = Copier::new(maps, self.shape, &tile.shape)?;
                elements.take_from(tile, source, &copier)
            }
            Content::Scalar(element) => self.set_all(tile, maps, element, elements),
            Content::DeclaredFill => self.set_all(tile, maps, &tile.fill, elements),
        }
    }

    fn set_all(
        &self,
        tile: &Tile,
        maps: impl Iterator<Item = AxisMap>,
        element: &[u8],
        elements: &mut Elements,
    ) -> Result<()> {
        let copier = Copier::new(maps, self.shape, &tile.shape)?;
        if copier.len() == tile.len
            && let Elements::Fixed(bytes) = elements
        {
            repeat(element, bytes);
        } else {
            elements.set(tile, element, &copier);
        }
        Ok(())
    }
}

/// Resets the selected elements to fill. Walks the stored chunks alone, so that a whole domain can be erased at once.
///
/// The answer is `None`, and nothing is staged, where the array's document is no longer the guard's.
pub(crate) fn erase(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
    guard: &Guard<'_>,
) -> Result<Option<WriteReceipt>> {
    let writer = view.writer()?;
    let _hold = writer.hold();
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let content = Content::Scalar(layout.fill());
    let job = Job {
        view,
        writer,
        id,
        layout,
        content: &content,
        plan: &plan,
        inner: inner_plan(layout, picked)?,
        shape: &plan.shape()?,
        over: None,
        spare: Mutex::default(),
    };
    let sets: SmallVec<[&AxisSet; 8]> = plan.sets().collect();
    let mut staged = Staged::default();
    if !picked.is_empty() {
        scan::each_stored(view, id, layout.key_order(), &sets, |entry| {
            let prepared = job.chunk(&entry.coords)?;
            job.append(prepared, &mut staged, None)?;
            // A large payload has its place only: it is written before anything names it.
            job.flush(&mut Vec::new(), &mut staged)
        })?;
    }
    loop {
        match staged.stage(writer, guard) {
            Ok(()) => return Ok(Some(staged.receipt)),
            Err(Moved::Document) => return Ok(None),
            Err(Moved::Chunk(i)) => job.redo(&mut staged, i)?,
        }
    }
}
