//! Hostile indexes: nodes that break a rule under right checksums, and trees that are none.

use orthant::ErrorKind::Corrupt;

use super::cases::Expect::{Bad, Listed, Reads, Refused};
use super::cases::{BAD, Case, FINE, base, with};
use super::forge::{Entries, Forge, Root, chunk_key, key, node, seal, seal_as};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(entries: &Entries) -> Pairs {
    entries
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

/// The base in one leaf, whose bytes are changed and sealed.
fn leaf(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut forge = Forge::new();
    let entries = base(&mut forge);
    let mut bytes = node(0, &pairs(&entries));
    change(&mut bytes);
    seal(&mut bytes);
    let place = forge.node(&bytes);
    let root = Root {
        reference: place.reference(entries.len() as u64),
        level: 0,
    };
    Case::new(
        format!("leaf_{name}"),
        forge.finish(&root),
        Refused(Corrupt),
    )
}

/// The base and other entries in one leaf, in the order given.
fn raw_leaf(name: &str, change: impl FnOnce(&mut Pairs)) -> Case {
    let mut forge = Forge::new();
    let mut all = pairs(&base(&mut forge));
    change(&mut all);
    let place = forge.node(&node(0, &all));
    let root = Root {
        reference: place.reference(all.len() as u64),
        level: 0,
    };
    Case::new(
        format!("leaf_{name}"),
        forge.finish(&root),
        Refused(Corrupt),
    )
}

/// Leaves that break a rule of nodes.
pub fn leaves() -> Vec<Case> {
    let slotted = 32;
    let mut all = vec![
        leaf("magic", |n| n[3] = b'X'),
        leaf("kind_0", |n| n[4] = 0),
        leaf("kind_3", |n| n[4] = 3),
        leaf("that_says_branch", |n| n[4] = 2),
        leaf("of_level_1", |n| n[5] = 1),
        leaf("of_level_200", |n| n[5] = 200),
        leaf("flags", |n| n[7] = 1),
        leaf("that_says_uniform", |n| n[6] = 1),
        leaf("without_entries", |n| n[8..10].fill(0)),
        leaf("with_more_entries_than_fit", |n| n[8..10].fill(0xFF)),
        leaf("with_fewer_entries_than_bytes", |n| n[8] -= 1),
        leaf("prefix_longer_than_itself", |n| n[10..12].fill(0xFF)),
        leaf("unused_fields", |n| n[12] = 1),
        leaf("born_later", |n| n[16] = 9),
        leaf("length", |n| n[24] ^= 8),
        leaf("cell_outside", |n| n[slotted..slotted + 2].fill(0xFF)),
        leaf("cell_in_the_head", |n| n[slotted..slotted + 2].fill(0)),
        leaf("cells_out_of_order", |n| {
            let (a, b) = (n[slotted], n[slotted + 2]);
            (n[slotted], n[slotted + 2]) = (b, a);
        }),
        leaf("with_a_tail", |n| {
            n.extend([0; 8]);
            let len = n.len() as u32;
            n[24..28].copy_from_slice(&len.to_le_bytes());
        }),
        raw_leaf("keys_unsorted", |all| all.swap(1, 2)),
        raw_leaf("keys_twice", |all| {
            let again = all[3].clone();
            all.insert(3, again);
        }),
        raw_leaf("key_empty", |all| {
            all.insert(0, (Vec::new(), vec![1]));
        }),
        raw_leaf("key_too_long", |all| {
            all.push((vec![0xF0; 513], vec![1]));
        }),
        raw_leaf("value_too_long", |all| {
            all.push((vec![0xF0], vec![1; 2049]));
        }),
    ];
    // A prefix that is shorter than it could be.
    let mut forge = Forge::new();
    let entries = base(&mut forge);
    let twin: Pairs = vec![(vec![0xE0, 1, 1], vec![1]), (vec![0xE0, 1, 2], vec![2])];
    let mut bytes = node(0, &twin);
    bytes[10] = 1;
    bytes[12] = 2;
    bytes.drain(32..);
    bytes.extend([0xE0, 1, 1, 1, 2, 1, 2]);
    let len = bytes.len() as u32;
    bytes[24..28].copy_from_slice(&len.to_le_bytes());
    seal(&mut bytes);
    let other = forge.node(&bytes);
    let first = forge.node(&node(0, &pairs(&entries)));
    let root = branch(
        &mut forge,
        1,
        &[(&[], first.reference(9)), (&[0xE0], other.reference(2))],
    );
    all.push(
        Case::new(
            "leaf_prefix_too_short",
            forge.finish(&root),
            Reads(FINE.to_vec()),
        )
        .checked(9),
    );
    all
}

/// A branch over these children.
fn branch(forge: &mut Forge, level: u8, children: &[(&[u8], Vec<u8>)]) -> Root {
    let entries: Pairs = children
        .iter()
        .map(|(k, r)| (k.to_vec(), r.clone()))
        .collect();
    let place = forge.node(&node(level, &entries));
    Root {
        reference: place.reference(entries.len() as u64),
        level,
    }
}

/// The base split in two leaves: everything but the chunks, and the chunks.
fn halves(forge: &mut Forge) -> (Vec<u8>, Vec<u8>) {
    let entries = base(forge);
    let (chunks, rest): (Pairs, Pairs) = pairs(&entries).into_iter().partition(|(k, _)| k[0] == 8);
    let rest = forge.node(&node(0, &rest)).reference(rest.len() as u64);
    let chunks = forge.node(&node(0, &chunks)).reference(chunks.len() as u64);
    (rest, chunks)
}

/// Trees whose nodes are right and do not belong together.
pub fn trees() -> Vec<Case> {
    let chunks_from: &[u8] = &[8];
    let tree = |name: &str, expect, make: &dyn Fn(&mut Forge) -> Root| {
        let mut forge = Forge::new();
        let root = make(&mut forge);
        Case::new(format!("tree_{name}"), forge.finish(&root), expect)
    };
    let reads = || Reads(FINE.to_vec());
    let mut all = vec![
        tree("sound", reads(), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("root_of_one_child", Refused(Corrupt), &|f| {
            let entries = base(f);
            let leaf = f.tree(&entries);
            branch(f, 1, &[(&[], leaf.reference)])
        }),
        tree("leaf_two_levels_down", Bad(Corrupt), &|f| {
            let (a, b) = halves(f);
            let low = branch(f, 1, &[(&[], a)]);
            branch(f, 2, &[(&[], low.reference), (chunks_from, b)])
        }),
        tree("children_swapped", Bad(Corrupt), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(&[], b), (chunks_from, a)])
        }),
        tree("child_twice", reads(), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(&[], a), (chunks_from, b.clone()), (&[9], b)])
        })
        .checked(9),
        tree("child_twice_under_one_bound", Bad(Corrupt), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(&[], a.clone()), (&[2], a), (chunks_from, b)])
        }),
        tree("keys_below_their_bound", Bad(Corrupt), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(&[], a), (&[8, 0x81, 0x81], b)])
        }),
        tree("child_of_another_checksum", Bad(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[12] ^= 1;
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("child_of_another_length", Bad(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[8] += 8;
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("child_after_the_end", Refused(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[4] = 1;
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("child_overflowing", Refused(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[..8].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("child_unaligned", Refused(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[0] += 1;
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("child_in_the_slots", Refused(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b[..8].copy_from_slice(&0x1000_u64.to_le_bytes());
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("reference_of_another_size", Refused(Corrupt), &|f| {
            let (a, mut b) = halves(f);
            b.push(0);
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        }),
        tree("bounds_unsorted", Refused(Corrupt), &|f| {
            let (a, b) = halves(f);
            branch(f, 1, &[(chunks_from, b), (&[], a)])
        }),
        tree("counts_that_are_not_there", reads(), &|f| {
            let (mut a, b) = halves(f);
            a[16..24].fill(0xFF);
            branch(f, 1, &[(&[], a), (chunks_from, b)])
        })
        .checked(8),
        tree("twelve_levels", reads(), &|f| {
            let (a, b) = halves(f);
            let (mut a, mut b) = (a, b);
            for level in 1..12 {
                a = branch(f, level, &[(&[], a)]).reference;
                b = branch(f, level, &[(chunks_from, b)]).reference;
            }
            branch(f, 12, &[(&[], a), (chunks_from, b)])
        }),
        tree("thirteen_levels", Refused(Corrupt), &|f| {
            let (a, b) = halves(f);
            let (mut a, mut b) = (a, b);
            for level in 1..13 {
                a = branch(f, level, &[(&[], a)]).reference;
                b = branch(f, level, &[(chunks_from, b)]).reference;
            }
            branch(f, 13, &[(&[], a), (chunks_from, b)])
        }),
        // An old node where a younger one should be: whole by itself, but not what its parent names.
        tree("lost_write", Bad(Corrupt), &|f| {
            let (a, b) = halves(f);
            let mut younger = b.clone();
            younger[12..16].copy_from_slice(&[1, 2, 3, 4]);
            branch(f, 1, &[(&[], a), (chunks_from, younger)])
        }),
    ];
    all.extend((1..=3).map(cycle));
    all.push(shared());
    all
}

/// Branches that refer to one another in a circle of that length, checksums and all.
fn cycle(len: u8) -> Case {
    const CRC: u32 = 0x1234_5678;
    let mut forge = Forge::new();
    let (a, _) = halves(&mut forge);
    // The first comes last in the circle and gets its checksum by construction: its place and length are known before.
    let shape: Pairs = vec![(Vec::new(), a.clone()), (vec![8], a.clone())];
    let size = node(1, &shape).len() as u64;
    let at = (forge.bytes.len() as u64).next_multiple_of(8);
    let mut below = super::forge::Place {
        offset: at,
        len: size,
        crc: CRC,
    };
    let room = forge.put(&vec![0; size as usize]);
    assert_eq!(room.offset, at);
    for _ in 1..len {
        let entries: Pairs = vec![(Vec::new(), a.clone()), (vec![8], below.reference(4))];
        below = forge.node(&node(1, &entries));
    }
    let entries: Pairs = vec![(Vec::new(), a), (vec![8], below.reference(4))];
    let mut first = node(1, &entries);
    // The last bytes are the count in the reference, which nobody trusts.
    seal_as(&mut first, CRC);
    forge.bytes[at as usize..][..first.len()].copy_from_slice(&first);
    let root = Root {
        reference: super::forge::Place {
            offset: at,
            len: size,
            crc: CRC,
        }
        .reference(9),
        level: 1,
    };
    Case::new(
        format!("tree_circle_of_{len}"),
        forge.finish(&root),
        Bad(Corrupt),
    )
    .checked(9)
}

/// Twelve levels of 200 references to one node each: more paths than there are atoms.
fn shared() -> Case {
    let mut forge = Forge::new();
    let (a, b) = halves(&mut forge);
    let mut child = b;
    for level in 1..12_u8 {
        let entries: Pairs = (0..200_u8)
            .map(|i| (vec![8, 0x80, i], child.clone()))
            .collect();
        child = forge.node(&node(level, &entries)).reference(u64::MAX);
    }
    let mut low = a;
    for level in 1..12 {
        low = branch(&mut forge, level, &[(&[], low)]).reference;
    }
    let root = branch(&mut forge, 12, &[(&[], low), (&[8, 0x80], child)]);
    Case::new("tree_of_shared_nodes", forge.finish(&root), Bad(Corrupt)).checked(9)
}

/// Keys that no writer writes.
pub fn keys() -> Vec<Case> {
    let extra = |name: &str, k: Vec<u8>, expect| {
        let bytes = with(|forge, entries| {
            let place = forge.put(&[1, 2, 3, 4]);
            entries.insert(k, place.record());
        });
        Case::new(format!("key_{name}"), bytes, expect)
    };
    let reads = || Reads(FINE.to_vec());
    vec![
        extra(
            "chunk_of_two_axes",
            chunk_key(BAD, &[0, 0]),
            Listed(Corrupt),
        )
        .checked(14),
        extra("chunk_of_no_axis", chunk_key(BAD, &[]), reads()).checked(14),
        extra("chunk_cut_short", key(8, BAD, &[0xF8]), Listed(Corrupt)).checked(14),
        extra(
            "chunk_not_shortest",
            key(8, BAD, &[0xF9, 0, 0]),
            Listed(Corrupt),
        )
        .checked(14),
        extra("chunk_beyond_i64", key(8, BAD, &[0xFF; 9]), reads()),
        extra("chunk_outside_the_domain", chunk_key(BAD, &[2]), reads()).checked(14),
        extra(
            "chunk_at_the_least_i64",
            chunk_key(BAD, &[i64::MIN]),
            reads(),
        )
        .checked(14),
        extra(
            "chunk_at_the_largest_i64",
            chunk_key(BAD, &[i64::MAX]),
            reads(),
        )
        .checked(14),
        extra("chunk_of_the_root_group", chunk_key(0, &[0]), reads()).checked(13),
        extra("chunk_of_no_object", chunk_key(77, &[0]), reads()).checked(13),
        extra("chunk_of_a_negative_object", chunk_key(-5, &[0]), reads()).checked(10),
        extra("tag_of_a_later_version", vec![0x0C, 1, 2], reads()),
        extra("tag_0", vec![0, 1, 2], reads()),
        extra("private", vec![0xFF; 200], reads()),
    ]
}
