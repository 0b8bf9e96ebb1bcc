//! A writer's uncommitted changes.
//!
//! Holds [`Overlay`], a sorted map behind a lock. Must not know the committed state.
//!
//! Invariants: a key stands in `run` or in `map`, never in both; `run` ascends.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Change, Key, Value};

/// Changes by key; the last one of a key wins.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    staged: RwLock<Staged>,
}

/// Bulk writes come in key order: those are appended to a vector, at a fraction of what a map costs.
#[derive(Debug, Default)]
struct Staged {
    run: Vec<Change>,
    map: BTreeMap<Key, Option<Value>>,
}

impl Staged {
    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.run.binary_search_by(|(k, _)| k.as_slice().cmp(key))
    }

    fn get(&self, key: &[u8]) -> Option<&Option<Value>> {
        if let Some(value) = self.map.get(key) {
            return Some(value);
        }
        let i = self.find(key).ok()?;
        self.run.get(i).map(|(_, value)| value)
    }

    fn set(&mut self, key: Key, value: Option<Value>) {
        if self.run.last().is_none_or(|(last, _)| *last < key) && !self.map.contains_key(&key) {
            self.run.push((key, value));
            return;
        }
        let in_run = self.find(&key).ok();
        match in_run.and_then(|i| self.run.get_mut(i)) {
            Some((_, old)) => *old = value,
            None => drop(self.map.insert(key, value)),
        }
    }

    /// The first change at or after `lower` of either half.
    fn first(&self, lower: Bound<&[u8]>) -> Option<(&Key, &Option<Value>)> {
        let i = match lower {
            Bound::Included(key) => self.find(key).unwrap_or_else(|i| i),
            Bound::Excluded(key) => self.find(key).map_or_else(|i| i, |i| i.saturating_add(1)),
            Bound::Unbounded => 0,
        };
        let run = self.run.get(i).map(|(key, value)| (key, value));
        let map = self.map.range::<[u8], _>((lower, Bound::Unbounded)).next();
        match (run, map) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (one, other) => one.or(other),
        }
    }
}

impl Overlay {
    /// Replaces what was said about `key` before.
    pub(crate) fn set(&self, key: Key, value: Option<Value>) {
        self.staged.write().set(key, value);
    }

    /// Applies all changes at once: nobody sees a part of them.
    pub(crate) fn extend(&self, changes: impl IntoIterator<Item = Change>) {
        let mut staged = self.staged.write();
        for (key, value) in changes {
            staged.set(key, value);
        }
    }

    /// Applies all changes at once unless a key of `expected` is staged with another value by now; then nothing is
    /// applied, and the number of the first such key is the error.
    pub(crate) fn extend_if<'a>(
        &self,
        expected: impl Iterator<Item = (&'a Key, Option<&'a Value>)>,
        changes: impl Iterator<Item = &'a Change>,
    ) -> Result<(), usize> {
        let mut staged = self.staged.write();
        for (i, (key, value)) in expected.enumerate() {
            if staged.get(key).is_some_and(|now| now.as_ref() != value) {
                return Err(i);
            }
        }
        for (key, value) in changes {
            staged.set(key.clone(), value.clone());
        }
        Ok(())
    }

    /// What is said about `key`: nothing, a value, or that it is deleted.
    #[expect(clippy::option_option, reason = "both layers are the map's own")]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Value>> {
        self.staged.read().get(key).cloned()
    }

    /// The first change in `lower..upper`.
    pub(crate) fn first(&self, lower: Bound<&[u8]>, upper: &[u8]) -> Option<Change> {
        let staged = self.staged.read();
        let (key, value) = staged.first(lower)?;
        (key.as_slice() < upper).then(|| (key.clone(), value.clone()))
    }

    /// Removes and returns all changes, ascending by key.
    pub(crate) fn take(&self) -> Vec<Change> {
        let Staged { run, map } = std::mem::take(&mut *self.staged.write());
        if map.is_empty() {
            return run;
        }
        let mut all = Vec::with_capacity(run.len().saturating_add(map.len()));
        let mut run = run.into_iter().peekable();
        for change in map {
            while let Some(before) = run.next_if(|(key, _)| *key < change.0) {
                all.push(before);
            }
            all.push(change);
        }
        all.extend(run);
        all
    }

    /// Puts back changes a failed commit took; none was staged in between.
    pub(crate) fn restore(&self, changes: Vec<Change>) {
        *self.staged.write() = Staged {
            run: changes,
            map: BTreeMap::new(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u16) -> Key {
        let [low, high] = n.to_le_bytes();
        Key::from_slice(&[high, low])
    }

    #[test]
    fn it_agrees_with_a_plain_map_in_any_order_of_changes() {
        let mut seed = 7_u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) % n
        };
        for _ in 0..200 {
            let (overlay, mut model) = (Overlay::default(), BTreeMap::new());
            let mut next = 0_u16;
            for _ in 0..random(80) {
                let ascends = random(3) > 0;
                next = if ascends { next + 2 } else { next };
                let k = key(if ascends {
                    next
                } else {
                    u16::try_from(random(200)).unwrap()
                });
                let v = (random(4) > 0).then(|| Value::from_slice(&random(9).to_le_bytes()));
                overlay.set(k.clone(), v.clone());
                model.insert(k, v);
            }
            for n in 0..210 {
                let k = key(n);
                assert_eq!(overlay.get(&k), model.get(&k).cloned());
                for lower in [Bound::Included(k.as_slice()), Bound::Excluded(k.as_slice())] {
                    let expected = model.range::<[u8], _>((lower, Bound::Unbounded)).next();
                    let found = overlay.first(lower, &[0xFF; 3]);
                    assert_eq!(found.as_ref().map(|(k, v)| (k, v)), expected);
                }
            }
            let all = overlay.take();
            assert!(all.iter().map(|(k, v)| (k, v)).eq(model.iter()));
            overlay.restore(all.clone());
            assert_eq!(overlay.take(), all);
        }
    }
}
