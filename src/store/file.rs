//! A container in a file.
//!
//! Holds [`FileStorage`]: positioned reads and writes, a map where one suits, locks. Must not create or rename: `folder`
//! does.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};

use super::lock::{self, LockMode, Owner};
#[cfg(all(unix, target_pointer_width = "64"))]
use super::map::Mapper;
use super::{Access, FileId, Span, Storage};

/// One open file.
#[derive(Debug)]
pub(crate) struct FileStorage {
    file: File,
    /// The process that opened it.
    owner: Owner,
    identity: Option<FileId>,
    #[cfg(all(unix, target_pointer_width = "64"))]
    mapper: Option<Mapper>,
}

impl FileStorage {
    /// Opens the regular file at `path`. Never blocks on a FIFO, never touches a device.
    ///
    /// # Errors
    /// `Io`, which says what the path is when it is no regular file.
    pub(crate) fn open(path: &Path, write: bool, access: Access) -> Result<Self> {
        let refuse = |e| Error::io("cannot open the container", e).in_file(path);
        check_type(&std::fs::metadata(path).map_err(refuse)?).map_err(|e| e.in_file(path))?;
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(write);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // The path may have become a FIFO since it was looked at.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let file = options.open(path).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        check_type(&metadata).map_err(|e| e.in_file(path))?;
        Ok(Self::new(file, &metadata, access))
    }

    /// A storage over `file`, whose metadata is given.
    pub(crate) fn new(file: File, metadata: &Metadata, access: Access) -> Self {
        #[cfg(all(unix, target_pointer_width = "64"))]
        let mapper = (access == Access::Map && !lock::is_remote(&file)).then(Mapper::default);
        #[cfg(not(all(unix, target_pointer_width = "64")))]
        let _ = access;
        Self {
            owner: Owner::here(),
            identity: identity(metadata),
            #[cfg(all(unix, target_pointer_width = "64"))]
            mapper,
            file,
        }
    }
}

/// Locks go with the handle at once. Closing alone would leave them to a child that was forked meanwhile and shares the
/// handle until it runs another program.
impl Drop for FileStorage {
    fn drop(&mut self) {
        if self.owner.is_here_for_sure() {
            drop(lock::unlock_all(&self.file));
        }
    }
}

/// Device and inode of a file.
#[cfg_attr(
    unix,
    expect(clippy::unnecessary_wraps, reason = "other platforms have none")
)]
pub(crate) fn identity(metadata: &Metadata) -> Option<FileId> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// Refuses everything but a regular file, and says what it is.
fn check_type(metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    #[cfg(unix)]
    let special = {
        use std::os::unix::fs::FileTypeExt;
        [
            (kind.is_fifo(), "a FIFO (named pipe)"),
            (kind.is_socket(), "a socket"),
            (kind.is_char_device(), "a character device"),
            (kind.is_block_device(), "a block device"),
        ]
    };
    #[cfg(not(unix))]
    let special: [(bool, &str); 0] = [];
    if kind.is_dir() {
        let e = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
        return Err(
            Error::io("the path is not a regular file", e).help("give the path of a `.orth` file")
        );
    }
    let name = special.iter().find(|(is, _)| *is);
    let name = name.map_or("something special", |(_, name)| name);
    let e = io::Error::new(io::ErrorKind::InvalidInput, format!("it is {name}"));
    Err(Error::io("the path is not a regular file", e).help("give the path of a `.orth` file"))
}

impl Storage for FileStorage {
    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|m| m.len())
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        #[cfg(all(unix, target_pointer_width = "64"))]
        if self
            .mapper
            .as_ref()
            .is_some_and(|m| m.copy(&self.file, offset, buf))
        {
            return Ok(());
        }
        read_exact_at(&self.file, offset, buf)
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_all_at(&self.file, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Through a map nothing is fetched but what is looked at.
    #[cfg(all(unix, target_pointer_width = "64"))]
    fn fetch_gap(&self) -> Option<u64> {
        Some(if self.mapper.is_some() {
            0
        } else {
            super::LOCAL_GAP
        })
    }

    fn map(&self, offset: u64, len: usize) -> Option<Span> {
        #[cfg(all(unix, target_pointer_width = "64"))]
        {
            self.mapper.as_ref()?.lend(&self.file, offset, len)
        }
        #[cfg(not(all(unix, target_pointer_width = "64")))]
        {
            let _ = (offset, len);
            None
        }
    }

    #[cfg(unix)]
    fn links(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map(|m| m.nlink())
    }

    fn identity(&self) -> Option<FileId> {
        self.identity
    }

    fn try_lock(&self, byte: u64, mode: LockMode) -> io::Result<bool> {
        lock::try_lock(&self.file, byte, mode)
    }

    fn unlock(&self, byte: u64) -> io::Result<()> {
        lock::unlock(&self.file, byte)
    }

    fn conflict(&self, bytes: Range<u64>, mode: LockMode) -> io::Result<Option<u64>> {
        lock::conflict(&self.file, bytes, mode)
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buf.is_empty() {
        match file.seek_read(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buf = buf.get_mut(n..).unwrap_or(&mut []);
                offset = offset.saturating_add(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = bytes.get(n..).unwrap_or(&[]);
                offset = offset.saturating_add(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn storage(dir: &Path, access: Access) -> FileStorage {
        let path = dir.join("f");
        std::fs::write(&path, []).unwrap();
        FileStorage::open(&path, true, access).unwrap()
    }

    #[test]
    fn a_map_and_positioned_reads_give_the_same_bytes_as_the_file_grows() {
        let dir = tempfile::tempdir().unwrap();
        for access in [Access::Map, Access::Read] {
            let s = storage(dir.path(), access);
            let mut all = Vec::new();
            for round in 0..6_u8 {
                let bytes = vec![round; 5000];
                s.write_all_at(all.len() as u64, &bytes).unwrap();
                all.extend(bytes);
                let mut buf = vec![0; all.len()];
                s.read_exact_at(0, &mut buf).unwrap();
                assert_eq!(buf, all);
                if let Some(span) = s.map(17, all.len() - 17) {
                    assert_eq!(&*span, &all[17..]);
                } else {
                    assert_eq!(access, Access::Read, "this file system is mapped");
                }
            }
            assert!(
                s.map(0, all.len() + 1).is_none(),
                "nothing is lent past the end"
            );
            let e = s.read_exact_at(1, &mut vec![0; all.len()]).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_folder_or_a_missing_file_is_an_io_error_that_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let e = FileStorage::open(dir.path(), false, Access::Read).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Io);
        assert!(e.to_string().contains("it is a directory"), "{e}");
        let e = FileStorage::open(&dir.path().join("none"), false, Access::Read).unwrap_err();
        assert_eq!((e.kind(), e.file().is_some()), (ErrorKind::Io, true));
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let e = FileStorage::open(&path, false, Access::Read).unwrap_err();
        assert!(e.to_string().contains("it is a socket"), "{e}");
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|s| s.success()) {
            eprintln!("skipped: no mkfifo here");
            return;
        }
        let e = FileStorage::open(&path, false, Access::Read).unwrap_err();
        assert!(e.to_string().contains("a FIFO"), "{e}");
    }
}
