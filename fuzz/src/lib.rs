//! Fuzz targets, and what they are made of.
//!
//! Holds no code of its own but `targets`, `import` and `seeds`: the model, the recording disk and the crash images are
//! those of the tests, and the reader of `.npy` files is the command's, both included as they are.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --bin seeds` fills `fuzz/corpus`, then `cargo +nightly fuzz run node`.
#![allow(
    dead_code,
    unused_imports,
    clippy::all,
    reason = "of the included files only what the targets use is called"
)]

#[path = "../../tests/spec/crash.rs"]
mod crash;
#[path = "../../tests/spec/disk.rs"]
mod disk;
#[path = "../../cli/src/exit.rs"]
mod exit;
#[path = "../../tests/spec/hostile/mod.rs"]
mod hostile;
#[path = "../../cli/src/json.rs"]
mod json;
#[path = "../../tests/spec/medium.rs"]
mod medium;
#[path = "../../tests/spec/model.rs"]
mod model;
#[path = "../../cli/src/npy.rs"]
mod npy;
#[path = "../../tests/spec/support.rs"]
mod support;
#[path = "../../cli/src/text.rs"]
mod text;

/// The one thing that `exit` needs of a file that needs the whole command.
mod target {
    pub(crate) fn slashed(path: &str) -> String {
        format!("/{}", path.trim_start_matches('/'))
    }
}

pub mod import;
pub mod seeds;
pub mod targets;
