//! `zarr.json`, read: what the document of a group or an array says, in the words of a container.
//!
//! Holds [`Document`]. What a container cannot do is refused by name, but for data types and codecs that only the container
//! itself can judge. Must not look at chunks. `write` is the way back.

use orthant::{AttributeValue, CodecSpec, DataType, Json, TypedArray};

use crate::keys::Keys;
use crate::{Refusal, codecs};

/// Names and values of attributes.
pub type Attributes = Vec<(String, AttributeValue)>;

/// A document of Zarr version 3.
#[derive(Debug)]
pub enum Document {
    /// Of a group, which has attributes alone.
    Group(Attributes),
    /// Of an array.
    Array(Box<ArrayDocument>),
}

/// What a document says of an array.
#[derive(Debug)]
pub struct ArrayDocument {
    /// Elements per axis.
    pub shape: Vec<u64>,
    /// Elements per axis of what is stored as one, not 0.
    pub chunk: Vec<u64>,
    /// The type of an element.
    pub data_type: DataType,
    /// One element's bytes.
    pub fill: Vec<u8>,
    /// The pipeline, under the names that a container knows.
    pub codecs: Vec<CodecSpec>,
    /// Attributes, numbers of special spelling as numbers.
    pub attributes: Attributes,
    /// Names of the axes as they stand there, empty where one has none; no items where none has.
    pub dims: Vec<String>,
    /// How its chunks are called.
    pub keys: Keys,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// What of it a container cannot take.
    pub fn from_json(document: &Json) -> Result<Self, Refusal> {
        let version = document.get("zarr_format").and_then(Json::as_i64);
        if version != Some(3) {
            return Err("its zarr.json is not of Zarr version 3".to_owned());
        }
        for (name, value) in document.as_object().unwrap_or_default() {
            let optional = value.get("must_understand") == Some(&Json::Bool(false));
            if !MEMBERS.contains(&name.as_str()) && !optional {
                return Err(format!("its zarr.json has the unknown member {name:?}"));
            }
        }
        match document.get("node_type").and_then(Json::as_str) {
            Some("group") => Ok(Self::Group(attributes_of(document.get("attributes")))),
            Some("array") => array(document).map(|a| Self::Array(Box::new(a))),
            _ => Err("its zarr.json is neither of a group nor of an array".to_owned()),
        }
    }
}

/// The members that documents may have.
const MEMBERS: [&str; 12] = [
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

fn array(document: &Json) -> Result<ArrayDocument, Refusal> {
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
    check_chunk(&shape, &chunk)?;
    let data_type = document.get("data_type").ok_or("it has no `data_type`")?;
    let data_type = DataType::from_json(data_type).map_err(|e| e.to_string())?;
    let fill = document.get("fill_value").ok_or("it has no `fill_value`")?;
    let fill = data_type.fill_from_json(fill).map_err(|e| e.to_string())?;
    let list = document.get("codecs").and_then(Json::as_array);
    let list = list.ok_or("its `codecs` are no list")?;
    let names = document.get("dimension_names").and_then(Json::as_array);
    let name = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let mut array = ArrayDocument {
        codecs: codecs::of_list(list, &data_type)?,
        attributes: attributes_of(document.get("attributes")),
        dims: names.unwrap_or_default().iter().map(name).collect(),
        keys: keys(document.get("chunk_key_encoding"))?,
        shape,
        chunk,
        data_type,
        fill,
    };
    spell_fill_value(&mut array);
    Ok(array)
}

/// Refuses chunks that no array of this shape can have.
///
/// # Errors
/// Another number of axes, or an extent of 0.
pub fn check_chunk(shape: &[u64], chunk: &[u64]) -> Result<(), Refusal> {
    if chunk.len() != shape.len() || chunk.contains(&0) {
        return Err(format!("chunks of {chunk:?} for a shape of {shape:?}"));
    }
    Ok(())
}

/// The members of a JSON object as attributes.
pub fn attributes_of(json: Option<&Json>) -> Attributes {
    let members = json.and_then(Json::as_object).unwrap_or_default().iter();
    members
        .map(|(name, value)| (name.clone(), AttributeValue::from(value.clone())))
        .collect()
}

/// A list of extents; `what` is its name in a refusal.
///
/// # Errors
/// Anything but a list of whole numbers from 0 on.
pub fn extents(json: Option<&Json>, what: &str) -> Result<Vec<u64>, Refusal> {
    let list = json.and_then(Json::as_array);
    let extents: Option<Vec<u64>> = list.and_then(|l| l.iter().map(Json::as_u64).collect());
    extents.ok_or_else(|| format!("its `{what}` is no list of extents"))
}

/// xarray writes the `_FillValue` of floats as base64 of a double, since JSON has no NaN: it becomes that number.
fn spell_fill_value(facts: &mut ArrayDocument) {
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
