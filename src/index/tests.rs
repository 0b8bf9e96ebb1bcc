//! The tree against a model, and against trees that a stranger made.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::bytes::Writer;
use crate::error::{Error, ErrorKind};
use crate::format::extent::Extent;
use crate::format::key::{self, Key, Value};
use crate::format::pack::{Entries, encode};
use crate::format::record::{self, ChunkRecord, Owner};
use crate::format::{DATA_START, ObjectId};
use crate::limits::{KEY_LEN_MAX, LEVEL_MAX, VALUE_LEN_MAX};

const END: u64 = 1 << 62;

/// Nodes in memory: what `store` is to a container.
#[derive(Default)]
pub(super) struct Nodes {
    bytes: RefCell<HashMap<u64, Vec<u8>>>,
    next: Cell<u64>,
    pub(super) reads: Cell<usize>,
}

impl ReadNode for Nodes {
    fn read_node(&self, offset: u64, len: usize) -> Result<Box<[u8]>> {
        self.reads.set(self.reads.get() + 1);
        let nodes = self.bytes.borrow();
        let bytes = nodes.get(&offset).filter(|b| b.len() >= len);
        bytes
            .map(|b| b[..len].into())
            .ok_or_else(|| Error::corrupt("test read").at(offset))
    }
}

impl Load for Nodes {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        let bytes = self.read_node(reference.offset, reference.len as usize)?;
        Node::parse(bytes, reference.offset).map(Arc::new)
    }
}

impl Nodes {
    fn alloc(&self, len: usize) -> u64 {
        let offset = self.next.get().max(DATA_START);
        self.next.set((offset + len as u64).next_multiple_of(8));
        offset
    }

    fn edit(&self, base: Option<&Tree>, changes: &[Change], birth: u64) -> Result<Edit> {
        edit(self, base, changes, birth, &mut |len| Ok(self.alloc(len)))
    }

    pub(super) fn commit(&self, base: Option<&Tree>, changes: &[Change]) -> (Tree, Edit) {
        let generation = base.map_or(1, |t| t.generation + 1);
        let mut done = self.edit(base, changes, generation).unwrap();
        for (offset, bytes) in done.nodes.drain(..) {
            assert!(self.bytes.borrow_mut().insert(offset, bytes).is_none());
        }
        let tree = Tree {
            root: done.root,
            level: done.level,
            generation,
            end: END,
        };
        (tree, done)
    }

    pub(super) fn keep(&self, bytes: Vec<u8>) -> u64 {
        let offset = self.alloc(bytes.len());
        self.bytes.borrow_mut().insert(offset, bytes);
        offset
    }

    fn store(&self, level: u8, birth: u64, entries: &[(Key, Value)]) -> NodeRef {
        let mut run = Entries::default();
        for (k, v) in entries {
            run.push(&[], k, v);
        }
        let (bytes, crc) = encode(&run, 0..run.len(), level, birth).unwrap();
        let reference = NodeRef {
            offset: self.alloc(bytes.len()),
            len: u32::try_from(bytes.len()).unwrap(),
            crc,
            count: run.len() as u64,
        };
        self.bytes.borrow_mut().insert(reference.offset, bytes);
        reference
    }
}

pub(super) fn chunk_key(coords: &[i64]) -> Key {
    let order: Vec<u8> = (0..u8::try_from(coords.len()).unwrap()).collect();
    key::chunk(ObjectId(1), coords, &order)
}

pub(super) fn record(offset: u64, len: u64) -> Value {
    let extent = Extent {
        offset: DATA_START + offset * 8,
        len,
        crc: 7,
    };
    ChunkRecord::Stored { extent, mask: 0 }.encode()
}

/// Everything a tree reaches, gathered with the rules of the format asserted on the way.
#[derive(Default)]
struct Census {
    entries: Vec<(Key, Value)>,
    extents: BTreeSet<(u64, u64)>,
    payload: i128,
    index: i128,
    nodes: usize,
}

impl Visit for Census {
    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let (node, reference) = (visited.node, visited.reference);
        self.nodes += 1;
        self.index += i128::from(reference.len);
        assert!(
            self.extents
                .insert((reference.offset, u64::from(reference.len)))
        );
        assert_eq!(visited.entries_below().unwrap(), reference.count);
        if let Some(parent) = visited.parent {
            assert!(node.birth() <= parent.birth());
            if !node.is_leaf() && node.birth() == parent.birth() {
                // Rewritten together: the first separator is the one in the parent.
                let above = (0..parent.count())
                    .find(|&i| parent.child(i).unwrap() == *reference)
                    .unwrap();
                assert_eq!(node.key(0), parent.key(above));
            }
        } else if !node.is_leaf() {
            assert!(node.count() >= 2 && node.key(0).is_empty());
        }
        if node.is_leaf() {
            for i in 0..node.count() {
                let (k, v) = (node.key(i), node.value(i));
                if let Some((extent, owner)) = record::extent_of(&k, v, 0, END).unwrap() {
                    assert!(self.extents.insert((extent.offset, extent.len)));
                    match owner {
                        Owner::Payload => self.payload += i128::from(extent.len),
                        Owner::Blob => self.index += i128::from(extent.len),
                    }
                }
                self.entries.push((k, Value::from_slice(v)));
            }
        }
        Ok(())
    }
}

fn census(nodes: &Nodes, tree: &Tree) -> Census {
    let mut census = Census::default();
    walk(nodes, tree, &mut census).unwrap();
    assert_eq!(tree.root.count, census.entries.len() as u64);
    census
}

/// A small generator, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap()
    }

    fn key(&mut self, round: u64) -> Key {
        let c = |r: u64| i64::try_from(r).unwrap();
        match self.below(20) {
            0 => key::attribute(ObjectId(self.below(40)), &"name".repeat(self.pick(40) + 1)),
            1 => key::history(self.below(300)),
            2 => chunk_key(&[c(self.below(9)), -c(self.below(500))]),
            // A front that moves up and one that moves down, beside what lies still.
            3..=8 => chunk_key(&[c(round * 3 + self.below(5)), c(self.below(60)) - 30, 0]),
            9..=12 => chunk_key(&[-1000 - c(round * 3 + self.below(5)), c(self.below(60)), 0]),
            _ => chunk_key(&[
                c(self.below(30)) - 15,
                c(self.below(60)) * 10,
                c(self.below(300)),
            ]),
        }
    }

    fn value(&mut self, key: &Key, fresh: &mut u64) -> Value {
        *fresh += 1;
        match key.first() {
            Some(&key::tag::CHUNK) if self.below(10) > 0 => record(*fresh * 2, self.below(9) + 1),
            Some(&key::tag::CHUNK) => ChunkRecord::Fill.encode(),
            _ => Value::from_vec(vec![0; self.pick(400) + 2]),
        }
    }
}

#[test]
fn a_hundred_thousand_random_changes_agree_with_a_map() {
    let (nodes, mut random) = (Nodes::default(), Random(7));
    let mut model = BTreeMap::from([(key::document(ObjectId(0)), Value::from_slice(b"\0\0{}"))]);
    let first: Vec<Change> = model
        .iter()
        .map(|(k, v)| (k.clone(), Some(v.clone())))
        .collect();
    let (mut tree, _) = nodes.commit(None, &first);
    let (mut before, mut fresh, mut done, mut round) = (census(&nodes, &tree), 0, 0, 0);
    while done < 100_000 {
        round += 1;
        let size = [1, 3, 40, 400, 4000][random.pick(5)];
        let deletes = if round % 7 == 0 { 9 } else { 3 };
        let mut changes = BTreeMap::new();
        for _ in 0..size {
            let k = random.key(round);
            let put = random.below(10) >= deletes;
            let value = put.then(|| random.value(&k, &mut fresh));
            changes.insert(k, value);
        }
        if round % 11 == 0 {
            // What a rolling window does: everything below a bound goes.
            let range = chunk_key(&[-5000])..chunk_key(&[i64::try_from(round).unwrap() - 20]);
            changes.extend(model.range(range).map(|(k, _)| (k.clone(), None)));
        }
        if round % 5 == 0 {
            let same = model.iter().nth(model.len() >> 1).unwrap();
            changes.insert(same.0.clone(), Some(same.1.clone()));
        }
        changes.remove(&key::document(ObjectId(0)));
        done += changes.len();
        let changed = changes
            .iter()
            .filter(|(k, v)| model.get(*k) != v.as_ref() && key::counts_as_change(k));
        let changed = changed.count() as u64;
        let batch: Vec<Change> = changes.into_iter().collect();
        assert_eq!(count_changes(&nodes, &tree, &batch).unwrap(), changed);
        let (next, edit) = nodes.commit(Some(&tree), &batch);
        for (k, v) in batch {
            match v {
                Some(v) => model.insert(k, v),
                None => model.remove(&k),
            };
        }
        assert_eq!(edit.changed, changed);
        let after = census(&nodes, &next);
        assert!(
            after.entries.iter().map(|(k, v)| (k, v)).eq(&model),
            "round {round}"
        );
        let freed: BTreeSet<_> = edit.freed.iter().map(|e| (e.offset, e.len)).collect();
        assert_eq!(freed.len(), edit.freed.len(), "nothing is freed twice");
        assert_eq!(
            freed,
            before.extents.difference(&after.extents).copied().collect()
        );
        assert_eq!(edit.live.payload, after.payload - before.payload);
        assert_eq!(edit.live.index, after.index - before.index);
        (tree, before) = (next, after);
        for _ in 0..20 {
            let k = random.key(round);
            assert_eq!(tree.get(&nodes, &k).unwrap().as_ref(), model.get(&k));
        }
    }
    assert!(tree.level >= 1 && before.entries.len() > 4000);
    let all: Vec<Change> = model.keys().skip(1).map(|k| (k.clone(), None)).collect();
    let (tree, _) = nodes.commit(Some(&tree), &all);
    assert_eq!((tree.level, tree.root.count), (0, 1));
}

#[test]
fn cursors_agree_with_a_map_over_any_range_and_any_way_forward() {
    let (nodes, mut random, mut fresh) = (Nodes::default(), Random(3), 0);
    let mut model = BTreeMap::new();
    for round in 0..6000 {
        let k = random.key(round % 50);
        let v = random.value(&k, &mut fresh);
        model.insert(k, v);
    }
    let changes: Vec<Change> = model
        .iter()
        .map(|(k, v)| (k.clone(), Some(v.clone())))
        .collect();
    let (tree, _) = nodes.commit(None, &changes);
    for _ in 0..300 {
        let (a, b) = (random.key(random.0 % 50), random.key(random.0 % 50));
        let (from, end) = (a.clone().min(b.clone()), a.max(b));
        let in_range: BTreeMap<_, _> = model
            .range(from.clone()..end.clone())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let mut cursor = Cursor::range(&nodes, tree, &from, Some(end)).unwrap();
        check_scan(&mut random, &in_range, &from, &mut cursor);
    }
}

fn entry(cursor: &Cursor<&Nodes>) -> Option<(Key, Value)> {
    assert_eq!(cursor.key(), cursor.peek().map(|e| e.key));
    let entry = cursor.peek()?;
    Some((Key::from_slice(entry.key), Value::from_slice(entry.value)))
}

fn check_scan(
    random: &mut Random,
    model: &BTreeMap<Key, Value>,
    from: &Key,
    cursor: &mut Cursor<&Nodes>,
) {
    let owned = |e: (&Key, &Value)| (e.0.clone(), e.1.clone());
    for e in model {
        assert_eq!(entry(cursor), Some(owned(e)));
        cursor.advance().unwrap();
    }
    assert_eq!(entry(cursor), None);
    cursor.advance().unwrap();
    assert_eq!(entry(cursor), None);
    cursor.seek(from).unwrap();
    while let Some((at, _)) = entry(cursor) {
        let mut target = at.clone();
        if random.below(3) == 0 {
            cursor.advance().unwrap();
            assert_eq!(entry(cursor), model.range(at..).nth(1).map(owned));
            continue;
        }
        let skip = [0, 1, 5, 700][random.pick(4)];
        if let Some((k, _)) = model.range(at.clone()..).nth(skip) {
            target = k.clone();
        }
        if random.below(2) == 0 {
            target.push(0);
        }
        cursor.seek_forward(&target).unwrap();
        assert_eq!(entry(cursor), model.range(target..).next().map(owned));
        if skip == 0 && entry(cursor).is_some_and(|(k, _)| k == at) {
            cursor.advance().unwrap();
        }
    }
}

fn grid(edge: i64) -> Vec<Change> {
    let mut changes = vec![(
        key::document(ObjectId(0)),
        Some(Value::from_slice(b"\0\0{}")),
    )];
    let mut fresh = 0;
    for i in 0..edge {
        for j in 0..edge {
            for k in 0..edge {
                fresh += 1;
                changes.push((chunk_key(&[i, j, k]), Some(record(fresh, 1))));
            }
        }
    }
    changes
}

#[test]
fn a_grid_of_a_million_chunks_takes_at_most_24_bytes_an_entry_and_three_levels() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &grid(100));
    let counted = census(&nodes, &tree);
    assert_eq!((tree.level, counted.entries.len()), (2, 1_000_001));
    let bytes = counted.index;
    assert!((21_000_000..24_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn appending_and_prepending_fill_nodes_wholly() {
    for step in [1, -1] {
        let nodes = Nodes::default();
        let (mut tree, _) = nodes.commit(None, &[(chunk_key(&[0, 0]), Some(record(0, 1)))]);
        for i in 1..4000 {
            let change = (chunk_key(&[step * i, 0]), Some(record(i.unsigned_abs(), 1)));
            (tree, _) = nodes.commit(Some(&tree), &[change]);
        }
        let counted = census(&nodes, &tree);
        // 4,000 entries of 22 bytes: eleven full leaves, a rest, a root.
        assert!(counted.nodes <= 13, "{}", counted.nodes);
    }
}

#[test]
fn a_batch_that_changes_nothing_gives_the_old_tree_and_no_nodes() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &grid(12));
    let same = [
        (chunk_key(&[0, 0, 0]), Some(record(1, 1))),
        (chunk_key(&[99, 0, 0]), None),
    ];
    let edit = nodes.edit(Some(&tree), &same, 2).unwrap();
    assert_eq!(
        (edit.root, edit.level, edit.changed),
        (tree.root, tree.level, 0)
    );
    assert!(edit.nodes.is_empty() && edit.freed.is_empty());
    assert_eq!(edit.live, super::edit::Live::default());
}

#[test]
fn one_changed_chunk_rewrites_one_path() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &grid(20));
    let edit = nodes
        .edit(
            Some(&tree),
            &[(chunk_key(&[9, 9, 9]), Some(record(9000, 1)))],
            2,
        )
        .unwrap();
    assert_eq!(edit.nodes.len(), usize::from(tree.level) + 1);
    assert_eq!(
        edit.freed.len(),
        usize::from(tree.level) + 2,
        "the old path and the old payload"
    );
}

#[test]
fn an_extent_that_moves_to_another_key_is_not_freed() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &grid(3));
    let moved = [
        (chunk_key(&[0, 0, 0]), None),
        (chunk_key(&[0, 0, 9]), Some(record(1, 1))),
    ];
    let edit = nodes.edit(Some(&tree), &moved, 2).unwrap();
    assert_eq!(edit.freed, [tree.root.extent()]);
    assert_eq!((edit.live.payload, edit.changed), (0, 2));
}

#[test]
fn an_emptied_tree_and_entries_that_no_node_holds_are_refused() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &[(chunk_key(&[0]), Some(record(1, 1)))]);
    let kind = |changes: &[Change]| nodes.edit(Some(&tree), changes, 2).unwrap_err().kind();
    assert_eq!(kind(&[(chunk_key(&[0]), None)]), ErrorKind::InvalidArgument);
    let (key, value) = (
        Key::from_elem(0x20, KEY_LEN_MAX + 1),
        Value::from_elem(0, VALUE_LEN_MAX + 1),
    );
    assert_eq!(
        kind(&[(key.clone(), Some(Value::new()))]),
        ErrorKind::LimitExceeded
    );
    assert_eq!(
        kind(&[(key[1..].into(), Some(value.clone()))]),
        ErrorKind::LimitExceeded
    );
    let edit = nodes
        .edit(
            Some(&tree),
            &[(key[1..].into(), Some(value[1..].into()))],
            2,
        )
        .unwrap();
    assert_eq!(edit.changed, 1);
}

#[test]
fn the_cache_reads_a_node_once_stays_under_its_cap_and_forgets() {
    let nodes = Nodes::default();
    let (tree, _) = nodes.commit(None, &grid(30));
    let cache = NodeCache::new(64 << 20);
    let loader = Loader::new(&nodes, &cache);
    for _ in 0..3 {
        walk(&loader, &tree, &mut Census::default()).unwrap();
    }
    let count = census(&nodes, &tree).nodes;
    assert_eq!(nodes.reads.get(), 2 * count);
    cache.forget(&tree.root.extent());
    tree.get(&loader, &chunk_key(&[0, 0, 0])).unwrap();
    assert_eq!(nodes.reads.get(), 2 * count + 1);
    let small = NodeCache::new(200 << 10);
    let loader = Loader::new(&nodes, &small);
    walk(&loader, &tree, &mut Census::default()).unwrap();
    assert!((1..=200 << 10).contains(&small.bytes()));
    let none = NodeCache::new(0);
    tree.get(&Loader::new(&nodes, &none), &chunk_key(&[0, 0, 0]))
        .unwrap();
    assert_eq!(none.bytes(), 0);
}

/// What each way of reading says about a tree.
fn kinds(nodes: &Nodes, tree: &Tree, key: &[u8]) -> Vec<Option<ErrorKind>> {
    let kind = |r: Result<()>| r.err().map(|e| e.kind());
    let scan = || -> Result<()> {
        let mut cursor = Cursor::range(nodes, *tree, &[], None)?;
        while cursor.peek().is_some() {
            cursor.advance()?;
        }
        Ok(())
    };
    vec![
        kind(tree.get(nodes, key).map(|_| ())),
        kind(scan()),
        kind(walk(nodes, tree, &mut Counted(0))),
        kind(
            nodes
                .edit(
                    Some(tree),
                    &[(Key::from_slice(key), Some(record(99, 1)))],
                    9,
                )
                .map(|_| ()),
        ),
    ]
}

/// Counts the nodes of a walk, which must stay few.
struct Counted(usize);

impl Visit for Counted {
    fn node(&mut self, _: Visited<'_>) -> Result<()> {
        self.0 += 1;
        assert!(self.0 < 1000, "bounded work");
        Ok(())
    }
}

fn reference_value(reference: &NodeRef) -> Value {
    let mut w = Writer::default();
    reference.encode(&mut w);
    Value::from_slice(w.as_slice())
}

fn leaf(nodes: &Nodes, coords: &[i64]) -> NodeRef {
    let entries: Vec<_> = coords
        .iter()
        .map(|&c| (chunk_key(&[c]), record(c.unsigned_abs(), 1)))
        .collect();
    nodes.store(0, 1, &entries)
}

fn branch(nodes: &Nodes, level: u8, children: &[(&[u8], NodeRef)]) -> NodeRef {
    let entries: Vec<_> = children
        .iter()
        .map(|(k, r)| (Key::from_slice(k), reference_value(r)))
        .collect();
    nodes.store(level, 1, &entries)
}

fn tree(root: NodeRef, level: u8) -> Tree {
    Tree {
        root,
        level,
        generation: 1,
        end: END,
    }
}

#[track_caller]
fn assert_corrupt(nodes: &Nodes, tree: &Tree, key: &[u8]) {
    let found = kinds(nodes, tree, key);
    assert_eq!(found, [Some(ErrorKind::Corrupt); 4]);
}

#[test]
fn a_well_formed_forged_tree_is_read() {
    let nodes = Nodes::default();
    let at = chunk_key(&[5]);
    let children = [
        (&b""[..], leaf(&nodes, &[1, 2])),
        (&at, leaf(&nodes, &[5, 6])),
    ];
    let root = branch(&nodes, 1, &children);
    assert_eq!(kinds(&nodes, &tree(root, 1), &at), [None; 4]);
}

#[test]
fn children_outside_the_range_of_their_parent_are_corrupt() {
    let nodes = Nodes::default();
    let (at, far) = (chunk_key(&[5]), chunk_key(&[9]));
    let good = leaf(&nodes, &[1, 2]);
    for bad in [leaf(&nodes, &[4, 5]), leaf(&nodes, &[5, 9])] {
        let root = branch(
            &nodes,
            1,
            &[(b"", good), (&at, bad), (&far, leaf(&nodes, &[9]))],
        );
        assert_corrupt(&nodes, &tree(root, 1), &chunk_key(&[6]));
    }
    // The bound of a last child stands in an ancestor.
    let left = branch(&nodes, 1, &[(b"", good), (&at, leaf(&nodes, &[5, 9]))]);
    let right = branch(&nodes, 1, &[(&far, leaf(&nodes, &[9]))]);
    let root = branch(&nodes, 2, &[(b"", left), (&far, right)]);
    assert_corrupt(&nodes, &tree(root, 2), &chunk_key(&[6]));
}

#[test]
fn a_node_with_two_parents_is_corrupt_and_costs_bounded_work() {
    let nodes = Nodes::default();
    let mut below = leaf(&nodes, &[5]);
    for level in 1..=LEVEL_MAX {
        let separators: Vec<_> = (0..200).map(|c| chunk_key(&[c])).collect();
        let children: Vec<_> = separators.iter().map(|k| (k.as_slice(), below)).collect();
        below = branch(&nodes, level, &children);
    }
    assert_corrupt(&nodes, &tree(below, LEVEL_MAX), &chunk_key(&[7]));
}

#[test]
fn wrong_levels_births_ends_and_lone_children_of_a_root_are_corrupt() {
    let nodes = Nodes::default();
    let at = chunk_key(&[5]);
    let (a, b) = (leaf(&nodes, &[1]), leaf(&nodes, &[5]));
    let root = branch(&nodes, 1, &[(b"", a), (&at, b)]);
    let probe = chunk_key(&[6]);
    assert_corrupt(&nodes, &tree(root, 0), &probe);
    assert_corrupt(&nodes, &tree(root, 2), &probe);
    assert_corrupt(&nodes, &tree(root, LEVEL_MAX + 1), &probe);
    assert_corrupt(
        &nodes,
        &Tree {
            generation: 0,
            ..tree(root, 1)
        },
        &probe,
    );
    assert_corrupt(
        &nodes,
        &Tree {
            end: b.offset,
            ..tree(root, 1)
        },
        &probe,
    );
    // A leaf two levels below, a branch beside a leaf.
    let skipping = branch(&nodes, 2, &[(b"", a), (&at, b)]);
    assert_corrupt(&nodes, &tree(skipping, 2), &probe);
    let deep = branch(&nodes, 1, &[(&at, b)]);
    let uneven = branch(&nodes, 1, &[(b"", a), (&at, deep)]);
    assert_corrupt(&nodes, &tree(uneven, 1), &probe);
    let lone = branch(&nodes, 1, &[(b"", b)]);
    assert_corrupt(&nodes, &tree(lone, 1), &probe);
    let young = nodes.store(0, 2, &[(at.clone(), record(1, 1))]);
    let root = branch(&nodes, 1, &[(b"", a), (&at, young)]);
    assert_corrupt(&nodes, &tree(root, 1), &probe);
}

#[test]
fn lost_and_misdirected_writes_are_corrupt() {
    let nodes = Nodes::default();
    let at = chunk_key(&[5]);
    let (a, b) = (leaf(&nodes, &[1]), leaf(&nodes, &[5]));
    let root = tree(branch(&nodes, 1, &[(b"", a), (&at, b)]), 1);
    // The old node is still there: intact, but not the one that the parent names.
    let old = Nodes::default();
    let stale = leaf(&old, &[6]);
    let stale = old.bytes.borrow()[&stale.offset].clone();
    let right = nodes.bytes.borrow_mut().insert(b.offset, stale).unwrap();
    assert_corrupt(&nodes, &root, &at);
    let cache = NodeCache::new(1 << 20);
    let loader = Loader::new(&nodes, &cache);
    for _ in 0..2 {
        assert!(root.get(&loader, &at).unwrap_err().is_corruption());
    }
    // Two nodes that changed places.
    let left = nodes.bytes.borrow_mut().insert(a.offset, right).unwrap();
    nodes.bytes.borrow_mut().insert(b.offset, left);
    assert_corrupt(&nodes, &root, &at);
}

#[test]
fn a_reference_cycle_ends_at_the_first_wrong_level() {
    // Checksums make a true cycle infeasible; a store that answers every offset with the same node comes closest.
    struct Everywhere(Arc<Node>);
    impl Load for Everywhere {
        fn load(&self, _: &NodeRef) -> Result<Arc<Node>> {
            Ok(Arc::clone(&self.0))
        }
    }
    let nodes = Nodes::default();
    let target = NodeRef {
        offset: DATA_START,
        len: 100,
        crc: 1,
        count: 1,
    };
    let root = branch(&nodes, 3, &[(b"", target), (b"\x08", target)]);
    let node = nodes.load(&root).unwrap();
    let same = NodeRef {
        len: u32::try_from(node.byte_len()).unwrap(),
        crc: node.crc(),
        ..root
    };
    let load = Everywhere(node);
    let e = tree(same, 3).get(&load, b"\x01").unwrap_err();
    assert!(e.is_corruption());
    let mut cursor = Cursor::new(&load, tree(same, 3), None);
    assert!(cursor.seek(b"\x01").unwrap_err().is_corruption());
}

/// Processor time of this thread where the system tells it, as the machine may be busy.
fn cpu_time(start: std::time::Instant) -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu = text.split(' ').next().and_then(|ns| ns.parse().ok());
    on_cpu.map_or_else(|| start.elapsed(), std::time::Duration::from_nanos)
}

#[test]
#[ignore = "a measurement: cargo test --release --lib -- --ignored --nocapture index_speed"]
fn index_speed() {
    let start = std::time::Instant::now();
    let (nodes, changes) = (Nodes::default(), grid(100));
    let timed = |what: &str, count: u32, run: &mut dyn FnMut()| {
        let before = cpu_time(start);
        run();
        println!(
            "{what}: {:?}",
            cpu_time(start).saturating_sub(before) / count
        );
    };
    let mut built = None;
    timed("build, an entry", 1_000_001, &mut || {
        built = Some(nodes.edit(None, &changes, 1).unwrap());
    });
    let built = built.unwrap();
    println!("{} B in {} entries", built.live.index, changes.len());
    let tree = Tree {
        root: built.root,
        level: built.level,
        generation: 1,
        end: END,
    };
    nodes.bytes.borrow_mut().extend(built.nodes);
    let cache = NodeCache::new(64 << 20);
    let loader = Loader::new(&nodes, &cache);
    timed("first touch, a node", 2716, &mut || {
        walk(&loader, &tree, &mut Blind).unwrap();
    });
    let mut random = Random(1);
    let coords: Vec<[i64; 3]> = (0..1_000_000)
        .map(|_| [(); 3].map(|()| random.below(100).cast_signed()))
        .collect();
    let get = |c: &[i64; 3]| tree.get(&loader, &key::chunk(ObjectId(1), c, &[0, 1, 2]));
    timed("random get", 1_000_000, &mut || {
        assert!(coords.iter().all(|c| get(c).unwrap().is_some()));
    });
    timed("random get in 20 nodes", 1_000_000, &mut || {
        let near = coords.iter().map(|c| [c[0].div_euclid(100), c[1], c[2]]);
        assert!(near.into_iter().all(|c| get(&c).unwrap().is_some()));
    });
    timed("cursor step", 1_000_001, &mut || {
        let mut cursor = Cursor::range(&loader, tree, &[], None).unwrap();
        while let Some(entry) = cursor.peek() {
            assert!(!entry.value.is_empty());
            cursor.advance().unwrap();
        }
    });
    let one = [(chunk_key(&[50, 50, 50]), Some(record(1 << 30, 1)))];
    timed("one change", 1000, &mut || {
        for _ in 0..1000 {
            let mut alloc = |len| Ok(nodes.alloc(len));
            edit(&loader, Some(&tree), &one, 2, &mut alloc).unwrap();
        }
    });
}

/// Visits and sees nothing.
struct Blind;

impl Visit for Blind {
    fn node(&mut self, _: Visited<'_>) -> Result<()> {
        Ok(())
    }
}
