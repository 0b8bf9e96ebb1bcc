//! `import`: takes arrays from other files. The kind of a source is told by its content, never by its name.
//!
//! Holds the arguments and the order of the work: everything is planned first, then written in one commit. What cannot be
//! taken is refused by name, and the rest is taken. Readers of formats are in `crate::foreign`.

mod cells;
mod chunks;
mod copy;
mod grow;
mod place;
mod plan;
mod report;

use std::path::Path;

use clap::Args;
use orthant::{Container, ErrorKind, ObjectKind};

use self::copy::Wishes;
use self::grow::Growth;
use self::plan::{Item, Outcome};
use crate::args::Message;
use crate::exit::{Failure, Result};
use crate::foreign::Stop;
use crate::session::{Session, Writing};
use crate::target::{Target, slashed};

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sources: Zarr stores of version 2 and 3 (a folder or a zip file), HDF5 and netCDF (classic and 4), .npy
and .npz, TIFF and cloud-optimized GeoTIFF, NIfTI (also in gzip), Neuroglancer precomputed volumes.

Examples:
  orthant import model.zarr ocean.orth
  orthant import model.zarr ocean.orth:/model --array temp --dry-run
  orthant import day1.nc ocean.orth:/model --dry-run
  orthant import temp.npy stamps.npz ocean.orth:/model --chunks 24,180,360 --dims time,y,x
  orthant import hour.npy ocean.orth:/model/temp --append time
  orthant import day2.zarr day3.zarr ocean.orth --append time

Chunks are taken over as they are stored wherever a container reads their codecs; the report says
adopted, reframed, recoded or refused for each array. The exit code is 1 where something was refused.")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Import {
    /// Sources, then FILE or FILE:/GROUP; FILE is made if missing. With --append and --prepend, FILE:/ARRAY will do
    #[arg(value_name = "SRC", required = true, num_args = 1..)]
    paths: Vec<String>,
    /// The group's path, where FILE:/GROUP cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Add to the high end of an axis: every array of the sources that has it grows, any other must be the same
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["prepend", "replace", "chunks", "codecs", "origin", "dims"])]
    append: Option<String>,
    /// Add to the low end of an axis; of several sources, the last ends up first
    #[arg(long, value_name = "AXIS", conflicts_with_all = ["replace", "chunks", "codecs", "origin", "dims"])]
    prepend: Option<String>,
    /// Put the source's array in the place of the one there is
    #[arg(long)]
    replace: bool,
    /// Only this array of the sources; may be given again
    #[arg(long, value_name = "P")]
    array: Vec<String>,
    /// Elements per axis of a chunk, or NAME=n,.. with the other axes whole [default: the source's, else about 1 MiB]
    #[arg(long, value_name = "N,M", allow_hyphen_values = true)]
    chunks: Option<String>,
    /// shuffle,zstd:3,crc32c or a profile: default, portable, archive, raw [default: the source's, where it can be]
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
    /// Decode what is taken as it is, to see that it can be; else its outside is looked at: lengths, headers, checksums
    #[arg(long, conflicts_with = "recode")]
    verify: bool,
    /// Tell what would be done, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Import, session: &Session) -> Result<()> {
    // Flags may stand between them, which a count of the parser's would not allow.
    let (to, from) = match args.paths.split_last() {
        Some((to, from)) if !from.is_empty() => (to, from),
        _ => return Err(Failure::usage("import needs a source and FILE")),
    };
    let target = Target::with_path(to, args.path.as_deref())?.whole()?;
    let mut items = Vec::new();
    for source in from {
        args.plan(Path::new(source), &target, &mut items)?;
    }
    args.check_names(&items)?;
    let planned = items.iter().any(|i| i.outcome.is_planned());
    let generation = if args.dry_run {
        args.rehearse(&mut items, &target, session)?;
        None
    } else if planned {
        args.write(&mut items, &target, session)?
    } else {
        None
    };
    report::print(&items, generation, args.dry_run, session)?;
    if items.iter().any(Item::is_refused) {
        Err(Failure::Negative)
    } else {
        Ok(())
    }
}

impl Import {
    /// The axis that grows, and at which end.
    fn growth(&self) -> Option<Growth<'_>> {
        match (&self.append, &self.prepend) {
            (None, None) => None,
            (high, low) => Some(Growth {
                axis: high.as_ref().or(low.as_ref())?,
                low: low.is_some(),
                recode: self.recode,
                verify: self.verify,
            }),
        }
    }

    /// Adds to what is there: all of it, or none.
    fn grow(
        &self,
        growth: Growth<'_>,
        items: &mut [Item],
        target: &Target,
        session: &Session,
    ) -> Result<u64> {
        let writer = session.writer(&target.file)?;
        let named = |f: Failure| f.in_file(&target.file);
        let chosen = !self.array.is_empty();
        let steps = growth
            .plan(items, target, &writer.root(), chosen)
            .map_err(named)?;
        for (item, step) in items.iter_mut().zip(steps) {
            let outcome = std::mem::replace(&mut item.outcome, Outcome::Taken);
            item.outcome = match outcome {
                Outcome::Planned(array) => {
                    let added = growth.add(item, &array, step, &writer, session);
                    Outcome::Done(added.map_err(named)?)
                }
                Outcome::Group(_) => Outcome::Made,
                other => other,
            };
        }
        writer.commit(self.message.message.as_deref())
    }

    fn write(&self, items: &mut [Item], target: &Target, session: &Session) -> Result<Option<u64>> {
        if let Some(growth) = self.growth() {
            return self.grow(growth, items, target, session).map(Some);
        }
        let writer = session.writer_or_new(&target.file)?;
        for item in items.iter_mut() {
            let outcome = std::mem::replace(&mut item.outcome, Outcome::Taken);
            let done = match outcome {
                Outcome::Group(attributes) => self
                    .group(item, attributes, &writer)
                    .map(|()| Outcome::Made),
                Outcome::Planned(array) => self
                    .array(item, &array, &writer, session)
                    .map(Outcome::Done),
                other => Ok(other),
            };
            item.outcome = match done {
                Ok(outcome) => outcome,
                Err(Stop::Source(reason)) => Outcome::Refused(reason),
                Err(Stop::Target(failure)) => return Err(failure.in_file(&target.file)),
            };
        }
        let taken = |i: &Item| matches!(i.outcome, Outcome::Done(_) | Outcome::Made);
        if !items.iter().any(taken) {
            return Ok(None);
        }
        writer.commit(self.message.message.as_deref()).map(Some)
    }

    /// Makes a group, and gives it those attributes that it does not have.
    fn group(
        &self,
        item: &mut Item,
        attributes: crate::foreign::Attributes,
        writer: &Writing,
    ) -> std::result::Result<(), Stop> {
        let group = writer.root().ensure_group(&item.path).map_err(placed)?;
        let there = group.attributes();
        let mut kept = Vec::new();
        for (name, value) in attributes {
            match there.get(&name) {
                Ok(Some(old)) if old != value && !self.replace => kept.push(name),
                Ok(Some(old)) if old == value => {}
                _ => copy::attribute(&there, &name, value, &mut item.notes),
            }
        }
        if !kept.is_empty() {
            item.notes.push(format!(
                "the group keeps its own {}; --replace takes the source's",
                kept.join(", ")
            ));
        }
        Ok(())
    }

    fn array(
        &self,
        item: &mut Item,
        array: &crate::foreign::Array,
        writer: &Writing,
        session: &Session,
    ) -> std::result::Result<copy::Done, Stop> {
        let root = writer.root();
        if self.replace && root.kind(&item.path).map_err(Failure::from)? == Some(ObjectKind::Array)
        {
            writer.remove(&item.path, false).map_err(Failure::from)?;
        }
        let (spec, how) = self.spec(&array.facts)?;
        let into = writer.create_dyn_array(&item.path, &spec).map_err(placed)?;
        let room = &array.facts.domain;
        let wishes = Wishes {
            all: false,
            verify: self.verify,
        };
        let copied = copy::transfer(array, &into, room, (&how, wishes), session);
        if copied.is_ok() {
            copy::attributes(array, &into, &mut item.notes);
        }
        if let Err(Stop::Source(_)) = copied {
            // What was written of it is dropped with it.
            writer.remove(&item.path, false).map_err(Failure::from)?;
        }
        copied
    }

    /// What would be written, as far as it can be told without writing.
    fn rehearse(&self, items: &mut [Item], target: &Target, session: &Session) -> Result<()> {
        if let Some(growth) = self.growth() {
            let root = session.snapshot(&target.file)?.root();
            let named = |f: Failure| f.in_file(&target.file);
            let chosen = !self.array.is_empty();
            let steps = growth.plan(items, target, &root, chosen).map_err(named)?;
            for (item, step) in items.iter_mut().zip(steps) {
                if let Outcome::Planned(array) = &item.outcome {
                    let into = root.dyn_array(&item.path)?;
                    let done = growth.rehearse(array, step, &into).map_err(named)?;
                    item.outcome = Outcome::Done(done);
                }
            }
            return Ok(());
        }
        let there = if target.file.exists() {
            Some(session.snapshot(&target.file)?)
        } else {
            None
        };
        let trial = Container::in_memory()?;
        let writer = trial.writer()?;
        for item in items {
            let Outcome::Planned(array) = &item.outcome else {
                continue;
            };
            if let Some(snapshot) = &there
                && snapshot.root().kind(&item.path)?.is_some()
                && !self.replace
            {
                let e = Failure::exists("the object exists")
                    .in_file(&target.file)
                    .in_array(&slashed(&item.path));
                return Err(with_replace(e));
            }
            let planned = self.spec(&array.facts).and_then(|(spec, how)| {
                let made = writer.create_dyn_array(&item.path, &spec);
                let made = made.map_err(|e| Failure::from(e).into_argument())?;
                copy::rehearse(array, &made, &how)
            });
            item.outcome = match planned {
                Ok(done) => Outcome::Done(done),
                Err(Stop::Source(reason)) => Outcome::Refused(reason),
                Err(Stop::Target(failure)) => return Err(failure),
            };
        }
        Ok(())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Target(failure)
    }
}

/// An object that cannot be made where it is to be: its name is the source's, what is there already is not.
fn placed(e: orthant::Error) -> Stop {
    use ErrorKind::{InvalidArgument, LimitExceeded, NotFound, TypeMismatch, Unsupported};
    match e.kind() {
        InvalidArgument | LimitExceeded | NotFound | TypeMismatch | Unsupported => {
            Stop::Source(e.to_string())
        }
        _ => Stop::Target(with_replace(e.into())),
    }
}

fn with_replace(failure: Failure) -> Failure {
    if failure.code() == "already_exists" {
        failure.instead("--replace puts the source in its place; --append and --prepend add to it")
    } else {
        failure
    }
}
