//! Area D: types, byte order, texts, attributes.

use orthant::{
    ArraySpec, AttributeValue, Codec, DataType, DynArraySpec, Elements, ErrorKind, Json, Limits,
    Region, TimeUnit, Tree, TypedArray, region,
};

use crate::medium::fresh;
use crate::support::{array, hex, json, npy, reopened, with_payload, writer};

#[test]
fn c32_big_endian_payloads_have_the_foreign_bytes() {
    let case = json("cases/be_raw.json");
    let raw = hex(case["bytes_hex"].as_str().unwrap());
    assert_eq!(
        u64::from(crc32c::crc32c(&raw)),
        case["crc32c"].as_u64().unwrap()
    );
    let c = fresh();
    let w = c.writer().unwrap();
    let big = || [Codec::bytes_big_endian()];
    let x = w
        .create_array(
            "x",
            ArraySpec::<i32>::new(region![0..10])
                .chunks([10])
                .codecs(big()),
        )
        .unwrap();
    x.write_slice(Region::all(), &(0..10).collect::<Vec<_>>())
        .unwrap();
    let f = w
        .create_array(
            "f",
            ArraySpec::<f64>::new(region![0..10]).chunks([3]).codecs([
                Codec::bytes_big_endian(),
                Codec::shuffle(),
                Codec::zlib(4),
            ]),
        )
        .unwrap();
    // What another program wrote in big-endian order and read back.
    let want: Vec<f64> = npy("cases/be_i4.f.npy")
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| f64::from_le_bytes(*b))
        .collect();
    assert!((want[0] + 1.0).abs() < f64::EPSILON && (want[9] - 1.0).abs() < f64::EPSILON);
    f.write_slice(Region::all(), &want).unwrap();
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    let (x, f) = (s.array::<i32>("x").unwrap(), s.array::<f64>("f").unwrap());
    assert_eq!(x.encoded_chunk(&[0]).unwrap().unwrap(), raw);
    assert_eq!(
        x.read_vec(Region::all()).unwrap(),
        (0..10).collect::<Vec<_>>()
    );
    assert_eq!(f.read_vec(Region::all()).unwrap(), want);
    for codecs in [x.codecs(), f.codecs()] {
        let endian = codecs[0].get("endian").and_then(Json::as_str);
        assert_eq!(endian, Some("big"));
    }
}

#[test]
fn c35_texts_keep_their_nul() {
    let case = json("cases/strings_attrs.json");
    let foreign = hex(case["attrs"]["embedded_nul_hex"].as_str().unwrap());
    let foreign = String::from_utf8(foreign).unwrap();
    assert_eq!(foreign, "a\0b\0c");
    let long = "ä".repeat(35_000);
    let c = fresh();
    let w = c.writer().unwrap();
    let attributes = w.root().attributes();
    let texts = [
        ("a", foreign.as_str()),
        ("b", "\0"),
        ("c", ""),
        ("d", &long),
    ];
    for (name, text) in texts {
        attributes.set(name, text).unwrap();
    }
    for name in ["x\0", "\0", "a\0b"] {
        let e = attributes.set(name, "v").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        let e = w.create_group(name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    }
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    let found = s.root().attributes().list().unwrap();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str().unwrap()))
        .collect();
    assert_eq!(found, texts);
    assert_eq!(s.root().members().unwrap().count(), 0);
}

#[test]
fn c36_a_refused_attribute_leaves_no_trace() {
    let c = fresh();
    let w = c.writer().unwrap();
    let attributes = w.root().attributes();
    attributes.set("x", "old").unwrap();
    let huge = "v".repeat((4 << 20) + 1);
    let deep = (0..100).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    for name in ["x", "new"] {
        assert_eq!(
            attributes.set(name, huge.as_str()).unwrap_err().kind(),
            ErrorKind::LimitExceeded
        );
        assert!(attributes.set(name, deep.clone()).is_err());
        let doubled = Json::Object(vec![
            ("k".to_owned(), Json::Null),
            ("k".to_owned(), Json::Null),
        ]);
        assert!(attributes.set(name, doubled).is_err());
    }
    // All or none: the second of the two is refused.
    let both = [
        ("new", AttributeValue::from("v")),
        ("bad\0name", AttributeValue::from("v")),
    ];
    assert!(attributes.set_all(both).is_err());
    w.commit().unwrap();
    for attributes in [
        attributes,
        reopened(&c).snapshot().unwrap().root().attributes(),
    ] {
        assert_eq!(attributes.list().unwrap(), [("x".to_owned(), "old".into())]);
        assert_eq!(attributes.get("new").unwrap(), None);
    }
}

#[test]
fn c38_fixed_texts_fill_their_width() {
    let c = fresh();
    let w = c.writer().unwrap();
    let cells = [*b"1234", *b"ab\0\0", [0; 4], *b"wxyz"];
    array(&w, ArraySpec::<[u8; 4]>::new(region![0..4]).chunks([3]))
        .write_slice(Region::all(), &cells)
        .unwrap();
    let raw = TypedArray::new(DataType::RawBytes { length: 4 }, vec![], b"1234".to_vec()).unwrap();
    w.root().attributes().set("exact", raw.clone()).unwrap();
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    let a = s.array::<[u8; 4]>("a").unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
    let exact = s.root().attributes().get("exact").unwrap().unwrap();
    assert_eq!(exact.as_typed(), Some(&raw));
}

#[test]
fn c39_empty_attributes_are_values_and_missing_ones_are_not() {
    let c = fresh();
    let w = c.writer().unwrap();
    let attributes = w.root().attributes();
    let empty: [f64; 0] = [];
    attributes.set("text", "").unwrap();
    attributes.set("list", empty).unwrap();
    attributes.set("null", Json::Null).unwrap();
    attributes.set("gone", 1_i64).unwrap();
    assert!(attributes.remove("gone").unwrap());
    assert!(!attributes.remove("gone").unwrap());
    w.commit().unwrap();
    let attributes = reopened(&c).snapshot().unwrap().root().attributes();
    let names: Vec<String> = attributes.entries().unwrap().map(|(n, _)| n).collect();
    assert_eq!(names, ["list", "null", "text"]);
    assert_eq!(attributes.get("text").unwrap().unwrap().as_str(), Some(""));
    assert_eq!(
        attributes.get("null").unwrap(),
        Some(AttributeValue::Json(Json::Null))
    );
    let list = attributes.get("list").unwrap().unwrap();
    assert_eq!(list.as_typed().unwrap().shape(), [0]);
    assert_eq!(list.as_typed().unwrap().data_type(), &DataType::Float64);
    assert_eq!(attributes.get("gone").unwrap(), None);
    assert!(!attributes.contains("gone").unwrap());
}

#[test]
fn c40_the_text_nan_is_not_the_number() {
    let c = fresh();
    let w = c.writer().unwrap();
    let attributes = w.root().attributes();
    let payload = f64::from_bits(0x7FF8_0000_0000_0001);
    let mixed = Tree::List(vec![
        Tree::F64(1.0),
        Tree::F64(payload),
        Tree::F64(f64::INFINITY),
        Tree::Text("NaN".to_owned()),
        Tree::F64(-0.0),
    ]);
    attributes.set("text nan", "NaN").unwrap();
    attributes.set("text inf", "Infinity").unwrap();
    attributes.set("text hex", "0x1p3").unwrap();
    attributes.set("nan", f64::NAN).unwrap();
    attributes.set("-inf", f64::NEG_INFINITY).unwrap();
    attributes.set("-0", -0.0_f64).unwrap();
    attributes.set("list", mixed.clone()).unwrap();
    w.commit().unwrap();
    let attributes = reopened(&c).snapshot().unwrap().root().attributes();
    let get = |name: &str| attributes.get(name).unwrap().unwrap();
    assert_eq!(get("text nan").as_str(), Some("NaN"));
    assert_eq!(get("text inf").as_str(), Some("Infinity"));
    assert_eq!(get("text hex").as_str(), Some("0x1p3"));
    let bits = |name: &str| get(name).as_f64().unwrap().to_bits();
    assert_eq!(bits("nan"), f64::NAN.to_bits());
    assert_eq!(bits("-inf"), f64::NEG_INFINITY.to_bits());
    assert_eq!(bits("-0"), (-0.0_f64).to_bits());
    let AttributeValue::Tree(Tree::List(items)) = get("list") else {
        panic!("a list with numbers and a text is kept as it is")
    };
    let Tree::List(want) = mixed else {
        unreachable!()
    };
    for (item, want) in items.iter().zip(&want) {
        match (item, want) {
            (Tree::F64(a), Tree::F64(b)) => assert_eq!(a.to_bits(), b.to_bits()),
            (a, b) => assert_eq!(a, b),
        }
    }
    assert_eq!(items.len(), 5);
}

#[test]
fn c42_bool_stays_bool() {
    let c = fresh();
    let w = c.writer().unwrap();
    let cells: Vec<bool> = (0..17).map(|i| i % 2 == 0).collect();
    let spec = ArraySpec::<bool>::new(region![0..17]).chunks([5]);
    array(&w, spec.codecs(Codec::raw_profile()))
        .write_slice(Region::all(), &cells)
        .unwrap();
    w.root().attributes().set("true", true).unwrap();
    w.root().attributes().set("one", 1_i64).unwrap();
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    let a = s.array::<bool>("a").unwrap();
    assert_eq!(a.data_type(), DataType::Bool);
    assert_eq!(a.read_vec(Region::all()).unwrap(), cells);
    let attributes = s.root().attributes();
    let get = |name: &str| attributes.get(name).unwrap().unwrap();
    assert_eq!(
        (get("true").as_bool(), get("true").as_i64()),
        (Some(true), None)
    );
    assert_eq!((get("one").as_bool(), get("one").as_i64()), (None, Some(1)));

    let forged = with_payload(&c, 1, &[1], &[0, 1, 2, 1, 0])
        .snapshot()
        .unwrap();
    let a = forged.array::<bool>("a").unwrap();
    let e = a.read_vec(Region::all()).unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert_eq!(e.chunk(), Some(&[1][..]));
    assert_eq!(a.read_vec(region![0..5]).unwrap(), cells[..5]);
}

/// Not a numbered case: every type of the model keeps every bit, through a file, at negative coordinates.
#[test]
fn every_type_keeps_its_bits_across_a_reopen() {
    let time = |f: fn(TimeUnit, u32) -> DataType| f(TimeUnit::Nanosecond, 25);
    let types = [
        DataType::Bool,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
        DataType::Float16,
        DataType::Bfloat16,
        DataType::Float32,
        DataType::Float64,
        DataType::Complex64,
        DataType::Complex128,
        DataType::RawBytes { length: 5 },
        time(|unit, scale| DataType::Datetime64 { unit, scale }),
        time(|unit, scale| DataType::Timedelta64 { unit, scale }),
        DataType::String,
        DataType::Bytes,
    ];
    let c = fresh();
    let w = c.writer().unwrap();
    let mut blocks = Vec::new();
    for data_type in &types {
        let name = data_type.to_string().replace('/', " ");
        let spec = DynArraySpec::new(data_type.clone(), region![-7..4]).chunks([4]);
        let a = w.create_dyn_array(&name, &spec).unwrap();
        let mut block = a.read(Region::all()).unwrap();
        match &mut block.elements {
            Elements::Fixed(bytes) => {
                for (i, b) in bytes.iter_mut().enumerate() {
                    let i = u8::try_from(i % 251).unwrap();
                    *b = if *data_type == DataType::Bool {
                        i % 2
                    } else {
                        i.wrapping_mul(37)
                    };
                }
            }
            Elements::Variable(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    *item = "ä\0".repeat(i).into_bytes().into();
                }
            }
        }
        a.write(Region::all(), &block).unwrap();
        blocks.push((name, block));
    }
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    for ((name, block), data_type) in blocks.iter().zip(&types) {
        let a = s.dyn_array(name).unwrap();
        assert_eq!(a.data_type(), *data_type);
        assert_eq!(a.read(Region::all()).unwrap(), *block, "{name}");
        assert_eq!(a.read(region![-7]).unwrap().shape, [0_u64; 0], "{name}");
    }
}

#[test]
fn the_wrong_element_type_is_an_error_and_no_cast() {
    let w = writer();
    array(&w, ArraySpec::<f32>::new(region![0..3]));
    let e = w.array::<f64>("a").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    let text = e.to_string();
    assert!(
        text.contains("float32") && text.contains("float64"),
        "{text}"
    );
    assert_eq!(
        w.create_array(
            "t",
            ArraySpec::<f32>::new(region![0..3]).data_type(DataType::Int64)
        )
        .unwrap_err()
        .kind(),
        ErrorKind::TypeMismatch
    );
    let limits = Limits::default();
    assert!(AttributeValue::from_typed_text(&DataType::Int16, "40000", &limits).is_err());
}
