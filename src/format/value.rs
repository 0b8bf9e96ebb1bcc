//! Attribute values. Spec: `format-spec/07-blobs.md`.
//!
//! Holds [`AttributeValue`], what becomes which of its three contents, and its conversions. Must not know objects.
//!
//! A value keeps its type and every bit: numbers are typed or tagged, never JSON text, so that 64-bit integers, `f32`, NaN
//! payloads and `-0.0` come back as they were, and the text `"NaN"` is never a number.

use super::blob::Content;
use super::dtype::DataType;
use super::json::Json;
use super::tree::Tree;
use super::typed::TypedArray;
use crate::bytes::Writer;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// The value of one attribute.
///
/// Make one with `From`: text, bool and lists of text become JSON; a number, or a list of numbers of one type, becomes a
/// typed array; [`Json`] and [`Tree`] become whichever of the three keeps them exactly.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// JSON without numbers.
    Json(Json),
    /// A number or an array of numbers, or of any type of fixed size.
    Typed(TypedArray),
    /// Mixed values with numbers among them.
    Tree(Tree),
}

impl AttributeValue {
    /// Reads the text of a command line: JSON where it parses as such (numbers typed `int64`, `uint64` or `float64`),
    /// else the text itself.
    pub fn from_text(text: &str, limits: &Limits) -> Self {
        match Json::parse(text, limits) {
            Ok(json) => json.into(),
            Err(_) => text.into(),
        }
    }

    /// Reads text as values of `data_type`: one element (`NaN`, `-9999`, ...), or nested JSON lists of elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where an element is not exactly one of the type's.
    pub fn from_typed_text(data_type: &DataType, text: &str, limits: &Limits) -> Result<Self> {
        if *data_type == DataType::String {
            return Ok(text.into());
        }
        match Json::parse(text, limits) {
            Ok(json @ Json::Array(_)) => TypedArray::from_json(data_type.clone(), &json),
            _ => {
                let bytes = data_type.element_from_text(text)?;
                TypedArray::new(data_type.clone(), Vec::new(), bytes)
            }
        }
        .map(Self::Typed)
    }

    /// The text, where this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Json(json) => json.as_str(),
            _ => None,
        }
    }

    /// The boolean, where this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Json(Json::Bool(v)) => Some(*v),
            Self::Typed(_) => match self.scalar()? {
                Json::Bool(v) => Some(v),
                _ => None,
            },
            _ => None,
        }
    }

    /// The integer, where this is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.scalar().and_then(|v| v.as_i64())
    }

    /// The integer, where this is one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        self.scalar().and_then(|v| v.as_u64())
    }

    /// The number, where this is one that an `f64` holds exactly: any float, and integers up to 2^53.
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Typed(array) = self
            && array.shape().is_empty()
            && let Some(v) = array.data_type().float_value(array.bytes())
        {
            return Some(v);
        }
        match self.scalar()? {
            Json::F64(v) => Some(v),
            integer => {
                let v = integer.as_i64().filter(|v| v.unsigned_abs() <= 1 << 53)?;
                #[expect(clippy::cast_precision_loss, reason = "at most 2^53 in magnitude")]
                Some(v as f64)
            }
        }
    }

    /// The typed array, where this is one.
    pub fn as_typed(&self) -> Option<&TypedArray> {
        match self {
            Self::Typed(array) => Some(array),
            _ => None,
        }
    }

    /// As JSON for display: non-finite floats become `"NaN"`, `"Infinity"`, `"-Infinity"`; [`AttributeValue::type_name`]
    /// tells them from the texts.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Json(json) => json.clone(),
            Self::Typed(array) => array.to_json(),
            Self::Tree(tree) => tree.to_json(),
        }
    }

    /// A short name of the type: `string`, `bool`, `null`, `json`, `float32`, `int64[3]`, `tree`.
    pub fn type_name(&self) -> String {
        match self {
            Self::Json(Json::String(_)) => "string".to_owned(),
            Self::Json(Json::Bool(_)) => "bool".to_owned(),
            Self::Json(Json::Null) => "null".to_owned(),
            Self::Json(_) => "json".to_owned(),
            Self::Tree(_) => "tree".to_owned(),
            Self::Typed(array) if array.shape().is_empty() => array.data_type().to_string(),
            Self::Typed(array) => {
                let lengths: Vec<String> = array.shape().iter().map(u64::to_string).collect();
                format!("{}[{}]", array.data_type(), lengths.join(","))
            }
        }
    }

    /// One number or bool as JSON, where this is a single value.
    fn scalar(&self) -> Option<Json> {
        match self {
            Self::Typed(array) if array.shape().is_empty() => Some(array.to_json()),
            Self::Json(json @ (Json::I64(_) | Json::U64(_) | Json::F64(_))) => Some(json.clone()),
            Self::Tree(tree @ (Tree::I64(_) | Tree::U64(_) | Tree::F64(_))) => Some(tree.to_json()),
            _ => None,
        }
    }

    /// Content and bytes of the value's blob.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a value that is too long or too deep, `InvalidArgument` for a name twice in one map or a
    /// non-finite float in JSON.
    pub(crate) fn encode(&self, limits: &Limits) -> Result<(Content, Vec<u8>)> {
        let (content, bytes) = match self {
            Self::Json(json) => {
                json.validate(limits)?;
                (Content::Json, json.to_string().into_bytes())
            }
            Self::Typed(array) => (Content::Typed, array.encode()?),
            Self::Tree(tree) => {
                tree.validate(limits)?;
                let mut w = Writer::default();
                tree.encode(&mut w)?;
                (Content::Tree, w.into_vec())
            }
        };
        check_len(bytes.len(), limits)?;
        Ok((content, bytes))
    }

    /// Reads the value of a blob.
    pub(crate) fn decode(content: Content, bytes: &[u8], limits: &Limits) -> Result<Self> {
        check_len(bytes.len(), limits)?;
        match content {
            Content::Json => Json::parse_stored(bytes, limits).map(Self::Json),
            Content::Typed => TypedArray::decode(bytes, limits).map(Self::Typed),
            Content::Tree => Tree::decode(bytes, limits).map(Self::Tree),
        }
    }
}

fn check_len(len: usize, limits: &Limits) -> Result<()> {
    if len as u64 <= limits.value_bytes {
        return Ok(());
    }
    Err(Error::limit("bytes of an attribute value")
        .expected(format_args!("at most {}", limits.value_bytes))
        .found(len))
}

impl From<Tree> for AttributeValue {
    fn from(tree: Tree) -> Self {
        if !tree.has_number() {
            return Self::Json(tree.to_json());
        }
        typed(&tree).map_or(Self::Tree(tree), Self::Typed)
    }
}

impl From<Json> for AttributeValue {
    fn from(json: Json) -> Self {
        Tree::from(json).into()
    }
}

impl From<TypedArray> for AttributeValue {
    fn from(array: TypedArray) -> Self {
        Self::Typed(array)
    }
}

/// The typed array that holds exactly these numbers: one number, or regular lists of integers alone or floats alone.
fn typed(tree: &Tree) -> Option<TypedArray> {
    let mut shape = Vec::new();
    let mut at = tree;
    while let Tree::List(items) = at {
        shape.push(items.len() as u64);
        at = items.first()?;
    }
    let mut numbers = Vec::new();
    flatten(tree, &shape, &mut numbers)?;
    let all = |test: fn(&&Tree) -> bool| numbers.iter().all(test);
    let (data_type, bits): (DataType, fn(&Tree) -> Option<u64>) =
        if all(|n| matches!(n, Tree::F64(_))) {
            (DataType::Float64, |n| match n {
                Tree::F64(v) => Some(v.to_bits()),
                _ => None,
            })
        } else if all(|n| signed(n).is_some()) {
            (DataType::Int64, |n| signed(n).map(i64::cast_unsigned))
        } else {
            (DataType::Uint64, unsigned)
        };
    let mut bytes = Vec::new();
    for number in numbers {
        bytes.extend(bits(number)?.to_le_bytes());
    }
    TypedArray::new(data_type, shape, bytes).ok()
}

fn signed(tree: &Tree) -> Option<i64> {
    match tree {
        Tree::I64(v) => Some(*v),
        Tree::U64(v) => i64::try_from(*v).ok(),
        _ => None,
    }
}

fn unsigned(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::I64(v) => u64::try_from(*v).ok(),
        Tree::U64(v) => Some(*v),
        _ => None,
    }
}

fn flatten<'a>(tree: &'a Tree, shape: &[u64], numbers: &mut Vec<&'a Tree>) -> Option<()> {
    match (tree, shape.split_first()) {
        (Tree::List(items), Some((len, rest))) if items.len() as u64 == *len => items
            .iter()
            .try_for_each(|item| flatten(item, rest, numbers)),
        (Tree::I64(_) | Tree::U64(_) | Tree::F64(_), None) => {
            numbers.push(tree);
            Some(())
        }
        _ => None,
    }
}

macro_rules! from_numbers {
    ($($number:ty => $data_type:ident),* $(,)?) => {
        $(
            impl From<$number> for AttributeValue {
                fn from(v: $number) -> Self {
                    Self::Typed(TypedArray::scalar(DataType::$data_type, &v.to_le_bytes()))
                }
            }

            impl From<&[$number]> for AttributeValue {
                fn from(list: &[$number]) -> Self {
                    let bytes = list.iter().flat_map(|v| v.to_le_bytes()).collect();
                    Self::Typed(TypedArray::list(DataType::$data_type, list.len(), bytes))
                }
            }

            impl From<Vec<$number>> for AttributeValue {
                fn from(list: Vec<$number>) -> Self {
                    list.as_slice().into()
                }
            }

            impl<const N: usize> From<[$number; N]> for AttributeValue {
                fn from(list: [$number; N]) -> Self {
                    list.as_slice().into()
                }
            }
        )*
    };
}

from_numbers! {
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64,
    f32 => Float32, f64 => Float64,
}

macro_rules! from_plain {
    ($($from:ty => |$v:ident| $to:expr),* $(,)?) => {
        $(
            impl From<$from> for AttributeValue {
                fn from($v: $from) -> Self {
                    Self::Json($to)
                }
            }

            impl From<&[$from]> for AttributeValue {
                fn from(list: &[$from]) -> Self {
                    let json = |item: &$from| {
                        let $v = item.to_owned();
                        $to
                    };
                    Self::Json(Json::Array(list.iter().map(json).collect()))
                }
            }

            impl From<Vec<$from>> for AttributeValue {
                fn from(list: Vec<$from>) -> Self {
                    list.as_slice().into()
                }
            }

            impl<const N: usize> From<[$from; N]> for AttributeValue {
                fn from(list: [$from; N]) -> Self {
                    list.as_slice().into()
                }
            }
        )*
    };
}

from_plain! {
    &str => |v| Json::String(v.into()),
    String => |v| Json::String(v),
    bool => |v| Json::Bool(v),
}

impl From<&String> for AttributeValue {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn kept(value: &AttributeValue) -> AttributeValue {
        let limits = Limits::default();
        let (content, bytes) = value.encode(&limits).unwrap();
        let back = AttributeValue::decode(content, &bytes, &limits).unwrap();
        assert_eq!(back.encode(&limits).unwrap(), (content, bytes));
        back
    }

    fn json(text: &str) -> AttributeValue {
        text.parse::<Json>().unwrap().into()
    }

    #[test]
    fn c27_integers_keep_every_digit() {
        for text in [
            "-9223372036854775808",
            "9007199254740993",
            "18446744073709551615",
        ] {
            let value = kept(&json(text));
            assert_eq!(value.to_json().to_string(), text);
            assert_eq!(
                kept(&json(&format!("{{\"a\":[{text},\"x\"]}}")))
                    .to_json()
                    .to_string(),
                format!("{{\"a\":[{text},\"x\"]}}")
            );
        }
        assert_eq!(kept(&i64::MIN.into()).as_i64(), Some(i64::MIN));
        assert_eq!(kept(&u64::MAX.into()).as_u64(), Some(u64::MAX));
        assert_eq!(kept(&u64::MAX.into()).as_i64(), None);
        assert_eq!(kept(&u64::MAX.into()).as_f64(), None);
        assert_eq!(kept(&7_u8.into()).as_f64(), Some(7.0));
    }

    #[test]
    fn c35_text_with_nul_and_long_text_keeps_its_length() {
        for text in ["a\0b\0c", "\0", "", &"x".repeat(70_000)] {
            assert_eq!(kept(&text.into()).as_str(), Some(text));
        }
    }

    #[test]
    fn c39_empty_text_empty_list_and_null_are_three_values() {
        let values = [
            kept(&"".into()),
            kept(&Vec::<f64>::new().into()),
            kept(&Json::Null.into()),
            kept(&json("[]")),
        ];
        let names: Vec<String> = values.iter().map(AttributeValue::type_name).collect();
        assert_eq!(names, ["string", "float64[0]", "null", "json"]);
        let shown: Vec<String> = values.iter().map(|v| v.to_json().to_string()).collect();
        assert_eq!(shown, ["\"\"", "[]", "null", "[]"]);
    }

    #[test]
    fn c40_the_text_nan_is_not_the_number() {
        let text = kept(&"NaN".into());
        let number = kept(&f64::NAN.into());
        assert_eq!(
            (text.as_str(), text.as_f64(), text.type_name().as_str()),
            (Some("NaN"), None, "string")
        );
        assert_eq!(
            (number.as_str(), number.type_name().as_str()),
            (None, "float64")
        );
        assert!(number.as_f64().unwrap().is_nan());
        assert_eq!(
            kept(&f64::NEG_INFINITY.into()).as_f64(),
            Some(f64::NEG_INFINITY)
        );
        assert!(kept(&(-0.0).into()).as_f64().unwrap().is_sign_negative());
        assert_eq!(kept(&"0x1p3".into()).as_str(), Some("0x1p3"));
        let mixed: AttributeValue = Tree::List(vec![
            1.0.into(),
            f64::NAN.into(),
            f64::INFINITY.into(),
            "NaN".into(),
        ])
        .into();
        let AttributeValue::Tree(Tree::List(items)) = kept(&mixed) else {
            panic!("a tree")
        };
        assert!(matches!(&items[1], Tree::F64(v) if v.is_nan()));
        assert!(matches!(&items[3], Tree::Text(text) if text == "NaN"));
        assert_eq!(
            mixed.to_json().to_string(),
            "[1.0,\"NaN\",\"Infinity\",\"NaN\"]"
        );
        let payload = f64::from_bits(0x7ff8_0000_dead_beef);
        assert_eq!(
            kept(&payload.into()).as_f64().unwrap().to_bits(),
            payload.to_bits()
        );
        assert_eq!(
            kept(&f32::from_bits(0x7fc0_1234).into())
                .as_typed()
                .unwrap()
                .bytes(),
            [0x34, 0x12, 0xc0, 0x7f]
        );
    }

    #[test]
    fn c42_true_and_1_stay_different() {
        let (yes, one) = (kept(&true.into()), kept(&1_i64.into()));
        assert_eq!((yes.as_bool(), yes.as_i64()), (Some(true), None));
        assert_eq!((one.as_bool(), one.as_i64()), (None, Some(1)));
    }

    #[test]
    fn json_becomes_the_content_that_keeps_it() {
        for (text, name) in [
            ("1", "int64"),
            ("18446744073709551615", "uint64"),
            ("1.0", "float64"),
            ("-0", "float64"),
            ("[1,2]", "int64[2]"),
            ("[[1.5,2.0],[3.0,4.0]]", "float64[2,2]"),
            ("[1,18446744073709551615]", "uint64[2]"),
            ("[-1,18446744073709551615]", "tree"),
            ("[1,2.5]", "tree"),
            ("[[1],[2,3]]", "tree"),
            ("[1,\"a\"]", "tree"),
            ("{\"a\":1}", "tree"),
            ("[[1,2],3]", "tree"),
            ("[[],[1]]", "tree"),
            ("{\"a\":[null,true,\"x\"]}", "json"),
            ("[\"a\",\"b\"]", "json"),
            ("[[],{}]", "json"),
            ("\"1\"", "string"),
        ] {
            let value = kept(&json(text));
            assert_eq!(value.type_name(), name, "{text}");
            assert_eq!(value.to_json(), text.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn the_command_reads_json_else_text_and_types_on_request() {
        let limits = Limits::default();
        let plain = |text: &str| AttributeValue::from_text(text, &limits).type_name();
        assert_eq!(
            ["-9999", "1e3", "NaN", "true", "\"7\"", "K", "[1,2]", ""].map(plain),
            [
                "int64", "float64", "string", "bool", "string", "string", "int64[2]", "string"
            ]
        );
        let typed = |name: &str, text: &str| {
            AttributeValue::from_typed_text(&name.parse().unwrap(), text, &limits)
        };
        assert_eq!(typed("f32", "NaN").unwrap().type_name(), "float32");
        assert_eq!(typed("f32", "[1,2.5]").unwrap().type_name(), "float32[2]");
        assert_eq!(typed("string", "7").unwrap().as_str(), Some("7"));
        assert_eq!(typed("c64", "[1,2]").unwrap().type_name(), "complex64");
        assert_eq!(
            typed("u8", "256").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            typed("bytes", "AA==").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }

    #[test]
    fn c36_a_value_that_cannot_be_stored_is_refused_when_encoded() {
        let limits = Limits::default();
        let e = |value: AttributeValue| value.encode(&limits).unwrap_err().kind();
        assert_eq!(
            e("x".repeat((4 << 20) - 1).into()),
            ErrorKind::LimitExceeded
        );
        assert!(
            AttributeValue::from("x".repeat((4 << 20) - 2))
                .encode(&limits)
                .is_ok()
        );
        assert_eq!(e(vec![0_u8; 4 << 20].into()), ErrorKind::LimitExceeded);
        assert_eq!(
            e(AttributeValue::Json(Json::F64(f64::NAN))),
            ErrorKind::InvalidArgument
        );
        let twice = vec![("a".to_owned(), Json::Null), ("a".to_owned(), Json::Null)];
        assert_eq!(
            e(AttributeValue::Json(Json::Object(twice))),
            ErrorKind::InvalidArgument
        );
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            Just(Tree::Null),
            any::<bool>().prop_map(Tree::Bool),
            any::<i64>().prop_map(Tree::I64),
            any::<u64>().prop_map(Tree::from),
            any::<u64>().prop_map(|bits| Tree::F64(f64::from_bits(bits))),
            ".{0,3}".prop_map(Tree::Text),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let members = prop::collection::btree_map(".{0,2}", inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Tree::List),
                members.prop_map(|m| Tree::Map(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_value_is_made_of_it_comes_back_and_shows_the_same(tree in trees()) {
            let shown = tree.to_json();
            let value = AttributeValue::from(tree);
            prop_assert_eq!(kept(&value).to_json(), shown);
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(
            content in prop::sample::select(vec![Content::Json, Content::Typed, Content::Tree]),
            bytes in prop::collection::vec(prop_oneof![0..10_u8, any::<u8>()], 0..40)
        ) {
            let limits = Limits::default();
            if let Ok(value) = AttributeValue::decode(content, &bytes, &limits) {
                value.encode(&limits).unwrap();
                let _ = (value.to_json(), value.type_name(), value.as_f64());
            }
        }
    }
}
