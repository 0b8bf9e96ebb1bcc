//! The hierarchy: paths, ids, documents, attributes, blobs.
//!
//! Must not touch payloads.
// TEMPORARY until the catalog room lands.
use crate::error::Result;
use crate::format::document::ArrayDocument;
use crate::limits::Limits;
use crate::txn::{Value, View, WriterState};
use std::sync::Arc;

pub(crate) fn array_document(view: &View, entry: &Value) -> Result<ArrayDocument> {
    ArrayDocument::parse(entry.get(2..).unwrap_or_default(), view.limits())
}
pub(crate) fn document_value(_w: &Arc<WriterState>, text: &str, _l: &Limits) -> Result<Value> {
    let mut v = Value::from_slice(&[0, 0]);
    v.extend_from_slice(text.as_bytes());
    Ok(v)
}
