//! What an import says it has done, a line an array.
//!
//! Holds [`print`]. Must not decide anything.

use orthant::Json;

use super::copy::Done;
use super::plan::{Item, Outcome};
use crate::exit::Result;
use crate::json::{answer, maybe_text, object, text, uint};
use crate::session::{Session, print_json, warn};
use crate::target::slashed;
use crate::text::{bytes, count};

pub(super) fn print(
    items: &[Item],
    generation: Option<u64>,
    dry_run: bool,
    session: &Session,
) -> Result<()> {
    if session.json() {
        let members = [
            (
                "arrays",
                Json::Array(items.iter().filter_map(row).collect()),
            ),
            ("generation", generation.map_or(Json::Null, uint)),
            ("dry_run", Json::Bool(dry_run)),
        ];
        return print_json(&answer("import", members));
    }
    for item in items {
        let from = format!("{} {}", item.source.display(), item.inside);
        match &item.outcome {
            Outcome::Done(done) => session.note(&format!(
                "{}: {} from {from}, {}, {}",
                slashed(&item.path),
                done.result(),
                count(done.chunks(), "chunk"),
                sizes(done)
            )),
            Outcome::Refused(reason) => warn(&format!("{from}: refused: {reason}")),
            _ => {}
        }
        for note in &item.notes {
            session.note(&format!("{from}: {note}"));
        }
    }
    let refused = items.iter().filter(|i| i.is_refused()).count() as u64;
    let done = items
        .iter()
        .filter(|i| matches!(i.outcome, Outcome::Done(_)))
        .count() as u64;
    if refused > 0 || done > 1 {
        session.note(&format!(
            "{} taken, {refused} refused",
            count(done, "array")
        ));
    }
    Ok(())
}

fn sizes(done: &Done) -> String {
    match done.bytes_out {
        Some(out) => format!("{} as {}", bytes(done.bytes_in), bytes(out)),
        None => "nothing written".to_owned(),
    }
}

/// A row of the report; groups have none unless they were refused.
fn row(item: &Item) -> Option<Json> {
    let (result, reason, done) = match &item.outcome {
        Outcome::Done(done) => (done.result(), None, Some(done)),
        Outcome::Refused(reason) => ("refused", Some(reason), None),
        _ => return None,
    };
    let path = done.map_or(Json::Null, |_| text(slashed(&item.path)));
    let notes = item.notes.iter().map(text);
    Some(object([
        ("path", path),
        ("source", text(&item.inside)),
        ("result", text(result)),
        ("reason", maybe_text(reason)),
        ("chunks", uint(done.map_or(0, Done::chunks))),
        ("bytes_in", uint(done.map_or(0, |d| d.bytes_in))),
        (
            "bytes_out",
            match done {
                Some(done) => done.bytes_out.map_or(Json::Null, uint),
                None => uint(0),
            },
        ),
        ("file", text(item.source.to_string_lossy())),
        ("kind", text(item.kind)),
        ("notes", Json::Array(notes.collect())),
    ]))
}
