//! A camera mosaic around a start point: frames land on any side, and the image grows to hold them.
//!
//! `cargo run --example mosaic`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use ndarray::Array2;
use orthant::{Array, ArraySpec, Container, Domain, region};

const FRAME: i64 = 96;
/// Where the camera was at each exposure, in pixels from where it was switched on.
const PATH: [(i64, i64); 6] = [
    (0, 0),
    (-60, 35),
    (-130, -20),
    (-75, -110),
    (20, -150),
    (90, -60),
];

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;

    // Nothing yet, at the start point. The chunk grid has a corner there too, and never moves.
    let spec = ArraySpec::<u8>::new(region![0..0, 0..0])
        .chunks([64, 64])
        .dims(["y", "x"]);
    let mosaic = writer.create_array("mosaic", spec)?;

    for (brightness, (y, x)) in (40..).step_by(30).zip(PATH) {
        let frame = Array2::from_elem((96, 96), brightness);
        place(&mosaic, y, x, &frame)?;
        writer.commit()?; // the mosaic is whole after each frame
        println!(
            "frame at ({y}, {x}): now {}, {} chunks",
            mosaic.domain()?,
            mosaic.chunks()?.len()
        );
    }

    // Later frames lie on top; the start point is still (0, 0).
    let mosaic = container.snapshot()?.array::<u8>("mosaic")?;
    println!("at the start point: {}", mosaic.read(region![0, 0])?);
    let stored: usize = mosaic.chunks()?.len();
    println!(
        "{stored} of {} chunks are stored",
        mosaic.grid_chunks()?.unwrap_or(0)
    );
    Ok(())
}

/// Grows the domain so that it holds the frame, then writes it: one step for a reader, for both are in one commit.
fn place(mosaic: &Array<u8>, y: i64, x: i64, frame: &Array2<u8>) -> orthant::Result<()> {
    let domain = mosaic.domain()?;
    let corner = [y, x];
    let grown = domain.ranges().zip(corner).map(|(held, from)| {
        if held.is_empty() {
            from..from + FRAME
        } else {
            held.start.min(from)..held.end.max(from + FRAME)
        }
    });
    mosaic.set_domain(Domain::new(grown)?)?;
    mosaic.write(region![y..y + FRAME, x..x + FRAME], frame.view())?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
