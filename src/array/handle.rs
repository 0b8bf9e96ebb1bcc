//! The handle of an array of any type.
//!
//! Holds [`DynArray`]: what a user asks of an array, resolved against its domain and handed to `read` and
//! `write`. What changes the domain stands in `bounds`, element types come in with `typed`. Must not hold algorithms.

use std::sync::Arc;

use parking_lot::RwLock;
use smallvec::SmallVec;

use crate::catalog::{self, Attributes};
use crate::codec;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::document::{ArrayDocument, CodecSpec};
use crate::format::dtype::DataType;
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisSet, Domain, Picked, Region, Selection};
use crate::txn::{Key, Value, View};

use super::advice::Recorder;
use super::chunk::reserve;
use super::element::{Elements, Source};
use super::layout::Layout;
use super::plan::Plan;
use super::read;
use super::receipt::{Receipt, WriteReceipt};
use super::scan;
use super::write::{self, Content, Guard};

/// An array, its element type known at run time. Cheap to clone; usable from many threads.
///
/// One from a [`crate::Snapshot`] reads a committed generation and never changes. One from a [`crate::Writer`] also
/// writes, and reads what the writer has not committed yet.
#[derive(Debug, Clone)]
pub struct DynArray {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    view: View,
    id: ObjectId,
    path: String,
    compiled: RwLock<Arc<Compiled>>,
    recorder: Recorder,
}

/// A layout and the document entry it was compiled from.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) key: Key,
    entry: Value,
    pub(crate) layout: Layout,
}

impl Compiled {
    pub(super) fn guard(&self) -> Guard<'_> {
        Guard {
            document: (&self.key, &self.entry),
        }
    }
}

/// A block of elements in C order, its type known at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The elements' type.
    pub data_type: DataType,
    /// Elements per axis, dropped axes left out.
    pub shape: Vec<u64>,
    /// The elements.
    pub elements: Elements,
}

/// What stands for a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// An encoded payload.
    Stored {
        /// Absolute position in the file.
        offset: u64,
        /// Encoded bytes.
        len: u64,
        /// CRC-32 of those bytes, that of gzip and zip.
        crc32: u32,
    },
    /// One declared value for every element, without a payload.
    Constant,
    /// The fill value, declared.
    DeclaredFill,
}

/// A chunk that has an entry in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// Its chunk coordinate.
    pub coord: Vec<i64>,
    /// What stands for it.
    pub state: ChunkState,
}

impl DynArray {
    pub(crate) fn open(view: View, id: ObjectId, path: String) -> Result<Self> {
        let compiled = Compiled::load(&view, id).map_err(|e| place(e, &view, &path))?;
        Ok(Self {
            inner: Arc::new(Inner {
                view,
                id,
                path,
                compiled: RwLock::new(Arc::new(compiled)),
                recorder: Recorder::default(),
            }),
        })
    }

    /// The array's path, with a slash before each name.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// The element type.
    pub fn data_type(&self) -> DataType {
        self.last_known().layout.document.data_type.clone()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.last_known().layout.chunk.grid.rank()
    }

    /// The signed box of valid elements.
    ///
    /// # Errors
    /// `NotFound` when the writer has removed the array.
    pub fn domain(&self) -> Result<Domain> {
        Ok(self.compiled()?.layout.domain.clone())
    }

    /// Element coordinate where chunk 0 starts, per axis.
    ///
    /// # Errors
    /// As [`DynArray::domain`].
    pub fn origin(&self) -> Result<Vec<i64>> {
        Ok(self.compiled()?.layout.document.origin.clone())
    }

    /// Elements per axis of a chunk; of an inner chunk where there are shards.
    pub fn chunk_shape(&self) -> Vec<u64> {
        let compiled = self.last_known();
        let inner = compiled.layout.chunk.pipeline.inner_shape();
        inner.map_or_else(
            || compiled.layout.document.chunk_shape.clone(),
            |shape| shape.iter().map(|n| *n as u64).collect(),
        )
    }

    /// Elements per axis of a shard; none where chunks are stored one by one.
    pub fn shard_shape(&self) -> Option<Vec<u64>> {
        let compiled = self.last_known();
        let sharded = compiled.layout.chunk.pipeline.shard().is_some();
        sharded.then(|| compiled.layout.document.chunk_shape.clone())
    }

    /// Elements per axis of what one index entry stands for: a shard where there are shards, else a chunk.
    pub(crate) fn stored_shape(&self) -> Vec<u64> {
        self.last_known().layout.document.chunk_shape.clone()
    }

    /// Names of the axes; `None` for one without a name.
    pub fn dims(&self) -> Vec<Option<String>> {
        let layout = &self.last_known().layout;
        let mut names = layout.document.dimension_names.clone();
        names.resize(layout.chunk.grid.rank(), None);
        names
    }

    /// The fill value as one element's little-endian bytes.
    pub fn fill_bytes(&self) -> Vec<u8> {
        self.last_known().layout.fill().to_vec()
    }

    /// The codec pipeline, in Zarr v3 terms.
    pub fn codecs(&self) -> Vec<CodecSpec> {
        self.last_known().layout.document.codecs.clone()
    }

    /// Outside readers that can decode this array's payloads through byte ranges.
    pub fn readers(&self) -> Vec<&'static str> {
        let compiled = self.last_known();
        codec::readers(
            &compiled.layout.document.codecs,
            &compiled.layout.document.data_type,
        )
    }

    /// The attributes.
    pub fn attributes(&self) -> Attributes {
        Attributes::new(
            self.inner.view.clone(),
            self.inner.id,
            self.inner.path.clone(),
        )
    }

    /// Reads a region.
    ///
    /// # Errors
    /// `InvalidArgument` or `OutOfDomain` for the region; `LimitExceeded` (`too_large`) above the limit of one read;
    /// `Corrupt` or `Unsupported` naming the chunk; `Io`.
    pub fn read(&self, selection: impl Into<Selection>) -> Result<Block> {
        self.read_with_receipt(selection).map(|(block, _)| block)
    }

    /// Reads a region and tells what that cost.
    ///
    /// # Errors
    /// As [`DynArray::read`].
    pub fn read_with_receipt(&self, selection: impl Into<Selection>) -> Result<(Block, Receipt)> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let picked = selection.resolve(&compiled.layout.domain, false)?;
            self.read_picked(&compiled.layout, &picked)
        })
    }

    /// Reads a region of which everything outside the domain is cut off; the region read comes with the block.
    ///
    /// # Errors
    /// As [`DynArray::read`]; a single index outside the domain stays an error.
    pub fn read_clipped(&self, selection: impl Into<Selection>) -> Result<(Block, Receipt)> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let picked = selection.resolve(&compiled.layout.domain, true)?;
            self.read_picked(&compiled.layout, &picked)
        })
    }

    fn read_picked(&self, layout: &Layout, picked: &Picked) -> Result<(Block, Receipt)> {
        let n = self.count(layout, picked)?;
        self.inner.recorder.note(picked);
        let (view, id) = (&self.inner.view, self.inner.id);
        let (elements, receipt) = match layout.item() {
            Some(item) => {
                let mut bytes = reserve(n.checked_mul(item))?;
                let receipt = read::read_fixed(view, id, layout, picked, &mut bytes)?;
                (Elements::Fixed(bytes), receipt)
            }
            None => {
                let (items, receipt) = read::read_variable(view, id, layout, picked)?;
                (Elements::Variable(items), receipt)
            }
        };
        Ok((
            Block {
                data_type: layout.document.data_type.clone(),
                shape: picked.shape(),
                elements,
            },
            receipt,
        ))
    }

    /// Elements of a read, refused when the result would pass the limit of one read.
    fn count(&self, layout: &Layout, picked: &Picked) -> Result<usize> {
        let limit = self.inner.view.limits().read_bytes;
        let bytes = picked
            .element_count()
            .and_then(|n| n.checked_mul(layout.item().unwrap_or(size_of::<Box<[u8]>>()) as u128));
        match bytes {
            Some(bytes) if bytes <= u128::from(limit) => {}
            _ => {
                return Err(Error::limit("bytes of one read")
                    .expected(format_args!("at most {limit}, or a buffer of the caller's"))
                    .found(bytes.map_or_else(|| "more than 2^128".to_owned(), |b| b.to_string()))
                    .help("read a smaller region, or raise `Limits::read_bytes`")
                    .reason("too_large"));
            }
        }
        usize::try_from(picked.element_count().unwrap_or(0))
            .map_err(|_| Error::limit("read").reason("too_large"))
    }

    /// Reads a region of a fixed-size type into `out`: C order, little-endian, exactly as long as the region.
    ///
    /// # Errors
    /// As [`DynArray::read`]; `InvalidArgument` for a buffer of another length; `TypeMismatch` for a type of variable length.
    pub fn read_bytes_into(
        &self,
        selection: impl Into<Selection>,
        out: &mut [u8],
    ) -> Result<Receipt> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            let picked = selection.resolve(&layout.domain, false)?;
            let Some(item) = layout.item() else {
                return Err(Error::type_mismatch("read into bytes")
                    .expected("elements of one size")
                    .found(&layout.document.data_type));
            };
            let want = picked
                .element_count()
                .and_then(|n| n.checked_mul(item as u128));
            if want != Some(out.len() as u128) {
                return Err(Error::invalid("buffer")
                    .expected(format_args!(
                        "{} bytes for {selection}",
                        want.unwrap_or(u128::MAX)
                    ))
                    .found(out.len())
                    .reason("shape"));
            }
            self.inner.recorder.note(&picked);
            read::read_fixed(&self.inner.view, self.inner.id, layout, &picked, out)
        })
    }

    /// What a read of the region would touch, fetch and decode. Reads the index alone.
    ///
    /// # Errors
    /// As [`DynArray::read`].
    pub fn explain(&self, selection: impl Into<Selection>) -> Result<Receipt> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let picked = selection.resolve(&compiled.layout.domain, false)?;
            read::explain(&self.inner.view, self.inner.id, &compiled.layout, &picked)
        })
    }

    /// The chunks with an entry that meet a region, in key order. Reads the index alone: "was this written?" costs no
    /// payload.
    ///
    /// # Errors
    /// As [`DynArray::read`], as far as the index is concerned.
    pub fn chunks_in(&self, selection: impl Into<Selection>) -> Result<Vec<StoredChunk>> {
        let mut found = Vec::new();
        self.for_each_chunk(selection, |chunk| {
            found.push(chunk);
            Ok(())
        })?;
        Ok(found)
    }

    /// All chunks with an entry, in key order.
    ///
    /// # Errors
    /// As [`DynArray::chunks_in`].
    pub fn chunks(&self) -> Result<Vec<StoredChunk>> {
        self.chunks_in(Region::all())
    }

    /// Calls `f` for every chunk with an entry that meets a region, in key order, holding one at a time.
    ///
    /// # Errors
    /// As [`DynArray::chunks_in`], and whatever `f` answers.
    pub fn for_each_chunk(
        &self,
        selection: impl Into<Selection>,
        mut f: impl FnMut(StoredChunk) -> Result<()>,
    ) -> Result<()> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            let picked = selection.resolve(&layout.domain, false)?;
            if picked.is_empty() {
                return Ok(());
            }
            let plan = Plan::new(&layout.chunk.grid, &picked)?;
            let sets: SmallVec<[&AxisSet; 8]> = plan.sets().collect();
            scan::each_stored(
                &self.inner.view,
                self.inner.id,
                layout.key_order(),
                &sets,
                |entry| {
                    let state = match entry.record()? {
                        ChunkRecord::Stored { extent, .. } => ChunkState::Stored {
                            offset: extent.offset,
                            len: extent.len,
                            crc32: extent.crc,
                        },
                        ChunkRecord::Constant(_) => ChunkState::Constant,
                        ChunkRecord::Fill => ChunkState::DeclaredFill,
                    };
                    f(StoredChunk {
                        coord: entry.coords.to_vec(),
                        state,
                    })
                },
            )
        })
    }

    /// How many chunks of the grid meet the domain, or `None` past `u128`.
    ///
    /// # Errors
    /// As [`DynArray::domain`].
    pub fn grid_chunks(&self) -> Result<Option<u128>> {
        let compiled = self.compiled()?;
        Ok(compiled
            .layout
            .chunk
            .grid
            .chunk_count(&compiled.layout.domain))
    }

    /// Writes a block of the array's own type, C order, into a region of the same shape (dropped axes left out or not).
    ///
    /// # Errors
    /// `ReadOnly` on a snapshot's handle; `InvalidArgument` or `OutOfDomain` for the region; `TypeMismatch`; `Corrupt` when
    /// a partly covered chunk is damaged. A call that fails changes nothing.
    pub fn write(&self, selection: impl Into<Selection>, block: &Block) -> Result<WriteReceipt> {
        let data_type = self.data_type();
        if block.data_type != data_type {
            return Err(place(
                Error::type_mismatch("elements")
                    .expected(&data_type)
                    .found(&block.data_type),
                &self.inner.view,
                &self.inner.path,
            ));
        }
        let source = match &block.elements {
            Elements::Fixed(bytes) => Source::Fixed(bytes.as_slice().into()),
            Elements::Variable(items) => {
                Source::Variable(items.iter().map(AsRef::as_ref).collect())
            }
        };
        self.write_source(&selection.into(), Some(&block.shape), source)
    }

    /// Writes `source` into a region; `shape` is the block's where the caller has one, else only the count is checked.
    pub(crate) fn write_source(
        &self,
        selection: &Selection,
        shape: Option<&[u64]>,
        source: Source<'_>,
    ) -> Result<WriteReceipt> {
        let content = Content::Block(source);
        self.write_content(selection, &content, |layout, picked| {
            check_block(layout, picked, shape, &content)
        })
    }

    /// Sets every element of a region to one value, given as its little-endian bytes. Whole chunks take no payload.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    pub fn write_scalar_bytes(
        &self,
        selection: impl Into<Selection>,
        element: &[u8],
    ) -> Result<WriteReceipt> {
        let selection = selection.into();
        self.write_content(
            &selection,
            &Content::Scalar(element),
            |layout, _| match layout.item() {
                Some(n) if n != element.len() => Err(Error::type_mismatch("element")
                    .expected(format_args!("{n} bytes"))
                    .found(element.len())),
                _ => Ok(()),
            },
        )
    }

    /// Declares the elements of a region to be the fill value: they read as before, but count as written.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    pub fn write_fill(&self, selection: impl Into<Selection>) -> Result<WriteReceipt> {
        self.write_content(&selection.into(), &Content::DeclaredFill, |_, _| Ok(()))
    }

    /// Resets a region to fill and forgets that it was written. Costs what is stored there, whatever the region's size.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    pub fn erase(&self, selection: impl Into<Selection>) -> Result<WriteReceipt> {
        let selection = selection.into();
        self.retried(|compiled| {
            let picked = selection.resolve(&compiled.layout.domain, false)?;
            write::erase(
                &self.inner.view,
                self.inner.id,
                &compiled.layout,
                &picked,
                &compiled.guard(),
            )
        })
    }

    fn write_content(
        &self,
        selection: &Selection,
        content: &Content<'_>,
        check: impl Fn(&Layout, &Picked) -> Result<()>,
    ) -> Result<WriteReceipt> {
        self.retried(|compiled| {
            let layout = &compiled.layout;
            let picked = selection.resolve(&layout.domain, false)?;
            check(layout, &picked)?;
            write::write(
                &self.inner.view,
                self.inner.id,
                layout,
                &picked,
                content,
                &compiled.guard(),
            )
        })
    }

    /// The entry of a changed document, its rules checked first.
    pub(super) fn document_value(&self, document: &ArrayDocument) -> Result<Value> {
        catalog::document_value(&self.inner.view, document)
    }

    /// Runs `attempt` on the array as it is now, again while another thread changes the array's document under it.
    pub(super) fn retried<R>(&self, attempt: impl Fn(&Compiled) -> Result<Option<R>>) -> Result<R> {
        self.placed(|| {
            // Refused before anything is read, decoded or appended.
            self.inner.view.writer()?;
            loop {
                if let Some(done) = attempt(&*self.compiled()?)? {
                    return Ok(done);
                }
            }
        })
    }

    /// The layout as it is now: a writer's array may have grown since.
    pub(crate) fn compiled(&self) -> Result<Arc<Compiled>> {
        let last = self.last_known();
        if let View::Snapshot(_) = self.inner.view {
            return Ok(last);
        }
        match self.inner.view.get(&last.key)? {
            Some(entry) if entry == last.entry => Ok(last),
            Some(_) => {
                let now = Arc::new(Compiled::load(&self.inner.view, self.inner.id)?);
                *self.inner.compiled.write() = Arc::clone(&now);
                Ok(now)
            }
            None => Err(place(
                Error::not_found("array").help("the writer has removed it"),
                &self.inner.view,
                &self.inner.path,
            )),
        }
    }

    fn last_known(&self) -> Arc<Compiled> {
        Arc::clone(&self.inner.compiled.read())
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    pub(crate) fn view(&self) -> &View {
        &self.inner.view
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.inner.id
    }

    /// Where payloads of this array start.
    pub(crate) fn payload_align(&self) -> u64 {
        self.last_known().layout.payload_align()
    }

    pub(crate) fn limits(&self) -> &crate::limits::Limits {
        self.inner.view.limits()
    }

    pub(crate) fn placed<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        f().map_err(|e| place(e, &self.inner.view, &self.inner.path))
    }
}

impl Compiled {
    fn load(view: &View, id: ObjectId) -> Result<Self> {
        let key = key::document(id);
        let entry = view.get(&key)?.ok_or_else(|| {
            Error::corrupt("directory")
                .expected("a document for each entry")
                .found("none")
        })?;
        let document = catalog::array_document_in(view, &entry)?;
        // The document is the file's, so a pipeline that breaks a rule is damage.
        let layout = Layout::new(document, view.limits()).map_err(Error::into_corrupt)?;
        Ok(Self { key, entry, layout })
    }
}

/// Adds file and path to an error.
fn place(e: Error, view: &View, path: &str) -> Error {
    let e = e.in_object(path);
    match view.file() {
        Some(file) => e.in_file(file),
        None => e,
    }
}

pub(super) fn check_block(
    layout: &Layout,
    picked: &Picked,
    shape: Option<&[u64]>,
    content: &Content<'_>,
) -> Result<()> {
    let full: Vec<u64> = picked.extents().collect();
    if let Some(shape) = shape
        && shape != full
        && shape != picked.shape()
    {
        return Err(Error::invalid("block")
            .expected(format_args!(
                "shape {:?}, for the domain {}",
                picked.shape(),
                layout.domain
            ))
            .found(format_args!("{shape:?}"))
            .reason("shape"));
    }
    let found = match (content, layout.item()) {
        (Content::Block(Source::Fixed(bytes)), Some(item))
            if bytes.len().is_multiple_of(item.max(1)) =>
        {
            bytes.len().checked_div(item)
        }
        (Content::Block(Source::Variable(items)), None) => Some(items.len()),
        _ => None,
    };
    let want = picked.element_count();
    if found.map(|n| n as u128) == want {
        return Ok(());
    }
    Err(Error::invalid("block")
        .expected(format_args!(
            "{} elements of type {}",
            want.unwrap_or(u128::MAX),
            layout.document.data_type
        ))
        .found(found.map_or_else(
            || "elements of another size".to_owned(),
            |n| format!("{n} elements"),
        ))
        .reason("shape"))
}
