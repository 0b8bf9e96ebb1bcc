//! Typed arrays as attribute values. Spec: `format-spec/07-blobs.md`, "Content 1".
//!
//! Holds [`TypedArray`], its encoding and its JSON forms. Must not know attributes or chunks.
//!
//! Invariant: the bytes are exactly product(shape) elements of a fixed-size type.

use super::dtype::DataType;
use super::json::Json;
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::limits::{Limits, RANK_MAX};

/// Most empty lists that are shown of an array without elements, whose shape costs a file nothing.
const EMPTY_LISTS_SHOWN: usize = 1024;

/// A small array that keeps its type and every bit: shape, and little-endian elements in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedArray {
    data_type: DataType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl TypedArray {
    /// An array of `shape` (empty: one element) from its elements' little-endian bytes in C order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the type has no fixed size, the bytes are not product(shape) elements, a bool is neither
    /// 0 nor 1, or there are more than 32 axes.
    pub fn new(data_type: DataType, shape: Vec<u64>, bytes: Vec<u8>) -> Result<Self> {
        data_type.validate()?;
        let item_size = data_type.item_size().ok_or_else(|| {
            Error::invalid("type of a typed value")
                .expected("a type of fixed size")
                .found(&data_type)
        })?;
        if shape.len() > RANK_MAX {
            return Err(Error::invalid("axes of a typed value")
                .expected(format_args!("at most {RANK_MAX}"))
                .found(shape.len()));
        }
        let wanted = element_count(&shape).and_then(|n| n.checked_mul(item_size as u64));
        if wanted != Some(bytes.len() as u64) {
            let wanted = wanted.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string());
            return Err(Error::invalid("elements of a typed value")
                .expected(format_args!(
                    "{wanted} bytes for shape {shape:?} of {data_type}"
                ))
                .found(bytes.len()));
        }
        if data_type == DataType::Bool && bytes.iter().any(|b| *b > 1) {
            return Err(Error::invalid("bool in a typed value").expected("0 or 1"));
        }
        Ok(Self {
            data_type,
            shape,
            bytes,
        })
    }

    /// One element.
    pub(crate) fn scalar(data_type: DataType, bytes: &[u8]) -> Self {
        Self {
            data_type,
            shape: Vec::new(),
            bytes: bytes.to_vec(),
        }
    }

    /// Elements along one axis.
    pub(crate) fn list(data_type: DataType, count: usize, bytes: Vec<u8>) -> Self {
        Self {
            data_type,
            shape: vec![count as u64],
            bytes,
        }
    }

    /// Type of the elements.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Length of each axis; empty for a single value.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements, little-endian, in C order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads nested lists of elements of `data_type`, or one element; the lists must be regular.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where an element is not exactly one of the type's, or lists of one level differ in length.
    pub fn from_json(data_type: DataType, json: &Json) -> Result<Self> {
        let mut shape = Vec::new();
        let mut at = json;
        // An element may be a list itself: complex numbers, records.
        while data_type.element_from_json(at).is_err() {
            let Json::Array(items) = at else { break };
            shape.push(items.len() as u64);
            match items.first() {
                Some(first) => at = first,
                None => break,
            }
        }
        let mut bytes = Vec::new();
        collect(&data_type, json, &shape, &mut bytes)?;
        Self::new(data_type, shape, bytes)
    }

    /// Nested lists for display; elements as [`DataType::element_to_json`] writes them.
    pub fn to_json(&self) -> Json {
        let item_size = self.data_type.item_size().unwrap_or(1).max(1);
        let mut level: Vec<Json> = self
            .bytes
            .chunks_exact(item_size)
            .map(|element| self.data_type.element_to_json(element))
            .collect();
        for (axis, len) in self.shape.iter().enumerate().rev() {
            let outer = self.shape.get(..axis).and_then(element_count).unwrap_or(0);
            let (outer, len) = (usize::try_from(outer), usize::try_from(*len));
            let (outer, len) = (outer.unwrap_or(0), len.unwrap_or(0));
            let mut items = level.into_iter();
            level = (0..outer.min(self.bytes.len().max(EMPTY_LISTS_SHOWN)))
                .map(|_| Json::Array(items.by_ref().take(len).collect()))
                .collect();
        }
        level
            .into_iter()
            .next()
            .unwrap_or_else(|| Json::Array(Vec::new()))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let type_text = self.data_type.to_json().to_string();
        let type_len = u16::try_from(type_text.len()).map_err(|_| {
            Error::limit("data type of a typed value")
                .expected("at most 65535 bytes of JSON")
                .found(type_text.len())
        })?;
        let rank = u8::try_from(self.shape.len())
            .map_err(|_| Error::limit("axes of a typed value").found(self.shape.len()))?;
        let mut w = Writer::with_capacity(self.bytes.len().saturating_add(type_text.len()));
        w.u16(type_len);
        w.slice(type_text.as_bytes());
        w.u8(rank);
        for len in &self.shape {
            w.u64(*len);
        }
        w.slice(&self.bytes);
        Ok(w.into_vec())
    }

    pub(crate) fn decode(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let mut r = Reader::new("typed value", 0, bytes);
        let type_len = r.u16()?;
        let type_text = r.take(type_len.into())?;
        let data_type = DataType::from_json(&Json::parse_stored(type_text, limits)?)
            .map_err(Error::into_corrupt)?;
        let rank = r.u8()?;
        let shape = (0..rank).map(|_| r.u64()).collect::<Result<Vec<u64>>>()?;
        Self::new(data_type, shape, r.rest().to_vec()).map_err(Error::into_corrupt)
    }
}

/// Product of the lengths; an empty axis makes it 0 whatever the others are.
fn element_count<S: AsRef<[u64]> + ?Sized>(shape: &S) -> Option<u64> {
    let shape = shape.as_ref();
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |n, len| n.checked_mul(*len))
}

fn collect(data_type: &DataType, json: &Json, shape: &[u64], bytes: &mut Vec<u8>) -> Result<()> {
    let Some((len, rest)) = shape.split_first() else {
        bytes.extend(data_type.element_from_json(json)?);
        return Ok(());
    };
    match json {
        Json::Array(items) if items.len() as u64 == *len => items
            .iter()
            .try_for_each(|item| collect(data_type, item, rest, bytes)),
        other => Err(Error::invalid("lists of a typed value")
            .expected(format_args!("a list of {len}, as its neighbours are"))
            .found(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn array(data_type: &str, json: &str) -> Result<TypedArray> {
        TypedArray::from_json(data_type.parse().unwrap(), &json.parse().unwrap())
    }

    #[test]
    fn the_encoding_is_the_one_of_the_specification() {
        let value = array("i16", "[[1,2,3],[4,5,-6]]").unwrap();
        let mut expected = vec![7, 0];
        expected.extend(b"\"int16\"\x02");
        expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0xfa, 0xff]);
        assert_eq!(value.encode().unwrap(), expected);
        assert_eq!(
            TypedArray::decode(&expected, &Limits::default()).unwrap(),
            value
        );
        assert_eq!(value.to_json().to_string(), "[[1,2,3],[4,5,-6]]");
    }

    #[test]
    fn lists_of_any_shape_go_to_json_and_back() {
        for (data_type, json) in [
            ("f64", "1.5"),
            ("f64", "[]"),
            ("f64", "[[],[]]"),
            ("f32", "[0.1,\"NaN\",\"-Infinity\"]"),
            ("c64", "[1.0,2.0]"),
            ("c64", "[[1.0,2.0],[3.0,\"NaN\"]]"),
            ("{a:i8,b:f32}", "[[1,0.5],[2,1.5]]"),
            ("r8", "[[\"AA==\"],[\"AQ==\"]]"),
            ("bool", "[true,false]"),
            ("datetime64:s", "[\"1970-01-01T00:00:00\",\"NaT\"]"),
        ] {
            let value = array(data_type, json).unwrap();
            assert_eq!(value.to_json().to_string(), json);
            let back = TypedArray::decode(&value.encode().unwrap(), &Limits::default()).unwrap();
            assert_eq!(back, value);
        }
        assert_eq!(array("c64", "[[1.0,2.0],[3.0,4.0]]").unwrap().shape(), [2]);
        for (data_type, json) in [
            ("i8", "[[1],[2,3]]"),
            ("i8", "[1,[2]]"),
            ("i8", "[1,300]"),
            ("i8", "{}"),
            ("string", "\"a\""),
        ] {
            assert_eq!(
                array(data_type, json).unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{json}"
            );
        }
        let empty = TypedArray::new(DataType::Int8, vec![0, u64::MAX], Vec::new()).unwrap();
        assert_eq!(empty.to_json().to_string(), "[]");
        let empty = TypedArray::new(DataType::Int8, vec![u64::MAX, 0], Vec::new()).unwrap();
        assert_eq!(empty.to_json().depth(), 2);
        let huge = vec![u64::MAX, u64::MAX, 0];
        assert!(TypedArray::new(DataType::Int8, huge, Vec::new()).is_ok());
    }

    #[test]
    fn elements_that_are_not_exactly_the_shape_are_corrupt() {
        let good = array("i16", "[1,2]").unwrap().encode().unwrap();
        assert!(TypedArray::decode(&good, &Limits::default()).is_ok());
        for len in 0..good.len() {
            assert!(
                TypedArray::decode(&good[..len], &Limits::default())
                    .unwrap_err()
                    .is_corruption()
            );
        }
        let mut long = good.clone();
        long.push(0);
        assert!(TypedArray::decode(&long, &Limits::default()).is_err());
        let mut huge = good;
        huge[10..18].fill(0xff);
        assert!(
            TypedArray::decode(&huge, &Limits::default())
                .unwrap_err()
                .is_corruption()
        );
        assert!(TypedArray::new(DataType::Int64, vec![1 << 62, 1 << 62, 8], Vec::new()).is_err());
        assert!(TypedArray::new(DataType::Bool, vec![1], vec![2]).is_err());
        assert!(TypedArray::new(DataType::String, vec![], vec![]).is_err());
        let mut many = vec![6, 0];
        many.extend(b"\"int8\"\x21");
        many.extend([1, 0, 0, 0, 0, 0, 0, 0].repeat(33));
        many.push(0);
        assert!(
            TypedArray::decode(&many, &Limits::default())
                .unwrap_err()
                .is_corruption()
        );
    }
}
