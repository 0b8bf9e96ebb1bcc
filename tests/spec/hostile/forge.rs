//! A builder of containers that are wrong on purpose, with right checksums everywhere.
//!
//! Holds [`Forge`], which lays down nodes, payloads, records, slots and a header as it is told, and seals them. Written from
//! the specification alone: it calls no encoder of the
//! library but the checksum. Must not judge what comes of reading.

use std::collections::BTreeMap;

/// Entries of an index, by key.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The uuid of everything forged.
const UUID: [u8; 16] = *b"a forged file !!";

/// CRC32C.
pub fn crc32c(bytes: &[u8]) -> u32 {
    orthant::testing::checksum(bytes)
}

/// An order-preserving signed number, as keys spell it.
pub fn vint(v: i64) -> Vec<u8> {
    let long = |m: u64| {
        let bytes = m.to_le_bytes();
        let len = (8 - m.leading_zeros() as usize / 8).max(1);
        let mut big: Vec<u8> = bytes[..len].to_vec();
        big.reverse();
        big
    };
    if (-120..=119).contains(&v) {
        return vec![(v + 128) as u8];
    }
    if v > 0 {
        let big = long((v - 120) as u64);
        return [&[0xF7 + big.len() as u8][..], &big].concat();
    }
    let big = long((-121_i128 - i128::from(v)) as u64);
    let inverted: Vec<u8> = big.iter().map(|b| !b).collect();
    [&[8 - big.len() as u8][..], &inverted].concat()
}

/// A key: a tag, an object id, and the rest.
pub fn key(tag: u8, id: i64, rest: &[u8]) -> Vec<u8> {
    [&[tag][..], &vint(id), rest].concat()
}

/// The key of a chunk.
pub fn chunk_key(id: i64, coords: &[i64]) -> Vec<u8> {
    let rest: Vec<u8> = coords.iter().flat_map(|c| vint(*c)).collect();
    key(8, id, &rest)
}

/// A directory entry.
pub fn child(parent: i64, name: &str, id: i64, kind: u8) -> (Vec<u8>, Vec<u8>) {
    let value = [vint(id), vec![kind]].concat();
    (key(1, parent, name.as_bytes()), value)
}

/// An inline blob of JSON.
pub fn inline(text: &str) -> Vec<u8> {
    [&[0, 0][..], text.as_bytes()].concat()
}

/// Where bytes lie, and their checksum.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub offset: u64,
    pub len: u64,
    pub crc: u32,
}

impl Place {
    /// The record of a stored chunk.
    pub fn record(&self) -> Vec<u8> {
        let mut r = self.offset.to_le_bytes().to_vec();
        r.extend((self.len as u32).to_le_bytes());
        r.extend(self.crc.to_le_bytes());
        r.extend([0; 4]);
        r
    }

    /// A blob in an extent.
    pub fn blob(&self, content: u8) -> Vec<u8> {
        let mut r = vec![2, content];
        r.extend(self.offset.to_le_bytes());
        r.extend((self.len as u32).to_le_bytes());
        r.extend((self.len as u32).to_le_bytes());
        r.extend(self.crc.to_le_bytes());
        r
    }

    /// A reference to a node with that many entries below.
    pub fn reference(&self, count: u64) -> Vec<u8> {
        let mut r = self.offset.to_le_bytes().to_vec();
        r.extend((self.len as u32).to_le_bytes());
        r.extend(self.crc.to_le_bytes());
        r.extend(count.to_le_bytes());
        r
    }
}

/// A root: its reference and level.
#[derive(Debug, Clone)]
pub struct Root {
    pub reference: Vec<u8>,
    pub level: u8,
}

/// A file in the making.
#[derive(Debug, Clone)]
pub struct Forge {
    pub bytes: Vec<u8>,
}

impl Forge {
    /// Header, slots and records take their places first.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; 0x3000 + 2 * 104],
        }
    }

    /// Lays bytes down at the next multiple of 8; their place as a record or blob names it.
    pub fn put(&mut self, bytes: &[u8]) -> Place {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let offset = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        Place {
            offset,
            len: bytes.len() as u64,
            crc: crc32fast::hash(bytes),
        }
    }

    /// Lays a sealed node down.
    pub fn node(&mut self, node: &[u8]) -> Place {
        let crc = u32::from_le_bytes(*node[28..].first_chunk().unwrap());
        Place {
            crc,
            ..self.put(node)
        }
    }

    /// Packs entries into a tree of right nodes.
    pub fn tree(&mut self, entries: &Entries) -> Root {
        let all: Vec<(Vec<u8>, Vec<u8>)> = entries
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let (mut level, mut counts) = (0_u8, vec![1_u64; all.len()]);
        let mut run = all;
        loop {
            let mut above: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut sums = Vec::new();
            let mut start = 0;
            while start < run.len() {
                let (mut end, mut size) = (start, 0);
                while end < run.len() && (end == start || size < 7000) {
                    size += run[end].0.len() + run[end].1.len() + 6;
                    end += 1;
                }
                let count: u64 = counts[start..end].iter().sum();
                let place = self.node(&node(level, &run[start..end]));
                let separator = if start == 0 {
                    Vec::new()
                } else {
                    run[start].0.clone()
                };
                above.push((separator, place.reference(count)));
                sums.push(count);
                start = end;
            }
            if let [(_, reference)] = above.as_slice() {
                return Root {
                    reference: reference.clone(),
                    level,
                };
            }
            (run, counts) = (above, sums);
            level += 1;
        }
    }

    /// Header, two slots (generations 2 and 1) and their records, all naming `root`.
    pub fn finish(self, root: &Root) -> Vec<u8> {
        self.finish_with(root, |_, _| {}, |_, _| {}, |_| {})
    }

    /// As `finish`, with the bytes of slots (by index), records (by generation) and header changed before they are sealed.
    pub fn finish_with(
        mut self,
        root: &Root,
        slot: impl Fn(usize, &mut Vec<u8>),
        record: impl Fn(u64, &mut Vec<u8>),
        header: impl Fn(&mut Vec<u8>),
    ) -> Vec<u8> {
        let head = sealed_header(header);
        self.bytes[..256].copy_from_slice(&head);
        let head_crc = &head[252..256];
        let end = self.bytes.len() as u64;
        let mut previous = vec![0; 16];
        for generation in [1_u64, 2] {
            let at = 0x3000 + (generation as usize - 1) * 104;
            let bytes = sealed_record(generation, &previous, root, |r| record(generation, r));
            let place = Place {
                offset: at as u64,
                len: bytes.len() as u64,
                crc: u32::from_le_bytes(*bytes.last_chunk().unwrap()),
            };
            let room = bytes.len().min(104);
            self.bytes[at..at + room].copy_from_slice(&bytes[..room]);
            previous = place.offset.to_le_bytes().to_vec();
            previous.extend((place.len as u32).to_le_bytes());
            previous.extend(place.crc.to_le_bytes());
            let index = generation as usize % 2;
            let bytes = sealed_slot(generation, end, root, &previous, head_crc, |s| {
                slot(index, s)
            });
            let at = 0x1000 * (1 + index);
            self.bytes[at..at + 256].copy_from_slice(&bytes);
        }
        self.bytes
    }
}

/// A node of these entries, in its one right encoding, sealed.
pub fn node(level: u8, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let first = &entries[0].0;
    let last = &entries[entries.len() - 1].0;
    let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let lens = |e: &(Vec<u8>, Vec<u8>)| (e.0.len() - prefix, e.1.len());
    let uniform = entries.iter().all(|e| lens(e) == lens(&entries[0]));
    let mut n = b"ORTN".to_vec();
    n.push(if level == 0 { 1 } else { 2 });
    n.push(level);
    n.extend(u16::from(uniform).to_le_bytes());
    n.extend((entries.len() as u16).to_le_bytes());
    n.extend((prefix as u16).to_le_bytes());
    let (suffix_len, value_len) = if uniform { lens(&entries[0]) } else { (0, 0) };
    n.extend((suffix_len as u16).to_le_bytes());
    n.extend((value_len as u16).to_le_bytes());
    n.extend(1_u64.to_le_bytes());
    n.extend([0; 8]);
    n.extend(&first[..prefix]);
    if uniform {
        entries.iter().for_each(|e| n.extend(&e.0[prefix..]));
        entries.iter().for_each(|e| n.extend(&e.1));
    } else {
        let mut at = n.len() + 2 * entries.len();
        for e in entries {
            n.extend((at as u16).to_le_bytes());
            at += 4 + lens(e).0 + lens(e).1;
        }
        for e in entries {
            n.extend((lens(e).0 as u16).to_le_bytes());
            n.extend((lens(e).1 as u16).to_le_bytes());
            n.extend(&e.0[prefix..]);
            n.extend(&e.1);
        }
    }
    let len = n.len() as u32;
    n[24..28].copy_from_slice(&len.to_le_bytes());
    seal(&mut n);
    n
}

/// Writes a node's checksum into it.
pub fn seal(node: &mut [u8]) {
    let covered = [&node[..28], &node[32..]].concat();
    let crc = crc32c(&covered);
    node[28..32].copy_from_slice(&crc.to_le_bytes());
}

/// Changes the last four bytes of a node so that its checksum becomes `wanted`: what a reference to itself needs.
pub fn seal_as(node: &mut [u8], wanted: u32) {
    let at = node.len() - 4;
    let crc_with = |word: u32, node: &mut [u8]| {
        node[at..].copy_from_slice(&word.to_le_bytes());
        seal(node);
        u32::from_le_bytes(*node[28..].first_chunk().unwrap())
    };
    // The checksum is linear in the bits of the word: solve for them.
    let zero = crc_with(0, node);
    let mut rows: Vec<(u32, u32)> = (0..32)
        .map(|bit| (crc_with(1 << bit, node) ^ zero, 1_u32 << bit))
        .collect();
    let (mut rest, mut word) = (wanted ^ zero, 0);
    for bit in 0..32 {
        let Some(i) = rows.iter().position(|(effect, _)| effect >> bit & 1 == 1) else {
            continue;
        };
        let (effect, bits) = rows.swap_remove(i);
        for row in &mut rows {
            if row.0 >> bit & 1 == 1 {
                *row = (row.0 ^ effect, row.1 ^ bits);
            }
        }
        if rest >> bit & 1 == 1 {
            (rest, word) = (rest ^ effect, word ^ bits);
        }
    }
    assert_eq!((rest, crc_with(word, node)), (0, wanted));
}

/// A sealed header.
fn sealed_header(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut h = vec![0x89, b'O', b'R', b'T', 0x0D, 0x0A, 0x1A, 0x0A];
    h.extend([0; 4]);
    h.extend(256_u32.to_le_bytes());
    h.extend(UUID);
    h.extend(1_000_i64.to_le_bytes());
    h.extend([12, 2, 0, 0]);
    h.extend(4096_u32.to_le_bytes());
    h.extend(4096_u64.to_le_bytes());
    h.extend(12288_u64.to_le_bytes());
    h.resize(252, 0);
    change(&mut h);
    let crc = crc32c(&h[..252]);
    h.extend(crc.to_le_bytes());
    h
}

/// A sealed commit record; `previous` is 16 bytes.
fn sealed_record(
    generation: u64,
    previous: &[u8],
    root: &Root,
    change: impl Fn(&mut Vec<u8>),
) -> Vec<u8> {
    let mut r = b"ORTC".to_vec();
    r.extend(102_u32.to_le_bytes());
    r.extend(generation.to_le_bytes());
    r.extend(previous);
    r.extend(&root.reference);
    r.push(root.level);
    r.extend([0; 7]);
    r.extend((999 + generation as i64).to_le_bytes());
    r.extend(UUID);
    r.extend([0; 8]);
    r.extend([0; 2]);
    change(&mut r);
    let crc = crc32c(&r);
    r.extend(crc.to_le_bytes());
    r
}

/// A sealed slot; `record` is the reference to its record, 16 bytes.
fn sealed_slot(
    generation: u64,
    end: u64,
    root: &Root,
    record: &[u8],
    head_crc: &[u8],
    change: impl Fn(&mut Vec<u8>),
) -> Vec<u8> {
    let mut s = b"ORTSLOT1".to_vec();
    s.extend(generation.to_le_bytes());
    s.extend((999 + generation as i64).to_le_bytes());
    s.extend(end.to_le_bytes());
    s.extend(&root.reference);
    s.push(root.level);
    s.push((generation % 2) as u8);
    s.extend([0; 6]);
    s.extend(record);
    s.extend((generation - 1).to_le_bytes());
    s.extend([0; 16]);
    s.extend(1000_u64.to_le_bytes());
    s.resize(248, 0);
    s.extend(head_crc);
    change(&mut s);
    let crc = crc32c(&s[..252]);
    s.truncate(252);
    s.extend(crc.to_le_bytes());
    s
}

/// A document of an array; `codecs` is its JSON list.
pub fn array_document(
    data_type: &str,
    fill: &str,
    domain: &[(i64, i64)],
    chunk: &str,
    codecs: &str,
) -> String {
    let join = |items: Vec<String>| items.join(",");
    let shape = join(
        domain
            .iter()
            .map(|(lo, hi)| (i128::from(*hi) - i128::from(*lo)).to_string())
            .collect(),
    );
    let bounds = join(
        domain
            .iter()
            .map(|(lo, hi)| format!("[{lo},{hi}]"))
            .collect(),
    );
    let zeros = join(domain.iter().map(|_| "0".to_owned()).collect());
    let order = join((0..domain.len()).map(|i| i.to_string()).collect());
    format!(
        "{{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[{shape}],\"data_type\":{data_type},\
         \"chunk_grid\":{{\"name\":\"regular\",\"configuration\":{{\"chunk_shape\":{chunk}}}}},\
         \"chunk_key_encoding\":{{\"name\":\"default\",\"configuration\":{{\"separator\":\"/\"}}}},\
         \"fill_value\":{fill},\"codecs\":{codecs},\
         \"orthant\":{{\"must_understand\":false,\"domain\":[{bounds}],\"origin\":[{zeros}],\
         \"key_order\":[{order}]}}}}"
    )
}

/// The codec list of bytes without compression.
pub const RAW: &str = r#"[{"name":"bytes"}]"#;
/// The document of a group.
pub const GROUP: &str = r#"{"zarr_format":3,"node_type":"group"}"#;

/// The document of eight bytes in chunks of four, without compression.
pub fn plain_document() -> String {
    array_document("\"uint8\"", "0", &[(0, 8)], "[4]", RAW)
}
