//! What holds the bytes of a container. Spec: `format-spec/12-space.md`.
//!
//! Holds [`Usage`] and the walk that finds it, from a reader's side. Must not change anything, and must not decide what a
//! writer reuses: `reuse` does.

use std::sync::Arc;

use crate::error::Result;
use crate::format::Generation;
use crate::format::extent::Extent;
use crate::index::{Tree, exclusive};

use super::reuse::Reuse;
use super::space::Space;
use super::{Engine, SnapshotState, View, open, retained};

/// Bytes that one root reaches and its neighbours in time do not.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) kind: HoldingKind,
    pub(crate) generation: Generation,
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HoldingKind {
    /// A retained generation of this name.
    Snapshot(String),
    /// A generation that somebody reads.
    Pin,
    /// The generation before the newest, which stays whole until the next commit.
    Slot,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) struct Usage {
    pub(crate) reusable: u64,
    pub(crate) longest_run: u64,
    pub(crate) holdings: Vec<Holding>,
}

impl Engine {
    /// What holds the bytes of the file, as of `newest`.
    pub(crate) fn usage(&self, newest: &Arc<SnapshotState>) -> Result<Usage> {
        let chain = self.chain(newest)?;
        let mut space = Space::new(newest.committed_end(), u64::MAX);
        let mut reuse = Reuse::new(true);
        reuse.build(self, newest, chain.other.as_ref(), &mut space)?;
        let mut holdings = Vec::new();
        let trees = reuse.retained().to_vec();
        let (records, _) = retained::list(&View::Snapshot(Arc::clone(newest)))?;
        for (i, (record, (generation, tree))) in records.iter().zip(&trees).enumerate() {
            let older = i.checked_sub(1).and_then(|i| trees.get(i));
            let newer = trees.get(i.saturating_add(1));
            let mut kept: Vec<Tree> = older.map(|(_, tree)| *tree).into_iter().collect();
            kept.push(newer.map_or(*newest.tree(), |(_, tree)| *tree));
            holdings.push(Holding {
                kind: HoldingKind::Snapshot(record.record.label.clone()),
                generation: *generation,
                bytes: sum(&exclusive(self, &[*tree], &kept)?),
            });
        }
        let mut kept: Vec<Tree> = trees.iter().map(|(_, tree)| *tree).collect();
        kept.push(*newest.tree());
        if let Some(other) = &chain.other {
            let tree = open::tree_of(other);
            if reuse
                .retained_generations()
                .binary_search(&other.generation)
                .is_err()
            {
                holdings.push(Holding {
                    kind: HoldingKind::Slot,
                    generation: other.generation,
                    bytes: sum(&exclusive(self, &[tree], &kept)?),
                });
                kept.push(tree);
            }
        }
        for pinned in self.pinned()?.unwrap_or_default() {
            let known = kept.iter().any(|tree| tree.generation == pinned);
            let record = chain.records.iter().find(|r| r.generation == pinned);
            let (false, Some(record)) = (known, record) else {
                continue;
            };
            let tree = Tree {
                root: record.root.node,
                level: record.root.level,
                generation: pinned,
                end: newest.committed_end(),
            };
            let held = exclusive(self, &[tree], &kept)?;
            for extent in &held {
                space.add(extent);
            }
            holdings.push(Holding {
                kind: HoldingKind::Pin,
                generation: pinned,
                bytes: sum(&held),
            });
            kept.push(tree);
        }
        space.pass(newest.generation().saturating_sub(1), &mut |_| {});
        Ok(Usage {
            reusable: space.reusable().0,
            longest_run: space.longest_run(),
            holdings,
        })
    }
}

fn sum(extents: &[Extent]) -> u64 {
    extents.iter().map(|e| e.len).fold(0, u64::saturating_add)
}
