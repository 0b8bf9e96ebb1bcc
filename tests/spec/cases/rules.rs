//! The nine rules that every case is judged by, one test each.

use orthant::{
    Array, ArraySpec, Block, Codec, Container, DataType, Elements, ErrorKind, Region, region,
};

use crate::disk::Random;
use crate::medium::fresh;
use crate::support::{array, coords, extents, reopened, scratch, verify, writer};

#[test]
fn rule_1_a_coordinate_is_a_name_and_not_a_count_from_an_end() {
    let w = writer();
    let a = array(&w, ArraySpec::<i64>::new(region![-7..5]).chunks([4]));
    a.write_slice(Region::all(), &(-7..5).collect::<Vec<_>>())
        .unwrap();
    for (lo, hi) in [(2, 0), (0, 3)] {
        a.grow(0, lo, hi).unwrap();
        for x in -7..5_i64 {
            assert_eq!(a.read_vec(region![x]).unwrap(), [x]);
        }
    }
    a.trim(0, 4, 0).unwrap();
    assert_eq!(a.domain().unwrap().range(0), Some(-5..8));
    assert_eq!(a.read_vec(region![-1]).unwrap(), [-1]);
}

#[test]
fn rule_2_a_cell_lies_in_the_chunk_of_floor_division_by_the_origin() {
    let far = (1_i64 << 62) - 2;
    for (origin, chunk) in [(0, 5), (-3, 5), (7, 1), (far - 10, 7), (-far, 1 << 20)] {
        for x in [-far, -6, -5, -1, 0, 4, 5, 1 << 40, far] {
            let w = writer();
            let spec = ArraySpec::<u8>::new(region![x..x + 1]);
            let a = array(&w, spec.chunks([chunk]).origin([origin]));
            a.write_scalar(Region::all(), 1).unwrap();
            let id = (i128::from(x) - i128::from(origin)).div_euclid(i128::from(chunk));
            match i64::try_from(id) {
                Ok(id) => assert_eq!(coords(&a), [[id]], "{x} from {origin} by {chunk}"),
                Err(_) => unreachable!("differences of two indexes fit"),
            }
        }
    }
}

#[test]
fn rule_3_a_cell_holds_the_bits_last_committed_else_those_of_the_fill() {
    let c = fresh();
    let w = c.writer().unwrap();
    let fill = f32::from_bits(0x7FC0_1234);
    let a = array(
        &w,
        ArraySpec::<f32>::new(region![0..6]).chunks([4]).fill(fill),
    );
    let quiet = f32::from_bits(0xFFC0_0001);
    a.write_scalar(region![1], quiet).unwrap();
    a.write_scalar(region![2], -0.0).unwrap();
    w.commit().unwrap();
    a.write_scalar(region![1], 9.0).unwrap();
    w.abort();
    let a = reopened(&c).snapshot().unwrap().array::<f32>("a").unwrap();
    let bits: Vec<u32> = a
        .read_vec(Region::all())
        .unwrap()
        .iter()
        .map(|v| v.to_bits())
        .collect();
    let fill = fill.to_bits();
    assert_eq!(bits, [fill, 0xFFC0_0001, 0x8000_0000, fill, fill, fill]);
}

#[test]
fn rule_4_outside_the_domain_there_is_nothing() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<i16>::new(region![-4..4, 0..3])
            .chunks([3, 2])
            .fill(-1),
    );
    a.write_scalar(Region::all(), 6).unwrap();
    a.set_domain(region![-1..2, 1..2]).unwrap();
    // No stored element outside the domain is anything but fill.
    for coord in coords(&a) {
        let cells = a.read_chunk(&coord).unwrap().unwrap();
        for (i, v) in cells.iter().enumerate() {
            let x = coord[0] * 3 + (i / 2) as i64;
            let y = coord[1] * 2 + (i % 2) as i64;
            let inside = (-1..2).contains(&x) && y == 1;
            assert_eq!(*v, if inside { 6 } else { -1 }, "({x}, {y})");
        }
    }
    a.set_domain(region![-4..4, 0..3]).unwrap();
    let cells = a.read_vec(Region::all()).unwrap();
    assert_eq!(cells.iter().filter(|v| **v == 6).count(), 3);
    assert_eq!(cells.iter().filter(|v| **v == -1).count(), 21);
}

#[test]
fn rule_5_layout_never_shows() {
    let mut random = Random::new(5);
    let cells: Vec<i32> = (0..11 * 9)
        .map(|_| i32::try_from(random.below(5)).unwrap())
        .collect();
    let mut answers = Vec::new();
    for (chunks, origin, codecs, shards) in [
        (vec![11, 9], vec![0, 0], "raw", None),
        (vec![1, 1], vec![0, 0], "raw", None),
        (vec![3, 4], vec![-2, 5], "default", None),
        (
            vec![4, 2],
            vec![7, -7],
            "transpose:1-0,delta,shuffle,zlib:9,crc32c",
            None,
        ),
        (vec![2, 2], vec![1, 1], "portable", Some(vec![6, 4])),
        (vec![100, 1], vec![3, 0], "lz4", None),
    ] {
        for commits in [1, 4] {
            let c = fresh();
            let w = c.writer().unwrap();
            let codecs = match codecs {
                "transpose:1-0,delta,shuffle,zlib:9,crc32c" => vec![
                    Codec::transpose([1, 0]),
                    Codec::delta(),
                    Codec::shuffle(),
                    Codec::zlib(9),
                    Codec::crc32c(),
                ],
                text => Codec::list(text).unwrap(),
            };
            let mut spec = ArraySpec::<i32>::new(region![-6..5, -1..8])
                .chunks(chunks.clone())
                .origin(origin.clone())
                .codecs(codecs);
            if let Some(shards) = &shards {
                spec = spec.shards(shards.clone());
            }
            let a = array(&w, spec);
            for (r, row) in cells.chunks(9).enumerate() {
                a.write_slice(region![r as i64 - 6, ..], row).unwrap();
                if commits > 1 && r % 3 == 0 {
                    w.commit().unwrap();
                }
            }
            w.commit().unwrap();
            let c = reopened(&c);
            verify(&c);
            let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
            let part = a.read_vec(region![(-5..5).step(3), 2..7]).unwrap();
            answers.push((a.read_vec(Region::all()).unwrap(), part));
        }
    }
    assert_eq!(answers[0].0, cells);
    assert!(answers.iter().all(|x| *x == answers[0]));
}

#[test]
fn rule_6_a_call_that_fails_changes_nothing_on_disk_or_pending() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![0..4, 0..4]).chunks([2, 2]),
    );
    a.write_scalar(Region::all(), 1).unwrap();
    a.attributes().set("x", "old").unwrap();
    w.commit().unwrap();
    a.write_scalar(region![0, 0], 2).unwrap();
    let before = (
        a.read_vec(Region::all()).unwrap(),
        a.domain().unwrap(),
        extents(&a),
    );
    let block = Block {
        data_type: DataType::Int32,
        shape: vec![2, 2],
        elements: Elements::Fixed(vec![9; 16]),
    };
    let failures: Vec<(&str, orthant::Error)> = vec![
        ("region", a.write_scalar(region![0..5, ..], 9).unwrap_err()),
        ("shape", DynWrite::write(&a, region![0..3, 0..2], &block)),
        ("count", a.write_slice(Region::all(), &[9; 15]).unwrap_err()),
        ("rank", a.write_scalar(region![0..1], 9).unwrap_err()),
        ("grow", a.grow(0, 1 << 62, 0).unwrap_err()),
        ("trim", a.trim(0, 3, 3).unwrap_err()),
        ("translate", a.translate(&[1 << 62, 0]).unwrap_err()),
        ("domain", a.set_domain(region![0..4]).unwrap_err()),
        ("attribute", a.attributes().set("", "v").unwrap_err()),
        ("create", w.create_group("a/b").unwrap_err()),
        ("again", w.create_group("a").unwrap_err()),
        ("remove", w.remove("b", true).unwrap_err()),
        ("rename", w.rename("a", "a/b").unwrap_err()),
        ("message", w.message(&"m".repeat(1025)).unwrap_err()),
    ];
    for (what, e) in &failures {
        assert_ne!(e.kind(), ErrorKind::Corrupt, "{what}: {e}");
        assert_ne!(e.kind(), ErrorKind::Io, "{what}: {e}");
    }
    let now = |a: &Array<i32>| {
        (
            a.read_vec(Region::all()).unwrap(),
            a.domain().unwrap(),
            extents(a),
        )
    };
    assert_eq!(now(&a), before);
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    assert_eq!(now(&s.array("a").unwrap()), before);
    let all: Vec<String> = s.walk().unwrap().map(|m| m.unwrap().path).collect();
    assert_eq!(all, ["/a"]);
    let attributes = s.array::<i32>("a").unwrap().attributes().list().unwrap();
    assert_eq!(attributes, [("x".to_owned(), "old".into())]);
}

/// A write through the run-time handle, which must fail.
trait DynWrite {
    fn write(&self, region: Region, block: &Block) -> orthant::Error;
}

impl DynWrite for Array<i32> {
    fn write(&self, region: Region, block: &Block) -> orthant::Error {
        orthant::DynArray::write(self, region, block).unwrap_err()
    }
}

#[test]
fn rule_7_errors_name_things() {
    let (_folder, path) = scratch("named.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let a = w
        .create_array("g/a", ArraySpec::<i32>::new(region![-4..4]).chunks([2]))
        .unwrap();
    for e in [
        a.read_vec(region![4]).unwrap_err(),
        a.read_vec(region![0..9]).unwrap_err(),
        a.trim(0, 9, 0).unwrap_err(),
        a.grow(0, 1 << 62, 0).unwrap_err(),
        a.write_slice(region![0..2], &[1]).unwrap_err(),
        w.array::<f32>("g/a").unwrap_err(),
        a.read_chunk(&[7]).unwrap_err(),
    ] {
        assert_eq!(e.file(), Some(path.as_path()), "{e}");
        assert_eq!(
            e.array().map(|p| p.trim_start_matches('/')),
            Some("g/a"),
            "{e}"
        );
        let text = e.to_string();
        assert!(
            text.contains("named.orth") && text.contains("/g/a"),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
    let e = w.dyn_array("g/b").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("g/b"), "{e}");
    assert_eq!(e.file(), Some(path.as_path()));
}

/// Arguments of every kind, taken from a fixed seed; files are `corrupt.rs` and `hostile.rs`.
#[test]
fn rule_8_no_argument_panics_or_hangs() {
    let mut random = Random::new(8);
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<u8>::new(region![-8..8, 0..5]).chunks([3, 2]),
    );
    let odd = [
        i64::MIN,
        i64::MIN + 1,
        -(1 << 62),
        -9,
        -8,
        -1,
        0,
        1,
        5,
        8,
        1 << 62,
        i64::MAX,
    ];
    for _ in 0..20_000 {
        let mut x = || odd[random.below(odd.len())];
        let item = |a: i64, b: i64, kind: i64| match kind & 3 {
            0 => orthant::RegionItem::Index(orthant::Bound::End(a)),
            1 => orthant::RegionItem::Range {
                start: Some(orthant::Bound::Begin(a)),
                end: Some(orthant::Bound::At(b)),
                step: b.unsigned_abs(),
            },
            _ => std::ops::Range { start: a, end: b }.into(),
        };
        let r = Region::from_items([item(x(), x(), x()), item(x(), x(), x())]);
        let _ = a.read_vec(r.clone());
        let _ = a.read_clipped(r.clone());
        let _ = a.write_scalar(r.clone(), 1);
        let _ = a.erase(r.clone());
        let _ = a.explain(r);
        let (lo, hi) = (x().unsigned_abs(), x().unsigned_abs());
        if lo > 100 || hi > 100 {
            assert!(a.grow(0, lo, hi).is_err() || a.trim(0, lo, hi).is_ok());
        }
        let _ = a.translate(&[x(), 0]).and_then(|()| {
            let back = -a.domain()?.range(0).unwrap().start - 8;
            a.translate(&[back, 0])
        });
        let _ = a.read_chunk(&[x(), x()]);
    }
    a.set_domain(region![-8..8, 0..5]).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap().len(), 80);
}

#[test]
fn rule_9_a_reader_sees_one_commit_until_it_asks_for_a_newer_one() {
    let (_folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let a = array(&w, ArraySpec::<i32>::new(region![0..8]).chunks([2]));
    w.commit().unwrap();
    let other = Container::open_read_only(&path).unwrap();
    let mut held = vec![(0, other.snapshot().unwrap())];
    for k in 1..6 {
        a.write_scalar(Region::all(), k).unwrap();
        a.set_domain(region![0..8 + i64::from(k)]).unwrap();
        // Not yet committed: nobody else sees it.
        let stale = other.latest().unwrap().array::<i32>("a").unwrap();
        assert_eq!(stale.read_vec(region![0..1]).unwrap(), [k - 1]);
        w.commit().unwrap();
        assert_eq!(
            other.snapshot().unwrap().generation(),
            held[held.len() - 1].1.generation()
        );
        held.push((k, other.latest().unwrap()));
    }
    for (k, s) in &held {
        let a = s.array::<i32>("a").unwrap();
        let shape = a.domain().unwrap().shape();
        assert_eq!(shape, [8 + u64::try_from(*k).unwrap()]);
        assert_eq!(a.read_vec(region![0..7]).unwrap(), [*k; 7]);
    }
}
