//! Cases from public trouble reports against other array containers, file engines and codecs, each stated for orthant:
//! what to do, and the one right result. A test bears the id of its case; where a case lists variants it has several.
//!
//! The wording of the reports is not repeated here. Small inputs stand in `tests/data/cases`. Cases about shards and caches
//! stand beside the other tests of those (`sharding`, `foreign_shards`, `caches`), those about the command beside its own.

mod codecs;
mod commit;
mod fill;
mod grid;
mod growth;
mod hostile;
mod messages;
mod names;
mod rules;
mod scale;
mod selections;
mod sharing;
mod space;
mod types;

/// The cases, by number.
const CASES: [u32; 76] = [
    1, 2, 5, 6, 8, 9, 11, 14, 16, 17, 18, 19, 20, 21, 22, 24, 26, 27, 29, 31, 32, 35, 36, 38, 39,
    40, 42, 43, 44, 46, 47, 49, 50, 53, 54, 56, 59, 60, 61, 63, 64, 67, 68, 69, 70, 73, 75, 77, 78,
    79, 82, 84, 86, 87, 89, 91, 92, 94, 95, 96, 98, 99, 101, 104, 106, 107, 109, 110, 111, 112,
    113, 115, 119, 120, 122, 125,
];

/// The text of every test file under a folder.
fn texts(folder: &std::path::Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &texts(&path);
        } else if path.extension().is_some_and(|x| x == "rs") {
            all += &std::fs::read_to_string(&path).unwrap();
        }
    }
    all
}

#[test]
fn every_case_has_a_test_that_bears_its_number() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = texts(&root.join("tests")) + &texts(&root.join("cli/tests"));
    let names: Vec<&str> = all
        .lines()
        .filter_map(|line| line.trim().strip_prefix("fn c"))
        .collect();
    let missing: Vec<u32> = CASES
        .into_iter()
        .filter(|case| {
            let (first, later) = (format!("{case:02}_"), format!("_c{case:02}_"));
            let bears = |name: &&&str| name.starts_with(&first) || name.contains(&later);
            names.iter().find(bears).is_none()
        })
        .collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
    crate::support::figure(11, "cases of trouble reports", CASES.len() as u64);
}
