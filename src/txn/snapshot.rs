//! One committed generation.
//!
//! Holds [`SnapshotState`]: lookups, ordered walks and payloads of one root. Must not change anything.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::Extent;
use crate::format::history::HistoryRecord;
use crate::format::node::Node;
use crate::format::slot::Slot;
use crate::index::{Cursor, Tree};

use super::payload::{self, Payload};
use super::pins::Target;
use super::writer::Held;
use super::{Engine, Key, Value, commit};

/// What one slot says, and the tree it names.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) slot: Slot,
    pub(super) tree: Tree,
    /// The slot is made up from the one that lists the generation: its sums are not of this tree.
    pub(super) retained: bool,
    pub(super) deferred: Option<Deferred>,
}

/// A deferred commit: visible here, in no slot.
#[derive(Debug)]
pub(super) struct Deferred {
    /// Counts the deferred commits since the last durable generation, from 1.
    pub(super) sequence: u64,
    /// Keeps the writer's lock while somebody reads the state: its bytes are nobody's for others.
    pub(super) _held: Option<Arc<Held>>,
}

impl Committed {
    /// The pin that keeps this state whole.
    pub(super) fn pin(&self) -> Target {
        let is_deferred = self.deferred.is_some();
        Target {
            // What a deferred commit reaches beside the last durable generation is freed by the next one at the earliest.
            generation: self.slot.generation.saturating_sub(u64::from(is_deferred)),
            is_deferred,
        }
    }
}

/// What keeps a state whole while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    /// This is pinned.
    Pin(Target),
    /// The writer that reads it builds on it.
    Writer,
    /// Nothing: there are no locks. Each read looks at the slots again before it answers.
    None,
}

/// A committed state, shared by everything that reads it. It stays whole while it lives, or says that it has expired.
#[derive(Debug)]
pub(crate) struct SnapshotState {
    engine: Arc<Engine>,
    committed: Arc<Committed>,
    protection: Protection,
    /// A generation whose root reaches all that this state reaches: its own, or one that retains it.
    seen: Generation,
    /// Every lookup starts here.
    root: OnceLock<Arc<Node>>,
}

impl Drop for SnapshotState {
    fn drop(&mut self) {
        if let Protection::Pin(target) = self.protection {
            self.engine.unpin(target);
        }
    }
}

impl SnapshotState {
    pub(super) fn new(
        engine: Arc<Engine>,
        committed: Arc<Committed>,
        protection: Protection,
        seen: Generation,
    ) -> Self {
        Self {
            engine,
            committed,
            protection,
            seen,
            root: OnceLock::new(),
        }
    }

    pub(super) fn committed(&self) -> &Arc<Committed> {
        &self.committed
    }

    /// The state cannot be written over while it is held.
    pub(super) fn is_protected(&self) -> bool {
        match self.protection {
            // A forked child shares its parent's locks, which the parent lets go.
            Protection::Pin(_) => self.engine.pins().are_ours(),
            Protection::Writer => true,
            Protection::None => false,
        }
    }

    /// The generation by which what is decoded of this state is kept; none when it must not be.
    pub(super) fn seen(&self) -> Option<Generation> {
        (self.committed.deferred.is_none() && self.is_protected()).then_some(self.seen)
    }

    /// Which deferred commit this is; none for a durable one.
    pub(crate) fn deferred(&self) -> Option<u64> {
        self.committed.deferred.as_ref().map(|d| d.sequence)
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
        self.engine.check_process()?;
        self.root()
            .and_then(|root| self.tree().get_below(self.engine.as_ref(), root, None, key))
            .map_err(|e| self.place(e))
    }

    /// The root of the tree, verified when it is first asked for.
    fn root(&self) -> Result<&Node> {
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let root = self.tree().load_root(self.engine.as_ref())?;
        Ok(self.root.get_or_init(|| root))
    }

    /// A cursor that stands at the first key of `lower..upper`.
    pub(super) fn index_cursor(&self, lower: &[u8], upper: &[u8]) -> Result<Cursor<Arc<Engine>>> {
        self.engine.check_process()?;
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
            .and_then(|(offset, len)| {
                let storage = self.engine.storage();
                if self.is_protected() {
                    return payload::read(storage, offset, len);
                }
                let bytes = payload::read_owned(storage, offset, len)?;
                self.engine.check_whole(self)?;
                Ok(bytes)
            })
            .map_err(|e| self.place(e))
    }

    /// The history of commits, oldest first.
    pub(crate) fn history(&self) -> Result<Vec<(Generation, HistoryRecord)>> {
        commit::history(self).map_err(|e| self.place(e))
    }

    /// Adds the container's path to an error. What looks damaged in a state that nothing protects may be overwritten.
    pub(crate) fn place(&self, e: Error) -> Error {
        let e = if e.is_corruption() && !self.is_protected() {
            self.engine.check_whole(self).err().unwrap_or(e)
        } else {
            e
        };
        self.engine.place(e)
    }
}
