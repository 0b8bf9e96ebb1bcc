//! Appending streams of small records without writing an edge chunk for each of them.
//!
//! Holds [`Appender`]. Records are kept decoded until they reach a chunk edge, or until the commit; then they are written
//! in one step, so that a chunk is encoded once when it is full and once more for each commit that finds it half full.
//! The writer's commit takes in what is still held, so a record whose commit has returned is never lost, whichever of the
//! two was asked to commit. Must not plan or encode.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::txn::{Pending, WriterState};

use super::bounds::{End, Roll};
use super::element::{Element, Elements, Source};
use super::handle::{Block, DynArray};
use super::typed::Array;

/// Appends records at the high edge of an axis, to one array or to several that share the axis.
///
/// A record covers all arrays or none. What was pushed shows in the arrays after [`Appender::flush`], when a chunk is full,
/// or with the commit.
#[derive(Debug, Clone)]
pub struct Appender {
    state: Arc<Mutex<State>>,
    writer: Arc<WriterState>,
}

#[derive(Debug)]
struct State {
    columns: Vec<Column>,
    roll: Roll,
}

/// One array and the rows it has not got yet.
#[derive(Debug)]
struct Column {
    array: DynArray,
    axis: usize,
    /// Extents of a record; 0 on the axis itself, where any number of rows may come.
    cross: Vec<u64>,
    held: Vec<(u64, Elements)>,
    rows: u64,
}

impl Appender {
    /// An appender over arrays of one writer, each with the axis that grows.
    ///
    /// # Errors
    /// `ReadOnly` for a snapshot's handle; `InvalidArgument` for no array, an axis one does not have (`rank`), or arrays of
    /// different writers.
    pub fn new<'a>(arrays: impl IntoIterator<Item = (&'a DynArray, usize)>) -> Result<Self> {
        let columns: Vec<Column> = arrays
            .into_iter()
            .map(|(array, axis)| Column::new(array, axis))
            .collect::<Result<_>>()?;
        let Some(first) = columns.first() else {
            return Err(Error::invalid("appender")
                .expected("at least one array")
                .found("none"));
        };
        let writer = Arc::clone(first.array.view().writer()?);
        for column in &columns {
            if !Arc::ptr_eq(&writer, column.array.view().writer()?) {
                return Err(Error::invalid("appender")
                    .expected("arrays of one writer")
                    .found("arrays of several"));
            }
        }
        let state = Arc::new(Mutex::new(State {
            columns,
            roll: Roll::Keep,
        }));
        writer.hold_pending(Arc::clone(&state) as Arc<dyn Pending>);
        Ok(Self { state, writer })
    }

    /// Keeps a window of `width` coordinates: what falls out at the low edge is cut in the step that appends. With
    /// `aligned`, the low bound stops at the chunk edge outside the window, so that no chunk is rewritten by the cut.
    #[must_use]
    pub fn window(self, width: u64, aligned: bool) -> Self {
        self.state.lock().roll = Roll::Window { width, aligned };
        self
    }

    /// Appends one record, or several rows at once: a block for each array, in the order they were given, all with the
    /// same number of rows on the growing axis. Nothing is taken when one of them does not fit.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`, `shape`), `TypeMismatch`; those of a write, when a chunk is full.
    pub fn push(&self, records: &[Block]) -> Result<()> {
        let mut state = self.state.lock();
        if records.len() != state.columns.len() {
            return Err(Error::invalid("record")
                .expected(format_args!(
                    "{} blocks, one for each array",
                    state.columns.len()
                ))
                .found(records.len())
                .reason("shape"));
        }
        let mut rows = None;
        for (column, block) in state.columns.iter().zip(records) {
            let n = column.check(block)?;
            if *rows.get_or_insert(n) != n {
                return Err(Error::invalid("record")
                    .expected("as many rows for every array")
                    .found(format_args!("{} and {n}", rows.unwrap_or(0)))
                    .reason("shape"));
            }
        }
        let rows = rows.unwrap_or(0);
        if rows == 0 {
            return Ok(());
        }
        for (column, block) in state.columns.iter_mut().zip(records) {
            column.held.push((rows, block.elements.clone()));
            column.rows = column.rows.saturating_add(rows);
        }
        let roll = state.roll;
        state
            .columns
            .iter_mut()
            .try_for_each(|column| column.write_full(roll))
    }

    /// Writes everything held into the arrays, in the open transaction.
    ///
    /// # Errors
    /// Those of a write; what could not be written is still held.
    pub fn flush(&self) -> Result<()> {
        self.state.lock().write_all()
    }

    /// Writes everything held and commits: the records are durable when it returns.
    ///
    /// # Errors
    /// As [`crate::Writer::commit`].
    pub fn commit(&self) -> Result<u64> {
        self.writer.commit()
    }
}

impl<T: Element> Array<T> {
    /// An appender for this array alone.
    ///
    /// # Errors
    /// As [`Appender::new`].
    pub fn appender(&self, axis: usize) -> Result<Appender> {
        Appender::new([(&**self, axis)])
    }
}

impl Pending for Mutex<State> {
    fn flush(&self) -> Result<()> {
        self.lock().write_all()
    }

    fn discard(&self) {
        for column in &mut self.lock().columns {
            column.held.clear();
            column.rows = 0;
        }
    }
}

impl State {
    fn write_all(&mut self) -> Result<()> {
        let roll = self.roll;
        self.columns
            .iter_mut()
            .try_for_each(|column| column.write(column.rows, roll))
    }
}

impl Column {
    fn new(array: &DynArray, axis: usize) -> Result<Self> {
        // Also checks that the axis exists.
        array.room(axis)?;
        let mut cross = array.domain()?.shape();
        if let Some(extent) = cross.get_mut(axis) {
            *extent = 0;
        }
        Ok(Self {
            array: array.clone(),
            axis,
            cross,
            held: Vec::new(),
            rows: 0,
        })
    }

    /// The number of rows in a record that fits.
    fn check(&self, block: &Block) -> Result<u64> {
        self.array.placed(|| {
            let data_type = self.array.data_type();
            if block.data_type != data_type {
                return Err(Error::type_mismatch("record")
                    .expected(&data_type)
                    .found(&block.data_type));
            }
            let (outer, inner) = self.sides();
            // A record of one row may leave the axis out.
            let rows = match block.shape.len() {
                n if n == self.cross.len() => block.shape.get(self.axis).copied().unwrap_or(0),
                n if n.saturating_add(1) == self.cross.len() => 1,
                n => {
                    return Err(Error::invalid("record")
                        .expected(format_args!("{} axes", self.cross.len()))
                        .found(n)
                        .reason("rank"));
                }
            };
            let fits = |found: &[u64], skip: bool| {
                let want = self
                    .cross
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| *i != self.axis)
                    .map(|(_, n)| n);
                let found = found
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| skip || *i != self.axis)
                    .map(|(_, n)| n);
                want.eq(found)
            };
            let count = match &block.elements {
                Elements::Fixed(bytes) => {
                    bytes.len().checked_div(data_type.item_size().unwrap_or(1))
                }
                Elements::Variable(items) => Some(items.len()),
            };
            let want = usize::try_from(rows)
                .ok()
                .and_then(|n| n.checked_mul(outer)?.checked_mul(inner));
            if fits(&block.shape, block.shape.len() < self.cross.len()) && count == want {
                return Ok(rows);
            }
            Err(Error::invalid("record")
                .expected(format_args!(
                    "the cross-section of {} on axis {}",
                    self.array.domain()?,
                    self.axis
                ))
                .found(format_args!("{:?}", block.shape))
                .reason("shape"))
        })
    }

    /// Elements before and after the axis.
    fn sides(&self) -> (usize, usize) {
        let product = |axes: &[u64]| {
            axes.iter().fold(1_usize, |n, &e| {
                n.saturating_mul(usize::try_from(e).unwrap_or(usize::MAX))
            })
        };
        let (before, after) = self.cross.split_at_checked(self.axis).unwrap_or((&[], &[]));
        (product(before), product(after.get(1..).unwrap_or_default()))
    }

    /// Writes the rows that fill chunks; the rest stays.
    fn write_full(&mut self, roll: Roll) -> Result<()> {
        let (_, room) = self.array.room(self.axis)?;
        let extent = self
            .array
            .stored_shape()
            .get(self.axis)
            .copied()
            .unwrap_or(1)
            .max(1);
        let first = if room == 0 { extent } else { room };
        match self.rows.checked_sub(first) {
            Some(over) => self.write(
                first.saturating_add(over.saturating_sub(over.checked_rem(extent).unwrap_or(0))),
                roll,
            ),
            None => Ok(()),
        }
    }

    fn write(&mut self, rows: u64, roll: Roll) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let all = self.assembled();
        let (outer, inner) = self.sides();
        let item = self.array.data_type().item_size().unwrap_or(1);
        let mut shape = self.cross.clone();
        if let Some(extent) = shape.get_mut(self.axis) {
            *extent = rows;
        }
        let (head, rest) = cut(&all, outer, inner, item, self.rows, rows);
        let source = match &head {
            Elements::Fixed(bytes) => Source::Fixed(bytes.as_slice().into()),
            Elements::Variable(items) => {
                Source::Variable(items.iter().map(AsRef::as_ref).collect())
            }
        };
        let done = self
            .array
            .attach(self.axis, End::High, roll, &shape, source);
        // Held as one block from here on, whether or not the write went well.
        match &done {
            Ok(_) => {
                self.rows = self.rows.saturating_sub(rows);
                self.held = if self.rows == 0 {
                    Vec::new()
                } else {
                    vec![(self.rows, rest)]
                };
            }
            Err(_) => self.held = vec![(self.rows, all)],
        }
        done.map(|_| ())
    }

    /// All rows held, as one block in C order.
    fn assembled(&self) -> Elements {
        let (outer, inner) = self.sides();
        if let [(_, only)] = self.held.as_slice() {
            return only.clone();
        }
        let item = self.array.data_type().item_size().unwrap_or(1);
        let mut bytes = Vec::new();
        let mut items = Vec::new();
        for o in 0..outer {
            for (rows, elements) in &self.held {
                let run = inner.saturating_mul(usize::try_from(*rows).unwrap_or(0));
                let start = o.saturating_mul(run);
                match elements {
                    Elements::Fixed(from) => {
                        let range = start.saturating_mul(item)
                            ..start.saturating_add(run).saturating_mul(item);
                        bytes.extend_from_slice(from.get(range).unwrap_or_default());
                    }
                    Elements::Variable(from) => items.extend_from_slice(
                        from.get(start..start.saturating_add(run))
                            .unwrap_or_default(),
                    ),
                }
            }
        }
        match self.held.first() {
            Some((_, Elements::Variable(_))) => Elements::Variable(items),
            _ => Elements::Fixed(bytes),
        }
    }
}

/// Splits a block of `rows` rows into the first `head` rows and the others.
fn cut(
    all: &Elements,
    outer: usize,
    inner: usize,
    item: usize,
    rows: u64,
    head: u64,
) -> (Elements, Elements) {
    let count = |n: u64| usize::try_from(n).unwrap_or(0);
    let (rows, head) = (count(rows), count(head));
    let (row, cut) = (rows.saturating_mul(inner), head.saturating_mul(inner));
    match all {
        Elements::Fixed(bytes) => {
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            for line in bytes
                .chunks_exact(row.saturating_mul(item).max(1))
                .take(outer)
            {
                let (a, b) = line
                    .split_at_checked(cut.saturating_mul(item))
                    .unwrap_or((line, &[]));
                first.extend_from_slice(a);
                rest.extend_from_slice(b);
            }
            (Elements::Fixed(first), Elements::Fixed(rest))
        }
        Elements::Variable(items) => {
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            for line in items.chunks_exact(row.max(1)).take(outer) {
                let (a, b) = line.split_at_checked(cut).unwrap_or((line, &[]));
                first.extend_from_slice(a);
                rest.extend_from_slice(b);
            }
            (Elements::Variable(first), Elements::Variable(rest))
        }
    }
}
