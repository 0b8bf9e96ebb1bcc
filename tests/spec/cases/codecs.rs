//! Area F: codecs and filters, seen through the payloads that arrays store.

use std::io::Write as _;
use std::time::Duration;

use orthant::{
    Array, ArraySpec, Codec, Container, DataType, DynArraySpec, Elements, ErrorKind, Region, region,
};

use crate::heap::peak_of;
use crate::medium::fresh;
use crate::support::{array, data, hex, json, timed, with_payload, within, writer};

/// A container with one array `a` of `n` bytes in one chunk, and the payload of that chunk.
fn bytes_in_one_chunk(n: u64, codecs: &[Codec], cells: &[u8]) -> (Container, Vec<u8>) {
    let c = fresh();
    let w = c.writer().unwrap();
    let end = i64::try_from(n).unwrap();
    let spec = ArraySpec::<u8>::new(region![0..end])
        .chunks([n])
        .codecs(codecs.iter().cloned());
    let a = array(&w, spec);
    a.write_slice(Region::all(), cells).unwrap();
    // Whole-fill chunks take no payload; nothing else may be missing.
    let payload = a.encoded_chunk(&[0]).unwrap().unwrap_or_default();
    w.commit().unwrap();
    (c, payload)
}

fn read(c: &Container) -> orthant::Result<Vec<u8>> {
    c.snapshot()?.array::<u8>("a")?.read_vec(Region::all())
}

#[cfg(feature = "zstd")]
#[test]
fn c54_zstd_frames_without_a_size_decode_and_false_sizes_do_not() {
    let (c, own) = bytes_in_one_chunk(256, &[Codec::zstd(3)], &[1; 256]);
    let frame = std::fs::read(data("codec/zstd_no_size.zst")).unwrap();
    let want: Vec<u8> = b"orthant-chunk-01"
        .iter()
        .copied()
        .chain(0..0x30)
        .chain([7; 192])
        .collect();
    assert_eq!(read(&with_payload(&c, 1, &[0], &frame)).unwrap(), want);
    // An empty frame is right for no chunk: each has at least one element.
    let empty = hex(json("cases/zstd_empty.json")["frame_hex"].as_str().unwrap());
    let e = read(&with_payload(&c, 1, &[0], &empty)).unwrap_err();
    assert!(e.is_corruption(), "{e}");
    // Our own frame, its header claiming 2^40 bytes: magic, descriptor for an 8-byte size, the size, the blocks.
    let header = if own[4] & 0x20 != 0 { 1 } else { 2 };
    let size_len = match own[4] >> 6 {
        0 if own[4] & 0x20 != 0 => 1,
        0 => 0,
        n => 1 << n,
    };
    let mut forged = own[..4].to_vec();
    forged.push(0xE0 | own[4] & 0x1F);
    forged.extend((1_u64 << 40).to_le_bytes());
    forged.extend(&own[4 + header + size_len..]);
    let c = with_payload(&c, 1, &[0], &forged);
    let (e, peak) = peak_of(|| read(&c).unwrap_err());
    assert!(
        e.is_corruption() || e.kind() == ErrorKind::LimitExceeded,
        "{e}"
    );
    assert!(peak < 1 << 20, "{peak}");
}

#[test]
fn c56_c60_shuffle_has_the_foreign_bytes_in_both_directions() {
    let vectors = json("codec/shuffle_vectors.json");
    let mut tails = 0;
    for v in vectors["vectors"].as_array().unwrap() {
        let raw = hex(v["raw_hex"].as_str().unwrap());
        let shuffled = hex(v["shuffled_hex"].as_str().unwrap());
        let size = u32::try_from(v["elementsize"].as_u64().unwrap()).unwrap();
        if raw.is_empty() {
            continue;
        }
        tails += usize::from(!raw.len().is_multiple_of(size as usize));
        let codecs = [Codec::shuffle_elements(size)];
        let (c, payload) = bytes_in_one_chunk(raw.len() as u64, &codecs, &raw);
        assert_eq!(payload, shuffled, "{v}");
        assert_eq!(read(&with_payload(&c, 1, &[0], &shuffled)).unwrap(), raw);
    }
    assert!(tails > 0);
    let (c, _) = bytes_in_one_chunk(8, &[Codec::shuffle_elements(2)], &[9; 8]);
    let stored = with_payload(&c, 1, &[0], &hex("0103050702040608"));
    assert_eq!(read(&stored).unwrap(), hex("0102030405060708"));
}

#[cfg(any(feature = "zstd", feature = "lz4", feature = "deflate"))]
#[test]
fn c59_codecs_that_make_data_longer_stay_within_their_bound() {
    let random = std::fs::read(data("cases/incompressible_4096.bin")).unwrap();
    assert_eq!(crc32c::crc32c(&random), 0x0930_59a0);
    let mut codecs = Vec::new();
    if cfg!(feature = "zstd") {
        codecs.extend((-5..=22).map(Codec::zstd));
    }
    if cfg!(feature = "lz4") {
        codecs.push(Codec::lz4());
    }
    if cfg!(feature = "deflate") {
        codecs.extend((0..=9).flat_map(|l| [Codec::zlib(l), Codec::gzip(l)]));
    }
    for codec in codecs {
        for n in [4096, 1, 2, 3] {
            let cells = &random[..n];
            let (c, payload) = bytes_in_one_chunk(n as u64, std::slice::from_ref(&codec), cells);
            assert!(
                payload.len() <= n + 64 + n / 200,
                "{codec:?}: {}",
                payload.len()
            );
            assert_eq!(read(&c).unwrap(), cells);
        }
    }
}

/// The vectors with their own types, then random numbers with wrap-around.
#[test]
fn c61_delta_works_on_whole_samples() {
    let vectors = json("codec/delta_vectors.json");
    for v in vectors["vectors"].as_array().unwrap() {
        let raw = hex(v["raw_hex"].as_str().unwrap());
        let code = v["dtype"].as_str().unwrap();
        let (data_type, size) = match &code[1..] {
            "u1" => (DataType::Uint8, 1),
            "u2" => (DataType::Uint16, 2),
            "i4" => (DataType::Int32, 4),
            "i8" => (DataType::Int64, 8),
            other => panic!("{other}"),
        };
        let n = raw.len() / size;
        let c = fresh();
        let w = c.writer().unwrap();
        let big = code.starts_with('>');
        // The filter runs before the byte order is chosen, so a big-endian payload holds the same differences.
        let order = if big {
            Codec::bytes_big_endian()
        } else {
            Codec::bytes_little_endian()
        };
        let spec = DynArraySpec::new(data_type.clone(), region![0..n as i64])
            .chunks([n as u64])
            .codecs([Codec::delta(), order]);
        let a = w.create_dyn_array("a", &spec).unwrap();
        let mut little = raw.clone();
        if big {
            little.chunks_mut(size).for_each(<[u8]>::reverse);
        }
        let block = orthant::Block {
            data_type,
            shape: vec![n as u64],
            elements: Elements::Fixed(little),
        };
        a.write(Region::all(), &block).unwrap();
        let delta = hex(v["delta_hex"].as_str().unwrap());
        assert_eq!(a.encoded_chunk(&[0]).unwrap().unwrap(), delta, "{v}");
        assert_eq!(a.read(Region::all()).unwrap(), block, "{v}");
    }
}

#[test]
fn c61_delta_keeps_random_numbers_and_refuses_floats() {
    let mut random = crate::disk::Random::new(61);
    let w = writer();
    let cells: Vec<i64> = (0..100_000).map(|_| random.next().cast_signed()).collect();
    let small: Vec<i16> = cells.iter().map(|x| (x >> 48) as i16).collect();
    let spec = |n| {
        ArraySpec::<i64>::new(region![0..n])
            .chunks([30_000])
            .codecs([Codec::delta()])
    };
    let a = array(&w, spec(100_000));
    a.write_slice(Region::all(), &cells).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
    let b: Array<i16> = w
        .create_array(
            "b",
            ArraySpec::new(region![0..100_000]).codecs([Codec::delta()]),
        )
        .unwrap();
    b.write_slice(Region::all(), &small).unwrap();
    assert_eq!(b.read_vec(Region::all()).unwrap(), small);
    let floats = ArraySpec::<f32>::new(region![0..4]).codecs([Codec::delta()]);
    let e = w.create_array("f", floats).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("delta"), "{e}");
}

#[test]
fn c63_chunks_that_are_too_large_are_refused_at_creation_with_their_size() {
    let w = writer();
    let big = |data_type: DataType, chunks: &[u64]| {
        let rank = chunks.len();
        let domain = orthant::Domain::new(vec![0..10; rank]).unwrap();
        let spec = DynArraySpec::new(data_type, domain).chunks(chunks.iter().copied());
        w.create_dyn_array("a", &spec).map(drop)
    };
    for (data_type, chunks) in [
        (DataType::Float32, vec![1000, 1000, 1000]),
        (DataType::Uint8, vec![1 << 32]),
        (DataType::Uint8, vec![1 << 63]),
        (DataType::Float64, vec![1 << 40, 1 << 40]),
        (DataType::Uint8, vec![(1 << 31) + 1]),
    ] {
        let e = big(data_type, &chunks).unwrap_err();
        assert!(
            matches!(
                e.kind(),
                ErrorKind::LimitExceeded | ErrorKind::InvalidArgument
            ),
            "{e}"
        );
        let text = e.to_string();
        assert!(text.contains("at most"), "{text}");
    }
    let e = big(DataType::Float32, &[1000, 1000, 1000]).unwrap_err();
    let text = e.to_string();
    for part in ["1000", "4000000000", "GiB"] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    assert_eq!(w.root().members().unwrap().count(), 0);
    big(DataType::Uint8, &[(1 << 31) - 1]).unwrap();
}

#[cfg(all(feature = "zstd", feature = "lz4", feature = "deflate"))]
#[test]
fn c64_a_small_payload_with_a_huge_claim_costs_nothing() {
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..64 {
        deflated.write_all(&zeros).unwrap();
    }
    let bomb = deflated.finish().unwrap();
    let lz4_bomb = {
        let body = lz4_flex::block::compress(&zeros);
        [&(1_u32 << 20).to_le_bytes()[..], &body].concat()
    };
    let lz4_claim = [&u32::MAX.to_le_bytes()[..], &[0]].concat();
    // Magic, no single segment, window descriptor of 2^31, one last raw block of a byte.
    let window = hex("28b52ffd00a8090000aa");
    for (codec, payloads) in [
        (Codec::zlib(6), vec![vec![], vec![0xFF; 4], bomb]),
        (
            Codec::lz4(),
            vec![vec![], vec![0xFF; 4], lz4_bomb, lz4_claim],
        ),
        (Codec::zstd(3), vec![vec![], vec![0xFF; 4], window]),
        (Codec::gzip(6), vec![vec![], vec![0xFF; 4]]),
    ] {
        let (c, _) = bytes_in_one_chunk(4096, std::slice::from_ref(&codec), &[1; 4096]);
        for payload in payloads {
            if payload.is_empty() {
                // The engine stores no empty payload; a file that claims one is refused by the record's rule.
                continue;
            }
            let c = with_payload(&c, 1, &[0], &payload);
            let ((e, peak), took) = timed(|| peak_of(|| read(&c).unwrap_err()));
            assert!(
                e.is_corruption() || e.kind() == ErrorKind::LimitExceeded,
                "{codec:?}: {e}"
            );
            assert!(peak < 1 << 20, "{codec:?}: {peak} bytes");
            assert!(
                took < within(Duration::from_millis(100)),
                "{codec:?}: {took:?}"
            );
        }
    }
}
