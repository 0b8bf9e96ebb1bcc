//! What the rooms above keep of payloads, for all handles of one container, under one cap on bytes.
//!
//! Holds [`PayloadCache`] and its keys. Must not know what the kept values are: only what they cost.
//!
//! A key holds the extent and says how it was decoded, so equal keys are equal values, whatever generation asks, as long as
//! the extent's bytes do not change. When its space is reused they do, and the checksum in the key does not tell such
//! payloads apart where the pipeline ends in CRC32C, because the checksum of bytes with their own checksum behind them is
//! the same number for all. So each value carries a generation that reached its extent: while the horizon has not passed
//! that generation, nothing it reaches was written over. What an uncommitted transaction has placed is never kept.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::format::extent::Extent;
use crate::format::{Generation, ObjectId};

use super::recency::{Place, Recency};

/// What a kept value takes besides its own bytes, roughly.
const OVERHEAD: usize = 128;

/// What a kept value was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The array.
    pub(crate) owner: ObjectId,
    /// Checksum over everything in the array's document that says how payloads are decoded.
    pub(crate) form: u32,
    /// Which part of the payload; what the numbers mean is the user's.
    pub(crate) part: u32,
    offset: u64,
    len: u64,
    crc: u32,
}

impl CacheKey {
    pub(crate) fn new(owner: ObjectId, form: u32, extent: Extent, part: u32) -> Self {
        Self {
            owner,
            form,
            part,
            offset: extent.offset,
            len: extent.len,
            crc: extent.crc,
        }
    }

    /// Where the extent begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The same extent's other part.
    pub(crate) fn part(self, part: u32) -> Self {
        Self { part, ..self }
    }
}

/// What a cache of decoded chunks has done so far.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Bytes held now.
    pub bytes: u64,
    /// Chunks and inner chunks held now.
    pub entries: u64,
    /// Bytes that are never exceeded.
    pub bytes_max: u64,
    /// Look-ups that found something.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Chunks and inner chunks dropped for others.
    pub evicted: u64,
}

type Kept = Arc<dyn Any + Send + Sync>;

struct Slot {
    value: Kept,
    cost: usize,
    /// A generation that reached the extent; good while the horizon is not above it.
    seen: Generation,
    /// Where it stands in the order of use.
    place: Place,
}

#[derive(Default)]
struct State {
    slots: HashMap<CacheKey, Slot>,
    order: Recency<CacheKey>,
    bytes: usize,
    evicted: u64,
    /// The newest generation published, and its horizon.
    generation: Generation,
    horizon: Generation,
}

/// Values by key, the least used dropped first.
pub(crate) struct PayloadCache {
    state: Mutex<State>,
    bytes_max: usize,
    /// How many values are held, readable without the lock.
    held: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl PayloadCache {
    /// A cache that never holds more than `bytes_max`. Zero keeps nothing.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            bytes_max,
            held: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Says that `generation` is the newest now, and from which generation on all roots are whole. A generation that goes
    /// back takes everything with it: a failed commit's bytes will be written over.
    pub(crate) fn publish(&self, generation: Generation, horizon: Generation) {
        let mut state = self.state.lock();
        let dropped = if generation < state.generation {
            state.order = Recency::default();
            state.bytes = 0;
            self.held.store(0, Ordering::Relaxed);
            std::mem::take(&mut state.slots)
        } else {
            HashMap::new()
        };
        state.generation = generation;
        state.horizon = horizon;
        drop(state);
        drop(dropped);
    }

    /// True when a value of `cost` bytes would be kept.
    pub(crate) fn takes(&self, cost: usize) -> bool {
        cost.saturating_add(OVERHEAD) <= self.bytes_max
    }

    /// The value of `key`, for a reader whose root of generation `seen` reaches the extent.
    pub(crate) fn get<T: Any + Send + Sync>(
        &self,
        key: &CacheKey,
        seen: Generation,
    ) -> Option<Arc<T>> {
        let found = self.look(key, Some(seen));
        let counter = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The value of `key`, without a trace of the question.
    pub(crate) fn peek<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        self.look(key, None)
    }

    fn look<T: Any + Send + Sync>(
        &self,
        key: &CacheKey,
        seen: Option<Generation>,
    ) -> Option<Arc<T>> {
        if self.held.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let slot = state.slots.get(key)?;
        if slot.seen < state.horizon {
            state.remove(key);
            self.held.store(state.slots.len(), Ordering::Relaxed);
            return None;
        }
        let value = match seen {
            Some(seen) => state.touch(key, seen)?,
            None => Arc::clone(&slot.value),
        };
        drop(state);
        value.downcast().ok()
    }

    /// Keeps `value`, which takes `cost` bytes, and drops others for it where needed. The caller holds a root of generation
    /// `seen` that reaches the extent, whole until now.
    pub(crate) fn put<T: Any + Send + Sync>(
        &self,
        key: CacheKey,
        seen: Generation,
        value: Arc<T>,
        cost: usize,
    ) {
        if !self.takes(cost) {
            return;
        }
        let cost = cost.saturating_add(OVERHEAD);
        // Dropped after the lock: freeing large buffers takes its time.
        let mut dropped: Vec<Slot> = Vec::new();
        let mut state = self.state.lock();
        // A retained root may be older than the horizon; it is whole all the same, until a later one.
        let seen = seen.max(state.horizon);
        // Where the key is there already, two readers have missed at once and decoded the same, or the extent has been
        // written over since.
        dropped.extend(state.remove(&key));
        while state.bytes.saturating_add(cost) > self.bytes_max {
            match state.evict_one() {
                Some(slot) => dropped.push(slot),
                None => break,
            }
        }
        state.bytes = state.bytes.saturating_add(cost);
        let slot = Slot {
            value,
            cost,
            seen,
            place: state.order.push(key),
        };
        state.slots.insert(key, slot);
        self.held.store(state.slots.len(), Ordering::Relaxed);
        drop(state);
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        let state = self.state.lock();
        CacheStatistics {
            bytes: state.bytes as u64,
            entries: state.slots.len() as u64,
            bytes_max: self.bytes_max as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evicted: state.evicted,
        }
    }
}

impl State {
    /// The value of `key`, which becomes the most recently used one.
    fn touch(&mut self, key: &CacheKey, seen: Generation) -> Option<Kept> {
        let slot = self.slots.get_mut(key)?;
        slot.seen = slot.seen.max(seen);
        self.order.touch(slot.place);
        Some(Arc::clone(&slot.value))
    }

    fn remove(&mut self, key: &CacheKey) -> Option<Slot> {
        let slot = self.slots.remove(key)?;
        self.order.remove(slot.place);
        self.bytes = self.bytes.saturating_sub(slot.cost);
        Some(slot)
    }

    /// Removes the least recently used value; `None` when there is none.
    fn evict_one(&mut self) -> Option<Slot> {
        let key = *self.order.oldest()?;
        let slot = self.remove(&key)?;
        self.evicted = self.evicted.saturating_add(1);
        Some(slot)
    }
}

impl std::fmt::Debug for PayloadCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.statistics().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: u64, crc: u32) -> CacheKey {
        let extent = Extent {
            offset,
            len: 8,
            crc,
        };
        CacheKey::new(ObjectId(1), 7, extent, 0)
    }

    fn cache(bytes_max: usize) -> PayloadCache {
        PayloadCache::new(bytes_max)
    }

    #[test]
    fn what_no_whole_generation_is_known_to_reach_is_forgotten() {
        let cache = PayloadCache::new(1 << 20);
        cache.publish(5, 3);
        cache.put(key(8, 1), 4, Arc::new(1_u64), 8);
        cache.put(key(16, 1), 4, Arc::new(2_u64), 8);
        cache.publish(6, 4);
        assert_eq!(cache.get::<u64>(&key(8, 1), 6).as_deref(), Some(&1));
        cache.publish(7, 5);
        assert_eq!(
            cache.get::<u64>(&key(8, 1), 7).as_deref(),
            Some(&1),
            "seen at 6"
        );
        assert!(cache.get::<u64>(&key(16, 1), 7).is_none(), "seen at 4 last");
        // A retained root below the horizon: good until the horizon moves on.
        cache.put(key(24, 1), 2, Arc::new(3_u64), 8);
        assert_eq!(cache.get::<u64>(&key(24, 1), 2).as_deref(), Some(&3));
        cache.publish(8, 6);
        assert!(cache.peek::<u64>(&key(24, 1)).is_none());
        // New bytes in the place of old ones.
        cache.put(key(8, 1), 8, Arc::new(9_u64), 8);
        assert_eq!(cache.get::<u64>(&key(8, 1), 8).as_deref(), Some(&9));
        assert_eq!(cache.statistics().entries, 1);
        cache.publish(7, 5);
        assert_eq!(cache.statistics().bytes, 0, "a generation that goes back");
    }

    #[test]
    fn the_cap_is_never_exceeded_and_what_is_used_stays() {
        let cache = cache(10 * (100 + OVERHEAD));
        for i in 0..100 {
            cache.put(key(i, 0), 0, Arc::new(i), 100);
            assert_eq!(cache.get::<u64>(&key(0, 0), 0).as_deref(), Some(&0), "{i}");
            let now = cache.statistics();
            assert!(now.bytes <= now.bytes_max, "{i}");
        }
        let now = cache.statistics();
        assert_eq!((now.entries, now.evicted), (10, 90));
        cache.put(key(1000, 0), 0, Arc::new(0_u64), 10 * (100 + OVERHEAD));
        assert_eq!(
            cache.statistics().entries,
            10,
            "a value above the cap is not kept"
        );
    }

    #[test]
    fn extents_that_differ_in_anything_are_different_keys() {
        let cache = cache(1 << 20);
        cache.put(key(8, 1), 0, Arc::new(1_u64), 8);
        assert_eq!(cache.get::<u64>(&key(8, 1), 0).as_deref(), Some(&1));
        assert!(cache.get::<u64>(&key(8, 2), 0).is_none());
        assert!(cache.get::<u64>(&key(16, 1), 0).is_none());
        assert!(cache.get::<u64>(&key(8, 1).part(1), 0).is_none());
        let other = CacheKey {
            owner: ObjectId(2),
            ..key(8, 1)
        };
        assert!(cache.get::<u64>(&other, 0).is_none());
        assert_eq!(cache.statistics().hits, 1);
        assert_eq!(cache.statistics().misses, 4);
    }

    #[test]
    fn no_bytes_keep_nothing() {
        let cache = PayloadCache::new(0);
        cache.put(key(8, 1), 0, Arc::new(1_u64), 0);
        assert!(cache.get::<u64>(&key(8, 1), 0).is_none());
        assert!(!cache.takes(0));
    }
}
