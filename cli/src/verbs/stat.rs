//! `stat`: where a file's bytes are.

use clap::Args;
use orthant::{ChunkState, DynArray, Holder, Json, ObjectKind, Region};

use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, big, ints, object, text, uint};
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
    let space = container.space()?;
    let file_bytes = space.file_bytes;
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
            ("reusable_bytes", uint(space.reusable_bytes)),
            ("index", index),
            (
                "held_by",
                Json::Array(space.held_by.iter().map(held_json).collect()),
            ),
        ];
        return print_json(&answer("stat", members));
    }
    let mut table = Table::new(&[1]);
    table.row(["  file", &bytes(file_bytes)]);
    table.row(["  payload", &bytes(s.live_payload_bytes)]);
    table.row(["  index", &bytes(s.live_index_bytes)]);
    table.row(["  dead", &bytes(dead)]);
    table.row(["  reusable", &bytes(space.reusable_bytes)]);
    stdout(|out| {
        writeln!(out, "{}", escape(&target.file.to_string_lossy()))?;
        write!(out, "{table}")?;
        writeln!(
            out,
            "  index: depth {}, {} nodes, {} entries, {per_entry:.1} bytes an entry",
            s.depth, s.nodes, s.entries
        )?;
        for (holder, held) in &space.held_by {
            let who = match holder {
                Holder::Snapshot(name) => format!("snapshot {}", escape(name)),
                Holder::Pin(generation) => format!("a reader of generation {generation}"),
                Holder::Slot(generation) => {
                    format!("generation {generation}, until the next commit")
                }
                _ => "something newer".to_owned(),
            };
            writeln!(out, "  held: {} by {who}", bytes(*held))?;
        }
        Ok(())
    })
}

fn held_json((holder, held): &(Holder, u64)) -> Json {
    let (kind, who) = match holder {
        Holder::Snapshot(name) => ("snapshot", ("name", text(name.clone()))),
        Holder::Pin(generation) => ("pin", ("generation", uint(*generation))),
        Holder::Slot(generation) => ("slot", ("generation", uint(*generation))),
        _ => ("other", ("name", Json::Null)),
    };
    object([("kind", text(kind)), who, ("bytes", uint(*held))])
}

/// Upper bounds of the histogram's bins are powers of two.
#[derive(Debug, Default)]
struct Histogram {
    bins: std::collections::BTreeMap<u32, u64>,
}

impl std::fmt::Display for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = self.rows().map(|row| row.2).max().unwrap_or(1).max(1);
        for (lo, hi, count) in self.rows() {
            let bar = count.saturating_mul(BAR).div_ceil(most);
            let bar = "#".repeat(usize::try_from(bar).unwrap_or(0));
            writeln!(f, "  {lo:>12} to {hi:>12} bytes: {count:>9}  {bar}")?;
        }
        Ok(())
    }
}

impl Histogram {
    fn json(&self) -> Json {
        let bins = self.rows().map(|(lo, hi, count)| {
            object([
                ("from", uint(lo)),
                ("to", uint(hi)),
                ("chunks", uint(count)),
            ])
        });
        Json::Array(bins.collect())
    }

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

/// Chunks shown to people; `--json` has them all.
const SHOWN_MAX: u64 = 64;
/// Characters of the longest bar of a histogram.
const BAR: u64 = 40;

fn array(array: &DynArray, chunks: bool, session: &Session) -> Result<()> {
    let (stored, mut members) = describe::storage(array)?;
    members.insert(0, ("path", text(slashed(array.path()))));
    let present = stored.chunks.saturating_add(stored.constant);
    let absent = Absent::of(array, present)?;
    let found = if chunks {
        Chunks::list(array, session.json())?
    } else {
        Chunks::default()
    };
    if session.json() {
        // `chunks` is the list where it was asked for.
        if chunks {
            members.retain(|(name, _)| *name != "chunks");
            members.push(("histogram", found.histogram.json()));
            members.push(("chunks", Json::Array(found.list)));
        }
        members.push(("chunks_absent", absent.count.map_or(Json::Null, big)));
        members.push(("absent_share", absent.share.map_or(Json::Null, Json::F64)));
        return print_json(&answer("stat", members));
    }
    let logical = describe::logical_bytes(array)?;
    stdout(|out| {
        writeln!(
            out,
            "{}: {} stored in {}, {} constant{}",
            escape(&slashed(array.path())),
            crate::text::count(stored.chunks, "chunk"),
            bytes(stored.bytes),
            stored.constant,
            absent.text(),
        )?;
        if let Some(logical) = logical.and_then(|n| u64::try_from(n).ok()) {
            let ratio = crate::json::ratio(logical, stored.bytes);
            writeln!(out, "  {} of elements, ratio {ratio:.2}", bytes(logical))?;
        }
        write!(out, "{}", found.rows)?;
        if chunks && present > found.shown {
            let more = present.saturating_sub(found.shown);
            writeln!(out, "  and {more} more (--json has all)")?;
        }
        write!(out, "{}", found.histogram)
    })
}

/// The chunks with an entry.
#[derive(Default)]
struct Chunks {
    histogram: Histogram,
    list: Vec<Json>,
    rows: Table,
    shown: u64,
}

impl Chunks {
    fn list(array: &DynArray, json: bool) -> Result<Self> {
        let mut found = Self {
            rows: Table::new(&[2, 3]),
            ..Self::default()
        };
        array.for_each_chunk(Region::all(), |chunk| {
            let (state, offset, len) = match chunk.state {
                ChunkState::Stored { offset, len, .. } => {
                    found.histogram.add(len);
                    ("stored", Some(offset), len)
                }
                _ => ("constant", None, 0),
            };
            if json {
                found.list.push(object([
                    ("coord", ints(chunk.coord.iter().copied())),
                    ("state", text(state)),
                    ("offset", offset.map_or(Json::Null, uint)),
                    ("stored_bytes", uint(len)),
                ]));
            } else if found.shown < SHOWN_MAX {
                found.shown = found.shown.saturating_add(1);
                found.rows.row([
                    format!("  ({})", crate::text::list(&chunk.coord)),
                    state.to_owned(),
                    offset.map_or_else(String::new, |o| o.to_string()),
                    len.to_string(),
                ]);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Chunks of the grid without an entry.
struct Absent {
    count: Option<u128>,
    share: Option<f64>,
}

impl Absent {
    fn of(array: &DynArray, present: u64) -> Result<Self> {
        let grid = array.grid_chunks()?;
        let count = grid.map(|n| n.saturating_sub(u128::from(present)));
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = |(count, grid): (u128, u128)| count as f64 / grid as f64;
        Ok(Self {
            share: count.zip(grid).filter(|(_, n)| *n > 0).map(share),
            count,
        })
    }

    fn text(&self) -> String {
        match (self.count, self.share) {
            (Some(count), Some(share)) => {
                format!(", {count} absent ({:.1} %)", share * 100.0)
            }
            _ => String::new(),
        }
    }
}
