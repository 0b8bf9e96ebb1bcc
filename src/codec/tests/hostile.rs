//! Payloads that are cut, damaged or forged: an error or a chunk of the right length, in time and memory that follow
//! from the chunk, never a panic.

use std::time::{Duration, Instant};

use super::*;
use crate::codec::VariableItems;
use crate::error::{Error, ErrorKind};

/// Longest time that any of these payloads may take; a debug build on a busy machine included.
const PATIENCE: Duration = Duration::from_millis(500);

fn chains() -> Vec<String> {
    let mut chains: Vec<String> = ["raw", "shuffle", "crc32c", "fletcher32", "delta,bytes:big"]
        .map(str::to_owned)
        .to_vec();
    for name in compressors() {
        chains.push(name.to_owned());
        chains.push(format!("shuffle,{name}"));
        chains.push(format!("crc32c,{name},{name}"));
        chains.push(format!("transpose:1/0,{name},crc32c"));
    }
    chains
}

/// Decodes, and checks what every error must be and that success means a chunk written whole.
fn attempt(p: &Pipeline, payload: &[u8], what: &str) -> Option<Vec<u8>> {
    let start = Instant::now();
    // Two different fills: bytes that were left alone would differ.
    let mut chunks = [0x55u8, 0xaa].map(|fill| vec![fill; p.decoded_len()]);
    let results = chunks.each_mut().map(|chunk| {
        p.decode(payload, 0, chunk)
            .map_err(|e| expect_damage(&e, what))
    });
    assert!(
        start.elapsed() < PATIENCE,
        "{what} took {:?}",
        start.elapsed()
    );
    match results {
        [Ok(()), Ok(())] => {
            assert!(chunks[0] == chunks[1], "{what}: bytes were left unwritten");
            let [chunk, _] = chunks;
            Some(chunk)
        }
        [Err(()), Err(())] => None,
        _ => panic!("{what}: two answers for one payload"),
    }
}

fn expect_damage(e: &Error, what: &str) {
    let kinds = [ErrorKind::Corrupt, ErrorKind::LimitExceeded];
    assert!(kinds.contains(&e.kind()), "{what}: {e:?}");
}

#[test]
fn every_prefix_of_a_payload_is_an_error() {
    for chain in chains() {
        let p = pipeline(&chain, &DataType::Int32, &[5, 4]).unwrap();
        for chunk in [noise(80), vec![3; 80]] {
            let payload = encoded(&p, &chunk);
            for len in 0..payload.len() {
                let what = format!("{chain}: {len} of {} bytes", payload.len());
                assert_eq!(attempt(&p, &payload[..len], &what), None, "{what}");
            }
        }
    }
}

#[test]
fn a_byte_too_many_is_an_error() {
    for chain in chains() {
        let p = pipeline(&chain, &DataType::Int32, &[5, 4]).unwrap();
        for extra in [&[0][..], &[0xff], &[0; 64]] {
            let mut payload = encoded(&p, &[3; 80]);
            payload.extend(extra);
            assert_eq!(attempt(&p, &payload, &chain), None, "{chain} and {extra:?}");
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_a_chunk_written_whole_and_a_checksum_always_sees_it() {
    for chain in chains() {
        let p = pipeline(&chain, &DataType::Int32, &[5, 4]).unwrap();
        for chunk in [noise(80), (0..80).collect()] {
            let mut payload = encoded(&p, &chunk);
            for bit in 0..payload.len() * 8 {
                payload[bit >> 3] ^= 1 << (bit & 7);
                let what = format!("{chain}: bit {bit}");
                let found = attempt(&p, &payload, &what);
                let seen = chain.ends_with("crc32c") || chain.ends_with("fletcher32");
                assert!(!seen || found.is_none(), "{what}");
                payload[bit >> 3] ^= 1 << (bit & 7);
            }
        }
    }
}

#[test]
fn noise_is_no_payload_of_anything_that_checks() {
    let forged = noise(4096);
    for chain in chains()
        .iter()
        .filter(|c| c.contains(':') || c.contains("lz4") || c.contains("32"))
    {
        if chain == "delta,bytes:big" {
            continue;
        }
        let p = pipeline(chain, &DataType::Int32, &[32, 32]).unwrap();
        for len in [0, 1, 3, 4, 5, 12, 18, 100, 4096] {
            let what = format!("{chain}: noise of {len}");
            assert_eq!(attempt(&p, &forged[..len], &what), None, "{what}");
        }
    }
}

#[test]
fn a_right_checksum_does_not_make_a_wrong_length_right() {
    for name in compressors() {
        let chain = format!("{name},crc32c");
        for len in [79, 81, 4096, 0] {
            let payload = encoded(&of_bytes(&chain, len), &vec![9; len]);
            assert_eq!(
                attempt(&of_bytes(&chain, 80), &payload, &chain),
                None,
                "{chain} of {len}"
            );
        }
    }
    for list in ["raw", "shuffle", "crc32c", "fletcher32"] {
        for len in [79, 81] {
            let payload = encoded(&of_bytes(list, len), &vec![9; len]);
            assert_eq!(
                attempt(&of_bytes(list, 80), &payload, list),
                None,
                "{list} of {len}"
            );
        }
    }
}

#[test]
fn a_payload_that_expands_without_end_is_given_up_at_the_chunks_length() {
    // 32 MiB of zeros in a few KiB, offered as a chunk of 4096 bytes, alone and behind another compressor.
    const LEN: usize = 32 << 20;
    let zeros = vec![0; LEN];
    for name in compressors() {
        if name == "zlib:0" || name == "gzip:0" {
            continue;
        }
        let bomb = encoded(&of_bytes(name, LEN), &zeros);
        assert_eq!(attempt(&of_bytes(name, 4096), &bomb, name), None);
        let twice = format!("{name},{name}");
        let bomb = encoded(&of_bytes(&twice, LEN), &zeros);
        assert_eq!(attempt(&of_bytes(&twice, 4096), &bomb, &twice), None);
        let text = pipeline(name, &DataType::String, &[2]).unwrap();
        let start = Instant::now();
        expect_damage(&text.decode_variable(&bomb, 0).unwrap_err(), name);
        assert!(start.elapsed() < PATIENCE);
    }
}

#[cfg(feature = "lz4")]
#[test]
fn an_lz4_size_is_not_believed() {
    let p = of_bytes("lz4", 4096);
    for size in [
        0u32,
        1,
        4095,
        4097,
        1 << 30,
        0x7fff_ffff,
        0x8000_0000,
        u32::MAX,
    ] {
        let mut payload = encoded(&p, &[7; 4096]);
        payload[..4].copy_from_slice(&size.to_le_bytes());
        assert_eq!(attempt(&p, &payload, &format!("size {size}")), None);
    }
    // Nothing but a size; a match before the start of the output.
    assert_eq!(attempt(&p, &[0xff; 4], "only a size"), None);
    let before = [
        0, 16, 0, 0, 0x4f, 1, 2, 3, 4, 0xff, 0xff, 200, 0x50, 1, 2, 3, 4, 5,
    ];
    assert_eq!(attempt(&p, &before, "a match before the start"), None);
    // Items of variable length: the size may be anything up to the limit, but not more than a block can hold.
    let text = pipeline("lz4", &DataType::String, &[1]).unwrap();
    let e = text
        .decode_variable(&[0xff, 0xff, 0xff, 0x7f, 0, 0], 0)
        .unwrap_err();
    assert!(
        e.to_string()
            .contains("2147483647 bytes claimed by a block of 2"),
        "{e}"
    );
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_header_is_not_believed() {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let p = of_bytes("zstd", 4096);
    let good = encoded(&p, &[7; 4096]);
    let frame = |head: &[u8]| [&MAGIC, head, &[3, 0, 0, 0]].concat();
    // Windows of 2 GiB and of the largest size there is; a dictionary; a reserved bit.
    for head in [&[0x00, 0xa8][..], &[0x00, 0xff], &[0x21, 5, 0], &[0x28, 0]] {
        assert_eq!(attempt(&p, &frame(head), &format!("{head:02x?}")), None);
    }
    let e = decoded(&p, &frame(&[0x00, 0xa8])).unwrap_err();
    assert!(e.to_string().contains("window"), "{e}");
    assert_eq!(e.kind(), ErrorKind::LimitExceeded);
    // A skippable frame before, behind, and one that claims 4 GiB; two frames; many empty ones.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9];
    let endless = [0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff];
    let empty = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    for (payload, what) in [
        ([&skippable, &good[..]].concat(), "skippable before"),
        ([&good[..], &skippable].concat(), "skippable behind"),
        (endless.to_vec(), "skippable without end"),
        ([&good[..], &good].concat(), "twice"),
        (empty.repeat(1_000_000), "a million empty frames"),
        (
            [&empty.repeat(1000)[..], &good].concat(),
            "empty frames before",
        ),
    ] {
        assert_eq!(attempt(&p, &payload, what), None, "{what}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_large_window_is_refused_by_the_limit_that_is_set() {
    let specs = resolve(&[Codec::zstd(1)], &DataType::Uint8).unwrap();
    let mut limits = Limits::default();
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x70, 0x0b, 0, 0, 7];
    // A run of one byte: its window of 16 MiB is what is asked about.
    for (max, fits) in [(1 << 24, true), ((1 << 24) - 1, false)] {
        limits.zstd_window_bytes = max;
        let p = Pipeline::new(&specs, &DataType::Uint8, &[1], &[0], &limits).unwrap();
        assert_eq!(decoded(&p, &frame).is_ok(), fits, "limit {max}");
    }
}

#[cfg(feature = "deflate")]
#[test]
fn deflate_framings_are_not_mixed_up_and_idle_blocks_end() {
    let chunk = vec![7; 4096];
    let (zlib, gzip) = (of_bytes("zlib:6", 4096), of_bytes("gzip:6", 4096));
    let (z, g) = (encoded(&zlib, &chunk), encoded(&gzip, &chunk));
    assert_eq!(g[4..8], [0; 4], "the time in a gzip header");
    assert_eq!(attempt(&zlib, &g, "gzip as zlib"), None);
    assert_eq!(attempt(&gzip, &z, "zlib as gzip"), None);
    assert_eq!(attempt(&zlib, &z[2..], "bare deflate"), None);
    assert_eq!(attempt(&gzip, &[&g[..], &g].concat(), "two members"), None);
    // A million empty stored blocks, none of them the last.
    let idle = [&[0x78, 0x9c][..], &[0, 0, 0, 0xff, 0xff].repeat(1_000_000)].concat();
    assert_eq!(attempt(&zlib, &idle, "idle blocks"), None);
    // The checksum at the end belongs to the stream.
    let mut wrong = z.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(attempt(&zlib, &wrong, "a wrong Adler-32"), None);
}

#[test]
fn forged_counts_and_lengths_of_variable_items_reserve_nothing() {
    let p = pipeline("raw", &DataType::Bytes, &[3]).unwrap();
    let items: VariableItems = ["ab", "", "c"].iter().collect();
    let mut payload = Vec::new();
    p.encode_variable(&items, &mut payload).unwrap();
    for at in 0..payload.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut forged = payload.clone();
            forged[at] = value;
            match p.decode_variable(&forged, 0) {
                Ok(items) => assert_eq!(items.len(), 3),
                Err(e) => expect_damage(&e, "variable items"),
            }
        }
    }
    // As many items as the limit allows, in a payload of four bytes.
    let p = pipeline("raw", &DataType::Bytes, &[1 << 29]).unwrap();
    let e = p
        .decode_variable(&(1u32 << 29).to_le_bytes(), 0)
        .unwrap_err();
    assert!(e.is_corruption(), "{e}");
}
