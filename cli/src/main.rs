//! The orthant command.
//!
//! Reads the command line, runs one verb, and turns what comes of it into an exit code. Uses the library's public
//! surface only.

#![expect(
    clippy::doc_markdown,
    reason = "doc comments of arguments are their help texts, where FILE:/PATH stands as users type it"
)]

mod args;
mod atomic;
mod calendar;
mod describe;
mod exit;
mod foreign;
mod json;
mod labels;
mod npy;
mod output;
mod selection;
mod session;
mod slabs;
mod source;
mod target;
mod text;
mod verbs;
mod zarr;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Cli, Color};
use crate::exit::{Exit, Failure, Result};
use crate::session::Session;

fn main() -> ExitCode {
    // An interrupt ends the process at once: a commit that has not returned is as if it had never begun.
    let handler = ctrlc::set_handler(|| {
        atomic::remove_unfinished();
        std::process::exit(Exit::Interrupted as i32);
    });
    if handler.is_err() {
        session::stderr("warning: an interrupt will not remove temporary files");
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let json = arguments.iter().any(|a| a == "--json");
    let mut color = Color::Auto;
    let failure = match Cli::try_parse_from(&arguments) {
        Ok(cli) => {
            color = cli.globals.color;
            match run(cli) {
                Ok(()) => return ExitCode::SUCCESS,
                Err(failure) => failure,
            }
        }
        Err(e) => match from_clap(&e, json) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(failure) => failure,
        },
    };
    if let Some(text) = failure.to_stderr(json, color.on_stderr()) {
        session::stderr_lines(&text);
    }
    failure.exit_code()
}

fn run(cli: Cli) -> Result<()> {
    let threads = cli.globals.threads;
    let session = Session::new(cli.globals);
    let Some(threads) = threads else {
        return verbs::run(&cli.verb, &session);
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build()
        .map_err(|e| Failure::usage(format!("--threads {threads}: {e}")))?;
    pool.install(|| verbs::run(&cli.verb, &session))
}

/// What the parser says: help and version are answers, all else is a usage error in our form.
fn from_clap(e: &clap::Error, json: bool) -> Result<()> {
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = e.render();
            session::stdout(|out| {
                use std::io::IsTerminal as _;
                if std::io::stdout().is_terminal() {
                    write!(out, "{}", text.ansi())
                } else {
                    write!(out, "{text}")
                }
            })
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !json => {
            session::stderr_lines(&e.render().to_string());
            Err(Failure::silent(Exit::Usage))
        }
        _ => {
            let text = e.render().to_string();
            let mut lines = text.lines();
            let message = lines.next().unwrap_or_default();
            let message = message.strip_prefix("error: ").unwrap_or(message);
            let more: Vec<&str> = lines
                .map(str::trim)
                .filter(|l| !l.is_empty() && !l.starts_with("For more information"))
                .collect();
            let mut message = message.to_owned();
            let mut help = String::new();
            for line in more {
                let to =
                    if line.starts_with("Usage:") || line.starts_with("tip:") || !help.is_empty() {
                        &mut help
                    } else {
                        &mut message
                    };
                if !to.is_empty() {
                    to.push(' ');
                }
                to.push_str(line);
            }
            let failure = Failure::usage(message);
            Err(if help.is_empty() {
                failure.help("orthant --help")
            } else {
                failure.help(help)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
