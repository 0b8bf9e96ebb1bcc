//! Readers and a writer in one file at once: in threads, in processes, killed, without permission to write.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use orthant::testing::Raw;
use orthant::{ArraySpec, Codec, Container, ErrorKind, Snapshot, region};

use crate::disk::Random;
use crate::support::{child, child_work, scratch, verify};

const ROWS: i64 = 24;
const WIDTH: i64 = 500;
const ARRAYS: [&str; 3] = ["a", "b", "g/c"];

/// How long readers read beside the writer, in seconds: `ORTHANT_SOAK_SECONDS`.
fn soak() -> Duration {
    let told = std::env::var("ORTHANT_SOAK_SECONDS").ok();
    Duration::from_secs(told.and_then(|s| s.parse().ok()).unwrap_or(6))
}

/// A cell says where it stands and which step wrote it.
fn cell(array: usize, row: i64, step: i64) -> i64 {
    step * 1_000_000 + i64::try_from(array).unwrap() * 10_000 + row
}

fn spec() -> ArraySpec<i64> {
    // Ends in a checksum, so that all payloads have one and the same in the index.
    ArraySpec::<i64>::new(region![0..ROWS, 0..WIDTH])
        .chunks([1, WIDTH as u64])
        .codecs([Codec::zstd(1), Codec::crc32c()])
}

/// Writes step `n` of all arrays in one commit: overwrites, and by turns deletes and makes anew, renames, grows and trims.
fn write_step(w: &orthant::Writer, n: i64, random: &mut Random) {
    for (i, path) in ARRAYS.iter().enumerate() {
        if n % 17 == 5 && i == 1 {
            w.remove(path, false).unwrap();
            w.create_array(path, spec()).unwrap();
        }
        let a = w.array::<i64>(path).unwrap();
        if n % 5 == 3 {
            a.grow(0, 0, 3).unwrap();
            a.trim(0, 0, 3).unwrap();
        }
        for row in 0..ROWS {
            let value = cell(i, row, n);
            a.write_slice(region![row..row + 1, ..], &vec![value; WIDTH as usize])
                .unwrap();
        }
        a.attributes().set("step", n).unwrap();
    }
    if n % 7 == 2 {
        w.rename("g", "moved").unwrap();
        w.rename("moved", "g").unwrap();
    }
    w.create_array(&format!("scrap/{n}"), ArraySpec::<u8>::new(region![0..9]))
        .unwrap();
    if n > 2 {
        w.remove(&format!("scrap/{}", n - 2), false).unwrap();
    }
    let _ = random.next();
    w.commit().unwrap();
}

/// One look at a state: every array is of one and the same step. Gives the step.
fn look(s: &Snapshot, random: &mut Random) -> i64 {
    let mut steps = Vec::new();
    for (i, path) in ARRAYS.iter().enumerate() {
        let a = s.array::<i64>(path).unwrap();
        let row = i64::try_from(random.below(ROWS as usize)).unwrap();
        let col = i64::try_from(random.below(WIDTH as usize - 10)).unwrap();
        let got = a.read_vec(region![row..row + 1, col..col + 10]).unwrap();
        let step = got[0] / 1_000_000;
        assert!(
            got.iter().all(|v| *v == cell(i, row, step)),
            "{path} row {row}: {got:?}"
        );
        steps.push(step);
    }
    assert!(steps.iter().all(|s| *s == steps[0]), "mixed: {steps:?}");
    steps[0]
}

/// What a child process does: two threads look until time is up, and say how often.
#[test]
fn as_a_process_that_reads() {
    let Some(path) = child_work() else { return };
    let c = Container::open_read_only(&path).unwrap();
    let (reads, until) = (AtomicU64::new(0), Instant::now() + soak());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (c, reads) = (c.clone(), &reads);
            scope.spawn(move || {
                let mut random = Random::new(thread + u64::from(std::process::id()));
                let (mut newest, mut last) = (0, 0);
                let mut held = (c.snapshot().unwrap(), 0);
                while Instant::now() < until {
                    let s = c.latest().unwrap();
                    assert!(s.generation() >= newest, "generations go back");
                    newest = s.generation();
                    for _ in 0..8 {
                        let step = look(&s, &mut random);
                        assert!(step >= last, "steps go back");
                        last = step;
                        reads.fetch_add(3, Ordering::Relaxed);
                    }
                    // One that is held for a while reads the same all the time.
                    if held.1 == 0 {
                        held = (s, 40);
                    } else {
                        let step = look(&held.0, &mut random);
                        assert_eq!(step, look(&held.0, &mut random));
                        reads.fetch_add(6, Ordering::Relaxed);
                        held.1 -= 1;
                    }
                }
            });
        }
    });
    println!("\nreads {}", reads.load(Ordering::Relaxed));
}

fn said(out: &[u8], word: &str) -> u64 {
    let text = String::from_utf8_lossy(out);
    let line = text.lines().find_map(|l| l.strip_prefix(word));
    line.unwrap_or_else(|| panic!("{text}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn readers_in_four_processes_never_see_a_wrong_or_mixed_state_beside_a_writer_that_reuses_space() {
    let (_folder, path) = scratch("soak.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    for name in ARRAYS {
        w.create_array(name, spec()).unwrap();
    }
    let mut random = Random::new(1);
    write_step(&w, 1, &mut random);
    let children: Vec<Child> = (0..4)
        .map(|_| {
            child("together::as_a_process_that_reads", &path)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let until = Instant::now() + soak() + Duration::from_millis(300);
    let raw = Raw::open_at(&path).unwrap();
    let (mut n, mut held) = (1, 0);
    while Instant::now() < until {
        n += 1;
        write_step(&w, n, &mut random);
        held = held.max(raw.refresh().unwrap() - raw.horizon().unwrap());
    }
    let mut reads = 0;
    for process in children {
        let out = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{err}");
        reads += said(&out.stdout, "reads ");
    }
    let live = c.snapshot().unwrap().statistics().unwrap();
    let live = live.live_payload_bytes + live.live_index_bytes;
    let len = std::fs::metadata(&path).unwrap().len();
    println!(
        "{reads} reads beside {n} commits, 0 wrong; {len} bytes for {live} that live, {held} generations held at most"
    );
    assert!(reads > 1000 && n > 20, "{reads} {n}");
    // A commit writes all arrays anew.
    let most = live * 8 / 5 + (3 + held) * (live + 32 * 1024);
    assert!(len <= most, "{len} bytes, at most {most}");
    drop(w);
    verify(&c);
}

#[test]
#[ignore = "half an hour: ORTHANT_SOAK_SECONDS=1800 cargo test --release --test spec -- --ignored --nocapture together::readers_for"]
fn readers_for_half_an_hour_never_see_a_wrong_or_mixed_state() {
    readers_in_four_processes_never_see_a_wrong_or_mixed_state_beside_a_writer_that_reuses_space();
}

/// A child that pins the newest generation, says so, and waits to be killed.
#[test]
fn as_a_process_that_pins() {
    let Some(path) = child_work() else { return };
    let raw = Raw::open_at(&path).unwrap();
    let s = raw.snapshot().unwrap();
    println!("\npinned {}", s.generation());
    std::thread::sleep(Duration::from_secs(60));
}

#[cfg(target_os = "linux")]
#[test]
fn a_pin_of_another_process_holds_its_space_and_goes_when_the_process_is_killed() {
    use std::io::{BufRead, BufReader};
    let (_folder, path) = scratch("pins.orth");
    let raw = Raw::create_at(&path).unwrap();
    let w = raw.writer().unwrap();
    let step = |n: u8| {
        for c in 0..10 {
            w.put_chunk(1, &[c], &[n; 20_000]).unwrap();
        }
        w.commit().unwrap();
    };
    (0..5).for_each(&step);
    let mut process = child("together::as_a_process_that_pins", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let pinned = lines
        .map_while(Result::ok)
        .find_map(|l| l.strip_prefix("pinned ").map(str::to_owned));
    let pinned: u64 = pinned.unwrap().parse().unwrap();
    assert!(raw.pinned().unwrap().contains(&pinned));
    let len = || std::fs::metadata(&path).unwrap().len();
    let before = len();
    (5..15).for_each(&step);
    assert_eq!(raw.horizon().unwrap(), pinned, "held back by the pin");
    assert!(len() >= before + 8 * 200_000, "{before} {}", len());
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!raw.pinned().unwrap().contains(&pinned));
    (15..18).for_each(&step);
    assert!(raw.horizon().unwrap() > pinned + 10);
    let held = len();
    (18..60).for_each(&step);
    assert_eq!(len(), held, "what the dead reader held is used");
}

#[test]
fn a_handle_may_be_opened_twice_and_either_may_write_in_turn() {
    let (_folder, path) = scratch("twice.orth");
    let first = Container::create(&path).unwrap();
    let second = Container::open(&path).unwrap();
    let w = first.writer().unwrap();
    let started = Instant::now();
    assert_eq!(second.writer().unwrap_err().kind(), ErrorKind::Busy);
    assert!(started.elapsed() < Duration::from_secs(1));
    w.create_array("a", ArraySpec::<i32>::new(region![0..4]))
        .unwrap()
        .write_slice(region![0..4], &[1; 4])
        .unwrap();
    w.commit().unwrap();
    let held = second.latest().unwrap();
    drop(w);
    let w = second.writer().unwrap();
    let a = w.array::<i32>("a").unwrap();
    for n in 0..30 {
        a.write_slice(region![0..4], &[n; 4]).unwrap();
        w.commit().unwrap();
    }
    assert_eq!(
        held.array::<i32>("a")
            .unwrap()
            .read_vec(region![..])
            .unwrap(),
        [1; 4]
    );
    assert_eq!(
        first
            .latest()
            .unwrap()
            .array::<i32>("a")
            .unwrap()
            .read_vec(region![..])
            .unwrap(),
        [29; 4]
    );
    assert_eq!(first.writer().unwrap_err().kind(), ErrorKind::Busy);
    drop(w);
    drop(first.writer().unwrap());
}

#[test]
fn handles_of_a_writer_that_is_gone_read_on_beside_the_next_one() {
    let (_folder, path) = scratch("gone.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let a = w
        .create_array(
            "a",
            ArraySpec::<i32>::new(region![0..1000]).codecs(Codec::raw_profile()),
        )
        .unwrap();
    a.write_slice(region![..], &[7; 1000]).unwrap();
    w.commit().unwrap();
    drop(w);
    let other = Container::open(&path).unwrap();
    let w = other.writer().unwrap();
    for n in 0..30 {
        let b = w.array::<i32>("a").unwrap();
        b.write_slice(region![..], &[n; 1000]).unwrap();
        w.commit().unwrap();
        assert_eq!(a.read_vec(region![..]).unwrap(), [7; 1000]);
    }
}

#[test]
fn a_wait_ends_with_the_next_commit_or_with_its_time() {
    let (_folder, path) = scratch("wait.orth");
    let c = Container::create(&path).unwrap();
    let other = Container::open_read_only(&path).unwrap();
    let known = other.latest().unwrap().generation();
    let started = Instant::now();
    assert!(
        other
            .wait_newer(known, Duration::from_millis(50))
            .unwrap()
            .is_none()
    );
    assert!(started.elapsed() >= Duration::from_millis(50));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.wait_newer(known, Duration::from_secs(20)).unwrap());
        std::thread::sleep(Duration::from_millis(30));
        c.writer().unwrap().commit().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap().generation(), known + 1);
    });
}

#[cfg(unix)]
#[test]
fn a_file_and_a_folder_that_cannot_be_written_are_read_and_pinned() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = scratch("fixed.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        w.create_array("a", ArraySpec::<i32>::new(region![0..4]))
            .unwrap();
        w.commit().unwrap();
    }
    let mode = |p: &Path, mode: u32| {
        std::fs::set_permissions(p, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&path, 0o444);
    mode(folder.path(), 0o555);
    let c = Container::open_read_only(&path).unwrap();
    let s = c.latest().unwrap();
    assert_eq!(
        s.array::<i32>("a").unwrap().read_vec(region![..]).unwrap(),
        [0; 4]
    );
    verify(&c);
    assert_eq!(c.writer().unwrap_err().kind(), ErrorKind::ReadOnly);
    mode(folder.path(), 0o755);
}

#[test]
fn a_reader_without_locks_is_right_or_says_that_its_snapshot_has_expired() {
    let (_folder, path) = scratch("unlocked.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![0..2000]).codecs([Codec::zstd(1), Codec::crc32c()]);
    let a = w.create_array("a", spec).unwrap();
    let step = |n: i32| {
        a.write_slice(region![..], &[n + 1; 2000]).unwrap();
        w.commit().unwrap();
    };
    step(0);
    let free = orthant::OpenOptions::new()
        .read_only(true)
        .locking(orthant::Locking::Off)
        .open(&path)
        .unwrap();
    let s = free.latest().unwrap();
    let read = || s.array::<i32>("a").and_then(|a| a.read_vec(region![..]));
    let mut expired = 0;
    for n in 1..30 {
        match read() {
            Ok(all) => assert_eq!((all, expired), (vec![1; 2000], 0)),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}");
                assert!(e.is_retryable());
                expired += 1;
            }
        }
        step(n);
    }
    assert!(expired > 20, "{expired}");
    let newest = free.latest().unwrap().array::<i32>("a").unwrap();
    assert_eq!(newest.read_vec(region![..]).unwrap(), [30; 2000]);
}

#[test]
fn a_deferred_commit_is_seen_here_at_once_and_elsewhere_with_the_next_full_one() {
    let (_folder, path) = scratch("deferred.orth");
    let c = Container::create(&path).unwrap();
    let elsewhere = Container::open_read_only(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![0..500]).codecs(Codec::raw_profile());
    let a = w.create_array("a", spec).unwrap();
    let here = |s: &Snapshot| s.array::<i32>("a").unwrap().read_vec(region![..]).unwrap()[0];
    a.write_slice(region![..], &[1; 500]).unwrap();
    let full = w.commit().unwrap();
    let mut held = Vec::new();
    for n in 2..40 {
        a.write_slice(region![..], &[n; 500]).unwrap();
        assert_eq!(w.commit_deferred().unwrap(), u64::try_from(n - 1).unwrap());
        let s = c.snapshot().unwrap();
        assert_eq!(
            (here(&s), s.generation(), s.deferred()),
            (n, full + 1, Some(n as u64 - 1))
        );
        held.push((s, n));
        let s = elsewhere.latest().unwrap();
        assert_eq!((here(&s), s.generation()), (1, full));
    }
    w.message("all of it").unwrap();
    assert_eq!(w.commit().unwrap(), full + 1);
    assert_eq!(here(&elsewhere.latest().unwrap()), 39);
    assert_eq!(c.snapshot().unwrap().deferred(), None);
    for n in 40..60 {
        a.write_slice(region![..], &[n; 500]).unwrap();
        w.commit().unwrap();
    }
    assert!(
        held.iter().all(|(s, n)| here(s) == *n),
        "held ones read the same"
    );
    drop(held);
    // Lost with the writer, and nothing else is.
    a.write_slice(region![..], &[77; 500]).unwrap();
    w.commit_deferred().unwrap();
    let lost = c.snapshot().unwrap();
    drop(w);
    assert_eq!(here(&lost), 77);
    assert_eq!(here(&c.snapshot().unwrap()), 59);
    assert_eq!(
        c.writer().unwrap_err().kind(),
        ErrorKind::Busy,
        "until nobody reads it"
    );
    drop(lost);
    let w = c.writer().unwrap();
    w.commit().unwrap();
    assert_eq!(here(&c.snapshot().unwrap()), 59);
    verify(&c);
}
