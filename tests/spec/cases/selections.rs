//! Area E: selections.

use orthant::{ArraySpec, ErrorKind, Region, RegionItem, Selection, region};

use crate::medium::fresh;
use crate::support::{array, coords, reopened, timed, verify, within, writer};

#[test]
fn c43_strided_and_listed_reads_decode_what_they_need() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<u8>::new(region![0..4096, 0..64]).chunks([1, 64]),
    );
    a.write_slice(Region::all(), &vec![1; 4096 * 64]).unwrap();
    w.commit().unwrap();
    let rows = (0..4096).step_by(512);
    let list = Selection::from(region![.., ..]).list(0, rows);
    for selection in [region![(0..4096).step(512), ..].into(), list] {
        let (cells, receipt) = a.read_with_receipt(selection).unwrap();
        assert_eq!(cells.shape(), [8, 64]);
        assert!(cells.iter().all(|&v| v == 1));
        assert_eq!((receipt.chunks_touched, receipt.chunks_decoded), (8, 8));
    }
}

#[test]
fn c44_a_step_is_honoured_or_refused() {
    let w = writer();
    let a = array(&w, ArraySpec::<i32>::new(region![0..360]).chunks([7]));
    a.write_slice(Region::all(), &(0..360).collect::<Vec<_>>())
        .unwrap();
    for (lo, hi, step, n) in [
        (0, 360, 4, 90),
        (3, 360, 4, 90),
        (1, 359, 7, 52),
        (0, 360, 360, 1),
        (0, 360, 361, 1),
    ] {
        let got = a.read_vec(region![(lo..hi).step(step)]).unwrap();
        let step = i32::try_from(step).unwrap();
        assert_eq!(got, (0..n).map(|k| lo + k * step).collect::<Vec<_>>());
    }
    let e = a.read_vec(region![(0..360).step(0)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    for text in ["0:360:0", "0:360:-1", "::-1"] {
        assert!(text.parse::<Region>().is_err(), "{text}");
    }
    // A strided write sets those elements and no other.
    a.write_scalar(region![(0..10).step(3)], -1).unwrap();
    assert_eq!(
        a.read_vec(region![0..11]).unwrap(),
        [-1, 1, 2, -1, 4, 5, -1, 7, 8, -1, 10]
    );
}

#[test]
fn c46_lists_keep_their_order_and_repeats() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![0..6, 0..5]).chunks([4, 2]),
    );
    let cells: Vec<i32> = (0..6)
        .flat_map(|r| (0..5).map(move |c| 10 * r + c))
        .collect();
    a.write_slice(Region::all(), &cells).unwrap();
    let rows = || Selection::from(Region::all()).list(0, [5, 0, 0, 3]);
    let got = a.read(rows().list(1, [4, 1, 4])).unwrap();
    assert_eq!(got.shape(), [4, 3]);
    assert_eq!(
        got.iter().copied().collect::<Vec<_>>(),
        [54, 51, 54, 4, 1, 4, 4, 1, 4, 34, 31, 34]
    );
    let got = a.read(rows()).unwrap();
    assert_eq!(got.shape(), [4, 5]);
    assert_eq!(
        got.iter().copied().collect::<Vec<_>>(),
        [
            50, 51, 52, 53, 54, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 30, 31, 32, 33, 34
        ]
    );
    let (cells, receipt) = a.read_with_receipt(rows()).unwrap();
    let seen = receipt.chunks_decoded + receipt.chunks_cached;
    assert_eq!((cells.len(), receipt.chunks_touched, seen), (20, 6, 6));
    let none = a.read(Selection::from(Region::all()).list(0, [])).unwrap();
    assert_eq!(none.shape(), [0, 5]);
    let e = a
        .read(Selection::from(Region::all()).list(0, [0, 6]))
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OutOfDomain);
}

#[test]
fn c47_empty_boxes_read_and_write_nothing() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![0..4, 0..4]).chunks([3, 3]),
    );
    a.write_scalar(Region::all(), 5).unwrap();
    for (r, shape) in [
        (region![1..1, 0..4], [0, 4]),
        (region![4..4, 0..4], [0, 4]),
        (region![0..0, 0..0], [0, 0]),
    ] {
        let (cells, receipt) = a.read_with_receipt(r.clone()).unwrap();
        assert_eq!(cells.shape(), shape);
        assert_eq!((receipt.chunks_touched, receipt.bytes_fetched), (0, 0));
        let written = a.write_slice(r.clone(), &[]).unwrap();
        assert_eq!((written.chunks_written, written.bytes_written), (0, 0));
        assert_eq!(a.write_scalar(r, 9).unwrap().chunks_written, 0);
    }
    let reversed = Region::from_items([
        RegionItem::from(std::ops::Range { start: 2, end: 1 }),
        (0..4).into(),
    ]);
    let e = a.read(reversed.clone()).unwrap_err();
    assert_eq!(e.reason_code(), Some("reversed"));
    assert!(a.write_slice(reversed, &[]).is_err());
    let mask = Selection::from(Region::all()).mask(0, [false; 4]);
    assert_eq!(a.read(mask).unwrap().shape(), [0, 4]);
    assert_eq!(a.read_vec(Region::all()).unwrap(), [5; 16]);
}

#[test]
fn c49_a_chunk_extent_of_zero_is_refused_by_axis() {
    let w = writer();
    let domain = || region![0..10, 0..20, 0..0];
    let e = w
        .create_array("a", ArraySpec::<i32>::new(domain()).chunks([1, 5, 0]))
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let text = e.to_string();
    assert!(
        text.contains("axis 2") && text.contains("at least 1"),
        "{text}"
    );
    let e = w
        .create_array("a", ArraySpec::<i32>::new(region![0..10]).chunks([0]))
        .unwrap_err();
    let text = e.to_string();
    assert!(
        text.contains("axis 0") && text.contains("at least 1"),
        "{text}"
    );
    let a = w
        .create_array("a", ArraySpec::<i32>::new(domain()).chunks([1, 5, 1]))
        .unwrap();
    assert_eq!(a.read(Region::all()).unwrap().shape(), [10, 20, 0]);
}

#[test]
fn c50_an_array_without_axes_holds_one_element() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(&w, ArraySpec::<f64>::new(region![]).chunks([]).fill(7.5));
    assert_eq!(a.read_vec(region![]).unwrap(), [7.5]);
    a.write_scalar(region![], 42.0).unwrap();
    assert_eq!(a.read(Region::all()).unwrap().shape(), [0_usize; 0]);
    w.commit().unwrap();
    let c = reopened(&c);
    verify(&c);
    let a = c.snapshot().unwrap().array::<f64>("a").unwrap();
    assert_eq!(a.read_vec(region![]).unwrap(), [42.0]);
    assert_eq!(coords(&a), [[0_i64; 0]]);
    assert_eq!(a.read_chunk(&[]).unwrap(), Some(vec![42.0]));
    let w = c.writer().unwrap();
    let e = w.array::<f64>("a").unwrap().grow(0, 0, 1).unwrap_err();
    assert!(e.to_string().contains("no axes"), "{e}");
}

#[test]
fn c53_boxes_that_leave_the_domain_are_errors() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![2..8, -3..3]).chunks([4, 4]),
    );
    a.write_scalar(Region::all(), 5).unwrap();
    for (r, axis, bounds) in [
        (region![0..4, -3..3], "axis 0", "[2,8)"),
        (region![7..9, 0..1], "axis 0", "[2,8)"),
        (region![8..9, 0..1], "axis 0", "[2,8)"),
        (region![2..8, -4..3], "axis 1", "[-3,3)"),
    ] {
        let read = a.read_vec(r.clone()).unwrap_err();
        let written = a.write_scalar(r.clone(), 9).unwrap_err();
        for e in [read, written] {
            assert_eq!(e.kind(), ErrorKind::OutOfDomain, "{r}");
            let text = e.to_string();
            assert!(text.contains(axis) && text.contains(bounds), "{text}");
        }
    }
    assert_eq!(a.read_vec(Region::all()).unwrap(), [5; 36]);
    let (clipped, _) = a.read_clipped(region![0..4, -3..9]).unwrap();
    assert_eq!(clipped.shape, [2, 6]);
}

#[test]
fn a_million_indexes_on_one_axis_decode_each_chunk_once() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![-50_000..50_000]).chunks([1000]),
    );
    a.write_slice(Region::all(), &(-50_000..50_000).collect::<Vec<_>>())
        .unwrap();
    w.commit().unwrap();
    let mut x = 1_u64;
    let list: Vec<i64> = (0..1_000_000)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i64::try_from((x >> 33) % 100_000).unwrap() - 50_000
        })
        .collect();
    let selection = Selection::from(Region::all()).list(0, list.iter().copied());
    let ((cells, receipt), took) = timed(|| a.read_with_receipt(selection).unwrap());
    assert_eq!((receipt.chunks_touched, receipt.chunks_decoded), (100, 100));
    assert!(cells.iter().zip(&list).all(|(v, x)| i64::from(*v) == *x));
    println!("a million indexes: {took:?}");
    assert!(took < within(std::time::Duration::from_secs(1)), "{took:?}");
}
