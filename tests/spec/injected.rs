//! A fault at any call of any workload is an error with a kind, never a panic, and leaves a generation that may be there.
//!
//! Each workload runs once without a fault, and then once for every call and every fault. The run is the same up to the
//! fault, so the run without one knows what each generation holds.

use orthant::testing::Raw;
use orthant::{CheckLevel, ErrorKind};
use std::ops::ControlFlow;

use crate::crash::name;
use crate::disk::{Disk, EINTR, EIO, ENOSPC, Fault, Look, Random, SHORT, Sabotage};
use crate::steps::Step::{self, *};
use crate::steps::{History, random_steps, take, whole};
use crate::support::{figure, rounds};

/// Workloads by name.
const WORKLOADS: [(&str, &[Step]); 9] = [
    ("create", &[]),
    ("write", &[Create, Write, Attribute, Commit]),
    (
        "overwrite",
        &[
            Overwrite, Commit, Overwrite, Commit, Reopen, Overwrite, Commit,
        ],
    ),
    (
        "grow and shrink",
        &[GrowLow, Write, Commit, TrimHigh, Commit, Delete, Commit],
    ),
    (
        "snapshots",
        &[
            Retain, Overwrite, Commit, Overwrite, Commit, Release, Commit, Overwrite, Commit,
        ],
    ),
    ("restore", &[Retain, Overwrite, Commit, Restore, Commit]),
    (
        "deferred",
        &[Write, Defer, Overwrite, Defer, Commit, Write, Commit],
    ),
    ("rechunk and copy", &[Rechunk, Commit, Copy, Commit]),
    (
        "compact",
        &[
            Overwrite, Commit, Retain, Write, Commit, Compact, Write, Commit,
        ],
    ),
];

/// What is injected where something is changed.
const FAULTS: [Fault; 7] = [
    Fault::Errno(EIO),
    Fault::Errno(ENOSPC),
    Fault::Errno(EINTR),
    Fault::Short(0, EIO),
    Fault::Short(1, ENOSPC),
    Fault::Short(2000, EIO),
    Fault::Short(4095, ENOSPC),
];

/// What is injected where something is only looked at.
const LOOKS: [(Look, i32); 6] = [
    (Look::Read, EIO),
    (Look::Read, SHORT),
    (Look::Read, EINTR),
    (Look::Len, EIO),
    (Look::Lock, EIO),
    (Look::Name, EIO),
];

/// A workload without a fault.
fn clean(steps: &[Step]) -> (Disk, History) {
    let disk = Disk::new(Sabotage::None);
    let (run, error) = take(&disk, steps);
    assert!(error.is_none(), "{error:?}");
    (disk, run.unwrap().history)
}

/// Runs with a fault in place, and judges what is left.
fn judge(steps: &[Step], history: &History, at: &str, inject: impl FnOnce(&Disk)) {
    let disk = Disk::new(Sabotage::None);
    inject(&disk);
    let (run, error) = take(&disk, steps);
    if let Some(e) = &error {
        let expected = matches!(
            e.kind(),
            ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Corrupt
        );
        // A pin that could not be let go of holds its generation until the handle goes.
        let expected = expected || e.kind() == ErrorKind::SnapshotInUse && at.contains("Lock");
        assert!(expected, "{at}: {e}");
    }
    let last = run.as_ref().and_then(|r| r.acknowledged.last().copied());
    drop(run);
    disk.heal();
    let Some(bytes) = disk.contents(name()) else {
        assert_eq!(last, None, "{at}: an acknowledged file is gone");
        return;
    };
    // What comes after the last acknowledged generation may be there, whole.
    let last = last.unwrap_or(2);
    let next = history.range(last + 1..).next().map_or(last, |(g, _)| *g);
    let found = whole(bytes, &[last, next], history).unwrap_or_else(|why| panic!("{at}: {why}"));
    // The next writer works, and leaves a container that is in order.
    let raw = Raw::open(disk.folder(), name()).unwrap_or_else(|e| panic!("{at}: {e}"));
    let writer = raw.writer().unwrap_or_else(|e| panic!("{at}: {e}"));
    writer.put(&[0xE0, 200], b"after");
    assert!(writer.commit().unwrap() > found, "{at}");
    assert_eq!(raw.live().unwrap(), raw.live_counted().unwrap(), "{at}");
    let snapshot = raw.container().snapshot().unwrap();
    let go_on = |_, _| ControlFlow::Continue(());
    snapshot
        .check(CheckLevel::Full, go_on, |p| {
            assert!(p.warning, "{at}: {p:?}")
        })
        .unwrap();
}

/// Every call of a workload with every fault; gives how many that were.
fn inject_everywhere(workload: &str, steps: &[Step]) -> u64 {
    let mut injected = 0;
    let (disk, history) = clean(steps);
    for call in 1..=disk.calls() {
        for fault in FAULTS {
            for sticky in [false, true] {
                let at = format!("{workload}: call {call}, {fault:?}, sticky {sticky}");
                judge(steps, &history, &at, |disk| disk.fail(call, fault, sticky));
                injected += 1;
            }
        }
    }
    for (look, errno) in LOOKS {
        for call in 1..=disk.looks(look) {
            for sticky in [false, true] {
                let at = format!("{workload}: {look:?} {call}, error {errno}, sticky {sticky}");
                judge(steps, &history, &at, |disk| {
                    disk.blind(look, call, errno, sticky)
                });
                injected += 1;
            }
        }
    }
    injected
}

#[test]
fn a_fault_at_any_call_of_any_workload_leaves_a_permitted_generation() {
    let mut injected: u64 = WORKLOADS
        .iter()
        .map(|(name, steps)| inject_everywhere(name, steps))
        .sum();
    let mut random = Random::new(6);
    for seed in 0..rounds(1, 60) {
        let steps = random_steps(&mut random, 8);
        injected += inject_everywhere(&format!("random {seed} {steps:?}"), &steps);
    }
    println!("{injected} faults injected, 0 panics, 0 bad");
    figure(3, "injected faults", injected);
    assert!(injected >= 5_000, "{injected}");
}

/// The judge can fail: a file in which the last commit is undone, or mixed with another, is not let pass.
#[test]
fn the_judge_notices_a_lost_and_a_mixed_commit() {
    let steps = [Overwrite, Commit, Overwrite, Commit];
    let (disk, history) = clean(&steps);
    let newest = *history.last_key_value().unwrap().0;
    let bytes = disk.contents(name()).unwrap();
    assert_eq!(whole(bytes.clone(), &[newest], &history), Ok(newest));
    // The newest slot torn: the one before it is not enough.
    let mut lost = bytes.clone();
    lost[0x1000 * (1 + newest as usize % 2) + 100] ^= 1;
    assert!(whole(lost, &[newest], &history).is_err());
    // The same generation with another content.
    let mut other = history.clone();
    other.get_mut(&newest).unwrap().0.pop();
    assert!(whole(bytes, &[newest], &other).is_err());
}
