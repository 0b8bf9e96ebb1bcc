//! Every exit code, and what an error says.

use crate::host::{Host, str_of, text_of};

/// Verbs that read, with a missing object where they need one.
const READING: [&[&str]; 9] = [
    &["info", "FILE"],
    &["ls", "FILE"],
    &["get", "FILE:/t"],
    &["attr", "ls", "FILE"],
    &["attr", "get", "FILE", "x"],
    &["stat", "FILE"],
    &["check", "FILE"],
    &["digest", "FILE"],
    &["explain", "FILE:/t"],
];

/// Verbs that change what is there.
const CHANGING: [&[&str]; 6] = [
    &["put", "FILE:/t", "--value", "1"],
    &["attr", "set", "FILE", "a", "1"],
    &["rm", "FILE:/t"],
    &["mv", "FILE:/t", "/u"],
    &["grow", "FILE:/t", "--axis", "0", "--hi", "1"],
    &["translate", "FILE:/t", "--by", "1"],
];

fn with_file(args: &[&str], file: &str) -> Vec<String> {
    args.iter().map(|a| a.replace("FILE", file)).collect()
}

fn fails(host: &Host, code: i32, args: &[&str], file: &str) -> orthant::Json {
    let owned = with_file(args, file);
    host.fails(code, &owned.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_missing_file_is_3_and_stays_missing() {
    let host = Host::new();
    for args in READING.iter().chain(&CHANGING) {
        let e = fails(&host, 3, args, "missing.orth");
        assert!(str_of(&e, "message").contains("missing.orth"), "{e}");
        assert_eq!(str_of(&e, "file"), "missing.orth");
        assert!(host.names().is_empty(), "{args:?}");
    }
}

#[test]
fn what_is_no_container_is_4_and_is_told_apart() {
    let host = Host::new();
    host.write("empty", b"");
    host.write("three", b"abc");
    host.write(
        "text",
        "a text that is longer than a header\n"
            .repeat(40)
            .as_bytes(),
    );
    host.write("hdf", &[&b"\x89HDF\r\n\x1a\n"[..], &[0; 600]].concat());
    host.write("zip", &[&b"PK\x03\x04"[..], &[0; 600]].concat());
    host.ok(&["create", "good.orth"]);
    let good = host.read("good.orth");
    host.write("shifted", &[&[b'x'; 1024][..], &good].concat());
    host.write("cut", &good[..5000]);
    for (file, words) in [
        ("empty", "0 bytes"),
        ("three", "3"),
        ("text", "text"),
        ("hdf", "HDF5"),
        ("zip", "ip"),
        ("shifted", ""),
        ("cut", ""),
    ] {
        let mut seen = Vec::new();
        for args in READING.iter().chain(&CHANGING) {
            let e = fails(&host, 4, args, file);
            seen.push(str_of(&e, "message").to_owned());
        }
        assert!(
            seen[0].contains(file) && seen[0].contains(words),
            "{seen:?}"
        );
    }
    // Files are as they were.
    assert_eq!(host.read("three"), b"abc");
}

#[test]
fn a_folder_or_a_fifo_is_3_at_once() {
    let host = Host::new();
    std::fs::create_dir(host.path("folder")).unwrap();
    let mut files = vec!["folder"];
    if cfg!(unix) {
        let made = std::process::Command::new("mkfifo")
            .arg(host.path("fifo"))
            .status();
        if made.is_ok_and(|s| s.success()) {
            files.push("fifo");
        }
    }
    for file in files {
        for args in READING.iter().chain(&CHANGING) {
            fails(&host, 3, args, file);
        }
        fails(&host, 3, &["create", "FILE:/x", "--group"], file);
        fails(&host, 3, &["create", "FILE"], file);
    }
}

#[test]
fn no_such_object_is_2() {
    let host = Host::new();
    host.ok(&["create", "a.orth"]);
    for args in [
        &["get", "a.orth:/t"][..],
        &["info", "a.orth:/t"],
        &["ls", "a.orth:/t"],
        &["stat", "a.orth:/t"],
        &["digest", "a.orth:/t"],
        &["attr", "ls", "a.orth:/t"],
        &["put", "a.orth:/t", "--value", "1"],
        &["rm", "a.orth:/t"],
        &["append", "a.orth:/t", "Cargo.toml", "--axis", "0"],
    ] {
        if args[0] == "append" {
            // The source is looked at first, and is not there.
            host.fails(3, args);
        } else {
            let e = host.fails(2, args);
            assert_eq!(str_of(&e, "code"), "not_found", "{args:?}");
        }
    }
}

#[test]
fn a_wrong_command_line_is_2_in_both_forms() {
    let host = Host::new();
    for args in [
        &["frobnicate"][..],
        &["get"],
        &["get", "a.orth:/t", "--frobnicate"],
        &["get", "a.orth"],
        &["get", "a.orth:/t[0"],
        &["get", "a.orth:/t[0]", "--sel", "0"],
        &["info", "a.orth:/t[0]"],
        &["completions", "tcsh"],
    ] {
        host.fails(2, args);
    }
    assert_eq!(host.run(&[]).code, 2);
    assert_eq!(host.run(&["--help"]).code, 0);
    assert!(host.run(&["--version"]).text().starts_with("orthant 0."));
    assert!(host.run(&["get", "--help"]).text().contains("--receipt"));
}

/// An array whose chunk (2, -1) is damaged by one bit.
fn damaged(host: &Host) -> (u64, u64) {
    host.ok(&[
        "create",
        "d.orth:/g/temp",
        "--domain",
        "0:30,-10:10",
        "--dtype",
        "u16",
        "--chunks",
        "10,10",
        "--codecs",
        "raw",
    ]);
    let cells: Vec<String> = (0..600).map(|i| i.to_string()).collect();
    host.write("c.csv", cells.join(",").as_bytes());
    host.ok(&["put", "d.orth:/g/temp", "c.csv"]);
    let stat = host.json(&["stat", "d.orth:/g/temp", "--chunks"]);
    let chunks = stat.get("chunks").unwrap().as_array().unwrap();
    let chunk = chunks
        .iter()
        .find(|c| text_of(c, "coord") == "[2,-1]")
        .unwrap();
    let number = |key: &str| chunk.get(key).unwrap().as_u64().unwrap();
    let (offset, len) = (number("offset"), number("stored_bytes"));
    let mut bytes = host.read("d.orth");
    bytes[usize::try_from(offset).unwrap() + 5] ^= 0x10;
    host.write("d.orth", &bytes);
    (offset, len)
}

#[test]
fn a_checksum_error_says_where() {
    let host = Host::new();
    let (offset, len) = damaged(&host);
    let e = host.fails(4, &["get", "d.orth:/g/temp"]);
    assert_eq!(str_of(&e, "code"), "corrupt");
    assert_eq!(str_of(&e, "file"), "d.orth");
    assert_eq!(str_of(&e, "array"), "/g/temp");
    assert_eq!(text_of(&e, "chunk"), "[2,-1]");
    assert_eq!(text_of(&e, "offset"), offset.to_string());
    assert!(str_of(&e, "expected").contains("0x"), "{e}");
    assert!(str_of(&e, "found").contains("0x"), "{e}");
    let human = host.run(&["get", "d.orth:/g/temp"]).err;
    for part in [
        "d.orth:/g/temp".to_owned(),
        "chunk (2, -1)".to_owned(),
        format!("byte {offset}"),
        format!("(+{len})"),
        "0x".to_owned(),
        "\nhelp: ".to_owned(),
    ] {
        assert!(human.contains(&part), "{part}: {human}");
    }
    // Everything else reads on.
    host.ok(&["get", "d.orth:/g/temp[0:20, :]"]);
    host.ok(&["info", "d.orth:/g/temp"]);
}

#[test]
fn check_names_each_damaged_chunk_and_ends_with_1() {
    let host = Host::new();
    let (offset, _) = damaged(&host);
    let ran = host.run(&["check", "d.orth", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let json = ran.json();
    assert_eq!(text_of(&json, "ok"), "false");
    assert_eq!(str_of(&json, "level"), "full");
    let problems = json.get("problems").unwrap().as_array().unwrap();
    assert_eq!(problems.len(), 1, "{json}");
    for key in [
        "code",
        "invariant",
        "array",
        "chunk",
        "offset",
        "expected",
        "found",
        "text",
    ] {
        assert!(problems[0].get(key).is_some(), "{key}");
    }
    assert_eq!(str_of(&problems[0], "array"), "/g/temp");
    assert_eq!(text_of(&problems[0], "chunk"), "[2,-1]");
    assert_eq!(text_of(&problems[0], "offset"), offset.to_string());
    let human = host.run(&["check", "d.orth"]);
    assert_eq!(human.code, 1);
    assert!(human.text().contains("chunk (2, -1)"), "{}", human.text());
    // The index alone is whole.
    host.ok(&["check", "d.orth", "--level", "quick"]);
    assert_eq!(host.run(&["check", "d.orth", "--level", "data"]).code, 1);
}

#[test]
fn check_of_several_files_names_the_damaged_ones_and_sums_up() {
    let host = Host::new();
    damaged(&host);
    host.ok(&["create", "good.orth:/t", "--shape", "3", "--dtype", "f32"]);
    host.ok(&["put", "good.orth:/t", "--value", "1"]);
    host.write("text", b"no container");
    let ran = host.run(&["check", "good.orth", "d.orth", "text", "good.orth"]);
    assert_eq!(ran.code, 1);
    let text = ran.text();
    assert_eq!(text.lines().last(), Some("2 ok, 2 failed"));
    assert!(
        text.contains("d.orth: damaged") && text.contains("text: cannot be opened"),
        "{text}"
    );
    let ran = host.run(&["check", "good.orth", "good.orth"]);
    assert_eq!(
        (ran.code, ran.text().lines().last()),
        (0, Some("2 ok, 0 failed"))
    );
    let lines = host.run(&["check", "good.orth", "text", "--json"]).text();
    let oks: Vec<String> = lines
        .lines()
        .map(|l| text_of(&l.parse().unwrap(), "ok"))
        .collect();
    assert_eq!(oks, ["true", "false"]);
}

#[test]
fn check_tells_what_of_the_file_is_free_held_and_lost_to_whole_blocks() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/t",
        "--shape",
        "40000",
        "--dtype",
        "f32",
        "--codecs",
        "raw",
    ]);
    for value in ["1", "2", "3", "4"] {
        host.ok(&["put", "a.orth:/t", "--value", value]);
    }
    for level in ["full", "data"] {
        let json = host
            .run(&["check", "a.orth", "--level", level, "--json"])
            .json();
        let space = json.get("space").unwrap();
        let n = |member: &str| text_of(space, member).parse::<u64>().unwrap();
        let live: u64 = ["live_payload_bytes", "live_index_bytes"]
            .iter()
            .map(|m| {
                text_of(&host.run(&["stat", "a.orth", "--json"]).json(), m)
                    .parse::<u64>()
                    .unwrap()
            })
            .sum();
        let sum = n("reusable_bytes") + n("held_bytes") + n("leaked_bytes") + live + 12_288;
        assert_eq!(sum, n("file_bytes"), "{json}");
        assert!(
            n("longest_reusable_run_bytes") <= n("reusable_bytes"),
            "{json}"
        );
        let ratio: f64 = text_of(space, "garbage_ratio").parse().unwrap();
        assert!(ratio > 0.0 && ratio < 1.0, "{json}");
    }
    let quick = host
        .run(&["check", "a.orth", "--level", "quick", "--json"])
        .json();
    assert_eq!(text_of(&quick, "space"), "null");
}

#[test]
fn check_writes_nothing() {
    let host = Host::new();
    damaged(&host);
    let before = host.read("d.orth");
    for level in ["quick", "full", "data"] {
        host.run(&["check", "d.orth", "--level", level]);
    }
    assert_eq!(host.read("d.orth"), before);
}

#[test]
fn a_file_opened_on_its_older_slot_is_ok_with_one_note() {
    let host = Host::new();
    host.ok(&["create", "s.orth:/t", "--shape", "3", "--dtype", "u8"]);
    host.ok(&["put", "s.orth:/t", "--value", "1"]);
    let info = host.json(&["info", "s.orth"]);
    let generation = info.get("generation").unwrap().as_u64().unwrap();
    let mut bytes = host.read("s.orth");
    // Slots take turns: this one holds the newest generation.
    let slot = if generation.is_multiple_of(2) {
        4096
    } else {
        8192
    };
    bytes[slot + 40] ^= 1;
    host.write("s.orth", &bytes);
    let ran = host.run(&["info", "s.orth", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        ran.err.lines().filter(|l| l.starts_with("note:")).count(),
        1,
        "{}",
        ran.err
    );
    let open = ran.json().get("open").unwrap().clone();
    assert_eq!(text_of(&open, "fell_back"), "true");
    assert_eq!(
        text_of(&ran.json(), "generation"),
        (generation - 1).to_string()
    );
    assert_eq!(host.run(&["check", "s.orth"]).code, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_is_130_and_leaves_no_temporary() {
    use std::process::Stdio;
    let host = Host::new();
    host.ok(&["create", "a.orth:/t", "--shape", "4", "--dtype", "u8"]);
    let mut child = host
        .command(&["put", "a.orth:/t", "-", "--format", "csv", "-v"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says that the container is open, and waits for its input: the pipe stays open until it has ended.
    let input = child.stdin.take().unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("opened at generation"), "{line}");
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(host.names(), ["a.orth"]);
    host.ok(&["put", "a.orth:/t", "--value", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_3() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/t", "--shape", "4", "--dtype", "u8"]);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = host
        .command(&["get", "a.orth:/t"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
