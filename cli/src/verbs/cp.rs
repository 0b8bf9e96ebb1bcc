//! `cp`: copies an object, within a container or to another, or one generation of a whole container. Payloads stay as they
//! are encoded.

use std::ops::ControlFlow;
use std::path::Path;

use clap::Args;
use orthant::{At, CopyOptions, DynArray, ErrorKind, Group, ObjectKind};

use crate::args::Message;
use crate::describe::Stored;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, Writing, print_json};
use crate::target::{Target, slashed};
use crate::text::{bytes, count};
use crate::verbs::compact::{Unfinished, told};

/// Arguments of `cp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant cp ocean.orth:/model/temp ocean.orth:/old/temp
  orthant cp ocean.orth:/model archive.orth
  orthant cp ocean.orth snapshot.orth
  orthant cp ocean.orth v1.orth --at v1

Without paths, one generation is copied to a new file, beside a writer that is at work. Copy a container
that is being written in no other way: space is reused, so a plain copy may mix generations.")]
pub(crate) struct Cp {
    /// FILE:/PATH, an array or a group with all below it; FILE, the whole container
    #[arg(value_name = "FILE[:/PATH]")]
    from: String,
    /// FILE2, or FILE2:/PATH where the path is to be another; FILE2 and missing parents are made
    #[arg(value_name = "FILE2[:/PATH]")]
    to: String,
    /// Of a whole container, the state to copy: a snapshot's name, gen:N or a time
    #[arg(long, value_name = "SNAP")]
    at: Option<At>,
    /// Of a whole container, take the retained snapshots over too
    #[arg(long)]
    all: bool,
    /// Of a whole container, overwrite FILE2 if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    message: Message,
}

/// What was copied.
#[derive(Debug, Default)]
struct Copied {
    arrays: u64,
    groups: u64,
    stored: Stored,
}

pub(crate) fn run(args: &Cp, session: &Session) -> Result<()> {
    let from = Target::parse(&args.from)?.whole()?;
    let to = Target::parse(&args.to)?.whole()?;
    if !from.named {
        return whole_file(args, &from, &to, session);
    }
    if args.at.is_some() || args.all || args.force {
        return Err(Failure::usage(
            "--at, --all and --force are for whole containers, named without a path",
        ));
    }
    let path = if to.named && !to.path.is_empty() {
        to.path.clone()
    } else {
        from.path.clone()
    };
    let from = from.object()?;
    // Read first: a copy of what is not there makes no file.
    let apart = !same_file(&from.file, &to.file);
    let snapshot = apart.then(|| session.snapshot(&from.file)).transpose()?;
    if let Some(snapshot) = &snapshot {
        super::info::kind(snapshot, &from)?;
    }
    let writer = session.writer_or_new(&to.file)?;
    let root = match &snapshot {
        Some(snapshot) => snapshot.root(),
        None => writer.root(),
    };
    let copied = copy(&root, &from, &writer, &path, session)?;
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        let members = [
            ("path", text(slashed(&path))),
            ("from", text(from.slashed())),
            ("arrays", uint(copied.arrays)),
            ("groups", uint(copied.groups)),
            ("chunks", uint(copied.stored.chunks)),
            ("constant", uint(copied.stored.constant)),
            ("stored_bytes", uint(copied.stored.bytes)),
            ("generation", uint(generation)),
        ];
        return print_json(&answer("cp", members));
    }
    session.note(&format!(
        "copied {} to {}:{}: {}, {}, {}",
        from.display(),
        to.file.display(),
        slashed(&path),
        count(copied.arrays, "array"),
        count(copied.stored.chunks, "chunk"),
        bytes(copied.stored.bytes),
    ));
    Ok(())
}

/// A copy of one generation of a whole container, made beside a live writer.
fn whole_file(args: &Cp, from: &Target, to: &Target, session: &Session) -> Result<()> {
    if to.named {
        return Err(Failure::usage(format!(
            "{}: a whole container is copied to a file of its own",
            to.display()
        ))
        .help(format!("name an object, as {}:/PATH", from.display())));
    }
    if args.message.message.is_some() {
        return Err(Failure::usage(
            "-m: a copy of a whole container makes no commit",
        ));
    }
    let container = session.open(&from.file)?;
    let snapshot = match &args.at {
        Some(at) => container.snapshot_at(at)?,
        None => container.snapshot()?,
    };
    let options = CopyOptions::new()
        .keep_snapshots(args.all)
        .overwrite(args.force);
    let _guard = Unfinished::beside(&to.file);
    let bar = session.bar(0, "copy");
    let report = snapshot
        .copy_to(&to.file, options, |done, total| {
            bar.at(done, total);
            ControlFlow::Continue(())
        })
        .map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Failure::from(e)
                .of_file(&to.file)
                .instead("--force overwrites it"),
            ErrorKind::InvalidArgument => Failure::from(e).of_file(&to.file),
            _ => e.into(),
        })?;
    drop(bar);
    told("cp", &to.file, report, session)
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

fn copy(
    root: &Group,
    from: &Target,
    writer: &Writing,
    path: &str,
    session: &Session,
) -> Result<Copied> {
    let mut copied = Copied::default();
    match root.kind(&from.path)? {
        Some(ObjectKind::Array) => {
            array(
                &root.dyn_array(&from.path)?,
                writer,
                path,
                &mut copied,
                session,
            )?;
        }
        _ => {
            let group = root.group(&from.path)?;
            let inside = format!("{}/", from.path);
            // Listed before anything is made: the copy may lie in the group itself.
            let members: Vec<_> = group.walk()?.collect::<orthant::Result<_>>()?;
            groups_attributes(&group, &writer.create_group(path)?, &mut copied)?;
            for member in members {
                let whole = member.path.trim_start_matches('/');
                let below = whole.strip_prefix(&inside).unwrap_or(whole);
                let target = format!("{path}/{below}");
                if member.kind == ObjectKind::Array {
                    array(
                        &root.dyn_array(whole)?,
                        writer,
                        &target,
                        &mut copied,
                        session,
                    )?;
                } else {
                    let made = writer.create_group(&target)?;
                    groups_attributes(&root.group(whole)?, &made, &mut copied)?;
                }
            }
        }
    }
    Ok(copied)
}

fn groups_attributes(from: &Group, to: &Group, copied: &mut Copied) -> Result<()> {
    copied.groups = copied.groups.saturating_add(1);
    Ok(to.attributes().set_all(from.attributes().list()?)?)
}

fn array(
    from: &DynArray,
    writer: &Writing,
    path: &str,
    copied: &mut Copied,
    session: &Session,
) -> Result<()> {
    let bar = session.bar(0, "copy");
    let made = from.copy_array_with(writer, path, |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    })?;
    let Some(made) = made else {
        return Ok(());
    };
    let stored = Stored::of(&made)?;
    copied.arrays = copied.arrays.saturating_add(1);
    let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
    sum(&mut copied.stored.chunks, stored.chunks);
    sum(&mut copied.stored.constant, stored.constant);
    sum(&mut copied.stored.bytes, stored.bytes);
    Ok(())
}
