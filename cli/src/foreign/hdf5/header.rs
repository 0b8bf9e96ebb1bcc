//! Object headers, versions 1 and 2: the messages of one object. After the "HDF5 File Format Specification", IV.A.
//!
//! Holds [`Header`]. Messages are kept as bytes, so that one that cannot be read costs what needs it and no more. Must not
//! know what a message says, but where the rest of the header is and where a shared message is.

use std::collections::HashSet;

use hdf5_reader::checksum::jenkins_lookup3;

use super::file::File;
use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

/// Most bytes of one header, all its pieces together.
const HEADER_LEN_MAX: usize = 16 << 20;
/// Most pieces of one header.
const PIECES_MAX: usize = 1024;

const CONTINUATION: u16 = 0x10;
/// The body says where the message is.
const SHARED: u8 = 0x02;

/// One message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: u16,
    pub(super) shared: bool,
    pub(super) body: Vec<u8>,
}

/// The messages of one object.
#[derive(Debug)]
pub(super) struct Header {
    messages: Vec<Message>,
}

impl Header {
    pub(super) fn read(file: &File, address: u64) -> Result<Self, Refusal> {
        let mut pieces = Pieces {
            file,
            messages: Vec::new(),
            more: Vec::new(),
            left: HEADER_LEN_MAX,
            flags: 0,
        };
        let new = file.read(address, 4)? == b"OHDR";
        if new {
            pieces.first_new(address)?;
        } else {
            pieces.first_old(address)?;
        }
        let mut seen = HashSet::from([address]);
        while let Some((address, len)) = pieces.more.pop() {
            if !seen.insert(address) || seen.len() > PIECES_MAX {
                return Err("an object header that goes on without an end".to_owned());
            }
            if new {
                pieces.next_new(address, len)?;
            } else {
                let bytes = pieces.take(address, len)?;
                pieces.old(&bytes)?;
            }
        }
        Ok(Self {
            messages: pieces.messages,
        })
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.messages.iter().any(|m| m.kind == kind)
    }

    /// The messages of a kind, as they stand.
    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |m| m.kind == kind)
    }

    /// The first message of a kind, wherever it is stored.
    pub(super) fn first(&self, file: &File, kind: u16) -> Result<Option<Vec<u8>>, Refusal> {
        match self.all(kind).next() {
            Some(message) if message.shared => shared(file, &message.body, kind).map(Some),
            Some(message) => Ok(Some(message.body.clone())),
            None => Ok(None),
        }
    }
}

/// A message that another object holds: a committed type, mostly.
pub(super) fn shared(file: &File, body: &[u8], kind: u16) -> Result<Vec<u8>, Refusal> {
    let mut cursor = Cursor::little(body);
    let version = cursor.u8()?;
    let place = cursor.u8()?;
    match (version, place) {
        (1, _) => cursor.skip(6)?,
        (2, _) | (3, 2 | 3) => {}
        (3, _) => return Err("a message in the heap of shared messages".to_owned()),
        _ => return Err(format!("a shared message of version {version}")),
    }
    let address = file.address(&mut cursor)?.ok_or("a message of nowhere")?;
    let header = Header::read(file, address)?;
    let found = header.all(kind).find(|m| !m.shared);
    let found = found.ok_or("a shared message that is not where it should be")?;
    Ok(found.body.clone())
}

struct Pieces<'a> {
    file: &'a File,
    messages: Vec<Message>,
    /// Address and length of what is still to be read.
    more: Vec<(u64, usize)>,
    /// Bytes that may still be read.
    left: usize,
    /// The flags of a version 2 header.
    flags: u8,
}

impl Pieces<'_> {
    fn take(&mut self, address: u64, len: usize) -> Result<Vec<u8>, Refusal> {
        let left = self.left.checked_sub(len);
        self.left =
            left.ok_or_else(|| format!("an object header of more than {HEADER_LEN_MAX} bytes"))?;
        self.file.read(address, len)
    }

    fn push(&mut self, kind: u16, flags: u8, body: &[u8]) -> Result<(), Refusal> {
        if kind == CONTINUATION {
            let mut cursor = Cursor::little(body);
            let address = self.file.address(&mut cursor)?;
            let len = usize::try_from(self.file.length(&mut cursor)?).unwrap_or(usize::MAX);
            if let Some(address) = address {
                self.more.push((address, len));
            }
            return Ok(());
        }
        if kind != 0 {
            self.messages.push(Message {
                kind,
                shared: flags & SHARED != 0,
                body: body.to_vec(),
            });
        }
        Ok(())
    }

    fn first_old(&mut self, address: u64) -> Result<(), Refusal> {
        let prefix = self.take(address, 16)?;
        let mut cursor = Cursor::little(&prefix);
        let version = cursor.u8()?;
        if version != 1 {
            return Err(format!("an object header of version {version}"));
        }
        cursor.skip(7)?;
        let len = cursor.count()?;
        let bytes = self.take(address.saturating_add(16), len)?;
        self.old(&bytes)
    }

    fn old(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let mut cursor = Cursor::little(bytes);
        while cursor.rest().len() >= 8 {
            let kind = cursor.u16()?;
            let len = usize::from(cursor.u16()?);
            let flags = cursor.u8()?;
            cursor.skip(3)?;
            let body = cursor.take(len)?;
            self.push(kind, flags, body)?;
        }
        Ok(())
    }

    fn first_new(&mut self, address: u64) -> Result<(), Refusal> {
        let prefix = self.file.read(address, 6)?;
        let flags = prefix.get(5).copied().unwrap_or_default();
        let version = prefix.get(4).copied().unwrap_or_default();
        if version != 2 {
            return Err(format!("an object header of version {version}"));
        }
        let optional = if flags & 0x20 == 0 { 0 } else { 16_usize }
            .saturating_add(if flags & 0x10 == 0 { 0 } else { 4 });
        let width = 1_usize << (flags & 3);
        let prefix_len = 6_usize.saturating_add(optional).saturating_add(width);
        let prefix = self.file.read(address, prefix_len)?;
        let mut cursor = Cursor::little(&prefix);
        cursor.skip(prefix_len.saturating_sub(width))?;
        let len = usize::try_from(cursor.uint(width)?).unwrap_or(usize::MAX);
        let whole = len.saturating_add(prefix_len).saturating_add(4);
        let bytes = self.take(address, whole)?;
        self.flags = flags;
        self.checked(&bytes, prefix_len)
    }

    fn next_new(&mut self, address: u64, len: usize) -> Result<(), Refusal> {
        let bytes = self.take(address, len)?;
        if !bytes.starts_with(b"OCHK") {
            return Err("an object header whose next piece is none".to_owned());
        }
        self.checked(&bytes, 4)
    }

    /// The messages between a prefix and the checksum.
    fn checked(&mut self, bytes: &[u8], prefix_len: usize) -> Result<(), Refusal> {
        let (body, sum) = bytes
            .split_last_chunk::<4>()
            .ok_or("a piece of an object header without a checksum")?;
        if jenkins_lookup3(body) != u32::from_le_bytes(*sum) {
            return Err("an object header whose checksum is wrong".to_owned());
        }
        let mut cursor = Cursor::little(body);
        cursor.skip(prefix_len)?;
        let ordered = self.flags & 0x04 != 0;
        // What is shorter than a message's own head is a gap.
        while cursor.rest().len() >= if ordered { 6 } else { 4 } {
            let kind = u16::from(cursor.u8()?);
            let len = usize::from(cursor.u16()?);
            let flags = cursor.u8()?;
            if ordered {
                cursor.skip(2)?;
            }
            let message = cursor.take(len)?;
            self.push(kind, flags, message)?;
        }
        Ok(())
    }
}
