//! Every image that a power cut can leave opens to the last acknowledged commit or the one in flight, whole.
//!
//! A workload runs on the recording disk; for each stretch between two syncs the images are enumerated: all subsets of the
//! pages not yet covered by a sync when there are at most ten (else prefixes, single omissions and random subsets), each
//! page torn at many bytes, sectors of zeros and of garbage, three lengths. Each image is opened, and everything in it is
//! read and compared. Sabotages show that enumeration
//! and workload see what they should.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use orthant::testing::{Memory, Raw, RawEntry, RawSnapshot, Storage};
use orthant::{Array, ArraySpec, Writer, region};

use crate::disk::{Disk, Op, Random, Sabotage};
use crate::support::{figure, rounds};

pub const NAME: &str = "a.orth";
const PAGE: usize = 4096;
const SECTOR: usize = 512;

pub fn name() -> &'static OsStr {
    OsStr::new(NAME)
}

/// What each generation holds.
pub type Model = BTreeMap<u64, Vec<RawEntry>>;

/// Everything but the history, whose records the model does not foretell.
pub fn content(raw: &Raw) -> orthant::Result<Vec<RawEntry>> {
    raw.entries().map(without_history)
}

pub fn without_history(mut all: Vec<RawEntry>) -> Vec<RawEntry> {
    all.retain(|e| e.key[0] != 0x11);
    all
}

/// Creates a container and commits `commits` times; gives the disk's record and the model.
fn workload(random: &mut Random, commits: usize, sabotage: Sabotage) -> (Disk, Model) {
    let disk = Disk::new(sabotage);
    let raw = Raw::create(disk.folder(), name()).unwrap();
    disk.acknowledge(2);
    let mut model = Model::new();
    model.insert(1, content(&raw).unwrap());
    model.insert(2, content(&raw).unwrap());
    let mut writer = raw.writer().unwrap();
    for commit in 0..commits {
        if random.below(6) == 0 {
            drop(writer);
            writer = raw.writer().unwrap();
        }
        for _ in 0..=random.below(4) {
            change(&writer, random);
        }
        if random.below(8) == 0 {
            writer.abort();
        }
        writer.message(&format!("commit {commit}")).unwrap();
        let mut staged = writer.entries().unwrap();
        staged.retain(|e| e.key[0] != 0x11);
        let generation = writer.commit().unwrap();
        disk.acknowledge(generation);
        model.insert(generation, staged);
    }
    (disk, model)
}

pub fn change(writer: &orthant::testing::RawWriter, random: &mut Random) {
    let coords = [
        i64::try_from(random.below(5)).unwrap() - 2,
        i64::try_from(random.below(4)).unwrap(),
    ];
    match random.below(8) {
        0 => writer.delete_chunk(1, &coords),
        1 => {
            let key = [0xE0, u8::try_from(random.below(6)).unwrap()];
            writer.put(&key, &random.next().to_le_bytes());
        }
        2 => writer.delete(&[0xE0, u8::try_from(random.below(6)).unwrap()]),
        _ => {
            let long = random.below(5) == 0;
            let len = 1 + random.below(if long { 9000 } else { 700 });
            let byte = u8::try_from(random.below(256)).unwrap();
            writer.put_chunk(1, &coords, &vec![byte; len]).unwrap();
        }
    }
}

/// A piece of a write that reaches the platter on its own.
#[derive(Debug, Clone)]
pub struct Piece {
    pub offset: usize,
    pub bytes: Vec<u8>,
}

pub fn pieces(offset: u64, bytes: &[u8]) -> Vec<Piece> {
    let mut offset = usize::try_from(offset).unwrap();
    let mut rest = bytes;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.len().min(PAGE - offset % PAGE));
        all.push(Piece {
            offset,
            bytes: head.to_vec(),
        });
        offset += head.len();
        rest = tail;
    }
    all
}

pub fn apply(image: &mut Vec<u8>, piece: &Piece) {
    apply_part(image, piece.offset, &piece.bytes);
}

pub fn apply_part(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// How the images of a run are opened, and what was found.
struct Judge<'a> {
    model: &'a Model,
    open: fn(Vec<u8>) -> orthant::Result<Raw>,
    images: u64,
    bad: u64,
    first_bad: Option<String>,
}

impl<'a> Judge<'a> {
    fn new(model: &'a Model, open: fn(Vec<u8>) -> orthant::Result<Raw>) -> Self {
        Self {
            model,
            open,
            images: 0,
            bad: 0,
            first_bad: None,
        }
    }

    /// Opens `image`, which must hold `last` or `flying`, whole.
    fn image(&mut self, image: &[u8], last: u64, flying: Option<u64>, what: &dyn Fn() -> String) {
        self.images += 1;
        if let Err(why) = self.verdict(image, last, flying) {
            self.fault(format!("{}: {why}", what()));
        }
    }

    fn fault(&mut self, why: String) {
        self.bad += 1;
        self.first_bad.get_or_insert(why);
    }

    fn verdict(&self, image: &[u8], last: u64, flying: Option<u64>) -> Result<(), String> {
        let raw = (self.open)(image.to_vec()).map_err(|e| e.to_string())?;
        let generation = raw.generation().map_err(|e| e.to_string())?;
        if generation != last && Some(generation) != flying {
            return Err(format!("generation {generation}, not {last} or {flying:?}"));
        }
        let found = content(&raw).map_err(|e| e.to_string())?;
        if Some(&found) != self.model.get(&generation) {
            return Err(format!("generation {generation} holds something else"));
        }
        self.retained(&raw)
    }

    /// What is retained is as it was.
    fn retained(&self, raw: &Raw) -> Result<(), String> {
        for kept in raw.retained_generations().map_err(|e| e.to_string())? {
            let old = raw.retained(kept).map_err(|e| e.to_string())?;
            let found = without_history(old.entries().map_err(|e| e.to_string())?);
            if Some(&found) != self.model.get(&kept) {
                return Err(format!("retained generation {kept} holds something else"));
            }
        }
        Ok(())
    }
}

/// Every image of the stretch in which `pending` was written over `base`, durable before.
fn enumerate(
    base: &[u8],
    pending: &[Piece],
    last: u64,
    flying: Option<u64>,
    judge: &mut Judge<'_>,
    random: &mut Random,
) {
    let full = pending
        .iter()
        .map(|p| p.offset + p.bytes.len())
        .max()
        .unwrap_or(0)
        .max(base.len());
    for (i, mask) in subsets(pending.len(), random).into_iter().enumerate() {
        let mut image = base.to_vec();
        for (p, _) in pending.iter().zip(&mask).filter(|(_, kept)| **kept) {
            apply(&mut image, p);
        }
        let what = || format!("subset {mask:?}");
        judge.image(&image, last, flying, &what);
        // The length grew without the data.
        if image.len() < full {
            image.resize(full, 0);
            judge.image(&image, last, flying, &what);
        }
        // The data is there, the length did not grow. Where bytes inside the old length were to count as well, the sync
        // would have made the length durable first; so this leaves the new commit in no image.
        if i % 3 == 0 && image.len() > base.len() {
            image.truncate(base.len());
            judge.image(&image, last, flying, &what);
        }
    }
    for torn in 0..pending.len() {
        for others in [false, true] {
            tear(base, pending, torn, others, last, flying, judge, random);
        }
    }
}

pub fn subsets(n: usize, random: &mut Random) -> Vec<Vec<bool>> {
    if n <= 10 {
        return (0..1_u32 << n)
            .map(|m| (0..n).map(|i| m >> i & 1 == 1).collect())
            .collect();
    }
    let prefixes = (0..=n).map(|k| (0..n).map(|i| i < k).collect());
    let omissions = (0..n).map(|k| (0..n).map(|i| i != k).collect());
    let mut all: Vec<Vec<bool>> = prefixes.chain(omissions).collect();
    all.extend((0..64).map(|_| (0..n).map(|_| random.below(2) == 0).collect::<Vec<_>>()));
    all
}

#[expect(clippy::too_many_arguments, reason = "one torn page among its fellows")]
fn tear(
    base: &[u8],
    pending: &[Piece],
    torn: usize,
    others: bool,
    last: u64,
    flying: Option<u64>,
    judge: &mut Judge<'_>,
    random: &mut Random,
) {
    let mut image = base.to_vec();
    for (i, p) in pending.iter().enumerate() {
        if others && i != torn {
            apply(&mut image, p);
        }
    }
    let piece = &pending[torn];
    let len = piece.bytes.len();
    let is_slot = (0x1000..0x3000).contains(&piece.offset);
    let cuts: Vec<usize> = if is_slot {
        (1..=256)
            .chain([300, 511, 512, 1024, 4095])
            .filter(|c| *c < len)
            .collect()
    } else {
        (0..12)
            .map(|_| 1 + random.below(len.max(2) - 1))
            .filter(|c| *c < len)
            .collect()
    };
    for cut in cuts {
        for head in [true, false] {
            let mut image = image.clone();
            let (at, bytes) = if head {
                (piece.offset, &piece.bytes[..cut])
            } else {
                (piece.offset + cut, &piece.bytes[cut..])
            };
            apply_part(&mut image, at, bytes);
            judge.image(&image, last, flying, &|| {
                format!("page at {:#x} torn at {cut}", piece.offset)
            });
        }
    }
    for sector in (0..len).step_by(SECTOR) {
        let end = len.min(sector + SECTOR);
        for garbage in [false, true] {
            let mut bytes = piece.bytes.clone();
            for byte in &mut bytes[sector..end] {
                *byte = if garbage {
                    (random.next() & 0xFF) as u8
                } else {
                    0
                };
            }
            // Zeros over zeros change nothing; such an image was seen.
            if bytes != piece.bytes {
                let mut image = image.clone();
                apply_part(&mut image, piece.offset, &bytes);
                judge.image(&image, last, flying, &|| {
                    format!("page at {:#x}, bad sector at {sector}", piece.offset)
                });
            }
        }
    }
}

/// What a crash can leave of the names: the sequences of operations since the folder's last sync, cut anywhere, as a
/// journal orders them.
fn visible(ops: &[Op], cut: usize) -> bool {
    let mut names: BTreeMap<OsString, usize> = BTreeMap::new();
    for op in &ops[..cut] {
        match op {
            Op::Create { name, file } => {
                names.insert(name.clone(), *file);
            }
            Op::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Op::Remove { name } => {
                names.remove(name);
            }
            _ => {}
        }
    }
    names.contains_key(name())
}

/// Walks the record of a run and judges every image of it.
fn judge_run(ops: &[Op], judge: &mut Judge<'_>, seed: u64) {
    let mut random = Random::new(seed);
    let mut durable = Vec::new();
    let mut pending: Vec<Piece> = Vec::new();
    let mut acknowledged: Option<u64> = None;
    let mut folder_synced = 0;
    for (i, op) in ops.iter().enumerate() {
        match op {
            Op::Write { offset, bytes, .. } => pending.extend(pieces(*offset, bytes)),
            Op::Sync { .. } | Op::Acknowledged { .. } => {
                let flying = acknowledged.map_or(2, |g| g + 1);
                if let Some(last) = acknowledged {
                    enumerate(&durable, &pending, last, Some(flying), judge, &mut random);
                } else {
                    enumerate_creation(ops, i, &durable, &pending, judge, &mut random);
                }
                if let Op::Acknowledged { generation } = op {
                    acknowledged = Some(*generation);
                    // From here on nothing but the generation itself will do.
                    enumerate(&durable, &pending, *generation, None, judge, &mut random);
                    if !visible(ops, folder_synced) {
                        judge.images += 1;
                        judge.fault("the name of an acknowledged container is lost".to_owned());
                    }
                } else {
                    for p in pending.drain(..) {
                        apply(&mut durable, &p);
                    }
                }
            }
            Op::SyncFolder => folder_synced = i + 1,
            _ => {}
        }
    }
}

/// Before creation is acknowledged the name is absent, or leads to the whole container.
fn enumerate_creation(
    ops: &[Op],
    at: usize,
    durable: &[u8],
    pending: &[Piece],
    judge: &mut Judge<'_>,
    random: &mut Random,
) {
    for cut in 0..=at {
        judge.images += 1;
        if visible(ops, cut) && !pending.is_empty() {
            judge.fault("a name leads to bytes that no sync has covered".to_owned());
        }
    }
    if visible(ops, at) {
        enumerate(durable, pending, 2, None, judge, random);
    }
}

fn run(
    seed: u64,
    commits: usize,
    sabotage: Sabotage,
    open: fn(Vec<u8>) -> orthant::Result<Raw>,
) -> (u64, u64, Option<String>) {
    let (disk, model) = workload(&mut Random::new(seed), commits, sabotage);
    let mut judge = Judge::new(&model, open);
    judge_run(&disk.ops(), &mut judge, seed);
    (judge.images, judge.bad, judge.first_bad)
}

/// A short run, and `images` of the images that a cut can leave of it, all chosen by `random`.
///
/// # Panics
/// When one of them is not whole.
pub fn some_images(random: &mut Random, images: usize) {
    let commits = 1 + random.below(3);
    let (disk, model) = workload(random, commits, Sabotage::None);
    let ops = disk.ops();
    let mut judge = Judge::new(&model, Raw::from_bytes);
    // Creation is the same in every run, and enumerated elsewhere.
    let created = ops
        .iter()
        .position(|op| matches!(op, Op::Acknowledged { .. }))
        .unwrap();
    for _ in 0..images {
        let cut = created + 1 + random.below(ops.len() - created - 1);
        let (mut image, mut pending, mut last) = (Vec::new(), Vec::new(), 0);
        for op in &ops[..=cut] {
            match op {
                Op::Write { offset, bytes, .. } => pending.extend(pieces(*offset, bytes)),
                Op::Sync { .. } => pending.drain(..).for_each(|p| apply(&mut image, &p)),
                Op::Acknowledged { generation } => last = *generation,
                _ => {}
            }
        }
        for piece in &mut pending {
            match random.below(4) {
                0 => continue,
                1 => piece.bytes.truncate(random.below(piece.bytes.len())),
                2 => {
                    let at = random.below(piece.bytes.len()) / SECTOR * SECTOR;
                    let end = piece.bytes.len().min(at + SECTOR);
                    piece.bytes[at..end].fill(u8::try_from(random.below(256)).unwrap());
                }
                _ => {}
            }
            apply(&mut image, piece);
        }
        judge.image(&image, last, Some(last + 1), &|| {
            format!("call {cut} of {}", ops.len())
        });
    }
    assert_eq!(judge.bad, 0, "{:?}", judge.first_bad);
}

#[test]
fn every_crash_image_opens_to_the_last_acknowledged_commit_or_the_one_in_flight() {
    let (mut images, mut bad) = (0, 0);
    for seed in 0..rounds(18, 250) {
        let (i, b, why) = run(seed, 12, Sabotage::None, Raw::from_bytes);
        assert_eq!(b, 0, "seed {seed}: {why:?}");
        (images, bad) = (images + i, bad + b);
    }
    println!("{images} crash images, {bad} bad");
    figure(1, "crash images", images);
    assert!(images >= 250_000, "only {images} images");
}

/// A run in a small file whose space is written to again and again.
struct SpaceRun {
    disk: Disk,
    model: Model,
    overwritten: u64,
    /// Reads of held generations that failed or gave something else.
    lost: u64,
}

/// Overwrites beside readers that hold generations, in this handle and others, generations that are kept and let go, and
/// restores.
fn space_workload(seed: u64, commits: usize, sabotage: Sabotage, horizon_error: u64) -> SpaceRun {
    let mut random = Random::new(seed);
    let disk = Disk::new(sabotage);
    let raw = Raw::create_hasty(disk.folder(), name(), horizon_error).unwrap();
    disk.acknowledge(2);
    let mut model = Model::from([(1, content(&raw).unwrap()), (2, content(&raw).unwrap())]);
    let mut writer = raw.writer().unwrap();
    let mut held: Vec<RawSnapshot> = Vec::new();
    let mut lost = 0;
    for commit in 0..commits {
        if random.below(9) == 0 {
            drop(writer);
            writer = raw.writer().unwrap();
        }
        held.retain(|_| random.below(3) > 0);
        let reader = if random.below(2) == 0 {
            raw.clone()
        } else {
            Raw::open(disk.folder(), name()).unwrap()
        };
        held.push(reader.snapshot().unwrap());
        let kept = raw.retained_generations().unwrap();
        if !kept.is_empty() && random.below(9) == 0 {
            let old = raw.retained(kept[random.below(kept.len())]).unwrap();
            writer.restore(&old).unwrap();
        }
        if random.below(4) == 0 {
            writer
                .retain(&format!("s{}", raw.generation().unwrap()))
                .unwrap();
        }
        for generation in kept {
            if random.below(4) == 0 {
                // Refused while one of `held` reads it.
                drop(writer.release(&format!("s{generation}")));
            }
        }
        for _ in 0..=random.below(3) {
            change(&writer, &mut random);
        }
        writer.message(&format!("commit {commit}")).unwrap();
        let staged = without_history(writer.entries().unwrap());
        let generation = writer.commit().unwrap();
        disk.acknowledge(generation);
        model.insert(generation, staged);
        for snapshot in &held {
            let found = snapshot.entries().map(without_history).ok();
            lost += u64::from(found.as_ref() != model.get(&snapshot.generation()));
        }
    }
    let overwritten = overwritten(&disk.ops());
    SpaceRun {
        disk,
        model,
        overwritten,
        lost,
    }
}

/// Bytes that were written where something had been written before, slots apart.
fn overwritten(ops: &[Op]) -> u64 {
    let (mut end, mut sum) = (0x3000, 0);
    for op in ops {
        if let Op::Write { offset, bytes, .. } = op
            && *offset >= 0x3000
        {
            let len = bytes.len() as u64;
            sum += len.min(end - (*offset).min(end));
            end = end.max(offset + len);
        }
    }
    sum
}

#[test]
fn every_crash_image_is_whole_while_space_is_reused_kept_let_go_and_restored() {
    let (mut images, mut reused) = (0, 0);
    for seed in 0..rounds(10, 60) {
        let run = space_workload(seed, 26, Sabotage::None, 0);
        assert_eq!(run.lost, 0, "seed {seed}");
        let mut judge = Judge::new(&run.model, Raw::from_bytes);
        judge_run(&run.disk.ops(), &mut judge, seed);
        assert_eq!(judge.bad, 0, "seed {seed}: {:?}", judge.first_bad);
        images += judge.images;
        reused += run.overwritten;
    }
    println!("{images} crash images, 0 bad, {reused} bytes written into space used before");
    figure(1, "crash images while space is reused", images);
    assert!(images >= 150_000 && reused > 150_000, "{images} {reused}");
}

/// Groups, arrays, attributes: what a program does, on the recording disk.
fn array_workload(seed: u64, commits: usize) -> (Disk, Model) {
    let mut random = Random::new(seed);
    let disk = Disk::new(Sabotage::None);
    let raw = Raw::create(disk.folder(), name()).unwrap();
    disk.acknowledge(2);
    let mut model = Model::from([(1, content(&raw).unwrap()), (2, content(&raw).unwrap())]);
    let writer = raw.container().writer().unwrap();
    let spec = ArraySpec::<i32>::new(region![-5..5, 0..7])
        .chunks([3, 4])
        .fill(-1);
    let array = writer.create_array("g/a", spec).unwrap();
    for commit in 0..commits {
        for _ in 0..=random.below(2) {
            array_change(&writer, &array, commit, &mut random);
        }
        let generation = writer.commit().unwrap();
        disk.acknowledge(generation);
        model.insert(generation, content(&raw).unwrap());
    }
    (disk, model)
}

fn array_change(writer: &Writer, array: &Array<i32>, commit: usize, random: &mut Random) {
    let domain = array.domain().unwrap();
    let rows = domain.ranges().next().unwrap();
    let row = rows.start
        + i64::try_from(random.below(usize::try_from(rows.end - rows.start).unwrap())).unwrap();
    match random.below(8) {
        0 => drop(array.grow(0, 2, 1).unwrap()),
        1 if rows.end - rows.start > 4 => drop(array.trim(0, 1, 1).unwrap()),
        2 => drop(array.write_scalar(region![row, ..], 7).unwrap()),
        3 => drop(array.erase(region![row, 1..5]).unwrap()),
        4 => array
            .attributes()
            .set("step", i64::try_from(commit).unwrap())
            .unwrap(),
        5 => array
            .attributes()
            .set("text", "x".repeat(random.below(3000)))
            .unwrap(),
        6 => {
            let path = format!("more/b{commit}");
            if writer.root().kind(&path).unwrap().is_none() {
                writer
                    .create_array(&path, ArraySpec::<f64>::new(region![0..3]))
                    .unwrap();
            }
        }
        _ => {
            let data: Vec<i32> = (0..7).map(|i| i + i32::try_from(commit).unwrap()).collect();
            array.write_slice(region![row..row + 1, ..], &data).unwrap();
        }
    }
}

#[test]
fn every_crash_image_of_a_program_with_arrays_opens_to_a_whole_commit() {
    let mut images = 0;
    for seed in 0..4 {
        let (disk, model) = array_workload(seed, 10);
        let mut judge = Judge::new(&model, Raw::from_bytes);
        judge_run(&disk.ops(), &mut judge, seed);
        assert_eq!(judge.bad, 0, "seed {seed}: {:?}", judge.first_bad);
        images += judge.images;
    }
    println!("{images} crash images with arrays, 0 bad");
    figure(1, "crash images of programs with arrays", images);
    assert!(images >= 40_000, "only {images} images");
}

#[test]
fn a_crash_while_a_crashed_container_is_written_again_loses_nothing() {
    let (disk, mut model) = workload(&mut Random::new(77), 5, Sabotage::None);
    let ops = disk.ops();
    let mut random = Random::new(5);
    let (mut images, mut firsts) = (0, 0);
    // First crashes: in each stretch, the slot torn in the middle, or nothing of the stretch kept.
    let mut durable = Vec::new();
    let mut pending: Vec<Piece> = Vec::new();
    let mut acknowledged = 0;
    for op in &ops {
        match op {
            Op::Write { offset, bytes, .. } => pending.extend(pieces(*offset, bytes)),
            Op::Sync { .. } => {
                if acknowledged > 0 {
                    for keep in 0..3 {
                        let mut image = durable.clone();
                        for p in &pending {
                            match keep {
                                0 => {}
                                1 => apply_part(
                                    &mut image,
                                    p.offset,
                                    &p.bytes[..p.bytes.len().min(100)],
                                ),
                                _ => apply(&mut image, p),
                            }
                        }
                        images += recrash(&image, acknowledged, &mut model, &mut random);
                        firsts += 1;
                    }
                }
                for p in pending.drain(..) {
                    apply(&mut durable, &p);
                }
            }
            Op::Acknowledged { generation } => acknowledged = *generation,
            _ => {}
        }
    }
    println!("{images} images of second crashes after {firsts} first ones");
    figure(2, "second crashes while written on", images);
    assert!(images >= 10_000);
}

/// Opens an image, writes on, and judges every image of that; gives their number.
fn recrash(image: &[u8], acknowledged: u64, model: &mut Model, random: &mut Random) -> u64 {
    let disk = Disk::with_file(name(), image.to_vec());
    let raw = Raw::open(disk.folder(), name()).unwrap();
    let first = raw.generation().unwrap();
    assert!(first == acknowledged || first == acknowledged + 1);
    let before = content(&raw).unwrap();
    let writer = raw.writer().unwrap();
    let healed = raw.generation().unwrap();
    let mut local = Model::new();
    for g in first..=healed {
        local.insert(g, before.clone());
    }
    disk.acknowledge(healed);
    change(&writer, random);
    let mut staged = writer.entries().unwrap();
    staged.retain(|e| e.key[0] != 0x11);
    let generation = writer.commit().unwrap();
    disk.acknowledge(generation);
    local.insert(generation, staged);

    let mut judge = Judge::new(&local, Raw::from_bytes);
    let mut durable = image.to_vec();
    let mut pending: Vec<Piece> = Vec::new();
    let mut last = first;
    for op in &disk.ops() {
        match op {
            Op::Write { offset, bytes, .. } => pending.extend(pieces(*offset, bytes)),
            Op::Sync { .. } => {
                enumerate(&durable, &pending, last, Some(last + 1), &mut judge, random);
                for p in pending.drain(..) {
                    apply(&mut durable, &p);
                }
            }
            Op::Acknowledged { generation } => last = *generation,
            _ => {}
        }
    }
    assert_eq!(judge.bad, 0, "{:?}", judge.first_bad);
    let _ = model;
    judge.images
}

/// A run that must show bad images.
fn noticed(sabotage: Sabotage, open: fn(Vec<u8>) -> orthant::Result<Raw>) {
    let (images, bad, why) = run(1, 4, sabotage, open);
    println!(
        "{bad} of {images} images bad; the first: {}",
        why.as_deref().unwrap_or("none")
    );
    assert!(bad > 0);
}

#[test]
fn the_enumeration_notices_a_missing_sync_before_the_slot() {
    noticed(Sabotage::FirstSync, Raw::from_bytes);
}

#[test]
fn the_enumeration_notices_a_missing_sync_after_the_slot() {
    noticed(Sabotage::SecondSync, Raw::from_bytes);
}

#[test]
fn the_enumeration_notices_a_missing_sync_of_the_folder() {
    noticed(Sabotage::FolderSync, Raw::from_bytes);
}

#[test]
fn the_enumeration_notices_that_slots_are_not_checked() {
    noticed(Sabotage::None, |bytes| {
        Raw::from_storage(Arc::new(Unchecked(Memory::from_bytes(bytes))))
    });
}

#[test]
fn the_enumeration_notices_that_there_is_one_slot_only() {
    noticed(Sabotage::None, |bytes| {
        let newest = newest_slot(&bytes);
        Raw::from_storage(Arc::new(OneSlot(Memory::from_bytes(bytes), newest)))
    });
}

#[test]
fn the_workload_notices_that_pins_of_others_are_not_asked_for() {
    let lost: u64 = (0..4)
        .map(|seed| space_workload(seed, 26, Sabotage::Pins, 0).lost)
        .sum();
    println!("{lost} reads of held generations lost");
    assert!(lost > 0);
}

#[test]
fn the_workload_notices_that_space_is_reused_before_the_horizon_has_passed() {
    for early in [1, 2, u64::MAX] {
        let lost: u64 = (0..4)
            .map(|seed| space_workload(seed, 26, Sabotage::None, early).lost)
            .sum();
        println!("{early} too early: {lost} reads of held generations lost");
        assert!(lost > 0, "{early}");
    }
}

fn crc_of(slot: &[u8]) -> [u8; 4] {
    crc32c(&slot[..252]).to_le_bytes()
}

/// CRC32C, bit by bit: the tests' own.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| {
            if c & 1 == 1 {
                c >> 1 ^ 0x82F6_3B78
            } else {
                c >> 1
            }
        })
    })
}

/// A medium that makes the checksum of every slot right on reading: as if none were checked.
#[derive(Debug)]
struct Unchecked(Memory);

impl Storage for Unchecked {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buf)?;
        if offset == 0x1000 && buf.len() == 0x2000 {
            for slot in [0, 0x1000] {
                let crc = crc_of(&buf[slot..]);
                buf[slot + 252..slot + 256].copy_from_slice(&crc);
            }
        }
        Ok(())
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn is_shared(&self) -> bool {
        false
    }
}

/// Which block the last slot went to, by its generation, whatever its checksum says.
fn newest_slot(bytes: &[u8]) -> usize {
    let generation = |at: usize| u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
    if generation(0x1000) > generation(0x2000) {
        0x1000
    } else {
        0x2000
    }
}

/// A medium as a format with one slot would leave it: of the two blocks only the one written last exists, and the other
/// is its image one generation earlier.
#[derive(Debug)]
struct OneSlot(Memory, usize);

impl Storage for OneSlot {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buf)?;
        if offset == 0x1000 && buf.len() == 0x2000 {
            let (newest, other) = if self.1 == 0x1000 {
                (0, 0x1000)
            } else {
                (0x1000, 0)
            };
            let mut slot = buf[newest..newest + 256].to_vec();
            let whole = crc_of(&slot) == slot[252..];
            let generation = u64::from_le_bytes(slot[8..16].try_into().unwrap()).wrapping_sub(1);
            slot[8..16].copy_from_slice(&generation.to_le_bytes());
            slot[57] ^= 1;
            let horizon = u64::from_le_bytes(slot[80..88].try_into().unwrap());
            slot[80..88].copy_from_slice(&horizon.min(generation.saturating_sub(1)).to_le_bytes());
            let crc = crc_of(&slot);
            slot[252..].copy_from_slice(&crc);
            if !whole {
                slot.fill(0);
            }
            buf[other..other + 256].copy_from_slice(&slot);
        }
        Ok(())
    }
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn is_shared(&self) -> bool {
        false
    }
}
