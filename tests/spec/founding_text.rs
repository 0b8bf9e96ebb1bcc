//! The exact figures of the founding text on chunked storage that `array::tests` does not hold already.

use orthant::{ArraySpec, Codec, Domain, region};
use serde_json::Value;

use crate::support::{array, ints, vector, writer};

fn domain(v: &Value) -> Domain {
    Domain::new(
        ints(&v["min"])
            .into_iter()
            .zip(ints(&v["max"]))
            .map(|(a, b)| a..b),
    )
    .unwrap()
}

#[test]
fn ragged_reads_touch_and_decode_what_is_listed() {
    let v = vector("seed/ragged.json");
    let w = writer();
    let chunks = ints(&v["chunk_shape"]).into_iter().map(i64::unsigned_abs);
    let shape: Vec<u64> = ints(&v["shape"])
        .into_iter()
        .map(i64::unsigned_abs)
        .collect();
    let spec = ArraySpec::<u8>::new(Domain::from_shape(&shape).unwrap())
        .chunks(chunks)
        .codecs([Codec::zstd(1)]);
    let a = array(&w, spec);
    let cells: Vec<u8> = (0..shape.iter().product::<u64>())
        .map(|i| u8::try_from(i % 251 + 1).unwrap())
        .collect();
    a.write_slice(region![.., .., ..], &cells).unwrap();
    assert_eq!(
        a.chunks().unwrap().len() as u64,
        v["stored_chunks"].as_u64().unwrap()
    );
    assert_eq!(
        a.grid_chunks().unwrap(),
        v["grid_chunks"].as_u64().map(u128::from)
    );
    for read in v["reads"].as_array().unwrap() {
        let (got, receipt) = a.read_with_receipt(domain(read)).unwrap();
        let bytes: Vec<u8> = got.iter().copied().collect();
        assert_eq!(
            format!("{:08x}", crc32c::crc32c(&bytes)),
            read["crc32c"].as_str().unwrap(),
            "{read}"
        );
        assert_eq!(
            receipt.chunks_touched,
            read["chunks"].as_u64().unwrap(),
            "{read}"
        );
        // Chunks that an earlier partial read has left in the cache are not decoded again.
        let a_decode = receipt.bytes_decoded + 24 * receipt.chunks_cached;
        assert_eq!(a_decode, read["decoded"].as_u64().unwrap(), "{read}");
    }
}

#[test]
fn a_column_of_the_6x6_array_meets_two_chunks_and_decodes_eighteen_cells() {
    let facts = vector("seed/facts.json");
    let fact = &facts["read_6x6"];
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<u8>::new(region![0..6, 0..6])
            .chunks([3, 3])
            .codecs([Codec::zstd(1)]),
    );
    a.write_slice(region![.., ..], &(1..=36).collect::<Vec<u8>>())
        .unwrap();
    let (got, receipt) = a.read_with_receipt(domain(fact)).unwrap();
    assert_eq!(got.len() as u64, fact["wanted_cells"].as_u64().unwrap());
    assert_eq!(
        receipt.chunks_touched,
        fact["chunks"].as_array().unwrap().len() as u64
    );
    assert_eq!(
        receipt.bytes_decoded,
        fact["decoded_cells"].as_u64().unwrap()
    );
}
