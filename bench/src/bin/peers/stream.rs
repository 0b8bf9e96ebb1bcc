//! A cube of 4 GiB written slab by slab, in a process of its own whose anonymous memory is watched.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orthant::{ArraySpec, Codec, Container, region};

use crate::report::Section;
use crate::{Bench, Outcome, data};

const SLAB: usize = 64;
const SLABS: usize = 128;

/// Runs [`child`] in a process of its own.
pub fn streamed(bench: &mut Bench) -> Outcome<Section> {
    let path = bench.site.folder.join("streamed.orth");
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["--streamed".as_ref(), path.as_os_str()])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    let [seconds, peak, before] = numbers.as_slice() else {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    };
    std::fs::remove_file(&path)?;
    let mut section = Section {
        title: "A streamed write of 4 GiB".to_owned(),
        about: format!(
            "{SLABS} slabs of 64 x 512 x 256 f32 (32 MiB), shuffle + Zstandard 1, chunks of 64^3, one commit at the end: {:.0} MiB/s.",
            4096.0 / seconds
        ),
        head: ["anonymous memory", "MiB"].map(str::to_owned).to_vec(),
        ..Section::default()
    };
    section.rows.push(vec![
        "the caller's slab and the program before".to_owned(),
        format!("{before:.0}"),
    ]);
    section.rows.push(vec![
        "at most, sampled each millisecond".to_owned(),
        format!("{peak:.0}"),
    ]);
    section.target(
        "13",
        "peak anonymous memory: at most 256 MiB",
        format!("{peak:.0} MiB"),
        *peak <= 256.0,
    );
    Ok(section)
}

pub fn child(path: &std::path::Path) -> Outcome<()> {
    let slab = data::cube([SLAB, 512, 256])?;
    let before = anonymous()?;
    let done = AtomicBool::new(false);
    let (seconds, peak) = std::thread::scope(|scope| -> Outcome<(f64, f64)> {
        let watch = scope.spawn(|| {
            let mut peak = 0.0_f64;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(anonymous().unwrap_or(f64::NAN));
                std::thread::sleep(Duration::from_millis(1));
            }
            peak
        });
        let began = Instant::now();
        let written = write(path, &slab);
        let seconds = began.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let peak = watch.join().map_err(|_| "the watching thread")?;
        written.map(|()| (seconds, peak))
    })?;
    println!("{seconds} {peak} {before}");
    Ok(())
}

fn write(path: &std::path::Path, slab: &[f32]) -> Outcome<()> {
    let writer = Container::create(path)?.writer()?;
    let end = (SLAB * SLABS) as i64;
    let spec = ArraySpec::<f32>::new(region![0..end, 0..512, 0..256])
        .chunks([64, 64, 64])
        .codecs([Codec::shuffle(), Codec::zstd(1)]);
    let array = writer.create_array("cube", spec)?;
    for i in 0..SLABS {
        let start = (i * SLAB) as i64;
        array.write_slice(region![start..start + SLAB as i64, .., ..], slab)?;
    }
    writer.commit()?;
    Ok(())
}

/// Resident anonymous memory of this process in MiB.
fn anonymous() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("RssAnon:"));
    let kib: f64 = line
        .and_then(|l| l.split_whitespace().nth(1))
        .ok_or("no RssAnon")?
        .parse()?;
    Ok(kib / 1024.0)
}
