//! Chunks of a source taken one by one: as they are stored, or decoded and encoded anew on the same grid.
//!
//! Holds [`chunks_into`] and [`Fault`]. Chunks are taken in batches, side by side; what is held in memory at once is bounded
//! by [`BATCH`], or by one chunk for each thread where chunks are larger. Must not cut chunks anew ([`super::cells`]).

use orthant::{
    Adopted, Block, Codec, Container, Domain, DynArray, DynArraySpec, Elements, Region, Writer,
};
use rayon::prelude::*;

use super::copy::{Tally, VARIABLE_ITEM};
use super::place::Placed;
use super::plan::{How, refusal};
use crate::exit::Failure;
use crate::foreign::{Array, Chunks, Payload, Stop};
use crate::session::Session;

/// Decoded bytes that a batch of chunks aims to stay below.
const BATCH: u64 = 48 << 20;
/// Most chunks of a batch.
const BATCH_COUNT_MAX: u64 = 256;

/// An array of the source's own codecs, which decodes payloads where they are not taken as they are.
struct Decoder {
    array: DynArray,
    /// The array lives as long as it does.
    _writer: Writer,
}

fn decoder(array: &Array, chunk: &[u64], how: &How) -> Result<Option<Decoder>, Stop> {
    let facts = &array.facts;
    let (Some(codecs), How::Recode | How::Recut) = (&facts.codecs, how) else {
        return Ok(None);
    };
    let container = Container::in_memory().map_err(Failure::from)?;
    let writer = container.writer().map_err(Failure::from)?;
    let mut spec = DynArraySpec::new(facts.data_type.clone(), &facts.domain)
        .chunks(chunk.to_vec())
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

/// Copies every stored chunk of a source whose chunks are those of `into`.
pub(super) fn chunks_into(
    array: &Array,
    chunks: &dyn Chunks,
    (into, placed): (&DynArray, &Placed),
    (how, verify): (&How, bool),
    tally: &Tally,
    session: &Session,
) -> Result<(), Stop> {
    let to = Destination {
        into,
        decoder: decoder(array, &placed.chunk, how)?,
        domain: into.domain().map_err(Failure::from)?,
        first: placed
            .first_in(into)
            .ok_or_else(|| Stop::Source("its chunks lie on another grid".to_owned()))?,
        placed,
        adopts: matches!(how, How::Adopt),
        verify,
        tally,
    };
    let shape = placed.room.shape();
    let total = shape
        .iter()
        .zip(&placed.chunk)
        .fold(1_u64, |n, (e, c)| n.saturating_mul(e.div_ceil((*c).max(1))));
    let bar = session.bar(total, "import");
    let size = batch_size(&to);
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
    let chunk = to.placed.chunk.iter();
    let bytes = chunk.fold(item, |n, c| n.saturating_mul(*c));
    let count = BATCH.checked_div(bytes.max(1)).unwrap_or(1);
    usize::try_from(count.clamp(1, BATCH_COUNT_MAX)).unwrap_or(1)
}

struct Destination<'a> {
    into: &'a DynArray,
    decoder: Option<Decoder>,
    domain: Domain,
    placed: &'a Placed,
    /// The array's coordinate of the source's chunk 0.
    first: Vec<i64>,
    adopts: bool,
    /// What is adopted is decoded first.
    verify: bool,
    tally: &'a Tally,
}

impl Destination<'_> {
    fn chunk(&self, chunks: &dyn Chunks, coord: &[u64]) -> Result<(), Stop> {
        let at = format_args!("chunk {coord:?}").to_string();
        let ours = self
            .ours(coord)
            .ok_or_else(|| Stop::Source(format!("{at} lies past what can be counted")))?;
        let Some(part) = self.placed.covered(coord) else {
            return Ok(());
        };
        let payload = chunks
            .read(coord)
            .map_err(|e| Stop::Source(format!("{at}: {e}")))?;
        let Some(payload) = payload else {
            return Ok(());
        };
        // Elements of the array that the source does not fill stay as they are.
        let whole = self.placed.within(coord, &self.domain).as_ref() == Some(&part);
        let fault = |e: orthant::Error| Stop::Source(format!("{at}: {}", refusal(&e)));
        let elements = match payload {
            Payload::Encoded {
                bytes,
                skipped,
                reframed,
            } => {
                Tally::add(&self.tally.bytes_in, bytes.len() as u64);
                if self.adopts && whole {
                    if self.verify {
                        let block = self.into.decode_payload(&bytes, skipped);
                        block.map(drop).map_err(fault)?;
                    }
                    return self
                        .adopt(&ours, &bytes, skipped, reframed)
                        .map_err(|e| e.of(&at));
                }
                let by = self.decoder.as_ref().map_or(self.into, |d| &d.array);
                by.decode_payload(&bytes, skipped).map_err(fault)?.elements
            }
            Payload::Decoded { elements, stored } => {
                Tally::add(&self.tally.bytes_in, stored);
                elements
            }
        };
        let part = (!whole).then_some(part);
        self.write(&ours, coord, part, elements)
            .map_err(|e| e.of(&at))
    }

    /// The container's coordinate of a chunk of the source.
    fn ours(&self, coord: &[u64]) -> Option<Vec<i64>> {
        let axes = self.first.iter().zip(coord);
        axes.map(|(first, c)| first.checked_add_unsigned(*c))
            .collect()
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

    /// Writes a decoded chunk, or only a part of it.
    fn write(
        &self,
        ours: &[i64],
        coord: &[u64],
        part: Option<Domain>,
        elements: Elements,
    ) -> Result<(), Fault> {
        let block = Block {
            data_type: self.into.data_type(),
            shape: self.placed.chunk.clone(),
            elements,
        };
        let receipt = match (part, self.placed.whole(coord)) {
            (Some(part), Some(whole)) => {
                let block = cut(block, &whole, &part)?;
                self.into.write(Region::from_domain(&part), &block)?
            }
            _ => self.into.write_chunk(ours, &block)?,
        };
        Tally::add(&self.tally.bytes_out, receipt.bytes_written);
        Tally::add(&self.tally.recoded, 1);
        Ok(())
    }
}

/// The elements of `part` out of a block that is `whole`: through a container of one chunk, which knows how.
fn cut(block: Block, whole: &Domain, part: &Domain) -> Result<Block, Fault> {
    if whole == part {
        return Ok(block);
    }
    let container = Container::in_memory()?;
    let lower: Vec<i64> = whole.bounds().iter().map(|(lo, _)| *lo).collect();
    let spec = DynArraySpec::new(block.data_type.clone(), whole)
        .chunks(block.shape.clone())
        .origin(lower)
        .codecs(Codec::raw_profile());
    let writer = container.writer()?;
    let array = writer.create_dyn_array("trial", &spec)?;
    array.write(Region::from_domain(whole), &block)?;
    Ok(array.read(Region::from_domain(part))?)
}

/// An error of the library about a chunk: of the source where its bytes are at fault, else of the container.
pub(super) struct Fault(orthant::Error);

impl From<orthant::Error> for Fault {
    fn from(e: orthant::Error) -> Self {
        Self(e)
    }
}

impl Fault {
    pub(super) fn of(self, at: &str) -> Stop {
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
