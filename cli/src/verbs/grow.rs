//! `grow`: moves the bounds of an axis outward. New elements are fill; no chunk is written.

use clap::Args;
use orthant::{DynArray, Json, ShrinkReceipt};

use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::json::{answer, domain, text, uint};
use crate::selection::axis_of;
use crate::session::{Session, Writing, print_json};
use crate::target::Target;

/// An array that a verb changes, and the axis it does so on.
#[derive(Debug, Args)]
pub(crate) struct OnArray {
    /// FILE:/ARRAY
    #[arg(value_name = "FILE:/ARRAY")]
    pub(crate) target: String,
    /// The array's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) message: Message,
}

impl OnArray {
    pub(crate) fn target(&self) -> Result<Target> {
        Target::with_path(&self.target, self.path.as_deref())?
            .whole()?
            .object()
    }

    /// The array, open for writing.
    pub(crate) fn open(&self, session: &Session) -> Result<(Target, Writing, DynArray)> {
        let target = self.target()?;
        let writer = session.writer(&target.file)?;
        let array = writer.dyn_array(&target.path)?;
        Ok((target, writer, array))
    }

    /// Commits, and answers with the array's new domain.
    pub(crate) fn finish(
        &self,
        verb: &str,
        session: &Session,
        (target, writer, array): (Target, Writing, DynArray),
        more: Vec<(&'static str, Json)>,
    ) -> Result<()> {
        let bounds = array.domain()?;
        let generation = writer.commit(self.message.message.as_deref())?;
        if session.json() {
            let mut members = vec![
                ("path", text(target.slashed())),
                ("generation", uint(generation)),
                ("domain", domain(&bounds)),
            ];
            members.extend(more);
            return print_json(&answer(verb, members));
        }
        let more: Vec<String> = more.iter().map(|(k, v)| format!(", {k} {v}")).collect();
        session.note(&format!(
            "{}: domain {bounds}{}",
            target.display(),
            more.concat()
        ));
        Ok(())
    }
}

/// What a shrink answers.
pub(crate) fn shrink_members(receipt: &ShrinkReceipt) -> Vec<(&'static str, Json)> {
    vec![
        ("dropped", uint(receipt.dropped)),
        ("scrubbed", uint(receipt.scrubbed)),
    ]
}

/// Arguments of `grow`.
#[derive(Debug, Args)]
pub(crate) struct Grow {
    #[command(flatten)]
    on: OnArray,
    /// Name or number of the axis
    #[arg(long, value_name = "N")]
    axis: String,
    /// Coordinates added at the low end
    #[arg(
        long,
        value_name = "K",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    lo: u64,
    /// Coordinates added at the high end
    #[arg(
        long,
        value_name = "K",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    hi: u64,
}

pub(crate) fn run(args: &Grow, session: &Session) -> Result<()> {
    if args.lo == 0 && args.hi == 0 {
        return Err(Failure::usage("grow needs --lo or --hi"));
    }
    let open = args.on.open(session)?;
    let axis = axis_of(&args.axis, &open.2.dims())?;
    open.2.grow(axis, args.lo, args.hi)?;
    args.on.finish("grow", session, open, Vec::new())
}
