//! Files made to be wrong, with right checksums: each ends in the error that is written beside it, in time, in little memory,
//! and what is not touched reads on.
//!
//! The corpus is also the seed of the fuzz targets. The builder is in `forge`, the cases by what they lie about; `run` and
//! `large` show them to the library.

pub mod cases;
pub mod forge;
mod head;
mod nodes;
mod objects;
mod payloads;

use cases::Case;

/// The whole corpus.
pub fn corpus() -> Vec<Case> {
    let parts: [fn() -> Vec<Case>; 14] = [
        head::shapes,
        head::headers,
        head::slots,
        head::records,
        nodes::leaves,
        nodes::trees,
        nodes::keys,
        objects::documents,
        objects::directories,
        objects::chunk_records,
        objects::attributes,
        payloads::streams,
        payloads::elements,
        payloads::shards,
    ];
    parts.iter().flat_map(|part| part()).collect()
}
