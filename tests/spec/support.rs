//! What several promises need: vectors, containers, shorthand.

use std::path::PathBuf;

use orthant::{ArraySpec, Container, Element, Writer};
use serde_json::Value;

/// A test file kept in the repository.
pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A JSON vector kept in the repository.
pub fn vector(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data("vectors").join(name)).unwrap()).unwrap()
}

/// The integers of a JSON list.
pub fn ints(v: &Value) -> Vec<i64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_i64().unwrap())
        .collect()
}

/// A container in memory with a writer.
pub fn writer() -> Writer {
    Container::in_memory().unwrap().writer().unwrap()
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
