//! NumPy's spelling of data types, as a `.npy` header holds it: `<f4`, `|V3`, `<M8[10ms]`, `[('a', '<i2'), ..]`.
//!
//! Holds the reading and writing of `descr` values. Must not read `.npy` headers or elements.

use std::fmt::Write as _;

use super::dtype::{DataType, Field, TimeUnit, time_step};
use super::short_name::fixed_text;
use crate::error::{Error, Result};

impl DataType {
    /// NumPy's `descr` of this type, little-endian: `<f4`, `|b1`, or a list of fields for a record.
    ///
    /// `None` for what NumPy cannot say: text and bytes of any length. bfloat16 becomes `<V2`, two raw bytes.
    pub fn numpy_descr(&self) -> Option<String> {
        let time = |code: &str, unit: TimeUnit, scale: u32| match (unit, scale) {
            (TimeUnit::Generic, _) => format!("<{code}"),
            (_, 1) => format!("<{code}[{}]", unit.name()),
            _ => format!("<{code}[{scale}{}]", unit.name()),
        };
        Some(match self {
            Self::String | Self::Bytes => return None,
            Self::RawBytes { length } => format!("|V{length}"),
            Self::NullTerminatedBytes { length } => format!("|S{length}"),
            Self::FixedUtf32 { chars } => format!("<U{chars}"),
            Self::Bfloat16 => "<V2".to_owned(),
            Self::Datetime64 { unit, scale } => time("M8", *unit, *scale),
            Self::Timedelta64 { unit, scale } => time("m8", *unit, *scale),
            Self::Structured(fields) => {
                let mut text = String::from("[");
                for (i, field) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    let inner = field.data_type.numpy_descr()?;
                    let name = python_text(&field.name);
                    text.extend([comma, "(", &name, ", '", &inner, "')"]);
                }
                text + "]"
            }
            plain => CODES
                .iter()
                .find(|(data_type, ..)| data_type == plain)
                .map(|(_, code)| {
                    let order = if plain.has_byte_order() { '<' } else { '|' };
                    format!("{order}{code}")
                })?,
        })
    }

    /// Reads NumPy's `descr`: the type, and whether its numbers are big-endian.
    ///
    /// `S` and `U` keep their padding; `V` becomes raw bytes.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a type that has no counterpart here (`O`, `f16`, subarrays, fields of mixed byte order),
    /// `InvalidArgument` where the text is not a `descr`.
    pub fn from_numpy_descr(descr: &str) -> Result<(Self, bool)> {
        let mut order = None;
        let mut parser = Parser {
            whole: descr,
            rest: descr.trim(),
        };
        let data_type = if parser.rest.starts_with(['[', '\'', '"']) {
            let data_type = parser.value(&mut order)?;
            if !parser.rest.trim().is_empty() {
                return Err(parser.broken());
            }
            data_type
        } else {
            scalar(descr.trim(), &mut order)?
        };
        data_type.validate()?;
        Ok((data_type, order == Some(true)))
    }
}

const CODES: [(DataType, &str); 14] = [
    (DataType::Bool, "b1"),
    (DataType::Int8, "i1"),
    (DataType::Int16, "i2"),
    (DataType::Int32, "i4"),
    (DataType::Int64, "i8"),
    (DataType::Uint8, "u1"),
    (DataType::Uint16, "u2"),
    (DataType::Uint32, "u4"),
    (DataType::Uint64, "u8"),
    (DataType::Float16, "f2"),
    (DataType::Float32, "f4"),
    (DataType::Float64, "f8"),
    (DataType::Complex64, "c8"),
    (DataType::Complex128, "c16"),
];

fn unsupported(descr: &str) -> Error {
    Error::unsupported("NumPy data type").found(format_args!("{descr:?}"))
}

/// One type such as `<f4`; notes its byte order in `order` and refuses a second one that differs.
fn scalar(descr: &str, order: &mut Option<bool>) -> Result<DataType> {
    let (mark, code) = match descr.chars().next() {
        Some(mark @ ('<' | '>' | '|' | '=')) => (mark, descr.get(1..).unwrap_or_default()),
        _ => return Err(unsupported(descr)),
    };
    let data_type = scalar_code(code).ok_or_else(|| unsupported(descr))?;
    if data_type.has_byte_order() {
        let big = match mark {
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => false,
        };
        if order.is_some_and(|seen| seen != big) {
            return Err(unsupported(descr).expected("one byte order in all fields"));
        }
        *order = Some(big);
    }
    Ok(data_type)
}

fn scalar_code(code: &str) -> Option<DataType> {
    if let Some((data_type, _)) = CODES.iter().find(|(_, c)| *c == code) {
        return Some(data_type.clone());
    }
    if let Some(length) = code.strip_prefix('V') {
        let length = length.parse().ok().filter(|n| *n > 0)?;
        return Some(DataType::RawBytes { length });
    }
    if let Some(text) = fixed_text(code) {
        return Some(text);
    }
    let (unit, scale) = match code.get(2..)? {
        "" => (TimeUnit::Generic, 1),
        step => time_step(step.strip_prefix('[')?.strip_suffix(']')?)?,
    };
    match code.get(..2)? {
        "M8" => Some(DataType::Datetime64 { unit, scale }),
        "m8" => Some(DataType::Timedelta64 { unit, scale }),
        _ => None,
    }
}

/// A Python text literal in single quotes.
fn python_text(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "'"
}

/// Reads the Python literals that a record's `descr` is made of.
struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn broken(&self) -> Error {
        Error::invalid("NumPy data type")
            .expected("a descr such as '<f4' or [('a', '<i2')]")
            .found(format_args!("{:?}", self.whole))
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.trim_start().strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c) {
            Ok(())
        } else {
            Err(self.broken())
        }
    }

    fn value(&mut self, order: &mut Option<bool>) -> Result<DataType> {
        if !self.eat('[') {
            let text = self.text()?;
            return scalar(&text, order);
        }
        let mut fields = Vec::new();
        while !self.eat(']') {
            self.expect('(')?;
            let name = self.text()?;
            self.expect(',')?;
            if self.rest.trim_start().starts_with('[') {
                return Err(unsupported(self.whole).expected("no records within records"));
            }
            let data_type = scalar(&self.text()?, order)?;
            self.eat(',');
            if self.rest.trim_start().starts_with('(') {
                return Err(unsupported(self.whole).expected("no subarrays"));
            }
            self.expect(')')?;
            self.eat(',');
            fields.push(Field { name, data_type });
        }
        Ok(DataType::Structured(fields))
    }

    fn text(&mut self) -> Result<String> {
        self.rest = self.rest.trim_start();
        let mut chars = self.rest.chars();
        let quote = chars
            .next()
            .filter(|c| matches!(c, '\'' | '"'))
            .ok_or_else(|| self.broken())?;
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = chars.as_str();
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some(c @ ('\'' | '"' | '\\')) => text.push(c),
                    _ => return Err(self.broken()),
                },
                c => text.push(c),
            }
        }
        Err(self.broken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_descr_is_numpys_and_reads_back() {
        for (text, descr) in [
            ("bool", "|b1"),
            ("i8", "|i1"),
            ("f32", "<f4"),
            ("c128", "<c16"),
            ("r24", "|V3"),
            ("S3", "|S3"),
            ("U3", "<U3"),
            ("datetime64:s", "<M8[s]"),
            ("timedelta64:10ms", "<m8[10ms]"),
            ("datetime64:generic", "<M8"),
            ("{a:i16,b:f32}", "[('a', '<i2'), ('b', '<f4')]"),
            ("{\"it's\":r8,a:i64}", "[('it\\'s', '|V1'), ('a', '<i8')]"),
        ] {
            let data_type: DataType = text.parse().unwrap();
            assert_eq!(data_type.numpy_descr().unwrap(), descr);
            assert_eq!(
                DataType::from_numpy_descr(descr).unwrap(),
                (data_type, false)
            );
        }
        assert_eq!(DataType::String.numpy_descr(), None);
    }

    #[test]
    fn big_endian_is_told_apart_and_mixed_orders_are_refused() {
        assert_eq!(
            DataType::from_numpy_descr(">i4").unwrap(),
            (DataType::Int32, true)
        );
        assert_eq!(
            DataType::from_numpy_descr("|S4").unwrap(),
            (DataType::NullTerminatedBytes { length: 4 }, false)
        );
        assert_eq!(
            DataType::from_numpy_descr(">U4").unwrap(),
            (DataType::FixedUtf32 { chars: 4 }, true)
        );
        assert!(
            DataType::from_numpy_descr("[('a', '>i2'), ('b', '|u1'), ('c', '>f8')]")
                .unwrap()
                .1
        );
        for descr in [
            "[('a', '>i2'), ('b', '<f4')]",
            "|O",
            "<U0",
            "<f16",
            "f4",
            "",
            "[('a', '<i2', (3,))]",
        ] {
            let e = DataType::from_numpy_descr(descr).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{descr}: {e}");
        }
        for descr in ["[('a')]", "[('a', '<i2'", "['a']", "[]", "'<f4' x"] {
            let e = DataType::from_numpy_descr(descr).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{descr}: {e}");
        }
    }
}
