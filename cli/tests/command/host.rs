//! A folder, and the command run in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use orthant::Json;
use tempfile::TempDir;

/// Where one test's files are.
pub(crate) struct Host {
    dir: TempDir,
}

/// What a run of the command gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orthant"));
        command.current_dir(self.dir.path()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).stdin(Stdio::null()).output().unwrap();
        Ran::from(output)
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// Runs what must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        ran.text()
    }

    /// Runs what must succeed, with `--json`.
    pub(crate) fn json(&self, args: &[&str]) -> Json {
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        ran.json()
    }

    /// Runs what must fail with that exit code; gives the error as JSON, after a look at its form for people.
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> Json {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?}: errors go to stderr");
        assert!(ran.err.starts_with("orthant: "), "{args:?}: {}", ran.err);
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
        let json: Json = ran.err.trim_end().parse().unwrap();
        for key in [
            "schema", "code", "message", "file", "array", "chunk", "offset", "expected", "found",
            "help",
        ] {
            assert!(json.get(key).is_some(), "{args:?}: no {key} in {json}");
        }
        assert_eq!(str_of(&json, "schema"), "orthant/error/1");
        json
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Json {
        let text = self.text();
        text.trim_end()
            .parse()
            .unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

pub(crate) fn str_of<'a>(json: &'a Json, key: &str) -> &'a str {
    json.get(key)
        .and_then(Json::as_str)
        .unwrap_or_else(|| panic!("no text {key} in {json}"))
}

/// The member's text form, for comparing numbers, lists and null.
pub(crate) fn text_of(json: &Json, key: &str) -> String {
    json.get(key)
        .unwrap_or_else(|| panic!("no {key} in {json}"))
        .to_string()
}

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// The path of a file as an argument.
pub(crate) fn arg(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
