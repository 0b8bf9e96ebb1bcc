//! Random operations on an array and on a plain model of it, compared after each step.
//!
//! Coordinates reach +-(2^62-2), ranks 0 to 6; types, codecs, chunk shapes, shards, origins and key orders are drawn; the
//! container is committed, aborted and opened again in between, from memory and from files by map and by reads. The model
//! is a box of elements around a far place: dense, without chunks, and with no code of the library in it.
//!
//! The ordinary suite does 10^5 operations; the long form a million:
//! `cargo test --release --test spec model -- --ignored --nocapture`.

use std::collections::HashMap;

use orthant::{
    Block, Codec, Container, DataType, Domain, DynArray, DynArraySpec, Elements, OpenOptions,
    ReadVia, Region, RegionItem, Selection, TimeUnit, Writer,
};

use crate::disk::Random;
use crate::medium::{fresh, held};
use crate::support::verify;

const INDEX_MAX: i64 = (1 << 62) - 2;

/// Whether an axis may have these bounds.
fn allowed(lo: i64, hi: i64) -> bool {
    lo <= hi && (-INDEX_MAX..=INDEX_MAX).contains(&lo) && hi <= INDEX_MAX + 1
}

/// What an array must hold: elements that differ from the fill, by coordinate.
#[derive(Clone)]
struct Model {
    domain: Vec<(i64, i64)>,
    cells: HashMap<Vec<i64>, Vec<u8>>,
    fill: Vec<u8>,
}

impl Model {
    fn set(&mut self, at: Vec<i64>, value: &[u8]) {
        if value == self.fill {
            self.cells.remove(&at);
        } else {
            self.cells.insert(at, value.to_vec());
        }
    }

    fn get(&self, at: &[i64]) -> &[u8] {
        self.cells.get(at).unwrap_or(&self.fill)
    }

    fn set_domain(&mut self, domain: Vec<(i64, i64)>) {
        let inside = |at: &[i64]| at.iter().zip(&domain).all(|(x, r)| r.0 <= *x && *x < r.1);
        self.cells.retain(|at, _| inside(at));
        self.domain = domain;
    }

    fn translate(&mut self, by: &[i64]) {
        for (r, by) in self.domain.iter_mut().zip(by) {
            *r = (r.0 + by, r.1 + by);
        }
        self.cells = std::mem::take(&mut self.cells)
            .into_iter()
            .map(|(at, v)| (at.iter().zip(by).map(|(x, by)| x + by).collect(), v))
            .collect();
    }
}

/// Every coordinate that lists of one axis each span, C order.
fn product(axes: &[Vec<i64>]) -> Vec<Vec<i64>> {
    axes.iter().fold(vec![vec![]], |points, axis| {
        let longer = |p: &Vec<i64>| -> Vec<Vec<i64>> {
            let with = |x: &i64| [p.as_slice(), &[*x]].concat();
            axis.iter().map(with).collect()
        };
        points.iter().flat_map(longer).collect()
    })
}

fn data_types() -> Vec<DataType> {
    vec![
        DataType::Bool,
        DataType::Int8,
        DataType::Uint16,
        DataType::Int32,
        DataType::Float32,
        DataType::Float64,
        DataType::Uint64,
        DataType::Complex64,
        DataType::Complex128,
        DataType::Float16,
        DataType::RawBytes { length: 3 },
        DataType::Datetime64 {
            unit: TimeUnit::Second,
            scale: 1,
        },
        DataType::String,
        DataType::Bytes,
    ]
}

struct Run<'a> {
    random: &'a mut Random,
    container: Container,
    writer: Option<Writer>,
    /// Present when the container is a file.
    path: Option<std::path::PathBuf>,
    model: Model,
    committed: Model,
    data_type: DataType,
    steps: u64,
    /// What was done, for the message of a failure.
    log: Vec<String>,
}

impl Run<'_> {
    fn array(&self) -> DynArray {
        self.writer.as_ref().unwrap().dyn_array("g/a").unwrap()
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    fn element(&mut self) -> Vec<u8> {
        if self.chance(4) {
            return self.model.fill.clone();
        }
        // Few different values, so that whole chunks of one value and of fill happen.
        let seed = u8::try_from(1 + self.random.below(3)).unwrap();
        match self.data_type.item_size() {
            Some(_) if self.data_type == DataType::Bool => vec![seed & 1],
            Some(n) => (0..n)
                .map(|i| seed.wrapping_mul(u8::try_from(i + 1).unwrap()))
                .collect(),
            None => "ä".repeat(usize::from(seed) - 1).into_bytes(),
        }
    }

    /// A random part of the domain: the coordinates on each axis, and what asks for them. None when the domain is empty
    /// and `empty` is not wanted.
    fn part(&mut self, repeats: bool) -> (Vec<Vec<i64>>, Selection, Vec<u64>) {
        let domain = self.model.domain.clone();
        let mut items = Vec::new();
        let mut axes = Vec::new();
        let mut shape = Vec::new();
        let mut lists = Vec::new();
        for (axis, &(lo, hi)) in domain.iter().enumerate() {
            let extent = usize::try_from(hi - lo).unwrap();
            match self.random.below(if extent == 0 { 1 } else { 8 }) {
                0 => {
                    items.push(RegionItem::from(..));
                    axes.push((lo..hi).collect());
                    shape.push(extent as u64);
                }
                1 => {
                    let x = lo + self.random.below(extent) as i64;
                    items.push(RegionItem::from(x));
                    axes.push(vec![x]);
                }
                2 => {
                    let n = self.random.below(5);
                    let list: Vec<i64> = (0..n)
                        .map(|_| lo + self.random.below(extent) as i64)
                        .collect();
                    let mut list = list;
                    if !repeats {
                        let mut seen = std::collections::HashSet::new();
                        list.retain(|x| seen.insert(*x));
                    }
                    items.push(RegionItem::from(..));
                    shape.push(list.len() as u64);
                    lists.push((axis, list.clone()));
                    axes.push(list);
                }
                kind => {
                    let a = lo + self.random.below(extent + 1) as i64;
                    let b = a + self.random.below(usize::try_from(hi - a).unwrap() + 1) as i64;
                    let step = if kind == 3 {
                        1 + self.random.below(4)
                    } else {
                        1
                    };
                    items.push(RegionItem::Range {
                        start: Some(orthant::Bound::At(a)),
                        end: Some(orthant::Bound::At(b)),
                        step: step as u64,
                    });
                    let list: Vec<i64> = (a..b).step_by(step).collect();
                    shape.push(list.len() as u64);
                    axes.push(list);
                }
            }
        }
        let selection = lists.into_iter().fold(
            Selection::from(Region::from_items(items)),
            |s, (axis, l)| s.list(axis, l),
        );
        (axes, selection, shape)
    }

    fn block(&self, shape: Vec<u64>, values: &[Vec<u8>]) -> Block {
        Block {
            data_type: self.data_type.clone(),
            shape,
            elements: match self.data_type.item_size() {
                Some(_) => Elements::Fixed(values.concat()),
                None => Elements::Variable(values.iter().map(|v| v.as_slice().into()).collect()),
            },
        }
    }

    fn check(
        &self,
        array: &DynArray,
        model: &Model,
        axes: &[Vec<i64>],
        selection: Selection,
        shape: &[u64],
    ) {
        let points = product(axes);
        let values: Vec<Vec<u8>> = points.iter().map(|p| model.get(p).to_vec()).collect();
        let want = self.block(shape.to_vec(), &values);
        let (got, receipt) = array.read_with_receipt(selection.clone()).unwrap();
        assert_eq!(
            got,
            want,
            "{selection} of {:?} in {} after {:#?}",
            model.domain,
            self.log[0],
            &self.log[self.log.len().saturating_sub(12)..]
        );
        let told = receipt.chunks_absent
            + receipt.chunks_constant
            + receipt.chunks_cached
            + receipt.chunks_decoded;
        assert!(told <= receipt.chunks_touched, "{receipt:?}");
    }

    fn check_all(&self, array: &DynArray, model: &Model) {
        let domain = array.domain().unwrap();
        assert_eq!(domain.bounds(), model.domain, "{:#?}", self.log);
        let axes: Vec<Vec<i64>> = model.domain.iter().map(|r| (r.0..r.1).collect()).collect();
        self.check(array, model, &axes, Region::all().into(), &domain.shape());
    }

    fn write(&mut self) {
        // Which of several values for one element stays is not promised.
        let (axes, selection, shape) = self.part(false);
        let points = product(&axes);
        let array = self.array();
        self.log.push(format!("write {axes:?}"));
        match self.random.below(6) {
            0 => {
                array.erase(selection).unwrap();
                let fill = self.model.fill.clone();
                points.into_iter().for_each(|p| self.model.set(p, &fill));
            }
            1 => {
                array.write_fill(selection).unwrap();
                let fill = self.model.fill.clone();
                points.into_iter().for_each(|p| self.model.set(p, &fill));
            }
            2 => {
                let value = self.element();
                array.write_scalar_bytes(selection, &value).unwrap();
                points.into_iter().for_each(|p| self.model.set(p, &value));
            }
            _ => {
                let values: Vec<Vec<u8>> = points.iter().map(|_| self.element()).collect();
                array.write(selection, &self.block(shape, &values)).unwrap();
                for (p, v) in points.into_iter().zip(&values) {
                    self.model.set(p, v);
                }
            }
        }
    }

    /// Another domain near the old one.
    fn reshape(&mut self) {
        let rank = self.model.domain.len();
        let array = self.array();
        if rank == 0 {
            assert!(array.grow(0, 1, 0).is_err());
            return;
        }
        let axis = self.random.below(rank);
        let (lo, hi) = self.model.domain[axis];
        let extent = u64::try_from(hi - lo).unwrap();
        let most = if rank > 3 { 3 } else { 6 };
        let (a, b) = (self.random.below(4) as u64, self.random.below(4) as u64);
        let mut domain = self.model.domain.clone();
        match self.random.below(6) {
            0 if extent < most => {
                domain[axis] = (lo - a as i64, hi + b as i64);
                let fits = allowed(lo - a as i64, hi + b as i64);
                assert_eq!(array.grow(axis, a, b).is_ok(), fits);
                if !fits {
                    return;
                }
            }
            1 => {
                domain[axis] = (lo + a as i64, hi - b as i64);
                let fits = allowed(lo + a as i64, hi - b as i64);
                assert_eq!(array.trim(axis, a, b).is_ok(), fits);
                if !fits {
                    return;
                }
            }
            2 => {
                let by = a as i64 - b as i64;
                domain[axis] = (lo + by, hi + by);
                let fits = allowed(lo + by, hi + by);
                assert_eq!(array.advance(axis, by).is_ok(), fits);
                if !fits {
                    return;
                }
            }
            3 => {
                for r in &mut domain {
                    let lo = r.0 + self.random.below(5) as i64 - 2;
                    let extent = self.random.below(usize::try_from(most).unwrap() + 1) as i64;
                    *r = (lo, lo + extent);
                }
                let fits = domain.iter().all(|r| allowed(r.0, r.1));
                let next = Domain::new(domain.iter().map(|r| r.0..r.1));
                let done = next.and_then(|next| array.set_domain(next));
                assert_eq!(done.is_ok(), fits, "{done:?}");
                if !fits {
                    return;
                }
            }
            4 if extent < most => return self.attach(axis, a + 1),
            _ => {
                let cut = a.min(extent);
                if array.trim_aligned(axis, cut, 0).is_err() {
                    assert!(!allowed(lo + cut as i64, hi));
                    return;
                }
                domain = array.domain().unwrap().bounds().to_vec();
                assert!(domain[axis].0 <= lo + a.min(extent) as i64 && domain[axis].0 >= lo);
            }
        }
        self.model.set_domain(domain);
    }

    fn attach(&mut self, axis: usize, n: u64) {
        let array = self.array();
        let low = self.chance(2);
        let (lo, hi) = self.model.domain[axis];
        let added = if low {
            (lo - n as i64, lo)
        } else {
            (hi, hi + n as i64)
        };
        let mut slab = self.model.domain.clone();
        slab[axis] = added;
        let axes: Vec<Vec<i64>> = slab.iter().map(|r| (r.0..r.1).collect()).collect();
        let points = product(&axes);
        let values: Vec<Vec<u8>> = points.iter().map(|_| self.element()).collect();
        let shape = axes.iter().map(|a| a.len() as u64).collect();
        let block = self.block(shape, &values);
        self.log
            .push(format!("attach {n} on axis {axis}, low {low}: {values:?}"));
        let done = if low {
            array.prepend_block(axis, &block)
        } else {
            array.append_block(axis, &block)
        };
        let (new_lo, new_hi) = if low { (added.0, hi) } else { (lo, added.1) };
        let fits = allowed(new_lo, new_hi);
        assert_eq!(done.is_ok(), fits, "{done:?}");
        if fits {
            let mut domain = self.model.domain.clone();
            domain[axis] = (new_lo, new_hi);
            self.model.domain = domain;
            for (p, v) in points.into_iter().zip(&values) {
                self.model.set(p, v);
            }
        }
    }

    fn translate(&mut self) {
        let array = self.array();
        let by: Vec<i64> = self
            .model
            .domain
            .iter()
            .map(|_| {
                let near = self.random.below(9) as i64 - 4;
                if self.random.below(8) == 0 {
                    near * (1 << 58)
                } else {
                    near
                }
            })
            .collect();
        let origin = array.origin().unwrap();
        let moved = |x: i64, by: i64| i128::from(x) + i128::from(by);
        let fits = self
            .model
            .domain
            .iter()
            .zip(&origin)
            .zip(&by)
            .all(|((r, o), by)| {
                let max = i128::from(INDEX_MAX);
                (-max..=max).contains(&moved(r.0, *by))
                    && moved(r.1, *by) <= max + 1
                    && (-max..=max).contains(&moved(*o, *by))
            });
        let done = array.translate(&by);
        assert_eq!(
            done.is_ok(),
            fits,
            "{by:?} from {:?}: {done:?}",
            self.model.domain
        );
        if fits {
            self.model.translate(&by);
        }
    }

    fn end_transaction(&mut self) {
        match self.random.below(5) {
            0 => {
                self.log.push("abort".to_owned());
                self.writer.as_ref().unwrap().abort();
                self.model = self.committed.clone();
            }
            _ => {
                self.log.push("commit".to_owned());
                self.check_all(&self.array(), &self.model);
                self.log.push("right before the commit".to_owned());
                self.writer.as_ref().unwrap().commit().unwrap();
                self.committed = self.model.clone();
            }
        }
        let snapshot = self.container.snapshot().unwrap();
        self.check_all(&snapshot.dyn_array("g/a").unwrap(), &self.committed);
        if self.chance(4) {
            self.reopen();
        }
    }

    fn reopen(&mut self) {
        self.writer = None;
        self.container = match &self.path {
            Some(path) => {
                let via = if self.random.below(2) == 0 {
                    ReadVia::Mmap
                } else {
                    ReadVia::Pread
                };
                OpenOptions::new().via(via).open(path).unwrap()
            }
            None => held(self.container.to_bytes().unwrap()).unwrap(),
        };
        self.model = self.committed.clone();
        self.writer = Some(self.container.writer().unwrap());
        if self.chance(3) {
            verify(&self.container);
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        let kind = self.random.below(20);
        self.log.push(format!("{kind} on {:?}", self.model.domain));
        match kind {
            0..8 => self.write(),
            8..13 => {
                let (axes, selection, shape) = self.part(true);
                self.check(&self.array(), &self.model, &axes, selection, &shape);
            }
            13..17 => self.reshape(),
            17 => self.translate(),
            18 => self.check_all(&self.array(), &self.model),
            _ => self.end_transaction(),
        }
    }
}

fn codecs(random: &mut Random, data_type: &DataType, rank: usize) -> Vec<Codec> {
    let mut all = Vec::new();
    if data_type.is_variable_length() {
        all.extend([Codec::zstd(1), Codec::crc32c()]);
        all.truncate(random.below(3));
        return if all.is_empty() {
            vec![Codec::crc32c()]
        } else {
            all
        };
    }
    if rank > 1 && random.below(3) == 0 {
        all.push(Codec::transpose(
            (0..rank).rev().map(|a| u8::try_from(a).unwrap()),
        ));
    }
    let integer = matches!(
        data_type,
        DataType::Int8 | DataType::Uint16 | DataType::Int32 | DataType::Uint64
    );
    if integer && random.below(3) == 0 {
        all.push(Codec::delta());
    }
    all.push(match random.below(4) {
        0 => Codec::bytes_big_endian(),
        _ => Codec::bytes_little_endian(),
    });
    if random.below(3) == 0 {
        all.push(Codec::shuffle());
    }
    match random.below(6) {
        0 => all.push(Codec::zstd(1)),
        1 => all.push(Codec::lz4()),
        2 => all.push(Codec::zlib(1)),
        3 => all.push(Codec::gzip(1)),
        _ => {}
    }
    if random.below(3) == 0 {
        all.push(Codec::crc32c());
    }
    all
}

/// One array's life: `steps` operations.
pub fn life(random: &mut Random, steps: u64, folder: &std::path::Path) {
    let rank = random.below(7);
    let types = data_types();
    let data_type = types[random.below(types.len())].clone();
    let centre = match random.below(5) {
        0 => INDEX_MAX - 12,
        1 => -INDEX_MAX + 3,
        2 => random.next().cast_signed() >> 3,
        _ => -2,
    };
    let most = [0, 14, 6, 4, 3, 2, 2][rank];
    let domain: Vec<(i64, i64)> = (0..rank)
        .map(|_| {
            let lo = centre + random.below(3) as i64;
            let hi = lo + random.below(most + 1) as i64;
            (lo, hi.min(INDEX_MAX + 1))
        })
        .collect();
    let chunks: Vec<u64> = (0..rank).map(|_| 1 + random.below(4) as u64).collect();
    let origin: Vec<i64> = (0..rank)
        .map(|_| match random.below(3) {
            0 => 0,
            1 => centre - random.below(9) as i64,
            _ => random.below(7) as i64 - 3,
        })
        .map(|o| o.max(-INDEX_MAX))
        .collect();
    let path = (random.below(4) == 0).then(|| folder.join(format!("{}.orth", random.next())));
    let container = match &path {
        Some(path) => Container::create(path).unwrap(),
        None => fresh(),
    };
    let writer = container.writer().unwrap();
    let ranges = domain.iter().map(|r| r.0..r.1);
    let mut spec = DynArraySpec::new(data_type.clone(), Domain::new(ranges).unwrap())
        .chunks(chunks.clone())
        .origin(origin)
        .codecs(codecs(random, &data_type, rank));
    if rank > 0 && !data_type.is_variable_length() && random.below(4) == 0 {
        spec = spec.shards(chunks.iter().map(|c| c * (1 + random.below(2) as u64)));
    }
    if rank > 1 && random.below(3) == 0 {
        spec = spec.key_order((0..rank).rev().map(|a| u8::try_from(a).unwrap()));
    }
    if random.below(3) == 0 {
        let fill = match data_type.item_size() {
            Some(n) => vec![1; n],
            None => b"fill".to_vec(),
        };
        spec = spec.fill_bytes(fill);
    }
    let fill = writer.create_dyn_array("g/a", &spec).unwrap().fill_bytes();
    writer.commit().unwrap();
    let model = Model {
        domain,
        cells: HashMap::new(),
        fill,
    };
    let log = vec![format!("{spec:?}")];
    let mut run = Run {
        random,
        container,
        writer: Some(writer),
        path,
        committed: model.clone(),
        model,
        data_type,
        steps: 0,
        log,
    };
    while run.steps < steps {
        run.step();
    }
    run.writer.as_ref().unwrap().commit().unwrap();
    run.committed = run.model.clone();
    run.reopen();
    run.check_all(&run.array(), &run.model);
    verify(&run.container);
}

/// `operations` of them on arrays that live `each`, on a thread for each seed.
fn lives(seeds: std::ops::Range<u64>, operations: u64, each: u64) {
    let folder = tempfile::tempdir().unwrap();
    let share = operations / (seeds.end - seeds.start);
    std::thread::scope(|s| {
        for seed in seeds {
            let folder = folder.path();
            s.spawn(move || {
                let mut random = Random::new(seed);
                let mut done = 0;
                while done < share {
                    life(&mut random, each.min(share - done), folder);
                    done += each;
                }
            });
        }
    });
}

#[test]
fn a_hundred_thousand_random_operations_agree_with_a_dense_model() {
    lives(0..2, 100_000, 250);
}

#[test]
#[ignore = "a million operations: cargo test --release --test spec -- --ignored model"]
fn a_million_random_operations_agree_with_a_dense_model() {
    lives(100..104, 1_000_000, 1000);
}

/// The model found, on its first run, that a read after an abort gave the elements of the aborted write: the next payload
/// lay at the same place, and behind a `crc32c` codec all payloads of one length have one checksum, so the cache of decoded
/// chunks took the one for the other. Nothing uncommitted is cached now.
#[test]
fn a_chunk_written_after_an_abort_is_not_the_aborted_one() {
    let c = fresh();
    let w = c.writer().unwrap();
    let spec = DynArraySpec::new(DataType::Uint8, Domain::new([0..4]).unwrap())
        .chunks([4])
        .codecs([Codec::crc32c()]);
    let a = w.create_dyn_array("a", &spec).unwrap();
    w.commit().unwrap();
    for k in 1..4 {
        let block = Block {
            data_type: DataType::Uint8,
            shape: vec![4],
            elements: Elements::Fixed(vec![k, 2, 3, 4]),
        };
        a.write(Region::all(), &block).unwrap();
        for _ in 0..3 {
            assert_eq!(a.read(Region::all()).unwrap(), block);
        }
        w.abort();
    }
}
