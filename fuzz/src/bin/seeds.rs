//! Writes `fuzz/corpus/TARGET/*`: `cargo run --manifest-path fuzz/Cargo.toml --bin seeds`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, seeds) in orthant_fuzz::seeds::seeds(&fuzz.join(".."))? {
        let folder = fuzz.join("corpus").join(&target);
        std::fs::create_dir_all(&folder)?;
        for (i, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i:04}")), seed)?;
        }
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}
