//! What the rooms above keep of payloads, for all handles of one container, under one cap on bytes.
//!
//! Holds [`PayloadCache`] and its keys. Must not know what the kept values are: only what they cost.
//!
//! A key holds the extent and says how it was decoded, so equal keys are equal values, whatever generation asks: a snapshot
//! finds nothing but what its own extents hold. That rests on bytes that do not change. So only committed extents are
//! kept: behind the committed end an aborted writer's places are taken again, and the checksum in the key does not tell
//! such payloads apart where the pipeline ends in CRC32C, because the checksum of bytes with their own checksum behind
//! them is the same number for all.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::format::ObjectId;
use crate::format::extent::Extent;

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

    /// The exclusive end of the extent.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
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
    /// When it was last asked for, or put in.
    turn: u64,
}

#[derive(Default)]
struct State {
    slots: HashMap<CacheKey, Slot>,
    /// Keys by the turn of their value, the least recently used first.
    order: BTreeMap<u64, CacheKey>,
    /// The next turn.
    turn: u64,
    bytes: usize,
    evicted: u64,
    /// Nothing that ends behind this is kept.
    committed_end: u64,
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
    /// A cache that never holds more than `bytes_max`. Zero keeps nothing, and so does a cache whose committed end nobody
    /// has told.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            bytes_max,
            held: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Says where the committed bytes end now. An end that moves back takes everything with it: a failed commit's bytes
    /// will be written over.
    pub(crate) fn commit_to(&self, end: u64) {
        let mut state = self.state.lock();
        let dropped = if end < state.committed_end {
            state.order.clear();
            state.bytes = 0;
            self.held.store(0, Ordering::Relaxed);
            std::mem::take(&mut state.slots)
        } else {
            HashMap::new()
        };
        state.committed_end = end;
        drop(state);
        drop(dropped);
    }

    /// True when a value of `cost` bytes would be kept.
    pub(crate) fn takes(&self, cost: usize) -> bool {
        cost.saturating_add(OVERHEAD) <= self.bytes_max
    }

    /// The value of `key`.
    pub(crate) fn get<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        let found = self.look(key, true);
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
        self.look(key, false)
    }

    fn look<T: Any + Send + Sync>(&self, key: &CacheKey, mark: bool) -> Option<Arc<T>> {
        if self.held.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let value = if mark {
            state.touch(key)?
        } else {
            Arc::clone(&state.slots.get(key)?.value)
        };
        drop(state);
        value.downcast().ok()
    }

    /// Keeps `value`, which takes `cost` bytes, and drops others for it where needed.
    pub(crate) fn put<T: Any + Send + Sync>(&self, key: CacheKey, value: Arc<T>, cost: usize) {
        if !self.takes(cost) {
            return;
        }
        let cost = cost.saturating_add(OVERHEAD);
        // Dropped after the lock: freeing large buffers takes its time.
        let mut dropped: Vec<Slot> = Vec::new();
        let mut state = self.state.lock();
        // Where the key is there already, two readers have missed at once and decoded the same.
        if key.end() > state.committed_end || state.slots.contains_key(&key) {
            return;
        }
        while state.bytes.saturating_add(cost) > self.bytes_max {
            match state.evict_one() {
                Some(slot) => dropped.push(slot),
                None => break,
            }
        }
        state.bytes = state.bytes.saturating_add(cost);
        let turn = state.next_turn();
        state.slots.insert(key, Slot { value, cost, turn });
        state.order.insert(turn, key);
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
    fn next_turn(&mut self) -> u64 {
        let turn = self.turn;
        self.turn = turn.saturating_add(1);
        turn
    }

    /// The value of `key`, which becomes the most recently used one.
    fn touch(&mut self, key: &CacheKey) -> Option<Kept> {
        let turn = self.next_turn();
        let slot = self.slots.get_mut(key)?;
        let before = std::mem::replace(&mut slot.turn, turn);
        let value = Arc::clone(&slot.value);
        self.order.remove(&before);
        self.order.insert(turn, *key);
        Some(value)
    }

    /// Removes the least recently used value; `None` when there is none.
    fn evict_one(&mut self) -> Option<Slot> {
        let (_, key) = self.order.pop_first()?;
        let slot = self.slots.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(slot.cost);
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
        let cache = PayloadCache::new(bytes_max);
        cache.commit_to(u64::MAX);
        cache
    }

    #[test]
    fn nothing_behind_the_committed_end_is_kept_and_a_lower_end_forgets() {
        let cache = PayloadCache::new(1 << 20);
        cache.put(key(8, 1), Arc::new(1_u64), 8);
        assert_eq!(cache.statistics().entries, 0);
        cache.commit_to(16);
        cache.put(key(8, 1), Arc::new(1_u64), 8);
        cache.put(key(9, 1), Arc::new(1_u64), 8);
        assert_eq!(cache.statistics().entries, 1);
        cache.commit_to(24);
        assert_eq!(cache.get::<u64>(&key(8, 1)).as_deref(), Some(&1));
        cache.commit_to(16);
        assert!(cache.get::<u64>(&key(8, 1)).is_none());
        assert_eq!(cache.statistics().bytes, 0);
    }

    #[test]
    fn the_cap_is_never_exceeded_and_what_is_used_stays() {
        let cache = cache(10 * (100 + OVERHEAD));
        for i in 0..100 {
            cache.put(key(i, 0), Arc::new(i), 100);
            assert_eq!(cache.get::<u64>(&key(0, 0)).as_deref(), Some(&0), "{i}");
            let now = cache.statistics();
            assert!(now.bytes <= now.bytes_max, "{i}");
        }
        let now = cache.statistics();
        assert_eq!((now.entries, now.evicted), (10, 90));
        cache.put(key(1000, 0), Arc::new(0_u64), 10 * (100 + OVERHEAD));
        assert_eq!(
            cache.statistics().entries,
            10,
            "a value above the cap is not kept"
        );
    }

    #[test]
    fn extents_that_differ_in_anything_are_different_keys() {
        let cache = cache(1 << 20);
        cache.put(key(8, 1), Arc::new(1_u64), 8);
        assert_eq!(cache.get::<u64>(&key(8, 1)).as_deref(), Some(&1));
        assert!(cache.get::<u64>(&key(8, 2)).is_none());
        assert!(cache.get::<u64>(&key(16, 1)).is_none());
        assert!(cache.get::<u64>(&key(8, 1).part(1)).is_none());
        let other = CacheKey {
            owner: ObjectId(2),
            ..key(8, 1)
        };
        assert!(cache.get::<u64>(&other).is_none());
        assert_eq!(cache.statistics().hits, 1);
        assert_eq!(cache.statistics().misses, 4);
    }

    #[test]
    fn no_bytes_keep_nothing() {
        let cache = PayloadCache::new(0);
        cache.put(key(8, 1), Arc::new(1_u64), 0);
        assert!(cache.get::<u64>(&key(8, 1)).is_none());
        assert!(!cache.takes(0));
    }
}
