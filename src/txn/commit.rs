//! What a commit writes. Spec: `format-spec/09-commit.md`, "The commit protocol".
//!
//! Holds [`build`], which lays out the commit record, the new nodes and the slot of one generation. Must not write:
//! `writer` does, in the protocol's order.

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
    pub(super) base: &'a SnapshotState,
    /// Ascending unique keys.
    pub(super) changes: &'a mut Vec<Change>,
    /// First byte of a block that holds nothing committed and none of this transaction's payloads.
    pub(super) start: u64,
    pub(super) message: &'a str,
    pub(super) next_object_id: u64,
    pub(super) writer_id: [u8; 16],
    /// None for a generation without a history record (healing); else how many records there are.
    pub(super) history: Option<u64>,
    /// The changes bring back an older generation.
    pub(super) restore: bool,
}

/// A generation ready to be written.
pub(super) struct Build {
    /// Record and nodes, to be written at the plan's start.
    pub(super) bytes: Vec<u8>,
    pub(super) committed: Committed,
    /// History records in the new tree, where the plan counted them.
    pub(super) history: Option<u64>,
}

/// Lays out the generation after `plan.base`. Adds the history's own changes to the plan's.
pub(super) fn build(plan: &mut Plan<'_>) -> Result<Build> {
    let mut record = first_draft(plan.base)?;
    let engine = plan.base.engine().as_ref();
    let tree = plan.base.tree();
    let mut history = None;
    if let Some(count) = plan.history {
        record.changed = count_changes(engine, tree, plan.changes)?;
        record.message = plan.message.as_bytes().to_vec();
        history = Some(add_history(plan, &record, count)?);
    }
    let mut end = plan.start.saturating_add(record.encoded_len() as u64);
    let mut place = |len: usize| {
        let at = end.next_multiple_of(ALIGN);
        end = at.saturating_add(len as u64);
        // Locks live from 2^62 on; no data may reach them.
        if end >= 1 << 62 {
            return Err(Error::limit("container length").expected("less than 2^62 bytes"));
        }
        Ok(at)
    };
    let made = edit(
        engine,
        Some(tree),
        plan.changes,
        record.generation,
        &mut place,
    )?;
    record.root = Root {
        node: made.root,
        level: made.level,
    };
    let (bytes, record_at) = lay_out(plan.start, &record, &made)?;
    let slot = slot(plan, &record, record_at, end, &made);
    let tree = open::tree_of(&slot);
    Ok(Build {
        bytes,
        committed: Committed {
            slot,
            tree,
            retained: false,
        },
        history,
    })
}

/// The record as far as it is known before the tree is.
fn first_draft(base: &SnapshotState) -> Result<CommitRecord> {
    let slot = base.slot();
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
    let now = (base.engine().options().clock)().unwrap_or(i64::MIN);
    Ok(CommitRecord {
        generation,
        previous: Some(slot.record),
        root: slot.root,
        time: now.max(next),
        uuid: base.engine().header().uuid,
        changed: 0,
        message: Vec::new(),
    })
}

/// The bytes of record and nodes from `start` on, and where the record lies.
fn lay_out(start: u64, record: &CommitRecord, made: &Edit) -> Result<(Vec<u8>, Extent)> {
    let (mut bytes, crc) = record.encode();
    let record_at = Extent {
        offset: start,
        len: bytes.len() as u64,
        crc,
    };
    for (at, node) in &made.nodes {
        let at = usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX);
        if at < bytes.len() {
            return Err(Error::corrupt("layout of a commit")
                .expected("ascending nodes")
                .found(at));
        }
        bytes.resize(at, 0);
        bytes.extend_from_slice(node);
    }
    Ok((bytes, record_at))
}

fn slot(plan: &Plan<'_>, record: &CommitRecord, record_at: Extent, end: u64, made: &Edit) -> Slot {
    let base = plan.base.slot();
    Slot {
        generation: record.generation,
        time: record.time,
        committed_end: end,
        root: record.root,
        compact: false,
        unconfirmed: false,
        record: record_at,
        // Space is not reused yet, so every root that ever was whole still is: the horizon stays where it was. It never
        // decreases, and reuse will raise it one commit ahead of what it overwrites.
        horizon: base.horizon,
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
