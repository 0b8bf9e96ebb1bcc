//! A forecast archive that grows at one end: every run adds its steps to all arrays, in one commit.
//!
//! `cargo run --example forecast`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use ndarray::{Array1, Array3};
use orthant::{ArraySpec, Container, DataType, TimeUnit, Writer, region};

const HOUR: i64 = 3600;
/// Hours since 1970 of the first run.
const START: i64 = 438_288;
const STEPS: i64 = 12;

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;

    // The time axis starts without extent, at the hour the archive begins. Its coordinate is hours since 1970, so that a
    // step's place says when it is, and stays the same whatever is added or cut later.
    let field = ArraySpec::<f32>::new(region![START..START, 0..90, 0..180])
        .chunks([24, 45, 90])
        .dims(["time", "y", "x"])
        .fill(f32::NAN);
    writer.create_array("run/temperature", field.clone())?;
    writer.create_array("run/wind", field)?;
    let axis = ArraySpec::<i64>::new(region![START..START])
        .data_type(DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        })
        .chunks([1024])
        .dims(["time"]);
    writer.create_array("run/time", axis)?;

    for run in 0..4 {
        add_run(&writer, run)?;
        let generation = writer.commit()?; // a reader sees all three arrays longer, or none
        let temperature = container.snapshot()?.array::<f32>("run/temperature")?;
        println!("generation {generation}: {}", temperature.domain()?);
    }

    // The last run's first field, by its hour.
    let hour = START + 3 * STEPS;
    let snapshot = container.snapshot()?;
    let now = snapshot
        .array::<f32>("run/temperature")?
        .read(region![hour, .., ..])?;
    let seconds = snapshot.array::<i64>("run/time")?.read(region![hour])?;
    println!(
        "{:?} at {} s since 1970: {} K in the corner",
        now.shape(),
        seconds.first().unwrap_or(&0),
        now.first().unwrap_or(&f32::NAN)
    );
    Ok(())
}

fn add_run(writer: &Writer, run: i64) -> orthant::Result<()> {
    let first = START + run * STEPS;
    let hours: Array1<i64> = (first..first + STEPS).map(|hour| hour * HOUR).collect();
    let field = |value: f32| Array3::from_elem((12, 90, 180), value);
    writer.array::<i64>("run/time")?.append(0, hours.view())?;
    writer
        .array::<f32>("run/temperature")?
        .append(0, field(290.0).view())?;
    writer
        .array::<f32>("run/wind")?
        .append(0, field(5.0).view())?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
