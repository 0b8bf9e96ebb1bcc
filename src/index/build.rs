//! A tree from ascending entries, each node filled to the target.
//!
//! Holds [`Builder`]: what a file that is written whole is made of. Takes one entry at a time and keeps one open node a
//! level. Must not write: it hands out the bytes of nodes, children before parents.
//!
//! Invariant: the nodes are a function of the entries and the birth alone.

use super::fill::{TARGET, separator};
use crate::bytes::Writer;
use crate::error::{Error, Result};
use crate::format::Generation;
use crate::format::extent::NodeRef;
use crate::format::key::Key;
use crate::format::pack::{Entries, Measure, encode};
use crate::limits::LEVEL_MAX;

/// Takes the bytes of a node and gives its position.
type Place<'p> = dyn FnMut(Vec<u8>) -> Result<u64> + 'p;

/// A tree in the making.
pub(crate) struct Builder<'p> {
    birth: Generation,
    place: &'p mut Place<'p>,
    levels: Vec<Level>,
}

/// The open node of one level.
#[derive(Default)]
struct Level {
    /// Its separator in its parent.
    lower: Key,
    entries: Entries,
    size: Measure,
    /// Leaf entries below.
    below: u64,
    /// Nodes of this level that are closed.
    closed: u64,
}

impl<'p> Builder<'p> {
    pub(crate) fn new(birth: Generation, place: &'p mut Place<'p>) -> Self {
        Self {
            birth,
            place,
            levels: Vec::new(),
        }
    }

    /// Adds the next entry; its key is above all before.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(0, key, value, 1)
    }

    fn add(&mut self, level: usize, key: &[u8], value: &[u8], below: u64) -> Result<()> {
        if level > usize::from(LEVEL_MAX) {
            return Err(Error::limit("index level").found(level));
        }
        if self.levels.len() <= level {
            self.levels.push(Level::default());
        }
        let Some(open) = self.levels.get(level) else {
            return Ok(());
        };
        let joined = open.size.with(open.entries.key(0), key, value.len());
        let full = joined.count() > 1 && joined.node_len() > TARGET;
        if full {
            let last = open.entries.len().saturating_sub(1);
            // Between leaves a separator is cut; above it is the first key of the node, which is one already.
            let next = match level {
                0 => Key::from_slice(separator(open.entries.key(last), key)),
                _ => Key::from_slice(key),
            };
            self.close(level, next)?;
        }
        if let Some(open) = self.levels.get_mut(level) {
            open.size = if full {
                Measure::default().with(key, key, value.len())
            } else {
                joined
            };
            open.entries.push(&[], key, value);
            open.below = open.below.saturating_add(below);
        }
        Ok(())
    }

    /// Ends the open node of a level and opens the one whose separator is `next`.
    fn close(&mut self, level: usize, next: Key) -> Result<NodeRef> {
        let opened = Level {
            lower: next,
            ..Level::default()
        };
        let Some(open) = self.levels.get_mut(level) else {
            return Err(no_entries());
        };
        let done = std::mem::replace(open, opened);
        open.closed = done.closed.saturating_add(1);
        let number = u8::try_from(level).unwrap_or(u8::MAX);
        let (bytes, crc) = encode(&done.entries, 0..done.entries.len(), number, self.birth)?;
        let len = u32::try_from(bytes.len()).map_err(|_| Error::limit("index node"))?;
        let reference = NodeRef {
            offset: (self.place)(bytes)?,
            len,
            crc,
            count: done.below,
        };
        let mut w = Writer::with_capacity(NodeRef::LEN);
        reference.encode(&mut w);
        self.add(
            level.saturating_add(1),
            &done.lower,
            w.as_slice(),
            done.below,
        )?;
        Ok(reference)
    }

    /// Ends the tree; gives its root and level.
    ///
    /// # Errors
    /// `InvalidArgument` without entries: a tree is never empty.
    pub(crate) fn finish(mut self) -> Result<(NodeRef, u8)> {
        let mut level = 0;
        loop {
            let open = self.levels.get(level).ok_or_else(no_entries)?;
            let only = open.closed == 0;
            let root = self.close(level, Key::new())?;
            if only {
                return Ok((root, u8::try_from(level).unwrap_or(u8::MAX)));
            }
            level = level.saturating_add(1);
        }
    }
}

fn no_entries() -> Error {
    Error::invalid("entries").expected("at least one entry of the index")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Change;
    use crate::index::tests::{Nodes, chunk_key, record};
    use crate::index::{Tree, walk};

    /// What a first commit makes of the same entries, which the model tests have looked over.
    #[test]
    fn a_built_tree_has_the_nodes_of_a_first_commit() {
        for count in [1_i64, 2, 300, 380, 5_000, 150_000] {
            let entry = |i: i64| {
                let at = u64::try_from(i).unwrap();
                // Some entries are longer, so that slotted nodes are among them.
                let long = i % 4_000 == 3;
                (
                    chunk_key(&[i - 700, i % 3]),
                    record(at, if long { 1 << 33 } else { 8 }),
                )
            };
            let committed = Nodes::default();
            let changes: Vec<Change> = (0..count).map(entry).map(|(k, v)| (k, Some(v))).collect();
            let (tree, _) = committed.commit(None, &changes);
            let built = Nodes::default();
            let mut place = |bytes| Ok(built.keep(bytes));
            let mut builder = Builder::new(1, &mut place);
            for (key, value) in (0..count).map(entry) {
                builder.push(&key, &value).unwrap();
            }
            let (root, level) = builder.finish().unwrap();
            let other = Tree {
                root,
                level,
                ..tree
            };
            assert_eq!(
                (root.len, root.count, level),
                (tree.root.len, tree.root.count, tree.level)
            );
            let lens = |nodes: &Nodes, tree: &Tree| {
                let mut lens = Vec::new();
                walk(nodes, tree, &mut Lens(&mut lens)).unwrap();
                lens
            };
            assert_eq!(lens(&built, &other), lens(&committed, &tree));
        }
    }

    struct Lens<'a>(&'a mut Vec<(u8, u32, u64)>);

    impl crate::index::Visit for Lens<'_> {
        fn node(&mut self, visited: crate::index::Visited<'_>) -> Result<()> {
            let r = visited.reference;
            self.0.push((visited.node.level(), r.len, r.count));
            Ok(())
        }
    }

    #[test]
    fn nothing_is_no_tree() {
        let mut place = |_| Ok(0);
        let builder = Builder::new(1, &mut place);
        assert!(builder.finish().is_err());
    }
}
