//! Arrays grow, shrink and roll at every edge.

use crate::host::{Host, arg, data, str_of, text_of};

fn npy_i16(host: &Host, name: &str, shape: &str, values: &[i16]) {
    let dict = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': {shape}, }}");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(u16::try_from(dict.len()).unwrap().to_le_bytes());
    out.extend(dict.as_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    host.write(name, &out);
}

fn with_array(host: &Host) {
    host.ok(&[
        "create",
        "a.orth:/g/t",
        "--domain",
        "0:3,0:3",
        "--dims",
        "time,y",
        "--dtype",
        "i16",
        "--chunks",
        "2,2",
        "--fill",
        "-1",
    ]);
    host.write("c.csv", b"1,2,3\n4,5,6\n7,8,9\n");
    host.ok(&["put", "a.orth:/g/t", "c.csv"]);
}

#[test]
fn growing_and_trimming_keep_coordinates_and_never_bring_back_what_was_cut() {
    let host = Host::new();
    with_array(&host);
    let grown = host.json(&[
        "grow",
        "a.orth:/g/t",
        "--axis",
        "time",
        "--lo",
        "1",
        "--hi",
        "1",
    ]);
    assert_eq!(text_of(&grown, "domain"), "[[-1,4],[0,3]]");
    assert!(grown.get("generation").is_some());
    assert_eq!(
        host.ok(&["get", "a.orth:/g/t[-1:1, :]"]),
        "-1,-1,-1\n1,2,3\n"
    );
    let cut = host.json(&["trim", "a.orth:/g/t", "--axis", "y", "--hi", "2"]);
    assert_eq!(text_of(&cut, "domain"), "[[-1,4],[0,1]]");
    assert_eq!(text_of(&cut, "dropped"), "2");
    assert_eq!(text_of(&cut, "scrubbed"), "2");
    host.ok(&["grow", "a.orth:/g/t", "--axis", "1", "--hi", "2"]);
    assert_eq!(
        host.ok(&["get", "a.orth:/g/t[0:2, :]"]),
        "1,-1,-1\n4,-1,-1\n"
    );
    let kept = host.json(&["trim", "a.orth:/g/t", "--axis", "time", "--keep", "0:2"]);
    assert_eq!(text_of(&kept, "domain"), "[[0,2],[0,3]]");
}

#[test]
fn an_aligned_trim_rewrites_no_chunk() {
    let host = Host::new();
    with_array(&host);
    let cut = host.json(&[
        "trim",
        "a.orth:/g/t",
        "--axis",
        "time",
        "--lo",
        "1",
        "--aligned",
    ]);
    assert_eq!(text_of(&cut, "domain"), "[[0,3],[0,3]]");
    assert_eq!(text_of(&cut, "scrubbed"), "0");
}

#[test]
fn appending_and_prepending_write_the_edge_alone() {
    let host = Host::new();
    with_array(&host);
    npy_i16(&host, "row.npy", "(1, 3)", &[10, 11, 12]);
    npy_i16(&host, "flat.npy", "(3,)", &[20, 21, 22]);
    let done = host.json(&["append", "a.orth:/g/t", "row.npy", "--axis", "time"]);
    for key in ["generation", "chunks_written", "bytes_written"] {
        assert!(done.get(key).is_some(), "{key}");
    }
    assert_eq!(text_of(&done, "chunks_written"), "2");
    // One coordinate of the axis may be given without it.
    host.ok(&["prepend", "a.orth:/g/t", "flat.npy", "--axis", "0"]);
    assert_eq!(
        host.ok(&["get", "a.orth:/g/t"]),
        "20,21,22\n1,2,3\n4,5,6\n7,8,9\n10,11,12\n"
    );
    assert_eq!(
        text_of(&host.json(&["info", "a.orth:/g/t"]), "domain"),
        "[[-1,4],[0,3]]"
    );
}

#[test]
fn several_arrays_grow_in_one_commit_or_none_does() {
    let host = Host::new();
    with_array(&host);
    host.ok(&[
        "create",
        "a.orth:/g/time",
        "--shape",
        "3",
        "--dims",
        "time",
        "--dtype",
        "i16",
    ]);
    npy_i16(&host, "row.npy", "(1, 3)", &[10, 11, 12]);
    npy_i16(&host, "stamp.npy", "(1,)", &[30]);
    npy_i16(&host, "bad.npy", "(2, 2)", &[0; 4]);
    let before = host.json(&["info", "a.orth"]);
    let e = host.fails(
        2,
        &[
            "append",
            "a.orth:/g",
            "--axis",
            "time",
            "time=stamp.npy",
            "t=bad.npy",
        ],
    );
    assert!(str_of(&e, "message").contains("[0:3, 0:3]"), "{e}");
    assert_eq!(
        text_of(&host.json(&["info", "a.orth"]), "generation"),
        text_of(&before, "generation")
    );
    let done = host.json(&[
        "append",
        "a.orth:/g",
        "--axis",
        "time",
        "t=row.npy",
        "time=stamp.npy",
    ]);
    assert_eq!(host.ok(&["get", "a.orth:/g/time[end-1]"]), "30\n");
    assert_eq!(host.ok(&["get", "a.orth:/g/t[end-1, :]"]), "10\n11\n12\n");
    let after = host.json(&["info", "a.orth"]);
    assert_eq!(text_of(&after, "generation"), text_of(&done, "generation"));
}

#[test]
fn a_window_advances_at_its_width() {
    let host = Host::new();
    with_array(&host);
    npy_i16(&host, "row.npy", "(1, 3)", &[10, 11, 12]);
    let done = host.json(&["advance", "a.orth:/g/t", "row.npy", "--axis", "time"]);
    for key in ["dropped", "scrubbed", "generation", "chunks_written"] {
        assert!(done.get(key).is_some(), "{key}");
    }
    assert_eq!(
        text_of(&host.json(&["info", "a.orth:/g/t"]), "domain"),
        "[[1,4],[0,3]]"
    );
    assert_eq!(host.ok(&["get", "a.orth:/g/t"]), "4,5,6\n7,8,9\n10,11,12\n");
}

#[test]
fn a_translation_moves_coordinates_and_no_chunk() {
    let host = Host::new();
    with_array(&host);
    let chunks = host.json(&["stat", "a.orth:/g/t", "--chunks"]);
    let moved = host.json(&["translate", "a.orth:/g/t", "--by", "-10,5"]);
    assert_eq!(text_of(&moved, "domain"), "[[-10,-7],[5,8]]");
    assert_eq!(
        text_of(&host.json(&["info", "a.orth:/g/t"]), "origin"),
        "[-10,5]"
    );
    assert_eq!(host.ok(&["get", "a.orth:/g/t[-10, :]"]), "1\n2\n3\n");
    let after = host.json(&["stat", "a.orth:/g/t", "--chunks"]);
    assert_eq!(text_of(&after, "chunks"), text_of(&chunks, "chunks"));
}

#[test]
fn any_other_domain_keeps_what_both_share() {
    let host = Host::new();
    with_array(&host);
    let done = host.json(&["set-domain", "a.orth:/g/t", "--domain", "1:5,-1:2"]);
    for key in ["dropped", "scrubbed"] {
        assert!(done.get(key).is_some(), "{key}");
    }
    assert_eq!(
        host.ok(&["get", "a.orth:/g/t[1:4, :]"]),
        "-1,4,5\n-1,7,8\n-1,-1,-1\n"
    );
}

#[test]
fn what_cannot_be_done_names_the_axis_shows_the_domain_and_changes_nothing() {
    let host = Host::new();
    with_array(&host);
    npy_i16(&host, "wide.npy", "(1, 4)", &[0; 4]);
    let before = host.read("a.orth");
    for (args, word) in [
        (
            &["trim", "a.orth:/g/t", "--axis", "time", "--lo", "4"][..],
            "0:3",
        ),
        (
            &["trim", "a.orth:/g/t", "--axis", "time", "--keep", "2:1"],
            "0:3",
        ),
        (&["grow", "a.orth:/g/t", "--axis", "z", "--hi", "1"], "time"),
        (
            &[
                "grow",
                "a.orth:/g/t",
                "--axis",
                "0",
                "--hi",
                "9223372036854775807",
            ],
            "2^62",
        ),
        (&["set-domain", "a.orth:/g/t", "--domain", "0:3"], "0:3"),
        (&["set-domain", "a.orth:/g/t", "--domain", "0:3,5:4"], "5:4"),
        (&["translate", "a.orth:/g/t", "--by", "1"], "2 axes"),
        (
            &["append", "a.orth:/g/t", "wide.npy", "--axis", "time"],
            "0:3",
        ),
        (
            &[
                "append",
                "a.orth:/g/t",
                &arg(&data("bool.npy")),
                "--axis",
                "time",
            ],
            "int16",
        ),
    ] {
        let e = host.fails(2, args);
        assert!(e.to_string().contains(word), "{args:?}: {e}");
        if args[0] == "trim" {
            assert_eq!(str_of(&e, "array"), "/g/t", "{args:?}: {e}");
        }
        assert_eq!(host.read("a.orth"), before, "{args:?}");
    }
    host.fails(2, &["grow", "a.orth:/g/t", "--axis", "time"]);
    host.fails(
        3,
        &["append", "a.orth:/g/t", "missing.npy", "--axis", "time"],
    );
}
