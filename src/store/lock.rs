//! Locks of single bytes, far beyond any data. Spec: `format-spec/12-space.md`, "Locks".
//!
//! Holds the bytes' meaning, the system's range locks behind three safe functions, and the table of writers of this
//! process. One of the two places that say `unsafe`. Must not decide who may write.
//!
//! On Linux the locks belong to the open file description: a second handle in the same process is refused, another
//! handle that is closed loses nothing, and the kernel drops them with the process (a forked child that keeps the handle
//! open keeps the lock).

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, OnceLock};

use parking_lot::Mutex;

use super::FileId;

/// The byte of the writer.
pub(crate) const WRITER: u64 = 1 << 62;
/// The byte of a writer that announces itself, and of compaction.
pub(crate) const INTENT: u64 = WRITER + 1;
/// The byte that every open handle shares.
pub(crate) const PRESENT: u64 = WRITER + 2;
/// The byte of generation 0; that of g lies g further on.
pub(crate) const PINS: u64 = WRITER + 4096;

/// Who else may hold the byte meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Others that share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Files that a writer of one process holds. Locks of the whole file, where only those exist, do not tell two handles
/// of one process apart everywhere; device and inode do, through hard and symbolic links too.
///
/// A forked child has a table of its own: in its parent's stand writers that are not its own and that it never sees go,
/// and a thread that the child does not have may have held that table's lock for good.
struct Writers {
    /// The process; 0: nobody's yet.
    pid: AtomicU32,
    files: LazyLock<Mutex<HashSet<FileId>>>,
    child: OnceLock<Box<Writers>>,
}

static WRITERS: Writers = Writers::new();

impl Writers {
    const fn new() -> Self {
        Self {
            pid: AtomicU32::new(0),
            files: LazyLock::new(Mutex::default),
            child: OnceLock::new(),
        }
    }

    /// The table of the process `pid`, which is this one.
    fn of(pid: u32) -> &'static Self {
        let mut table = &WRITERS;
        loop {
            let taken = table
                .pid
                .compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() || taken == Err(pid) {
                return table;
            }
            table = table.child.get_or_init(|| Box::new(Self::new()));
        }
    }
}

/// The entry of one writer in the table of this process.
#[derive(Debug)]
pub(crate) struct WriterEntry {
    pid: u32,
    id: Option<FileId>,
}

impl WriterEntry {
    /// Enters a writer of the file; none when this process has one.
    pub(crate) fn new(id: Option<FileId>) -> Option<Self> {
        let pid = std::process::id();
        if let Some(id) = id
            && !Writers::of(pid).files.lock().insert(id)
        {
            return None;
        }
        Some(Self { pid, id })
    }
}

impl Drop for WriterEntry {
    fn drop(&mut self) {
        // In a forked child it is the parent's, and the child may have one of its own by now.
        if let Some(id) = &self.id
            && self.pid == std::process::id()
        {
            Writers::of(self.pid).files.lock().remove(id);
        }
    }
}

/// The process that locks, handles and pins belong to: a forked child has copies of all, and owns none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    #[cfg(unix)]
    pid: u32,
    /// Forks on the way to this process; none where they cannot be counted.
    #[cfg(unix)]
    forks: Option<u32>,
}

#[cfg(unix)]
impl Owner {
    /// The process that runs this.
    pub(crate) fn here() -> Self {
        Self {
            forks: forks::counted(),
            pid: std::process::id(),
        }
    }

    /// This runs in that process. Every read asks, so the system is asked only where forks are not counted; a child made
    /// past the C library's `fork` is taken for its parent.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        match self.forks {
            Some(forks) => forks::counted() == Some(forks),
            None => self.is_here_for_sure(),
        }
    }

    /// The same, asked of the system: for what is written or locked.
    pub(crate) fn is_here_for_sure(&self) -> bool {
        self.pid == std::process::id()
    }
}

/// Nothing forks here.
#[cfg(not(unix))]
impl Owner {
    pub(crate) fn here() -> Self {
        Self {}
    }

    pub(crate) fn is_here(&self) -> bool {
        true
    }

    pub(crate) fn is_here_for_sure(&self) -> bool {
        true
    }
}

#[cfg(unix)]
mod forks {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static FORKS: AtomicU32 = AtomicU32::new(0);
    static IS_COUNTING: LazyLock<bool> = LazyLock::new(count);

    extern "C" fn count_one() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    #[expect(unsafe_code, reason = "the call is not in the standard library")]
    fn count() -> bool {
        // SAFETY: the function lives as long as the program, and does nothing but add to an atomic number, which a child
        // may do whatever the other threads of its parent held.
        unsafe { libc::pthread_atfork(None, None, Some(count_one)) == 0 }
    }

    /// Forks since the first call, on the way to this process; none where they cannot be counted.
    #[inline]
    pub(super) fn counted() -> Option<u32> {
        IS_COUNTING.then(|| FORKS.load(Ordering::Relaxed))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use ofd::{conflict, is_remote, try_lock, unlock, unlock_all};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod ofd {
    use std::fs::File;
    use std::io;
    use std::ops::Range;
    use std::os::fd::AsRawFd;

    use super::{LockMode, WRITER};

    pub(in crate::store) fn try_lock(file: &File, byte: u64, mode: LockMode) -> io::Result<bool> {
        match call(file, libc::F_OFD_SETLK, kind(mode), byte, 1) {
            Ok(_) => Ok(true),
            Err(e) => match e.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => Ok(false),
                _ => Err(unsupported(e)),
            },
        }
    }

    pub(in crate::store) fn unlock(file: &File, byte: u64) -> io::Result<()> {
        call(file, libc::F_OFD_SETLK, libc::F_UNLCK, byte, 1).map(|_| ())
    }

    /// Lets every lock of the handle go, for all copies of it.
    pub(in crate::store) fn unlock_all(file: &File) -> io::Result<()> {
        // A length of zero reaches to the end of all files.
        call(file, libc::F_OFD_SETLK, libc::F_UNLCK, WRITER, 0).map(|_| ())
    }

    pub(in crate::store) fn conflict(
        file: &File,
        bytes: Range<u64>,
        mode: LockMode,
    ) -> io::Result<Option<u64>> {
        let len = bytes.end.saturating_sub(bytes.start);
        if len == 0 {
            return Ok(None);
        }
        let found =
            call(file, libc::F_OFD_GETLK, kind(mode), bytes.start, len).map_err(unsupported)?;
        if i32::from(found.l_type) == libc::F_UNLCK {
            return Ok(None);
        }
        let start = u64::try_from(found.l_start).unwrap_or(0);
        Ok(Some(start.max(bytes.start)))
    }

    fn kind(mode: LockMode) -> i32 {
        match mode {
            LockMode::Shared => libc::F_RDLCK,
            LockMode::Exclusive => libc::F_WRLCK,
        }
    }

    /// File systems without locks say so in several ways; callers need one.
    fn unsupported(e: io::Error) -> io::Error {
        match e.raw_os_error() {
            Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                io::Error::new(io::ErrorKind::Unsupported, e)
            }
            _ => e,
        }
    }

    #[expect(
        unsafe_code,
        reason = "no safe wrapper of open-file-description locks is among the dependencies"
    )]
    fn call(file: &File, command: i32, kind: i32, start: u64, len: u64) -> io::Result<libc::flock> {
        let range = |v: u64| {
            libc::off_t::try_from(v).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))
        };
        // SAFETY: the type is a plain C structure of integers, for which zeros are a value.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::c_short::try_from(kind).unwrap_or(0);
        lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or(0);
        lock.l_start = range(start)?;
        lock.l_len = range(len)?;
        // SAFETY: the descriptor is open as long as `file` lives, and `lock` is a valid structure of the type that these
        // commands take, which outlives the call.
        let code = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        if code == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(lock)
    }

    /// True on file systems over a network, or served by a program: their maps may raise signals at any time.
    #[expect(
        unsafe_code,
        reason = "no safe wrapper of `fstatfs` is among the dependencies"
    )]
    pub(in crate::store) fn is_remote(file: &File) -> bool {
        // NFS, SMB (three numbers), FUSE, 9P, Ceph, AFS, Coda, Lustre, GPFS.
        const REMOTE: [i64; 11] = [
            0x6969,
            0x517B,
            0xFF53_4D42,
            0xFE53_4D42,
            0x6573_5546,
            0x0102_1997,
            0x00C3_6400,
            0x5346_414F,
            0x7375_7245,
            0x0BD0_0BD0,
            0x4750_4653,
        ];
        // SAFETY: the type is a plain C structure of integers, for which zeros are a value.
        let mut found: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open as long as `file` lives, and `found` outlives the call.
        let code = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) };
        #[expect(
            clippy::useless_conversion,
            reason = "the field's width differs by target"
        )]
        let kind = i64::from(found.f_type);
        code == 0 && REMOTE.contains(&(kind & 0xFFFF_FFFF))
    }
}

#[cfg(windows)]
pub(super) use windows::{conflict, try_lock, unlock, unlock_all};

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::ops::Range;
    use std::os::windows::io::AsRawHandle;

    use super::LockMode;

    const FAIL_IMMEDIATELY: u32 = 1;
    const EXCLUSIVE: u32 = 2;
    const ERROR_LOCK_VIOLATION: i32 = 33;
    const ERROR_IO_PENDING: i32 = 997;
    const ERROR_NOT_SUPPORTED: i32 = 50;
    const ERROR_INVALID_FUNCTION: i32 = 1;

    #[repr(C)]
    struct Overlapped {
        internal: usize,
        internal_high: usize,
        offset: u32,
        offset_high: u32,
        event: *mut c_void,
    }

    #[link(name = "kernel32")]
    #[expect(
        unsafe_code,
        reason = "no safe wrapper of range locks is among the dependencies"
    )]
    // SAFETY: the types of arguments and results are those that the system documents for these two functions.
    unsafe extern "system" {
        fn LockFileEx(
            file: *mut c_void,
            flags: u32,
            reserved: u32,
            len: u32,
            len_high: u32,
            at: *mut Overlapped,
        ) -> i32;
        fn UnlockFileEx(
            file: *mut c_void,
            reserved: u32,
            len: u32,
            len_high: u32,
            at: *mut Overlapped,
        ) -> i32;
    }

    fn at(byte: u64) -> Overlapped {
        Overlapped {
            internal: 0,
            internal_high: 0,
            offset: u32::try_from(byte & 0xFFFF_FFFF).unwrap_or(0),
            offset_high: u32::try_from(byte >> 32).unwrap_or(0),
            event: std::ptr::null_mut(),
        }
    }

    #[expect(unsafe_code, reason = "see the block's SAFETY")]
    pub(in crate::store) fn try_lock(file: &File, byte: u64, mode: LockMode) -> io::Result<bool> {
        let flags = FAIL_IMMEDIATELY
            | match mode {
                LockMode::Shared => 0,
                LockMode::Exclusive => EXCLUSIVE,
            };
        let mut at = at(byte);
        // SAFETY: the handle is open as long as `file` lives; `at` outlives the call, which does not wait.
        let done = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) };
        if done != 0 {
            return Ok(true);
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Ok(false),
            Some(ERROR_NOT_SUPPORTED | ERROR_INVALID_FUNCTION) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, e))
            }
            _ => Err(e),
        }
    }

    #[expect(unsafe_code, reason = "see the block's SAFETY")]
    pub(in crate::store) fn unlock(file: &File, byte: u64) -> io::Result<()> {
        let mut at = at(byte);
        // SAFETY: the handle is open as long as `file` lives; `at` outlives the call.
        let done = unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut at) };
        if done == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Handles are not shared with children here: closing lets the locks go.
    #[expect(clippy::unnecessary_wraps, reason = "other platforms can fail")]
    pub(in crate::store) fn unlock_all(_: &File) -> io::Result<()> {
        Ok(())
    }

    /// Windows cannot be asked; a lock is tried and let go. A range cannot be searched so: only one byte is answered.
    pub(in crate::store) fn conflict(
        file: &File,
        bytes: Range<u64>,
        mode: LockMode,
    ) -> io::Result<Option<u64>> {
        if bytes.end.saturating_sub(bytes.start) != 1 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if try_lock(file, bytes.start, mode)? {
            unlock(file, bytes.start)?;
            return Ok(None);
        }
        Ok(Some(bytes.start))
    }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) use whole::{conflict, is_remote, try_lock, unlock, unlock_all};

/// Where range locks by handle do not exist: the lock of the whole file stands for the writer's byte, and no other byte
/// can be locked.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod whole {
    use std::fs::{File, TryLockError};
    use std::io;
    use std::ops::Range;

    use super::{LockMode, WRITER};

    pub(in crate::store) fn try_lock(file: &File, byte: u64, mode: LockMode) -> io::Result<bool> {
        if byte != WRITER {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let tried = match mode {
            LockMode::Shared => file.try_lock_shared(),
            LockMode::Exclusive => file.try_lock(),
        };
        match tried {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    pub(in crate::store) fn unlock(file: &File, byte: u64) -> io::Result<()> {
        if byte == WRITER {
            file.unlock()
        } else {
            Ok(())
        }
    }

    pub(in crate::store) fn unlock_all(file: &File) -> io::Result<()> {
        file.unlock()
    }

    /// Not answered: probing would take the lock, and a handle that holds it would lose it.
    pub(in crate::store) fn conflict(
        _: &File,
        _: Range<u64>,
        _: LockMode,
    ) -> io::Result<Option<u64>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in crate::store) fn is_remote(_: &File) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[expect(unsafe_code, reason = "fork is not in the standard library")]
    #[test]
    fn a_forked_child_owns_nothing_of_its_parents() {
        let owner = Owner::here();
        assert!(owner.is_here() && owner.is_here_for_sure());
        // SAFETY: the child only reads two numbers and leaves at once.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            let code = i32::from(owner.is_here()) + 2 * i32::from(owner.is_here_for_sure());
            // SAFETY: ends the child without running what belongs to its parent.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` lives through the call.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        assert!(libc::WIFEXITED(status));
        assert_eq!(
            libc::WEXITSTATUS(status),
            0,
            "1: by the count, 2: by the id"
        );
        assert!(owner.is_here() && owner.is_here_for_sure());
    }

    #[test]
    fn one_writer_entry_a_file() {
        let id = Some(FileId {
            device: u64::MAX,
            inode: 7,
        });
        let first = WriterEntry::new(id);
        assert!(first.is_some() && WriterEntry::new(id).is_none());
        drop(first);
        assert!(WriterEntry::new(id).is_some());
        assert!(WriterEntry::new(None).is_some());
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_lock_refuses_a_second_handle_of_the_same_process_and_goes_with_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let open = || {
            let mut o = std::fs::OpenOptions::new();
            o.read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .unwrap()
        };
        let (a, b) = (open(), open());
        assert!(try_lock(&a, WRITER, LockMode::Exclusive).unwrap());
        assert!(!try_lock(&b, WRITER, LockMode::Exclusive).unwrap());
        assert!(try_lock(&b, PRESENT, LockMode::Shared).unwrap());
        assert_eq!(
            conflict(&b, WRITER..WRITER + 1, LockMode::Shared).unwrap(),
            Some(WRITER)
        );
        assert_eq!(
            conflict(&a, WRITER..WRITER + 1, LockMode::Shared).unwrap(),
            None
        );
        let reader = std::fs::File::open(&path).unwrap();
        assert_eq!(
            conflict(&reader, WRITER..WRITER + 1, LockMode::Shared).unwrap(),
            Some(WRITER)
        );
        // An unrelated handle that is closed takes nothing away.
        drop(open());
        assert!(!try_lock(&b, WRITER, LockMode::Exclusive).unwrap());
        drop(a);
        assert!(try_lock(&b, WRITER, LockMode::Exclusive).unwrap());
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn the_oldest_pin_is_found_by_narrowing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, []).unwrap();
        let open = || std::fs::File::open(&path).unwrap();
        let (a, b, probe) = (open(), open(), open());
        assert!(try_lock(&a, PINS + 9, LockMode::Shared).unwrap());
        assert!(try_lock(&b, PINS + 5, LockMode::Shared).unwrap());
        let mut end = PINS + 1000;
        let mut oldest = None;
        while let Some(x) = conflict(&probe, PINS..end, LockMode::Exclusive).unwrap() {
            (oldest, end) = (Some(x - PINS), x);
        }
        assert_eq!(oldest, Some(5));
        let _ = INTENT;
    }
}
