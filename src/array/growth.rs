//! Changing an array's domain: growing, cutting, rolling, moving.
//!
//! Holds [`reshape`], which every such operation is. A grow is metadata; a shrink pays: chunks outside lose their entry,
//! chunks cut by an edge are reset to fill outside it, in the same transaction step. So the elements of every stored chunk
//! outside the domain are fill, and old data can never return. Work follows the chunks stored in the strips that change,
//! never the domain. Spec: `format-spec/11-coordinates.md`.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::error::Result;
use crate::format::ObjectId;
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Domain, Picked};
use crate::txn::{Change, Key, Value, View};

use super::element::Elements;
use super::layout::Layout;
use super::parallel;
use super::receipt::{ShrinkReceipt, WriteReceipt};
use super::scan::{self, Entry};
use super::shard_edit::{self, Change as InnerChange, OldShard, Part};
use super::write::{self, Content, Guard};

/// Straddling chunks that are decoded and encoded before the next ones are looked up.
const BATCH: usize = 64;

/// A new domain for an array, and a slab to be written in it.
pub(crate) struct Reshape<'a> {
    pub(crate) view: &'a View,
    pub(crate) id: ObjectId,
    /// The array as it is.
    pub(crate) old: &'a Layout,
    /// The array as it will be: same grid, another domain.
    pub(crate) new: &'a Layout,
    /// The new document's entry.
    pub(crate) document: Value,
    /// Elements of the new domain that are written with it.
    pub(crate) slab: Option<(&'a Picked, &'a Content<'a>)>,
}

/// Gives the array its new domain, drops and scrubs what is cut, writes the slab, and stages all of it at once.
///
/// The answer is `None`, and nothing is staged, where another thread has changed the array meanwhile.
pub(crate) fn reshape(
    r: &Reshape<'_>,
    guard: &Guard<'_>,
) -> Result<Option<(ShrinkReceipt, WriteReceipt)>> {
    let writer = r.view.writer()?;
    let _hold = writer.hold();
    let mut cut = Cut::default();
    r.shrink(&mut cut)?;
    r.drop_hidden(&mut cut)?;
    let written = match r.slab {
        Some((picked, content)) => {
            write::prepare(r.view, r.id, r.new, picked, content, &cut.changes)?
        }
        None => write::Staged::default(),
    };
    // A chunk that was scrubbed and then merged by the slab was read once, by the scrub.
    let merged = written
        .merged
        .iter()
        .filter_map(|(i, old)| written.changes.get(*i).map(|c| (&c.0, old.as_ref())));
    let merged = merged.filter(|(key, _)| !cut.changes.contains_key(*key));
    let seen = cut.seen.iter().map(|(key, old)| (key, Some(old)));
    let expected = std::iter::once(guard.expectation())
        .chain(seen)
        .chain(merged);
    let cuts: Vec<Change> = cut
        .changes
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let document: Change = (guard.document.0.clone(), Some(r.document.clone()));
    match writer.stage_if(
        expected,
        cuts.iter()
            .chain(&written.changes)
            .chain(std::iter::once(&document)),
    ) {
        Ok(()) => Ok(Some((cut.receipt, written.receipt))),
        Err(_) => Ok(None),
    }
}

/// What is left of a chunk when fill lies outside the domain.
enum Scrubbed {
    /// It was so already.
    Clean,
    /// Nothing but fill.
    Empty,
    /// The payload to store instead, and how many chunks or inner chunks of it were encoded anew.
    Encoded(Vec<u8>, u64),
}

/// What a shrink does to stored chunks.
#[derive(Default)]
struct Cut {
    changes: BTreeMap<Key, Option<Value>>,
    /// The entries it was decided on.
    seen: Vec<(Key, Value)>,
    receipt: ShrinkReceipt,
}

impl Reshape<'_> {
    /// Drops chunks wholly outside what old and new domain share, scrubs those that its edges cut.
    fn shrink(&self, cut: &mut Cut) -> Result<()> {
        let keep = self.old.domain.intersection(&self.new.domain);
        let grid = &self.old.chunk.grid;
        let mut sets: SmallVec<[AxisSet; 8]> = SmallVec::new();
        for (axis, &(lo, hi)) in self.old.domain.bounds().iter().enumerate() {
            let (first, end) = grid.chunks_of(axis, lo, hi);
            sets.push(AxisSet::Range(first, end));
        }
        if self.old.domain.is_empty() {
            return Ok(());
        }
        if keep.is_empty() {
            return self.scan_strip(&sets, &keep, cut);
        }
        for axis in 0..sets.len() {
            let Some(&AxisSet::Range(first, end)) = sets.get(axis) else {
                continue;
            };
            let (Some(keep_range), Some(old)) = (keep.range(axis), self.old.domain.range(axis))
            else {
                continue;
            };
            // The chunks that no edge cuts on this axis.
            let lower = if keep_range.start > old.start {
                let unaligned = grid.offset_at(axis, keep_range.start) != 0;
                grid.chunk_at(axis, keep_range.start)
                    .saturating_add(i64::from(unaligned))
                    .min(end)
            } else {
                first
            };
            let upper = if keep_range.end < old.end {
                grid.chunk_at(axis, keep_range.end)
            } else {
                end
            };
            let upper = upper.clamp(lower, end);
            for strip in [AxisSet::Range(first, lower), AxisSet::Range(upper, end)] {
                if strip.len() > 0 {
                    let mut strips = sets.clone();
                    if let Some(slot) = strips.get_mut(axis) {
                        *slot = strip;
                    }
                    self.scan_strip(&strips, &keep, cut)?;
                }
            }
            if let Some(slot) = sets.get_mut(axis) {
                *slot = AxisSet::Range(lower, upper);
            }
        }
        Ok(())
    }

    fn scan_strip(&self, sets: &[AxisSet], keep: &Domain, cut: &mut Cut) -> Result<()> {
        let sets: SmallVec<[&AxisSet; 8]> = sets.iter().collect();
        let mut batch: Vec<Entry> = Vec::new();
        scan::each_stored(self.view, self.id, self.old.key_order(), &sets, |entry| {
            if self.old.chunk.grid.meets(&entry.coords, keep) {
                batch.push(entry);
            } else {
                let key = key::chunk(self.id, &entry.coords, self.old.key_order());
                cut.seen.push((key.clone(), entry.value));
                cut.changes.insert(key, None);
                cut.receipt.dropped = cut.receipt.dropped.saturating_add(1);
            }
            if batch.len() >= BATCH {
                self.scrub(std::mem::take(&mut batch), keep, cut)
            } else {
                Ok(())
            }
        })?;
        self.scrub(batch, keep, cut)
    }

    fn scrub(&self, batch: Vec<Entry>, keep: &Domain, cut: &mut Cut) -> Result<()> {
        let encoded = parallel::map(batch, |entry| {
            let bytes = self
                .scrubbed(&entry, keep)
                .map_err(|e| e.in_chunk(&entry.coords))?;
            Ok((entry, bytes))
        })?;
        for (entry, scrubbed) in encoded {
            let value = match scrubbed {
                Scrubbed::Clean => continue,
                Scrubbed::Encoded(bytes, recoded) => {
                    cut.receipt.recoded = cut.receipt.recoded.saturating_add(recoded);
                    let extent = self
                        .view
                        .writer()?
                        .append(&bytes, self.old.payload_align())?;
                    cut.receipt.bytes_written =
                        cut.receipt.bytes_written.saturating_add(extent.len);
                    cut.receipt.scrubbed = cut.receipt.scrubbed.saturating_add(1);
                    Some(ChunkRecord::Stored { extent, mask: 0 }.encode())
                }
                Scrubbed::Empty => {
                    cut.receipt.dropped = cut.receipt.dropped.saturating_add(1);
                    None
                }
            };
            let key = key::chunk(self.id, &entry.coords, self.old.key_order());
            cut.seen.push((key.clone(), entry.value));
            cut.changes.insert(key, value);
        }
        Ok(())
    }

    /// The chunk with fill outside `keep`.
    fn scrubbed(&self, entry: &Entry, keep: &Domain) -> Result<Scrubbed> {
        let record = entry.record()?;
        if record == ChunkRecord::Fill {
            return Ok(Scrubbed::Clean);
        }
        if self.old.sharded().is_some() {
            return self.scrubbed_shard(entry, &record, keep);
        }
        let mut elements = Elements::load(self.old, self.view, &record)?;
        let tile = &self.old.chunk;
        let part = tile.grid.covered(&entry.coords, keep);
        if !elements.scrub(tile, &entry.coords, &part)? {
            return Ok(Scrubbed::Clean);
        }
        if elements.is_fill(&tile.fill) {
            return Ok(Scrubbed::Empty);
        }
        let mut bytes = Vec::new();
        elements.encode(tile, &mut bytes)?;
        Ok(Scrubbed::Encoded(bytes, 1))
    }

    /// The shard without the inner chunks outside `keep`; only those that its edges cut are decoded.
    fn scrubbed_shard(
        &self,
        entry: &Entry,
        record: &ChunkRecord,
        keep: &Domain,
    ) -> Result<Scrubbed> {
        let Some((shard, tile)) = self.old.sharded() else {
            return Ok(Scrubbed::Clean);
        };
        let old = OldShard::open(self.view, self.old, Some(record))?;
        let mut cut = shard_edit::all_inner(shard, &entry.coords);
        cut.retain(|(_, inner)| !tile.grid.is_inside(inner, keep));
        let edited = shard_edit::edit(self.old, &old, cut, |number, inner| {
            let unchanged = |decoded| InnerChange {
                part: Part::Kept,
                decoded,
            };
            if !old.has(self.old, number)? {
                return Ok(unchanged(false));
            }
            let part = tile.grid.covered(inner, keep);
            if part.is_empty() {
                return Ok(InnerChange {
                    part: Part::Absent,
                    decoded: false,
                });
            }
            let (mut elements, decoded) = old.elements(self.old, number)?;
            if !elements.scrub(tile, inner, &part)? {
                return Ok(unchanged(decoded));
            }
            let part = if elements.is_fill(&tile.fill) {
                Part::Absent
            } else {
                let mut bytes = Vec::new();
                elements.encode(tile, &mut bytes)?;
                Part::New(bytes)
            };
            Ok(InnerChange { part, decoded })
        })?;
        Ok(match edited.payload {
            _ if !edited.changed => Scrubbed::Clean,
            Some(bytes) => Scrubbed::Encoded(bytes, edited.encoded),
            None => Scrubbed::Empty,
        })
    }

    /// Removes entries wholly outside the old domain that the new one would show: only a forged file has them.
    fn drop_hidden(&self, cut: &mut Cut) -> Result<()> {
        if self.old.domain.encloses(&self.new.domain) {
            return Ok(());
        }
        let grid = &self.new.chunk.grid;
        let range = |d: &Domain, axis: usize| {
            let r = d.range(axis).unwrap_or(0..0);
            grid.chunks_of(axis, r.start, r.end)
        };
        let rank = grid.rank();
        let mut sets: SmallVec<[AxisSet; 8]> = (0..rank)
            .map(|axis| range(&self.new.domain, axis))
            .map(|(a, b)| AxisSet::Range(a, b))
            .collect();
        for axis in 0..rank {
            let (first, end) = range(&self.new.domain, axis);
            let (old_first, old_end) = if self.old.domain.is_empty() {
                (end, end)
            } else {
                range(&self.old.domain, axis)
            };
            let (lower, upper) = (old_first.clamp(first, end), old_end.clamp(first, end));
            for strip in [
                AxisSet::Range(first, lower),
                AxisSet::Range(upper.max(lower), end),
            ] {
                if strip.len() == 0 {
                    continue;
                }
                let mut strips = sets.clone();
                if let Some(slot) = strips.get_mut(axis) {
                    *slot = strip;
                }
                let strips: SmallVec<[&AxisSet; 8]> = strips.iter().collect();
                scan::each_stored(self.view, self.id, self.new.key_order(), &strips, |entry| {
                    let key = key::chunk(self.id, &entry.coords, self.new.key_order());
                    cut.seen.push((key.clone(), entry.value));
                    cut.changes.insert(key, None);
                    Ok(())
                })?;
            }
            if let Some(slot) = sets.get_mut(axis) {
                *slot = AxisSet::Range(lower, upper.max(lower));
            }
        }
        Ok(())
    }
}
