//! Time and chance.
//!
//! Holds the two things that make files differ from run to run, so that options can replace them. Must not be asked
//! elsewhere.

use crate::error::{Error, Result};

/// Nanoseconds since the Unix epoch; none where there is no clock.
pub(super) fn system_now() -> Option<i64> {
    #[cfg(any(unix, windows))]
    {
        let now = std::time::SystemTime::now();
        // A clock before 1970 counts as none: commits then count on from the time before.
        let since = now.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_nanos()).ok()
    }
    #[cfg(not(any(unix, windows)))]
    None
}

/// Sixteen random bytes.
///
/// # Errors
/// `Io` when the system gives none.
pub(super) fn random_id() -> Result<[u8; 16]> {
    #[cfg(any(unix, windows))]
    {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|e| {
            Error::io(
                "cannot get random bytes",
                std::io::Error::other(e.to_string()),
            )
        })?;
        Ok(id)
    }
    #[cfg(not(any(unix, windows)))]
    Err(Error::invalid("identity of a container")
        .expected("a given uuid and writer id, as this platform has no random numbers")
        .found("none"))
}

/// A random identity in the form of a version 4 UUID.
pub(super) fn random_uuid() -> Result<[u8; 16]> {
    let mut id = random_id()?;
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut id;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    Ok(id)
}
