//! What readers of other software are told of a chunk is what a read gives: in the file by place, else as bytes.

use std::ops::ControlFlow;
use std::path::Path;

use orthant::{
    ArraySpec, ChunkReference, Codec, Container, DynArray, ErrorKind, ReferencePlace, region,
};

fn references(array: &DynArray, inner: bool) -> Vec<ChunkReference> {
    let mut all = Vec::new();
    array
        .for_each_reference(inner, |reference| {
            all.push(reference);
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

/// Golden files hold chunks that skipped codecs, constants and declared fill, made by other hands.
#[test]
fn a_reference_holds_what_a_read_of_that_chunk_gives() {
    let (mut in_file, mut encoded) = (0, 0);
    for name in ["codecs", "tree", "types", "shards", "fixed_text"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("format-spec/vectors")
            .join(format!("{name}.orth"));
        let bytes = std::fs::read(&path).unwrap();
        let container = Container::open_read_only(&path).unwrap();
        let snapshot = container.snapshot().unwrap();
        let other = Container::in_memory().unwrap();
        let writer = other.writer().unwrap();
        for member in snapshot.walk().unwrap() {
            let Ok(array) = snapshot.dyn_array(&member.unwrap().path) else {
                continue;
            };
            let Ok(copy) = array.copy_array_to(&writer, &format!("{name}{in_file}_{encoded}"))
            else {
                continue;
            };
            for reference in references(&array, false) {
                let coord = &reference.coord;
                let payload = match &reference.place {
                    ReferencePlace::InFile { offset, len } => {
                        in_file += 1;
                        let start = usize::try_from(*offset).unwrap();
                        bytes[start..start + usize::try_from(*len).unwrap()].to_vec()
                    }
                    ReferencePlace::Encoded(bytes) => {
                        encoded += 1;
                        bytes.clone()
                    }
                };
                // As a payload that went through every codec.
                copy.put_encoded_chunk(coord, &payload).unwrap();
                assert_eq!(
                    copy.read_chunk(coord).unwrap(),
                    array.read_chunk(coord).unwrap(),
                    "{name} {} {coord:?}",
                    array.path()
                );
            }
        }
    }
    assert!(in_file > 60 && encoded > 3, "{in_file} {encoded}");
}

#[test]
fn the_chunks_within_shards_have_places_of_their_own() {
    let container = Container::in_memory().unwrap();
    let writer = container.writer().unwrap();
    let spec = ArraySpec::<u8>::new(region![-4..8])
        .chunks([2])
        .shards([4])
        .codecs([Codec::crc32c()]);
    let array = writer.create_array("a", spec).unwrap();
    array.write_slice(region![-2..1], &[1, 2, 3]).unwrap();
    array.write_scalar(region![4..8], 7).unwrap();
    writer.commit().unwrap();
    let bytes = container.to_bytes().unwrap();
    let array = container.snapshot().unwrap().dyn_array("a").unwrap();
    let told: Vec<_> = references(&array, true)
        .into_iter()
        .map(|r| match r.place {
            ReferencePlace::InFile { offset, len } => {
                let start = usize::try_from(offset).unwrap();
                (
                    r.coord[0],
                    bytes[start..start + usize::try_from(len).unwrap()][..2].to_vec(),
                )
            }
            ReferencePlace::Encoded(bytes) => (r.coord[0], bytes[..2].to_vec()),
        })
        .collect();
    // Inner chunk -1 holds -2..0, 0 holds 0..2; those of nothing but fill are not told.
    assert_eq!(
        told,
        [
            (-1, vec![1, 2]),
            (0, vec![3, 0]),
            (2, vec![7, 7]),
            (3, vec![7, 7])
        ]
    );
    let mut first = Vec::new();
    let stop = array.for_each_reference(true, |r| {
        first.push(r.coord);
        ControlFlow::Break(())
    });
    assert!(stop.is_ok() && first == [[-1]]);
    let plain = writer
        .create_array("b", ArraySpec::<u8>::new(region![0..2]))
        .unwrap();
    let e = plain
        .for_each_reference(true, |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_block_encodes_to_the_chunk_that_a_write_of_it_stores() {
    let container = Container::in_memory().unwrap();
    let writer = container.writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![-4..4]).chunks([4]).fill(5);
    let array = writer.create_array("a", spec).unwrap();
    let block = array.block([4], &[1, 2, 3, 4]).unwrap();
    let encoded = array.encode_chunk(&block).unwrap();
    array.write_slice(region![-4..0], &[1, 2, 3, 4]).unwrap();
    assert_eq!(encoded, array.encoded_chunk(&[-1]).unwrap());
    assert_eq!(
        array
            .encode_chunk(&array.block([4], &[5; 4]).unwrap())
            .unwrap(),
        None
    );
    let short = array.block([2], &[1, 2]).unwrap();
    assert_eq!(
        array.encode_chunk(&short).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}
