//! The names of chunks below their array.
//!
//! Holds [`Keys`]: coordinates to keys and back. Must not know which chunks there are.

use crate::Version;

/// How a chunk coordinate becomes a key below its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Version 3's `default`, whose keys begin with `c`.
    pub lead: bool,
    /// Between the numbers.
    pub separator: char,
}

impl Keys {
    /// Those that a document of this version names unless told otherwise.
    pub fn of(version: Version) -> Self {
        match version {
            Version::V3 => Self {
                lead: true,
                separator: '/',
            },
            Version::V2 => Self {
                lead: false,
                separator: '.',
            },
        }
    }

    /// A chunk's key below its array.
    pub fn key(self, coord: &[u64]) -> String {
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
    pub fn coord(self, key: &str, rank: usize) -> Option<Vec<u64>> {
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
