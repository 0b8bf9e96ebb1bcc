//! Payloads and vectors that other software made (`tests/data/codec/`).

use super::*;
use crate::codec::VariableItems;
use crate::codec::shuffle::{shuffle, unshuffle};
use crate::format::json::Json;
use crate::format::pipeline::codecs_from_json;

const FIXTURES: &str = include_str!("../../../tests/data/codec/fixtures.json");
const BYTES: &[u8] = include_bytes!("../../../tests/data/codec/fixtures.bin");

fn json(text: &str) -> Json {
    Json::parse(text, &Limits::default()).unwrap()
}

fn number(json: &Json) -> usize {
    json.as_u64().and_then(|n| n.try_into().ok()).unwrap()
}

fn place(case: &Json, key: &str) -> &'static [u8] {
    let span = case.get(key).unwrap().as_array().unwrap();
    &BYTES[number(&span[0])..][..number(&span[1])]
}

/// One foreign case: its pipeline, the payload and the chunk.
fn cases() -> impl Iterator<Item = (String, Pipeline, &'static [u8], &'static [u8])> {
    let all = json(FIXTURES);
    let cases = all.get("cases").unwrap().as_array().unwrap().to_vec();
    cases.into_iter().filter_map(|case| {
        let data_type = DataType::from_json(case.get("data_type").unwrap()).unwrap();
        let specs = codecs_from_json(case.get("codecs").unwrap()).unwrap();
        let shape = case.get("shape").unwrap().as_array().unwrap();
        let shape: Vec<u64> = shape.iter().filter_map(Json::as_u64).collect();
        let fill = vec![0; data_type.item_size().unwrap_or(0)];
        let name = case.to_string();
        let pipeline = match Pipeline::new(&specs, &data_type, &shape, &fill, &Limits::default()) {
            Err(e) if e.help_text().is_some_and(|h| h.contains("feature")) => return None,
            other => other.unwrap_or_else(|e| panic!("{name}: {e}")),
        };
        Some((
            name,
            pipeline,
            place(&case, "payload"),
            place(&case, "decoded"),
        ))
    })
}

fn items(mut flat: &[u8]) -> VariableItems {
    let mut items = VariableItems::default();
    while let Some((len, rest)) = flat.split_first_chunk::<4>() {
        let (item, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        items.push(item);
        flat = rest;
    }
    items
}

#[test]
fn every_foreign_payload_decodes_to_its_chunk() {
    let mut count = 0;
    for (name, pipeline, payload, chunk) in cases() {
        if pipeline.is_variable() {
            let found = pipeline.decode_variable(payload, 0);
            assert_eq!(
                found.unwrap_or_else(|e| panic!("{name}: {e}")),
                items(chunk),
                "{name}"
            );
        } else {
            let found = decoded(&pipeline, payload);
            assert_eq!(
                found.unwrap_or_else(|e| panic!("{name}: {e}")),
                chunk,
                "{name}"
            );
        }
        count += 1;
    }
    assert!(count > 150, "only {count} cases were read");
}

#[test]
fn where_no_compressor_takes_part_the_bytes_made_here_are_the_same() {
    let mut count = 0;
    for (name, pipeline, payload, chunk) in cases() {
        let compressed = ["zstd", "gzip", "zlib", "lz4"];
        if compressed.iter().any(|c| name.contains(c)) {
            continue;
        }
        let mut made = Vec::new();
        if pipeline.is_variable() {
            pipeline.encode_variable(&items(chunk), &mut made).unwrap();
        } else {
            pipeline.encode(chunk, &mut made).unwrap();
        }
        assert_eq!(made, payload, "{name}");
        count += 1;
    }
    assert!(count > 100, "only {count} cases were made");
}

fn hex(json: &Json, key: &str) -> Vec<u8> {
    let text = json.get(key).unwrap().as_str().unwrap();
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn vectors(text: &str) -> Vec<Json> {
    let vectors = json(text);
    vectors.get("vectors").unwrap().as_array().unwrap().to_vec()
}

#[test]
fn shuffle_copies_a_tail_unchanged_as_the_vectors_say() {
    for vector in vectors(include_str!(
        "../../../tests/data/codec/shuffle_vectors.json"
    )) {
        let element_len = number(vector.get("elementsize").unwrap());
        let (raw, shuffled) = (hex(&vector, "raw_hex"), hex(&vector, "shuffled_hex"));
        let mut found = vec![0xee; raw.len()];
        shuffle(&raw, element_len, &mut found);
        assert_eq!(found, shuffled, "{vector}");
        found.fill(0xee);
        unshuffle(&shuffled, element_len, &mut found);
        assert_eq!(found, raw, "{vector}");
    }
}

#[test]
fn delta_works_on_whole_samples_as_the_vectors_say() {
    for vector in vectors(include_str!("../../../tests/data/codec/delta_vectors.json")) {
        let code = vector.get("dtype").unwrap().as_str().unwrap();
        let (data_type, big) = DataType::from_numpy_descr(code).unwrap();
        let (raw, delta) = (hex(&vector, "raw_hex"), hex(&vector, "delta_hex"));
        let count = raw.len() / data_type.item_size().unwrap();
        let list = if big { "delta,bytes:big" } else { "delta" };
        let p = pipeline(list, &data_type, &[count as u64]).unwrap();
        let mut chunk = raw.clone();
        if big {
            data_type.swap_bytes(&mut chunk);
        }
        assert_eq!(encoded(&p, &chunk), delta, "{vector}");
        assert_eq!(decoded(&p, &delta).unwrap(), chunk, "{vector}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_frame_need_not_say_its_content_size() {
    let frame = include_bytes!("../../../tests/data/codec/zstd_no_size.zst");
    let mut chunk = b"orthant-chunk-01".to_vec();
    chunk.extend(0..0x30);
    chunk.resize(256, 7);
    let p = of_bytes("zstd", 256);
    assert_eq!(decoded(&p, frame).unwrap(), chunk);
    assert!(
        decoded(&of_bytes("zstd", 255), frame)
            .unwrap_err()
            .is_corruption()
    );
    assert!(
        decoded(&of_bytes("zstd", 257), frame)
            .unwrap_err()
            .is_corruption()
    );
    // The same with a header that claims 2^40 bytes: refused for the claim, before anything is decoded.
    let mut claim = frame[..4].to_vec();
    claim.extend([0xc0, frame[5]]);
    claim.extend((1u64 << 40).to_le_bytes());
    claim.extend(&frame[6..]);
    let e = decoded(&p, &claim).unwrap_err();
    assert!(e.is_corruption());
    assert!(e.to_string().contains("1099511627776"), "{e}");
    // An empty frame is nothing, which no chunk is.
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    assert!(decoded(&p, &empty).unwrap_err().is_corruption());
    assert!(decoded(&of_bytes("zstd", 0), &empty).unwrap().is_empty());
}
