//! The chunks of one Zarr array: which are stored, and their bytes.
//!
//! Holds [`Stored`] and the two spellings of chunk keys. Must not decode.

use std::sync::Arc;

use super::store::{Store, join};
use crate::foreign::{Chunks, Payload, Refusal, Stop};

/// How a chunk coordinate becomes a key below its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    /// Version 3's `default`, whose keys begin with `c`.
    pub(super) lead: bool,
    pub(super) separator: char,
}

impl Keys {
    pub(super) fn key(self, coord: &[u64]) -> String {
        let mut key = String::new();
        if self.lead {
            key.push('c');
        } else if coord.is_empty() {
            key.push('0');
        }
        for index in coord {
            if !key.is_empty() {
                key.push(self.separator);
            }
            key.push_str(&index.to_string());
        }
        key
    }

    /// The coordinate that a key names; none where it is another file's.
    fn coord(self, key: &str, rank: usize) -> Option<Vec<u64>> {
        let rest = match (self.lead, rank) {
            (true, 0) => return (key == "c").then(Vec::new),
            (false, 0) => return (key == "0").then(Vec::new),
            (true, _) => key.strip_prefix('c')?.strip_prefix(self.separator)?,
            (false, _) => key,
        };
        let parts: Option<Vec<u64>> = rest.split(self.separator).map(index).collect();
        parts.filter(|coord| coord.len() == rank)
    }
}

/// A number as a key holds it: digits, without zeros in front.
fn index(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_coordinates_both_ways_and_other_files_none() {
        for (lead, separator, coord, key) in [
            (true, '/', vec![1, 0, 23], "c/1/0/23"),
            (true, '.', vec![1, 0], "c.1.0"),
            (true, '/', vec![], "c"),
            (false, '.', vec![1, 0], "1.0"),
            (false, '/', vec![7], "7"),
            (false, '.', vec![], "0"),
        ] {
            let keys = Keys { lead, separator };
            assert_eq!(keys.key(&coord), key);
            assert_eq!(keys.coord(key, coord.len()), Some(coord));
        }
        let keys = Keys {
            lead: false,
            separator: '.',
        };
        for other in [".zarray", "1", "1.2.3", "01.2", "1.+2", "1.", "a.b", ""] {
            assert_eq!(keys.coord(other, 2), None, "{other}");
        }
    }
}
