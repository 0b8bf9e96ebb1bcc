//! Which generation a reader gets: the newest that is known, a newer one of another process, an older one that is kept.
//!
//! Holds what of [`Engine`] pins, publishes and looks back. Must not change the file.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::format::commit;
use crate::format::extent::Extent;
use crate::format::{Generation, key};
use crate::limits::MESSAGE_LEN_MAX;
use crate::store::{LockMode, Storage};

use super::super::open;
use super::super::pins::{Pinned, Pins, Target};
use super::super::snapshot::{Committed, Protection, SnapshotState};
use super::super::{View, retained};
use super::{Chain, Engine};

/// How soon one who waits for a commit looks again at first, and how seldom at last.
const LOOK_FIRST: Duration = Duration::from_micros(200);
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Engine {
    /// The newest committed state that this process knows, pinned; a newer one where the space of that one may have been
    /// reused meanwhile.
    ///
    /// # Errors
    /// `Io` when the lock cannot be taken or the slots not be read; what opening finds wrong.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Result<Arc<SnapshotState>> {
        self.check_process()?;
        loop {
            let (pinned, committed) = self
                .pins
                .acquire(self.lock_medium(), || {
                    let committed = Arc::clone(&self.published.read());
                    (committed.pin(), committed)
                })
                .map_err(|e| self.place(Error::io("cannot pin a generation", e)))?;
            let target = committed.pin();
            let generation = target.generation;
            let protection = protection(pinned, target);
            let seen = committed.slot.generation;
            let state = SnapshotState::new(Arc::clone(self), committed, protection, seen);
            if pinned != Pinned::Unsure {
                return Ok(Arc::new(state));
            }
            // At this second look the only build in progress overwrites what the horizon read here has passed, and no later
            // one overlooks the lock.
            let pair = open::read_slots(self.storage.as_ref(), &self.header, false)
                .map_err(|e| self.place(e))?;
            if generation >= pair.newest.horizon {
                self.pins.make_sure(generation);
                return Ok(Arc::new(state));
            }
            drop(state);
            self.advance().map_err(|e| self.place(e))?;
        }
    }

    /// The medium whose locks pins are: none are taken where the caller wants no locks.
    fn lock_medium(&self) -> &dyn Storage {
        if self.options.without_locks && self.storage.is_shared() {
            &NoLocks
        } else {
            self.storage.as_ref()
        }
    }

    pub(in crate::txn) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The slot beside the newest, if it is valid and the newest is that of `state`; and the commit records from the one of
    /// `state` down to the horizon, newest first, with what is wrong where they end before it.
    pub(crate) fn chain(&self, state: &SnapshotState) -> Result<Chain> {
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        let slot = state.slot();
        let mut chain = Chain {
            other: pair.other.filter(|_| pair.newest == *slot),
            records: Vec::new(),
            fault: None,
        };
        let mut at = slot.record;
        let mut above = slot.generation.saturating_add(1);
        loop {
            let longest = (commit::FIXED_LEN + MESSAGE_LEN_MAX) as u64;
            let bounded = at.len >= commit::FIXED_LEN as u64 && at.len <= longest;
            let record = at
                .check("commit record reference", slot.committed_end)
                .and_then(|()| {
                    if bounded {
                        open::record_at(self.storage.as_ref(), at)
                    } else {
                        Err(Error::corrupt("commit record reference").found(at.len))
                    }
                })
                .and_then(|record| {
                    if record.generation < above && record.uuid == self.header.uuid {
                        return Ok(record);
                    }
                    Err(Error::corrupt("commit record")
                        .at(at.offset)
                        .expected(format_args!("a generation below {above} of this file"))
                        .found(record.generation))
                });
            let record = match record {
                Ok(record) => record,
                Err(e) => {
                    // A writer at work may have passed it meanwhile.
                    let now = open::read_slots(self.storage.as_ref(), &self.header, false)?;
                    let passed = above.saturating_sub(1) < now.newest.horizon;
                    chain.fault = (!passed).then_some(e);
                    return Ok(chain);
                }
            };
            above = record.generation;
            let previous = record.previous;
            chain.records.push(record);
            match previous {
                // Below the horizon its bytes may be another's.
                Some(previous) if above > slot.horizon.max(1) => at = previous,
                _ => return Ok(chain),
            }
        }
    }

    /// The generations that somebody reads, ascending; none where the locks of others cannot be asked for.
    pub(crate) fn pinned(&self) -> Result<Option<Vec<Generation>>> {
        self.check_process()?;
        match self.pins.all(self.storage.as_ref()) {
            Ok(all) => Ok(Some(all)),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(e) => Err(self.place(Error::io("cannot ask for the locks of readers", e))),
        }
    }

    pub(in crate::txn) fn unpin(&self, target: Target) {
        self.pins.release(self.lock_medium(), target);
    }

    /// Refuses a state without protection whose space may have been reused by now.
    pub(in crate::txn) fn check_whole(&self, state: &SnapshotState) -> Result<()> {
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        if state.committed().pin().generation >= pair.newest.horizon {
            return Ok(());
        }
        if state.is_retained() {
            let tree = open::tree_of(&pair.newest);
            if tree
                .get(self, &key::snapshot(state.generation()))?
                .is_some()
            {
                return Ok(());
            }
        }
        Err(Error::snapshot_expired(format!(
            "generation {}",
            state.generation()
        ))
        .expected(format_args!("at least {}", pair.newest.horizon))
        .help("a writer has reused its space; take a newer snapshot, or open the container where locks work"))
    }

    /// The generation that `lister` retains under this number.
    ///
    /// # Errors
    /// `NotFound`; what reading it finds wrong.
    pub(crate) fn retained(
        self: &Arc<Self>,
        lister: &Arc<SnapshotState>,
        generation: Generation,
    ) -> Result<Arc<SnapshotState>> {
        let view = View::Snapshot(Arc::clone(lister));
        let record = retained::get(&view, generation)?.ok_or_else(|| {
            self.place(
                Error::not_found(format!("generation {generation}"))
                    .expected("the newest generation or a retained one")
                    .help("`snapshot ls` lists those that are kept"),
            )
        })?;
        let committed =
            retained::committed(lister, generation, &record).map_err(|e| self.place(e))?;
        let target = committed.pin();
        let (pinned, ()) = self
            .pins
            .acquire(self.lock_medium(), || (target, ()))
            .map_err(|e| self.place(Error::io("cannot pin a generation", e)))?;
        let state = SnapshotState::new(
            Arc::clone(self),
            Arc::new(committed),
            protection(pinned, target),
            lister.committed().pin().generation,
        );
        // The lister may be old itself, and what it lists released since.
        self.check_whole(&state).map_err(|e| self.place(e))?;
        self.pins.make_sure(generation);
        Ok(Arc::new(state))
    }

    /// Waits for a generation above `known`, looking every few milliseconds; none when `wait` has passed.
    ///
    /// # Errors
    /// As [`Engine::refresh`].
    pub(crate) fn wait_newer(
        self: &Arc<Self>,
        known: Generation,
        wait: Duration,
    ) -> Result<Option<Arc<SnapshotState>>> {
        let until = Instant::now().checked_add(wait);
        let mut pause = LOOK_FIRST;
        loop {
            let state = self.refresh()?;
            if state.generation() > known && state.deferred().is_none() {
                return Ok(Some(state));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            std::thread::sleep(left.map_or(pause, |left| pause.min(left)));
            pause = pause.saturating_mul(2).min(LOOK_EVERY);
        }
    }

    /// Looks for commits of other processes, and gives the newest state.
    ///
    /// # Errors
    /// As opening; `Replaced` when the path now names another file.
    pub(crate) fn refresh(self: &Arc<Self>) -> Result<Arc<SnapshotState>> {
        self.check_process()?;
        if !self.writing.load(Ordering::Acquire) && self.storage.is_shared() {
            self.check_name(self.storage.as_ref())
                .map_err(|e| self.place(e))?;
            self.advance().map_err(|e| self.place(e))?;
        }
        self.snapshot()
    }

    /// Publishes the newest state if it is newer than what is published.
    fn advance(&self) -> Result<()> {
        let known = self.published.read().slot.generation;
        let pair = open::read_slots(self.storage.as_ref(), &self.header, false)?;
        if pair.newest.generation <= known {
            return Ok(());
        }
        let (pair, tree) = open::newest(self.storage.as_ref(), self, &self.header)?;
        self.publish_newer(Arc::new(Committed {
            slot: pair.newest,
            tree,
            retained: false,
            deferred: None,
        }));
        Ok(())
    }

    pub(in crate::txn) fn published(&self) -> Arc<Committed> {
        Arc::clone(&self.published.read())
    }

    /// Goes back to a durable state from a deferred one.
    pub(in crate::txn) fn publish_again(&self, committed: Arc<Committed>) {
        *self.published.write() = committed;
    }

    /// Drops a node whose bytes may be written over from now on.
    pub(in crate::txn) fn forget_node(&self, extent: &Extent) {
        self.cache.forget(extent);
    }

    /// As [`Engine::publish`], unless another thread has been faster.
    fn publish_newer(&self, committed: Arc<Committed>) {
        let mut published = self.published.write();
        if committed.slot.generation > published.slot.generation {
            for payloads in [&self.chunks, &self.shards] {
                payloads.publish(committed.slot.generation, committed.slot.horizon);
            }
            *published = committed;
        }
    }

    pub(in crate::txn) fn publish(&self, committed: Arc<Committed>) {
        let mut published = self.published.write();
        for payloads in [&self.chunks, &self.shards] {
            // A deferred commit frees and reuses nothing.
            if committed.deferred.is_none() {
                payloads.publish(committed.slot.generation, committed.slot.horizon);
            }
        }
        *published = committed;
    }
}

fn protection(pinned: Pinned, target: Target) -> Protection {
    match pinned {
        Pinned::Not => Protection::None,
        Pinned::Sure | Pinned::Unsure => Protection::Pin(target),
    }
}

/// A medium that has no locks to give, whatever the container's has.
#[derive(Debug)]
struct NoLocks;

impl Storage for NoLocks {
    fn len(&self) -> std::io::Result<u64> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn write_all_at(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self, _: u64, _: LockMode) -> std::io::Result<bool> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
