//! The attributes of an object, in both places where they can be. After the "HDF5 File Format Specification", IV.A.2.m.
//!
//! Holds [`Attribute`], [`attributes`] and what a container makes of one, [`Attribute::value`]. Must not know what names
//! mean.

use hdf5_reader::io::Cursor as Their;
use hdf5_reader::messages::attribute_info;
use orthant::{AttributeValue, DataType, Json, TypedArray};

use super::datatype::{Class, Padding, Type};
use super::file::{File, guarded};
use super::header::{Header, shared};
use super::heap::Heap;
use super::links::objects;
use super::space::Space;
use super::wire::Kind;
use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

const DATASPACE: u16 = 0x01;
const DATATYPE: u16 = 0x03;
const ATTRIBUTE: u16 = 0x0c;
const ATTRIBUTE_INFO: u16 = 0x15;

/// An attribute as it stands.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) data_type: Type,
    pub(super) space: Space,
    pub(super) bytes: Vec<u8>,
}

/// All attributes that can be read, and why others cannot.
pub(super) fn attributes(file: &File, header: &Header) -> (Vec<Attribute>, Vec<Refusal>) {
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut sort = |read: Result<Attribute, Refusal>| match read {
        Ok(attribute) => found.push(attribute),
        Err(reason) => refused.push(reason),
    };
    for message in header.all(ATTRIBUTE) {
        sort(if message.shared {
            shared(file, &message.body, ATTRIBUTE).and_then(|body| Attribute::parse(file, &body))
        } else {
            Attribute::parse(file, &message.body)
        });
    }
    match dense(file, header) {
        Ok(bodies) => {
            for body in bodies {
                sort(body.and_then(|body| Attribute::parse(file, &body)));
            }
        }
        Err(reason) => sort(Err(reason)),
    }
    (found, refused)
}

fn dense(file: &File, header: &Header) -> Result<Vec<Result<Vec<u8>, Refusal>>, Refusal> {
    let Some(body) = header.first(file, ATTRIBUTE_INFO)? else {
        return Ok(Vec::new());
    };
    let (o, l) = (file.offset_size, file.length_size);
    let info = guarded(|| attribute_info::parse(&mut Their::new(&body), o, l, body.len()))?;
    objects(
        file,
        info.fractal_heap_address,
        info.btree_name_index_address,
    )
}

impl Attribute {
    fn parse(file: &File, body: &[u8]) -> Result<Self, Refusal> {
        let mut cursor = Cursor::little(body);
        let version = cursor.u8()?;
        let flags = cursor.u8()?;
        if !(1..=3).contains(&version) {
            return Err(format!("an attribute of version {version}"));
        }
        let flags = if version == 1 { 0 } else { flags };
        let lengths = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
        if version == 3 {
            cursor.skip(1)?;
        }
        let mut parts = Vec::new();
        for len in lengths {
            parts.push(cursor.take(len)?);
            if version == 1 {
                let gap = len.next_multiple_of(8).saturating_sub(len);
                cursor.skip(gap)?;
            }
        }
        let [name, data_type, space] = parts.as_slice() else {
            return Err("an attribute without its parts".to_owned());
        };
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let name = String::from_utf8(name.get(..end).unwrap_or_default().to_vec())
            .map_err(|_| "an attribute whose name is not UTF-8")?;
        let named = |reason: Refusal| format!("attribute {name:?} is left behind: {reason}");
        let data_type = if flags & 1 == 0 {
            Type::parse(data_type)
        } else {
            shared(file, data_type, DATATYPE).and_then(|body| Type::parse(&body))
        };
        let data_type = data_type.map_err(named)?;
        let space = if flags & 2 == 0 {
            Space::parse(file, space)
        } else {
            shared(file, space, DATASPACE).and_then(|body| Space::parse(file, &body))
        };
        let space = space.map_err(named)?;
        let len = space.count().and_then(|n| n.checked_mul(data_type.size));
        let bytes = len.and_then(|len| cursor.rest().get(..len));
        let bytes = bytes.ok_or_else(|| named("it is cut".to_owned()))?.to_vec();
        Ok(Self {
            name,
            data_type,
            space,
            bytes,
        })
    }

    /// The value, with its type. One element of a list becomes that element where `single` says so, as netCDF means it.
    pub(super) fn value(&self, heap: &Heap, single: bool) -> Result<AttributeValue, Refusal> {
        let Some(mut shape) = self.space.extents.clone() else {
            return Ok(AttributeValue::from(Json::Null));
        };
        if single && shape == [1] {
            shape.clear();
        }
        match &self.data_type.class {
            Class::Text { padding } => {
                let texts = self.bytes.chunks_exact(self.data_type.size);
                let texts: Option<Vec<String>> = texts.map(|t| text(t, *padding)).collect();
                if let Some(texts) = texts {
                    return Ok(nested(texts, &shape));
                }
            }
            Class::VariableText => {
                let found = heap.follow(&self.bytes, 1)?;
                let texts: Option<Vec<String>> =
                    found.iter().map(|t| text(t, Padding::Zeros)).collect();
                let texts = texts.ok_or("its text is not UTF-8")?;
                return Ok(nested(texts, &shape));
            }
            Class::Sequence(base) if self.space.count() == Some(1) => {
                let found = heap.follow(&self.bytes, base.size)?;
                let bytes = found.first().cloned().unwrap_or_default().into_vec();
                let count = bytes.len().checked_div(base.size).unwrap_or_default() as u64;
                return typed(base, vec![count], bytes);
            }
            _ => {}
        }
        typed(&self.data_type, shape, self.bytes.clone())
    }

    /// The text that it is.
    pub(super) fn as_text(&self, heap: &Heap) -> Option<String> {
        let value = self.value(heap, true).ok()?;
        value.as_str().map(str::to_owned)
    }
}

fn typed(data_type: &Type, mut shape: Vec<u64>, bytes: Vec<u8>) -> Result<AttributeValue, Refusal> {
    let kind = Kind::of(data_type)?;
    shape.extend(&kind.dims);
    if kind.data_type == DataType::String {
        return Err("text of any length where it cannot be".to_owned());
    }
    let bytes = kind.wire.decode(bytes, kind.size)?;
    TypedArray::new(kind.data_type, shape, bytes)
        .map(AttributeValue::Typed)
        .map_err(|e| e.to_string())
}

/// A text without what fills it; none where it is not UTF-8.
fn text(bytes: &[u8], padding: Padding) -> Option<String> {
    let end = match padding {
        Padding::Zeros => bytes.iter().position(|b| *b == 0),
        Padding::Spaces => bytes
            .iter()
            .rposition(|b| *b != b' ')
            .map(|n| n + 1)
            .or(Some(0)),
    };
    let bytes = bytes.get(..end.unwrap_or(bytes.len()))?;
    String::from_utf8(bytes.to_vec()).ok()
}

/// Texts as lists of lists.
fn nested(texts: Vec<String>, shape: &[u64]) -> AttributeValue {
    let mut level: Vec<Json> = texts.into_iter().map(Json::String).collect();
    for extent in shape.iter().skip(1).rev() {
        let len = usize::try_from(*extent).unwrap_or(usize::MAX).max(1);
        level = level
            .chunks(len)
            .map(|part| Json::Array(part.to_vec()))
            .collect();
    }
    match (shape, level.pop()) {
        ([], Some(only)) => only.into(),
        (_, last) => {
            level.extend(last);
            Json::Array(level).into()
        }
    }
}
