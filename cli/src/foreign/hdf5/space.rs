//! Dataspaces and layouts: how many elements there are, and where. After the "HDF5 File Format Specification", IV.A.2.b and
//! IV.A.2.i.
//!
//! Holds [`Space`] and [`Layout`]. Must not read elements.

use hdf5_reader::io::Cursor as Their;
use hdf5_reader::messages::dataspace::{self, DataspaceType};

use super::file::{File, guarded};
use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

/// The extents of a dataset or of an attribute.
#[derive(Debug, Clone)]
pub(super) struct Space {
    /// None for the space that has no elements at all.
    pub(super) extents: Option<Vec<u64>>,
    /// How far each may grow, all ones where without end.
    pub(super) limits: Option<Vec<u64>>,
}

impl Space {
    pub(super) fn parse(file: &File, body: &[u8]) -> Result<Self, Refusal> {
        let (o, l) = (file.offset_size, file.length_size);
        let space = guarded(|| dataspace::parse(&mut Their::new(body), o, l, body.len()))?;
        Ok(Self {
            extents: match space.dataspace_type {
                DataspaceType::Null => None,
                DataspaceType::Scalar => Some(Vec::new()),
                DataspaceType::Simple => Some(space.dims),
            },
            limits: space.max_dims,
        })
    }

    /// Elements in all; none where that is more than fits in memory.
    pub(super) fn count(&self) -> Option<usize> {
        let Some(extents) = &self.extents else {
            return Some(0);
        };
        let count = extents.iter().try_fold(1_u64, |n, e| n.checked_mul(*e))?;
        usize::try_from(count).ok()
    }
}

/// Where the elements of a dataset are.
#[derive(Debug, Clone)]
pub(super) enum Layout {
    /// In the object header.
    Compact(Vec<u8>),
    /// One after the other; nowhere yet where there is no address.
    Contiguous(Option<u64>),
    Chunked(Chunked),
}

#[derive(Debug, Clone)]
pub(super) struct Chunked {
    /// Elements per axis.
    pub(super) chunk: Vec<u32>,
    /// Bytes of one element.
    pub(super) item: u64,
    pub(super) index: Index,
    /// Where the index is; nowhere as long as there is no chunk.
    pub(super) address: Option<u64>,
    /// Chunks that reach beyond the extents went through no filter.
    pub(super) bare_edges: bool,
}

/// How chunks are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    BTree1,
    /// One chunk, of so many bytes and without these filters.
    Single {
        len: Option<u64>,
        mask: u32,
    },
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTree2,
}

impl Layout {
    pub(super) fn parse(file: &File, body: &[u8]) -> Result<Self, Refusal> {
        let mut cursor = Cursor::little(body);
        match cursor.u8()? {
            1 | 2 => old(file, &mut cursor),
            3 => {
                let class = cursor.u8()?;
                if class == 2 {
                    chunked3(file, &mut cursor)
                } else {
                    plain(file, &mut cursor, class)
                }
            }
            4 | 5 => {
                let class = cursor.u8()?;
                if class == 2 {
                    chunked4(file, &mut cursor)
                } else {
                    plain(file, &mut cursor, class)
                }
            }
            other => Err(format!("a layout of version {other}")),
        }
    }
}

fn old(file: &File, cursor: &mut Cursor<'_>) -> Result<Layout, Refusal> {
    let rank = cursor.u8()?;
    let class = cursor.u8()?;
    cursor.skip(5)?;
    let address = match class {
        0 => None,
        1 | 2 => file.address(cursor)?,
        other => return Err(format!("a layout of class {other}")),
    };
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(cursor.u32()?);
    }
    match class {
        0 => {
            let len = cursor.count()?;
            Ok(Layout::Compact(cursor.take(len)?.to_vec()))
        }
        1 => Ok(Layout::Contiguous(address)),
        _ => tree1(address, dims),
    }
}

fn plain(file: &File, cursor: &mut Cursor<'_>, class: u8) -> Result<Layout, Refusal> {
    match class {
        0 => {
            let len = usize::from(cursor.u16()?);
            Ok(Layout::Compact(cursor.take(len)?.to_vec()))
        }
        1 => file.address(cursor).map(Layout::Contiguous),
        3 => Err("a virtual dataset, whose elements are in other datasets".to_owned()),
        other => Err(format!("a layout of class {other}")),
    }
}

fn chunked3(file: &File, cursor: &mut Cursor<'_>) -> Result<Layout, Refusal> {
    let rank = cursor.u8()?;
    let address = file.address(cursor)?;
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(cursor.u32()?);
    }
    tree1(address, dims)
}

/// The last of the dimensions is the bytes of an element.
fn tree1(address: Option<u64>, mut dims: Vec<u32>) -> Result<Layout, Refusal> {
    let item = dims.pop().ok_or("chunks of no dimension")?;
    Ok(Layout::Chunked(Chunked {
        chunk: dims,
        item: u64::from(item),
        index: Index::BTree1,
        address,
        bare_edges: false,
    }))
}

fn chunked4(file: &File, cursor: &mut Cursor<'_>) -> Result<Layout, Refusal> {
    let flags = cursor.u8()?;
    let rank = cursor.u8()?;
    let width = usize::from(cursor.u8()?);
    if !(1..=8).contains(&width) {
        return Err(format!("chunks whose extents are of {width} bytes each"));
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(cursor.uint(width)?);
    }
    let item = dims.pop().ok_or("chunks of no dimension")?;
    let index = match cursor.u8()? {
        1 if flags & 2 != 0 => Index::Single {
            len: Some(file.length(cursor)?),
            mask: cursor.u32()?,
        },
        1 => Index::Single { len: None, mask: 0 },
        2 => Index::Implicit,
        3 => {
            cursor.skip(1)?;
            Index::FixedArray
        }
        4 => {
            cursor.skip(5)?;
            Index::ExtensibleArray
        }
        5 => {
            cursor.skip(6)?;
            Index::BTree2
        }
        other => return Err(format!("chunks with an index of kind {other}")),
    };
    let chunk: Option<Vec<u32>> = dims.iter().map(|d| u32::try_from(*d).ok()).collect();
    Ok(Layout::Chunked(Chunked {
        chunk: chunk.ok_or("a chunk of more than 2^32 elements on an axis")?,
        item,
        index,
        address: file.address(cursor)?,
        bare_edges: flags & 1 != 0,
    }))
}
