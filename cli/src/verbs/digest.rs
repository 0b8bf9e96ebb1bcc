//! `digest`: SHA-256 of arrays' values, whatever their chunks and codecs, and one of the container.
//!
//! An array's digest is over its elements in C order as `get --format raw` writes them. The container's is over one line
//! of JSON for each object in path order: path, kind, attributes with their types, and of an array its type, domain,
//! fill value and digest. So it changes with anything a reader sees, and with nothing else.

use std::io::Write;

use clap::Args;
use orthant::{DynArray, Group, Json, ObjectKind, Region, RegionItem, Snapshot};
use sha2::{Digest as _, Sha256};

use crate::args::State;
use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, domain, object, text};
use crate::output::raw;
use crate::session::{Session, print_json, stdout};
use crate::slabs::{BUDGET, Cut, count, slabs, stored_shape};
use crate::target::{Target, slashed};
use crate::text::escape;

/// Arguments of `digest`.
#[derive(Debug, Args)]
pub(crate) struct Digest {
    /// FILE, or FILE:/PATH for one array or all arrays of a group
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(args: &Digest, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let snapshot = session.state(&target.file, &args.state)?;
    Taking::of(&snapshot, &target, session)?.answer()
}

/// The digest of a whole container.
pub(super) fn container(snapshot: &Snapshot, session: &Session) -> Result<[u8; 32]> {
    let root = Target::with_path("", Some(""))?;
    let taken = Taking::of(snapshot, &root, session)?;
    Ok(taken.whole.finalize().into())
}

struct Taking<'a> {
    session: &'a Session,
    whole: Sha256,
    arrays: Vec<(String, String)>,
}

impl<'a> Taking<'a> {
    fn of(snapshot: &Snapshot, target: &Target, session: &'a Session) -> Result<Self> {
        let mut taking = Taking {
            session,
            whole: Sha256::new(),
            arrays: Vec::new(),
        };
        match super::info::kind(snapshot, target)? {
            ObjectKind::Array => taking.array(&snapshot.dyn_array(&target.path)?)?,
            ObjectKind::Group => {
                let group = snapshot.group(&target.path)?;
                taking.group(&group)?;
                for member in group.walk()? {
                    let member = member?;
                    match member.kind {
                        ObjectKind::Group => taking.group(&snapshot.group(&member.path)?)?,
                        ObjectKind::Array => taking.array(&snapshot.dyn_array(&member.path)?)?,
                    }
                }
            }
        }
        Ok(taking)
    }
}

impl Taking<'_> {
    fn group(&mut self, group: &Group) -> Result<()> {
        let mut members = vec![
            ("path", text(slashed(&group.path()))),
            ("kind", text("group")),
        ];
        members.extend(describe::attributes(&group.attributes())?);
        self.line(&object(members));
        Ok(())
    }

    fn array(&mut self, array: &DynArray) -> Result<()> {
        let sha256 = self.elements(array)?;
        let mut members = vec![
            ("path", text(slashed(array.path()))),
            ("kind", text("array")),
            ("dtype", text(array.data_type().to_string())),
            ("domain", domain(&array.domain()?)),
            ("fill", describe::fill_json(array)),
            ("sha256", text(&sha256)),
        ];
        members.extend(describe::attributes(&array.attributes())?);
        self.line(&object(members));
        self.arrays.push((slashed(array.path()), sha256));
        Ok(())
    }

    fn line(&mut self, json: &Json) {
        self.whole.update(json.to_string().as_bytes());
        self.whole.update(b"\n");
    }

    fn elements(&self, array: &DynArray) -> Result<String> {
        let bounds = array.domain()?;
        let bytes = describe::logical_bytes(array)?;
        if bytes.is_some_and(|n| n > 1 << 50) {
            return Err(Failure::usage(format!(
                "{} has {bounds}: too many elements for a digest",
                slashed(array.path())
            )));
        }
        let step = vec![1; bounds.rank()];
        let (chunk_shape, origin) = (stored_shape(array), array.origin()?);
        let pieces = slabs(Cut {
            bounds: bounds.bounds(),
            step: &step,
            chunk_shape: &chunk_shape,
            origin: &origin,
            item: array.data_type().item_size().unwrap_or(64) as u64,
            budget: BUDGET,
        });
        let bar = self.session.bar(pieces.elements(), "digest");
        let mut sha = Sha256::new();
        for piece in pieces {
            let elements = count(&piece, &step);
            let region: Region = piece
                .iter()
                .map(|&(lo, hi)| RegionItem::from(lo..hi))
                .collect();
            let block = array.read(region)?;
            raw::write(&mut Hashing(&mut sha), &block.elements)
                .map_err(|e| Failure::usage(e.to_string()))?;
            bar.advance(elements);
        }
        Ok(hex(&sha.finalize()))
    }

    fn answer(self) -> Result<()> {
        let container = hex(&self.whole.finalize());
        if self.session.json() {
            let arrays = self
                .arrays
                .into_iter()
                .map(|(path, sha256)| object([("path", text(path)), ("sha256", text(sha256))]));
            return print_json(&answer(
                "digest",
                [
                    ("arrays", Json::Array(arrays.collect())),
                    ("container", text(container)),
                ],
            ));
        }
        stdout(|out| {
            for (path, sha256) in &self.arrays {
                writeln!(out, "{sha256}  {}", escape(path))?;
            }
            writeln!(out, "{container}  container")
        })
    }
}

struct Hashing<'a>(&'a mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, b| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{b:02x}");
        text
    })
}
