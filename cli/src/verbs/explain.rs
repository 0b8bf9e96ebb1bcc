//! `explain`: what a read would touch, fetch and decode. Reads the index alone.

use clap::Args;

use super::get::{receipt_json, receipt_text};
use crate::exit::Result;
use crate::json::{answer, text};
use crate::selection::Selecting;
use crate::session::{Session, print_json, stdout};
use crate::text::escape;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    selecting: Selecting,
}

pub(crate) fn run(args: &Explain, session: &Session) -> Result<()> {
    let target = args.selecting.target()?;
    let snapshot = session.snapshot(&target.file)?;
    let array = snapshot.dyn_array(&target.path)?;
    let selected = args.selecting.resolve(&target, &array, &snapshot.root())?;
    let plan = array.explain(selected.selection())?;
    if session.json() {
        let mut members = vec![("path", text(target.slashed()))];
        members.extend(selected.members());
        members.push(("plan", receipt_json(&plan)));
        return print_json(&answer("explain", members));
    }
    stdout(|out| {
        writeln!(
            out,
            "{}{}",
            escape(&target.display()),
            escape(&selected.region.to_string())
        )?;
        writeln!(out, "{}", receipt_text(&plan))
    })
}
