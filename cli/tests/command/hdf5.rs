//! `import` of HDF5 and netCDF: the elements, chunks and attributes that other software has in them. The files and
//! `expected.json` are made by `tests/data/hdf5/make.py`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use orthant::Json;
use sha2::Digest as _;

use crate::host::{Host, arg, str_of, text_of};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5")
}

fn sha256(bytes: &[u8]) -> String {
    let sum = sha2::Sha256::digest(bytes);
    let digits: Vec<String> = sum.iter().map(|b| format!("{b:02x}")).collect();
    digits.concat()
}

fn members(json: &Json) -> &[(String, Json)] {
    json.as_object().unwrap()
}

/// The digests of an array's chunks as they are stored in the container, by coordinate.
fn chunks(host: &Host, path: &str) -> BTreeMap<String, String> {
    let file = host.read("x.orth");
    let stat = host.json(&["stat", &format!("x.orth:{path}"), "--chunks"]);
    let chunks = stat.get("chunks").and_then(Json::as_array).unwrap();
    let number = |chunk: &Json, key: &str| -> usize { text_of(chunk, key).parse().unwrap() };
    chunks
        .iter()
        .map(|chunk| {
            let coord = text_of(chunk, "coord").replace(',', ".");
            let start = number(chunk, "offset");
            let end = start + number(chunk, "stored_bytes");
            let coord = coord.trim_matches(['[', ']']).to_owned();
            (coord, sha256(&file[start..end]))
        })
        .collect()
}

#[test]
fn every_array_is_what_other_software_reads_and_adopted_chunks_are_the_files_to_the_byte() {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    let expected: Json = text.parse().unwrap();
    let mut adopted = 0;
    for (file, of_file) in members(&expected) {
        let host = Host::new();
        let ran = host.run(&["import", &arg(&folder().join(file)), "x.orth", "--json"]);
        let mut refused = BTreeSet::new();
        let mut results = BTreeMap::new();
        for row in ran.json().get("arrays").and_then(Json::as_array).unwrap() {
            let (inside, result) = (str_of(row, "source"), str_of(row, "result"));
            if result == "refused" {
                assert!(!str_of(row, "reason").is_empty());
                refused.insert(inside.to_owned());
            }
            results.insert(inside.to_owned(), result.to_owned());
        }
        let wanted = of_file.get("refused").and_then(Json::as_array).unwrap();
        let wanted: BTreeSet<String> = wanted.iter().map(|p| p.as_str().unwrap().into()).collect();
        assert_eq!(refused, wanted, "{file}");
        assert_eq!(
            ran.code,
            i32::from(!wanted.is_empty()),
            "{file}: {}",
            ran.err
        );
        for (path, array) in members(of_file.get("arrays").unwrap()) {
            let digest = host.json(&["digest", &format!("x.orth:{path}")]);
            let digest = digest.get("arrays").and_then(Json::as_array).unwrap();
            assert_eq!(
                str_of(&digest[0], "sha256"),
                str_of(array, "sha256"),
                "{file} {path}"
            );
            if let Some(result) = array.get("result").and_then(Json::as_str) {
                assert_eq!(results[path], result, "{file} {path}");
            }
            let wanted = members(array.get("chunks").unwrap());
            if wanted.is_empty() {
                continue;
            }
            let found = chunks(&host, path);
            for (coord, sha) in wanted {
                assert_eq!(
                    found.get(coord),
                    Some(&text_only(sha)),
                    "{file} {path} {coord}"
                );
                adopted += 1;
            }
        }
        host.ok(&["check", "x.orth", "--level", "full"]);
    }
    assert!(adopted > 200, "{adopted}");
}

fn text_only(json: &Json) -> String {
    json.as_str().unwrap().to_owned()
}

/// The attributes of an object, each with its type.
fn attributes(host: &Host, path: &str) -> Vec<String> {
    let info = host.json(&["info", &format!("x.orth:{path}")]);
    let all = info.get("attributes").unwrap().to_string();
    vec![all]
}

#[test]
fn axes_have_the_names_of_their_scales_and_attributes_their_types() {
    let host = Host::new();
    host.ok(&["import", &arg(&folder().join("climate.nc")), "x.orth"]);
    let info = host.ok(&["info", "x.orth:/tas"]);
    for line in [
        "domain    [time=0:3, lat=0:4, lon=0:6]",
        "fill      -32768",
        "codecs    bytes, shuffle, zlib:4",
        "_FillValue    int16    -32768",
        "scale_factor  float32  0.01",
        "add_offset    float64  273.15",
    ] {
        assert!(info.contains(line), "{line}\n{info}");
    }
    // The dimension lies two groups above the variable.
    let info = host.ok(&["info", "x.orth:/model/ocean/depth"]);
    assert!(info.contains("[lat=0:4, lon=0:6]"), "{info}");
    let info = host.ok(&["info", "x.orth:/mask"]);
    assert!(info.contains("enum") && info.contains("\"sea\""), "{info}");
    assert!(attributes(&host, "/").concat().contains("CF-1.8"));
    assert!(!attributes(&host, "/").concat().contains("_NCProperties"));
    // Labels are what the coordinates hold.
    let row = host.ok(&["get", "x.orth:/time", "--format", "csv"]);
    assert!(row.contains('2'), "{row}");
}

#[test]
fn a_hierarchy_with_links_is_taken_once_a_name_and_loops_end() {
    let host = Host::new();
    let ran = host.run(&["import", &arg(&folder().join("types.h5")), "x.orth"]);
    assert_eq!(ran.code, 1);
    for told in [
        "/nested/up: a second link to /",
        "/nested/again: a second link to /half",
        "/nested/soft: a soft link to /scalar",
        "/elsewhere: refused: an external link to /x in other.h5",
        "/named_type: a type with a name",
        "/none: a dataset of no extents",
    ] {
        assert!(ran.err.contains(told), "{told}\n{}", ran.err);
    }
    let info = host.ok(&["info", "x.orth:/grid"]);
    assert!(info.contains("[t=0:4, station=0:3]"), "{info}");
    assert!(!info.contains("DIMENSION"), "{info}");
    let info = host.ok(&["info", "x.orth:/unwritten"]);
    assert!(
        info.contains("fill      3.5") && info.contains("stored    0 of"),
        "{info}"
    );
    let all = attributes(&host, "/").concat();
    for part in ["18446744073709551615", "NaN", "-0.0", "zwei", "null"] {
        assert!(all.contains(part), "{part}\n{all}");
    }
    assert_eq!(host.ok(&["get", "x.orth:/truth"]), "true\nfalse\ntrue\n");
}

#[test]
fn one_array_of_a_file_and_other_chunks_are_had_by_asking() {
    let host = Host::new();
    let file = arg(&folder().join("new.h5"));
    host.ok(&["import", &file, "x.orth", "--array", "/none_f4"]);
    host.ok(&[
        "import",
        &file,
        "y.orth:/to",
        "--array",
        "none_f4",
        "--chunks",
        "7,30",
    ]);
    assert_eq!(host.ok(&["ls", "x.orth"]), "none_f4\n");
    let digest = |path: &str| {
        let json = host.json(&["digest", path]);
        let arrays = json.get("arrays").and_then(Json::as_array).unwrap();
        str_of(&arrays[0], "sha256").to_owned()
    };
    assert_eq!(digest("x.orth:/none_f4"), digest("y.orth:/to/none_f4"));
    host.ok(&["import", &file, "z.orth", "--dry-run"]);
    assert!(!host.path("z.orth").exists());
}
