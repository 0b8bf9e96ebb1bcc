//! Every array of the shared data folder, imported and digested here: equal to what other software decoded, or refused by
//! name.
//!
//! The folder is `../shared/data` beside the project, or `ORTHANT_SHARED/data`; without it the tests say that they were
//! skipped. `ORTHANT_TABLE=1` prints the table of kinds and the reasons of what was refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use orthant::Json;

use crate::host::{Host, arg, str_of};

/// What is expected of one array.
pub(crate) struct Wanted {
    array: String,
    /// One text, of which the list has the digest of its bytes alone, without the count before them.
    is_one_text: bool,
    sha256: String,
}

/// What came of the arrays of one kind.
#[derive(Default)]
struct Row {
    sources: usize,
    arrays: usize,
    equal: usize,
    refused: usize,
    wrong: usize,
    reasons: BTreeMap<String, usize>,
    results: BTreeMap<String, usize>,
}

pub(crate) fn shared() -> Option<PathBuf> {
    let root = std::env::var_os("ORTHANT_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let data = root.join("data");
    if data.join("ARRAYS.tsv").exists() {
        return Some(data);
    }
    // The skip must be seen: a test that passes by doing nothing looks like one that passed.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    {
        eprintln!("skipped: {} is not there", data.display());
    }
    None
}

/// The arrays by source, in the order of the list.
pub(crate) fn wanted(data: &Path) -> BTreeMap<String, Vec<Wanted>> {
    let list = std::fs::read_to_string(data.join("ARRAYS.tsv")).unwrap();
    let mut sources: BTreeMap<String, Vec<Wanted>> = BTreeMap::new();
    for line in list.lines().filter(|l| !l.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [source, array, data_type, shape, sha256] = cells.as_slice() else {
            panic!("{line}")
        };
        sources
            .entry((*source).to_owned())
            .or_default()
            .push(Wanted {
                array: (*array).to_owned(),
                is_one_text: (*data_type, *shape) == ("vlen_string", "scalar"),
                sha256: (*sha256).to_owned(),
            });
    }
    sources
}

/// Imports a source whole and compares; gives what is neither equal nor refused.
fn compare(data: &Path, source: &str, arrays: &[Wanted], row: &mut Row) -> Vec<String> {
    let host = Host::new();
    let ran = host.run(&["import", &arg(&data.join(source)), "x.orth", "--json"]);
    assert!(ran.code <= 1, "{source}: {} {}", ran.code, ran.err);
    let report = ran.json();
    let rows = report.get("arrays").and_then(Json::as_array).unwrap();
    let mut taken = BTreeMap::new();
    let mut refused = BTreeMap::new();
    for one in rows {
        let inside = str_of(one, "source").to_owned();
        *row.results
            .entry(str_of(one, "result").to_owned())
            .or_default() += 1;
        match one.get("reason").and_then(Json::as_str) {
            Some(reason) => refused.insert(inside, reason.to_owned()),
            None => taken.insert(inside, str_of(one, "path").to_owned()),
        };
    }
    assert_eq!(ran.code == 1, !refused.is_empty(), "{source}");
    let mut digests = BTreeMap::new();
    if !taken.is_empty() {
        let digest = host.json(&["digest", "x.orth"]);
        for one in digest.get("arrays").and_then(Json::as_array).unwrap() {
            digests.insert(
                str_of(one, "path").to_owned(),
                str_of(one, "sha256").to_owned(),
            );
        }
    }
    row.sources += 1;
    let mut wrong = Vec::new();
    for want in arrays {
        row.arrays += 1;
        let got = taken.get(&want.array).and_then(|path| {
            if want.is_one_text {
                let text = host.ok(&["get", &format!("x.orth:{path}")]);
                return Some(sha256(text.trim_end_matches('\n').as_bytes()));
            }
            digests.get(path).cloned()
        });
        // A source that is refused as a whole is refused for all it holds.
        let reason = refused
            .get(&want.array)
            .or_else(|| refused.get("/").filter(|_| taken.is_empty()));
        match (got, reason) {
            (Some(sha256), _) if sha256 == want.sha256 => row.equal += 1,
            (None, Some(reason)) => {
                row.refused += 1;
                *row.reasons.entry(reason.clone()).or_default() += 1;
            }
            (Some(_), _) => wrong.push(format!("{source} {}: other values", want.array)),
            (None, None) => wrong.push(format!("{source} {}: not told of", want.array)),
        }
    }
    row.wrong += wrong.len();
    wrong
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    let sum = sha2::Sha256::digest(bytes);
    let digits: Vec<String> = sum.iter().map(|b| format!("{b:02x}")).collect();
    digits.concat()
}

/// Two billion elements, whose digest takes minutes where nothing is optimized.
const LONG: &str = "hdf5/jhdf/tiny_huge_1d_over_maxint.hdf5";

fn run(kinds: &[&str]) {
    let Some(data) = shared() else { return };
    let only = std::env::var("ORTHANT_ONLY").ok();
    let mut table: BTreeMap<String, Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (source, arrays) in wanted(&data) {
        let kind = source.split('/').next().unwrap().to_owned();
        let long = source == LONG && only.is_none();
        if !kinds.contains(&kind.as_str())
            || long
            || only.as_ref().is_some_and(|o| !source.contains(o))
        {
            continue;
        }
        let row = table.entry(kind).or_default();
        wrong.extend(compare(&data, &source, &arrays, row));
    }
    if std::env::var_os("ORTHANT_TABLE").is_some() {
        print(&table);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[expect(clippy::print_stdout, reason = "the table is what it is run for")]
fn print(table: &BTreeMap<String, Row>) {
    println!("kind | sources | arrays | equal | refused by name | wrong");
    for (kind, row) in table {
        println!(
            "{kind} | {} | {} | {} | {} | {}   {:?}",
            row.sources, row.arrays, row.equal, row.refused, row.wrong, row.results
        );
    }
    for (kind, row) in table {
        for (reason, n) in &row.reasons {
            println!("{kind}: {n} x {reason}");
        }
    }
}

#[test]
fn every_zarr_array_is_equal_or_refused_by_name() {
    run(&["zarr2", "zarr3", "zarr-zip", "ome-zarr"]);
}

#[test]
fn every_image_is_equal_or_refused_by_name() {
    run(&["nifti", "neuroglancer", "geotiff"]);
}

#[test]
fn every_hdf5_array_is_equal_or_refused_by_name() {
    run(&["hdf5", "netcdf4", "netcdf3"]);
}

#[test]
fn what_has_no_reader_is_refused_by_name() {
    let Some(data) = shared() else { return };
    let kinds: BTreeSet<String> = wanted(&data)
        .keys()
        .map(|s| s.split('/').next().unwrap().to_owned())
        .collect();
    assert!(kinds.contains("n5"));
    run(&["n5"]);
}

/// Files that were broken on purpose, the oldest reports of their kind among them.
#[test]
fn hostile_hdf5_and_netcdf_are_an_error_or_a_part_with_a_list() {
    let Some(data) = shared() else { return };
    let mut seen = 0;
    for folder in ["hostile/hdf5", "hostile/netcdf-c"] {
        for entry in std::fs::read_dir(data.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            let host = Host::new();
            let began = std::time::Instant::now();
            let ran = host.run(&["import", &arg(&file), "x.orth", "--json"]);
            assert!(began.elapsed().as_secs() < 20, "{}", file.display());
            assert!(
                (0..=4).contains(&ran.code),
                "{}: {} {}",
                file.display(),
                ran.code,
                ran.err
            );
            assert!(
                !ran.err.contains("panicked"),
                "{}: {}",
                file.display(),
                ran.err
            );
            if ran.code <= 1 && host.path("x.orth").exists() {
                host.ok(&["check", "x.orth", "--level", "full"]);
            }
            seen += 1;
        }
    }
    assert!(seen >= 9, "{seen}");
}

/// A file of 546 bytes that promises 18 GB: what it holds is what costs.
#[test]
fn elements_that_are_not_stored_cost_nothing() {
    let Some(data) = shared() else { return };
    let host = Host::new();
    let file = arg(&data.join("netcdf4/netcdf-c/nc_test4__ref_tst_dims.nc"));
    // The quietest of three, as other tests run beside.
    let seconds = ["x.orth", "y.orth", "z.orth"].map(|to| {
        let began = std::time::Instant::now();
        host.ok(&["import", &file, to]);
        began.elapsed().as_secs_f64()
    });
    assert!(seconds.iter().any(|s| *s < 1.0), "{seconds:?}");
    let info = host.ok(&["info", "x.orth:/lat"]);
    assert!(
        info.contains("4500000000") && info.contains("stored    0 of"),
        "{info}"
    );
    assert!(std::fs::metadata(host.path("x.orth")).unwrap().len() < 1 << 20);
}
