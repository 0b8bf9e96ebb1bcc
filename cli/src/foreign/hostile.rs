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

#[test]
fn damaged_images_end_in_elements_or_in_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/images");
    let host = tempfile::tempdir().unwrap();
    let path = host.path().join("x");
    let (mut files, mut tried, mut read) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        let kind = entry.extension().and_then(|e| e.to_str());
        if !matches!(kind, Some("tif" | "nii" | "gz")) {
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&entry).unwrap();
        let mut attempt = |bytes: &[u8]| {
            std::fs::File::create(&path)
                .unwrap()
                .write_all(bytes)
                .unwrap();
            tried += 1;
            read += usize::from(read_all(&path) > 0);
        };
        attempt(&bytes);
        for at in (0..bytes.len()).step_by(67) {
            attempt(&bytes[..at]);
        }
        let step = bytes.len().div_ceil(50);
        for at in (0..bytes.len()).step_by(step.max(1)) {
            for with in [0, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                if bytes[at] != with {
                    bytes[at] = with;
                    attempt(&bytes);
                }
            }
        }
    }
    println!("{tried} damaged forms of {files} files, {read} still read");
    assert!(files > 10 && read > files);
}
