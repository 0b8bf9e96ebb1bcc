//! The cube that everybody stores, and the places that everybody reads.
//!
//! f32 in C order, `time` x `lat` x `lon`: a smooth field plus noise, in steps of 0.01, as measured fields are. The file
//! of the elements in the run's folder is what other programs take them from. Must not know who reads.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use memmap2::{Advice, MmapMut};

use crate::Outcome;

/// Elements in memory that has been touched, on huge pages where the system gives them: NumPy asks for them too.
pub struct Block(MmapMut);

impl Block {
    pub fn new(len: usize) -> Outcome<Self> {
        let mut map = MmapMut::map_anon(len * 4)?;
        map.advise(Advice::HugePage)?;
        map.fill(1);
        Ok(Self(map))
    }
}

impl Deref for Block {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // A map starts on a page.
        bytemuck::cast_slice(&self.0)
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Extents of the cube.
pub type Shape = [usize; 3];

/// Steps of noise above each smooth value.
const NOISE: u64 = 16;

pub fn cube(shape: Shape) -> Outcome<Block> {
    let mut random = Random(3);
    let mut cube = Block::new(shape.iter().product())?;
    let mut elements = cube.iter_mut();
    for t in 0..shape[0] {
        for y in 0..shape[1] {
            for x in 0..shape[2] {
                let smooth = 280.0
                    + (t as f64 * 0.05).sin() * 8.0
                    + (y as f64 * 0.02).cos() * 12.0
                    + (x as f64 * 0.03).sin() * 4.0;
                let steps = (smooth * 100.0).round() + random.below(NOISE) as f64;
                if let Some(element) = elements.next() {
                    *element = (steps / 100.0) as f32;
                }
            }
        }
    }
    Ok(cube)
}

pub fn save(cube: &[f32], to: &Path) -> Outcome<()> {
    Ok(std::fs::write(to, bytemuck::cast_slice::<f32, u8>(cube))?)
}

/// The same numbers in every run, and in `peers.py` (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 1) % end
    }

    /// A position in the cube.
    pub fn place(&mut self, shape: Shape) -> [usize; 3] {
        shape.map(|n| self.below(n as u64) as usize)
    }
}

/// What of the cube one small read asks for: start and length on each axis.
pub type Part = [(usize, usize); 3];

/// The part that `verb` reads at a random place.
pub fn part(verb: &str, shape: Shape, random: &mut Random) -> Part {
    let place = random.place(shape);
    let axis = |a: usize, n: usize| (place[a].min(shape[a] - n), n);
    match verb {
        "box" => [axis(0, 16), axis(1, 16), axis(2, 16)],
        "series" => [(0, shape[0]), axis(1, 1), axis(2, 1)],
        "map" => [axis(0, 1), (0, shape[1]), (0, shape[2])],
        _ => [axis(0, 1), axis(1, 1), axis(2, 1)],
    }
}

/// Chunk side and, in shards, the side of inner chunks: "64", "128/16".
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    pub chunk: usize,
    pub inner: Option<usize>,
}

impl Sides {
    pub fn parse(text: &str) -> Outcome<Self> {
        let (chunk, inner) = match text.split_once('/') {
            Some((chunk, inner)) => (chunk, Some(inner.parse()?)),
            None => (text, None),
        };
        Ok(Self {
            chunk: chunk.parse()?,
            inner,
        })
    }
}
