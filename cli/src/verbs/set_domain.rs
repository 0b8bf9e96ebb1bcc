//! `set-domain`: gives an array any other domain of its rank. Elements in both keep their value, all others are fill.

use clap::Args;

use super::grow::{OnArray, shrink_members};
use crate::exit::Result;
use crate::selection::domain;
use crate::session::Session;

/// Arguments of `set-domain`.
#[derive(Debug, Args)]
pub(crate) struct SetDomain {
    #[command(flatten)]
    on: OnArray,
    /// Half-open range of coordinates per axis: -48:0,0:720
    #[arg(long, value_name = "A:B,..", allow_hyphen_values = true)]
    domain: String,
}

pub(crate) fn run(args: &SetDomain, session: &Session) -> Result<()> {
    let wanted = domain(&args.domain)?;
    let open = args.on.open(session)?;
    let receipt = open.2.set_domain(wanted)?;
    args.on
        .finish("set-domain", session, open, shrink_members(&receipt))
}
