//! What a new array is to be: the builder that `create_array` takes.
//!
//! Holds [`ArraySpec`], typed, and [`DynArraySpec`], for types known at run time. Must not touch a container.

use std::marker::PhantomData;

use crate::codec::{self, Codec};
use crate::error::{Error, Result};
use crate::format::document::ArrayDocument;
use crate::format::dtype::DataType;
use crate::grid::{Domain, Region};
use crate::limits::Limits;

use super::element::{Element, Elements, Source};
use super::layout::Layout;

/// Decoded bytes that a chunk gets when nobody says how large it is to be.
const DEFAULT_CHUNK_BYTES: u64 = 1 << 20;
/// What an axis of no extent counts for then: it is there to be appended to.
const DEFAULT_EMPTY_EXTENT: u64 = 1024;
/// Bytes an element of variable length is taken for then.
const DEFAULT_VARIABLE_ITEM: u64 = 16;

/// A new array with elements of type `T`.
///
/// ```
/// use orthant::{ArraySpec, Codec, region};
/// let spec = ArraySpec::<f32>::new(region![-48..0, 0..720])
///     .chunks([24, 180])
///     .dims(["time", "y"])
///     .fill(f32::NAN)
///     .codecs([Codec::shuffle(), Codec::zstd(3)]);
/// ```
#[derive(Debug, Clone)]
pub struct ArraySpec<T> {
    inner: DynArraySpec,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> ArraySpec<T> {
    /// An array over `domain`: a [`Region`] of closed ranges, or a [`Domain`]. An empty or zero-length domain is fine.
    pub fn new(domain: impl IntoDomain) -> Self {
        Self::of(DynArraySpec::new(T::data_type(), domain))
    }

    /// Stores another type that `T` reads and writes: `datetime64` and `timedelta64` for `i64`.
    #[must_use]
    pub fn data_type(mut self, data_type: DataType) -> Self {
        if T::accepts(&data_type) {
            self.inner.fill = self
                .inner
                .fill
                .filter(|_| data_type == self.inner.data_type);
            self.inner.data_type = data_type;
        } else {
            let e = Error::type_mismatch("data type")
                .expected(T::data_type())
                .found(data_type);
            self.inner.fault.get_or_insert(std::sync::Arc::new(e));
        }
        self
    }

    /// The value of elements never written. Default: not-a-time for time types, else zero.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a number is given by value; a text is read once"
    )]
    pub fn fill(mut self, value: T) -> Self {
        self.inner.fill = Some(element_bytes(&value));
        self
    }

    /// Elements per axis of a chunk, each at least 1. Default: about 1 MiB. With [`ArraySpec::shards`], the inner chunk.
    #[must_use]
    pub fn chunks(self, shape: impl IntoIterator<Item = u64>) -> Self {
        Self::of(self.inner.chunks(shape))
    }

    /// Elements per axis of a shard, which packs many chunks into one payload and is read in parts: a multiple of the
    /// chunk on every axis. The codecs then apply to each chunk, with a CRC32C behind them, and the origin to the grid
    /// of shards. Default: no shards.
    #[must_use]
    pub fn shards(self, shape: impl IntoIterator<Item = u64>) -> Self {
        Self::of(self.inner.shards(shape))
    }

    /// Element coordinate where chunk 0 (shard 0, where there are shards) starts, per axis. Default: 0.
    #[must_use]
    pub fn origin(self, origin: impl IntoIterator<Item = i64>) -> Self {
        Self::of(self.inner.origin(origin))
    }

    /// Names of the axes; `""` leaves one without a name.
    #[must_use]
    pub fn dims<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self::of(self.inner.dims(names))
    }

    /// The codecs chunks go through, in order. Default: shuffle where it helps, then zstd at level 3.
    #[must_use]
    pub fn codecs(self, codecs: impl IntoIterator<Item = Codec>) -> Self {
        Self::of(self.inner.codecs(codecs))
    }

    /// The order in which axes count in the index: put the axis that grows first. Default: 0, 1, 2, ...
    #[must_use]
    pub fn key_order(self, order: impl IntoIterator<Item = u8>) -> Self {
        Self::of(self.inner.key_order(order))
    }

    /// The same, for code that handles arrays of any type.
    pub fn into_dyn(self) -> DynArraySpec {
        self.inner
    }

    fn of(inner: DynArraySpec) -> Self {
        Self {
            inner,
            element: PhantomData,
        }
    }
}

/// A new array whose element type is known at run time.
#[derive(Debug, Clone)]
pub struct DynArraySpec {
    data_type: DataType,
    domain: Option<Domain>,
    chunks: Option<Vec<u64>>,
    shards: Option<Vec<u64>>,
    origin: Option<Vec<i64>>,
    dims: Option<Vec<String>>,
    fill: Option<Vec<u8>>,
    codecs: Option<Vec<Codec>>,
    key_order: Option<Vec<u8>>,
    /// The first thing that was wrong; told when the array is created.
    fault: Option<std::sync::Arc<Error>>,
}

impl DynArraySpec {
    /// An array of `data_type` over `domain`.
    pub fn new(data_type: DataType, domain: impl IntoDomain) -> Self {
        let (domain, fault) = match domain.into_domain() {
            Ok(domain) => (Some(domain), None),
            Err(e) => (None, Some(std::sync::Arc::new(e))),
        };
        Self {
            data_type,
            domain,
            chunks: None,
            shards: None,
            origin: None,
            dims: None,
            fill: None,
            codecs: None,
            key_order: None,
            fault,
        }
    }

    /// See [`ArraySpec::chunks`].
    #[must_use]
    pub fn chunks(mut self, shape: impl IntoIterator<Item = u64>) -> Self {
        self.chunks = Some(shape.into_iter().collect());
        self
    }

    /// See [`ArraySpec::shards`].
    #[must_use]
    pub fn shards(mut self, shape: impl IntoIterator<Item = u64>) -> Self {
        self.shards = Some(shape.into_iter().collect());
        self
    }

    /// See [`ArraySpec::origin`].
    #[must_use]
    pub fn origin(mut self, origin: impl IntoIterator<Item = i64>) -> Self {
        self.origin = Some(origin.into_iter().collect());
        self
    }

    /// See [`ArraySpec::dims`].
    #[must_use]
    pub fn dims<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.dims = Some(names.into_iter().map(|n| n.as_ref().to_owned()).collect());
        self
    }

    /// The fill value as one element's little-endian bytes (of `string` and `bytes`: the bytes themselves).
    #[must_use]
    pub fn fill_bytes(mut self, fill: Vec<u8>) -> Self {
        self.fill = Some(fill);
        self
    }

    /// See [`ArraySpec::codecs`].
    #[must_use]
    pub fn codecs(mut self, codecs: impl IntoIterator<Item = Codec>) -> Self {
        self.codecs = Some(codecs.into_iter().collect());
        self
    }

    /// See [`ArraySpec::key_order`].
    #[must_use]
    pub fn key_order(mut self, order: impl IntoIterator<Item = u8>) -> Self {
        self.key_order = Some(order.into_iter().collect());
        self
    }

    /// The document of this array, every rule checked.
    pub(crate) fn document(&self, limits: &Limits) -> Result<ArrayDocument> {
        if let Some(fault) = &self.fault {
            return Err(fault.duplicate());
        }
        let domain = self
            .domain
            .as_ref()
            .ok_or_else(|| Error::invalid("domain").expected("closed ranges"))?;
        let rank = domain.rank();
        let agree = |what: &'static str, n: Option<usize>| match n {
            Some(n) if n != rank => Err(Error::invalid(what)
                .expected(format_args!("{rank} axes, as the domain {domain} has"))
                .found(n)
                .reason("rank")),
            _ => Ok(()),
        };
        agree("chunk shape", self.chunks.as_ref().map(Vec::len))?;
        agree("shard shape", self.shards.as_ref().map(Vec::len))?;
        agree("origin", self.origin.as_ref().map(Vec::len))?;
        agree("axis names", self.dims.as_ref().map(Vec::len))?;
        agree("key order", self.key_order.as_ref().map(Vec::len))?;
        let codecs = self.codecs.clone().unwrap_or_else(Codec::default_profile);
        let codecs = codec::resolve(&codecs, &self.data_type)?;
        let (chunk_shape, codecs) = match &self.shards {
            None => (self.chunks_or_default(domain), codecs),
            Some(shard) => {
                let default = || inner_of(shard, &self.data_type);
                let inner = self.chunks.clone().unwrap_or_else(default);
                (shard.clone(), vec![codec::shard_spec(&inner, codecs)])
            }
        };
        let natural = || (0..rank).filter_map(|a| u8::try_from(a).ok()).collect();
        let document = ArrayDocument {
            codecs,
            domain: domain.bounds().to_vec(),
            origin: self.origin.clone().unwrap_or_else(|| vec![0; rank]),
            chunk_shape,
            fill: self
                .fill
                .clone()
                .unwrap_or_else(|| self.data_type.default_fill()),
            dimension_names: match &self.dims {
                Some(names) => names
                    .iter()
                    .map(|n| (!n.is_empty()).then(|| n.clone()))
                    .collect(),
                None => vec![None; rank],
            },
            key_order: self.key_order.clone().unwrap_or_else(natural),
            requires: Vec::new(),
            unknown: Vec::new(),
            data_type: self.data_type.clone(),
        };
        document.validate(limits)?;
        // What a document cannot know: that this build has the codecs and that a chunk fits.
        Layout::new(document.clone(), limits)?;
        Ok(document)
    }

    fn chunks_or_default(&self, domain: &Domain) -> Vec<u64> {
        let chunks = self.chunks.clone();
        chunks.unwrap_or_else(|| default_chunks(domain, &self.data_type))
    }
}

/// About a mebibyte: the longest axis is halved until a chunk is that small.
fn default_chunks(domain: &Domain, data_type: &DataType) -> Vec<u64> {
    let wanted = default_elements(data_type);
    let mut chunks: Vec<u64> = domain
        .extents()
        .map(|n| if n == 0 { DEFAULT_EMPTY_EXTENT } else { n })
        .collect();
    while chunks
        .iter()
        .try_fold(1_u128, |n, &e| n.checked_mul(u128::from(e)))
        .is_none_or(|n| n > wanted)
    {
        match chunks.iter_mut().max() {
            Some(longest) if *longest > 1 => *longest = longest.div_ceil(2),
            _ => break,
        }
    }
    chunks
}

/// Elements that make about a mebibyte.
fn default_elements(data_type: &DataType) -> u128 {
    let item = data_type
        .item_size()
        .map_or(DEFAULT_VARIABLE_ITEM, |n| n as u64)
        .max(1);
    u128::from(DEFAULT_CHUNK_BYTES.checked_div(item).unwrap_or(1).max(1))
}

/// Inner chunks of about a mebibyte: the longest axis of the shard is divided by its smallest prime until they are.
fn inner_of(shard: &[u64], data_type: &DataType) -> Vec<u64> {
    let wanted = default_elements(data_type);
    let mut inner = shard.to_vec();
    while inner
        .iter()
        .try_fold(1_u128, |n, &e| n.checked_mul(u128::from(e)))
        .is_none_or(|n| n > wanted)
    {
        match inner.iter_mut().max() {
            Some(longest) if *longest > 1 => {
                let n = *longest;
                let square = |p: u64| p.checked_mul(p).is_some_and(|square| square <= n);
                let mut below = (2..).take_while(|p| square(*p));
                let prime = below.find(|p| n.is_multiple_of(*p));
                *longest = n.checked_div(prime.unwrap_or(n)).unwrap_or(1);
            }
            _ => break,
        }
    }
    inner
}

/// What can say where an array lies: a [`Domain`], or a [`Region`] whose ranges are closed.
pub trait IntoDomain {
    /// The domain meant.
    ///
    /// # Errors
    /// As [`Region::to_domain`].
    fn into_domain(self) -> Result<Domain>;
}

impl IntoDomain for Domain {
    fn into_domain(self) -> Result<Domain> {
        Ok(self)
    }
}

impl IntoDomain for &Domain {
    fn into_domain(self) -> Result<Domain> {
        Ok(self.clone())
    }
}

impl IntoDomain for Region {
    fn into_domain(self) -> Result<Domain> {
        self.to_domain()
    }
}

/// One element as the bytes a record or a fill value holds.
pub(crate) fn element_bytes<T: Element>(value: &T) -> Vec<u8> {
    match T::source(std::slice::from_ref(value)) {
        Source::Fixed(bytes) => bytes.into_owned(),
        Source::Variable(items) => items.first().map(|i| i.to_vec()).unwrap_or_default(),
    }
}

/// The value whose bytes these are.
pub(crate) fn element_from_bytes<T: Element>(data_type: &DataType, bytes: &[u8]) -> Result<T> {
    let elements = if data_type.is_variable_length() {
        Elements::Variable(vec![bytes.into()])
    } else {
        Elements::Fixed(bytes.to_vec())
    };
    T::collect(elements)?.into_iter().next().ok_or_else(|| {
        Error::type_mismatch("element")
            .expected(data_type)
            .found("no bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region;

    #[test]
    fn default_chunks_are_about_a_mebibyte_and_never_empty() {
        for (domain, data_type) in [
            (region![0..0], DataType::Float64),
            (region![0..0, 0..5], DataType::Float64),
            (region![0..1], DataType::Float64),
            (region![], DataType::Float64),
            (region![0..1, 0..1, 0..1, 0..1], DataType::Float64),
            (region![0..3, 0..100_000_000_i64], DataType::Float64),
            (region![0..512, 0..512, 0..512], DataType::Float32),
            (region![0..5], DataType::String),
        ] {
            let domain = domain.to_domain().unwrap();
            let chunks = default_chunks(&domain, &data_type);
            assert!(chunks.iter().all(|&n| n >= 1));
            let bytes = chunks.iter().product::<u64>() * data_type.item_size().unwrap_or(16) as u64;
            assert!(bytes <= DEFAULT_CHUNK_BYTES, "{domain}: {chunks:?}");
        }
        assert_eq!(
            default_chunks(
                &region![0..512, 0..512, 0..512].to_domain().unwrap(),
                &DataType::Float32
            ),
            [64, 64, 64]
        );
    }
}
