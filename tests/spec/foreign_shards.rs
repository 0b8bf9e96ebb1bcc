//! Shards of other software, taken over byte for byte, and shards that are wrong.

use orthant::{
    Codec, CodecSpec, DataType, Domain, DynArray, DynArraySpec, Error, ErrorKind, Json, Limits,
    OpenOptions, ReadPath, Region, Writer, region,
};
use serde_json::Value;

use crate::medium::{fresh, held, held_with};
use crate::support::{data, ints, npy_tail};

fn uints(v: &Value) -> Vec<u64> {
    ints(v).into_iter().map(i64::unsigned_abs).collect()
}

/// The array that a Zarr v3 document describes.
fn create(w: &Writer, document: &Value, chunk_shape: &Value) -> Result<DynArray, Error> {
    let json = |v: &Value| Json::parse(&v.to_string(), &Limits::default()).unwrap();
    let data_type = DataType::from_json(&json(&document["data_type"]))?;
    let codecs = document["codecs"].as_array().unwrap();
    let codecs: Result<Vec<Codec>, Error> = codecs
        .iter()
        .map(|c| CodecSpec::from_json(&json(c)).map(Codec::from))
        .collect();
    let fill = data_type.element_from_text(&document["fill_value"].to_string())?;
    let domain = Domain::from_shape(&uints(&document["shape"]))?;
    let spec = DynArraySpec::new(data_type, domain)
        .chunks(uints(chunk_shape))
        .fill_bytes(fill)
        .codecs(codecs?);
    w.create_dyn_array("a", &spec)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

fn bytes(a: &DynArray, region: &Region) -> Vec<u8> {
    match a.read(region).unwrap().elements {
        orthant::Elements::Fixed(bytes) => bytes,
        orthant::Elements::Variable(_) => panic!("fixed-size types only"),
    }
}

/// Takes a shard's payloads over, and reads them whole and in parts.
fn check(entry: &Value, chunks: &[(Vec<i64>, Vec<u8>)]) {
    let name = format!("{} {}", entry["maker"], entry["place"]);
    let c = fresh();
    let w = c.writer().unwrap();
    let a = create(&w, entry, &entry["chunk_shape"]).unwrap();
    for (coord, payload) in chunks {
        a.put_encoded_chunk(coord, payload).unwrap();
        assert_eq!(a.encoded_chunk(coord).unwrap().as_ref(), Some(payload));
    }
    w.commit().unwrap();
    let a = c.snapshot().unwrap().dyn_array("a").unwrap();
    let whole = bytes(&a, &Region::all());
    let crc = format!("{:08x}", crc32c::crc32c(&whole));
    assert_eq!(crc, entry["values_crc32c"].as_str().unwrap(), "{name}");
    // Rows one by one: what a part reads is what the whole has there.
    let rows = a.domain().unwrap().shape()[0];
    let row_len = whole.len() / usize::try_from(rows).unwrap();
    for (y, want) in (0..).zip(whole.chunks(row_len)) {
        let domain = a.domain().unwrap();
        let row = domain.ranges().enumerate();
        let row = row.map(|(axis, r)| if axis == 0 { y..y + 1 } else { r });
        let row = Region::from(Domain::new(row).unwrap());
        assert_eq!(bytes(&a, &row), want, "{name} row {y}");
    }
    // One element touches one inner chunk, where a shard has more than one.
    let one = Region::from(Domain::new(a.domain().unwrap().ranges().map(|_| 0..1)).unwrap());
    let (_, receipt) = a.read_with_receipt(&one).unwrap();
    if a.shard_shape().unwrap() != a.chunk_shape() {
        let cached = receipt.chunks_cached == 1;
        assert!(
            cached || receipt.path == ReadPath::Partial,
            "{name}: {receipt:?}"
        );
    }
    let apart = held_with(&OpenOptions::new().cache_bytes(0), c.to_bytes().unwrap()).unwrap();
    let a = apart.snapshot().unwrap().dyn_array("a").unwrap();
    let (block, receipt) = a.read_with_receipt(&one).unwrap();
    assert_eq!(
        block.elements,
        orthant::Elements::Fixed(whole[..whole.len() / count(&a)].to_vec())
    );
    if a.shard_shape().unwrap() != a.chunk_shape() {
        assert_eq!(receipt.path, ReadPath::Partial, "{name}: {receipt:?}");
        assert!(receipt.inner_decoded <= 1);
    }
}

fn count(a: &DynArray) -> usize {
    usize::try_from(a.domain().unwrap().element_count().unwrap()).unwrap()
}

#[test]
fn shards_of_other_software_read_right_whole_and_in_parts() {
    let text = std::fs::read_to_string(data("shards/foreign.json")).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(entries.len(), 10);
    let shared = std::env::var_os("ORTHANT_SHARED")
        .map_or_else(|| data("../../../shared"), std::path::PathBuf::from);
    let (mut read, mut skipped) = (0, Vec::new());
    for entry in &entries {
        let codecs = entry["codecs"].to_string();
        if codecs.contains("blosc") && !cfg!(feature = "blosc") {
            let w = fresh().writer().unwrap();
            let e = create(&w, entry, &entry["chunk_shape"]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported);
            assert!(e.to_string().contains("blosc"), "{e}");
            continue;
        }
        let place = entry["place"].as_str().unwrap();
        let folder = shared.join("data/zarr3").join(place).join("c");
        let chunks: Option<Vec<(Vec<i64>, Vec<u8>)>> = entry["chunks"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, hex)| {
                let coord = key.split('/').map(|n| n.parse().unwrap()).collect();
                let bytes = match hex.as_str() {
                    Some(hex) => Some(bytes_of(hex)),
                    None => std::fs::read(folder.join(key)).ok(),
                };
                Some((coord, bytes?))
            })
            .collect();
        match chunks {
            Some(chunks) => {
                check(entry, &chunks);
                read += 1;
            }
            None => skipped.push(place),
        }
    }
    if !skipped.is_empty() {
        println!("skipped, their files are not here: {skipped:?}");
    }
    assert!(read >= 7, "{read}");
}

fn case(name: &str) -> (Writer, DynArray, Value) {
    let text = std::fs::read_to_string(data(&format!("shards/{name}.json"))).unwrap();
    let case: Value = serde_json::from_str(&text).unwrap();
    let document = &case["array_metadata"];
    let w = fresh().writer().unwrap();
    let shape = &document["chunk_grid"]["configuration"]["chunk_shape"];
    let a = create(&w, document, shape).unwrap();
    for (key, file) in case["files"].as_object().unwrap() {
        let coord: Vec<i64> = key.split(',').map(|n| n.parse().unwrap()).collect();
        let payload = std::fs::read(data(&format!("shards/{}", file.as_str().unwrap()))).unwrap();
        a.put_encoded_chunk(&coord, &payload).unwrap();
    }
    w.commit().unwrap();
    (w, a, case)
}

/// C68, C70: inner chunks after the first, an index without a checksum.
#[test]
fn c68_c70_every_row_of_a_shard_without_checksums_is_read_by_itself() {
    let (w, a, case) = case("shard_nocrc");
    let want = npy_tail("shards/shard_nocrc.npy", 640);
    for y in 0..40_usize {
        let row = region![y as i64..y as i64 + 1, ..];
        assert_eq!(bytes(&a, &row), want[y * 16..][..16], "row {y}");
    }
    assert_eq!(bytes(&a, &region![19..22, ..]), want[19 * 16..][..48]);
    assert_eq!(bytes(&a, &region![39..40, ..]), want[39 * 16..]);
    for y in ints(&case["rows_absent_in_index"]) {
        let (_, receipt) = a.read_with_receipt(region![y..y + 1, ..]).unwrap();
        assert_eq!(receipt.inner_decoded, 0, "row {y}");
    }
    // The first touch of a shard verified it whole; what follows fetches its rows alone.
    let snap = {
        let c = held(fresh().to_bytes().unwrap()).unwrap();
        let copy = c.writer().unwrap();
        a.copy_array_to(&copy, "b").unwrap();
        copy.commit().unwrap();
        c.snapshot().unwrap()
    };
    let b = snap.dyn_array("b").unwrap();
    let len = b.chunk_extents(region![0..1, ..]).unwrap()[0].len;
    let (_, first) = b.read_with_receipt(region![0..1, ..]).unwrap();
    assert_eq!(first.path, ReadPath::Partial);
    assert_eq!(first.reason, Some("verified_whole_first"));
    assert!(first.bytes_fetched >= len + 320, "{first:?}");
    let (_, second) = b.read_with_receipt(region![1..2, ..]).unwrap();
    assert_eq!(second.reason, None);
    assert!(second.bytes_fetched < 40, "{second:?}");
    // Such a shard made here: its payloads and 20 entries, no more.
    let shard = a.encoded_chunk(&[0, 0]).unwrap().unwrap();
    a.write(region![0..20, ..], &a.read(region![0..20, ..]).unwrap())
        .unwrap();
    let made = a.encoded_chunk(&[0, 0]).unwrap().unwrap();
    let payloads: u64 = made[made.len() - 320..]
        .chunks(16)
        .map(|e| u64::from_le_bytes(e[8..].try_into().unwrap()))
        .filter(|n| *n != u64::MAX)
        .sum();
    assert_eq!(made.len() as u64, payloads + 320);
    assert!(shard.len().abs_diff(made.len()) < 200);
    drop(w);
}

/// C69: the last shard is short.
#[test]
fn c69_the_last_value_of_a_short_shard_is_read() {
    let (_w, a, _) = case("shard_tail");
    let values = |r: Region| -> Vec<f64> {
        let bytes = bytes(&a, &r);
        let values = bytes.chunks(8);
        values
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect()
    };
    assert_eq!(values(region![10..11]), [70.0]);
    assert_eq!(values(region![9..11]), [66.5, 70.0]);
    let all: Vec<f64> = (0..11).map(|i| 35.0 + 3.5 * f64::from(i)).collect();
    assert_eq!(values(Region::all()), all);
}

fn three_shards() -> (Vec<u8>, Vec<orthant::ChunkExtent>) {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = orthant::ArraySpec::<u32>::new(region![0..48, 0..16])
        .chunks([4, 4])
        .shards([16, 16])
        .codecs([Codec::bytes_little_endian()]);
    let a = w.create_array("sub/a", spec).unwrap();
    let cells: Vec<u32> = (1..=768).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    w.commit().unwrap();
    let extents = c.snapshot().unwrap().dyn_array("sub/a").unwrap();
    (
        c.to_bytes().unwrap(),
        extents.chunk_extents(Region::all()).unwrap(),
    )
}

/// Reads every inner chunk by itself; answers those that cannot be read, with their errors.
fn unreadable(bytes: Vec<u8>) -> Vec<(Vec<i64>, Error)> {
    let c = held(bytes).unwrap();
    let a = c.snapshot().unwrap().array::<u32>("sub/a").unwrap();
    let mut bad = Vec::new();
    for y in (0..48).step_by(4) {
        for x in (0..16).step_by(4) {
            match a.read_vec(region![y..y + 4, x..x + 4]) {
                Ok(cells) => assert_eq!(i64::from(cells[5]), (y + 1) * 16 + x + 2),
                Err(e) => bad.push((vec![y / 4, x / 4], e)),
            }
        }
    }
    bad
}

/// C73: damage stays local.
#[test]
fn c73_a_flipped_bit_takes_one_inner_chunk_or_one_shard_and_is_named() {
    let (bytes, extents) = three_shards();
    assert!(unreadable(bytes.clone()).is_empty());
    let shard = &extents[1];
    let at = usize::try_from(shard.offset).unwrap();
    // Inner chunk 6 of shard (1,0), each 68 bytes long.
    let mut one = bytes.clone();
    one[at + 6 * 68 + 9] ^= 4;
    let bad = unreadable(one.clone());
    assert_eq!(bad.len(), 1);
    let (coord, e) = &bad[0];
    assert_eq!(coord, &[5, 2]);
    assert!(e.is_corruption());
    assert_eq!(e.array(), Some("/sub/a"));
    assert_eq!(e.chunk(), Some(&[1, 0][..]));
    assert_eq!(e.inner_chunk(), Some(&[1, 2][..]));
    assert_eq!(e.offset(), Some(shard.offset + 6 * 68));
    assert!(
        e.expected_value().is_some() && e.found_value().is_some(),
        "{e}"
    );
    // Whole reads of that shard fail, writes into it too, and nothing damaged is taken over.
    let c = held(one).unwrap();
    let w = c.writer().unwrap();
    let a = w.array::<u32>("sub/a").unwrap();
    assert!(a.read_vec(region![16..32, ..]).unwrap_err().is_corruption());
    let e = a.write_slice(region![16, 0], &[1]).unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert_eq!(e.chunk(), Some(&[1, 0][..]));
    a.write_slice(region![0, 0], &[1]).unwrap();
    // The index of the same shard.
    let mut index = bytes;
    index[at + usize::try_from(shard.len).unwrap() - 100] ^= 1;
    let bad = unreadable(index);
    assert_eq!(bad.len(), 16);
    for (_, e) in &bad {
        assert_eq!(
            (e.array(), e.chunk()),
            (Some("/sub/a"), Some(&[1, 0][..])),
            "{e}"
        );
        assert_eq!(e.reason_code(), Some("checksum"), "{e}");
    }
}

#[test]
fn a_forged_shard_is_an_error_that_names_shard_and_inner_chunk_and_never_a_wrong_value() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = orthant::ArraySpec::<u8>::new(region![0..8])
        .chunks([2])
        .shards([8])
        .codecs([Codec::bytes_little_endian()]);
    let a = w.create_array("a", spec).unwrap();
    a.write_slice(Region::all(), &[1, 2, 3, 4, 5, 6, 7, 8])
        .unwrap();
    let good = a.encoded_chunk(&[0]).unwrap().unwrap();
    assert_eq!(good.len(), 4 * 6 + 68);
    let forged = |entry: usize, offset: u64, len: u64| {
        let mut bad = good.clone();
        let index = &mut bad[24..88];
        index[entry * 16..][..8].copy_from_slice(&offset.to_le_bytes());
        index[entry * 16 + 8..][..8].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c::crc32c(index);
        bad[88..].copy_from_slice(&crc.to_le_bytes());
        bad
    };
    for (offset, len) in [
        (u64::MAX - 2, 6),
        (90, 6),
        (20, 6),
        (6, u64::MAX),
        (0, 6),
        (6, 5),
        (6, 7),
        (6, 0),
        (u64::MAX, 6),
    ] {
        let bad = forged(1, offset, len);
        assert!(a.put_encoded_chunk(&[0], &bad).is_err(), "{offset} {len}");
        a.put_encoded_chunk_unchecked(&[0], &bad).unwrap();
        let e = a.read_vec(region![2..4]).unwrap_err();
        assert!(e.is_corruption(), "{offset} {len}: {e}");
        assert_eq!(e.chunk(), Some(&[0][..]), "{e}");
        assert_eq!(e.inner_chunk(), Some(&[1][..]), "{e}");
        assert_eq!(a.read_vec(region![6..8]).unwrap(), [7, 8], "{offset} {len}");
    }
    for cut in 1..good.len() {
        a.put_encoded_chunk_unchecked(&[0], &good[..cut]).unwrap();
        let e = a.read_vec(region![2..4]).unwrap_err();
        assert!(e.is_corruption(), "cut at {cut}: {e}");
        assert_eq!((e.array(), e.chunk()), (Some("/a"), Some(&[0][..])));
    }
    a.put_encoded_chunk(&[0], &good).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// An array of u8, two to an inner chunk, and a shard of its that holds these inner chunks, its checksums right.
fn forged(w: &orthant::Writer, name: &str, inner: &[Vec<u8>]) -> orthant::Array<u8> {
    let spec = orthant::ArraySpec::<u8>::new(region![0..8])
        .chunks([2])
        .shards([8])
        .codecs([Codec::zstd(3)]);
    let a = w.create_array(name, spec).unwrap();
    let (mut shard, mut index) = (Vec::new(), Vec::new());
    for bytes in inner {
        index.extend((shard.len() as u64).to_le_bytes());
        index.extend((bytes.len() as u64).to_le_bytes());
        shard.extend(bytes);
    }
    let crc = crc32c::crc32c(&index);
    shard.extend(index);
    shard.extend(crc.to_le_bytes());
    a.put_encoded_chunk_unchecked(&[0], &shard).unwrap();
    a
}

#[test]
fn inner_chunks_that_decode_short_or_long_and_indexes_of_another_count_are_errors() {
    let c = fresh();
    let w = c.writer().unwrap();
    // Frames with right checksums, of one, two, three and a million elements.
    let frame = |n: u64| {
        let spec = orthant::ArraySpec::<u8>::new(region![0..1_000_000])
            .chunks([n])
            .codecs([Codec::zstd(3), Codec::crc32c()]);
        let a = w.create_array(&format!("frame-{n}"), spec).unwrap();
        let n = i64::try_from(n).unwrap();
        a.write_slice(region![0..n], &vec![5; usize::try_from(n).unwrap()])
            .unwrap();
        a.encoded_chunk(&[0]).unwrap().unwrap()
    };
    let good = frame(2);
    for (i, n) in [1, 3, 1_000_000].into_iter().enumerate() {
        let inner = [good.clone(), frame(n), good.clone(), good.clone()];
        let a = forged(&w, &format!("a{i}"), &inner);
        let (e, peak) = crate::heap::peak_of(|| a.read_vec(region![2..4]).unwrap_err());
        assert!(e.is_corruption(), "{n}: {e}");
        assert_eq!(
            (e.chunk(), e.inner_chunk()),
            (Some(&[0][..]), Some(&[1][..])),
            "{e}"
        );
        assert!(peak < 256 << 10, "{n}: {peak} bytes");
        assert!(a.read_vec(Region::all()).unwrap_err().is_corruption());
        assert_eq!(a.read_vec(region![4..8]).unwrap(), [5; 4]);
    }
    // One inner chunk too few and one too many: the index is not where it should end.
    for count in [3, 5] {
        let a = forged(&w, &format!("count-{count}"), &vec![good.clone(); count]);
        for at in 0..4 {
            let e = a.read_vec(region![2 * at..2 * at + 2]).unwrap_err();
            assert!(e.is_corruption(), "{count}: {e}");
            assert_eq!(e.chunk(), Some(&[0][..]), "{e}");
        }
    }
}
