//! What a commit writes. Spec: `format-spec/09-commit.md`, "The commit protocol".
//!
//! Holds [`build`], which lays out the commit record, the new nodes and the slot of one generation. Must not write:
//! `writer` does, in the protocol's order; nor choose places: the plan's function does.

use crate::error::{Error, Result};
use crate::format::commit::CommitRecord;
use crate::format::extent::Extent;
use crate::format::history::HistoryRecord;
use crate::format::key::{self, tag};
use crate::format::slot::{Root, Slot};
use crate::format::{ALIGN, Generation};
use crate::index::{Edit, count_changes, edit};
use crate::limits::{GENERATION_END, HISTORY_DROP, HISTORY_MAX};

use super::snapshot::Committed;
use super::{Change, Key, SnapshotState, Value, open};

/// What a commit is made of.
pub(super) struct Plan<'a> {
    /// The last durable generation: the record before, the time before.
    pub(super) durable: &'a Slot,
    /// What is built on: that generation, or a deferred commit over it.
    pub(super) base: &'a SnapshotState,
    /// Ascending unique keys.
    pub(super) changes: &'a mut Vec<Change>,
    /// Gives record and nodes their places; the first begins a block without committed bytes.
    pub(super) place: &'a mut dyn FnMut(usize) -> Result<u64>,
    /// Exclusive end of the payloads of this transaction.
    pub(super) payloads_end: u64,
    pub(super) message: &'a str,
    pub(super) next_object_id: u64,
    pub(super) writer_id: [u8; 16],
    pub(super) horizon: Generation,
    pub(super) kind: Kind,
    /// Changed keys of deferred commits since the last durable one.
    pub(super) changed_before: u64,
    /// The changes bring back an older generation.
    pub(super) restore: bool,
}

/// Which kind of commit is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// With a history record beside so many others.
    Full(u64),
    /// The same root again, for a lost slot: a commit record, no history.
    Healing,
    /// Nodes alone.
    Deferred,
}

/// A generation ready to be written.
pub(super) struct Build {
    /// Where to write what: the commit record and nodes, neighbours as one.
    pub(super) writes: Vec<(u64, Vec<u8>)>,
    pub(super) committed: Committed,
    /// History records in the new tree, where the plan counted them.
    pub(super) history: Option<u64>,
    /// What the new state reaches and the base does not: nodes, the record, payloads and blobs.
    pub(super) placed: Vec<Extent>,
    /// What the base reaches and the new state does not.
    pub(super) freed: Vec<Extent>,
    pub(super) changed: u64,
}

/// Lays out the generation after `plan.durable`. Adds the history's own changes to the plan's.
pub(super) fn build(plan: &mut Plan<'_>) -> Result<Build> {
    let mut record = first_draft(plan)?;
    let engine = plan.base.engine().as_ref();
    let tree = plan.base.tree();
    let mut history = None;
    if plan.kind != Kind::Healing {
        let changed = count_changes(engine, tree, plan.changes)?;
        record.changed = plan.changed_before.saturating_add(changed);
    }
    let mut record_at = plan.durable.record;
    if let Kind::Full(count) = plan.kind {
        record.message = plan.message.as_bytes().to_vec();
        history = Some(add_history(plan, &record, count)?);
    }
    if plan.kind != Kind::Deferred {
        record_at.offset = (plan.place)(record.encoded_len())?;
    }
    let mut made = edit(
        engine,
        Some(tree),
        plan.changes,
        record.generation,
        plan.place,
    )?;
    record.root = Root {
        node: made.root,
        level: made.level,
    };
    let mut pieces = std::mem::take(&mut made.nodes);
    let mut placed = std::mem::take(&mut made.added);
    // The checksum of what does not move is of no use to the map of free space.
    placed.extend(pieces.iter().map(|(offset, bytes)| Extent {
        offset: *offset,
        len: bytes.len() as u64,
        crc: 0,
    }));
    if plan.kind != Kind::Deferred {
        let (bytes, crc) = record.encode();
        record_at.len = bytes.len() as u64;
        record_at.crc = crc;
        placed.push(record_at);
        pieces.push((record_at.offset, bytes));
    }
    let ends = placed.iter().map(|e| e.offset.saturating_add(e.len));
    let end = ends.max().unwrap_or(0).max(plan.payloads_end);
    let slot = slot(plan, &record, record_at, end, &made);
    let tree = open::tree_of(&slot);
    Ok(Build {
        writes: joined(pieces),
        committed: Committed {
            slot,
            tree,
            retained: false,
            deferred: None,
        },
        history,
        placed,
        freed: made.freed,
        changed: record.changed,
    })
}

/// The record as far as it is known before the tree is.
fn first_draft(plan: &Plan<'_>) -> Result<CommitRecord> {
    let slot = plan.durable;
    let generation = slot.generation.saturating_add(1);
    if generation >= GENERATION_END {
        return Err(Error::limit("generations")
            .expected("less than 2^61")
            .found(generation));
    }
    let next = slot.time.checked_add(1).ok_or_else(|| {
        Error::limit("commit time")
            .expected("less than the largest i64")
            .found(slot.time)
    })?;
    let engine = plan.base.engine();
    let now = (engine.options().clock)().unwrap_or(i64::MIN);
    Ok(CommitRecord {
        generation,
        previous: Some(slot.record),
        root: slot.root,
        time: now.max(next),
        uuid: engine.header().uuid,
        changed: 0,
        message: Vec::new(),
    })
}

/// Pieces by place, those that follow one another joined with zeros in the gaps that alignment leaves.
fn joined(mut pieces: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    pieces.sort_unstable_by_key(|(offset, _)| *offset);
    let mut writes: Vec<(u64, Vec<u8>)> = Vec::new();
    for (offset, bytes) in pieces {
        if let Some((start, before)) = writes.last_mut() {
            let end = start.saturating_add(before.len() as u64);
            if end.next_multiple_of(ALIGN) == offset {
                before.resize(before.len().next_multiple_of(ALIGN_USIZE), 0);
                before.extend_from_slice(&bytes);
                continue;
            }
        }
        writes.push((offset, bytes));
    }
    writes
}

fn slot(plan: &Plan<'_>, record: &CommitRecord, record_at: Extent, end: u64, made: &Edit) -> Slot {
    let base = plan.base.slot();
    Slot {
        generation: record.generation,
        time: record.time,
        committed_end: end.max(base.committed_end),
        root: record.root,
        compact: false,
        unconfirmed: false,
        record: record_at,
        horizon: plan.horizon,
        live_payload: moved(base.live_payload, made.live.payload),
        live_index: moved(base.live_index, made.live.index),
        next_object_id: plan.next_object_id,
        ro_compat: 0,
        compat: 0,
        writer_version: plan.base.engine().options().writer_version,
        writer_id: plan.writer_id,
        header_crc: base.header_crc,
    }
}

/// A counter after a change. The file's own number is advisory, so a wrong one saturates.
fn moved(count: u64, by: i128) -> u64 {
    let sum = i128::from(count).saturating_add(by);
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}

/// Adds the record of this commit, and drops the oldest when there would be too many. Gives their number afterwards.
fn add_history(plan: &mut Plan<'_>, record: &CommitRecord, count: u64) -> Result<u64> {
    let mut own: Vec<Change> = Vec::new();
    if count >= HISTORY_MAX {
        own.extend(oldest(plan.base)?.into_iter().map(|key| (key, None)));
    }
    let count = count.saturating_sub(own.len() as u64).saturating_add(1);
    let value = HistoryRecord {
        time: record.time,
        changed: record.changed,
        restore: plan.restore,
        message: plan.message.to_owned(),
    };
    let key = key::history(record.generation);
    own.push((key, Some(Value::from_vec(value.encode()))));
    // The history is the commit's own: what anybody else has staged there is dropped.
    let below = |tag: u8| {
        plan.changes
            .partition_point(|(key, _)| key.first() < Some(&tag))
    };
    let range = below(tag::HISTORY)..below(tag::HISTORY + 1);
    plan.changes.splice(range, own);
    Ok(count)
}

/// [`ALIGN`], for lengths in memory.
const ALIGN_USIZE: usize = 8;
const HISTORY: [u8; 1] = [tag::HISTORY];
const AFTER_HISTORY: [u8; 1] = [tag::HISTORY + 1];

fn oldest(base: &SnapshotState) -> Result<Vec<Key>> {
    let mut cursor = base.index_cursor(&HISTORY, &AFTER_HISTORY)?;
    let mut keys = Vec::new();
    while (keys.len() as u64) < HISTORY_DROP {
        let Some(key) = cursor.key() else { break };
        keys.push(Key::from_slice(key));
        cursor.advance()?;
    }
    Ok(keys)
}

/// How many history records a generation has, counted no further than a writer keeps.
pub(super) fn count_history(base: &SnapshotState) -> Result<u64> {
    let mut cursor = base.index_cursor(&HISTORY, &AFTER_HISTORY)?;
    let mut count = 0_u64;
    while cursor.key().is_some() && count < HISTORY_MAX {
        count = count.saturating_add(1);
        cursor.advance()?;
    }
    Ok(count)
}

/// What the history says, newest last.
pub(super) fn history(base: &SnapshotState) -> Result<Vec<(Generation, HistoryRecord)>> {
    let mut cursor = base.index_cursor(&HISTORY, &AFTER_HISTORY)?;
    let mut all = Vec::new();
    while let Some(entry) = cursor.peek() {
        all.push((
            key::split_generation(entry.key)?,
            HistoryRecord::decode(entry.value, entry.at)?,
        ));
        cursor.advance()?;
    }
    Ok(all)
}
