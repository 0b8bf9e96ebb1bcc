//! Bytes that are put aside for the time of one call.
//!
//! Holds [`Scratch`]: a file of no name beside the container, or memory where the container is in memory. Nothing of it is
//! ever part of a container.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::extent::Extent;
use crate::store::Storage;

use super::payload;

/// A medium of one's own, filled from its start.
#[derive(Debug)]
pub(crate) struct Scratch {
    medium: Arc<dyn Storage>,
    end: u64,
}

impl Scratch {
    pub(super) fn new(medium: Arc<dyn Storage>) -> Self {
        Self { medium, end: 0 }
    }

    /// Puts bytes aside.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<Extent> {
        let extent = Extent {
            offset: self.end,
            len: bytes.len() as u64,
            crc: crate::bytes::crc32(bytes),
        };
        self.medium
            .write_all_at(self.end, bytes)
            .map_err(|e| Error::io("cannot write to a temporary file", e))?;
        self.end = self.end.saturating_add(extent.len);
        Ok(extent)
    }

    /// Bytes that were put aside, if they still are what they were.
    pub(crate) fn take(&self, extent: Extent) -> Result<Vec<u8>> {
        let (offset, len) = payload::locate(extent, &(0..extent.len))?;
        let bytes = payload::read_owned(self.medium.as_ref(), offset, len)?;
        if payload::verify(extent, &bytes).is_err() {
            return Err(Error::io(
                "a temporary file gave back other bytes than were written to it",
                std::io::ErrorKind::InvalidData.into(),
            ));
        }
        Ok(bytes.into_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;

    #[test]
    fn what_is_put_aside_comes_back_or_is_missed() {
        let memory = Arc::new(Memory::default());
        let mut scratch = Scratch::new(Arc::clone(&memory) as Arc<dyn Storage>);
        let (a, b) = (scratch.put(b"one").unwrap(), scratch.put(b"two").unwrap());
        assert_eq!(scratch.take(b).unwrap(), b"two");
        assert_eq!(scratch.take(a).unwrap(), b"one");
        memory.write_all_at(1, b"x").unwrap();
        assert!(!scratch.take(a).unwrap_err().is_corruption());
    }
}
