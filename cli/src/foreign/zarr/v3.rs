//! Zarr version 3: `zarr.json`.
//!
//! Holds [`node`]. Must not walk.

use std::sync::Arc;

use orthant::{AttributeValue, DataType, Json, TypedArray};

use super::chunks::Keys;
use super::store::Store;
use super::{attributes_of, codecs, extents, placed};
use crate::foreign::{Array, Facts, Refusal, What};

/// A group or an array from its document.
pub(super) fn node(document: &Json, store: &Arc<dyn Store>, key: &str) -> Result<What, Refusal> {
    let version = document.get("zarr_format").and_then(Json::as_i64);
    if version != Some(3) {
        return Err("its zarr.json is not of Zarr version 3".to_owned());
    }
    for (name, value) in document.as_object().unwrap_or_default() {
        let known = [
            "zarr_format",
            "node_type",
            "shape",
            "data_type",
            "chunk_grid",
            "chunk_key_encoding",
            "fill_value",
            "codecs",
            "attributes",
            "dimension_names",
            "storage_transformers",
            "consolidated_metadata",
        ];
        let optional = value.get("must_understand") == Some(&Json::Bool(false));
        if !known.contains(&name.as_str()) && !optional {
            return Err(format!("its zarr.json has the unknown member {name:?}"));
        }
    }
    match document.get("node_type").and_then(Json::as_str) {
        Some("group") => {
            let none = Json::Object(Vec::new());
            let attributes = document.get("attributes").unwrap_or(&none);
            Ok(What::Group(attributes_of(attributes)))
        }
        Some("array") => array(document, store, key).map(|a| What::Array(Box::new(a))),
        _ => Err("its zarr.json is neither of a group nor of an array".to_owned()),
    }
}

fn array(document: &Json, store: &Arc<dyn Store>, key: &str) -> Result<Array, Refusal> {
    let transformers = document.get("storage_transformers");
    if transformers
        .and_then(Json::as_array)
        .is_some_and(|l| !l.is_empty())
    {
        return Err("storage transformers".to_owned());
    }
    let shape = extents(document.get("shape"), "shape")?;
    let grid = named(document.get("chunk_grid"), "chunk_grid")?;
    let chunk = match grid {
        ("regular", Some(configuration)) => {
            extents(configuration.get("chunk_shape"), "chunk_shape")?
        }
        (other, _) => return Err(format!("chunk grid {other}")),
    };
    let data_type = document.get("data_type").ok_or("it has no `data_type`")?;
    let data_type = DataType::from_json(data_type).map_err(|e| e.to_string())?;
    let mut facts = Facts::plain(data_type, &shape)?;
    let fill = document.get("fill_value").ok_or("it has no `fill_value`")?;
    let fill = facts.data_type.fill_from_json(fill);
    facts.fill = Some(fill.map_err(|e| e.to_string())?);
    let list = document.get("codecs").and_then(Json::as_array);
    let list = list.ok_or("its `codecs` are no list")?;
    facts.codecs = Some(codecs::of_list(list, &facts.data_type)?);
    let none = Json::Object(Vec::new());
    facts.attributes = attributes_of(document.get("attributes").unwrap_or(&none));
    spell_fill_value(&mut facts);
    if let Some(names) = document.get("dimension_names").and_then(Json::as_array) {
        let name = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        facts.name_axes(&names.iter().map(name).collect::<Vec<_>>());
    }
    let keys = keys(document.get("chunk_key_encoding"))?;
    placed(facts, &shape, chunk, (store, key, keys))
}

/// xarray writes the `_FillValue` of floats as base64 of a double, since JSON has no NaN: it becomes that number.
fn spell_fill_value(facts: &mut Facts) {
    use DataType::{Float16, Float32, Float64};
    if !matches!(facts.data_type, Float16 | Float32 | Float64) {
        return;
    }
    let found = facts
        .attributes
        .iter_mut()
        .find(|(name, _)| name == "_FillValue");
    let Some((_, value)) = found else { return };
    let bytes = value.as_str().and_then(|text| {
        DataType::Bytes
            .fill_from_json(&Json::String(text.to_owned()))
            .ok()
    });
    let Some(double) = bytes.and_then(|b| b.first_chunk::<8>().copied().filter(|_| b.len() == 8))
    else {
        return;
    };
    let number = Json::F64(f64::from_le_bytes(double));
    // One that the type does not hold exactly stays a double.
    let (data_type, bytes) = match facts.data_type.element_from_json(&number) {
        Ok(bytes) => (facts.data_type.clone(), bytes),
        Err(_) => (Float64, double.to_vec()),
    };
    if let Ok(typed) = TypedArray::new(data_type, Vec::new(), bytes) {
        *value = AttributeValue::Typed(typed);
    }
}

/// `{"name":.., "configuration":..}`, or a bare name.
fn named<'a>(json: Option<&'a Json>, what: &str) -> Result<(&'a str, Option<&'a Json>), Refusal> {
    let name = json.and_then(|j| j.get("name").unwrap_or(j).as_str());
    let name = name.ok_or_else(|| format!("its `{what}` has no name"))?;
    Ok((name, json.and_then(|j| j.get("configuration"))))
}

fn keys(json: Option<&Json>) -> Result<Keys, Refusal> {
    let (name, configuration) = named(json, "chunk_key_encoding")?;
    let separator = configuration.and_then(|c| c.get("separator"));
    let separator = match separator.map(Json::as_str) {
        Some(Some("/")) => Some('/'),
        Some(Some(".")) => Some('.'),
        None => None,
        Some(_) => return Err("the separator of its `chunk_key_encoding`".to_owned()),
    };
    match name {
        "default" => Ok(Keys {
            lead: true,
            separator: separator.unwrap_or('/'),
        }),
        "v2" => Ok(Keys {
            lead: false,
            separator: separator.unwrap_or('.'),
        }),
        other => Err(format!("chunk keys {other}")),
    }
}
