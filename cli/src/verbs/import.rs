//! `import`: takes arrays from other files. The kind of a source is told by its content, never by its name.

mod sources;

use std::path::{Path, PathBuf};

use clap::Args;
use orthant::{
    Block, Domain, DynArray, DynArraySpec, Group, Json, ObjectKind, Region, RegionItem,
    WriteReceipt,
};

use self::sources::{Found, Stream};
use super::append::add;
use super::create::{codecs, named_chunks};
use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::json::{answer, maybe_text, object, text, uint};
use crate::selection::{axis_of, numbers};
use crate::session::{Session, print_json};
use crate::slabs::{BUDGET, Cut, slabs, stored_shape};
use crate::target::{Target, slashed};
use crate::text::bytes;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant import temp.npy ocean.orth
  orthant import temp.npy stamps.npz ocean.orth:/model --chunks 24,180,360 --dims time,y,x
  orthant import hour.npy ocean.orth:/model/temp --append time")]
pub(crate) struct Import {
    /// Sources, then FILE or FILE:/GROUP; FILE is made if missing. With --append and --prepend, FILE:/ARRAY will do
    #[arg(value_name = "SRC", required = true, num_args = 2..)]
    paths: Vec<String>,
    /// The group's path, where FILE:/GROUP cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Add to the high end of an axis of the array there is
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["prepend", "replace"])]
    append: Option<String>,
    /// Add to the low end of an axis of the array there is
    #[arg(long, value_name = "AXIS", conflicts_with = "replace")]
    prepend: Option<String>,
    /// Put the source's array in the place of the one there is
    #[arg(long)]
    replace: bool,
    /// Only this array of the sources; may be given again
    #[arg(long, value_name = "P")]
    array: Vec<String>,
    /// Elements per axis of a chunk, or NAME=n,.. with the other axes whole [default: about 1 MiB]
    #[arg(long, value_name = "N,M", allow_hyphen_values = true)]
    chunks: Option<String>,
    /// shuffle,zstd:3,crc32c or a profile: default, portable, archive, raw
    #[arg(long, value_name = "LIST")]
    codecs: Option<String>,
    /// Coordinate where chunk 0 starts, per axis [default: 0]
    #[arg(long, value_name = "O,P", allow_hyphen_values = true)]
    origin: Option<String>,
    /// Names of the axes; an empty one leaves its axis without
    #[arg(
        long,
        value_name = "Y,X",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    dims: Option<Vec<String>>,
    /// Encode anew even what could be taken as it is
    #[arg(long)]
    recode: bool,
    /// Tell what would be done, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    message: Message,
}

/// One array of a source, and what comes of it.
struct Item {
    source: PathBuf,
    /// The path inside the source.
    inside: String,
    /// The path it gets.
    path: String,
    outcome: Outcome,
}

enum Outcome {
    /// Waits to be written.
    Planned(Box<Stream>),
    /// Is being written.
    Taken,
    Refused(String),
    Recoded {
        chunks: u64,
        bytes_in: u64,
        bytes_out: Option<u64>,
    },
}

pub(crate) fn run(args: &Import, session: &Session) -> Result<()> {
    let Some((to, from)) = args.paths.split_last() else {
        return Err(Failure::usage("import needs a source and FILE"));
    };
    let target = Target::with_path(to, args.path.as_deref())?.whole()?;
    let mut items = Vec::new();
    for source in from {
        args.plan(Path::new(source), &target, &mut items)?;
    }
    args.check_names(&items)?;
    let planned = items
        .iter()
        .filter(|i| matches!(i.outcome, Outcome::Planned(_)))
        .count();
    let generation = if args.dry_run {
        for item in &mut items {
            args.rehearse(item, &target, session)?;
        }
        None
    } else if planned > 0 {
        Some(args.write(&mut items, &target, session)?)
    } else {
        None
    };
    report(&items, generation, args.dry_run, session)?;
    let refused = items
        .iter()
        .any(|i| matches!(i.outcome, Outcome::Refused(_)));
    if refused {
        Err(Failure::Negative)
    } else {
        Ok(())
    }
}

impl Import {
    /// Whether the target names the array itself.
    fn grows(&self) -> Option<(&str, bool)> {
        match (&self.append, &self.prepend) {
            (Some(axis), _) => Some((axis, false)),
            (None, Some(axis)) => Some((axis, true)),
            (None, None) => None,
        }
    }

    fn plan(&self, source: &Path, target: &Target, items: &mut Vec<Item>) -> Result<()> {
        for found in sources::open(source)? {
            let item = match found {
                Found::Array {
                    inside,
                    name,
                    stream,
                } => {
                    if !self.array.is_empty()
                        && !self.array.iter().any(|p| {
                            let p = p.trim_start_matches('/');
                            p == inside.trim_start_matches('/') || p == name
                        })
                    {
                        continue;
                    }
                    let path = if target.path.is_empty() {
                        name
                    } else {
                        format!("{}/{name}", target.path)
                    };
                    Item {
                        source: source.to_owned(),
                        inside,
                        path,
                        outcome: Outcome::Planned(stream),
                    }
                }
                Found::Refused { inside, reason } => Item {
                    source: source.to_owned(),
                    inside,
                    path: String::new(),
                    outcome: Outcome::Refused(reason),
                },
            };
            items.push(item);
        }
        Ok(())
    }

    /// Every `--array` must name something, and two arrays cannot get one path.
    fn check_names(&self, items: &[Item]) -> Result<()> {
        if items.is_empty() {
            return Err(Failure::not_found(if self.array.is_empty() {
                "the sources hold no array".to_owned()
            } else {
                format!(
                    "no array of that name in the sources: {}",
                    self.array.join(", ")
                )
            }));
        }
        let mut paths: Vec<&str> = items
            .iter()
            .filter(|i| matches!(i.outcome, Outcome::Planned(_)))
            .map(|i| i.path.as_str())
            .collect();
        paths.sort_unstable();
        for pair in paths.windows(2) {
            if let [a, b] = pair
                && a == b
                && self.grows().is_none()
            {
                return Err(Failure::usage(format!(
                    "two sources would become {}",
                    slashed(a)
                )));
            }
        }
        Ok(())
    }

    fn write(&self, items: &mut [Item], target: &Target, session: &Session) -> Result<u64> {
        let writer = if self.grows().is_some() {
            session.writer(&target.file)?
        } else {
            session.writer_or_new(&target.file)?
        };
        for item in items.iter_mut() {
            let stream = match std::mem::replace(&mut item.outcome, Outcome::Taken) {
                Outcome::Planned(stream) => stream,
                other => {
                    item.outcome = other;
                    continue;
                }
            };
            item.path = self.grown_path(&item.path, target, &writer.root())?;
            let bytes_in = stream.bytes();
            let written = match self.grows() {
                Some((axis, low)) => {
                    let array = writer.dyn_array(&item.path)?;
                    let region = make_room(&array, axis, low, &stream)
                        .map_err(|f| f.in_file(&target.file))?;
                    copy(stream, &array, &region, session)?
                }
                None => {
                    let spec = self.spec(&stream)?;
                    if self.replace && writer.root().kind(&item.path)?.is_some() {
                        writer.remove(&item.path, false)?;
                    }
                    let array = writer
                        .create_dyn_array(&item.path, &spec)
                        .map_err(|e| with_replace(Failure::from(e)))?;
                    let region = array.domain()?;
                    copy(stream, &array, &region, session)?
                }
            };
            item.outcome = Outcome::Recoded {
                chunks: written.chunks_written,
                bytes_in,
                bytes_out: Some(written.bytes_written),
            };
        }
        writer.commit(self.message.message.as_deref())
    }

    /// A growing import may name the array itself in place of its group.
    fn grown_path(&self, path: &str, target: &Target, root: &Group) -> Result<String> {
        let itself = self.grows().is_some()
            && !target.path.is_empty()
            && root.kind(&target.path)? == Some(ObjectKind::Array);
        Ok(if itself { &target.path } else { path }.to_owned())
    }

    /// What would be written, as far as it can be told without writing.
    fn rehearse(&self, item: &mut Item, target: &Target, session: &Session) -> Result<()> {
        let Outcome::Planned(stream) = &item.outcome else {
            return Ok(());
        };
        let bytes_in = stream.bytes();
        let trial = orthant::Container::in_memory()?;
        let writer = trial.writer()?;
        let array = writer
            .create_dyn_array(&item.path, &self.spec(stream)?)
            .map_err(|e| Failure::from(e).into_argument())?;
        if let Some((axis, _)) = self.grows() {
            let root = session.snapshot(&target.file)?.root();
            let path = self.grown_path(&item.path, target, &root)?;
            fitting_axis(&root.dyn_array(&path)?, axis, stream)
                .map_err(|f| f.in_file(&target.file))?;
            item.path = path;
        } else if target.file.exists() {
            let snapshot = session.snapshot(&target.file)?;
            if snapshot.root().kind(&item.path)?.is_some() && !self.replace {
                let e = Failure::exists("the object exists")
                    .in_file(&target.file)
                    .in_array(&slashed(&item.path));
                return Err(with_replace(e));
            }
        }
        let chunks = array.grid_chunks()?.unwrap_or(u128::MAX);
        item.outcome = Outcome::Recoded {
            chunks: u64::try_from(chunks).unwrap_or(u64::MAX),
            bytes_in,
            bytes_out: None,
        };
        Ok(())
    }

    fn spec(&self, stream: &Stream) -> Result<DynArraySpec> {
        let shape = stream.shape();
        let mut spec = DynArraySpec::new(stream.data_type().clone(), Domain::from_shape(shape)?);
        let mut dims: Vec<Option<String>> = self
            .dims
            .iter()
            .flatten()
            .map(|d| (!d.is_empty()).then(|| d.clone()))
            .collect();
        dims.resize(shape.len(), None);
        if let Some(text) = &self.chunks {
            let chunks = if text.contains('=') {
                named_chunks(text, &dims, shape)?
            } else {
                numbers("--chunks", text)?
            };
            spec = spec.chunks(chunks);
        }
        if let Some(text) = &self.origin {
            spec = spec.origin(numbers::<i64>("--origin", text)?);
        }
        if let Some(dims) = &self.dims {
            spec = spec.dims(dims);
        }
        if let Some(list) = &self.codecs {
            spec = spec.codecs(codecs(list)?);
        }
        Ok(spec)
    }
}

/// The number of the axis, where an array can take in what the source holds on it.
fn fitting_axis(array: &DynArray, axis: &str, stream: &Stream) -> Result<usize> {
    let axis = axis_of(axis, &array.dims())?;
    let before = array.domain()?;
    let named = |f: Failure| f.in_array(&slashed(array.path()));
    if stream.data_type() != &array.data_type() {
        return Err(named(Failure::usage(format!(
            "the source holds {}, {} holds {}",
            stream.data_type(),
            slashed(array.path()),
            array.data_type()
        ))));
    }
    let (shape, wanted) = (stream.shape(), before.shape());
    let fits = shape.len() == wanted.len()
        && shape
            .iter()
            .zip(&wanted)
            .enumerate()
            .all(|(i, (a, b))| i == axis || a == b);
    if !fits {
        return Err(named(Failure::usage(format!(
            "the source has shape ({}), which does not fit the domain {before} on every axis but {axis}",
            crate::text::list(shape)
        ))));
    }
    Ok(axis)
}

/// Makes room at one end of an axis; gives the box that is new.
fn make_room(array: &DynArray, axis: &str, low: bool, stream: &Stream) -> Result<Domain> {
    let axis = fitting_axis(array, axis, stream)?;
    let before = array.domain()?;
    let n = stream.shape().get(axis).copied().unwrap_or(0);
    if low {
        array.grow(axis, n, 0)?;
    } else {
        array.grow(axis, 0, n)?;
    }
    let after = array.domain()?;
    let ranges = before
        .ranges()
        .zip(after.ranges())
        .enumerate()
        .map(|(i, (old, new))| match (i == axis, low) {
            (false, _) => old,
            (true, true) => new.start..old.start,
            (true, false) => old.end..new.end,
        });
    Ok(Domain::new(ranges)?)
}

fn with_replace(failure: Failure) -> Failure {
    if failure.code() == "already_exists" {
        failure.instead("--replace puts the source in its place; --append and --prepend add to it")
    } else {
        failure
    }
}

/// Copies a stream into the box of the array that it fills, piece by piece where it lies in C order.
fn copy(
    stream: Box<Stream>,
    array: &DynArray,
    into: &Domain,
    session: &Session,
) -> Result<WriteReceipt> {
    let mut total = WriteReceipt::default();
    if into.is_empty() {
        return Ok(total);
    }
    if !stream.is_c_order() {
        let block = stream.block()?;
        return Ok(array.write(Region::from_domain(into), &block)?);
    }
    let mut stream = stream;
    let step = vec![1; into.rank()];
    let (chunk_shape, origin) = (stored_shape(array), array.origin()?);
    let pieces = slabs(Cut {
        bounds: into.bounds(),
        step: &step,
        chunk_shape: &chunk_shape,
        origin: &origin,
        item: stream.item().max(1),
        budget: BUDGET,
    });
    let bar = session.bar(pieces.elements(), "import");
    for piece in pieces {
        let shape: Vec<u64> = piece.iter().map(|&(lo, hi)| hi.abs_diff(lo)).collect();
        let count = shape.iter().product::<u64>();
        let elements = stream.elements(usize::try_from(count).unwrap_or(usize::MAX))?;
        let block = Block {
            data_type: stream.data_type().clone(),
            shape,
            elements,
        };
        let region: Region = piece
            .iter()
            .map(|&(lo, hi)| RegionItem::from(lo..hi))
            .collect();
        add(&mut total, &array.write(region, &block)?);
        bar.advance(count);
    }
    Ok(total)
}

fn report(items: &[Item], generation: Option<u64>, dry_run: bool, session: &Session) -> Result<()> {
    if session.json() {
        let arrays = items.iter().map(|item| {
            let (result, reason, chunks, bytes_in, bytes_out) = match &item.outcome {
                Outcome::Recoded {
                    chunks,
                    bytes_in,
                    bytes_out,
                } => (
                    "recoded",
                    None,
                    *chunks,
                    *bytes_in,
                    bytes_out.map_or(Json::Null, uint),
                ),
                Outcome::Refused(reason) => ("refused", Some(reason), 0, 0, uint(0)),
                Outcome::Planned(_) | Outcome::Taken => ("refused", None, 0, 0, uint(0)),
            };
            let path = match &item.outcome {
                Outcome::Refused(_) => Json::Null,
                _ => text(slashed(&item.path)),
            };
            object([
                ("path", path),
                ("source", text(&item.inside)),
                ("result", text(result)),
                ("reason", maybe_text(reason)),
                ("chunks", uint(chunks)),
                ("bytes_in", uint(bytes_in)),
                ("bytes_out", bytes_out),
                ("file", text(item.source.to_string_lossy())),
            ])
        });
        let members = [
            ("arrays", Json::Array(arrays.collect())),
            ("generation", generation.map_or(Json::Null, uint)),
            ("dry_run", Json::Bool(dry_run)),
        ];
        return print_json(&answer("import", members));
    }
    for item in items {
        let from = format!("{} {}", item.source.display(), item.inside);
        match &item.outcome {
            Outcome::Recoded {
                chunks,
                bytes_in,
                bytes_out,
            } => {
                let size = bytes_out.map_or_else(
                    || format!("{} to be written", bytes(*bytes_in)),
                    |out| format!("{} as {}", bytes(*bytes_in), bytes(out)),
                );
                session.note(&format!(
                    "{}: recoded from {from}, {}, {size}",
                    slashed(&item.path),
                    crate::text::count(*chunks, "chunk")
                ));
            }
            Outcome::Refused(reason) => crate::session::warn(&format!("{from}: refused: {reason}")),
            Outcome::Planned(_) | Outcome::Taken => {}
        }
    }
    Ok(())
}
