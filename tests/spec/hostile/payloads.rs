//! Hostile payloads: bombs, streams that end early, late or never, shards that name what is not theirs. The index has their
//! right checksums, so that only the decoders stand in the way.

use orthant::ErrorKind::{Corrupt, LimitExceeded, Unsupported};
use orthant::testing::RawPipeline;
use orthant::{Codec, DataType};

use super::cases::Expect::{Bad, Reads};
use super::cases::{Case, with_payload, with_typed_payload};
use super::forge::crc32c;

/// What a bomb becomes: 16 MiB, where four bytes are right.
const BOMB: usize = 16 << 20;

const ZSTD: &str =
    r#"[{"name":"bytes"},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#;
const ZLIB: &str = r#"[{"name":"bytes"},{"name":"numcodecs.zlib","configuration":{"level":1}}]"#;
const GZIP: &str = r#"[{"name":"bytes"},{"name":"gzip","configuration":{"level":5}}]"#;
const LZ4: &str =
    r#"[{"name":"bytes"},{"name":"numcodecs.lz4","configuration":{"acceleration":1}}]"#;
const CRC: &str = r#"[{"name":"bytes"},{"name":"crc32c"}]"#;
const FLETCHER: &str = r#"[{"name":"bytes"},{"name":"numcodecs.fletcher32"}]"#;

/// Bytes as a codec encodes them.
fn encoded(codec: Codec, decoded: &[u8]) -> Vec<u8> {
    let shape = [decoded.len() as u64];
    let pipeline = RawPipeline::new(&[codec], &DataType::Uint8, &shape).unwrap();
    pipeline.encode(decoded).unwrap()
}

/// Streams of each decoder.
pub fn streams() -> Vec<Case> {
    let bad = |name: &str, codecs: &str, payload: &[u8]| {
        Case::new(
            format!("payload_{name}"),
            with_payload(codecs, payload),
            Bad(Corrupt),
        )
    };
    let mut all = Vec::new();
    type Kind = (&'static str, &'static str, fn() -> Codec);
    let kinds: [Kind; 4] = [
        ("zstd", ZSTD, || Codec::zstd(19)),
        ("zlib", ZLIB, || Codec::zlib(9)),
        ("gzip", GZIP, || Codec::gzip(9)),
        ("lz4", LZ4, Codec::lz4),
    ];
    for (name, codecs, codec) in kinds {
        let right = encoded(codec(), &[1, 2, 3, 4]);
        let fine = with_payload(codecs, &right);
        let named = |what: &str| format!("{name}_{what}");
        all.extend([
            Case::new(
                format!("payload_{name}_sound"),
                fine,
                Reads(vec![1, 2, 3, 4]),
            ),
            bad(&named("bomb"), codecs, &encoded(codec(), &vec![0; BOMB])),
            bad(
                &named("one_byte_more"),
                codecs,
                &encoded(codec(), &[1, 2, 3, 4, 5]),
            ),
            bad(
                &named("one_byte_less"),
                codecs,
                &encoded(codec(), &[1, 2, 3]),
            ),
            bad(&named("of_nothing"), codecs, &encoded(codec(), &[])),
            bad(&named("cut"), codecs, &right[..right.len() - 1]),
            bad(&named("with_a_tail"), codecs, &[&right[..], &[0]].concat()),
            bad(&named("twice"), codecs, &[&right[..], &right].concat()),
            bad(&named("garbage"), codecs, &[0xA5; 64]),
            bad(&named("zeros"), codecs, &[0; 64]),
        ]);
    }
    let frame = |rest: &[u8]| [&[0x28, 0xB5, 0x2F, 0xFD][..], rest].concat();
    let skippable = [
        &[0x50, 0x2A, 0x4D, 0x18, 0xF0, 0xFF, 0xFF, 0xFF][..],
        &[0; 16],
    ]
    .concat();
    let empty_frame = frame(&[0x20, 0, 1, 0, 0]);
    all.extend([
        bad("zstd_skippable_frame", ZSTD, &skippable),
        bad(
            "zstd_100000_empty_frames",
            ZSTD,
            &empty_frame.repeat(100_000),
        ),
        // A window of 2^41 bytes; four bytes follow, raw.
        Case::new(
            "payload_zstd_window",
            with_payload(ZSTD, &frame(&[0x00, 0xF8, 0x21, 0, 0, 1, 2, 3, 4])),
            Bad(LimitExceeded),
        ),
        bad(
            "zstd_with_a_dictionary",
            ZSTD,
            &frame(&[0x21, 7, 4, 0x21, 0, 0, 1, 2, 3, 4]),
        ),
        bad(
            "zstd_that_says_more",
            ZSTD,
            &frame(&[0xA0, 0xFF, 0xFF, 0xFF, 0x7F, 0x21, 0, 0, 1, 2, 3, 4]),
        ),
        bad(
            "zstd_of_a_reserved_block",
            ZSTD,
            &frame(&[0x20, 4, 0x27, 0, 0, 1, 2, 3, 4]),
        ),
        // 100,000 empty stored blocks, and no end.
        bad(
            "zlib_of_empty_blocks",
            ZLIB,
            &[&[0x78, 1][..], &[0, 0, 0, 0xFF, 0xFF].repeat(100_000)].concat(),
        ),
        bad(
            "zlib_that_is_gzip",
            ZLIB,
            &encoded(Codec::gzip(5), &[1, 2, 3, 4]),
        ),
        bad(
            "gzip_that_is_zlib",
            GZIP,
            &encoded(Codec::zlib(5), &[1, 2, 3, 4]),
        ),
        bad(
            "gzip_with_an_endless_name",
            GZIP,
            &[&[0x1F, 0x8B, 8, 8, 0, 0, 0, 0, 0, 3][..], &[b'n'; 100_000]].concat(),
        ),
        // A match that begins before the output does.
        bad(
            "lz4_match_before_the_start",
            LZ4,
            &[4, 0, 0, 0, 0x10, 7, 2, 0],
        ),
        bad("lz4_match_of_offset_0", LZ4, &[4, 0, 0, 0, 0x10, 7, 0, 0]),
        bad(
            "lz4_of_a_negative_size",
            LZ4,
            &[0xFF, 0xFF, 0xFF, 0xFF, 0x40, 1, 2, 3, 4],
        ),
        bad(
            "lz4_of_endless_length",
            LZ4,
            &[&[4, 0, 0, 0, 0xF0][..], &[0xFF; 1000]].concat(),
        ),
        bad("crc32c_of_three_bytes", CRC, &[1, 2, 3]),
        bad("crc32c_wrong", CRC, &[1, 2, 3, 4, 0, 0, 0, 0]),
        bad("crc32c_of_nothing", CRC, &crc32c(&[]).to_le_bytes()),
        bad(
            "crc32c_right_and_short",
            CRC,
            &[&[1, 2, 3][..], &crc32c(&[1, 2, 3]).to_le_bytes()].concat(),
        ),
        bad("fletcher32_of_two_bytes", FLETCHER, &[1, 2]),
        bad("fletcher32_wrong", FLETCHER, &[1, 2, 3, 4, 9, 9, 9, 9]),
        bad("raw_too_short", super::forge::RAW, &[1, 2, 3]),
        bad("raw_too_long", super::forge::RAW, &[1, 2, 3, 4, 5]),
    ]);
    all
}

/// Elements and parameters that a payload of the right length cannot have.
pub fn elements() -> Vec<Case> {
    let typed = |name: &str, data_type: &str, fill: &str, codecs: &str, payload: &[u8], kind| {
        let bytes = with_typed_payload(data_type, fill, &[(0, 2)], "[2]", codecs, payload);
        Case::new(format!("payload_{name}"), bytes, Bad(kind))
    };
    let text = r#"[{"name":"vlen-utf8"}]"#;
    let with = |codec: &str| format!("[{{\"name\":\"bytes\"}},{codec}]");
    let list = |n: u32, rest: &[u8]| [&n.to_le_bytes()[..], rest].concat();
    let codec = |name: &str, codec: &str, kind| {
        let payload = [1, 2, 3, 4];
        Case::new(
            format!("codec_{name}"),
            with_payload(codec, &payload),
            Bad(kind),
        )
    };
    let shuffled = |n: &str| {
        with(&format!(
            "{{\"name\":\"numcodecs.shuffle\",\"configuration\":{{\"elementsize\":{n}}}}}"
        ))
    };
    let zstd = |level: &str| {
        with(&format!(
            "{{\"name\":\"zstd\",\"configuration\":{{\"level\":{level},\"checksum\":false}}}}"
        ))
    };
    let delta = r#"[{"name":"numcodecs.delta","configuration":{"dtype":"<i4"}},{"name":"bytes"}]"#;
    let transpose = r#"[{"name":"transpose","configuration":{"order":[1]}},{"name":"bytes"}]"#;
    vec![
        typed(
            "bool_of_2",
            "\"bool\"",
            "false",
            super::forge::RAW,
            &[1, 2],
            Corrupt,
        ),
        typed(
            "text_not_utf8",
            "\"string\"",
            "\"\"",
            text,
            &list(2, &[1, 0, 0, 0, 0xFF, 0, 0, 0, 0]),
            Corrupt,
        ),
        typed(
            "text_of_too_few",
            "\"string\"",
            "\"\"",
            text,
            &list(1, &[0; 4]),
            Corrupt,
        ),
        typed(
            "text_of_too_many",
            "\"string\"",
            "\"\"",
            text,
            &list(3, &[0; 12]),
            Corrupt,
        ),
        typed(
            "text_of_4_gi",
            "\"string\"",
            "\"\"",
            text,
            &list(u32::MAX, &[0; 12]),
            Corrupt,
        ),
        typed(
            "text_of_4_gib",
            "\"string\"",
            "\"\"",
            text,
            &list(2, &[0xFF; 8]),
            Corrupt,
        ),
        typed(
            "text_cut",
            "\"string\"",
            "\"\"",
            text,
            &list(2, &[0, 0, 0]),
            Corrupt,
        ),
        typed(
            "text_with_a_tail",
            "\"string\"",
            "\"\"",
            text,
            &list(2, &[0; 9]),
            Corrupt,
        ),
        codec("shuffle_of_0", &shuffled("0"), Corrupt),
        codec("shuffle_of_minus_1", &shuffled("-1"), Corrupt),
        codec("shuffle_of_2_to_the_31", &shuffled("2147483648"), Corrupt),
        codec("zstd_level_99", &zstd("99"), Corrupt),
        codec("zstd_level_of_text", &zstd("\"high\""), Corrupt),
        codec("delta_of_another_type", delta, Corrupt),
        codec("transpose_out_of_range", transpose, Corrupt),
        codec(
            "blosc",
            &with(
                r#"{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":1,"blocksize":0}}"#,
            ),
            // With the codec at hand, the payload is no frame.
            if cfg!(feature = "blosc") {
                Corrupt
            } else {
                Unsupported
            },
        ),
    ]
}

/// Shards of four inner chunks of one byte, indexes at the end, both with checksums where not said otherwise.
pub fn shards() -> Vec<Case> {
    let codecs = |inner: &str, location: &str| {
        format!(
            r#"[{{"name":"sharding_indexed","configuration":{{"chunk_shape":{inner},"codecs":[{{"name":"bytes"}}],"index_codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}},{{"name":"crc32c"}}],"index_location":"{location}"}}}}]"#
        )
    };
    const NONE: u64 = u64::MAX;
    let index = |entries: &[(u64, u64)]| {
        let mut bytes = Vec::new();
        for (offset, len) in entries {
            bytes.extend(offset.to_le_bytes());
            bytes.extend(len.to_le_bytes());
        }
        let crc = crc32c(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    };
    let end = codecs("[1]", "end");
    let shard = |entries: &[(u64, u64)]| [&[1, 2, 3, 4][..], &index(entries)].concat();
    let case = |name: &str, payload: &[u8], expect| {
        Case::new(format!("shard_{name}"), with_payload(&end, payload), expect)
    };
    let bad = |name: &str, entries: &[(u64, u64)]| case(name, &shard(entries), Bad(Corrupt));
    let config = |name: &str, codecs: &str, kind| {
        let payload = shard(&[(0, 1), (1, 1), (2, 1), (3, 1)]);
        Case::new(
            format!("shard_{name}"),
            with_payload(codecs, &payload),
            Bad(kind),
        )
    };
    let rest = [(1, 1), (2, 1), (3, 1)];
    let first = |offset, len| [&[(offset, len)][..], &rest].concat();
    let mut torn = shard(&first(0, 1));
    let last = torn.len() - 1;
    torn[last] ^= 1;
    vec![
        case("sound", &shard(&first(0, 1)), Reads(vec![1, 2, 3, 4])),
        case(
            "of_nothing_but_absence",
            &index(&[(NONE, NONE); 4]),
            Reads(vec![0; 4]),
        ),
        case(
            "with_one_absent",
            &shard(&first(NONE, NONE)),
            Reads(vec![0, 2, 3, 4]),
        ),
        bad("offset_after_the_end", &first(1000, 1)),
        bad("offset_overflowing", &first(NONE - 1, 4)),
        bad("half_absent_offset", &first(NONE, 1)),
        bad("half_absent_length", &first(0, NONE)),
        bad("length_0", &first(0, 0)),
        bad("length_after_the_end", &first(0, 1 << 40)),
        bad("in_its_own_index", &first(4, 1)),
        bad("overlapping", &first(1, 1)),
        bad("longer_than_its_neighbour_allows", &first(0, 2)),
        case("index_of_another_checksum", &torn, Bad(Corrupt)),
        case("shorter_than_its_index", &[1; 20], Bad(Corrupt)),
        case("of_one_byte", &[1], Bad(Corrupt)),
        config("inner_that_does_not_divide", &codecs("[3]", "end"), Corrupt),
        config(
            "inner_longer_than_the_shard",
            &codecs("[8]", "end"),
            Corrupt,
        ),
        config("inner_of_0", &codecs("[0]", "end"), Corrupt),
        config("inner_of_two_axes", &codecs("[1,1]", "end"), Corrupt),
        config("index_in_the_middle", &codecs("[1]", "middle"), Corrupt),
        config("index_at_the_start", &codecs("[1]", "start"), Corrupt),
    ]
}
