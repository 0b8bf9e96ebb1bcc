//! NumPy's `.npy`, and `.npz`, a zip file of them.
//!
//! Holds [`file`] and [`zip`]. The header is read by `crate::npy`. Must not unpickle.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use orthant::Elements;

use super::flat::{Bytes, Flat, Order};
use super::zarr::store::Zip;
use super::{Array, Boxes, Content, Facts, Node, Refusal, Source, What, refused, stem};
use crate::npy::Npy;

/// A `.npy` file of `len` bytes.
pub(super) fn file(path: &Path, file: File, len: u64) -> Source {
    let name = path.display().to_string();
    Source {
        kind: "NumPy",
        nodes: vec![Node {
            inside: "/".to_owned(),
            path: stem(path),
            what: what(array(&name, file, 0, len)),
        }],
    }
}

fn what(array: Result<Array, Refusal>) -> What {
    match array {
        Ok(array) => What::Array(Box::new(array)),
        Err(reason) => What::Refused(reason),
    }
}

/// One `.npy` of `len` bytes that starts at `start`.
fn array(name: &str, mut file: File, start: u64, len: u64) -> Result<Array, Refusal> {
    use std::io::{Seek as _, SeekFrom};
    let failed = |e: std::io::Error| format!("{name}: cannot be read: {e}");
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let npy = Npy::open(name, BufReader::new(&file)).map_err(|f| f.message().to_owned())?;
    let header = npy.header;
    let c_order = !header.is_fortran() || header.shape.len() < 2;
    let order = if c_order {
        Order::LastFastest
    } else {
        Order::FirstFastest
    };
    let too_large = || format!("{name}: more elements than fit in memory");
    let offset = start.checked_add(header.start).ok_or_else(too_large)?;
    let facts = Facts::plain(header.data_type.clone(), &header.shape)?;
    let (item, shape) = (header.item(), header.shape.clone());
    if item == 0 {
        let count = header.count().ok_or_else(too_large)?;
        return Ok(Array {
            facts,
            content: Content::Boxes(Box::new(Empty(count))),
        });
    }
    let decode = Box::new(move |bytes: Vec<u8>| header.decode(bytes));
    let flat = Flat::packed(Bytes::File(file), offset, item, &shape, order, decode);
    let flat = flat.ok_or_else(too_large)?;
    let end = flat.end().ok_or_else(too_large)?;
    // A cut file is refused before anything is written.
    if end > start.saturating_add(len) {
        return Err(format!(
            "the file is cut: its header promises more than {len} bytes"
        ));
    }
    Ok(Array {
        facts,
        content: Content::Boxes(Box::new(flat)),
    })
}

/// Texts of no width: as many empty ones as there are elements.
#[derive(Debug)]
struct Empty(usize);

impl Boxes for Empty {
    fn read(&self, _lower: &[u64], shape: &[u64]) -> Result<Elements, Refusal> {
        let count = shape.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
        let count = count.and_then(|n| usize::try_from(n).ok());
        let count = count.filter(|n| *n <= self.0);
        let count = count.ok_or("more elements than fit in memory")?;
        Ok(Elements::Variable(vec![Box::from([]); count]))
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// The members of a zip file whose names end in `.npy`.
pub(super) fn zip(path: &Path, zip: &Zip) -> Source {
    let mut nodes = Vec::new();
    for name in zip.names() {
        let Some(bare) = name.strip_suffix(".npy") else {
            continue;
        };
        let shown = format!("{} /{bare}", path.display());
        nodes.push(Node {
            inside: format!("/{bare}"),
            path: bare.trim_matches('/').to_owned(),
            what: what(member(zip, name, &shown)),
        });
    }
    if nodes.is_empty() {
        return refused(
            "zip",
            "a zip file with neither Zarr documents nor .npy members".to_owned(),
        );
    }
    Source {
        kind: "NumPy",
        nodes,
    }
}

/// A member where it lies, or unpacked beside: elements are read box by box, so they must lie somewhere.
fn member(zip: &Zip, name: &str, shown: &str) -> Result<Array, Refusal> {
    if let Some(place) = zip.place(name)? {
        let file = File::open(zip.path()).map_err(|e| format!("it cannot be opened: {e}"))?;
        return array(shown, file, place.offset, place.len);
    }
    let file = zip.unpacked(name)?;
    let len = file
        .metadata()
        .map_err(|e| format!("it cannot be read: {e}"))?
        .len();
    array(shown, file, 0, len)
}
