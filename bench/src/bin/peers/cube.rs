//! The cube: written, read whole, read in small parts, with one thread and two.

use std::sync::Arc;

use crate::data::Block;
use crate::limits::{self, Bare};
use crate::ours::Ours;
use crate::peer::{Peer as _, Store};
use crate::report::{Section, median};
use crate::{Bench, Outcome};

const ROUNDS: usize = 3;
const MIB: f64 = (1 << 20) as f64;

fn mib(bench: &Bench) -> f64 {
    size_of_val(&bench.site.cube[..]) as f64 / MIB
}

/// A figure for the table: none where a peer cannot.
fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.digits$}"))
}

/// Seconds of the rounds of one peer, by verb.
#[derive(Default, Clone)]
struct Times([Vec<f64>; 3]);

/// In the order in which they are run: the first read through a handle gives new memory, the second finds all maps warm.
const VERBS: [&str; 3] = ["write", "fresh", "read"];

/// Write all and read all, with one codec, in chunks of 64^3.
pub fn whole(bench: &mut Bench, codec: &str) -> Outcome<Section> {
    let mib = mib(bench);
    let bare = Bare::new(codec, 64, bench.site.shape, &bench.site.cube)?;
    // Each peer on plain chunks; zarrs, zarr-python and TensorStore on shards too.
    let mut entries: Vec<(usize, Store, Times)> = Vec::new();
    for peer in 0..bench.peers.len() {
        entries.push((peer, Store::new(codec, "64"), Times::default()));
        if bench.peers[peer].name().starts_with("zarrs") || peer == 0 {
            entries.push((peer, Store::new(codec, "128/64"), Times::default()));
        }
    }
    let mut limits = [const { Vec::new() }; 8];
    let mut touched = Block::new(bench.site.cube.len())?;
    for round in 0..=ROUNDS {
        let file = bench.site.folder.join(entries[0].1.file("orthant"));
        for (peer, store, times) in &mut entries {
            for (verb, times) in VERBS.iter().zip(&mut times.0) {
                let took = bench.peers[*peer].run(verb, store, round as u64)?;
                times.extend(took.filter(|_| round > 0));
            }
        }
        let cube = &bench.site.cube;
        let took = [
            limits::memcpy(cube, &mut touched)?,
            limits::pread(&file, &mut touched)?,
            limits::pwrite(&bench.site.folder.join("bare"), cube)?,
            bare.compress()?,
            bare.decompress()?,
            if codec == "raw" {
                bare.checksum_and_copy(&mut touched)?
            } else {
                f64::NAN
            },
            bare.compress_and_write(&bench.site.folder.join("bare"))?,
            bare.decompress_and_copy(&mut touched)?,
        ];
        for (limit, took) in limits.iter_mut().zip(took) {
            limit.extend((round > 0).then_some(took));
        }
        if round > 0 && codec == "raw" && touched[..] != bench.site.cube[..] {
            return Err("bare copy: other values".into());
        }
    }
    Ok(table(bench, codec, mib, &entries, &limits))
}

fn table(
    bench: &mut Bench,
    codec: &str,
    mib: f64,
    entries: &[(usize, Store, Times)],
    limits: &[Vec<f64>; 8],
) -> Section {
    let rate = |seconds: &[f64]| (!seconds.is_empty()).then(|| mib / median(seconds));
    let [t, y, x] = bench.site.shape;
    let name = match codec {
        "zstd" => "shuffle + Zstandard 1",
        "lz4" => "shuffle + LZ4",
        _ => "raw",
    };
    let mut section = Section {
        title: format!("All of a cube, {name}"),
        about: format!(
            "f32, {t} x {y} x {x} ({mib:.0} MiB), chunks of 64^3 (\"sharded\": shards of 128^3 with inner chunks of 64^3); MiB/s, medians of {ROUNDS}. \
             `read` fills memory that was touched before, where the peer can; `fresh` gives new memory."
        ),
        head: [
            "",
            "write",
            "read",
            "fresh",
            "read over orthant's",
            "stored",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Section::default()
    };
    let names = [
        "memcpy, both cores",
        "pread of orthant's file, both cores",
        "pwrite of the elements, both cores",
        "the codec alone, both cores",
        "the codec alone, both cores",
        "checksum and strided copy, both cores",
        "the codec alone and pwrite of its payloads, both cores",
        "the codec alone and a strided copy, both cores",
    ];
    let blank = || "".to_owned();
    let bare_write = rate(&limits[3]);
    let bare_read = rate(&limits[4]);
    for (i, name) in names.iter().enumerate() {
        let figure = rate(&limits[i]).filter(|f| f.is_finite());
        let (w, r) = match i {
            2 => (figure, None),
            3 if codec != "raw" => (figure, bare_read),
            3 | 4 => continue,
            5 if codec != "raw" => continue,
            6 | 7 if codec == "raw" => continue,
            6 => (figure, None),
            _ => (None, figure),
        };
        section.rows.push(vec![
            format!("*{name}*"),
            cell(w, 0),
            cell(r, 0),
            blank(),
            blank(),
            blank(),
        ]);
    }
    let ours = &entries[0].2;
    let our = [rate(&ours.0[0]), rate(&ours.0[2])].map(|f| f.unwrap_or(f64::NAN));
    let mut best = [(0.0, String::new()), (0.0, String::new())];
    for (peer, store, times) in entries {
        let mut name = bench.peers[*peer].name();
        if store.sides.contains('/') {
            name += ", sharded";
        }
        let [write, fresh, read] = [0, 1, 2].map(|i| rate(&times.0[i]));
        let read_or_fresh = read.or(fresh);
        if *peer > 0 {
            for (best, figure) in best.iter_mut().zip([write, read_or_fresh]) {
                if let Some(figure) = figure.filter(|f| *f > best.0) {
                    *best = (figure, name.clone());
                }
            }
        }
        let stored = bench.peers[*peer]
            .size(store)
            .map_or(f64::NAN, |n| n as f64 / MIB / mib);
        section.rows.push(vec![
            name,
            cell(write, 0),
            cell(read, 0),
            cell(fresh, 0),
            cell(read_or_fresh.map(|f| f / our[1]), 2),
            cell(Some(stored), 3),
        ]);
    }
    let [write, read] = our;
    let over =
        |best: &(f64, String), figure: f64| format!("{:.2} times {}", figure / best.0, best.1);
    let (bare_write, bare_read) = (
        bare_write.unwrap_or(f64::NAN),
        bare_read.unwrap_or(f64::NAN),
    );
    let [with_write, with_copy] = [6, 7].map(|i| rate(&limits[i]).unwrap_or(f64::NAN));
    match codec {
        "zstd" => {
            let beside = format!(
                "{:.0} %, {:.0} %",
                read / with_copy * 100.0,
                write / with_write * 100.0
            );
            section.target(
                "1, 2",
                "(beside it: of the codec with the strided copy and the `pwrite` that nobody can leave out)",
                beside,
                true,
            );
            let share = read / bare_read;
            section.target(
                "1",
                "read: at least 70 % of the bare decompressor",
                format!("{:.0} %", share * 100.0),
                share >= 0.7,
            );
            section.target(
                "1",
                "read: at least 1.5 times the best peer",
                over(&best[1], read),
                read >= 1.5 * best[1].0,
            );
            let share = write / bare_write;
            section.target(
                "2",
                "write: at least 80 % of the bare compressor",
                format!("{:.0} %", share * 100.0),
                share >= 0.8,
            );
            section.target(
                "2",
                "write: at least 1.5 times the best peer",
                over(&best[0], write),
                write >= 1.5 * best[0].0,
            );
        }
        "raw" => {
            let bare = rate(&limits[5]).unwrap_or(f64::NAN);
            let share = read / bare;
            section.target(
                "3",
                "read: at least 85 % of checksum and strided copy",
                format!("{:.0} %", share * 100.0),
                share >= 0.85,
            );
            section.target(
                "3",
                "read: at least 1.5 times the best peer",
                over(&best[1], read),
                read >= 1.5 * best[1].0,
            );
            section.target(
                "4",
                "write: at least as fast as the best peer",
                over(&best[0], write),
                write >= best[0].0,
            );
        }
        // Nothing is asked of the others: they stand beside their limits.
        _ => {}
    }
    section
}

/// One thread against two.
pub fn threads(bench: &mut Bench) -> Outcome<Section> {
    let mib = mib(bench);
    let bare = Bare::new("zstd", 64, bench.site.shape, &bench.site.cube)?;
    let store = Store::new("zstd", "64");
    let mut ours = Ours::new(Arc::clone(&bench.site))?;
    let pools = [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build());
    let [one, two] = pools;
    let pools = [one?, two?];
    let mut times: [[Vec<f64>; 4]; 2] = Default::default();
    for round in 0..=ROUNDS {
        for (pool, times) in pools.iter().zip(&mut times) {
            let mut run = |verb| {
                let ours = &mut ours;
                pool.install(|| ours.run(verb, &store, 0).map_err(|e| e.to_string()))
            };
            let took = [
                run("write")?.unwrap_or(f64::NAN),
                run("read")?.unwrap_or(f64::NAN),
                pool.install(|| bare.compress().map_err(|e| e.to_string()))?,
                pool.install(|| bare.decompress().map_err(|e| e.to_string()))?,
            ];
            for (times, took) in times.iter_mut().zip(took) {
                times.extend((round > 0).then_some(took));
            }
        }
    }
    let mut section = Section {
        title: "Two threads against one".to_owned(),
        about: format!(
            "The cube, shuffle + Zstandard 1, chunks of 64^3, MiB/s, medians of {ROUNDS}."
        ),
        head: ["", "one", "two", "scaling"].map(str::to_owned).to_vec(),
        ..Section::default()
    };
    let mut scaling = [0.0; 4];
    for (i, name) in [
        "orthant, write",
        "orthant, read",
        "bare compressor",
        "bare decompressor",
    ]
    .iter()
    .enumerate()
    {
        let [one, two] = [0, 1].map(|p| mib / median(&times[p][i]));
        scaling[i] = two / one;
        section.rows.push(vec![
            (*name).to_owned(),
            cell(Some(one), 0),
            cell(Some(two), 0),
            format!("{:.2}", scaling[i]),
        ]);
    }
    for (what, ours, bare) in [("write", 0, 2), ("read", 1, 3)] {
        let share = scaling[ours] / scaling[bare];
        section.target(
            "12",
            &format!("{what}: at least 90 % of the codec's scaling"),
            format!("{:.0} %", share * 100.0),
            share >= 0.9,
        );
    }
    Ok(section)
}

const SMALL: [&str; 4] = ["cell", "box", "series", "map"];
const SMALL_ROUNDS: usize = 5;

/// Small reads, from chunks and from inner chunks.
pub fn small(bench: &mut Bench) -> Outcome<Section> {
    let mut single = Vec::new();
    let layouts = ["16", "128/16", "32", "128/32"];
    let mut rows: Vec<(String, &str, [Vec<f64>; 4])> = Vec::new();
    for sides in layouts {
        let store = Store::new("zstd", sides);
        let mut at = Vec::new();
        for peer in 0..bench.peers.len() {
            let name = bench.peers[peer].name();
            // 16,384 files take these minutes to write.
            let slow = ["zarr-python", "icechunk", "tiledb"]
                .iter()
                .any(|n| name.starts_with(n));
            if slow && sides == "16" || bench.peers[peer].run("write", &store, 0)?.is_none() {
                continue;
            }
            rows.push((name, sides, Default::default()));
            at.push((peer, rows.len() - 1));
        }
        if sides == "16" {
            let bare = Bare::new("zstd", 16, bench.site.shape, &bench.site.cube)?;
            single = (1..=SMALL_ROUNDS)
                .map(|round| bare.single(round as u64, 2000))
                .collect::<Outcome<Vec<f64>>>()?;
        }
        for round in 0..=SMALL_ROUNDS {
            for &(peer, row) in &at {
                for (verb, times) in SMALL.iter().zip(&mut rows[row].2) {
                    let took = bench.peers[peer].run(verb, &store, round as u64 + 1)?;
                    times.extend(took.filter(|_| round > 0));
                }
            }
        }
    }
    let [t, y, x] = bench.site.shape;
    let mut section = Section {
        title: "Small reads".to_owned(),
        about: format!(
            "The cube, shuffle + Zstandard 1; microseconds, medians of {SMALL_ROUNDS} rounds of reads at random places. `cell` one element, `box` 16^3, \
             `series` {t} x 1 x 1, `map` 1 x {y} x {x}. Handles are kept open, decoded chunks are not kept."
        ),
        head: ["", "chunks", "cell", "box", "series", "map"]
            .map(str::to_owned)
            .to_vec(),
        ..Section::default()
    };
    let micros = |times: &Vec<f64>| (!times.is_empty()).then(|| median(times) * 1e6);
    // The best of us and of all others, by verb.
    let mut best = [
        [
            (f64::INFINITY, String::new()),
            (f64::INFINITY, String::new()),
        ]
        .clone(),
        Default::default(),
        Default::default(),
        Default::default(),
    ];
    for b in &mut best {
        *b = [
            (f64::INFINITY, String::new()),
            (f64::INFINITY, String::new()),
        ];
    }
    for (name, sides, times) in &rows {
        let figures = [0, 1, 2, 3].map(|v| micros(&times[v]));
        for (best, figure) in best.iter_mut().zip(figures) {
            let best = &mut best[usize::from(name != "orthant")];
            if let Some(figure) = figure.filter(|f| *f < best.0) {
                *best = (figure, format!("{name}, {sides}"));
            }
        }
        let mut row = vec![name.clone(), (*sides).to_owned()];
        row.extend(figures.map(|f| cell(f, 1)));
        section.rows.push(row);
    }
    let bare = median(&single) * 1e6;
    let blank = || String::new();
    section.rows.insert(
        0,
        vec![
            "*checksum and decode of one chunk*".to_owned(),
            "16".to_owned(),
            cell(Some(bare), 1),
            blank(),
            blank(),
            blank(),
        ],
    );
    let over = best[0][0].0 / bare;
    section.target(
        "5",
        "cell: at most 1.35 times the bare checksum and decode of its chunk (`--bin points` has index cold and warm)",
        format!("{over:.2}"),
        over <= 1.35,
    );
    for (verb, best) in SMALL.iter().zip(&best) {
        let gain = best[1].0 / best[0].0;
        let (row, least) = match *verb {
            "cell" => ("5", 3.0),
            "series" | "map" => ("6", 2.0),
            _ => ("-", 1.0),
        };
        section.target(
            row,
            &format!("{verb}: at least {least} times as fast as the best peer on its best layout"),
            format!(
                "{gain:.1} times {} ({} us against {} us)",
                best[1].1,
                cell(Some(best[0].0), 1),
                cell(Some(best[1].0), 1)
            ),
            gain >= least,
        );
    }
    Ok(section)
}
