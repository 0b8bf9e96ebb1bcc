//! Runs of entries, and their one encoding as a node. Spec: `format-spec/04-nodes.md`.
//!
//! Holds [`Entries`], [`Measure`] (the size a run would have) and [`encode`]. Must not decide where a run is cut:
//! `index` does.

use std::ops::Range;

use super::Generation;
use super::node::{CRC_AT, FLAG_UNIFORM, HEADER_LEN, KIND_BRANCH, KIND_LEAF, MAGIC, checksum};
use crate::bytes::Writer;
use crate::error::{Error, Result};
use crate::limits::NODE_LEN_MAX;

/// Bytes of a cell before its suffix.
pub(super) const CELL_HEADER_LEN: usize = 4;
/// Bytes that an entry of a slotted node takes besides its suffix and value: its position and its cell header.
const SLOT_LEN: usize = 2 + CELL_HEADER_LEN;

/// Entries in key order, in two flat buffers: no allocation per entry.
#[derive(Debug, Default, Clone)]
pub(crate) struct Entries {
    keys: Vec<u8>,
    values: Vec<u8>,
    /// Ends of key and value of each entry.
    ends: Vec<(usize, usize)>,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends an entry whose key is `prefix` followed by `suffix`.
    #[inline]
    pub(crate) fn push(&mut self, prefix: &[u8], suffix: &[u8], value: &[u8]) {
        self.keys.extend_from_slice(prefix);
        self.keys.extend_from_slice(suffix);
        self.values.extend_from_slice(value);
        self.ends.push((self.keys.len(), self.values.len()));
    }

    /// Key `i`; empty beyond the last.
    #[inline]
    pub(crate) fn key(&self, i: usize) -> &[u8] {
        let end = self.ends.get(i).map_or(0, |e| e.0);
        self.keys.get(self.start(i).0..end).unwrap_or(&[])
    }

    /// Value `i`; empty beyond the last.
    #[inline]
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        let end = self.ends.get(i).map_or(0, |e| e.1);
        self.values.get(self.start(i).1..end).unwrap_or(&[])
    }

    #[inline]
    fn start(&self, i: usize) -> (usize, usize) {
        i.checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or((0, 0))
    }

    /// Appends all of `other`, whose keys follow.
    pub(crate) fn append(&mut self, other: &Self) {
        for i in 0..other.len() {
            self.push(&[], other.key(i), other.value(i));
        }
    }
}

/// The encoded size of a run of entries, kept up to date as entries join it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measure {
    count: usize,
    prefix_len: usize,
    key_bytes: usize,
    value_bytes: usize,
    /// Lengths of the first key and value.
    first: (usize, usize),
    mixed: bool,
}

impl Measure {
    /// The measure with one more entry behind the others; `first` is the first key of the run.
    #[inline]
    #[must_use]
    pub(crate) fn with(self, first: &[u8], key: &[u8], value_len: usize) -> Self {
        if self.count == 0 {
            return Self {
                count: 1,
                prefix_len: key.len(),
                key_bytes: key.len(),
                value_bytes: value_len,
                first: (key.len(), value_len),
                mixed: false,
            };
        }
        // Keys ascend, so what the first and the newest share, all share.
        let within = first.get(..self.prefix_len).unwrap_or(first);
        Self {
            count: self.count.saturating_add(1),
            prefix_len: common_prefix_len(within, key),
            key_bytes: self.key_bytes.saturating_add(key.len()),
            value_bytes: self.value_bytes.saturating_add(value_len),
            first: self.first,
            mixed: self.mixed || self.first != (key.len(), value_len),
        }
    }

    /// Bytes of the node.
    #[inline]
    pub(crate) fn node_len(&self) -> usize {
        let repeated = self.prefix_len.saturating_mul(self.count.saturating_sub(1));
        let overhead = if self.mixed {
            self.count.saturating_mul(SLOT_LEN)
        } else {
            0
        };
        HEADER_LEN
            .saturating_add(self.key_bytes)
            .saturating_sub(repeated)
            .saturating_add(self.value_bytes)
            .saturating_add(overhead)
    }

    /// Bytes that an entry of these lengths takes in a node of the whole run.
    #[inline]
    pub(crate) fn weight(&self, key_len: usize, value_len: usize) -> usize {
        let slot = if self.mixed { SLOT_LEN } else { 0 };
        key_len
            .saturating_sub(self.prefix_len)
            .saturating_add(value_len)
            .saturating_add(slot)
    }

    /// Entries measured.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

/// How many first bytes two keys share.
#[inline]
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Encodes `run` of `entries` as one node; gives its bytes and its checksum.
///
/// # Errors
/// When the run is empty or exceeds what a node can hold: a bug of the caller, told before anything is written.
pub(crate) fn encode(
    entries: &Entries,
    run: Range<usize>,
    level: u8,
    birth: Generation,
) -> Result<(Vec<u8>, u32)> {
    let first = entries.key(run.start);
    let measure = run.clone().fold(Measure::default(), |m, i| {
        m.with(first, entries.key(i), entries.value(i).len())
    });
    let too_large = || {
        Error::limit("index node")
            .expected(format_args!("1..={NODE_LEN_MAX} bytes of entries"))
            .found(measure.node_len())
    };
    let len = measure.node_len();
    if measure.count == 0 || len > NODE_LEN_MAX {
        return Err(too_large());
    }
    let narrow = |v: usize| u16::try_from(v).map_err(|_| too_large());
    let prefix_len = measure.prefix_len;
    let mut w = Writer::with_capacity(len);
    w.slice(&MAGIC);
    w.u8(if level == 0 { KIND_LEAF } else { KIND_BRANCH });
    w.u8(level);
    w.u16(if measure.mixed { 0 } else { FLAG_UNIFORM });
    w.u16(narrow(measure.count)?);
    w.u16(narrow(prefix_len)?);
    let (key_len, value_len) = if measure.mixed {
        (prefix_len, 0)
    } else {
        measure.first
    };
    w.u16(narrow(key_len.saturating_sub(prefix_len))?);
    w.u16(narrow(value_len)?);
    w.u64(birth);
    w.u32(u32::try_from(len).map_err(|_| too_large())?);
    w.u32(0);
    w.slice(first.get(..prefix_len).unwrap_or(first));
    let suffix = |i| entries.key(i).get(prefix_len..).unwrap_or(&[]);
    if measure.mixed {
        let mut cell_at = w.len().saturating_add(measure.count.saturating_mul(2));
        for i in run.clone() {
            w.u16(narrow(cell_at)?);
            cell_at = cell_at
                .saturating_add(CELL_HEADER_LEN)
                .saturating_add(suffix(i).len())
                .saturating_add(entries.value(i).len());
        }
        for i in run {
            w.u16(narrow(suffix(i).len())?);
            w.u16(narrow(entries.value(i).len())?);
            w.slice(suffix(i));
            w.slice(entries.value(i));
        }
    } else {
        run.clone().for_each(|i| w.slice(suffix(i)));
        run.for_each(|i| w.slice(entries.value(i)));
    }
    Ok(seal(w.into_vec()))
}

/// Fills in the checksum of an encoded node.
fn seal(mut node: Vec<u8>) -> (Vec<u8>, u32) {
    let crc = checksum(&node);
    let mut field = Writer::with_capacity(4);
    field.u32(crc);
    if let Some(at) = node.get_mut(CRC_AT..HEADER_LEN) {
        at.copy_from_slice(field.as_slice());
    }
    (node, crc)
}
