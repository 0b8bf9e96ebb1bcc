//! One committed generation.
//!
//! Holds [`SnapshotState`]: lookups, ordered walks and payloads of one root. Must not change anything.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::format::Generation;
use crate::format::extent::Extent;

use super::payload::{self, Payload};
use super::{Engine, Key, Value};

/// A pinned committed state, shared by everything that reads it.
#[derive(Debug)]
pub(crate) struct SnapshotState {
    engine: Arc<Engine>,
    generation: Generation,
    committed_end: u64,
    next_object_id: u64,
    /// Interim: the entries themselves, until the tree room has landed.
    entries: Arc<BTreeMap<Key, Value>>,
}

impl SnapshotState {
    pub(super) fn new(
        engine: Arc<Engine>,
        generation: Generation,
        committed_end: u64,
        next_object_id: u64,
        entries: Arc<BTreeMap<Key, Value>>,
    ) -> Self {
        Self {
            engine,
            generation,
            committed_end,
            next_object_id,
            entries,
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Exclusive end of everything this generation reaches.
    pub(crate) fn committed_end(&self) -> u64 {
        self.committed_end
    }

    /// The first object id never given out.
    pub(crate) fn next_object_id(&self) -> u64 {
        self.next_object_id
    }

    pub(super) fn entries(&self) -> &Arc<BTreeMap<Key, Value>> {
        &self.entries
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Ok(self.entries.get(key).cloned())
    }

    pub(super) fn base_cursor(self: &Arc<Self>, lower: &[u8], upper: &[u8]) -> Result<BaseCursor> {
        Ok(BaseCursor {
            entries: Arc::clone(&self.entries),
            from: Bound::Included(Key::from_slice(lower)),
            upper: Key::from_slice(upper),
        })
    }

    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        let bytes = self.payload_range(extent, 0..extent.len)?;
        payload::verify(extent, &bytes)?;
        Ok(bytes)
    }

    pub(crate) fn payload_range(&self, extent: Extent, range: Range<u64>) -> Result<Payload> {
        payload::check_bounds(extent, self.committed_end)?;
        let (offset, len) = payload::locate(extent, &range)?;
        payload::read(self.engine.storage(), offset, len)
    }
}

/// The committed half of a cursor.
#[derive(Debug)]
pub(super) struct BaseCursor {
    entries: Arc<BTreeMap<Key, Value>>,
    from: Bound<Key>,
    upper: Key,
}

impl BaseCursor {
    pub(super) fn next(&mut self) -> Result<Option<(Key, Value)>> {
        let from = match &self.from {
            Bound::Included(k) => Bound::Included(k.as_slice()),
            Bound::Excluded(k) => Bound::Excluded(k.as_slice()),
            Bound::Unbounded => Bound::Unbounded,
        };
        let found = self
            .entries
            .range::<[u8], _>((from, Bound::Unbounded))
            .next();
        Ok(match found {
            Some((k, v)) if *k < self.upper => {
                self.from = Bound::Excluded(k.clone());
                Some((k.clone(), v.clone()))
            }
            _ => None,
        })
    }

    pub(super) fn seek(&mut self, key: &[u8]) -> Result<()> {
        let (Bound::Included(from) | Bound::Excluded(from)) = &self.from else {
            return Ok(());
        };
        if from.as_slice() < key {
            self.from = Bound::Included(Key::from_slice(key));
        }
        Ok(())
    }
}
