//! One open container: its medium, its caps, its newest committed state, its one writer.
//!
//! Holds [`Engine`]. Must not interpret keys or payloads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::format::DATA_START;
use crate::limits::Limits;
use crate::store::{Memory, Storage};

use super::{Key, SnapshotState, Value, WriterState};

/// What all handles of one open container share.
#[derive(Debug)]
pub(crate) struct Engine {
    storage: Arc<dyn Storage>,
    limits: Limits,
    file: Option<PathBuf>,
    /// The newest state this process knows; none only while the engine is being built.
    published: RwLock<Option<Published>>,
    writing: AtomicBool,
}

/// The facts of one committed generation.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) generation: u64,
    pub(super) committed_end: u64,
    pub(super) next_object_id: u64,
    pub(super) entries: Arc<BTreeMap<Key, Value>>,
}

impl Engine {
    /// A new container in memory, holding the root group alone.
    pub(crate) fn in_memory(limits: Limits) -> Arc<Self> {
        let mut entries = BTreeMap::new();
        let mut root = Value::from_slice(&[0, 0]);
        root.extend_from_slice(br#"{"zarr_format":3,"node_type":"group"}"#);
        entries.insert(Key::from_slice(&[0x02, 0x80]), root);
        Arc::new(Self {
            storage: Arc::new(Memory::from_bytes(vec![0; 0x3000])),
            limits,
            file: None,
            published: RwLock::new(Some(Published {
                generation: 2,
                committed_end: DATA_START,
                next_object_id: 1,
                entries: Arc::new(entries),
            })),
            writing: AtomicBool::new(false),
        })
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The newest committed state that this process knows.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Result<Arc<SnapshotState>> {
        let published = self.published.read().clone();
        let p = published.ok_or_else(|| Error::read_only("the container is not open"))?;
        Ok(Arc::new(SnapshotState::new(
            Arc::clone(self),
            p.generation,
            p.committed_end,
            p.next_object_id,
            p.entries,
        )))
    }

    pub(super) fn publish(&self, state: Published) {
        *self.published.write() = Some(state);
    }

    /// The one writer of the container.
    ///
    /// # Errors
    /// `Busy` while another one lives.
    pub(crate) fn writer(self: &Arc<Self>) -> Result<Arc<WriterState>> {
        if self.writing.swap(true, Ordering::AcqRel) {
            return Err(Error::busy("another writer holds this container")
                .help("drop that writer, or wait with a timeout"));
        }
        let base = self.snapshot().inspect_err(|_| self.release_writer())?;
        Ok(Arc::new(WriterState::new(Arc::clone(self), base)))
    }

    pub(super) fn release_writer(&self) {
        self.writing.store(false, Ordering::Release);
    }
}
