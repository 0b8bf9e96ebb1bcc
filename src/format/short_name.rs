//! Short names of data types, as people type and read them: `float32`, `<f4`, `r24`, `S7`, `U7`, `datetime64:10ms`.
//!
//! Holds [`std::fmt::Display`] and [`FromStr`] of [`DataType`]. Must not hold the document form.

use std::fmt;
use std::str::FromStr;

use super::dtype::{DataType, Field, PLAIN, Place, TimeUnit, raw_bits, time_step};
use super::json::Json;
use crate::error::{Error, Result};

/// The short name: `float32`, `r24`, `datetime64:10ms`, `{a:int16,b:float32}`. [`FromStr`] reads it back.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |f: &mut fmt::Formatter<'_>, name: &str, unit: &TimeUnit, scale: u32| match scale
        {
            1 => write!(f, "{name}:{}", unit.name()),
            _ => write!(f, "{name}:{scale}{}", unit.name()),
        };
        match self {
            Self::RawBytes { length } => write!(f, "r{}", u64::from(*length).saturating_mul(8)),
            Self::NullTerminatedBytes { length } => write!(f, "S{length}"),
            Self::FixedUtf32 { chars } => write!(f, "U{chars}"),
            Self::Datetime64 { unit, scale } => time(f, "datetime64", unit, *scale),
            Self::Timedelta64 { unit, scale } => time(f, "timedelta64", unit, *scale),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Structured(fields) => {
                f.write_str("{")?;
                for (i, field) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    if is_bare(&field.name) {
                        write!(f, "{comma}{}:{}", field.name, field.data_type)?;
                    } else {
                        write!(f, "{comma}{}:{}", Json::text(&field.name), field.data_type)?;
                    }
                }
                f.write_str("}")
            }
            plain => f.write_str(plain.plain().map_or("", |(_, name, ..)| name)),
        }
    }
}

fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Reads a short name: the document's (`float32`), Rust's (`f32`), NumPy's with its byte order (`<f4`, `|b1`, `<M8[s]`),
/// `r24`, `S8`, `U8`, `datetime64:10ms`, `datetime64[s]`, or a record `{a:int16,b:float32}`.
///
/// NumPy's other bare names are not read, because `u8` is one byte in Rust and eight in NumPy.
impl FromStr for DataType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let data_type = parse_short(text, Place::Array)?;
        data_type.validate()?;
        Ok(data_type)
    }
}

fn unknown_short(text: &str) -> Error {
    Error::invalid("data type")
        .expected(
            "a name such as float32, f32, <f4, r24, S8, U8, datetime64:s, string or {a:int16,b:float32}",
        )
        .found(format_args!("{text:?}"))
        .reason("data_type")
}

fn parse_short(text: &str, place: Place) -> Result<DataType> {
    let braced = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    if let Some(inside) = braced.filter(|_| place == Place::Array) {
        return parse_record(text, inside);
    }
    if text.starts_with(['<', '>', '|', '=']) {
        let (data_type, big_endian) = DataType::from_numpy_descr(text)?;
        return if big_endian {
            Err(unknown_short(text)
                .help("a type has no byte order: ask the `bytes` codec for big endian"))
        } else {
            Ok(data_type)
        };
    }
    let by_rust_name = || {
        let mut plain = PLAIN.iter();
        plain.find(|p| p.4 == text).map(|p| p.0.clone())
    };
    DataType::plain_by_name(text)
        .or_else(by_rust_name)
        .or_else(|| raw_bits(text))
        .or_else(|| fixed_text(text))
        .or_else(|| time_type(text))
        .ok_or_else(|| unknown_short(text))
}

/// `S7`, `U7`: NumPy's names without a sign, which nothing else here begins with.
pub(super) fn fixed_text(text: &str) -> Option<DataType> {
    let width = text.get(1..)?;
    let width = width.bytes().all(|b| b.is_ascii_digit()).then_some(width)?;
    let width = width.parse().ok().filter(|n| *n > 0)?;
    match text.get(..1)? {
        "S" => Some(DataType::NullTerminatedBytes { length: width }),
        "U" => Some(DataType::FixedUtf32 { chars: width }),
        _ => None,
    }
}

/// `datetime64:10ms` or `datetime64[10ms]`.
fn time_type(text: &str) -> Option<DataType> {
    let (name, rest) = text.split_at_checked(text.find([':', '['])?)?;
    let step = match rest.strip_prefix(':') {
        Some(step) => step,
        None => rest.strip_prefix('[')?.strip_suffix(']')?,
    };
    let (unit, scale) = time_step(step)?;
    match name {
        "datetime64" => Some(DataType::Datetime64 { unit, scale }),
        "timedelta64" => Some(DataType::Timedelta64 { unit, scale }),
        _ => None,
    }
}

fn parse_record(whole: &str, inside: &str) -> Result<DataType> {
    let mut fields = Vec::new();
    for part in split_outside(inside, b',') {
        let colon = split_outside(part, b':').next().map_or(0, str::len);
        let (name, data_type) = part
            .split_at_checked(colon)
            .and_then(|(name, rest)| Some((name.trim(), rest.strip_prefix(':')?.trim())))
            .ok_or_else(|| unknown_short(whole))?;
        let name = if name.starts_with('"') {
            match name.parse::<Json>() {
                Ok(Json::String(name)) => name,
                _ => return Err(unknown_short(whole)),
            }
        } else {
            name.to_owned()
        };
        fields.push(Field {
            name,
            data_type: parse_short(data_type, Place::Field)?,
        });
    }
    Ok(DataType::Structured(fields))
}

/// Parts of `text` between `separator`s that stand outside quotes, braces and brackets.
fn split_outside(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    text.split(move |c: char| {
        if quoted {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
            return false;
        }
        match c {
            '"' => quoted = true,
            '{' | '[' => depth = depth.saturating_add(1),
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c == char::from(separator)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn short_names_mean_one_type_each() {
        for (text, display, size) in [
            ("f32", "float32", 4),
            ("<f4", "float32", 4),
            ("float32", "float32", 4),
            ("u8", "uint8", 1),
            ("|u1", "uint8", 1),
            ("<u8", "uint64", 8),
            ("bf16", "bfloat16", 2),
            ("r32", "r32", 4),
            ("|V3", "r24", 3),
            ("S7", "S7", 7),
            ("|S7", "S7", 7),
            ("<U7", "U7", 28),
            ("{s:S2,u:U1}", "{s:S2,u:U1}", 6),
            ("datetime64:s", "datetime64:s", 8),
            ("datetime64:10ms", "datetime64:10ms", 8),
            ("datetime64[ns]", "datetime64:ns", 8),
            ("<m8[D]", "timedelta64:D", 8),
            ("{a:i16, \"x,:}\":f32}", "{a:int16,\"x,:}\":float32}", 6),
        ] {
            let data_type: DataType = text.parse().unwrap();
            assert_eq!(data_type.to_string(), display, "{text}");
            assert_eq!(data_type.item_size(), Some(size), "{text}");
            assert_eq!(display.parse::<DataType>().unwrap(), data_type);
        }
        for text in [
            "",
            "f4",
            "i4",
            ">f4",
            "float",
            "r0",
            "r7",
            "S0",
            "U+1",
            "u7",
            "datetime64",
            "datetime64:0s",
            "{}",
            "{a}",
            "{a:f32",
            "{a:string}",
            "{a:i8,a:i8}",
        ] {
            let e = text.parse::<DataType>().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}: {e}");
        }
    }
}
