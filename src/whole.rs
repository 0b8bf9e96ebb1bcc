//! Containers written whole: compaction, copies of one generation, archives.
//!
//! Holds the public calls and what only the rooms above the engine know: alignment of arrays, the order of an archive, the
//! check before a file gets its name. Payloads are never decoded here. Spec: `format-spec/12-space.md`.

use std::collections::HashMap;
use std::ops::ControlFlow;
#[cfg(any(unix, windows))]
use std::path::Path;
use std::sync::Arc;

use crate::array::DynArray;
use crate::catalog::{self, ObjectKind};
use crate::container::{Container, OpenOptions, Snapshot};
use crate::error::{Error, ErrorKind, Result};
use crate::format::ObjectId;
use crate::format::blob::{Blob, Content};
use crate::format::key::{self, Key, Value};
use crate::format::name::ObjectPath;
use crate::inspect::CheckLevel;
use crate::limits::INLINE_LEN_MAX;
use crate::store::{Memory, Storage};
#[cfg(any(unix, windows))]
use crate::txn::Taken;
use crate::txn::{Draft, Form, Layout, SnapshotState, States, View};

/// Payloads from this length on are aligned as the writer aligns them: shorter ones only where that leaves no gap.
const ALIGNED_FROM: u64 = 4096;

/// How a container is compacted or copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyOptions {
    retained: bool,
    overwrite: bool,
    break_references: bool,
}

impl CopyOptions {
    /// The generation alone, to a path where nothing is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the retained snapshots over too. Compaction in place always does.
    #[must_use]
    pub fn keep_snapshots(mut self, keep: bool) -> Self {
        self.retained = keep;
        self
    }

    /// Replaces a file that is at the target, in one step. Compaction in place always does.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Compacts although references from outside name places in the old file; they are void then.
    #[must_use]
    pub fn break_references(mut self, break_references: bool) -> Self {
        self.break_references = break_references;
        self
    }

    #[cfg(any(unix, windows))]
    fn taken(self) -> Taken {
        if self.overwrite {
            Taken::Replaced
        } else {
            Taken::Refused
        }
    }
}

/// What an archive is given, as it is a function of content, identity and time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveOptions {
    uuid: [u8; 16],
    time: Option<i64>,
    overwrite: bool,
}

impl ArchiveOptions {
    /// An archive of that identity: best one that follows from the content, as a digest of it does.
    pub fn new(uuid: [u8; 16]) -> Self {
        Self {
            uuid,
            time: None,
            overwrite: false,
        }
    }

    /// The time that the archive states, in nanoseconds since the Unix epoch; [`Snapshot::content_time`] when not given.
    #[must_use]
    pub fn time(mut self, nanoseconds: i64) -> Self {
        self.time = Some(nanoseconds);
        self
    }

    /// Replaces a file that is at the target, in one step.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }
}

/// What a compaction or copy came to.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyReport {
    /// Bytes of the source up to the end of the state that was copied; of a compaction, of the whole old file.
    pub bytes_in: u64,
    /// Bytes of the new file.
    pub bytes_out: u64,
    /// Payloads, documents and attribute values that were passed through as they are stored.
    pub extents: u64,
}

impl Container {
    /// Writes the container anew beside itself, index first and without dead space, looks the new file over, and puts it in
    /// the place of the old one in one step. Generations, retained snapshots, history, ids and private entries stay; the file
    /// gets a new identity and names the old one as its parent. Payloads are verified and never decoded.
    ///
    /// Holds the writer's lock for the whole time, and leaves the old file as it was when anything fails or `progress` ends
    /// it (which gives none); `progress` is told how many of how many bytes are done. Whoever had the old file open, this
    /// handle included, reads on in it; `latest` and writers answer `Replaced`, and the path has to be opened again.
    ///
    /// # Errors
    /// As [`Container::writer`]; `InvalidArgument` in memory and for a file with several hard links, and while
    /// a retained snapshot is referenced from outside; `Corrupt` where anything is damaged: nothing damaged is copied;
    /// `Unsupported` for entries of a later version; `Io`.
    pub fn compact(
        &self,
        options: CopyOptions,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<CopyReport>> {
        let engine = self.engine_shared();
        engine.replace(|state, target| {
            if !options.break_references
                && let Some(label) = state.referenced_snapshot()?
            {
                return Err(
                    Error::invalid(format!("compaction under snapshot {label:?}"))
                        .expected("no snapshot that references outside the file lead to")
                        .found("one that references were exported from")
                        .help(
                            "break the references explicitly, or copy the container to a new file",
                        ),
                );
            }
            let form = engine.form(state.slot(), engine.header().uuid)?;
            let source = Snapshot::from_state(engine.snapshot()?);
            let draft = Draft::of(state, States::All)?;
            let report = write(&source, &draft, &form, target, &mut progress)?;
            let bytes_in = engine.file_len()?;
            Ok(report.map(|r| CopyReport { bytes_in, ..r }))
        })
    }
}

impl Snapshot {
    /// Writes this generation to a new file: its tree and payloads, its history, and the retained snapshots if `options` say
    /// so. Works beside a live writer, whose later commits it does not see. The new file is numbered on from this
    /// generation, laid out as by [`Container::compact`], looked over, and appears whole or not at all. None when `progress`
    /// ends it.
    ///
    /// # Errors
    /// `AlreadyExists`; `InvalidArgument` where the target is the source; `Corrupt` where anything is damaged;
    /// `Unsupported` for entries of a later version; `Io`.
    #[cfg(any(unix, windows))]
    pub fn copy_to(
        &self,
        path: impl AsRef<Path>,
        options: CopyOptions,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<CopyReport>> {
        let state = self.require_state()?;
        let (draft, form) = self.copy_draft(options)?;
        state
            .engine()
            .make_at(path.as_ref(), options.taken(), |target| {
                write(self, &draft, &form, target, &mut progress)
            })
    }

    /// The bytes of the file that [`Snapshot::copy_to`] would make.
    ///
    /// # Errors
    /// As [`Snapshot::copy_to`].
    pub fn copy_to_bytes(&self, options: CopyOptions) -> Result<Vec<u8>> {
        let (draft, form) = self.copy_draft(options)?;
        self.to_memory(&draft, &form)
    }

    /// Writes this state to a new file that is a function of the content and of what `options` give: no history, no
    /// retained snapshots, no private entries, objects numbered in the order of their paths. Containers of the same content,
    /// whatever the order in which it was written, make the same archive. None when `progress` ends it.
    ///
    /// # Errors
    /// As [`Snapshot::copy_to`].
    #[cfg(any(unix, windows))]
    pub fn archive_to(
        &self,
        path: impl AsRef<Path>,
        options: ArchiveOptions,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<CopyReport>> {
        let state = self.require_state()?;
        let (draft, form) = self.archive_draft(options)?;
        let taken = CopyOptions::new().overwrite(options.overwrite).taken();
        state.engine().make_at(path.as_ref(), taken, |target| {
            write(self, &draft, &form, target, &mut progress)
        })
    }

    /// The bytes of the file that [`Snapshot::archive_to`] would make.
    ///
    /// # Errors
    /// As [`Snapshot::archive_to`].
    pub fn archive_to_bytes(&self, options: ArchiveOptions) -> Result<Vec<u8>> {
        let (draft, form) = self.archive_draft(options)?;
        self.to_memory(&draft, &form)
    }

    /// When the newest commit of a user that this state holds was made, in nanoseconds since the Unix epoch: compaction and
    /// copies keep it. Without history it is the time of the file's making.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn content_time(&self) -> Result<i64> {
        let state = self.require_state()?;
        let last = state.history()?.last().map(|(_, record)| record.time);
        let slot = state.slot();
        // Of the two generations that a file made whole has, the older bears the time it was given.
        let whole = slot.compact && !state.is_retained();
        let made = slot.time.saturating_sub(i64::from(whole));
        Ok(last.unwrap_or(made))
    }

    fn copy_draft(&self, options: CopyOptions) -> Result<(Draft, Form)> {
        let state = self.require_state()?;
        let states = if options.retained {
            States::All
        } else {
            States::Current
        };
        let draft = Draft::of(state, states).map_err(|e| state.place(e))?;
        Ok((draft, state.engine().form(state.slot(), [0; 16])?))
    }

    fn archive_draft(&self, options: ArchiveOptions) -> Result<(Draft, Form)> {
        let state = self.require_state()?;
        let time = match options.time {
            Some(time) => time,
            None => self.content_time()?,
        };
        let (draft, next_object_id) =
            archive_draft(self.view(), state).map_err(|e| state.place(e))?;
        let form = Form {
            uuid: options.uuid,
            parent: [0; 16],
            created: time,
            application: [0; 16],
            first: 1,
            time,
            next_object_id,
            writer_id: [0; 16],
            writer_version: 0,
        };
        Ok((draft, form))
    }

    fn to_memory(&self, draft: &Draft, form: &Form) -> Result<Vec<u8>> {
        let memory = Arc::new(Memory::default());
        let target: Arc<dyn Storage> = Arc::clone(&memory) as Arc<dyn Storage>;
        write(self, draft, form, &target, &mut |_, _| {
            ControlFlow::Continue(())
        })?;
        Ok(memory.to_bytes())
    }
}

/// Writes and syncs the new file, and looks it over as one who opens it.
fn write(
    source: &Snapshot,
    draft: &Draft,
    form: &Form,
    target: &Arc<dyn Storage>,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<CopyReport>> {
    let state = source.require_state()?;
    let aligns = alignments(source)?;
    let align = |array: ObjectId, len: u64| aligned(aligns.get(&array).copied(), len);
    let layout = Layout::new(draft, &align)?;
    let Some(written) = layout.write(
        draft,
        form,
        &|extent| state.payload(extent),
        target.as_ref(),
        progress,
    )?
    else {
        return Ok(None);
    };
    target
        .sync()
        .map_err(|e| Error::io("cannot sync the new file", e))?;
    if !verify(target, &mut || progress(written.payload, written.payload))? {
        return Ok(None);
    }
    Ok(Some(CopyReport {
        bytes_in: state.committed_end(),
        bytes_out: written.bytes,
        extents: written.extents,
    }))
}

/// Where a payload of `len` bytes starts: at a multiple of what its array asks for, if that costs little.
pub(crate) fn aligned(align: Option<u64>, len: u64) -> u64 {
    match align {
        Some(align) if len >= ALIGNED_FROM || len.is_multiple_of(align) => align,
        _ => crate::format::ALIGN,
    }
}

/// Refuses a new file in which a full check finds anything but what only a later version can read; false when `go_on` ends
/// it.
pub(crate) fn verify(
    target: &Arc<dyn Storage>,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<bool> {
    let options = OpenOptions::new().read_only(true).cache_bytes(0);
    let made = options.open_storage(Arc::clone(target))?;
    let (mut first, mut whole) = (None, true);
    let step = |_, _| {
        let flow = go_on();
        whole &= flow.is_continue();
        flow
    };
    made.snapshot()?.check(CheckLevel::Full, step, |problem| {
        let later = problem.error.kind() == ErrorKind::Unsupported;
        if !problem.warning && !later && first.is_none() {
            first = Some(problem.error);
        }
    })?;
    match first {
        None => Ok(whole),
        Some(e) => Err(e.help("the new file was thrown away; the old one is as it was")),
    }
}

/// Where payloads of arrays of the current state start, by array.
fn alignments(source: &Snapshot) -> Result<HashMap<ObjectId, u64>> {
    let mut aligns = HashMap::new();
    for step in catalog::walk(source.view(), ObjectPath::default(), ObjectId::ROOT)? {
        let (path, entry) = step?;
        if entry.kind == ObjectKind::Array
            // One that this build cannot read is copied all the same.
            && let Ok(array) = DynArray::open(source.view().clone(), entry.id, path.to_string())
        {
            aligns.insert(entry.id, array.payload_align());
        }
    }
    Ok(aligns)
}

/// The one order of a state's entries, whatever the order in which they were written.
fn archive_draft(view: &View, state: &SnapshotState) -> Result<(Draft, u64)> {
    let mut draft = Draft::new();
    let mut catalog: Vec<(Key, Value)> = Vec::new();
    let mut arrays = Vec::new();
    let mut ids: HashMap<String, ObjectId> = HashMap::from([(String::new(), ObjectId::ROOT)]);
    let mut next = 0_u64;
    copy_object(
        view,
        &mut draft,
        &mut catalog,
        (ObjectId::ROOT, ObjectId::ROOT),
        ObjectKind::Group,
    )?;
    for step in catalog::walk(view, ObjectPath::default(), ObjectId::ROOT)? {
        let (path, entry) = step?;
        next = next.saturating_add(1);
        let (id, path) = (ObjectId(next), path.to_string());
        // Parents come before their members.
        let parent = path.rsplit_once('/').and_then(|(up, _)| ids.get(up));
        let parent = *parent.ok_or_else(|| Error::corrupt("directory").in_object(&path))?;
        let value = catalog::encode_entry(id, entry.kind);
        catalog.push((key::child(parent, &entry.name), value));
        copy_object(view, &mut draft, &mut catalog, (entry.id, id), entry.kind)
            .map_err(|e| e.in_object(&path))?;
        match entry.kind {
            ObjectKind::Group => drop(ids.insert(path, id)),
            ObjectKind::Array => arrays.push((entry.id, id)),
        }
    }
    catalog.sort_unstable();
    draft
        .fill(1, |push| {
            catalog.iter().try_for_each(|(k, v)| push(k, v))?;
            for (old, new) in arrays {
                let (from, to) = (key::chunk_prefix(old), key::chunk_prefix(new));
                let end = key::prefix_end(&from).unwrap_or_default();
                let mut cursor = view.cursor(&from, &end)?;
                while let Some((key, value)) = cursor.next()? {
                    let mut moved = to.clone();
                    moved.extend_from_slice(key.get(from.len()..).unwrap_or_default());
                    push(&moved, &value)?;
                }
            }
            Ok(())
        })
        .map_err(|e| state.place(e))?;
    Ok((draft, next.saturating_add(1)))
}

/// Document and attributes of an object under its new id, the document in its one text.
fn copy_object(
    view: &View,
    draft: &mut Draft,
    entries: &mut Vec<(Key, Value)>,
    (old, new): (ObjectId, ObjectId),
    kind: ObjectKind,
) -> Result<()> {
    let (document, _) = catalog::checked_document(view, old, kind)?;
    let text = document.to_text().into_bytes();
    let value = if text.len() <= INLINE_LEN_MAX {
        Blob::Inline(Content::Json, &text).encode()?
    } else {
        Blob::Stored(Content::Json, draft.own(text)).encode()?
    };
    entries.push((key::document(new), value));
    let (from, to) = (key::attribute_prefix(old), key::attribute_prefix(new));
    let end = key::prefix_end(&from).unwrap_or_default();
    let mut cursor = view.cursor(&from, &end)?;
    while let Some((key, value)) = cursor.next()? {
        let mut moved = to.clone();
        moved.extend_from_slice(key.get(from.len()..).unwrap_or_default());
        entries.push((moved, value));
    }
    Ok(())
}
