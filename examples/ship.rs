//! A container compacted, copied beside its writer, archived, and compared.
//!
//! `cargo run --example ship`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::ops::ControlFlow;

use orthant::{ArchiveOptions, ArraySpec, Container, CopyOptions, DiffOptions, region};

fn main() -> orthant::Result<()> {
    let temporary = |name| {
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::remove_file(&path).ok();
        path
    };
    let path = temporary("ocean.orth");
    let container = Container::create(&path)?;
    let writer = container.writer()?;
    let spec = ArraySpec::<i32>::new(region![-48..0, 0..64]).chunks([24, 32]);
    let temp = writer.create_array("temp", spec)?;
    for day in 0..5 {
        temp.write_slice(region![.., ..], &[day; 48 * 64])?;
        writer.commit()?;
    }
    let go_on = |_done, _total| ControlFlow::Continue(());

    // One generation, beside a writer that goes on.
    let monday = temporary("monday.orth");
    let snapshot = container.snapshot()?;
    snapshot.copy_to(&monday, CopyOptions::new(), go_on)?;

    // What has changed since.
    temp.write_slice(region![-1..0, 0..1], &[99])?;
    writer.commit()?;
    let now = container.snapshot()?;
    let diff = snapshot.diff(&now, &DiffOptions::new())?;
    for changed in &diff.changed {
        println!("{} in chunks {:?}", changed.path, changed.chunks);
    }

    // A file that follows from the content, the identity and the time alone.
    let archive = ArchiveOptions::new(*b"ocean, 2026-11-1").time(1_764_547_200_000_000_000);
    assert_eq!(
        now.archive_to_bytes(archive)?,
        now.archive_to_bytes(archive)?
    );

    // The same container without dead space; the old handles read on, and have to be opened again to write.
    drop(writer);
    if let Some(report) = container.compact(CopyOptions::new(), go_on)? {
        println!(
            "{} bytes before, {} after",
            report.bytes_in, report.bytes_out
        );
    }
    let container = Container::open(&path)?;
    assert!(
        container
            .snapshot()?
            .diff(&now, &DiffOptions::new())?
            .is_empty()
    );
    std::fs::remove_file(path).ok();
    std::fs::remove_file(monday).ok();
    Ok(())
}
