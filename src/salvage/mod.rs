//! Salvage: a new file with everything of a damaged one that verifies. Spec: `format-spec/12-space.md`, "Salvage".
//!
//! Holds the public calls and the report. The source is only read. Which entries are kept is judged in `keep`; where they
//! are found, by `txn`; how a file is written whole, by `txn` too.

mod keep;

use std::collections::HashMap;
use std::ops::ControlFlow;
#[cfg(any(unix, windows))]
use std::path::Path;
use std::sync::Arc;

use crate::container::Container;
use crate::error::{Error, Result};
use crate::format::ObjectId;
use crate::format::extent::Extent;
use crate::store::{Memory, Storage};
#[cfg(any(unix, windows))]
use crate::txn::make_new_at;
use crate::txn::{Draft, Layout, Origin, Remains, Wreck};
use crate::whole::{aligned, verify};

/// What a salvage came to.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalvageReport {
    /// The generation of the damaged file that was taken.
    pub generation: u64,
    /// What led to it.
    pub found_by: FoundBy,
    /// Groups and arrays in the new file, the root group included.
    pub objects: u64,
    /// Chunks in the new file.
    pub chunks: u64,
    /// Attributes in the new file.
    pub attributes: u64,
    /// Entries that come from older nodes, in the place of damaged ones: they may be older than the generation.
    pub recovered: u64,
    /// How often something was told to be lost.
    pub losses: u64,
    /// Bytes of the damaged file.
    pub bytes_in: u64,
    /// Bytes of the new file.
    pub bytes_out: u64,
}

/// What led a salvage to the entries of a damaged file.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// A superblock slot, as opening goes.
    Slot,
    /// A commit record, as no slot was left that leads as far.
    CommitRecord,
    /// Nodes of the index alone.
    Nodes,
}

/// What kind of thing was lost.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// The header, a slot, or a node of the index: what lay below it is gone, but for what older nodes still say.
    Index,
    /// An object: its document or its place in the hierarchy.
    Object,
    /// An attribute.
    Attribute,
    /// A chunk. It reads as fill in the new file.
    Chunk,
    /// A retained snapshot: one generation is salvaged.
    Snapshot,
    /// An entry that belongs to none of these.
    Entry,
    /// Nothing but the path: an object that nothing led to is in `lost+found` now.
    Path,
}

impl LossKind {
    /// The kind in `snake_case`, as scripts see it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Object => "object",
            Self::Attribute => "attribute",
            Self::Chunk => "chunk",
            Self::Snapshot => "snapshot",
            Self::Entry => "entry",
            Self::Path => "path",
        }
    }
}

/// Something that is not in the new file as it was in the damaged one.
#[non_exhaustive]
#[derive(Debug)]
pub struct Loss {
    /// What kind of thing.
    pub kind: LossKind,
    /// Which one, where it lay, and what is wrong with it.
    pub error: Error,
}

impl Container {
    /// Writes a new container at `target`, which must not exist, with everything of the damaged one at `source` that verifies,
    /// and hands whatever does not to `lost`. The source is read and never written; it may be damaged anywhere: in its
    /// header, in both slots, in nodes of the index, in payloads. One generation is taken, the newest that anything leads to;
    /// retained snapshots are not. Objects that nothing leads to any more go to the group `lost+found`. Payloads pass as they
    /// are stored. `progress` is told how many of how many bytes are done; none when it ends the salvage.
    ///
    /// The new file has passed a full check before it gets its name.
    ///
    /// # Errors
    /// `AlreadyExists`; `Busy` beside a writer; `Unsupported` for a file of a later version; `NotContainer` or `Corrupt`
    /// where nothing at all is found; `Io`.
    #[cfg(any(unix, windows))]
    pub fn salvage(
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
        mut lost: impl FnMut(Loss),
    ) -> Result<Option<SalvageReport>> {
        let source = source.as_ref();
        let wreck = Wreck::open_at(source)?;
        let place = |e: Error| e.in_file(source);
        let Some(kept) = Kept::of(&wreck, &mut progress, &mut lost).map_err(place)? else {
            return Ok(None);
        };
        make_new_at(target.as_ref(), |target| {
            kept.write(&wreck, target, &mut progress)
        })
    }

    /// As [`Container::salvage`], from bytes to bytes.
    ///
    /// # Errors
    /// As there.
    pub fn salvage_bytes(
        bytes: Vec<u8>,
        mut lost: impl FnMut(Loss),
    ) -> Result<(Vec<u8>, SalvageReport)> {
        let wreck = Wreck::new(Arc::new(Memory::from_bytes(bytes)))?;
        let go_on = &mut |_, _| ControlFlow::Continue(());
        let memory = Arc::new(Memory::default());
        let target: Arc<dyn Storage> = Arc::clone(&memory) as Arc<dyn Storage>;
        let report = match Kept::of(&wreck, go_on, &mut lost)? {
            Some(kept) => kept.write(&wreck, &target, go_on)?,
            None => None,
        };
        let report = report.ok_or_else(|| Error::invalid("salvage").expected("its end"))?;
        Ok((memory.to_bytes(), report))
    }
}

/// What goes into the new file.
struct Kept {
    draft: Draft,
    remains: Remains,
    next_object_id: u64,
    /// Where payloads start, by array.
    aligns: HashMap<ObjectId, u64>,
    report: SalvageReport,
}

impl Kept {
    fn of(
        wreck: &Wreck,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
        lost: &mut dyn FnMut(Loss),
    ) -> Result<Option<Self>> {
        let mut remains = wreck.remains()?;
        let mut losses = 0_u64;
        let mut lost = |kind, error| {
            losses = losses.saturating_add(1);
            lost(Loss { kind, error });
        };
        for error in std::mem::take(&mut remains.faults) {
            lost(LossKind::Index, error);
        }
        let found = std::mem::take(&mut remains.entries);
        let Some(judged) = keep::judge(wreck, &remains, &found, progress, &mut lost)? else {
            return Ok(None);
        };
        let generation = remains.generation.saturating_add(1);
        let mut draft = Draft::new();
        draft.fill(generation, |push| {
            let entries = &judged.entries;
            entries.iter().try_for_each(|(k, v)| push(k, v))
        })?;
        let report = SalvageReport {
            generation: remains.generation,
            found_by: match remains.origin {
                Origin::Slot => FoundBy::Slot,
                Origin::Record => FoundBy::CommitRecord,
                Origin::Nodes => FoundBy::Nodes,
            },
            objects: judged.objects,
            chunks: judged.chunks,
            attributes: judged.attributes,
            recovered: remains.recovered,
            losses,
            bytes_in: wreck.file_len(),
            bytes_out: 0,
        };
        Ok(Some(Self {
            draft,
            next_object_id: judged.next_object_id,
            aligns: judged.aligns,
            remains,
            report,
        }))
    }

    /// Writes and syncs the new file, and looks it over as one who opens it.
    fn write(
        self,
        wreck: &Wreck,
        target: &Arc<dyn Storage>,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<SalvageReport>> {
        let form = wreck.form(&self.remains, self.next_object_id)?;
        let align = |array, len| aligned(self.aligns.get(&array).copied(), len);
        let layout = Layout::new(&self.draft, &align)?;
        let read = |extent: Extent| wreck.payload(extent);
        let written = layout.write(&self.draft, &form, &read, target.as_ref(), progress)?;
        let Some(written) = written else {
            return Ok(None);
        };
        target
            .sync()
            .map_err(|e| Error::io("cannot sync the new file", e))?;
        let all = written.payload;
        let whole = verify(target, &mut || progress(all, all))?;
        Ok(whole.then_some(SalvageReport {
            bytes_out: written.bytes,
            ..self.report
        }))
    }
}
