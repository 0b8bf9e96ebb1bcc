//! The golden files of the specification: hierarchy, documents and attributes, laid out by other hands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::format::dtype::DataType;
use crate::format::json::Json;
use crate::format::tree::Tree;
use crate::txn::EngineOptions;

/// Objects whose only fault is a codec's parameter.
const PARAMETER_FAULTS: [&str; 3] = ["/level", "/parameter", "/delta"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("format-spec/vectors")
}

/// Names of the files that open.
fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "orth"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("refuse_"))
        .collect();
    names.sort();
    assert!(names.len() >= 12, "{names:?}");
    names
}

fn open(name: &str) -> (View, Json) {
    let bytes = fs::read(folder().join(format!("{name}.orth"))).unwrap();
    let engine = Engine::from_bytes(bytes, EngineOptions::default()).unwrap();
    let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    (
        View::Snapshot(engine.snapshot().unwrap()),
        text.parse().unwrap(),
    )
}

fn objects(view: &View) -> BTreeMap<String, (ObjectId, ObjectKind)> {
    let root = ("/".to_owned(), (ObjectId::ROOT, ObjectKind::Group));
    let beneath = walk(view, ObjectPath::default(), ObjectId::ROOT)
        .unwrap()
        .map(|found| {
            let (path, entry) = found.unwrap();
            (path.to_string(), (entry.id, entry.kind))
        });
    std::iter::once(root).chain(beneath).collect()
}

fn check_document(view: &View, id: ObjectId, expected: &Json, place: &str) {
    if let Some(kind) = expected
        .get("error")
        .filter(|_| expected.get("chunks").is_none())
    {
        match document(view, id) {
            Err(e) => assert_eq!(Some(e.kind().code()), kind.as_str(), "{place}: {e}"),
            // A codec's parameter is judged by the room that implements the codec, when the array is opened.
            Ok(Document::Array(array)) => {
                assert!(
                    array.codecs.iter().any(|c| !c.configuration.is_empty()),
                    "{place}"
                );
                assert!(
                    PARAMETER_FAULTS.iter().any(|p| place.ends_with(p)),
                    "{place}"
                );
            }
            Ok(Document::Group(_)) => panic!("{place}: expected {kind}"),
        }
        return;
    }
    let bytes = document_text(view, id);
    let document = document(view, id).unwrap();
    let one_text = expected
        .get("one_text")
        .cloned()
        .unwrap_or(Json::Bool(true));
    assert_eq!(
        Json::Bool(document.is_canonical(&bytes)),
        one_text,
        "{place}"
    );
    if let Some(expected) = expected.get("document") {
        let stored = Json::parse_stored(&bytes, view.limits()).unwrap();
        assert_eq!(sorted(&stored), sorted(expected), "{place}");
        // A type read by its other name is written by its own.
        if !bytes.windows(8).any(|w| w == b"\"struct\"") {
            let again = document.to_text().parse().unwrap();
            assert_eq!(sorted(&again), sorted(expected), "{place}");
        }
    }
}

/// The same value with members in one order, and with floats of which `-0.0` differs from `0.0`.
fn sorted(json: &Json) -> String {
    match json {
        Json::Array(items) => items.iter().map(sorted).collect::<Vec<_>>().join(","),
        Json::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().map(|(n, v)| (n, sorted(v))).collect();
            format!("{members:?}")
        }
        scalar => scalar.to_string(),
    }
}

fn check_attribute(found: Result<AttributeValue>, expected: &Json, place: &str) {
    if let Some(kind) = expected.get("error") {
        assert_eq!(
            Some(found.unwrap_err().kind().code()),
            kind.as_str(),
            "{place}"
        );
        return;
    }
    let found = found.unwrap();
    match (
        expected.get("content").and_then(Json::as_str).unwrap(),
        &found,
    ) {
        ("json", AttributeValue::Json(json)) => {
            assert_eq!(Some(json), expected.get("value"), "{place}");
        }
        ("typed", AttributeValue::Typed(array)) => {
            let data_type = DataType::from_json(expected.get("dtype").unwrap()).unwrap();
            let shape = expected.get("shape").and_then(Json::as_array).unwrap();
            let shape: Vec<u64> = shape.iter().map(|n| n.as_u64().unwrap()).collect();
            let values = expected.get("values").and_then(Json::as_array).unwrap();
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|v| data_type.element_from_json(v).unwrap())
                .collect();
            assert_eq!(
                (array.data_type(), array.shape()),
                (&data_type, &shape[..]),
                "{place}"
            );
            assert_eq!(array.bytes(), bytes, "{place}");
        }
        ("tagged", AttributeValue::Tree(tree)) => {
            let expected = AttributeValue::Tree(tagged(expected.get("value").unwrap()));
            // Compared as bytes, since NaN is not equal to itself.
            let encoded = |value: &AttributeValue| value.encode(&Limits::default()).unwrap();
            assert_eq!(encoded(&found), encoded(&expected), "{place}: {tree:?}");
        }
        (content, found) => panic!("{place}: expected {content}, found {found:?}"),
    }
}

/// The schema's form of a tagged value: `{"int64":n}`, `{"map":[[name,value],..]}`.
fn tagged(json: &Json) -> Tree {
    let Json::Object(members) = json else {
        return match json {
            Json::Array(items) => Tree::List(items.iter().map(tagged).collect()),
            plain => Tree::from(plain.clone()),
        };
    };
    let (kind, value) = &members[0];
    let bits = |name: &str| {
        DataType::from_json(&Json::text(name))
            .unwrap()
            .element_from_json(value)
            .unwrap()
    };
    match kind.as_str() {
        "int64" => Tree::I64(value.as_i64().unwrap()),
        "uint64" => Tree::U64(value.as_u64().unwrap()),
        "float64" => Tree::F64(f64::from_le_bytes(bits("float64").try_into().unwrap())),
        "map" => Tree::Map(
            value
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| {
                    let [name, value] = pair.as_array().unwrap() else {
                        panic!("a pair")
                    };
                    (name.as_str().unwrap().to_owned(), tagged(value))
                })
                .collect(),
        ),
        other => panic!("unknown tag {other}"),
    }
}

#[test]
fn the_golden_files_hold_the_objects_documents_and_attributes_they_should() {
    let (mut documents, mut attributes) = (0, 0);
    for name in names() {
        let (view, expected) = open(&name);
        let expected = expected.get("objects").and_then(Json::as_object).unwrap();
        let found = objects(&view);
        let paths: BTreeSet<&str> = expected.iter().map(|(path, _)| path.as_str()).collect();
        assert!(
            found.keys().map(String::as_str).eq(paths.into_iter()),
            "{name}: {found:?}"
        );
        for (path, expected) in expected {
            let place = format!("{name}:{path}");
            let (id, kind) = found[path];
            if let Some(expected) = expected.get("kind") {
                assert_eq!(
                    Some(kind.to_string().as_str()),
                    expected.as_str(),
                    "{place}"
                );
            }
            if let Some(expected) = expected.get("id") {
                assert_eq!(Some(id.0), expected.as_u64(), "{place}");
            }
            check_document(&view, id, expected, &place);
            documents += 1;
            let Some(expected) = expected.get("attributes").and_then(Json::as_object) else {
                continue;
            };
            let handle = Attributes::new(view.clone(), id, path.as_str());
            let mut found: BTreeMap<String, _> = handle.entries().unwrap().collect();
            assert_eq!(found.len(), expected.len(), "{place}");
            for (attribute, expected) in expected {
                let place = format!("{place} {attribute}");
                check_attribute(found.remove(attribute).unwrap(), expected, &place);
                attributes += 1;
            }
        }
    }
    assert!(
        documents > 60 && attributes > 15,
        "{documents} {attributes}"
    );
}

#[test]
fn the_attributes_of_the_golden_files_are_encoded_again_to_the_same_bytes() {
    let (view, _) = open("attributes");
    let mut count = 0;
    for (path, (id, _)) in objects(&view) {
        let prefix = key::attribute_prefix(id);
        let mut cursor = view
            .cursor(&prefix, &key::prefix_end(&prefix).unwrap())
            .unwrap();
        while let Some((_, value)) = cursor.next().unwrap() {
            super::super::blobs::read_blob(&view, &value, |content, bytes, limits| {
                let again = AttributeValue::decode(content, bytes, limits)?.encode(limits)?;
                assert_eq!(again, (content, bytes.to_vec()), "{path}");
                Ok(())
            })
            .unwrap();
            count += 1;
        }
    }
    assert!(count >= 19, "{count}");
}
