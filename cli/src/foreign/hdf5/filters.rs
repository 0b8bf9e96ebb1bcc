//! Filter pipelines: the codecs of a container that read the same bytes, or the filters undone here.
//!
//! Holds [`Pipeline`]. Filters are numbered as at the registry of The HDF Group. Must not know where chunks are.

use hdf5_reader::checksum::fletcher32;
use hdf5_reader::filters::{deflate, nbit, scaleoffset, shuffle, szip};
use hdf5_reader::io::Cursor as Their;
use hdf5_reader::messages::filter_pipeline;
use orthant::{CodecSpec, Json};

use super::bitshuffle;
use super::file::{File, guarded};
use super::wire::Kind;
use crate::foreign::cursor::Cursor;
use crate::foreign::{Payload, Refusal};
use crate::json::uint;

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const SZIP: u16 = 4;
const NBIT: u16 = 5;
const SCALE_OFFSET: u16 = 6;
const LZF: u16 = 32000;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZSTD: u16 = 32015;

/// Most codecs of a container's pipeline, the one that makes bytes among them.
const CODECS_MAX: usize = 8;

/// The mask of a chunk that went through no filter.
pub(super) const UNFILTERED: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Filter {
    id: u16,
    name: Option<String>,
    values: Vec<u32>,
}

/// The filters that chunks went through, first one first.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipeline {
    filters: Vec<Filter>,
}

impl Pipeline {
    pub(super) fn parse(file: &File, body: &[u8]) -> Result<Self, Refusal> {
        let (o, l) = (file.offset_size, file.length_size);
        let message = guarded(|| filter_pipeline::parse(&mut Their::new(body), o, l, body.len()))?;
        let filters = message.filters.into_iter().map(|filter| Filter {
            id: filter.id,
            name: filter.name,
            values: filter.client_data,
        });
        Ok(Self {
            filters: filters.collect(),
        })
    }

    /// The pipeline under which a container reads chunks as they are stored; none where it reads none of them so.
    pub(super) fn codecs(&self, kind: &Kind) -> Option<Vec<CodecSpec>> {
        let endian = Json::String(kind.endian()?.to_owned());
        if self.filters.len() >= CODECS_MAX {
            return None;
        }
        let mut codecs = vec![CodecSpec::new("bytes").with("endian", endian)];
        for (place, filter) in self.filters.iter().enumerate() {
            let last = place.saturating_add(1) == self.filters.len();
            codecs.push(filter.codec(place, last)?);
        }
        Some(codecs)
    }

    /// Why chunks cannot be decoded here; none where they can.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let foreign = self.filters.iter().find(|f| !f.is_undone_here())?;
        Some(match &foreign.name {
            Some(name) if !name.trim_matches('\0').is_empty() => {
                format!("filter {} ({})", foreign.id, name.trim_matches('\0'))
            }
            _ => format!("filter {}", foreign.id),
        })
    }

    /// A stored chunk as [`Pipeline::codecs`] reads it; its bytes again where this one has to be decoded.
    pub(super) fn frame(&self, bytes: Vec<u8>, mask: u32, len: usize) -> Result<Payload, Vec<u8>> {
        let mut skipped = 0_u8;
        for place in 0..self.filters.len() {
            if is_skipped(mask, place) {
                // The codec that makes bytes comes before those of the filters.
                skipped |= u32::try_from(place)
                    .ok()
                    .and_then(|place| 2_u8.checked_shl(place))
                    .unwrap_or_default();
            }
        }
        let last = self.filters.len().saturating_sub(1);
        let ends_in =
            |id: u16| self.filters.get(last).is_some_and(|f| f.id == id) && !is_skipped(mask, last);
        // A sum that is wrong is told now, and one in the other order is no container's.
        if ends_in(FLETCHER32) && sum_of(&bytes).is_none_or(|(sum, wanted)| sum != wanted) {
            return Err(bytes);
        }
        let lz4 = ends_in(LZ4);
        let framed = if lz4 { reframed(&bytes, len) } else { None };
        match framed {
            None if lz4 => Err(bytes),
            Some(bytes) => Ok(Payload::Encoded {
                bytes,
                skipped,
                reframed: true,
            }),
            None => Ok(Payload::Encoded {
                bytes,
                skipped,
                reframed: false,
            }),
        }
    }

    /// A stored chunk without its filters, of `len` bytes.
    pub(super) fn decode(&self, bytes: Vec<u8>, mask: u32, len: usize) -> Result<Vec<u8>, Refusal> {
        // What an earlier filter adds, no later one has to take off first.
        let most = len.saturating_add(len >> 3).saturating_add(4096);
        let mut bytes = bytes;
        for (place, filter) in self.filters.iter().enumerate().rev() {
            if !is_skipped(mask, place) {
                bytes = filter.undo(bytes, most)?;
            }
        }
        if bytes.len() != len {
            return Err(format!(
                "{} bytes come out of its filters, where {len} must",
                bytes.len()
            ));
        }
        Ok(bytes)
    }
}

fn is_skipped(mask: u32, place: usize) -> bool {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    mask.checked_shr(place).unwrap_or(0) & 1 != 0
}

impl Filter {
    fn value(&self, place: usize) -> Option<u32> {
        self.values.get(place).copied()
    }

    /// The codec of a container whose bytes are the filter's.
    fn codec(&self, place: usize, last: bool) -> Option<CodecSpec> {
        let level = |n: Option<u32>, most: u32| uint(u64::from(n.unwrap_or(1).min(most)));
        Some(match self.id {
            DEFLATE => CodecSpec::new("numcodecs.zlib").with("level", level(self.value(0), 9)),
            // Behind another filter bytes may be left over, which each does in its own way.
            SHUFFLE if place == 0 => CodecSpec::new("numcodecs.shuffle")
                .with("elementsize", uint(u64::from(self.value(0)?))),
            FLETCHER32 => CodecSpec::new("numcodecs.fletcher32"),
            ZSTD => CodecSpec::new("zstd")
                .with("level", level(self.value(0).or(Some(3)), 22))
                .with("checksum", Json::Bool(false)),
            LZ4 if last => CodecSpec::new("numcodecs.lz4").with("acceleration", uint(1)),
            BLOSC => self.blosc()?,
            _ => return None,
        })
    }

    /// Two versions, bytes of an element, bytes of a chunk, level, shuffle, compressor.
    fn blosc(&self) -> Option<CodecSpec> {
        let shuffle = ["noshuffle", "shuffle", "bitshuffle"];
        let shuffle = shuffle.get(usize::try_from(self.value(5).unwrap_or(1)).ok()?)?;
        let cname = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
        let cname = cname.get(usize::try_from(self.value(6).unwrap_or(0)).ok()?)?;
        let text = |t: &str| Json::String(t.to_owned());
        Some(
            CodecSpec::new("blosc")
                .with("typesize", uint(u64::from(self.value(2)?)))
                .with("cname", text(cname))
                .with("clevel", uint(u64::from(self.value(4).unwrap_or(5).min(9))))
                .with("shuffle", text(shuffle))
                .with("blocksize", uint(0)),
        )
    }

    fn is_undone_here(&self) -> bool {
        matches!(
            self.id,
            DEFLATE | SHUFFLE | FLETCHER32 | SZIP | NBIT | SCALE_OFFSET | LZF | LZ4 | BITSHUFFLE
        )
    }

    /// Takes the filter off; what comes out has at most `most` bytes.
    fn undo(&self, bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, Refusal> {
        match self.id {
            DEFLATE => guarded(|| deflate::decompress_with_limit(&bytes, most)),
            SHUFFLE => {
                let size = usize::try_from(self.value(0).unwrap_or(1)).unwrap_or(1);
                guarded(|| Ok(shuffle::unshuffle(&bytes, size)))
            }
            FLETCHER32 => unsummed(bytes),
            SZIP => guarded(|| szip::decompress_with_limit(&bytes, &self.values, most)),
            NBIT => guarded(|| nbit::decompress_with_limit(&bytes, &self.values, most)),
            SCALE_OFFSET => {
                guarded(|| scaleoffset::decompress_with_limit(&bytes, &self.values, most))
            }
            LZF => unlzf(&bytes, most),
            LZ4 => unlz4(&bytes, most),
            BITSHUFFLE => bitshuffle::undo(&bytes, &self.values, most),
            other => Err(format!("filter {other}")),
        }
    }
}

/// Takes off a checksum and compares; HDF5 1.6 wrote the words of it in the other order on some machines.
fn unsummed(mut bytes: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let (sum, wanted) = sum_of(&bytes).ok_or("a chunk that is shorter than its checksum")?;
    let turned = {
        let [a, b, c, d] = wanted.to_le_bytes();
        u32::from_le_bytes([b, a, d, c])
    };
    if sum != wanted && sum != turned {
        return Err("its checksum is wrong".to_owned());
    }
    bytes.truncate(bytes.len().saturating_sub(4));
    Ok(bytes)
}

/// The checksum behind a chunk, and the one it should be.
fn sum_of(bytes: &[u8]) -> Option<(u32, u32)> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    Some((u32::from_le_bytes(*sum), fletcher32(body)))
}

/// One block of LZ4 without the words that its filter puts before it.
struct Block<'a> {
    bytes: &'a [u8],
    /// Bytes that come out.
    len: usize,
}

/// The blocks of the LZ4 filter: all bytes, bytes of a block, then each with its length, all highest byte first.
fn blocks(bytes: &[u8], most: usize) -> Result<Vec<Block<'_>>, Refusal> {
    let mut cursor = Cursor::big(bytes);
    let total = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
    if total > most {
        return Err(format!("a chunk that says it has {total} bytes"));
    }
    let block_len = cursor.count()?.max(1);
    let (mut left, mut blocks) = (total, Vec::new());
    while left > 0 {
        let len = cursor.count()?;
        let bytes = cursor.take(len)?;
        let out = left.min(block_len);
        blocks.push(Block { bytes, len: out });
        left = left.saturating_sub(out);
    }
    Ok(blocks)
}

/// One compressed block under the word that numcodecs puts before it.
fn reframed(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let blocks = blocks(bytes, len).ok()?;
    let [block] = blocks.as_slice() else {
        return None;
    };
    // As long as its content: stored as it is.
    if block.len != len || block.bytes.len() == len {
        return None;
    }
    let mut out = u32::try_from(len).ok()?.to_le_bytes().to_vec();
    out.extend_from_slice(block.bytes);
    Some(out)
}

fn unlz4(bytes: &[u8], most: usize) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    for block in blocks(bytes, most)? {
        if block.bytes.len() == block.len {
            out.extend_from_slice(block.bytes);
            continue;
        }
        let mut part = vec![0; block.len];
        let written = lz4_flex::block::decompress_into(block.bytes, &mut part)
            .map_err(|e| format!("LZ4: {e}"))?;
        if written != block.len {
            return Err("an LZ4 block that is too short".to_owned());
        }
        out.append(&mut part);
    }
    Ok(out)
}

/// LZF: runs of literals, and references back of at least three bytes.
fn unlzf(bytes: &[u8], most: usize) -> Result<Vec<u8>, Refusal> {
    let mut cursor = Cursor::little(bytes);
    let mut out: Vec<u8> = Vec::new();
    while !cursor.rest().is_empty() {
        let control = usize::from(cursor.u8()?);
        if control < 32 {
            out.extend_from_slice(cursor.take(control.saturating_add(1))?);
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len = len.saturating_add(usize::from(cursor.u8()?));
            }
            let back = (control & 31) << 8 | usize::from(cursor.u8()?);
            let from = out.len().checked_sub(back.saturating_add(1));
            let from = from.ok_or("LZF: a reference to before the beginning")?;
            for at in from..from.saturating_add(len).saturating_add(2) {
                let byte = out.get(at).copied().unwrap_or_default();
                out.push(byte);
            }
        }
        if out.len() > most {
            return Err("LZF: more than a chunk comes out".to_owned());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(id: u16, values: &[u32]) -> Filter {
        Filter {
            id,
            name: None,
            values: values.to_vec(),
        }
    }

    #[test]
    fn lzf_repeats_what_lies_behind() {
        // Three literals, then four bytes from three back.
        let packed = [2, b'a', b'b', b'c', 2 << 5, 2];
        assert_eq!(unlzf(&packed, 100).unwrap(), b"abcabca");
        assert!(unlzf(&packed, 6).is_err(), "more than was promised");
        assert!(unlzf(&[2 << 5, 9], 100).is_err(), "before the beginning");
        assert!(unlzf(&[5, 1], 100).is_err(), "cut");
    }

    #[test]
    fn lz4_blocks_are_one_after_the_other_or_one_reframed() {
        let head = |total: u8, block: u8| vec![0, 0, 0, 0, 0, 0, 0, total, 0, 0, 0, block];
        // Two blocks stored as they are.
        let mut stored = head(5, 3);
        stored.extend([0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 2, 4, 5]);
        assert_eq!(unlz4(&stored, 5).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(reframed(&stored, 5), None);
        assert!(unlz4(&stored, 4).is_err());
        // One block: a literal, then eleven of it again, then five literals.
        let block = [0x18, 7, 1, 0, 0x50, 7, 7, 7, 7, 7];
        let mut one = head(18, 18);
        one.extend([0, 0, 0, 10]);
        one.extend(block);
        assert_eq!(unlz4(&one, 18).unwrap(), [7; 18]);
        assert_eq!(
            reframed(&one, 18).unwrap(),
            [&[18, 0, 0, 0], &block[..]].concat()
        );
    }

    #[test]
    fn a_wrong_sum_is_told_and_a_turned_one_is_read() {
        let body = [1, 2, 3, 4, 5, 6];
        let sum = fletcher32(&body).to_le_bytes();
        let [a, b, c, d] = sum;
        let pipeline = Pipeline {
            filters: vec![filter(FLETCHER32, &[])],
        };
        for (sum, as_it_is, reads) in [
            ([a, b, c, d], true, true),
            ([b, a, d, c], false, true),
            ([a, b, c, d ^ 1], false, false),
        ] {
            let bytes = [&body[..], &sum].concat();
            assert_eq!(pipeline.frame(bytes.clone(), 0, 6).is_ok(), as_it_is);
            assert_eq!(pipeline.decode(bytes, 0, 6).is_ok(), reads);
        }
    }

    #[test]
    fn skipped_filters_are_the_codecs_behind_the_one_that_makes_bytes() {
        let pipeline = Pipeline {
            filters: vec![filter(SHUFFLE, &[2]), filter(DEFLATE, &[4])],
        };
        for (mask, bits) in [(0, 0), (1, 2), (2, 4), (3, 6), (UNFILTERED, 6)] {
            match pipeline.frame(vec![0; 4], mask, 4) {
                Ok(Payload::Encoded { skipped, .. }) => assert_eq!(skipped, bits),
                other => panic!("{other:?}"),
            }
        }
    }
}
