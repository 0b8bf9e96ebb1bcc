//! Generations that are kept, told, read and brought back.

use orthant::Json;

use crate::host::{Host, str_of, text_of};

fn items(json: &Json, key: &str) -> Vec<Json> {
    json.get(key).unwrap().as_array().unwrap().to_vec()
}

fn number(json: &Json, key: &str) -> u64 {
    text_of(json, key).parse().unwrap()
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|l| l.parse().unwrap()).collect()
}

/// A container with an array of ones, its second commit.
fn host() -> Host {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/t",
        "--domain",
        "0:4",
        "--dtype",
        "i32",
        "-m",
        "made",
    ]);
    host.ok(&["put", "a.orth:/t", "--value", "1", "-m", "ones"]);
    host
}

fn values(host: &Host, at: &[&str]) -> String {
    text_of(&host.json(&[&["get", "a.orth:/t"], at].concat()), "values")
}

#[test]
fn a_kept_generation_is_listed_read_restored_and_let_go() {
    let host = host();
    let added = host.json(&["snapshot", "add", "a.orth", "v1"]);
    let kept = number(&added, "retained");
    assert_eq!(number(&added, "generation"), kept + 1);
    host.ok(&["put", "a.orth:/t", "--value", "2", "-m", "twos"]);
    assert_eq!(values(&host, &[]), "[2,2,2,2]");
    assert_eq!(values(&host, &["--at", "v1"]), "[1,1,1,1]");
    let generation = format!("gen:{kept}");
    assert_eq!(values(&host, &["--at", &generation]), "[1,1,1,1]");
    let digest = |at: &[&str]| {
        str_of(
            &host.json(&[&["digest", "a.orth"], at].concat()),
            "container",
        )
        .to_owned()
    };
    assert_ne!(digest(&[]), digest(&["--at", "v1"]));

    let list = items(&host.json(&["snapshot", "ls", "a.orth"]), "snapshots");
    assert_eq!(list.len(), 1);
    assert_eq!(str_of(&list[0], "name"), "v1");
    assert_eq!(number(&list[0], "generation"), kept);
    assert!(number(&list[0], "exclusive_bytes") > 0);
    assert!(str_of(&list[0], "time").ends_with('Z'));
    assert_eq!(text_of(&host.json(&["info", "a.orth"]), "snapshots"), "1");

    let held = items(&host.json(&["stat", "a.orth"]), "held_by");
    let kinds: Vec<_> = held.iter().map(|h| str_of(h, "kind")).collect();
    assert_eq!(kinds, ["snapshot", "slot"]);

    let back = host.json(&["restore", "a.orth", "v1", "-m", "back"]);
    assert_eq!(number(&back, "restored"), kept);
    assert_eq!(values(&host, &[]), "[1,1,1,1]");
    assert_eq!(digest(&[]), digest(&["--at", "v1"]));
    host.ok(&["snapshot", "rm", "a.orth", "v1"]);
    assert_eq!(text_of(&host.json(&["info", "a.orth"]), "snapshots"), "0");
    host.ok(&["check", "a.orth", "--level", "data"]);
    let gone = host.fails(2, &["get", "a.orth:/t", "--at", "v1"]);
    assert!(str_of(&gone, "message").contains("v1"), "{gone}");
}

#[test]
fn the_log_is_a_line_a_commit_the_newest_first() {
    let host = host();
    host.ok(&["snapshot", "add", "a.orth", "v1", "-m", "kept"]);
    let log = lines(&host.ok(&["log", "a.orth", "--json"]));
    let messages: Vec<_> = log.iter().map(|l| str_of(l, "message")).collect();
    assert_eq!(messages, ["kept", "ones", "made"]);
    assert_eq!(str_of(&log[1], "snapshot"), "v1");
    assert_eq!(text_of(&log[0], "snapshot"), "null");
    assert_eq!(str_of(&log[0], "schema"), "orthant/log/1");
    assert_eq!(text_of(&log[0], "changed"), "0");
    assert!(number(&log[1], "changed") > 0);
    let text = host.ok(&["log", "a.orth"]);
    assert!(text.contains("ones") && text.contains("[v1]"), "{text}");
}

#[test]
fn names_that_are_taken_or_read_as_something_else_are_refused() {
    let host = host();
    host.ok(&["snapshot", "add", "a.orth", "v1"]);
    host.fails(2, &["snapshot", "add", "a.orth", "v1"]);
    host.fails(2, &["snapshot", "add", "a.orth", "gen:7"]);
    host.fails(2, &["snapshot", "rm", "a.orth", "v2"]);
    host.fails(2, &["snapshot", "add", "a.orth:/t", "v2"]);
    host.fails(2, &["get", "a.orth:/t", "--at", "gen:x"]);
    host.fails(3, &["log", "none.orth"]);
}

#[test]
fn watch_prints_commits_of_another_process_as_they_come() {
    let host = host();
    let mut watching = host
        .command(&["--json", "watch", "a.orth", "--count", "2"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    host.ok(&["put", "a.orth:/t", "--value", "2", "-m", "two"]);
    host.ok(&["put", "a.orth:/t", "--value", "3", "-m", "three"]);
    assert!(watching.wait().unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut watching.stdout.take().unwrap(), &mut text).unwrap();
    let lines = lines(&text);
    let messages: Vec<_> = lines.iter().map(|l| str_of(l, "message")).collect();
    assert_eq!(messages, ["two", "three"]);
}
