//! `salvage`: a new file with everything of a damaged one that verifies. The damaged one is only read.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use orthant::{Container, FoundBy, Json, Loss, SalvageReport};

use crate::exit::{Failure, Result};
use crate::json::{answer, object, place_of, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::text::{bytes, count, escape};
use crate::verbs::compact::Unfinished;

/// Arguments of `salvage`.
#[derive(Debug, Args)]
#[command(after_help = "\
Works where FILE cannot be opened: with a damaged header, with both slots lost, with parts of the index gone.
What does not verify is listed, and is not in OUT: lost chunks read as fill there. Objects that nothing leads
to any more are in /lost+found. One generation is saved; retained snapshots are not. OUT must not exist.

Exit code: 0 nothing was lost, 1 OUT is there and something is listed, else as for every verb.

Example:
  orthant salvage damaged.orth saved.orth")]
pub(crate) struct Salvage {
    /// The damaged container
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new container
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

pub(crate) fn run(args: &Salvage, session: &Session) -> Result<()> {
    let mut losses = Vec::new();
    let _guard = Unfinished::beside(&args.out);
    let bar = session.bar(0, "salvage");
    let progress = |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    };
    let report = Container::salvage(&args.file, &args.out, progress, |loss| losses.push(loss))
        .map_err(|e| crate::target::with_slash(Failure::from(e).of_file(&args.file), &args.file))?;
    drop(bar);
    // Nobody ends it but an interrupt, which ends the process.
    let Some(report) = report else {
        return Ok(());
    };
    if session.json() {
        print_json(&json(args, &report, &losses))?;
    } else {
        print(args, &report, &losses)?;
    }
    if losses.is_empty() {
        Ok(())
    } else {
        Err(Failure::Negative)
    }
}

fn print(args: &Salvage, report: &SalvageReport, losses: &[Loss]) -> Result<()> {
    stdout(|out| {
        for loss in losses {
            let kind = loss.kind.code();
            writeln!(out, "{kind}: {}", escape(&loss.error.to_string()))?;
        }
        writeln!(
            out,
            "{}: generation {} {}; {}, {}, {} kept in {}, {}",
            escape(&args.out.to_string_lossy()),
            report.generation,
            match report.found_by {
                FoundBy::Slot => "as its slot names it",
                FoundBy::CommitRecord => "from its commit record, as no slot leads there",
                _ => "from index nodes alone",
            },
            count(report.objects, "object"),
            count(report.chunks, "chunk"),
            count(report.attributes, "attribute"),
            bytes(report.bytes_out),
            match report.losses {
                0 => "nothing lost".to_owned(),
                1 => "1 loss".to_owned(),
                n => format!("{n} losses"),
            },
        )
    })
}

fn json(args: &Salvage, report: &SalvageReport, losses: &[Loss]) -> Json {
    let found_by = match report.found_by {
        FoundBy::Slot => "slot",
        FoundBy::CommitRecord => "commit_record",
        _ => "nodes",
    };
    answer(
        "salvage",
        [
            ("file", text(args.out.to_string_lossy())),
            ("ok", Json::Bool(losses.is_empty())),
            ("generation", uint(report.generation)),
            ("found_by", text(found_by)),
            ("objects", uint(report.objects)),
            ("chunks", uint(report.chunks)),
            ("attributes", uint(report.attributes)),
            ("recovered", uint(report.recovered)),
            ("bytes_in", uint(report.bytes_in)),
            ("bytes_out", uint(report.bytes_out)),
            ("lost", Json::Array(losses.iter().map(lost).collect())),
        ],
    )
}

fn lost(loss: &Loss) -> Json {
    let e = &loss.error;
    let kind = [
        ("kind", text(loss.kind.code())),
        ("code", text(e.kind().code())),
    ];
    object(kind.into_iter().chain(place_of(e)))
}
