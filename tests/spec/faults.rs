//! Any call to the medium may fail: the caller hears of it, nothing panics, and the file stays at an allowed generation.

use std::io;

use orthant::testing::{Raw, RawEntry};
use orthant::{Error, ErrorKind};

use crate::crash::{change, content, name};
use crate::disk::{Disk, EIO, ENOSPC, Fault, Random, Sabotage};

const COMMITS: u64 = 4;

/// What went wrong in a run, if anything, and what the container may hold.
struct Outcome {
    error: Option<Error>,
    /// Contents of the last acknowledged generation, and of the one after it.
    allowed: Vec<(u64, Vec<RawEntry>)>,
}

/// Creates a container and commits to it, until a call fails.
fn run(disk: &Disk) -> Outcome {
    let mut allowed = Vec::new();
    let error = try_run(disk, &mut allowed).err();
    Outcome { error, allowed }
}

fn try_run(disk: &Disk, allowed: &mut Vec<(u64, Vec<RawEntry>)>) -> Result<(), Error> {
    let mut random = Random::new(3);
    let raw = Raw::create(disk.folder(), name())?;
    allowed.push((2, content(&raw)?));
    let writer = raw.writer()?;
    for generation in 3..3 + COMMITS {
        for _ in 0..3 {
            change(&writer, &mut random);
        }
        writer.put_chunk(1, &[0, i64::MAX], &vec![7; 300_000])?;
        let mut staged = writer.entries()?;
        staged.retain(|e| e.key[0] != 0x11);
        allowed.push((generation, staged.clone()));
        if let Err(e) = writer.commit() {
            after_failure(disk, &raw, &writer, &e, allowed);
            return Err(e);
        }
        allowed.remove(0);
        assert_eq!(raw.generation()?, generation);
    }
    Ok(())
}

/// What holds after a failed commit, before anything is closed.
fn after_failure(
    disk: &Disk,
    raw: &Raw,
    writer: &orthant::testing::RawWriter,
    e: &Error,
    allowed: &[(u64, Vec<RawEntry>)],
) {
    let (last, before) = &allowed[0];
    assert_eq!(raw.generation().unwrap(), *last, "the old state is read on");
    assert_eq!(&content(raw).unwrap(), before);
    disk.heal();
    match e {
        Error::Poisoned {
            last_acknowledged, ..
        } => {
            assert_eq!(last_acknowledged, last);
            let again = writer.commit().unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Poisoned, "no retry");
            assert_eq!(
                writer.put_chunk(1, &[0, 0], &[1]).unwrap_err().kind(),
                ErrorKind::Poisoned
            );
        }
        _ => {
            assert_eq!(e.kind(), ErrorKind::Io);
            assert_eq!(
                writer.commit().unwrap(),
                last + 1,
                "the transaction was kept whole"
            );
            assert_eq!(content(raw).unwrap(), allowed[1].1);
        }
    }
}

#[test]
fn a_fault_at_any_call_is_an_error_and_leaves_an_allowed_generation() {
    let clean = Disk::new(Sabotage::None);
    assert!(run(&clean).error.is_none());
    let calls = clean.calls();
    let mut injected = 0;
    for call in 1..=calls {
        for fault in [
            Fault::Errno(EIO),
            Fault::Errno(ENOSPC),
            Fault::Short(0, EIO),
            Fault::Short(1, ENOSPC),
            Fault::Short(2000, EIO),
            Fault::Short(4095, EIO),
        ] {
            for sticky in [false, true] {
                let disk = Disk::new(Sabotage::None);
                disk.fail(call, fault, sticky);
                let outcome = run(&disk);
                injected += 1;
                let at = format!("call {call} of {calls}, {fault:?}, sticky {sticky}");
                disk.heal();
                // A failed payload write is no failed commit: the buffer waits and is written again.
                if outcome.error.is_none() {
                    assert!(!sticky, "{at}");
                    continue;
                }
                check_reopened(&disk, &outcome, &at);
            }
        }
    }
    println!("{injected} faults over {calls} calls");
    assert!(calls > 20);
}

fn check_reopened(disk: &Disk, outcome: &Outcome, at: &str) {
    if outcome.allowed.is_empty() {
        // Creation failed: there is no file, or a whole one whose name was not made durable.
        if let Some(bytes) = disk.contents(name()) {
            assert_eq!(
                Raw::from_bytes(bytes).unwrap().generation().unwrap(),
                2,
                "{at}"
            );
        }
        return;
    }
    let raw = Raw::open(disk.folder(), name()).unwrap_or_else(|e| panic!("{at}: {e}"));
    let generation = raw.generation().unwrap();
    let Some((_, expected)) = outcome.allowed.iter().find(|(g, _)| *g == generation) else {
        panic!("{at}: generation {generation}");
    };
    assert_eq!(&content(&raw).unwrap(), expected, "{at}");
    // Dropping the writer and taking a new one works in the same process.
    let writer = raw.writer().unwrap_or_else(|e| panic!("{at}: {e}"));
    writer.put(&[0xE0, 200], b"after");
    let base = raw.generation().unwrap();
    assert_eq!(writer.commit().unwrap(), base + 1, "{at}");
    let report = Raw::open(disk.folder(), name()).unwrap().report();
    assert!(!report.fell_back && !report.unconfirmed, "{at}: {report:?}");
    assert_eq!(raw.live().unwrap(), raw.live_counted().unwrap(), "{at}");
}

#[test]
fn a_full_disk_in_the_middle_of_a_commit_loses_nothing_and_the_commit_succeeds_later() {
    let disk = Disk::new(Sabotage::None);
    let raw = Raw::create(disk.folder(), name()).unwrap();
    let writer = raw.writer().unwrap();
    writer.put_chunk(1, &[0, 0], &[1; 5000]).unwrap();
    disk.fail(1, Fault::Short(100, ENOSPC), true);
    for _ in 0..3 {
        let e = writer.commit().unwrap_err();
        let Error::Io { source, .. } = &e else {
            panic!("{e}")
        };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    }
    let end = raw.to_bytes().unwrap().len();
    disk.heal();
    assert_eq!(writer.commit().unwrap(), 3);
    // The space of the failed tries was used: payload, record and nodes lie in the first free blocks.
    let used = raw.to_bytes().unwrap().len();
    assert!(used < end + 4 * 4096, "{end} {used}");
}
