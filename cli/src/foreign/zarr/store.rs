//! Where a Zarr store's keys lie: a folder, or a zip file.
//!
//! Holds [`Store`], [`Folder`] and [`Zip`]. Must not know documents or chunks.
//!
//! A key only ever comes from a listing of the same store or from a chunk coordinate, so none leads out of it; a link to
//! a folder is not followed, so no listing runs in a circle.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use zip::{CompressionMethod, ZipArchive};

use crate::foreign::{Refusal, Stop};

/// No deflate stream makes more of a byte.
const DEFLATE_MOST: u64 = 1032;

/// Keys and their bytes.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// The bytes of a key; none where it is not there. More than `max` of them are refused.
    fn get(&self, key: &str, max: u64) -> Result<Option<Vec<u8>>, Refusal>;

    /// The names directly below a key (empty for all of the store), each with whether more is below it. No order.
    fn list(
        &self,
        below: &str,
        take: &mut dyn FnMut(&str, bool) -> Result<(), Stop>,
    ) -> Result<(), Stop>;
}

/// `above/name`, or `name` at the root.
pub(crate) fn join(above: &str, name: &str) -> String {
    if above.is_empty() {
        name.to_owned()
    } else {
        format!("{above}/{name}")
    }
}

fn bounded(key: &str, input: impl Read, len: u64, max: u64) -> Result<Vec<u8>, Refusal> {
    let too_long = || format!("{key:?} has more than {max} bytes");
    if len > max {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let read = input.take(max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| format!("{key:?} cannot be read: {e}"))?;
    if bytes.len() as u64 > max {
        return Err(too_long());
    }
    Ok(bytes)
}

/// A folder.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Store for Folder {
    fn get(&self, key: &str, max: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let absent = |e: &io::Error| {
            matches!(
                e.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::IsADirectory
            )
        };
        let failed = |e: &io::Error| format!("{key:?} cannot be read: {e}");
        // A pipe would wait for its other end.
        let path = self.0.join(key);
        let metadata = match std::fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(e) if absent(&e) => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        if metadata.is_dir() {
            return Ok(None);
        }
        if !metadata.is_file() {
            return Err(format!("{key:?} is no plain file"));
        }
        let file = File::open(&path).map_err(|e| failed(&e))?;
        bounded(key, file, metadata.len(), max).map(Some)
    }

    fn list(
        &self,
        below: &str,
        take: &mut dyn FnMut(&str, bool) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let failed = |e: io::Error| Stop::Source(format!("{below:?} cannot be listed: {e}"));
        let entries = match std::fs::read_dir(self.0.join(below)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(failed(e)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // Zarr's keys are UTF-8: another name is none of its.
            if let Some(name) = name.to_str() {
                take(name, entry.file_type().map_err(failed)?.is_dir())?;
            }
        }
        Ok(())
    }
}

/// A zip file.
pub(crate) struct Zip {
    path: PathBuf,
    archive: Mutex<ZipArchive<BufReader<File>>>,
    /// Names of files, each with its place in the archive.
    names: BTreeMap<String, usize>,
}

impl fmt::Debug for Zip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zip").field(&self.path).finish()
    }
}

/// A member of a zip file that lies in it as it is.
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Zip {
    /// Reads the directory of a zip file.
    pub(crate) fn open(path: &Path) -> Result<Self, Refusal> {
        let broken = |e: &dyn fmt::Display| format!("no usable zip file: {e}");
        let file = File::open(path).map_err(|e| broken(&e))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| broken(&e))?;
        let mut names = BTreeMap::new();
        for at in 0..archive.len() {
            if let Some(name) = archive.name_for_index(at)
                && !name.ends_with('/')
            {
                names.insert(name.to_owned(), at);
            }
        }
        Ok(Self {
            path: path.to_owned(),
            archive: Mutex::new(archive),
            names,
        })
    }

    /// Whether a document of Zarr is among its members.
    pub(crate) fn has_documents(&self) -> bool {
        let last = |name: &String| {
            let name = name.rsplit('/').next().unwrap_or_default();
            super::DOCUMENTS.contains(&name)
        };
        self.names.keys().any(last)
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Where a member lies, if it is stored as it is.
    pub(crate) fn place(&self, name: &str) -> Result<Option<Place>, Refusal> {
        let Some(at) = self.names.get(name) else {
            return Ok(None);
        };
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let member = archive.by_index(*at).map_err(|e| unreadable(name, &e))?;
        let plain = member.compression() == CompressionMethod::Stored && !member.encrypted();
        Ok(plain.then(|| Place {
            offset: member.data_start(),
            len: member.size(),
        }))
    }

    /// Unpacks a member to a file without a name, which is gone when it is closed.
    pub(crate) fn unpacked(&self, name: &str) -> Result<File, Refusal> {
        let at = *self.names.get(name).ok_or("it is not there")?;
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let mut member = archive.by_index(at).map_err(|e| unreadable(name, &e))?;
        let failed = |e: io::Error| unreadable(name, &e);
        // What a member says of its length bounds what is written of it, and its packed length bounds what it may say.
        let (len, packed) = (member.size(), member.compressed_size());
        if len > packed.saturating_mul(DEFLATE_MOST).saturating_add(1 << 16) {
            return Err(unreadable(
                name,
                &format!("{len} bytes, more than {packed} packed ones can hold"),
            ));
        }
        let mut file = tempfile::tempfile().map_err(failed)?;
        let got = io::copy(&mut (&mut member).take(len.saturating_add(1)), &mut file);
        if got.map_err(failed)? != len {
            return Err(unreadable(name, &"another length than the directory says"));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn unreadable(name: &str, e: &dyn fmt::Display) -> Refusal {
    format!("{name:?} cannot be unpacked: {e}")
}

impl Store for Zip {
    fn get(&self, key: &str, max: u64) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(at) = self.names.get(key) else {
            return Ok(None);
        };
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let member = archive.by_index(*at).map_err(|e| unreadable(key, &e))?;
        let len = member.size();
        bounded(key, member, len, max).map(Some)
    }

    fn list(
        &self,
        below: &str,
        take: &mut dyn FnMut(&str, bool) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let prefix = if below.is_empty() {
            String::new()
        } else {
            format!("{below}/")
        };
        let mut last: Option<(String, bool)> = None;
        for name in self.names.range(prefix.clone()..) {
            let Some(rest) = name.0.strip_prefix(&prefix) else {
                break;
            };
            let (child, more) = match rest.split_once('/') {
                Some((child, _)) => (child, true),
                None => (rest, false),
            };
            // Names below one child need not stand together (`a`, `a-b`, `a/c`), so one may be told twice.
            if last.as_ref().is_none_or(|(c, m)| c != child || *m != more) {
                take(child, more)?;
                last = Some((child.to_owned(), more));
            }
        }
        Ok(())
    }
}
