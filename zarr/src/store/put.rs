//! Keys of a store, made in a container.
//!
//! Holds what [`Tree`] does where its root is a writer's: documents become groups and arrays, other keys chunks or kept
//! bytes. What a container cannot do is refused before anything is changed.

use orthant::{
    AttributeValue, Block, Codec, Container, DataType, Domain, DynArray, DynArraySpec, Elements,
    Json, Limits, ObjectKind, Region,
};
use zarrs_storage::{StorageError, StoreKey};

use super::storage;
use super::tree::{IMPLICIT, KEPT, Tree, Way, chunk_at, document_of, is_implicit, is_kept};
use crate::Version;
use crate::keys::Keys;
use crate::place;
use crate::read::{ArrayDocument, Attributes, Document};
use crate::write::ORIGIN_ATTRIBUTE;

type Result<T> = std::result::Result<T, StorageError>;

impl Tree {
    pub(super) fn set(&self, key: &StoreKey, value: &[u8]) -> Result<()> {
        let text = key.as_str();
        if let Some(path) = document_of(text) {
            let refuse = |why: String| StorageError::InvalidMetadata(key.clone(), why);
            let document = std::str::from_utf8(value).map_err(|e| refuse(e.to_string()))?;
            let document = Json::parse(document, &Limits::default());
            let document = document.map_err(|e| refuse(e.to_string()))?;
            return match Document::from_json(&document).map_err(refuse)? {
                Document::Group(attributes) => self.set_group(path, attributes),
                Document::Array(array) => self.set_array(path, *array, &refuse),
            };
        }
        match self.way(text)? {
            Way::Array { placed, rest } if !is_kept(&placed.array)? => {
                let Some(coord) = chunk_at(&placed, &rest)? else {
                    let array = placed.array.path();
                    return Err(StorageError::Unsupported(format!(
                        "{text}: no document and no chunk of the array {array}"
                    )));
                };
                let put = placed.array.put_encoded_chunk(&coord, value);
                put.map_err(|e| storage(&e))
            }
            Way::Array { rest, .. } if rest.is_empty() => {
                self.root.remove(text, false).map_err(|e| storage(&e))?;
                self.keep(text, value)
            }
            Way::Nothing => self.keep(text, value),
            Way::Array { .. } | Way::Group(_) => Err(StorageError::Unsupported(format!(
                "{text}: a key above or below another one"
            ))),
        }
    }

    /// Holds the bytes of a key that is neither a document nor a chunk.
    fn keep(&self, path: &str, value: &[u8]) -> Result<()> {
        self.make_parents(path)?;
        let made = || -> orthant::Result<()> {
            let len = value.len() as u64;
            let spec = DynArraySpec::new(DataType::Uint8, Domain::from_shape(&[len])?)
                .chunks([len.max(1)])
                .codecs(Codec::raw_profile());
            let array = self.root.create_dyn_array(path, &spec)?;
            array.attributes().set(KEPT, Json::Bool(true))?;
            let block = Block {
                data_type: DataType::Uint8,
                shape: vec![len],
                elements: Elements::Fixed(value.to_vec()),
            };
            array.write(Region::all(), &block).map(drop)
        };
        made().map_err(|e| storage(&e))
    }

    /// Makes the groups above a path, without documents.
    fn make_parents(&self, path: &str) -> Result<()> {
        for (end, _) in path.match_indices('/') {
            let above = path.get(..end).unwrap_or_default();
            let there = self.root.kind(above).map_err(|e| storage(&e))?;
            if there.is_none() {
                let group = self.root.create_group(above);
                let marked = group.and_then(|g| g.attributes().set(IMPLICIT, Json::Bool(true)));
                marked.map_err(|e| storage(&e))?;
            }
        }
        Ok(())
    }

    fn set_group(&self, path: &str, attributes: Attributes) -> Result<()> {
        self.make_parents(path)?;
        let group = match path {
            "" => Ok(self.root.clone()),
            _ => self.root.ensure_group(path),
        };
        let group = group.map_err(|e| storage(&e))?;
        replace(&group.attributes(), attributes)
    }

    fn set_array(
        &self,
        path: &str,
        document: ArrayDocument,
        refuse: &dyn Fn(String) -> StorageError,
    ) -> Result<()> {
        if document.keys != Keys::of(Version::V3) {
            return Err(refuse("chunk keys other than the default with `/`".into()));
        }
        let (spec, domain, attributes) = spec(document, refuse)?;
        // Made apart first: what the container refuses changes nothing, and its codecs are then spelled as stored.
        let trial = Container::in_memory().and_then(|c| {
            let writer = c.writer()?;
            let trial = writer.create_dyn_array("a", &spec)?;
            Ok((trial, writer))
        });
        let (trial, _writer) = trial.map_err(|e| refuse(e.to_string()))?;
        let old = match self.way(path)? {
            Way::Nothing => None,
            Way::Array { placed, rest } if rest.is_empty() => Some(placed),
            Way::Group(group) if !path.is_empty() && is_implicit(&group)? => {
                let emptied = self.root.remove(path, false);
                emptied.map_err(|_| refuse("there are keys below it: erase them first".into()))?;
                None
            }
            Way::Array { .. } | Way::Group(_) => {
                return Err(refuse("another node is there: erase it first".into()));
            }
        };
        let array = if let Some(old) = old {
            if let Some(what) = difference(&old.array, &trial) {
                return Err(refuse(format!(
                    "the array that is there has another {what}: erase it first"
                )));
            }
            let old = old.array.clone();
            if old.domain().map_err(|e| storage(&e))? != domain {
                old.set_domain(domain).map_err(|e| storage(&e))?;
            }
            old
        } else {
            self.make_parents(path)?;
            let made = self.root.create_dyn_array(path, &spec);
            made.map_err(|e| storage(&e))?
        };
        replace(&array.attributes(), attributes)
    }

    pub(super) fn erase(&self, key: &str) -> Result<()> {
        if let Some(path) = document_of(key) {
            match self.way(path)? {
                Way::Group(group) if !is_implicit(&group)? => {
                    let bare = vec![(IMPLICIT.to_owned(), AttributeValue::from(Json::Bool(true)))];
                    replace(&group.attributes(), bare)?;
                    return self.prune(&format!("{path}/"));
                }
                // Chunks are nothing without their array.
                Way::Array { placed, rest } if rest.is_empty() && !is_kept(&placed.array)? => {
                    self.root.remove(path, true).map_err(|e| storage(&e))?;
                    return self.prune(path);
                }
                _ => return Ok(()),
            }
        }
        let Way::Array { placed, rest } = self.way(key)? else {
            return Ok(());
        };
        if is_kept(&placed.array)? {
            if rest.is_empty() {
                self.root.remove(key, false).map_err(|e| storage(&e))?;
                self.prune(key)?;
            }
            return Ok(());
        }
        match chunk_at(&placed, &rest)? {
            Some(coord) => {
                let erased = placed.array.erase_chunk(&coord);
                erased.map(drop).map_err(|e| storage(&e))
            }
            None => Ok(()),
        }
    }

    pub(super) fn erase_below(&self, prefix: &str) -> Result<()> {
        let path = prefix.trim_end_matches('/');
        match self.way(path)? {
            Way::Nothing => Ok(()),
            Way::Group(_) if path.is_empty() => {
                let members = self.root.members().map_err(|e| storage(&e))?;
                let names: orthant::Result<Vec<String>> =
                    members.map(|m| m.map(|m| m.name)).collect();
                for name in names.map_err(|e| storage(&e))? {
                    self.root.remove(&name, true).map_err(|e| storage(&e))?;
                }
                self.erase(super::tree::DOCUMENT)
            }
            Way::Array { rest, .. } if !rest.is_empty() => {
                let keys = self.keys(prefix)?;
                keys.iter().try_for_each(|key| self.erase(key))
            }
            Way::Array { placed, .. } if is_kept(&placed.array)? => Ok(()),
            Way::Group(_) | Way::Array { .. } => {
                self.root.remove(path, true).map_err(|e| storage(&e))?;
                self.prune(path)
            }
        }
    }

    /// Removes the groups above a path that have neither members nor documents left.
    fn prune(&self, path: &str) -> Result<()> {
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for end in ends.into_iter().rev().filter(|end| *end > 0) {
            let above = path.get(..end).unwrap_or_default();
            if self.root.kind(above).map_err(|e| storage(&e))? != Some(ObjectKind::Group) {
                continue;
            }
            let group = self.root.group(above).map_err(|e| storage(&e))?;
            let mut members = group.members().map_err(|e| storage(&e))?;
            if !is_implicit(&group)? || members.next().is_some() {
                break;
            }
            self.root.remove(above, false).map_err(|e| storage(&e))?;
        }
        Ok(())
    }
}

/// How an array is made from its document: its place as its attribute tells it, which is then left out.
fn spec(
    document: ArrayDocument,
    refuse: &dyn Fn(String) -> StorageError,
) -> Result<(DynArraySpec, Domain, Attributes)> {
    let ArrayDocument {
        shape,
        chunk,
        mut attributes,
        ..
    } = document;
    let at = attributes.iter().position(|(n, _)| n == ORIGIN_ATTRIBUTE);
    let (domain, origin) = match at {
        None => {
            let domain = Domain::from_shape(&shape).map_err(|e| refuse(e.to_string()))?;
            (domain, vec![0; shape.len()])
        }
        Some(at) => {
            let told = attributes.remove(at).1.to_json();
            let told = up_to_shape(&told, &shape);
            let place = told.and_then(|told| place::read(&told, &shape, &chunk));
            let place = place.filter(|p| covers_no_more(p, &shape, &chunk));
            let place = place.ok_or_else(|| {
                let name = ORIGIN_ATTRIBUTE;
                refuse(format!("its attribute {name:?} does not say where it lies"))
            })?;
            (place.domain, place.origin)
        }
    };
    let codecs = document.codecs.into_iter().map(Codec::from);
    let mut spec = DynArraySpec::new(document.data_type, domain.clone())
        .chunks(chunk)
        .origin(origin)
        .fill_bytes(document.fill)
        .codecs(codecs);
    if !document.dims.is_empty() {
        spec = spec.dims(document.dims);
    }
    Ok((spec, domain, attributes))
}

/// The attribute's value with the upper bounds that the shape gives it: a reader that resizes an array changes only that.
fn up_to_shape(told: &Json, shape: &[u64]) -> Option<Json> {
    let list = |name: &str| {
        let items = told.get(name)?.as_array()?.iter().map(Json::as_i64);
        items
            .collect::<Option<Vec<i64>>>()
            .filter(|l| l.len() == shape.len())
    };
    let ends = list("inclusive_min")?
        .into_iter()
        .zip(list("pad")?)
        .zip(shape);
    let ends = ends.map(|((lo, pad), len)| lo.checked_sub(pad)?.checked_add_unsigned(*len));
    let ends = Json::Array(ends.map(|end| end.map(Json::I64)).collect::<Option<_>>()?);
    let members = told.as_object()?.iter().map(|(name, value)| {
        let value = if name == "exclusive_max" {
            &ends
        } else {
            value
        };
        (name.clone(), value.clone())
    });
    Some(Json::Object(members.collect()))
}

/// Whether an array in this place is seen with this shape: from the chunk edge at or below its lower bounds to its upper ones.
fn covers_no_more(place: &place::Place, shape: &[u64], chunk: &[u64]) -> bool {
    let per_axis = place
        .domain
        .bounds()
        .iter()
        .zip(&place.origin)
        .zip(shape.iter().zip(chunk));
    per_axis
        .into_iter()
        .all(|(((lo, hi), origin), (len, chunk))| {
            let above = i128::from(*lo) - i128::from(*origin);
            let first = i128::from(*lo) - above.rem_euclid(i128::from((*chunk).max(1)));
            i128::from(*hi) - first == i128::from(*len)
        })
}

/// What two arrays cannot differ in and have the same chunks.
fn difference(old: &DynArray, new: &DynArray) -> Option<&'static str> {
    let differs = [
        (old.data_type() != new.data_type(), "data type"),
        (old.chunk_shape() != new.chunk_shape(), "chunk shape"),
        (old.shard_shape() != new.shard_shape(), "shard shape"),
        (old.codecs() != new.codecs(), "pipeline"),
        (old.fill_bytes() != new.fill_bytes(), "fill value"),
        (old.dims() != new.dims(), "list of dimension names"),
        (old.origin().ok() != new.origin().ok(), "origin"),
    ];
    differs
        .into_iter()
        .find_map(|(is, what)| is.then_some(what))
}

/// Makes these the attributes.
fn replace(of: &orthant::Attributes, new: Attributes) -> Result<()> {
    let replaced = || -> orthant::Result<()> {
        let old = of.list()?;
        for (name, _) in &old {
            if new.iter().all(|(other, _)| other != name) {
                of.remove(name)?;
            }
        }
        of.set_all(new.into_iter().filter(|pair| !old.contains(pair)))
    };
    replaced().map_err(|e| storage(&e))
}
