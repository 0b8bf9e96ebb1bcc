//! `compact`: a container without dead space, in its place or as an archive.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use orthant::{ArchiveOptions, CopyOptions, CopyReport};

use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json};
use crate::text::bytes;

/// Arguments of `compact`.
#[derive(Debug, Args)]
#[command(after_help = "\
In place, a new file is written beside FILE, looked over, and put in FILE's place in one step. It needs
room for both. Generations, snapshots and history stay; who has the old file open reads on in it.

An archive is a function of the content alone: the same content gives the same bytes. Its identity comes
from the content's digest, its time from SOURCE_DATE_EPOCH, or from the last commit.

Examples:
  orthant compact ocean.orth
  orthant compact ocean.orth -o ocean-2026.orth --archive")]
pub(crate) struct Compact {
    /// The container
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the archive to OUT and leave FILE as it is
    #[arg(short, long, value_name = "OUT", requires = "archive")]
    output: Option<PathBuf>,
    /// Make a file without history that is a function of the content alone
    #[arg(long, requires = "output")]
    archive: bool,
    /// Overwrite OUT if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Compact although references made by `refs` name places in FILE, which they then miss
    #[arg(long, conflicts_with = "archive")]
    break_references: bool,
}

pub(crate) fn run(args: &Compact, session: &Session) -> Result<()> {
    match &args.output {
        Some(out) => archive(args, out, session),
        None => in_place(args, session),
    }
}

fn in_place(args: &Compact, session: &Session) -> Result<()> {
    let container = session.writable(&args.file)?;
    let options = CopyOptions::new().break_references(args.break_references);
    let _guard = Unfinished::beside(&args.file);
    let bar = session.bar(0, "compact");
    let report = container
        .compact(options, |done, total| {
            bar.at(done, total);
            ControlFlow::Continue(())
        })
        .map_err(|e| {
            let failure = Failure::from(e);
            if args.break_references || failure.code() != "invalid_argument" {
                failure
            } else {
                references(failure)
            }
        })?;
    drop(bar);
    told("compact", &args.file, report, session)
}

/// The library says what to break, the command by which flag.
fn references(failure: Failure) -> Failure {
    if failure.message().contains("under snapshot") {
        failure.instead("--break-references makes them void")
    } else {
        failure
    }
}

fn archive(args: &Compact, out: &Path, session: &Session) -> Result<()> {
    let snapshot = session.snapshot(&args.file)?;
    // Refused before the long part: the digest reads every value.
    if !args.force && std::fs::symlink_metadata(out).is_ok() {
        return Err(
            Failure::exists(format!("{}: the file exists", out.display()))
                .in_file(out)
                .help("--force overwrites it"),
        );
    }
    let time = source_date_epoch(std::env::var_os("SOURCE_DATE_EPOCH"))?;
    let digest = super::digest::container(&snapshot, session)?;
    let options = ArchiveOptions::new(identity(digest)).overwrite(args.force);
    let options = match time {
        Some(time) => options.time(time),
        None => options,
    };
    let _guard = Unfinished::beside(out);
    let bar = session.bar(0, "archive");
    let report = snapshot.archive_to(out, options, |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    })?;
    drop(bar);
    told("compact", out, report, session)
}

/// A UUID that follows from the content: version 8, whose bits are anybody's own.
fn identity(digest: [u8; 32]) -> [u8; 16] {
    let mut id: [u8; 16] = *digest.first_chunk().unwrap_or(&[0; 16]);
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut id;
    *version = *version & 0x0F | 0x80;
    *variant = *variant & 0x3F | 0x80;
    id
}

/// Whole seconds since the Unix epoch, as builds that are to be reproduced set them.
fn source_date_epoch(value: Option<std::ffi::OsString>) -> Result<Option<i64>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let seconds = value.to_str().and_then(|v| v.parse::<i64>().ok());
    let time = seconds.and_then(|s| s.checked_mul(1_000_000_000));
    time.map(Some).ok_or_else(|| {
        Failure::usage(format!(
            "SOURCE_DATE_EPOCH={}: not whole seconds since 1970",
            value.to_string_lossy()
        ))
    })
}

/// Says what came of it; also for `cp`.
pub(super) fn told(
    verb: &str,
    target: &Path,
    report: Option<CopyReport>,
    session: &Session,
) -> Result<()> {
    // Nobody ends it but an interrupt, which ends the process.
    let Some(report) = report else {
        return Ok(());
    };
    if session.json() {
        let members = [
            ("file", text(target.to_string_lossy())),
            ("bytes_in", uint(report.bytes_in)),
            ("bytes_out", uint(report.bytes_out)),
            ("extents", uint(report.extents)),
            // Payloads pass as they are stored; the room that copies them has no codecs.
            ("decodes", uint(0)),
        ];
        return print_json(&answer(verb, members));
    }
    session.note(&format!(
        "{}: {} in, {} out",
        target.display(),
        bytes(report.bytes_in),
        bytes(report.bytes_out)
    ));
    Ok(())
}

/// The temporary beside a target, which an interrupt removes.
pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    pub(super) fn beside(target: &Path) -> Self {
        let real = std::fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let mut name = std::ffi::OsString::from(".");
        name.push(real.file_name().unwrap_or_default());
        name.push(".tmp");
        let path = real.with_file_name(name);
        crate::atomic::guard(&path);
        Self(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        crate::atomic::release(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_a_version_8_uuid_of_the_digest() {
        let id = identity([0xFF; 32]);
        assert_eq!((id[6], id[8], id[7], id[15]), (0x8F, 0xBF, 0xFF, 0xFF));
        let id = identity([0; 32]);
        assert_eq!((id[6], id[8]), (0x80, 0x80));
    }

    #[test]
    fn the_given_time_is_whole_seconds() {
        let time = |v: &str| source_date_epoch(Some(v.into()));
        assert_eq!(time("1700000000").unwrap(), Some(1_700_000_000_000_000_000));
        for bad in ["", "now", "1.5", "99999999999999"] {
            assert_eq!(time(bad).unwrap_err().code(), "invalid_argument");
        }
        assert_eq!(source_date_epoch(None).unwrap(), None);
    }
}
