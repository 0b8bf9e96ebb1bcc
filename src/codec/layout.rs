//! What a codec has to know of an element: its size, its byte-ordered words, its booleans.
//!
//! Holds [`Layout`]. Must not hold element values.

use crate::format::dtype::DataType;

/// The shape of one element in memory: little-endian, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of one element; `None` for types of variable length.
    pub(crate) item_len: Option<usize>,
    /// Width of the words that byte order applies to; 1 where it does not apply.
    pub(crate) word_len: usize,
    /// Records have a byte order outside readers do not agree on, so only little-endian ones are made.
    pub(crate) record: bool,
    /// Offsets within an element of bytes that may only be 0 or 1.
    pub(crate) bools: Vec<usize>,
    /// NumPy's code of an integer type (`i4`, `u1`), which is also what delta takes.
    pub(crate) integer: Option<&'static str>,
}

impl Layout {
    pub(crate) fn of(data_type: &DataType) -> Self {
        Self {
            item_len: data_type.item_size(),
            word_len: data_type.number_size().unwrap_or(1),
            record: matches!(data_type, DataType::Structured(_)),
            bools: bools(data_type),
            integer: integer(data_type),
        }
    }
}

fn bools(data_type: &DataType) -> Vec<usize> {
    match data_type {
        DataType::Bool => vec![0],
        DataType::Structured(fields) => {
            let mut start = 0usize;
            let mut all = Vec::new();
            for field in fields {
                let inner = bools(&field.data_type).into_iter();
                all.extend(inner.map(|at| start.saturating_add(at)));
                start = start.saturating_add(field.data_type.item_size().unwrap_or(0));
            }
            all
        }
        _ => Vec::new(),
    }
}

fn integer(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int8 => "i1",
        DataType::Int16 => "i2",
        DataType::Int32 => "i4",
        DataType::Int64 => "i8",
        DataType::Uint8 => "u1",
        DataType::Uint16 => "u2",
        DataType::Uint32 => "u4",
        DataType::Uint64 => "u8",
        _ => return None,
    })
}
