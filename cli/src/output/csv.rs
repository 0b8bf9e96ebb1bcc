//! An answer as comma-separated values: one axis a column, two axes a table, more axes one element a line.
//!
//! Holds [`write_rows`] and [`parse`], its inverse. Cells follow RFC 4180; there is no header line.

use std::borrow::Cow;
use std::io::{self, Write};

use orthant::{DataType, Elements};

use crate::exit::{Failure, Result};
use crate::json::element;

/// Cells of one line, for a result of that shape.
pub(crate) fn line_len(shape: &[u64]) -> u64 {
    match shape {
        [_, columns] => *columns,
        _ => 1,
    }
}

/// Appends elements; `column` carries the place within a line from one call to the next.
pub(crate) fn write_rows(
    out: &mut dyn Write,
    data_type: &DataType,
    elements: &Elements,
    count: u64,
    line: u64,
    column: &mut u64,
) -> io::Result<()> {
    for i in 0..usize::try_from(count).unwrap_or(usize::MAX) {
        let text = data_type.element_to_text(element(elements, data_type, i));
        out.write_all(quoted(&text).as_bytes())?;
        *column = column.saturating_add(1);
        if *column >= line {
            *column = 0;
            out.write_all(b"\n")?;
        } else {
            out.write_all(b",")?;
        }
    }
    Ok(())
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// All cells of a text, in order.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<String>> {
    let mut cells = Vec::new();
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() {
        let mut cell = String::new();
        let mut was_quoted = false;
        if chars.peek() == Some(&'"') {
            was_quoted = true;
            chars.next();
            loop {
                match chars.next() {
                    Some('"') if chars.peek() == Some(&'"') => {
                        chars.next();
                        cell.push('"');
                    }
                    Some('"') => break,
                    Some(c) => cell.push(c),
                    None => {
                        return Err(Failure::usage(format!(
                            "{name}: a quoted cell does not end"
                        )));
                    }
                }
            }
        }
        for c in chars.by_ref() {
            match c {
                ',' | '\n' => break,
                '\r' => {}
                _ if was_quoted => {
                    return Err(Failure::usage(format!(
                        "{name}: text follows a quoted cell"
                    )));
                }
                c => cell.push(c),
            }
        }
        cells.push(cell);
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(items: &[&str]) -> Elements {
        Elements::Variable(items.iter().map(|t| t.as_bytes().into()).collect())
    }

    #[test]
    fn two_axes_are_a_table_and_cells_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        let mut column = 0;
        let items = texts(&["a", "b,c", "d\"e", "line\nbreak"]);
        write_rows(
            &mut out,
            &DataType::String,
            &items,
            4,
            line_len(&[2, 2]),
            &mut column,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a,\"b,c\"\n\"d\"\"e\",\"line\nbreak\"\n");
        assert_eq!(
            parse("x", &text).unwrap(),
            ["a", "b,c", "d\"e", "line\nbreak"]
        );
    }

    #[test]
    fn one_axis_and_more_than_two_are_one_element_a_line() {
        for shape in [&[3][..], &[1, 1, 3], &[]] {
            assert_eq!(line_len(shape), 1);
        }
    }

    #[test]
    fn lines_may_end_in_crlf_or_not_at_all() {
        assert_eq!(parse("x", "1,2\r\n3,4").unwrap(), ["1", "2", "3", "4"]);
        assert_eq!(parse("x", "").unwrap().len(), 0);
        assert!(parse("x", "\"1").is_err());
        assert!(parse("x", "\"1\"2").is_err());
    }
}
