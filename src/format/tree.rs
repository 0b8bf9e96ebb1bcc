//! Tagged values: JSON's shapes with exact numbers. Spec: `format-spec/07-blobs.md`, "Content 2".
//!
//! Holds [`Tree`], its encoding and its validation. Must not know attributes.

use super::json::{Json, duplicate_name};
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// A value of mixed parts; unlike [`Json`] its floats keep every bit, NaN and infinities included.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Nothing, which is a value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer that fits an `i64`.
    I64(i64),
    /// An integer; stored as `I64` where it fits one.
    U64(u64),
    /// Any float.
    F64(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// Names and values in order; names are unique.
    Map(Vec<(String, Tree)>),
}

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const I64: u8 = 3;
const U64: u8 = 4;
const F64: u8 = 5;
const TEXT: u8 = 6;
const LIST: u8 = 7;
const MAP: u8 = 8;

impl Tree {
    /// True when a number stands anywhere in it.
    pub(crate) fn has_number(&self) -> bool {
        match self {
            Self::I64(_) | Self::U64(_) | Self::F64(_) => true,
            Self::List(items) => items.iter().any(Self::has_number),
            Self::Map(members) => members.iter().any(|(_, v)| v.has_number()),
            Self::Null | Self::Bool(_) | Self::Text(_) => false,
        }
    }

    /// As JSON for display: non-finite floats become `"NaN"`, `"Infinity"`, `"-Infinity"`.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(v) => Json::Bool(*v),
            Self::I64(v) => Json::I64(*v),
            Self::U64(v) => Json::from_u64(*v),
            Self::F64(v) if v.is_nan() => Json::text("NaN"),
            Self::F64(v) if v.is_infinite() => {
                Json::text(if *v > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Self::F64(v) => Json::F64(*v),
            Self::Text(text) => Json::text(text),
            Self::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Map(members) => Json::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), value.to_json()))
                    .collect(),
            ),
        }
    }

    /// Refuses what the encoding cannot hold: too deep nesting, a name twice in one map.
    pub(crate) fn validate(&self, limits: &Limits) -> Result<()> {
        self.validate_within(limits.json_depth)
            .map_err(|e| match e {
                Error::LimitExceeded(_) => {
                    e.expected(format_args!("at most {}", limits.json_depth))
                }
                other => other,
            })
    }

    fn validate_within(&self, left: usize) -> Result<()> {
        let inside = || {
            left.checked_sub(1)
                .ok_or_else(|| Error::limit("nesting of an attribute value"))
        };
        match self {
            Self::List(items) => {
                let left = inside()?;
                items.iter().try_for_each(|item| item.validate_within(left))
            }
            Self::Map(members) => {
                let left = inside()?;
                if let Some(name) = duplicate_name(members.iter().map(|(n, _)| n.as_str())) {
                    return Err(name_twice(name));
                }
                members
                    .iter()
                    .try_for_each(|(_, value)| value.validate_within(left))
            }
            _ => Ok(()),
        }
    }

    /// Appends the encoding; `validate` has bounded the recursion.
    pub(crate) fn encode(&self, w: &mut Writer) -> Result<()> {
        match self {
            Self::Null => w.u8(NULL),
            Self::Bool(v) => w.u8(if *v { TRUE } else { FALSE }),
            Self::I64(v) => {
                w.u8(I64);
                w.i64(*v);
            }
            Self::U64(v) => match i64::try_from(*v) {
                Ok(v) => {
                    w.u8(I64);
                    w.i64(v);
                }
                Err(_) => {
                    w.u8(U64);
                    w.u64(*v);
                }
            },
            Self::F64(v) => {
                w.u8(F64);
                w.u64(v.to_bits());
            }
            Self::Text(text) => {
                w.u8(TEXT);
                encode_text(text, w)?;
            }
            Self::List(items) => {
                w.u8(LIST);
                w.u32(count(items.len())?);
                for item in items {
                    item.encode(w)?;
                }
            }
            Self::Map(members) => {
                w.u8(MAP);
                w.u32(count(members.len())?);
                for (name, value) in members {
                    encode_text(name, w)?;
                    value.encode(w)?;
                }
            }
        }
        Ok(())
    }

    /// Reads one value that ends where `bytes` end.
    pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let mut r = Reader::new("tagged value", 0, bytes);
        let tree = Self::read(&mut r, limits.json_depth)?;
        r.finish()?;
        Ok(tree)
    }

    fn read(r: &mut Reader<'_>, left: usize) -> Result<Self> {
        let fault = r.fault();
        let tag = r.u8()?;
        let inside = || {
            left.checked_sub(1)
                .ok_or_else(|| Error::limit("nesting of a tagged value"))
        };
        Ok(match tag {
            NULL => Self::Null,
            FALSE => Self::Bool(false),
            TRUE => Self::Bool(true),
            I64 => Self::I64(r.i64()?),
            U64 => {
                let v = r.u64()?;
                i64::try_from(v).map_or(Self::U64(v), Self::I64)
            }
            F64 => Self::F64(f64::from_bits(r.u64()?)),
            TEXT => Self::Text(read_text(r)?),
            LIST => {
                let left = inside()?;
                let count = r.u32()?;
                // Grows with what is really there: the count is only a claim.
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(Self::read(r, left)?);
                }
                Self::List(items)
            }
            MAP => {
                let left = inside()?;
                let count = r.u32()?;
                let mut members = Vec::new();
                for _ in 0..count {
                    let name = read_text(r)?;
                    members.push((name, Self::read(r, left)?));
                }
                if let Some(name) = duplicate_name(members.iter().map(|(n, _)| n.as_str())) {
                    return Err(name_twice(name).into_corrupt());
                }
                Self::Map(members)
            }
            _ => return Err(fault.expected("a tag from 0 to 8").found(tag)),
        })
    }
}

fn name_twice(name: &str) -> Error {
    Error::invalid("map in an attribute value")
        .expected("unique names")
        .found(format_args!("{name:?} twice"))
}

fn count(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| {
        Error::limit("length within an attribute value")
            .expected("at most 2^32-1")
            .found(len)
    })
}

fn encode_text(text: &str, w: &mut Writer) -> Result<()> {
    w.u32(count(text.len())?);
    w.slice(text.as_bytes());
    Ok(())
}

fn read_text(r: &mut Reader<'_>) -> Result<String> {
    let len = r.u32()?;
    let fault = r.fault();
    let bytes = r.take(usize::try_from(len).unwrap_or(usize::MAX))?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(fault.expected("UTF-8").found("other bytes")),
    }
}

impl From<Json> for Tree {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(v) => Self::Bool(v),
            Json::I64(v) => Self::I64(v),
            Json::U64(v) => Self::U64(v),
            Json::F64(v) => Self::F64(v),
            Json::String(text) => Self::Text(text),
            Json::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Json::Object(members) => Self::Map(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

macro_rules! tree_from {
    ($($from:ty => |$v:ident| $to:expr),* $(,)?) => {
        $(
            impl From<$from> for Tree {
                fn from($v: $from) -> Self {
                    $to
                }
            }
        )*
    };
}

tree_from! {
    bool => |v| Self::Bool(v),
    i8 => |v| Self::I64(v.into()),
    i16 => |v| Self::I64(v.into()),
    i32 => |v| Self::I64(v.into()),
    i64 => |v| Self::I64(v),
    u8 => |v| Self::I64(v.into()),
    u16 => |v| Self::I64(v.into()),
    u32 => |v| Self::I64(v.into()),
    u64 => |v| i64::try_from(v).map_or(Self::U64(v), Self::I64),
    f32 => |v| Self::F64(v.into()),
    f64 => |v| Self::F64(v),
    &str => |v| Self::Text(v.to_owned()),
    String => |v| Self::Text(v),
    Vec<Tree> => |v| Self::List(v),
    Vec<(String, Tree)> => |v| Self::Map(v),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn encode(tree: &Tree) -> Vec<u8> {
        let mut w = Writer::default();
        tree.encode(&mut w).unwrap();
        w.into_vec()
    }

    #[test]
    fn each_kind_has_the_bytes_of_the_specification() {
        let tree = Tree::Map(vec![
            (
                "a".into(),
                Tree::List(vec![Tree::Null, false.into(), true.into(), (-2_i64).into()]),
            ),
            ("b".into(), u64::MAX.into()),
            (String::new(), (-0.0).into()),
            ("t".into(), "\u{e9}\0".into()),
        ]);
        let mut expected = vec![
            8, 4, 0, 0, 0, 1, 0, 0, 0, b'a', 7, 4, 0, 0, 0, 0, 1, 2, 3, 0xfe,
        ];
        expected.extend([0xff; 7]);
        expected.extend([1, 0, 0, 0, b'b', 4]);
        expected.extend([0xff; 8]);
        expected.extend([0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x80]);
        expected.extend([1, 0, 0, 0, b't', 6, 3, 0, 0, 0, 0xc3, 0xa9, 0]);
        assert_eq!(encode(&tree), expected);
        let back = Tree::decode(&expected, &Limits::default()).unwrap();
        assert_eq!(encode(&back), expected);
        assert_eq!(encode(&Tree::U64(5)), encode(&Tree::I64(5)));
    }

    #[test]
    fn a_float_keeps_its_bits_whatever_they_are() {
        for bits in [
            0x7ff8_0000_0000_0001,
            0xfff0_0000_0000_0001,
            0x7ff0_0000_0000_0000,
            1 << 63,
        ] {
            let bytes = encode(&Tree::F64(f64::from_bits(bits)));
            let Tree::F64(back) = Tree::decode(&bytes, &Limits::default()).unwrap() else {
                panic!("a float")
            };
            assert_eq!(back.to_bits(), bits);
        }
    }

    #[test]
    fn broken_bytes_are_corrupt_and_no_count_is_believed() {
        for bytes in [
            &[][..],
            &[9],
            &[3, 0],
            &[0, 0],
            &[6, 255, 255, 255, 255, b'a'],
            &[6, 1, 0, 0, 0, 0xff],
            &[7, 255, 255, 255, 255, 0],
            &[8, 255, 255, 255, 255],
            &[8, 1, 0, 0, 0, 1, 0, 0, 0, b'a'],
            &[8, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1],
        ] {
            assert!(
                Tree::decode(bytes, &Limits::default())
                    .unwrap_err()
                    .is_corruption(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn nesting_passes_at_the_limit_and_fails_one_above() {
        let nest = |n: usize| (0..n).fold(Tree::Null, |tree, _| Tree::List(vec![tree]));
        let limits = Limits::default();
        assert!(nest(64).validate(&limits).is_ok());
        assert!(Tree::decode(&encode(&nest(64)), &limits).is_ok());
        assert_eq!(
            nest(65).validate(&limits).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
        let e = Tree::decode(&encode(&nest(65)), &limits).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        let mut bomb = [7, 1, 0, 0, 0].repeat(100_000);
        bomb.push(0);
        assert_eq!(
            Tree::decode(&bomb, &limits).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
        let twice = Tree::Map(vec![("a".into(), Tree::Null), ("a".into(), Tree::Null)]);
        assert!(twice.validate(&limits).is_err());
    }
}
