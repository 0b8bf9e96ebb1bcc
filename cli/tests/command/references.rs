//! `refs`: places in a file for readers that do not know it. What such readers get out of them is in `tests/interop`.

use orthant::Json;

use crate::host::{Host, str_of, text_of};

/// A signed array whose domain ends inside chunks, and one in shards.
fn host() -> Host {
    let host = Host::new();
    let create = |args: &str| host.ok(&args.split(' ').collect::<Vec<_>>());
    create(
        "create a.orth:/v --domain -7:12,-3:10 --chunks 4,5 --dims y,x --dtype i32 --codecs raw",
    );
    create("put a.orth:/v --value 7");
    create("create a.orth:/s --domain 0:8 --chunks 2 --shard 8 --dims z --dtype u8");
    create("put a.orth:/s[0:4] --value 3");
    host
}

fn references(host: &Host, name: &str) -> Json {
    let text = String::from_utf8(host.read(name)).unwrap();
    let json: Json = text.parse().unwrap();
    assert_eq!(json.get("version").and_then(Json::as_i64), Some(1));
    json.get("refs").unwrap().clone()
}

#[test]
fn references_name_the_bytes_of_a_kept_generation_from_zero_on() {
    let host = host();
    let told = host.json(&[
        "refs",
        "a.orth",
        "-o",
        "r.json",
        "--url",
        "https://x/a.orth",
    ]);
    assert!(str_of(&told, "snapshot").starts_with("refs-"));
    assert!(str_of(&told, "python").contains("\"remote_protocol\": \"https\""));
    let refs = references(&host, "r.json");
    let document: Json = str_of(&refs, "v/zarr.json").parse().unwrap();
    assert_eq!(text_of(&document, "shape"), "[20,15]");
    let attributes = document.get("attributes").unwrap();
    assert_eq!(text_of(attributes, "orthant_pad"), "[1,2]");
    assert_eq!(text_of(attributes, "orthant_inclusive_min"), "[-7,-3]");
    // The lowest chunk, of which one row and two columns lie outside the domain.
    let stat = host.json(&["stat", "a.orth:/v", "--chunks"]);
    let chunks = stat.get("chunks").and_then(Json::as_array).unwrap();
    let first = chunks
        .iter()
        .find(|c| text_of(c, "coord") == "[-2,-1]")
        .unwrap();
    let place = text_of(&refs, "v/c/0/0");
    assert_eq!(
        place,
        format!(
            "[\"https://x/a.orth\",{},{}]",
            text_of(first, "offset"),
            text_of(first, "stored_bytes")
        )
    );
    // Whole chunks of one value have no bytes in the file.
    assert!(str_of(&refs, "v/c/3/1").starts_with("base64:BwAAAAcAAAAH"));
    for name in ["x/zarr.json", "y/zarr.json", "y/c/0", "s/c/0"] {
        assert!(refs.get(name).is_some(), "{name}");
    }
    assert!(
        refs.get("z/zarr.json").is_none(),
        "positions are coordinates there"
    );
    let inner = host.json(&["refs", "a.orth", "--inner", "-o", "i.json"]);
    assert_eq!(
        text_of(&inner, "snapshot"),
        text_of(&told, "snapshot"),
        "nothing changed since"
    );
    let refs = references(&host, "i.json");
    let place = |key: &str| {
        refs.get(key)
            .and_then(Json::as_array)
            .map(|p| p[2].to_string())
    };
    assert!(place("s/c/0").is_some() && place("s/c/1").is_some());
    assert_eq!(refs.get("s/c/2"), None, "fill is absent");
}

#[test]
fn what_references_name_is_given_up_only_when_told() {
    let host = host();
    let told = host.json(&["refs", "a.orth", "-o", "r.json"]);
    let name = str_of(&told, "snapshot").to_owned();
    host.fails(2, &["compact", "a.orth"]);
    let e = host.fails(2, &["snapshot", "rm", "a.orth", &name]);
    assert!(str_of(&e, "help").contains("--break-references"));
    host.fails(2, &["refs", "a.orth", "-o", "r.json"]);
    host.fails(2, &["refs", "a.orth", "-o", "q.json", "--snapshot", "none"]);
    assert!(!host.names().contains(&"q.json".to_owned()));
    host.ok(&["snapshot", "rm", "a.orth", &name, "--break-references"]);
    host.ok(&["compact", "a.orth"]);
    host.ok(&["snapshot", "add", "a.orth", "v1"]);
    let told = host.json(&["refs", "a.orth:/v", "-o", "q.json", "--snapshot", "v1"]);
    assert_eq!(str_of(&told, "snapshot"), "v1");
    assert!(
        references(&host, "q.json").get("c/0/0").is_some(),
        "an array's keys begin at the array"
    );
    host.fails(2, &["snapshot", "rm", "a.orth", "v1"]);
}

#[test]
fn version_2_leaves_out_what_it_cannot_say_and_the_code_tells() {
    let host = host();
    let ran = host.run(&["refs", "a.orth", "--zarr", "2", "-o", "r.json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("/s: left out") && ran.err.contains("--inner"),
        "{}",
        ran.err
    );
    host.ok(&["refs", "a.orth", "--zarr", "2", "--inner", "-o", "i.json"]);
    let refs = references(&host, "i.json");
    let document: Json = str_of(&refs, "s/.zarray").parse().unwrap();
    // xarray would take it for missing data.
    assert_eq!(document.get("fill_value"), Some(&Json::Null));
    assert_eq!(text_of(&document, "chunks"), "[2]");
    assert!(refs.get("s/0").is_some());
}
