//! Finding objects: paths to ids, members of groups, whole subtrees, documents.
//!
//! Holds [`resolve`], [`Children`], [`Walk`] and the reading of documents. Must not change anything.
//!
//! Nothing here recurses or collects: a path costs one lookup a name, a listing holds one entry, a walk holds one cursor a
//! level and the ids of the groups it has entered (which is how a forged cycle ends).

use std::collections::HashSet;

use super::blobs::read_blob;
use super::entry::{self, Entry, ObjectKind};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::blob::Content;
use crate::format::document::{ArrayDocument, Document};
use crate::format::key;
use crate::format::name::ObjectPath;
use crate::limits::Limits;
use crate::txn::{Cursor, View};

/// An object that a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
}

impl Object {
    /// The root group.
    pub(crate) const ROOT: Self = Self {
        id: ObjectId::ROOT,
        kind: ObjectKind::Group,
    };
}

/// The member of that name.
pub(crate) fn member(view: &View, group: ObjectId, name: &str) -> Result<Option<Object>> {
    match view.get(&key::child(group, name))? {
        None => Ok(None),
        Some(value) => {
            let (id, kind) = entry::decode(&value)?;
            Ok(Some(Object { id, kind }))
        }
    }
}

/// The object at `path`, if there is one.
///
/// # Errors
///
/// `TypeMismatch` where the path goes on beneath an array.
pub(crate) fn resolve(view: &View, path: &ObjectPath) -> Result<Option<Object>> {
    let mut object = Object::ROOT;
    let mut at = ObjectPath::default();
    for name in path.names() {
        if object.kind == ObjectKind::Array {
            return Err(array_in_path(&at));
        }
        at = at.child(name);
        match member(view, object.id, name).map_err(|e| e.in_object(&at.to_string()))? {
            Some(found) => object = found,
            None => return Ok(None),
        }
    }
    Ok(Some(object))
}

/// The error of a path that goes on beneath the array `at`.
pub(super) fn array_in_path(at: &ObjectPath) -> Error {
    Error::type_mismatch("object in a path")
        .expected("a group")
        .found("an array, which has no members")
        .in_object(&at.to_string())
}

/// The object at `path`.
pub(crate) fn require(view: &View, path: &ObjectPath) -> Result<Object> {
    resolve(view, path)?.ok_or_else(|| not_found("no object of this path", path))
}

pub(super) fn not_found(what: &'static str, path: &ObjectPath) -> Error {
    Error::not_found(what).in_object(&path.to_string())
}

/// The group at `path`.
///
/// # Errors
///
/// `NotFound`, or `TypeMismatch` for an array.
pub(crate) fn require_group(view: &View, path: &ObjectPath) -> Result<ObjectId> {
    require_kind(view, path, ObjectKind::Group)
}

/// The array at `path`.
///
/// # Errors
///
/// `NotFound`, or `TypeMismatch` for a group.
pub(crate) fn require_array(view: &View, path: &ObjectPath) -> Result<ObjectId> {
    require_kind(view, path, ObjectKind::Array)
}

fn require_kind(view: &View, path: &ObjectPath, kind: ObjectKind) -> Result<ObjectId> {
    let object = require(view, path)?;
    if object.kind == kind {
        return Ok(object.id);
    }
    Err(Error::type_mismatch("kind of object")
        .expected(kind)
        .found(object.kind)
        .in_object(&path.to_string()))
}

/// The members of a group, ascending by the bytes of their names.
pub(crate) fn children(view: &View, group: ObjectId) -> Result<Children> {
    let prefix = key::child_prefix(group);
    Ok(Children {
        cursor: prefix_cursor(view, &prefix)?,
        prefix_len: prefix.len(),
    })
}

/// A cursor over the keys that start with `prefix`.
pub(super) fn prefix_cursor(view: &View, prefix: &[u8]) -> Result<Cursor> {
    // Prefixes start with a tag below 0xFF, so there is always an end.
    let end = key::prefix_end(prefix).unwrap_or_default();
    view.cursor(prefix, &end)
}

/// See [`children`]. After an error of one entry it goes on with the next, except after one of the index.
#[derive(Debug)]
pub(crate) struct Children {
    cursor: Cursor,
    prefix_len: usize,
}

impl Iterator for Children {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.cursor.next() {
            Ok(None) => None,
            Ok(Some((key, value))) => Some(entry::decode_member(&key, self.prefix_len, &value)),
            Err(e) => Some(Err(e)),
        }
    }
}

/// Everything beneath the group `top`, which lies at `path`: each group before its members, members by name.
pub(crate) fn walk(view: &View, path: ObjectPath, top: ObjectId) -> Result<Walk> {
    Ok(Walk {
        levels: vec![(path, children(view, top)?)],
        entered: HashSet::from([top]),
        view: view.clone(),
    })
}

/// See [`walk`]. Ends after an error.
#[derive(Debug)]
pub(crate) struct Walk {
    view: View,
    levels: Vec<(ObjectPath, Children)>,
    /// Groups seen so far; a second sight of one is a forged directory.
    entered: HashSet<ObjectId>,
}

impl Walk {
    fn enter(&mut self, path: &ObjectPath, group: ObjectId) -> Result<()> {
        if !self.entered.insert(group) {
            return Err(Error::corrupt("directory")
                .expected("one entry for each object")
                .found(format_args!("two for object {}", group.0)));
        }
        let depth_max = self.view.limits().path_depth;
        // A group this deep may exist, empty; what is beneath it has no valid path.
        if self.levels.len() > depth_max {
            return Err(Error::limit("names in an object path")
                .expected(format_args!("at most {depth_max}")));
        }
        let members = children(&self.view, group)?;
        self.levels.push((path.clone(), members));
        Ok(())
    }
}

impl Iterator for Walk {
    type Item = Result<(ObjectPath, Entry)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (parent, members) = self.levels.last_mut()?;
            let Some(member) = members.next() else {
                self.levels.pop();
                continue;
            };
            let found = match member {
                Ok(entry) => {
                    let path = parent.child(&entry.name);
                    let entered = match entry.kind {
                        ObjectKind::Group => self.enter(&path, entry.id),
                        ObjectKind::Array => Ok(()),
                    };
                    entered
                        .map_err(|e| e.in_object(&path.to_string()))
                        .map(|()| (path, entry))
                }
                Err(e) => Err(e.in_object(&parent.to_string())),
            };
            if found.is_err() {
                self.levels.clear();
            }
            return Some(found);
        }
    }
}

/// Whether the object still exists in this view: a handle may outlive what it names.
pub(crate) fn is_alive(view: &View, id: ObjectId) -> Result<bool> {
    Ok(view.get(&key::document(id))?.is_some())
}

/// The document of an array, from the value of its key.
pub(crate) fn array_document_in(view: &View, value: &[u8]) -> Result<ArrayDocument> {
    parse_document(view, value, ArrayDocument::parse)
}

/// The document of an object of that kind, and whether it is stored in its one text.
pub(crate) fn checked_document(
    view: &View,
    id: ObjectId,
    kind: ObjectKind,
) -> Result<(Document, bool)> {
    let value = view.get(&key::document(id))?.ok_or_else(|| {
        Error::corrupt("directory")
            .expected("a document for each entry")
            .found(format_args!("none for object {}", id.0))
    })?;
    let (document, is_one_text) = parse_document(view, &value, |bytes, limits| {
        let document = Document::parse(bytes, limits)?;
        let is_one_text = document.is_canonical(bytes);
        Ok((document, is_one_text))
    })?;
    let found = match document {
        Document::Group(_) => ObjectKind::Group,
        Document::Array(_) => ObjectKind::Array,
    };
    if found == kind {
        return Ok((document, is_one_text));
    }
    Err(Error::corrupt("document")
        .expected(format_args!("node_type {kind}, as the directory says"))
        .found(found))
}

fn parse_document<T>(
    view: &View,
    value: &[u8],
    read: impl FnOnce(&[u8], &Limits) -> Result<T>,
) -> Result<T> {
    read_blob(view, value, |content, bytes, limits| match content {
        Content::Json => read(bytes, limits),
        _ => Err(Error::corrupt("document")
            .expected("JSON text")
            .found("another content")),
    })
}
