//! Encoded <-> decoded payload: what a `CodecSpec` names, and the pipeline that runs them. Spec: `format-spec/10-documents.md`.
//!
//! Holds one file a codec, the [`Pipeline`] that chains them, and the public [`Codec`] that describes one.
//! Must not know file offsets, locks or the index.
//!
//! Promise: a payload is exactly what a Zarr v3 pipeline of the same names produces, and the decoder of a payload gets
//! the length it must produce from the array's document, never from the payload.
#![warn(clippy::arithmetic_side_effects)]

#[cfg(feature = "blosc")]
mod blosc;
#[cfg(feature = "deflate")]
mod deflate;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "zstd")]
mod zstd;

mod bytes;
mod checksum;
#[cfg_attr(
    not(feature = "zstd"),
    expect(dead_code, reason = "only zstd has a switch among its parameters")
)]
mod config;
mod decoded;
mod delta;
mod fill;
mod glance;
mod lanes;
mod layout;
#[cfg_attr(
    not(any(feature = "zstd", feature = "lz4", feature = "deflate")),
    expect(dead_code, reason = "only compressors have outputs of unknown length")
)]
mod output;
mod pipeline;
mod scratch;
mod shard;
mod shard_index;
mod shuffle;
mod spec;
mod steps;
mod transpose;
mod vlen;

#[cfg(test)]
mod tests;

pub(crate) use decoded::Decoded;
pub(crate) use fill::{is_repeated, repeat};
pub(crate) use pipeline::Pipeline;
pub(crate) use shard::Shard;
pub(crate) use shard_index::ShardIndex;
pub use spec::Codec;
pub(crate) use spec::{readers, resolve, shard_spec};
pub(crate) use vlen::VariableItems;
