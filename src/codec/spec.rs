//! What a caller says about codecs, and how it becomes an array's pipeline.
//!
//! Holds the public [`Codec`], its text form, the profiles, and the table of outside readers. Must not hold what a codec
//! does to bytes, nor parameters' meaning beyond their names.

use std::fmt;
use std::str::FromStr;

use super::layout::Layout;
use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::dtype::DataType;
use crate::format::json::Json;
use crate::format::pipeline::{CodecKind, SHARDING, codecs_from_json};

/// Level of zstd in the profiles.
const ZSTD_LEVEL: i32 = 3;
/// Level of zlib in the `archive` profile, and wherever a text gives none: numcodecs' own choice is 1, zlib's is 6.
const ZLIB_LEVEL: u8 = 6;
/// Level of gzip where a text gives none, as in Zarr.
const GZIP_LEVEL: u8 = 5;

/// One codec of an array's pipeline, as a caller asks for it.
///
/// A pipeline is a list of codecs in the order in which they are applied on writing. What follows from the data type is
/// filled in when the array is created: the element size of [`shuffle`](Self::shuffle), the type of
/// [`delta`](Self::delta), and the codec that turns elements into bytes, which can be left out.
///
/// Text form: `NAME` or `NAME:PARAMETER`, joined by commas, or the name of a profile (see [`Codec::list`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Codec(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Transpose(Vec<u8>),
    Delta,
    LittleEndian,
    BigEndian,
    /// Element size, by default the item size.
    Shuffle(Option<u32>),
    /// Shuffle, unless the elements are single bytes or of variable length.
    ShuffleWhereItHelps,
    Zstd(i32),
    Lz4,
    Zlib(u8),
    Gzip(u8),
    Crc32c,
    Fletcher32,
    /// Taken as it is.
    Exact(CodecSpec),
}

impl Codec {
    /// Permutes the axes: axis `i` of what is stored is axis `order[i]` of the array.
    pub fn transpose(order: impl IntoIterator<Item = u8>) -> Self {
        Self(Kind::Transpose(order.into_iter().collect()))
    }

    /// Stores differences of neighbours in C order; for integers only.
    pub fn delta() -> Self {
        Self(Kind::Delta)
    }

    /// Stores elements with the lowest byte first: the default, so it need not be given.
    pub fn bytes_little_endian() -> Self {
        Self(Kind::LittleEndian)
    }

    /// Stores elements with the highest byte first.
    pub fn bytes_big_endian() -> Self {
        Self(Kind::BigEndian)
    }

    /// Gathers the bytes of equal significance, which helps the compressor behind it.
    pub fn shuffle() -> Self {
        Self(Kind::Shuffle(None))
    }

    /// [`shuffle`](Self::shuffle) with an element size other than the item size, at least 1.
    pub fn shuffle_elements(element_len: u32) -> Self {
        Self(Kind::Shuffle(Some(element_len)))
    }

    /// Compresses with zstd at a level of -131072..=22. Needs the feature `zstd`.
    pub fn zstd(level: i32) -> Self {
        Self(Kind::Zstd(level))
    }

    /// Compresses with LZ4: less, and several times faster. Needs the feature `lz4`.
    pub fn lz4() -> Self {
        Self(Kind::Lz4)
    }

    /// Compresses with deflate in zlib framing at a level of 0..=9. Needs the feature `deflate`.
    pub fn zlib(level: u8) -> Self {
        Self(Kind::Zlib(level))
    }

    /// Compresses with deflate in gzip framing at a level of 0..=9. Needs the feature `deflate`.
    pub fn gzip(level: u8) -> Self {
        Self(Kind::Gzip(level))
    }

    /// Puts a CRC32C behind the payload, for readers that do not see the container's own checksums.
    pub fn crc32c() -> Self {
        Self(Kind::Crc32c)
    }

    /// Puts HDF5's Fletcher-32 behind the payload.
    pub fn fletcher32() -> Self {
        Self(Kind::Fletcher32)
    }

    /// The profile `default`: shuffle where it helps, then zstd at level 3.
    pub fn default_profile() -> Vec<Self> {
        vec![Self(Kind::ShuffleWhereItHelps), Self::zstd(ZSTD_LEVEL)]
    }

    /// The profile `portable`, which every Zarr v3 reader decodes: zstd at level 3, then CRC32C.
    pub fn portable_profile() -> Vec<Self> {
        vec![Self::zstd(ZSTD_LEVEL), Self::crc32c()]
    }

    /// The profile `archive`, which a bare Python decodes: zlib, then CRC32C.
    pub fn archive_profile() -> Vec<Self> {
        vec![Self::zlib(ZLIB_LEVEL), Self::crc32c()]
    }

    /// The profile `raw`: the elements as they are.
    pub fn raw_profile() -> Vec<Self> {
        vec![Self::bytes_little_endian()]
    }

    /// Reads a list such as `shuffle,zstd:3,crc32c`, or a profile: `default`, `portable`, `archive`, `raw`.
    ///
    /// # Errors
    /// `InvalidArgument` that names the part which is no codec, with the names there are.
    pub fn list(text: &str) -> Result<Vec<Self>> {
        match text.trim() {
            "default" => Ok(Self::default_profile()),
            "portable" => Ok(Self::portable_profile()),
            "archive" => Ok(Self::archive_profile()),
            "raw" => Ok(Self::raw_profile()),
            list => list.split(',').map(str::parse).collect(),
        }
    }

    /// What it turns into what; codecs that this version does not know count as the last kind.
    fn kind(&self) -> CodecKind {
        match &self.0 {
            Kind::Transpose(_) | Kind::Delta => CodecKind::ArrayToArray,
            Kind::LittleEndian | Kind::BigEndian => CodecKind::ArrayToBytes,
            Kind::Exact(spec) => spec.kind().unwrap_or(CodecKind::BytesToBytes),
            _ => CodecKind::BytesToBytes,
        }
    }

    /// The document's form for this data type; `None` where the codec would do nothing.
    fn spec(&self, data_type: &DataType, layout: &Layout) -> Result<Option<CodecSpec>> {
        Ok(Some(match &self.0 {
            Kind::Transpose(order) => with(
                "transpose",
                "order",
                Json::Array(order.iter().map(|a| Json::I64(i64::from(*a))).collect()),
            ),
            Kind::Delta => {
                let Some(code) = layout.integer else {
                    return Err(Error::invalid("codec delta")
                        .reason("codec_configuration")
                        .expected("an array of integers")
                        .found("another type, whose differences would not give back every bit"));
                };
                let order = if layout.item_len == Some(1) { '|' } else { '<' };
                let code = format!("{order}{code}");
                with("numcodecs.delta", "dtype", Json::String(code))
            }
            Kind::LittleEndian => to_bytes(data_type, layout, "little"),
            Kind::BigEndian => to_bytes(data_type, layout, "big"),
            Kind::ShuffleWhereItHelps if layout.item_len.is_none_or(|len| len <= 1) => {
                return Ok(None);
            }
            Kind::Shuffle(None) | Kind::ShuffleWhereItHelps => {
                let Some(len) = layout.item_len.and_then(|len| i64::try_from(len).ok()) else {
                    return Err(Error::invalid("codec shuffle")
                        .reason("codec_configuration")
                        .expected("fixed-size elements")
                        .found("items of variable length"));
                };
                with("numcodecs.shuffle", "elementsize", Json::I64(len))
            }
            Kind::Shuffle(Some(len)) => with(
                "numcodecs.shuffle",
                "elementsize",
                Json::I64(i64::from(*len)),
            ),
            Kind::Zstd(level) => with("zstd", "level", Json::I64(i64::from(*level)))
                .with("checksum", Json::Bool(false)),
            Kind::Lz4 => with("numcodecs.lz4", "acceleration", Json::I64(1)),
            Kind::Zlib(level) => with("numcodecs.zlib", "level", Json::I64(i64::from(*level))),
            Kind::Gzip(level) => with("gzip", "level", Json::I64(i64::from(*level))),
            Kind::Crc32c => bare("crc32c"),
            Kind::Fletcher32 => bare("numcodecs.fletcher32"),
            Kind::Exact(spec) => spec.clone(),
        }))
    }
}

/// The pipeline for an array of this type: parameters filled in, the array-to-bytes codec put in if missing.
pub(crate) fn resolve(codecs: &[Codec], data_type: &DataType) -> Result<Vec<CodecSpec>> {
    let layout = Layout::of(data_type);
    let mut specs = Vec::with_capacity(codecs.len().saturating_add(1));
    let mut serialized = codecs
        .iter()
        .any(|codec| codec.kind() == CodecKind::ArrayToBytes);
    for codec in codecs {
        if !serialized && codec.kind() != CodecKind::ArrayToArray {
            specs.push(to_bytes(data_type, &layout, "little"));
            serialized = true;
        }
        specs.extend(codec.spec(data_type, &layout)?);
    }
    if !serialized {
        specs.push(to_bytes(data_type, &layout, "little"));
    }
    Ok(specs)
}

/// The codec of shards of such inner chunks: inner and index pipelines end in a checksum, so that parts of a shard can be
/// read and verified without the rest.
pub(crate) fn shard_spec(inner_shape: &[u64], mut codecs: Vec<CodecSpec>) -> CodecSpec {
    if codecs.last().is_none_or(|codec| codec.name != "crc32c") {
        codecs.push(bare("crc32c"));
    }
    let list = |codecs: &[CodecSpec]| Json::Array(codecs.iter().map(CodecSpec::to_json).collect());
    let extent = |n: &u64| i64::try_from(*n).map_or(Json::U64(*n), Json::I64);
    let index = [
        with("bytes", "endian", Json::text("little")),
        bare("crc32c"),
    ];
    CodecSpec::new(SHARDING)
        .with(
            "chunk_shape",
            Json::Array(inner_shape.iter().map(extent).collect()),
        )
        .with("codecs", list(&codecs))
        .with("index_codecs", list(&index))
        .with("index_location", Json::text("end"))
}

/// Outside readers that decode such a pipeline, by what was tried with them: zarr-python 3.1.6, zarrita 0.7.5,
/// zarrs 0.23.14, `TensorStore` 0.1.86.
pub(crate) fn readers(codecs: &[CodecSpec], data_type: &DataType) -> Vec<&'static str> {
    if leaves_a_tail(codecs, data_type) {
        return Vec::new();
    }
    let mut readers = vec!["zarr-python", "zarrita", "zarrs", "tensorstore"];
    readers.retain(|reader| reads_type(reader, data_type) && reads_pipeline(reader, codecs));
    readers
}

fn reads_type(reader: &str, data_type: &DataType) -> bool {
    match data_type {
        DataType::Bfloat16 => reader == "tensorstore",
        DataType::Datetime64 { .. }
        | DataType::Timedelta64 { .. }
        | DataType::String
        | DataType::Bytes
        | DataType::Structured(_)
        | DataType::NullTerminatedBytes { .. }
        | DataType::FixedUtf32 { .. }
        // TensorStore opens fixed bytes with one more axis, and its Python gives them no values.
        | DataType::RawBytes { .. } => reader == "zarr-python",
        // zarrita has no complex numbers: JavaScript has none.
        DataType::Complex64 | DataType::Complex128 => reader != "zarrita",
        _ => true,
    }
}

/// True when a shuffle may meet a length that is no multiple of its element size: numcodecs refuses those, and no other
/// reader was tried with them.
fn leaves_a_tail(codecs: &[CodecSpec], data_type: &DataType) -> bool {
    let mut item_len = data_type
        .item_size()
        .and_then(|len| i64::try_from(len).ok());
    let mut tail = false;
    for codec in codecs {
        match (codec.kind(), &*codec.name) {
            (_, "numcodecs.shuffle") => {
                let element_len = codec.get("elementsize").and_then(Json::as_i64);
                let whole = match (item_len, element_len) {
                    (Some(item), Some(element)) => item.checked_rem(element) == Some(0),
                    (item, None) => item.is_some(),
                    (None, Some(element)) => element == 1,
                };
                tail = tail || !whole;
            }
            // Behind it the length is no longer a number of items.
            (Some(CodecKind::BytesToBytes), _) => item_len = None,
            _ => {}
        }
    }
    tail
}

fn reads_pipeline(reader: &str, codecs: &[CodecSpec]) -> bool {
    let named = |name: &str| codecs.iter().find(|codec| codec.name == name);
    let big = |codec: &CodecSpec| codec.get("endian").and_then(Json::as_str) == Some("big");
    // zarr-python sums differences in the byte order of the host, whatever the chunk's is.
    let misread = named("numcodecs.delta").is_some() && named("bytes").is_some_and(big);
    codecs.iter().all(|codec| reads_codec(reader, codec)) && !(misread && reader == "zarr-python")
}

fn reads_codec(reader: &str, codec: &CodecSpec) -> bool {
    match &*codec.name {
        "bytes" | "transpose" | "zstd" | "gzip" | "crc32c" | "blosc" => true,
        "numcodecs.shuffle" | "numcodecs.zlib" => reader != "tensorstore",
        "numcodecs.lz4" | "numcodecs.delta" => matches!(reader, "zarr-python" | "zarrita"),
        "numcodecs.fletcher32" => matches!(reader, "zarr-python" | "zarrs"),
        "vlen-utf8" | "vlen-bytes" => reader == "zarr-python",
        "sharding_indexed" => {
            let at_start = codec.get("index_location").and_then(Json::as_str) == Some("start");
            let inner = codec.get("codecs").map(codecs_from_json);
            let inner =
                inner.is_some_and(|inner| inner.is_ok_and(|inner| reads_pipeline(reader, &inner)));
            inner && !(at_start && reader == "zarrita")
        }
        _ => false,
    }
}

/// The array-to-bytes codec of a data type.
fn to_bytes(data_type: &DataType, layout: &Layout, endian: &str) -> CodecSpec {
    match data_type {
        DataType::String => bare("vlen-utf8"),
        DataType::Bytes => bare("vlen-bytes"),
        // A record asked for in big-endian order keeps the word, so that compiling it says why not.
        _ if layout.word_len == 1 && !(layout.record && endian == "big") => bare("bytes"),
        _ => with("bytes", "endian", Json::text(endian)),
    }
}

fn bare(name: &str) -> CodecSpec {
    CodecSpec::new(name)
}

fn with(name: &str, key: &str, value: Json) -> CodecSpec {
    CodecSpec::new(name).with(key, value)
}

impl From<CodecSpec> for Codec {
    /// A codec exactly as a document names it, for arrays that take over payloads of other software.
    fn from(spec: CodecSpec) -> Self {
        Self(Kind::Exact(spec))
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// One codec: `shuffle`, `shuffle:4`, `zstd:3`, `transpose:1/0`, ...
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
            None => (text, None),
        };
        let level = |by_default: u8| match parameter {
            None => Ok(by_default),
            Some(p) => number(text, p, 0..=9),
        };
        let plain = |codec: Self| match parameter {
            None => Ok(codec),
            Some(p) => Err(unreadable(text).expected("no parameter").found(p)),
        };
        match name.strip_prefix("numcodecs.").unwrap_or(name) {
            "shuffle" => Ok(match parameter {
                None => Self::shuffle(),
                Some(p) => Self::shuffle_elements(number(text, p, 1..=i64::from(i32::MAX))?),
            }),
            "zstd" => Ok(Self::zstd(match parameter {
                None => ZSTD_LEVEL,
                Some(p) => number(text, p, -131_072..=22)?,
            })),
            "zlib" => Ok(Self::zlib(level(ZLIB_LEVEL)?)),
            "gzip" => Ok(Self::gzip(level(GZIP_LEVEL)?)),
            "lz4" => plain(Self::lz4()),
            "crc32c" => plain(Self::crc32c()),
            "fletcher32" => plain(Self::fletcher32()),
            "delta" => plain(Self::delta()),
            "bytes" => match parameter {
                None | Some("little") => Ok(Self::bytes_little_endian()),
                Some("big") => Ok(Self::bytes_big_endian()),
                Some(p) => Err(unreadable(text).expected("little or big").found(p)),
            },
            "vlen-utf8" | "vlen-bytes" => plain(Self::from(bare(name))),
            "transpose" => match parameter {
                None => Err(unreadable(text)
                    .expected("the order of the axes, such as `transpose:1/0`")
                    .found("none")),
                Some(p) => p
                    .split('/')
                    .map(|axis| number(text, axis, 0..=31))
                    .collect::<Result<Vec<u8>>>()
                    .map(Self::transpose),
            },
            _ => Err(unreadable(text)
                .expected(
                    "transpose, delta, bytes, shuffle, zstd, lz4, zlib, gzip, crc32c or fletcher32, \
                     or alone default, portable, archive or raw",
                )
                .found(format_args!("`{name}`"))),
        }
    }
}

impl fmt::Display for Codec {
    /// The text form, which [`FromStr`] reads back; a codec taken from a document shows its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Transpose(order) => {
                let order: Vec<String> = order.iter().map(u8::to_string).collect();
                write!(f, "transpose:{}", order.join("/"))
            }
            Kind::Delta => f.write_str("delta"),
            Kind::LittleEndian => f.write_str("bytes"),
            Kind::BigEndian => f.write_str("bytes:big"),
            Kind::Shuffle(None) | Kind::ShuffleWhereItHelps => f.write_str("shuffle"),
            Kind::Shuffle(Some(len)) => write!(f, "shuffle:{len}"),
            Kind::Zstd(level) => write!(f, "zstd:{level}"),
            Kind::Lz4 => f.write_str("lz4"),
            Kind::Zlib(level) => write!(f, "zlib:{level}"),
            Kind::Gzip(level) => write!(f, "gzip:{level}"),
            Kind::Crc32c => f.write_str("crc32c"),
            Kind::Fletcher32 => f.write_str("fletcher32"),
            Kind::Exact(spec) => f.write_str(&spec.name),
        }
    }
}

fn number<T: TryFrom<i64>>(
    text: &str,
    parameter: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<T> {
    let value = parameter.trim().parse().ok().filter(|n| range.contains(n));
    value.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
        unreadable(text)
            .expected(format_args!("a number {}..={}", range.start(), range.end()))
            .found(format_args!("`{parameter}`"))
    })
}

fn unreadable(text: &str) -> Error {
    Error::invalid(format!("codec `{text}`")).reason("syntax")
}
