//! Reading parts of shards: which inner chunks are asked for, where they lie, what has to be fetched for them.
//!
//! Holds [`ShardReader`]. Two layers: inner chunks are fetched by themselves where the medium can do that, neighbouring ones
//! as one range; else the shard is fetched whole, and only what is asked for is decoded. Must not decode inner chunks nor
//! touch the result.
//!
//! Nothing is used unverified: the index and every inner chunk carry a checksum, or the record's checksum of the whole
//! shard is compared before anything in it is used, and that is remembered.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::codec::{Shard, ShardIndex};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::grid::Coords;
use crate::txn::{CacheKey, Fetch, Payload, View};

use super::element::Elements;
use super::gather::{Content, Encoded, Unit, Units};
use super::layout::{Layout, Tile, index_key, inner_key, verified_key};
use super::parallel;
use super::plan::Plan;
use super::receipt::{ReadPath, Receipt};

/// Encoded bytes of shards that are held in memory at once, as far as one shard has not more.
const BATCH_BYTES: usize = 64 << 20;
/// Most shards looked at before their inner chunks are decoded.
const BATCH_MAX: usize = 1024;
/// Longest range fetched as one, unless one inner chunk is longer.
const RANGE_MAX: u64 = 16 << 20;
/// Work of one read, in bytes of inner chunks, below which fetching stays on the caller's thread.
const PARALLEL_MIN: usize = 1 << 20;

/// Why a shard was fetched whole: nothing less was asked for.
const FULL: &str = "full_shard";
/// The caller has switched partial reads off.
const OFF: &str = "partial_reads_off";
/// The medium cannot read ranges.
const NO_RANGES: &str = "no_ranges";
/// The shard has no checksums inside, so it was verified whole, once.
const UNVERIFIED: &str = "verified_whole_first";

/// A chunk that has an entry in the index.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) coords: Coords,
    pub(super) record: ChunkRecord,
}

impl Record {
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.record, ChunkRecord::Stored { .. })
    }
}

/// Some entries; one needs no memory of its own.
pub(super) type Records = SmallVec<[Record; 1]>;

/// An inner chunk that is asked for.
struct Wanted {
    coords: Coords,
    number: usize,
    state: State,
}

enum State {
    Unknown,
    Absent,
    Kept(Arc<Elements>),
    /// Encoded, at this range of the shard.
    At(Range<u64>),
}

/// A shard of which something is asked.
struct Opened {
    coords: Coords,
    extent: Extent,
    key: CacheKey,
    wanted: SmallVec<[Wanted; 1]>,
    /// The whole shard, where it was fetched.
    memory: Option<Arc<Payload>>,
    cost: Receipt,
}

/// A range of one shard that is fetched as one, and what it is fetched for.
struct Fetched {
    extent: Extent,
    key: CacheKey,
    chunk: Coords,
    range: Range<u64>,
    wanted: SmallVec<[Wanted; 1]>,
}

type Ranges = SmallVec<[Fetched; 1]>;

/// What all shards of one read share.
pub(super) struct ShardReader<'a> {
    view: &'a View,
    id: ObjectId,
    layout: &'a Layout,
    shard: &'a Shard,
    tile: &'a Tile,
    /// The selection over the grid of inner chunks.
    plan: &'a Plan<'a>,
    fetch: Fetch,
    /// Nothing is fetched but indexes, and nothing is kept.
    dry: bool,
}

impl<'a> ShardReader<'a> {
    pub(super) fn new(
        view: &'a View,
        id: ObjectId,
        layout: &'a Layout,
        (shard, tile): (&'a Shard, &'a Tile),
        plan: &'a Plan<'a>,
    ) -> Self {
        Self {
            view,
            id,
            layout,
            shard,
            tile,
            plan,
            fetch: view.engine().fetch_gap(),
            dry: false,
        }
    }

    /// Hands the inner chunks of all records to `gather`, some shards at a time; absent ones too unless the result is
    /// `blank` (nothing but fill) already.
    pub(super) fn read(
        &self,
        records: Records,
        blank: bool,
        mut gather: impl FnMut(Units) -> Result<Receipt>,
    ) -> Result<Receipt> {
        let mut total = Receipt::default();
        self.each_batch(records, |opened| {
            let mut units = Units::new();
            let mut ranges = Ranges::new();
            for shard in opened {
                total.add(&shard.cost);
                self.plan_shard(shard, blank, &mut units, &mut ranges)?;
            }
            let bytes: u64 = ranges.iter().map(Fetched::len).sum();
            total.bytes_fetched = total.bytes_fetched.saturating_add(bytes);
            let serial = ranges.len() < 2 || bytes < PARALLEL_MIN as u64;
            if serial {
                for range in ranges {
                    self.fetch(range, &mut units)?;
                }
            } else {
                let fetched = parallel::map(ranges.into_vec(), |range| {
                    let mut units = Units::new();
                    self.fetch(range, &mut units).map(|()| units)
                })?;
                units.extend(fetched.into_iter().flatten());
            }
            total.add(&gather(units)?);
            Ok(())
        })?;
        Ok(total)
    }

    /// What [`ShardReader::read`] would cost.
    pub(super) fn explain(mut self, records: Records) -> Result<Receipt> {
        self.dry = true;
        let mut total = Receipt::default();
        self.each_batch(records, |opened| {
            for shard in opened {
                total.add(&shard.cost);
                let (mut units, mut ranges) = (Units::new(), Ranges::new());
                self.plan_shard(shard, true, &mut units, &mut ranges)?;
                let bytes: u64 = ranges.iter().map(Fetched::len).sum();
                total.bytes_fetched = total.bytes_fetched.saturating_add(bytes);
            }
            Ok(())
        })?;
        Ok(total)
    }

    fn each_batch(
        &self,
        mut records: Records,
        mut f: impl FnMut(SmallVec<[Opened; 1]>) -> Result<()>,
    ) -> Result<()> {
        let fits = BATCH_BYTES.checked_div(self.layout.chunk.byte_len());
        let batch = fits.unwrap_or(1).clamp(1, BATCH_MAX);
        let wanted = records.len().saturating_mul(self.tile.byte_len());
        while !records.is_empty() {
            let now = records.drain(..batch.min(records.len()));
            f(if wanted < PARALLEL_MIN {
                now.map(|record| self.open(record)).collect::<Result<_>>()?
            } else {
                parallel::map(now.collect(), |record| self.open(record))?.into()
            })?;
        }
        Ok(())
    }

    fn open(&self, record: Record) -> Result<Opened> {
        let coords = record.coords.clone();
        self.try_open(record).map_err(|e| e.in_chunk(&coords))
    }

    /// Finds out where the inner chunks that are asked for lie.
    fn try_open(&self, record: Record) -> Result<Opened> {
        let ChunkRecord::Stored { extent, mask } = record.record else {
            return Err(Error::invalid("shard").expected("a stored one"));
        };
        let fail = |e: Error| e.at_or(extent.offset).spanning(extent.len);
        self.layout.chunk.pipeline.check_mask(mask).map_err(fail)?;
        let mut opened = Opened {
            key: self.layout.cache_key(self.id, extent),
            wanted: self.wanted(&record.coords),
            coords: record.coords,
            extent,
            memory: None,
            cost: Receipt::default(),
        };
        let full = opened.wanted.len() == self.shard.index().count();
        let kept = if full { 0 } else { self.find_kept(&mut opened) };
        let mut decoded = 0;
        if kept < opened.wanted.len() {
            let index = self.index(&mut opened, full).map_err(fail)?;
            for wanted in &mut opened.wanted {
                if !matches!(wanted.state, State::Unknown) {
                    continue;
                }
                let found = index.get(wanted.number);
                wanted.state = match found
                    .map_err(|e| fail(e.in_inner(&self.shard.position(wanted.number))))?
                {
                    None => State::Absent,
                    Some(range) => {
                        decoded += 1;
                        State::At(range)
                    }
                };
            }
        }
        let cost = &mut opened.cost;
        cost.inner_decoded = decoded;
        cost.bytes_decoded = decoded.saturating_mul(self.tile.byte_len() as u64);
        cost.chunks_decoded = u64::from(decoded > 0);
        cost.chunks_cached = u64::from(decoded == 0 && kept > 0);
        Ok(opened)
    }

    /// The inner chunks of a shard that the selection meets.
    fn wanted(&self, chunk: &[i64]) -> SmallVec<[Wanted; 1]> {
        let met = met(self.shard, self.plan, chunk);
        let wanted = |(number, coords)| Wanted {
            coords,
            number,
            state: State::Unknown,
        };
        met.into_iter().map(wanted).collect()
    }

    /// Takes what the cache has, and tells how much that is.
    fn find_kept(&self, opened: &mut Opened) -> usize {
        let cache = self.view.chunks();
        let mut found = 0;
        for wanted in &mut opened.wanted {
            let key = inner_key(opened.key, wanted.number);
            let kept = if self.dry {
                cache.peek::<Elements>(&key)
            } else {
                cache.get::<Elements>(&key)
            };
            if let Some(kept) = kept {
                wanted.state = State::Kept(kept);
                found += 1;
            }
        }
        found
    }

    /// The shard's index, with the whole shard where that had to be fetched.
    fn index(&self, opened: &mut Opened, full: bool) -> Result<Arc<ShardIndex>> {
        let reason = match self.fetch {
            _ if full => Some(FULL),
            Fetch::Off => Some(OFF),
            Fetch::Whole => Some(NO_RANGES),
            Fetch::Ranges(_) => None,
        };
        let extent = opened.extent;
        let cache = self.view.shards();
        if let Some(reason) = reason {
            opened.cost.reason = Some(reason);
            opened.cost.bytes_fetched = extent.len;
            if self.dry {
                opened.memory = Some(Arc::new(Payload::Owned(SmallVec::new())));
                return Ok(Arc::new(self.fetch_index(extent)?));
            }
            let payload = self.view.payload(extent)?;
            let index = self.shard.index_of(&payload)?;
            opened.memory = Some(Arc::new(payload));
            return Ok(Arc::new(index));
        }
        opened.cost.path = ReadPath::Partial;
        let seen = verified_key(opened.key);
        if !self.shard.checks_itself() && cache.get::<()>(&seen).is_none() {
            opened.cost.reason = Some(UNVERIFIED);
            opened.cost.bytes_fetched = extent.len;
            if !self.dry {
                self.view.verify(extent)?;
                cache.put(seen, Arc::new(()), 0);
            }
        }
        let key = index_key(opened.key);
        if let Some(index) = cache.get::<ShardIndex>(&key) {
            return Ok(index);
        }
        let index = Arc::new(self.fetch_index(extent)?);
        let len = self.shard.index().encoded_len() as u64;
        opened.cost.bytes_fetched = opened.cost.bytes_fetched.saturating_add(len);
        if !self.dry {
            cache.put(key, Arc::clone(&index), index.memory());
        }
        Ok(index)
    }

    fn fetch_index(&self, extent: Extent) -> Result<ShardIndex> {
        let range = self.shard.index().range(extent.len)?;
        let bytes = self.view.payload_range(extent, range)?;
        self.shard.index().decode(&bytes, extent.len)
    }

    /// Turns what is wanted of a shard into units that are ready, and ranges to be fetched.
    fn plan_shard(
        &self,
        opened: Opened,
        blank: bool,
        units: &mut Units,
        ranges: &mut Ranges,
    ) -> Result<()> {
        let mut left: SmallVec<[(Range<u64>, Coords, usize); 1]> = SmallVec::new();
        for wanted in opened.wanted {
            let (coords, content) = match (wanted.state, &opened.memory) {
                (State::Kept(kept), _) => (wanted.coords, Content::Kept(kept)),
                (State::Absent, _) if blank => continue,
                (State::Absent | State::Unknown, _) => (wanted.coords, Content::Fill),
                (State::At(range), Some(bytes)) => {
                    let encoded = Encoded {
                        range: place(&range, 0)?,
                        bytes: Arc::clone(bytes),
                        key: inner_key(opened.key, wanted.number),
                        offset: opened.extent.offset.saturating_add(range.start),
                    };
                    (wanted.coords, Content::Inner(encoded))
                }
                (State::At(range), None) => {
                    left.push((range, wanted.coords, wanted.number));
                    continue;
                }
            };
            units.push(Unit { coords, content });
        }
        left.sort_unstable_by_key(|(range, ..)| range.start);
        let Fetch::Ranges(gap) = self.fetch else {
            return Ok(());
        };
        let mut open: Option<Fetched> = None;
        for (range, coords, number) in left {
            let wanted = Wanted {
                coords,
                number,
                state: State::At(range.clone()),
            };
            match &mut open {
                Some(last)
                    if range.start.saturating_sub(last.range.end) <= gap
                        && range.end.saturating_sub(last.range.start) <= RANGE_MAX =>
                {
                    last.range.end = last.range.end.max(range.end);
                    last.wanted.push(wanted);
                }
                _ => ranges.extend(open.replace(Fetched {
                    extent: opened.extent,
                    key: opened.key,
                    chunk: opened.coords.clone(),
                    range,
                    wanted: SmallVec::from_buf([wanted]),
                })),
            }
        }
        ranges.extend(open);
        Ok(())
    }

    fn fetch(&self, fetched: Fetched, units: &mut Units) -> Result<()> {
        let bytes = self
            .view
            .payload_range(fetched.extent, fetched.range.clone())
            .map_err(|e| e.in_chunk(&fetched.chunk))?;
        let bytes = Arc::new(bytes);
        let unit = |wanted: Wanted| {
            let State::At(range) = &wanted.state else {
                return Err(Error::invalid("inner chunk").expected("a place in its shard"));
            };
            let encoded = Encoded {
                bytes: Arc::clone(&bytes),
                range: place(range, fetched.range.start)?,
                key: inner_key(fetched.key, wanted.number),
                offset: fetched.extent.offset.saturating_add(range.start),
            };
            Ok(Unit {
                coords: wanted.coords,
                content: Content::Inner(encoded),
            })
        };
        for wanted in fetched.wanted {
            units.push(unit(wanted)?);
        }
        Ok(())
    }
}

impl Fetched {
    fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// A range of the shard as one of bytes in memory that begin at `base`.
fn place(range: &Range<u64>, base: u64) -> Result<Range<usize>> {
    let at = |x: u64| {
        usize::try_from(x.saturating_sub(base)).map_err(|_| Error::limit("shard").found(x))
    };
    Ok(at(range.start)?..at(range.end)?)
}

/// The inner chunks of shard `chunk` that `plan` meets, in C order: their numbers, and coordinates on their own grid.
pub(super) fn met(shard: &Shard, plan: &Plan<'_>, chunk: &[i64]) -> SmallVec<[(usize, Coords); 1]> {
    let axes: SmallVec<[SmallVec<[i64; 8]>; 8]> = (chunk.iter().zip(shard.counts()))
        .enumerate()
        .map(|(axis, (&c, &count))| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let first = c.saturating_mul(count);
            let end = first.saturating_add(count);
            let mut found = SmallVec::new();
            let Some(set) = plan.set(axis) else {
                return found;
            };
            let mut next = set.at_or_above(first);
            while let Some(x) = next.filter(|x| *x < end) {
                found.push(x);
                next = x.checked_add(1).and_then(|x| set.at_or_above(x));
            }
            found
        })
        .collect();
    let total = axes
        .iter()
        .fold(1_usize, |n, axis| n.saturating_mul(axis.len()));
    let mut all = SmallVec::with_capacity(total);
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
    while all.len() < total {
        let coords: Coords = axes
            .iter()
            .zip(&at)
            .filter_map(|(axis, &i)| axis.get(i).copied())
            .collect();
        all.push((shard.number(within(shard, &coords)), coords));
        for (i, axis) in at.iter_mut().zip(&axes).rev() {
            *i = i.saturating_add(1);
            if *i < axis.len() {
                break;
            }
            *i = 0;
        }
    }
    all
}

/// The position of an inner chunk within its shard, per axis.
pub(super) fn within<'c>(shard: &'c Shard, inner: &'c [i64]) -> impl Iterator<Item = usize> + 'c {
    inner.iter().zip(shard.counts()).map(|(&x, &count)| {
        let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        usize::try_from(x.rem_euclid(count)).unwrap_or(0)
    })
}

/// Names the chunk that `coords` of a unit means, and the inner chunk where units are inner chunks.
pub(super) fn blame(e: Error, layout: &Layout, coords: &[i64]) -> Error {
    let Some((shard, _)) = layout.sharded() else {
        return e.in_chunk(coords);
    };
    let position: SmallVec<[u64; 8]> = within(shard, coords).map(|n| n as u64).collect();
    let chunk: Coords = coords
        .iter()
        .zip(shard.counts())
        .map(|(&x, &count)| x.div_euclid(i64::try_from(count).unwrap_or(i64::MAX).max(1)))
        .collect();
    e.in_inner(&position).in_chunk(&chunk)
}
