//! Reading and placing blobs through views and writers.
//!
//! Holds the way from a blob's value to its bytes and back. Must not interpret the content.

use crate::error::{Error, Result};
use crate::format::ALIGN;
use crate::format::blob::{Blob, Content};
use crate::format::key::Value;
use crate::limits::{INLINE_LEN_MAX, Limits};
use crate::txn::{Payload, View, WriterState};

/// Gives the bytes of the blob `value` to `read`; those of an extent are verified first.
pub(crate) fn read_blob<T>(
    view: &View,
    value: &[u8],
    read: impl FnOnce(Content, &[u8], &Limits) -> Result<T>,
) -> Result<T> {
    let limits = view.limits();
    match Blob::decode(value)? {
        Blob::Inline(content, bytes) => read(content, bytes, limits),
        Blob::Stored(content, extent) => {
            if extent.len > limits.value_bytes {
                return Err(Error::limit("bytes of a document or attribute value")
                    .at(extent.offset)
                    .expected(format_args!("at most {}", limits.value_bytes))
                    .found(extent.len));
            }
            let payload: Payload = view.payload(extent)?;
            read(content, &payload, limits).map_err(|e| e.at_or(extent.offset))
        }
    }
}

/// Places `bytes` and gives the value that names them; nothing is staged.
pub(crate) fn place_blob(writer: &WriterState, content: Content, bytes: &[u8]) -> Result<Value> {
    if bytes.len() <= INLINE_LEN_MAX {
        return Blob::Inline(content, bytes).encode();
    }
    Blob::Stored(content, writer.append(bytes, ALIGN)?).encode()
}
