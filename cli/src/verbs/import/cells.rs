//! Chunks of a source cut anew: read in boxes that hold whole chunks of both grids, so that a chunk is decoded about once.
//!
//! Holds [`Unchunked`], which reads any box of a source in chunks, and [`cells_into`], which copies by such boxes. Work
//! follows what is stored, never the domain. Must not know formats.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use orthant::{
    Block, Codec, CodecSpec, DataType, Domain, DynArray, DynArraySpec, Elements, OpenOptions,
    Region,
};

use super::chunks::Fault;
use super::copy::{Tally, VARIABLE_ITEM};
use super::place::{Placed, lead};
use super::plan::refusal;
use crate::exit::Failure;
use crate::foreign::{Array, Boxes, Chunks, Content, Grid, Payload, Refusal, Stop};
use crate::session::Session;
use crate::slabs::stored_shape;

/// Decoded bytes of a cell, where one chunk of either grid is not larger.
const CELL: u64 = 32 << 20;
/// Decoded bytes that no cell passes unless a chunk does.
const CELL_MAX: u64 = 64 << 20;

/// A source in chunks, of which any box can be read.
#[derive(Debug)]
pub(super) struct Unchunked<'a> {
    chunks: &'a dyn Chunks,
    data_type: &'a DataType,
    fill: Option<&'a Vec<u8>>,
    codecs: Option<&'a Vec<CodecSpec>>,
    chunk: &'a [u64],
    /// Where chunk 0 starts, counted from the first element.
    lead: Vec<i64>,
    /// Bytes of the chunks that were read.
    read: AtomicU64,
}

/// Reads boxes of an array whatever its content is.
pub(super) fn with_boxes<R>(
    array: &Array,
    read: impl FnOnce(&dyn Boxes) -> Result<R, Stop>,
) -> Result<R, Stop> {
    match (&array.content, &array.facts.grid) {
        (Content::Boxes(boxes), _) => read(boxes.as_ref()),
        (Content::Chunks(chunks), Some(grid)) => {
            read(&Unchunked::new(array, chunks.as_ref(), grid)?)
        }
        (Content::Chunks(_), None) => Err(Stop::Source("chunks without a grid".to_owned())),
    }
}

impl<'a> Unchunked<'a> {
    fn new(array: &'a Array, chunks: &'a dyn Chunks, grid: &'a Grid) -> Result<Self, Refusal> {
        let facts = &array.facts;
        Ok(Self {
            chunks,
            data_type: &facts.data_type,
            fill: facts.fill.as_ref(),
            codecs: facts.codecs.as_ref(),
            chunk: &grid.chunk,
            lead: lead(facts, grid).ok_or("its chunks lie past what can be counted")?,
            read: AtomicU64::new(0),
        })
    }

    /// An array in memory whose domain is all chunks that meet a box, with those that are stored.
    fn loaded(&self, first: &[u64], last: &[u64]) -> Result<(orthant::Writer, DynArray), Refusal> {
        let fault = |e: orthant::Error| refusal(&e);
        let mut ranges = Vec::new();
        let axes = self.lead.iter().zip(self.chunk);
        for ((lead, len), (first, last)) in axes.zip(first.iter().zip(last)) {
            let at = |c: u64| i64::try_from(i128::from(c) * i128::from(*len) + i128::from(*lead));
            let past = |_| "its chunks lie past what can be counted".to_owned();
            ranges.push(at(*first).map_err(past)?..at(last.saturating_add(1)).map_err(past)?);
        }
        let domain = Domain::new(ranges).map_err(fault)?;
        let codecs = match self.codecs {
            Some(list) => list.iter().cloned().map(Codec::from).collect(),
            None => Codec::raw_profile(),
        };
        let mut spec = DynArraySpec::new(self.data_type.clone(), &domain)
            .chunks(self.chunk.to_vec())
            .origin(self.lead.clone())
            .codecs(codecs);
        if let Some(fill) = self.fill {
            spec = spec.fill_bytes(fill.clone());
        }
        // Every chunk is asked for once, whole or nearly so: nothing of it is worth keeping.
        let options = OpenOptions::new().cache_bytes(0);
        let container = options.create_in_memory().map_err(fault)?;
        let writer = container.writer().map_err(fault)?;
        let array = writer.create_dyn_array("trial", &spec).map_err(fault)?;
        let mut coord = first.to_vec();
        loop {
            self.load(&array, &coord)
                .map_err(|e| format!("chunk {coord:?}: {e}"))?;
            if !next(&mut coord, first, last) {
                return Ok((writer, array));
            }
        }
    }

    fn load(&self, array: &DynArray, coord: &[u64]) -> Result<(), Refusal> {
        let fault = |e: orthant::Error| refusal(&e);
        let ours: Option<Vec<i64>> = coord.iter().map(|c| i64::try_from(*c).ok()).collect();
        let ours = ours.ok_or("it lies past what can be counted")?;
        match self.chunks.read(coord)? {
            None => Ok(()),
            Some(Payload::Encoded { bytes, skipped, .. }) => {
                self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                let adopted = array.adopt_chunk(&ours, &bytes, skipped);
                adopted.map(drop).map_err(fault)
            }
            Some(Payload::Decoded { elements, stored }) => {
                self.read.fetch_add(stored, Ordering::Relaxed);
                let block = Block {
                    data_type: self.data_type.clone(),
                    shape: self.chunk.to_vec(),
                    elements,
                };
                array.write_chunk(&ours, &block).map(drop).map_err(fault)
            }
        }
    }
}

/// The next coordinate of a closed box in C order; false after the last.
fn next(coord: &mut [u64], first: &[u64], last: &[u64]) -> bool {
    for (c, (first, last)) in coord.iter_mut().zip(first.iter().zip(last)).rev() {
        if *c < *last {
            *c = c.saturating_add(1);
            return true;
        }
        *c = *first;
    }
    false
}

impl Boxes for Unchunked<'_> {
    fn read(&self, lower: &[u64], shape: &[u64]) -> Result<Elements, Refusal> {
        let (mut first, mut last, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        let axes = self.lead.iter().zip(self.chunk);
        for ((lead, len), (lo, n)) in axes.zip(lower.iter().zip(shape)) {
            let past = "it reaches past what can be counted";
            let lo = i64::try_from(*lo).map_err(|_| past)?;
            let hi = lo.checked_add_unsigned(*n).ok_or(past)?;
            let of = |x: i64| {
                let c = x
                    .checked_sub(*lead)?
                    .checked_div(i64::try_from(*len).ok()?)?;
                u64::try_from(c).ok()
            };
            first.push(of(lo).ok_or(past)?);
            last.push(of(hi.saturating_sub(1).max(lo)).ok_or(past)?);
            wanted.push(lo..hi);
        }
        let (_writer, array) = self.loaded(&first, &last)?;
        let wanted = Domain::new(wanted).map_err(|e| e.to_string())?;
        let block = array.read(Region::from_domain(&wanted));
        Ok(block.map_err(|e| refusal(&e))?.elements)
    }

    fn bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// Copies a source in chunks cell by cell. Where `all`, cells without a stored chunk are written too: what is absent in
/// the source is another value in the container.
pub(super) fn cells_into(
    array: &Array,
    chunks: &dyn Chunks,
    (into, placed): (&DynArray, &Placed),
    all: bool,
    tally: &Tally,
    session: &Session,
) -> Result<(), Stop> {
    let Some(grid) = &array.facts.grid else {
        return Err(Stop::Source("chunks without a grid".to_owned()));
    };
    let cells = Cells::new(placed, into).map_err(Failure::from)?;
    let mut wanted: BTreeSet<Vec<i64>> = BTreeSet::new();
    if all {
        cells.each(&placed.room, &mut |cell| {
            wanted.insert(cell.to_vec());
        });
    } else {
        chunks.for_each(&mut |coord| {
            if let Some(part) = placed.covered(coord) {
                cells.each(&part, &mut |cell| {
                    wanted.insert(cell.to_vec());
                });
            }
            Ok(())
        })?;
    }
    let source = Unchunked::new(array, chunks, grid)?;
    let bar = session.bar(wanted.len() as u64, "import");
    for cell in wanted {
        let Some(part) = cells.part(&cell, &placed.room) else {
            continue;
        };
        let starts = part.bounds().iter().zip(placed.room.bounds());
        let lower: Vec<u64> = starts
            .map(|((lo, _), (zero, _))| lo.abs_diff(*zero))
            .collect();
        let shape = part.shape();
        let block = Block {
            data_type: into.data_type(),
            elements: source.read(&lower, &shape)?,
            shape,
        };
        let receipt = into
            .write(Region::from_domain(&part), &block)
            .map_err(|e| Fault::from(e).of("elements"))?;
        Tally::add(&tally.recoded, receipt.chunks_written);
        Tally::add(&tally.bytes_out, receipt.bytes_written);
        bar.advance(1);
    }
    Tally::add(&tally.bytes_in, source.bytes());
    Ok(())
}

/// A grid of boxes to copy by.
#[derive(Debug)]
struct Cells {
    origin: Vec<i128>,
    extent: Vec<u64>,
}

impl Cells {
    /// On each axis the longer chunk of the two grids, as far as that fits; then as many of them as fit.
    fn new(placed: &Placed, into: &DynArray) -> orthant::Result<Self> {
        let item = into.data_type().item_size();
        let item = item.map_or(VARIABLE_ITEM, |n| n as u64).max(1);
        let (theirs, ours) = (&placed.chunk, stored_shape(into));
        let mut origin = Vec::new();
        for (axis, at) in into.origin()?.iter().enumerate() {
            let longer = theirs.get(axis) > ours.get(axis);
            let start = placed.start_of(axis).filter(|_| longer);
            origin.push(start.unwrap_or(i128::from(*at)));
        }
        let extent = cell(theirs, &ours, &placed.room.shape(), item);
        Ok(Self { origin, extent })
    }

    /// The cells that meet a box.
    fn each(&self, part: &Domain, take: &mut dyn FnMut(&[i64])) {
        let mut ranges = Vec::new();
        for ((lo, hi), (origin, extent)) in part
            .bounds()
            .iter()
            .zip(self.origin.iter().zip(&self.extent))
        {
            let of = |x: i64| {
                let cell = (i128::from(x) - origin).div_euclid(i128::from(*extent).max(1));
                i64::try_from(cell).unwrap_or(i64::MAX)
            };
            ranges.push((of(*lo), of(hi.saturating_sub(1))));
        }
        let mut at: Vec<i64> = ranges.iter().map(|(first, _)| *first).collect();
        loop {
            take(&at);
            let mut done = true;
            for (c, (first, last)) in at.iter_mut().zip(&ranges).rev() {
                if *c < *last {
                    *c = c.saturating_add(1);
                    done = false;
                    break;
                }
                *c = *first;
            }
            if done {
                return;
            }
        }
    }

    /// What of the room a cell covers.
    fn part(&self, cell: &[i64], room: &Domain) -> Option<Domain> {
        let mut ranges = Vec::new();
        let axes = self.origin.iter().zip(&self.extent).zip(cell);
        for (((origin, extent), c), (lo, hi)) in axes.zip(room.bounds()) {
            let start = i128::from(*c)
                .checked_mul(i128::from(*extent))?
                .checked_add(*origin)?;
            let lower = start.max(i128::from(*lo));
            let upper = start.checked_add(i128::from(*extent))?.min(i128::from(*hi));
            if lower >= upper {
                return None;
            }
            ranges.push(i64::try_from(lower).ok()?..i64::try_from(upper).ok()?);
        }
        Domain::new(ranges).ok()
    }
}

/// Elements per axis of a cell over two grids of chunks.
fn cell(theirs: &[u64], ours: &[u64], room: &[u64], item: u64) -> Vec<u64> {
    // A chunk longer than all there is costs nothing past its end.
    let size = |extent: &[u64]| {
        let axes = extent.iter().zip(room);
        axes.fold(item, |n, (e, r)| n.saturating_mul((*e).min(*r).max(1)))
    };
    let axes = theirs.iter().zip(ours);
    let mut extent: Vec<u64> = axes.map(|(a, b)| (*a).max(*b).max(1)).collect();
    let most = CELL_MAX.max(size(theirs)).max(size(ours));
    while size(&extent) > most {
        // The axis on which a cell is the most chunks of the other grid is halved.
        let smaller = theirs.iter().zip(ours).map(|(a, b)| (*a).min(*b).max(1));
        let ratios = extent.iter().zip(smaller).enumerate();
        let most = ratios.max_by_key(|(_, (e, s))| e.div_ceil(*s));
        let Some((axis, _)) = most else { break };
        let Some(e) = extent.get_mut(axis).filter(|e| **e > 1) else {
            break;
        };
        *e = e.div_ceil(2);
    }
    for axis in (0..extent.len()).rev() {
        let times = CELL.checked_div(size(&extent).max(1)).unwrap_or(1);
        let (Some(e), Some(n)) = (extent.get_mut(axis), room.get(axis)) else {
            continue;
        };
        let times = times.min(n.div_ceil((*e).max(1))).max(1);
        *e = e.saturating_mul(times);
    }
    extent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_whole_chunks_of_both_grids_where_they_fit() {
        // Yearly maps into chunks of 30 years: both whole, and as many as fit.
        let maps = cell(&[1, 100, 100], &[30, 100, 100], &[240, 100, 100], 4);
        assert_eq!(maps, [240, 100, 100]);
        let long = cell(&[1, 1000, 1000], &[4, 1000, 1000], &[240, 1000, 1000], 4);
        assert_eq!(long, [8, 1000, 1000]);
        // Crosswise, what fits is less than both.
        let cross = cell(&[1, 8000, 8000], &[1000, 10, 10], &[1000, 8000, 8000], 4);
        assert!(cross.iter().product::<u64>() * 4 <= 8000 * 8000 * 4);
        // A chunk far longer than the array.
        assert_eq!(cell(&[1 << 40], &[10], &[25], 8), [1 << 40]);
        assert_eq!(cell(&[], &[], &[], 8), Vec::<u64>::new());
    }
}
