//! One walk over an index: its sums, its extents, and what is wrong with its nodes.
//!
//! Holds [`Tally`]. Must not know what a finding means for the container.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::format::extent::{Extent, NodeRef};
use crate::format::key::{Key, tag};
use crate::format::record::{self, Owner};
use crate::index::{Visit, Visited};

use super::Statistics;

/// The sums and extents of one walk over the index.
pub(super) struct Tally {
    pub(super) statistics: Statistics,
    pub(super) end: u64,
    /// Whether a fault ends the walk.
    pub(super) strict: bool,
    pub(super) extents: Vec<(Extent, Key)>,
    /// Nodes that another root has shown.
    pub(super) seen: HashSet<u64>,
    /// Place and length of each node.
    pub(super) nodes: Vec<(u64, u64)>,
    /// Chunk entries without an extent.
    pub(super) constants: Vec<Key>,
    pub(super) faults: Vec<(u8, Error)>,
}

impl Tally {
    pub(super) fn new(end: u64, strict: bool) -> Self {
        Self {
            statistics: Statistics::default(),
            end,
            strict,
            extents: Vec::new(),
            seen: HashSet::new(),
            nodes: Vec::new(),
            constants: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub(super) fn chunk_keys(&self) -> Vec<Key> {
        let chunks = self.extents.iter().map(|(_, key)| key);
        let all = chunks.chain(&self.constants);
        all.filter(|k| k.first() == Some(&tag::CHUNK))
            .cloned()
            .collect()
    }
}

impl Visit for Tally {
    fn enter(&mut self, reference: &NodeRef, _level: u8) -> bool {
        !self.seen.contains(&reference.offset)
    }

    fn node(&mut self, visited: Visited<'_>) -> Result<()> {
        let s = &mut self.statistics;
        let len = u64::from(visited.reference.len);
        s.nodes = s.nodes.saturating_add(1);
        s.node_bytes = s.node_bytes.saturating_add(len);
        s.live_index_bytes = s.live_index_bytes.saturating_add(len);
        if !self.strict {
            self.nodes.push((visited.reference.offset, len));
        }
        let below = visited.entries_below()?;
        if below != visited.reference.count {
            let error = Error::corrupt("entry count of an index node")
                .at(visited.reference.offset)
                .expected(visited.reference.count)
                .found(below);
            self.fault(8, error)?;
        }
        if !visited.node.is_leaf() {
            return Ok(());
        }
        self.statistics.entries = self.statistics.entries.saturating_add(below);
        for i in 0..visited.node.count() {
            let (key, value) = (visited.node.key(i), visited.node.value(i));
            let at = visited.node.value_at(i);
            match record::extent_of(&key, value, at, self.end) {
                Ok(Some((extent, owner))) => {
                    let s = &mut self.statistics;
                    let sum = match owner {
                        Owner::Payload => &mut s.live_payload_bytes,
                        Owner::Blob => &mut s.live_index_bytes,
                    };
                    *sum = sum.saturating_add(extent.len);
                    if !self.strict {
                        self.extents.push((extent, key));
                    }
                }
                Ok(None) if !self.strict => self.constants.push(key),
                Ok(None) => {}
                Err(e) => self.fault(14, e)?,
            }
        }
        Ok(())
    }

    fn damaged(&mut self, reference: &NodeRef, _level: u8, error: Error) -> Result<()> {
        self.fault(9, error.at_or(reference.offset))
    }
}

impl Tally {
    fn fault(&mut self, invariant: u8, error: Error) -> Result<()> {
        if self.strict {
            return Err(error);
        }
        self.faults.push((invariant, error));
        Ok(())
    }
}
