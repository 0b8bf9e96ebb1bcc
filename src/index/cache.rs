//! Verified nodes in memory.
//!
//! Holds [`NodeCache`], which forgets the least used nodes beyond its byte cap, and [`Loader`], which reads through
//! it. Must not trust a hit more than a read: what depends on the place of use is checked by the user each time.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Load, ReadNode};
use crate::error::{Error, Result};
use crate::format::extent::{Extent, NodeRef};
use crate::format::node::Node;

/// Locks, so that readers on different nodes do not wait for one another.
const SHARDS: usize = 16;
/// What the cache itself takes for a node, roughly.
const OVERHEAD: usize = 96;

/// Offset, length and checksum: equal ones are equal bytes, up to the chance of a checksum collision in reused space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id {
    offset: u64,
    len: u32,
    crc: u32,
}

impl std::hash::Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.offset ^ (u64::from(self.crc) << 32));
    }
}

/// One multiplication: offsets and checksums are spread well enough, and a hostile file only slows its own reader.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }

    fn write_u64(&mut self, v: u64) {
        let mixed = (self.0 ^ v).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[derive(Debug)]
struct Slot {
    node: Arc<Node>,
    /// Used since the clock's hand last passed.
    used: bool,
}

#[derive(Debug, Default)]
struct Shard {
    slots: HashMap<Id, Slot, BuildHasherDefault<Spread>>,
    /// The clock: nodes in the order in which they are considered for eviction.
    order: VecDeque<Id>,
    bytes: usize,
}

/// Verified nodes by reference, shared by all snapshots of a container.
#[derive(Debug)]
pub(crate) struct NodeCache {
    shards: [Mutex<Shard>; SHARDS],
    shard_bytes_max: usize,
}

impl NodeCache {
    /// A cache of about `bytes_max` bytes. Zero caches nothing.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            shard_bytes_max: bytes_max.div_ceil(SHARDS),
        }
    }

    /// Drops a node whose bytes may be overwritten from now on; an extent of anything else is not there.
    pub(crate) fn forget(&self, freed: &Extent) {
        let Ok(len) = u32::try_from(freed.len) else {
            return;
        };
        let id = Id {
            offset: freed.offset,
            len,
            crc: freed.crc,
        };
        if let Some(shard) = self.shard(id) {
            let mut shard = shard.lock();
            if let Some(slot) = shard.slots.remove(&id) {
                shard.bytes = shard.bytes.saturating_sub(cost(&slot.node));
                shard.order.retain(|other| *other != id);
            }
        }
    }

    /// Bytes held, for statistics.
    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|s| s.lock().bytes).sum()
    }

    #[inline]
    fn get(&self, id: Id) -> Option<Arc<Node>> {
        let mut shard = self.shard(id)?.lock();
        let slot = shard.slots.get_mut(&id)?;
        slot.used = true;
        Some(Arc::clone(&slot.node))
    }

    fn put(&self, id: Id, node: &Arc<Node>) {
        if cost(node) > self.shard_bytes_max {
            return;
        }
        let Some(shard) = self.shard(id) else { return };
        let mut shard = shard.lock();
        let slot = Slot {
            node: Arc::clone(node),
            used: false,
        };
        if shard.slots.insert(id, slot).is_some() {
            // Two readers missed at once: the place in the clock and the cost are counted already.
            return;
        }
        shard.order.push_back(id);
        shard.bytes = shard.bytes.saturating_add(cost(node));
        while shard.bytes > self.shard_bytes_max && shard.evict_one() {}
    }

    fn shard(&self, id: Id) -> Option<&Mutex<Shard>> {
        // Nodes of one commit lie next to each other, in steps of a few KiB at multiples of 8.
        let spread = (id.offset >> 3) ^ u64::from(id.crc);
        let at = usize::try_from(spread.rem_euclid(SHARDS as u64)).unwrap_or(0);
        self.shards.get(at)
    }
}

impl Shard {
    /// Moves the clock's hand until one node is gone; false when there is none.
    fn evict_one(&mut self) -> bool {
        while let Some(id) = self.order.pop_front() {
            match self.slots.get_mut(&id) {
                Some(slot) if slot.used => {
                    slot.used = false;
                    self.order.push_back(id);
                }
                _ => {
                    if let Some(slot) = self.slots.remove(&id) {
                        self.bytes = self.bytes.saturating_sub(cost(&slot.node));
                        return true;
                    }
                }
            }
        }
        false
    }
}

impl Id {
    fn of(reference: &NodeRef) -> Self {
        Self {
            offset: reference.offset,
            len: reference.len,
            crc: reference.crc,
        }
    }
}

fn cost(node: &Node) -> usize {
    node.cost().saturating_add(OVERHEAD)
}

/// Loads nodes through a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loader<'a, R> {
    reader: R,
    cache: &'a NodeCache,
}

impl<'a, R: ReadNode> Loader<'a, R> {
    pub(crate) fn new(reader: R, cache: &'a NodeCache) -> Self {
        Self { reader, cache }
    }
}

impl<R: ReadNode> Load for Loader<'_, R> {
    #[inline]
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        let id = Id::of(reference);
        if let Some(node) = self.cache.get(id) {
            return Ok(node);
        }
        let len = usize::try_from(reference.len)
            .map_err(|_| Error::limit("index node").found(reference.len))?;
        let bytes = self.reader.read_node(reference.offset, len)?;
        let node = Arc::new(Node::parse(bytes, reference.offset)?);
        // A node that is not the one referred to (a lost or misdirected write) must not answer to this reference.
        if node.crc() == reference.crc {
            self.cache.put(id, &node);
        }
        Ok(node)
    }
}
