//! A disk for tests: it records every call, can fail any of them, and can be cut off at any point.
//!
//! Holds [`Disk`] with its [`Op`]s, its faults, and the sabotages that the crash tests must notice. Must not judge what a
//! container holds.
//!
//! The model of a power cut (see `crash.rs`, which enumerates it): of the writes that no sync has covered any subset
//! survives, each torn at any byte, with sectors of zeros or garbage; the length may have grown without the data or not
//! at all; names change durably only with a sync of their folder. A failed sync leaves the new bytes in the cache and
//! marks them clean: no later sync writes them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use orthant::testing::{FileId, Folder, LockMode, Storage, Unfinished, io_error};

/// One call that reached the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Write {
        file: usize,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// Everything written to the file before is durable now.
    Sync {
        file: usize,
    },
    /// What was written to the file since the last sync may or may not be durable, and no later sync covers it.
    FailedSync {
        file: usize,
    },
    Create {
        name: OsString,
        file: usize,
    },
    Rename {
        from: OsString,
        to: OsString,
    },
    Remove {
        name: OsString,
    },
    SyncFolder,
    /// The test has been told that this generation is durable.
    Acknowledged {
        generation: u64,
    },
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error of this number, nothing done.
    Errno(i32),
    /// A write that gets this many bytes out, then an error.
    Short(usize, i32),
}

pub const EINTR: i32 = 4;
pub const EIO: i32 = 5;
pub const ENOSPC: i32 = 28;
/// No error of the system: the bytes end before they should.
pub const SHORT: i32 = 0;

/// Calls that change nothing, and can fail all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Reading bytes.
    Read,
    /// Asking for the length.
    Len,
    /// Taking, asking for, or letting go of a lock.
    Lock,
    /// Asking what a name leads to.
    Name,
}

/// Bytes from here on say which generations are read.
const PINS: u64 = (1 << 62) + 4096;

/// What the disk leaves out or falsifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    None,
    /// The sync between nodes and slot does nothing.
    FirstSync,
    /// The sync after the slot does nothing.
    SecondSync,
    /// The sync of the folder does nothing.
    FolderSync,
    /// The sync of a file that was written whole does nothing.
    WholeSync,
    /// Who asks for the pins of others hears of none.
    Pins,
}

#[derive(Debug)]
struct State {
    /// Contents by file number, as the cache has them.
    files: Vec<Vec<u8>>,
    names: BTreeMap<OsString, usize>,
    ops: Vec<Op>,
    calls: u64,
    /// The call that fails, counted from 1, and how; `sticky`: all later ones too.
    fault: Option<(u64, Fault)>,
    sticky: bool,
    /// How often each kind of look was made, and which one fails from when on, how, and whether for ever.
    looks: [u64; 4],
    blind: Option<(Look, u64, i32, bool)>,
    sabotage: Sabotage,
    /// Byte locks: file, byte, handle, exclusive.
    locks: Vec<(usize, u64, u64, bool)>,
    handles: u64,
}

/// A folder on a disk.
#[derive(Debug, Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    device: u64,
}

/// Disks differ, so that writers on two of them do not lock each other out.
static DEVICES: AtomicU64 = AtomicU64::new(1 << 40);

impl Disk {
    pub fn new(sabotage: Sabotage) -> Self {
        let state = State {
            files: Vec::new(),
            names: BTreeMap::new(),
            ops: Vec::new(),
            calls: 0,
            fault: None,
            sticky: false,
            looks: [0; 4],
            blind: None,
            sabotage,
            locks: Vec::new(),
            handles: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            device: DEVICES.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A disk that holds one file, durable from the start.
    pub fn with_file(name: &OsStr, bytes: Vec<u8>) -> Self {
        let disk = Self::new(Sabotage::None);
        let mut state = disk.lock();
        state.files.push(bytes);
        state.names.insert(name.to_owned(), 0);
        drop(state);
        disk
    }

    pub fn folder(&self) -> Arc<dyn Folder> {
        Arc::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn ops(&self) -> Vec<Op> {
        self.lock().ops.clone()
    }

    pub fn acknowledge(&self, generation: u64) {
        self.lock().ops.push(Op::Acknowledged { generation });
    }

    /// The file's bytes as a reader sees them now.
    pub fn contents(&self, name: &OsStr) -> Option<Vec<u8>> {
        let state = self.lock();
        state.names.get(name).map(|&file| state.files[file].clone())
    }

    /// Puts other bytes under a name, as a rename of another process does.
    pub fn replace_by_hand(&self, name: &OsStr, bytes: Vec<u8>) {
        let mut state = self.lock();
        let file = state.files.len();
        state.files.push(bytes);
        state.names.insert(name.to_owned(), file);
    }

    /// All names of the folder.
    pub fn names(&self) -> Vec<String> {
        let state = self.lock();
        let names = state.names.keys();
        names.map(|n| n.to_str().unwrap().to_owned()).collect()
    }

    /// How many calls that can fail were made.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Lets the `call`-th call from now fail.
    pub fn fail(&self, call: u64, fault: Fault, sticky: bool) {
        let mut state = self.lock();
        let at = state.calls + call;
        state.fault = Some((at, fault));
        state.sticky = sticky;
    }

    /// How many calls of a kind that changes nothing were made.
    pub fn looks(&self, look: Look) -> u64 {
        self.lock().looks[look as usize]
    }

    /// Lets the `call`-th of such calls from now fail.
    pub fn blind(&self, look: Look, call: u64, errno: i32, sticky: bool) {
        let mut state = self.lock();
        let at = state.looks[look as usize] + call;
        state.blind = Some((look, at, errno, sticky));
    }

    /// No call fails any more.
    pub fn heal(&self) {
        let mut state = self.lock();
        (state.fault, state.blind) = (None, None);
    }
}

impl State {
    /// The fault of the call that happens now.
    fn step(&mut self) -> Option<Fault> {
        self.calls += 1;
        let (at, fault) = self.fault?;
        (self.calls == at || self.sticky && self.calls > at).then_some(fault)
    }

    fn fails(&mut self) -> io::Result<()> {
        match self.step() {
            Some(Fault::Errno(n) | Fault::Short(_, n)) => Err(io::Error::from_raw_os_error(n)),
            None => Ok(()),
        }
    }

    /// A call that changes nothing.
    fn look(&mut self, look: Look) -> io::Result<()> {
        let count = &mut self.looks[look as usize];
        *count += 1;
        match self.blind {
            Some((which, at, errno, sticky))
                if which == look && (*count == at || sticky && *count > at) =>
            {
                Err(match errno {
                    SHORT => io::ErrorKind::UnexpectedEof.into(),
                    errno => io::Error::from_raw_os_error(errno),
                })
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, file: usize, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = usize::try_from(offset).unwrap();
        let end = start + bytes.len();
        let content = &mut self.files[file];
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        self.ops.push(Op::Write {
            file,
            offset,
            bytes: bytes.to_vec(),
        });
    }

    /// Where the last sync of this file stands in its commit, or that a new file is written whole.
    fn sync_kind(&self, file: usize) -> Sabotage {
        let since = self
            .ops
            .iter()
            .rev()
            .take_while(|op| !matches!(op, Op::Sync { file: f } if *f == file));
        let offsets: Vec<u64> = since
            .filter_map(|op| match op {
                Op::Write {
                    file: f, offset, ..
                } if *f == file => Some(*offset),
                _ => None,
            })
            .collect();
        if offsets.contains(&0) {
            Sabotage::WholeSync
        } else if offsets
            .iter()
            .any(|offset| (0x1000..0x3000).contains(offset))
        {
            Sabotage::SecondSync
        } else {
            Sabotage::FirstSync
        }
    }
}

#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    file: usize,
    handle: u64,
}

impl DiskFile {
    fn new(disk: &Disk, state: &mut State, file: usize) -> Self {
        state.handles += 1;
        Self {
            disk: disk.clone(),
            file,
            handle: state.handles,
        }
    }
}

/// Locks go with their handle.
impl Drop for DiskFile {
    fn drop(&mut self) {
        let handle = self.handle;
        self.disk.lock().locks.retain(|l| l.2 != handle);
    }
}

impl Storage for DiskFile {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.lock();
        state.look(Look::Len)?;
        Ok(state.files[self.file].len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.look(Look::Read)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let from = state.files[self.file]
            .get(start..)
            .and_then(|rest| rest.get(..buf.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(from);
        Ok(())
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        match state.step() {
            None => {
                state.write(self.file, offset, bytes);
                Ok(())
            }
            Some(Fault::Errno(n)) => Err(io::Error::from_raw_os_error(n)),
            Some(Fault::Short(len, n)) => {
                state.write(self.file, offset, &bytes[..len.min(bytes.len())]);
                Err(io::Error::from_raw_os_error(n))
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let file = self.file;
        if let Err(e) = state.fails() {
            state.ops.push(Op::FailedSync { file });
            return Err(e);
        }
        let lies = state.sync_kind(file) == state.sabotage;
        if !lies {
            state.ops.push(Op::Sync { file });
        }
        Ok(())
    }

    fn is_shared(&self) -> bool {
        // Tests with several handles wait for nothing; that is tested on real files.
        false
    }

    fn identity(&self) -> Option<FileId> {
        Some(FileId {
            device: self.disk.device,
            inode: self.file as u64,
        })
    }

    fn try_lock(&self, byte: u64, mode: LockMode) -> io::Result<bool> {
        if self.conflict(byte..byte + 1, mode)?.is_some() {
            return Ok(false);
        }
        let exclusive = mode == LockMode::Exclusive;
        let mut state = self.disk.lock();
        state.locks.push((self.file, byte, self.handle, exclusive));
        Ok(true)
    }

    fn unlock(&self, byte: u64) -> io::Result<()> {
        let mine = (self.file, byte, self.handle);
        let mut state = self.disk.lock();
        // A lock that cannot be let go of goes with its handle.
        state.look(Look::Lock)?;
        state.locks.retain(|l| (l.0, l.1, l.2) != mine);
        Ok(())
    }

    fn conflict(&self, bytes: Range<u64>, mode: LockMode) -> io::Result<Option<u64>> {
        let mut state = self.disk.lock();
        state.look(Look::Lock)?;
        if state.sabotage == Sabotage::Pins && bytes.start >= PINS {
            return Ok(None);
        }
        let others = state
            .locks
            .iter()
            .filter(|(file, byte, handle, exclusive)| {
                *file == self.file
                    && *handle != self.handle
                    && bytes.contains(byte)
                    && (*exclusive || mode == LockMode::Exclusive)
            });
        Ok(others.map(|l| l.1).min())
    }
}

impl Folder for Disk {
    fn open(&self, name: &OsStr, _write: bool) -> orthant::Result<Arc<dyn Storage>> {
        let mut state = self.lock();
        let file = state.names.get(name).copied();
        let none = || io_error("cannot open the container", io::ErrorKind::NotFound.into());
        let file = file.ok_or_else(none)?;
        Ok(Arc::new(DiskFile::new(self, &mut state, file)))
    }

    fn create(&self, name: &OsStr) -> orthant::Result<Box<dyn Unfinished>> {
        let mut state = self.lock();
        state.fails().map_err(|e| io_error("cannot create", e))?;
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(".tmp");
        let file = state.files.len();
        state.files.push(Vec::new());
        state.names.insert(temporary.clone(), file);
        state.ops.push(Op::Create {
            name: temporary.clone(),
            file,
        });
        let file = Arc::new(DiskFile::new(self, &mut state, file));
        let target = name.to_owned();
        Ok(Box::new(Temporary {
            file,
            temporary,
            target,
            published: false,
        }))
    }

    fn create_beside(&self, name: &OsStr) -> orthant::Result<Box<dyn Unfinished>> {
        self.create(name)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.fails()?;
        if state.sabotage != Sabotage::FolderSync {
            state.ops.push(Op::SyncFolder);
        }
        Ok(())
    }

    fn identity(&self, name: &OsStr) -> io::Result<Option<FileId>> {
        let mut state = self.lock();
        state.look(Look::Name)?;
        let file = state.names.get(name).copied();
        Ok(file.map(|file| FileId {
            device: self.device,
            inode: file as u64,
        }))
    }
}

#[derive(Debug)]
struct Temporary {
    file: Arc<DiskFile>,
    temporary: OsString,
    target: OsString,
    published: bool,
}

impl Unfinished for Temporary {
    fn storage(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.file) as Arc<dyn Storage>
    }

    fn publish(self: Box<Self>) -> io::Result<()> {
        if self.file.disk.lock().names.contains_key(&self.target) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.replace()
    }

    fn replace(mut self: Box<Self>) -> io::Result<()> {
        let disk = self.file.disk.clone();
        let mut state = disk.lock();
        state.fails()?;
        state.names.remove(&self.temporary);
        state.names.insert(self.target.clone(), self.file.file);
        let (from, to) = (self.temporary.clone(), self.target.clone());
        state.ops.push(Op::Rename { from, to });
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            let mut state = self.file.disk.lock();
            state.names.remove(&self.temporary);
            let name = self.temporary.clone();
            state.ops.push(Op::Remove { name });
        }
    }
}

/// A small source of numbers that are the same in every run.
pub struct Random {
    state: u64,
    /// Bytes that decide before the generator does: a fuzzer's.
    fed: std::vec::IntoIter<u8>,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self::fed(Vec::new(), seed)
    }

    /// Takes each choice from `bytes` while they last.
    pub fn fed(bytes: Vec<u8>, seed: u64) -> Self {
        Self {
            state: seed ^ 0x9E37_79B9_7F4A_7C15,
            fed: bytes.into_iter(),
        }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        let choice = match (self.fed.next(), n) {
            (Some(byte), ..=0x100) => u64::from(byte),
            (Some(byte), _) => self.next() ^ u64::from(byte),
            (None, _) => self.next(),
        };
        usize::try_from(choice % n).unwrap()
    }
}
