//! The 93 sequences of signed coordinates: growth, cuts and moves at every edge, compared field by field.

use orthant::{Array, ArraySpec, ChunkState, Domain, Element, Error, Region, Writer};
use serde_json::Value;

use crate::support::{array, ints, vector, writer};

fn domain(v: &Value) -> Result<Domain, Error> {
    Domain::new(
        ints(&v["min"])
            .into_iter()
            .zip(ints(&v["max"]))
            .map(|(a, b)| a..b),
    )
}

/// Every coordinate of a box, C order.
fn points(domain: &Domain) -> Vec<Vec<i64>> {
    domain.ranges().fold(vec![vec![]], |points, r| {
        points
            .iter()
            .flat_map(|p| r.clone().map(move |x| [p.as_slice(), &[x]].concat()))
            .collect()
    })
}

fn values(v: &Value, area: &Domain) -> Vec<i32> {
    let int = |v: &Value| i32::try_from(v.as_i64().unwrap()).unwrap();
    match v["kind"].as_str().unwrap() {
        "list" => v["values"].as_array().unwrap().iter().map(int).collect(),
        "const" => vec![int(&v["value"]); points(area).len()],
        "affine" => {
            let (base, coef, modulus) = (
                v["base"].as_i64().unwrap(),
                ints(&v["coef"]),
                v["mod"].as_i64().unwrap(),
            );
            let value = |p: &Vec<i64>| {
                let sum: i128 = coef
                    .iter()
                    .zip(p)
                    .map(|(&k, &x)| i128::from(k) * i128::from(x))
                    .sum();
                i32::try_from(i128::from(base) + sum.rem_euclid(i128::from(modulus))).unwrap()
            };
            points(area).iter().map(value).collect()
        }
        kind => panic!("unknown kind of values {kind}"),
    }
}

/// What one step answered: chunks dropped and scrubbed, where the operation cuts.
type Answer = Result<Option<(u64, u64)>, Error>;

fn attach(a: &Array<i32>, step: &Value, low: bool) -> Answer {
    let axis = usize::try_from(step["axis"].as_u64().unwrap()).unwrap();
    let n = step["count"].as_i64().unwrap();
    let old = a.domain()?;
    let slab: Vec<_> = old
        .ranges()
        .enumerate()
        .map(|(i, r)| match (i == axis, low) {
            (false, _) => r,
            (true, true) => r.start - n..r.start,
            (true, false) => r.end..r.end + n,
        })
        .collect();
    let shape: Vec<usize> = slab
        .iter()
        .map(|r| usize::try_from(r.end - r.start).unwrap())
        .collect();
    let items = values(&step["values"], &Domain::new(slab)?);
    let block = ndarray::ArrayD::from_shape_vec(shape, items).unwrap();
    if low {
        a.prepend(axis, block.view())?
    } else {
        a.append(axis, block.view())?
    };
    Ok(None)
}

fn run(a: &Array<i32>, step: &Value) -> Answer {
    let axis = || usize::try_from(step["axis"].as_u64().unwrap()).unwrap();
    let count = |k: &str| step[k].as_u64().unwrap();
    let cut = |r: orthant::ShrinkReceipt| Some((r.dropped, r.scrubbed));
    match step["op"].as_str().unwrap() {
        "write" => {
            let area = domain(step)?;
            a.write_slice(&area, &values(&step["values"], &area))
                .map(|_| None)
        }
        "read" => {
            let got = a.read_vec(&domain(step)?)?;
            if let Some(want) = step["expect"]["values"].as_array() {
                assert_eq!(
                    got,
                    want.iter()
                        .map(|v| i32::try_from(v.as_i64().unwrap()).unwrap())
                        .collect::<Vec<_>>()
                );
            }
            Ok(None)
        }
        "grow" => a.grow(axis(), count("lo"), count("hi")).map(|_| None),
        "prepend" => attach(a, step, true),
        "append" => attach(a, step, false),
        "trim" => a.trim(axis(), count("lo"), count("hi")).map(cut),
        "set_domain" => a.set_domain(domain(step)?).map(cut),
        "translate" => a.translate(&ints(&step["by"])).map(|()| None),
        op => panic!("unknown operation {op}"),
    }
}

fn stored(a: &Array<i32>) -> Vec<Vec<i64>> {
    let mut all: Vec<_> = a.chunks().unwrap().into_iter().map(|c| c.coord).collect();
    all.sort();
    all
}

fn lists(v: &Value) -> Vec<Vec<i64>> {
    v.as_array().unwrap().iter().map(ints).collect()
}

fn check_state(a: &Array<i32>, expect: &Value, context: &str) {
    assert_eq!(
        a.domain().unwrap(),
        domain(expect).unwrap(),
        "{context}: domain"
    );
    assert_eq!(
        stored(a),
        lists(&expect["stored"]),
        "{context}: stored chunks"
    );
    let cells = a.read_vec(Region::all()).unwrap();
    let bytes: Vec<u8> = cells.iter().flat_map(|c| c.to_le_bytes()).collect();
    assert_eq!(
        format!("{:08x}", crc32c::crc32c(&bytes)),
        expect["crc32c"].as_str().unwrap(),
        "{context}: checksum"
    );
    if expect.get("chunk_origin").is_some() {
        assert_eq!(
            a.origin().unwrap(),
            ints(&expect["chunk_origin"]),
            "{context}: origin"
        );
    }
}

fn check_final(a: &Array<i32>, last: &Value, context: &str) {
    assert_eq!(
        a.domain().unwrap(),
        domain(last).unwrap(),
        "{context}: final domain"
    );
    assert_eq!(
        a.origin().unwrap(),
        ints(&last["chunk_origin"]),
        "{context}: final origin"
    );
    for read in last["reads"].as_array().unwrap() {
        let (got, receipt) = a.read_with_receipt(domain(read).unwrap()).unwrap();
        let want: Vec<i64> = ints(&read["values"]);
        assert_eq!(
            got.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(),
            want,
            "{context}: {read}"
        );
        assert_eq!(
            receipt.chunks_touched,
            read["chunks"].as_u64().unwrap(),
            "{context}: {read}"
        );
        let present = receipt.chunks_touched - receipt.chunks_absent;
        assert_eq!(
            present,
            read["stored_chunks"].as_u64().unwrap(),
            "{context}: {read}"
        );
    }
    for chunk in last["chunks"].as_array().unwrap() {
        let coord = ints(&chunk["chunk"]);
        let whole = a.read_chunk(&coord).unwrap().unwrap();
        assert_eq!(
            whole.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(),
            ints(&chunk["cells"]),
            "{context}: {coord:?}"
        );
    }
    let zero = &last["zero_based"];
    let (lo, origin) = (ints(&last["min"]), ints(&last["chunk_origin"]));
    let chunks: Vec<i64> = a
        .shard_shape()
        .unwrap_or_else(|| a.chunk_shape())
        .iter()
        .map(|&n| i64::try_from(n).unwrap())
        .collect();
    let each = |f: &dyn Fn(usize) -> i64| (0..lo.len()).map(f).collect::<Vec<_>>();
    assert_eq!(
        ints(&zero["chunk_origin"]),
        each(&|i| origin[i] - lo[i]),
        "{context}"
    );
    assert_eq!(
        ints(&zero["array_origin"]),
        each(&|i| (lo[i] - origin[i]).rem_euclid(chunks[i])),
        "{context}"
    );
}

/// How the chunks of a vector are stored.
#[derive(Clone, Copy)]
enum Stored {
    Plain,
    /// As shards of inner chunks of one element.
    Ones,
    /// As shards whose axes are divided by their smallest prime.
    Parts,
}

fn create(w: &Writer, v: &Value, stored: Stored) -> Result<Array<i32>, Error> {
    let fill = i32::try_from(v["fill"].as_i64().unwrap()).unwrap();
    let chunks: Vec<u64> = v["chunk_shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    let part = |n: &u64| n / (2..=*n).find(|p| n.is_multiple_of(*p)).unwrap_or(1);
    let spec = ArraySpec::<i32>::new(domain(&v["create"])?)
        .origin(ints(&v["chunk_origin"]))
        .fill(fill);
    let spec = match stored {
        Stored::Plain => spec.chunks(chunks),
        Stored::Ones => spec.chunks(vec![1; chunks.len()]).shards(chunks),
        Stored::Parts => spec
            .chunks(chunks.iter().map(part).collect::<Vec<_>>())
            .shards(chunks),
    };
    Ok(array(w, spec))
}

fn replay(v: &Value, commit_each: bool, form: Stored) {
    let name = v["name"].as_str().unwrap();
    let w = writer();
    let a = create(&w, v, form).unwrap();
    for (i, step) in v["steps"].as_array().unwrap().iter().enumerate() {
        let context = format!("{name} step {i} {}", step["op"]);
        let before = (a.domain().unwrap(), stored(&a));
        let expect = &step["expect"];
        match (run(&a, step), expect["error"].as_str()) {
            (Ok(cut), None) => {
                check_state(&a, expect, &context);
                if let (Some((dropped, scrubbed)), Some(want)) = (cut, expect.get("dropped")) {
                    assert_eq!(Some(dropped), want.as_u64(), "{context}: dropped");
                    assert_eq!(
                        Some(scrubbed),
                        expect["scrubbed"].as_u64(),
                        "{context}: scrubbed"
                    );
                }
            }
            (Err(e), Some(reason)) => {
                assert_eq!(e.reason_code(), Some(reason), "{context}: {e}");
                assert_eq!(
                    (a.domain().unwrap(), stored(&a)),
                    before,
                    "{context}: a failed call changed something"
                );
            }
            (got, want) => panic!("{context}: got {got:?}, want {want:?}"),
        }
        if commit_each {
            w.commit().unwrap();
        }
    }
    check_final(&a, &v["final"], name);
    for chunk in a.chunks().unwrap() {
        assert!(
            matches!(chunk.state, ChunkState::Stored { .. }),
            "{name}: plain writes store payloads"
        );
    }
}

fn sequences() -> Vec<Value> {
    let mut names: Vec<String> = std::fs::read_dir(crate::support::data("vectors/signed"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.as_bytes()[1].is_ascii_digit())
        .collect();
    names.sort();
    names
        .iter()
        .map(|n| vector(&format!("signed/{n}")))
        .collect()
}

#[test]
fn all_sequences_pass_in_one_transaction() {
    let all = sequences();
    assert_eq!(all.len(), 93);
    all.iter().for_each(|v| replay(v, false, Stored::Plain));
}

#[test]
fn all_sequences_pass_with_a_commit_after_every_step() {
    sequences()
        .iter()
        .for_each(|v| replay(v, true, Stored::Plain));
}

#[test]
fn all_sequences_pass_on_sharded_arrays() {
    for form in [Stored::Ones, Stored::Parts] {
        for v in &sequences() {
            replay(v, false, form);
            replay(v, true, form);
        }
    }
}

/// Nothing here depends on the element type; this keeps the generic bound in use where `replay` is monomorphic.
#[test]
fn an_element_type_reads_back_what_it_wrote_at_negative_coordinates() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(items: &[T]) {
        let w = writer();
        let n = i64::try_from(items.len()).unwrap();
        let a = array(
            &w,
            ArraySpec::<T>::new(Domain::new([-n..0]).unwrap()).chunks([2]),
        );
        a.write_slice(Region::all(), items).unwrap();
        assert_eq!(a.read_vec(Region::all()).unwrap(), items);
    }
    check(&[true, false, true]);
    check(&[i8::MIN, 0, i8::MAX]);
    check(&[i64::MIN, -1, i64::MAX]);
    check(&[u64::MAX, 0, 1]);
    check(&[-0.0_f32, f32::INFINITY, 1.5]);
    check(&[f64::MIN_POSITIVE, -1.0, 0.0]);
    check(&[[1_u8, 2, 3], [0, 0, 0], [255, 254, 253]]);
    check(&["".to_owned(), "a\0b".to_owned(), "数据".to_owned()]);
    check(&[vec![1_u8], vec![], vec![0, 0]]);
}
