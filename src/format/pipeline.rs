//! Codec pipelines as documents name them. Spec: `format-spec/10-documents.md`, "Pipelines" and "Shards".
//!
//! Holds [`CodecSpec`], the kinds of the known names, and the rules on their order and shapes. Must not encode or decode;
//! the parameters of a codec are checked by the room that implements it.

use super::dtype::{DataType, name_and_configuration};
use super::json::Json;
use crate::error::{Error, Result};
use crate::limits::{CHUNK_EXTENT_MAX, CODECS_MAX, Limits};

/// A codec as Zarr v3 names it; there are no codec numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecSpec {
    /// The registered name, such as `bytes`, `zstd`, `numcodecs.shuffle`.
    pub name: String,
    /// Members of `configuration`, in order; empty when the document has none.
    pub configuration: Vec<(String, Json)>,
}

/// What a codec turns into what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CodecKind {
    ArrayToArray,
    ArrayToBytes,
    BytesToBytes,
}

pub(crate) const SHARDING: &str = "sharding_indexed";

impl CodecSpec {
    /// A codec without configuration.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            configuration: Vec::new(),
        }
    }

    /// The same codec with one more member of its configuration.
    #[must_use]
    pub fn with(mut self, member: impl Into<String>, value: Json) -> Self {
        self.configuration.push((member.into(), value));
        self
    }

    /// A member of the configuration.
    pub fn get(&self, member: &str) -> Option<&Json> {
        let mut members = self.configuration.iter();
        members.find(|(name, _)| name == member).map(|(_, v)| v)
    }

    /// What this codec turns into what; `None` for a name that this version does not know.
    pub(crate) fn kind(&self) -> Option<CodecKind> {
        Some(match self.name.as_str() {
            "transpose" | "numcodecs.delta" => CodecKind::ArrayToArray,
            "bytes" | "vlen-utf8" | "vlen-bytes" | SHARDING => CodecKind::ArrayToBytes,
            "numcodecs.shuffle"
            | "zstd"
            | "numcodecs.lz4"
            | "numcodecs.zlib"
            | "gzip"
            | "crc32c"
            | "numcodecs.fletcher32"
            | "blosc" => CodecKind::BytesToBytes,
            _ => return None,
        })
    }

    /// The document form; `configuration` is left out when empty, except where other readers insist on it.
    pub fn to_json(&self) -> Json {
        let mut members = vec![("name".to_owned(), Json::text(&self.name))];
        if !self.configuration.is_empty() || self.name == "numcodecs.fletcher32" {
            let configuration = Json::Object(self.configuration.clone());
            members.push(("configuration".to_owned(), configuration));
        }
        Json::Object(members)
    }

    /// Reads the document form.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where it is not a name with an optional configuration.
    pub fn from_json(json: &Json) -> Result<Self> {
        let (name, configuration) = name_and_configuration(json)?;
        let configuration = configuration.and_then(Json::as_object).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            configuration: configuration.to_vec(),
        })
    }
}

/// Reads a list of codecs; more than a pipeline can have are refused before they are read.
pub(crate) fn codecs_from_json(json: &Json) -> Result<Vec<CodecSpec>> {
    let list = json.as_array().unwrap_or_default();
    if list.is_empty() || list.len() > CODECS_MAX {
        return Err(Error::invalid("codecs")
            .expected(format_args!("a list of 1..={CODECS_MAX}"))
            .found(if list.is_empty() {
                json.kind().to_owned()
            } else {
                list.len().to_string()
            }));
    }
    list.iter().map(CodecSpec::from_json).collect()
}

/// Checks order, kinds and shard shapes of a pipeline that encodes chunks of `shape`.
///
/// # Errors
///
/// `Unsupported` for a name that this version does not know, `LimitExceeded` for too many inner chunks, else
/// `InvalidArgument`.
pub(crate) fn validate(
    codecs: &[CodecSpec],
    data_type: &DataType,
    shape: &[u64],
    limits: &Limits,
) -> Result<()> {
    if codecs.is_empty() || codecs.len() > CODECS_MAX {
        return Err(Error::invalid("codecs")
            .expected(format_args!("1..={CODECS_MAX}"))
            .found(codecs.len()));
    }
    let mut before = CodecKind::ArrayToArray;
    let mut array_to_bytes = None;
    let mut shape = shape.to_vec();
    for codec in codecs {
        let kind = codec
            .kind()
            .ok_or_else(|| Error::unsupported("codec").found(format_args!("{:?}", codec.name)))?;
        if kind == CodecKind::ArrayToBytes && array_to_bytes.replace(codec).is_some()
            || kind < before
        {
            return Err(order_fault(codecs));
        }
        if kind == CodecKind::BytesToBytes && array_to_bytes.is_none() {
            return Err(order_fault(codecs));
        }
        before = kind;
        match codec.name.as_str() {
            "transpose" => shape = permuted(&shape, codec.get("order"))?,
            SHARDING => validate_shard(codec, data_type, &shape, limits)?,
            "bytes" if data_type.is_variable_length() => return Err(type_fault(codec, data_type)),
            "vlen-utf8" if *data_type != DataType::String => {
                return Err(type_fault(codec, data_type));
            }
            "vlen-bytes" if *data_type != DataType::Bytes => {
                return Err(type_fault(codec, data_type));
            }
            _ => {}
        }
    }
    if array_to_bytes.is_some() {
        Ok(())
    } else {
        Err(order_fault(codecs))
    }
}

/// The inner chunk of a sharding codec.
pub(crate) fn inner_shape(codec: &CodecSpec) -> Result<Vec<u64>> {
    let json = codec.get("chunk_shape");
    let list = json.and_then(Json::as_array);
    let extents: Option<Vec<u64>> = list.and_then(|l| l.iter().map(Json::as_u64).collect());
    let broken = || {
        Error::invalid("`chunk_shape` of sharding_indexed")
            .expected("a list of chunk extents")
            .found(json.map_or_else(|| "nothing".to_owned(), Json::to_string))
    };
    extents.ok_or_else(broken)
}

fn order_fault(codecs: &[CodecSpec]) -> Error {
    let names: Vec<&str> = codecs.iter().map(|c| c.name.as_str()).collect();
    Error::invalid("codecs")
        .expected("array-to-array codecs, then exactly one array-to-bytes codec, then bytes-to-bytes codecs")
        .found(names.join(", "))
}

fn type_fault(codec: &CodecSpec, data_type: &DataType) -> Error {
    let codec_for = match data_type {
        DataType::String => "vlen-utf8",
        DataType::Bytes => "vlen-bytes",
        _ => "bytes",
    };
    Error::invalid(format!("codec {:?} for type {data_type}", codec.name)).expected(codec_for)
}

fn permuted(shape: &[u64], order: Option<&Json>) -> Result<Vec<u64>> {
    let broken = || {
        Error::invalid("`order` of transpose")
            .expected(format_args!("a permutation of the {} axes", shape.len()))
            .found(order.map_or_else(|| "nothing".to_owned(), Json::to_string))
    };
    let axes = order
        .and_then(Json::as_array)
        .filter(|l| l.len() == shape.len());
    let mut left: Vec<Option<u64>> = shape.iter().copied().map(Some).collect();
    let take = |json: &Json| {
        let axis = usize::try_from(json.as_u64()?).ok()?;
        left.get_mut(axis)?.take()
    };
    let permuted: Option<Vec<u64>> = axes.ok_or_else(broken)?.iter().map(take).collect();
    permuted.ok_or_else(broken)
}

fn validate_shard(
    codec: &CodecSpec,
    data_type: &DataType,
    shard: &[u64],
    limits: &Limits,
) -> Result<()> {
    let inner = inner_shape(codec)?;
    if inner.len() != shard.len() {
        return Err(Error::invalid("`chunk_shape` of sharding_indexed")
            .expected(format_args!("{} extents", shard.len()))
            .found(inner.len()));
    }
    let mut count = 1_u64;
    for (axis, (outer, inner)) in shard.iter().zip(&inner).enumerate() {
        if !(1..=CHUNK_EXTENT_MAX).contains(inner) || !outer.is_multiple_of(*inner) {
            return Err(Error::invalid(format!("inner chunk length on axis {axis}"))
                .expected(format_args!(
                    "at least 1, and a divisor of the shard's {outer}"
                ))
                .found(inner));
        }
        count = count.saturating_mul(outer.checked_div(*inner).unwrap_or(0));
    }
    if count > limits.inner_chunks {
        return Err(Error::limit("inner chunks of a shard")
            .expected(format_args!("at most {}", limits.inner_chunks))
            .found(format_args!("{count} ({shard:?} in {inner:?})")));
    }
    let list = |member: &str| {
        codecs_from_json(codec.get(member).unwrap_or(&Json::Null)).map_err(|e| e.reason("shard"))
    };
    // Bounded: each level stands deeper in a JSON value, whose nesting is limited.
    validate(&list("codecs")?, data_type, &inner, limits)?;
    let index = list("index_codecs")?;
    let names: Vec<&str> = index.iter().map(|c| c.name.as_str()).collect();
    if !matches!(names.as_slice(), ["bytes"] | ["bytes", "crc32c"]) {
        return Err(Error::invalid("`index_codecs` of sharding_indexed")
            .expected("bytes, then at most one crc32c")
            .found(names.join(", ")));
    }
    match codec.get("index_location").map(Json::as_str) {
        None | Some(Some("end" | "start")) => Ok(()),
        _ => {
            Err(Error::invalid("`index_location` of sharding_indexed")
                .expected("\"end\" or \"start\""))
        }
    }
}
