//! `translate`: moves all coordinates, domain and origin together. No byte of a chunk changes.

use clap::Args;

use super::grow::OnArray;
use crate::exit::Result;
use crate::selection::numbers;
use crate::session::Session;

/// Arguments of `translate`.
#[derive(Debug, Args)]
pub(crate) struct Translate {
    #[command(flatten)]
    on: OnArray,
    /// How far, per axis: -3,0
    #[arg(long, value_name = "I,J", allow_hyphen_values = true)]
    by: String,
}

pub(crate) fn run(args: &Translate, session: &Session) -> Result<()> {
    let by = numbers::<i64>("--by", &args.by)?;
    let open = args.on.open(session)?;
    open.2.translate(&by)?;
    args.on.finish("translate", session, open, Vec::new())
}
