//! Files that were damaged on purpose: whatever is in them, reading ends soon, in elements or in a reason.
//!
//! Every file below `tests/data` of a kind that has no hostile tests of its own is cut and changed, byte by byte.

use std::io::Write as _;
use std::path::Path;

use super::{Content, What, open};

/// Elements of a box that is read whole.
const ELEMENTS_MAX: u64 = 1 << 16;
/// Chunks that are read.
const CHUNKS_MAX: usize = 64;

fn read_all(path: &Path) -> usize {
    let Ok(source) = open(path) else { return 0 };
    let mut read = 0_usize;
    for node in source.nodes {
        let What::Array(array) = node.what else {
            continue;
        };
        match array.content {
            Content::Boxes(boxes) => {
                let shape = array.facts.domain.shape();
                let count = shape.iter().fold(1_u64, |n, e| n.saturating_mul(*e));
                if count <= ELEMENTS_MAX && boxes.read(&vec![0; shape.len()], &shape).is_ok() {
                    read = read.saturating_add(1);
                }
            }
            Content::Chunks(chunks) => {
                let mut coords = Vec::new();
                let _ = chunks.for_each(&mut |coord| {
                    if coords.len() < CHUNKS_MAX {
                        coords.push(coord.to_vec());
                    }
                    Ok(())
                });
                for coord in coords {
                    read = read.saturating_add(usize::from(chunks.read(&coord).is_ok()));
                }
            }
        }
    }
    read
}

/// How many damaged forms of a folder's files were tried, and how many of them still held something to read.
struct Tried {
    files: usize,
    forms: usize,
    read: usize,
}

/// Cuts every file of some kinds each `cut` bytes, or at as many places as that where 0, and changes bytes at `places`.
fn damage(folder: &str, kinds: &[&str], cut: usize, places: usize) -> Tried {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let host = tempfile::tempdir().unwrap();
    let path = host.path().join("x");
    let mut all = Tried {
        files: 0,
        forms: 0,
        read: 0,
    };
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        let kind = entry.extension().and_then(|e| e.to_str());
        if !kind.is_some_and(|kind| kinds.contains(&kind)) {
            continue;
        }
        all.files += 1;
        let bytes = std::fs::read(&entry).unwrap();
        let step = bytes.len().div_ceil(places).max(1);
        let mut attempt = |bytes: &[u8]| {
            std::fs::File::create(&path)
                .unwrap()
                .write_all(bytes)
                .unwrap();
            all.forms += 1;
            all.read += usize::from(read_all(&path) > 0);
        };
        attempt(&bytes);
        let cut = if cut == 0 { step } else { cut };
        for at in (0..bytes.len()).step_by(cut) {
            attempt(&bytes[..at]);
        }
        for at in (0..bytes.len()).step_by(step) {
            for with in [0, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                if bytes[at] != with {
                    bytes[at] = with;
                    attempt(&bytes);
                }
            }
        }
    }
    println!(
        "{} damaged forms of {} files, {} still read",
        all.forms, all.files, all.read
    );
    all
}

#[test]
fn damaged_images_end_in_elements_or_in_a_reason() {
    let tried = damage("tests/data/images", &["tif", "nii", "gz"], 67, 50);
    assert!(tried.files > 10 && tried.read > tried.files);
}

/// `ORTHANT_FUZZ_PLACES` is how many places of each file are tried.
#[test]
fn damaged_hdf5_and_netcdf_end_in_elements_or_in_a_reason() {
    let places = std::env::var("ORTHANT_FUZZ_PLACES").ok();
    let places = places.map_or(60, |n| n.parse().unwrap());
    let tried = damage("tests/data/hdf5", &["h5", "nc"], 0, places);
    assert!(tried.files > 5 && tried.read > tried.files);
}
