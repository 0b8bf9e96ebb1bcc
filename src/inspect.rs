//! Looking over a whole container: what its bytes are, and whether they are right.
//!
//! Holds [`Statistics`] and the check of one generation. Reads everything, changes nothing. Must not know how a file is
//! repaired. Spec: `format-spec/checks.md`, whose numbers findings carry.
//!
//! Opening has looked at 1 to 7 for the generation in use; this looks at the other slot's root (6), at 8 to 18 and 20 to 22.
//! What 19 reports, [`Container::space`] tells. How the index is walked stands in `tally.rs`, each rule in `rules.rs`.

use std::ops::ControlFlow;

use crate::container::{Container, Snapshot};
use crate::error::{Error, Result};
use crate::index;
use crate::txn::{SnapshotState, View};

mod rules;
mod tally;

use rules::Check;
use tally::Tally;

/// What the bytes that one generation reaches are made of.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Bytes of chunks.
    pub live_payload_bytes: u64,
    /// Bytes of index nodes, documents and attributes.
    pub live_index_bytes: u64,
    /// Bytes of index nodes alone.
    pub node_bytes: u64,
    /// Levels of the index, the leaves' included.
    pub depth: u64,
    /// Nodes of the index.
    pub nodes: u64,
    /// Entries of the index.
    pub entries: u64,
}

/// How much a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CheckLevel {
    /// What opening looks at, and the counts of the index: 1 to 8.
    Quick,
    /// The whole index, all documents, and the checksum of every payload: 9 to 20.
    #[default]
    Full,
    /// As `Full`, and every chunk decoded: 21.
    Data,
}

/// One finding of a check.
#[non_exhaustive]
#[derive(Debug)]
pub struct Problem {
    /// The number of the rule in the specification's list.
    pub invariant: u8,
    /// What is wrong, and where.
    pub error: Error,
    /// The container is as good as before: worth a look, no damage.
    pub warning: bool,
}

impl Container {
    /// Major and minor version of the file's format.
    pub fn format_version(&self) -> (u16, u16) {
        (crate::format::MAJOR, self.engine().header().minor)
    }
}

impl Snapshot {
    /// When this generation was committed, in nanoseconds since the Unix epoch.
    pub fn time(&self) -> i64 {
        self.state().map_or(0, |s| s.slot().time)
    }

    fn state(&self) -> Option<&SnapshotState> {
        match self.view() {
            View::Snapshot(state) => Some(state),
            View::Writer(_) => None,
        }
    }

    /// The committed generation behind this handle.
    pub(crate) fn require_state(&self) -> Result<&SnapshotState> {
        self.state()
            .ok_or_else(|| Error::invalid("view").expected("a committed generation"))
    }

    /// What this generation's bytes are made of. Reads the whole index.
    ///
    /// # Errors
    /// `Corrupt` for a node that breaks a rule, `Io`.
    pub fn statistics(&self) -> Result<Statistics> {
        let state = self.require_state()?;
        let mut tally = Tally::new(state.committed_end(), true);
        index::walk(state.engine().as_ref(), state.tree(), &mut tally)
            .map_err(|e| state.place(e))?;
        let mut statistics = tally.statistics;
        statistics.depth = u64::from(state.tree().level).saturating_add(1);
        Ok(statistics)
    }

    /// Looks for damage, and hands each finding to `found`. `progress` is told how many of how many steps are done, and
    /// can end the check.
    ///
    /// # Errors
    /// Only where the check itself cannot go on: `Io`.
    pub fn check(
        &self,
        level: CheckLevel,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
        found: impl FnMut(Problem),
    ) -> Result<()> {
        let state = self.require_state()?;
        let mut check = Check::new(self, state, found);
        let mut tally = Tally::new(state.committed_end(), false);
        index::walk(state.engine().as_ref(), state.tree(), &mut tally)?;
        for (invariant, error) in std::mem::take(&mut tally.faults) {
            check.report(invariant, error);
        }
        let chain = state.engine().chain(state)?;
        check.other_root(&chain);
        if level == CheckLevel::Quick {
            return Ok(());
        }
        check.live_bytes(&tally);
        check.history(chain);
        // What an older state lists may have been let go since, and its space used again: only the newest knows.
        if !state.is_retained() {
            check.retained(&tally)?;
        }
        check.hierarchy();
        check.overlaps(&mut tally.extents);
        check.entries(&tally.chunk_keys());
        let total = tally.extents.len() as u64;
        for (done, (extent, key)) in tally.extents.iter().enumerate() {
            if progress(done as u64, total).is_break() {
                return Ok(());
            }
            check.payload(*extent, key);
        }
        if level == CheckLevel::Data {
            check.decode();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, DynArraySpec, ErrorKind, region};

    /// A container of one array with four stored chunks and one constant one.
    fn container() -> Container {
        let container = Container::in_memory().unwrap();
        let writer = container.writer().unwrap();
        let spec = DynArraySpec::new(crate::DataType::Uint8, region![-16..64])
            .chunks([16])
            .codecs(Codec::raw_profile());
        let array = writer.create_dyn_array("g/t", &spec).unwrap();
        let values: Vec<u8> = (0..64).collect();
        let array = array.typed::<u8>().unwrap();
        array.write_slice(region![0..64], &values).unwrap();
        array.write_scalar(region![-16..0], 7).unwrap();
        writer.commit().unwrap();
        container
    }

    fn problems(container: &Container, level: CheckLevel) -> Vec<Problem> {
        let mut found = Vec::new();
        let go_on = |_, _| ControlFlow::Continue(());
        let snapshot = container.snapshot().unwrap();
        snapshot.check(level, go_on, |p| found.push(p)).unwrap();
        found
    }

    #[test]
    fn statistics_are_what_the_slot_counts() {
        let container = container();
        let snapshot = container.snapshot().unwrap();
        let s = snapshot.statistics().unwrap();
        let slot = snapshot.state().unwrap().slot();
        assert_eq!(s.live_payload_bytes, 64);
        assert_eq!(s.live_payload_bytes, slot.live_payload);
        assert_eq!(s.live_index_bytes, slot.live_index);
        assert_eq!((s.depth, s.nodes), (1, 1));
    }

    #[test]
    fn a_sound_container_has_no_problem() {
        let container = container();
        for level in [CheckLevel::Quick, CheckLevel::Full, CheckLevel::Data] {
            assert!(problems(&container, level).is_empty());
        }
    }

    #[test]
    fn each_damaged_payload_is_told_once_with_its_place() {
        let whole = container().to_bytes().unwrap();
        let sound = Container::from_bytes(whole.clone()).unwrap();
        let array = sound.snapshot().unwrap().dyn_array("g/t").unwrap();
        for chunk in array.chunks_in(region![0..64]).unwrap() {
            let crate::ChunkState::Stored { offset, .. } = chunk.state else {
                panic!("{chunk:?}")
            };
            let mut bytes = whole.clone();
            bytes[usize::try_from(offset).unwrap() + 3] ^= 1;
            let container = Container::from_bytes(bytes).unwrap();
            assert!(problems(&container, CheckLevel::Quick).is_empty());
            for level in [CheckLevel::Full, CheckLevel::Data] {
                let found = problems(&container, level);
                let [problem] = found.as_slice() else {
                    panic!("{found:?}")
                };
                assert_eq!((problem.invariant, problem.warning), (20, false));
                assert_eq!(problem.error.kind(), ErrorKind::Corrupt);
                assert_eq!(problem.error.chunk(), Some(chunk.coord.as_slice()));
                assert_eq!(problem.error.offset(), Some(offset));
                assert!(problem.error.array().unwrap().ends_with("g/t"));
            }
        }
    }

    #[test]
    fn a_check_can_be_ended() {
        let container = container();
        let mut asked = 0;
        let snapshot = container.snapshot().unwrap();
        let stop = |_, total| {
            asked += total;
            ControlFlow::Break(())
        };
        snapshot
            .check(CheckLevel::Full, stop, |p| panic!("{p:?}"))
            .unwrap();
        assert!(asked > 0);
    }
}
