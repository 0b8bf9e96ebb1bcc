//! One file of chunked n-dimensional arrays that grow in every direction, with atomic commits.
//!
//! A [`Container`] is one file. It holds groups, arrays and attributes. A [`Snapshot`] is one committed generation of it
//! and reads the same for as long as it lives; the [`Writer`] is the one place from which it changes. An [`Array`] covers
//! a [`Domain`]: a box of signed coordinates that are never renumbered. A [`Region`] says which part of it is meant.
//!
//! ```
//! use orthant::{ArraySpec, Container, region};
//! # fn main() -> orthant::Result<()> {
//! let container = Container::in_memory()?;
//! let writer = container.writer()?;
//! let depth = writer.create_array("survey/depth", ArraySpec::<i32>::new(region![-4..4, 0..6]).chunks([2, 3]))?;
//! depth.write_slice(region![-4..-2, 0..3], &[11, 12, 13, 21, 22, 23])?;
//! depth.grow(0, 1, 0)?; // a row below, at coordinate -5; nothing stored moves
//! writer.commit()?;
//!
//! let depth = container.snapshot()?.array::<i32>("survey/depth")?;
//! assert_eq!(depth.read_vec(region![-5..-2, 1])?, [0, 12, 22]);
//! # Ok(())
//! # }
//! ```
//!
//! Numbers in a region are coordinates, negative ones too. What lies outside the domain is an error that shows the domain;
//! nothing is clipped, cast or converted silently. Every fallible call gives [`Error`], whose [`ErrorKind`] says who has to
//! act. No file and no argument is meant to make a call panic.
//!
//! The guide to arrays that grow is `docs/growing.md`; programs are in `examples/`; the bytes are specified in
//! `format-spec/`.
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
mod diff;
mod error;
mod format;
mod grid;
mod group;
mod index;
mod inspect;
mod limits;
mod salvage;
mod snapshots;
mod store;
#[doc(hidden)]
pub mod testing;
mod txn;
mod whole;

#[cfg(all(unix, target_pointer_width = "64"))]
pub use array::ChunkView;
pub use array::{
    Adopted, Appender, Array, ArraySpec, Block, ChunkAdvice, ChunkCoords, ChunkExtent,
    ChunkReference, ChunkState, DynArray, DynArraySpec, Element, Elements, EncodedChunk,
    IntoDomain, ReadPath, Receipt, Rechunk, RechunkReceipt, ReferencePlace, ShrinkReceipt,
    StoredChunk, WriteReceipt, ZeroBased,
};
pub use catalog::{AttributeEntries, Attributes, ObjectKind};
pub use codec::Codec;
#[cfg(any(unix, windows))]
pub use container::NewContainer;
pub use container::{Container, Locking, OpenOptions, ReadVia, Snapshot, Writer};
pub use diff::{Aspect, Changed, Diff, DiffOptions};
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
pub use salvage::{FoundBy, Loss, LossKind, SalvageReport};
pub use snapshots::{At, Holder, LogEntry, RetainedSnapshot, SpaceReport};
#[cfg(all(unix, target_pointer_width = "64"))]
pub use store::Undisturbed;
pub use txn::{CacheStatistics, OpenReport, OtherSlot};
pub use whole::{ArchiveOptions, CopyOptions, CopyReport};

/// The README's program, run as a documentation test.
#[cfg(all(doctest, feature = "ndarray", feature = "zstd"))]
#[doc = include_str!("../README.md")]
pub mod readme {}
