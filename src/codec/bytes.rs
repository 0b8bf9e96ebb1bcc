//! Codec `bytes`: array to bytes.
//!
//! Produces: the elements in C order, their words in the byte order that `endian` names (Zarr v3 core, "bytes codec").
//! Parameters: `endian` = `little` or `big`. Elements without byte order may leave it out and ignore it; records are
//! little-endian.
//! Output: as long as the input. Empty input gives empty output.
//!
//! Also holds the rule that a boolean's byte is 0 or 1: no other byte reaches a caller.

use super::config::Config;
use super::layout::Layout;
use crate::error::{Error, Result};

/// The parsed codec: how wide the words are whose bytes it reverses; 1 leaves all as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) swap: usize,
}

impl Bytes {
    pub(crate) fn parse(mut config: Config<'_>, layout: &Layout) -> Result<Self> {
        let endian = config.text("endian")?;
        let swap = match endian {
            Some("little") => 1,
            Some("big") if !layout.record => layout.word_len,
            Some(other) => {
                return Err(config
                    .fault()
                    .expected(if layout.record {
                        "`endian` little, for records"
                    } else {
                        "`endian` little or big"
                    })
                    .found(other));
            }
            None if layout.word_len == 1 => 1,
            None => {
                return Err(config
                    .fault()
                    .expected("`endian` little or big")
                    .found("none"));
            }
        };
        config.finish()?;
        Ok(Self { swap })
    }

    /// Reverses the bytes of every word; the same both ways.
    pub(crate) fn swap(&self, bytes: &mut [u8]) {
        match self.swap {
            2 => reverse::<2>(bytes),
            4 => reverse::<4>(bytes),
            8 => reverse::<8>(bytes),
            _ => {}
        }
    }
}

fn reverse<const N: usize>(bytes: &mut [u8]) {
    for word in bytes.as_chunks_mut::<N>().0 {
        word.reverse();
    }
}

/// Refuses a boolean byte other than 0 and 1, naming the element's position in the chunk (C order).
pub(crate) fn check_bools(bytes: &[u8], layout: &Layout) -> Result<()> {
    let Some(item_len @ 1..) = layout.item_len else {
        return Ok(());
    };
    // The common case, one byte an element, is a plain scan that the compiler turns into vector code.
    if layout.bools.is_empty() || (item_len == 1 && bytes.iter().fold(0, |all, b| all | b) <= 1) {
        return Ok(());
    }
    for (position, item) in bytes.chunks_exact(item_len).enumerate() {
        for &at in &layout.bools {
            match item.get(at) {
                Some(0 | 1) | None => {}
                Some(other) => {
                    return Err(Error::corrupt("boolean")
                        .reason("boolean")
                        .expected("byte 0 or 1")
                        .found(format_args!(
                            "{other} in element {position} of the chunk, in C order"
                        )));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dtype::{DataType, Field};

    #[test]
    fn a_byte_that_is_no_boolean_is_named_with_its_element() {
        let layout = Layout::of(&DataType::Bool);
        check_bools(&[0, 1, 1, 0], &layout).unwrap();
        let e = check_bools(&[0, 1, 2, 0], &layout).unwrap_err();
        assert!(e.is_corruption());
        assert!(e.to_string().contains("2 in element 2"), "{e}");
    }

    #[test]
    fn booleans_inside_records_are_checked_and_other_fields_are_not() {
        let field = |name: &str, data_type| Field {
            name: name.to_owned(),
            data_type,
        };
        let record = DataType::Structured(vec![
            field("a", DataType::Int16),
            field("b", DataType::Bool),
        ]);
        let layout = Layout::of(&record);
        assert_eq!((layout.item_len, layout.word_len), (Some(3), 1));
        check_bools(&[9, 9, 1, 9, 9, 0], &layout).unwrap();
        let e = check_bools(&[9, 9, 1, 9, 9, 7], &layout).unwrap_err();
        assert!(e.to_string().contains("7 in element 1"), "{e}");
    }
}
