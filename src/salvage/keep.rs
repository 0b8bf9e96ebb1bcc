//! Which entries of a damaged file go into the new one.
//!
//! Holds [`judge`]: objects first, from the root down, then what belongs to them. Reads payloads to verify them; writes
//! nothing.
//!
//! Invariants: what is kept passes a full check; no two kept entries share bytes, so that the new file is no longer than the
//! old one, whatever that claims; every object is reached once from the root.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use crate::array::payload_align;
use crate::catalog::{self, ObjectKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::ObjectId;
use crate::format::blob::{Blob, Content};
use crate::format::document::{Document, GroupDocument};
use crate::format::extent::Extent;
use crate::format::history::HistoryRecord;
use crate::format::key::{self, Key, Value, tag};
use crate::format::name::attribute_name_from_key;
use crate::format::record::ChunkRecord;
use crate::limits::{GENERATION_END, Limits};
use crate::txn::{Remains, Wreck};

use super::LossKind;

/// Where objects go that nothing leads to.
const LOST_AND_FOUND: &str = "lost+found";

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) entries: BTreeMap<Key, Value>,
    pub(super) next_object_id: u64,
    pub(super) objects: u64,
    pub(super) chunks: u64,
    pub(super) attributes: u64,
    /// Where payloads start, by array.
    pub(super) aligns: HashMap<ObjectId, u64>,
}

/// What a document says, as far as it matters here.
enum Known {
    Group,
    Array {
        rank: usize,
        key_order: Vec<u8>,
    },
    /// One that only a later version reads: kept as it is.
    Later,
}

/// A directory entry.
struct Edge {
    key: Key,
    parent: ObjectId,
    name: String,
    id: ObjectId,
    kind: ObjectKind,
}

type Entries = BTreeMap<Key, (Value, u64)>;

struct Judge<'a> {
    wreck: &'a Wreck,
    limits: Limits,
    lost: &'a mut dyn FnMut(LossKind, Error),
    kept: Judged,
    documents: BTreeMap<ObjectId, Known>,
    /// Paths of objects that are reached.
    paths: HashMap<ObjectId, String>,
    /// Bytes that kept entries own: starts and ends.
    owned: BTreeMap<u64, u64>,
}

/// Judges every entry; none when `progress` ends it.
pub(super) fn judge(
    wreck: &Wreck,
    remains: &Remains,
    found: &Entries,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    lost: &mut dyn FnMut(LossKind, Error),
) -> Result<Option<Judged>> {
    let mut judge = Judge {
        wreck,
        limits: Limits::default(),
        lost,
        kept: Judged::default(),
        documents: BTreeMap::new(),
        paths: HashMap::new(),
        owned: BTreeMap::new(),
    };
    let tagged = |tag: u8| found.range(Key::from_slice(&[tag])..Key::from_slice(&[tag + 1]));
    for (key, (value, at)) in tagged(tag::DOCUMENT) {
        judge.document(key, value, *at);
    }
    let edges: Vec<Edge> = tagged(tag::CHILD)
        .filter_map(|(key, (value, at))| judge.edge(key, value, *at))
        .collect();
    judge.number_objects(remains, found);
    judge.hierarchy(edges)?;
    judge.forget_unreached();
    for (key, (value, at)) in tagged(tag::ATTRIBUTE) {
        judge.attribute(key, value, *at);
    }
    let total = tagged(tag::CHUNK).count() as u64;
    for (done, (key, (value, at))) in tagged(tag::CHUNK).enumerate() {
        if progress(done as u64, total.saturating_mul(2)).is_break() {
            return Ok(None);
        }
        judge.chunk(key, value, *at);
    }
    for (key, (value, at)) in found {
        judge.other(key, value, *at, remains.generation);
    }
    judge.kept.objects = judge.paths.len() as u64;
    Ok(Some(judge.kept))
}

impl Judge<'_> {
    fn tell(&mut self, kind: LossKind, error: Error) {
        (self.lost)(kind, error);
    }

    fn keep(&mut self, key: &[u8], value: &[u8]) {
        let key = Key::from_slice(key);
        self.kept.entries.insert(key, Value::from_slice(value));
    }

    /// Claims the bytes of an extent for one entry and verifies them.
    fn claim(&mut self, extent: Extent) -> Result<Vec<u8>> {
        extent.check("extent", self.wreck.file_len())?;
        let before = self.owned.range(..extent.end()).next_back();
        if before.is_some_and(|(_, end)| *end > extent.offset) {
            return Err(Error::corrupt("extent")
                .at(extent.offset)
                .spanning(extent.len)
                .expected("bytes of its own")
                .found("bytes that another entry owns"));
        }
        let bytes = self.wreck.payload(extent)?.into_vec();
        self.owned.insert(extent.offset, extent.end());
        Ok(bytes)
    }

    fn document(&mut self, key: &Key, value: &Value, at: u64) {
        let read = |judge: &mut Self| -> Result<(ObjectId, Known)> {
            let (id, rest) = key::split_object(key)?;
            if !rest.is_empty() {
                return Err(Error::corrupt("document key").expected("its end").at(at));
            }
            let known = match judge.parse(value) {
                Ok(Document::Group(_)) => Known::Group,
                Ok(Document::Array(array)) => {
                    let known = Known::Array {
                        rank: array.rank(),
                        key_order: array.key_order.clone(),
                    };
                    if let Some(align) = payload_align(*array, &judge.limits) {
                        judge.kept.aligns.insert(id, align);
                    }
                    known
                }
                Err(e) if e.kind() == ErrorKind::Unsupported => Known::Later,
                Err(e) => return Err(e),
            };
            Ok((id, known))
        };
        match read(self) {
            Ok((id, known)) => {
                self.documents.insert(id, known);
                self.keep(key, value);
            }
            Err(e) => {
                let error = match key::split_object(key) {
                    Ok((id, _)) => e.in_object(&numbered(id)),
                    Err(_) => e,
                };
                self.tell(LossKind::Object, error.at_or(at));
            }
        }
    }

    fn parse(&mut self, value: &[u8]) -> Result<Document> {
        match Blob::decode(value)? {
            Blob::Inline(Content::Json, bytes) => Document::parse(bytes, &self.limits),
            Blob::Stored(Content::Json, extent) => {
                let bytes = self.claim(extent)?;
                Document::parse(&bytes, &self.limits)
            }
            _ => Err(Error::corrupt("document").expected("JSON text")),
        }
    }

    fn edge(&mut self, key: &Key, value: &Value, at: u64) -> Option<Edge> {
        let read = || {
            let (parent, name) = key::split_object(key)?;
            let prefix_len = key.len().saturating_sub(name.len());
            let entry = catalog::decode_member(key, prefix_len, value)?;
            Ok(Edge {
                key: key.clone(),
                parent,
                name: entry.name,
                id: entry.id,
                kind: entry.kind,
            })
        };
        match read() {
            Ok(edge) => Some(edge),
            Err(e) => {
                let e: Error = e;
                self.tell(LossKind::Object, e.at_or(at));
                None
            }
        }
    }

    fn number_objects(&mut self, remains: &Remains, found: &Entries) {
        let ids = found
            .keys()
            .filter(|k| matches!(k.first(), Some(1 | 2 | 3 | 8)))
            .filter_map(|k| key::split_object(k).ok())
            .map(|(id, _)| id.0.saturating_add(1));
        let least = ids.max().unwrap_or(1);
        self.kept.next_object_id = least.max(remains.next_object_id).max(1);
    }

    /// Reaches every object once: what the root leads to, then what nothing leads to.
    fn hierarchy(&mut self, edges: Vec<Edge>) -> Result<()> {
        let mut below: HashMap<ObjectId, Vec<Edge>> = HashMap::new();
        for edge in edges {
            below.entry(edge.parent).or_default().push(edge);
        }
        if !matches!(
            self.documents.get(&ObjectId::ROOT),
            Some(Known::Group | Known::Later)
        ) {
            self.new_group(ObjectId::ROOT, "/")?;
        }
        self.paths.insert(ObjectId::ROOT, String::new());
        self.descend(ObjectId::ROOT, &mut below);
        let named: HashSet<ObjectId> = below.values().flatten().map(|e| e.id).collect();
        let lone: Vec<ObjectId> = self
            .unreached(&below)
            .into_iter()
            .filter(|id| !named.contains(id))
            .collect();
        for id in lone {
            self.take_in(id, &mut below)?;
        }
        // What is left leads to itself.
        for id in self.unreached(&below) {
            self.take_in(id, &mut below)?;
        }
        let left: Vec<Edge> = below.into_values().flatten().collect();
        for edge in left {
            self.drop_edge(&edge, "an object that is not there");
        }
        Ok(())
    }

    /// Objects with a document, or with members, that no path leads to.
    fn unreached(&self, below: &HashMap<ObjectId, Vec<Edge>>) -> BTreeSet<ObjectId> {
        let all = self.documents.keys().chain(below.keys());
        all.filter(|id| !self.paths.contains_key(id))
            .copied()
            .collect()
    }

    /// Follows directory entries from `top` on.
    fn descend(&mut self, top: ObjectId, below: &mut HashMap<ObjectId, Vec<Edge>>) {
        let mut groups = vec![(top, 0_usize)];
        while let Some((group, depth)) = groups.pop() {
            // Deeper ones have no valid path: they start anew in lost+found.
            let members = if depth < self.limits.path_depth {
                below.remove(&group).unwrap_or_default()
            } else {
                Vec::new()
            };
            for edge in members {
                if self.reach(&edge) == Some(ObjectKind::Group) {
                    groups.push((edge.id, depth.saturating_add(1)));
                }
            }
        }
    }

    /// Keeps a directory entry if it leads to an object that none before led to; gives what the object is.
    fn reach(&mut self, edge: &Edge) -> Option<ObjectKind> {
        if self.paths.contains_key(&edge.id) {
            self.drop_edge(edge, "one that another entry leads to");
            return None;
        }
        let above = self.paths.get(&edge.parent).cloned().unwrap_or_default();
        let path = format!("{above}/{}", edge.name);
        if path.len() > self.limits.path_bytes {
            self.drop_edge(edge, "a path that is too long");
            return None;
        }
        let kind = match (self.documents.get(&edge.id), edge.kind) {
            (Some(Known::Group), _) => ObjectKind::Group,
            (Some(Known::Array { .. }), _) => ObjectKind::Array,
            (Some(Known::Later), kind) => kind,
            (None, ObjectKind::Group) => {
                self.new_group(edge.id, &path).ok()?;
                ObjectKind::Group
            }
            (None, ObjectKind::Array) => {
                self.drop_edge(edge, "an array whose document is lost");
                return None;
            }
        };
        let value = catalog::encode_entry(edge.id, kind);
        self.keep(&edge.key, &value);
        self.paths.insert(edge.id, path);
        Some(kind)
    }

    fn drop_edge(&mut self, edge: &Edge, why: &str) {
        let above = self.paths.get(&edge.parent).cloned();
        let above = above.unwrap_or_else(|| numbered(edge.parent));
        let error = Error::corrupt("directory entry")
            .expected("an object of its own")
            .found(format_args!("object {}: {why}", edge.id.0))
            .in_object(&format!("{above}/{}", edge.name));
        self.tell(LossKind::Object, error);
    }

    /// A group whose document is lost gets a new one: it says nothing but that it is a group.
    fn new_group(&mut self, id: ObjectId, path: &str) -> Result<()> {
        let text = Document::Group(GroupDocument::default()).to_text();
        let value = Blob::Inline(Content::Json, text.as_bytes()).encode()?;
        self.keep(&key::document(id), &value);
        self.documents.insert(id, Known::Group);
        let error = Error::corrupt("document")
            .expected("one that verifies")
            .found("none; the group is kept with a new one")
            .in_object(path);
        self.tell(LossKind::Object, error);
        Ok(())
    }

    /// Gives an object that nothing leads to a place in lost+found, with all below it.
    fn take_in(&mut self, id: ObjectId, below: &mut HashMap<ObjectId, Vec<Edge>>) -> Result<()> {
        if self.paths.contains_key(&id) {
            return Ok(());
        }
        let kind = match self.documents.get(&id) {
            Some(Known::Array { .. }) => ObjectKind::Array,
            // Of a later version's object nothing says what it is: one with members is a group.
            Some(Known::Later) if !below.contains_key(&id) => ObjectKind::Array,
            Some(_) => ObjectKind::Group,
            None => {
                self.new_group(id, &numbered(id))?;
                ObjectKind::Group
            }
        };
        let home = self.lost_and_found()?;
        let name = format!("object-{}", id.0);
        let edge = Edge {
            key: key::child(home, &name),
            parent: home,
            name,
            id,
            kind,
        };
        if self.reach(&edge) == Some(ObjectKind::Group) {
            self.descend(id, below);
        }
        if let Some(path) = self.paths.get(&id).cloned() {
            let error = Error::corrupt("directory")
                .expected("an entry that leads to it")
                .found("none; it is kept here")
                .in_object(&path);
            self.tell(LossKind::Path, error);
        }
        Ok(())
    }

    /// The group for what nothing leads to; made when it is needed first.
    fn lost_and_found(&mut self) -> Result<ObjectId> {
        let mut name = LOST_AND_FOUND.to_owned();
        for n in 2_u64.. {
            let key = key::child(ObjectId::ROOT, &name);
            let Some(value) = self.kept.entries.get(&key) else {
                break;
            };
            let mut id = value.as_slice();
            let id = key::take_vint(&mut id)?;
            let id = ObjectId(u64::try_from(id).unwrap_or(0));
            if matches!(self.documents.get(&id), Some(Known::Group)) {
                return Ok(id);
            }
            name = format!("{LOST_AND_FOUND}-{n}");
        }
        let id = ObjectId(self.kept.next_object_id);
        if id.0 >= GENERATION_END {
            return Err(Error::limit("object id").found(id.0));
        }
        self.kept.next_object_id = id.0.saturating_add(1);
        let text = Document::Group(GroupDocument::default()).to_text();
        let document = Blob::Inline(Content::Json, text.as_bytes()).encode()?;
        self.keep(&key::document(id), &document);
        self.documents.insert(id, Known::Group);
        let entry = catalog::encode_entry(id, ObjectKind::Group);
        self.keep(&key::child(ObjectId::ROOT, &name), &entry);
        self.paths.insert(id, format!("/{name}"));
        Ok(id)
    }

    /// Documents of objects without a place are none.
    fn forget_unreached(&mut self) {
        let gone: Vec<ObjectId> = self
            .documents
            .keys()
            .filter(|id| !self.paths.contains_key(id))
            .copied()
            .collect();
        for id in gone {
            self.documents.remove(&id);
            self.kept.entries.remove(&key::document(id));
        }
    }

    fn attribute(&mut self, key: &Key, value: &Value, at: u64) {
        match self.check_attribute(key, value) {
            Ok(()) => {
                self.kept.attributes = self.kept.attributes.saturating_add(1);
                self.keep(key, value);
            }
            Err(e) => {
                let error = self.placed(e, key);
                self.tell(LossKind::Attribute, error.at_or(at));
            }
        }
    }

    fn check_attribute(&mut self, key: &Key, value: &Value) -> Result<()> {
        let (id, name) = key::split_object(key)?;
        let name = attribute_name_from_key(name)?;
        let about = |e: Error| e.found(format_args!("attribute {name:?}"));
        if !self.paths.contains_key(&id) {
            return Err(about(
                Error::corrupt("attribute").expected("an object it belongs to"),
            ));
        }
        if let Blob::Stored(_, extent) = Blob::decode(value).map_err(about)? {
            self.claim(extent).map_err(about)?;
        }
        Ok(())
    }

    fn chunk(&mut self, key: &Key, value: &Value, at: u64) {
        let mut coords = Vec::new();
        match self.check_chunk(key, value, at, &mut coords) {
            Ok(()) => {
                self.kept.chunks = self.kept.chunks.saturating_add(1);
                self.keep(key, value);
            }
            Err(e) => {
                let mut error = self.placed(e, key);
                if !coords.is_empty() {
                    error = error.in_chunk(&coords);
                }
                self.tell(LossKind::Chunk, error.at_or(at));
            }
        }
    }

    fn check_chunk(
        &mut self,
        key: &Key,
        value: &Value,
        at: u64,
        coords: &mut Vec<i64>,
    ) -> Result<()> {
        let (id, _) = key::split_object(key)?;
        match self.documents.get(&id) {
            Some(Known::Array { rank, key_order }) => {
                let mut found = vec![0; *rank];
                key::decode_chunk(key, *rank, key_order, &mut found)?;
                *coords = found;
            }
            Some(Known::Later) => {}
            Some(Known::Group) | None => {
                return Err(Error::corrupt("chunk entry")
                    .expected("an array it belongs to")
                    .found("none whose document verifies"));
            }
        }
        let record = ChunkRecord::decode(value, at, self.wreck.file_len())?;
        if let ChunkRecord::Stored { extent, .. } = record {
            self.claim(extent)?;
        }
        Ok(())
    }

    /// Adds the path of the object that a key belongs to.
    fn placed(&self, error: Error, key: &[u8]) -> Error {
        match key::split_object(key) {
            Ok((id, _)) => match self.paths.get(&id) {
                Some(path) => error.in_object(path),
                None => error.in_object(&numbered(id)),
            },
            Err(_) => error,
        }
    }

    /// History and private entries are kept, all else is not.
    fn other(&mut self, key: &Key, value: &Value, at: u64, generation: u64) {
        match key.first() {
            Some(&(tag::CHILD | tag::DOCUMENT | tag::ATTRIBUTE | tag::CHUNK)) => {}
            Some(&tag::HISTORY) => {
                let good = key::split_generation(key).is_ok_and(|g| g <= generation)
                    && HistoryRecord::decode(value, at).is_ok();
                if good {
                    self.keep(key, value);
                } else {
                    let error = Error::corrupt("history record").at(at);
                    self.tell(LossKind::Entry, error);
                }
            }
            Some(&tag::SNAPSHOT) => {
                let error = Error::unsupported("salvage of a retained snapshot")
                    .at(at)
                    .expected("the newest generation alone")
                    .found(match key::split_generation(key) {
                        Ok(g) => format!("retained generation {g}"),
                        Err(_) => "another key".to_owned(),
                    });
                self.tell(LossKind::Snapshot, error);
            }
            Some(&tag) if tag >= tag::PRIVATE => self.keep(key, value),
            _ => {
                let error = Error::unsupported("entry of a later version")
                    .at(at)
                    .found(format_args!("tag {:#04x}", key.first().unwrap_or(&0)));
                self.tell(LossKind::Entry, error);
            }
        }
    }
}

fn numbered(id: ObjectId) -> String {
    format!("object {}", id.0)
}
