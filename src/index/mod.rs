//! Copy-on-write B+tree over "load node / put node". Spec: `format-spec/04-nodes.md`.
//!
//! Holds reading ([`Tree`], [`Cursor`], [`walk`], [`diff()`]), writing ([`edit`], [`Builder`]) and the cache of verified nodes.
//! Must not read payloads or know what keys mean.
//!
//! Invariants: levels strictly decrease, so no descent is longer than `LEVEL_MAX` and no reference can form a
//! cycle; every node's keys lie in the range its parent gives it, so no node is valid in two places and a scan is
//! linear in what the root holds; nothing that a root reaches is ever changed.

use std::sync::Arc;

use crate::error::Result;
use crate::format::extent::NodeRef;
use crate::format::node::Node;

mod build;
mod cache;
mod cursor;
mod diff;
mod edit;
mod exclusive;
mod fill;
mod tree;
mod walk;

pub(crate) use build::Builder;
pub(crate) use cache::{Loader, NodeCache};
pub(crate) use cursor::{Cursor, Entry};
pub(crate) use diff::{Differing, Source, diff};
pub(crate) use edit::{Change, Edit, count_changes, edit};
pub(crate) use exclusive::{exclusive, reached};
pub(crate) use tree::Tree;
pub(crate) use walk::{Visit, Visited, walk};

/// Gives the verified node behind a reference.
///
/// The node must have passed [`Node::parse`]; what depends on the place it is used in, this room checks itself.
pub(crate) trait Load {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>>;
}

impl<L: Load + ?Sized> Load for &L {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        (**self).load(reference)
    }
}

impl<L: Load + ?Sized> Load for Arc<L> {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        (**self).load(reference)
    }
}

/// Gives a private copy of stored bytes.
pub(crate) trait ReadNode {
    /// Reads exactly `len` bytes at `offset`; the range was checked against the end of the snapshot.
    fn read_node(&self, offset: u64, len: usize) -> Result<Box<[u8]>>;
}

impl<R: ReadNode + ?Sized> ReadNode for &R {
    fn read_node(&self, offset: u64, len: usize) -> Result<Box<[u8]>> {
        (**self).read_node(offset, len)
    }
}

#[cfg(test)]
mod tests;
