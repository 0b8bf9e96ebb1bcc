//! An array stored in other chunks reads the same.

use std::ops::ControlFlow;

use crate::medium::fresh;
use orthant::{ArraySpec, Codec, Container, DynArray, Elements, Rechunk, Region, region};

fn bytes(a: &DynArray) -> Elements {
    a.read(Region::all()).unwrap().elements
}

#[test]
fn an_array_in_other_chunks_and_shards_reads_the_same_and_keeps_its_attributes() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<i16>::new(region![-13..50, 7..60])
        .chunks([8, 10])
        .origin([2, -3])
        .dims(["t", "x"])
        .fill(-5);
    let a = w.create_array("g/a", spec).unwrap();
    let cells: Vec<i16> = (0..40 * 30).collect();
    a.write_slice(region![-10..30, 20..50], &cells).unwrap();
    a.write_scalar(region![34..50, 7..17], 3).unwrap();
    a.attributes().set("units", "K").unwrap();
    w.commit().unwrap();
    let want = bytes(&a);
    let wishes = [
        Rechunk::new([5, 7]),
        Rechunk::new([3, 4]).shards([12, 12]),
        Rechunk::new([64, 64]).codecs([Codec::zstd(1)]),
        Rechunk::new([8, 10]).memory(1),
        Rechunk::new([2, 2])
            .shards([10, 6])
            .codecs([Codec::bytes_little_endian()])
            .memory(2000),
    ];
    for wish in wishes {
        let mut steps = Vec::new();
        let (new, _) = w
            .rechunk("/g/a", &wish, |done, total| {
                steps.push((done, total));
                ControlFlow::Continue(())
            })
            .unwrap()
            .unwrap();
        assert_eq!(bytes(&new), want, "{wish:?}");
        let (done, total) = *steps.last().unwrap();
        assert_eq!(done, total);
        assert_eq!(steps.len() as u64, total + 1);
        assert!(steps.is_sorted_by_key(|s| s.0), "{steps:?}");
        w.commit().unwrap();
        let snap = c.snapshot().unwrap();
        let again = snap.dyn_array("g/a").unwrap();
        assert_eq!(bytes(&again), want);
        assert!(again.attributes().contains("units").unwrap());
        assert_eq!(again.origin().unwrap(), [2, -3]);
        assert_eq!(again.dims(), [Some("t".to_owned()), Some("x".to_owned())]);
        assert_eq!(snap.group("g").unwrap().members().unwrap().count(), 1);
    }
    let last = c.snapshot().unwrap().dyn_array("g/a").unwrap();
    assert_eq!(last.chunk_shape(), [2, 2]);
    assert_eq!(last.shard_shape().unwrap(), [10, 6]);
}

#[test]
fn ending_a_rechunk_early_changes_nothing_and_it_keeps_nothing_in_the_cache() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<String>::new(region![0..100]).chunks([7]);
    let a = w.create_array("a", spec).unwrap();
    let words: Vec<String> = (0..100).map(|i| "x".repeat(i)).collect();
    a.write_slice(Region::all(), &words).unwrap();
    let before = bytes(&a);
    let wish = Rechunk::new([5]).shards([20]).memory(64 * 4 * 40);
    let ended = w.rechunk("a", &wish, |done, _| match done {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert!(ended.unwrap().is_none());
    assert_eq!(w.root().members().unwrap().count(), 1);
    assert_eq!(bytes(&w.dyn_array("a").unwrap()), before);
    let (new, _) = w
        .rechunk("a", &wish, |_, _| ControlFlow::Continue(()))
        .unwrap()
        .unwrap();
    assert_eq!(c.cache_statistics().entries, 0);
    assert_eq!(bytes(&new), before);
    assert!(
        w.rechunk("b", &wish, |_, _| ControlFlow::Continue(()))
            .is_err()
    );
    assert!(
        w.rechunk("a", &Rechunk::new([3]).shards([20]), |_, _| {
            ControlFlow::Continue(())
        })
        .is_err()
    );
    assert_eq!(w.root().members().unwrap().count(), 1);
}

/// The container of a test, opened anew with its reads counted from nothing.
fn sheets(w: &orthant::Writer, name: &str, n: i64) -> DynArray {
    let spec = ArraySpec::<i32>::new(region![-3..n - 3, 5..n + 5, 0..n])
        .chunks([1, n as u64, n as u64])
        .origin([0, 5, 0])
        .codecs([Codec::zstd(1)]);
    let a = w.create_array(name, spec).unwrap();
    let cells: Vec<i32> = (0..n * n * n)
        .map(|i| i32::try_from(i).unwrap() * 7 + 1)
        .collect();
    a.write_slice(Region::all(), &cells).unwrap();
    DynArray::clone(&a)
}

#[test]
fn sheets_become_rods_with_each_chunk_decoded_once_in_a_hundredth_of_the_memory() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = sheets(&w, "a", 40);
    let want = bytes(&a);
    // Four sheets of 6,400 bytes fit into a quarter of this.
    let wish = Rechunk::new([40, 4, 4]).memory(4 * 4 * 6400);
    let mut steps = Vec::new();
    let (new, receipt) = w
        .rechunk("a", &wish, |done, total| {
            steps.push((done, total));
            ControlFlow::Continue(())
        })
        .unwrap()
        .unwrap();
    assert_eq!((receipt.passes, receipt.chunks_decoded), (2, 40));
    assert_eq!(receipt.chunks_written, 200);
    assert_eq!(bytes(&new), want);
    let (done, total) = *steps.last().unwrap();
    assert_eq!((done, steps.len() as u64), (total, total + 1));
    // And back, in one pass where memory allows it.
    let wish = Rechunk::new([1, 40, 40]).memory(1 << 30);
    let (back, receipt) = w
        .rechunk("a", &wish, |_, _| ControlFlow::Continue(()))
        .unwrap()
        .unwrap();
    assert_eq!((receipt.passes, receipt.chunks_decoded), (1, 200));
    assert_eq!(bytes(&back), want);
    w.commit().unwrap();
    assert_eq!(bytes(&c.snapshot().unwrap().dyn_array("a").unwrap()), want);
}

#[test]
fn texts_go_through_two_passes_and_an_end_in_the_second_changes_nothing() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<String>::new(region![0..30, 0..30]).chunks([1, 30]);
    let a = w.create_array("a", spec).unwrap();
    let words: Vec<String> = (0..900).map(|i| "é".repeat(i % 13)).collect();
    a.write_slice(region![0..30, ..], &words).unwrap();
    a.erase(region![7..19, ..]).unwrap();
    let want = bytes(&a);
    let wish = Rechunk::new([30, 1]).memory(64 * 4 * 60);
    // In the first pass the total is twice its steps.
    let mut first = None;
    let ended = w.rechunk("a", &wish, |done, total| {
        let half = *first.get_or_insert(total / 2);
        assert!(half >= 3);
        if done == half + 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert!(ended.unwrap().is_none());
    assert_eq!(w.root().members().unwrap().count(), 1);
    let (new, receipt) = w
        .rechunk("a", &wish, |_, _| ControlFlow::Continue(()))
        .unwrap()
        .unwrap();
    assert_eq!(receipt.passes, 2);
    assert_eq!(bytes(&new), want);
}

#[test]
fn a_write_beside_a_rechunk_is_found_and_nothing_has_changed() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = sheets(&w, "a", 8);
    let before = a.chunks().unwrap();
    let same = a.clone();
    let e = w
        .rechunk("a", &Rechunk::new([8, 8, 1]), |done, _| {
            if done == 0 {
                same.erase(region![0, .., ..]).unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert!(e.to_string().contains("no writes"), "{e}");
    assert_eq!(a.chunks().unwrap().len(), before.len() - 1);
    assert_eq!(w.root().members().unwrap().count(), 1);
}

#[test]
fn a_damaged_chunk_ends_a_rechunk_by_name_and_nothing_has_changed() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = sheets(&w, "a", 8);
    let mut bad = a.encoded_chunk(&[2, 0, 0]).unwrap().unwrap();
    *bad.last_mut().unwrap() ^= 1;
    bad.truncate(bad.len() - 1);
    a.put_encoded_chunk_unchecked(&[2, 0, 0], &bad).unwrap();
    let before = a.chunks().unwrap();
    let e = w
        .rechunk("a", &Rechunk::new([8, 8, 1]), |_, _| {
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert_eq!((e.array(), e.chunk()), (Some("/a"), Some(&[2, 0, 0][..])));
    assert_eq!(a.chunks().unwrap(), before);
    assert_eq!(w.root().members().unwrap().count(), 1);
}

/// Row 8 at a sixteenth of the array and a sixteenth of the budget, and whole.
#[cfg(target_os = "linux")]
mod memory {
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    const NAME: &str = "rechunk::memory::in_a_process_of_its_own";

    /// f32 sheets of 1024 x 1024, written a few at a time.
    fn make(path: &Path, sheets: i64) {
        let c = Container::create(path).unwrap();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<f32>::new(region![0..sheets, 0..1024, 0..1024])
            .chunks([1, 1024, 1024])
            .codecs([Codec::shuffle(), Codec::zstd(1)]);
        let a = w.create_array("a", spec).unwrap();
        let mut cells = vec![0_f32; 1 << 20];
        for z in 0..sheets {
            for (i, cell) in cells.iter_mut().enumerate() {
                *cell = (i as f32).mul_add(0.25, z as f32 * 1e4);
            }
            a.write_slice(region![z, .., ..], &cells).unwrap();
        }
        w.commit().unwrap();
    }

    /// Anonymous memory of a process, in bytes.
    fn anonymous(pid: u32) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find(|l| l.starts_with("RssAnon:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes << 10)
    }

    /// Rechunks in another process; its peak of anonymous memory, looked at every millisecond.
    fn peak(path: &Path, wish: &str) -> (u64, String) {
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                NAME,
                "--nocapture",
                "--test-threads=1",
            ])
            .env("ORTHANT_RECHUNK", format!("{wish};{}", path.display()))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut peak = 0;
        let status = loop {
            peak = peak.max(anonymous(child.id()).unwrap_or(0));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let out = child.wait_with_output().unwrap();
        let out = String::from_utf8(out.stdout).unwrap();
        assert!(status.success(), "{out}");
        let said = out.lines().find(|l| l.starts_with("rechunked"));
        println!(
            "peak of anonymous memory {:.1} MiB, {:?}: {}",
            peak as f64 / 1_048_576.0,
            began.elapsed(),
            said.unwrap()
        );
        (peak, said.unwrap().to_owned())
    }

    #[test]
    #[ignore = "started by the tests below in a process of its own"]
    fn in_a_process_of_its_own() {
        let Ok(wish) = std::env::var("ORTHANT_RECHUNK") else {
            return;
        };
        let parts: Vec<&str> = wish.splitn(3, ';').collect();
        let chunks: Vec<u64> = parts[0].split(',').map(|n| n.parse().unwrap()).collect();
        let memory: u64 = parts[1].parse().unwrap();
        let c = Container::open(parts[2]).unwrap();
        let w = c.writer().unwrap();
        let wish = Rechunk::new(chunks).memory(memory);
        let done = w.rechunk("a", &wish, |_, _| ControlFlow::Continue(()));
        let (_, receipt) = done.unwrap().unwrap();
        w.commit().unwrap();
        println!(
            "\nrechunked {} {} {}",
            receipt.passes, receipt.chunks_decoded, receipt.chunks_written
        );
    }

    fn check(path: &Path, sheets: i64) {
        let a = Container::open(path).unwrap().snapshot().unwrap();
        let a = a.array::<f32>("a").unwrap();
        for (z, y, x) in [(0, 0, 0), (sheets - 1, 1023, 1023), (sheets / 2, 31, 32)] {
            let want = ((y * 1024 + x) as f32).mul_add(0.25, z as f32 * 1e4);
            assert_eq!(a.read_vec(region![z, y, x]).unwrap(), [want]);
        }
    }

    #[test]
    fn a_budget_of_8_mib_rechunks_128_mib_in_little_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.orth");
        make(&path, 32);
        // Sheets to rods, which takes two passes, and rods to blocks, which takes one.
        for (wish, passes, decoded) in [("32,64,64;8388608", 2, 32), ("16,64,128;8388608", 1, 256)]
        {
            let (peak, said) = peak(&path, wish);
            let said: Vec<u64> = said
                .split(' ')
                .skip(1)
                .map(|n| n.parse().unwrap())
                .collect();
            assert_eq!(said[0], passes);
            assert!(said[1] <= 2 * decoded, "{said:?}");
            assert!(peak <= (8 + 32) << 20, "{peak}");
            check(&path, 32);
        }
    }

    /// Row 8: `cargo test --release --test spec -- --ignored --nocapture two_gibibytes`
    #[test]
    #[ignore = "2 GiB: cargo test --release --test spec -- --ignored --nocapture two_gibibytes"]
    fn a_budget_of_128_mib_rechunks_two_gibibytes_in_160_mib() {
        let folder =
            tempfile::tempdir_in(std::env::var_os("ORTHANT_LARGE").unwrap_or(".".into())).unwrap();
        let path = folder.path().join("a.orth");
        make(&path, 512);
        for (wish, decoded) in [("512,32,32;134217728", 512), ("64,64,64;134217728", 1024)] {
            let (peak, said) = peak(&path, wish);
            let said: Vec<u64> = said
                .split(' ')
                .skip(1)
                .map(|n| n.parse().unwrap())
                .collect();
            assert!(said[1] <= 2 * decoded, "{said:?}");
            assert!(peak <= 160 << 20, "{peak}");
            check(&path, 512);
        }
    }
}
