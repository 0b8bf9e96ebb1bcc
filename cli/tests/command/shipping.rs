//! Whole containers: compacted, copied beside a writer, archived, compared.

use crate::host::{Host, str_of, text_of};

/// An array written twice over, in the order that `reverse` gives.
fn write(host: &Host, file: &str, reverse: bool) {
    let mut arrays = ["a", "b"];
    if reverse {
        arrays.reverse();
    }
    for name in arrays {
        let target = format!("{file}:/g/{name}");
        host.ok(&[
            "create", &target, "--domain", "-4:12", "--chunks", "4", "--dtype", "i32",
        ]);
        for value in ["5", "6"] {
            host.ok(&["put", &format!("{target}[-4:12]"), "--value", value]);
        }
        let cells: Vec<u8> = (0..9_i32).flat_map(i32::to_le_bytes).collect();
        host.write("cells.raw", &cells);
        host.ok(&[
            "put",
            &format!("{target}[-3:6]"),
            "cells.raw",
            "--format",
            "raw",
        ]);
        host.ok(&["attr", "set", &target, "units", "K"]);
    }
}

fn digest(host: &Host, file: &str) -> String {
    str_of(&host.json(&["digest", file]), "container").to_owned()
}

#[test]
fn compact_in_place_keeps_the_content_and_reports_bytes_and_no_decode() {
    let host = Host::new();
    write(&host, "a.orth", false);
    let before = (digest(&host, "a.orth"), host.read("a.orth").len());
    let done = host.json(&["compact", "a.orth"]);
    assert_eq!(str_of(&done, "schema"), "orthant/compact/1");
    assert_eq!(text_of(&done, "decodes"), "0");
    assert_eq!(text_of(&done, "bytes_in"), before.1.to_string());
    assert_eq!(
        text_of(&done, "bytes_out"),
        host.read("a.orth").len().to_string()
    );
    assert!(host.read("a.orth").len() < before.1);
    assert_eq!(digest(&host, "a.orth"), before.0);
    host.ok(&["check", "a.orth", "--level", "data"]);
    assert_eq!(host.names(), ["a.orth", "cells.raw"]);
    host.ok(&["put", "a.orth:/g/a[0]", "--value", "1"]);
    host.fails(3, &["compact", "none.orth"]);
    host.fails(2, &["compact", "a.orth", "-o", "b.orth"]);
    host.fails(2, &["compact", "a.orth", "--archive"]);
}

#[test]
fn an_archive_of_the_same_content_is_the_same_file() {
    let host = Host::new();
    write(&host, "a.orth", false);
    write(&host, "b.orth", true);
    host.ok(&["compact", "b.orth"]);
    let archive = |from: &str, to: &str| {
        let mut command = host.command(&["compact", from, "-o", to, "--archive"]);
        let done = command
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        host.read(to)
    };
    let first = archive("a.orth", "a-archive.orth");
    assert_eq!(archive("b.orth", "b-archive.orth"), first);
    // The archive's identity is its content's digest.
    let digest = digest(&host, "a-archive.orth");
    for (at, byte) in first[16..22].iter().enumerate() {
        assert_eq!(&digest[2 * at..2 * at + 2], format!("{byte:02x}"));
    }
    assert_eq!((first[22] >> 4, first[24] >> 6), (8, 2));
    // Again, from itself and without being told the time.
    host.ok(&["compact", "a-archive.orth", "-o", "again.orth", "--archive"]);
    assert_eq!(host.read("again.orth"), first);
    let e = host.fails(2, &["compact", "a.orth", "-o", "again.orth", "--archive"]);
    assert_eq!(str_of(&e, "help"), "--force overwrites it");
    host.ok(&["put", "a.orth:/g/a[0]", "--value", "99"]);
    host.ok(&[
        "compact",
        "a.orth",
        "-o",
        "again.orth",
        "--archive",
        "--force",
    ]);
    assert_ne!(host.read("again.orth"), first);
    host.fails(
        2,
        &["compact", "a.orth", "-o", "a.orth", "--archive", "--force"],
    );
    let mut command = host.command(&["compact", "a.orth", "-o", "x.orth", "--archive"]);
    let done = command
        .env("SOURCE_DATE_EPOCH", "yesterday")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn cp_of_a_container_copies_one_generation() {
    let host = Host::new();
    write(&host, "a.orth", false);
    let done = host.json(&["cp", "a.orth", "b.orth"]);
    assert_eq!(str_of(&done, "schema"), "orthant/cp/1");
    assert_eq!(text_of(&done, "decodes"), "0");
    assert_eq!(digest(&host, "a.orth"), digest(&host, "b.orth"));
    host.ok(&["check", "b.orth", "--level", "data"]);
    let e = host.fails(2, &["cp", "a.orth", "b.orth"]);
    assert_eq!(str_of(&e, "code"), "already_exists");
    host.ok(&["cp", "a.orth", "b.orth", "--force"]);
    host.fails(2, &["cp", "a.orth", "a.orth", "--force"]);
    std::fs::create_dir(host.path("folder")).unwrap();
    host.fails(2, &["cp", "a.orth", "folder", "--force"]);
    std::fs::remove_dir(host.path("folder")).unwrap();
    host.fails(2, &["cp", "a.orth", "b.orth:/g"]);
    host.fails(2, &["cp", "a.orth:/g", "b.orth", "--all"]);
    host.fails(2, &["cp", "a.orth", "c.orth", "--at", "nothing"]);
    host.fails(3, &["cp", "none.orth", "c.orth"]);
    host.fails(3, &["cp", "a.orth", "no/such/folder.orth"]);
    assert_eq!(host.names(), ["a.orth", "b.orth", "cells.raw"]);
}

#[test]
fn diff_answers_by_its_exit_code_and_names_what_differs() {
    let host = Host::new();
    write(&host, "a.orth", false);
    write(&host, "b.orth", true);
    assert_eq!(host.ok(&["diff", "a.orth", "b.orth"]), "");
    let same = host.json(&["diff", "a.orth", "b.orth"]);
    assert_eq!(
        (text_of(&same, "equal"), text_of(&same, "changed")),
        ("true".into(), "[]".into())
    );
    host.ok(&["put", "b.orth:/g/a[-1]", "--value", "99"]);
    host.ok(&["attr", "set", "b.orth:/g/b", "units", "degC"]);
    host.ok(&["create", "b.orth:/new", "--group"]);
    let ran = host.run(&["diff", "a.orth", "b.orth", "--json"]);
    assert_eq!(ran.code, 1);
    let diff = ran.json();
    assert_eq!(text_of(&diff, "equal"), "false");
    assert_eq!(text_of(&diff, "added"), "[\"/new\"]");
    let changed = diff.get("changed").unwrap().as_array().unwrap();
    assert_eq!(str_of(&changed[0], "path"), "/g/a");
    assert_eq!(str_of(&changed[0], "what"), "values");
    assert_eq!(text_of(&changed[0], "chunks"), "[[-1]]");
    assert_eq!(text_of(&changed[1], "attributes"), "[\"units\"]");
    let ran = host.run(&["diff", "a.orth", "b.orth"]);
    assert_eq!(ran.code, 1);
    let text = ran.text();
    assert!(text.contains("+ /new (group)"), "{text}");
    assert!(text.contains("! /g/a: values in 1 chunk: [-1]"), "{text}");
    host.ok(&["diff", "a.orth:/g/a", "b.orth:/g/a", "--atol", "1000"]);
    host.fails(2, &["diff", "a.orth", "b.orth", "--atol", "-1"]);
    host.fails(2, &["diff", "a.orth:/none", "b.orth"]);
    host.fails(3, &["diff", "a.orth", "none.orth"]);
    // Two generations of one file.
    host.ok(&["diff", "a.orth", "a.orth"]);
}

#[test]
fn a_writer_in_another_process_refuses_a_compaction_and_not_a_copy() {
    let host = Host::new();
    write(&host, "a.orth", false);
    let container = orthant::Container::open(host.path("a.orth")).unwrap();
    let writer = container.writer().unwrap();
    host.fails(5, &["compact", "a.orth"]);
    host.ok(&["cp", "a.orth", "b.orth"]);
    drop(writer);
    host.ok(&["compact", "a.orth"]);
    let e = container.writer().unwrap_err();
    assert_eq!(e.kind(), orthant::ErrorKind::Replaced);
}

#[test]
fn retained_generations_are_copied_and_compared_by_name() {
    let host = Host::new();
    write(&host, "a.orth", false);
    let before = digest(&host, "a.orth");
    let writer = || {
        orthant::Container::open(host.path("a.orth"))
            .unwrap()
            .writer()
            .unwrap()
    };
    let w = writer();
    w.retain("v1").unwrap();
    w.commit().unwrap();
    drop(w);
    host.ok(&["put", "a.orth:/g/b[11]", "--value", "-7"]);
    let ran = host.run(&["diff", "a.orth", "a.orth", "--at", "v1", "--json"]);
    assert_eq!(ran.code, 1);
    let changed = ran.json();
    let changed = changed.get("changed").unwrap().as_array().unwrap();
    assert_eq!((changed.len(), str_of(&changed[0], "path")), (1, "/g/b"));
    assert_eq!(text_of(&changed[0], "chunks"), "[[2]]");
    host.ok(&["diff", "a.orth", "a.orth", "--at", "v1", "--at", "v1"]);
    host.ok(&["cp", "a.orth", "v1.orth", "--at", "v1"]);
    assert_eq!(digest(&host, "v1.orth"), before);
    host.ok(&["cp", "a.orth", "all.orth", "--all"]);
    host.ok(&["cp", "a.orth", "one.orth"]);
    host.ok(&["compact", "a.orth"]);
    for (file, count) in [
        ("a.orth", 1),
        ("all.orth", 1),
        ("one.orth", 0),
        ("v1.orth", 0),
    ] {
        let container = orthant::Container::open(host.path(file)).unwrap();
        assert_eq!(container.snapshots().unwrap().len(), count, "{file}");
        host.ok(&["check", file, "--level", "data"]);
    }
    host.ok(&["diff", "a.orth", "v1.orth", "--at", "v1"]);
    host.ok(&["diff", "all.orth", "one.orth"]);
}

#[test]
fn c110_a_sparse_array_stays_sparse_through_the_command() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/a",
        "--domain",
        "0:1000000,0:1000000",
        "--chunks",
        "1000,1000",
        "--dtype",
        "f64",
        "--fill",
        "2.5",
    ]);
    for (cell, value) in [
        ("[0,0]", "1.5"),
        ("[999999,999999]", "-3"),
        ("[123456,654321]", "7"),
    ] {
        host.ok(&["put", &format!("a.orth:/a{cell}"), "--value", value]);
    }
    host.ok(&["cp", "a.orth:/a", "b.orth"]);
    host.ok(&["cp", "a.orth", "c.orth"]);
    host.ok(&["cp", "a.orth", "d.orth"]);
    host.ok(&["rechunk", "d.orth:/a", "--chunks", "500,2000"]);
    host.ok(&["compact", "d.orth"]);
    for file in ["b.orth", "c.orth", "d.orth"] {
        assert!(host.read(file).len() < 100_000, "{file}");
        for (cell, value) in [
            ("[0,0]", "1.5"),
            ("[5,5]", "2.5"),
            ("[123456,654321]", "7.0"),
        ] {
            let read = host.json(&["get", &format!("{file}:/a{cell}")]);
            assert_eq!(text_of(&read, "values"), value, "{file}{cell}");
        }
    }
}
