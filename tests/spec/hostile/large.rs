//! Hostile files that are large, or claim to be: their work is linear, and nothing is held that nobody asked for.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use orthant::{CheckLevel, Container, Elements, ErrorKind, OpenOptions, Region, region};

use crate::heap::peak_of;
use crate::hostile::cases::{BAD, with};
use crate::hostile::forge::{GROUP, RAW, array_document, child, chunk_key, inline, key};
use crate::support::within;

/// Runs `f` on a file; it takes less than that long, and at most 64 MiB and four times the file.
fn bounded<T>(what: &str, bytes: &[u8], longest: Duration, f: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let (done, peak) = peak_of(f);
    let took = started.elapsed();
    println!(
        "{what}: {} bytes, {took:?}, {peak} bytes of memory",
        bytes.len()
    );
    assert!(took < longest, "{what}: {took:?}");
    assert!(peak <= (64 << 20) + 4 * bytes.len(), "{what}: {peak}");
    done
}

fn untrusted(bytes: &[u8]) -> Container {
    OpenOptions::untrusted().from_bytes(bytes.to_vec()).unwrap()
}

#[test]
fn a_million_nested_groups_end_at_the_limit_of_depth() {
    let bytes = with(|_, entries| {
        for id in 10..1_000_010 {
            let parent = if id == 10 { 0 } else { id - 1 };
            entries.extend([child(parent, "g", id, 1)]);
        }
    });
    let c = untrusted(&bytes);
    let seen = bounded("nested", &bytes, Duration::from_secs(1), || {
        let mut seen = 0;
        for member in c.snapshot().unwrap().walk().unwrap() {
            match member {
                Ok(_) => seen += 1,
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
                    return seen;
                }
            }
        }
        panic!("a walk of a million levels");
    });
    assert!(seen <= 131, "{seen}");
    // The two arrays beside them are as they were.
    let good = c.snapshot().unwrap().dyn_array("good").unwrap();
    assert!(good.read(Region::all()).is_ok());
}

#[test]
fn a_million_siblings_are_listed_one_by_one() {
    let bytes = with(|_, entries| {
        for id in 10..1_000_010_i64 {
            entries.extend([child(0, &format!("g{id}"), id, 1)]);
        }
    });
    let c = untrusted(&bytes);
    let snapshot = c.snapshot().unwrap();
    let started = Instant::now();
    let first = snapshot.walk().unwrap().next().unwrap().unwrap();
    let took = started.elapsed();
    assert_eq!(first.path.trim_start_matches('/'), "bad");
    assert!(took < within(Duration::from_millis(10)), "{took:?}");
    let (count, peak) = peak_of(|| snapshot.walk().unwrap().take(500_000).flatten().count());
    assert_eq!(count, 500_000);
    assert!(peak < 64 << 20, "{peak}");
}

#[test]
fn a_hundred_thousand_chunks_of_the_same_ten_megabytes_are_no_bomb() {
    let chunks = 100_000_i64;
    let chunk = 10 << 20;
    let domain = [(0, chunks * chunk)];
    let bytes = with(|forge, entries| {
        let document = array_document("\"uint8\"", "0", &domain, &format!("[{chunk}]"), RAW);
        entries.insert(key(2, BAD, &[]), inline(&document));
        let place = forge.put(&vec![7; usize::try_from(chunk).unwrap()]);
        for c in 0..chunks {
            entries.insert(chunk_key(BAD, &[c]), place.record());
        }
    });
    let c = untrusted(&bytes);
    let array = c.snapshot().unwrap().dyn_array("bad").unwrap();
    bounded("shared", &bytes, Duration::from_secs(1), || {
        let e = array.read(Region::all()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
        let Elements::Fixed(one) = array
            .read(region![chunk * 5..chunk * 5 + 1])
            .unwrap()
            .elements
        else {
            panic!("bytes")
        };
        assert_eq!(one, [7]);
    });
    // A check tells the overlap, and can be ended at any time.
    let mut overlaps = 0;
    let mut left = 10;
    let snapshot = c.snapshot().unwrap();
    let stop = |_, _| {
        left -= 1;
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    snapshot
        .check(CheckLevel::Full, stop, |p| {
            overlaps += u64::from(p.invariant == 11)
        })
        .unwrap();
    assert_eq!(overlaps, 99_999);
    // A salvage writes no byte twice.
    let mut losses = 0_u64;
    let (made, report) = Container::salvage_bytes(bytes.clone(), |_| losses += 1).unwrap();
    assert!(made.len() <= bytes.len());
    assert_eq!((report.losses, losses), (99_999, 99_999));
}

#[test]
fn seventy_thousand_attributes_are_a_limit_and_the_elements_are_there() {
    let bytes = with(|_, entries| {
        for i in 0..70_000 {
            entries.insert(key(3, BAD, format!("a{i}").as_bytes()), inline("1"));
        }
    });
    let c = Container::from_bytes(bytes.clone()).unwrap();
    let array = c.snapshot().unwrap().dyn_array("bad").unwrap();
    bounded("attributes", &bytes, Duration::from_secs(1), || {
        let e = array.attributes().list().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
        assert!(array.attributes().get("a5").unwrap().is_some());
        assert!(array.read(Region::all()).is_ok());
    });
}

#[test]
fn a_hundred_thousand_groups_in_circles_are_salvaged_in_linear_time() {
    let count = 100_000_i64;
    let bytes = with(|_, entries| {
        for id in 10..10 + count {
            entries.insert(key(2, id, &[]), inline(GROUP));
            // Each holds itself, and nothing leads to it.
            entries.extend([child(id, "self", id, 1)]);
        }
    });
    let started = Instant::now();
    let (made, report) = Container::salvage_bytes(bytes, drop).unwrap();
    assert!(started.elapsed() < within(Duration::from_millis(500)));
    assert_eq!(report.objects, 4 + count.unsigned_abs());
    assert!(Container::from_bytes(made).is_ok());
}
