//! `FILE:/path/to/object[selection]`, taken apart.
//!
//! Holds [`Target`] and the splitting rules. Must not open containers, and must not read selections.

use std::path::{Path, PathBuf};

use crate::exit::{Failure, Result};

/// What a command line names: a container, an object in it, and what is selected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The container's path as it was given.
    pub(crate) file: PathBuf,
    /// The object's path without a leading slash; empty for the root group.
    pub(crate) path: String,
    /// Whether an object was named at all: `FILE:/` names the root group, `FILE` the container.
    pub(crate) named: bool,
    /// The text between the brackets.
    pub(crate) selection: Option<String>,
}

impl Target {
    /// Takes `text` apart. FILE ends at the first `:/` after an optional drive letter, unless the left side is a folder;
    /// in the rest, the first `[` starts a selection.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((file, object)) = split_file(text) else {
            return Ok(Self {
                file: text.into(),
                path: String::new(),
                named: false,
                selection: None,
            });
        };
        let (path, selection) = match object.split_once('[') {
            None => (object, None),
            Some((path, rest)) => match rest.strip_suffix(']') {
                Some(inside) => (path, Some(inside.to_owned())),
                None => {
                    return Err(Failure::usage(format!(
                        "{text}: the selection after `[` does not end in `]`"
                    ))
                    .help("quote the whole argument; an odd name is given with --path, its selection with --sel"));
                }
            },
        };
        Ok(Self {
            file: file.into(),
            path: trim_slashes(path).to_owned(),
            named: true,
            selection,
        })
    }

    /// As [`Target::parse`], or with the whole of `text` as FILE where the object is given apart by `--path`.
    pub(crate) fn with_path(text: &str, path: Option<&str>) -> Result<Self> {
        match path {
            None => Self::parse(text),
            Some(path) => Ok(Self {
                file: text.into(),
                path: trim_slashes(path).to_owned(),
                named: true,
                selection: None,
            }),
        }
    }

    /// Refuses a selection, for verbs that take whole objects.
    pub(crate) fn whole(self) -> Result<Self> {
        match &self.selection {
            None => Ok(self),
            Some(s) => Err(Failure::usage(format!(
                "{}: this verb takes a whole object, not the selection [{s}]",
                self.display()
            ))),
        }
    }

    /// Refuses an object, for verbs that are about a whole container.
    pub(crate) fn container(self) -> Result<Self> {
        let whole = self.whole()?;
        if whole.named && !whole.path.is_empty() {
            return Err(Failure::usage(format!(
                "{}: this verb is about a whole container",
                whole.display()
            ))
            .help(format!("name {} alone", whole.file.display())));
        }
        Ok(whole)
    }

    /// Refuses a container, for verbs that need an object in it.
    pub(crate) fn object(self) -> Result<Self> {
        if self.path.is_empty() {
            let failure = Failure::usage(format!(
                "{}: an object in the container is needed, as {}:/PATH",
                self.file.display(),
                self.file.display()
            ));
            let failure = failure.help(format!("orthant ls -R {}", self.file.display()));
            return Err(with_slash(failure, &self.file));
        }
        Ok(self)
    }

    /// The object's path with its leading slash.
    pub(crate) fn slashed(&self) -> String {
        slashed(&self.path)
    }

    /// `FILE:/path`, or `FILE`.
    pub(crate) fn display(&self) -> String {
        if self.named {
            format!("{}:{}", self.file.display(), self.slashed())
        } else {
            self.file.display().to_string()
        }
    }
}

/// Says how an object is named, where `FILE:path` or `FILE/path` was taken for a file's name.
pub(crate) fn with_slash(failure: Failure, file: &Path) -> Failure {
    let text = file.to_string_lossy();
    let container =
        |&(at, _): &(usize, &str)| text.get(..at).is_some_and(|f| Path::new(f).is_file());
    match text.rmatch_indices([':', '/']).find(container) {
        Some((at, _)) if !file.exists() => {
            let (file, object) = text.split_at(at);
            let object = object.trim_start_matches([':', '/']);
            failure.instead(format!("an object is named {file}:/{object}"))
        }
        _ => failure,
    }
}

/// A path with its leading slash, as it is shown everywhere.
pub(crate) fn slashed(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// The paths of an object and its container's separator: one leading and one trailing slash mean nothing.
fn trim_slashes(path: &str) -> &str {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path)
}

/// FILE and the object's path with its slash, where `text` names both.
fn split_file(text: &str) -> Option<(&str, &str)> {
    let splits = || {
        text.match_indices(":/")
            .filter_map(|(at, _)| Some((text.get(..at)?, text.get(at.saturating_add(1)..)?)))
            .filter(|(file, _)| !file.is_empty())
    };
    let mut folder = None;
    for (file, object) in splits() {
        if is_drive(file, splits().count() > 1) {
            continue;
        }
        if Path::new(file).is_dir() {
            folder.get_or_insert((file, object));
            continue;
        }
        return Some((file, object));
    }
    // Only folders on the left: the whole is a file's name, or a folder was given as FILE, which opening refuses.
    folder.filter(|_| !Path::new(text).exists())
}

/// Whether a lone letter before `:/` is a drive. Away from Windows it may as well be a file's whole name: then only a
/// second `:/`, and no file of that name, make it one.
fn is_drive(left: &str, another_follows: bool) -> bool {
    let letter = left.len() == 1 && left.bytes().all(|b| b.is_ascii_alphabetic());
    letter && (cfg!(windows) || (another_follows && !Path::new(left).exists()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, Option<String>) {
        let t = Target::parse(text).unwrap();
        (
            t.file.display().to_string(),
            t.named.then_some(t.path),
            t.selection,
        )
    }

    #[test]
    fn file_ends_at_the_first_colon_slash() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(parts("a.orth"), ("a.orth".into(), None, None));
        assert_eq!(parts("a.orth:/"), ("a.orth".into(), some(""), None));
        assert_eq!(parts("a.orth:/g/t"), ("a.orth".into(), some("g/t"), None));
        assert_eq!(parts("a.orth:/g/"), ("a.orth".into(), some("g"), None));
        assert_eq!(parts("a:b.orth:/t"), ("a:b.orth".into(), some("t"), None));
        assert_eq!(
            parts("/x/a.orth:/t:/u"),
            ("/x/a.orth".into(), some("t:/u"), None)
        );
        assert_eq!(
            parts("C:/x/a.orth:/t"),
            ("C:/x/a.orth".into(), some("t"), None)
        );
    }

    #[test]
    fn a_bracket_starts_a_selection_in_the_object_only() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            parts("a[1].orth:/t[-48:0, 10]"),
            ("a[1].orth".into(), some("t"), some("-48:0, 10"))
        );
        assert_eq!(parts("a.orth:/t[]"), ("a.orth".into(), some("t"), some("")));
        assert_eq!(parts("a[1].orth"), ("a[1].orth".into(), None, None));
        let e = Target::parse("a.orth:/t[1").unwrap_err();
        assert_eq!(e.code(), "invalid_argument");
    }

    #[test]
    fn a_folder_on_the_left_is_not_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("odd:");
        std::fs::create_dir(&odd).unwrap();
        std::fs::create_dir(dir.path().join("odd")).unwrap();
        let file = odd.join("a.orth");
        std::fs::write(&file, b"").unwrap();
        let text = format!("{}:/t", file.display());
        let t = Target::parse(&text).unwrap();
        assert_eq!((t.file, t.path.as_str()), (file.clone(), "t"));
        // The same without an object: all of it is the file's name.
        let t = Target::parse(&file.display().to_string()).unwrap();
        assert_eq!((t.file, t.named), (file, false));
        // A folder given as FILE stays what it is, for opening to refuse.
        let t = Target::parse(&format!("{}:/t", dir.path().display())).unwrap();
        assert_eq!(t.file, dir.path());
    }

    #[test]
    fn a_path_given_apart_is_taken_as_it_is() {
        let t = Target::with_path("a:/b.orth", Some("/odd[1]:/x")).unwrap();
        assert_eq!(t.file, Path::new("a:/b.orth"));
        assert_eq!((t.path.as_str(), t.selection), ("odd[1]:/x", None));
    }
}
