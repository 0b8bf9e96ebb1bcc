//! The command as scripts use it: verbs, flags, exit codes and JSON keys.
//!
//! Each module is one promise. Tests run the built binary in a folder of their own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails should say where"
)]

mod adding;
mod adopting;
mod errors;
mod exporting;
mod foreign;
mod growing;
mod hdf5;
mod host;
mod images;
mod importing;
mod keeping;
mod memory;
mod naming;
mod numbers;
mod objects;
mod pictures;
mod reading;
mod real_files;
mod references;
mod salvaging;
mod shipping;
mod storing;
mod whole;
mod writing;
