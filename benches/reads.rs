//! Reads within and across chunks, for comparison between changes of the code. What has to be compared within one run
//! stands in `foundation`.
//!
//! `cargo bench --bench reads`. In memory, so that no disk is measured.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run has to stop"
)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ndarray::Array2;
use orthant::{ArraySpec, Codec, Container, region};

/// 1000 x 1000 f32 in 100 x 100 chunks, written and committed.
fn square() -> orthant::Result<Container> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;
    let spec = ArraySpec::<f32>::new(region![0..1000, 0..1000])
        .chunks([100, 100])
        .codecs(Codec::raw_profile());
    let array = writer.create_array("square", spec)?;
    array.write(
        region![.., ..],
        Array2::from_elem((1000, 1000), 1.5_f32).view(),
    )?;
    writer.commit()?;
    Ok(container)
}

fn reads(criterion: &mut Criterion) {
    let container = square().unwrap();
    let array = container
        .snapshot()
        .unwrap()
        .array::<f32>("square")
        .unwrap();
    let mut out = vec![0.0; 100 * 100];
    let mut group = criterion.benchmark_group("read 100 x 100");
    group.bench_function("one chunk", |bench| {
        bench.iter(|| {
            array
                .read_into(region![300..400, 500..600], &mut out)
                .unwrap()
        });
    });
    group.bench_function("across four", |bench| {
        bench.iter(|| {
            array
                .read_into(region![350..450, 550..650], &mut out)
                .unwrap()
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
    targets = reads
}
criterion_main!(benches);
