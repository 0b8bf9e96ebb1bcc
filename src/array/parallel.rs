//! Running independent pieces of work, in the caller's thread pool where the `rayon` feature is on.
//!
//! Holds [`map`] and [`width`]. Never builds or configures a pool; results come back in order, so what is written does
//! not depend on the number of threads. Must not be called while a lock is held.

use crate::error::Result;

/// How many pieces can run at once.
pub(crate) fn width() -> usize {
    #[cfg(feature = "rayon")]
    {
        rayon::current_num_threads()
    }
    #[cfg(not(feature = "rayon"))]
    1
}

/// Applies `f` to every piece and collects the results in order; the first error ends the call.
pub(crate) fn map<T: Send, R: Send>(
    pieces: Vec<T>,
    f: impl Fn(T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    #[cfg(feature = "rayon")]
    if pieces.len() > 1 && width() > 1 {
        use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
        // Pieces are large: whoever is done first takes the next single one, not half of what is left.
        return pieces.into_par_iter().with_max_len(1).map(f).collect();
    }
    pieces.into_iter().map(f).collect()
}
