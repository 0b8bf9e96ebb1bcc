//! Documents of arrays and groups. Spec: `format-spec/10-documents.md`.
//!
//! Holds the typed form of a document, its one text, and its validation. Must not know paths, ids or payloads.

use super::dtype::DataType;
use super::json::Json;

/// A codec as Zarr v3 names it; there are no codec numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecSpec {
    /// The registered name, such as `bytes`, `zstd`, `numcodecs.shuffle`.
    pub name: String,
    /// Members of `configuration`, in order; empty when the document has none.
    pub configuration: Vec<(String, Json)>,
}

/// Everything an array's document says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayDocument {
    /// Element type.
    pub(crate) data_type: DataType,
    /// One half-open range per axis.
    pub(crate) domain: Vec<(i64, i64)>,
    /// Element coordinate of the lower corner of chunk 0, per axis.
    pub(crate) origin: Vec<i64>,
    /// Stored chunk (the shard where there are shards), each 1..=2^32-1.
    pub(crate) chunk_shape: Vec<u64>,
    /// One element's little-endian bytes (for `String`: the text's bytes; for `Bytes`: the bytes).
    pub(crate) fill: Vec<u8>,
    /// The pipeline, 1..=8 codecs.
    pub(crate) codecs: Vec<CodecSpec>,
    /// Names of axes, all `None` when the member is left out.
    pub(crate) dimension_names: Vec<Option<String>>,
    /// Permutation in which coordinates stand in keys.
    pub(crate) key_order: Vec<u8>,
    /// Features a reader must know.
    pub(crate) requires: Vec<String>,
    /// Members this version does not know, kept in order.
    pub(crate) unknown: Vec<(String, Json)>,
}
