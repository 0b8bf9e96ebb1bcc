//! What several promises need: vectors, containers, shorthand.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::medium::{fresh, held};
use orthant::testing::Raw;
use orthant::{ArraySpec, CheckLevel, ChunkState, Container, DynArray, Element, Problem, Writer};
use serde_json::Value;

/// A test file kept in the repository.
pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A JSON file kept in the repository.
pub fn json(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(name)).unwrap()).unwrap()
}

/// A JSON vector kept in the repository.
pub fn vector(name: &str) -> Value {
    json(&format!("vectors/{name}"))
}

/// The integers of a JSON list.
pub fn ints(v: &Value) -> Vec<i64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_i64().unwrap())
        .collect()
}

/// Bytes written as hex digits.
pub fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

/// The elements' bytes of a `.npy` file of version 1.
pub fn npy(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(data(name)).unwrap();
    let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[head..].to_vec()
}

/// A container in memory with a writer.
pub fn writer() -> Writer {
    fresh().writer().unwrap()
}

/// A new array `a` in a container of its own.
pub fn array<T: Element>(w: &Writer, spec: ArraySpec<T>) -> orthant::Array<T> {
    w.create_array("a", spec).unwrap()
}

/// The last `len` bytes of a test file: of a `.npy` file, its values.
pub fn npy_tail(name: &str, len: usize) -> Vec<u8> {
    let all = std::fs::read(data(name)).unwrap();
    all[all.len() - len..].to_vec()
}

/// The container as one who opens its bytes finds it.
pub fn reopened(c: &Container) -> Container {
    held(c.to_bytes().unwrap()).unwrap()
}

/// Everything that `check` says about the newest generation, every chunk decoded.
pub fn problems(c: &Container) -> Vec<Problem> {
    let mut all = Vec::new();
    let s = c.snapshot().unwrap();
    s.check(
        CheckLevel::Data,
        |_, _| ControlFlow::Continue(()),
        |p| all.push(p),
    )
    .unwrap();
    all
}

/// The container is whole.
pub fn verify(c: &Container) {
    let problems = problems(c);
    assert!(problems.is_empty(), "{problems:?}");
}

/// The same container with another payload for a chunk of the array `id` (ids count from 1 as objects are created). The
/// checksum in the index is that of the new payload, so only the codecs can notice.
pub fn with_payload(c: &Container, id: u64, coord: &[i64], payload: &[u8]) -> Container {
    let raw = Raw::from_bytes(c.to_bytes().unwrap()).unwrap();
    let w = raw.writer().unwrap();
    w.put_chunk(id, coord, payload).unwrap();
    w.commit().unwrap();
    held(raw.to_bytes().unwrap()).unwrap()
}

/// Coordinates of the chunks that have an entry, in key order.
pub fn coords(a: &DynArray) -> Vec<Vec<i64>> {
    a.chunks().unwrap().into_iter().map(|c| c.coord).collect()
}

/// Where each stored payload lies, by chunk.
pub fn extents(a: &DynArray) -> Vec<(Vec<i64>, u64, u64)> {
    let extent = |c: orthant::StoredChunk| match c.state {
        ChunkState::Stored { offset, len, .. } => Some((c.coord, offset, len)),
        _ => None,
    };
    a.chunks().unwrap().into_iter().filter_map(extent).collect()
}

/// How often something is done: `ci` times, or `long` times where `ORTHANT_LONG` is set.
pub fn rounds(ci: u64, long: u64) -> u64 {
    match std::env::var_os("ORTHANT_LONG") {
        None => ci,
        Some(_) => long,
    }
}

/// Prints a figure for `RELIABILITY.md`, which `tests/reliability.py` gathers: so much of that was done, and none was bad.
pub fn figure(row: u32, what: &str, count: u64) {
    println!("figure {row}: {what} = {count}");
}

/// Runs `f` and says how long it took.
pub fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let done = f();
    (done, start.elapsed())
}

/// Limits of time hold for an optimised build on a quiet machine; elsewhere only a hang is told from a slow call.
pub fn within(limit: Duration) -> Duration {
    if cfg!(debug_assertions) {
        limit * 40
    } else {
        limit * 4
    }
}

/// A folder that goes with the test, and a path in it.
pub fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

/// The test named `test` of this binary in another process, with `ORTHANT_CHILD` set to what it is to work on.
pub fn child(test: &str, work: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("ORTHANT_CHILD", work);
    command
}

/// What a test that serves as another process is to work on; none in an ordinary run, where it has nothing to do.
pub fn child_work() -> Option<PathBuf> {
    std::env::var_os("ORTHANT_CHILD").map(PathBuf::from)
}
