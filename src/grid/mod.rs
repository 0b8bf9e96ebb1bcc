//! Signed boxes, floor division, chunk grids, regions and strided copies.
//!
//! Pure arithmetic. Must not know file offsets, codecs or handles.
