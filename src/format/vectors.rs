//! Golden files against the encoders: each structure is decoded, and encoded again to the same bytes.
//!
//! Holds tests only. The files were laid out by hand from the text, so a fault that is the same in both directions here
//! still shows. What a whole reader makes of them is tested from outside.

use super::blob::{Blob, Content};
use super::commit::CommitRecord;
use super::document::Document;
use super::header::Header;
use super::history::HistoryRecord;
use super::key::tag;
use super::node::Node;
use super::pack::{self, Entries};
use super::record::ChunkRecord;
use super::slot::{Root, Slot, SlotState, slot_offset};
use super::snapshot::SnapshotRecord;
use crate::bytes::crc32;
use crate::limits::Limits;

const EMPTY: &[u8] = include_bytes!("../../format-spec/vectors/empty.orth");
const ONE_COMMIT: &[u8] = include_bytes!("../../format-spec/vectors/one_commit.orth");

fn slice(file: &[u8], offset: u64, len: usize) -> &[u8] {
    &file[usize::try_from(offset).unwrap()..][..len]
}

/// The header, the slot with index `newest`, and its root node, each encoded again.
fn newest(file: &[u8], newest: u8) -> (Header, Slot, Node) {
    let header = Header::decode(&file[..256], file.len() as u64).unwrap();
    assert_eq!(header.encode(), slice(file, 0, 4096));
    let slots = [0, 1].map(|i| {
        let block = slice(file, slot_offset(i), 4096);
        let SlotState::Valid(slot) = Slot::decode(block, i, header.crc).unwrap() else {
            panic!("slot {i} is invalid");
        };
        assert_eq!(slot.encode(), block);
        let record = slice(
            file,
            slot.record.offset,
            usize::try_from(slot.record.len).unwrap(),
        );
        let decoded = CommitRecord::decode(record, slot.record.offset).unwrap();
        assert_eq!(decoded.encode(), (record.to_vec(), slot.record.crc));
        let facts = (decoded.generation, decoded.root, decoded.time, decoded.uuid);
        assert_eq!(facts, (slot.generation, slot.root, slot.time, header.uuid));
        *slot
    });
    let slot = slots[usize::from(newest)].clone();
    assert!(slots.iter().all(|s| s.generation <= slot.generation));
    let root = slot.root.node;
    let bytes = slice(file, root.offset, root.len as usize);
    let node = Node::parse(bytes.into(), root.offset).unwrap();
    node.check_use(&root, slot.root.level, slot.generation, slot.committed_end)
        .unwrap();
    let mut entries = Entries::default();
    for i in 0..node.count() {
        entries.push(node.prefix(), node.suffix(i), node.value(i));
    }
    let packed = pack::encode(&entries, 0..node.count(), node.level(), node.birth()).unwrap();
    assert_eq!(packed, (bytes.to_vec(), root.crc));
    (header, slot, node)
}

#[test]
fn the_empty_container_is_encoded_to_the_bytes_of_the_spec() {
    let (header, slot, node) = newest(EMPTY, 0);
    assert_eq!(header.created, 1_700_000_000_000_000_000);
    assert_eq!(
        (slot.generation, slot.horizon, slot.next_object_id),
        (2, 1, 1)
    );
    assert_eq!(
        (slot.committed_end, slot.live_index),
        (EMPTY.len() as u64, 73)
    );
    assert_eq!(node.key(0).as_slice(), [tag::DOCUMENT, 0x80]);
    let document = Document::parse(&node.value(0)[2..], &Limits::default()).unwrap();
    assert!(document.is_canonical(&node.value(0)[2..]));
}

#[test]
fn the_container_of_one_commit_is_encoded_to_the_bytes_of_the_spec() {
    let (_, slot, node) = newest(ONE_COMMIT, 1);
    assert_eq!((slot.generation, slot.live_payload), (3, 128));
    let mut chunks = 0;
    for i in 0..node.count() {
        let value = node.value(i);
        match node.key(i)[0] {
            tag::DOCUMENT => {
                let document = Document::parse(&value[2..], &Limits::default()).unwrap();
                assert!(document.is_canonical(&value[2..]));
            }
            tag::CHUNK => {
                let record = ChunkRecord::decode(value, node.value_at(i), slot.committed_end);
                let record = record.unwrap();
                assert_eq!(record.encode().as_slice(), value);
                let ChunkRecord::Stored { extent, mask: 0 } = record else {
                    panic!("{record:?} is no plain extent");
                };
                assert_eq!(crc32(slice(ONE_COMMIT, extent.offset, 64)), extent.crc);
                chunks += 1;
            }
            tag::HISTORY => {
                let history = HistoryRecord::decode(value, node.value_at(i)).unwrap();
                assert_eq!(
                    (history.changed, history.message.as_str()),
                    (5, "first chunk")
                );
                assert_eq!(history.encode(), value);
            }
            _ => {}
        }
    }
    assert_eq!(chunks, 2);
}

/// Calls `visit` with key, value and position of every entry below a node.
fn walk(file: &[u8], root: Root, visit: &mut impl FnMut(&[u8], &[u8], u64)) {
    let bytes = slice(file, root.node.offset, root.node.len as usize);
    let node = Node::parse(bytes.into(), root.node.offset).unwrap();
    node.check_use(&root.node, root.level, 3, file.len() as u64)
        .unwrap();
    for i in 0..node.count() {
        match root.level.checked_sub(1) {
            None => visit(&node.key(i), node.value(i), node.value_at(i)),
            Some(level) => {
                let below = Root {
                    node: node.child(i).unwrap(),
                    level,
                };
                walk(file, below, visit);
            }
        }
    }
}

#[test]
fn documents_and_records_of_the_golden_files_are_encoded_to_their_own_bytes() {
    let files: [(&[u8], usize); 6] = [
        (include_bytes!("../../format-spec/vectors/tree.orth"), 3),
        (include_bytes!("../../format-spec/vectors/types.orth"), 22),
        (include_bytes!("../../format-spec/vectors/codecs.orth"), 17),
        (include_bytes!("../../format-spec/vectors/shards.orth"), 5),
        (
            include_bytes!("../../format-spec/vectors/attributes.orth"),
            2,
        ),
        (include_bytes!("../../format-spec/vectors/ranks.orth"), 8),
    ];
    for (file, documents) in files {
        let (_, slot, _) = newest(file, 1);
        let mut seen = 0;
        walk(file, slot.root, &mut |key, value, at| match key[0] {
            tag::DOCUMENT => {
                let Blob::Inline(Content::Json, text) = Blob::decode(value).unwrap() else {
                    panic!("no inline JSON at {at}");
                };
                let document = Document::parse(text, &Limits::default()).unwrap();
                assert_eq!(document.to_text().as_bytes(), text);
                seen += 1;
            }
            tag::ATTRIBUTE => {
                let blob = Blob::decode(value).unwrap();
                assert_eq!(blob.encode().unwrap().as_slice(), value);
            }
            tag::CHUNK => {
                let record = ChunkRecord::decode(value, at, slot.committed_end).unwrap();
                assert_eq!(record.encode().as_slice(), value);
            }
            tag::SNAPSHOT => {
                let record = SnapshotRecord::decode(value, at).unwrap();
                assert_eq!((record.label.as_str(), record.referenced), ("before", true));
                assert_eq!(record.encode(), value);
            }
            _ => {}
        });
        assert_eq!(seen, documents);
    }
}
