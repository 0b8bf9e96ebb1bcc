//! The promises of the library, one module each. A test's name is the promise.
#![expect(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::integer_division,
    clippy::print_stdout,
    unreachable_pub,
    reason = "tests of a promise are read as sentences, not as an interface"
)]

mod borrowed;
mod caches;
mod cases;
mod chunk_level;
mod compact;
mod corrupt;
mod crash;
mod diff;
mod disk;
mod doubt;
mod faults;
mod files;
mod foreign_shards;
mod forked;
mod founding_text;
#[path = "../../fuzz/src/seeds.rs"]
mod fuzz_seeds;
#[path = "../../fuzz/src/targets.rs"]
mod fuzz_targets;
mod fuzzed;
mod golden;
mod growth;
mod heap;
mod hostile;
#[path = "hostile/large.rs"]
mod hostile_large;
#[path = "hostile/run.rs"]
mod hostile_run;
mod injected;
mod limits;
mod medium;
mod model;
mod mutated;
mod nested;
mod pin_model;
mod platter;
mod rechunk;
mod references;
mod salvage;
mod second_reader;
mod sharding;
mod signed_vectors;
mod snapshots;
mod space;
mod steps;
mod support;
mod together;
