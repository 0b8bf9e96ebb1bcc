//! Documents of arrays and groups. Spec: `format-spec/10-documents.md`.
//!
//! Holds the typed form of a document, its one text, and its validation. Must not know paths, ids or payloads.
//!
//! Invariants of a valid array document: every per-axis list has the array's rank; domain and origin lie within the
//! index limit; a decoded chunk is within [`Limits::decoded_chunk_bytes`], so that no later write can fail for its size;
//! the fill value is one element of the type.

use super::dtype::{DataType, name_and_configuration};
use super::json::{Json, duplicate_name};
pub use super::pipeline::CodecSpec;
use super::pipeline::{self, SHARDING};
use crate::error::{Error, Result};
use crate::limits::{CHUNK_EXTENT_MAX, INDEX_MAX, Limits, NAME_LEN_MAX, RANK_MAX, UPPER_MAX};

/// Features that this version knows; a document that requires another one is `Unsupported`.
const FEATURES: [&str; 0] = [];
/// Least encoded bytes of an element of variable length: its length.
const VARIABLE_ELEMENT_LEN: u64 = 4;

/// Everything an array's document says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayDocument {
    /// Element type.
    pub(crate) data_type: DataType,
    /// One half-open range per axis.
    pub(crate) domain: Vec<(i64, i64)>,
    /// Element coordinate of the lower corner of chunk 0, per axis.
    pub(crate) origin: Vec<i64>,
    /// Stored chunk (the shard where there are shards), each 1..=2^32-1.
    pub(crate) chunk_shape: Vec<u64>,
    /// One element's little-endian bytes (for `String`: the text's bytes; for `Bytes`: the bytes).
    pub(crate) fill: Vec<u8>,
    /// The pipeline, 1..=8 codecs.
    pub(crate) codecs: Vec<CodecSpec>,
    /// Names of axes, all `None` when the member is left out.
    pub(crate) dimension_names: Vec<Option<String>>,
    /// Permutation in which coordinates stand in keys.
    pub(crate) key_order: Vec<u8>,
    /// Features a reader must know.
    pub(crate) requires: Vec<String>,
    /// Members this version does not know, kept in order.
    pub(crate) unknown: Vec<(String, Json)>,
}

/// Everything a group's document says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GroupDocument {
    /// Features a reader must know.
    pub(crate) requires: Vec<String>,
    /// Members this version does not know, kept in order.
    pub(crate) unknown: Vec<(String, Json)>,
}

/// A document of either kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Document {
    Group(GroupDocument),
    Array(Box<ArrayDocument>),
}

impl Document {
    /// Reads the document `bytes` and checks every rule of this module.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a type, grid, codec or feature of a later version, `LimitExceeded` for a cap of `limits`, else
    /// `Corrupt` with the member that breaks a rule.
    pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        let json = Json::parse_stored(bytes, limits)?;
        Self::from_json(json, limits).map_err(Error::into_corrupt)
    }

    fn from_json(json: Json, limits: &Limits) -> Result<Self> {
        let mut members = Members::of_document(json)?;
        if members.required("zarr_format")? != Json::I64(3) {
            return Err(fault("zarr_format").expected(3));
        }
        match members.required("node_type")?.as_str() {
            Some("group") => GroupDocument::from_members(members).map(Self::Group),
            Some("array") => {
                let array = ArrayDocument::from_members(members, limits)?;
                Ok(Self::Array(Box::new(array)))
            }
            _ => Err(fault("node_type").expected("\"group\" or \"array\"")),
        }
    }

    /// The one text.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Group(group) => group.to_text(),
            Self::Array(array) => array.to_text(),
        }
    }

    /// Whether `bytes`, which hold this document, are its one text.
    pub(crate) fn is_canonical(&self, bytes: &[u8]) -> bool {
        self.to_text().as_bytes() == bytes
    }
}

impl GroupDocument {
    fn from_members(mut members: Members) -> Result<Self> {
        let mut requires = Vec::new();
        if let Some(orthant) = members.take("orthant") {
            let mut orthant = Members::of_orthant(orthant)?;
            requires = orthant.requires()?;
            orthant.finish()?;
        }
        Ok(Self {
            requires,
            unknown: members.0,
        })
    }

    /// The one text.
    pub(crate) fn to_text(&self) -> String {
        let mut members = vec![
            member("zarr_format", Json::I64(3)),
            member("node_type", Json::text("group")),
        ];
        if !self.requires.is_empty() {
            let orthant = vec![
                member("must_understand", Json::Bool(false)),
                requires(&self.requires),
            ];
            members.push(member("orthant", Json::Object(orthant)));
        }
        members.extend(self.unknown.iter().cloned());
        Json::Object(members).to_string()
    }
}

impl ArrayDocument {
    /// Reads an array's document, which a group's is not.
    pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self> {
        match Document::parse(bytes, limits)? {
            Document::Array(array) => Ok(*array),
            Document::Group(_) => Err(fault("node_type")
                .expected("\"array\"")
                .found("\"group\"")
                .into_corrupt()),
        }
    }

    fn from_members(mut members: Members, limits: &Limits) -> Result<Self> {
        let shape = integers(&members.required("shape")?, "shape", Json::as_u64)?;
        let data_type = DataType::from_json(&members.required("data_type")?)?;
        let chunk_shape = regular_grid(&members.required("chunk_grid")?)?;
        let key_encoding = members.required("chunk_key_encoding")?;
        if key_encoding != chunk_key_encoding() {
            return Err(fault("chunk_key_encoding")
                .expected(chunk_key_encoding())
                .found(key_encoding));
        }
        let fill = data_type.fill_from_json(&members.required("fill_value")?)?;
        let codecs = pipeline::codecs_from_json(&members.required("codecs")?)?;
        let names = members.take("dimension_names");
        let mut orthant = Members::of_orthant(members.required("orthant")?)?;
        let domain = domain(&orthant.required("domain")?)?;
        let document = Self {
            data_type,
            dimension_names: match names {
                None => vec![None; domain.len()],
                Some(names) => dimension_names(&names)?,
            },
            requires: orthant.requires()?,
            domain,
            origin: integers(&orthant.required("origin")?, "origin", Json::as_i64)?,
            key_order: integers(&orthant.required("key_order")?, "key_order", |json| {
                u8::try_from(json.as_u64()?).ok()
            })?,
            chunk_shape,
            fill,
            codecs,
            unknown: members.0,
        };
        orthant.finish()?;
        document.validate(limits)?;
        if document.shape() != shape {
            return Err(fault("shape")
                .expected(format_args!("{:?}, as `domain` has it", document.shape()))
                .found(format_args!("{shape:?}")));
        }
        Ok(document)
    }

    /// Number of axes.
    pub(crate) fn rank(&self) -> usize {
        self.domain.len()
    }

    /// Upper minus lower bound per axis.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.domain
            .iter()
            .map(|(lo, hi)| hi.abs_diff(*lo))
            .collect()
    }

    /// The inner chunk where chunks are shards.
    pub(crate) fn inner_chunk_shape(&self) -> Option<Vec<u64>> {
        let sharding = self.codecs.iter().find(|c| c.name == SHARDING)?;
        pipeline::inner_shape(sharding).ok()
    }

    /// Checks the invariants of this module, for a document made here or read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` naming the field, `LimitExceeded`, or `Unsupported`.
    pub(crate) fn validate(&self, limits: &Limits) -> Result<()> {
        self.data_type.validate()?;
        self.validate_axes()?;
        self.validate_names()?;
        self.validate_chunk_size(limits)?;
        pipeline::validate(&self.codecs, &self.data_type, &self.chunk_shape, limits)?;
        if self.data_type.fill_to_json(&self.fill).is_none() {
            return Err(Error::invalid("fill value")
                .expected(format_args!("one element of type {}", self.data_type))
                .found(format_args!("{} bytes", self.fill.len())));
        }
        unknown_feature(&self.requires)
    }

    fn validate_axes(&self) -> Result<()> {
        let rank = self.rank();
        if rank > RANK_MAX {
            return Err(Error::limit("number of axes")
                .expected(format_args!("at most {RANK_MAX}"))
                .found(rank));
        }
        for (what, len) in [
            ("origin", self.origin.len()),
            ("chunk shape", self.chunk_shape.len()),
            ("dimension names", self.dimension_names.len()),
            ("key order", self.key_order.len()),
        ] {
            if len != rank {
                return Err(Error::invalid(what)
                    .expected(format_args!("one entry for each of the {rank} axes"))
                    .found(len)
                    .reason("rank"));
            }
        }
        for (axis, (lo, hi)) in self.domain.iter().enumerate() {
            if lo > hi || *lo < -INDEX_MAX || *lo > INDEX_MAX || *hi > UPPER_MAX {
                let reason = if lo > hi { "reversed" } else { "index_limit" };
                return Err(Error::invalid(format!("domain on axis {axis}"))
                    .expected(format_args!(
                        "lower <= upper, within {} and {UPPER_MAX}",
                        -INDEX_MAX
                    ))
                    .found(format_args!("{lo}..{hi}"))
                    .reason(reason));
            }
        }
        for (axis, origin) in self.origin.iter().enumerate() {
            if !(-INDEX_MAX..=INDEX_MAX).contains(origin) {
                return Err(Error::invalid(format!("origin on axis {axis}"))
                    .expected(format_args!("within {} and {INDEX_MAX}", -INDEX_MAX))
                    .found(origin)
                    .reason("index_limit"));
            }
        }
        let mut sorted = self.key_order.clone();
        sorted.sort_unstable();
        if !sorted
            .iter()
            .copied()
            .eq(0..u8::try_from(rank).unwrap_or(u8::MAX))
        {
            return Err(Error::invalid("key order")
                .expected(format_args!("a permutation of the {rank} axes"))
                .found(format_args!("{:?}", self.key_order)));
        }
        Ok(())
    }

    fn validate_names(&self) -> Result<()> {
        for name in self.dimension_names.iter().flatten() {
            if name.is_empty() || name.len() > NAME_LEN_MAX || name.contains('\0') {
                return Err(Error::invalid("name of an axis")
                    .expected(format_args!("1..={NAME_LEN_MAX} bytes without NUL"))
                    .found(format_args!("{name:?}")));
            }
        }
        match duplicate_name(self.dimension_names.iter().flatten().map(String::as_str)) {
            None => Ok(()),
            Some(name) => Err(Error::invalid("names of axes")
                .expected("unique names")
                .found(format_args!("{name:?} twice"))),
        }
    }

    fn validate_chunk_size(&self, limits: &Limits) -> Result<()> {
        for (axis, extent) in self.chunk_shape.iter().enumerate() {
            if *extent == 0 {
                return Err(Error::invalid(format!("chunk length on axis {axis}"))
                    .expected("at least 1")
                    .found(0));
            }
            if *extent > CHUNK_EXTENT_MAX {
                return Err(Error::invalid(format!("chunk length on axis {axis}"))
                    .expected(format_args!("at most {CHUNK_EXTENT_MAX}"))
                    .found(extent));
            }
        }
        let item_size = self
            .data_type
            .item_size()
            .map_or(VARIABLE_ELEMENT_LEN, |s| s as u64);
        let factors = self.chunk_shape.iter().chain([&item_size]);
        let bytes = factors.fold(1_u128, |n, f| n.saturating_mul(u128::from(*f)));
        if bytes > u128::from(limits.decoded_chunk_bytes) {
            let lengths: Vec<String> = self.chunk_shape.iter().map(u64::to_string).collect();
            return Err(Error::limit("decoded bytes of one chunk")
                .expected(format_args!(
                    "at most {}",
                    with_gib(limits.decoded_chunk_bytes.into())
                ))
                .found(format_args!(
                    "{} elements of {} = {}",
                    if lengths.is_empty() {
                        "1".to_owned()
                    } else {
                        lengths.join(" x ")
                    },
                    self.data_type,
                    with_gib(bytes)
                ))
                .help("choose a smaller chunk shape"));
        }
        Ok(())
    }

    /// The one text.
    pub(crate) fn to_text(&self) -> String {
        let list = |items: &mut dyn Iterator<Item = Json>| Json::Array(items.collect());
        let unsigned = |items: &[u64]| list(&mut items.iter().map(|v| Json::from_u64(*v)));
        let signed = |v: i64| Json::I64(v);
        let configuration = Json::object([("chunk_shape", unsigned(&self.chunk_shape))]);
        let grid = Json::object([
            ("name", Json::text("regular")),
            ("configuration", configuration),
        ]);
        // `validate` has seen to it that the fill value has a form.
        let fill = self
            .data_type
            .fill_to_json(&self.fill)
            .unwrap_or(Json::Null);
        let mut members = vec![
            member("zarr_format", Json::I64(3)),
            member("node_type", Json::text("array")),
            member("shape", unsigned(&self.shape())),
            member("data_type", self.data_type.to_json()),
            member("chunk_grid", grid),
            member("chunk_key_encoding", chunk_key_encoding()),
            member("fill_value", fill),
            member(
                "codecs",
                list(&mut self.codecs.iter().map(CodecSpec::to_json)),
            ),
        ];
        if self.dimension_names.iter().any(Option::is_some) {
            let name = |name: &Option<String>| name.as_ref().map_or(Json::Null, Json::text);
            members.push(member(
                "dimension_names",
                list(&mut self.dimension_names.iter().map(name)),
            ));
        }
        let mut orthant = vec![member("must_understand", Json::Bool(false))];
        if !self.requires.is_empty() {
            orthant.push(requires(&self.requires));
        }
        let bounds = |(lo, hi): &(i64, i64)| Json::Array(vec![signed(*lo), signed(*hi)]);
        orthant.push(member("domain", list(&mut self.domain.iter().map(bounds))));
        orthant.push(member(
            "origin",
            list(&mut self.origin.iter().copied().map(signed)),
        ));
        let axes = &mut self.key_order.iter().map(|axis| Json::I64((*axis).into()));
        orthant.push(member("key_order", list(axes)));
        members.push(member("orthant", Json::Object(orthant)));
        members.extend(self.unknown.iter().cloned());
        Json::Object(members).to_string()
    }
}

/// `4294967296 bytes (4.00 GiB)`, for people who think in either.
fn with_gib(bytes: u128) -> String {
    if bytes == u128::MAX {
        return "more than 2^127 bytes".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    let gib = bytes as f64 / f64::from(1_u32 << 30);
    format!("{bytes} bytes ({gib:.2} GiB)")
}

fn fault(member: &str) -> Error {
    Error::invalid(format!("document member `{member}`"))
}

fn member(name: &str, value: Json) -> (String, Json) {
    (name.to_owned(), value)
}

fn requires(features: &[String]) -> (String, Json) {
    let features = features.iter().map(Json::text).collect();
    member("requires", Json::Array(features))
}

fn chunk_key_encoding() -> Json {
    let configuration = Json::object([("separator", Json::text("/"))]);
    Json::object([
        ("name", Json::text("default")),
        ("configuration", configuration),
    ])
}

fn unknown_feature(requires: &[String]) -> Result<()> {
    match requires
        .iter()
        .find(|name| !FEATURES.contains(&name.as_str()))
    {
        None => Ok(()),
        Some(name) => Err(Error::unsupported("required feature").found(format_args!("{name:?}"))),
    }
}

fn regular_grid(json: &Json) -> Result<Vec<u64>> {
    let (name, configuration) = name_and_configuration(json)?;
    let members = configuration.and_then(Json::as_object).unwrap_or_default();
    match (name, members) {
        ("regular", [(member, shape)]) if member == "chunk_shape" => {
            integers(shape, "chunk_shape", Json::as_u64)
        }
        ("regular", _) => Err(fault("chunk_grid")
            .expected("a configuration of `chunk_shape`")
            .found(json)),
        _ => Err(Error::unsupported("chunk grid").found(format_args!("{name:?}"))),
    }
}

/// A list with an integer for each axis.
fn integers<T>(json: &Json, name: &str, read: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>> {
    let list = json.as_array();
    if let Some(list) = list.filter(|list| list.len() > RANK_MAX) {
        return Err(Error::limit("number of axes")
            .expected(format_args!("at most {RANK_MAX} in `{name}`"))
            .found(list.len()));
    }
    let values: Option<Vec<T>> = list.and_then(|list| list.iter().map(read).collect());
    values.ok_or_else(|| fault(name).expected("a list of integers").found(json))
}

fn domain(json: &Json) -> Result<Vec<(i64, i64)>> {
    let bounds = |json: &Json| match json.as_array()? {
        [Json::I64(lo), Json::I64(hi)] => Some((*lo, *hi)),
        _ => None,
    };
    integers(json, "domain", bounds)
        .map_err(|e| e.expected("a pair [lo,hi] of 64-bit integers for each axis"))
}

fn dimension_names(json: &Json) -> Result<Vec<Option<String>>> {
    let name = |json: &Json| match json {
        Json::Null => Some(None),
        Json::String(name) => Some(Some(name.clone())),
        _ => None,
    };
    integers(json, "dimension_names", name).map_err(|e| e.expected("a name or null for each axis"))
}

/// Members of an object that is being read; what is left is unknown.
struct Members(Vec<(String, Json)>);

impl Members {
    fn of_document(json: Json) -> Result<Self> {
        match json {
            Json::Object(members) => Ok(Self(members)),
            other => Err(Error::invalid("document")
                .expected("an object")
                .found(other.kind())),
        }
    }

    fn of_orthant(json: Json) -> Result<Self> {
        let Json::Object(members) = json else {
            return Err(fault("orthant").expected("an object").found(json));
        };
        let mut members = Self(members);
        match members.required("must_understand")? {
            Json::Bool(false) => Ok(members),
            other => Err(Error::unsupported("document member `must_understand`")
                .expected(false)
                .found(other)),
        }
    }

    fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    fn required(&mut self, name: &str) -> Result<Json> {
        self.take(name)
            .ok_or_else(|| fault(name).expected("to be there").found("nothing"))
    }

    fn requires(&mut self) -> Result<Vec<String>> {
        let Some(json) = self.take("requires") else {
            return Ok(Vec::new());
        };
        let texts = |list: &[Json]| list.iter().map(|j| j.as_str().map(str::to_owned)).collect();
        let features: Vec<String> = json
            .as_array()
            .and_then(texts)
            .ok_or_else(|| fault("requires").expected("a list of names").found(json))?;
        unknown_feature(&features)?;
        Ok(features)
    }

    /// Inside `orthant` nothing unknown is passed over: it may change what the array means.
    fn finish(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::unsupported("member of `orthant`").found(format_args!("{name:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
