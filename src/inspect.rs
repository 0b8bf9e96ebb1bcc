//! Looking over a whole container: what its bytes are, and whether they are right.
//!
//! Holds [`Statistics`] and the check of one generation. Reads everything, changes nothing. Must not know how a file is
//! repaired. Spec: `format-spec/checks.md`, whose numbers findings carry.
//!
//! Opening has looked at 1 to 7 for the generation in use; this looks at the other slot's root (6), at 8 to 18, 20 and the
//! first half of 21. What lies outside the domain in edge chunks (21) is still to come.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::array::DynArray;
use crate::catalog::{self, ObjectKind};
use crate::container::{Container, Snapshot};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::document::Document;
use crate::format::extent::{Extent, NodeRef};
use crate::format::key::{self, Key, tag};
use crate::format::name::ObjectPath;
use crate::format::record::{self, Owner};
use crate::grid::{ChunkGrid, Domain, Region};
use crate::index::{self, Tree, Visit, Visited};
use crate::txn::{Chain, SnapshotState, View, retained};

/// What the bytes that one generation reaches are made of.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Bytes of chunks.
    pub live_payload_bytes: u64,
    /// Bytes of index nodes, documents and attributes.
    pub live_index_bytes: u64,
    /// Bytes of index nodes alone.
    pub node_bytes: u64,
    /// Levels of the index, the leaves' included.
    pub depth: u64,
    /// Nodes of the index.
    pub nodes: u64,
    /// Entries of the index.
    pub entries: u64,
}

/// How much a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CheckLevel {
    /// What opening looks at, and the counts of the index: 1 to 8.
    Quick,
    /// The whole index, all documents, and the checksum of every payload: 9 to 20.
    #[default]
    Full,
    /// As `Full`, and every chunk decoded: 21.
    Data,
}

/// One finding of a check.
#[non_exhaustive]
#[derive(Debug)]
pub struct Problem {
    /// The number of the rule in the specification's list.
    pub invariant: u8,
    /// What is wrong, and where.
    pub error: Error,
    /// The container is as good as before: worth a look, no damage.
    pub warning: bool,
}

impl Container {
    /// Major and minor version of the file's format.
    pub fn format_version(&self) -> (u16, u16) {
        (crate::format::MAJOR, self.engine().header().minor)
    }
}

impl Snapshot {
    /// When this generation was committed, in nanoseconds since the Unix epoch.
    pub fn time(&self) -> i64 {
        self.state().map_or(0, |s| s.slot().time)
    }

    fn state(&self) -> Option<&SnapshotState> {
        match self.view() {
            View::Snapshot(state) => Some(state),
            View::Writer(_) => None,
        }
    }

    /// The committed generation behind this handle.
    pub(crate) fn require_state(&self) -> Result<&SnapshotState> {
        self.state()
            .ok_or_else(|| Error::invalid("view").expected("a committed generation"))
    }

    /// What this generation's bytes are made of. Reads the whole index.
    ///
    /// # Errors
    /// `Corrupt` for a node that breaks a rule, `Io`.
    pub fn statistics(&self) -> Result<Statistics> {
        let state = self.require_state()?;
        let mut tally = Tally::new(state.committed_end(), true);
        index::walk(state.engine().as_ref(), state.tree(), &mut tally)
            .map_err(|e| state.place(e))?;
        let mut statistics = tally.statistics;
        statistics.depth = u64::from(state.tree().level).saturating_add(1);
        Ok(statistics)
    }

    /// Looks for damage, and hands each finding to `found`. `progress` is told how many of how many steps are done, and
    /// can end the check.
    ///
    /// # Errors
    /// Only where the check itself cannot go on: `Io`.
    pub fn check(
        &self,
        level: CheckLevel,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
        found: impl FnMut(Problem),
    ) -> Result<()> {
        let state = self.require_state()?;
        let mut check = Check {
            snapshot: self,
            state,
            arrays: HashMap::new(),
            told: HashSet::new(),
            documents: HashMap::new(),
            found,
        };
        let mut tally = Tally::new(state.committed_end(), false);
        index::walk(state.engine().as_ref(), state.tree(), &mut tally)?;
        for (invariant, error) in std::mem::take(&mut tally.faults) {
            check.report(invariant, error);
        }
        let chain = state.engine().chain(state)?;
        check.other_root(&chain);
        if level == CheckLevel::Quick {
            return Ok(());
        }
        check.live_bytes(&tally);
        check.history(chain);
        check.retained(&tally)?;
        check.hierarchy();
        check.overlaps(&mut tally.extents);
        check.entries(&tally.chunk_keys());
        let total = tally.extents.len() as u64;
        for (done, (extent, key)) in tally.extents.iter().enumerate() {
            if progress(done as u64, total).is_break() {
                return Ok(());
            }
            check.payload(*extent, key);
        }
        if level == CheckLevel::Data {
            check.decode();
        }
        Ok(())
    }
}

/// The sums and extents of one walk over the index.
struct Tally {
    statistics: Statistics,
    end: u64,
    /// Whether a fault ends the walk.
    strict: bool,
    extents: Vec<(Extent, Key)>,
    /// Nodes that another root has shown.
    seen: HashSet<u64>,
    /// Place and length of each node.
    nodes: Vec<(u64, u64)>,
    /// Chunk entries without an extent.
    constants: Vec<Key>,
    faults: Vec<(u8, Error)>,
}

impl Tally {
    fn new(end: u64, strict: bool) -> Self {
        Self {
            statistics: Statistics::default(),
            end,
            strict,
            extents: Vec::new(),
            seen: HashSet::new(),
            nodes: Vec::new(),
            constants: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn chunk_keys(&self) -> Vec<Key> {
        let chunks = self.extents.iter().map(|(_, key)| key);
        let all = chunks.chain(&self.constants);
        all.filter(|k| k.first() == Some(&tag::CHUNK))
            .cloned()
            .collect()
    }
}

impl Visit for Tally {
    fn enter(&mut self, reference: &NodeRef, _level: u8) -> bool {
        !self.seen.contains(&reference.offset)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let s = &mut self.statistics;
        let len = u64::from(visited.reference.len);
        s.nodes = s.nodes.saturating_add(1);
        s.node_bytes = s.node_bytes.saturating_add(len);
        s.live_index_bytes = s.live_index_bytes.saturating_add(len);
        if !self.strict {
            self.nodes.push((visited.reference.offset, len));
        }
        let below = visited.entries_below()?;
        if below != visited.reference.count {
            let error = Error::corrupt("entry count of an index node")
                .at(visited.reference.offset)
                .expected(visited.reference.count)
                .found(below);
            self.fault(8, error)?;
        }
        if !visited.node.is_leaf() {
            return Ok(());
        }
        self.statistics.entries = self.statistics.entries.saturating_add(below);
        for i in 0..visited.node.count() {
            let (key, value) = (visited.node.key(i), visited.node.value(i));
            let at = visited.node.value_at(i);
            match record::extent_of(&key, value, at, self.end) {
                Ok(Some((extent, owner))) => {
                    let s = &mut self.statistics;
                    let sum = match owner {
                        Owner::Payload => &mut s.live_payload_bytes,
                        Owner::Blob => &mut s.live_index_bytes,
                    };
                    *sum = sum.saturating_add(extent.len);
                    if !self.strict {
                        self.extents.push((extent, key));
                    }
                }
                Ok(None) if !self.strict => self.constants.push(key),
                Ok(None) => {}
                Err(e) => self.fault(14, e)?,
            }
        }
        Ok(())
    }

    fn damaged(&mut self, reference: &NodeRef, _level: u8, error: Error) -> Result<()> {
        self.fault(9, error.at_or(reference.offset))
    }
}

impl Tally {
    fn fault(&mut self, invariant: u8, error: Error) -> Result<()> {
        if self.strict {
            return Err(error);
        }
        self.faults.push((invariant, error));
        Ok(())
    }
}

struct Check<'a, F> {
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

impl<F: FnMut(Problem)> Check<'_, F> {
    fn report(&mut self, invariant: u8, error: Error) {
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
    fn live_bytes(&mut self, tally: &Tally) {
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
    fn other_root(&mut self, chain: &Chain) {
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
    fn history(&mut self, chain: Chain) {
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
    fn retained(&mut self, present: &Tally) -> Result<()> {
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
    fn hierarchy(&mut self) {
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
    fn overlaps(&mut self, extents: &mut [(Extent, Key)]) {
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
    fn entries(&mut self, chunks: &[Key]) {
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
    fn payload(&mut self, extent: Extent, key: &Key) {
        if let Err(e) = self.state.payload(extent) {
            let error = self.named(e.at_or(extent.offset), key);
            if let (Ok((id, _)), Some(chunk)) = (key::split_object(key), error.chunk()) {
                self.told.insert((id, chunk.to_vec()));
            }
            self.report(20, error);
        }
    }

    /// 21: every chunk decodes.
    fn decode(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, DynArraySpec, ErrorKind, region};

    /// A container of one array with four stored chunks and one constant one.
    fn container() -> Container {
        let container = Container::in_memory().unwrap();
        let writer = container.writer().unwrap();
        let spec = DynArraySpec::new(crate::DataType::Uint8, region![-16..64])
            .chunks([16])
            .codecs(Codec::raw_profile());
        let array = writer.create_dyn_array("g/t", &spec).unwrap();
        let values: Vec<u8> = (0..64).collect();
        let array = array.typed::<u8>().unwrap();
        array.write_slice(region![0..64], &values).unwrap();
        array.write_scalar(region![-16..0], 7).unwrap();
        writer.commit().unwrap();
        container
    }

    fn problems(container: &Container, level: CheckLevel) -> Vec<Problem> {
        let mut found = Vec::new();
        let go_on = |_, _| ControlFlow::Continue(());
        let snapshot = container.snapshot().unwrap();
        snapshot.check(level, go_on, |p| found.push(p)).unwrap();
        found
    }

    #[test]
    fn statistics_are_what_the_slot_counts() {
        let container = container();
        let snapshot = container.snapshot().unwrap();
        let s = snapshot.statistics().unwrap();
        let slot = snapshot.state().unwrap().slot();
        assert_eq!(s.live_payload_bytes, 64);
        assert_eq!(s.live_payload_bytes, slot.live_payload);
        assert_eq!(s.live_index_bytes, slot.live_index);
        assert_eq!((s.depth, s.nodes), (1, 1));
    }

    #[test]
    fn a_sound_container_has_no_problem() {
        let container = container();
        for level in [CheckLevel::Quick, CheckLevel::Full, CheckLevel::Data] {
            assert!(problems(&container, level).is_empty());
        }
    }

    #[test]
    fn each_damaged_payload_is_told_once_with_its_place() {
        let whole = container().to_bytes().unwrap();
        let sound = Container::from_bytes(whole.clone()).unwrap();
        let array = sound.snapshot().unwrap().dyn_array("g/t").unwrap();
        for chunk in array.chunks_in(region![0..64]).unwrap() {
            let crate::ChunkState::Stored { offset, .. } = chunk.state else {
                panic!("{chunk:?}")
            };
            let mut bytes = whole.clone();
            bytes[usize::try_from(offset).unwrap() + 3] ^= 1;
            let container = Container::from_bytes(bytes).unwrap();
            assert!(problems(&container, CheckLevel::Quick).is_empty());
            for level in [CheckLevel::Full, CheckLevel::Data] {
                let found = problems(&container, level);
                let [problem] = found.as_slice() else {
                    panic!("{found:?}")
                };
                assert_eq!((problem.invariant, problem.warning), (20, false));
                assert_eq!(problem.error.kind(), ErrorKind::Corrupt);
                assert_eq!(problem.error.chunk(), Some(chunk.coord.as_slice()));
                assert_eq!(problem.error.offset(), Some(offset));
                assert!(problem.error.array().unwrap().ends_with("g/t"));
            }
        }
    }

    #[test]
    fn a_check_can_be_ended() {
        let container = container();
        let mut asked = 0;
        let snapshot = container.snapshot().unwrap();
        let stop = |_, total| {
            asked += total;
            ControlFlow::Break(())
        };
        snapshot
            .check(CheckLevel::Full, stop, |p| panic!("{p:?}"))
            .unwrap();
        assert!(asked > 0);
    }
}
