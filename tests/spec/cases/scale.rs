//! Areas K and L: many small things, and what a declared grid costs.

use std::time::Duration;

use orthant::{ArraySpec, Codec, Container, Region, region};

use crate::heap::peak_of;
use crate::medium::fresh;
use crate::support::{scratch, timed, verify, within, writer};

#[test]
fn c107_one_cell_a_chunk_stays_small_and_fast() {
    let (_folder, path) = scratch("cells.orth");
    let n = 100_000_i32;
    let cells: Vec<f64> = (0..n).map(f64::from).collect();
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        let spec = ArraySpec::<f64>::new(region![0..n]).chunks([1]);
        w.create_array("a", spec.fill(-1.0).codecs(Codec::raw_profile()))
            .unwrap()
            .write_slice(Region::all(), &cells)
            .unwrap();
        w.commit().unwrap();
    }
    let size = std::fs::metadata(&path).unwrap().len();
    let a = Container::open(&path)
        .unwrap()
        .snapshot()
        .unwrap()
        .array::<f64>("a")
        .unwrap();
    let ((found, peak), took) = timed(|| peak_of(|| a.read_vec(Region::all()).unwrap()));
    assert_eq!(found, cells);
    println!("{size} bytes of file, read whole in {took:?} with {peak} bytes");
    assert!(size < 6_400_000, "{size}");
    assert!(took < within(Duration::from_secs(1)), "{took:?}");
    assert!(peak < 32 << 20, "{peak}");
    let c = Container::open(&path).unwrap();
    let s = c.snapshot().unwrap();
    assert!(s.statistics().unwrap().depth <= 5);
    let a = s.array::<f64>("a").unwrap();
    assert_eq!(a.read_vec(region![77_777]).unwrap(), [77_777.0]);
}

#[test]
fn c112_thin_chunks_cost_at_most_ten_times_thick_ones() {
    let cells: Vec<f64> = (0..250_000).map(f64::from).collect();
    let time = |rows: u64| {
        let c = fresh();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<f64>::new(region![0..5000, 0..50]).chunks([rows, 50]);
        w.create_array("a", spec.codecs(Codec::raw_profile()))
            .unwrap()
            .write_slice(Region::all(), &cells)
            .unwrap();
        w.commit().unwrap();
        let a = c.snapshot().unwrap().array::<f64>("a").unwrap();
        let mut out = vec![0.0; 250_000];
        let took = (0..10)
            .map(|_| timed(|| a.read_into(Region::all(), &mut out).unwrap()).1)
            .min()
            .unwrap();
        assert_eq!(out, cells);
        took
    };
    let (thin, thick) = (time(1), time(500));
    println!("thin {thin:?}, thick {thick:?}");
    assert!(thin < within(Duration::from_millis(25)), "{thin:?}");
    // The factor is stated for an optimised build; a checked one only has to stay in reach of it.
    let factor = if cfg!(debug_assertions) { 100 } else { 20 };
    assert!(
        thin < factor * thick.max(Duration::from_micros(50)),
        "{thin:?} {thick:?}"
    );
}

#[test]
fn c113_declared_chunks_cost_nothing() {
    for (domain, chunks) in [
        (region![0..1000, 0..1000, 0..1000], vec![1, 1, 1]),
        (region![0..1_i64 << 31, 0..1_i64 << 31], vec![1, 1]),
    ] {
        let rank = chunks.len();
        let w = writer();
        let limit = within(Duration::from_millis(20));
        let step = |what: &str, took: Duration, peak: usize| {
            assert!(took < limit, "{what}: {took:?}");
            assert!(peak < 16 << 20, "{what}: {peak} bytes");
        };
        let ((a, peak), took) = timed(|| {
            peak_of(|| {
                let spec = ArraySpec::<f32>::new(domain.clone()).chunks(chunks.clone());
                w.create_array("a", spec).unwrap()
            })
        });
        step("create", took, peak);
        let cell = |k: i64| -> Region {
            (0..rank)
                .map(|axis| orthant::RegionItem::from(k * 97 + axis as i64))
                .collect()
        };
        let (((), peak), took) = timed(|| {
            peak_of(|| {
                for k in 0..10 {
                    a.write_scalar(cell(k), 1.0).unwrap();
                }
            })
        });
        step("write", took, peak);
        let ((found, peak), took) = timed(|| peak_of(|| a.read_vec(cell(3)).unwrap()));
        step("read", took, peak);
        assert_eq!(found, [1.0]);
        let ((found, peak), took) = timed(|| peak_of(|| a.chunks().unwrap()));
        step("list", took, peak);
        assert_eq!(found.len(), 10);
        let ((receipt, peak), took) = timed(|| peak_of(|| a.explain(Region::all()).unwrap()));
        step("explain", took, peak);
        assert_eq!(receipt.chunks_constant, 10);
        let ((_, peak), took) = timed(|| peak_of(|| a.erase(Region::all()).unwrap()));
        step("erase", took, peak);
    }
}

#[test]
fn c113_opening_and_checking_a_sparse_container_follows_what_is_stored() {
    let (_folder, path) = scratch("sparse.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        let spec = ArraySpec::<f32>::new(region![0..1000, 0..1000, 0..1000]).chunks([1, 1, 1]);
        let a = w.create_array("a", spec).unwrap();
        a.write_scalar(region![5, 5, 5], 1.0).unwrap();
        w.commit().unwrap();
    }
    let (c, took) = timed(|| Container::open(&path).unwrap());
    assert!(took < within(Duration::from_millis(20)), "{took:?}");
    let ((), took) = timed(|| verify(&c));
    assert!(took < within(Duration::from_millis(20)), "{took:?}");
}
