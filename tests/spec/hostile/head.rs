//! Hostile heads: headers, slots and commit records that break a rule under a right checksum, and files of another shape.

use orthant::ErrorKind::{Corrupt, NotContainer, Unsupported};

use super::cases::Expect::{Reads, Refused};
use super::cases::{Case, FINE, laid_down, with};

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Files that are no container, cut, or more than one.
pub fn shapes() -> Vec<Case> {
    let good = with(|_, _| {});
    let refused = |name: &str, bytes: Vec<u8>, kind| Case::new(name, bytes, Refused(kind));
    let cut = |len: usize| good[..len].to_vec();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let tail = |byte: u8, len: usize| {
        let mut bytes = good.clone();
        bytes.resize(good.len() + len, byte);
        bytes
    };
    vec![
        Case::new("sound", good.clone(), Reads(FINE.to_vec())),
        refused("empty", Vec::new(), NotContainer),
        refused("cut_in_the_magic", cut(5), Corrupt),
        refused("cut_after_the_magic", cut(8), Corrupt),
        refused("cut_in_the_header", cut(255), Corrupt),
        refused("cut_after_the_header", cut(256), Corrupt),
        refused("cut_between_the_slots", cut(0x2000), Corrupt),
        refused("cut_before_the_data", cut(0x2FFF), Corrupt),
        refused("cut_by_one_byte", cut(good.len() - 1), Corrupt),
        refused("magic_and_zeros", changed(&|b| b[8..].fill(0)), Corrupt),
        refused(
            "seven_bit_transfer",
            changed(&|b| b.iter_mut().for_each(|x| *x &= 0x7F)),
            NotContainer,
        ),
        refused(
            "newlines_translated",
            changed(&|b| {
                b.remove(4);
            }),
            NotContainer,
        ),
        refused("other_magic", changed(&|b| b[0] = b'P'), NotContainer),
        refused("hdf5", b"\x89HDF\r\n\x1a\n".repeat(4000), NotContainer),
        refused(
            "both_slots_torn",
            changed(&|b| b[0x1000..0x3000].fill(0xA5)),
            Corrupt,
        ),
        Case::new(
            "newest_slot_torn",
            changed(&|b| b[0x1000..0x1100].fill(0xA5)),
            Reads(FINE.to_vec()),
        ),
        Case::new(
            "older_slot_torn",
            changed(&|b| b[0x2000..0x2100].fill(0)),
            Reads(FINE.to_vec()),
        ),
        refused(
            "slots_swapped",
            changed(&|b| {
                let slot = b[0x1000..0x2000].to_vec();
                b.copy_within(0x2000..0x3000, 0x1000);
                put(b, 0x2000, &slot);
            }),
            Corrupt,
        ),
        Case::new("tail_of_zeros", tail(0, 1 << 20), Reads(FINE.to_vec())),
        Case::new("tail_of_garbage", tail(0xA5, 1 << 20), Reads(FINE.to_vec())),
        refused(
            "prefixed",
            [vec![0; 1024], good.clone()].concat(),
            NotContainer,
        ),
    ]
}

/// A field of the header, changed and sealed.
pub fn headers() -> Vec<Case> {
    let changed = |name: &str, at: usize, value: &[u8], expect| {
        let (forge, root) = laid_down();
        let bytes = forge.finish_with(&root, |_, _| {}, |_, _| {}, |h| put(h, at, value));
        Case::new(format!("header_{name}"), bytes, expect)
    };
    let refused = |name, at, value: &[u8], kind| changed(name, at, value, Refused(kind));
    vec![
        refused("major", 8, &[9], Unsupported),
        refused("length", 12, &[0, 2], Unsupported),
        refused("block_size", 40, &[13], Unsupported),
        refused("slot_count", 41, &[3], Unsupported),
        refused("reserved_42", 42, &[1], Corrupt),
        refused("slot_stride", 44, &[0, 0x20], Unsupported),
        refused("slot_offset", 48, &[0, 0x20], Unsupported),
        refused("data_start", 56, &[0, 0x40], Unsupported),
        refused("incompat", 72, &[1], Unsupported),
        refused("incompat_high", 79, &[0x80], Unsupported),
        refused("reserved_112", 112, &[1], Corrupt),
        refused("reserved_251", 251, &[1], Corrupt),
        changed("minor", 10, &[7], Reads(FINE.to_vec())),
        changed("front_len", 64, &[0xFF; 8], Reads(FINE.to_vec())),
        changed("time", 32, &[0xFF; 8], Reads(FINE.to_vec())),
        changed("application", 80, &[0xFF; 16], Reads(FINE.to_vec())),
    ]
}

/// A field of one slot or both, changed and sealed.
pub fn slots() -> Vec<Case> {
    let changed = |name: &str, which: Option<usize>, at: usize, value: &[u8], expect| {
        let (forge, root) = laid_down();
        let slot = |index: usize, s: &mut Vec<u8>| {
            if which.is_none_or(|w| w == index) {
                put(s, at, value);
            }
        };
        let bytes = forge.finish_with(&root, slot, |_, _| {}, |_| {});
        Case::new(format!("slot_{name}"), bytes, expect)
    };
    let newest = |name, at, value: &[u8], kind| changed(name, Some(0), at, value, Refused(kind));
    let u64s = |v: u64| v.to_le_bytes().to_vec();
    let mut all = vec![
        newest("magic", 0, b"ORTSLOT2", Corrupt),
        newest("generation_0", 8, &u64s(0), Corrupt),
        newest("generation_too_large", 8, &u64s(1 << 61), Corrupt),
        newest("generation_of_other_parity", 8, &u64s(3), Corrupt),
        newest("generation_far_ahead", 8, &u64s(4), Corrupt),
        newest("end_in_the_slots", 24, &u64s(0x1000), Corrupt),
        newest("end_before_the_root", 24, &u64s(0x3008), Corrupt),
        newest("end_after_the_file", 24, &u64s(1 << 40), Corrupt),
        newest("end_overflowing", 24, &u64s(u64::MAX), Corrupt),
        newest("root_in_the_header", 32, &u64s(0), Corrupt),
        newest("root_in_the_slots", 32, &u64s(0x1000), Corrupt),
        newest("root_unaligned", 32, &u64s(0x3001), Corrupt),
        newest("root_after_the_end", 32, &u64s(1 << 40), Corrupt),
        newest("root_overflowing", 32, &u64s(u64::MAX - 7), Corrupt),
        newest("root_of_no_length", 40, &[0; 4], Corrupt),
        newest("root_of_a_head_alone", 40, &[32, 0, 0, 0], Corrupt),
        newest("root_too_long", 40, &[1, 0, 1, 0], Corrupt),
        newest("root_of_4_gib", 40, &[0xFF; 4], Corrupt),
        newest("root_level", 56, &[1], Corrupt),
        newest("root_level_13", 56, &[13], Corrupt),
        newest("root_level_255", 56, &[255], Corrupt),
        newest("index", 57, &[1], Corrupt),
        newest("flags", 58, &[4], Corrupt),
        newest("flags_high", 59, &[0x80], Corrupt),
        newest("reserved_60", 60, &[1], Corrupt),
        newest("record_in_the_slots", 64, &u64s(0x2000), Corrupt),
        newest("record_unaligned", 64, &u64s(0x3004), Corrupt),
        newest("record_overflowing", 64, &u64s(u64::MAX - 7), Corrupt),
        newest("record_too_short", 72, &[101, 0, 0, 0], Corrupt),
        newest("record_too_long", 72, &[0xFF; 4], Corrupt),
        newest("record_checksum", 76, &[1, 2, 3, 4], Corrupt),
        newest("horizon_of_its_own", 80, &u64s(2), Corrupt),
        newest("horizon_overflowing", 80, &u64s(u64::MAX), Corrupt),
        newest("incompat", 112, &[1], Unsupported),
        newest("major", 136, &[1], Unsupported),
        newest("reserved_160", 160, &[1], Corrupt),
        newest("reserved_247", 247, &[1], Corrupt),
        newest("of_another_header", 248, &[1, 2, 3, 4], Corrupt),
    ];
    let reads = |name, at, value: &[u8]| changed(name, None, at, value, Reads(FINE.to_vec()));
    all.extend([
        reads("live_bytes", 88, &[0xFF; 16]).checked(17),
        reads("ro_compat", 120, &[1]),
        reads("compat", 128, &[0x80]),
        reads(
            "compat_and_reserved",
            128,
            &[&[1][..], &[0; 40], &[9]].concat(),
        ),
        reads("minor", 138, &[9]),
        reads("writer", 140, &[0xFF; 20]),
        reads("unconfirmed", 58, &[2]),
    ]);
    all
}

/// A field of the newest commit record, changed and sealed; its slot names the sealed one.
pub fn records() -> Vec<Case> {
    let changed = |name: &str, at: usize, value: &[u8]| {
        let (forge, root) = laid_down();
        let record = |generation: u64, r: &mut Vec<u8>| {
            if generation == 2 {
                put(r, at, value);
            }
        };
        let bytes = forge.finish_with(&root, |_, _| {}, record, |_| {});
        Case::new(format!("record_{name}"), bytes, Refused(Corrupt))
    };
    vec![
        changed("magic", 0, b"ORTD"),
        changed("length", 4, &[103]),
        changed("generation", 8, &[7]),
        changed("root", 32, &[1]),
        changed("root_level", 56, &[3]),
        changed("reserved", 60, &[1]),
        changed("time", 64, &[1]),
        changed("uuid", 72, b"another"),
        changed("message_that_is_not_there", 96, &[1]),
        changed("message_too_long", 96, &[0xFF, 0xFF]),
    ]
}
