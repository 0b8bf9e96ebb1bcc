//! Tests of the room as a whole: whole pipelines, foreign payloads, hostile payloads.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    clippy::cast_possible_truncation,
    reason = "small numbers, counts of whole elements, and low bytes of made-up values"
)]

mod fixtures;
mod hostile;
mod payloads;
mod pipelines;
mod shards;

use super::{Codec, Pipeline, resolve};
use crate::error::Result;
use crate::format::dtype::DataType;
use crate::limits::Limits;

/// The pipeline that a command's list names.
fn pipeline(list: &str, data_type: &DataType, shape: &[u64]) -> Result<Pipeline> {
    let specs = resolve(&Codec::list(list)?, data_type)?;
    let fill = vec![0; data_type.item_size().unwrap_or(0)];
    Pipeline::new(&specs, data_type, shape, &fill, &Limits::default())
}

/// A pipeline over single bytes.
fn of_bytes(list: &str, len: usize) -> Pipeline {
    pipeline(list, &DataType::Uint8, &[len as u64]).unwrap()
}

fn encoded(pipeline: &Pipeline, decoded: &[u8]) -> Vec<u8> {
    // Whatever lies in the buffer must neither show nor matter.
    let mut payload = vec![0xaa; 3];
    pipeline.encode(decoded, &mut payload).unwrap();
    payload
}

fn decoded(pipeline: &Pipeline, payload: &[u8]) -> Result<Vec<u8>> {
    let mut chunk = vec![0x55; pipeline.decoded_len()];
    pipeline.decode(payload, 0, &mut chunk)?;
    Ok(chunk)
}

/// Bytes that no codec shrinks, without a generator to depend on.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Names of compressors that this build has.
fn compressors() -> Vec<&'static str> {
    let mut names = Vec::new();
    if cfg!(feature = "zstd") {
        names.extend(["zstd:-7", "zstd:1", "zstd:3", "zstd:19"]);
    }
    if cfg!(feature = "lz4") {
        names.push("lz4");
    }
    if cfg!(feature = "deflate") {
        names.extend(["zlib:0", "zlib:1", "zlib:9", "gzip:0", "gzip:5"]);
    }
    names
}
