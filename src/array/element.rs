//! Rust types that elements can be read as and written from.
//!
//! Holds the sealed [`Element`] trait. Conversions are casts of whole slices where the type allows it; nothing converts
//! between types silently. Must not know chunks.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::dtype::DataType;

pub(crate) use sealed::Source;

/// Elements on their way out: one block in C order, whatever the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elements {
    /// Little-endian bytes, packed.
    Fixed(Vec<u8>),
    /// One byte string an element (UTF-8 where the type is `string`).
    Variable(Vec<Box<[u8]>>),
}

/// A Rust type for elements: `bool`, `i8`..`i64`, `u8`..`u64`, `f32`, `f64`, `[u8; N]` for fixed bytes, [`String`],
/// `Vec<u8>`; `f16` and `bf16` with feature `half`, `Complex<f32>` and `Complex<f64>` with feature `complex`.
///
/// `i64` also reads and writes `datetime64` and `timedelta64`: their stored counts. The trait is sealed.
pub trait Element: sealed::Element {}

impl<T: sealed::Element> Element for T {}

pub(crate) mod sealed {
    use super::{Cow, DataType, Elements, Result};

    /// Elements on their way in: one block in C order.
    #[expect(unnameable_types, reason = "part of the sealed trait")]
    #[derive(Debug)]
    pub enum Source<'a> {
        /// Little-endian bytes, packed.
        Fixed(Cow<'a, [u8]>),
        /// One byte string an element.
        Variable(Vec<&'a [u8]>),
    }

    #[expect(
        unnameable_types,
        reason = "sealed: the set of element types is the format's"
    )]
    pub trait Element: Clone + Send + Sync + 'static {
        /// The type a new array of this element gets.
        fn data_type() -> DataType;
        /// True when a stored type is read and written as this one.
        fn accepts(stored: &DataType) -> bool {
            *stored == Self::data_type()
        }
        fn source(items: &[Self]) -> Source<'_>;
        /// Stored bytes as elements where they lie; none where memory and stored bytes differ, or the place is not aligned.
        fn view(_bytes: &[u8]) -> Option<&[Self]> {
            None
        }
        /// `n` elements to be overwritten; none for types without a byte form.
        fn blank(n: usize) -> Option<Vec<Self>>;
        /// The same memory as little-endian bytes, where the type allows it.
        fn bytes_mut(items: &mut [Self]) -> Option<&mut [u8]>;
        /// Turns little-endian bytes that were read through `bytes_mut` into this machine's order.
        fn fix_order(_items: &mut [Self]) {}
        fn collect(elements: Elements) -> Result<Vec<Self>>;
    }

    pub(super) fn fixed(bytes: &[u8]) -> Source<'_> {
        Source::Fixed(Cow::Borrowed(bytes))
    }
}

/// Little-endian bytes of plain numbers, without a copy on a little-endian machine.
fn number_bytes<T: bytemuck::Pod>(items: &[T], unit: usize) -> Source<'_> {
    let bytes: &[u8] = bytemuck::cast_slice(items);
    if cfg!(target_endian = "little") || unit == 1 {
        return sealed::fixed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swap_units(&mut swapped, unit);
    Source::Fixed(Cow::Owned(swapped))
}

fn swap_units(bytes: &mut [u8], unit: usize) {
    for word in bytes.chunks_exact_mut(unit.max(1)) {
        word.reverse();
    }
}

fn collect_pod<T: bytemuck::Pod>(elements: Elements, unit: usize) -> Result<Vec<T>> {
    let Elements::Fixed(mut bytes) = elements else {
        return Err(mixed_up());
    };
    if cfg!(target_endian = "big") {
        swap_units(&mut bytes, unit);
    }
    Ok(bytemuck::allocation::pod_collect_to_vec(&bytes))
}

/// The handle's type check makes this unreachable; a wrong block is still an error and not a panic.
fn mixed_up() -> Error {
    Error::type_mismatch("elements")
        .expected("fixed-size or variable-length elements, as the array's type says")
}

macro_rules! numbers {
    ($($ty:ty => $dt:ident, $unit:expr $(, also ($also:pat))?;)*) => {$(
        impl sealed::Element for $ty {
            fn data_type() -> DataType {
                DataType::$dt
            }
            $(fn accepts(stored: &DataType) -> bool {
                *stored == Self::data_type() || matches!(stored, $also)
            })?
            fn source(items: &[Self]) -> Source<'_> {
                number_bytes(items, $unit)
            }
            fn view(bytes: &[u8]) -> Option<&[Self]> {
                let alike = cfg!(target_endian = "little") || $unit == 1;
                bytemuck::try_cast_slice(bytes).ok().filter(|_| alike)
            }
            fn blank(n: usize) -> Option<Vec<Self>> {
                Some(bytemuck::allocation::zeroed_vec(n))
            }
            fn bytes_mut(items: &mut [Self]) -> Option<&mut [u8]> {
                Some(bytemuck::cast_slice_mut(items))
            }
            fn fix_order(items: &mut [Self]) {
                if cfg!(target_endian = "big") {
                    swap_units(bytemuck::cast_slice_mut(items), $unit);
                }
            }
            fn collect(elements: Elements) -> Result<Vec<Self>> {
                collect_pod(elements, $unit)
            }
        }
    )*};
}

numbers! {
    i8 => Int8, 1; i16 => Int16, 2; i32 => Int32, 4;
    u8 => Uint8, 1; u16 => Uint16, 2; u32 => Uint32, 4; u64 => Uint64, 8;
    f32 => Float32, 4; f64 => Float64, 8;
}
numbers! { i64 => Int64, 8, also (DataType::Datetime64 { .. } | DataType::Timedelta64 { .. }); }
#[cfg(feature = "half")]
numbers! { half::f16 => Float16, 2; half::bf16 => Bfloat16, 2; }
#[cfg(feature = "complex")]
numbers! { num_complex::Complex<f32> => Complex64, 4; num_complex::Complex<f64> => Complex128, 8; }

impl sealed::Element for bool {
    fn data_type() -> DataType {
        DataType::Bool
    }
    fn source(items: &[Self]) -> Source<'_> {
        sealed::fixed(bytemuck::cast_slice(items))
    }
    fn blank(_: usize) -> Option<Vec<Self>> {
        None
    }
    fn bytes_mut(_: &mut [Self]) -> Option<&mut [u8]> {
        None
    }
    fn collect(elements: Elements) -> Result<Vec<Self>> {
        let Elements::Fixed(bytes) = elements else {
            return Err(mixed_up());
        };
        // The decoder refuses any byte but 0 and 1.
        Ok(bytes.into_iter().map(|b| b != 0).collect())
    }
}

impl<const N: usize> sealed::Element for [u8; N] {
    fn data_type() -> DataType {
        DataType::RawBytes {
            length: u32::try_from(N).unwrap_or(u32::MAX),
        }
    }
    fn source(items: &[Self]) -> Source<'_> {
        sealed::fixed(items.as_flattened())
    }
    fn view(bytes: &[u8]) -> Option<&[Self]> {
        let (items, rest) = bytes.as_chunks::<N>();
        rest.is_empty().then_some(items)
    }
    fn blank(n: usize) -> Option<Vec<Self>> {
        Some(vec![[0; N]; n])
    }
    fn bytes_mut(items: &mut [Self]) -> Option<&mut [u8]> {
        Some(items.as_flattened_mut())
    }
    fn collect(elements: Elements) -> Result<Vec<Self>> {
        match elements {
            Elements::Fixed(bytes) => Ok(bytes.as_chunks::<N>().0.to_vec()),
            Elements::Variable(_) => Err(mixed_up()),
        }
    }
}

impl sealed::Element for String {
    fn data_type() -> DataType {
        DataType::String
    }
    fn source(items: &[Self]) -> Source<'_> {
        Source::Variable(items.iter().map(String::as_bytes).collect())
    }
    fn blank(_: usize) -> Option<Vec<Self>> {
        None
    }
    fn bytes_mut(_: &mut [Self]) -> Option<&mut [u8]> {
        None
    }
    fn collect(elements: Elements) -> Result<Vec<Self>> {
        let Elements::Variable(items) = elements else {
            return Err(mixed_up());
        };
        let text = |b: Box<[u8]>| {
            Self::from_utf8(b.into_vec()).map_err(|_| {
                Error::corrupt("text element")
                    .expected("UTF-8")
                    .found("other bytes")
            })
        };
        items.into_iter().map(text).collect()
    }
}

impl sealed::Element for Vec<u8> {
    fn data_type() -> DataType {
        DataType::Bytes
    }
    fn source(items: &[Self]) -> Source<'_> {
        Source::Variable(items.iter().map(Self::as_slice).collect())
    }
    fn blank(_: usize) -> Option<Vec<Self>> {
        None
    }
    fn bytes_mut(_: &mut [Self]) -> Option<&mut [u8]> {
        None
    }
    fn collect(elements: Elements) -> Result<Vec<Self>> {
        match elements {
            Elements::Variable(items) => Ok(items.into_iter().map(Vec::from).collect()),
            Elements::Fixed(_) => Err(mixed_up()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dtype::TimeUnit;

    /// `i64` was refused for time types, because the macro's arm for it never matched.
    #[test]
    fn i64_stands_for_time_types_and_no_other_number_does() {
        let time = DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        };
        assert!(<i64 as sealed::Element>::accepts(&time));
        assert!(<i64 as sealed::Element>::accepts(&DataType::Int64));
        assert!(!<i64 as sealed::Element>::accepts(&DataType::Uint64));
        assert!(!<u64 as sealed::Element>::accepts(&time));
    }
}
