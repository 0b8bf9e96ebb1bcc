//! The stored chunks of a box, found by skipping through the index.
//!
//! Holds [`stored`] and [`each_stored`]. Work follows the keys that exist, never the box. Must not read payloads.

use crate::error::Result;
use crate::format::ObjectId;
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Coords};
use crate::txn::{Key, Value, View};

/// One entry of the index: a chunk and what stands for it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) coords: Coords,
    pub(crate) value: Value,
}

impl Entry {
    /// The record, or the error that concerns this chunk alone.
    pub(crate) fn record(&self) -> Result<ChunkRecord> {
        decode(&self.value).map_err(|e| e.in_chunk(&self.coords))
    }
}

/// Reads a chunk record that came through the index. Its place was checked when its node was loaded.
pub(crate) fn decode(value: &[u8]) -> Result<ChunkRecord> {
    ChunkRecord::decode(value, 0, u64::MAX)
}

/// Below this many chunks each is looked up by itself, which beats a scan's set-up.
const LOOKUP_MAX: u64 = 4;

/// As [`each_stored`]; a box of a few chunks is looked up one by one.
pub(crate) fn stored(
    view: &View,
    id: ObjectId,
    key_order: &[u8],
    sets: &[&AxisSet],
    mut f: impl FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let count = sets.iter().try_fold(1_u64, |n, s| n.checked_mul(s.len()));
    match count {
        Some(0) => Ok(()),
        Some(n) if n <= LOOKUP_MAX => for_each_coords(key_order, sets, |coords| {
            match view.get(&key::chunk(id, coords, key_order))? {
                Some(value) => f(Entry {
                    coords: coords.into(),
                    value,
                }),
                None => Ok(()),
            }
        }),
        _ => each_stored(view, id, key_order, sets, f),
    }
}

/// Calls `f` for every stored chunk of the box `sets`, in key order.
pub(crate) fn each_stored(
    view: &View,
    id: ObjectId,
    key_order: &[u8],
    sets: &[&AxisSet],
    mut f: impl FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let rank = sets.len();
    let Some(first) = sets.iter().map(|s| s.first()).collect::<Option<Coords>>() else {
        return Ok(());
    };
    let upper = key::prefix_end(&key::chunk_prefix(id)).unwrap_or_else(|| Key::from_slice(&[0xFF]));
    let mut cursor = view.cursor(&key::chunk(id, &first, key_order), &upper)?;
    let mut coords: Coords = Coords::from_elem(0, rank);
    while let Some((found, value)) = cursor.next()? {
        key::decode_chunk(&found, rank, key_order, &mut coords)?;
        match next_wanted(&coords, key_order, sets) {
            Step::Here => f(Entry {
                coords: coords.clone(),
                value,
            })?,
            Step::Skip(to) => cursor.seek(&key::chunk(id, &to, key_order))?,
            Step::Done => return Ok(()),
        }
    }
    Ok(())
}

enum Step {
    Here,
    Skip(Coords),
    Done,
}

/// Where a scan standing at `at` goes: it stays when `at` is wanted, else to the next wanted chunk in key order.
fn next_wanted(at: &[i64], key_order: &[u8], sets: &[&AxisSet]) -> Step {
    let axes: smallvec::SmallVec<[usize; 8]> = key_order.iter().map(|&a| usize::from(a)).collect();
    let get = |axis: usize| at.get(axis).copied().unwrap_or(0);
    let set = |axis: usize| sets.get(axis).copied();
    let Some(k) = axes
        .iter()
        .position(|&a| set(a).is_some_and(|s| !s.contains(get(a))))
    else {
        return Step::Here;
    };
    // Walk back from the first axis that is off: the deepest one that can move up, moves; all after it start over.
    for j in (0..=k).rev() {
        let Some(&axis) = axes.get(j) else {
            return Step::Done;
        };
        let from = if j == k {
            Some(get(axis))
        } else {
            get(axis).checked_add(1)
        };
        let Some(next) = from.and_then(|x| set(axis).and_then(|s| s.at_or_above(x))) else {
            continue;
        };
        let mut to: Coords = at.into();
        if let Some(slot) = to.get_mut(axis) {
            *slot = next;
        }
        for &later in axes.iter().skip(j.saturating_add(1)) {
            if let (Some(slot), Some(first)) =
                (to.get_mut(later), set(later).and_then(AxisSet::first))
            {
                *slot = first;
            }
        }
        return Step::Skip(to);
    }
    Step::Done
}

/// Calls `f` for every chunk coordinate of the box, in key order.
pub(crate) fn for_each_coords(
    key_order: &[u8],
    sets: &[&AxisSet],
    mut f: impl FnMut(&[i64]) -> Result<()>,
) -> Result<()> {
    let Some(mut at) = sets.iter().map(|s| s.first()).collect::<Option<Coords>>() else {
        return Ok(());
    };
    loop {
        f(&at)?;
        if !advance(key_order, sets, &mut at) {
            return Ok(());
        }
    }
}

/// Moves to the next chunk coordinate of the box in key order; false behind the last.
pub(crate) fn advance(key_order: &[u8], sets: &[&AxisSet], at: &mut [i64]) -> bool {
    for &axis in key_order.iter().rev() {
        let axis = usize::from(axis);
        let (Some(x), Some(set)) = (at.get_mut(axis), sets.get(axis)) else {
            continue;
        };
        if let Some(next) = x.checked_add(1).and_then(|x| set.at_or_above(x)) {
            *x = next;
            return true;
        }
        *x = set.first().unwrap_or(0);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_come_in_key_order() {
        let (a, b) = (AxisSet::Range(-1, 1), AxisSet::List(vec![3, 7]));
        let mut seen = Vec::new();
        for_each_coords(&[1, 0], &[&a, &b], |c| {
            seen.push(c.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [[-1, 3], [0, 3], [-1, 7], [0, 7]]);
    }

    #[test]
    fn a_scan_skips_to_the_next_wanted_chunk() {
        let (a, b) = (AxisSet::Range(0, 3), AxisSet::List(vec![2, 5]));
        let order = [0, 1];
        let step = |at: [i64; 2]| match next_wanted(&at, &order, &[&a, &b]) {
            Step::Here => Some(at.to_vec()),
            Step::Skip(to) => Some(to.to_vec()),
            Step::Done => None,
        };
        assert_eq!(step([1, 5]), Some(vec![1, 5]));
        assert_eq!(step([1, 3]), Some(vec![1, 5]));
        assert_eq!(step([1, 6]), Some(vec![2, 2]));
        assert_eq!(step([-4, 9]), Some(vec![0, 2]));
        assert_eq!(step([2, 6]), None);
        assert_eq!(step([3, 0]), None);
    }
}
