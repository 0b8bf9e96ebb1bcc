//! Where stored bytes lie, and the checksum they must have. Spec: `format-spec/01-layout.md`.
//!
//! Holds [`Extent`] and [`NodeRef`]. Must not read the file they point into.

/// Stored bytes in the file: a payload, a blob or a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Absolute position, a multiple of 8.
    pub(crate) offset: u64,
    /// Length in bytes, at least 1.
    pub(crate) len: u64,
    /// CRC32C of those bytes (of a node: the value at its byte 28).
    pub(crate) crc: u32,
}

/// A reference to an index node, as it stands in a slot or a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeRef {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) crc: u32,
    /// Leaf entries below: advisory, never sizes an allocation.
    pub(crate) count: u64,
}
