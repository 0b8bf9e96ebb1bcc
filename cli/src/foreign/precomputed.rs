//! Neuroglancer's precomputed volumes: an `info` document and a folder of chunks a scale. Specification: "precomputed format"
//! in the documentation of Neuroglancer.
//!
//! Holds [`open`] and [`looks_like`]. Chunks of encoding `raw`, plain or in gzip, are read; others are refused by name, and
//! so are shards. Chunks lie from `voxel_offset` on, which may be negative: it becomes the lower bound. Those at the upper
//! bounds are shorter than the others, so they are decoded here. Must not leave the folder.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use orthant::{AttributeValue, CodecSpec, DataType, Domain, Elements, Json, Limits};

use super::flat::{Bytes, Flat, Order};
use super::zarr::store::{Store, join};
use super::{
    Array, Boxes as _, Chunks, Content, Facts, Grid, Node, Payload, Refusal, Source, Stop,
};
use super::{What, json};
use crate::json::uint;

/// Longest document.
const INFO_LEN_MAX: u64 = 64 << 20;
/// What gzip may add to bytes that it cannot shorten.
const GZIP_MARGIN: u64 = 1 << 16;
/// Members of the document that arrays are made of.
const OF_ARRAYS: [&str; 3] = ["scales", "data_type", "num_channels"];

/// The document of a folder that is a volume; none where it is something else.
pub(super) fn looks_like(store: &dyn Store) -> Option<Json> {
    let bytes = store.get("info", INFO_LEN_MAX).ok()??;
    let mut limits = Limits::default();
    limits.value_bytes = INFO_LEN_MAX;
    let info = json::parse(&bytes, &limits).ok()?;
    let is_volume = match info.get("@type").and_then(Json::as_str) {
        Some(kind) => kind == "neuroglancer_multiscale_volume",
        None => info.get("scales").is_some() && info.get("data_type").is_some(),
    };
    is_volume.then_some(info)
}

/// Every scale of a volume.
pub(super) fn open(store: &Arc<dyn Store>, info: &Json, path: &Path) -> Source {
    let members = info.as_object().unwrap_or_default().iter();
    let attributes = members
        .filter(|(name, _)| !OF_ARRAYS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), AttributeValue::from(value.clone())))
        .collect();
    let mut nodes = vec![Node {
        inside: "/".to_owned(),
        path: String::new(),
        what: What::Group(attributes),
    }];
    let scales = info.get("scales").and_then(Json::as_array);
    for scale in scales.unwrap_or_default() {
        let key = scale.get("key").and_then(Json::as_str).unwrap_or_default();
        let what = match array(store, info, scale, key) {
            Ok(array) => What::Array(Box::new(array)),
            Err(reason) => What::Refused(reason),
        };
        nodes.push(Node {
            inside: format!("/{key}"),
            path: if key.is_empty() {
                super::stem(path)
            } else {
                key.to_owned()
            },
            what,
        });
    }
    Source {
        kind: "Neuroglancer precomputed",
        nodes,
    }
}

fn array(store: &Arc<dyn Store>, info: &Json, scale: &Json, key: &str) -> Result<Array, Refusal> {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\\');
    if !key.split('/').all(plain) {
        return Err(format!("its key {key:?} is no path below the folder"));
    }
    match scale.get("encoding").and_then(Json::as_str) {
        Some("raw") => {}
        Some(other) => return Err(format!("encoding {other}")),
        None => return Err("no encoding".to_owned()),
    }
    if scale.get("sharding").is_some_and(|s| *s != Json::Null) {
        return Err("shards of Neuroglancer's own kind".to_owned());
    }
    let data_type = data_type(info)?;
    let size = axes(scale.get("size"), "size")?;
    let offset = match scale.get("voxel_offset") {
        None => vec![0; 3],
        Some(json) => axes(Some(json), "voxel_offset")?,
    };
    let sizes = scale.get("chunk_sizes").and_then(Json::as_array);
    let chunk = axes(sizes.and_then(<[Json]>::first), "chunk_sizes")?;
    let channels = info.get("num_channels").map_or(Some(1), Json::as_i64);
    let channels = channels.filter(|n| *n > 0).ok_or("no number of channels")?;
    let mut shape = Vec::new();
    let mut grid = Grid::from_zero(Vec::new());
    let mut ranges = Vec::new();
    let mut push = |n: i64, at: i64, len: i64| {
        let extent = u64::try_from(n).ok().filter(|n| *n > 0);
        let (Some(extent), Some(len)) = (extent, u64::try_from(len).ok().filter(|n| *n > 0)) else {
            return Err(format!("an axis of {n} in chunks of {len}"));
        };
        shape.push(extent);
        grid.chunk.push(len.min(extent));
        grid.origin.push(at);
        grid.first.push(0);
        ranges.push(at..at.saturating_add(n));
        Ok(())
    };
    for ((n, at), len) in size.iter().zip(&offset).zip(&chunk) {
        push(*n, *at, *len)?;
    }
    if channels > 1 {
        push(channels, 0, channels)?;
    }
    let names: Vec<String> = ["x", "y", "z", "c"].map(str::to_owned).to_vec();
    let mut facts = Facts::plain(data_type.clone(), &shape)?;
    facts.domain = Domain::new(ranges).map_err(|e| e.to_string())?;
    facts.name_axes(names.get(..shape.len()).unwrap_or_default());
    facts.attributes = ["resolution", "chunk_sizes"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), scale.get(name)?.clone().into())))
        .filter(|(name, _): &(String, AttributeValue)| name != "chunk_sizes" || more(sizes))
        .collect();
    let stored = Volume {
        store: Arc::clone(store),
        key: key.to_owned(),
        item: data_type.item_size().unwrap_or(1),
        shape,
        chunk: grid.chunk.clone(),
        offset,
        gzip: is_gzip(store.as_ref(), key),
    };
    facts.codecs = Some(stored.codecs(&data_type));
    facts.grid = Some(grid);
    Ok(Array {
        facts,
        content: Content::Chunks(Box::new(stored)),
    })
}

/// Whether there are other chunk shapes than the one that is taken.
fn more(sizes: Option<&[Json]>) -> bool {
    sizes.is_some_and(|s| s.len() > 1)
}

fn data_type(info: &Json) -> Result<DataType, Refusal> {
    let name = info.get("data_type").and_then(Json::as_str);
    Ok(match name.unwrap_or_default() {
        "uint8" => DataType::Uint8,
        "uint16" => DataType::Uint16,
        "uint32" => DataType::Uint32,
        "uint64" => DataType::Uint64,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "float32" => DataType::Float32,
        other => return Err(format!("data type {other:?}")),
    })
}

/// Three integers; some writers spell them as floats.
fn axes(json: Option<&Json>, what: &str) -> Result<Vec<i64>, Refusal> {
    let list = json.and_then(Json::as_array).unwrap_or_default();
    let axes: Option<Vec<i64>> = list.iter().map(Json::as_i64).collect();
    axes.filter(|a| a.len() == 3)
        .ok_or_else(|| format!("its `{what}` is no list of three integers"))
}

/// Whether the first chunk that a listing meets is in gzip, by its name.
fn is_gzip(store: &dyn Store, key: &str) -> bool {
    let mut gzip = false;
    // A listing that fails does so again where chunks are read.
    let _ = store.list(key, &mut |name, more| {
        if more || ranges(name).is_none() {
            return Ok(());
        }
        gzip = in_gzip(name);
        Err(Stop::Source(String::new()))
    });
    gzip
}

fn in_gzip(name: &str) -> bool {
    name.strip_suffix(".gz").is_some()
}

/// The bounds that a chunk's name tells, an axis each; none of another file.
fn ranges(name: &str) -> Option<Vec<(i64, i64)>> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let axes = name.split('_').map(|axis| {
        // The first character may be a sign.
        let dash = axis.get(1..)?.find('-')?.checked_add(1)?;
        let (begin, end) = axis.split_at_checked(dash)?;
        Some((begin.parse().ok()?, end.get(1..)?.parse().ok()?))
    });
    let ranges: Option<Vec<_>> = axes.collect();
    ranges.filter(|r| r.len() == 3)
}

/// The chunks of a scale.
#[derive(Debug)]
struct Volume {
    store: Arc<dyn Store>,
    key: String,
    item: usize,
    /// With the channels, where there are several.
    shape: Vec<u64>,
    chunk: Vec<u64>,
    /// Of x, y, z.
    offset: Vec<i64>,
    gzip: bool,
}

impl Volume {
    /// What a whole chunk has been through.
    fn codecs(&self, data_type: &DataType) -> Vec<CodecSpec> {
        let rank = self.shape.len() as u64;
        let order = Json::Array((0..rank).rev().map(uint).collect());
        let bytes = CodecSpec::new("bytes");
        let mut codecs = vec![
            CodecSpec::new("transpose").with("order", order),
            if data_type.item_size() == Some(1) {
                bytes
            } else {
                bytes.with("endian", Json::String("little".to_owned()))
            },
        ];
        if self.gzip {
            codecs.push(CodecSpec::new("gzip").with("level", Json::I64(6)));
        }
        codecs
    }

    /// Where a chunk begins and how long it is, clipped to the volume.
    fn extent(&self, coord: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
        let axes = coord.iter().zip(&self.chunk).zip(&self.shape);
        axes.map(|((c, len), n)| {
            let at = c.checked_mul(*len)?;
            Some((at, n.checked_sub(at)?.min(*len)))
        })
        .collect()
    }

    fn name(&self, lower: &[u64], shape: &[u64]) -> Option<String> {
        let axes = self.offset.iter().zip(lower.iter().zip(shape));
        let parts: Option<Vec<String>> = axes
            .map(|(offset, (at, n))| {
                let begin = offset.checked_add_unsigned(*at)?;
                Some(format!("{begin}-{}", begin.checked_add_unsigned(*n)?))
            })
            .collect();
        Some(parts?.join("_"))
    }

    /// The zero-based coordinate of the chunk of that name; none where no chunk has it.
    fn coord(&self, name: &str) -> Option<Vec<u64>> {
        let mut coord = Vec::new();
        for ((begin, _), (offset, len)) in ranges(name)?
            .into_iter()
            .zip(self.offset.iter().zip(&self.chunk))
        {
            let at = u64::try_from(begin.checked_sub(*offset)?).ok()?;
            coord.push(at.checked_div(*len)?);
        }
        coord.resize(self.shape.len(), 0);
        let (lower, shape) = self.extent(&coord)?;
        let bare = name.strip_suffix(".gz").unwrap_or(name);
        (self.name(&lower, &shape)? == bare).then_some(coord)
    }

    /// Whether a chunk is there in the form that is expected.
    fn has_twin(&self, coord: &[u64]) -> bool {
        let name = self
            .extent(coord)
            .and_then(|(lower, shape)| self.name(&lower, &shape));
        let Some(mut name) = name else { return false };
        if self.gzip {
            name.push_str(".gz");
        }
        // Whatever is longer than nothing is refused, and then it is there.
        !matches!(self.store.get(&join(&self.key, &name), 0), Ok(None))
    }

    /// The bytes of a chunk, out of gzip.
    fn inflated(bytes: &[u8], len: u64) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        let mut inside = MultiGzDecoder::new(bytes).take(len.saturating_add(1));
        inside
            .read_to_end(&mut out)
            .map_err(|e| format!("its gzip is broken: {e}"))?;
        Ok(out)
    }

    /// The elements of a chunk in C order, in the shape of a whole one.
    fn padded(&self, bytes: Vec<u8>, shape: &[u64]) -> Option<Elements> {
        let raw = Bytes::Memory(bytes);
        let decode = Box::new(Elements::Fixed);
        let flat = Flat::packed(raw, 0, self.item, shape, Order::FirstFastest, decode)?;
        let zeros = vec![0; shape.len()];
        let Ok(Elements::Fixed(inner)) = flat.read(&zeros, shape) else {
            return None;
        };
        super::flat::padded(&inner, self.item, shape, &self.chunk).map(Elements::Fixed)
    }
}

impl Chunks for Volume {
    fn for_each(&self, take: &mut dyn FnMut(&[u64]) -> Result<(), Stop>) -> Result<(), Stop> {
        self.store.list(&self.key, &mut |name, more| {
            let Some(coord) = self.coord(name).filter(|_| !more) else {
                return Ok(());
            };
            // A chunk that is there with and without gzip is read once.
            if in_gzip(name) != self.gzip && self.has_twin(&coord) {
                return Ok(());
            }
            take(&coord)
        })
    }

    fn read(&self, coord: &[u64]) -> Result<Option<Payload>, Refusal> {
        let (lower, shape) = self.extent(coord).ok_or("no chunk of the volume")?;
        let name = self.name(&lower, &shape).ok_or("no chunk of the volume")?;
        let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
        let len = count.and_then(|n| n.checked_mul(self.item as u64));
        let len = len.ok_or("more elements than can be counted")?;
        let most = len.saturating_add(len >> 3).saturating_add(GZIP_MARGIN);
        let plain = join(&self.key, &name);
        let mut gzip = self.gzip;
        let key = |gzip: bool| {
            if gzip {
                format!("{plain}.gz")
            } else {
                plain.clone()
            }
        };
        let mut bytes = self.store.get(&key(gzip), most)?;
        if bytes.is_none() {
            gzip = !gzip;
            bytes = self.store.get(&key(gzip), most)?;
        }
        let Some(bytes) = bytes else { return Ok(None) };
        // Servers set the encoding in a header; copies of what they serve have lost the name that tells it.
        let packed = gzip || (bytes.len() as u64 != len && bytes.starts_with(b"\x1f\x8b"));
        let stored = bytes.len() as u64;
        if shape == self.chunk && packed == self.gzip && (packed || stored == len) {
            return Ok(Some(Payload::Encoded {
                bytes,
                skipped: 0,
                reframed: false,
            }));
        }
        let raw = if packed {
            Self::inflated(&bytes, len)?
        } else {
            bytes
        };
        if raw.len() as u64 != len {
            return Err(format!("{} bytes where {len} are due", raw.len()));
        }
        let elements = self.padded(raw, &shape).ok_or("more than fits in memory")?;
        Ok(Some(Payload::Decoded { elements, stored }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_chunks_tell_signed_bounds() {
        assert_eq!(
            ranges("-33--1_-13-19_8-39"),
            Some(vec![(-33, -1), (-13, 19), (8, 39)])
        );
        assert_eq!(ranges("0-64_0-64_0-1.gz").unwrap()[2], (0, 1));
        for other in [
            "0-64_0-64",
            "info",
            "a-b_0-1_0-1",
            "0_0_0",
            "--_-1-2_1-2",
            "",
        ] {
            assert_eq!(ranges(other), None, "{other}");
        }
    }
}
