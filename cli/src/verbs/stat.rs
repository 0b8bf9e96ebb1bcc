//! `stat`: where a file's bytes are.

use clap::Args;
use orthant::{ChunkState, DynArray, Json, ObjectKind, Region};

use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, ints, object, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::{Target, slashed};
use crate::text::{Table, bytes, escape};

/// Arguments of `stat`.
#[derive(Debug, Args)]
pub(crate) struct Stat {
    /// FILE, or FILE:/PATH
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Every chunk of the array, and a histogram of their stored bytes
    #[arg(long)]
    chunks: bool,
}

pub(crate) fn run(args: &Stat, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let container = session.open(&target.file)?;
    let snapshot = container.snapshot()?;
    let kind = super::info::kind(&snapshot, &target)?;
    if kind == ObjectKind::Array {
        return array(&snapshot.dyn_array(&target.path)?, args.chunks, session);
    }
    if args.chunks {
        return Err(Failure::usage(format!(
            "{}: --chunks lists the chunks of an array",
            target.display()
        )));
    }
    let s = snapshot.statistics()?;
    let file_bytes = std::fs::metadata(&target.file)
        .map_err(|e| Failure::io("look at", &target.file, &e))?
        .len();
    let dead = file_bytes
        .saturating_sub(s.live_payload_bytes)
        .saturating_sub(s.live_index_bytes);
    let per_entry = crate::json::ratio(s.live_index_bytes, s.entries);
    if session.json() {
        let index = object([
            ("depth", uint(s.depth)),
            ("nodes", uint(s.nodes)),
            ("entries", uint(s.entries)),
            ("bytes_per_entry", Json::F64(per_entry)),
        ]);
        let members = [
            ("path", text(target.file.to_string_lossy())),
            ("file_bytes", uint(file_bytes)),
            ("live_payload_bytes", uint(s.live_payload_bytes)),
            ("live_index_bytes", uint(s.live_index_bytes)),
            ("dead_bytes", uint(dead)),
            ("reusable_bytes", uint(s.reusable_bytes)),
            ("index", index),
            ("held_by", Json::Array(Vec::new())),
        ];
        return print_json(&answer("stat", members));
    }
    let mut table = Table::new(&[1]);
    table.row(["  file", &bytes(file_bytes)]);
    table.row(["  payload", &bytes(s.live_payload_bytes)]);
    table.row(["  index", &bytes(s.live_index_bytes)]);
    table.row(["  dead", &bytes(dead)]);
    table.row(["  reusable", &bytes(s.reusable_bytes)]);
    stdout(|out| {
        writeln!(out, "{}", escape(&target.file.to_string_lossy()))?;
        write!(out, "{table}")?;
        writeln!(
            out,
            "  index: depth {}, {} nodes, {} entries, {per_entry:.1} bytes an entry",
            s.depth, s.nodes, s.entries
        )
    })
}

/// Upper bounds of the histogram's bins are powers of two.
#[derive(Debug, Default)]
struct Histogram {
    bins: std::collections::BTreeMap<u32, u64>,
}

impl Histogram {
    fn add(&mut self, len: u64) {
        let bin = self
            .bins
            .entry(len.checked_ilog2().unwrap_or(0))
            .or_default();
        *bin = bin.saturating_add(1);
    }

    fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.bins.iter().map(|(&bin, &count)| {
            let lo = 1_u64.checked_shl(bin).unwrap_or(0);
            (lo, lo.saturating_mul(2), count)
        })
    }
}

fn array(array: &DynArray, chunks: bool, session: &Session) -> Result<()> {
    let (stored, mut members) = describe::storage(array)?;
    members.insert(0, ("path", text(slashed(array.path()))));
    let mut histogram = Histogram::default();
    let mut list = Vec::new();
    let mut rows = Table::new(&[2, 3]);
    if chunks {
        array.for_each_chunk(Region::all(), |chunk| {
            let (state, offset, len) = match chunk.state {
                ChunkState::Stored { offset, len, .. } => {
                    histogram.add(len);
                    ("stored", Some(offset), len)
                }
                _ => ("constant", None, 0),
            };
            if session.json() {
                list.push(object([
                    ("coord", ints(chunk.coord.iter().copied())),
                    ("state", text(state)),
                    ("offset", offset.map_or(Json::Null, uint)),
                    ("stored_bytes", uint(len)),
                ]));
            } else {
                rows.row([
                    format!("  ({})", crate::text::list(&chunk.coord)),
                    state.to_owned(),
                    offset.map_or_else(String::new, |o| o.to_string()),
                    len.to_string(),
                ]);
            }
            Ok(())
        })?;
    }
    if session.json() {
        // `chunks` is the list where it was asked for.
        if chunks {
            members.retain(|(name, _)| *name != "chunks");
            members.push(("chunks", Json::Array(list)));
            let bins = histogram.rows().map(|(lo, hi, count)| {
                object([
                    ("from", uint(lo)),
                    ("to", uint(hi)),
                    ("chunks", uint(count)),
                ])
            });
            members.push(("histogram", Json::Array(bins.collect())));
        }
        return print_json(&answer("stat", members));
    }
    stdout(|out| {
        writeln!(
            out,
            "{}: {} stored in {}, {} constant",
            escape(&slashed(array.path())),
            crate::text::count(stored.chunks, "chunk"),
            bytes(stored.bytes),
            stored.constant
        )?;
        write!(out, "{rows}")?;
        for (lo, hi, count) in histogram.rows() {
            writeln!(out, "  {lo:>12} to {hi:>12} bytes: {count}")?;
        }
        Ok(())
    })
}
