//! A look at a payload that other software made, without decoding it.
//!
//! Holds [`Pipeline::glance`]: what can be told from lengths, frame headers, checksums and shard indexes, at about the cost of
//! reading the bytes. A payload that passes may still be damaged within a compressed stream. Must not decompress.

use super::output::wrong_len;
use super::pipeline::Pipeline;
use super::steps::ByteStep;
use crate::error::Result;

impl Pipeline {
    /// Refuses bytes that are no payload of this pipeline, as far as their outside shows; `mask` as in
    /// [`Pipeline::decode`].
    ///
    /// # Errors
    /// `Corrupt`; `LimitExceeded` for a frame that needs more memory than the limits allow.
    pub(crate) fn glance(&self, payload: &[u8], mask: u8) -> Result<()> {
        let mut bytes = payload;
        for (step, size) in self.plan(mask)?.into_iter().rev() {
            let exact = size.exact();
            match step {
                ByteStep::Checksum(checksum) => bytes = checksum.verify(bytes)?,
                ByteStep::Shuffle(_) => return of_len("numcodecs.shuffle", exact, bytes),
                #[cfg(feature = "zstd")]
                ByteStep::Zstd(zstd) => return zstd.glance(bytes, exact),
                #[cfg(feature = "lz4")]
                ByteStep::Lz4(_) => return super::lz4::Lz4::glance(bytes, exact),
                #[cfg(feature = "deflate")]
                ByteStep::Deflate(deflate) => return deflate.glance(bytes, exact),
                #[cfg(feature = "blosc")]
                ByteStep::Blosc(_) => return super::blosc::Blosc::glance(bytes, exact),
            }
        }
        let Some((shard, _)) = self.shard() else {
            // Items of variable length tell theirs only one by one.
            return of_len("bytes", self.serialized.exact(), bytes);
        };
        let index = shard.index_of(bytes)?;
        let at = |x: u64| usize::try_from(x).unwrap_or(usize::MAX);
        for number in 0..shard.index().count() {
            let inner = |e: crate::error::Error| e.in_inner(&shard.position(number));
            if let Some(range) = index.get(number).map_err(inner)? {
                let part = bytes.get(at(range.start)..at(range.end));
                shard
                    .inner()
                    .glance(part.unwrap_or_default(), 0)
                    .map_err(inner)?;
            }
        }
        Ok(())
    }
}

fn of_len(name: &'static str, exact: Option<usize>, bytes: &[u8]) -> Result<()> {
    match exact {
        Some(len) if len != bytes.len() => Err(wrong_len(name, len, bytes.len())),
        _ => Ok(()),
    }
}
