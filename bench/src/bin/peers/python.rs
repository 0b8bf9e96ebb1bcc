//! Peers that live in a Python process: `bench/peers.py` beside this one, driven line by line, so that their rounds are
//! interleaved with everybody's.
//!
//! Each line asks `PEER<tab>VERB<tab>CODEC<tab>SIDES<tab>SEED`; the answer is `ok SECONDS`, `no` or `error TEXT`. Only one
//! of the two processes works at a time.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use crate::Outcome;
use crate::data::Shape;
use crate::peer::{Peer, Store};

pub struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the script; the names and versions of its peers.
    pub fn start(python: &Path, folder: &Path, shape: Shape) -> Outcome<(Self, Vec<String>)> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.py");
        let [t, y, x] = shape.map(|n| n.to_string());
        let mut child = Command::new(python)
            .args([script.as_os_str(), folder.as_os_str()])
            .args([t, y, x])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut process = Self { child, to, from };
        let names = process.line()?;
        Ok((process, names.split('\t').map(str::to_owned).collect()))
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err("the Python process has ended".into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, line: &str) -> Outcome<Option<f64>> {
        let to = self.to.as_mut().ok_or("no input")?;
        writeln!(to, "{line}")?;
        to.flush()?;
        let answer = self.line()?;
        match answer.split_once(' ').unwrap_or((&answer, "")) {
            ("ok", seconds) => Ok(Some(seconds.parse()?)),
            ("no", _) => Ok(None),
            _ => Err(format!("{line}: {answer}").into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends the script.
        self.to = None;
        let _ = self.child.wait();
    }
}

/// One peer of the process.
pub struct Python {
    pub process: Rc<RefCell<Process>>,
    /// Name and version.
    pub name: String,
}

impl Python {
    fn ask(&self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>> {
        let Store { codec, sides } = store;
        let name = &self.name;
        let line = format!("{name}\t{verb}\t{codec}\t{sides}\t{seed}");
        self.process.borrow_mut().ask(&line)
    }
}

impl Peer for Python {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn size(&mut self, store: &Store) -> Outcome<u64> {
        Ok(self.ask("size", store, 0)?.unwrap_or(0.0) as u64)
    }

    fn run(&mut self, verb: &str, store: &Store, seed: u64) -> Outcome<Option<f64>> {
        self.ask(verb, store, seed)
    }
}
