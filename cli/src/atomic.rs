//! Output files that appear whole or not at all.
//!
//! Holds [`Output`]: a temporary beside the target, renamed when it is complete, removed when it is not. Must not know
//! what is written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::NamedTempFile;

use crate::exit::{Failure, Result};

/// Unfinished files that an interrupt has to remove, since it ends the process without unwinding.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Has an interrupt remove `path`.
pub(crate) fn guard(path: &Path) {
    if let Ok(mut live) = LIVE.lock() {
        live.push(path.to_owned());
    }
}

/// Lets an interrupt leave `path` alone again.
pub(crate) fn release(path: &Path) {
    if let Ok(mut live) = LIVE.lock() {
        live.retain(|p| p != path);
    }
}

/// Removes what an interrupted run leaves behind.
pub(crate) fn remove_unfinished() {
    if let Ok(mut live) = LIVE.lock() {
        for path in live.drain(..) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Where an answer is written to.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    force: bool,
    to: To,
}

#[derive(Debug)]
enum To {
    /// A file that is renamed when it is complete.
    Whole(BufWriter<NamedTempFile>),
    /// A device or a FIFO, which cannot be renamed to.
    Stream(BufWriter<File>),
}

impl Output {
    /// Starts an output file; an existing one is refused without `force`.
    pub(crate) fn create(target: &Path, force: bool) -> Result<Self> {
        let refused = |e: &io::Error| Failure::io("create the output", target, e);
        let to = match std::fs::metadata(target) {
            Ok(m) if m.is_dir() => {
                return Err(Failure::usage(format!(
                    "{}: is a folder; -o takes a file",
                    target.display()
                )));
            }
            Ok(m) if !m.is_file() => To::Stream(BufWriter::new(
                File::options()
                    .write(true)
                    .open(target)
                    .map_err(|e| refused(&e))?,
            )),
            Ok(_) if !force => return Err(exists(target)),
            _ => To::Whole(BufWriter::with_capacity(
                1 << 18,
                temporary(target).map_err(|e| refused(&e))?,
            )),
        };
        Ok(Self {
            target: target.to_owned(),
            force,
            to,
        })
    }

    /// Puts the complete file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let target = self.target;
        let failed = |e: &io::Error| Failure::io("write", &target, e);
        match self.to {
            To::Stream(mut out) => out.flush().map_err(|e| failed(&e)),
            To::Whole(out) => {
                let file = out.into_inner().map_err(|e| failed(e.error()))?;
                let name = file.path().to_owned();
                let kept = if self.force {
                    file.persist(&target)
                } else {
                    file.persist_noclobber(&target)
                };
                release(&name);
                match kept {
                    Ok(_) => Ok(()),
                    Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
                        Err(exists(&target))
                    }
                    Err(e) => Err(failed(&e.error)),
                }
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Whole(out) => out.write(buf),
            To::Stream(out) => out.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Whole(out) => out.flush(),
            To::Stream(out) => out.flush(),
        }
    }
}

fn exists(target: &Path) -> Failure {
    Failure::exists(format!("{}: the file exists", target.display()))
        .in_file(target)
        .help("--force overwrites it")
}

fn temporary(target: &Path) -> io::Result<NamedTempFile> {
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".");
    // A name of 255 bytes leaves no room for more.
    if prefix.len() > 200 {
        prefix = ".orthant.".into();
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file: what the umask leaves.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    guard(file.path());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_output_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npy");
        let mut out = Output::create(&target, false).unwrap();
        out.write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(out);
        assert!(names(dir.path()).is_empty(), "no temporary stays");
        let mut out = Output::create(&target, false).unwrap();
        out.write_all(b"whole").unwrap();
        out.finish().unwrap();
        assert_eq!(names(dir.path()), ["a.npy"]);
    }

    #[test]
    fn an_existing_file_is_overwritten_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npy");
        std::fs::write(&target, b"old").unwrap();
        assert_eq!(
            Output::create(&target, false).unwrap_err().code(),
            "already_exists"
        );
        let mut out = Output::create(&target, true).unwrap();
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.npy");
        let out = Output::create(&target, false).unwrap();
        std::fs::write(&target, b"other").unwrap();
        assert_eq!(out.finish().unwrap_err().code(), "already_exists");
        assert_eq!(std::fs::read(&target).unwrap(), b"other");
    }
}
