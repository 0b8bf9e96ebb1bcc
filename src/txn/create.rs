//! A new container. Spec: `format-spec/09-commit.md`, "Creation".
//!
//! Holds [`image`], the bytes of a container that holds the root group alone, and [`unfinished`], a file of them. Must not
//! give it its name: `publish` does.

use std::ffi::OsStr;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::commit::CommitRecord;
use crate::format::extent::{Extent, NodeRef};
use crate::format::header::Header;
use crate::format::node::Node;
use crate::format::slot::{Root, Slot, slot_offset};
use crate::format::{ALIGN, DATA_START, ObjectId, key};
use crate::index::{Load, edit};
use crate::store::{Folder, Unfinished};

use super::{EngineOptions, NewContainer, Value};

/// The root group's document, as an inline blob: form 0, content 0 (JSON).
const ROOT_GROUP: &[u8] = b"\0\0{\"zarr_format\":3,\"node_type\":\"group\"}";

/// All bytes of a new container: the header, two slots, two commit records, one leaf.
pub(super) fn image(new: &NewContainer, options: &EngineOptions) -> Result<Vec<u8>> {
    let uuid = new.uuid()?;
    let created = new.created.or_else(|| (options.clock)()).ok_or_else(|| {
        Error::invalid("creation time")
            .expected("a given one, as there is no clock")
            .found("none")
    })?;
    let writer_id = options.writer_id()?;
    let header = Header::new(uuid, created, new.application);

    let leaf = root_leaf()?;
    let [first_at, second_at, leaf_at] = leaf.places;
    let root = Root {
        node: leaf.node,
        level: 0,
    };
    let second_time = created.checked_add(1).ok_or_else(|| {
        Error::invalid("creation time")
            .expected("less than the largest i64")
            .found(created)
    })?;
    let first = CommitRecord {
        generation: 1,
        previous: None,
        root,
        time: created,
        uuid,
        changed: 0,
        message: Vec::new(),
    };
    let (first_bytes, first_extent) = placed(&first, first_at);
    let second = CommitRecord {
        generation: 2,
        previous: Some(first_extent),
        time: second_time,
        ..first
    };
    let (second_bytes, second_extent) = placed(&second, second_at);
    let older = Slot {
        generation: 1,
        time: created,
        committed_end: leaf_at.saturating_add(leaf.bytes.len() as u64),
        root,
        compact: false,
        unconfirmed: false,
        record: first_extent,
        horizon: 0,
        live_payload: 0,
        live_index: leaf.bytes.len() as u64,
        next_object_id: 1,
        ro_compat: 0,
        compat: 0,
        writer_version: options.writer_version,
        writer_id,
        header_crc: header.crc,
    };
    let newer = Slot {
        generation: 2,
        time: second_time,
        record: second_extent,
        horizon: 1,
        ..older.clone()
    };
    Ok(joined([
        (0, header.encode()),
        (slot_offset(0), newer.encode()),
        (slot_offset(1), older.encode()),
        (first_at, first_bytes),
        (second_at, second_bytes),
        (leaf_at, leaf.bytes),
    ]))
}

/// A file of the bytes of a new container, durable and without its name.
pub(super) fn unfinished(
    folder: &dyn Folder,
    name: &OsStr,
    new: &NewContainer,
    options: &EngineOptions,
) -> Result<Box<dyn Unfinished>> {
    let image = image(new, options)?;
    let unfinished = folder.create(name)?;
    let storage = unfinished.storage();
    let refuse = |e| Error::io("cannot write the new container", e);
    storage.write_all_at(0, &image).map_err(refuse)?;
    storage.sync().map_err(refuse)?;
    Ok(unfinished)
}

/// A record's bytes, and the reference to them at `offset`.
fn placed(record: &CommitRecord, offset: u64) -> (Vec<u8>, Extent) {
    let (bytes, crc) = record.encode();
    let len = bytes.len() as u64;
    (bytes, Extent { offset, len, crc })
}

/// Parts at ascending offsets, with zeros between them.
fn joined(parts: [(u64, Vec<u8>); 6]) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, bytes) in parts {
        all.resize(usize::try_from(at).unwrap_or(0), 0);
        all.extend_from_slice(&bytes);
    }
    all
}

/// The first leaf, and where it and the two records before it lie.
struct Leaf {
    places: [u64; 3],
    node: NodeRef,
    bytes: Vec<u8>,
}

fn root_leaf() -> Result<Leaf> {
    let record_len = (crate::format::commit::FIXED_LEN as u64).next_multiple_of(ALIGN);
    let second_at = DATA_START.saturating_add(record_len);
    let leaf_at = second_at.saturating_add(record_len);
    let changes = [(
        key::document(ObjectId::ROOT),
        Some(Value::from_slice(ROOT_GROUP)),
    )];
    let mut made = edit(&Nothing, None, &changes, 1, &mut |_| Ok(leaf_at))?;
    let Some((_, bytes)) = made.nodes.pop() else {
        return Err(Error::corrupt("first leaf")
            .expected("one node")
            .found("none"));
    };
    Ok(Leaf {
        places: [DATA_START, second_at, leaf_at],
        node: made.root,
        bytes,
    })
}

/// There is no tree to load from yet.
struct Nothing;

impl Load for Nothing {
    fn load(&self, reference: &NodeRef) -> Result<Arc<Node>> {
        Err(Error::corrupt("node")
            .at(reference.offset)
            .expected("no node")
            .found("one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_container_equals_the_specification_vector() {
        let vector = include_bytes!("../../format-spec/vectors/empty.orth");
        let text = include_str!("../../format-spec/vectors/empty.json");
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let uuid = u128::from_str_radix(json["uuid"].as_str().unwrap(), 16).unwrap();
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(uuid >> (120 - 8 * i) & 0xFF).unwrap();
        }
        let new = NewContainer {
            uuid: Some(bytes),
            created: json["created"].as_i64(),
            application: [0; 16],
        };
        let options = EngineOptions {
            writer_id: Some([0; 16]),
            writer_version: 0,
            ..EngineOptions::default()
        };
        let image = image(&new, &options).unwrap();
        assert_eq!(image.len(), 12_569);
        let differs = image.iter().zip(vector).position(|(a, b)| a != b);
        assert_eq!((differs, image.len()), (None, vector.len()));
    }
}
