//! How arrays are stored: shown, foretold, copied as they are, stored anew.

use crate::host::{Host, str_of, text_of};

/// 64 x 96 f32, chunks 16 x 16, rows 0 to 32 filled.
fn host() -> Host {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/g/a",
        "--domain",
        "-8:56,0:96",
        "--dtype",
        "f32",
        "--chunks",
        "16,16",
        "--origin",
        "-8,0",
        "--dims",
        "y,x",
        "--units",
        "K",
    ]);
    let cells: Vec<u8> = (0..32 * 96_u16)
        .flat_map(|i| f32::from(i).to_le_bytes())
        .collect();
    host.write("rows.raw", &cells);
    host.ok(&[
        "put",
        "a.orth:/g/a[-8:24, :]",
        "rows.raw",
        "--format",
        "raw",
    ]);
    host.ok(&["put", "a.orth:/g/a[24:40, :]", "--value", "7"]);
    host
}

fn digest(host: &Host, target: &str) -> String {
    let digest = host.json(&["digest", target]);
    let arrays = digest.get("arrays").unwrap().as_array().unwrap();
    str_of(&arrays[0], "sha256").to_owned()
}

#[test]
fn stat_of_chunks_lists_them_with_a_histogram_a_ratio_and_the_absent_share() {
    let host = host();
    let stat = host.json(&["stat", "a.orth:/g/a", "--chunks"]);
    let chunks = stat.get("chunks").unwrap().as_array().unwrap();
    assert_eq!(chunks.len(), 12 + 6);
    assert_eq!(text_of(&chunks[0], "coord"), "[0,0]");
    assert_eq!(str_of(&chunks[0], "state"), "stored");
    assert_eq!(str_of(&chunks[17], "state"), "constant");
    assert_eq!(text_of(&stat, "chunks_absent"), "6");
    assert_eq!(text_of(&stat, "absent_share"), "0.25");
    let bins = stat.get("histogram").unwrap().as_array().unwrap();
    let counted: i64 = bins
        .iter()
        .map(|b| text_of(b, "chunks").parse::<i64>().unwrap())
        .sum();
    assert_eq!(counted, 12);
    let people = host.ok(&["stat", "a.orth:/g/a", "--chunks"]);
    assert!(people.contains("6 absent (25.0 %)"), "{people}");
    assert!(
        people.contains("ratio ") && people.contains('#'),
        "{people}"
    );
}

#[test]
fn explain_tells_what_get_then_costs_and_advises_a_chunk_shape() {
    let host = host();
    let plan = host.json(&["explain", "a.orth:/g/a[0, :]"]);
    let got = host.json(&["get", "a.orth:/g/a[0, :]", "--receipt"]);
    assert_eq!(text_of(&plan, "plan"), text_of(&got, "receipt"));
    let advice = plan.get("advice").unwrap();
    assert!(
        text_of(advice, "chunk_shape").starts_with("[1,"),
        "{advice}"
    );
    let people = host.ok(&["explain", "a.orth:/g/a[0, :]"]);
    assert!(people.contains("advice: "), "{people}");
    // A reason is shown where the partial path did not apply.
    host.ok(&[
        "create",
        "a.orth:/s",
        "--shape",
        "8,8",
        "--dtype",
        "u8",
        "--chunks",
        "2,2",
        "--shard",
        "8,8",
    ]);
    host.ok(&["put", "a.orth:/s[:2, :]", "--value", "3"]);
    let part = host.ok(&["explain", "a.orth:/s[0, :3]"]);
    assert!(
        part.contains("2 inner") && part.contains("path partial"),
        "{part}"
    );
    let whole = host.ok(&["explain", "a.orth:/s"]);
    assert!(whole.contains("path whole (full_shard)"), "{whole}");
    let ran = host.run(&["get", "a.orth:/s", "--receipt", "-o", "s.npy"]);
    assert!(ran.err.contains("(full_shard)"), "{}", ran.err);
}

#[test]
fn cp_takes_chunks_over_as_they_are_within_a_file_and_between_files() {
    let host = host();
    let want = digest(&host, "a.orth:/g/a");
    let done = host.json(&["cp", "a.orth:/g/a", "b.orth:/x/y", "-m", "copied"]);
    assert_eq!(text_of(&done, "chunks"), "12");
    assert_eq!(text_of(&done, "constant"), "6");
    assert_eq!(str_of(&done, "path"), "/x/y");
    assert_eq!(digest(&host, "b.orth:/x/y"), want);
    let sizes = |target: &str| {
        let stat = host.json(&["stat", target, "--chunks"]);
        let chunks = stat.get("chunks").unwrap().as_array().unwrap().to_vec();
        chunks
            .iter()
            .map(|c| (text_of(c, "coord"), text_of(c, "stored_bytes")))
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes("b.orth:/x/y"), sizes("a.orth:/g/a"));
    assert_eq!(
        text_of(
            &host.json(&["attr", "get", "b.orth:/x/y", "units"]),
            "value"
        ),
        "\"K\""
    );
    // The same path where none is given, in a file that is there; and within one file.
    host.ok(&["cp", "a.orth:/g/a", "b.orth"]);
    assert_eq!(digest(&host, "b.orth:/g/a"), want);
    host.ok(&["cp", "a.orth:/g/a", "a.orth:/copy"]);
    assert_eq!(digest(&host, "a.orth:/copy"), want);
    // A group goes with all below it, also into itself.
    host.ok(&["attr", "set", "a.orth:/g", "note", "n"]);
    let done = host.json(&["cp", "a.orth:/g", "a.orth:/g/deep/copy"]);
    assert_eq!(text_of(&done, "arrays"), "1");
    assert_eq!(digest(&host, "a.orth:/g/deep/copy/a"), want);
    assert_eq!(
        text_of(
            &host.json(&["attr", "get", "a.orth:/g/deep/copy", "note"]),
            "value"
        ),
        "\"n\""
    );
    for file in ["a.orth", "b.orth"] {
        let checked = host.json(&["check", file, "--level", "data"]);
        assert_eq!(text_of(&checked, "ok"), "true");
    }
}

#[test]
fn cp_refuses_what_is_there_and_leaves_no_file_behind() {
    let host = host();
    host.fails(2, &["cp", "a.orth:/g/a", "a.orth:/g/a"]);
    host.fails(2, &["cp", "a.orth:/g", "a.orth:/g"]);
    host.fails(2, &["cp", "a.orth:/none", "new.orth:/x"]);
    host.fails(3, &["cp", "none.orth:/a", "new.orth:/x"]);
    host.fails(2, &["cp", "a.orth:/g/a[0]", "new.orth:/x"]);
    assert_eq!(host.names(), ["a.orth", "rows.raw"]);
}

#[test]
fn rechunk_stores_an_array_anew_in_one_commit() {
    let host = host();
    let want = digest(&host, "a.orth:/g/a");
    let before = text_of(&host.json(&["info", "a.orth"]), "generation");
    let done = host.json(&[
        "rechunk",
        "a.orth:/g/a",
        "--chunks",
        "8,8",
        "--shard",
        "32,32",
        "--codecs",
        "zstd:1",
        "--memory",
        "1MiB",
        "-m",
        "anew",
    ]);
    assert_eq!(text_of(&done, "chunk_shape"), "[8,8]");
    assert_eq!(text_of(&done, "shard_shape"), "[32,32]");
    assert_eq!(text_of(&done, "passes"), "1");
    let after = text_of(&done, "generation");
    assert_eq!(
        after.parse::<u64>().unwrap(),
        before.parse::<u64>().unwrap() + 1
    );
    assert_eq!(digest(&host, "a.orth:/g/a"), want);
    host.ok(&["rechunk", "a.orth:/g/a", "--chunks", "y=64"]);
    let info = host.json(&["info", "a.orth:/g/a"]);
    assert_eq!(text_of(&info, "chunk_shape"), "[64,96]");
    assert_eq!(text_of(&info, "shard_shape"), "null");
    assert_eq!(text_of(&info, "origin"), "[-8,0]");
    assert_eq!(str_of(&info, "units"), "K");
    assert_eq!(digest(&host, "a.orth:/g/a"), want);
    for bad in [
        &["--chunks", "8"][..],
        &["--chunks", "0,8"],
        &["--chunks", "8,8", "--shard", "12,8"],
        &["--chunks", "8,8", "--codecs", "nonsense"],
        &["--chunks", "8,8", "--memory", "1 parsec"],
    ] {
        host.fails(2, &[&["rechunk", "a.orth:/g/a"], bad].concat());
    }
    host.fails(2, &["rechunk", "a.orth:/g", "--chunks", "8,8"]);
    let checked = host.json(&["check", "a.orth", "--level", "data"]);
    assert_eq!(text_of(&checked, "ok"), "true");
}
