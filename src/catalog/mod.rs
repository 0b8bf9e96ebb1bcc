//! The hierarchy: paths, ids, documents, attributes, blobs.
//!
//! Reads go through a [`View`](crate::txn::View), changes through its writer. An operation that changes several keys
//! stages them at once, after everything that can fail: a failed call changes nothing. Must not touch payloads.

mod attributes;
mod blobs;
mod edit;
mod entry;
mod lookup;

pub use attributes::{AttributeEntries, Attributes};
pub use entry::ObjectKind;

pub(crate) use attributes::{get_attribute, set_attributes};
pub(crate) use edit::{
    create_array, create_group, document_value, ensure_group, remove, rename, replace_document,
};
pub(crate) use entry::Entry;
pub(crate) use lookup::{
    Children, Object, Walk, array_document, array_document_in, children, document, document_text,
    is_alive, require_array, require_group, resolve, walk,
};

#[cfg(test)]
mod tests;
