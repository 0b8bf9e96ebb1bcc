//! How a file that was written whole gets its name. Spec: `format-spec/12-space.md`, R-12.16, and `09-commit.md`, R-9.20.
//!
//! Holds the making of a new file, [`Unnamed`], and the replacement of the one that is open. Must not know what is written.
//!
//! Invariants: a name leads to the old file or to the new one, both whole, whatever is cut off when; the lock of the new
//! file is held before the name leads to it, that of the old one until the name is durable.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::slot::Slot;
use crate::store::lock::WRITER;
use crate::store::{Folder, LockMode, Storage, Unfinished};

use super::{Engine, EngineOptions, Form, SnapshotState};
#[cfg(any(unix, windows))]
use crate::store::{Access, Directory};

/// What to do when the new file's name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// `AlreadyExists`.
    Refused,
    /// What is there is replaced in one step, unless it is the file that is copied.
    Replaced,
}

impl Engine {
    /// Makes a file at `path`: `fill` writes it and looks it over. No file where it gives none, or fails.
    #[cfg(any(unix, windows))]
    pub(crate) fn make_at<T>(
        &self,
        path: &Path,
        taken: Taken,
        fill: impl FnOnce(&Arc<dyn Storage>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let (folder, name) = Directory::of(path, self.options().access)?;
        self.make(&folder, &name, taken, fill)
            .map_err(|e| e.in_file(path))
    }

    /// As [`Engine::make_at`], in any folder.
    pub(crate) fn make<T>(
        &self,
        folder: &dyn Folder,
        name: &OsStr,
        taken: Taken,
        fill: impl FnOnce(&Arc<dyn Storage>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let other = match taken {
            Taken::Refused => folder.create(name)?,
            Taken::Replaced => {
                self.refuse_itself(folder, name)?;
                folder.create_beside(name)?
            }
        };
        filled(folder, other, taken, fill)
    }

    /// A file is no copy of itself.
    fn refuse_itself(&self, folder: &dyn Folder, name: &OsStr) -> Result<()> {
        let there = folder
            .identity(name)
            .map_err(|e| Error::io("cannot look at the new file's path", e))?;
        if there.is_some() && there == self.storage().identity() {
            return Err(Error::invalid("target")
                .expected("another file than the source")
                .found("the source itself")
                .help("compact it in place"));
        }
        Ok(())
    }

    /// Puts a new file in the place of this one: `fill` is given the newest state and the new file, writes it and looks it
    /// over. The old file is as it was where `fill` gives none, or fails. Afterwards this engine's file has no name any more:
    /// its readers read on, a writer is refused.
    pub(crate) fn replace<T>(
        self: &Arc<Self>,
        fill: impl FnOnce(&SnapshotState, &Arc<dyn Storage>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        // Its lock keeps every other writer away, and the state in its base is the newest.
        let writer = self.writer()?;
        let Some((folder, name)) = self.named() else {
            return Err(Error::invalid("container")
                .expected("one in a file")
                .found("one in memory")
                .help("copy it to bytes"));
        };
        let io = |what: &'static str| move |e| self.place(Error::io(what, e));
        let real = folder
            .resolve(name)
            .map_err(io("cannot look at the container's path"))?;
        let (folder, name) = match &real {
            Some((folder, name)) => (folder, name.as_os_str()),
            None => (folder, name),
        };
        let links = self.storage().links();
        let links = links.map_err(io("cannot look at the container"))?;
        if links > 1 {
            return Err(self.place(
                Error::invalid("container")
                    .expected("a file with one name, as the other names would go on naming the old")
                    .found(format_args!("{links} hard links"))
                    .help("copy it to a new file"),
            ));
        }
        let new = folder.create_beside(name)?;
        let storage = new.storage();
        let Some(made) = fill(&writer.base(), &storage)? else {
            return Ok(None);
        };
        self.hand_over(folder.as_ref(), storage.as_ref(), new)
            .map_err(|e| self.place(e))?;
        // In this order: whoever waited for the old lock must find the new one taken, and see that the file is another.
        drop(writer);
        drop(storage);
        Ok(Some(made))
    }

    fn hand_over(
        &self,
        folder: &dyn Folder,
        storage: &dyn Storage,
        new: Box<dyn Unfinished>,
    ) -> Result<()> {
        match storage.try_lock(WRITER, LockMode::Exclusive) {
            Ok(true) => {}
            Ok(false) => return Err(Error::busy("another process holds the new file")),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
            Err(e) => return Err(Error::io("cannot take the new file's lock", e)),
        }
        self.check_name(self.storage())?;
        new.replace()
            .map_err(|e| Error::io("cannot put the new file in the old one's place", e))?;
        folder.sync().map_err(name_in_doubt)
    }

    /// How a copy of `source` says what it is: numbered on from it, with its age and application.
    pub(crate) fn form(&self, slot: &Slot, parent: [u8; 16]) -> Result<Form> {
        let options: &EngineOptions = self.options();
        let next = slot.time.saturating_add(1);
        Ok(Form {
            uuid: options.new_uuid()?,
            parent,
            created: self.header().created,
            application: self.header().application,
            first: slot.generation.saturating_add(1),
            time: (options.clock)().map_or(next, |now| now.max(next)),
            next_object_id: slot.next_object_id,
            writer_id: options.writer_id()?,
            writer_version: options.writer_version,
        })
    }
}

/// Makes a file at `path`, which must not exist: `fill` writes it and looks it over. No file where it gives none, or fails.
#[cfg(any(unix, windows))]
pub(crate) fn make_new_at<T>(
    path: &Path,
    fill: impl FnOnce(&Arc<dyn Storage>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let make = || {
        let (folder, name) = Directory::of(path, Access::Read)?;
        let other = folder.create(&name)?;
        filled(&folder, other, Taken::Refused, fill)
    };
    make().map_err(|e| e.in_file(path))
}

/// Fills a new file and gives it its name.
fn filled<T>(
    folder: &dyn Folder,
    other: Box<dyn Unfinished>,
    taken: Taken,
    fill: impl FnOnce(&Arc<dyn Storage>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let Some(made) = fill(&other.storage())? else {
        return Ok(None);
    };
    give_name(folder, other, taken)?;
    Ok(Some(made))
}

/// Gives a file that is whole and durable its name, durably.
pub(super) fn give_name(
    folder: &dyn Folder,
    other: Box<dyn Unfinished>,
    taken: Taken,
) -> Result<()> {
    match taken {
        Taken::Refused => other.publish(),
        Taken::Replaced => other.replace(),
    }
    .map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::already_exists("the file").help("another process has just created it")
        }
        _ => Error::io("cannot give the new file its name", e),
    })?;
    folder.sync().map_err(name_in_doubt)
}

/// A container's file that has no name yet: dropped, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Unnamed {
    folder: Box<dyn Folder>,
    unfinished: Box<dyn Unfinished>,
}

impl Unnamed {
    pub(super) fn new(folder: Box<dyn Folder>, unfinished: Box<dyn Unfinished>) -> Self {
        Self { folder, unfinished }
    }

    /// What has to be removed should this process end before.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.unfinished.path()
    }

    /// Gives the file its name. Its writer, if there is one, must have committed and still live: its lock tells others that
    /// the file is not one that somebody left behind.
    pub(crate) fn publish(self) -> Result<()> {
        give_name(self.folder.as_ref(), self.unfinished, Taken::Refused)
    }
}

fn name_in_doubt(e: io::Error) -> Error {
    Error::io(
        "cannot make the new file's name durable: it is whole, and may be gone after a power cut",
        e,
    )
}
