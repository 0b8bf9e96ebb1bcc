//! Regions: what a caller asks for, as text, as a macro, or built from parts; and their meaning within a domain.
//!
//! Holds [`Region`] (a value without a domain) and [`Picked`] (the same, resolved against one). Must not clip silently:
//! a coordinate outside the domain is an error that shows the domain.
//!
//! Grammar (`format-spec/11-coordinates.md`): `-48:0, 10:20:2, 7, begin+1:end-3, ...`; integers are coordinates, `end` is one past the last.

use std::fmt;
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};
use std::str::FromStr;

use smallvec::SmallVec;

use super::Domain;
use super::domain::index_limit;
use crate::error::{Error, Result};
use crate::limits::{INDEX_MAX, UPPER_MAX};

/// One end of a range, or a single index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A coordinate; negative numbers are coordinates too.
    At(i64),
    /// This far above the domain's lower bound.
    Begin(i64),
    /// This far above the domain's exclusive upper bound (so `End(-1)` is the last coordinate).
    End(i64),
}

/// What a region says about one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionItem {
    /// A half-open range; an open end is the domain's. Takes every `step`-th coordinate from the start on.
    Range {
        /// First coordinate.
        start: Option<Bound>,
        /// Exclusive end.
        end: Option<Bound>,
        /// At least 1.
        step: u64,
    },
    /// A single coordinate; the axis is dropped from the result.
    Index(Bound),
    /// Every axis that is not named; at most once.
    Ellipsis,
}

/// A box of signed coordinates, as a caller writes it: one item per axis.
///
/// Build it with [`crate::region!`], parse it from text, or collect [`RegionItem`]s.
///
/// ```
/// # use orthant::{region, Region};
/// let a = region![-48..0, 10..20, 7];
/// let b: Region = "-48:0, 10:20, 7".parse()?;
/// assert_eq!(a, b);
/// # Ok::<(), orthant::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Region {
    items: SmallVec<[RegionItem; 8]>,
}

/// A range with a step: `(0..360).step(4)`.
pub trait Stepped {
    /// Takes every `step`-th coordinate; 0 is an error when the region is used.
    fn step(self, step: u64) -> RegionItem;
}

impl<T: Into<RegionItem>> Stepped for T {
    fn step(self, step: u64) -> RegionItem {
        match self.into() {
            RegionItem::Range { start, end, .. } => RegionItem::Range { start, end, step },
            other => other,
        }
    }
}

macro_rules! items_from {
    ($($int:ty),*) => {$(
        impl From<$int> for RegionItem {
            fn from(x: $int) -> Self {
                Self::Index(Bound::At(i64::from(x)))
            }
        }
        impl From<Range<$int>> for RegionItem {
            fn from(r: Range<$int>) -> Self {
                Self::Range { start: Some(Bound::At(i64::from(r.start))), end: Some(Bound::At(i64::from(r.end))), step: 1 }
            }
        }
        impl From<RangeFrom<$int>> for RegionItem {
            fn from(r: RangeFrom<$int>) -> Self {
                Self::Range { start: Some(Bound::At(i64::from(r.start))), end: None, step: 1 }
            }
        }
        impl From<RangeTo<$int>> for RegionItem {
            fn from(r: RangeTo<$int>) -> Self {
                Self::Range { start: None, end: Some(Bound::At(i64::from(r.end))), step: 1 }
            }
        }
    )*};
}
items_from!(i32, i64);

impl From<RangeFull> for RegionItem {
    fn from(_: RangeFull) -> Self {
        Self::Range {
            start: None,
            end: None,
            step: 1,
        }
    }
}

/// Builds a [`Region`] from `a..b`, `a..`, `..b`, `..`, a single coordinate (drops the axis) and `(a..b).step(s)`.
///
/// Numbers are coordinates; negative ones too. `region![]` is the region of a rank-0 array.
#[macro_export]
macro_rules! region {
    ($($item:expr),* $(,)?) => {{
        use $crate::Stepped as _;
        // The trait serves stepped items; naming it here keeps the import used where there are none.
        let _ = |item: $crate::RegionItem| item.step(1);
        $crate::Region::from_items([$($crate::RegionItem::from($item)),*] as [$crate::RegionItem; _])
    }};
}

impl Region {
    /// A region of the given items, one per axis.
    pub fn from_items(items: impl IntoIterator<Item = RegionItem>) -> Self {
        Self {
            items: items.into_iter().collect(),
        }
    }

    /// Every axis whole, whatever the rank.
    #[must_use]
    pub fn all() -> Self {
        Self::from_items([RegionItem::Ellipsis])
    }

    /// The box itself.
    #[must_use]
    pub fn from_domain(domain: &Domain) -> Self {
        domain.ranges().map(RegionItem::from).collect()
    }

    /// What the region says, item by item.
    pub fn items(&self) -> &[RegionItem] {
        &self.items
    }

    /// The box this region names by itself, for creating arrays: every bound must be a plain coordinate.
    ///
    /// # Errors
    /// `InvalidArgument` for an open bound, a single index, a step or `...`; otherwise as [`Domain::new`].
    pub fn to_domain(&self) -> Result<Domain> {
        let ranges = self
            .items
            .iter()
            .enumerate()
            .map(|(axis, item)| match *item {
                RegionItem::Range {
                    start: Some(Bound::At(lo)),
                    end: Some(Bound::At(hi)),
                    step: 1,
                } => Ok(lo..hi),
                _ => Err(Error::invalid(format!("domain on axis {axis}"))
                    .expected("a range such as -48:0")
                    .found(item)
                    .reason("syntax")),
            });
        Domain::new(ranges.collect::<Result<Vec<_>>>()?)
    }

    /// The same region with every bound a plain coordinate and one item an axis: what a read of it in `domain` takes. With
    /// `clip`, ranges are cut to the domain; single indexes never.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`, `reversed`, `syntax` for a zero step), `OutOfDomain`, `LimitExceeded` (`index_limit`).
    pub fn within(&self, domain: &Domain, clip: bool) -> Result<Self> {
        let picked = self.resolve(domain, clip)?;
        let item = |axis: &Axis| match *axis {
            Axis::Range { lo, drop: true, .. } => Some(RegionItem::Index(Bound::At(lo))),
            Axis::Range { lo, hi, step, .. } => Some(RegionItem::Range {
                start: Some(Bound::At(lo)),
                end: Some(Bound::At(hi)),
                step,
            }),
            // A region alone lists nothing.
            Axis::List(_) => None,
        };
        Ok(picked.axes.iter().filter_map(item).collect())
    }

    /// The coordinates this region picks in `domain`. With `clip`, ranges are cut to it; single indexes never.
    ///
    /// # Errors
    /// `InvalidArgument` (`rank`, `reversed`, `syntax` for a zero step), `OutOfDomain`, `LimitExceeded` (`index_limit`).
    pub(crate) fn resolve(&self, domain: &Domain, clip: bool) -> Result<Picked> {
        let full = RegionItem::from(..);
        let rank = domain.rank();
        let ellipsis = self
            .items
            .iter()
            .position(|i| matches!(i, RegionItem::Ellipsis));
        let named = self
            .items
            .len()
            .saturating_sub(usize::from(ellipsis.is_some()));
        if named > rank || (ellipsis.is_none() && named != rank) {
            return Err(Error::invalid("selection")
                .expected(format_args!("{rank} axes, for the domain {domain}"))
                .found(named)
                .reason("rank"));
        }
        let before = ellipsis.unwrap_or(self.items.len());
        let gap = rank.saturating_sub(named);
        let head = self.items.iter().take(before);
        let tail = self.items.iter().skip(before.saturating_add(1));
        let items = head.chain(std::iter::repeat_n(&full, gap)).chain(tail);
        let axes = items
            .zip(domain.bounds())
            .enumerate()
            .map(|(axis, (item, &bounds))| Axis::resolve(axis, *item, bounds, clip))
            .collect::<Result<_>>()?;
        Ok(Picked { axes })
    }
}

impl FromIterator<RegionItem> for Region {
    fn from_iter<I: IntoIterator<Item = RegionItem>>(items: I) -> Self {
        Self::from_items(items)
    }
}

impl From<&Domain> for Region {
    fn from(domain: &Domain) -> Self {
        Self::from_domain(domain)
    }
}

impl From<Domain> for Region {
    fn from(domain: Domain) -> Self {
        Self::from_domain(&domain)
    }
}

impl From<&Region> for Region {
    fn from(region: &Region) -> Self {
        region.clone()
    }
}

/// What a region picks on one axis, within the domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Every `step`-th coordinate of `lo..hi`, from `lo` on; the axis is left out of the result when `drop`.
    Range {
        lo: i64,
        hi: i64,
        step: u64,
        drop: bool,
    },
    /// The listed coordinates, in this order, repeats allowed.
    List(std::sync::Arc<[i64]>),
}

impl Axis {
    fn resolve(axis: usize, item: RegionItem, (lo, hi): (i64, i64), clip: bool) -> Result<Self> {
        let place = |b: Bound| match b {
            Bound::At(x) => i128::from(x),
            Bound::Begin(k) => i128::from(lo).wrapping_add(i128::from(k)),
            Bound::End(k) => i128::from(hi).wrapping_add(i128::from(k)),
        };
        match item {
            RegionItem::Ellipsis => Err(Error::invalid("selection")
                .expected("at most one `...`")
                .found("two")
                .reason("syntax")),
            RegionItem::Index(b) => {
                let x = finite(axis, place(b), INDEX_MAX)?;
                if x < lo || x >= hi {
                    return Err(outside(axis, &x.to_string(), lo, hi, x < 0 && lo >= 0));
                }
                Ok(Self::Range {
                    lo: x,
                    hi: x.saturating_add(1),
                    step: 1,
                    drop: true,
                })
            }
            RegionItem::Range { step: 0, .. } => {
                Err(Error::invalid(format!("step on axis {axis}"))
                    .expected("at least 1")
                    .found(0)
                    .reason("syntax"))
            }
            RegionItem::Range { start, end, step } => {
                let a = finite(axis, start.map_or(i128::from(lo), place), UPPER_MAX)?;
                let b = finite(axis, end.map_or(i128::from(hi), place), UPPER_MAX)?;
                if a > b {
                    return Err(Error::invalid(format!("range on axis {axis}"))
                        .expected("an end at or above the start")
                        .found(format_args!("{a}:{b}"))
                        .help(format!("coordinates are absolute, the domain is {lo}:{hi}; to count from the end write end-1"))
                        .reason("reversed"));
                }
                if clip {
                    return Ok(Self::Range {
                        lo: a.clamp(lo, hi),
                        hi: b.clamp(lo, hi),
                        step,
                        drop: false,
                    });
                }
                if a < lo || b > hi {
                    return Err(outside(axis, &format!("{a}:{b}"), lo, hi, a < 0 && lo >= 0));
                }
                Ok(Self::Range {
                    lo: a,
                    hi: b,
                    step,
                    drop: false,
                })
            }
        }
    }

    /// How many coordinates are picked.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range { lo, hi, step, .. } => hi.abs_diff(*lo).div_ceil(*step),
            Self::List(list) => list.len() as u64,
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        matches!(self, Self::Range { drop: true, .. })
    }
}

fn finite(axis: usize, x: i128, max: i64) -> Result<i64> {
    match i64::try_from(x) {
        Ok(v) if (-INDEX_MAX..=max).contains(&v) => Ok(v),
        _ => Err(index_limit(axis, x)),
    }
}

fn outside(axis: usize, found: &str, lo: i64, hi: i64, from_end_habit: bool) -> Error {
    let e = Error::out_of_domain(format!("{found} is outside [{lo},{hi}) on axis {axis}"))
        .reason("out_of_domain");
    if from_end_habit {
        e.help("to count from the end write end-1")
    } else {
        e
    }
}

/// A region resolved against a domain: what to read or write on each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) axes: SmallVec<[Axis; 8]>,
}

impl Picked {
    /// Every element of `domain`.
    pub(crate) fn whole(domain: &Domain) -> Self {
        let axes = domain.bounds().iter().map(|&(lo, hi)| Axis::Range {
            lo,
            hi,
            step: 1,
            drop: false,
        });
        Self {
            axes: axes.collect(),
        }
    }

    /// Picked elements per axis, dropped axes included (as 1).
    pub(crate) fn extents(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.axes.iter().map(Axis::len)
    }

    /// Shape of the result: extents without the dropped axes.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.axes
            .iter()
            .filter(|a| !a.is_dropped())
            .map(Axis::len)
            .collect()
    }

    /// Number of picked elements, or `None` past `u128`.
    pub(crate) fn element_count(&self) -> Option<u128> {
        if self.is_empty() {
            return Some(0);
        }
        self.extents()
            .try_fold(1_u128, |n, e| n.checked_mul(u128::from(e)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extents().any(|n| n == 0)
    }
}

impl FromStr for Region {
    type Err = Error;

    /// Parses the grammar at the head of this file's specification; brackets and spaces are optional.
    fn from_str(text: &str) -> Result<Self> {
        let bare: String = text.chars().filter(|c| *c != ' ').collect();
        let inner = match (bare.strip_prefix('['), bare.strip_suffix(']')) {
            (Some(rest), Some(_)) => rest.strip_suffix(']').unwrap_or(rest),
            (None, None) => bare.as_str(),
            _ => return Err(syntax(text, "matching brackets")),
        };
        if inner.is_empty() {
            return Ok(Self::default());
        }
        let items: SmallVec<[RegionItem; 8]> = inner
            .split(',')
            .map(|item| parse_item(text, item))
            .collect::<Result<_>>()?;
        if items
            .iter()
            .filter(|i| matches!(i, RegionItem::Ellipsis))
            .count()
            > 1
        {
            return Err(syntax(text, "at most one `...`"));
        }
        Ok(Self { items })
    }
}

fn parse_item(text: &str, item: &str) -> Result<RegionItem> {
    if item == "..." {
        return Ok(RegionItem::Ellipsis);
    }
    let mut parts = item.split(':');
    let bound = |part: Option<&str>| match part {
        None | Some("") => Ok(None),
        Some(b) => parse_bound(text, b).map(Some),
    };
    let (start, end, step, more) = (parts.next(), parts.next(), parts.next(), parts.next());
    if more.is_some() {
        return Err(syntax(text, "at most two colons in a range"));
    }
    if end.is_none() {
        return match bound(start)? {
            Some(b) => Ok(RegionItem::Index(b)),
            None => Err(syntax(text, "a coordinate or a range between commas")),
        };
    }
    let step = match step {
        None => 1,
        Some(s) => match (s.bytes().all(|b| b.is_ascii_digit()), s.parse::<u64>()) {
            (true, Ok(s)) if s >= 1 => s,
            _ => return Err(syntax(text, "a step of at least 1")),
        },
    };
    Ok(RegionItem::Range {
        start: bound(start)?,
        end: bound(end)?,
        step,
    })
}

fn parse_bound(text: &str, bound: &str) -> Result<Bound> {
    if let Some(rest) = bound.strip_prefix("begin") {
        return Ok(Bound::Begin(parse_shift(text, rest)?));
    }
    if let Some(rest) = bound.strip_prefix("end") {
        return Ok(Bound::End(parse_shift(text, rest)?));
    }
    let digits = bound.strip_prefix('-').unwrap_or(bound);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(syntax(text, "an integer, `begin` or `end` (with +n or -n)"));
    }
    match bound.parse() {
        Ok(x) => Ok(Bound::At(x)),
        // Digits that no i64 holds lie past the index limit on any axis.
        Err(_) => Err(index_limit(0, bound)),
    }
}

fn parse_shift(text: &str, rest: &str) -> Result<i64> {
    if rest.is_empty() {
        return Ok(0);
    }
    let digits = rest.strip_prefix(['+', '-']).unwrap_or("");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(syntax(text, "`begin` or `end`, alone or with +n or -n"));
    }
    rest.parse().map_err(|_| index_limit(0, rest))
}

fn syntax(text: &str, expected: &str) -> Error {
    Error::invalid("selection")
        .expected(expected)
        .found(format_args!("`{text}`"))
        .reason("syntax")
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::At(x) => write!(f, "{x}"),
            Self::Begin(0) => f.write_str("begin"),
            Self::Begin(k) => write!(f, "begin{k:+}"),
            Self::End(0) => f.write_str("end"),
            Self::End(k) => write!(f, "end{k:+}"),
        }
    }
}

impl fmt::Display for RegionItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ellipsis => f.write_str("..."),
            Self::Index(b) => b.fmt(f),
            Self::Range { start, end, step } => {
                if let Some(b) = start {
                    b.fmt(f)?;
                }
                f.write_str(":")?;
                if let Some(b) = end {
                    b.fmt(f)?;
                }
                if *step == 1 {
                    Ok(())
                } else {
                    write!(f, ":{step}")
                }
            }
        }
    }
}

impl fmt::Display for Region {
    /// `[-48:0, 7, end-3:]`, valid as input again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, item) in self.items.iter().enumerate() {
            write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn domain(v: &Value) -> Domain {
        let side = |k: &str| {
            v[k].as_array()
                .unwrap()
                .iter()
                .map(|x| x.as_i64().unwrap())
                .collect::<Vec<_>>()
        };
        Domain::new(side("min").into_iter().zip(side("max")).map(|(a, b)| a..b)).unwrap()
    }

    #[test]
    fn typed_selections_mean_what_the_vectors_say() {
        let v: Value = serde_json::from_str(include_str!(
            "../../tests/data/vectors/signed/selection.json"
        ))
        .unwrap();
        let cases = v["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 71);
        for case in cases {
            let d = domain(&case["domain"]);
            let clip = case["clip"].as_bool().unwrap();
            let got = case["text"]
                .as_str()
                .unwrap()
                .parse::<Region>()
                .and_then(|r| {
                    // What is printed is valid as input again.
                    assert_eq!(r, r.to_string().parse().unwrap());
                    r.resolve(&d, clip)
                });
            let expect = &case["expect"];
            match (got, expect["error"].as_str()) {
                (Err(e), Some(reason)) => assert_eq!(e.reason_code(), Some(reason), "{case}"),
                (Ok(p), None) => {
                    let want = domain(expect);
                    for (axis, picked) in p.axes.iter().enumerate() {
                        let Axis::Range { lo, hi, step, drop } = *picked else {
                            panic!("{case}")
                        };
                        assert_eq!((lo, hi), want.bounds()[axis], "{case}");
                        assert_eq!(
                            step,
                            expect["step"].get(axis).map_or(1, |s| s.as_u64().unwrap()),
                            "{case}"
                        );
                        let dropped = expect["drop_axes"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .any(|a| a.as_u64() == Some(axis as u64));
                        assert_eq!(drop, dropped, "{case}");
                    }
                    assert_eq!(p.axes.len(), want.rank(), "{case}");
                }
                (got, want) => panic!("{case}: got {got:?}, want {want:?}"),
            }
        }
    }

    #[test]
    fn the_macro_takes_every_form_of_range() {
        let x: i64 = 3;
        assert_eq!(
            region![-48..0, 2.., ..5, .., -1, (0..360).step(4), x].to_string(),
            "[-48:0, 2:, :5, :, -1, 0:360:4, 3]"
        );
        assert_eq!(region![].items().len(), 0);
    }

    #[test]
    fn the_from_the_end_habit_gets_a_hint() {
        let e = region![-1]
            .resolve(&Domain::new([0..10]).unwrap(), false)
            .unwrap_err();
        assert_eq!(
            e.to_string(),
            "-1 is outside [0,10) on axis 0; to count from the end write end-1"
        );
    }

    #[test]
    fn only_closed_ranges_make_a_domain() {
        assert_eq!(
            region![-48..0, 0..3].to_domain().unwrap().to_string(),
            "[-48:0, 0:3]"
        );
        for r in [
            region![..3],
            region![5],
            region![(0..3).step(2)],
            Region::all(),
        ] {
            assert!(r.to_domain().is_err());
        }
    }

    #[test]
    fn a_zero_step_from_code_is_an_error_as_from_text() {
        let e = region![(0..3).step(0)]
            .resolve(&Domain::new([0..10]).unwrap(), false)
            .unwrap_err();
        assert_eq!(e.reason_code(), Some("syntax"));
    }
}
