//! Raw chunks lent from the map: the elements themselves, aligned, held by their snapshot, and refused where they cannot be.
#![cfg(all(unix, target_pointer_width = "64"))]
#![expect(unsafe_code, reason = "lending takes a promise that no code can check")]

use orthant::{
    Array, ArraySpec, Codec, Container, ErrorKind, OpenOptions, ReadVia, Region, Undisturbed,
    region,
};

use crate::heap::peak_of;
use crate::support::scratch;

fn promise() -> Undisturbed {
    // SAFETY: every test's file lies in a folder of its own, and nothing but the library writes to it.
    unsafe { Undisturbed::promise() }
}

fn raw(name: &str) -> (tempfile::TempDir, Container) {
    let (folder, path) = scratch(name);
    let c = Container::create(&path).unwrap();
    let w = c.writer().unwrap();
    let spec = ArraySpec::<f32>::new(region![-512..512, 0..512])
        .chunks([512, 512])
        .codecs(Codec::raw_profile());
    let a = w.create_array("a", spec).unwrap();
    let cells: Vec<f32> = (0..512 * 512).map(|i| i as f32 + 0.5).collect();
    a.write_slice(region![-512..0, ..], &cells).unwrap();
    w.commit().unwrap();
    (folder, c)
}

fn array(c: &Container) -> Array<f32> {
    c.snapshot().unwrap().array("a").unwrap()
}

#[test]
fn a_raw_chunk_is_lent_without_a_copy_and_outlives_what_is_written_over_it() {
    let (_folder, c) = raw("a.orth");
    let a = array(&c);
    let (view, peak) = peak_of(|| a.chunk_view(&[-1, 0], promise()).unwrap().unwrap());
    assert!(peak < 64 << 10, "{peak} bytes for a view of a mebibyte");
    assert_eq!(view.shape(), [512, 512]);
    assert_eq!(view.len(), 512 * 512);
    assert_eq!(view.as_ptr().align_offset(64), 0);
    assert_eq!(view.array().unwrap()[[3, 7]], (3 * 512 + 7) as f32 + 0.5);
    let copied = a.read_chunk(&[-1, 0]).unwrap().unwrap();
    assert_eq!(view[..], copied[..]);
    assert_ne!(view.as_ptr(), copied.as_ptr());
    assert!(a.chunk_view(&[0, 0], promise()).unwrap().is_none());
    drop(a);
    // Its place is not used again while the view lives.
    let w = c.writer().unwrap();
    let b = w.array::<f32>("a").unwrap();
    for n in 0..6 {
        b.write_scalar(region![-512..0, ..511], n as f32).unwrap();
        w.commit().unwrap();
    }
    assert_eq!(view[..], copied[..]);
    assert_eq!(
        array(&c).chunk_view(&[-1, 0], promise()).unwrap().unwrap()[0],
        5.0
    );
}

#[test]
fn what_cannot_be_lent_is_refused_with_its_reason() {
    let (folder, c) = raw("a.orth");
    let refused = |a: &Array<f32>| {
        let e = a.chunk_view(&[-1, 0], promise()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
        e.reason_code().unwrap().to_owned()
    };
    let path = folder.path().join("a.orth");
    let pread = OpenOptions::new().via(ReadVia::Pread).open(&path).unwrap();
    assert_eq!(refused(&array(&pread)), "no_map");
    let memory = Container::from_bytes(c.to_bytes().unwrap()).unwrap();
    assert_eq!(refused(&array(&memory)), "no_map");
    let w = c.writer().unwrap();
    let e = w.array::<f32>("a").unwrap().chunk_view(&[-1, 0], promise());
    assert_eq!(e.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let spec = ArraySpec::<f32>::new(region![-2..2, 0..2]).chunks([2, 2]);
    let b = w.create_array("b", spec.codecs([Codec::zstd(1)])).unwrap();
    b.write_slice(Region::all(), &[1.0; 8]).unwrap();
    w.commit().unwrap();
    let b = c.snapshot().unwrap().array::<f32>("b").unwrap();
    assert_eq!(refused(&b), "codecs");
    assert!(array(&c).chunk_view(&[9, 0], promise()).is_err());
}

#[test]
fn a_damaged_chunk_is_never_lent() {
    let (folder, c) = raw("a.orth");
    let at = array(&c).chunk_extents(Region::all()).unwrap()[0].offset;
    drop(c);
    let path = folder.path().join("a.orth");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(at).unwrap() + 77] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let c = Container::open(&path).unwrap();
    for _ in 0..2 {
        let e = array(&c).chunk_view(&[-1, 0], promise()).unwrap_err();
        assert!(e.is_corruption(), "{e}");
        assert_eq!(e.chunk(), Some(&[-1, 0][..]));
    }
}
