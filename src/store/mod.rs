//! The medium: file, map, memory; locks; creation and replacement of files.
//!
//! Must not know the meaning of bytes.
