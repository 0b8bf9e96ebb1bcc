//! NumPy's `.npy` files: the header both ways, and elements in C order.
//!
//! Holds [`Header`], [`Npy`] and [`header_bytes`]. Follows NEP 1, versions 1 to 3. Element types are the library's; text
//! without any width (`<U0`) becomes text of any length. Must not unpickle: `O` is refused.

use std::io::{self, Read};

use orthant::{Block, DataType, Elements};

use crate::exit::{Failure, Result};

/// What every `.npy` file starts with.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read; NumPy's own limit for files it does not trust is smaller.
const HEADER_LEN_MAX: usize = 1 << 20;

/// What a `.npy` file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type its elements have here.
    pub(crate) data_type: DataType,
    /// Bytes that one element takes in the file.
    item: usize,
    big_endian: bool,
    /// Text of width 0, which has no type of its own here.
    text: bool,
    fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes of the file before its elements.
    pub(crate) start: u64,
}

/// A `.npy` stream after its header.
#[derive(Debug)]
pub(crate) struct Npy<R> {
    pub(crate) header: Header,
    rest: R,
}

/// Most elements without any bytes (`<U0`): the length of the file does not bound them.
const EMPTY_TEXTS_MAX: u64 = 1 << 20;

impl<R: Read> Npy<R> {
    /// Reads the header. `name` is what errors call the stream.
    pub(crate) fn open(name: &str, mut input: R) -> Result<Self> {
        let header = Header::read(&mut input).map_err(|fault| fault.named(name))?;
        Ok(Self {
            header,
            rest: input,
        })
    }

    /// Whether elements follow each other in C order, so that they can be read piece by piece.
    pub(crate) fn is_c_order(&self) -> bool {
        !self.header.fortran || self.header.shape.len() < 2
    }

    /// The next `count` elements of a stream in C order.
    pub(crate) fn elements(&mut self, name: &str, count: usize) -> Result<Elements> {
        let len = count
            .checked_mul(self.header.item)
            .ok_or_else(|| Fault::Broken("more elements than fit in memory".into()).named(name))?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(len).unwrap_or(u64::MAX);
        let read = (&mut self.rest).take(limit).read_to_end(&mut bytes);
        match read {
            Ok(n) if n == len => Ok(self.header.decode(bytes)),
            Ok(n) => Err(Fault::Broken(format!(
                "it ends {} bytes too early",
                len.saturating_sub(n)
            ))
            .named(name)),
            Err(e) => Err(Fault::Io(e).named(name)),
        }
    }

    /// All elements, in C order whatever the file's.
    pub(crate) fn block(mut self, name: &str) -> Result<Block> {
        let count = self
            .header
            .count()
            .ok_or_else(|| Fault::Broken("more elements than fit in memory".into()).named(name))?;
        let elements = self.elements(name, count)?;
        let mut probe = [0_u8; 1];
        match self.rest.read(&mut probe) {
            Ok(0) => {}
            Ok(_) => {
                return Err(Fault::Broken("bytes follow the last element".into()).named(name));
            }
            Err(e) => return Err(Fault::Io(e).named(name)),
        }
        let elements = if self.is_c_order() {
            elements
        } else {
            from_fortran(elements, &self.header)
        };
        Ok(Block {
            data_type: self.header.data_type.clone(),
            shape: self.header.shape.clone(),
            elements,
        })
    }
}

impl Header {
    /// Elements of the whole; none where they cannot be counted.
    pub(crate) fn count(&self) -> Option<usize> {
        let count = self
            .shape
            .iter()
            .try_fold(1_u64, |n, &extent| n.checked_mul(extent))?;
        usize::try_from(count).ok()
    }

    /// Bytes of one element in the file.
    pub(crate) fn item(&self) -> usize {
        self.item
    }

    /// Whether the first axis is the one whose neighbours lie side by side.
    pub(crate) fn is_fortran(&self) -> bool {
        self.fortran
    }

    fn read(input: &mut impl Read) -> Result<Self, Fault> {
        let mut start = [0_u8; 8];
        input.read_exact(&mut start).map_err(Fault::short)?;
        let [.., major, _] = start;
        if !start.starts_with(MAGIC) {
            return Err(Fault::Broken("it does not start as a .npy file".into()));
        }
        let (before, len) = match major {
            1 => {
                let mut len = [0_u8; 2];
                input.read_exact(&mut len).map_err(Fault::short)?;
                (10, usize::from(u16::from_le_bytes(len)))
            }
            2 | 3 => {
                let mut len = [0_u8; 4];
                input.read_exact(&mut len).map_err(Fault::short)?;
                let len = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
                (12, len)
            }
            other => return Err(Fault::Unsupported(format!(".npy version {other}"))),
        };
        if len > HEADER_LEN_MAX {
            return Err(Fault::Broken(format!("a header of {len} bytes")));
        }
        let mut text = vec![0_u8; len];
        input.read_exact(&mut text).map_err(Fault::short)?;
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            // Versions 1 and 2 are Latin-1.
            Err(e) => e.as_bytes().iter().map(|&b| char::from(b)).collect(),
        };
        let mut header = Self::parse(&text)?;
        header.start = (len as u64).saturating_add(before);
        Ok(header)
    }

    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Self, Fault> {
        let broken = || Fault::Broken(format!("its header cannot be read: {:?}", text.trim_end()));
        let inside = text
            .trim()
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .ok_or_else(broken)?;
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        for member in split_outside(inside, ',') {
            let member = member.trim();
            if member.is_empty() {
                continue;
            }
            let mut halves = split_outside(member, ':');
            let (Some(key), Some(value)) = (halves.next(), halves.next()) else {
                return Err(broken());
            };
            let value = value.trim();
            match key.trim().trim_matches(['\'', '"']) {
                "descr" => descr = Some(value),
                "fortran_order" => {
                    fortran = match value {
                        "True" => Some(true),
                        "False" => Some(false),
                        _ => return Err(broken()),
                    }
                }
                "shape" => shape = Some(parse_shape(value).ok_or_else(broken)?),
                _ => return Err(broken()),
            }
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Self::of_descr(descr, fortran, shape),
            _ => Err(broken()),
        }
    }

    fn of_descr(descr: &str, fortran: bool, shape: Vec<u64>) -> Result<Self, Fault> {
        let bare = descr.trim_matches(['\'', '"']);
        let mut chars = bare.chars();
        if let (Some(order @ ('<' | '>' | '=')), Some('U')) = (chars.next(), chars.next()) {
            let width: usize = chars
                .as_str()
                .parse()
                .map_err(|_| Fault::Broken(format!("element type {descr}")))?;
            if width == 0 {
                let count = shape
                    .iter()
                    .try_fold(1_u64, |n, &extent| n.checked_mul(extent));
                if count.is_none_or(|n| n > EMPTY_TEXTS_MAX) {
                    return Err(Fault::Unsupported(format!(
                        "more than {EMPTY_TEXTS_MAX} elements of the NumPy type {descr}, which has no bytes"
                    )));
                }
                return Ok(Self {
                    data_type: DataType::String,
                    item: 0,
                    big_endian: order == '>',
                    text: true,
                    fortran,
                    shape,
                    start: 0,
                });
            }
        }
        let (data_type, big_endian) = DataType::from_numpy_descr(descr).map_err(|e| {
            Fault::Unsupported(format!(
                "NumPy type {descr}{}",
                e.expected_value()
                    .map(|x| format!(" ({x})"))
                    .unwrap_or_default()
            ))
        })?;
        let item = data_type
            .item_size()
            .ok_or_else(|| Fault::Unsupported(format!("NumPy type {descr}")))?;
        Ok(Self {
            data_type,
            item,
            big_endian,
            text: false,
            fortran,
            shape,
            start: 0,
        })
    }

    /// File bytes of whole elements as the library takes them.
    pub(crate) fn decode(&self, mut bytes: Vec<u8>) -> Elements {
        if self.text {
            return Elements::Variable(vec![Box::default(); self.count().unwrap_or(0)]);
        }
        if self.big_endian {
            self.data_type.swap_bytes(&mut bytes);
        }
        if self.data_type == DataType::Bool {
            for b in &mut bytes {
                *b = u8::from(*b != 0);
            }
        }
        Elements::Fixed(bytes)
    }
}

/// Why a stream is no usable `.npy` file.
#[derive(Debug)]
enum Fault {
    Broken(String),
    Unsupported(String),
    Io(io::Error),
}

impl Fault {
    fn short(e: io::Error) -> Self {
        if e.kind() == io::ErrorKind::UnexpectedEof {
            Self::Broken("it ends within its header".into())
        } else {
            Self::Io(e)
        }
    }

    fn named(self, name: &str) -> Failure {
        match self {
            Self::Broken(what) => Failure::usage(format!("{name}: no usable .npy file: {what}")),
            Self::Unsupported(what) => {
                Failure::unsupported(format!("{name}: {what} has no counterpart here"))
            }
            Self::Io(e) => Failure::io("read", std::path::Path::new(name), &e),
        }
    }
}

/// Parts of a Python literal between `separator`s outside quotes and brackets.
fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    text.split(move |c: char| {
        if let Some(q) = quote {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == q {
                quote = None;
            }
            return false;
        }
        match c {
            '\'' | '"' => quote = Some(c),
            '(' | '[' | '{' => depth = depth.saturating_add(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0 && quote.is_none()
    })
}

fn parse_shape(text: &str) -> Option<Vec<u64>> {
    let inside = text.strip_prefix('(')?.strip_suffix(')')?;
    inside
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        // Files of Python 2 have `3L`.
        .map(|part| part.strip_suffix('L').unwrap_or(part).parse().ok())
        .collect()
}

/// Elements of a file in Fortran order, put in C order.
fn from_fortran(elements: Elements, header: &Header) -> Elements {
    let source = fortran_positions(&header.shape);
    match elements {
        Elements::Fixed(bytes) => {
            let item = header.item;
            let mut out = Vec::with_capacity(bytes.len());
            for at in source {
                let start = at.saturating_mul(item);
                out.extend_from_slice(
                    bytes
                        .get(start..start.saturating_add(item))
                        .unwrap_or_default(),
                );
            }
            Elements::Fixed(out)
        }
        Elements::Variable(items) => {
            Elements::Variable(source.filter_map(|at| items.get(at).cloned()).collect())
        }
    }
}

/// For each element in C order, its place in Fortran order.
fn fortran_positions(shape: &[u64]) -> impl Iterator<Item = usize> {
    let shape: Vec<usize> = shape
        .iter()
        .map(|&n| usize::try_from(n).unwrap_or(usize::MAX))
        .collect();
    let count: usize = shape.iter().product();
    let strides: Vec<usize> = shape
        .iter()
        .scan(1_usize, |stride, &n| {
            let this = *stride;
            *stride = stride.saturating_mul(n);
            Some(this)
        })
        .collect();
    let mut index = vec![0_usize; shape.len()];
    (0..count).map(move |_| {
        let at = index
            .iter()
            .zip(&strides)
            .map(|(i, s)| i.saturating_mul(*s))
            .sum();
        for (i, n) in index.iter_mut().zip(&shape).rev() {
            *i = i.saturating_add(1);
            if *i < *n {
                break;
            }
            *i = 0;
        }
        at
    })
}

/// The bytes before the elements of a `.npy` file in C order.
pub(crate) fn header_bytes(descr: &str, shape: &[u64]) -> Vec<u8> {
    let quoted = if descr.starts_with('[') {
        descr.to_owned()
    } else {
        format!("'{descr}'")
    };
    // A tuple of one has a comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let extents = crate::text::list(shape) + comma;
    let dict = format!("{{'descr': {quoted}, 'fortran_order': False, 'shape': ({extents}), }}");
    // Version 3 is UTF-8; NumPy itself writes 1 wherever that can hold the text.
    let (version, prefix) = match (dict.is_ascii(), dict.len() < 65_000) {
        (true, true) => (1, 10),
        (true, false) => (2, 12),
        (false, _) => (3, 12),
    };
    let unpadded = dict.len().saturating_add(prefix).saturating_add(1);
    let padding = unpadded.next_multiple_of(64).saturating_sub(unpadded);
    let len = dict.len().saturating_add(padding).saturating_add(1);
    let mut out = MAGIC.to_vec();
    out.extend([version, 0]);
    let len_bytes = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    out.extend(len_bytes.iter().take(if version == 1 { 2 } else { 4 }));
    out.extend_from_slice(dict.as_bytes());
    out.extend(std::iter::repeat_n(b' ', padding));
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dict: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend(u16::try_from(dict.len()).unwrap().to_le_bytes());
        out.extend_from_slice(dict.as_bytes());
        out.extend_from_slice(data);
        out
    }

    fn block(dict: &str, data: &[u8]) -> Result<Block> {
        let bytes = file(dict, data);
        Npy::open("x.npy", &bytes[..])?.block("x.npy")
    }

    #[test]
    fn big_endian_and_fortran_order_become_little_endian_c_order() {
        let b = block(
            "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n",
            &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6],
        )
        .unwrap();
        assert_eq!(b.shape, [2, 3]);
        // Columns of the file are (1,2), (3,4), (5,6).
        assert_eq!(
            b.elements,
            Elements::Fixed(vec![1, 0, 3, 0, 5, 0, 2, 0, 4, 0, 6, 0])
        );
    }

    #[test]
    fn text_of_one_width_keeps_it_and_is_turned_to_little_endian() {
        // "a" with its padding, then two characters of the width.
        let data = [0, 0, 0, 0x61, 0, 0, 0, 0, 0, 0, 0, 0xE9, 0, 0, 0x27, 0x13];
        let text = "{'descr': '>U2', 'fortran_order': False, 'shape': (2,)}";
        let b = block(text, &data).unwrap();
        assert_eq!(b.data_type.to_string(), "U2");
        let little = "a\0é✓".chars().flat_map(|c| u32::from(c).to_le_bytes());
        assert_eq!(b.elements, Elements::Fixed(little.collect()));
    }

    #[test]
    fn records_and_scalars_are_read() {
        let b = block(
            "{'descr': [('a', '<i2'), ('b,c', '|u1')], 'fortran_order': False, 'shape': (), }",
            &[1, 0, 2],
        )
        .unwrap();
        assert_eq!(b.data_type.to_string(), "{a:int16,\"b,c\":uint8}");
        assert!(b.shape.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (dict, data, what) in [
            (
                "{'descr': '>U0', 'fortran_order': True, 'shape': (4,74,7,84,7,8)}",
                &[][..],
                "no bytes",
            ),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
                &[][..],
                "|O",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                &[0; 4][..],
                "4 bytes too early",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
                &[0; 5][..],
                "bytes follow",
            ),
            ("{'descr': '<f4', 'shape': (1,)}", &[0; 4][..], "header"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                &[][..],
                "header",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 9999999999999)}",
                &[][..],
                "memory",
            ),
        ] {
            let e = block(dict, data).unwrap_err();
            assert!(e.message().contains(what), "{dict}: {}", e.message());
        }
        let cut = Npy::open("x", &b"\x93NUMPY\x01\x00\x40\x00{"[..]).unwrap_err();
        assert!(cut.message().contains("within its header"));
    }

    #[test]
    fn the_header_written_is_numpys_own() {
        // What `numpy.lib.format.write_array_header_1_0` writes for these.
        let h = header_bytes("<f4", &[3]);
        assert_eq!(h.len() % 64, 0);
        assert!(h.starts_with(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
        ));
        assert!(header_bytes("<f4", &[]).windows(3).any(|w| w == b"(),"));
        assert!(
            header_bytes("<f4", &[2, 0])
                .windows(7)
                .any(|w| w == b"(2, 0),")
        );
        let parsed = Header::read(&mut &header_bytes("[('é', '<f4')]", &[2])[..]).unwrap();
        assert_eq!(parsed.data_type.to_string(), "{\"é\":float32}");
    }
}
