//! zarrs (plain and sharded) and HDF5 1.10 through `hdf5-metno`, with Blosc for its compressed stores.

use std::path::PathBuf;
use std::sync::Arc;

use hdf5::filters::{BloscShuffle, blosc_set_nthreads};
use unsafe_cell_slice::UnsafeCellSlice;
use zarrs::array::{
    Array, ArrayBytesFixedDisjointView, ArrayShardedReadableExt, ArrayShardedReadableExtCache,
    ArraySubset, CodecOptions,
};
use zarrs::filesystem::FilesystemStore;

use crate::Outcome;
use crate::data::Block;
use crate::peer::{Peer, Site, Store, ranges, sides, small, timed};

type ZarrsArray = Array<FilesystemStore>;

pub struct Zarrs {
    site: Arc<Site>,
    buffer: Block,
    open: Option<(Store, ZarrsArray, ArrayShardedReadableExtCache)>,
}

impl Zarrs {
    pub fn new(site: Arc<Site>) -> Outcome<Self> {
        let buffer = Block::new(site.cube.len())?;
        Ok(Self {
            site,
            buffer,
            open: None,
        })
    }

    fn path(&self, store: &Store) -> PathBuf {
        self.site.folder.join(store.file("zarrs"))
    }

    fn array(&self, store: &Store) -> Outcome<ZarrsArray> {
        Ok(Array::open(
            Arc::new(FilesystemStore::new(self.path(store))?),
            "/",
        )?)
    }

    fn create(&self, store: &Store) -> Outcome<()> {
        let path = self.path(store);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)?;
        let sides = sides(store)?;
        let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
        let inner = match store.codec.as_str() {
            "zstd" => format!(
                r#"{bytes},{{"name":"numcodecs.shuffle","configuration":{{"elementsize":4}}}},{{"name":"zstd","configuration":{{"level":1,"checksum":false}}}}"#
            ),
            "lz4" => format!(
                r#"{bytes},{{"name":"blosc","configuration":{{"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":4,"blocksize":0}}}}"#
            ),
            _ => bytes.to_owned(),
        };
        let codecs = match sides.inner {
            Some(n) => format!(
                r#"{{"name":"sharding_indexed","configuration":{{"chunk_shape":[{n},{n},{n}],"codecs":[{inner}],"index_codecs":[{bytes},{{"name":"crc32c"}}],"index_location":"end"}}}}"#
            ),
            None => inner,
        };
        let (shape, c) = (self.site.shape, sides.chunk);
        let document = format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":{shape:?},"data_type":"float32","chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[{c},{c},{c}]}}}},"chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"fill_value":0.0,"codecs":[{codecs}]}}"#
        );
        Ok(std::fs::write(path.join("zarr.json"), document)?)
    }

    fn keep(&mut self, store: &Store) -> Outcome<()> {
        if self.open.as_ref().is_none_or(|o| o.0 != *store) {
            let array = self.array(store)?;
            let cache = ArrayShardedReadableExtCache::new(&array);
            self.open = Some((store.clone(), array, cache));
        }
        Ok(())
    }

    fn whole(&self) -> ArraySubset {
        ArraySubset::new_with_shape(self.site.shape.map(|n| n as u64).to_vec())
    }
}

impl Peer for Zarrs {
    fn name(&self) -> String {
        "zarrs".into()
    }

    fn size(&mut self, store: &Store) -> Outcome<u64> {
        crate::peer::size_of_path(&self.path(store))
    }

    fn run(&mut self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>> {
        let all = self.whole();
        Ok(Some(match verb {
            "write" => {
                self.open = None;
                self.create(store)?;
                let array = self.array(store)?;
                timed(|| Ok(array.store_array_subset(&all, &self.site.cube[..])?))?.0
            }
            "read" => {
                self.keep(store)?;
                let Some((_, array, _)) = &self.open else {
                    return Ok(None);
                };
                let shape = self.site.shape.map(|n| n as u64);
                let seconds = timed(|| {
                    let cells = UnsafeCellSlice::new(bytemuck::cast_slice_mut(&mut self.buffer));
                    // SAFETY: the only view of these bytes.
                    let mut view =
                        unsafe { ArrayBytesFixedDisjointView::new(cells, 4, &shape, all.clone())? };
                    Ok(array.retrieve_array_subset_into(&all, (&mut view).into())?)
                })?
                .0;
                if self.buffer[..] != self.site.cube[..] {
                    return Err("zarrs: other values".into());
                }
                seconds
            }
            "fresh" => {
                self.keep(store)?;
                let Some((_, array, _)) = &self.open else {
                    return Ok(None);
                };
                timed(|| Ok(array.retrieve_array_subset::<Vec<f32>>(&all)?))?.0
            }
            "open" => {
                timed(|| {
                    let one = ArraySubset::new_with_ranges(&[0..1, 0..1, 0..1]);
                    Ok(self.array(store)?.retrieve_array_subset::<Vec<f32>>(&one)?)
                })?
                .0
            }
            "strided" => return Ok(None),
            small_verb => {
                self.keep(store)?;
                let Some((_, array, cache)) = &self.open else {
                    return Ok(None);
                };
                let options = CodecOptions::default();
                small(small_verb, &self.site, seed, |part, out| {
                    let subset = ArraySubset::new_with_ranges(&ranges(part));
                    let found: Vec<f32> =
                        array.retrieve_array_subset_sharded_opt(cache, &subset, &options)?;
                    out.copy_from_slice(&found);
                    Ok(())
                })?
            }
        }))
    }
}

pub struct Hdf5 {
    site: Arc<Site>,
    buffer: Block,
    open: Option<(Store, hdf5::Dataset)>,
}

impl Hdf5 {
    pub fn new(site: Arc<Site>) -> Outcome<Self> {
        blosc_set_nthreads(2);
        let buffer = Block::new(site.cube.len())?;
        Ok(Self {
            site,
            buffer,
            open: None,
        })
    }

    fn path(&self, store: &Store) -> PathBuf {
        self.site.folder.join(store.file("hdf5"))
    }

    fn keep(&mut self, store: &Store) -> Outcome<()> {
        if self.open.as_ref().is_none_or(|o| o.0 != *store) {
            self.open = Some((store.clone(), self.dataset(store)?));
        }
        Ok(())
    }

    fn dataset(&self, store: &Store) -> Outcome<hdf5::Dataset> {
        Ok(hdf5::File::open(self.path(store))?.dataset("cube")?)
    }
}

impl Peer for Hdf5 {
    fn name(&self) -> String {
        "HDF5 (hdf5-metno)".into()
    }

    fn size(&mut self, store: &Store) -> Outcome<u64> {
        crate::peer::size_of_path(&self.path(store))
    }

    fn run(&mut self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>> {
        let sides = sides(store)?;
        if sides.inner.is_some() {
            return Ok(None);
        }
        Ok(Some(match verb {
            "write" => {
                self.open = None;
                let path = self.path(store);
                let _ = std::fs::remove_file(&path);
                let c = sides.chunk;
                timed(|| {
                    let file = hdf5::File::create(&path)?;
                    let builder = file
                        .new_dataset::<f32>()
                        .shape(self.site.shape)
                        .chunk((c, c, c));
                    let builder = match store.codec.as_str() {
                        "zstd" => builder.blosc_zstd(1, BloscShuffle::Byte),
                        "lz4" => builder.blosc_lz4(1, BloscShuffle::Byte),
                        _ => builder,
                    };
                    builder.create("cube")?.write_raw(&self.site.cube[..])?;
                    file.flush()?;
                    Ok(())
                })?
                .0
            }
            "read" => {
                self.keep(store)?;
                let Some((_, dataset)) = &self.open else {
                    return Ok(None);
                };
                let seconds = timed(|| Ok(dataset.read_into_raw(&mut self.buffer)?))?.0;
                if self.buffer[..] != self.site.cube[..] {
                    return Err("hdf5: other values".into());
                }
                seconds
            }
            "fresh" => {
                self.keep(store)?;
                let Some((_, dataset)) = &self.open else {
                    return Ok(None);
                };
                timed(|| Ok(dataset.read_raw::<f32>()?))?.0
            }
            "open" => timed(|| Ok(self.dataset(store)?.read_slice_1d::<f32, _>((0, 0, 0..1))?))?.0,
            "strided" => return Ok(None),
            small_verb => {
                self.keep(store)?;
                let Some((_, dataset)) = &self.open else {
                    return Ok(None);
                };
                small(small_verb, &self.site, seed, |part, out| {
                    let [t, y, x] = part.map(|(start, len)| start..start + len);
                    let found = dataset.read_slice::<f32, _, ndarray::Ix3>((t, y, x))?;
                    out.copy_from_slice(found.as_slice().ok_or("not in order")?);
                    Ok(())
                })?
            }
        }))
    }
}
