//! Attributes of an object.
//!
//! Holds the handle [`Attributes`] and the operations behind it. Must not know what any attribute means.

use std::sync::Arc;

use super::blobs::{place_blob, read_blob};
use super::edit::lock;
use super::lookup::{is_alive, prefix_cursor};
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::key;
use crate::format::name::{attribute_name_from_key, check_attribute_name};
use crate::format::value::AttributeValue;
use crate::txn::{Change, Cursor, View};

/// The attributes of one group or array: names and [`AttributeValue`]s, listed by name.
///
/// Reading works on every handle, changing only on one that a writer gave.
///
/// ```
/// # fn main() -> orthant::Result<()> {
/// let container = orthant::Container::in_memory()?;
/// let writer = container.writer()?;
/// let attributes = writer.root().attributes();
/// attributes.set("title", "sea surface temperature")?;
/// attributes.set("scale", 0.1_f32)?;
/// attributes.set("levels", [1000_i64, 850, 500])?;
/// writer.commit()?;
///
/// let attributes = container.snapshot()?.root().attributes();
/// assert_eq!(attributes.get("title")?.unwrap().as_str(), Some("sea surface temperature"));
/// assert_eq!(attributes.get("scale")?.unwrap().type_name(), "float32");
/// assert_eq!(attributes.list()?.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Attributes {
    view: View,
    id: ObjectId,
    path: Arc<str>,
}

impl Attributes {
    /// The attributes of the object `id`, which errors call `path`.
    pub(crate) fn new(view: View, id: ObjectId, path: impl Into<Arc<str>>) -> Self {
        Self {
            view,
            id,
            path: path.into(),
        }
    }

    /// Sets one attribute; replaces the value it had.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a name that is empty, longer than 255 bytes, not in composed form (NFC) or has a NUL;
    /// `LimitExceeded` for a value or a number of attributes that is too large; `ReadOnly` without a writer. The
    /// attribute is then as it was.
    pub fn set(&self, name: &str, value: impl Into<AttributeValue>) -> Result<()> {
        self.set_all([(name, value.into())])
    }

    /// Sets several attributes, all or none.
    ///
    /// # Errors
    ///
    /// As [`Attributes::set`].
    pub fn set_all<N: AsRef<str>>(
        &self,
        attributes: impl IntoIterator<Item = (N, AttributeValue)>,
    ) -> Result<()> {
        set_attributes(&self.view, self.id, attributes).map_err(|e| self.named(e))
    }

    /// The value of that name; `None` where there is none.
    ///
    /// # Errors
    ///
    /// `Corrupt` or `Unsupported` where it is there and cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<AttributeValue>> {
        get_attribute(&self.view, self.id, name).map_err(|e| self.named(e))
    }

    /// Whether there is an attribute of that name, of whatever value.
    ///
    /// # Errors
    ///
    /// Where the container cannot be read.
    pub fn contains(&self, name: &str) -> Result<bool> {
        let found = self.view.get(&key::attribute(self.id, name));
        found
            .map(|value| value.is_some())
            .map_err(|e| self.named(e))
    }

    /// Removes one attribute; says whether it was there.
    ///
    /// # Errors
    ///
    /// `ReadOnly` without a writer.
    pub fn remove(&self, name: &str) -> Result<bool> {
        remove_attribute(&self.view, self.id, name).map_err(|e| self.named(e))
    }

    /// All attributes, ascending by the bytes of their names.
    ///
    /// # Errors
    ///
    /// Where the container cannot be read; each entry has its own result, so that one damaged value hides no other.
    pub fn entries(&self) -> Result<AttributeEntries> {
        let prefix = key::attribute_prefix(self.id);
        Ok(AttributeEntries {
            cursor: Some(prefix_cursor(&self.view, &prefix).map_err(|e| self.named(e))?),
            prefix_len: prefix.len(),
            left: self.view.limits().attributes,
            of: self.clone(),
        })
    }

    /// All names and values.
    ///
    /// # Errors
    ///
    /// The first one that [`Attributes::entries`] meets.
    pub fn list(&self) -> Result<Vec<(String, AttributeValue)>> {
        self.entries()?
            .map(|(name, value)| Ok((name, value?)))
            .collect()
    }

    fn named(&self, e: Error) -> Error {
        e.in_object(&self.path)
    }
}

/// See [`Attributes::entries`]: a name, and its value or why it cannot be read.
#[derive(Debug)]
pub struct AttributeEntries {
    /// `None` after an error of the index itself.
    cursor: Option<Cursor>,
    prefix_len: usize,
    left: u64,
    of: Attributes,
}

impl AttributeEntries {
    fn advance(&mut self) -> Result<Option<(String, Result<AttributeValue>)>> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let Some((key, value)) = cursor.next()? else {
            return Ok(None);
        };
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let most = self.of.view.limits().attributes;
            Error::limit("attributes of one object").expected(format_args!("at most {most}"))
        })?;
        let name = attribute_name_from_key(key.get(self.prefix_len..).unwrap_or_default())?;
        let value = decode(&self.of.view, &value).map_err(|e| self.of.named(about(name, e)));
        Ok(Some((name.to_owned(), value)))
    }
}

impl Iterator for AttributeEntries {
    type Item = (String, Result<AttributeValue>);

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().unwrap_or_else(|e| {
            self.cursor = None;
            Some((String::new(), Err(self.of.named(e))))
        })
    }
}

fn decode(view: &View, value: &[u8]) -> Result<AttributeValue> {
    read_blob(view, value, AttributeValue::decode)
}

/// An error that a value gave, with the attribute's name in its help.
fn about(name: &str, e: Error) -> Error {
    if e.help_text().is_some() {
        return e;
    }
    e.help(format!("the attribute is {name:?}"))
}

/// The value of one attribute.
fn get_attribute(view: &View, id: ObjectId, name: &str) -> Result<Option<AttributeValue>> {
    view.get(&key::attribute(id, name))?
        .map(|value| decode(view, &value))
        .transpose()
        .map_err(|e| about(name, e))
}

/// Sets attributes, all or none.
fn set_attributes<N: AsRef<str>>(
    view: &View,
    id: ObjectId,
    attributes: impl IntoIterator<Item = (N, AttributeValue)>,
) -> Result<()> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    refuse_removed(view, id)?;
    let count = attribute_count(view, id)?;
    let mut changes: Vec<Change> = Vec::new();
    for (name, value) in attributes {
        let name = name.as_ref();
        check_attribute_name(name)?;
        let (content, bytes) = value.encode(view.limits()).map_err(|e| about(name, e))?;
        changes.push((
            key::attribute(id, name),
            Some(place_blob(writer, content, &bytes)?),
        ));
    }
    // The last value of a name wins, so that each name counts once.
    changes.reverse();
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes.dedup_by(|later, first| later.0 == first.0);
    let mut added = 0_u64;
    for (key, _) in &changes {
        added = added.saturating_add(u64::from(view.get(key)?.is_none()));
    }
    let total = count.saturating_add(added);
    let most = view.limits().attributes;
    if added > 0 && total > most {
        return Err(Error::limit("attributes of one object")
            .expected(format_args!("at most {most}"))
            .found(total));
    }
    writer.stage(changes);
    writer.attribute_counts().lock().insert(id, total);
    Ok(())
}

fn remove_attribute(view: &View, id: ObjectId, name: &str) -> Result<bool> {
    let writer = view.writer()?;
    let _lock = lock(writer);
    refuse_removed(view, id)?;
    let key = key::attribute(id, name);
    if view.get(&key)?.is_none() {
        return Ok(false);
    }
    writer.stage(vec![(key, None)]);
    writer
        .attribute_counts()
        .lock()
        .entry(id)
        .and_modify(|count| {
            *count = count.saturating_sub(1);
        });
    Ok(true)
}

fn refuse_removed(view: &View, id: ObjectId) -> Result<()> {
    if is_alive(view, id)? {
        return Ok(());
    }
    Err(Error::not_found("object of this handle")
        .help("it has been removed; look its path up again"))
}

/// How many attributes an object has: counted once, then kept by the writer.
fn attribute_count(view: &View, id: ObjectId) -> Result<u64> {
    let writer = view.writer()?;
    if let Some(count) = writer.attribute_counts().lock().get(&id) {
        return Ok(*count);
    }
    let mut cursor = prefix_cursor(view, &key::attribute_prefix(id))?;
    let mut count = 0_u64;
    while cursor.next()?.is_some() {
        count = count.saturating_add(1);
    }
    Ok(count)
}
