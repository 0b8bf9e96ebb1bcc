//! Import that adds to what is there: every array along an axis grows in one commit, or nothing changes.

use std::path::Path;

use crate::host::{Host, arg, str_of, text_of};
use orthant::Json;

/// An array of a store: name, axes, shape, chunk, elements as bytes, attributes.
struct Made<'a> {
    name: &'a str,
    dims: &'a [&'a str],
    shape: &'a [usize],
    chunk: &'a [usize],
    data_type: &'a str,
    bytes: Vec<u8>,
    attributes: &'a str,
}

/// Writes a Zarr v3 array, uncompressed, its overhang zero.
fn write(root: &Path, made: &Made<'_>) {
    let folder = root.join(made.name);
    std::fs::create_dir_all(&folder).unwrap();
    let dims: Vec<String> = made.dims.iter().map(|d| format!("{d:?}")).collect();
    let document = format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":{:?},"data_type":"{}",
        "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":{:?}}}}},
        "chunk_key_encoding":{{"name":"default","configuration":{{"separator":"."}}}},"fill_value":0,
        "codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}],
        "attributes":{},"dimension_names":[{}]}}"#,
        made.shape,
        made.data_type,
        made.chunk,
        made.attributes,
        dims.join(",")
    );
    std::fs::write(folder.join("zarr.json"), document).unwrap();
    let count: usize = made.shape.iter().product();
    let item = made.bytes.len().checked_div(count).unwrap_or(0);
    let count: Vec<usize> = made
        .shape
        .iter()
        .zip(made.chunk)
        .map(|(n, c)| n.div_ceil(*c))
        .collect();
    for coord in boxes(&count) {
        let mut chunk = Vec::new();
        for within in boxes(made.chunk) {
            let at: Vec<usize> = coord
                .iter()
                .zip(&within)
                .zip(made.chunk)
                .map(|((c, i), n)| c * n + i)
                .collect();
            let inside = at.iter().zip(made.shape).all(|(a, n)| a < n);
            let flat = at.iter().zip(made.shape).fold(0, |f, (a, n)| f * n + a);
            let zero = vec![0; item];
            let element = if inside {
                &made.bytes[flat * item..][..item]
            } else {
                &zero
            };
            chunk.extend_from_slice(element);
        }
        let key: Vec<String> = coord.iter().map(usize::to_string).collect();
        std::fs::write(folder.join(format!("c.{}", key.join("."))), chunk).unwrap();
    }
}

/// All coordinates of a box from zero, in C order.
fn boxes(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |all, n| {
        all.iter()
            .flat_map(|at| (0..*n).map(move |i| [at.as_slice(), &[i]].concat()))
            .collect()
    })
}

const UNITS: &str = r#"{"units":"days since 2000-01-01"}"#;
const ROWS: usize = 3;
const COLUMNS: usize = 4;

fn value(day: usize, at: usize) -> u16 {
    u16::try_from(day * 100 + at).unwrap()
}

/// A store of days `from..to`: `temp` along time, y, x; `time`; and `lat`, which has no time.
fn days(host: &Host, name: &str, (from, to): (usize, usize), chunk: usize, units: &str) -> String {
    let root = host.path(name);
    std::fs::create_dir_all(&root).unwrap();
    let group = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
    std::fs::write(root.join("zarr.json"), group).unwrap();
    let n = to - from;
    let temp = (from..to).flat_map(|d| (0..ROWS * COLUMNS).map(move |i| value(d, i)));
    let made = [
        Made {
            name: "temp",
            dims: &["time", "y", "x"],
            shape: &[n, ROWS, COLUMNS],
            chunk: &[chunk, 2, 4],
            data_type: "uint16",
            bytes: temp.flat_map(u16::to_le_bytes).collect(),
            attributes: r#"{"scale_factor":0.5}"#,
        },
        Made {
            name: "time",
            dims: &["time"],
            shape: &[n],
            chunk: &[chunk],
            data_type: "int64",
            bytes: (from..to)
                .flat_map(|d| i64::try_from(d).unwrap().to_le_bytes())
                .collect(),
            attributes: units,
        },
        Made {
            name: "lat",
            dims: &["y"],
            shape: &[ROWS],
            chunk: &[ROWS],
            data_type: "float32",
            bytes: [1.0_f32, 2.0, 4.0]
                .into_iter()
                .flat_map(f32::to_le_bytes)
                .collect(),
            attributes: "{}",
        },
    ];
    for array in &made {
        write(&root, array);
    }
    arg(&root)
}

/// The digests of arrays, without regard to where they lie.
fn digests(host: &Host, file: &str) -> Vec<(String, String)> {
    let digest = host.json(&["digest", file]);
    let arrays = digest.get("arrays").and_then(Json::as_array).unwrap();
    let pair = |a: &Json| (str_of(a, "path").to_owned(), str_of(a, "sha256").to_owned());
    arrays.iter().map(pair).collect()
}

fn results(report: &Json) -> Vec<&str> {
    let arrays = report.get("arrays").and_then(Json::as_array).unwrap();
    arrays.iter().map(|a| str_of(a, "result")).collect()
}

#[test]
fn thirty_daily_stores_are_their_concatenation_from_either_end() {
    let host = Host::new();
    let whole = days(&host, "whole.zarr", (0, 30), 30, UNITS);
    host.ok(&["import", &whole, "whole.orth"]);
    let want = digests(&host, "whole.orth");
    let each: Vec<String> = (0..30)
        .map(|d| days(&host, &format!("{d}.zarr"), (d, d + 1), 1, UNITS))
        .collect();
    // One command a day, each a commit.
    host.ok(&["import", &each[0], "up.orth"]);
    let first: u64 = text_of(&host.json(&["info", "up.orth"]), "generation")
        .parse()
        .unwrap();
    for day in &each[1..] {
        host.ok(&["import", day, "up.orth", "--append", "time"]);
    }
    assert_eq!(digests(&host, "up.orth"), want);
    let generation: u64 = text_of(&host.json(&["info", "up.orth"]), "generation")
        .parse()
        .unwrap();
    assert_eq!(generation - first, 29);
    // All days in one commit, backwards, into chunks that hold four of them and begin elsewhere.
    host.ok(&[
        "import",
        &each[29],
        "down.orth",
        "--array",
        "temp",
        "--chunks",
        "4,3,3",
        "--origin",
        "-1,0,0",
    ]);
    host.ok(&[
        "import",
        &each[29],
        "down.orth",
        "--array",
        "time",
        "--array",
        "lat",
    ]);
    let mut args: Vec<&str> = vec!["import"];
    args.extend(each[..29].iter().rev().map(String::as_str));
    args.extend(["down.orth", "--prepend", "time"]);
    let report = host.json(&args);
    assert_eq!(results(&report).len(), 87);
    assert_eq!(digests(&host, "down.orth"), want);
    let info = host.json(&["info", "down.orth:/temp"]);
    assert_eq!(text_of(&info, "domain"), "[[-29,1],[0,3],[0,4]]");
    for file in ["up.orth", "down.orth"] {
        host.ok(&["check", "--level", "data", file]);
    }
}

#[test]
fn chunks_that_fall_on_the_grid_are_taken_as_they_are() {
    let host = Host::new();
    let first = days(&host, "a.zarr", (0, 4), 2, UNITS);
    let more = days(&host, "b.zarr", (4, 7), 2, UNITS);
    let last = days(&host, "c.zarr", (7, 9), 2, UNITS);
    host.ok(&["import", &first, "x.orth"]);
    let report = host.json(&["import", &more, "x.orth", "--append", "time", "--dry-run"]);
    assert_eq!(results(&report), ["equal", "adopted", "adopted"]);
    let report = host.json(&["import", &more, "x.orth", "--append", "time"]);
    assert_eq!(results(&report), ["equal", "adopted", "adopted"]);
    // The domain ends within a chunk now: it is read, merged and written.
    let report = host.json(&["import", &last, "x.orth", "--append", "time"]);
    assert_eq!(results(&report), ["equal", "recoded", "recoded"]);
    // Before the first day there is a chunk edge, and the last chunk of the three days is half another's.
    let report = host.json(&["import", &more, "x.orth", "--prepend", "time"]);
    assert_eq!(results(&report), ["equal", "recoded", "recoded"]);
    let got = host.json(&["get", "x.orth:/time"]);
    assert_eq!(text_of(&got, "values"), "[4,5,6,0,1,2,3,4,5,6,7,8]");
    let report = host.json(&["import", &first, "x.orth", "--prepend", "time"]);
    assert_eq!(results(&report), ["equal", "recoded", "recoded"]);
    let got = host.json(&["get", "x.orth:/temp[:, 2, 3]"]);
    let days = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let want: Vec<String> = days.iter().map(|d| value(*d, 11).to_string()).collect();
    assert_eq!(text_of(&got, "values"), format!("[{}]", want.join(",")));
    // On an edge again, and the source ends on one too: nothing is decoded.
    host.ok(&["import", &first, "y.orth"]);
    let report = host.json(&["import", &last, "y.orth", "--prepend", "time"]);
    assert_eq!(results(&report), ["equal", "adopted", "adopted"]);
    let again = ["import", &first, "y.orth", "--append", "time", "--recode"];
    let report = host.json(&again);
    assert_eq!(results(&report), ["equal", "recoded", "recoded"]);
    host.ok(&["check", "--level", "data", "x.orth"]);
}

#[test]
fn what_does_not_fit_changes_nothing_and_names_the_array() {
    let host = Host::new();
    let first = days(&host, "a.zarr", (0, 2), 2, UNITS);
    host.ok(&["import", &first, "x.orth"]);
    let before = host.read("x.orth");
    let refuse = |code, source: &str, more: &[&str], array: &str, words: &[&str]| {
        for dry in [&[][..], &["--dry-run"]] {
            let args = [&["import", source, "x.orth", "--append", "time"], more, dry].concat();
            let e = host.fails(code, &args);
            assert_eq!(text_of(&e, "array"), array, "{e}");
            for word in words {
                assert!(str_of(&e, "message").contains(word), "{word}: {e}");
            }
        }
        assert_eq!(host.read("x.orth"), before);
    };
    let next = |name: &str| days(&host, name, (2, 4), 2, UNITS);
    let hours = days(
        &host,
        "hours.zarr",
        (2, 4),
        2,
        r#"{"units":"hours since 2000-01-01"}"#,
    );
    refuse(
        2,
        &hours,
        &[],
        "\"/time\"",
        &["units", "days since", "hours since"],
    );
    let noleap = r#"{"units":"days since 2000-01-01","calendar":"noleap"}"#;
    let noleap = days(&host, "noleap.zarr", (2, 4), 2, noleap);
    refuse(
        2,
        &noleap,
        &[],
        "\"/time\"",
        &["calendar", "none", "noleap"],
    );
    // Another latitude.
    let moved = next("moved.zarr");
    let lat = host.path("moved.zarr/lat/c.0");
    let mut bytes = std::fs::read(&lat).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&lat, bytes).unwrap();
    refuse(2, &moved, &[], "\"/lat\"", &["/lat", "time"]);
    // An array along time that the source has not got; and one that the container has not.
    let less = next("less.zarr");
    std::fs::remove_dir_all(host.path("less.zarr/temp")).unwrap();
    refuse(2, &less, &[], "\"/temp\"", &["less.zarr", "/temp"]);
    let more = next("more.zarr");
    std::fs::rename(host.path("more.zarr/lat"), host.path("more.zarr/lon")).unwrap();
    refuse(2, &more, &[], "\"/lon\"", &["lon"]);
}

#[test]
fn all_arrays_of_a_source_are_added_or_none() {
    let host = Host::new();
    let first = days(&host, "a.zarr", (0, 2), 2, UNITS);
    host.ok(&["import", &first, "x.orth"]);
    let next = |name: &str| days(&host, name, (2, 4), 2, UNITS);
    let generation = || text_of(&host.json(&["info", "x.orth"]), "generation");
    let before = generation();
    // A damaged chunk, found when all else is written.
    let cut = days(&host, "cut.zarr", (2, 4), 1, UNITS);
    std::fs::write(host.path("cut.zarr/time/c.1"), [0; 7]).unwrap();
    let e = host.fails(1, &["import", &cut, "x.orth", "--append", "time"]);
    assert_eq!(str_of(&e, "code"), "refused");
    assert!(str_of(&e, "message").contains("nothing was added"), "{e}");
    assert_eq!(generation(), before);
    // Arrays that would end apart, an axis that is none, and what makes no sense with growing.
    let apart = next("apart.zarr");
    let time = days(&host, "long.zarr", (2, 5), 2, UNITS);
    std::fs::remove_dir_all(host.path("apart.zarr/time")).unwrap();
    std::fs::rename(Path::new(&time).join("time"), host.path("apart.zarr/time")).unwrap();
    let e = host.fails(2, &["import", &apart, "x.orth", "--append", "time"]);
    assert!(str_of(&e, "message").contains("by 3"), "{e}");
    let good = next("good.zarr");
    host.fails(2, &["import", &good, "x.orth", "--append", "z"]);
    let chunks = [
        "import", &good, "x.orth", "--append", "time", "--chunks", "1,1,1",
    ];
    assert_eq!(host.run(&chunks).code, 2);
    // Only some of them, where that is asked for; and one of them by itself.
    host.ok(&[
        "import", &good, "x.orth", "--append", "time", "--array", "time",
    ]);
    host.ok(&["import", &good, "x.orth:/temp", "--append", "time"]);
    let got = host.json(&["get", "x.orth:/temp[:, 0, 0]"]);
    assert_eq!(text_of(&got, "values"), "[0,100,200,300]");
    let got = host.json(&["get", "x.orth:/time"]);
    assert_eq!(text_of(&got, "values"), "[0,1,2,3]");
}

#[test]
fn another_fill_value_is_written_where_the_source_stores_nothing() {
    let host = Host::new();
    let first = days(&host, "a.zarr", (0, 2), 2, UNITS);
    host.ok(&["import", &first, "x.orth"]);
    let next = days(&host, "b.zarr", (2, 4), 2, UNITS);
    std::fs::remove_file(host.path("b.zarr/temp/c.0.1.0")).unwrap();
    let document = host.path("b.zarr/temp/zarr.json");
    let text = std::fs::read_to_string(&document).unwrap();
    let text = text.replace(r#""fill_value":0"#, r#""fill_value":9"#);
    std::fs::write(&document, text).unwrap();
    host.ok(&["import", &next, "x.orth", "--append", "time"]);
    let got = host.json(&["get", "x.orth:/temp[:, 2, 0]"]);
    assert_eq!(text_of(&got, "values"), "[8,108,9,9]");
    let got = host.json(&["get", "x.orth:/temp[:, 0, 0]"]);
    assert_eq!(text_of(&got, "values"), "[0,100,200,300]");
}

/// The sample cube, 240 years, put before each other one by one.
#[test]
fn the_climate_cube_prepended_year_by_year_has_its_digest() {
    const SHAPE: [usize; 3] = [240, 37, 49];
    const DIGEST: &str = "fa3f2d341e21432a130c5ae564b046a190eb75c4674b690e1c67a63d9682f7ee";
    let host = Host::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/a1b_north_america.npy");
    if !sample.exists() {
        println!("skipped: a packaged crate has no samples");
        return;
    }
    let npy = std::fs::read(sample).unwrap();
    let year = SHAPE[1] * SHAPE[2] * 4;
    let elements = &npy[npy.len() - SHAPE[0] * year..];
    let mut sources = Vec::new();
    for (i, bytes) in elements.chunks(year).enumerate() {
        let root = host.path(&format!("{i}.zarr"));
        let made = Made {
            name: "t",
            dims: &["time", "latitude", "longitude"],
            shape: &[1, SHAPE[1], SHAPE[2]],
            chunk: &[1, SHAPE[1], SHAPE[2]],
            data_type: "float32",
            bytes: bytes.to_vec(),
            attributes: r#"{"units":"K"}"#,
        };
        write(&root, &made);
        sources.push(arg(&root));
    }
    let last = sources.pop().unwrap();
    host.ok(&["import", &last, "a.orth", "--chunks", "12,37,49"]);
    for source in sources.iter().rev() {
        host.ok(&["import", source, "a.orth", "--prepend", "time"]);
    }
    assert_eq!(digests(&host, "a.orth")[0].1, DIGEST);
    // Yearly chunks in yearly chunks, in one commit: all of them as they are.
    host.ok(&["import", &last, "b.orth"]);
    let mut args: Vec<&str> = vec!["import"];
    args.extend(sources.iter().rev().map(String::as_str));
    args.extend(["b.orth", "--prepend", "time"]);
    let report = host.json(&args);
    assert!(results(&report).iter().all(|r| *r == "adopted"));
    assert_eq!(digests(&host, "b.orth")[0].1, DIGEST);
}
