//! Area K: space.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use orthant::{ArraySpec, Codec, Container, CopyOptions, ErrorKind, OpenOptions, Rechunk, region};

use crate::disk::{Disk, ENOSPC, Fault, Random};
use crate::medium::fresh;
use crate::support::{verify, within};

/// A file in memory where there is such a file system, and its folder.
fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let path = folder.path().join("data.orth");
    (folder, path)
}

fn len(path: &std::path::Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn noise(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| random.next() as f64).collect()
}

#[test]
fn c104_create_and_delete_for_ever_leaves_a_small_file() {
    let (_folder, path) = file();
    let mut random = Random::new(104);
    let mut c = Container::create(&path).unwrap();
    let values = 1 << 17;
    let mut largest = 0;
    for round in 0..200 {
        if round % 10 == 9 {
            drop(c);
            c = Container::open(&path).unwrap();
        }
        let w = c.writer().unwrap();
        let spec = ArraySpec::<f64>::new(region![0..values]).codecs(Codec::raw_profile());
        let a = w.create_array("a", spec).unwrap();
        let cells = noise(&mut random, usize::try_from(values).unwrap());
        a.write_slice(region![..], &cells).unwrap();
        w.commit().unwrap();
        w.remove("a", false).unwrap();
        w.commit().unwrap();
        drop(w);
        largest = largest.max(len(&path));
        let most = (4 << 20) + (4 << 20) / 100 * (round / 100 + 1);
        assert!(largest <= most, "round {round}: {largest}");
    }
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f64>::new(region![0..512]).codecs(Codec::raw_profile());
    let a = w.create_array("b", spec).unwrap();
    w.commit().unwrap();
    let before = len(&path);
    for i in 0..10_000_u32 {
        a.write_slice(region![..], &[f64::from(i); 512]).unwrap();
        w.commit().unwrap();
    }
    let after = len(&path);
    println!("C104: at most {largest} bytes, {before} before and {after} after 10,000 overwrites");
    assert!(after <= before + (1 << 20), "{before} {after}");
    drop((w, a));
    verify(&c);
}

#[test]
fn c106_compaction_compacts() {
    let (folder, path) = file();
    let mut random = Random::new(106);
    // 20 MiB live in 1,000 arrays, written eleven times over without reuse of space.
    let cells: Vec<Vec<f64>> = (0..1000).map(|_| noise(&mut random, 2560)).collect();
    let fill = |c: &Container, times: usize| {
        let w = c.writer().unwrap();
        for round in 0..times {
            for (i, cells) in cells.iter().enumerate() {
                let path = format!("g/a{i}");
                let spec = ArraySpec::<f64>::new(region![0..2560]).codecs(Codec::raw_profile());
                let a = match round {
                    0 => w.create_array(&path, spec),
                    _ => w.array(&path),
                };
                a.unwrap().write_slice(region![..], cells).unwrap();
            }
            w.commit().unwrap();
        }
    };
    let options = OpenOptions::new().reuse_space(false);
    let c = options.create(&path).unwrap();
    fill(&c, 11);
    assert!(len(&path) >= 200 << 20);
    let fresh = folder.path().join("fresh.orth");
    let started = Instant::now();
    fill(&options.create(&fresh).unwrap(), 1);
    let writing = started.elapsed();
    let reader = c.snapshot().unwrap();
    let started = Instant::now();
    let report = c.compact(CopyOptions::new(), go_on).unwrap().unwrap();
    let took = started.elapsed();
    println!(
        "C106: {} to {} bytes in {took:?}, fresh {} in {writing:?}",
        report.bytes_in,
        report.bytes_out,
        len(&fresh)
    );
    assert_eq!(len(&path), report.bytes_out);
    assert!(report.bytes_out * 100 <= len(&fresh) * 105);
    assert!(took <= writing * 3 + Duration::from_millis(500), "{took:?}");
    // The reader goes on.
    let old = reader.array::<f64>("g/a7").unwrap();
    assert_eq!(old.read_vec(region![..]).unwrap(), cells[7]);
    // Again: nothing to gain, and soon told.
    let c = Container::open(&path).unwrap();
    let started = Instant::now();
    let again = c.compact(CopyOptions::new(), go_on).unwrap().unwrap();
    assert!(started.elapsed() < within(Duration::from_secs(1)));
    assert_eq!(again.bytes_out, report.bytes_out);
    let c = Container::open(&path).unwrap();
    let a = c.snapshot().unwrap().array::<f64>("g/a999").unwrap();
    assert_eq!(a.read_vec(region![..]).unwrap(), cells[999]);
}

#[test]
fn c106_a_disk_too_small_for_the_copy_is_an_error_and_changes_nothing() {
    let disk = Disk::new(crate::disk::Sabotage::None);
    let name = crate::crash::name();
    let raw = orthant::testing::Raw::create(disk.folder(), name).unwrap();
    let w = raw.writer().unwrap();
    for i in 0..20 {
        w.put_chunk(1, &[i], &[7; 100_000]).unwrap();
    }
    w.put(
        &[2, 0x81],
        b"\0\0{\"zarr_format\":3,\"node_type\":\"group\"}",
    );
    w.commit().unwrap();
    drop(w);
    let before = disk.contents(name).unwrap();
    // The temporary can be made, and takes no byte.
    disk.fail(2, Fault::Errno(ENOSPC), true);
    let e = raw
        .container()
        .compact(CopyOptions::new(), go_on)
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    disk.heal();
    assert_eq!(disk.contents(name).unwrap(), before);
    assert_eq!(disk.names(), [crate::crash::NAME]);
}

#[test]
fn c110_sparse_stays_sparse() {
    let n = 1_000_000;
    let cells = [
        ([0, 0], 1.5),
        ([999_999, 999_999], -3.0),
        ([123_456, 654_321], 7.0),
    ];
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f64>::new(region![0..n, 0..n])
        .chunks([1000, 1000])
        .fill(2.5);
    let a = w.create_array("a", spec).unwrap();
    for ([y, x], value) in cells {
        a.write_slice(region![y, x], &[value]).unwrap();
    }
    w.commit().unwrap();
    let probe = |c: &Container| {
        let a = c.snapshot().unwrap().array::<f64>("a").unwrap();
        for ([y, x], value) in cells {
            assert_eq!(a.read_vec(region![y, x]).unwrap(), [value]);
        }
        let mut random = Random::new(110);
        for _ in 0..1000 {
            let [y, x] = [0; 2].map(|_| i64::try_from(random.below(1_000_000)).unwrap());
            let known = cells.iter().find(|(at, _)| *at == [y, x]);
            let right = known.map_or(2.5, |(_, value)| *value);
            assert_eq!(a.read_vec(region![y, x]).unwrap(), [right]);
        }
        a.chunks().unwrap().len()
    };
    let timed = |what: &str, f: &mut dyn FnMut() -> Vec<u8>| {
        let started = Instant::now();
        let bytes = f();
        let took = started.elapsed();
        println!("C110: {what}: {} bytes in {took:?}", bytes.len());
        assert!(took < within(Duration::from_secs(2)), "{what}: {took:?}");
        // A stored chunk of eight million bytes with one cell in it is a few hundred.
        assert!(bytes.len() < 100_000, "{what}: {}", bytes.len());
        Container::from_bytes(bytes).unwrap()
    };
    // The array to another container, the whole container, and the same in other chunks.
    let copied = timed("array", &mut || {
        let other = Container::in_memory().unwrap();
        let to = other.writer().unwrap();
        let from = c.snapshot().unwrap().dyn_array("a").unwrap();
        from.copy_array_to(&to, "a").unwrap();
        to.commit().unwrap();
        other.to_bytes().unwrap()
    });
    assert_eq!(probe(&copied), 3);
    let whole = timed("container", &mut || {
        let snapshot = c.snapshot().unwrap();
        snapshot.copy_to_bytes(CopyOptions::new()).unwrap()
    });
    assert_eq!(probe(&whole), 3);
    let rechunked = timed("rechunk", &mut || {
        let other = Container::from_bytes(whole.to_bytes().unwrap()).unwrap();
        let w = other.writer().unwrap();
        let wish = Rechunk::new([500, 2000]);
        w.rechunk("a", &wish, go_on).unwrap().unwrap();
        w.commit().unwrap();
        other.to_bytes().unwrap()
    });
    assert!(probe(&rechunked) <= 6);
}
