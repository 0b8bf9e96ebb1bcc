//! What an import is going to do: an item for every node of its sources, and the array that each is to become.
//!
//! Holds [`Item`], [`Outcome`] and [`How`]. Must not write.

use std::path::{Path, PathBuf};

use orthant::{Codec, Container, DynArraySpec};

use super::Import;
use super::copy::Done;
use crate::exit::{Failure, Result};
use crate::foreign::{self, Array, Attributes, Facts, Grid, Node, Stop, What};
use crate::selection::numbers;
use crate::target::{Target, slashed};
use crate::verbs::create::{codecs, named_chunks};

/// One node of a source, and what comes of it.
pub(super) struct Item {
    pub(super) source: PathBuf,
    /// The source's kind.
    pub(super) kind: &'static str,
    /// The path inside the source.
    pub(super) inside: String,
    /// The path it gets.
    pub(super) path: String,
    pub(super) outcome: Outcome,
    pub(super) notes: Vec<String>,
}

pub(super) enum Outcome {
    /// Waits to be written.
    Planned(Box<Array>),
    Group(Attributes),
    /// Is being written.
    Taken,
    /// A group that is there.
    Made,
    /// Nothing to take.
    Aside,
    Refused(String),
    Done(Done),
}

impl Outcome {
    pub(super) fn is_planned(&self) -> bool {
        matches!(self, Self::Planned(_) | Self::Group(_))
    }
}

impl Item {
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }
}

/// How chunks get into the new array.
#[derive(Debug)]
pub(super) enum How {
    /// As they are stored.
    Adopt,
    /// Decoded and encoded anew, on the source's grid.
    Recode,
    /// Decoded, and cut anew.
    Recut,
}

impl Import {
    pub(super) fn plan(&self, source: &Path, target: &Target, items: &mut Vec<Item>) -> Result<()> {
        let foreign::Source { kind, nodes } = foreign::open(source)?;
        for node in nodes {
            if !self.wants(&node) {
                continue;
            }
            let path = match (target.path.as_str(), node.path.as_str()) {
                (above, "") => above.to_owned(),
                ("", below) => below.to_owned(),
                (above, below) => format!("{above}/{below}"),
            };
            let (outcome, notes) = match node.what {
                What::Group(attributes) => (Outcome::Group(attributes), Vec::new()),
                What::Aside(note) => (Outcome::Aside, vec![note]),
                What::Refused(reason) => (Outcome::Refused(reason), Vec::new()),
                What::Array(mut array) => {
                    let notes = std::mem::take(&mut array.facts.notes);
                    (Outcome::Planned(array), notes)
                }
            };
            items.push(Item {
                source: source.to_owned(),
                kind,
                inside: node.inside,
                path,
                outcome,
                notes,
            });
        }
        Ok(())
    }

    fn wants(&self, node: &Node) -> bool {
        let named = |p: &String| {
            let p = p.trim_start_matches('/');
            p == node.inside.trim_start_matches('/') || p == node.path
        };
        // A source that is refused as a whole is told whatever was asked for.
        match node.what {
            _ if self.array.is_empty() => true,
            What::Group(_) => false,
            What::Refused(_) if node.path.is_empty() => true,
            _ => self.array.iter().any(named),
        }
    }

    /// Every `--array` must name something, and two arrays cannot get one path.
    pub(super) fn check_names(&self, items: &[Item]) -> Result<()> {
        if !items
            .iter()
            .any(|i| !matches!(i.outcome, Outcome::Group(_)))
            && (!self.array.is_empty() || items.is_empty())
        {
            return Err(Failure::not_found(if self.array.is_empty() {
                "the sources hold no array".to_owned()
            } else {
                format!(
                    "no array of that name in the sources: {}",
                    self.array.join(", ")
                )
            }));
        }
        let mut paths: Vec<&str> = items
            .iter()
            .filter(|i| matches!(i.outcome, Outcome::Planned(_)))
            .map(|i| i.path.as_str())
            .collect();
        paths.sort_unstable();
        for pair in paths.windows(2) {
            if let [a, b] = pair
                && a == b
                && self.growth().is_none()
            {
                return Err(Failure::usage(format!(
                    "two sources would become {}",
                    slashed(a)
                )));
            }
        }
        Ok(())
    }

    /// The array that is to be made, and how its chunks get there. What a container cannot be is the source's fault; what
    /// the command line asks for and cannot be is told as that.
    pub(super) fn spec(&self, facts: &Facts) -> std::result::Result<(DynArraySpec, How), Stop> {
        let dims = self.dims_of(facts)?;
        let (grid, recut) = self.grid_of(facts, &dims)?;
        let adopted = facts
            .codecs
            .as_ref()
            .filter(|_| !recut && !self.recode && self.codecs.is_none());
        let mut spec = DynArraySpec::new(facts.data_type.clone(), &facts.domain).dims(&dims);
        if let Some(fill) = &facts.fill {
            spec = spec.fill_bytes(fill.clone());
        }
        if let Some(grid) = &grid {
            spec = spec.chunks(grid.chunk.clone()).origin(grid.origin.clone());
        } else if let Some(text) = &self.origin {
            spec = spec.origin(numbers::<i64>("--origin", text)?);
        }
        if let Some(list) = adopted {
            spec = spec.codecs(list.iter().cloned().map(Codec::from));
        } else if let Some(list) = &self.codecs {
            spec = spec.codecs(codecs(list)?);
        }
        let how = match (adopted, recut) {
            (Some(_), _) => How::Adopt,
            (None, true) => How::Recut,
            (None, false) => How::Recode,
        };
        self.try_out(facts, &spec)?;
        Ok((spec, how))
    }

    fn dims_of(&self, facts: &Facts) -> Result<Vec<String>> {
        let Some(given) = &self.dims else {
            return Ok(facts.dims.clone());
        };
        let rank = facts.domain.rank();
        if given.len() > rank {
            return Err(Failure::usage(format!(
                "--dims names {} axes, the source has {rank}",
                given.len()
            )));
        }
        let mut dims = given.clone();
        dims.resize(rank, String::new());
        Ok(dims)
    }

    /// The grid that is asked for, else the source's; and whether it is another than the source's.
    fn grid_of(&self, facts: &Facts, dims: &[String]) -> Result<(Option<Grid>, bool)> {
        let shape = facts.domain.shape();
        let chunk = match &self.chunks {
            None => None,
            Some(text) if text.contains('=') => {
                let names: Vec<Option<String>> = dims
                    .iter()
                    .map(|d| (!d.is_empty()).then(|| d.clone()))
                    .collect();
                Some(named_chunks(text, &names, &shape)?)
            }
            Some(text) => Some(numbers("--chunks", text)?),
        };
        let origin = match &self.origin {
            None => None,
            Some(text) => Some(numbers::<i64>("--origin", text)?),
        };
        let Some(own) = &facts.grid else {
            let Some(chunk) = chunk else {
                return Ok((None, false));
            };
            let mut grid = Grid::from_zero(chunk);
            grid.origin = origin.unwrap_or(grid.origin);
            return Ok((Some(grid), false));
        };
        let grid = Grid {
            chunk: chunk.unwrap_or_else(|| own.chunk.clone()),
            origin: origin.unwrap_or_else(|| own.origin.clone()),
            first: own.first.clone(),
        };
        let recut = grid != *own;
        Ok((Some(grid), recut))
    }

    /// Makes the array where it costs nothing, to learn whether it can be: then it is the source that cannot be taken, or,
    /// where the same array could be made without what was asked for, the argument.
    fn try_out(&self, facts: &Facts, spec: &DynArraySpec) -> std::result::Result<(), Stop> {
        let make = |spec: &DynArraySpec| -> orthant::Result<()> {
            let container = Container::in_memory()?;
            let writer = container.writer()?;
            writer.create_dyn_array("trial", spec).map(drop)
        };
        let Err(e) = make(spec) else {
            return Ok(());
        };
        let asked = self.chunks.is_some() || self.codecs.is_some() || self.origin.is_some();
        let plain = DynArraySpec::new(facts.data_type.clone(), &facts.domain);
        if (asked || self.dims.is_some()) && make(&plain).is_ok() {
            return Err(Stop::Target(Failure::from(e).into_argument()));
        }
        Err(Stop::Source(refusal(&e)))
    }
}

/// An error about a trial as a reason to refuse, without the trial's name.
pub(super) fn refusal(e: &orthant::Error) -> String {
    let text = e.to_string();
    let bare = text.strip_prefix("/trial: ").unwrap_or(&text);
    bare.to_owned()
}
