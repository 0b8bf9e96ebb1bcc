//! Area C: fill value and absent chunks.

use orthant::{
    ArraySpec, AttributeValue, ChunkState, DataType, DynArraySpec, Elements, ErrorKind, Limits,
    Region, region,
};

use crate::medium::{fresh, held};
use crate::support::{array, coords, json, reopened, writer};

#[test]
fn c22_negative_zero_is_not_zero() {
    let case = json("cases/neg_zero_f4.json");
    let bits: Vec<u32> = case["bits_u32"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| u32::try_from(b.as_u64().unwrap()).unwrap())
        .collect();
    let cells: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
    let must: Vec<Vec<i64>> =
        serde_json::from_value(case["chunks_that_must_be_stored"].clone()).unwrap();
    let read = |cells: &[f32], fill: f32| {
        let c = fresh();
        let w = c.writer().unwrap();
        let spec = ArraySpec::<f32>::new(region![0..6]).chunks([2]).fill(fill);
        array(&w, spec).write_slice(Region::all(), cells).unwrap();
        w.commit().unwrap();
        let a = reopened(&c).snapshot().unwrap().array::<f32>("a").unwrap();
        let found: Vec<u32> = a
            .read_vec(Region::all())
            .unwrap()
            .iter()
            .map(|v| v.to_bits())
            .collect();
        (found, coords(&a))
    };
    assert_eq!(read(&cells, 0.0), (bits.clone(), must));
    let (found, stored) = read(&cells, -0.0);
    assert_eq!(found, bits);
    // Chunk 1 holds -0.0 alone, which is the fill now.
    assert_eq!(stored, [[0], [2]]);
    assert_eq!(
        read(&[0.0; 6], -0.0),
        (vec![0; 6], vec![vec![0], vec![1], vec![2]])
    );
    // Three whole chunks of fill.
    assert_eq!(read(&[0.0; 6], 0.0), (vec![0; 6], Vec::new()));
}

#[test]
fn c22_the_imaginary_sign_counts_too() {
    let w = writer();
    let spec = DynArraySpec::new(DataType::Complex64, region![0..1]).chunks([1]);
    let a = w.create_dyn_array("a", &spec).unwrap();
    let element = [0_u8, 0, 0, 0, 0, 0, 0, 0x80];
    a.write_scalar_bytes(Region::all(), &element).unwrap();
    assert_eq!(a.chunks().unwrap().len(), 1);
    assert_eq!(
        a.read(Region::all()).unwrap().elements,
        Elements::Fixed(element.to_vec())
    );
}

#[test]
fn c24_overwriting_with_fill_removes_what_was_stored() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(
        &w,
        ArraySpec::<i32>::new(region![0..6, 0..6]).chunks([3, 3]),
    );
    a.write_scalar(Region::all(), 5).unwrap();
    w.commit().unwrap();
    let earlier = c.snapshot().unwrap().array::<i32>("a").unwrap();
    let receipt = a.write_scalar(region![0..3, 0..3], 0).unwrap();
    assert_eq!(receipt.chunks_removed, 1);
    w.commit().unwrap();
    assert_eq!(a.read_vec(region![0..3, 0..3]).unwrap(), [0; 9]);
    assert_eq!(coords(&a), [[0, 1], [1, 0], [1, 1]]);
    a.write_slice(region![3..5, 0..6], &[0; 12]).unwrap();
    w.commit().unwrap();
    let mut want = vec![0; 36];
    want[3..6].fill(5);
    want[9..12].fill(5);
    want[15..18].fill(5);
    want[30..].fill(5);
    assert_eq!(a.read_vec(Region::all()).unwrap(), want);
    assert_eq!(earlier.read_vec(Region::all()).unwrap(), [5; 36]);
}

#[test]
fn c26_a_fill_that_does_not_fit_is_refused() {
    let limits = Limits::default();
    for (data_type, text) in [
        (DataType::Uint32, "-1"),
        (DataType::Uint8, "22.5"),
        (DataType::Uint8, "256"),
        (DataType::Int8, "200"),
        (DataType::Float32, "1e400"),
        (DataType::Bool, "2"),
        (DataType::Float16, "70000"),
        (DataType::Int64, "9223372036854775808"),
    ] {
        let e = AttributeValue::from_typed_text(&data_type, text, &limits).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{data_type} {text}");
        let message = e.to_string();
        assert!(message.contains(text), "{message}");
        assert!(message.contains(&data_type.to_string()), "{message}");
    }
    let w = writer();
    for (data_type, bytes) in [
        (DataType::Bool, vec![2]),
        (DataType::Uint32, vec![0; 3]),
        (DataType::Float64, vec![0; 9]),
        (DataType::String, vec![0xFF]),
    ] {
        let spec = DynArraySpec::new(data_type.clone(), region![0..4]).fill_bytes(bytes);
        let e = w.create_dyn_array("a", &spec).unwrap_err();
        assert!(
            e.kind() == ErrorKind::InvalidArgument || e.kind() == ErrorKind::TypeMismatch,
            "{e}"
        );
        assert!(e.to_string().contains(&data_type.to_string()), "{e}");
    }
    assert_eq!(w.root().members().unwrap().count(), 0);
}

#[test]
fn c26_an_exact_float_is_kept_and_a_rounded_one_is_never_silent() {
    let limits = Limits::default();
    let parse = |t: &DataType, s: &str| AttributeValue::from_typed_text(t, s, &limits);
    // 16777217 lies between two f32: refused, or rounded as documented; never another value than the nearest.
    match parse(&DataType::Float32, "16777217") {
        Ok(v) => assert_eq!(v.as_f64(), Some(16_777_216.0)),
        Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument),
    }
    match parse(&DataType::Uint8, "3.0") {
        Ok(v) => assert_eq!(v.as_u64(), Some(3)),
        Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument),
    }
}

#[test]
fn c27_integers_beyond_two_to_the_53_keep_every_digit() {
    let case = json("cases/int_extremes.json");
    let numbers = |v: &serde_json::Value| -> Vec<String> {
        let texts = v.as_array().unwrap().iter();
        texts.map(|t| t.as_str().unwrap().to_owned()).collect()
    };
    let c = fresh();
    let w = c.writer().unwrap();
    let i: Vec<i64> = numbers(&case["i"])
        .iter()
        .map(|t| t.parse().unwrap())
        .collect();
    let u: Vec<u64> = numbers(&case["u"])
        .iter()
        .map(|t| t.parse().unwrap())
        .collect();
    let ai = w
        .create_array(
            "i",
            ArraySpec::<i64>::new(region![0..8])
                .chunks([5])
                .fill(i64::MIN),
        )
        .unwrap();
    let au = w
        .create_array(
            "u",
            ArraySpec::<u64>::new(region![0..8])
                .chunks([5])
                .fill(u64::MAX),
        )
        .unwrap();
    ai.write_slice(Region::all(), &i).unwrap();
    au.write_slice(Region::all(), &u).unwrap();
    let attributes = ai.attributes();
    for (name, text) in case["attrs"].as_object().unwrap() {
        let value = AttributeValue::from_text(text.as_str().unwrap(), &Limits::default());
        attributes.set(name, value).unwrap();
    }
    w.commit().unwrap();
    let s = reopened(&c).snapshot().unwrap();
    let (ai, au) = (s.array::<i64>("i").unwrap(), s.array::<u64>("u").unwrap());
    assert_eq!(ai.read_vec(Region::all()).unwrap(), i);
    assert_eq!(au.read_vec(Region::all()).unwrap(), u);
    assert_eq!(ai.fill_value().unwrap(), i64::MIN);
    assert_eq!(au.fill_value().unwrap(), u64::MAX);
    for (name, text) in case["attrs"].as_object().unwrap() {
        let value = ai.attributes().get(name).unwrap().unwrap();
        assert_eq!(value.to_json().to_string(), text.as_str().unwrap());
    }
}

#[test]
fn c29_the_fill_is_one_value_and_no_limit() {
    let w = writer();
    let tens: Vec<i64> = (0..10).collect();
    let a = array(
        &w,
        ArraySpec::<i64>::new(region![0..10]).chunks([4]).fill(5),
    );
    a.write_slice(Region::all(), &tens).unwrap();
    assert_eq!(a.read_vec(Region::all()).unwrap(), tens);
    let bytes: Vec<u8> = (0..=255).collect();
    let b = w
        .create_array(
            "b",
            ArraySpec::<u8>::new(region![0..256])
                .chunks([100])
                .fill(255),
        )
        .unwrap();
    b.write_slice(Region::all(), &bytes).unwrap();
    assert_eq!(b.read_vec(Region::all()).unwrap(), bytes);
    let d = w
        .create_array("d", ArraySpec::<i32>::new(region![0..1]).fill(999_999))
        .unwrap();
    d.write_scalar(Region::all(), 2_018_156).unwrap();
    assert_eq!(d.read_vec(Region::all()).unwrap(), [2_018_156]);
}

#[test]
fn c31_written_is_told_from_never_written_without_reading_a_payload() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = array(&w, ArraySpec::<i16>::new(region![0..30]).chunks([10]));
    a.write_slice(region![0..10], &[0; 10]).unwrap();
    a.write_slice(region![10..20], &[7; 10]).unwrap();
    assert_eq!(coords(&a), [[1]]);
    a.write_fill(region![0..10]).unwrap();
    w.commit().unwrap();
    let a = reopened(&c).snapshot().unwrap().array::<i16>("a").unwrap();
    let found = a.chunks().unwrap();
    assert_eq!(coords(&a), [[0], [1]]);
    assert_eq!(found[0].state, ChunkState::DeclaredFill);
    let (cells, receipt) = a.read_with_receipt(region![0..10]).unwrap();
    assert_eq!(cells.iter().copied().collect::<Vec<_>>(), [0; 10]);
    assert_eq!((receipt.chunks_constant, receipt.bytes_fetched), (1, 0));
    let plan = a.explain(Region::all()).unwrap();
    assert_eq!(
        (
            plan.chunks_absent,
            plan.chunks_constant,
            plan.chunks_decoded
        ),
        (1, 1, 1)
    );
    // The query answers although the payload of chunk 1 is damaged: it was not read.
    let mut bytes = c.to_bytes().unwrap();
    let ChunkState::Stored { offset, .. } = found[1].state else {
        panic!("chunk 1 has a payload")
    };
    bytes[usize::try_from(offset).unwrap()] ^= 1;
    let damaged = held(bytes).unwrap().snapshot().unwrap();
    let a = damaged.array::<i16>("a").unwrap();
    assert_eq!(coords(&a), [[0], [1]]);
    assert!(a.read_vec(region![10..20]).unwrap_err().is_corruption());
}
