//! Real files: one writer in the world, foreign files told by name, nothing blocks, nothing is touched by reading.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use orthant::ErrorKind;
use orthant::testing::{Raw, RawWriter};

use crate::crash::{content, crc32c};
use crate::disk::Random;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.orth");
    (dir, path)
}

#[test]
fn a_new_file_is_12569_bytes_long_and_reads_back() {
    let (dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 12_569);
    assert_eq!(raw.generation().unwrap(), 2);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary is left"
    );
    let writer = raw.writer().unwrap();
    writer.put_chunk(1, &[0], &[1, 2, 3]).unwrap();
    assert_eq!(writer.commit().unwrap(), 3);
    let other = Raw::open_at(&path).unwrap();
    assert_eq!(content(&other).unwrap(), content(&raw).unwrap());
    assert_eq!(other.history().unwrap().len(), 1);
}

#[test]
fn an_existing_file_is_never_replaced() {
    let (_dir, path) = folder();
    std::fs::write(&path, b"precious").unwrap();
    assert_eq!(
        Raw::create_at(&path).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_second_writer_is_busy_at_once_through_any_name_of_the_file() {
    let (dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let writer = raw.writer().unwrap();
    let mut names = vec![path.clone()];
    #[cfg(unix)]
    {
        let (hard, soft) = (dir.path().join("hard.orth"), dir.path().join("soft.orth"));
        std::fs::hard_link(&path, &hard).unwrap();
        std::os::unix::fs::symlink(&path, &soft).unwrap();
        names.extend([hard, soft]);
    }
    let started = Instant::now();
    assert_eq!(raw.writer().unwrap_err().kind(), ErrorKind::Busy);
    for name in &names {
        let e = Raw::open_at(name).unwrap().writer().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy, "{}", name.display());
        assert!(e.is_retryable());
    }
    assert!(started.elapsed() < Duration::from_millis(50) * 4);
    drop(writer);
    for name in &names {
        drop(Raw::open_at(name).unwrap().writer().unwrap());
    }
    drop(dir);
}

#[test]
fn a_writer_waits_as_long_as_it_was_told() {
    let (_dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let first = raw.writer().unwrap();
    let started = Instant::now();
    let e = raw.writer_within(Duration::from_millis(60)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert!(started.elapsed() >= Duration::from_millis(60));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            raw.writer_within(Duration::from_secs(20))
                .unwrap()
                .commit()
                .unwrap()
        });
        std::thread::sleep(Duration::from_millis(30));
        first.commit().unwrap();
        drop(first);
        assert_eq!(second.join().unwrap(), 4);
    });
}

#[test]
fn a_reader_sees_commits_of_another_handle_when_it_refreshes_and_its_snapshot_stays() {
    let (_dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let reader = Raw::open_at(&path).unwrap();
    let old = reader.snapshot().unwrap();
    let before = old.entries().unwrap();
    let writer = raw.writer().unwrap();
    for round in 0..30_u8 {
        writer.put_chunk(1, &[0], &vec![round; 100_000]).unwrap();
        let generation = writer.commit().unwrap();
        assert_eq!(reader.refresh().unwrap(), generation);
        assert_eq!(content(&reader).unwrap(), content(&raw).unwrap());
    }
    assert_eq!(old.entries().unwrap(), before);
}

#[test]
fn foreign_files_are_named_by_what_they_look_like() {
    let (_dir, path) = folder();
    let mut tar = vec![b'x'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let files: [(&[u8], &str); 10] = [
        (b"", "is empty (0 bytes)"),
        (b"abc", "3 bytes"),
        (b"\x89HDF\r\n\x1a\nmore bytes here", "HDF5"),
        (b"PK\x03\x04 a zip archive", "Zarr store in a zip"),
        (b"\x1f\x8b\x08\0 compressed", "gzip"),
        (b"CDF\x02\0\0\0\0 classic", "netCDF-3"),
        (b"II\x2a\0\x08\0\0\0", "TIFF"),
        (b"\x93NUMPY\x01\0v\0", ".npy"),
        (b"name,value\na,1\n", "text"),
        (&tar, "tar"),
    ];
    for (bytes, word) in files {
        std::fs::write(&path, bytes).unwrap();
        let e = Raw::open_at(&path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotContainer, "{word}");
        assert!(e.to_string().contains(word), "{e}");
        assert_eq!(e.file(), Some(path.as_path()));
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once_and_named() {
    let (dir, _) = folder();
    let started = Instant::now();
    let mut cases = vec![(dir.path().to_owned(), "a directory")];
    #[cfg(unix)]
    {
        let fifo = dir.path().join("fifo");
        if std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .is_ok_and(|s| s.success())
        {
            cases.push((fifo, "a FIFO"));
        }
        cases.push((PathBuf::from("/dev/null"), "a character device"));
    }
    for (path, word) in cases {
        let e = Raw::open_at(&path).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Io);
        assert!(e.to_string().contains(word), "{e}");
    }
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_newer_major_version_is_unsupported_and_both_versions_are_named() {
    let (_dir, path) = folder();
    Raw::create_at(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 3;
    let crc = crc32c(&bytes[..252]);
    bytes[252..256].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let e = Raw::open_at(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(
        e.to_string().contains("major version 0") && e.to_string().contains("major version 3"),
        "{e}"
    );
}

#[test]
fn a_replaced_file_is_noticed_by_readers_and_stops_the_writer() {
    let (dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let reader = Raw::open_at(&path).unwrap();
    let writer = raw.writer().unwrap();
    writer.put_chunk(1, &[0], &[1]).unwrap();
    let other = dir.path().join("b.orth");
    Raw::create_at(&other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let theirs = std::fs::read(&path).unwrap();
    assert_eq!(reader.refresh().unwrap_err().kind(), ErrorKind::Replaced);
    assert_eq!(reader.generation().unwrap(), 2, "its snapshots go on");
    assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::Replaced);
    assert_eq!(writer.commit().unwrap_err().kind(), ErrorKind::Replaced);
    drop(writer);
    assert_eq!(raw.writer().unwrap_err().kind(), ErrorKind::Replaced);
    assert_eq!(std::fs::read(&path).unwrap(), theirs);
}

#[test]
fn reading_changes_nothing_in_the_folder() {
    let (dir, path) = folder();
    Raw::create_at(&path).unwrap();
    let (before, bytes) = (
        std::fs::metadata(&path).unwrap().modified().unwrap(),
        std::fs::read(&path).unwrap(),
    );
    let raw = Raw::open_at(&path).unwrap();
    content(&raw).unwrap();
    raw.refresh().unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().modified().unwrap(),
        before
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_missing_file_is_an_io_error_and_opening_creates_nothing() {
    let (dir, path) = folder();
    assert_eq!(Raw::open_at(&path).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_waits_for_a_slot_in_motion_while_a_writer_lives_and_judges_when_it_is_still() {
    let (_dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let writer = raw.writer().unwrap();
    writer.commit().unwrap();
    // A slot is torn while the writer holds its lock: nothing may be judged from the other.
    let sound = std::fs::read(&path).unwrap();
    tear(&path, 0x1000);
    let started = Instant::now();
    let e = Raw::open_at(&path).unwrap_err();
    assert_eq!((e.kind(), e.is_retryable()), (ErrorKind::Busy, true));
    assert!(
        (900..3000).contains(&started.elapsed().as_millis()),
        "{:?}",
        started.elapsed()
    );
    // The writer goes: the pair is judged after ten still milliseconds.
    drop(writer);
    let reader = Raw::open_at(&path).unwrap();
    assert!(reader.report().fell_back);
    // The slot becomes whole again while a reader waits.
    let writer = raw.writer().unwrap();
    drop(writer);
    let healed = std::fs::read(&path).unwrap();
    assert_ne!(healed, sound);
    tear(&path, 0x2000);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Raw::open_at(&path).unwrap().report());
        std::thread::sleep(Duration::from_millis(3));
        write_at(&path, 0, &healed);
        let report = waiting.join().unwrap();
        assert!(!report.fell_back, "{report:?}");
    });
}

fn tear(path: &Path, slot: usize) {
    let bytes = std::fs::read(path).unwrap();
    write_at(path, slot + 20, &[bytes[slot + 20] ^ 0xFF]);
}

/// Writes in place: a file that is mapped must not be cut.
fn write_at(path: &Path, at: usize, bytes: &[u8]) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn history_keeps_between_1000_and_1128_commits() {
    let raw = Raw::in_memory().unwrap();
    let writer = raw.writer().unwrap();
    let mut most = 0;
    for i in 0..1200 {
        writer.message(&format!("commit {i}")).unwrap();
        writer.commit().unwrap();
        let count = raw.history().unwrap().len();
        most = most.max(count);
        assert!(
            count == i + 1 || (1000..=1128).contains(&count),
            "{count} after {i}"
        );
    }
    assert_eq!(most, 1128);
    let history = raw.history().unwrap();
    assert_eq!(history.last().unwrap(), &(1202, "commit 1199".to_owned()));
    // A new writer counts the same.
    drop(writer);
    raw.writer().unwrap().commit().unwrap();
    assert_eq!(raw.history().unwrap().len(), history.len() + 1);
}

#[test]
fn live_bytes_in_the_slot_are_those_of_the_tree() {
    let raw = Raw::in_memory().unwrap();
    let writer = raw.writer().unwrap();
    for round in 0..20_i64 {
        for c in 0..50 {
            writer
                .put_chunk(
                    1,
                    &[c, round % 3],
                    &vec![1; usize::try_from(1 + c + round).unwrap()],
                )
                .unwrap();
        }
        writer.delete_chunk(1, &[round, 0]);
        writer.commit().unwrap();
        assert_eq!(
            raw.live().unwrap(),
            raw.live_counted().unwrap(),
            "round {round}"
        );
    }
}

#[test]
fn equal_operations_make_equal_files() {
    let make = || {
        let raw = Raw::in_memory().unwrap();
        let writer = raw.writer().unwrap();
        for c in 0..300 {
            writer.put_chunk(1, &[c], &[3; 33]).unwrap();
            if c % 100 == 0 {
                writer.commit().unwrap();
            }
        }
        writer.commit().unwrap();
        raw.to_bytes().unwrap()
    };
    assert_eq!(make(), make());
}

/// What a killed writer has written: chunks of some blocks each, so that space is reused after a few commits.
fn put_all(writer: &RawWriter, generation: u64) {
    for c in 0..5_u8 {
        let bytes = generation.to_le_bytes().repeat(300 * (1 + usize::from(c)));
        writer.put_chunk(1, &[i64::from(c)], &bytes).unwrap();
    }
}

/// What a child process runs: it commits until it is killed, and says so each time.
#[test]
fn a_child_that_commits_when_its_parent_asks() {
    let Some(path) = std::env::var_os("ORTHANT_TEST_CHILD") else {
        return;
    };
    let raw = Raw::open_at(Path::new(&path)).unwrap();
    let writer = raw.writer_within(Duration::from_secs(20)).unwrap();
    loop {
        put_all(&writer, raw.generation().unwrap() + 1);
        println!("committed {}", writer.commit().unwrap());
    }
}

/// 500 times; `ORTHANT_KILLS=20000` for a longer form.
#[test]
fn a_killed_writer_leaves_a_whole_commit_and_a_free_lock() {
    use std::io::{BufRead, BufReader};
    let kills = std::env::var("ORTHANT_KILLS").map_or(500, |n| n.parse().unwrap());
    let (_dir, path) = folder();
    let raw = Raw::create_at(&path).unwrap();
    let mut random = Random::new(11);
    let (mut commits, mut ahead) = (0, 0);
    for round in 0..kills {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "files::a_child_that_commits_when_its_parent_asks",
                "--nocapture",
            ])
            .env("ORTHANT_TEST_CHILD", &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("committed ")?.1.parse::<u64>().ok());
        let first = said.next().unwrap();
        assert_eq!(
            raw.writer().unwrap_err().kind(),
            ErrorKind::Busy,
            "another process writes"
        );
        std::thread::sleep(Duration::from_micros(random.below(4000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = said.last().unwrap_or(first);
        let started = Instant::now();
        drop(raw.writer().unwrap());
        assert!(started.elapsed() < Duration::from_secs(1));
        let generation = raw.refresh().unwrap();
        assert!(
            generation >= acknowledged && first > 2,
            "round {round}: {acknowledged} was acknowledged, {generation} is there"
        );
        commits += acknowledged - first + 1;
        ahead += u64::from(generation > acknowledged);
        let chunks: Vec<_> = raw
            .entries()
            .unwrap()
            .into_iter()
            .filter(|e| e.key[0] == 8)
            .collect();
        assert_eq!(chunks.len(), 5);
        for (c, chunk) in chunks.iter().enumerate() {
            let whole = generation.to_le_bytes().repeat(300 * (1 + c));
            assert!(
                chunk.content == whole,
                "round {round}, chunk {c}: a commit is whole"
            );
        }
    }
    let len = std::fs::metadata(&path).unwrap().len();
    println!(
        "{kills} writers killed beside {commits} commits, {ahead} between the last one and its word; file {len} bytes"
    );
    crate::support::figure(5, "writers killed", u64::try_from(kills).unwrap());
    // Five chunks of 36 kB and their nodes: of all those commits nothing else is left.
    assert!(len < 400_000, "{len}");
}

#[test]
fn a_sparse_file_of_terabytes_opens() {
    let (_dir, path) = folder();
    Raw::create_at(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bits in [42, 44, 46] {
        if file.set_len(1 << bits).is_err() {
            continue;
        }
        let raw = Raw::open_at(&path).unwrap();
        assert_eq!(raw.report().ignored_tail_bytes, (1 << bits) - 12_569);
        assert_eq!(content(&raw).unwrap().len(), 1);
    }
}
