//! The pixels of pages, in tiles or strips: as they lie in the file, or unpacked ([`super::unpack`]).
//!
//! Holds [`Tiles`] and [`Strips`]. Must not convert colours.

use std::sync::Arc;

use orthant::Elements;

use super::page::{Layout, Page};
use super::unpack::unpacked;
use crate::foreign::flat::Bytes;
use crate::foreign::{Boxes, Chunks, Payload, Refusal, Stop};

/// Decoded bytes of a tile or strip that are read at most.
const PIECE_LEN_MAX: u64 = 1 << 30;

/// The pieces of a set of equal pages.
#[derive(Debug)]
struct Pieces {
    bytes: Arc<Bytes>,
    len: u64,
    pages: Vec<Page>,
    item: usize,
    /// Pieces across and down.
    counts: (u64, u64),
    /// Pixels of a whole piece.
    size: (u64, u64),
}

impl Pieces {
    fn new(file: &Arc<Bytes>, len: u64, pages: Vec<Page>) -> Result<Self, Refusal> {
        let first = pages.first().ok_or("no page")?;
        let size = match &first.layout {
            Layout::Tiles { width, height } => (*width, *height),
            Layout::Strips { rows } => (first.width, *rows),
        };
        let item = first
            .data_type()?
            .item_size()
            .ok_or("no size of elements")?;
        let counts = first.pieces().ok_or("tiles of no size")?;
        let pieces = Self {
            bytes: Arc::clone(file),
            len,
            item,
            counts,
            size,
            pages,
        };
        let whole = pieces.decoded_len(size.0, size.1);
        if whole.is_none_or(|n| n > PIECE_LEN_MAX) {
            return Err(format!(
                "pieces of {} by {} pixels, more than {PIECE_LEN_MAX} bytes",
                size.0, size.1
            ));
        }
        Ok(pieces)
    }

    fn first(&self) -> Option<&Page> {
        self.pages.first()
    }

    /// Samples of one pixel of a piece.
    fn samples(&self) -> u64 {
        self.first()
            .map_or(1, |p| if p.planar { 1 } else { p.samples })
    }

    fn decoded_len(&self, across: u64, down: u64) -> Option<u64> {
        across
            .checked_mul(down)?
            .checked_mul(self.samples())?
            .checked_mul(self.item as u64)
    }

    /// Page, and number of the piece in it.
    fn place(&self, page: u64, plane: u64, down: u64, across: u64) -> Option<(&Page, usize)> {
        let page = self.pages.get(usize::try_from(page).ok()?)?;
        let index = plane
            .checked_mul(self.counts.1)?
            .checked_add(down)?
            .checked_mul(self.counts.0)?
            .checked_add(across)?;
        Some((page, usize::try_from(index).ok()?))
    }

    /// The bytes of a piece; none where it is not stored.
    fn raw(&self, page: &Page, index: usize) -> Result<Option<Vec<u8>>, Refusal> {
        let (Some(offset), Some(count)) = (page.offsets.get(index), page.counts.get(index)) else {
            return Err("no such piece".to_owned());
        };
        if *count == 0 {
            return Ok(None);
        }
        let end = offset.checked_add(*count).filter(|end| *end <= self.len);
        let most = PIECE_LEN_MAX.saturating_mul(2);
        let fits = end.is_some() && *count <= most;
        let len = usize::try_from(*count).ok().filter(|_| fits);
        let len =
            len.ok_or_else(|| format!("{count} bytes at {offset} lie past the file's end"))?;
        let mut bytes = vec![0; len];
        self.bytes
            .read_at(*offset, &mut bytes)
            .map_err(|e| format!("it cannot be read: {e}"))?;
        Ok(Some(bytes))
    }

    /// The elements of a piece of `height` rows; none where it is not stored.
    fn decode(&self, page: &Page, index: usize, height: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(raw) = self.raw(page, index)? else {
            return Ok(None);
        };
        let large = "a piece larger than memory holds";
        let size = |n: u64| usize::try_from(n).map_err(|_| large);
        let samples = size(self.samples())?;
        let across = size(self.size.0)?.checked_mul(samples).ok_or(large)?;
        unpacked(page, &raw, (across, samples, size(height)?)).map(Some)
    }
}

/// Tiles as chunks.
#[derive(Debug)]
pub(super) struct Tiles {
    pieces: Pieces,
    /// Tiles are handed over as they lie.
    adopts: bool,
}

impl Tiles {
    pub(super) fn new(
        file: &Arc<Bytes>,
        len: u64,
        pages: Vec<Page>,
        adopts: bool,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            pieces: Pieces::new(file, len, pages)?,
            adopts,
        })
    }

    /// Page, plane, and tile down and across, of a chunk of the array.
    fn tile(&self, coord: &[u64]) -> Option<(u64, u64, u64, u64)> {
        let first = self.pieces.first()?;
        let mut rest = coord.iter().copied();
        let page = if self.pieces.pages.len() > 1 {
            rest.next()?
        } else {
            0
        };
        let plane = if first.planar { rest.next()? } else { 0 };
        Some((page, plane, rest.next()?, rest.next()?))
    }

    fn coord(&self, page: u64, plane: u64, down: u64, across: u64) -> Vec<u64> {
        let first = self.pieces.first();
        let mut coord = Vec::new();
        if self.pieces.pages.len() > 1 {
            coord.push(page);
        }
        if first.is_some_and(|p| p.planar) {
            coord.push(plane);
        }
        coord.extend([down, across]);
        if first.is_some_and(|p| !p.planar && p.samples > 1) {
            coord.push(0);
        }
        coord
    }
}

impl Chunks for Tiles {
    fn for_each(&self, take: &mut dyn FnMut(&[u64]) -> Result<(), Stop>) -> Result<(), Stop> {
        let (across, down) = self.pieces.counts;
        for (n, page) in (0_u64..).zip(&self.pieces.pages) {
            for (at, count) in (0_u64..).zip(&page.counts) {
                let row = at.checked_div(across).unwrap_or(0);
                let plane = row.checked_div(down).unwrap_or(0);
                if *count > 0 {
                    let column = at.checked_rem(across).unwrap_or(0);
                    let row = row.checked_rem(down).unwrap_or(0);
                    take(&self.coord(n, plane, row, column))?;
                }
            }
        }
        Ok(())
    }

    fn read(&self, coord: &[u64]) -> Result<Option<Payload>, Refusal> {
        let place = self
            .tile(coord)
            .and_then(|(page, plane, down, across)| self.pieces.place(page, plane, down, across));
        let (page, index) = place.ok_or("no such tile")?;
        if self.adopts {
            let raw = self.pieces.raw(page, index)?;
            return Ok(raw.map(|bytes| Payload::Encoded {
                bytes,
                skipped: 0,
                reframed: false,
            }));
        }
        let Some(elements) = self.pieces.decode(page, index, self.pieces.size.1)? else {
            return Ok(None);
        };
        Ok(Some(Payload::Decoded {
            elements: Elements::Fixed(elements),
            stored: page.counts.get(index).copied().unwrap_or(0),
        }))
    }
}

/// Strips, of which rows are read.
#[derive(Debug)]
pub(super) struct Strips {
    pieces: Pieces,
    shape: Vec<u64>,
}

impl Strips {
    pub(super) fn new(
        file: &Arc<Bytes>,
        len: u64,
        pages: Vec<Page>,
        shape: Vec<u64>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            pieces: Pieces::new(file, len, pages)?,
            shape,
        })
    }

    /// Rows `from..to` of one plane of a page, whole: row by row, samples side by side.
    fn rows(&self, page: u64, plane: u64, from: u64, to: u64) -> Result<Vec<u8>, Refusal> {
        let rows = self.pieces.size.1;
        let first = self.pieces.first().ok_or("no page")?;
        let row = self.pieces.decoded_len(first.width, 1);
        let row = row
            .and_then(|n| usize::try_from(n).ok())
            .ok_or("rows too long")?;
        let mut out = Vec::new();
        let mut at = from;
        while at < to {
            let strip = at.checked_div(rows).ok_or("strips of no rows")?;
            let start = strip.saturating_mul(rows);
            let height = rows.min(first.height.saturating_sub(start));
            let place = self.pieces.place(page, plane, strip, 0);
            let (page, index) = place.ok_or("no such strip")?;
            let end = start.saturating_add(height).min(to);
            let within = |x: u64| {
                let rows = usize::try_from(x.saturating_sub(start)).unwrap_or(usize::MAX);
                rows.saturating_mul(row)
            };
            match self.pieces.decode(page, index, height)? {
                Some(bytes) => {
                    let part = bytes.get(within(at)..within(end));
                    out.extend_from_slice(part.ok_or("a strip of too few rows")?);
                }
                None => {
                    let more = within(end).saturating_sub(within(at));
                    out.resize(out.len().saturating_add(more), 0);
                }
            }
            if end <= at {
                return Err("strips of no rows".to_owned());
            }
            at = end;
        }
        Ok(out)
    }
}

impl Boxes for Strips {
    fn read(&self, lower: &[u64], shape: &[u64]) -> Result<Elements, Refusal> {
        let first = self.pieces.first().ok_or("no page")?;
        let range = |axis: usize| -> Option<(u64, u64)> {
            let lo = *lower.get(axis)?;
            Some((lo, lo.checked_add(*shape.get(axis)?)?))
        };
        let bad = "no such box";
        let mut axis = 0_usize;
        let mut next = |there: bool| {
            if there {
                axis = axis.saturating_add(1);
                range(axis.saturating_sub(1)).ok_or(bad)
            } else {
                Ok((0, 1))
            }
        };
        let pages = next(self.pieces.pages.len() > 1)?;
        let planes = next(first.planar)?;
        let rows = next(true)?;
        let columns = next(true)?;
        let samples = next(!first.planar && first.samples > 1)?;
        let item = self.pieces.item;
        let len = |n: u64| {
            usize::try_from(n)
                .unwrap_or(usize::MAX)
                .saturating_mul(item)
        };
        let pixel = len(self.pieces.samples());
        let mut out = Vec::new();
        for page in pages.0..pages.1 {
            for plane in planes.0..planes.1 {
                let bytes = self.rows(page, plane, rows.0, rows.1)?;
                let row = usize::try_from(first.width)
                    .unwrap_or(usize::MAX)
                    .saturating_mul(pixel);
                for row in bytes.chunks_exact(row.max(1)) {
                    let columns = usize::try_from(columns.0).unwrap_or(usize::MAX)
                        ..usize::try_from(columns.1).unwrap_or(usize::MAX);
                    let wanted = row.chunks_exact(pixel.max(1));
                    for pixel in wanted.skip(columns.start).take(columns.len()) {
                        let part = pixel.get(len(samples.0)..len(samples.1));
                        out.extend_from_slice(part.ok_or(bad)?);
                    }
                }
            }
        }
        Ok(Elements::Fixed(out))
    }

    fn bytes(&self) -> u64 {
        let count = self.shape.iter().fold(1_u64, |n, e| n.saturating_mul(*e));
        count.saturating_mul(self.pieces.item as u64)
    }
}
