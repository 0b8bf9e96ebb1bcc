//! Which chunks would have served some reads better.
//!
//! Holds [`ChunkAdvice`] and the search for it, and [`Recorder`], which notes what is read. Arithmetic on shapes: must not
//! read anything.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::grid::{Axis, ChunkGrid, Domain, Picked};

use super::handle::DynArray;

/// What a chunk costs besides its bytes, as bytes: its look-up and its fetch.
const PER_CHUNK: u128 = 4096;
/// Bytes an element of variable length is taken for.
const VARIABLE_ITEM: u64 = 16;
/// Steps of the search; each halves an axis and doubles another.
const STEPS: usize = 64;

/// A chunk shape of the array's own chunk size (or half of it) that decodes less for the same reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkAdvice {
    /// The shape; the array's own where no better one was found.
    pub chunks: Vec<u64>,
    /// Bytes that the reads decode in chunks as they are, if all were stored and nothing was kept.
    pub bytes_decoded: u128,
    /// Bytes that they would decode in chunks of that shape.
    pub bytes_decoded_then: u128,
}

/// Most reads that are noted; the later ones of more are left out.
const RECORDED_MAX: usize = 1 << 16;

/// The boxes that were read through one handle and its clones, where somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    on: AtomicBool,
    reads: Mutex<Vec<Domain>>,
}

impl Recorder {
    pub(super) fn note(&self, picked: &Picked) {
        if self.on.load(Ordering::Relaxed)
            && let Some(bounds) = bounds(picked)
        {
            let mut reads = self.reads.lock();
            if reads.len() < RECORDED_MAX {
                reads.push(bounds);
            }
        }
    }
}

/// The smallest box around what is picked; none around nothing.
fn bounds(picked: &Picked) -> Option<Domain> {
    let axes = picked.axes.iter().map(|axis| match axis {
        Axis::Range { lo, hi, .. } => (lo < hi).then_some((*lo, *hi)),
        Axis::List(list) => {
            let (lo, last) = (list.iter().min()?, list.iter().max()?);
            Some((*lo, last.saturating_add(1)))
        }
    });
    let axes: Vec<(i64, i64)> = axes.collect::<Option<_>>()?;
    Some(Domain::from_checked(axes))
}

impl DynArray {
    /// From now on notes the boxes that are read through this handle and its clones, or stops and forgets them. Of more
    /// than 65,536 the later ones are left out.
    pub fn record_reads(&self, on: bool) {
        let recorder = self.recorder();
        recorder.on.store(on, Ordering::Relaxed);
        if !on {
            recorder.reads.lock().clear();
        }
    }

    /// The boxes noted since [`DynArray::record_reads`].
    pub fn recorded_reads(&self) -> Vec<Domain> {
        self.recorder().reads.lock().clone()
    }

    /// The chunk shape that would have served `reads` best among those some halvings and doublings away; with shards, the
    /// inner chunk. Takes every chunk for stored and none for kept. `reads` may be [`DynArray::recorded_reads`], or the
    /// boxes of a program that is still to be written.
    ///
    /// ```
    /// use orthant::{ArraySpec, Container, region};
    /// # fn main() -> orthant::Result<()> {
    /// let w = Container::in_memory()?.writer()?;
    /// let a = w.create_array("a", ArraySpec::<f32>::new(region![0..1000, 0..1000]).chunks([100, 100]))?;
    /// a.record_reads(true);
    /// for y in 0..50 {
    ///     a.read_vec(region![y, ..])?;
    /// }
    /// let advice = a.advise_chunks(&a.recorded_reads())?;
    /// assert!(advice.chunks[0] < 10 && advice.chunks[1] > 500);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`) for a box of another rank.
    pub fn advise_chunks(&self, reads: &[Domain]) -> Result<ChunkAdvice> {
        self.placed(|| {
            let rank = self.rank();
            if let Some(other) = reads.iter().find(|r| r.rank() != rank) {
                return Err(Error::invalid("read")
                    .expected(format_args!("{rank} axes"))
                    .found(other)
                    .reason("rank"));
            }
            let item = self.data_type().item_size();
            let item = item.map_or(VARIABLE_ITEM, |n| n as u64);
            advise(&self.origin()?, &self.chunk_shape(), item, reads)
        })
    }
}

fn advise(origin: &[i64], now: &[u64], item: u64, reads: &[Domain]) -> Result<ChunkAdvice> {
    let mut best = now.to_vec();
    let bytes_decoded = decoded(origin, now, item, reads)?.0;
    let mut cost = decoded(origin, now, item, reads)?;
    for _ in 0..STEPS {
        let mut found: Option<(Vec<u64>, (u128, u128))> = None;
        for (halved, doubled) in moves(best.len()) {
            let mut next = best.clone();
            match next.get_mut(halved) {
                Some(n) if *n > 1 => *n = n.div_ceil(2),
                _ => continue,
            }
            if let Some(n) = doubled.and_then(|axis| next.get_mut(axis)) {
                *n = n.saturating_mul(2).min(crate::limits::CHUNK_EXTENT_MAX);
            }
            let then = decoded(origin, &next, item, reads)?;
            let least = found.as_ref().map_or(cost.1, |f| f.1.1);
            if then.1 < least {
                found = Some((next, then));
            }
        }
        let Some((next, then)) = found else { break };
        (best, cost) = (next, then);
    }
    Ok(ChunkAdvice {
        chunks: best,
        bytes_decoded,
        bytes_decoded_then: cost.0,
    })
}

/// All pairs of an axis to halve and another to double; and each axis halved alone.
fn moves(rank: usize) -> impl Iterator<Item = (usize, Option<usize>)> {
    (0..rank).flat_map(move |halved| {
        let others = (0..rank).filter(move |axis| *axis != halved).map(Some);
        others.chain([None]).map(move |doubled| (halved, doubled))
    })
}

/// Bytes that the reads decode, and the same with what every chunk costs by itself.
fn decoded(origin: &[i64], chunks: &[u64], item: u64, reads: &[Domain]) -> Result<(u128, u128)> {
    let grid = ChunkGrid::new(origin, chunks)?;
    let bytes = chunks
        .iter()
        .fold(u128::from(item), |n, e| n.saturating_mul(u128::from(*e)));
    let count = reads
        .iter()
        .map(|read| grid.chunk_count(read).unwrap_or(u128::MAX))
        .fold(0_u128, u128::saturating_add);
    let decoded = count.saturating_mul(bytes);
    Ok((
        decoded,
        decoded.saturating_add(count.saturating_mul(PER_CHUNK)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(shape: [i64; 2]) -> Vec<Domain> {
        let [h, w] = shape;
        (0..50)
            .map(|i| {
                let (y, x) = (i * 37 % 900, i * 91 % 900);
                let (y, x) = (y.min(1000 - h), x.min(1000 - w));
                Domain::new([y..y + h, x..x + w]).unwrap()
            })
            .collect()
    }

    #[test]
    fn reads_of_rows_ask_for_long_chunks_and_reads_of_columns_for_tall_ones() {
        let rows = advise(&[0, 0], &[100, 100], 4, &reads([1, 1000])).unwrap();
        assert!(rows.chunks[0] < 10 && rows.chunks[1] >= 800, "{rows:?}");
        assert!(rows.bytes_decoded_then * 10 < rows.bytes_decoded);
        let columns = advise(&[0, 0], &[100, 100], 4, &reads([1000, 1])).unwrap();
        assert!(columns.chunks[1] < 10, "{columns:?}");
        let squares = advise(&[0, 0], &[4, 2500], 4, &reads([90, 90])).unwrap();
        assert!(squares.chunks[0] >= 32, "{squares:?}");
        assert!(squares.bytes_decoded_then < squares.bytes_decoded);
    }

    #[test]
    fn no_reads_ask_for_nothing() {
        let none = advise(&[0, 0], &[100, 100], 4, &[]).unwrap();
        assert_eq!(none.chunks, [100, 100]);
        assert_eq!(none.bytes_decoded_then, 0);
    }

    #[test]
    fn a_box_of_one_element_asks_for_small_chunks_and_huge_boxes_end_the_search() {
        let one = Domain::new([5..6, 7..8]).unwrap();
        let advice = advise(&[0, 0], &[512, 512], 8, &[one]).unwrap();
        assert!(advice.chunks.iter().product::<u64>() <= 16, "{advice:?}");
        let edge = crate::limits::INDEX_MAX;
        let all = Domain::new([-edge..edge, -edge..edge]).unwrap();
        advise(&[0, 0], &[1, 1], 8, &[all.clone(), all]).unwrap();
    }
}
