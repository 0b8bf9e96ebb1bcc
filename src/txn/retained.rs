//! Retained generations: the records that keep old roots alive. Spec: `format-spec/08-snapshots-history.md`.
//!
//! Holds what is read and staged of them: listing, finding, retaining, releasing, restoring. Must not know pins or free
//! space.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::Generation;
use crate::format::key::{self, tag};
use crate::format::name::check_label;
use crate::format::slot::Slot;
use crate::format::snapshot::SnapshotRecord;
use crate::index;

use super::snapshot::Committed;
use super::{Change, Key, SnapshotState, Value, View, WriterState, open};

const FIRST: [u8; 1] = [tag::SNAPSHOT];
const LAST: [u8; 1] = [tag::SNAPSHOT + 1];
/// What a restore brings back: the hierarchy, its documents and attributes, and the chunks.
const CONTENT: ([u8; 1], [u8; 1]) = ([tag::CHILD], [tag::CHUNK + 1]);

/// One retained generation.
#[derive(Debug, Clone)]
pub(crate) struct Retained {
    pub(crate) generation: Generation,
    pub(crate) record: SnapshotRecord,
}

/// The retained generations of a state, ascending, and whether there is one that only a later release can read.
pub(crate) fn list(view: &View) -> Result<(Vec<Retained>, bool)> {
    let mut cursor = view.cursor(&FIRST, &LAST)?;
    let (mut all, mut newer) = (Vec::new(), false);
    while let Some((key, value)) = cursor.next()? {
        match decode(&key, &value) {
            Ok(retained) => all.push(retained),
            Err(e) if e.kind() == ErrorKind::Unsupported => newer = true,
            Err(e) => return Err(view.engine().place(e)),
        }
    }
    Ok((all, newer))
}

fn decode(key: &[u8], value: &[u8]) -> Result<Retained> {
    Ok(Retained {
        generation: key::split_generation(key)?,
        record: SnapshotRecord::decode(value, 0)?,
    })
}

/// The record that retains `generation`, if there is one.
pub(crate) fn get(view: &View, generation: Generation) -> Result<Option<SnapshotRecord>> {
    match view.get(&key::snapshot(generation))? {
        Some(value) => SnapshotRecord::decode(&value, 0)
            .map(Some)
            .map_err(|e| view.engine().place(e)),
        None => Ok(None),
    }
}

/// The retained generation called `name`.
pub(crate) fn find(view: &View, name: &str) -> Result<Retained> {
    let (all, _) = list(view)?;
    let names = || match all.len() {
        0 => "none".to_owned(),
        1..=8 => {
            let names: Vec<&str> = all.iter().map(|r| r.record.label.as_str()).collect();
            names.join(", ")
        }
        n => format!("{n} of other names"),
    };
    match all.iter().find(|r| r.record.label == name) {
        Some(found) => Ok(found.clone()),
        None => Err(view.engine().place(
            Error::not_found(format!("snapshot {name:?}"))
                .expected("a retained snapshot of that name")
                .found(names()),
        )),
    }
}

/// The state of a retained generation, as the slot that lists it reaches it. Loads the root.
pub(super) fn committed(
    lister: &SnapshotState,
    generation: Generation,
    record: &SnapshotRecord,
) -> Result<Committed> {
    let listed = lister.slot();
    if generation == 0 || generation >= listed.generation {
        return Err(Error::corrupt("retained snapshot")
            .expected(format_args!("a generation below {}", listed.generation))
            .found(generation));
    }
    record
        .root
        .check(record.root.node.offset, listed.committed_end)?;
    // What the old slot said else is gone with it; these fields say nothing of the old generation.
    let slot = Slot {
        generation,
        time: record.time,
        root: record.root,
        horizon: listed.horizon.min(generation.saturating_sub(1)),
        ..listed.clone()
    };
    let tree = open::tree_of(&slot);
    tree.load_root(lister.engine().as_ref())?;
    Ok(Committed {
        slot,
        tree,
        retained: true,
        deferred: None,
    })
}

impl WriterState {
    /// Stages the record that retains the last committed generation, and returns that generation.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that breaks a rule; `AlreadyExists` for a name in use, or when the generation is
    /// retained already.
    pub(crate) fn retain(self: &Arc<Self>, name: &str) -> Result<Generation> {
        check_label(name)?;
        let _hold = self.hold();
        let base = self.base();
        let generation = base.generation();
        let view = View::Writer(Arc::clone(self));
        let (all, _) = list(&view)?;
        if let Some(taken) = all.iter().find(|r| r.record.label == name) {
            return Err(self.engine().place(
                Error::already_exists(format!("snapshot {name:?}"))
                    .found(format_args!("generation {}", taken.generation))
                    .help("release it first, or choose another name"),
            ));
        }
        if let Some(other) = all.iter().find(|r| r.generation == generation) {
            return Err(self.engine().place(
                Error::already_exists(format!("snapshot of generation {generation}"))
                    .found(format_args!("{:?}", other.record.label))
                    .help("a generation has one name; commit first to retain a newer one"),
            ));
        }
        let slot = base.slot();
        let record = SnapshotRecord {
            root: slot.root,
            label: name.to_owned(),
            extension: Vec::new(),
            referenced: false,
            time: slot.time,
        };
        self.put(key::snapshot(generation), Value::from_vec(record.encode()));
        Ok(generation)
    }

    /// Stages the note that references to a retained generation's bytes were exported.
    pub(crate) fn mark_referenced(self: &Arc<Self>, retained: Retained) {
        let mut record = retained.record;
        record.referenced = true;
        let record = Value::from_vec(record.encode());
        self.put(key::snapshot(retained.generation), record);
    }

    /// Stages the release of a retained generation.
    ///
    /// # Errors
    /// `InvalidArgument` when references to it were exported; `SnapshotInUse` while somebody pins it.
    pub(crate) fn release(self: &Arc<Self>, retained: &Retained) -> Result<()> {
        if retained.record.referenced {
            return Err(self.engine().place(
                Error::invalid(format!("release of snapshot {:?}", retained.record.label))
                    .expected("a snapshot that nothing outside the file refers to")
                    .found("one that references were exported from")
                    .help("break the references explicitly"),
            ));
        }
        if self.is_read(retained.generation)? {
            return Err(self.engine().place(
                Error::snapshot_in_use(format!("snapshot {:?}", retained.record.label))
                    .expected("nobody who reads it")
                    .found(format_args!("a pin of generation {}", retained.generation))
                    .help("try again when its readers are done"),
            ));
        }
        self.delete(&key::snapshot(retained.generation));
        Ok(())
    }

    /// Stages what makes the content equal to that of `old`: groups, arrays, attributes and chunks. Payloads are named
    /// again, not copied.
    ///
    /// # Errors
    /// `InvalidArgument` when something is staged already.
    pub(crate) fn restore(self: &Arc<Self>, old: &Arc<SnapshotState>) -> Result<()> {
        let _hold = self.hold();
        if !Arc::ptr_eq(old.engine(), self.engine()) {
            return Err(Error::invalid("snapshot to restore")
                .expected("one of this container")
                .found("one of another"));
        }
        let (from, to) = CONTENT;
        let untouched = self
            .overlay()
            .first(std::ops::Bound::Included(&from), &to)
            .is_none();
        if !untouched {
            return Err(Error::invalid("restore")
                .expected("nothing staged before it")
                .found("changes")
                .help("commit or abort first"));
        }
        let mut changes: Vec<Change> = Vec::new();
        let mut now = self.base().index_cursor(&from, &to)?;
        let mut then = old.index_cursor(&from, &to)?;
        while now.key().is_some() || then.key().is_some() {
            merge_step(&mut now, &mut then, &mut changes).map_err(|e| self.engine().place(e))?;
        }
        self.begin_restore(Arc::clone(old));
        self.stage(changes);
        Ok(())
    }
}

/// Takes the lower key of both cursors, and says what makes `now` equal to `then` there.
fn merge_step<L: index::Load>(
    now: &mut index::Cursor<L>,
    then: &mut index::Cursor<L>,
    changes: &mut Vec<Change>,
) -> Result<()> {
    let only_now = match (now.peek(), then.peek()) {
        (Some(n), Some(t)) if n.key == t.key => {
            if n.value != t.value {
                changes.push((Key::from_slice(t.key), Some(Value::from_slice(t.value))));
            }
            now.advance()?;
            return then.advance();
        }
        (Some(n), Some(t)) => n.key < t.key,
        (n, _) => n.is_some(),
    };
    let side = if only_now { now } else { then };
    if let Some(entry) = side.peek() {
        let value = (!only_now).then(|| Value::from_slice(entry.value));
        changes.push((Key::from_slice(entry.key), value));
    }
    side.advance()
}
