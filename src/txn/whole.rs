//! A file written whole. Spec: `format-spec/12-space.md`, "Compaction", and `09-commit.md`, R-9.20.
//!
//! Holds [`Layout`], which gives every node and extent of a [`Draft`] its place, and the writing of a file in it. Payloads
//! pass as they are stored, verified and never decoded. Must not give the file its name: `publish` does.
//!
//! Invariant: places are a function of the draft and the alignments alone.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slotted;
use std::ops::ControlFlow;

use crate::bytes::Writer;
use crate::error::{Error, Result};
use crate::format::blob::Blob;
use crate::format::commit::{CommitRecord, FIXED_LEN};
use crate::format::extent::{Extent, NodeRef};
use crate::format::header::Header;
use crate::format::key::{self, Value, tag};
use crate::format::node::Node;
use crate::format::pack::{Entries, encode};
use crate::format::record::{ChunkRecord, Owner, extent_of};
use crate::format::slot::{Root, Slot, slot_index, slot_offset};
use crate::format::snapshot::SnapshotRecord;
use crate::format::{ALIGN, DATA_START, Generation, ObjectId};
use crate::index::{Load, Tree, Visit, Visited, walk};
use crate::limits::GENERATION_END;
use crate::store::Storage;

use super::Draft;
use super::payload::Payload;

/// Extents end below this in a draft.
const END: u64 = 1 << 62;
/// Bytes gathered before one write.
const GATHER: usize = 1 << 20;
/// Payloads from here on are written by themselves.
const LARGE: usize = 256 << 10;
/// More than this is never fetched at once, whatever the header says.
const FRONT_MAX: u64 = 16 << 20;

/// What a file written whole says about itself.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) uuid: [u8; 16],
    /// The file it replaces; zero: none.
    pub(crate) parent: [u8; 16],
    pub(crate) created: i64,
    pub(crate) application: [u8; 16],
    /// The older of its two generations.
    pub(crate) first: Generation,
    /// When that was; the other is a nanosecond later.
    pub(crate) time: i64,
    pub(crate) next_object_id: u64,
    pub(crate) writer_id: [u8; 16],
    pub(crate) writer_version: u32,
}

/// What came of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Payloads and blobs that were passed through.
    pub(crate) extents: u64,
    /// Bytes of those.
    pub(crate) payload: u64,
}

/// An extent of the source and its place in the new file.
#[derive(Debug, Clone, Copy)]
struct Moved {
    from: Extent,
    to: u64,
}

/// Where everything of a draft goes.
pub(crate) struct Layout {
    /// New positions of nodes, by their positions in the draft.
    nodes: HashMap<u64, u64>,
    /// Ascending places.
    extents: Vec<Moved>,
    places: HashMap<(u64, u64), u64>,
    front_end: u64,
    index_end: u64,
    end: u64,
    live_payload: u64,
    live_index: u64,
}

impl Layout {
    /// Lays out `draft`; `align` gives the alignment of a payload by its array and length,
    /// a power of two.
    pub(crate) fn new(draft: &Draft, align: &dyn Fn(ObjectId, u64) -> u64) -> Result<Self> {
        let mut layout = Self {
            nodes: HashMap::new(),
            extents: Vec::new(),
            places: HashMap::new(),
            front_end: 0,
            index_end: records_end(),
            end: 0,
            live_payload: 0,
            live_index: 0,
        };
        let current = draft.current()?;
        let mut own = Additions::of(draft, &current, &layout.nodes, align)?;
        (layout.live_payload, layout.live_index) = (own.payload_bytes, own.index_bytes);
        // Catalog leaves, the root and the branches from the top down, then all other leaves: each in key order.
        own.nodes.sort_by_key(|n| n.rank(current.root.offset));
        for node in &own.nodes {
            layout.place_node(node)?;
            if node.rank(current.root.offset) < OTHER_LEAF {
                layout.front_end = layout.index_end;
            }
        }
        let mut additions = vec![own];
        for tree in draft.trees.iter().rev().skip(1) {
            let more = Additions::of(draft, tree, &layout.nodes, align)?;
            for node in &more.nodes {
                layout.place_node(node)?;
            }
            additions.push(more);
        }
        layout.end = layout.index_end;
        for one in &additions {
            for &(extent, align) in one.blobs.iter().chain(&one.payloads) {
                layout.place_extent(extent, align)?;
            }
        }
        Ok(layout)
    }

    fn place_node(&mut self, node: &Found) -> Result<()> {
        let at = self.index_end.next_multiple_of(ALIGN);
        self.index_end = bounded(at.saturating_add(u64::from(node.len)))?;
        self.nodes.insert(node.offset, at);
        Ok(())
    }

    fn place_extent(&mut self, from: Extent, align: u64) -> Result<()> {
        if let Slotted::Vacant(vacant) = self.places.entry((from.offset, from.len)) {
            let to = self.end.next_multiple_of(align.max(ALIGN));
            self.end = bounded(to.saturating_add(from.len))?;
            vacant.insert(to);
            self.extents.push(Moved { from, to });
        }
        Ok(())
    }

    /// The place of an extent of the draft.
    fn moved(&self, extent: Extent) -> Result<Extent> {
        let place = self.places.get(&(extent.offset, extent.len));
        let offset = place.copied().ok_or_else(misplaced)?;
        Ok(Extent { offset, ..extent })
    }

    /// Writes the file that `form` describes to `target`, payloads as `read` gives them, verified; none when `progress` ends it,
    /// which is told how many of how many bytes of payload are written. Does not sync.
    ///
    /// # Errors
    /// `Corrupt` where a payload of the source is damaged; `Io`.
    pub(crate) fn write(
        &self,
        draft: &Draft,
        form: &Form,
        read: &dyn Fn(Extent) -> Result<Payload>,
        target: &dyn Storage,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Written>> {
        let front = self.index(draft, form)?;
        target.write_all_at(0, &front).map_err(refuse)?;
        drop(front);
        let total = self.extents.iter().map(|m| m.from.len).sum();
        let mut out = Gather::new(target, self.index_end);
        let mut done = 0_u64;
        for moved in &self.extents {
            if progress(done, total).is_break() {
                return Ok(None);
            }
            match draft.own_bytes(&moved.from) {
                Some(bytes) => out.put(moved.to, bytes)?,
                None => {
                    let payload = read(moved.from)?;
                    out.put(moved.to, &payload)?;
                }
            }
            done = done.saturating_add(moved.from.len);
        }
        out.flush()?;
        // A file without payloads ends with its index, which has been written.
        if progress(total, total).is_break() {
            return Ok(None);
        }
        Ok(Some(Written {
            bytes: self.end,
            extents: self.extents.len() as u64,
            payload: total,
        }))
    }

    /// Everything before the first extent.
    fn index(&self, draft: &Draft, form: &Form) -> Result<Vec<u8>> {
        let len = usize::try_from(self.index_end).map_err(|_| misplaced())?;
        let mut bytes = vec![0; len];
        let mut done: HashMap<u64, NodeRef> = HashMap::new();
        for tree in &draft.trees {
            let mut order = Order {
                done: &done,
                found: Vec::new(),
            };
            walk(draft, tree, &mut order)?;
            // Children first: their checksums stand in their parents, and those of retained roots in records.
            for reference in order.found.into_iter().rev() {
                let node = draft.load(&reference)?;
                let (encoded, crc) = self.moved_node(&node, &done)?;
                let at = self.nodes.get(&reference.offset);
                let offset = at.copied().ok_or_else(misplaced)?;
                lay(&mut bytes, offset, &encoded)?;
                done.insert(
                    reference.offset,
                    NodeRef {
                        offset,
                        crc,
                        ..reference
                    },
                );
            }
        }
        let current = draft.current()?;
        let node = done.get(&current.root.offset).ok_or_else(misplaced)?;
        let root = Root {
            node: *node,
            level: current.level,
        };
        for (offset, part) in self.head(form, root)? {
            lay(&mut bytes, offset, &part)?;
        }
        Ok(bytes)
    }

    /// A node with the new places of all that it names.
    fn moved_node(&self, node: &Node, done: &HashMap<u64, NodeRef>) -> Result<(Vec<u8>, u32)> {
        let find = |offset: u64| done.get(&offset).copied().ok_or_else(misplaced);
        let mut entries = Entries::default();
        for i in 0..node.count() {
            let (suffix, value) = (node.suffix(i), node.value(i));
            if node.is_leaf() {
                let value = self.moved_value(&node.key(i), value, &find)?;
                entries.push(node.prefix(), suffix, &value);
            } else {
                let mut w = Writer::with_capacity(NodeRef::LEN);
                find(node.child(i)?.offset)?.encode(&mut w);
                entries.push(node.prefix(), suffix, w.as_slice());
            }
        }
        let (bytes, crc) = encode(&entries, 0..entries.len(), node.level(), node.birth())?;
        if bytes.len() != node.byte_len() {
            return Err(misplaced());
        }
        Ok((bytes, crc))
    }

    fn moved_value(
        &self,
        key: &[u8],
        value: &[u8],
        find: &dyn Fn(u64) -> Result<NodeRef>,
    ) -> Result<Value> {
        match key.first() {
            Some(&tag::CHUNK) => Ok(match ChunkRecord::decode(value, 0, END)? {
                ChunkRecord::Stored { extent, mask } => {
                    let extent = self.moved(extent)?;
                    ChunkRecord::Stored { extent, mask }.encode()
                }
                _ => Value::from_slice(value),
            }),
            Some(&(tag::DOCUMENT | tag::ATTRIBUTE)) => match Blob::decode(value)? {
                Blob::Stored(content, extent) => {
                    Blob::Stored(content, self.moved(extent)?).encode()
                }
                Blob::Inline(..) => Ok(Value::from_slice(value)),
            },
            Some(&tag::SNAPSHOT) => {
                let record = SnapshotRecord::decode(value, 0)?;
                let root = Root {
                    node: find(record.root.node.offset)?,
                    level: record.root.level,
                };
                Ok(Value::from_vec(SnapshotRecord { root, ..record }.encode()))
            }
            _ => Ok(Value::from_slice(value)),
        }
    }

    /// Header, slots and commit records, and where they go.
    fn head(&self, form: &Form, root: Root) -> Result<[(u64, Vec<u8>); 5]> {
        let second = form.first.saturating_add(1);
        let later = form.time.checked_add(1);
        let (true, Some(later)) = (second < GENERATION_END, later) else {
            return Err(Error::limit("generations and times")
                .expected("room for two more")
                .found(format_args!("generation {}", form.first)));
        };
        let front_len = self.front_end.min(FRONT_MAX);
        let header = Header::whole(
            form.uuid,
            form.created,
            form.application,
            front_len,
            form.parent,
        );
        let first = CommitRecord {
            generation: form.first,
            previous: None,
            root,
            time: form.time,
            uuid: form.uuid,
            changed: 0,
            message: Vec::new(),
        };
        let (first_bytes, first_at) = placed(&first, DATA_START);
        let record = CommitRecord {
            generation: second,
            previous: Some(first_at),
            time: later,
            ..first
        };
        let (second_bytes, second_at) = placed(&record, DATA_START.saturating_add(record_stride()));
        let older = Slot {
            generation: form.first,
            time: form.time,
            committed_end: self.end,
            root,
            compact: true,
            unconfirmed: false,
            record: first_at,
            horizon: form.first.saturating_sub(1),
            live_payload: self.live_payload,
            live_index: self.live_index,
            next_object_id: form.next_object_id,
            ro_compat: 0,
            compat: 0,
            writer_version: form.writer_version,
            writer_id: form.writer_id,
            header_crc: header.crc,
        };
        let newer = Slot {
            generation: second,
            time: later,
            record: second_at,
            horizon: form.first,
            ..older.clone()
        };
        let slot = |s: &Slot| (slot_offset(slot_index(s.generation)), s.encode());
        Ok([
            (0, header.encode()),
            slot(&older),
            slot(&newer),
            (first_at.offset, first_bytes),
            (second_at.offset, second_bytes),
        ])
    }
}

/// From one commit record of a file made whole to the next.
fn record_stride() -> u64 {
    (FIXED_LEN as u64).next_multiple_of(ALIGN)
}

/// Where the first node lies.
fn records_end() -> u64 {
    DATA_START.saturating_add(record_stride().saturating_mul(2))
}

fn placed(record: &CommitRecord, offset: u64) -> (Vec<u8>, Extent) {
    let (bytes, crc) = record.encode();
    let len = bytes.len() as u64;
    (bytes, Extent { offset, len, crc })
}

fn lay(bytes: &mut [u8], offset: u64, part: &[u8]) -> Result<()> {
    let at = usize::try_from(offset).map_err(|_| misplaced())?;
    let place = bytes.get_mut(at..).and_then(|b| b.get_mut(..part.len()));
    place.ok_or_else(misplaced)?.copy_from_slice(part);
    Ok(())
}

/// Locks live from 2^62 on; no data may reach them.
fn bounded(end: u64) -> Result<u64> {
    if end < 1 << 62 {
        return Ok(end);
    }
    Err(Error::limit("container length").expected("less than 2^62 bytes"))
}

/// A bug of this file: the draft and its layout do not fit together.
fn misplaced() -> Error {
    Error::invalid("layout of a new file").expected("a place for everything its index names")
}

fn refuse(e: std::io::Error) -> Error {
    Error::io("cannot write the new file", e)
}

/// A node of the draft.
struct Found {
    offset: u64,
    len: u32,
    level: u8,
    /// Its first key belongs to the catalog.
    catalog: bool,
}

/// Rank of leaves that no catalog key begins.
const OTHER_LEAF: u16 = u16::MAX;

impl Found {
    fn rank(&self, root: u64) -> u16 {
        match self.level {
            0 if self.offset == root => 1,
            0 if self.catalog => 0,
            0 => OTHER_LEAF,
            // The higher the earlier; levels are at most 12.
            level => 256_u16.saturating_sub(u16::from(level)),
        }
    }
}

/// What one tree adds to a file: nodes and extents in key order.
#[derive(Default)]
struct Additions {
    nodes: Vec<Found>,
    blobs: Vec<(Extent, u64)>,
    payloads: Vec<(Extent, u64)>,
    payload_bytes: u64,
    index_bytes: u64,
}

impl Additions {
    /// Those of `tree` whose nodes are not among `placed`.
    fn of(
        draft: &Draft,
        tree: &Tree,
        placed: &HashMap<u64, u64>,
        align: &dyn Fn(ObjectId, u64) -> u64,
    ) -> Result<Self> {
        let mut census = Census {
            placed,
            align,
            found: Self::default(),
        };
        walk(draft, tree, &mut census)?;
        Ok(census.found)
    }
}

struct Census<'a> {
    placed: &'a HashMap<u64, u64>,
    align: &'a dyn Fn(ObjectId, u64) -> u64,
    found: Additions,
}

impl Visit for Census<'_> {
    fn enter(&mut self, reference: &NodeRef, _level: u8) -> bool {
        !self.placed.contains_key(&reference.offset)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let node = visited.node;
        let len = u64::from(visited.reference.len);
        self.found.index_bytes = self.found.index_bytes.saturating_add(len);
        self.found.nodes.push(Found {
            offset: visited.reference.offset,
            len: visited.reference.len,
            level: node.level(),
            catalog: node.first_key().first() <= Some(&tag::ATTRIBUTE),
        });
        if !node.is_leaf() {
            return Ok(());
        }
        for i in 0..node.count() {
            let key = node.key(i);
            match extent_of(&key, node.value(i), 0, END)? {
                Some((extent, Owner::Payload)) => {
                    self.found.payload_bytes = self.found.payload_bytes.saturating_add(extent.len);
                    let (array, _) = key::split_object(&key)?;
                    self.found
                        .payloads
                        .push((extent, (self.align)(array, extent.len)));
                }
                Some((extent, Owner::Blob)) => {
                    self.found.index_bytes = self.found.index_bytes.saturating_add(extent.len);
                    self.found.blobs.push((extent, ALIGN));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// The nodes of a tree that are not done yet, parents first.
struct Order<'a> {
    done: &'a HashMap<u64, NodeRef>,
    found: Vec<NodeRef>,
}

impl Visit for Order<'_> {
    fn enter(&mut self, reference: &NodeRef, _level: u8) -> bool {
        !self.done.contains_key(&reference.offset)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        self.found.push(*visited.reference);
        Ok(())
    }
}

/// Writes ascending pieces, small ones together, with zeros between them.
struct Gather<'t> {
    target: &'t dyn Storage,
    start: u64,
    bytes: Vec<u8>,
}

impl<'t> Gather<'t> {
    fn new(target: &'t dyn Storage, start: u64) -> Self {
        Self {
            target,
            start,
            bytes: Vec::new(),
        }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let upto = usize::try_from(at.saturating_sub(self.start)).map_err(|_| misplaced())?;
        self.bytes.resize(upto, 0);
        if bytes.len() >= LARGE {
            self.flush()?;
            self.target.write_all_at(at, bytes).map_err(refuse)?;
            self.start = at.saturating_add(bytes.len() as u64);
            return Ok(());
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() >= GATHER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.bytes.is_empty() {
            self.target
                .write_all_at(self.start, &self.bytes)
                .map_err(refuse)?;
            self.start = self.start.saturating_add(self.bytes.len() as u64);
            self.bytes.clear();
        }
        Ok(())
    }
}
