//! Blobs: documents and attribute values in the index, inline or in an extent. Spec: `format-spec/07-blobs.md`.
//!
//! Holds the two forms and the kinds of content. Must not read the extent it names, nor interpret the content.
//!
//! Invariant: up to [`INLINE_LEN_MAX`] bytes are inline, more lie in an extent; there is one form for each length.

use super::extent::Extent;
use super::key::Value;
use crate::bytes::{Reader, Writer};
use crate::error::{Error, Result};
use crate::limits::INLINE_LEN_MAX;

const FORM_INLINE: u8 = 0;
const FORM_EXTENT: u8 = 2;

/// What the bytes of a blob are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON text; documents always are.
    Json,
    /// One typed array.
    Typed,
    /// One tagged value.
    Tree,
}

impl Content {
    fn code(self) -> u8 {
        match self {
            Self::Json => 0,
            Self::Typed => 1,
            Self::Tree => 2,
        }
    }

    fn from_code(code: u8) -> Result<Self> {
        match code {
            0 => Ok(Self::Json),
            1 => Ok(Self::Typed),
            2 => Ok(Self::Tree),
            _ => Err(Error::unsupported("blob content").found(code)),
        }
    }
}

/// A blob as the index holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blob<'a> {
    /// The bytes stand in the index.
    Inline(Content, &'a [u8]),
    /// The bytes lie in an extent.
    Stored(Content, Extent),
}

impl<'a> Blob<'a> {
    /// Reads a blob.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a form or content of a later version, else `Corrupt`.
    pub(crate) fn decode(value: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new("blob", 0, value);
        let (form, content) = (r.u8()?, r.u8()?);
        match form {
            FORM_INLINE => {
                let content = Content::from_code(content)?;
                let bytes = r.rest();
                if bytes.len() > INLINE_LEN_MAX {
                    return Err(Error::corrupt("inline blob")
                        .expected(format_args!("at most {INLINE_LEN_MAX} bytes"))
                        .found(bytes.len()));
                }
                Ok(Self::Inline(content, bytes))
            }
            FORM_EXTENT => {
                let content = Content::from_code(content)?;
                let (offset, len, raw_len, crc) = (r.u64()?, r.u32()?, r.u32()?, r.u32()?);
                r.finish()?;
                if raw_len != len || u64::from(len) <= INLINE_LEN_MAX as u64 {
                    return Err(Error::corrupt("blob extent")
                        .expected(format_args!("two equal lengths above {INLINE_LEN_MAX}"))
                        .found(format_args!("{len} and {raw_len}")));
                }
                let extent = Extent {
                    offset,
                    len: len.into(),
                    crc,
                };
                Ok(Self::Stored(content, extent))
            }
            _ => Err(Error::unsupported("blob form").found(form)),
        }
    }

    /// The value in the index.
    pub(crate) fn encode(&self) -> Result<Value> {
        let mut w = Writer::with_capacity(INLINE_LEN_MAX);
        match self {
            Self::Inline(content, bytes) => {
                debug_assert!(bytes.len() <= INLINE_LEN_MAX);
                w.u8(FORM_INLINE);
                w.u8(content.code());
                w.slice(bytes);
            }
            Self::Stored(content, extent) => {
                let len = u32::try_from(extent.len)
                    .map_err(|_| Error::limit("length of a blob").found(extent.len))?;
                w.u8(FORM_EXTENT);
                w.u8(content.code());
                w.u64(extent.offset);
                w.u32(len);
                w.u32(len);
                w.u32(extent.crc);
            }
        }
        Ok(Value::from_slice(w.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn both_forms_have_the_bytes_of_the_specification() {
        let inline = Blob::Inline(Content::Tree, &[7, 8]);
        assert_eq!(inline.encode().unwrap().as_slice(), [0, 2, 7, 8]);
        let extent = Extent {
            offset: 0x3000,
            len: 1025,
            crc: 0x0403_0201,
        };
        let stored = Blob::Stored(Content::Json, extent);
        let bytes = stored.encode().unwrap();
        assert_eq!(
            bytes.as_slice(),
            [
                2, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 1, 4, 0, 0, 1, 2, 3, 4
            ]
        );
        assert_eq!(Blob::decode(&bytes).unwrap(), stored);
        assert_eq!(
            Blob::decode(&[0, 1]).unwrap(),
            Blob::Inline(Content::Typed, &[])
        );
    }

    #[test]
    fn each_length_has_one_form_and_unknown_codes_are_unsupported() {
        let mut long = vec![0; 2 + INLINE_LEN_MAX];
        assert!(Blob::decode(&long).is_ok());
        long.push(0);
        assert!(Blob::decode(&long).unwrap_err().is_corruption());
        let stored = |len: u8, raw: u8| {
            let mut bytes = vec![2, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, len, 4, 0, 0, raw, 4, 0, 0];
            bytes.extend([0; 4]);
            bytes
        };
        assert!(Blob::decode(&stored(1, 1)).is_ok());
        assert!(Blob::decode(&stored(0, 0)).unwrap_err().is_corruption());
        assert!(Blob::decode(&stored(2, 1)).unwrap_err().is_corruption());
        for bytes in [
            &[][..],
            &[0],
            &stored(1, 1)[..21],
            &[stored(1, 1), vec![0]].concat(),
        ] {
            assert!(Blob::decode(bytes).unwrap_err().is_corruption());
        }
        for bytes in [[1, 0], [3, 0], [0, 3], [2, 9], [255, 255]] {
            assert_eq!(
                Blob::decode(&bytes).unwrap_err().kind(),
                ErrorKind::Unsupported
            );
        }
    }
}
