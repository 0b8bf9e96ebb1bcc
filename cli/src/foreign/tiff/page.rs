//! What the directories of a TIFF file say, read through the `tiff` crate.
//!
//! Holds [`Page`] and [`all`]. Each tag is read by itself, so that a directory which the crate would not decode is still
//! told about. Must not read pixels.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use orthant::{AttributeValue, DataType};

use tiff::decoder::ifd::Value;
use tiff::decoder::{Decoder, IfdDecoder};
use tiff::tags::{ByteOrder, Tag};

use crate::foreign::border::guarded;
use crate::foreign::flat::Bytes;
use crate::foreign::{Attributes, Refusal};

pub(super) const NONE: u64 = 1;
pub(super) const LZW: u64 = 5;
pub(super) const DEFLATE: u64 = 8;
pub(super) const PACK_BITS: u64 = 32773;
pub(super) const OLD_DEFLATE: u64 = 32946;
pub(super) const ZSTD: u64 = 50000;

/// Most pages of a file.
const PAGES_MAX: usize = 1 << 16;
/// Tags that become attributes, by the names that their specifications give them.
const KEPT: [(u16, &str); 22] = [
    (254, "NewSubfileType"),
    (262, "PhotometricInterpretation"),
    (270, "ImageDescription"),
    (271, "Make"),
    (272, "Model"),
    (274, "Orientation"),
    (282, "XResolution"),
    (283, "YResolution"),
    (296, "ResolutionUnit"),
    (305, "Software"),
    (306, "DateTime"),
    (315, "Artist"),
    (320, "ColorMap"),
    (338, "ExtraSamples"),
    (33432, "Copyright"),
    (33550, "ModelPixelScale"),
    (33922, "ModelTiepoint"),
    (34264, "ModelTransformation"),
    (34735, "GeoKeyDirectory"),
    (34736, "GeoDoubleParams"),
    (34737, "GeoAsciiParams"),
    (42112, "GDAL_METADATA"),
];
const GDAL_NODATA: u16 = 42113;

/// A file read from a place of its own: handles of one file share theirs.
#[derive(Debug)]
pub(super) struct Place {
    bytes: Arc<Bytes>,
    len: u64,
    at: u64,
}

impl Place {
    pub(super) fn start(bytes: &Arc<Bytes>, len: u64) -> BufReader<Self> {
        BufReader::new(Self {
            bytes: Arc::clone(bytes),
            len,
            at: 0,
        })
    }
}

impl Read for Place {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at);
        let n = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let part = out.get_mut(..n).unwrap_or_default();
        self.bytes.read_at(self.at, part)?;
        self.at = self.at.saturating_add(n as u64);
        Ok(n)
    }
}

impl Seek for Place {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// How the pixels of a page are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    Tiles { width: u64, height: u64 },
    Strips { rows: u64 },
}

/// A page: what its directory says.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) samples: u64,
    pub(super) bits: u64,
    /// 1 unsigned, 2 signed, 3 float, 6 complex.
    pub(super) format: u64,
    pub(super) compression: u64,
    pub(super) predictor: u64,
    pub(super) photometric: u64,
    /// Each sample in tiles or strips of its own.
    pub(super) planar: bool,
    /// Bits fill bytes from the low end.
    pub(super) reversed: bool,
    pub(super) big_endian: bool,
    pub(super) layout: Layout,
    pub(super) offsets: Vec<u64>,
    pub(super) counts: Vec<u64>,
    pub(super) nodata: Option<String>,
    pub(super) attributes: Attributes,
    pub(super) notes: Vec<String>,
    /// Why it cannot be read at all.
    pub(super) fault: Option<Refusal>,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            width: 0,
            height: 0,
            samples: 1,
            bits: 1,
            format: 1,
            compression: NONE,
            predictor: 1,
            photometric: 1,
            planar: false,
            reversed: false,
            big_endian: false,
            layout: Layout::Strips { rows: 1 },
            offsets: Vec::new(),
            counts: Vec::new(),
            nodata: None,
            attributes: Vec::new(),
            notes: Vec::new(),
            fault: None,
        }
    }
}

impl Page {
    pub(super) fn data_type(&self) -> Result<DataType, Refusal> {
        Ok(match (self.format, self.bits) {
            (1, 1) => DataType::Bool,
            (1 | 4, 8) => DataType::Uint8,
            (1 | 4, 16) => DataType::Uint16,
            (1 | 4, 32) => DataType::Uint32,
            (1 | 4, 64) => DataType::Uint64,
            (2, 8) => DataType::Int8,
            (2, 16) => DataType::Int16,
            (2, 32) => DataType::Int32,
            (2, 64) => DataType::Int64,
            (3, 16) => DataType::Float16,
            (3, 32) => DataType::Float32,
            (3, 64) => DataType::Float64,
            (6, 64) => DataType::Complex64,
            (6, 128) => DataType::Complex128,
            (format, bits) => {
                return Err(format!("samples of {bits} bits of sample format {format}"));
            }
        })
    }

    /// Whether it is one of a stack with another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let facts = |p: &Self| {
            (
                (p.width, p.height, p.samples, p.bits, p.format),
                (p.compression, p.predictor, p.photometric),
                (p.planar, p.reversed, p.layout.clone(), p.fault.is_some()),
            )
        };
        facts(self) == facts(other)
    }

    /// Tiles or strips that the pixels of one sample, or of all, are cut into.
    pub(super) fn pieces(&self) -> Option<(u64, u64)> {
        let (width, height) = match &self.layout {
            Layout::Tiles { width, height } => (*width, *height),
            Layout::Strips { rows } => (self.width, *rows),
        };
        if width == 0 || height == 0 {
            return None;
        }
        Some((self.width.div_ceil(width), self.height.div_ceil(height)))
    }

    /// Why no reader here can decode its pixels.
    pub(super) fn can_be_read(&self) -> Result<(), Refusal> {
        let planes = if self.planar { self.samples } else { 1 };
        let wanted = self
            .pieces()
            .and_then(|(across, down)| across.checked_mul(down)?.checked_mul(planes))
            .ok_or("tiles of no size")?;
        if self.offsets.len() as u64 != wanted || self.counts.len() as u64 != wanted {
            let (offsets, counts) = (self.offsets.len(), self.counts.len());
            return Err(format!(
                "{offsets} offsets and {counts} lengths of {wanted} pieces"
            ));
        }
        match self.compression {
            NONE | LZW | DEFLATE | OLD_DEFLATE | PACK_BITS => {}
            ZSTD if self.predictor == 1 && self.bits >= 8 => {}
            other => return Err(format!("compression {}", compression(other))),
        }
        if !(1..=3).contains(&self.predictor) {
            return Err(format!("predictor {}", self.predictor));
        }
        if self.reversed {
            return Err("bits that fill bytes from the low end".to_owned());
        }
        Ok(())
    }
}

fn compression(code: u64) -> String {
    let name = match code {
        2..=4 => "CCITT fax",
        6 | 7 => "JPEG",
        34712 => "JPEG 2000",
        34887 => "LERC",
        34925 => "LZMA",
        50000 => "Zstandard with a predictor",
        50001 => "WebP",
        50002 | 52546 => "JPEG XL",
        _ => return code.to_string(),
    };
    name.to_owned()
}

/// All pages along the chain of directories.
pub(super) fn all(file: &Arc<Bytes>, len: u64) -> Result<Vec<Page>, Refusal> {
    guarded("TIFF", || {
        let failed = |e: tiff::TiffError| format!("it cannot be read: {e}");
        let mut decoder = Decoder::new(Place::start(file, len)).map_err(failed)?;
        let mut limits = tiff::decoder::Limits::default();
        limits.ifd_value_size = 64 << 20;
        decoder = decoder.with_limits(limits);
        let big_endian = decoder.byte_order() == ByteOrder::BigEndian;
        let mut pages = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = decoder.ifd_pointer();
        while let Some(pointer) = next {
            if !seen.insert(pointer.0) {
                return Err("its directories lead in a circle".to_owned());
            }
            if pages.len() >= PAGES_MAX {
                return Err(format!("more than {PAGES_MAX} pages"));
            }
            let directory = decoder.read_directory(pointer).map_err(failed)?;
            let mut tags = decoder.read_directory_tags(&directory);
            pages.push(page(&mut tags, big_endian));
            next = directory.next();
        }
        Ok(pages)
    })
}

fn page(tags: &mut IfdDecoder<'_>, big_endian: bool) -> Page {
    let mut page = Page {
        big_endian,
        ..Page::default()
    };
    if let Err(reason) = fill(&mut page, tags) {
        page.fault = Some(reason);
    }
    page
}

fn fill(page: &mut Page, tags: &mut IfdDecoder<'_>) -> Result<(), Refusal> {
    let bad = |tag: Tag| move |e: tiff::TiffError| format!("its tag {tag:?} cannot be read: {e}");
    let mut list = |tag: Tag| -> Result<Vec<u64>, Refusal> {
        let found = tags.find_tag_unsigned_vec::<u64>(tag).map_err(bad(tag))?;
        Ok(found.unwrap_or_default())
    };
    let mut one = |tag: Tag, default: u64| -> Result<u64, Refusal> {
        let values = list(tag)?;
        let first = values.first().copied().unwrap_or(default);
        if values.iter().any(|v| *v != first) {
            return Err(format!("samples of different kinds: {tag:?} is {values:?}"));
        }
        Ok(first)
    };
    page.width = one(Tag::ImageWidth, 0)?;
    page.height = one(Tag::ImageLength, 0)?;
    page.samples = one(Tag::SamplesPerPixel, 1)?;
    page.bits = one(Tag::BitsPerSample, 1)?;
    page.format = one(Tag::SampleFormat, 1)?;
    page.compression = one(Tag::Compression, NONE)?;
    page.predictor = one(Tag::Predictor, 1)?;
    page.photometric = one(Tag::PhotometricInterpretation, 1)?;
    page.planar = one(Tag::PlanarConfiguration, 1)? == 2 && page.samples > 1;
    page.reversed = one(Tag::FillOrder, 1)? == 2;
    let tile = (one(Tag::TileWidth, 0)?, one(Tag::TileLength, 0)?);
    let rows = one(Tag::RowsPerStrip, page.height)?;
    if page.width == 0 || page.height == 0 || page.samples == 0 {
        return Err("a page of no pixels".to_owned());
    }
    let tiled = tile != (0, 0);
    page.layout = if tiled {
        Layout::Tiles {
            width: tile.0,
            height: tile.1,
        }
    } else {
        Layout::Strips {
            rows: rows.min(page.height).max(1),
        }
    };
    let (offsets, counts) = if tiled {
        (Tag::TileOffsets, Tag::TileByteCounts)
    } else {
        (Tag::StripOffsets, Tag::StripByteCounts)
    };
    page.offsets = list(offsets)?;
    page.counts = list(counts)?;
    for (code, name) in KEPT {
        match tags.find_tag(Tag::Unknown(code)) {
            Ok(Some(value)) => match attribute(value) {
                Some(value) => page.attributes.push((name.to_owned(), value)),
                None => page.notes.push(format!("its tag {name} is left behind")),
            },
            Ok(None) => {}
            Err(e) => page
                .notes
                .push(format!("its tag {name} is left behind: {e}")),
        }
    }
    if let Ok(Some(Value::Ascii(text))) = tags.find_tag(Tag::Unknown(GDAL_NODATA)) {
        let text = text.trim_end_matches('\0').trim().to_owned();
        page.attributes
            .push(("GDAL_NODATA".to_owned(), text.as_str().into()));
        page.nodata = Some(text);
    }
    Ok(())
}

/// A tag's value as an attribute.
fn attribute(value: Value) -> Option<AttributeValue> {
    Some(match value {
        Value::Ascii(text) => text.trim_end_matches('\0').into(),
        Value::Rational(n, d) => vec![n, d].into(),
        Value::SRational(n, d) => vec![n, d].into(),
        Value::Float(v) => v.into(),
        Value::Double(v) => v.into(),
        Value::List(values) => {
            if let Some(Value::Float(_) | Value::Double(_)) = values.first() {
                Value::List(values).into_f64_vec().ok()?.into()
            } else {
                let list: Option<Vec<i64>> = values.iter().map(integer).collect();
                list?.into()
            }
        }
        other => integer(&other)?.into(),
    })
}

fn integer(value: &Value) -> Option<i64> {
    Some(match value {
        Value::Byte(v) => (*v).into(),
        Value::Short(v) => (*v).into(),
        Value::SignedByte(v) => (*v).into(),
        Value::SignedShort(v) => (*v).into(),
        Value::Signed(v) => (*v).into(),
        Value::SignedBig(v) => *v,
        Value::Unsigned(v) => (*v).into(),
        Value::UnsignedBig(v) => i64::try_from(*v).ok()?,
        _ => return None,
    })
}
