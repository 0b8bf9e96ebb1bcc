//! `man`: a manual page, generated from the command line's own description.

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::exit::{Failure, Result};
use crate::session::stdout;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb; without it the command's own page
    verb: Option<String>,
}

pub(crate) fn run(args: &Man) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    let page = match &args.verb {
        None => command,
        Some(verb) => command
            .get_subcommands()
            .find(|c| c.get_name() == verb)
            .cloned()
            .ok_or_else(|| Failure::usage(format!("no verb {verb:?}")).help("orthant --help"))?
            .display_name(format!("orthant-{verb}")),
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|e| Failure::stdout(&e))?;
    stdout(|out| out.write_all(&text))
}
