//! Numbers keep their last digit and values their type, in and out.

use crate::host::{Host, str_of, text_of};

#[test]
fn values_may_begin_with_a_hyphen_in_both_spellings() {
    let host = Host::new();
    for (i, args) in [
        &["--fill", "-9999", "--domain", "-4:0", "--origin", "-1"][..],
        &["--fill=-9999", "--domain=-4:0", "--origin=-1"],
    ]
    .iter()
    .enumerate()
    {
        let target = format!("h.orth:/a{i}");
        let made = host.json(&[&["create", &target, "--dtype", "f64"], *args].concat());
        assert_eq!(text_of(&made, "fill"), "-9999.0");
        assert_eq!(text_of(&made, "domain"), "[[-4,0]]");
        assert_eq!(text_of(&made, "origin"), "[-1]");
        host.ok(&["put", &target, "--value", "-inf"]);
        host.ok(&["put", &target, "--value=-2.5", "--sel", "-1"]);
        host.ok(&["put", &target, "--value=-2.5", "--sel=-2"]);
        assert_eq!(
            host.ok(&["get", &target]),
            "-Infinity\n-Infinity\n-2.5\n-2.5\n"
        );
        host.ok(&["translate", &target, "--by", "-3"]);
        host.ok(&["translate", &target, "--by=-3"]);
        host.ok(&["set-domain", &target, "--domain", "-12:-6"]);
        host.ok(&["trim", &target, "--axis", "0", "--keep", "-12:-7"]);
        host.ok(&["trim", &target, "--axis", "0", "--keep=-12:-8"]);
    }
    host.ok(&[
        "create",
        "f.orth:/inf",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--fill",
        "-inf",
    ]);
    host.ok(&[
        "create",
        "f.orth:/inf2",
        "--shape",
        "1",
        "--dtype",
        "f32",
        "--fill=-inf",
    ]);
    host.ok(&["attr", "set", "f.orth:/inf", "a", "-5"]);
    host.ok(&["attr", "set", "f.orth:/inf", "b", "-x y"]);
    host.ok(&["attr", "set", "f.orth:/inf", "c", "-inf", "--type", "f32"]);
    host.ok(&["attr", "set", "f.orth:/inf", "d", "--", "-q"]);
    let attributes = host.json(&["attr", "ls", "f.orth:/inf"]);
    assert_eq!(
        text_of(&attributes, "attributes"),
        "{\"a\":-5,\"b\":\"-x y\",\"c\":\"-Infinity\",\"d\":\"-q\"}"
    );
}

#[test]
fn sixty_four_bit_integers_are_exact_in_every_form() {
    let host = Host::new();
    for (dtype, fill, cell) in [
        ("i64", "-9223372036854775808", "9223372036854775807"),
        ("u64", "18446744073709551615", "9007199254740993"),
    ] {
        let target = format!("x.orth:/{dtype}");
        host.ok(&[
            "create", &target, "--shape", "2", "--dtype", dtype, "--fill", fill,
        ]);
        host.ok(&["put", &target, "--sel", "1", "--value", cell]);
        assert_eq!(host.ok(&["get", &target]), format!("{fill}\n{cell}\n"));
        assert_eq!(
            text_of(&host.json(&["get", &target]), "values"),
            format!("[{fill},{cell}]")
        );
        assert_eq!(text_of(&host.json(&["info", &target]), "fill"), fill);
        host.ok(&["attr", "set", &target, "last", cell]);
        assert_eq!(
            host.ok(&["attr", "get", &target, "last"]),
            format!("{cell}\n")
        );
        assert_eq!(
            text_of(&host.json(&["attr", "get", &target, "last"]), "value"),
            cell
        );
    }
    let target = "x.orth:/i64";
    host.fails(2, &["put", target, "--value", "9223372036854775808"]);
    host.fails(
        2,
        &[
            "create",
            "x.orth:/y",
            "--shape",
            "1",
            "--dtype",
            "i8",
            "--fill",
            "128",
        ],
    );
}

#[test]
fn the_text_nan_is_no_number() {
    let host = Host::new();
    host.ok(&["create", "n.orth"]);
    host.ok(&["attr", "set", "n.orth", "text", "NaN"]);
    host.ok(&["attr", "set", "n.orth", "quoted", "\"Infinity\""]);
    host.ok(&["attr", "set", "n.orth", "number", "NaN", "--type", "f64"]);
    host.ok(&[
        "attr",
        "set",
        "n.orth",
        "list",
        "[1.0, \"NaN\", \"-Infinity\", -0.0]",
        "--type",
        "f32",
    ]);
    host.ok(&["attr", "set", "n.orth", "mixed", "[1, \"NaN\"]"]);
    let info = host.json(&["info", "n.orth:/"]);
    assert_eq!(
        text_of(&info, "attributes"),
        "{\"list\":[1.0,\"NaN\",\"-Infinity\",-0.0],\"mixed\":[1,\"NaN\"],\"number\":\"NaN\",\"quoted\":\"Infinity\",\"text\":\"NaN\"}"
    );
    assert_eq!(
        text_of(&info, "attribute_types"),
        "{\"list\":\"float32[4]\",\"mixed\":\"tree\",\"number\":\"float64\",\"quoted\":\"string\",\"text\":\"string\"}"
    );
}

#[test]
fn a_fill_value_is_printed_as_it_can_be_given_again() {
    let host = Host::new();
    for (i, (dtype, given, printed)) in [
        ("f32", "NaN", "\"NaN\""),
        ("f32", "0x7fc00001", "\"0x7fc00001\""),
        ("f64", "0x7ff8000000000001", "\"0x7ff8000000000001\""),
        ("f64", "-Infinity", "\"-Infinity\""),
        ("f32", "0.1", "0.1"),
        ("c64", "[1.5,\"NaN\"]", "[1.5,\"NaN\"]"),
        ("bool", "true", "true"),
        ("datetime64:s", "NaT", "\"NaT\""),
        ("datetime64:s", "1970-01-01T00:00:05", "5"),
        ("{a:int16,b:float32}", "[1,0.0]", "\"AQAAAAAA\""),
        ("string", "none", "\"none\""),
        ("r24", "AQID", "\"AQID\""),
    ]
    .iter()
    .enumerate()
    {
        let target = format!("f.orth:/a{i}");
        host.ok(&[
            "create", &target, "--shape", "1", "--dtype", dtype, "--fill", given,
        ]);
        let info = host.json(&["info", &target]);
        assert_eq!(text_of(&info, "fill"), *printed, "{dtype} {given}");
        let again = format!("f.orth:/b{i}");
        let shown = info.get("fill").unwrap();
        let shown = shown
            .as_str()
            .map_or_else(|| shown.to_string(), str::to_owned);
        host.ok(&[
            "create", &again, "--shape", "1", "--dtype", dtype, "--fill", &shown,
        ]);
        assert_eq!(text_of(&host.json(&["info", &again]), "fill"), *printed);
    }
    let info = host.json(&[
        "create",
        "f.orth:/t",
        "--shape",
        "1",
        "--dtype",
        "datetime64:ms",
    ]);
    assert_eq!(str_of(&info, "fill"), "NaT");
}
