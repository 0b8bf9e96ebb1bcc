//! Bytes and text of one width: an element as text, and back. Spec: `format-spec/10-documents.md`, R-10.38.
//!
//! Holds the conversions of `NullTerminatedBytes` and `FixedUtf32`. Must not hold JSON or know arrays.

use super::base64;

/// The element without its padding.
fn unpadded(bytes: &[u8]) -> &[u8] {
    let kept = bytes.iter().rposition(|b| *b != 0);
    bytes
        .get(..kept.map_or(0, |last| last.saturating_add(1)))
        .unwrap_or_default()
}

/// `bytes` with zeros behind them; `None` where they are more than `len`.
fn padded(mut bytes: Vec<u8>, len: usize) -> Option<Vec<u8>> {
    (bytes.len() <= len).then(|| {
        bytes.resize(len, 0);
        bytes
    })
}

/// Null-terminated bytes as text; what is no UTF-8 stands as `\xNN`, so that nothing is hidden.
pub(super) fn bytes_to_text(bytes: &[u8]) -> String {
    unpadded(bytes)
        .utf8_chunks()
        .fold(String::new(), |mut text, chunk| {
            text.push_str(chunk.valid());
            text.extend(
                chunk
                    .invalid()
                    .iter()
                    .flat_map(|b| b.escape_ascii())
                    .map(char::from),
            );
            text
        })
}

/// The element of `len` bytes that begins with `text`.
pub(super) fn bytes_from_text(text: &str, len: usize) -> Option<Vec<u8>> {
    padded(text.as_bytes().to_vec(), len)
}

/// The fill value's form in a document: base64 of the element without its padding.
pub(super) fn bytes_to_base64(bytes: &[u8]) -> String {
    base64::encode(unpadded(bytes))
}

/// Reads that form, padding included or not.
pub(super) fn bytes_from_base64(text: &str, len: usize) -> Option<Vec<u8>> {
    padded(base64::decode(text)?, len)
}

/// UTF-32 as text without its padding; `None` where a code is no character.
pub(super) fn utf32_to_text(bytes: &[u8]) -> Option<String> {
    let (codes, _) = bytes.as_chunks::<4>();
    let text: Option<String> = codes
        .iter()
        .map(|c| char::from_u32(u32::from_le_bytes(*c)))
        .collect();
    text.map(|t| t.trim_end_matches('\0').to_owned())
}

/// The same, with U+FFFD for each code that is no character.
pub(super) fn utf32_shown(bytes: &[u8]) -> String {
    let (codes, _) = bytes.as_chunks::<4>();
    let shown =
        |c: &[u8; 4]| char::from_u32(u32::from_le_bytes(*c)).unwrap_or(char::REPLACEMENT_CHARACTER);
    let text: String = codes.iter().map(shown).collect();
    text.trim_end_matches('\0').to_owned()
}

/// The element of `len` bytes that is `text`.
pub(super) fn utf32_from_text(text: &str, len: usize) -> Option<Vec<u8>> {
    padded(
        text.chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect(),
        len,
    )
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;
    use crate::format::dtype::DataType;
    use crate::format::json::Json;

    fn data_type(text: &str) -> DataType {
        text.parse().unwrap()
    }

    #[test]
    fn text_of_one_width_is_padded_and_shown_without_its_padding() {
        for (name, text, bytes) in [
            ("S3", "ab", &b"ab\0"[..]),
            ("S3", "\u{e9}a", b"\xc3\xa9a"),
            ("S1", "", b"\0"),
            ("U2", "a", b"a\0\0\0\0\0\0\0"),
            ("U2", "\u{1f600}b", b"\0\xf6\x01\0b\0\0\0"),
            // Only zeros at the end are padding.
            ("S3", "\0a", b"\0a\0"),
        ] {
            let data_type = data_type(name);
            assert_eq!(
                data_type.element_from_json(&Json::text(text)).unwrap(),
                bytes,
                "{name} {text}"
            );
            assert_eq!(data_type.element_from_text(text).unwrap(), bytes);
            assert_eq!(data_type.element_to_json(bytes), Json::text(text));
        }
        // A number that is text, as a table's cell has it.
        assert_eq!(data_type("S4").element_from_text("1.50").unwrap(), b"1.50");
    }

    #[test]
    fn text_that_is_too_long_is_refused() {
        for (name, text) in [("S3", "abcd"), ("S3", "\u{e9}\u{e9}"), ("U2", "abc")] {
            let e = data_type(name).element_from_text(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        }
    }

    /// The forms that zarr-python 3.1.6 writes for `S3` and `<U3` with the fill value `ab`.
    #[test]
    fn the_documents_fill_is_that_of_zarr_python() {
        let (bytes, text) = (data_type("S3"), data_type("U3"));
        let fill = |t: &DataType, json: &str| t.fill_from_json(&Json::text(json)).unwrap();
        assert_eq!(fill(&bytes, "YWI="), b"ab\0");
        assert_eq!(fill(&bytes, "YWIA"), b"ab\0");
        assert_eq!(bytes.fill_to_json(b"ab\0"), Some(Json::text("YWI=")));
        assert_eq!(fill(&text, "ab"), b"a\0\0\0b\0\0\0\0\0\0\0");
        assert_eq!(
            text.fill_to_json(&fill(&text, "ab")),
            Some(Json::text("ab"))
        );
        assert!(bytes.fill_from_json(&Json::text("YWJjZA==")).is_err());
    }

    #[test]
    fn what_is_no_text_is_shown_and_is_no_fill_value_of_text() {
        assert_eq!(data_type("S3").element_to_text(b"a\xffb"), "a\\xffb");
        let surrogate = b"\0\xd8\0\0a\0\0\0";
        assert_eq!(data_type("U2").element_to_text(surrogate), "\u{fffd}a");
        assert_eq!(data_type("U2").fill_to_json(surrogate), None);
    }
}
