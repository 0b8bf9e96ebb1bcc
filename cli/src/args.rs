//! The command line: global options and the list of verbs.
//!
//! Each verb's own arguments stand beside the verb. Must not hold behaviour.

use std::io::IsTerminal as _;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::verbs;

/// One file of chunked arrays that grow in every direction.
#[derive(Debug, Parser)]
#[command(
    name = "orthant",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    infer_long_args = false,
    after_help = "\
An object is named FILE:/path, a part of an array 'FILE:/path[-48:0, 10:20]' (quoted).
Ranges are half open, and numbers are coordinates: -1 is the element at -1.
To count from the end write end-1; `end` is one past the last coordinate.

Exit codes: 0 done, 1 a negative answer, 2 bad argument, 3 cannot open or I/O,
4 not a container, damaged or too new, 5 locked by another writer, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line, and none excludes another"
)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Answer in JSON on stdout; errors are one line of JSON on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but the answer and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Threads that decode and encode [default: one a core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// How payload is read
    #[arg(long, global = true, value_enum, value_name = "HOW")]
    pub(crate) read_via: Option<ReadVia>,
    /// Tighter limits, for files from strangers
    #[arg(long, global = true)]
    pub(crate) untrusted: bool,
    /// Take no locks; the caller answers for there being one writer, and no space is reused
    #[arg(long, global = true)]
    pub(crate) no_lock: bool,
    /// No progress bars
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Colour in output for people
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

/// How payload is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadVia {
    /// Through a map of the file
    Mmap,
    /// By positioned reads
    Pread,
}

/// When output for people has colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Never
    Never,
    /// Always
    Always,
}

impl Color {
    /// Whether what people read on stderr has colour.
    pub(crate) fn on_stderr(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                std::io::stderr().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        }
    }
}

/// Which state reading verbs look at.
#[derive(Debug, Clone, Args)]
pub(crate) struct State {
    /// The state to look at: a snapshot's name, gen:N or a time [default: the newest]
    #[arg(long, value_name = "SNAP")]
    pub(crate) at: Option<orthant::At>,
}

/// The commit message of writing verbs.
#[derive(Debug, Clone, Args)]
pub(crate) struct Message {
    /// Message kept with the commit
    #[arg(
        short,
        long = "message",
        value_name = "MESSAGE",
        allow_hyphen_values = true
    )]
    pub(crate) message: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a container, a group or an array
    Create(verbs::create::Create),
    /// Take arrays from other files: Zarr stores, .npy and .npz
    Import(verbs::import::Import),
    /// Show what a container, a group or an array is; reads no payload
    Info(verbs::info::Info),
    /// List the members of a group; reads no payload
    Ls(verbs::ls::Ls),
    /// Read a part of an array
    Get(verbs::get::Get),
    /// Write a part of an array
    Put(verbs::put::Put),
    /// Read and change attributes
    Attr(verbs::attr::Attr),
    /// Remove an object
    Rm(verbs::rm::Rm),
    /// Move or rename an object
    Mv(verbs::mv::Mv),
    /// Copy an array or a group, its payloads as they are stored
    Cp(verbs::cp::Cp),
    /// Store an array in other chunks, shards or codecs
    Rechunk(verbs::rechunk::Rechunk),
    /// Move the bounds of an axis outward
    Grow(verbs::grow::Grow),
    /// Move the bounds of an axis inward
    Trim(verbs::trim::Trim),
    /// Add to the high end of an axis
    Append(verbs::append::Append),
    /// Add to the low end of an axis
    Prepend(verbs::append::Append),
    /// Add to the high end of an axis and cut as much at the low end
    Advance(verbs::advance::Advance),
    /// Give an array any other domain of its rank
    SetDomain(verbs::set_domain::SetDomain),
    /// Move all coordinates; no byte of a chunk changes
    Translate(verbs::translate::Translate),
    /// Show what a read would touch, fetch and decode
    Explain(verbs::explain::Explain),
    /// Write a container, a group or an array as a Zarr folder
    Export(verbs::export::Export),
    /// Verify containers: structure and checksums
    Check(verbs::check::Check),
    /// Write what verifies of a damaged container to a new one
    Salvage(verbs::salvage::Salvage),
    /// Show where a file's bytes are
    Stat(verbs::stat::Stat),
    /// Show what differs between two containers, objects or generations
    Diff(verbs::diff::Diff),
    /// Digest the values of arrays, whatever their chunks and codecs
    Digest(verbs::digest::Digest),
    /// Write a container without dead space, in its place or as an archive
    Compact(verbs::compact::Compact),
    /// Tell the commits, the newest first
    Log(verbs::log::Log),
    /// Keep generations under names, list them, let them go
    Snapshot(verbs::snapshot::Snapshot),
    /// Write references with which Zarr readers open the file in place
    Refs(verbs::refs::Refs),
    /// Make the content that of a kept generation again, in a new commit
    Restore(verbs::restore::Restore),
    /// Print commits as they come
    Watch(verbs::watch::Watch),
    /// Print a shell's completions
    Completions(verbs::completions::Completions),
    /// Print a manual page
    Man(verbs::man::Man),
}
