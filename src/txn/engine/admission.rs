//! Who may write: one writer at a time, across handles, threads and processes.
//!
//! Holds how an [`Engine`] takes the writer's lock and brings a new writer up to date. Must not write.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::store::lock::{WRITER, WriterEntry};
use crate::store::{LockMode, Storage};

use super::super::open::{self, Pair};
use super::super::snapshot::Committed;
use super::super::writer::{Held, WriterState};
use super::Engine;

/// How often a waiting writer tries again.
const TRY_EVERY: Duration = Duration::from_millis(5);

impl Engine {
    /// The one writer of the container.
    ///
    /// # Errors
    /// `Busy` at once while another one lives, in this process or another; `ReadOnly` and `Io` where writing is not
    /// possible; `Replaced` when the path names another file; what opening finds wrong.
    pub(crate) fn writer(self: &Arc<Self>) -> Result<Arc<WriterState>> {
        self.writer_within(Duration::ZERO)
    }

    /// As [`Engine::writer`], but waits up to `wait` for another writer to go.
    pub(crate) fn writer_within(self: &Arc<Self>, wait: Duration) -> Result<Arc<WriterState>> {
        self.check_process()?;
        let until = (!wait.is_zero()).then(|| Instant::now().checked_add(wait));
        loop {
            let e = match self.try_writer() {
                Ok(writer) => return Ok(writer),
                Err(e) => self.place(e),
            };
            // A wait too long to be told is for ever.
            let goes_on = match until {
                None => false,
                Some(None) => true,
                Some(Some(until)) => Instant::now() < until,
            };
            if e.kind() != ErrorKind::Busy || !goes_on {
                return Err(e);
            }
            std::thread::sleep(TRY_EVERY);
        }
    }

    fn try_writer(self: &Arc<Self>) -> Result<Arc<WriterState>> {
        if self.options.read_only {
            return Err(Error::read_only("the container was opened for reading")
                .help("open it without `read_only` to write"));
        }
        let busy = || {
            Error::busy("another writer holds this container")
                .help("wait for it with a timeout, or try again later; a forked child of a killed writer keeps its lock")
        };
        let flag = Writing::new(self).ok_or_else(busy)?;
        let medium = match &self.home {
            Some(home) => home.folder.open(&home.name, true)?,
            None => Arc::clone(&self.storage),
        };
        if medium.identity() != self.storage.identity() {
            return Err(replaced());
        }
        let entry = WriterEntry::new(medium.identity()).ok_or_else(busy)?;
        let mut locked = false;
        match medium.try_lock(WRITER, LockMode::Exclusive) {
            Ok(true) => locked = true,
            Ok(false) => return Err(busy()),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {
                if !self.options.without_locks {
                    return Err(Error::lock_unavailable("the file system gives no locks")
                        .help("write without them only where no other writer can exist"));
                }
            }
            Err(e) => return Err(Error::io("cannot take the writer's lock", e)),
        }
        self.check_name(medium.as_ref())?;
        if let Some(home) = &self.home {
            home.folder.tidy(&home.name);
        }
        let pair = open::read_slots(medium.as_ref(), &self.header, true)?;
        self.catch_up(&pair)?;
        let held = Held {
            medium,
            reuses: locked && self.options.reuse && !self.options.without_locks,
            _entry: entry,
            _flag: flag,
        };
        WriterState::open(Arc::clone(self), held, &pair)
    }

    /// Makes the pair's newest slot the published state, be it newer or older: after a failed commit of this process the
    /// file decides.
    fn catch_up(&self, pair: &Pair) -> Result<()> {
        if pair.newest.ro_compat != 0 {
            return Err(Error::unsupported("features of this container")
                .expected("none that forbid writing")
                .found(format_args!("bits {:#x}", pair.newest.ro_compat))
                .help("a newer release of orthant writes this file"));
        }
        if self.published.read().slot != pair.newest {
            let tree = open::verify(self.storage.as_ref(), self, &self.header, &pair.newest)?;
            self.publish(Arc::new(Committed {
                slot: pair.newest.clone(),
                tree,
                retained: false,
                deferred: None,
            }));
        }
        Ok(())
    }

    /// Refuses to go on when the name leads to another file than `medium`.
    pub(in crate::txn) fn check_name(&self, medium: &dyn Storage) -> Result<()> {
        let Some(home) = &self.home else {
            return Ok(());
        };
        let named = home
            .folder
            .identity(&home.name)
            .map_err(|e| Error::io("cannot look at the container's path", e))?;
        // A name that is gone is no other file: readers and the writer of an unlinked file go on.
        if named.is_some() && named != medium.identity() {
            return Err(replaced());
        }
        Ok(())
    }
}

fn replaced() -> Error {
    Error::replaced("the path now names another file than this handle").help("open the path again")
}

/// The mark that a writer of an engine lives, taken back when dropped.
#[derive(Debug)]
pub(in crate::txn) struct Writing(Arc<Engine>);

impl Writing {
    /// None when one lives.
    fn new(engine: &Arc<Engine>) -> Option<Self> {
        (!engine.writing.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(engine)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::Release);
    }
}
