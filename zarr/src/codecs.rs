//! Codecs of numcodecs and Zarr, as the pipeline of a container that reads the same bytes.
//!
//! Holds [`of_numcodecs`] for version 2 and [`of_list`] for version 3. A codec that changes nothing on reading is left
//! out. Must not decode; what the container cannot read is refused when the array is made.

use orthant::{CodecSpec, DataType, Json};

use crate::Refusal;

/// The pipeline of a version 2 array: order, filters, compressor.
pub fn of_numcodecs(
    document: &Json,
    data_type: &DataType,
    big_endian: bool,
    rank: usize,
) -> Result<Vec<CodecSpec>, Refusal> {
    let mut codecs = Vec::new();
    match document.get("order").and_then(Json::as_str) {
        Some("F") if rank > 1 => codecs.push(CodecSpec::new("transpose").with(
            "order",
            Json::Array((0..rank as u64).rev().map(Json::from_u64).collect()),
        )),
        Some("C" | "F") => {}
        _ => return Err("its `order` is neither C nor F".to_owned()),
    }
    let filters = match document.get("filters") {
        None | Some(Json::Null) => &[][..],
        Some(json) => json.as_array().ok_or("its `filters` are no list")?,
    };
    let compressor = document
        .get("compressor")
        .filter(|json| **json != Json::Null);
    let mut serialized = false;
    for json in filters.iter().chain(compressor) {
        let Some(spec) = numcodec(json, data_type)? else {
            continue;
        };
        let array = spec.name == "numcodecs.delta";
        let serializer = spec.name.starts_with("vlen-");
        if serialized && (array || serializer) {
            return Err(format!(
                "its filter {} takes bytes, which no codec here does",
                spec.name
            ));
        }
        if !serialized && !array && !serializer {
            codecs.push(to_bytes(data_type, big_endian)?);
        }
        serialized = serialized || !array;
        codecs.push(spec);
    }
    if !serialized {
        codecs.push(to_bytes(data_type, big_endian)?);
    }
    Ok(codecs)
}

/// The codec that turns elements of one size into bytes.
fn to_bytes(data_type: &DataType, big_endian: bool) -> Result<CodecSpec, Refusal> {
    let Some(_) = data_type.item_size() else {
        return Err("objects without a filter that turns them into bytes".to_owned());
    };
    let single = matches!(
        data_type,
        DataType::Bool
            | DataType::Int8
            | DataType::Uint8
            | DataType::RawBytes { .. }
            | DataType::NullTerminatedBytes { .. }
    );
    let endian = if big_endian { "big" } else { "little" };
    Ok(if single {
        CodecSpec::new("bytes")
    } else {
        CodecSpec::new("bytes").with("endian", Json::String(endian.to_owned()))
    })
}

/// A codec of numcodecs by its `id`; none where it changes nothing on reading.
fn numcodec(json: &Json, data_type: &DataType) -> Result<Option<CodecSpec>, Refusal> {
    let id = json.get("id").and_then(Json::as_str);
    let id = id.ok_or("a filter or compressor without `id`")?;
    let members: Vec<(String, Json)> = json
        .as_object()
        .unwrap_or_default()
        .iter()
        .filter(|(name, _)| name != "id")
        .cloned()
        .collect();
    let same = |name: &str| {
        Ok(Some(CodecSpec {
            name: name.to_owned(),
            configuration: members.clone(),
        }))
    };
    match id {
        "zstd" => same("zstd"),
        "gzip" => same("gzip"),
        "crc32c" => Ok(Some(CodecSpec::new("crc32c"))),
        "zlib" | "lz4" | "shuffle" | "fletcher32" | "delta" => same(&format!("numcodecs.{id}")),
        "vlen-utf8" | "vlen-bytes" => Ok(Some(CodecSpec::new(id))),
        "blosc" => blosc(json, data_type).map(Some),
        // It only ever rounds on writing.
        "bitround" => Ok(None),
        "quantize" if json.get("astype") == json.get("dtype") || json.get("astype").is_none() => {
            Ok(None)
        }
        other => Err(format!("codec {other}")),
    }
}

/// Blosc as version 3 names its parts.
fn blosc(json: &Json, data_type: &DataType) -> Result<CodecSpec, Refusal> {
    let item = data_type.item_size().unwrap_or(1) as u64;
    let shuffle = match json.get("shuffle").map_or(Some(1), Json::as_i64) {
        Some(0) => "noshuffle",
        Some(2) => "bitshuffle",
        Some(-1) if item == 1 => "bitshuffle",
        Some(1 | -1) => "shuffle",
        _ => return Err("a blosc compressor with an unknown shuffle".to_owned()),
    };
    let member = |name: &str| json.get(name).cloned();
    let cname = member("cname").unwrap_or_else(|| Json::String("lz4".to_owned()));
    Ok(CodecSpec::new("blosc")
        .with("typesize", Json::from_u64(item))
        .with("cname", cname)
        .with("clevel", member("clevel").unwrap_or(Json::I64(5)))
        .with("shuffle", Json::String(shuffle.to_owned()))
        .with("blocksize", member("blocksize").unwrap_or(Json::I64(0))))
}

/// The pipeline of a version 3 array, under the names that a container knows.
pub fn of_list(list: &[Json], data_type: &DataType) -> Result<Vec<CodecSpec>, Refusal> {
    let mut codecs = Vec::new();
    for json in list {
        let mut spec = CodecSpec::from_json(json).map_err(|e| e.to_string())?;
        if let Some(id) = spec.name.strip_prefix("numcodecs.")
            && !matches!(id, "zlib" | "lz4" | "shuffle" | "fletcher32" | "delta")
        {
            let mut members = vec![("id".to_owned(), Json::String(id.to_owned()))];
            members.append(&mut spec.configuration);
            codecs.extend(numcodec(&Json::Object(members), data_type)?);
            continue;
        }
        if spec.name == "bitround" {
            continue;
        }
        if spec.name == "sharding_indexed" {
            for (name, value) in &mut spec.configuration {
                if name == "codecs" {
                    let inner = value.as_array().unwrap_or_default();
                    let inner = of_list(inner, data_type)?;
                    *value = Json::Array(inner.iter().map(CodecSpec::to_json).collect());
                }
            }
        }
        codecs.push(spec);
    }
    Ok(codecs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(document: &str, data_type: &DataType, big: bool) -> Result<Vec<String>, Refusal> {
        let codecs = of_numcodecs(&document.parse().unwrap(), data_type, big, 2)?;
        Ok(codecs.iter().map(|c| c.to_json().to_string()).collect())
    }

    #[test]
    fn order_filters_and_compressor_become_one_pipeline() {
        let document = r#"{"order": "F", "filters": [{"id": "delta", "dtype": "<i2", "astype": "<i2"},
            {"id": "shuffle", "elementsize": 2}], "compressor": {"id": "zlib", "level": 1}}"#;
        assert_eq!(
            v2(document, &DataType::Int16, true).unwrap(),
            [
                r#"{"name":"transpose","configuration":{"order":[1,0]}}"#,
                r#"{"name":"numcodecs.delta","configuration":{"dtype":"<i2","astype":"<i2"}}"#,
                r#"{"name":"bytes","configuration":{"endian":"big"}}"#,
                r#"{"name":"numcodecs.shuffle","configuration":{"elementsize":2}}"#,
                r#"{"name":"numcodecs.zlib","configuration":{"level":1}}"#,
            ]
        );
    }

    #[test]
    fn blosc_gets_the_item_size_and_a_worded_shuffle() {
        let document = r#"{"order": "C", "filters": null,
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}}"#;
        let codecs = v2(document, &DataType::Float32, false).unwrap();
        let blosc = r#"{"name":"blosc","configuration":{"typesize":4,"cname":"lz4","clevel":5,"shuffle":"shuffle","blocksize":0}}"#;
        assert_eq!(codecs.last().map(String::as_str), Some(blosc));
        let codecs = v2(document, &DataType::Uint8, false).unwrap();
        assert!(codecs.last().unwrap().contains("\"bitshuffle\""));
    }

    #[test]
    fn a_filter_that_only_rounds_is_left_out_and_one_that_is_not_here_is_named() {
        let round =
            r#"{"order": "C", "filters": [{"id": "bitround", "keepbits": 3}], "compressor": null}"#;
        assert_eq!(v2(round, &DataType::Float32, false).unwrap().len(), 1);
        let bz2 = r#"{"order": "C", "filters": null, "compressor": {"id": "bz2", "level": 1}}"#;
        assert_eq!(v2(bz2, &DataType::Float32, false).unwrap_err(), "codec bz2");
        let objects = r#"{"order": "C", "filters": null, "compressor": null}"#;
        assert!(v2(objects, &DataType::String, false).is_err());
    }
}
