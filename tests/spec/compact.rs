//! Compaction, copies and archives: small, whole, decoded by nobody, and never half there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orthant::testing::{Raw, RawEntry};
use orthant::{
    ArchiveOptions, ArraySpec, CheckLevel, Codec, Container, CopyOptions, CopyReport, ErrorKind,
    OpenOptions, Snapshot, Writer, region,
};

use crate::crash::{NAME, change, content, name};
use crate::disk::{Disk, EIO, ENOSPC, Fault, Op, Random, Sabotage};
use crate::medium::{fresh, held};
use crate::platter::Platter;
use crate::support::{child, child_work, coords, scratch, verify, within};

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn compacted(path: &Path) -> CopyReport {
    let c = Container::open(path).unwrap();
    c.compact(CopyOptions::new(), go_on).unwrap().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

/// Makes the array that [`change`] puts chunks into, which a check asks for.
fn with_array(raw: &Raw) {
    let w = raw.container().writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![-2..3, 0..4]).chunks([1, 1]);
    w.create_array("a", spec).unwrap();
    w.commit().unwrap();
}

/// A container with much dead space: several arrays, overwritten, grown to the negative side, sparse.
fn churned(path: &Path) -> Container {
    let c = Container::create(path).unwrap();
    let w = c.writer().unwrap();
    let a = w
        .create_array(
            "model/temp",
            ArraySpec::<i32>::new(region![-40..40, 0..64])
                .chunks([8, 16])
                .codecs([Codec::shuffle(), Codec::zstd(3)]),
        )
        .unwrap();
    a.attributes().set("units", "K").unwrap();
    a.attributes().set("long", "x".repeat(5000)).unwrap();
    let sparse = ArraySpec::<f64>::new(region![-1_000_000..1_000_000, -1_000_000..1_000_000])
        .chunks([32, 32])
        .codecs(Codec::raw_profile());
    let sparse = w.create_array("sparse", sparse).unwrap();
    let mut random = Random::new(3);
    for round in 0..12_i32 {
        let data: Vec<i32> = (0..80 * 64)
            .map(|i| (random.next() & 0xFFF) as i32 * round + i)
            .collect();
        a.write_slice(region![.., ..], &data).unwrap();
        let at = i64::from(round) * 5000 - 30_000;
        sparse
            .write_slice(region![at..at + 3, at], &[1.0, 2.0, 3.0])
            .unwrap();
        w.message(&format!("round {round}")).unwrap();
        w.commit().unwrap();
    }
    a.grow(0, 8, 0).unwrap();
    a.write_scalar(region![-48..-40, ..], 7).unwrap();
    w.message("to the negative side").unwrap();
    w.commit().unwrap();
    drop(w);
    c
}

/// Size and decodes.
#[test]
fn a_compacted_file_is_as_long_as_what_lives_and_its_index() {
    let (_folder, path) = scratch("a.orth");
    let c = churned(&path);
    let before = c.snapshot().unwrap();
    let live = before.statistics().unwrap();
    let entries = Raw::open_at(&path).unwrap().entries().unwrap();
    let report = compacted(&path);
    let after = Container::open(&path).unwrap();
    let file_len = std::fs::metadata(&path).unwrap().len();
    let index = after
        .snapshot()
        .unwrap()
        .statistics()
        .unwrap()
        .live_index_bytes;
    let bound = (live.live_payload_bytes as f64 * 1.02) as u64 + index + 0x3000 + 208;
    println!(
        "{} bytes to {} bytes, {} live, index {index}",
        report.bytes_in, report.bytes_out, live.live_payload_bytes
    );
    assert_eq!(file_len, report.bytes_out);
    assert!(file_len <= bound, "{file_len} bytes, at most {bound}");
    assert!(index <= live.live_index_bytes);
    verify(&after);
    let snapshot = after.snapshot().unwrap();
    assert_eq!(snapshot.generation(), before.generation() + 2);
    assert_eq!(Raw::open_at(&path).unwrap().entries().unwrap(), entries);
    // Sparse stays sparse.
    assert_eq!(coords(&snapshot.dyn_array("sparse").unwrap()).len(), 12);
    assert_eq!(
        snapshot.content_time().unwrap(),
        before.content_time().unwrap()
    );
}

/// Nothing in it can be decoded, so nobody did.
#[test]
fn payloads_pass_through_compaction_copy_and_archive_without_a_decode() {
    let (folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![0..40])
        .chunks([10])
        .codecs([Codec::zstd(3)]);
    w.create_array("a", spec).unwrap();
    let a = w.dyn_array("a").unwrap();
    let garbage = |i: u8| vec![i ^ 0x5A; 100 + usize::from(i)];
    for i in 0..4_u8 {
        a.put_encoded_chunk_unchecked(&[i.into()], &garbage(i))
            .unwrap();
    }
    w.commit().unwrap();
    drop(w);
    let s = c.snapshot().unwrap();
    s.copy_to(folder.path().join("copy.orth"), CopyOptions::new(), go_on)
        .unwrap();
    s.archive_to(
        folder.path().join("archive.orth"),
        ArchiveOptions::new([1; 16]),
        go_on,
    )
    .unwrap();
    compacted(&path);
    for name in ["a.orth", "copy.orth", "archive.orth"] {
        let c = Container::open(folder.path().join(name)).unwrap();
        let a = c.snapshot().unwrap().dyn_array("a").unwrap();
        for i in 0..4_u8 {
            assert_eq!(a.encoded_chunk(&[i.into()]).unwrap().unwrap(), garbage(i));
        }
        let e = a.read(region![0..10]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{name}");
    }
}

#[test]
fn the_index_lies_before_all_payloads_and_the_front_holds_its_upper_part() {
    let (_folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let a = w
        .create_array(
            "a",
            ArraySpec::<u8>::new(region![0..20_000])
                .chunks([1])
                .codecs(Codec::raw_profile()),
        )
        .unwrap();
    a.write_slice(region![..], &vec![7; 20_000]).unwrap();
    w.commit().unwrap();
    drop(w);
    compacted(&path);
    let bytes = std::fs::read(&path).unwrap();
    let c = Container::open(&path).unwrap();
    let s = c.snapshot().unwrap();
    let statistics = s.statistics().unwrap();
    let first = s
        .dyn_array("a")
        .unwrap()
        .chunk_extents(region![..])
        .unwrap()[0]
        .offset;
    let index_end = 0x3000 + 208 + statistics.node_bytes;
    assert!(first >= index_end, "{first}");
    let front = u64::from_le_bytes(bytes[64..72].try_into().unwrap());
    // The catalog's leaf, the root; 20,000 entries need many leaves, which lie behind.
    assert!(front > 0x3000 + 208 && front < 0x3000 + 3 * 8192, "{front}");
    assert_eq!(statistics.depth, 2);
    // Both slots say that the layout is as compaction left it; the next commit says so no more.
    assert_eq!((bytes[0x1000 + 58] & 1, bytes[0x2000 + 58] & 1), (1, 1));
    let w = c.writer().unwrap();
    let generation = w.commit().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let slot = 0x1000 + 0x1000 * usize::try_from(generation % 2).unwrap();
    assert_eq!(bytes[slot + 58] & 1, 0);
}

#[test]
fn handles_on_the_old_file_read_on_and_write_no_more() {
    let (_folder, path) = scratch("a.orth");
    let c = churned(&path);
    let reader = Container::open_read_only(&path).unwrap();
    let old = reader.snapshot().unwrap();
    let values = old
        .array::<i32>("model/temp")
        .unwrap()
        .read_vec(region![.., ..])
        .unwrap();
    let uuid = |path: &Path| std::fs::read(path).unwrap()[16..32].to_vec();
    let before = uuid(&path);
    // A writer in the way: nothing happens.
    let w = c.writer().unwrap();
    let e = Container::open(&path)
        .unwrap()
        .compact(CopyOptions::new(), go_on)
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy);
    drop(w);
    compacted(&path);
    assert_ne!(uuid(&path), before);
    assert_eq!(std::fs::read(&path).unwrap()[96..112], before, "the parent");
    let again = old
        .array::<i32>("model/temp")
        .unwrap()
        .read_vec(region![.., ..])
        .unwrap();
    assert_eq!(again, values);
    for handle in [&c, &reader] {
        assert_eq!(handle.latest().unwrap_err().kind(), ErrorKind::Replaced);
        handle.snapshot().unwrap();
    }
    assert_eq!(c.writer().unwrap_err().kind(), ErrorKind::Replaced);
    assert_eq!(
        c.compact(CopyOptions::new(), go_on).unwrap_err().kind(),
        ErrorKind::Replaced
    );
    let new = Container::open(&path).unwrap();
    let values_now = new.snapshot().unwrap().array::<i32>("model/temp").unwrap();
    assert_eq!(values_now.read_vec(region![.., ..]).unwrap(), values);
    new.writer().unwrap().commit().unwrap();
}

/// A writer that had the file open before, as it would be without locks, stops before its slot.
#[test]
fn a_writer_whose_file_was_replaced_stops_before_its_slot() {
    let disk = Disk::new(Sabotage::None);
    let raw = Raw::create(disk.folder(), name()).unwrap();
    with_array(&raw);
    let w = raw.writer().unwrap();
    w.put_chunk(1, &[0, 0], b"one").unwrap();
    w.commit().unwrap();
    let other = Raw::open(disk.folder(), name()).unwrap();
    w.put_chunk(1, &[0, 1], b"two").unwrap();
    // This process's table of writers is by file, so the compactor gets a file of its own number.
    let copy = other.container().snapshot().unwrap();
    let bytes = copy.copy_to_bytes(CopyOptions::new()).unwrap();
    disk.replace_by_hand(name(), bytes);
    let e = w.commit().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Replaced);
    assert_eq!(w.commit().unwrap_err().kind(), ErrorKind::Replaced);
}

#[test]
fn links_are_followed_or_refused_and_permissions_stay() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let (folder, path) = scratch("real/a.orth");
    std::fs::create_dir(folder.path().join("real")).unwrap();
    drop(churned(&path));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.orth");
    symlink("real/a.orth", &link).unwrap();
    let before = std::fs::metadata(&path).unwrap().ino();
    compacted(&link);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let now = std::fs::metadata(&path).unwrap();
    assert_ne!(now.ino(), before);
    assert_eq!(now.permissions().mode() & 0o777, 0o640);
    assert_eq!(names(path.parent().unwrap()), ["a.orth"]);
    std::fs::hard_link(&path, folder.path().join("second.orth")).unwrap();
    let e = Container::open(&path)
        .unwrap()
        .compact(CopyOptions::new(), go_on)
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("hard link"), "{e}");
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), now.ino());
}

#[test]
fn a_damaged_source_is_refused_and_stays() {
    let (folder, path) = scratch("a.orth");
    let c = churned(&path);
    let extent = c.snapshot().unwrap().dyn_array("model/temp").unwrap();
    let at = extent.chunk_extents(region![.., ..]).unwrap()[3].clone();
    drop(c);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(at.offset).unwrap() + 5] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let c = Container::open(&path).unwrap();
    let e = c.compact(CopyOptions::new(), go_on).unwrap_err();
    assert_eq!(
        (e.kind(), e.offset()),
        (ErrorKind::Corrupt, Some(at.offset))
    );
    let s = c.snapshot().unwrap();
    assert!(
        s.copy_to_bytes(CopyOptions::new())
            .unwrap_err()
            .is_corruption()
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(names(folder.path()), ["a.orth"]);
}

#[test]
fn a_stopped_compaction_or_copy_changes_nothing() {
    let (folder, path) = scratch("a.orth");
    let c = churned(&path);
    let bytes = std::fs::read(&path).unwrap();
    let mut calls = 0;
    loop {
        let mut left = calls;
        let stop = |_: u64, _: u64| {
            left -= 1;
            if left < 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        if calls > 40 {
            break;
        }
        assert_eq!(c.compact(CopyOptions::new(), stop).unwrap(), None);
        assert_eq!(names(folder.path()), ["a.orth"]);
        calls += 13;
    }
    let stop = |_, _| ControlFlow::Break(());
    let s = c.snapshot().unwrap();
    let out = folder.path().join("b.orth");
    assert_eq!(s.copy_to(&out, CopyOptions::new(), stop).unwrap(), None);
    assert_eq!(
        s.archive_to(&out, ArchiveOptions::new([0; 16]), stop)
            .unwrap(),
        None
    );
    assert_eq!(names(folder.path()), ["a.orth"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_copy_is_not_made_over_a_file_unless_asked_and_never_over_its_source() {
    let (folder, path) = scratch("a.orth");
    let c = churned(&path);
    let s = c.snapshot().unwrap();
    let out = folder.path().join("b.orth");
    std::fs::write(&out, b"theirs").unwrap();
    let e = s.copy_to(&out, CopyOptions::new(), go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&out).unwrap(), b"theirs");
    s.copy_to(&out, CopyOptions::new().overwrite(true), go_on)
        .unwrap()
        .unwrap();
    verify(&Container::open(&out).unwrap());
    let bytes = std::fs::read(&path).unwrap();
    for target in [
        &path,
        &folder.path().join("link.orth"),
        &folder.path().join("hard.orth"),
    ] {
        if !target.exists() && target.ends_with("link.orth") {
            std::os::unix::fs::symlink(&path, target).unwrap();
        } else if !target.exists() {
            std::fs::hard_link(&path, target).unwrap();
        }
        let e = s
            .copy_to(target, CopyOptions::new().overwrite(true), go_on)
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{target:?}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn in_memory_there_is_nothing_to_replace_and_bytes_to_copy_to() {
    let c = Container::in_memory().unwrap();
    let e = c.compact(CopyOptions::new(), go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let bytes = c
        .snapshot()
        .unwrap()
        .copy_to_bytes(CopyOptions::new())
        .unwrap();
    let copy = held(bytes).unwrap();
    verify(&copy);
    assert_eq!(copy.snapshot().unwrap().generation(), 4);
}

/// The same content, written in the order that `seed` gives, with or without detours.
fn written(seed: u64, detours: bool) -> Container {
    let mut random = Random::new(seed);
    let c = fresh();
    let w = c.writer().unwrap();
    let mut paths = vec!["b/x", "a", "b/y/z", "c"];
    for i in (1..paths.len()).rev() {
        paths.swap(i, random.below(i + 1));
    }
    for path in paths {
        if detours {
            w.create_group(&format!("gone{}", random.below(1 << 30)))
                .unwrap();
            w.commit().unwrap();
        }
        let spec = ArraySpec::<i32>::new(region![-8..24, 0..20]).chunks([8, 10]);
        let spec = if path == "a" {
            spec.shards([16, 20])
        } else {
            spec
        };
        let array = w.create_array(path, spec).unwrap();
        let mut rows: Vec<i64> = (-8..24).collect();
        for i in (1..rows.len()).rev() {
            rows.swap(i, random.below(i + 1));
        }
        for row in rows {
            if detours && random.below(3) == 0 {
                array.write_scalar(region![row, ..], -9).unwrap();
            }
            // One chunk row stays unwritten.
            if !(8..16).contains(&row) {
                let data: Vec<i32> = (0..20).map(|i| i * i32::try_from(row).unwrap()).collect();
                array.write_slice(region![row..row + 1, ..], &data).unwrap();
            } else if detours {
                array.erase(region![8..16, ..]).unwrap();
            }
            if detours && random.below(6) == 0 {
                w.commit().unwrap();
            }
        }
        let mut attributes = vec!["units", "name", "long"];
        if random.below(2) == 0 {
            attributes.reverse();
        }
        for name in attributes {
            array
                .attributes()
                .set(name, name.repeat(if name == "long" { 999 } else { 1 }))
                .unwrap();
        }
    }
    w.root().attributes().set("title", "the same").unwrap();
    for member in w
        .root()
        .members()
        .unwrap()
        .map(Result::unwrap)
        .collect::<Vec<_>>()
    {
        if member.name.starts_with("gone") {
            w.remove(&member.path, true).unwrap();
        }
    }
    w.commit().unwrap();
    drop(w);
    c
}

/// One content has one archive.
#[test]
fn an_archive_is_a_function_of_content_identity_and_time_alone() {
    let options = ArchiveOptions::new(*b"0123456789abcdef").time(1_700_000_000_000_000_000);
    let archive = |c: &Container| c.snapshot().unwrap().archive_to_bytes(options).unwrap();
    let first = archive(&written(1, false));
    for seed in 2..8 {
        assert_eq!(
            archive(&written(seed, seed % 2 == 0)),
            first,
            "order {seed}"
        );
    }
    let c = held(first.clone()).unwrap();
    verify(&c);
    let s = c.snapshot().unwrap();
    assert_eq!(s.generation(), 2);
    assert_eq!(s.content_time().unwrap(), 1_700_000_000_000_000_000);
    // Of itself, too, and without being told the time.
    let again = ArchiveOptions::new(*b"0123456789abcdef");
    assert_eq!(s.archive_to_bytes(again).unwrap(), first);
    // Through a compacted copy, and a copy of that.
    let copy = held(s.copy_to_bytes(CopyOptions::new()).unwrap()).unwrap();
    assert_eq!(archive(&copy), first);
    // Other content, other bytes.
    let other = written(1, false);
    let w = other.writer().unwrap();
    w.array::<i32>("c")
        .unwrap()
        .write_scalar(region![0, 0], 5)
        .unwrap();
    w.commit().unwrap();
    assert_ne!(archive(&other), first);
    let raw = Raw::from_bytes(first).unwrap();
    assert!(raw.history().unwrap().is_empty());
    let tags: Vec<u8> = raw.entries().unwrap().iter().map(|e| e.key[0]).collect();
    assert!(tags.iter().all(|t| *t < 0x10), "{tags:?}");
}

#[test]
fn a_copy_keeps_history_and_private_entries_and_an_archive_does_not() {
    let raw = Raw::in_memory().unwrap();
    let w = raw.writer().unwrap();
    w.put(&[0xE5, 1], b"private");
    w.message("kept").unwrap();
    w.commit().unwrap();
    let s = raw.container().snapshot().unwrap();
    let copy = Raw::from_bytes(s.copy_to_bytes(CopyOptions::new()).unwrap()).unwrap();
    assert_eq!(copy.entries().unwrap(), raw.entries().unwrap());
    assert_eq!(copy.history().unwrap(), [(3, "kept".to_owned())]);
    assert_eq!(copy.generation().unwrap(), 5);
    let archive = s.archive_to_bytes(ArchiveOptions::new([9; 16])).unwrap();
    let archive = Raw::from_bytes(archive).unwrap();
    assert_eq!(archive.entries().unwrap().len(), 1);
    assert_eq!(archive.generation().unwrap(), 2);
}

#[test]
fn retained_snapshots_survive_compaction_and_share_what_they_shared() {
    let (folder, path) = scratch("a.orth");
    let raw = Raw::create_at(&path).unwrap();
    with_array(&raw);
    let mut random = Random::new(11);
    let mut kept: BTreeMap<u64, Vec<RawEntry>> = BTreeMap::new();
    for round in 0..20 {
        let w = raw.writer().unwrap();
        for _ in 0..30 {
            change(&w, &mut random);
        }
        w.commit().unwrap();
        drop(w);
        if round % 4 == 0 {
            kept.insert(raw.generation().unwrap(), logical(raw.entries().unwrap()));
            let w = raw.container().writer().unwrap();
            w.retain(&format!("round {round}")).unwrap();
            w.commit().unwrap();
        }
    }
    let now = logical(raw.entries().unwrap());
    let whole = raw.container().snapshot().unwrap();
    whole
        .copy_to(
            folder.path().join("all.orth"),
            CopyOptions::new().keep_snapshots(true),
            go_on,
        )
        .unwrap();
    whole
        .copy_to(folder.path().join("one.orth"), CopyOptions::new(), go_on)
        .unwrap();
    compacted(&path);
    for file in ["a.orth", "all.orth"] {
        let c = Raw::open_at(&folder.path().join(file)).unwrap();
        assert_eq!(logical(c.entries().unwrap()), now);
        let retained = c.retained_entries().unwrap();
        assert_eq!(retained.len(), kept.len(), "{file}");
        for (generation, entries) in retained {
            assert_eq!(
                Some(&logical(entries)),
                kept.get(&generation),
                "{generation}"
            );
        }
        full_check(&c.container());
    }
    let one = Raw::open_at(&folder.path().join("one.orth")).unwrap();
    assert_eq!(logical(one.entries().unwrap()), now);
    assert!(one.retained_entries().unwrap().is_empty());
    let len = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(len("one.orth") < len("a.orth"));
    assert_eq!(len("all.orth"), len("a.orth"));
}

/// All but what the payloads decode to: these do not.
fn full_check(c: &Container) {
    let level = CheckLevel::Full;
    let go_on = |_, _| ControlFlow::Continue(());
    let snapshot = c.snapshot().unwrap();
    snapshot.check(level, go_on, |p| panic!("{p:?}")).unwrap();
}

fn logical(mut entries: Vec<RawEntry>) -> Vec<RawEntry> {
    entries.retain(|e| !(0x10..0xE0).contains(&e.key[0]));
    entries
}

// -- crashes ---------------------------------------------------------------------------------------------------------

/// A few commits, a compaction, and a commit on the new file; what the name may lead to after each acknowledgement.
fn crash_workload(seed: u64, sabotage: Sabotage) -> (Disk, BTreeMap<u64, Vec<RawEntry>>) {
    let mut random = Random::new(seed);
    let disk = Disk::new(sabotage);
    let raw = Raw::create(disk.folder(), name()).unwrap();
    with_array(&raw);
    let mut model = BTreeMap::from([(3, content(&raw).unwrap())]);
    disk.acknowledge(3);
    let mut commit = |raw: &Raw| {
        let w = raw.writer().unwrap();
        for _ in 0..1 + random.below(6) {
            change(&w, &mut random);
        }
        let generation = w.commit().unwrap();
        disk.acknowledge(generation);
        model.insert(generation, content(raw).unwrap());
    };
    for _ in 0..3 {
        commit(&raw);
    }
    raw.container()
        .compact(CopyOptions::new(), go_on)
        .unwrap()
        .unwrap();
    let raw = Raw::open(disk.folder(), name()).unwrap();
    let generation = raw.generation().unwrap();
    let same = model.last_key_value().unwrap().1.clone();
    model.insert(generation, same);
    disk.acknowledge(generation);
    let w = raw.writer().unwrap();
    w.put_chunk(1, &[0, 0], b"after").unwrap();
    let last = w.commit().unwrap();
    disk.acknowledge(last);
    model.insert(last, content(&raw).unwrap());
    (disk, model)
}

/// Opens what a power cut at every point may have left. Gives how many images there were and why the first bad one is bad.
fn judge(disk: &Disk, model: &BTreeMap<u64, Vec<RawEntry>>, seed: u64) -> (u64, Option<String>) {
    let mut random = Random::new(seed);
    let mut platter = Platter::default();
    let (mut images, mut bad, mut last) = (0, None, 0);
    for (i, op) in disk.ops().iter().enumerate() {
        platter.take(op);
        if let Op::Acknowledged { generation } = op {
            last = *generation;
        }
        if last == 0 {
            continue;
        }
        platter.images(&mut random, 200, |image| {
            images += 1;
            let verdict = image
                .ok_or_else(|| "the name is gone".to_owned())
                .and_then(|image| whole(&image, last, model));
            if let Err(why) = verdict {
                bad.get_or_insert(format!("after call {i}: {why}"));
            }
        });
    }
    (images, bad)
}

/// The image holds what was acknowledged last, or what comes next.
fn whole(image: &[u8], last: u64, model: &BTreeMap<u64, Vec<RawEntry>>) -> Result<(), String> {
    let raw = Raw::from_bytes(image.to_vec()).map_err(|e| e.to_string())?;
    let generation = raw.generation().map_err(|e| e.to_string())?;
    let next = model.range(last + 1..).next().map(|(g, _)| *g);
    if generation != last && Some(generation) != next {
        return Err(format!("generation {generation}, not {last} or {next:?}"));
    }
    let found = content(&raw).map_err(|e| e.to_string())?;
    if Some(&found) != model.get(&generation) {
        return Err(format!("generation {generation} holds something else"));
    }
    Ok(())
}

#[test]
fn a_power_cut_during_compaction_leaves_the_old_file_or_the_new_one_whole() {
    let mut images = 0;
    for seed in 0..24 {
        let (disk, model) = crash_workload(seed, Sabotage::None);
        let (n, bad) = judge(&disk, &model, seed);
        assert_eq!(bad, None, "seed {seed}");
        images += n;
    }
    println!("{images} crash images around a compaction, 0 bad");
    assert!(images >= 1_000, "only {images} images");
}

#[test]
fn leaving_out_a_sync_of_compaction_is_noticed() {
    for sabotage in [Sabotage::WholeSync, Sabotage::FolderSync] {
        let noticed = (0..4).any(|seed| {
            let (disk, model) = crash_workload(seed, sabotage);
            judge(&disk, &model, seed).1.is_some()
        });
        assert!(noticed, "{sabotage:?}");
    }
}

#[test]
fn any_call_that_fails_during_compaction_leaves_the_old_file_or_the_new_one() {
    let mut injected = 0;
    for fault in [
        Fault::Errno(EIO),
        Fault::Errno(ENOSPC),
        Fault::Short(100, ENOSPC),
    ] {
        for call in 1.. {
            let disk = Disk::new(Sabotage::None);
            let raw = Raw::create(disk.folder(), name()).unwrap();
            with_array(&raw);
            let mut random = Random::new(4);
            let w = raw.writer().unwrap();
            for _ in 0..40 {
                change(&w, &mut random);
            }
            w.commit().unwrap();
            drop(w);
            let entries = raw.entries().unwrap();
            let before = disk.calls();
            disk.fail(call, fault, false);
            let done = raw.container().compact(CopyOptions::new(), go_on);
            let reached = disk.calls() - before >= call;
            disk.heal();
            let found = Raw::from_bytes(disk.contents(name()).unwrap()).unwrap();
            assert_eq!(found.entries().unwrap(), entries, "call {call}");
            assert_eq!(disk.names(), [NAME], "call {call}");
            if !reached {
                done.unwrap().unwrap();
                break;
            }
            injected += 1;
            let e = done.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Io, "call {call}: {e}");
            // The next try works, on whichever file it is.
            let raw = Raw::open(disk.folder(), name()).unwrap();
            raw.container()
                .compact(CopyOptions::new(), go_on)
                .unwrap()
                .unwrap();
        }
    }
    println!("{injected} failing calls injected into compactions");
    assert!(injected >= 9, "{injected}");
}

// -- copies beside a writer ------------------------------------------------------------------------------------------

/// Commits `number`, in every cell of `a` and, going down, of `b`.
fn numbered(w: &Writer, number: i64) {
    for (name, step) in [("a", 1), ("b", -1)] {
        let cells: Vec<i64> = (0..600).map(|i| number * 10_000 + i * step).collect();
        let array = w.array::<i64>(name).unwrap();
        array.write_slice(region![..], &cells).unwrap();
    }
    w.commit().unwrap();
}

/// Every cell of every array is the number of its commit, so a mixture shows.
#[test]
fn a_copy_beside_a_writer_of_a_thousand_commits_is_one_generation() {
    let (folder, path) = scratch("live.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    for name in ["a", "b"] {
        let spec = ArraySpec::<i64>::new(region![0..600])
            .chunks([50])
            .codecs([Codec::zstd(1)]);
        w.create_array(name, spec).unwrap();
    }
    let commit = |number: i64| numbered(&w, number);
    commit(0);
    let done = AtomicBool::new(false);
    let copies = std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..=1000).for_each(commit);
            done.store(true, Ordering::Release);
        });
        let reader = Container::open_read_only(&path).unwrap();
        let mut copies = 0;
        while !done.load(Ordering::Acquire) || copies == 0 {
            let s = reader.latest().unwrap();
            let out = folder.path().join(format!("copy{copies}.orth"));
            s.copy_to(&out, CopyOptions::new(), go_on).unwrap().unwrap();
            let copy = Container::open_read_only(&out).unwrap();
            verify(&copy);
            one_generation(&copy.snapshot().unwrap());
            assert_eq!(copy.snapshot().unwrap().generation(), s.generation() + 2);
            std::fs::remove_file(out).unwrap();
            copies += 1;
        }
        copies
    });
    let len = std::fs::metadata(&path).unwrap().len();
    println!("{copies} copies beside 1,000 commits, each one generation; the file has {len} bytes");
    // A commit writes some 16 KiB: had no space been reused, it would be 16 MiB.
    assert!(len < 4 << 20, "{len} bytes: space was not reused");
}

/// The bytes of a container that is being written, in memory and in a file, are those of one generation.
#[test]
fn bytes_taken_beside_a_writer_open_to_one_generation() {
    let (_folder, path) = scratch("live.orth");
    for c in [
        Container::in_memory().unwrap(),
        Container::create(&path).unwrap(),
    ] {
        let w = c.writer().unwrap();
        for name in ["a", "b"] {
            let spec = ArraySpec::<i64>::new(region![0..600]).chunks([50]);
            w.create_array(name, spec).unwrap();
        }
        let commit = |number: i64| numbered(&w, number);
        commit(0);
        // One who opened it before sees what is committed later.
        let reader = c.path().map(|p| Container::open_read_only(p).unwrap());
        let reader = reader.as_ref().unwrap_or(&c);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..=300).for_each(commit);
                done.store(true, Ordering::Release);
            });
            let mut taken = 0;
            while !done.load(Ordering::Acquire) || taken == 0 {
                match reader.to_bytes() {
                    Ok(bytes) => {
                        let copy = Container::from_bytes(bytes).unwrap();
                        assert!(!copy.report().fell_back);
                        verify(&copy);
                        one_generation(&copy.snapshot().unwrap());
                        taken += 1;
                    }
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Busy),
                }
            }
        });
    }
}

fn one_generation(s: &Snapshot) {
    let a = s.array::<i64>("a").unwrap().read_vec(region![..]).unwrap();
    let b = s.array::<i64>("b").unwrap().read_vec(region![..]).unwrap();
    let number = a[0] / 10_000;
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        let i = i64::try_from(i).unwrap();
        assert_eq!((*x, *y), (number * 10_000 + i, number * 10_000 - i));
    }
}

#[test]
fn a_temporary_of_a_killed_compaction_goes_with_the_next_writer() {
    let (folder, path) = scratch("a.orth");
    drop(churned(&path));
    std::fs::write(folder.path().join(".a.orth.tmp"), b"half a file").unwrap();
    Container::open_read_only(&path)
        .unwrap()
        .snapshot()
        .unwrap();
    assert_eq!(names(folder.path()), [".a.orth.tmp", "a.orth"]);
    Container::open(&path).unwrap().writer().unwrap();
    assert_eq!(names(folder.path()), ["a.orth"]);
}

#[test]
fn a_container_opened_for_reading_is_not_compacted() {
    let (_folder, path) = scratch("a.orth");
    drop(churned(&path));
    let c = OpenOptions::new().read_only(true).open(&path).unwrap();
    let e = c.compact(CopyOptions::new(), go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
}

// -- kills -----------------------------------------------------------------------------------------------------------

/// The other process of the test below: compacts one container over and over.
#[test]
fn another_process_compacts_for_ever() {
    let Some(path) = child_work() else { return };
    loop {
        compacted(&path);
    }
}

/// Beside a reader that holds a snapshot of the file as it was at first.
#[test]
fn a_compaction_killed_at_any_time_leaves_a_whole_file_that_the_next_one_compacts() {
    let (folder, path) = scratch("a.orth");
    let first = churned(&path).snapshot().unwrap();
    let values = |s: &Snapshot| {
        let a = s.array::<i32>("model/temp").unwrap();
        a.read_vec(region![.., ..]).unwrap()
    };
    let expected = values(&first);
    let mut random = Random::new(17);
    let (mut kills, mut last, mut temporaries) = (0, first.generation(), 0);
    for _ in 0..40 {
        let mut other = child("compact::another_process_compacts_for_ever", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Until it is at work: it has replaced the file at least once.
        let began = Instant::now();
        let generation = || {
            let c = Container::open_read_only(&path).unwrap();
            c.snapshot().unwrap().generation()
        };
        while generation() == last {
            assert!(
                began.elapsed() < within(Duration::from_secs(5)),
                "it does nothing"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.next() % 20_000));
        other.kill().unwrap();
        other.wait().unwrap();
        kills += 1;
        let c = Container::open(&path).unwrap();
        verify(&c);
        let s = c.snapshot().unwrap();
        assert!(s.generation() > last, "{} after {last}", s.generation());
        last = s.generation();
        assert_eq!(values(&s), expected);
        let mut left = names(folder.path());
        left.retain(|n| n != "a.orth");
        assert!(left.is_empty() || left == [".a.orth.tmp"], "{left:?}");
        temporaries += left.len();
    }
    assert_eq!(
        values(&first),
        expected,
        "the first file, for those who have it open"
    );
    let c = Container::open(&path).unwrap();
    drop(c.writer().unwrap());
    assert_eq!(names(folder.path()), ["a.orth"]);
    println!("{kills} compactions killed, {temporaries} temporaries left behind and taken away");
}
