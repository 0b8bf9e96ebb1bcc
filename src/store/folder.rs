//! Names of containers in a real folder.
//!
//! Holds [`Directory`]: files appear under their name whole or not at all. Must not write a container's bytes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

use super::file::{FileStorage, identity};
use super::lock::{LockMode, WRITER};
use super::{Access, FileId, Folder, Storage, Unfinished};

/// A folder of the file system.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    access: Access,
}

impl Directory {
    /// The folder that `path` lies in, and the last part of `path`.
    ///
    /// # Errors
    /// `InvalidArgument` when `path` ends in no name.
    pub(crate) fn of(path: &Path, access: Access) -> Result<(Self, OsString)> {
        let Some(name) = path.file_name() else {
            return Err(Error::invalid("path of a container")
                .expected("a path that ends in a file name")
                .found(path.display()));
        };
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let folder = Self {
            path: parent.unwrap_or(Path::new(".")).to_owned(),
            access,
        };
        Ok((folder, name.to_owned()))
    }

    fn temporary_name(name: &OsStr) -> OsString {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".tmp");
        hidden
    }

    /// A locked temporary that the folder still names; none when another process took it away in between.
    fn try_create(&self, name: &OsStr) -> io::Result<Option<(NamedTempFile, FileStorage)>> {
        let hidden = Self::temporary_name(name);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&hidden).suffix("").rand_bytes(0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(&self.path)?;
        let file = temporary.as_file().try_clone()?;
        let storage = FileStorage::new(file, &temporary.as_file().metadata()?, self.access);
        // Whoever holds the lock of a temporary may remove it, and nobody else: so a temporary that was locked by its
        // creator and is still there belongs to it until it is published.
        let locked = match storage.try_lock(WRITER, LockMode::Exclusive) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => true,
            other => other?,
        };
        if locked && self.identity(&hidden)? == storage.identity() {
            return Ok(Some((temporary, storage)));
        }
        // The name is another's now, or about to be: it must not be removed with this handle.
        temporary.keep().map_err(|e| e.error)?;
        Ok(None)
    }

    /// A locked temporary beside `name`.
    fn start(&self, name: &OsStr) -> Result<Temporary> {
        let path = self.path.join(name);
        for _ in 0..100 {
            match self.try_create(name) {
                Ok(Some((temporary, storage))) => {
                    return Ok(Temporary {
                        file: temporary,
                        storage: Arc::new(storage),
                        target: path,
                    });
                }
                Ok(None) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    if !self.remove_stale(name)? {
                        break;
                    }
                }
                Err(e) => return Err(Error::io("cannot create the container", e).in_file(&path)),
            }
        }
        Err(Error::busy("another process is creating this file").in_file(&path))
    }

    /// Removes a temporary whose process is gone; false when one is at work on it.
    fn remove_stale(&self, name: &OsStr) -> Result<bool> {
        let hidden = Self::temporary_name(name);
        let path = self.path.join(&hidden);
        let storage = match FileStorage::open(&path, true, Access::Read) {
            Ok(storage) => storage,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(true);
            }
            Err(e) => return Err(e),
        };
        let refuse = |e| Error::io("cannot remove a stale temporary file", e).in_file(&path);
        if !storage
            .try_lock(WRITER, LockMode::Exclusive)
            .map_err(refuse)?
        {
            return Ok(false);
        }
        if self.identity(&hidden).map_err(refuse)? == storage.identity() {
            std::fs::remove_file(&path).map_err(refuse)?;
        }
        Ok(true)
    }
}

impl Folder for Directory {
    fn open(&self, name: &OsStr, write: bool) -> Result<Arc<dyn Storage>> {
        let storage = FileStorage::open(&self.path.join(name), write, self.access)?;
        Ok(Arc::new(storage))
    }

    fn create(&self, name: &OsStr) -> Result<Box<dyn Unfinished>> {
        let path = self.path.join(name);
        if std::fs::symlink_metadata(&path).is_ok() {
            return Err(Error::already_exists("the file")
                .in_file(&path)
                .help("open it, or choose another name"));
        }
        self.start(name)
            .map(|started| Box::new(started) as Box<dyn Unfinished>)
    }

    fn create_beside(&self, name: &OsStr) -> Result<Box<dyn Unfinished>> {
        let path = self.path.join(name);
        // A link is replaced itself; what it leads to is none of ours.
        let there = match std::fs::symlink_metadata(&path) {
            Ok(m) if m.is_file() => Some(m),
            Ok(m) if !m.is_symlink() => {
                return Err(Error::invalid("target")
                    .expected("a regular file, or nothing")
                    .found("a folder, device, FIFO or socket")
                    .in_file(&path));
            }
            _ => None,
        };
        let started = self.start(name)?;
        if let Some(metadata) = there {
            hand_down(&metadata, started.file.as_file())
                .map_err(|e| Error::io("cannot give the new file its permissions", e))
                .map_err(|e| e.in_file(&path))?;
        }
        Ok(Box::new(started))
    }

    fn resolve(&self, name: &OsStr) -> io::Result<Option<(Arc<dyn Folder>, OsString)>> {
        let path = self.path.join(name);
        if !std::fs::symlink_metadata(&path)?.is_symlink() {
            return Ok(None);
        }
        let real = std::fs::canonicalize(&path)?;
        let (folder, name) = Self::of(&real, self.access)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
        Ok(Some((Arc::new(folder), name)))
    }

    fn tidy(&self, name: &OsStr) {
        if let Ok(Some((real, name))) = self.resolve(name) {
            return real.tidy(&name);
        }
        // Asked of every writer that opens: most often there is nothing. What cannot be removed is in nobody's way.
        if std::fs::symlink_metadata(self.path.join(Self::temporary_name(name))).is_ok() {
            drop(self.remove_stale(name));
        }
    }

    fn scratch(&self) -> io::Result<Arc<dyn Storage>> {
        let file = tempfile::tempfile_in(&self.path)?;
        let metadata = file.metadata()?;
        Ok(Arc::new(FileStorage::new(file, &metadata, Access::Read)))
    }

    fn sync(&self) -> io::Result<()> {
        // Elsewhere a folder cannot be opened; the file system orders names itself.
        if cfg!(unix) {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }

    fn identity(&self, name: &OsStr) -> io::Result<Option<FileId>> {
        match std::fs::metadata(self.path.join(name)) {
            Ok(metadata) => Ok(identity(&metadata)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Gives `file` the owner, where that is allowed, and the permissions of the file it is to replace.
fn hand_down(metadata: &std::fs::Metadata, file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
            // Only the superuser may give files away; for all others the file becomes theirs, as with any editor.
            drop(std::os::unix::fs::fchown(
                file,
                Some(metadata.uid()),
                Some(metadata.gid()),
            ));
        }
    }
    file.set_permissions(metadata.permissions())
}

/// A temporary beside its target, locked by this process.
#[derive(Debug)]
struct Temporary {
    file: NamedTempFile,
    storage: Arc<FileStorage>,
    target: PathBuf,
}

impl Unfinished for Temporary {
    fn storage(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.storage) as Arc<dyn Storage>
    }

    fn path(&self) -> Option<&Path> {
        Some(self.file.path())
    }

    fn publish(self: Box<Self>) -> io::Result<()> {
        self.file
            .persist_noclobber(&self.target)
            .map(|_| ())
            .map_err(|e| e.error)
    }

    fn replace(self: Box<Self>) -> io::Result<()> {
        self.file
            .persist(&self.target)
            .map(|_| ())
            .map_err(|e| e.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn names(dir: &Path) -> Vec<String> {
        let mut all: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_appears_when_it_is_published_and_a_dropped_one_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = Directory::of(&dir.path().join("a.orth"), Access::Map).unwrap();
        drop(folder.create(&name).unwrap());
        assert_eq!(names(dir.path()), [""; 0]);
        let new = folder.create(&name).unwrap();
        new.storage().write_all_at(0, b"x").unwrap();
        assert_eq!(names(dir.path()), [".a.orth.tmp"]);
        new.publish().unwrap();
        folder.sync().unwrap();
        assert_eq!(names(dir.path()), ["a.orth"]);
        let e = folder.create(&name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn publishing_never_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = Directory::of(&dir.path().join("a.orth"), Access::Map).unwrap();
        let new = folder.create(&name).unwrap();
        std::fs::write(dir.path().join("a.orth"), b"theirs").unwrap();
        let e = new.publish().unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(dir.path().join("a.orth")).unwrap(), b"theirs");
        assert_eq!(names(dir.path()), ["a.orth"]);
    }

    #[test]
    fn a_stale_temporary_is_taken_over_and_one_in_use_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = Directory::of(&dir.path().join("a.orth"), Access::Map).unwrap();
        std::fs::write(dir.path().join(".a.orth.tmp"), b"left behind").unwrap();
        let new = folder.create(&name).unwrap();
        assert_eq!(new.storage().len().unwrap(), 0);
        let e = folder.create(&name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Busy);
        drop(new);
        folder.create(&name).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_or_a_link_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Directory::of(&dir.path().join(name), Access::Map).unwrap();
        let (folder, name) = of("folder");
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let e = folder.create_beside(&name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let (folder, name) = of("socket");
        let e = folder.create_beside(&name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        std::fs::write(dir.path().join("theirs"), b"theirs").unwrap();
        std::os::unix::fs::symlink("theirs", dir.path().join("link")).unwrap();
        let (folder, name) = of("link");
        folder.create_beside(&name).unwrap().replace().unwrap();
        assert_eq!(std::fs::read(dir.path().join("theirs")).unwrap(), b"theirs");
        assert_eq!(names(dir.path()), ["folder", "link", "socket", "theirs"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_usual_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("usual"), []).unwrap();
        let (folder, name) = Directory::of(&dir.path().join("a.orth"), Access::Map).unwrap();
        folder.create(&name).unwrap().publish().unwrap();
        let mode = |n: &str| {
            std::fs::metadata(dir.path().join(n))
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!(mode("a.orth"), mode("usual"));
    }
}
