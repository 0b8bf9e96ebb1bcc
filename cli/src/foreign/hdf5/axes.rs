//! Names of axes out of dimension scales, and which attributes are only there to say them. After the "HDF5 Dimension Scale
//! Specification" and the conventions of netCDF-4.
//!
//! Holds [`Axes`]. Must not read elements.

use std::collections::HashMap;

use super::attributes::Attribute;
use super::datatype::Class;
use super::file::File;
use super::heap::Heap;
use crate::foreign::Attributes;
use crate::foreign::cursor::Cursor;

/// What netCDF-4 writes for itself, and hides from its users.
const NETCDF: [&str; 4] = [
    "_NCProperties",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_nc3_strict",
];
/// How the scale of a netCDF dimension without values is called.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";

/// The dimension scales of a file.
pub(super) struct Axes<'a> {
    file: &'a File,
    heap: &'a Heap,
    places: &'a HashMap<u64, String>,
    /// Names of dimensions by netCDF's numbers of them.
    numbered: HashMap<u64, &'a str>,
    netcdf: bool,
}

fn find<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Attribute> {
    attributes.iter().find(|a| a.name == name)
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<'a> Axes<'a> {
    pub(super) fn new(
        all: impl Iterator<Item = (&'a str, &'a [Attribute])>,
        places: &'a HashMap<u64, String>,
        file: &'a File,
        heap: &'a Heap,
    ) -> Self {
        let mut axes = Self {
            file,
            heap,
            places,
            numbered: HashMap::new(),
            netcdf: false,
        };
        for (path, attributes) in all {
            axes.netcdf |= attributes.iter().any(|a| NETCDF.contains(&a.name.as_str()));
            if axes.is_scale(attributes)
                && let Some([number]) = find(attributes, "_Netcdf4Dimid").map(numbers).as_deref()
            {
                axes.numbered.insert(*number, last(path));
            }
        }
        axes
    }

    pub(super) fn is_netcdf(&self) -> bool {
        self.netcdf
    }

    fn is_scale(&self, attributes: &[Attribute]) -> bool {
        let class = find(attributes, "CLASS").and_then(|a| a.as_text(self.heap));
        class.is_some_and(|class| class == "DIMENSION_SCALE")
    }

    /// The attributes that are for people, with their values.
    pub(super) fn values(
        &self,
        attributes: &[Attribute],
        dataset: bool,
        notes: &mut Vec<String>,
    ) -> Attributes {
        let scale = dataset && self.is_scale(attributes);
        let mut values = Vec::new();
        for attribute in attributes {
            let name = attribute.name.as_str();
            let structure = NETCDF.contains(&name)
                || dataset && matches!(name, "DIMENSION_LIST" | "REFERENCE_LIST")
                || dataset && name == "DIMENSION_LABELS"
                || scale && matches!(name, "CLASS" | "NAME");
            if structure {
                continue;
            }
            match attribute.value(self.heap, self.netcdf) {
                Ok(value) => values.push((attribute.name.clone(), value)),
                Err(reason) => notes.push(format!("attribute {name:?} is left behind: {reason}")),
            }
        }
        values
    }

    /// The names of a dataset's axes, empty where one has none.
    pub(super) fn names(
        &self,
        path: &str,
        attributes: &[Attribute],
        rank: usize,
        notes: &mut Vec<String>,
    ) -> Vec<String> {
        let mut names = vec![String::new(); rank];
        let scale = self.is_scale(attributes);
        if let Some(list) = find(attributes, "DIMENSION_LIST") {
            for (name, found) in names.iter_mut().zip(self.listed(list)) {
                found.clone_into(name);
            }
        } else if let (true, Some(list)) = (scale, find(attributes, "_Netcdf4Coordinates")) {
            for (name, number) in names.iter_mut().zip(numbers(list)) {
                let found = self.numbered.get(&number).copied().unwrap_or_default();
                found.clone_into(name);
            }
        } else if let (true, [only]) = (scale, names.as_mut_slice()) {
            last(path).clone_into(only);
        }
        let labels = find(attributes, "DIMENSION_LABELS")
            .and_then(|a| a.value(self.heap, false).ok())
            .map(|value| value.to_json());
        let labels = labels.as_ref().and_then(orthant::Json::as_array);
        for (name, label) in names.iter_mut().zip(labels.unwrap_or_default()) {
            if name.is_empty() {
                label.as_str().unwrap_or_default().clone_into(name);
            }
        }
        let name = find(attributes, "NAME").and_then(|a| a.as_text(self.heap));
        if scale && name.is_some_and(|name| name.starts_with(NO_VARIABLE)) {
            notes.push("a netCDF dimension that has no values: its elements mean nothing".into());
        }
        names
    }

    /// The first scale of each axis.
    fn listed(&self, list: &Attribute) -> Vec<&'a str> {
        let Class::Sequence(_) = list.data_type.class else {
            return Vec::new();
        };
        let width = usize::from(self.file.offset_size);
        let scales = self.heap.follow(&list.bytes, width).unwrap_or_default();
        scales
            .iter()
            .map(|references| {
                let address = Cursor::little(references).uint(width).ok();
                let path = address.and_then(|address| self.places.get(&address));
                path.map_or("", |path| last(path))
            })
            .collect()
    }
}

/// Whole numbers of four bytes, which netCDF writes in the order of its machine.
fn numbers(attribute: &Attribute) -> Vec<u64> {
    let Class::Integer { bits, .. } = attribute.data_type.class else {
        return Vec::new();
    };
    let size = attribute.data_type.size;
    let number = |bytes: &[u8]| {
        let mut cursor = match bits.order {
            super::datatype::Order::Big => Cursor::big(bytes),
            _ => Cursor::little(bytes),
        };
        cursor.uint(size.min(8)).unwrap_or_default()
    };
    attribute.bytes.chunks_exact(size).map(number).collect()
}
