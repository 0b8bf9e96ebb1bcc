//! An answer as a `.npy` file.
//!
//! Holds [`Plan`]: the header, and how elements follow it. Text of any length becomes the fixed width that its longest
//! element needs, which has to be known first.

use std::io::{self, Write};

use orthant::{DataType, Elements};

use crate::exit::{Failure, Result};
use crate::npy::header_bytes;

/// How a type's elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// As they are stored.
    Packed,
    /// As UCS-4 of one width.
    Text,
}

impl Plan {
    /// The plan for a type, refused where NumPy has no counterpart.
    pub(crate) fn of(data_type: &DataType) -> Result<Self> {
        match data_type {
            DataType::String => Ok(Self::Text),
            other if other.numpy_descr().is_some() => Ok(Self::Packed),
            other => Err(
                Failure::usage(format!(".npy cannot hold elements of type {other}"))
                    .help("--format raw or json"),
            ),
        }
    }

    /// Whether all elements must be at hand before the first is written.
    pub(crate) fn needs_all(self) -> bool {
        self == Self::Text
    }

    /// Writes the header for `shape`; for text, `elements` are all of them.
    pub(crate) fn header(
        self,
        out: &mut dyn Write,
        data_type: &DataType,
        shape: &[u64],
        elements: Option<&Elements>,
    ) -> io::Result<()> {
        let descr = match (self, elements) {
            (Self::Text, Some(elements)) => format!("<U{}", width(elements)),
            _ => data_type.numpy_descr().unwrap_or_default(),
        };
        out.write_all(&header_bytes(&descr, shape))
    }

    /// Appends elements.
    pub(crate) fn elements(self, out: &mut dyn Write, elements: &Elements) -> io::Result<()> {
        match (self, elements) {
            (Self::Text, Elements::Variable(items)) => {
                let width = width(elements);
                for item in items {
                    let text = String::from_utf8_lossy(item);
                    let mut written = 0_usize;
                    for c in text.chars() {
                        out.write_all(&u32::from(c).to_le_bytes())?;
                        written = written.saturating_add(1);
                    }
                    for _ in written..width {
                        out.write_all(&[0; 4])?;
                    }
                }
                Ok(())
            }
            _ => super::raw::write(out, elements),
        }
    }
}

/// Characters of the longest text; NumPy has no width 0.
fn width(elements: &Elements) -> usize {
    let Elements::Variable(items) = elements else {
        return 1;
    };
    items
        .iter()
        .map(|item| String::from_utf8_lossy(item).chars().count())
        .max()
        .unwrap_or(0)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::Npy;

    #[test]
    fn text_written_here_is_read_back() {
        let texts = ["", "é✓", "abc"];
        let elements = Elements::Variable(texts.iter().map(|t| t.as_bytes().into()).collect());
        let plan = Plan::of(&DataType::String).unwrap();
        let mut out = Vec::new();
        plan.header(&mut out, &DataType::String, &[3], Some(&elements))
            .unwrap();
        plan.elements(&mut out, &elements).unwrap();
        assert!(out.windows(3).any(|w| w == b"<U3"));
        let back = Npy::open("x", &out[..]).unwrap().block("x").unwrap();
        let back = crate::source::fitted(back, &DataType::String);
        assert_eq!(back.elements, elements);
    }

    #[test]
    fn bytes_of_any_length_are_refused_with_what_can_hold_them() {
        let e = Plan::of(&DataType::Bytes).unwrap_err();
        assert!(e.to_stderr(false, false).unwrap().contains("--format raw"));
    }
}
