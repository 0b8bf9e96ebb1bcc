//! Zarr documents of groups and arrays, versions 3 and 2, from what an array's handle says.
//!
//! Holds [`group()`], [`array()`] and [`line()`]: file names and their JSON. Must not know where chunks are. `read` is the way back.

use orthant::{AttributeValue, Attributes, CodecSpec, DataType, Json, Result};

use crate::cover::Placed;
use crate::line::Line;
use crate::{Version, ints, uints};

/// The name of the attribute that says where a signed array lay.
pub const ORIGIN_ATTRIBUTE: &str = "orthant";

/// Documents by file name, or why there are none.
pub type Documents = std::result::Result<Vec<(&'static str, Json)>, String>;

/// The documents of a group.
pub fn group(version: Version, attributes: &Attributes) -> Result<Vec<(&'static str, Json)>> {
    let attributes = plain_attributes(attributes)?;
    Ok(match version {
        Version::V3 => vec![(
            "zarr.json",
            Json::object([
                ("zarr_format", Json::I64(3)),
                ("node_type", Json::text("group")),
                ("attributes", Json::Object(attributes)),
            ]),
        )],
        Version::V2 => vec![
            (".zgroup", Json::object([("zarr_format", Json::I64(2))])),
            (".zattrs", Json::Object(attributes)),
        ],
    })
}

fn plain_attributes(attributes: &Attributes) -> Result<Vec<(String, Json)>> {
    let list = attributes.list()?.into_iter();
    Ok(list.map(|(name, value)| (name, value.to_json())).collect())
}

/// What a document says of an array.
struct Facts<'a> {
    version: Version,
    data_type: &'a DataType,
    shape: &'a [u64],
    chunk: &'a [u64],
    dims: &'a [String],
    fill: &'a [u8],
    codecs: &'a [CodecSpec],
    attributes: Vec<(String, Json)>,
    /// Every chunk is there, so that version 2 need not name a fill value.
    full: bool,
}

/// How an array says where it lay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// Attributes of one list each, which netCDF can hold too.
    Apart,
    /// One attribute that holds the lists, which import reads back.
    Together,
}

/// The documents of an array. `inner` asks for those of the chunks within shards, `full` says that no chunk is absent.
pub fn array(
    version: Version,
    placed: &Placed,
    inner: bool,
    full: bool,
    places: Places,
) -> Result<Documents> {
    let array = &placed.array;
    let codecs = if inner {
        inner_codecs(&array.codecs())
    } else {
        array.codecs()
    };
    let mut attributes = attributes_of(placed, version)?;
    let (domain, origin) = (array.domain()?, array.origin()?);
    let moved = origin.iter().chain(&placed.first).any(|x| *x != 0)
        || domain.bounds().iter().any(|(lo, _)| *lo != 0);
    if moved {
        let pad = domain
            .bounds()
            .iter()
            .zip(&placed.first)
            .map(|((lo, _), first)| lo.abs_diff(*first));
        let facts = [
            ("inclusive_min", ints(domain.bounds().iter().map(|b| b.0))),
            ("exclusive_max", ints(domain.bounds().iter().map(|b| b.1))),
            ("chunk_origin", ints(origin)),
            ("pad", uints(pad)),
        ];
        match places {
            Places::Apart => {
                let apart =
                    facts.map(|(name, value)| (format!("{ORIGIN_ATTRIBUTE}_{name}"), value));
                attributes.retain(|(name, _)| apart.iter().all(|(other, _)| name != other));
                attributes.extend(apart);
            }
            Places::Together => {
                let version = std::iter::once(("version", Json::I64(1)));
                let all = version
                    .chain(facts)
                    .map(|(name, value)| (name.to_owned(), value));
                attributes.retain(|(name, _)| name != ORIGIN_ATTRIBUTE);
                attributes.push((ORIGIN_ATTRIBUTE.to_owned(), Json::Object(all.collect())));
            }
        }
    }
    Ok(write(Facts {
        version,
        data_type: &array.data_type(),
        shape: &placed.shape,
        chunk: &placed.chunk,
        dims: &placed.dims,
        fill: &array.fill_bytes(),
        codecs: &codecs,
        attributes,
        full,
    }))
}

/// The documents of a one-chunk array of labels; `of` is the array whose attributes it keeps.
pub fn line(version: Version, line: &Line, dim: &str, of: Option<&Placed>) -> Result<Documents> {
    let attributes = match of {
        Some(placed) => attributes_of(placed, version)?,
        None => Vec::new(),
    };
    let to_bytes = match line.data_type {
        DataType::String => "vlen-utf8",
        DataType::Bytes => "vlen-bytes",
        _ => "bytes",
    };
    let mut codecs = vec![
        spec(to_bytes, &[]),
        spec(
            "zstd",
            &[("level", Json::I64(3)), ("checksum", Json::Bool(false))],
        ),
    ];
    if let (Some(first), "bytes") = (codecs.first_mut(), to_bytes) {
        first
            .configuration
            .push(("endian".to_owned(), Json::text("little")));
    }
    Ok(write(Facts {
        version,
        data_type: &line.data_type,
        shape: &[line.len],
        chunk: &[line.len.max(1)],
        dims: &[dim.to_owned()],
        // A chunk of nothing but zeros is left out, and zeros are what it then reads as.
        fill: &vec![0; line.data_type.item_size().unwrap_or(0)],
        codecs: &codecs,
        attributes,
        full: false,
    }))
}

fn spec(name: &str, members: &[(&str, Json)]) -> CodecSpec {
    let members = members.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
    CodecSpec {
        name: name.to_owned(),
        configuration: members.collect(),
    }
}

/// The pipeline of the chunks within shards; as it is where there are no shards.
fn inner_codecs(codecs: &[CodecSpec]) -> Vec<CodecSpec> {
    let sharding = codecs.iter().find(|c| c.name == "sharding_indexed");
    let inner = sharding
        .and_then(|c| member(c, "codecs"))
        .and_then(Json::as_array);
    let parse = |json: &Json| CodecSpec {
        name: json
            .get("name")
            .or(Some(json))
            .and_then(Json::as_str)
            .unwrap_or_default()
            .to_owned(),
        configuration: json
            .get("configuration")
            .and_then(Json::as_object)
            .unwrap_or_default()
            .to_vec(),
    };
    inner.map_or_else(
        || codecs.to_vec(),
        |inner| inner.iter().map(parse).collect(),
    )
}

fn member<'a>(codec: &'a CodecSpec, name: &str) -> Option<&'a Json> {
    codec
        .configuration
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v)
}

/// Attributes as Zarr readers want them: in version 3 xarray takes the `_FillValue` of floats as base64 of a double.
fn attributes_of(placed: &Placed, version: Version) -> Result<Vec<(String, Json)>> {
    let is_float = matches!(
        placed.array.data_type(),
        DataType::Float16 | DataType::Bfloat16 | DataType::Float32 | DataType::Float64
    );
    let list = placed.array.attributes().list()?.into_iter();
    Ok(list
        .map(|(name, value)| {
            let json = match float_of(&value) {
                Some(v) if name == "_FillValue" && is_float && version == Version::V3 => {
                    Json::text(base64(&v.to_le_bytes()))
                }
                _ => value.to_json(),
            };
            (name, json)
        })
        .collect())
}

/// A number, or an array of one number, as a double.
fn float_of(value: &AttributeValue) -> Option<f64> {
    value.as_f64().or_else(|| {
        let typed = value.as_typed()?;
        let one = typed.data_type().element_to_text(typed.bytes());
        one.parse().ok()
    })
}

/// Base64, which is how elements of the type `bytes` are shown.
pub fn base64(bytes: &[u8]) -> String {
    DataType::Bytes.element_to_text(bytes)
}

fn write(facts: Facts<'_>) -> Documents {
    match facts.version {
        Version::V3 => version_3(facts),
        Version::V2 => version_2(facts),
    }
}

fn version_3(facts: Facts<'_>) -> Documents {
    let with = |name: &str, configuration: Json| {
        Json::object([("name", Json::text(name)), ("configuration", configuration)])
    };
    let codec = |spec: &CodecSpec| match spec.to_json() {
        json if spec.configuration.is_empty() && spec.name.starts_with("numcodecs.") => with(
            json.get("name").and_then(Json::as_str).unwrap_or_default(),
            Json::object([]),
        ),
        json => json,
    };
    let fill = facts
        .data_type
        .fill_to_json(facts.fill)
        .ok_or("its fill value has no JSON form")?;
    let names = facts.dims.iter().map(|name| match name.as_str() {
        "" => Json::Null,
        name => Json::text(name),
    });
    let document = Json::object([
        ("zarr_format", Json::I64(3)),
        ("node_type", Json::text("array")),
        ("shape", uints(facts.shape.iter().copied())),
        ("data_type", facts.data_type.to_json()),
        (
            "chunk_grid",
            with(
                "regular",
                Json::object([("chunk_shape", uints(facts.chunk.iter().copied()))]),
            ),
        ),
        (
            "chunk_key_encoding",
            with("default", Json::object([("separator", Json::text("/"))])),
        ),
        ("fill_value", fill),
        (
            "codecs",
            Json::Array(facts.codecs.iter().map(codec).collect()),
        ),
        ("attributes", Json::Object(facts.attributes)),
        ("dimension_names", Json::Array(names.collect())),
    ]);
    Ok(vec![("zarr.json", document)])
}

fn version_2(facts: Facts<'_>) -> Documents {
    let Steps {
        filters,
        compressor,
        order,
        big,
    } = steps_2(&facts)?;
    // xarray takes the fill value of version 2 for missing data: true zeros would become NaN.
    let zero = facts.fill.iter().all(|b| *b == 0);
    let fill = if zero || facts.full {
        Json::Null
    } else {
        let json = facts.data_type.fill_to_json(facts.fill);
        json.ok_or("its fill value has no JSON form")?
    };
    let mut attributes = facts.attributes;
    let dims = facts
        .dims
        .iter()
        .enumerate()
        .map(|(axis, name)| match name.as_str() {
            "" => Json::text(format!("dim_{axis}")),
            name => Json::text(name),
        });
    let dims = Json::Array(dims.collect());
    attributes.push(("_ARRAY_DIMENSIONS".to_owned(), dims));
    let document = Json::object([
        ("zarr_format", Json::I64(2)),
        ("shape", uints(facts.shape.iter().copied())),
        ("chunks", uints(facts.chunk.iter().copied())),
        ("dtype", dtype_2(facts.data_type, big)?),
        ("compressor", compressor),
        ("fill_value", fill),
        ("order", Json::text(order)),
        (
            "filters",
            if filters.is_empty() {
                Json::Null
            } else {
                Json::Array(filters)
            },
        ),
        ("dimension_separator", Json::text(".")),
    ]);
    Ok(vec![
        (".zarray", document),
        (".zattrs", Json::Object(attributes)),
    ])
}

/// What a pipeline is in version 2.
struct Steps {
    filters: Vec<Json>,
    compressor: Json,
    order: &'static str,
    big: bool,
}

fn steps_2(facts: &Facts<'_>) -> std::result::Result<Steps, String> {
    let rank = facts.shape.len();
    let mut filters = Vec::new();
    let (mut order, mut big) = ("C", false);
    for codec in facts.codecs {
        match codec.name.as_str() {
            "bytes" => big = member(codec, "endian").and_then(Json::as_str) == Some("big"),
            "transpose" => {
                let axes = member(codec, "order")
                    .and_then(Json::as_array)
                    .unwrap_or_default();
                let reversed = axes
                    .iter()
                    .rev()
                    .filter_map(Json::as_u64)
                    .eq(0..rank as u64);
                if !reversed {
                    return Err("version 2 has only C and F order".into());
                }
                order = "F";
            }
            "sharding_indexed" => return Err("version 2 has no shards: ask for --inner".into()),
            name => filters.push(numcodec(name, codec)),
        }
    }
    // The last is the compressor, so that readers with one slot find it; filters are those before it.
    let is_filter = |json: &Json| {
        let id = json.get("id").and_then(Json::as_str);
        id.is_some_and(|id| {
            id.starts_with("vlen-") || ["delta", "shuffle", "crc32c", "fletcher32"].contains(&id)
        })
    };
    let compressor = match filters.pop() {
        Some(last) if is_filter(&last) => {
            filters.push(last);
            Json::Null
        }
        Some(last) => last,
        None => Json::Null,
    };
    Ok(Steps {
        filters,
        compressor,
        order,
        big,
    })
}

/// A codec as numcodecs names it.
fn numcodec(name: &str, codec: &CodecSpec) -> Json {
    let id = name.strip_prefix("numcodecs.").unwrap_or(name);
    let mut members = vec![("id".to_owned(), Json::text(id))];
    members.extend(codec.configuration.iter().cloned());
    Json::Object(members)
}

/// NumPy's name of a type, in the byte order of the chunks.
fn dtype_2(data_type: &DataType, big: bool) -> std::result::Result<Json, String> {
    let swapped = |code: String| {
        if big {
            code.replacen('<', ">", 1)
        } else {
            code
        }
    };
    let code = |t: &DataType| t.numpy_descr().filter(|_| *t != DataType::Bfloat16);
    let found = match data_type {
        DataType::String | DataType::Bytes => Some(Json::text("|O")),
        DataType::Structured(fields) => {
            let pair = |f: &orthant::Field| {
                Some(Json::Array(vec![
                    Json::text(&f.name),
                    Json::text(code(&f.data_type)?),
                ]))
            };
            let pairs: Option<Vec<Json>> = fields.iter().map(pair).collect();
            pairs.map(Json::Array)
        }
        other => code(other).map(|c| Json::text(swapped(c))),
    };
    found.ok_or_else(|| format!("version 2 has no type {data_type}"))
}

/// How many chunks an array of this shape has, if they can be counted.
pub fn grid_count(shape: &[u64], chunk: &[u64]) -> Option<u64> {
    let per_axis = shape
        .iter()
        .zip(chunk)
        .map(|(n, c)| n.div_ceil((*c).max(1)));
    per_axis.into_iter().try_fold(1_u64, u64::checked_mul)
}
