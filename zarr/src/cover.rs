//! Where index 0 of each array of a group lies, so that arrays that share an axis line up, and no stored chunk is cut.
//!
//! Holds [`Cover`]. Readers such as xarray want one length for an axis name in a group: the common cover starts at the
//! greatest coordinate at or below all domains that is a chunk edge of every array with that axis, and ends with the last
//! domain. What lies outside an array's domain holds fill. Must not read payloads.

use std::collections::BTreeMap;

use orthant::{DynArray, Result};

/// An array of the group and how it is seen.
#[derive(Debug)]
pub struct Placed {
    /// Its name in the group.
    pub name: String,
    /// Its handle.
    pub array: DynArray,
    /// The chunk that is referenced: the stored one, or the one within shards.
    pub chunk: Vec<u64>,
    /// Coordinate of index 0, per axis.
    pub first: Vec<i64>,
    /// Elements per axis, from `first` on.
    pub shape: Vec<u64>,
    /// Axis names, each of one length in the group where the cover is common; empty for an axis without a name.
    pub dims: Vec<String>,
    /// A coordinate of its axis, written out because its own chunks do not fit the common cover.
    pub spelled_out: bool,
}

impl Placed {
    /// The chunk coordinate at index 0, per axis.
    pub fn shifts(&self) -> Result<Vec<i128>> {
        let origin = self.array.origin()?;
        let per_axis = self.first.iter().zip(origin).zip(&self.chunk);
        Ok(per_axis
            .map(|((first, origin), chunk)| {
                (i128::from(*first) - i128::from(origin)).div_euclid(i128::from((*chunk).max(1)))
            })
            .collect())
    }
}

/// An axis whose positions are not its coordinates.
#[derive(Debug)]
pub struct Index {
    /// The name of the array that holds its coordinates.
    pub name: String,
    /// The axis.
    pub dim: String,
    /// The coordinate at position 0.
    pub first: i64,
    /// How many there are.
    pub len: u64,
}

/// The arrays of a group.
#[derive(Debug)]
pub struct Cover {
    /// All of them, as given.
    pub arrays: Vec<Placed>,
    /// Axes that need their coordinates written out.
    pub indexes: Vec<Index>,
}

/// Longest padding at the low side, in chunks of the longest; past it an axis is split instead.
const PAD_CHUNKS_MAX: i128 = 64;
/// Longest coordinate array that is written out.
const SPELLED_MAX: u64 = 1 << 20;

/// What one array asks of an axis.
#[derive(Clone, Copy)]
struct Ask {
    array: usize,
    axis: usize,
    lo: i64,
    hi: i64,
    origin: i64,
    chunk: u64,
    flexible: bool,
}

impl Cover {
    /// Lays out `arrays`, each with its name and the chunk that counts. `taken` are all names in the group.
    pub fn new(arrays: Vec<(String, DynArray, Vec<u64>)>, taken: &[String]) -> Result<Self> {
        let mut placed = Vec::new();
        let mut axes: BTreeMap<String, Vec<Ask>> = BTreeMap::new();
        for (name, array, chunk) in arrays {
            let (domain, origin, dims) = (array.domain()?, array.origin()?, array.dims());
            let line = dims.len() == 1 && domain.shape().iter().all(|n| *n <= SPELLED_MAX);
            let mut names = Vec::new();
            for (axis, dim) in dims.into_iter().enumerate() {
                let (lo, hi) = domain.bounds().get(axis).copied().unwrap_or_default();
                let dim = dim.unwrap_or_else(|| format!("{name}_{axis}"));
                axes.entry(dim.clone()).or_default().push(Ask {
                    array: placed.len(),
                    axis,
                    lo,
                    hi,
                    origin: origin.get(axis).copied().unwrap_or_default(),
                    chunk: chunk.get(axis).copied().unwrap_or(1),
                    flexible: line && dim == name,
                });
                names.push(dim);
            }
            placed.push(Placed {
                name,
                array,
                first: vec![0; names.len()],
                shape: vec![0; names.len()],
                dims: names,
                chunk,
                spelled_out: false,
            });
        }
        let mut cover = Self {
            arrays: placed,
            indexes: Vec::new(),
        };
        for (dim, asks) in axes {
            cover.axis(&dim, &asks, taken);
        }
        Ok(cover)
    }

    /// Settles one axis name: together where there is a common start, else each array under a name of its own.
    fn axis(&mut self, dim: &str, asks: &[Ask], taken: &[String]) {
        if let Some(first) = common_start(asks) {
            return self.settle(dim, asks, first, taken);
        }
        for ask in asks {
            let name = self.arrays.get(ask.array).map_or("", |a| &a.name);
            let own = if ask.flexible {
                dim.to_owned()
            } else {
                format!("{dim}_{name}")
            };
            let first = common_start(&[*ask]).unwrap_or(ask.lo);
            self.settle(&own, &[*ask], first, taken);
        }
    }

    fn settle(&mut self, dim: &str, asks: &[Ask], first: i64, taken: &[String]) {
        let last = asks.iter().map(|a| a.hi).max().unwrap_or(first).max(first);
        let len = last.abs_diff(first);
        for ask in asks {
            let Some(placed) = self.arrays.get_mut(ask.array) else {
                continue;
            };
            let set = |list: &mut Vec<i64>| {
                if let Some(at) = list.get_mut(ask.axis) {
                    *at = first;
                }
            };
            set(&mut placed.first);
            if let Some(n) = placed.shape.get_mut(ask.axis) {
                *n = len;
            }
            if let Some(name) = placed.dims.get_mut(ask.axis) {
                dim.clone_into(name);
            }
            let fits = aligned(first, ask) && ask.lo == first && ask.hi == last;
            placed.spelled_out |= ask.flexible && !fits;
        }
        if first != 0 {
            let is_free = |name: &String| !taken.contains(name);
            let names = [dim.to_owned(), format!("{dim}_index")];
            if let Some(name) = names.into_iter().find(is_free) {
                let dim = dim.to_owned();
                self.indexes.push(Index {
                    name,
                    dim,
                    first,
                    len,
                });
            }
        }
    }
}

fn aligned(first: i64, ask: &Ask) -> bool {
    let apart = i128::from(first) - i128::from(ask.origin);
    apart.rem_euclid(i128::from(ask.chunk.max(1))) == 0
}

/// The greatest coordinate at or below every domain that is a chunk edge of all but those that are written out.
fn common_start(asks: &[Ask]) -> Option<i64> {
    let lo = i128::from(asks.iter().map(|a| a.lo).min()?);
    // All x with x = rest (mod step).
    let (mut rest, mut step, mut longest) = (0_i128, 1_i128, 1_i128);
    for ask in asks.iter().filter(|a| !a.flexible) {
        let chunk = i128::from(ask.chunk.max(1));
        let origin = i128::from(ask.origin);
        longest = longest.max(chunk);
        let (gcd, x) = bezout(step, chunk);
        let apart = origin.checked_sub(rest)?;
        if apart.rem_euclid(gcd) != 0 {
            return None;
        }
        let period = chunk.checked_div(gcd)?;
        let steps = apart
            .checked_div(gcd)?
            .rem_euclid(period)
            .checked_mul(x)?
            .rem_euclid(period);
        rest = rest.checked_add(step.checked_mul(steps)?)?;
        step = step.checked_mul(period)?;
        rest = rest.rem_euclid(step);
    }
    let pad = lo.checked_sub(rest)?.rem_euclid(step);
    if pad > longest.saturating_mul(PAD_CHUNKS_MAX) {
        return None;
    }
    i64::try_from(lo.checked_sub(pad)?).ok()
}

/// The greatest common divisor of two positive numbers, and x with `a * x = gcd (mod b)`.
fn bezout(a: i128, b: i128) -> (i128, i128) {
    let (mut gcd, mut rest, mut factor, mut next_factor) = (a, b, 1_i128, 0_i128);
    while rest != 0 {
        let times = gcd.div_euclid(rest);
        (gcd, rest) = (rest, gcd - times * rest);
        (factor, next_factor) = (next_factor, factor - times * next_factor);
    }
    (gcd, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(lo: i64, hi: i64, origin: i64, chunk: u64) -> Ask {
        Ask {
            array: 0,
            axis: 0,
            lo,
            hi,
            origin,
            chunk,
            flexible: false,
        }
    }

    #[test]
    fn a_common_start_is_a_chunk_edge_of_every_array_at_or_below_every_domain() {
        assert_eq!(common_start(&[ask(-7, 12, 0, 4)]), Some(-8));
        assert_eq!(common_start(&[ask(-8, 12, 0, 4)]), Some(-8));
        assert_eq!(common_start(&[ask(-7, 12, 1, 4)]), Some(-7));
        assert_eq!(
            common_start(&[ask(-7, 12, 0, 4), ask(0, 5, 0, 6)]),
            Some(-12)
        );
        assert_eq!(common_start(&[ask(-7, 12, 0, 4), ask(-9, 5, 2, 4)]), None);
        // The only ones below are 1,000,000 apart.
        assert_eq!(
            common_start(&[ask(-7, 12, 0, 1000), ask(0, 5, 1, 999)]),
            None
        );
    }

    #[test]
    fn the_start_found_is_that_of_a_search() {
        for (c1, c2) in [(4, 6), (3, 5), (6, 9), (1, 7), (8, 12)] {
            for (o1, o2) in [(0, 0), (1, 3), (-2, 4), (5, -7)] {
                for lo in -20..20 {
                    let asks = [ask(lo, lo + 3, o1, c1), ask(lo + 1, lo + 9, o2, c2)];
                    let found = (lo - 200..=lo)
                        .rev()
                        .find(|x| asks.iter().all(|a| aligned(*x, a)));
                    assert_eq!(common_start(&asks), found, "{c1} {c2} {o1} {o2} {lo}");
                }
            }
        }
    }
}
