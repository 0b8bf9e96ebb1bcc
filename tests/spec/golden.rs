//! Every golden file of `format-spec/vectors` reads to what the JSON beside it says, by map, by reads and from memory;
//! and the library lays out a new container byte for byte as the text does.
//!
//! The files were made without any code of this project. What the public surface does not show (times of commits, ids of
//! objects, sums of the slot, retained snapshots, documents as text) is compared by the second reader and by the unit
//! tests of `src/format`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::medium::held;
use orthant::testing::Raw;
use orthant::{
    AttributeValue, Attributes, ChunkState, CodecSpec, Container, DataType, DynArray, Elements,
    ErrorKind, Json, Limits, ObjectKind, OpenOptions, OtherSlot, ReadVia, Region, Result, Snapshot,
    Tree, TypedArray,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/vectors")
}

fn json(path: &Path) -> Json {
    Json::parse(&std::fs::read_to_string(path).unwrap(), &Limits::default()).unwrap()
}

/// Name, file and expectation of each golden file.
fn vectors() -> Vec<(String, PathBuf, Json)> {
    let mut all: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "orth"))
        .map(|p| {
            let name = p.file_stem().unwrap().to_str().unwrap().to_owned();
            let expectation = json(&p.with_extension("json"));
            (name, p, expectation)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The three ways to a container's bytes.
fn ways(path: &Path) -> Vec<(&'static str, Result<Container>)> {
    let read = |via| OpenOptions::new().read_only(true).via(via).open(path);
    vec![
        ("map", read(ReadVia::Mmap)),
        ("reads", read(ReadVia::Pread)),
        ("memory", held(std::fs::read(path).unwrap())),
        ("untrusted", OpenOptions::untrusted().open(path)),
    ]
}

fn list(v: &Json) -> &[Json] {
    v.as_array().unwrap()
}

fn ints(v: &Json) -> Vec<i64> {
    list(v).iter().map(|x| x.as_i64().unwrap()).collect()
}

fn uints(v: &Json) -> Vec<u64> {
    list(v).iter().map(|x| x.as_u64().unwrap()).collect()
}

fn text(v: &Json, member: &str) -> String {
    v.get(member)
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The kind that `error` names, if there is one.
fn error_of(v: &Json) -> Option<&str> {
    v.get("error").and_then(Json::as_str)
}

fn check_report(container: &Container, want: &Json, context: &str) {
    let report = container.report();
    assert_eq!(
        Some(report.generation),
        want.get("generation").and_then(Json::as_u64),
        "{context}"
    );
    let other = want.get("other_slot").unwrap();
    match text(other, "state").as_str() {
        "valid" => assert_ne!(report.other_slot, OtherSlot::Invalid, "{context}"),
        "invalid" => {
            assert_eq!(report.other_slot, OtherSlot::Invalid, "{context}");
            assert!(report.fell_back, "{context}");
        }
        state => panic!("{context}: unknown state {state}"),
    }
    if let Some(tail) = want.get("ignored_tail_bytes") {
        assert_eq!(Some(report.ignored_tail_bytes), tail.as_u64(), "{context}");
    }
    if let Some(Json::Bool(unconfirmed)) = want.get("unconfirmed") {
        assert_eq!(report.unconfirmed, *unconfirmed, "{context}");
    }
}

fn tree(v: &Json) -> Tree {
    match v {
        Json::Null => Tree::Null,
        Json::Bool(b) => Tree::Bool(*b),
        Json::String(s) => Tree::Text(s.clone()),
        Json::Array(items) => Tree::List(items.iter().map(tree).collect()),
        Json::Object(members) => match (members[0].0.as_str(), &members[0].1) {
            ("int64", x) => Tree::I64(x.as_i64().unwrap()),
            ("uint64", x) => Tree::U64(x.as_u64().unwrap()),
            ("float64", Json::F64(x)) => Tree::F64(*x),
            ("float64", Json::String(s)) => Tree::F64(s.parse().unwrap()),
            ("map", members) => Tree::Map(
                list(members)
                    .iter()
                    .map(|pair| {
                        (
                            list(pair)[0].as_str().unwrap().to_owned(),
                            tree(&list(pair)[1]),
                        )
                    })
                    .collect(),
            ),
            other => panic!("unknown tag {other:?}"),
        },
        number => panic!("untagged number {number:?}"),
    }
}

fn attribute(want: &Json) -> AttributeValue {
    match text(want, "content").as_str() {
        "json" => AttributeValue::Json(want.get("value").unwrap().clone()),
        "tagged" => AttributeValue::Tree(tree(want.get("value").unwrap())),
        "typed" => {
            let data_type = DataType::from_json(want.get("dtype").unwrap()).unwrap();
            let bytes = fixed(&data_type, want.get("values").unwrap());
            let shape = uints(want.get("shape").unwrap());
            AttributeValue::Typed(TypedArray::new(data_type, shape, bytes).unwrap())
        }
        content => panic!("unknown content {content}"),
    }
}

fn check_attributes(attributes: &Attributes, want: &Json, context: &str) {
    let want: BTreeMap<&str, &Json> = want
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, v)| (name.as_str(), v))
        .collect();
    let found: Vec<_> = attributes.entries().unwrap().collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, want.keys().copied().collect::<Vec<_>>(), "{context}");
    for ((name, value), want) in found.iter().zip(want.values()) {
        match (value, error_of(want)) {
            // Compared by their form in memory too: equal floats may differ in their bits.
            (Ok(value), None) => {
                assert_eq!(
                    format!("{value:?}"),
                    format!("{:?}", attribute(want)),
                    "{context} {name}"
                );
            }
            (Err(e), Some(kind)) => assert_eq!(e.kind().code(), kind, "{context} {name}: {e}"),
            (got, want) => panic!("{context} {name}: {got:?}, expected {want:?}"),
        }
    }
}

/// The bytes of a flat list of elements.
fn fixed(data_type: &DataType, values: &Json) -> Vec<u8> {
    if list(values).is_empty() {
        return Vec::new();
    }
    if let DataType::NullTerminatedBytes { length } = data_type {
        let padded = |v: &Json| {
            let mut bytes = base64(v.as_str().unwrap());
            bytes.resize(*length as usize, 0);
            bytes
        };
        return list(values).iter().flat_map(padded).collect();
    }
    let array = TypedArray::from_json(data_type.clone(), values).unwrap();
    assert_eq!(array.shape(), [list(values).len() as u64]);
    array.bytes().to_vec()
}

/// Base64, for elements of the type `bytes`.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |c: u8| DIGITS.iter().position(|d| *d == c).unwrap() as u32;
    let mut out = Vec::new();
    for quad in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = (0..4).fold(0, |w, i| w << 6 | quad.get(i).map_or(0, |c| digit(*c)));
        out.extend_from_slice(&word.to_be_bytes_24()[..(quad.len() * 3) >> 2]);
    }
    out
}

trait Low24 {
    fn to_be_bytes_24(self) -> [u8; 3];
}

impl Low24 for u32 {
    fn to_be_bytes_24(self) -> [u8; 3] {
        [16, 8, 0].map(|shift| u8::try_from(self >> shift & 0xFF).unwrap())
    }
}

fn elements(data_type: &DataType, values: &Json) -> Elements {
    let texts = || list(values).iter().map(|v| v.as_str().unwrap());
    match data_type {
        DataType::String => Elements::Variable(texts().map(|t| t.as_bytes().into()).collect()),
        DataType::Bytes => Elements::Variable(texts().map(|t| base64(t).into()).collect()),
        _ => Elements::Fixed(fixed(data_type, values)),
    }
}

/// What the handle says, against the document in the expectation.
fn check_document(array: &DynArray, want: &Json, context: &str) {
    let ours = want.get("orthant").unwrap();
    let domain = array.domain().unwrap();
    let bounds: Vec<Vec<i64>> = list(ours.get("domain").unwrap()).iter().map(ints).collect();
    let found: Vec<Vec<i64>> = domain.bounds().iter().map(|b| vec![b.0, b.1]).collect();
    assert_eq!(found, bounds, "{context}: domain");
    assert_eq!(
        domain.shape(),
        uints(want.get("shape").unwrap()),
        "{context}: shape"
    );
    assert_eq!(
        array.origin().unwrap(),
        ints(ours.get("origin").unwrap()),
        "{context}: origin"
    );
    let grid = want
        .get("chunk_grid")
        .unwrap()
        .get("configuration")
        .unwrap();
    assert_eq!(
        array.shard_shape().unwrap_or_else(|| array.chunk_shape()),
        uints(grid.get("chunk_shape").unwrap()),
        "{context}: chunks"
    );
    let data_type = array.data_type();
    assert_eq!(
        data_type,
        DataType::from_json(want.get("data_type").unwrap()).unwrap(),
        "{context}: type"
    );
    let fill = Json::Array(vec![want.get("fill_value").unwrap().clone()]);
    let fill = match elements(&data_type, &fill) {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(items) => items[0].to_vec(),
    };
    assert_eq!(array.fill_bytes(), fill, "{context}: fill");
    let codecs: Vec<CodecSpec> = list(want.get("codecs").unwrap())
        .iter()
        .map(|c| CodecSpec::from_json(c).unwrap())
        .collect();
    assert_eq!(array.codecs(), codecs, "{context}: codecs");
    let names: Vec<Option<String>> = match want.get("dimension_names") {
        Some(names) => list(names)
            .iter()
            .map(|n| n.as_str().map(str::to_owned))
            .collect(),
        None => vec![None; domain.rank()],
    };
    assert_eq!(array.dims(), names, "{context}: axis names");
}

fn check_chunks(array: &DynArray, want: &Json, file: &[u8], context: &str) {
    if let Some(kind) = list(want).iter().find_map(error_of) {
        let e = array.chunks().unwrap_err();
        assert_eq!(e.kind().code(), kind, "{context}: {e}");
        return;
    }
    let found = array.chunks().unwrap();
    let coords: Vec<Vec<i64>> = list(want)
        .iter()
        .map(|c| ints(c.get("coord").unwrap()))
        .collect();
    let found_coords: Vec<Vec<i64>> = found.iter().map(|c| c.coord.clone()).collect();
    assert_eq!(found_coords, coords, "{context}: chunks in key order");
    for (chunk, want) in found.iter().zip(list(want)) {
        let state = match chunk.state {
            ChunkState::Constant => "constant",
            ChunkState::DeclaredFill => "fill",
            ChunkState::Stored { .. } => "extent",
        };
        assert_eq!(text(want, "kind"), state, "{context} {:?}", chunk.coord);
        if let ChunkState::Stored { offset, len, crc32 } = chunk.state {
            if let Some(want) = want.get("stored_bytes") {
                assert_eq!(Some(len), want.as_u64(), "{context} {:?}", chunk.coord);
            }
            // A chunk whose payload is damaged is told apart by `error` of the array.
            let at = usize::try_from(offset).unwrap();
            let payload = &file[at..at + usize::try_from(len).unwrap()];
            if let Ok(encoded) = array.encoded_chunk(&chunk.coord) {
                assert_eq!(encoded.as_deref(), Some(payload), "{context}");
                assert_eq!(crc32fast::hash(payload), crc32, "{context}");
            }
        }
    }
}

fn check_array(snapshot: &Snapshot, path: &str, want: &Json, file: &[u8], context: &str) {
    let array = match (snapshot.dyn_array(path), error_of(want)) {
        (Ok(array), _) => array,
        (Err(e), Some(kind)) => {
            assert_eq!(e.kind().code(), kind, "{context}: {e}");
            assert!(e.to_string().contains(path.trim_start_matches('/')), "{e}");
            return;
        }
        (Err(e), None) => panic!("{context}: {e}"),
    };
    check_document(&array, want.get("document").unwrap(), context);
    if let Some(chunks) = want.get("chunks") {
        check_chunks(&array, chunks, file, context);
    }
    match (array.read(Region::all()), error_of(want)) {
        (Ok(block), None) => {
            assert_eq!(block.shape, array.domain().unwrap().shape(), "{context}");
            let want = elements(&block.data_type, want.get("values").unwrap());
            assert_eq!(block.elements, want, "{context}: values");
        }
        (Err(e), Some(kind)) => assert_eq!(e.kind().code(), kind, "{context}: {e}"),
        (Ok(_), Some(kind)) => panic!("{context}: read, expected {kind}"),
        (Err(e), None) => panic!("{context}: {e}"),
    }
}

fn check_objects(snapshot: &Snapshot, want: &Json, file: &[u8], context: &str) {
    let objects = want.as_object().unwrap();
    let mut paths: Vec<(String, bool)> = snapshot
        .walk()
        .unwrap()
        .map(|m| m.unwrap())
        .map(|m| (m.path, m.kind == ObjectKind::Group))
        .chain([("/".to_owned(), true)])
        .collect();
    paths.sort();
    let mut expected: Vec<(String, bool)> = objects
        .iter()
        .map(|(path, o)| (path.clone(), text(o, "kind") == "group"))
        .collect();
    expected.sort();
    assert_eq!(paths, expected, "{context}: objects");
    for (path, object) in objects {
        let context = format!("{context}{path}");
        if text(object, "kind") == "array" {
            check_array(snapshot, path, object, file, &context);
        }
        let attributes = match text(object, "kind").as_str() {
            "group" => Some(snapshot.group(path).unwrap().attributes()),
            _ => snapshot.dyn_array(path).ok().map(|a| a.attributes()),
        };
        if let (Some(attributes), Some(want)) = (attributes, object.get("attributes")) {
            check_attributes(&attributes, want, &context);
        }
    }
}

#[test]
fn every_golden_file_reads_to_its_values_by_every_way() {
    let mut files = 0;
    for (name, path, want) in vectors() {
        if error_of(&want).is_some() {
            continue;
        }
        let file = std::fs::read(&path).unwrap();
        for (way, container) in ways(&path) {
            let context = format!("{name} by {way}: ");
            let container = container.unwrap_or_else(|e| panic!("{context}{e}"));
            check_report(&container, &want, &context);
            let snapshot = container.snapshot().unwrap();
            assert_eq!(snapshot.generation(), container.report().generation);
            check_objects(&snapshot, want.get("objects").unwrap(), &file, &context);
        }
        if let Some(history) = want.get("history") {
            let want: Vec<(u64, String)> = list(history)
                .iter()
                .map(|h| {
                    (
                        h.get("generation").unwrap().as_u64().unwrap(),
                        text(h, "message"),
                    )
                })
                .collect();
            let found = Raw::from_bytes(file).unwrap().history().unwrap();
            assert_eq!(found, want, "{name}: history");
        }
        files += 1;
    }
    assert!(files >= 12, "{files} golden files");
}

/// A fault below the root of the tree is met by whoever walks there, so "refused" means: opening, or reading everything.
fn refusal(container: Result<Container>) -> Option<orthant::Error> {
    let walk = |snapshot: Snapshot| -> Result<()> {
        snapshot.root().attributes().list()?;
        for member in snapshot.walk()? {
            let member = member?;
            match member.kind {
                ObjectKind::Group => drop(snapshot.group(&member.path)?.attributes().list()?),
                ObjectKind::Array => {
                    let array = snapshot.dyn_array(&member.path)?;
                    array.attributes().list()?;
                    array.read(Region::all())?;
                }
            }
        }
        Ok(())
    };
    container.and_then(|c| c.snapshot()).and_then(walk).err()
}

#[test]
fn every_file_that_must_be_refused_is_refused_with_its_kind() {
    let mut files = 0;
    for (name, path, want) in vectors() {
        let Some(kind) = error_of(&want) else {
            continue;
        };
        for (way, container) in ways(&path) {
            let e = refusal(container).unwrap_or_else(|| panic!("{name} by {way} is accepted"));
            assert_eq!(e.kind().code(), kind, "{name} by {way}: {e}");
            if e.kind() == ErrorKind::Corrupt && way != "memory" {
                assert_eq!(e.file(), Some(path.as_path()), "{name} by {way}: {e}");
            }
        }
        files += 1;
    }
    assert!(files >= 20, "{files} files to be refused");
}

/// Copied, so that a writer can be opened on it; the original is never changed.
#[test]
fn golden_files_without_faults_take_a_commit_and_keep_their_values() {
    for (name, path, want) in vectors() {
        if error_of(&want).is_some() {
            continue;
        }
        let container = held(std::fs::read(&path).unwrap()).unwrap();
        let writer = container.writer().unwrap();
        let attributes = writer.root().attributes();
        attributes.set("later still", 1_i64).unwrap();
        attributes.remove("later still").unwrap();
        writer.create_group("made by a test").unwrap();
        let generation = writer.commit().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(generation > want.get("generation").unwrap().as_u64().unwrap());
        writer.remove("made by a test", false).unwrap();
        writer.commit().unwrap();
        let bytes = container.to_bytes().unwrap();
        let again = held(bytes.clone()).unwrap();
        check_objects(
            &again.snapshot().unwrap(),
            want.get("objects").unwrap(),
            &bytes,
            &format!("{name} after two commits: "),
        );
    }
}

#[test]
fn a_new_container_is_byte_for_byte_the_one_laid_out_by_hand() {
    let want = json(&folder().join("empty.json"));
    let digits = text(&want, "uuid");
    let uuid = std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap());
    let created = want.get("created").unwrap().as_i64().unwrap();
    let container = Raw::new_by_hand(uuid, created).unwrap();
    assert_eq!(
        container.to_bytes().unwrap(),
        std::fs::read(folder().join("empty.orth")).unwrap()
    );
}
