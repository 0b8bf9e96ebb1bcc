//! One array's elements and attributes on their way into the container.
//!
//! Holds [`transfer`]. Chunks are taken in batches, side by side; what is held in memory at once is bounded by [`BATCH`],
//! or by one chunk for each thread where chunks are larger. Must not know formats.

use std::sync::atomic::{AtomicU64, Ordering};

use orthant::{
    Adopted, AttributeValue, Attributes, Block, Codec, Container, Domain, DynArray, DynArraySpec,
    Elements, Region, RegionItem, Writer,
};
use rayon::prelude::*;

use super::plan::{How, refusal};
use crate::exit::Failure;
use crate::foreign::{Array, Boxes, Chunks, Content, Grid, Payload, Stop};
use crate::session::Session;
use crate::slabs::{BUDGET, Cut, slabs, stored_shape};

/// Decoded bytes that a batch of chunks aims to stay below.
const BATCH: u64 = 48 << 20;
/// Most chunks of a batch.
const BATCH_COUNT_MAX: u64 = 256;
/// Bytes an element of any length is taken for.
const VARIABLE_ITEM: u64 = 64;

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
struct Tally {
    adopted: AtomicU64,
    reframed: AtomicU64,
    recoded: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Tally {
    fn add(counter: &AtomicU64, by: u64) {
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

/// Copies all elements of `array` into `into`, which is new and empty.
pub(super) fn transfer(
    array: &Array,
    into: &DynArray,
    how: &How,
    session: &Session,
) -> Result<Done, Stop> {
    match &array.content {
        Content::Boxes(boxes) => {
            let domain = &array.facts.domain;
            boxes_into(boxes.as_ref(), domain, into, session)
        }
        Content::Chunks(chunks) => {
            let Some(grid) = &array.facts.grid else {
                return Err(Stop::Source("chunks without a grid".to_owned()));
            };
            let to = Destination {
                into,
                decoder: decoder(array, how)?,
                domain: into.domain().map_err(Failure::from)?,
                grid,
                how,
                tally: Tally::default(),
            };
            chunks_into(chunks.as_ref(), &to, session)?;
            Ok(to.tally.done(how))
        }
    }
}

/// An array of the source's own codecs, which decodes payloads where they are not taken as they are.
struct Decoder {
    array: DynArray,
    /// The array lives as long as it does.
    _writer: Writer,
}

fn decoder(array: &Array, how: &How) -> Result<Option<Decoder>, Stop> {
    let facts = &array.facts;
    let (Some(codecs), Some(grid), How::Recode | How::Recut) = (&facts.codecs, &facts.grid, how)
    else {
        return Ok(None);
    };
    let container = Container::in_memory().map_err(Failure::from)?;
    let writer = container.writer().map_err(Failure::from)?;
    let mut spec = DynArraySpec::new(facts.data_type.clone(), &facts.domain)
        .chunks(grid.chunk.clone())
        .codecs(codecs.iter().cloned().map(Codec::from));
    if let Some(fill) = &facts.fill {
        spec = spec.fill_bytes(fill.clone());
    }
    let made = writer.create_dyn_array("trial", &spec);
    Ok(Some(Decoder {
        array: made.map_err(|e| Stop::Source(refusal(&e)))?,
        _writer: writer,
    }))
}

struct Destination<'a> {
    into: &'a DynArray,
    decoder: Option<Decoder>,
    domain: Domain,
    grid: &'a Grid,
    how: &'a How,
    tally: Tally,
}

fn chunks_into(chunks: &dyn Chunks, to: &Destination<'_>, session: &Session) -> Result<(), Stop> {
    let shape = to.domain.shape();
    let total = shape
        .iter()
        .zip(&to.grid.chunk)
        .fold(1_u64, |n, (e, c)| n.saturating_mul(e.div_ceil((*c).max(1))));
    let bar = session.bar(total, "import");
    let size = batch_size(to);
    let mut batch: Vec<Vec<u64>> = Vec::new();
    let flush = |batch: &mut Vec<Vec<u64>>| {
        let done = batch
            .par_iter()
            .try_for_each(|coord| to.chunk(chunks, coord));
        bar.advance(batch.len() as u64);
        batch.clear();
        done
    };
    chunks.for_each(&mut |coord| {
        batch.push(coord.to_vec());
        if batch.len() >= size {
            flush(&mut batch)?;
        }
        Ok(())
    })?;
    flush(&mut batch)
}

/// How many chunks may be in memory at once.
fn batch_size(to: &Destination<'_>) -> usize {
    let item = to.into.data_type().item_size();
    let item = item.map_or(VARIABLE_ITEM, |n| n as u64);
    let bytes = to.grid.chunk.iter().fold(item, |n, c| n.saturating_mul(*c));
    let count = BATCH.checked_div(bytes.max(1)).unwrap_or(1);
    usize::try_from(count.clamp(1, BATCH_COUNT_MAX)).unwrap_or(1)
}

impl Destination<'_> {
    fn chunk(&self, chunks: &dyn Chunks, coord: &[u64]) -> Result<(), Stop> {
        let at = format_args!("chunk {coord:?}").to_string();
        let ours = self
            .ours(coord)
            .ok_or_else(|| Stop::Source(format!("{at} lies past what can be counted")))?;
        let Some(part) = self.covered(coord) else {
            return Ok(());
        };
        let payload = chunks
            .read(coord)
            .map_err(|e| Stop::Source(format!("{at}: {e}")))?;
        let Some(payload) = payload else {
            return Ok(());
        };
        let stored = match &payload {
            Payload::Encoded { bytes, .. } => bytes.len() as u64,
            Payload::Decoded { stored, .. } => *stored,
        };
        Tally::add(&self.tally.bytes_in, stored);
        let elements = match (payload, &self.decoder) {
            (
                Payload::Encoded {
                    bytes,
                    skipped,
                    reframed,
                },
                None,
            ) => {
                return self
                    .adopt(&ours, &bytes, skipped, reframed)
                    .map_err(|e| e.of(&at));
            }
            (Payload::Encoded { bytes, skipped, .. }, Some(decoder)) => {
                let block = decoder.array.decode_payload(&bytes, skipped);
                block
                    .map_err(|e| Stop::Source(format!("{at}: {}", refusal(&e))))?
                    .elements
            }
            (Payload::Decoded { elements, .. }, _) => elements,
        };
        self.write(&ours, &part, elements).map_err(|e| e.of(&at))
    }

    /// The container's coordinate of a chunk of the source.
    fn ours(&self, coord: &[u64]) -> Option<Vec<i64>> {
        let axes = self.grid.first.iter().zip(coord);
        axes.map(|(first, c)| first.checked_add_unsigned(*c))
            .collect()
    }

    /// What of the domain a chunk of the source covers; none where that is nothing.
    fn covered(&self, coord: &[u64]) -> Option<Domain> {
        let mut ranges = Vec::new();
        for (axis, (lo, hi)) in self.domain.bounds().iter().enumerate() {
            let len = i128::from(*self.grid.chunk.get(axis)?);
            let first = i128::from(*self.grid.first.get(axis)?);
            let start = i128::from(*self.grid.origin.get(axis)?).checked_add(
                first
                    .checked_add(i128::from(*coord.get(axis)?))?
                    .checked_mul(len)?,
            )?;
            let lower = start.max(i128::from(*lo));
            let upper = start.checked_add(len)?.min(i128::from(*hi));
            if lower >= upper {
                return None;
            }
            ranges.push(i64::try_from(lower).ok()?..i64::try_from(upper).ok()?);
        }
        Domain::new(ranges).ok()
    }

    fn adopt(&self, ours: &[i64], bytes: &[u8], skipped: u8, reframed: bool) -> Result<(), Fault> {
        match self.into.adopt_chunk(ours, bytes, skipped)? {
            Adopted::Verbatim => {
                Tally::add(&self.tally.bytes_out, bytes.len() as u64);
                let counter = if reframed {
                    &self.tally.reframed
                } else {
                    &self.tally.adopted
                };
                Tally::add(counter, 1);
            }
            Adopted::Scrubbed(receipt) => {
                Tally::add(&self.tally.bytes_out, receipt.bytes_written);
                Tally::add(&self.tally.recoded, 1);
            }
            _ => Tally::add(&self.tally.recoded, 1),
        }
        Ok(())
    }

    fn write(&self, ours: &[i64], part: &Domain, elements: Elements) -> Result<(), Fault> {
        let data_type = self.into.data_type();
        let block = Block {
            data_type,
            shape: self.grid.chunk.clone(),
            elements,
        };
        let receipt = match self.how {
            How::Recut => {
                let lower = self.starts(ours);
                let block = cut(block, &lower, part)?;
                self.into.write(Region::from_domain(part), &block)?
            }
            _ => self.into.write_chunk(ours, &block)?,
        };
        Tally::add(&self.tally.bytes_out, receipt.bytes_written);
        Tally::add(&self.tally.recoded, 1);
        Ok(())
    }

    /// The element coordinate where a chunk of the source's grid starts.
    fn starts(&self, ours: &[i64]) -> Vec<i64> {
        let axes = ours.iter().zip(&self.grid.chunk).zip(&self.grid.origin);
        axes.map(|((c, len), origin)| {
            let step = i64::try_from(*len).unwrap_or(i64::MAX);
            origin.saturating_add(c.saturating_mul(step))
        })
        .collect()
    }
}

/// The elements of `part` out of a block that starts at `lower`: through a container of one chunk, which knows how.
fn cut(block: Block, lower: &[i64], part: &Domain) -> Result<Block, Fault> {
    let whole = Domain::new(
        lower
            .iter()
            .zip(&block.shape)
            .map(|(lo, n)| *lo..lo.saturating_add_unsigned(*n)),
    )?;
    if whole == *part {
        return Ok(block);
    }
    let container = Container::in_memory()?;
    let spec = DynArraySpec::new(block.data_type.clone(), &whole)
        .chunks(block.shape.clone())
        .origin(lower.to_vec())
        .codecs(Codec::raw_profile());
    let writer = container.writer()?;
    let array = writer.create_dyn_array("trial", &spec)?;
    array.write(Region::from_domain(&whole), &block)?;
    Ok(array.read(Region::from_domain(part))?)
}

/// An error of the library about a chunk: of the source where its bytes are at fault, else of the container.
struct Fault(orthant::Error);

impl From<orthant::Error> for Fault {
    fn from(e: orthant::Error) -> Self {
        Self(e)
    }
}

impl Fault {
    fn of(self, at: &str) -> Stop {
        use orthant::ErrorKind::{
            Corrupt, InvalidArgument, LimitExceeded, TypeMismatch, Unsupported,
        };
        match self.0.kind() {
            Corrupt | InvalidArgument | LimitExceeded | TypeMismatch | Unsupported => {
                Stop::Source(format!("{at}: {}", refusal(&self.0)))
            }
            _ => Stop::Target(self.0.into()),
        }
    }
}

/// Copies the elements that `domain` covers into the same box of `into`, piece by piece.
pub(super) fn boxes_into(
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
            .map_err(|e| Fault(e).of("elements"))?;
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
