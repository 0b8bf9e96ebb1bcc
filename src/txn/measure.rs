//! Figures of the engine, printed. Run with `cargo test --release --lib -- --ignored --nocapture txn::measure`.

use std::time::Instant;

use crate::format::extent::Extent;
use crate::format::record::ChunkRecord;
use crate::format::{ObjectId, key};

use super::{Engine, EngineOptions, NewContainer};

#[test]
#[ignore = "a measurement: cargo test --release --lib -- --ignored --nocapture txn::measure"]
#[expect(
    clippy::too_many_lines,
    clippy::cast_precision_loss,
    reason = "one figure after the other, of one container"
)]
fn a_million_chunks_are_staged_committed_and_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("million.orth");
    let engine =
        Engine::create_at(&path, &NewContainer::default(), EngineOptions::default()).unwrap();
    let w = engine.writer().unwrap();
    let started = Instant::now();
    let record = |i: u64| ChunkRecord::Stored {
        extent: Extent {
            offset: 0x4000 + i * 8,
            len: 8,
            crc: 1,
        },
        mask: 0,
    };
    let mut i = 0;
    for a in 0..100 {
        for b in 0..100 {
            for c in 0..100 {
                w.put(
                    key::chunk(ObjectId(1), &[a, b, c], &[0, 1, 2]),
                    record(i).encode(),
                );
                i += 1;
            }
        }
    }
    let staged = started.elapsed();
    w.commit().unwrap();
    let whole = started.elapsed();
    let snapshot = engine.snapshot().unwrap();
    println!("1,000,000 puts {staged:?}, with commit and two syncs {whole:?}");
    println!(
        "{:.2} index bytes a chunk",
        snapshot.slot().live_index as f64 / 1e6
    );
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        i64::try_from((seed >> 33) % 100).unwrap()
    };
    for round in 0..2 {
        let started = Instant::now();
        for _ in 0..500_000 {
            let at = [random(), random(), random()];
            assert!(
                snapshot
                    .get(&key::chunk(ObjectId(1), &at, &[0, 1, 2]))
                    .unwrap()
                    .is_some()
            );
        }
        println!(
            "random lookup, round {round}: {:?}",
            started.elapsed() / 500_000
        );
    }
    let started = Instant::now();
    let mut cursor = snapshot.index_cursor(&[0x08], &[0x09]).unwrap();
    let mut count = 0;
    while cursor.key().is_some() {
        count += 1;
        cursor.advance().unwrap();
    }
    assert_eq!(count, 1_000_000);
    println!("cursor step {:?}", started.elapsed() / 1_000_000);
    w.put(
        key::chunk(ObjectId(1), &[5, 5, 5], &[0, 1, 2]),
        record(7).encode(),
    );
    let before = snapshot.committed_end();
    let started = Instant::now();
    w.commit().unwrap();
    let end = engine.snapshot().unwrap().committed_end();
    println!(
        "one chunk committed in {:?}, {} bytes",
        started.elapsed(),
        end - before
    );
    let started = Instant::now();
    let runs = 200;
    for _ in 0..runs {
        let e = Engine::open_at(&path, EngineOptions::default()).unwrap();
        e.snapshot()
            .unwrap()
            .get(&key::chunk(ObjectId(1), &[50, 50, 50], &[0, 1, 2]))
            .unwrap();
    }
    println!("open and first lookup {:?}", started.elapsed() / runs);
}
