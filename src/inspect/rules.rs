//! The rules of a whole container, one function each, by the numbers of `format-spec/checks.md`.
//!
//! Holds [`Check`]. Must not walk an index itself: `tally.rs` has done that.

use std::collections::{HashMap, HashSet};

use crate::array::DynArray;
use crate::catalog::{self, ObjectKind};
use crate::container::Snapshot;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::document::Document;
use crate::format::extent::Extent;
use crate::format::key::{self, Key, tag};
use crate::format::name::ObjectPath;
use crate::grid::{ChunkGrid, Domain, Region};
use crate::index::{self, Tree};
use crate::txn::{Chain, SnapshotState, View, retained};

use super::Problem;
use super::tally::Tally;

pub(super) struct Check<'a, F> {
    snapshot: &'a Snapshot,
    state: &'a SnapshotState,
    /// Paths of arrays and groups.
    arrays: HashMap<ObjectId, (String, ObjectKind)>,
    /// Chunks whose payload is damaged: decoding them would tell it again.
    told: HashSet<(ObjectId, Vec<i64>)>,
    /// What chunk keys are read by; none where the document cannot be read, which is reported once.
    documents: HashMap<ObjectId, Option<Shape>>,
    found: F,
}

/// What a chunk key is read by.
struct Shape {
    rank: usize,
    key_order: Vec<u8>,
    grid: ChunkGrid,
    domain: Domain,
}

impl<'a, F: FnMut(Problem)> Check<'a, F> {
    pub(super) fn new(snapshot: &'a Snapshot, state: &'a SnapshotState, found: F) -> Self {
        Self {
            snapshot,
            state,
            arrays: HashMap::new(),
            told: HashSet::new(),
            documents: HashMap::new(),
            found,
        }
    }

    pub(super) fn report(&mut self, invariant: u8, error: Error) {
        (self.found)(Problem {
            invariant,
            error: self.state.place(error),
            warning: false,
        });
    }

    fn warn(&mut self, invariant: u8, error: Error) {
        (self.found)(Problem {
            invariant,
            error: self.state.place(error),
            warning: true,
        });
    }

    /// 17: the sums that the slot keeps.
    pub(super) fn live_bytes(&mut self, tally: &Tally) {
        let (slot, s) = (self.state.slot(), &tally.statistics);
        if !tally.faults.is_empty() || self.state.is_retained() {
            return;
        }
        for (what, kept, sum) in [
            (
                "live payload bytes of the slot",
                slot.live_payload,
                s.live_payload_bytes,
            ),
            (
                "live index bytes of the slot",
                slot.live_index,
                s.live_index_bytes,
            ),
        ] {
            if kept != sum {
                self.report(17, Error::corrupt(what).expected(sum).found(kept));
            }
        }
    }

    /// 6: the root of the slot that is not in use.
    pub(super) fn other_root(&mut self, chain: &Chain) {
        let Some(other) = &chain.other else { return };
        let tree = Tree {
            root: other.root.node,
            level: other.root.level,
            generation: other.generation,
            end: other.committed_end,
        };
        if let Err(e) = tree.load_root(self.state.engine().as_ref()) {
            // A writer at work may have superseded that slot, and written over its root, since it was read.
            let now = self.state.engine().chain(self.state);
            if now.is_ok_and(|now| now.other.as_ref() == Some(other)) {
                self.report(6, e.at_or(other.root.node.offset));
            }
        }
    }

    /// 18: commit records down to the horizon; no history record is younger than its generation.
    pub(super) fn history(&mut self, chain: Chain) {
        if self.state.is_retained() {
            return;
        }
        if let Some(error) = chain.fault {
            self.report(18, error);
        }
        match self.state.history() {
            Ok(all) => {
                let newest = self.state.generation();
                if let Some((g, _)) = all.last().filter(|(g, _)| *g > newest) {
                    let error = Error::corrupt("history record")
                        .expected(format_args!("a generation of at most {newest}"))
                        .found(g);
                    self.report(18, error);
                }
            }
            Err(e) => self.report(18, e),
        }
    }

    /// 16, and 9, 11 and 20 of what only retained generations reach.
    pub(super) fn retained(&mut self, present: &Tally) -> Result<()> {
        let (all, newer) = match retained::list(self.snapshot.view()) {
            Ok(found) => found,
            Err(e) => {
                self.report(16, e);
                return Ok(());
            }
        };
        if newer {
            let error = Error::unsupported("retained snapshot").found("one of a later version");
            self.warn(16, error);
        }
        let mut labels = HashSet::new();
        let mut kept: HashMap<u64, u64> = HashMap::new();
        let mut seen: HashSet<u64> = present.nodes.iter().map(|(at, _)| *at).collect();
        let own = present.extents.iter().map(|(e, _)| (e.offset, e.len));
        kept.extend(own.chain(present.nodes.iter().copied()));
        for old in all {
            let name = old.record.label.clone();
            if !labels.insert(name.clone()) {
                let error = Error::corrupt("retained snapshots")
                    .expected("unique names")
                    .found(format_args!("{name:?} twice"));
                self.report(16, error);
            }
            let newest = self.state.generation();
            if old.generation == 0 || old.generation >= newest {
                let error = Error::corrupt(format!("retained snapshot {name:?}"))
                    .expected(format_args!("a generation below {newest}"))
                    .found(old.generation);
                self.report(16, error);
                continue;
            }
            let tree = Tree {
                root: old.record.root.node,
                level: old.record.root.level,
                generation: old.generation,
                end: self.state.committed_end(),
            };
            let mut tally = Tally::new(tree.end, false);
            tally.seen = std::mem::take(&mut seen);
            index::walk(self.state.engine().as_ref(), &tree, &mut tally)?;
            for (_, error) in std::mem::take(&mut tally.faults) {
                self.report(16, error);
            }
            for (extent, key) in &tally.extents {
                if kept.insert(extent.offset, extent.len).is_none() {
                    self.payload(*extent, key);
                }
            }
            seen = tally.seen;
            seen.extend(tally.nodes.iter().map(|(at, _)| *at));
            kept.extend(tally.nodes);
        }
        let mut places: Vec<(u64, u64)> = kept.into_iter().collect();
        places.sort_unstable();
        for pair in places.windows(2) {
            let [(a, len), (b, _)] = pair else { continue };
            if a.saturating_add(*len) > *b {
                let error = Error::corrupt("extent")
                    .at(*b)
                    .expected(format_args!(
                        "a start at or after {}",
                        a.saturating_add(*len)
                    ))
                    .found("an overlap with the one before, of this or a retained generation");
                self.report(11, error);
            }
        }
        Ok(())
    }

    /// 12 and 15: every directory entry leads to a document of its kind, and documents parse.
    pub(super) fn hierarchy(&mut self) {
        let view = self.snapshot.view().clone();
        self.arrays
            .insert(ObjectId::ROOT, (String::new(), ObjectKind::Group));
        self.document(&view, ObjectId::ROOT, "/", ObjectKind::Group);
        let walk = match catalog::walk(&view, ObjectPath::default(), ObjectId::ROOT) {
            Ok(walk) => walk,
            Err(e) => return self.report(12, e),
        };
        for step in walk {
            let (path, entry) = match step {
                Ok(step) => step,
                Err(e) => {
                    self.report(12, e);
                    continue;
                }
            };
            let path = path.to_string();
            let document = self.document(&view, entry.id, &path, entry.kind);
            if entry.kind == ObjectKind::Array {
                let shape = document.and_then(|d| self.shape(&d, &path));
                self.documents.insert(entry.id, shape);
            }
            self.arrays.insert(entry.id, (path, entry.kind));
        }
    }

    /// 15: the document of one object; `None` after a report.
    fn document(
        &mut self,
        view: &View,
        id: ObjectId,
        path: &str,
        kind: ObjectKind,
    ) -> Option<Document> {
        match catalog::checked_document(view, id, kind) {
            Ok((document, true)) => Some(document),
            Ok((document, false)) => {
                let error = Error::corrupt("document")
                    .expected("its one text")
                    .found("another spelling of the same");
                self.warn(15, error.in_object(path));
                Some(document)
            }
            Err(e) => {
                self.report(15, e.in_object(path));
                None
            }
        }
    }

    fn shape(&mut self, document: &Document, path: &str) -> Option<Shape> {
        let Document::Array(d) = document else {
            return None;
        };
        let grid = ChunkGrid::new(&d.origin, &d.chunk_shape);
        let domain = Domain::new(d.domain.iter().map(|&(lo, hi)| lo..hi));
        match grid.and_then(|grid| Ok((grid, domain?))) {
            Ok((grid, domain)) => Some(Shape {
                rank: d.domain.len(),
                key_order: d.key_order.clone(),
                grid,
                domain,
            }),
            Err(e) => {
                self.report(15, e.in_object(path));
                None
            }
        }
    }

    /// 11: no two extents overlap.
    pub(super) fn overlaps(&mut self, extents: &mut [(Extent, Key)]) {
        extents.sort_unstable_by_key(|(e, _)| (e.offset, e.len));
        for pair in extents.windows(2) {
            let [(a, _), (b, key)] = pair else { continue };
            if a.offset.saturating_add(a.len) > b.offset {
                let error = Error::corrupt("extent")
                    .at(b.offset)
                    .spanning(b.len)
                    .expected(format_args!(
                        "a start at or after {}",
                        a.offset.saturating_add(a.len)
                    ))
                    .found("an overlap with the one before");
                let error = self.named(error, key);
                self.report(11, error);
            }
        }
    }

    /// 13 and 14: chunk keys belong to arrays and lie in their domain.
    pub(super) fn entries(&mut self, chunks: &[Key]) {
        for key in chunks {
            let id = match key::split_object(key) {
                Ok((id, _)) => id,
                Err(e) => {
                    self.report(10, e);
                    continue;
                }
            };
            let Some(coords) = self.coords(id, key) else {
                if !self.documents.contains_key(&id) {
                    let error = Error::corrupt("chunk entry")
                        .expected("an array it belongs to")
                        .found(format_args!("object id {}", id.0));
                    self.report(13, error);
                } else if matches!(self.documents.get(&id), Some(Some(_))) {
                    let error = Error::corrupt("chunk key")
                        .expected("one coordinate in its shortest form for each axis")
                        .found(format_args!("{key:02x?}"));
                    let error = self.named(error, key);
                    self.report(14, error);
                }
                continue;
            };
            let outside = match self.documents.get(&id) {
                Some(Some(shape)) => !shape.grid.meets(&coords, &shape.domain),
                _ => false,
            };
            if outside {
                let error = Error::corrupt("chunk outside the domain").in_chunk(&coords);
                let error = self.named(error, key);
                self.warn(14, error);
            }
        }
    }

    /// 20: the payload's checksum.
    pub(super) fn payload(&mut self, extent: Extent, key: &Key) {
        if let Err(e) = self.state.payload(extent) {
            let error = self.named(e.at_or(extent.offset), key);
            if let (Ok((id, _)), Some(chunk)) = (key::split_object(key), error.chunk()) {
                self.told.insert((id, chunk.to_vec()));
            }
            self.report(20, error);
        }
    }

    /// 21: every chunk decodes.
    pub(super) fn decode(&mut self) {
        let arrays: Vec<(ObjectId, String)> = self
            .arrays
            .iter()
            .filter(|(_, (_, kind))| *kind == ObjectKind::Array)
            .map(|(id, (path, _))| (*id, path.clone()))
            .collect();
        for (id, path) in arrays {
            if let Err(e) = self.decode_array(id, &path) {
                self.report(21, e);
            }
        }
    }

    fn decode_array(&mut self, id: ObjectId, path: &str) -> Result<()> {
        let array = DynArray::open(self.snapshot.view().clone(), id, path.to_owned())?;
        let Some(Some(shape)) = self.documents.get(&id) else {
            return Ok(());
        };
        let mut faults = Vec::new();
        array.for_each_chunk(Region::all(), |chunk| {
            if self.told.contains(&(id, chunk.coord.clone())) {
                return Ok(());
            }
            // One outside the domain was told, and nobody reads it.
            if shape.grid.meets(&chunk.coord, &shape.domain)
                && let Err(e) = array.check_chunk(&chunk.coord)
            {
                faults.push(e.in_chunk(&chunk.coord));
            }
            Ok(())
        })?;
        for e in faults {
            self.report(21, e);
        }
        Ok(())
    }

    fn coords(&self, id: ObjectId, key: &Key) -> Option<Vec<i64>> {
        let shape = self.documents.get(&id)?.as_ref()?;
        let mut coords = vec![0; shape.rank];
        key::decode_chunk(key, shape.rank, &shape.key_order, &mut coords).ok()?;
        Some(coords)
    }

    /// Adds the object's path, and the chunk's coordinate where the key is one.
    fn named(&self, error: Error, key: &Key) -> Error {
        let Ok((id, _)) = key::split_object(key) else {
            return error;
        };
        let error = match self.arrays.get(&id) {
            Some((path, _)) => error.in_object(path),
            None => error,
        };
        match (key.first(), self.coords(id, key)) {
            (Some(&tag::CHUNK), Some(coords)) => error.in_chunk(&coords),
            _ => error,
        }
    }
}
