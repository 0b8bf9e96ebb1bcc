//! A decoded chunk as its last codec finds it.
//!
//! Holds [`Decoded`]: elements, or the byte planes that a shuffle made of them. A reader that wants only runs of elements,
//! or wants them elsewhere, puts them together where they are to stay, which saves a pass over the chunk. Must not know
//! coordinates.

use super::shuffle::{Columns, unshuffle_run};
use crate::grid::{Copier, Run};

/// The bytes of a chunk, one undoing short of its elements or not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decoded<'a> {
    /// Elements in C order, little-endian.
    Elements(&'a [u8]),
    /// Byte 0 of every element, then byte 1 of every element, and so on.
    Planes(&'a [u8]),
}

impl Decoded<'_> {
    /// Copies what `copier` says into `row`: elements of `item` bytes each.
    pub(crate) fn copy(&self, item: usize, copier: &Copier, row: &mut [u8]) {
        match self {
            Self::Elements(bytes) => copier.copy_bytes(item, bytes, row),
            Self::Planes(planes) => match item {
                2 => scatter::<2>(planes, copier, row),
                4 => scatter::<4>(planes, copier, row),
                8 => scatter::<8>(planes, copier, row),
                16 => scatter::<16>(planes, copier, row),
                _ => copier.for_each(|run| {
                    for_each_part(run, |src, dst, len| {
                        let start = dst.saturating_mul(item);
                        let end = start.saturating_add(len.saturating_mul(item));
                        if let Some(to) = row.get_mut(start..end) {
                            unshuffle_run(planes, item, src, to);
                        }
                    });
                }),
            },
        }
    }
}

fn scatter<const P: usize>(planes: &[u8], copier: &Copier, row: &mut [u8]) {
    let columns = Columns::<P>::of(planes);
    let items = row.as_chunks_mut::<P>().0;
    copier.for_each(|run| {
        for_each_part(run, |src, dst, len| {
            if let Some(to) = items.get_mut(dst..dst.saturating_add(len)) {
                columns.join(src, to);
            }
        });
    });
}

/// The parts of a run whose elements lie side by side on both sides: source, destination, length.
fn for_each_part(run: Run, mut f: impl FnMut(usize, usize, usize)) {
    if run.src_step == 1 && run.dst_step == 1 {
        f(run.src, run.dst, run.len);
        return;
    }
    let (mut src, mut dst) = (run.src, run.dst);
    for _ in 0..run.len {
        f(src, dst, 1);
        src = src.wrapping_add(run.src_step);
        dst = dst.wrapping_add(run.dst_step);
    }
}
