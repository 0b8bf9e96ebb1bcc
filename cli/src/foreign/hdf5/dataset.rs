//! One dataset: what it is in a container, and how its elements are had.
//!
//! Holds [`array`]. Attributes and names of axes are added by the walk. Must not know groups.

use std::sync::Arc;

use hdf5_reader::io::Cursor as Their;
use hdf5_reader::messages::fill_value;
use orthant::{AttributeValue, Elements};

use super::chunks::Stored;
use super::datatype::Type;
use super::file::{File, guarded};
use super::filters::Pipeline;
use super::header::Header;
use super::heap::Heap;
use super::index::Indexed;
use super::space::{Chunked, Layout, Space};
use super::wire::{Kind, Wire};
use crate::foreign::flat::{Bytes, Flat, Order};
use crate::foreign::{Array, Boxes, Content, Facts, Grid, Refusal};

const DATASPACE: u16 = 0x01;
const DATATYPE: u16 = 0x03;
const OLD_FILL: u16 = 0x04;
const FILL: u16 = 0x05;
const EXTERNAL_FILES: u16 = 0x07;
const LAYOUT: u16 = 0x08;
const FILTERS: u16 = 0x0b;

/// Most bytes of a chunk that is decoded here.
const CHUNK_LEN_MAX: u64 = 1 << 30;

/// Whether the object is a dataset.
pub(super) fn is_dataset(header: &Header) -> bool {
    header.has(DATASPACE)
        && header.has(DATATYPE)
        && (header.has(LAYOUT) || header.has(EXTERNAL_FILES))
}

/// Whether the object is a type that got a name.
pub(super) fn is_type(header: &Header) -> bool {
    header.has(DATATYPE) && !header.has(DATASPACE)
}

/// What elements become, and the places that know how.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    pub(super) kind: Arc<Kind>,
    pub(super) heap: Arc<Heap>,
}

impl Decoder {
    /// Elements of their bytes in the file.
    pub(super) fn elements(&self, bytes: Vec<u8>) -> Result<Elements, Refusal> {
        if self.kind.wire == Wire::Text {
            let texts = self.heap.follow(&bytes, 1)?;
            let is_text = |text: &[u8]| std::str::from_utf8(text).is_ok();
            if let Some(at) = texts.iter().position(|text| !is_text(text)) {
                return Err(format!(
                    "text that is not UTF-8, at element {at} of a piece"
                ));
            }
            return Ok(Elements::Variable(texts));
        }
        let bytes = self.kind.wire.decode(bytes, self.kind.size)?;
        Ok(Elements::Fixed(bytes))
    }
}

/// A dataset without its attributes, and the names of the values of its enumeration.
pub(super) fn array(
    file: &Arc<File>,
    header: &Header,
    heap: &Arc<Heap>,
) -> Result<(Array, Option<AttributeValue>), Refusal> {
    let missing = |what: &str| format!("a dataset without {what}");
    let get = |kind: u16| header.first(file, kind);
    if header.has(EXTERNAL_FILES) {
        return Err("its elements are in other files".to_owned());
    }
    let space = Space::parse(file, &get(DATASPACE)?.ok_or_else(|| missing("extents"))?)?;
    let data_type = Type::parse(&get(DATATYPE)?.ok_or_else(|| missing("a type"))?)?;
    let layout = Layout::parse(file, &get(LAYOUT)?.ok_or_else(|| missing("a layout"))?)?;
    let pipeline = match get(FILTERS)? {
        Some(body) => Pipeline::parse(file, &body)?,
        None => Pipeline::default(),
    };
    let kind = Kind::of(&data_type)?;
    let mut shape = space.extents.clone().unwrap_or_else(|| vec![0]);
    let rank = shape.len();
    shape.extend(&kind.dims);
    let mut facts = Facts::plain(kind.data_type.clone(), &shape)?;
    facts.notes.clone_from(&kind.notes);
    if space.extents.is_none() {
        facts
            .notes
            .push("a dataset of no extents at all is taken as one of extent 0".to_owned());
    }
    if kind.wire == Wire::Text && kind.size != heap.reference_len() {
        return Err(format!("text whose references have {} bytes", kind.size));
    }
    let decoder = Decoder {
        kind: Arc::new(kind),
        heap: Arc::clone(heap),
    };
    facts.fill = fill(file, header, &decoder)?;
    let content = match layout {
        _ if shape.contains(&0) => nothing(&mut facts, &decoder),
        Layout::Compact(bytes) => flat(Bytes::Memory(bytes), 0, &decoder, &shape)?,
        Layout::Contiguous(Some(address)) => {
            file.check(address, bytes_of(&decoder, &shape)?)?;
            let at = file.base.saturating_add(address);
            flat(file.bytes()?, at, &decoder, &shape)?
        }
        Layout::Contiguous(None) => nothing(&mut facts, &decoder),
        Layout::Chunked(chunked) => {
            if chunked.chunk.len() != rank || chunked.item != data_type.size as u64 {
                return Err("chunks that are not of its elements".to_owned());
            }
            let stored = stored(file, space, chunked, pipeline, decoder.clone(), &mut facts)?;
            Content::Chunks(Box::new(stored))
        }
    };
    let names = decoder.kind.names.clone();
    Ok((Array { facts, content }, names))
}

/// Elements in chunks, on the grid that they are stored on.
fn stored(
    file: &Arc<File>,
    space: Space,
    chunked: Chunked,
    pipeline: Pipeline,
    decoder: Decoder,
    facts: &mut Facts,
) -> Result<Stored, Refusal> {
    let mut grid: Vec<u64> = chunked.chunk.iter().map(|n| u64::from(*n)).collect();
    let chunk_len = grid
        .iter()
        .try_fold(chunked.item, |n, c| n.checked_mul(*c))
        .filter(|n| (1..=CHUNK_LEN_MAX).contains(n))
        .ok_or_else(|| format!("chunks of {grid:?} elements"))?;
    grid.extend(&decoder.kind.dims);
    facts.grid = Some(Grid::from_zero(grid));
    facts.codecs = pipeline.codecs(&decoder.kind);
    let as_stored = facts.codecs.is_some();
    if let Some(reason) = pipeline.refusal().filter(|_| !as_stored) {
        return Err(reason);
    }
    let indexed = Indexed {
        chunked,
        extents: space.extents.unwrap_or_default(),
        limits: space.limits,
        chunk_len,
    };
    let file = Arc::clone(file);
    Ok(Stored::new(file, indexed, pipeline, decoder, as_stored))
}

fn bytes_of(decoder: &Decoder, shape: &[u64]) -> Result<u64, Refusal> {
    let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
    let len = count.and_then(|n| n.checked_mul(decoder.kind.size as u64));
    len.ok_or_else(|| "more elements than can be counted".to_owned())
}

/// Elements of which none is stored.
fn nothing(facts: &mut Facts, decoder: &Decoder) -> Content {
    let shape = facts.domain.shape();
    facts.grid = Some(Grid::from_zero(default_chunk(&shape, decoder.kind.size)));
    Content::Chunks(Box::new(Stored::none(decoder.clone())))
}

/// About 1 MiB of elements, whole on the last axes, for what has no chunks of its own.
fn default_chunk(shape: &[u64], size: usize) -> Vec<u64> {
    let mut left = (1_u64 << 20).checked_div(size as u64).unwrap_or(1).max(1);
    let mut chunk: Vec<u64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let len = (*extent).clamp(1, left);
            left = left.checked_div(len).unwrap_or(1).max(1);
            len
        })
        .collect();
    chunk.reverse();
    chunk
}

/// The value of elements that are not stored, as a container has it; zeros where none is given.
fn fill(file: &File, header: &Header, decoder: &Decoder) -> Result<Option<Vec<u8>>, Refusal> {
    let kind = &decoder.kind;
    if kind.wire == Wire::Text {
        return Ok(None);
    }
    let (o, l) = (file.offset_size, file.length_size);
    let message = if let Some(body) = header.first(file, FILL)? {
        Some(guarded(|| {
            fill_value::parse_new(&mut Their::new(&body), o, l, body.len())
        })?)
    } else if let Some(body) = header.first(file, OLD_FILL)? {
        Some(guarded(|| {
            fill_value::parse_old(&mut Their::new(&body), o, l, body.len())
        })?)
    } else {
        None
    };
    let zeros = || vec![0; kind.data_type.item_size().unwrap_or_default()];
    let Some(value) = message.and_then(|m| m.value) else {
        return Ok(Some(zeros()));
    };
    let count = kind.dims.iter().fold(1_u64, |n, d| n.saturating_mul(*d));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if value.len() != kind.size.saturating_mul(count) {
        return Err(format!("a fill value of {} bytes", value.len()));
    }
    let parts: Vec<&[u8]> = value.chunks_exact(kind.size.max(1)).collect();
    if parts.windows(2).any(|pair| pair.first() != pair.last()) {
        return Err("a fill value that is an array of several values".to_owned());
    }
    let first = parts.first().copied().unwrap_or_default();
    kind.wire.decode(first.to_vec(), kind.size).map(Some)
}

/// Elements one after the other.
#[derive(Debug)]
struct Contiguous {
    flat: Flat,
    decoder: Decoder,
}

fn flat(bytes: Bytes, at: u64, decoder: &Decoder, shape: &[u64]) -> Result<Content, Refusal> {
    if let Bytes::Memory(bytes) = &bytes
        && (bytes.len() as u64) < bytes_of(decoder, shape)?
    {
        return Err("it is cut: its elements are more than its bytes".to_owned());
    }
    let size = decoder.kind.size;
    let flat = Flat::packed(
        bytes,
        at,
        size,
        shape,
        Order::LastFastest,
        Box::new(Elements::Fixed),
    );
    Ok(Content::Boxes(Box::new(Contiguous {
        flat: flat.ok_or("more elements than can be counted")?,
        decoder: decoder.clone(),
    })))
}

impl Boxes for Contiguous {
    fn read(&self, lower: &[u64], shape: &[u64]) -> Result<Elements, Refusal> {
        match self.flat.read(lower, shape)? {
            Elements::Fixed(bytes) => self.decoder.elements(bytes),
            other @ Elements::Variable(_) => Ok(other),
        }
    }

    fn bytes(&self) -> u64 {
        self.flat.bytes()
    }
}
