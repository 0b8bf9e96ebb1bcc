//! What differs: two generations of one file by what they do not share, two files by what they hold.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use orthant::testing::{FileId, Memory, Storage};
use orthant::{ArraySpec, Aspect, Codec, DiffOptions, OpenOptions, Snapshot, Writer, region};

use crate::medium::fresh;
use crate::support::{extents, reopened};

/// Each respect in which something differs, as `path what`, and the chunks of it.
fn told(old: &Snapshot, new: &Snapshot, options: &DiffOptions) -> Vec<(String, Vec<Vec<i64>>)> {
    let diff = old.diff(new, options).unwrap();
    let mut all: Vec<(String, Vec<Vec<i64>>)> = Vec::new();
    all.extend(
        diff.removed
            .into_iter()
            .map(|m| (format!("- {}", m.path), Vec::new())),
    );
    all.extend(
        diff.added
            .into_iter()
            .map(|m| (format!("+ {}", m.path), Vec::new())),
    );
    all.extend(diff.changed.into_iter().map(|c| {
        let names = c.attributes.join(",");
        (
            format!("{} {} {names}", c.path, c.what.name())
                .trim()
                .to_owned(),
            c.chunks,
        )
    }));
    all
}

fn plain(old: &Snapshot, new: &Snapshot) -> Vec<(String, Vec<Vec<i64>>)> {
    told(old, new, &DiffOptions::new())
}

fn one(what: &str) -> (String, Vec<Vec<i64>>) {
    (what.to_owned(), Vec::new())
}

/// A medium that counts what is read of it, and forgets when asked.
#[derive(Debug)]
struct Counted {
    memory: Memory,
    reads: Mutex<Vec<u64>>,
}

impl Storage for Counted {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.reads.lock().unwrap().push(offset);
        self.memory.read_exact_at(offset, buf)
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn identity(&self) -> Option<FileId> {
        Some(FileId {
            device: u64::MAX,
            inode: 11,
        })
    }
}

/// A million chunks, ten of them scattered and changed.
#[test]
fn ten_scattered_chunks_of_a_million_cost_their_paths_in_both_trees_and_no_payload() {
    let medium = Arc::new(Counted {
        memory: Memory::from_bytes(fresh().to_bytes().unwrap()),
        reads: Mutex::default(),
    });
    let open = || {
        OpenOptions::new()
            .open_storage(Arc::clone(&medium) as Arc<dyn Storage>)
            .unwrap()
    };
    let writing = open();
    let w = writing.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![-50..50, 0..100, 0..100])
        .chunks([1, 1, 1])
        .codecs(Codec::raw_profile());
    let a = w.create_array("a", spec).unwrap();
    a.write_scalar(region![.., .., ..], 7).unwrap();
    let payloads = |k: u8| {
        for i in 0..10_i64 {
            let (x, y, z) = (i * 10 - 46, (i * 37) % 100, (i * 53) % 100);
            a.write_slice(region![x..x + 1, y..y + 1, z..z + 1], &[k])
                .unwrap();
        }
    };
    payloads(1);
    w.commit().unwrap();
    let places = || -> BTreeSet<u64> {
        let a = open().snapshot().unwrap().dyn_array("a").unwrap();
        extents(&a)
            .into_iter()
            .map(|(_, offset, _)| offset)
            .collect()
    };
    let mut stored = places();
    // Handles of their own, whose caches have seen the roots alone.
    let old = open().snapshot().unwrap();
    payloads(2);
    w.commit().unwrap();
    stored.extend(places());
    assert_eq!(stored.len(), 20);
    let new = open().snapshot().unwrap();
    medium.reads.lock().unwrap().clear();
    let diff = old.diff(&new, &DiffOptions::new()).unwrap();
    let reads = medium.reads.lock().unwrap().clone();
    assert_eq!(diff.changed.len(), 1);
    assert_eq!(diff.changed[0].chunks.len(), 10);
    assert!(
        reads.iter().all(|at| !stored.contains(at)),
        "a payload was read"
    );
    // The old root was read at opening; the new one was too, but by another handle, and is among the reads again.
    let nodes = reads.iter().filter(|at| **at >= 0x3000).count() + 1;
    println!("{nodes} nodes read over both trees");
    assert!(nodes <= 45, "{nodes} nodes");
}

fn ocean(w: &Writer, codec: Codec) {
    for path in ["model/temp", "model/salt", "old"] {
        let spec = ArraySpec::<i32>::new(region![-8..8, 0..6])
            .chunks([4, 3])
            .dims(["time", "x"])
            .fill(-1)
            .codecs([codec.clone()]);
        let a = w.create_array(path, spec).unwrap();
        let data: Vec<i32> = (0..60).collect();
        a.write_slice(region![-4..6, ..], &data).unwrap();
        a.attributes().set("units", "K").unwrap();
    }
    w.commit().unwrap();
}

#[test]
fn two_generations_differ_in_what_was_committed_between_them() {
    let c = fresh();
    let w = c.writer().unwrap();
    ocean(&w, Codec::zstd(3));
    let old = c.snapshot().unwrap();
    assert_eq!(plain(&old, &old), []);
    w.commit().unwrap();
    assert_eq!(plain(&old, &c.snapshot().unwrap()), []);
    let temp = w.array::<i32>("model/temp").unwrap();
    temp.write_slice(region![-4..-3, 0..1], &[99]).unwrap();
    temp.attributes().set("units", "degC").unwrap();
    temp.attributes().set("new", 1_i64).unwrap();
    w.array::<i32>("model/salt").unwrap().grow(0, 4, 0).unwrap();
    w.rename("old", "model/older").unwrap();
    w.create_group("empty").unwrap();
    w.commit().unwrap();
    let new = c.snapshot().unwrap();
    let expected = vec![
        one("- /old"),
        one("+ /empty"),
        one("+ /model/older"),
        one("/model/salt domain"),
        one("/model/temp attributes new,units"),
        ("/model/temp values".to_owned(), vec![vec![-1, 0]]),
    ];
    assert_eq!(plain(&old, &new), expected);
    let back: Vec<_> = plain(&new, &old).into_iter().map(|d| d.0).collect();
    assert_eq!(
        back[..3],
        ["- /empty", "- /model/older", "+ /old"].map(str::to_owned)
    );
    // The same from the file's bytes, where nothing is known to be shared.
    let mut apart = plain(&old, &reopened(&c).snapshot().unwrap());
    apart.sort();
    let mut sorted = expected;
    sorted.sort();
    assert_eq!(apart, sorted);
    // One object, or another path.
    let at = |a: &str, b: &str| told(&old, &new, &DiffOptions::new().at(a, b));
    assert_eq!(at("model/salt", "model/salt"), [one("/model/salt domain")]);
    assert_eq!(at("old", "model/older"), []);
    assert_eq!(at("old", "model/temp").len(), 2);
}

#[test]
fn a_chunk_that_was_written_again_with_the_same_elements_is_not_changed() {
    let c = fresh();
    let w = c.writer().unwrap();
    ocean(&w, Codec::zstd(3));
    let old = c.snapshot().unwrap();
    let salt = w.array::<i32>("model/salt").unwrap();
    let data: Vec<i32> = salt.read_vec(region![-4..6, ..]).unwrap();
    salt.write_slice(region![-4..6, ..], &data).unwrap();
    w.commit().unwrap();
    assert_eq!(plain(&old, &c.snapshot().unwrap()), []);
}

/// Two files of one content are equal, whatever their codecs, chunks, generations and order of writing.
#[test]
fn equal_content_is_equal_in_any_encoding_and_any_chunks() {
    let make = |spec: ArraySpec<i32>| {
        let c = fresh();
        let w = c.writer().unwrap();
        let a = w.create_array("a", spec.fill(-1)).unwrap();
        let data: Vec<i32> = (0..400).map(|i| i % 37 - 1).collect();
        a.write_slice(region![-10..10, 0..20], &data).unwrap();
        w.commit().unwrap();
        drop(w);
        c
    };
    let spec = || ArraySpec::<i32>::new(region![-16..16, 0..24]);
    let first = make(spec().chunks([8, 8]).codecs([Codec::zstd(3)]));
    let others = [
        make(spec().chunks([8, 8]).codecs([Codec::zstd(3)])),
        make(
            spec()
                .chunks([8, 8])
                .codecs([Codec::shuffle(), Codec::zlib(6)]),
        ),
        make(spec().chunks([8, 8]).codecs(Codec::raw_profile())),
        make(spec().chunks([5, 7])),
        make(spec().chunks([4, 4]).shards([16, 8])),
        make(spec().chunks([8, 8]).origin([3, -2])),
    ];
    let a = first.snapshot().unwrap();
    for (i, other) in others.iter().enumerate() {
        let b = other.snapshot().unwrap();
        assert_eq!(plain(&a, &b), [], "{i}");
        assert_eq!(plain(&b, &a), [], "{i}");
    }
    // One element differs, in a chunk that is stored and in one that is not.
    for (at, chunk) in [((-10, 3), [-2, 0]), ((12, 20), [1, 2])] {
        for (i, other) in others.iter().enumerate() {
            let c = reopened(other);
            let w = c.writer().unwrap();
            let cell = region![at.0..at.0 + 1, at.1..at.1 + 1];
            w.array::<i32>("a")
                .unwrap()
                .write_slice(cell, &[12_345])
                .unwrap();
            w.commit().unwrap();
            let b = c.snapshot().unwrap();
            let expected = [("/a values".to_owned(), vec![chunk.to_vec()])];
            assert_eq!(plain(&a, &b), expected, "{i}");
            assert_eq!(plain(&b, &a).len(), 1, "{i}");
        }
    }
}

#[test]
fn equal_checksums_decide_without_a_decode() {
    let make = |last: u8| {
        let c = fresh();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<i32>::new(region![0..20])
            .chunks([10])
            .codecs([Codec::zstd(3)]);
        w.create_array("a", spec).unwrap();
        let a = w.dyn_array("a").unwrap();
        // Nothing that decodes: whoever tries, fails.
        a.put_encoded_chunk_unchecked(&[0], b"garbage").unwrap();
        a.put_encoded_chunk_unchecked(&[1], &[last; 9]).unwrap();
        w.commit().unwrap();
        drop(w);
        c.snapshot().unwrap()
    };
    assert_eq!(plain(&make(1), &make(1)), []);
    let e = make(1).diff(&make(2), &DiffOptions::new()).unwrap_err();
    assert_eq!(e.chunk(), Some(&[1][..]));
}

#[test]
fn type_fill_and_axes_are_told_apart_from_elements() {
    let make = |f: &dyn Fn(&Writer)| {
        let c = fresh();
        let w = c.writer().unwrap();
        f(&w);
        w.commit().unwrap();
        drop(w);
        c.snapshot().unwrap()
    };
    let spec = || ArraySpec::<f32>::new(region![0..4]).chunks([2]);
    let base = make(&|w| drop(w.create_array("a", spec()).unwrap()));
    let cases: [(&str, Snapshot); 4] = [
        (
            "fill",
            make(&|w| drop(w.create_array("a", spec().fill(f32::NAN)).unwrap())),
        ),
        (
            "dims",
            make(&|w| drop(w.create_array("a", spec().dims(["t"])).unwrap())),
        ),
        (
            "dtype",
            make(&|w| {
                drop(
                    w.create_array("a", ArraySpec::<f64>::new(region![0..4]))
                        .unwrap(),
                );
            }),
        ),
        ("kind", make(&|w| drop(w.create_group("a").unwrap()))),
    ];
    for (what, other) in cases {
        assert_eq!(plain(&base, &other), [one(&format!("/a {what}"))]);
    }
    let written = |v: &[f32]| {
        make(&|w| {
            drop(
                w.create_array("a", spec())
                    .unwrap()
                    .write_slice(region![0..4], v),
            )
        })
    };
    let (a, b) = (
        written(&[1.0, 2.0, 3.0, f32::NAN]),
        written(&[1.0, 2.0, 3.5, f32::NAN]),
    );
    assert_eq!(plain(&a, &b), [("/a values".to_owned(), vec![vec![1]])]);
    let near = |x| told(&a, &b, &DiffOptions::new().tolerance(x));
    assert_eq!(near(0.5), []);
    assert_eq!(near(0.25).len(), 1);
    assert_eq!(Aspect::Values.name(), "values");
}
