//! Single elements out of shards: beside the bare decode of the inner chunk they lie in, and beside zarrs.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin points [-- --check]`
//!
//! f32, 256^3, in shards of 128^3 with inner chunks of 16^3 (bytes, zstd level 3, crc32c). zarrs reads the very payloads that
//! orthant has stored, each a file of a Zarr v3 folder. Points are random; each stands in another inner chunk than the one
//! before. Rounds alternate between all ways of reading; a figure is the lower quartile of the rounds, in time that the thread
//! has run, so that what else the machine does counts for little and for all alike. With `--check`, the bounds of the comparison are the exit code.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use orthant::{Array, ArraySpec, Codec, Container, OpenOptions, ReadVia, Region, region};
use zarrs::array::{
    ArrayShardedReadableExt, ArrayShardedReadableExtCache, ArraySubset, CodecOptions,
};
use zarrs::filesystem::FilesystemStore;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SIDE: i64 = 256;
const SHARD: usize = 128;
const INNER: usize = 16;
const ROUNDS: usize = 60;
const POINTS: usize = 400;
const COLD: usize = 200;

/// At most this many times the bare decode, index warm.
const BARE_MAX: f64 = 1.35;
/// At least this many times as fast as zarrs.
const ZARRS_MIN: f64 = 3.0;

fn main() -> Outcome<ExitCode> {
    let mut holds = true;
    for (name, field) in FIELDS {
        let (over, gain) = compare(name, field)?;
        // Both run the same decoder: where it takes most of the time, nobody can be three times as fast as another.
        holds &= over <= BARE_MAX && (gain >= ZARRS_MIN || name != "counting");
    }
    let asked = std::env::args().any(|a| a == "--check");
    Ok(if holds || !asked {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One comparison: time over that of the bare decode, and zarrs' time over it.
fn compare(name: &str, field: Field) -> Outcome<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("points.orth");
    make(&file, field)?;
    let (shards, share) = unpack(&file, &folder.path().join("points.zarr"))?;
    println!("{name}: stored in {share:.2} of the elements' bytes");

    let map = open(&file, "sharded", ReadVia::Mmap, 0)?;
    let pread = open(&file, "sharded", ReadVia::Pread, 0)?;
    let kept = open(&file, "sharded", ReadVia::Mmap, 256 << 20)?;
    let plain = open(&file, "plain", ReadVia::Mmap, 0)?;
    let store = Arc::new(FilesystemStore::new(folder.path().join("points.zarr"))?);
    let theirs = zarrs::array::Array::open(store, "/")?;
    let options = CodecOptions::default();
    let indexes = ArrayShardedReadableExtCache::new(&theirs);
    let mut bare = Bare::new()?;

    let mut ways: Vec<Way> = vec![
        Way::new("bare decode of the inner chunk", |p| {
            bare.element(&shards, p)
        }),
        Way::new("orthant, index warm", |p| element(&map.1, p)),
        Way::new("orthant by pread, index warm", |p| element(&pread.1, p)),
        Way::new("orthant, the same as plain chunks", |p| {
            element(&plain.1, p)
        }),
        Way::new("orthant, inner chunks kept too", |p| element(&kept.1, p)),
        Way::new("zarrs, index warm", |p| {
            let cell: Vec<f32> =
                theirs.retrieve_array_subset_sharded_opt(&indexes, &subset(p), &options)?;
            Ok(cell[0])
        }),
        Way::new("zarrs, retrieve_array_subset", |p| {
            let cell: Vec<f32> = theirs.retrieve_array_subset(&subset(p))?;
            Ok(cell[0])
        }),
    ];
    let mut found = [0.0_f32; POINTS];
    for round in 0..=ROUNDS {
        let points = points(round);
        let want: Vec<f32> = points.iter().map(|&p| field(p)).collect();
        // Each goes first in turn: who does, fetches the points' memory for all.
        let first = round % ways.len();
        ways.rotate_left(first);
        for way in &mut ways {
            let began = ran();
            for (&p, found) in points.iter().zip(&mut found) {
                *found = (way.read)(p)?;
            }
            let took = ran() - began;
            // The first round warms what can be warm.
            if round > 0 {
                way.rounds.push(took / POINTS as u32);
            }
            if found[..] != want {
                return Err(format!("{}: other values", way.name).into());
            }
        }
        ways.rotate_right(first);
    }
    let warm: Vec<(&str, f64)> = ways.iter_mut().map(|w| (w.name, w.typical())).collect();
    drop(ways);
    let cold = [
        ("orthant, index cold", cold_orthant(&file)?),
        ("zarrs, index cold", cold_zarrs(&theirs)?),
    ];
    Ok(report(&warm, &cold))
}

/// Prints the table and gives the two figures that are bounded.
fn report(warm: &[(&str, f64)], cold: &[(&str, f64)]) -> (f64, f64) {
    let of = |name: &str| {
        let found = warm.iter().chain(cold).find(|w| w.0 == name);
        found.map_or(f64::NAN, |w| w.1)
    };
    let bare = of("bare decode of the inner chunk");
    for (name, time) in warm.iter().chain(cold) {
        println!("  {name:<34} {time:>8.2} us  {:>7.2} of bare", time / bare);
    }
    let over = of("orthant, index warm") / bare;
    let warm_gain = of("zarrs, index warm") / of("orthant, index warm");
    let cold_gain = of("zarrs, index cold") / of("orthant, index cold");
    println!(
        "  warm: {over:.2} of the bare decode (at most {BARE_MAX}), zarrs takes {warm_gain:.1} times as long (at least {ZARRS_MIN})"
    );
    println!("  cold: zarrs takes {cold_gain:.1} times as long");
    (over, warm_gain)
}

/// Time that this thread has run: on a busy machine the wall shows others' work too.
fn ran() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// One way to read an element.
struct Way<'a> {
    name: &'static str,
    read: Box<dyn FnMut([i64; 3]) -> Outcome<f32> + 'a>,
    rounds: Vec<Duration>,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, read: impl FnMut([i64; 3]) -> Outcome<f32> + 'a) -> Self {
        Self {
            name,
            read: Box::new(read),
            rounds: Vec::new(),
        }
    }

    /// Microseconds.
    fn typical(&mut self) -> f64 {
        lower_quartile(&mut self.rounds)
    }
}

fn lower_quartile(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 4].as_secs_f64() * 1e6
}

type Field = fn([i64; 3]) -> f32;

const FIELDS: [(&str, Field); 3] = [("smooth", smooth), ("counting", counting), ("noisy", noisy)];

/// A smooth field in steps of 1/64, as analyses are stored.
fn smooth([z, y, x]: [i64; 3]) -> f32 {
    let field = (z as f64 / 17.0).sin() + (y as f64 / 23.0).cos() + x as f64 / 41.0;
    ((field * 64.0).round() / 64.0 + 10.0) as f32
}

/// Whole numbers that ascend.
fn counting([z, y, x]: [i64; 3]) -> f32 {
    (z * 3 + y * 5 + x) as f32
}

/// The smooth field with six bits of noise below its steps.
fn noisy(p: [i64; 3]) -> f32 {
    let [z, y, x] = p;
    let mut noise = ((z * SIDE + y) * SIDE + x).wrapping_mul(0x1E37_79B9_7F4A_7C15);
    noise = (noise ^ (noise >> 29)).wrapping_mul(0x2545_F491_4F6C_DD1D);
    smooth(p) + ((noise >> 40) & 0x3F) as f32 / 4096.0
}

fn make(file: &Path, field: Field) -> Outcome<()> {
    let w = Container::create(file)?.writer()?;
    let (shard, inner) = (SHARD as u64, INNER as u64);
    let spec = || ArraySpec::<f32>::new(region![0..SIDE, 0..SIDE, 0..SIDE]).chunks([inner; 3]);
    let sharded = spec().shards([shard; 3]).codecs([Codec::zstd(3)]);
    let cells: Vec<f32> = (0..SIDE)
        .flat_map(|z| (0..SIDE).flat_map(move |y| (0..SIDE).map(move |x| field([z, y, x]))))
        .collect();
    w.create_array("sharded", sharded)?
        .write_slice(Region::all(), &cells)?;
    let plain = spec().codecs([Codec::zstd(3), Codec::crc32c()]);
    w.create_array("plain", plain)?
        .write_slice(Region::all(), &cells)?;
    w.commit()?;
    Ok(())
}

fn open(file: &Path, name: &str, via: ReadVia, cache: u64) -> Outcome<(Container, Array<f32>)> {
    let options = OpenOptions::new()
        .read_only(true)
        .via(via)
        .cache_bytes(cache);
    let container = options.open(file)?;
    let array = container.snapshot()?.array(name)?;
    Ok((container, array))
}

fn element(array: &Array<f32>, [z, y, x]: [i64; 3]) -> Outcome<f32> {
    let mut cell = [0.0];
    array.read_into(region![z, y, x], &mut cell)?;
    Ok(cell[0])
}

fn subset(p: [i64; 3]) -> ArraySubset {
    let p = p.map(|x| x as u64);
    ArraySubset::new_with_ranges(&p.map(|x| x..x + 1))
}

/// The stored payloads as a Zarr v3 folder and in memory, and their share of the elements' bytes.
fn unpack(file: &Path, folder: &Path) -> Outcome<(Vec<Vec<u8>>, f64)> {
    let (_container, a) = open(file, "sharded", ReadVia::Mmap, 0)?;
    let codecs: Vec<String> = a
        .codecs()
        .iter()
        .map(|c| {
            let configuration = orthant::Json::Object(c.configuration.clone());
            format!(r#"{{"name":"{}","configuration":{configuration}}}"#, c.name)
        })
        .collect();
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join("zarr.json"),
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[{SIDE},{SIDE},{SIDE}],"data_type":"float32","chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[{SHARD},{SHARD},{SHARD}]}}}},"chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"fill_value":0.0,"codecs":[{}]}}"#,
            codecs.join(",")
        ),
    )?;
    let mut shards = Vec::new();
    for chunk in a.chunks()? {
        let bytes = a
            .encoded_chunk(&chunk.coord)?
            .ok_or("a shard without a payload")?;
        let name: Vec<String> = chunk.coord.iter().map(ToString::to_string).collect();
        let path = folder.join("c").join(name.join("/"));
        std::fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        std::fs::write(path, &bytes)?;
        shards.push(bytes);
    }
    let raw = (SIDE * SIDE * SIDE * 4) as f64;
    let stored: usize = shards.iter().map(Vec::len).sum();
    Ok((shards, stored as f64 / raw))
}

/// What no reader can do without: the checksum of an inner chunk, and its decoding into memory that is there.
struct Bare {
    zstd: zstd::bulk::Decompressor<'static>,
    decoded: Vec<u8>,
}

impl Bare {
    fn new() -> Outcome<Self> {
        Ok(Self {
            zstd: zstd::bulk::Decompressor::new()?,
            decoded: vec![0; INNER * INNER * INNER * 4],
        })
    }

    fn element(&mut self, shards: &[Vec<u8>], p: [i64; 3]) -> Outcome<f32> {
        let p = p.map(|x| x as usize);
        let per_axis = SIDE as usize / SHARD;
        let fold = |n: usize, f: &dyn Fn(usize) -> usize| p.iter().fold(0, |a, &x| a * n + f(x));
        let shard = &shards[fold(per_axis, &|x| x / SHARD)];
        let number = fold(SHARD / INNER, &|x| x % SHARD / INNER);
        let count = (SHARD / INNER).pow(3);
        let entry = &shard[shard.len() - 4 - count * 16 + number * 16..][..16];
        let word = |b: &[u8]| Ok::<_, Box<dyn Error>>(u64::from_le_bytes(b.try_into()?) as usize);
        let (offset, len) = (word(&entry[..8])?, word(&entry[8..])?);
        let (encoded, sum) = shard[offset..offset + len].split_at(len - 4);
        if crc32c::crc32c(encoded).to_le_bytes() != sum {
            return Err("a wrong checksum".into());
        }
        self.zstd.decompress_to_buffer(encoded, &mut self.decoded)?;
        let at = fold(INNER, &|x| x % INNER) * 4;
        Ok(f32::from_le_bytes(self.decoded[at..at + 4].try_into()?))
    }
}

fn cold_orthant(file: &Path) -> Outcome<f64> {
    let mut times = Vec::new();
    for &p in points(1).iter().take(COLD) {
        let (_container, a) = open(file, "sharded", ReadVia::Mmap, 0)?;
        // The nodes of the container's own index are warm, as zarrs has its metadata.
        a.chunks()?;
        let began = ran();
        black_box(element(&a, p)?);
        times.push(ran() - began);
    }
    Ok(lower_quartile(&mut times))
}

fn cold_zarrs(array: &zarrs::array::Array<FilesystemStore>) -> Outcome<f64> {
    let mut times = Vec::new();
    for &p in points(1).iter().take(COLD) {
        let indexes = ArrayShardedReadableExtCache::new(array);
        let options = CodecOptions::default();
        let began = ran();
        let cell: Vec<f32> =
            array.retrieve_array_subset_sharded_opt(&indexes, &subset(p), &options)?;
        black_box(cell);
        times.push(ran() - began);
    }
    Ok(lower_quartile(&mut times))
}

/// Random points, the same in every run.
fn points(round: usize) -> Vec<[i64; 3]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ ((round as u64) << 32);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as i64 % SIDE
    };
    (0..POINTS).map(|_| [next(), next(), next()]).collect()
}
