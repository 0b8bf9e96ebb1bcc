//! `log`: the commits of a container, the newest first.

use clap::Args;
use orthant::LogEntry;

use crate::args::State;
use crate::calendar::rfc3339;
use crate::exit::Result;
use crate::json::{answer, maybe_text, text, uint};
use crate::session::{Session, stdout};
use crate::target::Target;
use crate::text::{count, escape};

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_help = "Between 1,000 and 1,128 commits are kept.")]
pub(crate) struct Log {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(args: &Log, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let snapshot = session.state(&target.file, &args.state)?;
    let log = snapshot.log()?;
    stdout(|out| {
        for entry in log.iter().rev() {
            if session.json() {
                writeln!(out, "{}", json(entry))?;
            } else {
                writeln!(out, "{}", line(entry))?;
            }
        }
        Ok(())
    })
}

fn json(entry: &LogEntry) -> orthant::Json {
    answer(
        "log",
        [
            ("generation", uint(entry.generation)),
            ("time", text(rfc3339(entry.time))),
            ("message", text(entry.message.clone())),
            ("snapshot", maybe_text(entry.snapshot.clone())),
            ("changed", uint(entry.changed)),
            ("restore", orthant::Json::Bool(entry.restore)),
        ],
    )
}

fn line(entry: &LogEntry) -> String {
    let mut line = format!(
        "{:>6}  {}  {}",
        entry.generation,
        rfc3339(entry.time),
        count(entry.changed, "change")
    );
    if entry.restore {
        line += "  (restore)";
    }
    if let Some(name) = &entry.snapshot {
        line += &["  [", &escape(name), "]"].concat();
    }
    if !entry.message.is_empty() {
        line += &["  ", &escape(&entry.message)].concat();
    }
    line
}
