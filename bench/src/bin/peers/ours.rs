//! orthant.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use orthant::{Array, ArraySpec, Codec, Container, OpenOptions, Region, region};

use crate::Outcome;
use crate::data::Block;
use crate::peer::{Peer, Site, Store, ranges, sides, small, timed};

pub struct Ours {
    site: Arc<Site>,
    /// Touched memory as large as the cube.
    buffer: Block,
    open: HashMap<String, (Container, Array<f32>)>,
}

impl Ours {
    pub fn new(site: Arc<Site>) -> Outcome<Self> {
        let buffer = Block::new(site.cube.len())?;
        Ok(Self {
            site,
            buffer,
            open: HashMap::new(),
        })
    }

    fn path(&self, store: &Store) -> PathBuf {
        self.site.folder.join(store.file("orthant"))
    }

    fn write(&mut self, store: &Store) -> Outcome<f64> {
        let path = self.path(store);
        self.open.remove(&store.file(""));
        let _ = std::fs::remove_file(&path);
        let [t, y, x] = self.site.shape.map(|n| n as i64);
        let sides = sides(store)?;
        let spec = ArraySpec::<f32>::new(region![0..t, 0..y, 0..x]).codecs(codecs(&store.codec));
        let spec = match sides.inner {
            Some(inner) => spec
                .chunks([inner as u64; 3])
                .shards([sides.chunk as u64; 3]),
            None => spec.chunks([sides.chunk as u64; 3]),
        };
        let (seconds, ()) = timed(|| {
            let container = Container::create(&path)?;
            let writer = container.writer()?;
            writer
                .create_array("cube", spec)?
                .write_slice(Region::all(), &self.site.cube)?;
            writer.commit()?;
            Ok(())
        })?;
        Ok(seconds)
    }
}

pub fn codecs(name: &str) -> Vec<Codec> {
    match name {
        "zstd" => vec![Codec::shuffle(), Codec::zstd(1)],
        "lz4" => vec![Codec::shuffle(), Codec::lz4()],
        _ => Codec::raw_profile(),
    }
}

fn region_of(part: crate::data::Part) -> Region {
    let [t, y, x] = ranges(part).map(|r| r.start as i64..r.end as i64);
    region![t, y, x]
}

impl Peer for Ours {
    fn name(&self) -> String {
        "orthant".into()
    }

    fn size(&mut self, store: &Store) -> Outcome<u64> {
        crate::peer::size_of_path(&self.path(store))
    }

    fn run(&mut self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>> {
        if verb == "write" {
            return self.write(store).map(Some);
        }
        let path = self.path(store);
        if verb == "open" {
            let read = || {
                Ok(Container::open(&path)?
                    .snapshot()?
                    .array::<f32>("cube")?
                    .read_vec(region![0, 0, 0])?)
            };
            return Ok(Some(timed(read)?.0));
        }
        let name = store.file("");
        if !self.open.contains_key(&name) {
            let container = OpenOptions::new().cache_bytes(0).open(&path)?;
            let array = container.snapshot()?.array::<f32>("cube")?;
            self.open.insert(name.clone(), (container, array));
        }
        let array = &self.open[&name].1;
        Ok(Some(match verb {
            "read" => {
                let seconds = timed(|| Ok(array.read_into(Region::all(), &mut self.buffer)?))?.0;
                if self.buffer[..] != self.site.cube[..] {
                    return Err("orthant: other values".into());
                }
                seconds
            }
            "fresh" => timed(|| Ok(array.read_vec(Region::all())?))?.0,
            "strided" => {
                let [t, y, x] = self.site.shape.map(|n| n as i64);
                let part = || region![(0..t).step(4), (0..y).step(4), (0..x).step(4)];
                timed(|| Ok(array.read_vec(part())?))?.0
            }
            small_verb => small(small_verb, &self.site, seed, |part, out| {
                array.read_into(region_of(part), out)?;
                Ok(())
            })?,
        }))
    }
}
