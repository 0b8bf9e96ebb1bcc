//! Signed boxes, floor division, chunk grids, regions and strided copies.
//!
//! Pure arithmetic: coordinates in, coordinates or element runs out. Must not know file offsets, codecs or handles.
//! Spec: `format-spec/11-coordinates.md`.

mod chunks;
mod copy;
mod domain;
mod region;
mod selection;

pub(crate) use chunks::{AxisSet, ChunkGrid};
pub(crate) use copy::{AxisMap, Copier, Run, c_strides};
pub use domain::Domain;
pub(crate) use domain::{check_bounds, index_limit};
pub(crate) use region::{Axis, Picked};
pub use region::{Bound, Region, RegionItem, Stepped};
pub use selection::Selection;

/// Coordinates of one element or one chunk, one per axis; inline up to rank 8.
pub(crate) type Coords = smallvec::SmallVec<[i64; 8]>;
