//! Decoded chunks that are kept: how many decodes that saves, what it never costs, and counters that are exact.

use std::collections::{BTreeMap, BTreeSet};

use crate::heap::allocations_of;
use crate::medium::{fresh, fresh_with, held_exact, held_with};
use orthant::{
    Array, ArraySpec, ChunkState, Codec, Container, Domain, OpenOptions, ReadPath, ReadVia,
    Receipt, Region, region,
};

/// The bytes of a container with one array, whose cells count up from 1.
fn container(spec: ArraySpec<f32>) -> Vec<u8> {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = w.create_array("a", spec).unwrap();
    let n = usize::try_from(a.domain().unwrap().element_count().unwrap()).unwrap();
    let cells: Vec<f32> = (0..n).map(|i| (i % 65_536) as f32 + 1.0).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    w.commit().unwrap();
    c.to_bytes().unwrap()
}

fn open(bytes: &[u8], cache: u64) -> (Container, Array<f32>) {
    let c = held_with(&OpenOptions::new().cache_bytes(cache), bytes.to_vec()).unwrap();
    let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
    (c, a)
}

/// Row 6 at an eighth of each length: slabs of one row, 512 chunks.
#[test]
fn row_slabs_decode_each_chunk_once_with_a_cache_and_once_a_slab_without() {
    let bytes = container(ArraySpec::<f32>::new(region![0..64, 0..64, 0..64]).chunks([8, 8, 8]));
    let pass = |cache: u64| {
        let (c, a) = open(&bytes, cache);
        let mut decoded = 0;
        for z in 0..64 {
            let (cells, receipt) = a.read_with_receipt(region![z, .., ..]).unwrap();
            assert_eq!(
                cells[[5, 6]],
                ((z * 4096 + 5 * 64 + 6) % 65_536) as f32 + 1.0
            );
            assert_eq!(receipt.chunks_touched, 64);
            decoded += receipt.chunks_decoded;
            let now = c.cache_statistics();
            assert!(now.bytes <= now.bytes_max);
        }
        (decoded, c.cache_statistics())
    };
    // The chunks of one slab are 64 * 2 KiB.
    assert_eq!(pass(64 * (2048 + 200)).0, 512);
    let (decoded, statistics) = pass(0);
    assert_eq!((decoded, statistics.entries), (64 * 64, 0));
    let (decoded, statistics) = pass(256 << 20);
    assert_eq!(decoded, 512);
    assert_eq!(statistics.entries, 512);
    assert_eq!(statistics.hits, 64 * 64 - 512);
}

/// Row 6 whole: `cargo test --release --test spec -- --ignored --nocapture slabs_of_a_cube`
#[test]
#[ignore = "512 MiB, a minute: cargo test --release --test spec -- --ignored --nocapture slabs_of_a_cube"]
fn slabs_of_a_cube_of_512_decode_512_chunks_with_the_default_cache() {
    let (_folder, path) = crate::support::scratch("a.orth");
    let cell = |z: i64, y: i64, x: i64| ((z * 31 + y * 7 + x) % 4096) as f32 + 1.0;
    {
        let c = Container::create(&path).unwrap();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<f32>::new(region![0..512, 0..512, 0..512]).chunks([64, 64, 64]);
        let a = w.create_array("a", spec).unwrap();
        for lo in (0..512).step_by(64) {
            let cells: Vec<f32> = (lo..lo + 64)
                .flat_map(|z| (0..512).flat_map(move |y| (0..512).map(move |x| cell(z, y, x))))
                .collect();
            a.write_slice(region![lo..lo + 64, .., ..], &cells).unwrap();
        }
        w.commit().unwrap();
    }
    let chunk = 1 << 20;
    for (cache, want) in [(None, 512), (Some(0), 32_768)] {
        let options = OpenOptions::new().read_only(true);
        let options = cache.map_or(options.clone(), |bytes| options.cache_bytes(bytes));
        let c = options.open(&path).unwrap();
        let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
        let (mut decoded, mut most) = (0, 0);
        let mut slab = vec![0_f32; 512 * 512];
        for z in 0..512 {
            let receipt = a.read_into(region![z, .., ..], &mut slab).unwrap();
            assert_eq!(slab[5 * 512 + 6], cell(z, 5, 6));
            decoded += receipt.chunks_decoded;
            most = most.max(c.cache_statistics().bytes);
        }
        println!("cache {cache:?}: {decoded} decodes, at most {most} bytes held");
        assert_eq!(decoded, want);
        assert!(most <= c.cache_statistics().bytes_max + chunk);
        assert!(cache == Some(0) || c.cache_statistics().bytes_max == 256 << 20);
    }
}

/// C111: f32 (2000,2000) in chunks of (500,500).
#[test]
fn c111_a_cache_smaller_than_the_working_set_costs_decodes_and_nothing_else() {
    let bytes = container(
        ArraySpec::<f32>::new(region![0..2000, 0..2000])
            .chunks([500, 500])
            .codecs([Codec::zstd(1)]),
    );
    let pass = |cache: u64, rows: bool, step: usize| {
        let (c, a) = open(&bytes, cache);
        let mut decoded = 0;
        for i in (0..2000).step_by(step) {
            let line = if rows { region![i, ..] } else { region![.., i] };
            let (cells, receipt) = a.read_with_receipt(line).unwrap();
            let at = if rows { i * 2000 + 7 } else { 7 * 2000 + i };
            assert_eq!(cells[[7]], (at % 65_536) as f32 + 1.0);
            decoded += receipt.chunks_decoded;
        }
        let now = c.cache_statistics();
        assert!(now.bytes <= now.bytes_max, "{now:?}");
        (decoded, now)
    };
    let default = 256 << 20;
    assert_eq!(pass(default, true, 1).0, 16);
    assert_eq!(pass(default, false, 1).0, 16);
    // Room for one chunk: each line decodes its four again, and the statistics say so.
    let (decoded, now) = pass(1_000_000 + 200, true, 50);
    assert!((4 * 38..=4 * 40).contains(&decoded), "{decoded}");
    assert_eq!((now.entries, now.evicted), (1, decoded - 1));
    assert_eq!(pass(0, true, 50).0, 4 * 40);
    // What reads every chunk once whatever the cache: a whole read.
    let (_, a) = open(&bytes, 0);
    let (_, receipt) = a.read_with_receipt(Region::all()).unwrap();
    assert_eq!(receipt.chunks_decoded, 16);
}

/// Row 4, of which almost all is absent: what is fetched and kept does not depend on the shard's length.
#[test]
fn one_cell_of_a_huge_shard_costs_its_index_and_one_inner_chunk() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![0..1 << 30])
        .chunks([1 << 16])
        .shards([1 << 30])
        .codecs([Codec::bytes_little_endian()]);
    let a = w.create_array("a", spec).unwrap();
    let noise: Vec<u8> = (0..1_u32 << 16).map(|i| ((i * i) >> 5) as u8 | 1).collect();
    for at in [0, 5_000, 16_383] {
        let lo = at << 16;
        let receipt = a.write_slice(region![lo..lo + (1 << 16)], &noise).unwrap();
        assert_eq!((receipt.inner_encoded, receipt.inner_decoded), (1, 0));
    }
    w.commit().unwrap();
    let a = c.snapshot().unwrap().array::<u8>("a").unwrap();
    let index = 16_384 * 16 + 4;
    let (cells, receipt) = a.read_with_receipt(region![(5_000 << 16) + 77]).unwrap();
    assert_eq!(cells[[]], noise[77]);
    assert_eq!(receipt.bytes_fetched, index + (1 << 16) + 4);
    assert_eq!(
        (receipt.inner_decoded, receipt.path),
        (1, ReadPath::Partial)
    );
    let (cells, receipt) = a.read_with_receipt(region![(16_383 << 16) + 1]).unwrap();
    assert_eq!(cells[[]], noise[1]);
    assert_eq!(receipt.bytes_fetched, (1 << 16) + 4);
    let (cells, receipt) = a.read_with_receipt(region![12_345 << 16]).unwrap();
    assert_eq!((cells[[]], receipt.bytes_fetched), (0, 0));
}

/// One cell of a shard of 16,384 inner chunks of 64 KiB, in files that have not been read yet: what is fetched, and by how
/// much memory rises meanwhile.
fn one_cell_costs_index_and_inner_chunk(path: &std::path::Path, cells: &[(i64, u8)]) {
    let (index, inner) = (16_384 * 16 + 4, (1 << 16) + 4);
    for via in [ReadVia::Mmap, ReadVia::Pread] {
        for cache in [0, 256 << 20] {
            let options = OpenOptions::new().via(via).read_only(true);
            let c = options.cache_bytes(cache).open(path).unwrap();
            let a = c.snapshot().unwrap().array::<u8>("a").unwrap();
            // Documents and index nodes are no part of it.
            a.chunks().unwrap();
            for (i, &(at, want)) in cells.iter().enumerate() {
                let mut cell = [0];
                let (receipt, peak) =
                    crate::heap::peak_of(|| a.read_into(region![at], &mut cell).unwrap());
                assert_eq!(cell, [want], "{at}");
                let first = if i == 0 { index } else { 0 };
                assert!(receipt.bytes_fetched <= first + inner, "{receipt:?}");
                assert_eq!(receipt.path, ReadPath::Partial);
                let peak = peak as u64;
                println!(
                    "cell {at} by {via:?}: {} bytes, peak {peak}",
                    receipt.bytes_fetched
                );
                assert!(peak <= first + (1 << 20), "{peak} bytes by {via:?}");
            }
        }
    }
}

/// Row 4 with four of the shard's inner chunks there, so that the file is small.
#[test]
fn one_cell_of_a_huge_shard_takes_a_mebibyte_above_its_index() {
    let (_folder, path) = crate::support::scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![0..1 << 30])
        .chunks([1 << 16])
        .shards([1 << 30])
        .codecs([Codec::bytes_little_endian()]);
    let a = w.create_array("a", spec).unwrap();
    let noise: Vec<u8> = (0..1_u32 << 16).map(|i| ((i * i) >> 5) as u8 | 1).collect();
    for at in [0, 5_000, 5_001, 16_383] {
        let lo = at << 16;
        a.write_slice(region![lo..lo + (1 << 16)], &noise).unwrap();
    }
    w.commit().unwrap();
    let cells = [
        ((5_000 << 16) + 77, noise[77]),
        ((16_383 << 16) + 1, noise[1]),
        (12_345 << 16, 0),
    ];
    one_cell_costs_index_and_inner_chunk(&path, &cells);
}

/// Row 4 whole: `cargo test --release --test spec -- --ignored --nocapture whole_gibibyte`
#[test]
#[ignore = "1 GiB: cargo test --release --test spec -- --ignored --nocapture whole_gibibyte"]
fn one_cell_of_a_whole_gibibyte_in_one_shard_takes_a_mebibyte_above_its_index() {
    let (_folder, path) = crate::support::scratch("a.orth");
    let cell = |at: u32| (at ^ (at >> 11) ^ (at >> 17)) as u8 | 1;
    {
        let c = Container::create(&path).unwrap();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<u8>::new(region![0..1 << 30])
            .chunks([1 << 16])
            .shards([1 << 30])
            .codecs([Codec::bytes_little_endian()]);
        let a = w.create_array("a", spec).unwrap();
        let cells: Vec<u8> = (0..1 << 30).map(cell).collect();
        a.write_slice(Region::all(), &cells).unwrap();
        w.commit().unwrap();
    }
    let cells = [77, 5_000 << 16, (1 << 30) - 1].map(|at: u32| (i64::from(at), cell(at)));
    one_cell_costs_index_and_inner_chunk(&path, &cells);
}

/// What a read should cost, from the stored extents and the shards' own indexes.
struct Model {
    a: Array<f32>,
    stored: BTreeMap<Vec<i64>, Stored>,
    /// Shards whose index is in memory, raw chunks that were verified.
    seen: BTreeSet<Vec<i64>>,
    raw: bool,
}

struct Stored {
    len: u64,
    /// Offset and length of each inner chunk; none without shards.
    inner: Option<Vec<(u64, u64)>>,
}

impl Model {
    fn new(a: Array<f32>, raw: bool) -> Self {
        let sharded = a.shard_shape().is_some();
        let stored = a.chunks().unwrap().into_iter().map(|chunk| {
            let ChunkState::Stored { len, .. } = chunk.state else {
                panic!("plain writes store payloads");
            };
            let inner = sharded.then(|| {
                let bytes = a.encoded_chunk(&chunk.coord).unwrap().unwrap();
                let count: usize = std::iter::zip(a.shard_shape().unwrap(), a.chunk_shape())
                    .map(|(s, c)| usize::try_from(s / c).unwrap())
                    .product();
                let index = &bytes[bytes.len() - count * 16 - 4..];
                let word = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap());
                let entries = index[..count * 16].chunks(16);
                entries.map(|e| (word(&e[..8]), word(&e[8..]))).collect()
            });
            (chunk.coord, Stored { len, inner })
        });
        Self {
            stored: stored.collect(),
            seen: BTreeSet::new(),
            a,
            raw,
        }
    }

    fn cost(&mut self, lo: [i64; 2], hi: [i64; 2]) -> Receipt {
        let chunk = self
            .a
            .chunk_shape()
            .iter()
            .map(|n| n.cast_signed())
            .collect::<Vec<_>>();
        let shard = self.a.shard_shape().map_or_else(
            || chunk.clone(),
            |s| s.iter().map(|n| n.cast_signed()).collect(),
        );
        let mut want = Receipt::default();
        want.bytes_wanted = ((hi[0] - lo[0]) * (hi[1] - lo[1]) * 4).cast_unsigned();
        let range =
            |axis: usize, len: i64| lo[axis].div_euclid(len)..(hi[axis] - 1).div_euclid(len) + 1;
        for y in range(0, shard[0]) {
            for x in range(1, shard[1]) {
                want.chunks_touched += 1;
                let Some(stored) = self.stored.get(&vec![y, x]) else {
                    want.chunks_absent += 1;
                    continue;
                };
                let Some(inner) = &stored.inner else {
                    want.chunks_decoded += 1;
                    want.bytes_decoded += (shard[0] * shard[1] * 4).cast_unsigned();
                    want.bytes_fetched += stored.len;
                    if self.raw {
                        want.path = ReadPath::Rows;
                        let (ylo, yhi) = (lo[0].max(y * shard[0]), hi[0].min((y + 1) * shard[0]));
                        let (xlo, xhi) = (lo[1].max(x * shard[1]), hi[1].min((x + 1) * shard[1]));
                        let first = (ylo - y * shard[0]) * shard[1] + xlo - x * shard[1];
                        let last = (yhi - 1 - y * shard[0]) * shard[1] + xhi - 1 - x * shard[1];
                        let span = ((last - first + 1) * 4).cast_unsigned();
                        if span < stored.len && !self.seen.insert(vec![y, x]) {
                            want.bytes_fetched -= stored.len - span;
                        }
                    }
                    continue;
                };
                let per = [shard[0] / chunk[0], shard[1] / chunk[1]];
                let mut asked = 0;
                let mut found = Vec::new();
                for iy in range(0, chunk[0]).filter(|i| i.div_euclid(per[0]) == y) {
                    for ix in range(1, chunk[1]).filter(|i| i.div_euclid(per[1]) == x) {
                        asked += 1;
                        let number = iy.rem_euclid(per[0]) * per[1] + ix.rem_euclid(per[1]);
                        let entry = inner[usize::try_from(number).unwrap()];
                        if entry.0 != u64::MAX {
                            found.push(entry);
                        }
                    }
                }
                let decoded = found.len() as u64;
                want.inner_decoded += decoded;
                want.bytes_decoded += decoded * (chunk[0] * chunk[1] * 4).cast_unsigned();
                want.chunks_decoded += u64::from(decoded > 0);
                if asked == inner.len() {
                    want.bytes_fetched += stored.len;
                    want.reason.get_or_insert("full_shard");
                    continue;
                }
                want.path = ReadPath::Partial;
                want.bytes_fetched += found.iter().map(|e| e.1).sum::<u64>();
                if self.seen.insert(vec![y, x]) {
                    want.bytes_fetched += inner.len() as u64 * 16 + 4;
                }
            }
        }
        want
    }
}

/// Row 9: 10,000 random reads over the matrix of codecs and shards.
#[test]
fn counters_of_random_reads_equal_a_model() {
    let mut state = 7_u64;
    let mut random = move |n: i64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 33) % n.cast_unsigned()).cast_signed()
    };
    let lists = ["raw", "zstd:1", "shuffle,lz4", "zlib:1,crc32c", "bytes:big"];
    for (i, list) in lists.iter().enumerate() {
        for shards in [false, true] {
            let c = fresh_with(&OpenOptions::new().cache_bytes(0));
            let w = c.writer().unwrap();
            let spec = ArraySpec::<f32>::new(region![-30..50, -20..44])
                .origin([3, -5])
                .codecs(Codec::list(list).unwrap());
            let spec = if shards {
                spec.chunks([4, 5]).shards([16, 20])
            } else {
                spec.chunks([8, 10])
            };
            let a = w.create_array("a", spec).unwrap();
            // Some chunks and inner chunks stay absent.
            for _ in 0..60 {
                let (y, x) = (random(72) - 30, random(56) - 20);
                let cells = [y as f32 + 0.5; 48];
                a.write_slice(region![y..y + 8, x..x + 6], &cells).unwrap();
            }
            w.commit().unwrap();
            let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
            let whole = a.read_vec(Region::all()).unwrap();
            let c = held_exact(&OpenOptions::new().cache_bytes(0), c.to_bytes().unwrap());
            let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
            let mut model = Model::new(a, i == 0 && !shards);
            for n in 0..1000 {
                let (y, x) = (random(80) - 30, random(64) - 20);
                let (y1, x1) = (y + 1 + random(50 - y), x + 1 + random(44 - x));
                let region = Region::from(Domain::new([y..y1, x..x1]).unwrap());
                // Grids begin at the origin.
                let mut want = model.cost([y - 3, x + 5], [y1 - 3, x1 + 5]);
                let plan = model.a.explain(&region).unwrap();
                let (cells, got) = model.a.read_with_receipt(&region).unwrap();
                if want.path == ReadPath::Whole && want.chunks_decoded == 0 {
                    want.reason = got.reason;
                }
                assert_eq!(got, want, "{list} {shards} read {n} of {region}");
                assert_eq!(plan, got, "{list} {shards} read {n} of {region}");
                let at = |y: i64, x: i64| whole[usize::try_from((y + 30) * 64 + x + 20).unwrap()];
                assert_eq!(cells.first(), Some(&at(y, x)));
                assert_eq!(cells.last(), Some(&at(y1 - 1, x1 - 1)));
            }
        }
    }
}

/// What a caller reads over and over, at full speed: chunks without codecs, kept chunks, and kept inner chunks of shards.
#[test]
fn a_warm_small_read_asks_for_no_memory() {
    let cube = || ArraySpec::<f32>::new(region![-20..44, 0..64, 0..64]).chunks([16, 16, 16]);
    let raw = cube().codecs(Codec::raw_profile());
    let sharded = cube().shards([32, 32, 32]);
    for (name, spec) in [("raw", raw), ("kept", cube()), ("inner", sharded)] {
        let bytes = container(spec);
        let (_c, a) = open(&bytes, 256 << 20);
        let mut cell = [0.0_f32];
        let mut row = [0.0_f32; 12];
        for warm in [false, true] {
            for z in -20..44 {
                let y = (z * 7) & 63;
                let (receipt, times) = allocations_of(|| {
                    a.read_into(region![z, y, 6], &mut cell).unwrap();
                    a.read_into(region![z, y, 3..15], &mut row).unwrap()
                });
                assert_eq!(receipt.chunks_touched, 1);
                assert!(!warm || times == 0, "{name}: {times} allocations at {z}");
                assert_eq!(cell[0], row[3]);
            }
        }
    }
}
