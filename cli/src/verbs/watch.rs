//! `watch`: commits of any process, as they come.

use std::time::Duration;

use clap::Args;

use crate::calendar::rfc3339;
use crate::exit::Result;
use crate::json::{answer, text, uint};
use crate::session::{Session, stdout};
use crate::target::Target;
use crate::text::escape;

/// How long one wait is; an interrupt ends it at once.
const ONE_WAIT: Duration = Duration::from_secs(3600);

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
    /// End after so many commits
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

pub(crate) fn run(args: &Watch, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let container = session.open(&target.file)?;
    let mut known = container.latest()?.generation();
    let mut left = args.count;
    while left != Some(0) {
        let Some(newer) = container.wait_newer(known, ONE_WAIT)? else {
            continue;
        };
        // Several commits may have come since the last look. Those without a history record are told by number and time.
        let mut log = newer.log()?;
        log.retain(|e| e.generation > known);
        let mut lines: Vec<(u64, i64, String)> = log
            .into_iter()
            .map(|e| (e.generation, e.time, e.message))
            .collect();
        if lines.last().is_none_or(|l| l.0 < newer.generation()) {
            lines.push((newer.generation(), newer.time(), String::new()));
        }
        known = newer.generation();
        drop(newer);
        for (generation, time, message) in lines {
            if left == Some(0) {
                break;
            }
            left = left.map(|n| n.saturating_sub(1));
            let members = [
                ("generation", uint(generation)),
                ("time", text(rfc3339(time))),
                ("message", text(message.clone())),
            ];
            stdout(|out| {
                if session.json() {
                    writeln!(out, "{}", answer("watch", members))
                } else {
                    let message = escape(&message);
                    writeln!(out, "{generation:>6}  {}  {message}", rfc3339(time))
                }
            })?;
        }
    }
    Ok(())
}
