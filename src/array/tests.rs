#![expect(
    clippy::integer_division,
    clippy::cast_precision_loss,
    clippy::too_many_lines,
    reason = "the founding text's formula; a long script of steps"
)]
//! The room against a plain model, in memory: no catalog, no files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::format::ObjectId;
use crate::format::key::{self, Value};
use crate::limits::Limits;
use crate::txn::{Engine, View, WriterState};
use crate::{Codec, Domain, Region, Selection, region};

fn array<T: Element>(w: &Arc<WriterState>, id: u64, spec: ArraySpec<T>) -> Array<T> {
    let document = spec.into_dyn().document(&Limits::default()).unwrap();
    let mut entry = Value::from_slice(&[0, 0]);
    entry.extend_from_slice(document.to_text().as_bytes());
    w.put(key::document(ObjectId(id)), entry);
    DynArray::open(View::Writer(Arc::clone(w)), ObjectId(id), format!("a{id}"))
        .unwrap()
        .typed()
        .unwrap()
}

fn writer() -> Arc<WriterState> {
    Engine::in_memory(Limits::default()).writer().unwrap()
}

#[test]
fn the_founding_text_reads_touch_and_decode_exactly_what_it_lists() {
    let v: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/data/vectors/seed/stats.json")).unwrap();
    let ints = |v: &serde_json::Value| {
        v.as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    let value = |t: i64, y: i64, x: i64| {
        if t < 96 {
            u8::try_from(1 + (t / 16 * 7 + y / 8 * 3 + x / 8)).unwrap()
        } else {
            0
        }
    };
    let cube: Vec<u8> = (0..128)
        .flat_map(|t| (0..128).flat_map(move |y| (0..128).map(move |x| value(t, y, x))))
        .collect();
    for (i, case) in v["cases"].as_array().unwrap().iter().enumerate() {
        let w = writer();
        let chunks: Vec<u64> = ints(&case["chunk_shape"])
            .iter()
            .map(|&n| n.unsigned_abs())
            .collect();
        let spec = ArraySpec::<u8>::new(region![0..128, 0..128, 0..128])
            .chunks(chunks)
            .codecs([Codec::zstd(1)]);
        let a = array(&w, i as u64 + 1, spec);
        a.write_slice(Region::all(), &cube).unwrap();
        let stored = a.chunks().unwrap().len() as u64;
        assert_eq!(stored, case["stored_chunks"].as_u64().unwrap());
        assert_eq!(
            a.grid_chunks().unwrap(),
            case["grid_chunks"].as_u64().map(u128::from)
        );
        let (min, max) = (ints(&case["min"]), ints(&case["max"]));
        let region =
            Region::from(Domain::new(min.into_iter().zip(max).map(|(a, b)| a..b)).unwrap());
        let plan = a.explain(&region).unwrap();
        let (got, receipt) = a.read_with_receipt(&region).unwrap();
        let crc = crate::bytes::crc32c(&got.into_raw_vec_and_offset().0);
        assert_eq!(format!("{crc:08x}"), case["crc32c"].as_str().unwrap());
        assert_eq!(receipt.chunks_touched, case["chunks"].as_u64().unwrap());
        assert_eq!(
            receipt.chunks_touched - receipt.chunks_absent,
            case["chunks_present"].as_u64().unwrap()
        );
        assert_eq!(receipt.bytes_decoded, case["decoded"].as_u64().unwrap());
        assert!(
            (receipt.amplification()
                - receipt.bytes_decoded as f64 / case["wanted_cells"].as_f64().unwrap())
            .abs()
                < 1e-9
        );
        assert_eq!(plan, receipt);
    }
}

/// A dense-free model: elements by coordinate, absent ones are fill.
struct Model {
    domain: Domain,
    cells: BTreeMap<Vec<i64>, i32>,
}

impl Model {
    fn points(domain: &Domain) -> Vec<Vec<i64>> {
        domain.ranges().fold(vec![vec![]], |points, r| {
            points
                .iter()
                .flat_map(|p| r.clone().map(move |x| [p.as_slice(), &[x]].concat()))
                .collect()
        })
    }

    fn read(&self, domain: &Domain, fill: i32) -> Vec<i32> {
        Self::points(domain)
            .iter()
            .map(|p| self.cells.get(p).copied().unwrap_or(fill))
            .collect()
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> i64 {
        i64::try_from(self.next() % n).unwrap()
    }
}

fn random_box(rng: &mut Random, domain: &Domain) -> Domain {
    Domain::new(domain.ranges().map(|r| {
        let n = r.end.abs_diff(r.start);
        let lo = r.start + rng.below(n + 1);
        let hi = lo + rng.below(r.end.abs_diff(lo) + 1);
        lo..hi
    }))
    .unwrap()
}

#[test]
fn random_operations_agree_with_a_model() {
    let mut rng = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..60 {
        let w = writer();
        let rank = usize::try_from(rng.below(5)).unwrap();
        let base: Vec<i64> = (0..rank)
            .map(|_| {
                [0, -7, 1 << 40, (1 << 62) - 40, -(1 << 62) + 30]
                    [usize::try_from(rng.below(5)).unwrap()]
            })
            .collect();
        let domain = Domain::new(base.iter().map(|&b| b - rng.below(5)..b + rng.below(7))).unwrap();
        let fill = [0, -1, 7][usize::try_from(rng.below(3)).unwrap()];
        let chunks: Vec<u64> = (0..rank).map(|_| 1 + rng.below(4).unsigned_abs()).collect();
        let origin: Vec<i64> = base.iter().map(|b| b + rng.below(9) - 4).collect();
        let mut order: Vec<u8> = (0..rank).map(|a| u8::try_from(a).unwrap()).collect();
        if rng.below(2) == 0 {
            order.reverse();
        }
        let codecs = [
            vec![],
            vec![Codec::shuffle(), Codec::zstd(1)],
            vec![Codec::crc32c()],
        ][usize::try_from(rng.below(3)).unwrap()]
        .clone();
        let spec = ArraySpec::<i32>::new(&domain)
            .chunks(chunks)
            .origin(origin)
            .fill(fill)
            .key_order(order)
            .codecs(codecs);
        let a = array(&w, 1, spec);
        let mut model = Model {
            domain,
            cells: BTreeMap::new(),
        };
        for step in 0..60 {
            let context = format!("round {round} step {step} domain {}", model.domain);
            let area = random_box(&mut rng, &model.domain);
            match rng.below(9) {
                0 | 1 => {
                    let points = Model::points(&area);
                    let values: Vec<i32> = points
                        .iter()
                        .map(|_| i32::try_from(rng.below(3)).unwrap() - 1)
                        .collect();
                    a.write_slice(&area, &values).unwrap();
                    model.cells.extend(points.into_iter().zip(values));
                }
                2 => {
                    let value = [fill, 5][usize::try_from(rng.below(2)).unwrap()];
                    a.write_scalar(&area, value).unwrap();
                    model
                        .cells
                        .extend(Model::points(&area).into_iter().map(|p| (p, value)));
                }
                3 => {
                    if rng.below(2) == 0 {
                        a.write_fill(&area).unwrap()
                    } else {
                        a.erase(&area).unwrap()
                    };
                    model
                        .cells
                        .extend(Model::points(&area).into_iter().map(|p| (p, fill)));
                }
                4 if rank > 0 => {
                    let axis = usize::try_from(rng.below(rank as u64)).unwrap();
                    let _ = a.grow(
                        axis,
                        rng.below(4).unsigned_abs(),
                        rng.below(4).unsigned_abs(),
                    );
                }
                5 if rank > 0 => {
                    let axis = usize::try_from(rng.below(rank as u64)).unwrap();
                    let (lo, hi) = (rng.below(3).unsigned_abs(), rng.below(3).unsigned_abs());
                    if a.trim(axis, lo, hi).is_err() {
                        assert!(lo + hi > model.domain.shape()[axis], "{context}");
                    }
                }
                6 if rank > 0 => {
                    let axis = usize::try_from(rng.below(rank as u64)).unwrap();
                    let _ = a.advance(axis, rng.below(5) - 2);
                }
                7 if rank > 0 && rng.below(4) == 0 => {
                    let by: Vec<i64> = (0..rank).map(|_| rng.below(5) - 2).collect();
                    if a.translate(&by).is_ok() {
                        let shifted =
                            |p: Vec<i64>| p.iter().zip(&by).map(|(a, b)| a + b).collect::<Vec<_>>();
                        model.cells = std::mem::take(&mut model.cells)
                            .into_iter()
                            .map(|(p, v)| (shifted(p), v))
                            .collect();
                    }
                }
                8 if rng.below(8) == 0 => {
                    w.commit().unwrap();
                }
                _ => {}
            }
            model.domain = a.domain().unwrap();
            model.cells.retain(|p, _| model.domain.contains(p));
            let area = random_box(&mut rng, &model.domain);
            assert_eq!(
                a.read_vec(&area).unwrap(),
                model.read(&area, fill),
                "{context} read {area}"
            );
            assert_eq!(
                a.read_vec(Region::all()).unwrap(),
                model.read(&model.domain, fill),
                "{context}"
            );
            for chunk in a.chunks().unwrap() {
                assert!(
                    a.compiled()
                        .unwrap()
                        .layout
                        .chunk
                        .grid
                        .meets(&chunk.coord, &model.domain),
                    "{context} {chunk:?}"
                );
            }
        }
    }
}

#[test]
fn index_lists_keep_order_and_repeats_and_masks_pick_what_is_true() {
    let w = writer();
    let a = array(
        &w,
        1,
        ArraySpec::<i32>::new(region![0..6, 0..5]).chunks([4, 2]),
    );
    let cells: Vec<i32> = (0..6)
        .flat_map(|r| (0..5).map(move |c| 10 * r + c))
        .collect();
    a.write_slice(Region::all(), &cells).unwrap();
    let outer = Selection::from(Region::all())
        .list(0, [5, 0, 0, 3])
        .list(1, [4, 1, 4]);
    assert_eq!(
        a.read_vec(&outer).unwrap(),
        [54, 51, 54, 4, 1, 4, 4, 1, 4, 34, 31, 34]
    );
    let none = Selection::from(Region::all()).list(0, []);
    assert_eq!(DynArray::read(&a, &none).unwrap().shape, [0, 5]);
    let mask = Selection::from(region![2, ..]).mask(1, [true, false, false, true, false]);
    assert_eq!(a.read_vec(&mask).unwrap(), [20, 23]);
    let short = Selection::from(Region::all()).mask(1, [true]);
    assert_eq!(a.read_vec(&short).unwrap_err().reason_code(), Some("shape"));
    let outside = Selection::from(Region::all()).list(0, [6]);
    assert_eq!(
        a.read_vec(&outside).unwrap_err().reason_code(),
        Some("out_of_domain")
    );
    a.write_slice(
        Selection::from(region![.., 0]).list(0, [1, 1, 5]),
        &[7, 8, 9],
    )
    .unwrap();
    assert_eq!(a.read_vec(region![.., 0]).unwrap(), [0, 8, 20, 30, 40, 9]);
}

#[test]
fn a_strided_read_decodes_only_the_chunks_it_needs() {
    let w = writer();
    let a = array(
        &w,
        1,
        ArraySpec::<u8>::new(region![0..4096, 0..64])
            .chunks([1, 64])
            .codecs([Codec::zstd(1)]),
    );
    a.write_scalar(Region::all(), 0).unwrap();
    a.write_slice(Region::all(), &vec![1; 4096 * 64]).unwrap();
    let (rows, receipt) = a
        .read_with_receipt(region![(0..4096).step(512), ..])
        .unwrap();
    assert_eq!(
        (rows.shape(), receipt.chunks_decoded, receipt.chunks_touched),
        (&[8, 64][..], 8, 8)
    );
    let listed = Selection::from(Region::all()).list(0, (0..8).map(|i| i * 512));
    assert_eq!(a.read_with_receipt(&listed).unwrap(), (rows, receipt));
    let b = array(&w, 2, ArraySpec::<i32>::new(region![0..360]).chunks([7]));
    b.write_slice(Region::all(), &(0..360).collect::<Vec<_>>())
        .unwrap();
    for (region, n, start, step) in [
        (region![(0..).step(4)], 90, 0, 4),
        (region![(3..).step(4)], 90, 3, 4),
        (region![(1..359).step(7)], 52, 1, 7),
        (region![(0..).step(360)], 1, 0, 360),
        (region![(0..).step(361)], 1, 0, 361),
    ] {
        assert_eq!(
            b.read_vec(region).unwrap(),
            (0..n).map(|i| start + i * step).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_sharded_array_reads_back_and_names_both_shapes() {
    let w = writer();
    let spec = ArraySpec::<i16>::new(region![-3..4, 0..8])
        .chunks([2, 3])
        .shards([4, 6])
        .fill(-1);
    let a = array(&w, 1, spec);
    assert_eq!(a.chunk_shape(), [2, 3]);
    assert_eq!(a.shard_shape().unwrap(), [4, 6]);
    let cells: Vec<i16> = (0..56).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
    assert_eq!(a.chunks().unwrap().len(), 4);
    let spec = ArraySpec::<i16>::new(region![0..512, 0..720]).shards([512, 1440]);
    assert_eq!(array(&w, 2, spec).chunk_shape(), [512, 720]);
}

/// Erasing a part of a large chunk placed the new payload but never wrote it: only batches of a write did. Every place that
/// appends now writes what it has placed before it stages.
#[test]
fn erasing_a_part_of_a_large_chunk_keeps_the_rest() {
    let w = writer();
    let spec = ArraySpec::<u32>::new(region![0..1 << 20])
        .chunks([1 << 19])
        .codecs([Codec::bytes_little_endian()]);
    let a = array(&w, 1, spec);
    let cells: Vec<u32> = (1..=1 << 20).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    a.erase(region![5..7]).unwrap();
    assert_eq!(a.read_vec(region![4..8]).unwrap(), [5, 0, 0, 8]);
    w.commit().unwrap();
    assert_eq!(a.read_vec(region![(1 << 19) - 1]).unwrap(), [1 << 19]);
}
