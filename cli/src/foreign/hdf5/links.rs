//! The members of a group, in both forms that groups have. After the "HDF5 File Format Specification", III.A to III.D and
//! IV.A.2.
//!
//! Holds [`links`]. Must not follow a link.

use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::io::Cursor as Their;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::{link, link_info};
use hdf5_reader::symbol_table::SymbolTableNode;

use super::file::{File, guarded};
use super::header::Header;
use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

const LINK_INFO: u16 = 0x02;
const LINK: u16 = 0x06;
const SYMBOL_TABLE: u16 = 0x11;

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// An object header.
    Hard(u64),
    /// A path in this file.
    Soft(String),
    /// Another file, and a path in it.
    External(String, String),
}

/// A name and where it leads, or why that cannot be told.
pub(super) type Link = Result<(String, Target), Refusal>;

/// Whether the object is a group.
pub(super) fn is_group(header: &Header) -> bool {
    header.has(SYMBOL_TABLE) || header.has(LINK_INFO) || header.has(LINK)
}

/// The links of a group; those that cannot be read are refusals by themselves.
pub(super) fn links(file: &File, header: &Header) -> Result<Vec<Link>, Refusal> {
    if let Some(body) = header.first(file, SYMBOL_TABLE)? {
        return old(file, &body);
    }
    let mut found = Vec::new();
    for message in header.all(LINK) {
        found.push(one(file, &message.body).map(|(_, name, target)| (name, target)));
    }
    if let Some(body) = header.first(file, LINK_INFO)? {
        dense(file, &body, &mut found)?;
    }
    Ok(found)
}

/// Groups of a symbol table: a tree of nodes, their names in a heap.
fn old(file: &File, body: &[u8]) -> Result<Vec<Link>, Refusal> {
    let (o, l) = (file.offset_size, file.length_size);
    let mut cursor = Cursor::little(body);
    let tree = file.address(&mut cursor)?.ok_or("a group without a tree")?;
    let heap = file.address(&mut cursor)?.ok_or("a group without names")?;
    let heap = guarded(|| LocalHeap::parse_at_storage(file, heap, o, l))?;
    let leaves = guarded(|| collect_btree_v1_leaves_storage(file, tree, o, l, None, &[], None))?;
    let mut found = Vec::new();
    for (_, address) in leaves {
        let head = file.read(address, 8)?;
        let count = Cursor::little(head.get(6..).unwrap_or_default()).u16()?;
        let entry_len = usize::from(o).saturating_mul(2).saturating_add(24);
        let node_len = usize::from(count)
            .saturating_mul(entry_len)
            .saturating_add(8);
        let node = file.read(address, node_len)?;
        let node = guarded(|| SymbolTableNode::parse(&mut Their::new(&node), o, l))?;
        for entry in node.entries {
            let name = guarded(|| heap.get_string_storage(entry.link_name_offset, file));
            let target = if entry.cache_type == 2 {
                let at = u64::from(Cursor::little(&entry.scratch).u32()?);
                guarded(|| heap.get_string_storage(at, file)).map(Target::Soft)
            } else {
                Ok(Target::Hard(entry.object_header_address))
            };
            found.push(name.and_then(|name| Ok((name, target?))));
        }
    }
    Ok(found)
}

/// Links in a heap, listed by a tree.
fn dense(file: &File, body: &[u8], found: &mut Vec<Link>) -> Result<(), Refusal> {
    let (o, l) = (file.offset_size, file.length_size);
    let info = guarded(|| link_info::parse(&mut Their::new(body), o, l, body.len()))?;
    let mut ordered = Vec::new();
    for object in objects(
        file,
        info.fractal_heap_address,
        info.btree_name_index_address,
    )? {
        match object.and_then(|body| one(file, &body)) {
            Ok(link) => ordered.push(link),
            Err(reason) => found.push(Err(reason)),
        }
    }
    // By creation where the file knows, as it lists names by their hashes.
    ordered.sort();
    found.extend(
        ordered
            .into_iter()
            .map(|(_, name, target)| Ok((name, target))),
    );
    Ok(())
}

/// What a heap holds, in the order of a tree of it.
pub(super) fn objects(
    file: &File,
    heap: u64,
    tree: u64,
) -> Result<Vec<Result<Vec<u8>, Refusal>>, Refusal> {
    let (o, l) = (file.offset_size, file.length_size);
    if Their::is_undefined_offset(heap, o) || Their::is_undefined_offset(tree, o) {
        return Ok(Vec::new());
    }
    let heap = guarded(|| FractalHeap::parse_at_storage(file, heap, o, l))?;
    let records = guarded(|| {
        let header = BTreeV2Header::parse_at_storage(file, tree, o, l)?;
        collect_btree_v2_records_storage(file, &header, o, l, None, &[], None)
    })?;
    let mut cache = FractalHeapDirectBlockCache::default();
    let mut found = Vec::new();
    for record in records {
        let (id, shared) = match record {
            BTreeV2Record::LinkNameHash { heap_id, .. } => (heap_id, false),
            BTreeV2Record::AttributeNameHash { heap_id, flags, .. } => (heap_id, flags & 2 != 0),
            _ => continue,
        };
        found.push(if shared {
            Err("a message in the heap of shared messages".to_owned())
        } else {
            guarded(|| heap.get_object_storage_cached(&id, file, o, l, &mut cache))
        });
    }
    Ok(found)
}

fn one(file: &File, body: &[u8]) -> Result<(Option<u64>, String, Target), Refusal> {
    let (o, l) = (file.offset_size, file.length_size);
    let link = guarded(|| link::parse(&mut Their::new(body), o, l, body.len()))?;
    let target = match link.target {
        link::LinkTarget::Hard { address } => Target::Hard(address),
        link::LinkTarget::Soft { path } => Target::Soft(path),
        link::LinkTarget::External { filename, path } => Target::External(filename, path),
    };
    Ok((link.creation_order, link.name, target))
}
