//! One committed generation.
//!
//! Holds [`SnapshotState`]: lookups, ordered walks and payloads of one root. Must not change anything.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::Extent;
use crate::format::history::HistoryRecord;
use crate::format::slot::Slot;
use crate::index::{Cursor, Tree};

use super::payload::{self, Payload};
use super::{Engine, Key, Value, commit};

/// What one slot says, and the tree it names.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) slot: Slot,
    pub(super) tree: Tree,
    /// The slot is made up from the one that lists the generation: its sums are not of this tree.
    pub(super) retained: bool,
}

/// A committed state, shared by everything that reads it.
///
/// It stays whole while it lives: space of committed generations is not reused yet. Reuse will have to pin here.
#[derive(Debug)]
pub(crate) struct SnapshotState {
    engine: Arc<Engine>,
    committed: Arc<Committed>,
}

impl SnapshotState {
    pub(super) fn new(engine: Arc<Engine>, committed: Arc<Committed>) -> Self {
        Self { engine, committed }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The slot of this generation.
    pub(crate) fn slot(&self) -> &Slot {
        &self.committed.slot
    }

    pub(crate) fn generation(&self) -> Generation {
        self.slot().generation
    }

    /// The generation was found retained: of its slot only generation, time and root are its own.
    pub(crate) fn is_retained(&self) -> bool {
        self.committed.retained
    }

    /// The tree of this generation, for walks over its nodes.
    pub(crate) fn tree(&self) -> &Tree {
        &self.committed.tree
    }

    /// Exclusive end of everything this generation reaches.
    pub(crate) fn committed_end(&self) -> u64 {
        self.slot().committed_end
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.tree()
            .get(self.engine.as_ref(), key)
            .map_err(|e| self.place(e))
    }

    /// A cursor that stands at the first key of `lower..upper`.
    pub(super) fn index_cursor(&self, lower: &[u8], upper: &[u8]) -> Result<Cursor<Arc<Engine>>> {
        let load = Arc::clone(&self.engine);
        Cursor::range(load, *self.tree(), lower, Some(Key::from_slice(upper)))
            .map_err(|e| self.place(e))
    }

    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        let bytes = self.payload_range(extent, 0..extent.len)?;
        payload::verify(extent, &bytes).map_err(|e| self.place(e))?;
        Ok(bytes)
    }

    pub(crate) fn payload_range(&self, extent: Extent, range: Range<u64>) -> Result<Payload> {
        extent
            .check("extent", self.committed_end())
            .and_then(|()| payload::locate(extent, &range))
            .and_then(|(offset, len)| payload::read(self.engine.storage(), offset, len))
            .map_err(|e| self.place(e))
    }

    /// The history of commits, oldest first.
    pub(crate) fn history(&self) -> Result<Vec<(Generation, HistoryRecord)>> {
        commit::history(self).map_err(|e| self.place(e))
    }

    /// Adds the container's path to an error.
    pub(crate) fn place(&self, e: Error) -> Error {
        self.engine.place(e)
    }
}
