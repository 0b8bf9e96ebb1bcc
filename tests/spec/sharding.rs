//! Shards: parts are fetched and decoded by themselves, counted exactly, and what does not change keeps its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orthant::testing::{Memory, Span, Storage};
use orthant::{
    Array, ArraySpec, ChunkState, Codec, Container, Domain, OpenOptions, ReadPath, Region, Writer,
    region,
};

use crate::medium::{fresh, fresh_exact};
use crate::support::{array, writer};

/// A medium that counts requests for parts of itself.
#[derive(Debug, Default)]
struct Counting {
    memory: Memory,
    /// Requests and their bytes since the last look.
    requests: AtomicU64,
    bytes: AtomicU64,
    gap: Option<u64>,
}

impl Counting {
    fn new(bytes: Vec<u8>, gap: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            memory: Memory::from_bytes(bytes),
            gap,
            ..Self::default()
        })
    }

    fn take(&self) -> (u64, u64) {
        let take = |n: &AtomicU64| n.swap(0, Ordering::Relaxed);
        (take(&self.requests), take(&self.bytes))
    }
}

impl Storage for Counting {
    fn len(&self) -> std::io::Result<u64> {
        self.memory.len()
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.memory.read_exact_at(offset, buf)
    }

    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.memory.write_all_at(offset, bytes)
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn map(&self, _: u64, _: usize) -> Option<Span> {
        None
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn fetch_gap(&self) -> Option<u64> {
        self.gap
    }
}

/// 64 x 64 f32 as one shard of 8 x 8, each inner chunk 260 bytes, no value fill.
fn row_one(w: &Writer) -> Array<f32> {
    let spec = ArraySpec::<f32>::new(region![0..64, 0..64])
        .chunks([8, 8])
        .shards([64, 64])
        .codecs([Codec::bytes_little_endian()]);
    let a = array(w, spec);
    let cells: Vec<f32> = (1..=4096_u16).map(f32::from).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    a
}

fn committed(w: &Writer, c: &Container) -> Vec<u8> {
    w.commit().unwrap();
    c.to_bytes().unwrap()
}

#[test]
fn three_inner_chunks_cost_the_index_once_and_their_own_bytes_each_time() {
    let c = fresh_exact(&OpenOptions::new());
    let w = c.writer().unwrap();
    row_one(&w);
    w.commit().unwrap();
    let snap = c.snapshot().unwrap();
    let a = snap.array::<f32>("a").unwrap();
    assert_eq!(a.chunk_shape(), [8, 8]);
    assert_eq!(a.shard_shape().unwrap(), [64, 64]);
    // In a row, in a column, and one alone with two neighbours.
    for (region, first) in [
        (region![8..16, 0..24], true),
        (region![0..24, 8..16], false),
        (region![40..64, 56..64], false),
    ] {
        let plan = a.explain(&region).unwrap();
        let (cells, receipt) = a.read_with_receipt(&region).unwrap();
        assert_eq!(cells.len(), 192);
        assert_eq!(plan, receipt, "{region}");
        assert_eq!(receipt.path, ReadPath::Partial);
        assert_eq!(receipt.reason, None);
        assert_eq!(receipt.inner_decoded, 3);
        let index = if first { 1028 } else { 0 };
        assert_eq!(receipt.bytes_fetched, index + 780, "{region}");
        let (_, again) = a.read_with_receipt(&region).unwrap();
        assert_eq!((again.bytes_fetched, again.inner_decoded), (780, 3));
    }
    // The value at (y, x) is y * 64 + x + 1.
    assert_eq!(a.read_vec(region![63, 63]).unwrap(), [4096.0]);
    assert_eq!(a.read_vec(region![8..10, 7]).unwrap(), [520.0, 584.0]);
}

#[test]
fn a_medium_that_reads_ranges_is_asked_for_ranges_and_any_other_for_the_shard() {
    let c = fresh();
    let w = c.writer().unwrap();
    row_one(&w);
    let bytes = committed(&w, &c);
    let whole = 1028 + 64 * 260;
    let ask = |gap: Option<u64>, partial: bool, region: &Region| {
        let medium = Counting::new(bytes.clone(), gap);
        let storage: Arc<dyn Storage> = Arc::clone(&medium) as _;
        let options = OpenOptions::new().partial_reads(partial);
        let c = options.open_storage(storage).unwrap();
        let a = c.snapshot().unwrap().array::<f32>("a").unwrap();
        // So that index nodes and documents are in memory.
        a.chunks().unwrap();
        medium.take();
        let (cells, receipt) = a.read_with_receipt(region).unwrap();
        let (requests, fetched) = medium.take();
        assert_eq!(receipt.bytes_fetched, fetched, "{region}");
        (cells, receipt, requests)
    };
    // Three in a row: the index, then one range.
    let row = region![8..16, 0..24];
    let (want, receipt, requests) = ask(Some(64 << 10), true, &row);
    assert_eq!((receipt.bytes_fetched, requests), (1808, 2));
    assert_eq!(receipt.path, ReadPath::Partial);
    let (cells, receipt, requests) = ask(None, true, &row);
    assert_eq!((receipt.bytes_fetched, requests), (whole, 1));
    assert_eq!(
        (receipt.path, receipt.reason),
        (ReadPath::Whole, Some("no_ranges"))
    );
    assert_eq!(receipt.inner_decoded, 3);
    assert_eq!(cells, want);
    let (cells, receipt, _) = ask(Some(64 << 10), false, &row);
    assert_eq!(receipt.bytes_fetched, whole);
    assert_eq!(receipt.reason, Some("partial_reads_off"));
    assert_eq!(receipt.inner_decoded, 3);
    assert_eq!(cells, want);
    // A column: one range over the gaps where they are cheaper than a call, else three.
    let column = region![0..24, 8..16];
    let (_, receipt, requests) = ask(Some(64 << 10), true, &column);
    assert_eq!((receipt.bytes_fetched, requests), (1028 + 17 * 260, 2));
    let (_, receipt, requests) = ask(Some(7 * 260 - 1), true, &column);
    assert_eq!((receipt.bytes_fetched, requests), (1808, 4));
    // All of it is no part.
    let (_, receipt, requests) = ask(Some(64 << 10), true, &Region::all());
    assert_eq!((receipt.bytes_fetched, requests), (whole, 1));
    assert_eq!(
        (receipt.path, receipt.reason),
        (ReadPath::Whole, Some("full_shard"))
    );
    assert_eq!(receipt.inner_decoded, 64);
}

/// C67: u16 (64,64,64), one shard of 8 x 8 x 8.
#[test]
fn c67_one_inner_chunk_costs_one_inner_chunk() {
    let c = fresh_exact(&OpenOptions::new());
    let w = c.writer().unwrap();
    let spec = ArraySpec::<u16>::new(region![0..64, 0..64, 0..64])
        .chunks([8, 8, 8])
        .shards([64, 64, 64])
        .codecs([Codec::zstd(3)]);
    let a = array(&w, spec);
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u16::try_from(state >> 16).unwrap()
    };
    let cells: Vec<u16> = (0..64 * 64 * 64).map(|_| noise() | 1).collect();
    a.write_slice(Region::all(), &cells).unwrap();
    a.erase(region![56..64, 56..64, 56..64]).unwrap();
    w.commit().unwrap();
    let a = c.snapshot().unwrap().array::<u16>("a").unwrap();
    let at = |z: usize, y: usize, x: usize| cells[(z * 64 + y) * 64 + x];
    let (got, receipt) = a.read_with_receipt(region![60, 60, 60]).unwrap();
    assert_eq!(got.first(), Some(&0));
    assert_eq!(
        (receipt.inner_decoded, receipt.bytes_fetched),
        (0, 512 * 16 + 4)
    );
    let (got, receipt) = a.read_with_receipt(region![0..8, 8..16, 16..24]).unwrap();
    assert_eq!(got[[0, 0, 0]], at(0, 8, 16));
    assert_eq!(receipt.inner_decoded, 1);
    assert!(receipt.bytes_fetched < 1100, "{receipt:?}");
    let (got, receipt) = a.read_with_receipt(region![0..9, 3, 5]).unwrap();
    assert_eq!(got[[8]], at(8, 3, 5));
    assert_eq!(receipt.inner_decoded, 2);
    assert!(receipt.bytes_fetched < 2200, "{receipt:?}");
    // A part of an inner chunk stays in the cache; the same cells again cost nothing.
    let (_, receipt) = a.read_with_receipt(region![0..9, 4, 5]).unwrap();
    assert_eq!((receipt.inner_decoded, receipt.bytes_fetched), (0, 0));
    assert_eq!(receipt.chunks_cached, 1);
}

/// Row 5: one inner chunk of a shard of 512 is written.
#[test]
fn a_partial_write_leaves_the_other_inner_chunks_bytes_as_they_are() {
    let w = writer();
    let spec = ArraySpec::<u16>::new(region![0..64, 0..64, 0..64])
        .chunks([8, 8, 8])
        .shards([64, 64, 64]);
    let a = array(&w, spec);
    let cells: Vec<u16> = (0..64 * 64 * 64)
        .map(|i: u32| u16::try_from(i % 60_000).unwrap() + 1)
        .collect();
    let receipt = a.write_slice(Region::all(), &cells).unwrap();
    assert_eq!((receipt.inner_encoded, receipt.inner_decoded), (512, 0));
    let inner = |a: &Array<u16>| {
        let shard = a.encoded_chunk(&[0, 0, 0]).unwrap().unwrap();
        let index = &shard[shard.len() - 8196..];
        (0..512)
            .map(|i| {
                let word = |at: usize| {
                    let bytes = index[i * 16 + at..][..8].try_into().unwrap();
                    usize::try_from(u64::from_le_bytes(bytes)).unwrap()
                };
                shard[word(0)..][..word(8)].to_vec()
            })
            .collect::<Vec<_>>()
    };
    let before = inner(&a);
    let receipt = a.write_slice(region![9, 9, 9], &[7]).unwrap();
    assert_eq!((receipt.inner_decoded, receipt.inner_encoded), (1, 1));
    assert_eq!(receipt.inner_kept, 511);
    let after = inner(&a);
    let changed: Vec<usize> = (0..512).filter(|&i| before[i] != after[i]).collect();
    assert_eq!(changed, [64 + 8 + 1]);
    // A whole inner chunk needs no decoding at all.
    let receipt = a
        .write_slice(region![8..16, 8..16, 8..16], &[5; 512])
        .unwrap();
    assert_eq!((receipt.inner_decoded, receipt.inner_encoded), (0, 1));
    assert_eq!(a.read_vec(region![15, 15, 15..17]).unwrap()[0], 5);
}

/// C05: shards whose columns are ragged.
#[test]
fn ragged_shards_hold_only_the_inner_chunks_inside_the_domain() {
    let w = writer();
    let make = |name: &str| {
        let spec = ArraySpec::<i16>::new(region![0..7, 0..8])
            .chunks([2, 3])
            .shards([4, 6])
            .fill(-1);
        w.create_array(name, spec).unwrap()
    };
    let cell = |y: i64, x: i64| i16::try_from(100 * y + x).unwrap();
    let all: Vec<i16> = (0..7)
        .flat_map(|y| (0..8).map(move |x| cell(y, x)))
        .collect();
    let (once, rows) = (make("once"), make("rows"));
    once.write_slice(Region::all(), &all).unwrap();
    for y in 0..7 {
        let row: Vec<i16> = (0..8).map(|x| cell(y, x)).collect();
        rows.write_slice(region![y, ..], &row).unwrap();
    }
    for a in [&once, &rows] {
        assert_eq!(a.read_vec(Region::all()).unwrap(), all);
        for y in 0..7 {
            for x in 0..8 {
                assert_eq!(a.read_vec(region![y, x]).unwrap(), [cell(y, x)]);
            }
        }
        for (chunk, inner) in [([0, 0], 4), ([0, 1], 2), ([1, 0], 4), ([1, 1], 2)] {
            let shard = a.encoded_chunk(&chunk).unwrap().unwrap();
            let index = &shard[shard.len() - 68..][..64];
            let present = index.chunks(16).filter(|e| **e != [0xff; 16]).count();
            assert_eq!(present, inner, "{chunk:?}");
        }
    }
    assert_eq!(
        once.encoded_chunk(&[1, 1]).unwrap(),
        rows.encoded_chunk(&[1, 1]).unwrap()
    );
}

/// C11 on shards: what a shrink cuts never returns, and only the inner chunks at the edge are encoded anew.
#[test]
fn a_cut_shard_forgets_what_is_outside_and_recodes_its_edge_alone() {
    for commit in [false, true] {
        let w = writer();
        let spec = ArraySpec::<i32>::new(region![0..4, 0..6])
            .chunks([2, 3])
            .shards([4, 6])
            .fill(9);
        let a = array(&w, spec);
        a.write_scalar(Region::all(), 1).unwrap();
        a.write_slice(region![0, 0], &[1]).unwrap();
        let cut = a.set_domain(Domain::new([0..1, 0..1]).unwrap()).unwrap();
        assert_eq!((cut.dropped, cut.scrubbed, cut.recoded), (0, 1, 1));
        if commit {
            w.commit().unwrap();
        }
        a.set_domain(Domain::new([0..4, 0..6]).unwrap()).unwrap();
        let cells = a.read_vec(Region::all()).unwrap();
        assert_eq!(cells[0], 1);
        assert!(cells[1..].iter().all(|&v| v == 9));
    }
}

#[test]
fn a_snapshot_never_sees_another_generations_bytes() {
    let c = fresh();
    let w = c.writer().unwrap();
    let a = row_one(&w);
    w.commit().unwrap();
    let old = c.snapshot().unwrap().array::<f32>("a").unwrap();
    assert_eq!(old.read_vec(region![3, 3]).unwrap(), [196.0]);
    a.write_slice(region![3, 3], &[-1.0]).unwrap();
    assert_eq!(a.read_vec(region![3, 3]).unwrap(), [-1.0]);
    w.commit().unwrap();
    let new = c.snapshot().unwrap().array::<f32>("a").unwrap();
    assert_eq!(new.read_vec(region![3, 2..4]).unwrap(), [195.0, -1.0]);
    assert_eq!(old.read_vec(region![3, 2..4]).unwrap(), [195.0, 196.0]);
    assert!(matches!(
        new.chunks().unwrap()[0].state,
        ChunkState::Stored { .. }
    ));
}
