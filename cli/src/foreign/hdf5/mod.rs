//! HDF5 files, netCDF-4 among them: the hierarchy, and what of it becomes what.
//!
//! Holds [`open`] and the walk over links. Trees, heaps and filters are read by the crate `hdf5-reader`, behind the border of
//! [`file::guarded`]; headers, types and layouts are read here, so that what cannot be taken is refused by itself. Must not
//! decode.

mod attributes;
mod axes;
mod bitshuffle;
mod chunks;
mod dataset;
mod datatype;
mod file;
mod filters;
mod header;
mod heap;
mod index;
mod links;
mod space;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;

use self::attributes::{Attribute, attributes};
use self::axes::Axes;
use self::file::File;
use self::header::Header;
use self::heap::Heap;
use self::links::{Link, Target, links};
use super::{Array, Attributes, Node, Refusal, Source, What, refused};

/// First bytes of a superblock.
pub(super) const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Deepest path, as in a container.
const DEPTH_MAX: usize = 128;
/// How often objects may be met again by other links: links of groups can multiply without end.
const AGAIN_MAX: usize = 10_000;

/// Everything in a file of `len` bytes.
pub(super) fn open(file: std::fs::File, len: u64) -> Source {
    let file = match File::open(file, len) {
        Ok(file) => file,
        Err(reason) => {
            return refused(
                "HDF5",
                format!("an HDF5 file that cannot be opened: {reason}"),
            );
        }
    };
    let mut walk = Walk {
        heap: Arc::new(Heap::new(Arc::clone(&file))),
        places: HashMap::from([(file.root, String::new())]),
        again: 0,
        found: Vec::new(),
        file,
    };
    walk.all();
    walk.nodes()
}

/// An object, or what there is in the place of one.
struct Found {
    /// Empty for the root.
    path: String,
    what: Object,
}

enum Object {
    Group(Vec<Attribute>, Vec<Refusal>),
    Dataset(Box<Header>, Vec<Attribute>, Vec<Refusal>),
    Aside(String),
    Refused(Refusal),
}

/// An object that is still to be looked at.
struct Todo {
    path: String,
    address: u64,
    above: Option<Arc<Todo>>,
}

impl Todo {
    /// It, and the groups above it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |todo| todo.above.as_deref())
    }

    fn is_loop(&self) -> bool {
        self.chain()
            .skip(1)
            .any(|todo| todo.address == self.address)
    }
}

struct Walk {
    file: Arc<File>,
    heap: Arc<Heap>,
    /// The path under which each object header was found first.
    places: HashMap<u64, String>,
    /// How many objects were met again.
    again: usize,
    found: Vec<Found>,
}

impl Walk {
    fn all(&mut self) {
        let mut todo = vec![Todo {
            path: String::new(),
            address: self.file.root,
            above: None,
        }];
        while let Some(next) = todo.pop() {
            let (path, address) = (next.path.clone(), next.address);
            let header = match Header::read(&self.file, address) {
                Ok(header) => header,
                Err(reason) => {
                    self.push(path, Object::Refused(reason));
                    continue;
                }
            };
            let (kept, mut lost) = attributes(&self.file, &header);
            if let Some(first) = self.places.get(&address).filter(|first| **first != path) {
                // A container has no links, so each name gets what it leads to, but where that would go on for ever.
                let note = format!("a second link to /{first}");
                self.again = self.again.saturating_add(1);
                if next.is_loop() || self.again > AGAIN_MAX {
                    self.push(path, Object::Aside(note));
                    continue;
                }
                lost.push(note);
            }
            if dataset::is_dataset(&header) {
                self.push(path, Object::Dataset(Box::new(header), kept, lost));
                continue;
            }
            if dataset::is_type(&header) {
                self.push(path, Object::Aside("a type with a name".to_owned()));
                continue;
            }
            if !links::is_group(&header) && address != self.file.root {
                let reason = "neither a group nor a dataset".to_owned();
                self.push(path, Object::Refused(reason));
                continue;
            }
            self.push(path.clone(), Object::Group(kept, lost));
            match links(&self.file, &header) {
                Ok(found) => self.follow(next, found, &mut todo),
                Err(reason) => self.push(path, Object::Refused(reason)),
            }
        }
    }

    fn push(&mut self, path: String, what: Object) {
        self.found.push(Found { path, what });
    }

    /// Puts the members of a group on the list.
    fn follow(&mut self, group: Todo, links: Vec<Link>, todo: &mut Vec<Todo>) {
        let mut members = Vec::new();
        let above = group.path.clone();
        let depth = group.chain().count();
        let group = Arc::new(group);
        for link in links {
            let (name, target) = match link {
                Ok(link) => link,
                Err(reason) => {
                    let reason = format!("a link that cannot be read: {reason}");
                    self.push(above.clone(), Object::Refused(reason));
                    continue;
                }
            };
            let path = if above.is_empty() {
                name
            } else {
                format!("{above}/{name}")
            };
            match target {
                Target::Hard(address) => {
                    if depth >= DEPTH_MAX {
                        let reason = format!("groups nest deeper than {DEPTH_MAX}");
                        self.push(path, Object::Refused(reason));
                    } else {
                        self.places.entry(address).or_insert_with(|| path.clone());
                        members.push(Todo {
                            path,
                            address,
                            above: Some(Arc::clone(&group)),
                        });
                    }
                }
                Target::Soft(to) => {
                    let aside = format!("a soft link to {to}, which is taken where it is");
                    self.push(path, Object::Aside(aside));
                }
                Target::External(file, to) => {
                    let reason = format!("an external link to {to} in {file}");
                    self.push(path, Object::Refused(reason));
                }
            }
        }
        todo.extend(members.into_iter().rev());
    }

    fn nodes(self) -> Source {
        let all = self.found.iter().filter_map(|found| match &found.what {
            Object::Group(kept, _) | Object::Dataset(_, kept, _) => {
                Some((found.path.as_str(), kept.as_slice()))
            }
            _ => None,
        });
        let axes = Axes::new(all, &self.places, &self.file, &self.heap);
        let mut nodes = Vec::new();
        for found in &self.found {
            let mut node = |what| {
                nodes.push(Node {
                    inside: format!("/{}", found.path),
                    path: found.path.clone(),
                    what,
                });
            };
            match &found.what {
                Object::Group(kept, lost) => {
                    let mut notes = lost.clone();
                    let values = axes.values(kept, false, &mut notes);
                    node(What::Group(values));
                    for note in notes {
                        node(What::Aside(note));
                    }
                }
                Object::Dataset(header, kept, lost) => {
                    node(match self.dataset(header, kept, lost, &found.path, &axes) {
                        Ok(array) => What::Array(Box::new(array)),
                        Err(reason) => What::Refused(reason),
                    });
                }
                Object::Aside(note) => node(What::Aside(note.clone())),
                Object::Refused(reason) => node(What::Refused(reason.clone())),
            }
        }
        Source {
            kind: if axes.is_netcdf() { "netCDF-4" } else { "HDF5" },
            nodes,
        }
    }

    fn dataset(
        &self,
        header: &Header,
        kept: &[Attribute],
        lost: &[Refusal],
        path: &str,
        axes: &Axes<'_>,
    ) -> Result<Array, Refusal> {
        let (mut array, names) = dataset::array(&self.file, header, &self.heap)?;
        let facts = &mut array.facts;
        facts.notes.extend_from_slice(lost);
        let mut values: Attributes = axes.values(kept, true, &mut facts.notes);
        if let Some(names) = names {
            if values.iter().any(|(name, _)| name == "enum") {
                facts.notes.push(
                    "the names of its enumeration are left behind: it has an attribute \"enum\""
                        .to_owned(),
                );
            } else {
                values.push(("enum".to_owned(), names));
            }
        }
        facts.attributes = values;
        let names = axes.names(path, kept, facts.domain.rank(), &mut facts.notes);
        facts.name_axes(&names);
        Ok(array)
    }
}
