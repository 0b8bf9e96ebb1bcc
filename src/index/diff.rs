//! What two trees hold differently.
//!
//! Holds [`diff`], a walk over two trees at once that leaves out what both share. Must not know what keys or values mean.
//!
//! Invariant: a node that both trees refer to alike is never loaded, where the caller says that both lie on one medium;
//! so the work follows what differs, not what there is.

use std::cmp::Ordering;
use std::sync::Arc;

use super::tree::{Path, Step};
use super::{Load, Tree};
use crate::error::Result;
use crate::format::extent::NodeRef;
use crate::format::key::Key;
use crate::format::node::Node;

/// A tree and where its nodes come from.
#[derive(Debug)]
pub(crate) struct Source<'l, L: ?Sized> {
    pub(crate) load: &'l L,
    pub(crate) tree: &'l Tree,
}

/// A key that two trees do not agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Differing<'a> {
    pub(crate) key: &'a [u8],
    /// `None` where the old tree does not have the key.
    pub(crate) old: Option<&'a [u8]>,
    /// `None` where the new tree does not have the key.
    pub(crate) new: Option<&'a [u8]>,
}

/// Calls `found` for every key of `from..to` that `old` and `new` do not agree on, ascending.
///
/// `one_medium`: both trees lie on the same medium, so that equal references mean equal subtrees.
pub(crate) fn diff<A: Load + ?Sized, B: Load + ?Sized>(
    old: Source<'_, A>,
    new: Source<'_, B>,
    (from, to): (&[u8], &[u8]),
    one_medium: bool,
    mut found: impl FnMut(Differing<'_>) -> Result<()>,
) -> Result<()> {
    let mut old = Side::new(old, from, to);
    let mut new = Side::new(new, from, to);
    loop {
        match (old.item()?, new.item()?) {
            (Item::End, Item::End) => return Ok(()),
            (Item::Node(a), Item::Node(b)) => {
                if one_medium && a == b {
                    old.skip();
                    new.skip();
                } else {
                    expand(&mut old, &a, &mut new, &b)?;
                }
            }
            (Item::Node(_), Item::End) => old.expand()?,
            (Item::End, Item::Node(_)) => new.expand()?,
            // Entries below all that is under the other side's node are not there.
            (Item::Entry, Item::Node(_)) if new.starts_at_or_below(&old) => new.expand()?,
            (Item::Node(_), Item::Entry) if old.starts_at_or_below(&new) => old.expand()?,
            (Item::Entry, Item::Node(_) | Item::End) => {
                found(old.alone(true))?;
                old.skip();
            }
            (Item::Node(_) | Item::End, Item::Entry) => {
                found(new.alone(false))?;
                new.skip();
            }
            (Item::Entry, Item::Entry) => match old.key.cmp(&new.key) {
                Ordering::Less => {
                    found(old.alone(true))?;
                    old.skip();
                }
                Ordering::Greater => {
                    found(new.alone(false))?;
                    new.skip();
                }
                Ordering::Equal => {
                    if old.value() != new.value() {
                        found(Differing {
                            key: &old.key,
                            old: Some(old.value()),
                            new: Some(new.value()),
                        })?;
                    }
                    old.skip();
                    new.skip();
                }
            },
        }
    }
}

/// Goes down where two nodes differ: into the one that lies before the other, else into the higher one, else into the one
/// that begins first. So nodes of one level meet, and what one tree has before the other's node is read alone.
fn expand<A: Load + ?Sized, B: Load + ?Sized>(
    old: &mut Side<'_, A>,
    a: &Found,
    new: &mut Side<'_, B>,
    b: &Found,
) -> Result<()> {
    if old.ends_before(&new.key) {
        return old.expand();
    }
    if new.ends_before(&old.key) {
        return new.expand();
    }
    match a.level.cmp(&b.level).reverse().then(old.key.cmp(&new.key)) {
        Ordering::Less => old.expand(),
        Ordering::Greater => new.expand(),
        Ordering::Equal => {
            old.expand()?;
            new.expand()
        }
    }
}

/// A node that has not been entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    reference: NodeRef,
    level: u8,
}

/// What comes next on one side; its key (of a node: the separator) is in [`Side::key`].
enum Item {
    Node(Found),
    Entry,
    End,
}

/// Where the walk stands in one tree.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Before the root.
    Root,
    /// At the child that the path's last step names.
    Child,
    /// At an entry of the leaf.
    Entry,
    End,
}

struct Side<'l, L: ?Sized> {
    source: Source<'l, L>,
    from: &'l [u8],
    to: &'l [u8],
    path: Path,
    leaf: Option<(Arc<Node>, usize)>,
    place: Place,
    /// Key of the entry, or separator of the node, that comes next.
    key: Key,
}

impl<'l, L: Load + ?Sized> Side<'l, L> {
    fn new(source: Source<'l, L>, from: &'l [u8], to: &'l [u8]) -> Self {
        Self {
            source,
            from,
            to,
            path: Path::default(),
            leaf: None,
            place: Place::Root,
            key: Key::new(),
        }
    }

    /// What comes next. Keys ascend, so the first one at or above the range's end ends the side.
    fn item(&mut self) -> Result<Item> {
        let item = match (&self.place, &self.leaf, self.path.last()) {
            (Place::Root, ..) => Item::Node(Found {
                reference: self.source.tree.root,
                level: self.source.tree.level,
            }),
            (Place::Entry, Some((leaf, at)), _) => {
                self.key = leaf.key(*at);
                Item::Entry
            }
            (Place::Child, _, Some(step)) => {
                self.key = step.branch.key(step.at);
                Item::Node(Found {
                    reference: step.branch.child(step.at)?,
                    level: step.branch.level().saturating_sub(1),
                })
            }
            _ => return Ok(Item::End),
        };
        if self.key.as_slice() >= self.to {
            self.place = Place::End;
            return Ok(Item::End);
        }
        Ok(item)
    }

    /// Value of the entry that comes next.
    fn value(&self) -> &[u8] {
        self.leaf.as_ref().map_or(&[], |(leaf, at)| leaf.value(*at))
    }

    /// The entry that comes next, which the other side does not have.
    fn alone(&self, is_old: bool) -> Differing<'_> {
        Differing {
            key: &self.key,
            old: is_old.then(|| self.value()),
            new: (!is_old).then(|| self.value()),
        }
    }

    /// Whether the entry of `other` may lie in or behind the node that comes next here.
    fn starts_at_or_below<M: ?Sized>(&self, other: &Side<'_, M>) -> bool {
        self.key <= other.key
    }

    /// Whether all keys of the node that comes next lie below `key`.
    fn ends_before(&self, key: &[u8]) -> bool {
        let upper = self.path.upper();
        upper.is_some_and(|(branch, i)| branch.compare(i, key) != Ordering::Greater)
    }

    /// Enters the node that comes next.
    fn expand(&mut self) -> Result<()> {
        let node = self.source.tree.load_next(self.source.load, &self.path)?;
        if node.is_leaf() {
            let at = node.search(self.from).unwrap_or_else(|at| at);
            self.leaf = Some((node, at));
            self.place = Place::Entry;
            self.settle();
        } else {
            let at = node.route(self.from).unwrap_or(0);
            self.path.push(node, at);
            self.place = Place::Child;
        }
        Ok(())
    }

    /// Moves behind what comes next.
    fn skip(&mut self) {
        match (&self.place, &mut self.leaf) {
            (Place::Entry, Some((_, at))) => {
                *at = at.saturating_add(1);
                self.settle();
            }
            (Place::Child, _) => self.next_child(),
            _ => self.place = Place::End,
        }
    }

    /// Leaves a leaf that has no more entries.
    fn settle(&mut self) {
        if self
            .leaf
            .as_ref()
            .is_some_and(|(leaf, at)| *at >= leaf.count())
        {
            self.leaf = None;
            self.next_child();
        }
    }

    fn next_child(&mut self) {
        while let Some(Step { branch, at }) = self.path.last_mut() {
            *at = at.saturating_add(1);
            if *at < branch.count() {
                self.place = Place::Child;
                return;
            }
            self.path.pop();
        }
        self.place = Place::End;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::format::key::Value;
    use crate::index::Change;
    use crate::index::tests::{Nodes, chunk_key, record};

    type Seen = Vec<(Key, Option<Value>, Option<Value>)>;

    fn differences(nodes: &Nodes, old: &Tree, new: &Tree, range: (&[u8], &[u8])) -> Seen {
        let source = |tree| Source { load: nodes, tree };
        let mut seen = Seen::new();
        diff(source(old), source(new), range, true, |d| {
            let own = |v: Option<&[u8]>| v.map(Value::from_slice);
            seen.push((Key::from_slice(d.key), own(d.old), own(d.new)));
            Ok(())
        })
        .unwrap();
        seen
    }

    fn by_model(old: &BTreeMap<Key, Value>, new: &BTreeMap<Key, Value>) -> Seen {
        let mut keys: Vec<&Key> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        let both = |k: &Key| (k.clone(), old.get(k).cloned(), new.get(k).cloned());
        keys.into_iter().map(both).filter(|d| d.1 != d.2).collect()
    }

    #[test]
    fn it_finds_what_a_model_finds_through_splits_merges_and_new_levels() {
        let nodes = Nodes::default();
        let mut seed = 7_u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        let coord = |x: u64| chunk_key(&[i64::try_from(x).unwrap() - 2000]);
        let mut model: BTreeMap<Key, Value> =
            (0..3000_u64).map(|i| (coord(i), record(i, 8))).collect();
        let first: Vec<Change> = model
            .iter()
            .map(|(k, v)| (k.clone(), Some(v.clone())))
            .collect();
        let (mut tree, _) = nodes.commit(None, &first);
        let mut kept = vec![(tree, model.clone())];
        for round in 0..40_u64 {
            let (start, len) = (
                random(5000),
                1 + random(if round % 4 == 0 { 2500 } else { 12 }),
            );
            let mut changes: BTreeMap<Key, Option<Value>> = BTreeMap::new();
            for i in 0..len {
                let at = if round % 3 == 0 {
                    start + i
                } else {
                    random(6000)
                };
                let put = random(3) > 0;
                changes.insert(coord(at), put.then(|| record(round * 10_000 + i, 8)));
            }
            for (k, v) in &changes {
                match v {
                    Some(v) => drop(model.insert(k.clone(), v.clone())),
                    None => drop(model.remove(k)),
                }
            }
            let changes: Vec<Change> = changes.into_iter().collect();
            (tree, _) = nodes.commit(Some(&tree), &changes);
            kept.push((tree, model.clone()));
        }
        let all: (&[u8], &[u8]) = (&[], &[0xFF]);
        for pair in kept.windows(2) {
            let [(a, old), (b, new)] = pair else { continue };
            assert_eq!(differences(&nodes, a, b, all), by_model(old, new));
            assert_eq!(differences(&nodes, b, a, all), by_model(new, old));
        }
        let ((a, old), (b, new)) = (&kept[0], kept.last().unwrap());
        assert_eq!(differences(&nodes, a, b, all), by_model(old, new));
        let (from, to) = (coord(900), coord(1700));
        let mut within = by_model(old, new);
        within.retain(|d| d.0 >= from && d.0 < to);
        assert_eq!(differences(&nodes, a, b, (&from, &to)), within);
        assert!(differences(&nodes, a, a, all).is_empty());
    }

    /// 10 of a million chunks are other ones: root, branch and leaf of each, in both trees.
    #[test]
    fn scattered_changes_cost_their_paths_and_appended_rows_their_edge() {
        let nodes = Nodes::default();
        let mut first: Vec<Change> = Vec::with_capacity(1_000_000);
        for x in 0..100_i64 {
            for y in 0..100_i64 {
                for z in 0..100_i64 {
                    let i = u64::try_from((x * 100 + y) * 100 + z).unwrap();
                    first.push((chunk_key(&[x, y, z]), Some(record(i, 8))));
                }
            }
        }
        let (old, _) = nodes.commit(None, &first);
        let all: (&[u8], &[u8]) = (&[], &[0xFF]);
        let scattered: Vec<Change> = (0..10_i64)
            .map(|i| (chunk_key(&[i * 10 + 4, 50, 50]), Some(record(9_000_000, 8))))
            .collect();
        let (new, _) = nodes.commit(Some(&old), &scattered);
        nodes.reads.set(0);
        assert_eq!(differences(&nodes, &old, &new, all).len(), 10);
        let reads = nodes.reads.get();
        assert!(reads <= 45, "{reads} nodes read");

        let row: Vec<Change> = (0..100_i64)
            .map(|z| (chunk_key(&[100, 0, z]), Some(record(9_000_000, 8))))
            .collect();
        let (longer, _) = nodes.commit(Some(&new), &row);
        nodes.reads.set(0);
        assert_eq!(differences(&nodes, &new, &longer, all).len(), 100);
        let reads = nodes.reads.get();
        assert!(reads <= 8, "{reads} nodes read for an append");
        let before: Vec<Change> = (0..100_i64)
            .map(|z| (chunk_key(&[-1, 0, z]), Some(record(9_000_000, 8))))
            .collect();
        let (earlier, _) = nodes.commit(Some(&new), &before);
        nodes.reads.set(0);
        assert_eq!(differences(&nodes, &new, &earlier, all).len(), 100);
        let reads = nodes.reads.get();
        assert!(reads <= 8, "{reads} nodes read for a prepend");
    }
}
