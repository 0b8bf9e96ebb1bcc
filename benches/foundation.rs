//! The founding numbers, printed once each: a million chunks, many arrays, and a cube against the codecs alone.
//!
//! `cargo bench --bench foundation`, or parts of it: `-- index edges chunks arrays cube`. Needs about 1.5 GiB of memory
//! and 700 MiB in the temporary folder. Every figure is a median of the rounds that the line names; compare figures of
//! one run only. Must not measure through anything but the public surface, except where a line says "index alone".
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::integer_division,
    reason = "a program that prints figures for people"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use orthant::testing::{Raw, RawPipeline};
use orthant::{ArraySpec, Codec, Container, DataType, region};
use rayon::prelude::*;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
type Part = fn(&Path) -> Outcome<()>;

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let parts: [(&str, Part); 5] = [
        ("index", |_| index_alone()),
        ("edges", |_| edges()),
        ("chunks", million_chunks),
        ("arrays", many_arrays),
        ("cube", cube),
    ];
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            part(folder.path())?;
        }
    }
    Ok(())
}

/// 10^6 entries, 0..100 on three axes, without a payload worth the name and without a disk.
fn index_alone() -> Outcome<()> {
    let raw = Raw::in_memory()?;
    let writer = raw.writer()?;
    let began = Instant::now();
    for x in 0..100 {
        for y in 0..100 {
            for z in 0..100 {
                writer.put_chunk(1, &[x, y, z], &[1; 8])?;
            }
        }
    }
    let staged = began.elapsed();
    writer.commit()?;
    line("index alone: stage 10^6 chunks", seconds(staged));
    line(
        "index alone: stage and build, no sync",
        seconds(began.elapsed()),
    );
    let (_, index) = raw.live_counted()?;
    line(
        "index alone: bytes a chunk",
        format!("{:.2}", index as f64 / 1e6),
    );

    // A map in memory that knows each chunk's place too: what the processor's caches cost any such lookup.
    let mut map = BTreeMap::new();
    for x in 0..100 {
        for y in 0..100 {
            for z in 0..100 {
                map.insert([x, y, z], [0_u64; 3]);
            }
        }
    }
    let snapshot = raw.snapshot()?;
    let mut random = Random(7);
    let (mut ours, mut maps) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let places: Vec<[i64; 3]> = (0..200_000)
            .map(|_| [random.below(100), random.below(100), random.below(100)])
            .collect();
        let each = |began: Instant| began.elapsed().as_nanos() as f64 / places.len() as f64;
        let began = Instant::now();
        for place in &places {
            assert!(black_box(snapshot.has_chunk(1, place)?));
        }
        ours.push(each(began));
        let began = Instant::now();
        for place in &places {
            assert!(black_box(map.contains_key(place)));
        }
        maps.push(each(began));
    }
    let (ours, maps) = (median(ours), median(maps));
    line(
        "index alone: warm random lookup (9 rounds of 200,000)",
        format!("{ours:.0} ns"),
    );
    line("a BTreeMap of the same, in memory", format!("{maps:.0} ns"));
    line(
        "index alone: lookup over the BTreeMap's",
        format!("{:.2}", ours / maps),
    );
    Ok(())
}

/// A row before and a row after 1000 x 1000 f32 in 100 x 100 chunks, a commit each, taken in turn.
fn edges() -> Outcome<()> {
    let row = ndarray::Array2::from_elem((1, 1000), 2.5_f32);
    let containers = [Container::in_memory()?, Container::in_memory()?];
    let mut sides = Vec::new();
    for container in &containers {
        let writer = container.writer()?;
        let spec = ArraySpec::<f32>::new(region![0..1000, 0..1000])
            .chunks([100, 100])
            .codecs(Codec::raw_profile());
        let array = writer.create_array("square", spec)?;
        array.write_slice(region![.., ..], &vec![1.5; 1_000_000])?;
        writer.commit()?;
        sides.push((writer, array, Vec::new()));
    }
    for _ in 0..200 {
        for (side, (writer, array, times)) in sides.iter_mut().enumerate() {
            let began = Instant::now();
            if side == 0 {
                array.prepend(0, row.view())?;
            } else {
                array.append(0, row.view())?;
            }
            writer.commit()?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    let [prepend, append] = [0, 1].map(|side| median(sides[side].2.clone()));
    line(
        "edges: prepend a row and commit (200)",
        format!("{prepend:.0} us"),
    );
    line(
        "edges: append a row and commit (200)",
        format!("{append:.0} us"),
    );
    line(
        "edges: prepend over append",
        format!("{:.2}", prepend / append),
    );
    Ok(())
}

/// The same million through an array in a file, each chunk one element.
fn million_chunks(folder: &Path) -> Outcome<()> {
    let path = folder.join("million.orth");
    let container = Container::create(&path)?;
    let writer = container.writer()?;
    let spec = ArraySpec::<u64>::new(region![0..100, 0..100, 0..100])
        .chunks([1, 1, 1])
        .codecs(Codec::raw_profile());
    let array = writer.create_array("a", spec)?;
    let elements: Vec<u64> = (1..=1_000_000).collect();
    let began = Instant::now();
    array.write_slice(region![.., .., ..], &elements)?;
    line(
        "array: write 10^6 chunks of one element",
        seconds(began.elapsed()),
    );
    let began = Instant::now();
    writer.commit()?;
    line("array: commit them, two syncs", seconds(began.elapsed()));
    drop((array, writer, container));

    let mut rounds = Vec::new();
    let mut out = [0_u64];
    for i in 0..200_i64 {
        let began = Instant::now();
        let container = Container::open(&path)?;
        let array = container.snapshot()?.array::<u64>("a")?;
        array.read_into(region![i % 100, 50, 50], &mut out)?;
        rounds.push(began.elapsed().as_nanos() as f64 / 1e3);
        assert_eq!(out[0], (i % 100) as u64 * 10_000 + 5051);
    }
    line(
        "array: open and read the first chunk, cached (200)",
        format!("{:.1} us", median(rounds)),
    );

    let array = Container::open(&path)?.snapshot()?.array::<u64>("a")?;
    let mut random = Random(11);
    let mut rounds = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..20_000 {
            array.read_into(
                region![random.below(100), random.below(100), random.below(100)],
                &mut out,
            )?;
        }
        rounds.push(began.elapsed().as_nanos() as f64 / 20_000.0);
    }
    line(
        "array: warm read of one chunk, whole call (5 rounds of 20,000)",
        format!("{:.0} ns", median(rounds)),
    );

    let empty = folder.join("empty.orth");
    drop(Container::create(&empty)?);
    line(
        "empty container",
        format!("{} bytes", std::fs::metadata(&empty)?.len()),
    );
    Ok(())
}

fn many_arrays(folder: &Path) -> Outcome<()> {
    for (groups, each) in [(1, 100_000), (100, 100)] {
        let path = folder.join(format!("many-{groups}.orth"));
        let container = Container::create(&path)?;
        let writer = container.writer()?;
        for group in 0..groups {
            for i in 0..each {
                let spec = ArraySpec::<u8>::new(region![0..4])
                    .chunks([4])
                    .codecs(Codec::raw_profile());
                let array = writer.create_array(&format!("g{group}/a{i}"), spec)?;
                if i == 0 {
                    array.write_scalar(region![..], 3)?;
                }
            }
        }
        writer.commit()?;
        drop((writer, container));
        let (mut open, mut first, mut listed) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..11 {
            let began = Instant::now();
            let container = Container::open(&path)?;
            let snapshot = container.snapshot()?;
            open.push(began.elapsed().as_secs_f64() * 1e3);
            let read = snapshot.array::<u8>("g0/a0")?.read_vec(region![..])?;
            first.push(began.elapsed().as_secs_f64() * 1e3);
            assert_eq!(read, [3; 4]);
            if round < 3 {
                let began = Instant::now();
                let members = snapshot
                    .walk()?
                    .try_fold(0, |n, member| member.map(|_| n + 1))?;
                listed.push(began.elapsed().as_secs_f64());
                assert_eq!(members, groups * each + groups);
            }
        }
        let what = format!("{groups} x {each} arrays");
        line(
            &format!("{what}: open (11)"),
            format!("{:.3} ms", median(open)),
        );
        line(
            &format!("{what}: open and first array read (11)"),
            format!("{:.3} ms", median(first)),
        );
        line(
            &format!("{what}: list all (3)"),
            format!("{:.3} s", median(listed)),
        );
    }
    Ok(())
}

/// MiB/s of the cube's rounds, and milliseconds of its commits.
#[derive(Default)]
struct Rates {
    encode: Vec<f64>,
    write: Vec<f64>,
    commit_ms: Vec<f64>,
    decode: Vec<f64>,
    decode_hot: Vec<f64>,
    read: Vec<f64>,
}

impl Rates {
    fn print(&self) {
        let rate = |what, rates: &[f64]| {
            line(
                &format!("cube: {what} (5)"),
                format!("{:.0} MiB/s", median(rates.to_vec())),
            );
        };
        let share = |what, ours: &[f64], bare: &[f64]| {
            let shares = ours.iter().zip(bare).map(|(a, b)| 100.0 * a / b);
            line(
                &format!("cube: {what}"),
                format!("{:.0} %", median(shares.collect())),
            );
        };
        rate("codecs alone, encode", &self.encode);
        rate("write", &self.write);
        line(
            "cube: commit with both syncs (5)",
            format!("{:.0} ms", median(self.commit_ms.clone())),
        );
        rate("codecs alone, decode", &self.decode);
        rate("codecs alone, one hot buffer a thread", &self.decode_hot);
        rate("read", &self.read);
        share("write over codecs alone", &self.write, &self.encode);
        share("read over codecs alone", &self.read, &self.decode);
        share("read over one hot buffer", &self.read, &self.decode_hot);
    }
}

/// 256 MiB of f32 in chunks of 64^3, shuffle and zstd 1, two threads; the codecs alone in the same rounds.
fn cube(folder: &Path) -> Outcome<()> {
    const SHAPE: [usize; 3] = [256, 512, 512];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    let codecs = [Codec::shuffle(), Codec::zstd(1)];
    let cube = field(SHAPE);
    let chunks: Vec<Vec<u8>> = chunks_of(&cube, SHAPE);
    let pipeline = RawPipeline::new(&codecs, &DataType::Float32, &[64, 64, 64])?;
    let mib = (cube.len() * 4) as f64 / f64::from(1 << 20);
    let rate = |time: Duration| mib / time.as_secs_f64();
    let mut rates = Rates::default();
    // Touched before anything is timed: the first use of a page costs more than decoding it.
    let mut buffer = vec![1_f32; cube.len()];
    let mut decoded: Vec<Vec<u8>> = chunks.iter().map(|chunk| vec![1; chunk.len()]).collect();
    for round in 0..5 {
        let began = Instant::now();
        let encoded: Vec<Vec<u8>> = pool.install(|| {
            chunks
                .par_iter()
                .map(|chunk| pipeline.encode(chunk))
                .collect::<Result<_, _>>()
        })?;
        rates.encode.push(rate(began.elapsed()));

        let path = folder.join(format!("cube-{round}.orth"));
        let (wrote, committed) = write_cube(&path, &cube, &codecs, &pool)?;
        rates.write.push(rate(wrote));
        rates.commit_ms.push(committed.as_secs_f64() * 1e3);

        let began = Instant::now();
        pool.install(|| {
            encoded
                .par_iter()
                .zip(&mut decoded)
                .try_for_each(|(from, to)| pipeline.decode(from, to))
        })?;
        rates.decode.push(rate(began.elapsed()));
        assert!(decoded == chunks);
        let began = Instant::now();
        pool.install(|| {
            encoded.par_iter().try_for_each_init(
                || vec![0; chunks[0].len()],
                |to, from| pipeline.decode(from, to),
            )
        })?;
        rates.decode_hot.push(rate(began.elapsed()));

        let array = Container::open(&path)?.snapshot()?.array::<f32>("cube")?;
        let began = Instant::now();
        pool.install(|| array.read_into(region![.., .., ..], &mut buffer))?;
        rates.read.push(rate(began.elapsed()));
        assert!(buffer == cube);
        std::fs::remove_file(&path)?;
    }
    rates.print();
    Ok(())
}

/// Writes the cube into a new file; how long the write took, and the commit with its two syncs.
fn write_cube(
    path: &Path,
    cube: &[f32],
    codecs: &[Codec],
    pool: &rayon::ThreadPool,
) -> Outcome<(Duration, Duration)> {
    let container = Container::create(path)?;
    let writer = container.writer()?;
    let spec = ArraySpec::<f32>::new(region![0..256, 0..512, 0..512])
        .chunks([64, 64, 64])
        .codecs(codecs.to_vec());
    let array = writer.create_array("cube", spec)?;
    let began = Instant::now();
    pool.install(|| array.write_slice(region![.., .., ..], cube))?;
    let wrote = began.elapsed();
    let began = Instant::now();
    writer.commit()?;
    Ok((wrote, began.elapsed()))
}

/// A smooth field with noise in its low bits: compresses about as well as measured fields do.
fn field(shape: [usize; 3]) -> Vec<f32> {
    let mut random = Random(3);
    let mut cube = Vec::with_capacity(shape.iter().product());
    for t in 0..shape[0] {
        for y in 0..shape[1] {
            let base = 280.0 + (t as f32 * 0.05).sin() * 5.0 - y as f32 * 0.05;
            cube.extend(
                (0..shape[2])
                    .map(|x| base + (x as f32 * 0.02).cos() + random.below(1000) as f32 * 1e-4),
            );
        }
    }
    cube
}

/// The cube's chunks of 64^3, as the bytes a pipeline takes.
fn chunks_of(cube: &[f32], shape: [usize; 3]) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    for t in (0..shape[0]).step_by(64) {
        for y in (0..shape[1]).step_by(64) {
            for x in (0..shape[2]).step_by(64) {
                let mut chunk = Vec::with_capacity(64 * 64 * 64 * 4);
                for row in (t..t + 64)
                    .flat_map(|t| (y..y + 64).map(move |y| (t * shape[1] + y) * shape[2] + x))
                {
                    chunk.extend(
                        cube[row..row + 64]
                            .iter()
                            .flat_map(|element| element.to_le_bytes()),
                    );
                }
                chunks.push(chunk);
            }
        }
    }
    chunks
}

/// Fast, repeatable numbers; no more random than a benchmark needs (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((z ^ (z >> 31)) >> 1).unwrap_or(0) % end
    }
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

fn line(what: &str, figure: impl AsRef<str>) {
    println!("{what:<64} {:>14}", figure.as_ref());
}
