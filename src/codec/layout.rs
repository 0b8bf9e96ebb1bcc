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
    /// Offsets within an element of bytes that may only be 0 or 1.
    pub(crate) bools: Vec<usize>,
    /// NumPy's code of an integer type (`i4`, `u1`), which is also what delta takes.
    pub(crate) integer: Option<&'static str>,
}

impl Layout {
    pub(crate) fn of(data_type: &DataType) -> Self {
        let words = |item_len, word_len| Self {
            item_len: Some(item_len),
            word_len,
            bools: Vec::new(),
            integer: None,
        };
        let integer = |item_len, code| Self {
            integer: Some(code),
            ..words(item_len, item_len)
        };
        match data_type {
            DataType::Bool => Self {
                bools: vec![0],
                ..words(1, 1)
            },
            DataType::Int8 => integer(1, "i1"),
            DataType::Int16 => integer(2, "i2"),
            DataType::Int32 => integer(4, "i4"),
            DataType::Int64 => integer(8, "i8"),
            DataType::Uint8 => integer(1, "u1"),
            DataType::Uint16 => integer(2, "u2"),
            DataType::Uint32 => integer(4, "u4"),
            DataType::Uint64 => integer(8, "u8"),
            DataType::Float16 | DataType::Bfloat16 => words(2, 2),
            DataType::Float32 => words(4, 4),
            DataType::Float64 | DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } => {
                words(8, 8)
            }
            DataType::Complex64 => words(8, 4),
            DataType::Complex128 => words(16, 8),
            DataType::RawBytes { length } => {
                words(usize::try_from(*length).unwrap_or(usize::MAX), 1)
            }
            DataType::String | DataType::Bytes => Self {
                item_len: None,
                ..words(0, 1)
            },
            DataType::Structured(fields) => {
                let mut record = words(0, 1);
                for field in fields {
                    record.push(&Self::of(&field.data_type));
                }
                record
            }
        }
    }

    /// Appends a field of a record. Byte order never applies inside records: outside readers take them as little-endian.
    fn push(&mut self, field: &Self) {
        let start = self.item_len.unwrap_or(0);
        self.bools
            .extend(field.bools.iter().map(|at| start.saturating_add(*at)));
        self.item_len = self
            .item_len
            .and_then(|start| field.item_len.map(|len| start.saturating_add(len)));
    }
}
