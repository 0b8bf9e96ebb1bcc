//! Zarr version 2: `.zarray` and `.zattrs`.
//!
//! Holds [`array`]. Follows the version 2 specification, and NumPy's names of types. Must not walk.

use std::sync::Arc;

use orthant::{DataType, Json};
use orthant_zarr::codecs;
use orthant_zarr::keys::Keys;
use orthant_zarr::read::{attributes_of, extents};

use super::placed;
use super::store::Store;
use crate::foreign::{Array, Facts, Refusal};

/// What xarray and netCDF call the attribute that names the axes.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// An array from its two documents.
pub(super) fn array(
    document: &Json,
    attributes: &Json,
    store: &Arc<dyn Store>,
    key: &str,
) -> Result<Array, Refusal> {
    if document.get("zarr_format").and_then(Json::as_i64) != Some(2) {
        return Err("its .zarray is not of Zarr version 2".to_owned());
    }
    let shape = extents(document.get("shape"), "shape")?;
    let chunk = extents(document.get("chunks"), "chunks")?;
    let (data_type, big_endian) = data_type(document)?;
    let mut facts = Facts::plain(data_type, &shape)?;
    facts.fill = fill(document.get("fill_value"), &facts.data_type)?;
    facts.codecs = Some(codecs::of_numcodecs(
        document,
        &facts.data_type,
        big_endian,
        shape.len(),
    )?);
    facts.attributes = attributes_of(Some(attributes));
    take_dimensions(&mut facts);
    let separator = match document.get("dimension_separator") {
        None | Some(Json::Null) => '.',
        Some(json) => match json.as_str() {
            Some(".") => '.',
            Some("/") => '/',
            _ => return Err(format!("its `dimension_separator` {json}")),
        },
    };
    let keys = Keys {
        lead: false,
        separator,
    };
    placed(facts, &shape, chunk, (store, key, keys))
}

/// The names of the axes, out of the attributes.
fn take_dimensions(facts: &mut Facts) {
    let found = facts.attributes.iter().position(|(n, _)| n == DIMENSIONS);
    let Some(at) = found else { return };
    let names = facts.attributes.get(at).and_then(|(_, value)| {
        let json = value.to_json();
        let names = json.as_array()?.iter();
        let names: Option<Vec<String>> = names.map(|n| n.as_str().map(str::to_owned)).collect();
        names.filter(|n| n.len() == facts.domain.rank())
    });
    if let Some(names) = names {
        facts.attributes.remove(at);
        facts.name_axes(&names);
    }
}

/// The type, and whether chunks hold its numbers with the highest byte first.
fn data_type(document: &Json) -> Result<(DataType, bool), Refusal> {
    let json = document.get("dtype").ok_or("it has no `dtype`")?;
    if let Some("|O") = json.as_str() {
        let filters = document.get("filters").and_then(Json::as_array);
        let ids: Vec<&str> = filters
            .unwrap_or_default()
            .iter()
            .filter_map(|f| f.get("id").and_then(Json::as_str))
            .collect();
        return match ids.iter().find(|id| !id.is_empty()) {
            Some(&"vlen-utf8") => Ok((DataType::String, false)),
            Some(&"vlen-bytes") => Ok((DataType::Bytes, false)),
            Some(id) => Err(format!("objects by the filter {id}")),
            None => Err("objects without a filter that says what they are".to_owned()),
        };
    }
    let descr = descr(json).ok_or_else(|| format!("type {json}"))?;
    DataType::from_numpy_descr(&descr).map_err(|e| e.to_string())
}

/// A `dtype` as NumPy prints it.
fn descr(json: &Json) -> Option<String> {
    if let Some(text) = json.as_str() {
        return Some(text.to_owned());
    }
    let quoted = |text: &str| {
        let plain = !text.contains(['\'', '\\']) && !text.chars().any(char::is_control);
        plain.then(|| format!("'{text}'"))
    };
    let mut fields = Vec::new();
    for field in json.as_array()? {
        let [name, data_type] = field.as_array()? else {
            return None;
        };
        fields.push(format!(
            "({}, {})",
            quoted(name.as_str()?)?,
            quoted(data_type.as_str()?)?
        ));
    }
    Some(format!("[{}]", fields.join(", ")))
}

/// The fill value; null leaves it to the container's default, which is zero.
fn fill(json: Option<&Json>, data_type: &DataType) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(json) = json.filter(|json| **json != Json::Null) else {
        return Ok(None);
    };
    match (data_type, json) {
        // zarr-python reads a number as its text here.
        (DataType::String, Json::I64(v)) => Ok(Some(v.to_string().into_bytes())),
        (DataType::Bytes | DataType::FixedUtf32 { .. }, Json::I64(0)) => Ok(None),
        (DataType::NullTerminatedBytes { length }, Json::String(_)) => {
            let bytes = DataType::Bytes.fill_from_json(json);
            let mut bytes = bytes.map_err(|e| e.to_string())?;
            bytes.resize(usize::try_from(*length).unwrap_or(bytes.len()), 0);
            Ok(Some(bytes))
        }
        (DataType::Bool, Json::I64(v @ 0..=1)) => Ok(Some(vec![u8::from(*v == 1)])),
        // A whole number of a float, and the other way round.
        (_, Json::F64(v)) if v.fract() == 0.0 && v.abs() < 9e15 && is_integer(data_type) => {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and below 2^53")]
            let whole = Json::I64(*v as i64);
            data_type
                .fill_from_json(&whole)
                .map(Some)
                .map_err(|e| e.to_string())
        }
        _ => data_type
            .fill_from_json(json)
            .map(Some)
            .map_err(|e| e.to_string()),
    }
}

fn is_integer(data_type: &DataType) -> bool {
    use DataType::{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(
        data_type,
        Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64
    )
}
