//! Elements alone: C order, little-endian, packed; variable length as a u32 count and the bytes.
//!
//! Holds [`write`]. This is also what digests are taken over.

use std::io::{self, Write};

use orthant::Elements;

/// Appends elements to `out`.
pub(crate) fn write(out: &mut dyn Write, elements: &Elements) -> io::Result<()> {
    match elements {
        Elements::Fixed(bytes) => out.write_all(bytes),
        Elements::Variable(items) => items.iter().try_for_each(|item| {
            let len = u32::try_from(item.len())
                .map_err(|_| io::Error::other("an element of 4 GiB or more"))?;
            out.write_all(&len.to_le_bytes())?;
            out.write_all(item)
        }),
    }
}
