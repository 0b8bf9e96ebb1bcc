//! The steps a pipeline is made of, and how a name becomes one.
//!
//! Holds one enum for each kind of codec, their parsers and their dispatch. Must not hold what a codec does: each has
//! its own file. A codec is added here, in its file, and in `spec.rs`.

#[cfg(feature = "blosc")]
use super::blosc::Blosc;
use super::bytes::Bytes;
use super::checksum::{Checksum, TRAILER_LEN};
use super::config::Config;
#[cfg(feature = "deflate")]
use super::deflate::{Deflate, Framing};
use super::delta::Delta;
use super::layout::Layout;
#[cfg(feature = "lz4")]
use super::lz4::Lz4;
use super::output::Output;
use super::shard::Shard;
use super::shuffle::Shuffle;
use super::transpose::Transpose;
use super::vlen::Vlen;
#[cfg(feature = "zstd")]
use super::zstd::Zstd;
use crate::error::{Error, Result};
use crate::format::document::CodecSpec;
use crate::format::dtype::DataType;
use crate::format::pipeline::SHARDING;
use crate::limits::Limits;

/// Array to array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArrayStep {
    Transpose(Transpose),
    Delta(Delta),
}

/// Array to bytes: exactly one in a pipeline.
#[derive(Debug, Clone)]
pub(crate) enum Serializer {
    Bytes(Bytes),
    Vlen(Vlen),
    Shard(Box<Shard>),
}

/// Bytes to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ByteStep {
    Shuffle(Shuffle),
    #[cfg(feature = "zstd")]
    Zstd(Zstd),
    #[cfg(feature = "lz4")]
    Lz4(Lz4),
    #[cfg(feature = "deflate")]
    Deflate(Deflate),
    #[cfg(feature = "blosc")]
    Blosc(Blosc),
    Checksum(Checksum),
}

/// A step with its kind still open.
pub(crate) enum Step {
    Array(ArrayStep),
    Serializer(Serializer),
    Bytes(ByteStep),
}

/// What the parsers know of the place a codec has in its pipeline.
pub(crate) struct Place<'a> {
    pub(crate) data_type: &'a DataType,
    pub(crate) layout: &'a Layout,
    /// One element's bytes.
    pub(crate) fill: &'a [u8],
    /// Shape of the array that reaches the codec; a transpose changes it.
    pub(crate) shape: Vec<usize>,
    /// Length of the bytes that reach the codec, or their bound.
    pub(crate) size: Size,
    pub(crate) limits: &'a Limits,
}

/// A length that is known, or only bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Exact(usize),
    AtMost(usize),
}

impl Size {
    pub(crate) fn max(self) -> usize {
        match self {
            Self::Exact(n) | Self::AtMost(n) => n,
        }
    }

    pub(crate) fn exact(self) -> Option<usize> {
        match self {
            Self::Exact(n) => Some(n),
            Self::AtMost(_) => None,
        }
    }
}

/// Finds the codec that `spec` names and reads its configuration for this place.
pub(crate) fn parse(spec: &CodecSpec, place: &mut Place<'_>) -> Result<Step> {
    let config = Config::new(spec);
    let array = |step| Ok(Step::Array(step));
    let serializer = |step| Ok(Step::Serializer(step));
    let bytes = |step| Ok(Step::Bytes(step));
    match config.name() {
        "transpose" => {
            let (step, shape) = Transpose::parse(config, &place.shape)?;
            place.shape = shape;
            array(ArrayStep::Transpose(step))
        }
        "numcodecs.delta" => array(ArrayStep::Delta(Delta::parse(config, place.layout)?)),
        "bytes" => serializer(Serializer::Bytes(Bytes::parse(config, place.layout)?)),
        "vlen-utf8" => {
            config.finish()?;
            serializer(Serializer::Vlen(Vlen::Utf8))
        }
        "vlen-bytes" => {
            config.finish()?;
            serializer(Serializer::Vlen(Vlen::Bytes))
        }
        SHARDING => serializer(Serializer::Shard(Box::new(Shard::parse(config, place)?))),
        "numcodecs.shuffle" => bytes(ByteStep::Shuffle(Shuffle::parse(
            config,
            place.layout.item_len,
        )?)),
        "crc32c" => {
            config.finish()?;
            bytes(ByteStep::Checksum(Checksum::Crc32c))
        }
        "numcodecs.fletcher32" => {
            config.finish()?;
            bytes(ByteStep::Checksum(Checksum::Fletcher32))
        }
        "zstd" | "numcodecs.lz4" | "numcodecs.zlib" | "gzip" | "blosc" => {
            bytes(compressor(config, place)?)
        }
        other => Err(Error::unsupported(format!("codec `{other}`")).reason("codec")),
    }
}

#[cfg_attr(
    not(any(feature = "zstd", feature = "lz4")),
    expect(
        unused_variables,
        reason = "the other codecs do not ask where they stand"
    )
)]
#[cfg_attr(
    not(any(feature = "zstd", feature = "lz4", feature = "deflate")),
    expect(
        clippy::needless_pass_by_value,
        reason = "without a feature its codec takes nothing"
    )
)]
fn compressor(config: Config<'_>, place: &Place<'_>) -> Result<ByteStep> {
    match config.name() {
        #[cfg(feature = "zstd")]
        "zstd" => Zstd::parse(config, place.limits.zstd_window_bytes).map(ByteStep::Zstd),
        #[cfg(feature = "lz4")]
        "numcodecs.lz4" => Lz4::parse(config, place.size.exact()).map(ByteStep::Lz4),
        #[cfg(feature = "deflate")]
        "numcodecs.zlib" => Deflate::parse(config, Framing::Zlib).map(ByteStep::Deflate),
        #[cfg(feature = "deflate")]
        "gzip" => Deflate::parse(config, Framing::Gzip).map(ByteStep::Deflate),
        #[cfg(feature = "blosc")]
        "blosc" => Blosc::parse(config, place.limits.zstd_window_bytes).map(ByteStep::Blosc),
        other => {
            let feature = match other {
                "zstd" => "zstd",
                "numcodecs.lz4" => "lz4",
                "blosc" => "blosc",
                _ => "deflate",
            };
            Err(Error::unsupported(format!("codec `{other}`"))
                .reason("codec")
                .help(format!("this build lacks the feature `{feature}`")))
        }
    }
}

impl ArrayStep {
    /// True when elements change their places.
    pub(crate) fn moves(&self) -> bool {
        matches!(self, Self::Transpose(_))
    }
}

impl ByteStep {
    /// Length of what comes out for an input of this length.
    ///
    /// The bound of a compressor is not this encoder's but any encoder's: payloads come from other software too, and
    /// some of it cuts its input into small blocks with a header each.
    pub(crate) fn encoded_size(&self, size: Size) -> Size {
        match (self, size) {
            (Self::Shuffle(_), size) => size,
            (Self::Checksum(_), Size::Exact(n)) => Size::Exact(n.saturating_add(TRAILER_LEN)),
            (Self::Checksum(_), Size::AtMost(n)) => Size::AtMost(n.saturating_add(TRAILER_LEN)),
            #[cfg(any(feature = "zstd", feature = "lz4", feature = "deflate"))]
            (_, size) => {
                let n = size.max();
                Size::AtMost(n.saturating_add(n >> 3).saturating_add(4096))
            }
        }
    }

    /// Replaces `out` by the encoded `src`. Checksums are appended instead, by the pipeline.
    #[cfg_attr(
        not(any(feature = "zstd", feature = "lz4", feature = "deflate")),
        expect(clippy::unnecessary_wraps, reason = "only compressors can fail")
    )]
    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Shuffle(step) => {
                step.encode(src, out);
                Ok(())
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(step) => step.encode(src, out),
            #[cfg(feature = "lz4")]
            Self::Lz4(_) => Lz4::encode(src, out),
            #[cfg(feature = "deflate")]
            Self::Deflate(step) => step.encode(src, out),
            #[cfg(feature = "blosc")]
            Self::Blosc(step) => step.encode(src, out),
            Self::Checksum(checksum) => {
                out.clear();
                out.extend_from_slice(src);
                checksum.append(out);
                Ok(())
            }
        }
    }

    /// Decodes all of `src` into `output`.
    pub(crate) fn decode(&self, src: &[u8], mut output: Output<'_>) -> Result<()> {
        match self {
            Self::Shuffle(step) => step.decode(src, output),
            #[cfg(feature = "zstd")]
            Self::Zstd(step) => step.decode(src, output),
            #[cfg(feature = "lz4")]
            Self::Lz4(_) => Lz4::decode(src, output),
            #[cfg(feature = "deflate")]
            Self::Deflate(step) => step.decode(src, output),
            #[cfg(feature = "blosc")]
            Self::Blosc(step) => step.decode(src, output),
            Self::Checksum(checksum) => {
                let content = checksum.verify(src)?;
                output
                    .exactly(checksum.name(), content.len())?
                    .copy_from_slice(content);
                Ok(())
            }
        }
    }
}
