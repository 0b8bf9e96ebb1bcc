//! One array's elements and attributes on their way into the container.
//!
//! Holds [`transfer`], [`boxes_into`] and the counts of both. Chunks go by [`super::chunks`] or [`super::cells`]. Must not
//! know formats.

use std::sync::atomic::{AtomicU64, Ordering};

use orthant::{AttributeValue, Attributes, Block, Domain, DynArray, Region, RegionItem};

use super::cells::cells_into;
use super::chunks::{Fault, chunks_into};
use super::place::Placed;
use super::plan::{How, refusal};
use crate::exit::Failure;
use crate::foreign::{Array, Boxes, Content, Stop};
use crate::session::Session;
use crate::slabs::{BUDGET, Cut, slabs, stored_shape};

/// Bytes an element of any length is taken for.
pub(super) const VARIABLE_ITEM: u64 = 64;

/// What has become of an array.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) adopted: u64,
    pub(super) reframed: u64,
    pub(super) recoded: u64,
    pub(super) bytes_in: u64,
    /// None where nothing was written.
    pub(super) bytes_out: Option<u64>,
    /// What it is called where it has no chunks.
    pub(super) empty_as: &'static str,
}

impl Done {
    /// An array that is there already, as it is in the source.
    pub(super) fn same() -> Self {
        Self {
            bytes_out: Some(0),
            empty_as: "equal",
            ..Self::default()
        }
    }

    pub(super) fn chunks(&self) -> u64 {
        self.adopted
            .saturating_add(self.reframed)
            .saturating_add(self.recoded)
    }

    /// One word for the whole: what most took is not asked, but what at least one needed.
    pub(super) fn result(&self) -> &'static str {
        match self {
            Self {
                recoded: 0,
                reframed: 0,
                adopted: 0,
                ..
            } => self.empty_as,
            Self {
                recoded: 0,
                reframed: 0,
                ..
            } => "adopted",
            Self { recoded: 0, .. } => "reframed",
            _ => "recoded",
        }
    }
}

/// Counts of all threads.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) adopted: AtomicU64,
    pub(super) reframed: AtomicU64,
    pub(super) recoded: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
}

impl Tally {
    pub(super) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }

    fn done(&self, how: &How) -> Done {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Done {
            adopted: of(&self.adopted),
            reframed: of(&self.reframed),
            recoded: of(&self.recoded),
            bytes_in: of(&self.bytes_in),
            bytes_out: Some(of(&self.bytes_out)),
            empty_as: word(how),
        }
    }
}

fn word(how: &How) -> &'static str {
    match how {
        How::Adopt => "adopted",
        How::Recode | How::Recut => "recoded",
    }
}

/// What a transfer does beyond what it must.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wishes {
    /// Elements that the source does not store are written too.
    pub(super) all: bool,
    /// Chunks that are taken as they are get decoded first.
    pub(super) verify: bool,
}

/// Copies all elements of `array` into the box `room` of `into`, whose shape it has.
pub(super) fn transfer(
    array: &Array,
    into: &DynArray,
    room: &Domain,
    (how, wishes): (&How, Wishes),
    session: &Session,
) -> Result<Done, Stop> {
    let chunks = match &array.content {
        Content::Boxes(boxes) => return boxes_into(boxes.as_ref(), room, into, session),
        Content::Chunks(chunks) => chunks.as_ref(),
    };
    let placed = array.facts.grid.as_ref();
    let placed = placed.and_then(|grid| Placed::new(&array.facts, grid, room));
    let placed = placed
        .ok_or_else(|| Stop::Source("chunks without a grid that can be counted".to_owned()))?;
    let tally = Tally::default();
    match how {
        _ if room.is_empty() => {}
        How::Adopt | How::Recode => {
            let to = (into, &placed);
            chunks_into(array, chunks, to, (how, wishes.verify), &tally, session)?;
        }
        How::Recut => {
            cells_into(array, chunks, (into, &placed), wishes.all, &tally, session)?;
        }
    }
    Ok(tally.done(how))
}

/// Copies the elements that `domain` covers into the same box of `into`, piece by piece.
fn boxes_into(
    boxes: &dyn Boxes,
    domain: &Domain,
    into: &DynArray,
    session: &Session,
) -> Result<Done, Stop> {
    let tally = Tally::default();
    let how = How::Recode;
    if domain.is_empty() {
        return Ok(tally.done(&how));
    }
    // Pieces are cut along the axis whose elements lie farthest apart in the source.
    let flip = boxes.first_axis_fastest();
    let turned = |v: Vec<u64>| -> Vec<u64> {
        if flip {
            v.into_iter().rev().collect()
        } else {
            v
        }
    };
    let mut bounds = domain.bounds().to_vec();
    let mut origin = into.origin().map_err(Failure::from)?;
    if flip {
        bounds.reverse();
        origin.reverse();
    }
    let step = vec![1; bounds.len()];
    let chunk_shape = turned(stored_shape(into));
    let item = into.data_type().item_size();
    let pieces = slabs(Cut {
        bounds: &bounds,
        step: &step,
        chunk_shape: &chunk_shape,
        origin: &origin,
        item: item.map_or(VARIABLE_ITEM, |n| n as u64).max(1),
        budget: BUDGET,
    });
    let bar = session.bar(pieces.elements(), "import");
    for mut piece in pieces {
        if flip {
            piece.reverse();
        }
        let shape: Vec<u64> = piece.iter().map(|&(lo, hi)| hi.abs_diff(lo)).collect();
        let starts = piece.iter().zip(domain.bounds());
        let lower: Vec<u64> = starts
            .map(|((lo, _), (zero, _))| lo.abs_diff(*zero))
            .collect();
        let count = shape.iter().product::<u64>();
        let block = Block {
            data_type: into.data_type(),
            elements: boxes.read(&lower, &shape)?,
            shape,
        };
        let region: Region = piece
            .iter()
            .map(|&(lo, hi)| RegionItem::from(lo..hi))
            .collect();
        let receipt = into
            .write(region, &block)
            .map_err(|e| Fault::from(e).of("elements"))?;
        Tally::add(&tally.recoded, receipt.chunks_written);
        Tally::add(&tally.bytes_out, receipt.bytes_written);
        bar.advance(count);
    }
    Tally::add(&tally.bytes_in, boxes.bytes());
    Ok(tally.done(&how))
}

/// What a copy would come to, without reading a chunk.
pub(super) fn rehearse(array: &Array, made: &DynArray, how: &How) -> Result<Done, Stop> {
    let mut done = Done {
        empty_as: word(how),
        ..Done::default()
    };
    match &array.content {
        Content::Boxes(boxes) => {
            let chunks = made.grid_chunks().map_err(Failure::from)?;
            done.recoded = u64::try_from(chunks.unwrap_or(u128::MAX)).unwrap_or(u64::MAX);
            done.bytes_in = boxes.bytes();
        }
        Content::Chunks(chunks) => {
            let mut count = 0_u64;
            chunks.for_each(&mut |_| {
                count = count.saturating_add(1);
                Ok(())
            })?;
            match how {
                How::Adopt => done.adopted = count,
                How::Recode | How::Recut => done.recoded = count,
            }
        }
    }
    Ok(done)
}

/// Gives an array the attributes of its source; one that cannot be is noted.
pub(super) fn attributes(array: &Array, into: &DynArray, notes: &mut Vec<String>) {
    let to = into.attributes();
    for (name, value) in &array.facts.attributes {
        attribute(&to, name, value.clone(), notes);
    }
}

/// Sets one attribute, or notes why not.
pub(super) fn attribute(
    to: &Attributes,
    name: &str,
    value: AttributeValue,
    notes: &mut Vec<String>,
) {
    if let Err(e) = to.set(name, value) {
        notes.push(format!(
            "attribute {name:?} is left behind: {}",
            refusal(&e)
        ));
    }
}
