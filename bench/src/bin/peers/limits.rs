//! What this machine can do at all, in the same run: copying, reading the file, and the codec alone, in memory.
//!
//! The bare codecs are those that orthant uses, on chunks that are laid out and shuffled beforehand, from memory into a
//! buffer that each thread keeps: nobody who decodes these bytes with this decoder is faster. Must not use orthant.

use std::path::Path;

use rayon::prelude::*;

use crate::Outcome;
use bytemuck::{cast_slice, cast_slice_mut};

use crate::data::Shape;
use crate::peer::timed;

/// Chunks of the cube as a codec is given them, and what it made of them.
pub struct Bare {
    codec: String,
    side: usize,
    shape: Shape,
    /// Elements of each chunk, shuffled where the codec is a compressor.
    chunks: Vec<Vec<u8>>,
    encoded: Vec<Vec<u8>>,
}

impl Bare {
    pub fn new(codec: &str, side: usize, shape: Shape, cube: &[f32]) -> Outcome<Self> {
        let mut bare = Self {
            codec: codec.to_owned(),
            side,
            shape,
            chunks: Vec::new(),
            encoded: Vec::new(),
        };
        let rows: &[u8] = cast_slice(cube);
        for corner in bare.corners() {
            let mut chunk = Vec::with_capacity(side.pow(3) * 4);
            bare.for_each_row(corner, |row| {
                chunk.extend_from_slice(&rows[row..row + side * 4])
            });
            if codec != "raw" {
                chunk = shuffled(&chunk);
            }
            bare.chunks.push(chunk);
        }
        bare.encoded = bare.encode()?;
        Ok(bare)
    }

    fn corners(&self) -> Vec<[usize; 3]> {
        let axis = |a: usize| (0..self.shape[a]).step_by(self.side);
        axis(0)
            .flat_map(|t| axis(1).flat_map(move |y| axis(2).map(move |x| [t, y, x])))
            .collect()
    }

    /// Where each row of a chunk starts in the cube, in bytes.
    fn for_each_row(&self, [t, y, x]: [usize; 3], mut f: impl FnMut(usize)) {
        let [_, ys, xs] = self.shape;
        for t in t..t + self.side {
            for y in y..y + self.side {
                f(((t * ys + y) * xs + x) * 4);
            }
        }
    }

    fn encode(&self) -> Outcome<Vec<Vec<u8>>> {
        self.chunks
            .iter()
            .map(|chunk| {
                let mut out = vec![0; self.bound()];
                let len = encode(&self.codec, chunk, &mut out)?;
                out.truncate(len);
                Ok(out)
            })
            .collect()
    }

    /// Longest payload of a chunk.
    fn bound(&self) -> usize {
        let len = self.side.pow(3) * 4;
        len + len / 8 + 4096
    }

    /// Seconds to encode all chunks in the caller's thread pool.
    pub fn compress(&self) -> Outcome<f64> {
        let bound = self.bound();
        Ok(timed(|| {
            self.chunks
                .par_iter()
                .try_for_each_init(
                    || vec![0; bound],
                    |out, chunk| encode(&self.codec, chunk, out).map(|_| ()).map_err(text),
                )
                .map_err(Into::into)
        })?
        .0)
    }

    /// Seconds to decode all chunks in the caller's thread pool.
    pub fn decompress(&self) -> Outcome<f64> {
        let len = self.side.pow(3) * 4;
        Ok(timed(|| {
            let all = self.encoded.par_iter();
            let done: Result<(), String> = all.try_for_each_init(
                || vec![0; len],
                |out, encoded| decode(&self.codec, encoded, out),
            );
            Ok(done?)
        })?
        .0)
    }

    /// Seconds to checksum raw chunks and to copy their rows to their places in `out`, in the caller's thread pool.
    pub fn checksum_and_copy(&self, out: &mut [f32]) -> Outcome<f64> {
        self.to_places(out, |encoded, chunk| {
            std::hint::black_box(crc32fast::hash(encoded));
            chunk.clear();
            Ok(())
        })
    }

    /// Seconds to decode all chunks and to copy what comes out, as if it were not shuffled, to its places in `out`.
    pub fn decompress_and_copy(&self, out: &mut [f32]) -> Outcome<f64> {
        let len = self.side.pow(3) * 4;
        self.to_places(out, |encoded, chunk| {
            chunk.resize(len, 0);
            decode(&self.codec, encoded, chunk)
        })
    }

    /// Calls `make` for each payload and copies the rows of what it makes, or of the payload where it makes nothing.
    fn to_places(
        &self,
        out: &mut [f32],
        make: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), String> + Sync,
    ) -> Outcome<f64> {
        let slab = self.side * self.shape[1] * self.shape[2] * 4;
        let per_slab = self.shape[1] / self.side * (self.shape[2] / self.side);
        let corners = self.corners();
        Ok(timed(|| {
            let slabs = cast_slice_mut::<_, u8>(out).par_chunks_mut(slab);
            let done: Result<(), String> =
                slabs
                    .enumerate()
                    .try_for_each_init(Vec::new, |made, (i, slab_out)| {
                        let chunks = i * per_slab..(i + 1) * per_slab;
                        for (chunk, corner) in
                            self.encoded[chunks.clone()].iter().zip(&corners[chunks])
                        {
                            make(chunk, made)?;
                            let from = if made.is_empty() { chunk } else { &*made };
                            let mut rows = from.chunks_exact(self.side * 4);
                            self.for_each_row(*corner, |at| {
                                if let Some(row) = rows.next() {
                                    let at = at - i * slab;
                                    slab_out[at..at + row.len()].copy_from_slice(row);
                                }
                            });
                        }
                        Ok(())
                    });
            Ok(done?)
        })?
        .0)
    }

    /// Seconds to encode all chunks and to write each payload to its place in a new file.
    pub fn compress_and_write(&self, path: &Path) -> Outcome<f64> {
        use std::os::unix::fs::FileExt;
        let bound = self.bound();
        let _ = std::fs::remove_file(path);
        let starts: Vec<u64> = self
            .encoded
            .iter()
            .scan(0, |at, e| Some(std::mem::replace(at, *at + e.len() as u64)))
            .collect();
        let seconds = timed(|| {
            let file = std::fs::File::create(path)?;
            let done: Result<(), String> = self.chunks.par_iter().zip(starts).try_for_each_init(
                || vec![0; bound],
                |out, (chunk, start)| {
                    let len = encode(&self.codec, chunk, out)?;
                    file.write_all_at(&out[..len], start).map_err(text)
                },
            );
            Ok(done?)
        })?
        .0;
        std::fs::remove_file(path)?;
        Ok(seconds)
    }

    /// Seconds to check and to decode one chunk, of `count` random ones.
    pub fn single(&self, seed: u64, count: usize) -> Outcome<f64> {
        let mut random = crate::data::Random(seed);
        let mut chunk = vec![0; self.side.pow(3) * 4];
        let mut total = 0.0;
        for _ in 0..count {
            let encoded = &self.encoded[random.below(self.encoded.len() as u64) as usize];
            total += timed(|| {
                std::hint::black_box(crc32fast::hash(encoded));
                Ok(decode(&self.codec, encoded, &mut chunk)?)
            })?
            .0;
        }
        Ok(total / count as f64)
    }
}

fn decode(codec: &str, encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
    thread_local! {
        static ZSTD: std::cell::RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { std::cell::RefCell::new(None) };
    }
    match codec {
        "zstd" => ZSTD.with_borrow_mut(|zstd| {
            if zstd.is_none() {
                *zstd = Some(zstd::bulk::Decompressor::new().map_err(text)?);
            }
            let zstd = zstd.as_mut().ok_or("no decompressor")?;
            zstd.decompress_to_buffer(encoded, out)
                .map(|_| ())
                .map_err(text)
        }),
        "lz4" => lz4_flex::block::decompress_into(encoded, out)
            .map(|_| ())
            .map_err(text),
        _ => {
            out.copy_from_slice(encoded);
            Ok(())
        }
    }
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn encode(codec: &str, chunk: &[u8], out: &mut [u8]) -> Result<usize, String> {
    thread_local! {
        static ZSTD: std::cell::RefCell<Option<zstd::bulk::Compressor<'static>>> = const { std::cell::RefCell::new(None) };
        static LZ4: std::cell::RefCell<lz4_flex::block::CompressTable> = std::cell::RefCell::new(lz4_flex::block::CompressTable::large());
    }
    match codec {
        "zstd" => ZSTD.with_borrow_mut(|zstd| {
            if zstd.is_none() {
                *zstd = Some(zstd::bulk::Compressor::new(1).map_err(text)?);
            }
            let zstd = zstd.as_mut().ok_or("no compressor")?;
            zstd.compress_to_buffer(chunk, out).map_err(text)
        }),
        "lz4" => LZ4.with_borrow_mut(|table| {
            lz4_flex::block::compress_into_with_table(chunk, out, table).map_err(text)
        }),
        _ => {
            out[..chunk.len()].copy_from_slice(chunk);
            Ok(chunk.len())
        }
    }
}

fn shuffled(chunk: &[u8]) -> Vec<u8> {
    (0..4)
        .flat_map(|b| chunk[b..].iter().step_by(4).copied())
        .collect()
}

/// Seconds to copy `from` to `to` in the caller's thread pool.
pub fn memcpy(from: &[f32], to: &mut [f32]) -> Outcome<f64> {
    const PIECE: usize = 1 << 20;
    Ok(timed(|| {
        to.par_chunks_mut(PIECE)
            .zip(from.par_chunks(PIECE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    })?
    .0)
}

/// Seconds to read a file into touched memory with positioned reads, in the caller's thread pool.
pub fn pread(path: &Path, to: &mut [f32]) -> Outcome<f64> {
    use std::os::unix::fs::FileExt;
    const PIECE: usize = 1 << 20;
    let file = std::fs::File::open(path)?;
    let len = usize::try_from(file.metadata()?.len())?.min(size_of_val(to));
    Ok(timed(|| {
        cast_slice_mut::<_, u8>(to)[..len]
            .par_chunks_mut(PIECE)
            .enumerate()
            .try_for_each(|(i, piece)| file.read_exact_at(piece, (i * PIECE) as u64))
            .map_err(Into::into)
    })?
    .0)
}

/// Seconds to write bytes into a new file with positioned writes, in the caller's thread pool.
pub fn pwrite(path: &Path, from: &[f32]) -> Outcome<f64> {
    use std::os::unix::fs::FileExt;
    const PIECE: usize = 1 << 20;
    let _ = std::fs::remove_file(path);
    let seconds = timed(|| {
        let file = std::fs::File::create(path)?;
        cast_slice::<_, u8>(from)
            .par_chunks(PIECE)
            .enumerate()
            .try_for_each(|(i, piece)| file.write_all_at(piece, (i * PIECE) as u64))?;
        Ok(())
    })?
    .0;
    std::fs::remove_file(path)?;
    Ok(seconds)
}
