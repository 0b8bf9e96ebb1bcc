//! Foreign files that the command reads.
//!
//! Holds [`import`] for `.npy` files by themselves, and [`foreign`] for files of every kind. Must not hold parsers: they are the
//! command's, and what it uses.

use std::io::{Seek, Write};

use crate::foreign::{Content, What};
use crate::npy::Npy;

/// Bytes of elements that are read at most: a header may promise any number.
const BYTES_MAX: usize = 1 << 20;
/// Chunks that are read at most.
const CHUNKS_MAX: usize = 64;

/// Any bytes as a `.npy` file: its header, and its elements where they are few.
pub fn import(bytes: &[u8]) {
    let Ok(file) = Npy::open("input", bytes) else {
        return;
    };
    let header = &file.header;
    let len = header.count().and_then(|n| n.checked_mul(header.item()));
    if len.is_some_and(|len| len <= BYTES_MAX) {
        if let Ok(block) = file.block("input") {
            let count = block.shape.iter().product::<u64>();
            let found = match &block.elements {
                orthant::Elements::Fixed(bytes) => {
                    let item = block.data_type.item_size().unwrap_or(1).max(1);
                    bytes.len() / item
                }
                orthant::Elements::Variable(items) => items.len(),
            };
            assert_eq!(count, found as u64, "elements read and promised");
        }
    }
}

/// Any bytes as a file to import: its kind, all that is in it, and the elements and chunks of each array where they are few.
pub fn foreign(bytes: &[u8]) {
    thread_local! {
        static FILE: std::cell::RefCell<tempfile::NamedTempFile> =
            std::cell::RefCell::new(tempfile::NamedTempFile::new().unwrap());
    }
    FILE.with_borrow_mut(|file| {
        file.as_file().set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(bytes).unwrap();
        let Ok(source) = crate::foreign::open(file.path()) else {
            return;
        };
        for node in source.nodes {
            if let What::Array(array) = node.what {
                read(&array);
            }
        }
    });
}

fn read(array: &crate::foreign::Array) {
    match &array.content {
        Content::Boxes(boxes) => {
            let shape = array.facts.domain.shape();
            let item = array.facts.data_type.item_size().unwrap_or(64) as u64;
            let bytes = shape.iter().fold(item, |n, e| n.saturating_mul(*e));
            if bytes <= BYTES_MAX as u64 {
                let _ = boxes.read(&vec![0; shape.len()], &shape);
            }
        }
        Content::Chunks(chunks) => {
            let mut coords = Vec::new();
            let _ = chunks.for_each(&mut |coord| {
                if coords.len() < CHUNKS_MAX {
                    coords.push(coord.to_vec());
                }
                Ok(())
            });
            for coord in coords {
                let _ = chunks.read(&coord);
            }
        }
    }
}
