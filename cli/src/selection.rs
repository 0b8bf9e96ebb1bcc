//! What part of an array a command line selects: brackets, `--sel`, `--label`, `--clip`, `--index`.
//!
//! Holds [`Selecting`], the arguments, and their resolution against an array. Must not read the elements selected.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use orthant::{
    Block, Bound, DataType, Domain, DynArray, Elements, Group, Json, Region, RegionItem, Selection,
};

use crate::exit::{Failure, Result};
use crate::labels;
use crate::source;
use crate::target::Target;

/// Arguments that select a part of an array.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selecting {
    /// FILE:/ARRAY, or 'FILE:/ARRAY[SEL]'
    #[arg(value_name = "FILE:/ARRAY[SEL]")]
    pub(crate) target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    pub(crate) path: Option<String>,
    /// Select by coordinates: all axes (-48:0,10:20) or one by name or number (time=-48:0)
    #[arg(long = "sel", value_name = "[AXIS=]SEL", allow_hyphen_values = true)]
    pub(crate) sel: Vec<String>,
    /// Select by an axis's coordinate array, both ends included (time=2020-01-01:2020-02-01)
    #[arg(long = "label", value_name = "AXIS=A[:B]", allow_hyphen_values = true)]
    pub(crate) label: Vec<String>,
    /// Cut ranges to the domain; a single index outside stays an error
    #[arg(long)]
    pub(crate) clip: bool,
    /// Pick an axis's coordinates one by one: a .npy of integers, or of booleans, one for each coordinate of the domain
    #[arg(
        long = "index",
        value_name = "AXIS=FILE.npy",
        allow_hyphen_values = true
    )]
    pub(crate) index: Vec<String>,
}

/// A selection with every bound a coordinate.
#[derive(Debug, Clone)]
pub(crate) struct Selected {
    /// One item an axis, ranges closed.
    pub(crate) region: Region,
    /// The box, dropped axes one element wide.
    pub(crate) bounds: Vec<(i64, i64)>,
    /// Step per axis.
    pub(crate) step: Vec<u64>,
    /// Axes given as a single index.
    pub(crate) drop_axes: Vec<usize>,
    /// Coordinates picked one by one, per axis that has them.
    pub(crate) lists: BTreeMap<usize, Vec<i64>>,
}

impl Selected {
    /// What the library reads.
    pub(crate) fn selection(&self) -> Selection {
        let lists = self.lists.iter();
        lists.fold(Selection::from(&self.region), |s, (axis, list)| {
            s.list(*axis, list.iter().copied())
        })
    }

    /// Whether coordinates are picked one by one.
    pub(crate) fn has_lists(&self) -> bool {
        !self.lists.is_empty()
    }

    fn add_list(&mut self, text: &str, array: &DynArray) -> Result<()> {
        let (name, file) = text.rsplit_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "--index {text}: an axis and a file, as --index y=rows.npy"
            ))
        })?;
        let axis = axis_of(name, &array.dims())?;
        let list = coordinates(text, &source::npy(Path::new(file))?, axis, &array.domain()?)?;
        let whole = array.domain()?.bounds().get(axis).copied();
        let free = self.bounds.get(axis).copied() == whole
            && self.step.get(axis) == Some(&1)
            && !self.drop_axes.contains(&axis);
        if !free || self.lists.contains_key(&axis) {
            return Err(Failure::usage(format!(
                "--index {text}: the axis is selected twice"
            )));
        }
        if let Some(bounds) = self.bounds.get_mut(axis) {
            let low = list.iter().min().copied().unwrap_or(bounds.0);
            let high = list.iter().max().map_or(low, |x| x.saturating_add(1));
            *bounds = (low, high);
        }
        self.lists.insert(axis, list);
        Ok(())
    }
}

/// The coordinates that a file of integers or booleans picks.
fn coordinates(text: &str, block: &Block, axis: usize, domain: &Domain) -> Result<Vec<i64>> {
    let range = domain.range(axis).unwrap_or(0..0);
    let refuse = |what: String| Failure::usage(format!("--index {text}: {what}"));
    let no_coordinates = |t: &DataType| refuse(format!("elements of type {t} are no coordinates"));
    let [count] = block.shape.as_slice() else {
        return Err(refuse(format!(
            "a list has one axis, this file {}",
            block.shape.len()
        )));
    };
    let Elements::Fixed(bytes) = &block.elements else {
        return Err(no_coordinates(&block.data_type));
    };
    if block.data_type == DataType::Bool {
        let extent = range.end.abs_diff(range.start);
        if *count != extent {
            return Err(refuse(format!(
                "a mask has an entry for each of the {extent} coordinates of axis {axis} in the domain {domain}, this one {count}"
            )));
        }
        return Ok(range
            .zip(bytes)
            .filter(|(_, on)| **on != 0)
            .map(|(x, _)| x)
            .collect());
    }
    let size = block.data_type.item_size().unwrap_or(1).max(1);
    let list = bytes
        .chunks_exact(size)
        .map(|bytes| match block.data_type.element_to_json(bytes) {
            Json::I64(x) => Ok(x),
            _ => Err(no_coordinates(&block.data_type)),
        });
    let list = list.collect::<Result<Vec<i64>>>()?;
    match list.iter().find(|x| !range.contains(x)) {
        Some(x) => Err(Failure::usage(format!(
            "--index {text}: {x} is outside [{},{}) on axis {axis}",
            range.start, range.end
        ))),
        None => Ok(list),
    }
}

impl Selecting {
    pub(crate) fn target(&self) -> Result<Target> {
        let target = Target::with_path(&self.target, self.path.as_deref())?;
        if target.selection.is_some() && !self.sel.is_empty() {
            return Err(Failure::usage(format!(
                "{}: a selection in brackets and --sel exclude each other",
                self.target
            )));
        }
        target.object()
    }

    /// What brackets or `--sel` say, without the labels.
    pub(crate) fn region(&self, target: &Target, array: &DynArray) -> Result<Region> {
        match &target.selection {
            Some(text) => parse_all(text),
            None => from_flags(&self.sel, &array.dims(), array.rank()),
        }
    }

    /// The selection within the array, bounds checked or cut.
    pub(crate) fn resolve(
        &self,
        target: &Target,
        array: &DynArray,
        root: &Group,
    ) -> Result<Selected> {
        let domain = array.domain()?;
        let region = self.region(target, array)?;
        let region = labels::apply(&self.label, region, array, root)?;
        let mut selected = within(&region, &domain, self.clip)
            .map_err(|f| f.in_file(&target.file).in_array(&target.slashed()))?;
        for text in &self.index {
            selected.add_list(text, array)?;
        }
        Ok(selected)
    }
}

/// The region with its bounds closed.
pub(crate) fn within(region: &Region, domain: &Domain, clip: bool) -> Result<Selected> {
    let region = region.within(domain, clip)?;
    let (mut bounds, mut step, mut drop_axes) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, item) in region.items().iter().enumerate() {
        match *item {
            RegionItem::Range {
                start: Some(Bound::At(lo)),
                end: Some(Bound::At(hi)),
                step: s,
            } => {
                bounds.push((lo, hi));
                step.push(s);
            }
            RegionItem::Index(Bound::At(x)) => {
                bounds.push((x, x.saturating_add(1)));
                step.push(1);
                drop_axes.push(axis);
            }
            // `within` gives closed bounds only.
            _ => return Err(Failure::usage(format!("selection {region}: not closed"))),
        }
    }
    Ok(Selected {
        region,
        bounds,
        step,
        drop_axes,
        lists: BTreeMap::new(),
    })
}

/// `--sel` for all axes at once, or once an axis; axes not named are whole.
fn from_flags(sel: &[String], dims: &[Option<String>], rank: usize) -> Result<Region> {
    if let [one] = sel
        && !one.contains('=')
    {
        return parse_all(one);
    }
    let mut items = vec![None; rank];
    for text in sel {
        let Some((name, value)) = text.rsplit_once('=') else {
            return Err(Failure::usage(format!(
                "--sel {text}: several --sel each name an axis, as --sel time=-48:0"
            )));
        };
        let axis = axis_of(name, dims)?;
        let parsed = parse_all(value)?;
        let [item] = parsed.items() else {
            return Err(Failure::usage(format!(
                "--sel {text}: one range or coordinate for the axis"
            )));
        };
        if *item == RegionItem::Ellipsis {
            return Err(Failure::usage(format!(
                "--sel {text}: `...` is no range; leave the axis out to take it whole"
            )));
        }
        if let Some(slot) = items.get_mut(axis)
            && slot.replace(*item).is_some()
        {
            return Err(Failure::usage(format!(
                "--sel {text}: the axis is named twice"
            )));
        }
    }
    Ok(items
        .into_iter()
        .map(|i| i.unwrap_or_else(|| RegionItem::from(..)))
        .collect())
}

/// Reads the text of a selection. Values that are no coordinates point to `--label`.
pub(crate) fn parse_all(text: &str) -> Result<Region> {
    text.parse::<Region>().map_err(|e| {
        let syntax = e.reason_code() == Some("syntax");
        let failure = Failure::from(e);
        if syntax {
            failure.help("--label selects by coordinate values, as --label time=2020-01-01:2020-02-01; --sel and [..] take integers, `begin` and `end`")
        } else {
            failure
        }
    })
}

/// The axis of that name, or of that number.
pub(crate) fn axis_of(name: &str, dims: &[Option<String>]) -> Result<usize> {
    let name = name.trim();
    if let Some(axis) = dims.iter().position(|d| d.as_deref() == Some(name)) {
        return Ok(axis);
    }
    match name.parse::<usize>() {
        Ok(axis) if axis < dims.len() => Ok(axis),
        _ => {
            let there: Vec<String> = dims
                .iter()
                .enumerate()
                .map(|(i, d)| match d {
                    Some(d) => format!("{i} ({d})"),
                    None => i.to_string(),
                })
                .collect();
            let there = if there.is_empty() {
                "the array has no axes".to_owned()
            } else {
                format!("the axes are {}", there.join(", "))
            };
            Err(Failure::usage(format!("no axis {name:?}: {there}")))
        }
    }
}

/// A list of whole numbers, one an axis: `24,180,360`.
pub(crate) fn numbers<T: std::str::FromStr>(flag: &str, text: &str) -> Result<Vec<T>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|part| {
            part.trim().parse().map_err(|_| {
                Failure::usage(format!(
                    "{flag} {text}: {:?} is no whole number in range",
                    part.trim()
                ))
            })
        })
        .collect()
}

/// The box of a `--domain` argument; empty text is rank 0.
pub(crate) fn domain(text: &str) -> Result<Domain> {
    Ok(parse_all(text)?.to_domain()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims() -> Vec<Option<String>> {
        vec![Some("time".into()), None, Some("x".into())]
    }

    #[test]
    fn one_flag_selects_all_axes_and_several_name_theirs() {
        let all = from_flags(&["-48:0,10:20,:".into()], &dims(), 3).unwrap();
        assert_eq!(all.to_string(), "[-48:0, 10:20, :]");
        let by_axis = from_flags(&["x=-3".into(), "time=-48:0".into()], &dims(), 3).unwrap();
        assert_eq!(by_axis.to_string(), "[-48:0, :, -3]");
        let by_number = from_flags(&["1=begin:end-1".into()], &dims(), 3).unwrap();
        assert_eq!(by_number.to_string(), "[:, begin:end-1, :]");
        assert_eq!(
            from_flags(&[], &dims(), 3).unwrap().to_string(),
            "[:, :, :]"
        );
        assert_eq!(
            from_flags(&[String::new()], &[], 0).unwrap().items().len(),
            0
        );
    }

    #[test]
    fn a_label_where_a_coordinate_belongs_points_to_the_label_flag() {
        for text in ["time=2020-01-01", "time=1.5:2", "time=noon"] {
            let e = from_flags(&[text.into()], &dims(), 3).unwrap_err();
            assert_eq!(e.code(), "invalid_argument", "{text}");
            assert!(
                e.to_stderr(false, false).unwrap().contains("--label"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_axis_is_named_once_and_must_exist() {
        assert!(from_flags(&["x=1".into(), "2=1".into()], &dims(), 3).is_err());
        assert!(from_flags(&["z=1".into()], &dims(), 3).is_err());
        assert!(from_flags(&["3=1".into()], &dims(), 3).is_err());
        assert!(from_flags(&["x=1,2".into()], &dims(), 3).is_err());
    }

    #[test]
    fn lists_of_numbers_are_exact() {
        assert_eq!(numbers::<i64>("--by", "-3, 4").unwrap(), [-3, 4]);
        assert!(numbers::<u64>("--chunks", "-3").is_err());
        assert!(numbers::<u64>("--chunks", "").unwrap().is_empty());
        assert_eq!(domain("").unwrap().rank(), 0);
        assert_eq!(domain("-48:0,0:3").unwrap().to_string(), "[-48:0, 0:3]");
    }
}
