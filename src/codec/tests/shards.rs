//! Whole shards: made here, made by zarr-python, wrapped in other codecs, and damaged.

#[cfg(feature = "zstd")]
use std::path::PathBuf;

use super::*;
use crate::codec::VariableItems;
use crate::error::ErrorKind;
use crate::format::json::Json;
use crate::format::pipeline::{CodecSpec, codecs_from_json};

fn json(text: &str) -> Json {
    Json::parse(text, &Limits::default()).unwrap()
}

/// Codecs as a document lists them, for chunks of this shape.
fn listed(text: &str, data_type: &DataType, shape: &[u64], fill: &[u8]) -> Result<Pipeline> {
    let specs: Vec<CodecSpec> = codecs_from_json(&json(text))?;
    Pipeline::new(&specs, data_type, shape, fill, &Limits::default())
}

const CHECKED: &str = r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]"#;

fn sharded(inner: &str, codecs: &str, index: &str, location: &str) -> String {
    format!(
        r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":{inner},"codecs":{codecs},"index_codecs":{index},"index_location":"{location}"}}}}"#
    )
}

#[cfg(feature = "zstd")]
fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/shards");
    std::fs::read(path.join(name)).unwrap()
}

/// The values of a `.npy` file: what stands behind its header.
#[cfg(feature = "zstd")]
fn npy(name: &str, bytes: usize) -> Vec<u8> {
    let all = data(name);
    all[all.len() - bytes..].to_vec()
}

#[cfg(feature = "zstd")]
#[test]
fn shards_of_zarr_python_decode_to_its_values() {
    let index = r#"[{"name":"bytes","configuration":{"endian":"little"}}]"#;
    let zstd = r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3}}]"#;
    let list = format!("[{}]", sharded("[1,8]", zstd, index, "end"));
    let p = listed(&list, &DataType::Uint16, &[20, 8], &[0, 0]).unwrap();
    let want = npy("shard_nocrc.npy", 640);
    for (i, half) in want.chunks(320).enumerate() {
        let shard = data(&format!("shard_nocrc_{i}.bin"));
        assert_eq!(decoded(&p, &shard).unwrap(), half);
        let (codec, alone) = p.shard().unwrap();
        assert!(alone && !codec.checks_itself());
        assert_eq!(codec.index().encoded_len(), 320);
        let index = codec.index_of(&shard).unwrap();
        for row in 0..20 {
            let absent = [3, 4, 25].contains(&(i * 20 + row));
            assert_eq!(index.get(row).unwrap().is_none(), absent, "row {row}");
        }
    }
    let list = format!("[{}]", sharded("[2]", zstd, CHECKED, "end"));
    let p = listed(&list, &DataType::Float64, &[10], &(-1f64).to_le_bytes()).unwrap();
    let mut all = decoded(&p, &data("shard_tail_0.bin")).unwrap();
    all.extend(decoded(&p, &data("shard_tail_1.bin")).unwrap());
    assert_eq!(all[..88], npy("shard_tail.npy", 88));
    let tail = all[88..].chunks(8);
    assert!(tail.into_iter().all(|v| v == (-1f64).to_le_bytes()));
}

#[test]
fn a_shard_made_here_gives_back_its_chunk_whatever_stands_around_it() {
    let shape = [4, 6, 10];
    let inner = r#"[{"name":"transpose","configuration":{"order":[2,0,1]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}]"#;
    let transpose = r#"{"name":"transpose","configuration":{"order":[2,0,1]}}"#;
    for location in ["end", "start"] {
        let plain = sharded("[2,3,5]", inner, CHECKED, location);
        let turned = sharded("[5,2,3]", inner, CHECKED, location);
        for list in [
            format!("[{plain}]"),
            format!(r#"[{plain},{{"name":"crc32c"}}]"#),
            format!("[{transpose},{turned}]"),
        ] {
            let p = listed(&list, &DataType::Uint16, &shape, &[7, 0]).unwrap();
            let mut chunk = noise(480);
            let payload = encoded(&p, &chunk);
            assert_eq!(decoded(&p, &payload).unwrap(), chunk, "{list}");
            // An inner chunk of fill alone takes no bytes.
            for (i, item) in chunk.chunks_exact_mut(2).enumerate() {
                let (z, y, x) = (i / 60, i / 10 % 6, i % 10);
                if z < 2 && y >= 3 && x < 5 {
                    item.copy_from_slice(&[7, 0]);
                }
            }
            let shorter = encoded(&p, &chunk);
            assert_eq!(payload.len() - shorter.len(), 2 * 3 * 5 * 2 + 4, "{list}");
            assert_eq!(decoded(&p, &shorter).unwrap(), chunk, "{list}");
            assert_eq!(p.inner_shape().unwrap(), [2, 3, 5]);
        }
    }
}

#[test]
fn a_shard_of_nothing_but_fill_is_its_index_alone() {
    let list = format!("[{}]", sharded("[2]", CHECKED, CHECKED, "end"));
    let p = listed(&list, &DataType::Uint8, &[6], &[9]).unwrap();
    let payload = encoded(&p, &[9; 6]);
    assert_eq!(payload.len(), 3 * 16 + 4);
    assert!(payload[..48].iter().all(|b| *b == 0xff));
    assert_eq!(decoded(&p, &payload).unwrap(), [9; 6]);
}

#[test]
fn items_of_any_length_shard_too() {
    let inner = r#"[{"name":"vlen-utf8"},{"name":"crc32c"}]"#;
    let list = format!("[{}]", sharded("[2,2]", inner, CHECKED, "end"));
    let p = listed(&list, &DataType::String, &[4, 4], b"-").unwrap();
    let words: Vec<String> = (0..16)
        .map(|i| {
            if i % 4 < 2 && i < 8 {
                "-".to_owned()
            } else {
                "x".repeat(i)
            }
        })
        .collect();
    let items: VariableItems = words.iter().collect();
    let mut payload = Vec::new();
    p.encode_variable(&items, &mut payload).unwrap();
    let back = p.decode_variable(&payload, 0).unwrap();
    let back: Vec<&str> = back
        .iter()
        .map(|b| std::str::from_utf8(b).unwrap())
        .collect();
    assert_eq!(back, words);
    let index = p.shard().unwrap().0.index_of(&payload).unwrap();
    assert_eq!(index.get(0).unwrap(), None);
    assert_eq!(index.present_count(), 3);
}

#[test]
fn damage_in_a_shard_names_the_inner_chunk() {
    let list = format!("[{}]", sharded("[2,2]", CHECKED, CHECKED, "end"));
    let p = listed(&list, &DataType::Uint8, &[4, 6], &[0]).unwrap();
    let chunk = noise(24);
    let payload = encoded(&p, &chunk);
    for bit in 0..payload.len() * 8 {
        let mut bad = payload.clone();
        bad[bit >> 3] ^= 1 << (bit & 7);
        let e = decoded(&p, &bad).unwrap_err();
        assert!(e.is_corruption(), "{e}");
        let inner = (bit >> 3) / 8;
        let want = (inner < 6).then_some([inner as u64 / 3, inner as u64 % 3]);
        assert_eq!(e.inner_chunk(), want.as_ref().map(|w| &w[..]), "{e}");
    }
    for cut in 0..payload.len() {
        assert!(decoded(&p, &payload[..cut]).unwrap_err().is_corruption());
        assert!(
            decoded(&p, &payload[cut + 1..]).is_err(),
            "cut at the front"
        );
    }
}

#[test]
fn documents_that_describe_no_shard_are_refused_by_name() {
    let good = sharded("[2]", CHECKED, CHECKED, "end");
    let attempt = |list: &str| listed(&format!("[{list}]"), &DataType::Uint8, &[6], &[0]);
    attempt(&good).unwrap();
    let nested = sharded("[2]", &format!("[{good}]"), CHECKED, "end");
    let e = attempt(&nested).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert_eq!(e.reason_code(), Some("nested_shards"));
    assert!(e.to_string().contains("sharding_indexed"), "{e}");
    for (list, why) in [
        (sharded("[4]", CHECKED, CHECKED, "end"), "divides"),
        (sharded("[0]", CHECKED, CHECKED, "end"), "divides"),
        (sharded("[2,1]", CHECKED, CHECKED, "end"), "divides"),
        (sharded("[2]", CHECKED, CHECKED, "middle"), "middle"),
        (sharded("[2]", CHECKED, "[]", "end"), "index_codecs"),
        (
            sharded("[2]", CHECKED, r#"[{"name":"crc32c"}]"#, "end"),
            "index_codecs",
        ),
        (
            sharded(
                "[2]",
                CHECKED,
                r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip"}]"#,
                "end",
            ),
            "index_codecs",
        ),
        (
            sharded("[2]", CHECKED, r#"[{"name":"bytes"}]"#, "end"),
            "endian",
        ),
    ] {
        let e = attempt(&list).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{list}: {e}");
        assert!(e.to_string().contains(why), "{list}: {e}");
    }
    let limits = Limits {
        inner_chunks: 2,
        ..Limits::default()
    };
    let specs = codecs_from_json(&json(&format!("[{good}]"))).unwrap();
    let e = Pipeline::new(&specs, &DataType::Uint8, &[6], &[0], &limits).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded);
}
