//! JSON as other software writes it, which is not always JSON: Python puts bare `NaN` and `Infinity` into documents.
//!
//! Holds [`parse`]. Must not know any document.

use orthant::{Json, Limits};

use super::Refusal;

/// Reads a document; bare `NaN`, `Infinity` and `-Infinity` become the floats they mean.
pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<Json, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("it is not UTF-8: {e}"))?;
    let text = text.trim_start_matches('\u{feff}');
    let first = match Json::parse(text, limits) {
        Ok(json) => return Ok(json),
        Err(e) => e,
    };
    // Only a document that is no JSON is looked at again.
    let mut mark = "bare ".to_owned();
    while text.contains(&mark) {
        mark.push_str("bare ");
    }
    let (marked, found) = marked(text, &mark);
    if !found {
        return Err(first.to_string());
    }
    let mut json = Json::parse(&marked, limits).map_err(|e| e.to_string())?;
    restore(&mut json, &mark);
    Ok(json)
}

/// The text with every bare word of a float as a string that starts with `mark`; whether there was one.
fn marked(text: &str, mark: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let (mut found, mut rest) = (false, text);
    while let Some(c) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"]
            .into_iter()
            .find(|w| rest.starts_with(w));
        let taken = if c == '"' {
            let len = string_len(rest);
            out.push_str(rest.get(..len).unwrap_or_default());
            len
        } else if let Some(word) = word {
            found = true;
            out.extend(["\"", mark, word, "\""]);
            word.len()
        } else {
            out.push(c);
            c.len_utf8()
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    (out, found)
}

/// Bytes of the string that `text` begins with, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at.saturating_add(1),
            _ => {}
        }
    }
    text.len()
}

/// Depth is that of what was parsed, which the limits bound.
fn restore(json: &mut Json, mark: &str) {
    match json {
        Json::String(text) => match text.strip_prefix(mark) {
            Some("NaN") => *json = Json::F64(f64::NAN),
            Some("Infinity") => *json = Json::F64(f64::INFINITY),
            Some("-Infinity") => *json = Json::F64(f64::NEG_INFINITY),
            _ => {}
        },
        Json::Array(items) => items.iter_mut().for_each(|item| restore(item, mark)),
        Json::Object(members) => members.iter_mut().for_each(|(_, v)| restore(v, mark)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_are_floats_and_words_in_strings_stay_text() {
        let text = r#"{"_FillValue": NaN, "range": [-Infinity, Infinity], "note": "NaN \" NaN"}"#;
        let json = parse(text.as_bytes(), &Limits::default()).unwrap();
        let fill = json.get("_FillValue").unwrap();
        assert!(matches!(fill, Json::F64(v) if v.is_nan()), "{fill}");
        let range = json.get("range").and_then(Json::as_array).unwrap();
        assert_eq!(
            range,
            [Json::F64(f64::NEG_INFINITY), Json::F64(f64::INFINITY)]
        );
        assert_eq!(json.get("note").and_then(Json::as_str), Some("NaN \" NaN"));
    }

    #[test]
    fn what_is_no_json_at_all_is_an_error() {
        assert!(parse(b"{nan}", &Limits::default()).is_err());
        assert!(parse(b"\xff", &Limits::default()).is_err());
        assert!(parse(b"{\"a\": \"NaN", &Limits::default()).is_err());
    }
}
