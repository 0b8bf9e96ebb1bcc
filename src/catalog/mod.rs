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

pub(crate) use edit::{
    create_array, create_group, document_value, ensure_group, remove, rename, replace,
};
pub(crate) use entry::{decode_member, encode as encode_entry};
pub(crate) use lookup::{
    array_document_in, checked_document, children, require_array, require_group, resolve, walk,
};

#[cfg(test)]
mod tests;
