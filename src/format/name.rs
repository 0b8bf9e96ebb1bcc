//! Names of objects and attributes, and paths. Spec: `format-spec/05-keys.md`, R-5.6 and.
//!
//! Holds the rules on names and [`ObjectPath`]. Must not look anything up.
//!
//! A name must already be in Unicode's composed form (NFC): one that is not is refused with the composed form in the
//! help, never changed, so that what is listed is what was given.

use std::fmt;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::error::{Error, Result};
use crate::limits::{Limits, NAME_LEN_MAX};

/// Checks the name of a group or an array.
///
/// # Errors
///
/// `InvalidArgument` saying what is wrong with it.
pub(crate) fn check_object_name(name: &str) -> Result<()> {
    let broken = |rule: &str| Err(fault("object name", name, rule));
    match name {
        "." | ".." => return broken("neither `.` nor `..`"),
        _ if name.contains('/') => return broken("no `/`, which separates names"),
        _ => {}
    }
    if name.chars().any(char::is_control) {
        return broken("no control characters");
    }
    if name.chars().any(is_bidi_control) {
        return broken("no characters that override the direction of text");
    }
    check_common("object name", name)
}

/// Checks the name of an attribute.
///
/// # Errors
///
/// As [`check_object_name`].
pub(crate) fn check_attribute_name(name: &str) -> Result<()> {
    if name.contains('\0') {
        return Err(fault("attribute name", name, "no NUL"));
    }
    check_common("attribute name", name)
}

/// Checks the name of a retained snapshot that is to be written.
///
/// # Errors
///
/// As [`check_object_name`].
pub(crate) fn check_label(label: &str) -> Result<()> {
    if label.chars().any(char::is_control) {
        return Err(fault("snapshot name", label, "no control characters"));
    }
    if label.chars().any(is_bidi_control) {
        return Err(fault(
            "snapshot name",
            label,
            "no characters that override the direction of text",
        ));
    }
    check_common("snapshot name", label)
}

/// An object name from a key: what breaks a rule there is damage.
pub(crate) fn object_name_from_key(bytes: &[u8]) -> Result<&str> {
    let name = utf8("object name", bytes)?;
    check_object_name(name).map_err(Error::into_corrupt)?;
    Ok(name)
}

/// An attribute name from a key.
pub(crate) fn attribute_name_from_key(bytes: &[u8]) -> Result<&str> {
    let name = utf8("attribute name", bytes)?;
    check_attribute_name(name).map_err(Error::into_corrupt)?;
    Ok(name)
}

fn utf8<'a>(what: &'static str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| {
        Error::corrupt(what)
            .expected("UTF-8")
            .found(format_args!("{:?}", bytes.escape_ascii().to_string()))
    })
}

fn check_common(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_LEN_MAX {
        return Err(Error::invalid(what)
            .expected(format_args!("1..={NAME_LEN_MAX} bytes"))
            .found(format_args!("{} bytes", name.len()))
            .reason("name"));
    }
    if !is_nfc(name) {
        let composed: String = name.nfc().collect();
        return Err(fault(what, name, "composed Unicode (NFC)")
            .help(format!("write {composed:?}, which looks the same")));
    }
    Ok(())
}

fn fault(what: &'static str, name: &str, rule: &str) -> Error {
    // Debug shows what cannot be seen, and the name may be of any length.
    let shown: String = name.chars().take(64).collect();
    Error::invalid(what)
        .expected(rule)
        .found(format_args!("{shown:?}"))
        .reason("name")
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A valid path from the root group: `/` or names with `/` before each.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct ObjectPath {
    /// Names joined by `/`, without one in front; empty for the root.
    text: String,
}

impl ObjectPath {
    /// Reads `/a/b` or `a/b`; `/` and the empty text are the root.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a name that breaks a rule, an empty one included; `LimitExceeded` for a path too long or
    /// too deep.
    pub(crate) fn parse(path: &str, limits: &Limits) -> Result<Self> {
        let text = path.strip_prefix('/').unwrap_or(path);
        if path.len() > limits.path_bytes {
            return Err(Error::limit("bytes of an object path")
                .expected(format_args!("at most {}", limits.path_bytes))
                .found(path.len()));
        }
        let depth = if text.is_empty() {
            0
        } else {
            text.split('/').count()
        };
        if depth > limits.path_depth {
            return Err(Error::limit("names in an object path")
                .expected(format_args!("at most {}", limits.path_depth))
                .found(depth));
        }
        if depth > 0 {
            for name in text.split('/') {
                if name.is_empty() {
                    return Err(fault(
                        "object path",
                        path,
                        "no empty name between or after slashes",
                    ));
                }
                check_object_name(name).map_err(|e| e.in_object(path))?;
            }
        }
        Ok(Self {
            text: text.to_owned(),
        })
    }

    pub(crate) fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// The names from the root down.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').filter(|name| !name.is_empty())
    }

    /// The path without its last name, and that name; `None` for the root.
    pub(crate) fn split_last(&self) -> Option<(Self, &str)> {
        if self.is_root() {
            return None;
        }
        let (parent, name) = self.text.rsplit_once('/').unwrap_or(("", &self.text));
        let parent = Self {
            text: parent.to_owned(),
        };
        Some((parent, name))
    }

    /// The path of a child with a valid name.
    pub(crate) fn child(&self, name: &str) -> Self {
        let slash = if self.is_root() { "" } else { "/" };
        Self {
            text: format!("{}{slash}{name}", self.text),
        }
    }

    /// True when `other` is this path or lies beneath it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        match other.text.strip_prefix(&self.text) {
            Some(rest) => self.is_root() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

/// With a slash in front: `/`, `/a/b`.
impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn path(text: &str) -> Result<ObjectPath> {
        ObjectPath::parse(text, &Limits::default())
    }

    #[test]
    fn c77_names_in_any_script_are_kept_and_the_decomposed_form_is_refused() {
        for name in [
            "abieluv\u{f5}rdsus",
            "\u{6570}\u{636e}",
            "\u{1f600}",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
            "a b",
            "%2F",
            "A",
            "...",
            "a.b",
        ] {
            check_object_name(name).unwrap();
            check_attribute_name(name).unwrap();
            assert_eq!(path(name).unwrap().to_string(), format!("/{name}"));
        }
        let e = check_object_name("abieluvo\u{303}rdsus").unwrap_err();
        assert!(e.help_text().unwrap().contains("abieluv\u{f5}rdsus"), "{e}");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(
            object_name_from_key("abieluvo\u{303}rdsus".as_bytes())
                .unwrap_err()
                .is_corruption()
        );
        assert!(object_name_from_key(b"a\xff").unwrap_err().is_corruption());
    }

    #[test]
    fn names_that_could_mislead_are_refused() {
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a\0",
            "a\n",
            "\u{7f}",
            "\u{85}",
            "a\u{202e}b",
            "\u{2066}",
            "e\u{301}",
            &long,
        ] {
            assert!(check_object_name(name).is_err(), "{name:?}");
        }
        check_object_name(&"x".repeat(255)).unwrap();
        for name in ["", "a\0", "e\u{301}", &long] {
            assert!(check_attribute_name(name).is_err(), "{name:?}");
        }
        check_attribute_name("a/b\n.").unwrap();
    }

    #[test]
    fn a_path_has_one_meaning_with_or_without_its_first_slash() {
        assert!(path("").unwrap().is_root() && path("/").unwrap().is_root());
        assert_eq!(path("/a/b").unwrap(), path("a/b").unwrap());
        let ab = path("a/b").unwrap();
        assert_eq!(ab.names().collect::<Vec<_>>(), ["a", "b"]);
        let (parent, name) = ab.split_last().unwrap();
        assert_eq!((parent.to_string().as_str(), name), ("/a", "b"));
        assert_eq!(parent.child("c").to_string(), "/a/c");
        assert_eq!(path("/").unwrap().child("c").to_string(), "/c");
        assert!(path("/").unwrap().split_last().is_none());
        for text in ["//", "a//b", "a/", "/a/", "a/./b", "../a", "a/\u{0}"] {
            let e = path(text).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{text:?}: {e}");
        }
    }

    #[test]
    fn a_path_contains_what_lies_beneath_it_and_not_what_merely_begins_alike() {
        let contains = |a: &str, b: &str| path(a).unwrap().contains(&path(b).unwrap());
        assert!(contains("a", "a") && contains("a", "a/b") && contains("/", "a"));
        assert!(!contains("a", "ab") && !contains("a/b", "a"));
    }

    #[test]
    fn paths_pass_at_the_limit_of_depth_and_bytes() {
        let deep = |n: usize| vec!["a"; n].join("/");
        assert!(path(&deep(128)).is_ok());
        assert_eq!(
            path(&deep(129)).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
        let wide = vec!["x".repeat(240); 17].join("/");
        assert_eq!(wide.len(), 4096);
        assert!(path(&wide).is_ok());
        assert_eq!(
            path(&format!("/{wide}")).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
    }
}
