//! Nodes of the index: leaves and branches share one encoding. Spec: `format-spec/04-nodes.md`.
//!
//! Holds [`Node`], a verified private copy of a node's bytes, with its validation, accessors and search.
//! Must not know where nodes come from, nor follow references. How nodes are written stands in `pack.rs`.
//!
//! Invariants of a [`Node`]: its checksum is right; it has at least one entry; its keys ascend strictly; its
//! encoding is the only right one; values that own extents or refer to nodes parse.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;

use smallvec::SmallVec;

use super::extent::NodeRef;
use super::key::{Key, prefix_u64};
use super::record;
use super::{Generation, pack};
use crate::bytes::{self, Reader};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{KEY_LEN_MAX, LEVEL_MAX, NODE_LEN_MAX, VALUE_LEN_MAX};

/// Bytes before the prefix.
pub(crate) const HEADER_LEN: usize = 32;
/// First bytes of every node.
pub(super) const MAGIC: [u8; 4] = *b"ORTN";
pub(super) const KIND_LEAF: u8 = 1;
pub(super) const KIND_BRANCH: u8 = 2;
pub(super) const FLAG_UNIFORM: u16 = 1;
/// Where the checksum stands, which covers every other byte.
pub(super) const CRC_AT: usize = 28;
/// Longest suffix that the search compares as one number.
const WORD: usize = 8;
/// Heads of suffixes that a leaf keeps beside its header.
const LEAF_HEADS: usize = 32;
/// Extents of a snapshot end below this; the true end is compared when the node is used.
const END_MAX: u64 = 1 << 63;

/// How the entries lie after the prefix.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// A column of suffixes, then a column of values, each of one length.
    Uniform {
        suffix_len: usize,
        value_len: usize,
        values_at: usize,
    },
    /// A table of cell positions, then the cells.
    Slotted,
}

/// A verified node. Positions of entries are `0..count()`; beyond that, accessors give empty slices.
#[derive(Debug)]
pub(crate) struct Node {
    bytes: Box<[u8]>,
    offset: u64,
    crc: u32,
    level: u8,
    birth: Generation,
    count: usize,
    prefix_len: usize,
    layout: Layout,
    /// The outer keys stand beside the header: a descent compares them, and its misses of the processor's cache are
    /// what it costs.
    first: Key,
    last: Key,
    /// The first eight bytes of every `step`-th suffix, zeros for those it does not have: a search looks at these, and
    /// then at one line of a leaf's suffixes instead of one after the other. Branches, which are few, have all (step 1).
    heads: SmallVec<[u64; LEAF_HEADS]>,
    step: usize,
    /// Exclusive end of the farthest extent or child that an entry names.
    reach: u64,
}

struct Header {
    level: u8,
    uniform: bool,
    count: usize,
    prefix_len: usize,
    suffix_len: usize,
    value_len: usize,
    birth: Generation,
    crc: u32,
}

impl Node {
    /// Takes the bytes read at `offset` and verifies everything that can be told from them alone.
    pub(crate) fn parse(bytes: Box<[u8]>, offset: u64) -> Result<Self> {
        let header = Header::read(&bytes, offset)?;
        let entries_at = HEADER_LEN.saturating_add(header.prefix_len);
        let layout = if header.uniform {
            let suffixes_len = header.count.saturating_mul(header.suffix_len);
            Layout::Uniform {
                suffix_len: header.suffix_len,
                value_len: header.value_len,
                values_at: entries_at.saturating_add(suffixes_len),
            }
        } else {
            Layout::Slotted
        };
        let mut node = Self {
            bytes,
            offset,
            crc: header.crc,
            level: header.level,
            birth: header.birth,
            count: header.count,
            prefix_len: header.prefix_len,
            layout,
            first: Key::new(),
            last: Key::new(),
            heads: SmallVec::new(),
            step: 1,
            reach: 0,
        };
        match layout {
            Layout::Uniform {
                value_len,
                values_at,
                ..
            } => {
                let end = header
                    .count
                    .saturating_mul(value_len)
                    .saturating_add(values_at);
                node.require(end == node.bytes.len(), "columns that end with the node")?;
            }
            Layout::Slotted => node.check_cells(entries_at)?,
        }
        node.first = Key::from_slice(node.slice(HEADER_LEN, header.prefix_len));
        node.check_keys()?;
        node.last = node.key(node.count.saturating_sub(1));
        node.first = node.key(0);
        node.reach = node.check_values()?;
        if node.is_leaf() {
            node.step = node.count.div_ceil(LEAF_HEADS);
        }
        let heads = (0..node.count).step_by(node.step);
        node.heads = heads.map(|i| prefix_u64(node.suffix(i))).collect();
        Ok(node)
    }

    /// Verifies what depends on who refers to it: `reference`, and a snapshot that ends at `end`, has `level` here
    /// and no node younger than `birth_max`.
    pub(crate) fn check_use(
        &self,
        reference: &NodeRef,
        level: u8,
        birth_max: Generation,
        end: u64,
    ) -> Result<()> {
        let same_len = u64::from(reference.len) == self.bytes.len() as u64;
        self.require(
            same_len && reference.crc == self.crc,
            "the length and checksum of its reference",
        )?;
        if self.level != level {
            return Err(self
                .fault()
                .expected(format_args!("level {level}"))
                .found(self.level));
        }
        if self.birth > birth_max {
            return Err(self
                .fault()
                .expected(format_args!("a birth generation of at most {birth_max}"))
                .found(self.birth));
        }
        if self.reach > end {
            return Err(self
                .fault()
                .expected(format_args!("entries that point below {end}"))
                .found(self.reach));
        }
        Ok(())
    }

    /// The checksum that references to this node repeat.
    pub(crate) fn crc(&self) -> u32 {
        self.crc
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    pub(crate) fn birth(&self) -> Generation {
        self.birth
    }

    /// Entries of this node, at least 1.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Stored bytes.
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that the node takes, roughly.
    pub(crate) fn cost(&self) -> usize {
        let heads = size_of_val(self.heads.as_slice());
        size_of::<Self>()
            .saturating_add(self.bytes.len())
            .saturating_add(if self.heads.spilled() { heads } else { 0 })
    }

    /// The lowest key.
    pub(crate) fn first_key(&self) -> &[u8] {
        &self.first
    }

    /// The highest key.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last
    }

    /// True when all keys have one length and all values have one length.
    pub(crate) fn is_uniform(&self) -> bool {
        matches!(self.layout, Layout::Uniform { .. })
    }

    /// What all keys start with.
    pub(crate) fn prefix(&self) -> &[u8] {
        self.first.get(..self.prefix_len).unwrap_or(&self.first)
    }

    /// Key `i` without the prefix.
    #[inline]
    pub(crate) fn suffix(&self, i: usize) -> &[u8] {
        self.range(self.suffix_range(i))
    }

    #[inline]
    fn suffix_range(&self, i: usize) -> Range<usize> {
        match self.layout {
            Layout::Uniform { .. } if i >= self.count => 0..0,
            Layout::Uniform { suffix_len, .. } => {
                let start = self
                    .entries_at()
                    .saturating_add(i.saturating_mul(suffix_len));
                start..start.saturating_add(suffix_len)
            }
            Layout::Slotted => self.cell(i).map_or(0..0, |cell| cell.suffix),
        }
    }

    /// Value `i`.
    #[inline]
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        match self.layout {
            Layout::Uniform { .. } if i >= self.count => &[],
            Layout::Uniform {
                value_len,
                values_at,
                ..
            } => self.slice(
                values_at.saturating_add(i.saturating_mul(value_len)),
                value_len,
            ),
            Layout::Slotted => self.cell(i).map_or(&[], |cell| self.range(cell.value)),
        }
    }

    /// Absolute position of value `i`, for messages.
    pub(crate) fn value_at(&self, i: usize) -> u64 {
        let start = match self.layout {
            Layout::Uniform {
                value_len,
                values_at,
                ..
            } => values_at.saturating_add(i.saturating_mul(value_len)),
            Layout::Slotted => self.cell(i).map_or(0, |cell| cell.value.start),
        };
        self.offset.saturating_add(start as u64)
    }

    /// Key `i`.
    pub(crate) fn key(&self, i: usize) -> Key {
        let mut key = Key::new();
        self.key_into(i, &mut key);
        key
    }

    /// Overwrites `key` with key `i`.
    #[inline]
    pub(crate) fn key_into(&self, i: usize, key: &mut Key) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.suffix(i));
    }

    /// The child that entry `i` of a branch refers to.
    pub(crate) fn child(&self, i: usize) -> Result<NodeRef> {
        self.require(!self.is_leaf(), "a branch")?;
        NodeRef::decode(&mut Reader::new(
            "node reference",
            self.value_at(i),
            self.value(i),
        ))
    }

    /// Compares key `i` with `key`.
    pub(crate) fn compare(&self, i: usize, key: &[u8]) -> Ordering {
        let prefix = self.prefix();
        match key.split_at_checked(prefix.len()) {
            Some((head, rest)) => prefix.cmp(head).then_with(|| {
                let known = self
                    .head(i)
                    .map_or(Ordering::Equal, |h| h.cmp(&prefix_u64(rest)));
                known.then_with(|| self.suffix(i).cmp(rest))
            }),
            // The key is shorter than the prefix: whatever follows the prefix cannot make them equal.
            None => prefix.cmp(key),
        }
    }

    /// The first eight bytes of suffix `i`, where they are kept.
    #[inline]
    fn head(&self, i: usize) -> Option<u64> {
        (self.step == 1).then(|| self.heads.get(i).copied())?
    }

    /// Where `key` is, or where it would have to be inserted.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        let (head, suffix) = key.split_at_checked(prefix.len()).unwrap_or((key, &[]));
        match head.cmp(prefix) {
            Ordering::Less => Err(0),
            Ordering::Greater => Err(self.count),
            Ordering::Equal => self.search_suffixes(suffix),
        }
    }

    /// The child of a branch that `key` belongs to; `None` when it lies below the first separator.
    #[inline]
    pub(crate) fn route(&self, key: &[u8]) -> Option<usize> {
        match self.search(key) {
            Ok(i) => Some(i),
            Err(i) => i.checked_sub(1),
        }
    }

    fn search_suffixes(&self, suffix: &[u8]) -> Result<usize, usize> {
        let wanted = prefix_u64(suffix);
        let not_below = partition(&self.heads, |head| head < wanted);
        // Long suffixes may share their heads.
        let above = match self.heads.get(not_below) {
            Some(&head) if head == wanted => partition(&self.heads, |head| head <= wanted),
            _ => not_below,
        };
        let mut low = not_below
            .saturating_sub(1)
            .saturating_mul(self.step)
            .saturating_add(usize::from(not_below > 0));
        let mut high = above.saturating_mul(self.step).min(self.count);
        while low < high {
            let middle = low.midpoint(high);
            let range = self.suffix_range(middle);
            // Eight bytes decide almost always, without a call.
            let order = self.word(&range).cmp(&wanted);
            match order.then_with(|| self.range(range).cmp(suffix)) {
                Ordering::Less => low = middle.saturating_add(1),
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// The first eight bytes of a suffix as a number, zeros for those it does not have.
    #[inline]
    fn word(&self, suffix: &Range<usize>) -> u64 {
        let missing = WORD.saturating_sub(suffix.len()).saturating_mul(8);
        // What follows the suffix is read with it and masked out.
        let mask = u32::try_from(missing)
            .ok()
            .and_then(|m| u64::MAX.checked_shl(m))
            .unwrap_or(0);
        prefix_u64(self.bytes.get(suffix.start..).unwrap_or(&[])) & mask
    }

    #[inline]
    fn entries_at(&self) -> usize {
        HEADER_LEN.saturating_add(self.prefix_len)
    }

    #[inline]
    fn slice(&self, start: usize, len: usize) -> &[u8] {
        self.range(start..start.saturating_add(len))
    }

    #[inline]
    fn range(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or(&[])
    }

    fn u16_at(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(usize::from(bytes[0]) | usize::from(bytes[1]) << 8)
    }

    #[inline]
    fn cell(&self, i: usize) -> Option<Cell> {
        if i >= self.count {
            return None;
        }
        let start = self.u16_at(self.entries_at().saturating_add(i.saturating_mul(2)))?;
        let suffix_at = start.saturating_add(pack::CELL_HEADER_LEN);
        let value_at = suffix_at.saturating_add(self.u16_at(start)?);
        let end = value_at.saturating_add(self.u16_at(start.saturating_add(2))?);
        Some(Cell {
            start,
            suffix: suffix_at..value_at,
            value: value_at..end,
        })
    }

    fn check_cells(&self, entries_at: usize) -> Result<()> {
        let mut next = self.count.saturating_mul(2).saturating_add(entries_at);
        for i in 0..self.count {
            let cell = self
                .cell(i)
                .filter(|c| c.start == next && c.value.end <= self.bytes.len());
            let Some(cell) = cell else {
                return Err(self
                    .fault()
                    .expected(format_args!("cell {i} right after the one before it")));
            };
            next = cell.value.end;
        }
        self.require(next == self.bytes.len(), "cells that end with the node")?;
        let first = (self.suffix(0).len(), self.value(0).len());
        let mixed = (1..self.count).any(|i| (self.suffix(i).len(), self.value(i).len()) != first);
        self.require(mixed, "columns, as all entries have the same lengths")
    }

    fn check_keys(&self) -> Result<()> {
        let ascends = |i: usize| {
            let (before, here) = (self.suffix_range(i.saturating_sub(1)), self.suffix_range(i));
            match self.word(&before).cmp(&self.word(&here)) {
                Ordering::Less => true,
                Ordering::Equal => self.range(before) < self.range(here),
                Ordering::Greater => false,
            }
        };
        self.require(
            (1..self.count).all(ascends),
            "keys in strictly ascending order",
        )?;
        let last = self.suffix(self.count.saturating_sub(1));
        let whole_prefix = match self.count {
            1 => last.is_empty(),
            // A first suffix that is empty is a key that equals the prefix.
            _ => self.suffix(0).first() != last.first(),
        };
        self.require(whole_prefix, "the longest prefix that its keys share")?;
        let key_len = |i| self.prefix_len.saturating_add(self.suffix(i).len());
        let shortest = usize::from(self.is_leaf());
        let range = shortest..=KEY_LEN_MAX;
        let counted = if self.is_uniform() { 1 } else { self.count };
        let fits = |i| range.contains(&key_len(i)) && self.value(i).len() <= VALUE_LEN_MAX;
        self.require(
            (0..counted).all(fits),
            "keys and values within their limits",
        )
    }

    /// Validates references and extents; gives the end of the farthest one.
    fn check_values(&self) -> Result<u64> {
        let mut reach = 0;
        for i in 0..self.count {
            let end = if self.is_leaf() {
                // Who owns what follows from the tag alone, the first byte of the key.
                let prefix = self.prefix();
                let tagged = if prefix.is_empty() {
                    self.suffix(i)
                } else {
                    prefix
                };
                match record::extent_of(tagged, self.value(i), self.value_at(i), END_MAX) {
                    Ok(owned) => owned.map_or(0, |(extent, _)| extent.end()),
                    // A record of a later version fails its chunk only, when it is read.
                    Err(e) if e.kind() == ErrorKind::Unsupported => 0,
                    Err(e) => return Err(e),
                }
            } else {
                self.require(
                    self.value(i).len() == NodeRef::LEN,
                    "references of 24 bytes",
                )?;
                let child = self.child(i)?;
                child.check(END_MAX)?;
                child.extent().end()
            };
            reach = reach.max(end);
        }
        Ok(reach)
    }

    fn require(&self, holds: bool, rule: &str) -> Result<()> {
        if holds {
            Ok(())
        } else {
            Err(self.fault().expected(rule))
        }
    }

    /// An error about this node.
    pub(crate) fn fault(&self) -> Error {
        Error::corrupt("index node")
            .at(self.offset)
            .spanning(self.bytes.len() as u64)
    }
}

struct Cell {
    start: usize,
    suffix: Range<usize>,
    value: Range<usize>,
}

impl Header {
    fn read(bytes: &[u8], offset: u64) -> Result<Self> {
        let fault = || {
            Error::corrupt("index node")
                .at(offset)
                .spanning(bytes.len() as u64)
        };
        if bytes.len() <= HEADER_LEN || bytes.len() > NODE_LEN_MAX {
            return Err(fault().expected(format_args!("33..={NODE_LEN_MAX} bytes")));
        }
        let mut r = Reader::new("index node", offset, bytes);
        if r.array::<4>()? != MAGIC {
            return Err(fault().expected("the magic bytes ORTN"));
        }
        let (kind, level, flags, count) = (r.u8()?, r.u8()?, r.u16()?, r.u16()?);
        let (prefix_len, suffix_len, value_len) = (r.u16()?, r.u16()?, r.u16()?);
        let (birth, len, crc) = (r.u64()?, r.u32()?, r.u32()?);
        let computed = checksum(bytes);
        if crc != computed {
            return Err(fault()
                .expected(format_args!("checksum {crc:#010x}"))
                .found(format_args!("{computed:#010x}")));
        }
        let kind_wanted = if level == 0 { KIND_LEAF } else { KIND_BRANCH };
        if kind != kind_wanted || level > LEVEL_MAX {
            return Err(fault()
                .expected(format_args!(
                    "a leaf at level 0 or a branch at 1..={LEVEL_MAX}"
                ))
                .found(format_args!("kind {kind} at level {level}")));
        }
        let uniform = flags == FLAG_UNIFORM;
        let unused_zero = uniform || (suffix_len, value_len) == (0, 0);
        if flags & !FLAG_UNIFORM != 0 || !unused_zero {
            return Err(fault().expected("known flags and zero in unused fields"));
        }
        if count == 0 || u64::from(len) != bytes.len() as u64 {
            return Err(fault()
                .expected(format_args!(
                    "at least one entry and a length of {}",
                    bytes.len()
                ))
                .found(format_args!("{count} entries and {len}")));
        }
        Ok(Self {
            level,
            uniform,
            count: usize::from(count),
            prefix_len: usize::from(prefix_len),
            suffix_len: usize::from(suffix_len),
            value_len: usize::from(value_len),
            birth,
            crc,
        })
    }
}

/// How many of the ascending `heads` are below what is wanted.
///
/// Bisection while there are many, without a branch that could be mispredicted; a count of the last ones, whose misses of
/// the processor's cache do not wait for each other.
#[inline]
fn partition(heads: &[u64], is_below: impl Fn(u64) -> bool) -> usize {
    let mut skipped = 0_usize;
    let mut rest = heads;
    while rest.len() > LEAF_HEADS {
        let (front, back) = rest.split_at(rest.len() >> 1);
        let skip = front.last().is_some_and(|&head| is_below(head));
        skipped = select_unpredictable(skip, skipped.wrapping_add(front.len()), skipped);
        rest = select_unpredictable(skip, back, front);
    }
    let below = rest.iter().map(|&head| usize::from(is_below(head)));
    skipped.wrapping_add(below.sum::<usize>())
}

/// CRC32C of all bytes of a node but the field that holds it.
pub(super) fn checksum(node: &[u8]) -> u32 {
    let head = node.get(..CRC_AT).unwrap_or(node);
    let tail = node.get(HEADER_LEN..).unwrap_or(&[]);
    bytes::crc32c_append(bytes::crc32c(head), tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::pack::{Entries, encode};
    use crate::format::record::ChunkRecord;
    use crate::format::{ObjectId, extent::Extent, key};

    /// A node whose bytes were altered, with its checksum made right again.
    fn parse_forged(bytes: &[u8], alter: impl FnOnce(&mut Vec<u8>)) -> Result<Node> {
        let mut bytes = bytes.to_vec();
        alter(&mut bytes);
        let crc = checksum(&bytes);
        let mut w = crate::bytes::Writer::default();
        w.u32(crc);
        bytes[CRC_AT..HEADER_LEN].copy_from_slice(w.as_slice());
        Node::parse(bytes.into(), 0x3000)
    }

    fn pack(level: u8, entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut run = Entries::default();
        for (k, v) in entries {
            run.push(&[], k, v);
        }
        encode(&run, 0..run.len(), level, 1).unwrap().0
    }

    fn node(entries: &[(&[u8], &[u8])]) -> Node {
        Node::parse(pack(0, entries).into(), 0x3000).unwrap()
    }

    const UNIFORM: [u8; 42] = [
        b'O', b'R', b'T', b'N', 1, 0, 1, 0, 2, 0, 2, 0, 2, 0, 1,
        0, // 2 entries, 2 + 2 + 1 bytes
        1, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, // birth 1, 40 bytes
        0x11, 0x80, 1, 2, 3, 4, 8, 9, 0, 0,
    ];
    const SLOTTED: [u8; 54] = [
        b'O', b'R', b'T', b'N', 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, //
        7, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 0, 0, 0, 0, //
        0x11, 37, 0, 43, 0, 1, 0, 1, 0, 1, 9, 3, 0, 4, 0, 2, 3, 4, 5, 6, 7, 8,
    ];

    #[test]
    fn every_key_is_found_and_every_other_is_placed_where_it_belongs() {
        // Suffixes that share their first eight bytes, end within them, or with zeros that a short one lacks.
        let tails: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"abcdefgh", b"abcdefgha", b"abcdefghb"];
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for first in 0..60_u8 {
            keys.extend(tails.iter().map(|tail| [&[0xE0, first], *tail].concat()));
        }
        keys.sort();
        let present: Vec<&[u8]> = keys.iter().step_by(2).map(Vec::as_slice).collect();
        let child = NodeRef {
            offset: 0x3000,
            len: 40,
            crc: 7,
            count: 1,
        };
        let mut w = crate::bytes::Writer::default();
        child.encode(&mut w);
        for level in [0, 1] {
            let entries: Vec<(&[u8], &[u8])> = present.iter().map(|&k| (k, w.as_slice())).collect();
            let node = Node::parse(pack(level, &entries).into(), 0x3000).unwrap();
            for key in
                keys.iter()
                    .map(Vec::as_slice)
                    .chain([&[][..], &[0xE0], &[0xE1], &[0xE0, 200]])
            {
                let expected = present.binary_search(&key);
                assert_eq!(node.search(key), expected, "{key:?} at level {level}");
                for (i, other) in present.iter().enumerate() {
                    assert_eq!(
                        node.compare(i, key),
                        (*other).cmp(key),
                        "{key:?}, {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn small_nodes_have_the_bytes_of_the_specification() {
        let bytes = pack(
            0,
            &[(&[0x11, 0x80, 1, 2], &[8]), (&[0x11, 0x80, 3, 4], &[9])],
        );
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[..28], UNIFORM[..28]);
        assert_eq!(bytes[32..], UNIFORM[32..40]);
        let mut run = Entries::default();
        run.push(&[0x11], &[1], &[9]);
        run.push(&[0x11], &[2, 3, 4], &[5, 6, 7, 8]);
        let (bytes, crc) = encode(&run, 0..2, 0, 7).unwrap();
        assert_eq!(bytes[..28], SLOTTED[..28]);
        assert_eq!(bytes[32..], SLOTTED[32..]);
        let node = Node::parse(bytes.into(), 0x3000).unwrap();
        assert_eq!(
            (node.crc(), node.birth(), node.is_uniform()),
            (crc, 7, false)
        );
        assert_eq!(
            (node.key(1).as_slice(), node.value(1)),
            (&[0x11, 2, 3, 4][..], &[5, 6, 7, 8][..])
        );
        assert_eq!(node.value_at(1), 0x3000 + 50);
        assert_eq!((node.suffix(2), node.value(2)), (&[][..], &[][..]));
        let node = Node::parse(pack(0, &[(&[0x11, 1], &[8])]).into(), 0x3000).unwrap();
        assert_eq!((node.suffix(1), node.value(1)), (&[][..], &[][..]));
    }

    #[test]
    fn a_single_entry_has_its_whole_key_as_prefix() {
        let node = node(&[(b"\x11abc", b"v")]);
        assert_eq!(
            (node.prefix(), node.suffix(0), node.value(0)),
            (&b"\x11abc"[..], &b""[..], &b"v"[..])
        );
        assert_eq!(node.search(b"\x11abc"), Ok(0));
        assert_eq!(node.search(b"\x11ab"), Err(0));
        assert_eq!(node.search(b"\x11abcd"), Err(1));
    }

    #[test]
    fn search_agrees_with_sorted_order_for_short_long_and_mixed_suffixes() {
        let uniform: [&[u8]; 4] = [b"\x11aaa", b"\x11aab", b"\x11aba", b"\x11b\0\0"];
        let long: [&[u8]; 3] = [
            b"\x11aaaaaaaaaaaa",
            b"\x11aaaaaaaaaaab",
            b"\x11baaaaaaaaaaa",
        ];
        let mixed: [&[u8]; 4] = [b"\x11", b"\x11a", b"\x11ab", b"\x11c"];
        let probes: Vec<Vec<u8>> = [&uniform[..], &long[..], &mixed[..]]
            .concat()
            .into_iter()
            .flat_map(|k| {
                let longer = [k, &[0]].concat();
                let mut next = k.to_vec();
                *next.last_mut().unwrap() += 1;
                [k.to_vec(), longer, next, k[..k.len() - 1].to_vec()]
            })
            .collect();
        for keys in [&uniform[..], &long[..], &mixed[..]] {
            let node = node(&keys.iter().map(|k| (*k, &b"v"[..])).collect::<Vec<_>>());
            for probe in &probes {
                let wanted = keys.binary_search(&probe.as_slice());
                assert_eq!(node.search(probe), wanted, "{probe:?} in {keys:?}");
                assert_eq!(
                    node.route(probe),
                    wanted.map_or_else(|i| i.checked_sub(1), Some)
                );
                for (i, k) in keys.iter().enumerate() {
                    assert_eq!(node.compare(i, probe), k.cmp(&probe.as_slice()));
                }
            }
        }
    }

    #[test]
    fn forged_uniform_nodes_are_corrupt_behind_a_right_checksum() {
        let ok = pack(
            0,
            &[(&[0x11, 0x80, 1, 2], &[8]), (&[0x11, 0x80, 3, 4], &[9])],
        );
        parse_forged(&ok, |_| ()).unwrap();
        // Magic, kind, level, flags, count 0 and 3, prefix, suffix, value and total lengths, order, equal keys.
        let forgeries: [(usize, u8); 17] = [
            (0, b'X'),
            (4, 2),
            (4, 0),
            (5, 1),
            (6, 3),
            (6, 0),
            (8, 0),
            (8, 3),
            (10, 3),
            (11, 0xFF),
            (12, 1),
            (14, 2),
            (24, 41),
            (27, 1),
            (34, 4),
            (36, 0),
            (36, 1),
        ];
        for (at, byte) in forgeries {
            let forged = parse_forged(&ok, |b| b[at] = byte);
            assert!(forged.unwrap_err().is_corruption(), "byte {at} = {byte}");
        }
        let equal_keys = parse_forged(&ok, |b| b[36..38].copy_from_slice(&[1, 2]));
        assert!(equal_keys.unwrap_err().is_corruption());
        for len in 0..ok.len() {
            let cut = Node::parse(ok[..len].into(), 0x3000);
            assert!(cut.unwrap_err().is_corruption());
        }
        let mut damaged = ok.clone();
        damaged[39] ^= 1;
        assert!(
            Node::parse(damaged.into(), 0x3000)
                .unwrap_err()
                .is_corruption()
        );
    }

    #[test]
    fn forged_slotted_nodes_are_corrupt_behind_a_right_checksum() {
        let ok = pack(0, &[(&[0x11, 1], &[9]), (&[0x11, 2, 3, 4], &[5, 6, 7, 8])]);
        parse_forged(&ok, |_| ()).unwrap();
        // Unused fields, cells that overlap, leave a gap, run out of the node, or are out of order.
        for (at, byte) in [
            (12, 1),
            (14, 1),
            (33, 36),
            (33, 38),
            (34, 1),
            (35, 37),
            (37, 2),
            (39, 2),
            (45, 5),
        ] {
            let forged = parse_forged(&ok, |b| b[at] = byte);
            assert!(forged.unwrap_err().is_corruption(), "byte {at} = {byte}");
        }
        // A slotted node whose entries would fit columns.
        let same = [
            &SLOTTED[..8],
            &[2, 0, 1, 0, 0, 0, 0, 0],
            &SLOTTED[16..24],
            &[49, 0, 0, 0, 0, 0, 0, 0],
            &[0x11, 37, 0, 43, 0, 1, 0, 1, 0, 1, 9, 1, 0, 1, 0, 2, 9],
        ]
        .concat();
        let e = parse_forged(&same, |_| ()).unwrap_err();
        assert!(e.to_string().contains("columns"), "{e}");
        // A prefix that could be longer, and one that cuts a lone key.
        let short_prefix = [
            &UNIFORM[..10],
            &[1, 0, 3, 0, 1, 0],
            &UNIFORM[16..24],
            &[41, 0, 0, 0, 0, 0, 0, 0],
            &[0x11, 0x80, 1, 2, 0x80, 3, 4, 8, 9],
        ]
        .concat();
        let e = parse_forged(&short_prefix, |_| ()).unwrap_err();
        assert!(e.to_string().contains("prefix"), "{e}");
        let lone = [
            &UNIFORM[..8],
            &[1, 0, 1, 0, 1, 0, 1, 0],
            &UNIFORM[16..24],
            &[35, 0, 0, 0, 0, 0, 0, 0],
            &[0x11, 0x80, 8],
        ]
        .concat();
        let e = parse_forged(&lone, |_| ()).unwrap_err();
        assert!(e.to_string().contains("prefix"), "{e}");
    }

    #[test]
    fn a_branch_holds_references_of_24_bytes_that_lie_in_the_data_region() {
        let reference = NodeRef {
            offset: 0x4000,
            len: 100,
            crc: 5,
            count: 9,
        };
        let mut w = crate::bytes::Writer::default();
        reference.encode(&mut w);
        let value = w.into_vec();
        let bytes = pack(3, &[(b"", &value), (b"\x08", &value)]);
        let branch = Node::parse(bytes.clone().into(), 0x3000).unwrap();
        assert_eq!(branch.child(1).unwrap(), reference);
        assert_eq!((branch.level(), branch.is_leaf()), (3, false));
        let own = NodeRef {
            offset: 0x3000,
            len: u32::try_from(bytes.len()).unwrap(),
            crc: branch.crc(),
            count: 0,
        };
        branch.check_use(&own, 3, 1, 0x4000 + 100).unwrap();
        for wrong in [
            branch.check_use(&own, 2, 1, 1 << 40),
            branch.check_use(&own, 3, 0, 1 << 40),
            branch.check_use(&own, 3, 1, 0x4000 + 99),
            branch.check_use(
                &NodeRef {
                    len: own.len + 1,
                    ..own
                },
                3,
                1,
                1 << 40,
            ),
            branch.check_use(
                &NodeRef {
                    crc: !own.crc,
                    ..own
                },
                3,
                1,
                1 << 40,
            ),
        ] {
            assert!(wrong.unwrap_err().is_corruption());
        }
        assert!(
            Node::parse(pack(1, &[(b"", &value[..23])]).into(), 0)
                .unwrap_err()
                .is_corruption()
        );
        let mut outside = value.clone();
        outside[1] = 0x20;
        assert!(
            Node::parse(pack(1, &[(b"", &outside)]).into(), 0)
                .unwrap_err()
                .is_corruption()
        );
        assert!(
            Node::parse(pack(13, &[(b"", &value)]).into(), 0)
                .unwrap_err()
                .is_corruption()
        );
    }

    #[test]
    fn a_leaf_refuses_extents_out_of_range_but_keeps_records_of_later_versions() {
        let k = key::chunk(ObjectId(1), &[0], &[0]);
        let extent = Extent {
            offset: 0x3000,
            len: 7,
            crc: 1,
        };
        let mut value = ChunkRecord::Stored { extent, mask: 0 }.encode();
        let ok = node(&[(&k, &value)]);
        let own = NodeRef {
            offset: 0x3000,
            len: u32::try_from(ok.byte_len()).unwrap(),
            crc: ok.crc(),
            count: 1,
        };
        ok.check_use(&own, 0, 1, 0x3007).unwrap();
        assert!(
            ok.check_use(&own, 0, 1, 0x3006)
                .unwrap_err()
                .is_corruption()
        );
        value[16] = 9;
        node(&[(&k, &value)]);
        value[16] = 0;
        value[0] = 1;
        assert!(
            Node::parse(pack(0, &[(&k, &value)]).into(), 0)
                .unwrap_err()
                .is_corruption()
        );
        let (long, wide) = (vec![0x11; KEY_LEN_MAX + 1], vec![0; VALUE_LEN_MAX + 1]);
        for (k, v) in [(&[][..], &b"v"[..]), (&long, b"v"), (b"\x11", &wide)] {
            assert!(
                Node::parse(pack(0, &[(k, v)]).into(), 0)
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }

    #[test]
    fn a_run_larger_than_a_node_is_refused_before_it_is_written() {
        let mut run = Entries::default();
        for i in 0..40_u8 {
            run.push(&[0x11], &[i], &[0; VALUE_LEN_MAX]);
        }
        assert!(encode(&run, 0..40, 0, 1).is_err());
        assert!(encode(&run, 3..3, 0, 1).is_err());
        encode(&run, 0..31, 0, 1).unwrap();
    }
}
