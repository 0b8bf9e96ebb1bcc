//! An answer for people: nested brackets, columns aligned, the middle of long axes left out, as NumPy prints.
//!
//! Holds [`Elision`] and [`render`]. Must not read: what is left out is never asked for.

use std::fmt::Write as _;

use orthant::{Block, DataType};

use crate::json::element;
use crate::text::escape;

/// Results of more elements than this are shortened.
const SHOWN_MAX: u128 = 1000;
/// Elements that stay at each end of a shortened axis.
const EDGE: u64 = 3;

/// Which axes of a result are shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elision {
    cut: Vec<bool>,
}

impl Elision {
    /// What is shortened of a result of that shape.
    pub(crate) fn of(shape: &[u64], all: bool) -> Self {
        let count = shape
            .iter()
            .fold(1_u128, |n, &extent| n.saturating_mul(extent.into()));
        let shorten = !all && count > SHOWN_MAX;
        Self {
            cut: shape
                .iter()
                .map(|&n| shorten && n > EDGE.saturating_mul(2))
                .collect(),
        }
    }

    #[cfg(test)]
    fn any(&self) -> bool {
        self.cut.contains(&true)
    }

    /// The places along an axis that are shown, of `n`; none where all are.
    pub(crate) fn places(&self, axis: usize, n: u64) -> Option<Vec<u64>> {
        let cut = self.cut.get(axis).copied().unwrap_or(false);
        cut.then(|| (0..EDGE).chain(n.saturating_sub(EDGE)..n).collect())
    }
}

/// The block as text; `elision` says on which axes its middle is missing.
pub(crate) fn render(block: &Block, elision: &Elision) -> String {
    let count: u64 = block.shape.iter().product();
    let texts: Vec<String> = (0..usize::try_from(count).unwrap_or(usize::MAX))
        .map(|i| {
            shown(
                &block.data_type,
                element(&block.elements, &block.data_type, i),
            )
        })
        .collect();
    let width = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let mut next = texts.iter();
    let mut printer = Printer {
        out: &mut out,
        next: &mut next,
        shape: &block.shape,
        elision,
        width,
    };
    printer.axis(0);
    out
}

fn shown(data_type: &DataType, bytes: &[u8]) -> String {
    match data_type {
        DataType::String | DataType::NullTerminatedBytes { .. } | DataType::FixedUtf32 { .. } => {
            format!("{:?}", escape(&data_type.element_to_text(bytes)))
        }
        _ => data_type.element_to_text(bytes),
    }
}

struct Printer<'a, 'b> {
    out: &'a mut String,
    next: &'a mut std::slice::Iter<'b, String>,
    shape: &'a [u64],
    elision: &'a Elision,
    width: usize,
}

impl Printer<'_, '_> {
    /// Ranks are at most 32, so the recursion is bounded.
    fn axis(&mut self, axis: usize) {
        let Some(&n) = self.shape.get(axis) else {
            let text = self.next.next().map_or("", String::as_str);
            let _ = write!(
                self.out,
                "{text:>width$}",
                width = if axis == 0 { 0 } else { self.width }
            );
            return;
        };
        let innermost = axis.saturating_add(1) == self.shape.len();
        let cut = self.elision.cut.get(axis).copied().unwrap_or(false);
        self.out.push('[');
        for i in 0..n {
            if i > 0 {
                self.between(axis, innermost);
            }
            if cut && i == EDGE {
                self.out.push_str("...");
                self.between(axis, innermost);
            }
            self.axis(axis.saturating_add(1));
        }
        self.out.push(']');
    }

    fn between(&mut self, axis: usize, innermost: bool) {
        if innermost {
            self.out.push(' ');
            return;
        }
        // One empty line more for each axis between.
        let depth = self.shape.len().saturating_sub(axis).saturating_sub(1);
        for _ in 0..depth {
            self.out.push('\n');
        }
        for _ in 0..=axis {
            self.out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orthant::Elements;

    fn block(shape: &[u64], values: &[i16]) -> Block {
        Block {
            data_type: DataType::Int16,
            shape: shape.to_vec(),
            elements: Elements::Fixed(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        }
    }

    #[test]
    fn columns_line_up_and_brackets_nest_as_numpys() {
        let b = block(&[2, 2], &[1, -20, 3, 4]);
        assert_eq!(
            render(&b, &Elision::of(&b.shape, false)),
            "[[  1 -20]\n [  3   4]]"
        );
        let b = block(&[2, 1, 2], &[1, 2, 3, 4]);
        assert_eq!(
            render(&b, &Elision::of(&b.shape, false)),
            "[[[1 2]]\n\n [[3 4]]]"
        );
        assert_eq!(render(&block(&[], &[7]), &Elision::of(&[], false)), "7");
        assert_eq!(render(&block(&[0], &[]), &Elision::of(&[0], false)), "[]");
    }

    #[test]
    fn the_middle_of_long_axes_is_left_out_and_never_asked_for() {
        let e = Elision::of(&[2000], false);
        assert_eq!(e.places(0, 2000), Some(vec![0, 1, 2, 1997, 1998, 1999]));
        let b = block(&[6], &[0, 1, 2, 1997, 1998, 1999]);
        assert_eq!(render(&b, &e), "[   0    1    2 ... 1997 1998 1999]");
        assert!(!Elision::of(&[1000], false).any());
        assert!(!Elision::of(&[2000], true).any());
        assert_eq!(Elision::of(&[500, 4], false).places(1, 4), None);
    }
}
