//! A batch of changes makes a new tree beside the old one.
//!
//! Holds [`edit`], which rewrites the nodes on the way to what changed and no others, and [`Edit`], what came of it.
//! Must not write: it gives the bytes of new nodes, children before parents, and the extents that the old tree had
//! and the new one has not. Where runs are cut stands in `fill.rs`.
//!
//! Invariants: a rewritten branch's first key is its separator in its parent, and the empty key on the left edge;
//! separators are cut between leaves only and copied above; a change that changes nothing rewrites nothing.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use super::fill::{self, Fill};
use super::tree::Upper;
use super::{Cursor, Load, Tree};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Generation;
use crate::format::extent::{Extent, NodeRef};
use crate::format::key::{self, Key, Value};
use crate::format::node::Node;
use crate::format::pack::{Entries, encode};
use crate::format::record::{self, Owner};
use crate::limits::{KEY_LEN_MAX, LEVEL_MAX, VALUE_LEN_MAX};

/// What becomes of a key: a value to put, or `None` to delete it.
pub(crate) type Change = (Key, Option<Value>);

/// Bounds of extents in values are the engine's to know; what it put there it reserved.
const END_MAX: u64 = 1 << 63;

/// By how much the live bytes of a slot change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Stored bytes of chunks.
    pub(crate) payload: i128,
    /// Stored bytes of nodes and blobs.
    pub(crate) index: i128,
}

/// A new tree, and how it differs from the old one.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) root: NodeRef,
    pub(crate) level: u8,
    /// Position and bytes of new nodes, children before parents.
    pub(crate) nodes: Vec<(u64, Vec<u8>)>,
    /// Nodes, payloads and blobs that only the old tree reaches.
    pub(crate) freed: Vec<Extent>,
    /// Payloads and blobs that only the new tree reaches.
    pub(crate) added: Vec<Extent>,
    pub(crate) live: Live,
    /// Keys whose value is another now, as the history counts them.
    pub(crate) changed: u64,
}

/// Applies `changes` (ascending unique keys) to `base`, or makes the first tree when there is none.
///
/// New nodes carry `birth`; `alloc` gives the position of a node of a given length, a multiple of 8. When nothing
/// changes the result is the old tree and no nodes.
///
/// # Errors
/// `LimitExceeded` for keys and values that no node may hold; `InvalidArgument` when nothing would be left, as a
/// tree is never empty.
pub(crate) fn edit<L: Load + ?Sized>(
    load: &L,
    base: Option<&Tree>,
    changes: &[Change],
    birth: Generation,
    alloc: &mut dyn FnMut(usize) -> Result<u64>,
) -> Result<Edit> {
    debug_assert!(changes.is_sorted_by(|a, b| a.0 < b.0));
    let mut editor = Editor {
        load,
        birth,
        alloc,
        nodes: Vec::new(),
        freed: Vec::new(),
        dropped: Vec::new(),
        added: Vec::new(),
        live: Live::default(),
        changed: 0,
    };
    let Some(tree) = base else {
        let mut run = Run::new(&[], 0);
        run.fill = Fill::Append;
        for (key, value) in changes {
            if let Some(value) = value {
                editor.put(&mut run, key, value)?;
            }
        }
        return editor.finish(None, run);
    };
    let root = tree.load_root(load)?;
    match editor.apply(tree, &root, &[], None, changes)? {
        Some(run) => {
            editor.free(&tree.root);
            editor.finish(base, run)
        }
        None => Ok(editor.into_edit(tree.root, tree.level)),
    }
}

/// How many of `changes` would change something, as the history counts them; what [`edit`] reports afterwards.
pub(crate) fn count_changes<L: Load + ?Sized>(
    load: &L,
    tree: &Tree,
    changes: &[Change],
) -> Result<u64> {
    let Some((first, _)) = changes.first() else {
        return Ok(0);
    };
    let mut cursor = Cursor::range(load, *tree, first, None)?;
    let mut changed = 0_u64;
    for (key, value) in changes {
        cursor.seek_forward(key)?;
        let old = cursor
            .peek()
            .filter(|entry| entry.key == key.as_slice())
            .map(|entry| entry.value);
        if old != value.as_deref() && key::counts_as_change(key) {
            changed = changed.saturating_add(1);
        }
    }
    Ok(changed)
}

/// The new content of one or more neighbouring nodes, before it is cut.
#[derive(Debug)]
struct Run {
    /// Separator in the parent.
    lower: Key,
    level: u8,
    entries: Entries,
    fill: Fill,
}

impl Run {
    fn new(lower: &[u8], level: u8) -> Self {
        Self {
            lower: Key::from_slice(lower),
            level,
            entries: Entries::default(),
            fill: Fill::Unchanged,
        }
    }

    fn copy(&mut self, node: &Node, from: usize, to: usize) {
        for i in from..to {
            self.entries
                .push(node.prefix(), node.suffix(i), node.value(i));
        }
    }

    fn is_small(&self) -> bool {
        fill::node_len(&self.entries) < fill::SMALL
    }
}

/// A run that may still be joined by its right neighbour.
struct Pending {
    run: Run,
    /// Children of the old branch that it stands for.
    children: usize,
    /// Whether the first and the last child of the old branch are among them.
    edges: (bool, bool),
}

struct Editor<'a, L: ?Sized> {
    load: &'a L,
    birth: Generation,
    alloc: &'a mut dyn FnMut(usize) -> Result<u64>,
    nodes: Vec<(u64, Vec<u8>)>,
    /// Nodes of the old tree only.
    freed: Vec<Extent>,
    /// Extents of values that were replaced or deleted.
    dropped: Vec<Extent>,
    /// Extents of values that were put.
    added: Vec<Extent>,
    live: Live,
    changed: u64,
}

impl<L: Load + ?Sized> Editor<'_, L> {
    /// The new content of `node` and below, or `None` when the changes change nothing there.
    ///
    /// Calls itself once per level, and levels of verified nodes strictly decrease from at most `LEVEL_MAX`. A root
    /// whose children all end up in one run gives that run, of a lower level.
    fn apply(
        &mut self,
        tree: &Tree,
        node: &Arc<Node>,
        lower: &[u8],
        upper: Upper<'_>,
        changes: &[Change],
    ) -> Result<Option<Run>> {
        if node.is_leaf() {
            self.apply_to_leaf(node, lower, changes)
        } else {
            self.apply_to_branch(tree, node, lower, upper, changes)
        }
    }

    fn apply_to_leaf(
        &mut self,
        leaf: &Node,
        lower: &[u8],
        changes: &[Change],
    ) -> Result<Option<Run>> {
        let mut run = Run::new(lower, 0);
        let (mut copied, mut changed) = (0, false);
        for (key, value) in changes {
            let (at, found) = match leaf.search(key) {
                Ok(at) => (at, true),
                Err(at) => (at, false),
            };
            let same = if found {
                value.as_deref() == Some(leaf.value(at))
            } else {
                value.is_none()
            };
            if same {
                continue;
            }
            changed = true;
            run.copy(leaf, copied, at);
            copied = at.saturating_add(usize::from(found));
            if found {
                self.drop_value(key, leaf.value(at), leaf.value_at(at))?;
            } else {
                run.fill = run.fill.and(match at {
                    _ if at == leaf.count() => Fill::Append,
                    0 => Fill::Prepend,
                    _ => Fill::Even,
                });
            }
            match value {
                Some(value) => self.put(&mut run, key, value)?,
                None => self.count(key),
            }
        }
        run.copy(leaf, copied, leaf.count());
        Ok(changed.then_some(run))
    }

    fn apply_to_branch(
        &mut self,
        tree: &Tree,
        branch: &Arc<Node>,
        lower: &[u8],
        upper: Upper<'_>,
        mut changes: &[Change],
    ) -> Result<Option<Run>> {
        let mut out = Run::new(lower, branch.level());
        let mut pending: Option<Pending> = None;
        let mut changed = false;
        let last = branch.count().saturating_sub(1);
        for i in 0..branch.count() {
            // The first child that is left takes over the separator of the whole branch.
            let first = out.entries.is_empty() && pending.is_none();
            let separator = if first {
                Key::from_slice(lower)
            } else {
                branch.key(i)
            };
            let next = (i < last).then(|| (branch.as_ref(), i.saturating_add(1)));
            let mine;
            (mine, changes) = split_below(changes, next);
            let run = if mine.is_empty() {
                None
            } else {
                let upper = next.or(upper);
                let child = tree.load_child(self.load, branch, i, upper)?;
                self.apply(tree, &child, &separator, upper, mine)?
            };
            let Some(run) = run else {
                self.flush(pending.take(), &mut out)?;
                out.entries.push(&[], &separator, branch.value(i));
                continue;
            };
            changed = true;
            self.free(&branch.child(i)?);
            if !run.entries.is_empty() {
                self.join(&mut pending, run, (i == 0, i == last), &mut out)?;
            }
        }
        if !changed {
            return Ok(None);
        }
        let is_root = branch.level() == tree.level;
        match pending {
            Some(only) if is_root && out.entries.is_empty() => Ok(Some(only.run)),
            _ => {
                self.flush(pending, &mut out)?;
                Ok(Some(out))
            }
        }
    }

    /// Adds the run of one more child: to the pending one when either is small, else behind it.
    fn join(
        &mut self,
        pending: &mut Option<Pending>,
        run: Run,
        (is_first, is_last): (bool, bool),
        out: &mut Run,
    ) -> Result<()> {
        match pending {
            Some(before) if before.run.is_small() || run.is_small() => {
                before.run.entries.append(&run.entries);
                before.run.fill = before.run.fill.and(run.fill);
                before.children = before.children.saturating_add(1);
                before.edges.1 |= is_last;
            }
            _ => {
                self.flush(pending.take(), out)?;
                *pending = Some(Pending {
                    run,
                    children: 1,
                    edges: (is_first, is_last),
                });
            }
        }
        Ok(())
    }

    /// Writes a pending run as nodes and refers to them from `out`, the content of their parent.
    fn flush(&mut self, pending: Option<Pending>, out: &mut Run) -> Result<()> {
        let Some(Pending {
            run,
            children,
            edges,
        }) = pending
        else {
            return Ok(());
        };
        let written = self.write(&run, &mut out.entries)?;
        if written > children {
            out.fill = out.fill.and(match (run.fill, edges) {
                (Fill::Append, (_, true)) => Fill::Append,
                (Fill::Prepend, (true, _)) => Fill::Prepend,
                _ => Fill::Even,
            });
        }
        Ok(())
    }

    /// Writes a run as nodes, adds their references to `parent`, and gives their number.
    fn write(&mut self, run: &Run, parent: &mut Entries) -> Result<usize> {
        let pieces = fill::cut(&run.entries, run.fill);
        let count = pieces.len();
        let mut reference_bytes = Writer::with_capacity(NodeRef::LEN);
        for piece in pieces {
            let first = run.entries.key(piece.start);
            let separator = match piece.start.checked_sub(1) {
                None => run.lower.as_slice(),
                Some(before) if run.level == 0 => fill::separator(run.entries.key(before), first),
                Some(_) => first,
            };
            let below = piece.clone().try_fold(0_u64, |sum, i| {
                let one = if run.level == 0 {
                    1
                } else {
                    decode(run.entries.value(i))?.count
                };
                Ok::<_, Error>(sum.saturating_add(one))
            })?;
            let (bytes, crc) = encode(&run.entries, piece, run.level, self.birth)?;
            let offset = (self.alloc)(bytes.len())?;
            let len = u32::try_from(bytes.len()).map_err(|_| Error::limit("index node"))?;
            let reference = NodeRef {
                offset,
                len,
                crc,
                count: below,
            };
            self.live.index = self.live.index.saturating_add(i128::from(len));
            self.nodes.push((offset, bytes));
            reference_bytes.clear();
            reference.encode(&mut reference_bytes);
            parent.push(&[], separator, reference_bytes.as_slice());
        }
        Ok(count)
    }

    /// Packs levels until one node is left, then drops levels that would hold a single reference.
    fn finish(mut self, base: Option<&Tree>, mut run: Run) -> Result<Edit> {
        if run.entries.is_empty() {
            return Err(Error::invalid("changes").expected("at least one entry left in the index"));
        }
        while run.level == 0 || run.entries.len() > 1 {
            let mut above = Run::new(&[], run.level.saturating_add(1));
            // New entries behind or before all others make new nodes there, at every level.
            above.fill = run.fill;
            self.write(&run, &mut above.entries)?;
            run = above;
            if run.level > LEVEL_MAX.saturating_add(1) {
                return Err(Error::limit("index level").found(run.level));
            }
        }
        let mut root = decode(run.entries.value(0))?;
        let mut level = run.level.saturating_sub(1);
        while level > 0 {
            let Some(below) = self.only_child(base, &root, level)? else {
                break;
            };
            root = below;
            level = level.saturating_sub(1);
        }
        if level > LEVEL_MAX {
            return Err(Error::limit("index level").found(level));
        }
        Ok(self.into_edit(root, level))
    }

    /// The single child of the branch `reference`, which is then no part of the tree; `None` when it has more.
    fn only_child(
        &mut self,
        base: Option<&Tree>,
        reference: &NodeRef,
        level: u8,
    ) -> Result<Option<NodeRef>> {
        let new = self
            .nodes
            .iter()
            .rposition(|(offset, _)| *offset == reference.offset);
        let node = match (new.and_then(|i| self.nodes.get(i)), base) {
            (Some((offset, bytes)), _) => Arc::new(Node::parse(bytes.as_slice().into(), *offset)?),
            (None, Some(tree)) => {
                let node = self.load.load(reference)?;
                node.check_use(reference, level, tree.generation, tree.end)?;
                node
            }
            (None, None) => return Ok(None),
        };
        if node.count() > 1 {
            return Ok(None);
        }
        match new {
            Some(i) => {
                self.nodes.remove(i);
                self.live.index = self.live.index.saturating_sub(i128::from(reference.len));
            }
            None => self.free(reference),
        }
        node.child(0).map(Some)
    }

    fn into_edit(mut self, root: NodeRef, level: u8) -> Edit {
        self.keep_moved();
        let mut freed = self.freed;
        freed.append(&mut self.dropped);
        Edit {
            root,
            level,
            nodes: self.nodes,
            freed,
            added: self.added,
            live: self.live,
            changed: self.changed,
        }
    }

    /// An extent that left one key and came back under another is neither free nor new.
    fn keep_moved(&mut self) {
        if self.dropped.is_empty() || self.added.is_empty() {
            return;
        }
        let places =
            |extents: &[Extent]| -> HashSet<u64> { extents.iter().map(|e| e.offset).collect() };
        let (added, dropped) = (places(&self.added), places(&self.dropped));
        self.dropped.retain(|e| !added.contains(&e.offset));
        self.added.retain(|e| !dropped.contains(&e.offset));
    }

    fn put(&mut self, run: &mut Run, key: &Key, value: &Value) -> Result<()> {
        if !(1..=KEY_LEN_MAX).contains(&key.len()) || value.len() > VALUE_LEN_MAX {
            return Err(Error::limit("index entry")
                .expected(format_args!(
                    "a key of 1..={KEY_LEN_MAX} and a value of at most {VALUE_LEN_MAX} bytes"
                ))
                .found(format_args!("{} and {} bytes", key.len(), value.len())));
        }
        if let Some(extent) = self.account(key, value, 0, 1)? {
            self.added.push(extent);
        }
        self.count(key);
        run.entries.push(&[], key, value);
        Ok(())
    }

    fn drop_value(&mut self, key: &[u8], value: &[u8], at: u64) -> Result<()> {
        if let Some(extent) = self.account(key, value, at, -1)? {
            self.dropped.push(extent);
        }
        Ok(())
    }

    /// Adds the extent that an entry owns to the live bytes, with a sign.
    fn account(&mut self, key: &[u8], value: &[u8], at: u64, sign: i128) -> Result<Option<Extent>> {
        let owned = match record::extent_of(key, value, at, END_MAX) {
            // What a later version's record owns is not known; its bytes were never counted.
            Err(e) if e.kind() == ErrorKind::Unsupported => None,
            other => other?,
        };
        Ok(owned.map(|(extent, owner)| {
            let counter = match owner {
                Owner::Payload => &mut self.live.payload,
                Owner::Blob => &mut self.live.index,
            };
            *counter = counter.saturating_add(sign.saturating_mul(i128::from(extent.len)));
            extent
        }))
    }

    fn count(&mut self, key: &[u8]) {
        self.changed = self
            .changed
            .saturating_add(u64::from(key::counts_as_change(key)));
    }

    fn free(&mut self, reference: &NodeRef) {
        self.freed.push(reference.extent());
        self.live.index = self.live.index.saturating_sub(i128::from(reference.len));
    }
}

/// Splits off the changes below `upper`; all of them when there is no bound.
fn split_below<'c>(changes: &'c [Change], upper: Upper<'_>) -> (&'c [Change], &'c [Change]) {
    let at = match upper {
        Some((branch, i)) => {
            changes.partition_point(|c| branch.compare(i, &c.0) == Ordering::Greater)
        }
        None => changes.len(),
    };
    changes.split_at_checked(at).unwrap_or((changes, &[]))
}

fn decode(reference: &[u8]) -> Result<NodeRef> {
    NodeRef::decode(&mut Reader::new("node reference", 0, reference))
}
