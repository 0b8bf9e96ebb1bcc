//! Data types of elements. Spec: `format-spec/10-documents.md`, "Data types".
//!
//! Holds [`DataType`], its document form and its sizes. Must not hold element values (see `fill.rs`), short names (see
//! `short_name.rs`) or other software's spellings (see `npy_descr.rs`).
//!
//! Invariants of a valid type: every length and scale is at least 1; a record has fields of fixed size with unique
//! names, none of them itself a record; an element's size is at most [`ITEM_SIZE_MAX`].

use super::json::{Json, duplicate_name};
use crate::error::{Error, Result};
use crate::limits::NAME_LEN_MAX;

/// Largest element: its fill value, as base64, still fits the largest document.
pub(crate) const ITEM_SIZE_MAX: usize = 3 << 20;
/// Most fields of one record.
pub(crate) const FIELDS_MAX: usize = 4096;

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
    /// Bytes of one width, padded with zero bytes at the end: text of HDF5, NumPy's `S`.
    NullTerminatedBytes {
        /// Bytes per element, padding included, at least 1.
        length: u32,
    },
    /// Text of one width, each character an UTF-32 code of four bytes, padded with zeros at the end: NumPy's `U`.
    FixedUtf32 {
        /// Characters per element, padding included, at least 1.
        chars: u32,
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

const UNITS: [(TimeUnit, &str); 14] = [
    (TimeUnit::Year, "Y"),
    (TimeUnit::Month, "M"),
    (TimeUnit::Week, "W"),
    (TimeUnit::Day, "D"),
    (TimeUnit::Hour, "h"),
    (TimeUnit::Minute, "m"),
    (TimeUnit::Second, "s"),
    (TimeUnit::Millisecond, "ms"),
    (TimeUnit::Microsecond, "us"),
    (TimeUnit::Nanosecond, "ns"),
    (TimeUnit::Picosecond, "ps"),
    (TimeUnit::Femtosecond, "fs"),
    (TimeUnit::Attosecond, "as"),
    (TimeUnit::Generic, "generic"),
];

impl TimeUnit {
    /// NumPy's name of the unit.
    pub fn name(self) -> &'static str {
        UNITS
            .iter()
            .find(|(unit, _)| *unit == self)
            .map_or("generic", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        UNITS
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(unit, _)| *unit)
    }
}

/// Types without parameters: type, document name, size, size of the numbers in it, short name.
pub(super) type Plain = (DataType, &'static str, usize, usize, &'static str);

pub(super) const PLAIN: [Plain; 15] = [
    (DataType::Bool, "bool", 1, 1, "bool"),
    (DataType::Int8, "int8", 1, 1, "i8"),
    (DataType::Int16, "int16", 2, 2, "i16"),
    (DataType::Int32, "int32", 4, 4, "i32"),
    (DataType::Int64, "int64", 8, 8, "i64"),
    (DataType::Uint8, "uint8", 1, 1, "u8"),
    (DataType::Uint16, "uint16", 2, 2, "u16"),
    (DataType::Uint32, "uint32", 4, 4, "u32"),
    (DataType::Uint64, "uint64", 8, 8, "u64"),
    (DataType::Float16, "float16", 2, 2, "f16"),
    (DataType::Bfloat16, "bfloat16", 2, 2, "bf16"),
    (DataType::Float32, "float32", 4, 4, "f32"),
    (DataType::Float64, "float64", 8, 8, "f64"),
    (DataType::Complex64, "complex64", 8, 4, "c64"),
    (DataType::Complex128, "complex128", 16, 8, "c128"),
];

impl DataType {
    pub(super) fn plain(&self) -> Option<&'static Plain> {
        PLAIN.iter().find(|(data_type, ..)| data_type == self)
    }

    /// The plain type of that document name.
    pub(super) fn plain_by_name(name: &str) -> Option<Self> {
        match name {
            "string" => Some(Self::String),
            "bytes" => Some(Self::Bytes),
            _ => PLAIN
                .iter()
                .find(|(_, n, ..)| *n == name)
                .map(|(data_type, ..)| data_type.clone()),
        }
    }

    /// Bytes of one element; `None` for text and bytes of any length, and for a record too large to count.
    pub fn item_size(&self) -> Option<usize> {
        match self {
            Self::RawBytes { length } | Self::NullTerminatedBytes { length } => {
                usize::try_from(*length).ok()
            }
            Self::FixedUtf32 { chars } => usize::try_from(*chars).ok()?.checked_mul(4),
            Self::Datetime64 { .. } | Self::Timedelta64 { .. } => Some(8),
            Self::String | Self::Bytes => None,
            Self::Structured(fields) => fields.iter().try_fold(0_usize, |size, field| {
                size.checked_add(field.data_type.item_size()?)
            }),
            plain => plain.plain().map(|(_, _, size, ..)| *size),
        }
    }

    /// True for text and bytes of any length.
    pub fn is_variable_length(&self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// Size of the equal numbers that an element is made of: 4 for `complex64`, 1 for raw bytes; `None` for records and
    /// variable length.
    pub(crate) fn number_size(&self) -> Option<usize> {
        match self {
            Self::RawBytes { .. } | Self::NullTerminatedBytes { .. } => Some(1),
            Self::FixedUtf32 { .. } => Some(4),
            Self::Datetime64 { .. } | Self::Timedelta64 { .. } => Some(8),
            Self::String | Self::Bytes | Self::Structured(_) => None,
            plain => plain.plain().map(|(_, _, _, number, _)| *number),
        }
    }

    /// True when big and little endian elements differ.
    pub(crate) fn has_byte_order(&self) -> bool {
        match self {
            Self::Structured(fields) => fields.iter().any(|f| f.data_type.has_byte_order()),
            other => other.number_size().is_some_and(|size| size > 1),
        }
    }

    /// Reverses the bytes of every number in whole elements: big endian to little or back.
    pub fn swap_bytes(&self, elements: &mut [u8]) {
        match self {
            Self::Structured(fields) => {
                let Some(item_size) = self.item_size().filter(|size| *size > 0) else {
                    return;
                };
                for element in elements.chunks_exact_mut(item_size) {
                    let mut rest = element;
                    for field in fields {
                        let size = field.data_type.item_size().unwrap_or(0).min(rest.len());
                        let (head, tail) = rest.split_at_mut(size);
                        field.data_type.swap_bytes(head);
                        rest = tail;
                    }
                }
            }
            other => match other.number_size() {
                Some(2) => reverse_each::<2>(elements),
                Some(4) => reverse_each::<4>(elements),
                Some(8) => reverse_each::<8>(elements),
                _ => {}
            },
        }
    }

    /// Checks the invariants of this module.
    pub(crate) fn validate(&self) -> Result<()> {
        self.validate_parameters()?;
        match self.item_size() {
            Some(size) if size <= ITEM_SIZE_MAX => Ok(()),
            None if self.is_variable_length() => Ok(()),
            size => {
                let found = size.map_or("more than can be counted".to_owned(), |s| s.to_string());
                Err(Error::limit("bytes of one element")
                    .expected(format_args!("at most {ITEM_SIZE_MAX}"))
                    .found(found))
            }
        }
    }

    fn validate_parameters(&self) -> Result<()> {
        match self {
            Self::RawBytes { length: 0 }
            | Self::NullTerminatedBytes { length: 0 }
            | Self::FixedUtf32 { chars: 0 } => {
                Err(Error::invalid("length of a type of bytes or text")
                    .expected("at least 1")
                    .found(0))
            }
            Self::Datetime64 { scale, .. } | Self::Timedelta64 { scale, .. }
                if *scale == 0 || i32::try_from(*scale).is_err() =>
            {
                Err(Error::invalid("scale of a time type")
                    .expected("1..=2147483647")
                    .found(scale))
            }
            Self::Structured(fields) => validate_fields(fields),
            _ => Ok(()),
        }
    }

    /// The `data_type` member of a document.
    pub fn to_json(&self) -> Json {
        let with = |name: &str, configuration: Json| {
            Json::object([("name", Json::text(name)), ("configuration", configuration)])
        };
        let time = |name: &str, unit: TimeUnit, scale: u32| {
            let unit = ("unit", Json::text(unit.name()));
            with(
                name,
                Json::object([unit, ("scale_factor", Json::I64(scale.into()))]),
            )
        };
        let sized = |name: &str, length_bytes: i64| {
            with(
                name,
                Json::object([("length_bytes", Json::I64(length_bytes))]),
            )
        };
        match self {
            Self::RawBytes { length } => sized("raw_bytes", (*length).into()),
            Self::NullTerminatedBytes { length } => {
                sized("null_terminated_bytes", (*length).into())
            }
            Self::FixedUtf32 { chars } => {
                sized("fixed_length_utf32", i64::from(*chars).saturating_mul(4))
            }
            Self::Datetime64 { unit, scale } => time("numpy.datetime64", *unit, *scale),
            Self::Timedelta64 { unit, scale } => time("numpy.timedelta64", *unit, *scale),
            Self::Structured(fields) => {
                let fields = fields
                    .iter()
                    .map(|f| Json::Array(vec![Json::text(&f.name), f.data_type.to_json()]))
                    .collect();
                with(
                    "structured",
                    Json::object([("fields", Json::Array(fields))]),
                )
            }
            plain => Json::text(plain.to_string()),
        }
    }

    /// Reads the `data_type` member of a document.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a type this version does not know, `InvalidArgument` for a malformed one.
    pub fn from_json(json: &Json) -> Result<Self> {
        let data_type = Self::from_json_at(json, Place::Array)?;
        data_type.validate()?;
        Ok(data_type)
    }

    fn from_json_at(json: &Json, place: Place) -> Result<Self> {
        let (name, configuration) = name_and_configuration(json)?;
        let int = |member: &str| -> Result<u32> {
            let value = configuration.and_then(|c| c.get(member));
            value
                .and_then(Json::as_u64)
                .and_then(|v| u32::try_from(v).ok())
                .ok_or_else(|| malformed(name, member, "an integer from 1 to 2^32-1", value))
        };
        let unit = || -> Result<TimeUnit> {
            let value = configuration.and_then(|c| c.get("unit"));
            value
                .and_then(Json::as_str)
                .and_then(TimeUnit::from_name)
                .ok_or_else(|| malformed(name, "unit", "a unit such as \"s\"", value))
        };
        match name {
            "raw_bytes" => Ok(Self::RawBytes {
                length: int("length_bytes")?,
            }),
            "null_terminated_bytes" => Ok(Self::NullTerminatedBytes {
                length: int("length_bytes")?,
            }),
            "fixed_length_utf32" => match int("length_bytes")? {
                length if length.is_multiple_of(4) => Ok(Self::FixedUtf32 { chars: length >> 2 }),
                _ => {
                    let value = configuration.and_then(|c| c.get("length_bytes"));
                    Err(malformed(name, "length_bytes", "a multiple of 4", value))
                }
            },
            // Names that other software writes.
            "variable_length_bytes" => Ok(Self::Bytes),
            "numpy.datetime64" => Ok(Self::Datetime64 {
                unit: unit()?,
                scale: int("scale_factor")?,
            }),
            "numpy.timedelta64" => Ok(Self::Timedelta64 {
                unit: unit()?,
                scale: int("scale_factor")?,
            }),
            "structured" | "struct" if place == Place::Array => {
                let value = configuration.and_then(|c| c.get("fields"));
                let fields = value
                    .and_then(Json::as_array)
                    .ok_or_else(|| malformed(name, "fields", "a list of [name, type]", value))?;
                fields_from_json(fields)
            }
            "structured" | "struct" => Err(Error::invalid("field of a record type")
                .expected("a type that is not itself a record")
                .found(name)),
            _ => Self::plain_by_name(name)
                .or_else(|| raw_bits(name))
                .ok_or_else(|| Error::unsupported("data type").found(format_args!("{name:?}"))),
        }
    }
}

/// Where a type stands: records do not nest, so that reading one does not recurse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Array,
    Field,
}

fn reverse_each<const N: usize>(bytes: &mut [u8]) {
    let (numbers, _) = bytes.as_chunks_mut::<N>();
    for number in numbers {
        number.reverse();
    }
}

fn validate_fields(fields: &[Field]) -> Result<()> {
    if fields.is_empty() || fields.len() > FIELDS_MAX {
        return Err(Error::invalid("fields of a record type")
            .expected(format_args!("1..={FIELDS_MAX} fields"))
            .found(fields.len()));
    }
    if let Some(name) = duplicate_name(fields.iter().map(|f| f.name.as_str())) {
        return Err(Error::invalid("fields of a record type")
            .expected("unique names")
            .found(format_args!("{name:?} twice")));
    }
    for field in fields {
        if field.name.is_empty() || field.name.len() > NAME_LEN_MAX {
            return Err(Error::invalid("field name of a record type")
                .expected(format_args!("1..={NAME_LEN_MAX} bytes"))
                .found(field.name.len()));
        }
        if field.data_type.is_variable_length() {
            return Err(
                Error::invalid(format!("field {:?} of a record type", field.name))
                    .expected("a type of fixed size")
                    .found(&field.data_type),
            );
        }
        field.data_type.validate_parameters()?;
    }
    Ok(())
}

fn fields_from_json(fields: &[Json]) -> Result<DataType> {
    if fields.len() > FIELDS_MAX {
        return Err(Error::limit("fields of a record type")
            .expected(format_args!("at most {FIELDS_MAX}"))
            .found(fields.len()));
    }
    let field = |json: &Json| match json.as_array() {
        Some([Json::String(name), data_type]) => Ok(Field {
            name: name.clone(),
            data_type: DataType::from_json_at(data_type, Place::Field)?,
        }),
        Some(_) => Err(bad_field(json)),
        None => named_field(json),
    };
    Ok(DataType::Structured(
        fields.iter().map(field).collect::<Result<_>>()?,
    ))
}

fn bad_field(json: &Json) -> Error {
    malformed("structured", "fields", "[name, type]", Some(json))
}

/// A field as the name `struct` has them: `{"name":..,"data_type":..}`.
fn named_field(json: &Json) -> Result<Field> {
    let [(first, name), (second, data_type)] = json.as_object().unwrap_or_default() else {
        return Err(bad_field(json));
    };
    let (name, data_type) = match (first.as_str(), second.as_str()) {
        ("name", "data_type") => (name, data_type),
        ("data_type", "name") => (data_type, name),
        _ => return Err(bad_field(json)),
    };
    Ok(Field {
        name: name.as_str().ok_or_else(|| bad_field(json))?.to_owned(),
        data_type: DataType::from_json_at(data_type, Place::Field)?,
    })
}

/// Splits `"name"` or `{"name":..,"configuration":{..}}`.
pub(crate) fn name_and_configuration(json: &Json) -> Result<(&str, Option<&Json>)> {
    let broken = || {
        Error::invalid("extension point")
            .expected("a name, or an object of `name` and `configuration`")
            .found(json)
    };
    match json {
        Json::String(name) => Ok((name, None)),
        Json::Object(members) => {
            let mut configuration = None;
            let mut found = None;
            for (member, value) in members {
                match (member.as_str(), value) {
                    ("name", Json::String(name)) => found = Some(name.as_str()),
                    ("configuration", Json::Object(_)) => configuration = Some(value),
                    ("must_understand", Json::Bool(_)) => {}
                    _ => return Err(broken()),
                }
            }
            found.map(|name| (name, configuration)).ok_or_else(broken)
        }
        _ => Err(broken()),
    }
}

fn malformed(name: &str, member: &str, expected: &str, found: Option<&Json>) -> Error {
    let found = found.map_or_else(|| "nothing".to_owned(), Json::to_string);
    Error::invalid(format!("`{member}` of data type {name:?}"))
        .expected(expected)
        .found(found)
}

/// `r24`: raw bytes by their number of bits, a multiple of 8.
pub(super) fn raw_bits(name: &str) -> Option<DataType> {
    let bits: u32 = name.strip_prefix('r')?.parse().ok()?;
    let length = bits.checked_div(8)?;
    (bits > 0 && bits.is_multiple_of(8)).then_some(DataType::RawBytes { length })
}

/// `s`, `10ms`: a unit with an optional count before it.
pub(crate) fn time_step(text: &str) -> Option<(TimeUnit, u32)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (scale, unit) = text.split_at_checked(digits)?;
    let scale = if scale.is_empty() {
        1
    } else {
        scale.parse().ok()?
    };
    Some((TimeUnit::from_name(unit)?, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn record() -> DataType {
        DataType::Structured(vec![
            Field {
                name: "a".into(),
                data_type: DataType::Int16,
            },
            Field {
                name: "b".into(),
                data_type: DataType::Float32,
            },
        ])
    }

    #[test]
    fn the_document_form_is_the_one_of_the_specification() {
        let seconds = DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        };
        let spans = DataType::Timedelta64 {
            unit: TimeUnit::Millisecond,
            scale: 10,
        };
        for (data_type, text) in [
            (DataType::Bool, r#""bool""#),
            (DataType::Uint64, r#""uint64""#),
            (DataType::Bfloat16, r#""bfloat16""#),
            (DataType::Complex128, r#""complex128""#),
            (DataType::String, r#""string""#),
            (DataType::Bytes, r#""bytes""#),
            (
                DataType::RawBytes { length: 3 },
                r#"{"name":"raw_bytes","configuration":{"length_bytes":3}}"#,
            ),
            (
                seconds,
                r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}"#,
            ),
            (
                spans,
                r#"{"name":"numpy.timedelta64","configuration":{"unit":"ms","scale_factor":10}}"#,
            ),
            (
                DataType::NullTerminatedBytes { length: 3 },
                r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":3}}"#,
            ),
            (
                DataType::FixedUtf32 { chars: 2 },
                r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}"#,
            ),
            (
                record(),
                r#"{"name":"structured","configuration":{"fields":[["a","int16"],["b","float32"]]}}"#,
            ),
        ] {
            assert_eq!(data_type.to_json().to_string(), text);
            assert_eq!(
                DataType::from_json(&text.parse().unwrap()).unwrap(),
                data_type
            );
            assert_eq!(
                data_type.to_string().parse::<DataType>().unwrap(),
                data_type,
                "{data_type}"
            );
        }
        assert_eq!(
            DataType::from_json(&Json::text("r24")).unwrap(),
            DataType::RawBytes { length: 3 }
        );
    }

    #[test]
    fn the_names_of_other_software_are_read() {
        let read = |text: &str| DataType::from_json(&text.parse().unwrap()).unwrap();
        assert_eq!(read(r#""variable_length_bytes""#), DataType::Bytes);
        let pairs = r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"float32"}]}}"#;
        assert_eq!(read(pairs), record());
    }

    #[test]
    fn an_unknown_type_is_unsupported_and_named_a_malformed_one_is_invalid() {
        let kind = |text: &str| {
            DataType::from_json(&text.parse().unwrap())
                .unwrap_err()
                .kind()
        };
        assert_eq!(kind(r#""float128""#), ErrorKind::Unsupported);
        assert_eq!(
            kind(r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":6}}"#),
            ErrorKind::InvalidArgument
        );
        assert_eq!(kind("7"), ErrorKind::InvalidArgument);
        assert_eq!(kind(r#"{"name":"raw_bytes"}"#), ErrorKind::InvalidArgument);
        assert_eq!(
            kind(r#"{"name":"raw_bytes","configuration":{"length_bytes":0}}"#),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            kind(r#"{"name":"raw_bytes","configuration":{"length_bytes":4294967295}}"#),
            ErrorKind::LimitExceeded
        );
        assert_eq!(
            kind(r#"{"name":"numpy.datetime64","configuration":{"unit":"x","scale_factor":1}}"#),
            ErrorKind::InvalidArgument
        );
        let record = r#"{"name":"structured","configuration":{"fields":[["a","int8"]]}}"#;
        let nested =
            format!(r#"{{"name":"structured","configuration":{{"fields":[["a",{record}]]}}}}"#);
        assert_eq!(kind(&nested), ErrorKind::InvalidArgument);
        assert_eq!(
            "{a:{b:i8}}".parse::<DataType>().unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }

    #[test]
    fn swapping_reverses_each_number_of_an_element() {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        DataType::Complex64.swap_bytes(&mut bytes);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 7, 6, 5]);
        let mut bytes = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6];
        record().swap_bytes(&mut bytes);
        assert_eq!(bytes, [2, 1, 6, 5, 4, 3, 2, 1, 6, 5, 4, 3]);
        let mut bytes = [1, 2, 3];
        DataType::RawBytes { length: 3 }.swap_bytes(&mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
        assert!(record().has_byte_order() && !DataType::Bool.has_byte_order());
    }
}
