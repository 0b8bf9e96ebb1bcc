//! Where a Zarr array lay before it was exported: the attribute that says so, read back.
//!
//! Holds [`Place`] and [`read`]. `write` makes the attribute. Must not trust it.

use orthant::{Domain, Json};

/// Where an array lies in a container.
#[derive(Debug)]
pub struct Place {
    /// Its coordinates.
    pub domain: Domain,
    /// The coordinate where chunk 0 starts, per axis.
    pub origin: Vec<i64>,
    /// The container's coordinate of the Zarr array's chunk 0.
    pub first: Vec<i64>,
}

/// What the attribute's value says of an array of this shape and these chunks; none where that does not fit it.
pub fn read(json: &Json, shape: &[u64], chunk: &[u64]) -> Option<Place> {
    let rank = shape.len();
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
    let domain = Domain::new(lower.iter().zip(&upper).map(|(lo, hi)| *lo..*hi)).ok()?;
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
    Some(Place {
        domain,
        origin: starts,
        first,
    })
}
