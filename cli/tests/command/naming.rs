//! How objects and parts of arrays are named.

use std::path::Path;

use orthant::Json;

use crate::host::{Host, str_of, text_of};

fn with_array(host: &Host) {
    host.ok(&[
        "create",
        "a.orth:/g/t",
        "--domain",
        "-4:4,0:6",
        "--dims",
        "time,y",
        "--dtype",
        "i16",
        "--chunks",
        "3,4",
    ]);
    let cells: Vec<String> = (0..48).map(|i| i.to_string()).collect();
    host.write("all.csv", cells.join("\n").as_bytes());
    host.ok(&["put", "a.orth:/g/t", "all.csv"]);
}

#[test]
fn brackets_and_flags_select_the_same() {
    let host = Host::new();
    with_array(&host);
    let want = host.json(&["get", "a.orth:/g/t[-4:-2, 1:3]"]);
    assert_eq!(text_of(&want, "values"), "[[1,2],[7,8]]");
    assert_eq!(text_of(&want, "region"), "[[-4,-2],[1,3]]");
    for args in [
        &["get", "a.orth:/g/t", "--sel=-4:-2,1:3"][..],
        &["get", "a.orth:/g/t", "--sel", "-4:-2,1:3"],
        &[
            "get",
            "a.orth:/g/t",
            "--sel",
            "time=-4:-2",
            "--sel",
            "y=1:3",
        ],
        &["get", "a.orth:/g/t", "--sel", "0=-4:-2", "--sel", "1=1:3"],
        &[
            "get",
            "a.orth",
            "--path",
            "/g/t",
            "--sel",
            "begin:begin+2,1:end-3",
        ],
    ] {
        assert_eq!(host.json(args), want, "{args:?}");
    }
}

#[test]
fn an_axis_that_no_flag_names_is_whole() {
    let host = Host::new();
    with_array(&host);
    let got = host.json(&["get", "a.orth:/g/t", "--sel", "time=-4"]);
    assert_eq!(text_of(&got, "values"), "[0,1,2,3,4,5]");
    assert_eq!(text_of(&got, "region"), "[[-4,-3],[0,6]]");
    assert_eq!(text_of(&got, "drop_axes"), "[0]");
    assert_eq!(text_of(&got, "shape"), "[6]");
}

#[test]
fn steps_and_the_ellipsis_are_understood() {
    let host = Host::new();
    with_array(&host);
    let got = host.json(&["get", "a.orth:/g/t[..., ::3]"]);
    assert_eq!(text_of(&got, "step"), "[1,3]");
    assert_eq!(text_of(&got, "shape"), "[8,2]");
    let got = host.json(&["get", "a.orth:/g/t[::5, end-1]"]);
    assert_eq!(text_of(&got, "values"), "[5,35]");
}

#[test]
fn clip_cuts_ranges_but_never_a_single_index() {
    let host = Host::new();
    with_array(&host);
    let got = host.json(&["get", "a.orth:/g/t[-99:-3, 5:99]", "--clip"]);
    assert_eq!(text_of(&got, "region"), "[[-4,-3],[5,6]]");
    host.fails(2, &["get", "a.orth:/g/t[-99:-3, 5:99]"]);
    host.fails(2, &["get", "a.orth:/g/t[-99, :]", "--clip"]);
}

#[test]
fn the_from_the_end_habit_is_answered() {
    let host = Host::new();
    with_array(&host);
    let e = host.run(&["get", "a.orth:/g/t[:, -1]"]);
    assert_eq!(e.code, 2);
    assert!(
        e.err.contains("[0,6)") && e.err.contains("end-1"),
        "{}",
        e.err
    );
}

#[test]
fn a_label_given_to_sel_points_to_the_label_flag() {
    let host = Host::new();
    with_array(&host);
    for text in ["time=2020-01-01:2020-02-01", "time=1.5"] {
        let e = host.run(&["get", "a.orth:/g/t", "--sel", text]);
        assert_eq!(e.code, 2);
        assert!(e.err.contains("help: --label"), "{}", e.err);
    }
}

#[test]
fn a_forgotten_slash_is_answered_with_the_objects_name() {
    let host = Host::new();
    with_array(&host);
    for (code, args) in [
        (2, ["get", "a.orth:t"]),
        (2, ["rm", "a.orth:t"]),
        (3, ["info", "a.orth/t"]),
        (3, ["ls", "a.orth:t"]),
    ] {
        let e = host.fails(code, &args);
        let help = str_of(&e, "help");
        assert_eq!(help, "an object is named a.orth:/t", "{args:?}");
    }
    assert_eq!(
        text_of(&host.fails(3, &["info", "b.orth:t"]), "help"),
        "null"
    );
}

#[test]
fn an_odd_name_is_given_by_path() {
    let host = Host::new();
    for name in ["/a[1]", "/x:/y[0]"] {
        host.ok(&[
            "create", "odd.orth", "--path", name, "--shape", "2", "--dtype", "u8",
        ]);
        host.ok(&[
            "put",
            "odd.orth",
            "--path",
            name,
            "--sel=0:2",
            "--value",
            "7",
        ]);
        assert_eq!(
            host.ok(&["get", "odd.orth", "--path", name, "--sel", "1"]),
            "7\n"
        );
        host.ok(&["attr", "set", "odd.orth", "--path", name, "k", "v"]);
        host.ok(&["info", "odd.orth", "--path", name]);
        host.ok(&["stat", "odd.orth", "--path", name, "--chunks"]);
        host.ok(&["digest", "odd.orth", "--path", name]);
        host.ok(&[
            "grow", "odd.orth", "--path", name, "--axis", "0", "--hi", "1",
        ]);
        host.ok(&["rm", "odd.orth", "--path", name]);
    }
}

#[test]
fn labels_select_through_the_nearest_coordinate_array_with_both_ends() {
    let host = Host::new();
    with_array(&host);
    // An ancestor's coordinate, counted as CF does, at signed coordinates.
    host.ok(&[
        "create",
        "a.orth:/time",
        "--domain",
        "-4:4",
        "--dims",
        "time",
        "--dtype",
        "f64",
        "--units",
        "hours since 2020-01-01",
    ]);
    host.ok(&["put", "a.orth:/time", "--value", "0"]);
    host.write("h.csv", b"0\n12\n24\n36\n48\n60\n72\n84\n");
    host.ok(&["put", "a.orth:/time", "h.csv"]);
    let got = host.json(&[
        "get",
        "a.orth:/g/t",
        "--label",
        "time=2020-01-02:2020-01-03",
        "--sel",
        "y=0",
    ]);
    assert_eq!(text_of(&got, "region"), "[[-2,2],[0,1]]");
    assert_eq!(text_of(&got, "values"), "[12,18,24,30]");
    // A nearer one of its own group hides it; a single label drops the axis.
    host.ok(&[
        "create",
        "a.orth:/g/time",
        "--domain",
        "-4:4",
        "--dims",
        "time",
        "--dtype",
        "datetime64:D",
    ]);
    host.write("d.csv", b"10\n11\n12\n13\n14\n15\n16\n17\n");
    host.ok(&["put", "a.orth:/g/time", "d.csv"]);
    let got = host.json(&["get", "a.orth:/g/t", "--label", "time=1970-01-13"]);
    assert_eq!(text_of(&got, "region"), "[[-2,-1],[0,6]]");
    assert_eq!(text_of(&got, "drop_axes"), "[0]");
    let e = host.fails(2, &["get", "a.orth:/g/t", "--label", "time=1990-01-01"]);
    assert!(text_of(&e, "message").contains("1970-01-11"), "{e}");
    host.fails(2, &["get", "a.orth:/g/t", "--label", "y=3"]);
    host.fails(
        2,
        &[
            "get",
            "a.orth:/g/t",
            "--label",
            "time=1970-01-13",
            "--sel",
            "time=0",
        ],
    );
}

#[test]
fn coordinates_are_picked_one_by_one_by_a_list_or_a_mask() {
    let host = Host::new();
    with_array(&host);
    let npy = |descr: &str, n: usize, bytes: &[u8]| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({n},), }}");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend(u16::try_from(dict.len()).unwrap().to_le_bytes());
        out.extend(dict.as_bytes());
        out.extend(bytes);
        out
    };
    let list: Vec<u8> = [3_i64, -4, -4]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    host.write("list.npy", &npy("<i8", 3, &list));
    host.write("mask.npy", &npy("|b1", 6, &[1, 0, 0, 0, 0, 1]));
    host.write("short.npy", &npy("|b1", 2, &[1, 0]));
    let got = host.json(&[
        "get",
        "a.orth:/g/t",
        "--index",
        "time=list.npy",
        "--index",
        "y=mask.npy",
    ]);
    assert_eq!(text_of(&got, "values"), "[[42,47],[0,5],[0,5]]");
    assert_eq!(text_of(&got, "shape"), "[3,2]");
    host.ok(&[
        "get",
        "a.orth:/g/t",
        "--index",
        "time=list.npy",
        "-o",
        "picked.raw",
    ]);
    assert_eq!(host.read("picked.raw").len(), 3 * 6 * 2);
    let e = host.fails(2, &["get", "a.orth:/g/t", "--index", "y=short.npy"]);
    assert!(text_of(&e, "message").contains("6 coordinates"), "{e}");
    host.fails(2, &["get", "a.orth:/g/t", "--index", "y=list.npy"]);
    host.fails(3, &["get", "a.orth:/g/t", "--index", "y=missing.npy"]);
}

/// The library's vectors, through the real parser of arguments, in brackets and in both spellings of the flag.
#[test]
fn every_selection_of_the_vectors_means_the_same_on_the_command_line() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/vectors/signed/selection.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!(
            "skipped: {} is not there (a packaged crate)",
            file.display()
        );
        return;
    };
    let vectors: Json = text.parse().unwrap();
    let cases = vectors.get("cases").unwrap().as_array().unwrap();
    assert_eq!(cases.len(), 71);
    let host = Host::new();
    let mut made = Vec::new();
    for case in cases {
        check_case(&host, case, &mut made);
    }
}

/// `min` and `max` of a box.
fn pairs(of: &Json) -> Vec<(i64, i64)> {
    let side = |key: &str| -> Vec<i64> {
        let list = of.get(key).unwrap().as_array().unwrap();
        list.iter().map(|x| x.as_i64().unwrap()).collect()
    };
    side("min").into_iter().zip(side("max")).collect()
}

/// An array of that domain, one for each domain that occurs.
fn array_of(host: &Host, domain: &Json, made: &mut Vec<String>) -> String {
    let ranges: Vec<String> = pairs(domain)
        .iter()
        .map(|(lo, hi)| format!("{lo}:{hi}"))
        .collect();
    let domain = ranges.join(",");
    let at = made.iter().position(|d| *d == domain);
    let target = format!("v.orth:/a{}", at.unwrap_or(made.len()));
    if at.is_none() {
        let domain_flag = format!("--domain={domain}");
        host.ok(&["create", &target, "--dtype", "u8", &domain_flag]);
        made.push(domain);
    }
    target
}

fn check_case(host: &Host, case: &Json, made: &mut Vec<String>) {
    let target = array_of(host, case.get("domain").unwrap(), made);
    let selection = str_of(case, "text");
    let inside = selection
        .trim()
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'));
    let bracketed = format!("{target}[{}]", inside.unwrap_or(selection));
    let flag = format!("--sel={selection}");
    let clip: &[&str] = if text_of(case, "clip") == "true" {
        &["--clip"]
    } else {
        &[]
    };
    let expect = case.get("expect").unwrap();
    for args in [
        &["explain", &bracketed][..],
        &["explain", &target, &flag],
        &["explain", &target, "--sel", selection],
    ] {
        let args = [args, clip].concat();
        let Some(error) = expect.get("error").and_then(Json::as_str) else {
            let got = host.json(&args);
            let region: Vec<String> = pairs(expect)
                .iter()
                .map(|(a, b)| format!("[{a},{b}]"))
                .collect();
            let region = format!("[{}]", region.join(","));
            assert_eq!(text_of(&got, "region"), region, "{case}");
            assert_eq!(
                text_of(&got, "drop_axes"),
                text_of(expect, "drop_axes"),
                "{case}"
            );
            continue;
        };
        let code = match error {
            "out_of_domain" => "out_of_domain",
            "index_limit" => "limit_exceeded",
            _ => "invalid_argument",
        };
        let e = host.fails(2, &args);
        assert_eq!(str_of(&e, "code"), code, "{args:?}: {case}");
    }
}

#[test]
fn an_array_without_axes_takes_no_selection_or_an_empty_one() {
    let host = Host::new();
    host.ok(&[
        "create",
        "s.orth:/s",
        "--domain=",
        "--chunks=",
        "--dtype",
        "f32",
        "--fill",
        "NaN",
    ]);
    assert_eq!(host.ok(&["get", "s.orth:/s"]), "NaN\n");
    host.ok(&["put", "s.orth:/s[]", "--value", "2.5"]);
    assert_eq!(host.ok(&["get", "s.orth:/s[]"]), "2.5\n");
    let stat = host.json(&["stat", "s.orth:/s", "--chunks"]);
    assert!(text_of(&stat, "chunks").contains("\"coord\":[]"), "{stat}");
    host.fails(2, &["get", "s.orth:/s[0]"]);
    host.fails(2, &["grow", "s.orth:/s", "--axis", "0", "--hi", "1"]);
}
