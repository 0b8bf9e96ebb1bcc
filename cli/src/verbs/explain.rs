//! `explain`: what a read would touch, fetch and decode, and which chunks would serve it better. Reads the index alone.

use clap::Args;
use orthant::{ChunkAdvice, Domain};

use super::get::{receipt_json, receipt_text};
use crate::args::State;
use crate::exit::Result;
use crate::json::{answer, big, object, text, uints};
use crate::selection::Selecting;
use crate::session::{Session, print_json, stdout};
use crate::text::{bytes, escape, list};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    selecting: Selecting,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(args: &Explain, session: &Session) -> Result<()> {
    let target = args.selecting.target()?;
    let snapshot = session.state(&target.file, &args.state)?;
    let array = snapshot.dyn_array(&target.path)?;
    let selected = args.selecting.resolve(&target, &array, &snapshot.root())?;
    let plan = array.explain(selected.selection())?;
    // For reads of this shape, as if they were all.
    let bounds = selected.bounds.iter().map(|&(lo, hi)| lo..hi);
    let advice = array.advise_chunks(&[Domain::new(bounds)?])?;
    if session.json() {
        let mut members = vec![("path", text(target.slashed()))];
        members.extend(selected.members());
        members.push(("plan", receipt_json(&plan)));
        let advice = object([
            ("chunk_shape", uints(advice.chunks.iter().copied())),
            ("bytes_decoded", big(advice.bytes_decoded)),
            ("bytes_decoded_then", big(advice.bytes_decoded_then)),
        ]);
        members.push(("advice", advice));
        return print_json(&answer("explain", members));
    }
    stdout(|out| {
        writeln!(
            out,
            "{}{}",
            escape(&target.display()),
            escape(&selected.region.to_string())
        )?;
        writeln!(out, "{}", receipt_text(&plan))?;
        if advice.chunks == array.chunk_shape() {
            return Ok(());
        }
        writeln!(out, "{}", advice_text(&advice))
    })
}

fn advice_text(advice: &ChunkAdvice) -> String {
    let size = |n: u128| bytes(u64::try_from(n).unwrap_or(u64::MAX));
    format!(
        "advice: if reads like this are the rule, chunks of {} would decode {} where these decode {} (orthant rechunk)",
        list(&advice.chunks),
        size(advice.bytes_decoded_then),
        size(advice.bytes_decoded),
    )
}
