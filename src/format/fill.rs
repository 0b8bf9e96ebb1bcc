//! One element as JSON and as text: fill values, and the values the command prints and reads.
//! Spec: `format-spec/10-documents.md`, "Data types".
//!
//! Holds bytes <-> JSON of one element, and the default fill value. Must not know arrays or chunks.
//!
//! A value is never changed silently. Integers must fit exactly, into a float type too (16777217 is no `float32`); a
//! number written with a point or an exponent is a decimal and takes the nearest float, unless that is infinite or a
//! zero it is not. A document's fill value is the same number as `float64`, so that any reader gets the same bits; what
//! is shown for an element is the shortest decimal that gives its bits back.

use super::base64;
use super::dtype::{DataType, Field};
use super::fixed_text;
use super::float::{BFLOAT16, BINARY16, BINARY32, BINARY64, FloatLayout};
use super::json::Json;
use super::time_text;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The text of `i64::MIN` in a time type.
const NOT_A_TIME: &str = "NaT";
/// Integers below this are exact as `f64`, so a decimal such as `3.0` can stand for one.
const EXACT_FLOAT_END: f64 = 9_007_199_254_740_992.0;

impl DataType {
    /// The fill value of an array that names none: "not a time" for time types, else zero bits or nothing.
    pub fn default_fill(&self) -> Vec<u8> {
        match self {
            Self::Datetime64 { .. } | Self::Timedelta64 { .. } => i64::MIN.to_le_bytes().to_vec(),
            Self::Structured(fields) => fields
                .iter()
                .flat_map(|f| f.data_type.default_fill())
                .collect(),
            other => vec![
                0;
                other
                    .item_size()
                    .unwrap_or(0)
                    .min(super::dtype::ITEM_SIZE_MAX)
            ],
        }
    }

    /// One element's little-endian bytes from its JSON form: the document's (`"NaN"`, `"0x7fc00001"`, `[re,im]`, base64,
    /// `"NaT"`), or a list of field values for a record.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with type and value where the value is not exactly one of the type's.
    pub fn element_from_json(&self, json: &Json) -> Result<Vec<u8>> {
        self.json_to_bytes(json, Rounding::Exact)
    }

    /// The fill value of a document: as [`DataType::element_from_json`], but any finite number takes the nearest float,
    /// as other software's readers do, and a record is base64 only.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with type and value where the value is none of the type's.
    pub fn fill_from_json(&self, json: &Json) -> Result<Vec<u8>> {
        match (self, json) {
            (Self::Structured(_), Json::Array(_)) => Err(refuse(self, json)),
            _ => self.json_to_bytes(json, Rounding::Nearest),
        }
    }

    fn json_to_bytes(&self, json: &Json, rounding: Rounding) -> Result<Vec<u8>> {
        let refuse = || refuse(self, json);
        match self {
            Self::Bool => match json {
                Json::Bool(v) => Ok(vec![u8::from(*v)]),
                _ => Err(refuse()),
            },
            Self::Complex64 | Self::Complex128 => {
                let Some([re, im]) = json.as_array() else {
                    return Err(refuse());
                };
                let layout = if *self == Self::Complex64 {
                    BINARY32
                } else {
                    BINARY64
                };
                let mut bytes = float_from_json(layout, re, rounding).ok_or_else(refuse)?;
                bytes.extend(float_from_json(layout, im, rounding).ok_or_else(refuse)?);
                Ok(bytes)
            }
            Self::Datetime64 { .. } | Self::Timedelta64 { .. } => {
                let count = match json {
                    Json::I64(v) => *v,
                    Json::String(text) if text == NOT_A_TIME => i64::MIN,
                    Json::String(text) => self.time_count(text, rounding).ok_or_else(refuse)?,
                    _ => return Err(refuse()),
                };
                Ok(count.to_le_bytes().to_vec())
            }
            Self::String => json
                .as_str()
                .map(|t| t.as_bytes().to_vec())
                .ok_or_else(refuse),
            Self::Bytes => json.as_str().and_then(base64::decode).ok_or_else(refuse),
            Self::NullTerminatedBytes { .. } | Self::FixedUtf32 { .. } => json
                .as_str()
                .and_then(|text| self.fixed_from_text(text, rounding))
                .ok_or_else(refuse),
            Self::RawBytes { .. } => sized_base64(self, json).ok_or_else(refuse),
            Self::Structured(fields) => match json {
                Json::Array(values) if values.len() == fields.len() => {
                    let pairs = fields.iter().zip(values);
                    let parts = pairs.map(|(f, v)| f.data_type.element_from_json(v));
                    Ok(parts.collect::<Result<Vec<_>>>()?.concat())
                }
                _ => sized_base64(self, json).ok_or_else(refuse),
            },
            number => match float_layout(number) {
                Some(layout) => float_from_json(layout, json, rounding).ok_or_else(refuse),
                None => integer_from_json(number, json).ok_or_else(refuse),
            },
        }
    }

    /// One element's bytes from the text of a command line or a table cell: its JSON form, with `nan`, `inf`, `NaT` and
    /// text without quotes, `True`, and `1.5-2j` for complex numbers.
    ///
    /// # Errors
    ///
    /// As [`DataType::element_from_json`].
    pub fn element_from_text(&self, text: &str) -> Result<Vec<u8>> {
        let refuse = || refuse(self, text);
        let parsed = Json::parse(text, &Limits::default());
        match self {
            Self::String => Ok(match parsed {
                Ok(Json::String(quoted)) => quoted.into_bytes(),
                _ => text.as_bytes().to_vec(),
            }),
            Self::NullTerminatedBytes { .. } | Self::FixedUtf32 { .. } => {
                self.element_from_json(&match parsed {
                    Ok(Json::String(quoted)) => Json::String(quoted),
                    _ => Json::text(text),
                })
            }
            Self::Bool => match text.to_ascii_lowercase().as_str() {
                "true" => Ok(vec![1]),
                "false" => Ok(vec![0]),
                _ => Err(refuse()),
            },
            _ => {
                let json = match parsed {
                    Ok(json) if self.is_written_as(&json) => json,
                    _ => bare_text_to_json(self, text.trim()).ok_or_else(refuse)?,
                };
                self.element_from_json(&json)
            }
        }
        .map_err(|e| e.found(text))
    }

    /// Whether text that happens to be this JSON is meant as JSON: `1234` is base64 for raw bytes, `2` is `2+0j`.
    fn is_written_as(&self, json: &Json) -> bool {
        match self {
            Self::Complex64 | Self::Complex128 => matches!(json, Json::Array(_)),
            Self::RawBytes { .. } | Self::Bytes | Self::Structured(_) => {
                matches!(json, Json::String(_) | Json::Array(_))
            }
            _ => true,
        }
    }

    /// One element for output as JSON: numbers as numbers, non-finite floats as `"NaN"`, `"Infinity"`, `"-Infinity"`,
    /// complex as `[re,im]`, records as lists, bytes as base64, text and null-terminated bytes as text, points in time as `"2020-02-29T12:00:00"`, spans
    /// of time as counts, "not a time" as `"NaT"`.
    ///
    /// Bytes that are no element of this type (a wrong length, text that is not UTF-8) give base64.
    pub fn element_to_json(&self, bytes: &[u8]) -> Json {
        self.to_json_as(bytes, Purpose::Show)
            .unwrap_or_else(|| Json::String(base64::encode(bytes)))
    }

    /// One element for output as text, without quotes; complex numbers as `1.5-2.0j`, records as their JSON list.
    pub fn element_to_text(&self, bytes: &[u8]) -> String {
        match (self, self.element_to_json(bytes)) {
            (Self::Complex64 | Self::Complex128, Json::Array(parts)) => {
                let text = |part: &Json| {
                    part.as_str()
                        .map_or_else(|| part.to_string(), short_non_finite)
                };
                let re = parts.first().map(text).unwrap_or_default();
                let im = parts.get(1).map(text).unwrap_or_default();
                let plus = if im.starts_with('-') { "" } else { "+" };
                format!("{re}{plus}{im}j")
            }
            (_, Json::String(text)) => text,
            (_, json) => json.to_string(),
        }
    }

    /// Bytes or text of one width, given as text; base64 stands for bytes in documents only.
    fn fixed_from_text(&self, text: &str, rounding: Rounding) -> Option<Vec<u8>> {
        let len = self.item_size()?;
        match (self, rounding) {
            (Self::FixedUtf32 { .. }, _) => fixed_text::utf32_from_text(text, len),
            (_, Rounding::Exact) => fixed_text::bytes_from_text(text, len),
            (_, Rounding::Nearest) => fixed_text::bytes_from_base64(text, len),
        }
    }

    /// The count of a point in time given as text; documents hold counts only.
    fn time_count(&self, text: &str, rounding: Rounding) -> Option<i64> {
        match self {
            Self::Datetime64 { unit, scale } if rounding == Rounding::Exact => {
                time_text::parse(text, *unit, *scale)
            }
            _ => None,
        }
    }

    fn time_to_json(&self, count: i64, purpose: Purpose) -> Json {
        let text = match self {
            Self::Datetime64 { unit, scale } if purpose == Purpose::Show => {
                time_text::format(count, *unit, *scale)
            }
            _ => None,
        };
        text.map_or(Json::I64(count), Json::String)
    }

    /// The number of one element of a float type, with every bit where the type is `float64`.
    pub(crate) fn float_value(&self, bytes: &[u8]) -> Option<f64> {
        match self {
            Self::Float64 => Some(f64::from_bits(unsigned(bytes))),
            other => float_layout(other).map(|layout| layout.widen(unsigned(bytes))),
        }
    }

    /// The fill value's form in a document; `None` where the bytes are no element of this type.
    pub fn fill_to_json(&self, bytes: &[u8]) -> Option<Json> {
        self.to_json_as(bytes, Purpose::Document)
    }

    fn to_json_as(&self, bytes: &[u8], purpose: Purpose) -> Option<Json> {
        if self.item_size().is_some_and(|size| size != bytes.len()) {
            return None;
        }
        match self {
            Self::Bool => match bytes {
                [0] => Some(Json::Bool(false)),
                [1] => Some(Json::Bool(true)),
                _ => None,
            },
            Self::Complex64 | Self::Complex128 => {
                let layout = if *self == Self::Complex64 {
                    BINARY32
                } else {
                    BINARY64
                };
                let (re, im) = bytes.split_at_checked(layout.size())?;
                Some(Json::Array(vec![
                    float_to_json(layout, unsigned(re), purpose),
                    float_to_json(layout, unsigned(im), purpose),
                ]))
            }
            Self::Datetime64 { .. } | Self::Timedelta64 { .. } => Some(match signed(bytes) {
                i64::MIN => Json::text(NOT_A_TIME),
                count => self.time_to_json(count, purpose),
            }),
            Self::String => Some(Json::text(std::str::from_utf8(bytes).ok()?)),
            Self::NullTerminatedBytes { .. } => Some(Json::String(match purpose {
                Purpose::Show => fixed_text::bytes_to_text(bytes),
                Purpose::Document => fixed_text::bytes_to_base64(bytes),
            })),
            Self::FixedUtf32 { .. } => Some(Json::String(match purpose {
                Purpose::Show => fixed_text::utf32_shown(bytes),
                Purpose::Document => fixed_text::utf32_to_text(bytes)?,
            })),
            Self::Structured(fields) if purpose == Purpose::Show => record_to_json(fields, bytes),
            Self::Structured(_) | Self::Bytes | Self::RawBytes { .. } => {
                Some(Json::String(base64::encode(bytes)))
            }
            Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64 => {
                Some(Json::from_u64(unsigned(bytes)))
            }
            number => Some(match float_layout(number) {
                Some(layout) => float_to_json(layout, unsigned(bytes), purpose),
                None => Json::I64(signed(bytes)),
            }),
        }
    }
}

/// What a JSON form is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A document: every bit, the same number for any reader.
    Document,
    /// Eyes and scripts: shortest decimals, one NaN.
    Show,
}

fn refuse(data_type: &DataType, found: impl std::fmt::Display) -> Error {
    let expected = match data_type {
        DataType::Bool => "true or false".to_owned(),
        DataType::Complex64 | DataType::Complex128 => format!("a {data_type} as [re,im]"),
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } => {
            format!("a {data_type} as an integer count, a time such as 2020-02-29T12:00:00, or NaT")
        }
        DataType::String => "a text".to_owned(),
        DataType::RawBytes { length } => format!("base64 of {length} bytes"),
        DataType::NullTerminatedBytes { length } => {
            format!("a text of at most {length} bytes (base64 in documents)")
        }
        DataType::FixedUtf32 { chars } => format!("a text of at most {chars} characters"),
        DataType::Bytes => "base64".to_owned(),
        DataType::Structured(_) => {
            format!("a list of field values of {data_type}, or base64 of one record")
        }
        number => match integer_range(number) {
            Some((lo, hi)) => format!("a {number} from {lo} to {hi}"),
            None => format!(
                "a number that {number} holds, NaN, Infinity, -Infinity or its bits as 0x.."
            ),
        },
    };
    Error::invalid(format!("value for type {data_type}"))
        .expected(expected)
        .found(found)
        .reason("value")
}

fn float_layout(data_type: &DataType) -> Option<FloatLayout> {
    match data_type {
        DataType::Float16 => Some(BINARY16),
        DataType::Bfloat16 => Some(BFLOAT16),
        DataType::Float32 => Some(BINARY32),
        DataType::Float64 => Some(BINARY64),
        _ => None,
    }
}

fn integer_range(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::Uint8 => (0, u8::MAX.into()),
        DataType::Uint16 => (0, u16::MAX.into()),
        DataType::Uint32 => (0, u32::MAX.into()),
        DataType::Uint64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

fn integer_from_json(data_type: &DataType, json: &Json) -> Option<Vec<u8>> {
    let value = match json {
        Json::I64(v) => i128::from(*v),
        Json::U64(v) => i128::from(*v),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an integer below 2^53 in magnitude"
        )]
        Json::F64(v) if v.fract() == 0.0 && v.abs() < EXACT_FLOAT_END => *v as i128,
        _ => return None,
    };
    let (lo, hi) = integer_range(data_type)?;
    if !(lo..=hi).contains(&value) {
        return None;
    }
    // Two's complement: the low bytes of the wide integer are those of the narrow one.
    value
        .to_le_bytes()
        .get(..data_type.item_size()?)
        .map(<[u8]>::to_vec)
}

/// How a number that a float type does not hold becomes one that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// Integers and zero stay what they are, decimals take the nearest value.
    Exact,
    /// All numbers take the nearest finite value.
    Nearest,
}

fn float_from_json(layout: FloatLayout, json: &Json, rounding: Rounding) -> Option<Vec<u8>> {
    let nearest = |v: f64| {
        let bits = layout.round(v);
        let value = layout.widen(bits);
        let vanished = value == 0.0 && v != 0.0 && rounding == Rounding::Exact;
        (value.is_finite() && !vanished).then_some(bits)
    };
    let bits = match json {
        Json::I64(_) | Json::U64(_) => {
            let v = json
                .as_i64()
                .map(i128::from)
                .or(json.as_u64().map(i128::from))?;
            #[expect(
                clippy::cast_precision_loss,
                reason = "a changed value is refused next"
            )]
            let bits = nearest(v as f64)?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "an integral finite value below 2^65"
            )]
            let kept = layout.widen(bits) as i128 == v;
            (kept || rounding == Rounding::Nearest).then_some(bits)?
        }
        Json::F64(v) => nearest(*v)?,
        Json::String(text) => match text.as_str() {
            "NaN" => layout.quiet_nan(),
            "Infinity" => layout.round(f64::INFINITY),
            "-Infinity" => layout.round(f64::NEG_INFINITY),
            hex => hex_bits(layout, hex)?,
        },
        _ => return None,
    };
    bits.to_le_bytes().get(..layout.size()).map(<[u8]>::to_vec)
}

/// `0x7fc00001`: all bits of the layout in hexadecimal.
fn hex_bits(layout: FloatLayout, text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_full = digits.len() == layout.size().saturating_mul(2);
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    (is_full && is_hex)
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

fn float_to_json(layout: FloatLayout, bits: u64, purpose: Purpose) -> Json {
    let value = layout.widen(bits);
    if value.is_nan() {
        return if purpose == Purpose::Show || bits == layout.quiet_nan() {
            Json::text("NaN")
        } else {
            let width = layout.size().saturating_mul(2);
            Json::String(format!("0x{bits:0width$x}"))
        };
    }
    if value.is_infinite() {
        return Json::text(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    Json::F64(match purpose {
        Purpose::Document => value,
        Purpose::Show => layout.shortest(bits),
    })
}

fn record_to_json(fields: &[Field], bytes: &[u8]) -> Option<Json> {
    let mut rest = bytes;
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        let (head, tail) = rest.split_at_checked(field.data_type.item_size()?)?;
        values.push(field.data_type.element_to_json(head));
        rest = tail;
    }
    Some(Json::Array(values))
}

/// What is not JSON but is commonly written: `nan`, `-inf`, `.5`, `NaT`, `1+2j`, base64 without quotes.
fn bare_text_to_json(data_type: &DataType, text: &str) -> Option<Json> {
    match data_type {
        DataType::Complex64 | DataType::Complex128 => complex_text(text),
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } => text
            .eq_ignore_ascii_case(NOT_A_TIME)
            .then(|| Json::text(NOT_A_TIME))
            .or_else(|| text.parse().ok().map(Json::I64))
            .or_else(|| Some(Json::text(text))),
        DataType::RawBytes { .. } | DataType::Bytes | DataType::Structured(_) => {
            Some(Json::text(text))
        }
        number if float_layout(number).is_some() => float_text(text),
        _ => text
            .parse()
            .map(Json::I64)
            .or_else(|_| text.parse().map(Json::from_u64))
            .ok(),
    }
}

fn float_text(text: &str) -> Option<Json> {
    let (is_negative, magnitude) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest.to_ascii_lowercase()),
        None => (false, text.to_ascii_lowercase()),
    };
    match magnitude.as_str() {
        "nan" if !is_negative => Some(Json::text("NaN")),
        "inf" | "infinity" if is_negative => Some(Json::text("-Infinity")),
        "inf" | "infinity" => Some(Json::text("Infinity")),
        hex if hex.starts_with("0x") => Some(Json::text(text)),
        // Decimals that JSON does not write, such as `.5` and `+1`; integers stay integers.
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok().map(Json::I64),
        _ => text
            .parse()
            .ok()
            .filter(|v: &f64| v.is_finite())
            .map(Json::F64),
    }
}

/// `1.5-2j`, `3`, `-infj`.
fn complex_text(text: &str) -> Option<Json> {
    let number = |part: &str| part.parse::<Json>().ok().or_else(|| float_text(part));
    let Some(both) = text.strip_suffix(['j', 'i']) else {
        return Some(Json::Array(vec![number(text)?, Json::I64(0)]));
    };
    let bytes = both.as_bytes();
    // The sign between the parts: not the first character, not an exponent's.
    let split = (1..bytes.len()).rev().find(|i| {
        let previous = i.checked_sub(1).and_then(|p| bytes.get(p));
        matches!(bytes.get(*i), Some(b'+' | b'-')) && !matches!(previous, Some(b'e' | b'E'))
    });
    let (re, im) = both.split_at_checked(split.unwrap_or(0))?;
    let re = if re.is_empty() {
        Json::I64(0)
    } else {
        number(re)?
    };
    Some(Json::Array(vec![
        re,
        number(im.strip_prefix('+').unwrap_or(im))?,
    ]))
}

fn short_non_finite(text: &str) -> String {
    text.replace("Infinity", "inf").replace("NaN", "nan")
}

fn sized_base64(data_type: &DataType, json: &Json) -> Option<Vec<u8>> {
    let bytes = base64::decode(json.as_str()?)?;
    (data_type.item_size() == Some(bytes.len())).then_some(bytes)
}

/// Up to eight little-endian bytes as an unsigned integer.
fn unsigned(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// One to eight little-endian bytes as a signed integer.
fn signed(bytes: &[u8]) -> i64 {
    let unused_bits = u32::try_from(bytes.len().min(8))
        .map_or(0, |len| 64_u32.saturating_sub(len.saturating_mul(8)))
        .min(63);
    (unsigned(bytes) << unused_bits).cast_signed() >> unused_bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn data_type(text: &str) -> DataType {
        text.parse().unwrap()
    }

    /// Type, JSON form, bytes: the document form is the one text of the bytes.
    const DOCUMENT_FORMS: [(&str, &str, &[u8]); 29] = [
        ("bool", "true", &[1]),
        ("i8", "-128", &[0x80]),
        ("i64", "-9223372036854775808", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("i64", "9007199254740993", &[1, 0, 0, 0, 0, 0, 0x20, 0]),
        ("u64", "18446744073709551615", &[0xff; 8]),
        ("u16", "65535", &[0xff, 0xff]),
        ("f16", "\"NaN\"", &[0x00, 0x7e]),
        ("f16", "65504.0", &[0xff, 0x7b]),
        ("bf16", "\"NaN\"", &[0xc0, 0x7f]),
        ("bf16", "\"0xffc0\"", &[0xc0, 0xff]),
        ("f32", "\"NaN\"", &[0, 0, 0xc0, 0x7f]),
        ("f32", "\"0x7fc00001\"", &[1, 0, 0xc0, 0x7f]),
        ("f32", "\"0xffc00000\"", &[0, 0, 0xc0, 0xff]),
        ("f32", "\"-Infinity\"", &[0, 0, 0x80, 0xff]),
        ("f32", "-0.0", &[0, 0, 0, 0x80]),
        ("f32", "0.10000000149011612", &[0xcd, 0xcc, 0xcc, 0x3d]),
        ("f64", "\"NaN\"", &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        (
            "f64",
            "\"0x7ff8000000000001\"",
            &[1, 0, 0, 0, 0, 0, 0xf8, 0x7f],
        ),
        (
            "f64",
            "1e300",
            &[0x9c, 0x75, 0x00, 0x88, 0x3c, 0xe4, 0x37, 0x7e],
        ),
        (
            "c64",
            "[1.0,\"NaN\"]",
            &[0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f],
        ),
        ("r24", "\"AQID\"", &[1, 2, 3]),
        ("datetime64:s", "\"NaT\"", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("datetime64:s", "-1", &[0xff; 8]),
        ("timedelta64:10ms", "5", &[5, 0, 0, 0, 0, 0, 0, 0]),
        ("string", "\"a\\u0000\u{e9}\"", b"a\0\xc3\xa9"),
        ("string", "\"\"", b""),
        ("bytes", "\"AAE=\"", &[0, 1]),
        ("bytes", "\"\"", &[]),
        (
            "{a:i16,b:f32}",
            "\"//8AAIA/\"",
            &[0xff, 0xff, 0, 0, 0x80, 0x3f],
        ),
    ];

    #[test]
    fn the_document_form_is_exact_in_both_directions() {
        for (name, text, bytes) in DOCUMENT_FORMS {
            let data_type = data_type(name);
            assert_eq!(
                data_type.fill_to_json(bytes).unwrap().to_string(),
                text,
                "{name}"
            );
            assert_eq!(
                data_type.element_from_json(&text.parse().unwrap()).unwrap(),
                bytes,
                "{name} {text}"
            );
            assert_eq!(
                data_type.element_from_text(text).unwrap(),
                bytes,
                "{name} {text}"
            );
        }
    }

    #[test]
    fn numpy_and_zarr_spell_types_and_elements_the_same() {
        let text = include_str!("../../tests/data/elements.json");
        let rows: Json = text.parse().unwrap();
        for row in rows.as_array().unwrap() {
            let text = |member: &str| row.get(member).and_then(Json::as_str).unwrap();
            let fill = row.get("fill_value").unwrap();
            let bytes: Vec<u8> = text("bytes")
                .as_bytes()
                .chunks(2)
                .map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap())
                .collect();
            let (data_type, big_endian) = DataType::from_numpy_descr(text("descr")).unwrap();
            assert!(!big_endian);
            assert_eq!(data_type.numpy_descr().as_deref(), Some(text("descr")));
            assert_eq!(data_type.to_json(), *row.get("data_type").unwrap());
            assert_eq!(data_type.fill_from_json(fill).unwrap(), bytes, "{row}");
            let shown = data_type.element_to_text(&bytes);
            if !matches!(data_type, DataType::Structured(_)) {
                assert_eq!(data_type.element_from_text(&shown).unwrap(), bytes, "{row}");
            }
            // zarr-python writes "not a time" as the integer, which is read as well.
            if shown != NOT_A_TIME {
                assert_eq!(
                    data_type.fill_to_json(&bytes).unwrap().to_string(),
                    fill.to_string()
                );
            }
        }
        assert!(rows.as_array().unwrap().len() > 60);
    }

    #[test]
    fn c26_a_value_that_does_not_fit_is_refused_with_type_and_value() {
        for (name, text) in [
            ("u32", "-1"),
            ("u8", "22.5"),
            ("u8", "256"),
            ("i8", "200"),
            ("f32", "1e400"),
            ("f32", "1e39"),
            ("f32", "16777217"),
            ("f32", "1e-50"),
            ("bool", "2"),
            ("bool", "1"),
            ("f16", "70000"),
            ("f16", "70000.0"),
            ("f16", "2049"),
            ("f64", "9007199254740993"),
            ("i64", "9223372036854775808"),
            ("i64", "1e18"),
            ("u64", "-1"),
            ("u64", "18446744073709551616"),
            ("f64", "\"nan\""),
            ("f64", "0x7ff8"),
            ("f32", "0x7ff8000000000001"),
            ("c64", "[1]"),
            ("r24", "AQI="),
            ("datetime64:s", "1.5"),
            ("i32", "true"),
            ("i32", ""),
            ("f64", ""),
            ("f64", "null"),
            ("{a:i16,b:f32}", "[70000,1.0]"),
        ] {
            let e = data_type(name).element_from_text(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{name} {text}");
            assert!(e.to_string().contains(text), "{e}");
        }
        assert_eq!(
            data_type("u8")
                .element_from_text("256")
                .unwrap_err()
                .to_string(),
            "value for type uint8: expected a uint8 from 0 to 255, found 256"
        );
        let nearest = data_type("f32")
            .fill_from_json(&Json::I64(16_777_217))
            .unwrap();
        assert_eq!(nearest, 16_777_216_f32.to_le_bytes());
        assert_eq!(data_type("u8").element_from_text("3.0").unwrap(), [3]);
        assert_eq!(
            data_type("f32").element_from_text("16777216").unwrap(),
            16_777_216_f32.to_le_bytes()
        );
        assert_eq!(
            data_type("f32").element_from_text("9.96921e36").unwrap(),
            9.96921e36_f32.to_le_bytes()
        );
    }

    #[test]
    fn the_command_reads_what_people_write() {
        for (name, text, same) in [
            ("f64", "NaN", "\"NaN\""),
            ("f64", "nan", "\"NaN\""),
            ("f64", "-inf", "\"-Infinity\""),
            ("f64", "Infinity", "\"Infinity\""),
            ("f64", "0x7ff8000000000001", "\"0x7ff8000000000001\""),
            ("f64", ".5", "0.5"),
            ("f64", "+1", "1.0"),
            ("f64", "-9999", "-9999.0"),
            ("i32", "-9999", "-9999"),
            ("i32", "+5", "5"),
            ("c64", "1.5-2e+1j", "[1.5,-20.0]"),
            ("c64", "infj", "[0,\"Infinity\"]"),
            ("c64", "2", "[2,0]"),
            ("datetime64:s", "nat", "\"NaT\""),
            ("r24", "AQID", "\"AQID\""),
            ("string", "plain", "\"plain\""),
            ("bool", "True", "true"),
            ("r24", "1234", "\"1234\""),
            ("bytes", "true", "\"true\""),
        ] {
            let data_type = data_type(name);
            let expected = data_type.element_from_json(&same.parse().unwrap()).unwrap();
            assert_eq!(
                data_type.element_from_text(text).unwrap(),
                expected,
                "{name} {text}"
            );
        }
    }

    #[test]
    fn elements_are_shown_shortest_and_read_back_to_the_same_bits() {
        for (name, bytes, json, text) in [
            ("f32", &0.1_f32.to_le_bytes()[..], "0.1", "0.1"),
            ("f32", &[1, 0, 0xc0, 0x7f], "\"NaN\"", "NaN"),
            (
                "f64",
                &f64::INFINITY.to_le_bytes(),
                "\"Infinity\"",
                "Infinity",
            ),
            ("f16", &[0x66, 0x2e], "0.1", "0.1"),
            ("i8", &[0xff], "-1", "-1"),
            (
                "i64",
                &i64::MIN.to_le_bytes(),
                "-9223372036854775808",
                "-9223372036854775808",
            ),
            (
                "c64",
                &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xff],
                "[1.0,\"-Infinity\"]",
                "1.0-infj",
            ),
            (
                "{a:i16,b:f32}",
                &[0xff, 0xff, 0, 0, 0x80, 0x3f],
                "[-1,1.0]",
                "[-1,1.0]",
            ),
            ("string", b"a,b", "\"a,b\"", "a,b"),
            ("bool", &[1], "true", "true"),
            (
                "datetime64:s",
                &1_582_977_600_i64.to_le_bytes(),
                "\"2020-02-29T12:00:00\"",
                "2020-02-29T12:00:00",
            ),
            ("timedelta64:s", &90_i64.to_le_bytes(), "90", "90"),
        ] {
            let data_type = data_type(name);
            assert_eq!(data_type.element_to_json(bytes).to_string(), json);
            assert_eq!(data_type.element_to_text(bytes), text);
            if !json.contains("NaN") {
                assert_eq!(data_type.element_from_text(text).unwrap(), bytes, "{name}");
            }
        }
    }

    #[test]
    fn the_default_fill_is_not_a_time_for_times_and_zero_for_the_rest() {
        assert_eq!(
            data_type("datetime64:s").default_fill(),
            i64::MIN.to_le_bytes()
        );
        assert_eq!(data_type("f32").default_fill(), [0; 4]);
        assert_eq!(data_type("string").default_fill(), b"");
        assert_eq!(
            data_type("{a:i8,t:timedelta64:s}").default_fill(),
            [0, 0, 0, 0, 0, 0, 0, 0, 0x80]
        );
    }
}
