//! What the repository has of each target's kind, to start from.
//!
//! Holds [`seeds`]. Golden files and the hostile corpus of the tests are seeds as they are; golden files are also cut up into
//! nodes, documents and payloads; inputs that were found before lie in `fuzz/found/TARGET`. Must not depend on the fuzzer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use orthant::testing::Raw;
use orthant::testing::parse::RECORDS;

/// Longest foreign file that is a seed: longer ones the fuzzer cuts.
const FOREIGN_MAX: usize = 1 << 16;

/// Seeds by target, of the repository at `repository`.
pub fn seeds(repository: &Path) -> io::Result<BTreeMap<String, BTreeSet<Vec<u8>>>> {
    let mut corpus = Corpus::default();
    for golden in files(&repository.join("format-spec/vectors"), "orth")? {
        let bytes = fs::read(&golden)?;
        corpus.add("open", &bytes);
        corpus.add("checksums", &bytes);
        nodes(&mut corpus, &bytes);
        let Ok(raw) = Raw::from_bytes(bytes) else {
            continue;
        };
        for entry in raw.entries().unwrap_or_default() {
            match entry.key.first() {
                // Documents and attributes, a blob's two bytes before them where they stand in the index.
                Some(2 | 3) => {
                    corpus.add("metadata", &entry.content);
                    corpus.add("metadata", entry.content.get(2..).unwrap_or_default());
                    corpus.record("blob", &entry.content);
                }
                Some(8) => {
                    for which in 0..9 {
                        corpus.add("decoders", &[&[which], &entry.content[..]].concat());
                        let head = [which, which.wrapping_mul(37), which, 20];
                        corpus.add("codecs", &[&head[..], &entry.content].concat());
                    }
                    corpus.record("chunk key", &[&[2], &entry.key[..]].concat());
                }
                Some(0x10) => corpus.record("snapshot record", &entry.content),
                Some(0x11) => corpus.record("history record", &entry.content),
                _ => {}
            }
        }
    }
    let frames = fs::read_to_string(repository.join("tests/data/codec/blosc_vectors.json"))?;
    let frames: serde_json::Value = serde_json::from_str(&frames)?;
    for case in frames["cases"].as_array().into_iter().flatten() {
        let frame = case["frame"].as_str().unwrap_or_default().as_bytes();
        let digit = |b: &u8| char::from(*b).to_digit(16).unwrap_or(0) as u8;
        let frame: Vec<u8> = frame
            .chunks(2)
            .map(|d| d.iter().fold(0, |n, b| n << 4 | digit(b)))
            .collect();
        let len = case["len"].as_u64();
        for (which, _) in (9_u8..)
            .zip([1200, 2504, 900])
            .filter(|(_, of)| Some(*of) == len)
        {
            corpus.add("decoders", &[&[which], &frame[..]].concat());
        }
    }
    for which in [0_u8, 1, 2, 0x80] {
        let mut shard = vec![which];
        shard.extend([7_u8; 8 * 4]);
        for inner in 0..16_u64 {
            let (offset, len) = if inner < 4 {
                (inner * 8, 8)
            } else {
                (u64::MAX, u64::MAX)
            };
            shard.extend(offset.to_le_bytes());
            shard.extend(len.to_le_bytes());
        }
        shard.extend([0; 4]);
        corpus.add("shard", &shard);
    }
    for text in [
        "..",
        "-3:5, 0:7:2",
        "begin:end-2, 4",
        "end-3:end",
        "2, ..",
        "-1:+1",
    ] {
        corpus.add("selection", text.as_bytes());
    }
    for npy in files(&repository.join("samples"), "npy")? {
        let bytes = fs::read(npy)?;
        corpus.add("import", bytes.get(..4096).unwrap_or(&bytes));
    }
    corpus.add("import", b"\x93NUMPY\x01\x00\x46\x00{'descr': '<i2', 'fortran_order': True, 'shape': (2, 1), }             \n\x01\x00\x02\x00");
    for (folder, kind) in [("hdf5", ""), ("images", ""), (".", "npz")] {
        for file in files(&repository.join("cli/tests/data").join(folder), kind)? {
            let bytes = fs::read(file)?;
            if bytes.len() <= FOREIGN_MAX {
                corpus.add("foreign", &bytes);
            }
        }
    }
    let steps: Vec<u8> = (0..=255).collect();
    corpus.add("model", &steps);
    corpus.add("crash", &steps);
    for case in crate::hostile::corpus() {
        corpus.add("open", &case.bytes);
        corpus.add("checksums", &case.bytes);
    }
    let found = repository.join("fuzz/found");
    for target in fs::read_dir(&found).into_iter().flatten() {
        let target = target?.path();
        let name = target
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default()
            .to_owned();
        for input in files(&target, "")? {
            corpus.add(&name, &fs::read(input)?);
        }
    }
    Ok(corpus.0)
}

/// Everything in a container that starts as a node does and says how long it is.
fn nodes(corpus: &mut Corpus, bytes: &[u8]) {
    for at in (0x3000..bytes.len()).step_by(8) {
        let len = bytes
            .get(at + 24..at + 28)
            .and_then(|b| b.first_chunk::<4>());
        let len = len.map_or(0, |b| u32::from_le_bytes(*b)) as usize;
        if bytes[at..].starts_with(b"ORTN")
            && let Some(node) = bytes.get(at..at + len)
        {
            corpus.add("node", node);
        }
        if bytes[at..].starts_with(b"ORTCOMIT") {
            corpus.record("commit record", &bytes[at..bytes.len().min(at + 160)]);
        }
    }
    corpus.record("header", bytes.get(..4096).unwrap_or_default());
    corpus.record("slot", bytes.get(0x1000..0x2000).unwrap_or_default());
    corpus.record("slot", bytes.get(0x2000..0x3000).unwrap_or_default());
}

#[derive(Default)]
struct Corpus(BTreeMap<String, BTreeSet<Vec<u8>>>);

impl Corpus {
    fn add(&mut self, target: &str, bytes: &[u8]) {
        let seeds = self.0.entry(target.to_owned()).or_default();
        seeds.insert(bytes.to_vec());
    }

    /// A seed of the target `records`, whose first byte says which kind follows.
    fn record(&mut self, kind: &str, bytes: &[u8]) {
        if let Some(which) = (0..)
            .zip(RECORDS)
            .find_map(|(i, (name, _))| (name == kind).then_some(i))
        {
            self.add("records", &[&[which], bytes].concat());
        }
    }
}

/// Files of a folder with a suffix, any with an empty one; none where there is no such folder.
fn files(folder: &Path, suffix: &str) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.is_file() && (suffix.is_empty() || path.extension().is_some_and(|e| e == suffix)) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}
