//! Documents: what is read, what is refused, and the text each is written as.

use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;

/// The worked examples of the specification.
const SHARDED: &str = r#"{"zarr_format":3,"node_type":"array","shape":[72,720,1440],"data_type":"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[48,360,720]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":"NaN","codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[24,180,360],"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}},{"name":"crc32c"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}],"dimension_names":["time","y","x"],"orthant":{"must_understand":false,"domain":[[-72,0],[0,720],[0,1440]],"origin":[0,0,0],"key_order":[0,1,2]}}"#;
const GROUP: &str = r#"{"zarr_format":3,"node_type":"group"}"#;
const PLAIN: &str = r#"{"zarr_format":3,"node_type":"array","shape":[10,20],"data_type":"float64","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,5]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":-9999.0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}],"orthant":{"must_understand":false,"domain":[[-5,5],[0,20]],"origin":[0,0],"key_order":[0,1]}}"#;

fn parse(text: &str) -> Result<Document> {
    Document::parse(text.as_bytes(), &Limits::default())
}

fn plain() -> ArrayDocument {
    ArrayDocument::parse(PLAIN.as_bytes(), &Limits::default()).unwrap()
}

/// The error of `PLAIN` with one piece of text replaced.
fn fault_of(from: &str, to: &str) -> Error {
    assert!(PLAIN.contains(from), "{from}");
    parse(&PLAIN.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn the_worked_examples_come_back_byte_for_byte() {
    for text in [SHARDED, GROUP, PLAIN] {
        let document = parse(text).unwrap();
        assert_eq!(document.to_text(), text);
        assert!(document.is_canonical(text.as_bytes()));
    }
    let array = ArrayDocument::parse(SHARDED.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(array.domain, [(-72, 0), (0, 720), (0, 1440)]);
    assert_eq!(array.chunk_shape, [48, 360, 720]);
    assert_eq!(array.inner_chunk_shape().unwrap(), [24, 180, 360]);
    assert_eq!(array.fill, f32::NAN.to_le_bytes());
    assert_eq!(array.dimension_names[0].as_deref(), Some("time"));
    assert_eq!(plain().inner_chunk_shape(), None);
}

#[test]
fn a_document_in_another_order_or_spelling_reads_the_same_and_is_told_apart() {
    let other = r#"{ "node_type":"array","orthant":{"key_order":[0,1],"origin":[0,0],"domain":[[-5,5],[0,20]],"must_understand":false},"x":{"b":1,"a":[]},"codecs":["bytes"],"fill_value":"0xc0c3878000000000","chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"chunk_grid":{"configuration":{"chunk_shape":[4,5]},"name":"regular"},"data_type":{"name":"float64"},"shape":[10,20],"zarr_format":3,"a":null}"#;
    let Document::Array(array) = parse(other).unwrap() else {
        panic!("an array")
    };
    assert_eq!(array.fill, (-9999.0_f64).to_le_bytes());
    assert_eq!(
        (&array.domain, &array.chunk_shape),
        (&plain().domain, &plain().chunk_shape)
    );
    assert!(!Document::Array(array.clone()).is_canonical(other.as_bytes()));
    assert!(
        array
            .to_text()
            .ends_with(r#""key_order":[0,1]},"x":{"b":1,"a":[]},"a":null}"#)
    );
    let again = ArrayDocument::parse(array.to_text().as_bytes(), &Limits::default()).unwrap();
    assert_eq!(again, *array);
}

#[test]
fn a_forbidden_value_is_corrupt_and_the_member_is_named() {
    for (from, to, named) in [
        ("\"zarr_format\":3", "\"zarr_format\":2", "zarr_format"),
        ("\"array\"", "\"table\"", "node_type"),
        ("\"shape\":[10,20]", "\"shape\":[10,21]", "shape"),
        ("\"shape\":[10,20]", "\"shape\":[10]", "shape"),
        ("\"shape\":[10,20]", "\"shape\":10", "shape"),
        ("\"shape\":[10,20],", "", "shape"),
        ("[4,5]", "[4,0]", "chunk length on axis 1"),
        ("[4,5]", "[4]", "chunk shape"),
        ("[4,5]", "[4,-5]", "chunk_shape"),
        ("[4,5]", "[4,5.0]", "chunk_shape"),
        (
            "\"separator\":\"/\"",
            "\"separator\":\".\"",
            "chunk_key_encoding",
        ),
        ("-9999.0", "\"abc\"", "value for type float64"),
        ("-9999.0", "1e999", "JSON text"),
        ("\"bytes\"", "\"zstd\"", "codecs"),
        ("[-5,5]", "[5,-5]", "domain on axis 0"),
        ("[-5,5]", "[-9223372036854775808,5]", "domain on axis 0"),
        ("[0,20]", "[0,9223372036854775807]", "domain on axis 1"),
        ("[-5,5]", "[-5]", "domain"),
        (
            "\"origin\":[0,0]",
            "\"origin\":[0,4611686018427387903]",
            "origin on axis 1",
        ),
        ("\"origin\":[0,0]", "\"origin\":[0]", "origin"),
        ("\"key_order\":[0,1]", "\"key_order\":[0,0]", "key order"),
        ("\"key_order\":[0,1]", "\"key_order\":[1,2]", "key order"),
        ("\"orthant\"", "\"other\"", "orthant"),
        ("\"must_understand\":false,", "", "must_understand"),
        (
            "\"orthant\"",
            "\"dimension_names\":[\"x\",\"x\"],\"orthant\"",
            "names of axes",
        ),
        (
            "\"orthant\"",
            "\"dimension_names\":[\"\",null],\"orthant\"",
            "name of an axis",
        ),
        (
            "\"orthant\"",
            "\"dimension_names\":[\"x\"],\"orthant\"",
            "dimension names",
        ),
        (
            "\"orthant\"",
            "\"dimension_names\":[1,2],\"orthant\"",
            "dimension_names",
        ),
    ] {
        let e = fault_of(from, to);
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{to}: {e}");
        assert!(e.what().contains(named), "{to}: {e}");
    }
}

#[test]
fn what_a_later_version_may_say_is_unsupported_and_named() {
    for (from, to, named) in [
        ("\"float64\"", "\"float128\"", "float128"),
        ("\"regular\"", "\"rectilinear\"", "rectilinear"),
        ("\"zstd\"", "\"pcodec\"", "pcodec"),
        ("\"domain\"", "\"requires\":[\"clip\"],\"domain\"", "clip"),
        ("\"domain\"", "\"period\":1,\"domain\"", "period"),
        (
            "\"must_understand\":false",
            "\"must_understand\":true",
            "true",
        ),
    ] {
        let e = fault_of(from, to);
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{to}: {e}");
        assert!(e.to_string().contains(named), "{to}: {e}");
    }
    let group = r#"{"zarr_format":3,"node_type":"group","orthant":{"must_understand":false,"requires":["x"]}}"#;
    assert_eq!(parse(group).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn domains_and_origins_pass_at_the_index_limit() {
    let mut array = plain();
    array.domain = vec![(-INDEX_MAX, UPPER_MAX), (INDEX_MAX, UPPER_MAX)];
    array.origin = vec![-INDEX_MAX, INDEX_MAX];
    let text = array.to_text();
    assert!(text.contains("\"shape\":[9223372036854775805,1]"), "{text}");
    assert_eq!(
        ArrayDocument::parse(text.as_bytes(), &Limits::default()).unwrap(),
        array
    );
    array.domain[0].0 -= 1;
    assert_eq!(
        array
            .validate(&Limits::default())
            .unwrap_err()
            .reason_code(),
        Some("index_limit")
    );
}

#[test]
fn the_rank_may_be_0_to_32() {
    let mut array = plain();
    for rank in [0, 32, 33] {
        array.domain = vec![(0, 1); rank];
        array.origin = vec![0; rank];
        array.chunk_shape = vec![1; rank];
        array.dimension_names = vec![None; rank];
        array.key_order = (0..33).take(rank).collect();
        assert_eq!(
            array.validate(&Limits::default()).is_ok(),
            rank <= 32,
            "{rank}"
        );
    }
    array.domain.truncate(0);
    assert!(array.validate(&Limits::default()).is_err());
}

#[test]
fn c49_a_chunk_length_of_zero_is_refused_by_axis_and_a_zero_length_axis_is_not() {
    let mut array = plain();
    array.domain = vec![(0, 10), (0, 0)];
    array.chunk_shape = vec![5, 0];
    let e = array.validate(&Limits::default()).unwrap_err();
    assert_eq!(
        e.to_string(),
        "chunk length on axis 1: expected at least 1, found 0"
    );
    array.chunk_shape = vec![5, 1];
    array.validate(&Limits::default()).unwrap();
}

#[test]
fn c63_a_chunk_too_large_says_lengths_bytes_gib_and_the_limit() {
    let mut array = plain();
    array.data_type = DataType::Float32;
    array.fill = vec![0; 4];
    array.chunk_shape = vec![1_000_000, 1000];
    let e = array.validate(&Limits::default()).unwrap_err();
    assert_eq!(
        e.to_string(),
        "limit exceeded: decoded bytes of one chunk: expected at most 2147483648 bytes (2.00 GiB), \
         found 1000000 x 1000 elements of float32 = 4000000000 bytes (3.73 GiB); choose a smaller chunk shape"
    );
    array.data_type = DataType::Uint8;
    array.fill = vec![0];
    for (extent, fits) in [
        ((1 << 31) - 1, true),
        (1 << 31, true),
        ((1 << 31) + 1, false),
        ((1 << 32) - 1, false),
        (1 << 32, false),
        (1 << 63, false),
    ] {
        array.chunk_shape = vec![extent, 1];
        assert_eq!(array.validate(&Limits::default()).is_ok(), fits, "{extent}");
    }
    array.domain = vec![(0, 1); 32];
    array.origin = vec![0; 32];
    array.dimension_names = vec![None; 32];
    array.key_order = (0..32).collect();
    array.chunk_shape = vec![CHUNK_EXTENT_MAX; 32];
    let e = array.validate(&Limits::default()).unwrap_err();
    assert!(e.to_string().contains("more than 2^127 bytes"), "{e}");
}

#[test]
fn a_shard_needs_dividing_inner_chunks_within_the_count_and_its_own_pipelines() {
    let shard = |from: &str, to: &str| {
        assert!(SHARDED.contains(from));
        parse(&SHARDED.replacen(from, to, 1)).unwrap_err()
    };
    for (from, to, kind) in [
        ("[24,180,360]", "[24,180,361]", ErrorKind::Corrupt),
        ("[24,180,360]", "[96,180,360]", ErrorKind::Corrupt),
        ("[24,180,360]", "[0,180,360]", ErrorKind::Corrupt),
        ("[24,180,360]", "[24,180]", ErrorKind::Corrupt),
        ("\"end\"", "\"middle\"", ErrorKind::Corrupt),
        (
            "{\"name\":\"zstd\"",
            "{\"name\":\"nozstd\"",
            ErrorKind::Unsupported,
        ),
        (
            "\"index_codecs\":[{\"name\":\"bytes\"",
            "\"index_codecs\":[{\"name\":\"zstd\"",
            ErrorKind::Corrupt,
        ),
        (
            "\"codecs\":[{\"name\":\"bytes\"",
            "\"codecs\":[{\"name\":\"crc32c\"",
            ErrorKind::Corrupt,
        ),
    ] {
        let e = shard(from, to);
        assert_eq!(e.kind(), kind, "{to}: {e}");
    }
    let mut limits = Limits {
        inner_chunks: 8,
        ..Limits::default()
    };
    assert!(Document::parse(SHARDED.as_bytes(), &limits).is_ok());
    limits.inner_chunks = 7;
    let e = Document::parse(SHARDED.as_bytes(), &limits).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_transposed_shard_is_measured_in_its_transposed_shape() {
    let transposed = SHARDED.replacen(
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[24,180,360]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[360,24,180]",
        1,
    );
    assert_eq!(parse(&transposed).unwrap().to_text(), transposed);
    for order in ["[2,0]", "[2,0,0]", "[2,0,3]", "[2,0,-1]", "null"] {
        let broken = transposed.replacen("[2,0,1]", order, 1);
        assert_eq!(
            parse(&broken).unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{order}"
        );
    }
}

#[test]
fn a_pipeline_has_one_array_to_bytes_codec_that_fits_the_type() {
    let mut array = plain();
    let spec = |names: &str| names.split(' ').map(CodecSpec::new).collect::<Vec<_>>();
    for (data_type, names, fits) in [
        (DataType::Int8, "bytes", true),
        (
            DataType::Int8,
            "numcodecs.delta bytes numcodecs.shuffle zstd crc32c",
            true,
        ),
        (DataType::Int8, "zstd bytes", false),
        (DataType::Int8, "bytes numcodecs.delta", false),
        (DataType::Int8, "bytes bytes", false),
        (DataType::Int8, "numcodecs.delta", false),
        (
            DataType::Int8,
            "bytes gzip gzip gzip gzip gzip gzip gzip",
            true,
        ),
        (
            DataType::Int8,
            "bytes gzip gzip gzip gzip gzip gzip gzip gzip",
            false,
        ),
        (DataType::Int8, "vlen-utf8", false),
        (DataType::String, "vlen-utf8 zstd", true),
        (DataType::String, "bytes", false),
        (DataType::String, "vlen-bytes", false),
        (DataType::Bytes, "vlen-bytes", true),
    ] {
        array.fill = data_type.default_fill();
        array.data_type = data_type;
        array.codecs = spec(names);
        assert_eq!(array.validate(&Limits::default()).is_ok(), fits, "{names}");
    }
    array.codecs = Vec::new();
    assert!(array.validate(&Limits::default()).is_err());
    assert_eq!(
        CodecSpec::new("numcodecs.fletcher32").to_json().to_string(),
        r#"{"name":"numcodecs.fletcher32","configuration":{}}"#
    );
}

#[test]
fn c27_fill_values_beyond_2_53_survive_a_document() {
    let mut array = plain();
    for (data_type, fill, text) in [
        (
            DataType::Int64,
            i64::MIN.to_le_bytes(),
            "\"fill_value\":-9223372036854775808,",
        ),
        (
            DataType::Uint64,
            u64::MAX.to_le_bytes(),
            "\"fill_value\":18446744073709551615,",
        ),
    ] {
        array.data_type = data_type;
        array.fill = fill.to_vec();
        assert!(array.to_text().contains(text));
        assert_eq!(
            ArrayDocument::parse(array.to_text().as_bytes(), &Limits::default()).unwrap(),
            array
        );
    }
    array.fill.pop();
    assert!(
        array
            .validate(&Limits::default())
            .unwrap_err()
            .what()
            .contains("fill")
    );
}

#[test]
fn a_group_in_an_arrays_place_is_corrupt() {
    let e = ArrayDocument::parse(GROUP.as_bytes(), &Limits::default()).unwrap_err();
    assert!(e.is_corruption());
    for text in ["", "[]", "{}", "3", "{\"zarr_format\":3}"] {
        assert!(parse(text).unwrap_err().is_corruption(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_damaged_document_is_an_error_or_one_that_keeps_every_rule(
        which in 0..3_usize, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = [SHARDED, GROUP, PLAIN][which].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(document) = Document::parse(&bytes, &Limits::default()) {
            let text = document.to_text();
            let again = Document::parse(text.as_bytes(), &Limits::default()).unwrap();
            prop_assert_eq!(again.to_text(), text);
        }
    }
}
