//! Fuzz targets, and what they are made of.
//!
//! Holds no code of its own but `targets`, `import` and `seeds`: the model, the recording disk and the crash images are
//! those of the tests, and the readers of foreign files are the command's, both included as they are.
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
#[path = "../../cli/src/foreign/mod.rs"]
mod foreign;
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

/// The one thing that `foreign` needs of a file that needs the whole command.
mod source {
    use crate::exit::{Failure, Result};

    pub(crate) fn open(path: &std::path::Path) -> Result<std::fs::File> {
        std::fs::File::open(path).map_err(|e| Failure::io("open", path, &e))
    }
}

/// The one thing that `exit` needs of a file that needs the whole command.
mod target {
    pub(crate) fn slashed(path: &str) -> String {
        format!("/{}", path.trim_start_matches('/'))
    }
}

pub mod import;
pub mod seeds;
pub mod targets;
