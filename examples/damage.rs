//! A container whose slots, index and payloads are damaged: what check says, and what a salvage brings back.
//!
//! `cargo run --example damage`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::ops::ControlFlow;

use orthant::{ArraySpec, CheckLevel, ChunkState, Container, region};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = |name| {
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::remove_file(&path).ok();
        path
    };
    let path = temporary("damaged.orth");
    let container = Container::create(&path)?;
    let writer = container.writer()?;
    let spec = ArraySpec::<i32>::new(region![-8..8]).chunks([4]);
    let depth = writer.create_array("survey/depth", spec)?;
    let cells: Vec<i32> = (100..116).collect();
    depth.write_slice(region![..], &cells)?;
    writer.commit()?;
    let Some(ChunkState::Stored { offset, .. }) = container
        .snapshot()?
        .dyn_array("survey/depth")?
        .chunks()?
        .get(1)
        .map(|chunk| chunk.state)
    else {
        return Err("no such chunk".into());
    };
    drop((depth, writer, container));

    // One bit of a payload: every other chunk reads as before, and a check names the one.
    let mut bytes = std::fs::read(&path)?;
    let at = usize::try_from(offset)?;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1;
    }
    std::fs::write(&path, &bytes)?;
    let go_on = |_done, _total| ControlFlow::Continue(());
    let snapshot = Container::open_read_only(&path)?.snapshot()?;
    snapshot.check(CheckLevel::Full, go_on, |problem| {
        println!("check: {}", problem.error);
    })?;

    // Both slots too: nothing opens this file.
    if let Some(slots) = bytes.get_mut(0x1000..0x3000) {
        slots.fill(0);
    }
    std::fs::write(&path, &bytes)?;
    assert!(Container::open_read_only(&path).is_err());

    let saved = temporary("saved.orth");
    let report = Container::salvage(&path, &saved, go_on, |loss| {
        println!("lost {}: {}", loss.kind.code(), loss.error);
    })?;
    println!("{report:?}");

    let depth = Container::open_read_only(&saved)?
        .snapshot()?
        .array::<i32>("survey/depth")?;
    let cells = depth.read_vec(region![..])?;
    assert_eq!(
        cells,
        [
            100, 101, 102, 103, 0, 0, 0, 0, 108, 109, 110, 111, 112, 113, 114, 115
        ]
    );
    std::fs::remove_file(path)?;
    std::fs::remove_file(saved)?;
    Ok(())
}
