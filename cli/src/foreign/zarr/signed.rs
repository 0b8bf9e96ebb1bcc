//! Where a Zarr array lay before it was exported: the attribute that says so, read back.
//!
//! Holds [`place`]. Convention: `docs/xarray.md` and the `export` verb. Must not trust it: what does not fit the array is
//! kept as an attribute and noted.

use orthant::{Domain, Json};

use crate::foreign::{Facts, Grid};
use crate::zarr::document::ORIGIN_ATTRIBUTE;

/// Gives the array the domain and the grid that its attribute tells, and drops the attribute.
pub(super) fn place(facts: &mut Facts) {
    let Some(at) = facts
        .attributes
        .iter()
        .position(|(name, _)| name == ORIGIN_ATTRIBUTE)
    else {
        return;
    };
    let told = facts.attributes.get(at).map(|(_, value)| value.to_json());
    match told.as_ref().and_then(|json| read(json, facts)) {
        Some((domain, grid)) => {
            facts.domain = domain;
            facts.grid = Some(grid);
            facts.attributes.remove(at);
        }
        None => facts.notes.push(format!(
            "its attribute {ORIGIN_ATTRIBUTE:?} does not say where it lay, and is kept as it is"
        )),
    }
}

fn read(json: &Json, facts: &Facts) -> Option<(Domain, Grid)> {
    let rank = facts.domain.rank();
    let list = |name: &str| {
        let items = json.get(name)?.as_array()?;
        let list: Option<Vec<i64>> = items.iter().map(Json::as_i64).collect();
        list.filter(|l| l.len() == rank)
    };
    json.get("version")
        .and_then(Json::as_i64)
        .filter(|v| *v == 1)?;
    let (lower, upper) = (list("inclusive_min")?, list("exclusive_max")?);
    let (origin, pad) = (list("chunk_origin")?, list("pad")?);
    let chunk = facts.grid.as_ref()?.chunk.clone();
    let domain = Domain::new(lower.iter().zip(&upper).map(|(lo, hi)| *lo..*hi)).ok()?;
    let shape = facts.domain.shape();
    let (mut starts, mut first) = (Vec::new(), Vec::new());
    for axis in 0..rank {
        let (lo, hi) = (*lower.get(axis)?, *upper.get(axis)?);
        let pad = *pad.get(axis)?;
        let len = *chunk.get(axis)?;
        let zero = lo.checked_sub(pad).filter(|_| pad >= 0)?;
        // The array has to hold what the attribute promises.
        if hi < lo || hi.abs_diff(zero) > *shape.get(axis)? {
            return None;
        }
        let origin = *origin.get(axis)?;
        let step = i128::from(zero).checked_sub(i128::from(origin))?;
        let len = i128::from(len.max(1));
        if step.rem_euclid(len) == 0 {
            starts.push(origin);
            first.push(i64::try_from(step.div_euclid(len)).ok()?);
        } else {
            // Its chunks were cut anew on export.
            starts.push(zero);
            first.push(0);
        }
    }
    Some((
        domain,
        Grid {
            chunk,
            origin: starts,
            first,
        },
    ))
}
