//! `get`: a part of an array, to the terminal, a pipe or a file.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use orthant::{Block, Bound, DynArray, Json, Receipt, Region, RegionItem, Selection};

use crate::args::State;
use crate::atomic::Output;
use crate::exit::{Failure, Result};
use crate::json::{maybe_text, object, pairs, text, uint, uints};
use crate::output::npy::Plan;
use crate::output::terminal::Elision;
use crate::output::{Format, csv, png, raw, terminal};
use crate::selection::{Selected, Selecting};
use crate::session::{Session, stdout};
use crate::slabs::{BUDGET, Cut, slabs, stored_shape};
use crate::target::Target;

/// Arguments of `get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant get 'ocean.orth:/model/temp[-48:0, 10:20, end-1]'
  orthant get ocean.orth:/model/temp --sel time=-48:0 -o box.npy
  orthant get ocean.orth:/model/temp --label time=2020-01-01:2020-02-01 --clip -o map.png")]
pub(crate) struct Get {
    #[command(flatten)]
    selecting: Selecting,
    #[command(flatten)]
    state: State,
    /// File to write, its format by its suffix; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Format, whatever the suffix
    #[arg(long, value_enum, value_name = "F")]
    format: Option<Format>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Tell what the read touched, fetched and decoded
    #[arg(long)]
    receipt: bool,
    /// What an absent chunk is
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Missing::Fill)]
    missing: Missing,
    /// Leave nothing out on the terminal
    #[arg(long)]
    all: bool,
}

/// What an absent chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Missing {
    /// The fill value
    Fill,
    /// A negative answer: exit code 1
    Error,
}

pub(crate) fn run(args: &Get, session: &Session) -> Result<()> {
    let target = args.selecting.target()?;
    let snapshot = session.state(&target.file, &args.state)?;
    let array = snapshot.dyn_array(&target.path)?;
    let selected = args.selecting.resolve(&target, &array, &snapshot.root())?;
    let read = Read {
        args,
        session,
        target: &target,
        array: &array,
        selected: &selected,
    };
    if args.missing == Missing::Error {
        read.refuse_absent()?;
    }
    let to_stdout = args.output.as_deref().is_none_or(|p| p == Path::new("-"));
    let format = match (args.format, &args.output) {
        (Some(format), _) => Some(format),
        (None, Some(path)) if !to_stdout => Some(Format::of_path(path)?),
        (None, Some(_)) => return Err(Failure::usage("-o - needs --format")),
        (None, None) if session.json() => Some(Format::Json),
        (None, None) if io::stdout().is_terminal() => None,
        (None, None) => Some(Format::Csv),
    };
    let receipt = match (format, &args.output) {
        (None, _) => read.show()?,
        (Some(format), Some(path)) if !to_stdout => {
            let mut out = Output::create(path, args.force)?;
            let receipt = read.write(format, &mut out, path)?;
            out.finish()?;
            read.report_output(path, &receipt)?;
            receipt
        }
        (Some(format), _) => {
            if matches!(format, Format::Npy | Format::Png) && io::stdout().is_terminal() {
                return Err(
                    Failure::usage("binary output does not go to a terminal").help("-o FILE")
                );
            }
            let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
            let receipt = read.write(format, &mut out, Path::new("standard output"))?;
            out.flush().map_err(|e| Failure::stdout(&e))?;
            receipt
        }
    };
    if args.receipt && !session.json() {
        crate::session::stderr(&receipt_text(&receipt));
    }
    Ok(())
}

/// One read, and all that it needs.
struct Read<'a> {
    args: &'a Get,
    session: &'a Session,
    target: &'a Target,
    array: &'a DynArray,
    selected: &'a Selected,
}

impl Read<'_> {
    fn refuse_absent(&self) -> Result<()> {
        let plan = self.array.explain(self.selected.selection())?;
        if plan.chunks_absent == 0 {
            return Ok(());
        }
        Err(Failure::negative(
            "absent",
            format!(
                "{}: {} of the {} chunks selected are absent",
                self.target.display(),
                plan.chunks_absent,
                plan.chunks_touched
            ),
        )
        .in_file(&self.target.file)
        .in_array(&self.target.slashed()))
    }

    /// What a person sees: at most the ends of long axes, and only they are read.
    fn show(&self) -> Result<Receipt> {
        let shape = self.selected.shape();
        let elision = Elision::of(&shape, self.args.all);
        let selection = self.selected.shortened(&elision);
        let (block, receipt) = self.array.read_with_receipt(selection)?;
        self.session.note(&format!(
            "{}{} {}, shape ({})",
            self.target.display(),
            self.selected.region,
            block.data_type,
            crate::text::list(&shape)
        ));
        let text = terminal::render(&block, &elision);
        stdout(|out| writeln!(out, "{text}"))?;
        Ok(receipt)
    }

    fn write(&self, format: Format, out: &mut impl Write, name: &Path) -> Result<Receipt> {
        let failed = |e: io::Error| {
            if name == Path::new("standard output") {
                Failure::stdout(&e)
            } else {
                Failure::io("write", name, &e)
            }
        };
        match format {
            Format::Json => {
                let (block, receipt) = self.array.read_with_receipt(self.selected.selection())?;
                self.write_json(out, &block, &receipt).map_err(failed)?;
                Ok(receipt)
            }
            Format::Png => {
                let (block, receipt) = self.array.read_with_receipt(self.selected.selection())?;
                let range = png::write(out, &block, &self.array.fill_bytes())?;
                match range {
                    Some((low, high)) => self.session.note(&format!(
                        "viridis from {low} to {high}; grey is fill or NaN"
                    )),
                    None => self.session.note("no element has a value: all grey"),
                }
                Ok(receipt)
            }
            Format::Npy => {
                let plan = Plan::of(&self.array.data_type())?;
                let (data_type, shape) = (self.array.data_type(), self.selected.shape());
                if plan.needs_all() {
                    let (block, receipt) =
                        self.array.read_with_receipt(self.selected.selection())?;
                    plan.header(out, &data_type, &shape, Some(&block.elements))
                        .and_then(|()| plan.elements(out, &block.elements))
                        .map_err(failed)?;
                    return Ok(receipt);
                }
                plan.header(out, &data_type, &shape, None).map_err(failed)?;
                self.stream(|block| plan.elements(out, &block.elements).map_err(failed))
            }
            Format::Raw => self.stream(|block| raw::write(out, &block.elements).map_err(failed)),
            Format::Csv => {
                let line = csv::line_len(&self.selected.shape());
                let mut column = 0;
                self.stream(|block| {
                    let count = block.shape.iter().product();
                    csv::write_rows(
                        out,
                        &block.data_type,
                        &block.elements,
                        count,
                        line,
                        &mut column,
                    )
                    .map_err(failed)
                })
            }
        }
    }

    /// Reads piece by piece in C order; with `--receipt` at once, since pieces may touch a chunk twice.
    fn stream(&self, mut write: impl FnMut(&Block) -> Result<()>) -> Result<Receipt> {
        if self.args.receipt || self.selected.has_lists() {
            let (block, receipt) = self.array.read_with_receipt(self.selected.selection())?;
            write(&block)?;
            return Ok(receipt);
        }
        let item = self.array.data_type().item_size().unwrap_or(64);
        let (chunk_shape, origin) = (stored_shape(self.array), self.array.origin()?);
        let pieces = slabs(Cut {
            bounds: &self.selected.bounds,
            step: &self.selected.step,
            chunk_shape: &chunk_shape,
            origin: &origin,
            item: item as u64,
            budget: BUDGET,
        });
        let bar = self.session.bar(pieces.elements(), "reading");
        for piece in pieces {
            let block = self.array.read(self.selected.piece(&piece))?;
            write(&block)?;
            bar.advance(block.shape.iter().product());
        }
        Ok(Receipt::default())
    }

    fn members(&self) -> Vec<(&'static str, Json)> {
        let mut members = vec![
            ("schema", text("orthant/get/1")),
            ("path", text(self.target.slashed())),
            ("dtype", text(self.array.data_type().to_string())),
        ];
        members.extend(self.selected.members());
        members.push(("shape", uints(self.selected.shape())));
        members
    }

    fn write_json(&self, out: &mut impl Write, block: &Block, receipt: &Receipt) -> io::Result<()> {
        let head = object(self.members()).to_string();
        let open = head.strip_suffix('}').unwrap_or(&head);
        write!(out, "{open},\"values\":")?;
        crate::json::write_nested(out, block)?;
        if self.args.receipt {
            write!(out, ",\"receipt\":{}", receipt_json(receipt))?;
        }
        out.write_all(b"}\n")
    }

    /// With `--json`, a read into a file answers with what was written there.
    fn report_output(&self, path: &Path, receipt: &Receipt) -> Result<()> {
        if !self.session.json() {
            return Ok(());
        }
        let mut members = self.members();
        members.push(("output", text(path.to_string_lossy())));
        if self.args.receipt {
            members.push(("receipt", receipt_json(receipt)));
        }
        crate::session::print_json(&object(members))
    }
}

impl Selected {
    /// Elements per axis of the result.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let axes = self.bounds.iter().zip(&self.step).enumerate();
        axes.filter(|(axis, _)| !self.drop_axes.contains(axis))
            .map(|(axis, (&(lo, hi), &step))| match self.lists.get(&axis) {
                Some(list) => list.len() as u64,
                None => hi.abs_diff(lo).div_ceil(step.max(1)),
            })
            .collect()
    }

    /// The members that say what was selected.
    pub(crate) fn members(&self) -> [(&'static str, Json); 3] {
        [
            ("region", pairs(&self.bounds)),
            ("step", uints(self.step.iter().copied())),
            ("drop_axes", uints(self.drop_axes.iter().map(|&a| a as u64))),
        ]
    }

    /// One piece of the box, as `slabs` cuts it.
    fn piece(&self, piece: &[(i64, i64)]) -> Region {
        let axes = piece.iter().zip(&self.step).enumerate();
        axes.map(|(axis, (&(lo, hi), &step))| {
            if self.drop_axes.contains(&axis) {
                RegionItem::Index(Bound::At(lo))
            } else {
                RegionItem::Range {
                    start: Some(Bound::At(lo)),
                    end: Some(Bound::At(hi)),
                    step,
                }
            }
        })
        .collect()
    }

    /// The selection with the middle of long axes left out.
    fn shortened(&self, elision: &Elision) -> Selection {
        let mut selection = self.selection();
        let shape = self.shape();
        let kept = (0..self.bounds.len()).filter(|a| !self.drop_axes.contains(a));
        for (place, (axis, &n)) in kept.zip(&shape).enumerate() {
            let Some(places) = elision.places(place, n) else {
                continue;
            };
            let at = |i: u64| match self.lists.get(&axis) {
                Some(list) => usize::try_from(i).ok().and_then(|i| list.get(i).copied()),
                None => {
                    let (lo, step) = (self.bounds.get(axis)?.0, self.step.get(axis)?);
                    lo.checked_add_unsigned(i.checked_mul(*step)?)
                }
            };
            let list: Vec<i64> = places.into_iter().filter_map(at).collect();
            selection = selection.list(axis, list);
        }
        selection
    }
}

/// A receipt's members, in the order of the contract.
pub(crate) fn receipt_json(r: &Receipt) -> Json {
    object([
        ("chunks_touched", uint(r.chunks_touched)),
        ("chunks_absent", uint(r.chunks_absent)),
        ("chunks_constant", uint(r.chunks_constant)),
        ("chunks_cached", uint(r.chunks_cached)),
        ("chunks_decoded", uint(r.chunks_decoded)),
        ("inner_decoded", uint(r.inner_decoded)),
        ("bytes_fetched", uint(r.bytes_fetched)),
        ("bytes_decoded", uint(r.bytes_decoded)),
        ("bytes_wanted", uint(r.bytes_wanted)),
        ("path", text(r.path.name())),
        ("reason", maybe_text(r.reason)),
    ])
}

/// The same for people.
pub(crate) fn receipt_text(r: &Receipt) -> String {
    format!(
        "chunks: {} touched, {} absent, {} constant, {} cached, {} decoded, {} inner; bytes: {} fetched, {} decoded, {} wanted, {:.2} decoded a byte wanted; path {}{}",
        r.chunks_touched,
        r.chunks_absent,
        r.chunks_constant,
        r.chunks_cached,
        r.chunks_decoded,
        r.inner_decoded,
        r.bytes_fetched,
        r.bytes_decoded,
        r.bytes_wanted,
        r.amplification(),
        r.path.name(),
        r.reason.map_or_else(String::new, |why| format!(" ({why})"))
    )
}
