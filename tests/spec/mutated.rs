//! A million damaged images of three containers: each reads right, or is an error, or is the other slot's commit with the
//! report saying so. None panics, takes a second, or more memory than 64 MiB and four times the file.
//!
//! The samples: shards with compression; chunks without any; negative coordinates with kept generations. Every bit, every
//! length, tails, extents that change places, sectors from earlier, bursts; then the same behind repaired checksums, where
//! what is read may be anything but a panic, a hang, or a heap of memory.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use orthant::testing::{OtherSlot, checksum, with_right_checksums};
use orthant::{
    ArraySpec, AttributeValue, CheckLevel, Codec, Container, Elements, OpenOptions, Region,
    Snapshot, Writer, region,
};

use crate::disk::Random;
use crate::heap::peak_of;
use crate::support::{figure, rounds};

/// Elements and attributes by path; of kept generations with their names in front.
type State = BTreeMap<String, (Elements, Vec<(String, AttributeValue)>)>;

struct Sample {
    name: &'static str,
    /// The file after each commit; the last is the sample.
    images: Vec<Vec<u8>>,
    generation: u64,
    right: State,
    /// What the slot that is not in use holds.
    before: State,
    /// Payloads in the file: places and lengths.
    payloads: Vec<(usize, usize)>,
}

impl Sample {
    /// A container to which `commits` commit one after the other.
    fn new(name: &'static str, commits: &[&dyn Fn(&Writer)]) -> Self {
        let c = Container::in_memory().unwrap();
        let w = c.writer().unwrap();
        let (mut images, mut states) = (Vec::new(), Vec::new());
        for commit in commits {
            commit(&w);
            w.commit().unwrap();
            images.push(c.to_bytes().unwrap());
            states.push(state(&c.snapshot().unwrap()).unwrap());
        }
        let mut payloads = Vec::new();
        let s = c.snapshot().unwrap();
        for path in ["a", "g/b"] {
            let a = s.dyn_array(path).unwrap();
            for e in a.chunk_extents(Region::all()).unwrap() {
                payloads.push((e.offset as usize, e.len as usize));
            }
        }
        let right = states.pop().unwrap();
        Self {
            name,
            images,
            generation: s.generation(),
            right,
            before: states.pop().unwrap(),
            payloads,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.images.last().unwrap()
    }

    /// The block of the newest slot that counts.
    fn newest_slot(&self) -> Range<usize> {
        let at = 0x1000 * (1 + self.generation as usize % 2);
        at..at + 256
    }
}

fn samples() -> [Sample; 3] {
    let sharded = Sample::new(
        "sharded",
        &[
            &|w| {
                let spec = ArraySpec::<u16>::new(region![0..16, 0..16])
                    .chunks([4, 4])
                    .shards([8, 8])
                    .codecs([Codec::zstd(3), Codec::crc32c()]);
                let a = w.create_array("a", spec).unwrap();
                let cells: Vec<u16> = (1..=256).collect();
                a.write_slice(region![.., ..], &cells).unwrap();
                a.attributes().set("units", "K").unwrap();
                let b = ArraySpec::<u8>::new(region![0..4]).shards([4]).chunks([2]);
                let b = w.create_array("g/b", b).unwrap();
                b.write_slice(region![0..2], &[7, 8]).unwrap();
            },
            &|w| {
                let a = w.array::<u16>("a").unwrap();
                a.write_slice(region![0..2, 0..3], &[9; 6]).unwrap();
            },
        ],
    );
    let raw = Sample::new(
        "uncompressed",
        &[
            &|w| {
                let spec = ArraySpec::<i32>::new(region![0..40])
                    .chunks([8])
                    .codecs(Codec::raw_profile());
                let a = w.create_array("a", spec.clone()).unwrap();
                let cells: Vec<i32> = (100..140).collect();
                a.write_slice(region![..], &cells).unwrap();
                let b = w.create_array("g/b", spec).unwrap();
                b.write_slice(region![0..8], &[1, 2, 3, 4, 5, 6, 7, 8])
                    .unwrap();
                b.write_scalar(region![8..16], 5).unwrap();
                b.attributes().set("long", "y".repeat(1500)).unwrap();
            },
            &|w| {
                let a = w.array::<i32>("a").unwrap();
                a.write_slice(region![8..16], &[-1; 8]).unwrap();
            },
        ],
    );
    let negative = Sample::new(
        "negative",
        &[
            &|w| {
                let spec = ArraySpec::<f64>::new(region![-6..3, -3..2])
                    .chunks([4, 3])
                    .fill(f64::NAN);
                let a = w.create_array("a", spec).unwrap();
                let cells: Vec<f64> = (0..45).map(f64::from).collect();
                a.write_slice(region![.., ..], &cells).unwrap();
                let b = ArraySpec::<u8>::new(region![-8..-2]).chunks([4]);
                let b = w.create_array("g/b", b).unwrap();
                b.write_slice(region![-4..-2], &[3, 4]).unwrap();
            },
            &|w| {
                w.retain("first").unwrap();
                let a = w.array::<f64>("a").unwrap();
                a.grow(0, 2, 0).unwrap();
                a.write_slice(region![-8..-6, -1], &[0.5, 1.5]).unwrap();
            },
            &|w| {
                w.retain("second").unwrap();
                let a = w.array::<f64>("a").unwrap();
                a.write_slice(region![-1, ..], &[9.0; 5]).unwrap();
            },
        ],
    );
    [sharded, raw, negative]
}

/// Everything that a snapshot and the generations it keeps hold.
fn state(snapshot: &Snapshot) -> orthant::Result<State> {
    let mut all = State::new();
    generation(snapshot, "", &mut all)?;
    for kept in snapshot.snapshots()? {
        let old = snapshot.at(&orthant::At::Name(kept.name.clone()))?;
        generation(&old, &kept.name, &mut all)?;
    }
    Ok(all)
}

fn generation(snapshot: &Snapshot, name: &str, all: &mut State) -> orthant::Result<()> {
    for path in ["a", "g/b"] {
        if let Some(found) = object(snapshot, path)? {
            all.insert(format!("{name}@{path}"), found);
        }
    }
    Ok(())
}

type Object = (Elements, Vec<(String, AttributeValue)>);

/// An array's elements and attributes; none where there is no such array.
fn object(snapshot: &Snapshot, path: &str) -> orthant::Result<Option<Object>> {
    let array = match snapshot.dyn_array(path) {
        Err(e) if e.kind() == orthant::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let block = array.read(Region::all())?;
    Ok(Some((block.elements, array.attributes().list()?)))
}

/// What came of an image.
#[derive(Debug, PartialEq)]
enum Verdict {
    Right,
    Error,
    Older,
}

/// Opens an image and reads all that the sample has. Whatever is not an error has to be right.
fn verdict(sample: &Sample, bytes: Vec<u8>, in_slot: bool) -> Result<Verdict, String> {
    let opened = OpenOptions::new().cache_bytes(0).from_bytes(bytes);
    let container = match opened {
        Ok(container) => container,
        Err(e) => return clean(&e),
    };
    let snapshot = match container.snapshot() {
        Ok(snapshot) => snapshot,
        Err(e) => return clean(&e),
    };
    let report = container.report();
    let older = snapshot.generation() != sample.generation;
    if older {
        let told = report.fell_back && report.other_slot == OtherSlot::Invalid;
        // A slot as it was two commits ago is the file before the last commit, of which nobody can tell.
        let lost = report.other_slot == OtherSlot::Valid && report.ignored_tail_bytes > 0;
        if !(in_slot && (told || lost) && snapshot.generation() + 1 == sample.generation) {
            return Err(format!("generation {}, {report:?}", snapshot.generation()));
        }
    }
    let right = if older { &sample.before } else { &sample.right };
    let mut verdict = if older {
        Verdict::Older
    } else {
        Verdict::Right
    };
    let kept: Vec<String> = match snapshot.snapshots() {
        Ok(kept) => kept.into_iter().map(|k| k.name).collect(),
        Err(e) => {
            clean(&e)?;
            verdict = Verdict::Error;
            Vec::new()
        }
    };
    for (key, expected) in right {
        let (name, path) = key.split_once('@').unwrap();
        let found = if name.is_empty() {
            object(&snapshot, path)
        } else if kept.iter().any(|k| k == name) {
            snapshot
                .at(&orthant::At::Name(name.to_owned()))
                .and_then(|old| object(&old, path))
        } else {
            // Its list could not be read, which was told.
            if verdict != Verdict::Error {
                return Err(format!("{name} is gone"));
            }
            continue;
        };
        match found {
            Ok(Some(found)) if found.1 == expected.1 && same(&found.0, &expected.0) => {}
            Ok(found) => return Err(format!("{key}: {found:?}")),
            Err(e) => {
                clean(&e)?;
                verdict = Verdict::Error;
            }
        }
    }
    Ok(verdict)
}

/// NaN equals itself here.
fn same(a: &Elements, b: &Elements) -> bool {
    a == b
}

/// An error of the kind that damage makes.
fn clean(e: &orthant::Error) -> Result<Verdict, String> {
    use orthant::ErrorKind::{Corrupt, LimitExceeded, NotContainer, Unsupported};
    match e.kind() {
        Corrupt | NotContainer | Unsupported | LimitExceeded => Ok(Verdict::Error),
        other => Err(format!("{other:?}: {e}")),
    }
}

/// What all images together came to.
#[derive(Debug, Default)]
struct Tally {
    images: AtomicU64,
    right: AtomicU64,
    errors: AtomicU64,
    older: AtomicU64,
    /// Microseconds of the slowest, bytes of the largest.
    slowest: AtomicU64,
    largest: AtomicU64,
}

impl Tally {
    fn image(&self, sample: &Sample, bytes: Vec<u8>, in_slot: bool, what: &dyn Fn() -> String) {
        let verdict = self.measured(bytes.len(), || verdict(sample, bytes.clone(), in_slot));
        let count = match verdict {
            Ok(Verdict::Right) => &self.right,
            Ok(Verdict::Error) => &self.errors,
            Ok(Verdict::Older) => &self.older,
            Err(why) => panic!("{}, {}: {why}", sample.name, what()),
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// An image behind repaired checksums: looked at in every way, whatever it says.
    fn forged(&self, bytes: Vec<u8>) {
        self.measured(bytes.len(), || {
            let Ok(c) = OpenOptions::untrusted().from_bytes(bytes.clone()) else {
                return;
            };
            let Ok(s) = c.snapshot() else { return };
            let _ = state(&s);
            let go_on = |_, _| ControlFlow::Continue(());
            let _ = s.check(CheckLevel::Data, go_on, drop);
        });
    }

    /// Does something with an image of `len` bytes. What takes a second is done again: a machine that stands still is no
    /// work, and work takes as long each time.
    fn measured<T>(&self, len: usize, f: impl Fn() -> T) -> T {
        let timed = || {
            let started = Instant::now();
            let (done, peak) = peak_of(&f);
            (done, peak, started.elapsed())
        };
        let (done, peak, mut took) = timed();
        for _ in 0..2 {
            if took >= Duration::from_secs(1) {
                took = took.min(timed().2);
            }
        }
        self.images.fetch_add(1, Ordering::Relaxed);
        self.slowest
            .fetch_max(took.as_micros() as u64, Ordering::Relaxed);
        self.largest.fetch_max(peak as u64, Ordering::Relaxed);
        assert!(
            peak <= (64 << 20) + 4 * len,
            "{peak} bytes for an image of {len}"
        );
        done
    }

    fn print(&self, what: &str) -> u64 {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let slowest = Duration::from_micros(get(&self.slowest));
        println!(
            "{what}: {} images, {} right, {} errors, {} older and reported, 0 other; slowest {slowest:?}, at most {} bytes",
            get(&self.images),
            get(&self.right),
            get(&self.errors),
            get(&self.older),
            get(&self.largest)
        );
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
        get(&self.images)
    }
}

/// Calls `f` with every number below `n`, on two threads, each with decoding in itself.
fn on_two_threads(n: usize, f: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for part in 0..2 {
            let f = &f;
            scope.spawn(move || {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(1)
                    .use_current_thread()
                    .build()
                    .unwrap();
                pool.install(|| (part..n).step_by(2).for_each(f));
            });
        }
    });
}

#[test]
fn every_bit_every_length_and_every_burst_reads_right_or_is_an_error() {
    let mut images = 0;
    for sample in samples() {
        let (bytes, slot) = (sample.bytes(), sample.newest_slot());
        let tally = Tally::default();
        on_two_threads(bytes.len() * 8, |i| {
            let (at, bit) = (i / 8, i % 8);
            let mut bad = bytes.to_vec();
            bad[at] ^= 1 << bit;
            let what = || format!("bit {bit} of byte {at}");
            tally.image(&sample, bad, slot.contains(&at), &what);
        });
        on_two_threads(bytes.len(), |len| {
            tally.image(&sample, bytes[..len].to_vec(), false, &|| {
                format!("cut to {len}")
            });
        });
        on_two_threads(200, |i| {
            let mut longer = bytes.to_vec();
            let tail = 1 << (i % 20);
            longer.resize(bytes.len() + tail, if i < 100 { 0 } else { 0xA5 });
            tally.image(&sample, longer, false, &|| format!("a tail of {tail}"));
        });
        // Bursts: up to eight bytes of zeros, ones or noise, two of three where something is.
        let used = used(&sample);
        on_two_threads(rounds(120_000, 2_800_000) as usize, |i| {
            let random = &mut Random::new(i as u64);
            let at = if i % 3 == 0 {
                random.below(bytes.len())
            } else {
                used[random.below(used.len())]
            };
            let end = bytes.len().min(at + 1 + random.below(8));
            let mut bad = bytes.to_vec();
            match random.below(3) {
                0 => bad[at..end].fill(0),
                1 => bad[at..end].fill(0xFF),
                _ => bad[at..end].copy_from_slice(&random.next().to_le_bytes()[..end - at]),
            }
            let in_slot = at < slot.end && end > slot.start;
            tally.image(&sample, bad, in_slot, &|| {
                format!("burst {i} at {at}..{end}")
            });
        });
        images += tally.print(sample.name);
    }
    figure(4, "damaged images", images);
    assert!(images >= 900_000, "{images}");
}

/// Places of bytes that mean something.
fn used(sample: &Sample) -> Vec<usize> {
    let bytes = sample.bytes();
    let heads = [0..256, 0x1000..0x1100, 0x2000..0x2100];
    let data =
        (0x3000..bytes.len()).filter(|at| bytes[at / 8 * 8..].iter().take(8).any(|b| *b != 0));
    heads.into_iter().flatten().chain(data).collect()
}

#[test]
fn extents_that_change_places_and_sectors_from_earlier_are_noticed() {
    let mut images = 0;
    for sample in samples() {
        let bytes = sample.bytes();
        let tally = Tally::default();
        // Payloads in one another's place, whole or as far as the shorter goes.
        for (i, (a, a_len)) in sample.payloads.iter().enumerate() {
            for (b, b_len) in &sample.payloads[..i] {
                let len = *a_len.min(b_len);
                let mut bad = bytes.to_vec();
                let (one, other) = (bytes[*a..a + len].to_vec(), bytes[*b..b + len].to_vec());
                bad[*a..a + len].copy_from_slice(&other);
                bad[*b..b + len].copy_from_slice(&one);
                tally.image(&sample, bad, false, &|| format!("{a} and {b} swapped"));
            }
        }
        // Nodes in one another's place.
        let nodes: Vec<usize> = (0x3000..bytes.len() - 32)
            .step_by(8)
            .filter(|at| bytes[*at..].starts_with(b"ORTN"))
            .collect();
        let len_of =
            |at: usize| u32::from_le_bytes(*bytes[at + 24..].first_chunk().unwrap()) as usize;
        for a in &nodes {
            for b in nodes.iter().filter(|b| *b != a) {
                let node = bytes[*b..b + len_of(*b)].to_vec();
                let mut bad = bytes.to_vec();
                let end = bad.len().min(a + node.len());
                bad[*a..end].copy_from_slice(&node[..end - a]);
                tally.image(&sample, bad, false, &|| format!("node {b} at {a}"));
            }
        }
        // Sectors and blocks as an earlier commit left them, of zeros, or of another place.
        for size in [512, 4096] {
            for at in (0..bytes.len()).step_by(size) {
                let end = bytes.len().min(at + size);
                let stale = sample.images.iter().rev().skip(1);
                let mut others: Vec<Vec<u8>> = stale
                    .map(|old| {
                        (at..end)
                            .map(|i| old.get(i).copied().unwrap_or(0))
                            .collect()
                    })
                    .collect();
                others.push(vec![0; end - at]);
                others.push(vec![0xA5; end - at]);
                for from in (0..bytes.len() - (end - at)).step_by(size) {
                    others.push(bytes[from..from + (end - at)].to_vec());
                }
                for other in others {
                    let mut bad = bytes.to_vec();
                    bad[at..end].copy_from_slice(&other);
                    let slot = sample.newest_slot();
                    let in_slot = at < slot.end && end > slot.start;
                    tally.image(&sample, bad, in_slot, &|| format!("sector {at}..{end}"));
                }
            }
        }
        images += tally.print(sample.name);
    }
    figure(4, "images with swapped and stale parts", images);
    assert!(images >= 5_000, "{images}");
}

#[test]
fn the_same_behind_repaired_checksums_neither_panics_nor_hangs_nor_hoards() {
    let mut images = 0;
    for sample in samples() {
        let bytes = sample.bytes();
        let used = used(&sample);
        let tally = Tally::default();
        on_two_threads(used.len() * 8, |i| {
            let mut bad = bytes.to_vec();
            bad[used[i / 8]] ^= 1 << (i % 8);
            tally.forged(repaired(&sample, bad));
        });
        on_two_threads(rounds(10_000, 600_000) as usize, |i| {
            let random = &mut Random::new(i as u64);
            let mut bad = bytes.to_vec();
            for _ in 0..=random.below(3) {
                let at = used[random.below(used.len())];
                let end = bad.len().min(at + 1 + random.below(8));
                match random.below(3) {
                    0 => bad[at..end].fill(0),
                    1 => bad[at..end].fill(0xFF),
                    _ => bad[at..end].copy_from_slice(&random.next().to_le_bytes()[..end - at]),
                }
            }
            tally.forged(repaired(&sample, bad));
        });
        images += tally.print(&format!("{}, repaired", sample.name));
    }
    figure(4, "damaged images behind repaired checksums", images);
    assert!(images >= 60_000, "{images}");
}

/// Right checksums wherever a payload, a root, a record or a slot has one.
fn repaired(sample: &Sample, mut bytes: Vec<u8>) -> Vec<u8> {
    let whole = sample.bytes();
    for &(offset, len) in &sample.payloads {
        let (old, new) = (&whole[offset..offset + len], &bytes[offset..offset + len]);
        if old == new {
            continue;
        }
        // Every record that names it: offset, length, checksum.
        let named = |crc: u32| {
            let mut record = (offset as u64).to_le_bytes().to_vec();
            record.extend((len as u32).to_le_bytes());
            record.extend(crc.to_le_bytes());
            record
        };
        let (from, to) = (named(crc32fast::hash(old)), named(crc32fast::hash(new)));
        let places: Vec<usize> = (0x3000..bytes.len() - from.len())
            .filter(|at| bytes[*at..].starts_with(&from))
            .collect();
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(&to);
        }
    }
    with_right_checksums(bytes)
}

/// A CRC-32C over parts that each end in their own CRC-32C follows from the lengths of the parts alone; what a record holds
/// must tell one such payload from another, or a write that storage lost or misdirected reads as if it were right.
#[test]
fn records_tell_payloads_that_end_in_their_own_checksum_apart() {
    let summed = || vec![Codec::bytes_little_endian(), Codec::crc32c()];
    let plain = ArraySpec::<u8>::new(region![0..4]).chunks([4]);
    let shard = ArraySpec::<u8>::new(region![0..4]).chunks([2]).shards([4]);
    for spec in [plain.codecs(summed()), shard.codecs(summed())] {
        let stored = [[1, 2, 3, 4], [5, 6, 7, 8]].map(|cells: [u8; 4]| {
            let c = Container::in_memory().unwrap();
            let w = c.writer().unwrap();
            let a = w.create_array("a", spec.clone()).unwrap();
            a.write_slice(region![..], &cells).unwrap();
            let a = w.dyn_array("a").unwrap();
            let payload = a.encoded_chunk(&[0]).unwrap().unwrap();
            (
                checksum(&payload),
                a.chunk_extents(Region::all()).unwrap()[0].crc32,
            )
        });
        assert_eq!(stored[0].0, stored[1].0, "a CRC-32C cannot tell them apart");
        assert_ne!(stored[0].1, stored[1].1);
    }
}

/// The harness sees what it should: damage that repairs its checksums is read as if it were right, and told as wrong here.
#[test]
fn the_harness_notices_a_wrong_value() {
    let [_, raw, _] = samples();
    let mut bad = raw.bytes().to_vec();
    bad[raw.payloads[0].0] ^= 1;
    assert_eq!(verdict(&raw, bad.clone(), false), Ok(Verdict::Error));
    let forged = repaired(&raw, bad);
    let found = verdict(&raw, forged, false);
    assert!(found.is_err(), "{found:?}");
}
