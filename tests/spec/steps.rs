//! What programs do with a container, one step at a time, on the recording disk.
//!
//! Holds [`Step`] and [`Run`], which takes them; two runs of the same steps write the same bytes. Crashes and faults are put
//! into such runs by others.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use orthant::testing::{Raw, RawEntry};
use orthant::{
    ArraySpec, At, Codec, Container, CopyOptions, Error, ErrorKind, Rechunk, Result, Writer, region,
};

use crate::crash::{content, name, without_history};
use crate::disk::{Disk, Random};

/// One thing that a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Makes another array.
    Create,
    /// Writes a part of `a`.
    Write,
    /// Writes all of `a`.
    Overwrite,
    /// Removes `a`.
    Delete,
    /// Moves the low bound of `a` down.
    GrowLow,
    /// Moves the high bound of `a` down.
    TrimHigh,
    /// Sets an attribute of `a`, of another length each time.
    Attribute,
    /// Stores `a` in other chunks.
    Rechunk,
    /// Copies `a`, payloads as they are.
    Copy,
    /// Keeps the generation that is there.
    Retain,
    /// Lets the oldest kept generation go.
    Release,
    /// Makes the content that of the oldest kept generation.
    Restore,
    /// Commits in this process only.
    Defer,
    Commit,
    /// Writes the file anew.
    Compact,
    /// Closes and opens.
    Reopen,
}

/// What each generation holds, and which ones it keeps.
pub type History = BTreeMap<u64, (Vec<RawEntry>, Vec<u64>)>;

/// A container on a disk, in the middle of a program.
pub struct Run {
    disk: Disk,
    raw: Raw,
    writer: Option<Writer>,
    /// Steps taken: what is written follows from it.
    taken: i32,
    /// Generations whose commit returned.
    pub acknowledged: Vec<u64>,
    pub history: History,
}

impl Run {
    /// A new container with one array, committed.
    pub fn create(disk: &Disk) -> Result<Self> {
        let raw = Raw::create(disk.folder(), name())?;
        let mut run = Self::of(disk, raw);
        run.told(2)?;
        let spec = ArraySpec::<i32>::new(region![-4..4, 0..6])
            .chunks([3, 4])
            .codecs([Codec::crc32c()]);
        run.writer()?.create_array("a", spec)?;
        run.step(Step::Overwrite)?;
        run.step(Step::Commit)?;
        Ok(run)
    }

    /// Goes on with the container that is on the disk.
    pub fn open(disk: &Disk) -> Result<Self> {
        let raw = Raw::open(disk.folder(), name())?;
        let mut run = Self::of(disk, raw);
        let generation = run.raw.generation()?;
        run.told(generation)?;
        Ok(run)
    }

    fn of(disk: &Disk, raw: Raw) -> Self {
        Self {
            disk: disk.clone(),
            raw,
            writer: None,
            taken: 0,
            acknowledged: Vec::new(),
            history: History::new(),
        }
    }

    fn container(&self) -> Container {
        self.raw.container()
    }

    fn writer(&mut self) -> Result<&Writer> {
        if self.writer.is_none() {
            let before = self.raw.generation()?;
            self.writer = Some(self.container().writer()?);
            // A writer that found one slot invalid has committed the same content once more.
            let healed = self.raw.generation()?;
            if healed > before {
                self.told(healed)?;
            }
        }
        self.writer.as_ref().ok_or_else(|| unreachable!())
    }

    fn told(&mut self, generation: u64) -> Result<()> {
        self.disk.acknowledge(generation);
        self.acknowledged.push(generation);
        let now = (
            placeless(content(&self.raw)?),
            self.raw.retained_generations()?,
        );
        for (old, entries) in self.raw.retained_entries()? {
            let entries = placeless(without_history(entries));
            self.history.entry(old).or_insert((entries, Vec::new()));
        }
        self.history.insert(generation, now);
        Ok(())
    }

    /// Takes one step. An object that is not there, or is there already, or changes before a restore, make it no step.
    pub fn step(&mut self, step: Step) -> Result<()> {
        self.taken += 1;
        match self.try_step(step) {
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::AlreadyExists
                        | ErrorKind::OutOfDomain
                        | ErrorKind::InvalidArgument
                ) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    fn try_step(&mut self, step: Step) -> Result<()> {
        let n = self.taken;
        let go_on = |_: u64, _: u64| ControlFlow::Continue(());
        match step {
            Step::Compact => {
                // A slot that a crash left invalid is healed by a commit of its own, before.
                self.writer()?;
                self.writer = None;
                self.container().compact(CopyOptions::new(), go_on)?;
                return self.reopen();
            }
            Step::Reopen => {
                self.writer = None;
                return self.reopen();
            }
            Step::Commit => {
                let done = self.writer()?.commit();
                if let Err(Error::Poisoned { .. }) = &done {
                    let again = self.writer()?.commit().unwrap_err();
                    assert_eq!(again.kind(), ErrorKind::Poisoned, "no retry");
                }
                let generation = done?;
                return self.told(generation);
            }
            _ => {}
        }
        let kept = self.container().snapshots()?.into_iter().next();
        let w = self.writer()?;
        match step {
            Step::Create => {
                let spec = ArraySpec::<u8>::new(region![0..3]);
                w.create_array(&format!("g/n{n}"), spec)?;
            }
            Step::Write => {
                let a = w.array::<i32>("a")?;
                a.write_slice(region![-1..1, 1..5], &[n; 8])?;
            }
            Step::Overwrite => {
                let a = w.array::<i32>("a")?;
                let domain = a.domain()?;
                let sides = domain.ranges().map(|r| r.end - r.start);
                let count = usize::try_from(sides.product::<i64>()).unwrap();
                let cells: Vec<i32> = (0..).map(|i| i + n * 100).take(count).collect();
                a.write_slice(region![.., ..], &cells)?;
            }
            Step::Delete => w.remove("a", false)?,
            Step::GrowLow => {
                w.array::<i32>("a")?.grow(0, 2, 0)?;
            }
            Step::TrimHigh => {
                w.array::<i32>("a")?.trim(0, 0, 1)?;
            }
            Step::Attribute => {
                let text = "x".repeat(700 * usize::try_from(n).unwrap() % 5000);
                w.array::<i32>("a")?.attributes().set("text", text)?;
            }
            Step::Rechunk => {
                let side = 2 + u64::try_from(n % 3).unwrap();
                w.rechunk("a", &Rechunk::new([side, side]), go_on)?;
            }
            Step::Copy => {
                w.dyn_array("a")?.copy_array_to(w, &format!("copy{n}"))?;
            }
            Step::Retain => {
                w.retain(&format!("s{n}"))?;
            }
            Step::Release => {
                if let Some(kept) = kept {
                    w.release(&kept.name)?;
                }
            }
            Step::Restore => {
                if let Some(kept) = kept {
                    let old = self.container().snapshot_at(&At::Name(kept.name))?;
                    self.writer()?.restore(&old)?;
                }
            }
            Step::Defer => {
                w.commit_deferred()?;
            }
            Step::Commit | Step::Compact | Step::Reopen => unreachable!("taken above"),
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.raw = Raw::open(self.disk.folder(), name())?;
        let generation = self.raw.generation()?;
        if self.acknowledged.last() != Some(&generation) {
            self.told(generation)?;
        }
        Ok(())
    }
}

/// Takes all steps; gives what came of it and the error that ended it.
pub fn take(disk: &Disk, steps: &[Step]) -> (Option<Run>, Option<Error>) {
    let mut run = match Run::create(disk) {
        Ok(run) => run,
        Err(e) => return (None, Some(e)),
    };
    let end = steps.iter().try_for_each(|step| run.step(*step)).err();
    (Some(run), end)
}

/// A program of that many steps, a commit after every other one.
pub fn random_steps(random: &mut Random, len: usize) -> Vec<Step> {
    const STEPS: [Step; 14] = [
        Step::Create,
        Step::Write,
        Step::Overwrite,
        Step::Write,
        Step::GrowLow,
        Step::TrimHigh,
        Step::Attribute,
        Step::Rechunk,
        Step::Copy,
        Step::Retain,
        Step::Release,
        Step::Restore,
        Step::Compact,
        Step::Reopen,
    ];
    (0..len)
        .flat_map(|i| {
            let step = STEPS[random.below(STEPS.len())];
            // What is restored is read until it is committed, so it cannot be let go of before.
            let ends = i % 2 == 1 || step == Step::Restore;
            [Some(step), ends.then_some(Step::Commit)]
        })
        .flatten()
        .collect()
}

/// The bytes hold one of the generations that may be there, whole, and all that it keeps.
pub fn whole(
    bytes: Vec<u8>,
    allowed: &[u64],
    history: &History,
) -> std::result::Result<u64, String> {
    let raw = Raw::from_bytes(bytes).map_err(|e| e.to_string())?;
    let generation = raw.generation().map_err(|e| e.to_string())?;
    if !allowed.contains(&generation) {
        return Err(format!("generation {generation}, not one of {allowed:?}"));
    }
    let found = placeless(content(&raw).map_err(|e| e.to_string())?);
    let kept = raw.retained_generations().map_err(|e| e.to_string())?;
    match history.get(&generation) {
        Some((entries, old)) if *entries == found && *old == kept => {}
        _ => return Err(format!("generation {generation} holds something else")),
    }
    for (old, entries) in raw.retained_entries().map_err(|e| e.to_string())? {
        let found = placeless(without_history(entries));
        if history.get(&old).map(|(right, _)| right) != Some(&found) {
            return Err(format!("kept generation {old} holds something else"));
        }
    }
    Ok(generation)
}

/// Entries but those of kept generations, which name places: a fault may have other space used.
fn placeless(mut entries: Vec<RawEntry>) -> Vec<RawEntry> {
    entries.retain(|e| e.key[0] != 0x10);
    entries
}
