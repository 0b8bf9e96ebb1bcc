//! Foreign files that the command reads with code of its own.
//!
//! Holds [`import`]. Must not hold parsers: they are the command's.

use crate::npy::Npy;

/// Elements that are read at most: a header may promise any number.
const BYTES_MAX: usize = 1 << 20;

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
