//! Labels of an axis beyond the array that holds them.
//!
//! Holds [`extend`]. The cover of a group may reach past a coordinate array; labels there go on with the step at that end,
//! so that they stay in order and none stands twice. Types without a step get the fill value. Must not read arrays.

use orthant::{Block, DataType, Elements};

/// The elements of a one-dimensional block with `before` labels in front of them and `after` behind.
pub(crate) fn extend(block: &Block, before: u64, after: u64, fill: &[u8]) -> Elements {
    let bytes = match &block.elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(items) => {
            let pad = |n: u64| (0..n).map(|_| Box::<[u8]>::from(fill));
            return Elements::Variable(
                pad(before)
                    .chain(items.iter().cloned())
                    .chain(pad(after))
                    .collect(),
            );
        }
    };
    let item = block.data_type.item_size().unwrap_or(1).max(1);
    let at = |i: usize| bytes.chunks_exact(item).nth(i);
    let count = bytes.len().checked_div(item).unwrap_or(0);
    let (first, second) = (at(0), at(1));
    let (last, before_last) = (at(count.wrapping_sub(1)), at(count.wrapping_sub(2)));
    let mut out = Vec::new();
    for k in (1..=before).rev() {
        let label = next(&block.data_type, first, second, -1, k);
        out.extend_from_slice(label.as_deref().unwrap_or(fill));
    }
    out.extend_from_slice(bytes);
    for k in 1..=after {
        let label = next(&block.data_type, last, before_last, 1, k);
        out.extend_from_slice(label.as_deref().unwrap_or(fill));
    }
    Elements::Fixed(out)
}

/// `end + k * (end - inward)`; with one label alone, the step is `alone`.
fn next(
    data_type: &DataType,
    end: Option<&[u8]>,
    inward: Option<&[u8]>,
    alone: i8,
    k: u64,
) -> Option<Vec<u8>> {
    let end = end?;
    match data_type {
        DataType::Float32 => {
            let read = |b: &[u8]| b.try_into().ok().map(|b| f64::from(f32::from_le_bytes(b)));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rounded to the type of the labels"
            )]
            let v = float(read(end)?, inward.and_then(read), alone, k) as f32;
            Some(v.to_le_bytes().to_vec())
        }
        DataType::Float64 => {
            let read = |b: &[u8]| b.try_into().ok().map(f64::from_le_bytes);
            Some(
                float(read(end)?, inward.and_then(read), alone, k)
                    .to_le_bytes()
                    .to_vec(),
            )
        }
        _ => {
            let signed = match data_type {
                DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Datetime64 { .. }
                | DataType::Timedelta64 { .. } => true,
                DataType::Uint8 | DataType::Uint16 | DataType::Uint32 | DataType::Uint64 => false,
                _ => return None,
            };
            let last = whole(end, signed);
            let step = inward.map_or(i128::from(alone), |inward| last - whole(inward, signed));
            let v = last.checked_add(step.checked_mul(i128::from(k))?)?;
            let bytes = v.to_le_bytes().get(..end.len())?.to_vec();
            // A label that the type does not hold is none.
            (whole(&bytes, signed) == v).then_some(bytes)
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an axis of 2^53 labels is not written out"
)]
fn float(end: f64, inward: Option<f64>, alone: i8, k: u64) -> f64 {
    inward
        .map_or(f64::from(alone), |inward| end - inward)
        .mul_add(k as f64, end)
}

fn whole(bytes: &[u8], signed: bool) -> i128 {
    let value = bytes
        .iter()
        .rev()
        .fold(0_i128, |v, b| v << 8 | i128::from(*b));
    let bits = bytes.len().saturating_mul(8);
    if signed && bytes.last().is_some_and(|b| b & 0x80 != 0) {
        value - (1_i128 << bits)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(data_type: DataType, elements: Vec<u8>, before: u64, after: u64) -> Elements {
        let n = elements
            .len()
            .checked_div(data_type.item_size().unwrap())
            .unwrap();
        let block = Block {
            data_type,
            shape: vec![n as u64],
            elements: Elements::Fixed(elements),
        };
        extend(&block, before, after, &[9])
    }

    #[test]
    fn labels_go_on_with_the_step_at_their_end() {
        let bytes = |v: &[f64]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
        let got = extended(DataType::Float64, bytes(&[10.0, 10.5, 12.5]), 2, 1);
        assert_eq!(
            got,
            Elements::Fixed(bytes(&[9.0, 9.5, 10.0, 10.5, 12.5, 14.5]))
        );
        let got = extended(DataType::Int8, vec![5, 3], 1, 3);
        assert_eq!(got, Elements::Fixed(vec![7, 5, 3, 1, 255, 253]));
        let got = extended(DataType::Uint8, vec![1], 1, 1);
        assert_eq!(
            got,
            Elements::Fixed(vec![0, 1, 2]),
            "one label alone has the step 1"
        );
    }

    #[test]
    fn a_label_that_the_type_does_not_hold_is_fill() {
        assert_eq!(
            extended(DataType::Uint8, vec![1, 3], 1, 0),
            Elements::Fixed(vec![9, 1, 3])
        );
        assert_eq!(
            extended(DataType::Bool, vec![1], 1, 1),
            Elements::Fixed(vec![9, 1, 9])
        );
    }
}
