//! The hierarchy: paths, ids, documents, attributes, blobs.
//!
//! Must not touch payloads.
