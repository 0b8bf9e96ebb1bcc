//! Building the JSON that goes to stdout, and one element's value as JSON text.
//!
//! Holds shorthands over [`Json`], whose integers are exact and whose members keep their order. Must not know verbs.

use std::io::{self, Write};

use orthant::{Block, DataType, Domain, Elements, Error, Json};

use crate::target::slashed;

/// An object of members in the given order.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    Json::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// An object that says what it is, as every answer does.
pub(crate) fn answer<'a>(verb: &str, members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    object(std::iter::once(("schema", text(format!("orthant/{verb}/1")))).chain(members))
}

pub(crate) fn text(text: impl Into<String>) -> Json {
    Json::String(text.into())
}

pub(crate) fn uint(v: u64) -> Json {
    i64::try_from(v).map_or(Json::U64(v), Json::I64)
}

/// A count that may pass `u64`: then the nearest float, as no JSON reader has larger exact integers.
pub(crate) fn big(v: u128) -> Json {
    u64::try_from(v).map_or_else(
        |_| {
            #[expect(
                clippy::cast_precision_loss,
                reason = "past 2^64 the digits beyond a double's are not asked for"
            )]
            Json::F64(v as f64)
        },
        uint,
    )
}

pub(crate) fn uints(values: impl IntoIterator<Item = u64>) -> Json {
    Json::Array(values.into_iter().map(uint).collect())
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> Json {
    Json::Array(values.into_iter().map(Json::I64).collect())
}

/// `[[lo,hi],..]`
pub(crate) fn domain(domain: &Domain) -> Json {
    pairs(domain.bounds())
}

/// `[[lo,hi],..]`
pub(crate) fn pairs(bounds: &[(i64, i64)]) -> Json {
    Json::Array(bounds.iter().map(|&(lo, hi)| ints([lo, hi])).collect())
}

/// Where an error is and what it says: the members that every list of damage shares.
pub(crate) fn place_of(e: &Error) -> [(&'static str, Json); 6] {
    let chunk = |c: &[i64]| ints(c.iter().copied());
    [
        ("array", maybe_text(e.array().map(slashed))),
        ("chunk", e.chunk().map_or(Json::Null, chunk)),
        ("offset", e.offset().map_or(Json::Null, uint)),
        ("expected", maybe_text(e.expected_value())),
        ("found", maybe_text(e.found_value())),
        ("text", text(e.to_string())),
    ]
}

pub(crate) fn maybe_text(value: Option<impl Into<String>>) -> Json {
    value.map_or(Json::Null, text)
}

/// A ratio for people; 0 where there is nothing to divide by.
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Element `index` of a block as the bytes the library's text and JSON forms take.
pub(crate) fn element<'a>(elements: &'a Elements, data_type: &DataType, index: usize) -> &'a [u8] {
    match elements {
        Elements::Fixed(bytes) => {
            let size = data_type.item_size().unwrap_or(1);
            let start = index.saturating_mul(size);
            bytes
                .get(start..start.saturating_add(size))
                .unwrap_or_default()
        }
        Elements::Variable(items) => items.get(index).map_or(&[][..], AsRef::as_ref),
    }
}

/// Writes a block's elements as nested lists of its shape; rank 0 is the bare element.
pub(crate) fn write_nested(out: &mut impl Write, block: &Block) -> io::Result<()> {
    let mut next = 0;
    nested(out, block, &block.shape, &mut next)
}

/// Ranks are at most 32, so the recursion is bounded.
fn nested(out: &mut impl Write, block: &Block, shape: &[u64], next: &mut usize) -> io::Result<()> {
    let Some((&n, inner)) = shape.split_first() else {
        let bytes = element(&block.elements, &block.data_type, *next);
        *next = next.saturating_add(1);
        return write!(out, "{}", block.data_type.element_to_json(bytes));
    };
    out.write_all(b"[")?;
    for i in 0..n {
        if i > 0 {
            out.write_all(b",")?;
        }
        nested(out, block, inner, next)?;
    }
    out.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_past_2_to_53_keep_their_last_digit() {
        let block = Block {
            data_type: DataType::Uint64,
            shape: vec![2, 1],
            elements: Elements::Fixed(
                [u64::MAX, (1 << 53) + 1]
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect(),
            ),
        };
        let mut out = Vec::new();
        write_nested(&mut out, &block).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "[[18446744073709551615],[9007199254740993]]"
        );
    }

    #[test]
    fn a_block_without_axes_is_one_value_and_one_without_elements_is_empty_lists() {
        let one = |shape: Vec<u64>, bytes: Vec<u8>| {
            let mut out = Vec::new();
            let block = Block {
                data_type: DataType::Float32,
                shape,
                elements: Elements::Fixed(bytes),
            };
            write_nested(&mut out, &block).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(one(vec![], f32::NAN.to_le_bytes().to_vec()), "\"NaN\"");
        assert_eq!(one(vec![2, 0], vec![]), "[[],[]]");
    }
}
