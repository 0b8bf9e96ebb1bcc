//! Buffers between two codecs, kept per thread.
//!
//! Holds [`Scratch`]. Must not decide sizes: whoever takes a buffer has bounded its length already.
//!
//! A buffer comes with the bytes of its last use in it, so that nothing is zeroed twice. That is safe because a codec
//! either fills exactly what it was given or fails, and a failed codec's buffer goes nowhere.

use std::cell::RefCell;

/// How many buffers a thread keeps: two for a pipeline and two for the one inside a shard.
const KEPT_COUNT: usize = 4;
/// Larger buffers are given back, so that one huge chunk does not stay in memory for good.
const KEPT_LEN_MAX: usize = 64 << 20;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer on loan from its thread.
#[derive(Debug)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn take() -> Self {
        Self(
            KEPT.try_with(|kept| kept.borrow_mut().pop())
                .ok()
                .flatten()
                .unwrap_or_default(),
        )
    }

    /// The first `len` bytes, to be filled whole; their content is unspecified.
    pub(crate) fn first(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len {
            self.0.resize(len, 0);
        }
        self.0.get_mut(..len).unwrap_or_default()
    }

    /// The whole buffer, for a codec that sets its length.
    pub(crate) fn vec(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.0.capacity() == 0 || self.0.capacity() > KEPT_LEN_MAX {
            return;
        }
        let buffer = std::mem::take(&mut self.0);
        // During a thread's end the pool may be gone; then the buffer is freed, as any other.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_COUNT {
                kept.push(buffer);
            }
        });
    }
}
