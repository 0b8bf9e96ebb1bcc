//! JSON as documents and attributes hold it: exact integers, ordered unique members, bounded depth, one text.
//!
//! Holds the [`Json`] value, its strict parser and its one text. Must not know what any member means.
//!
//! Rules beyond RFC 8259: integers must fit `i64` or `u64` (a larger one from a caller is refused, since a double would
//! change it: written with a point or an exponent it means a float; one in a file is read as the nearest float); floats
//! must be finite; `-0` is the float `-0.0`; member names are unique at every depth; `\u` escapes must form whole
//! characters; nesting is bounded by [`Limits::json_depth`].

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::error::{Error, Result};
use crate::limits::Limits;

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

impl Json {
    /// Parses one JSON text under `limits`; nothing but white space may follow it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the byte offset, where the text breaks a rule of this module; `LimitExceeded` where it is
    /// longer than [`Limits::value_bytes`] or deeper than [`Limits::json_depth`].
    pub fn parse(text: &str, limits: &Limits) -> Result<Self> {
        Self::parse_as(text, limits, WideIntegers::Refuse)
    }

    fn parse_as(text: &str, limits: &Limits, wide: WideIntegers) -> Result<Self> {
        if text.len() as u64 > limits.value_bytes {
            return Err(Error::limit("length of a JSON text")
                .expected(format_args!("at most {} bytes", limits.value_bytes))
                .found(text.len()));
        }
        scan(text, limits.json_depth, wide)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        AnyValue
            .deserialize(&mut deserializer)
            .and_then(|value| deserializer.end().map(|()| value))
            .map_err(|e| syntax(text, &e))
    }

    /// Parses bytes of a file: as [`Json::parse`], but a broken rule is `Corrupt`, and an integer too wide, which other
    /// software may have written, is the nearest float.
    pub(crate) fn parse_stored(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            Error::corrupt("JSON text")
                .expected("UTF-8")
                .found(format_args!("another byte at {}", e.valid_up_to()))
        })?;
        Self::parse_as(text, limits, WideIntegers::Round).map_err(Error::into_corrupt)
    }

    /// The member of that name, where this is an object that has one.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text, where this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The items, where this is a list.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members in order, where this is an object.
    pub fn as_object(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The integer, where this is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::I64(v) => Some(*v),
            _ => None,
        }
    }

    /// The integer, where this is one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::I64(v) => u64::try_from(*v).ok(),
            Self::U64(v) => Some(*v),
            _ => None,
        }
    }

    /// An integer of either sign, as the fitting variant.
    pub fn from_u64(v: u64) -> Self {
        i64::try_from(v).map_or(Self::U64(v), Self::I64)
    }

    /// A text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// An object of the given members, which must be unique.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(
            members
                .into_iter()
                .map(|(n, v)| (n.to_owned(), v))
                .collect(),
        )
    }

    /// What kind of value this is, for error messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::I64(_) | Self::U64(_) => "an integer",
            Self::F64(_) => "a float",
            Self::String(_) => "a text",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Appends the one text of this value to `out`.
    pub(crate) fn write_text(&self, out: &mut String) {
        match self {
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::I64(v) => push(out, format_args!("{v}")),
            Self::U64(v) => push(out, format_args!("{v}")),
            Self::F64(v) if v.is_finite() => write_float(*v, out),
            // No parser makes other floats and `validate` refuses them; `null` keeps the text valid.
            Self::Null | Self::F64(_) => out.push_str("null"),
            Self::String(text) => write_string(text, out),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write_text(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_string(name, out);
                    out.push(':');
                    value.write_text(out);
                }
                out.push('}');
            }
        }
    }

    /// Nesting of this value: 0 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        let deepest = match self {
            Self::Array(items) => items.iter().map(Self::depth).max(),
            Self::Object(members) => members.iter().map(|(_, v)| v.depth()).max(),
            _ => return 0,
        };
        deepest.unwrap_or(0).saturating_add(1)
    }

    /// Checks what the parser guarantees, for a value that a caller built: finite floats, unique names, bounded depth.
    pub(crate) fn validate(&self, limits: &Limits) -> Result<()> {
        // The depth is bounded as it is walked: a value deeper than the limit stops the recursion.
        fn walk(value: &Json, left: usize) -> Result<()> {
            match value {
                Json::F64(v) if !v.is_finite() => Err(Error::invalid("number in a JSON value")
                    .expected("a finite float")
                    .found(v)),
                Json::Array(_) | Json::Object(_) if left == 0 => {
                    Err(Error::limit("nesting of a JSON value"))
                }
                Json::Array(items) => items
                    .iter()
                    .try_for_each(|v| walk(v, left.saturating_sub(1))),
                Json::Object(members) => {
                    if let Some(name) = duplicate_name(members.iter().map(|(n, _)| n.as_str())) {
                        return Err(Error::invalid("JSON object")
                            .expected("unique names")
                            .found(format_args!("{name:?} twice")));
                    }
                    members
                        .iter()
                        .try_for_each(|(_, v)| walk(v, left.saturating_sub(1)))
                }
                _ => Ok(()),
            }
        }
        walk(self, limits.json_depth).map_err(|e| match e {
            Error::LimitExceeded(_) => e.expected(format_args!("at most {}", limits.json_depth)),
            other => other,
        })
    }
}

/// The one text: no spaces, minimal escapes, floats with a point or an exponent.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_text(&mut text);
        f.write_str(&text)
    }
}

/// As [`Json::parse`] with the default limits.
impl FromStr for Json {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, &Limits::default())
    }
}

/// A name that occurs more than once.
pub(crate) fn duplicate_name<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    })
}

fn push(out: &mut String, args: fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(args);
}

/// The shortest decimal that reads back equal: positional from 1e-5 to below 1e16, else scientific.
fn write_float(v: f64, out: &mut String) {
    // `{:?}` has these digits, but turns to an exponent already below 1e-4.
    let magnitude = v.abs();
    if (1e-5..1e-4).contains(&magnitude) {
        push(out, format_args!("{v}"));
    } else {
        push(out, format_args!("{v:?}"));
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => push(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn fault(offset: usize) -> Error {
    Error::invalid(format!("JSON text, byte {offset}")).reason("json")
}

/// What becomes of an integer that fits neither `i64` nor `u64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WideIntegers {
    Refuse,
    Round,
}

/// Looks over the tokens once, without recursion: bounds the nesting and refuses integers that a double would change.
fn scan(text: &str, depth_max: usize, wide: WideIntegers) -> Result<()> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at = at.saturating_add(1);
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                if depth > depth_max {
                    return Err(
                        Error::limit(format!("nesting of a JSON text, byte {start}"))
                            .expected(format_args!("at most {depth_max}"))
                            .found("more"),
                    );
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                while bytes.get(at).is_some_and(|b| is_number_byte(*b)) {
                    at = at.saturating_add(1);
                }
                if wide == WideIntegers::Refuse {
                    check_integer(text.get(start..at).unwrap_or_default(), start)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// Position after the closing quote of the string that starts before `at`, or the end.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at = at.saturating_add(1);
        match byte {
            b'"' => return at,
            b'\\' => at = at.saturating_add(1),
            _ => {}
        }
    }
    at
}

fn check_integer(token: &str, start: usize) -> Result<()> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if is_integer && token.parse::<i64>().is_err() && token.parse::<u64>().is_err() {
        return Err(fault(start)
            .expected("an integer from -2^63 to 2^64-1")
            .found(token)
            .help("write it with a point or an exponent to mean a float"));
    }
    Ok(())
}

/// Turns the parser's line and column (1-based, in bytes) into a byte offset.
fn syntax(text: &str, e: &serde_json::Error) -> Error {
    let line_start = match e.line() {
        0 | 1 => 0,
        n => text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .nth(n.saturating_sub(2))
            .map_or(0, |(i, _)| i.saturating_add(1)),
    };
    let offset = line_start
        .saturating_add(e.column().saturating_sub(1))
        .min(text.len());
    let message = e.to_string();
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned();
    fault(offset).found(message)
}

/// Seed that reads any value, one level at a time; `scan` has bounded the depth.
#[derive(Clone, Copy)]
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Json;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Json, E> {
        Ok(Json::Bool(v))
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Json, E> {
        Ok(Json::I64(v))
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Json, E> {
        Ok(Json::from_u64(v))
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Json, E> {
        if v.is_finite() {
            Ok(Json::F64(v))
        } else {
            Err(E::custom("number out of range"))
        }
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Json, E> {
        Ok(Json::String(v.to_owned()))
    }

    fn visit_string<E: de::Error>(self, v: String) -> Result<Json, E> {
        Ok(Json::String(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            members.push((name, value));
        }
        match duplicate_name(members.iter().map(|(n, _)| n.as_str())) {
            Some(name) => Err(de::Error::custom(format_args!("the name {name:?} twice"))),
            None => Ok(Json::Object(members)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Json> {
        Json::parse(text, &Limits::default())
    }

    #[test]
    fn integers_are_exact_to_both_ends_of_sixty_four_bits() {
        let text =
            "[-9223372036854775808,9223372036854775807,18446744073709551615,9007199254740993]";
        let value = parse(text).unwrap();
        assert_eq!(
            value,
            Json::Array(vec![
                Json::I64(i64::MIN),
                Json::I64(i64::MAX),
                Json::U64(u64::MAX),
                Json::I64(9_007_199_254_740_993),
            ])
        );
        assert_eq!(value.to_string(), text);
    }

    #[test]
    fn an_integer_that_a_double_would_change_is_refused_with_its_offset() {
        for text in ["18446744073709551616", "[1, -9223372036854775809]"] {
            let e = parse(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}");
        }
        assert!(
            parse("[1, -9223372036854775809]")
                .unwrap_err()
                .what()
                .ends_with("byte 4")
        );
        assert_eq!(
            parse("18446744073709551616.0").unwrap(),
            Json::F64(18_446_744_073_709_551_616.0)
        );
        assert_eq!(
            parse("\"18446744073709551616\"").unwrap(),
            Json::text("18446744073709551616")
        );
    }

    #[test]
    fn floats_have_one_shortest_text_with_a_point_or_an_exponent() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e300, "1e300"),
            (0.1, "0.1"),
            (1.0, "1.0"),
            (5e-324, "5e-324"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (1e-6, "1e-6"),
            (9.99e-6, "9.99e-6"),
            (1e-5, "0.00001"),
            (-0.000_012_5, "-0.0000125"),
            (1e-4, "0.0001"),
            (1_234_500_000_000_000.0, "1234500000000000.0"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1e16"),
            (1.25e17, "1.25e17"),
            (123_456.5, "123456.5"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(Json::F64(value).to_string(), text);
            let Json::F64(back) = parse(text).unwrap() else {
                panic!("{text}")
            };
            assert_eq!(back.to_bits(), value.to_bits());
        }
        let Json::F64(zero) = parse("-0").unwrap() else {
            panic!("-0")
        };
        assert!(zero.is_sign_negative());
    }

    #[test]
    fn escapes_are_minimal_and_members_keep_their_order() {
        let value =
            parse(r#" {"z":"\u0000\u001f\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" , "a":[ ]} "#).unwrap();
        assert_eq!(
            value.to_string(),
            "{\"z\":\"\\u0000\\u001f\\\"\\\\/\\b\\f\\n\\r\\t\u{e9}\u{1f600}\",\"a\":[]}"
        );
    }

    #[test]
    fn duplicate_names_are_refused_at_any_depth() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"[{"b":{"a":1,"c":0,"a":1}}]"#,
            r#"{"\u0061":1,"a":2}"#,
        ] {
            let e = parse(text).unwrap_err();
            assert!(e.to_string().contains("\"a\" twice"), "{e}");
        }
    }

    #[test]
    fn what_json_does_not_allow_is_refused_and_says_where() {
        for text in [
            "",
            "nul",
            "NaN",
            "Infinity",
            "1e999",
            "-1e999",
            "[1,]",
            "{\"a\"}",
            "01",
            "1 2",
            "\"\\ud800\"",
            "\"\\udc00x\"",
            "\"\\ud800\\u0041\"",
            "\"\t\"",
            "'a'",
            "[1",
            "+1",
            ".5",
            "1.",
            "--1",
            "1-1",
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}: {e}");
        }
        assert!(
            parse("[1,\n 2,\n x]")
                .unwrap_err()
                .what()
                .ends_with("byte 9")
        );
        let wide = Json::parse_stored(b"-18446744073709551617", &Limits::default()).unwrap();
        assert_eq!(wide, Json::F64(-18_446_744_073_709_551_616.0));
        let e = Json::parse_stored(b"\"\xff\"", &Limits::default()).unwrap_err();
        assert!(e.is_corruption());
    }

    #[test]
    fn depth_passes_at_the_limit_and_fails_one_above_without_recursion() {
        let nest = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(parse(&nest(64)).unwrap().depth(), 64);
        for n in [65, 100_000] {
            assert_eq!(
                parse(&nest(n)).unwrap_err().kind(),
                ErrorKind::LimitExceeded
            );
            assert_eq!(
                parse(&"[".repeat(n)).unwrap_err().kind(),
                ErrorKind::LimitExceeded
            );
        }
        assert!(parse(&format!("\"{}\"", "[".repeat(100))).is_ok());
        assert!(
            parse(&nest(64))
                .unwrap()
                .validate(&Limits::default())
                .is_ok()
        );
        assert!(
            Json::Array(vec![parse(&nest(64)).unwrap()])
                .validate(&Limits::default())
                .is_err()
        );
    }

    #[test]
    fn a_text_longer_than_the_limit_is_refused_before_it_is_parsed() {
        let limits = Limits {
            value_bytes: 3,
            ..Limits::default()
        };
        assert!(Json::parse("123", &limits).is_ok());
        assert_eq!(
            Json::parse("1234", &limits).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
    }

    /// Pieces of JSON and of what is nearly JSON.
    fn nearly_json() -> impl Strategy<Value = String> {
        let pieces = vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\"",
            "\"\\u0061\"",
            "\"\\ud800\"",
            "\"",
            "\\",
            "null",
            "true",
            "0",
            "-0",
            "-",
            "01",
            "1.5",
            "1e5",
            "1e-400",
            "1e400",
            ".",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            " ",
            "\n",
            "\u{e9}",
        ];
        prop::collection::vec(prop::sample::select(pieces), 0..12).prop_map(|p| p.concat())
    }

    fn agrees(ours: &Json, other: &serde_json::Value) -> bool {
        match (ours, other) {
            (Json::Array(a), serde_json::Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b))
            }
            (Json::Object(a), serde_json::Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, (n, b))| a.0 == *n && agrees(&a.1, b))
            }
            (Json::I64(a), b) => b.as_i64() == Some(*a),
            (Json::U64(a), b) => b.as_u64() == Some(*a),
            (Json::F64(a), b) => b.is_f64() && b.as_f64().map(f64::to_bits) == Some(a.to_bits()),
            (Json::String(a), b) => b.as_str() == Some(a),
            (Json::Bool(a), b) => b.as_bool() == Some(*a),
            (Json::Null, b) => b.is_null(),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn any_text_means_what_another_parser_makes_of_it_or_is_refused(text in nearly_json()) {
            let other = serde_json::from_str::<serde_json::Value>(&text);
            match (parse(&text), other) {
                (Ok(ours), Ok(other)) => {
                    prop_assert!(agrees(&ours, &other), "{text}: {ours}");
                    prop_assert_eq!(parse(&ours.to_string()).unwrap().to_string(), ours.to_string());
                }
                (Ok(ours), Err(e)) => prop_assert!(false, "{text}: {ours}, but {e}"),
                (Err(e), Ok(_)) => {
                    let message = e.to_string();
                    prop_assert!(message.contains("twice") || message.contains("2^64"), "{text}: {e}");
                }
                (Err(_), Err(_)) => {}
            }
        }
    }
}
