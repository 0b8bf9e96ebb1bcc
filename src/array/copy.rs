//! An array copied between containers, its chunks as they are stored.
//!
//! Holds [`copy`]. Payloads are verified by their checksums and never decoded. Must not touch the original.

use std::ops::ControlFlow;

use crate::catalog;
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::name::ObjectPath;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Domain};
use crate::txn::{Change, Key, Value, View};

use super::handle::DynArray;
use super::layout::Layout;
use super::scan::{self, Entry};

/// Copies `from`, its attributes included, to `path` of the writer behind `to`; `None`, and nothing has changed, where
/// `progress` (chunks done, chunks in all) ends it. Chunks that lie outside the domain, which only a forged file has, stay
/// behind.
pub(crate) fn copy(
    from: &DynArray,
    to: &View,
    path: &ObjectPath,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<DynArray>> {
    let writer = to.writer()?;
    let _hold = writer.hold();
    if catalog::resolve(to, path)?.is_some() {
        return Err(Error::already_exists("object").in_object(&path.to_string()));
    }
    let compiled = from.compiled()?;
    let layout = &compiled.layout;
    // Payloads first: a call that fails leaves nothing but bytes that no key names.
    let mut records: Vec<(Vec<i64>, Value)> = Vec::new();
    let mut total = 0_u64;
    from.placed(|| {
        each_chunk(from, layout, |_| {
            total = total.saturating_add(1);
            Ok(())
        })
    })?;
    let mut ended = false;
    from.placed(|| {
        each_chunk(from, layout, |entry| {
            ended = ended || progress(records.len() as u64, total).is_break();
            if ended {
                return Ok(());
            }
            let record = match entry.record()? {
                ChunkRecord::Stored { extent, mask } => {
                    let payload = from.view().payload(extent);
                    let payload = payload.map_err(|e| e.in_chunk(&entry.coords))?;
                    ChunkRecord::Stored {
                        extent: writer.append(&payload, layout.payload_align())?,
                        mask,
                    }
                }
                other => other,
            };
            records.push((entry.coords.to_vec(), record.encode()));
            Ok(())
        })
    })?;
    if ended || progress(total, total).is_break() {
        return Ok(None);
    }
    let attributes = from.attributes().list()?;
    let id = catalog::create_array(to, path, &layout.document)?;
    let copied = DynArray::open(to.clone(), id, path.to_string()).and_then(|copied| {
        copied.attributes().set_all(attributes)?;
        Ok(copied)
    });
    if copied.is_err() {
        catalog::remove(to, path, true)?;
        return copied.map(Some);
    }
    let changes: Vec<Change> = records
        .into_iter()
        .map(|(coords, value)| (key::chunk(id, &coords, layout.key_order()), Some(value)))
        .collect();
    let none = std::iter::empty::<(&Key, Option<&Value>)>();
    // Nothing is expected, so nothing can have changed.
    let _ = writer.stage_if(none, changes.iter());
    copied.map(Some)
}

fn each_chunk(from: &DynArray, layout: &Layout, f: impl FnMut(Entry) -> Result<()>) -> Result<()> {
    let sets = sets(layout, &layout.domain);
    let sets: Vec<&AxisSet> = sets.iter().collect();
    scan::each_stored(from.view(), from.id(), layout.key_order(), &sets, f)
}

fn sets(layout: &Layout, domain: &Domain) -> Vec<AxisSet> {
    let axes = domain.bounds().iter().enumerate();
    axes.map(|(axis, &(lo, hi))| {
        let (first, end) = layout.chunk.grid.chunks_of(axis, lo, hi);
        AxisSet::Range(first, end)
    })
    .collect()
}
