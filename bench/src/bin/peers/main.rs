//! orthant beside its peers and beside what the machine can do, on the same data in the same run.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin peers -- [--python PYTHON] [--small] [--alone] [SECTION...]`
//!
//! Sections: see [`SECTIONS`]; all of them unless some are named. Each replaces its part of `BENCHMARKS.md` (with
//! `--small` or, without the peers, `--alone`, for trying things out, it is printed only). `--python` names the interpreter of an environment with
//! `bench/requirements.txt`; without it the Python peers are left out, which the page then says. HDF5 is Debian's
//! `libhdf5-dev`. Works in /dev/shm where that exists, so that no disk is measured and a sync costs nothing for anybody.

mod cube;
mod data;
mod index;
mod limits;
mod ours;
mod peer;
mod python;
mod report;
mod rust_peers;
mod stream;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use peer::{Peer, Site};
use report::Section;

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

type Run = fn(&mut Bench) -> Outcome<Section>;

/// In the order of the page.
const SECTIONS: [(&str, Run); 8] = [
    ("cube-zstd", |b| cube::whole(b, "zstd")),
    ("cube-raw", |b| cube::whole(b, "raw")),
    ("cube-lz4", |b| cube::whole(b, "lz4")),
    ("threads", cube::threads),
    ("small", cube::small),
    ("index", index::sizes),
    ("array", index::array),
    ("stream", stream::streamed),
];

/// Everybody who is compared, and where.
pub struct Bench {
    pub site: Arc<Site>,
    /// orthant first.
    pub peers: Vec<Box<dyn Peer>>,
}

fn main() -> Outcome<()> {
    let mut wanted = Vec::new();
    let (mut python, mut small, mut alone) = (None, false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--python" => python = arguments.next().map(PathBuf::from),
            "--small" => small = true,
            "--streamed" => return stream::child(Path::new(&arguments.next().unwrap_or_default())),
            "--alone" => alone = true,
            name => wanted.push(name.to_owned()),
        }
    }
    if let Some(name) = wanted.iter().find(|w| SECTIONS.iter().all(|s| s.0 != **w)) {
        return Err(format!("no section `{name}`").into());
    }
    let base = Path::new("/dev/shm");
    let base = if base.is_dir() {
        base.to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = tempfile::Builder::new().prefix("peers").tempdir_in(base)?;
    let mut bench = bench(folder.path(), python.as_deref(), small)?;
    if alone {
        bench.peers.truncate(1);
    }
    for (name, run) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            let section = run(&mut bench)?;
            println!("{}", section.text());
            if !small && !alone {
                report::put(name, &section, &SECTIONS.map(|s| s.0))?;
            }
        }
    }
    Ok(())
}

fn bench(folder: &Path, python: Option<&Path>, small: bool) -> Outcome<Bench> {
    let shape = if small {
        [128, 256, 256]
    } else {
        [512, 512, 256]
    };
    let cube = data::cube(shape)?;
    data::save(&cube, &folder.join("cube.f32"))?;
    let site = Arc::new(Site {
        folder: folder.to_owned(),
        shape,
        cube,
    });
    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(ours::Ours::new(Arc::clone(&site))?),
        Box::new(rust_peers::Zarrs::new(Arc::clone(&site))?),
        Box::new(rust_peers::Hdf5::new(Arc::clone(&site))?),
    ];
    if let Some(python) = python {
        let (process, names) = python::Process::start(python, folder, shape)?;
        let process = Rc::new(RefCell::new(process));
        for name in names {
            let process = Rc::clone(&process);
            peers.push(Box::new(python::Python { process, name }));
        }
    }
    Ok(Bench { site, peers })
}
