//! Points in time as ISO 8601 text: `2020-02-29T12:00:00.500`, as fine as the unit is.
//!
//! Holds counts of `datetime64` <-> text in the proleptic Gregorian calendar, as NumPy writes it. Must not know elements or
//! "not a time". Time zones other than `Z` are not read, since the types have none.
//!
//! Reading is exact: a text finer than the unit can hold is no value of it.

use super::dtype::TimeUnit;

/// Attoseconds of a day: every unit below a day divides it.
const DAY_ATTOSECONDS: i128 = 86_400_000_000_000_000_000_000;

/// What a unit counts.
enum Step {
    Years,
    Months,
    /// So many days.
    Days(i128),
    /// So many of them make a day; digits after the second's point.
    PartsOfDay(i128, usize),
}

fn step(unit: TimeUnit) -> Option<Step> {
    const SECONDS: i128 = 86_400;
    Some(match unit {
        TimeUnit::Year => Step::Years,
        TimeUnit::Month => Step::Months,
        TimeUnit::Week => Step::Days(7),
        TimeUnit::Day => Step::Days(1),
        TimeUnit::Hour => Step::PartsOfDay(24, 0),
        TimeUnit::Minute => Step::PartsOfDay(1440, 0),
        TimeUnit::Second => Step::PartsOfDay(SECONDS, 0),
        TimeUnit::Millisecond => Step::PartsOfDay(SECONDS * 1_000, 3),
        TimeUnit::Microsecond => Step::PartsOfDay(SECONDS * 1_000_000, 6),
        TimeUnit::Nanosecond => Step::PartsOfDay(SECONDS * 1_000_000_000, 9),
        TimeUnit::Picosecond => Step::PartsOfDay(SECONDS * 1_000_000_000_000, 12),
        TimeUnit::Femtosecond => Step::PartsOfDay(SECONDS * 1_000_000_000_000_000, 15),
        TimeUnit::Attosecond => Step::PartsOfDay(SECONDS * 1_000_000_000_000_000_000, 18),
        TimeUnit::Generic => return None,
    })
}

/// The text of `count` steps of `scale` units since 1970; `None` for the generic unit, which is no time of day.
pub(crate) fn format(count: i64, unit: TimeUnit, scale: u32) -> Option<String> {
    let ticks = i128::from(count).checked_mul(i128::from(scale))?;
    match step(unit)? {
        Step::Years => Some(year_text(ticks.checked_add(1970)?)),
        Step::Months => {
            let year = ticks.div_euclid(12).checked_add(1970)?;
            let month = ticks.rem_euclid(12).checked_add(1)?;
            Some(format!("{}-{month:02}", year_text(year)))
        }
        Step::Days(days) => date_text(ticks.checked_mul(days)?),
        Step::PartsOfDay(parts, digits) => {
            let date = date_text(ticks.div_euclid(parts))?;
            // Exact: each unit divides the day.
            let attoseconds = ticks
                .rem_euclid(parts)
                .checked_mul(DAY_ATTOSECONDS.div_euclid(parts))?;
            let fraction = attoseconds.rem_euclid(1_000_000_000_000_000_000);
            let seconds = attoseconds.div_euclid(1_000_000_000_000_000_000);
            let (hour, minute, second) = (
                seconds.div_euclid(3600),
                seconds.div_euclid(60).rem_euclid(60),
                seconds.rem_euclid(60),
            );
            let text = match unit {
                TimeUnit::Hour => format!("{date}T{hour:02}"),
                TimeUnit::Minute => format!("{date}T{hour:02}:{minute:02}"),
                _ => format!("{date}T{hour:02}:{minute:02}:{second:02}"),
            };
            let fraction = format!("{fraction:018}");
            match fraction.get(..digits).filter(|f| !f.is_empty()) {
                Some(fraction) => Some(format!("{text}.{fraction}")),
                None => Some(text),
            }
        }
    }
}

/// The count that `text` stands for; `None` where it is no such text or the count is not exact.
pub(crate) fn parse(text: &str, unit: TimeUnit, scale: u32) -> Option<i64> {
    let parsed = Parsed::read(text)?;
    let at_midnight = parsed.attoseconds == 0;
    let ticks = match step(unit)? {
        Step::Years if at_midnight && parsed.month == 1 && parsed.day == 1 => {
            parsed.year.checked_sub(1970)?
        }
        Step::Months if at_midnight && parsed.day == 1 => {
            let years = parsed.year.checked_sub(1970)?;
            years
                .checked_mul(12)?
                .checked_add(parsed.month)?
                .checked_sub(1)?
        }
        Step::Days(days) if at_midnight => exact_div(parsed.days()?, days)?,
        Step::PartsOfDay(parts, _) => {
            let of_day = exact_div(parsed.attoseconds, DAY_ATTOSECONDS.div_euclid(parts))?;
            parsed.days()?.checked_mul(parts)?.checked_add(of_day)?
        }
        _ => return None,
    };
    let count = i64::try_from(exact_div(ticks, i128::from(scale))?).ok()?;
    // The lowest number is "not a time".
    (count != i64::MIN).then_some(count)
}

fn exact_div(value: i128, by: i128) -> Option<i128> {
    (value.checked_rem_euclid(by)? == 0).then(|| value.checked_div_euclid(by))?
}

fn year_text(year: i128) -> String {
    if year < 0 {
        format!("-{:04}", year.unsigned_abs())
    } else {
        format!("{year:04}")
    }
}

fn date_text(days: i128) -> Option<String> {
    let (year, month, day) = civil_from_days(days)?;
    Some(format!("{}-{month:02}-{day:02}", year_text(year)))
}

/// Days before 1970-01-01 that lie before 0000-03-01, from where leap days stand at a year's end.
const EPOCH_DAYS: i128 = 719_468;
/// Days in 400 years.
const ERA_DAYS: i128 = 146_097;

#[expect(
    clippy::integer_division,
    reason = "the calendar's own floor division, of small numbers that are not negative"
)]
fn civil_from_days(days: i128) -> Option<(i128, i128, i128)> {
    let days = days.checked_add(EPOCH_DAYS)?;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    // Within one era all numbers are small.
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) = if month_from_march < 10 {
        (month_from_march + 3, 0)
    } else {
        (month_from_march - 9, 1)
    };
    let year = era.checked_mul(400)?.checked_add(year_of_era + next_year)?;
    Some((year, month, day))
}

#[expect(
    clippy::integer_division,
    reason = "the calendar's own floor division, of small numbers that are not negative"
)]
fn days_from_civil(year: i128, month: i128, day: i128) -> Option<i128> {
    let (year, month_from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era.checked_mul(ERA_DAYS)?
        .checked_add(day_of_era - EPOCH_DAYS)
}

/// Date and time of a text; what is left out is the lowest.
struct Parsed {
    year: i128,
    month: i128,
    day: i128,
    attoseconds: i128,
}

impl Parsed {
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let (is_negative, date) = match date.strip_prefix('-') {
            Some(date) => (true, date),
            None => (false, date.strip_prefix('+').unwrap_or(date)),
        };
        let mut parts = date.split('-');
        let year = parts.next().filter(|year| year.len() >= 4)?;
        let year = number(year, year.len().min(20))?;
        let month = parts.next().map_or(Some(1), |m| number(m, 2))?;
        let day = parts.next().map_or(Some(1), |d| number(d, 2))?;
        let year = if is_negative {
            year.checked_neg()?
        } else {
            year
        };
        // A bare number is a count, and a time needs a whole date before it.
        let is_whole = date.split('-').count() == 3;
        if parts.next().is_some() || (time.is_some() && !is_whole) || !(1..=12).contains(&month) {
            return None;
        }
        let days_in_month = match month {
            2 if year.rem_euclid(4) == 0
                && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) =>
            {
                29
            }
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=days_in_month).contains(&day).then_some(())?;
        let attoseconds = time.map_or(Some(0), time_of_day)?;
        Some(Self {
            year,
            month,
            day,
            attoseconds,
        })
    }

    fn days(&self) -> Option<i128> {
        days_from_civil(self.year, self.month, self.day)
    }
}

/// Attoseconds since midnight of `HH[:MM[:SS[.f..]]]`.
fn time_of_day(text: &str) -> Option<i128> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let mut parts = whole.split(':');
    let hour = number(parts.next()?, 2).filter(|h| *h < 24)?;
    let minute = parts
        .next()
        .map_or(Some(0), |m| number(m, 2))
        .filter(|m| *m < 60)?;
    let second = parts.next().map(|s| number(s, 2).filter(|s| *s < 60));
    if parts.next().is_some() || (fraction.is_some() && second.is_none()) {
        return None;
    }
    let second = second.unwrap_or(Some(0))?;
    let attoseconds = match fraction {
        None => 0,
        Some(digits) if digits.len() <= 18 => number(&format!("{digits:0<18}"), 18)?,
        Some(_) => return None,
    };
    if fraction == Some("") {
        return None;
    }
    let seconds = hour * 3600 + minute * 60 + second;
    Some(seconds * 1_000_000_000_000_000_000 + attoseconds)
}

/// `digits` decimal digits and nothing else.
fn number(text: &str, digits: usize) -> Option<i128> {
    let is_plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dtype::time_step;

    /// Unit, count, and what NumPy 2.4 prints.
    const NUMPY: [(&str, i64, &str); 24] = [
        ("Y", 50, "2020"),
        ("M", 601, "2020-02"),
        ("M", -1, "1969-12"),
        ("W", 1, "1970-01-08"),
        ("W", -1, "1969-12-25"),
        ("D", 18321, "2020-02-29"),
        ("D", -1, "1969-12-31"),
        ("D", -25_509, "1900-02-28"),
        ("D", -25_508, "1900-03-01"),
        ("D", 11_016, "2000-02-29"),
        ("D", 1 << 31, "5881580-07-12"),
        ("h", -1, "1969-12-31T23"),
        ("m", 59, "1970-01-01T00:59"),
        ("s", 1_582_977_600, "2020-02-29T12:00:00"),
        ("s", -1, "1969-12-31T23:59:59"),
        ("s", i64::MAX, "292277026596-12-04T15:30:07"),
        ("s", i64::MIN + 1, "-292277022657-01-27T08:29:53"),
        ("ms", -1, "1969-12-31T23:59:59.999"),
        ("us", -1, "1969-12-31T23:59:59.999999"),
        (
            "ns",
            1_582_977_600_123_456_789,
            "2020-02-29T12:00:00.123456789",
        ),
        ("ps", 1, "1970-01-01T00:00:00.000000000001"),
        ("fs", -1, "1969-12-31T23:59:59.999999999999999"),
        ("as", i64::MAX, "1970-01-01T00:00:09.223372036854775807"),
        ("10ms", 7, "1970-01-01T00:00:00.070"),
    ];

    #[test]
    fn counts_have_the_text_that_numpy_gives_them_and_are_read_back() {
        for (name, count, text) in NUMPY {
            let (unit, scale) = time_step(name).unwrap();
            assert_eq!(format(count, unit, scale).as_deref(), Some(text), "{name}");
            assert_eq!(parse(text, unit, scale), Some(count), "{name} {text}");
        }
        assert_eq!(format(1, TimeUnit::Generic, 1), None);
    }

    #[test]
    fn every_day_of_eight_centuries_is_one_after_the_day_before() {
        let mut last = civil_from_days(-146_098).unwrap();
        for days in -146_097..146_097 {
            let date = civil_from_days(days).unwrap();
            assert!(date > last && (date.2 == last.2 + 1 || date.2 == 1));
            assert_eq!(days_from_civil(date.0, date.1, date.2), Some(days));
            last = date;
        }
    }

    #[test]
    fn ends_of_the_range_do_not_overflow() {
        for (unit, name) in [
            TimeUnit::Year,
            TimeUnit::Month,
            TimeUnit::Week,
            TimeUnit::Day,
            TimeUnit::Hour,
        ]
        .map(|u| (u, u.name()))
        {
            for count in [i64::MIN + 1, i64::MAX] {
                for scale in [1, 1 << 30] {
                    let text = format(count, unit, scale).unwrap();
                    if scale == 1 {
                        assert_eq!(parse(&text, unit, scale), Some(count), "{name} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_exact_texts_of_real_days_are_read() {
        let seconds = |text: &str| parse(text, TimeUnit::Second, 1);
        assert_eq!(seconds("2020-02-29"), Some(1_582_934_400));
        assert_eq!(seconds("2020-02-29T12Z"), Some(1_582_977_600));
        assert_eq!(seconds("2020-02-29 12:00:00.000"), Some(1_582_977_600));
        assert_eq!(seconds("2020"), Some(1_577_836_800));
        for text in [
            "",
            "20",
            "2020-2-1",
            "2020-13",
            "2020-00-01",
            "2019-02-29",
            "1900-02-29",
            "2020-04-31",
            "2020-02-30",
            "2020-01-01T24:00",
            "2020-01-01T00:60",
            "2020-01-01T00:00:60",
            "2020-01-01T00:00:00.",
            "2020-01-01T00:00:00.5",
            "2020-01T00",
            "2020-01-01T",
            "2020-01-01T00:00:00+01:00",
            "2020-01-01-01",
            "2020-01-01T00:00.5",
            "99999999999999999999999",
            "292277026596-12-04T15:30:08",
            "-292277022657-01-27T08:29:52",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(parse("2020-02-02", TimeUnit::Month, 1), None);
        assert_eq!(parse("2020-01-03", TimeUnit::Week, 1), None);
        assert_eq!(
            parse("1970-01-01T00:00:00.005", TimeUnit::Millisecond, 10),
            None
        );
    }
}
