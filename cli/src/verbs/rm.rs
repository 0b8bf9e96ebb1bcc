//! `rm`: removes an object.

use clap::Args;
use orthant::ObjectKind;

use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json};
use crate::target::Target;

/// Arguments of `rm`.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// FILE:/PATH
    #[arg(value_name = "FILE:/PATH")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// A group with all that is below it
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Rm, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?
        .whole()?
        .object()?;
    let writer = session.writer(&target.file)?;
    let root = writer.root();
    let group = matches!(root.kind(&target.path), Ok(Some(ObjectKind::Group)));
    root.remove(&target.path, args.recursive).map_err(|e| {
        let failure = Failure::from(e);
        if group && !args.recursive {
            failure.instead("rm -r removes a group with all that is below it")
        } else {
            failure
        }
    })?;
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        let members = [
            ("path", text(target.slashed())),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("rm", members));
    }
    session.note(&format!("removed {}", target.display()));
    Ok(())
}
