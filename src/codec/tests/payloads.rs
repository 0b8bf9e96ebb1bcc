//! Payloads made here, for other software to decode: `tests/interop/check_codecs.py` runs this and reads the folder.

use std::fs;
use std::path::Path;

use super::*;
use crate::codec::{VariableItems, readers};
use crate::format::dtype::{Field, TimeUnit};
use crate::format::json::Json;
use crate::format::pipeline::CodecSpec;

/// Names the folder to write to.
const FOLDER: &str = "ORTHANT_PAYLOADS";

/// Chains for every type, and those for integers alone.
fn lists(integer: bool) -> Vec<String> {
    let mut lists: Vec<String> = [
        "raw",
        "bytes:big",
        "crc32c",
        "shuffle",
        "fletcher32",
        "transpose:2/0/1",
        "transpose:1/2/0,bytes:big,shuffle,fletcher32,crc32c",
        "default",
        "portable",
        "archive",
    ]
    .map(str::to_owned)
    .to_vec();
    for name in compressors() {
        lists.push(name.to_owned());
        lists.push(format!("transpose:2/1/0,shuffle,{name},crc32c"));
        lists.push(format!("{name},{name}"));
    }
    if integer {
        for list in [
            "delta",
            "delta,shuffle,zstd:3",
            "transpose:1/0/2,delta,crc32c",
            "delta,bytes:big",
        ] {
            lists.push(list.to_owned());
        }
    }
    lists
}

fn fixed_types() -> Vec<DataType> {
    vec![
        DataType::Bool,
        DataType::Int8,
        DataType::Uint8,
        DataType::Int16,
        DataType::Uint16,
        DataType::Int32,
        DataType::Uint32,
        DataType::Int64,
        DataType::Uint64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Complex64,
        DataType::Complex128,
        DataType::RawBytes { length: 5 },
        DataType::NullTerminatedBytes { length: 3 },
        DataType::FixedUtf32 { chars: 2 },
        DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        },
        DataType::Structured(vec![
            Field {
                name: "a".to_owned(),
                data_type: DataType::Int16,
            },
            Field {
                name: "b".to_owned(),
                data_type: DataType::Float32,
            },
        ]),
    ]
}

/// Half of it smooth, half of it noise; booleans are 0 and 1.
fn chunk(data_type: &DataType, len: usize) -> Vec<u8> {
    let mut bytes = noise(len);
    for (at, byte) in bytes.iter_mut().enumerate().take(len >> 1) {
        *byte = (at >> 4) as u8;
    }
    if *data_type == DataType::Bool {
        for byte in &mut bytes {
            *byte &= 1;
        }
    }
    // ASCII, each a word of four bytes.
    if matches!(data_type, DataType::FixedUtf32 { .. }) {
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = if at % 4 == 0 { *byte & 0x7F } else { 0 };
        }
    }
    bytes
}

/// Writes one case: the document's members that a reader needs, the payload, and what it stands for.
fn write(folder: &Path, cases: &mut Vec<Json>, case: &Case<'_>) {
    let index = cases.len();
    fs::write(folder.join(format!("{index}.payload")), case.payload).unwrap();
    fs::write(folder.join(format!("{index}.decoded")), case.decoded).unwrap();
    let readers = readers(case.specs, case.data_type)
        .into_iter()
        .map(Json::text);
    let shape = case.shape.iter().map(|n| Json::from_u64(*n)).collect();
    cases.push(Json::object([
        ("list", Json::text(case.list)),
        ("data_type", case.data_type.to_json()),
        ("shape", Json::Array(shape)),
        (
            "codecs",
            Json::Array(case.specs.iter().map(CodecSpec::to_json).collect()),
        ),
        ("readers", Json::Array(readers.collect())),
    ]));
}

/// Shards of 12 x 9 x 10 in 4 x 3 x 5, a quarter of the inner chunks absent.
fn write_shards(folder: &Path, cases: &mut Vec<Json>) {
    let shape = [12, 9, 10];
    for data_type in [DataType::Float32, DataType::Int16, DataType::Uint8] {
        let item = data_type.item_size().unwrap();
        let mut decoded = chunk(&data_type, 12 * 9 * 10 * item);
        for (at, cell) in decoded.chunks_mut(item).enumerate() {
            if at / 90 < 4 && at % 10 < 5 {
                cell.fill(0);
            }
        }
        for list in [
            "raw",
            "portable",
            "shuffle,zlib:6",
            "transpose:2/0/1,gzip:5",
            "bytes:big",
            "default",
        ] {
            let inner = resolve(&Codec::list(list).unwrap(), &data_type).unwrap();
            let specs = [crate::codec::shard_spec(&[4, 3, 5], inner)];
            let fill = vec![0; item];
            let p = Pipeline::new(&specs, &data_type, &shape, &fill, &Limits::default()).unwrap();
            let payload = encoded(&p, &decoded);
            let case = Case {
                list: &format!("shards of {list}"),
                data_type: &data_type,
                shape: &shape,
                specs: &specs,
                payload: &payload,
                decoded: &decoded,
            };
            write(folder, cases, &case);
        }
    }
}

struct Case<'a> {
    list: &'a str,
    data_type: &'a DataType,
    shape: &'a [u64],
    specs: &'a [CodecSpec],
    payload: &'a [u8],
    decoded: &'a [u8],
}

#[test]
#[ignore = "writes files for tests/interop/check_codecs.py, which names the folder"]
fn write_payloads() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        panic!("{FOLDER} must name a folder");
    };
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    let mut cases = Vec::new();
    for data_type in fixed_types() {
        for shape in [&[3, 5, 7][..], &[1, 1, 1], &[24, 36, 20]] {
            let large = shape[0] > 3;
            let integer = data_type
                .to_json()
                .as_str()
                .is_some_and(|name| name.contains("int"));
            for list in lists(integer) {
                let record = matches!(data_type, DataType::Structured(_));
                if (large && !matches!(data_type, DataType::Float32 | DataType::Int16))
                    || (record && list.contains("big"))
                {
                    continue;
                }
                let specs = resolve(&Codec::list(&list).unwrap(), &data_type).unwrap();
                let p = pipeline(&list, &data_type, shape).unwrap();
                let decoded = chunk(&data_type, p.decoded_len());
                let payload = encoded(&p, &decoded);
                let (list, data_type, specs) = (&*list, &data_type, &*specs);
                let (payload, decoded) = (&*payload, &*decoded);
                write(
                    folder,
                    &mut cases,
                    &Case {
                        list,
                        data_type,
                        shape,
                        specs,
                        payload,
                        decoded,
                    },
                );
            }
        }
    }
    write_shards(folder, &mut cases);
    let texts = ["", "a", "längerer Text", "日本語", "\0", "the end"];
    let items: VariableItems = texts.iter().map(|t| t.as_bytes()).collect();
    let mut flat = Vec::new();
    for item in items.iter() {
        flat.extend(u32::try_from(item.len()).unwrap().to_le_bytes());
        flat.extend(item);
    }
    for data_type in [DataType::String, DataType::Bytes] {
        for list in ["raw", "portable", "archive", "lz4", "gzip:5"] {
            let specs = resolve(&Codec::list(list).unwrap(), &data_type).unwrap();
            let mut payload = Vec::new();
            let p = pipeline(list, &data_type, &[2, 3]).unwrap();
            p.encode_variable(&items, &mut payload).unwrap();
            let case = Case {
                list,
                data_type: &data_type,
                shape: &[2, 3],
                specs: &specs,
                payload: &payload,
                decoded: &flat,
            };
            write(folder, &mut cases, &case);
        }
    }
    let manifest = Json::Array(cases).to_string();
    fs::write(folder.join("cases.json"), manifest).unwrap();
}
