//! What `refs` and `export` do to elements on their way into Zarr chunks; the documents are made by `orthant-zarr`.
//!
//! Holds [`extend`] and [`window`]. Must not write files or name places in them.

mod extend;
pub(crate) mod window;

pub(crate) use extend::extend;
