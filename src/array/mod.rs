//! Region -> chunks -> elements: array specifications, reading and writing.
//!
//! Must not know node layout or syncs.
