//! What differs between two states: generations of one file, or two files.
//!
//! Holds the public call and the comparison of hierarchies, documents and attributes; elements are compared in `values`.
//! Reads only. Of two generations of one file the index alone is read, and of that only what the two do not share.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use crate::array::DynArray;
use crate::catalog::{self, ObjectKind};
use crate::container::Snapshot;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::blob::{Blob, Content};
use crate::format::document::{ArrayDocument, Document};
use crate::format::key::{self, Key, tag};
use crate::format::name::{ObjectPath, attribute_name_from_key};
use crate::group::Member;
use crate::index::{self, Differing, Source};
use crate::txn::{SnapshotState, View};

/// What is compared, and how closely.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiffOptions {
    old: String,
    new: String,
    tolerance: f64,
}

impl DiffOptions {
    /// Everything, bit by bit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares the object at the path `old` with the one at the path `new`, and what is below.
    #[must_use]
    pub fn at(mut self, old: &str, new: &str) -> Self {
        (self.old, self.new) = (old.to_owned(), new.to_owned());
        self
    }

    /// Numbers that differ by at most this much count as equal, and NaN as equal to NaN. Chunks whose stored form differs are
    /// then decoded, of two generations of one file too. 0, the default: bits decide.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// What differs between an old and a new state.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Objects that the old state does not have, by path.
    pub added: Vec<Member>,
    /// Objects that the new state does not have, by path.
    pub removed: Vec<Member>,
    /// Objects that both have and that are not equal, by path.
    pub changed: Vec<Changed>,
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// One respect in which an object differs.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The object's path in the old state.
    pub path: String,
    /// The respect.
    pub what: Aspect,
    /// Names of the attributes, where those differ.
    pub attributes: Vec<String>,
    /// Chunk coordinates on the old array's grid (of shards where there are shards), where elements differ.
    pub chunks: Vec<Vec<i64>>,
}

/// In which respect two objects differ.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// One is a group and the other an array.
    Kind,
    /// The element type; elements are then not compared.
    DataType,
    /// The domain; elements are compared where both have some.
    Domain,
    /// The fill value. Chunks that neither has stored then differ, and are not listed.
    Fill,
    /// Names of axes.
    Axes,
    /// Attributes.
    Attributes,
    /// Elements. Of two generations of one file: a chunk whose stored form changed.
    Values,
}

impl Aspect {
    /// A word for it: `kind`, `dtype`, `domain`, `fill`, `dims`, `attributes`, `values`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::DataType => "dtype",
            Self::Domain => "domain",
            Self::Fill => "fill",
            Self::Axes => "dims",
            Self::Attributes => "attributes",
            Self::Values => "values",
        }
    }
}

impl Snapshot {
    /// What differs between this state and `new`.
    ///
    /// Two generations of one file are told apart by the index alone: subtrees that both share are not read, and no payload
    /// is, so a chunk counts as changed when its stored form is another. Two files are compared object by object; chunks of
    /// one grid and one pipeline are equal when their checksums and lengths are, and all others are decoded: equal elements
    /// in another encoding, or in other chunks, are equal.
    ///
    /// # Errors
    /// `NotFound` for a path that one of them does not have; `Corrupt`, `Unsupported`, `Io` where something cannot be read.
    pub fn diff(&self, new: &Self, options: &DiffOptions) -> Result<Diff> {
        let (old_state, new_state) = (self.require_state()?, new.require_state()?);
        let mut comparison = Comparison {
            old: self.view(),
            new: new.view(),
            tolerance: options.tolerance,
            diff: Diff::default(),
        };
        let edits = if old_state.engine().is_same_file(new_state.engine()) {
            let edits = Edits::of(old_state, new_state)?;
            if edits.is_empty() && options.old == options.new {
                return Ok(comparison.diff);
            }
            Some(edits)
        } else {
            None
        };
        let old = Objects::below(self.view(), &options.old)?;
        // Where no name changed, one hierarchy is the other.
        let same = edits.as_ref().is_some_and(|e| !e.directory) && options.old == options.new;
        if same {
            comparison.hierarchies(&old, &old, edits.as_ref())?;
        } else {
            let new = Objects::below(new.view(), &options.new)?;
            comparison.hierarchies(&old, &new, edits.as_ref())?;
        }
        Ok(comparison.diff)
    }
}

/// What the index says that one generation of a file has and another has not, by object.
#[derive(Default)]
struct Edits {
    directory: bool,
    documents: BTreeSet<ObjectId>,
    attributes: BTreeMap<ObjectId, Vec<String>>,
    /// Keys, and whether both generations have the same bytes there, stored anew.
    chunks: BTreeMap<ObjectId, Vec<(Key, bool)>>,
}

impl Edits {
    fn of(old: &SnapshotState, new: &SnapshotState) -> Result<Self> {
        // One way to the nodes: those that both reach are read once.
        let load = old.engine().as_ref();
        let side = |tree| Source { load, tree };
        let mut edits = Self::default();
        let range: (&[u8], &[u8]) = (&[tag::CHILD], &[tag::CHUNK + 1]);
        index::diff(side(old.tree()), side(new.tree()), range, true, |d| {
            edits.add(&d)
        })
        .map_err(|e| new.place(old.place(e)))?;
        Ok(edits)
    }

    fn add(&mut self, differing: &Differing<'_>) -> Result<()> {
        let key = differing.key;
        let (id, rest) = key::split_object(key)?;
        match key.first() {
            Some(&tag::CHILD) => self.directory = true,
            Some(&tag::DOCUMENT) => drop(self.documents.insert(id)),
            Some(&tag::ATTRIBUTE) => {
                let name = attribute_name_from_key(rest)?.to_owned();
                self.attributes.entry(id).or_default().push(name);
            }
            Some(&tag::CHUNK) => {
                let keys = self.chunks.entry(id).or_default();
                keys.push((Key::from_slice(key), values::is_stored_anew(differing)?));
            }
            _ => {}
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        !self.directory
            && self.documents.is_empty()
            && self.attributes.is_empty()
            && self.chunks.is_empty()
    }
}

/// The objects at and below a path, by path relative to it.
struct Objects {
    top: String,
    by_path: BTreeMap<String, (ObjectId, ObjectKind)>,
}

impl Objects {
    fn below(view: &View, top: &str) -> Result<Self> {
        let path = ObjectPath::parse(top, view.limits())?;
        let object = catalog::resolve(view, &path)?
            .ok_or_else(|| Error::not_found("object").in_object(&path.to_string()))?;
        let mut by_path = BTreeMap::from([(String::new(), (object.id, object.kind))]);
        let top = match path.to_string() {
            root if root == "/" => String::new(),
            top => top,
        };
        if object.kind == ObjectKind::Group {
            for step in catalog::walk(view, path, object.id)? {
                let (path, entry) = step?;
                let path = path.to_string();
                let relative = path.get(top.len()..).unwrap_or_default().to_owned();
                by_path.insert(relative, (entry.id, entry.kind));
            }
        }
        Ok(Self { top, by_path })
    }

    fn path(&self, relative: &str) -> String {
        match (self.top.as_str(), relative) {
            ("", "") => "/".to_owned(),
            (top, relative) => format!("{top}{relative}"),
        }
    }

    fn member(&self, relative: &str, kind: ObjectKind) -> Member {
        let path = self.path(relative);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Member { path, name, kind }
    }
}

struct Comparison<'v> {
    old: &'v View,
    new: &'v View,
    tolerance: f64,
    diff: Diff,
}

/// One object in both states.
struct Pair<'p> {
    old_path: &'p str,
    new_path: &'p str,
    old: ObjectId,
    new: ObjectId,
}

impl Comparison<'_> {
    fn hierarchies(&mut self, old: &Objects, new: &Objects, edits: Option<&Edits>) -> Result<()> {
        for (relative, &(id, kind)) in &old.by_path {
            let Some(&(other, other_kind)) = new.by_path.get(relative) else {
                self.diff.removed.push(old.member(relative, kind));
                continue;
            };
            let (old_path, new_path) = (old.path(relative), new.path(relative));
            if kind != other_kind {
                self.report(&old_path, Aspect::Kind);
                continue;
            }
            let pair = Pair {
                old_path: &old_path,
                new_path: &new_path,
                old: id,
                new: other,
            };
            // The same object of one file: the index has told what became of it.
            let known = edits.filter(|_| id == other);
            self.attributes(&pair, known)?;
            if kind == ObjectKind::Array {
                self.arrays(&pair, known)
                    .map_err(|e| e.in_object(&old_path))?;
            }
        }
        for (relative, &(_, kind)) in &new.by_path {
            if !old.by_path.contains_key(relative) {
                self.diff.added.push(new.member(relative, kind));
            }
        }
        Ok(())
    }

    fn report(&mut self, path: &str, what: Aspect) {
        self.report_more(path, what, Vec::new(), Vec::new());
    }

    fn report_more(
        &mut self,
        path: &str,
        what: Aspect,
        attributes: Vec<String>,
        chunks: Vec<Vec<i64>>,
    ) {
        self.diff.changed.push(Changed {
            path: path.to_owned(),
            what,
            attributes,
            chunks,
        });
    }

    fn attributes(&mut self, pair: &Pair<'_>, edits: Option<&Edits>) -> Result<()> {
        let names = match edits {
            Some(edits) => {
                let names = edits.attributes.get(&pair.old).cloned().unwrap_or_default();
                self.differing_attributes(pair, names)?
            }
            None => {
                let mut names = attribute_names(self.old, pair.old)?;
                names.extend(attribute_names(self.new, pair.new)?);
                self.differing_attributes(pair, names.into_iter().collect())?
            }
        };
        if !names.is_empty() {
            self.report_more(pair.old_path, Aspect::Attributes, names, Vec::new());
        }
        Ok(())
    }

    /// Those of `names` whose values are not the same bytes of the same kind, wherever they are stored.
    fn differing_attributes(&self, pair: &Pair<'_>, names: Vec<String>) -> Result<Vec<String>> {
        let mut differing = Vec::new();
        for name in names {
            let old =
                attribute(self.old, pair.old, &name).map_err(|e| e.in_object(pair.old_path))?;
            let new =
                attribute(self.new, pair.new, &name).map_err(|e| e.in_object(pair.new_path))?;
            if old != new {
                differing.push(name);
            }
        }
        Ok(differing)
    }

    fn arrays(&mut self, pair: &Pair<'_>, edits: Option<&Edits>) -> Result<()> {
        let none = Vec::new();
        let keys = edits.map(|e| e.chunks.get(&pair.old).unwrap_or(&none));
        let same_document = edits.is_some_and(|e| !e.documents.contains(&pair.old));
        if same_document && keys.is_some_and(Vec::is_empty) {
            return Ok(());
        }
        let old = array_document(self.old, pair.old)?;
        let new = if same_document {
            old.clone()
        } else {
            array_document(self.new, pair.new)?
        };
        for (what, differs) in [
            (Aspect::DataType, old.data_type != new.data_type),
            (Aspect::Domain, old.domain != new.domain),
            (
                Aspect::Fill,
                old.data_type == new.data_type && old.fill != new.fill,
            ),
            (Aspect::Axes, axes(&old) != axes(&new)),
        ] {
            if differs {
                self.report(pair.old_path, what);
            }
        }
        if old.data_type != new.data_type || old.rank() != new.rank() {
            return Ok(());
        }
        let chunks = match keys {
            Some(keys) if self.tolerance == 0.0 && same_grid(&old, &new) => {
                let same_form = old.codecs == new.codecs && old.fill == new.fill;
                let coords: Result<BTreeSet<_>> = keys
                    .iter()
                    .filter(|(_, same_bytes)| !(same_form && *same_bytes))
                    .map(|(key, _)| values::coordinates(key, &old))
                    .collect();
                coords?.into_iter().collect()
            }
            _ => {
                let arrays = (self.open_old(pair)?, self.open_new(pair)?);
                let pair = values::Arrays::new(&arrays.0, &arrays.1, (old, new), self.tolerance);
                pair?.differing(keys.map(Vec::as_slice))?
            }
        };
        if !chunks.is_empty() {
            self.report_more(pair.old_path, Aspect::Values, Vec::new(), chunks);
        }
        Ok(())
    }

    fn open_old(&self, pair: &Pair<'_>) -> Result<DynArray> {
        DynArray::open(self.old.clone(), pair.old, pair.old_path.to_owned())
    }

    fn open_new(&self, pair: &Pair<'_>) -> Result<DynArray> {
        DynArray::open(self.new.clone(), pair.new, pair.new_path.to_owned())
    }
}

/// Chunk coordinates mean the same elements in both.
fn same_grid(old: &ArrayDocument, new: &ArrayDocument) -> bool {
    old.chunk_shape == new.chunk_shape && old.origin == new.origin && old.key_order == new.key_order
}

/// Names of axes; a list of none is none.
fn axes(document: &ArrayDocument) -> Vec<Option<&str>> {
    let mut names: Vec<Option<&str>> = document
        .dimension_names
        .iter()
        .map(Option::as_deref)
        .collect();
    names.resize(document.rank(), None);
    names
}

fn array_document(view: &View, id: ObjectId) -> Result<ArrayDocument> {
    match catalog::checked_document(view, id, ObjectKind::Array)?.0 {
        Document::Array(document) => Ok(*document),
        Document::Group(_) => Err(Error::corrupt("document").expected("that of an array")),
    }
}

fn attribute_names(view: &View, id: ObjectId) -> Result<BTreeSet<String>> {
    let prefix = key::attribute_prefix(id);
    let end = key::prefix_end(&prefix).unwrap_or_default();
    let mut cursor = view.cursor(&prefix, &end)?;
    let mut names = BTreeSet::new();
    while let Some((key, _)) = cursor.next()? {
        let name = attribute_name_from_key(key.get(prefix.len()..).unwrap_or_default())?;
        names.insert(name.to_owned());
    }
    Ok(names)
}

/// Kind and bytes of an attribute's value; none where there is none.
fn attribute(view: &View, id: ObjectId, name: &str) -> Result<Option<(Content, Vec<u8>)>> {
    let Some(value) = view.get(&key::attribute(id, name))? else {
        return Ok(None);
    };
    Ok(Some(match Blob::decode(&value)? {
        Blob::Inline(content, bytes) => (content, bytes.to_vec()),
        Blob::Stored(content, extent) => (content, view.payload(extent)?.into_vec()),
    }))
}
