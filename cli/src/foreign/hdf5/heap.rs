//! Elements of any length: references into the global heap, followed. After the "HDF5 File Format Specification", III.E.
//!
//! Holds [`Heap`]. Must not know types.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hdf5_reader::global_heap::GlobalHeapCollection;

use super::file::{File, guarded};
use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

/// Bytes of collections that are kept.
const KEPT_MAX: usize = 32 << 20;
/// Most bytes that the elements of one piece may come to: references can all lead to one long object.
const TOTAL_MAX: usize = 128 << 20;

/// The global heap of a file.
#[derive(Debug)]
pub(super) struct Heap {
    file: Arc<File>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    collections: HashMap<u64, Arc<GlobalHeapCollection>>,
    len: usize,
}

impl Heap {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self {
            file,
            kept: Mutex::default(),
        }
    }

    /// Bytes of one reference: a count, an address, and a number there.
    pub(super) fn reference_len(&self) -> usize {
        usize::from(self.file.offset_size).saturating_add(8)
    }

    /// What references lead to, of elements of `item` bytes each.
    pub(super) fn follow(&self, references: &[u8], item: usize) -> Result<Vec<Box<[u8]>>, Refusal> {
        let mut out = Vec::new();
        let mut total = 0_usize;
        for reference in references.chunks_exact(self.reference_len()) {
            let found = self.one(reference, item)?;
            total = total.saturating_add(found.len());
            if total > TOTAL_MAX {
                return Err(format!(
                    "elements that come to more than {TOTAL_MAX} bytes at once"
                ));
            }
            out.push(found);
        }
        Ok(out)
    }

    fn one(&self, reference: &[u8], item: usize) -> Result<Box<[u8]>, Refusal> {
        let mut cursor = Cursor::little(reference);
        let len = cursor.count()?.saturating_mul(item);
        let address = self.file.address(&mut cursor)?;
        let index = cursor.u32()?;
        let Some(address) = address.filter(|a| *a != 0 && len > 0) else {
            return Ok(Box::from([]));
        };
        let collection = self.collection(address)?;
        let object = u16::try_from(index)
            .ok()
            .and_then(|index| collection.get_object(index));
        let part = object.and_then(|object| object.data.get(..len));
        part.map(Box::from)
            .ok_or_else(|| format!("object {index} of the heap at address {address} is not there"))
    }

    fn collection(&self, address: u64) -> Result<Arc<GlobalHeapCollection>, Refusal> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().collections.get(&address) {
            return Ok(Arc::clone(found));
        }
        let file = &self.file;
        let (o, l) = (file.offset_size, file.length_size);
        let read =
            guarded(|| GlobalHeapCollection::parse_at_storage(file.as_ref(), address, o, l))?;
        let read = Arc::new(read);
        let len = read.objects.iter().map(|object| object.data.len()).sum();
        let mut kept = kept();
        kept.len = kept.len.saturating_add(len);
        if kept.len > KEPT_MAX {
            kept.collections.clear();
            kept.len = len;
        }
        kept.collections.insert(address, Arc::clone(&read));
        Ok(read)
    }
}
