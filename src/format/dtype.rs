//! Data types of elements. Spec: `format-spec/10-documents.md`, "Data types".
//!
//! Holds [`DataType`], its document form and its sizes. Must not hold element values (see `fill.rs`).

/// The type of an array's elements.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataType {
    /// One byte, 0 or 1.
    Bool,
    /// 8-bit signed integer.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 8-bit unsigned integer.
    Uint8,
    /// 16-bit unsigned integer.
    Uint16,
    /// 32-bit unsigned integer.
    Uint32,
    /// 64-bit unsigned integer.
    Uint64,
    /// IEEE 754 binary16.
    Float16,
    /// bfloat16.
    Bfloat16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Two binary32: real, imaginary.
    Complex64,
    /// Two binary64: real, imaginary.
    Complex128,
    /// Opaque bytes of one length.
    RawBytes {
        /// Bytes per element, at least 1.
        length: u32,
    },
    /// Time since the Unix epoch, an `i64` count of `scale` units; `i64::MIN` is "not a time".
    Datetime64 {
        /// The unit's name as NumPy writes it: `s`, `ms`, `us`, `ns`, `D`, ...
        unit: TimeUnit,
        /// How many units one count is.
        scale: u32,
    },
    /// A span of time, an `i64` count of `scale` units.
    Timedelta64 {
        /// The unit.
        unit: TimeUnit,
        /// How many units one count is.
        scale: u32,
    },
    /// UTF-8 text of any length.
    String,
    /// Bytes of any length.
    Bytes,
    /// Fixed-size records of named fields, packed in order.
    Structured(Vec<Field>),
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// The field's name, unique in its record.
    pub name: String,
    /// A fixed-size type.
    pub data_type: DataType,
}

/// Unit of a time type, by NumPy's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// `Y`
    Year,
    /// `M`
    Month,
    /// `W`
    Week,
    /// `D`
    Day,
    /// `h`
    Hour,
    /// `m`
    Minute,
    /// `s`
    Second,
    /// `ms`
    Millisecond,
    /// `us`
    Microsecond,
    /// `ns`
    Nanosecond,
    /// `ps`
    Picosecond,
    /// `fs`
    Femtosecond,
    /// `as`
    Attosecond,
    /// `generic`
    Generic,
}
