//! The forms an answer to `get` can have.
//!
//! Holds [`Format`] and how it is chosen; each form has a file of its own. Must not read arrays.

pub(crate) mod csv;
pub(crate) mod npy;
pub(crate) mod png;
pub(crate) mod raw;
pub(crate) mod terminal;

use std::path::Path;

use clap::ValueEnum;

use crate::exit::{Failure, Result};

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// NumPy's file
    Npy,
    /// A table for one or two axes, else one element a line
    Csv,
    /// Nested lists
    Json,
    /// Elements alone: C order, little-endian, packed
    Raw,
    /// A picture of a slice of two axes
    Png,
}

impl Format {
    /// The form that a file name asks for.
    pub(crate) fn of_path(path: &Path) -> Result<Self> {
        let suffix = path
            .extension()
            .map(|s| s.to_string_lossy().to_ascii_lowercase());
        match suffix.as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("raw") => Ok(Self::Raw),
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::usage(format!(
                "-o {}: the name does not say the format",
                path.display()
            ))
            .help("name it .npy, .csv, .json, .raw or .png, or give --format")),
        }
    }
}
