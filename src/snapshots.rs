//! Generations that are kept: names for them, the history of commits, going back.
//!
//! Holds [`At`], [`RetainedSnapshot`], [`LogEntry`] and the calls on them. Thin: must not hold algorithms.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::container::{Container, Snapshot, Writer};
use crate::error::{Error, Result};
use crate::format::dtype::TimeUnit;
use crate::format::time_text;
use crate::txn::{HoldingKind, SnapshotState, View, retained};

/// Which generation is meant.
///
/// As text: `gen:N`, a time as in RFC 3339 (`2026-01-31T12:00:00Z`), or else a snapshot's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The retained snapshot of this name.
    Name(String),
    /// The generation of this number: the newest one or a retained one.
    Generation(u64),
    /// The state at this time, in nanoseconds since the Unix epoch: of the generations that can be opened, the newest that
    /// was committed no later.
    Time(i64),
}

impl FromStr for At {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(number) = text.strip_prefix("gen:") {
            return number.parse().map(Self::Generation).map_err(|_| {
                Error::invalid("generation")
                    .expected("gen: and a number")
                    .found(text)
            });
        }
        match time_of(text) {
            Some(time) => Ok(Self::Time(time)),
            None if text.is_empty() => Err(Error::invalid("snapshot")
                .expected("a name, gen:N or a time such as 2026-01-31T12:00:00Z")
                .found("nothing")),
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Generation(generation) => write!(f, "gen:{generation}"),
            Self::Time(time) => match time_text::format(*time, TimeUnit::Nanosecond, 1) {
                Some(text) => write!(f, "{text}Z"),
                None => write!(f, "{time}"),
            },
        }
    }
}

/// The instant an RFC 3339 text names: date, `T`, time, and `Z` or an offset.
fn time_of(text: &str) -> Option<i64> {
    let (_, clock) = text.split_once(['T', 't'])?;
    let zone_at = clock.find(['Z', 'z', '+', '-'])?;
    let (clock_text, zone) = clock.split_at_checked(zone_at)?;
    let local_len = text.len().checked_sub(zone.len())?;
    let local = text.get(..local_len)?.replace('t', "T");
    let local = time_text::parse(&local, TimeUnit::Nanosecond, 1)?;
    clock_text.contains(':').then_some(())?;
    if zone.eq_ignore_ascii_case("z") {
        return Some(local);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let minutes: i64 = hours
        .parse::<i64>()
        .ok()
        .filter(|h| (0..24).contains(h) && hours.len() == 2)?
        .checked_mul(60)?
        .checked_add(
            minutes
                .parse()
                .ok()
                .filter(|m| (0..60).contains(m) && minutes.len() == 2)?,
        )?;
    let offset = minutes.checked_mul(60_000_000_000)?;
    if zone.starts_with('-') {
        local.checked_add(offset)
    } else {
        local.checked_sub(offset)
    }
}

/// A generation that is kept under a name, whatever is committed later.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedSnapshot {
    /// Its name, unique in the container.
    pub name: String,
    /// The generation.
    pub generation: u64,
    /// When that generation was committed, in nanoseconds since the Unix epoch.
    pub time: i64,
    /// References to its bytes were exported: it is not released unless told to break them.
    pub referenced: bool,
}

/// What a commit says about itself.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The generation that the commit made.
    pub generation: u64,
    /// When, in nanoseconds since the Unix epoch. Strictly ascending.
    pub time: i64,
    /// Its message; empty when none was given.
    pub message: String,
    /// How many entries of the index it changed: chunks, attributes, documents, names.
    pub changed: u64,
    /// It brought back an older generation.
    pub restore: bool,
    /// The name under which the generation is retained, if it is.
    pub snapshot: Option<String>,
}

/// What keeps bytes of a file that the newest state does not need.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The retained snapshot of this name.
    Snapshot(String),
    /// Somebody who reads this generation, in any process.
    Pin(u64),
    /// The slot of the generation before the newest, which stays whole until the next commit.
    Slot(u64),
}

/// Where the bytes of a file are, beside those that the newest state reaches.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceReport {
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes that nothing reaches and that the next commits may write to, in whole blocks.
    pub reusable_bytes: u64,
    /// The longest stretch of them.
    pub longest_reusable_run_bytes: u64,
    /// Who holds bytes that the newest state does not need, and how many that are theirs alone.
    pub held_by: Vec<(Holder, u64)>,
}

impl Container {
    /// Where the bytes of the file are. Reads the index of the newest state and of all that is kept.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub fn space(&self) -> Result<SpaceReport> {
        // The generation before the newest is not pinned: a writer at work may be faster than this look.
        let look = || -> Result<_> {
            let newest = self.latest()?;
            self.engine().usage(newest.committed()?)
        };
        let usage = look().or_else(|_| look()).or_else(|_| look())?;
        let held_by = usage.holdings.into_iter().map(|h| {
            let holder = match h.kind {
                HoldingKind::Snapshot(name) => Holder::Snapshot(name),
                HoldingKind::Pin => Holder::Pin(h.generation),
                HoldingKind::Slot => Holder::Slot(h.generation),
            };
            (holder, h.bytes)
        });
        Ok(SpaceReport {
            file_bytes: self.engine().file_len()?,
            reusable_bytes: usage.reusable,
            longest_reusable_run_bytes: usage.longest_run,
            held_by: held_by.collect(),
        })
    }

    /// The generations that the newest known state retains, ascending.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn snapshots(&self) -> Result<Vec<RetainedSnapshot>> {
        self.snapshot()?.snapshots()
    }

    /// The generation that `at` names, pinned. Looks for commits of other processes first.
    ///
    /// # Errors
    /// `NotFound` (the message says what there is); as [`Container::latest`].
    pub fn snapshot_at(&self, at: &At) -> Result<Snapshot> {
        self.latest()?.at(at)
    }

    /// What commits said about themselves, newest last; between 1,000 and 1,128 are kept.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        self.snapshot()?.log()
    }
}

impl Snapshot {
    /// The generations that this state retains, ascending.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn snapshots(&self) -> Result<Vec<RetainedSnapshot>> {
        let (all, _) = retained::list(self.view())?;
        Ok(all
            .into_iter()
            .map(|r| RetainedSnapshot {
                name: r.record.label,
                generation: r.generation,
                time: r.record.time,
                referenced: r.record.referenced,
            })
            .collect())
    }

    /// The generation that `at` names, as this state has it: itself, or one that it retains.
    ///
    /// # Errors
    /// As [`Container::snapshot_at`].
    pub fn at(&self, at: &At) -> Result<Snapshot> {
        let generation = match at {
            At::Name(name) => retained::find(self.view(), name)?.generation,
            At::Generation(generation) => *generation,
            At::Time(time) => self.at_time(*time)?,
        };
        let state = self.committed()?;
        if generation == state.generation() {
            return Ok(self.clone());
        }
        let old = state.engine().retained(state, generation)?;
        Ok(Self::from_state(old))
    }

    fn at_time(&self, time: i64) -> Result<u64> {
        let own = (self.time(), self.generation());
        let (all, _) = retained::list(self.view())?;
        let all = all.iter().map(|r| (r.record.time, r.generation));
        let earliest = all.clone().min();
        all.chain([own])
            .filter(|(then, _)| *then <= time)
            .max()
            .map(|(_, generation)| generation)
            .ok_or_else(|| {
                let (then, _) = earliest.unwrap_or(own);
                Error::not_found(format!("state at {}", At::Time(time)))
                    .expected(format_args!("a time from {} on", At::Time(then)))
            })
    }

    fn committed(&self) -> Result<&Arc<SnapshotState>> {
        match self.view() {
            View::Snapshot(state) => Ok(state),
            View::Writer(_) => Err(Error::invalid("view").expected("a committed generation")),
        }
    }

    /// What commits said about themselves up to this generation, newest last; between 1,000 and 1,128 are kept.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        let mut names = self.snapshots()?.into_iter().peekable();
        let history = self.committed()?.history()?;
        Ok(history
            .into_iter()
            .map(|(generation, record)| {
                while names.next_if(|s| s.generation < generation).is_some() {}
                let snapshot = names.next_if(|s| s.generation == generation);
                LogEntry {
                    generation,
                    time: record.time,
                    message: record.message,
                    changed: record.changed,
                    restore: record.restore,
                    snapshot: snapshot.map(|s| s.name),
                }
            })
            .collect())
    }
}

impl Writer {
    /// Keeps the last committed generation under `name`, from the next commit on, and returns that generation. What is
    /// staged now is not part of it: commit first to keep that.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is empty, too long, not in composed Unicode, or reads as a generation or a time;
    /// `AlreadyExists` for a name in use, and when the generation is kept already.
    pub fn retain(&self, name: &str) -> Result<u64> {
        if !matches!(At::from_str(name), Ok(At::Name(_))) {
            return Err(Error::invalid("snapshot name")
                .expected("a name that reads neither as gen:N nor as a time")
                .found(format_args!("{name:?}")));
        }
        self.state().retain(name)
    }

    /// Notes of the retained generation called `name` that references from outside lead to its bytes, from the next commit
    /// on: it is then released, and the container compacted, only by calls that say they break references. Returns the
    /// generation. One that [`Writer::retain`] staged in this commit counts.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn mark_referenced(&self, name: &str) -> Result<u64> {
        let view = View::Writer(Arc::clone(self.state()));
        let found = retained::find(&view, name)?;
        let generation = found.generation;
        self.state().mark_referenced(found);
        Ok(generation)
    }

    /// Lets go of the retained generation called `name`, from the next commit on. What it alone held becomes reusable.
    ///
    /// # Errors
    /// `NotFound`; `SnapshotInUse` while someone reads it; `InvalidArgument` when references to it were exported.
    pub fn release(&self, name: &str) -> Result<u64> {
        let view = View::Writer(Arc::clone(self.state()));
        let found = retained::find(&view, name)?;
        self.state().release(&found)?;
        Ok(found.generation)
    }

    /// As [`Writer::release`], even where references to its bytes were exported: those then lead to other bytes.
    ///
    /// # Errors
    /// `NotFound`; `SnapshotInUse`.
    pub fn release_and_break_references(&self, name: &str) -> Result<u64> {
        let view = View::Writer(Arc::clone(self.state()));
        let mut found = retained::find(&view, name)?;
        found.record.referenced = false;
        self.state().release(&found)?;
        Ok(found.generation)
    }

    /// Retains the last committed generation under `name` and lets go of all but the newest `n` of those whose names begin
    /// with `prefix`; returns the names let go. One that is in use, or referenced from outside, is left for another time.
    ///
    /// # Errors
    /// As [`Writer::retain`].
    pub fn keep_last(&self, prefix: &str, name: &str, n: usize) -> Result<Vec<String>> {
        self.retain(name)?;
        let (all, _) = retained::list(&View::Writer(Arc::clone(self.state())))?;
        let all: Vec<_> = all
            .into_iter()
            .filter(|r| r.record.label.starts_with(prefix))
            .collect();
        let old = all.len().saturating_sub(n);
        Ok(self.release_some(all.into_iter().take(old)))
    }

    /// Lets go of the retained generations whose names begin with `prefix` and that were committed longer than `age`
    /// before the last commit; returns their names. One that is in use, or referenced from outside, is left for another
    /// time.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn keep_for(&self, prefix: &str, age: Duration) -> Result<Vec<String>> {
        let now = self.state().base().slot().time;
        let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        let (all, _) = retained::list(&View::Writer(Arc::clone(self.state())))?;
        Ok(self.release_some(all.into_iter().filter(|r| {
            r.record.label.starts_with(prefix) && now.saturating_sub(r.record.time) > age
        })))
    }

    fn release_some(&self, some: impl Iterator<Item = retained::Retained>) -> Vec<String> {
        some.filter(|r| self.state().release(r).is_ok())
            .map(|r| r.record.label)
            .collect()
    }

    /// Stages what makes groups, arrays, attributes and chunks those of `old` again, marked as a restore in the history.
    /// Retained snapshots, history and private entries stay as they are. No payload is copied. Nothing else may be staged
    /// before it; what is staged after it goes on top.
    ///
    /// # Errors
    /// `InvalidArgument` when something is staged, or `old` is of another container; `Corrupt`, `Io`.
    pub fn restore(&self, old: &Snapshot) -> Result<()> {
        self.state().restore(old.committed()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> At {
        text.parse().unwrap()
    }

    #[test]
    fn a_text_names_a_generation_a_time_or_a_snapshot() {
        assert_eq!(at("gen:7"), At::Generation(7));
        assert_eq!(at("1970-01-01T00:00:01Z"), At::Time(1_000_000_000));
        assert_eq!(at("1970-01-01t00:00:01.5z"), At::Time(1_500_000_000));
        assert_eq!(at("1970-01-01T01:30:00+01:30"), At::Time(0));
        assert_eq!(at("1969-12-31T23:00:00-02:00"), At::Time(3_600_000_000_000));
        for name in [
            "v1",
            "2024",
            "2024-01-01",
            "T",
            "run T-1",
            "2024-01-01T00:00",
        ] {
            assert_eq!(at(name), At::Name(name.to_owned()));
        }
        assert!("gen:x".parse::<At>().is_err() && "".parse::<At>().is_err());
        assert_eq!(
            at(&At::Time(1_500_000_000).to_string()),
            At::Time(1_500_000_000)
        );
    }
}
