//! One run of the command: opening containers as the global options ask, and what goes to stderr.
//!
//! Holds [`Session`], notes and progress bars. Must not know verbs.

use std::io::{self, IsTerminal, Write};
use std::ops::Deref;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use orthant::{Container, Json, Limits, Locking, NewContainer, OpenOptions, Snapshot, Writer};

use crate::args::{Globals, ReadVia, State};
use crate::exit::{Failure, Result};
use crate::text::escape;

/// The global options, and what follows from them.
#[derive(Debug)]
pub(crate) struct Session {
    globals: Globals,
}

impl Session {
    pub(crate) fn new(globals: Globals) -> Self {
        Self { globals }
    }

    /// Whether answers are JSON.
    pub(crate) fn json(&self) -> bool {
        self.globals.json
    }

    fn options(&self) -> OpenOptions {
        let options = if self.globals.untrusted {
            OpenOptions::untrusted().limits(Limits::untrusted())
        } else {
            OpenOptions::new()
        };
        let options = match self.globals.read_via {
            Some(ReadVia::Mmap) => options.via(orthant::ReadVia::Mmap),
            Some(ReadVia::Pread) => options.via(orthant::ReadVia::Pread),
            None => options,
        };
        if self.globals.no_lock {
            options.locking(Locking::Off)
        } else {
            options
        }
    }

    /// Opens a container for reading. A missing file is an error and stays missing.
    pub(crate) fn open(&self, file: &Path) -> Result<Container> {
        let container = self
            .options()
            .read_only(true)
            .open(file)
            .map_err(|e| crate::target::with_slash(Failure::from(e).of_file(file), file))?;
        self.note_report(&container);
        Ok(container)
    }

    /// The newest state of a container.
    pub(crate) fn snapshot(&self, file: &Path) -> Result<Snapshot> {
        Ok(self.open(file)?.snapshot()?)
    }

    /// The state of a container that `state` names.
    pub(crate) fn state(&self, file: &Path, state: &State) -> Result<Snapshot> {
        let container = self.open(file)?;
        match &state.at {
            Some(at) => Ok(container.snapshot_at(at)?),
            None => Ok(container.snapshot()?),
        }
    }

    /// An existing container that may be written.
    pub(crate) fn writable(&self, file: &Path) -> Result<Container> {
        self.warn_no_lock();
        let container = self
            .options()
            .read_only(false)
            .open(file)
            .map_err(|e| crate::target::with_slash(Failure::from(e).of_file(file), file))?;
        self.note_report(&container);
        Ok(container)
    }

    /// Opens an existing container for writing.
    pub(crate) fn writer(&self, file: &Path) -> Result<Writing> {
        Ok(Writing {
            writer: self.writable(file)?.writer()?,
            new: None,
        })
    }

    /// Opens a container for writing, made if it is missing.
    pub(crate) fn writer_or_new(&self, file: &Path) -> Result<Writing> {
        match std::fs::symlink_metadata(file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.warn_no_lock();
                self.making(file)
            }
            _ => self.writer(file),
        }
    }

    /// Makes an empty container; gives its generation.
    pub(crate) fn create(&self, file: &Path, message: Option<&str>) -> Result<u64> {
        // What can never be a container is told as it is when it is opened.
        if std::fs::metadata(file).is_ok_and(|m| !m.is_file()) {
            self.open(file)?;
        }
        self.warn_no_lock();
        if message.is_some() {
            return self.making(file)?.commit(message);
        }
        let container = self.options().read_only(false).create(file);
        let container = container.map_err(|e| Failure::from(e).of_file(file))?;
        Ok(container.snapshot()?.generation())
    }

    /// The writer of a container that appears with its first commit.
    fn making(&self, file: &Path) -> Result<Writing> {
        let new = self.options().read_only(false).create_unnamed(file);
        Writing::of_new(new.map_err(|e| Failure::from(e).of_file(file))?)
    }

    fn warn_no_lock(&self) {
        if self.globals.no_lock {
            warn(
                "writing without a lock: see to it that there is no other writer; no space is reused",
            );
        }
    }

    /// Says in one line that the file was not as it should be.
    fn note_report(&self, container: &Container) {
        let report = container.report();
        let file = container
            .path()
            .map(|p| p.display().to_string())
            .unwrap_or_default();
        if self.globals.verbose > 0 {
            stderr(&format!(
                "{file}: opened at generation {}",
                report.generation
            ));
        }
        let mut parts = Vec::new();
        if report.fell_back {
            parts.push(format!(
                "the other slot is damaged, generation {} is used",
                report.generation
            ));
        }
        if report.unconfirmed {
            parts.push(format!(
                "a failed sync left open whether generation {} is on disk",
                report.generation
            ));
        }
        if report.ignored_tail_bytes > 0 {
            parts.push(format!(
                "{} bytes after the last commit are ignored",
                report.ignored_tail_bytes
            ));
        }
        if !parts.is_empty() {
            stderr(&format!("note: {file}: {}", parts.join("; ")));
        }
    }

    /// A remark for people; `--quiet` drops it.
    pub(crate) fn note(&self, text: &str) {
        if !self.globals.quiet {
            stderr(text);
        }
    }

    /// A progress bar over `total` steps of `what`; drawn only where a person watches.
    pub(crate) fn bar(&self, total: u64, what: &'static str) -> Bar {
        let wanted = !self.globals.quiet
            && !self.globals.no_progress
            && !self.globals.json
            && io::stderr().is_terminal();
        if !wanted {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent}% {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Bar(Some(bar))
    }
}

/// A writer of one verb, which is one commit.
#[derive(Debug)]
pub(crate) struct Writing {
    writer: Writer,
    /// The file, where this verb makes it: it gets its name with the commit, and a verb that fails leaves none.
    new: Option<NewContainer>,
}

impl Writing {
    /// The writer of a container that this verb makes.
    fn of_new(new: NewContainer) -> Result<Self> {
        if let Some(path) = new.temporary_path() {
            crate::atomic::guard(path);
        }
        Ok(Self {
            writer: new.container().writer()?,
            new: Some(new),
        })
    }

    /// Commits what was staged; gives the generation.
    pub(crate) fn commit(mut self, message: Option<&str>) -> Result<u64> {
        if let Some(message) = message {
            self.writer.message(message)?;
        }
        let generation = self.writer.commit()?;
        if let Some(new) = self.new.take() {
            released(&new);
            new.publish()?;
        }
        Ok(generation)
    }
}

impl Deref for Writing {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            released(new);
        }
    }
}

/// From here on an interrupt leaves the file alone: it is about to get its name, or to go by itself.
fn released(new: &NewContainer) {
    if let Some(path) = new.temporary_path() {
        crate::atomic::release(path);
    }
}

/// A progress bar that is gone when it is dropped; nothing where nobody watches.
#[derive(Debug)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(crate) fn advance(&self, by: u64) {
        if let Some(bar) = &self.0 {
            bar.inc(by);
        }
    }

    pub(crate) fn at(&self, done: u64, total: u64) {
        if let Some(bar) = &self.0 {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Something the caller should know even under `--quiet`.
pub(crate) fn warn(text: &str) {
    stderr(&format!("warning: {text}"));
}

/// One line to stderr, its control characters shown; nobody is told when stderr is closed.
pub(crate) fn stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape(text));
}

/// Prints to stdout whatever `write` writes, buffered.
pub(crate) fn stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Failure::stdout(&e))
}

/// Prints one line of JSON to stdout.
pub(crate) fn print_json(json: &Json) -> Result<()> {
    stdout(|out| writeln!(out, "{json}"))
}

/// Lines to stderr that were made safe before.
pub(crate) fn stderr_lines(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}
