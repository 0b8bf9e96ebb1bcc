//! The border around libraries that read what strangers wrote: a panic of theirs is a reason to refuse.
//!
//! Holds [`guarded`]. Must not know formats.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::Refusal;

thread_local! {
    /// Whether a panic of this thread is caught, and so nothing to tell.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs what a library named `what` does; a panic is its refusal. What it held is not to be used again.
pub(super) fn guarded<R>(
    what: &str,
    run: impl FnOnce() -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CAUGHT.with(Cell::get) {
                before(info);
            }
        }));
    });
    let outer = CAUGHT.with(|c| c.replace(true));
    let ran = catch_unwind(AssertUnwindSafe(run));
    CAUGHT.with(|c| c.set(outer));
    ran.unwrap_or_else(|_| Err(format!("bytes that the reader of {what} gives up on")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_within_is_a_refusal_and_one_outside_is_not_touched() {
        let refused = guarded("X", || -> Result<(), Refusal> { panic!("not told") });
        assert!(refused.unwrap_err().contains("reader of X"));
        assert_eq!(guarded("X", || Ok(3)), Ok(3));
        assert!(!CAUGHT.with(Cell::get));
    }
}
