//! The walls between the rooms: imports, headers and `unsafe`, read from the source text.
//!
//! The table in `ARCHITECTURE.md` is the law and is read here, so that the page cannot drift from the code. Works on
//! text with comments and literals blanked out: it knows paths that begin with `crate` or `super`, not name resolution.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The only files that may say `unsafe`: the map and the locks.
const UNSAFE_FILES: [&str; 2] = ["src/store/lock.rs", "src/store/map.rs"];

/// One row of the table: the rank of a room and the paths it may import.
#[derive(Debug)]
struct Room {
    rank: u32,
    may_import: BTreeSet<String>,
}

/// What the walls are: the rooms, and where each name that `lib.rs` re-exports comes from.
struct Plan {
    rooms: BTreeMap<String, Room>,
    reexports: BTreeMap<String, String>,
}

#[test]
fn every_import_goes_down_the_table_of_rooms() {
    let plan = plan();
    let faults: Vec<String> = files("src")
        .iter()
        .filter(|(name, _)| name != "src/lib.rs")
        .flat_map(|(name, text)| import_faults(&plan, name, text))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_room_may_only_be_allowed_rooms_of_a_lower_rank() {
    let plan = plan();
    for (name, room) in &plan.rooms {
        for path in &room.may_import {
            let target = path.split("::").next().unwrap();
            let lower = plan
                .rooms
                .get(target)
                .unwrap_or_else(|| panic!("no room `{target}`"));
            assert!(
                lower.rank < room.rank,
                "`{name}` is allowed `{path}`, which is not below it"
            );
        }
    }
}

#[test]
fn every_file_opens_with_a_header() {
    for dir in [
        "src",
        "cli/src",
        "zarr/src",
        "zarr/tests",
        "tests",
        "examples",
        "benches",
        "fuzz/fuzz_targets",
    ] {
        for (name, text) in files(dir) {
            // Inner attributes may stand before it.
            let header = text.lines().take(12).any(|line| line.starts_with("//! "));
            assert!(header, "{name} does not open with a `//!` header");
        }
    }
}

#[test]
fn only_the_map_and_the_locks_say_unsafe() {
    for dir in ["src", "cli/src", "zarr/src"] {
        for (name, text) in files(dir) {
            let says = words(&blank(&text)).any(|word| word == "unsafe");
            let may = UNSAFE_FILES.contains(&name.as_str());
            assert!(
                may || !says,
                "{name} says `unsafe`; move it to one of {UNSAFE_FILES:?}"
            );
        }
    }
}

/// The inventory is read back from `tests/unsafe.md`, so that a block more or less is a change of that page.
#[test]
fn every_unsafe_block_is_in_the_inventory_and_says_why_it_is_sound() {
    let page = fs::read_to_string(root().join("tests/unsafe.md")).unwrap();
    let mut listed = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, file, count, ..] = cells.as_slice()
            && let Ok(count) = count.parse::<usize>()
        {
            listed.insert(file.trim_matches('`').to_owned(), count);
        }
    }
    let mut found = BTreeMap::new();
    for dir in [
        "src",
        "cli/src",
        "zarr/src",
        "tests",
        "examples",
        "benches",
        "fuzz/src",
        "bench/src",
    ] {
        for (name, text) in files(dir) {
            let code = blank_lines(&text);
            let places: Vec<usize> = (0..code.len())
                .filter(|i| words(&code[*i]).any(|word| word == "unsafe"))
                .collect();
            for at in &places {
                // The keeper of a contract says `# Safety` or passes one on; everybody else says why it holds.
                let said = text.lines().take(at + 1).collect::<Vec<_>>();
                let near = said
                    .iter()
                    .rev()
                    .take(9)
                    .any(|line| line.contains("SAFETY:"));
                let contract = code[*at].contains("unsafe fn");
                assert!(near || contract, "{name}:{}: no SAFETY comment", at + 1);
            }
            if !places.is_empty() {
                found.insert(name, places.len());
            }
        }
    }
    assert_eq!(found, listed, "tests/unsafe.md is not what the code has");
}

/// The lines of a source, comments and literals blanked out.
fn blank_lines(text: &str) -> Vec<String> {
    // A literal or comment that spans lines leaves as many.
    let mut lines = Vec::new();
    let mut rest = text;
    let mut line = String::new();
    while let Some(c) = rest.chars().next() {
        let skip = literal_len(rest, line.chars().next_back());
        let taken = if skip == 0 { c.len_utf8() } else { skip };
        for c in rest[..taken].chars() {
            match c {
                '\n' => lines.push(std::mem::take(&mut line)),
                c if skip == 0 => line.push(c),
                _ => line.push(' '),
            }
        }
        rest = &rest[taken..];
    }
    lines.push(line);
    lines
}

#[test]
fn a_planted_upward_import_is_found() {
    let plan = plan();
    let planted = [
        ("src/codec/zstd.rs", "use crate::store::Medium;"),
        (
            "src/grid/copy.rs",
            "use crate::{\n    error::Error,\n    format::{node::Node, key},\n};",
        ),
        (
            "src/store/map.rs",
            "fn f() -> crate::format::node::Node { g() }",
        ),
        ("src/txn/view.rs", "use super::super::array::DynArray;"),
        ("src/bytes/reader.rs", "use crate::Region;"),
        ("src/attic/mod.rs", "use crate::error::Error;"),
    ];
    for (name, text) in planted {
        assert!(
            !import_faults(&plan, name, text).is_empty(),
            "missed in {name}: {text}"
        );
    }
    let clean = "// use crate::array::X;\nuse crate::{Error, limits::MAX, format::{self, key}};\n\
                 const S: &str = \"crate::array\"; fn f<'a>(c: char) -> bool { c == '\"' }";
    assert_eq!(
        import_faults(&plan, "src/index/tree.rs", clean),
        Vec::<String>::new()
    );
}

/// Reads the rooms from `ARCHITECTURE.md` and the re-exports from `lib.rs`.
fn plan() -> Plan {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut rows: Vec<(Vec<String>, u32, String)> = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, rank, rooms, _, may_import, ..] = cells.as_slice() else {
            continue;
        };
        let Ok(rank) = rank.parse::<u32>() else {
            continue;
        };
        let names = quoted(rooms).iter().map(|room| room_name(room)).collect();
        rows.push((names, rank, (*may_import).to_owned()));
    }
    let ground: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.1 == 0)
        .flat_map(|row| row.0.clone())
        .collect();
    let mut rooms = BTreeMap::new();
    for (names, rank, may_import) in &rows {
        let mut allowed = BTreeSet::new();
        for item in may_import
            .split(',')
            .map(|item| item.trim().trim_matches('`'))
        {
            match item {
                "0" => allowed.extend(ground.iter().cloned()),
                "all below" => {
                    let below = rows.iter().filter(|row| row.1 < *rank);
                    allowed.extend(below.flat_map(|row| row.0.clone()));
                }
                "std" => {}
                path => drop(allowed.insert(path.to_owned())),
            }
        }
        for name in names {
            rooms.insert(
                name.clone(),
                Room {
                    rank: *rank,
                    may_import: allowed.clone(),
                },
            );
        }
    }
    assert!(
        rooms.len() > 10,
        "the table of ARCHITECTURE.md was not found: {rooms:?}"
    );
    let lib = blank(&fs::read_to_string(root().join("src/lib.rs")).unwrap());
    let reexports = lib.match_indices("pub use ").flat_map(|(at, found)| {
        let tree = &lib[at + found.len()..];
        let paths = leaves(&tree[..tree.find(';').unwrap()]);
        paths.into_iter().map(|path| {
            let name = path.rsplit("::").next().unwrap().to_owned();
            (name, path.trim_start_matches("crate::").to_owned())
        })
    });
    Plan {
        reexports: reexports.collect(),
        rooms,
    }
}

/// The sentences about what `text`, the file called `name`, imports against the plan.
fn import_faults(plan: &Plan, name: &str, text: &str) -> Vec<String> {
    let inner = name.trim_start_matches("src/");
    let own = room_name(inner.split('/').next().unwrap());
    let Some(room) = plan.rooms.get(&own) else {
        return vec![format!(
            "{name}: the room `{own}` has no row in ARCHITECTURE.md"
        )];
    };
    let mut faults = BTreeSet::new();
    for path in imports(&blank(text)) {
        let mut path = path.as_str();
        let first = path.split("::").next().unwrap();
        if let Some(origin) = plan.reexports.get(first) {
            path = origin;
        }
        let first = path.split("::").next().unwrap();
        let known = plan.rooms.contains_key(first);
        let allowed = room.may_import.iter().any(|may| {
            path == may
                || path
                    .strip_prefix(may.as_str())
                    .is_some_and(|rest| rest.starts_with("::"))
        });
        if known && first != own && !allowed {
            faults.insert(format!(
                "{name}: `{own}` (rank {}) may not import `{path}`",
                room.rank
            ));
        }
    }
    faults.into_iter().collect()
}

/// Every path after `crate::`, and after two or more `super::`, with use trees taken apart.
fn imports(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for prefix in ["crate::", "super::super::"] {
        for (at, _) in code.match_indices(prefix) {
            let mut rest = &code[at + prefix.len()..];
            while let Some(more) = rest.strip_prefix("super::") {
                rest = more;
            }
            paths.extend(leaves(tree(rest)));
        }
    }
    paths
}

/// The use tree or path that `code` begins with.
fn tree(code: &str) -> &str {
    let mut depth = 0_u32;
    let end = code.find(|c: char| {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            _ => return !(c.is_alphanumeric() || matches!(c, '_' | ':' | '*')),
        }
        false
    });
    &code[..end.unwrap_or(code.len())]
}

/// `a::{b, c::{self, d}}` as `a::b`, `a::c::self`, `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split_whitespace().next().unwrap_or("");
        return vec![path.to_owned()];
    };
    let (head, body) = (&tree[..open], &tree[open + 1..]);
    let body = &body[..body.rfind('}').unwrap_or(body.len())];
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    for c in body.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| leaves(part))
        .map(|leaf| format!("{head}{leaf}"))
        .collect()
}

/// The source with comments, strings and character literals turned into blanks.
fn blank(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skip = literal_len(rest, code.chars().next_back());
        if skip == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skip..];
        }
    }
    code
}

/// How many bytes of comment or literal `rest` begins with; 0 when it begins with code.
fn literal_len(rest: &str, before: Option<char>) -> usize {
    let until = |from: usize, end: &str| {
        rest[from..]
            .find(end)
            .map_or(rest.len(), |at| from + at + end.len())
    };
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until(2, "*/");
    }
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !in_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return until(hashes + 2, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    let quote = match rest.as_bytes() {
        [b'"', ..] => '"',
        [b'\'', b'\\', ..] => '\'',
        [b'\'', ..] if rest.chars().nth(2) == Some('\'') => '\'',
        _ => return 0,
    };
    let mut escaped = false;
    let end = rest[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |at| at + 2)
}

/// Every Rust file under `dir`, by its path from the project's root; none where the folder is absent.
fn files(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(dir)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let name = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .replace('\\', "/");
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// `bytes/` and `error.rs` as `bytes` and `error`.
fn room_name(text: &str) -> String {
    text.trim_end_matches('/')
        .trim_end_matches(".rs")
        .to_owned()
}

/// What stands between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}
