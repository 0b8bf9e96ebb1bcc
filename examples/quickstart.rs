//! Makes a container, writes a box, reads it back from a snapshot, and asks what a read cost.
//!
//! `cargo run --example quickstart`
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "an example shows what it does, on numbers that are small"
)]

use ndarray::Array2;
use orthant::{ArraySpec, Codec, Container, ErrorKind, region};

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?; // `Container::create(path)` for a file

    let writer = container.writer()?;
    let spec = ArraySpec::<f64>::new(region![-40..60, 0..200])
        .chunks([25, 100])
        .dims(["depth", "x"])
        .fill(f64::NAN)
        .codecs([Codec::shuffle(), Codec::zstd(3), Codec::crc32c()]);
    let salinity = writer.create_array("survey/salinity", spec)?;
    salinity.attributes().set("units", "g/kg")?;
    salinity.attributes().set("station", 17_i64)?;
    let block = Array2::from_shape_fn((50, 200), |(y, x)| 34.0 + y as f64 * 0.01 + x as f64 * 1e-4);
    salinity.write(region![-40..10, ..], block.view())?;
    let generation = writer.commit()?;

    let snapshot = container.snapshot()?;
    let salinity = snapshot.array::<f64>("survey/salinity")?;
    println!(
        "generation {generation}: {} over {}",
        salinity.path(),
        salinity.domain()?
    );
    for (name, value) in salinity.attributes().list()? {
        println!("  {name} = {}", value.to_json());
    }

    // Rows of chunks start at multiples of 25, so the box lies in two of them; 60 is the first coordinate outside.
    let (read, receipt) = salinity.read_with_receipt(region![-10..20, 150])?;
    let (first, last) = (read.first(), read.last());
    println!("{} elements, from {first:?} to {last:?}", read.len());
    println!(
        "touched {} chunks, decoded {} ({} absent), {:.0} bytes decoded per byte asked for",
        receipt.chunks_touched,
        receipt.chunks_decoded,
        receipt.chunks_absent,
        receipt.amplification()
    );
    match salinity.read(region![60, 150]) {
        Err(error) if error.kind() == ErrorKind::OutOfDomain => {
            println!("as it should be: {error}");
        }
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
