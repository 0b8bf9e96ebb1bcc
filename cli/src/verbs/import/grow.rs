//! Sources added to an end of the arrays that are there: all of them in one commit, or nothing.
//!
//! Holds [`Growth`]: first everything is compared ([`Growth::plan`]), then written ([`Growth::add`]). An array of a source
//! that has the axis grows by it; any other must be what the container holds, to the bit. Must not read formats.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use orthant::{
    AttributeValue, Codec, Container, Domain, DynArray, DynArraySpec, Group, ObjectKind, Region,
    RegionItem,
};

use super::cells::with_boxes;
use super::copy::{self, Done, Wishes};
use super::place::Placed;
use super::plan::{How, Item, Outcome, refusal};
use crate::exit::{Failure, Result};
use crate::foreign::{Array, Boxes, Content, Stop};
use crate::session::{Session, Writing};
use crate::slabs::{Cut, slabs, stored_shape};
use crate::target::{Target, slashed};

/// Attributes without which the numbers of an array mean something else. Both sides must have the same.
const MEANING: [&str; 6] = [
    "units",
    "calendar",
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
];
/// Bytes that are compared at once.
const COMPARED: u64 = 16 << 20;

/// The axis that grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth<'a> {
    pub(super) axis: &'a str,
    /// At its low end.
    pub(super) low: bool,
    /// Encode anew what could be taken as it is.
    pub(super) recode: bool,
    /// Decode what is taken as it is.
    pub(super) verify: bool,
}

/// What an array of a source does to the one there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It is no array that can be taken.
    None,
    /// It has not got the axis, and is the same.
    Same,
    /// It is added along this axis.
    Grow(usize),
}

impl Growth<'_> {
    /// What each item does. Nothing is taken where one does not fit: arrays along one axis stay equally long.
    pub(super) fn plan(
        &self,
        items: &mut [Item],
        target: &Target,
        root: &Group,
        chosen: bool,
    ) -> Result<Vec<Step>> {
        let itself = !target.path.is_empty() && root.kind(&target.path)? == Some(ObjectKind::Array);
        if itself {
            only_one(items, target)?;
        }
        let mut steps = Vec::new();
        for item in items.iter() {
            let step = match &item.outcome {
                Outcome::Planned(array) => {
                    let into = root.dyn_array(&item.path)?;
                    self.step(item, array, &into)
                        .map_err(|f| f.in_array(&slashed(&item.path)))?
                }
                Outcome::Refused(reason) => {
                    let there =
                        item.path.is_empty() || root.kind(&item.path)? == Some(ObjectKind::Array);
                    if there {
                        return Err(refused(item, reason));
                    }
                    Step::None
                }
                _ => Step::None,
            };
            steps.push(step);
        }
        if !steps.iter().any(|s| matches!(s, Step::Grow(_))) {
            return Err(self.no_axis(items, root));
        }
        equally_long(items, &steps)?;
        if !itself && !chosen {
            self.nothing_left(items, &steps, target, root)?;
        }
        Ok(steps)
    }

    fn step(&self, item: &Item, array: &Array, into: &DynArray) -> Result<Step> {
        let data_type = &array.facts.data_type;
        if data_type != &into.data_type() {
            return Err(Failure::usage(format!(
                "the source holds {data_type}, {} holds {}",
                slashed(into.path()),
                into.data_type()
            )));
        }
        let axis = self.axis_in(array, into)?;
        let (shape, before) = (array.facts.domain.shape(), into.domain()?);
        let wanted = before.shape();
        let mut axes = shape.iter().zip(&wanted).enumerate();
        let fits = shape.len() == wanted.len() && axes.all(|(i, (a, b))| Some(i) == axis || a == b);
        if !fits {
            let but = axis.map_or(String::new(), |a| format!(" but {a}"));
            return Err(Failure::usage(format!(
                "the source has shape ({}), which does not fit the domain {before} on every axis{but}",
                crate::text::list(&shape)
            )));
        }
        match axis {
            Some(axis) => {
                same_meaning(array, into)?;
                Ok(Step::Grow(axis))
            }
            None => match same_elements(array, into) {
                Ok(true) => Ok(Step::Same),
                Ok(false) => Err(Failure::usage(format!(
                    "the source's {} has no axis {}, and its elements are not those of {}",
                    item.inside,
                    self.axis,
                    slashed(into.path())
                ))),
                Err(Stop::Source(reason)) => Err(refused(item, &reason)),
                Err(Stop::Target(failure)) => Err(failure),
            },
        }
    }

    /// The number of the axis in both; none where both have not got it.
    fn axis_in(&self, array: &Array, into: &DynArray) -> Result<Option<usize>> {
        let ours = into.dims();
        let theirs = &array.facts.dims;
        for (axis, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            if let Some(ours) = ours
                && !theirs.is_empty()
                && ours != theirs
            {
                return Err(Failure::usage(format!(
                    "axis {axis} is {ours} there and {theirs} in the source"
                )));
            }
        }
        let here = ours.iter().position(|d| d.as_deref() == Some(self.axis));
        let there = theirs.iter().position(|d| d == self.axis);
        let number = || self.axis.parse::<usize>().ok().filter(|n| *n < ours.len());
        let knows = |dims: &[&str]| dims.iter().any(|d| !d.is_empty());
        let names: Vec<&str> = theirs.iter().map(String::as_str).collect();
        let known: Vec<&str> = ours.iter().map(|d| d.as_deref().unwrap_or("")).collect();
        // A source that names other axes is not the same array on this one.
        let odd = match (here, there) {
            (Some(_), None) => knows(&names).then_some("the source"),
            (None, Some(_)) => knows(&known).then_some("the array there"),
            _ => None,
        };
        if let Some(side) = odd {
            return Err(Failure::usage(format!(
                "{side} has names for its axes, and {} is none of them",
                self.axis
            )));
        }
        Ok(here.or(there).or_else(number))
    }

    fn no_axis(&self, items: &[Item], root: &Group) -> Failure {
        let arrays: Vec<&Item> = items
            .iter()
            .filter(|i| matches!(i.outcome, Outcome::Planned(_)))
            .collect();
        if let [one] = arrays.as_slice()
            && let Ok(array) = root.dyn_array(&one.path)
            && let Err(e) = crate::selection::axis_of(self.axis, &array.dims())
        {
            return e.in_array(&slashed(&one.path));
        }
        Failure::usage(format!("no array of the sources has an axis {}", self.axis))
    }

    /// Every array with the axis must be in every source that knows axes by name.
    fn nothing_left(
        &self,
        items: &[Item],
        steps: &[Step],
        target: &Target,
        root: &Group,
    ) -> Result<()> {
        let mut sources: BTreeMap<&Path, (bool, BTreeSet<&str>)> = BTreeMap::new();
        for (item, step) in items.iter().zip(steps) {
            let Outcome::Planned(array) = &item.outcome else {
                continue;
            };
            let (knows, paths) = sources.entry(&item.source).or_default();
            if matches!(step, Step::Grow(_)) {
                *knows |= array.facts.dims.iter().any(|d| d == self.axis);
                paths.insert(item.path.trim_start_matches('/'));
            }
        }
        sources.retain(|_, (knows, _)| *knows);
        if sources.is_empty() {
            return Ok(());
        }
        for member in root.group(&target.path)?.walk()? {
            let member = member?;
            if member.kind != ObjectKind::Array {
                continue;
            }
            let bare = member.path.trim_start_matches('/');
            let missing = sources.iter().find(|(_, (_, paths))| !paths.contains(bare));
            let Some((source, _)) = missing else { continue };
            let dims = root.dyn_array(bare)?.dims();
            if dims.iter().any(|d| d.as_deref() == Some(self.axis)) {
                return Err(Failure::usage(format!(
                    "{} has no array for {}, which has axis {} too",
                    source.display(),
                    slashed(bare),
                    self.axis
                ))
                .in_array(&slashed(bare))
                .help("--array P grows only the arrays it names"));
            }
        }
        Ok(())
    }

    /// Adds one array of a source; what fails here fails the whole.
    pub(super) fn add(
        &self,
        item: &Item,
        array: &Array,
        step: Step,
        writer: &Writing,
        session: &Session,
    ) -> Result<Done> {
        let Step::Grow(axis) = step else {
            return Ok(Done::same());
        };
        let into = writer.dyn_array(&item.path)?;
        let room = self.room(&into, array, axis)?;
        let n = array.facts.domain.shape().get(axis).copied().unwrap_or(0);
        if self.low {
            into.grow(axis, n, 0)?;
        } else {
            into.grow(axis, 0, n)?;
        }
        let verify = self.verify;
        let done = self.how(array, &into, &room).and_then(|(how, all)| {
            let wishes = Wishes { all, verify };
            copy::transfer(array, &into, &room, (&how, wishes), session)
        });
        done.map_err(|stop| match stop {
            Stop::Source(reason) => refused(item, &reason).in_array(&slashed(&item.path)),
            Stop::Target(failure) => failure,
        })
    }

    /// What adding it would come to.
    pub(super) fn rehearse(&self, array: &Array, step: Step, into: &DynArray) -> Result<Done> {
        let Step::Grow(axis) = step else {
            return Ok(Done::same());
        };
        let room = self.room(into, array, axis)?;
        let (how, _) = self.how(array, into, &room).map_err(|stop| match stop {
            Stop::Source(reason) => Failure::negative("refused", reason),
            Stop::Target(failure) => failure,
        })?;
        let trial = Container::in_memory()?;
        let writer = trial.writer()?;
        let spec = DynArraySpec::new(into.data_type(), &room)
            .chunks(stored_shape(into))
            .origin(into.origin()?);
        let made = writer.create_dyn_array("trial", &spec)?;
        copy::rehearse(array, &made, &how).map_err(|stop| match stop {
            Stop::Source(reason) => Failure::negative("refused", reason),
            Stop::Target(failure) => failure,
        })
    }

    /// The box beside the domain that the source is to fill.
    fn room(&self, into: &DynArray, array: &Array, axis: usize) -> Result<Domain> {
        let n = array.facts.domain.shape().get(axis).copied().unwrap_or(0);
        let far = || Failure::usage("the axis would reach past what can be counted");
        let mut ranges = Vec::new();
        for (i, old) in into.domain()?.ranges().enumerate() {
            ranges.push(match (i == axis, self.low) {
                (false, _) => old,
                (true, true) => old.start.checked_sub_unsigned(n).ok_or_else(far)?..old.start,
                (true, false) => old.end..old.end.checked_add_unsigned(n).ok_or_else(far)?,
            });
        }
        Ok(Domain::new(ranges)?)
    }

    /// How the chunks get there, and whether those that are not stored have to be written as well.
    fn how(&self, array: &Array, into: &DynArray, room: &Domain) -> Result<(How, bool), Stop> {
        let facts = &array.facts;
        let (Content::Chunks(_), Some(grid)) = (&array.content, &facts.grid) else {
            return Ok((How::Recode, false));
        };
        let container = Container::in_memory().map_err(Failure::from)?;
        let writer = container.writer().map_err(Failure::from)?;
        let mut spec =
            DynArraySpec::new(facts.data_type.clone(), &facts.domain).chunks(grid.chunk.clone());
        if let Some(fill) = &facts.fill {
            spec = spec.fill_bytes(fill.clone());
        }
        if let Some(codecs) = &facts.codecs {
            spec = spec.codecs(codecs.iter().cloned().map(Codec::from));
        }
        let trial = writer
            .create_dyn_array("trial", &spec)
            .map_err(|e| Stop::Source(refusal(&e)))?;
        // An absent chunk, or inner chunk, means the fill value of the array it is in.
        if trial.fill_bytes() != into.fill_bytes() {
            return Ok((How::Recut, true));
        }
        let placed = Placed::new(facts, grid, room);
        if placed.and_then(|p| p.first_in(into)).is_none() {
            return Ok((How::Recut, false));
        }
        let same = facts.codecs.is_some() && trial.codecs() == into.codecs();
        Ok(if same && !self.recode {
            (How::Adopt, false)
        } else {
            (How::Recode, false)
        })
    }
}

/// Why nothing of any source is taken.
fn refused(item: &Item, reason: &str) -> Failure {
    let message = format!(
        "{} {}: {reason}; nothing was added",
        item.source.display(),
        item.inside
    );
    Failure::negative("refused", message)
}

/// A target that is an array takes one array of each source: the one of its name, or the only one.
fn only_one(items: &mut [Item], target: &Target) -> Result<()> {
    let name = target.path.rsplit('/').next().unwrap_or_default();
    let mut sources: BTreeMap<&Path, Vec<(usize, bool)>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        if !matches!(item.outcome, Outcome::Group(_)) {
            let named = item.inside.rsplit('/').next() == Some(name);
            sources.entry(&item.source).or_default().push((at, named));
        }
    }
    let mut taken = BTreeSet::new();
    for (source, arrays) in &sources {
        let named: Vec<usize> = arrays.iter().filter(|a| a.1).map(|a| a.0).collect();
        match (arrays.as_slice(), named.as_slice()) {
            ([(one, _)], _) | (_, [one]) => taken.insert(*one),
            _ => {
                return Err(Failure::usage(format!(
                    "{} holds {} arrays: --array P says which is added to {}",
                    source.display(),
                    arrays.len(),
                    target.slashed()
                )));
            }
        };
    }
    for (at, item) in items.iter_mut().enumerate() {
        if taken.contains(&at) {
            target.path.clone_into(&mut item.path);
        } else {
            item.outcome = Outcome::Made;
        }
    }
    Ok(())
}

/// Arrays of one group grow by the same number.
fn equally_long(items: &[Item], steps: &[Step]) -> Result<()> {
    let mut groups: BTreeMap<(&Path, &str), (u64, &Item)> = BTreeMap::new();
    for (item, step) in items.iter().zip(steps) {
        let (Outcome::Planned(array), Step::Grow(axis)) = (&item.outcome, step) else {
            continue;
        };
        let n = array.facts.domain.shape().get(*axis).copied().unwrap_or(0);
        let above = item.path.rsplit_once('/').map_or("", |(above, _)| above);
        let (other, first) = *groups.entry((&item.source, above)).or_insert((n, item));
        if other != n {
            return Err(Failure::usage(format!(
                "{}: {} would grow by {other}, {} by {n}",
                item.source.display(),
                slashed(&first.path),
                slashed(&item.path)
            ))
            .in_array(&slashed(&item.path)));
        }
    }
    Ok(())
}

/// Numbers that are added must mean what those that are there mean.
fn same_meaning(array: &Array, into: &DynArray) -> Result<()> {
    let there = into.attributes();
    let attributes = &array.facts.attributes;
    for name in MEANING {
        let theirs = attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        let ours = there.get(name)?;
        let equal = match name {
            "calendar" => calendar(theirs) == calendar(ours.as_ref()),
            _ => theirs == ours.as_ref(),
        };
        if !equal {
            let shown = |v: Option<&AttributeValue>| {
                v.map_or("none".to_owned(), |v| v.to_json().to_string())
            };
            return Err(Failure::usage(format!(
                "{name} of {} is {}, of the source {}",
                slashed(into.path()),
                shown(ours.as_ref()),
                shown(theirs)
            )));
        }
    }
    Ok(())
}

/// A calendar under one of its names; none is the standard one.
fn calendar(value: Option<&AttributeValue>) -> Option<String> {
    let Some(value) = value else {
        return Some("standard".to_owned());
    };
    let name = value.as_str()?.to_ascii_lowercase();
    Some(match name.as_str() {
        "gregorian" => "standard".to_owned(),
        "365_day" => "noleap".to_owned(),
        "366_day" => "all_leap".to_owned(),
        _ => name,
    })
}

/// Whether a source's elements are those of an array of the same type and shape, to the bit.
fn same_elements(array: &Array, into: &DynArray) -> Result<bool, Stop> {
    let domain = into.domain().map_err(Failure::from)?;
    let origin = into.origin().map_err(Failure::from)?;
    with_boxes(array, |boxes: &dyn Boxes| {
        let (step, stored) = (vec![1; domain.rank()], stored_shape(into));
        let pieces = slabs(Cut {
            bounds: domain.bounds(),
            step: &step,
            chunk_shape: &stored,
            origin: &origin,
            item: into.data_type().item_size().map_or(64, |n| n as u64).max(1),
            budget: COMPARED,
        });
        for piece in pieces {
            let shape: Vec<u64> = piece.iter().map(|&(lo, hi)| hi.abs_diff(lo)).collect();
            let starts = piece.iter().zip(domain.bounds());
            let lower: Vec<u64> = starts
                .map(|((lo, _), (zero, _))| lo.abs_diff(*zero))
                .collect();
            let region: Region = piece
                .iter()
                .map(|&(lo, hi)| RegionItem::from(lo..hi))
                .collect();
            let ours = into.read(region).map_err(Failure::from)?;
            if boxes.read(&lower, &shape)? != ours.elements {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
