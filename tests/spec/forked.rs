//! What a forked child inherits is refused at once, whatever its parent's threads were doing; what it opens anew works.
//!
//! A child does what it does without a panic, which would take locks of the test's own, and ends without running any
//! destructor of its parent. Kills of whole programs: `files`.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "fork and kill are not in the standard library")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orthant::testing::Raw;
use orthant::{ArraySpec, Codec, Container, ErrorKind, region};

use crate::support::{child, child_work, scratch, verify};

/// A forked child of this process.
struct Forked(libc::pid_t);

/// Runs `work` in a forked child, which ends with its answer.
fn fork(work: impl FnOnce() -> u8) -> Forked {
    // SAFETY: the child goes on with this thread alone. It works on handles of its own, or on such as refuse it before
    // they take a lock, and the system's allocator is whole after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "cannot fork");
    if pid == 0 {
        let answer = i32::from(work());
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(answer) }
    }
    Forked(pid)
}

impl Forked {
    fn kill(self) {
        kill(self.0);
        let mut status = 0;
        // SAFETY: the process is a child of this one that nobody else waits for; `status` outlives the call.
        unsafe { libc::waitpid(self.0, &raw mut status, 0) };
    }

    /// What the child answers. One that hangs is killed, and the test fails.
    fn answer(self) -> u8 {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let mut status = 0;
            // SAFETY: as above.
            let done = unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) };
            if done == self.0 {
                assert!(libc::WIFEXITED(status), "the child died: {status}");
                return u8::try_from(libc::WEXITSTATUS(status)).unwrap();
            }
            if Instant::now() > until {
                self.kill();
                panic!("a forked child hangs");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn kill(pid: libc::pid_t) {
    // SAFETY: sends a signal to a process that this test has started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// 0 when `result` is an error of this kind.
fn refused<T>(result: orthant::Result<T>, kind: ErrorKind) -> u8 {
    match result {
        Err(e) if e.kind() == kind => 0,
        _ => 1,
    }
}

/// A container with one array at `path`, its writer open.
fn written(path: &Path) -> (Container, orthant::Writer) {
    let c = Container::create(path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![0..2000]).codecs(Codec::raw_profile());
    let a = w.create_array("a", spec).unwrap();
    a.write_slice(region![..], &[1; 2000]).unwrap();
    w.commit().unwrap();
    (c, w)
}

#[test]
fn a_forked_child_is_refused_every_handle_of_its_parent_at_once_and_opens_its_own() {
    let (_folder, path) = scratch("forked.orth");
    let (c, w) = written(&path);
    let raw = c.latest().unwrap();
    let generation = raw.generation();
    let a = w.array::<i32>("a").unwrap();
    a.write_slice(region![0..5], &[9; 5]).unwrap();
    let kind = ErrorKind::LockUnavailable;
    let inherited = fork(|| {
        let mut bad = refused(c.writer(), kind) | refused(c.snapshot(), kind);
        bad |= refused(c.refresh(), kind) | refused(w.commit(), kind);
        bad |= refused(w.commit_deferred(), kind) | refused(a.read_vec(region![..]), kind);
        bad |= refused(a.write_slice(region![0..1], &[3]), kind)
            | refused(raw.array::<i32>("a"), kind);
        bad
    });
    assert_eq!(inherited.answer(), 0);
    // Handles that the child lets go take nothing from the parent.
    let dropped = {
        let c = Some(c.clone());
        let held = Some(c.as_ref().unwrap().latest().unwrap());
        let child = fork(|| {
            // The child's own copies; the parent keeps its.
            let mine = (c.clone(), held.clone());
            drop(mine);
            let Ok(own) = Container::open(&path) else {
                return 1;
            };
            let read = own.latest().and_then(|s| s.array::<i32>("a"));
            let Ok(all) = read.and_then(|a| a.read_vec(region![0..10])) else {
                return 2;
            };
            if all != [1; 10] {
                return 3;
            }
            refused(own.writer(), ErrorKind::Busy)
        });
        let answer = child.answer();
        assert!(held.is_some_and(|s| s.generation() == generation));
        answer
    };
    assert_eq!(dropped, 0);
    assert_eq!(w.commit().unwrap(), generation + 1);
    assert!(c.latest().unwrap().generation() > generation);
    drop((a, w));
    // The parent's writer is gone: a child's own handle writes, though the child has inherited the parent's table of writers.
    let writes = fork(|| {
        let Ok(own) = Container::open(&path) else {
            return 1;
        };
        let Ok(w) = own.writer() else { return 2 };
        u8::from(w.commit().is_err())
    });
    assert_eq!(writes.answer(), 0);
    assert_eq!(c.latest().unwrap().generation(), generation + 2);
    drop(c.writer().unwrap());
    verify(&c);
}

#[test]
fn a_fork_in_the_midst_of_commits_and_reads_never_hangs_a_child() {
    let (_folder, path) = scratch("busy.orth");
    let raw = Raw::create_at(&path).unwrap();
    let writer = raw.writer().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                writer.put_chunk(1, &[n % 50], &[7; 900]).unwrap();
                writer.commit().unwrap();
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(!raw.snapshot().unwrap().entries().unwrap().is_empty());
                }
            });
        }
        let held = raw.snapshot().unwrap();
        let kind = ErrorKind::LockUnavailable;
        for _ in 0..200 {
            let child = fork(|| {
                let mut bad = refused(writer.commit(), kind) | refused(raw.snapshot(), kind);
                bad |= refused(held.entries(), kind) | refused(writer.entries(), kind);
                bad |= refused(writer.put_chunk(1, &[0], &[1]), kind) | refused(raw.writer(), kind);
                writer.delete(&[0xE0]);
                writer.abort();
                let Ok(own) = Raw::open_at(&path) else {
                    return 2;
                };
                bad |= u8::from(own.entries().is_err()) | refused(own.writer(), ErrorKind::Busy);
                bad
            });
            let answer = child.answer();
            if answer != 0 {
                done.store(true, Ordering::Relaxed);
            }
            assert_eq!(answer, 0);
        }
        done.store(true, Ordering::Relaxed);
    });
    drop(writer);
    assert_eq!(raw.live().unwrap(), raw.live_counted().unwrap());
}

/// A process that writes, forks a child that does nothing, and waits to be killed.
#[test]
fn as_a_process_that_writes_and_forks() {
    let Some(path) = child_work() else { return };
    let (_c, _w) = written(&path);
    let idle = fork(|| {
        std::thread::sleep(Duration::from_secs(60));
        0
    });
    println!("\nforked {}", idle.0);
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_child_that_outlives_a_killed_writer_keeps_the_lock_and_the_error_says_so() {
    let (_folder, path) = scratch("orphan.orth");
    let mut process = child("forked::as_a_process_that_writes_and_forks", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let said = lines
        .map_while(Result::ok)
        .find_map(|l| l.strip_prefix("forked ").map(str::to_owned));
    let idle: libc::pid_t = said.unwrap().parse().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let c = Container::open(&path).unwrap();
    let e = c.writer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert!(e.to_string().contains("forked child"), "{e}");
    assert_eq!(
        c.latest()
            .unwrap()
            .array::<i32>("a")
            .unwrap()
            .read_vec(region![0..3])
            .unwrap(),
        [1; 3]
    );
    kill(idle);
    drop(c.writer_timeout(Duration::from_secs(20)).unwrap());
}
