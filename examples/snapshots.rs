//! Generations that are kept: named, read beside the present, and brought back.
//!
//! `cargo run --example snapshots`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use orthant::{ArraySpec, At, Container, region};

fn main() -> orthant::Result<()> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;
    let temp = writer.create_array("temp", ArraySpec::<f32>::new(region![-5..5]))?;
    temp.write_slice(region![..], &[1.0; 10])?;
    writer.commit()?;

    writer.retain("v1")?; // what is committed now, kept from the next commit on
    temp.write_slice(region![-5..0], &[2.0; 5])?;
    writer.message("new calibration")?;
    writer.commit()?;

    let old = container.snapshot_at(&At::Name("v1".to_owned()))?;
    let before = old.array::<f32>("temp")?.read_vec(region![-1..1])?;
    let now = container.snapshot()?.array::<f32>("temp")?;
    println!("{before:?}, now {:?}", now.read_vec(region![-1..1])?);

    writer.restore(&old)?; // staged like any change; no payload is copied
    writer.message("back to v1")?;
    writer.commit()?;
    for commit in container.log()? {
        println!("{} {:?}", commit.generation, commit.message);
    }

    // What v1 alone held is written to again by the commits that follow, once nobody reads it any more.
    drop(old);
    writer.release("v1")?;
    writer.commit()?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
