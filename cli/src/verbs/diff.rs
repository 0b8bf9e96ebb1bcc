//! `diff`: what differs between two containers, two objects, or two generations.

use clap::Args;
use orthant::{Aspect, At, Changed, DiffOptions, Json, Member, Snapshot};

use crate::exit::{Failure, Result};
use crate::json::{answer, ints, object, text};
use crate::session::{Session, print_json, stdout};
use crate::target::{Target, slashed};
use crate::text::{count, escape};

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Two files are equal when every object, type, domain, fill value, axis name, attribute and element is;
codecs and chunk shapes do not matter. Of two generations of one file, chunks count as changed when their
stored form did, and no payload is read. Exit code 1 says that something differs.

Examples:
  orthant diff before.orth after.orth
  orthant diff ocean.orth ocean.orth --at v1 --at gen:12
  orthant diff a.orth:/temp b.orth:/temp --atol 1e-6")]
pub(crate) struct Diff {
    /// The old one
    #[arg(value_name = "A[:/P]")]
    old: String,
    /// The new one
    #[arg(value_name = "B[:/P]")]
    new: String,
    /// The state to look at: a snapshot's name, gen:N or a time; once for A, and once more for B
    #[arg(long, value_name = "SNAP")]
    at: Vec<At>,
    /// Numbers this close count as equal, and NaN as equal to NaN
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    atol: f64,
}

pub(crate) fn run(args: &Diff, session: &Session) -> Result<()> {
    if args.at.len() > 2 {
        return Err(Failure::usage(
            "--at is given at most twice: for A and for B",
        ));
    }
    if args.atol.is_nan() || args.atol < 0.0 {
        return Err(Failure::usage(format!(
            "--atol {}: not a distance",
            args.atol
        )));
    }
    let old = Target::parse(&args.old)?.whole()?;
    let new = Target::parse(&args.new)?.whole()?;
    let open = |target: &Target, at: Option<&At>| -> Result<Snapshot> {
        match at {
            None => session.snapshot(&target.file),
            Some(at) => Ok(session.open(&target.file)?.snapshot_at(at)?),
        }
    };
    let a = open(&old, args.at.first())?;
    let b = open(&new, args.at.get(1))?;
    let options = DiffOptions::new()
        .at(&old.path, &new.path)
        .tolerance(args.atol);
    let diff = a.diff(&b, &options)?;
    if session.json() {
        let members = |all: &[Member]| {
            let paths = all.iter().map(|m| text(slashed(&m.path)));
            Json::Array(paths.collect())
        };
        print_json(&answer(
            "diff",
            [
                ("equal", Json::Bool(diff.is_empty())),
                ("added", members(&diff.added)),
                ("removed", members(&diff.removed)),
                (
                    "changed",
                    Json::Array(diff.changed.iter().map(changed).collect()),
                ),
            ],
        ))?;
    } else {
        stdout(|out| {
            for member in &diff.removed {
                writeln!(
                    out,
                    "- {} ({})",
                    escape(&slashed(&member.path)),
                    member.kind
                )?;
            }
            for member in &diff.added {
                writeln!(
                    out,
                    "+ {} ({})",
                    escape(&slashed(&member.path)),
                    member.kind
                )?;
            }
            diff.changed
                .iter()
                .try_for_each(|c| writeln!(out, "! {}", escape(&sentence(c))))
        })?;
    }
    if diff.is_empty() {
        Ok(())
    } else {
        Err(Failure::Negative)
    }
}

fn changed(c: &Changed) -> Json {
    let chunks = c.chunks.iter().map(|chunk| ints(chunk.iter().copied()));
    object([
        ("path", text(slashed(&c.path))),
        ("what", text(c.what.name())),
        ("chunks", Json::Array(chunks.collect())),
        (
            "attributes",
            Json::Array(c.attributes.iter().map(text).collect()),
        ),
    ])
}

/// Chunks that are named in a line for people.
const NAMED: usize = 4;

fn sentence(c: &Changed) -> String {
    let path = slashed(&c.path);
    let what = c.what.name();
    match c.what {
        Aspect::Attributes => format!("{path}: {what} {}", c.attributes.join(", ")),
        Aspect::Values => {
            let named: Vec<String> = c
                .chunks
                .iter()
                .take(NAMED)
                .map(|chunk| format!("{chunk:?}"))
                .collect();
            let more = if c.chunks.len() > NAMED { ", .." } else { "" };
            let all = count(c.chunks.len() as u64, "chunk");
            format!("{path}: {what} in {all}: {}{more}", named.join(", "))
        }
        _ => format!("{path}: {what}"),
    }
}
