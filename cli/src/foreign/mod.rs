//! Files and stores of other kinds, read: the kind told by the content, the hierarchy walked, chunks as they are stored.
//!
//! Holds what every kind is to the importer ([`Source`], [`Node`], [`Facts`], [`Chunks`], [`Boxes`]) and [`open`]. One
//! folder or file a kind. Must not write, and must not know the container.
//!
//! What is wrong with one array refuses that array; only what cannot be opened at all is a failure of the whole.

mod border;
mod cursor;
pub(crate) mod flat;
mod hdf5;
#[cfg(test)]
mod hostile;
mod json;
mod kind;
mod netcdf3;
mod nifti;
mod npy;
mod precomputed;
mod tiff;
mod zarr;

use std::path::Path;

use orthant::{AttributeValue, CodecSpec, DataType, Domain, Elements};

use crate::exit::{Failure, Result};

/// Why something of a source cannot be taken, in words for the report.
pub(crate) type Refusal = String;

/// What a source holds, parents first.
#[derive(Debug)]
pub(crate) struct Source {
    /// `Zarr`, `HDF5`, ...: for people.
    pub(crate) kind: &'static str,
    pub(crate) nodes: Vec<Node>,
}

/// A group or an array of a source, or why it is neither.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it is inside the source, as reports say it: `/` for a lone array.
    pub(crate) inside: String,
    /// The path it gets below the group that is imported into; empty for that group itself.
    pub(crate) path: String,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Group(Attributes),
    Array(Box<Array>),
    /// Nothing to take, which the report says: a link to what is taken elsewhere.
    Aside(String),
    Refused(Refusal),
}

pub(crate) type Attributes = Vec<(String, AttributeValue)>;

/// An array of a source.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) facts: Facts,
    pub(crate) content: Content,
}

/// What an array is, in the words of a container.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) data_type: DataType,
    pub(crate) domain: Domain,
    /// The grid its chunks lie on; none where it has no chunks.
    pub(crate) grid: Option<Grid>,
    /// Names of the axes, empty where one has none.
    pub(crate) dims: Vec<String>,
    /// One element's bytes.
    pub(crate) fill: Option<Vec<u8>>,
    /// The pipeline whose payloads the stored chunks are; none where they have to be decoded by the source.
    pub(crate) codecs: Option<Vec<CodecSpec>>,
    pub(crate) attributes: Attributes,
    /// What of it is left behind, or taken as something else.
    pub(crate) notes: Vec<String>,
}

impl Facts {
    /// An array from 0 on without anything but its type and shape.
    pub(crate) fn plain(data_type: DataType, shape: &[u64]) -> std::result::Result<Self, Refusal> {
        let domain = Domain::from_shape(shape).map_err(|e| e.to_string())?;
        Ok(Self {
            data_type,
            dims: vec![String::new(); shape.len()],
            domain,
            grid: None,
            fill: None,
            codecs: None,
            attributes: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Takes over names of axes; those that cannot be names of axes are left out and noted.
    pub(crate) fn name_axes(&mut self, names: &[String]) {
        let mut seen: Vec<&str> = Vec::new();
        let mut dims = Vec::new();
        for name in names {
            if !name.is_empty() && seen.contains(&name.as_str()) {
                self.notes.push(format!(
                    "a second axis named {name:?} is left without a name"
                ));
                dims.push(String::new());
            } else {
                seen.push(name);
                dims.push(name.clone());
            }
        }
        dims.resize(self.domain.rank(), String::new());
        self.dims = dims;
    }
}

/// A regular grid of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Elements per axis of what is stored as one.
    pub(crate) chunk: Vec<u64>,
    /// Coordinate where chunk 0 of the container starts.
    pub(crate) origin: Vec<i64>,
    /// The container's coordinate of the source's chunk 0.
    pub(crate) first: Vec<i64>,
}

impl Grid {
    /// A grid from coordinate 0 on.
    pub(crate) fn from_zero(chunk: Vec<u64>) -> Self {
        Self {
            origin: vec![0; chunk.len()],
            first: vec![0; chunk.len()],
            chunk,
        }
    }
}

/// How the elements of an array are had.
#[derive(Debug)]
pub(crate) enum Content {
    Chunks(Box<dyn Chunks>),
    Boxes(Box<dyn Boxes>),
}

/// Elements in chunks of a grid.
pub(crate) trait Chunks: Send + Sync + std::fmt::Debug {
    /// The coordinates of the chunks that are stored, zero-based, in any order. Work follows what is stored.
    fn for_each(
        &self,
        take: &mut dyn FnMut(&[u64]) -> std::result::Result<(), Stop>,
    ) -> std::result::Result<(), Stop>;

    /// One chunk; none where it is not stored after all.
    fn read(&self, coord: &[u64]) -> std::result::Result<Option<Payload>, Refusal>;
}

/// Elements of any box.
pub(crate) trait Boxes: Send + Sync + std::fmt::Debug {
    /// The elements from `lower` on, zero-based, in C order.
    fn read(&self, lower: &[u64], shape: &[u64]) -> std::result::Result<Elements, Refusal>;

    /// Whether the first axis is the one whose neighbours lie side by side.
    fn first_axis_fastest(&self) -> bool {
        false
    }

    /// Bytes of all elements in the source.
    fn bytes(&self) -> u64;
}

/// One chunk of a source.
#[derive(Debug)]
pub(crate) enum Payload {
    /// What the array's codecs make of it.
    Encoded {
        bytes: Vec<u8>,
        /// Codecs that this chunk skipped, a bit each.
        skipped: u8,
        /// The framing is not the source's.
        reframed: bool,
    },
    /// Its elements, in the shape of a whole chunk, and how many bytes the source spent on them.
    Decoded { elements: Elements, stored: u64 },
}

/// Why a walk ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The source is at fault.
    Source(Refusal),
    /// The container is, or the disk.
    Target(Failure),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Source(refusal)
    }
}

/// Everything that a source holds, its kind told by its content.
///
/// # Errors
/// Where the source cannot be read at all; what cannot be taken of it is in the list.
pub(crate) fn open(path: &Path) -> Result<Source> {
    let metadata = std::fs::metadata(path).map_err(|e| Failure::io("open", path, &e))?;
    if metadata.is_dir() {
        return kind::folder(path);
    }
    kind::file(path, metadata.len())
}

/// A source that is refused as a whole.
fn refused(kind: &'static str, reason: Refusal) -> Source {
    Source {
        kind,
        nodes: vec![Node {
            inside: "/".to_owned(),
            path: String::new(),
            what: What::Refused(reason),
        }],
    }
}

/// The name a source without names of its own gets: its file's, without the suffix.
fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(|| "array".into(), |s| s.to_string_lossy())
        .into_owned()
}
