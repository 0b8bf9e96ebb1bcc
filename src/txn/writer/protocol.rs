//! The commit protocol. Spec: `format-spec/09-commit.md`.
//!
//! Holds the steps of a commit, durable or deferred, in their order, and what each transaction asks of the free space when
//! it begins and ends. Must not stage, and must not choose what is written: `commit` lays it out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::super::commit::{self, Build, Kind, Plan};
use super::super::reuse::{Applied, Kept, Reuse};
use super::super::snapshot::{Committed, Deferred, Protection};
use super::super::tail::Tail;
use super::super::{Change, Engine, SnapshotState};
use super::{Health, WriterState};
use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::slot::{Slot, slot_index, slot_offset};
use crate::store::Storage;

impl WriterState {
    /// The transaction's space. Before the first place is given, what the horizon has passed becomes free.
    pub(super) fn begun_tail(&self) -> Result<MutexGuard<'_, Tail>> {
        let mut tail = self.tail.lock();
        if !tail.begun {
            self.begin(&mut tail)?;
            tail.begun = true;
        }
        Ok(tail)
    }

    /// The one place where the medium is read under the tail's lock: everybody waits for a place then anyway.
    fn begin(&self, tail: &mut Tail) -> Result<()> {
        let mut reuse = self.reuse.lock();
        if !reuse.is_allowed() {
            return Ok(());
        }
        let medium = self.medium()?;
        let base = self.base();
        let (durable, other, deferred) = {
            let slots = self.slots.lock();
            let other = slots.other.clone();
            (Arc::clone(&slots.newest), other, slots.deferred)
        };
        let len = medium.len().unwrap_or(0);
        if !tail.space.is_mapped() && deferred == 0 && reuse.wants_map(base.slot(), len) {
            let built = reuse.build(&self.engine, &base, other.as_ref(), &mut tail.space);
            if built.is_err() {
                // Damage, or what only a later release understands: whoever reads it will be told. Here it means that nobody
                // knows what is free.
                tail.space.drop_map();
                *reuse = Reuse::new(false);
                return Ok(());
            }
        }
        // Asked after the slot before this generation was published, as the protocol wants it.
        let retained = reuse.retained_generations();
        let oldest = self.engine.pins().oldest(medium.as_ref(), &retained);
        let horizon = durable.slot.horizon;
        match oldest {
            Ok(oldest) => {
                let limit = oldest.map_or(horizon, |oldest| oldest.min(horizon));
                let limit = limit.saturating_add(self.engine.options().horizon_error);
                tail.space.pass(limit, &mut |e| self.engine.forget_node(e));
            }
            Err(_) => {
                tail.space.drop_map();
                *reuse = Reuse::new(false);
            }
        }
        Ok(())
    }

    /// What the next generation publishes as its horizon: the generation before it, or the oldest that somebody reads and
    /// that is not kept by a record.
    fn next_horizon(&self, medium: &dyn Storage, durable: &Slot, kept: &[Kept]) -> Generation {
        if !self.reuse.lock().is_allowed() {
            return durable.horizon;
        }
        let kept: Vec<Generation> = kept.iter().map(|(g, _)| *g).collect();
        match self.engine.pins().oldest(medium, &kept) {
            Ok(oldest) => oldest
                .map_or(durable.generation, |oldest| oldest.min(durable.generation))
                .max(durable.horizon),
            Err(_) => durable.horizon,
        }
    }

    /// The generations that are retained once `changes` are committed. Where they cannot be read nothing is reused.
    fn kept_after(&self, base: &Arc<SnapshotState>, changes: &[Change]) -> Vec<Kept> {
        let mut tail = self.tail.lock();
        let mut reuse = self.reuse.lock();
        if !reuse.is_allowed() {
            return Vec::new();
        }
        let known = if tail.space.is_mapped() {
            Ok(())
        } else {
            reuse.read_retained(base)
        };
        match known.and_then(|()| reuse.after(changes, base.committed_end())) {
            Ok(kept) => kept,
            Err(_) => {
                tail.space.drop_map();
                *reuse = Reuse::new(false);
                Vec::new()
            }
        }
    }

    /// Lays out the next commit and writes all of it but the slot: steps 1 and 2 of the protocol.
    fn prepare(
        &self,
        medium: &dyn Storage,
        changes: &mut Vec<Change>,
        kind: Kind,
    ) -> Result<(Build, Vec<Kept>)> {
        let base = self.base();
        let (durable, changed_before) = {
            let slots = self.slots.lock();
            (Arc::clone(&slots.newest), slots.changed)
        };
        let mut tail = self.begun_tail()?;
        tail.seal();
        let payloads_end = tail.high();
        drop(tail);
        self.write_waiting(medium)?;

        let kept = self.kept_after(&base, changes);
        let message = self.message.lock().clone();
        let restore = self.restoring.lock().is_some();
        let mut tail = self.tail.lock();
        let built = commit::build(&mut Plan {
            durable: &durable.slot,
            base: &base,
            changes,
            place: &mut |len| tail.place_node(len),
            payloads_end,
            message: &message,
            next_object_id: self.next_object_id.load(Ordering::Acquire),
            writer_id: self.id,
            horizon: self.next_horizon(medium, &durable.slot, &kept),
            kind,
            changed_before,
            restore,
        });
        drop(tail);
        let written = built.and_then(|build| {
            for (offset, bytes) in &build.writes {
                self.write(medium, *offset, bytes)?;
            }
            Ok(build)
        });
        match written {
            Ok(build) => Ok((build, kept)),
            Err(e) => {
                self.tail.lock().forget_nodes();
                Err(e)
            }
        }
    }

    /// The commit protocol. The caller holds the gate alone.
    pub(super) fn commit_changes(
        &self,
        changes: &mut Vec<Change>,
        kind: Kind,
    ) -> Result<Generation> {
        let medium = self.medium()?;
        let medium = medium.as_ref();
        let durable = Arc::clone(&self.slots.lock().newest);

        // Steps 1 and 2: payloads that are not on the medium yet, record and nodes.
        let (build, kept) = self.prepare(medium, changes, kind)?;
        self.confirm_base(medium, &durable.slot)?;

        // Step 3: sync 1.
        if let Err(e) = medium.sync() {
            if self.confirms.load(Ordering::Acquire) {
                write_unconfirmed(medium, &durable.slot);
            }
            return Err(self.poison(&durable.slot, "the sync before the slot", &e));
        }
        if let Err(e) = self.engine.check_name(medium) {
            *self.health.lock() = Health::Replaced;
            return Err(e);
        }

        // Steps 4 and 5: the slot, sync 2.
        let slot = &build.committed.slot;
        let written = medium
            .write_all_at(slot_offset(slot_index(slot.generation)), &slot.encode())
            .and_then(|()| medium.sync());
        if let Err(e) = written {
            write_unconfirmed(medium, slot);
            return Err(self.poison(&durable.slot, "the slot write or its sync", &e));
        }

        // Step 6: publish, and begin the next transaction.
        let generation = slot.generation;
        self.confirms.store(false, Ordering::Release);
        if let Some(count) = build.history {
            self.history.store(count, Ordering::Release);
        }
        self.advance(build, kept, true);
        Ok(generation)
    }

    /// A commit without its syncs and its slot. The caller holds the gate alone.
    pub(super) fn defer_changes(&self, changes: &mut Vec<Change>) -> Result<u64> {
        let medium = self.medium()?;
        let (mut build, kept) = self.prepare(medium.as_ref(), changes, Kind::Deferred)?;
        let sequence = self.slots.lock().deferred.saturating_add(1);
        build.committed.deferred = Some(Deferred {
            sequence,
            _held: self.held.lock().clone(),
        });
        self.advance(build, kept, false);
        Ok(sequence)
    }

    /// Makes what was built the base of the next transaction, and visible.
    fn advance(&self, build: Build, kept: Vec<Kept>, durable: bool) {
        let committed = Arc::new(build.committed);
        self.engine.publish(Arc::clone(&committed));
        *self.base.write() = own_state(&self.engine, &committed);
        let restored = self.restoring.lock().take();
        let (before, follows_deferred) = {
            let mut slots = self.slots.lock();
            let before = Arc::clone(&slots.newest);
            let follows_deferred = slots.deferred > 0;
            slots.deferred = if durable {
                0
            } else {
                slots.deferred.saturating_add(1)
            };
            slots.changed = if durable { 0 } else { build.changed };
            if durable {
                slots.other = Some(before.slot.clone());
                slots.newest = Arc::clone(&committed);
            }
            (before, follows_deferred)
        };
        let mut tail = self.tail.lock();
        tail.finish(&build.placed);
        let applied = Applied {
            generation: committed.slot.generation,
            after: &committed.tree,
            placed: &build.placed,
            freed: build.freed,
            old_record: durable.then_some(before.slot.record),
            retained: kept,
            restore: restored.is_some(),
            follows_deferred,
        };
        let followed = self
            .reuse
            .lock()
            .apply(&self.engine, applied, &mut tail.space);
        if followed.is_err() {
            // The commit stands; what is free is found out anew, or not at all.
            tail.space.drop_map();
        }
        drop(tail);
        if durable {
            self.message.lock().clear();
        }
    }

    /// Writes the base slot again without its mark, when a failed sync had left it in doubt and the other is valid: it
    /// is then durable before the other is touched.
    fn confirm_base(&self, medium: &dyn Storage, base: &Slot) -> Result<()> {
        if !self.confirms.load(Ordering::Acquire) {
            return Ok(());
        }
        let confirmed = Slot {
            unconfirmed: false,
            ..base.clone()
        };
        let at = slot_offset(slot_index(base.generation));
        if let Err(e) = medium.write_all_at(at, &confirmed.encode()) {
            write_unconfirmed(medium, base);
            return Err(self.poison(base, "the slot write", &e));
        }
        Ok(())
    }

    fn poison(&self, base: &Slot, step: &str, cause: &std::io::Error) -> Error {
        let last = base.generation;
        *self.health.lock() = Health::Poisoned(last);
        Error::poisoned(format!("{step} failed ({cause})"), last).help(
            "drop this writer and open the container again; copy the file to healthy storage before going on",
        )
    }
}

/// A state as its own writer holds it: nothing that the writer may write over is part of it.
pub(super) fn own_state(engine: &Arc<Engine>, committed: &Arc<Committed>) -> Arc<SnapshotState> {
    Arc::new(SnapshotState::new(
        Arc::clone(engine),
        Arc::clone(committed),
        Protection::Writer,
        committed.pin().generation,
    ))
}

/// Writes a slot's block with the mark of doubt, whatever comes of it.
fn write_unconfirmed(medium: &dyn Storage, slot: &Slot) {
    let marked = Slot {
        unconfirmed: true,
        ..slot.clone()
    };
    let at = slot_offset(slot_index(slot.generation));
    drop(medium.write_all_at(at, &marked.encode()));
}
