//! The medium that a promise is shown on: memory, or a file read through a map or by positioned reads.
//!
//! Holds the only constructors by which tests of a promise that holds on every medium get their containers. Which medium,
//! `ORTHANT_TEST_MEDIUM` says: `memory` (the default), `mmap` or `pread`; `.ci/run` runs all three. Tests about one medium,
//! and those that open bytes by the hundred thousand, make their containers themselves.

use std::cell::Cell;
use std::path::PathBuf;

use orthant::{Container, OpenOptions, ReadVia};
use tempfile::TempDir;

thread_local! {
    /// The files of a test, which has a thread of its own and takes them with it.
    static FOLDER: (TempDir, Cell<u64>) = (folder(), Cell::new(0));
}

/// In memory where there is such a file system: tests of a promise need no disk to be slow.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn path() -> PathBuf {
    FOLDER.with(|(folder, count)| {
        count.set(count.get() + 1);
        folder.path().join(format!("{}.orth", count.get()))
    })
}

/// How files are read; none: there are no files.
fn via() -> Option<ReadVia> {
    match std::env::var("ORTHANT_TEST_MEDIUM").as_deref() {
        Err(_) | Ok("memory") => None,
        Ok("mmap") => Some(ReadVia::Mmap),
        Ok("pread") => Some(ReadVia::Pread),
        Ok(other) => panic!("ORTHANT_TEST_MEDIUM={other}: memory, mmap or pread"),
    }
}

/// A new container.
pub fn fresh() -> Container {
    fresh_with(&OpenOptions::new())
}

/// A new container made with `options`.
pub fn fresh_with(options: &OpenOptions) -> Container {
    match via() {
        None => options.create_in_memory().unwrap(),
        Some(via) => options.clone().via(via).create(path()).unwrap(),
    }
}

/// As [`fresh_with`], for tests that count fetched bytes: where small gaps are fetched too, which positioned reads do, it
/// is in memory.
pub fn fresh_exact(options: &OpenOptions) -> Container {
    match via() {
        Some(ReadVia::Pread) => options.create_in_memory().unwrap(),
        _ => fresh_with(options),
    }
}

/// The container that has these bytes.
pub fn held(bytes: Vec<u8>) -> orthant::Result<Container> {
    held_with(&OpenOptions::new(), bytes)
}

/// As [`held`], opened with `options`.
pub fn held_with(options: &OpenOptions, bytes: Vec<u8>) -> orthant::Result<Container> {
    match via() {
        None => options.from_bytes(bytes),
        Some(via) => {
            let path = path();
            std::fs::write(&path, bytes).unwrap();
            options.clone().via(via).open(path)
        }
    }
}

/// As [`held_with`], for tests that count fetched bytes, as [`fresh_exact`].
pub fn held_exact(options: &OpenOptions, bytes: Vec<u8>) -> Container {
    match via() {
        Some(ReadVia::Pread) => options.from_bytes(bytes).unwrap(),
        _ => held_with(options, bytes).unwrap(),
    }
}

/// The variable is heeded: a run on files that went to memory would show nothing.
#[test]
fn containers_of_tests_are_on_the_medium_that_was_asked_for() {
    let c = fresh();
    assert_eq!(c.path().is_some(), via().is_some());
    let again = held(c.to_bytes().unwrap()).unwrap();
    assert_eq!(again.path().is_some(), via().is_some());
}
