//! A box of elements laid into a larger one.
//!
//! Holds [`Canvas`]. Knows blocks and shapes only; must not read arrays.

use orthant::{Block, DataType, Elements};

/// A block of one shape, all fill at first.
pub(crate) struct Canvas {
    block: Block,
    item: usize,
}

impl Canvas {
    /// `None` where so many elements cannot be held.
    pub(crate) fn new(data_type: &DataType, shape: &[u64], fill: &[u8]) -> Option<Self> {
        let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e))?;
        let count = usize::try_from(count).ok()?;
        let elements = match data_type.item_size() {
            Some(item) => {
                count.checked_mul(item)?;
                Elements::Fixed(fill.repeat(count))
            }
            None => Elements::Variable(vec![fill.into(); count]),
        };
        let block = Block {
            data_type: data_type.clone(),
            shape: shape.to_vec(),
            elements,
        };
        Some(Self {
            block,
            item: data_type.item_size().unwrap_or(1),
        })
    }

    /// Lays `part` in, its first element at `at`; what does not fit stays out.
    pub(crate) fn lay(&mut self, part: &Block, at: &[u64]) {
        let row = part.shape.last().copied().unwrap_or(1);
        let rows = part
            .shape
            .iter()
            .take(part.shape.len().saturating_sub(1))
            .product::<u64>();
        if row == 0 {
            return;
        }
        for number in 0..rows {
            let to = self.start(&part.shape, at, number);
            let range = |first: u64, scale: usize| {
                let first = usize::try_from(first).ok()?.checked_mul(scale)?;
                let len = usize::try_from(row).ok()?.checked_mul(scale)?;
                Some(first..first.checked_add(len)?)
            };
            let from = number.saturating_mul(row);
            match (&mut self.block.elements, &part.elements) {
                (Elements::Fixed(all), Elements::Fixed(one)) => {
                    let to = range(to, self.item).and_then(|r| all.get_mut(r));
                    let from = range(from, self.item).and_then(|r| one.get(r));
                    if let (Some(to), Some(from)) = (to, from) {
                        to.copy_from_slice(from);
                    }
                }
                (Elements::Variable(all), Elements::Variable(one)) => {
                    let to = range(to, 1).and_then(|r| all.get_mut(r));
                    let from = range(from, 1).and_then(|r| one.get(r));
                    if let (Some(to), Some(from)) = (to, from) {
                        to.clone_from_slice(from);
                    }
                }
                _ => {}
            }
        }
    }

    /// Position of the first element of a row of `part` in the canvas.
    fn start(&self, part: &[u64], at: &[u64], row: u64) -> u64 {
        let (mut rest, mut stride, mut start) = (row, 1_u64, 0_u64);
        for axis in (0..part.len()).rev() {
            let (len, first) = (part.get(axis).copied(), at.get(axis).copied().unwrap_or(0));
            let within = if axis.saturating_add(1) == part.len() {
                0
            } else {
                let len = len.unwrap_or(1).max(1);
                let within = rest.rem_euclid(len);
                rest = rest.div_euclid(len);
                within
            };
            start = start.saturating_add(stride.saturating_mul(first.saturating_add(within)));
            stride = stride.saturating_mul(self.block.shape.get(axis).copied().unwrap_or(1));
        }
        start
    }

    pub(crate) fn into_block(self) -> Block {
        self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_lies_where_it_is_laid_and_fill_is_around_it() {
        let mut canvas = Canvas::new(&DataType::Uint8, &[2, 3, 4], &[9]).unwrap();
        let part = Block {
            data_type: DataType::Uint8,
            shape: vec![1, 2, 3],
            elements: Elements::Fixed((1..=6).collect()),
        };
        canvas.lay(&part, &[1, 1, 0]);
        let mut want = vec![9; 24];
        want[16..19].copy_from_slice(&[1, 2, 3]);
        want[20..23].copy_from_slice(&[4, 5, 6]);
        assert_eq!(canvas.into_block().elements, Elements::Fixed(want));
        let mut one = Canvas::new(&DataType::Uint8, &[], &[9]).unwrap();
        one.lay(
            &Block {
                data_type: DataType::Uint8,
                shape: vec![],
                elements: Elements::Fixed(vec![4]),
            },
            &[],
        );
        assert_eq!(one.into_block().elements, Elements::Fixed(vec![4]));
    }
}
