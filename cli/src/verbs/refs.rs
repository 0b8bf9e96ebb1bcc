//! `refs`: byte-range references with which Zarr readers open a container, no code of this project at hand.
//!
//! Holds the writing of kerchunk's JSON, version 1, for one retained generation. The generation is marked as referenced in
//! the same run, so that its bytes stay where they are. Must not lay out arrays (see `zarr`).

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use orthant::{At, Container, DynArray, Json, ReferencePlace, RetainedSnapshot, Snapshot};
use orthant_zarr::Version;
use orthant_zarr::cover::Placed;
use orthant_zarr::group::hierarchy;
use orthant_zarr::keys::Keys;
use orthant_zarr::line::Line;
use orthant_zarr::write::{self as document, Documents, Places, base64, grid_count};

use crate::args::Message;
use crate::atomic::Output;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::Target;
use crate::text::{count, escape};

/// Most bytes of chunks that have no place in the file and stand in the references themselves.
const INLINE_MAX: u64 = 256 << 20;
/// Longest index of labels that is made for an axis.
const INDEX_MAX: u64 = 1 << 24;

/// Arguments of `refs`.
#[derive(Debug, Args)]
pub(crate) struct Refs {
    /// FILE, or FILE:/PATH for a group or an array
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// A retained snapshot [default: the newest generation, retained as refs-G]
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    /// Version of the Zarr documents in the references
    #[arg(long, value_enum, default_value = "3", value_name = "3|2")]
    zarr: Version,
    /// Where readers find FILE [default: its absolute path]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The chunks within shards as plain chunks, for readers that know no shards
    #[arg(long)]
    inner: bool,
    /// The references
    #[arg(short, long, value_name = "OUT.json", required = true)]
    output: PathBuf,
    /// Overwrite OUT.json
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    message: Message,
}

/// What was written.
#[derive(Debug, Default)]
struct Told {
    arrays: u64,
    chunks: u64,
    inlined: u64,
    inlined_bytes: u64,
    refused: Vec<(String, String)>,
    notes: Vec<String>,
}

pub(crate) fn run(args: &Refs, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let container = session.writable(&target.file)?;
    // From here on nobody else commits, so what is described below is what is retained.
    let writer = container.writer()?;
    let listed = container.snapshots()?;
    let (snapshot, name, known) = match &args.snapshot {
        Some(name) => {
            let at: At = name.parse()?;
            let snapshot = container.snapshot_at(&at)?;
            let known = listed
                .iter()
                .find(|s| s.generation == snapshot.generation());
            let known = known.ok_or_else(|| not_retained(name))?;
            (snapshot, known.name.clone(), Some(known))
        }
        None => {
            let snapshot = container.snapshot()?;
            match newest(&container, &listed, &snapshot)? {
                Some(known) => (
                    container.snapshot_at(&At::Generation(known.generation))?,
                    known.name.clone(),
                    Some(known),
                ),
                None => {
                    let name = format!("refs-{}", snapshot.generation());
                    (snapshot, name, None)
                }
            }
        }
    };
    let mut out = Output::create(&args.output, args.force)?;
    let url = match &args.url {
        Some(url) => url.clone(),
        None => absolute(&target.file)?,
    };
    let told = Writing::new(args, &mut out, &url)?.all(&snapshot, &target.path)?;
    let before = container.snapshot()?.generation();
    let mut generation = before;
    if known.is_none_or(|s| !s.referenced) {
        if known.is_none() {
            writer.retain(&name)?;
        }
        writer.mark_referenced(&name)?;
        if let Some(message) = &args.message.message {
            writer.message(message)?;
        }
        generation = writer.commit()?;
    }
    out.finish()?;
    report(
        args,
        session,
        &told,
        &name,
        snapshot.generation(),
        generation,
    )
}

/// The snapshot that already keeps what is newest: since it, nothing was committed but notes about snapshots.
fn newest<'a>(
    container: &Container,
    listed: &'a [RetainedSnapshot],
    snapshot: &Snapshot,
) -> Result<Option<&'a RetainedSnapshot>> {
    let Some(last) = listed.iter().max_by_key(|s| s.generation) else {
        return Ok(None);
    };
    let log = container.log()?;
    let changes = |g: u64| log.iter().find(|e| e.generation == g).map(|e| e.changed);
    let mut since = last.generation.saturating_add(1)..=snapshot.generation();
    Ok(since.all(|g| changes(g) == Some(0)).then_some(last))
}

fn not_retained(name: &str) -> Failure {
    Failure::usage(format!("{name}: not a retained snapshot"))
        .help("orthant snapshot add FILE NAME")
}

fn absolute(file: &Path) -> Result<String> {
    let path = file
        .canonicalize()
        .map_err(|e| Failure::io("find", file, &e))?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::usage(format!("{}: its path is not UTF-8", file.display())).help("--url URL")
    })
}

/// The references in the making.
struct Writing<'a> {
    args: &'a Refs,
    out: &'a mut Output,
    url: Json,
    told: Told,
    comma: &'static str,
}

impl<'a> Writing<'a> {
    fn new(args: &'a Refs, out: &'a mut Output, url: &str) -> Result<Self> {
        let mut this = Self {
            args,
            out,
            url: text(url),
            told: Told::default(),
            comma: "",
        };
        this.raw("{\"version\":1,\"refs\":{")?;
        Ok(this)
    }

    fn raw(&mut self, text: &str) -> Result<()> {
        let written = self.out.write_all(text.as_bytes());
        written.map_err(|e| Failure::io("write", &self.args.output, &e))
    }

    fn entry(&mut self, key: &str, value: &Json) -> Result<()> {
        let line = format!("{}\n{}:{value}", self.comma, text(key));
        self.comma = ",";
        self.raw(&line)
    }

    /// Documents stand in the references as text.
    fn documents(&mut self, prefix: &str, documents: Vec<(&'static str, Json)>) -> Result<()> {
        for (name, document) in documents {
            self.entry(&format!("{prefix}{name}"), &text(document.to_string()))?;
        }
        Ok(())
    }

    fn all(mut self, snapshot: &Snapshot, path: &str) -> Result<Told> {
        for node in hierarchy(snapshot, path, self.args.inner)? {
            if let Some(group) = &node.group {
                let documents = document::group(self.args.zarr, &group.attributes())?;
                self.documents(&node.prefix, documents)?;
            }
            let is_array = node.group.is_none();
            for placed in &node.cover.arrays {
                let below = if is_array {
                    String::new()
                } else {
                    format!("{}{}/", node.prefix, placed.name)
                };
                self.array(placed, &below)?;
            }
            for index in node.cover.indexes.iter().filter(|_| !is_array) {
                if index.len > INDEX_MAX {
                    let note = format!(
                        "axis {} has {} coordinates, too many for an index of them",
                        index.dim, index.len
                    );
                    self.told.notes.push(note);
                    continue;
                }
                let line = Line::count_from(index.first, index.len);
                let documents = document::line(self.args.zarr, &line, &index.dim, None)?;
                self.line(&format!("{}{}/", node.prefix, index.name), &line, documents)?;
            }
        }
        self.raw("\n}}\n")?;
        Ok(self.told)
    }

    fn array(&mut self, placed: &Placed, below: &str) -> Result<()> {
        let array = &placed.array;
        if placed.spelled_out {
            let line = labels(array, placed)?;
            let dim = placed.dims.first().map_or("", String::as_str);
            let documents = document::line(self.args.zarr, &line, dim, Some(placed))?;
            return self.line(below, &line, documents);
        }
        let inner = self.args.inner && array.shard_shape().is_some();
        if let Err(reason) = document::array(self.args.zarr, placed, inner, false, Places::Apart)? {
            self.told.refused.push((array.path().to_owned(), reason));
            return Ok(());
        }
        let shifts = placed.shifts()?;
        let before = self.told.chunks;
        // What fails here is no error of the library's.
        let mut failure = None;
        let done = array.for_each_reference(inner, |chunk| {
            let key = chunk
                .coord
                .iter()
                .zip(&shifts)
                .map(|(c, s)| u64::try_from(i128::from(*c) - s).unwrap_or(0));
            let key = format!(
                "{below}{}",
                Keys::of(self.args.zarr).key(&key.collect::<Vec<_>>())
            );
            let value = match chunk.place {
                ReferencePlace::InFile { offset, len } => {
                    Json::Array(vec![self.url.clone(), uint(offset), uint(len)])
                }
                ReferencePlace::Encoded(bytes) => self.inline(&bytes),
            };
            self.told.chunks = self.told.chunks.saturating_add(1);
            let written = self.entry(&key, &value).and_then(|()| self.room());
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    failure = Some(e);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(failure) = failure {
            return Err(failure.in_array(array.path()));
        }
        done.map_err(|e| Failure::from(e).in_array(array.path()))?;
        let stored = self.told.chunks.saturating_sub(before);
        let full = grid_count(&placed.shape, &placed.chunk) == Some(stored);
        match document::array(self.args.zarr, placed, inner, full, Places::Apart)? {
            Ok(documents) => self.documents(below, documents)?,
            Err(reason) => self.told.refused.push((array.path().to_owned(), reason)),
        }
        self.told.arrays = self.told.arrays.saturating_add(1);
        Ok(())
    }

    fn inline(&mut self, bytes: &[u8]) -> Json {
        self.told.inlined = self.told.inlined.saturating_add(1);
        self.told.inlined_bytes = self.told.inlined_bytes.saturating_add(bytes.len() as u64);
        text(format!("base64:{}", base64(bytes)))
    }

    fn room(&self) -> Result<()> {
        if self.told.inlined_bytes <= INLINE_MAX {
            return Ok(());
        }
        Err(Failure::usage(
            "chunks that have no place in the file take more than 256 MiB of the references",
        )
        .help("orthant rechunk stores them"))
    }

    fn line(&mut self, below: &str, line: &Line, documents: Documents) -> Result<()> {
        let Ok(documents) = documents else {
            return Ok(());
        };
        self.documents(below, documents)?;
        let bytes = line.encode()?;
        if !bytes.is_empty() {
            let value = self.inline(&bytes);
            let key = format!("{below}{}", Keys::of(self.args.zarr).key(&[0]));
            self.entry(&key, &value)?;
        }
        self.told.arrays = self.told.arrays.saturating_add(1);
        Ok(())
    }
}

/// A coordinate array over the whole cover: its own elements, and beyond its domain what goes on from them, so that the
/// labels stay in order and none stands twice.
fn labels(array: &DynArray, placed: &Placed) -> Result<Line> {
    let block = array.read(orthant::Region::all())?;
    let len = placed.shape.first().copied().unwrap_or(0);
    let lo = array.domain()?.bounds().first().map_or(0, |b| b.0);
    let before = lo.abs_diff(placed.first.first().copied().unwrap_or(lo));
    let own = block.shape.first().copied().unwrap_or(0);
    let after = len.saturating_sub(before).saturating_sub(own);
    let elements = crate::zarr::extend(&block, before, after, &array.fill_bytes());
    Ok(Line {
        data_type: block.data_type,
        elements,
        len,
    })
}

fn report(
    args: &Refs,
    session: &Session,
    told: &Told,
    name: &str,
    described: u64,
    generation: u64,
) -> Result<()> {
    let lines = python(args);
    for note in &told.notes {
        session.note(&format!("note: {note}"));
    }
    for (path, reason) in &told.refused {
        crate::session::warn(&format!("{}: left out: {reason}", escape(path)));
    }
    if session.json() {
        let refused = told.refused.iter().map(|(path, reason)| {
            crate::json::object([("path", text(path)), ("reason", text(reason))])
        });
        let members = [
            ("output", text(args.output.display().to_string())),
            ("snapshot", text(name)),
            ("described", uint(described)),
            ("generation", uint(generation)),
            ("arrays", uint(told.arrays)),
            ("chunks", uint(told.chunks)),
            ("inlined", uint(told.inlined)),
            ("refused", Json::Array(refused.collect())),
            ("python", text(lines)),
        ];
        print_json(&answer("refs", members))?;
    } else {
        session.note(&format!(
            "generation {described} is kept as {}; {} of {} in {}",
            escape(name),
            count(told.chunks, "reference"),
            count(told.arrays, "array"),
            args.output.display()
        ));
        stdout(|out| out.write_all(lines.as_bytes()))?;
    }
    if told.refused.is_empty() {
        Ok(())
    } else {
        Err(Failure::silent(crate::exit::Exit::Negative))
    }
}

/// What opens the result, to be pasted.
fn python(args: &Refs) -> String {
    let format = match args.zarr {
        Version::V3 => 3,
        Version::V2 => 2,
    };
    let output = args
        .output
        .canonicalize()
        .unwrap_or_else(|_| args.output.clone());
    let fo = text(output.display().to_string());
    let url = args.url.as_deref().unwrap_or_default();
    let remote = url.split_once("://").map(|(protocol, _)| text(protocol));
    let remote = remote.map_or_else(String::new, |protocol| {
        format!(", \"remote_protocol\": {protocol}, \"remote_options\": {{\"asynchronous\": True}}")
    });
    format!(
        "# pip install xarray zarr fsspec\n\
         import xarray as xr\n\
         ds = xr.open_zarr(\"reference://\", storage_options={{\"fo\": {fo}{remote}}}, zarr_format={format}, consolidated=False)\n"
    )
}
