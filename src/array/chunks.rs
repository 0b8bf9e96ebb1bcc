//! Single chunks, by chunk coordinate.
//!
//! Holds the chunk-level calls of [`DynArray`] and [`Array`]: coordinates, a chunk decoded, its overhang included, or as
//! stored bytes. Where there are shards, the stored chunk is the shard. Must not merge or plan.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::format::key;
use crate::format::record::ChunkRecord;
use crate::grid::{AxisMap, AxisSet, Coords, Copier, Domain, Selection};

use super::element::{Element, Elements, Source};
use super::handle::{Block, ChunkState, DynArray};
use super::layout::{Layout, Tile};
use super::parallel;
use super::plan::Plan;
use super::receipt::WriteReceipt;
use super::scan;
use super::shard_edit;
use super::typed::Array;

/// Why a payload with elements outside the domain is refused.
pub(super) const OVERHANG: &str = "overhang";

/// Where the encoded bytes of a chunk lie in the file: another program can read them there, as what a Zarr v3 pipeline made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkExtent {
    /// The chunk coordinate.
    pub coord: Vec<i64>,
    /// Absolute position in the file.
    pub offset: u64,
    /// Encoded bytes.
    pub len: u64,
    /// CRC-32 of those bytes, that of gzip and zip.
    pub crc32: u32,
}

/// The chunk coordinates of a part of the grid, in key order, one at a time.
#[derive(Debug, Clone)]
pub struct ChunkCoords {
    key_order: Vec<u8>,
    sets: Vec<AxisSet>,
    next: Option<Coords>,
}

impl Iterator for ChunkCoords {
    type Item = Vec<i64>;

    fn next(&mut self) -> Option<Vec<i64>> {
        let mut next = self.next.take()?;
        let now = next.to_vec();
        let sets: SmallVec<[&AxisSet; 8]> = self.sets.iter().collect();
        if scan::advance(&self.key_order, &sets, &mut next) {
            self.next = Some(next);
        }
        Some(now)
    }
}

impl DynArray {
    /// The coordinates of all chunks of the grid that meet a region, whether anything is stored there or not.
    ///
    /// # Errors
    /// `InvalidArgument` or `OutOfDomain` for the region.
    pub fn chunk_coords(&self, selection: impl Into<Selection>) -> Result<ChunkCoords> {
        let selection = selection.into();
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            let picked = selection.resolve(&layout.domain, false)?;
            let plan = Plan::new(&layout.chunk.grid, &picked)?;
            let sets: Vec<AxisSet> = plan.sets().cloned().collect();
            let first = sets.iter().map(AxisSet::first).collect::<Option<Coords>>();
            Ok(ChunkCoords {
                key_order: layout.key_order().to_vec(),
                next: first.filter(|_| !picked.is_empty()),
                sets,
            })
        })
    }

    /// Where the encoded chunks that meet a region lie in the file, in key order: for references from outside. Reads the
    /// index alone. Of a writer, extents of uncommitted chunks are not in the file yet.
    ///
    /// # Errors
    /// As [`DynArray::chunks_in`].
    pub fn chunk_extents(&self, selection: impl Into<Selection>) -> Result<Vec<ChunkExtent>> {
        let mut extents = Vec::new();
        self.for_each_chunk(selection, |chunk| {
            if let ChunkState::Stored { offset, len, crc32 } = chunk.state {
                extents.push(ChunkExtent {
                    coord: chunk.coord,
                    offset,
                    len,
                    crc32,
                });
            }
            Ok(())
        })?;
        Ok(extents)
    }

    /// A whole chunk, decoded; `None` when it is absent (then every element is fill). Elements outside the domain are fill.
    ///
    /// # Errors
    /// `OutOfDomain` for a chunk that does not meet the domain; `InvalidArgument` (`rank`); `Corrupt`, `Unsupported`, `Io`.
    pub fn read_chunk(&self, coord: &[i64]) -> Result<Option<Block>> {
        self.with_record(coord, |layout, record| {
            let elements = Elements::load(layout, self.view(), &record)?;
            let shape = layout.document.chunk_shape.clone();
            Ok(Block {
                data_type: layout.document.data_type.clone(),
                shape,
                elements,
            })
        })
    }

    /// The stored bytes of a chunk, its checksum verified; `None` when it has no payload (absent, or a declared value).
    ///
    /// # Errors
    /// As [`DynArray::read_chunk`].
    pub fn encoded_chunk(&self, coord: &[i64]) -> Result<Option<Vec<u8>>> {
        let stored = self.with_record(coord, |_, record| match record {
            ChunkRecord::Stored { extent, .. } => {
                self.view().payload(extent).map(|p| Some(p.into_vec()))
            }
            ChunkRecord::Constant(_) | ChunkRecord::Fill => Ok(None),
        })?;
        Ok(stored.flatten())
    }

    /// Writes a whole chunk, given decoded in the shape of a stored chunk. Elements outside the domain are left out.
    ///
    /// # Errors
    /// As [`DynArray::write`]; `OutOfDomain` for a chunk that does not meet the domain.
    pub fn write_chunk(&self, coord: &[i64], block: &Block) -> Result<WriteReceipt> {
        let part = self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            let part = covered(layout, coord)?;
            if block.shape != layout.document.chunk_shape
                || block.elements.len(layout.item()) != layout.chunk.len
            {
                return Err(Error::invalid("block")
                    .expected(format_args!("shape {:?}", layout.document.chunk_shape))
                    .found(format_args!("{:?}", block.shape))
                    .reason("shape"));
            }
            Ok((cut(layout, coord, &part, &block.elements)?, part))
        });
        let (elements, part) = part?;
        let block = Block {
            data_type: block.data_type.clone(),
            shape: part.shape(),
            elements,
        };
        self.write(&part, &block)
    }

    /// Removes a chunk: its elements are fill, and it counts as never written.
    ///
    /// # Errors
    /// As [`DynArray::erase`]; `OutOfDomain` for a chunk that does not meet the domain.
    pub fn erase_chunk(&self, coord: &[i64]) -> Result<WriteReceipt> {
        let part = self.placed(|| covered(&self.compiled()?.layout, coord))?;
        self.erase(&part)
    }

    /// Stores a chunk as bytes that this array's pipeline has made, here or elsewhere. They are decoded once to see that
    /// they are right: damage and elements outside the domain other than fill are refused.
    ///
    /// # Errors
    /// As [`DynArray::write`]; `Corrupt` for bytes that do not decode.
    pub fn put_encoded_chunk(&self, coord: &[i64], payload: &[u8]) -> Result<()> {
        self.put_encoded(coord, payload, true)
    }

    /// As [`DynArray::put_encoded_chunk`], but the bytes are taken as they are. What they are shows when they are read; what
    /// lies outside the domain shows when the array grows.
    ///
    /// # Errors
    /// As [`DynArray::write`].
    pub fn put_encoded_chunk_unchecked(&self, coord: &[i64], payload: &[u8]) -> Result<()> {
        self.put_encoded(coord, payload, false)
    }

    /// Decodes a stored chunk, all inner chunks of a shard, and refuses elements outside the domain that are not fill.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported`; `Io`.
    pub(crate) fn check_chunk(&self, coord: &[i64]) -> Result<()> {
        let checked = self.with_record(coord, |layout, record| match record {
            ChunkRecord::Stored { extent, mask: 0 } => {
                let payload = self.view().payload(extent)?;
                check_payload(layout, coord, &payload, 0)
                    .map_err(|e| e.into_corrupt().at_or(extent.offset))
            }
            // Codecs that were skipped, and values without a payload.
            record => Elements::load(layout, self.view(), &record).map(drop),
        });
        checked.map(|_| ())
    }

    fn put_encoded(&self, coord: &[i64], payload: &[u8], check: bool) -> Result<()> {
        self.store_encoded(coord, payload, 0, |layout| {
            covered(layout, coord)?;
            if check {
                check_payload(layout, coord, payload, 0).map_err(|e| e.in_chunk(coord))?;
            }
            Ok(())
        })
    }

    /// Appends a payload that passes `check` and stages its record.
    pub(super) fn store_encoded(
        &self,
        coord: &[i64],
        payload: &[u8],
        mask: u8,
        check: impl Fn(&Layout) -> Result<()>,
    ) -> Result<()> {
        self.retried(|compiled| {
            let layout = &compiled.layout;
            check(layout)?;
            let writer = self.view().writer()?;
            let _hold = writer.hold();
            let extent = writer.append(payload, layout.payload_align())?;
            let record = ChunkRecord::Stored { extent, mask };
            let change = (
                key::chunk(self.id(), coord, layout.key_order()),
                Some(record.encode()),
            );
            let guard = compiled.guard();
            let staged = writer.stage_if(
                std::iter::once(guard.expectation()),
                std::iter::once(&change),
            );
            Ok(staged.ok())
        })
    }

    pub(super) fn with_record<R>(
        &self,
        coord: &[i64],
        f: impl FnOnce(&Layout, ChunkRecord) -> Result<R>,
    ) -> Result<Option<R>> {
        self.placed(|| {
            let compiled = self.compiled()?;
            let layout = &compiled.layout;
            covered(layout, coord)?;
            let Some(value) = self
                .view()
                .get(&key::chunk(self.id(), coord, layout.key_order()))?
            else {
                return Ok(None);
            };
            let done = scan::decode(&value).and_then(|record| f(layout, record));
            done.map(Some).map_err(|e| e.in_chunk(coord))
        })
    }
}

/// The elements of a chunk that lie in the domain; a chunk without any is refused.
pub(super) fn covered(layout: &Layout, coord: &[i64]) -> Result<Domain> {
    let grid = &layout.chunk.grid;
    if coord.len() != grid.rank() {
        return Err(Error::invalid("chunk coordinate")
            .expected(format_args!("{} axes", grid.rank()))
            .found(coord.len())
            .reason("rank"));
    }
    let part = grid.covered(coord, &layout.domain);
    if part.is_empty() {
        return Err(
            Error::out_of_domain(format!("the chunk lies outside {}", layout.domain))
                .reason("out_of_domain")
                .in_chunk(coord),
        );
    }
    Ok(part)
}

/// The elements of `part`, which lies in chunk `coord`, out of the whole chunk.
pub(super) fn cut(
    layout: &Layout,
    coord: &[i64],
    part: &Domain,
    chunk: &Elements,
) -> Result<Elements> {
    let tile = &layout.chunk;
    let shape: SmallVec<[usize; 8]> = part
        .extents()
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        .collect();
    let maps = super::chunk::inside(tile, coord, part).map(|map| match map {
        AxisMap::Run { src, len, .. } => AxisMap::Run {
            src,
            dst: 0,
            len,
            src_step: 1,
            dst_step: 1,
        },
        pairs @ AxisMap::Pairs(_) => pairs,
    });
    let copier = Copier::new(maps, &tile.shape, &shape)?;
    match chunk {
        Elements::Fixed(bytes) => {
            let item = tile.item.unwrap_or(1);
            let mut out = super::chunk::reserve(copier.len().checked_mul(item))?;
            copier.copy_bytes(item, bytes, &mut out);
            Ok(Elements::Fixed(out))
        }
        Elements::Variable(items) => {
            let mut out = vec![Box::from([]); copier.len()];
            super::chunk::for_each_pair(&copier, |src, dst| {
                if let (Some(to), Some(from)) = (out.get_mut(dst), items.get(src)) {
                    from.clone_into(to);
                }
            });
            Ok(Elements::Variable(out))
        }
    }
}

/// Decodes a payload, the inner chunks of a shard one by one, and refuses what no chunk may hold.
pub(super) fn check_payload(
    layout: &Layout,
    coord: &[i64],
    payload: &[u8],
    mask: u8,
) -> Result<()> {
    let Some((shard, tile)) = layout.sharded() else {
        return check_elements(&layout.chunk, layout, coord, payload, mask);
    };
    let index = shard.index_of(payload)?;
    let all = shard_edit::all_inner(shard, coord);
    parallel::map(all, |(number, inner)| {
        let fail = |e: Error| e.in_inner(&shard.position(number));
        let Some(range) = index.get(number).map_err(fail)? else {
            return Ok(());
        };
        let at = |x: u64| usize::try_from(x).unwrap_or(usize::MAX);
        let bytes = payload.get(at(range.start)..at(range.end));
        check_elements(tile, layout, &inner, bytes.unwrap_or_default(), 0).map_err(fail)
    })
    .map(drop)
}

fn check_elements(
    tile: &Tile,
    layout: &Layout,
    coord: &[i64],
    payload: &[u8],
    mask: u8,
) -> Result<()> {
    let mut elements = Elements::decode(tile, payload, mask)?;
    let part = tile.grid.covered(coord, &layout.domain);
    if !tile.grid.is_inside(coord, &layout.domain) && elements.scrub(tile, coord, &part)? {
        return Err(Error::invalid("encoded chunk")
            .expected(format_args!("fill outside the domain {}", layout.domain))
            .found("other elements there")
            .help("decode the chunk and write its part inside the domain")
            .reason(OVERHANG));
    }
    Ok(())
}

impl<T: Element> Array<T> {
    /// A whole chunk in C order; `None` when it is absent. Elements outside the domain are fill.
    ///
    /// # Errors
    /// As [`DynArray::read_chunk`].
    pub fn read_chunk(&self, coord: &[i64]) -> Result<Option<Vec<T>>> {
        let block = DynArray::read_chunk(self, coord)?;
        block.map(|b| T::collect(b.elements)).transpose()
    }

    /// Writes a whole chunk, given in C order in the shape of a stored chunk. Elements outside the domain are left out.
    ///
    /// # Errors
    /// As [`DynArray::write_chunk`].
    pub fn write_chunk(&self, coord: &[i64], items: &[T]) -> Result<WriteReceipt> {
        let elements = match T::source(items) {
            Source::Fixed(bytes) => Elements::Fixed(bytes.into_owned()),
            Source::Variable(items) => {
                Elements::Variable(items.into_iter().map(Box::from).collect())
            }
        };
        let block = Block {
            data_type: self.data_type(),
            shape: self.stored_shape(),
            elements,
        };
        DynArray::write_chunk(self, coord, &block)
    }
}
