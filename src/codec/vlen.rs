//! Codecs `vlen-utf8` and `vlen-bytes`: array to bytes, for items of any length.
//!
//! Produce: the number of items as u32, then for each item its length as u32 and its bytes, all little-endian (the
//! layout of numcodecs' `VLenUTF8` and `VLenBytes`, which zarr-python uses under these names).
//! Parameters: none. Output: 4 bytes, and 4 more than its bytes for every item. No items give the four bytes of the
//! count.

use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};

/// Items of any length, in C order, held in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VariableItems {
    bytes: Vec<u8>,
    /// Where each item ends in `bytes`.
    ends: Vec<usize>,
}

impl VariableItems {
    pub(crate) fn with_capacity(item_count: usize, byte_len: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(byte_len),
            ends: Vec::with_capacity(item_count),
        }
    }

    pub(crate) fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.bytes.get(start..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Bytes of all items together.
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for VariableItems {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all = Self::default();
        for item in items {
            all.push(item.as_ref());
        }
        all
    }
}

/// Which of the two codecs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vlen {
    Utf8,
    Bytes,
}

impl Vlen {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "vlen-utf8",
            Self::Bytes => "vlen-bytes",
        }
    }

    /// Lays the items out; `max` bounds the result, as it will bound the reader.
    pub(crate) fn encode(self, items: &VariableItems, max: usize) -> Result<Vec<u8>> {
        let len = items
            .len()
            .checked_add(1)
            .and_then(|n| n.checked_mul(4))
            .and_then(|n| n.checked_add(items.byte_len()))
            .filter(|len| *len <= max)
            .ok_or_else(|| {
                Error::limit("chunk of items of variable length")
                    .expected(format_args!("at most {max} bytes with 4 for each item"))
                    .found(format_args!(
                        "{} items of {} bytes together",
                        items.len(),
                        items.byte_len()
                    ))
            })?;
        let count = |n: usize| {
            u32::try_from(n).map_err(|_| {
                Error::limit("item of variable length")
                    .expected("at most 4294967295 bytes or items")
                    .found(n)
            })
        };
        let mut out = Writer::with_capacity(len);
        out.u32(count(items.len())?);
        for item in items.iter() {
            if self == Self::Utf8 && std::str::from_utf8(item).is_err() {
                return Err(Error::invalid("text")
                    .expected("UTF-8")
                    .found("other bytes"));
            }
            out.u32(count(item.len())?);
            out.slice(item);
        }
        Ok(out.into_vec())
    }

    /// Reads exactly `item_count` items and nothing behind them.
    pub(crate) fn decode(self, bytes: &[u8], item_count: usize) -> Result<VariableItems> {
        let mut reader = Reader::new("payload of items of variable length", 0, bytes);
        let stored = reader.u32()?;
        if usize::try_from(stored).ok() != Some(item_count) {
            return Err(Error::corrupt(format!("payload of codec {}", self.name()))
                .expected(format_args!("{item_count} items"))
                .found(stored));
        }
        // Every item has 4 bytes of its own, so the input bounds the count before anything is reserved for it.
        let Some(byte_len) = item_count
            .checked_mul(4)
            .and_then(|lens| reader.remaining().checked_sub(lens))
        else {
            return Err(Error::corrupt(format!("payload of codec {}", self.name()))
                .expected(format_args!("{item_count} items"))
                .found(format_args!("{} bytes", bytes.len())));
        };
        let mut items = VariableItems::with_capacity(item_count, byte_len);
        for index in 0..item_count {
            let len = reader.u32()?;
            let item = reader.take(usize::try_from(len).unwrap_or(usize::MAX))?;
            if self == Self::Utf8 && std::str::from_utf8(item).is_err() {
                return Err(Error::corrupt(format!("payload of codec {}", self.name()))
                    .expected("UTF-8")
                    .found(format_args!("other bytes in item {index}")));
            }
            items.push(item);
        }
        reader.finish()?;
        Ok(items)
    }
}
