//! The one error type of the library.
//!
//! Holds [`Error`], [`ErrorKind`] and the details an error carries: what, where, expected, found, what to do.
//! Must not do I/O, and must not know any structure of the file.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, split by who has to act.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file is not an orthant container (the message says what it looks like).
    NotContainer,
    /// Bytes of the container are damaged or break a rule of the format.
    Corrupt,
    /// The container, or one object in it, needs a newer or differently built library.
    Unsupported,
    /// No object, attribute or snapshot of that name.
    NotFound,
    /// An object, attribute, snapshot or file of that name is already there.
    AlreadyExists,
    /// An argument breaks a stated rule.
    InvalidArgument,
    /// A coordinate or region lies outside the array's domain.
    OutOfDomain,
    /// The element type, the rank or the kind of object asked for is not the stored one.
    TypeMismatch,
    /// A limit of [`crate::Limits`] or of the format would be passed.
    LimitExceeded,
    /// The container would grow past its configured size.
    FileFull,
    /// Another writer holds the container, or a writer is in the middle of a commit: try again.
    Busy,
    /// The file system gives no locks, so writing is refused unless asked for explicitly; or the handle's locks are those of
    /// the process that opened it, and this is a forked child.
    LockUnavailable,
    /// The snapshot's space may have been reused.
    SnapshotExpired,
    /// The snapshot is pinned by a reader.
    SnapshotInUse,
    /// The path now names another file than the open handle.
    Replaced,
    /// A failed sync or slot write has poisoned this writer.
    Poisoned,
    /// The handle cannot write.
    ReadOnly,
    /// The operating system refused.
    Io,
}

impl ErrorKind {
    /// The kind in `snake_case`, as scripts see it in the command's JSON errors.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotContainer => "not_container",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::InvalidArgument => "invalid_argument",
            Self::OutOfDomain => "out_of_domain",
            Self::TypeMismatch => "type_mismatch",
            Self::LimitExceeded => "limit_exceeded",
            Self::FileFull => "file_full",
            Self::Busy => "busy",
            Self::LockUnavailable => "lock_unavailable",
            Self::SnapshotExpired => "snapshot_expired",
            Self::SnapshotInUse => "snapshot_in_use",
            Self::Replaced => "replaced",
            Self::Poisoned => "poisoned",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
        }
    }
}

/// Everything an error can say about the place and the remedy. Boxed, so that [`Error`] stays small.
#[derive(Debug, Default, Clone)]
pub struct Detail {
    what: Cow<'static, str>,
    reason: Option<&'static str>,
    file: Option<PathBuf>,
    array: Option<String>,
    chunk: Option<Vec<i64>>,
    inner: Option<Vec<u64>>,
    offset: Option<u64>,
    len: Option<u64>,
    expected: Option<String>,
    found: Option<String>,
    help: Option<Cow<'static, str>>,
}

/// The error of every fallible call: a kind, a sentence, and typed details.
///
/// Build one with the constructor of its kind and add details: `Error::corrupt("node").at(8192).expected("level 0")`.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// See [`ErrorKind::NotContainer`].
    NotContainer(Box<Detail>),
    /// See [`ErrorKind::Corrupt`].
    Corrupt(Box<Detail>),
    /// See [`ErrorKind::Unsupported`].
    Unsupported(Box<Detail>),
    /// See [`ErrorKind::NotFound`].
    NotFound(Box<Detail>),
    /// See [`ErrorKind::AlreadyExists`].
    AlreadyExists(Box<Detail>),
    /// See [`ErrorKind::InvalidArgument`].
    InvalidArgument(Box<Detail>),
    /// See [`ErrorKind::OutOfDomain`].
    OutOfDomain(Box<Detail>),
    /// See [`ErrorKind::TypeMismatch`].
    TypeMismatch(Box<Detail>),
    /// See [`ErrorKind::LimitExceeded`].
    LimitExceeded(Box<Detail>),
    /// See [`ErrorKind::FileFull`].
    FileFull(Box<Detail>),
    /// See [`ErrorKind::Busy`].
    Busy(Box<Detail>),
    /// See [`ErrorKind::LockUnavailable`].
    LockUnavailable(Box<Detail>),
    /// See [`ErrorKind::SnapshotExpired`].
    SnapshotExpired(Box<Detail>),
    /// See [`ErrorKind::SnapshotInUse`].
    SnapshotInUse(Box<Detail>),
    /// See [`ErrorKind::Replaced`].
    Replaced(Box<Detail>),
    /// See [`ErrorKind::Poisoned`]. The commit after `last_acknowledged` may or may not be on disk.
    #[non_exhaustive]
    Poisoned {
        /// The newest generation whose commit returned.
        last_acknowledged: u64,
        /// Place and cause.
        detail: Box<Detail>,
    },
    /// See [`ErrorKind::ReadOnly`].
    ReadOnly(Box<Detail>),
    /// See [`ErrorKind::Io`].
    #[non_exhaustive]
    Io {
        /// What was tried, and on what.
        detail: Box<Detail>,
        /// The system's own error.
        source: io::Error,
    },
}

macro_rules! constructors {
    ($($name:ident => $variant:ident),* $(,)?) => {
        $(
            #[doc = concat!("An error of kind [`ErrorKind::", stringify!($variant), "`] about `what`.")]
            pub(crate) fn $name(what: impl Into<Cow<'static, str>>) -> Self {
                Self::$variant(Detail::about(what))
            }
        )*
    };
}

impl Error {
    constructors! {
        not_container => NotContainer, corrupt => Corrupt, unsupported => Unsupported, not_found => NotFound,
        already_exists => AlreadyExists, invalid => InvalidArgument, out_of_domain => OutOfDomain,
        type_mismatch => TypeMismatch, limit => LimitExceeded, busy => Busy,
        lock_unavailable => LockUnavailable, file_full => FileFull,
        snapshot_expired => SnapshotExpired, snapshot_in_use => SnapshotInUse, replaced => Replaced, read_only => ReadOnly,
    }

    /// The system refused `what` (a sentence's subject such as "cannot read the superblock").
    pub(crate) fn io(what: impl Into<Cow<'static, str>>, source: io::Error) -> Self {
        Self::Io {
            detail: Detail::about(what),
            source,
        }
    }

    /// A writer that must not go on: the generation after `last_acknowledged` is of unknown outcome.
    pub(crate) fn poisoned(what: impl Into<Cow<'static, str>>, last_acknowledged: u64) -> Self {
        Self::Poisoned {
            last_acknowledged,
            detail: Detail::about(what),
        }
    }

    /// The same fault where the argument came from a file: a broken rule is damage, not a caller's mistake.
    pub(crate) fn into_corrupt(self) -> Self {
        match self {
            Self::InvalidArgument(d) | Self::OutOfDomain(d) | Self::TypeMismatch(d) => {
                Self::Corrupt(d)
            }
            other => other,
        }
    }

    /// The same error once more, for a fault that was found early and is told late; the system's own part is kept in words.
    pub(crate) fn duplicate(&self) -> Self {
        let detail = Box::new(self.detail().clone());
        match self {
            Self::NotContainer(_) => Self::NotContainer(detail),
            Self::Corrupt(_) => Self::Corrupt(detail),
            Self::Unsupported(_) => Self::Unsupported(detail),
            Self::NotFound(_) => Self::NotFound(detail),
            Self::AlreadyExists(_) => Self::AlreadyExists(detail),
            Self::InvalidArgument(_) => Self::InvalidArgument(detail),
            Self::OutOfDomain(_) => Self::OutOfDomain(detail),
            Self::TypeMismatch(_) => Self::TypeMismatch(detail),
            Self::LimitExceeded(_) => Self::LimitExceeded(detail),
            Self::FileFull(_) => Self::FileFull(detail),
            Self::Busy(_) => Self::Busy(detail),
            Self::LockUnavailable(_) => Self::LockUnavailable(detail),
            Self::SnapshotExpired(_) => Self::SnapshotExpired(detail),
            Self::SnapshotInUse(_) => Self::SnapshotInUse(detail),
            Self::Replaced(_) => Self::Replaced(detail),
            Self::ReadOnly(_) => Self::ReadOnly(detail),
            Self::Poisoned {
                last_acknowledged, ..
            } => Self::Poisoned {
                last_acknowledged: *last_acknowledged,
                detail,
            },
            Self::Io { source, .. } => Self::Io {
                detail,
                source: io::Error::new(source.kind(), source.to_string()),
            },
        }
    }

    /// Adds the absolute byte offset in the file.
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.detail_mut().offset = Some(offset);
        self
    }

    /// Adds the byte offset unless one is known already (the innermost place is the best one).
    pub(crate) fn at_or(mut self, offset: u64) -> Self {
        self.detail_mut().offset.get_or_insert(offset);
        self
    }

    /// Adds the length in bytes of the structure at the offset.
    pub(crate) fn spanning(mut self, len: u64) -> Self {
        self.detail_mut().len = Some(len);
        self
    }

    /// Adds what the rule asks for.
    pub(crate) fn expected(mut self, expected: impl fmt::Display) -> Self {
        self.detail_mut().expected = Some(expected.to_string());
        self
    }

    /// Adds what was there instead.
    pub(crate) fn found(mut self, found: impl fmt::Display) -> Self {
        self.detail_mut().found = Some(found.to_string());
        self
    }

    /// Adds what the caller can do about it.
    pub(crate) fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.detail_mut().help = Some(help.into());
        self
    }

    /// Adds a stable word for programs that tell apart errors of one kind (`rank`, `reversed`, `index_limit`, ...).
    pub(crate) fn reason(mut self, reason: &'static str) -> Self {
        self.detail_mut().reason = Some(reason);
        self
    }

    /// Adds the path of the object concerned, unless one is known already.
    pub(crate) fn in_object(mut self, path: &str) -> Self {
        self.detail_mut()
            .array
            .get_or_insert_with(|| path.to_owned());
        self
    }

    /// Adds the chunk coordinate concerned, unless one is known already.
    pub(crate) fn in_chunk(mut self, chunk: &[i64]) -> Self {
        self.detail_mut()
            .chunk
            .get_or_insert_with(|| chunk.to_vec());
        self
    }

    /// Adds the position of the inner chunk in its shard.
    pub(crate) fn in_inner(mut self, inner: &[u64]) -> Self {
        self.detail_mut()
            .inner
            .get_or_insert_with(|| inner.to_vec());
        self
    }

    /// Adds the container's path, unless one is known already.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.detail_mut()
            .file
            .get_or_insert_with(|| path.to_owned());
        self
    }

    /// Who has to act.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotContainer(_) => ErrorKind::NotContainer,
            Self::Corrupt(_) => ErrorKind::Corrupt,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::AlreadyExists(_) => ErrorKind::AlreadyExists,
            Self::InvalidArgument(_) => ErrorKind::InvalidArgument,
            Self::OutOfDomain(_) => ErrorKind::OutOfDomain,
            Self::TypeMismatch(_) => ErrorKind::TypeMismatch,
            Self::LimitExceeded(_) => ErrorKind::LimitExceeded,
            Self::FileFull(_) => ErrorKind::FileFull,
            Self::Busy(_) => ErrorKind::Busy,
            Self::LockUnavailable(_) => ErrorKind::LockUnavailable,
            Self::SnapshotExpired(_) => ErrorKind::SnapshotExpired,
            Self::SnapshotInUse(_) => ErrorKind::SnapshotInUse,
            Self::Replaced(_) => ErrorKind::Replaced,
            Self::Poisoned { .. } => ErrorKind::Poisoned,
            Self::ReadOnly(_) => ErrorKind::ReadOnly,
            Self::Io { .. } => ErrorKind::Io,
        }
    }

    /// True when the bytes of the container are at fault.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupt(_))
    }

    /// True when the same call may succeed later without any other action.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy(_) | Self::SnapshotExpired(_) | Self::SnapshotInUse(_) => true,
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ),
            _ => false,
        }
    }

    /// The structure or argument concerned.
    pub fn what(&self) -> &str {
        &self.detail().what
    }

    /// A stable word that tells apart errors of one kind: `rank`, `reversed`, `index_limit`, `syntax`, ...
    pub fn reason_code(&self) -> Option<&'static str> {
        self.detail().reason
    }

    /// The container's path.
    pub fn file(&self) -> Option<&Path> {
        self.detail().file.as_deref()
    }

    /// The path of the object concerned.
    pub fn array(&self) -> Option<&str> {
        self.detail().array.as_deref()
    }

    /// The chunk coordinate concerned.
    pub fn chunk(&self) -> Option<&[i64]> {
        self.detail().chunk.as_deref()
    }

    /// The position of the inner chunk within its shard.
    pub fn inner_chunk(&self) -> Option<&[u64]> {
        self.detail().inner.as_deref()
    }

    /// The absolute byte offset in the file.
    pub fn offset(&self) -> Option<u64> {
        self.detail().offset
    }

    /// The length in bytes of the structure at [`Error::offset`].
    pub fn byte_len(&self) -> Option<u64> {
        self.detail().len
    }

    /// What the rule asks for.
    pub fn expected_value(&self) -> Option<&str> {
        self.detail().expected.as_deref()
    }

    /// What was there instead.
    pub fn found_value(&self) -> Option<&str> {
        self.detail().found.as_deref()
    }

    /// What the caller can do.
    pub fn help_text(&self) -> Option<&str> {
        self.detail().help.as_deref()
    }

    fn detail(&self) -> &Detail {
        match self {
            Self::NotContainer(d)
            | Self::Corrupt(d)
            | Self::Unsupported(d)
            | Self::NotFound(d)
            | Self::AlreadyExists(d)
            | Self::InvalidArgument(d)
            | Self::OutOfDomain(d)
            | Self::TypeMismatch(d)
            | Self::LimitExceeded(d)
            | Self::FileFull(d)
            | Self::Busy(d)
            | Self::LockUnavailable(d)
            | Self::SnapshotExpired(d)
            | Self::SnapshotInUse(d)
            | Self::Replaced(d)
            | Self::ReadOnly(d)
            | Self::Poisoned { detail: d, .. }
            | Self::Io { detail: d, .. } => d,
        }
    }

    fn detail_mut(&mut self) -> &mut Detail {
        match self {
            Self::NotContainer(d)
            | Self::Corrupt(d)
            | Self::Unsupported(d)
            | Self::NotFound(d)
            | Self::AlreadyExists(d)
            | Self::InvalidArgument(d)
            | Self::OutOfDomain(d)
            | Self::TypeMismatch(d)
            | Self::LimitExceeded(d)
            | Self::FileFull(d)
            | Self::Busy(d)
            | Self::LockUnavailable(d)
            | Self::SnapshotExpired(d)
            | Self::SnapshotInUse(d)
            | Self::Replaced(d)
            | Self::ReadOnly(d)
            | Self::Poisoned { detail: d, .. }
            | Self::Io { detail: d, .. } => d,
        }
    }

    fn lead(&self) -> &'static str {
        match self.kind() {
            ErrorKind::NotContainer => "not an orthant container: ",
            ErrorKind::Corrupt => "corrupt ",
            ErrorKind::Unsupported => "unsupported ",
            ErrorKind::NotFound => "not found: ",
            ErrorKind::AlreadyExists => "already exists: ",
            ErrorKind::LimitExceeded => "limit exceeded: ",
            ErrorKind::Busy => "busy: ",
            ErrorKind::Poisoned => "writer poisoned: ",
            _ => "",
        }
    }
}

impl Detail {
    fn about(what: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self {
            what: what.into(),
            ..Self::default()
        })
    }

    /// `ocean.orth:/model/temp chunk (-2, 0, 3) inner (0, 1): `, as far as known.
    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
        }
        if let Some(array) = &self.array {
            let slash = if array.starts_with('/') { "" } else { "/" };
            let colon = if self.file.is_some() { ":" } else { "" };
            write!(f, "{colon}{slash}{array}")?;
        }
        if let Some(chunk) = &self.chunk {
            write!(f, " chunk {}", Tuple(chunk))?;
        }
        if let Some(inner) = &self.inner {
            write!(f, " inner chunk {}", Tuple(inner))?;
        }
        if self.file.is_some() || self.array.is_some() || self.chunk.is_some() {
            f.write_str(": ")?;
        }
        Ok(())
    }
}

struct Tuple<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, x) in self.0.iter().enumerate() {
            write!(f, "{}{x}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = self.detail();
        d.write_place(f)?;
        write!(f, "{}{}", self.lead(), d.what)?;
        if let Some(offset) = d.offset {
            write!(f, " at byte {offset}")?;
        }
        if let Some(len) = d.len {
            write!(f, " (+{len})")?;
        }
        match (&d.expected, &d.found) {
            (Some(e), Some(n)) => write!(f, ": expected {e}, found {n}")?,
            (Some(e), None) => write!(f, ": expected {e}")?,
            (None, Some(n)) => write!(f, ": found {n}")?,
            (None, None) => {}
        }
        match self {
            Self::Io { source, .. } => write!(f, ": {source}")?,
            Self::Poisoned {
                last_acknowledged, ..
            } => write!(
                f,
                "; generation {last_acknowledged} is the last acknowledged, the outcome of the next is unknown"
            )?,
            _ => {}
        }
        if let Some(help) = &d.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_and_can_cross_threads() {
        fn check<T: Send + Sync + 'static>() {}
        check::<Error>();
        assert!(size_of::<Error>() <= 64);
    }

    #[test]
    fn the_sentence_says_where_what_expected_found_and_the_remedy() {
        let e = Error::corrupt("extent")
            .at(8192)
            .expected("an end by 1024")
            .found(1600)
            .help("run `orthant check`")
            .in_chunk(&[-2, 0, 3])
            .in_object("model/temp")
            .in_file(Path::new("ocean.orth"));
        assert_eq!(
            e.to_string(),
            "ocean.orth:/model/temp chunk (-2, 0, 3): corrupt extent at byte 8192: \
             expected an end by 1024, found 1600; run `orthant check`"
        );
        assert!(e.is_corruption());
    }
}
