//! Crashes while a crashed container is written on, compacted, or freed of snapshots; and all short programs.
//!
//! The first crash leaves an image; a program goes on with it, and a second crash is enumerated over that. Short programs
//! find most bugs of crash consistency, so all of at most three operations are run, each over every cut.

use crate::crash::name;
use crate::disk::{Disk, Op, Random, Sabotage};
use crate::platter::Platter;
use crate::steps::Step::{self, *};
use crate::steps::{History, Run, random_steps, take, whole};
use crate::support::{figure, rounds};

/// Judges every image of a recorded run from `first` acknowledgements on.
fn judge(
    disk: &Disk,
    platter: Platter,
    mut last: u64,
    history: &History,
    random: &mut Random,
    most: usize,
) -> Result<u64, String> {
    let mut platter = platter;
    let mut images = 0;
    let mut bad = None;
    for (i, op) in disk.ops().iter().enumerate() {
        platter.take(op);
        if let Op::Acknowledged { generation } = op {
            last = *generation;
        }
        if last == 0 {
            continue;
        }
        let next = history.range(last + 1..).next().map_or(last, |(g, _)| *g);
        platter.images(random, most, |image| {
            images += 1;
            let verdict = image
                .ok_or_else(|| "the name is gone".to_owned())
                .and_then(|image| whole(image, &[last, next], history));
            if let Err(why) = verdict {
                bad.get_or_insert(format!("after call {i}: {why}"));
            }
        });
    }
    match bad {
        Some(why) => Err(why),
        None => Ok(images),
    }
}

/// What goes on with a crashed container.
const SECOND: [&[Step]; 5] = [
    &[Write, Commit],
    &[Release, Commit, Overwrite, Commit],
    &[Compact, Write, Commit],
    &[Rechunk, Commit],
    &[Restore, Commit, Retain, Commit],
];

/// First crashes of a run: some images at every call.
fn first_crashes(steps: &[Step]) -> Vec<Vec<u8>> {
    let disk = Disk::new(Sabotage::None);
    let (run, error) = take(&disk, steps);
    assert!(error.is_none(), "{steps:?}: {error:?}");
    let history = run.unwrap().history;
    let mut platter = Platter::default();
    let mut random = Random::new(1);
    let (mut last, mut all): (u64, Vec<Vec<u8>>) = (0, Vec::new());
    for op in &disk.ops() {
        platter.take(op);
        if let Op::Acknowledged { generation } = op {
            last = *generation;
        }
        if last < 3 {
            continue;
        }
        platter.images(&mut random, 2, |image| all.extend(image));
    }
    all.retain(|image| {
        let any: Vec<u64> = history.keys().copied().collect();
        whole(image.clone(), &any, &history).is_ok()
    });
    all.sort();
    all.dedup();
    all
}

/// Pairs of crashes: the first in a program, the second in what goes on.
fn pairs(steps: &[Step], random: &mut Random) -> u64 {
    let mut images = 0;
    for (n, first) in first_crashes(steps).into_iter().enumerate() {
        for second in SECOND {
            let disk = Disk::with_file(name(), first.clone());
            let mut run = Run::open(&disk).unwrap();
            let before = run.acknowledged[0];
            for step in second {
                run.step(*step).unwrap();
            }
            let platter = Platter::with_file(first.clone());
            match judge(&disk, platter, before, &run.history, random, 24) {
                Ok(n) => images += n,
                Err(why) => panic!("{steps:?}, first crash {n}, then {second:?}: {why}"),
            }
        }
    }
    images
}

#[test]
fn a_second_crash_during_recovery_compaction_or_release_loses_nothing() {
    let program = [
        Retain, Overwrite, Commit, Retain, Write, Commit, Release, Commit, Overwrite, Commit,
        Compact, Overwrite, Commit,
    ];
    let mut random = Random::new(2);
    let mut images = pairs(&program, &mut random);
    for _ in 0..rounds(3, 90) {
        let steps = random_steps(&mut random, 10);
        images += pairs(&steps, &mut random);
    }
    println!("{images} image pairs of crashes during what follows a crash, 0 bad");
    figure(2, "second crashes in recovery, compaction, release", images);
    assert!(images >= 20_000, "{images}");
}

/// All programs of at most `longest` operations, committed at the end, each cut everywhere.
fn short_programs(longest: u32, most: usize) -> (u64, u64) {
    const STEPS: [Step; 10] = [
        Create, Write, Overwrite, Delete, GrowLow, TrimHigh, Attribute, Commit, Compact, Reopen,
    ];
    let (mut programs, mut images) = (0, 0);
    let mut random = Random::new(3);
    for len in 1..=longest {
        for number in 0..STEPS.len().pow(len) {
            let mut rest = number;
            let mut steps: Vec<Step> = Vec::new();
            for _ in 0..len {
                steps.push(STEPS[rest % STEPS.len()]);
                rest /= STEPS.len();
            }
            steps.push(Commit);
            let disk = Disk::new(Sabotage::None);
            let (run, error) = take(&disk, &steps);
            assert!(error.is_none(), "{steps:?}: {error:?}");
            let history = run.unwrap().history;
            let cut = judge(&disk, Platter::default(), 0, &history, &mut random, most);
            images += cut.unwrap_or_else(|why| panic!("{steps:?}: {why}"));
            programs += 1;
        }
    }
    (programs, images)
}

#[test]
fn every_program_of_at_most_three_operations_survives_every_crash() {
    let longest = rounds(3, 4) as u32;
    let (programs, images) = short_programs(longest, 16);
    println!("{programs} programs of at most {longest} operations, {images} crash images, 0 bad");
    figure(1, "crash images of short programs", images);
    assert!(programs >= 10 + 100 + 1000);
    assert!(images >= 60_000, "{images}");
}

/// The harness sees what it should: each missing sync makes bad images.
#[test]
fn leaving_out_a_sync_is_noticed() {
    for sabotage in [
        Sabotage::FirstSync,
        Sabotage::SecondSync,
        Sabotage::WholeSync,
        Sabotage::FolderSync,
    ] {
        let disk = Disk::new(sabotage);
        let (run, _) = take(
            &disk,
            &[Overwrite, Commit, Compact, Write, Commit, Overwrite, Commit],
        );
        let history = run.unwrap().history;
        let random = &mut Random::new(4);
        let verdict = judge(&disk, Platter::default(), 0, &history, random, 64);
        assert!(verdict.is_err(), "{sabotage:?}: {verdict:?}");
    }
}
