//! The guides against the programs they quote: each excerpt in `docs/` stands, line by line, in the example it names.
//!
//! The examples themselves are compiled and run as tests; the README's Rust block is a documentation test of the library.
#![cfg(test)]

use std::fs;
use std::path::Path;

#[test]
fn every_excerpt_of_a_guide_stands_in_the_example_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let mut example = None;
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if let Some((_, rest)) = line.split_once("](../examples/") {
                let name = rest.split(')').next().unwrap();
                let text = fs::read_to_string(root.join("examples").join(name)).unwrap();
                example = Some((
                    name,
                    text.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
                ));
            }
            if line.starts_with("```rust") {
                let excerpt: Vec<&str> = lines
                    .by_ref()
                    .take_while(|line| *line != "```")
                    .map(str::trim)
                    .collect();
                let (name, text) = example
                    .as_ref()
                    .expect("a link to the example above the excerpt");
                assert!(
                    !excerpt.is_empty() && text.contains(&excerpt.join("\n")),
                    "{}: not in {name}:\n{}",
                    path.display(),
                    excerpt.join("\n")
                );
            }
        }
        // A page of figures guides nobody.
        let is_guide = !path.ends_with("docs/performance.md");
        assert!(
            example.is_some() || !is_guide,
            "{} names no example",
            path.display()
        );
    }
}
