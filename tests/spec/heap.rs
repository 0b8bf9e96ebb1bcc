//! How much memory a call takes: an allocator that counts, for each thread, what lives and what lived at most.
//!
//! Holds [`peak_of`] and [`allocations_of`]. Work that a call hands to other threads is not counted. Must not change what is allocated.

#![expect(
    unsafe_code,
    reason = "counting allocations is only possible in an allocator; it forwards to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

fn change(by: isize) {
    // A thread that is ending has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + by);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn signed(n: usize) -> isize {
    isize::try_from(n).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to `System` unchanged; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        change(signed(layout.size()));
        // SAFETY: the caller keeps `alloc`'s contract, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        change(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        change(signed(size) - signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        change(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs `f` and says by how many bytes this thread's live memory rose at most meanwhile.
pub fn peak_of<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let done = f();
    let risen = PEAK.get() - before;
    (done, usize::try_from(risen).unwrap_or(0))
}

/// Runs `f` and says how often this thread asked for memory meanwhile.
pub fn allocations_of<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let before = ALLOCATIONS.get();
    let done = f();
    (done, ALLOCATIONS.get() - before)
}

#[test]
fn the_counter_sees_what_lived_and_went() {
    let (len, peak) = peak_of(|| vec![1_u8; 1 << 20].len());
    assert!(
        len == 1 << 20 && (1 << 20..2 << 20).contains(&peak),
        "{peak}"
    );
    let (_, times) = allocations_of(|| (Box::new(1), Vec::<u8>::with_capacity(9)));
    assert_eq!(times, 2);
    assert_eq!(allocations_of(|| 1 + 1).1, 0);
}
