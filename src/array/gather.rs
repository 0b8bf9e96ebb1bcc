//! From stored chunks to the elements of one result, in parallel.
//!
//! Holds [`Gather`], which decodes units of one [`Tile`] and copies what the plan picks. Must not look chunks up or fetch
//! parts of shards: units come with all that is needed.
//!
//! The result is split along one axis into slices that no two tasks share, so that parallel copies need no locks.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::codec::Decoded;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisMap, AxisSet, Coords, Copier, c_strides};
use crate::txn::{CacheKey, Fetch, Payload, View};

use super::chunk::{for_each_pair, reserve};
use super::element::Elements;
use super::layout::{Layout, Tile, verified_key};
use super::parallel;
use super::plan::Plan;
use super::receipt::{ReadPath, Receipt};
use super::shards;

/// Work of one read, in bytes of decoded chunks, below which it stays on the caller's thread.
const PARALLEL_MIN: usize = 1 << 20;

/// One chunk or inner chunk, and where its elements come from.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) coords: Coords,
    pub(super) content: Content,
}

/// Some units; one needs no memory of its own.
pub(super) type Units = SmallVec<[Unit; 1]>;

#[derive(Debug)]
pub(super) enum Content {
    /// What the index says.
    Record(ChunkRecord),
    /// An inner chunk, encoded; its cost is counted where it was fetched.
    Inner(Encoded),
    /// Elements out of the cache.
    Kept(Arc<Elements>),
    /// An absent inner chunk.
    Fill,
}

/// The encoded bytes of an inner chunk.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) bytes: Arc<Payload>,
    pub(super) range: Range<usize>,
    pub(super) key: CacheKey,
    /// Absolute position, for messages.
    pub(super) offset: u64,
}

impl Encoded {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }

    /// Says where in the file an error lies.
    fn place(&self, e: Error) -> Error {
        e.at_or(self.offset).spanning(self.range.len() as u64)
    }
}

/// What all tasks of one read share.
pub(super) struct Gather<'a> {
    pub(super) view: &'a View,
    pub(super) id: ObjectId,
    pub(super) layout: &'a Layout,
    /// What the units are.
    pub(super) tile: &'a Tile,
    /// The selection over the tile's grid.
    pub(super) plan: &'a Plan<'a>,
    /// The result's extents, dropped axes included.
    pub(super) shape: &'a [usize],
}

/// Some units, and the parts of the result that they and no others fill.
struct Task<'o> {
    units: Units,
    /// One slice for each position on the axes before the split one.
    rows: SmallVec<[&'o mut [u8]; 1]>,
    /// Position on the split axis where the slices start, and how many they hold.
    start: usize,
    len: usize,
    /// The axis along which the result is split.
    axis: usize,
}

impl Gather<'_> {
    /// Puts the elements of all units into `out`.
    pub(super) fn run(&self, units: Units, out: &mut [u8]) -> Result<Receipt> {
        let work = units.len().saturating_mul(self.tile.byte_len());
        let pieces = if work < PARALLEL_MIN || units.len() < 2 {
            1
        } else {
            parallel::width().saturating_mul(4)
        };
        if pieces == 1 {
            return self.task(self.whole(units, out));
        }
        let tasks = self.split(units, pieces, out);
        let mut receipt = Receipt::default();
        for cost in &parallel::map(tasks, |task| self.task(task))? {
            receipt.add(cost);
        }
        Ok(receipt)
    }

    /// The elements of one unit, kept where only a part of them is asked for; `None` for nothing but fill.
    pub(super) fn elements(&self, unit: &Unit) -> Result<(Option<Arc<Elements>>, Receipt)> {
        let fail = |e: Error| shards::blame(e, self.layout, &unit.coords);
        match &unit.content {
            Content::Fill => Ok((None, Receipt::default())),
            Content::Kept(elements) => Ok((Some(Arc::clone(elements)), Receipt::default())),
            Content::Inner(encoded) => {
                let decoded = Elements::decode(self.tile, encoded.as_slice(), 0)
                    .map_err(|e| fail(encoded.place(e)))?;
                let cost = Receipt {
                    bytes_decoded: decoded.byte_len(),
                    ..Receipt::default()
                };
                let decoded = Arc::new(decoded);
                self.keep(&unit.coords, encoded.key, &decoded);
                Ok((Some(decoded), cost))
            }
            Content::Record(record) => {
                let ChunkRecord::Stored { extent, .. } = record else {
                    let constant = Elements::load(self.layout, self.view, record)
                        .map_err(|e| e.in_chunk(&unit.coords))?;
                    let cost = Receipt {
                        chunks_constant: 1,
                        ..Receipt::default()
                    };
                    return Ok((Some(Arc::new(constant)), cost));
                };
                let key = self.layout.cache_key(self.id, *extent);
                if let Some(kept) = self.view.chunks().get::<Elements>(&key) {
                    let cost = Receipt {
                        chunks_cached: 1,
                        ..Receipt::default()
                    };
                    return Ok((Some(kept), cost));
                }
                let decoded = Elements::load(self.layout, self.view, record)
                    .map_err(|e| e.in_chunk(&unit.coords))?;
                let cost = Receipt {
                    chunks_decoded: 1,
                    bytes_fetched: extent.len,
                    bytes_decoded: decoded.byte_len(),
                    ..Receipt::default()
                };
                let decoded = Arc::new(decoded);
                self.keep(&unit.coords, key, &decoded);
                Ok((Some(decoded), cost))
            }
        }
    }

    /// Keeps decoded elements of which the selection takes a part: who takes all of them seldom comes back.
    fn keep(&self, coords: &[i64], key: CacheKey, elements: &Arc<Elements>) {
        let cost = elements.memory();
        let cache = self.view.chunks();
        if self.layout.keeps && cache.takes(cost) && !self.takes_all(coords) {
            cache.put(key, Arc::clone(elements), cost);
        }
    }

    /// True when every element of a unit that lies in the domain is taken.
    fn takes_all(&self, coords: &[i64]) -> bool {
        let covered = self.tile.grid.covered(coords, &self.layout.domain);
        self.plan.covers(coords, &covered)
    }

    /// All units and all of the result.
    fn whole<'o>(&self, units: Units, out: &'o mut [u8]) -> Task<'o> {
        Task {
            units,
            rows: SmallVec::from_buf([out]),
            start: 0,
            len: self.shape.first().copied().unwrap_or(1),
            axis: 0,
        }
    }

    /// Splits the result along the first axis that meets more than one chunk, into about `pieces` tasks.
    fn split<'o>(&self, units: Units, pieces: usize, out: &'o mut [u8]) -> Vec<Task<'o>> {
        let whole = |units, out: &'o mut [u8]| vec![self.whole(units, out)];
        let lengths: SmallVec<[u64; 8]> = self.plan.sets().map(AxisSet::len).collect();
        let Some(axis) = lengths.iter().position(|&n| n > 1) else {
            return whole(units, out);
        };
        if (0..=axis).any(|a| !self.plan.is_range(a)) {
            return whole(units, out);
        }
        let Some(set) = self.plan.set(axis) else {
            return whole(units, out);
        };
        let per_piece = usize::try_from(set.len())
            .unwrap_or(usize::MAX)
            .div_ceil(pieces)
            .max(1);
        let (mut tasks, bounds) = self.tasks(axis, set, per_piece);
        for unit in units {
            let c = unit.coords.get(axis).copied().unwrap_or(0);
            let at = bounds.partition_point(|&b| b <= c).saturating_sub(1);
            if let Some(task) = tasks.get_mut(at) {
                task.units.push(unit);
            }
        }
        let (extent, inner) = self
            .shape
            .get(axis..)
            .and_then(<[usize]>::split_first)
            .map_or((1, 1), |(n, rest)| (*n, rest.iter().product()));
        let step: usize = self.item().saturating_mul(inner);
        for mut row in out.chunks_mut(step.saturating_mul(extent).max(1)) {
            for task in &mut tasks {
                let cut = task.len.saturating_mul(step).min(row.len());
                let (head, rest) = row.split_at_mut(cut);
                task.rows.push(head);
                row = rest;
            }
        }
        tasks.retain(|t| !t.units.is_empty());
        tasks
    }

    /// Empty tasks for `per_piece` neighbouring chunk coordinates of an axis each, and the first coordinate of each.
    fn tasks<'o>(&self, axis: usize, set: &AxisSet, per_piece: usize) -> (Vec<Task<'o>>, Vec<i64>) {
        let mut tasks: Vec<Task<'o>> = Vec::new();
        let mut bounds: Vec<i64> = Vec::new();
        for (i, c) in set.iter().enumerate() {
            let AxisMap::Run { dst, len, .. } = self.plan.map(axis, c) else {
                continue;
            };
            match tasks.last_mut() {
                Some(task) if !i.is_multiple_of(per_piece) => {
                    task.len = task.len.saturating_add(len);
                }
                _ => {
                    tasks.push(Task {
                        units: Units::new(),
                        rows: SmallVec::new(),
                        start: dst,
                        len,
                        axis,
                    });
                    bounds.push(c);
                }
            }
        }
        (tasks, bounds)
    }

    fn item(&self) -> usize {
        self.tile.item.unwrap_or(1)
    }

    fn task(&self, mut task: Task<'_>) -> Result<Receipt> {
        let mut receipt = Receipt::default();
        for unit in std::mem::take(&mut task.units) {
            receipt.add(&self.unit(&unit, &mut task)?);
        }
        Ok(receipt)
    }

    fn unit(&self, unit: &Unit, task: &mut Task<'_>) -> Result<Receipt> {
        let coords = &unit.coords;
        match &unit.content {
            Content::Fill => {
                self.spread(coords, task, &self.tile.fill)?;
                Ok(Receipt::default())
            }
            Content::Kept(elements) => {
                self.copy_kept(coords, elements, task)?;
                Ok(Receipt::default())
            }
            Content::Inner(encoded) => {
                self.decode(coords, task, encoded.key, (encoded.as_slice(), 0))
                    .map_err(|e| encoded.place(e))
                    .map_err(|e| shards::blame(e, self.layout, coords))?;
                Ok(Receipt::default())
            }
            Content::Record(record) => self
                .record(coords, record, task)
                .map_err(|e| e.in_chunk(coords)),
        }
    }

    fn record(&self, coords: &[i64], record: &ChunkRecord, task: &mut Task<'_>) -> Result<Receipt> {
        let constant = Receipt {
            chunks_constant: 1,
            ..Receipt::default()
        };
        let (extent, mask) = match record {
            ChunkRecord::Fill => {
                self.spread(coords, task, &self.tile.fill)?;
                return Ok(constant);
            }
            ChunkRecord::Constant(element) => {
                self.spread(coords, task, self.tile.constant(element)?)?;
                return Ok(constant);
            }
            ChunkRecord::Stored { extent, mask } => (*extent, *mask),
        };
        if self.tile.pipeline.is_raw() && mask == 0 {
            return self.raw(coords, extent, task);
        }
        let key = self.layout.cache_key(self.id, extent);
        if let Some(kept) = self.view.chunks().get::<Elements>(&key) {
            self.copy_kept(coords, &kept, task)?;
            return Ok(Receipt {
                chunks_cached: 1,
                ..Receipt::default()
            });
        }
        let payload = self.view.payload(extent)?;
        self.decode(coords, task, key, (&payload, mask))
            .map_err(|e| e.at_or(extent.offset).spanning(extent.len))?;
        Ok(Receipt {
            bytes_fetched: extent.len,
            bytes_decoded: self.tile.byte_len() as u64,
            chunks_decoded: 1,
            ..Receipt::default()
        })
    }

    /// Decodes a unit to where its elements are wanted: in place where they lie there as they lie in the unit.
    fn decode(
        &self,
        coords: &[i64],
        task: &mut Task<'_>,
        key: CacheKey,
        (encoded, mask): (&[u8], u8),
    ) -> Result<()> {
        let pipeline = &self.tile.pipeline;
        if let Some(out) = self.direct(coords, task)? {
            return pipeline.decode(encoded, mask, out);
        }
        let len = self.tile.byte_len();
        let cache = self.view.chunks();
        if self.layout.keeps && cache.takes(len) && !self.takes_all(coords) {
            let mut bytes = reserve(Some(len))?;
            pipeline.decode(encoded, mask, &mut bytes)?;
            self.copy(coords, Decoded::Elements(&bytes), 0, task)?;
            cache.put(key, Arc::new(Elements::Fixed(bytes)), len);
            return Ok(());
        }
        pipeline.decode_with(encoded, mask, |decoded| self.copy(coords, decoded, 0, task))
    }

    /// Copies rows straight out of a raw chunk. Its checksum is compared once, before the first of them; where only some
    /// are asked for, those alone are fetched from then on.
    fn raw(&self, coords: &[i64], extent: Extent, task: &mut Task<'_>) -> Result<Receipt> {
        let len = self.tile.byte_len();
        if extent.len != len as u64 {
            return Err(Error::corrupt("raw chunk")
                .expected(format_args!("{len} bytes"))
                .found(extent.len)
                .at(extent.offset)
                .spanning(extent.len));
        }
        let mut cost = Receipt {
            bytes_fetched: extent.len,
            bytes_decoded: extent.len,
            chunks_decoded: 1,
            path: ReadPath::Rows,
            ..Receipt::default()
        };
        let seen = verified_key(self.layout.cache_key(self.id, extent));
        let part = self.raw_part(coords);
        match part.clone().filter(|_| self.is_verified(extent)) {
            Some(range) => {
                let base = range.start;
                let range = range.start as u64..range.end as u64;
                let bytes = self.view.payload_range(extent, range)?;
                cost.bytes_fetched = bytes.len() as u64;
                self.copy(coords, Decoded::Elements(&bytes), base, task)?;
            }
            None => {
                let bytes = self.view.payload(extent)?;
                self.copy(coords, Decoded::Elements(&bytes), 0, task)?;
                if part.is_some() {
                    self.view.shards().put(seen, Arc::new(()), 0);
                }
            }
        }
        Ok(cost)
    }

    /// What a raw chunk costs to read, in bytes fetched.
    pub(super) fn raw_cost(&self, coords: &[i64], extent: Extent) -> u64 {
        let part = self.raw_part(coords).filter(|_| self.is_verified(extent));
        part.map_or(extent.len, |range| range.len() as u64)
    }

    /// True when the checksum of an extent has been compared before.
    fn is_verified(&self, extent: Extent) -> bool {
        let seen = verified_key(self.layout.cache_key(self.id, extent));
        self.view.shards().get::<()>(&seen).is_some()
    }

    /// The bytes of a raw chunk between the first and the last element taken, where they are not all of it and can be
    /// fetched by themselves.
    fn raw_part(&self, coords: &[i64]) -> Option<Range<usize>> {
        let Fetch::Ranges(_) = self.view.engine().fetch_gap() else {
            return None;
        };
        let (strides, _) = c_strides(&self.tile.shape)?;
        let (mut first, mut last) = (0_usize, 0_usize);
        for (map, stride) in self.plan.maps(coords).zip(&strides) {
            let (lo, hi) = map.src_bounds()?;
            first = first.checked_add(lo.checked_mul(*stride)?)?;
            last = last.checked_add(hi.checked_mul(*stride)?)?;
        }
        let item = self.item();
        let range = first.checked_mul(item)?..last.checked_add(1)?.checked_mul(item)?;
        (range.len() < self.tile.byte_len()).then_some(range)
    }

    /// The place of a chunk whose elements lie in the result as they lie in the chunk: it can be decoded right there.
    fn direct<'t>(&self, coords: &[i64], task: &'t mut Task<'_>) -> Result<Option<&'t mut [u8]>> {
        if task.rows.len() != 1 {
            return Ok(None);
        }
        let Some(run) = self.copier(coords, task)?.single() else {
            return Ok(None);
        };
        if run.len != self.tile.len {
            return Ok(None);
        }
        let start = run.dst.saturating_mul(self.item());
        Ok(task
            .rows
            .first_mut()
            .and_then(|row| row.get_mut(start..start.saturating_add(self.tile.byte_len()))))
    }

    /// The copy from a chunk into a task's slices, for one position on the axes before the split one.
    fn copier(&self, coords: &[i64], task: &Task<'_>) -> Result<Copier> {
        let maps = (task.axis..self.shape.len()).map(|axis| {
            let map = self.plan.map(axis, coords.get(axis).copied().unwrap_or(0));
            match map {
                AxisMap::Run {
                    src,
                    dst,
                    len,
                    src_step,
                    dst_step,
                } if axis == task.axis => AxisMap::Run {
                    src,
                    dst: dst.saturating_sub(task.start),
                    len,
                    src_step,
                    dst_step,
                },
                other => other,
            }
        });
        let mut dst_shape: SmallVec<[usize; 8]> =
            self.shape.get(task.axis..).unwrap_or_default().into();
        if let Some(first) = dst_shape.first_mut() {
            *first = task.len;
        }
        Copier::new(
            maps,
            self.tile.shape.get(task.axis..).unwrap_or_default(),
            &dst_shape,
        )
    }

    fn copy_kept(&self, coords: &[i64], elements: &Elements, task: &mut Task<'_>) -> Result<()> {
        match elements {
            Elements::Fixed(bytes) if bytes.len() == self.tile.byte_len() => {
                self.copy(coords, Decoded::Elements(bytes), 0, task)
            }
            _ => Err(Error::type_mismatch("elements").expected("the array's kind of element")),
        }
    }

    /// Copies out of `decoded`, the bytes of a unit from its byte `base` on.
    fn copy(
        &self,
        coords: &[i64],
        decoded: Decoded<'_>,
        base: usize,
        task: &mut Task<'_>,
    ) -> Result<()> {
        let item = self.item();
        // `base` is the place of an element.
        let base = base.checked_div(item).unwrap_or(0);
        let mut copier = self.copier(coords, task)?;
        self.for_each_row(coords, task, |start, row| {
            copier.shift(start.wrapping_sub(base));
            decoded.copy(item, &copier, row);
        })
    }

    /// Sets every element taken from a unit to one value.
    fn spread(&self, coords: &[i64], task: &mut Task<'_>, element: &[u8]) -> Result<()> {
        let item = self.item();
        let copier = self.copier(coords, task)?;
        self.for_each_row(coords, task, |_, row| {
            copier.for_each(|run| {
                let step = run.dst_step.max(1).saturating_mul(item);
                let cells = row
                    .get_mut(run.dst.saturating_mul(item)..)
                    .unwrap_or_default();
                for cell in cells.chunks_mut(step).take(run.len) {
                    if let Some(cell) = cell.get_mut(..item) {
                        cell.copy_from_slice(element);
                    }
                }
            });
        })
    }

    /// Calls `f` with a position in the unit and a slice, for every position on the leading axes.
    fn for_each_row(
        &self,
        coords: &[i64],
        task: &mut Task<'_>,
        mut f: impl FnMut(usize, &mut [u8]),
    ) -> Result<()> {
        if task.axis == 0 {
            if let Some(row) = task.rows.first_mut() {
                f(0, row);
            }
            return Ok(());
        }
        let inner: usize = self
            .tile
            .shape
            .get(task.axis..)
            .unwrap_or_default()
            .iter()
            .product();
        let lead = self.tile.shape.get(..task.axis).unwrap_or_default();
        let maps =
            (0..task.axis).map(|axis| self.plan.map(axis, coords.get(axis).copied().unwrap_or(0)));
        let rows = Copier::new(maps, lead, self.shape.get(..task.axis).unwrap_or_default())?;
        for_each_pair(&rows, |src, dst| {
            if let Some(row) = task.rows.get_mut(dst) {
                f(src.saturating_mul(inner), row);
            }
        });
        Ok(())
    }
}
