//! Which generations somebody reads. Spec: `format-spec/12-space.md`, "Locks".
//!
//! Holds [`Pins`]: a count for each generation that this handle pins, and one shared lock of the generation's byte in the
//! file, which the system drops with the process. Must not decide what a pin allows.
//!
//! Invariants: the byte is locked exactly while the count is not zero; a forked child neither takes nor drops a lock, as
//! it shares the handle that they belong to, nor waits for one that a thread of its parent held.

use std::collections::BTreeMap;
use std::io;

use parking_lot::Mutex;

use crate::format::Generation;
use crate::limits::GENERATION_END;
use crate::store::lock::PINS;
use crate::store::{LockMode, Owner, Storage};

/// The pins of one open container.
#[derive(Debug)]
pub(super) struct Pins {
    /// The process whose locks they are.
    owner: Owner,
    held: Mutex<BTreeMap<Generation, Held>>,
}

#[derive(Debug)]
struct Held {
    count: usize,
    /// Readers of deferred commits among them: what those read is held by no retained generation.
    deferred: usize,
    /// Since the lock was taken the slots have been read again, and the generation was whole.
    sure: bool,
}

/// What is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) generation: Generation,
    /// A deferred commit on top of that generation is read.
    pub(super) is_deferred: bool,
}

/// What came of an attempt to pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pinned {
    /// For good.
    Sure,
    /// The slots must be read again before the generation may be used.
    Unsure,
    /// There are no locks.
    Not,
}

impl Pins {
    pub(super) fn new() -> Self {
        Self {
            owner: Owner::here(),
            held: Mutex::default(),
        }
    }

    /// This is the process that opened the container.
    pub(super) fn are_ours(&self) -> bool {
        self.owner.is_here()
    }

    /// Pins the generation that `choose` gives. Nobody asks for the oldest pin between the choice and the pin.
    pub(super) fn acquire<T>(
        &self,
        storage: &dyn Storage,
        choose: impl FnOnce() -> (Target, T),
    ) -> io::Result<(Pinned, T)> {
        if !self.owner.is_here_for_sure() {
            return Ok((Pinned::Not, choose().1));
        }
        let mut held = self.held.lock();
        let (target, chosen) = choose();
        let generation = target.generation;
        let deferred = usize::from(target.is_deferred);
        if let Some(held) = held.get_mut(&generation) {
            held.count = held.count.saturating_add(1);
            held.deferred = held.deferred.saturating_add(deferred);
            let pinned = if held.sure {
                Pinned::Sure
            } else {
                Pinned::Unsure
            };
            return Ok((pinned, chosen));
        }
        match storage.try_lock(byte(generation), LockMode::Shared) {
            Ok(true) => {}
            Ok(false) => return Ok((Pinned::Not, chosen)),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                return Ok((Pinned::Not, chosen));
            }
            Err(e) => return Err(e),
        }
        // Where nobody else can write, what is chosen here is whole.
        let sure = !storage.is_shared();
        let one = Held {
            count: 1,
            deferred,
            sure,
        };
        held.insert(generation, one);
        let pinned = if sure { Pinned::Sure } else { Pinned::Unsure };
        Ok((pinned, chosen))
    }

    /// The slots were read after the lock was taken, and the generation is whole.
    pub(super) fn make_sure(&self, generation: Generation) {
        if let Some(held) = self.held.lock().get_mut(&generation) {
            held.sure = true;
        }
    }

    /// Gives back one pin.
    pub(super) fn release(&self, storage: &dyn Storage, target: Target) {
        if !self.owner.is_here_for_sure() {
            return;
        }
        let generation = target.generation;
        let mut all = self.held.lock();
        let Some(held) = all.get_mut(&generation) else {
            return;
        };
        held.count = held.count.saturating_sub(1);
        held.deferred = held
            .deferred
            .saturating_sub(usize::from(target.is_deferred));
        if held.count == 0 {
            all.remove(&generation);
            // A lock that cannot be let go holds space back until the handle is closed; nothing worse.
            drop(storage.unlock(byte(generation)));
        }
    }

    /// The oldest generation that this handle or, as far as the locks seen from `other` tell, anybody else pins, those in
    /// `except` (ascending) left out.
    ///
    /// # Errors
    /// `Unsupported` where the locks of others cannot be asked for.
    pub(super) fn oldest(
        &self,
        other: &dyn Storage,
        except: &[Generation],
    ) -> io::Result<Option<Generation>> {
        let counts = |g: &Generation| except.binary_search(g).is_err();
        let own = {
            let held = self.held.lock();
            let mut all = held.iter();
            all.find(|(g, held)| counts(g) || held.deferred > 0)
                .map(|(g, _)| *g)
        };
        let mut from = 0;
        let mut end = own.unwrap_or(GENERATION_END);
        loop {
            let Some(lowest) = lowest(other, from..end)? else {
                return Ok(own);
            };
            if counts(&lowest) {
                return Ok(Some(lowest));
            }
            from = lowest.saturating_add(1);
            end = end.max(from);
        }
    }

    /// Whether this handle pins `generation`, or somebody else's lock says so.
    pub(super) fn is_held(&self, other: &dyn Storage, generation: Generation) -> io::Result<bool> {
        if self.held.lock().contains_key(&generation) {
            return Ok(true);
        }
        let end = generation.saturating_add(1);
        Ok(lowest(other, generation..end)?.is_some())
    }

    /// All pinned generations, ascending.
    pub(super) fn all(&self, other: &dyn Storage) -> io::Result<Vec<Generation>> {
        let mut all: Vec<Generation> = self.held.lock().keys().copied().collect();
        let mut from = 0;
        while let Some(next) = lowest(other, from..GENERATION_END)? {
            all.push(next);
            from = next.saturating_add(1);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

fn byte(generation: Generation) -> u64 {
    PINS.saturating_add(generation)
}

/// The lowest generation of the range whose byte another handle has locked.
fn lowest(
    storage: &dyn Storage,
    range: std::ops::Range<Generation>,
) -> io::Result<Option<Generation>> {
    let mut end = range.end;
    let mut found = None;
    while range.start < end
        && let Some(at) = storage.conflict(byte(range.start)..byte(end), LockMode::Exclusive)?
    {
        let generation = at.saturating_sub(PINS);
        found = Some(generation);
        end = generation;
    }
    Ok(found)
}
