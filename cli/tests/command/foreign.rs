//! Files that NumPy wrote come in with the right values, and what cannot come in is said.

use crate::host::{Host, arg, data, str_of, text_of};

const NAMES: [&str; 10] = [
    "fortran_i4",
    "big_endian_f8",
    "big_endian_fortran_c8",
    "text_u4",
    "bool",
    "datetime_s",
    "record",
    "scalar_u8",
    "empty_f4",
    "half_f2",
];

#[test]
fn what_numpy_saved_has_the_elements_numpy_has() {
    let host = Host::new();
    for name in NAMES {
        let source = arg(&data(&format!("{name}.npy")));
        let want = std::fs::read(data(&format!("{name}.raw"))).unwrap();
        let target = format!("all.orth:/{name}");
        let report = host.json(&["import", &source, "all.orth"]);
        let arrays = report.get("arrays").unwrap().as_array().unwrap();
        assert_eq!(str_of(&arrays[0], "path"), format!("/{name}"));
        assert_eq!(str_of(&arrays[0], "source"), "/");
        assert_eq!(str_of(&arrays[0], "result"), "recoded");
        for key in ["reason", "chunks", "bytes_in", "bytes_out"] {
            assert!(arrays[0].get(key).is_some(), "{key}");
        }
        let out = format!("{name}.raw");
        host.ok(&["get", &target, "-o", &out]);
        assert_eq!(host.read(&out), want, "{name}");
        // Out as .npy, and in again.
        let out = format!("{name}.npy");
        host.ok(&["get", &target, "-o", &out]);
        host.ok(&["import", &out, "again.orth"]);
        let digest = |file: &str| text_of(&host.json(&["digest", file]), "arrays");
        let of_all = digest(&format!("all.orth:/{name}"));
        assert_eq!(digest(&format!("again.orth:/{name}")), of_all, "{name}");
        // And through `put`, which takes the same file.
        host.ok(&["put", &target, &source]);
        assert_eq!(digest(&format!("all.orth:/{name}")), of_all, "{name}");
    }
}

#[test]
fn a_digest_is_the_sha_256_of_the_raw_elements() {
    let host = Host::new();
    host.ok(&["import", &arg(&data("text_u4.npy")), "t.orth"]);
    // sha256sum of tests/data/text_u4.raw
    let digest = host.json(&["digest", "t.orth"]);
    let arrays = digest.get("arrays").unwrap().as_array().unwrap();
    assert_eq!(str_of(&arrays[0], "path"), "/text_u4");
    assert_eq!(
        str_of(&arrays[0], "sha256"),
        "19d5c82d724c92eb3618960bdbc5c3cb1331329f27c01ca54632ec16e0f37ffb"
    );
    assert!(host.ok(&["digest", "t.orth:/text_u4"]).starts_with(
        "19d5c82d724c92eb3618960bdbc5c3cb1331329f27c01ca54632ec16e0f37ffb  /text_u4\n"
    ));
}

#[test]
fn the_kind_of_a_source_is_told_by_its_content() {
    let host = Host::new();
    std::fs::copy(data("fortran_i4.npy"), host.path("cube.h5")).unwrap();
    host.ok(&["import", "cube.h5", "x.data"]);
    assert_eq!(
        text_of(&host.json(&["info", "x.data:/cube"]), "shape"),
        "[2,3,5]"
    );
    std::fs::copy(host.path("x.data"), host.path("x y.orth")).unwrap();
    assert_eq!(host.ok(&["ls", "x y.orth"]), "cube\n");
    let long = "n".repeat(255);
    std::fs::copy(host.path("x.data"), host.path(&long)).unwrap();
    assert_eq!(host.ok(&["ls", &long]), "cube\n");
}

#[test]
fn a_dry_run_writes_nothing_and_reports_the_same_arrays() {
    let host = Host::new();
    let npz = arg(&data("two.npz"));
    let report = host.json(&["import", &npz, "z.orth:/run/1", "--dry-run"]);
    assert!(host.names().is_empty());
    assert_eq!(text_of(&report, "generation"), "null");
    let arrays = report.get("arrays").unwrap().as_array().unwrap();
    assert_eq!(arrays.len(), 2);
    assert_eq!(str_of(&arrays[0], "source"), "/temp");
    assert_eq!(str_of(&arrays[0], "path"), "/run/1/temp");
    host.ok(&["import", &npz, "z.orth:/run/1"]);
    assert_eq!(
        host.ok(&["ls", "-R", "z.orth"]),
        "run/\nrun/1/\nrun/1/temp\nrun/1/time\n"
    );
    assert_eq!(
        host.ok(&["get", "z.orth:/run/1/time"]),
        "0\n10\n20\n30\n40\n"
    );
    // Only what was asked for; and a name that is not there is an error.
    host.ok(&["import", &npz, "one.orth", "--array", "/time"]);
    assert_eq!(host.ok(&["ls", "one.orth"]), "time\n");
    host.fails(2, &["import", &npz, "two.orth", "--array", "/nope"]);
    assert!(!host.path("two.orth").exists());
}

#[test]
fn a_dry_run_refuses_what_growing_would_refuse() {
    let host = Host::new();
    let (three, one) = (arg(&data("fortran_i4.npy")), arg(&data("bool.npy")));
    host.ok(&["import", &three, "a.orth"]);
    let before = host.read("a.orth");
    for (code, source, target) in [
        (2, &one, "a.orth:/fortran_i4"),
        (2, &three, "a.orth:/nope"),
        (3, &three, "gone.orth"),
    ] {
        for run in [&["--append", "0"][..], &["--append", "0", "--dry-run"]] {
            let e = host.fails(code, &[&["import", source, target], run].concat());
            assert_ne!(text_of(&e, "file"), "null", "{e}");
        }
    }
    let report = host.json(&[
        "import",
        &three,
        "a.orth:/fortran_i4",
        "--append",
        "0",
        "--dry-run",
    ]);
    let arrays = report.get("arrays").unwrap().as_array().unwrap();
    assert_eq!(str_of(&arrays[0], "path"), "/fortran_i4");
    assert_eq!(host.read("a.orth"), before);
    assert!(!host.path("gone.orth").exists());
}

#[test]
fn what_is_there_is_not_overwritten_unasked() {
    let host = Host::new();
    let source = arg(&data("fortran_i4.npy"));
    host.ok(&[
        "import", &source, "a.orth", "--chunks", "1,3,5", "--codecs", "portable", "--origin",
        "-1,0,0",
    ]);
    let info = host.json(&["info", "a.orth:/fortran_i4"]);
    assert_eq!(text_of(&info, "chunk_shape"), "[1,3,5]");
    assert_eq!(text_of(&info, "origin"), "[-1,0,0]");
    let e = host.fails(2, &["import", &source, "a.orth"]);
    assert_eq!(str_of(&e, "code"), "already_exists");
    assert!(str_of(&e, "help").contains("--replace"));
    host.fails(2, &["import", &source, "a.orth", "--dry-run"]);
    host.ok(&[
        "import",
        &source,
        "a.orth",
        "--replace",
        "--dims",
        "t,y,x",
        "--chunks",
        "x=2",
    ]);
    let info = host.json(&["info", "a.orth:/fortran_i4"]);
    assert_eq!(text_of(&info, "chunk_shape"), "[2,3,2]");
}

#[test]
fn an_import_grows_an_array_at_either_end() {
    let host = Host::new();
    let source = arg(&data("fortran_i4.npy"));
    host.ok(&[
        "import", &source, "a.orth", "--chunks", "2,2,5", "--dims", "t,y,x",
    ]);
    host.ok(&["import", &source, "a.orth", "--append", "t"]);
    assert_eq!(
        text_of(&host.json(&["info", "a.orth:/fortran_i4"]), "domain"),
        "[[0,4],[0,3],[0,5]]"
    );
    // The array itself may be named; the file of another name then still goes there.
    std::fs::copy(data("fortran_i4.npy"), host.path("older.npy")).unwrap();
    host.ok(&[
        "import",
        "older.npy",
        "a.orth:/fortran_i4",
        "--prepend",
        "0",
    ]);
    let got = host.json(&["get", "a.orth:/fortran_i4[:, 0, 0]"]);
    assert_eq!(text_of(&got, "region"), "[[-2,4],[0,1],[0,1]]");
    assert_eq!(text_of(&got, "values"), "[-7,8,-7,8,-7,8]");
    let before = host.read("a.orth");
    let e = host.fails(
        2,
        &["import", "older.npy", "a.orth:/fortran_i4", "--append", "y"],
    );
    assert!(str_of(&e, "message").contains("[-2:4, 0:3, 0:5]"), "{e}");
    let e = host.fails(
        2,
        &[
            "import",
            &arg(&data("big_endian_f8.npy")),
            "a.orth:/fortran_i4",
            "--append",
            "t",
        ],
    );
    assert!(str_of(&e, "message").contains("float64"), "{e}");
    assert_eq!(host.read("a.orth").len(), before.len());
}

#[test]
fn what_cannot_be_taken_is_refused_with_the_reason_and_the_rest_is_done() {
    let host = Host::new();
    host.write("text.npy", b"a,b\n");
    host.write("hdf.bin", b"\x89HDF\r\n\x1a\n........");
    host.write("empty.npy", b"");
    let cut = std::fs::read(data("big_endian_f8.npy")).unwrap();
    host.write("cut.npy", &cut[..cut.len() - 1]);
    let object = arg(&data("object.npy"));
    let ran = host.run(&[
        "import",
        "hdf.bin",
        "text.npy",
        "empty.npy",
        "cut.npy",
        &object,
        &arg(&data("bool.npy")),
        "a.orth",
        "--json",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report = ran.json();
    let arrays = report.get("arrays").unwrap().as_array().unwrap();
    let reasons: Vec<String> = arrays.iter().map(|a| text_of(a, "reason")).collect();
    for (reason, word) in
        reasons
            .iter()
            .zip(["HDF5", "unknown kind", "empty file", "cut", "|O", "null"])
    {
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(text_of(&arrays[0], "path"), "null");
    assert_eq!(str_of(&arrays[0], "result"), "refused");
    assert_eq!(host.ok(&["ls", "a.orth"]), "bool\n");
    // Nothing to take: no file is made.
    assert_eq!(host.run(&["import", "hdf.bin", "b.orth"]).code, 1);
    assert!(!host.path("b.orth").exists());
    host.fails(3, &["import", "missing.npy", "c.orth"]);
    assert!(!host.path("c.orth").exists());
}

/// Killed at any time, an import leaves no container, or the whole one; and the next one takes away what was left.
#[test]
fn a_killed_import_leaves_nothing_or_everything() {
    let host = Host::new();
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (400000,), }";
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend_from_slice(format!("{header:<117}\n").as_bytes());
    npy.extend((0..400_000_i32).flat_map(i32::to_le_bytes));
    host.write("a.npy", &npy);
    host.ok(&["import", "a.npy", "whole.orth:/a"]);
    let digest = |file: &str| text_of(&host.run(&["digest", file, "--json"]).json(), "container");
    let whole = digest("whole.orth");
    let (mut left, mut done) = (0, 0);
    for round in 0..50 {
        let mut child = host
            .command(&["import", "-q", "a.npy", "new.orth:/a"])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_micros(round * 500));
        child.kill().unwrap();
        child.wait().unwrap();
        if host.names().iter().any(|name| name == "new.orth") {
            assert_eq!(digest("new.orth"), whole, "round {round}");
            std::fs::remove_file(host.path("new.orth")).unwrap();
            done += 1;
        } else {
            left += u32::from(host.names().contains(&".new.orth.tmp".to_owned()));
        }
    }
    println!("{left} killed in the middle, {done} whole");
    assert!(left > 0, "none was killed in the middle");
    host.ok(&["import", "a.npy", "new.orth:/a"]);
    assert_eq!(host.names(), ["a.npy", "new.orth", "whole.orth"]);
    assert_eq!(digest("new.orth"), whole);
}
