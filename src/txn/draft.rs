//! The index of a file that is going to be written whole, in memory.
//!
//! Holds [`Draft`]: one tree for each state the file is to hold, sharing nodes where the states share entries. Extents in
//! its values are those of the source; `whole` gives everything its place. Must not read payloads, nor write.
//!
//! Invariant: trees stand in ascending generations, and every node's birth is the generation of the first tree that
//! reaches it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::extent::{Extent, NodeRef};
use crate::format::key::{self, tag};
use crate::format::node::Node;
use crate::format::slot::Root;
use crate::format::snapshot::SnapshotRecord;
use crate::format::{ALIGN, DATA_START, Generation};
use crate::index::{self, Builder, Cursor, Load, Source, Tree};

use super::{Change, Key, SnapshotState, Value};

/// Bytes that are not the source's have places from here on, which no file can have.
const OWN: u64 = 1 << 61;
/// Everything in a draft lies below.
const END: u64 = 1 << 62;
/// Below and above all keys.
const ALL: (&[u8], &[u8]) = (&[], &[0xFF; 16]);

/// Which states a draft takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum States {
    /// The current one and all that it retains.
    All,
    /// The current one alone.
    Current,
}

/// An index in memory.
pub(crate) struct Draft {
    nodes: HashMap<u64, Arc<Node>>,
    next: u64,
    /// Ascending generations; the last is the current state.
    pub(super) trees: Vec<Tree>,
    own: Vec<Vec<u8>>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        Self {
            nodes: HashMap::new(),
            next: DATA_START,
            trees: Vec::new(),
            own: Vec::new(),
        }
    }

    /// The index of `source`, its history and private entries included. Entries of tags that this version does not know
    /// are left out: nothing is known of what they own.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for a retained snapshot of a later version, which must not be dropped unseen.
    pub(crate) fn of(source: &SnapshotState, states: States) -> Result<Self> {
        let mut draft = Self::new();
        let mut states = match states {
            States::All => source.retained_trees()?,
            States::Current => Vec::new(),
        };
        states.push(*source.tree());
        let mut roots: HashMap<Generation, Root> = HashMap::new();
        for (i, tree) in states.iter().enumerate() {
            let made = match i.checked_sub(1).and_then(|before| states.get(before)) {
                None => draft.copy(source, tree, &roots)?,
                Some(before) => draft.derive(source, before, tree, &roots)?,
            };
            draft.trees.push(made);
            let root = Root {
                node: made.root,
                level: made.level,
            };
            roots.insert(tree.generation, root);
        }
        Ok(draft)
    }

    /// The first tree: all entries of a tree of the source, packed.
    fn copy(
        &mut self,
        source: &SnapshotState,
        tree: &Tree,
        roots: &HashMap<Generation, Root>,
    ) -> Result<Tree> {
        let load = source.engine().as_ref();
        let mut cursor = Cursor::range(load, *tree, ALL.0, None)?;
        self.build(tree.generation, |push| {
            while let Some(entry) = cursor.peek() {
                if let Some(value) = kept(entry.key, entry.value, roots)? {
                    push(entry.key, &value)?;
                }
                cursor.advance()?;
            }
            Ok(())
        })
    }

    /// A later tree: the one before with what changed between the two.
    fn derive(
        &mut self,
        source: &SnapshotState,
        before: &Tree,
        tree: &Tree,
        roots: &HashMap<Generation, Root>,
    ) -> Result<Tree> {
        let load = source.engine().as_ref();
        let side = |tree| Source { load, tree };
        let mut changes: Vec<Change> = Vec::new();
        index::diff(side(before), side(tree), ALL, true, |d| {
            let value = match d.new {
                Some(value) => kept(d.key, value, roots)?,
                None => None,
            };
            changes.push((Key::from_slice(d.key), value));
            Ok(())
        })?;
        let base = self.trees.last().copied().ok_or_else(empty)?;
        let mut next = self.next;
        let made = index::edit(&*self, Some(&base), &changes, tree.generation, &mut |len| {
            Ok(take(&mut next, len))
        })?;
        self.next = next;
        for (offset, bytes) in made.nodes {
            self.insert(offset, bytes)?;
        }
        Ok(Tree {
            root: made.root,
            level: made.level,
            generation: tree.generation,
            end: END,
        })
    }

    /// Makes entries that `feed` pushes, ascending, the one state of this draft.
    pub(crate) fn fill(
        &mut self,
        generation: Generation,
        feed: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let tree = self.build(generation, feed)?;
        self.trees = vec![tree];
        Ok(())
    }

    /// The first tree, from entries that `feed` pushes, ascending.
    fn build(
        &mut self,
        generation: Generation,
        feed: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Tree> {
        let mut place = |bytes: Vec<u8>| {
            let offset = take(&mut self.next, bytes.len());
            let node = Node::parse(bytes.into_boxed_slice(), offset)?;
            self.nodes.insert(offset, Arc::new(node));
            Ok(offset)
        };
        let mut builder = Builder::new(generation, &mut place);
        feed(&mut |key, value| builder.push(key, value))?;
        let (root, level) = builder.finish()?;
        Ok(Tree {
            root,
            level,
            generation,
            end: END,
        })
    }

    fn insert(&mut self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        let node = Node::parse(bytes.into_boxed_slice(), offset)?;
        self.nodes.insert(offset, Arc::new(node));
        Ok(())
    }

    /// Takes bytes that the source does not have; gives the extent by which values name them.
    pub(crate) fn own(&mut self, bytes: Vec<u8>) -> Extent {
        let number = self.own.len() as u64;
        let extent = Extent {
            offset: OWN.saturating_add(number.saturating_mul(ALIGN)),
            len: bytes.len() as u64,
            crc: crate::bytes::crc32(&bytes),
        };
        self.own.push(bytes);
        extent
    }

    /// The bytes of an extent that [`Draft::own`] gave.
    pub(super) fn own_bytes(&self, extent: &Extent) -> Option<&[u8]> {
        let number = extent.offset.checked_sub(OWN)? >> 3;
        self.own
            .get(usize::try_from(number).ok()?)
            .map(Vec::as_slice)
    }

    /// The newest tree.
    pub(super) fn current(&self) -> Result<Tree> {
        self.trees.last().copied().ok_or_else(empty)
    }
}

impl Load for Draft {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        let node = self.nodes.get(&reference.offset).cloned();
        node.ok_or_else(|| Error::corrupt("draft of an index").expected("a node it has made"))
    }
}

fn take(next: &mut u64, len: usize) -> u64 {
    let offset = *next;
    *next = offset.saturating_add(len as u64).next_multiple_of(ALIGN);
    offset
}

fn empty() -> Error {
    Error::invalid("draft of an index").expected("at least one tree")
}

/// What an entry is in a draft; none where it is left out.
fn kept(key: &[u8], value: &[u8], roots: &HashMap<Generation, Root>) -> Result<Option<Value>> {
    Ok(match key.first() {
        Some(&(tag::CHILD | tag::DOCUMENT | tag::ATTRIBUTE | tag::CHUNK | tag::HISTORY)) => {
            Some(Value::from_slice(value))
        }
        Some(&tag) if tag >= tag::PRIVATE => Some(Value::from_slice(value)),
        Some(&tag::SNAPSHOT) => match roots.get(&key::split_generation(key)?) {
            None => None,
            Some(&root) => {
                // What references from outside name lies elsewhere in the new file.
                let record = SnapshotRecord {
                    root,
                    referenced: false,
                    ..SnapshotRecord::decode(value, 0)?
                };
                Some(Value::from_vec(record.encode()))
            }
        },
        _ => None,
    })
}

impl SnapshotState {
    /// The label of a retained state to which references from outside lead, if there is one.
    pub(crate) fn referenced_snapshot(&self) -> Result<Option<String>> {
        let mut cursor = self.index_cursor(&[tag::SNAPSHOT], &[tag::SNAPSHOT + 1])?;
        while let Some(entry) = cursor.peek() {
            let record = SnapshotRecord::decode(entry.value, entry.at)?;
            if record.referenced {
                return Ok(Some(record.label));
            }
            cursor.advance()?;
        }
        Ok(None)
    }

    /// The trees of the retained states that this one lists, ascending.
    pub(super) fn retained_trees(&self) -> Result<Vec<Tree>> {
        let mut cursor = self.index_cursor(&[tag::SNAPSHOT], &[tag::SNAPSHOT + 1])?;
        let mut trees = Vec::new();
        while let Some(entry) = cursor.peek() {
            let generation = key::split_generation(entry.key)?;
            let record = SnapshotRecord::decode(entry.value, entry.at)?;
            if generation >= self.generation() {
                return Err(Error::corrupt("retained snapshot")
                    .at(entry.at)
                    .expected(format_args!("a generation below {}", self.generation()))
                    .found(generation));
            }
            trees.push(Tree {
                root: record.root.node,
                level: record.root.level,
                generation,
                end: self.committed_end(),
            });
            cursor.advance()?;
        }
        Ok(trees)
    }
}
