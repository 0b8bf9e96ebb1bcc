//! Forward scans over half-open ranges of keys.
//!
//! Holds [`Cursor`]: a position in a tree that moves forward, entry by entry or to a key. Must not know what keys
//! or values mean.

use std::cmp::Ordering;
use std::sync::Arc;

use super::tree::Path;
use super::{Load, Tree};
use crate::error::Result;
use crate::format::key::Key;
use crate::format::node::Node;

/// An entry under a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Absolute position of the value in the file, for messages; 0 when it is not in the file yet.
    pub(crate) at: u64,
}

#[derive(Debug)]
struct Leaf {
    node: Arc<Node>,
    at: usize,
    /// Entries of this leaf that lie below the cursor's end.
    limit: usize,
}

/// A position in a tree. A new one stands nowhere until [`Cursor::seek`].
#[derive(Debug)]
pub(crate) struct Cursor<L> {
    load: L,
    tree: Tree,
    /// Exclusive upper bound; `None` is the end of the tree.
    end: Option<Key>,
    /// Branches from the root to the leaf's parent.
    path: Path,
    /// `None` when there is no entry under the cursor.
    leaf: Option<Leaf>,
    /// Key of the entry under the cursor.
    key: Key,
}

impl<L: Load> Cursor<L> {
    /// A cursor over the keys below `end`.
    pub(crate) fn new(load: L, tree: Tree, end: Option<Key>) -> Self {
        Self {
            load,
            tree,
            end,
            path: Path::default(),
            leaf: None,
            key: Key::new(),
        }
    }

    /// A cursor at the first key of `from..end`.
    pub(crate) fn range(load: L, tree: Tree, from: &[u8], end: Option<Key>) -> Result<Self> {
        let mut cursor = Self::new(load, tree, end);
        cursor.seek(from)?;
        Ok(cursor)
    }

    /// The entry under the cursor; `None` at the end.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry<'_>> {
        let leaf = self.leaf.as_ref()?;
        Some(Entry {
            key: &self.key,
            value: leaf.node.value(leaf.at),
            at: leaf.node.value_at(leaf.at),
        })
    }

    /// The key under the cursor; `None` at the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.leaf.as_ref().map(|_| self.key.as_slice())
    }

    /// Moves to the next entry; does nothing at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        leaf.at = leaf.at.saturating_add(1);
        if leaf.at < leaf.limit {
            // Keys of a leaf share its prefix, which the buffer holds already.
            self.key.truncate(leaf.node.prefix().len());
            self.key.extend_from_slice(leaf.node.suffix(leaf.at));
            return Ok(());
        }
        self.settle()
    }

    /// Moves to the first entry at or above `key`, from anywhere.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.path.clear();
        self.leaf = None;
        let root = self.tree.load_root(&self.load)?;
        self.descend(root, Some(key))
    }

    /// Moves forward to the first entry at or above `key`; stays when the entry under the cursor is such.
    ///
    /// Looks in the same leaf first, then goes up only as far as the separators demand.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<()> {
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        if self.key.as_slice() >= key {
            return Ok(());
        }
        let last = leaf.node.count().saturating_sub(1);
        if leaf.node.compare(last, key) != Ordering::Less {
            leaf.at = leaf.node.search(key).unwrap_or_else(|at| at);
            return self.settle();
        }
        self.leaf = None;
        while let Some(step) = self.path.pop() {
            let covered = self
                .path
                .upper()
                .is_none_or(|(branch, i)| branch.compare(i, key) == Ordering::Greater);
            if covered {
                return self.descend(step.branch, Some(key));
            }
        }
        // No branch covers the key: the root does, so the tree is a single leaf that ends before it.
        Ok(())
    }

    /// Goes down from `node` to the first entry at or above `from` (or the first of all) and settles there.
    fn descend(&mut self, mut node: Arc<Node>, from: Option<&[u8]>) -> Result<()> {
        while !node.is_leaf() {
            let at = from.and_then(|key| node.route(key)).unwrap_or(0);
            self.path.push(node, at);
            node = self.tree.load_next(&self.load, &self.path)?;
        }
        self.enter(node, from);
        self.settle()
    }

    fn enter(&mut self, node: Arc<Node>, from: Option<&[u8]>) {
        let at = from.map_or(0, |key| node.search(key).unwrap_or_else(|at| at));
        let limit = match &self.end {
            Some(end) => node.search(end).unwrap_or_else(|at| at),
            None => node.count(),
        };
        self.leaf = Some(Leaf { node, at, limit });
    }

    /// Makes the position an entry again: goes to the next leaf while this one is used up, and notices the end.
    fn settle(&mut self) -> Result<()> {
        loop {
            let Some(leaf) = &self.leaf else {
                return Ok(());
            };
            if leaf.at < leaf.limit {
                leaf.node.key_into(leaf.at, &mut self.key);
                return Ok(());
            }
            // The next leaf is beyond the end when this one reaches it, or when its separator does.
            let at_end = leaf.limit < leaf.node.count() || self.next_is_beyond();
            self.leaf = None;
            if at_end {
                return Ok(());
            }
            if let Some(node) = self.next_leaf()? {
                self.enter(node, None);
            }
        }
    }

    fn next_is_beyond(&self) -> bool {
        match (&self.end, self.path.upper()) {
            (Some(end), Some((branch, i))) => branch.compare(i, end) != Ordering::Less,
            _ => false,
        }
    }

    /// Moves the path to the next leaf and gives it; `None` at the end of the tree.
    fn next_leaf(&mut self) -> Result<Option<Arc<Node>>> {
        while let Some(step) = self.path.last_mut() {
            step.at = step.at.saturating_add(1);
            if step.at >= step.branch.count() {
                self.path.pop();
                continue;
            }
            let mut node = self.tree.load_next(&self.load, &self.path)?;
            while !node.is_leaf() {
                self.path.push(node, 0);
                node = self.tree.load_next(&self.load, &self.path)?;
            }
            return Ok(Some(node));
        }
        Ok(None)
    }
}
