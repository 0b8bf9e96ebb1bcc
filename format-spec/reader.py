#!/usr/bin/env python3
"""A second reader of the orthant format, written from the documents in this folder alone.

    reader.py FILE                  what is in the container, as JSON (schema: vectors/README.md)
    reader.py FILE --array /PATH    the values of one array over its domain, C order
    reader.py --check-vectors DIR   every DIR/*.orth against the DIR/*.json beside it

It is strict: what the text calls `Corrupt` is an error here. Beyond what opening asks it walks the whole tree, the
other slot's and every snapshot's, and compares sums and invariants, because its job is to judge writers.
It holds nothing that writes, and no knowledge that is not in the text. `documents.py` reads types and values,
`pipelines.py` decodes payloads, `golden.py` compares. Needs Python 3.8 and numcodecs. Public domain (CC0 1.0).
"""

import argparse
import hashlib
import json
import math
import os
import stat
import struct
import sys
import time
import unicodedata
from collections import namedtuple

from documents import (GENERATION_END, Cursor, DataType, FormatError, attribute_value, crc32c, integers, named, need,
                       one_text, ordered, parse_json)
from golden import check_vectors
from pipelines import ELEMENTS_MAX, Pipeline, copy_box

DATA_START, BLOCK = 12288, 4096
MAGIC = bytes.fromhex("894f52540d0a1a0a")
INDEX_MAX = (1 << 62) - 2
LIST_MAX = 4096                                   # arrays with more elements are compared by digest

NodeRef = namedtuple("NodeRef", "offset length crc count")
Extent = namedtuple("Extent", "offset length crc")


def node_ref(c):
    return NodeRef(c.u64(), c.u32(), c.u32(), c.u64())


# ---------------------------------------------------------------------------------------------------- opening

def read_header(raw):
    need(raw and raw[:8] == MAGIC[:len(raw)], "not an orthant file", "not_container")
    need(len(raw) >= 256, "file ends within the header")
    c = Cursor(raw[8:256], "header")
    need(crc32c(raw[:252]) == int.from_bytes(raw[252:256], "little"), "header: CRC")
    major, minor, header_len = c.u16(), c.u16(), c.u32()
    need(major == 0, f"format major {major}", "unsupported")
    header = {"major": major, "minor": minor, "uuid": c.take(16).hex(), "created": c.i64()}
    block_log2, slot_count, reserved = c.u8(), c.u8(), c.u16()
    fixed = (header_len, block_log2, slot_count, c.u32(), c.u64(), c.u64())
    need(fixed == (256, 12, 2, 4096, 4096, DATA_START), f"header: fixed values {fixed}", "unsupported")
    header["front_len"] = c.u64()
    need(c.u64() == 0, "header: unknown incompat flag", "unsupported")
    header["application"] = c.take(16).rstrip(b"\0").decode("utf-8", "replace")
    header["parent"] = c.take(16).hex()
    need(reserved == 0, "header: reserved bytes")
    c.zeros(140)
    header["crc"] = c.u32()
    return header


def read_slot(raw, index, header_crc):
    """One slot as a dict, or None where its own CRC is wrong (R-3.1)."""
    if crc32c(raw[:252]) != int.from_bytes(raw[252:256], "little"):
        return None
    c = Cursor(raw[:252], f"slot {'AB'[index]}")
    need(c.take(8) == b"ORTSLOT1", f"{c.what}: magic")
    need(raw[248:252] == struct.pack("<I", header_crc), f"{c.what}: belongs to another header")
    s = {"generation": c.u64(), "time": c.i64(), "committed_end": c.u64(), "root": node_ref(c), "level": c.u8()}
    place, state = c.u8(), c.u16()
    c.zeros(4)
    s.update(record=Extent(c.u64(), c.u32(), c.u32()), horizon=c.u64(), live_payload_bytes=c.u64(),
             live_index_bytes=c.u64(), next_id=c.u64())
    incompat, ro_compat, compat, major = c.u64(), c.u64(), c.u64(), c.u16()
    need(major == 0 and incompat == 0, f"{c.what}: major {major}, incompat {incompat:#x}", "unsupported")
    s.update(compact=bool(state & 1), unconfirmed=bool(state & 2), writer_version=(c.u16(), c.u32())[1],
             writer_id=c.take(16).hex())
    if not ro_compat | compat:
        c.zeros(88)
    g = s["generation"]
    need(1 <= g < GENERATION_END and g % 2 == index == place, f"{c.what}: generation {g} at place {place}")
    need(s["horizon"] < g and state < 4 and s["level"] <= 12, f"{c.what}: horizon, state or level")
    need(s["committed_end"] >= DATA_START, f"{c.what}: committed_end")
    for e in (s["root"], s["record"]):
        check_extent(e, s["committed_end"], c.what)
    return s


def check_extent(e, committed_end, what):
    need(e.offset % 8 == 0 and e.offset >= DATA_START and e.length >= 1 and e.offset + e.length <= committed_end,
         f"{what}: extent {e.offset}+{e.length} not in {DATA_START}..{committed_end} or not at a multiple of 8")


class Container:
    """An opened file: header, slots, and `view`, the newest root."""

    def __init__(self, path):
        info = os.stat(path)
        need(stat.S_ISREG(info.st_mode), f"{path} is not a regular file", "io")
        self.file = open(path, "rb", buffering=0)
        self.fd = self.file.fileno()
        self.size = info.st_size
        self.header = read_header(os.pread(self.fd, 256, 0))
        need(self.size >= DATA_START, f"file of {self.size} bytes has no room for two slots")
        self.slots = self._settled_slots()
        valid = [s for s in self.slots if s]
        need(valid, "both slots are invalid")
        generations = sorted(s["generation"] for s in valid)
        need(len(valid) == 1 or generations[1] - generations[0] == 1, f"slots of generations {generations}")
        self.slot = max(valid, key=lambda s: s["generation"])
        self.other = next((s for s in valid if s is not self.slot), None)
        self.check_record(self.slot)
        self.view = self.view_of(self.slot, self.slot["committed_end"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def _settled_slots(self):
        """R-9.17, as a reader that cannot query locks: 10 ms without change, at most 1 s."""
        end, before, since = time.monotonic() + 1, None, 0.0
        while True:
            raw = os.pread(self.fd, 2 * BLOCK, BLOCK)
            need(len(raw) == 2 * BLOCK, "slots cut short")
            slots = [read_slot(raw[i * BLOCK:], i, self.header["crc"]) for i in (0, 1)]
            now = time.monotonic()
            since = since if raw == before else now
            if all(slots) or (raw == before and now - since >= 0.01):
                return slots
            need(now < end, "the slots do not settle", "busy")
            before = raw
            time.sleep(0.002)

    def read(self, e, committed_end, what):
        check_extent(e, committed_end, what)
        need(e.offset + e.length <= self.size, f"{what}: beyond the end of the file")
        return os.pread(self.fd, e.length, e.offset)

    def read_checked(self, e, committed_end, what):
        raw = self.read(e, committed_end, what)
        need(crc32c(raw) == e.crc, f"{what}: CRC of {e.length} bytes at {e.offset}")
        return raw

    def check_record(self, s):
        """R-9.2: the commit record repeats its slot."""
        need(s["committed_end"] <= self.size, f"committed_end {s['committed_end']} beyond file of {self.size} bytes")
        raw = self.read(s["record"], s["committed_end"], "commit record")
        need(len(raw) >= 102 and raw[:4] == b"ORTC", "commit record: magic or length")
        crc = int.from_bytes(raw[-4:], "little")
        need(crc == s["record"].crc == crc32c(raw[:-4]), "commit record: CRC")
        c = Cursor(raw[4:-4], "commit record")
        need((c.u32(), c.u64()) == (len(raw), s["generation"]), "commit record: length or generation")
        previous = Extent(c.u64(), c.u32(), c.u32())
        need(previous.offset or not any(previous), "commit record: previous")
        root, level = node_ref(c), c.u8()
        c.zeros(7)
        need((root, level, c.i64()) == (s["root"], s["level"], s["time"]), "commit record: root, level or time")
        need(c.take(16).hex() == self.header["uuid"], "commit record: uuid")
        c.u64()
        n = c.u16()
        need(n <= 1024, "commit record: message")
        c.text(n)
        c.end()

    def check_all(self):
        """What a writer must have kept besides (checks.md 3, 11, 16, 17)."""
        s, o, extents = self.slot, self.other, set(self.view.extents)
        if o:
            need(s["time"] > o["time"] and s["horizon"] >= o["horizon"], "slots: time or horizon falls")
            self.check_record(o)
            extents |= self.view_of(o, o["committed_end"]).extents.keys()
        live = [sum(e.length for e, kind in self.view.extents.items() if kind == k) for k in ("payload", "index")]
        stated = [s["live_payload_bytes"], s["live_index_bytes"]]
        need(live == stated, f"live payload and index bytes are {live}, the slot says {stated}")
        for snapshot in self.view.snapshots:
            if "error" not in snapshot:
                extents |= self.view_of(snapshot, s["committed_end"]).extents.keys()
        ordered_extents = sorted((e.offset, e.length) for e in extents | {s["record"]})
        for a, b in zip(ordered_extents, ordered_extents[1:]):
            need(a == b or a[0] + a[1] <= b[0], f"extents {a} and {b} overlap")

    def view_of(self, at, committed_end):
        """The view of a slot or snapshot."""
        return View(self, at["root"], at["level"], at["generation"], committed_end)


# ---------------------------------------------------------------------------------------------------- the tree

class View:
    """Everything below one root: objects by path, history, snapshots, extents."""

    def __init__(self, container, root, level, generation, committed_end):
        self.container, self.generation, self.committed_end = container, generation, committed_end
        self.extents, self.history, self.snapshots = {}, [], []
        self.entries, self.documents, self.attributes, self.chunks = [], {}, {}, {}
        count = sum(self._entry(key, value) for key, value in self._walk(root, level, generation, b"", None, True))
        need(count == root.count, f"root: {count} entries, reference says {root.count}")
        need(0 in self.documents, "no root group")
        need(len({s["label"] for s in self.snapshots}) == len(self.snapshots), "a snapshot label twice")
        self.objects = self._tree()

    def _own(self, e, kind):
        need(e not in self.extents, f"extent at {e.offset} has two keys")
        self.extents[e] = kind

    def _walk(self, ref, level, birth_max, lo, hi, is_root):
        """R-4.10: the entries below a node, each node judged before it is used."""
        what = f"node at {ref.offset}"
        need(33 <= ref.length <= 65536, f"{what}: length {ref.length}")
        raw = self.container.read(ref, self.committed_end, what)
        self._own(Extent(ref.offset, ref.length, ref.crc), "index")
        c = Cursor(raw, what)
        need(c.take(4) == b"ORTN", f"{what}: magic")
        kind, own_level, flags, n, prefix_len, suffix_len, value_len = struct.unpack("<BBHHHHH", c.take(12))
        birth, length, crc = c.u64(), c.u32(), c.u32()
        need(own_level == level and kind == (2 if level else 1) and flags <= 1, f"{what}: kind, level or flags")
        need(length == ref.length and crc == ref.crc == crc32c(raw[:28] + raw[32:]), f"{what}: length or CRC")
        need(1 <= birth <= birth_max, f"{what}: birth {birth} above {birth_max}")
        need(n >= (2 if is_root and level else 1), f"{what}: {n} entries")
        prefix = c.take(prefix_len)
        if flags:
            suffixes = [c.take(suffix_len) for _ in range(n)]
            values = [c.take(value_len) for _ in range(n)]
        else:
            suffixes, values, offsets = [], [], [c.u16() for _ in range(n)]
            need((suffix_len, value_len) == (0, 0), f"{what}: slotted with lengths")
            for offset in offsets:
                need(offset == c.at, f"{what}: cell at {c.at}, table says {offset}")
                s, v = c.u16(), c.u16()
                suffixes.append(c.take(s))
                values.append(c.take(v))
        c.end()
        keys = [prefix + s for s in suffixes]
        even = len(set(map(len, suffixes))) == len(set(map(len, values))) == 1
        need(even == bool(flags), f"{what}: layout is not the one its lengths ask for")
        need(all(a < b for a, b in zip(keys, keys[1:])), f"{what}: keys out of order")
        need(prefix == os.path.commonprefix([keys[0], keys[-1]]), f"{what}: prefix is not the longest")
        need(max(map(len, keys)) <= 512 and max(map(len, values)) <= 2048, f"{what}: key or value too long")
        need(lo <= keys[0] and (hi is None or keys[-1] < hi), f"{what}: keys outside {lo.hex()}..")
        if level == 0:
            yield from zip(keys, values)
            return
        for i, value in enumerate(values):
            c = Cursor(value, f"{what} reference {i}")
            child = node_ref(c)
            c.end()
            upper = keys[i + 1] if i + 1 < n else hi
            below = 0
            for below, entry in enumerate(self._walk(child, level - 1, birth, keys[i], upper, False), 1):
                yield entry
            need(below == child.count, f"{c.what}: {below} entries, says {child.count}")

    def _entry(self, key, value):
        """Files one leaf entry under its tag; returns 1, so that a sum counts."""
        need(key, "empty key")
        tag, k, v = key[0], Cursor(key[1:], f"key {key.hex()}"), Cursor(value, f"value of {key.hex()}")
        if tag == 0x01:
            parent, name, child, kind = k.id(), k.text(len(k.data) - k.at), v.id(), v.u8()
            v.end()
            need(good_name(name) and child >= 1 and kind in (1, 2), f"directory entry {name!r} -> {child} kind {kind}")
            self.entries.append((parent, name, child, kind))
        elif tag == 0x02:
            at = k.id()
            self.documents[at] = lambda: self._blob(v)
        elif tag == 0x03:
            at, name = k.id(), k.text(len(k.data) - k.at)
            need(1 <= len(name.encode()) <= 255 and "\0" not in name and nfc(name), f"attribute name {name!r}")
            self.attributes.setdefault(at, {})[name] = caught(lambda: attribute_value(*self._blob(v)))
        elif tag == 0x08:
            at, coordinates = k.id(), []
            while k.at < len(k.data):
                coordinates.append(k.vint())
            need(len(coordinates) <= 32, f"{k.what}: rank")
            self.chunks.setdefault(at, {})[tuple(coordinates)] = caught(lambda: self._record(v))
        elif tag == 0x10:
            generation = k.id()
            need(1 <= generation < self.generation, f"snapshot of generation {generation}")
            self.snapshots.append({"generation": generation, **caught(lambda: self._snapshot(v))})
        elif tag == 0x11:
            generation = k.id()
            need(generation <= self.generation, f"history of generation {generation}")
            when, changed, flags, n = v.i64(), v.u64(), v.u16(), v.u16()
            need(flags <= 1 and n <= 1024, f"{v.what}: flags or length")
            self.history.append({"generation": generation, "time": when, "changed": changed, "restore": flags == 1,
                                 "message": v.text(n)})
            v.end()
        if tag in (0x02, 0x10, 0x11):
            k.end()
        return 1

    def _snapshot(self, v):
        root, level, label_len, ext_len, flags = node_ref(v), v.u8(), v.u8(), v.u16(), v.u32()
        when, label = v.i64(), v.text(label_len)
        v.take(ext_len)
        v.end()
        need(level <= 12 and label_len >= 1 and ext_len <= 1024 and nfc(label), f"{v.what}: level or label")
        return {"label": label, "time": when, "root": root, "level": level,
                **({"error": "unsupported"} if flags > 1 else {"referenced": flags == 1})}

    def _record(self, v):
        """06: a chunk record."""
        need(len(v.data) >= 20, f"{v.what}: {len(v.data)} bytes")
        kind, mask, flags = v.data[16], v.data[17], int.from_bytes(v.data[18:20], "little")
        need(kind in (0, 2, 3, 4) and flags == 0, f"chunk record kind {kind}, flags {flags:#x}", "unsupported")
        need(len(v.data) == (28 if kind == 4 else 20), f"{v.what}: length for kind {kind}")
        if kind in (2, 3):
            need(mask == 0 and (kind == 2 or not any(v.data[:16])), f"{v.what}: reserved bytes")
            return {"kind": "constant", "cell": v.data[:16]} if kind == 2 else {"kind": "fill"}
        offset, length, crc = v.u64(), v.u32(), v.u32()
        if kind == 4:
            need(length == 0, f"{v.what}: reserved bytes")
            length = int.from_bytes(v.data[20:], "little")
            need(1 << 32 <= length < 1 << 63, f"{v.what}: length {length}")
        extent = Extent(offset, length, crc)
        check_extent(extent, self.committed_end, v.what)
        self._own(extent, "payload")
        return {"kind": "long_extent" if kind == 4 else "extent", "extent": extent, "mask": mask}

    def _blob(self, v):
        """07: (content, bytes)."""
        v.at = 0
        form, content = v.u8(), v.u8()
        need(form in (0, 2) and content <= 2, f"{v.what}: blob form {form}, content {content}", "unsupported")
        if form == 0:
            raw = v.rest()
            need(len(raw) <= 1024, f"{v.what}: {len(raw)} bytes inline")
            return content, raw
        offset, stored, length, crc = v.u64(), v.u32(), v.u32(), v.u32()
        v.end()
        need(1024 < stored == length <= 4 << 20, f"{v.what}: blob of {stored}, raw {length}")
        extent = Extent(offset, stored, crc)
        self._own(extent, "index")
        return content, self.container.read_checked(extent, self.committed_end, v.what)

    def _tree(self):
        """Paths from directory entries; every object has one, and hangs from the root group."""
        children, seen, out = {}, {0}, {}
        for parent, name, child, kind in self.entries:
            need(child not in seen, f"object {child} has two directory entries")
            seen.add(child)
            children.setdefault(parent, []).append((name, child, kind))
        need(seen == set(self.documents), f"objects {sorted(seen ^ set(self.documents))} lack a document or an entry")
        next_id = self.container.slot["next_id"]
        need(max(seen) < next_id, f"object id {max(seen)} at or above next id {next_id}")
        todo = [("/", 0, 1)]
        while todo:
            path, at, kind = todo.pop()
            out[path] = Object(self, at, kind)
            need(kind == 1 or at not in children, f"{path} is an array with children")
            todo += [(path.rstrip("/") + "/" + name, child, k) for name, child, k in children.get(at, [])]
        need(len(out) == len(seen), "objects that hang from no group, or from a cycle")
        need(set(self.attributes) <= seen and set(self.chunks) <= seen, "attributes or chunks without an object")
        return dict(sorted(out.items()))


def caught(read):
    """A fault in a value is of that value alone (R-4.11)."""
    try:
        return read()
    except FormatError as e:
        return {"error": e.kind, "text": e.text}


def nfc(text):
    return unicodedata.is_normalized("NFC", text)


def good_name(name):
    bad = any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069
              or c == "/" for c in name)
    return 1 <= len(name.encode()) <= 255 and not bad and name not in (".", "..") and nfc(name)


# ---------------------------------------------------------------------------------------------------- objects

class Object:
    """One group or array of a view. `error` names what makes it unreadable, if anything does."""

    MEMBERS = ("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value",
               "codecs", "dimension_names", "orthant")
    OWN = ("must_understand", "requires", "domain", "origin", "key_order")

    def __init__(self, view, at, kind):
        self.view, self.id, self.kind = view, at, ("group", "array")[kind - 1]
        self.attributes = view.attributes.get(at, {})
        self.document, self.text, self.error = None, None, None
        try:
            content, raw = view.documents[at]()
            need(content == 0, "document is no JSON text")
            self.document = d = parse_json(raw, f"document of object {at}")
            need(isinstance(d, dict), "document is no object")
            self.text = raw.decode()
            need(d.get("zarr_format") == 3 and d.get("node_type") == self.kind, "zarr_format or node_type")
            own = d.get("orthant", {"must_understand": False})
            need(isinstance(own, dict), "orthant is no object")
            known = self.OWN if kind == 2 else self.OWN[:2]
            need(set(own) <= set(known) and own.get("must_understand") is False and not own.get("requires"),
                 f"orthant: {sorted(set(own))}, requires {own.get('requires')}", "unsupported")
            if kind == 2:
                self._array(d, own)
        except FormatError as e:
            self.error = e

    def _array(self, d, own):
        need(isinstance(d.get("shape"), list), "shape")
        need(len(d["shape"]) <= 32, "rank", "limit_exceeded")
        rank, wide = len(d["shape"]), INDEX_MAX + 1
        need(isinstance(own.get("domain"), list) and len(own["domain"]) == rank, "domain")
        self.domain = [tuple(integers(p, "domain", -INDEX_MAX, wide, 2)) for p in own["domain"]]
        need(all(lo <= hi and lo <= INDEX_MAX for lo, hi in self.domain), f"domain {self.domain}")
        self.shape = integers(d["shape"], "shape", 0, 1 << 63, rank)
        need(self.shape == [hi - lo for lo, hi in self.domain], f"shape {self.shape} of domain {self.domain}")
        self.origin = integers(own.get("origin"), "origin", -INDEX_MAX, INDEX_MAX, rank)
        self.key_order = integers(own.get("key_order"), "key_order", 0, 31, rank)
        need(sorted(self.key_order) == list(range(rank)), f"key_order {self.key_order}")
        grid, conf = named(d.get("chunk_grid"), "chunk_grid")
        need(grid == "regular", f"chunk grid {grid}", "unsupported")
        need(set(conf) == {"chunk_shape"}, "chunk_grid: configuration")
        self.chunk_shape = integers(conf["chunk_shape"], "chunk_shape", 1, (1 << 32) - 1, rank)
        encoding = {"name": "default", "configuration": {"separator": "/"}}
        need(d.get("chunk_key_encoding") == encoding, f"chunk_key_encoding {d.get('chunk_key_encoding')}")
        names = d.get("dimension_names", [None] * rank)
        need(isinstance(names, list) and len(names) == rank, "dimension_names")
        given = [n for n in names if n is not None]
        need(all(isinstance(n, str) and 1 <= len(n.encode()) <= 255 and "\0" not in n for n in given)
             and len(set(given)) == len(given), f"dimension_names {names}")
        self.dtype = DataType(d.get("data_type"))
        need("fill_value" in d, "no fill_value")
        self.fill = self.dtype.from_json(d["fill_value"])
        self.pipeline = Pipeline(d.get("codecs"), self.dtype, self.chunk_shape, self.fill)

    def in_one_text(self):
        """R-10.2, as far as order, spelling and the fill value go."""
        d = ordered(self.document, self.MEMBERS)
        if "orthant" in d:
            d["orthant"] = ordered(d["orthant"], self.OWN)
        if self.kind == "array":
            d["fill_value"], d["data_type"] = self.dtype.to_json(self.fill), self.dtype.json
            for name in ("chunk_grid", "chunk_key_encoding"):
                d[name] = dict(zip(("name", "configuration"), named(d[name], name)))
            d["codecs"] = self.pipeline.ordered(d["codecs"])
            need(any(d.get("dimension_names", [True])), "dimension_names of nulls only")
        return one_text(d) == self.text

    def chunks(self):
        """(coordinate per axis, record) in key order."""
        for key, record in self.view.chunks.get(self.id, {}).items():
            need(len(key) == len(self.shape), f"chunk key {key} for rank {len(self.shape)}")
            yield tuple(key[self.key_order.index(a)] for a in range(len(key))), record

    def decode(self, record):
        """The elements of one chunk, None for declared fill."""
        if "error" in record:
            raise FormatError(record["error"], record["text"])
        if record["kind"] == "fill":
            return None
        need(self.pipeline.count <= ELEMENTS_MAX, "chunk too large for this reader", "limit_exceeded")
        if record["kind"] == "constant":
            size, cell = self.dtype.size, record["cell"]
            need(size is not None and size <= 16 and not any(cell[size:]), "constant record")
            self.dtype.to_json(cell[:size])
            return [cell[:size]] * math.prod(self.chunk_shape)
        payload = self.view.container.read_checked(record["extent"], self.view.committed_end, "payload")
        return self.pipeline.decode(payload, record["mask"])

    def read(self):
        """All elements of the domain, C order. Also asks for I2 and R-6.7, which reading alone would not."""
        if self.error:
            raise self.error
        need(math.prod(self.shape) <= ELEMENTS_MAX, "array too large for this reader", "limit_exceeded")
        out = [self.fill] * math.prod(self.shape)
        for coordinate, record in self.chunks():
            start = [o + c * n for o, c, n in zip(self.origin, coordinate, self.chunk_shape)]
            box = [(max(s, lo), min(s + n, hi)) for s, n, (lo, hi) in zip(start, self.chunk_shape, self.domain)]
            if any(a >= b for a, b in box):
                continue                                                        # ignored by reads
            cells = self.decode(record)
            if cells is None:
                continue
            size = [b - a for a, b in box]
            inside = [a - s for (a, _), s in zip(box, start)]
            place = [a - lo for (a, _), (lo, _) in zip(box, self.domain)]
            copy_box(cells, self.chunk_shape, inside, out, self.shape, place, size)
            if size != self.chunk_shape:
                need(record["kind"] != "constant", f"constant chunk {coordinate} reaches out of the domain")
                copy_box([self.fill] * math.prod(size), size, [0] * len(size), cells, self.chunk_shape, inside, size)
                need(all(c == self.fill for c in cells), f"chunk {coordinate} is not fill outside the domain")
        return out

    def listing(self, values):
        out = {"kind": self.kind, "id": self.id, "document": self.document, "attributes": self.attributes}
        if self.error:
            return {**out, "error": self.error.kind, "text": self.error.text}
        out["one_text"] = self.in_one_text()
        if self.kind == "group":
            return out
        out.update(dtype=self.dtype.json, domain=[list(p) for p in self.domain], chunks=[])
        for coordinate, record in self.chunks():
            shown = {"coord": list(coordinate), **{k: record[k] for k in ("kind", "mask", "error") if k in record}}
            if "extent" in record:
                shown.update(offset=record["extent"].offset, stored_bytes=record["extent"].length)
            if "cell" in record and self.dtype.size:
                shown["value"] = self.dtype.to_json(record["cell"][:self.dtype.size])
            out["chunks"].append(shown)
        if values:
            out.update(caught(self._values))
        return out

    def _values(self):
        cells = self.read()
        if len(cells) <= LIST_MAX:
            return {"values": [self.dtype.to_json(c) for c in cells]}
        digest = hashlib.sha256()
        for cell in cells:
            digest.update(cell if self.dtype.size else struct.pack("<I", len(cell)) + cell)
        return {"sha256": digest.hexdigest()}


# ---------------------------------------------------------------------------------------------------- command

def listing(path, values=True):
    """Everything this reader finds, in the schema of vectors/README.md."""
    try:
        with Container(path) as c:
            return list_container(c, values)
    except FormatError as e:
        return {"error": e.kind, "text": e.text}


def list_container(c, values):
    if values:
        c.check_all()
    objects, snapshots = {p: o.listing(values) for p, o in c.view.objects.items()}, []
    for s in c.view.snapshots:
        shown = {k: v for k, v in s.items() if k not in ("root", "level")}
        if values and "error" not in s:
            shown["objects"] = {p: o.listing(True) for p, o in c.view_of(s, c.slot["committed_end"]).objects.items()}
        snapshots.append(shown)
    s, o, h = c.slot, c.other, c.header
    return {"schema": "orthant/vector/1", "file_bytes": c.size, "uuid": h["uuid"], "parent": h["parent"],
            "created": h["created"], "front_len": h["front_len"], "application": h["application"],
            **{k: s[k] for k in ("generation", "time", "committed_end", "horizon", "next_id", "live_payload_bytes",
                                 "live_index_bytes", "compact", "unconfirmed", "writer_version", "writer_id")},
            "ignored_tail_bytes": c.size - s["committed_end"],
            "other_slot": {"state": "valid", "generation": o["generation"]} if o else {"state": "invalid"},
            "history": c.view.history, "snapshots": snapshots, "objects": objects}


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A second reader of the orthant format.")
    parser.add_argument("file", nargs="?", help="a container")
    parser.add_argument("--array", metavar="PATH", help="print this array's values")
    parser.add_argument("--values", action="store_true", help="list values and check everything too")
    parser.add_argument("--check-vectors", metavar="DIR", help="compare every golden file in DIR")
    a = parser.parse_args(arguments)
    if a.check_vectors:
        return check_vectors(a.check_vectors, listing)
    if not a.file:
        parser.error("a FILE or --check-vectors DIR is needed")
    if not a.array:
        out = listing(a.file, a.values)
        print(json.dumps(out, indent=1, ensure_ascii=False))
        return 4 if "error" in out else 0
    try:
        with Container(a.file) as c:
            o = c.view.objects.get("/" + a.array.strip("/"))
            need(o and o.kind == "array", f"no array {a.array}", "not_found")
            cells = o.read()
            print(json.dumps([o.dtype.to_json(cell) for cell in cells], ensure_ascii=False))
        return 0
    except FormatError as e:
        print(e, file=sys.stderr)
        return 2 if e.kind == "not_found" else 4


if __name__ == "__main__":
    sys.exit(main())
