//! Tables, and the page they stand on. Must not measure.

use std::path::Path;

use crate::Outcome;

/// One part of the page: prose, a table, and what was asked beside what was found.
#[derive(Default)]
pub struct Section {
    pub title: String,
    pub about: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Row of the list of targets, what it says, what was found, whether that holds.
    pub targets: Vec<(String, String, String, bool)>,
}

impl Section {
    pub fn text(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.about);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        if !self.head.is_empty() {
            text += &line(&self.head);
            text += &line(&vec!["---".to_owned(); self.head.len()]);
            text.extend(self.rows.iter().map(|row| line(row)));
        }
        if !self.targets.is_empty() {
            text += "\n| # | asked | found | holds |\n| --- | --- | --- | --- |\n";
            for (row, asked, found, holds) in &self.targets {
                let holds = if *holds { "yes" } else { "**no**" };
                text += &format!("| {row} | {asked} | {found} | {holds} |\n");
            }
        }
        text
    }

    pub fn target(&mut self, row: &str, asked: &str, found: String, holds: bool) {
        self.targets
            .push((row.to_owned(), asked.to_owned(), found, holds));
    }
}

pub fn median(rounds: &[f64]) -> f64 {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(f64::NAN)
}

const PAGE: &str = "BENCHMARKS.md";
const HEAD: &str = "# Benchmarks

Written by one command, in Debian with `libhdf5-dev`:

```sh
python3 -m venv venv && venv/bin/pip install -r bench/requirements.txt
cargo run --release --manifest-path bench/Cargo.toml --bin peers -- --python venv/bin/python
```

A section by itself: its name behind the command (`cube-zstd cube-raw cube-lz4 threads small ...`). Times drift on a shared machine,
ratios in one run much less: compare figures of one section only. Every figure is the median of interleaved rounds after a
warm-up. Files lie in /dev/shm: no disk is measured, and the syncs that orthant makes and others do not cost nobody anything.
Checksums are verified in every read. Where the time goes: `docs/performance.md`.
";

fn mark(name: &str) -> String {
    format!("<!-- {name} -->\n")
}

/// Replaces the section `name` of the page.
pub fn put(name: &str, section: &Section, order: &[&str]) -> Outcome<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let mut page = HEAD.to_owned();
    for &other in order {
        let text = if other == name {
            Some(section.text())
        } else {
            old.split_once(&mark(other))
                .map(|(_, rest)| rest.split("\n<!-- ").next().unwrap_or_default().to_owned())
        };
        if let Some(text) = text {
            page += &format!("\n{}{}\n", mark(other), text.trim_end());
        }
    }
    Ok(std::fs::write(path, page)?)
}
