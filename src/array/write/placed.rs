//! Chunks whose payloads have a length that is known before they are made: raw ones, or ones with nothing but a filter.
//!
//! Holds [`Job::write_placed`]. Such payloads get their places first, in order, and are then made and written one by one
//! while they are still in the processor's caches; what a compressor makes has to wait until its place is known. Must
//! not merge: only wholly covered chunks come here.

use crate::array::element::Source;
use crate::array::parallel;
use crate::bytes::crc32;
use crate::codec::is_repeated;
use crate::error::Result;
use crate::format::extent::Extent;
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::Coords;
use crate::txn::WriterState;

use super::{Content, Job, PARALLEL_MIN, Staged};

impl Job<'_> {
    /// Writes a batch of chunks and lists what is to be staged; `false`, and nothing is done, where it is not for this
    /// file.
    pub(super) fn write_placed(&self, chunks: &[Coords], staged: &mut Staged) -> Result<bool> {
        let layout = self.layout;
        let (Content::Block(Source::Fixed(block)), None) = (self.content, &self.inner) else {
            return Ok(false);
        };
        let Some(len) = layout.chunk.pipeline.encoded_size().exact() else {
            return Ok(false);
        };
        let covered = |c: &Coords| {
            let covered = layout.chunk.grid.covered(c, &layout.domain);
            self.plan.covers(c, &covered)
        };
        if !WriterState::places(len) || !chunks.iter().all(covered) {
            return Ok(false);
        }
        let blank = self.each(chunks.iter().collect(), |c| self.is_blank(c, block))?;
        let mut work = Vec::with_capacity(chunks.len());
        for (c, blank) in chunks.iter().zip(blank) {
            let place = if blank {
                None
            } else {
                self.writer.reserve(len, layout.payload_align())?
            };
            work.push((c, place));
        }
        let records = self.each(work, |(c, place)| {
            let record = place.map(|offset| self.put(c, block, offset)).transpose();
            Ok((c, record.map_err(|e| e.in_chunk(c))?))
        })?;
        for (c, record) in records {
            let receipt = &mut staged.receipt;
            let (counter, bytes) = match record {
                Some(_) => (&mut receipt.chunks_written, len as u64),
                None => (&mut receipt.chunks_removed, 0),
            };
            *counter = counter.saturating_add(1);
            receipt.bytes_written = receipt.bytes_written.saturating_add(bytes);
            let key = key::chunk(self.id, c, layout.key_order());
            staged.changes.push((key, record.map(|r| r.encode())));
        }
        Ok(true)
    }

    fn each<T: Send, R: Send>(
        &self,
        work: Vec<T>,
        f: impl Fn(T) -> Result<R> + Sync + Send,
    ) -> Result<Vec<R>> {
        if work.len().saturating_mul(self.layout.chunk.byte_len()) < PARALLEL_MIN {
            return work.into_iter().map(f).collect();
        }
        parallel::map(work, f)
    }

    /// True when nothing but the fill value goes into a chunk.
    fn is_blank(&self, c: &[i64], block: &[u8]) -> Result<bool> {
        let tile = &self.layout.chunk;
        let item = tile.item.unwrap_or(1);
        let mut blank = true;
        self.copier(c)?.for_each(|run| {
            let step = run.src_step.max(1).saturating_mul(item);
            let from = block
                .get(run.src.saturating_mul(item)..)
                .unwrap_or_default();
            blank = blank
                && if step == item {
                    let row = from.get(..run.len.saturating_mul(item));
                    is_repeated(&tile.fill, row.unwrap_or_default())
                } else {
                    let mut cells = from.chunks(step).take(run.len);
                    cells.all(|cell| cell.get(..item) == Some(&*tile.fill))
                };
        });
        Ok(blank)
    }

    /// Makes a payload and writes it at its place.
    fn put(&self, c: &[i64], block: &[u8], offset: u64) -> Result<ChunkRecord> {
        let pipeline = &self.layout.chunk.pipeline;
        let write = |payload: &[u8]| {
            self.writer.write_reserved(offset, payload)?;
            let (len, crc) = (payload.len() as u64, crc32(payload));
            let extent = Extent { offset, len, crc };
            Ok(ChunkRecord::Stored { extent, mask: 0 })
        };
        self.with_elements(c, block, |elements| {
            if pipeline.is_raw() {
                return write(elements);
            }
            let mut payload = self.spare.lock().pop().unwrap_or_default();
            pipeline.encode(elements, &mut payload)?;
            let record = write(&payload);
            self.spare.lock().push(payload);
            record
        })
    }
}
