//! `export`: Zarr folders. What Zarr's own readers make of them is in `tests/interop`.

use orthant::Json;

use crate::host::{Host, str_of, text_of};

/// Arrays whose chunks begin with the domain (`raw`) and before it (`cut`), in a group.
fn host() -> Host {
    let host = Host::new();
    let create = |args: &str| host.ok(&args.split(' ').collect::<Vec<_>>());
    create("create a.orth:/g/raw --domain -8:4 --chunks 4 --dims y --dtype u8 --codecs raw");
    create("put a.orth:/g/raw[-8:1] --value 7");
    create(
        "create a.orth:/g/cut --domain -7:4 --chunks 4 --dims y --dtype u8 --codecs raw --fill 9",
    );
    create("put a.orth:/g/cut[-7:-2] --value 7");
    host
}

fn rows(told: &Json) -> Vec<(String, String)> {
    let list = told.get("arrays").and_then(Json::as_array).unwrap();
    let row = |r: &Json| (str_of(r, "path").to_owned(), str_of(r, "result").to_owned());
    let mut rows: Vec<_> = list.iter().map(row).collect();
    rows.sort();
    rows
}

fn document(host: &Host, name: &str) -> Json {
    String::from_utf8(host.read(name)).unwrap().parse().unwrap()
}

#[test]
fn chunks_that_begin_with_the_domain_are_copied_and_others_are_cut_anew() {
    let host = host();
    let told = host.json(&["export", "a.orth", "z"]);
    let pair = |p: &str, r: &str| (p.to_owned(), r.to_owned());
    assert_eq!(
        rows(&told),
        [pair("/g/cut", "recoded"), pair("/g/raw", "raw")]
    );
    assert_eq!(
        text_of(&document(&host, "z/zarr.json"), "node_type"),
        "\"group\""
    );
    // Cut at -7, -3 and 1; the third chunk holds nothing.
    assert_eq!(host.read("z/g/cut/c/0"), [7, 7, 7, 7]);
    assert_eq!(host.read("z/g/cut/c/1"), [7, 9, 9, 9]);
    assert!(!host.path("z/g/cut/c/2").exists());
    let cut = document(&host, "z/g/cut/zarr.json");
    assert_eq!(text_of(&cut, "shape"), "[11]");
    assert_eq!(
        text_of(cut.get("attributes").unwrap(), "orthant"),
        r#"{"version":1,"inclusive_min":[-7],"exclusive_max":[4],"chunk_origin":[0],"pad":[0]}"#
    );
    // A chunk of one value has no payload in the container, and gets one here.
    assert_eq!(host.read("z/g/raw/c/0"), [7, 7, 7, 7]);
    assert_eq!(host.read("z/g/raw/c/2"), [7, 0, 0, 0]);
    let told = host.json(&[
        "export",
        "a.orth:/g/cut",
        "one",
        "--aligned",
        "pad",
        "--format",
        "zarr2",
    ]);
    assert_eq!(rows(&told), [pair("/g/cut", "padded")]);
    assert_eq!(host.read("one/0"), [9, 7, 7, 7]);
    assert_eq!(text_of(&document(&host, "one/.zarray"), "shape"), "[12]");
}

#[test]
fn what_cannot_be_exported_is_named_and_the_rest_is_done() {
    let host = host();
    let ran = host.run(&["export", "a.orth", "z", "--aligned", "raw"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("/g/cut: refused"), "{}", ran.err);
    assert!(!host.path("z/g/cut").exists() && host.path("z/g/raw/c/0").exists());
    // Names that would be a document of Zarr, or a way out of the folder on some system.
    host.ok(&["create", "a.orth:/zarr.json", "--group"]);
    host.ok(&[
        "create",
        r"a.orth:/..\x",
        "--domain",
        "0:2",
        "--dtype",
        "u8",
    ]);
    let ran = host.run(&["export", "a.orth", "y"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("/zarr.json: refused") && ran.err.contains(r"/..\\x: refused")
            || ran.err.contains(r"/..\x: refused"),
        "{}",
        ran.err
    );
    assert_eq!(
        document(&host, "y/zarr.json").get("zarr_format"),
        Some(&Json::I64(3))
    );
}

#[test]
fn a_folder_is_replaced_only_when_told_and_only_where_it_is_zarr() {
    let host = host();
    host.ok(&["export", "a.orth", "z"]);
    host.fails(2, &["export", "a.orth", "z"]);
    host.ok(&["export", "a.orth:/g/raw", "z", "--force"]);
    assert!(host.path("z/c/0").exists() && !host.path("z/g").exists());
    assert!(!host.path(".z.old").exists());
    // Killed between the two names: the old folder is put back before anything else, and then replaced as any other.
    std::fs::rename(host.path("z"), host.path(".z.old")).unwrap();
    host.fails(2, &["export", "a.orth", "z"]);
    assert!(host.path("z/c/0").exists());
    host.ok(&["export", "a.orth", "z", "--force"]);
    assert!(host.path("z/g").exists() && !host.path(".z.old").exists());
    host.write("plain", b"x");
    host.fails(2, &["export", "a.orth", "plain", "--force"]);
    host.fails(2, &["export", "a.orth:/none", "new"]);
    assert!(!host.path("new").exists() && !host.path(".new.tmp").exists());
}
