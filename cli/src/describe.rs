//! What an object is, in JSON: the parts that `info`, `ls` and `create` share.
//!
//! Reads documents, attributes and the index; must not read payloads.

use orthant::{
    AttributeValue, Attributes, ChunkState, CodecSpec, DataType, DynArray, Json, Region,
};

use crate::exit::Result;
use crate::json::{big, domain, ints, maybe_text, object, text, uint, uints};
use crate::target::slashed;

/// Members of an object's description, in order.
pub(crate) type Members = Vec<(&'static str, Json)>;

/// What an array's document says.
pub(crate) fn array_layout(array: &DynArray) -> Result<Members> {
    let bounds = array.domain()?;
    Ok(vec![
        ("path", text(slashed(array.path()))),
        ("kind", text("array")),
        ("dtype", text(array.data_type().to_string())),
        ("domain", domain(&bounds)),
        ("shape", uints(bounds.shape())),
        ("origin", ints(array.origin()?)),
        ("chunk_shape", uints(array.chunk_shape())),
        ("shard_shape", array.shard_shape().map_or(Json::Null, uints)),
        (
            "dims",
            Json::Array(array.dims().into_iter().map(maybe_text).collect()),
        ),
        (
            "units",
            array
                .attributes()
                .get("units")?
                .map_or(Json::Null, |v| v.to_json()),
        ),
        ("fill", fill_json(array)),
        (
            "codecs",
            Json::Array(array.codecs().iter().map(codec).collect()),
        ),
    ])
}

/// The fill value in Zarr's JSON form, as `--fill` takes it: floats with no more digits than give their bits back.
pub(crate) fn fill_json(array: &DynArray) -> Json {
    let data_type = array.data_type();
    let times_or_records = matches!(
        data_type,
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } | DataType::Structured(_)
    );
    let form = data_type.fill_to_json(&array.fill_bytes());
    match form {
        Some(form) if times_or_records => form,
        _ => shown_fill(array),
    }
}

/// What is shown for an element where that gives the fill value's bits back, else Zarr's form.
fn shown_fill(array: &DynArray) -> Json {
    let (data_type, bytes) = (array.data_type(), array.fill_bytes());
    let shown = data_type.element_to_json(&bytes);
    match data_type.element_from_json(&shown) {
        Ok(back) if back == bytes => shown,
        _ => data_type.fill_to_json(&bytes).unwrap_or(shown),
    }
}

/// The same for people, who read times as dates.
pub(crate) fn fill(array: &DynArray) -> String {
    match shown_fill(array) {
        Json::String(t) => t,
        other => other.to_string(),
    }
}

/// A codec as its document has it.
pub(crate) fn codec(spec: &CodecSpec) -> Json {
    let name = ("name", text(&spec.name));
    if spec.configuration.is_empty() {
        return object([name]);
    }
    object([
        name,
        ("configuration", Json::Object(spec.configuration.clone())),
    ])
}

/// A codec as `--codecs` might have it: `zstd:3`.
pub(crate) fn codec_text(spec: &CodecSpec) -> String {
    let level = spec
        .configuration
        .iter()
        .find(|(k, _)| k == "level")
        .map(|(_, v)| format!(":{v}"))
        .unwrap_or_default();
    let name = spec.name.strip_prefix("numcodecs.").unwrap_or(&spec.name);
    format!("{name}{level}")
}

/// Attributes and their types, as two objects of the same names.
pub(crate) fn attributes(attributes: &Attributes) -> Result<Members> {
    let list = attributes.list()?;
    let part = |f: &dyn Fn(&AttributeValue) -> Json| {
        Json::Object(list.iter().map(|(n, v)| (n.clone(), f(v))).collect())
    };
    Ok(vec![
        ("attributes", part(&AttributeValue::to_json)),
        ("attribute_types", part(&|v| text(v.type_name()))),
    ])
}

/// What is stored of an array.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stored {
    pub(crate) chunks: u64,
    pub(crate) constant: u64,
    pub(crate) bytes: u64,
}

impl Stored {
    /// Counts an array's chunks; reads the index alone.
    pub(crate) fn of(array: &DynArray) -> Result<Self> {
        let mut stored = Self::default();
        array.for_each_chunk(Region::all(), |chunk| {
            match chunk.state {
                ChunkState::Stored { len, .. } => {
                    stored.chunks = stored.chunks.saturating_add(1);
                    stored.bytes = stored.bytes.saturating_add(len);
                }
                _ => stored.constant = stored.constant.saturating_add(1),
            }
            Ok(())
        })?;
        Ok(stored)
    }
}

/// Bytes of all elements of the domain; none for elements of any length.
pub(crate) fn logical_bytes(array: &DynArray) -> Result<Option<u128>> {
    let Some(item) = array.data_type().item_size() else {
        return Ok(None);
    };
    let count = array.domain()?.element_count();
    Ok(count.and_then(|n| n.checked_mul(item as u128)))
}

/// What is stored, and how it compares with the whole.
pub(crate) fn storage(array: &DynArray) -> Result<(Stored, Members)> {
    let stored = Stored::of(array)?;
    let logical = logical_bytes(array)?;
    let ratio = match logical {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        Some(logical) if stored.bytes > 0 => Json::F64(logical as f64 / stored.bytes as f64),
        _ => Json::Null,
    };
    let chunks = object([
        ("stored", uint(stored.chunks)),
        ("constant", uint(stored.constant)),
        ("grid", array.grid_chunks()?.map_or(Json::Null, big)),
    ]);
    let members = vec![
        ("chunks", chunks),
        ("stored_bytes", uint(stored.bytes)),
        ("logical_bytes", logical.map_or(Json::Null, big)),
        ("ratio", ratio),
        (
            "readers",
            Json::Array(array.readers().into_iter().map(text).collect()),
        ),
    ];
    Ok((stored, members))
}
