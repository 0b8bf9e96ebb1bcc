//! A container in memory.
//!
//! Holds [`Memory`], a growing byte vector behind a lock. Must not touch the file system.

use std::io;

use parking_lot::RwLock;

use super::Storage;

/// Bytes in memory that behave like a file: writes past the end grow it, and gaps read as zeros.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: RwLock<Vec<u8>>,
}

impl Memory {
    /// A medium that holds `bytes`.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            bytes: RwLock::new(bytes),
        }
    }

    /// A copy of all bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }
}

/// A position in a byte vector; none where this machine cannot address it.
fn position(offset: u64, len: usize) -> io::Result<(usize, usize)> {
    let start = usize::try_from(offset).ok();
    let end = start.and_then(|s| s.checked_add(len));
    match (start, end) {
        (Some(start), Some(end)) => Ok((start, end)),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

impl Storage for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let (start, end) = position(offset, buf.len())?;
        let bytes = self.bytes.read();
        let from = bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(from);
        Ok(())
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (start, end) = position(offset, bytes.len())?;
        let mut all = self.bytes.write();
        if all.len() < end {
            let more = end.saturating_sub(all.len());
            all.try_reserve(more)
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            all.resize(end, 0);
        }
        all.get_mut(start..end)
            .ok_or(io::ErrorKind::FileTooLarge)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Memory has no calls to save.
    fn fetch_gap(&self) -> Option<u64> {
        Some(0)
    }

    fn is_shared(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_past_the_end_grow_it_and_the_gap_reads_as_zeros() {
        let m = Memory::default();
        m.write_all_at(4, &[7, 8]).unwrap();
        assert_eq!(m.len().unwrap(), 6);
        let mut buf = [9; 6];
        m.read_exact_at(0, &mut buf).unwrap();
        assert_eq!(buf, [0, 0, 0, 0, 7, 8]);
    }

    #[test]
    fn reading_past_the_end_is_an_error() {
        let m = Memory::from_bytes(vec![1, 2, 3]);
        let e = m.read_exact_at(2, &mut [0; 2]).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
        assert!(m.read_exact_at(u64::MAX, &mut [0; 2]).is_err());
    }
}
