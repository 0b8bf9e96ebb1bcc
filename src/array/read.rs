//! Reading a selection: find the stored chunks, have their elements gathered, say what it cost.
//!
//! Holds [`read_fixed`], [`read_variable`] and [`explain`], which count alike. Every chunk is decoded at most once a call.
//! Must not know handles or element types.

use smallvec::SmallVec;

use crate::codec::{is_repeated, repeat};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Copier, Picked};
use crate::txn::View;

use super::chunk::for_each_pair;
use super::element::Elements;
use super::gather::{Content, Gather, Unit, Units};
use super::layout::{Layout, Tile};
use super::plan::Plan;
use super::receipt::{ReadPath, Receipt};
use super::scan;
use super::shards::{Record, Records, ShardReader};

/// Chunks that are laid out at once: a read of many small ones needs no memory for all of them twice.
const BATCH: usize = 1 << 14;
/// Why a shard is decoded whole although a part is asked for: codecs stand before or behind the shard's own.
const AROUND: &str = "codecs_around_shard";

/// Reads `picked` into `out`, C order, little-endian, exactly as long as the selection.
pub(crate) fn read_fixed(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
    out: &mut [u8],
) -> Result<Receipt> {
    let mut receipt = Receipt {
        bytes_wanted: out.len() as u64,
        ..Receipt::default()
    };
    if out.is_empty() {
        return Ok(receipt);
    }
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let records = records(view, id, layout, &plan, &mut receipt)?;
    let blank = receipt.chunks_absent > 0;
    if blank && !is_repeated(layout.fill(), out) {
        repeat(layout.fill(), out);
    }
    let shape = plan.shape()?;
    let gather = |tile, plan| Gather {
        view,
        id,
        layout,
        tile,
        plan,
        shape: &shape,
    };
    let whole = gather(&layout.chunk, &plan);
    let Some((shard, tile)) = layout.sharded() else {
        let mut rest = records.into_iter();
        while rest.len() > 0 {
            let batch = rest.by_ref().take(BATCH).collect();
            receipt.add(&whole.run(units(batch), out)?);
        }
        around(layout, &mut receipt);
        return Ok(receipt);
    };
    let (stored, others): (Records, Records) = records.into_iter().partition(Record::is_stored);
    if !others.is_empty() {
        receipt.add(&whole.run(units(others), out)?);
    }
    let inner = Plan::new(&tile.grid, picked)?;
    let gather = gather(tile, &inner);
    let reader = ShardReader::new(view, id, layout, (shard, tile), &inner);
    let total = reader.read(stored, blank, |units| gather.run(units, out))?;
    receipt.add(&total);
    Ok(receipt)
}

/// Reads `picked` of an array whose elements have any length.
pub(crate) fn read_variable(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
) -> Result<(Vec<Box<[u8]>>, Receipt)> {
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let shape = plan.shape()?;
    let n = shape
        .iter()
        .try_fold(1_usize, |n, &e| n.checked_mul(e))
        .ok_or_else(|| Error::limit("read").reason("too_large"))?;
    let mut receipt = Receipt::default();
    let mut out: Vec<Box<[u8]>> = vec![layout.fill().into(); n];
    if n == 0 {
        return Ok((out, receipt));
    }
    let records = records(view, id, layout, &plan, &mut receipt)?;
    let (stored, others): (Records, Records) = match layout.sharded() {
        Some(_) => records.into_iter().partition(Record::is_stored),
        None => (Records::new(), records),
    };
    let mut put = |tile: &Tile, plan: &Plan<'_>, units: Units| {
        let gather = Gather {
            view,
            id,
            layout,
            tile,
            plan,
            shape: &shape,
        };
        let mut receipt = Receipt::default();
        for unit in units {
            let (elements, cost) = gather.elements(&unit)?;
            receipt.add(&cost);
            let Some(Elements::Variable(items)) = elements.as_deref() else {
                continue;
            };
            let copier = Copier::new(plan.maps(&unit.coords), &tile.shape, &shape)?;
            for_each_pair(&copier, |src, dst| {
                if let (Some(to), Some(from)) = (out.get_mut(dst), items.get(src)) {
                    to.clone_from(from);
                }
            });
        }
        Ok(receipt)
    };
    receipt.add(&put(&layout.chunk, &plan, units(others))?);
    if let Some((shard, tile)) = layout.sharded() {
        let inner = Plan::new(&tile.grid, picked)?;
        let reader = ShardReader::new(view, id, layout, (shard, tile), &inner);
        receipt.add(&reader.read(stored, true, |units| put(tile, &inner, units))?);
    }
    around(layout, &mut receipt);
    receipt.bytes_wanted = out.iter().map(|i| i.len() as u64).sum();
    Ok((out, receipt))
}

/// What [`read_fixed`] or [`read_variable`] would cost, from the index and the indexes of shards; neither is kept for it. Of
/// variable-length elements the decoded size is known only afterwards.
pub(crate) fn explain(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
) -> Result<Receipt> {
    let wanted = picked
        .element_count()
        .and_then(|n| u64::try_from(n).ok())
        .and_then(|n| n.checked_mul(layout.item().unwrap_or(0) as u64));
    let mut receipt = Receipt {
        bytes_wanted: wanted.unwrap_or(u64::MAX),
        ..Receipt::default()
    };
    if picked.is_empty() {
        return Ok(receipt);
    }
    let plan = Plan::new(&layout.chunk.grid, picked)?;
    let shape = plan.shape()?;
    let gather = Gather {
        view,
        id,
        layout,
        tile: &layout.chunk,
        plan: &plan,
        shape: &shape,
    };
    let (stored, others): (Records, Records) = records(view, id, layout, &plan, &mut receipt)?
        .into_iter()
        .partition(Record::is_stored);
    receipt.chunks_constant = others.len() as u64;
    if let Some((shard, tile)) = layout.sharded() {
        let inner = Plan::new(&tile.grid, picked)?;
        let reader = ShardReader::new(view, id, layout, (shard, tile), &inner);
        receipt.add(&reader.explain(stored)?);
        return Ok(receipt);
    }
    for record in stored {
        receipt.add(&explain_chunk(&gather, &record));
    }
    around(layout, &mut receipt);
    Ok(receipt)
}

fn explain_chunk(gather: &Gather<'_>, record: &Record) -> Receipt {
    let ChunkRecord::Stored { extent, mask } = record.record else {
        return Receipt::default();
    };
    let layout = gather.layout;
    let mut cost = Receipt {
        chunks_decoded: 1,
        bytes_fetched: extent.len,
        bytes_decoded: layout.chunk.byte_len() as u64,
        ..Receipt::default()
    };
    if layout.chunk.pipeline.is_raw() && mask == 0 {
        cost.path = ReadPath::Rows;
        cost.bytes_fetched = gather.raw_cost(&record.coords, extent);
        return cost;
    }
    let key = layout.cache_key(gather.id, extent);
    match gather.view.chunks().peek::<Elements>(&key) {
        Some(_) => Receipt {
            chunks_cached: 1,
            ..Receipt::default()
        },
        None => cost,
    }
}

/// Says why a shard was not read in parts, where its pipeline forbids that.
fn around(layout: &Layout, receipt: &mut Receipt) {
    let sharded = layout.chunk.pipeline.shard().is_some();
    if sharded && layout.sharded().is_none() && receipt.chunks_decoded > 0 {
        receipt.reason.get_or_insert(AROUND);
    }
}

fn units(records: Records) -> Units {
    let unit = |r: Record| Unit {
        coords: r.coords,
        content: Content::Record(r.record),
    };
    records.into_iter().map(unit).collect()
}

/// What the index holds for the chunks that the plan meets; counts the others as absent.
fn records(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    plan: &Plan<'_>,
    receipt: &mut Receipt,
) -> Result<Records> {
    let sets: SmallVec<[&AxisSet; 8]> = plan.sets().collect();
    let mut records = Records::new();
    scan::stored(view, id, layout.key_order(), &sets, |entry| {
        records.push(Record {
            record: entry.record()?,
            coords: entry.coords,
        });
        Ok(())
    })?;
    receipt.chunks_touched = plan.chunk_count()?;
    receipt.chunks_absent = receipt.chunks_touched.saturating_sub(records.len() as u64);
    Ok(records)
}
