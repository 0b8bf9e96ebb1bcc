//! Raw chunks read where they lie in the file's map.
//!
//! Holds [`ChunkView`] and the call that gives one. Whoever asks for it answers for the file with an [`Undisturbed`], which
//! only an unsafe call makes; from there on everything is checked. Must not copy elements.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::record::ChunkRecord;

use crate::txn::{Payload, Undisturbed, View};

use super::element::Element;
use super::layout::{Layout, verified_key};
use super::typed::Array;

/// The elements of a raw chunk, C order, in the map of the file. Keeps its snapshot, and with it the chunk's place in the
/// file. Elements outside the array's domain are fill.
pub struct ChunkView<T> {
    bytes: Payload,
    shape: Vec<usize>,
    _pin: View,
    elements: PhantomData<fn() -> T>,
}

impl<T> ChunkView<T> {
    /// Elements per axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl<T: Element> Deref for ChunkView<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // Both were seen to fit when the view was made.
        T::view(&self.bytes).unwrap_or_default()
    }
}

impl<T> fmt::Debug for ChunkView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkView({:?})", self.shape)
    }
}

#[cfg(feature = "ndarray")]
#[cfg_attr(docsrs, doc(cfg(feature = "ndarray")))]
impl<T: Element> ChunkView<T> {
    /// The elements with their axes.
    ///
    /// # Errors
    /// `LimitExceeded` for a shape that `ndarray` does not take.
    pub fn array(&self) -> Result<ndarray::ArrayViewD<'_, T>> {
        ndarray::ArrayViewD::from_shape(ndarray::IxDyn(&self.shape), self)
            .map_err(|_| Error::limit("chunk").found(format_args!("{:?}", self.shape)))
    }
}

impl<T: Element> Array<T> {
    /// A raw chunk (no codec but `bytes`) where it lies in the map of the file, without a copy; `None` where no payload is
    /// stored for it. Its checksum is compared the first time. Of a handle from a snapshot. `Array::read_chunk` is the call
    /// that copies, takes any codecs and asks for no promise.
    ///
    /// # Errors
    /// As `Array::read_chunk`; `Unsupported` where elements cannot be lent, with the reason `codecs`, `no_map` (a container
    /// in memory, or read by positioned reads), `alignment` or `element` (a Rust type whose memory is not the stored bytes);
    /// `InvalidArgument` for a writer's handle.
    pub fn chunk_view(&self, coord: &[i64], _promise: Undisturbed) -> Result<Option<ChunkView<T>>> {
        let lent = self.with_record(coord, |layout, record| self.lend(layout, &record))?;
        Ok(lent.flatten())
    }

    fn lend(&self, layout: &Layout, record: &ChunkRecord) -> Result<Option<ChunkView<T>>> {
        let ChunkRecord::Stored { extent, mask } = *record else {
            return Ok(None);
        };
        let refuse = |reason: &'static str| {
            Error::unsupported("a chunk lent from the map")
                .at(extent.offset)
                .help("`read_chunk` copies it")
                .reason(reason)
        };
        let View::Snapshot(_) = self.view() else {
            return Err(Error::invalid("handle")
                .expected("one of a snapshot, whose chunks stay where they are")
                .found("a writer's"));
        };
        if !layout.chunk.pipeline.is_raw() || mask != 0 {
            return Err(refuse("codecs"));
        }
        let view = self.view();
        let seen = verified_key(layout.cache_key(self.id(), extent));
        let bytes = if view.shards().get::<()>(&seen).is_some() {
            view.payload_range(extent, 0..extent.len)?
        } else {
            let bytes = view.payload(extent)?;
            view.shards().put(seen, Arc::new(()), 0);
            bytes
        };
        if !matches!(bytes, Payload::Lent(_)) {
            return Err(refuse("no_map"));
        }
        if bytes.len() != layout.chunk.byte_len() {
            return Err(Error::corrupt("raw chunk")
                .expected(format_args!("{} bytes", layout.chunk.byte_len()))
                .found(bytes.len())
                .at(extent.offset)
                .spanning(extent.len));
        }
        match T::view(&bytes) {
            Some(elements) if elements.len() == layout.chunk.len => {}
            Some(_) => return Err(refuse("element")),
            None if T::view(&[]).is_none() => return Err(refuse("element")),
            None => return Err(refuse("alignment")),
        }
        Ok(Some(ChunkView {
            bytes,
            shape: layout.chunk.shape.to_vec(),
            _pin: view.clone(),
            elements: PhantomData,
        }))
    }
}
