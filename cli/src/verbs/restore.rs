//! `restore`: a kept generation's content again, in a new commit.

use clap::Args;
use orthant::At;

use crate::args::Message;
use crate::exit::Result;
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json};
use crate::target::Target;

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is lost: what was there before can be kept under a name first, and the history goes on."
)]
pub(crate) struct Restore {
    /// FILE
    #[arg(value_name = "FILE")]
    file: String,
    /// A snapshot's name, gen:N or a time
    #[arg(value_name = "SNAP")]
    at: At,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Restore, session: &Session) -> Result<()> {
    let target = Target::parse(&args.file)?.container()?;
    let container = session.writable(&target.file)?;
    let old = container.snapshot_at(&args.at)?;
    let restored = old.generation();
    let writer = container.writer()?;
    writer.restore(&old)?;
    writer.message(args.message.message.as_deref().unwrap_or_default())?;
    let generation = writer.commit()?;
    if session.json() {
        let members = [
            ("at", text(args.at.to_string())),
            ("restored", uint(restored)),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("restore", members));
    }
    session.note(&format!(
        "generation {generation} is generation {restored} again"
    ));
    Ok(())
}
