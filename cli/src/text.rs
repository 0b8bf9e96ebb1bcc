//! Text for people: control characters escaped, sizes with units, tables.
//!
//! Must not decide what is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every control and direction-changing character shown as an escape, so that no name in a file can
/// write on the terminal.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `1.5 MiB`
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut value = n as f64;
    let mut unit = "";
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = name;
    }
    format!("{value:.1} {unit}")
}

/// `1 chunk`, `2 chunks`
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// Values joined by commas: `24, 180`.
pub(crate) fn list<T: std::fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for (i, v) in values.into_iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}{v}");
    }
    out
}

/// Rows of cells, columns as wide as their widest cell; the columns in `right` are set flush right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [usize],
}

impl Table {
    pub(crate) fn new(right: &'static [usize]) -> Self {
        Self {
            rows: Vec::new(),
            right,
        }
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|c| escape(&c.into()).into_owned());
        self.rows.push(cells.collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |cell: &String| cell.chars().count();
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|i| {
                self.rows
                    .iter()
                    .filter_map(|r| r.get(i).map(width))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, &wide)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(wide.saturating_sub(width(cell)));
                if i > 0 {
                    line.push_str("  ");
                }
                if self.right.contains(&i) {
                    line.push_str(&pad);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&pad);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_write_on_the_terminal_and_nothing_else() {
        assert_eq!(escape("température ✓"), "température ✓");
        assert_eq!(escape("a\u{1b}[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(escape("x\u{202e}y"), "x\\u{202e}y");
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn columns_line_up() {
        let mut t = Table::new(&[1]);
        t.row(["a", "1"]);
        t.row(["long", "100"]);
        assert_eq!(t.to_string(), "a       1\nlong  100\n");
    }
}
