//! `export`: a container, a group or an array as a Zarr folder, version 3 or 2.
//!
//! Holds how each array gets there: payloads as they are where its first chunk begins with its domain, else recoded, or with a
//! margin of fill at the low side. The folder appears whole under its name, or not at all; a name in the container can only
//! become a name in that folder. Documents are made in `zarr`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use orthant::{DynArray, Group, Json, ObjectKind, ReferencePlace, Region, RegionItem};
use orthant_zarr::Version;
use orthant_zarr::cover::Placed;
use orthant_zarr::group::chunk_of;
use orthant_zarr::keys::Keys;
use orthant_zarr::write::{self as document, Places};

use crate::args::State;
use crate::exit::{Exit, Failure, Result};
use crate::json::{answer, maybe_text, object, text, uint};
use crate::session::{Session, print_json};
use crate::target::Target;
use crate::text::{bytes, count, escape};
use crate::zarr::window::Canvas;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// FILE, or FILE:/PATH for a group or an array
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The folder, made by this command
    #[arg(value_name = "DST")]
    folder: PathBuf,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    #[command(flatten)]
    state: State,
    /// Version of Zarr
    #[arg(long, value_enum, default_value = "zarr3", value_name = "zarr3|zarr2")]
    format: Format,
    /// raw: payloads as they are, or not at all; pad: as they are, with a margin of fill at the low side; recode: exact
    /// shape, chunks cut anew [default: raw where chunks begin with the domain, else recode]
    #[arg(long, value_enum, value_name = "raw|pad|recode")]
    aligned: Option<Mode>,
    /// Replace DST where it is a Zarr folder
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Zarr3,
    Zarr2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Raw,
    Pad,
    Recode,
}

/// What became of one array.
struct Row {
    path: String,
    result: &'static str,
    reason: Option<String>,
    chunks: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Export, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let snapshot = session.state(&target.file, &args.state)?;
    let root = snapshot.root();
    let folder = Folder::begin(&args.folder, args.force)?;
    let version = match args.format {
        Format::Zarr3 => Version::V3,
        Format::Zarr2 => Version::V2,
    };
    let mut out = Writing {
        version,
        mode: args.aligned,
        rows: Vec::new(),
    };
    match root.kind(&target.path)? {
        Some(ObjectKind::Array) => out.array(root.dyn_array(&target.path)?, &folder.temporary)?,
        _ if target.path.is_empty() => out.group(&root, &folder.temporary)?,
        _ => out.group(&root.group(&target.path)?, &folder.temporary)?,
    }
    // Nothing is left of a lone array that was refused.
    if folder.temporary.is_dir() {
        folder.finish()?;
    }
    report(args, session, &out.rows)
}

fn report(args: &Export, session: &Session, rows: &[Row]) -> Result<()> {
    let refused = rows.iter().filter(|r| r.reason.is_some());
    if session.json() {
        let list = rows.iter().map(|r| {
            object([
                ("path", text(&r.path)),
                ("result", text(r.result)),
                ("reason", maybe_text(r.reason.clone())),
                ("chunks", uint(r.chunks)),
                ("bytes_out", uint(r.bytes)),
            ])
        });
        let output = ("output", text(args.folder.display().to_string()));
        print_json(&answer(
            "export",
            [output, ("arrays", Json::Array(list.collect()))],
        ))?;
    } else {
        for r in rows {
            let what = match &r.reason {
                Some(reason) => reason.clone(),
                None => format!("{}, {}", count(r.chunks, "chunk"), bytes(r.bytes)),
            };
            session.note(&format!("{}: {}: {what}", escape(&r.path), r.result));
        }
    }
    if refused.count() > 0 {
        Err(Failure::silent(Exit::Negative))
    } else {
        Ok(())
    }
}

/// A folder in the making, beside the place it gets.
struct Folder {
    target: PathBuf,
    temporary: PathBuf,
    /// Where the old folder is until the new one has its name.
    aside: PathBuf,
    replace: bool,
    done: bool,
}

impl Folder {
    fn begin(target: &Path, force: bool) -> Result<Self> {
        let name = target.file_name().map(|n| n.to_string_lossy().into_owned());
        let name =
            name.ok_or_else(|| Failure::usage(format!("{}: names no folder", target.display())))?;
        let aside = target.with_file_name(format!(".{name}.old"));
        let there = || std::fs::symlink_metadata(target).is_ok();
        if !there() && std::fs::symlink_metadata(&aside).is_ok() {
            // A run was killed after it had put the old folder aside, and before the new one had its name.
            std::fs::rename(&aside, target).map_err(|e| Failure::io("put back", target, &e))?;
        }
        let replace = there();
        if replace {
            let is_zarr = ["zarr.json", ".zgroup", ".zarray"]
                .iter()
                .any(|n| target.join(n).is_file());
            if !force {
                return Err(Failure::exists(format!("{}: exists", target.display()))
                    .help("--force replaces a Zarr folder"));
            }
            if target.is_symlink() || !is_zarr {
                return Err(Failure::exists(format!(
                    "{}: exists, and is no Zarr folder",
                    target.display()
                )));
            }
        }
        let temporary = target.with_file_name(format!(".{name}.tmp"));
        // Left by a run that was killed.
        let _ = std::fs::remove_dir_all(&temporary);
        make(&temporary)?;
        Ok(Self {
            target: target.to_owned(),
            temporary,
            aside,
            replace,
            done: false,
        })
    }

    fn finish(mut self) -> Result<()> {
        let failed = |e: &std::io::Error| Failure::io("replace", &self.target, e);
        if self.replace {
            // Left by a run that was killed when all else was done.
            let _ = std::fs::remove_dir_all(&self.aside);
            std::fs::rename(&self.target, &self.aside).map_err(|e| failed(&e))?;
        }
        if let Err(e) = std::fs::rename(&self.temporary, &self.target) {
            if self.replace {
                let _ = std::fs::rename(&self.aside, &self.target);
            }
            return Err(failed(&e));
        }
        self.done = true;
        if self.replace {
            std::fs::remove_dir_all(&self.aside).map_err(|e| failed(&e))?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_dir_all(&self.temporary);
        }
    }
}

/// A new folder; one that is there, under the same name or one that the file system takes for the same, is an error.
fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir(folder).map_err(|e| Failure::io("make", folder, &e))
}

fn write(file: &Path, content: &[u8]) -> Result<()> {
    let made = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(file);
    made.and_then(|mut f| std::io::Write::write_all(&mut f, content))
        .map_err(|e| Failure::io("write", file, &e))
}

/// Why a name in the container cannot be one in a folder; a container cannot hold `/`, `.` or `..` in the first place.
fn refused_name(name: &str) -> Option<String> {
    let mut parts = Path::new(name).components();
    let alone = matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(p)), None) if p == name);
    if !alone || name.contains(['/', '\\', ':']) {
        return Some("its name is not one of a file on every system".into());
    }
    let reserved = ["zarr.json", ".zgroup", ".zattrs", ".zarray", ".zmetadata"];
    let is_reserved = reserved.iter().any(|r| r.eq_ignore_ascii_case(name));
    is_reserved.then(|| "Zarr has a document of that name".into())
}

struct Writing {
    version: Version,
    mode: Option<Mode>,
    rows: Vec<Row>,
}

impl Writing {
    /// Groups below a group are done after it, from a list, so that depth costs no stack.
    fn group(&mut self, top: &Group, folder: &Path) -> Result<()> {
        let mut todo = vec![(top.group("")?, folder.to_owned())];
        while let Some((group, folder)) = todo.pop() {
            for (name, document) in document::group(self.version, &group.attributes())? {
                write(&folder.join(name), document.to_string().as_bytes())?;
            }
            for member in group.members()? {
                let member = member?;
                if let Some(reason) = refused_name(&member.name) {
                    self.refuse(member.path, reason);
                    continue;
                }
                let below = folder.join(&member.name);
                match member.kind {
                    ObjectKind::Array => {
                        make(&below)?;
                        self.array(group.dyn_array(&member.name)?, &below)?;
                    }
                    ObjectKind::Group => {
                        make(&below)?;
                        todo.push((group.group(&member.name)?, below));
                    }
                }
            }
        }
        Ok(())
    }

    fn refuse(&mut self, path: String, reason: String) {
        self.rows.push(Row {
            path,
            result: "refused",
            reason: Some(reason),
            chunks: 0,
            bytes: 0,
        });
    }

    fn array(&mut self, array: DynArray, folder: &Path) -> Result<()> {
        let path = array.path().to_owned();
        let (placed, mode, is_aligned) = placed(array, self.mode)?;
        let refused = (mode == Mode::Raw && !is_aligned).then(|| {
            "its first chunk begins before its domain: --aligned pad or recode".to_owned()
        });
        let documents = document::array(self.version, &placed, false, false, Places::Together)?;
        let documents = match (refused, documents) {
            (None, Ok(documents)) => documents,
            (Some(reason), _) | (None, Err(reason)) => {
                // A group's folder for it was made; alone, nothing is left.
                let _ = std::fs::remove_dir(folder);
                self.refuse(path, reason);
                return Ok(());
            }
        };
        for (name, document) in documents {
            write(&folder.join(name), document.to_string().as_bytes())?;
        }
        let mut chunks = Chunks {
            version: self.version,
            folder,
            placed: &placed,
            row: (0, 0),
        };
        let result = match mode {
            Mode::Recode => chunks.recoded().map(|()| "recoded"),
            Mode::Raw => chunks.as_they_are().map(|()| "raw"),
            Mode::Pad => chunks
                .as_they_are()
                .map(|()| if is_aligned { "raw" } else { "padded" }),
        };
        let result = result.map_err(|e| e.in_array(&path))?;
        let (chunks, bytes) = chunks.row;
        self.rows.push(Row {
            path,
            result,
            reason: None,
            chunks,
            bytes,
        });
        Ok(())
    }
}

/// Where index 0 of an array will be, how its chunks get there, and whether they begin with the domain.
fn placed(array: DynArray, mode: Option<Mode>) -> Result<(Placed, Mode, bool)> {
    let (domain, origin, chunk) = (array.domain()?, array.origin()?, chunk_of(&array, false));
    let axes = domain.bounds().iter().zip(&origin).zip(&chunk);
    let pads = axes.map(|((b, o), c)| {
        let apart = i128::from(b.0) - i128::from(*o);
        i64::try_from(apart.rem_euclid(i128::from((*c).max(1)))).unwrap_or(0)
    });
    let pads: Vec<i64> = pads.collect();
    let is_aligned = pads.iter().all(|p| *p == 0);
    let mode = mode.unwrap_or(if is_aligned { Mode::Raw } else { Mode::Recode });
    let margin = |p: &i64| if mode == Mode::Recode { 0 } else { *p };
    let first = domain
        .bounds()
        .iter()
        .zip(&pads)
        .map(|(b, p)| b.0.saturating_sub(margin(p)));
    let first: Vec<i64> = first.collect();
    let shape = domain
        .bounds()
        .iter()
        .zip(&first)
        .map(|(b, first)| b.1.abs_diff(*first));
    let placed = Placed {
        name: String::new(),
        shape: shape.collect(),
        dims: array
            .dims()
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect(),
        spelled_out: false,
        array,
        chunk,
        first,
    };
    Ok((placed, mode, is_aligned))
}

/// The chunks of one array on their way out.
struct Chunks<'a> {
    version: Version,
    folder: &'a Path,
    placed: &'a Placed,
    /// Chunks and bytes written.
    row: (u64, u64),
}

impl Chunks<'_> {
    fn put(&mut self, at: &[u64], payload: &[u8]) -> Result<()> {
        let mut file = self.folder.to_owned();
        let key = Keys::of(self.version).key(at);
        let mut parts = key.split('/').peekable();
        while let Some(part) = parts.next() {
            file.push(part);
            if parts.peek().is_some() && !file.is_dir() {
                make(&file)?;
            }
        }
        self.row = (
            self.row.0.saturating_add(1),
            self.row.1.saturating_add(payload.len() as u64),
        );
        write(&file, payload)
    }

    fn as_they_are(&mut self) -> Result<()> {
        let array = &self.placed.array;
        let shifts = self.placed.shifts()?;
        let mut failure = None;
        array.for_each_reference(false, |chunk| {
            let at = chunk.coord.iter().zip(&shifts);
            let at = at
                .map(|(c, s)| u64::try_from(i128::from(*c) - s).unwrap_or(0))
                .collect::<Vec<_>>();
            let done = match chunk.place {
                ReferencePlace::Encoded(payload) => self.put(&at, &payload),
                // By its coordinate, so that its checksum is compared.
                ReferencePlace::InFile { .. } => array
                    .encoded_chunk(&chunk.coord)
                    .map_err(Failure::from)
                    .and_then(|payload| self.put(&at, &payload.unwrap_or_default())),
            };
            match done {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    failure = Some(e);
                    ControlFlow::Break(())
                }
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// Cuts chunks anew from the domain's low corner. Work follows what is stored, not the grid.
    fn recoded(&mut self) -> Result<()> {
        let array = &self.placed.array;
        let (domain, origin) = (array.domain()?, array.origin()?);
        let chunk: Vec<i64> = self
            .placed
            .chunk
            .iter()
            .map(|c| i64::try_from(*c).unwrap_or(i64::MAX))
            .collect();
        let mut wanted: BTreeSet<Vec<i64>> = BTreeSet::new();
        array.for_each_chunk(Region::all(), |stored| {
            let mut corners = vec![Vec::new()];
            for (axis, c) in stored.coord.iter().enumerate() {
                let (size, o) = (
                    chunk.get(axis).copied().unwrap_or(1),
                    origin.get(axis).copied().unwrap_or(0),
                );
                let (lo, hi) = domain.bounds().get(axis).copied().unwrap_or_default();
                let start = i128::from(o) + i128::from(*c) * i128::from(size);
                let (from, to) = (
                    start.max(i128::from(lo)),
                    (start + i128::from(size)).min(i128::from(hi)),
                );
                let number = |x: i128| (x - i128::from(lo)).div_euclid(i128::from(size));
                let ends = [number(from), number(to - 1)];
                corners = corners
                    .iter()
                    .flat_map(|head: &Vec<i64>| {
                        let ends =
                            ends.iter()
                                .take(if ends.first() == ends.last() { 1 } else { 2 });
                        ends.map(|e| [head.as_slice(), &[i64::try_from(*e).unwrap_or(0)]].concat())
                    })
                    .collect();
            }
            wanted.extend(corners);
            Ok(())
        })?;
        let (data_type, fill) = (array.data_type(), array.fill_bytes());
        for at in wanted {
            let ranges = at
                .iter()
                .zip(&chunk)
                .zip(domain.bounds())
                .map(|((n, size), (lo, hi))| {
                    let start = lo.saturating_add(n.saturating_mul(*size));
                    start..start.saturating_add(*size).min(*hi)
                });
            let part = array.read(Region::from_items(ranges.map(RegionItem::from)))?;
            let canvas = Canvas::new(&data_type, &self.placed.chunk, &fill);
            let mut canvas =
                canvas.ok_or_else(|| Failure::usage("a chunk is larger than memory can hold"))?;
            canvas.lay(&part, &vec![0; at.len()]);
            if let Some(payload) = array.encode_chunk(&canvas.into_block())? {
                let at: Vec<u64> = at.iter().map(|n| n.unsigned_abs()).collect();
                self.put(&at, &payload)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_lead_out_of_the_folder_or_onto_a_document_is_refused() {
        for name in [
            "..",
            ".",
            "a/b",
            "a\\b",
            "..\\x",
            "C:",
            "/x",
            "zarr.json",
            "Zarr.json",
            ".zgroup",
            "",
        ] {
            assert!(refused_name(name).is_some(), "{name}");
        }
        for name in ["a", "c", "...", "zarr", "ä b", "-r"] {
            assert_eq!(refused_name(name), None, "{name}");
        }
    }
}
