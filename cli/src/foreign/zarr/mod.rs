//! Zarr stores, versions 2 and 3, in a folder or a zip file: the hierarchy and the documents.
//!
//! Holds [`open`]. Versions may differ from node to node; folders without documents between others are groups. Chunks are
//! handed over as they are stored ([`chunks`]), with the pipeline that version 3 would call theirs (`orthant_zarr`). Must not
//! decode.

mod chunks;
pub(super) mod store;
mod v2;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use orthant::{Json, Limits};
use orthant_zarr::keys::Keys;
use orthant_zarr::read::{Document, attributes_of, check_chunk};
use orthant_zarr::write::ORIGIN_ATTRIBUTE;

use self::chunks::Stored;
use self::store::{Store, join};
use super::{Array, Content, Facts, Grid, Node, Refusal, Source, Stop, What, json, stem};

/// Names of documents that make a node.
const DOCUMENTS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];
/// Longest document; those of consolidated metadata hold a whole hierarchy.
const DOCUMENT_LEN_MAX: u64 = 256 << 20;
/// Deepest path, as in a container.
const DEPTH_MAX: usize = 128;
/// How many folders are looked into before a folder is called no store.
const LOOKED_INTO_MAX: usize = 4096;

/// Whether a store holds documents at its root, or in the folders of its first two levels.
pub(super) fn looks_like(store: &dyn Store) -> Result<bool, Refusal> {
    let mut level = vec![String::new()];
    let mut looked = 0_usize;
    for _ in 0..3 {
        let mut next = Vec::new();
        for below in level {
            let mut found = false;
            let listed = store.list(&below, &mut |name, more| {
                found = found || DOCUMENTS.contains(&name) || name == ".zmetadata";
                if more && next.len() < LOOKED_INTO_MAX {
                    next.push(join(&below, name));
                }
                Ok(())
            });
            looked = looked.saturating_add(1);
            match listed {
                _ if found => return Ok(true),
                Err(Stop::Source(reason)) if below.is_empty() => return Err(reason),
                _ if looked > LOOKED_INTO_MAX => return Ok(false),
                _ => {}
            }
        }
        level = next;
    }
    Ok(false)
}

/// Everything in a store.
pub(super) fn open(store: Arc<dyn Store>, path: &Path) -> Source {
    let mut walk = Walk {
        documents: Documents::new(Arc::clone(&store)),
        store,
        name: stem(path),
        nodes: Vec::new(),
    };
    walk.all();
    Source {
        kind: "Zarr",
        nodes: walk.nodes,
    }
}

struct Walk {
    store: Arc<dyn Store>,
    documents: Documents,
    /// What a store that is one array is called.
    name: String,
    nodes: Vec<Node>,
}

impl Walk {
    fn all(&mut self) {
        let mut todo = vec![(String::new(), 0_usize)];
        while let Some((key, depth)) = todo.pop() {
            let what = match self.node(&key) {
                Ok(what) => what,
                Err(reason) => What::Refused(reason),
            };
            let is_group = matches!(what, What::Group(_));
            // A lone array is called by its file's name.
            let path = match &what {
                What::Array(_) if key.is_empty() => self.name.clone(),
                _ => key.clone(),
            };
            self.nodes.push(Node {
                inside: format!("/{key}"),
                path,
                what,
            });
            if !is_group {
                continue;
            }
            match self.children(&key) {
                Ok(names) if depth >= DEPTH_MAX && !names.is_empty() => {
                    self.refuse(&key, format!("groups nest deeper than {DEPTH_MAX}"));
                }
                Ok(names) => {
                    let below = names.into_iter().rev();
                    todo.extend(below.map(|n| (join(&key, &n), depth.saturating_add(1))));
                }
                Err(reason) => self.refuse(&key, reason),
            }
        }
        self.drop_empty();
    }

    fn refuse(&mut self, key: &str, reason: Refusal) {
        self.nodes.push(Node {
            inside: format!("/{key}"),
            path: key.to_owned(),
            what: What::Refused(reason),
        });
    }

    /// Names that may be nodes, in order.
    fn children(&self, key: &str) -> Result<BTreeSet<String>, Refusal> {
        let mut names = self.documents.below(key);
        let listed = self.store.list(key, &mut |name, more| {
            if more {
                names.insert(name.to_owned());
            }
            Ok(())
        });
        match listed {
            Err(Stop::Source(reason)) => Err(reason),
            _ => Ok(names),
        }
    }

    fn node(&self, key: &str) -> Result<What, Refusal> {
        let read = |name: &str| self.documents.get(&join(key, name));
        if let Some(document) = read("zarr.json")? {
            return node(&document, &self.store, key);
        }
        let attributes = || read(".zattrs").map(|found| found.unwrap_or(Json::Object(Vec::new())));
        if let Some(document) = read(".zarray")? {
            let array = v2::array(&document, &attributes()?, &self.store, key)?;
            return Ok(What::Array(Box::new(array)));
        }
        if let Some(document) = read(".zgroup")? {
            let version = document.get("zarr_format").and_then(Json::as_i64);
            if version != Some(2) {
                return Err("its .zgroup is not of Zarr version 2".to_owned());
            }
        }
        Ok(What::Group(attributes_of(Some(&attributes()?))))
    }

    /// Folders without documents in or below them were no groups.
    fn drop_empty(&mut self) {
        let mut kept: BTreeSet<String> = BTreeSet::new();
        let mut rest = std::mem::take(&mut self.nodes);
        while let Some(node) = rest.pop() {
            let key = node.inside.trim_start_matches('/');
            let told = match &node.what {
                What::Group(attributes) => {
                    key.is_empty()
                        || !attributes.is_empty()
                        || kept.contains(key)
                        || self.documents.is_group(key)
                }
                _ => true,
            };
            if told {
                if let Some((above, _)) = key.rsplit_once('/') {
                    kept.insert(above.to_owned());
                }
                self.nodes.push(node);
            }
        }
        self.nodes.reverse();
    }
}

/// The documents of a store; where one is missing, its copy in the consolidated metadata of the root.
struct Documents {
    store: Arc<dyn Store>,
    consolidated: BTreeMap<String, Json>,
}

impl Documents {
    fn new(store: Arc<dyn Store>) -> Self {
        let mut documents = Self {
            store,
            consolidated: BTreeMap::new(),
        };
        let mut all = BTreeMap::new();
        // Broken documents are told where the root is read; broken copies are not missed.
        if let Ok(Some(root)) = documents.get("zarr.json")
            && let Some(consolidated) = root.get("consolidated_metadata")
        {
            for (path, document) in members(consolidated.get("metadata")) {
                all.insert(join(path.trim_matches('/'), "zarr.json"), document.clone());
            }
        } else if let Ok(Some(root)) = documents.get(".zmetadata") {
            for (key, document) in members(root.get("metadata")) {
                all.insert(key.clone(), document.clone());
            }
        }
        documents.consolidated = all;
        documents
    }

    fn get(&self, key: &str) -> Result<Option<Json>, Refusal> {
        let Some(bytes) = self.store.get(key, DOCUMENT_LEN_MAX)? else {
            return Ok(self.consolidated.get(key).cloned());
        };
        let mut limits = Limits::default();
        limits.value_bytes = DOCUMENT_LEN_MAX;
        let document = json::parse(&bytes, &limits).map_err(|e| format!("{key}: {e}"))?;
        match document {
            Json::Object(_) => Ok(Some(document)),
            _ => Err(format!("{key} is no JSON object")),
        }
    }

    /// Names directly below a key that only the consolidated metadata may know.
    fn below(&self, key: &str) -> BTreeSet<String> {
        let prefix = join(key, "");
        let prefix = prefix.trim_start_matches('/');
        let names = self.consolidated.keys().filter_map(|k| {
            let (child, _) = k.strip_prefix(prefix)?.split_once('/')?;
            (!child.is_empty()).then(|| child.to_owned())
        });
        names.collect()
    }

    fn is_group(&self, key: &str) -> bool {
        let there = |name: &str| matches!(self.get(&join(key, name)), Ok(Some(_)));
        there("zarr.json") || there(".zgroup")
    }
}

/// Most bytes of a chunk whose elements have no fixed size.
const VARIABLE_LEN_MAX: u64 = 1 << 31;

/// The array `key` of a store on the grid of its chunks, which are called as `keys` says.
fn placed(
    mut facts: Facts,
    shape: &[u64],
    chunk: Vec<u64>,
    (store, key, keys): (&Arc<dyn Store>, &str, Keys),
) -> Result<Array, Refusal> {
    check_chunk(shape, &chunk)?;
    let counts = shape
        .iter()
        .zip(&chunk)
        .map(|(n, c)| n.div_ceil((*c).max(1)));
    let counts = counts.collect();
    let elements = chunk.iter().try_fold(1_u64, |n, c| n.checked_mul(*c));
    let item = facts.data_type.item_size().map(|n| n as u64);
    let decoded = item.map(|item| elements.and_then(|n| n.checked_mul(item)));
    let len_max = match decoded {
        None => VARIABLE_LEN_MAX,
        // A shard's index and checksums come on top; the container bounds each codec more closely.
        Some(bytes) => bytes
            .unwrap_or(u64::MAX)
            .saturating_mul(2)
            .saturating_add(1 << 20),
    };
    facts.grid = Some(Grid::from_zero(chunk));
    lay(&mut facts);
    let stored = Stored {
        store: Arc::clone(store),
        key: key.to_owned(),
        keys,
        counts,
        len_max,
    };
    Ok(Array {
        facts,
        content: Content::Chunks(Box::new(stored)),
    })
}

/// A group or an array from its `zarr.json`.
fn node(document: &Json, store: &Arc<dyn Store>, key: &str) -> Result<What, Refusal> {
    let array = match Document::from_json(document)? {
        Document::Group(attributes) => return Ok(What::Group(attributes)),
        Document::Array(array) => array,
    };
    let mut facts = Facts::plain(array.data_type, &array.shape)?;
    facts.fill = Some(array.fill);
    facts.codecs = Some(array.codecs);
    facts.attributes = array.attributes;
    if !array.dims.is_empty() {
        facts.name_axes(&array.dims);
    }
    let array = placed(facts, &array.shape, array.chunk, (store, key, array.keys))?;
    Ok(What::Array(Box::new(array)))
}

/// Gives an array the domain and the grid that its attribute tells, and drops the attribute. One that does not fit the array
/// is kept and noted.
fn lay(facts: &mut Facts) {
    let told = facts
        .attributes
        .iter()
        .position(|(n, _)| n == ORIGIN_ATTRIBUTE);
    let Some(at) = told else { return };
    let told = facts.attributes.get(at).map(|(_, value)| value.to_json());
    let chunk = facts.grid.as_ref().map(|grid| grid.chunk.clone());
    let place = told
        .zip(chunk.as_ref())
        .and_then(|(json, chunk)| orthant_zarr::place::read(&json, &facts.domain.shape(), chunk));
    match (place, chunk) {
        (Some(place), Some(chunk)) => {
            facts.domain = place.domain;
            facts.grid = Some(Grid {
                chunk,
                origin: place.origin,
                first: place.first,
            });
            facts.attributes.remove(at);
        }
        _ => facts.notes.push(format!(
            "its attribute {ORIGIN_ATTRIBUTE:?} does not say where it lay, and is kept as it is"
        )),
    }
}

/// The members of an object; none of anything else.
fn members(json: Option<&Json>) -> &[(String, Json)] {
    json.and_then(Json::as_object).unwrap_or_default()
}
