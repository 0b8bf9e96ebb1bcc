//! One array's codecs, compiled: whole chunks to payloads and back.
//!
//! Holds [`Pipeline`]. Must not know any codec's bytes, nor where a payload lies.
//!
//! Lengths. The length of a decoded chunk follows from the document. Every decoder is told what must come out: exactly,
//! as far as the codecs before it keep or add a fixed length (shuffle, checksums), else at most what any encoder can
//! make of the longest input. Payloads of items of variable length are bounded by the limit on a decoded chunk.
//!
//! The filter mask names codecs that a chunk skipped (HDF5 does that to chunks that would grow); only bytes-to-bytes
//! codecs can be skipped, since no other leaves its input's meaning alone.

use smallvec::SmallVec;

use super::bytes::check_bools;
use super::decoded::Decoded;
use super::layout::Layout;
use super::output::{Output, wrong_len};
use super::scratch::Scratch;
use super::shard::Shard;
use super::steps::{ArrayStep, ByteStep, Place, Serializer, Size, Step, parse};
use super::vlen::{VariableItems, Vlen};
use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::dtype::DataType;
use crate::format::pipeline::SHARDING;
use crate::limits::{CODECS_MAX, Limits};

/// A compiled pipeline for one array: what its document's codecs do to one chunk.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    array: Vec<ArrayStep>,
    serializer: Serializer,
    bytes: Vec<ByteStep>,
    layout: Layout,
    /// Elements of a chunk.
    item_count: usize,
    /// Bytes of a decoded chunk; for items of variable length the most it may have.
    decoded: Size,
    /// Bytes of what the array-to-bytes codec makes of it: the same, but for shards.
    pub(super) serialized: Size,
    names: Vec<String>,
}

/// The steps of one chunk's payload with the length before each, first step first.
pub(super) type Plan<'p> = SmallVec<[(&'p ByteStep, Size); CODECS_MAX]>;

impl Pipeline {
    /// Compiles `codecs` for chunks of this shape; `fill` is one element's bytes.
    ///
    /// # Errors
    /// `Unsupported` for a codec or a member of a configuration that this build does not know, `InvalidArgument` for
    /// one that breaks a rule, `LimitExceeded` for a chunk too large to decode.
    pub(crate) fn new(
        codecs: &[CodecSpec],
        data_type: &DataType,
        chunk_shape: &[u64],
        fill: &[u8],
        limits: &Limits,
    ) -> Result<Self> {
        let layout = Layout::of(data_type);
        if layout.item_len.is_some_and(|len| len != fill.len()) {
            return Err(Error::invalid("fill value")
                .expected(format_args!("{} bytes", layout.item_len.unwrap_or(0)))
                .found(fill.len()));
        }
        if codecs.is_empty() || codecs.len() > CODECS_MAX {
            return Err(order_error()
                .expected(format_args!("1..={CODECS_MAX} codecs"))
                .found(codecs.len()));
        }
        let (item_count, decoded) = chunk_size(chunk_shape, &layout, limits)?;
        let mut place = Place {
            data_type,
            fill,
            shape: chunk_shape
                .iter()
                .map(|n| usize::try_from(*n).unwrap_or(usize::MAX))
                .collect(),
            layout: &layout,
            size: decoded,
            limits,
        };
        let mut serialized = decoded;
        let (mut array, mut serializer, mut bytes) = (Vec::new(), None, Vec::new());
        for spec in codecs {
            match (parse(spec, &mut place)?, &serializer) {
                (Step::Array(step), None) => array.push(step),
                (Step::Serializer(step), None) => {
                    if let Serializer::Shard(shard) = &step {
                        serialized = shard.encoded_size();
                    }
                    place.size = serialized;
                    serializer = Some(step);
                }
                (Step::Bytes(step), Some(_)) => {
                    place.size = step.encoded_size(place.size);
                    bytes.push(step);
                }
                (Step::Array(_) | Step::Serializer(_), Some(_)) => {
                    return Err(order_error()
                        .expected("nothing that takes an array after the array-to-bytes codec")
                        .found(&spec.name));
                }
                (Step::Bytes(_), None) => {
                    return Err(order_error()
                        .expected("an array-to-bytes codec before the first that takes bytes")
                        .found(&spec.name));
                }
            }
        }
        let serializer = serializer.ok_or_else(|| {
            order_error()
                .expected("one array-to-bytes codec")
                .found("none")
        })?;
        check_serializer(&serializer, &array, data_type, &layout)?;
        Ok(Self {
            array,
            serializer,
            bytes,
            item_count,
            decoded,
            serialized,
            names: codecs.iter().map(|spec| spec.name.clone()).collect(),
            layout,
        })
    }

    /// Bytes of a decoded chunk of fixed-size elements; 0 for items of variable length.
    pub(crate) fn decoded_len(&self) -> usize {
        self.decoded.exact().unwrap_or(0)
    }

    /// Elements of a chunk.
    pub(crate) fn item_count(&self) -> usize {
        self.item_count
    }

    /// True for items of variable length: only `encode_variable` and `decode_variable` apply.
    pub(crate) fn is_variable(&self) -> bool {
        self.layout.item_len.is_none()
    }

    /// True when a payload's bytes are the decoded bytes, so that rows can be copied straight from it.
    ///
    /// Never for booleans, whose bytes have to be looked at.
    pub(crate) fn is_raw(&self) -> bool {
        self.array.is_empty()
            && self.bytes.is_empty()
            && self.layout.bools.is_empty()
            && matches!(&self.serializer, Serializer::Bytes(b) if b.swap <= 1)
    }

    /// The shard codec, if one serializes these chunks; then whether it is all there is, so that parts of a payload can be
    /// read by themselves.
    pub(crate) fn shard(&self) -> Option<(&Shard, bool)> {
        let alone = self.array.is_empty() && self.bytes.is_empty();
        match &self.serializer {
            Serializer::Shard(shard) => Some((shard, alone)),
            _ => None,
        }
    }

    /// Elements per axis of the smallest block that is encoded by itself, in the axes of the array; none without shards.
    pub(crate) fn inner_shape(&self) -> Option<Vec<usize>> {
        let (shard, _) = self.shard()?;
        let mut shape = shard.inner_shape().to_vec();
        for step in self.array.iter().rev() {
            if let ArrayStep::Transpose(transpose) = step {
                shape = transpose.shape_before(&shape);
            }
        }
        Some(shape)
    }

    /// Refuses a filter mask that no chunk of this pipeline can have.
    pub(crate) fn check_mask(&self, mask: u8) -> Result<()> {
        self.plan(mask).map(|_| ())
    }

    /// True when every payload ends in a checksum of what stands before it.
    pub(crate) fn ends_in_checksum(&self) -> bool {
        matches!(self.bytes.last(), Some(ByteStep::Checksum(_)))
    }

    /// Length of a payload, or its bound.
    pub(crate) fn encoded_size(&self) -> Size {
        let sizes = self.bytes.iter();
        sizes.fold(self.serialized, |size, step| step.encoded_size(size))
    }

    /// Names of the codecs, in order.
    pub(crate) fn describe(&self) -> &[String] {
        &self.names
    }

    /// Encodes a whole chunk: its elements in C order, little-endian. `out` is replaced.
    pub(crate) fn encode(&self, decoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.is_variable() || decoded.len() != self.decoded_len() {
            return Err(Error::invalid("decoded chunk")
                .expected(format_args!("{} bytes", self.decoded_len()))
                .found(decoded.len()));
        }
        check_bools(decoded, &self.layout)
            .map_err(|e| Error::invalid("boolean").found(e.found_value().unwrap_or_default()))?;
        let swaps = matches!(&self.serializer, Serializer::Bytes(b) if b.swap > 1);
        if self.array.is_empty() && !swaps {
            return self.serialize(decoded, out);
        }
        let item_len = self.layout.item_len.unwrap_or(1);
        let mut work = Scratch::take();
        let len = decoded.len();
        let mut steps = self.array.iter();
        // The first step that moves elements saves the copy of the input.
        if let Some(ArrayStep::Transpose(first)) = self.array.first() {
            first.encode(decoded, item_len, work.first(len));
            steps.next();
        } else {
            work.first(len).copy_from_slice(decoded);
        }
        for step in steps {
            match step {
                ArrayStep::Delta(delta) => delta.encode(work.first(len)),
                ArrayStep::Transpose(transpose) => {
                    let mut next = Scratch::take();
                    transpose.encode(work.first(len), item_len, next.first(len));
                    work = next;
                }
            }
        }
        if let Serializer::Bytes(bytes) = &self.serializer {
            bytes.swap(work.first(len));
        }
        self.serialize(work.first(len), out)
    }

    /// Encodes what the array-to-array codecs have made, its words in the order of `bytes` already.
    fn serialize(&self, elements: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &self.serializer {
            Serializer::Shard(shard) if self.bytes.is_empty() => shard.encode(elements, out),
            Serializer::Shard(shard) => {
                let mut work = Scratch::take();
                shard.encode(elements, work.vec())?;
                self.encode_bytes(work.as_slice(), out)
            }
            _ => self.encode_bytes(elements, out),
        }
    }

    /// Undoes all but the array-to-array codecs.
    fn deserialize(&self, encoded: &[u8], mask: u8, out: &mut [u8]) -> Result<()> {
        match &self.serializer {
            Serializer::Shard(shard) => {
                let mut work = Scratch::take();
                shard.decode(self.unwrapped(encoded, mask, &mut work)?, out)
            }
            Serializer::Bytes(bytes) => {
                self.decode_bytes(encoded, mask, Output::Exact(&mut *out))?;
                bytes.swap(out);
                Ok(())
            }
            Serializer::Vlen(_) => self.vlen().map(|_| ()),
        }
    }

    /// The bytes that the array-to-bytes codec made: the payload itself where no codec came after it.
    fn unwrapped<'e>(
        &self,
        encoded: &'e [u8],
        mask: u8,
        work: &'e mut Scratch,
    ) -> Result<&'e [u8]> {
        if self.bytes.is_empty() {
            self.plan(mask)?;
            return Ok(encoded);
        }
        let max = self.serialized.max();
        let out = work.vec();
        self.decode_bytes(encoded, mask, Output::AtMost { out, max })?;
        Ok(work.as_slice())
    }

    /// Decodes a payload into exactly `out`; `mask` says which codecs this chunk skipped.
    ///
    /// After an error the content of `out` means nothing.
    pub(crate) fn decode(&self, encoded: &[u8], mask: u8, out: &mut [u8]) -> Result<()> {
        if self.is_variable() || out.len() != self.decoded_len() {
            return Err(Error::invalid("buffer for a decoded chunk")
                .expected(format_args!("{} bytes", self.decoded_len()))
                .found(out.len()));
        }
        if !self.moves() {
            self.deserialize(encoded, mask, out)?;
            for step in self.array.iter().rev() {
                if let ArrayStep::Delta(delta) = step {
                    delta.decode(out);
                }
            }
            return check_bools(out, &self.layout);
        }
        let item_len = self.layout.item_len.unwrap_or(1);
        let (mut work, len) = (Scratch::take(), out.len());
        self.deserialize(encoded, mask, work.first(len))?;
        // What lies before the first transpose happens in the caller's buffer, to which that one moves the elements.
        let mut moves_left = self.array.iter().filter(|step| step.moves()).count();
        for step in self.array.iter().rev() {
            match step {
                ArrayStep::Delta(delta) if moves_left > 0 => delta.decode(work.first(len)),
                ArrayStep::Delta(delta) => delta.decode(out),
                ArrayStep::Transpose(transpose) => {
                    moves_left = moves_left.saturating_sub(1);
                    if moves_left == 0 {
                        transpose.decode(work.first(len), item_len, out);
                    } else {
                        let mut next = Scratch::take();
                        transpose.decode(work.first(len), item_len, next.first(len));
                        work = next;
                    }
                }
            }
        }
        check_bools(out, &self.layout)
    }

    /// Refuses elements that the type does not have, which no codec has seen: a fill value's, a constant chunk's.
    pub(crate) fn check_elements(&self, elements: &[u8]) -> Result<()> {
        check_bools(elements, &self.layout)
    }

    /// Decodes a payload and lends the chunk to `f`: the elements, or the planes of a shuffle that is all that is left to
    /// undo. Reads what `decode` reads.
    pub(crate) fn decode_with<R>(
        &self,
        encoded: &[u8],
        mask: u8,
        f: impl FnOnce(Decoded<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut work = Scratch::take();
        if let Some(plan) = self.ends_in_shuffle(mask)? {
            let planes = work.first(self.decoded_len());
            Self::run(&plan, encoded, Output::Exact(&mut *planes))?;
            return f(Decoded::Planes(planes));
        }
        let elements = work.first(self.decoded_len());
        self.decode(encoded, mask, elements)?;
        f(Decoded::Elements(elements))
    }

    /// The steps before a shuffle of whole elements, where undoing that shuffle gives the chunk's elements.
    fn ends_in_shuffle(&self, mask: u8) -> Result<Option<Plan<'_>>> {
        let plain = matches!(&self.serializer, Serializer::Bytes(b) if b.swap <= 1);
        if !plain || !self.array.is_empty() || !self.layout.bools.is_empty() {
            return Ok(None);
        }
        let mut plan = self.plan(mask)?;
        match plan.first() {
            Some((ByteStep::Shuffle(s), _))
                if Some(s.element_len()) == self.layout.item_len && s.element_len() > 1 =>
            {
                plan.remove(0);
                Ok(Some(plan))
            }
            _ => Ok(None),
        }
    }

    /// Encodes a whole chunk of items of variable length. `out` is replaced.
    pub(crate) fn encode_variable(&self, items: &VariableItems, out: &mut Vec<u8>) -> Result<()> {
        if items.len() != self.item_count {
            return Err(Error::invalid("decoded chunk")
                .expected(format_args!("{} items", self.item_count))
                .found(items.len()));
        }
        match &self.serializer {
            Serializer::Shard(shard) if self.bytes.is_empty() => shard.encode_variable(items, out),
            Serializer::Shard(shard) => {
                let mut work = Scratch::take();
                shard.encode_variable(items, work.vec())?;
                self.encode_bytes(work.as_slice(), out)
            }
            _ => self.encode_bytes(&self.vlen()?.encode(items, self.decoded.max())?, out),
        }
    }

    /// Decodes a payload of items of variable length.
    pub(crate) fn decode_variable(&self, encoded: &[u8], mask: u8) -> Result<VariableItems> {
        let mut work = Scratch::take();
        if let Serializer::Shard(shard) = &self.serializer {
            return shard.decode_variable(self.unwrapped(encoded, mask, &mut work)?);
        }
        let vlen = self.vlen()?;
        let max = self.decoded.max();
        let output = Output::AtMost {
            out: work.vec(),
            max,
        };
        self.decode_bytes(encoded, mask, output)?;
        vlen.decode(work.as_slice(), self.item_count)
    }

    fn vlen(&self) -> Result<Vlen> {
        match &self.serializer {
            Serializer::Vlen(vlen) => Ok(*vlen),
            Serializer::Bytes(_) | Serializer::Shard(_) => {
                Err(Error::type_mismatch("element type")
                    .expected("fixed-size elements")
                    .found("items of variable length"))
            }
        }
    }

    /// True when a codec moves elements, so that the serialized chunk is not the decoded one with other bytes.
    fn moves(&self) -> bool {
        self.array.iter().any(ArrayStep::moves)
    }

    /// Runs the bytes-to-bytes codecs; only what the last of them makes is written to `out`.
    fn encode_bytes(&self, serialized: &[u8], out: &mut Vec<u8>) -> Result<()> {
        // Trailing checksums are appended in place: what they cover is not copied for them.
        let checksums = self.bytes.iter().rev();
        let tail = checksums
            .take_while(|step| matches!(step, ByteStep::Checksum(_)))
            .count();
        let (steps, tail) = self.bytes.split_at(self.bytes.len().saturating_sub(tail));
        match steps.split_last() {
            None => {
                out.clear();
                out.extend_from_slice(serialized);
            }
            Some((last, steps)) => {
                let mut before: Option<Scratch> = None;
                for step in steps {
                    let mut next = Scratch::take();
                    let src = before.as_ref().map_or(serialized, Scratch::as_slice);
                    step.encode(src, next.vec())?;
                    before = Some(next);
                }
                let src = before.as_ref().map_or(serialized, Scratch::as_slice);
                last.encode(src, out)?;
            }
        }
        for step in tail {
            if let ByteStep::Checksum(checksum) = step {
                checksum.append(out);
            }
        }
        Ok(())
    }

    /// Undoes the bytes-to-bytes codecs that the mask does not name, last first.
    fn decode_bytes(&self, encoded: &[u8], mask: u8, output: Output<'_>) -> Result<()> {
        Self::run(&self.plan(mask)?, encoded, output)
    }

    /// Undoes the steps of a plan, last first.
    fn run(plan: &Plan<'_>, encoded: &[u8], output: Output<'_>) -> Result<()> {
        let mut held: Option<Scratch> = None;
        // What `held` holds up to, or the part of the payload that no codec has touched yet.
        let mut span = 0..encoded.len();
        let mut output = Some(output);
        for (index, (step, size)) in plan.iter().enumerate().rev() {
            let all = held.as_ref().map_or(encoded, Scratch::as_slice);
            let src = all.get(span.clone()).unwrap_or_default();
            if let ByteStep::Checksum(checksum) = step {
                span = span.start..span.start.saturating_add(checksum.verify(src)?.len());
                continue;
            }
            if index == 0
                && let Some(output) = output.take()
            {
                return step.decode(src, output);
            }
            let mut next = Scratch::take();
            let len = match size {
                Size::Exact(len) => {
                    step.decode(src, Output::Exact(next.first(*len)))?;
                    *len
                }
                Size::AtMost(max) => {
                    let (out, max) = (next.vec(), *max);
                    step.decode(src, Output::AtMost { out, max })?;
                    next.as_slice().len()
                }
            };
            held = Some(next);
            span = 0..len;
        }
        let all = held.as_ref().map_or(encoded, Scratch::as_slice);
        let src = all.get(span).unwrap_or_default();
        match output {
            Some(mut output) => {
                output.exactly("bytes", src.len())?.copy_from_slice(src);
                Ok(())
            }
            None => Err(wrong_len("bytes", 0, src.len())),
        }
    }

    /// The steps that one chunk went through.
    pub(super) fn plan(&self, mask: u8) -> Result<Plan<'_>> {
        let first = self.array.len().saturating_add(1);
        let skipped = |index: usize| {
            mask.checked_shr(u32::try_from(index).unwrap_or(u32::MAX))
                .unwrap_or(0)
                & 1
                != 0
        };
        if (0..first).any(skipped) || (self.names.len()..8).any(skipped) {
            return Err(Error::corrupt("filter mask")
                .expected("bits of bytes-to-bytes codecs only")
                .found(format_args!("{mask:#010b}")));
        }
        let mut size = self.serialized;
        let mut plan = Plan::new();
        for (index, step) in self.bytes.iter().enumerate() {
            if !skipped(first.saturating_add(index)) {
                plan.push((step, size));
                size = step.encoded_size(size);
            }
        }
        Ok(plan)
    }
}

/// Elements and bytes of a chunk, within the limit: no chunk can be declared that later cannot be decoded.
fn chunk_size(shape: &[u64], layout: &Layout, limits: &Limits) -> Result<(usize, Size)> {
    let max = limits.decoded_chunk_bytes;
    // Items of variable length take 4 bytes each in every payload.
    let item_len = layout.item_len.unwrap_or(4) as u128;
    let count = shape
        .iter()
        .try_fold(1u128, |n, extent| n.checked_mul(u128::from(*extent)));
    let len = count.and_then(|count| count.checked_mul(item_len));
    let fits = |n: u128| usize::try_from(n).ok();
    match (count.and_then(fits), len.and_then(fits)) {
        (Some(count), Some(len)) if len as u64 <= max => Ok(match layout.item_len {
            Some(_) => (count, Size::Exact(len)),
            None => (
                count,
                Size::AtMost(usize::try_from(max).unwrap_or(usize::MAX)),
            ),
        }),
        _ => {
            let found = len.map_or("more bytes than 128 bits can count".to_owned(), |len| {
                format!("{len} bytes ({})", in_gib(len))
            });
            Err(Error::limit(format!("chunk of {shape:?} elements"))
                .reason("chunk_bytes")
                .expected(format_args!(
                    "at most {max} decoded bytes ({})",
                    in_gib(u128::from(max))
                ))
                .found(found)
                .help("choose shorter chunk axes, or shards of smaller chunks"))
        }
    }
}

/// "2.00 GiB", cut off, not rounded.
fn in_gib(bytes: u128) -> String {
    let hundredths = (bytes >> 20).saturating_mul(100) >> 10;
    let (whole, rest) = (hundredths.div_euclid(100), hundredths.rem_euclid(100));
    format!("{whole}.{rest:02} GiB")
}

fn check_serializer(
    serializer: &Serializer,
    array: &[ArrayStep],
    data_type: &DataType,
    layout: &Layout,
) -> Result<()> {
    let fits = match serializer {
        Serializer::Bytes(_) => layout.item_len.is_some_and(|len| len > 0),
        Serializer::Vlen(Vlen::Utf8) => *data_type == DataType::String,
        Serializer::Vlen(Vlen::Bytes) => *data_type == DataType::Bytes,
        // The inner pipeline has answered for itself.
        Serializer::Shard(_) => layout.item_len != Some(0),
    };
    if !fits {
        return Err(order_error()
            .expected("the array-to-bytes codec of the data type: vlen-utf8 for text, vlen-bytes for bytes of any length, else bytes")
            .found(match serializer {
                Serializer::Bytes(_) => "bytes",
                Serializer::Vlen(vlen) => vlen.name(),
                Serializer::Shard(_) => SHARDING,
            }));
    }
    if layout.item_len.is_none() && !array.is_empty() {
        return Err(Error::unsupported(
            "array-to-array codec on items of variable length",
        ));
    }
    Ok(())
}

fn order_error() -> Error {
    Error::invalid("codec pipeline").reason("codec_pipeline")
}
