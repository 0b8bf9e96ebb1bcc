//! The kind of a source, told by its first bytes or by the files in its folder; never by its name.
//!
//! Must not read arrays.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::zarr::store::{Folder, Store, Zip};
use super::{Source, hdf5, netcdf3, nifti, npy, precomputed, refused, tiff, zarr};
use crate::exit::{Failure, Result};
use crate::source;

/// First bytes of a file that are looked at.
const HEAD_LEN: u64 = 1024;

/// A folder: a Zarr store, or none of what can be taken.
pub(super) fn folder(path: &Path) -> Result<Source> {
    let store: Arc<dyn Store> = Arc::new(Folder::new(path));
    let is_zarr = zarr::looks_like(store.as_ref());
    if is_zarr.map_err(|e| Failure::usage(e).in_file(path))? {
        return Ok(zarr::open(store, path));
    }
    if let Some(info) = precomputed::looks_like(store.as_ref()) {
        return Ok(precomputed::open(&store, &info, path));
    }
    let what = if path.join("attributes.json").exists() {
        "an N5 store, which no reader here takes; zarr or z5py copy it to Zarr"
    } else {
        "a folder without Zarr documents"
    };
    Ok(refused("folder", what.to_owned()))
}

/// A file, by its first bytes.
pub(super) fn file(path: &Path, len: u64) -> Result<Source> {
    let mut file = source::open(path)?;
    let mut head = Vec::new();
    (&mut file)
        .take(HEAD_LEN)
        .read_to_end(&mut head)
        .map_err(|e| Failure::io("read", path, &e))?;
    if head.starts_with(crate::npy::MAGIC) {
        return Ok(npy::file(path, file, len));
    }
    if head.starts_with(netcdf3::MAGIC) {
        return Ok(netcdf3::open(file, len));
    }
    if head.starts_with(hdf5::MAGIC) || behind_user_block(&mut file, len) {
        return Ok(hdf5::open(file, len));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(match Zip::open(path) {
            Ok(zip) if zip.has_documents() => zarr::open(Arc::new(zip), path),
            Ok(zip) => npy::zip(path, &zip),
            Err(reason) => refused("zip", reason),
        });
    }
    if tiff::looks_like(&head) {
        return Ok(tiff::open(path, file, len));
    }
    if nifti::looks_like(&head) {
        return Ok(nifti::open(path, file, len, &head, false));
    }
    if head.starts_with(b"\x1f\x8b") {
        let inside = nifti::inside_gzip(&mut file);
        if nifti::looks_like(&inside) {
            return Ok(nifti::open(path, file, len, &inside, true));
        }
    }
    Ok(refused(
        "file",
        format!(
            "{}; `orthant import --help` names the kinds that are taken",
            name_of(&head)
        ),
    ))
}

/// Whether a superblock of HDF5 stands where one may: at 512 bytes, and at every doubling of that.
fn behind_user_block(file: &mut File, len: u64) -> bool {
    let mut at = 512_u64;
    while at < len {
        let mut head = [0; 8];
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(&mut head));
        if read.is_ok() && head == *hdf5::MAGIC {
            return true;
        }
        at = at.saturating_mul(2);
    }
    false
}

/// What a file looks like, for the one who wonders why it is refused.
fn name_of(head: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 5] = [
        (b"\x89ORT\r\n\x1a\n", "an orthant container"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"GRIB", "a GRIB file"),
        (b"PAR1", "a Parquet file"),
    ];
    if head.is_empty() {
        return "an empty file";
    }
    KINDS
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map_or("a file of unknown kind", |(_, kind)| kind)
}
