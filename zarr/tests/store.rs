//! Containers as stores: the public tests of zarrs' stores, and arrays that zarrs reads and writes through them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test says what it expects"
)]
#![cfg(feature = "zarrs")]

use std::error::Error;
use std::sync::Arc;

use orthant::{ArraySpec, Codec, Container, DynArraySpec, Region, region};
use orthant_zarr::store::{SnapshotStore, WriterStore};
use zarrs::array::{Array, ArrayBuilder, ArraySubset, data_type};
use zarrs_storage::byte_range::ByteRange;
use zarrs_storage::store::MemoryStore;
use zarrs_storage::{
    ListableStorageTraits, ReadableStorageTraits, ReadableWritableListableStorageTraits, StoreKey,
    StorePrefix, WritableStorageTraits, store_test,
};

type Outcome = Result<(), Box<dyn Error>>;

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn keys(store: &impl ListableStorageTraits) -> Vec<String> {
    let keys = store.list().unwrap();
    keys.iter().map(|k| k.as_str().to_owned()).collect()
}

#[test]
fn a_writer_passes_the_tests_of_stores_and_its_commit_reads_the_same() -> Outcome {
    let c = Container::in_memory()?;
    let w = c.writer()?;
    let store = WriterStore::new(&w);
    store_test::store_write(&store)?;
    store_test::store_read(&store)?;
    store_test::store_list(&store)?;
    store_test::store_list_size(&store)?;
    w.commit()?;
    let store = SnapshotStore::new(&c.snapshot()?);
    store_test::store_read(&store)?;
    store_test::store_list(&store)?;
    store_test::store_list_size(&store)?;
    Ok(())
}

#[test]
fn the_tests_of_stores_pass_behind_each_trait_object() -> Outcome {
    let c = Container::in_memory()?;
    let w = c.writer()?;
    let store: Arc<dyn ReadableWritableListableStorageTraits> = Arc::new(WriterStore::new(&w));
    store_test::store_write(&store.clone().writable())?;
    store_test::store_read(&store.clone().readable_listable().readable())?;
    store_test::store_list(&store.clone().listable())?;
    store_test::store_list_size(&store.clone().readable_listable().listable())?;
    Ok(())
}

/// Arrays of every kind that one differs in: plain, sharded, signed, with declared and absent chunks.
fn samples() -> Container {
    let c = Container::in_memory().unwrap();
    let w = c.writer().unwrap();
    let cells: Vec<f32> = (0..13 * 9).map(|v| v as f32 / 2.0).collect();
    let spec = || ArraySpec::<f32>::new(region![-7..6, 3..12]).chunks([4, 3]);
    let checked = || vec![Codec::zstd(1), Codec::crc32c()];
    let shards = || spec().chunks([2, 3]).shards([4, 6]);
    for (path, spec) in [
        ("plain", spec()),
        ("portable", spec().codecs(Codec::portable_profile())),
        ("checked", spec().codecs(checked())),
        ("origin", spec().origin([1, 2])),
        ("g/sharded", shards().codecs(checked())),
        ("g/whole", shards().codecs([Codec::zstd(1)])),
        ("g/gzip", spec().codecs([Codec::gzip(1)]).fill(-1.0)),
    ] {
        let a = w.create_array(path, spec).unwrap();
        a.write_slice(Region::all(), &cells).unwrap();
        a.attributes().set("units", "K").unwrap();
        // A declared value, and a chunk that is absent.
        a.write_scalar(region![0..4, 3..6], 5.0).unwrap();
        a.erase(region![-4..0, 6..9]).unwrap();
    }
    w.commit().unwrap();
    c
}

#[test]
fn zarrs_reads_every_array_of_a_container() -> Outcome {
    let c = samples();
    let s = c.snapshot()?;
    let store = Arc::new(SnapshotStore::new(&s));
    let mut arrays = 0;
    for member in s.walk()? {
        let member = member?;
        let Ok(own) = s.array::<f32>(&member.path) else {
            continue;
        };
        let truth = own.read_vec(Region::all())?;
        let array = Array::open(Arc::clone(&store), &member.path)?;
        // Index 0 is the chunk edge at or below the domain.
        let (rows, columns) = match member.path.trim_start_matches('/') {
            "origin" => (0, 1),
            "g/sharded" | "g/whole" => (1, 3),
            _ => (1, 0),
        };
        assert_eq!(array.shape(), [13 + rows, 9 + columns], "{}", member.path);
        let part = ArraySubset::new_with_ranges(&[rows..13 + rows, columns..9 + columns]);
        let read: Vec<f32> = array.retrieve_array_subset(&part)?;
        assert_eq!(read, truth, "{}", member.path);
        assert_eq!(array.attributes()["units"], "K");
        // A cell by itself, which fetches an inner chunk of a shard.
        let cell = ArraySubset::new_with_ranges(&[5 + rows..6 + rows, 4 + columns..5 + columns]);
        let read: Vec<f32> = array.retrieve_array_subset(&cell)?;
        assert_eq!(read, [truth[5 * 9 + 4]], "{}", member.path);
        arrays += 1;
    }
    assert_eq!(arrays, 7);
    Ok(())
}

#[test]
fn what_zarrs_writes_is_an_array_of_the_container() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.orth");
    let c = Container::create(&path)?;
    let w = c.writer()?;
    let store = Arc::new(WriterStore::new(&w));
    let root = zarrs::group::GroupBuilder::new().build(Arc::clone(&store), "/")?;
    root.store_metadata()?;
    let zstd = zarrs::array::codec::ZstdCodec::new(3, false);
    let array = ArrayBuilder::new(vec![10, 7], vec![4, 3], data_type::int32(), -1_i32)
        .dimension_names(["y", "x"].into())
        .bytes_to_bytes_codecs(vec![Arc::new(zstd)])
        .build(Arc::clone(&store), "/g/a")?;
    array.store_metadata()?;
    let cells: Vec<i32> = (0..70).collect();
    array.store_array_subset(
        &ArraySubset::new_with_ranges(&[0..10, 0..7]),
        cells.as_slice(),
    )?;
    w.commit()?;
    drop((array, root, store, w));
    let c = Container::open(&path)?;
    let s = c.snapshot()?;
    let own = s.array::<i32>("g/a")?;
    assert_eq!(own.read_vec(Region::all())?, cells);
    assert_eq!(own.dims(), [Some("y".to_owned()), Some("x".to_owned())]);
    let store = SnapshotStore::new(&s);
    // `g` was never given a document; the root was.
    let all = keys(&store);
    let chunks = (0..3).flat_map(|i| (0..3).map(move |j| format!("g/a/c/{i}/{j}")));
    let documents = ["g/a/zarr.json", "zarr.json"].map(str::to_owned);
    assert_eq!(all, chunks.chain(documents).collect::<Vec<_>>());
    let folder = store.list_dir(&StorePrefix::new("g/a/")?)?;
    assert_eq!(*folder.keys(), [key("g/a/zarr.json")]);
    assert_eq!(*folder.prefixes(), [StorePrefix::new("g/a/c/")?]);
    Ok(())
}

#[test]
fn an_array_grows_at_its_upper_end_and_keeps_its_place() -> Outcome {
    let c = samples();
    let w = c.writer()?;
    let store = Arc::new(WriterStore::new(&w));
    let mut array = Array::open(Arc::clone(&store), "/plain")?;
    array.set_shape(vec![20, 9])?;
    array.attributes_mut().insert("note".into(), "grown".into());
    array.store_metadata()?;
    let cell = ArraySubset::new_with_ranges(&[19..20, 0..1]);
    array.store_array_subset(&cell, [77_f32].as_slice())?;
    let own = w.array::<f32>("plain")?;
    assert_eq!(own.domain()?, orthant::Domain::new([-7..12, 3..12])?);
    assert_eq!(own.read_vec(region![11..12, 3..4])?, [77.0]);
    assert_eq!(own.read_vec(region![-7..-6, 3..5])?, [0.0, 0.5]);
    assert!(own.attributes().contains("note")?);
    assert!(!own.attributes().contains("orthant")?);
    Ok(())
}

#[test]
fn what_a_container_cannot_hold_is_refused_and_changes_nothing() -> Outcome {
    let c = samples();
    let w = c.writer()?;
    let store = WriterStore::new(&w);
    let before = keys(&store);
    let document = store.get(&key("plain/zarr.json"))?.unwrap();
    let text = std::str::from_utf8(&document)?;
    for (path, from, to) in [
        // Another array where one is, and one where a group is.
        ("plain/zarr.json", "float32", "float64"),
        ("g/zarr.json", "float32", "float64"),
        // A codec and a chunk grid that are nobody's, keys that are another store's.
        ("new/zarr.json", "zstd", "nobody"),
        ("new/zarr.json", "regular", "round"),
        ("new/zarr.json", r#""separator":"/""#, r#""separator":".""#),
        // A place that the shape does not fit.
        ("new/zarr.json", r#""pad":[1"#, r#""pad":[9"#),
        ("new/zarr.json", r#"{"zarr_format""#, r#"{"zarr_format"#),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from} is not in it");
        let set = store.set(&key(path), changed.into_bytes().into());
        assert!(set.is_err(), "{path}: {from} as {to}");
    }
    let bytes = || vec![1_u8, 2, 3].into();
    // No chunk, no key of an array, a key where a node is, and bytes that no pipeline made.
    for path in [
        "plain/c/0/9",
        "plain/c/0",
        "plain/.zattrs",
        "g",
        "plain",
        "plain/c/0/0",
    ] {
        assert!(store.set(&key(path), bytes()).is_err(), "{path}");
    }
    assert_eq!(keys(&store), before);
    assert_eq!(store.get(&key("plain/zarr.json"))?.unwrap(), document);
    Ok(())
}

#[test]
fn erasing_leaves_what_was_not_named() -> Outcome {
    let c = samples();
    let w = c.writer()?;
    let store = WriterStore::new(&w);
    store.erase(&key("plain/c/0/0"))?;
    assert_eq!(
        w.array::<f32>("plain")?.read_vec(region![-7..-6, 3..5])?,
        [0.0, 0.0]
    );
    assert_eq!(store.get(&key("plain/c/0/0"))?, None);
    store.erase_prefix(&StorePrefix::new("portable/c/")?)?;
    let left = store.list_prefix(&StorePrefix::new("portable/")?)?;
    assert_eq!(left, [key("portable/zarr.json")]);
    store.erase(&key("checked/zarr.json"))?;
    assert!(
        store
            .list_prefix(&StorePrefix::new("checked/")?)?
            .is_empty()
    );
    // A group without its document still holds its arrays.
    store.erase(&key("g/zarr.json"))?;
    assert_eq!(store.get(&key("g/zarr.json"))?, None);
    assert!(store.get(&key("g/gzip/zarr.json"))?.is_some());
    store.erase_prefix(&StorePrefix::new("g/")?)?;
    assert!(w.root().kind("g")?.is_none());
    Ok(())
}

/// A chunk that skipped a codec is not what the pipeline makes, so that it is made for the reader.
#[test]
fn chunks_that_skipped_a_codec_are_handed_over_as_if_they_had_not() -> Outcome {
    let c = Container::in_memory()?;
    let w = c.writer()?;
    let spec = DynArraySpec::new(orthant::DataType::Int32, region![0..4])
        .chunks([4])
        .codecs([Codec::zlib(1)]);
    let a = w.create_dyn_array("a", &spec)?;
    let raw: Vec<u8> = [1_i32, 2, 3, 4]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    a.adopt_chunk(&[0], &raw, 0b10)?;
    w.commit()?;
    let store = Arc::new(SnapshotStore::new(&c.snapshot()?));
    let bytes = store.get(&key("a/c/0"))?.unwrap();
    assert_ne!(bytes[..], raw[..]);
    assert_eq!(bytes[0], 0x78, "a zlib stream");
    let part = store.get_partial(&key("a/c/0"), ByteRange::FromStart(1, Some(3)))?;
    assert_eq!(part.unwrap()[..], bytes[1..4]);
    Ok(())
}

/// A range of a damaged chunk is refused, whichever part of it was damaged.
#[test]
fn a_part_of_a_damaged_chunk_is_refused() -> Outcome {
    let c = Container::in_memory()?;
    let w = c.writer()?;
    let spec = ArraySpec::<u8>::new(region![0..64]).codecs(Codec::raw_profile());
    let a = w.create_array("a", spec)?;
    a.write_slice(region![..], &[7; 64])?;
    w.commit()?;
    let place = w.dyn_array("a")?.chunk_extents(Region::all())?;
    let mut bytes = c.to_bytes()?;
    bytes[usize::try_from(place[0].offset)? + 60] ^= 1;
    let c = Container::from_bytes(bytes)?;
    let store = SnapshotStore::new(&c.snapshot()?);
    for range in [ByteRange::FromStart(0, Some(4)), ByteRange::Suffix(64)] {
        assert!(store.get_partial(&key("a/c/0"), range).is_err());
    }
    Ok(())
}

/// Writes, erasures, growth and commits in any order: through zarrs a container and a store of keys in memory are the same.
/// (After a shrink they are not: such a store keeps the chunks outside, and shows them again when the array grows.)
#[test]
fn a_container_and_a_store_in_memory_agree_after_any_writes() -> Outcome {
    let mut state = 7_u64;
    let mut below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    for round in 0..12 {
        let c = Container::in_memory()?;
        let w = c.writer()?;
        let ours = Arc::new(WriterStore::new(&w));
        let theirs = Arc::new(MemoryStore::new());
        // The root of a container is a group with a document unless told otherwise.
        ours.erase(&key("zarr.json"))?;
        let builder = {
            let mut builder = ArrayBuilder::new(vec![9, 8], vec![4, 3], data_type::int16(), -1_i16);
            let zstd = zarrs::array::codec::ZstdCodec::new(1, false);
            builder.bytes_to_bytes_codecs(vec![Arc::new(zstd)]);
            if round % 2 == 1 {
                builder.subchunk_shape(vec![2, 3]);
            }
            builder
        };
        let mut one = builder.build(Arc::clone(&ours), "/g/a")?;
        let mut other = builder.build(Arc::clone(&theirs), "/g/a")?;
        one.store_metadata()?;
        other.store_metadata()?;
        for step in 0..40_i16 {
            let (rows, columns) = (one.shape()[0], one.shape()[1]);
            let (y, x) = (below(rows), below(columns));
            match below(8) {
                0 => {
                    let chunk = [y.div_euclid(4), x.div_euclid(3)];
                    one.erase_chunk(&chunk)?;
                    other.erase_chunk(&chunk)?;
                }
                1 => {
                    let shape = vec![rows + below(3), columns + below(3)];
                    one.set_shape(shape.clone())?;
                    other.set_shape(shape)?;
                    one.store_metadata()?;
                    other.store_metadata()?;
                }
                2 => {
                    w.commit()?;
                }
                _ => {
                    let (high, wide) = (1 + below(rows - y), 1 + below(columns - x));
                    let part = ArraySubset::new_with_ranges(&[y..y + high, x..x + wide]);
                    let fill = below(4) == 0;
                    let cells: Vec<i16> = (0..i16::try_from(high * wide)?)
                        .map(|k| if fill { -1 } else { step * 100 + k })
                        .collect();
                    one.store_array_subset(&part, cells.as_slice())?;
                    other.store_array_subset(&part, cells.as_slice())?;
                }
            }
            let all = ArraySubset::new_with_ranges(&[0..one.shape()[0], 0..one.shape()[1]]);
            let read: Vec<i16> = one.retrieve_array_subset(&all)?;
            let want: Vec<i16> = other.retrieve_array_subset(&all)?;
            assert_eq!(read, want, "round {round}, step {step}");
            assert_eq!(keys(&*ours), keys(&*theirs), "round {round}, step {step}");
        }
    }
    Ok(())
}
