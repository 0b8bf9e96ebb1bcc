//! `put`: writes a part of an array.

use std::path::PathBuf;

use clap::Args;
use orthant::WriteReceipt;

use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::selection::Selecting;
use crate::session::{Session, print_json};
use crate::source::{self, InputFormat};

/// Arguments of `put`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant put 'ocean.orth:/model/temp[-24:0, :, :]' block.npy
  orthant put 'ocean.orth:/model/temp[0, 0, 0]' --value -9999
  cat cells.csv | orthant put 'ocean.orth:/model/temp[0, :, :]' - --format csv")]
pub(crate) struct Put {
    #[command(flatten)]
    selecting: Selecting,
    /// .npy, .raw or .csv; - is standard input
    #[arg(
        value_name = "SRC",
        required_unless_present = "value",
        conflicts_with = "value"
    )]
    source: Option<PathBuf>,
    /// One value for every element
    #[arg(long, value_name = "V", allow_hyphen_values = true)]
    value: Option<String>,
    /// Format of SRC [default: as its content or suffix says]
    #[arg(long, value_enum, value_name = "F")]
    format: Option<InputFormat>,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Put, session: &Session) -> Result<()> {
    let target = args.selecting.target()?;
    let writer = session.writer(&target.file)?;
    let array = writer.dyn_array(&target.path)?;
    let domain = array.domain()?;
    let selected = args.selecting.resolve(&target, &array, &writer.root()).map_err(|f| {
        if f.code() == "out_of_domain" {
            f.instead(format!(
                "the domain is {domain}; `orthant grow {} --axis N --lo K --hi K` moves its bounds outward",
                target.display()
            ))
        } else {
            f
        }
    })?;
    let receipt = match (&args.value, &args.source) {
        (Some(value), _) => {
            let element = array
                .data_type()
                .element_from_text(value)
                .map_err(|e| Failure::from(e).into_argument())?;
            array.write_scalar_bytes(selected.selection(), &element)?
        }
        (None, Some(path)) => {
            let shape = selected.shape();
            let block = source::block(path, args.format, &array.data_type(), &shape)?;
            array.write(selected.selection(), &block)?
        }
        (None, None) => return Err(Failure::usage("a source or --value is needed")),
    };
    let generation = writer.commit(args.message.message.as_deref())?;
    report("put", session, &target.slashed(), generation, &receipt)
}

/// What a verb that writes elements answers.
pub(crate) fn report(
    verb: &str,
    session: &Session,
    path: &str,
    generation: u64,
    receipt: &WriteReceipt,
) -> Result<()> {
    if session.json() {
        return print_json(&answer(
            verb,
            [
                ("path", text(path)),
                ("generation", uint(generation)),
                ("chunks_written", uint(receipt.chunks_written)),
                ("bytes_written", uint(receipt.bytes_written)),
            ],
        ));
    }
    session.note(&format!(
        "{path}: {} written, {}; generation {generation}",
        crate::text::count(receipt.chunks_written, "chunk"),
        crate::text::bytes(receipt.bytes_written),
    ));
    Ok(())
}
