//! Directory entries: a child's name, id and kind. Spec: `format-spec/05-keys.md`.
//!
//! Holds [`Entry`] and its encoding. Must not look anything up.

use std::fmt;

use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::key::{self, Value};
use crate::format::name::object_name_from_key;
use crate::limits::GENERATION_END;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// Has members.
    Group,
    /// Has elements.
    Array,
}

/// `group` or `array`.
impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group => "group",
            Self::Array => "array",
        })
    }
}

/// One member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
}

const KIND_GROUP: u8 = 1;
const KIND_ARRAY: u8 = 2;

/// The value of a directory entry.
pub(crate) fn encode(id: ObjectId, kind: ObjectKind) -> Value {
    let mut value = Value::new();
    key::push_vint(&mut value, id.0.cast_signed());
    value.push(match kind {
        ObjectKind::Group => KIND_GROUP,
        ObjectKind::Array => KIND_ARRAY,
    });
    value
}

/// Reads the value of a directory entry.
pub(crate) fn decode(value: &[u8]) -> Result<(ObjectId, ObjectKind)> {
    let mut rest = value;
    let id = key::take_vint(&mut rest)?;
    let id = u64::try_from(id)
        .ok()
        .filter(|id| (1..GENERATION_END).contains(id))
        .ok_or_else(|| fault().expected("an id in 1..2^61").found(id))?;
    let kind = match rest {
        [KIND_GROUP] => ObjectKind::Group,
        [KIND_ARRAY] => ObjectKind::Array,
        [kind] => return Err(Error::unsupported("kind of object").found(kind)),
        _ => {
            return Err(fault()
                .expected("an id and one byte")
                .found(format_args!("{value:02x?}")));
        }
    };
    Ok((ObjectId(id), kind))
}

/// Reads a directory entry whose key has `prefix_len` bytes before the name.
pub(crate) fn decode_member(key: &[u8], prefix_len: usize, value: &[u8]) -> Result<Entry> {
    let name = object_name_from_key(key.get(prefix_len..).unwrap_or_default())?;
    let (id, kind) = decode(value)?;
    Ok(Entry {
        name: name.to_owned(),
        id,
        kind,
    })
}

fn fault() -> Error {
    Error::corrupt("directory entry")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn an_entry_has_the_bytes_of_the_specification_and_refuses_others() {
        let value = encode(ObjectId(120), ObjectKind::Array);
        assert_eq!(value.as_slice(), [0xf8, 0, 2]);
        assert_eq!(decode(&value).unwrap(), (ObjectId(120), ObjectKind::Array));
        assert_eq!(encode(ObjectId(1), ObjectKind::Group).as_slice(), [0x81, 1]);
        for value in [
            &[][..],
            &[0x81],
            &[0x80, 1],
            &[0x7f, 1],
            &[0x81, 1, 0],
            &[0xf8, 1],
        ] {
            assert!(decode(value).unwrap_err().is_corruption(), "{value:?}");
        }
        assert_eq!(
            decode(&[0x81, 3]).unwrap_err().kind(),
            ErrorKind::Unsupported
        );
    }
}
