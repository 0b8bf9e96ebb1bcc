//! Snapshots, the writer, commit, opening and creation.
//!
//! Must not know codecs or geometry.
