//! Codec `numcodecs.delta`: array to array, filter.
//!
//! Produces: the first element, then each element less the one before it, in wrapping arithmetic of the element type,
//! over the chunk flattened in C order (the semantics of numcodecs' `Delta`).
//! Parameters: `dtype`, the array's own type as NumPy or Zarr names it; `astype`, absent or the same. Output: as long as
//! the input. Empty input gives empty output.
//!
//! A `dtype` with `>` is refused: zarr-python 3.1.6 takes differences of swapped words for it and does not read its own
//! chunks back.
//! Floats are refused: numcodecs subtracts and adds them as floats, which does not give back every bit.

use super::config::Config;
use super::layout::Layout;
use crate::error::Result;
use crate::format::dtype::DataType;
use crate::format::json::Json;

/// The parsed codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Width of the integers: 1, 2, 4 or 8. Wrapping differences do not depend on the sign.
    item_len: usize,
}

impl Delta {
    pub(crate) fn parse(mut config: Config<'_>, layout: &Layout) -> Result<Self> {
        let (Some(code), Some(item_len)) = (layout.integer, layout.item_len) else {
            return Err(config
                .fault()
                .expected("an array of integers")
                .found("another type, whose differences would not give back every bit"));
        };
        for key in ["dtype", "astype"] {
            match config.text(key)? {
                None if key == "astype" => {}
                None => return Err(config.fault().expected("`dtype`").found("none")),
                Some(given) if is_code(given, code) => {}
                Some(given) => {
                    return Err(config
                        .fault()
                        .expected(format_args!("`{key}` `<{code}`, the array's own type"))
                        .found(given));
                }
            }
        }
        config.finish()?;
        Ok(Self { item_len })
    }

    /// Replaces values by differences, in place; the elements are little-endian.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        match self.item_len {
            1 => differences::<1>(bytes),
            2 => differences::<2>(bytes),
            4 => differences::<4>(bytes),
            _ => differences::<8>(bytes),
        }
    }

    /// Replaces differences by values, in place.
    pub(crate) fn decode(&self, bytes: &mut [u8]) {
        match self.item_len {
            1 => sums::<1>(bytes),
            2 => sums::<2>(bytes),
            4 => sums::<4>(bytes),
            _ => sums::<8>(bytes),
        }
    }
}

/// True for `<i4`, `=i4`, `i4` and `int32`; `|u1` and `>u1` too, since a single byte has no order.
fn is_code(given: &str, code: &str) -> bool {
    let orders: &[char] = if code.ends_with('1') {
        &['<', '=', '|', '>']
    } else {
        &['<', '=']
    };
    given.strip_prefix(orders).unwrap_or(given) == code
        || DataType::from_json(&Json::text(given))
            .is_ok_and(|named| Layout::of(&named).integer == Some(code))
}

/// Widens `N` little-endian bytes; the lowest `8 N` bits of sums and differences are those of the narrow type.
fn load<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut wide = [0; 8];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = from;
    }
    u64::from_le_bytes(wide)
}

fn store<const N: usize>(value: u64, bytes: &mut [u8; N]) {
    for (to, from) in bytes.iter_mut().zip(value.to_le_bytes()) {
        *to = from;
    }
}

fn differences<const N: usize>(bytes: &mut [u8]) {
    let mut before = 0u64;
    for item in bytes.as_chunks_mut::<N>().0 {
        let value = load(*item);
        store(value.wrapping_sub(before), item);
        before = value;
    }
}

fn sums<const N: usize>(bytes: &mut [u8]) {
    let mut sum = 0u64;
    for item in bytes.as_chunks_mut::<N>().0 {
        sum = sum.wrapping_add(load(*item));
        store(sum, item);
    }
}
