//! Snapshots, the writer, commit, opening and creation. Spec: `format-spec/09-commit.md`.
//!
//! What the rooms above read through is [`View`]; what they write through is [`WriterState`], which a view of a writer
//! hands out. Must not know codecs or geometry.
//!
//! Lock order, outermost first: `WriterState::gate`, a key lock, the tail, the reuse of space, then any one of the small
//! ones (overlay, health, base, slots, published, pins). Only `gate` is held while the medium is read or written: by a commit
//! alone, by every other call shared. Two exceptions, for which everybody has to wait anyway: the first place of a
//! transaction is given once the free space is known, under the tail's lock; a pin's byte is locked under the pins'.

mod clock;
mod commit;
mod create;
mod cursor;
mod draft;
mod engine;
#[cfg(test)]
mod measure;
mod open;
mod options;
mod overlay;
mod payload;
mod payload_cache;
mod pins;
mod publish;
mod recency;
pub(crate) mod retained;
mod reuse;
mod scratch;
mod snapshot;
mod space;
mod tail;
mod usage;
mod view;
mod whole;
mod wreck;
mod writer;

pub(crate) use crate::format::key::{Key, Value};
pub(crate) use crate::index::Change;
#[cfg(all(unix, target_pointer_width = "64"))]
pub(crate) use crate::store::Undisturbed;
pub(crate) use cursor::Cursor;
pub(crate) use draft::{Draft, States};
pub(crate) use engine::{Chain, Engine, Fetch};
pub use open::{OpenReport, OtherSlot};
pub(crate) use options::{CACHE_BYTES, EngineOptions, NewContainer};
pub(crate) use payload::Payload;
pub use payload_cache::CacheStatistics;
pub(crate) use payload_cache::{CacheKey, PayloadCache};
#[cfg(any(unix, windows))]
pub(crate) use publish::{Taken, Unnamed, make_new_at};
pub(crate) use scratch::Scratch;
pub(crate) use snapshot::SnapshotState;
pub(crate) use usage::HoldingKind;
pub(crate) use view::View;
pub(crate) use whole::{Form, Layout};
pub(crate) use wreck::{Origin, Remains, Wreck};
pub(crate) use writer::{Hold, Pending, WriterState};
