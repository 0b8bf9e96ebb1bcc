//! Encoded <-> decoded payload: what a `CodecSpec` names, and the pipeline that runs them.
//!
//! Must not know file offsets, locks or the index.
