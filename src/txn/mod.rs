//! Snapshots, the writer, commit, opening and creation.
//!
//! What the rooms above read through is [`View`]; what they write through is [`WriterState`], which a view of a writer
//! hands out. Must not know codecs or geometry.
//!
//! Lock order, outermost first: `WriterState::gate`, a key lock, `Overlay`, `Tail`. None is held while the medium is
//! read or written, except `gate`, which a commit holds alone and every other call shares.

mod cursor;
mod engine;
mod overlay;
mod payload;
mod snapshot;
mod tail;
mod view;
mod writer;

use smallvec::SmallVec;

pub(crate) use cursor::Cursor;
pub(crate) use engine::Engine;
pub(crate) use payload::Payload;
pub(crate) use snapshot::SnapshotState;
pub(crate) use view::View;
pub(crate) use writer::{Hold, WriterState};

/// A key of the index: a tag byte, then what the tag says.
pub(crate) type Key = SmallVec<[u8; 32]>;
/// A value of the index.
pub(crate) type Value = SmallVec<[u8; 32]>;
/// What a transaction does to one key: put a value, or delete it.
pub(crate) type Change = (Key, Option<Value>);
