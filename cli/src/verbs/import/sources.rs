//! What a source file holds: its kind, told by its first bytes, and the arrays in it.
//!
//! Holds [`open`] and [`Stream`]. Must not write.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use orthant::{Block, DataType, Elements};

use crate::exit::{Failure, Result};
use crate::npy::{MAGIC, Npy};
use crate::source;

/// An array of a source, or why it cannot be taken.
pub(super) enum Found {
    Array {
        /// The path inside the source: `/` for a file that is one array.
        inside: String,
        /// The name it gets.
        name: String,
        stream: Box<Stream>,
    },
    Refused {
        inside: String,
        reason: String,
    },
}

/// The elements of one array.
pub(super) struct Stream {
    name: String,
    npy: Npy<Box<dyn Read>>,
}

impl Stream {
    fn new(name: String, input: Box<dyn Read>) -> Result<Self> {
        let npy = Npy::open(&name, input)?;
        Ok(Self { name, npy })
    }

    pub(super) fn data_type(&self) -> &DataType {
        &self.npy.header.data_type
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.npy.header.shape
    }

    pub(super) fn is_c_order(&self) -> bool {
        self.npy.is_c_order()
    }

    /// Bytes of one element in the source.
    pub(super) fn item(&self) -> u64 {
        self.npy.header.item() as u64
    }

    /// Bytes of all elements in the source.
    pub(super) fn bytes(&self) -> u64 {
        self.npy.header.byte_len().unwrap_or(u64::MAX)
    }

    /// Bytes of the file that the header promises.
    fn file_len(&self) -> Option<u64> {
        let header = &self.npy.header;
        header.byte_len()?.checked_add(header.start)
    }

    pub(super) fn elements(&mut self, count: usize) -> Result<Elements> {
        self.npy.elements(&self.name, count)
    }

    pub(super) fn block(self) -> Result<Block> {
        self.npy.block(&self.name)
    }
}

/// The arrays of a source.
///
/// # Errors
/// Where the source cannot be read at all; what cannot be taken of it is in the list.
pub(super) fn open(path: &Path) -> Result<Vec<Found>> {
    let metadata = std::fs::metadata(path).map_err(|e| Failure::io("open", path, &e))?;
    if metadata.is_dir() {
        return Ok(vec![refused(folder_kind(path))]);
    }
    let mut file = source::open(path)?;
    let mut head = Vec::new();
    (&mut file)
        .take(512)
        .read_to_end(&mut head)
        .map_err(|e| Failure::io("read", path, &e))?;
    let stem = path
        .file_stem()
        .map_or_else(|| "array".into(), |s| s.to_string_lossy())
        .into_owned();
    let shown = path.display().to_string();
    if head.starts_with(MAGIC) {
        let len = metadata.len();
        let input: Box<dyn Read> = Box::new(Cursor::new(head).chain(BufReader::new(file)));
        return Ok(vec![one(shown, "/".to_owned(), stem, input, len)]);
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return npz(path, &shown);
    }
    Ok(vec![refused(format!(
        "{}; this release imports .npy and .npz",
        kind_of(&head)
    ))])
}

fn refused(reason: String) -> Found {
    Found::Refused {
        inside: "/".to_owned(),
        reason,
    }
}

/// One `.npy` stream of `len` bytes in all.
fn one(shown: String, inside: String, name: String, input: Box<dyn Read>, len: u64) -> Found {
    let refused = |reason: String| Found::Refused {
        inside: inside.clone(),
        reason,
    };
    match Stream::new(shown, input) {
        Err(failure) => refused(failure.message().to_owned()),
        // A cut file is refused before anything is written.
        Ok(stream) if stream.file_len().is_none_or(|n| n > len) => refused(format!(
            "the file is cut: its header promises more than {len} bytes"
        )),
        Ok(stream) => Found::Array {
            inside,
            name,
            stream: Box::new(stream),
        },
    }
}

/// Longest member of a `.npz` that is unpacked into memory.
const MEMBER_LEN_MAX: u64 = 1 << 36;

/// The members of a zip file whose names end in `.npy`.
fn npz(path: &Path, shown: &str) -> Result<Vec<Found>> {
    let file: File = source::open(path)?;
    let broken = |e: &dyn std::fmt::Display| refused(format!("no usable zip file: {e}"));
    let mut archive = match zip::ZipArchive::new(BufReader::new(file)) {
        Ok(archive) => archive,
        Err(e) => return Ok(vec![broken(&e)]),
    };
    let mut found = Vec::new();
    for i in 0..archive.len() {
        let mut member = match archive.by_index(i) {
            Ok(member) => member,
            Err(e) => {
                found.push(broken(&e));
                continue;
            }
        };
        let full_name = member.name().to_owned();
        let Some(name) = full_name.strip_suffix(".npy") else {
            continue;
        };
        let mut bytes = Vec::new();
        let unpacked = (&mut member).take(MEMBER_LEN_MAX).read_to_end(&mut bytes);
        let inside = format!("/{name}");
        found.push(match unpacked {
            Ok(_) => {
                let len = bytes.len() as u64;
                let input: Box<dyn Read> = Box::new(Cursor::new(bytes));
                one(
                    format!("{shown} {inside}"),
                    inside,
                    name.to_owned(),
                    input,
                    len,
                )
            }
            Err(e) => Found::Refused {
                inside,
                reason: unreadable(&e),
            },
        });
    }
    if found.is_empty() {
        found.push(refused("a zip file without .npy members".to_owned()));
    }
    Ok(found)
}

fn unreadable(e: &io::Error) -> String {
    format!("it cannot be unpacked: {e}")
}

/// What a file looks like, for the one who wonders why it is refused.
fn kind_of(head: &[u8]) -> String {
    const KINDS: [(&[u8], &str); 9] = [
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"CDF", "a classic netCDF file"),
        (b"\x89ORT\r\n\x1a\n", "an orthant container"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"II*\0", "a TIFF file"),
        (b"MM\0*", "a TIFF file"),
        (b"GRIB", "a GRIB file"),
        (b"PAR1", "a Parquet file"),
    ];
    if head.is_empty() {
        return "an empty file".to_owned();
    }
    KINDS
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map_or("a file of unknown kind", |(_, kind)| kind)
        .to_owned()
}

fn folder_kind(path: &Path) -> String {
    let holds = |name: &str| path.join(name).exists();
    let kind = if holds("zarr.json") {
        "a Zarr version 3 store"
    } else if holds(".zgroup") || holds(".zarray") {
        "a Zarr version 2 store"
    } else {
        "a folder"
    };
    format!("{kind}; this release imports .npy and .npz files")
}
