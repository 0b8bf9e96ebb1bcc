//! Chunks by themselves: coordinates, decoded and encoded, copied between containers.

use std::time::Instant;

use orthant::{
    Adopted, ArraySpec, Block, ChunkState, Codec, DataType, Domain, DynArray, DynArraySpec,
    Elements, ErrorKind, Region, Writer, region,
};

use crate::medium::fresh;
use crate::support::{array, reopened, writer};

#[test]
fn chunk_coordinates_are_listed_without_looking_at_what_is_stored() {
    let w = writer();
    let spec = ArraySpec::<u8>::new(region![-5..5, 0..7]).chunks([4, 3]);
    let a = array(&w, spec);
    let all: Vec<Vec<i64>> = a.chunk_coords(Region::all()).unwrap().collect();
    assert_eq!(all.len(), 12);
    assert_eq!(
        (all[0].as_slice(), all[11].as_slice()),
        (&[-2, 0][..], &[1, 2][..])
    );
    let some: Vec<Vec<i64>> = a.chunk_coords(region![-1..1, 6]).unwrap().collect();
    assert_eq!(some, [[-1, 2], [0, 2]]);
    assert_eq!(a.chunk_coords(region![0..0, ..]).unwrap().count(), 0);
    // A grid too large to be listed can still be begun.
    let spec = ArraySpec::<u8>::new(region![0..1_i64 << 60]).chunks([1]);
    let big = w.create_array("big", spec).unwrap();
    assert_eq!(
        big.chunk_coords(Region::all()).unwrap().nth(3),
        Some(vec![3])
    );
}

/// Row 7.
#[test]
fn present_chunks_of_a_huge_grid_are_found_by_what_is_stored() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![0..1000, 0..1000, 0..1000])
        .chunks([1, 1, 1])
        .codecs([Codec::bytes_little_endian()]);
    let a = array(&w, spec);
    let mut want = Vec::new();
    for i in 0..10_000_i64 {
        let at = [i % 997, i * 7 % 1000, i * 31 % 991];
        a.put_encoded_chunk_unchecked(&at, &[1]).unwrap();
        want.push(at.to_vec());
    }
    w.commit().unwrap();
    want.sort();
    want.dedup();
    // From a container that has read nothing yet; the best of three, since other tests run beside.
    let took = (0..3).map(|_| {
        let c = reopened(&c);
        let a = c.snapshot().unwrap().dyn_array("a").unwrap();
        let start = Instant::now();
        let found = a.chunks().unwrap();
        let took = start.elapsed();
        assert!(found.into_iter().map(|c| c.coord).eq(want.iter().cloned()));
        took
    });
    let took = took.min().unwrap();
    println!("{} present chunks of 10^9: {took:?}", want.len());
    assert!(took.as_millis() < 50, "{took:?}");
}

#[test]
fn a_chunk_is_written_and_erased_whole_and_its_overhang_left_out() {
    let w = writer();
    for shards in [false, true] {
        let spec = ArraySpec::<i16>::new(region![-3..5]).fill(-1);
        let spec = if shards {
            spec.chunks([2]).shards([4])
        } else {
            spec.chunks([4])
        };
        let a = w
            .create_array(if shards { "s" } else { "p" }, spec)
            .unwrap();
        a.write_chunk(&[-1], &[10, 11, 12, 13]).unwrap();
        a.write_chunk(&[1], &[20, 21, 22, 23]).unwrap();
        assert_eq!(
            a.read_vec(Region::all()).unwrap(),
            [11, 12, 13, -1, -1, -1, -1, 20]
        );
        assert_eq!(a.read_chunk(&[1]).unwrap().unwrap(), [20, -1, -1, -1]);
        a.grow(0, 1, 3).unwrap();
        assert_eq!(a.read_vec(region![-4..-2]).unwrap(), [-1, 11]);
        a.erase_chunk(&[-1]).unwrap();
        assert_eq!(a.read_chunk(&[-1]).unwrap(), None);
        assert!(a.erase_chunk(&[2]).is_err());
        assert!(a.write_chunk(&[0], &[1, 2, 3]).is_err());
        assert_eq!(a.chunks().unwrap().len(), 1);
    }
}

#[test]
fn encoded_bytes_go_in_as_they_come_out_and_wrong_ones_are_refused() {
    let w = writer();
    let spec = || {
        ArraySpec::<u16>::new(region![0..6])
            .chunks([4])
            .codecs([Codec::crc32c()])
    };
    let (a, b) = (
        w.create_array("a", spec()).unwrap(),
        w.create_array("b", spec()).unwrap(),
    );
    a.write_slice(region![0..6], &[1, 2, 3, 4, 5, 6]).unwrap();
    for coord in [[0], [1]] {
        let bytes = a.encoded_chunk(&coord).unwrap().unwrap();
        b.put_encoded_chunk(&coord, &bytes).unwrap();
        let mut bad = bytes.clone();
        bad[0] ^= 1;
        assert!(
            b.put_encoded_chunk(&coord, &bad)
                .unwrap_err()
                .is_corruption()
        );
        assert!(b.put_encoded_chunk(&coord, &bytes[1..]).is_err());
    }
    assert_eq!(b.read_vec(Region::all()).unwrap(), [1, 2, 3, 4, 5, 6]);
    // The second chunk's last two elements lie outside the domain.
    let first = a.encoded_chunk(&[0]).unwrap().unwrap();
    let e = b.put_encoded_chunk(&[1], &first).unwrap_err();
    assert_eq!(e.reason_code(), Some("overhang"), "{e}");
    assert!(b.put_encoded_chunk(&[2], &first).is_err());
}

#[test]
fn an_array_is_copied_to_another_container_without_decoding() {
    let (from, to) = (fresh(), fresh());
    let w = from.writer().unwrap();
    let spec = ArraySpec::<f32>::new(region![-10..10, 0..10])
        .chunks([2, 5])
        .shards([4, 10])
        .dims(["t", "x"])
        .fill(f32::NAN);
    let a = w.create_array("g/a", spec).unwrap();
    let cells: Vec<f32> = (0..100_u8).map(f32::from).collect();
    a.write_slice(region![-10..0, ..], &cells).unwrap();
    a.write_scalar(region![0..4, ..], 7.0).unwrap();
    a.write_fill(region![4..8, ..]).unwrap();
    a.attributes().set("units", "K").unwrap();
    w.commit().unwrap();
    let a = from.snapshot().unwrap().dyn_array("g/a").unwrap();
    let w = to.writer().unwrap();
    let b = a.copy_array_to(&w, "x/y").unwrap();
    w.commit().unwrap();
    let e = a.copy_array_to(&w, "x/y").unwrap_err();
    assert_eq!(e.kind(), orthant::ErrorKind::AlreadyExists);
    let bits = |a: &DynArray| match a.read(Region::all()).unwrap().elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => panic!("floats"),
    };
    assert_eq!(bits(&b), bits(&a));
    assert_eq!(
        (b.dims(), b.domain().unwrap()),
        (a.dims(), a.domain().unwrap())
    );
    assert!(b.attributes().contains("units").unwrap());
    let states = |a: &DynArray| {
        a.chunks()
            .unwrap()
            .into_iter()
            .map(|c| match c.state {
                ChunkState::Stored { len, crc32, .. } => (c.coord, Some((len, crc32))),
                ChunkState::Constant | ChunkState::DeclaredFill => (c.coord, None),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&b), states(&a));
    for extent in b.chunk_extents(Region::all()).unwrap() {
        let bytes = a.encoded_chunk(&extent.coord).unwrap().unwrap();
        assert_eq!(crc32fast::hash(&bytes), extent.crc32);
    }
    // Types of any length, and blocks.
    let spec = ArraySpec::<String>::new(region![0..5])
        .chunks([2])
        .shards([4]);
    let words = w.create_array("words", spec).unwrap();
    let text: Vec<String> = ["", "a", "bb", "ccc", "dddd"].map(str::to_owned).to_vec();
    words.write_slice(Region::all(), &text).unwrap();
    let copy = words.copy_array_to(&w, "copy").unwrap();
    assert_eq!(
        copy.typed::<String>()
            .unwrap()
            .read_vec(Region::all())
            .unwrap(),
        text
    );
    let block = Block {
        data_type: words.data_type(),
        shape: vec![4],
        elements: Elements::Variable(["w", "x", "y", "z"].map(|s| s.as_bytes().into()).to_vec()),
    };
    DynArray::write_chunk(&words, &[1], &block).unwrap();
    assert_eq!(words.read_vec(region![3..5]).unwrap(), ["ccc", "w"]);
    let _ = Domain::from_shape(&[1]);
}

/// What a grow would show: nobody reads it before, so only `check --level data` can tell.
#[test]
fn a_check_of_data_finds_elements_outside_the_domain_that_are_not_fill() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![0..6])
        .chunks([4])
        .codecs(Codec::raw_profile());
    w.create_array("a", spec).unwrap();
    let a = w.dyn_array("a").unwrap();
    a.put_encoded_chunk_unchecked(&[0], &[1, 2, 3, 4]).unwrap();
    a.put_encoded_chunk_unchecked(&[1], &[5, 6, 7, 0]).unwrap();
    w.commit().unwrap();
    let found = crate::support::problems(&c);
    let [problem] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((problem.invariant, problem.warning), (21, false));
    assert_eq!(problem.error.chunk(), Some(&[1][..]));
    assert!(problem.error.is_corruption(), "{}", problem.error);
}

/// Six bytes in two chunks of four, so that the second reaches beyond the domain.
fn six_bytes(writer: &Writer, codecs: &str) -> DynArray {
    let spec = DynArraySpec::new(DataType::Uint8, region![0..6])
        .chunks([4])
        .codecs(Codec::list(codecs).unwrap());
    writer.create_dyn_array("a", &spec).unwrap()
}

fn elements(array: &DynArray) -> Elements {
    array.read(region![..]).unwrap().elements
}

#[test]
fn adopted_bytes_are_stored_as_they_come_and_overhang_is_scrubbed() {
    let writer = fresh().writer().unwrap();
    let array = six_bytes(&writer, "raw");
    for (coord, payload) in [([0], [1, 2, 3, 4]), ([1], [5, 6, 0, 0])] {
        let done = array.adopt_chunk(&coord, &payload, 0).unwrap();
        assert_eq!(done, Adopted::Verbatim);
        assert_eq!(array.encoded_chunk(&coord).unwrap().unwrap(), payload);
    }
    let done = array.adopt_chunk(&[1], &[7, 8, 9, 9], 0).unwrap();
    assert!(matches!(done, Adopted::Scrubbed(_)));
    let fixed = |bytes: &[u8]| Elements::Fixed(bytes.to_vec());
    assert_eq!(elements(&array), fixed(&[1, 2, 3, 4, 7, 8]));
    array.grow(0, 0, 2).unwrap();
    assert_eq!(elements(&array), fixed(&[1, 2, 3, 4, 7, 8, 0, 0]));
    let e = array.adopt_chunk(&[2], &[0; 4], 0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OutOfDomain);
}

#[test]
fn an_adopted_chunk_shows_by_its_outside_that_it_is_none() {
    for (i, codecs) in [
        "raw",
        "crc32c",
        "zstd:1",
        "gzip:1",
        "numcodecs.zlib:1",
        "numcodecs.lz4",
        "zstd:1,crc32c",
        "portable",
    ]
    .iter()
    .enumerate()
    {
        let writer = fresh().writer().unwrap();
        let spec = DynArraySpec::new(DataType::Uint16, region![0..64])
            .chunks([32])
            .codecs(Codec::list(codecs).unwrap());
        let array = writer.create_dyn_array("a", &spec).unwrap();
        let block = |len: u16| Block {
            data_type: DataType::Uint16,
            shape: vec![len.into()],
            elements: Elements::Fixed((0..len).flat_map(u16::to_le_bytes).collect()),
        };
        let payload = array.encode_chunk(&block(32)).unwrap().unwrap();
        assert_eq!(
            array.adopt_chunk(&[0], &payload, 0).unwrap(),
            Adopted::Verbatim
        );
        // No bytes, a chunk of half the length, a cut one, and one with more behind it.
        let short = DynArraySpec::new(DataType::Uint16, region![0..16])
            .chunks([16])
            .codecs(Codec::list(codecs).unwrap());
        let short = writer.create_dyn_array("b", &short).unwrap();
        let short = short.encode_chunk(&block(16)).unwrap().unwrap();
        let long = [payload.as_slice(), &[0]].concat();
        let others = [&[], short.as_slice(), &payload[..payload.len() - 1], &long];
        // Where these end is told by decoding alone; and how long what comes out is, by LZ4 but not by zlib.
        let shown = match codecs.split(':').next() {
            Some("numcodecs.zlib") => 1,
            Some("numcodecs.lz4") => 2,
            _ => 4,
        };
        for bytes in others.into_iter().take(shown) {
            let e = array.adopt_chunk(&[1], bytes, 0).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Corrupt, "{i} {codecs}: {e}");
        }
        assert!(array.read_chunk(&[1]).unwrap().is_none());
    }
}

#[test]
fn an_adopted_chunk_that_skipped_a_codec_is_read_as_such() {
    let writer = fresh().writer().unwrap();
    let array = six_bytes(&writer, "zlib:1");
    let fixed = |bytes: &[u8]| Elements::Fixed(bytes.to_vec());
    array.adopt_chunk(&[0], &[1, 2, 3, 4], 0b10).unwrap();
    array.adopt_chunk(&[1], &[5, 6, 0, 0], 0b10).unwrap();
    assert_eq!(elements(&array), fixed(&[1, 2, 3, 4, 5, 6]));
    let decoded = array.decode_payload(&[9; 4], 0b10).unwrap();
    assert_eq!(decoded.elements, fixed(&[9; 4]));
    // The codec that makes bytes of elements cannot be skipped, and a bit past the list names none.
    for skipped in [0b1, 0b100] {
        assert!(array.adopt_chunk(&[0], &[0; 4], skipped).is_err());
    }
    let e = array.adopt_chunk(&[1], &[5, 6, 0, 0], 0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
}
