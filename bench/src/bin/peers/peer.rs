//! What all that is compared can do: the same verbs on the same data, each timed by whoever does it.
//!
//! Verbs, with a codec (`raw`, `zstd`, `lz4`) and sides ("64", "128/16"): `write` makes the store anew and makes it
//! durable; `read` fills memory that has been touched before; `fresh` gives new memory; `open` opens and reads one chunk's
//! first element; `cell`, `box`, `series`, `map` are small reads at random places, `strided` takes every fourth element on
//! each axis. Small reads go through a handle that is kept open.

use std::path::PathBuf;
use std::time::Instant;

use crate::Outcome;
use crate::data::{Block, Part, Random, Shape, Sides, part};

/// One store to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub codec: String,
    pub sides: String,
}

impl Store {
    pub fn new(codec: &str, sides: &str) -> Self {
        Self {
            codec: codec.to_owned(),
            sides: sides.to_owned(),
        }
    }

    pub fn file(&self, peer: &str) -> String {
        format!("{peer}-{}-{}", self.codec, self.sides.replace('/', "_"))
    }
}

/// Where a run works and on what.
pub struct Site {
    pub folder: PathBuf,
    pub shape: Shape,
    pub cube: Block,
}

/// Reads of one round of a small verb.
pub const SMALL_READS: usize = 40;

pub trait Peer {
    fn name(&self) -> String;

    /// Bytes that a store takes on disk.
    fn size(&mut self, store: &Store) -> Outcome<u64>;

    /// Seconds that one `verb` took: of small reads the mean of a round, whose places `seed` names. `None` where this peer
    /// cannot.
    fn run(&mut self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>>;
}

/// Seconds of `work`.
pub fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let began = Instant::now();
    let made = work()?;
    Ok((began.elapsed().as_secs_f64(), made))
}

/// Mean seconds of a round of small reads. `read` gives the elements of a part; they are compared outside of the time.
pub fn small(
    verb: &str,
    site: &Site,
    seed: u64,
    mut read: impl FnMut(Part, &mut [f32]) -> Outcome<()>,
) -> Outcome<f64> {
    let mut random = Random(seed);
    let reads = if verb == "map" { 8 } else { SMALL_READS };
    let mut total = 0.0;
    for _ in 0..reads {
        let part = part(verb, site.shape, &mut random);
        let mut out = vec![-1.0; part.iter().map(|p| p.1).product()];
        total += timed(|| read(part, &mut out))?.0;
        check(site, part, &out)?;
    }
    Ok(total / reads as f64)
}

fn check(site: &Site, part: Part, out: &[f32]) -> Outcome<()> {
    let [_, ys, xs] = site.shape;
    let [t, y, x] = part;
    let mut found = out.iter();
    for t in t.0..t.0 + t.1 {
        for y in y.0..y.0 + y.1 {
            let from = (t * ys + y) * xs + x.0;
            for want in &site.cube[from..from + x.1] {
                if found.next() != Some(want) {
                    return Err(format!("other values in {part:?}").into());
                }
            }
        }
    }
    Ok(())
}

/// Ranges of a part as unsigned numbers.
pub fn ranges(part: Part) -> [std::ops::Range<u64>; 3] {
    part.map(|(start, len)| start as u64..(start + len) as u64)
}

pub fn sides(store: &Store) -> Outcome<Sides> {
    Sides::parse(&store.sides)
}

/// Bytes of a file, or of all files below a folder.
pub fn size_of_path(path: &std::path::Path) -> Outcome<u64> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_dir() {
        return Ok(meta.len());
    }
    let mut total = 0;
    for entry in std::fs::read_dir(path)? {
        total += size_of_path(&entry?.path())?;
    }
    Ok(total)
}
