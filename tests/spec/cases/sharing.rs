//! Area J: threads, processes, locks, snapshots, media.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orthant::{
    Array, ArraySpec, Codec, Container, ErrorKind, Locking, OpenOptions, ReadVia, Region, Snapshot,
    Writer, region,
};

use crate::medium::fresh;
use crate::support::{array, child, child_work, scratch, timed, within, writer};

#[test]
fn handles_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<Container>();
    check::<Snapshot>();
    check::<Writer>();
    check::<Array<f32>>();
    check::<orthant::Appender>();
}

#[test]
fn c92_threads_that_write_neighbouring_cells_lose_none() {
    for _ in 0..50 {
        let w = writer();
        let a = array(&w, ArraySpec::<u32>::new(region![0..1024]).chunks([128]));
        std::thread::scope(|s| {
            for t in 0..8 {
                let a = &a;
                s.spawn(move || {
                    for x in (t..1024_i64).step_by(8) {
                        a.write_scalar(region![x], u32::try_from(x + 1).unwrap())
                            .unwrap();
                    }
                });
            }
        });
        w.commit().unwrap();
        assert_eq!(
            a.read_vec(Region::all()).unwrap(),
            (1..=1024).collect::<Vec<_>>()
        );
    }
}

#[test]
fn c92_threads_that_append_to_one_array_lose_none() {
    let w = writer();
    let a = array(&w, ArraySpec::<u32>::new(region![0..0]).chunks([10]));
    std::thread::scope(|s| {
        for t in 0..4_u32 {
            let a = &a;
            s.spawn(move || {
                for k in 0..25 {
                    let block = ndarray::arr1(&[t * 100 + k; 3]);
                    a.append(0, block.view()).unwrap();
                }
            });
        }
    });
    let cells = a.read_vec(Region::all()).unwrap();
    assert_eq!(cells.len(), 300);
    let mut rows: Vec<u32> = cells
        .chunks(3)
        .map(|r| {
            assert!(r.iter().all(|v| *v == r[0]), "an append is whole: {r:?}");
            r[0]
        })
        .collect();
    rows.sort_unstable();
    let want: Vec<u32> = (0..4)
        .flat_map(|t| (0..25).map(move |k| t * 100 + k))
        .collect();
    assert_eq!(rows, want);
}

/// Another process: what it is to do stands before the path.
#[test]
fn as_another_process() {
    let Some(work) = child_work() else { return };
    let work = work.to_str().unwrap().to_owned();
    let (what, path) = work.split_once('=').unwrap();
    let path = Path::new(path);
    match what {
        "write" => match Container::open(path).and_then(|c| c.writer()) {
            Ok(w) => {
                w.root().attributes().set("child", 1_i64).unwrap();
                w.commit().unwrap();
                println!("\nwrote");
            }
            Err(e) => println!("\n{}", e.kind().code()),
        },
        "wait" => {
            let c = Container::open(path).unwrap();
            let ((), took) = timed(|| {
                let e = c.writer_timeout(Duration::from_millis(200)).unwrap_err();
                println!("\n{}", e.kind().code());
            });
            assert!(took >= Duration::from_millis(190), "{took:?}");
        }
        "create" => println!("\n{}", Container::create(path).unwrap_err().kind().code()),
        "read" => c96_read_until_the_end(path),
        "only read" => {
            let c = Container::open(path).unwrap();
            let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
            assert_eq!(a.read_vec(Region::all()).unwrap(), [5; 4]);
            println!("\n{}", c.writer().unwrap_err());
        }
        "no locks" => {
            let c = Container::open(path).unwrap();
            let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
            assert_eq!(a.read_vec(Region::all()).unwrap(), [5; 4]);
            let e = c.writer().unwrap_err();
            let options = OpenOptions::new().locking(Locking::Off);
            let w = options.open(path).unwrap().writer().unwrap();
            let a = w.array::<i32>("a").unwrap();
            a.write_scalar(region![0], 6).unwrap();
            w.commit().unwrap();
            println!("\n{}: {e}", e.kind().code());
        }
        other => panic!("{other}"),
    }
}

/// What another process said, its last line.
fn elsewhere(what: &str, path: &Path) -> String {
    let work = format!("{what}={}", path.display());
    let out = child("cases::sharing::as_another_process", Path::new(&work))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    let mut said = text.lines().filter(|l| {
        !l.is_empty() && *l != "ok" && !l.starts_with("test ") && !l.starts_with("running")
    });
    said.next_back().unwrap_or_default().to_owned()
}

#[test]
fn c94_a_second_writer_is_busy_and_changes_no_byte() {
    let (folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    w.create_group("g").unwrap();
    w.commit().unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(elsewhere("write", &path), "busy");
    assert_eq!(elsewhere("wait", &path), "busy");
    assert_eq!(elsewhere("create", &path), "already_exists");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    w.create_group("h").unwrap();
    w.commit().unwrap();
    drop(w);
    assert_eq!(elsewhere("write", &path), "wrote");
    let s = c.latest().unwrap();
    assert!(s.root().attributes().contains("child").unwrap());
    assert!(s.group("h").is_ok());
}

#[cfg(unix)]
#[test]
fn c95_closing_one_handle_lets_no_lock_go() {
    let (folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    std::fs::hard_link(&path, &hard).unwrap();
    let w = c.writer().unwrap();
    for other in [&path, &soft, &hard] {
        let r1 = Container::open(other).unwrap();
        let r2 = Container::open_read_only(other).unwrap();
        let (e, took) = timed(|| r1.writer().unwrap_err());
        assert_eq!(e.kind(), ErrorKind::Busy);
        assert!(took < within(Duration::from_millis(50)), "{took:?}");
        drop(r1);
        assert_eq!(elsewhere("write", other), "busy", "{}", other.display());
        drop(r2);
        assert_eq!(elsewhere("write", &path), "busy");
    }
    drop(w);
    assert_eq!(elsewhere("write", &hard), "wrote");
}

const ROUNDS: i64 = 300;

fn c96_check(s: &Snapshot) -> i64 {
    let n = s.root().attributes().get("n").unwrap().unwrap();
    let n = n.as_i64().unwrap();
    let a = s.array::<i32>("a").unwrap();
    assert_eq!(a.domain().unwrap().range(0), Some(0..64 * n));
    let cells = a.read_vec(Region::all()).unwrap();
    for (i, v) in cells.iter().enumerate() {
        assert_eq!(*v, i32::try_from(i / 64 + 1).unwrap());
    }
    n
}

fn c96_read_until_the_end(path: &Path) {
    for via in [ReadVia::Mmap, ReadVia::Pread] {
        let c = OpenOptions::new()
            .read_only(true)
            .via(via)
            .open(path)
            .unwrap();
        let held = c.snapshot().unwrap();
        let first = c96_check(&held);
        let mut last = first;
        while last < ROUNDS {
            let n = c96_check(&c.latest().unwrap());
            assert!(n >= last, "a reader never goes back");
            last = n;
        }
        assert_eq!(c96_check(&held), first);
    }
}

#[test]
fn c96_readers_beside_a_writer_see_whole_commits() {
    let (_folder, path) = scratch("a.orth");
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let a = array(&w, ArraySpec::<i32>::new(region![0..0]).chunks([64]));
    w.root().attributes().set("n", 0_i64).unwrap();
    w.commit().unwrap();
    let held = c.snapshot().unwrap();
    let work = format!("read={}", path.display());
    let mut process = child("cases::sharing::as_another_process", Path::new(&work))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::scope(|s| {
        s.spawn(|| c96_read_until_the_end(&path));
        s.spawn(|| {
            // The same handle as the writer's, one snapshot after another.
            while c96_check(&c.snapshot().unwrap()) < ROUNDS {}
        });
        for k in 1..=ROUNDS {
            let block = ndarray::Array1::from_elem(64, i32::try_from(k).unwrap());
            a.append(0, block.view()).unwrap();
            w.root().attributes().set("n", k).unwrap();
            w.commit().unwrap();
        }
    });
    assert!(process.wait().unwrap().success());
    assert_eq!(c96_check(&held), 0);
}

fn c98_array(mib: i64) -> (Container, Array<f32>) {
    let c = fresh();
    let w = c.writer().unwrap();
    let rows = mib * 4;
    let spec = ArraySpec::<f32>::new(region![0..rows, 0..65_536]).chunks([1, 65_536]);
    let a = array(&w, spec.codecs([Codec::shuffle(), Codec::zstd(1)]));
    for r in 0..rows {
        let row: Vec<f32> = (0..65_536)
            .map(|x| (x as f32 * 0.01 + r as f32).sin())
            .collect();
        a.write_slice(region![r, ..], &row).unwrap();
    }
    w.commit().unwrap();
    let a = c.snapshot().unwrap().array("a").unwrap();
    (c, a)
}

#[cfg(feature = "zstd")]
#[test]
fn c98_many_threads_read_right_values_through_one_handle() {
    let (_c, a) = c98_array(4);
    let rows = a.domain().unwrap().shape()[0];
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for t in 0..32_u64 {
            let (a, stop) = (&a, &stop);
            s.spawn(move || {
                let mut random = crate::disk::Random::new(t);
                while !stop.load(Ordering::Relaxed) {
                    let r = i64::try_from(random.next() % rows).unwrap();
                    let x = i64::try_from(random.next() % 60_000).unwrap();
                    let got = a.read_vec(region![r, x..x + 9]).unwrap();
                    let want = (x..x + 9).map(|x| (x as f32 * 0.01 + r as f32).sin());
                    assert_eq!(got, want.collect::<Vec<_>>());
                }
            });
        }
        std::thread::sleep(Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
    });
}

/// `RAYON_NUM_THREADS=1 cargo test --release --test spec c98 -- --ignored --nocapture --test-threads=1`, on a machine at
/// rest with two cores or more.
#[cfg(feature = "zstd")]
#[test]
#[ignore = "measures time: cargo test --release --test spec -- --ignored cases::sharing"]
fn c98_two_threads_read_at_least_one_and_a_half_times_as_fast() {
    let (_c, a) = c98_array(64);
    let half = 128_i64;
    let read = |lo: i64| {
        let mut buf = vec![0_f32; 65_536];
        for r in lo..lo + half {
            a.read_into(region![r, ..], &mut buf).unwrap();
        }
    };
    read(0);
    let best = |f: &dyn Fn()| (0..5).map(|_| timed(f).1).min().unwrap();
    let one = best(&|| {
        read(0);
        read(half);
    });
    let two = best(&|| {
        std::thread::scope(|s| {
            s.spawn(|| read(0));
            s.spawn(|| read(half));
        });
    });
    let factor = one.as_secs_f64() / two.as_secs_f64();
    println!("one thread {one:?}, two {two:?}: {factor:.2} times");
    assert!(factor >= 1.6);
}

#[cfg(unix)]
#[test]
fn c99_reading_needs_no_permission_to_write_and_makes_no_file() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let (folder, path) = scratch("a.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        array(&w, ArraySpec::<i32>::new(region![0..4]))
            .write_scalar(Region::all(), 5)
            .unwrap();
        w.commit().unwrap();
    }
    let mode = |p: &Path, bits| {
        std::fs::set_permissions(p, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(&path, 0o444);
    mode(folder.path(), 0o555);
    let work = format!("only read={}", path.display());
    let mut command = child("cases::sharing::as_another_process", Path::new(&work));
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt as _;
        m.uid() == 0
    });
    if root {
        // The superuser may write everywhere; nobody may not.
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            let wrong = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{said}{wrong}");
            assert!(
                said.contains("ermission denied") || said.contains("read-only"),
                "{said}"
            );
        }
        Err(e) => println!("skipped: this user cannot run the test as another: {e}"),
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    mode(folder.path(), 0o755);
    // A handle opened for reading refuses by itself, whoever asks.
    let c = Container::open_read_only(&path).unwrap();
    assert_eq!(c.writer().unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// A read-only container of four fives in a folder of its own, for processes that cannot write or lock it.
#[cfg(unix)]
fn four_fives() -> (tempfile::TempDir, std::path::PathBuf) {
    let (folder, path) = scratch("a.orth");
    let w = Container::create(&path).unwrap().writer().unwrap();
    array(&w, ArraySpec::<i32>::new(region![0..4]))
        .write_scalar(Region::all(), 5)
        .unwrap();
    w.commit().unwrap();
    (folder, path)
}

/// Runs `as_another_process` behind `program` with `args`; `None` where this system has or permits no such program.
#[cfg(unix)]
fn behind(program: &str, args: &[&str], what: &str, path: &Path) -> Option<String> {
    let probe = std::process::Command::new(program)
        .args(args)
        .arg("true")
        .output();
    if !probe.is_ok_and(|out| out.status.success()) {
        println!("skipped: {program} {args:?} does not run here");
        return None;
    }
    let work = format!("{what}={}", path.display());
    let inner = child("cases::sharing::as_another_process", Path::new(&work));
    let out = std::process::Command::new(program)
        .args(args)
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("ORTHANT_CHILD", &work)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}{wrong}");
    Some(said)
}

#[cfg(target_os = "linux")]
#[test]
fn c99_a_read_only_mount_is_read_and_refuses_a_writer_with_the_systems_reason() {
    let (folder, path) = four_fives();
    let mount = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && exec \"$@\"",
        folder.path().display()
    );
    let args = ["-Urm", "sh", "-c", &mount, "sh"];
    if let Some(said) = behind("unshare", &args, "only read", &path) {
        assert!(said.contains("ead-only file system"), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn c99_without_locks_reading_works_and_writing_asks_for_an_option() {
    for errno in ["ENOLCK", "ENOSYS"] {
        let (folder, path) = four_fives();
        let inject = format!("inject=fcntl:error={errno}");
        let args = ["-f", "-qq", "-o", "/dev/null", "-e", &inject];
        if let Some(said) = behind("strace", &args, "no locks", &path) {
            assert!(said.contains("lock_unavailable: "), "{said}");
            let c = Container::open(&path).unwrap();
            let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
            assert_eq!(a.read_vec(Region::all()).unwrap(), [6, 5, 5, 5]);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
