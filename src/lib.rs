//! One file of chunked n-dimensional arrays that grow in every direction, with atomic commits.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "rooms land before the handles that use them; removed with the last of them"
    )
)]

mod array;
mod bytes;
mod catalog;
mod codec;
mod container;
mod error;
mod format;
mod grid;
mod group;
mod index;
mod inspect;
mod limits;
mod store;
#[doc(hidden)]
pub mod testing;
mod txn;

pub use array::{
    Appender, Array, ArraySpec, Block, ChunkCoords, ChunkExtent, ChunkState, DynArray,
    DynArraySpec, Element, Elements, IntoDomain, ReadPath, Receipt, ShrinkReceipt, StoredChunk,
    WriteReceipt, ZeroBased,
};
pub use catalog::{AttributeEntries, Attributes, ObjectKind};
pub use codec::Codec;
pub use container::{Container, Locking, OpenOptions, ReadVia, Snapshot, Writer};
pub use error::{Detail as ErrorDetail, Error, ErrorKind, Result};
pub use format::document::CodecSpec;
pub use format::dtype::{DataType, Field, TimeUnit};
pub use format::json::Json;
pub use format::tree::Tree;
pub use format::typed::TypedArray;
pub use format::value::AttributeValue;
pub use grid::{Bound, Domain, Region, RegionItem, Selection, Stepped};
pub use group::{Group, Member};
pub use inspect::{CheckLevel, Problem, Statistics};
pub use limits::Limits;
pub use txn::{CacheStatistics, OpenReport, OtherSlot};

/// The README's program, run as a documentation test.
#[cfg(all(doctest, feature = "ndarray", feature = "zstd"))]
#[doc = include_str!("../README.md")]
pub mod readme {}
