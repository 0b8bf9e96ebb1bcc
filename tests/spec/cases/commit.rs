//! Area I: commit, crash, disk full, large files. Power cuts are enumerated in `crash.rs`; here are whole processes and
//! real files.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use orthant::{
    Array, ArraySpec, Codec, Container, ErrorKind, OpenOptions, ReadVia, Region, region,
};

use crate::disk::{Disk, Op, Random, Sabotage};
use crate::medium::{fresh, held};
use crate::support::{array, child, child_work, scratch, timed, verify, within};

const ROWS: i64 = 1000;

/// A process that appends commit after commit, and says on its output which one has returned.
#[test]
fn c82_as_the_process_that_is_killed() {
    let Some(path) = child_work() else { return };
    let c = Container::open(path).unwrap();
    let w = c.writer_timeout(Duration::from_secs(10)).unwrap();
    let a: Array<i32> = w.array("a").unwrap();
    let first = a.domain().unwrap().shape()[0] / ROWS.unsigned_abs();
    let mut out = std::io::stdout();
    for k in first.. {
        let value = i32::try_from(k + 1).unwrap();
        let block = ndarray::Array1::from_elem(usize::try_from(ROWS).unwrap(), value);
        a.append(0, block.view()).unwrap();
        w.commit().unwrap();
        writeln!(out, "acknowledged {}", k + 1).unwrap();
        out.flush().unwrap();
    }
}

/// The number of whole commits in the file, every element checked.
fn c82_commits(path: &Path) -> u64 {
    let (c, took) = timed(|| Container::open(path).unwrap());
    assert!(took < within(Duration::from_millis(100)), "{took:?}");
    verify(&c);
    let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
    let cells = a.read_vec(Region::all()).unwrap();
    let rows = usize::try_from(ROWS).unwrap();
    assert_eq!(cells.len() % rows, 0, "a commit is whole or not there");
    for (x, v) in cells.iter().enumerate() {
        assert_eq!(*v, i32::try_from(x / rows + 1).unwrap());
    }
    (cells.len() / rows) as u64
}

#[test]
fn c82_a_killed_writer_leaves_whole_commits() {
    let (_folder, path) = scratch("killed.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        array(&w, ArraySpec::<i32>::new(region![0..0]).chunks([256]));
        w.commit().unwrap();
    }
    let mut random = Random::new(82);
    let mut seen = 0;
    for _ in 0..100 {
        let mut process = child("cases::commit::c82_as_the_process_that_is_killed", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (tx, rx) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, n)) = line.split_once("acknowledged ") {
                    let _ = tx.send(n.trim().parse::<u64>().unwrap());
                }
            }
        });
        // At least one commit, then at any moment.
        let first = rx.recv_timeout(Duration::from_secs(60)).unwrap();
        std::thread::sleep(Duration::from_micros(random.below(15_000) as u64));
        process.kill().unwrap();
        process.wait().unwrap();
        listener.join().unwrap();
        let acknowledged = rx.try_iter().last().unwrap_or(first);
        let found = c82_commits(&path);
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "{acknowledged} acknowledged, {found} found"
        );
        assert!(found > seen, "the next process goes on");
        seen = found;
    }
}

/// A process under a limit of file size: it commits until a write fails, and says what it sees then.
#[test]
fn c84_as_the_process_that_fills_the_disk() {
    let Some(path) = child_work() else { return };
    let c = Container::open(&path).unwrap();
    let w = c.writer().unwrap();
    let a: Array<u64> = w.array("a").unwrap();
    let mut random = Random::new(84);
    let mut good = 0_u64;
    let e = loop {
        let cells: Vec<u64> = (0..1000).map(|_| random.next()).collect();
        let done = a
            .append(0, ndarray::arr1(&cells).view())
            .and_then(|_| w.commit());
        match done {
            Ok(_) => good += 1,
            Err(e) => break e,
        }
        assert!(good < 1000, "no write failed");
    };
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    assert_eq!(e.file(), Some(path.as_path()), "{e}");
    assert!(std::error::Error::source(&e).is_some());
    let rows = |c: &Container| {
        let a = c.snapshot().unwrap().array::<u64>("a").unwrap();
        let n = a.read_vec(Region::all()).unwrap().len() as u64;
        assert_eq!(n % 1000, 0);
        n / 1000
    };
    assert_eq!(
        rows(&c),
        good,
        "the old handle reads all that was committed"
    );
    drop((a, w));
    drop(c);
    assert_eq!(rows(&Container::open(&path).unwrap()), good);
    println!("\ngood {good}: {e}");
}

#[cfg(unix)]
#[test]
fn c84_a_full_disk_loses_nothing_and_later_commits_work() {
    let (_folder, path) = scratch("full.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        let spec = ArraySpec::<u64>::new(region![0..0]).chunks([1000]);
        array(&w, spec.codecs(Codec::raw_profile()));
        w.commit().unwrap();
    }
    // A limit of 256 blocks; the signal that it sends is ignored, so that the write itself fails.
    let exe = std::env::current_exe().unwrap();
    let done = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\""])
        .arg(exe)
        .args([
            "--exact",
            "cases::commit::c84_as_the_process_that_fills_the_disk",
        ])
        .args(["--nocapture", "--test-threads=1"])
        .env("ORTHANT_CHILD", &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let good: i64 = said
        .lines()
        .find_map(|l| l.strip_prefix("good "))
        .and_then(|l| l.split(':').next())
        .unwrap_or_else(|| panic!("{said}"))
        .parse()
        .unwrap();
    assert!(good >= 3, "{said}");
    // Space again: the same file goes on.
    let c = Container::open(&path).unwrap();
    verify(&c);
    let w = c.writer().unwrap();
    let a: Array<u64> = w.array("a").unwrap();
    assert_eq!(a.domain().unwrap().range(0), Some(0..good * 1000));
    a.append(0, ndarray::Array1::from_elem(1000, 7).view())
        .unwrap();
    w.commit().unwrap();
    verify(&Container::open(&path).unwrap());
}

/// The order of the trace; that each state between is whole is enumerated in `crash.rs`.
#[test]
fn c87_data_is_durable_before_the_slot_and_the_slot_before_success() {
    let disk = Disk::new(Sabotage::None);
    let name = std::ffi::OsStr::new("a.orth");
    let raw = orthant::testing::Raw::create(disk.folder(), name).unwrap();
    let w = raw.writer().unwrap();
    for k in 0..5_u8 {
        let before = disk.ops().len();
        w.put_chunk(1, &[i64::from(k)], &[k; 5000]).unwrap();
        let generation = w.commit().unwrap();
        disk.acknowledge(generation);
        let slot =
            |op: &Op| matches!(op, Op::Write { offset, .. } if (0x1000..0x3000).contains(offset));
        let ops = disk.ops().split_off(before);
        let slots: Vec<usize> = (0..ops.len()).filter(|i| slot(&ops[*i])).collect();
        assert_eq!(slots.len(), 1, "{ops:?}");
        let at = slots[0];
        assert!(at >= 2, "data comes first");
        assert!(
            ops[..at - 1]
                .iter()
                .all(|op| matches!(op, Op::Write { .. }))
        );
        assert!(matches!(ops[at - 1], Op::Sync { .. }));
        assert!(matches!(ops[at + 1], Op::Sync { .. }));
        assert!(matches!(ops[at + 2], Op::Acknowledged { .. }));
        assert_eq!(ops.len(), at + 3);
    }
}

/// What a container holds, as text; or the kind of the first error.
fn everything(c: &Container) -> orthant::Result<String> {
    use std::fmt::Write as _;
    let s = c.snapshot()?;
    let mut all = format!("{:?}", s.root().attributes().list()?);
    for m in s.walk()? {
        let m = m?;
        write!(all, "{} {:?}", m.path, m.kind).unwrap();
        if m.kind == orthant::ObjectKind::Array {
            let a = s.dyn_array(&m.path)?;
            let block = a.read(Region::all())?;
            write!(
                all,
                "{:?}{:?}{:?}{block:?}",
                a.domain()?,
                a.dims(),
                a.attributes().list()?
            )
            .unwrap();
        } else {
            write!(all, "{:?}", s.group(&m.path)?.attributes().list()?).unwrap();
        }
    }
    Ok(all)
}

fn c89_sample() -> (Vec<u8>, Vec<String>) {
    let c = fresh();
    let w = c.writer().unwrap();
    let mut states = vec![everything(&c).unwrap()];
    w.create_group("g")
        .unwrap()
        .attributes()
        .set("units", "K")
        .unwrap();
    w.root().attributes().set("n", 5_i64).unwrap();
    let plain = ArraySpec::<i16>::new(region![-3..5]).chunks([4]);
    let a = w
        .create_array("g/plain", plain.codecs(Codec::raw_profile()))
        .unwrap();
    a.write_slice(Region::all(), &[1, 2, 3, 4, 5, 6, 7, 8])
        .unwrap();
    w.commit().unwrap();
    states.push(everything(&c).unwrap());
    let packed = ArraySpec::<u32>::new(region![0..6, 0..4]).chunks([3, 4]);
    let b = w.create_array("g/packed", packed.dims(["y", "x"])).unwrap();
    b.write_slice(Region::all(), &(0..24).collect::<Vec<_>>())
        .unwrap();
    w.commit().unwrap();
    states.push(everything(&c).unwrap());
    let sharded = ArraySpec::<i32>::new(region![0..8]).chunks([2]).shards([8]);
    let s = w.create_array("sharded", sharded).unwrap();
    s.write_slice(region![0..6], &[9, 8, 7, 6, 5, 4]).unwrap();
    w.commit().unwrap();
    states.push(everything(&c).unwrap());
    (c.to_bytes().unwrap(), states)
}

#[test]
fn c89_every_flipped_byte_is_noticed_or_means_nothing() {
    let (bytes, states) = c89_sample();
    let newest = states.last().unwrap();
    let mut silent = 0;
    let mut older = 0;
    for at in 0..bytes.len() {
        for xor in [0x01, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] ^= xor;
            let Ok(c) = held(damaged) else {
                continue;
            };
            let Ok(found) = everything(&c) else { continue };
            if found == *newest {
                silent += 1;
            } else {
                let report = c.report();
                assert!(
                    report.fell_back && states.contains(&found),
                    "byte {at} xor {xor:#x}: other content without a word"
                );
                older += 1;
            }
            // A writer on it neither panics nor makes it worse.
            if at % 16 == 0
                && let Ok(w) = c.writer()
            {
                let _ = w.create_group("more").and_then(|_| w.commit());
            }
        }
    }
    // Slot blocks and alignment are padding: two thirds of so small a file.
    println!(
        "{} bytes: {silent} flips change nothing, {older} give the commit before",
        bytes.len()
    );
    assert!(older > 100);
}

#[test]
fn c101_a_file_cut_anywhere_is_an_error_or_an_older_commit_with_a_report() {
    let (_folder, path) = scratch("cut.orth");
    let mut states = Vec::new();
    {
        let c = Container::create(&path).unwrap();
        states.push(everything(&c).unwrap());
        let w = c.writer().unwrap();
        let mut random = Random::new(101);
        for k in 0..3 {
            let spec = ArraySpec::<u64>::new(region![0..4000]).chunks([1000]);
            let a = w.create_array(&format!("a{k}"), spec).unwrap();
            let cells: Vec<u64> = (0..4000).map(|_| random.next()).collect();
            a.write_slice(Region::all(), &cells).unwrap();
            w.commit().unwrap();
            states.push(everything(&c).unwrap());
        }
    }
    let full = std::fs::metadata(&path).unwrap().len();
    assert!(full > 90_000, "{full}");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut lengths: Vec<u64> = (0..4096).step_by(37).collect();
    lengths.extend((4096..full).step_by(97));
    for &len in lengths.iter().rev() {
        file.set_len(len).unwrap();
        for via in [ReadVia::Mmap, ReadVia::Pread] {
            let opened = OpenOptions::new().read_only(true).via(via).open(&path);
            match opened.and_then(|c| Ok((everything(&c)?, c))) {
                Ok((found, c)) => {
                    assert!(c.report().fell_back && states.contains(&found), "{len}");
                }
                Err(e) => {
                    assert!(
                        matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotContainer),
                        "{len}: {e}"
                    );
                    if e.is_corruption() && len > 12_288 {
                        let text = e.to_string();
                        assert!(text.contains(&len.to_string()), "{len}: {text}");
                    }
                }
            }
        }
    }
}

/// Moves the committed end of a file to `end`, so that the next commit is written from there on; the hole before it takes
/// no space.
fn c91_stretch(path: &Path, end: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    let slot = |n: usize| 0x1000 * (n + 1);
    let generation =
        |b: &[u8], n: usize| u64::from_le_bytes(b[slot(n) + 8..slot(n) + 16].try_into().unwrap());
    let newest = usize::from(generation(&bytes, 1) > generation(&bytes, 0));
    let at = slot(newest);
    bytes[at + 24..at + 32].copy_from_slice(&end.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[at..at + 252]);
    bytes[at + 252..at + 256].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(end).unwrap();
}

#[cfg(all(unix, target_pointer_width = "64"))]
#[test]
fn c91_payloads_and_nodes_cross_four_and_eight_gib() {
    for border in [1_u64 << 32, 1 << 33] {
        let (_folder, path) = scratch("large.orth");
        {
            let w = Container::create(&path).unwrap().writer().unwrap();
            let spec = ArraySpec::<u32>::new(region![0..0, 0..1000]).chunks([1, 1000]);
            array(&w, spec.codecs(Codec::raw_profile()));
            w.commit().unwrap();
        }
        // The first commits end below the border, one payload crosses it, the others lie above.
        c91_stretch(&path, border - 50_000);
        let row = |k: u32| ndarray::Array2::from_elem((1, 1000), k + 1);
        {
            // Else the hole would be written into.
            let c = OpenOptions::new().reuse_space(false).open(&path).unwrap();
            let w = c.writer().unwrap();
            let a: Array<u32> = w.array("a").unwrap();
            for k in 0..20 {
                a.append(0, row(k).view()).unwrap();
                w.commit().unwrap();
            }
        }
        for via in [ReadVia::Mmap, ReadVia::Pread] {
            let c = OpenOptions::new()
                .via(via)
                .read_only(true)
                .open(&path)
                .unwrap();
            let a = c.snapshot().unwrap().array::<u32>("a").unwrap();
            let want: Vec<u32> = (0..20).flat_map(|k| vec![k + 1; 1000]).collect();
            assert_eq!(a.read_vec(Region::all()).unwrap(), want);
            let extents = crate::support::extents(&a);
            assert!(extents.iter().any(|e| e.1 < border));
            assert!(extents.iter().any(|e| e.1 > border));
            // Everything is read and compared by hand here: `verify` would copy the hole into memory.
            let mut problems = Vec::new();
            c.snapshot()
                .unwrap()
                .check(
                    orthant::CheckLevel::Data,
                    |_, _| std::ops::ControlFlow::Continue(()),
                    |p| problems.push(p),
                )
                .unwrap();
            assert!(problems.is_empty(), "{problems:?}");
        }
    }
}
