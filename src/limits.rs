//! Every cap on counts, lengths and depths, in one place.
//!
//! Holds the settable [`Limits`] with their two presets, and the constants that the format itself fixes.
//! Must not hold logic beyond "is this too much". Spec: `format-spec/limits.md`.

/// Most axes an array can have.
pub(crate) const RANK_MAX: usize = 32;
/// Largest finite index; the smallest is its negative. Sums and differences of two indexes then fit an `i64`.
pub(crate) const INDEX_MAX: i64 = (1 << 62) - 2;
/// Largest exclusive upper bound of a domain.
pub(crate) const UPPER_MAX: i64 = INDEX_MAX + 1;
/// Longest codec pipeline: the width of a chunk record's filter mask.
pub(crate) const CODECS_MAX: usize = 8;
/// Longest key in a node.
pub(crate) const KEY_LEN_MAX: usize = 512;
/// Longest value in a node.
pub(crate) const VALUE_LEN_MAX: usize = 2048;
/// Longest node.
pub(crate) const NODE_LEN_MAX: usize = 65_536;
/// Highest level a node may claim.
pub(crate) const LEVEL_MAX: u8 = 12;
/// Longest object, attribute or snapshot name in bytes.
pub(crate) const NAME_LEN_MAX: usize = 255;
/// Longest commit message and snapshot extension in bytes.
pub(crate) const MESSAGE_LEN_MAX: usize = 1024;
/// Longest blob that lies inside its node.
pub(crate) const INLINE_LEN_MAX: usize = 1024;
/// Largest chunk extent per axis.
pub(crate) const CHUNK_EXTENT_MAX: u64 = (1 << 32) - 1;
/// First generation and object id that cannot be written.
pub(crate) const GENERATION_END: u64 = 1 << 61;
/// Most generations the history keeps before it drops the oldest.
pub(crate) const HISTORY_MAX: u64 = 1128;
/// How many history records are dropped at once.
pub(crate) const HISTORY_DROP: u64 = 128;
/// Most chunks one write may store: the keys of a call are held in memory until they are staged together.
pub(crate) const WRITE_CHUNKS_MAX: u64 = 1 << 26;

/// Caps that a caller may set; each is checked before any allocation it would size.
///
/// At the limit passes, one more is [`crate::ErrorKind::LimitExceeded`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Decoded bytes of one chunk or shard.
    pub decoded_chunk_bytes: u64,
    /// Inner chunks of one shard.
    pub inner_chunks: u64,
    /// Window of a zstd frame, in bytes.
    pub zstd_window_bytes: u64,
    /// Bytes returned by one read without the caller's buffer.
    pub read_bytes: u64,
    /// Bytes of one document or attribute value.
    pub value_bytes: u64,
    /// Nesting of JSON and of tagged values.
    pub json_depth: usize,
    /// Attributes of one object.
    pub attributes: u64,
    /// Components of an object path.
    pub path_depth: usize,
    /// Bytes of an object path.
    pub path_bytes: usize,
    /// Index nodes held in memory, in bytes: a cache cap, never an error.
    pub node_cache_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded_chunk_bytes: 1 << 31,
            inner_chunks: 1 << 24,
            zstd_window_bytes: 1 << 27,
            read_bytes: 4 << 30,
            value_bytes: 4 << 20,
            json_depth: 64,
            attributes: 65_536,
            path_depth: 128,
            path_bytes: 4096,
            node_cache_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// The preset for files from strangers: tighter in every respect that a file can drive.
    #[must_use]
    pub fn untrusted() -> Self {
        Self {
            decoded_chunk_bytes: 256 << 20,
            inner_chunks: 1 << 20,
            zstd_window_bytes: 1 << 24,
            read_bytes: 256 << 20,
            value_bytes: 1 << 20,
            json_depth: 32,
            attributes: 4096,
            node_cache_bytes: 16 << 20,
            ..Self::default()
        }
    }
}
