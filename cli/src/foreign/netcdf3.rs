//! Classic netCDF files: version 1, with 64-bit offsets, and with 64-bit data. After the "NetCDF Classic Format
//! Specification" and that of CDF-5.
//!
//! Holds [`open`]. Variables lie as they are, records interleaved, so any box of them is read where it is. Must not know
//! conventions.

use std::fs::File;

use orthant::{AttributeValue, DataType, Elements, Json, TypedArray};

use super::cursor::Cursor;
use super::flat::{Bytes, Flat, Order};
use super::{Array, Attributes, Content, Facts, Node, Refusal, Source, What, refused};

/// First bytes; the version follows.
pub(super) const MAGIC: &[u8; 3] = b"CDF";

/// How much of a file is looked through for its header, in turn.
const HEADER_LENS: [u64; 4] = [1 << 16, 1 << 20, 1 << 24, 3 << 24];
/// Most axes, as in a container.
const RANK_MAX: u64 = 32;

const DIMENSIONS: u32 = 0x0a;
const VARIABLES: u32 = 0x0b;
const ATTRIBUTES: u32 = 0x0c;

/// Everything in a file of `len` bytes.
pub(super) fn open(file: File, len: u64) -> Source {
    let bytes = Bytes::File(file);
    let mut read = Err("an empty file".to_owned());
    for header_len in HEADER_LENS {
        read = header(&bytes, len.min(header_len));
        if read.is_ok() || header_len >= len {
            break;
        }
    }
    let header = match read {
        Ok(header) => header,
        Err(reason) => return refused("netCDF-3", format!("a header that is broken: {reason}")),
    };
    let Bytes::File(file) = bytes else {
        return refused("netCDF-3", "no file".to_owned());
    };
    let mut nodes = vec![Node {
        inside: "/".to_owned(),
        path: String::new(),
        what: What::Group(header.attributes.clone()),
    }];
    let layout = Layout::of(&header, len);
    for variable in &header.variables {
        let array = header.array(variable, &layout, &file, len);
        nodes.push(Node {
            inside: format!("/{}", variable.name),
            path: variable.name.clone(),
            what: array.map_or_else(What::Refused, |array| What::Array(Box::new(array))),
        });
    }
    Source {
        kind: "netCDF-3",
        nodes,
    }
}

#[derive(Debug)]
struct Dimension {
    name: String,
    /// None for that of the records.
    len: Option<u64>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    dimensions: Vec<usize>,
    attributes: Attributes,
    lost: Vec<String>,
    data_type: Result<DataType, Refusal>,
    begin: u64,
}

#[derive(Debug)]
struct Header {
    /// None where the writer did not know.
    records: Option<u64>,
    dimensions: Vec<Dimension>,
    attributes: Attributes,
    variables: Vec<Variable>,
}

/// How records lie.
struct Layout {
    records: u64,
    /// Bytes from one record to the next.
    stride: u64,
}

/// Reads the header out of the first bytes of the file.
fn header(bytes: &Bytes, len: u64) -> Result<Header, Refusal> {
    let mut head = vec![0; usize::try_from(len).unwrap_or(0)];
    bytes
        .read_at(0, &mut head)
        .map_err(|e| format!("it cannot be read: {e}"))?;
    let mut cursor = Cursor::big(&head);
    cursor.skip(MAGIC.len())?;
    let version = cursor.u8()?;
    let (count_len, offset_len) = match version {
        1 => (4, 4),
        2 => (4, 8),
        5 => (8, 8),
        other => return Err(format!("version {other}")),
    };
    let mut parser = Parser {
        cursor,
        count_len,
        offset_len,
    };
    let unknown = if count_len == 4 {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    };
    let records = Some(parser.count()?).filter(|n| *n != unknown);
    let mut dimensions = Vec::new();
    for _ in 0..parser.list(DIMENSIONS)? {
        let name = parser.name()?;
        let len = Some(parser.count()?).filter(|n| *n != 0);
        dimensions.push(Dimension { name, len });
    }
    let (attributes, _) = parser.attributes()?;
    let mut variables = Vec::new();
    for _ in 0..parser.list(VARIABLES)? {
        variables.push(parser.variable(dimensions.len())?);
    }
    Ok(Header {
        records,
        dimensions,
        attributes,
        variables,
    })
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    /// Bytes of a count.
    count_len: usize,
    /// Bytes of a place in the file.
    offset_len: usize,
}

impl Parser<'_> {
    fn count(&mut self) -> Result<u64, Refusal> {
        self.cursor.uint(self.count_len)
    }

    /// How many entries a list has; one that is absent has none.
    fn list(&mut self, wanted: u32) -> Result<u64, Refusal> {
        let tag = self.cursor.u32()?;
        let count = self.count()?;
        match tag {
            0 if count == 0 => Ok(0),
            tag if tag == wanted => Ok(count),
            other => Err(format!("a list of kind {other} where {wanted} must be")),
        }
    }

    fn padded(&mut self, len: u64) -> Result<&[u8], Refusal> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let whole = len.checked_next_multiple_of(4).unwrap_or(usize::MAX);
        let bytes = self.cursor.take(whole)?;
        Ok(bytes.get(..len).unwrap_or_default())
    }

    fn name(&mut self) -> Result<String, Refusal> {
        let len = self.count()?;
        let bytes = self.padded(len)?;
        // Some writers count the zero that ends a name in C.
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let name = bytes.get(..end).unwrap_or_default().to_vec();
        String::from_utf8(name).map_err(|_| "a name that is not UTF-8".to_owned())
    }

    fn attributes(&mut self) -> Result<(Attributes, Vec<String>), Refusal> {
        let (mut found, mut lost) = (Attributes::new(), Vec::new());
        for _ in 0..self.list(ATTRIBUTES)? {
            let name = self.name()?;
            let code = self.cursor.u32()?;
            let count = self.count()?;
            let data_type = type_of(code)?;
            let item = data_type.item_size().unwrap_or(1);
            let len = count.checked_mul(item as u64);
            let bytes = self.padded(len.unwrap_or(u64::MAX))?.to_vec();
            match value(&data_type, count, bytes) {
                Ok(value) => found.push((name, value)),
                Err(reason) => lost.push(format!("attribute {name:?} is left behind: {reason}")),
            }
        }
        Ok((found, lost))
    }

    fn variable(&mut self, dimensions: usize) -> Result<Variable, Refusal> {
        let name = self.name()?;
        let rank = self.count()?;
        if rank > RANK_MAX {
            return Err(format!("variable {name:?} of {rank} axes"));
        }
        let mut axes = Vec::new();
        for _ in 0..rank {
            let id = usize::try_from(self.count()?).unwrap_or(usize::MAX);
            if id >= dimensions {
                return Err(format!(
                    "variable {name:?} along dimension {id}, which is not there"
                ));
            }
            axes.push(id);
        }
        let (attributes, lost) = self.attributes()?;
        let data_type = type_of(self.cursor.u32()?);
        // The size that is written here may be too small to hold it; what it must be follows from the dimensions.
        self.count()?;
        Ok(Variable {
            name,
            dimensions: axes,
            attributes,
            lost,
            data_type,
            begin: self.cursor.uint(self.offset_len)?,
        })
    }
}

fn type_of(code: u32) -> Result<DataType, Refusal> {
    Ok(match code {
        1 => DataType::Int8,
        2 => DataType::NullTerminatedBytes { length: 1 },
        3 => DataType::Int16,
        4 => DataType::Int32,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 => DataType::Uint8,
        8 => DataType::Uint16,
        9 => DataType::Uint32,
        10 => DataType::Int64,
        11 => DataType::Uint64,
        other => return Err(format!("elements of type {other}")),
    })
}

/// Numbers with their highest byte first, turned.
fn turned(mut bytes: Vec<u8>, item: usize) -> Vec<u8> {
    if item > 1 {
        bytes.chunks_exact_mut(item).for_each(<[u8]>::reverse);
    }
    bytes
}

/// An attribute: text, a number, or a list of numbers.
fn value(data_type: &DataType, count: u64, bytes: Vec<u8>) -> Result<AttributeValue, Refusal> {
    let (mut data_type, mut shape) = (data_type.clone(), vec![count]);
    if let DataType::NullTerminatedBytes { .. } = data_type {
        let end = bytes.iter().rposition(|b| *b != 0);
        let text = bytes.get(..end.map_or(0, |end| end.saturating_add(1)));
        if let Ok(text) = std::str::from_utf8(text.unwrap_or_default()) {
            return Ok(Json::String(text.to_owned()).into());
        }
        let length = u32::try_from(count).map_err(|_| "text of more than 2^32 bytes")?;
        data_type = DataType::NullTerminatedBytes { length };
        shape.clear();
    } else if count == 1 {
        shape.clear();
    }
    let item = data_type.item_size().unwrap_or(1);
    let bytes = if shape.is_empty() && count > 1 {
        bytes
    } else {
        turned(bytes, item)
    };
    TypedArray::new(data_type, shape, bytes)
        .map(AttributeValue::Typed)
        .map_err(|e| e.to_string())
}

impl Layout {
    fn of(header: &Header, len: u64) -> Self {
        let sizes: Vec<(u64, u64)> = header
            .variables
            .iter()
            .filter(|variable| header.is_record(variable))
            .filter_map(|variable| Some((variable.begin, header.record_len(variable)?)))
            .collect();
        let stride = match sizes.as_slice() {
            // Records of a variable that is alone are not padded.
            [(_, only)] => *only,
            all => all.iter().fold(0_u64, |n, (_, size)| {
                n.saturating_add(size.saturating_add(3) & !3)
            }),
        };
        let records = header.records.unwrap_or_else(|| {
            let begin = sizes.iter().map(|(begin, _)| *begin).min();
            let left = len.saturating_sub(begin.unwrap_or(len));
            left.checked_div(stride).unwrap_or(0)
        });
        Self { records, stride }
    }
}

impl Header {
    fn is_record(&self, variable: &Variable) -> bool {
        let first = variable.dimensions.first();
        first.is_some_and(|id| self.dimensions.get(*id).is_some_and(|d| d.len.is_none()))
    }

    /// Bytes of a variable in one record.
    fn record_len(&self, variable: &Variable) -> Option<u64> {
        let item = variable.data_type.as_ref().ok()?.item_size()? as u64;
        variable
            .dimensions
            .iter()
            .skip(1)
            .try_fold(item, |n, id| n.checked_mul(self.dimensions.get(*id)?.len?))
    }

    fn array(
        &self,
        variable: &Variable,
        layout: &Layout,
        file: &File,
        len: u64,
    ) -> Result<Array, Refusal> {
        let data_type = variable.data_type.clone()?;
        let (mut shape, mut names) = (Vec::new(), Vec::new());
        for (axis, id) in variable.dimensions.iter().enumerate() {
            let dimension = self
                .dimensions
                .get(*id)
                .ok_or("a dimension that is not there")?;
            names.push(dimension.name.clone());
            shape.push(match dimension.len {
                Some(len) => len,
                None if axis == 0 => layout.records,
                None => return Err("records along an axis that is not the first".to_owned()),
            });
        }
        let mut facts = Facts::plain(data_type.clone(), &shape)?;
        facts.notes.clone_from(&variable.lost);
        facts.name_axes(&names);
        facts.fill = fill(&data_type, &variable.attributes);
        facts.attributes.clone_from(&variable.attributes);
        let item = data_type.item_size().unwrap_or(1);
        let file = file
            .try_clone()
            .map_err(|e| format!("it cannot be opened again: {e}"))?;
        let too_many = "more elements than can be counted";
        let mut flat = Flat::packed(
            Bytes::File(file),
            variable.begin,
            item,
            &shape,
            Order::LastFastest,
            Box::new(move |bytes| Elements::Fixed(turned(bytes, item))),
        )
        .ok_or(too_many)?;
        if self.is_record(variable) {
            flat = flat.with_stride(0, layout.stride).ok_or(too_many)?;
        }
        if flat.end().is_none_or(|end| end > len) {
            return Err(format!(
                "the file is cut: {len} bytes do not hold its elements"
            ));
        }
        Ok(Array {
            facts,
            content: Content::Boxes(Box::new(flat)),
        })
    }
}

/// The value that stands for none, where it is of the variable's type.
fn fill(data_type: &DataType, attributes: &Attributes) -> Option<Vec<u8>> {
    let found = attributes.iter().find(|(name, _)| name == "_FillValue");
    match found {
        Some((_, AttributeValue::Typed(typed)))
            if typed.data_type() == data_type
                && typed.bytes().len() == data_type.item_size()? =>
        {
            Some(typed.bytes().to_vec())
        }
        _ => None,
    }
}
