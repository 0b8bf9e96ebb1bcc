//! Adopted chunks are the source's to the byte: over every Zarr store of the shared data, chunk file by chunk file.
//!
//! The folder is `../shared/data` beside the project, or `ORTHANT_SHARED/data`; without it the test says that it was skipped.

use std::path::{Path, PathBuf};

use orthant::Json;

use crate::host::{Host, arg, str_of, text_of};
use crate::real_files::{shared, wanted};

/// Files of a folder and below that are not documents, by the bytes they hold.
fn files(folder: &Path, all: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, all);
        } else if !name.starts_with(".z") && name != "zarr.json" {
            all.push(std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn adopted_chunks_are_the_chunk_files_of_every_store() {
    let Some(data) = shared() else { return };
    let (mut stores, mut arrays, mut chunks, mut bytes) = (0, 0, 0, 0);
    for source in wanted(&data).keys() {
        let kind = source.split('/').next().unwrap();
        let root: PathBuf = data.join(source);
        if !matches!(kind, "zarr2" | "zarr3" | "ome-zarr") || !root.is_dir() {
            continue;
        }
        let host = Host::new();
        let report = host
            .run(&["import", &arg(&root), "x.orth", "--json"])
            .json();
        stores += 1;
        let container = || host.read("x.orth");
        let mut held = None;
        for row in report.get("arrays").and_then(Json::as_array).unwrap() {
            if text_of(row, "result") != "\"adopted\"" || text_of(row, "chunks") == "0" {
                continue;
            }
            arrays += 1;
            let mut stored = Vec::new();
            let inside = str_of(row, "source").trim_start_matches('/');
            files(&root.join(inside), &mut stored);
            let path = str_of(row, "path");
            let stat = host.json(&["stat", "x.orth", "--path", path, "--chunks"]);
            let file = held.get_or_insert_with(container);
            for chunk in stat.get("chunks").and_then(Json::as_array).unwrap() {
                let number = |key: &str| text_of(chunk, key).parse::<usize>().unwrap();
                let payload = &file[number("offset")..][..number("stored_bytes")];
                // Each file is one chunk: it is taken out when it is found.
                let at = stored.iter().position(|b| b == payload);
                let at = at.unwrap_or_else(|| panic!("{source} {inside}: {chunk}"));
                stored.swap_remove(at);
                chunks += 1;
                bytes += payload.len();
            }
        }
    }
    println!("{stores} stores, {arrays} adopted arrays, {chunks} chunks, {bytes} bytes");
    assert!(stores > 50 && chunks > 100);
}
