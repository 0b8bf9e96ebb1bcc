//! Containers that this library writes, for the second reader to judge: `tests/interop/check_reader.py` runs this test with
//! `ORTHANT_WRITE_TO` set, and then `format-spec/reader.py` on what it wrote.
//!
//! Beside each container lies what must be read from it, in the schema of `format-spec/vectors/README.md`, put together
//! from what was written. Without the variable the containers go to a folder of the test's own and are checked here.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use orthant::{
    ArchiveOptions, ArraySpec, AttributeValue, Block, ChunkState, Codec, Container, CopyOptions,
    DataType, Domain, DynArray, DynArraySpec, Elements, Json, Region, TimeUnit, Tree, TypedArray,
    Writer, region,
};

use crate::support::verify;

const ROOT: &str = r#""/":{"kind":"group"}"#;

/// A container in the making and what it must hold.
struct Written {
    path: PathBuf,
    container: Container,
    writer: Writer,
    objects: Vec<String>,
    /// What each retained generation must hold.
    snapshots: Vec<String>,
}

impl Written {
    fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(format!("{name}.orth"));
        let container = Container::create(&path).unwrap();
        let writer = container.writer().unwrap();
        Self {
            path,
            container,
            writer,
            objects: vec![ROOT.to_owned()],
            snapshots: Vec::new(),
        }
    }

    fn group(&mut self, path: &str, attributes: &str) {
        let members = format!(r#""{path}":{{"kind":"group","attributes":{{{attributes}}}}}"#);
        self.objects.push(members);
    }

    /// States what the array must hold: `elements` over its whole domain.
    fn array(&mut self, array: &DynArray, elements: &Elements) {
        self.objects.push(stated(array, elements));
    }

    /// Retains the committed generation, which holds `objects` beside the root.
    fn retain(&mut self, name: &str, objects: &[String]) {
        let generation = self.writer.retain(name).unwrap();
        self.snapshots.push(format!(
            r#"{{"generation":{generation},"label":"{name}","referenced":false,"objects":{{{ROOT},{}}}}}"#,
            objects.join(",")
        ));
    }

    fn finish(self) {
        self.writer.commit().unwrap();
        verify(&self.container);
        let snapshot = self.container.snapshot().unwrap();
        self.expect(&self.path, snapshot.generation(), &self.snapshots);
        // The same content in the two forms that are written whole.
        let go_on = |_, _| ControlFlow::Continue(());
        let beside = |form: &str| {
            let name = self.path.file_stem().unwrap().to_str().unwrap();
            self.path.with_file_name(format!("{name}-{form}.orth"))
        };
        let copy = CopyOptions::new();
        snapshot.copy_to(beside("copy"), copy, go_on).unwrap();
        self.expect(&beside("copy"), snapshot.generation() + 2, &[]);
        let archive = ArchiveOptions::new([7; 16]);
        snapshot
            .archive_to(beside("archive"), archive, go_on)
            .unwrap();
        self.expect(&beside("archive"), 2, &[]);
    }

    /// What must be read from the container at `path`.
    fn expect(&self, path: &Path, generation: u64, snapshots: &[String]) {
        let mut text = format!(
            r#"{{"schema":"orthant/vector/1","generation":{generation},"other_slot":{{"state":"valid"}},"ignored_tail_bytes":0,"unconfirmed":false,"#,
        );
        write!(text, r#""snapshots":[{}],"#, snapshots.join(",")).unwrap();
        write!(text, r#""objects":{{{}}}}}"#, self.objects.join(",")).unwrap();
        std::fs::write(path.with_extension("json"), text).unwrap();
    }
}

/// What must be read of an array that holds `elements` over its whole domain.
fn stated(array: &DynArray, elements: &Elements) -> String {
    let data_type = array.data_type();
    let is_time = matches!(
        data_type,
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. }
    );
    let values = match elements {
        // In the schema a time is its count, whatever a library shows.
        Elements::Fixed(bytes) if is_time => {
            let count = |b: &[u8; 8]| match i64::from_le_bytes(*b) {
                i64::MIN => r#""NaT""#.to_owned(),
                n => n.to_string(),
            };
            let counts: Vec<_> = bytes.as_chunks::<8>().0.iter().map(count).collect();
            format!("[{}]", counts.join(","))
        }
        Elements::Fixed(bytes) => {
            let n = (bytes.len() / data_type.item_size().unwrap()) as u64;
            let flat = TypedArray::new(data_type.clone(), vec![n], bytes.clone()).unwrap();
            flat.to_json().to_string()
        }
        Elements::Variable(items) if data_type == DataType::String => {
            let texts = items.iter().map(|i| std::str::from_utf8(i).unwrap());
            serde_json::to_string(&texts.collect::<Vec<_>>()).unwrap()
        }
        Elements::Variable(items) => {
            let base64 = |i: &[u8]| match i {
                [] => "",
                [0] => "AA==",
                [0, 255] => "AP8=",
                other => panic!("{other:?}"),
            };
            let texts = items.iter().map(|i| base64(i));
            serde_json::to_string(&texts.collect::<Vec<_>>()).unwrap()
        }
    };
    let chunks = array.chunks().unwrap().into_iter().map(|c| {
        let kind = match c.state {
            ChunkState::Stored { .. } => "extent",
            ChunkState::Constant => "constant",
            ChunkState::DeclaredFill => "fill",
        };
        format!(r#"{{"coord":{:?},"kind":"{kind}"}}"#, c.coord)
    });
    let chunks = chunks.collect::<Vec<_>>().join(",");
    let bounds: Vec<[i64; 2]> = array
        .domain()
        .unwrap()
        .bounds()
        .iter()
        .map(|b| [b.0, b.1])
        .collect();
    format!(
        r#""{}":{{"kind":"array","dtype":{},"domain":{bounds:?},"chunks":[{chunks}],"values":{values}}}"#,
        array.path(),
        data_type.to_json(),
    )
}

fn types() -> Vec<DataType> {
    vec![
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
        DataType::RawBytes { length: 3 },
        DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        },
        DataType::Timedelta64 {
            unit: TimeUnit::Nanosecond,
            scale: 25,
        },
        DataType::String,
        DataType::Bytes,
    ]
}

/// Bytes of a float that is narrower than 64 bits.
fn short_float(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Float16 | DataType::Bfloat16 => Some(2),
        DataType::Float32 | DataType::Complex64 => Some(4),
        _ => None,
    }
}

/// Every type at negative coordinates, ragged at both edges: stored, constant, declared and absent chunks.
fn write_types(folder: &Path) {
    let mut out = Written::new(folder, "types");
    for (i, data_type) in types().into_iter().enumerate() {
        let spec = DynArraySpec::new(data_type.clone(), region![-9..14]).chunks([4]);
        let a = out
            .writer
            .create_dyn_array(&format!("t{i:02}"), &spec)
            .unwrap();
        let mut block = a.read(region![-9..3]).unwrap();
        let item = data_type.item_size();
        match &mut block.elements {
            Elements::Fixed(bytes) => {
                for (k, b) in bytes.iter_mut().enumerate() {
                    let small = u8::try_from(k % 120).unwrap();
                    *b = match short_float(&data_type) {
                        // Halves and powers of two, so that every reader writes them alike: NaNs with payloads and
                        // the shortest digits are the golden files' business.
                        Some(unit) if k % unit == unit - 1 => 0x3F + small % 3,
                        Some(_) => 0,
                        None if data_type == DataType::Bool => small % 2,
                        None => small / 2,
                    };
                }
            }
            Elements::Variable(items) => {
                let text = data_type == DataType::String;
                for (k, x) in items.iter_mut().enumerate() {
                    *x = match (text, k % 3) {
                        (true, n) => ["", "a\n\"", "ä日"][n].as_bytes().into(),
                        (false, n) => [0, 255][..n].into(),
                    };
                }
            }
        }
        a.write(region![-9..3], &block).unwrap();
        let one = match (&data_type, item) {
            (DataType::Bool, _) => vec![1],
            (_, Some(n)) => (1..=n)
                .map(|k| match short_float(&data_type) {
                    Some(unit) => 0x42 * u8::from(k % unit == 0),
                    None => 2,
                })
                .collect(),
            (DataType::String, None) => b"x".to_vec(),
            (_, None) => vec![0],
        };
        a.write_scalar_bytes(region![4..8], &one).unwrap();
        a.write_fill(region![8..12]).unwrap();
        out.writer.commit().unwrap();
        let mut want = a.read(Region::all()).unwrap().elements;
        // What was put in, not what came out.
        match (&mut want, &block.elements) {
            (Elements::Fixed(all), Elements::Fixed(part)) => {
                all[..part.len()].copy_from_slice(part);
                let n = item.unwrap();
                all[13 * n..17 * n].copy_from_slice(&one.repeat(4));
                let fill = a.fill_bytes();
                all[12 * n..13 * n].copy_from_slice(&fill);
                all[17 * n..].copy_from_slice(&fill.repeat(6));
            }
            (Elements::Variable(all), Elements::Variable(part)) => {
                all[..part.len()].clone_from_slice(part);
                all[13..17].fill(one.as_slice().into());
                all[17..].fill(a.fill_bytes().into());
            }
            _ => unreachable!("one type"),
        }
        out.array(&a, &want);
    }
    out.finish();
}

/// One array for each pipeline, with shards and without, overwritten in part over several commits.
fn write_codecs(folder: &Path) {
    let mut out = Written::new(folder, "codecs");
    let pipelines: Vec<Vec<Codec>> = vec![
        Codec::raw_profile(),
        vec![Codec::bytes_big_endian()],
        vec![Codec::transpose([1, 0])],
        vec![Codec::delta()],
        vec![Codec::shuffle()],
        vec![Codec::lz4()],
        vec![Codec::zstd(3)],
        vec![Codec::zlib(6)],
        vec![Codec::gzip(5)],
        vec![Codec::crc32c()],
        vec![Codec::fletcher32()],
        vec![
            Codec::transpose([1, 0]),
            Codec::delta(),
            Codec::bytes_big_endian(),
            Codec::shuffle(),
            Codec::zstd(1),
            Codec::crc32c(),
        ],
    ];
    for (i, codecs) in pipelines.into_iter().enumerate() {
        for sharded in [false, true] {
            let mut spec = ArraySpec::<i32>::new(region![-7..6, -2..9])
                .chunks([3, 4])
                .origin([1, -1])
                .fill(-1)
                .codecs(codecs.clone());
            if sharded {
                spec = spec.shards([6, 4]);
            }
            let name = format!("c{i:02}{}", if sharded { "s" } else { "" });
            let a = out.writer.create_array(&name, spec).unwrap();
            let mut want = vec![-1; 13 * 11];
            for round in 0..3_i32 {
                let (lo, hi) = (-7 + i64::from(round), 4 - i64::from(round));
                let n = usize::try_from(hi - lo).unwrap() * 8;
                let cells: Vec<i32> = (0..n).map(|k| k as i32 * 3 + round * 1000).collect();
                a.write_slice(region![lo..hi, 0..8], &cells).unwrap();
                for (k, v) in cells.iter().enumerate() {
                    let (y, x) = (k / 8 + usize::try_from(round).unwrap(), k % 8 + 2);
                    want[y * 11 + x] = *v;
                }
                out.writer.commit().unwrap();
            }
            let bytes = want.iter().flat_map(|v| v.to_le_bytes()).collect();
            out.array(&a, &Elements::Fixed(bytes));
        }
    }
    out.finish();
}

/// Deep groups, attributes of every content, many commits, moves and removals.
fn write_groups(folder: &Path) {
    let mut out = Written::new(folder, "groups");
    let mut path = String::new();
    for k in 0..20 {
        write!(path, "/g{k}").unwrap();
        out.writer.create_group(&path).unwrap();
        out.writer.commit().unwrap();
    }
    for k in 0..60 {
        let name = format!("passing{}", k % 7);
        if out.writer.root().kind(&name).unwrap().is_some() {
            out.writer.remove(&name, true).unwrap();
        } else {
            out.writer.create_group(&name).unwrap();
        }
        out.writer.message(&format!("commit {k}")).unwrap();
        out.writer.commit().unwrap();
    }
    for k in 0..7 {
        let name = format!("passing{k}");
        if out.writer.root().kind(&name).unwrap().is_some() {
            out.writer.remove(&name, true).unwrap();
        }
    }
    out.writer.rename("/g0/g1", "moved").unwrap();
    out.group("/g0", "");
    let mut path = "/moved".to_owned();
    let attributes = out.writer.group("moved").unwrap().attributes();
    attributes.set("text", "ü\0\n").unwrap();
    attributes.set("none", Json::Null).unwrap();
    attributes.set("yes", true).unwrap();
    attributes.set("i", i64::MIN).unwrap();
    attributes.set("u", u64::MAX).unwrap();
    attributes.set("f", [1.5_f32, -0.0]).unwrap();
    attributes.set("long", "é".repeat(3000).as_str()).unwrap();
    let mixed = Tree::List(vec![
        Tree::I64(-1),
        Tree::F64(0.5),
        Tree::Text("ü".to_owned()),
        Tree::Map(vec![("k".to_owned(), Tree::Bool(false))]),
    ]);
    attributes
        .set("mixed", AttributeValue::from(mixed))
        .unwrap();
    attributes.set("gone", 1_i64).unwrap();
    attributes.remove("gone").unwrap();
    let long = "é".repeat(3000);
    out.group(
        "/moved",
        &format!(
            r#""text":{{"content":"json","value":"ü\u0000\n"}},"none":{{"content":"json","value":null}},
            "yes":{{"content":"json","value":true}},
            "i":{{"content":"typed","dtype":"int64","shape":[],"values":[-9223372036854775808]}},
            "u":{{"content":"typed","dtype":"uint64","shape":[],"values":[18446744073709551615]}},
            "f":{{"content":"typed","dtype":"float32","shape":[2],"values":[1.5,-0.0]}},
            "long":{{"content":"json","value":"{long}"}},
            "mixed":{{"content":"tagged","value":[{{"int64":-1}},{{"float64":0.5}},"ü",{{"map":[["k",false]]}}]}}"#
        ),
    );
    for k in 2..20 {
        write!(path, "/g{k}").unwrap();
        out.group(&path, "");
    }
    out.finish();
}

/// Ranks 0 to 4 far below zero, grown, cut and moved over several commits; the model is a formula of the coordinate.
fn write_growth(folder: &Path) {
    let mut out = Written::new(folder, "growth");
    for rank in 0..5_usize {
        let base = -(1_i64 << 60) * i64::try_from(rank % 3).unwrap() - 5;
        let ranges = (0..rank).map(|axis| base..base + 3 + axis as i64);
        let spec = DynArraySpec::new(DataType::Int64, Domain::new(ranges).unwrap())
            .chunks(vec![2; rank])
            .key_order((0..rank).rev().map(|a| u8::try_from(a).unwrap()));
        let a = out
            .writer
            .create_dyn_array(&format!("r{rank}"), &spec)
            .unwrap();
        let formula = |at: &[i64]| {
            at.iter().fold(7_i64, |v, x| {
                v.wrapping_mul(31).wrapping_add(x - base + 100)
            })
        };
        let points = |d: &Domain| {
            d.ranges().fold(vec![vec![]], |points, r| {
                let more = |p: &Vec<i64>| {
                    r.clone()
                        .map(|x| [p.as_slice(), &[x]].concat())
                        .collect::<Vec<_>>()
                };
                points.iter().flat_map(more).collect()
            })
        };
        let bytes = |d: &Domain| {
            points(d)
                .iter()
                .flat_map(|p| formula(p).to_le_bytes())
                .collect::<Vec<u8>>()
        };
        for step in 0..4 {
            if rank > 0 && step > 0 {
                let axis = step % rank;
                a.grow(axis, 3, 1).unwrap();
                a.trim(axis, 1, 2).unwrap();
            }
            let d = a.domain().unwrap();
            let block = Block {
                data_type: DataType::Int64,
                shape: d.shape(),
                elements: Elements::Fixed(bytes(&d)),
            };
            a.write(Region::all(), &block).unwrap();
            out.writer.commit().unwrap();
        }
        let d = a.domain().unwrap();
        out.array(&a, &Elements::Fixed(bytes(&d)));
    }
    out.finish();
}

/// Overwritten so often that all space has been used several times, beside two generations that are kept.
fn write_history(folder: &Path) {
    let mut out = Written::new(folder, "history");
    let spec = DynArraySpec::new(DataType::Int32, region![-10..30, 0..100]).chunks([8, 100]);
    let spec = spec.codecs(Codec::raw_profile());
    let arrays: Vec<DynArray> = (0..6)
        .map(|i| {
            out.writer
                .create_dyn_array(&format!("a{i}"), &spec)
                .unwrap()
        })
        .collect();
    let of = |turn: i32| {
        Elements::Fixed(
            (0..4000)
                .flat_map(|i| (turn * 4000 + i).to_le_bytes())
                .collect(),
        )
    };
    let all = |turn: i32| -> Vec<String> { arrays.iter().map(|a| stated(a, &of(turn))).collect() };
    for turn in 0..40 {
        for array in &arrays {
            let block = Block {
                data_type: DataType::Int32,
                shape: vec![40, 100],
                elements: of(turn),
            };
            array.write(Region::all(), &block).unwrap();
            out.writer.message(&format!("turn {turn}")).unwrap();
            out.writer.commit().unwrap();
        }
        if turn == 7 || turn == 23 {
            out.retain(&format!("after turn {turn}"), &all(turn));
        }
    }
    out.objects.extend(all(39));
    let path = out.path.clone();
    out.finish();
    // 96 kB live, twice that kept, and room for some commits of 16 kB: not the 3.8 MB that were written.
    let len = std::fs::metadata(path).unwrap().len();
    assert!(len < 900_000, "{len}");
}

#[test]
fn what_is_written_here_is_whole_and_states_what_it_holds() {
    let own = tempfile::tempdir().unwrap();
    let folder = match std::env::var_os("ORTHANT_WRITE_TO") {
        Some(folder) => PathBuf::from(folder),
        None => own.path().to_owned(),
    };
    write_types(&folder);
    write_codecs(&folder);
    write_groups(&folder);
    write_growth(&folder);
    write_history(&folder);
    for name in ["types", "codecs", "groups", "growth", "history"] {
        let expectation = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&expectation).unwrap();
        assert!(parsed["objects"].as_object().unwrap().len() >= 6, "{name}");
    }
}
