//! An ordered walk over a range of keys.
//!
//! Holds [`Cursor`], which merges the committed tree with a writer's uncommitted changes. Must not interpret keys.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index;

use super::{Change, Engine, Key, SnapshotState, Value, WriterState};

/// Yields the entries of a half-open key range in order, and can skip forward.
#[derive(Debug)]
pub(crate) struct Cursor {
    snapshot: Arc<SnapshotState>,
    /// Stands at the next committed entry.
    tree: index::Cursor<Arc<Engine>>,
    staged: Option<Staged>,
}

/// The uncommitted half.
#[derive(Debug)]
struct Staged {
    writer: Arc<WriterState>,
    /// The base the tree half walks; the writer's changes once lay over it.
    base: Arc<SnapshotState>,
    /// Where the changes go on.
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
            snapshot: Arc::clone(s),
            tree: s.index_cursor(lower, upper)?,
            staged: None,
        })
    }

    pub(crate) fn over_writer(w: &Arc<WriterState>, lower: &[u8], upper: &[u8]) -> Result<Self> {
        w.engine().check_process()?;
        let base = w.base();
        Ok(Self {
            staged: Some(Staged {
                writer: Arc::clone(w),
                base: Arc::clone(&base),
                from: Bound::Included(Key::from_slice(lower)),
                upper: Key::from_slice(upper),
            }),
            ..Self::over_snapshot(&base, lower, upper)?
        })
    }

    /// The next entry; none at the end of the range.
    ///
    /// # Errors
    /// As any read; `InvalidArgument` when the writer behind the cursor has committed since it was made. An
    /// error is final: nothing says what lay behind it.
    pub(crate) fn next(&mut self) -> Result<Option<(Key, Value)>> {
        let Some(staged) = &mut self.staged else {
            let entry = self.tree.peek().map(owned);
            self.tree.advance().map_err(|e| self.snapshot.place(e))?;
            return Ok(entry);
        };
        let writer = Arc::clone(&staged.writer);
        let _hold = writer.hold();
        loop {
            let change = staged.first()?;
            let committed = self.tree.key();
            let (key, value) = match (committed, change) {
                (None, None) => return Ok(None),
                (Some(key), Some(change)) if change.0.as_slice() <= key => {
                    if change.0.as_slice() == key {
                        self.tree.advance().map_err(|e| self.snapshot.place(e))?;
                    }
                    change
                }
                (None, Some(change)) => change,
                (Some(_), _) => {
                    let entry = self.tree.peek().map(owned);
                    self.tree.advance().map_err(|e| self.snapshot.place(e))?;
                    let Some((key, value)) = entry else {
                        return Ok(None);
                    };
                    (key, Some(value))
                }
            };
            staged.from = Bound::Excluded(key.clone());
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Skips to the first key that is not below `key`. Never goes back.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        if let Some(staged) = &mut self.staged {
            staged.seek(key);
        }
        self.tree
            .seek_forward(key)
            .map_err(|e| self.snapshot.place(e))
    }
}

impl Staged {
    fn first(&self) -> Result<Option<Change>> {
        let from = match &self.from {
            Bound::Included(key) => Bound::Included(key.as_slice()),
            Bound::Excluded(key) => Bound::Excluded(key.as_slice()),
            Bound::Unbounded => Bound::Unbounded,
        };
        // A commit moves the changes into a base that this cursor does not walk; that must not pass for their absence.
        if self.writer.is_on(&self.base) {
            Ok(self.writer.overlay().first(from, &self.upper))
        } else {
            Err(Error::invalid("cursor of a writer")
                .expected("no commit while it is used")
                .found("one"))
        }
    }

    fn seek(&mut self, key: &[u8]) {
        if let Bound::Included(from) | Bound::Excluded(from) = &self.from
            && from.as_slice() < key
        {
            self.from = Bound::Included(Key::from_slice(key));
        }
    }
}

fn owned(entry: index::Entry<'_>) -> (Key, Value) {
    (Key::from_slice(entry.key), Value::from_slice(entry.value))
}
