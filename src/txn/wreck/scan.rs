//! What a file holds that looks like part of an index, wherever it lies.
//!
//! Holds [`Scan`]: commit records and leaves found by their first bytes, each with a right checksum. Must not choose among
//! them.

use crate::bytes::Reader;
use crate::error::Error;
use crate::format::commit::{CommitRecord, FIXED_LEN};
use crate::format::extent::Extent;
use crate::format::node::{HEADER_LEN, Node};
use crate::format::{ALIGN, BLOCK, DATA_START, Generation};
use crate::limits::NODE_LEN_MAX;

use super::Wreck;

/// Bytes read at once.
const WINDOW: usize = 1 << 20;
/// How many times the file's length is read at most for what only looks like a node: bytes made to waste time end the
/// search instead.
const PATIENCE: u64 = 16;
const NODE: [u8; 4] = *b"ORTN";
const RECORD: [u8; 4] = *b"ORTC";

/// A leaf whose checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) birth: Generation,
}

/// What was found, by place.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) records: Vec<(Extent, CommitRecord)>,
    pub(super) leaves: Vec<Leaf>,
}

impl Scan {
    /// The generation of the youngest leaf.
    pub(super) fn newest_birth(&self) -> Generation {
        self.leaves.iter().map(|l| l.birth).max().unwrap_or(0)
    }
}

impl Wreck {
    /// Looks at every place where a structure can begin.
    pub(super) fn scan(&self, faults: &mut Vec<Error>) -> Scan {
        let mut scan = Scan::default();
        let mut wasted = 0;
        let mut window = vec![0; WINDOW];
        let (mut at, end) = (self.data().start, self.data().end);
        while at < end {
            let left = usize::try_from(end.saturating_sub(at)).unwrap_or(WINDOW);
            let part = window.get_mut(..left.min(WINDOW)).unwrap_or_default();
            match self.storage.read_exact_at(at, part) {
                Ok(()) => self.look_through(at, part, &mut wasted, &mut scan),
                Err(e) => faults.push(Error::io("cannot read a part of the file", e).at(at)),
            }
            at = at.saturating_add(WINDOW as u64);
        }
        if wasted > self.patience() {
            let error = Error::limit("search for nodes")
                .expected("few bytes that look like nodes and are none")
                .found(format_args!("{wasted} bytes of such"));
            faults.push(error);
        }
        scan
    }

    fn patience(&self) -> u64 {
        self.file_len()
            .saturating_mul(PATIENCE)
            .saturating_add(64 << 20)
    }

    fn look_through(&self, at: u64, part: &[u8], wasted: &mut u64, scan: &mut Scan) {
        for (i, head) in part.chunks_exact(8).enumerate() {
            let offset = at.saturating_add((i as u64).saturating_mul(ALIGN));
            if head.starts_with(&RECORD) && record_place(offset) {
                let rest = head.get(4..).unwrap_or(&[]);
                let len = Reader::new("commit record", offset, rest).u32();
                scan.records
                    .extend(len.ok().and_then(|len| self.record(offset, len)));
            } else if head.starts_with(&NODE) && *wasted <= self.patience() {
                match self.leaf(offset) {
                    Found::Leaf(leaf) => scan.leaves.push(leaf),
                    Found::Other => {}
                    Found::Nothing(read) => *wasted = wasted.saturating_add(read),
                }
            }
        }
    }

    fn leaf(&self, offset: u64) -> Found {
        let Ok(head) = self.node_bytes(offset, HEADER_LEN) else {
            return Found::Nothing(0);
        };
        let tail = head.get(24..).unwrap_or(&[]);
        let Ok(len) = Reader::new("index node", offset, tail).u32() else {
            return Found::Nothing(0);
        };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let fits = offset.saturating_add(len as u64) <= self.file_len();
        if !fits || !(HEADER_LEN..=NODE_LEN_MAX).contains(&len) {
            return Found::Nothing(HEADER_LEN as u64);
        }
        let node = self
            .node_bytes(offset, len)
            .and_then(|bytes| Node::parse(bytes, offset));
        match node {
            Ok(node) if node.is_leaf() => Found::Leaf(Leaf {
                offset,
                len,
                birth: node.birth(),
            }),
            Ok(_) => Found::Other,
            Err(_) => Found::Nothing(len as u64),
        }
    }
}

/// Records begin blocks, but for the second one of a file that was made whole.
fn record_place(offset: u64) -> bool {
    let second = DATA_START.saturating_add((FIXED_LEN as u64).next_multiple_of(ALIGN));
    offset.is_multiple_of(BLOCK) || offset == second
}

enum Found {
    Leaf(Leaf),
    /// A branch: what it leads to is found by itself.
    Other,
    /// No node, after that many bytes were read.
    Nothing(u64),
}
