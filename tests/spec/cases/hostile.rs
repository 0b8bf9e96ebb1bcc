//! Area M: damaged and hostile files whose checksums are right.

use std::time::Duration;

use orthant::testing::Raw;
use orthant::{ArraySpec, Container, ErrorKind, ObjectKind, Region, region};

use crate::medium::{fresh, held};
use crate::support::{problems, timed, within};

/// Rewrites one entry of the index, checksums kept right.
fn forged(c: &Container, changes: &[(Vec<u8>, Vec<u8>)]) -> Container {
    let raw = Raw::from_bytes(c.to_bytes().unwrap()).unwrap();
    let w = raw.writer().unwrap();
    for (key, value) in changes {
        w.put(key, value);
    }
    w.commit().unwrap();
    held(raw.to_bytes().unwrap()).unwrap()
}

/// A number below 65,656 as keys spell it: one byte, or a length and the rest with its highest byte first.
fn vint(v: u32) -> Vec<u8> {
    let byte = |v: u32| u8::try_from(v & 0xFF).unwrap();
    match v {
        0..120 => vec![byte(v + 128)],
        120..376 => vec![0xF8, byte(v - 120)],
        _ => vec![0xF9, byte((v - 120) >> 8), byte(v - 120)],
    }
}

fn child_entry(parent: u32, name: &str, id: u32, kind: u8) -> (Vec<u8>, Vec<u8>) {
    (
        [&[0x01][..], &vint(parent), name.as_bytes()].concat(),
        [vint(id), vec![kind]].concat(),
    )
}

fn walked(c: &Container) -> (usize, Option<orthant::Error>) {
    let s = c.snapshot().unwrap();
    let mut n = 0;
    for m in s.walk().unwrap() {
        match m {
            Ok(_) => n += 1,
            Err(e) => return (n, Some(e)),
        }
        assert!(n < 1_000_000, "a walk without an end");
    }
    (n, None)
}

/// A node cannot be its own child, nor its parent's parent: levels fall by one at each step, which is checked before a
/// node is entered (`refuse_level` among the golden files).
#[test]
fn c115_groups_that_contain_themselves_end_in_an_error() {
    let c = fresh();
    let w = c.writer().unwrap();
    w.create_group("g/h").unwrap();
    w.commit().unwrap();
    // The group lists itself; the child lists its parent.
    for (parent, id) in [(1, 1), (2, 1)] {
        let c = forged(&c, &[child_entry(parent, "again", id, 1)]);
        let ((_, e), took) = timed(|| walked(&c));
        let e = e.expect("a cycle is no tree");
        assert!(
            matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::LimitExceeded),
            "{e}"
        );
        assert!(took < within(Duration::from_millis(100)), "{took:?}");
        assert!(!problems(&c).is_empty());
        // What the cycle does not touch is still there.
        assert!(c.snapshot().unwrap().group("g/h").is_ok());
    }
}

#[test]
fn c115_a_chain_of_ten_thousand_groups_ends_at_the_limit_of_depth() {
    let c = fresh();
    let w = c.writer().unwrap();
    for i in 0..10_000 {
        w.create_group(&format!("g{i}")).unwrap();
    }
    w.commit().unwrap();
    let chain: Vec<_> = (1..10_000)
        .map(|id| child_entry(id, "deeper", id + 1, 1))
        .collect();
    let c = forged(&c, &chain);
    let (e, took) = timed(|| {
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || walked(&c).1.expect("deeper than any path"))
            .unwrap()
            .join()
            .unwrap()
    });
    assert!(
        matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::LimitExceeded),
        "{e}"
    );
    assert!(took < within(Duration::from_millis(100)), "{took:?}");
}

#[test]
fn c115_slots_that_name_each_others_root_are_refused() {
    let c = fresh();
    let w = c.writer().unwrap();
    w.create_group("g").unwrap();
    w.commit().unwrap();
    let mut bytes = c.to_bytes().unwrap();
    // Root reference and level.
    for i in 32..57 {
        bytes.swap(0x1000 + i, 0x2000 + i);
    }
    for at in [0x1000, 0x2000] {
        let crc = crc32c::crc32c(&bytes[at..at + 252]);
        bytes[at + 252..at + 256].copy_from_slice(&crc.to_le_bytes());
    }
    let e = held(bytes).unwrap_err();
    assert!(e.is_corruption(), "{e}");
}

#[test]
fn c119_absurd_documents_are_corrupt_and_their_neighbours_usable() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![0..6, 0..4]).chunks([3, 2]);
    for name in ["bad", "good"] {
        let a = w.create_array(name, spec.clone()).unwrap();
        a.write_scalar(Region::all(), 7).unwrap();
    }
    let sharded = ArraySpec::<i32>::new(region![0..8]).chunks([2]).shards([8]);
    w.create_array("shards", sharded).unwrap();
    w.commit().unwrap();
    let raw = Raw::from_bytes(c.to_bytes().unwrap()).unwrap();
    let document = |id: u32| {
        let key = [&[0x02][..], &vint(id)].concat();
        let entry = raw.entries().unwrap().into_iter().find(|e| e.key == key);
        String::from_utf8(entry.unwrap().content[2..].to_vec()).unwrap()
    };
    let (plain, shards) = (document(1), document(3));
    for (id, name, from, to) in [
        (1, "bad", "\"chunk_shape\":[3,2]", "\"chunk_shape\":[0,2]"),
        (1, "bad", "\"chunk_shape\":[3,2]", "\"chunk_shape\":[3]"),
        (1, "bad", "\"chunk_shape\":[3,2]", "\"chunk_shape\":[-3,2]"),
        (1, "bad", "\"origin\":[0,0]", "\"origin\":[0]"),
        (
            1,
            "bad",
            "\"domain\":[[0,6],[0,4]]",
            "\"domain\":[[6,0],[0,4]]",
        ),
        (1, "bad", "\"domain\":[[0,6],[0,4]]", "\"domain\":[[0,6]]"),
        (1, "bad", "\"shape\":[6,4]", "\"shape\":[6,4,1]"),
        (1, "bad", "\"shape\":[6,4]", "\"shape\":[7,4]"),
        (1, "bad", "\"int32\"", "\"int31\""),
        (1, "bad", "\"fill_value\":0", "\"fill_value\":4294967296"),
        (1, "bad", "\"fill_value\":0", "\"fill_value\":0.5"),
        (1, "bad", "\"key_order\":[0,1]", "\"key_order\":[0,0]"),
        (1, "bad", "\"name\":\"bytes\"", "\"name\":\"nothing\""),
        (3, "shards", "\"chunk_shape\":[2]", "\"chunk_shape\":[16]"),
        (3, "shards", "\"chunk_shape\":[2]", "\"chunk_shape\":[3]"),
        (3, "shards", "\"chunk_shape\":[2]", "\"chunk_shape\":[0]"),
    ] {
        let text = if id == 1 { &plain } else { &shards };
        assert!(text.contains(from), "{text} lacks {from}");
        let value = [&[0, 0][..], text.replacen(from, to, 1).as_bytes()].concat();
        let c = forged(&c, &[([&[0x02][..], &vint(id)].concat(), value)]);
        let s = c.snapshot().unwrap();
        let e = s
            .dyn_array(name)
            .and_then(|a| a.read(Region::all()))
            .unwrap_err();
        assert!(
            matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
            "{to}: {e}"
        );
        assert!(e.to_string().contains(name), "{to}: {e}");
        let good = s.array::<i32>("good").unwrap();
        assert_eq!(good.read_vec(Region::all()).unwrap(), [7; 24]);
        assert_eq!(s.root().kind(name).unwrap(), Some(ObjectKind::Array));
        assert!(!problems(&c).is_empty(), "{to}");
    }
    // An empty list of codecs.
    let at = plain.find("\"codecs\":[").unwrap() + 10;
    let end = at + plain[at..].find("],\"").unwrap();
    let empty = format!("{}{}", &plain[..at], &plain[end..]);
    let value = [&[0, 0][..], empty.as_bytes()].concat();
    let c = forged(&c, &[([&[0x02][..], &vint(1)].concat(), value)]);
    let e = c.snapshot().unwrap().dyn_array("bad").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert!(e.to_string().contains("codec"), "{e}");
}

/// No codec sees the element of a constant chunk, so the rule that a boolean is 0 or 1 has to hold there by itself.
#[test]
fn a_constant_chunk_of_a_boolean_that_is_neither_is_refused() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<bool>::new(region![0..4]).chunks([4]);
    w.create_array("a", spec).unwrap();
    w.commit().unwrap();
    for (byte, right) in [(0, true), (1, true), (2, false), (255, false)] {
        let mut record = vec![0_u8; 20];
        record[0] = byte;
        record[16] = 2;
        // Tag, array 1, chunk 0.
        let forged = forged(&c, &[(vec![0x08, 129, 128], record)]);
        let a = forged.snapshot().unwrap().array::<bool>("a").unwrap();
        match a.read_vec(Region::all()) {
            Ok(read) => assert!(right && read == [byte == 1; 4], "{byte}: {read:?}"),
            Err(e) => assert!(!right && e.is_corruption(), "{byte}: {e}"),
        }
    }
}
