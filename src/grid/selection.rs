//! Selections: a region, with listed or masked coordinates on some axes.
//!
//! Holds [`Selection`]. The axes are independent of one another (an outer selection): two lists pick every combination.
//! Must not read anything.

use std::sync::Arc;

use super::region::{Axis, Picked};
use super::{Domain, Region};
use crate::error::{Error, Result};

/// What to read or write: a [`Region`], where on some axes coordinates may be listed one by one.
///
/// ```
/// # use orthant::{region, Selection};
/// let s = Selection::from(region![.., 0..5]).list(0, [5, 0, 0, 3]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    region: Region,
    picks: Vec<(usize, Pick)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pick {
    List(Arc<[i64]>),
    Mask(Arc<[bool]>),
}

impl Selection {
    /// Picks the listed coordinates on `axis`, in their order; repeats are allowed. The axis stays in the result.
    #[must_use]
    pub fn list(mut self, axis: usize, coordinates: impl IntoIterator<Item = i64>) -> Self {
        self.picks
            .push((axis, Pick::List(coordinates.into_iter().collect())));
        self
    }

    /// Picks the coordinates of `axis` where the mask is true; the mask has one entry for each coordinate of the domain.
    #[must_use]
    pub fn mask(mut self, axis: usize, mask: impl IntoIterator<Item = bool>) -> Self {
        self.picks
            .push((axis, Pick::Mask(mask.into_iter().collect())));
        self
    }

    /// The region, without lists and masks.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The coordinates picked in `domain`.
    ///
    /// # Errors
    /// As [`Region::resolve`]; `OutOfDomain` for a listed coordinate; `InvalidArgument` for a mask of the wrong length
    /// (`shape`) or an axis the array does not have (`rank`).
    pub(crate) fn resolve(&self, domain: &Domain, clip: bool) -> Result<Picked> {
        let mut picked = self.region.resolve(domain, clip)?;
        for (axis, pick) in &self.picks {
            let (Some(slot), Some(range)) = (picked.axes.get_mut(*axis), domain.range(*axis))
            else {
                return Err(Error::invalid(format!("selection on axis {axis}"))
                    .expected(format_args!(
                        "an axis below {}, for the domain {domain}",
                        domain.rank()
                    ))
                    .reason("rank"));
            };
            *slot = Axis::List(match pick {
                Pick::List(list) => {
                    if let Some(x) = list.iter().find(|x| !range.contains(x)) {
                        return Err(Error::out_of_domain(format!(
                            "index {x} is outside [{},{}) on axis {axis}",
                            range.start, range.end
                        ))
                        .reason("out_of_domain"));
                    }
                    Arc::clone(list)
                }
                Pick::Mask(mask) => {
                    let extent = range.end.abs_diff(range.start);
                    if mask.len() as u64 != extent {
                        return Err(Error::invalid(format!("mask on axis {axis}"))
                            .expected(format_args!(
                                "{extent} entries, one for each coordinate of the domain {domain}"
                            ))
                            .found(mask.len())
                            .reason("shape"));
                    }
                    range
                        .zip(mask.iter())
                        .filter(|(_, on)| **on)
                        .map(|(x, _)| x)
                        .collect()
                }
            });
        }
        Ok(picked)
    }
}

impl<R: Into<Region>> From<R> for Selection {
    fn from(region: R) -> Self {
        Self {
            region: region.into(),
            picks: Vec::new(),
        }
    }
}

impl From<&Selection> for Selection {
    fn from(selection: &Selection) -> Self {
        selection.clone()
    }
}

impl std::fmt::Display for Selection {
    /// The region as text; a list or mask shows as its size.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.region.fmt(f)?;
        for (axis, pick) in &self.picks {
            match pick {
                Pick::List(list) => write!(f, " with {} indexes on axis {axis}", list.len())?,
                Pick::Mask(mask) => write!(f, " with a mask of {} on axis {axis}", mask.len())?,
            }
        }
        Ok(())
    }
}
