//! Codec `sharding_indexed`: array to bytes, many inner chunks in one payload.
//!
//! Produces: the encoded inner chunks one after the other in C order of their grid, then their index (Zarr v3, "Sharding codec", version
//! 1.0). Inner chunks of nothing but fill are left out. Reads them in any order, and the index
//! at either end.
//! Parameters: `chunk_shape`, `codecs`, `index_codecs`, `index_location`. Output: at most what the inner pipeline makes of
//! every inner chunk, and the index. A shard within a shard is refused by name.
//!
//! Holds whole shards only; who wants less asks for the index and decodes inner chunks with [`Shard::inner`].

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::config::Config;
use super::fill::{is_repeated, repeat};
use super::pipeline::Pipeline;
use super::scratch::Scratch;
use super::shard_index::{IndexForm, ShardIndex};
use super::steps::{Place, Size};
use super::vlen::VariableItems;
use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::json::Json;
use crate::format::pipeline::SHARDING;
use crate::grid::{AxisMap, Copier};

/// The compiled codec for shards of one shape.
#[derive(Debug, Clone)]
pub(crate) struct Shard {
    inner: Arc<Pipeline>,
    inner_shape: Vec<usize>,
    /// Inner chunks per axis.
    counts: Vec<usize>,
    shape: Vec<usize>,
    index: IndexForm,
    fill: Vec<u8>,
    item_len: Option<usize>,
}

impl Shard {
    pub(crate) fn parse(mut config: Config<'_>, place: &Place<'_>) -> Result<Self> {
        let inner_shape = inner_shape(&mut config, &place.shape)?;
        let codecs = codec_list(&mut config, "codecs")?;
        let index_codecs = codec_list(&mut config, "index_codecs")?;
        let at_start = match config.text("index_location")? {
            None | Some("end") => false,
            Some("start") => true,
            Some(other) => {
                return Err(config
                    .fault()
                    .expected("`index_location` end or start")
                    .found(other));
            }
        };
        config.finish()?;
        if codecs.iter().any(|codec| codec.name == SHARDING) {
            return Err(
                Error::unsupported("codec `sharding_indexed` within a shard")
                    .reason("nested_shards"),
            );
        }
        let counts: Vec<usize> = place
            .shape
            .iter()
            .zip(&inner_shape)
            .map(|(outer, inner)| outer.checked_div(*inner).unwrap_or(0))
            .collect();
        let count = counts
            .iter()
            .try_fold(1_usize, |n, axis| n.checked_mul(*axis))
            .filter(|n| *n as u64 <= place.limits.inner_chunks)
            .ok_or_else(|| {
                Error::limit("inner chunks of a shard")
                    .expected(format_args!("at most {}", place.limits.inner_chunks))
                    .found(format_args!("{counts:?}"))
            })?;
        let shape: Vec<u64> = inner_shape.iter().map(|n| *n as u64).collect();
        let inner = Pipeline::new(&codecs, place.data_type, &shape, place.fill, place.limits)?;
        Ok(Self {
            inner: Arc::new(inner),
            inner_shape,
            counts,
            shape: place.shape.clone(),
            index: IndexForm::new(&index_codecs, at_start, count)?,
            fill: place.fill.to_vec(),
            item_len: place.layout.item_len,
        })
    }

    /// The pipeline of the inner chunks.
    pub(crate) fn inner(&self) -> &Arc<Pipeline> {
        &self.inner
    }

    /// Elements per axis of an inner chunk.
    pub(crate) fn inner_shape(&self) -> &[usize] {
        &self.inner_shape
    }

    /// Inner chunks per axis.
    pub(crate) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// How the index is encoded, and where it stands.
    pub(crate) fn index(&self) -> &IndexForm {
        &self.index
    }

    /// True when index and inner chunks carry checksums of their own, so that parts can be read without the whole.
    pub(crate) fn checks_itself(&self) -> bool {
        self.index.is_checked() && self.inner.ends_in_checksum()
    }

    /// The number of an inner chunk, whose position on each axis is below the count of that axis.
    pub(crate) fn number(&self, position: impl IntoIterator<Item = usize>) -> usize {
        self.counts
            .iter()
            .zip(position)
            .fold(0_usize, |n, (count, at)| {
                n.saturating_mul(*count).saturating_add(at)
            })
    }

    /// The position of inner chunk `number`: the inverse of [`Shard::number`].
    pub(crate) fn position(&self, number: usize) -> SmallVec<[u64; 8]> {
        let mut rest = number;
        let mut position: SmallVec<[u64; 8]> = self
            .counts
            .iter()
            .rev()
            .map(|count| {
                let at = rest.checked_rem(*count).unwrap_or(0);
                rest = rest.checked_div(*count).unwrap_or(0);
                at as u64
            })
            .collect();
        position.reverse();
        position
    }

    /// The index of a shard that is in memory whole.
    pub(crate) fn index_of(&self, shard: &[u8]) -> Result<ShardIndex> {
        let len = shard.len() as u64;
        let place = self.index.range(len)?;
        self.index.decode(slice(shard, &place), len)
    }

    /// Bound of a shard's length.
    pub(crate) fn encoded_size(&self) -> Size {
        let inner = self.inner.encoded_size().max();
        Size::AtMost(
            inner
                .saturating_mul(self.index.count())
                .saturating_add(self.index.encoded_len()),
        )
    }

    /// Encodes a whole shard of fixed-size elements. `out` is replaced.
    pub(crate) fn encode(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let item = self.item_len.unwrap_or(1);
        let mut block = Scratch::take();
        let parts = self.encode_each(|number| {
            let block = block.first(self.inner.decoded_len());
            self.copier(number)?.copy_bytes(item, decoded, block);
            if is_repeated(&self.fill, block) {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            self.inner.encode(block, &mut bytes)?;
            Ok(Some(bytes))
        })?;
        self.assemble(&parts, out)
    }

    /// Encodes a whole shard of items of variable length. `out` is replaced.
    pub(crate) fn encode_variable(&self, items: &VariableItems, out: &mut Vec<u8>) -> Result<()> {
        let parts = self.encode_each(|number| {
            let mut block = Vec::with_capacity(self.inner.item_count());
            for_each_index(&self.copier(number)?, |src, _| {
                block.push(items.get(src).unwrap_or_default());
            });
            if block.iter().all(|item| *item == self.fill) {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            let block: VariableItems = block.into_iter().collect();
            self.inner.encode_variable(&block, &mut bytes)?;
            Ok(Some(bytes))
        })?;
        self.assemble(&parts, out)
    }

    /// Decodes a whole shard into exactly `out`.
    pub(crate) fn decode(&self, shard: &[u8], out: &mut [u8]) -> Result<()> {
        let item = self.item_len.unwrap_or(1);
        repeat(&self.fill, out);
        let mut block = Scratch::take();
        self.decode_each(shard, |number, bytes| {
            let block = block.first(self.inner.decoded_len());
            self.inner.decode(bytes, 0, block)?;
            self.placer(number)?.copy_bytes(item, block, out);
            Ok(())
        })
    }

    /// Decodes a whole shard of items of variable length.
    pub(crate) fn decode_variable(&self, shard: &[u8]) -> Result<VariableItems> {
        let count = self
            .shape
            .iter()
            .fold(1_usize, |n, axis| n.saturating_mul(*axis));
        // Every item first names its place, so that they can be laid out in the order of the shard.
        let mut places: Vec<Option<(usize, usize)>> = vec![None; count];
        let mut blocks: Vec<VariableItems> = Vec::new();
        self.decode_each(shard, |number, bytes| {
            let items = self.inner.decode_variable(bytes, 0)?;
            for_each_index(&self.placer(number)?, |src, dst| {
                if let Some(place) = places.get_mut(dst) {
                    *place = Some((blocks.len(), src));
                }
            });
            blocks.push(items);
            Ok(())
        })?;
        let item = |place: &Option<(usize, usize)>| {
            place
                .and_then(|(block, at)| blocks.get(block)?.get(at))
                .unwrap_or(&self.fill)
        };
        Ok(places.iter().map(item).collect())
    }

    fn encode_each(
        &self,
        mut encode: impl FnMut(usize) -> Result<Option<Vec<u8>>>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        (0..self.index.count()).map(&mut encode).collect()
    }

    fn assemble(&self, parts: &[Option<Vec<u8>>], out: &mut Vec<u8>) -> Result<()> {
        let parts = parts.iter().map(Option::as_deref);
        self.index.assemble(parts, out).map(|_| ())
    }

    /// Calls `f` with number and bytes of every inner chunk that is there.
    fn decode_each(
        &self,
        shard: &[u8],
        mut f: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let index = self.index_of(shard)?;
        for number in 0..self.index.count() {
            let done = match index.get(number) {
                Ok(None) => Ok(()),
                Ok(Some(range)) => f(number, slice(shard, &range)),
                Err(e) => Err(e),
            };
            done.map_err(|e| e.in_inner(&self.position(number)))?;
        }
        Ok(())
    }

    /// The copy of inner chunk `number` out of the shard's elements.
    fn copier(&self, number: usize) -> Result<Copier> {
        let maps = self.maps(number).map(|map| map.reversed());
        Copier::new(maps, &self.shape, &self.inner_shape)
    }

    /// The copy of inner chunk `number` into the shard's elements.
    fn placer(&self, number: usize) -> Result<Copier> {
        Copier::new(self.maps(number), &self.inner_shape, &self.shape)
    }

    fn maps(&self, number: usize) -> impl Iterator<Item = AxisMap> {
        let position = self.position(number);
        self.inner_shape
            .iter()
            .enumerate()
            .map(move |(axis, &len)| {
                let at = position
                    .get(axis)
                    .and_then(|at| usize::try_from(*at).ok())
                    .unwrap_or(0);
                AxisMap::Run {
                    src: 0,
                    dst: at.saturating_mul(len),
                    len,
                    src_step: 1,
                    dst_step: 1,
                }
            })
    }
}

/// The bytes of `range`, which the index has found to lie inside.
fn slice<'s>(shard: &'s [u8], range: &Range<u64>) -> &'s [u8] {
    match (usize::try_from(range.start), usize::try_from(range.end)) {
        (Ok(start), Ok(end)) => shard.get(start..end).unwrap_or_default(),
        _ => &[],
    }
}

fn for_each_index(copier: &Copier, mut f: impl FnMut(usize, usize)) {
    copier.for_each(|run| {
        let (mut src, mut dst) = (run.src, run.dst);
        for _ in 0..run.len {
            f(src, dst);
            src = src.wrapping_add(run.src_step);
            dst = dst.wrapping_add(run.dst_step);
        }
    });
}

fn inner_shape(config: &mut Config<'_>, shape: &[usize]) -> Result<Vec<usize>> {
    let list = config.list("chunk_shape")?.unwrap_or_default();
    let extents: Option<Vec<usize>> = list
        .iter()
        .map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok()))
        .collect();
    let fits = |inner: &[usize]| {
        inner.len() == shape.len()
            && inner
                .iter()
                .zip(shape)
                .all(|(inner, outer)| *inner > 0 && outer.is_multiple_of(*inner))
    };
    match extents {
        Some(inner) if fits(&inner) => Ok(inner),
        found => Err(config
            .fault()
            .expected(format_args!(
                "`chunk_shape`, which divides the shard's {shape:?} axis by axis"
            ))
            .found(found.map_or_else(|| "none".to_owned(), |inner| format!("{inner:?}")))),
    }
}

fn codec_list(config: &mut Config<'_>, key: &'static str) -> Result<Vec<CodecSpec>> {
    let list: &[Json] = config.list(key)?.unwrap_or_default();
    list.iter().map(CodecSpec::from_json).collect()
}
