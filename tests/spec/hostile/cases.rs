//! What a hostile case is: a name, a file, and what has to come of it.
//!
//! Holds [`Case`], [`Expect`] and the parts that most cases share. Must not run anything.

use orthant::ErrorKind;

use super::forge::{
    Entries, Forge, GROUP, Place, RAW, Root, array_document, child, chunk_key, inline, key,
    plain_document,
};

/// What has to come of opening and reading a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// Opening is refused.
    Refused(ErrorKind),
    /// Reading the array `bad` is refused; its neighbour `good` reads as it was written.
    Bad(ErrorKind),
    /// `bad` reads as these bytes, and so does `good`.
    Reads(Vec<u8>),
    /// `bad` is refused whole, and a part of it reads as zeros.
    OnlyParts(ErrorKind),
    /// The walk through all objects ends with this error.
    Walk(ErrorKind),
    /// Listing the chunks of `bad` ends with this error; its elements are there.
    Listed(ErrorKind),
    /// Listing the attributes of `bad` ends with this error; its elements are there.
    Attributes(ErrorKind),
}

/// A file that is wrong on purpose, by the name of what is wrong.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
    pub expect: Expect,
    /// The rule of the specification's list that `check` must report; none where it may stay silent.
    pub check: Option<u8>,
}

impl Case {
    pub fn new(name: impl Into<String>, bytes: Vec<u8>, expect: Expect) -> Self {
        Self {
            name: name.into(),
            bytes,
            expect,
            check: None,
        }
    }

    /// The same, and `check` reports this rule.
    pub fn checked(mut self, invariant: u8) -> Self {
        self.check = Some(invariant);
        self
    }
}

/// What `good` holds.
pub const GOOD: [u8; 8] = [21, 22, 23, 24, 25, 26, 27, 28];
/// What `bad` holds where nothing is wrong with it.
pub const FINE: [u8; 8] = [11, 12, 13, 14, 15, 16, 17, 18];

/// The id of `bad`.
pub const BAD: i64 = 1;

/// The root group and two arrays of eight bytes in chunks of four, `bad` (object 1) and `good` (2).
pub fn base(forge: &mut Forge) -> Entries {
    let mut entries = Entries::new();
    entries.insert(key(2, 0, &[]), inline(GROUP));
    entries.extend([child(0, "bad", BAD, 2), child(0, "good", 2, 2)]);
    for (id, cells) in [(BAD, FINE), (2, GOOD)] {
        entries.insert(key(2, id, &[]), inline(&plain_document()));
        for (c, part) in (0..).zip(cells.chunks(4)) {
            let place = forge.put(part);
            entries.insert(chunk_key(id, &[c]), place.record());
        }
    }
    entries
}

/// A file of the base with changes.
pub fn with(change: impl FnOnce(&mut Forge, &mut Entries)) -> Vec<u8> {
    let mut forge = Forge::new();
    let mut entries = base(&mut forge);
    change(&mut forge, &mut entries);
    let root = forge.tree(&entries);
    forge.finish(&root)
}

/// A file of the base with another document for `bad`, inline or not as its length asks.
pub fn with_document(text: &[u8]) -> Vec<u8> {
    with(|forge, entries| {
        let blob = if text.len() <= 1024 {
            [&[0, 0][..], text].concat()
        } else {
            forge.put(text).blob(0)
        };
        entries.insert(key(2, BAD, &[]), blob);
    })
}

/// A file whose `bad` has these codecs and one chunk of four bytes with this payload.
pub fn with_payload(codecs: &str, payload: &[u8]) -> Vec<u8> {
    with_typed_payload("\"uint8\"", "0", &[(0, 4)], "[4]", codecs, payload)
}

/// As [`with_payload`], of any type and shape.
pub fn with_typed_payload(
    data_type: &str,
    fill: &str,
    domain: &[(i64, i64)],
    chunk: &str,
    codecs: &str,
    payload: &[u8],
) -> Vec<u8> {
    with(|forge, entries| {
        let text = array_document(data_type, fill, domain, chunk, codecs);
        let blob = if text.len() <= 1024 {
            inline(&text)
        } else {
            forge.put(text.as_bytes()).blob(0)
        };
        entries.insert(key(2, BAD, &[]), blob);
        entries.retain(|k, _| !k.starts_with(&key(8, BAD, &[])));
        let place = forge.put(payload);
        let origin = vec![0; domain.len()];
        entries.insert(chunk_key(BAD, &origin), place.record());
    })
}

/// A file of the base where the first chunk of `bad` has this record.
pub fn with_record(record: &[u8]) -> Vec<u8> {
    with(|_, entries| {
        entries.insert(chunk_key(BAD, &[0]), record.to_vec());
    })
}

/// The base's tree and the forge that holds it.
pub fn laid_down() -> (Forge, Root) {
    let mut forge = Forge::new();
    let entries = base(&mut forge);
    let root = forge.tree(&entries);
    (forge, root)
}

/// The document of `bad` as the base has it, with one part replaced.
pub fn changed_document(from: &str, to: &str) -> String {
    let text = plain_document();
    assert!(text.contains(from), "{from} in {text}");
    text.replacen(from, to, 1)
}

/// The document of `bad` with another domain.
pub fn spread(domain: &[(i64, i64)], chunk: &str) -> String {
    array_document("\"uint8\"", "0", domain, chunk, RAW)
}

/// A place that nothing was laid down at.
pub fn nowhere(offset: u64, len: u64) -> Place {
    Place {
        offset,
        len,
        crc: 0,
    }
}
