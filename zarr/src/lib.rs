//! Containers of chunked arrays as [Zarr](https://zarr-specs.readthedocs.io) sees them: zero-based, unsigned, with documents.
//!
//! A chunk in a container has the bytes that it has in a Zarr store, so that only documents and names have to be made. This
//! crate makes them ([`mod@write`], [`cover`], [`group`]) and reads those of others ([`read`], [`codecs`], [`place`]); the feature
//! `zarrs` adds `store`, with which the [zarrs](https://docs.rs/zarrs) crate opens a container as one of its stores.
//!
//! Must not decode chunks: that is the container's, or the reader's.

pub mod codecs;
pub mod cover;
pub mod group;
pub mod keys;
pub mod line;
pub mod place;
pub mod read;
#[cfg(feature = "zarrs")]
pub mod store;
pub mod write;

use orthant::Json;

/// Why a document cannot be taken, in words.
pub type Refusal = String;

/// Version of the Zarr documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Version {
    /// `zarr.json`
    #[cfg_attr(feature = "clap", value(name = "3", alias = "zarr3"))]
    V3,
    /// `.zarray`, `.zattrs`, `.zgroup`
    #[cfg_attr(feature = "clap", value(name = "2", alias = "zarr2"))]
    V2,
}

fn uints(values: impl IntoIterator<Item = u64>) -> Json {
    Json::Array(values.into_iter().map(Json::from_u64).collect())
}

fn ints(values: impl IntoIterator<Item = i64>) -> Json {
    Json::Array(values.into_iter().map(Json::I64).collect())
}
