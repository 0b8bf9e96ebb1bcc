//! Any bytes: opened as a stranger's file, walked, described, and read in part. An error is fine, a panic or a hang is not.
//!
//! Seeds: `mkdir -p fuzz/corpus/open && cp format-spec/vectors/*.orth fuzz/corpus/open`; then `cargo +nightly fuzz run open`.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use orthant::testing::with_right_checksums;
use orthant::{CheckLevel, Member, ObjectKind, OpenOptions, Region, RegionItem, Snapshot};

/// Elements that are read of one array, and objects that are looked at: enough to get everywhere, not to wait for it.
const ELEMENTS: i64 = 16;
const OBJECTS: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    open(bytes.to_vec());
    // Behind the checksums of header, slots, records and roots, which chance never gets right.
    open(with_right_checksums(bytes.to_vec()));
});

fn open(bytes: Vec<u8>) {
    let container = OpenOptions::untrusted().from_bytes(bytes);
    if let Ok(snapshot) = container.and_then(|container| container.snapshot()) {
        let _ = everything(&snapshot);
        let _ = snapshot.check(CheckLevel::Data, |_, _| ControlFlow::Continue(()), drop);
    }
}

fn everything(snapshot: &Snapshot) -> orthant::Result<()> {
    let _ = snapshot.root().attributes().list();
    for member in snapshot.walk()?.take(OBJECTS) {
        let _ = member.and_then(|member| object(snapshot, &member));
    }
    Ok(())
}

fn object(snapshot: &Snapshot, member: &Member) -> orthant::Result<()> {
    if member.kind == ObjectKind::Group {
        let _ = snapshot.group(&member.path)?.attributes().list();
        return Ok(());
    }
    let array = snapshot.dyn_array(&member.path)?;
    let _ = array.attributes().list();
    let domain = array.domain()?;
    let corner = domain
        .ranges()
        .map(|axis| axis.start..axis.end.min(axis.start.saturating_add(ELEMENTS)));
    let region = corner.map(RegionItem::from);
    let _ = array.read(Region::from_items(region));
    let _ = array.chunks_in(Region::all());
    Ok(())
}
