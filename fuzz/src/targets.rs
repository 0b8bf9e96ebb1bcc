//! What each fuzz target does with its bytes: an error is a right answer, a wrong value, a panic or a hang is not.
//!
//! Holds [`TARGETS`]. The fuzzer runs one of them at a time; the tests replay seeds and found inputs through all. Must not
//! depend on the fuzzer.

use std::ops::ControlFlow;

use orthant::testing::parse::{self, Spelling};
use orthant::testing::{Raw, RawPipeline, checksum, with_right_checksums};
use orthant::{
    ArraySpec, CheckLevel, Codec, CodecSpec, Container, DataType, Json, Member, ObjectKind,
    OpenOptions, Region, RegionItem, Snapshot, region,
};

use crate::disk::Random;

/// A target: what it is called, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets that need the library alone.
pub const TARGETS: [Target; 11] = [
    ("open", open),
    ("checksums", checksums),
    ("node", node),
    ("metadata", metadata),
    ("records", records),
    ("decoders", decoders),
    ("codecs", codecs),
    ("shard", shard),
    ("selection", selection),
    ("model", model),
    ("crash", crash),
];

/// Elements that are read of one array, and objects that are looked at: enough to get everywhere, not to wait for it.
const ELEMENTS: i64 = 16;
const OBJECTS: usize = 64;

/// Any bytes: opened as a stranger's file, walked, described, checked, and read in part.
pub fn open(bytes: &[u8]) {
    let container = OpenOptions::untrusted().from_bytes(bytes.to_vec());
    if let Ok(snapshot) = container.and_then(|container| container.snapshot()) {
        let _ = everything(&snapshot);
        let _ = snapshot.check(CheckLevel::Data, |_, _| ControlFlow::Continue(()), drop);
    }
}

/// As `open`, behind the checksums of header, slots, records and roots, which chance never gets right.
pub fn checksums(bytes: &[u8]) {
    open(&with_right_checksums(bytes.to_vec()));
}

fn everything(snapshot: &Snapshot) -> orthant::Result<()> {
    let _ = snapshot.root().attributes().list();
    for member in snapshot.walk()?.take(OBJECTS) {
        let _ = member.and_then(|member| object(snapshot, &member));
    }
    Ok(())
}

fn object(snapshot: &Snapshot, member: &Member) -> orthant::Result<()> {
    if member.kind == ObjectKind::Group {
        let _ = snapshot.group(&member.path)?.attributes().list();
        return Ok(());
    }
    let array = snapshot.dyn_array(&member.path)?;
    let _ = array.attributes().list();
    let domain = array.domain()?;
    let corner = domain
        .ranges()
        .map(|axis| axis.start..axis.end.min(axis.start.saturating_add(ELEMENTS)));
    let region = corner.map(RegionItem::from);
    let _ = array.read(Region::from_items(region));
    let _ = array.chunks_in(Region::all());
    Ok(())
}

/// A node of the index: what is accepted has one spelling, and each of its keys is found.
pub fn node(bytes: &[u8]) {
    one_spelling("node", parse::node(bytes));
}

/// JSON, documents and typed values: what is accepted means the same when it is written again.
pub fn metadata(bytes: &[u8]) {
    for (name, parse) in parse::METADATA {
        if let Ok(Spelling::Lost(what)) = parse(bytes) {
            panic!("{name}: {what} is lost");
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_ne!(parse::path(text).ok(), Some(false), "{text:?}");
    }
}

/// Headers, slots, records and keys: what is accepted has one spelling.
pub fn records(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else {
        return;
    };
    let (name, parse) = parse::RECORDS[usize::from(which) % parse::RECORDS.len()];
    one_spelling(name, parse(bytes));
}

fn one_spelling(name: &str, outcome: orthant::Result<Spelling>) {
    if let Ok(spelling) = outcome {
        assert_eq!(spelling, Spelling::Same, "{name}");
    }
}

/// Each decoder by itself, on any payload.
pub fn decoders(bytes: &[u8]) {
    let single: [fn() -> Codec; 9] = [
        Codec::lz4,
        || Codec::zstd(3),
        || Codec::zlib(6),
        || Codec::gzip(5),
        Codec::crc32c,
        Codec::fletcher32,
        Codec::shuffle,
        Codec::delta,
        || Codec::transpose([1, 0]),
    ];
    let Some((&which, payload)) = bytes.split_first() else {
        return;
    };
    let which = usize::from(which) % (single.len() + BLOSC_LENS.len());
    match single.get(which) {
        Some(codec) => payload_of(&[codec()], &DataType::Uint16, [16, 16], payload),
        None => {
            let len = BLOSC_LENS[which - single.len()];
            payload_of(&[blosc()], &DataType::Uint8, [1, len], payload);
        }
    }
}

/// Decoded lengths of the foreign frames that are seeds, in the order in which `seeds` numbers them.
const BLOSC_LENS: [u64; 3] = [1200, 2504, 900];

/// Blosc; which of its parts a frame is of the frame says itself.
fn blosc() -> Codec {
    let spec = CodecSpec::new("blosc")
        .with("cname", Json::text("lz4"))
        .with("shuffle", Json::text("shuffle"))
        .with("typesize", Json::I64(4));
    Codec::from(spec)
}

/// Any pipeline on any payload.
pub fn codecs(bytes: &[u8]) {
    let Some((head, payload)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let types = [
        DataType::Bool,
        DataType::Uint8,
        DataType::Int16,
        DataType::Float32,
        DataType::Int64,
        DataType::Complex128,
        DataType::RawBytes { length: 3 },
    ];
    let pick = |byte: u8, n: usize| usize::from(byte) % n;
    let mut chain = Vec::new();
    if head[1] & 1 == 1 {
        chain.push(Codec::transpose([1, 0]));
    }
    if head[1] & 2 == 2 {
        chain.push(Codec::delta());
    }
    if head[1] & 4 == 4 {
        chain.push(Codec::bytes_big_endian());
    }
    if head[1] & 8 == 8 {
        chain.push(Codec::shuffle());
    }
    chain.extend(match head[2] % 7 {
        0 => None,
        1 => Some(Codec::lz4()),
        2 => Some(Codec::zstd(1)),
        3 => Some(Codec::zlib(1)),
        4 => Some(Codec::gzip(1)),
        5 => Some(blosc()),
        _ => Some(Codec::fletcher32()),
    });
    if head[1] & 16 == 16 {
        chain.push(Codec::crc32c());
    }
    let shape = [1 + u64::from(head[3] % 7), 1 + u64::from(head[3] / 7)];
    payload_of(&chain, &types[pick(head[0], types.len())], shape, payload);
}

/// Decodes a payload; what is accepted is encoded and decoded to the same elements, and no byte of the buffer is left as it
/// was before.
fn payload_of(codecs: &[Codec], data_type: &DataType, shape: [u64; 2], payload: &[u8]) {
    let Ok(pipeline) = RawPipeline::new(codecs, data_type, &shape) else {
        return;
    };
    let item = data_type.item_size().unwrap_or(0);
    let count = shape.iter().product::<u64>();
    let len = usize::try_from(count).unwrap_or(0) * item;
    let (mut one, mut other) = (vec![0x55; len], vec![0xAA; len]);
    let first = pipeline.decode(payload, &mut one).is_ok();
    assert_eq!(pipeline.decode(payload, &mut other).is_ok(), first);
    if first {
        assert_eq!(one, other, "a decoder left bytes of the buffer");
        let Ok(again) = pipeline.encode(&one) else {
            panic!("decoded elements do not encode");
        };
        let decoded = pipeline.decode(&again, &mut other);
        assert!(decoded.is_ok(), "an encoded payload does not decode");
        assert_eq!(one, other);
    }
}

/// Any bytes as the shard of an array: read whole, and inner chunk by inner chunk.
pub fn shard(bytes: &[u8]) {
    let Some((&which, payload)) = bytes.split_first() else {
        return;
    };
    let inner = [
        Codec::list("raw"),
        Codec::list("crc32c"),
        Codec::list("zstd:1"),
    ];
    let Ok(codecs) = &inner[usize::from(which) % inner.len()] else {
        unreachable!("these lists are right");
    };
    if let Some(read) = shard_container(codecs, which & 0x80 == 0, payload) {
        let mut whole_ok = true;
        let whole = read.read_vec(region![.., ..]);
        let whole = whole.unwrap_or_else(|_| {
            whole_ok = false;
            vec![0; 64]
        });
        let mut all_ok = true;
        for at in 0..16 {
            let (y, x) = (at / 4 * 2, at % 4 * 2);
            match read.read_vec(region![y..y + 2, x..x + 2]) {
                Ok(part) if whole_ok => {
                    let want = [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)]
                        .map(|(y, x)| whole[usize::try_from(y * 8 + x).unwrap_or(0)]);
                    assert_eq!(part, want);
                }
                Ok(_) => {}
                Err(_) => all_ok = false,
            }
        }
        assert!(all_ok || !whole_ok, "a part of a right shard is refused");
    }
}

/// An array of one shard, 4 x 4 inner chunks of 2 x 2; the index is given its checksum where `repair` asks for it.
fn shard_container(codecs: &[Codec], repair: bool, payload: &[u8]) -> Option<orthant::Array<u16>> {
    let container = Container::in_memory().ok()?;
    let writer = container.writer().ok()?;
    let spec = ArraySpec::<u16>::new(region![0..8, 0..8])
        .chunks([2, 2])
        .shards([8, 8])
        .codecs(codecs.to_vec());
    writer.create_array("a", spec).ok()?;
    writer.commit().ok()?;
    let mut payload = payload.to_vec();
    if repair && payload.len() >= 16 * 16 + 4 {
        let end = payload.len() - 4;
        let crc = checksum(&payload[end - 16 * 16..end]);
        payload[end..].copy_from_slice(&crc.to_le_bytes());
    }
    let raw = Raw::from_bytes(container.to_bytes().ok()?).ok()?;
    let writer = raw.writer().ok()?;
    writer.put_chunk(1, &[0, 0], &payload).ok()?;
    writer.commit().ok()?;
    raw.container().snapshot().ok()?.array("a").ok()
}

/// A selection as users write it, against a domain that starts below zero.
pub fn selection(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(region) = text.parse::<Region>() else {
        return;
    };
    let written = region.to_string();
    let again = written.parse::<Region>().ok();
    assert_eq!(
        again.as_ref(),
        Some(&region),
        "{text:?} is written {written:?}"
    );
    for domain in [region![-3..5, 0..7], region![-3..5], region![]] {
        let Ok(domain) = domain.to_domain() else {
            continue;
        };
        for clip in [false, true] {
            let Ok(inside) = region.within(&domain, clip) else {
                continue;
            };
            let twice = inside.within(&domain, false);
            assert_eq!(twice.ok().as_ref(), Some(&inside), "{text:?} in {domain}");
        }
    }
}

/// Operations on an array, chosen by the bytes, against a model of its elements.
pub fn model(bytes: &[u8]) {
    let steps = bytes.len().min(200) as u64 / 4;
    if let Ok(folder) = tempfile::tempdir() {
        crate::model::life(
            &mut Random::fed(bytes.to_vec(), 1),
            1 + steps,
            folder.path(),
        );
    }
}

/// Commits chosen by the bytes, and the power cut where they say: the last commit or the one in flight is there, whole.
pub fn crash(bytes: &[u8]) {
    crate::crash::some_images(&mut Random::fed(bytes.to_vec(), 2), 12);
}
