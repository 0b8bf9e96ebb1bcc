//! Reading a selection: find the stored chunks, decode them, copy what overlaps.
//!
//! Holds [`read_fixed`] and [`read_variable`]. Chunks decode in parallel in the caller's thread pool when there is enough
//! work; every chunk is decoded once. Must not know handles or element types.
//!
//! The result is split along one axis into slices that no two tasks share, so that parallel copies need no locks.

use std::cell::RefCell;

use smallvec::SmallVec;

use crate::codec::{is_repeated, repeat};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisMap, AxisSet, Copier, Picked};
use crate::txn::View;

use super::chunk::{constant_element, for_each_pair};
use super::element::Elements;
use super::layout::Layout;
use super::parallel;
use super::plan::Plan;
use super::receipt::{ReadPath, Receipt};
use super::scan::{self, Entry};

/// Work of one read, in bytes of decoded chunks, below which it stays on the caller's thread.
const PARALLEL_MIN: usize = 1 << 20;

/// Reads `picked` into `out`, C order, little-endian, exactly as long as the selection.
pub(crate) fn read_fixed(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
    out: &mut [u8],
) -> Result<Receipt> {
    let item = layout.item.unwrap_or(1);
    let mut receipt = Receipt {
        bytes_wanted: out.len() as u64,
        ..Receipt::default()
    };
    if out.is_empty() {
        return Ok(receipt);
    }
    let plan = Plan::new(&layout.grid, picked)?;
    let entries = entries(view, id, layout, &plan, &mut receipt)?;
    if receipt.chunks_absent > 0 && !(is_repeated(layout.fill(), out)) {
        repeat(layout.fill(), out);
    }
    let shape = plan.shape()?;
    let reader = Reader {
        view,
        layout,
        plan: &plan,
        item,
        shape: &shape,
    };
    let work = entries.len().saturating_mul(layout.chunk_bytes());
    let pieces = if work < PARALLEL_MIN || entries.len() < 2 {
        1
    } else {
        parallel::width().saturating_mul(4)
    };
    let tasks = reader.split(entries, pieces, out);
    let done = parallel::map(tasks, |task| reader.run(task))?;
    for cost in &done {
        receipt.add(cost);
    }
    Ok(receipt)
}

/// Reads `picked` of an array whose elements have any length.
pub(crate) fn read_variable(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
) -> Result<(Vec<Box<[u8]>>, Receipt)> {
    let plan = Plan::new(&layout.grid, picked)?;
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
    for entry in entries(view, id, layout, &plan, &mut receipt)? {
        let record = entry.record()?;
        let elements =
            Elements::load(layout, view, &record).map_err(|e| e.in_chunk(&entry.coords))?;
        let Elements::Variable(items) = elements else {
            continue;
        };
        if let ChunkRecord::Stored { extent, .. } = record {
            let decoded: u64 = items.iter().map(|i| i.len() as u64).sum();
            let cost = Receipt {
                chunks_decoded: 1,
                bytes_fetched: extent.len,
                bytes_decoded: decoded,
                ..Receipt::default()
            };
            receipt.add(&cost);
        } else {
            receipt.add(&Receipt {
                chunks_constant: 1,
                ..Receipt::default()
            });
        }
        let copier = Copier::new(plan.maps(&entry.coords), &layout.chunk_shape, &shape)?;
        for_each_pair(&copier, |src, dst| {
            if let (Some(to), Some(from)) = (out.get_mut(dst), items.get(src)) {
                to.clone_from(from);
            }
        });
    }
    receipt.bytes_wanted = out.iter().map(|i| i.len() as u64).sum();
    Ok((out, receipt))
}

/// What [`read_fixed`] or [`read_variable`] would cost, from the index alone. Of variable-length elements the decoded size
/// is known only afterwards.
pub(crate) fn explain(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    picked: &Picked,
) -> Result<Receipt> {
    let wanted = picked
        .element_count()
        .and_then(|n| u64::try_from(n).ok())
        .and_then(|n| n.checked_mul(layout.item.unwrap_or(0) as u64));
    let mut receipt = Receipt {
        bytes_wanted: wanted.unwrap_or(u64::MAX),
        ..Receipt::default()
    };
    if picked.is_empty() {
        return Ok(receipt);
    }
    let plan = Plan::new(&layout.grid, picked)?;
    for entry in entries(view, id, layout, &plan, &mut receipt)? {
        match entry.record()? {
            ChunkRecord::Stored { extent, mask } => {
                let path = if layout.pipeline.is_raw() && mask == 0 {
                    ReadPath::Rows
                } else {
                    ReadPath::Whole
                };
                let decoded = layout.chunk_bytes() as u64;
                receipt.add(&Receipt {
                    chunks_decoded: 1,
                    bytes_fetched: extent.len,
                    bytes_decoded: decoded,
                    path,
                    ..Receipt::default()
                });
            }
            ChunkRecord::Constant(_) | ChunkRecord::Fill => receipt.add(&Receipt {
                chunks_constant: 1,
                ..Receipt::default()
            }),
        }
    }
    Ok(receipt)
}

/// The stored chunks that the plan meets; counts the others as absent.
fn entries(
    view: &View,
    id: ObjectId,
    layout: &Layout,
    plan: &Plan<'_>,
    receipt: &mut Receipt,
) -> Result<Vec<Entry>> {
    let sets: SmallVec<[&AxisSet; 8]> = plan.sets().collect();
    let entries = scan::stored(view, id, layout.key_order(), &sets)?;
    receipt.chunks_touched = plan.chunk_count()?;
    receipt.chunks_absent = receipt.chunks_touched.saturating_sub(entries.len() as u64);
    Ok(entries)
}

/// Some chunks, and the parts of the result that they and no others fill.
struct Task<'o> {
    entries: Vec<Entry>,
    /// One slice for each position on the axes before the split one.
    rows: SmallVec<[&'o mut [u8]; 1]>,
    /// Position on the split axis where the slices start, and how many they hold.
    start: usize,
    len: usize,
    /// The axis along which the result is split.
    axis: usize,
}

struct Reader<'a> {
    view: &'a View,
    layout: &'a Layout,
    plan: &'a Plan<'a>,
    item: usize,
    shape: &'a [usize],
}

thread_local! {
    /// One decoded chunk a thread, kept between reads.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Reader<'_> {
    /// Splits the result along the first axis that meets more than one chunk, into about `pieces` tasks.
    fn split<'o>(&self, entries: Vec<Entry>, pieces: usize, out: &'o mut [u8]) -> Vec<Task<'o>> {
        let whole = |entries, out: &'o mut [u8]| {
            let len = self.shape.first().copied().unwrap_or(1);
            vec![Task {
                entries,
                rows: SmallVec::from_buf([out]),
                start: 0,
                len,
                axis: 0,
            }]
        };
        let lengths: SmallVec<[u64; 8]> = self.plan.sets().map(AxisSet::len).collect();
        let Some(axis) = lengths.iter().position(|&n| n > 1) else {
            return whole(entries, out);
        };
        if pieces < 2 || (0..=axis).any(|a| !self.plan.is_range(a)) {
            return whole(entries, out);
        }
        let Some(set) = self.plan.set(axis) else {
            return whole(entries, out);
        };
        let per_piece = usize::try_from(set.len())
            .unwrap_or(usize::MAX)
            .div_ceil(pieces)
            .max(1);
        // Group the chunks by their coordinate on the axis, `per_piece` neighbouring coordinates a task.
        let mut tasks: Vec<Task<'o>> = Vec::new();
        let mut bounds: Vec<i64> = Vec::new();
        for (i, c) in set.iter().enumerate() {
            let AxisMap::Run { dst, len, .. } = self.plan.map(axis, c) else {
                continue;
            };
            match tasks.last_mut() {
                Some(task) if !i.is_multiple_of(per_piece) => {
                    task.len = task.len.saturating_add(len);
                }
                _ => {
                    tasks.push(Task {
                        entries: Vec::new(),
                        rows: SmallVec::new(),
                        start: dst,
                        len,
                        axis,
                    });
                    bounds.push(c);
                }
            }
        }
        for entry in entries {
            let c = entry.coords.get(axis).copied().unwrap_or(0);
            let at = bounds.partition_point(|&b| b <= c).saturating_sub(1);
            if let Some(task) = tasks.get_mut(at) {
                task.entries.push(entry);
            }
        }
        let (extent, inner) = self
            .shape
            .get(axis..)
            .and_then(<[usize]>::split_first)
            .map_or((1, 1), |(n, rest)| (*n, rest.iter().product()));
        let step: usize = self.item.saturating_mul(inner);
        for mut row in out.chunks_mut(step.saturating_mul(extent).max(1)) {
            for task in &mut tasks {
                let cut = task.len.saturating_mul(step).min(row.len());
                let (head, rest) = row.split_at_mut(cut);
                task.rows.push(head);
                row = rest;
            }
        }
        tasks.retain(|t| !t.entries.is_empty());
        tasks
    }

    fn run(&self, mut task: Task<'_>) -> Result<Receipt> {
        let mut receipt = Receipt::default();
        for entry in std::mem::take(&mut task.entries) {
            let cost = self
                .chunk(&entry, &mut task)
                .map_err(|e| e.in_chunk(&entry.coords))?;
            receipt.add(&cost);
        }
        Ok(receipt)
    }

    fn chunk(&self, entry: &Entry, task: &mut Task<'_>) -> Result<Receipt> {
        let layout = self.layout;
        match entry.record()? {
            ChunkRecord::Fill => self.constant(entry, task, layout.fill()),
            ChunkRecord::Constant(element) => {
                self.constant(entry, task, constant_element(layout, &element)?)
            }
            ChunkRecord::Stored { extent, mask } => {
                let payload = self.view.payload(extent)?;
                let mut cost = Receipt {
                    bytes_fetched: extent.len,
                    bytes_decoded: layout.chunk_bytes() as u64,
                    chunks_decoded: 1,
                    ..Receipt::default()
                };
                let place = |e: Error| e.at_or(extent.offset).spanning(extent.len);
                if layout.pipeline.is_raw() && mask == 0 {
                    if payload.len() != layout.chunk_bytes() {
                        return Err(place(
                            Error::corrupt("raw chunk")
                                .expected(format_args!("{} bytes", layout.chunk_bytes()))
                                .found(payload.len()),
                        ));
                    }
                    cost.path = ReadPath::Rows;
                    self.copy(entry, &payload, task)?;
                } else if let Some(out) = self.direct(entry, task)? {
                    layout.pipeline.decode(&payload, mask, out).map_err(place)?;
                } else {
                    SCRATCH.with_borrow_mut(|scratch| {
                        scratch.resize(layout.chunk_bytes(), 0);
                        layout
                            .pipeline
                            .decode(&payload, mask, scratch)
                            .map_err(place)?;
                        self.copy(entry, scratch, task)
                    })?;
                }
                Ok(cost)
            }
        }
    }

    /// The place of a chunk whose elements lie in the result as they lie in the chunk: it can be decoded right there.
    fn direct<'t>(&self, entry: &Entry, task: &'t mut Task<'_>) -> Result<Option<&'t mut [u8]>> {
        if task.rows.len() != 1 {
            return Ok(None);
        }
        let copier = self.copier(entry, task)?;
        let mut runs = SmallVec::<[_; 2]>::new();
        copier.for_each(|run| {
            if runs.len() < 2 {
                runs.push(run);
            }
        });
        let [run] = runs.as_slice() else {
            return Ok(None);
        };
        if run.len != self.layout.chunk_len || run.src_step != 1 || run.dst_step != 1 {
            return Ok(None);
        }
        let start = run.dst.saturating_mul(self.item);
        Ok(task
            .rows
            .first_mut()
            .and_then(|row| row.get_mut(start..start.saturating_add(self.layout.chunk_bytes()))))
    }

    /// The copy from a chunk into a task's slices, for one position on the axes before the split one.
    fn copier(&self, entry: &Entry, task: &Task<'_>) -> Result<Copier> {
        let maps = (task.axis..self.shape.len()).map(|axis| {
            let map = self
                .plan
                .map(axis, entry.coords.get(axis).copied().unwrap_or(0));
            match map {
                AxisMap::Run {
                    src,
                    dst,
                    len,
                    src_step,
                    dst_step,
                } if axis == task.axis => AxisMap::Run {
                    src,
                    dst: dst.saturating_sub(task.start),
                    len,
                    src_step,
                    dst_step,
                },
                other => other,
            }
        });
        let mut dst_shape: SmallVec<[usize; 8]> =
            self.shape.get(task.axis..).unwrap_or_default().into();
        if let Some(first) = dst_shape.first_mut() {
            *first = task.len;
        }
        Copier::new(
            maps,
            self.layout.chunk_shape.get(task.axis..).unwrap_or_default(),
            &dst_shape,
        )
    }

    fn copy(&self, entry: &Entry, decoded: &[u8], task: &mut Task<'_>) -> Result<()> {
        let copier = self.copier(entry, task)?;
        self.for_each_row(entry, task, |offset, row| {
            copier.copy_bytes(self.item, decoded.get(offset..).unwrap_or_default(), row);
        })
    }

    fn constant(&self, entry: &Entry, task: &mut Task<'_>, element: &[u8]) -> Result<Receipt> {
        let copier = self.copier(entry, task)?;
        self.for_each_row(entry, task, |_, row| {
            copier.for_each(|run| {
                let step = run.dst_step.max(1).saturating_mul(self.item);
                let cells = row
                    .get_mut(run.dst.saturating_mul(self.item)..)
                    .unwrap_or_default();
                for cell in cells.chunks_mut(step).take(run.len) {
                    if let Some(cell) = cell.get_mut(..self.item) {
                        cell.copy_from_slice(element);
                    }
                }
            });
        })?;
        Ok(Receipt {
            chunks_constant: 1,
            ..Receipt::default()
        })
    }

    /// Calls `f` with the byte offset in the decoded chunk and the slice, for every position on the leading axes.
    fn for_each_row(
        &self,
        entry: &Entry,
        task: &mut Task<'_>,
        mut f: impl FnMut(usize, &mut [u8]),
    ) -> Result<()> {
        if task.axis == 0 {
            if let Some(row) = task.rows.first_mut() {
                f(0, row);
            }
            return Ok(());
        }
        let inner: usize = self
            .layout
            .chunk_shape
            .get(task.axis..)
            .unwrap_or_default()
            .iter()
            .product();
        let lead = self.layout.chunk_shape.get(..task.axis).unwrap_or_default();
        let maps = (0..task.axis).map(|axis| {
            self.plan
                .map(axis, entry.coords.get(axis).copied().unwrap_or(0))
        });
        let rows = Copier::new(maps, lead, self.shape.get(..task.axis).unwrap_or_default())?;
        for_each_pair(&rows, |src, dst| {
            if let Some(row) = task.rows.get_mut(dst) {
                f(src.saturating_mul(inner).saturating_mul(self.item), row);
            }
        });
        Ok(())
    }
}
