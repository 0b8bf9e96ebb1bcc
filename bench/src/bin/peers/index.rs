//! The index by itself: beside redb and beside a map in memory, from 10^4 to 10^7 chunks; and what an array makes of it.
//!
//! Keys are three coordinates, values an extent and its checksum, in all: 24 and 20 bytes in redb and in the map. Only
//! here something other than the public surface is used: `orthant::testing`, for chunks without an array.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use orthant::testing::Raw;
use orthant::{ArraySpec, Block, Codec, Container, region};
use redb::{Database, ReadableDatabase, TableDefinition};

use crate::data::Random;
use crate::report::{Section, median};
use crate::{Bench, Outcome};

const TABLE: TableDefinition<'_, &[u8; 24], &[u8; 20]> = TableDefinition::new("chunks");
/// Sides of the boxes of chunks.
const SIDES: [[i64; 3]; 4] = [
    [10, 10, 100],
    [10, 100, 100],
    [100, 100, 100],
    [100, 100, 1000],
];
const LOOKUPS: usize = 100_000;
const ROUNDS: usize = 5;

fn key(place: [i64; 3]) -> [u8; 24] {
    let mut key = [0; 24];
    for (to, c) in key.as_chunks_mut::<8>().0.iter_mut().zip(place) {
        *to = c.to_be_bytes();
    }
    key
}

fn places([x, y, z]: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..x).flat_map(move |x| (0..y).flat_map(move |y| (0..z).map(move |z| [x, y, z])))
}

/// Nanoseconds of lookups and of durable commits of one more chunk, and bytes an entry.
struct Sized {
    lookup: [Vec<f64>; 3],
    commit: [Vec<f64>; 2],
    bytes: [f64; 2],
}

pub fn sizes(bench: &mut Bench) -> Outcome<Section> {
    let mut section = Section {
        title: "The index from 10^4 to 10^7 chunks".to_owned(),
        about: format!(
            "Warm random lookups ({ROUNDS} rounds of {LOOKUPS}, nanoseconds), index bytes a chunk, and a commit of one more chunk with all its \
             syncs (50 in turn, microseconds; in /dev/shm, so of work, not of a disk)."
        ),
        head: [
            "chunks",
            "orthant",
            "redb",
            "`BTreeMap` in memory",
            "orthant over the map",
            "B a chunk",
            "redb's",
            "commit",
            "redb's",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Section::default()
    };
    let (mut worst, mut million) = (0.0_f64, None);
    for sides in SIDES {
        let n: i64 = sides.iter().product();
        let sized = sized(&bench.site.folder, sides)?;
        let [ours, redb, map] = [0, 1, 2].map(|i| median(&sized.lookup[i]));
        let [commit, their] = [0, 1].map(|i| median(&sized.commit[i]));
        worst = worst.max(ours / map);
        let [bytes, their_bytes] = sized.bytes;
        section.rows.push(vec![
            format!("10^{}", n.ilog10()),
            format!("{ours:.0}"),
            format!("{redb:.0}"),
            format!("{map:.0}"),
            format!("{:.2}", ours / map),
            format!("{bytes:.1}"),
            format!("{their_bytes:.1}"),
            format!("{commit:.0}"),
            format!("{their:.0}"),
        ]);
        if n == 1_000_000 {
            million = Some((ours / redb, bytes, commit / their));
        }
    }
    if let Some((lookup, bytes, commit)) = million {
        section.target(
            "8",
            "lookup in 10^6: at most half of redb's",
            format!("{lookup:.2}"),
            lookup <= 0.5,
        );
        section.target(
            "8",
            "at most 24 B an entry",
            format!("{bytes:.1}"),
            bytes <= 24.0,
        );
        section.target(
            "10",
            "commit of one chunk into 10^6: at most 2.5 times redb's",
            format!("{commit:.2}"),
            commit <= 2.5,
        );
    }
    section.target(
        "9",
        "lookup at each size: at most 2.5 times the map's",
        format!("{worst:.2} at most"),
        worst <= 2.5,
    );
    Ok(section)
}

fn sized(folder: &Path, sides: [i64; 3]) -> Outcome<Sized> {
    let n: i64 = sides.iter().product();
    let (ours_path, redb_path) = (folder.join("index.orth"), folder.join("index.redb"));
    let raw = Raw::create_at(&ours_path)?;
    let writer = raw.writer()?;
    let database = Database::create(&redb_path)?;
    let mut map = BTreeMap::new();
    let mut waiting = 0;
    let mut transaction = database.begin_write()?;
    for place in places(sides) {
        writer.put_chunk(1, &place, &[1; 8])?;
        transaction
            .open_table(TABLE)?
            .insert(&key(place), &[1; 20])?;
        map.insert(place, [1_u32; 5]);
        waiting += 1;
        if waiting % 1_000_000 == 0 {
            writer.commit()?;
            transaction.commit()?;
            transaction = database.begin_write()?;
        }
    }
    writer.commit()?;
    transaction.commit()?;
    let bytes =
        [raw.live_counted()?.1, std::fs::metadata(&redb_path)?.len()].map(|b| b as f64 / n as f64);
    let mut sized = Sized {
        lookup: Default::default(),
        commit: Default::default(),
        bytes,
    };
    let snapshot = raw.snapshot()?;
    let read = database.begin_read()?;
    let table = read.open_table(TABLE)?;
    let mut random = Random(7);
    for round in 0..=ROUNDS {
        let places: Vec<[i64; 3]> = (0..LOOKUPS)
            .map(|_| sides.map(|n| random.below(n as u64) as i64))
            .collect();
        let mut each = |which: usize, began: Instant| {
            let took = began.elapsed().as_nanos() as f64 / LOOKUPS as f64;
            sized.lookup[which].extend((round > 0).then_some(took));
        };
        let began = Instant::now();
        for place in &places {
            assert!(black_box(snapshot.has_chunk(1, place)?));
        }
        each(0, began);
        let began = Instant::now();
        for place in &places {
            assert!(black_box(table.get(&key(*place))?.is_some()));
        }
        each(1, began);
        let began = Instant::now();
        for place in &places {
            assert!(black_box(map.get(place).is_some()));
        }
        each(2, began);
    }
    for i in 0..50 {
        let place = [sides[0], i, 0];
        let began = Instant::now();
        writer.put_chunk(1, &place, &[1; 8])?;
        writer.commit()?;
        sized.commit[0].push(began.elapsed().as_nanos() as f64 / 1e3);
        let began = Instant::now();
        let transaction = database.begin_write()?;
        transaction
            .open_table(TABLE)?
            .insert(&key(place), &[1; 20])?;
        transaction.commit()?;
        sized.commit[1].push(began.elapsed().as_nanos() as f64 / 1e3);
    }
    drop((snapshot, table, read, writer, raw, database));
    std::fs::remove_file(ours_path)?;
    std::fs::remove_file(redb_path)?;
    Ok(sized)
}

/// What an array makes of a million chunks; rows at its ends; what is kept.
pub fn array(bench: &mut Bench) -> Outcome<Section> {
    let mut section = Section {
        title: "An array of 10^6 chunks, its edges, and what is kept".to_owned(),
        about: "100 x 100 x 100 chunks of one u64, in a file; medians. `prepend` and `append` are a row of 1,000 f32 and its commit on 1000 x 1000 in chunks \
                of 100 x 100, 200 in turn; zarr-python has to write such an array anew."
            .to_owned(),
        head: ["", "us"].map(str::to_owned).to_vec(),
        ..Section::default()
    };
    let path = bench.site.folder.join("million.orth");
    {
        let container = Container::create(&path)?;
        let writer = container.writer()?;
        let spec = ArraySpec::<u64>::new(region![0..100, 0..100, 0..100])
            .chunks([1, 1, 1])
            .codecs(Codec::raw_profile());
        let elements: Vec<u64> = (1..=1_000_000).collect();
        writer
            .create_array("a", spec)?
            .write_slice(region![.., .., ..], &elements)?;
        writer.commit()?;
    }
    let row = |section: &mut Section, name: &str, micros: f64| {
        section
            .rows
            .push(vec![name.to_owned(), format!("{micros:.2}")]);
        micros
    };
    let micros = |began: Instant| began.elapsed().as_nanos() as f64 / 1e3;
    let mut opens = Vec::new();
    for i in 0..200_i64 {
        let began = Instant::now();
        let array = Container::open(&path)?.snapshot()?.array::<u64>("a")?;
        let mut out = [0];
        array.read_into(region![i % 100, 50, 50], &mut out)?;
        opens.push(micros(began));
    }
    let open = row(&mut section, "open and first chunk (200)", median(&opens));
    section.target(
        "8",
        "open and first chunk: at most 100 us",
        format!("{open:.0} us"),
        open <= 100.0,
    );

    let array = Container::open(&path)?.snapshot()?.array::<u64>("a")?;
    let mut random = Random(5);
    let mut boxes = Vec::new();
    for _ in 0..300 {
        let [x, y, z] = [0; 3].map(|_: i64| random.below(91) as i64);
        let began = Instant::now();
        let mut count = 0;
        array.for_each_chunk(region![x..x + 10, y..y + 10, z..z + 10], |chunk| {
            black_box(&chunk);
            count += 1;
            Ok(())
        })?;
        boxes.push(micros(began));
        assert_eq!(count, 1000);
    }
    let in_box = row(
        &mut section,
        "the records of a box of 10^3 chunks (300)",
        median(&boxes),
    );
    section.target(
        "8",
        "box of 10^3 chunks: at most 50 us",
        format!("{in_box:.0} us"),
        in_box <= 50.0,
    );
    drop(array);
    std::fs::remove_file(&path)?;

    let kept = kept()?;
    row(
        &mut section,
        "one cell of a chunk that is kept decoded (20 rounds of 2,000)",
        kept,
    );
    section.target(
        "7",
        "one cell of a cached decoded chunk: at most 1 us",
        format!("{kept:.2} us"),
        kept <= 1.0,
    );

    let [prepend, append] = edges(&bench.site.folder)?;
    row(&mut section, "prepend a row and commit", prepend);
    row(&mut section, "append a row and commit", append);
    section.target(
        "11",
        "prepend over append: at most 1.2",
        format!("{:.2}", prepend / append),
        prepend / append <= 1.2,
    );
    let store = crate::peer::Store::new("raw", "100");
    for peer in &mut bench.peers {
        if peer.name().starts_with("zarr-python") {
            let mut rounds = Vec::new();
            for _ in 0..5 {
                rounds.extend(peer.run("prepend", &store, 0)?);
            }
            let theirs = row(
                &mut section,
                &format!("{}: the array anew with a row before", peer.name()),
                median(&rounds) * 1e6,
            );
            let gain = theirs / prepend;
            section.target(
                "11",
                "prepend against zarr-python's rewrite: at least 100 times as fast",
                format!("{gain:.0} times"),
                gain >= 100.0,
            );
        }
    }
    Ok(section)
}

fn kept() -> Outcome<f64> {
    let container = Container::in_memory()?;
    let writer = container.writer()?;
    let spec = ArraySpec::<f32>::new(region![0..64, 0..64, 0..64])
        .chunks([32, 32, 32])
        .codecs([Codec::shuffle(), Codec::zstd(1)]);
    let elements: Vec<f32> = (0..64 * 64 * 64).map(|i| i as f32).collect();
    writer
        .create_array("a", spec)?
        .write_slice(region![.., .., ..], &elements)?;
    writer.commit()?;
    let array = container.snapshot()?.array::<f32>("a")?;
    let mut random = Random(9);
    let mut rounds = Vec::new();
    for _ in 0..21 {
        let began = Instant::now();
        for _ in 0..2000 {
            let [x, y, z] = [0; 3].map(|_: i64| random.below(64) as i64);
            let mut out = [0.0];
            array.read_into(region![x, y, z], &mut out)?;
            assert_eq!(out[0], elements[((x * 64 + y) * 64 + z) as usize]);
        }
        rounds.push(began.elapsed().as_nanos() as f64 / 2e6);
    }
    Ok(median(&rounds))
}

fn edges(folder: &Path) -> Outcome<[f64; 2]> {
    let mut sides = Vec::new();
    for side in 0..2 {
        let container = Container::create(folder.join(format!("edge-{side}.orth")))?;
        let writer = container.writer()?;
        let spec = ArraySpec::<f32>::new(region![0..1000, 0..1000])
            .chunks([100, 100])
            .codecs(Codec::raw_profile());
        let array = writer.create_array("square", spec)?;
        array.write_slice(region![.., ..], &vec![1.5; 1_000_000])?;
        writer.commit()?;
        let row: Block = array.block([1, 1000], &[2.5; 1000])?;
        sides.push((container, writer, array, row, Vec::new()));
    }
    for _ in 0..200 {
        for (side, (_, writer, array, row, times)) in sides.iter_mut().enumerate() {
            let began = Instant::now();
            if side == 0 {
                array.prepend_block(0, row)?;
            } else {
                array.append_block(0, row)?;
            }
            writer.commit()?;
            times.push(began.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    Ok([0, 1].map(|i| median(&sides[i].4)))
}
