//! The verbs, one a file: each holds its arguments and what it does.

pub(crate) mod advance;
pub(crate) mod append;
pub(crate) mod attr;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod cp;
pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod grow;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod log;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod mv;
pub(crate) mod put;
pub(crate) mod rechunk;
pub(crate) mod refs;
pub(crate) mod restore;
pub(crate) mod rm;
pub(crate) mod salvage;
pub(crate) mod set_domain;
pub(crate) mod snapshot;
pub(crate) mod stat;
pub(crate) mod translate;
pub(crate) mod trim;
pub(crate) mod watch;

use crate::args::Verb;
use crate::exit::Result;
use crate::session::Session;

/// Does what the command line asks.
pub(crate) fn run(verb: &Verb, session: &Session) -> Result<()> {
    match verb {
        Verb::Create(args) => create::run(args, session),
        Verb::Import(args) => import::run(args, session),
        Verb::Info(args) => info::run(args, session),
        Verb::Ls(args) => ls::run(args, session),
        Verb::Get(args) => get::run(args, session),
        Verb::Put(args) => put::run(args, session),
        Verb::Attr(args) => attr::run(args, session),
        Verb::Rm(args) => rm::run(args, session),
        Verb::Mv(args) => mv::run(args, session),
        Verb::Cp(args) => cp::run(args, session),
        Verb::Rechunk(args) => rechunk::run(args, session),
        Verb::Grow(args) => grow::run(args, session),
        Verb::Trim(args) => trim::run(args, session),
        Verb::Append(args) => append::run(args, append::End::High, session),
        Verb::Prepend(args) => append::run(args, append::End::Low, session),
        Verb::Advance(args) => advance::run(args, session),
        Verb::SetDomain(args) => set_domain::run(args, session),
        Verb::Translate(args) => translate::run(args, session),
        Verb::Explain(args) => explain::run(args, session),
        Verb::Export(args) => export::run(args, session),
        Verb::Check(args) => check::run(args, session),
        Verb::Salvage(args) => salvage::run(args, session),
        Verb::Stat(args) => stat::run(args, session),
        Verb::Diff(args) => diff::run(args, session),
        Verb::Digest(args) => digest::run(args, session),
        Verb::Compact(args) => compact::run(args, session),
        Verb::Log(args) => log::run(args, session),
        Verb::Snapshot(args) => snapshot::run(args, session),
        Verb::Refs(args) => refs::run(args, session),
        Verb::Restore(args) => restore::run(args, session),
        Verb::Watch(args) => watch::run(args, session),
        Verb::Completions(args) => completions::run(args),
        Verb::Man(args) => man::run(args),
    }
}
