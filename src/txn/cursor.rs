//! An ordered walk over a range of keys.
//!
//! Holds [`Cursor`], which merges the committed tree with a writer's uncommitted changes. Must not interpret keys.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;

use super::snapshot::BaseCursor;
use super::{Key, SnapshotState, Value, WriterState};

/// Yields the entries of a half-open key range in order, and can skip forward.
#[derive(Debug)]
pub(crate) struct Cursor {
    base: BaseCursor,
    /// The next committed entry, fetched but not yielded.
    peeked: Option<(Key, Value)>,
    writer: Option<Arc<WriterState>>,
    /// Where the uncommitted changes go on.
    from: Bound<Key>,
    upper: Key,
}

impl Cursor {
    pub(crate) fn over_snapshot(
        s: &Arc<SnapshotState>,
        lower: &[u8],
        upper: &[u8],
    ) -> Result<Self> {
        Ok(Self {
            base: s.base_cursor(lower, upper)?,
            peeked: None,
            writer: None,
            from: Bound::Included(Key::from_slice(lower)),
            upper: Key::from_slice(upper),
        })
    }

    pub(crate) fn over_writer(w: &Arc<WriterState>, lower: &[u8], upper: &[u8]) -> Result<Self> {
        Ok(Self {
            writer: Some(Arc::clone(w)),
            ..Self::over_snapshot(&w.base(), lower, upper)?
        })
    }

    /// The next entry; none at the end of the range.
    ///
    /// An error is final: nothing says what lay behind it.
    pub(crate) fn next(&mut self) -> Result<Option<(Key, Value)>> {
        let Some(writer) = &self.writer else {
            return self.base.next();
        };
        loop {
            if self.peeked.is_none() {
                self.peeked = self.base.next()?;
            }
            let from = self.from.as_ref().map(SmallSlice::slice);
            let staged = writer.overlay().first(from, &self.upper);
            let (key, value) = match (self.peeked.take(), staged) {
                (None, None) => return Ok(None),
                (Some((key, value)), None) => (key, Some(value)),
                (None, Some(change)) => change,
                (Some((key, value)), Some(change)) => {
                    if key < change.0 {
                        (key, Some(value))
                    } else {
                        if key > change.0 {
                            self.peeked = Some((key, value));
                        }
                        change
                    }
                }
            };
            self.from = Bound::Excluded(key.clone());
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Skips to the first key that is not below `key`. Never goes back.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        let (Bound::Included(from) | Bound::Excluded(from)) = &self.from else {
            return Ok(());
        };
        if from.as_slice() >= key {
            return Ok(());
        }
        self.from = Bound::Included(Key::from_slice(key));
        if self.peeked.as_ref().is_none_or(|(k, _)| k.as_slice() < key) {
            self.peeked = None;
            self.base.seek(key)?;
        }
        Ok(())
    }
}

/// Names the one step from an owned key to its bytes, for `Bound::map`.
trait SmallSlice {
    fn slice(&self) -> &[u8];
}

impl SmallSlice for Key {
    fn slice(&self) -> &[u8] {
        self
    }
}
