//! Area A: grid arithmetic and ragged edges.

use orthant::{Array, ArraySpec, Codec, ErrorKind, Region, region};

use crate::medium::fresh;
use crate::support::{array, coords, extents, npy, reopened, writer};

#[test]
fn c01_prepending_less_than_a_chunk_moves_no_payload() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![0..3, 0..3]).chunks([2, 2]),
    );
    a.write_slice(Region::all(), &(0..9).collect::<Vec<_>>())
        .unwrap();
    w.commit().unwrap();
    let before = extents(&a);
    assert_eq!(before.len(), 4);

    a.grow(0, 1, 0).unwrap();
    let receipt = a.write_slice(region![-1, ..], &[90, 91, 92]).unwrap();
    assert_eq!((receipt.chunks_written, receipt.chunks_decoded), (2, 0));
    w.commit().unwrap();

    let r = reopened(&c).snapshot().unwrap();
    let a = r.array::<i32>("a").unwrap();
    assert_eq!(
        a.read_vec(region![-1..3, ..]).unwrap(),
        [90, 91, 92, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    );
    assert_eq!(
        coords(&a),
        [[-1, 0], [-1, 1], [0, 0], [0, 1], [1, 0], [1, 1]]
    );
    assert_eq!(extents(&a)[2..], before);
}

#[test]
fn c02_a_short_last_chunk_keeps_its_ones() {
    let ones: Vec<f64> = npy("cases/ragged_2150.ones.npy")
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| f64::from_le_bytes(*b))
        .collect();
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f64>::new(region![0..2150])
        .chunks([100])
        .codecs([Codec::zlib(6)]);
    array(&w, spec).write_slice(Region::all(), &ones).unwrap();
    w.commit().unwrap();
    let r = reopened(&c).snapshot().unwrap();
    let a = r.array::<f64>("a").unwrap();
    let cells = a.read_vec(Region::all()).unwrap();
    assert!((cells.iter().sum::<f64>() - 2150.0).abs() < f64::EPSILON);
    assert_eq!(cells[2148..], [1.0, 1.0]);
    assert_eq!(a.chunks().unwrap().len(), 22);
}

#[test]
fn c02_every_box_at_chunk_edges_equals_the_source() {
    let cells: Vec<i32> = npy("cases/ragged_2150.ragged3d.npy")
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| i32::from_le_bytes(*b))
        .collect();
    let shape = [7_i64, 11, 5];
    let w = writer();
    let spec = ArraySpec::<i32>::new(region![0..7, 0..11, 0..5])
        .chunks([4, 4, 4])
        .codecs([Codec::shuffle(), Codec::zlib(6)])
        .fill(-1);
    let a = array(&w, spec);
    a.write_slice(Region::all(), &cells).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
    let pairs = |n: i64| -> Vec<(i64, i64)> {
        let corners = [0, 1, 3, 4, 5, n - 1, n].map(|x: i64| x.min(n));
        let all = corners.iter().flat_map(|&a| corners.map(|b| (a, b)));
        all.filter(|(a, b)| a <= b).collect()
    };
    let mut boxes = 0;
    for (a0, b0) in pairs(shape[0]) {
        for (a1, b1) in pairs(shape[1]) {
            for (a2, b2) in pairs(shape[2]) {
                let want: Vec<i32> = (a0..b0)
                    .flat_map(|i| (a1..b1).flat_map(move |j| (a2..b2).map(move |k| [i, j, k])))
                    .map(|[i, j, k]| cells[usize::try_from((i * 11 + j) * 5 + k).unwrap()])
                    .collect();
                assert_eq!(a.read_vec(region![a0..b0, a1..b1, a2..b2]).unwrap(), want);
                boxes += 1;
            }
        }
    }
    assert!(boxes > 15_000, "{boxes}");
}

/// The grid of the case without its shards: the same ragged columns, in chunks of the shard's and the inner chunk's size.
#[test]
fn c05_ragged_columns_read_alike_however_they_were_written() {
    let formula: Vec<i16> = (0..7)
        .flat_map(|r| (0..8).map(move |c| 100 * r + c))
        .collect();
    for chunks in [[4, 6], [2, 3]] {
        for by_row in [false, true] {
            let w = writer();
            let spec = ArraySpec::<i16>::new(region![0..7, 0..8]).chunks(chunks);
            let a = array(&w, spec.fill(-1));
            if by_row {
                for (r, row) in formula.chunks(8).enumerate() {
                    a.write_slice(region![r as i64, ..], row).unwrap();
                }
            } else {
                a.write_slice(Region::all(), &formula).unwrap();
            }
            assert_eq!(a.read_vec(Region::all()).unwrap(), formula);
            for r in 0..7_i64 {
                for c in 0..8_i64 {
                    assert_eq!(
                        a.read_vec(region![r, c]).unwrap(),
                        [i16::try_from(100 * r + c).unwrap()]
                    );
                }
            }
        }
    }
}

#[test]
fn c06_a_domain_below_zero_uses_floor_division() {
    for (origin, chunks) in [(0, [-2, -1]), (-10, [0, 1]), (2, [-3, -2]), (-3, [-2, -1])] {
        let w = writer();
        let spec = ArraySpec::<i32>::new(region![-10..-4])
            .chunks([5])
            .origin([origin]);
        let a = array(&w, spec);
        let squares = [100, 81, 64, 49, 36, 25];
        a.write_slice(Region::all(), &squares).unwrap();
        assert_eq!(a.read_vec(Region::all()).unwrap(), squares);
        assert_eq!(a.read_vec(region![-6..-5]).unwrap(), [36]);
        for (x, want) in (-10_i64..-4).zip(squares) {
            assert_eq!(a.read_vec(region![x]).unwrap(), [want]);
            let chunk = (x - origin).div_euclid(5);
            assert!(chunks.contains(&chunk));
            assert_eq!(a.chunks_in(region![x..x + 1]).unwrap()[0].coord, [chunk]);
        }
        assert_eq!(coords(&a), chunks.map(|c| [c]), "origin {origin}");
    }
}

#[test]
fn c08_a_chunk_longer_than_the_axis_takes_appends() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(&w, ArraySpec::<i64>::new(region![0..5]).chunks([512]));
    a.write_slice(Region::all(), &[10, 20, 30, 40, 50]).unwrap();
    w.commit().unwrap();
    drop(w);
    let c = reopened(&c);
    let w = c.writer().unwrap();
    let a: Array<i64> = w.array("a").unwrap();
    for part in [[60_i64, 70, 80], [90, 100, 110]] {
        a.append(0, ndarray::arr1(&part).view()).unwrap();
        w.commit().unwrap();
    }
    assert_eq!(
        a.read_vec(Region::all()).unwrap(),
        (1..=11).map(|i| i * 10).collect::<Vec<_>>()
    );
    assert_eq!(coords(&a), [[0]]);
    a.set_domain(region![0..600]).unwrap();
    assert_eq!(coords(&a), [[0]]);
    a.write_scalar(region![511], 7).unwrap();
    assert_eq!(coords(&a), [[0]]);
    a.write_scalar(region![512], 8).unwrap();
    assert_eq!(coords(&a), [[0], [1]]);
}

#[test]
fn c08_a_chunk_one_longer_than_the_array_reads_back_whole() {
    let w = writer();
    let a = array(
        &w,
        ArraySpec::<f64>::new(region![0..146, 0..70]).chunks([147, 70]),
    );
    let cells: Vec<f64> = (0..146 * 70).map(f64::from).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
}

#[test]
fn c09_minus_one_is_the_coordinate_before_zero() {
    let w = writer();
    let a = array(&w, ArraySpec::<i32>::new(region![-5..5]).chunks([3]));
    a.write_slice(Region::all(), &(-5..5).collect::<Vec<_>>())
        .unwrap();
    assert_eq!(a.read_vec(region![-1..0]).unwrap(), [-1]);
    assert_eq!(a.read_vec(region![-3..-1]).unwrap(), [-3, -2]);
    a.write_scalar(region![-1..0], 77).unwrap();
    assert_eq!(
        a.read_vec(Region::all()).unwrap(),
        [-5, -4, -3, -2, 77, 0, 1, 2, 3, 4]
    );

    let b = w
        .create_array("b", ArraySpec::<i32>::new(region![0..10]).chunks([3]))
        .unwrap();
    b.write_slice(Region::all(), &(0..10).collect::<Vec<_>>())
        .unwrap();
    let read = b.read_vec(region![-1..0]).unwrap_err();
    let written = b.write_scalar(region![-1..0], 77).unwrap_err();
    for e in [read, written] {
        assert_eq!(e.kind(), ErrorKind::OutOfDomain);
        let text = e.to_string();
        assert!(text.contains("axis 0") && text.contains("[0,10)"), "{text}");
    }
    assert_eq!(
        b.read_vec(Region::all()).unwrap(),
        (0..10).collect::<Vec<_>>()
    );
}
