//! Every parser of stored bytes behind one signature, for fuzz targets.
//!
//! Each function reads bytes as a stranger's file would hand them in and writes what it understood again; an error says
//! that they are refused. Must not judge: which [`Spelling`] may come out is for the caller to say.

use crate::bytes::{Reader, crc32c};
use crate::error::{Error, Result};
use crate::format::blob::Blob;
use crate::format::commit::CommitRecord;
use crate::format::document::Document;
use crate::format::header::Header;
use crate::format::history::HistoryRecord;
use crate::format::json::Json;
use crate::format::key::{self, Key};
use crate::format::name::ObjectPath;
use crate::format::node::Node;
use crate::format::pack::{self, Entries};
use crate::format::record::ChunkRecord;
use crate::format::slot::{Slot, SlotState, slot_index};
use crate::format::snapshot::SnapshotRecord;
use crate::format::typed::TypedArray;
use crate::limits::Limits;

/// What became of bytes that were read and written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// They came out as they went in.
    Same,
    /// They are another spelling of the same, which structures with one spelling must refuse.
    Other,
    /// Something that was read does not come back.
    Lost(&'static str),
}

impl Spelling {
    fn of(same: bool) -> Self {
        if same { Self::Same } else { Self::Other }
    }
}

/// A parser of this list.
pub type Parser = fn(&[u8]) -> Result<Spelling>;

/// Structures of fixed fields, by name: each has one spelling.
pub const RECORDS: [(&str, Parser); 8] = [
    ("blob", blob),
    ("chunk record", chunk_record),
    ("chunk key", chunk_key),
    ("header", header),
    ("slot", slot),
    ("commit record", commit_record),
    ("snapshot record", snapshot_record),
    ("history record", history_record),
];

/// Texts and typed values, which may be spelled in more than one way.
pub const METADATA: [(&str, Parser); 3] = [
    ("document", document),
    ("json", json),
    ("typed value", typed_value),
];

/// A node, its checksum made right; one spelling only. Every key is searched for, and each must be where it stands.
pub fn node(bytes: &[u8]) -> Result<Spelling> {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    super::fix_node(&mut bytes, 0, len);
    let node = Node::parse(bytes.clone().into(), 0x3000)?;
    let mut run = Entries::default();
    for i in 0..node.count() {
        let key = node.key(i);
        if node.search(&key) != Ok(i) {
            return Ok(Spelling::Lost("a key of a node"));
        }
        run.push(&[], &key, node.value(i));
    }
    let again = pack::encode(&run, 0..run.len(), node.level(), node.birth())?.0;
    Ok(Spelling::of(again == bytes))
}

/// A document of a group or an array.
pub fn document(bytes: &[u8]) -> Result<Spelling> {
    let limits = Limits::untrusted();
    let first = Document::parse(bytes, &limits)?;
    let text = first.to_text();
    if Document::parse(text.as_bytes(), &limits)? != first {
        return Ok(Spelling::Lost("a member of a document"));
    }
    Ok(Spelling::of(text.as_bytes() == bytes))
}

/// JSON text.
pub fn json(bytes: &[u8]) -> Result<Spelling> {
    let limits = Limits::untrusted();
    let first = Json::parse_stored(bytes, &limits)?;
    let text = first.to_string();
    if Json::parse_stored(text.as_bytes(), &limits)?.to_string() != text {
        return Ok(Spelling::Lost("a value of a text"));
    }
    Ok(Spelling::of(text.as_bytes() == bytes))
}

/// An attribute's typed value; one spelling but for the type's text.
pub fn typed_value(bytes: &[u8]) -> Result<Spelling> {
    let limits = Limits::untrusted();
    let first = TypedArray::decode(bytes, &limits)?;
    let again = first.encode()?;
    if TypedArray::decode(&again, &limits)? != first {
        return Ok(Spelling::Lost("an element of a typed value"));
    }
    Ok(Spelling::of(again == bytes))
}

/// A blob; one spelling.
pub fn blob(bytes: &[u8]) -> Result<Spelling> {
    Ok(Spelling::of(
        Blob::decode(bytes)?.encode()?.as_slice() == bytes,
    ))
}

/// A chunk's record; one spelling.
pub fn chunk_record(bytes: &[u8]) -> Result<Spelling> {
    let record = ChunkRecord::decode(bytes, 0, 1 << 62)?;
    Ok(Spelling::of(record.encode().as_slice() == bytes))
}

/// A chunk's key, its coordinates counted by the first byte; one spelling.
pub fn chunk_key(bytes: &[u8]) -> Result<Spelling> {
    let Some((&rank, bytes)) = bytes.split_first() else {
        return Err(Error::invalid("chunk key").expected("a rank before it"));
    };
    let order: Vec<u8> = (0..rank.rem_euclid(33)).collect();
    let mut coords = vec![0; order.len()];
    key::decode_chunk(bytes, order.len(), &order, &mut coords)?;
    let (id, _) = key::split_object(bytes)?;
    let again: Key = key::chunk(id, &coords, &order);
    Ok(Spelling::of(again.get(1..) == bytes.get(1..)))
}

/// A file's header, its checksum made right; one spelling.
pub fn header(bytes: &[u8]) -> Result<Spelling> {
    let mut bytes = bytes.to_vec();
    bytes.resize(4096, 0);
    super::fix(&mut bytes, 0, 252);
    let again = Header::decode(&bytes, 1 << 40)?.encode();
    // The rest of the block is nobody's.
    Ok(Spelling::of(bytes.get(..256) == again.get(..256)))
}

/// A slot, its checksum made right; one spelling.
pub fn slot(bytes: &[u8]) -> Result<Spelling> {
    let mut bytes = bytes.to_vec();
    bytes.resize(4096, 0);
    super::fix(&mut bytes, 0, 252);
    let mut r = Reader::new("slot", 0, &bytes);
    r.u64()?;
    let index = slot_index(r.u64()?);
    let bound = Reader::new("slot", 0, bytes.get(248..).unwrap_or(&[])).u32()?;
    match Slot::decode(&bytes, index, bound)? {
        SlotState::Valid(slot) => {
            // The minor version says who wrote, and changes nothing; features of later versions may use what is reserved.
            let again = slot.encode();
            let same = |range: std::ops::Range<usize>| again.get(range.clone()) == bytes.get(range);
            let end = if (slot.ro_compat, slot.compat) == (0, 0) {
                252
            } else {
                160
            };
            Ok(Spelling::of(same(0..138) && same(140..end)))
        }
        SlotState::Invalid => Ok(Spelling::Lost("a checksum")),
    }
}

/// A commit's record, its checksum made right; one spelling.
pub fn commit_record(bytes: &[u8]) -> Result<Spelling> {
    let mut bytes = bytes.to_vec();
    if let Some((covered, crc)) = bytes.split_last_chunk_mut::<4>() {
        *crc = crc32c(covered).to_le_bytes();
    }
    Ok(Spelling::of(
        CommitRecord::decode(&bytes, 0x3000)?.encode().0 == bytes,
    ))
}

/// A retained generation's record; one spelling.
pub fn snapshot_record(bytes: &[u8]) -> Result<Spelling> {
    Ok(Spelling::of(
        SnapshotRecord::decode(bytes, 0)?.encode() == bytes,
    ))
}

/// A commit's entry in the history; one spelling.
pub fn history_record(bytes: &[u8]) -> Result<Spelling> {
    Ok(Spelling::of(
        HistoryRecord::decode(bytes, 0)?.encode() == bytes,
    ))
}

/// A path as users write it; what it names is written back the same way.
pub fn path(text: &str) -> Result<bool> {
    let limits = Limits::untrusted();
    let first = ObjectPath::parse(text, &limits)?;
    let again = ObjectPath::parse(&first.to_string(), &limits)?;
    Ok(first == again)
}
