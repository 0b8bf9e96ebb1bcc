//! What a file that is no container looks like.
//!
//! Holds [`identify`], which turns first bytes into words for an error sentence. Must not decide anything.

/// Says in a few words what a file of `len` bytes with these first bytes seems to be.
pub(crate) fn identify(bytes: &[u8], len: u64) -> String {
    if len == 0 {
        return "the file is empty (0 bytes)".to_owned();
    }
    if let Some((_, name)) = SIGNATURES
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
    {
        return format!("the file looks like {name}");
    }
    if mangled(bytes) {
        return "the file is a container that a text-mode transfer has changed".to_owned();
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return "the file looks like a tar archive".to_owned();
    }
    if len < 8 {
        return format!(
            "the file has {len} {}",
            if len == 1 { "byte" } else { "bytes" }
        );
    }
    if is_text(bytes) {
        return "the file looks like text".to_owned();
    }
    if bytes.iter().all(|&b| b == 0) {
        return "the file begins with zeros".to_owned();
    }
    "the file's first bytes belong to no format known here".to_owned()
}

const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89HDF\r\n\x1a\n", "an HDF5 (or NetCDF-4) file"),
    (b"CDF\x01", "a netCDF-3 file (classic)"),
    (b"CDF\x02", "a netCDF-3 file (64-bit offset)"),
    (b"CDF\x05", "a netCDF-3 file (64-bit data)"),
    (b"\x93NUMPY", "a NumPy .npy file"),
    (
        b"PK\x03\x04",
        "a zip archive (perhaps .npz, or a Zarr store in a zip)",
    ),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip stream"),
    (b"\x28\xb5\x2f\xfd", "a zstd stream"),
    (b"BZh", "a bzip2 stream"),
    (b"\xfd7zXZ\0", "an xz stream"),
    (b"\x04\x22\x4d\x18", "an LZ4 frame"),
    (b"II\x2a\0", "a TIFF image"),
    (b"MM\0\x2a", "a TIFF image"),
    (b"II\x2b\0", "a BigTIFF image"),
    (b"MM\0\x2b", "a BigTIFF image"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GRIB", "a GRIB file"),
    (b"SIMPLE  =", "a FITS file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x0e\x03\x13\x01", "an HDF4 file"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"redb\x1a\x0a\xa9\x0d\x0a", "a redb database"),
];

/// True for our own magic after newline translation or with its high bit cut off.
fn mangled(bytes: &[u8]) -> bool {
    [
        &b"\x09ORT"[..],
        b"\x89ORT\x0a\x1a",
        b"\x89ORT\x0d\x0d\x0a",
        b"\x89ORT\x0d\x1a",
        b"\xc2\x89ORT",
        b"\xef\xbf\xbdORT",
    ]
    .iter()
    .any(|m| bytes.starts_with(m))
}

fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character may be cut at the end of what was read.
        Err(e) if e.error_len().is_none() => {
            let whole = bytes.get(..e.valid_up_to()).unwrap_or(&[]);
            std::str::from_utf8(whole).unwrap_or("")
        }
        Err(_) => return false,
    };
    !valid.is_empty() && !valid.chars().any(|c| c.is_control() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_formats_are_named() {
        for (bytes, word) in [
            (&b"\x89HDF\r\n\x1a\n\0\0\0\0"[..], "HDF5"),
            (b"PK\x03\x04\x14\0\0\0\0\0", "Zarr store in a zip"),
            (b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
            (b"CDF\x01\0\0\0\0\0", "netCDF-3"),
            (b"II\x2a\0\x08\0\0\0", "TIFF"),
            (b"\x93NUMPY\x01\0\x76\0", ".npy"),
            (b"SQLite format 3\0\x10\0", "SQLite"),
            (b"{\"zarr_format\":3}", "text"),
            (b"\x89ORT\x0a\x1a\x0a\0\0\0", "text-mode transfer"),
            (b"\0\0\0\0\0\0\0\0\0", "zeros"),
            (b"\x01\xfe\x80\x99\x01\x02\x03\x04", "no format known"),
        ] {
            let said = identify(bytes, bytes.len() as u64);
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn short_files_say_their_length() {
        assert_eq!(identify(&[], 0), "the file is empty (0 bytes)");
        assert_eq!(identify(b"abc", 3), "the file has 3 bytes");
        assert_eq!(identify(b"\x01", 1), "the file has 1 byte");
    }
}
