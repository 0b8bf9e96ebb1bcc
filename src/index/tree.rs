//! The root of a tree, the checks of every step down, and point lookup.
//!
//! Holds [`Tree`]. Must not cache nodes nor keep a position.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Load;
use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::NodeRef;
use crate::format::key::Value;
use crate::format::node::Node;
use crate::limits::LEVEL_MAX;

/// A tree: its root, and what holds for all its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) root: NodeRef,
    /// Level of the root; 0 is a leaf.
    pub(crate) level: u8,
    /// Generation of the root: no node below is younger.
    pub(crate) generation: Generation,
    /// Exclusive bound of every node and extent reached from the root.
    pub(crate) end: u64,
}

impl Tree {
    /// The value of `key`, or `None` when the tree does not hold it.
    pub(crate) fn get<L: Load + ?Sized>(&self, load: &L, key: &[u8]) -> Result<Option<Value>> {
        self.get_below(load, &*self.load_root(load)?, None, key)
    }

    /// The value of `key` in or below `node`, all of whose keys lie below `upper`.
    ///
    /// Each call is one level deeper, to which [`Node::check_use`] holds it: at most `LEVEL_MAX` calls.
    pub(crate) fn get_below<L: Load + ?Sized>(
        &self,
        load: &L,
        node: &Node,
        upper: Upper<'_>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        if node.is_leaf() {
            return Ok(node
                .search(key)
                .ok()
                .map(|i| Value::from_slice(node.value(i))));
        }
        let Some(at) = node.route(key) else {
            return Ok(None);
        };
        let upper = node.separator_above(at).or(upper);
        let child = self.load_child(load, node, at, upper)?;
        self.get_below(load, &child, upper, key)
    }

    /// The root, verified. The one node that may not be a branch with a single child.
    pub(crate) fn load_root<L: Load + ?Sized>(&self, load: &L) -> Result<Arc<Node>> {
        if self.level > LEVEL_MAX {
            return Err(Error::corrupt("root reference")
                .at(self.root.offset)
                .expected(format_args!("a level of at most {LEVEL_MAX}"))
                .found(self.level));
        }
        self.root.check(self.end)?;
        let node = load.load(&self.root)?;
        node.check_use(&self.root, self.level, self.generation, self.end)?;
        if !node.is_leaf() && node.count() < 2 {
            return Err(node.fault().expected("at least two children of a root"));
        }
        Ok(node)
    }

    /// The node that a path leads to, verified.
    #[inline]
    pub(super) fn load_next<L: Load + ?Sized>(&self, load: &L, path: &Path) -> Result<Arc<Node>> {
        match path.last() {
            Some(step) => self.load_child(load, &step.branch, step.at, path.upper()),
            None => self.load_root(load),
        }
    }

    /// Child `i` of `parent`, verified, all its keys in the range that `parent` gives it and below `upper`.
    ///
    /// `upper` is the next separator of `parent`, or for its last child that of the nearest ancestor that has one.
    #[inline]
    pub(super) fn load_child<L: Load + ?Sized>(
        &self,
        load: &L,
        parent: &Node,
        i: usize,
        upper: Upper<'_>,
    ) -> Result<Arc<Node>> {
        // The parent's own check covered the reference: aligned, of a possible length, and below `self.end`.
        let reference = parent.child(i)?;
        let level = parent.level().saturating_sub(1);
        let node = load.load(&reference)?;
        node.check_use(&reference, level, self.generation, self.end)?;
        let above = parent.compare(i, node.first_key()) != Ordering::Greater;
        let below =
            upper.is_none_or(|(branch, j)| branch.compare(j, node.last_key()) == Ordering::Greater);
        if above && below {
            Ok(node)
        } else {
            Err(node.fault().expected("keys in the range of its parent"))
        }
    }
}

/// The branch and position of the separator that is above all keys below some node; `None` on the right edge.
pub(crate) type Upper<'n> = Option<(&'n Node, usize)>;

impl Node {
    /// The separator above child `at`; `None` for the last one.
    #[inline]
    fn separator_above(&self, at: usize) -> Upper<'_> {
        let next = at.saturating_add(1);
        (next < self.count()).then_some((self, next))
    }
}

/// A branch on the way down, and which of its children the way takes.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) branch: Arc<Node>,
    pub(super) at: usize,
}

/// The way from the root to a node, without that node.
#[derive(Debug, Default)]
pub(super) struct Path(SmallVec<[Step; 4]>);

impl Path {
    #[inline]
    pub(super) fn push(&mut self, branch: Arc<Node>, at: usize) {
        self.0.push(Step { branch, at });
    }

    pub(super) fn pop(&mut self) -> Option<Step> {
        self.0.pop()
    }

    pub(super) fn last(&self) -> Option<&Step> {
        self.0.last()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Step> {
        self.0.last_mut()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The separator that bounds what the path leads to.
    #[inline]
    pub(super) fn upper(&self) -> Upper<'_> {
        self.0
            .iter()
            .rev()
            .find_map(|step| step.branch.separator_above(step.at))
    }
}
