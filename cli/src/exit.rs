//! How the command ends: exit codes, error sentences and JSON errors.
//!
//! Holds [`Failure`], what every verb returns when it does not succeed, and its two printed forms. Must not print
//! anything itself, and must not know verbs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use orthant::{Error, ErrorKind, Json};

use crate::json::{object, text};
use crate::text::escape;

/// Result of everything in the command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Who has to act, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The question was answered, and the answer is no.
    Negative = 1,
    /// The command line is wrong: a bad argument, name, selection or type.
    Usage = 2,
    /// Something cannot be opened, read or written.
    Io = 3,
    /// The file is no container, or is damaged, or needs a newer release.
    Container = 4,
    /// Another writer holds the container.
    Locked = 5,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a verb did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer was printed; it is no.
    Negative,
    /// Whoever read our output has gone: nobody is left to be told.
    ClosedPipe,
    /// The parser has said why.
    Silent(Exit),
    /// Told on stderr.
    Told(Box<Told>),
}

/// An error with everything that is known about it.
#[derive(Debug)]
pub(crate) struct Told {
    exit: Exit,
    code: &'static str,
    message: String,
    file: Option<PathBuf>,
    array: Option<String>,
    chunk: Option<Vec<i64>>,
    offset: Option<u64>,
    expected: Option<String>,
    found: Option<String>,
    help: Option<String>,
}

impl Failure {
    fn told(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self::Told(Box::new(Told {
            exit,
            code,
            message: message.into(),
            file: None,
            array: None,
            chunk: None,
            offset: None,
            expected: None,
            found: None,
            help: None,
        }))
    }

    /// Nothing more is to be said.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self::Silent(exit)
    }

    /// The question was answered, and the answer is no; `code` says which no.
    pub(crate) fn negative(code: &'static str, message: impl Into<String>) -> Self {
        Self::told(Exit::Negative, code, message)
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::told(Exit::Usage, "invalid_argument", message)
    }

    /// An object, attribute or member of that name is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::told(Exit::Usage, "not_found", message)
    }

    /// A file or object of that name is already there.
    pub(crate) fn exists(message: impl Into<String>) -> Self {
        Self::told(Exit::Usage, "already_exists", message)
    }

    /// This release cannot do what was asked.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::told(Exit::Usage, "unsupported", message)
    }

    /// Something cannot be opened, read or written; a closed pipe on our output is no error.
    pub(crate) fn io(doing: &str, path: &Path, source: &io::Error) -> Self {
        Self::told(
            Exit::Io,
            "io",
            format!("{}: cannot {doing}: {source}", path.display()),
        )
        .in_file(path)
    }

    /// Writing to standard output failed.
    pub(crate) fn stdout(source: &io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::told(
                Exit::Io,
                "io",
                format!("cannot write to standard output: {source}"),
            )
        }
    }

    /// Adds the next thing to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.help.get_or_insert(help.into());
        }
        self
    }

    /// Puts another thing to do in place of the one there is.
    pub(crate) fn instead(mut self, help: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.help = Some(help.into());
        }
        self
    }

    /// Adds the file concerned.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        if let Self::Told(told) = &mut self {
            told.file.get_or_insert_with(|| path.to_owned());
        }
        self
    }

    /// Calls the file as the command line does, where the library looked it up by another spelling.
    pub(crate) fn of_file(mut self, path: &Path) -> Self {
        if let Self::Told(told) = &mut self {
            let other = told.file.replace(path.to_owned()).unwrap_or_default();
            if let Some(rest) = told.message.strip_prefix(&*other.to_string_lossy())
                && !other.as_os_str().is_empty()
            {
                told.message = format!("{}{rest}", path.display());
            }
        }
        self
    }

    /// Adds the array concerned.
    pub(crate) fn in_array(mut self, path: &str) -> Self {
        if let Self::Told(told) = &mut self {
            told.array.get_or_insert_with(|| path.to_owned());
        }
        self
    }

    /// Adds what the rule asks for, and what was given instead.
    pub(crate) fn expected(
        mut self,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        if let Self::Told(told) = &mut self {
            told.expected = Some(expected.to_string());
            told.found = Some(found.to_string());
        }
        self
    }

    /// The same failure where the fault lies in an argument, whatever the library calls it: a source file or a type
    /// name that cannot be used is no damaged container.
    pub(crate) fn into_argument(mut self) -> Self {
        if let Self::Told(told) = &mut self
            && told.exit == Exit::Container
        {
            told.exit = Exit::Usage;
        }
        self
    }

    /// The code of the JSON form.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Told(told) => told.code,
            Self::Negative | Self::ClosedPipe | Self::Silent(_) => "",
        }
    }

    /// The sentence, without the remedy.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Told(told) => &told.message,
            Self::Negative | Self::ClosedPipe | Self::Silent(_) => "",
        }
    }

    /// What the shell gets.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Negative => Exit::Negative.into(),
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Silent(exit) => (*exit).into(),
            Self::Told(told) => told.exit.into(),
        }
    }

    /// What goes to stderr: a sentence and a `help:` line, or one line of JSON.
    pub(crate) fn to_stderr(&self, json: bool, color: bool) -> Option<String> {
        let lead = |word: &str, style: &str| {
            if color {
                format!("\u{1b}[{style}m{word}\u{1b}[0m")
            } else {
                word.to_owned()
            }
        };
        match self {
            Self::Negative | Self::ClosedPipe | Self::Silent(_) => None,
            Self::Told(told) if json => Some(told.to_json().to_string()),
            Self::Told(told) => {
                let mut out = lead("orthant:", "1;31");
                out.push(' ');
                out.push_str(&escape(&told.sentence()));
                if let Some(help) = &told.help {
                    out.push('\n');
                    out.push_str(&lead("help:", "1"));
                    out.push(' ');
                    out.push_str(&escape(help));
                }
                Some(out)
            }
        }
    }
}

impl Told {
    /// The message, which always says of which file and array it speaks.
    fn sentence(&self) -> String {
        let mut place = String::new();
        if let Some(file) = &self.file {
            place.push_str(&file.display().to_string());
        }
        if let Some(array) = &self.array {
            if !place.is_empty() {
                place.push(':');
            }
            place.push_str(array);
        }
        if place.is_empty() || self.message.contains(&place) {
            return self.message.clone();
        }
        // The library may name the array alone; it is named once.
        let array = self.array.iter();
        let bare = array
            .filter_map(|a| self.message.strip_prefix(a.as_str()))
            .find_map(|rest| rest.strip_prefix(": "));
        format!("{place}: {}", bare.unwrap_or(&self.message))
    }

    fn to_json(&self) -> Json {
        let maybe = |t: &Option<String>| t.as_ref().map_or(Json::Null, text);
        object([
            ("schema", text("orthant/error/1")),
            ("code", text(self.code)),
            ("message", text(self.sentence())),
            (
                "file",
                self.file
                    .as_ref()
                    .map_or(Json::Null, |f| text(f.to_string_lossy())),
            ),
            ("array", maybe(&self.array)),
            (
                "chunk",
                self.chunk.as_ref().map_or(Json::Null, |c| {
                    Json::Array(c.iter().map(|x| Json::I64(*x)).collect())
                }),
            ),
            ("offset", self.offset.map_or(Json::Null, crate::json::uint)),
            ("expected", maybe(&self.expected)),
            ("found", maybe(&self.found)),
            ("help", maybe(&self.help)),
        ])
    }
}

fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::NotContainer | ErrorKind::Corrupt | ErrorKind::Unsupported => Exit::Container,
        ErrorKind::Busy => Exit::Locked,
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidArgument
        | ErrorKind::OutOfDomain
        | ErrorKind::TypeMismatch
        | ErrorKind::LimitExceeded
        | ErrorKind::SnapshotInUse => Exit::Usage,
        _ => Exit::Io,
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        let sentence = e.to_string();
        let message = match e.help_text() {
            Some(help) => sentence
                .strip_suffix(help)
                .and_then(|s| s.strip_suffix("; "))
                .unwrap_or(&sentence)
                .to_owned(),
            None => sentence,
        };
        // The library's own sentences about files carry the system's word; a file that is not there is told apart.
        let exit = exit_of(e.kind());
        Self::Told(Box::new(Told {
            exit,
            code: e.kind().code(),
            message,
            file: e.file().map(Path::to_owned),
            array: e.array().map(crate::target::slashed),
            chunk: e.chunk().map(<[i64]>::to_vec),
            offset: e.offset(),
            expected: e.expected_value().map(str::to_owned),
            found: e.found_value().map(str::to_owned),
            help: e.help_text().map(str::to_owned).or_else(|| remedy(&e)),
        }))
    }
}

/// The next command to run, where the library names none.
fn remedy(e: &Error) -> Option<String> {
    let file = e
        .file()
        .map_or_else(|| "FILE".to_owned(), |f| f.display().to_string());
    match e.kind() {
        ErrorKind::Corrupt => Some(format!(
            "orthant check {file}   # lists everything that is damaged"
        )),
        ErrorKind::NotFound => Some(format!("orthant ls -R {file}")),
        ErrorKind::Busy => Some("wait for the other writer to finish, then try again".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_error_keeps_its_sentence_and_moves_its_remedy_to_a_line_of_its_own() {
        let e = "-1".parse::<orthant::DataType>().unwrap_err();
        let f = Failure::from(e);
        let out = f.to_stderr(false, false).unwrap();
        assert!(out.starts_with("orthant: data type"), "{out}");
        assert_eq!(f.code(), "invalid_argument");
        let json: Json = f.to_stderr(true, false).unwrap().parse().unwrap();
        assert_eq!(
            json.get("schema").and_then(Json::as_str),
            Some("orthant/error/1")
        );
        for key in ["file", "array", "chunk", "offset", "help"] {
            assert!(json.get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_sentence_names_its_array_once() {
        let f = Failure::usage("/t: chunk length")
            .in_file(Path::new("a.orth"))
            .in_array("/t");
        let out = f.to_stderr(false, false).unwrap();
        assert_eq!(out, "orthant: a.orth:/t: chunk length");
    }

    #[test]
    fn control_characters_of_a_message_cannot_reach_the_terminal() {
        let out = Failure::usage("a\u{1b}[31mb")
            .to_stderr(false, false)
            .unwrap();
        assert!(!out.contains('\u{1b}'));
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let f = Failure::stdout(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(f, Failure::ClosedPipe));
        assert!(f.to_stderr(true, false).is_none());
    }
}
