//! Hostile catalogs: documents, directories, names, attributes and chunk records that break a rule.

use orthant::ErrorKind::{Corrupt, LimitExceeded, Unsupported};

use super::cases::Expect::{Attributes, Bad, OnlyParts, Reads, Refused, Walk};
use super::cases::{
    BAD, Case, FINE, changed_document, nowhere, spread, with, with_document, with_record,
};
use super::forge::{RAW, array_document, child, chunk_key, inline, key, plain_document};

/// Documents of `bad` that break a rule.
pub fn documents() -> Vec<Case> {
    let named = |name: &str, text: &[u8], expect| {
        Case::new(format!("document_{name}"), with_document(text), expect)
    };
    let text = |name, text: String, kind| named(name, text.as_bytes(), Bad(kind));
    let part = |name, from, to, kind| text(name, changed_document(from, to), kind);
    let deep = |n: usize| {
        let open = "[".repeat(n);
        let close = "]".repeat(n);
        changed_document(
            "{\"zarr_format\"",
            &format!("{{\"x\":{open}{close},\"zarr_format\""),
        )
    };
    let long = "y".repeat(5 << 20);
    let axes = vec![(0, 1); 33];
    let ones = format!("[{}]", vec!["1"; 33].join(","));
    let mut all = vec![
        text("empty", String::new(), Corrupt),
        text("that_is_a_number", "7".into(), Corrupt),
        text("that_is_a_list", "[]".into(), Corrupt),
        text("cut", plain_document()[..100].into(), Corrupt),
        text("with_a_tail", plain_document() + " 1", Corrupt),
        text("of_a_group", super::forge::GROUP.into(), Corrupt),
        named("not_utf8", b"{\"zarr_format\":3,\"\xFF\":1}", Bad(Corrupt)),
        text(
            "lone_surrogate",
            changed_document("\"regular\"", "\"\\ud800\""),
            Corrupt,
        ),
        text(
            "duplicate_member",
            changed_document("{\"zarr", "{\"zarr_format\":3,\"zarr"),
            Corrupt,
        ),
        text(
            "bare_nan",
            changed_document("\"fill_value\":0", "\"fill_value\":NaN"),
            Corrupt,
        ),
        text(
            "number_too_large",
            changed_document("\"fill_value\":0", "\"fill_value\":1e999"),
            Corrupt,
        ),
        text("nested_65_deep", deep(64), LimitExceeded),
        text("nested_100000_deep", deep(100_000), LimitExceeded),
        text(
            "of_5_mib",
            changed_document("{\"zarr", &format!("{{\"x\":\"{long}\",\"zarr")),
            LimitExceeded,
        ),
        part(
            "format_2",
            "\"zarr_format\":3",
            "\"zarr_format\":2",
            Corrupt,
        ),
        part("node_type", "\"array\"", "\"table\"", Corrupt),
        part(
            "shape_of_another_size",
            "\"shape\":[8]",
            "\"shape\":[9]",
            Corrupt,
        ),
        part(
            "shape_of_two_axes",
            "\"shape\":[8]",
            "\"shape\":[8,8]",
            Corrupt,
        ),
        part("without_shape", "\"shape\":[8],", "", Corrupt),
        part("unknown_type", "\"uint8\"", "\"uint9\"", Unsupported),
        part("type_that_is_a_number", "\"uint8\"", "8", Corrupt),
        part("unknown_grid", "\"regular\"", "\"irregular\"", Unsupported),
        part("chunk_of_0", "[4]", "[0]", Corrupt),
        part("chunk_of_minus_4", "[4]", "[-4]", Corrupt),
        part("chunk_of_half", "[4]", "[4.5]", Corrupt),
        part("chunk_of_2_to_the_32", "[4]", "[4294967296]", Corrupt),
        part(
            "chunk_of_2_gib_and_one",
            "[4]",
            "[2147483649]",
            LimitExceeded,
        ),
        part("chunk_of_two_axes", "[4]", "[4,4]", Corrupt),
        part(
            "fill_too_large",
            "\"fill_value\":0",
            "\"fill_value\":256",
            Corrupt,
        ),
        part(
            "fill_negative",
            "\"fill_value\":0",
            "\"fill_value\":-1",
            Corrupt,
        ),
        part(
            "fill_of_another_type",
            "\"fill_value\":0",
            "\"fill_value\":\"x\"",
            Corrupt,
        ),
        part("without_fill", "\"fill_value\":0,", "", Corrupt),
        part(
            "codec_unknown",
            RAW,
            r#"[{"name":"bytes"},{"name":"rot13"}]"#,
            Unsupported,
        ),
        part("codecs_empty", RAW, "[]", Corrupt),
        part(
            "codecs_without_bytes",
            RAW,
            r#"[{"name":"crc32c"}]"#,
            Corrupt,
        ),
        part(
            "codecs_with_bytes_twice",
            RAW,
            r#"[{"name":"bytes"},{"name":"bytes"}]"#,
            Corrupt,
        ),
        part(
            "codecs_in_the_wrong_order",
            RAW,
            r#"[{"name":"crc32c"},{"name":"bytes"}]"#,
            Corrupt,
        ),
        part(
            "codecs_9",
            RAW,
            &format!(
                "[{{\"name\":\"bytes\"}}{}]",
                ",{\"name\":\"crc32c\"}".repeat(8)
            ),
            Corrupt,
        ),
        part("codec_without_name", RAW, "[{}]", Corrupt),
        part("codec_that_is_a_number", RAW, "[1]", Corrupt),
        part("domain_reversed", "[[0,8]]", "[[8,0]]", Corrupt),
        part("domain_of_one_number", "[[0,8]]", "[[8]]", Corrupt),
        part("domain_of_two_axes", "[[0,8]]", "[[0,8],[0,8]]", Corrupt),
        part(
            "origin_of_two_axes",
            "\"origin\":[0]",
            "\"origin\":[0,0]",
            Corrupt,
        ),
        part(
            "origin_at_the_least_i64",
            "\"origin\":[0]",
            "\"origin\":[-9223372036854775808]",
            Corrupt,
        ),
        part(
            "origin_beyond_i64",
            "\"origin\":[0]",
            "\"origin\":[99999999999999999999]",
            Corrupt,
        ),
        part(
            "key_order_out_of_range",
            "\"key_order\":[0]",
            "\"key_order\":[1]",
            Corrupt,
        ),
        part(
            "key_order_twice",
            "\"key_order\":[0]",
            "\"key_order\":[0,0]",
            Corrupt,
        ),
        part("without_orthant", ",\"orthant\":{", ",\"x\":{", Corrupt),
        part(
            "requires_a_feature",
            "\"must_understand\":false,",
            "\"must_understand\":false,\"requires\":[\"time travel\"],",
            Unsupported,
        ),
        text(
            "domain_at_the_least_i64",
            changed_document("[8]", "[9223372036854775808]")
                .replace("[[0,8]]", "[[-9223372036854775808,0]]"),
            Corrupt,
        ),
        text(
            "domain_to_the_largest_i64",
            spread(&[(0, i64::MAX)], "[4]"),
            Corrupt,
        ),
        text("of_33_axes", spread(&axes, &ones), LimitExceeded),
        text(
            "chunk_overflowing",
            spread(
                &[(0, 1), (0, 1), (0, 1)],
                "[4294967295,4294967295,4294967295]",
            ),
            LimitExceeded,
        ),
        text(
            "raw_bytes_of_0",
            array_document(
                r#"{"name":"raw_bytes","configuration":{"length_bytes":0}}"#,
                "\"\"",
                &[(0, 4)],
                "[4]",
                RAW,
            ),
            Corrupt,
        ),
        text(
            "raw_bytes_of_2_gib",
            array_document(
                r#"{"name":"raw_bytes","configuration":{"length_bytes":2147483648}}"#,
                "\"\"",
                &[(0, 4)],
                "[4]",
                RAW,
            ),
            LimitExceeded,
        ),
        text(
            "record_without_fields",
            array_document(
                r#"{"name":"structured","configuration":{"fields":[]}}"#,
                "\"\"",
                &[(0, 4)],
                "[4]",
                RAW,
            ),
            Corrupt,
        ),
        text(
            "time_of_no_unit",
            array_document(
                r#"{"name":"numpy.datetime64","configuration":{"unit":"fortnight","scale_factor":1}}"#,
                "0",
                &[(0, 4)],
                "[4]",
                RAW,
            ),
            Corrupt,
        ),
        text(
            "time_in_steps_of_0",
            array_document(
                r#"{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":0}}"#,
                "0",
                &[(0, 4)],
                "[4]",
                RAW,
            ),
            Corrupt,
        ),
        text(
            "names_twice",
            changed_document(
                ",\"orthant\"",
                ",\"dimension_names\":[\"x\",\"x\"],\"orthant\"",
            ),
            Corrupt,
        ),
    ];
    let n = i64::MAX / 2 - 1;
    let vast = |name: &str, domain: &[(i64, i64)], chunk: &str| {
        let text = spread(domain, chunk);
        let bytes = with(|forge, entries| {
            entries.retain(|k, _| !k.starts_with(&key(8, BAD, &[])));
            let blob = forge.put(text.as_bytes()).blob(0);
            let blob = if text.len() <= 1024 {
                inline(&text)
            } else {
                blob
            };
            entries.insert(key(2, BAD, &[]), blob);
        });
        Case::new(format!("document_{name}"), bytes, OnlyParts(LimitExceeded))
    };
    let ones = format!("[{}]", vec!["1"; 32].join(","));
    all.extend([
        vast("of_2_to_the_62", &[(-n, n); 2], "[2,2]"),
        vast(
            "of_50_million_squared",
            &[(0, 50_000_000); 2],
            "[1000,1000]",
        ),
        vast("of_32_axes", &[(-n, n); 32], &ones),
    ]);
    // One that is stored in another form than its length asks for, or that is no JSON by its own word.
    let blob = |name: &str, value: Vec<u8>, expect| {
        let bytes = with(|forge, entries| {
            forge.put(&[7; 2000]);
            entries.insert(key(2, BAD, &[]), value);
        });
        Case::new(format!("document_{name}"), bytes, expect)
    };
    all.extend([
        blob("of_no_bytes", vec![], Refused(Corrupt)),
        blob("compressed", vec![1, 0, 1, 2, 3], Bad(Unsupported)),
        blob("typed", vec![0, 1, 1, 2, 3], Bad(Corrupt)),
        blob("of_a_later_content", vec![0, 9, 1], Bad(Unsupported)),
        blob(
            "too_long_for_its_place",
            [&[0, 0][..], &[b' '; 1100]].concat(),
            Bad(Corrupt),
        ),
        blob(
            "after_the_end",
            nowhere(1 << 40, 2000).blob(0),
            Refused(Corrupt),
        ),
        blob(
            "in_the_slots",
            nowhere(0x1000, 2000).blob(0),
            Refused(Corrupt),
        ),
        blob(
            "of_4_gib",
            nowhere(0x3000, u64::from(u32::MAX)).blob(0),
            Refused(Corrupt),
        ),
        blob(
            "in_an_extent_of_5_bytes",
            nowhere(0x3000, 5).blob(0),
            Bad(Corrupt),
        ),
        blob(
            "of_another_checksum",
            nowhere(0x3000, 1100).blob(0),
            Bad(Corrupt),
        ),
    ]);
    all
}

/// Directories that lead nowhere, or round and round, or to names that are none.
pub fn directories() -> Vec<Case> {
    let entry = |name: &str, (k, v): (Vec<u8>, Vec<u8>), expect| {
        let bytes = with(|_, entries| {
            entries.insert(key(2, 5, &[]), inline(super::forge::GROUP));
            entries.insert(k, v);
        });
        Case::new(format!("directory_{name}"), bytes, expect)
    };
    let name_of = |name: &str, bytes: &[u8]| {
        let k = key(1, 0, bytes);
        entry(name, (k, vec![0x85, 1]), Walk(Corrupt))
    };
    let circle = |name: &str, edges: &[(i64, &str, i64)]| {
        let bytes = with(|_, entries| {
            for id in [5, 6] {
                entries.insert(key(2, id, &[]), inline(super::forge::GROUP));
            }
            entries.extend(edges.iter().map(|(p, n, c)| child(*p, n, *c, 1)));
        });
        Case::new(format!("directory_{name}"), bytes, Walk(Corrupt)).checked(12)
    };
    let reads = || Reads(FINE.to_vec());
    vec![
        entry("that_leads_nowhere", child(0, "x", 77, 2), reads()).checked(15),
        entry("group_without_document", child(0, "x", 78, 1), reads()).checked(15),
        entry("of_a_later_kind", child(0, "x", 5, 3), Walk(Unsupported)),
        entry("of_kind_0", child(0, "x", 5, 0), Walk(Unsupported)),
        entry("of_another_kind", child(0, "x", 5, 2), reads()).checked(15),
        entry("to_the_root", child(0, "x", 0, 1), Walk(Corrupt)),
        entry("to_a_negative_id", child(0, "x", -1, 1), Walk(Corrupt)),
        entry(
            "to_an_id_of_2_to_the_61",
            child(0, "x", 1 << 61, 1),
            Walk(Corrupt),
        ),
        entry("value_empty", (key(1, 0, b"x"), vec![]), Walk(Corrupt)),
        entry(
            "value_too_long",
            (key(1, 0, b"x"), vec![0x85, 1, 0]),
            Walk(Corrupt),
        ),
        name_of("name_empty", b""),
        name_of("name_dot", b"."),
        name_of("name_dot_dot", b".."),
        name_of("name_with_a_slash", b"a/b"),
        name_of("name_that_is_a_path", b"../../etc/passwd"),
        name_of("name_with_a_nul", b"a\0b"),
        name_of("name_with_an_escape", b"a\x1b[2Jb"),
        name_of("name_that_turns_text", "a\u{202e}b".as_bytes()),
        name_of("name_not_composed", "e\u{301}".as_bytes()),
        name_of("name_not_utf8", b"\xFF\xFE"),
        name_of("name_of_256_bytes", &[b'n'; 256]),
        circle("that_holds_itself", &[(0, "x", 5), (5, "x", 5)]),
        circle(
            "of_two_that_hold_each_other",
            &[(0, "x", 5), (5, "y", 6), (6, "x", 5)],
        ),
        circle("of_two_names", &[(0, "x", 5), (0, "y", 5)]),
    ]
}

/// Chunk records that break a rule, or name bytes that are not theirs.
pub fn chunk_records() -> Vec<Case> {
    let record = |name: &str, value: &[u8], kind| {
        Case::new(format!("chunk_{name}"), with_record(value), Bad(kind))
    };
    let place = |offset, len| nowhere(offset, len).record();
    let tail = |first: &[u8], rest: [u8; 4]| {
        let mut r = first.to_vec();
        r.resize(16, 0);
        r.extend(rest);
        r
    };
    let long = |offset: u64, len: u64| {
        let mut r = offset.to_le_bytes().to_vec();
        r.extend([0; 8]);
        r.extend([4, 0, 0, 0]);
        r.extend(len.to_le_bytes());
        r
    };
    // What the node refuses, nothing below it gives.
    let refused = |name: &str, value: &[u8]| {
        Case::new(
            format!("chunk_{name}"),
            with_record(value),
            Refused(Corrupt),
        )
    };
    let mut all = vec![
        record("of_another_checksum", &place(0x3000, 4), Corrupt),
        record("of_a_later_kind", &tail(&[], [9, 0, 0, 0]), Unsupported),
        record("of_kind_1", &tail(&[], [1, 0, 0, 0]), Unsupported),
        record("with_flags", &tail(&[], [3, 0, 1, 0]), Unsupported),
        record(
            "constant_longer_than_an_element",
            &tail(&[7, 7], [2, 0, 0, 0]),
            Corrupt,
        ),
        refused("without_bytes", &place(0x3000, 0)),
        refused("in_the_slots", &place(0x1000, 4)),
        refused("unaligned", &place(0x3004, 4)),
        refused("after_the_end", &place(1 << 40, 4)),
        refused("overflowing", &place(u64::MAX - 7, 4)),
        refused("too_short", &[0; 19]),
        refused("too_long", &[place(0x3000, 4), vec![0]].concat()),
        refused("fill_with_a_value", &tail(&[1], [3, 0, 0, 0])),
        refused("fill_with_a_mask", &tail(&[], [3, 1, 0, 0])),
        refused("long_that_is_short", &long(0x3000, 100)),
        refused("long_of_2_to_the_63", &long(0x3000, 1 << 63)),
        refused("long_of_2_to_the_62", &long(0x3000, 1 << 62)),
        refused("long_cut_short", &long(0x3000, 1 << 33)[..24]),
    ];
    let shared = |name: &str, by: u64, len: u32, expect| {
        let bytes = with(|_, entries| {
            let mut r = entries[&chunk_key(BAD, &[0])].clone();
            let offset = u64::from_le_bytes(*r.first_chunk().unwrap());
            r[..8].copy_from_slice(&(offset + by).to_le_bytes());
            r[8..12].copy_from_slice(&len.to_le_bytes());
            entries.insert(chunk_key(BAD, &[1]), r);
        });
        Case::new(format!("chunk_{name}"), bytes, expect)
    };
    let twice = [11, 12, 13, 14, 11, 12, 13, 14];
    all.extend([
        shared("that_is_anothers", 0, 4, Reads(twice.to_vec())).checked(11),
        shared("that_overlaps_another", 0, 12, Bad(Corrupt)).checked(11),
        Case::new(
            "chunk_entry_taken_away",
            with(|_, entries| {
                entries.remove(&chunk_key(BAD, &[1]));
            }),
            // Forged absence is absence.
            Reads(vec![11, 12, 13, 14, 0, 0, 0, 0]),
        ),
    ]);
    all
}

/// Attributes of `bad` that break a rule.
pub fn attributes() -> Vec<Case> {
    let with_value = |name: &str, attribute: &[u8], value: Vec<u8>, expect| {
        let bytes = with(|_, entries| {
            entries.insert(key(3, BAD, attribute), value);
        });
        Case::new(format!("attribute_{name}"), bytes, expect)
    };
    let named = |name: &str, attribute: &[u8], value: Vec<u8>, kind| {
        with_value(name, attribute, value, Attributes(kind))
    };
    let of = |name, value: &[u8], kind| named(name, b"a", value.to_vec(), kind);
    let typed = |shape: &[u64], rest: &[u8]| {
        let mut v = vec![0, 1, 7, 0];
        v.extend(b"\"uint8\"");
        v.push(shape.len() as u8);
        shape.iter().for_each(|n| v.extend(n.to_le_bytes()));
        v.extend(rest);
        v
    };
    let nested = |n: usize| {
        let mut v = vec![0, 2];
        for _ in 0..n {
            v.extend([7, 1, 0, 0, 0]);
        }
        v.push(0);
        v
    };
    vec![
        named("name_empty", b"", inline("\"x\""), Corrupt),
        named("name_with_a_nul", b"a\0", inline("\"x\""), Corrupt),
        named("name_not_utf8", b"\xFF", inline("\"x\""), Corrupt),
        with_value("empty", b"a", Vec::new(), Refused(Corrupt)),
        of("of_a_later_form", &[3, 0], Unsupported),
        of("of_a_later_content", &[0, 7], Unsupported),
        of("json_cut", &inline("{\"a\":"), Corrupt),
        of(
            "json_nested_65_deep",
            &inline(&("[".repeat(65) + &"]".repeat(65))),
            LimitExceeded,
        ),
        of(
            "typed_shorter_than_its_shape",
            &typed(&[4], &[1, 2, 3]),
            Corrupt,
        ),
        of(
            "typed_longer_than_its_shape",
            &typed(&[4], &[1, 2, 3, 4, 5]),
            Corrupt,
        ),
        of("typed_of_2_to_the_63", &typed(&[1 << 63], &[]), Corrupt),
        of(
            "typed_overflowing",
            &typed(&[1 << 32, 1 << 32, 0], &[1]),
            Corrupt,
        ),
        of("typed_of_33_axes", &typed(&[1; 33], &[1]), Corrupt),
        of(
            "typed_of_unknown_type",
            &[0, 1, 7, 0, b'"', b'u', b'i', b'n', b't', b'9', b'"', 0],
            Unsupported,
        ),
        of("tree_of_a_later_tag", &[0, 2, 99], Corrupt),
        of(
            "tree_of_4_gi_values",
            &[0, 2, 7, 0xFF, 0xFF, 0xFF, 0xFF, 0],
            Corrupt,
        ),
        of(
            "tree_text_of_4_gib",
            &[0, 2, 6, 0xFF, 0xFF, 0xFF, 0xFF, b'x'],
            Corrupt,
        ),
        of("tree_nested_65_deep", &nested(65), LimitExceeded),
        of("tree_with_a_tail", &[0, 2, 0, 0], Corrupt),
        with_value(
            "after_the_end",
            b"a",
            nowhere(0x3000, 5 << 20).blob(0),
            Refused(Corrupt),
        ),
    ]
}
