//! Every node of a tree, once, parents first.
//!
//! Holds [`walk`] and the [`Visit`] it calls: what statistics, checks and the map of live space are made from.
//! Must not judge what entries mean.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Load, Tree};
use crate::error::{Error, Result};
use crate::format::extent::NodeRef;
use crate::format::key::Key;
use crate::format::node::Node;

/// A node on a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited<'a> {
    pub(crate) node: &'a Node,
    /// As it stands in the parent, or the root's.
    pub(crate) reference: &'a NodeRef,
    /// `None` for the root.
    pub(crate) parent: Option<&'a Node>,
}

impl Visited<'_> {
    /// Leaf entries below, as the node itself says; a right reference has this count.
    pub(crate) fn entries_below(&self) -> Result<u64> {
        if self.node.is_leaf() {
            return Ok(self.node.count() as u64);
        }
        (0..self.node.count()).try_fold(0_u64, |sum, i| {
            Ok(sum.saturating_add(self.node.child(i)?.count))
        })
    }
}

/// What a walk calls.
pub(crate) trait Visit {
    /// Asked before a node is loaded: false leaves out the node and all below, as when another root reached it.
    fn enter(&mut self, reference: &NodeRef, level: u8) -> bool {
        let _ = (reference, level);
        true
    }

    /// A verified node: of a leaf, the place to look at its entries.
    fn node(&mut self, visited: Visited<'_>) -> Result<()>;

    /// A node that cannot be loaded or breaks a rule. The default ends the walk.
    fn damaged(&mut self, reference: &NodeRef, level: u8, error: Error) -> Result<()> {
        let _ = (reference, level);
        Err(error)
    }
}

struct Frame {
    branch: Arc<Node>,
    next: usize,
    /// Bound of the last child.
    upper: Option<Key>,
}

/// Visits the nodes of `tree` in key order, each branch before its children.
pub(crate) fn walk<L: Load + ?Sized>(load: &L, tree: &Tree, visit: &mut impl Visit) -> Result<()> {
    let mut path: SmallVec<[Frame; 4]> = SmallVec::new();
    if !visit.enter(&tree.root, tree.level) {
        return Ok(());
    }
    match tree.load_root(load) {
        Ok(node) => {
            visit.node(Visited {
                node: &node,
                reference: &tree.root,
                parent: None,
            })?;
            path.push(Frame {
                branch: node,
                next: 0,
                upper: None,
            });
        }
        Err(error) => visit.damaged(&tree.root, tree.level, error)?,
    }
    while let Some(frame) = path.last_mut() {
        let (branch, at) = (&frame.branch, frame.next);
        if branch.is_leaf() || at >= branch.count() {
            path.pop();
            continue;
        }
        frame.next = at.saturating_add(1);
        let (reference, level) = (branch.child(at)?, branch.level().saturating_sub(1));
        if !visit.enter(&reference, level) {
            continue;
        }
        let upper = if frame.next < branch.count() {
            Some(branch.key(frame.next))
        } else {
            frame.upper.clone()
        };
        match tree.load_child(load, branch, at, upper.as_deref()) {
            Ok(node) => {
                visit.node(Visited {
                    node: &node,
                    reference: &reference,
                    parent: Some(branch),
                })?;
                path.push(Frame {
                    branch: node,
                    next: 0,
                    upper,
                });
            }
            Err(error) => visit.damaged(&reference, level, error)?,
        }
    }
    Ok(())
}
