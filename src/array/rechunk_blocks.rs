//! In which blocks an array is stored anew, so that memory is bounded and no chunk is decoded often.
//!
//! Holds [`Passes`]: one pass where blocks exist that hold whole new chunks and cut no old one into more than two; else two,
//! the first over whole old chunks, the second over whole new ones. Pure arithmetic on shapes: must not read anything.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::grid::{ChunkGrid, Coords, Domain};

/// Most blocks that an old chunk is decoded for.
const DECODES_MAX: u64 = 2;
/// Shapes tried before fewer choices an axis are.
const TRIED_MAX: u64 = 4096;
/// Most places where blocks of the two passes may meet: each is remembered until the end.
const PIECES_MAX: u128 = 1 << 22;

/// The blocks of each pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Passes {
    /// Read and write in these blocks.
    One(ChunkGrid),
    /// Read in the first, write in the second.
    Two(ChunkGrid, ChunkGrid),
}

/// What the blocks are chosen for.
#[derive(Debug)]
pub(super) struct Wish<'a> {
    /// Where both grids begin.
    pub(super) origin: &'a [i64],
    /// What is decoded by itself: a chunk, or an inner chunk.
    pub(super) old: &'a [u64],
    /// What is stored by itself: a chunk, or a shard.
    pub(super) new: &'a [u64],
    pub(super) domain: &'a Domain,
    /// Most elements of a block, unless one chunk has more.
    pub(super) elements_max: u64,
}

impl Passes {
    /// # Errors
    /// `LimitExceeded` where two passes with that little memory would tear the array into too many pieces.
    pub(super) fn choose(wish: &Wish<'_>) -> Result<Self> {
        if let Some(shape) = wish.one_pass() {
            return Ok(Self::One(ChunkGrid::new(wish.origin, &wish.grown(shape))?));
        }
        let read = ChunkGrid::new(wish.origin, &wish.grown(wish.old.to_vec()))?;
        let write = ChunkGrid::new(wish.origin, &wish.grown(wish.new.to_vec()))?;
        let pieces = meetings(&read, &write, wish.domain);
        if pieces > PIECES_MAX {
            return Err(Error::limit("pieces of an array between two chunk shapes")
                .expected(format_args!("at most {PIECES_MAX}"))
                .found(pieces)
                .help("allow more memory, or go by a chunk shape between the two")
                .reason("too_large"));
        }
        Ok(Self::Two(read, write))
    }
}

impl Wish<'_> {
    /// The shape that decodes least, where it decodes no chunk too often.
    fn one_pass(&self) -> Option<Vec<u64>> {
        let mut choices: Vec<Vec<u64>> = (0..self.new.len()).map(|a| self.choices(a)).collect();
        let count = |choices: &[Vec<u64>]| {
            let lengths = choices.iter().map(|c| c.len() as u64);
            lengths.fold(1_u64, u64::saturating_mul)
        };
        // With many axes the first ones, along which chunks lie farthest apart, get no choice.
        for axis in 0..choices.len() {
            if count(&choices) <= TRIED_MAX {
                break;
            }
            if let Some(axis) = choices.get_mut(axis) {
                axis.truncate(1);
            }
        }
        let mut best: Option<(u64, u64, Vec<u64>)> = None;
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, choices.len());
        loop {
            let shape: Vec<u64> = (choices.iter().zip(&at))
                .map(|(c, &i)| c.get(i).copied().unwrap_or(1))
                .collect();
            let (size, decodes) = (size(&shape), self.decodes(&shape));
            let fits = size <= self.elements_max || shape == self.new;
            let better = best.as_ref().is_none_or(|b| (decodes, size) < (b.0, b.1));
            if fits && decodes <= DECODES_MAX && better {
                best = Some((decodes, size, shape));
            }
            if !advance(&mut at, &choices) {
                break;
            }
        }
        best.map(|(.., shape)| shape)
    }

    /// The lengths along an axis that are worth a try: multiples of the new chunk's.
    fn choices(&self, axis: usize) -> Vec<u64> {
        let (a, b) = (length(self.old, axis), length(self.new, axis));
        let whole = self.domain.extents().nth(axis).unwrap_or(1);
        let mut all = vec![
            b,
            a.div_ceil(b).saturating_mul(b),
            lcm(a, b),
            // The domain may begin within a block.
            whole.div_ceil(b).saturating_add(1).saturating_mul(b),
        ];
        all.sort_unstable();
        all.dedup();
        all
    }

    /// How many blocks of `shape` a chunk meets at most.
    fn decodes(&self, shape: &[u64]) -> u64 {
        shape.iter().enumerate().fold(1_u64, |n, (axis, &block)| {
            let old = length(self.old, axis);
            // A chunk begins at a multiple of the common divisor within a block; the last such place is the worst.
            let last = block.saturating_sub(gcd(old, block));
            let most = last
                .saturating_add(old)
                .saturating_sub(1)
                .div_euclid(block.max(1))
                .saturating_add(1);
            let there = self.blocks_along(shape, axis).max(1);
            n.saturating_mul(most.min(there))
        })
    }

    /// The shape made longer by doubling, last axis first, as far as memory allows and there is more than one block.
    fn grown(&self, mut shape: Vec<u64>) -> Vec<u64> {
        for axis in (0..shape.len()).rev() {
            while self.blocks_along(&shape, axis) > 1 {
                let mut longer = shape.clone();
                if let Some(n) = longer.get_mut(axis) {
                    *n = n.saturating_mul(2);
                }
                if size(&longer) > self.elements_max {
                    break;
                }
                shape = longer;
            }
        }
        shape
    }

    /// How many blocks of `shape` the domain meets along an axis.
    fn blocks_along(&self, shape: &[u64], axis: usize) -> u64 {
        let (lo, hi) = self.domain.bounds().get(axis).copied().unwrap_or((0, 0));
        ChunkGrid::new(self.origin, shape).map_or(u64::MAX, |grid| {
            let (first, end) = grid.chunks_of(axis, lo, hi);
            end.abs_diff(first)
        })
    }
}

/// How many boxes there are in which a block of one grid meets one of the other, at most.
fn meetings(a: &ChunkGrid, b: &ChunkGrid, domain: &Domain) -> u128 {
    let axes = domain.bounds().iter().enumerate();
    axes.fold(1_u128, |n, (axis, &(lo, hi))| {
        let blocks = |grid: &ChunkGrid| {
            let (first, end) = grid.chunks_of(axis, lo, hi);
            u128::from(end.abs_diff(first))
        };
        // Each begins at a border of one or the other.
        n.saturating_mul(blocks(a).saturating_add(blocks(b)).max(1))
    })
}

/// All blocks of `grid` that meet `part`.
pub(super) fn blocks_of(grid: &ChunkGrid, part: &Domain) -> Vec<Coords> {
    let mut met: Vec<Coords> = vec![Coords::new()];
    for (axis, &(lo, hi)) in part.bounds().iter().enumerate() {
        let (first, end) = grid.chunks_of(axis, lo, hi);
        met = met
            .iter()
            .flat_map(|m| (first..end).map(move |x| m.iter().copied().chain([x]).collect()))
            .collect();
    }
    met
}

fn advance(at: &mut [usize], choices: &[Vec<u64>]) -> bool {
    for (i, axis) in at.iter_mut().zip(choices).rev() {
        *i = i.saturating_add(1);
        if *i < axis.len() {
            return true;
        }
        *i = 0;
    }
    false
}

fn length(shape: &[u64], axis: usize) -> u64 {
    shape.get(axis).copied().unwrap_or(1).max(1)
}

fn size(shape: &[u64]) -> u64 {
    shape.iter().fold(1_u64, |n, e| n.saturating_mul(*e))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a.rem_euclid(b));
    }
    a.max(1)
}

fn lcm(a: u64, b: u64) -> u64 {
    a.div_euclid(gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(old: &[u64], new: &[u64], shape: &[u64], elements_max: u64) -> Passes {
        let domain = Domain::from_shape(shape).unwrap();
        let origin = vec![0; shape.len()];
        Passes::choose(&Wish {
            origin: &origin,
            old,
            new,
            domain: &domain,
            elements_max,
        })
        .unwrap()
    }

    fn lengths(grid: &ChunkGrid) -> Vec<i64> {
        grid.shape().to_vec()
    }

    #[test]
    fn a_block_of_one_pass_holds_whole_new_chunks_and_cuts_no_old_one_into_more_than_two() {
        let old_and_new: [[[u64; 2]; 2]; 6] = [
            [[10, 100], [15, 20]],
            [[10, 100], [20, 200]],
            [[64, 64], [16, 16]],
            [[7, 900], [11, 1000]],
            [[3, 5], [4, 6]],
            [[1, 1], [1000, 1000]],
        ];
        for [old, new] in old_and_new {
            for elements_max in [1, 1500, 40_000, 1 << 20] {
                let Passes::One(grid) = choose(&old, &new, &[1000, 1000], elements_max) else {
                    continue;
                };
                for axis in 0..2 {
                    let block = u64::try_from(grid.shape()[axis]).unwrap();
                    assert_eq!(block % new[axis], 0, "{old:?} {new:?} {block}");
                }
                let worst: i64 = (0..2)
                    .map(|axis| {
                        let chunk = i64::try_from(old[axis]).unwrap();
                        (0..1000_i64.div_euclid(chunk))
                            .map(|c| {
                                let (a, b) = grid.chunks_of(axis, c * chunk, (c + 1) * chunk);
                                b - a
                            })
                            .max()
                            .unwrap()
                    })
                    .product();
                assert!(worst <= 2, "{old:?} {new:?} {grid:?}");
            }
        }
    }

    #[test]
    fn sheets_become_rods_in_two_passes_over_whole_chunks() {
        let Passes::Two(read, write) = choose(
            &[1, 1024, 1024],
            &[512, 32, 32],
            &[512, 1024, 1024],
            8 << 20,
        ) else {
            panic!("one pass would decode each sheet for every block");
        };
        assert_eq!(lengths(&read)[1..], [1024, 1024]);
        assert_eq!(lengths(&write)[0], 512);
        assert!(lengths(&read).iter().product::<i64>() <= 8 << 20);
        assert!(lengths(&write).iter().product::<i64>() <= 8 << 20);
    }

    #[test]
    fn too_little_memory_for_two_passes_is_refused_with_a_way_out() {
        let domain = Domain::from_shape(&[1 << 20, 1 << 20]).unwrap();
        let refused = Passes::choose(&Wish {
            origin: &[0, 0],
            old: &[1, 1 << 20],
            new: &[1 << 20, 1],
            domain: &domain,
            elements_max: 1 << 20,
        });
        let e = refused.unwrap_err();
        assert_eq!(e.reason_code(), Some("too_large"), "{e}");
    }
}
