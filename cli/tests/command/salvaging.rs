//! Damaged files: told by `check`, saved by `salvage`.

use orthant::Json;

use crate::host::{Host, str_of, text_of};

fn list_of<'a>(json: &'a Json, key: &str) -> &'a [Json] {
    match json.get(key) {
        Some(Json::Array(items)) => items,
        other => panic!("{key}: {other:?}"),
    }
}

fn write(host: &Host) {
    host.ok(&[
        "create",
        "a.orth:/g/t",
        "--domain",
        "-4:4",
        "--chunks",
        "2",
        "--dtype",
        "i16",
    ]);
    let cells: Vec<u8> = (11..19_i16).flat_map(i16::to_le_bytes).collect();
    host.write("cells.raw", &cells);
    let put = ["put", "a.orth:/g/t", "cells.raw", "--format", "raw"];
    host.ok(&put);
    host.ok(&["attr", "set", "a.orth:/g/t", "units", "K"]);
}

#[test]
fn salvage_saves_what_verifies_and_lists_the_rest() {
    let host = Host::new();
    write(&host);
    let stat = host.json(&["stat", "a.orth:/g/t", "--chunks"]);
    let chunk = &list_of(&stat, "chunks")[1];
    let offset: usize = text_of(chunk, "offset").parse().unwrap();
    let mut bytes = host.read("a.orth");
    bytes[0x1000..0x3000].fill(0);
    bytes[offset] ^= 1;
    host.write("a.orth", &bytes);
    host.fails(4, &["check", "a.orth"]);

    let ran = host.run(&["salvage", "a.orth", "b.orth", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let answer = ran.json();
    assert_eq!(str_of(&answer, "schema"), "orthant/salvage/1");
    assert_eq!(str_of(&answer, "found_by"), "commit_record");
    assert_eq!(text_of(&answer, "chunks"), "3");
    let lost = list_of(&answer, "lost");
    let kinds: Vec<&str> = lost.iter().map(|l| str_of(l, "kind")).collect();
    assert_eq!(kinds, ["index", "index", "chunk"]);
    assert_eq!(str_of(&lost[2], "array"), "/g/t");
    assert_eq!(text_of(&lost[2], "chunk"), "[-1]");
    assert_eq!(text_of(&lost[2], "offset"), offset.to_string());

    host.ok(&["check", "b.orth", "--level", "data"]);
    let read = host.json(&["get", "b.orth:/g/t"]);
    assert_eq!(text_of(&read, "values"), "[11,12,0,0,15,16,17,18]");
    assert_eq!(host.read("a.orth"), bytes);
    assert_eq!(host.names(), ["a.orth", "b.orth", "cells.raw"]);
}

#[test]
fn salvage_of_a_sound_file_loses_nothing_and_answers_zero() {
    let host = Host::new();
    write(&host);
    host.ok(&["salvage", "a.orth", "b.orth"]);
    host.ok(&["diff", "a.orth", "b.orth"]);
    host.fails(2, &["salvage", "a.orth", "b.orth"]);
    host.fails(3, &["salvage", "none.orth", "c.orth"]);
    host.fails(4, &["salvage", "cells.raw", "c.orth"]);
    assert_eq!(host.names(), ["a.orth", "b.orth", "cells.raw"]);
}
