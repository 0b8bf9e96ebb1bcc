//! The chunks of one Zarr array: which are stored, and their bytes.
//!
//! Holds [`Stored`]. Must not decode.

use std::sync::Arc;

use orthant_zarr::keys::Keys;

use super::store::{Store, join};
use crate::foreign::{Chunks, Payload, Refusal, Stop};

/// The stored chunks of an array.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) store: Arc<dyn Store>,
    /// The array's key.
    pub(super) key: String,
    pub(super) keys: Keys,
    /// Chunks per axis.
    pub(super) counts: Vec<u64>,
    /// Most bytes that any encoder makes of a chunk.
    pub(super) len_max: u64,
}

impl Stored {
    /// Walks the keys below `at`, `depth` levels of them.
    fn walk(
        &self,
        at: &str,
        depth: usize,
        take: &mut dyn FnMut(&[u64]) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut folders = Vec::new();
        let below = join(&self.key, at);
        self.store
            .list(below.trim_end_matches('/'), &mut |name, more| {
                let key = join(at, name);
                if more {
                    folders.push(key);
                    return Ok(());
                }
                match self.keys.coord(&key, self.counts.len()) {
                    // What lies past the shape is left from before a resize.
                    Some(coord) if coord.iter().zip(&self.counts).all(|(i, n)| i < n) => {
                        take(&coord)
                    }
                    _ => Ok(()),
                }
            })?;
        if let Some(depth) = depth.checked_sub(1) {
            for folder in folders {
                self.walk(&folder, depth, take)?;
            }
        }
        Ok(())
    }
}

impl Chunks for Stored {
    fn for_each(&self, take: &mut dyn FnMut(&[u64]) -> Result<(), Stop>) -> Result<(), Stop> {
        self.walk("", self.counts.len().saturating_add(1), take)
    }

    fn read(&self, coord: &[u64]) -> Result<Option<Payload>, Refusal> {
        let key = join(&self.key, &self.keys.key(coord));
        let bytes = self.store.get(&key, self.len_max)?;
        Ok(bytes.map(|bytes| Payload::Encoded {
            bytes,
            skipped: 0,
            reframed: false,
        }))
    }
}
