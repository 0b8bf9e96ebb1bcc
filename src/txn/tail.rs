//! Where a transaction's bytes go before the commit.
//!
//! Holds [`Tail`]: the runs of free space that the transaction fills from the head, one for payloads and one for nodes; the
//! buffer that gathers small payloads; and the buffers on their way to the medium. Must not do I/O: callers write what it
//! hands out, outside its lock.
//!
//! Invariants: every placed byte is in `open`, in `sealed`, or handed to the medium by the caller that reserved it; what
//! is placed lies in runs that this transaction took, each of which began at a block without a committed byte.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::ALIGN;
use crate::format::extent::Extent;

use super::space::{Fit, Space};

/// Small payloads are gathered up to this many bytes before one write.
const GATHER: usize = 1 << 20;
/// Payloads of at least this many bytes are written alone, outside the lock.
pub(crate) const LARGE: usize = 256 << 10;
/// Nodes of one commit are looked a run for that holds as much as those of the last one, up to this.
const NODES_TOGETHER: u64 = 256 << 10;

/// Bytes with a place in the file that the medium does not have yet.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) offset: u64,
    pub(crate) bytes: Arc<Vec<u8>>,
    /// A thread is writing it.
    claimed: bool,
}

/// The rest of a run, filled from its head.
#[derive(Debug, Clone, Copy, Default)]
struct Bump {
    next: u64,
    end: u64,
}

impl Bump {
    fn place(&mut self, len: u64, align: u64) -> Option<u64> {
        let offset = self.next.checked_next_multiple_of(align)?;
        let end = offset.checked_add(len).filter(|end| *end <= self.end)?;
        self.next = end;
        Some(offset)
    }
}

/// The space of one writer, and what its open transaction has taken of it.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(super) space: Space,
    /// What the horizon has passed is in the free runs, for the transaction that is open.
    pub(super) begun: bool,
    payloads: Bump,
    nodes: Bump,
    /// Runs taken by this transaction, start to end.
    taken: BTreeMap<u64, u64>,
    /// Those of `taken` that hold nodes.
    taken_for_nodes: Vec<u64>,
    /// Exclusive end of everything placed by this transaction.
    high: u64,
    /// Bytes of nodes that the last commit placed, and this one so far.
    node_bytes: (u64, u64),
    /// Gathered bytes; they end at the payloads' next place.
    open: Vec<u8>,
    /// Full buffers the medium does not have yet, in no order.
    sealed: Vec<Sealed>,
}

impl Tail {
    /// A tail that fills `space`.
    pub(crate) fn new(space: Space) -> Self {
        Self {
            space,
            begun: false,
            payloads: Bump::default(),
            nodes: Bump::default(),
            taken: BTreeMap::new(),
            taken_for_nodes: Vec::new(),
            high: 0,
            node_bytes: (0, 0),
            open: Vec::new(),
            sealed: Vec::new(),
        }
    }

    /// Forgets everything placed.
    pub(crate) fn rewind(&mut self) {
        self.finish(&[]);
    }

    /// Ends the transaction: `live` is what the new state reaches of what was placed; all else is free again.
    pub(crate) fn finish(&mut self, live: &[Extent]) {
        for extent in live {
            self.space.add(extent);
        }
        self.give_back_rest(self.payloads);
        self.give_back_rest(self.nodes);
        // From the end on down, so that the end of the file falls back as far as it can.
        while let Some((start, end)) = self.taken.pop_last() {
            // Without a map nothing but the end is known to be free.
            let used = if self.space.is_mapped() {
                None
            } else {
                let inside = live.iter().filter(|e| (start..end).contains(&e.offset));
                inside.map(|e| e.offset.saturating_add(e.len)).max()
            };
            self.space.give_back(used.unwrap_or(start)..end);
        }
        self.begun = false;
        self.payloads = Bump::default();
        self.nodes = Bump::default();
        self.taken_for_nodes.clear();
        self.high = 0;
        self.node_bytes = (self.node_bytes.1, 0);
        self.open.clear();
        self.sealed.clear();
    }

    /// The exclusive end of everything placed.
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    /// Whether the byte at `offset` belongs to this transaction.
    pub(crate) fn owns(&self, offset: u64) -> bool {
        let run = self.taken.range(..=offset).next_back();
        run.is_some_and(|(_, end)| offset < *end)
    }

    /// Takes a place for `bytes` and keeps a copy to be written later.
    pub(crate) fn gather(&mut self, bytes: &[u8], align: u64) -> Result<u64> {
        let before = self.payloads.next;
        let offset = self.place(bytes.len(), align)?;
        if !self.open.is_empty() {
            let gap = usize::try_from(offset.saturating_sub(before)).unwrap_or(0);
            let zeros = self.open.len().saturating_add(gap);
            self.open.resize(zeros, 0);
        }
        self.open.extend_from_slice(bytes);
        if self.open.len() >= GATHER {
            self.seal();
        }
        Ok(offset)
    }

    /// Takes a place for `len` bytes that the caller writes itself.
    pub(crate) fn reserve(&mut self, len: usize, align: u64) -> Result<u64> {
        self.seal();
        self.place(len, align)
    }

    /// Takes a place for a node or the commit record; the first one begins a block.
    pub(crate) fn place_node(&mut self, len: usize) -> Result<u64> {
        let len = len as u64;
        let offset = match self.nodes.place(len, ALIGN) {
            Some(offset) => offset,
            None => self.place_node_in_new_run(len)?,
        };
        self.high = self.high.max(offset.saturating_add(len));
        self.node_bytes.1 = self.node_bytes.1.saturating_add(len);
        Ok(offset)
    }

    fn place_node_in_new_run(&mut self, len: u64) -> Result<u64> {
        // The rest of the payloads' run goes back, so that nodes can follow there.
        self.give_back_rest(self.payloads);
        self.payloads.end = self.payloads.next;
        self.give_back_rest(self.nodes);
        let expected = self.node_bytes.0.saturating_sub(self.node_bytes.1);
        let wanted = len.max(expected.min(NODES_TOGETHER));
        let run = self.space.take(wanted, Fit::Closest)?;
        self.nodes = Bump {
            next: run.start,
            end: run.end,
        };
        self.taken_for_nodes.push(run.start);
        self.taken.insert(run.start, run.end);
        Ok(self.nodes.place(len, ALIGN).unwrap_or(run.start))
    }

    /// Forgets the places of nodes: the commit did not come about, the transaction goes on.
    pub(crate) fn forget_nodes(&mut self) {
        self.nodes = Bump::default();
        self.node_bytes.1 = 0;
        self.taken_for_nodes.sort_unstable();
        while let Some(start) = self.taken_for_nodes.pop() {
            if let Some(end) = self.taken.remove(&start) {
                self.space.give_back(start..end);
            }
        }
    }

    /// Closes the open buffer, so that it can be written.
    pub(crate) fn seal(&mut self) {
        if !self.open.is_empty() {
            let len = self.open.len() as u64;
            let next = Vec::with_capacity(if self.open.len() >= GATHER {
                GATHER + LARGE
            } else {
                0
            });
            let bytes = std::mem::replace(&mut self.open, next);
            self.sealed.push(Sealed {
                offset: self.payloads.next.saturating_sub(len),
                bytes: Arc::new(bytes),
                claimed: false,
            });
        }
    }

    /// Enough has been gathered to be worth a write.
    pub(crate) fn is_worth_writing(&self) -> bool {
        let waiting = self.sealed.iter().filter(|s| !s.claimed);
        waiting.map(|s| s.bytes.len()).sum::<usize>() >= GATHER
    }

    /// A full buffer that nobody is writing; the caller is, from now on, until it says what came of it.
    pub(crate) fn claim(&mut self) -> Option<Sealed> {
        let sealed = self.sealed.iter_mut().find(|s| !s.claimed)?;
        sealed.claimed = true;
        Some(sealed.clone())
    }

    /// Leaves a claimed buffer to the next who claims one: the medium refused it.
    pub(crate) fn unclaim(&mut self, offset: u64) {
        for sealed in &mut self.sealed {
            sealed.claimed &= sealed.offset != offset;
        }
    }

    /// Forgets a buffer that the medium now has.
    pub(crate) fn written(&mut self, offset: u64) {
        self.sealed.retain(|s| s.offset != offset);
    }

    /// The bytes of `range`, as far as they are here and not on the medium.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let open = self.payloads.next.saturating_sub(self.open.len() as u64);
        within(open, &self.open, range).or_else(|| {
            self.sealed
                .iter()
                .find_map(|s| within(s.offset, &s.bytes, range))
        })
    }

    fn place(&mut self, len: usize, align: u64) -> Result<u64> {
        let len = len as u64;
        let offset = match self.payloads.place(len, align) {
            Some(offset) => offset,
            None => self.place_in_new_run(len, align)?,
        };
        self.high = self.high.max(offset.saturating_add(len));
        Ok(offset)
    }

    fn place_in_new_run(&mut self, len: u64, align: u64) -> Result<u64> {
        if let Some(offset) = self.place_in_longer_run(len, align)? {
            return Ok(offset);
        }
        self.seal();
        self.give_back_rest(self.payloads);
        self.payloads.end = self.payloads.next;
        // A run begins at a block; only a larger alignment than that may need room before the payload.
        let room = align.saturating_sub(crate::format::BLOCK);
        let run = self.space.take(len.saturating_add(room), Fit::First)?;
        self.payloads = Bump {
            next: run.start,
            end: run.end,
        };
        self.taken.insert(run.start, run.end);
        Ok(self.payloads.place(len, align).unwrap_or(run.start))
    }

    /// Lengthens the payloads' run where it ends at the end of the file and no free run would do.
    fn place_in_longer_run(&mut self, len: u64, align: u64) -> Result<Option<u64>> {
        let end = self.payloads.end;
        let Some((_, taken_end)) = self.taken.range_mut(..end).next_back() else {
            return Ok(None);
        };
        if *taken_end != end || end != self.space.end() || self.space.longest_run() >= len {
            return Ok(None);
        }
        let run = self.space.take(len.saturating_add(align), Fit::First)?;
        *taken_end = run.end;
        self.payloads.end = run.end;
        Ok(self.payloads.place(len, align))
    }

    /// Returns the blocks of a run that nothing was placed in.
    fn give_back_rest(&mut self, rest: Bump) {
        let from = self.space.round_up(rest.next);
        if from >= rest.end {
            return;
        }
        let Some((&start, _)) = self.taken.range(..rest.end).next_back() else {
            return;
        };
        if from > start {
            self.taken.insert(start, from);
        } else {
            self.taken.remove(&start);
        }
        self.space.return_unused(from..rest.end);
    }
}

/// A copy of `range` out of `bytes`, which lie at `offset`.
fn within(offset: u64, bytes: &[u8], range: &Range<u64>) -> Option<Vec<u8>> {
    let lo = usize::try_from(range.start.checked_sub(offset)?).ok()?;
    let hi = usize::try_from(range.end.checked_sub(offset)?).ok()?;
    bytes.get(lo..hi).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail() -> Tail {
        Tail::new(Space::new(0x4000, u64::MAX))
    }

    #[test]
    fn small_payloads_share_a_buffer_and_gaps_are_zeros() {
        let mut t = tail();
        assert_eq!(t.gather(&[1, 2, 3], 8).unwrap(), 0x4000);
        assert_eq!(t.gather(&[4], 64).unwrap(), 0x4040);
        t.seal();
        let sealed = t.claim().unwrap();
        assert_eq!(sealed.offset, 0x4000);
        assert_eq!(&sealed.bytes[..4], &[1, 2, 3, 0]);
        assert_eq!(sealed.bytes[0x40], 4);
        assert!(t.claim().is_none(), "one thread writes it");
        t.unclaim(0x4000);
        assert!(t.claim().is_some());
        assert_eq!(t.bytes(&(0x4040..0x4041)), Some(vec![4]));
        t.written(0x4000);
        assert_eq!(t.bytes(&(0x4040..0x4041)), None);
    }

    #[test]
    fn a_large_payload_closes_the_buffer_before_it() {
        let mut t = tail();
        t.gather(&[1; 10], 8).unwrap();
        let at = t.reserve(LARGE, 8).unwrap();
        let sealed = t.claim().unwrap();
        assert_eq!((sealed.offset, sealed.bytes.len()), (0x4000, 10));
        assert_eq!(t.high(), at + LARGE as u64);
        assert!(t.owns(0x4000) && t.owns(at) && !t.owns(0x3FFF));
    }

    #[test]
    fn nodes_begin_a_block_and_go_back_when_the_commit_does_not_come_about() {
        let mut t = tail();
        t.gather(&[1; 10], 8).unwrap();
        assert_eq!(t.place_node(100).unwrap(), 0x5000);
        assert_eq!(t.place_node(100).unwrap(), 0x5068);
        t.forget_nodes();
        assert_eq!(t.place_node(5000).unwrap(), 0x5000);
        assert_eq!(t.gather(&[2; 10], 8).unwrap(), 0x7000);
        let live = Extent {
            offset: 0x5000,
            len: 5000,
            crc: 0,
        };
        t.finish(&[live]);
        assert_eq!(t.gather(&[3; 10], 8).unwrap(), 0x7000);
        t.rewind();
        assert_eq!(t.gather(&[4; 10], 8).unwrap(), 0x7000);
    }
}
