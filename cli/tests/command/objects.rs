//! Containers, groups, arrays and attributes: making, showing, moving, removing.

use crate::host::{Host, str_of, text_of};

#[test]
fn info_of_a_group_and_an_array_has_the_keys_of_the_contract() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/g/t",
        "--domain",
        "-48:0,0:10",
        "--dims",
        "time,y",
        "--dtype",
        "<f4",
        "--units",
        "K",
        "--chunks",
        "time=24",
    ]);
    let group = host.json(&["info", "a.orth:/g"]);
    assert_eq!(text_of(&group, "members"), "1");
    assert_eq!(
        text_of(&group, "dims"),
        "[{\"name\":\"time\",\"domain\":[-48,0],\"arrays\":[\"t\"]},{\"name\":\"y\",\"domain\":[0,10],\"arrays\":[\"t\"]}]"
    );
    let array = host.json(&["info", "a.orth:/g/t"]);
    for (key, want) in [
        ("path", "\"/g/t\""),
        ("kind", "\"array\""),
        ("dtype", "\"float32\""),
        ("domain", "[[-48,0],[0,10]]"),
        ("shape", "[48,10]"),
        ("origin", "[0,0]"),
        ("chunk_shape", "[24,10]"),
        ("shard_shape", "null"),
        ("dims", "[\"time\",\"y\"]"),
        ("units", "\"K\""),
        ("fill", "0.0"),
        ("chunks", "{\"stored\":0,\"constant\":0,\"grid\":2}"),
        ("stored_bytes", "0"),
        ("logical_bytes", "1920"),
        ("attribute_types", "{\"units\":\"string\"}"),
    ] {
        assert_eq!(text_of(&array, key), want, "{key}");
    }
    assert!(text_of(&array, "codecs").starts_with("[{\"name\":\"bytes\""));
    for key in ["ratio", "readers", "attributes"] {
        assert!(array.get(key).is_some(), "{key}");
    }
    let human = host.ok(&["info", "a.orth:/g"]);
    assert!(human.contains("axis time: -48:0 in 1 array"), "{human}");
    let human = host.ok(&["info", "a.orth:/g/t"]);
    assert!(human.contains("time=-48:0"), "{human}");
}

#[test]
fn a_sharded_array_is_made_filled_and_read_in_part() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/s",
        "--shape",
        "64,64",
        "--dtype",
        "f32",
        "--chunks",
        "8,8",
        "--shard",
        "64,64",
        "--codecs",
        "crc32c",
    ]);
    host.ok(&["put", "a.orth:/s[:32, :32]", "--value", "1.5"]);
    let info = host.json(&["info", "a.orth:/s"]);
    assert_eq!(text_of(&info, "chunk_shape"), "[8,8]");
    assert_eq!(text_of(&info, "shard_shape"), "[64,64]");
    assert_eq!(
        text_of(&info, "chunks"),
        "{\"stored\":1,\"constant\":0,\"grid\":1}"
    );
    let got = host.json(&["get", "a.orth:/s[0:8, 4:20]", "--receipt"]);
    let receipt = got.get("receipt").unwrap();
    // An index of 64 entries with its checksum, and three inner chunks of 8 x 8 x 4 bytes with theirs.
    assert_eq!(
        text_of(receipt, "bytes_fetched"),
        (64 * 16 + 4 + 3 * 260).to_string()
    );
    assert_eq!(text_of(receipt, "inner_decoded"), "3");
    assert_eq!(text_of(receipt, "path"), "\"partial\"");
    host.fails(
        2,
        &[
            "create",
            "a.orth:/t",
            "--shape",
            "64",
            "--dtype",
            "f32",
            "--chunks",
            "5",
            "--shard",
            "64",
        ],
    );
}

#[test]
fn info_of_a_container_has_the_keys_of_the_contract() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/g/t", "--shape", "3", "--dtype", "u8"]);
    let container = host.json(&["info", "a.orth"]);
    for key in [
        "path",
        "format",
        "generation",
        "time",
        "file_bytes",
        "arrays",
        "groups",
        "snapshots",
        "open",
    ] {
        assert!(container.get(key).is_some(), "{key}");
    }
    assert_eq!(str_of(&container, "schema"), "orthant/info/1");
    assert_eq!(text_of(&container, "arrays"), "1");
    assert_eq!(text_of(&container, "groups"), "1");
    assert_eq!(
        text_of(&container, "open"),
        "{\"other_slot\":\"valid\",\"fell_back\":false,\"ignored_tail_bytes\":0}"
    );
    assert!(host.ok(&["info", "a.orth"]).contains("1 array"));
}

#[test]
fn a_group_says_where_its_arrays_disagree() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/a",
        "--shape",
        "3",
        "--dims",
        "time",
        "--dtype",
        "u8",
    ]);
    host.ok(&[
        "create",
        "a.orth:/b",
        "--shape",
        "4",
        "--dims",
        "time",
        "--dtype",
        "u8",
    ]);
    let human = host.ok(&["info", "a.orth:/"]);
    assert!(
        human.contains("axis time differs: 0:3 in a; 0:4 in b"),
        "{human}"
    );
    assert_eq!(
        text_of(&host.json(&["info", "a.orth:/"]), "dims")
            .matches("\"name\"")
            .count(),
        2
    );
}

#[test]
fn ls_is_one_object_and_recursively_one_a_line() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/g/h", "--group"]);
    host.ok(&["create", "a.orth:/g/t", "--shape", "3", "--dtype", "u8"]);
    host.ok(&["put", "a.orth:/g/t", "--value", "1"]);
    assert_eq!(host.ok(&["ls", "a.orth"]), "g/\n");
    assert_eq!(host.ok(&["ls", "-R", "a.orth"]), "g/\ng/h/\ng/t\n");
    assert_eq!(host.ok(&["ls", "a.orth:/g"]), "h/\nt\n");
    assert!(host.ok(&["ls", "-l", "a.orth:/g"]).contains("uint8"));
    let one = host.json(&["ls", "a.orth:/g"]);
    assert_eq!(str_of(&one, "path"), "/g");
    let members = one.get("members").unwrap().as_array().unwrap();
    assert_eq!(str_of(&members[1], "path"), "/g/t");
    let lines = host.ok(&["ls", "-R", "--json", "a.orth"]);
    let rows: Vec<orthant::Json> = lines.lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        for key in ["schema", "path", "kind", "dtype", "domain", "stored_bytes"] {
            assert!(row.get(key).is_some(), "{key} in {row}");
        }
    }
    assert_eq!(text_of(&rows[2], "domain"), "[[0,3]]");
    assert_eq!(text_of(&rows[0], "dtype"), "null");
}

#[test]
fn create_refuses_what_is_there() {
    let host = Host::new();
    host.ok(&["create", "a.orth"]);
    assert_eq!(
        str_of(&host.fails(2, &["create", "a.orth"]), "code"),
        "already_exists"
    );
    host.ok(&["create", "a.orth:/x", "--shape", "1", "--dtype", "u8"]);
    let e = host.fails(2, &["create", "a.orth:/x", "--shape", "1", "--dtype", "u8"]);
    assert_eq!(str_of(&e, "code"), "already_exists");
    host.fails(2, &["create", "a.orth:/x/y", "--group"]);
}

/// Arrays and groups that cannot be made.
const REFUSED: &[&[&str]] = &[
    &["create", "new.orth:/x", "--shape", "1", "--dtype", "bogus"],
    &[
        "create",
        "new.orth:/x",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--chunks",
        "0",
    ],
    &[
        "create",
        "new.orth:/x",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--chunks",
        "1,1",
    ],
    &[
        "create",
        "new.orth:/x",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--codecs",
        "bogus",
    ],
    &[
        "create",
        "new.orth:/x",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--dims",
        "a,b",
    ],
    &[
        "create",
        "new.orth:/x",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--fill",
        "red",
    ],
    &["create", "new.orth:/x", "--shape", "-1", "--dtype", "f32"],
    &["create", "new.orth:/x", "--domain", "3:2", "--dtype", "f32"],
    &[
        "create",
        "new.orth:/x",
        "--domain",
        "0:9223372036854775807",
        "--dtype",
        "f32",
    ],
    &["create", "new.orth:/x", "--dtype", "f32"],
    &["create", "new.orth:/x", "--shape", "1"],
    &["create", "new.orth:/x"],
    &["create", "new.orth:/..", "--group"],
];

#[test]
fn create_leaves_no_file_for_what_it_refuses() {
    let host = Host::new();
    for args in REFUSED {
        host.fails(2, args);
        assert!(host.names().is_empty(), "{args:?}");
    }
}

#[test]
fn every_profile_of_codecs_reads_back_and_digests_alike() {
    let host = Host::new();
    let mut digests = Vec::new();
    let cells: Vec<String> = (0..600).map(|i| (i * i % 97).to_string()).collect();
    host.write("c.csv", cells.join(",").as_bytes());
    for (i, (codecs, chunks)) in [
        ("default", "7,30"),
        ("portable", "20,30"),
        ("archive", "1,1"),
        ("raw", "3,5"),
        ("shuffle,zstd:1,crc32c", "20,1"),
        ("lz4", "6,6"),
        ("delta,gzip:1", "20,30"),
    ]
    .iter()
    .enumerate()
    {
        let file = format!("c{i}.orth");
        let target = format!("{file}:/a");
        host.ok(&[
            "create", &target, "--shape", "20,30", "--dtype", "i32", "--codecs", codecs,
            "--chunks", chunks,
        ]);
        host.ok(&["put", &target, "c.csv"]);
        let digest = host.json(&["digest", &file]);
        digests.push((
            text_of(&digest, "arrays"),
            str_of(&digest, "container").to_owned(),
        ));
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}

#[test]
fn attributes_are_set_listed_and_removed() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/g", "--group", "-m", "begin"]);
    host.ok(&["attr", "set", "a.orth:/g", "title", "Sea ice"]);
    host.ok(&["attr", "set", "a.orth:/g", "n", "[1, 2]", "--type", "u16"]);
    host.write(
        "more.json",
        b"{\"flag\": true, \"deep\": {\"a\": [1.5, \"x\"]}}",
    );
    host.ok(&["attr", "set", "a.orth:/g", "--from", "more.json"]);
    assert_eq!(host.ok(&["attr", "get", "a.orth:/g", "title"]), "Sea ice\n");
    assert_eq!(
        host.ok(&["attr", "get", "a.orth:/g", "deep"]),
        "{\"a\":[1.5,\"x\"]}\n"
    );
    let ls = host.json(&["attr", "ls", "a.orth:/g"]);
    assert_eq!(
        text_of(&ls, "attribute_types"),
        "{\"deep\":\"tree\",\"flag\":\"bool\",\"n\":\"uint16[2]\",\"title\":\"string\"}"
    );
    assert!(host.ok(&["attr", "ls", "a.orth:/g"]).contains("Sea ice"));
    host.ok(&["attr", "rm", "a.orth:/g", "title"]);
    assert_eq!(
        str_of(
            &host.fails(2, &["attr", "get", "a.orth:/g", "title"]),
            "code"
        ),
        "not_found"
    );
    host.fails(2, &["attr", "rm", "a.orth:/g", "title"]);
    host.fails(2, &["attr", "set", "a.orth:/g", "n", "300", "--type", "u8"]);
    host.fails(2, &["attr", "set", "a.orth:/nope", "n", "1"]);
    host.fails(
        3,
        &["attr", "set", "a.orth:/g", "n", "--from", "missing.json"],
    );
}

#[test]
fn objects_move_and_go() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/g/t", "--shape", "2", "--dtype", "u8"]);
    host.ok(&["put", "a.orth:/g/t", "--value", "9"]);
    host.ok(&["mv", "a.orth:/g/t", "/u"]);
    assert_eq!(host.ok(&["get", "a.orth:/u"]), "9\n9\n");
    host.fails(2, &["get", "a.orth:/g/t"]);
    host.fails(2, &["mv", "a.orth:/u", "no-slash"]);
    host.fails(2, &["mv", "a.orth:/nope", "/x"]);
    host.ok(&["create", "a.orth:/g/t", "--shape", "2", "--dtype", "u8"]);
    host.fails(2, &["mv", "a.orth:/u", "/g/t"]);
    let e = host.fails(2, &["rm", "a.orth:/g"]);
    assert!(str_of(&e, "help").contains("rm -r"), "{e}");
    let e = host.fails(2, &["rm", "a.orth", "--path", "/tab\there"]);
    assert!(!text_of(&e, "help").contains("rm -r"), "{e}");
    let gone = host.json(&["rm", "a.orth:/g", "-r"]);
    assert!(gone.get("generation").is_some());
    assert_eq!(host.ok(&["ls", "-R", "a.orth"]), "u\n");
    host.fails(2, &["rm", "a.orth:/g"]);
    host.fails(2, &["rm", "a.orth"]);
}

#[test]
fn stat_says_where_the_bytes_are() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/t",
        "--shape",
        "64",
        "--dtype",
        "u8",
        "--chunks",
        "16",
        "--codecs",
        "raw",
    ]);
    host.write("r.raw", &[5; 64]);
    host.ok(&["put", "a.orth:/t[0:17]", "--value", "3"]);
    let stat = host.json(&["stat", "a.orth"]);
    for key in [
        "file_bytes",
        "live_payload_bytes",
        "live_index_bytes",
        "dead_bytes",
        "reusable_bytes",
        "index",
        "held_by",
    ] {
        assert!(stat.get(key).is_some(), "{key}");
    }
    for key in ["depth", "nodes", "entries", "bytes_per_entry"] {
        assert!(stat.get("index").unwrap().get(key).is_some(), "{key}");
    }
    let array = host.json(&["stat", "a.orth:/t", "--chunks"]);
    let chunks = array.get("chunks").unwrap().as_array().unwrap();
    assert_eq!(chunks.len(), 2);
    for chunk in chunks {
        for key in ["coord", "state", "offset", "stored_bytes"] {
            assert!(chunk.get(key).is_some(), "{key}");
        }
    }
    assert_eq!(str_of(&chunks[0], "state"), "constant");
    assert_eq!(str_of(&chunks[1], "state"), "stored");
    assert_eq!(text_of(&chunks[1], "stored_bytes"), "16");
    assert!(array.get("histogram").is_some());
    assert!(host.ok(&["stat", "a.orth"]).contains("payload"));
    assert!(host.ok(&["stat", "a.orth:/t", "--chunks"]).contains("(1)"));
    host.fails(2, &["stat", "a.orth", "--chunks"]);
}

#[test]
fn control_characters_in_names_and_values_do_not_reach_a_terminal() {
    let host = Host::new();
    host.ok(&["create", "a.orth"]);
    host.ok(&["attr", "set", "a.orth", "bell\u{7}", "red\u{1b}[31m"]);
    for args in [
        &["attr", "ls", "a.orth"][..],
        &["attr", "get", "a.orth", "bell\u{7}"],
        &["info", "a.orth:/"],
    ] {
        let out = host.ok(args);
        assert!(
            !out.contains('\u{1b}') && !out.contains('\u{7}'),
            "{args:?}: {out:?}"
        );
    }
    let json = host.json(&["attr", "get", "a.orth", "bell\u{7}"]);
    assert_eq!(str_of(&json, "value"), "red\u{1b}[31m");
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let host = Host::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            host.ok(&["completions", shell]).contains("orthant"),
            "{shell}"
        );
    }
    assert!(host.ok(&["man"]).starts_with(".ie"));
    assert!(host.ok(&["man", "get"]).contains("receipt"));
    host.fails(2, &["man", "frobnicate"]);
}
