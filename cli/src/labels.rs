//! Selections by coordinate values: `--label time=2020-01-01:2020-02-01`.
//!
//! Holds the search for an axis's coordinate array and the mapping of labels to coordinates. Both ends of a range are
//! included. Must not read the array that is selected from.

use std::cmp::Ordering;

use orthant::{
    AttributeValue, Bound, DataType, DynArray, Elements, ErrorKind, Group, Region, RegionItem,
    TimeUnit,
};

use crate::calendar::{self, Calendar, DAY, SECOND};
use crate::exit::{Failure, Result};
use crate::json::element;
use crate::selection::axis_of;
use crate::target::slashed;

/// A label, or one element of a coordinate array, in the form that compares.
#[derive(Debug, Clone, PartialEq)]
enum Label {
    /// An exact integer.
    Int(i128),
    /// Any other number; never NaN.
    Float(f64),
    Text(String),
    /// Attoseconds since 1970; a label's text may last longer than an instant.
    Time {
        start: i128,
        end: i128,
    },
}

impl Label {
    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b))
            | (Self::Time { start: a, .. }, Self::Time { start: b, .. }) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "integers are compared exactly; this serves a float beside an integer"
    )]
    fn number(&self) -> Option<f64> {
        match self {
            Self::Int(v) => Some(*v as f64),
            Self::Float(v) => Some(*v),
            _ => None,
        }
    }

    /// Whether `value` lies at or before the end of this label: a date includes all of its day.
    fn reaches(&self, value: &Self) -> bool {
        match (self, value) {
            (Self::Time { end, .. }, Self::Time { start, .. }) => start < end,
            _ => matches!(value.order(self), Some(Ordering::Less | Ordering::Equal)),
        }
    }

    /// Whether `value` lies at or after the start of this label.
    fn precedes(&self, value: &Self) -> bool {
        matches!(value.order(self), Some(Ordering::Greater | Ordering::Equal))
    }
}

/// How the elements of a coordinate array become labels.
#[derive(Debug, Clone, PartialEq)]
enum Scale {
    Plain,
    /// `datetime64`.
    Datetime {
        unit: TimeUnit,
        scale: i128,
    },
    /// A number of units since an epoch, as CF writes times.
    Cf {
        unit: i128,
        epoch: i128,
        calendar: Calendar,
    },
}

/// A coordinate array, read.
#[derive(Debug)]
struct Coordinates {
    path: String,
    /// Coordinate of the first element.
    first: i64,
    values: Vec<Label>,
    data_type: DataType,
    scale: Scale,
}

/// Puts the ranges that `labels` mean into `region`.
pub(crate) fn apply(
    labels: &[String],
    region: Region,
    array: &DynArray,
    root: &Group,
) -> Result<Region> {
    if labels.is_empty() {
        return Ok(region);
    }
    let dims = array.dims();
    let mut items = spelled(&region, dims.len());
    for text in labels {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "--label {text}: an axis and a label, as --label time=2020-01-01:2020-02-01"
            ))
        })?;
        let axis = axis_of(name, &dims)?;
        let coordinates = Coordinates::find(axis, &dims, array, root)?;
        let item = coordinates
            .select(value)
            .map_err(|f| f.in_array(&slashed(&coordinates.path)))?;
        match items.get_mut(axis) {
            Some(slot) if *slot == RegionItem::from(..) => *slot = item,
            _ => {
                return Err(Failure::usage(format!(
                    "--label {text}: the axis is selected twice"
                )));
            }
        }
    }
    Ok(Region::from_items(items))
}

/// One item an axis, `...` written out; a wrong rank is left for the resolution to refuse.
fn spelled(region: &Region, rank: usize) -> Vec<RegionItem> {
    let named = region
        .items()
        .iter()
        .filter(|i| **i != RegionItem::Ellipsis)
        .count();
    region
        .items()
        .iter()
        .flat_map(|item| match item {
            RegionItem::Ellipsis => vec![RegionItem::from(..); rank.saturating_sub(named)],
            item => vec![*item],
        })
        .collect()
}

impl Coordinates {
    /// The 1-D array that bears the axis's name, in the array's group or the nearest ancestor that has one.
    fn find(axis: usize, dims: &[Option<String>], array: &DynArray, root: &Group) -> Result<Self> {
        let Some(Some(name)) = dims.get(axis) else {
            return Err(Failure::usage(format!(
                "axis {axis} has no name, so no array can hold its coordinates; use --sel"
            )));
        };
        let mut group = array.path();
        loop {
            group = group.rsplit_once('/').map_or("", |(parent, _)| parent);
            let path = if group.is_empty() {
                name.clone()
            } else {
                format!("{group}/{name}")
            };
            match root.dyn_array(&path) {
                Ok(found) if found.rank() == 1 => return Self::read(&found, path),
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::TypeMismatch) => {}
                Err(e) => return Err(e.into()),
            }
            if group.is_empty() {
                return Err(Failure::usage(format!(
                    "axis {name} has no coordinate array: no 1-D array /{name} here or in a group above"
                ))
                .help("use --sel, which takes coordinates"));
            }
        }
    }

    fn read(array: &DynArray, path: String) -> Result<Self> {
        let data_type = array.data_type();
        let text = |name: &str| -> Result<Option<String>> {
            let value = array.attributes().get(name)?;
            Ok(value
                .as_ref()
                .and_then(AttributeValue::as_str)
                .map(str::to_owned))
        };
        let scale = match &data_type {
            DataType::Datetime64 { unit, scale } => Scale::Datetime {
                unit: *unit,
                scale: i128::from(*scale),
            },
            _ => match text("units")? {
                Some(units) => cf_scale(&units, text("calendar")?.as_deref())
                    .map_err(|f| f.in_array(&slashed(&path)))?,
                None => Scale::Plain,
            },
        };
        let domain = array.domain()?;
        let first = domain.bounds().first().map_or(0, |b| b.0);
        let block = array.read(Region::all())?;
        let count = match &block.elements {
            Elements::Fixed(bytes) => bytes
                .len()
                .checked_div(data_type.item_size().unwrap_or(1))
                .unwrap_or(0),
            Elements::Variable(items) => items.len(),
        };
        let values = (0..count)
            .map(|i| {
                let bytes = element(&block.elements, &data_type, i);
                scale.of_element(&data_type, bytes).ok_or_else(|| {
                    Failure::usage(format!(
                        "{} holds {}, which cannot be compared with labels",
                        slashed(&path),
                        data_type.element_to_text(bytes)
                    ))
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            path,
            first,
            values,
            data_type,
            scale,
        })
    }

    /// What `A`, `A:B`, `A:` or `:B` picks.
    fn select(&self, text: &str) -> Result<RegionItem> {
        if let Some(label) = self.scale.of_text(&self.data_type, text)
            && (!matches!(label, Label::Text(_)) || self.values.contains(&label))
        {
            return self.one(text, &label);
        }
        for (at, _) in text.match_indices(':') {
            let (a, b) = (
                text.get(..at).unwrap_or_default(),
                text.get(at.saturating_add(1)..).unwrap_or_default(),
            );
            let parse = |t: &str| match t.trim() {
                "" => Some(None),
                t => self.scale.of_text(&self.data_type, t).map(Some),
            };
            if let (Some(a), Some(b)) = (parse(a), parse(b)) {
                return self.range(a.as_ref(), b.as_ref());
            }
        }
        Err(Failure::usage(format!(
            "label {text:?} is no {} as {} holds them",
            if self.scale == Scale::Plain {
                "value"
            } else {
                "time"
            },
            slashed(&self.path)
        )))
    }

    fn one(&self, text: &str, label: &Label) -> Result<RegionItem> {
        // A date stands for all instants in it, as it does for pandas.
        let within = |v: &Label| label.precedes(v) && label.reaches(v);
        let mut found = (self.values.iter().enumerate()).filter(|(_, v)| within(v));
        match (found.next(), found.next()) {
            (None, _) => Err(Failure::usage(format!(
                "{} has no element {text}; it runs from {} to {}",
                slashed(&self.path),
                shown(self.values.first()),
                shown(self.values.last())
            ))),
            (Some((i, v)), None) if v.order(label) == Some(Ordering::Equal) => {
                Ok(RegionItem::Index(Bound::At(self.coordinate(i))))
            }
            _ => self.range(Some(label), Some(label)),
        }
    }

    fn range(&self, a: Option<&Label>, b: Option<&Label>) -> Result<RegionItem> {
        let falling = self.direction()? == Ordering::Greater;
        // On a falling axis the first label is the greater one; either order is taken.
        let (low, high) = match (a, b) {
            (Some(a), Some(b)) if a.order(b) == Some(Ordering::Greater) => (Some(b), Some(a)),
            (a, b) if falling && (a.is_none() || b.is_none()) => (b, a),
            (a, b) => (a, b),
        };
        let wanted =
            |v: &Label| low.is_none_or(|l| l.precedes(v)) && high.is_none_or(|h| h.reaches(v));
        let before = |v: &Label| {
            if falling {
                high.is_some_and(|h| !h.reaches(v))
            } else {
                low.is_some_and(|l| !l.precedes(v))
            }
        };
        let start = self.values.iter().take_while(|v| before(v)).count();
        let len = self
            .values
            .iter()
            .skip(start)
            .take_while(|v| wanted(v))
            .count();
        Ok(RegionItem::Range {
            start: Some(Bound::At(self.coordinate(start))),
            end: Some(Bound::At(self.coordinate(start.saturating_add(len)))),
            step: 1,
        })
    }

    /// Rising or falling; a range of anything else means nothing.
    fn direction(&self) -> Result<Ordering> {
        let mut direction = Ordering::Equal;
        for pair in self.values.windows(2) {
            let [a, b] = pair else { continue };
            match a.order(b) {
                Some(Ordering::Equal) => {}
                Some(o) if direction == Ordering::Equal || direction == o => direction = o,
                _ => {
                    return Err(Failure::usage(format!(
                        "{} neither rises nor falls, so a range of labels has no meaning; use --sel",
                        slashed(&self.path)
                    )));
                }
            }
        }
        Ok(direction)
    }

    fn coordinate(&self, i: usize) -> i64 {
        self.first
            .saturating_add(i64::try_from(i).unwrap_or(i64::MAX))
    }
}

/// A label for a message.
fn shown(label: Option<&Label>) -> String {
    match label {
        None => "nothing".to_owned(),
        Some(Label::Int(v)) => v.to_string(),
        Some(Label::Float(v)) => v.to_string(),
        Some(Label::Text(t)) => t.clone(),
        Some(Label::Time { start, .. }) => {
            let nanoseconds = start.div_euclid(1_000_000_000);
            i64::try_from(nanoseconds).map_or_else(|_| start.to_string(), calendar::rfc3339)
        }
    }
}

impl Scale {
    fn of_element(&self, data_type: &DataType, bytes: &[u8]) -> Option<Label> {
        let plain = plain(data_type, bytes)?;
        match (self, &plain) {
            (Self::Plain, _) => Some(plain),
            (Self::Datetime { unit, scale }, Label::Int(count)) => {
                let start = datetime(*unit, count.checked_mul(*scale)?)?;
                Some(Label::Time {
                    start,
                    end: start.checked_add(1)?,
                })
            }
            (Self::Cf { unit, epoch, .. }, Label::Int(count)) => {
                let start = count.checked_mul(*unit)?.checked_add(*epoch)?;
                Some(Label::Time {
                    start,
                    end: start.checked_add(1)?,
                })
            }
            (Self::Cf { unit, epoch, .. }, Label::Float(count)) => {
                let start = scaled(*count, *unit)?.checked_add(*epoch)?;
                Some(Label::Time {
                    start,
                    end: start.checked_add(1)?,
                })
            }
            _ => None,
        }
    }

    fn of_text(&self, data_type: &DataType, text: &str) -> Option<Label> {
        let text = text.trim();
        let number = || -> Option<Label> {
            if let Ok(bytes) = data_type.element_from_text(text) {
                return plain(data_type, &bytes);
            }
            let v: f64 = text.parse().ok()?;
            (!v.is_nan()).then_some(Label::Float(v))
        };
        let time = |calendar| {
            calendar::parse(text, calendar).map(|s| Label::Time {
                start: s.start,
                end: s.end,
            })
        };
        match self {
            Self::Plain => match data_type {
                DataType::String
                | DataType::NullTerminatedBytes { .. }
                | DataType::FixedUtf32 { .. } => Some(Label::Text(text.to_owned())),
                _ => number(),
            },
            Self::Datetime { .. } => time(Calendar::Proleptic),
            // A bare number counts the axis's own units, unless it looks like a year.
            Self::Cf {
                unit,
                epoch,
                calendar,
            } => time(*calendar).or_else(|| {
                let start = match number()? {
                    Label::Int(v) => v.checked_mul(*unit)?,
                    Label::Float(v) => scaled(v, *unit)?,
                    _ => return None,
                }
                .checked_add(*epoch)?;
                Some(Label::Time {
                    start,
                    end: start.checked_add(1)?,
                })
            }),
        }
    }
}

/// An element as a number or text; none for NaN, "not a time" and types that have no order.
fn plain(data_type: &DataType, bytes: &[u8]) -> Option<Label> {
    use orthant::Json;
    match data_type {
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } => {
            let count = i64::from_le_bytes(bytes.try_into().ok()?);
            (count != i64::MIN).then_some(Label::Int(count.into()))
        }
        DataType::Float32 => number_label(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        DataType::Float64 => number_label(f64::from_le_bytes(bytes.try_into().ok()?)),
        DataType::String => Some(Label::Text(String::from_utf8(bytes.to_vec()).ok()?)),
        _ => match data_type.element_to_json(bytes) {
            Json::I64(v) => Some(Label::Int(v.into())),
            Json::U64(v) => Some(Label::Int(v.into())),
            Json::F64(v) => number_label(v),
            Json::String(text)
                if matches!(
                    data_type,
                    DataType::NullTerminatedBytes { .. } | DataType::FixedUtf32 { .. }
                ) =>
            {
                Some(Label::Text(text))
            }
            _ => None,
        },
    }
}

fn number_label(v: f64) -> Option<Label> {
    (!v.is_nan()).then_some(Label::Float(v))
}

/// `count * unit` of attoseconds, to the nanosecond: what a double of days can mean.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "bounded before the cast; a double's digits end far above an attosecond"
)]
fn scaled(count: f64, unit: i128) -> Option<i128> {
    const NANOSECOND: i128 = 1_000_000_000;
    let whole = count.floor();
    if whole.abs() > 1e15 {
        return None;
    }
    let fraction = (count - whole) * unit.checked_div(NANOSECOND)? as f64;
    (whole as i128)
        .checked_mul(unit)?
        .checked_add((fraction.round() as i128).checked_mul(NANOSECOND)?)
}

/// Attoseconds since 1970 of a count of NumPy's units.
fn datetime(unit: TimeUnit, count: i128) -> Option<i128> {
    let days = |d: i64| i128::from(d).checked_mul(DAY);
    let step = match unit {
        TimeUnit::Year => {
            let year = i64::try_from(count).ok()?.checked_add(1970)?;
            return days(calendar::days_from_civil(year, 1, 1));
        }
        TimeUnit::Month => {
            let month = i64::try_from(count).ok()?.checked_add(1)?;
            return days(calendar::days_from_civil(1970, month, 1));
        }
        TimeUnit::Week => 7 * DAY,
        TimeUnit::Day => DAY,
        TimeUnit::Hour => 3600 * SECOND,
        TimeUnit::Minute => 60 * SECOND,
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => 1_000_000_000_000_000,
        TimeUnit::Microsecond => 1_000_000_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
        TimeUnit::Picosecond => 1_000_000,
        TimeUnit::Femtosecond => 1000,
        TimeUnit::Attosecond => 1,
        TimeUnit::Generic => return None,
    };
    count.checked_mul(step)
}

/// Reads `days since 2000-01-01 06:00`; units that are no time leave plain numbers.
fn cf_scale(units: &str, calendar_name: Option<&str>) -> Result<Scale> {
    let Some((unit, epoch)) = units.split_once(" since ") else {
        return Ok(Scale::Plain);
    };
    let calendar = match calendar_name.unwrap_or("standard") {
        "standard" | "gregorian" => Calendar::Standard,
        "proleptic_gregorian" => Calendar::Proleptic,
        // A number of units still selects: only dates have no meaning here.
        _ => return Ok(Scale::Plain),
    };
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "day" | "days" | "d" => DAY,
        "hour" | "hours" | "hr" | "hrs" | "h" => 3600 * SECOND,
        "minute" | "minutes" | "min" | "mins" => 60 * SECOND,
        "second" | "seconds" | "sec" | "secs" | "s" => SECOND,
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => 1_000_000_000_000_000,
        "microsecond" | "microseconds" => 1_000_000_000_000,
        "nanosecond" | "nanoseconds" => 1_000_000_000,
        _ => return Ok(Scale::Plain),
    };
    match calendar::parse(epoch, calendar) {
        Some(span) => Ok(Scale::Cf {
            unit,
            epoch: span.start,
            calendar,
        }),
        None => Err(Failure::usage(format!(
            "units {units:?}: the time after `since` cannot be read"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coordinates(first: i64, data_type: DataType, scale: Scale, texts: &[&str]) -> Coordinates {
        let values = texts
            .iter()
            .map(|t| {
                let bytes = data_type.element_from_text(t).unwrap();
                scale.of_element(&data_type, &bytes).unwrap()
            })
            .collect();
        Coordinates {
            path: "x".into(),
            first,
            values,
            data_type,
            scale,
        }
    }

    fn pick(c: &Coordinates, text: &str) -> String {
        c.select(text).unwrap().to_string()
    }

    #[test]
    fn both_ends_of_a_range_are_included() {
        let c = coordinates(
            -2,
            DataType::Float32,
            Scale::Plain,
            &["0.1", "0.2", "0.3", "0.4"],
        );
        assert_eq!(pick(&c, "0.1:0.3"), "-2:1");
        assert_eq!(pick(&c, "0.15:"), "-1:2");
        assert_eq!(pick(&c, ":0.2"), "-2:0");
        assert_eq!(pick(&c, "0.3"), "0");
        assert_eq!(pick(&c, "7:9"), "2:2");
        assert!(c.select("0.35").is_err());
    }

    #[test]
    fn a_falling_axis_is_selected_from_its_first_value_on() {
        let c = coordinates(0, DataType::Int16, Scale::Plain, &["90", "45", "0", "-45"]);
        assert_eq!(pick(&c, "60:0"), "1:3");
        assert_eq!(pick(&c, "0:60"), "1:3");
        assert_eq!(pick(&c, ":0"), "0:3");
        assert_eq!(pick(&c, "0:"), "2:4");
    }

    #[test]
    fn a_date_includes_all_of_its_day() {
        let hour = DataType::Datetime64 {
            unit: TimeUnit::Hour,
            scale: 12,
        };
        let scale = Scale::Datetime {
            unit: TimeUnit::Hour,
            scale: 12,
        };
        let c = coordinates(-4, hour, scale, &["0", "1", "2", "3", "4"]);
        assert_eq!(pick(&c, "1970-01-01:1970-01-02"), "-4:0");
        assert_eq!(pick(&c, "1970-01-01T12"), "-3");
        assert_eq!(pick(&c, "1970-01-02T00:00:1970-01-03T00:00"), "-2:1");
        assert_eq!(pick(&c, "1970-01"), "-4:1");
    }

    #[test]
    fn times_counted_as_cf_does_are_dates() {
        let scale = cf_scale("hours since 2000-01-01 06:00", None).unwrap();
        let c = coordinates(0, DataType::Float64, scale, &["0", "17.5", "18", "42"]);
        assert_eq!(pick(&c, "2000-01-01"), "0:2");
        assert_eq!(pick(&c, "2000-01-02T00:00"), "2");
        assert_eq!(pick(&c, "17.5"), "1");
        assert_eq!(cf_scale("K", None).unwrap(), Scale::Plain);
        assert_eq!(
            cf_scale("days since 1970-01-01", Some("360_day")).unwrap(),
            Scale::Plain
        );
    }

    #[test]
    fn texts_are_matched_whole_even_with_colons() {
        let c = coordinates(5, DataType::String, Scale::Plain, &["a", "b:c", "d"]);
        assert_eq!(pick(&c, "b:c"), "6");
        assert_eq!(pick(&c, "a:d"), "5:8");
    }

    #[test]
    fn a_range_over_values_in_no_order_is_refused() {
        let c = coordinates(0, DataType::Int8, Scale::Plain, &["1", "3", "2"]);
        assert!(c.select("1:2").is_err());
        assert_eq!(pick(&c, "2"), "2");
    }
}
