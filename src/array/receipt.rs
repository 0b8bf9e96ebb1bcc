//! What one read or write cost.
//!
//! Holds [`Receipt`] and [`WriteReceipt`]. Plain numbers: must not compute anything about chunks itself.

/// How a read reached its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadPath {
    /// Whole chunks were decoded.
    #[default]
    Whole,
    /// Only the inner chunks asked for were fetched and decoded.
    Partial,
    /// Rows were copied straight out of raw payloads.
    Rows,
}

impl ReadPath {
    /// `whole`, `partial` or `rows`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Partial => "partial",
            Self::Rows => "rows",
        }
    }
}

/// What a read touched, fetched and decoded. Counts are of stored chunks (shards where there are shards).
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receipt {
    /// Chunks of the grid that the region meets.
    pub chunks_touched: u64,
    /// Those without an entry: they read as the fill value.
    pub chunks_absent: u64,
    /// Those with a declared value and no payload.
    pub chunks_constant: u64,
    /// Those served from a cache of decoded chunks.
    pub chunks_cached: u64,
    /// Those whose payload was decoded.
    pub chunks_decoded: u64,
    /// Inner chunks decoded.
    pub inner_decoded: u64,
    /// Payload and shard-index bytes fetched; never nodes or slots.
    pub bytes_fetched: u64,
    /// Bytes of the decoded chunks and inner chunks, whole.
    pub bytes_decoded: u64,
    /// Bytes of the elements asked for.
    pub bytes_wanted: u64,
    /// How the elements were reached.
    pub path: ReadPath,
    /// Why the partial path did not apply, where one could have been expected.
    pub reason: Option<&'static str>,
}

impl Receipt {
    /// Bytes decoded per byte asked for; 0 when nothing was asked for.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a ratio for people, not for arithmetic"
    )]
    pub fn amplification(&self) -> f64 {
        if self.bytes_wanted == 0 {
            0.0
        } else {
            self.bytes_decoded as f64 / self.bytes_wanted as f64
        }
    }

    /// Adds what another part of the same read cost.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.chunks_touched, other.chunks_touched);
        sum(&mut self.chunks_absent, other.chunks_absent);
        sum(&mut self.chunks_constant, other.chunks_constant);
        sum(&mut self.chunks_cached, other.chunks_cached);
        sum(&mut self.chunks_decoded, other.chunks_decoded);
        sum(&mut self.inner_decoded, other.inner_decoded);
        sum(&mut self.bytes_fetched, other.bytes_fetched);
        sum(&mut self.bytes_decoded, other.bytes_decoded);
        sum(&mut self.bytes_wanted, other.bytes_wanted);
        if other.path != ReadPath::Whole {
            self.path = other.path;
        }
        self.reason = self.reason.or(other.reason);
    }
}

/// What a write stored.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteReceipt {
    /// Chunks whose entry was written (payload, constant or declared fill).
    pub chunks_written: u64,
    /// Chunks whose entry was removed because nothing but fill is left.
    pub chunks_removed: u64,
    /// Chunks that were decoded because the region covers them in part.
    pub chunks_decoded: u64,
    /// Inner chunks that were decoded for that reason.
    pub inner_decoded: u64,
    /// Inner chunks encoded.
    pub inner_encoded: u64,
    /// Inner chunks whose encoded bytes were taken over as they are.
    pub inner_kept: u64,
    /// Encoded bytes appended.
    pub bytes_written: u64,
}

/// What a change of the domain did to stored chunks.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShrinkReceipt {
    /// Chunks whose entry went.
    pub dropped: u64,
    /// Chunks that stay, with elements outside the new domain reset to fill.
    pub scrubbed: u64,
    /// Of those, the chunks encoded anew; of shards, the inner chunks: the others keep their bytes or go.
    pub recoded: u64,
    /// Encoded bytes appended for the scrubbed chunks.
    pub bytes_written: u64,
}
