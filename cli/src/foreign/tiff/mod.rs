//! TIFF, `BigTIFF` and cloud-optimized `GeoTIFF` files: pages as series of levels.
//!
//! Holds [`open`]. Directories are read by the `tiff` crate ([`page`]); tiles whose encoding a container reads are handed over
//! as they lie, all else is unpacked ([`unpack`]). Pages are put together as the tools of scientific imaging do: equal pages
//! are one series, and series that are each a fixed factor smaller than the one before are its levels. Values stay as they
//! are stored: no colour is converted.

mod page;
mod pixels;
mod unpack;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use orthant::{AttributeValue, CodecSpec, DataType, Elements, Json, Limits};

use self::page::{Layout, Page};
use self::pixels::{Strips, Tiles};
use super::flat::{Bytes, Flat, Order};
use super::{Array, Content, Facts, Grid, Node, Refusal, Source, What, refused};

/// How much smaller a level may be than the one before.
const FACTORS: [u64; 3] = [2, 3, 4];

/// Whether a file begins like one.
pub(super) fn looks_like(head: &[u8]) -> bool {
    [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"]
        .iter()
        .any(|magic| head.starts_with(*magic))
}

/// Every page of a file of `len` bytes.
pub(super) fn open(path: &Path, file: File, len: u64) -> Source {
    let file = Arc::new(Bytes::File(file));
    let pages = match page::all(&file, len) {
        Ok(pages) => pages,
        Err(reason) => return refused("TIFF", reason),
    };
    let series = series(&pages);
    let name = super::stem(path);
    let alone = matches!(series.as_slice(), [levels] if levels.len() == 1);
    let mut nodes = Vec::new();
    for (i, levels) in series.iter().enumerate() {
        for (j, set) in levels.iter().enumerate() {
            let inside = format!("series{i}/level{j}");
            let what = match array(&file, len, set) {
                Ok(array) => What::Array(Box::new(array)),
                Err(reason) => What::Refused(reason),
            };
            nodes.push(Node {
                path: if alone {
                    name.clone()
                } else {
                    format!("{name}/{inside}")
                },
                inside,
                what,
            });
        }
    }
    Source {
        kind: "TIFF",
        nodes,
    }
}

/// Equal pages, which are one array.
type Set<'a> = Vec<&'a Page>;

/// Series of levels, the largest first.
fn series(pages: &[Page]) -> Vec<Vec<Set<'_>>> {
    let mut sets: Vec<Set<'_>> = Vec::new();
    for page in pages {
        match sets
            .iter_mut()
            .find(|set| set.first().is_some_and(|first| first.is_like(page)))
        {
            Some(set) => set.push(page),
            None => sets.push(vec![page]),
        }
    }
    let mut series = Vec::new();
    while !sets.is_empty() {
        let mut levels = vec![sets.remove(0)];
        let mut factor = None;
        let mut at = 0;
        while let (Some(next), Some(last)) = (sets.get(at), levels.last()) {
            let found = match factor {
                Some(f) => is_level(last, next, f).then_some(f),
                None => FACTORS.into_iter().find(|f| is_level(last, next, *f)),
            };
            if found.is_some() {
                factor = found;
                levels.push(sets.remove(at));
            } else {
                at = at.saturating_add(1);
            }
        }
        series.push(levels);
    }
    series
}

/// Whether `next` is `last` made `factor` times smaller, give or take a pixel.
fn is_level(last: &Set<'_>, next: &Set<'_>, factor: u64) -> bool {
    let (Some(a), Some(b)) = (last.first(), next.first()) else {
        return false;
    };
    let smaller = |a: u64, b: u64| factor <= a && b.saturating_mul(factor).abs_diff(a) < factor;
    a.data_type().ok() == b.data_type().ok()
        && (a.samples, a.planar) == (b.samples, b.planar)
        && last.len() == next.len()
        && smaller(a.width, b.width)
        && smaller(a.height, b.height)
}

fn array(file: &Arc<Bytes>, len: u64, set: &Set<'_>) -> Result<Array, Refusal> {
    let Some(first) = set.first() else {
        return Err("no page".to_owned());
    };
    if let Some(reason) = set.iter().find_map(|page| page.fault.as_ref()) {
        return Err(reason.clone());
    }
    let data_type = first.data_type()?;
    first.can_be_read()?;
    let mut shape = vec![first.height, first.width];
    let mut dims = vec!["y", "x"];
    if first.samples > 1 {
        let at = if first.planar { 0 } else { 2 };
        shape.insert(at, first.samples);
        dims.insert(at, "band");
    }
    if set.len() > 1 {
        shape.insert(0, set.len() as u64);
        dims.insert(0, "page");
    }
    let mut facts = Facts::plain(data_type.clone(), &shape)?;
    facts.name_axes(&dims.into_iter().map(str::to_owned).collect::<Vec<_>>());
    facts.attributes.clone_from(&first.attributes);
    facts.notes.clone_from(&first.notes);
    facts.fill = first
        .nodata
        .as_ref()
        .and_then(|text| nodata(&data_type, text));
    let pages: Vec<Page> = set.iter().map(|page| (*page).clone()).collect();
    let content = match &first.layout {
        Layout::Tiles { width, height } => {
            let mut chunk = shape.clone();
            for (n, name) in chunk.iter_mut().zip(&facts.dims) {
                *n = match name.as_str() {
                    "y" => *height,
                    "x" => *width,
                    "band" if !first.planar => *n,
                    _ => 1,
                };
            }
            facts.codecs = codecs(first);
            let adopts = facts.codecs.is_some();
            let tiles = Tiles::new(file, len, pages, adopts)?;
            facts.grid = Some(Grid::from_zero(chunk));
            Content::Chunks(Box::new(tiles))
        }
        Layout::Strips { .. } => match flat(file, len, set, &shape, &data_type) {
            Some(flat) => Content::Boxes(Box::new(flat)),
            None => Content::Boxes(Box::new(Strips::new(file, len, pages, shape)?)),
        },
    };
    Ok(Array { facts, content })
}

/// The pipeline of a page's tiles; none where they have to be decoded here.
fn codecs(page: &Page) -> Option<Vec<CodecSpec>> {
    let item = page.data_type().ok()?.item_size()?;
    if page.bits < 8 || page.predictor != 1 || page.reversed {
        return None;
    }
    let endian = if page.big_endian { "big" } else { "little" };
    let mut bytes = CodecSpec::new("bytes");
    if item > 1 {
        bytes = bytes.with("endian", Json::String(endian.to_owned()));
    }
    let mut codecs = vec![bytes];
    match page.compression {
        page::NONE => {}
        page::DEFLATE | page::OLD_DEFLATE => {
            codecs.push(CodecSpec::new("numcodecs.zlib").with("level", Json::I64(6)));
        }
        page::ZSTD => codecs.push(
            CodecSpec::new("zstd")
                .with("level", Json::I64(0))
                .with("checksum", Json::Bool(false)),
        ),
        _ => return None,
    }
    Some(codecs)
}

/// Strips that follow each other without a gap are elements at fixed distances.
fn flat(
    file: &Arc<Bytes>,
    len: u64,
    set: &Set<'_>,
    shape: &[u64],
    data_type: &DataType,
) -> Option<Flat> {
    let [page] = set.as_slice() else {
        return None;
    };
    let plain = page.compression == page::NONE && page.predictor == 1 && page.bits >= 8;
    if !plain || page.reversed {
        return None;
    }
    let start = *page.offsets.first()?;
    let mut at = start;
    for (offset, count) in page.offsets.iter().zip(&page.counts) {
        if *offset != at {
            return None;
        }
        at = at.checked_add(*count)?;
    }
    let item = data_type.item_size()?;
    let (swapped, swap) = (data_type.clone(), page.big_endian);
    let decode = Box::new(move |mut bytes: Vec<u8>| {
        if swap {
            swapped.swap_bytes(&mut bytes);
        }
        Elements::Fixed(bytes)
    });
    let Bytes::File(file) = file.as_ref() else {
        return None;
    };
    let bytes = Bytes::File(file.try_clone().ok()?);
    let flat = Flat::packed(bytes, start, item, shape, Order::LastFastest, decode)?;
    let end = flat.end()?;
    (end <= len && end <= at).then_some(flat)
}

/// GDAL's text of the value that stands for nothing, as an element.
fn nodata(data_type: &DataType, text: &str) -> Option<Vec<u8>> {
    let text = match text.trim().to_ascii_lowercase().as_str() {
        "nan" => "NaN".to_owned(),
        "inf" | "infinity" => "Infinity".to_owned(),
        "-inf" | "-infinity" => "-Infinity".to_owned(),
        plain => plain.to_owned(),
    };
    match AttributeValue::from_typed_text(data_type, &text, &Limits::default()).ok()? {
        AttributeValue::Typed(value) => Some(value.bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: u64, height: u64, samples: u64) -> Page {
        Page {
            width,
            height,
            samples,
            bits: 16,
            format: 1,
            ..Page::default()
        }
    }

    #[test]
    fn levels_are_pages_that_shrink_by_one_factor() {
        let pages = [
            page(2325, 2355, 1),
            page(581, 589, 1),
            page(291, 295, 1),
            page(145, 147, 1),
        ];
        let sizes: Vec<Vec<u64>> = series(&pages)
            .iter()
            .map(|levels| levels.iter().map(|set| set[0].width).collect())
            .collect();
        // As tifffile has it: the half between the quarters is a series of its own.
        assert_eq!(sizes, [vec![2325, 581, 145], vec![291]]);
    }

    #[test]
    fn equal_pages_are_one_series() {
        let pages = [page(9, 8, 1), page(9, 8, 3), page(9, 8, 1)];
        let series = series(&pages);
        assert_eq!(series.len(), 2);
        assert_eq!(series[0][0].len(), 2);
    }

    #[test]
    fn nodata_is_an_element_where_it_can_be_one() {
        assert_eq!(
            nodata(&DataType::Uint8, "255\0".trim_end_matches('\0')),
            Some(vec![255])
        );
        assert_eq!(nodata(&DataType::Uint8, "-9999"), None);
        let nan = nodata(&DataType::Float32, " nan ").unwrap();
        assert!(f32::from_le_bytes(nan.try_into().unwrap()).is_nan());
    }
}
