//! Elements of two arrays, chunk by chunk.
//!
//! Holds [`Arrays`], which decodes only where checksums do not decide, and the comparison of elements. Must not know where
//! the arrays come from.

use std::collections::{BTreeSet, HashSet};

use crate::array::{DynArray, Elements};
use crate::error::Result;
use crate::format::document::ArrayDocument;
use crate::format::dtype::DataType;
use crate::format::float::{BFLOAT16, BINARY16, BINARY32, BINARY64, FloatLayout};
use crate::format::key::{self, Key};
use crate::format::record::ChunkRecord;
use crate::grid::{ChunkGrid, Domain, Region};
use crate::index::Differing;

/// Coordinates of a chunk key of an array with that document.
pub(super) fn coordinates(key: &[u8], document: &ArrayDocument) -> Result<Vec<i64>> {
    let mut coords = vec![0; document.rank()];
    key::decode_chunk(key, document.rank(), &document.key_order, &mut coords)?;
    Ok(coords)
}

/// One array of one state, as the comparison sees it.
struct Side<'a> {
    array: &'a DynArray,
    document: ArrayDocument,
    grid: ChunkGrid,
}

impl Side<'_> {
    fn record(&self, coords: &[i64]) -> Result<Option<ChunkRecord>> {
        let key = key::chunk(self.array.id(), coords, &self.document.key_order);
        let value = self.array.view().get(&key)?;
        value
            .map(|value| ChunkRecord::decode(&value, 0, u64::MAX))
            .transpose()
    }

    /// Calls `f` with the coordinates of every chunk that has an entry.
    fn each(&self, mut f: impl FnMut(Vec<i64>) -> Result<()>) -> Result<()> {
        let prefix = key::chunk_prefix(self.array.id());
        let end = key::prefix_end(&prefix).unwrap_or_default();
        let mut cursor = self.array.view().cursor(&prefix, &end)?;
        while let Some((key, _)) = cursor.next()? {
            f(coordinates(&key, &self.document)?)?;
        }
        Ok(())
    }
}

/// Two arrays of one type and rank.
pub(super) struct Arrays<'a> {
    old: Side<'a>,
    new: Side<'a>,
    /// What both have.
    common: Domain,
    tolerance: f64,
    /// Chunk coordinates mean the same elements.
    same_grid: bool,
    /// Equal stored bytes mean equal elements.
    same_form: bool,
    differing: BTreeSet<Vec<i64>>,
}

impl<'a> Arrays<'a> {
    pub(super) fn new(
        old: &'a DynArray,
        new: &'a DynArray,
        (old_document, new_document): (ArrayDocument, ArrayDocument),
        tolerance: f64,
    ) -> Result<Self> {
        let grid = |d: &ArrayDocument| ChunkGrid::new(&d.origin, &d.chunk_shape);
        let same_grid = old_document.chunk_shape == new_document.chunk_shape
            && old_document.origin == new_document.origin;
        Ok(Self {
            common: old.domain()?.intersection(&new.domain()?),
            same_grid,
            same_form: same_grid
                && old_document.codecs == new_document.codecs
                && old_document.fill == new_document.fill,
            old: Side {
                array: old,
                grid: grid(&old_document)?,
                document: old_document,
            },
            new: Side {
                array: new,
                grid: grid(&new_document)?,
                document: new_document,
            },
            tolerance,
            differing: BTreeSet::new(),
        })
    }

    /// The chunks of the old grid in which some element differs; `keys` are those of entries of one file that differ, where
    /// that is known, and no others are looked at then.
    pub(super) fn differing(mut self, keys: Option<&[(Key, bool)]>) -> Result<Vec<Vec<i64>>> {
        if self.common.is_empty() && self.common.rank() > 0 {
            return Ok(Vec::new());
        }
        match keys {
            Some(keys) if self.same_grid && self.same_form => {
                for (key, _) in keys {
                    let coords = coordinates(key, &self.old.document)?;
                    self.chunk(coords)?;
                }
            }
            _ => self.all()?,
        }
        Ok(self.differing.into_iter().collect())
    }

    /// Compares every chunk that either has an entry for.
    fn all(&mut self) -> Result<()> {
        let mut stored = Vec::new();
        self.old.each(|coords| {
            stored.push(coords);
            Ok(())
        })?;
        let seen: HashSet<Vec<i64>> = stored.iter().cloned().collect();
        stored
            .into_iter()
            .try_for_each(|coords| self.chunk(coords))?;
        let mut more = Vec::new();
        self.new.each(|coords| {
            more.push(coords);
            Ok(())
        })?;
        for coords in more {
            if self.same_grid {
                if !seen.contains(&coords) {
                    self.chunk(coords)?;
                }
                continue;
            }
            // What the old array has stored has been compared; the rest of this chunk falls into other chunks of its grid.
            let part = self.new.grid.covered(&coords, &self.common);
            if part.is_empty() && part.rank() > 0 {
                continue;
            }
            for old in self.old.array.chunk_coords(Region::from_domain(&part))? {
                if !seen.contains(&old) {
                    let part = self.old.grid.covered(&old, &part);
                    self.compare(old, &part)?;
                }
            }
        }
        Ok(())
    }

    /// Compares a chunk of the old grid.
    fn chunk(&mut self, coords: Vec<i64>) -> Result<()> {
        let part = self.old.grid.covered(&coords, &self.common);
        if part.is_empty() && part.rank() > 0 {
            return Ok(());
        }
        if self.same_form {
            let (old, new) = (self.old.record(&coords)?, self.new.record(&coords)?);
            if let (Some(old), Some(new)) = (old, new)
                && same_bytes(&old, &new)
            {
                return Ok(());
            }
        }
        self.compare(coords, &part)
    }

    fn compare(&mut self, coords: Vec<i64>, part: &Domain) -> Result<()> {
        let old = self.old.array.read(Region::from_domain(part))?;
        let new = self.new.array.read(Region::from_domain(part))?;
        if !same_elements(&old.data_type, &old.elements, &new.elements, self.tolerance) {
            self.differing.insert(coords);
        }
        Ok(())
    }
}

/// Whether a chunk's record names the same bytes in another place.
pub(super) fn is_stored_anew(differing: &Differing<'_>) -> Result<bool> {
    let (Some(old), Some(new)) = (differing.old, differing.new) else {
        return Ok(false);
    };
    let decode = |value| ChunkRecord::decode(value, 0, u64::MAX);
    Ok(same_bytes(&decode(old)?, &decode(new)?))
}

/// Whether two records stand for the same stored bytes.
fn same_bytes(old: &ChunkRecord, new: &ChunkRecord) -> bool {
    match (old, new) {
        (
            ChunkRecord::Stored { extent: a, mask: m },
            ChunkRecord::Stored { extent: b, mask: n },
        ) => (a.len, a.crc, m) == (b.len, b.crc, n),
        (a, b) => a == b,
    }
}

/// Whether all elements are equal: in their bits, or as numbers at most `tolerance` apart.
fn same_elements(data_type: &DataType, old: &Elements, new: &Elements, tolerance: f64) -> bool {
    if old == new {
        return true;
    }
    let (Elements::Fixed(a), Elements::Fixed(b)) = (old, new) else {
        return false;
    };
    match number(data_type) {
        Some(number) if tolerance > 0.0 && a.len() == b.len() => {
            let size = number.size();
            let pairs = a.chunks_exact(size).zip(b.chunks_exact(size));
            pairs
                .into_iter()
                .all(|(a, b)| a == b || close(number.value(a), number.value(b), tolerance))
        }
        _ => false,
    }
}

/// How bytes are a number.
#[derive(Clone, Copy)]
enum Number {
    Signed(usize),
    Unsigned(usize),
    Float(FloatLayout),
}

/// One number, exact where it is whole.
#[derive(Clone, Copy)]
enum Amount {
    Whole(i128),
    Real(f64),
}

fn number(data_type: &DataType) -> Option<Number> {
    Some(match data_type {
        DataType::Int8 => Number::Signed(1),
        DataType::Int16 => Number::Signed(2),
        DataType::Int32 => Number::Signed(4),
        DataType::Int64 => Number::Signed(8),
        DataType::Uint8 => Number::Unsigned(1),
        DataType::Uint16 => Number::Unsigned(2),
        DataType::Uint32 => Number::Unsigned(4),
        DataType::Uint64 => Number::Unsigned(8),
        DataType::Float16 => Number::Float(BINARY16),
        DataType::Bfloat16 => Number::Float(BFLOAT16),
        // The parts of a complex number are compared each.
        DataType::Float32 | DataType::Complex64 => Number::Float(BINARY32),
        DataType::Float64 | DataType::Complex128 => Number::Float(BINARY64),
        _ => return None,
    })
}

impl Number {
    fn size(self) -> usize {
        match self {
            Self::Signed(size) | Self::Unsigned(size) => size,
            Self::Float(layout) => layout.size(),
        }
    }

    fn value(self, bytes: &[u8]) -> Amount {
        let bits = bytes
            .iter()
            .rev()
            .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        match self {
            Self::Unsigned(_) => Amount::Whole(bits.into()),
            Self::Signed(size) => {
                // The sign bit of a narrow number moves to the top and back.
                let shift =
                    64_u32.saturating_sub(u32::try_from(size).unwrap_or(8).saturating_mul(8));
                let wide = bits.checked_shl(shift).unwrap_or(0).cast_signed();
                Amount::Whole(wide.checked_shr(shift).unwrap_or(0).into())
            }
            Self::Float(layout) => Amount::Real(layout.widen(bits)),
        }
    }
}

/// Whether two numbers are at most `tolerance` apart. Equal infinities have equal bits, which were compared.
#[expect(
    clippy::cast_precision_loss,
    reason = "a distance is compared with a tolerance that is a float itself"
)]
fn close(a: Amount, b: Amount, tolerance: f64) -> bool {
    match (a, b) {
        (Amount::Whole(a), Amount::Whole(b)) => a.abs_diff(b) as f64 <= tolerance,
        (Amount::Real(a), Amount::Real(b)) => {
            a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(bytes: impl IntoIterator<Item = u8>) -> Elements {
        Elements::Fixed(bytes.into_iter().collect())
    }

    #[test]
    fn a_tolerance_holds_for_numbers_and_for_nothing_else() {
        let ints = |v: &[i16]| fixed(v.iter().flat_map(|x| x.to_le_bytes()));
        let same = |t: &DataType, a: &Elements, b: &Elements, x| same_elements(t, a, b, x);
        let (a, b) = (ints(&[-3, 300]), ints(&[-5, 302]));
        assert!(same(&DataType::Int16, &a, &b, 2.0));
        assert!(!same(&DataType::Int16, &a, &b, 1.5));
        assert!(!same(&DataType::Int16, &a, &b, 0.0));
        let floats = |v: &[f32]| fixed(v.iter().flat_map(|x| x.to_le_bytes()));
        let nan = f32::from_bits(0x7FC0_0001);
        let (a, b) = (floats(&[1.0, f32::NAN, 5.0]), floats(&[1.25, nan, 5.0]));
        assert!(same(&DataType::Float32, &a, &b, 0.25));
        assert!(!same(&DataType::Float32, &a, &b, 0.125));
        assert!(same(
            &DataType::Complex64,
            &floats(&[1.0, 2.0]),
            &floats(&[1.0, 2.5]),
            0.5
        ));
        let far = fixed(u64::MAX.to_le_bytes());
        let near = fixed((u64::MAX - 1).to_le_bytes());
        assert!(same(&DataType::Uint64, &far, &near, 1.0));
        assert!(!same(&DataType::Uint64, &far, &near, 0.5));
        let raw = DataType::RawBytes { length: 1 };
        assert!(!same(&raw, &fixed([1]), &fixed([2]), 9.0));
        assert!(!same(&DataType::Bool, &fixed([1]), &fixed([0]), 9.0));
    }
}
