//! An array stored anew: other chunks, shards or codecs, the same elements.
//!
//! Holds [`Rechunk`], what is wanted, [`RechunkReceipt`], and [`rechunk`], which works block by block in bounded memory.
//! Blocks follow what is stored, never the domain. Must not touch the index itself: the new array is written and put in the
//! old one's place by the calls that everybody uses.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::bytes::crc32c_append;
use crate::catalog;
use crate::codec::{self, Codec};
use crate::error::{Error, Result};
use crate::format::document::{ArrayDocument, CodecSpec};
use crate::format::json::Json;
use crate::format::name::ObjectPath;
use crate::format::pipeline::codecs_from_json;
use crate::grid::{AxisSet, ChunkGrid, Coords, Domain, Picked, Region, Selection};
use crate::txn::View;

use super::chunk::reserve;
use super::element::{Elements, Source};
use super::handle::DynArray;
use super::layout::{Layout, Tile};
use super::plan::Plan;
use super::read;
use super::receipt::{Receipt, WriteReceipt};
use super::rechunk_blocks::{Passes, Wish, blocks_of};
use super::regroup::Pieces;
use super::scan;

/// Memory when nobody says how much.
const MEMORY: u64 = 128 << 20;
/// The share of the memory that one block of elements gets: beside it stands what is encoded of it and on its way to the
/// file, each for a batch, and then what is read back.
const SHARE: u64 = 4;
/// Bytes an element of variable length is taken for.
const VARIABLE_ITEM: u64 = 64;

/// How an array is to be stored.
#[derive(Debug, Clone)]
pub struct Rechunk {
    chunks: Vec<u64>,
    shards: Option<Vec<u64>>,
    codecs: Option<Vec<Codec>>,
    memory: u64,
}

/// What storing an array anew has cost.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RechunkReceipt {
    /// 1, or 2 where the elements went through a temporary file, because one pass would have decoded chunks more than
    /// twice.
    pub passes: u64,
    /// Stored chunks decoded, each at most twice; of shards, the inner chunks.
    pub chunks_decoded: u64,
    /// Chunks (shards where there are shards) written.
    pub chunks_written: u64,
    /// Encoded bytes appended.
    pub bytes_written: u64,
}

impl Rechunk {
    /// In chunks of this shape, without shards, with the codecs that it has.
    pub fn new(chunks: impl IntoIterator<Item = u64>) -> Self {
        Self {
            chunks: chunks.into_iter().collect(),
            shards: None,
            codecs: None,
            memory: MEMORY,
        }
    }

    /// In shards of this shape, of which the chunks are the inner chunks.
    #[must_use]
    pub fn shards(mut self, shape: impl IntoIterator<Item = u64>) -> Self {
        self.shards = Some(shape.into_iter().collect());
        self
    }

    /// With these codecs.
    #[must_use]
    pub fn codecs(mut self, codecs: impl IntoIterator<Item = Codec>) -> Self {
        self.codecs = Some(codecs.into_iter().collect());
        self
    }

    /// About how many bytes of memory the work may take. Default: 128 MiB. One chunk has to fit, old and new; of a new
    /// shard, all of it.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The document of the array stored so.
    fn document(&self, old: &ArrayDocument) -> Result<ArrayDocument> {
        let rank = old.domain.len();
        for shape in std::iter::once(&self.chunks).chain(&self.shards) {
            if shape.len() != rank {
                return Err(Error::invalid("chunk shape")
                    .expected(format_args!("{rank} axes"))
                    .found(shape.len())
                    .reason("rank"));
            }
        }
        let codecs = match &self.codecs {
            Some(codecs) => codec::resolve(codecs, &old.data_type)?,
            None => codecs_of(old)?,
        };
        let mut new = old.clone();
        (new.chunk_shape, new.codecs) = match &self.shards {
            None => (self.chunks.clone(), codecs),
            Some(shard) => (shard.clone(), vec![codec::shard_spec(&self.chunks, codecs)]),
        };
        Ok(new)
    }
}

/// The codecs that each chunk goes through; of shards, each inner chunk.
fn codecs_of(document: &ArrayDocument) -> Result<Vec<CodecSpec>> {
    if document.inner_chunk_shape().is_none() {
        return Ok(document.codecs.clone());
    }
    let sharding = document.codecs.iter().find_map(|c| c.get("codecs"));
    codecs_from_json(sharding.unwrap_or(&Json::Null))
}

/// Stores the array at `path` anew and puts it in the old one's place; `None`, and nothing has changed, where `progress`
/// (steps done, steps in all) ends it. No commit happens meanwhile.
pub(crate) fn rechunk(
    old: &DynArray,
    to: &View,
    path: &ObjectPath,
    wanted: &Rechunk,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<(DynArray, RechunkReceipt)>> {
    let writer = to.writer()?;
    let _hold = writer.hold();
    let compiled = old.compiled()?;
    let source = Layout::new(compiled.layout.document.clone(), to.limits())?.without_cache();
    let document = wanted
        .document(&source.document)
        .map_err(|e| e.in_object(&path.to_string()))?;
    let target = Layout::new(document.clone(), to.limits())
        .map_err(|e| e.in_object(&path.to_string()))?
        .without_cache();
    let passes = passes(&source, &target, wanted.memory)?;
    let Some((parent, _)) = path.split_last() else {
        return Err(Error::invalid("path").expected("an array's"));
    };
    let beside = parent.child(&format!(".rechunk-{}", old.id().0));
    let id = catalog::create_array(to, &beside, &document)?;
    let mut work = || {
        let new = DynArray::open(to.clone(), id, path.to_string())?;
        new.attributes().set_all(old.attributes().list()?)?;
        let mut job = Job {
            old,
            source: &source,
            new: &new,
            target: &target,
            to,
            progress,
            receipt: RechunkReceipt::default(),
        };
        job.run(&passes).map(|done| done.then_some(job.receipt))
    };
    match work() {
        Ok(Some(receipt)) => {
            catalog::replace(to, &beside, path)?;
            let new = DynArray::open(to.clone(), id, path.to_string())?;
            Ok(Some((new, receipt)))
        }
        ended => {
            catalog::remove(to, &beside, true)?;
            ended.map(|_| None)
        }
    }
}

fn passes(source: &Layout, target: &Layout, memory: u64) -> Result<Passes> {
    let item = source.item().map_or(VARIABLE_ITEM, |n| n as u64).max(1);
    let inner: Vec<u64> = unit(source).shape.iter().map(|n| *n as u64).collect();
    Passes::choose(&Wish {
        origin: &source.document.origin,
        old: &inner,
        new: &target.document.chunk_shape,
        domain: &source.domain,
        elements_max: memory.div_euclid(SHARE.saturating_mul(item)).max(1),
    })
}

/// What is decoded by itself.
fn unit(layout: &Layout) -> &Tile {
    layout.sharded().map_or(&layout.chunk, |(_, inner)| inner)
}

/// One array on its way into another.
struct Job<'a> {
    old: &'a DynArray,
    source: &'a Layout,
    new: &'a DynArray,
    target: &'a Layout,
    to: &'a View,
    progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    receipt: RechunkReceipt,
}

impl Job<'_> {
    /// Copies everything; false where that was ended early.
    fn run(&mut self, passes: &Passes) -> Result<bool> {
        let (Passes::One(grid) | Passes::Two(grid, _)) = passes;
        let (blocks, before) = self.stored(grid)?;
        let done = match passes {
            Passes::One(_) => self.one_pass(grid, &blocks)?,
            Passes::Two(_, write) => self.two_passes((grid, &blocks), write)?,
        };
        if done && self.stored(grid)?.1 != before {
            return Err(Error::invalid("array")
                .expected("no writes while its chunks are stored anew")
                .found("some")
                .in_object(self.old.path()));
        }
        Ok(done)
    }

    fn one_pass(&mut self, grid: &ChunkGrid, blocks: &BTreeSet<Coords>) -> Result<bool> {
        self.receipt.passes = 1;
        let total = blocks.len() as u64;
        for (done, block) in (0..).zip(blocks) {
            if self.tell(done, total) {
                return Ok(false);
            }
            let region = grid.covered(block, &self.source.domain);
            let elements = self.load(&region)?;
            self.store(&region, &elements)?;
        }
        Ok(!self.tell(total, total))
    }

    fn two_passes(
        &mut self,
        (read, blocks): (&ChunkGrid, &BTreeSet<Coords>),
        write: &ChunkGrid,
    ) -> Result<bool> {
        self.receipt.passes = 2;
        let domain = &self.source.domain;
        let scratch = self.to.engine().scratch()?;
        let mut pieces = Pieces::new(scratch, self.source.fill(), self.source.item());
        // Until the pieces are there, as many blocks are taken for the second pass as for the first.
        let half = blocks.len() as u64;
        for (done, block) in (0..).zip(blocks) {
            if self.tell(done, half.saturating_mul(2)) {
                return Ok(false);
            }
            let region = read.covered(block, domain);
            let elements = self.load(&region)?;
            for to in blocks_of(write, &region) {
                let part = region.intersection(&write.covered(&to, domain));
                pieces.put(&to, &part, &region, &elements)?;
            }
        }
        let blocks = pieces.blocks();
        let total = half.saturating_add(blocks.len() as u64);
        for (done, block) in (half..).zip(&blocks) {
            if self.tell(done, total) {
                return Ok(false);
            }
            let region = write.covered(block, domain);
            let mut elements = blank(self.source, &region)?;
            pieces.take(block, &region, &mut elements)?;
            self.store(&region, &elements)?;
        }
        Ok(!self.tell(total, total))
    }

    /// Says how far the work is; true where it is to end.
    fn tell(&mut self, done: u64, total: u64) -> bool {
        (self.progress)(done, total).is_break()
    }

    /// The blocks of `grid` in which something is stored, and a checksum over what.
    fn stored(&self, grid: &ChunkGrid) -> Result<(BTreeSet<Coords>, u32)> {
        let layout = self.source;
        let picked = Picked::whole(&layout.domain);
        let (mut blocks, mut sum) = (BTreeSet::new(), 0);
        if picked.is_empty() {
            return Ok((blocks, sum));
        }
        let plan = Plan::new(&layout.chunk.grid, &picked)?;
        let sets: Vec<&AxisSet> = plan.sets().collect();
        let (view, id) = (self.old.view(), self.old.id());
        self.old.placed(|| {
            scan::each_stored(view, id, layout.key_order(), &sets, |entry| {
                for c in &entry.coords {
                    sum = crc32c_append(sum, &c.to_le_bytes());
                }
                sum = crc32c_append(sum, &entry.value);
                let part = layout.chunk.grid.covered(&entry.coords, &layout.domain);
                blocks.extend(blocks_of(grid, &part));
                Ok(())
            })
        })?;
        Ok((blocks, sum))
    }

    fn load(&mut self, region: &Domain) -> Result<Elements> {
        let (elements, cost) = self
            .old
            .placed(|| read_block(self.old, self.old.view(), self.source, region))?;
        let decoded = if self.source.sharded().is_some() {
            cost.inner_decoded
        } else {
            cost.chunks_decoded
        };
        self.receipt.chunks_decoded = self.receipt.chunks_decoded.saturating_add(decoded);
        Ok(elements)
    }

    /// Writes one block, and compares what is read back.
    fn store(&mut self, region: &Domain, elements: &Elements) -> Result<()> {
        let input = match elements {
            Elements::Fixed(bytes) => Source::Fixed(bytes.as_slice().into()),
            Elements::Variable(items) => {
                Source::Variable(items.iter().map(AsRef::as_ref).collect())
            }
        };
        let selection = Selection::from(Region::from_domain(region));
        let WriteReceipt {
            chunks_written,
            bytes_written,
            ..
        } = self.new.write_source(&selection, None, input)?;
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.receipt.chunks_written, chunks_written);
        sum(&mut self.receipt.bytes_written, bytes_written);
        self.compare(region, elements)
    }

    /// Reads a block back, one row of chunks at a time: in C order that is one stretch of the block.
    fn compare(&self, region: &Domain, elements: &Elements) -> Result<()> {
        let grid = &self.target.chunk.grid;
        let rows = match region.bounds().first() {
            Some(&(lo, hi)) => grid.chunks_of(0, lo, hi),
            None => (0, 1),
        };
        let mut start = 0;
        for row in rows.0..rows.1 {
            let axes = region.bounds().iter().enumerate().map(|(axis, &(lo, hi))| {
                let at = |c: i64| i64::try_from(grid.start(0, c)).unwrap_or(lo).clamp(lo, hi);
                match axis {
                    0 => (at(row), at(row.saturating_add(1))),
                    _ => (lo, hi),
                }
            });
            let part = Domain::from_checked(axes);
            let (found, _) = self
                .new
                .placed(|| read_block(self.new, self.to, self.target, &part))?;
            let end = found.len(None).saturating_add(start);
            let same = match (&found, elements) {
                (Elements::Fixed(found), Elements::Fixed(want)) => {
                    want.get(start..end) == Some(found.as_slice())
                }
                (Elements::Variable(found), Elements::Variable(want)) => {
                    want.get(start..end) == Some(found.as_slice())
                }
                _ => false,
            };
            if !same {
                return Err(Error::corrupt("block of a rechunked array")
                    .expected("the elements that were written")
                    .found("others")
                    .in_object(self.new.path()));
            }
            start = end;
        }
        Ok(())
    }
}

fn read_block(
    array: &DynArray,
    view: &View,
    layout: &Layout,
    region: &Domain,
) -> Result<(Elements, Receipt)> {
    let picked = Picked::whole(region);
    if layout.item().is_none() {
        let (items, cost) = read::read_variable(view, array.id(), layout, &picked)?;
        return Ok((Elements::Variable(items), cost));
    }
    let mut bytes = reserve(byte_count(layout, region))?;
    let cost = read::read_fixed(view, array.id(), layout, &picked, &mut bytes)?;
    Ok((Elements::Fixed(bytes), cost))
}

/// Nothing but fill.
fn blank(layout: &Layout, region: &Domain) -> Result<Elements> {
    if layout.item().is_some() {
        let mut bytes = reserve(byte_count(layout, region))?;
        codec::repeat(layout.fill(), &mut bytes);
        return Ok(Elements::Fixed(bytes));
    }
    let n = region.element_count().and_then(|n| usize::try_from(n).ok());
    let n = n.ok_or_else(|| Error::limit("block").reason("too_large"))?;
    Ok(Elements::Variable(vec![layout.fill().into(); n]))
}

fn byte_count(layout: &Layout, region: &Domain) -> Option<usize> {
    let n = usize::try_from(region.element_count()?).ok()?;
    n.checked_mul(layout.item().unwrap_or(1))
}
