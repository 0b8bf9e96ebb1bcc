//! Changing the hierarchy: creating, removing, moving, replacing documents.
//!
//! Holds the operations of a writer. Each checks first, then stages all its changes at once. Must not touch payloads: the
//! chunks of a removed array go by their keys.
//!
//! Operations on the hierarchy of one writer exclude each other ([`lock`]), so that what one has checked still holds when
//! it stages.

use parking_lot::MutexGuard;

use super::blobs::place_blob;
use super::entry::{self, ObjectKind};
use super::lookup::{
    self, Object, array_in_path, member, not_found, prefix_cursor, require, resolve,
};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::blob::Content;
use crate::format::document::{ArrayDocument, GroupDocument};
use crate::format::key::{self, Value, tag};
use crate::format::name::ObjectPath;
use crate::txn::{Change, Hold, View, WriterState};

/// Keeps other changes of the hierarchy, and commit and abort, away until dropped.
pub(super) struct Lock<'a> {
    _exclusive: MutexGuard<'a, ()>,
    _hold: Hold<'a>,
}

pub(super) fn lock(writer: &WriterState) -> Lock<'_> {
    // The order of the lock rule in `txn`: gate, then key lock.
    let hold = writer.hold();
    Lock {
        _exclusive: writer.lock_key(&[tag::CHILD]),
        _hold: hold,
    }
}

/// Makes a group, and the groups above it that are missing.
///
/// # Errors
///
/// `AlreadyExists` where the path names an object, `TypeMismatch` where it leads through an array.
pub(crate) fn create_group(view: &View, path: &ObjectPath) -> Result<ObjectId> {
    let text = GroupDocument::default().to_text();
    create(view, path, ObjectKind::Group, &text)
}

/// The group at `path`, made where it is missing.
pub(crate) fn ensure_group(view: &View, path: &ObjectPath) -> Result<ObjectId> {
    match resolve(view, path)? {
        Some(object) if object.kind == ObjectKind::Group => Ok(object.id),
        _ => match create_group(view, path) {
            // Another thread was quicker, or it is an array after all.
            Err(Error::AlreadyExists(_)) => lookup::require_group(view, path),
            made => made,
        },
    }
}

/// Makes an array, and the groups above it that are missing.
///
/// # Errors
///
/// As [`create_group`]; and what [`ArrayDocument::validate`] refuses.
pub(crate) fn create_array(
    view: &View,
    path: &ObjectPath,
    document: &ArrayDocument,
) -> Result<ObjectId> {
    let text = checked_text(view, document).map_err(|e| e.in_object(&path.to_string()))?;
    create(view, path, ObjectKind::Array, &text)
}

fn create(view: &View, path: &ObjectPath, kind: ObjectKind, text: &str) -> Result<ObjectId> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    let Some((parent_path, name)) = path.split_last() else {
        return Err(already_exists(path, ObjectKind::Group));
    };
    let mut changes = Vec::new();
    let parent = parent_for(view, writer, &parent_path, &mut changes)?;
    let is_new_parent = !changes.is_empty();
    if !is_new_parent && let Some(found) = member(view, parent, name)? {
        return Err(already_exists(path, found.kind));
    }
    let id = add(writer, parent, name, kind, text, &mut changes)?;
    writer.stage(changes);
    Ok(id)
}

/// The group at `path`; adds to `changes` what makes the missing part of it.
fn parent_for(
    view: &View,
    writer: &WriterState,
    path: &ObjectPath,
    changes: &mut Vec<Change>,
) -> Result<ObjectId> {
    let group_text = GroupDocument::default().to_text();
    let mut parent = ObjectId::ROOT;
    let mut at = ObjectPath::default();
    for name in path.names() {
        at = at.child(name);
        let found = if changes.is_empty() {
            member(view, parent, name)?
        } else {
            None
        };
        parent = match found {
            Some(object) if object.kind == ObjectKind::Array => return Err(array_in_path(&at)),
            Some(object) => object.id,
            None => add(
                writer,
                parent,
                name,
                ObjectKind::Group,
                &group_text,
                changes,
            )?,
        };
    }
    Ok(parent)
}

/// Adds the entry and the document of a new object to `changes`.
fn add(
    writer: &WriterState,
    parent: ObjectId,
    name: &str,
    kind: ObjectKind,
    text: &str,
    changes: &mut Vec<Change>,
) -> Result<ObjectId> {
    let id = writer.next_object_id()?;
    let document = place_blob(writer, Content::Json, text.as_bytes())?;
    changes.push((key::document(id), Some(document)));
    changes.push((key::child(parent, name), Some(entry::encode(id, kind))));
    Ok(id)
}

fn already_exists(path: &ObjectPath, kind: ObjectKind) -> Error {
    let what = match kind {
        ObjectKind::Group => "a group of this name",
        ObjectKind::Array => "an array of this name",
    };
    Error::already_exists(what).in_object(&path.to_string())
}

/// Removes the object at `path` with its document, attributes and chunks; a group with members only if `recursive`.
///
/// # Errors
///
/// `NotFound`; `InvalidArgument` for the root, and for a group with members unless `recursive`.
pub(crate) fn remove(view: &View, path: &ObjectPath, recursive: bool) -> Result<()> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    let Some((parent_path, name)) = path.split_last() else {
        return Err(Error::invalid("the root group cannot be removed").in_object("/"));
    };
    let object = require(view, path)?;
    let parent = require(view, &parent_path)?.id;
    let mut changes: Vec<Change> = vec![(key::child(parent, name), None)];
    let mut removed = vec![object.id];
    remove_content(view, object, &mut changes)?;
    if object.kind == ObjectKind::Group {
        let mut members = lookup::walk(view, path.clone(), object.id)?.peekable();
        if !recursive && members.peek().is_some() {
            return Err(Error::invalid("the group is not empty")
                .help("ask for a recursive removal")
                .in_object(&path.to_string()));
        }
        for member in members {
            let (_, entry) = member?;
            let member = Object {
                id: entry.id,
                kind: entry.kind,
            };
            remove_content(view, member, &mut changes)?;
            removed.push(entry.id);
        }
    }
    writer.stage(changes);
    // A thread may have stored a chunk of an array here since its chunks were listed. With the documents gone no more can
    // follow, so a second look is the last.
    let mut late: Vec<Change> = Vec::new();
    for id in &removed {
        delete_all(view, &key::chunk_prefix(*id), &mut late)?;
    }
    writer.stage(late);
    Ok(())
}

/// Deletes what belongs to one object: document, attributes, chunks, and the entries of its members.
fn remove_content(view: &View, object: Object, changes: &mut Vec<Change>) -> Result<()> {
    changes.push((key::document(object.id), None));
    let members = match object.kind {
        ObjectKind::Group => key::child_prefix(object.id),
        ObjectKind::Array => key::chunk_prefix(object.id),
    };
    delete_all(view, &key::attribute_prefix(object.id), changes)?;
    delete_all(view, &members, changes)
}

/// Deletes every key that starts with `prefix`.
fn delete_all(view: &View, prefix: &[u8], changes: &mut Vec<Change>) -> Result<()> {
    let mut cursor = prefix_cursor(view, prefix)?;
    while let Some((key, _)) = cursor.next()? {
        changes.push((key, None));
    }
    Ok(())
}

/// Moves the object at `from` to `to`, whose parent group must exist: the change of two entries, whatever lies beneath.
///
/// # Errors
///
/// `NotFound` for `from` or the parent of `to`; `AlreadyExists` where `to` is an object; `TypeMismatch` where `to` leads
/// through an array; `InvalidArgument` for the root, and for a group moved beneath itself.
pub(crate) fn rename(view: &View, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    let (Some((old_parent, old_name)), Some((new_parent, new_name))) =
        (from.split_last(), to.split_last())
    else {
        return Err(Error::invalid("the root group cannot be moved or replaced").in_object("/"));
    };
    let object = require(view, from)?;
    if from != to && from.contains(to) {
        return match object.kind {
            ObjectKind::Array => Err(array_in_path(from)),
            ObjectKind::Group => Err(Error::invalid("a group cannot move beneath itself")
                .expected(format_args!("a path outside {from}"))
                .found(to)
                .in_object(&from.to_string())),
        };
    }
    if let Some(found) = resolve(view, to)? {
        return Err(already_exists(to, found.kind));
    }
    let target = match resolve(view, &new_parent)? {
        Some(group) if group.kind == ObjectKind::Group => group.id,
        Some(_) => return Err(array_in_path(&new_parent)),
        None => {
            return Err(
                not_found("the group to move into", &new_parent).help("make that group first")
            );
        }
    };
    let source = require(view, &old_parent)?.id;
    writer.stage(vec![
        (key::child(source, old_name), None),
        (
            key::child(target, new_name),
            Some(entry::encode(object.id, object.kind)),
        ),
    ]);
    Ok(())
}

/// Puts the array at `from` in the place of the one at `to`, whose content goes: one step.
///
/// # Errors
///
/// `NotFound` for either; `TypeMismatch` where one is a group.
pub(crate) fn replace(view: &View, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    let (Some((old_parent, old_name)), Some((new_parent, new_name))) =
        (from.split_last(), to.split_last())
    else {
        return Err(Error::invalid("the root group cannot be moved or replaced").in_object("/"));
    };
    let (id, replaced) = (
        lookup::require_array(view, from)?,
        lookup::require_array(view, to)?,
    );
    let source = require(view, &old_parent)?.id;
    let target = require(view, &new_parent)?.id;
    let mut changes: Vec<Change> = vec![
        (key::child(source, old_name), None),
        (
            key::child(target, new_name),
            Some(entry::encode(id, ObjectKind::Array)),
        ),
    ];
    let object = Object {
        id: replaced,
        kind: ObjectKind::Array,
    };
    remove_content(view, object, &mut changes)?;
    writer.stage(changes);
    // As in `remove`.
    let mut late: Vec<Change> = Vec::new();
    delete_all(view, &key::chunk_prefix(replaced), &mut late)?;
    writer.stage(late);
    Ok(())
}

/// Checks a document and gives the value of its key, for operations that stage more with it.
pub(crate) fn document_value(view: &View, document: &ArrayDocument) -> Result<Value> {
    let text = checked_text(view, document)?;
    place_blob(view.writer()?, Content::Json, text.as_bytes())
}

fn checked_text(view: &View, document: &ArrayDocument) -> Result<String> {
    let limits = view.limits();
    document.validate(limits)?;
    let text = document.to_text();
    if text.len() as u64 > limits.value_bytes {
        return Err(Error::limit("bytes of an array's document")
            .expected(format_args!("at most {}", limits.value_bytes))
            .found(text.len()));
    }
    Ok(text)
}
