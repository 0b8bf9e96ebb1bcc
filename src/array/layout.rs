//! An array's document, compiled for use: domain, chunk grid, pipeline, sizes.
//!
//! Holds [`Layout`]. Everything here is fixed until the document changes. Must not read payloads.

use smallvec::SmallVec;

use crate::codec::Pipeline;
use crate::error::{Error, Result};
use crate::format::document::ArrayDocument;
use crate::grid::{ChunkGrid, Domain};
use crate::limits::Limits;

/// What a document says, checked and ready.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) document: ArrayDocument,
    pub(crate) domain: Domain,
    pub(crate) grid: ChunkGrid,
    pub(crate) pipeline: Pipeline,
    /// Elements per axis of a chunk.
    pub(crate) chunk_shape: SmallVec<[usize; 8]>,
    /// Elements of a chunk.
    pub(crate) chunk_len: usize,
    /// Bytes of an element; none where elements have any length.
    pub(crate) item: Option<usize>,
}

impl Layout {
    /// Compiles `document`.
    ///
    /// # Errors
    /// `Unsupported` for a codec this build does not have; `LimitExceeded` for a chunk above the limit.
    pub(crate) fn new(document: ArrayDocument, limits: &Limits) -> Result<Self> {
        let domain = Domain::new(document.domain.iter().map(|&(lo, hi)| lo..hi))?;
        let grid = ChunkGrid::new(&document.origin, &document.chunk_shape)?;
        let too_large = || {
            Error::limit("chunk")
                .expected("a length that this machine can hold")
                .reason("too_large")
        };
        let chunk_shape: SmallVec<[usize; 8]> = document
            .chunk_shape
            .iter()
            .map(|&n| usize::try_from(n).map_err(|_| too_large()))
            .collect::<Result<_>>()?;
        let chunk_len = chunk_shape
            .iter()
            .try_fold(1_usize, |n, &e| n.checked_mul(e))
            .ok_or_else(too_large)?;
        let item = document.data_type.item_size();
        let pipeline = Pipeline::new(
            &document.codecs,
            &document.data_type,
            &document.chunk_shape,
            &document.fill,
            limits,
        )?;
        Ok(Self {
            document,
            domain,
            grid,
            pipeline,
            chunk_shape,
            chunk_len,
            item,
        })
    }

    /// Bytes of a decoded chunk; 0 where elements have any length.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_len.saturating_mul(self.item.unwrap_or(0))
    }

    pub(crate) fn fill(&self) -> &[u8] {
        &self.document.fill
    }

    pub(crate) fn key_order(&self) -> &[u8] {
        &self.document.key_order
    }

    /// Where payloads start: raw ones are aligned for vector loads and borrowed views.
    pub(crate) fn payload_align(&self) -> u64 {
        if self.pipeline.is_raw() {
            64
        } else {
            crate::format::ALIGN
        }
    }
}
