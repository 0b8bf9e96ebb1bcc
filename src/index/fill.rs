//! Where a run of entries is cut into nodes.
//!
//! Holds [`Fill`], [`cut`] and the separators between pieces. Must not encode nodes.

use std::ops::Range;

use crate::format::node::HEADER_LEN;
use crate::format::pack::{Entries, Measure, common_prefix_len};

/// Bytes that a node is filled to: small enough that a commit of one chunk rewrites little, large enough that a
/// million chunks need three levels.
pub(super) const TARGET: usize = 8192;
/// A node below this joins a neighbour that the same batch touched.
pub(super) const SMALL: usize = TARGET >> 2;

/// Where a node's new entries lie among its old ones: a hint of how the tree will go on growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// There are none.
    Unchanged,
    /// All behind the old ones: pieces are filled from the front, the rest goes on growing.
    Append,
    /// All before the old ones: pieces are filled from the back.
    Prepend,
    /// Anywhere: equal pieces leave room in each.
    Even,
}

impl Fill {
    /// The hint after another group of new entries.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unchanged, x) | (x, Self::Unchanged) => x,
            (a, b) if a == b => a,
            _ => Self::Even,
        }
    }
}

/// Bytes that all of `entries` would take as one node.
pub(super) fn node_len(entries: &Entries) -> usize {
    measure(entries, 0..entries.len()).node_len()
}

fn measure(entries: &Entries, run: Range<usize>) -> Measure {
    let first = entries.key(run.start);
    run.fold(Measure::default(), |m, i| {
        m.with(first, entries.key(i), entries.value(i).len())
    })
}

/// Cuts `entries` into runs of about the target size, at least one entry each.
pub(super) fn cut(entries: &Entries, fill: Fill) -> Vec<Range<usize>> {
    match fill {
        Fill::Append => fill_forward(entries),
        Fill::Prepend => fill_backward(entries),
        Fill::Unchanged | Fill::Even => equal_pieces(entries),
    }
}

fn fill_forward(entries: &Entries) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut size) = (0, Measure::default());
    for i in 0..entries.len() {
        let joined = size.with(entries.key(start), entries.key(i), entries.value(i).len());
        if joined.count() > 1 && joined.node_len() > TARGET {
            pieces.push(start..i);
            start = i;
            size = Measure::default().with(entries.key(i), entries.key(i), entries.value(i).len());
        } else {
            size = joined;
        }
    }
    pieces.push(start..entries.len());
    pieces
}

fn fill_backward(entries: &Entries) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut end, mut size) = (entries.len(), Measure::default());
    for i in (0..entries.len()).rev() {
        let last = entries.key(end.saturating_sub(1));
        let joined = size.with(last, entries.key(i), entries.value(i).len());
        if joined.count() > 1 && joined.node_len() > TARGET {
            let next = i.saturating_add(1);
            pieces.push(next..end);
            end = next;
            size = Measure::default().with(entries.key(i), entries.key(i), entries.value(i).len());
        } else {
            size = joined;
        }
    }
    pieces.push(0..end);
    pieces.reverse();
    pieces
}

fn equal_pieces(entries: &Entries) -> Vec<Range<usize>> {
    let total = measure(entries, 0..entries.len());
    let body = total.node_len().saturating_sub(HEADER_LEN);
    let count = total.node_len().div_ceil(TARGET);
    if count < 2 {
        return std::iter::once(0..entries.len()).collect();
    }
    let mut pieces = Vec::with_capacity(count);
    let (mut start, mut before, mut piece) = (0_usize, 0_usize, 0_usize);
    for i in 0..entries.len() {
        let weight = total.weight(entries.key(i).len(), entries.value(i).len());
        // An entry goes to the piece in whose equal share its middle lies.
        let middle = before.saturating_add(weight >> 1);
        let at = middle.saturating_mul(count).checked_div(body).unwrap_or(0);
        if at > piece && i > start {
            pieces.push(start..i);
            start = i;
        }
        piece = piece.max(at);
        before = before.saturating_add(weight);
    }
    pieces.push(start..entries.len());
    pieces
}

/// The shortest key that is above `before` and not above `after`: what the two share and one byte more.
pub(super) fn separator<'k>(before: &[u8], after: &'k [u8]) -> &'k [u8] {
    let len = common_prefix_len(before, after).saturating_add(1);
    after.get(..len).unwrap_or(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u16, value_len: impl Fn(u16) -> usize) -> Entries {
        let mut entries = Entries::default();
        for i in 0..count {
            let [hi, lo] = [i >> 8, i & 0xFF].map(|b| u8::try_from(b).unwrap());
            entries.push(&[0x11], &[hi, lo], &vec![0; value_len(i)]);
        }
        entries
    }

    fn lens(entries: &Entries, fill: Fill) -> Vec<usize> {
        let pieces = cut(entries, fill);
        assert_eq!(
            (pieces[0].start, pieces.last().unwrap().end),
            (0, entries.len())
        );
        assert!(pieces.windows(2).all(|w| w[0].end == w[1].start));
        pieces
            .into_iter()
            .map(|p| measure(entries, p).node_len())
            .collect()
    }

    #[test]
    fn appended_runs_leave_the_rest_at_the_end_and_prepended_ones_at_the_front() {
        let run = entries(1000, |_| 18);
        let forward = lens(&run, Fill::Append);
        assert!(
            forward[..2]
                .iter()
                .all(|&l| (TARGET - 21..=TARGET).contains(&l)),
            "{forward:?}"
        );
        assert!(forward[2] < TARGET >> 1);
        let backward = lens(&run, Fill::Prepend);
        assert!(
            backward[1..]
                .iter()
                .all(|&l| (TARGET - 21..=TARGET).contains(&l)),
            "{backward:?}"
        );
        assert!(backward[0] < TARGET >> 1);
    }

    #[test]
    fn other_runs_are_cut_into_equal_pieces_of_at_most_about_the_target() {
        for (count, values) in [(410_u16, 18), (1000, 18), (30, 2048), (5000, 1)] {
            let run = entries(count, |i| values - usize::from(i % 7 == 1));
            let pieces = lens(&run, Fill::Even);
            let (min, max) = (pieces.iter().min().unwrap(), pieces.iter().max().unwrap());
            assert!(
                *max <= TARGET + values + 9 && max - min <= 2 * values + 256,
                "{pieces:?}"
            );
        }
        assert_eq!(lens(&entries(300, |_| 18), Fill::Even).len(), 1);
    }

    #[test]
    fn a_separator_is_one_byte_longer_than_what_the_keys_share() {
        assert_eq!(separator(b"abc", b"abxyz"), b"abx");
        assert_eq!(separator(b"ab", b"abc"), b"abc");
        assert_eq!(separator(b"a", b"b"), b"b");
    }
}
