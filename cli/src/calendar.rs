//! Dates of the proleptic Gregorian calendar, exact in any unit.
//!
//! Holds days <-> dates, instants from text, and instants as text. Must not know arrays. Instants are counts of
//! attoseconds in `i128`, which hold every date of every unit exactly.

/// Attoseconds in a second.
pub(crate) const SECOND: i128 = 1_000_000_000_000_000_000;
/// Attoseconds in a day.
pub(crate) const DAY: i128 = 86_400 * SECOND;

/// An instant and how long the text that named it lasts: `2020-02` is a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Attoseconds since 1970-01-01T00:00Z.
    pub(crate) start: i128,
    /// Attoseconds since then, exclusive.
    pub(crate) end: i128,
}

/// Which calendar a date is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// Gregorian throughout.
    Proleptic,
    /// CF's `standard`: Julian before 15 October 1582.
    Standard,
}

impl Calendar {
    fn days(self, year: i64, month: i64, day: i64) -> i64 {
        match self {
            Self::Proleptic => days_from_civil(year, month, day),
            Self::Standard => days_from_standard(year, month, day),
        }
    }
}

/// Days from 1970-01-01 to a date; months and days may lie outside their year and month.
#[expect(
    clippy::integer_division,
    reason = "the published day-count algorithm: its divisions are of non-negative numbers"
)]
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (
        year.saturating_add(month.saturating_sub(1).div_euclid(12)),
        month.saturating_sub(1).rem_euclid(12) + 1,
    );
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

/// Year, month and day of a count of days from 1970-01-01.
#[expect(
    clippy::integer_division,
    reason = "the published day-count algorithm: its divisions are of non-negative numbers"
)]
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days.saturating_add(719_468);
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Days from 1970-01-01 to a date of CF's `standard` calendar: Julian before 15 October 1582.
fn days_from_standard(year: i64, month: i64, day: i64) -> i64 {
    let gregorian = days_from_civil(year, month, day);
    if gregorian >= days_from_civil(1582, 10, 15) {
        return gregorian;
    }
    // Julian dates advance alike within 4 years; 4 October 1582 is the day before 15 October 1582.
    let count = |year: i64, month: i64, day: i64| {
        let (year, month) = (
            year.saturating_add(month.saturating_sub(1).div_euclid(12)),
            month.saturating_sub(1).rem_euclid(12) + 1,
        );
        let y = if month <= 2 { year - 1 } else { year };
        let doy = (153 * ((month + 9) % 12) + 2).div_euclid(5) + day - 1;
        365 * y + y.div_euclid(4) + doy
    };
    days_from_civil(1582, 10, 14) - count(1582, 10, 4) + count(year, month, day)
}

/// Reads `2020`, `2020-02`, `2020-02-01`, `2020-02-01T12`, `..T12:30`, `..T12:30:15.5`, with a space for the `T` and an
/// optional `Z` or `+01:00`.
pub(crate) fn parse(text: &str, calendar: Calendar) -> Option<Span> {
    let days = |year, month, day| calendar.days(year, month, day);
    let text = text.trim();
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (
            text.get(..at)?,
            text.get(at.checked_add(1)?..)?.trim_start(),
        ),
        None => (text, ""),
    };
    let (sign, digits) = match date.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, date.strip_prefix('+').unwrap_or(date)),
    };
    let mut parts = digits.split('-');
    let year_text = parts.next()?;
    // CF epochs are written as "1-1-1" too; a bare number is a year only in four digits.
    let year = sign * number(year_text, 1, 9)?;
    let month = parts
        .next()
        .map(|m| number(m, 1, 2))
        .map_or(Some(None), |m| m.map(Some))?;
    let day = parts
        .next()
        .map(|d| number(d, 1, 2))
        .map_or(Some(None), |d| d.map(Some))?;
    if parts.next().is_some() || (month.is_none() && (year_text.len() != 4 || !time.is_empty())) {
        return None;
    }
    if !(1..=12).contains(&month.unwrap_or(1)) {
        return None;
    }
    let (start, next) = match (month, day) {
        (None, _) => (days(year, 1, 1), days(year, 13, 1)),
        (Some(m), None) => (days(year, m, 1), days(year, m + 1, 1)),
        (Some(m), Some(d)) => {
            let first = days(year, m, 1);
            let last = days(year, m + 1, 1);
            let at = first.checked_add(d.checked_sub(1)?)?;
            if at < first || at >= last {
                return None;
            }
            (at, at.checked_add(1)?)
        }
    };
    let start = i128::from(start).checked_mul(DAY)?;
    let end = i128::from(next).checked_mul(DAY)?;
    if time.is_empty() {
        return Some(Span { start, end });
    }
    day?;
    let (clock, zone) = split_zone(time)?;
    let (offset, len) = clock_span(clock)?;
    let start = start.checked_add(offset)?.checked_sub(zone)?;
    Some(Span {
        start,
        end: start.checked_add(len)?,
    })
}

/// Splits `12:30+01:00` into the clock's text and the zone's offset.
fn split_zone(time: &str) -> Option<(&str, i128)> {
    let time = time.trim();
    for utc in ["Z", "z", "UTC", " utc"] {
        if let Some(clock) = time.strip_suffix(utc) {
            return Some((clock.trim_end(), 0));
        }
    }
    let Some(at) = time.find(['+', '-']) else {
        return Some((time, 0));
    };
    let (clock, zone) = time.split_at_checked(at)?;
    let digits = zone.get(1..)?.replace(':', "");
    let (h, m) = match digits.len() {
        1 | 2 => (number(&digits, 1, 2)?, 0),
        4 => (
            number(digits.get(..2)?, 2, 2)?,
            number(digits.get(2..)?, 2, 2)?,
        ),
        _ => return None,
    };
    let minutes = i128::from(h * 60 + m);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    Some((clock.trim_end(), sign * minutes * 60 * SECOND))
}

/// Time of day and how long its text lasts.
fn clock_span(clock: &str) -> Option<(i128, i128)> {
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 1, 2).filter(|h| *h < 24)?;
    let mut at = i128::from(hour) * 3600 * SECOND;
    let Some(minute) = parts.next() else {
        return Some((at, 3600 * SECOND));
    };
    at += i128::from(number(minute, 1, 2).filter(|m| *m < 60)?) * 60 * SECOND;
    let Some(second) = parts.next() else {
        return Some((at, 60 * SECOND));
    };
    if parts.next().is_some() {
        return None;
    }
    let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
    at += i128::from(number(whole, 1, 2).filter(|s| *s < 61)?) * SECOND;
    if fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut len = SECOND;
    for digit in fraction.bytes() {
        len = len.checked_div(10)?;
        at += i128::from(digit.checked_sub(b'0')?) * len;
    }
    Some((at, len))
}

fn number(text: &str, min: usize, max: usize) -> Option<i64> {
    let ok = (min..=max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if ok { text.parse().ok() } else { None }
}

/// RFC 3339 in UTC of a count of nanoseconds since 1970, without trailing zeros.
pub(crate) fn rfc3339(nanoseconds: i64) -> String {
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    let fraction = nanoseconds.rem_euclid(1_000_000_000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (h, m, s) = (
        rest.div_euclid(3600),
        rest.rem_euclid(3600).div_euclid(60),
        rest.rem_euclid(60),
    );
    let mut out = format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
    if fraction > 0 {
        let digits = format!("{fraction:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push('Z');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse_over_a_thousand_years_each_way() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
        for days in (-800_000..800_000).step_by(13) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
    }

    #[test]
    fn a_date_lasts_as_long_as_it_says() {
        let days = |text: &str| {
            let s = parse(text, Calendar::Proleptic).unwrap();
            (s.start.div_euclid(DAY), (s.end - s.start).div_euclid(DAY))
        };
        assert_eq!(days("1970"), (0, 365));
        assert_eq!(days("1972-02"), (761, 29));
        assert_eq!(days("1970-01-02"), (1, 1));
        assert_eq!(days("1969-12-31"), (-1, 1));
        let s = parse("1970-01-01T00:00:01.25", Calendar::Proleptic).unwrap();
        assert_eq!(s.start, (SECOND * 5).div_euclid(4));
        assert_eq!((s.end - s.start) * 100, SECOND);
        assert_eq!(
            parse("1970-01-01 01:00+01:00", Calendar::Proleptic)
                .unwrap()
                .start,
            0
        );
        assert_eq!(
            parse("1-1-1 00:00:0.0", Calendar::Proleptic)
                .unwrap()
                .start
                .div_euclid(DAY),
            -719_162
        );
    }

    #[test]
    fn the_standard_calendar_is_julian_before_the_reform() {
        let reform = days_from_civil(1582, 10, 15);
        assert_eq!(days_from_standard(1582, 10, 15), reform);
        assert_eq!(days_from_standard(1582, 10, 4), reform - 1);
        // The year 1 began two days earlier by the Julian count.
        assert_eq!(days_from_standard(1, 1, 1), days_from_civil(1, 1, 1) - 2);
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "5",
            "123",
            "2020-13",
            "2020-02-30",
            "2020-1-1T25",
            "noon",
            "2020T12",
            "2020-01-01T12:00:00:00",
        ] {
            assert_eq!(parse(text, Calendar::Proleptic), None, "{text}");
        }
    }

    #[test]
    fn times_print_as_rfc_3339() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_500_000_000), "1970-01-01T00:00:01.5Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
    }
}
