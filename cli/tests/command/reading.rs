//! `get` and `explain`: forms, receipts, absent chunks.

use std::io::Read as _;
use std::process::Stdio;

use crate::host::{Host, str_of, text_of};

fn with_array(host: &Host) {
    host.ok(&[
        "create",
        "a.orth:/t",
        "--domain",
        "-2:2,0:4",
        "--dims",
        "y,x",
        "--dtype",
        "f32",
        "--chunks",
        "2,2",
        "--fill",
        "NaN",
    ]);
    host.ok(&["put", "a.orth:/t[-2:0, 0:2]", "--value", "1.5"]);
    host.write("b.csv", b"1,2\n3,-inf\n");
    host.ok(&["put", "a.orth:/t[0:2, 2:4]", "b.csv"]);
}

#[test]
fn a_table_has_a_line_a_row_and_more_axes_one_element_a_line() {
    let host = Host::new();
    with_array(&host);
    assert_eq!(
        host.ok(&["get", "a.orth:/t"]),
        "1.5,1.5,NaN,NaN\n1.5,1.5,NaN,NaN\nNaN,NaN,1.0,2.0\nNaN,NaN,3.0,-Infinity\n"
    );
    assert_eq!(host.ok(&["get", "a.orth:/t[0, 2:4]"]), "1.0\n2.0\n");
    assert_eq!(host.ok(&["get", "a.orth:/t[0, 2]"]), "1.0\n");
    host.ok(&["create", "a.orth:/c", "--shape", "1,2,2", "--dtype", "u8"]);
    assert_eq!(host.ok(&["get", "a.orth:/c"]), "0\n0\n0\n0\n");
}

#[test]
fn json_has_the_keys_of_the_contract_and_non_finite_floats_as_text() {
    let host = Host::new();
    with_array(&host);
    let got = host.json(&["get", "a.orth:/t[0:2, 2:4]", "--receipt"]);
    for (key, want) in [
        ("schema", "\"orthant/get/1\""),
        ("path", "\"/t\""),
        ("dtype", "\"float32\""),
        ("region", "[[0,2],[2,4]]"),
        ("step", "[1,1]"),
        ("drop_axes", "[]"),
        ("shape", "[2,2]"),
        ("values", "[[1.0,2.0],[3.0,\"-Infinity\"]]"),
    ] {
        assert_eq!(text_of(&got, key), want);
    }
    let receipt = got.get("receipt").unwrap();
    for key in [
        "chunks_touched",
        "chunks_absent",
        "chunks_constant",
        "chunks_cached",
        "chunks_decoded",
        "inner_decoded",
        "bytes_fetched",
        "bytes_decoded",
        "bytes_wanted",
        "path",
        "reason",
    ] {
        assert!(receipt.get(key).is_some(), "{key}");
    }
    assert_eq!(text_of(receipt, "chunks_decoded"), "1");
    assert_eq!(text_of(receipt, "bytes_wanted"), "16");
}

#[test]
fn explain_tells_what_a_read_then_costs() {
    let host = Host::new();
    with_array(&host);
    let plan = host.json(&["explain", "a.orth:/t[:, 0:3]"]);
    let read = host.json(&["get", "a.orth:/t[:, 0:3]", "--receipt"]);
    assert_eq!(text_of(&plan, "plan"), text_of(&read, "receipt"));
    assert_eq!(text_of(&plan, "region"), "[[-2,2],[0,3]]");
    let plan = plan.get("plan").unwrap().clone();
    assert_eq!(text_of(&plan, "chunks_touched"), "4");
    assert_eq!(text_of(&plan, "chunks_absent"), "2");
    assert_eq!(text_of(&plan, "chunks_constant"), "1");
    assert!(host.ok(&["explain", "a.orth:/t"]).contains("4 touched"));
}

#[test]
fn a_receipt_goes_to_stderr_so_that_data_stays_data() {
    let host = Host::new();
    with_array(&host);
    let ran = host.run(&["get", "a.orth:/t[0, 2]", "--receipt"]);
    assert_eq!(ran.text(), "1.0\n");
    assert!(ran.err.contains("1 touched"), "{}", ran.err);
}

// With an output file the receipt was in neither place.
#[test]
fn a_receipt_is_in_the_json_of_a_read_into_a_file() {
    let host = Host::new();
    with_array(&host);
    let answer = host.json(&["get", "a.orth:/t[0, 2]", "--receipt", "-o", "t.npy"]);
    let receipt = answer.get("receipt").unwrap();
    assert_eq!(text_of(receipt, "chunks_touched"), "1");
}

#[test]
fn an_absent_chunk_is_fill_or_a_negative_answer() {
    let host = Host::new();
    with_array(&host);
    host.ok(&["get", "a.orth:/t[-2:0, 0:2]", "--missing", "error"]);
    let e = host.fails(1, &["get", "a.orth:/t[-2:0, 0:3]", "--missing", "error"]);
    assert!(str_of(&e, "message").contains("1 of the 2 chunks"), "{e}");
}

#[test]
fn the_suffix_says_the_format_and_standard_output_needs_it_said() {
    let host = Host::new();
    with_array(&host);
    for format in ["npy", "csv", "json", "raw", "png"] {
        let out = format!("o.{format}");
        host.ok(&["get", "a.orth:/t", "-o", &out]);
        let piped = host.run(&["get", "a.orth:/t", "-o", "-", "--format", format]);
        assert_eq!(piped.code, 0);
        assert_eq!(piped.out, host.read(&out), "{format}");
    }
    assert_eq!(host.read("o.raw").len(), 64);
    host.fails(2, &["get", "a.orth:/t", "-o", "-"]);
    host.fails(2, &["get", "a.orth:/t", "-o", "plain"]);
    host.ok(&["get", "a.orth:/t", "-o", "plain", "--format", "raw"]);
    let said = host.json(&["get", "a.orth:/t", "-o", "p.raw"]);
    assert_eq!(str_of(&said, "output"), "p.raw");
}

#[test]
fn an_output_is_overwritten_only_by_force_and_never_left_in_half() {
    let host = Host::new();
    with_array(&host);
    host.write("o.npy", b"mine");
    let before = host.names();
    let e = host.fails(2, &["get", "a.orth:/t", "-o", "o.npy"]);
    assert_eq!(str_of(&e, "code"), "already_exists");
    assert_eq!(host.read("o.npy"), b"mine");
    host.fails(2, &["get", "a.orth:/t[9:10, :]", "-o", "new.npy"]);
    host.fails(3, &["get", "a.orth:/t", "-o", "nowhere/new.npy"]);
    assert_eq!(host.names(), before);
    host.ok(&["get", "a.orth:/t", "-o", "o.npy", "--force"]);
    assert!(host.read("o.npy").starts_with(b"\x93NUMPY"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let host = Host::new();
    host.ok(&[
        "create",
        "big.orth:/t",
        "--shape",
        "1000000",
        "--dtype",
        "u8",
    ]);
    for args in [
        &["get", "big.orth:/t"][..],
        &["get", "big.orth:/t", "--json"],
        &["ls", "-R", "big.orth"],
        &["man"],
    ] {
        let mut child = host
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_read_larger_than_memory_is_refused_before_it_begins() {
    let host = Host::new();
    host.ok(&[
        "create",
        "huge.orth:/t",
        "--domain",
        "-4611686018427387902:4611686018427387903,0:1000",
        "--dtype",
        "f64",
        "--chunks",
        "10,10",
    ]);
    let e = host.fails(2, &["get", "huge.orth:/t", "--format", "json"]);
    assert_eq!(str_of(&e, "code"), "limit_exceeded");
    host.ok(&["info", "huge.orth:/t"]);
    host.ok(&[
        "trim",
        "huge.orth:/t",
        "--axis",
        "0",
        "--lo",
        "4000000000000000000",
    ]);
    host.fails(2, &["digest", "huge.orth"]);
}

#[test]
fn both_ways_of_reading_and_any_number_of_threads_give_the_same() {
    let host = Host::new();
    with_array(&host);
    let want = host.ok(&["get", "a.orth:/t"]);
    for flags in [
        &["--read-via", "mmap"][..],
        &["--read-via", "pread"],
        &["--untrusted"],
        &["--threads", "1"],
        &["--threads", "3"],
        &["--no-lock"],
        &["--no-progress", "--color", "never", "-q"],
    ] {
        assert_eq!(
            host.ok(&[&["get", "a.orth:/t"], flags].concat()),
            want,
            "{flags:?}"
        );
    }
    host.fails(2, &["get", "a.orth:/t", "--threads", "0"]);
}
