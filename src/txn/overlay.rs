//! A writer's uncommitted changes.
//!
//! Holds [`Overlay`], a sorted map behind a lock. Must not know the committed state.

use std::collections::BTreeMap;
use std::ops::Bound;

use parking_lot::RwLock;

use super::{Change, Key, Value};

/// Changes by key; the last one of a key wins.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    changes: RwLock<BTreeMap<Key, Option<Value>>>,
}

impl Overlay {
    /// Replaces what was said about `key` before.
    pub(crate) fn set(&self, key: Key, value: Option<Value>) {
        self.changes.write().insert(key, value);
    }

    /// Applies all changes at once: nobody sees a part of them.
    pub(crate) fn extend(&self, changes: impl IntoIterator<Item = Change>) {
        self.changes.write().extend(changes);
    }

    /// Applies all of `changes` at once if nothing was said meanwhile about the `expected` keys but what is expected.
    ///
    /// # Errors
    /// The number of the first key that has another value (or deletion) staged.
    pub(crate) fn extend_if<'a>(
        &self,
        expected: impl Iterator<Item = (&'a Key, Option<&'a Value>)>,
        changes: impl Iterator<Item = &'a Change>,
    ) -> Result<(), usize> {
        let mut staged = self.changes.write();
        for (i, (key, value)) in expected.enumerate() {
            if staged.get(key).is_some_and(|now| now.as_ref() != value) {
                return Err(i);
            }
        }
        staged.extend(changes.cloned());
        Ok(())
    }

    /// What is said about `key`: nothing, a value, or that it is deleted.
    #[expect(clippy::option_option, reason = "both layers are the map's own")]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Value>> {
        self.changes.read().get(key).cloned()
    }

    /// The first change in `lower..upper`.
    pub(crate) fn first(&self, lower: Bound<&[u8]>, upper: &[u8]) -> Option<Change> {
        let changes = self.changes.read();
        let mut range = changes.range::<[u8], _>((lower, Bound::Unbounded));
        let (key, value) = range.next()?;
        (key.as_slice() < upper).then(|| (key.clone(), value.clone()))
    }

    /// Removes and returns all changes, ascending by key.
    pub(crate) fn take(&self) -> BTreeMap<Key, Option<Value>> {
        std::mem::take(&mut *self.changes.write())
    }

    /// Puts back changes a failed commit took; none was staged in between.
    pub(crate) fn restore(&self, changes: BTreeMap<Key, Option<Value>>) {
        *self.changes.write() = changes;
    }
}
