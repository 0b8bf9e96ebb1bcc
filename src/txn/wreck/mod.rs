//! A damaged file: what of its index can still be trusted. Spec: `format-spec/12-space.md`, "Salvage".
//!
//! Holds [`Wreck`], which opens what opening refuses, and chooses the root that everything is taken from. Reads only. Must
//! not judge what entries mean, nor write: `salvage` does the one, [`super::Layout`] the other.
//!
//! Invariants: nothing is given out whose checksum was not compared; no length found in the file sizes an allocation beyond
//! the file's own length.

mod holes;
mod scan;

use std::collections::BTreeMap;
use std::ops::Range;
#[cfg(any(unix, windows))]
use std::path::Path;
use std::sync::Arc;

use crate::bytes::Reader;
use crate::error::{Error, ErrorKind, Result};
use crate::format::commit::{self, CommitRecord};
use crate::format::extent::{Extent, NodeRef};
use crate::format::header::{HEADER_LEN, Header};
use crate::format::node::Node;
use crate::format::slot::{SLOT_LEN, Slot, SlotState, slot_offset};
use crate::format::{BLOCK, DATA_START, Generation};
use crate::index::{Load, Tree};
use crate::limits::MESSAGE_LEN_MAX;
use crate::store::lock::WRITER;
#[cfg(any(unix, windows))]
use crate::store::{Access, Directory, Folder};
use crate::store::{LockMode, Storage};

use super::open::{record_at, tree_of};
use super::{EngineOptions, Form, Key, Payload, Value, payload};
use scan::Scan;

/// A file that may be damaged anywhere.
#[derive(Debug)]
pub(crate) struct Wreck {
    storage: Arc<dyn Storage>,
    len: u64,
    header: Option<Header>,
    /// Why there is no header.
    header_fault: Option<Error>,
}

/// What led to the entries of a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A superblock slot.
    Slot,
    /// A commit record that was found in the file.
    Record,
    /// Nodes alone.
    Nodes,
}

/// The index of a damaged file, as far as it verifies.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) origin: Origin,
    pub(crate) generation: Generation,
    pub(crate) time: i64,
    /// At least this for the next object; none where no slot says it.
    pub(crate) next_object_id: u64,
    /// Values and their places, by key.
    pub(crate) entries: BTreeMap<Key, (Value, u64)>,
    /// How many of those come from older nodes, in the place of damaged ones.
    pub(crate) recovered: u64,
    /// What was wrong on the way.
    pub(crate) faults: Vec<Error>,
}

/// A root that may be taken.
#[derive(Debug, Clone)]
struct Base {
    origin: Origin,
    tree: Tree,
    time: i64,
    next_object_id: u64,
    record: Option<Extent>,
}

impl Wreck {
    /// Opens the file at `path` for reading. Nobody may be writing to it.
    ///
    /// # Errors
    /// `Io`, `Busy` beside a writer, `Unsupported` for another version; `NotContainer` for an empty file.
    #[cfg(any(unix, windows))]
    pub(crate) fn open_at(path: &Path) -> Result<Self> {
        let open = || {
            let (folder, name) = Directory::of(path, Access::Read)?;
            Self::new(folder.open(&name, false)?)
        };
        open().map_err(|e| e.in_file(path))
    }

    /// As [`Wreck::open_at`], on any medium.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Result<Self> {
        let len = storage
            .len()
            .map_err(|e| Error::io("cannot read the length of the container", e))?;
        let writer = storage.conflict(WRITER..WRITER.saturating_add(1), LockMode::Shared);
        if let Ok(Some(_)) = writer {
            return Err(Error::busy("a writer is at work on this file")
                .help("end it first: what it is writing looks damaged"));
        }
        let mut head = vec![0; HEADER_LEN.min(usize::try_from(len).unwrap_or(HEADER_LEN))];
        let read = storage.read_exact_at(0, &mut head);
        let read = read.map_err(|e| Error::io("cannot read the header", e).at(0));
        let (header, header_fault) = match read.and_then(|()| Header::decode(&head, len)) {
            Ok(header) => (Some(header), None),
            Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
            Err(e) => (None, Some(e)),
        };
        Ok(Self {
            storage,
            len,
            header,
            header_fault,
        })
    }

    /// Bytes of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.len
    }

    /// The index, as far as it verifies: from the newest slot; in the place of damaged nodes the newest older ones that
    /// cover their keys; without a slot from the newest commit record whose whole index verifies.
    ///
    /// # Errors
    /// What is wrong with the header where nothing at all is found; `Unsupported` for a slot of a later version.
    pub(crate) fn remains(&self) -> Result<Remains> {
        let mut faults: Vec<Error> = self.header_fault.iter().map(Error::duplicate).collect();
        let slots = self.slots(&mut faults)?;
        let mut scanned = None;
        let mut base = slots.first().map(|slot| self.of_slot(slot));
        if slots.len() < 2 {
            let scan = scanned.insert(self.scan(&mut faults));
            base = self.newer_record(base, scan);
        }
        let mut remains = Remains {
            origin: Origin::Nodes,
            generation: 0,
            time: 0,
            next_object_id: 0,
            entries: BTreeMap::new(),
            recovered: 0,
            faults,
        };
        let mut holes = Vec::new();
        if let Some(base) = &base {
            remains.origin = base.origin;
            remains.generation = base.tree.generation;
            remains.time = base.time;
            remains.next_object_id = base.next_object_id;
            self.walk(&base.tree, &mut remains.entries, &mut holes);
        } else {
            holes.push(holes::Hole::everything());
        }
        if !holes.is_empty() {
            let scan = match &scanned {
                Some(scan) => scan,
                None => scanned.insert(self.scan(&mut remains.faults)),
            };
            if base.is_none() {
                remains.generation = scan.newest_birth();
            }
            self.fill(scan, holes, &mut remains);
        }
        if remains.entries.is_empty() {
            return Err(self.nothing());
        }
        Ok(remains)
    }

    fn nothing(&self) -> Error {
        match &self.header_fault {
            Some(e) => e.duplicate(),
            None => Error::corrupt("container")
                .expected("a node of the index that verifies")
                .found("none"),
        }
    }

    /// The valid slots, the newest first.
    fn slots(&self, faults: &mut Vec<Error>) -> Result<Vec<Slot>> {
        let mut valid: Vec<Slot> = Vec::new();
        for index in [0, 1] {
            let at = slot_offset(index);
            let mut block = vec![0; SLOT_LEN];
            if let Err(e) = self.storage.read_exact_at(at, &mut block) {
                faults.push(Error::io("cannot read a slot", e).at(at));
                continue;
            }
            // Without a header the slot's own word on it has to do.
            let bound = match &self.header {
                Some(header) => header.crc,
                None => Reader::new("slot", at, block.get(248..).unwrap_or(&[])).u32()?,
            };
            match Slot::decode(&block, index, bound) {
                Ok(SlotState::Valid(slot)) => valid.push(*slot),
                Ok(SlotState::Invalid) => faults.push(
                    Error::corrupt("slot")
                        .at(at)
                        .expected("a right checksum")
                        .found("another"),
                ),
                Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                Err(e) => faults.push(e.at_or(at)),
            }
        }
        valid.sort_by_key(|slot| std::cmp::Reverse(slot.generation));
        Ok(valid)
    }

    fn of_slot(&self, slot: &Slot) -> Base {
        let mut tree = tree_of(slot);
        // Of a file that was cut short, the nodes that are there are read.
        tree.end = tree.end.max(self.len);
        Base {
            origin: Origin::Slot,
            tree,
            time: slot.time,
            next_object_id: slot.next_object_id,
            record: Some(slot.record),
        }
    }

    /// The base that a commit record leads to, where that is newer than the slot's: the very next commit, whole, whose slot
    /// was lost. Without a slot, the newest one that is whole, or else the newest one.
    fn newer_record(&self, base: Option<Base>, scan: &Scan) -> Option<Base> {
        let mut candidates: Vec<Base> = scan
            .records
            .iter()
            .filter(|(_, record)| match &base {
                None => true,
                Some(base) => {
                    record.generation == base.tree.generation.saturating_add(1)
                        && record.previous.is_some()
                        && record.previous == base.record
                }
            })
            .map(|(at, record)| self.of_record(*at, record))
            .collect();
        candidates.sort_by_key(|c| std::cmp::Reverse(c.tree.generation));
        let whole = candidates.iter().find(|c| self.is_whole(&c.tree)).cloned();
        whole.or(base).or_else(|| candidates.into_iter().next())
    }

    fn of_record(&self, at: Extent, record: &CommitRecord) -> Base {
        Base {
            origin: Origin::Record,
            tree: Tree {
                root: record.root.node,
                level: record.root.level,
                generation: record.generation,
                end: self.len,
            },
            time: record.time,
            next_object_id: 0,
            record: Some(at),
        }
    }

    fn is_whole(&self, tree: &Tree) -> bool {
        let (mut entries, mut holes) = (BTreeMap::new(), Vec::new());
        self.walk(tree, &mut entries, &mut holes);
        holes.is_empty()
    }

    /// All bytes of `extent`, verified.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn payload(&self, extent: Extent) -> Result<Payload> {
        extent.check("extent", self.len)?;
        let (offset, len) = payload::locate(extent, &(0..extent.len))?;
        let bytes = payload::read_owned(self.storage.as_ref(), offset, len)?;
        payload::verify(extent, &bytes)?;
        Ok(bytes)
    }

    /// How the new file says what it is: numbered on from what was found, with a new identity.
    pub(crate) fn form(&self, remains: &Remains, next_object_id: u64) -> Result<Form> {
        let options = EngineOptions::default();
        let next = remains.time.saturating_add(1);
        let header = self.header.as_ref();
        Ok(Form {
            uuid: options.new_uuid()?,
            parent: header.map_or([0; 16], |h| h.uuid),
            created: header.map_or(remains.time, |h| h.created),
            application: header.map_or([0; 16], |h| h.application),
            first: remains.generation.saturating_add(1),
            time: (options.clock)().map_or(next, |now| now.max(next)),
            next_object_id,
            writer_id: options.writer_id()?,
            writer_version: options.writer_version,
        })
    }

    fn node_bytes(&self, offset: u64, len: usize) -> Result<Box<[u8]>> {
        let mut bytes = vec![0; len].into_boxed_slice();
        self.storage
            .read_exact_at(offset, &mut bytes)
            .map_err(|e| Error::io("cannot read an index node", e).at(offset))?;
        Ok(bytes)
    }

    /// The commit record at `offset`, if one lies there whose checksum is right and that is this file's.
    fn record(&self, offset: u64, len: u32) -> Option<(Extent, CommitRecord)> {
        let longest = (commit::FIXED_LEN + MESSAGE_LEN_MAX) as u64;
        let len = u64::from(len);
        if len > longest || offset.checked_add(len).is_none_or(|end| end > self.len) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        self.storage.read_exact_at(offset, &mut bytes).ok()?;
        let record = CommitRecord::decode(&bytes, offset).ok()?;
        let own = self.header.as_ref().is_none_or(|h| h.uuid == record.uuid);
        let (_, crc) = record.encode();
        let at = Extent { offset, len, crc };
        // Read once more as opening does, so that there is one rule.
        (own && record_at(self.storage.as_ref(), at).is_ok()).then_some((at, record))
    }

    /// Where everything but header and slots lies.
    fn data(&self) -> Range<u64> {
        DATA_START.max(BLOCK)..self.len
    }
}

impl Load for Wreck {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        reference.check(self.len)?;
        let len = usize::try_from(reference.len).unwrap_or(0);
        let bytes = self.node_bytes(reference.offset, len)?;
        Node::parse(bytes, reference.offset).map(Arc::new)
    }
}
