//! A map that grows west and north, while the names of places on it stay what they were.
//!
//! `cargo run --example map`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use ndarray::Array2;
use orthant::{ArraySpec, Container, region};

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;

    // Rows count from the equator southward, columns from the meridian eastward: north and west are negative.
    let spec = ArraySpec::<u16>::new(region![0..600, 0..800])
        .chunks([256, 256])
        .dims(["row", "column"])
        .fill(u16::MAX);
    let height = writer.create_array("height", spec)?;
    height.write_scalar(region![.., ..], 120)?;
    let summit = region![250, 300];
    height.write_scalar(summit.clone(), 4478)?;
    writer.commit()?;

    // A strip of 70 columns to the west: only the chunks it lies in are written, whatever the size of the map.
    let west = height.prepend(1, Array2::from_elem((600, 70), 35_u16).view())?;
    println!(
        "west:  {} chunks written, {} decoded; now {}",
        west.chunks_written,
        west.chunks_decoded,
        height.domain()?
    );

    // Three rows to the north. The corner that neither strip covers is the fill value.
    let north = height.prepend(0, Array2::from_elem((3, 870), 8_u16).view())?;
    println!(
        "north: {} chunks written, {} decoded; now {}",
        north.chunks_written,
        north.chunks_decoded,
        height.domain()?
    );
    writer.commit()?;

    // The summit is where it was.
    let height = container.snapshot()?.array::<u16>("height")?;
    assert_eq!(height.read(summit)?.first(), Some(&4478));
    println!(
        "top left {}, summit {}",
        height.read(region![-3, -70])?,
        height.read(region![250, 300])?
    );

    // Cut off and grown again, a strip reads as the fill value: what was trimmed cannot come back.
    let height = writer.array::<u16>("height")?;
    let cut = height.trim(0, 3, 0)?;
    height.grow(0, 3, 0)?;
    println!(
        "{} chunks dropped, {} scrubbed; row -1 is {} again",
        cut.dropped,
        cut.scrubbed,
        height.read(region![-1, 0])?
    );
    writer.commit()?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
