//! `advance`: adds to the high end of an axis and cuts as much at the low end, in one commit.

use clap::Args;
use orthant::{ShrinkReceipt, WriteReceipt};

use super::append::{Slabs, add};
use crate::args::Message;
use crate::exit::Result;
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json};

/// Arguments of `advance`.
#[derive(Debug, Args)]
pub(crate) struct Advance {
    #[command(flatten)]
    slabs: Slabs,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Advance, session: &Session) -> Result<()> {
    let target = args.slabs.target()?;
    let blocks = args.slabs.read(&target)?;
    let writer = session.writer(&target.file)?;
    let (mut written, mut cut) = (WriteReceipt::default(), ShrinkReceipt::default());
    for (path, block) in blocks {
        let array = writer.dyn_array(&path)?;
        let (axis, block) = args.slabs.fit(&array, block)?;
        let (write, shrink) = array.advance_block(axis, &block)?;
        add(&mut written, &write);
        cut.dropped = cut.dropped.saturating_add(shrink.dropped);
        cut.scrubbed = cut.scrubbed.saturating_add(shrink.scrubbed);
    }
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        return print_json(&answer(
            "advance",
            [
                ("path", text(target.slashed())),
                ("generation", uint(generation)),
                ("chunks_written", uint(written.chunks_written)),
                ("bytes_written", uint(written.bytes_written)),
                ("dropped", uint(cut.dropped)),
                ("scrubbed", uint(cut.scrubbed)),
            ],
        ));
    }
    session.note(&format!(
        "{}: {} written, {} dropped, {} scrubbed; generation {generation}",
        target.display(),
        crate::text::count(written.chunks_written, "chunk"),
        cut.dropped,
        cut.scrubbed
    ));
    Ok(())
}
