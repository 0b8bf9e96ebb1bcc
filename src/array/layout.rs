//! An array's document, compiled for use: domain, chunk grid, pipelines, sizes.
//!
//! Holds [`Layout`] and [`Tile`]. Everything here is fixed until the document changes. Must not read payloads.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::bytes::crc32c_append;
use crate::codec::{Pipeline, Shard};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::document::ArrayDocument;
use crate::format::extent::Extent;
use crate::grid::{ChunkGrid, Domain};
use crate::limits::Limits;
use crate::txn::CacheKey;

/// Blocks of one shape that are encoded by themselves: the chunks of an array, or the inner chunks of its shards.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) grid: ChunkGrid,
    pub(crate) pipeline: Arc<Pipeline>,
    /// Elements per axis.
    pub(crate) shape: SmallVec<[usize; 8]>,
    /// Elements.
    pub(crate) len: usize,
    /// Bytes of an element; none where elements have any length.
    pub(crate) item: Option<usize>,
    /// One element.
    pub(crate) fill: Vec<u8>,
}

/// Raw chunks from this many bytes on start at a multiple of 64: the gaps are at most a few percent then.
const RAW_ALIGNED_FROM: usize = 1024;

/// What a document says, checked and ready.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) document: ArrayDocument,
    pub(crate) domain: Domain,
    /// What one index entry stands for: a chunk, or a shard.
    pub(crate) chunk: Tile,
    /// The chunks within a shard, where parts of a shard can be had by themselves.
    inner: Option<Tile>,
    /// Checksum over all that says how payloads are decoded.
    form: u32,
    /// Decoded chunks are kept for later reads.
    pub(crate) keeps: bool,
}

/// The part of a payload that a cache key means by these numbers: all of it, its shard index, or that it was verified.
/// Inner chunks count from 0 and stay below: a shard has at most 2^24.
const PART_WHOLE: u32 = u32::MAX;
const PART_INDEX: u32 = u32::MAX - 1;
const PART_VERIFIED: u32 = u32::MAX - 2;

impl Tile {
    fn new(document: &ArrayDocument, shape: &[u64], pipeline: Arc<Pipeline>) -> Result<Self> {
        let too_large = || {
            Error::limit("chunk")
                .expected("a length that this machine can hold")
                .reason("too_large")
        };
        let extents: SmallVec<[usize; 8]> = shape
            .iter()
            .map(|&n| usize::try_from(n).map_err(|_| too_large()))
            .collect::<Result<_>>()?;
        let len = extents
            .iter()
            .try_fold(1_usize, |n, &e| n.checked_mul(e))
            .ok_or_else(too_large)?;
        pipeline.check_elements(&document.fill)?;
        Ok(Self {
            grid: ChunkGrid::new(&document.origin, shape)?,
            pipeline,
            shape: extents,
            len,
            item: document.data_type.item_size(),
            fill: document.fill.clone(),
        })
    }

    /// The element of a constant record: its first bytes, as many as the type has; the padding is zero.
    pub(crate) fn constant<'e>(&self, record: &'e [u8; 16]) -> Result<&'e [u8]> {
        let fault = || {
            Error::corrupt("constant chunk")
                .expected("an element of at most 16 bytes, zero padded")
                .found("other bytes")
        };
        let (element, padding) = self
            .item
            .and_then(|n| record.split_at_checked(n))
            .ok_or_else(fault)?;
        if padding.iter().any(|&b| b != 0) {
            return Err(fault());
        }
        self.pipeline.check_elements(element)?;
        Ok(element)
    }

    /// Decoded bytes; 0 where elements have any length.
    pub(crate) fn byte_len(&self) -> usize {
        self.len.saturating_mul(self.item.unwrap_or(0))
    }
}

impl Layout {
    /// Compiles `document`.
    ///
    /// # Errors
    /// `Unsupported` for a codec this build does not have; `LimitExceeded` for a chunk above the limit.
    pub(crate) fn new(document: ArrayDocument, limits: &Limits) -> Result<Self> {
        let domain = Domain::new(document.domain.iter().map(|&(lo, hi)| lo..hi))?;
        let pipeline = Arc::new(Pipeline::new(
            &document.codecs,
            &document.data_type,
            &document.chunk_shape,
            &document.fill,
            limits,
        )?);
        let inner = match pipeline.shard() {
            Some((shard, true)) => {
                let shape: Vec<u64> = shard.inner_shape().iter().map(|n| *n as u64).collect();
                Some(Tile::new(&document, &shape, Arc::clone(shard.inner()))?)
            }
            _ => None,
        };
        Ok(Self {
            chunk: Tile::new(&document, &document.chunk_shape, pipeline)?,
            form: form(&document),
            keeps: true,
            inner,
            domain,
            document,
        })
    }

    /// The same for one pass over everything: nothing that is read stays in the cache.
    pub(crate) fn without_cache(self) -> Self {
        Self {
            keeps: false,
            ..self
        }
    }

    /// The shard codec and its inner chunks, where parts of a payload can be had by themselves.
    pub(crate) fn sharded(&self) -> Option<(&Shard, &Tile)> {
        let inner = self.inner.as_ref()?;
        self.chunk.pipeline.shard().map(|(shard, _)| (shard, inner))
    }

    pub(crate) fn fill(&self) -> &[u8] {
        &self.document.fill
    }

    /// Bytes of an element; none where elements have any length.
    pub(crate) fn item(&self) -> Option<usize> {
        self.chunk.item
    }

    pub(crate) fn key_order(&self) -> &[u8] {
        &self.document.key_order
    }

    /// Where payloads start: raw ones are aligned for vector loads and borrowed views, unless they are so small that the
    /// gaps would weigh more than the elements.
    pub(crate) fn payload_align(&self) -> u64 {
        let bytes = self.chunk.len.saturating_mul(self.chunk.item.unwrap_or(0));
        if self.chunk.pipeline.is_raw() && bytes >= RAW_ALIGNED_FROM {
            64
        } else {
            crate::format::ALIGN
        }
    }

    /// The key of a decoded chunk, of which the others of its extent follow.
    pub(crate) fn cache_key(&self, id: ObjectId, extent: Extent) -> CacheKey {
        CacheKey::new(id, self.form, extent, PART_WHOLE)
    }
}

/// Where payloads of an array with this document start: at multiples of this. None where this build cannot read it.
pub(crate) fn payload_align(document: ArrayDocument, limits: &Limits) -> Option<u64> {
    Some(Layout::new(document, limits).ok()?.payload_align())
}

/// The key of an inner chunk.
pub(crate) fn inner_key(key: CacheKey, number: usize) -> CacheKey {
    key.part(u32::try_from(number).unwrap_or(PART_VERIFIED - 1))
}

/// The key of a shard's index.
pub(crate) fn index_key(key: CacheKey) -> CacheKey {
    key.part(PART_INDEX)
}

/// The key of the note that an extent was verified.
pub(crate) fn verified_key(key: CacheKey) -> CacheKey {
    key.part(PART_VERIFIED)
}

/// Checksum over type, shape, codecs and fill value.
fn form(document: &ArrayDocument) -> u32 {
    let text = format!("{:?}", document.data_type);
    let mut crc = crc32c_append(0, text.as_bytes());
    for extent in &document.chunk_shape {
        crc = crc32c_append(crc, &extent.to_le_bytes());
    }
    for codec in &document.codecs {
        crc = crc32c_append(crc, codec.to_json().to_string().as_bytes());
    }
    crc32c_append(crc, &document.fill)
}
