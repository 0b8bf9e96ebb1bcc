//! NIfTI-1 and NIfTI-2 images, plain or in gzip. Specification: `nifti1.h` and `nifti2.h` of the NIfTI working group.
//!
//! Holds [`open`] and [`looks_like`]. Values stay as they are stored; what they mean (`scl_slope`, `pixdim`, `srow_x`, ...) is
//! kept as attributes under the header's own names. Must not scale, and must not look for the `.img` of a pair.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use orthant::{AttributeValue, DataType, Elements, Field};

use super::flat::{Bytes, Flat, Order};
use super::{Array, Attributes, Content, Facts, Node, Refusal, Source, What};

/// Bytes of a header from which its kind can be told.
pub(super) const HEAD_LEN: usize = 540;
/// No deflate stream makes more of a byte.
const DEFLATE_MOST: u64 = 1032;
/// What the axes are called.
const AXES: [&str; 7] = ["x", "y", "z", "t", "u", "v", "w"];

/// How a number of the header is stored.
#[derive(Debug, Clone, Copy)]
enum As {
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl As {
    fn len(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// A field: its name, how many numbers it has, and where in a header of version 1 and of version 2.
type Place = (&'static str, usize, (usize, As), (usize, As));

/// What becomes an attribute.
const NUMBERS: [Place; 25] = [
    ("pixdim", 8, (76, As::F32), (104, As::F64)),
    ("scl_slope", 1, (112, As::F32), (176, As::F64)),
    ("scl_inter", 1, (116, As::F32), (184, As::F64)),
    ("cal_max", 1, (124, As::F32), (192, As::F64)),
    ("cal_min", 1, (128, As::F32), (200, As::F64)),
    ("slice_duration", 1, (132, As::F32), (208, As::F64)),
    ("toffset", 1, (136, As::F32), (216, As::F64)),
    ("slice_start", 1, (74, As::I16), (224, As::I64)),
    ("slice_end", 1, (120, As::I16), (232, As::I64)),
    ("slice_code", 1, (122, As::I8), (496, As::I32)),
    ("xyzt_units", 1, (123, As::I8), (500, As::I32)),
    ("dim_info", 1, (39, As::I8), (524, As::I8)),
    ("intent_code", 1, (68, As::I16), (504, As::I32)),
    ("intent_p1", 1, (56, As::F32), (80, As::F64)),
    ("intent_p2", 1, (60, As::F32), (88, As::F64)),
    ("intent_p3", 1, (64, As::F32), (96, As::F64)),
    ("qform_code", 1, (252, As::I16), (344, As::I32)),
    ("sform_code", 1, (254, As::I16), (348, As::I32)),
    ("quatern_b", 1, (256, As::F32), (352, As::F64)),
    ("quatern_c", 1, (260, As::F32), (360, As::F64)),
    ("quatern_d", 1, (264, As::F32), (368, As::F64)),
    ("qoffset", 3, (268, As::F32), (376, As::F64)),
    ("srow_x", 4, (280, As::F32), (400, As::F64)),
    ("srow_y", 4, (296, As::F32), (432, As::F64)),
    ("srow_z", 4, (312, As::F32), (464, As::F64)),
];
/// Texts: name, length, and where in either version.
const TEXTS: [(&str, usize, usize, usize); 3] = [
    ("descrip", 80, 148, 240),
    ("aux_file", 24, 228, 320),
    ("intent_name", 16, 328, 508),
];

/// A header whose version and byte order are known.
struct Header<'a> {
    bytes: &'a [u8],
    two: bool,
    big_endian: bool,
}

impl<'a> Header<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let first: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let (len, big_endian) = match (i32::from_le_bytes(first), first) {
            (len @ (348 | 540), _) => (len, false),
            (_, first) => (i32_of(first, true)?, true),
        };
        let magic = |at: usize, wanted: &[&[u8]]| {
            let found = bytes.get(at..).unwrap_or_default();
            wanted.iter().any(|m| found.starts_with(m))
        };
        let two = match len {
            348 if magic(344, &[b"n+1\0", b"ni1\0"]) => false,
            540 if magic(4, &[b"n+2\0", b"ni2\0"]) => true,
            _ => return None,
        };
        Some(Self {
            bytes,
            two,
            big_endian,
        })
    }

    /// Whether the elements are in a file of their own.
    fn is_of_a_pair(&self) -> bool {
        let at = if self.two { 5 } else { 345 };
        self.bytes.get(at) == Some(&b'i')
    }

    /// Numbers of the place for this version, as 64-bit ones of their kind.
    fn numbers(&self, count: usize, one: (usize, As), two: (usize, As)) -> Option<Numbers> {
        let (at, kind) = if self.two { two } else { one };
        let end = kind.len().checked_mul(count)?.checked_add(at)?;
        let parts = self.bytes.get(at..end)?.chunks_exact(kind.len());
        let mut ints = Vec::new();
        let mut floats = Vec::new();
        for part in parts {
            let bits = bits(part, self.big_endian);
            match kind {
                As::I8 => ints.push(i64::try_from(bits).ok()?),
                As::I16 => ints.push(i64::from(u16::try_from(bits).ok()?.cast_signed())),
                As::I32 => ints.push(i64::from(u32::try_from(bits).ok()?.cast_signed())),
                As::I64 => ints.push(bits.cast_signed()),
                As::F32 => floats.push(f64::from(f32::from_bits(u32::try_from(bits).ok()?))),
                As::F64 => floats.push(f64::from_bits(bits)),
            }
        }
        Some(match kind {
            As::F32 | As::F64 => Numbers::Floats(floats),
            _ => Numbers::Ints(ints),
        })
    }

    fn int(&self, one: (usize, As), two: (usize, As)) -> Option<i64> {
        match self.numbers(1, one, two)? {
            Numbers::Ints(v) => v.first().copied(),
            Numbers::Floats(_) => None,
        }
    }

    fn shape(&self) -> Result<Vec<u64>, Refusal> {
        let dims = self.numbers(8, (40, As::I16), (16, As::I64));
        let Some(Numbers::Ints(dims)) = dims else {
            return Err("its header is cut".to_owned());
        };
        let rank = dims.first().and_then(|n| usize::try_from(*n).ok());
        let rank = rank.filter(|n| (1..=7).contains(n));
        let rank = rank.ok_or_else(|| format!("its dim[0] is {:?}, not 1 to 7", dims.first()))?;
        let axes = dims.iter().skip(1).take(rank);
        axes.map(|n| {
            u64::try_from(*n)
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| format!("an axis of {n} elements"))
        })
        .collect()
    }

    fn data_type(&self) -> Result<DataType, Refusal> {
        let code = self.int((70, As::I16), (12, As::I16)).unwrap_or(0);
        let colours = |names: &[&str]| {
            let field = |name: &&str| Field {
                name: (*name).to_owned(),
                data_type: DataType::Uint8,
            };
            DataType::Structured(names.iter().map(field).collect())
        };
        let data_type = match code {
            2 => DataType::Uint8,
            4 => DataType::Int16,
            8 => DataType::Int32,
            16 => DataType::Float32,
            32 => DataType::Complex64,
            64 => DataType::Float64,
            128 => colours(&["R", "G", "B"]),
            256 => DataType::Int8,
            512 => DataType::Uint16,
            768 => DataType::Uint32,
            1024 => DataType::Int64,
            1280 => DataType::Uint64,
            1792 => DataType::Complex128,
            2304 => colours(&["R", "G", "B", "A"]),
            1 => return Err("elements of one bit".to_owned()),
            1536 | 2048 => return Err("floats of 128 bits".to_owned()),
            other => return Err(format!("data type {other}")),
        };
        let bits = self.int((72, As::I16), (14, As::I16)).unwrap_or(0);
        let item = data_type.item_size().unwrap_or(0);
        if u64::try_from(bits).ok() != Some((item as u64).saturating_mul(8)) {
            return Err(format!("elements of {bits} bits that are {data_type}"));
        }
        Ok(data_type)
    }

    /// Where the elements start.
    fn offset(&self) -> Result<u64, Refusal> {
        let least = if self.two { 544 } else { 352 };
        let at = match self.numbers(1, (108, As::F32), (168, As::I64)) {
            Some(Numbers::Ints(v)) => v.first().and_then(|v| u64::try_from(*v).ok()),
            Some(Numbers::Floats(v)) => v.first().and_then(|v| whole(*v)),
            None => None,
        };
        // Version 1 files of old say 0 and mean the end of the header.
        match at {
            Some(0) if !self.two => Ok(least),
            Some(at) if at >= least => Ok(at),
            _ => Err("its vox_offset is no place behind the header".to_owned()),
        }
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Vec::new();
        for (name, count, one, two) in NUMBERS {
            let value: AttributeValue = match self.numbers(count, one, two) {
                Some(Numbers::Ints(v)) if count == 1 => v.first().copied().unwrap_or(0).into(),
                Some(Numbers::Floats(v)) if count == 1 => v.first().copied().unwrap_or(0.0).into(),
                Some(Numbers::Ints(v)) => v.into(),
                Some(Numbers::Floats(v)) => v.into(),
                None => continue,
            };
            attributes.push((name.to_owned(), value));
        }
        for (name, len, one, two) in TEXTS {
            let at = if self.two { two } else { one };
            let text = self
                .bytes
                .get(at..at.saturating_add(len))
                .unwrap_or_default();
            let text: Vec<u8> = text.iter().copied().take_while(|b| *b != 0).collect();
            let text = String::from_utf8_lossy(&text);
            if !text.trim().is_empty() {
                attributes.push((name.to_owned(), text.trim().into()));
            }
        }
        attributes
    }
}

enum Numbers {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

/// The bits of a number of up to eight bytes.
fn bits(part: &[u8], big_endian: bool) -> u64 {
    let next = |n: u64, b: &u8| (n << 8) | u64::from(*b);
    if big_endian {
        part.iter().fold(0, next)
    } else {
        part.iter().rev().fold(0, next)
    }
}

fn i32_of(part: [u8; 4], big_endian: bool) -> Option<i32> {
    Some(u32::try_from(bits(&part, big_endian)).ok()?.cast_signed())
}

/// A float that counts bytes, as one: not negative, whole, and exact.
fn whole(v: f64) -> Option<u64> {
    let exact = (0.0..9e15).contains(&v) && v.fract() == 0.0;
    exact.then(|| format!("{v:.0}").parse().ok()).flatten()
}

/// Whether a file begins like an image; of a file in gzip, what is inside.
pub(super) fn looks_like(head: &[u8]) -> bool {
    Header::of(head).is_some()
}

/// The first bytes inside a gzip file; fewer where it is broken.
pub(super) fn inside_gzip(file: &mut File) -> Vec<u8> {
    let mut head = Vec::new();
    if file.seek(SeekFrom::Start(0)).is_ok() {
        let inside = MultiGzDecoder::new(io::BufReader::new(&*file));
        // Broken streams are told by whoever reads on.
        let _ = inside.take(HEAD_LEN as u64).read_to_end(&mut head);
    }
    head
}

/// An image that begins with `head`, in gzip or not.
pub(super) fn open(path: &Path, file: File, len: u64, head: &[u8], gzip: bool) -> Source {
    let what = match array(file, len, head, gzip) {
        Ok(array) => What::Array(Box::new(array)),
        Err(reason) => What::Refused(reason),
    };
    let mut name = super::stem(path);
    if gzip && let Some(bare) = name.strip_suffix(".nii") {
        name = bare.to_string();
    }
    Source {
        kind: "NIfTI",
        nodes: vec![Node {
            inside: "data".to_owned(),
            path: name,
            what,
        }],
    }
}

fn array(file: File, len: u64, head: &[u8], gzip: bool) -> Result<Array, Refusal> {
    let header = Header::of(head).ok_or("its header is cut")?;
    if header.is_of_a_pair() {
        return Err("the header of a pair, whose elements are in another file".to_owned());
    }
    let shape = header.shape()?;
    let data_type = header.data_type()?;
    let offset = header.offset()?;
    let mut facts = Facts::plain(data_type.clone(), &shape)?;
    let names = AXES.iter().map(|a| (*a).to_owned());
    facts.name_axes(&names.take(shape.len()).collect::<Vec<_>>());
    facts.attributes = header.attributes();
    let extended = if header.two { 540 } else { 348 };
    if offset > extended + 4 {
        facts
            .notes
            .push("extensions of its header are left behind".to_owned());
    }
    let item = data_type.item_size().unwrap_or(1);
    let big_endian = header.big_endian;
    let decode = Box::new(move |mut bytes: Vec<u8>| {
        if big_endian {
            data_type.swap_bytes(&mut bytes);
        }
        Elements::Fixed(bytes)
    });
    let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
    let end = count
        .and_then(|n| n.checked_mul(item as u64))
        .and_then(|n| n.checked_add(offset));
    let end = end.ok_or("more elements than can be counted")?;
    let bytes = if gzip {
        unpacked(file, len, end)?
    } else {
        file
    };
    if !gzip && end > len {
        return Err(format!("it is cut: {len} bytes of {end}"));
    }
    let bytes = Bytes::File(bytes);
    let flat = Flat::packed(bytes, offset, item, &shape, Order::FirstFastest, decode);
    let flat = flat.ok_or("more elements than can be counted")?;
    Ok(Array {
        facts,
        content: Content::Boxes(Box::new(flat)),
    })
}

/// The first `end` bytes of what is inside, in a file without a name: boxes of elements are read from any place.
fn unpacked(mut file: File, len: u64, end: u64) -> Result<File, Refusal> {
    if end > len.saturating_mul(DEFLATE_MOST) {
        return Err(format!(
            "its header promises {end} bytes, more than {len} bytes of gzip can hold"
        ));
    }
    let failed = |e: io::Error| format!("it cannot be unpacked: {e}");
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut to = tempfile::tempfile().map_err(failed)?;
    let mut inside = MultiGzDecoder::new(io::BufReader::new(file)).take(end);
    let got = io::copy(&mut inside, &mut to).map_err(failed)?;
    if got < end {
        return Err(format!("it is cut: {got} bytes of {end}"));
    }
    to.flush().map_err(failed)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(big: bool) -> Vec<u8> {
        let mut h = vec![0; 352];
        let mut put = |at: usize, v: i64, n: usize| {
            let bytes = v.to_le_bytes();
            let mut part = bytes[..n].to_vec();
            if big {
                part.reverse();
            }
            h[at..at + n].copy_from_slice(&part);
        };
        put(0, 348, 4);
        for (i, d) in [3, 2, 3, 4].iter().enumerate() {
            put(40 + 2 * i, *d, 2);
        }
        put(70, 4, 2);
        put(72, 16, 2);
        put(108, i64::from(352_f32.to_bits()), 4);
        put(112, i64::from(0.5_f32.to_bits()), 4);
        put(252, -2, 2);
        h[344..348].copy_from_slice(b"n+1\0");
        h
    }

    #[test]
    fn a_header_says_the_same_in_both_byte_orders() {
        for big in [false, true] {
            let bytes = header(big);
            let header = Header::of(&bytes).unwrap();
            assert_eq!(header.big_endian, big);
            assert_eq!(header.shape().unwrap(), [2, 3, 4]);
            assert_eq!(header.data_type().unwrap(), DataType::Int16);
            assert_eq!(header.offset().unwrap(), 352);
            let attributes = header.attributes();
            let of = |name: &str| {
                let found = attributes.iter().find(|(n, _)| n == name);
                found.unwrap().1.to_json().to_string()
            };
            assert_eq!(of("scl_slope"), "0.5");
            assert_eq!(of("qform_code"), "-2");
            assert_eq!(of("srow_x"), "[0.0,0.0,0.0,0.0]");
        }
    }

    #[test]
    fn what_no_image_can_be_is_refused_with_the_reason() {
        let bad = |at: usize, with: &[u8]| {
            let mut bytes = header(false);
            bytes[at..at + with.len()].copy_from_slice(with);
            bytes
        };
        let shape = |bytes: &[u8]| Header::of(bytes).unwrap().shape().unwrap_err();
        assert!(shape(&bad(40, &[9, 0])).contains("dim[0]"));
        assert!(shape(&bad(42, &[0xff, 0xff])).contains("-1"));
        let kind = |bytes: &[u8]| Header::of(bytes).unwrap().data_type().unwrap_err();
        assert!(kind(&bad(70, &[0, 6])).contains("128 bits"));
        assert!(kind(&bad(72, &[8, 0])).contains("8 bits"));
        for offset in [-1.0_f32, 351.0, f32::NAN, 352.5, 1e30] {
            let bytes = bad(108, &offset.to_le_bytes());
            assert!(Header::of(&bytes).unwrap().offset().is_err(), "{offset}");
        }
        assert!(Header::of(&bad(344, b"n-1\0")).is_none());
        assert!(Header::of(&header(false)[..300]).is_none());
    }
}
