//! The index of a shard: where each inner chunk lies. Spec: `format-spec/10-documents.md`, "Shards".
//!
//! Holds [`IndexForm`], how the index is encoded and where it stands, and [`ShardIndex`], a decoded one. Must not decode
//! inner chunks.
//!
//! Nothing in an index is believed: its length follows from the document, and each entry is checked when it is asked
//! for, so that one bad entry takes one inner chunk with it and not the shard.

use std::ops::Range;

use super::bytes::Bytes;
use super::checksum::{Checksum, TRAILER_LEN};
use super::config::Config;
use super::layout::Layout;
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::dtype::DataType;

/// Bytes of one entry.
const ENTRY_LEN: usize = 16;
/// Both words of an inner chunk that is not there.
const ABSENT: u64 = u64::MAX;

/// How an index of known size is encoded, and at which end of the shard it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexForm {
    count: usize,
    words: Bytes,
    checked: bool,
    at_start: bool,
}

impl IndexForm {
    /// The form that `index_codecs` and `index_location` describe, for `count` inner chunks.
    pub(crate) fn new(codecs: &[CodecSpec], at_start: bool, count: usize) -> Result<Self> {
        let fault = || {
            Error::invalid("`index_codecs` of sharding_indexed")
                .reason("shard")
                .expected("bytes, then at most one crc32c")
        };
        let (words, checked) = match codecs {
            [words] => (words, false),
            [words, checksum] if checksum.name == "crc32c" => {
                Config::new(checksum).finish()?;
                (words, true)
            }
            _ => return Err(fault().found(names(codecs))),
        };
        if words.name != "bytes" {
            return Err(fault().found(names(codecs)));
        }
        Ok(Self {
            count,
            words: Bytes::parse(Config::new(words), &Layout::of(&DataType::Uint64))?,
            checked,
            at_start,
        })
    }

    /// Inner chunks of the shard.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// True when the index carries a checksum of its own.
    pub(crate) fn is_checked(&self) -> bool {
        self.checked
    }

    /// Length of the encoded index.
    pub(crate) fn encoded_len(&self) -> usize {
        self.count
            .saturating_mul(ENTRY_LEN)
            .saturating_add(if self.checked { TRAILER_LEN } else { 0 })
    }

    /// Where the index stands in a shard of `shard_len` bytes.
    pub(crate) fn range(&self, shard_len: u64) -> Result<Range<u64>> {
        let len = self.encoded_len() as u64;
        let rest = shard_len.checked_sub(len).ok_or_else(|| {
            Error::corrupt("shard")
                .reason("shard_index")
                .expected(format_args!("an index of {len} bytes"))
                .found(format_args!("{shard_len} bytes in all"))
        })?;
        Ok(if self.at_start {
            0..len
        } else {
            rest..shard_len
        })
    }

    /// Reads the index of a shard of `shard_len` bytes, its checksum verified.
    pub(crate) fn decode(&self, encoded: &[u8], shard_len: u64) -> Result<ShardIndex> {
        let place = self.range(shard_len)?;
        if encoded.len() != self.encoded_len() {
            return Err(Error::corrupt("shard index")
                .reason("shard_index")
                .expected(format_args!("{} bytes", self.encoded_len()))
                .found(encoded.len()));
        }
        let words = if self.checked {
            Checksum::Crc32c.verify(encoded).map_err(|e| rename(&e))?
        } else {
            encoded
        };
        let mut swapped;
        let words = if self.words.swap > 1 {
            swapped = words.to_vec();
            self.words.swap(&mut swapped);
            &swapped
        } else {
            words
        };
        let mut reader = Reader::new("shard index", place.start, words);
        let mut entries = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            entries.push(Entry {
                offset: reader.u64()?,
                len: reader.u64()?,
            });
        }
        reader.finish()?;
        let inside = if self.at_start {
            place.end..shard_len
        } else {
            0..place.start
        };
        let overlapping = overlapping(&entries, &inside);
        Ok(ShardIndex {
            entries,
            inside,
            overlapping,
        })
    }

    /// Lays a shard out: the parts one after the other in their order, the index at its end of them. Tells whether there
    /// was any part. `out` is replaced.
    pub(crate) fn assemble<'p>(
        &self,
        parts: impl ExactSizeIterator<Item = Option<&'p [u8]>>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if parts.len() != self.count {
            return Err(Error::invalid("shard")
                .expected(format_args!("{} inner chunks", self.count))
                .found(parts.len()));
        }
        out.clear();
        if self.at_start {
            out.resize(self.encoded_len(), 0);
        }
        let mut words = Writer::with_capacity(self.encoded_len());
        let mut any = false;
        for part in parts {
            match part {
                Some(bytes) => {
                    words.u64(out.len() as u64);
                    words.u64(bytes.len() as u64);
                    out.extend_from_slice(bytes);
                    any = true;
                }
                None => {
                    words.u64(ABSENT);
                    words.u64(ABSENT);
                }
            }
        }
        let mut index = words.into_vec();
        self.words.swap(&mut index);
        if self.checked {
            Checksum::Crc32c.append(&mut index);
        }
        if self.at_start {
            if let Some(place) = out.get_mut(..index.len()) {
                place.copy_from_slice(&index);
            }
        } else {
            out.extend_from_slice(&index);
        }
        Ok(any)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    offset: u64,
    len: u64,
}

impl Entry {
    fn is_absent(&self) -> bool {
        self.offset == ABSENT && self.len == ABSENT
    }

    /// The bytes it names, where they are some and lie inside.
    fn range(&self, inside: &Range<u64>) -> Option<Range<u64>> {
        let end = self.offset.checked_add(self.len)?;
        let fits = self.len > 0 && self.offset >= inside.start && end <= inside.end;
        fits.then_some(self.offset..end)
    }
}

/// The decoded index of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardIndex {
    entries: Vec<Entry>,
    /// The part of the shard that is not the index.
    inside: Range<u64>,
    /// Inner chunks that share bytes with another, ascending.
    overlapping: Vec<usize>,
}

impl ShardIndex {
    /// Where an inner chunk lies in the shard; `None` when it is absent.
    ///
    /// # Errors
    /// `Corrupt` where its entry cannot be right.
    pub(crate) fn get(&self, inner: usize) -> Result<Option<Range<u64>>> {
        let fault = || Error::corrupt("entry of the shard index").reason("shard_index");
        let Some(entry) = self.entries.get(inner) else {
            return Err(fault()
                .expected(format_args!("one of {} inner chunks", self.entries.len()))
                .found(inner));
        };
        if entry.is_absent() {
            return Ok(None);
        }
        let Some(range) = entry.range(&self.inside) else {
            return Err(fault()
                .expected(format_args!(
                    "at least one byte within {}..{} of the shard",
                    self.inside.start, self.inside.end
                ))
                .found(format_args!(
                    "offset {} + length {}",
                    entry.offset, entry.len
                )));
        };
        if self.overlapping.binary_search(&inner).is_ok() {
            return Err(fault().expected("bytes of its own").found(format_args!(
                "{}..{}, which another inner chunk shares",
                range.start, range.end
            )));
        }
        Ok(Some(range))
    }

    /// Inner chunks that are there.
    pub(crate) fn present_count(&self) -> usize {
        self.entries.iter().filter(|e| !e.is_absent()).count()
    }

    /// Bytes that this takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity().saturating_mul(size_of::<Entry>())
    }
}

/// The inner chunks that share bytes with another. One pass where they lie in order, as they do in shards made here.
fn overlapping(entries: &[Entry], inside: &Range<u64>) -> Vec<usize> {
    let mut end = 0;
    let in_order = entries.iter().filter_map(|e| e.range(inside)).all(|range| {
        let fits = range.start >= end;
        end = range.end;
        fits
    });
    if in_order {
        return Vec::new();
    }
    let ranges = entries.iter().enumerate();
    let mut ranges: Vec<(u64, u64, usize)> = ranges
        .filter_map(|(i, e)| e.range(inside).map(|r| (r.start, r.end, i)))
        .collect();
    ranges.sort_unstable();
    let mut found = Vec::new();
    let mut reach: Option<(u64, usize)> = None;
    for (start, end, i) in ranges {
        match reach {
            Some((last, by)) if start < last => {
                found.extend([by, i]);
                if end > last {
                    reach = Some((end, i));
                }
            }
            _ => reach = Some((end, i)),
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A wrong checksum, told about the index instead of a payload.
fn rename(e: &Error) -> Error {
    Error::corrupt("shard index")
        .reason("checksum")
        .expected(e.expected_value().unwrap_or("a checksum"))
        .found(e.found_value().unwrap_or("another"))
}

fn names(codecs: &[CodecSpec]) -> String {
    let names: Vec<&str> = codecs.iter().map(|c| c.name.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json::Json;

    fn form(endian: &str, checked: bool, at_start: bool, count: usize) -> IndexForm {
        let mut codecs = vec![CodecSpec::new("bytes").with("endian", Json::text(endian))];
        if checked {
            codecs.push(CodecSpec::new("crc32c"));
        }
        IndexForm::new(&codecs, at_start, count).unwrap()
    }

    #[test]
    fn a_shard_is_laid_out_as_the_zarr_text_says_at_both_ends_and_in_both_byte_orders() {
        let parts = [Some(&b"abc"[..]), None, Some(&b"de"[..])];
        for (endian, at_start) in [("little", false), ("big", false), ("little", true)] {
            let form = form(endian, false, at_start, 3);
            let mut shard = Vec::new();
            assert!(form.assemble(parts.into_iter(), &mut shard).unwrap());
            let base = if at_start { 48 } else { 0 };
            let words = [base, 3, u64::MAX, u64::MAX, base + 3, 2];
            let mut index: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            if endian == "big" {
                index.chunks_exact_mut(8).for_each(<[u8]>::reverse);
            }
            let want = if at_start {
                [&index[..], b"abcde"].concat()
            } else {
                [b"abcde", &index[..]].concat()
            };
            assert_eq!(shard, want, "{endian} {at_start}");
            let len = shard.len() as u64;
            let place = form.range(len).unwrap();
            let place = usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap();
            let index = form.decode(&shard[place], len).unwrap();
            assert_eq!(index.get(0).unwrap(), Some(base..base + 3));
            assert_eq!(index.get(1).unwrap(), None);
            assert_eq!(index.get(2).unwrap(), Some(base + 3..base + 5));
            assert_eq!(index.present_count(), 2);
            assert!(index.get(3).unwrap_err().is_corruption());
        }
    }

    fn index_of(entries: &[(u64, u64)], shard_len: u64) -> ShardIndex {
        let form = form("little", true, false, entries.len());
        let mut bytes: Vec<u8> = entries
            .iter()
            .flat_map(|(o, n)| [o.to_le_bytes(), n.to_le_bytes()].concat())
            .collect();
        Checksum::Crc32c.append(&mut bytes);
        form.decode(&bytes, shard_len).unwrap()
    }

    #[test]
    fn a_bad_entry_takes_its_own_inner_chunk_and_no_other() {
        // Four entries and a checksum are 68 bytes: inner chunks end by 932.
        for bad in [
            (933, 1),
            (932, 1),
            (900, 33),
            (900, u64::MAX),
            (u64::MAX, 5),
            (u64::MAX - 3, 8),
            (10, 0),
        ] {
            let index = index_of(&[(0, 10), bad, (u64::MAX, u64::MAX), (20, 912)], 1000);
            assert!(index.get(1).unwrap_err().is_corruption(), "{bad:?}");
            assert_eq!(index.get(0).unwrap(), Some(0..10));
            assert_eq!(index.get(2).unwrap(), None);
            assert_eq!(index.get(3).unwrap(), Some(20..932));
        }
    }

    #[test]
    fn inner_chunks_that_share_bytes_are_refused_and_others_in_any_order_are_not() {
        let index = index_of(&[(50, 10), (0, 20), (19, 5), (30, 10)], 1000);
        assert_eq!(index.get(0).unwrap(), Some(50..60));
        assert!(index.get(1).unwrap_err().is_corruption());
        assert!(index.get(2).unwrap_err().is_corruption());
        assert_eq!(index.get(3).unwrap(), Some(30..40));
        // One that lies in another, with a third behind both.
        let index = index_of(&[(0, 40), (5, 5), (35, 10)], 1000);
        assert!((0..3).all(|i| index.get(i).is_err()));
    }

    #[test]
    fn a_damaged_or_cut_index_is_an_error() {
        let form = form("little", true, false, 2);
        let mut shard = Vec::new();
        form.assemble([Some(&b"x"[..]), None].into_iter(), &mut shard)
            .unwrap();
        let len = shard.len() as u64;
        let index = shard.split_off(1);
        form.decode(&index, len).unwrap();
        for bit in 0..index.len() * 8 {
            let mut bad = index.clone();
            bad[bit >> 3] ^= 1 << (bit & 7);
            let e = form.decode(&bad, len).unwrap_err();
            assert_eq!(e.reason_code(), Some("checksum"), "bit {bit}: {e}");
        }
        for cut in 0..index.len() {
            assert!(form.decode(&index[..cut], len).unwrap_err().is_corruption());
        }
        assert!(form.range(35).unwrap_err().is_corruption());
        assert_eq!(form.range(36).unwrap(), 0..36);
    }
}
