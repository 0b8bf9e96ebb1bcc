//! Structures of the file, struct <-> bytes, pure. Mirrors `format-spec/` file by file.
//!
//! Holds encodings and their validation. Must not do I/O, cache, or read what a structure points at.

mod base64;
pub(crate) mod blob;
pub(crate) mod commit;
pub(crate) mod document;
pub(crate) mod dtype;
pub(crate) mod extent;
mod fill;
mod fixed_text;
pub(crate) mod float;
pub(crate) mod foreign;
pub(crate) mod header;
pub(crate) mod history;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod name;
pub(crate) mod node;
mod npy_descr;
pub(crate) mod pack;
pub(crate) mod pipeline;
pub(crate) mod record;
mod short_name;
pub(crate) mod slot;
pub(crate) mod snapshot;
pub(crate) mod time_text;
pub(crate) mod tree;
pub(crate) mod typed;
pub(crate) mod value;
#[cfg(test)]
mod vectors;

/// Format major version of the files this library writes and reads.
pub(crate) const MAJOR: u16 = 0;
/// Format minor version of the files this library writes; informative.
pub(crate) const MINOR: u16 = 0;
/// Where the data region starts: after the header block and the two slot blocks.
pub(crate) const DATA_START: u64 = 0x3000;
/// Block size: slots and commits start at its multiples, so no block mixes two commits.
pub(crate) const BLOCK: u64 = 4096;
/// Every extent starts at a multiple of this.
pub(crate) const ALIGN: u64 = 8;

/// Number of a durable commit, at least 1.
pub(crate) type Generation = u64;

/// Identity of a group or an array in its container; never reused. The root group is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(pub(crate) u64);

impl ObjectId {
    /// The root group.
    pub(crate) const ROOT: Self = Self(0);
}
