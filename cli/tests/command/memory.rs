//! An import holds a bounded part of its source in memory, of every kind, whatever the source's size.
//!
//! Linux only: what is measured is `RssAnon` of the process, looked at every millisecond. Sources are sparse files.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::host::Host;

/// Anonymous memory that an import may take beside its largest chunk.
const MOST: u64 = 256 << 20;
/// Elements of each source, of two bytes.
const SHAPE: [u64; 3] = [384, 1024, 1024];
const LEN: u64 = SHAPE[0] * SHAPE[1] * SHAPE[2] * 2;
/// Bytes of a chunk of two planes.
const CHUNK_LEN: u64 = 2 * SHAPE[1] * SHAPE[2] * 2;

fn sparse(host: &Host, name: &str, head: &[u8], len: u64) {
    host.write(name, head);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(host.path(name))
        .unwrap();
    file.set_len(head.len() as u64 + len).unwrap();
}

fn npy(host: &Host, name: &str, fortran: &str) {
    let [a, b, c] = SHAPE;
    let header =
        format!("{{'descr': '<u2', 'fortran_order': {fortran}, 'shape': ({a}, {b}, {c}), }}");
    let mut head = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    head.extend_from_slice(format!("{header:<117}\n").as_bytes());
    sparse(host, name, &head, LEN);
}

fn nifti(host: &Host) {
    let mut head = vec![0; 352];
    head[..4].copy_from_slice(&348_i32.to_le_bytes());
    let dims = [3, 1024, 1024, 384_i16];
    for (i, n) in dims.iter().enumerate() {
        head[40 + 2 * i..][..2].copy_from_slice(&n.to_le_bytes());
    }
    head[70..72].copy_from_slice(&512_i16.to_le_bytes());
    head[72..74].copy_from_slice(&16_i16.to_le_bytes());
    head[108..112].copy_from_slice(&352_f32.to_le_bytes());
    head[344..348].copy_from_slice(b"n+1\0");
    sparse(host, "v.nii", &head, LEN);
}

/// One strip, or tiles of 1024 by 1024.
fn tiff(host: &Host, name: &str, tiled: bool) {
    const DATA: u32 = 16384;
    const TILE: u32 = 1024 * 1024 * 2;
    let (width, height) = (1024_u32, 384 * 1024_u32);
    let count = if tiled { 384_u32 } else { 1 };
    let mut tags = vec![(256, 1, width), (257, 1, height), (258, 1, 16), (259, 1, 1)];
    tags.push((262, 1, 1));
    let (offsets, counts) = (1024, 1024 + 4 * 384);
    if tiled {
        tags.extend([(322, 1, 1024), (323, 1, 1024)]);
        tags.extend([(324, count, offsets), (325, count, counts)]);
    } else {
        let len = u32::try_from(LEN).unwrap();
        tags.extend([(273, 1, DATA), (278, 1, height), (279, 1, len)]);
        tags.sort_unstable();
    }
    let mut head = b"II*\0\x08\0\0\0".to_vec();
    head.extend(u16::try_from(tags.len()).unwrap().to_le_bytes());
    for (tag, count, value) in tags {
        head.extend(u16::to_le_bytes(tag));
        head.extend(4_u16.to_le_bytes());
        head.extend(u32::to_le_bytes(count));
        head.extend(u32::to_le_bytes(value));
    }
    head.resize(1024, 0);
    head.extend((0..384_u32).flat_map(|i| (DATA + i * TILE).to_le_bytes()));
    head.extend((0..384_u32).flat_map(|_| TILE.to_le_bytes()));
    head.resize(DATA as usize, 0);
    sparse(host, name, &head, LEN);
}

fn zarr(host: &Host) {
    let folder = host.path("s.zarr");
    std::fs::create_dir_all(&folder).unwrap();
    let document = r#"{"zarr_format":2,"shape":[384,1024,1024],"chunks":[2,1024,1024],"dtype":"<u2",
        "compressor":null,"fill_value":1,"order":"C","filters":null}"#;
    std::fs::write(folder.join(".zarray"), document).unwrap();
    for i in 0..192 {
        sparse(host, &format!("s.zarr/{i}.0.0"), &[], CHUNK_LEN);
    }
}

fn precomputed(host: &Host) {
    std::fs::create_dir_all(host.path("p/s")).unwrap();
    let info = r#"{"@type":"neuroglancer_multiscale_volume","type":"image","data_type":"uint16","num_channels":1,
        "scales":[{"key":"s","size":[1024,1024,384],"voxel_offset":[0,0,-9],"chunk_sizes":[[1024,1024,2]],
        "resolution":[1,1,1],"encoding":"raw"}]}"#;
    host.write("p/info", info.as_bytes());
    for i in 0..192 {
        let name = format!("p/s/0-1024_0-1024_{}-{}", 2 * i - 9, 2 * i - 7);
        sparse(host, &name, &[], CHUNK_LEN);
    }
}

/// The most anonymous memory that a run had, and its time.
fn peak(host: &Host, args: &[&str]) -> (u64, Duration) {
    let begun = Instant::now();
    let mut child = host.command(args).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("RssAnon:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) << 10);
        if let Some(ended) = child.try_wait().unwrap() {
            let mut told = String::new();
            child.stderr.unwrap().read_to_string(&mut told).unwrap();
            assert!(ended.success(), "{args:?}: {told}");
            return (most, begun.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_memory_of_an_import_does_not_grow_with_its_source() {
    if !cfg!(target_os = "linux") {
        println!("skipped: no /proc to ask");
        return;
    }
    let host = Host::new();
    npy(&host, "c.npy", "False");
    npy(&host, "f.npy", "True");
    nifti(&host);
    tiff(&host, "strip.tif", false);
    tiff(&host, "tiles.tif", true);
    zarr(&host);
    precomputed(&host);
    let mut all: Vec<(&str, Vec<&str>)> = vec![
        (".npy", vec!["c.npy"]),
        (".npy, first axis fastest", vec!["f.npy"]),
        ("NIfTI", vec!["v.nii"]),
        ("TIFF strip", vec!["strip.tif"]),
        ("TIFF tiles", vec!["tiles.tif"]),
        ("Zarr", vec!["s.zarr"]),
        ("Zarr --recode", vec!["s.zarr", "--recode"]),
        ("Zarr --chunks", vec!["s.zarr", "--chunks", "7,300,1024"]),
        ("precomputed", vec!["p"]),
    ];
    // The long form has them all; each takes a second or two.
    if std::env::var_os("ORTHANT_TABLE").is_none() {
        all.retain(|(name, _)| matches!(*name, ".npy, first axis fastest" | "Zarr --chunks"));
    }
    for (name, args) in all {
        let file = format!("{}.orth", name.replace(' ', "_"));
        let args = [&["import", "-q"], args.as_slice(), &[&file]].concat();
        let (most, time) = peak(&host, &args);
        println!(
            "{name}: {} MiB of {} MiB, {time:.1?}",
            most >> 20,
            LEN >> 20
        );
        assert!(most < MOST, "{name}: {} MiB", most >> 20);
        std::fs::remove_file(host.path(&file)).unwrap();
    }
}
