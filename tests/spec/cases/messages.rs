//! Areas N and O: what errors say, and what a path may be. The command's side of these cases is tested in `cli/`.

use std::path::Path;

use orthant::{ArraySpec, ChunkState, Codec, Container, ErrorKind, Region, region};

use crate::support::{array, data, scratch};

#[test]
fn c86_each_wrong_file_has_its_own_message() {
    let (folder, path) = scratch("a.orth");
    Container::create(&path).unwrap();
    let ours = std::fs::read(&path).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let copy = |name: &str| {
        file(
            name,
            &std::fs::read(data(&format!("cases/{name}"))).unwrap(),
        )
    };
    let version = |at: usize, value: u16| {
        let mut bytes = ours.clone();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..252]);
        bytes[252..256].copy_from_slice(&crc.to_le_bytes());
        // The slots repeat the header's checksum.
        for slot in [0x1000, 0x2000] {
            bytes[slot + 248..slot + 252].copy_from_slice(&crc.to_le_bytes());
            let own = crc32c::crc32c(&bytes[slot..slot + 252]);
            bytes[slot + 252..slot + 256].copy_from_slice(&own.to_le_bytes());
        }
        bytes
    };
    let cases = [
        (folder.path().join("missing"), ErrorKind::Io, "No such file"),
        (folder.path().to_owned(), ErrorKind::Io, "directory"),
        (
            copy("not_container_empty"),
            ErrorKind::NotContainer,
            "empty (0 bytes)",
        ),
        (file("three", b"abc"), ErrorKind::NotContainer, "3 bytes"),
        (
            copy("not_container_text.txt"),
            ErrorKind::NotContainer,
            "text",
        ),
        (
            copy("not_container_hdf5.dat"),
            ErrorKind::NotContainer,
            "HDF5",
        ),
        (
            file("junk", &[&[0xA7; 1024], &ours[..]].concat()),
            ErrorKind::NotContainer,
            "not",
        ),
        (file("major", &version(8, 9)), ErrorKind::Unsupported, "9"),
    ];
    let mut messages = Vec::new();
    for (path, kind, word) in cases {
        let e = Container::open(&path).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        let text = e.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains(word), "{text} lacks {word}");
        assert!(!text.contains('\n'), "one line: {text}");
        messages.push(text.replace(path.to_str().unwrap(), ""));
    }
    let n = messages.len();
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), n, "{messages:#?}");
    // A newer minor version without a feature that must be understood is read.
    let minor = file("minor", &version(10, 7));
    let c = Container::open(&minor).unwrap();
    assert_eq!(c.format_version(), (0, 7));
}

#[test]
fn c120_a_wrong_checksum_says_file_array_chunk_place_and_both_sums() {
    let (_folder, path) = scratch("a.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        let spec = ArraySpec::<i32>::new(region![0..9, -6..0]).chunks([3, 3]);
        let a = w
            .create_array("g/temp", spec.codecs(Codec::raw_profile()))
            .unwrap();
        a.write_slice(Region::all(), &(1..55).collect::<Vec<_>>())
            .unwrap();
        w.commit().unwrap();
    }
    let chunk = {
        let s = Container::open(&path).unwrap().snapshot().unwrap();
        let all = s.dyn_array("g/temp").unwrap().chunks().unwrap();
        all.into_iter().find(|c| c.coord == [2, -1]).unwrap()
    };
    let ChunkState::Stored { offset, len, crc32 } = chunk.state else {
        panic!("a payload")
    };
    let mut bytes = std::fs::read(&path).unwrap();
    let at = usize::try_from(offset).unwrap();
    bytes[at + 5] ^= 0x10;
    let computed = crc32fast::hash(&bytes[at..at + usize::try_from(len).unwrap()]);
    std::fs::write(&path, &bytes).unwrap();
    let s = Container::open(&path).unwrap().snapshot().unwrap();
    let a = s.array::<i32>("g/temp").unwrap();
    let e = a.read_vec(Region::all()).unwrap_err();
    assert!(e.is_corruption());
    assert_eq!(e.file(), Some(path.as_path()));
    assert_eq!(e.array().map(|p| p.trim_start_matches('/')), Some("g/temp"));
    assert_eq!(e.chunk(), Some(&[2, -1][..]));
    assert_eq!((e.offset(), e.byte_len()), (Some(offset), Some(len)));
    let text = e.to_string();
    for part in [
        path.to_str().unwrap().to_owned(),
        "/g/temp chunk (2, -1)".to_owned(),
        offset.to_string(),
        len.to_string(),
        format!("{crc32:08x}"),
        format!("{computed:08x}"),
    ] {
        assert!(text.contains(&part), "{text} lacks {part}");
    }
    // Damage stays local.
    assert_eq!(
        a.read_vec(region![0..6, ..]).unwrap(),
        (1..37).collect::<Vec<_>>()
    );
}

#[test]
fn c122_a_name_means_nothing() {
    let (folder, path) = scratch("a.orth");
    {
        let w = Container::create(&path).unwrap().writer().unwrap();
        array(&w, ArraySpec::<i32>::new(region![0..4]))
            .write_scalar(Region::all(), 5)
            .unwrap();
        w.commit().unwrap();
    }
    let long = "n".repeat(255);
    for name in ["data.bin", "data", "data.h5", "x y.orth", long.as_str()] {
        let copy = folder.path().join(name);
        std::fs::copy(&path, &copy).unwrap();
        let c = Container::open(&copy).unwrap();
        let a = c.snapshot().unwrap().array::<i32>("a").unwrap();
        assert_eq!(a.read_vec(Region::all()).unwrap(), [5; 4]);
        // Writing works beside the name too, as no helper file is derived from it.
        let w = c.writer().unwrap();
        w.create_group("g").unwrap();
        w.commit().unwrap();
    }
}

#[test]
fn c125_an_existing_empty_file_is_not_taken_over() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let create = |path: &Path| Container::create(path).unwrap_err();
    let e = create(file.path());
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
    assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 0);
    let e = Container::open(file.path()).unwrap_err();
    assert!(e.to_string().contains("empty (0 bytes)"), "{e}");
    // A container without an object opens, lists and checks.
    let (_folder, path) = scratch("bare.orth");
    let c = Container::create(&path).unwrap();
    let s = Container::open(&path).unwrap().snapshot().unwrap();
    assert_eq!(s.walk().unwrap().count(), 0);
    assert!(std::fs::metadata(&path).unwrap().len() <= 16 << 10);
    crate::support::verify(&c);
}
