//! From which roots the free space of a writer follows, and what each commit frees. Spec: `format-spec/12-space.md`.
//!
//! Holds [`Reuse`], which builds the map of [`Space`] from the protected roots and keeps it right from commit to commit.
//! Reads nodes, through the engine. Must not write, and must not know who pins: the horizon decides later.
//!
//! Why the neighbours in time suffice: without restores an extent is reached by an unbroken row of generations. So what
//! a retained root shares with any protected one it shares with the next older or the next younger of them; and what the
//! present root has from before the newest retained one, that one has too. Where a restore may lie between, all protected
//! roots are asked.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::Extent;
use crate::format::key::{self, tag};
use crate::format::slot::Slot;
use crate::format::snapshot::SnapshotRecord;
use crate::index::{Tree, exclusive, reached};
use crate::limits::HISTORY_MAX;

use super::space::Space;
use super::{Change, Engine, SnapshotState, View, open, retained};

/// A live index of at most this many bytes is walked without a second thought.
const INDEX_SMALL: u64 = 8 << 20;
/// A larger one only when at least this much could be free.
const WORTH_IT: u64 = 64 << 20;

/// A generation that is kept, and its tree.
pub(super) type Kept = (Generation, Tree);

/// What a writer knows beside the map itself.
#[derive(Debug)]
pub(super) struct Reuse {
    /// Space may be reused at all.
    allowed: bool,
    /// Retained generations, ascending.
    retained: Vec<Kept>,
    /// A restore may lie between protected generations.
    restored: bool,
    /// Where something is retained: what was placed since the newest retained generation.
    young: Option<HashSet<u64>>,
}

/// One commit that has become durable, or visible here.
#[derive(Debug)]
pub(super) struct Applied<'a> {
    pub(super) generation: Generation,
    /// The tree it made.
    pub(super) after: &'a Tree,
    /// Extents that it placed and reaches.
    pub(super) placed: &'a [Extent],
    /// Extents that the tree before reached and this one does not.
    pub(super) freed: Vec<Extent>,
    /// The commit record that is no slot's from the next commit on.
    pub(super) old_record: Option<Extent>,
    pub(super) retained: Vec<Kept>,
    pub(super) restore: bool,
    /// The tree before was that of a deferred commit, not of the last generation.
    pub(super) follows_deferred: bool,
}

impl Reuse {
    pub(super) fn new(allowed: bool) -> Self {
        Self {
            allowed,
            retained: Vec::new(),
            restored: false,
            young: None,
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Whether the map is worth a walk over the index of `base`.
    pub(super) fn wants_map(&self, base: &Slot, file_len: u64) -> bool {
        let live = base.live_payload.saturating_add(base.live_index);
        let expected = live.saturating_add(live >> 2).saturating_add(WORTH_IT);
        self.allowed && (base.live_index <= INDEX_SMALL || file_len > expected)
    }

    /// Takes note of what `base` retains.
    pub(super) fn read_retained(&mut self, base: &std::sync::Arc<SnapshotState>) -> Result<()> {
        let (all, newer) = retained::list(&View::Snapshot(std::sync::Arc::clone(base)))?;
        if newer {
            return Err(Error::unsupported("retained snapshot")
                .expected("records of this version")
                .found("one of a later version"));
        }
        let end = base.committed_end();
        self.retained = all
            .into_iter()
            .map(|r| (r.generation, kept_tree(r.generation, &r.record, end)))
            .collect();
        Ok(())
    }

    /// What is retained, ascending.
    pub(super) fn retained(&self) -> &[Kept] {
        &self.retained
    }

    pub(super) fn retained_generations(&self) -> Vec<Generation> {
        self.retained.iter().map(|(g, _)| *g).collect()
    }

    /// Fills `space` from the roots of `base`, of the `other` slot and of what is retained.
    ///
    /// # Errors
    /// What loading a node finds wrong; `Unsupported` where a later version's record hides what it owns. The map is then
    /// unusable.
    pub(super) fn build(
        &mut self,
        engine: &Engine,
        base: &std::sync::Arc<SnapshotState>,
        other: Option<&Slot>,
        space: &mut Space,
    ) -> Result<()> {
        self.read_retained(base)?;
        let oldest = self.retained.first().map(|(g, _)| *g);
        self.restored = match oldest {
            Some(oldest) => may_have_restores(base, oldest)?,
            None => false,
        };
        let generation = base.generation();
        space.start_map(generation.saturating_sub(1))?;
        space.add(&base.slot().record);
        reached(engine, base.tree(), &mut |e| space.add(&e))?;
        let mut known = vec![*base.tree()];
        for (_, tree) in self.retained.iter().rev() {
            let newer = known.last().copied();
            let kept = if self.restored {
                known.clone()
            } else {
                newer.into_iter().collect()
            };
            for extent in exclusive(engine, &[*tree], &kept)? {
                space.add(&extent);
            }
            known.push(*tree);
        }
        if let Some(other) = other {
            let mut freed = vec![other.record];
            if other.root != base.slot().root {
                let kept = if self.restored {
                    known
                } else {
                    known.into_iter().take(2).collect()
                };
                freed.extend(exclusive(engine, &[open::tree_of(other)], &kept)?);
            }
            for extent in &freed {
                space.add(extent);
            }
            space.enqueue(generation, freed);
        }
        self.young = self.young_of(engine, base.tree())?;
        Ok(())
    }

    /// What `tree` has and no retained generation has.
    fn young_of(&self, engine: &Engine, tree: &Tree) -> Result<Option<HashSet<u64>>> {
        let Some((_, newest)) = self.retained.last() else {
            return Ok(None);
        };
        let kept: Vec<Tree> = if self.restored {
            self.retained.iter().map(|(_, tree)| *tree).collect()
        } else {
            vec![*newest]
        };
        let young = exclusive(engine, &[*tree], &kept)?;
        Ok(Some(young.into_iter().map(|e| e.offset).collect()))
    }

    /// Follows a commit: what it freed waits in `space` for the horizon, unless something retained holds it.
    ///
    /// # Errors
    /// As [`Reuse::build`]; the map is then unusable.
    pub(super) fn apply(
        &mut self,
        engine: &Engine,
        applied: Applied<'_>,
        space: &mut Space,
    ) -> Result<()> {
        let before = std::mem::replace(&mut self.retained, applied.retained);
        if !space.is_mapped() {
            return Ok(());
        }
        let newest = self.retained.last().map(|(g, _)| *g);
        let is_new = newest.is_some() && newest != before.last().map(|(g, _)| *g);
        if applied.restore || (is_new && applied.follows_deferred) {
            // Extents come back that were counted as freed, or freed ones are kept after all: the map is made anew when
            // it is next wanted.
            space.drop_map();
            return Ok(());
        }
        let dropped: Vec<Kept> = before
            .iter()
            .filter(|(g, _)| !self.keeps(*g))
            .copied()
            .collect();
        let mut freed: HashMap<u64, Extent> = HashMap::new();
        for extent in self.held_by(engine, &dropped, applied.after)? {
            freed.insert(extent.offset, extent);
        }
        let base_is_kept = is_new && newest == Some(applied.generation.saturating_sub(1));
        for extent in applied.freed {
            let young = self
                .young
                .as_ref()
                .is_none_or(|young| young.contains(&extent.offset));
            // What is older than the newest retained generation is reached by one: if that goes now, it was found above.
            if !base_is_kept && (young || newest.is_none()) {
                freed.insert(extent.offset, extent);
            }
            if let Some(young) = &mut self.young {
                young.remove(&extent.offset);
            }
        }
        freed.extend(applied.old_record.map(|record| (record.offset, record)));
        let mut freed: Vec<Extent> = freed.into_values().collect();
        freed.sort_unstable_by_key(|e| e.offset);
        space.enqueue(applied.generation, freed);

        let placed = applied.placed.iter().map(|e| e.offset);
        if newest.is_none() {
            self.young = None;
            self.restored = false;
        } else if base_is_kept {
            self.young = Some(placed.collect());
        } else if before.last().map(|(g, _)| *g) == newest {
            if let Some(young) = &mut self.young {
                young.extend(placed);
            }
        } else {
            self.young = self.young_of(engine, applied.after)?;
        }
        Ok(())
    }

    fn keeps(&self, generation: Generation) -> bool {
        self.retained
            .binary_search_by_key(&generation, |(g, _)| *g)
            .is_ok()
    }

    /// What the `dropped` generations (ascending) reach and neither those still retained nor `now` do.
    fn held_by(&self, engine: &Engine, dropped: &[Kept], now: &Tree) -> Result<Vec<Extent>> {
        if dropped.is_empty() {
            return Ok(Vec::new());
        }
        if self.restored {
            let dropped: Vec<Tree> = dropped.iter().map(|(_, tree)| *tree).collect();
            let mut kept: Vec<Tree> = self.retained.iter().map(|(_, tree)| *tree).collect();
            kept.push(*now);
            return exclusive(engine, &dropped, &kept);
        }
        let mut all = Vec::new();
        let mut rest = dropped;
        while let Some((first, _)) = rest.first() {
            // A row of dropped ones between two that stay.
            let younger = self.retained.partition_point(|(g, _)| g < first);
            let next = self.retained.get(younger);
            let row = match next {
                Some((next, _)) => rest.partition_point(|(g, _)| g < next),
                None => rest.len(),
            };
            let (row, others) = rest.split_at_checked(row).unwrap_or((rest, &[]));
            rest = others;
            let older = younger.checked_sub(1).and_then(|i| self.retained.get(i));
            let mut kept: Vec<Tree> = older.map(|(_, tree)| *tree).into_iter().collect();
            kept.push(next.map_or(*now, |(_, tree)| *tree));
            let row: Vec<Tree> = row.iter().map(|(_, tree)| *tree).collect();
            all.extend(exclusive(engine, &row, &kept)?);
        }
        Ok(all)
    }
}

fn kept_tree(generation: Generation, record: &SnapshotRecord, end: u64) -> Tree {
    Tree {
        root: record.root.node,
        level: record.root.level,
        generation,
        end,
    }
}

/// Whether a restore may have been committed after generation `oldest`: the history says so, or does not reach back so far.
fn may_have_restores(base: &SnapshotState, oldest: Generation) -> Result<bool> {
    let history = base.history()?;
    let cut = history.len() as u64 >= HISTORY_MAX.saturating_sub(crate::limits::HISTORY_DROP)
        && history
            .first()
            .is_some_and(|(g, _)| *g > oldest.saturating_add(1));
    Ok(cut || history.iter().any(|(g, h)| h.restore && *g > oldest))
}

impl Reuse {
    /// What is retained once `changes` (ascending) are committed, ascending; `end` bounds what is retained anew.
    ///
    /// # Errors
    /// `Unsupported` and `Corrupt` for a record that this version would not write.
    pub(super) fn after(&self, changes: &[Change], end: u64) -> Result<Vec<Kept>> {
        let mut all: BTreeMap<Generation, Tree> = self.retained.iter().copied().collect();
        let first = changes.partition_point(|(key, _)| key.first() < Some(&tag::SNAPSHOT));
        for (key, value) in changes.get(first..).unwrap_or(&[]) {
            if key.first() != Some(&tag::SNAPSHOT) {
                break;
            }
            let generation = key::split_generation(key)?;
            match value {
                Some(value) => {
                    let record = SnapshotRecord::decode(value, 0)?;
                    all.insert(generation, kept_tree(generation, &record, end));
                }
                None => drop(all.remove(&generation)),
            }
        }
        Ok(all.into_iter().collect())
    }
}
