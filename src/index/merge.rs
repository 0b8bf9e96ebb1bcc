//! A tree as it will be: a writer reads its own staged changes over the committed entries.
//!
//! Holds [`Merged`]. Must not know where staged changes come from, nor see changes staged after it was made.

use std::cmp::Ordering;

use super::{Change, Cursor, Entry, Load};
use crate::error::Result;

/// A cursor over a tree with changes laid over it: puts win, deletions hide.
#[derive(Debug)]
pub(crate) struct Merged<L> {
    tree: Cursor<L>,
    /// Changes in key order, of the cursor's range.
    staged: Vec<Change>,
    at: usize,
    source: Source,
}

/// Where the entry under the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Tree,
    Staged,
    /// Staged, in place of an entry of the tree with the same key.
    Both,
    End,
}

impl<L: Load> Merged<L> {
    /// Lays `staged` (ascending unique keys, all within the range of `tree`) over a cursor.
    ///
    /// Stands where `tree` stands, or at an earlier staged entry.
    pub(crate) fn new(tree: Cursor<L>, staged: Vec<Change>) -> Result<Self> {
        debug_assert!(staged.is_sorted_by(|a, b| a.0 < b.0));
        let mut merged = Self {
            tree,
            staged,
            at: 0,
            source: Source::End,
        };
        merged.settle()?;
        Ok(merged)
    }

    /// The entry under the cursor; `None` at the end.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Entry<'_>> {
        match self.source {
            Source::Tree => self.tree.peek(),
            Source::Staged | Source::Both => {
                let (key, value) = self.staged.get(self.at)?;
                Some(Entry {
                    key,
                    value: value.as_deref()?,
                    at: 0,
                })
            }
            Source::End => None,
        }
    }

    /// The key under the cursor; `None` at the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match self.source {
            Source::Tree => self.tree.key(),
            Source::Staged | Source::Both => self.staged.get(self.at).map(|c| c.0.as_slice()),
            Source::End => None,
        }
    }

    /// Moves to the next entry; does nothing at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        if matches!(self.source, Source::Tree | Source::Both) {
            self.tree.advance()?;
        }
        if matches!(self.source, Source::Staged | Source::Both) {
            self.at = self.at.saturating_add(1);
        }
        self.settle()
    }

    /// Moves to the first entry at or above `key`, from anywhere.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.tree.seek(key)?;
        self.at = self.staged.partition_point(|c| c.0.as_slice() < key);
        self.settle()
    }

    /// Moves forward to the first entry at or above `key`; stays when the entry under the cursor is such.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<()> {
        self.tree.seek_forward(key)?;
        let rest = self.staged.get(self.at..).unwrap_or(&[]);
        let skipped = rest.partition_point(|c| c.0.as_slice() < key);
        self.at = self.at.saturating_add(skipped);
        self.settle()
    }

    /// Chooses the nearer of the two sides, and skips what staged deletions hide.
    fn settle(&mut self) -> Result<()> {
        loop {
            let Some((staged, value)) = self.staged.get(self.at) else {
                self.source = if self.tree.key().is_some() {
                    Source::Tree
                } else {
                    Source::End
                };
                return Ok(());
            };
            let side = self
                .tree
                .key()
                .map_or(Ordering::Less, |key| staged.as_slice().cmp(key));
            if side == Ordering::Greater {
                self.source = Source::Tree;
                return Ok(());
            }
            if value.is_some() {
                let same = side == Ordering::Equal;
                self.source = if same { Source::Both } else { Source::Staged };
                return Ok(());
            }
            if side == Ordering::Equal {
                self.tree.advance()?;
            }
            self.at = self.at.saturating_add(1);
        }
    }
}
