//! Region -> chunks -> elements: array specifications, handles, reading, writing, growing.
//!
//! `plan` lays a selection over the chunk grid, `scan` finds the stored chunks, `read` and `write` move elements, `bounds`
//! and `growth` change the domain, `handle` is what users hold. Must not know node layout or syncs.

mod adopt;
mod advice;
mod appender;
#[cfg(all(unix, target_pointer_width = "64"))]
mod borrow;
mod bounds;
mod chunk;
mod chunks;
mod copy;
mod element;
mod encoded;
mod gather;
mod growth;
mod handle;
mod layout;
mod outside;
mod parallel;
mod plan;
mod read;
mod receipt;
mod rechunk;
mod rechunk_blocks;
mod regroup;
mod scan;
mod shard_edit;
mod shards;
mod spec;
mod typed;
mod write;
mod zero_based;

#[cfg(test)]
#[cfg(all(feature = "ndarray", feature = "zstd"))]
mod tests;

pub use adopt::Adopted;
pub use advice::ChunkAdvice;
pub use appender::Appender;
#[cfg(all(unix, target_pointer_width = "64"))]
pub use borrow::ChunkView;
pub use chunks::{ChunkCoords, ChunkExtent};
pub(crate) use copy::copy;
pub use element::{Element, Elements};
pub use encoded::EncodedChunk;
pub use handle::{Block, ChunkState, DynArray, StoredChunk};
pub(crate) use layout::payload_align;
pub use outside::{ChunkReference, ReferencePlace};
pub use receipt::{ReadPath, Receipt, ShrinkReceipt, WriteReceipt};
pub(crate) use rechunk::rechunk;
pub use rechunk::{Rechunk, RechunkReceipt};
pub use spec::{ArraySpec, DynArraySpec, IntoDomain};
pub use typed::Array;
pub use zero_based::ZeroBased;
