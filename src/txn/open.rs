//! Opening: which generation a file holds. Spec: `format-spec/09-commit.md`, "Opening".
//!
//! Holds the slot rules and the open report. Writes nothing, on any path.
//!
//! Invariants: only a slot whose own checksum is wrong yields to the other; nothing is judged from one slot while a
//! writer lives; nobody waits longer than a second.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::format::commit::CommitRecord;
use crate::format::extent::Extent;
use crate::format::header::{HEADER_LEN, Header};
use crate::format::slot::{Slot, SlotState, slot_offset};
use crate::format::{BLOCK, Generation};
use crate::index::{Load, Tree};
use crate::store::lock::WRITER;
use crate::store::{LockMode, Storage};

/// Bytes of the two slot blocks.
const SLOTS_LEN: usize = 8192;
/// What is read first: the header, and enough more to recognise a foreign file.
const HEAD_LEN: u64 = 512;
/// How long one slot must stay as it is before the other is judged lost.
const STILL: Duration = Duration::from_millis(10);
/// Nobody waits longer for a valid pair.
const PATIENCE: Duration = Duration::from_secs(1);

/// What opening found.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenReport {
    /// The generation in use.
    pub generation: Generation,
    /// The state of the slot that is not in use.
    pub other_slot: OtherSlot,
    /// The other slot is invalid: it may have held a newer generation that was never acknowledged, or was damaged.
    pub fell_back: bool,
    /// A failed sync left it open whether the generation in use is on disk.
    pub unconfirmed: bool,
    /// Bytes after the last committed one, left by a writer that did not finish.
    pub ignored_tail_bytes: u64,
}

/// The slot that is not in use.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherSlot {
    /// It holds the generation before.
    Valid,
    /// Its checksum is wrong.
    Invalid,
    /// It holds the generation before, which a failed sync had left in doubt.
    Unconfirmed,
}

/// The two slots, judged.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) newest: Slot,
    /// None: invalid.
    pub(super) other: Option<Slot>,
}

impl Pair {
    /// What the pair says to the one who opens, in a file of `file_len` bytes.
    pub(super) fn report(&self, file_len: u64) -> OpenReport {
        OpenReport {
            generation: self.newest.generation,
            other_slot: match &self.other {
                None => OtherSlot::Invalid,
                Some(slot) if slot.unconfirmed => OtherSlot::Unconfirmed,
                Some(_) => OtherSlot::Valid,
            },
            fell_back: self.other.is_none(),
            unconfirmed: self.newest.unconfirmed,
            ignored_tail_bytes: file_len.saturating_sub(self.newest.committed_end),
        }
    }
}

/// Reads the header of the container in `storage`.
pub(super) fn read_header(storage: &dyn Storage) -> Result<Header> {
    let refuse = |e| Error::io("cannot read the header", e).at(0);
    let len = storage.len().map_err(refuse)?;
    let mut head = vec![0; usize::try_from(len.min(HEAD_LEN)).unwrap_or(0)];
    storage.read_exact_at(0, &mut head).map_err(refuse)?;
    debug_assert!(HEADER_LEN as u64 <= HEAD_LEN);
    Header::decode(&head, len)
}

/// Reads and judges both slots. `alone`: the caller holds the writer's lock, so that nobody writes meanwhile.
///
/// # Errors
/// `Corrupt` and `Unsupported` by the slot rules, `Busy` when a writer kept the pair in motion for a second.
pub(super) fn read_slots(storage: &dyn Storage, header: &Header, alone: bool) -> Result<Pair> {
    let mut block = read_block(storage)?;
    let alone = alone || !storage.is_shared();
    if let Some(pair) = judge(&block, header, alone)? {
        return Ok(pair);
    }
    let started = Instant::now();
    let mut still_since = started;
    loop {
        if started.elapsed() >= PATIENCE {
            return Err(Error::busy("a writer is at work and one slot is invalid")
                .help("try again when the writer has committed or gone"));
        }
        sleep(Duration::from_millis(1));
        let next = read_block(storage)?;
        if next != block {
            block = next;
            still_since = Instant::now();
        }
        let settled = still_since.elapsed() >= STILL && !writer_lives(storage)?;
        if let Some(pair) = judge(&block, header, settled)? {
            return Ok(pair);
        }
    }
}

fn read_block(storage: &dyn Storage) -> Result<Vec<u8>> {
    let mut block = vec![0; SLOTS_LEN];
    storage
        .read_exact_at(BLOCK, &mut block)
        .map_err(|e| Error::io("cannot read the slots", e).at(BLOCK))?;
    Ok(block)
}

/// Whether a writer holds its lock; where that cannot be asked, stillness of the block has to do.
fn writer_lives(storage: &dyn Storage) -> Result<bool> {
    match storage.conflict(WRITER..WRITER.saturating_add(1), LockMode::Shared) {
        Ok(holder) => Ok(holder.is_some()),
        Err(e) if e.kind() == std::io::ErrorKind::Unsupported => Ok(false),
        Err(e) => Err(Error::io("cannot ask for the writer's lock", e)),
    }
}

/// The pair in `block`; none when it is not sound and `settled` does not say that it will stay so.
///
/// Two valid slots whose generations are not neighbours are unsound too: a read that two commits overtook sees such.
fn judge(block: &[u8], header: &Header, settled: bool) -> Result<Option<Pair>> {
    let (a, b) = block
        .split_at_checked(SLOTS_LEN >> 1)
        .unwrap_or((block, &[]));
    let pair = match (
        Slot::decode(a, 0, header.crc)?,
        Slot::decode(b, 1, header.crc)?,
    ) {
        (SlotState::Valid(a), SlotState::Valid(b)) => {
            let (newest, other) = if a.generation > b.generation {
                (a, b)
            } else {
                (b, a)
            };
            if newest.generation == other.generation.saturating_add(1) {
                return Ok(Some(Pair {
                    newest: *newest,
                    other: Some(*other),
                }));
            }
            Err(Error::corrupt("slots")
                .at(slot_offset(0))
                .expected("generations that differ by one")
                .found(format_args!(
                    "{} and {}",
                    other.generation, newest.generation
                )))
        }
        (SlotState::Valid(only), SlotState::Invalid)
        | (SlotState::Invalid, SlotState::Valid(only)) => Ok(Pair {
            newest: *only,
            other: None,
        }),
        (SlotState::Invalid, SlotState::Invalid) => Err(Error::corrupt("slots")
            .at(slot_offset(0))
            .expected("at least one with a right checksum")
            .found("none")
            .help("restore the file from a copy")),
    };
    if settled { pair.map(Some) } else { Ok(None) }
}

/// The slots, and the tree that the newest names. A writer may commit more than once between the look at the slots and that
/// at what they name, and write over it: then the slots are looked at again.
pub(super) fn newest(
    storage: &dyn Storage,
    load: &dyn Load,
    header: &Header,
) -> Result<(Pair, Tree)> {
    let started = Instant::now();
    let mut pair = read_slots(storage, header, false)?;
    loop {
        let e = match verify(storage, load, header, &pair.newest) {
            Ok(tree) => return Ok((pair, tree)),
            Err(e) => e,
        };
        let again = read_slots(storage, header, false)?;
        if again.newest.generation == pair.newest.generation || started.elapsed() >= PATIENCE {
            return Err(e);
        }
        pair = again;
    }
}

/// Checks what a slot names: the end of the file, the commit record, the root. There is no fallback.
pub(super) fn verify(
    storage: &dyn Storage,
    load: &dyn Load,
    header: &Header,
    slot: &Slot,
) -> Result<Tree> {
    let len = storage
        .len()
        .map_err(|e| Error::io("cannot read the length of the container", e))?;
    if slot.committed_end > len {
        return Err(Error::corrupt("container")
            .at(len)
            .expected(format_args!("at least {} bytes", slot.committed_end))
            .found(len)
            .help("the file is cut short; restore it from a copy"));
    }
    let record = read_record(storage, slot)?;
    let repeats = record.generation == slot.generation
        && record.root == slot.root
        && record.time == slot.time
        && record.uuid == header.uuid;
    if !repeats {
        return Err(Error::corrupt("commit record")
            .at(slot.record.offset)
            .expected("generation, root and time of its slot and the uuid of the header")
            .found("others"));
    }
    let tree = tree_of(slot);
    tree.load_root(load)?;
    Ok(tree)
}

/// The tree a slot names.
pub(super) fn tree_of(slot: &Slot) -> Tree {
    Tree {
        root: slot.root.node,
        level: slot.root.level,
        generation: slot.generation,
        end: slot.committed_end,
    }
}

fn read_record(storage: &dyn Storage, slot: &Slot) -> Result<CommitRecord> {
    record_at(storage, slot.record)
}

/// The commit record at `at`, whose length has been bounded.
pub(super) fn record_at(storage: &dyn Storage, at: Extent) -> Result<CommitRecord> {
    let mut bytes = vec![0; usize::try_from(at.len).unwrap_or(0)];
    storage
        .read_exact_at(at.offset, &mut bytes)
        .map_err(|e| Error::io("cannot read the commit record", e).at(at.offset))?;
    let record = CommitRecord::decode(&bytes, at.offset)?;
    let (_, crc) = record.encode();
    if crc != at.crc {
        return Err(Error::corrupt("commit record")
            .at(at.offset)
            .expected(format_args!("crc32c {:08x}, as its slot says", at.crc))
            .found(format_args!("{crc:08x}")));
    }
    Ok(record)
}
