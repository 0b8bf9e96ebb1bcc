//! `info`: what a container, a group or an array is. Reads no payload.

use std::collections::BTreeMap;

use clap::Args;
use orthant::{Attributes, DynArray, Group, Json, ObjectKind, OtherSlot, Snapshot};

use crate::args::State;
use crate::calendar::rfc3339;
use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, ints, object, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::{Target, slashed};
use crate::text::{self, Table, escape};

/// Arguments of `info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// FILE, or FILE:/PATH
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(args: &Info, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    if !target.named {
        return container(&target, &args.state, session);
    }
    let snapshot = session.state(&target.file, &args.state)?;
    match kind(&snapshot, &target)? {
        ObjectKind::Group => group(&snapshot.group(&target.path)?, session),
        ObjectKind::Array => array(&snapshot.dyn_array(&target.path)?, session),
    }
}

/// What lies at the target's path.
pub(crate) fn kind(snapshot: &Snapshot, target: &Target) -> Result<ObjectKind> {
    if target.path.is_empty() {
        return Ok(ObjectKind::Group);
    }
    snapshot.root().kind(&target.path)?.ok_or_else(|| {
        Failure::not_found(format!("{}: no such object", target.display()))
            .in_file(&target.file)
            .in_array(&target.slashed())
            .help(format!("orthant ls -R {}", target.file.display()))
    })
}

fn container(target: &Target, state: &State, session: &Session) -> Result<()> {
    let container = session.open(&target.file)?;
    let snapshot = match &state.at {
        Some(at) => container.snapshot_at(at)?,
        None => container.snapshot()?,
    };
    let report = container.report();
    let file_bytes = std::fs::metadata(&target.file)
        .map_err(|e| Failure::io("look at", &target.file, &e))?
        .len();
    let (mut arrays, mut groups) = (0_u64, 0_u64);
    for member in snapshot.walk()? {
        match member?.kind {
            ObjectKind::Array => arrays = arrays.saturating_add(1),
            ObjectKind::Group => groups = groups.saturating_add(1),
        }
    }
    let (major, minor) = container.format_version();
    let time = rfc3339(snapshot.time());
    if session.json() {
        let other_slot = match report.other_slot {
            OtherSlot::Valid => "valid",
            OtherSlot::Invalid => "invalid",
            _ => "unconfirmed",
        };
        let open = object([
            ("other_slot", text(other_slot)),
            ("fell_back", Json::Bool(report.fell_back)),
            ("ignored_tail_bytes", uint(report.ignored_tail_bytes)),
        ]);
        let members = [
            ("path", text(target.file.to_string_lossy())),
            ("kind", text("container")),
            (
                "format",
                object([("major", uint(major.into())), ("minor", uint(minor.into()))]),
            ),
            ("generation", uint(snapshot.generation())),
            ("time", text(time)),
            ("file_bytes", uint(file_bytes)),
            ("arrays", uint(arrays)),
            ("groups", uint(groups)),
            ("snapshots", uint(container.snapshots()?.len() as u64)),
            ("open", open),
        ];
        return print_json(&answer("info", members));
    }
    let members = Members::of(&snapshot.root(), ROWS_MAX)?;
    stdout(|out| {
        writeln!(
            out,
            "{}: orthant container, format {major}.{minor}",
            escape(&target.file.to_string_lossy())
        )?;
        let mut table = Table::new(&[]);
        table.row([
            "  generation".to_owned(),
            format!("{} of {time}", snapshot.generation()),
        ]);
        table.row(["  size".to_owned(), text::bytes(file_bytes)]);
        table.row([
            "  holds".to_owned(),
            format!(
                "{}, {}",
                text::count(arrays, "array"),
                text::count(groups, "group")
            ),
        ]);
        write!(out, "{table}")?;
        members.write(out)
    })
}

fn group(group: &Group, session: &Session) -> Result<()> {
    let members = Members::of(group, usize::MAX)?;
    if session.json() {
        let mut answer_members = vec![
            ("path", text(slashed(&group.path()))),
            ("kind", text("group")),
            ("members", uint(members.count)),
            ("dims", members.dims_json()),
        ];
        answer_members.extend(describe::attributes(&group.attributes())?);
        return print_json(&answer("info", answer_members));
    }
    let attributes = attribute_lines(&group.attributes())?;
    stdout(|out| {
        writeln!(
            out,
            "{}: group, {}",
            escape(&slashed(&group.path())),
            text::count(members.count, "member")
        )?;
        members.write(out)?;
        out.write_all(attributes.as_bytes())
    })
}

/// The members of a group, as far as its own description needs them.
#[derive(Debug, Default)]
struct Members {
    count: u64,
    rows: Vec<[String; 3]>,
    /// Axis name and range, and the arrays that have it.
    dims: BTreeMap<String, BTreeMap<(i64, i64), Vec<String>>>,
}

/// Rows of members that are shown; `ls` shows all.
const ROWS_MAX: usize = 40;

impl Members {
    /// Counts the members, and looks at the first `looked_at` of them.
    fn of(group: &Group, looked_at: usize) -> Result<Self> {
        let mut members = Self::default();
        for (i, member) in group.members()?.enumerate() {
            let member = member?;
            members.count = members.count.saturating_add(1);
            if i >= looked_at {
                continue;
            }
            let row = match member.kind {
                ObjectKind::Group => [
                    format!("  {}/", member.name),
                    "group".to_owned(),
                    String::new(),
                ],
                ObjectKind::Array => match group.dyn_array(&member.name) {
                    Ok(array) => {
                        members.note_dims(&member.name, &array)?;
                        [
                            format!("  {}", member.name),
                            array.data_type().to_string(),
                            named_domain(&array)?,
                        ]
                    }
                    Err(e) => [format!("  {}", member.name), "?".to_owned(), e.to_string()],
                },
            };
            if members.rows.len() < ROWS_MAX {
                members.rows.push(row);
            }
        }
        Ok(members)
    }

    fn note_dims(&mut self, name: &str, array: &DynArray) -> Result<()> {
        let domain = array.domain()?;
        for (dim, range) in array.dims().into_iter().zip(domain.bounds()) {
            if let Some(dim) = dim {
                let ranges = self.dims.entry(dim).or_default();
                ranges.entry(*range).or_default().push(name.to_owned());
            }
        }
        Ok(())
    }

    fn dims_json(&self) -> Json {
        let all = self.dims.iter().flat_map(|(name, ranges)| {
            ranges.iter().map(move |(&(lo, hi), arrays)| {
                object([
                    ("name", text(name)),
                    ("domain", ints([lo, hi])),
                    ("arrays", Json::Array(arrays.iter().map(text).collect())),
                ])
            })
        });
        Json::Array(all.collect())
    }

    fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let mut table = Table::new(&[]);
        for row in &self.rows {
            table.row(row.iter().cloned());
        }
        write!(out, "{table}")?;
        let more = self.count.saturating_sub(self.rows.len() as u64);
        if more > 0 {
            writeln!(out, "  ... and {more} more")?;
        }
        for (name, ranges) in &self.dims {
            if let (Some(((lo, hi), arrays)), true) = (ranges.first_key_value(), ranges.len() == 1)
            {
                writeln!(
                    out,
                    "  axis {}: {lo}:{hi} in {}",
                    escape(name),
                    text::count(arrays.len() as u64, "array")
                )?;
            } else {
                let all = ranges
                    .iter()
                    .map(|((lo, hi), arrays)| format!("{lo}:{hi} in {}", arrays.join(", ")));
                writeln!(
                    out,
                    "warning: the axis {} differs: {}",
                    escape(name),
                    escape(&all.collect::<Vec<_>>().join("; "))
                )?;
            }
        }
        Ok(())
    }
}

/// `[time=-48:0, y=0:720, 0:3]`
fn named_domain(array: &DynArray) -> Result<String> {
    let domain = array.domain()?;
    let axes = array
        .dims()
        .into_iter()
        .zip(domain.bounds())
        .map(|(name, (lo, hi))| match name {
            Some(name) => format!("{name}={lo}:{hi}"),
            None => format!("{lo}:{hi}"),
        });
    Ok(format!("[{}]", text::list(axes)))
}

fn array(array: &DynArray, session: &Session) -> Result<()> {
    if session.json() {
        let mut members = describe::array_layout(array)?;
        members.extend(describe::attributes(&array.attributes())?);
        members.extend(describe::storage(array)?.1);
        return print_json(&answer("info", members));
    }
    let (stored, _) = describe::storage(array)?;
    let domain = array.domain()?;
    let mut table = Table::new(&[]);
    let mut row = |name: &str, value: String| table.row([format!("  {name}"), value]);
    row("type", array.data_type().to_string());
    row("domain", named_domain(array)?);
    row("shape", text::list(domain.shape()));
    row(
        "chunks",
        format!(
            "{}, origin {}",
            text::list(array.chunk_shape()),
            text::list(array.origin()?)
        ),
    );
    if let Some(shard) = array.shard_shape() {
        row("shards", text::list(shard));
    }
    row("overhang", overhang(array)?);
    row("fill", describe::fill(array));
    row(
        "codecs",
        text::list(array.codecs().iter().map(describe::codec_text)),
    );
    let grid = array
        .grid_chunks()?
        .map_or_else(|| "more than 2^128".to_owned(), |n| n.to_string());
    row(
        "stored",
        format!(
            "{} of {grid} chunks, {} constant",
            stored.chunks, stored.constant
        ),
    );
    let logical = describe::logical_bytes(array)?;
    let ratio = logical
        .and_then(|n| u64::try_from(n).ok())
        .filter(|_| stored.bytes > 0);
    row(
        "bytes",
        match ratio {
            Some(logical) => format!(
                "{} of {}, ratio {:.2}",
                text::bytes(stored.bytes),
                text::bytes(logical),
                crate::json::ratio(logical, stored.bytes)
            ),
            None => text::bytes(stored.bytes),
        },
    );
    row("readers", text::list(array.readers()));
    let attributes = attribute_lines(&array.attributes())?;
    stdout(|out| {
        writeln!(out, "{}: array", escape(&slashed(array.path())))?;
        write!(out, "{table}")?;
        out.write_all(attributes.as_bytes())
    })
}

/// How far the outermost chunks reach past the domain, per axis.
fn overhang(array: &DynArray) -> Result<String> {
    let mut parts = Vec::new();
    for (axis, name) in array.dims().into_iter().enumerate() {
        let (lo, hi) = array.room(axis)?;
        if lo > 0 || hi > 0 {
            let name = name.unwrap_or_else(|| format!("axis {axis}"));
            parts.push(format!("{name} {lo} below, {hi} above"));
        }
    }
    Ok(if parts.is_empty() {
        "none: the domain ends on chunk edges".to_owned()
    } else {
        parts.join("; ")
    })
}

/// One line an attribute: name, type, value.
pub(crate) fn attribute_lines(attributes: &Attributes) -> Result<String> {
    let list = attributes.list()?;
    if list.is_empty() {
        return Ok(String::new());
    }
    let mut table = Table::new(&[]);
    for (name, value) in list {
        let shown: String = value.to_json().to_string();
        let short: String = shown.chars().take(100).collect();
        let dots = if short.len() < shown.len() { ".." } else { "" };
        table.row([
            format!("    {name}"),
            value.type_name(),
            format!("{short}{dots}"),
        ]);
    }
    Ok(format!("  attributes\n{table}"))
}
