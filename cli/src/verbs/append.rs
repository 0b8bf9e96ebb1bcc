//! `append` and `prepend`: add to the high or the low end of an axis. Several arrays grow in one commit.

use std::path::PathBuf;

use clap::Args;
use orthant::{Block, DynArray, WriteReceipt};

use super::put::report;
use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::selection::axis_of;
use crate::session::Session;
use crate::source;
use crate::target::Target;

/// Where an axis grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Low,
    High,
}

/// Arguments of `append` and `prepend`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant append ocean.orth:/model/temp hour.npy --axis time
  orthant append ocean.orth:/model --axis time temp=hour.npy time=stamp.npy")]
pub(crate) struct Append {
    #[command(flatten)]
    pub(crate) slabs: Slabs,
    #[command(flatten)]
    message: Message,
}

/// What is added, and where.
#[derive(Debug, Args)]
pub(crate) struct Slabs {
    /// FILE:/ARRAY, or FILE[:/GROUP] for several arrays
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// A .npy file for the one array, or NAME=SRC.npy for each
    #[arg(value_name = "SRC", required = true)]
    sources: Vec<String>,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Name or number of the axis
    #[arg(long, value_name = "N")]
    axis: String,
}

impl Slabs {
    pub(crate) fn target(&self) -> Result<Target> {
        Target::with_path(&self.target, self.path.as_deref())?.whole()
    }

    /// The paths of the arrays and their blocks, all read before anything is changed.
    pub(crate) fn read(&self, target: &Target) -> Result<Vec<(String, Block)>> {
        let named = |text: &str| {
            let (name, file) = text.split_once('=')?;
            // A file that is there and has such a name is meant as it stands.
            (!PathBuf::from(text).exists()).then(|| (name.to_owned(), PathBuf::from(file)))
        };
        let pairs: Option<Vec<_>> = self.sources.iter().map(|s| named(s)).collect();
        let join = |name: &str| {
            if target.path.is_empty() {
                name.to_owned()
            } else {
                format!("{}/{name}", target.path)
            }
        };
        let files = match (pairs, self.sources.as_slice()) {
            (Some(pairs), _) => pairs
                .into_iter()
                .map(|(name, file)| (join(name.trim_start_matches('/')), file))
                .collect(),
            (None, [one]) if !target.path.is_empty() => {
                vec![(target.path.clone(), PathBuf::from(one))]
            }
            _ => {
                return Err(Failure::usage(
                    "one source for FILE:/ARRAY, or NAME=SRC.npy for each array of FILE[:/GROUP]",
                ));
            }
        };
        let mut blocks = Vec::with_capacity(files.len());
        for (path, file) in files {
            blocks.push((path, source::npy(&file)?));
        }
        Ok(blocks)
    }

    /// The axis's number in an array, and the block with that axis put in where it is one coordinate and was left out.
    pub(crate) fn fit(&self, array: &DynArray, mut block: Block) -> Result<(usize, Block)> {
        let axis = axis_of(&self.axis, &array.dims())?;
        if block.shape.len().saturating_add(1) == array.rank() && axis <= block.shape.len() {
            block.shape.insert(axis, 1);
        }
        Ok((axis, crate::source::fitted(block, &array.data_type())))
    }
}

pub(crate) fn run(args: &Append, end: End, session: &Session) -> Result<()> {
    let target = args.slabs.target()?;
    let blocks = args.slabs.read(&target)?;
    let writer = session.writer(&target.file)?;
    let mut total = WriteReceipt::default();
    for (path, block) in blocks {
        let array = writer.dyn_array(&path)?;
        let (axis, block) = args.slabs.fit(&array, block)?;
        let receipt = match end {
            End::High => array.append_block(axis, &block)?,
            End::Low => array.prepend_block(axis, &block)?,
        };
        add(&mut total, &receipt);
    }
    let generation = writer.commit(args.message.message.as_deref())?;
    let verb = match end {
        End::High => "append",
        End::Low => "prepend",
    };
    report(verb, session, &target.slashed(), generation, &total)
}

/// Sums what several writes stored.
pub(crate) fn add(total: &mut WriteReceipt, one: &WriteReceipt) {
    total.chunks_written = total.chunks_written.saturating_add(one.chunks_written);
    total.chunks_removed = total.chunks_removed.saturating_add(one.chunks_removed);
    total.chunks_decoded = total.chunks_decoded.saturating_add(one.chunks_decoded);
    total.bytes_written = total.bytes_written.saturating_add(one.bytes_written);
}
