//! Import of stores: what is taken as it is, what is cut or encoded anew, and what is refused.

use std::path::Path;

use crate::host::{Host, str_of, text_of};
use orthant::Json;

/// A Zarr store of one group with one array of 5 by 3 in chunks of 2 by 2, uncompressed, whose overhang is not fill.
fn store(host: &Host) -> [Vec<u8>; 5] {
    let root = host.path("s.zarr");
    std::fs::create_dir_all(root.join("a/c/0")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    write(
        "zarr.json",
        r#"{"zarr_format":3,"node_type":"group","attributes":{"title":"t","range":[NaN,1.5]}}"#,
    );
    write(
        "a/zarr.json",
        r#"{"zarr_format":3,"node_type":"array","shape":[5,3],"data_type":"uint8",
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,2]}},
        "chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":7,
        "codecs":[{"name":"bytes"}],"attributes":{"units":"m","n":9007199254740993},"dimension_names":["y",null]}"#,
    );
    let chunks = [
        ("0/0", vec![1, 2, 3, 4]),
        ("0/1", vec![5, 99, 6, 99]),
        ("2/0", vec![8, 9, 99, 99]),
        ("2/1", vec![10, 7, 7, 7]),
        ("5/0", vec![0, 0, 0, 0]),
    ];
    for (key, bytes) in &chunks {
        let path = root.join("a/c").join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    chunks.map(|(_, bytes)| bytes)
}

fn values(host: &Host, target: &str) -> String {
    text_of(&host.json(&["get", target]), "values")
}

fn row(report: &Json) -> &Json {
    &report.get("arrays").and_then(Json::as_array).unwrap()[0]
}

const WANT: &str = "[[1,2,5],[3,4,6],[7,7,7],[7,7,7],[8,9,10]]";

#[test]
fn chunks_are_taken_as_they_are_and_foreign_overhang_is_scrubbed() {
    let host = Host::new();
    store(&host);
    let report = host.json(&["import", "s.zarr", "x.orth"]);
    let row = row(&report);
    assert_eq!(str_of(row, "path"), "/a");
    assert_eq!(str_of(row, "source"), "/a");
    // Two of the four had to be encoded anew; the fifth lies past the shape.
    assert_eq!(str_of(row, "result"), "recoded");
    assert_eq!(text_of(row, "chunks"), "4");
    assert_eq!(values(&host, "x.orth:/a"), WANT);
    let info = host.json(&["info", "x.orth:/a"]);
    assert_eq!(text_of(&info, "chunk_shape"), "[2,2]");
    assert_eq!(text_of(&info, "dims"), r#"["y",null]"#);
    assert_eq!(text_of(&info, "fill"), "7");
    assert_eq!(
        text_of(&info, "attributes"),
        r#"{"n":9007199254740993,"units":"m"}"#
    );
    assert_eq!(host.ok(&["attr", "get", "x.orth", "title"]), "t\n");
    // What lies beyond the edge is fill: growing shows it.
    host.ok(&["grow", "x.orth:/a", "--axis", "1", "--hi", "1"]);
    assert_eq!(
        values(&host, "x.orth:/a"),
        "[[1,2,5,7],[3,4,6,7],[7,7,7,7],[7,7,7,7],[8,9,10,7]]"
    );
}

#[test]
fn a_chunk_inside_the_domain_is_the_sources_to_the_byte() {
    let host = Host::new();
    let chunks = store(&host);
    host.ok(&["import", "s.zarr", "x.orth"]);
    let stat = host.json(&["stat", "x.orth:/a", "--chunks"]);
    let listed = stat.get("chunks").and_then(Json::as_array).unwrap();
    let first = listed.iter().find(|c| text_of(c, "coord") == "[0,0]");
    let offset: usize = text_of(first.unwrap(), "offset").parse().unwrap();
    assert_eq!(host.read("x.orth")[offset..offset + 4], chunks[0]);
}

#[test]
fn other_chunks_codecs_and_origins_are_had_by_asking() {
    let host = Host::new();
    store(&host);
    for (i, more) in [
        &["--chunks", "3,3"][..],
        &["--codecs", "archive"],
        &["--recode"],
        &["--origin=-1,-1"],
        &["--chunks", "y=4", "--codecs", "raw", "--origin=1,0"],
    ]
    .iter()
    .enumerate()
    {
        let file = format!("{i}.orth");
        let report = host.json(&[&["import", "s.zarr", &file][..], more].concat());
        assert_eq!(str_of(row(&report), "result"), "recoded", "{more:?}");
        assert_eq!(values(&host, &format!("{file}:/a")), WANT, "{more:?}");
        host.ok(&["check", "--level", "data", &file]);
    }
    assert_eq!(
        text_of(&host.json(&["info", "0.orth:/a"]), "chunk_shape"),
        "[3,3]"
    );
    assert_eq!(
        text_of(&host.json(&["info", "3.orth:/a"]), "origin"),
        "[-1,-1]"
    );
    let info = host.json(&["info", "1.orth:/a"]);
    assert!(text_of(&info, "codecs").contains("numcodecs.zlib"));
    // A rank that is not the array's is the command line's fault.
    host.fails(2, &["import", "s.zarr", "z.orth", "--chunks", "3"]);
    host.fails(2, &["import", "s.zarr", "z.orth", "--codecs", "lz5"]);
    assert!(!host.path("z.orth").exists());
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let host = Host::new();
    store(&host);
    let report = host.json(&["import", "s.zarr", "x.orth", "--dry-run"]);
    assert_eq!(str_of(row(&report), "result"), "adopted");
    assert_eq!(text_of(row(&report), "chunks"), "4");
    assert_eq!(text_of(row(&report), "bytes_out"), "null");
    assert!(!host.path("x.orth").exists());
}

#[test]
fn what_cannot_be_taken_is_refused_by_name_and_the_rest_is_taken() {
    let host = Host::new();
    store(&host);
    let root = host.path("s.zarr");
    let copy = |name: &str, from: &str, to: &str| {
        std::fs::create_dir_all(root.join(name)).unwrap();
        let text = std::fs::read_to_string(root.join("a/zarr.json")).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(root.join(name).join("zarr.json"), text.replace(from, to)).unwrap();
    };
    copy(
        "codec",
        r#"{"name":"bytes"}"#,
        r#"{"name":"bytes"},{"name":"vendor.secret"}"#,
    );
    copy("type", "\"uint8\"", "\"int4\"");
    copy("grid", "\"regular\"", "\"rectangular\"");
    copy("member", "\"fill_value\"", "\"novelty\":{},\"fill_value\"");
    copy("c\u{7}", "[5,3]", "[5,3]");
    std::fs::create_dir_all(root.join("torn")).unwrap();
    std::fs::write(root.join("torn/zarr.json"), "{\"zarr_format\":3").unwrap();
    // A chunk that cannot be decoded: one that reaches beyond the domain is.
    copy("short", "[5,3]", "[5,3]");
    std::fs::create_dir_all(root.join("short/c/2")).unwrap();
    std::fs::write(root.join("short/c/2/1"), [1, 2]).unwrap();
    let ran = host.run(&["import", "s.zarr", "x.orth", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report = ran.json();
    let mut reasons: Vec<String> = Vec::new();
    for row in report.get("arrays").and_then(Json::as_array).unwrap() {
        if str_of(row, "result") == "refused" {
            assert_eq!(text_of(row, "path"), "null");
            reasons.push(format!(
                "{}: {}",
                str_of(row, "source"),
                str_of(row, "reason")
            ));
        }
    }
    reasons.sort();
    for (reason, [source, word]) in reasons.iter().zip([
        ["/c\u{7}", "control"],
        ["/codec", "vendor.secret"],
        ["/grid", "rectangular"],
        ["/member", "novelty"],
        ["/short", "chunk [2, 1]"],
        ["/torn", "zarr.json"],
        ["/type", "int4"],
    ]) {
        assert!(reason.starts_with(&format!("{source}: ")), "{reason}");
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(reasons.len(), 7, "{reasons:?}");
    assert_eq!(host.ok(&["ls", "x.orth"]), "a\n");
    assert_eq!(values(&host, "x.orth:/a"), WANT);
    host.ok(&["check", "--level", "data", "x.orth"]);
}

#[test]
fn a_link_to_a_folder_is_not_followed_and_a_folder_without_documents_is_no_store() {
    let host = Host::new();
    store(&host);
    #[cfg(unix)]
    std::os::unix::fs::symlink(host.path("s.zarr"), host.path("s.zarr/again")).unwrap();
    let report = host.json(&["import", "s.zarr", "x.orth"]);
    let rows = report.get("arrays").and_then(Json::as_array).unwrap();
    assert_eq!(rows.len(), 1);
    std::fs::create_dir_all(host.path("plain/of/folders")).unwrap();
    let ran = host.run(&["import", "plain", "y.orth", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(!Path::new(&host.path("y.orth")).exists());
}

#[test]
fn a_signed_array_comes_back_from_zarr_where_it_lay() {
    let host = Host::new();
    host.ok(&[
        "create",
        "x.orth:/g/v",
        "--domain",
        "-7:6,3:9",
        "--chunks",
        "4,4",
        "--origin=-8,0",
        "--dtype",
        "i16",
        "--dims",
        "y,x",
        "--fill",
        "-1",
    ]);
    host.ok(&["put", "x.orth:/g/v[-7:6, 3:9]", "--value", "5"]);
    host.ok(&["put", "x.orth:/g/v[-7, 3]", "--value", "2"]);
    host.ok(&["put", "x.orth:/g/v[5, 8]", "--value", "3"]);
    let want = text_of(&host.json(&["digest", "x.orth:/g/v"]), "arrays");
    for (mode, version) in [("pad", "zarr3"), ("recode", "zarr3"), ("pad", "zarr2")] {
        let folder = format!("{mode}-{version}.zarr");
        host.ok(&[
            "export",
            "x.orth",
            &folder,
            "--aligned",
            mode,
            "--format",
            version,
        ]);
        let file = format!("{folder}.orth");
        host.ok(&["import", &folder, &file]);
        let info = host.json(&["info", &format!("{file}:/g/v")]);
        assert_eq!(text_of(&info, "domain"), "[[-7,6],[3,9]]", "{folder}");
        assert_eq!(text_of(&info, "dims"), r#"["y","x"]"#, "{folder}");
        assert_eq!(text_of(&info, "attributes"), "{}", "{folder}");
        if mode == "pad" {
            assert_eq!(text_of(&info, "origin"), "[-8,0]", "{folder}");
        }
        let got = text_of(&host.json(&["digest", &format!("{file}:/g/v")]), "arrays");
        assert_eq!(got, want, "{folder}");
    }
}

#[test]
fn a_chunk_that_is_none_is_refused_and_one_damaged_within_when_told_to_verify() {
    let host = Host::new();
    store(&host);
    // Uncompressed, three bytes of four.
    std::fs::write(host.path("s.zarr/a/c/0/0"), [1, 2, 3]).unwrap();
    let ran = host.run(&["import", "s.zarr", "x.orth", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report = ran.json();
    assert_eq!(str_of(row(&report), "result"), "refused");
    assert!(
        str_of(row(&report), "reason").contains("chunk [0, 0]"),
        "{report}"
    );
    // A damaged byte within a zlib stream shows by its checksum, which only decoding computes.
    store(&host);
    let document = host.path("s.zarr/a/zarr.json");
    let text = std::fs::read_to_string(&document).unwrap();
    let text = text.replace(
        r#"[{"name":"bytes"}]"#,
        r#"[{"name":"bytes"},{"name":"numcodecs.zlib","configuration":{"level":1}}]"#,
    );
    std::fs::write(&document, text.replace("[5,3]", "[2,2]")).unwrap();
    // 1, 2, 3, 4 in one stored block, with the sum of 1, 2, 3, 5.
    let zlib = [
        0x78, 0x01, 0x01, 4, 0, 0xfb, 0xff, 1, 2, 3, 4, 0x00, 0x19, 0x00, 0x0c,
    ];
    std::fs::write(host.path("s.zarr/a/c/0/0"), zlib).unwrap();
    let ran = host.run(&["import", "s.zarr", "y.orth", "--verify"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("chunk [0, 0]"), "{}", ran.err);
    host.ok(&["import", "s.zarr", "z.orth"]);
    assert_eq!(host.run(&["check", "--level", "data", "z.orth"]).code, 1);
}
