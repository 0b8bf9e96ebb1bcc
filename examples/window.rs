//! A rolling window: ten days of hourly records, the oldest cut as the newest come in.
//!
//! `cargo run --example window`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use orthant::{ArraySpec, Container, region};

const STATIONS: u64 = 50;
const WINDOW: u64 = 240;

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;
    let spec = ArraySpec::<f32>::new(region![0..0, 0..50])
        .chunks([24, 50])
        .dims(["hour", "station"])
        .fill(f32::NAN);
    let pressure = writer.create_array("pressure", spec)?;

    // The appender holds the open edge chunk decoded: a chunk is encoded when it is full, and once for a commit that
    // finds it half full. `aligned` lets the low edge wait for a chunk's end, so that no chunk is rewritten to cut it.
    let appender = pressure.appender(0)?.window(WINDOW, true);
    for hour in 0..1000_u16 {
        let record: Vec<f32> = (0_u16..50)
            .map(|station| 1000.0 + f32::from(hour) + f32::from(station) / 100.0)
            .collect();
        appender.push(&[pressure.block([STATIONS], &record)?])?;
        if hour % 6 == 5 {
            appender.commit()?; // six records become durable together
        }
    }
    appender.commit()?;

    let snapshot = container.snapshot()?;
    let pressure = snapshot.array::<f32>("pressure")?;
    println!(
        "{} in {} chunks",
        pressure.domain()?,
        pressure.chunks()?.len()
    );

    // Hour 990 is hour 990, however much has been cut below it; what is gone is an error, not another record.
    println!(
        "hour 990, station 7: {}",
        pressure.read(region![990, 7])?.first().unwrap_or(&f32::NAN)
    );
    if let Err(error) = pressure.read(region![100, 7]) {
        println!("{error}");
    }
    // For code that counts from zero: positions in this snapshot, which say how they relate to the chunks.
    let view = snapshot.zero_based("pressure")?;
    println!(
        "shape {:?}, {:?} rows into the first chunk",
        view.shape(),
        view.array_origin()?
    );
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
