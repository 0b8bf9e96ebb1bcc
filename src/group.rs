//! The handle of a group.
//!
//! Holds [`Group`] and the iterators over its members. Thin: paths and keys are the catalog's.

use std::ops::ControlFlow;

use crate::array::{
    self, Array, ArraySpec, DynArray, DynArraySpec, Element, Rechunk, RechunkReceipt,
};
use crate::catalog::{self, Attributes, ObjectKind};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::name::ObjectPath;
use crate::txn::View;

/// A group: a named place for arrays and other groups. Cheap to clone.
///
/// One from a [`crate::Snapshot`] never changes; one from a [`crate::Writer`] also creates, moves and removes, and sees
/// what the writer has not committed yet. Paths are relative to the group.
#[derive(Debug, Clone)]
pub struct Group {
    view: View,
    id: ObjectId,
    path: ObjectPath,
}

/// A member of the hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The path from the container's root, with a slash before each name.
    pub path: String,
    /// The last part of the path.
    pub name: String,
    /// Group or array.
    pub kind: ObjectKind,
}

impl Group {
    pub(crate) fn root(view: View) -> Self {
        Self {
            view,
            id: ObjectId::ROOT,
            path: ObjectPath::default(),
        }
    }

    /// The path from the container's root, with a slash before each name; `/` for the root.
    pub fn path(&self) -> String {
        self.path.to_string()
    }

    /// The attributes.
    pub fn attributes(&self) -> Attributes {
        Attributes::new(self.view.clone(), self.id, self.path())
    }

    /// The members, by name in byte order, one at a time.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; each item may fail by itself.
    pub fn members(&self) -> Result<impl Iterator<Item = Result<Member>> + use<>> {
        let path = self.path.clone();
        let children = self.placed(catalog::children(&self.view, self.id))?;
        Ok(children.map(move |entry| {
            let entry = entry?;
            Ok(Member {
                path: path.child(&entry.name).to_string(),
                name: entry.name,
                kind: entry.kind,
            })
        }))
    }

    /// Everything below this group: parents before their members, siblings by name, one at a time.
    ///
    /// # Errors
    /// As [`Group::members`].
    pub fn walk(&self) -> Result<impl Iterator<Item = Result<Member>> + use<>> {
        let walk = self.placed(catalog::walk(&self.view, self.path.clone(), self.id))?;
        Ok(walk.map(|step| {
            let (path, entry) = step?;
            Ok(Member {
                path: path.to_string(),
                name: entry.name,
                kind: entry.kind,
            })
        }))
    }

    /// What lies at `path`, if anything does.
    ///
    /// # Errors
    /// `InvalidArgument` for a path that no object can have; `TypeMismatch` for one that leads through an array.
    pub fn kind(&self, path: &str) -> Result<Option<ObjectKind>> {
        let path = self.join(path)?;
        Ok(self
            .placed(catalog::resolve(&self.view, &path))?
            .map(|o| o.kind))
    }

    /// The group at `path`; `""` is this one.
    ///
    /// # Errors
    /// `NotFound`, `TypeMismatch` when it is an array, `InvalidArgument` for a path that no object can have, `Corrupt`, `Io`.
    pub fn group(&self, path: &str) -> Result<Self> {
        let path = self.join(path)?;
        let id = self.placed(catalog::require_group(&self.view, &path))?;
        Ok(Self {
            view: self.view.clone(),
            id,
            path,
        })
    }

    /// The array at `path`, its elements read as `T`.
    ///
    /// # Errors
    /// As [`Group::dyn_array`]; `TypeMismatch` when the stored type is another.
    pub fn array<T: Element>(&self, path: &str) -> Result<Array<T>> {
        self.dyn_array(path)?.typed()
    }

    /// The array at `path`, its type known at run time.
    ///
    /// # Errors
    /// As [`Group::group`]; `Unsupported` for a type, codec or feature this build does not have.
    pub fn dyn_array(&self, path: &str) -> Result<DynArray> {
        let path = self.join(path)?;
        let id = self.placed(catalog::require_array(&self.view, &path))?;
        DynArray::open(self.view.clone(), id, path.to_string())
    }

    /// Creates a group and its missing parents.
    ///
    /// # Errors
    /// `ReadOnly` on a snapshot's handle; `AlreadyExists`; `InvalidArgument` for a path that no object can have.
    pub fn create_group(&self, path: &str) -> Result<Self> {
        let path = self.join(path)?;
        let id = self.placed(catalog::create_group(&self.view, &path))?;
        Ok(Self {
            view: self.view.clone(),
            id,
            path,
        })
    }

    /// The group at `path`, created with its missing parents where there is none.
    ///
    /// # Errors
    /// As [`Group::create_group`]; `TypeMismatch` when an array is there.
    pub fn ensure_group(&self, path: &str) -> Result<Self> {
        let path = self.join(path)?;
        let id = self.placed(catalog::ensure_group(&self.view, &path))?;
        Ok(Self {
            view: self.view.clone(),
            id,
            path,
        })
    }

    /// Creates an array and its missing parent groups.
    ///
    /// # Errors
    /// As [`Group::create_dyn_array`].
    pub fn create_array<T: Element>(&self, path: &str, spec: ArraySpec<T>) -> Result<Array<T>> {
        self.create_dyn_array(path, &spec.into_dyn())?.typed()
    }

    /// Creates an array whose type is known at run time, and its missing parent groups.
    ///
    /// # Errors
    /// As [`Group::create_group`]; `InvalidArgument` for what the specification gets wrong; `LimitExceeded` for a chunk above
    /// the limit, with its size; `Unsupported` for a codec this build does not have.
    pub fn create_dyn_array(&self, path: &str, spec: &DynArraySpec) -> Result<DynArray> {
        let path = self.join(path)?;
        // Refused before the specification is compiled: a snapshot cannot be written.
        self.placed(self.view.writer().map(drop))?;
        let document = self.placed(
            spec.document(self.view.limits())
                .map_err(|e| e.in_object(&path.to_string())),
        )?;
        let id = self.placed(catalog::create_array(&self.view, &path, &document))?;
        DynArray::open(self.view.clone(), id, path.to_string())
    }

    /// Copies an array of this container or another to `path`.
    pub(crate) fn copy_here(
        &self,
        from: &DynArray,
        path: &str,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<DynArray>> {
        let path = self.join(path)?;
        self.placed(array::copy(from, &self.view, &path, progress))
    }

    /// Stores the array at `path` anew.
    pub(crate) fn rechunk(
        &self,
        path: &str,
        wanted: &Rechunk,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<(DynArray, RechunkReceipt)>> {
        let old = self.dyn_array(path)?;
        let path = self.join(path)?;
        self.placed(array::rechunk(&old, &self.view, &path, wanted, progress))
    }

    /// Removes the object at `path`; a group that has members only with `recursive`.
    ///
    /// # Errors
    /// `ReadOnly`; `NotFound`; `InvalidArgument` for the root or a group with members.
    pub fn remove(&self, path: &str, recursive: bool) -> Result<()> {
        let path = self.join(path)?;
        self.placed(catalog::remove(&self.view, &path, recursive))
    }

    /// Gives the object at `from` the path `to`; both are relative to this group. Costs the same whatever is below it.
    ///
    /// # Errors
    /// `ReadOnly`; `NotFound`; `AlreadyExists`; `InvalidArgument` for a move of a group into itself.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.join(from)?, self.join(to)?);
        self.placed(catalog::rename(&self.view, &from, &to))
    }

    fn join(&self, path: &str) -> Result<ObjectPath> {
        let whole = if self.path.is_root() {
            path.to_owned()
        } else {
            format!("{}/{}", self.path, path.trim_start_matches('/'))
        };
        self.placed(ObjectPath::parse(
            whole.strip_suffix('/').unwrap_or(&whole),
            self.view.limits(),
        ))
    }

    /// Adds the container's path to an error.
    fn placed<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|e: Error| match self.view.file() {
            Some(file) => e.in_file(file),
            None => e,
        })
    }
}
