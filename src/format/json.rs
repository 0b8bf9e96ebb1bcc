//! JSON as documents and attributes hold it: exact integers, ordered unique members, bounded depth, one text.
//!
//! Holds the [`Json`] value. Must not know what any member means.

/// A JSON value. Members keep their order; integers stay exact over the ranges of `i64` and `u64`.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer without fraction or exponent that fits an `i64`.
    I64(i64),
    /// An integer above `i64::MAX`.
    U64(u64),
    /// Any other number; always finite.
    F64(f64),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Json>),
    /// Members in order; names are unique.
    Object(Vec<(String, Json)>),
}
