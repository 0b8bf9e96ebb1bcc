//! What growing, cutting and rolling must cost, and what they must never bring back.

use orthant::{
    Array, ArraySpec, Block, ChunkState, Codec, Container, DataType, Elements, Region, region,
};

use crate::medium::fresh;
use crate::support::{array, coords, extents, reopened, scratch, verify, writer};

/// The 3 x 3 array of the founding text, a row added below and one above, a column left and right.
#[test]
fn a_three_by_three_array_grown_at_an_edge_gets_two_chunks_and_rewrites_none() {
    for (name, axis, low) in [("above", 0, true), ("left", 1, true)] {
        let w = writer();
        let a = array(
            &w,
            ArraySpec::<i32>::new(region![0..3, 0..3]).chunks([2, 2]),
        );
        a.write_slice(Region::all(), &(1..10).collect::<Vec<_>>())
            .unwrap();
        w.commit().unwrap();
        let before = extents(&a);
        let shape = if axis == 0 { (1, 3) } else { (3, 1) };
        let slab = ndarray::Array2::from_elem(shape, 77);
        let receipt = if low {
            a.prepend(axis, slab.view()).unwrap()
        } else {
            a.append(axis, slab.view()).unwrap()
        };
        w.commit().unwrap();
        assert_eq!(
            (receipt.chunks_written, receipt.chunks_decoded),
            (2, 0),
            "{name}"
        );
        let after = extents(&a);
        assert_eq!(after.len(), before.len() + 2, "{name}");
        assert!(
            before.iter().all(|e| after.contains(e)),
            "{name}: a chunk was rewritten"
        );
    }
}

/// The steps of the founding vectors d02 to d05, whose stored sets and values `signed_vectors` compares: here, which
/// payloads lie where they lay.
#[test]
fn a_three_by_three_array_grown_at_all_edges_rewrites_only_chunks_that_the_slab_enters() {
    // Axis, low edge, fill and slab value, chunks added, chunks rewritten.
    let d02 = vec![(0, false, 99, 0, 0, 2)];
    let d03 = vec![(0, true, 99, 0, 2, 0)];
    let d04 = vec![(0, true, 0, 0, 0, 0)];
    let d05 = vec![
        (0, true, 99, 0, 2, 0),
        (0, false, 99, 0, 0, 2),
        (1, true, 99, 0, 3, 0),
        (1, false, 99, 0, 0, 3),
    ];
    for (name, steps) in [("d02", d02), ("d03", d03), ("d04", d04), ("d05", d05)] {
        let w = writer();
        let spec = ArraySpec::<i32>::new(region![0..3, 0..3]).chunks([2, 2]);
        let a = array(&w, spec.fill(steps[0].2));
        a.write_slice(Region::all(), &(1..10).collect::<Vec<_>>())
            .unwrap();
        w.commit().unwrap();
        for (axis, low, _, value, added, rewritten) in steps {
            let before = extents(&a);
            let mut shape = a.domain().unwrap().shape();
            shape[axis] = 1;
            let shape = [0, 1].map(|i| usize::try_from(shape[i]).unwrap());
            let slab = ndarray::Array2::from_elem(shape, value);
            if low {
                a.prepend(axis, slab.view()).unwrap();
            } else {
                a.append(axis, slab.view()).unwrap();
            }
            w.commit().unwrap();
            let after = extents(&a);
            assert_eq!(after.len(), before.len() + added, "{name}");
            let moved = before.iter().filter(|e| !after.contains(e)).count();
            assert_eq!(moved, rewritten, "{name}");
        }
    }
}

#[test]
fn prepending_a_row_to_a_thousand_rewrites_the_edge_row_of_chunks_alone() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f32>::new(region![0..1000, 0..1000]).chunks([100, 100]);
    let a = array(&w, spec.codecs(Codec::raw_profile()));
    let cells: Vec<f32> = (0..1_000_000_u32).map(|x| x as f32 + 1.0).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    w.commit().unwrap();
    for (k, row) in (1..=100_i64).zip([1.5_f32, 2.5, 3.5].into_iter().cycle()) {
        let before = extents(&a);
        let written = a
            .prepend(0, ndarray::Array2::from_elem((1, 1000), row).view())
            .unwrap();
        w.commit().unwrap();
        assert_eq!(written.chunks_written, 10);
        assert!(
            written.bytes_written <= 400_000,
            "{}",
            written.bytes_written
        );
        let edge = (-k).div_euclid(100);
        let outside = |e: &&(Vec<i64>, u64, u64)| e.0[0] != edge;
        let after = extents(&a);
        assert!(
            before
                .iter()
                .filter(outside)
                .eq(after.iter().filter(outside)),
            "row {k}: a chunk outside the edge row was rewritten"
        );
    }
    assert_eq!(a.read_vec(region![0..1000, ..]).unwrap(), cells);
    assert_eq!(a.domain().unwrap().range(0), Some(-100..1000));
}

/// How often each chunk column's payload changed place, seen after every step.
#[derive(Default)]
struct Encodes {
    seen: std::collections::HashMap<Vec<i64>, (u64, u32)>,
    count: u64,
}

impl Encodes {
    fn look(&mut self, a: &Array<f32>) {
        for c in a.chunks().unwrap() {
            if let ChunkState::Stored { offset, crc32, .. } = c.state
                && self.seen.insert(c.coord, (offset, crc32)) != Some((offset, crc32))
            {
                self.count += 1;
            }
        }
    }
}

const COLUMNS: u64 = 3;

fn hour(t: i64, column: i64) -> f32 {
    (t * 10 + column) as f32
}

fn rolling(aligned: bool, commit_every: i64) {
    const WIDTH: u64 = 240;
    const STEPS: i64 = 10_000;
    let (_folder, path) = scratch("rolling.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f32>::new(region![-240..0, 0..3])
        .chunks([24, 1])
        .fill(f32::NAN);
    let a = array(&w, spec.codecs([Codec::shuffle(), Codec::lz4()]));
    let window: Vec<f32> = (-240..0)
        .flat_map(|t| (0..3).map(move |x| hour(t, x)))
        .collect();
    a.write_slice(Region::all(), &window).unwrap();
    w.commit().unwrap();
    let appender = a.appender(0).unwrap().window(WIDTH, aligned);
    let mut encodes = Encodes::default();
    encodes.look(&a);
    encodes.count = 0;
    let mut commits = 0_u64;
    for t in 0..STEPS {
        let record = Block {
            data_type: DataType::Float32,
            shape: vec![1, 3],
            elements: Elements::Fixed((0..3).flat_map(|x| hour(t, x).to_le_bytes()).collect()),
        };
        appender.push(&[record]).unwrap();
        if (t + 1) % 24 == 0 {
            encodes.look(&a);
        }
        if (t + 1) % commit_every == 0 {
            appender.commit().unwrap();
            commits += 1;
            encodes.look(&a);
        }
    }
    w.commit().unwrap();
    commits += 1;
    encodes.look(&a);
    let steps = u64::try_from(STEPS).unwrap();
    let extra = if aligned { 3 } else { 2 };
    let most = (steps.div_ceil(24) * 11).div_ceil(10) + extra * commits;
    let per_column = encodes.count.div_ceil(COLUMNS);
    println!(
        "aligned {aligned}, a commit every {commit_every}: {per_column} encodes a column, at most {most}"
    );
    assert!(per_column <= most, "{per_column} > {most}");
    drop((appender, a, w, c));

    let c = Container::open(&path).unwrap();
    verify(&c);
    let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
    let r = a.domain().unwrap().range(0).unwrap();
    assert_eq!(r.end, STEPS);
    let exact = STEPS - 240;
    let low = if aligned {
        exact.div_euclid(24) * 24
    } else {
        exact
    };
    assert_eq!(r.start, low);
    let want: Vec<f32> = (low..STEPS)
        .flat_map(|t| (0..3).map(move |x| hour(t, x)))
        .collect();
    assert_eq!(a.read_vec(Region::all()).unwrap(), want);
    assert_eq!(
        coords(&a).len() as u64,
        COLUMNS * u64::try_from((STEPS + 23).div_euclid(24) - low.div_euclid(24)).unwrap()
    );
}

#[test]
fn a_rolling_window_encodes_each_chunk_about_once() {
    rolling(false, 100);
    rolling(true, 100);
    rolling(false, 10_000);
    rolling(true, 7 * 24);
}

/// Every record whose commit has returned is right after a reopen, at each commit.
#[test]
fn every_committed_record_of_a_stream_is_there_after_a_reopen() {
    let c = fresh();
    let w = c.writer().unwrap();
    let x = w
        .create_array(
            "x",
            ArraySpec::<f32>::new(region![0..0, 0..3]).chunks([24, 2]),
        )
        .unwrap();
    let n = w
        .create_array("n", ArraySpec::<i64>::new(region![0..0]).chunks([7]))
        .unwrap();
    let appender = orthant::Appender::new([(&*x, 0), (&*n, 0)]).unwrap();
    for t in 0..200_i64 {
        let row = Block {
            data_type: DataType::Float32,
            shape: vec![3],
            elements: Elements::Fixed((0..3).flat_map(|x| hour(t, x).to_le_bytes()).collect()),
        };
        let number = Block {
            data_type: DataType::Int64,
            shape: vec![1],
            elements: Elements::Fixed(t.to_le_bytes().to_vec()),
        };
        // A record that does not fit one array is taken by none.
        let wrong = Block {
            shape: vec![2],
            ..number.clone()
        };
        assert!(appender.push(&[row.clone(), wrong]).is_err());
        appender.push(&[row, number]).unwrap();
        if t % 13 == 12 {
            w.commit().unwrap();
            let s = reopened(&c).snapshot().unwrap();
            let n = s.array::<i64>("n").unwrap();
            assert_eq!(
                n.read_vec(Region::all()).unwrap(),
                (0..=t).collect::<Vec<_>>()
            );
            let want: Vec<f32> = (0..=t)
                .flat_map(|t| (0..3).map(move |x| hour(t, x)))
                .collect();
            let x = s.array::<f32>("x").unwrap();
            assert_eq!(x.read_vec(Region::all()).unwrap(), want);
        }
    }
    // What was pushed and not committed goes with an abort.
    w.abort();
    assert_eq!(n.domain().unwrap().range(0), Some(0..195));
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    assert_eq!(
        s.array::<i64>("n").unwrap().domain().unwrap().shape(),
        [195]
    );
}

/// A 6 x 6 array in 3 x 3 chunks whose edges overhang, all chunks in one state.
fn in_state(w: &orthant::Writer, state: &str, fill: i32) -> Array<i32> {
    let spec = ArraySpec::<i32>::new(region![-2..4, -2..4]).chunks([3, 3]);
    let a = array(w, spec.fill(fill));
    match state {
        "absent" => {}
        "declared fill" => drop(a.write_fill(Region::all())),
        // A constant lies wholly inside the domain, so the array is made larger first and cut to size.
        "constant" => {
            a.set_domain(region![-3..6, -3..6]).unwrap();
            a.write_scalar(Region::all(), 5).unwrap();
            assert!(
                a.chunks()
                    .unwrap()
                    .iter()
                    .any(|c| c.state == ChunkState::Constant)
            );
            a.set_domain(region![-2..4, -2..4]).unwrap();
        }
        "stored" => drop(a.write_slice(Region::all(), &(100..136).collect::<Vec<_>>())),
        other => panic!("{other}"),
    }
    a
}

#[test]
fn trimmed_and_grown_again_reads_fill_on_every_edge_and_corner_in_every_state() {
    let mut tried = 0;
    for state in ["absent", "declared fill", "constant", "stored"] {
        for fill in [0, -7] {
            for (top, bottom, left, right) in (0..81).map(|i| {
                let part =
                    |k: i64| [0, 1, 3][usize::try_from(i / 3_i64.pow(k as u32) % 3).unwrap()];
                (part(0), part(1), part(2), part(3))
            }) {
                let commit = tried % 2 == 0;
                tried += 1;
                let c = fresh();
                let w = c.writer().unwrap();
                let a = in_state(&w, state, fill);
                let before = a.read_vec(Region::all()).unwrap();
                if commit {
                    w.commit().unwrap();
                }
                let (lo0, hi0, lo1, hi1) = (-2 + top, 4 - bottom, -2 + left, 4 - right);
                a.set_domain(region![lo0..hi0.max(lo0), lo1..hi1.max(lo1)])
                    .unwrap();
                if commit {
                    w.commit().unwrap();
                }
                a.set_domain(region![-2..4, -2..4]).unwrap();
                w.commit().unwrap();
                let a = reopened(&c).snapshot().unwrap().array::<i32>("a").unwrap();
                let want: Vec<i32> = (0..36_i64)
                    .map(|i| (i / 6 - 2, i % 6 - 2))
                    .zip(before)
                    .map(|((y, x), v)| {
                        let kept = (lo0..hi0).contains(&y) && (lo1..hi1).contains(&x);
                        if kept { v } else { fill }
                    })
                    .collect();
                assert_eq!(
                    a.read_vec(Region::all()).unwrap(),
                    want,
                    "{state}, fill {fill}, cut {top} {bottom} {left} {right}"
                );
                if tried % 9 == 0 {
                    verify(&reopened(&c));
                }
            }
        }
    }
    assert_eq!(tried, 648);
}

#[test]
fn growth_past_the_limit_of_indexes_names_it_and_changes_nothing() {
    let limit = (1_i64 << 62) - 2;
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![-limit..-limit + 4, limit - 3..limit + 1]).chunks([3, 3]),
    );
    a.write_slice(Region::all(), &(0..16).collect::<Vec<_>>())
        .unwrap();
    w.commit().unwrap();
    let before = extents(&a);
    let slab = ndarray::Array2::from_elem((1, 4), 9);
    let column = ndarray::Array2::from_elem((4, 1), 9);
    for e in [
        a.grow(0, 1, 0).unwrap_err(),
        a.grow(1, 0, 1).unwrap_err(),
        a.grow(0, u64::MAX, 0).unwrap_err(),
        a.advance(0, -1).unwrap_err(),
        a.advance(1, i64::MAX).unwrap_err(),
        a.prepend(0, slab.view()).unwrap_err(),
        a.append(1, column.view()).unwrap_err(),
        a.translate(&[-1, 0]).unwrap_err(),
        a.translate(&[i64::MIN, i64::MAX]).unwrap_err(),
    ] {
        assert_eq!(e.reason_code(), Some("index_limit"), "{e}");
        let text = e.to_string();
        assert!(text.contains("2^62-2") && text.contains("axis"), "{text}");
    }
    w.commit().unwrap();
    assert_eq!(extents(&a), before);
    let a = reopened(&c).snapshot().unwrap().array::<i32>("a").unwrap();
    assert_eq!(
        a.read_vec(Region::all()).unwrap(),
        (0..16).collect::<Vec<_>>()
    );
    // The other ends are free.
    let a: Array<i32> = w.array("a").unwrap();
    a.grow(0, 0, 2).unwrap();
    a.grow(1, 2, 0).unwrap();
}

/// A domain of 2^60 elements is trimmed at once.
#[test]
fn a_cut_follows_what_is_stored_and_not_the_domain() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<u8>::new(region![0..1_i64 << 30, 0..1_i64 << 30]).chunks([1000, 1000]),
    );
    a.write_scalar(region![5, 5], 1).unwrap();
    a.write_scalar(region![(1 << 30) - 1, (1 << 30) - 1], 2)
        .unwrap();
    let (cut, took) = crate::support::timed(|| a.trim(0, 0, 1 << 29).unwrap());
    assert_eq!((cut.dropped, cut.scrubbed), (1, 0));
    assert!(
        took < crate::support::within(std::time::Duration::from_millis(5)),
        "{took:?}"
    );
    assert_eq!(a.read_vec(region![5, 5]).unwrap(), [1]);
}
