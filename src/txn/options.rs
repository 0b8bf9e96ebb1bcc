//! How a container is opened and made.
//!
//! Holds [`EngineOptions`] and [`NewContainer`]. Must not act.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::limits::Limits;
use crate::store::Access;

use super::clock;

/// Version of this library as slots state it: major, minor, patch in 8, 8 and 16 bits.
const LIBRARY_VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 24
    | number(env!("CARGO_PKG_VERSION_MINOR")) << 16
    | number(env!("CARGO_PKG_VERSION_PATCH"));

/// Decoded bytes that a container keeps when nobody says how many.
pub(crate) const CACHE_BYTES: usize = 256 << 20;

/// Gives the present time in nanoseconds since the Unix epoch, if there is a clock.
pub(crate) type Clock = Arc<dyn Fn() -> Option<i64> + Send + Sync>;

/// What holds for all handles of one open container.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, and none excludes another"
)]
pub(crate) struct EngineOptions {
    pub(crate) limits: Limits,
    pub(crate) access: Access,
    /// Most bytes of decoded chunks that are kept.
    pub(crate) cache_bytes: usize,
    /// Parts of shards are fetched by themselves where the medium can.
    pub(crate) partial_reads: bool,
    /// No writer is given out.
    pub(crate) read_only: bool,
    /// Write although the file system gives no locks: the caller knows that there is one writer.
    pub(crate) without_locks: bool,
    /// Space that nothing reaches any more is written to again.
    pub(crate) reuse: bool,
    /// The container may not grow past this.
    pub(crate) file_bytes_max: u64,
    pub(crate) clock: Clock,
    /// Instance id that slots name; none: random for each writer.
    pub(crate) writer_id: Option<[u8; 16]>,
    pub(crate) writer_version: u32,
    /// Identity of files made from this one; none: random.
    pub(crate) uuid: Option<[u8; 16]>,
    /// How many generations too early space is reused. Nothing but 0 is right: tests show that they notice.
    pub(crate) horizon_error: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            access: Access::Map,
            cache_bytes: CACHE_BYTES,
            partial_reads: true,
            read_only: false,
            without_locks: false,
            reuse: true,
            file_bytes_max: u64::MAX,
            clock: Arc::new(clock::system_now),
            writer_id: None,
            writer_version: LIBRARY_VERSION,
            uuid: None,
            horizon_error: 0,
        }
    }
}

impl EngineOptions {
    /// For files from strangers: the tight limits, and no map that such a file's owner could cut short.
    pub(crate) fn untrusted() -> Self {
        Self {
            limits: Limits::untrusted(),
            access: Access::Read,
            ..Self::default()
        }
    }

    pub(super) fn new_uuid(&self) -> Result<[u8; 16]> {
        self.uuid.map_or_else(clock::random_uuid, Ok)
    }

    pub(super) fn writer_id(&self) -> Result<[u8; 16]> {
        self.writer_id.map_or_else(clock::random_id, Ok)
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("limits", &self.limits)
            .field("access", &self.access)
            .field("cache_bytes", &self.cache_bytes)
            .field("partial_reads", &self.partial_reads)
            .field("read_only", &self.read_only)
            .field("without_locks", &self.without_locks)
            .field("reuse", &self.reuse)
            .field("file_bytes_max", &self.file_bytes_max)
            .finish_non_exhaustive()
    }
}

/// What is chosen when a container is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewContainer {
    /// None: random.
    pub(crate) uuid: Option<[u8; 16]>,
    /// None: now.
    pub(crate) created: Option<i64>,
    /// Informative text, zero padded.
    pub(crate) application: [u8; 16],
}

impl NewContainer {
    pub(super) fn uuid(&self) -> Result<[u8; 16]> {
        self.uuid.map_or_else(clock::random_uuid, Ok)
    }
}

/// A decimal number, for constants.
const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(n) => n,
        Err(_) => 0,
    }
}
