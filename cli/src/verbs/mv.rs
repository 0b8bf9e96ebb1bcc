//! `mv`: gives an object another path. Costs the same whatever is below it.

use clap::Args;

use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json};
use crate::target::{Target, slashed};

/// Arguments of `mv`.
#[derive(Debug, Args)]
pub(crate) struct Mv {
    /// FILE:/PATH
    #[arg(value_name = "FILE:/PATH")]
    target: String,
    /// The new path in the same container
    #[arg(value_name = "/NEW")]
    to: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Mv, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?
        .whole()?
        .object()?;
    let Some(to) = args.to.strip_prefix('/') else {
        return Err(Failure::usage(format!(
            "{}: the new path starts with a slash and names no file",
            args.to
        )));
    };
    let writer = session.writer(&target.file)?;
    writer.root().rename(&target.path, to)?;
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        let members = [
            ("path", text(slashed(to))),
            ("from", text(target.slashed())),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("mv", members));
    }
    session.note(&format!("{} is now {}", target.display(), slashed(to)));
    Ok(())
}
