//! Damaged bytes give an error, or right data: never a panic, a hang, or something that was not written.
//!
//! The one thing that a flipped bit may change without an error is which commit is read, and only a bit of the newest
//! slot: the open report then says so.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use orthant::testing::{OtherSlot, Raw, RawEntry, with_right_checksums};
use orthant::{CheckLevel, Error, ErrorKind, OpenOptions};

use crate::crash::{content, crc32c};
use crate::disk::Random;

/// A name, the bytes, what they hold, and what the generation before held.
type Sample = (&'static str, Vec<u8>, Vec<RawEntry>, Vec<RawEntry>);

/// Three small containers: a new one, one commit of chunks, several commits over a tree of some depth.
fn samples() -> Vec<Sample> {
    let empty = Raw::in_memory().unwrap();
    let chunks = Raw::in_memory().unwrap();
    let writer = chunks.writer().unwrap();
    for c in -3..3 {
        writer
            .put_chunk(1, &[c, 0], &[u8::try_from(c + 10).unwrap(); 50])
            .unwrap();
    }
    let before_chunks = content(&chunks).unwrap();
    writer.commit().unwrap();
    let deep = Raw::in_memory().unwrap();
    let writer = deep.writer().unwrap();
    for c in 0..500 {
        writer.put_chunk(1, &[c, -c], &c.to_le_bytes()).unwrap();
    }
    writer.commit().unwrap();
    writer.delete_chunk(1, &[5, -5]);
    writer.put(&[0xE0, 1], b"private");
    let before_deep = content(&deep).unwrap();
    writer.commit().unwrap();
    let sample = |name, raw: &Raw, before: Vec<RawEntry>| {
        (name, raw.to_bytes().unwrap(), content(raw).unwrap(), before)
    };
    vec![
        sample("empty", &empty, content(&empty).unwrap()),
        sample("chunks", &chunks, before_chunks),
        sample("deep", &deep, before_deep),
    ]
}

#[test]
fn every_flipped_bit_gives_an_error_or_right_data_or_a_reported_older_commit() {
    for (name, bytes, right, before) in samples() {
        let generation = Raw::from_bytes(bytes.clone())
            .unwrap()
            .generation()
            .unwrap();
        let newest = 0x1000 + usize::try_from(generation % 2).unwrap() * 0x1000;
        let (mut errors, mut same, mut stale) = (0_u64, 0_u64, 0_u64);
        // Unowned bytes mean nothing; one bit of each is enough.
        let mut slowest = Duration::ZERO;
        for at in 0..bytes.len() {
            let bits = if (at % 4096 >= 256 && at < 0x3000) || bytes.len() > 30_000 {
                1
            } else {
                8
            };
            for bit in 0..bits {
                let bit = (bit + at) % 8;
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let started = Instant::now();
                let verdict = read(bad);
                slowest = slowest.max(started.elapsed());
                match verdict {
                    Err(_) => errors += 1,
                    Ok((g, _, found)) if g == generation && found == right => same += 1,
                    Ok((older, reported, found)) => {
                        let in_slot = (newest..newest + 256).contains(&at);
                        assert!(
                            in_slot && reported && older == generation - 1 && found == before,
                            "{name}: bit {bit} of byte {at}"
                        );
                        stale += 1;
                    }
                }
            }
        }
        println!(
            "{name}: {errors} errors, {same} right, {stale} older and reported, slowest {slowest:?}"
        );
        assert!(slowest < Duration::from_secs(1));
        assert!(errors > 0 && same > 0);
    }
}

/// Opens and reads everything: the generation, whether the report says that a slot was lost, the content.
fn read(bytes: Vec<u8>) -> Result<(u64, bool, Vec<RawEntry>), Error> {
    let raw = Raw::from_bytes(bytes)?;
    let report = raw.report();
    Ok((
        raw.generation()?,
        report.fell_back && report.other_slot == OtherSlot::Invalid,
        content(&raw)?,
    ))
}

#[test]
fn a_file_cut_anywhere_is_an_error_of_the_right_kind() {
    for (name, bytes, ..) in samples() {
        for len in 0..bytes.len() {
            let e = Raw::from_bytes(bytes[..len].to_vec()).unwrap_err();
            let expected = if len == 0 {
                ErrorKind::NotContainer
            } else {
                ErrorKind::Corrupt
            };
            assert_eq!(e.kind(), expected, "{name} cut to {len}: {e}");
        }
    }
}

#[test]
fn bytes_after_the_committed_end_are_ignored_and_reported_and_overwritten() {
    let (_, bytes, right, _) = samples().remove(1);
    for tail in [1, 4095, 4096, 1 << 20] {
        for byte in [0, 0xA5] {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + tail, byte);
            let raw = Raw::from_bytes(longer).unwrap();
            assert_eq!(content(&raw).unwrap(), right);
            assert_eq!(raw.report().ignored_tail_bytes, tail as u64);
            let writer = raw.writer().unwrap();
            writer.put_chunk(1, &[40, 40], &[1; 100]).unwrap();
            writer.commit().unwrap();
            assert_eq!(content(&raw).unwrap().len(), right.len() + 1);
            assert!(raw.to_bytes().unwrap().len() < bytes.len() + 5 * 4096);
        }
    }
}

#[test]
fn one_invalid_slot_is_reported_and_healed_by_the_next_writer() {
    for (name, bytes, ..) in samples() {
        for slot in [0x1000, 0x2000] {
            let mut torn = bytes.clone();
            torn[slot + 100] ^= 0xFF;
            let raw = Raw::from_bytes(torn).unwrap();
            let report = raw.report();
            assert!(
                report.fell_back && report.other_slot == OtherSlot::Invalid,
                "{name}"
            );
            let (before, content_before) = (raw.generation().unwrap(), content(&raw).unwrap());
            let history = raw.history().unwrap();
            drop(raw.writer().unwrap());
            assert_eq!(raw.generation().unwrap(), before + 1);
            assert_eq!(content(&raw).unwrap(), content_before);
            assert_eq!(raw.history().unwrap(), history, "healing leaves no history");
            let again = Raw::from_bytes(raw.to_bytes().unwrap()).unwrap().report();
            assert!(!again.fell_back && again.other_slot == OtherSlot::Valid);
        }
        let mut both = bytes;
        both[0x1000] ^= 1;
        both[0x2000] ^= 1;
        assert_eq!(
            Raw::from_bytes(both).unwrap_err().kind(),
            ErrorKind::Corrupt
        );
    }
}

#[test]
fn a_damaged_root_of_a_valid_slot_is_an_error_and_never_the_older_commit() {
    let (_, bytes, ..) = samples().remove(1);
    let last = bytes.len() - 1;
    let mut bad = bytes.clone();
    bad[last] ^= 1;
    assert_eq!(Raw::from_bytes(bad).unwrap_err().kind(), ErrorKind::Corrupt);
    // The commit record too.
    let record = bytes.windows(4).rposition(|w| w == b"ORTC").unwrap();
    let mut bad = bytes;
    bad[record + 70] ^= 1;
    assert_eq!(Raw::from_bytes(bad).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn forged_files_with_right_checksums_are_refused_or_read_and_never_panic() {
    let mut random = Random::new(11);
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/format-spec/vectors");
    let mut files: Vec<Vec<u8>> = std::fs::read_dir(vectors)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "orth"))
        .map(|p| std::fs::read(p).unwrap())
        .filter(|bytes| (0x3001..60_000).contains(&bytes.len()))
        .collect();
    files.sort();
    let (mut opened, mut slowest) = (0, Duration::ZERO);
    let rounds = 12_000;
    for _ in 0..rounds {
        let mut bytes = files[random.below(files.len())].clone();
        for _ in 0..=random.below(3) {
            mutate(&mut bytes, &mut random);
        }
        let bytes = with_right_checksums(bytes);
        let started = Instant::now();
        opened += u64::from(visit(bytes));
        slowest = slowest.max(started.elapsed());
    }
    println!("{opened} of {rounds} forged files opened, slowest {slowest:?}");
    assert!(opened * 10 > rounds);
    assert!(slowest < Duration::from_secs(2));
}

/// Opens a stranger's bytes and looks at everything in them; false when they do not open.
fn visit(bytes: Vec<u8>) -> bool {
    let Ok(container) = OpenOptions::untrusted().from_bytes(bytes) else {
        return false;
    };
    let snapshot = container.snapshot().unwrap();
    drop(snapshot.statistics());
    drop(snapshot.check(CheckLevel::Data, |_, _| ControlFlow::Continue(()), drop));
    let members = snapshot.walk().into_iter().flatten().take(1000).flatten();
    for array in members.filter_map(|m| snapshot.dyn_array(&m.path).ok()) {
        drop(array.attributes().list());
        drop(array.chunks());
    }
    true
}

/// Changes one field or so, most often where the structures are.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    let regions = [
        (0, 256),
        (0x1000, 256),
        (0x2000, 256),
        (0x3000, bytes.len() - 0x3000),
        (0x3000, bytes.len() - 0x3000),
    ];
    let (start, len) = regions[random.below(regions.len())];
    let at = start + random.below(len);
    let value = random.next().to_le_bytes();
    match random.below(4) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
        2 => {
            let end = bytes.len().min(at + 8);
            bytes[at..end].fill(if random.below(2) == 0 { 0 } else { 0xFF });
        }
        _ => {
            let end = bytes.len().min(at + 1 + random.below(8));
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
    }
}

/// A new container with some bytes changed and all checksums right.
fn forged(change: impl Fn(&mut [u8])) -> orthant::Result<Raw> {
    let mut bytes = Raw::in_memory().unwrap().to_bytes().unwrap();
    change(&mut bytes);
    Raw::from_bytes(with_right_checksums(bytes))
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn the_largest_generation_opens_and_writing_on_it_is_a_limit() {
    const LAST: u64 = (1 << 61) - 1;
    let raw = forged(|bytes| {
        // Slot A holds the even generation and names the second record.
        for (at, generation) in [
            (0x1008, LAST - 1),
            (0x3070, LAST - 1),
            (0x2008, LAST),
            (0x3008, LAST),
        ] {
            put_u64(bytes, at, generation);
        }
    })
    .unwrap();
    assert_eq!(raw.generation().unwrap(), LAST);
    let writer = raw.writer().unwrap();
    writer.put(&[0xE0], b"x");
    assert_eq!(
        writer.commit().unwrap_err().kind(),
        ErrorKind::LimitExceeded
    );
    let e = forged(|bytes| put_u64(bytes, 0x1008, 1 << 61)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
}

#[test]
fn unknown_features_refuse_the_reader_or_the_writer_or_nobody() {
    let bit =
        |at: usize| move |bytes: &mut [u8]| bytes[at..].iter_mut().take(1).for_each(|b| *b = 4);
    let e = forged(bit(0x1000 + 112)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    let e = forged(bit(72)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    let read_only = forged(bit(0x1000 + 120)).unwrap();
    assert_eq!(
        read_only.writer().unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let compat = forged(bit(0x1000 + 128)).unwrap();
    assert_eq!(compat.writer().unwrap().commit().unwrap(), 3);
}

#[test]
fn slots_that_do_not_belong_together_are_corrupt() {
    // Two generations apart; the same slot twice; a slot of another file.
    let e = forged(|bytes| put_u64(bytes, 0x1008, 4)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    let e = forged(|bytes| bytes.copy_within(0x1000..0x1100, 0x2000)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    let mut mixed = Raw::in_memory().unwrap().to_bytes().unwrap();
    mixed[16] ^= 1;
    let crc = crc32c(&mixed[..252]);
    mixed[252..256].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(
        Raw::from_bytes(mixed).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
}
