//! Arrays of a source added to an end of those that are there.
//!
//! Holds [`Growth`]. Must not plan.

use orthant::{Domain, DynArray, Group, ObjectKind};

use super::copy::{self, Done};
use crate::exit::{Failure, Result};
use crate::foreign::{Array, Content, Stop};
use crate::selection::axis_of;
use crate::session::{Session, Writing};
use crate::target::{Target, slashed};

/// The axis that grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth<'a> {
    pub(super) axis: &'a str,
    /// At its low end.
    pub(super) low: bool,
}

impl Growth<'_> {
    /// A growing import may name the array itself in place of its group.
    pub(super) fn path(path: &str, target: &Target, root: &Group) -> Result<String> {
        let itself = !target.path.is_empty() && root.kind(&target.path)? == Some(ObjectKind::Array);
        Ok(if itself { &target.path } else { path }.to_owned())
    }

    /// Adds one array of a source.
    pub(super) fn array(
        &self,
        path: &str,
        array: &Array,
        writer: &Writing,
        session: &Session,
    ) -> std::result::Result<Done, Stop> {
        let into = writer.dyn_array(path).map_err(Failure::from)?;
        let room = self.make_room(&into, array)?;
        match &array.content {
            Content::Boxes(boxes) => copy::boxes_into(boxes.as_ref(), &room, &into, session),
            Content::Chunks(_) => Err(Stop::Source(
                "growing by arrays in chunks is not there yet".to_owned(),
            )),
        }
    }

    /// The number of the axis, where an array can take in what the source holds on it.
    pub(super) fn fits(&self, array: &DynArray, source: &Array) -> Result<usize> {
        let axis = axis_of(self.axis, &array.dims())?;
        let before = array.domain()?;
        let named = |f: Failure| f.in_array(&slashed(array.path()));
        let data_type = &source.facts.data_type;
        if data_type != &array.data_type() {
            return Err(named(Failure::usage(format!(
                "the source holds {data_type}, {} holds {}",
                slashed(array.path()),
                array.data_type()
            ))));
        }
        let (shape, wanted) = (source.facts.domain.shape(), before.shape());
        let fits = shape.len() == wanted.len()
            && shape
                .iter()
                .zip(&wanted)
                .enumerate()
                .all(|(i, (a, b))| i == axis || a == b);
        if !fits {
            return Err(named(Failure::usage(format!(
                "the source has shape ({}), which does not fit the domain {before} on every axis but {axis}",
                crate::text::list(&shape)
            ))));
        }
        Ok(axis)
    }

    /// Makes room at one end of the axis; gives the box that is new.
    fn make_room(&self, array: &DynArray, source: &Array) -> Result<Domain> {
        let axis = self.fits(array, source)?;
        let before = array.domain()?;
        let n = source.facts.domain.shape().get(axis).copied().unwrap_or(0);
        if self.low {
            array.grow(axis, n, 0)?;
        } else {
            array.grow(axis, 0, n)?;
        }
        let after = array.domain()?;
        let ranges = before
            .ranges()
            .zip(after.ranges())
            .enumerate()
            .map(|(i, (old, new))| match (i == axis, self.low) {
                (false, _) => old,
                (true, true) => new.start..old.start,
                (true, false) => old.end..new.end,
            });
        Ok(Domain::new(ranges)?)
    }
}
