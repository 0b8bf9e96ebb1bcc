//! Superblock slot: names one generation of the container. Spec: `format-spec/03-slots.md`.
//!
//! Holds [`Slot`], its 256 bytes and their validation, and [`Root`]. Must not choose between two slots: `txn` does.
//!
//! Invariants: generation mod 2 is the slot's index; the horizon is below the generation; root and commit record lie in
//! `[DATA_START, committed_end)`.

use crate::bytes::{Reader, Writer, crc32c};
use crate::error::{Error, Result};
use crate::limits::{GENERATION_END, LEVEL_MAX, MESSAGE_LEN_MAX};

use super::commit;
use super::extent::{Extent, NodeRef};
use super::header::{BLOCK_LEN, check_incompat, check_major};
use super::{BLOCK, DATA_START, Generation, MAJOR, MINOR};

/// Bytes of a slot that carry meaning.
pub(crate) const SLOT_LEN: usize = 256;
const MAGIC: [u8; 8] = *b"ORTSLOT1";
const COVERED: usize = SLOT_LEN - 4;
const COMPACT: u16 = 1;
const UNCONFIRMED: u16 = 2;

/// A tree: the reference to its root node, and that node's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) node: NodeRef,
    pub(crate) level: u8,
}

impl Root {
    pub(super) fn encode(&self, w: &mut Writer) {
        self.node.encode(w);
        w.u8(self.level);
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let node = NodeRef::decode(r)?;
        let level = r.u8()?;
        Ok(Self { node, level })
    }

    /// Refuses a root that cannot be one in a container that ends at `end`.
    pub(crate) fn check(&self, at: u64, end: u64) -> Result<()> {
        if self.level > LEVEL_MAX {
            return Err(Error::corrupt("root level")
                .at(at)
                .expected(format_args!("at most {LEVEL_MAX}"))
                .found(self.level));
        }
        self.node.check(end).map_err(|e| e.at(at))
    }
}

/// One generation, as its slot states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) generation: Generation,
    /// Nanoseconds since the Unix epoch.
    pub(crate) time: i64,
    /// Exclusive upper bound of every reachable extent and of the commit record.
    pub(crate) committed_end: u64,
    pub(crate) root: Root,
    /// The layout is as compaction left it.
    pub(crate) compact: bool,
    /// A failed sync left it open whether this generation is on disk.
    pub(crate) unconfirmed: bool,
    /// Where the commit record lies; its checksum is the record's own last field.
    pub(crate) record: Extent,
    /// Every root from this generation on is whole.
    pub(crate) horizon: Generation,
    pub(crate) live_payload: u64,
    pub(crate) live_index: u64,
    pub(crate) next_object_id: u64,
    pub(crate) ro_compat: u64,
    pub(crate) compat: u64,
    pub(crate) writer_version: u32,
    pub(crate) writer_id: [u8; 16],
    /// The static header's checksum: binds the slot to its file.
    pub(crate) header_crc: u32,
}

/// What the block of a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// Its own checksum is wrong: the one fault that yields to the other slot.
    Invalid,
    Valid(Box<Slot>),
}

/// Which of the two slots a generation is written to.
pub(crate) fn slot_index(generation: Generation) -> u8 {
    u8::from(generation & 1 == 1)
}

/// Where the block of slot `index` lies.
pub(crate) fn slot_offset(index: u8) -> u64 {
    if index == 0 { BLOCK } else { 2 * BLOCK }
}

impl Slot {
    /// The full block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::with_capacity(BLOCK_LEN);
        w.slice(&MAGIC);
        w.u64(self.generation);
        w.i64(self.time);
        w.u64(self.committed_end);
        self.root.encode(&mut w);
        w.u8(slot_index(self.generation));
        let compact = if self.compact { COMPACT } else { 0 };
        w.u16(compact | if self.unconfirmed { UNCONFIRMED } else { 0 });
        w.zeros(4);
        w.u64(self.record.offset);
        w.u32(u32::try_from(self.record.len).unwrap_or(u32::MAX));
        w.u32(self.record.crc);
        w.u64(self.horizon);
        w.u64(self.live_payload);
        w.u64(self.live_index);
        w.u64(self.next_object_id);
        w.u64(0);
        w.u64(self.ro_compat);
        w.u64(self.compat);
        w.u16(MAJOR);
        w.u16(MINOR);
        w.u32(self.writer_version);
        w.slice(&self.writer_id);
        w.zeros(24 + 64);
        w.u32(self.header_crc);
        let crc = crc32c(w.as_slice());
        w.u32(crc);
        w.pad_to(BLOCK_LEN);
        w.into_vec()
    }

    /// Reads slot `index` from its block; `header_crc` is the checksum of this file's header.
    ///
    /// # Errors
    /// Only for a slot whose own checksum is right: `Corrupt` when it breaks a rule, `Unsupported` when it is newer.
    pub(crate) fn decode(block: &[u8], index: u8, header_crc: u32) -> Result<SlotState> {
        let base = slot_offset(index);
        let mut r = Reader::new("slot", base, block.get(..SLOT_LEN).unwrap_or(block));
        let covered = r.take(COVERED)?;
        if r.u32()? != crc32c(covered) {
            return Ok(SlotState::Invalid);
        }
        let slot = Self::fields(Reader::new("slot", base, covered), index, header_crc)?;
        Ok(SlotState::Valid(Box::new(slot)))
    }

    fn fields(mut r: Reader<'_>, index: u8, header_crc: u32) -> Result<Self> {
        let base = r.position();
        let bound = header_crc_of(&r)?;
        if r.array()? != MAGIC {
            return Err(r.fault().expected("the magic ORTSLOT1").found("another"));
        }
        if bound != header_crc {
            return Err(r
                .fault()
                .expected(format_args!("a slot of the header {header_crc:08x}"))
                .found(format_args!("one of {bound:08x}"))
                .help("parts of two containers are mixed in this file"));
        }
        let generation = r.u64()?;
        let time = r.i64()?;
        let committed_end = r.u64()?;
        let root = Root::decode(&mut r)?;
        let found_index = r.u8()?;
        let flags = r.u16()?;
        let mut reserved = r.sub("slot", 4)?;
        let record = Extent {
            offset: r.u64()?,
            len: u64::from(r.u32()?),
            crc: r.u32()?,
        };
        let horizon = r.u64()?;
        let (live_payload, live_index) = (r.u64()?, r.u64()?);
        let next_object_id = r.u64()?;
        let (incompat, ro_compat, compat) = (r.u64()?, r.u64()?, r.u64()?);
        let major = r.u16()?;
        check_major(major, r.position())?;
        check_incompat("slot", incompat)?;
        r.u16()?;
        let writer_version = r.u32()?;
        let writer_id = r.array()?;
        reserved.zeros(4, "reserved bytes")?;
        if ro_compat == 0 && compat == 0 {
            r.zeros(24 + 64, "reserved bytes")?;
        }
        let slot = Self {
            generation,
            time,
            committed_end,
            root,
            compact: flags & COMPACT != 0,
            unconfirmed: flags & UNCONFIRMED != 0,
            record,
            horizon,
            live_payload,
            live_index,
            next_object_id,
            ro_compat,
            compat,
            writer_version,
            writer_id,
            header_crc,
        };
        slot.check(base, index, found_index, flags)?;
        Ok(slot)
    }

    fn check(&self, base: u64, index: u8, found_index: u8, flags: u16) -> Result<()> {
        let fault = |field: u64| Error::corrupt("slot").at(base.saturating_add(field));
        let g = self.generation;
        if g == 0 || g >= GENERATION_END {
            return Err(fault(8).expected("a generation of 1..2^61").found(g));
        }
        if slot_index(g) != index || found_index != index {
            return Err(fault(57)
                .expected(format_args!("slot {index} and a generation of its parity"))
                .found(format_args!("slot {found_index}, generation {g}")));
        }
        if self.horizon >= g {
            return Err(fault(80)
                .expected(format_args!("a horizon below {g}"))
                .found(self.horizon));
        }
        if flags & !(COMPACT | UNCONFIRMED) != 0 {
            return Err(fault(58)
                .expected("state flags 0 and 1 alone")
                .found(format_args!("{flags:#06x}")));
        }
        if self.committed_end < DATA_START {
            return Err(fault(24)
                .expected(format_args!("at least {DATA_START}"))
                .found(self.committed_end));
        }
        self.root
            .check(base.saturating_add(32), self.committed_end)?;
        let longest = (commit::FIXED_LEN + MESSAGE_LEN_MAX) as u64;
        if self.record.len < commit::FIXED_LEN as u64 || self.record.len > longest {
            return Err(fault(72)
                .expected(format_args!(
                    "a commit record of {}..={longest} bytes",
                    commit::FIXED_LEN
                ))
                .found(self.record.len));
        }
        self.record
            .check("commit record reference", self.committed_end)
            .map_err(|e| e.at(base.saturating_add(64)))
    }
}

/// The header checksum a slot repeats in its last covered field.
fn header_crc_of(r: &Reader<'_>) -> Result<u32> {
    let mut r = r.clone();
    r.take(COVERED - 4)?;
    r.u32()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn sample() -> Slot {
        Slot {
            generation: 3,
            time: 1_600_000_000_000_000_000,
            committed_end: 0x5000,
            root: Root {
                node: NodeRef {
                    offset: 0x4068,
                    len: 100,
                    crc: 0x1122_3344,
                    count: 5,
                },
                level: 0,
            },
            compact: false,
            unconfirmed: false,
            record: Extent {
                offset: 0x4000,
                len: 102,
                crc: 0x5566_7788,
            },
            horizon: 2,
            live_payload: 10,
            live_index: 100,
            next_object_id: 2,
            ro_compat: 0,
            compat: 0,
            writer_version: 0x0001_0000,
            writer_id: [9; 16],
            header_crc: 0xAABB_CCDD,
        }
    }

    fn forged(change: impl Fn(&mut [u8])) -> Result<SlotState> {
        let mut block = sample().encode();
        change(&mut block);
        let mut w = Writer::default();
        w.u32(crc32c(&block[..COVERED]));
        block[COVERED..SLOT_LEN].copy_from_slice(w.as_slice());
        Slot::decode(&block, 1, 0xAABB_CCDD)
    }

    #[test]
    fn a_slot_reads_back_from_its_block() {
        let block = sample().encode();
        assert_eq!(block.len(), 4096);
        assert_eq!(
            Slot::decode(&block, 1, 0xAABB_CCDD).unwrap(),
            SlotState::Valid(Box::new(sample()))
        );
        let unconfirmed = Slot {
            unconfirmed: true,
            compact: true,
            ..sample()
        };
        assert_eq!(
            Slot::decode(&unconfirmed.encode(), 1, 0xAABB_CCDD).unwrap(),
            SlotState::Valid(Box::new(unconfirmed))
        );
    }

    #[test]
    fn every_flipped_bit_makes_a_slot_invalid_and_nothing_else() {
        let block = sample().encode();
        for (at, bit) in (0..SLOT_LEN).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = block.clone();
            bad[at] ^= 1 << bit;
            assert_eq!(
                Slot::decode(&bad, 1, 0xAABB_CCDD).unwrap(),
                SlotState::Invalid
            );
        }
        assert_eq!(Slot::decode(&[0; 4096], 1, 0).unwrap(), SlotState::Invalid);
    }

    #[test]
    fn a_broken_rule_behind_a_right_checksum_is_an_error_and_does_not_yield() {
        let kind = |r: Result<SlotState>| r.unwrap_err().kind();
        for (at, value) in [
            (0, b'X'),
            (8, 4),
            (15, 0x20),
            (57, 0),
            (56, 13),
            (58, 4),
            (60, 1),
            (80, 3),
            (160, 1),
            (247, 1),
            (248, 0),
            (25, 0x20),
            (33, 0x2f),
            (36, 0x11),
            (38, 1),
            (65, 0x20),
            (72, 1),
            (73, 9),
        ] {
            assert_eq!(
                kind(forged(|b| b[at] = value)),
                ErrorKind::Corrupt,
                "byte {at}"
            );
        }
        assert_eq!(kind(forged(|b| b[8..16].fill(0))), ErrorKind::Corrupt);
        assert_eq!(kind(forged(|b| b[136] = 1)), ErrorKind::Unsupported);
        assert_eq!(kind(forged(|b| b[112] = 1)), ErrorKind::Unsupported);
        assert_eq!(
            kind(Slot::decode(&sample().encode(), 1, 1)),
            ErrorKind::Corrupt
        );
    }

    #[test]
    fn reserved_bytes_belong_to_features_that_this_reader_does_not_know() {
        assert!(
            forged(|b| {
                b[120] = 1;
                b[160] = 7;
            })
            .is_ok()
        );
        assert!(
            forged(|b| {
                b[128] = 1;
                b[183] = 7;
            })
            .is_ok()
        );
    }

    #[test]
    fn the_largest_generation_opens() {
        let slot = Slot {
            generation: GENERATION_END - 1,
            ..sample()
        };
        assert!(matches!(
            Slot::decode(&slot.encode(), 1, 0xAABB_CCDD),
            Ok(SlotState::Valid(_))
        ));
    }
}
