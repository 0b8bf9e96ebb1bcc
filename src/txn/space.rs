//! Which bytes of the file a writer may write to. Spec: `format-spec/12-space.md`.
//!
//! Holds [`Space`]: the map of live bytes by unit, the free runs that follow from it, and what waits for the horizon.
//! Derived, never stored. Must not do I/O, and must not know who pins or retains what: callers say.
//!
//! Invariants: a unit is in a free run only when no counted byte touches it; an extent is counted once, from the moment it
//! is reachable until the horizon has passed the generation that freed it; a saturated counter is never free again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::format::{ALIGN, BLOCK, DATA_START, Generation};

/// Files longer than this are counted in larger units.
const LARGE_FILE: u64 = 64 << 30;
const SMALL_UNIT_LOG2: u32 = 12;
const LARGE_UNIT_LOG2: u32 = 16;
/// The end of a file grows by this much at most before free runs are looked for again.
const GROWTH_MAX: u64 = 1 << 20;
/// A map has no more units than this: 256 MiB of counters, for 8 TiB.
const UNITS_MAX: u64 = 1 << 27;
/// Classes of run lengths: one for each power of two.
const CLASSES: usize = 64;
/// Runs of one class that are looked at.
const LOOKS: usize = 32;
/// Locks live from here on; no data may reach them.
const END_MAX: u64 = 1 << 62;

/// What a writer knows about the bytes of its file.
#[derive(Debug)]
pub(super) struct Space {
    /// Everything from here on is free; a multiple of the unit.
    end: u64,
    /// No more than this many bytes.
    max: u64,
    /// None: nothing below the end is known to be free.
    map: Option<Map>,
}

/// The map of live bytes.
#[derive(Debug)]
struct Map {
    unit_log2: u32,
    /// Multiples of [`ALIGN`] in use, by unit.
    live: Vec<u16>,
    /// Free runs by first unit, with their number of units; no two touch.
    runs: BTreeMap<u64, u64>,
    /// The same by length.
    by_len: BTreeSet<(u64, u64)>,
    /// First units by the length's binary logarithm: to find an early run that is long enough without a search.
    by_class: [BTreeSet<u64>; CLASSES],
    /// No runs have been made yet: what was free when the map was made was freed at this generation or before.
    unfound: Option<Generation>,
    /// Freed and not yet behind the horizon, by the generation that freed it.
    queue: VecDeque<(Generation, Vec<Extent>)>,
}

/// Which run suits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The first, or nearly: what is left free gathers towards the end, in long runs. Measured with random overwrites and with
    /// a rolling window: the longest run first 1.82 and 1.18 times what lives, the closest fit 1.38 and 1.37, the next one
    /// after the last 1.47 and 1.31, the first 1.40 and 1.21.
    First,
    /// The shortest that is long enough: nodes are small and fill what payloads leave.
    Closest,
}

impl Space {
    /// Space in which only what lies behind `end` is free.
    pub(super) fn new(end: u64, max: u64) -> Self {
        Self {
            end: end.max(DATA_START).next_multiple_of(BLOCK),
            max,
            map: None,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.map.is_some()
    }

    /// Starts a map in which nothing below the end is live, to be filled with [`Space::add`]. Units that stay without a live
    /// byte were freed at `unfound` at the latest, and become free runs when the horizon passes that generation.
    ///
    /// # Errors
    /// `LimitExceeded` for a file so long that its map would be.
    pub(super) fn start_map(&mut self, unfound: Generation) -> Result<()> {
        let unit_log2 = if self.end > LARGE_FILE {
            LARGE_UNIT_LOG2
        } else {
            SMALL_UNIT_LOG2
        };
        // A length may be a hole's, and must not size the map on its own word.
        if self.end >> unit_log2 > UNITS_MAX {
            return Err(Error::limit("map of free space")
                .expected(format_args!("at most {UNITS_MAX} units"))
                .found(self.end >> unit_log2));
        }
        self.end = self.end.next_multiple_of(1 << unit_log2);
        let mut map = Map {
            unit_log2,
            live: Vec::new(),
            runs: BTreeMap::new(),
            by_len: BTreeSet::new(),
            by_class: std::array::from_fn(|_| BTreeSet::new()),
            unfound: Some(unfound),
            queue: VecDeque::new(),
        };
        map.reach(self.end);
        // Header and slots are nobody's extents and never free.
        for unit in 0..map.unit_of(DATA_START.saturating_sub(1)).saturating_add(1) {
            map.saturate(unit);
        }
        self.map = Some(map);
        Ok(())
    }

    /// Forgets the map: from now on only the end grows.
    pub(super) fn drop_map(&mut self) {
        self.map = None;
    }

    /// Counts an extent as live.
    pub(super) fn add(&mut self, extent: &Extent) {
        if let Some(map) = &mut self.map {
            map.add(extent);
        }
    }

    /// Notes what the commit of `freed_at` has freed.
    pub(super) fn enqueue(&mut self, freed_at: Generation, extents: Vec<Extent>) {
        if let Some(map) = &mut self.map
            && !extents.is_empty()
        {
            map.queue.push_back((freed_at, extents));
        }
    }

    /// Makes free what was freed up to `horizon`, and hands each extent to `forget` before its bytes can be written over.
    pub(super) fn pass(&mut self, horizon: Generation, forget: &mut dyn FnMut(&Extent)) {
        let end = self.end;
        let Some(map) = &mut self.map else { return };
        if map.unfound.is_some_and(|f| f <= horizon) {
            map.unfound = None;
            map.free_range(0..end);
        }
        while map.queue.front().is_some_and(|(f, _)| *f <= horizon) {
            let Some((_, extents)) = map.queue.pop_front() else {
                return;
            };
            for extent in &extents {
                forget(extent);
                map.subtract(extent);
            }
        }
    }

    /// Free bytes below the end, and bytes that wait for the horizon.
    pub(super) fn reusable(&self) -> (u64, u64) {
        let Some(map) = &self.map else { return (0, 0) };
        let units: u64 = map.runs.values().sum();
        let waiting = map.queue.iter().flat_map(|(_, extents)| extents);
        (
            units << map.unit_log2,
            waiting.map(|e| e.len).fold(0, u64::saturating_add),
        )
    }

    /// The longest free run in bytes.
    pub(super) fn longest_run(&self) -> u64 {
        let map = self.map.as_ref();
        let longest = map.and_then(|m| m.by_len.last().map(|(len, _)| len << m.unit_log2));
        longest.unwrap_or(0)
    }

    /// Takes a free run of at least `len` bytes out of the map, or grows the end.
    ///
    /// # Errors
    /// `FileFull` and `LimitExceeded` when the end may not grow so far.
    pub(super) fn take(&mut self, len: u64, fit: Fit) -> Result<Range<u64>> {
        if let Some(map) = &mut self.map
            && let Some(run) = map.take(len, fit)
        {
            return Ok(run);
        }
        self.grow(len)
    }

    /// Takes the end, from the free run before it on if there is one.
    fn grow(&mut self, len: u64) -> Result<Range<u64>> {
        let start = match &mut self.map {
            Some(map) => map.take_last(self.end).unwrap_or(self.end),
            None => self.end,
        };
        let unit = self.unit();
        // A sixteenth of the file at most: a small file must not grow by a megabyte for one more commit.
        let step = (self.end >> 4).min(GROWTH_MAX);
        let wanted = self.end.saturating_sub(start).saturating_add(step);
        let end = start
            .checked_add(len.max(wanted))
            .and_then(|end| end.checked_next_multiple_of(unit))
            .filter(|end| *end < END_MAX);
        let Some(end) = end else {
            return Err(Error::limit("container length").expected("less than 2^62 bytes"));
        };
        let needed = start.saturating_add(len);
        if needed > self.max {
            self.give_back(start..self.end);
            return Err(Error::file_full("the container")
                .expected(format_args!("at most {} bytes", self.max))
                .found(needed)
                .help("erase and commit, drop snapshots, end long readers (`orthant stat` names them), or allow more"));
        }
        self.end = self.end.max(end);
        if let Some(map) = &mut self.map {
            map.reach(self.end);
        }
        Ok(start..end)
    }

    fn unit(&self) -> u64 {
        self.map.as_ref().map_or(BLOCK, |map| 1 << map.unit_log2)
    }

    /// The first byte at or after `at` that a commit may begin to write from.
    pub(super) fn round_up(&self, at: u64) -> u64 {
        at.next_multiple_of(self.unit())
    }

    /// Returns blocks that were taken and not written to.
    pub(super) fn return_unused(&mut self, unused: Range<u64>) {
        if unused.end == self.end {
            self.end = unused.start;
        } else if let Some(map) = &mut self.map {
            let first = map.unit_of(unused.start);
            let count = map.unit_of(unused.end).saturating_sub(first);
            if count > 0 {
                map.insert(first, count);
            }
        }
    }

    /// Returns what was taken; units without a live byte are free again, and the end falls back where it was grown.
    pub(super) fn give_back(&mut self, taken: Range<u64>) {
        let start = self.round_up(taken.start);
        let Some(map) = &mut self.map else {
            // Only the end was taken.
            if taken.end == self.end && start < taken.end {
                self.end = start;
            }
            return;
        };
        if start >= taken.end {
            return;
        }
        if taken.end == self.end {
            let mut free_from = self.end;
            while free_from > start && map.is_free_before(free_from) {
                free_from = free_from.saturating_sub(1 << map.unit_log2);
            }
            self.end = free_from;
            map.free_range(start..free_from);
        } else {
            map.free_range(start..taken.end);
        }
    }
}

impl Map {
    fn unit_of(&self, at: u64) -> u64 {
        at >> self.unit_log2
    }

    /// Makes room for counters up to the byte `end`.
    fn reach(&mut self, end: u64) {
        let units = end.div_ceil(1 << self.unit_log2);
        let units = usize::try_from(units).unwrap_or(usize::MAX);
        if self.live.len() < units {
            self.live.resize(units, 0);
        }
    }

    fn counter(&mut self, unit: u64) -> Option<&mut u16> {
        self.live.get_mut(usize::try_from(unit).ok()?)
    }

    fn saturate(&mut self, unit: u64) {
        if let Some(counter) = self.counter(unit) {
            *counter = u16::MAX;
        }
    }

    fn is_free(&self, unit: u64) -> bool {
        let at = usize::try_from(unit).ok();
        at.and_then(|at| self.live.get(at)) == Some(&0)
    }

    fn is_free_before(&self, at: u64) -> bool {
        let unit = self.unit_of(at).checked_sub(1);
        unit.is_some_and(|unit| self.is_free(unit))
    }

    /// Calls `each` with every unit that the extent touches and how many multiples of the alignment it has there.
    fn parts(&self, extent: &Extent) -> impl Iterator<Item = (u64, u16)> + use<> {
        let unit_log2 = self.unit_log2;
        let start = extent.offset;
        let end = start
            .saturating_add(extent.len)
            .checked_next_multiple_of(ALIGN)
            .unwrap_or(u64::MAX);
        let first = start >> unit_log2;
        let last = end.saturating_sub(1) >> unit_log2;
        (first..=last).map(move |unit| {
            let lower = start.max(unit << unit_log2);
            let upper = end.min(unit.saturating_add(1) << unit_log2);
            let count = upper.saturating_sub(lower).div_ceil(ALIGN);
            (unit, u16::try_from(count).unwrap_or(u16::MAX))
        })
    }

    fn add(&mut self, extent: &Extent) {
        self.reach(extent.offset.saturating_add(extent.len));
        for (unit, count) in self.parts(extent) {
            if let Some(counter) = self.counter(unit) {
                *counter = counter.saturating_add(count);
            }
        }
    }

    fn subtract(&mut self, extent: &Extent) {
        for (unit, count) in self.parts(extent) {
            let Some(counter) = self.counter(unit) else {
                continue;
            };
            // What is saturated has lost count, and what would fall below nothing was never counted: neither is free.
            *counter = match counter.checked_sub(count) {
                Some(rest) if *counter != u16::MAX => rest,
                _ => u16::MAX,
            };
            if *counter == 0 {
                self.insert(unit, 1);
            }
        }
    }

    /// Makes free runs of the units in `range` that have no live byte.
    fn free_range(&mut self, range: Range<u64>) {
        let last = self.unit_of(range.end);
        let mut unit = self.unit_of(range.start);
        while unit < last {
            let from = unit;
            while unit < last && self.is_free(unit) {
                unit = unit.saturating_add(1);
            }
            if unit > from {
                self.insert(from, unit.saturating_sub(from));
            } else {
                unit = unit.saturating_add(1);
            }
        }
    }

    /// Adds a run of free units, joined with its neighbours.
    fn insert(&mut self, mut first: u64, mut count: u64) {
        if let Some((&before, &len)) = self.runs.range(..=first).next_back() {
            let end = before.saturating_add(len);
            if end >= first {
                self.remove(before, len);
                count = count.max(end.saturating_sub(first));
                count = count.saturating_add(first.saturating_sub(before));
                first = before;
            }
        }
        loop {
            let end = first.saturating_add(count);
            let Some((&next, &len)) = self.runs.range(first..=end).next() else {
                break;
            };
            self.remove(next, len);
            count = next.saturating_add(len).max(end).saturating_sub(first);
        }
        self.runs.insert(first, count);
        self.by_len.insert((count, first));
        if let Some(class) = self.by_class.get_mut(class(count)) {
            class.insert(first);
        }
    }

    fn remove(&mut self, first: u64, count: u64) {
        self.runs.remove(&first);
        self.by_len.remove(&(count, first));
        if let Some(class) = self.by_class.get_mut(class(count)) {
            class.remove(&first);
        }
    }

    /// The first run of at least `needed` units, as far as a few looks tell: of the class that `needed` is in, only the
    /// first runs are looked at.
    fn first_fit(&self, needed: u64) -> Option<(u64, u64)> {
        let own = class(needed);
        let len = |first: &u64| self.runs.get(first).map(|count| (*count, *first));
        let near = self.by_class.get(own)?.iter().take(LOOKS).filter_map(len);
        let near = near
            .filter(|(count, _)| *count >= needed)
            .map(|r| r.1)
            .next();
        let longer = self.by_class.get(own.saturating_add(1)..)?;
        let first = longer.iter().filter_map(BTreeSet::first).copied();
        let found = first.chain(near).min();
        match found {
            Some(first) => len(&first),
            // Not among the first of its class, and there is nothing longer.
            None => self.by_len.range((needed, 0)..).next().copied(),
        }
    }

    fn take(&mut self, len: u64, fit: Fit) -> Option<Range<u64>> {
        let needed = len.div_ceil(1 << self.unit_log2);
        let (count, first) = match fit {
            Fit::First => self.first_fit(needed)?,
            Fit::Closest => self.by_len.range((needed, 0)..).next().copied()?,
        };
        self.remove(first, count);
        let start = first << self.unit_log2;
        Some(start..start.saturating_add(count << self.unit_log2))
    }

    /// Takes the run that ends at the byte `end`, and gives its first byte.
    fn take_last(&mut self, end: u64) -> Option<u64> {
        let (&first, &count) = self.runs.last_key_value()?;
        if first.saturating_add(count) << self.unit_log2 != end {
            return None;
        }
        self.remove(first, count);
        Some(first << self.unit_log2)
    }
}

/// The binary logarithm of a run's length.
fn class(count: u64) -> usize {
    usize::try_from(count.max(1).ilog2()).unwrap_or(CLASSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64) -> Extent {
        Extent {
            offset,
            len,
            crc: 0,
        }
    }

    fn mapped(end: u64) -> Space {
        let mut space = Space::new(end, u64::MAX);
        space.start_map(0).unwrap();
        space
    }

    #[test]
    fn what_no_extent_touches_is_free_and_header_and_slots_never_are() {
        let mut space = mapped(0x9000);
        space.add(&extent(0x4008, 8));
        space.add(&extent(0x6FF8, 16));
        space.pass(0, &mut |_| {});
        assert_eq!(space.reusable(), (0x3000, 0));
        assert_eq!(space.take(1, Fit::Closest).unwrap(), 0x3000..0x4000);
        assert_eq!(space.take(1, Fit::Closest).unwrap(), 0x5000..0x6000);
        assert_eq!(space.take(1, Fit::Closest).unwrap(), 0x8000..0x9000);
        assert_eq!(space.take(1, Fit::Closest).unwrap().start, 0x9000);
    }

    #[test]
    fn a_unit_is_free_when_the_last_extent_on_it_is_behind_the_horizon() {
        let mut space = mapped(0x5000);
        let (a, b) = (extent(0x4000, 100), extent(0x4068, 50));
        for e in [extent(0x3000, 8), a, b] {
            space.add(&e);
        }
        space.pass(0, &mut |_| {});
        space.enqueue(5, vec![a]);
        space.enqueue(7, vec![b]);
        let mut forgotten = Vec::new();
        space.pass(4, &mut |e| forgotten.push(*e));
        assert!(forgotten.is_empty());
        space.pass(6, &mut |e| forgotten.push(*e));
        assert_eq!(space.reusable().0, 0);
        space.pass(7, &mut |e| forgotten.push(*e));
        assert_eq!(forgotten, [a, b]);
        assert_eq!(space.take(4096, Fit::First).unwrap(), 0x4000..0x5000);
    }

    #[test]
    fn a_saturated_or_miscounted_unit_is_never_free() {
        let mut space = mapped(0x5000);
        space.add(&extent(0x3000, 8));
        // Extents that overlap, as only a forged file has them.
        for _ in 0..200 {
            space.add(&extent(0x4000, 4096));
        }
        space.pass(0, &mut |_| {});
        for f in 0..200 {
            space.enqueue(f, vec![extent(0x4000, 4096)]);
        }
        space.enqueue(300, vec![extent(0x3000, 16)]);
        space.pass(400, &mut |_| {});
        assert_eq!(space.reusable().0, 0);
    }

    #[test]
    fn what_is_given_back_is_free_where_nothing_lives_and_the_end_falls_back() {
        let mut space = mapped(0x4000);
        space.add(&extent(0x3000, 8));
        space.pass(0, &mut |_| {});
        let run = space.take(0x3000, Fit::First).unwrap();
        assert_eq!(run.start, 0x4000);
        space.add(&extent(0x4000, 100));
        space.add(&extent(0x6000, 1));
        space.give_back(run);
        assert_eq!(space.reusable().0, 0x1000);
        assert_eq!(space.take(8, Fit::Closest).unwrap(), 0x5000..0x6000);
        assert_eq!(space.take(8, Fit::Closest).unwrap().start, 0x7000);
    }

    #[test]
    fn growing_takes_the_free_run_at_the_end_first() {
        let mut space = mapped(0x6000);
        space.add(&extent(0x3000, 0x1000));
        space.pass(0, &mut |_| {});
        let run = space.take(0x4000, Fit::First).unwrap();
        assert_eq!(run, 0x4000..0x8000);
    }

    #[test]
    fn the_end_stops_at_the_most_that_is_allowed() {
        let mut space = Space::new(0x4000, 0x6000);
        assert_eq!(space.take(0x2000, Fit::First).unwrap(), 0x4000..0x6000);
        let e = space.take(1, Fit::First).unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::FileFull);
        space.give_back(0x5000..0x6000);
        assert_eq!(space.take(1, Fit::First).unwrap().start, 0x5000);
    }

    #[test]
    fn runs_are_those_of_a_plain_list_of_units() {
        let mut space = mapped(0x3000 + 64 * 0x1000);
        let map = space.map.as_mut().unwrap();
        let mut model = BTreeSet::new();
        let mut seed = 7_u64;
        for _ in 0..2000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (first, count) = ((seed >> 33) % 64, (seed >> 50) % 3 + 1);
            if seed >> 62 == 0 {
                if let Some(run) = map.take(count << 12, Fit::Closest) {
                    for unit in run.start >> 12..run.end >> 12 {
                        assert!(model.remove(&unit));
                    }
                }
            } else {
                map.insert(first, count);
                model.extend(first..first + count);
            }
            let units: BTreeSet<u64> = map
                .runs
                .iter()
                .flat_map(|(first, count)| *first..first + count)
                .collect();
            assert_eq!(units, model);
            assert_eq!(map.runs.len(), map.by_len.len());
            let ends: Vec<_> = map.runs.iter().map(|(f, c)| (*f, f + c)).collect();
            assert!(ends.windows(2).all(|w| w[0].1 < w[1].0), "{ends:?}");
        }
    }
}
