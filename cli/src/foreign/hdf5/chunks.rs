//! The chunks of one dataset: which are stored, and their bytes as a container takes them.
//!
//! Holds [`Stored`]. Where chunks are is remembered for the latest of the walk only, so that memory does not grow with their
//! number. Must not parse.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::dataset::Decoder;
use super::file::File;
use super::filters::{Pipeline, UNFILTERED};
use super::index::{Indexed, Place};
use crate::foreign::{Chunks, Payload, Refusal, Stop};

/// How many places are remembered: more than are taken side by side.
const RECENT_MAX: usize = 4096;

/// The stored chunks of a dataset.
#[derive(Debug)]
pub(super) struct Stored {
    source: Option<Source>,
    decoder: Decoder,
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Source {
    file: Arc<File>,
    indexed: Indexed,
    pipeline: Pipeline,
    /// A container reads them as they are.
    as_stored: bool,
}

#[derive(Debug, Default)]
struct Recent {
    places: HashMap<Vec<u64>, Place>,
    order: VecDeque<Vec<u64>>,
}

impl Recent {
    fn keep(&mut self, coord: &[u64], place: Place) {
        if self.places.insert(coord.to_vec(), place).is_none() {
            self.order.push_back(coord.to_vec());
        }
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }
}

impl Stored {
    pub(super) fn new(
        file: Arc<File>,
        indexed: Indexed,
        pipeline: Pipeline,
        decoder: Decoder,
        as_stored: bool,
    ) -> Self {
        Self {
            source: Some(Source {
                file,
                indexed,
                pipeline,
                as_stored,
            }),
            decoder,
            recent: Mutex::default(),
        }
    }

    /// No chunk at all.
    pub(super) fn none(decoder: Decoder) -> Self {
        Self {
            source: None,
            decoder,
            recent: Mutex::default(),
        }
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chunks for Stored {
    fn for_each(&self, take: &mut dyn FnMut(&[u64]) -> Result<(), Stop>) -> Result<(), Stop> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        // The axes of elements that are arrays have one chunk each.
        let more = self.decoder.kind.dims.len();
        source.indexed.for_each(&source.file, &mut |coord, place| {
            source.file.check(place.address, place.len)?;
            let mut whole = coord.to_vec();
            whole.extend(std::iter::repeat_n(0, more));
            self.recent().keep(&whole, place);
            take(&whole)
        })
    }

    fn read(&self, coord: &[u64]) -> Result<Option<Payload>, Refusal> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let place = self.recent().places.get(coord).copied();
        let place = match place {
            Some(place) => place,
            None => match source.look_up(coord)? {
                Some(place) => place,
                None => return Ok(None),
            },
        };
        source.payload(coord, place, &self.decoder).map(Some)
    }
}

impl Source {
    /// A place that is not remembered.
    fn look_up(&self, coord: &[u64]) -> Result<Option<Place>, Refusal> {
        let mut found = None;
        let walked = self.indexed.for_each(&self.file, &mut |at, place| {
            if coord.starts_with(at) {
                found = Some(place);
            }
            Ok(())
        });
        match walked {
            Err(Stop::Source(reason)) => Err(reason),
            _ => Ok(found),
        }
    }

    fn payload(&self, coord: &[u64], place: Place, decoder: &Decoder) -> Result<Payload, Refusal> {
        let indexed = &self.indexed;
        let len = usize::try_from(indexed.chunk_len).unwrap_or(usize::MAX);
        // No filter makes a chunk much longer; what is, is not read.
        let most = indexed.chunk_len.saturating_mul(2).saturating_add(1 << 16);
        if place.len > most {
            return Err(format!("{} bytes for a chunk of {len}", place.len));
        }
        let stored = usize::try_from(place.len).unwrap_or(usize::MAX);
        let bytes = self.file.read(place.address, stored)?;
        let mut mask = place.mask;
        if indexed.chunked.bare_edges && self.is_partial(coord) {
            mask = UNFILTERED;
        }
        if self.as_stored {
            let bytes = match self.pipeline.frame(bytes, mask, len) {
                Ok(framed) => return Ok(framed),
                Err(bytes) => bytes,
            };
            return self.decoded(bytes, mask, place, decoder);
        }
        self.decoded(bytes, mask, place, decoder)
    }

    fn decoded(
        &self,
        bytes: Vec<u8>,
        mask: u32,
        place: Place,
        decoder: &Decoder,
    ) -> Result<Payload, Refusal> {
        let len = usize::try_from(self.indexed.chunk_len).unwrap_or(usize::MAX);
        let bytes = self.pipeline.decode(bytes, mask, len)?;
        Ok(Payload::Decoded {
            elements: decoder.elements(bytes)?,
            stored: place.len,
        })
    }

    /// Whether a chunk reaches beyond the extents.
    fn is_partial(&self, coord: &[u64]) -> bool {
        let axes = self.indexed.extents.iter().zip(&self.indexed.chunked.chunk);
        coord.iter().zip(axes).any(|(at, (extent, chunk))| {
            let chunk = u64::from(*chunk);
            at.saturating_add(1).saturating_mul(chunk) > *extent
        })
    }
}
