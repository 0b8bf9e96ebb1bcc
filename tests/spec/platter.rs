//! What a power cut leaves of a recorded run, over all its files and names.
//!
//! Holds [`Platter`]: files and names as far as they are durable, what is on the way, and [`images`], every image that a cut
//! at a point of the run may leave under the container's name. See `disk.rs` for the model.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::crash::{Piece, apply, apply_part, name, pieces, subsets};
use crate::disk::{Op, Random};

/// Bytes of a page that are cut off, in a torn one.
const TEARS: [usize; 5] = [1, 100, 252, 512, 2000];

/// Files and names as far as they are durable, and what is on the way.
#[derive(Debug, Default, Clone)]
pub struct Platter {
    durable: BTreeMap<usize, Vec<u8>>,
    pending: BTreeMap<usize, Vec<Piece>>,
    names: BTreeMap<OsString, usize>,
    name_changes: Vec<Op>,
}

impl Platter {
    /// A platter with one durable file under the container's name.
    pub fn with_file(bytes: Vec<u8>) -> Self {
        Self {
            durable: BTreeMap::from([(0, bytes)]),
            names: BTreeMap::from([(name().to_owned(), 0)]),
            ..Self::default()
        }
    }

    /// Takes note of a call.
    pub fn take(&mut self, op: &Op) {
        match op {
            Op::Write {
                file,
                offset,
                bytes,
            } => {
                let pending = self.pending.entry(*file).or_default();
                pending.extend(pieces(*offset, bytes));
            }
            Op::Sync { file } => {
                let image = self.durable.entry(*file).or_default();
                for piece in self.pending.remove(file).unwrap_or_default() {
                    apply(image, &piece);
                }
            }
            Op::SyncFolder => {
                for op in std::mem::take(&mut self.name_changes) {
                    rename(&mut self.names, &op);
                }
            }
            Op::Create { .. } | Op::Rename { .. } | Op::Remove { .. } => {
                self.name_changes.push(op.clone());
            }
            Op::FailedSync { .. } | Op::Acknowledged { .. } => {}
        }
    }

    /// Every file the name may lead to: a journal keeps the order of names, so prefixes of the changes.
    fn led_to(&self) -> Vec<Option<usize>> {
        let mut names = self.names.clone();
        let mut all = vec![names.get(name()).copied()];
        for op in &self.name_changes {
            rename(&mut names, op);
            all.push(names.get(name()).copied());
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every image that a cut now may leave, at most about `most` for each file; none stands for no file at all.
    pub fn images(&self, random: &mut Random, most: usize, mut f: impl FnMut(Option<Vec<u8>>)) {
        for file in self.led_to() {
            let Some(file) = file else {
                f(None);
                continue;
            };
            let base = self.durable.get(&file).cloned().unwrap_or_default();
            let pending = self.pending.get(&file).map_or(&[][..], Vec::as_slice);
            for kept in subsets(pending.len(), random).iter().take(most) {
                let mut image = base.clone();
                let chosen = pending.iter().zip(kept).filter(|(_, kept)| **kept);
                chosen.for_each(|(piece, _)| apply(&mut image, piece));
                f(Some(image));
            }
            for torn in 0..pending.len() {
                let cuts = TEARS.iter().flat_map(|cut| [(*cut, false), (*cut, true)]);
                for (cut, others) in cuts.take(most) {
                    f(Some(torn_image(&base, pending, torn, cut, others, random)));
                }
            }
        }
    }
}

/// One page cut off or filled with garbage, the others there or not.
fn torn_image(
    base: &[u8],
    pending: &[Piece],
    torn: usize,
    cut: usize,
    others: bool,
    random: &mut Random,
) -> Vec<u8> {
    let mut image = base.to_vec();
    for (i, piece) in pending.iter().enumerate() {
        let cut = cut.min(piece.bytes.len());
        if i != torn {
            if others {
                apply(&mut image, piece);
            }
        } else if random.below(4) > 0 {
            apply_part(&mut image, piece.offset, &piece.bytes[..cut]);
        } else {
            apply_part(&mut image, piece.offset, &vec![0xA5; cut]);
        }
    }
    image
}

fn rename(names: &mut BTreeMap<OsString, usize>, op: &Op) {
    match op {
        Op::Create { name, file } => drop(names.insert(name.clone(), *file)),
        Op::Rename { from, to } => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Op::Remove { name } => drop(names.remove(name)),
        _ => {}
    }
}
