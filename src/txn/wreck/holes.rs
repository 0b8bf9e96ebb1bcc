//! Key ranges whose nodes are damaged, and what older nodes still say about them.
//!
//! Holds the walk that goes on past damage, [`Hole`], and the filling of holes. Must not read payloads.
//!
//! Invariant: of a key in a hole, the youngest leaf that covers it decides, be it there or not: what a younger leaf has
//! deleted does not come back from an older one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::extent::NodeRef;
use crate::format::key::{Key, Value};
use crate::format::node::Node;
use crate::format::record::extent_of;
use crate::index::{Load, Tree};
use crate::limits::LEVEL_MAX;

use super::scan::{Leaf, Scan};
use super::{Remains, Wreck};

/// A range of keys whose node does not verify.
#[derive(Debug)]
pub(super) struct Hole {
    lower: Key,
    /// None: no upper bound.
    upper: Option<Key>,
    /// How many entries its parent says were there.
    count: u64,
    error: Option<Error>,
}

impl Hole {
    /// All keys: nothing leads to any.
    pub(super) fn everything() -> Self {
        Self {
            lower: Key::new(),
            upper: None,
            count: 0,
            error: None,
        }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && self.upper.as_ref().is_none_or(|upper| key < upper)
    }
}

/// A node that is to be looked at.
struct Next {
    reference: NodeRef,
    level: u8,
    lower: Key,
    upper: Option<Key>,
}

impl Wreck {
    /// Takes the entries of `tree` and notes the ranges of damaged nodes. Linear: every node's keys lie in the range that
    /// its parent gives it.
    pub(super) fn walk(
        &self,
        tree: &Tree,
        entries: &mut BTreeMap<Key, (Value, u64)>,
        holes: &mut Vec<Hole>,
    ) {
        let mut stack = vec![Next {
            reference: tree.root,
            level: tree.level,
            lower: Key::new(),
            upper: None,
        }];
        while let Some(next) = stack.pop() {
            match self.verified(tree, &next) {
                Ok(node) if node.is_leaf() => {
                    for i in 0..node.count() {
                        let value = Value::from_slice(node.value(i));
                        entries.insert(node.key(i), (value, node.value_at(i)));
                    }
                }
                Ok(node) => {
                    for i in (0..node.count()).rev() {
                        let Ok(reference) = node.child(i) else {
                            continue;
                        };
                        let after = i.saturating_add(1);
                        stack.push(Next {
                            reference,
                            level: next.level.saturating_sub(1),
                            lower: node.key(i),
                            upper: if after < node.count() {
                                Some(node.key(after))
                            } else {
                                next.upper.clone()
                            },
                        });
                    }
                }
                Err(e) => holes.push(Hole {
                    lower: next.lower,
                    upper: next.upper,
                    count: next.reference.count,
                    error: Some(e.at_or(next.reference.offset)),
                }),
            }
        }
    }

    fn verified(&self, tree: &Tree, next: &Next) -> Result<Arc<Node>> {
        if next.level > LEVEL_MAX {
            return Err(Error::corrupt("root reference")
                .expected(format_args!("a level of at most {LEVEL_MAX}"))
                .found(next.level));
        }
        let node = self.load(&next.reference)?;
        node.check_use(&next.reference, next.level, tree.generation, tree.end)?;
        let above = next.lower.as_slice() <= node.first_key();
        let below = next.upper.as_ref().is_none_or(|u| node.last_key() < u);
        if above && below {
            Ok(node)
        } else {
            Err(node.fault().expected("keys in the range of its parent"))
        }
    }

    /// Fills `holes` from leaves that nothing leads to any more, the youngest first.
    pub(super) fn fill(&self, scan: &Scan, holes: Vec<Hole>, remains: &mut Remains) {
        let claimed = Claimed::by(&remains.entries, self.file_len());
        let mut found = vec![0_u64; holes.len()];
        let mut leaves: Vec<Leaf> = scan
            .leaves
            .iter()
            .filter(|leaf| leaf.birth <= remains.generation && !claimed.holds(leaf.offset))
            .copied()
            .collect();
        leaves.sort_by_key(|leaf| std::cmp::Reverse((leaf.birth, leaf.offset)));
        let mut covered = Covered::default();
        for leaf in leaves {
            let node = self
                .node_bytes(leaf.offset, leaf.len)
                .and_then(|bytes| Node::parse(bytes, leaf.offset));
            let Ok(node) = node else { continue };
            for i in 0..node.count() {
                let key = node.key(i);
                let after = holes.partition_point(|hole| hole.lower <= key);
                let Some(at) = after.checked_sub(1) else {
                    continue;
                };
                let inside = holes.get(at).is_some_and(|hole| hole.has(&key));
                if !inside || covered.has(&key) {
                    continue;
                }
                let value = (Value::from_slice(node.value(i)), node.value_at(i));
                remains.entries.entry(key).or_insert(value);
                remains.recovered = remains.recovered.saturating_add(1);
                if let Some(found) = found.get_mut(at) {
                    *found = found.saturating_add(1);
                }
            }
            covered.add(node.first_key(), node.last_key());
        }
        for (hole, found) in holes.into_iter().zip(found) {
            remains.faults.extend(hole.error.map(|e| {
                e.help(format!(
                    "{found} entries were found again in older nodes, of {} below it",
                    hole.count
                ))
            }));
        }
    }
}

/// Bytes that live entries own: what looks like a leaf there is data.
struct Claimed(Vec<(u64, u64)>);

impl Claimed {
    fn by(entries: &BTreeMap<Key, (Value, u64)>, end: u64) -> Self {
        let mut all: Vec<(u64, u64)> = entries
            .iter()
            .filter_map(|(key, (value, at))| extent_of(key, value, *at, end).ok().flatten())
            .map(|(extent, _)| (extent.offset, extent.end()))
            .collect();
        all.sort_unstable();
        Self(all)
    }

    fn holds(&self, offset: u64) -> bool {
        let after = self.0.partition_point(|(start, _)| *start <= offset);
        let before = after.checked_sub(1).and_then(|i| self.0.get(i));
        before.is_some_and(|(_, end)| offset < *end)
    }
}

/// Key ranges, both ends included, that do not touch one another.
#[derive(Default)]
struct Covered(BTreeMap<Key, Key>);

impl Covered {
    fn has(&self, key: &[u8]) -> bool {
        let before = self.0.range(..=Key::from_slice(key)).next_back();
        before.is_some_and(|(_, last)| key <= last.as_slice())
    }

    fn add(&mut self, first: &[u8], last: &[u8]) {
        let (mut first, mut last) = (Key::from_slice(first), Key::from_slice(last));
        // All that overlap it begin at or before its end; the last of those goes farthest.
        while let Some((start, end)) = self.0.range(..=last.clone()).next_back() {
            if *end < first {
                break;
            }
            let (start, end) = (start.clone(), end.clone());
            self.0.remove(&start);
            first = first.min(start);
            last = last.max(end);
        }
        self.0.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_ranges_join_where_they_overlap() {
        let mut covered = Covered::default();
        covered.add(b"d", b"f");
        covered.add(b"j", b"k");
        covered.add(b"b", b"d");
        let has = |c: &Covered| -> Vec<bool> {
            [b"a", b"b", b"c", b"f", b"g", b"j", b"l"]
                .map(|k| c.has(k))
                .into()
        };
        assert_eq!(has(&covered), [false, true, true, true, false, true, false]);
        covered.add(b"e", b"z");
        assert_eq!(has(&covered), [false, true, true, true, true, true, true]);
        assert_eq!(covered.0.len(), 1);
    }
}
