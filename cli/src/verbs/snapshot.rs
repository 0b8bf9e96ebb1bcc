//! `snapshot`: generations that are kept under names.

use clap::{Args, Subcommand};
use orthant::{Holder, Json};

use crate::args::Message;
use crate::calendar::rfc3339;
use crate::exit::{Failure, Result};
use crate::json::{answer, object, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::Target;
use crate::text::{Table, bytes, escape};

/// Arguments of `snapshot`.
#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Keep the newest generation under a name, whatever is committed later
    Add(Add),
    /// List what is kept, and what each holds alone
    Ls(Ls),
    /// Let a kept generation go; what it alone held becomes reusable
    Rm(Rm),
}

#[derive(Debug, Args)]
struct Add {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
    /// The name, unique in the container
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    message: Message,
}

#[derive(Debug, Args)]
struct Ls {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
}

#[derive(Debug, Args)]
struct Rm {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
    /// The name
    #[arg(value_name = "NAME")]
    name: String,
    /// Even where references to its bytes were exported: they then lead to other bytes
    #[arg(long)]
    break_references: bool,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Snapshot, session: &Session) -> Result<()> {
    match &args.action {
        Action::Add(args) => add(args, session),
        Action::Ls(args) => ls(args, session),
        Action::Rm(args) => rm(args, session),
    }
}

fn add(args: &Add, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let writer = session.writer(&target.file)?;
    let kept = writer.retain(&args.name)?;
    let generation = writer.commit(args.message.message.as_deref())?;
    done(session, &args.name, kept, generation, "is kept as")
}

fn rm(args: &Rm, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let writer = session.writer(&target.file)?;
    let gone = if args.break_references {
        writer.release_and_break_references(&args.name)
    } else {
        writer.release(&args.name)
    };
    let gone = gone.map_err(|e| match e.kind() {
        orthant::ErrorKind::InvalidArgument => Failure::from(e).instead("--break-references"),
        _ => e.into(),
    })?;
    let generation = writer.commit(args.message.message.as_deref())?;
    done(
        session,
        &args.name,
        gone,
        generation,
        "is no longer kept as",
    )
}

fn done(session: &Session, name: &str, kept: u64, generation: u64, what: &str) -> Result<()> {
    if session.json() {
        let members = [
            ("name", text(name)),
            ("retained", uint(kept)),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("snapshot", members));
    }
    session.note(&format!("generation {kept} {what} {}", escape(name)));
    Ok(())
}

fn ls(args: &Ls, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let container = session.open(&target.file)?;
    let all = container.snapshots()?;
    let held = if all.is_empty() {
        Vec::new()
    } else {
        container.space()?.held_by
    };
    let alone = |name: &str| {
        let found = held.iter().find(|(holder, _)| match holder {
            Holder::Snapshot(other) => other == name,
            _ => false,
        });
        found.map_or(0, |(_, bytes)| *bytes)
    };
    if session.json() {
        let list = all.iter().map(|s| {
            object([
                ("name", text(s.name.clone())),
                ("generation", uint(s.generation)),
                ("time", text(rfc3339(s.time))),
                ("exclusive_bytes", uint(alone(&s.name))),
                ("referenced", Json::Bool(s.referenced)),
            ])
        });
        let members = [("snapshots", Json::Array(list.collect()))];
        return print_json(&answer("snapshot", members));
    }
    let mut table = Table::new(&[1, 3]);
    for s in &all {
        table.row([
            escape(&s.name).into_owned(),
            s.generation.to_string(),
            rfc3339(s.time),
            bytes(alone(&s.name)),
        ]);
    }
    stdout(|out| write!(out, "{table}"))
}
