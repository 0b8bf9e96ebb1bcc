//! Names, paths, objects, documents and attributes over the memory medium.

use std::sync::Arc;

use super::entry;
use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::format::ObjectId;
use crate::format::document::{ArrayDocument, Document};
use crate::format::key::{self, Key, Value};
use crate::format::name::ObjectPath;
use crate::format::record::ChunkRecord;
use crate::format::value::AttributeValue;
use crate::limits::Limits;
use crate::txn::{Engine, View, WriterState};

mod vectors;

struct Bench {
    engine: Arc<Engine>,
    writer: Arc<WriterState>,
    view: View,
}

impl Bench {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let engine = Engine::in_memory(limits);
        let writer = engine.writer().unwrap();
        Self {
            view: View::Writer(Arc::clone(&writer)),
            engine,
            writer,
        }
    }

    fn committed(&self) -> View {
        self.writer.commit().unwrap();
        View::Snapshot(self.engine.snapshot().unwrap())
    }

    fn group(&self, path_text: &str) -> Result<ObjectId> {
        create_group(&self.view, &path(path_text))
    }

    fn array(&self, path_text: &str) -> Result<ObjectId> {
        create_array(&self.view, &path(path_text), &array("int32", 4))
    }

    fn tree(&self) -> Vec<String> {
        paths(&self.view)
    }

    fn attributes(&self, id: ObjectId) -> Attributes {
        Attributes::new(self.view.clone(), id, "/x")
    }
}

fn path(text: &str) -> ObjectPath {
    ObjectPath::parse(text, &Limits::default()).unwrap()
}

fn array(data_type: &str, len: i64) -> ArrayDocument {
    let text = format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":[{len}],"data_type":"{data_type}","chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[2]}}}},"chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"fill_value":0,"codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}],"orthant":{{"must_understand":false,"domain":[[0,{len}]],"origin":[0],"key_order":[0]}}}}"#
    );
    ArrayDocument::parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn paths(view: &View) -> Vec<String> {
    walk(view, ObjectPath::default(), ObjectId::ROOT)
        .unwrap()
        .map(|found| found.unwrap().0.to_string())
        .collect()
}

fn document(view: &View, id: ObjectId) -> Result<Document> {
    checked_document(view, id, ObjectKind::Group)
        .or_else(|_| checked_document(view, id, ObjectKind::Array))
        .map(|(document, _)| document)
}

fn array_document(view: &View, id: ObjectId) -> Result<ArrayDocument> {
    let value = view.get(&key::document(id))?.unwrap();
    array_document_in(view, &value)
}

fn document_text(view: &View, id: ObjectId) -> Vec<u8> {
    let value = view.get(&key::document(id)).unwrap().unwrap();
    super::blobs::read_blob(view, &value, |_, bytes, _| Ok(bytes.to_vec())).unwrap()
}

/// Every key of objects.
fn keys(view: &View) -> Vec<Key> {
    let mut cursor = view.cursor(&[0], &[0x10]).unwrap();
    std::iter::from_fn(|| cursor.next().unwrap().map(|(key, _)| key)).collect()
}

#[test]
fn a_new_container_has_a_root_group_and_nothing_else() {
    let b = Bench::new();
    let root = resolve(&b.view, &path("/")).unwrap().unwrap();
    assert_eq!((root.id, root.kind), (ObjectId::ROOT, ObjectKind::Group));
    assert!(matches!(
        document(&b.view, root.id).unwrap(),
        Document::Group(_)
    ));
    assert_eq!(b.tree(), Vec::<String>::new());
    assert_eq!(resolve(&b.view, &path("a")).unwrap(), None);
    assert_eq!(b.group("/").unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn creating_makes_missing_parents_and_is_seen_at_once_and_after_the_commit() {
    let b = Bench::new();
    let id = b.array("model/run 1/temp").unwrap();
    assert_eq!(
        require_array(&b.view, &path("/model/run 1/temp")).unwrap(),
        id
    );
    assert_eq!(array_document(&b.view, id).unwrap(), array("int32", 4));
    let expected = ["/model", "/model/run 1", "/model/run 1/temp"];
    assert_eq!(b.tree(), expected);
    assert_eq!(paths(&b.committed()), expected);
    let snapshot = View::Snapshot(b.engine.snapshot().unwrap());
    let e = create_group(&snapshot, &path("x")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
}

#[test]
fn c75_a_slash_separates_names_in_either_order_of_creation() {
    let b = Bench::new();
    b.array("a/b").unwrap();
    let e = b.array("a").unwrap_err();
    assert_eq!(e.to_string(), "/a: already exists: a group of this name");
    let c = Bench::new();
    c.array("a").unwrap();
    let before = keys(&c.view);
    for refused in [c.array("a/b"), c.group("a/b/c/d")] {
        let e = refused.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TypeMismatch);
        assert_eq!(e.array(), Some("/a"));
        assert!(
            e.to_string().contains("an array, which has no members"),
            "{e}"
        );
    }
    assert_eq!(
        c.array("a").unwrap_err().to_string(),
        "/a: already exists: an array of this name"
    );
    assert_eq!(keys(&c.view), before);
    assert!(resolve(&c.view, &path("a/b")).is_err());
    let e = require_group(&c.view, &path("a")).unwrap_err();
    assert_eq!(
        e.to_string(),
        "/a: kind of object: expected group, found array"
    );
    assert_eq!(
        require_array(&c.view, &path("z")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn an_array_that_breaks_a_rule_leaves_no_trace_of_its_parents() {
    let b = Bench::new();
    let before = keys(&b.view);
    let mut broken = array("int32", 4);
    broken.chunk_shape = vec![0];
    let e = create_array(&b.view, &path("g/h/a"), &broken).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert_eq!(keys(&b.view), before);
}

#[test]
fn c77_names_are_listed_byte_for_byte_in_the_order_of_their_bytes() {
    let b = Bench::new();
    let names = [
        "z",
        "abieluv\u{f5}rdsus",
        "\u{6570}\u{636e}",
        "\u{1f600}",
        "\u{5e9}\u{5dc}",
        "A",
        "a b",
    ];
    for name in names {
        b.group(name).unwrap();
        b.attributes(ObjectId::ROOT).set(name, name).unwrap();
    }
    let mut sorted: Vec<&str> = names.to_vec();
    sorted.sort_unstable();
    let view = b.committed();
    let listed: Vec<String> = children(&view, ObjectId::ROOT)
        .unwrap()
        .map(|e| e.unwrap().name)
        .collect();
    assert_eq!(listed, sorted);
    let attributes = Attributes::new(view, ObjectId::ROOT, "/").list().unwrap();
    for ((name, value), expected) in attributes.iter().zip(sorted) {
        assert_eq!((name.as_str(), value.as_str()), (expected, Some(expected)));
    }
}

#[test]
fn c78_a_group_of_100_000_members_lists_in_order_and_finds_each() {
    let b = Bench::new();
    for batch in 0..100 {
        for i in 0..1000 {
            b.array(&format!("wide/a{:06}", (batch * 1000 + i) * 7 % 100_000))
                .unwrap();
        }
    }
    let view = b.committed();
    let group = require_group(&view, &path("wide")).unwrap();
    let mut listing = children(&view, group).unwrap();
    for i in 0..100_000 {
        assert_eq!(listing.next().unwrap().unwrap().name, format!("a{i:06}"));
    }
    assert!(listing.next().is_none());
    for i in (0..100_000).step_by(97) {
        require_array(&view, &path(&format!("wide/a{i:06}"))).unwrap();
    }
    for i in (0..100_000).step_by(100) {
        remove(&b.view, &path(&format!("wide/a{i:06}")), false).unwrap();
    }
    assert_eq!(children(&b.view, group).unwrap().count(), 99_000);
}

#[test]
fn c79_an_object_made_again_has_nothing_of_the_one_before() {
    let b = Bench::new();
    let old = b.array("a").unwrap();
    b.attributes(old).set("units", "K").unwrap();
    b.writer
        .put(key::chunk(old, &[0], &[0]), ChunkRecord::Fill.encode());
    let before = b.committed();
    for _ in 0..2 {
        remove(&b.view, &path("a"), false).unwrap();
        let new = create_array(&b.view, &path("a"), &array("float64", 3)).unwrap();
        assert_ne!(new, old);
        assert_eq!(b.attributes(new).list().unwrap(), []);
        assert!(
            children(&b.view, ObjectId::ROOT)
                .unwrap()
                .all(|e| e.unwrap().id == new)
        );
    }
    let after = b.committed();
    let new = require_array(&after, &path("a")).unwrap();
    assert_eq!(array_document(&after, new).unwrap(), array("float64", 3));
    // The root's document, the new entry and the new document.
    assert_eq!(keys(&after).len(), 3, "{:?}", keys(&after));
    assert_eq!(require_array(&before, &path("a")).unwrap(), old);
    assert_eq!(array_document(&before, old).unwrap(), array("int32", 4));
    assert_eq!(keys(&before).len(), 5);
}

#[test]
fn a_handle_of_a_removed_object_changes_nothing() {
    let b = Bench::new();
    let id = b.array("a").unwrap();
    remove(&b.view, &path("a"), false).unwrap();
    let before = keys(&b.view);
    assert_eq!(
        b.attributes(id).set("x", 1).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        b.attributes(id).remove("x").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(keys(&b.view), before);
}

#[test]
fn removing_takes_the_whole_subtree_and_asks_before_it_takes_members() {
    let b = Bench::new();
    b.array("keep/a").unwrap();
    let kept = keys(&b.view);
    for name in ["g/a", "g/h/b", "g/h/i/c"] {
        let id = b.array(name).unwrap();
        b.attributes(id)
            .set_all([("x", 1.into()), ("y", "t".into())])
            .unwrap();
        for c in [-1, 0, 200] {
            b.writer
                .put(key::chunk(id, &[c], &[0]), ChunkRecord::Fill.encode());
        }
    }
    b.committed();
    b.array("g/h/late").unwrap();
    let all = keys(&b.view);
    let e = remove(&b.view, &path("g"), false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.help_text().unwrap().contains("recursive"));
    assert_eq!(
        remove(&b.view, &path("/"), true).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        remove(&b.view, &path("g/x"), true).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(keys(&b.view), all);
    remove(&b.view, &path("g"), true).unwrap();
    assert_eq!(keys(&b.view), kept);
    assert_eq!(keys(&b.committed()), kept);
}

#[test]
fn moving_changes_two_entries_and_no_more() {
    let b = Bench::new();
    let id = b.array("g/h/a").unwrap();
    b.group("to").unwrap();
    let before = keys(&b.committed());
    rename(&b.view, &path("g/h"), &path("to/new")).unwrap();
    assert_eq!(b.tree(), ["/g", "/to", "/to/new", "/to/new/a"]);
    assert_eq!(require_array(&b.view, &path("to/new/a")).unwrap(), id);
    let after = keys(&b.view);
    let changed = |a: &[Key], b: &[Key]| a.iter().filter(|k| !b.contains(k)).count();
    assert_eq!((changed(&before, &after), changed(&after, &before)), (1, 1));
    rename(&b.view, &path("to"), &path("g/to")).unwrap();
    assert_eq!(b.tree(), ["/g", "/g/to", "/g/to/new", "/g/to/new/a"]);
}

#[test]
fn a_move_that_makes_no_sense_is_refused_and_changes_nothing() {
    let b = Bench::new();
    b.array("g/h/a").unwrap();
    b.array("b").unwrap();
    let before = keys(&b.view);
    for (from, to, kind) in [
        ("g", "g/h/x", ErrorKind::InvalidArgument),
        ("g", "g/x", ErrorKind::InvalidArgument),
        ("/", "x", ErrorKind::InvalidArgument),
        ("g", "/", ErrorKind::InvalidArgument),
        ("g", "g", ErrorKind::AlreadyExists),
        ("b", "g/h", ErrorKind::AlreadyExists),
        ("g", "b", ErrorKind::AlreadyExists),
        ("g", "b/x", ErrorKind::TypeMismatch),
        ("b", "b/x", ErrorKind::TypeMismatch),
        ("x", "y", ErrorKind::NotFound),
        ("b", "no/b", ErrorKind::NotFound),
    ] {
        let e = rename(&b.view, &path(from), &path(to)).unwrap_err();
        assert_eq!(e.kind(), kind, "{from} to {to}: {e}");
    }
    assert_eq!(keys(&b.view), before);
    rename(&b.view, &path("g"), &path("gg")).unwrap();
}

#[test]
fn attributes_are_set_replaced_removed_and_listed_by_name() {
    let b = Bench::new();
    let a = b.attributes(b.array("a").unwrap());
    a.set("units", "K").unwrap();
    a.set("scale", 0.5_f32).unwrap();
    a.set("units", "degC").unwrap();
    a.set("levels", vec![1000_i64, 850]).unwrap();
    assert_eq!(a.get("units").unwrap().unwrap().as_str(), Some("degC"));
    assert_eq!(a.get("none").unwrap(), None);
    assert!(a.remove("levels").unwrap() && !a.remove("levels").unwrap());
    b.committed();
    let names: Vec<String> = a.list().unwrap().into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["scale", "units"]);
    assert!(a.contains("scale").unwrap() && !a.contains("levels").unwrap());
    let read_only = Attributes::new(
        View::Snapshot(b.engine.snapshot().unwrap()),
        ObjectId(1),
        "/a",
    );
    assert_eq!(read_only.get("scale").unwrap().unwrap().as_f64(), Some(0.5));
    assert_eq!(
        read_only.set("x", 1).unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
    assert_eq!(
        read_only.remove("scale").unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
}

#[test]
fn c35_c39_long_and_empty_values_come_back_and_a_removed_one_is_absent() {
    let b = Bench::new();
    let a = b.attributes(ObjectId::ROOT);
    let long = "x".repeat(70_000);
    for (name, value) in [
        ("text", AttributeValue::from("")),
        ("list", Vec::<f64>::new().into()),
        ("null", crate::Json::Null.into()),
        ("gone", "x".into()),
        ("long", long.as_str().into()),
        ("edge", "x".repeat(1022).into()),
        ("over", "x".repeat(1023).into()),
        ("nul", "a\0b\0c".into()),
    ] {
        a.set(name, value).unwrap();
    }
    a.remove("gone").unwrap();
    let view = b.committed();
    let a = Attributes::new(view, ObjectId::ROOT, "/");
    let types: Vec<(String, String)> = a
        .entries()
        .unwrap()
        .map(|(name, value)| (name, value.unwrap().type_name()))
        .collect();
    let expected = [
        ("edge", "string"),
        ("list", "float64[0]"),
        ("long", "string"),
        ("nul", "string"),
        ("null", "null"),
        ("over", "string"),
        ("text", "string"),
    ];
    assert_eq!(types, expected.map(|(n, t)| (n.to_owned(), t.to_owned())));
    assert_eq!(
        a.get("long").unwrap().unwrap().as_str(),
        Some(long.as_str())
    );
    assert_eq!(
        a.get("over").unwrap().unwrap().as_str().map(str::len),
        Some(1023)
    );
}

#[test]
fn c36_a_refused_attribute_leaves_the_old_value_and_makes_none() {
    let b = Bench::new();
    let a = b.attributes(ObjectId::ROOT);
    a.set("x", "old").unwrap();
    let huge = || AttributeValue::from("x".repeat(4 << 20));
    let refused = [
        a.set("x", huge()),
        a.set("new", huge()),
        a.set("", "v"),
        a.set("a\0", "v"),
        a.set(&"n".repeat(256), "v"),
        a.set("x", AttributeValue::Json(crate::Json::F64(f64::NAN))),
        a.set_all([("x", "half".into()), ("y", huge())]),
    ];
    let kinds: Vec<ErrorKind> = refused.into_iter().map(|r| r.unwrap_err().kind()).collect();
    assert_eq!(
        kinds
            .iter()
            .filter(|k| **k == ErrorKind::LimitExceeded)
            .count(),
        3
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|k| **k == ErrorKind::InvalidArgument)
            .count(),
        4
    );
    let view = b.committed();
    let listed = Attributes::new(view, ObjectId::ROOT, "/").list().unwrap();
    assert_eq!(listed, [("x".to_owned(), "old".into())]);
}

#[test]
fn attributes_pass_at_their_limit_and_fail_one_above_by_whichever_way() {
    let limits = Limits {
        attributes: 3,
        ..Limits::default()
    };
    let b = Bench::with(limits);
    let a = b.attributes(ObjectId::ROOT);
    a.set_all([("a", 1.into()), ("b", 1.into()), ("a", 2.into())])
        .unwrap();
    assert_eq!(a.get("a").unwrap().unwrap().as_i64(), Some(2));
    b.committed();
    a.set("c", 1).unwrap();
    a.set("c", 2).unwrap();
    assert_eq!(a.set("d", 1).unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert!(a.remove("a").unwrap());
    a.set("d", 1).unwrap();
    assert_eq!(a.set("a", 1).unwrap_err().kind(), ErrorKind::LimitExceeded);
    b.writer.abort();
    a.set("c", 1).unwrap();
    assert_eq!(a.list().unwrap().len(), 3);
    b.writer.put(
        key::attribute(ObjectId::ROOT, "forged"),
        Value::from_slice(b"\0\0null"),
    );
    assert_eq!(a.list().unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn one_damaged_attribute_hides_no_other() {
    let b = Bench::new();
    let a = b.attributes(ObjectId::ROOT);
    a.set_all([("a", 1.into()), ("c", 3.into())]).unwrap();
    b.writer.put(
        key::attribute(ObjectId::ROOT, "b"),
        Value::from_slice(b"\0\0nul"),
    );
    b.writer.put(
        key::attribute(ObjectId::ROOT, "later"),
        Value::from_slice(b"\x01\0"),
    );
    let all: Vec<_> = a.entries().unwrap().collect();
    assert_eq!(all.len(), 4);
    assert!(all[1].1.as_ref().unwrap_err().is_corruption());
    assert_eq!(
        all[3].1.as_ref().unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let e = a.get("b").unwrap_err();
    assert!(e.to_string().contains("\"b\""), "{e}");
    let mut broken = key::attribute_prefix(ObjectId::ROOT);
    broken.push(0xff);
    b.writer.put(broken, Value::from_slice(b"\0\0null"));
    assert!(a.list().unwrap_err().is_corruption());
}

#[test]
fn forged_directories_end_in_an_error() {
    let b = Bench::new();
    let g = b.group("g").unwrap();
    let h = b.group("g/h").unwrap();
    let put = |parent, name: &str, id: ObjectId| {
        b.writer.put(
            key::child(parent, name),
            entry::encode(id, ObjectKind::Group),
        );
    };
    let walked = || -> Result<usize> {
        let mut count = 0;
        for found in walk(&b.view, ObjectPath::default(), ObjectId::ROOT)? {
            found?;
            count += 1;
        }
        Ok(count)
    };
    assert_eq!(walked().unwrap(), 2);
    put(h, "up", g);
    assert!(walked().unwrap_err().is_corruption());
    assert!(
        remove(&b.view, &path("g"), true)
            .unwrap_err()
            .is_corruption()
    );
    assert!(
        resolve(&b.view, &path(&["g/h/up"; 1].join("/")))
            .unwrap()
            .is_some()
    );
    b.writer.delete(&key::child(h, "up"));
    put(ObjectId::ROOT, "twin", h);
    assert!(walked().unwrap_err().is_corruption());
    b.writer.delete(&key::child(ObjectId::ROOT, "twin"));
    b.writer
        .put(key::child(h, "bad"), Value::from_slice(&[0x80, 1]));
    assert!(walked().unwrap_err().is_corruption());
    b.writer
        .put(key::child(h, "bad"), Value::from_slice(&[0x81, 9]));
    assert_eq!(walked().unwrap_err().kind(), ErrorKind::Unsupported);
    let mut not_a_name = key::child_prefix(ObjectId::ROOT);
    not_a_name.extend_from_slice(b"a/b");
    b.writer
        .put(not_a_name, entry::encode(ObjectId(9), ObjectKind::Group));
    assert!(
        children(&b.view, ObjectId::ROOT)
            .unwrap()
            .any(|e| e.is_err_and(|e| e.is_corruption()))
    );
}

#[test]
fn a_chain_of_groups_ends_at_the_depth_limit_without_recursion() {
    let b = Bench::new();
    let deepest = vec!["d"; 128].join("/");
    b.group(&deepest).unwrap();
    assert_eq!(b.tree().len(), 128);
    let mut parent = require_group(&b.view, &path(&deepest)).unwrap();
    for id in 1_000_000..1_010_000 {
        b.writer.put(
            key::child(parent, "d"),
            entry::encode(ObjectId(id), ObjectKind::Group),
        );
        parent = ObjectId(id);
    }
    let last = walk(&b.view, ObjectPath::default(), ObjectId::ROOT)
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(last.unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_document_beyond_the_inline_length_lies_in_an_extent_and_reads_back() {
    let b = Bench::new();
    let mut wide = array("int32", 4);
    wide.unknown = vec![("note".to_owned(), crate::Json::String("n".repeat(5000)))];
    let id = create_array(&b.view, &path("a"), &wide).unwrap();
    assert_eq!(b.view.get(&key::document(id)).unwrap().unwrap().len(), 22);
    assert_eq!(array_document(&b.view, id).unwrap(), wide);
    let view = b.committed();
    assert_eq!(array_document(&view, id).unwrap(), wide);
    assert_eq!(document_text(&view, id), wide.to_text().as_bytes());
    let value = document_value(&b.view, &array("int32", 8)).unwrap();
    b.writer.put(key::document(id), value);
    assert_eq!(array_document(&b.view, id).unwrap().domain, [(0, 8)]);
    assert_eq!(array_document(&view, id).unwrap(), wide);
    wide.unknown = vec![("note".to_owned(), crate::Json::String("n".repeat(4 << 20)))];
    let e = document_value(&b.view, &wide).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn a_missing_or_wrong_document_is_an_error_of_that_object_alone() {
    let b = Bench::new();
    let (x, y) = (b.array("x").unwrap(), b.array("y").unwrap());
    b.writer
        .put(key::document(x), Value::from_slice(b"\0\x01{}"));
    assert!(array_document(&b.view, x).unwrap_err().is_corruption());
    b.writer.put(
        key::document(x),
        Value::from_slice(b"\0\0{ \"zarr_format\":3,\"node_type\":\"group\"}"),
    );
    assert!(array_document(&b.view, x).unwrap_err().is_corruption());
    let e = checked_document(&b.view, x, ObjectKind::Array).unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert!(!checked_document(&b.view, x, ObjectKind::Group).unwrap().1);
    assert!(checked_document(&b.view, y, ObjectKind::Array).unwrap().1);
    b.writer.delete(&key::document(y));
    assert!(
        checked_document(&b.view, y, ObjectKind::Array)
            .unwrap_err()
            .is_corruption()
    );
    assert_eq!(b.tree(), ["/x", "/y"]);
}

#[test]
fn threads_that_make_the_same_group_agree_on_one() {
    let b = Bench::new();
    let ids: Vec<ObjectId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| ensure_group(&b.view, &path("a/b/c")).unwrap()))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(b.tree(), ["/a", "/a/b", "/a/b/c"]);
    b.array("n").unwrap();
    assert!(matches!(
        ensure_group(&b.view, &path("n")),
        Err(Error::TypeMismatch(_))
    ));
}
