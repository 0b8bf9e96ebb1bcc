//! Area B: resizing, appending, prepending; and the rolling window of area K.

use std::time::Duration;

use orthant::{Array, ArraySpec, Codec, Container, ErrorKind, Region, region};

use crate::heap::peak_of;
use crate::medium::{fresh, held};
use crate::support::{array, coords, extents, reopened, timed, verify, within, writer};

#[test]
fn c11_what_a_shrink_cut_never_returns() {
    for commit in [false, true] {
        for fill in [0, 9] {
            let c = fresh();
            let w = c.writer().unwrap();
            let step = || {
                if commit {
                    w.commit().unwrap();
                }
            };
            let spec = ArraySpec::<i32>::new(region![0..4, 0..6]);
            let a = array(&w, spec.chunks([2, 3]).fill(fill));
            a.write_scalar(Region::all(), 1).unwrap();
            step();
            a.set_domain(region![0..1, 0..1]).unwrap();
            step();
            a.set_domain(region![0..4, 0..6]).unwrap();
            step();
            let mut want = vec![fill; 24];
            want[0] = 1;
            assert_eq!(a.read_vec(Region::all()).unwrap(), want);
            w.commit().unwrap();
            let r = reopened(&c).snapshot().unwrap();
            let a = r.array::<i32>("a").unwrap();
            assert_eq!(a.read_vec(Region::all()).unwrap(), want);
        }
    }
}

#[test]
fn c14_growth_across_chunk_borders_lands_where_it_should() {
    let w = writer();
    let a = array(&w, ArraySpec::<f64>::new(region![0..1000]).chunks([4096]));
    let cells = |r: std::ops::Range<i32>| r.map(f64::from).collect::<Vec<_>>();
    a.write_slice(Region::all(), &cells(0..1000)).unwrap();
    w.commit().unwrap();
    for k in 1..=10_i32 {
        a.grow(0, 0, 1000).unwrap();
        let (lo, hi) = (1000 * k, 1000 * (k + 1));
        a.write_slice(region![lo..hi], &cells(lo..hi)).unwrap();
        w.commit().unwrap();
        assert_eq!(a.read_vec(Region::all()).unwrap(), cells(0..hi));
    }
    assert_eq!(coords(&a), [[0], [1], [2]]);
}

#[test]
fn c16_an_array_without_a_cell_grows_at_both_ends() {
    let w = writer();
    let a = array(&w, ArraySpec::<i64>::new(region![0..0]).chunks([100]));
    let empty = a.read(Region::all()).unwrap();
    assert_eq!(empty.shape(), [0]);
    a.append(0, ndarray::arr1(&[1_i64, 2, 3]).view()).unwrap();
    w.commit().unwrap();
    a.append(0, ndarray::Array1::<i64>::zeros(0).view())
        .unwrap();
    w.commit().unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), [1, 2, 3]);
    a.prepend(0, ndarray::arr1(&[-1_i64]).view()).unwrap();
    assert_eq!(a.domain().unwrap().range(0), Some(-1..3));
    assert_eq!(a.read_vec(Region::all()).unwrap(), [-1, 1, 2, 3]);

    let b = w
        .create_array(
            "b",
            ArraySpec::<i64>::new(region![0..0, 0..4]).chunks([100, 3]),
        )
        .unwrap();
    assert_eq!(b.read(Region::all()).unwrap().shape(), [0, 4]);
    b.append(0, ndarray::arr2(&[[1_i64, 2, 3, 4]]).view())
        .unwrap();
    b.append(0, ndarray::Array2::<i64>::zeros((0, 4)).view())
        .unwrap();
    b.prepend(0, ndarray::arr2(&[[-1_i64, -2, -3, -4]]).view())
        .unwrap();
    w.commit().unwrap();
    assert_eq!(
        b.read_vec(region![-1..1, ..]).unwrap(),
        [-1, -2, -3, -4, 1, 2, 3, 4]
    );
}

#[test]
fn c17_default_chunks_are_never_empty_and_never_huge() {
    for (i, domain) in [
        region![0..0],
        region![0..0, 0..5],
        region![0..1],
        region![],
        region![0..1, 0..1, 0..1, 0..1],
        region![0..3, 0..100_000_000],
    ]
    .into_iter()
    .enumerate()
    {
        let w = writer();
        let a = array(&w, ArraySpec::<f64>::new(domain));
        let chunks = a.chunk_shape();
        assert!(chunks.iter().all(|&n| n >= 1), "{chunks:?}");
        assert!(chunks.iter().product::<u64>() * 8 <= 1 << 20, "{chunks:?}");
        if i < 5 {
            let n = a.read_vec(Region::all()).unwrap().len();
            assert_eq!(
                Some(n as u128),
                a.domain().unwrap().element_count(),
                "{chunks:?}"
            );
        } else {
            assert_eq!(a.read_vec(region![2, 99_999_999]).unwrap(), [0.0]);
        }
        if i == 1 {
            a.append(0, ndarray::Array2::<f64>::ones((2, 5)).view())
                .unwrap();
            assert_eq!(a.read_vec(Region::all()).unwrap(), [1.0; 10]);
        }
    }
}

#[test]
fn c18_growing_never_walks_the_grid() {
    let w = writer();
    let spec = ArraySpec::<u8>::new(region![0..220_000, 0..1000]).chunks([1, 1]);
    let a = array(&w, spec);
    for i in 0..10_i64 {
        a.write_scalar(region![i * 21_000, i * 100], 1).unwrap();
    }
    w.commit().unwrap();
    let mut worst = Duration::ZERO;
    let ((), peak) = peak_of(|| {
        for _ in 0..100 {
            for (lo, hi) in [(0, 1), (1, 0)] {
                worst = worst.max(timed(|| a.grow(0, lo, hi).unwrap()).1);
                if hi == 1 {
                    worst = worst.max(timed(|| a.trim(0, 0, 1).unwrap()).1);
                }
            }
        }
    });
    assert!(worst < within(Duration::from_millis(10)), "{worst:?}");
    assert!(peak < 8 << 20, "{peak} bytes");
    assert_eq!(a.domain().unwrap().range(0), Some(-100..220_000));
    assert_eq!(coords(&a).len(), 10);
}

#[test]
fn c19_appends_of_any_length_into_a_compressed_tail() {
    let mut c = fresh();
    let mut n = 0_i32;
    {
        let w = c.writer().unwrap();
        let spec = ArraySpec::<i32>::new(region![0..0]).chunks([8]);
        array(
            &w,
            spec.codecs([Codec::shuffle(), Codec::zstd(3), Codec::crc32c()]),
        );
        w.commit().unwrap();
    }
    for run in [1, 2, 3, 5, 7, 8, 11, 13, 16, 1] {
        let earlier = c.snapshot().unwrap().array::<i32>("a").unwrap();
        let before: Vec<i32> = (0..n).collect();
        let w = c.writer().unwrap();
        let a: Array<i32> = w.array("a").unwrap();
        let block: ndarray::Array1<i32> = (n..n + run).collect();
        a.append(0, block.view()).unwrap();
        w.commit().unwrap();
        n += run;
        assert_eq!(earlier.read_vec(Region::all()).unwrap(), before);
        drop(w);
        c = reopened(&c);
        let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
        assert_eq!(
            a.read_vec(Region::all()).unwrap(),
            (0..n).collect::<Vec<_>>()
        );
    }
    assert_eq!(n, 67);
}

#[test]
fn c20_padding_never_becomes_data() {
    let w = writer();
    let spec = || ArraySpec::<i16>::new(region![0..3]).chunks([4]).fill(9);
    let a = array(&w, spec());
    a.write_scalar(Region::all(), 1).unwrap();
    w.commit().unwrap();
    a.set_domain(region![0..6]).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), [1, 1, 1, 9, 9, 9]);
    let b = w.create_array("b", spec()).unwrap();
    b.set_domain(region![1..3]).unwrap();
    b.write_slice(Region::all(), &[1, 1]).unwrap();
    b.set_domain(region![-1..3]).unwrap();
    assert_eq!(b.read_vec(Region::all()).unwrap(), [9, 9, 1, 1]);
}

#[test]
fn c21_shrinking_below_a_chunk_and_to_nothing() {
    let mut c = fresh();
    let open = |c: &Container| c.writer().unwrap();
    let w = open(&c);
    let spec = ArraySpec::<f32>::new(region![0..250])
        .chunks([100])
        .codecs([Codec::zlib(6)])
        .fill(-1.0);
    let a = array(&w, spec);
    let cells: Vec<f32> = (0..250_u8).map(f32::from).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    a.set_domain(region![0..7]).unwrap();
    w.commit().unwrap();
    drop((a, w));
    c = reopened(&c);
    verify(&c);
    let w = open(&c);
    let a: Array<f32> = w.array("a").unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells[..7]);
    a.set_domain(region![0..0]).unwrap();
    w.commit().unwrap();
    drop((a, w));
    c = reopened(&c);
    verify(&c);
    let w = open(&c);
    let a: Array<f32> = w.array("a").unwrap();
    assert_eq!(a.domain().unwrap().shape(), [0]);
    assert!(a.chunks().unwrap().is_empty());
    a.set_domain(region![0..250]).unwrap();
    w.commit().unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), [-1.0; 250]);
    verify(&c);
}

#[test]
fn c109_a_rolling_window_writes_one_chunk_a_step() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f32>::new(region![0..30, 0..100]).chunks([1, 100]);
    let a = array(&w, spec.fill(-0.5).codecs(Codec::raw_profile()));
    let row = |x: i64| vec![x as f32; 100];
    for x in 0..30 {
        a.write_slice(region![x, ..], &row(x)).unwrap();
    }
    w.commit().unwrap();
    for x in 30..1030_i64 {
        a.grow(0, 0, 1).unwrap();
        let written = a.write_slice(region![x, ..], &row(x)).unwrap();
        let cut = a.trim(0, 1, 0).unwrap();
        w.commit().unwrap();
        assert_eq!((written.chunks_written, written.bytes_written), (1, 400));
        assert_eq!((cut.dropped, cut.scrubbed), (1, 0));
    }
    assert_eq!(a.domain().unwrap().range(0), Some(1000..1030));
    let want: Vec<f32> = (1000..1030).flat_map(row).collect();
    assert_eq!(a.read_vec(Region::all()).unwrap(), want);
    assert_eq!(
        coords(&a),
        (1000..1030).map(|x| vec![x, 0]).collect::<Vec<_>>()
    );
    for x in (0..1000_i64).rev() {
        a.grow(0, 1, 0).unwrap();
        a.write_slice(region![x, ..], &row(-x)).unwrap();
        a.trim(0, 0, 1).unwrap();
        w.commit().unwrap();
    }
    assert_eq!(a.domain().unwrap().range(0), Some(0..30));
    let want: Vec<f32> = (0..30).flat_map(|x| row(-x)).collect();
    assert_eq!(a.read_vec(Region::all()).unwrap(), want);
    assert_eq!(extents(&a).len(), 30);
    verify(&c);
}

#[test]
fn the_errors_of_growing_name_the_axis_and_change_nothing() {
    let c = fresh();
    let w = c.writer().unwrap();
    let scalar = w
        .create_array("scalar", ArraySpec::<i32>::new(region![]))
        .unwrap();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![-2..3, 0..4]).chunks([2, 2]),
    );
    a.write_scalar(Region::all(), 1).unwrap();
    w.commit().unwrap();
    let before = c.to_bytes().unwrap();

    let e = scalar.grow(0, 1, 0).unwrap_err();
    assert!(e.to_string().contains("no axes"), "{e}");
    let shows = |e: orthant::Error, reason: &str, axis: &str| {
        assert_eq!(e.reason_code(), Some(reason), "{e}");
        let text = e.to_string();
        assert!(text.contains(axis), "{text} lacks {axis}");
        assert!(text.contains("/a"), "{text} lacks the path");
        text
    };
    let text = shows(a.trim(1, 3, 2).unwrap_err(), "trim_too_much", "axis 1");
    assert!(text.contains("[-2:3, 0:4]"), "{text}");
    let text = shows(
        a.prepend(0, ndarray::Array2::<i32>::zeros((1, 5)).view())
            .unwrap_err(),
        "shape",
        "axis 1",
    );
    assert!(text.contains("[-2:3, 0:4]"), "{text}");
    let text = shows(
        a.append(0, ndarray::Array1::<i32>::zeros(4).view())
            .unwrap_err(),
        "rank",
        "2 axes",
    );
    assert!(text.contains("[-2:3, 0:4]"), "{text}");
    let text = shows(a.grow(2, 0, 1).unwrap_err(), "rank", "axis 2");
    assert!(text.contains("[-2:3, 0:4]"), "{text}");
    let reversed = orthant::Region::from_items([
        orthant::RegionItem::from(std::ops::Range { start: 3, end: 2 }),
        (0..4).into(),
    ]);
    shows(a.set_domain(reversed).unwrap_err(), "reversed", "axis 0");
    let wrong = orthant::Block {
        data_type: orthant::DataType::Int64,
        shape: vec![1, 4],
        elements: orthant::Elements::Fixed(vec![0; 32]),
    };
    let e = a.append_block(0, &wrong).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    let mask = orthant::Selection::from(Region::all()).mask(1, [true; 5]);
    let text = shows(a.read_vec(mask).unwrap_err(), "shape", "axis 1");
    assert!(text.contains("[-2:3, 0:4]"), "{text}");

    w.commit().unwrap();
    let r = reopened(&c).snapshot().unwrap().array::<i32>("a").unwrap();
    assert_eq!(r.read_vec(Region::all()).unwrap(), [1; 20]);
    assert_eq!(extents(&a), {
        let old = held(before).unwrap().snapshot().unwrap();
        extents(&old.array::<i32>("a").unwrap())
    });
}
