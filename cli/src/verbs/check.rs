//! `check`: verifies containers. Never writes.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use orthant::{CheckLevel, Container, Json, Problem, Snapshot};

use crate::exit::{Failure, Result};
use crate::json::{answer, object, place_of, ratio, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::text::{bytes, escape};

/// Header and slots, which are neither live nor to be reused.
const HEAD_LEN: u64 = 12_288;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Containers
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How much is looked at
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = Level::Full)]
    level: Level,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// The index alone
    Quick,
    /// The index, all documents, and the checksum of every payload
    Full,
    /// As full, and every chunk decoded
    Data,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Data => "data",
        }
    }
}

pub(crate) fn run(args: &Check, session: &Session) -> Result<()> {
    if let [file] = args.files.as_slice() {
        // One file that cannot be opened is that error, with its own exit code.
        let outcome = check(file, args.level, session)?;
        outcome.print(file, args.level, session)?;
        return if outcome.ok() {
            Ok(())
        } else {
            Err(Failure::Negative)
        };
    }
    let (mut good, mut bad) = (0_u64, 0_u64);
    for file in &args.files {
        match check(file, args.level, session) {
            Ok(outcome) => {
                outcome.print(file, args.level, session)?;
                if outcome.ok() {
                    good = good.saturating_add(1);
                } else {
                    bad = bad.saturating_add(1);
                }
            }
            Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
            Err(failure) => {
                bad = bad.saturating_add(1);
                print_unopened(file, args.level, &failure, session)?;
            }
        }
    }
    if !session.json() {
        stdout(|out| writeln!(out, "{good} ok, {bad} failed"))?;
    }
    if bad == 0 {
        Ok(())
    } else {
        Err(Failure::Negative)
    }
}

struct Outcome {
    generation: u64,
    problems: Vec<Problem>,
    /// Where the bytes are, from level full on; none where damage hides that.
    space: Option<Space>,
}

/// Rule 19: a report, no verdict.
struct Space {
    file: u64,
    reusable: u64,
    longest_run: u64,
    /// Kept by older generations and by readers alone.
    held: u64,
    /// None of these, nor live: padding, and the rest of blocks that hold something.
    leaked: u64,
}

impl Space {
    fn of(container: &Container, snapshot: &Snapshot) -> Option<Self> {
        let (report, live) = (container.space().ok()?, snapshot.statistics().ok()?);
        let held = report
            .held_by
            .iter()
            .fold(0, |n: u64, (_, bytes)| n.saturating_add(*bytes));
        let known = [
            HEAD_LEN,
            live.live_payload_bytes,
            live.live_index_bytes,
            report.reusable_bytes,
            held,
        ];
        Some(Self {
            file: report.file_bytes,
            reusable: report.reusable_bytes,
            longest_run: report.longest_reusable_run_bytes,
            held,
            leaked: known
                .iter()
                .fold(report.file_bytes, |rest, n| rest.saturating_sub(*n)),
        })
    }

    /// What of the file the newest generation does not need.
    fn garbage(&self) -> u64 {
        self.reusable
            .saturating_add(self.held)
            .saturating_add(self.leaked)
    }

    fn json(&self) -> Json {
        object([
            ("file_bytes", uint(self.file)),
            ("reusable_bytes", uint(self.reusable)),
            ("longest_reusable_run_bytes", uint(self.longest_run)),
            ("held_bytes", uint(self.held)),
            ("leaked_bytes", uint(self.leaked)),
            ("garbage_ratio", Json::F64(ratio(self.garbage(), self.file))),
        ])
    }
}

fn check(file: &Path, level: Level, session: &Session) -> Result<Outcome> {
    let container = session.open(file)?;
    let snapshot = container.snapshot()?;
    let library_level = match level {
        Level::Quick => CheckLevel::Quick,
        Level::Full => CheckLevel::Full,
        Level::Data => CheckLevel::Data,
    };
    let bar = session.bar(0, "check");
    let mut problems = Vec::new();
    let progress = |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    };
    snapshot.check(library_level, progress, |p| problems.push(p))?;
    Ok(Outcome {
        generation: snapshot.generation(),
        problems,
        space: (level != Level::Quick)
            .then(|| Space::of(&container, &snapshot))
            .flatten(),
    })
}

impl Outcome {
    fn ok(&self) -> bool {
        self.problems.iter().all(|p| p.warning)
    }

    fn print(&self, file: &Path, level: Level, session: &Session) -> Result<()> {
        if session.json() {
            let problems = self.problems.iter().map(problem).collect();
            let space = self.space.as_ref().map_or(Json::Null, Space::json);
            return print_json(&answer(
                "check",
                members(
                    file,
                    self.ok(),
                    level,
                    uint(self.generation),
                    problems,
                    space,
                ),
            ));
        }
        stdout(|out| {
            for p in &self.problems {
                let kind = if p.warning { "warning" } else { "damaged" };
                writeln!(out, "{kind}: {}", escape(&p.error.to_string()))?;
            }
            let verdict = if self.ok() { "ok" } else { "damaged" };
            writeln!(
                out,
                "{}: {verdict}, generation {}, level {}",
                escape(&file.to_string_lossy()),
                self.generation,
                level.name()
            )?;
            let Some(space) = &self.space else {
                return Ok(());
            };
            writeln!(
                out,
                "  {} of {} reusable, at most {} in one piece; {} held, {} in no whole block",
                bytes(space.reusable),
                bytes(space.file),
                bytes(space.longest_run),
                bytes(space.held),
                bytes(space.leaked)
            )
        })
    }
}

fn members(
    file: &Path,
    ok: bool,
    level: Level,
    generation: Json,
    problems: Vec<Json>,
    space: Json,
) -> [(&'static str, Json); 6] {
    [
        ("file", text(file.to_string_lossy())),
        ("ok", Json::Bool(ok)),
        ("level", text(level.name())),
        ("generation", generation),
        ("problems", Json::Array(problems)),
        ("space", space),
    ]
}

fn problem(p: &Problem) -> Json {
    let rule = [
        ("code", text(p.error.kind().code())),
        ("invariant", uint(p.invariant.into())),
    ];
    let verdict = [("warning", Json::Bool(p.warning))];
    object(rule.into_iter().chain(place_of(&p.error)).chain(verdict))
}

/// One of several files that could not even be opened.
fn print_unopened(file: &Path, level: Level, failure: &Failure, session: &Session) -> Result<()> {
    if session.json() {
        let fault = object([
            ("code", text(failure.code())),
            ("invariant", Json::Null),
            ("array", Json::Null),
            ("chunk", Json::Null),
            ("offset", Json::Null),
            ("expected", Json::Null),
            ("found", Json::Null),
            ("text", text(failure.message())),
            ("warning", Json::Bool(false)),
        ]);
        return print_json(&answer(
            "check",
            members(file, false, level, Json::Null, vec![fault], Json::Null),
        ));
    }
    stdout(|out| {
        writeln!(
            out,
            "{}: cannot be opened: {}",
            escape(&file.to_string_lossy()),
            escape(failure.message())
        )
    })
}
