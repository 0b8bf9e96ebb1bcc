//! What some trees reach and others do not.
//!
//! Holds [`exclusive`], from which follows what a dropped root alone held, and [`reached`], all that one tree reaches. Must
//! not judge whether anything may be overwritten.
//!
//! Whole subtrees that both sides share are left out, so the work follows what differs and the number of branches.

use std::collections::HashSet;

use super::walk::{Visit, Visited, walk};
use super::{Load, Tree};
use crate::error::Result;
use crate::format::extent::{Extent, NodeRef};
use crate::format::record;

/// Two nodes at one place are the same node if their checksums agree.
type NodeId = (u64, u32);

fn id(reference: &NodeRef) -> NodeId {
    (reference.offset, reference.crc)
}

/// Calls `found` with every extent that `tree` reaches: nodes, payloads, blobs.
///
/// # Errors
/// `Unsupported` for a record of a later version, as nobody knows what it owns; what loading a node finds wrong.
pub(crate) fn reached<L: Load + ?Sized>(
    load: &L,
    tree: &Tree,
    found: &mut dyn FnMut(Extent),
) -> Result<()> {
    struct All<'a> {
        end: u64,
        found: &'a mut dyn FnMut(Extent),
    }
    impl Visit for All<'_> {
        fn node(&mut self, visited: Visited<'_>) -> Result<()> {
            (self.found)(visited.reference.extent());
            owned(&visited, self.end, self.found)
        }
    }
    walk(
        load,
        tree,
        &mut All {
            end: tree.end,
            found,
        },
    )
}

/// The extents that at least one of `trees` reaches and none of `kept`.
///
/// # Errors
/// As [`reached`].
pub(crate) fn exclusive<L: Load + ?Sized>(
    load: &L,
    trees: &[Tree],
    kept: &[Tree],
) -> Result<Vec<Extent>> {
    let mut candidates = Candidates::default();
    for tree in trees {
        walk(load, tree, &mut candidates)?;
    }
    let mut shared = Shared {
        candidates: candidates.0,
        seen: HashSet::new(),
        nodes: HashSet::new(),
        extents: HashSet::new(),
        end: 0,
    };
    for tree in kept {
        shared.end = tree.end;
        walk(load, tree, &mut shared)?;
    }
    let mut alone = Alone {
        shared: &shared,
        seen: HashSet::new(),
        extents: HashSet::new(),
        end: 0,
        found: Vec::new(),
    };
    for tree in trees {
        alone.end = tree.end;
        walk(load, tree, &mut alone)?;
    }
    Ok(alone.found)
}

fn owned(visited: &Visited<'_>, end: u64, found: &mut dyn FnMut(Extent)) -> Result<()> {
    let node = visited.node;
    if !node.is_leaf() {
        return Ok(());
    }
    for i in 0..node.count() {
        let (key, value, at) = (node.key(i), node.value(i), node.value_at(i));
        if let Some((extent, _)) = record::extent_of(&key, value, at, end)? {
            found(extent);
        }
    }
    Ok(())
}

/// The nodes of the first trees. Leaves are known from their parents and not loaded.
#[derive(Default)]
struct Candidates(HashSet<NodeId>);

impl Visit for Candidates {
    fn enter(&mut self, reference: &NodeRef, level: u8) -> bool {
        self.0.insert(id(reference)) && level > 0
    }

    fn node(&mut self, _: Visited<'_>) -> Result<()> {
        Ok(())
    }
}

/// What the other trees have of them: the highest shared nodes, and all extents of leaves that are not shared.
struct Shared {
    candidates: HashSet<NodeId>,
    seen: HashSet<NodeId>,
    nodes: HashSet<NodeId>,
    extents: HashSet<u64>,
    end: u64,
}

impl Visit for Shared {
    fn enter(&mut self, reference: &NodeRef, _: u8) -> bool {
        let id = id(reference);
        if self.candidates.contains(&id) {
            self.nodes.insert(id);
            return false;
        }
        self.seen.insert(id)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let extents = &mut self.extents;
        owned(&visited, self.end, &mut |extent| {
            extents.insert(extent.offset);
        })
    }
}

/// What is left of the first trees.
struct Alone<'a> {
    shared: &'a Shared,
    seen: HashSet<NodeId>,
    extents: HashSet<u64>,
    end: u64,
    found: Vec<Extent>,
}

impl Visit for Alone<'_> {
    fn enter(&mut self, reference: &NodeRef, _: u8) -> bool {
        let id = id(reference);
        !self.shared.nodes.contains(&id) && self.seen.insert(id)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let Self {
            shared,
            extents,
            found,
            ..
        } = self;
        found.push(visited.reference.extent());
        owned(&visited, self.end, &mut |extent| {
            if !shared.extents.contains(&extent.offset) && extents.insert(extent.offset) {
                found.push(extent);
            }
        })
    }
}
