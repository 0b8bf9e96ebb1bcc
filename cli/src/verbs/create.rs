//! `create`: an empty container, a group or an array.

use clap::Args;
use orthant::{Codec, Container, DataType, Domain, DynArraySpec};

use crate::args::Message;
use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, text};
use crate::selection::{axis_of, domain, numbers};
use crate::session::{Session, print_json};
use crate::target::Target;
use crate::text;

/// Arguments of `create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant create ocean.orth
  orthant create ocean.orth:/model/temp --domain -48:0,0:720,0:1440 --dims time,y,x --dtype f32 --fill NaN
  orthant create ocean.orth:/model/time --shape 0 --dtype datetime64:s --chunks 1024 --dims time")]
pub(crate) struct Create {
    /// FILE, or FILE:/PATH; FILE and missing parents are made
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Make a group
    #[arg(long, conflicts_with_all = ["dtype", "domain", "shape", "chunks", "origin", "fill", "dims", "units", "codecs", "shard"])]
    group: bool,
    /// Half-open range of coordinates per axis: -48:0,0:720; empty for an array without axes
    #[arg(
        long,
        value_name = "A:B,..",
        allow_hyphen_values = true,
        conflicts_with = "shape"
    )]
    domain: Option<String>,
    /// Elements per axis, coordinates from 0
    #[arg(long, value_name = "N,M", allow_hyphen_values = true)]
    shape: Option<String>,
    /// Elements per axis of a chunk, or NAME=n,.. with the other axes whole [default: about 1 MiB]
    #[arg(long, value_name = "N,M", allow_hyphen_values = true)]
    chunks: Option<String>,
    /// Element type: f32, float32, <f4, datetime64:s, string, ...
    #[arg(long, value_name = "T")]
    dtype: Option<String>,
    /// Coordinate where chunk 0 starts, per axis [default: 0]
    #[arg(long, value_name = "O,P", allow_hyphen_values = true)]
    origin: Option<String>,
    /// Value of elements never written, in Zarr's JSON form: -9999, NaN, -Infinity, 0x7fc00001, [re,im]
    #[arg(long, value_name = "V", allow_hyphen_values = true)]
    fill: Option<String>,
    /// Names of the axes; an empty one leaves its axis without
    #[arg(
        long,
        value_name = "Y,X",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    dims: Option<Vec<String>>,
    /// The attribute `units`
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    units: Option<String>,
    /// shuffle,zstd:3,crc32c or a profile: default, portable, archive, raw
    #[arg(long, value_name = "LIST")]
    codecs: Option<String>,
    /// Elements per axis of a shard; --chunks are its inner chunks then
    #[arg(long, value_name = "N,M")]
    shard: Option<String>,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Create, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let spec = args.spec()?;
    if !target.named || target.path.is_empty() {
        if spec.is_some() || args.group || target.named {
            return Err(Failure::usage(format!(
                "{}: an array or group needs a path, as {}:/PATH",
                target.display(),
                target.file.display()
            )));
        }
        return empty(&target, args, session);
    }
    if spec.is_none() && !args.group {
        return Err(Failure::usage(format!(
            "{}: --dtype says what array to make, --group that it is a group",
            target.display()
        )));
    }
    // A new file is not made for what would be refused.
    if let Some(spec) = &spec {
        let trial = Container::in_memory()?;
        trial
            .writer()?
            .create_dyn_array(&target.path, spec)
            .map_err(|e| Failure::from(e).into_argument().in_file(&target.file))?;
    }
    let writer = session.writer_or_new(&target.file)?;
    let Some(spec) = spec else {
        writer.create_group(&target.path)?;
        let generation = writer.commit(args.message.message.as_deref())?;
        if session.json() {
            let members = [
                ("path", text(target.slashed())),
                ("kind", text("group")),
                ("generation", crate::json::uint(generation)),
            ];
            return print_json(&answer("create", members));
        }
        session.note(&format!("created group {}", target.display()));
        return Ok(());
    };
    let array = writer.create_dyn_array(&target.path, &spec)?;
    if let Some(units) = &args.units {
        array.attributes().set("units", units.as_str())?;
    }
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        let mut members = vec![("generation", crate::json::uint(generation))];
        members.extend(describe::array_layout(&array)?);
        return print_json(&answer("create", members));
    }
    session.note(&format!(
        "created {}: {} {}, chunks {}, fill {}",
        target.display(),
        array.data_type(),
        array.domain()?,
        text::list(array.chunk_shape()),
        describe::fill(&array),
    ));
    Ok(())
}

fn empty(target: &Target, args: &Create, session: &Session) -> Result<()> {
    let generation = session.create(&target.file, args.message.message.as_deref())?;
    if session.json() {
        let members = [
            ("path", text("/")),
            ("kind", text("group")),
            ("generation", crate::json::uint(generation)),
        ];
        return print_json(&answer("create", members));
    }
    session.note(&format!("created {}", target.file.display()));
    Ok(())
}

impl Create {
    /// The array that is asked for; none where no type is given.
    fn spec(&self) -> Result<Option<DynArraySpec>> {
        let Some(dtype) = &self.dtype else {
            let given = [
                (self.domain.is_some(), "--domain"),
                (self.shape.is_some(), "--shape"),
                (self.chunks.is_some(), "--chunks"),
                (self.fill.is_some(), "--fill"),
            ];
            return match given.iter().find(|(is, _)| *is) {
                Some((_, flag)) => Err(Failure::usage(format!(
                    "{flag} makes an array, whose --dtype is missing"
                ))),
                None => Ok(None),
            };
        };
        let data_type: DataType = dtype
            .parse()
            .map_err(|e| Failure::from(e).into_argument())?;
        let domain = match (&self.domain, &self.shape) {
            (Some(text), None) => domain(text)?,
            (None, Some(text)) => Domain::from_shape(&numbers::<u64>("--shape", text)?)?,
            _ => {
                return Err(Failure::usage(
                    "an array needs --domain or --shape; for one without axes --domain= --chunks=",
                ));
            }
        };
        let mut spec = DynArraySpec::new(data_type.clone(), domain.clone());
        if let Some(text) = &self.chunks {
            spec = spec.chunks(self.extents("--chunks", text, &domain)?);
        }
        if let Some(text) = &self.shard {
            spec = spec.shards(self.extents("--shard", text, &domain)?);
        }
        if let Some(text) = &self.origin {
            spec = spec.origin(numbers::<i64>("--origin", text)?);
        }
        if let Some(dims) = &self.dims {
            spec = spec.dims(dims);
        }
        if let Some(text) = &self.fill {
            let bytes = data_type
                .element_from_text(text)
                .map_err(|e| Failure::from(e).into_argument())?;
            spec = spec.fill_bytes(bytes);
        }
        if let Some(list) = &self.codecs {
            spec = spec.codecs(codecs(list)?);
        }
        Ok(Some(spec))
    }

    /// The extents of `--chunks` or `--shard`.
    fn extents(&self, flag: &str, text: &str, domain: &Domain) -> Result<Vec<u64>> {
        if !text.contains('=') {
            return numbers(flag, text);
        }
        let mut dims: Vec<Option<String>> = self
            .dims
            .iter()
            .flatten()
            .map(|d| (!d.is_empty()).then(|| d.clone()))
            .collect();
        dims.resize(domain.rank(), None);
        named_chunks(text, &dims, &domain.shape())
    }
}

/// `time=24,y=180`: axes not named are one chunk.
pub(crate) fn named_chunks(text: &str, dims: &[Option<String>], shape: &[u64]) -> Result<Vec<u64>> {
    let mut chunks: Vec<u64> = shape.iter().map(|n| (*n).max(1)).collect();
    for part in text.split(',') {
        let (name, n) = part.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "--chunks {text}: either n,m or NAME=n,.., not both"
            ))
        })?;
        let axis = axis_of(name, dims)?;
        let extent = n.trim().parse().map_err(|_| {
            Failure::usage(format!(
                "--chunks {text}: {n:?} is no whole number in range"
            ))
        })?;
        if let Some(slot) = chunks.get_mut(axis) {
            *slot = extent;
        }
    }
    Ok(chunks)
}

/// The codecs of a `--codecs` argument.
pub(crate) fn codecs(list: &str) -> Result<Vec<Codec>> {
    Codec::list(list).map_err(|e| Failure::from(e).into_argument())
}
