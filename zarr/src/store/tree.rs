//! Keys of a store, found in a container.
//!
//! Holds [`Tree`]: which object, document or chunk a key names, its bytes, and which keys there are. Must not write.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use orthant::{ChunkState, DataType, DynArray, EncodedChunk, Group, ObjectKind, Region};
use zarrs_storage::StorageError;

use super::storage;
use crate::Version;
use crate::cover::{Cover, Placed};
use crate::group::chunk_of;
use crate::keys::Keys;
use crate::write::{self, Places};

/// The last part of the key of a document.
pub(super) const DOCUMENT: &str = "zarr.json";
/// The attribute of an array of bytes that stands for a key of its own.
pub(super) const KEPT: &str = "orthant_zarr_key";
/// The attribute of a group that has no document.
pub(super) const IMPLICIT: &str = "orthant_zarr_implicit";

/// The objects of a container by their keys.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Group,
    /// Arrays that were looked up, where nothing changes.
    seen: Option<Mutex<HashMap<String, Arc<Placed>>>>,
}

/// What a key names.
#[derive(Debug)]
pub(super) enum Found {
    Bytes(Vec<u8>),
    Chunk(EncodedChunk),
}

impl Found {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Chunk(chunk) => chunk.len(),
        }
    }

    /// The bytes of a range that lies within.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StorageError> {
        match self {
            Self::Chunk(chunk) => chunk.read(range).map_err(|e| storage(&e)),
            Self::Bytes(bytes) => {
                let start = usize::try_from(range.start).unwrap_or(usize::MAX);
                let end = usize::try_from(range.end).unwrap_or(usize::MAX);
                Ok(bytes.get(start..end).unwrap_or_default().to_vec())
            }
        }
    }
}

/// An object on the way of a key, and the rest of the key behind it.
pub(super) enum Way {
    /// All of the key leads to a group.
    Group(Group),
    Array {
        placed: Arc<Placed>,
        rest: String,
    },
    Nothing,
}

impl Tree {
    pub(super) fn new(root: Group, unchanging: bool) -> Self {
        Self {
            root,
            seen: unchanging.then(Mutex::default),
        }
    }

    /// The object that a path leads to, or the array that it leads through.
    pub(super) fn way(&self, path: &str) -> Result<Way, StorageError> {
        if path.is_empty() {
            return Ok(Way::Group(self.root.clone()));
        }
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let (above, rest) = path.split_at_checked(end).unwrap_or((path, ""));
            // A name that no object can have names nothing.
            match self.root.kind(above).unwrap_or(None) {
                None => return Ok(Way::Nothing),
                Some(ObjectKind::Group) => {}
                Some(ObjectKind::Array) => {
                    return Ok(Way::Array {
                        placed: self.placed(above)?,
                        rest: rest.trim_start_matches('/').to_owned(),
                    });
                }
            }
        }
        let group = self.root.group(path).map_err(|e| storage(&e))?;
        Ok(Way::Group(group))
    }

    fn placed(&self, path: &str) -> Result<Arc<Placed>, StorageError> {
        let lock = self.seen.as_ref();
        let seen = || lock.map(|m| m.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(placed) = seen().and_then(|map| map.get(path).cloned()) {
            return Ok(placed);
        }
        let placed = self.root.dyn_array(path).and_then(place).map(Arc::new);
        let placed = placed.map_err(|e| storage(&e))?;
        if let Some(mut map) = seen() {
            map.insert(path.to_owned(), Arc::clone(&placed));
        }
        Ok(placed)
    }

    /// What a key names, if anything.
    pub(super) fn find(&self, key: &str) -> Result<Option<Found>, StorageError> {
        if let Some(path) = document_of(key) {
            return Ok(self.document(path)?.map(Found::Bytes));
        }
        let Way::Array { placed, rest } = self.way(key)? else {
            return Ok(None);
        };
        if is_kept(&placed.array)? {
            return match rest.as_str() {
                "" => kept(&placed.array).map(|bytes| Some(Found::Bytes(bytes))),
                _ => Ok(None),
            };
        }
        let Some(coord) = chunk_at(&placed, &rest)? else {
            return Ok(None);
        };
        let chunk = placed.array.encoded(&coord).map_err(|e| storage(&e))?;
        Ok(chunk.map(Found::Chunk))
    }

    /// The document of the object at a path.
    fn document(&self, path: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let documents = match self.way(path)? {
            Way::Group(group) if !is_implicit(&group)? => {
                Ok(write::group(Version::V3, &group.attributes()).map_err(|e| storage(&e))?)
            }
            Way::Array { placed, rest } if rest.is_empty() && !is_kept(&placed.array)? => {
                write::array(Version::V3, &placed, false, false, Places::Together)
                    .map_err(|e| storage(&e))?
            }
            _ => return Ok(None),
        };
        let documents = documents.map_err(StorageError::Unsupported)?;
        let json = documents.into_iter().next().map(|(_, json)| json);
        Ok(json.map(|json| json.to_string().into_bytes()))
    }

    /// All keys that begin with a prefix, in order.
    pub(super) fn keys(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let mut keys = Vec::new();
        match self.way(prefix.trim_end_matches('/'))? {
            Way::Nothing => {}
            Way::Group(group) => group_keys(&group, prefix, &mut keys)?,
            Way::Array { placed, .. } => {
                let path = placed.array.path().trim_start_matches('/').to_owned();
                array_keys(&placed, &path, &mut keys)?;
                keys.retain(|key| key.starts_with(prefix));
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Keys directly below a prefix, and the prefixes below it that have keys.
    pub(super) fn folder_of(
        &self,
        prefix: &str,
    ) -> Result<(Vec<String>, Vec<String>), StorageError> {
        let (mut keys, mut below) = (BTreeSet::new(), BTreeSet::new());
        let mut take = |key: &str| {
            let Some(rest) = key.strip_prefix(prefix) else {
                return;
            };
            match rest.split_once('/') {
                Some((name, _)) => below.insert(format!("{prefix}{name}/")),
                None => keys.insert(key.to_owned()),
            };
        };
        match self.way(prefix.trim_end_matches('/'))? {
            Way::Group(group) => {
                if !is_implicit(&group)? {
                    take(&format!("{prefix}{DOCUMENT}"));
                }
                for member in group.members().map_err(|e| storage(&e))? {
                    let member = member.map_err(|e| storage(&e))?;
                    let path = format!("{prefix}{}", member.name);
                    match member.kind {
                        ObjectKind::Array => {
                            let array = group.dyn_array(&member.name).map_err(|e| storage(&e))?;
                            let folder = if is_kept(&array)? { "" } else { "/." };
                            take(&format!("{path}{folder}"));
                        }
                        ObjectKind::Group => {
                            if !self.keys(&format!("{path}/"))?.is_empty() {
                                take(&format!("{path}/."));
                            }
                        }
                    }
                }
            }
            _ => self.keys(prefix)?.iter().for_each(|key| take(key)),
        }
        Ok((keys.into_iter().collect(), below.into_iter().collect()))
    }
}

/// The path whose document a key names.
pub(super) fn document_of(key: &str) -> Option<&str> {
    match key.strip_suffix(DOCUMENT)? {
        "" => Some(""),
        above => above.strip_suffix('/'),
    }
}

/// An array by itself, from the chunk edge at or below its lower bounds.
pub(super) fn place(array: DynArray) -> orthant::Result<Placed> {
    let named: Vec<String> = array
        .dims()
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    let chunk = chunk_of(&array, false);
    let cover = Cover::new(vec![(String::new(), array.clone(), chunk.clone())], &[])?;
    let mut arrays = cover.arrays.into_iter();
    let mut placed = arrays.next().unwrap_or(Placed {
        name: String::new(),
        array,
        chunk,
        first: Vec::new(),
        shape: Vec::new(),
        dims: Vec::new(),
        spelled_out: false,
    });
    placed.dims = named;
    Ok(placed)
}

/// The container's coordinate of the chunk that the rest of a key names; none for other keys, and where there can be none.
pub(super) fn chunk_at(placed: &Placed, rest: &str) -> Result<Option<Vec<i64>>, StorageError> {
    let Some(coord) = Keys::of(Version::V3).coord(rest, placed.shape.len()) else {
        return Ok(None);
    };
    let inside =
        |((c, n), chunk): ((&u64, &u64), &u64)| c.checked_mul(*chunk).is_some_and(|at| at < *n);
    if !coord
        .iter()
        .zip(&placed.shape)
        .zip(&placed.chunk)
        .all(inside)
    {
        return Ok(None);
    }
    let shifts = placed.shifts().map_err(|e| storage(&e))?;
    let moved = coord.iter().zip(shifts);
    Ok(moved
        .map(|(c, by)| i64::try_from(i128::from(*c).checked_add(by)?).ok())
        .collect())
}

pub(super) fn is_implicit(group: &Group) -> Result<bool, StorageError> {
    group
        .attributes()
        .contains(IMPLICIT)
        .map_err(|e| storage(&e))
}

pub(super) fn is_kept(array: &DynArray) -> Result<bool, StorageError> {
    if array.data_type() != DataType::Uint8 || array.rank() != 1 {
        return Ok(false);
    }
    array.attributes().contains(KEPT).map_err(|e| storage(&e))
}

/// The bytes of a key that is neither a document nor a chunk.
fn kept(array: &DynArray) -> Result<Vec<u8>, StorageError> {
    let block = array.read(Region::all()).map_err(|e| storage(&e))?;
    Ok(match block.elements {
        orthant::Elements::Fixed(bytes) => bytes,
        orthant::Elements::Variable(_) => Vec::new(),
    })
}

fn group_keys(group: &Group, prefix: &str, keys: &mut Vec<String>) -> Result<(), StorageError> {
    let mut todo = vec![(group.clone(), prefix.to_owned())];
    while let Some((group, prefix)) = todo.pop() {
        if !is_implicit(&group)? {
            keys.push(format!("{prefix}{DOCUMENT}"));
        }
        for member in group.members().map_err(|e| storage(&e))? {
            let member = member.map_err(|e| storage(&e))?;
            let path = format!("{prefix}{}", member.name);
            match member.kind {
                ObjectKind::Group => {
                    let below = group.group(&member.name).map_err(|e| storage(&e))?;
                    todo.push((below, format!("{path}/")));
                }
                ObjectKind::Array => {
                    let array = group.dyn_array(&member.name).and_then(place);
                    array_keys(&array.map_err(|e| storage(&e))?, &path, keys)?;
                }
            }
        }
    }
    Ok(())
}

fn array_keys(placed: &Placed, path: &str, keys: &mut Vec<String>) -> Result<(), StorageError> {
    if is_kept(&placed.array)? {
        keys.push(path.to_owned());
        return Ok(());
    }
    keys.push(format!("{path}/{DOCUMENT}"));
    let shifts = placed.shifts().map_err(|e| storage(&e))?;
    let told = placed.array.for_each_chunk(Region::all(), |chunk| {
        if chunk.state == ChunkState::DeclaredFill {
            return Ok(());
        }
        let coord = chunk.coord.iter().zip(&shifts);
        let coord: Option<Vec<u64>> = coord
            .map(|(c, by)| u64::try_from(i128::from(*c).checked_sub(*by)?).ok())
            .collect();
        if let Some(coord) = coord {
            keys.push(format!("{path}/{}", Keys::of(Version::V3).key(&coord)));
        }
        Ok(())
    });
    told.map_err(|e| storage(&e))
}
