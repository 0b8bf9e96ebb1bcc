//! Pipelines as a whole, in their own words.

use super::*;
use crate::codec::{VariableItems, readers};
use crate::error::ErrorKind;
use crate::format::dtype::{Field, TimeUnit};
use crate::format::json::Json;
use crate::format::pipeline::CodecSpec;

fn lists() -> Vec<String> {
    let mut lists: Vec<String> = [
        "raw",
        "bytes:big",
        "shuffle",
        "crc32c",
        "fletcher32,crc32c",
        "transpose:2/0/1",
        "delta",
        "delta,transpose:1/0/2",
        "transpose:2/1/0,delta,transpose:1/0/2,bytes:big,shuffle,crc32c",
        "crc32c,shuffle,crc32c",
    ]
    .map(str::to_owned)
    .to_vec();
    for name in compressors() {
        lists.push(format!("shuffle,{name},crc32c"));
        lists.push(format!("delta,{name},fletcher32,shuffle:3,{name}"));
    }
    lists
}

#[test]
fn every_chain_gives_back_the_chunk_bit_for_bit() {
    for data_type in [
        DataType::Uint8,
        DataType::Int16,
        DataType::Uint32,
        DataType::Int64,
    ] {
        for list in lists() {
            let p = pipeline(&list, &data_type, &[3, 5, 7]).unwrap();
            for chunk in [noise(p.decoded_len()), vec![0; p.decoded_len()]] {
                let payload = encoded(&p, &chunk);
                assert_eq!(
                    decoded(&p, &payload).unwrap(),
                    chunk,
                    "{list} {data_type:?}"
                );
                assert!(!p.is_raw() || payload == chunk, "{list} {data_type:?}");
            }
        }
    }
}

#[test]
fn a_payload_does_not_depend_on_what_its_thread_encoded_before() {
    // Words that come again at odd distances: what an encoder finds of them depends on its tables.
    let mut words = Vec::new();
    for at in 0..600 {
        words.extend(&noise(1400)[(at * 7919) % 1300..][..5 + at % 11]);
    }
    let chunks = [words, vec![7; 70_000], noise(70_000), vec![1; 9]];
    for name in compressors() {
        for chunk in &chunks {
            let fresh = {
                let (name, chunk) = (name.to_owned(), chunk.clone());
                let run = move || encoded(&of_bytes(&name, chunk.len()), &chunk);
                std::thread::spawn(run).join().unwrap()
            };
            for other in compressors() {
                for before in &chunks {
                    encoded(&of_bytes(other, before.len()), before);
                }
            }
            let here = encoded(&of_bytes(name, chunk.len()), chunk);
            assert!(here == fresh, "{name} on {} bytes", chunk.len());
        }
    }
}

#[test]
fn chunks_that_no_codec_shrinks_grow_by_little() {
    for name in compressors() {
        for len in [1, 2, 3, 4096, 100_000] {
            let chunk = noise(len);
            let p = of_bytes(name, len);
            let payload = encoded(&p, &chunk);
            assert!(
                payload.len() <= len + 64 + len / 200,
                "{name}: {len} became {}",
                payload.len()
            );
            assert_eq!(decoded(&p, &payload).unwrap(), chunk);
        }
    }
}

#[test]
fn a_mask_leaves_out_the_codecs_it_names() {
    let all = pipeline("shuffle,fletcher32,crc32c", &DataType::Int32, &[6]).unwrap();
    let chunk = noise(24);
    for (mask, list) in [
        (0b0010, "fletcher32,crc32c"),
        (0b0100, "shuffle,crc32c"),
        (0b1110, "raw"),
        (0b1010, "fletcher32"),
    ] {
        let some = pipeline(list, &DataType::Int32, &[6]).unwrap();
        let payload = encoded(&some, &chunk);
        let mut back = vec![0; 24];
        all.decode(&payload, mask, &mut back).unwrap();
        assert_eq!(back, chunk, "{mask:#b}");
    }
    for mask in [0b0001, 0b1_0000, 0x80] {
        let e = all.decode(&chunk, mask, &mut [0; 24]).unwrap_err();
        assert!(e.is_corruption(), "{e}");
    }
}

#[test]
fn text_and_bytes_of_any_length_come_back_whole() {
    let texts: VariableItems = ["", "a", "日本", "x\0y", "", "end"]
        .iter()
        .map(|t| t.as_bytes())
        .collect();
    let mut lists = vec!["raw".to_owned(), "crc32c".to_owned()];
    lists.extend(
        compressors()
            .into_iter()
            .map(|name| format!("{name},crc32c")),
    );
    for list in lists {
        for data_type in [DataType::String, DataType::Bytes] {
            let p = pipeline(&list, &data_type, &[2, 3]).unwrap();
            assert!(p.is_variable() && !p.is_raw());
            let mut payload = Vec::new();
            p.encode_variable(&texts, &mut payload).unwrap();
            assert_eq!(p.decode_variable(&payload, 0).unwrap(), texts, "{list}");
            // One item too few, one byte too many.
            let cut = payload.len() - 1;
            assert!(p.decode_variable(&payload[..cut], 0).is_err(), "{list}");
            payload.push(0);
            assert!(p.decode_variable(&payload, 0).is_err(), "{list}");
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_both_ways() {
    let bytes: VariableItems = [&[0xff_u8][..]].into_iter().collect();
    let text = pipeline("raw", &DataType::String, &[1]).unwrap();
    let e = text.encode_variable(&bytes, &mut Vec::new()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let opaque = pipeline("raw", &DataType::Bytes, &[1]).unwrap();
    let mut payload = Vec::new();
    opaque.encode_variable(&bytes, &mut payload).unwrap();
    assert_eq!(opaque.decode_variable(&payload, 0).unwrap(), bytes);
    assert!(
        text.decode_variable(&payload, 0)
            .unwrap_err()
            .is_corruption()
    );
}

#[test]
fn a_chunk_too_large_is_refused_when_the_array_is_made() {
    for (data_type, shape) in [
        (DataType::Float32, vec![1000, 1000, 1000]),
        (DataType::Uint8, vec![(1 << 31) + 1]),
        (DataType::Float64, vec![1 << 40, 1 << 40]),
        (DataType::Float64, vec![u64::MAX; 32]),
        (DataType::String, vec![1 << 30]),
    ] {
        let e = pipeline("raw", &data_type, &shape).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
        assert!(e.to_string().contains("2.00 GiB"), "{e}");
    }
    let e = pipeline("raw", &DataType::Float32, &[1000, 1000, 1000]).unwrap_err();
    let text = e.to_string();
    assert!(text.contains("[1000, 1000, 1000]") && text.contains("4000000000 bytes (3.72 GiB)"));
    pipeline("raw", &DataType::Uint8, &[1 << 31]).unwrap();
}

#[cfg(feature = "lz4")]
#[test]
fn a_chunk_too_large_for_lz4_is_refused_when_the_array_is_made() {
    pipeline("lz4", &DataType::Uint8, &[(1 << 31) - 1]).unwrap();
    let e = pipeline("lz4", &DataType::Uint8, &[1 << 31]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
}

#[test]
fn configurations_that_break_a_rule_are_refused_by_name() {
    let new = |specs: &[CodecSpec], data_type: DataType| {
        let fill = vec![0; data_type.item_size().unwrap_or(0)];
        Pipeline::new(specs, &data_type, &[4, 4], &fill, &Limits::default())
    };
    let le = || CodecSpec::new("bytes").with("endian", Json::text("little"));
    let int = |name: &str, key: &str, v: i64| CodecSpec::new(name).with(key, Json::I64(v));
    let bad = [
        vec![],
        vec![le(); 9],
        vec![le(), le()],
        vec![CodecSpec::new("crc32c"), le()],
        vec![CodecSpec::new("bytes")],
        vec![CodecSpec::new("bytes").with("endian", Json::text("middle"))],
        vec![le(), int("numcodecs.shuffle", "elementsize", 0)],
        vec![CodecSpec::new("numcodecs.delta"), le()],
        vec![
            CodecSpec::new("numcodecs.delta").with("dtype", Json::text("<i8")),
            le(),
        ],
        vec![
            CodecSpec::new("numcodecs.delta").with("dtype", Json::text(">i4")),
            le(),
        ],
        vec![CodecSpec::new("transpose"), le()],
        vec![
            CodecSpec::new("transpose").with("order", Json::Array(vec![Json::I64(0); 2])),
            le(),
        ],
        vec![le(), CodecSpec::new("vlen-utf8")],
        vec![CodecSpec::new("vlen-utf8")],
        #[cfg(feature = "zstd")]
        vec![le(), int("zstd", "level", 23)],
        #[cfg(feature = "deflate")]
        vec![le(), int("gzip", "level", -1)],
        #[cfg(feature = "deflate")]
        vec![le(), int("numcodecs.zlib", "level", 10)],
    ];
    for specs in bad {
        let e = new(&specs, DataType::Int32).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{specs:?}: {e}");
    }
    for (specs, name) in [
        (vec![le(), CodecSpec::new("lzma")], "lzma"),
        (vec![le(), CodecSpec::new("shuffle")], "shuffle"),
        (vec![le(), int("crc32c", "location", 1)], "location"),
    ] {
        let e = new(&specs, DataType::Int32).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
        assert!(e.to_string().contains(name), "{e}");
    }
    let delta = CodecSpec::new("numcodecs.delta").with("dtype", Json::text("<f4"));
    let e = new(&[delta, le()], DataType::Float32).unwrap_err();
    assert!(e.to_string().contains("every bit"), "{e}");
    for given in ["<i4", "i4", "=i4", "int32"] {
        let delta = CodecSpec::new("numcodecs.delta").with("dtype", Json::text(given));
        new(&[delta, le()], DataType::Int32).unwrap();
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_codec_that_was_left_out_of_the_build_is_named_with_its_feature() {
    let e = pipeline("zstd:3", &DataType::Int32, &[4]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(
        e.to_string().contains("`zstd`") && e.to_string().contains("feature"),
        "{e}"
    );
}

#[test]
fn a_pipeline_tells_what_it_is_made_of_and_for() {
    let p = pipeline("transpose:1/0,shuffle,crc32c", &DataType::Int16, &[3, 4]).unwrap();
    assert_eq!(
        p.describe(),
        ["transpose", "bytes", "numcodecs.shuffle", "crc32c"]
    );
    assert_eq!((p.item_count(), p.decoded_len()), (12, 24));
}

#[test]
fn a_record_stays_little_endian_whatever_the_caller_asks_for() {
    let record = DataType::Structured(vec![Field {
        name: "a".to_owned(),
        data_type: DataType::Int16,
    }]);
    let p = pipeline("raw", &record, &[2]).unwrap();
    assert_eq!(encoded(&p, &[1, 0, 2, 0]), [1, 0, 2, 0]);
    let e = pipeline("bytes:big", &record, &[2]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
}

#[test]
fn a_boolean_chunk_is_never_taken_over_unseen() {
    let p = pipeline("raw", &DataType::Bool, &[5]).unwrap();
    assert!(!p.is_raw());
    assert!(decoded(&p, &[0, 1, 1, 0, 1]).is_ok());
    let e = decoded(&p, &[0, 1, 2, 0, 1]).unwrap_err();
    assert!(
        e.is_corruption() && e.to_string().contains("element 2"),
        "{e}"
    );
    let e = p.encode(&[3; 5], &mut Vec::new()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

fn text_of(list: &str, data_type: &DataType) -> String {
    let specs = resolve(&Codec::list(list).unwrap(), data_type).unwrap();
    let json = Json::Array(specs.iter().map(CodecSpec::to_json).collect());
    json.to_string().replace('"', "'")
}

#[test]
fn what_a_caller_leaves_out_follows_from_the_type() {
    assert_eq!(
        text_of("default", &DataType::Float32),
        "[{'name':'bytes','configuration':{'endian':'little'}},\
         {'name':'numcodecs.shuffle','configuration':{'elementsize':4}},\
         {'name':'zstd','configuration':{'level':3,'checksum':false}}]"
    );
    assert_eq!(
        text_of("default", &DataType::Uint8),
        "[{'name':'bytes'},{'name':'zstd','configuration':{'level':3,'checksum':false}}]"
    );
    assert_eq!(
        text_of("portable", &DataType::String),
        "[{'name':'vlen-utf8'},{'name':'zstd','configuration':{'level':3,'checksum':false}},\
         {'name':'crc32c'}]"
    );
    assert_eq!(
        text_of("transpose:1/0, delta, bytes:big, lz4", &DataType::Int16),
        "[{'name':'transpose','configuration':{'order':[1,0]}},\
         {'name':'numcodecs.delta','configuration':{'dtype':'<i2'}},\
         {'name':'bytes','configuration':{'endian':'big'}},\
         {'name':'numcodecs.lz4','configuration':{'acceleration':1}}]"
    );
}

#[test]
fn the_text_form_is_read_back_and_a_wrong_word_is_named() {
    for text in [
        "shuffle",
        "shuffle:4",
        "zstd:-5",
        "zstd:3",
        "lz4",
        "zlib:6",
        "gzip:5",
        "crc32c",
        "fletcher32",
        "delta",
        "bytes",
        "bytes:big",
        "transpose:2/0/1",
    ] {
        let codec: Codec = text.parse().unwrap();
        assert_eq!(codec.to_string(), text);
    }
    assert_eq!("zstd".parse::<Codec>().unwrap(), Codec::zstd(3));
    assert_eq!("numcodecs.lz4".parse::<Codec>().unwrap(), Codec::lz4());
    for text in [
        "",
        "zst",
        "zstd:",
        "zstd:23",
        "zlib:10",
        "gzip:-1",
        "shuffle:0",
        "crc32c:1",
        "bytes:middle",
        "transpose",
        "transpose:a",
        "shuffle,,zstd",
        "raw,zstd",
    ] {
        let e = Codec::list(text).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text}: {e}");
    }
}

#[test]
fn the_table_of_outside_readers_is_the_one_that_was_tried() {
    let of = |list: &str, data_type: &DataType| {
        readers(
            &resolve(&Codec::list(list).unwrap(), data_type).unwrap(),
            data_type,
        )
    };
    let all = ["zarr-python", "zarrita", "zarrs", "tensorstore"];
    assert_eq!(of("portable", &DataType::Float32), all);
    assert_eq!(of("raw", &DataType::Float32), all);
    assert_eq!(of("default", &DataType::Float32), all[..3]);
    assert_eq!(of("archive", &DataType::Float32), all[..3]);
    assert_eq!(of("lz4", &DataType::Float32), all[..2]);
    assert_eq!(of("delta", &DataType::Int32), all[..2]);
    assert_eq!(of("delta,bytes:big", &DataType::Int32), ["zarrita"]);
    assert_eq!(of("fletcher32", &DataType::Int32), ["zarr-python", "zarrs"]);
    assert_eq!(of("portable", &DataType::Bfloat16), ["tensorstore"]);
    assert_eq!(of("portable", &DataType::String), ["zarr-python"]);
    let time = DataType::Datetime64 {
        unit: TimeUnit::Second,
        scale: 1,
    };
    assert_eq!(of("portable", &time), ["zarr-python"]);
    // A shuffle that may leave a tail: numcodecs refuses to undo it.
    assert!(of("crc32c,shuffle", &DataType::Int32).is_empty());
    assert!(of("shuffle:3", &DataType::Int32).is_empty());
}
