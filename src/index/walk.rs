//! Every node of a tree, once, parents first.
//!
//! Holds [`walk`] and the [`Visit`] it calls: what statistics, checks and the map of live space are made from.
//! Must not judge what entries mean.

use super::tree::Path;
use super::{Load, Tree};
use crate::error::{Error, Result};
use crate::format::extent::NodeRef;
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

/// Visits the nodes of `tree` in key order, each branch before its children.
pub(crate) fn walk<L: Load + ?Sized>(load: &L, tree: &Tree, visit: &mut impl Visit) -> Result<()> {
    let mut path = Path::default();
    step(load, tree, visit, &mut path, &tree.root, tree.level)?;
    while let Some(last) = path.last() {
        if last.at < last.branch.count() {
            let reference = last.branch.child(last.at)?;
            let level = last.branch.level().saturating_sub(1);
            let deeper = step(load, tree, visit, &mut path, &reference, level)?;
            if deeper {
                continue;
            }
        } else {
            path.pop();
        }
        if let Some(last) = path.last_mut() {
            last.at = last.at.saturating_add(1);
        }
    }
    Ok(())
}

/// Visits the node that `path` leads to; true when it is a branch, which then ends the path.
fn step<L: Load + ?Sized>(
    load: &L,
    tree: &Tree,
    visit: &mut impl Visit,
    path: &mut Path,
    reference: &NodeRef,
    level: u8,
) -> Result<bool> {
    if !visit.enter(reference, level) {
        return Ok(false);
    }
    let node = match tree.load_next(load, path) {
        Ok(node) => node,
        Err(error) => return visit.damaged(reference, level, error).map(|()| false),
    };
    let parent = path.last().map(|last| last.branch.as_ref());
    visit.node(Visited {
        node: &node,
        reference,
        parent,
    })?;
    let deeper = !node.is_leaf();
    if deeper {
        path.push(node, 0);
    }
    Ok(deeper)
}
