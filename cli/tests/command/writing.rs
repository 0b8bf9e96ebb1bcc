//! `put`: sources, shapes, refusals.

use crate::host::{Host, arg, data, str_of, text_of};

fn with_array(host: &Host) {
    host.ok(&[
        "create",
        "a.orth:/t",
        "--domain",
        "-1:1,0:3",
        "--dtype",
        "i32",
        "--chunks",
        "1,2",
    ]);
}

#[test]
fn a_put_reports_its_commit_and_what_it_wrote() {
    let host = Host::new();
    with_array(&host);
    let done = host.json(&["put", "a.orth:/t[0, :]", "--value", "-7", "-m", "row"]);
    for key in ["generation", "chunks_written", "bytes_written"] {
        assert!(done.get(key).is_some(), "{key}");
    }
    assert_eq!(text_of(&done, "chunks_written"), "2");
    assert_eq!(host.ok(&["get", "a.orth:/t"]), "0,0,0\n-7,-7,-7\n");
}

#[test]
fn raw_csv_and_npy_are_taken_from_files_and_from_a_pipe() {
    let host = Host::new();
    with_array(&host);
    let raw: Vec<u8> = (1..=6_i32).flat_map(i32::to_le_bytes).collect();
    host.write("r.raw", &raw);
    host.write("r.bin", &raw);
    host.ok(&["put", "a.orth:/t", "r.raw"]);
    assert_eq!(host.ok(&["get", "a.orth:/t"]), "1,2,3\n4,5,6\n");
    host.ok(&["put", "a.orth:/t", "--value", "0"]);
    host.fails(2, &["put", "a.orth:/t", "r.bin"]);
    host.ok(&["put", "a.orth:/t", "r.bin", "--format", "raw"]);
    host.ok(&["get", "a.orth:/t", "-o", "t.npy"]);
    for (args, input) in [
        (
            &["put", "a.orth:/t", "-", "--format", "raw"][..],
            raw.clone(),
        ),
        (
            &["put", "a.orth:/t", "-", "--format", "csv"],
            b"1,2,3\r\n4,5,6\r\n".to_vec(),
        ),
        (&["put", "a.orth:/t", "-"], host.read("t.npy")),
    ] {
        host.ok(&["put", "a.orth:/t", "--value", "0"]);
        let ran = host.run_with_input(args, &input);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(host.ok(&["get", "a.orth:/t"]), "1,2,3\n4,5,6\n", "{args:?}");
    }
    assert_eq!(
        host.run_with_input(&["put", "a.orth:/t", "-"], b"1,2").code,
        2
    );
}

#[test]
fn a_block_has_the_shape_of_the_box_with_or_without_dropped_axes() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/c",
        "--shape",
        "4,2,3,5",
        "--dtype",
        "i32",
    ]);
    let cube = arg(&data("fortran_i4.npy"));
    host.ok(&["put", "a.orth:/c[1, :, :, :]", &cube]);
    host.fails(2, &["put", "a.orth:/c[1:3, :, :, :]", &cube]);
    host.fails(2, &["put", "a.orth:/c[1, :, :, 0]", &cube]);
    assert_eq!(
        host.ok(&["get", "a.orth:/c[1, 0, 0, :]"]),
        "-7\n-6\n-5\n-4\n-3\n"
    );
}

#[test]
fn outside_the_domain_the_help_names_grow() {
    let host = Host::new();
    with_array(&host);
    let before = host.read("a.orth");
    let e = host.fails(2, &["put", "a.orth:/t[-2:0, :]", "--value", "1"]);
    assert_eq!(str_of(&e, "code"), "out_of_domain");
    assert!(str_of(&e, "help").contains("orthant grow"), "{e}");
    assert!(str_of(&e, "help").contains("[-1:1, 0:3]"), "{e}");
    assert_eq!(host.read("a.orth"), before);
}

#[test]
fn values_of_another_type_are_refused_and_change_nothing() {
    let host = Host::new();
    with_array(&host);
    let before = host.read("a.orth");
    host.fails(2, &["put", "a.orth:/t", "--value", "1.5"]);
    host.fails(2, &["put", "a.orth:/t", "--value", "3000000000"]);
    host.fails(2, &["put", "a.orth:/t", &arg(&data("bool.npy"))]);
    host.write("six.csv", b"1,2,3,4,5,x");
    host.fails(2, &["put", "a.orth:/t", "six.csv"]);
    host.fails(3, &["put", "a.orth:/t", "missing.npy"]);
    host.fails(2, &["put", "a.orth:/t"]);
    assert_eq!(host.read("a.orth"), before);
}

#[test]
fn a_second_writer_is_told_so_at_once() {
    let host = Host::new();
    with_array(&host);
    let container = orthant::Container::open(host.path("a.orth")).unwrap();
    let writer = container.writer().unwrap();
    let e = host.fails(5, &["put", "a.orth:/t", "--value", "1"]);
    assert_eq!(str_of(&e, "code"), "busy");
    // Readers do not wait.
    host.ok(&["get", "a.orth:/t"]);
    drop(writer);
    host.ok(&["put", "a.orth:/t", "--value", "1"]);
}
