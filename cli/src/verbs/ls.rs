//! `ls`: the members of a group. Reads no payload.

use std::io::Write;

use clap::Args;
use orthant::{Json, Member, ObjectKind, Snapshot};

use crate::args::State;
use crate::describe::Stored;
use crate::exit::{Failure, Result};
use crate::json::{answer, domain, object, text, uint};
use crate::session::{Session, print_json, stdout};
use crate::target::{Target, slashed};
use crate::text::{Table, bytes, escape};

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// FILE, or FILE:/PATH
    #[arg(value_name = "FILE[:/PATH]")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// With type, domain and stored bytes
    #[arg(short)]
    long: bool,
    /// With everything below
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    state: State,
}

pub(crate) fn run(args: &Ls, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?.whole()?;
    let snapshot = session.state(&target.file, &args.state)?;
    let kind = super::info::kind(&snapshot, &target)?;
    let this = Member {
        path: target.path.clone(),
        name: target
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        kind,
    };
    let mut listing = Listing {
        args,
        snapshot: &snapshot,
        failed: None,
    };
    if kind == ObjectKind::Array {
        listing.one(&this, session)?;
    } else if session.json() && !args.recursive {
        listing.object(&this)?;
    } else {
        listing.lines(&target, session)?;
    }
    // Every other row was shown: one that could not be read makes the listing a failure all the same.
    listing.failed.map_or(Ok(()), Err)
}

struct Listing<'a> {
    args: &'a Ls,
    snapshot: &'a Snapshot,
    failed: Option<Failure>,
}

/// Rows that are lined up together; then they are printed, so that a long listing starts at once.
const BLOCK: usize = 500;

impl Listing<'_> {
    /// An array names itself.
    fn one(&mut self, member: &Member, session: &Session) -> Result<()> {
        if session.json() {
            let row = self.json_row(member);
            return print_json(&answer("ls", row));
        }
        let row = self.human_row(member, "");
        stdout(|out| {
            let mut table = Table::new(&[2]);
            table.row(row);
            write!(out, "{table}")
        })
    }

    /// `ls --json`: the group, and its members in a list.
    fn object(&mut self, this: &Member) -> Result<()> {
        let mut members = Vec::new();
        for member in self.snapshot.group(&this.path)?.members()? {
            members.push(object(self.json_row(&member?)));
        }
        let mut row = self.json_row(this);
        row.push(("members", Json::Array(members)));
        print_json(&answer("ls", row))
    }

    /// One line a member.
    fn lines(&mut self, target: &Target, session: &Session) -> Result<()> {
        let group = self.snapshot.group(&target.path)?;
        let members: Box<dyn Iterator<Item = orthant::Result<Member>>> = if self.args.recursive {
            Box::new(group.walk()?)
        } else {
            Box::new(group.members()?)
        };
        let mut table = Table::new(&[2]);
        let mut rows = 0_usize;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for member in members {
            let member = member?;
            let written = if session.json() {
                let row = self.json_row(&member);
                writeln!(out, "{}", answer("ls", row))
            } else if self.args.long {
                table.row(self.human_row(&member, &target.path));
                rows = rows.saturating_add(1);
                if rows >= BLOCK {
                    rows = 0;
                    write!(out, "{}", std::mem::replace(&mut table, Table::new(&[2])))
                } else {
                    Ok(())
                }
            } else {
                writeln!(out, "{}", escape(&Self::name(&member, &target.path)))
            };
            written.map_err(|e| Failure::stdout(&e))?;
        }
        write!(out, "{table}")
            .and_then(|()| out.flush())
            .map_err(|e| Failure::stdout(&e))
    }

    /// The path below the listed group; groups end in a slash.
    fn name(member: &Member, below: &str) -> String {
        let path = member.path.trim_start_matches('/');
        let relative = match path.strip_prefix(below) {
            Some(rest) if !rest.is_empty() => rest.trim_start_matches('/'),
            _ => path,
        };
        match member.kind {
            ObjectKind::Group => format!("{relative}/"),
            ObjectKind::Array => relative.to_owned(),
        }
    }

    fn human_row(&mut self, member: &Member, below: &str) -> [String; 4] {
        let name = Self::name(member, below);
        if member.kind == ObjectKind::Group {
            return [name, "group".to_owned(), String::new(), String::new()];
        }
        match self.array(member) {
            Some((dtype, bounds, stored)) => [name, dtype, bytes(stored), bounds.to_string()],
            None => [
                name,
                "cannot be read".to_owned(),
                String::new(),
                String::new(),
            ],
        }
    }

    fn json_row(&mut self, member: &Member) -> Vec<(&'static str, Json)> {
        let (kind, array) = match member.kind {
            ObjectKind::Group => ("group", None),
            ObjectKind::Array => ("array", self.array(member)),
        };
        let (dtype, bounds, stored) = match array {
            Some((dtype, bounds, stored)) => (text(dtype), domain(&bounds), uint(stored)),
            None => (Json::Null, Json::Null, Json::Null),
        };
        vec![
            ("path", text(slashed(&member.path))),
            ("kind", text(kind)),
            ("dtype", dtype),
            ("domain", bounds),
            ("stored_bytes", stored),
        ]
    }

    /// Type, domain and stored bytes; a failure is kept, and the listing goes on.
    fn array(&mut self, member: &Member) -> Option<(String, orthant::Domain, u64)> {
        let read = || -> Result<_> {
            let array = self.snapshot.dyn_array(&member.path)?;
            let stored = Stored::of(&array)?.bytes;
            Ok((array.data_type().to_string(), array.domain()?, stored))
        };
        match read() {
            Ok(row) => Some(row),
            Err(failure) => {
                self.failed.get_or_insert(failure);
                None
            }
        }
    }
}
