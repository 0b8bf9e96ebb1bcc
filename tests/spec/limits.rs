//! Every limit, in files whose checksums are right: what is at it passes, what is one above does not, under the default and
//! under the preset for files from strangers.
//!
//! The limits stand in `format-spec/limits.md`. Writing at and above them is tested where each thing is written.

use orthant::{Elements, Error, ErrorKind, Limits, OpenOptions, Region};

use crate::hostile::cases::{BAD, changed_document, spread, with, with_document, with_payload};
use crate::hostile::forge::{Forge, GROUP, RAW, Root, array_document, child, inline, key, node};

/// The default limits and the preset, with a name for messages.
fn presets() -> [(&'static str, Limits); 2] {
    [
        ("default", Limits::default()),
        ("untrusted", Limits::untrusted()),
    ]
}

fn open(limits: &Limits, bytes: Vec<u8>) -> Result<orthant::Snapshot, Error> {
    let options = OpenOptions::new().limits(limits.clone());
    options.from_bytes(bytes)?.snapshot()
}

/// The first element of `bad`.
fn first(limits: &Limits, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let array = open(limits, bytes)?.dyn_array("bad")?;
    let rank = array.domain()?.ranges().count();
    let one = array.domain()?;
    let corner = one
        .ranges()
        .map(|r| orthant::RegionItem::from(r.start..r.start + 1));
    let region = Region::from_items(corner.take(rank));
    match array.read(region)?.elements {
        Elements::Fixed(bytes) => Ok(bytes),
        Elements::Variable(_) => panic!("elements of a fixed size"),
    }
}

/// `under` passes and `over` is refused with that kind.
fn limit<T: std::fmt::Debug>(
    what: &str,
    under: Result<T, Error>,
    over: Result<T, Error>,
    kind: ErrorKind,
) {
    if let Err(e) = under {
        panic!("{what}: at the limit: {e}");
    }
    match over {
        Err(e) => assert_eq!(e.kind(), kind, "{what}: {e}"),
        Ok(found) => panic!("{what}: above the limit: {found:?}"),
    }
}

/// Both sides of a cap that the caller sets.
fn cap<T: std::fmt::Debug>(what: &str, read: impl Fn(u64) -> Result<T, Error>, at: u64) {
    limit(what, read(at), read(at + 1), ErrorKind::LimitExceeded);
}

/// No chunk of `bad` is stored.
fn without_chunks(document: &str) -> Vec<u8> {
    with(|forge, entries| {
        entries.retain(|k, _| !k.starts_with(&key(8, BAD, &[])));
        let blob = if document.len() <= 1024 {
            inline(document)
        } else {
            forge.put(document.as_bytes()).blob(0)
        };
        entries.insert(key(2, BAD, &[]), blob);
    })
}

#[test]
fn a_decoded_chunk() {
    for (name, limits) in presets() {
        let read = |n: u64| {
            let domain = [(0, i64::MAX / 4)];
            first(&limits, without_chunks(&spread(&domain, &format!("[{n}]"))))
        };
        cap(name, read, limits.decoded_chunk_bytes);
    }
}

#[test]
fn inner_chunks_of_a_shard() {
    for (name, limits) in presets() {
        let read = |n: u64| {
            let codecs = format!(
                r#"[{{"name":"sharding_indexed","configuration":{{"chunk_shape":[1],"codecs":{RAW},"index_codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}],"index_location":"end"}}}}]"#
            );
            let domain = [(0, 1 << 30)];
            let document = array_document("\"uint8\"", "0", &domain, &format!("[{n}]"), &codecs);
            first(&limits, without_chunks(&document))
        };
        cap(name, read, limits.inner_chunks);
    }
}

#[test]
fn the_window_of_a_zstd_frame() {
    let zstd = r#"[{"name":"bytes"},{"name":"zstd","configuration":{"level":3,"checksum":false}}]"#;
    for (name, limits) in presets() {
        // A power of two, and the next larger window that a frame can ask for.
        let power = limits.zstd_window_bytes.ilog2() as u8;
        let read = |mantissa: u8| {
            let window = ((power - 10) << 3) | mantissa;
            let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, window, 0x21, 0, 0];
            frame.extend([1, 2, 3, 4]);
            first(&limits, with_payload(zstd, &frame))
        };
        assert_eq!(read(0).unwrap(), [1]);
        limit(name, read(0), read(1), ErrorKind::LimitExceeded);
    }
}

#[test]
fn one_read_without_the_callers_buffer() {
    let read = |limits: &Limits, n: u64| {
        let domain = [(0, i64::try_from(n).unwrap())];
        let array = open(limits, without_chunks(&spread(&domain, "[65536]")))?.dyn_array("bad")?;
        array.read(Region::all()).map(|block| block.shape)
    };
    let untrusted = Limits::untrusted();
    cap("untrusted", |n| read(&untrusted, n), untrusted.read_bytes);
    let mut small = Limits::default();
    let above = read(&small, small.read_bytes + 1).unwrap_err();
    assert_eq!(above.kind(), ErrorKind::LimitExceeded, "{above}");
    small.read_bytes = 1000;
    cap("a thousand", |n| read(&small, n), 1000);
}

#[test]
fn bytes_of_a_document_or_attribute() {
    for (name, limits) in presets() {
        let document = |n: u64| {
            let empty = changed_document("{\"zarr", "{\"x\":\"\",\"zarr").len();
            let text = "y".repeat(usize::try_from(n).unwrap() - empty);
            let text = changed_document("{\"zarr", &format!("{{\"x\":\"{text}\",\"zarr"));
            first(&limits, with_document(text.as_bytes()))
        };
        cap(name, document, limits.value_bytes);
        let attribute = |n: u64| {
            let text = format!("\"{}\"", "y".repeat(usize::try_from(n).unwrap() - 2));
            let bytes = with(|forge, entries| {
                let blob = forge.put(text.as_bytes()).blob(0);
                entries.insert(key(3, BAD, b"a"), blob);
            });
            open(&limits, bytes)?
                .dyn_array("bad")?
                .attributes()
                .get("a")
                .map(|_| ())
        };
        cap(name, attribute, limits.value_bytes);
    }
}

#[test]
fn nesting_of_json_and_of_values() {
    for (name, limits) in presets() {
        let lists = |n: u64| {
            let n = usize::try_from(n).unwrap();
            "[".repeat(n) + &"]".repeat(n)
        };
        let document = |n: u64| {
            let text = format!("{{\"x\":{},\"zarr", lists(n - 1));
            first(
                &limits,
                with_document(changed_document("{\"zarr", &text).as_bytes()),
            )
        };
        cap(name, document, limits.json_depth as u64);
        let attribute = |value: Vec<u8>| {
            let bytes = with(|_, entries| {
                entries.insert(key(3, BAD, b"a"), value);
            });
            open(&limits, bytes)?
                .dyn_array("bad")?
                .attributes()
                .get("a")
                .map(|_| ())
        };
        let json = |n: u64| attribute(inline(&lists(n)));
        cap(name, json, limits.json_depth as u64);
        let tree = |n: u64| {
            let mut value = vec![0, 2];
            (0..n).for_each(|_| value.extend([7, 1, 0, 0, 0]));
            value.push(0);
            attribute(value)
        };
        cap(name, tree, limits.json_depth as u64);
    }
}

#[test]
fn attributes_of_one_object() {
    for (name, limits) in presets() {
        let list = |n: u64| {
            let bytes = with(|_, entries| {
                for i in 0..n {
                    entries.insert(key(3, BAD, format!("a{i}").as_bytes()), inline("1"));
                }
            });
            let list = open(&limits, bytes)?
                .dyn_array("bad")?
                .attributes()
                .list()?;
            Ok(list.len())
        };
        cap(name, list, limits.attributes);
    }
}

#[test]
fn paths() {
    for (name, limits) in presets() {
        let deep = with(|_, entries| {
            for id in 10..=140 {
                entries.insert(key(2, id, &[]), inline(GROUP));
                entries.extend([child(if id == 10 { 0 } else { id - 1 }, "g", id, 1)]);
            }
        });
        let snapshot = open(&limits, deep).unwrap();
        let group = |n: u64| {
            let path = vec!["g"; usize::try_from(n).unwrap()].join("/");
            snapshot.group(&path).map(|_| ())
        };
        cap(name, group, limits.path_depth as u64);
        // 16 names of 250 bytes, and one that makes up the length; none of them is there, which is another error.
        let long = |n: u64| {
            let mut path = vec!["n".repeat(250); 16].join("/");
            path.push('/');
            path.push_str(&"m".repeat(usize::try_from(n).unwrap() - path.len()));
            match snapshot.group(&path) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
                other => other.map(|_| ()),
            }
        };
        cap(name, long, limits.path_bytes as u64);
    }
}

#[test]
fn memory_for_metadata_is_a_cache_and_never_an_error() {
    let mut limits = Limits::untrusted();
    limits.node_cache_bytes = 0;
    assert_eq!(first(&limits, with(|_, _| {})).unwrap(), [11]);
}

/// What the format itself fixes is the same for everybody.
#[test]
fn what_the_format_fixes() {
    let limits = Limits::default();
    let fixed = |what: &str, read: &dyn Fn(u64) -> Result<Vec<u8>, Error>, at: u64, kind| {
        limit(what, read(at), read(at + 1), kind);
    };
    let extra = |k: Vec<u8>, v: Vec<u8>| {
        first(
            &limits,
            with(|_, entries| {
                entries.insert(k, v);
            }),
        )
    };
    let bytes = |n: u64| vec![0xF0; usize::try_from(n).unwrap()];
    fixed(
        "key",
        &|n| extra(bytes(n), vec![1]),
        512,
        ErrorKind::Corrupt,
    );
    fixed(
        "value",
        &|n| extra(vec![0xF0], bytes(n)),
        2048,
        ErrorKind::Corrupt,
    );
    let inline_bytes = |n: u64| {
        let text = format!("\"{}\"", "y".repeat(usize::try_from(n).unwrap() - 2));
        let snapshot = open(
            &limits,
            with(|_, entries| {
                entries.insert(key(3, BAD, b"a"), inline(&text));
            }),
        )?;
        snapshot.dyn_array("bad")?.attributes().get("a")?;
        Ok(Vec::new())
    };
    fixed("inline blob", &inline_bytes, 1024, ErrorKind::Corrupt);
    let name = |n: u64| {
        let name = "n".repeat(usize::try_from(n).unwrap());
        let snapshot = open(
            &limits,
            with(|_, entries| {
                entries.insert(key(2, 9, &[]), inline(GROUP));
                entries.extend([child(0, &name, 9, 1)]);
            }),
        )?;
        snapshot.walk()?.try_for_each(|m| m.map(|_| ()))?;
        Ok(Vec::new())
    };
    fixed("object name", &name, 255, ErrorKind::Corrupt);
    let attribute = |n: u64| {
        let snapshot = open(
            &limits,
            with(|_, entries| {
                let name = "n".repeat(usize::try_from(n).unwrap());
                entries.insert(key(3, BAD, name.as_bytes()), inline("1"));
            }),
        )?;
        snapshot.dyn_array("bad")?.attributes().list()?;
        Ok(Vec::new())
    };
    fixed("attribute name", &attribute, 255, ErrorKind::Corrupt);
    let rank = |n: u64| {
        let n = usize::try_from(n).unwrap();
        let ones = format!("[{}]", vec!["1"; n].join(","));
        first(&limits, without_chunks(&spread(&vec![(0, 1); n], &ones)))
    };
    fixed("rank", &rank, 32, ErrorKind::LimitExceeded);
    let codecs = |n: u64| {
        let more = ",{\"name\":\"crc32c\"}".repeat(usize::try_from(n).unwrap() - 1);
        let list = format!("[{{\"name\":\"bytes\"}}{more}]");
        first(&limits, without_chunks(&changed_document(RAW, &list)))
    };
    fixed("codecs", &codecs, 8, ErrorKind::Corrupt);
    let extent = |n: u64| {
        let domain = [(0, 1), (0, 1)];
        // The elements are too many for a chunk at once above: so the other axis is of no length at all.
        first(
            &limits,
            without_chunks(&spread(&domain, &format!("[1,{n}]"))),
        )
    };
    let e = extent(1 << 32).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    let e = extent((1 << 32) - 1).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
    let upper = |n: u64| {
        let domain = [(0, i64::try_from(n).unwrap())];
        first(&limits, without_chunks(&spread(&domain, "[4]")))
    };
    fixed("upper bound", &upper, (1 << 62) - 1, ErrorKind::Corrupt);
    let lower = |n: u64| {
        let domain = [(-i64::try_from(n).unwrap(), 0)];
        first(&limits, without_chunks(&spread(&domain, "[4]")))
    };
    fixed("lower bound", &lower, (1 << 62) - 2, ErrorKind::Corrupt);
    let id = |n: u64| extra(key(2, i64::try_from(n).unwrap(), &[]), inline(GROUP));
    assert_eq!(id((1 << 61) - 1).unwrap(), [11]);
}

#[test]
fn the_length_of_a_node() {
    // One leaf of exactly 64 KiB, filled with private entries, and one of eight bytes more.
    let read = |more: usize| {
        let mut forge = Forge::new();
        let mut entries = crate::hostile::cases::base(&mut forge);
        let len = |entries: &crate::hostile::forge::Entries| {
            let all: Vec<_> = entries
                .iter()
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            node(0, &all).len()
        };
        let mut n = 0_u16;
        while len(&entries) < 65_536 - 2 * 2048 {
            n += 1;
            let [low, high] = n.to_le_bytes();
            entries.insert(vec![0xE1, high, low], vec![7; 2000]);
        }
        entries.insert(vec![0xE2], vec![7; 1000]);
        let left = 65_536 + more - len(&entries) - 7;
        assert!(left <= 2048 + 1048, "{left}");
        entries.insert(vec![0xE3], vec![7; left.min(2048)]);
        let grown = vec![7; 1000 + left.saturating_sub(2048)];
        entries.insert(vec![0xE2], grown);
        assert_eq!(len(&entries), 65_536 + more);
        let all: Vec<_> = entries.into_iter().collect();
        let place = forge.node(&node(0, &all));
        let root = Root {
            reference: place.reference(all.len() as u64),
            level: 0,
        };
        first(&Limits::default(), forge.finish(&root))
    };
    limit("node", read(0), read(8), ErrorKind::Corrupt);
}
