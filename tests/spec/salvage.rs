//! Salvage gives back whatever verifies, tells the rest, and makes a container that passes every check.
//!
//! Damage is planted at places found through the library itself; right values follow from the coordinates.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use orthant::testing::Raw;
use orthant::{
    ArraySpec, AttributeValue, ChunkState, Codec, Container, ErrorKind, FoundBy, Loss, LossKind,
    OpenOptions, SalvageReport, region,
};

use crate::support::{scratch, verify};

/// Chunks of the array `t`: enough for an index of two levels.
const CHUNKS: i64 = 1500;

fn value(x: i64) -> i32 {
    i32::try_from(x * 7 + 3).unwrap()
}

/// Three commits: groups, attributes inline and long, a small array, a raw one with a negative domain and an index of two
/// levels, all of whose chunks differ.
fn sample() -> Vec<u8> {
    let c = OpenOptions::new()
        .reuse_space(false)
        .create_in_memory()
        .unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![-2 * CHUNKS..0])
        .chunks([2])
        .codecs([Codec::crc32c()]);
    let t = w.create_array("g/t", spec).unwrap();
    let cells: Vec<i32> = (-2 * CHUNKS..0).map(value).collect();
    t.write_slice(region![..], &cells).unwrap();
    w.commit().unwrap();
    t.attributes().set("units", "K").unwrap();
    t.attributes().set("long", "x".repeat(3000)).unwrap();
    let small = ArraySpec::<u8>::new(region![0..4, 0..4]).chunks([2, 2]);
    let small = w.create_array("g/h/small", small).unwrap();
    let cells: Vec<u8> = (1..=16).collect();
    small.write_slice(region![.., ..], &cells).unwrap();
    w.commit().unwrap();
    small.write_slice(region![0, 0], &[99]).unwrap();
    w.commit().unwrap();
    c.to_bytes().unwrap()
}

fn salvage(bytes: Vec<u8>) -> (Container, SalvageReport, Vec<Loss>) {
    let mut losses = Vec::new();
    let (made, report) = Container::salvage_bytes(bytes, |loss| losses.push(loss)).unwrap();
    let made = Container::from_bytes(made).unwrap();
    verify(&made);
    assert_eq!(report.losses, losses.len() as u64);
    (made, report, losses)
}

/// Everything of the sample is there, in its newest state.
fn assert_whole(c: &Container) {
    let s = c.snapshot().unwrap();
    let t = s.array::<i32>("g/t").unwrap();
    let cells: Vec<i32> = (-2 * CHUNKS..0).map(value).collect();
    assert_eq!(t.read_vec(region![..]).unwrap(), cells);
    let text = |name| t.attributes().get(name).unwrap();
    assert_eq!(text("units"), Some(AttributeValue::from("K")));
    assert_eq!(text("long"), Some(AttributeValue::from("x".repeat(3000))));
    let small = s.array::<u8>("g/h/small").unwrap();
    let mut cells: Vec<u8> = (1..=16).collect();
    cells[0] = 99;
    assert_eq!(small.read_vec(region![.., ..]).unwrap(), cells);
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
}

/// Places of all nodes in a file, with their levels.
fn nodes(bytes: &[u8]) -> Vec<(usize, u8)> {
    let head = |at: &usize| bytes[*at..].starts_with(b"ORTN");
    let places = (0x3000..bytes.len() - 8).step_by(8).filter(head);
    places.map(|at| (at, bytes[at + 5])).collect()
}

#[test]
fn a_sound_container_comes_back_whole_under_a_new_identity() {
    let bytes = sample();
    let (c, report, losses) = salvage(bytes.clone());
    assert!(losses.is_empty(), "{losses:?}");
    assert_whole(&c);
    assert_eq!((report.found_by, report.generation), (FoundBy::Slot, 5));
    assert_eq!((report.objects, report.attributes), (5, 2));
    assert_eq!(report.chunks, CHUNKS.unsigned_abs() + 4);
    assert_eq!(report.bytes_in, bytes.len() as u64);
    let made = c.to_bytes().unwrap();
    assert_eq!(report.bytes_out, made.len() as u64);
    // A new identity that names the old one as its parent; numbered on; history kept.
    assert_ne!(made[16..32], bytes[16..32]);
    assert_eq!(made[96..112], bytes[16..32]);
    assert_eq!(c.snapshot().unwrap().generation(), 7);
    assert_eq!(c.snapshot().unwrap().log().unwrap().len(), 3);
    // It can be written on.
    let w = c.writer().unwrap();
    w.create_group("new").unwrap();
    w.commit().unwrap();
    verify(&c);
}

#[test]
fn lost_heads_of_a_file_cost_nothing_but_being_told() {
    for (what, ranges, found_by, told) in [
        ("header", vec![0..0x1000], FoundBy::Slot, 1),
        ("older slot", vec![0x1000..0x2000], FoundBy::Slot, 1),
        // The next commit record follows from the slot that is left.
        (
            "newest slot",
            vec![0x2000..0x3000],
            FoundBy::CommitRecord,
            1,
        ),
        ("both slots", vec![0x1000..0x3000], FoundBy::CommitRecord, 2),
        (
            "header and slots",
            vec![0..0x3000],
            FoundBy::CommitRecord,
            3,
        ),
    ] {
        let mut bytes = sample();
        for range in ranges {
            bytes[range].fill(0x5A);
        }
        assert!(Container::from_bytes(bytes.clone()).is_err() || what.contains("slot"));
        let (c, report, losses) = salvage(bytes);
        assert_whole(&c);
        assert_eq!(
            (report.found_by, report.generation),
            (found_by, 5),
            "{what}"
        );
        assert_eq!(losses.len(), told, "{what}: {losses:?}");
        assert!(losses.iter().all(|l| l.kind == LossKind::Index));
    }
}

#[test]
fn without_slots_and_records_leaves_alone_bring_everything_back() {
    let mut bytes = sample();
    bytes[0..0x3000].fill(0);
    for at in (0x3000..bytes.len()).step_by(8) {
        if bytes[at..].starts_with(b"ORTC") {
            bytes[at..at + 100].fill(0);
        }
    }
    for (at, level) in nodes(&bytes) {
        if level > 0 {
            bytes[at..at + 64].fill(0);
        }
    }
    let (c, report, losses) = salvage(bytes);
    assert_whole(&c);
    assert_eq!((report.found_by, report.generation), (FoundBy::Nodes, 5));
    assert!(losses.iter().all(|l| l.kind == LossKind::Index));
}

#[test]
fn each_damaged_payload_costs_its_own_chunk_and_is_told_with_its_place() {
    let whole = sample();
    let sound = Container::from_bytes(whole.clone()).unwrap();
    let small = sound.snapshot().unwrap().dyn_array("g/h/small").unwrap();
    for chunk in small.chunks().unwrap() {
        let ChunkState::Stored { offset, .. } = chunk.state else {
            panic!("{chunk:?}")
        };
        let mut bytes = whole.clone();
        bytes[offset as usize] ^= 0x40;
        let (c, report, losses) = salvage(bytes);
        let [loss] = losses.as_slice() else {
            panic!("{losses:?}")
        };
        assert_eq!(loss.kind, LossKind::Chunk);
        assert_eq!(loss.error.kind(), ErrorKind::Corrupt);
        assert_eq!(loss.error.array(), Some("/g/h/small"));
        assert_eq!(loss.error.chunk(), Some(chunk.coord.as_slice()));
        assert_eq!(loss.error.offset(), Some(offset));
        assert_eq!(report.chunks, CHUNKS.unsigned_abs() + 3);
        let after = c.snapshot().unwrap().array::<u8>("g/h/small").unwrap();
        let cells = after.read_vec(region![.., ..]).unwrap();
        for (i, cell) in cells.iter().enumerate() {
            let inside = [i / 4 / 2, i % 4 / 2].map(|c| c as i64) == chunk.coord[..];
            let right = if i == 0 { 99 } else { i as u8 + 1 };
            assert_eq!(*cell, if inside { 0 } else { right });
        }
    }
}

#[test]
fn a_damaged_branch_costs_nothing_as_its_leaves_are_found() {
    let whole = sample();
    let branches = nodes(&whole).into_iter().filter(|(_, level)| *level > 0);
    let mut seen = 0;
    for (at, _) in branches {
        let mut bytes = whole.clone();
        bytes[at + 40] ^= 1;
        let (c, report, _) = salvage(bytes);
        assert_whole(&c);
        assert_eq!(report.found_by, FoundBy::Slot);
        seen += u64::from(report.recovered > 0);
    }
    assert!(seen > 0, "the root in use was among them");
}

#[test]
fn a_damaged_leaf_costs_what_older_leaves_do_not_have() {
    let whole = sample();
    let mut hit = 0;
    for (at, level) in nodes(&whole) {
        if level > 0 {
            continue;
        }
        let mut bytes = whole.clone();
        bytes[at + 40] ^= 1;
        let (c, report, losses) = salvage(bytes);
        let t = c.snapshot().unwrap().array::<i32>("g/t");
        if losses.is_empty() {
            // An older one, that nothing leads to any more.
            assert_whole(&c);
            continue;
        }
        hit += 1;
        assert_eq!(
            losses.iter().filter(|l| l.kind == LossKind::Index).count(),
            1
        );
        // Every chunk that is there is right.
        let Ok(t) = t else {
            assert!(losses.iter().any(|l| l.kind == LossKind::Object));
            continue;
        };
        let there: BTreeSet<i64> = t
            .chunks()
            .unwrap()
            .into_iter()
            .map(|c| c.coord[0])
            .collect();
        let cells = t.read_vec(region![..]).unwrap();
        for (cell, x) in cells.iter().zip(-2 * CHUNKS..0) {
            let stored = there.contains(&x.div_euclid(2));
            assert_eq!(*cell, if stored { value(x) } else { 0 });
        }
        let gone = CHUNKS as usize - there.len();
        assert!(gone < 400 || report.recovered > 0, "{gone}");
    }
    assert!(hit >= 3, "{hit}");
}

#[test]
fn what_a_younger_leaf_has_deleted_does_not_come_back_from_an_older_one() {
    let raw = Raw::in_memory().unwrap();
    let w = raw.writer().unwrap();
    for n in 0..=9_u8 {
        w.put(&[0xE0, n], &[n]);
    }
    w.commit().unwrap();
    w.delete(&[0xE0, 5]);
    w.put(&[0xE0, 6], b"new");
    w.commit().unwrap();
    // Only the newest root, a leaf, is still there; nothing leads to it.
    let mut bytes = raw.to_bytes().unwrap();
    bytes[0x1000..0x3000].fill(0);
    let zero = |bytes: &mut Vec<u8>, magic: &[u8]| {
        for at in (0x3000..bytes.len() - 8).step_by(8) {
            if bytes[at..].starts_with(magic) {
                bytes[at] = 0;
            }
        }
    };
    zero(&mut bytes, b"ORTC");
    let (made, report) = Container::salvage_bytes(bytes, drop).unwrap();
    assert_eq!((report.found_by, report.generation), (FoundBy::Nodes, 4));
    let made = Raw::from_bytes(made).unwrap();
    let entries = made.entries().unwrap();
    let of = |n: u8| entries.iter().find(|e| e.key == [0xE0, n]);
    assert_eq!(of(4).unwrap().content, [4]);
    assert!(of(5).is_none());
    assert_eq!(of(6).unwrap().content, b"new");
}

#[test]
fn a_commit_whose_slot_was_torn_is_taken_when_all_of_it_is_there() {
    // The record of generation 6 names nodes that are not there: it never was a commit.
    let whole = sample();
    let c = Container::from_bytes(whole.clone()).unwrap();
    let w = c.writer().unwrap();
    let t = w.array::<u8>("g/h/small").unwrap();
    t.write_slice(region![3, 3], &[77]).unwrap();
    w.commit().unwrap();
    let mut after = c.to_bytes().unwrap();
    after[0x1000..0x2000].fill(7);
    let (c, report, _) = salvage(after.clone());
    assert_eq!(
        (report.found_by, report.generation),
        (FoundBy::CommitRecord, 6)
    );
    let s = c.snapshot().unwrap().array::<u8>("g/h/small").unwrap();
    assert_eq!(s.read_vec(region![3, 3]).unwrap(), [77]);
    // Any node of that commit missing: the commit before it.
    let (last, _) = *nodes(&after).last().unwrap();
    after[last..last + 8].fill(0);
    let (c, report, _) = salvage(after);
    assert_eq!((report.found_by, report.generation), (FoundBy::Slot, 5));
    assert_whole(&c);
}

#[test]
fn objects_come_back_where_directory_or_documents_are_lost() {
    let lose = |keys: &[&[u8]]| {
        let raw = Raw::from_bytes(sample()).unwrap();
        let w = raw.writer().unwrap();
        for key in keys {
            w.delete(key);
        }
        w.commit().unwrap();
        salvage(raw.to_bytes().unwrap())
    };
    let kinds = |losses: &[Loss]| losses.iter().map(|l| l.kind).collect::<Vec<_>>();
    let paths = |c: &Container| -> Vec<String> {
        let s = c.snapshot().unwrap();
        s.walk().unwrap().map(|m| m.unwrap().path).collect()
    };
    // The document of a group: made anew.
    let (c, _, losses) = lose(&[&[2, 0x81]]);
    assert_eq!(kinds(&losses), [LossKind::Object]);
    assert_eq!(losses[0].error.array(), Some("/g"));
    assert_whole(&c);
    // The directory entry of a group: it is found again with all its members.
    let (c, _, losses) = lose(&[b"\x01\x80g"]);
    assert_eq!(kinds(&losses), [LossKind::Path]);
    let found = paths(&c);
    assert_eq!(
        found
            .iter()
            .map(|p| p.trim_start_matches('/'))
            .collect::<Vec<_>>(),
        [
            "lost+found",
            "lost+found/object-1",
            "lost+found/object-1/h",
            "lost+found/object-1/h/small",
            "lost+found/object-1/t"
        ]
    );
    // The document of an array: what it had is told, chunk by chunk.
    let (c, _, losses) = lose(&[&[2, 0x84]]);
    assert_eq!(
        kinds(&losses),
        [
            LossKind::Object,
            LossKind::Chunk,
            LossKind::Chunk,
            LossKind::Chunk,
            LossKind::Chunk
        ]
    );
    assert!(c.snapshot().unwrap().array::<i32>("g/t").is_ok());
    // The root's document and everything in the directory.
    let (c, report, losses) = lose(&[&[2, 0x80], b"\x01\x80g", b"\x01\x81t", b"\x01\x81h"]);
    assert_eq!(report.objects, 6);
    assert_eq!(kinds(&losses).len(), 4);
    assert!(paths(&c).iter().any(|p| p.ends_with("object-3/small")));
}

#[test]
fn directories_that_lead_in_circles_are_straightened() {
    let raw = Raw::in_memory().unwrap();
    let w = raw.writer().unwrap();
    let group = b"\0\0{\"zarr_format\":3,\"node_type\":\"group\"}";
    for id in 0x81..=0x86 {
        w.put(&[2, id], group);
    }
    // 1 holds 2, 2 holds 1; 3 holds itself; 4 has two names; 5 holds the root, 6 is fine.
    w.put(b"\x01\x81a", &[0x82, 1]);
    w.put(b"\x01\x82b", &[0x81, 1]);
    w.put(b"\x01\x83c", &[0x83, 1]);
    w.put(b"\x01\x80d", &[0x84, 1]);
    w.put(b"\x01\x80e", &[0x84, 1]);
    w.put(b"\x01\x80f", &[0x85, 1]);
    w.put(b"\x01\x85g", &[0x80, 1]);
    w.put(b"\x01\x85h", &[0x86, 1]);
    // An array of which nothing is known.
    w.put(b"\x01\x80i", &[0x89, 2]);
    w.commit().unwrap();
    let (c, report, losses) = salvage(raw.to_bytes().unwrap());
    assert_eq!(report.objects, 8);
    assert!(losses.len() >= 6, "{losses:?}");
    let s = c.snapshot().unwrap();
    for path in [
        "d",
        "f",
        "f/h",
        "lost+found/object-1/a",
        "lost+found/object-3",
    ] {
        s.group(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
}

#[test]
fn entries_that_share_bytes_are_kept_once_and_the_new_file_is_no_longer() {
    let whole = sample();
    let sound = Container::from_bytes(whole.clone()).unwrap();
    let t = sound.snapshot().unwrap().dyn_array("g/t").unwrap();
    let first = t.chunks().unwrap().remove(0);
    let ChunkState::Stored { offset, len, .. } = first.state else {
        panic!("{first:?}")
    };
    let crc = crc32fast::hash(&whole[offset as usize..(offset + len) as usize]);
    let raw = Raw::from_bytes(whole).unwrap();
    let w = raw.writer().unwrap();
    // A thousand more chunks, all of the same bytes.
    for n in 0..1000_i64 {
        let [low, high, ..] = (n + 1000).to_le_bytes();
        let key = [8, 0x82, 0xF9, high, low];
        let mut record = offset.to_le_bytes().to_vec();
        record.extend((len as u32).to_le_bytes());
        record.extend(crc.to_le_bytes());
        record.extend([0; 4]);
        w.put(&key, &record);
    }
    w.commit().unwrap();
    let (c, report, losses) = salvage(raw.to_bytes().unwrap());
    assert_whole(&c);
    assert_eq!(losses.len(), 1000);
    assert!(report.bytes_out < report.bytes_in);
}

#[test]
fn nodes_inside_payloads_are_data() {
    // A container whose array holds the bytes of another, with its nodes at multiples of 8.
    let inner = sample();
    let c = OpenOptions::new()
        .reuse_space(false)
        .create_in_memory()
        .unwrap();
    let w = c.writer().unwrap();
    let len = i64::try_from(inner.len()).unwrap();
    let spec = ArraySpec::<u8>::new(region![0..len])
        .chunks([inner.len() as u64])
        .codecs(Codec::raw_profile());
    let a = w.create_array("backup", spec).unwrap();
    a.write_slice(region![..], &inner).unwrap();
    w.commit().unwrap();
    let mut bytes = c.to_bytes().unwrap();
    // The root leaf, behind the payload, is gone; the one before it knows of no array.
    let root = u64_at(&bytes, 0x2020);
    bytes[root + 40] ^= 1;
    let (c, _, losses) = salvage(bytes);
    assert!(losses.iter().any(|l| l.kind == LossKind::Index));
    let s = c.snapshot().unwrap();
    // Nothing tells that payload from nodes of this file now: what comes of it is whole all the same.
    assert!(s.walk().unwrap().all(|m| m.is_ok()));
}

#[test]
fn every_truncation_gives_right_values_or_tells_what_is_lost() {
    let whole = sample();
    for len in (0..whole.len()).step_by(1777).chain([0x2FFF, 0x3001]) {
        let mut losses = 0;
        let cut = whole[..len].to_vec();
        let Ok((made, report)) = Container::salvage_bytes(cut, |_| losses += 1) else {
            assert!(len < 0x3200, "{len}");
            continue;
        };
        assert!(losses > 0, "{len}");
        assert!(report.bytes_in == len as u64);
        let c = Container::from_bytes(made).unwrap();
        verify(&c);
        let s = c.snapshot().unwrap();
        let Ok(t) = s.array::<i32>("g/t") else {
            continue;
        };
        let cells = t.read_vec(region![..]).unwrap();
        for (cell, x) in cells.iter().zip(-2 * CHUNKS..0) {
            assert!(*cell == value(x) || *cell == 0);
        }
    }
}

#[test]
fn every_damaged_byte_gives_right_values_or_is_told() {
    let c = OpenOptions::new()
        .reuse_space(false)
        .create_in_memory()
        .unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i16>::new(region![-6..6]).chunks([3]);
    let a = w.create_array("a", spec).unwrap();
    let old: Vec<i16> = (100..112).collect();
    a.write_slice(region![..], &old).unwrap();
    w.commit().unwrap();
    let new: Vec<i16> = (200..206).collect();
    a.write_slice(region![0..6], &new).unwrap();
    w.commit().unwrap();
    let whole = c.to_bytes().unwrap();
    let newest: Vec<i16> = old[..6].iter().chain(&new).copied().collect();
    // The header and slots, and all that follows.
    let places = (0..256).chain(0x1000..0x1100).chain(0x2000..0x2100);
    for at in places.chain(0x3000..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let mut losses = Vec::new();
        let salvaged = Container::salvage_bytes(bytes, |loss| losses.push(loss));
        let (made, report) = match salvaged {
            Ok(made) => made,
            // A version that nobody knows.
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Unsupported, "{at}: {e}");
                continue;
            }
        };
        let c = Container::from_bytes(made).unwrap();
        verify(&c);
        let cells = c
            .snapshot()
            .and_then(|s| s.array::<i16>("a"))
            .and_then(|a| a.read_vec(region![..]));
        if losses.is_empty() {
            assert_eq!(cells.unwrap(), newest, "{at}");
            continue;
        }
        let Ok(cells) = cells else {
            assert!(losses.iter().any(|l| l.kind != LossKind::Chunk), "{at}");
            continue;
        };
        for (i, cell) in cells.iter().enumerate() {
            let older = report.recovered > 0 && *cell == old[i];
            assert!(*cell == newest[i] || *cell == 0 || older, "{at}: {cells:?}");
        }
    }
}

#[test]
fn a_file_of_nothing_but_beginnings_of_nodes_ends_in_time() {
    let mut bytes = sample();
    bytes.truncate(0x3000);
    let mut head = b"ORTN\x01\0\0\0".to_vec();
    head.extend([0; 16]);
    head.extend(60_000_u32.to_le_bytes());
    head.extend([0; 4]);
    while bytes.len() < 4 << 20 {
        bytes.extend(&head);
    }
    let started = std::time::Instant::now();
    let e = Container::salvage_bytes(bytes, drop).unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn a_salvage_at_paths_never_touches_the_source_and_appears_whole_or_not_at_all() {
    let (folder, source) = scratch("damaged.orth");
    let target = folder.path().join("saved.orth");
    let mut bytes = sample();
    bytes[0x1000..0x3000].fill(0);
    std::fs::write(&source, &bytes).unwrap();
    let go_on = |_, _| ControlFlow::Continue(());
    let stop = |_, _| ControlFlow::Break(());
    let ended = Container::salvage(&source, &target, stop, drop).unwrap();
    assert_eq!((ended, target.exists()), (None, false));
    let report = Container::salvage(&source, &target, go_on, drop)
        .unwrap()
        .unwrap();
    assert_eq!(report.losses, 2);
    assert_eq!(std::fs::read(&source).unwrap(), bytes);
    assert_whole(&Container::open(&target).unwrap());
    let e = Container::salvage(&source, &target, go_on, drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    let e = Container::salvage(&source, &source, go_on, drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    // Beside a writer nothing is judged.
    let other = folder.path().join("other.orth");
    let c = Container::create(&other).unwrap();
    let w = c.writer().unwrap();
    let e = Container::salvage(&other, folder.path().join("x"), go_on, drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy);
    drop(w);
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 3);
    for (bytes, kind) in [
        (Vec::new(), ErrorKind::NotContainer),
        (vec![7; 100_000], ErrorKind::NotContainer),
        (b"\x89ORT\r\n\x1a\n".to_vec(), ErrorKind::Corrupt),
    ] {
        std::fs::write(&source, bytes).unwrap();
        let e = Container::salvage(&source, folder.path().join("x"), go_on, drop).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
    }
}

#[test]
fn retained_snapshots_and_unknown_entries_are_told_and_private_ones_kept() {
    let raw = Raw::from_bytes(sample()).unwrap();
    let w = raw.writer().unwrap();
    w.retain("monday").unwrap();
    w.put(&[0x0C, 1], b"of a later version");
    w.put(&[0xE5, 1], b"private");
    w.commit().unwrap();
    let (c, _, losses) = salvage(raw.to_bytes().unwrap());
    let kinds: Vec<LossKind> = losses.iter().map(|l| l.kind).collect();
    assert_eq!(kinds, [LossKind::Entry, LossKind::Snapshot]);
    assert_whole(&c);
    let entries = Raw::from_bytes(c.to_bytes().unwrap())
        .unwrap()
        .entries()
        .unwrap();
    assert!(entries.iter().any(|e| e.content == b"private"));
}
