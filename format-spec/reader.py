#!/usr/bin/env python3
"""A second reader of the orthant format, written from the documents in this folder alone.

    reader.py FILE                  what is in the container, as JSON (schema: vectors/README.md)
    reader.py FILE --values         the same, with all values and the objects of snapshots
    reader.py FILE --array PATH     the values of one array over its domain, C order
    reader.py --check-vectors DIR   every DIR/*.orth against the DIR/*.json beside it

Holds the file, its slots, the tree and the objects; `documents.py` holds what is inside values and
payloads. Strict: what the text calls `Corrupt` is an error. It holds nothing that writes, and no
knowledge that is not in the text. Needs Python 3.8, numcodecs and so numpy. CC0 1.0.
"""

import argparse
import hashlib
import json
import math
import os
import re
import stat
import struct
import sys
import time
import unicodedata
import zlib
from collections import namedtuple
from pathlib import Path

from documents import (HELD_MAX, Cursor, DataType, FormatError, Pipeline, attribute_value, crc32c,
                       named, need, parse_json, reading)

DATA_START = 12288
MAGIC = bytes.fromhex("894f52540d0a1a0a")
INDEX = range(2 - (1 << 62), (1 << 62) - 1)
OWN_MEMBERS = {"must_understand", "requires", "domain", "origin", "key_order"}
KEY_ENCODING = {"name": "default", "configuration": {"separator": "/"}}
KINDS = {0: "extent", 2: "constant", 3: "fill", 4: "long_extent"}
NOT_IN_CHILD_NAME = "[/\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
NOT_JUDGED = {"about", "one_text"}        # members of an expectation; a spelling binds writers only
VALUES_MAX = 4096                                               # more are compared by their digest


class Layout:
    """The fixed fields of a structure, as `name:code` with the codes of `struct`."""

    def __init__(self, name, fields):
        names, codes = zip(*(field.split(":") for field in fields.split()))
        self.name, self.struct = name, struct.Struct("<" + "".join(codes))
        self.fields, self.size = namedtuple("Fields", names), self.struct.size

    def read(self, raw):
        """The fields at the front of `raw`."""
        need(self.name, length=len(raw) >= self.size)
        return self.fields(*self.struct.unpack_from(raw))


HEADER = Layout("header", """magic:8s major:H minor:H header_len:I uuid:16s created:q block_log2:B
    slot_count:B reserved_42:2s slot_stride:I slot0_offset:Q data_start:Q front_len:Q incompat:Q
    application:16s parent:16s reserved_112:140s crc:I""")
SLOT = Layout("slot", """magic:8s generation:Q time:q committed_end:Q root:24s level:B place:B
    state:H reserved_60:4s record:16s horizon:Q live_payload_bytes:Q live_index_bytes:Q next_id:Q
    incompat:Q ro_compat:Q compat:Q major:H minor:H writer_version:I writer_id:16s reserved_160:88s
    header_crc:I crc:I""")
COMMIT = Layout("commit record", """magic:4s length:I generation:Q previous:16s root:24s level:B
    reserved_57:7s time:q uuid:16s changed:Q message_len:H""")
NODE = Layout("node", """magic:4s kind:B level:B flags:H n:H prefix_len:H suffix_len:H value_len:H
    birth:Q length:I crc:I""")
REFERENCE = Layout("node reference", "offset:Q length:I crc:I count:Q")
EXTENT = Layout("extent", "offset:Q length:I crc:I")
CHUNK = Layout("chunk record", "place:16s kind:B mask:B flags:H")
BLOB = Layout("blob", "form:B content:B")
BLOB_EXTENT = Layout("blob", "offset:Q length:I raw_length:I crc:I")
SNAPSHOT = Layout("snapshot record", "root:24s level:B label_len:B ext_len:H flags:I time:q")
HISTORY = Layout("history record", "time:q changed:Q flags:H message_len:H")


# ----------------------------------------------------------------------------------------- opening

def read_header(raw):
    need("file", "not_container", magic=raw and raw[:8] == MAGIC[:len(raw)])
    h = HEADER.read(raw)
    need("header", crc=h.crc == crc32c(raw[:252]))
    fixed = (h.header_len, h.block_log2, h.slot_count, h.slot_stride, h.slot0_offset, h.data_start)
    need("header", "unsupported", major=h.major == 0, incompat=h.incompat == 0,
         layout=fixed == (256, 12, 2, 4096, 4096, DATA_START))
    need("header", reserved=not any(h.reserved_42 + h.reserved_112))
    return h


def read_slot(raw, index, header_crc):
    """One slot, or None where its own CRC is wrong (R-3.1)."""
    s, what = SLOT.read(raw), f"slot {'AB'[index]}"
    if s.crc != crc32c(raw[:252]):
        return None
    need(what, magic=s.magic == b"ORTSLOT1", header=s.header_crc == header_crc)
    need(what, "unsupported", major=s.major == 0, incompat=s.incompat == 0)
    reserved = s.reserved_60 + (b"" if s.ro_compat | s.compat else s.reserved_160)
    need(what, generation=1 <= s.generation < 1 << 61, place=s.generation % 2 == s.place == index,
         horizon=s.horizon < s.generation, level=s.level <= 12, state=s.state < 4,
         reserved=not any(reserved), committed_end=s.committed_end >= DATA_START)
    check_extent(REFERENCE.read(s.root), s.committed_end, f"root of {what}")
    check_extent(EXTENT.read(s.record), s.committed_end, f"record of {what}", range(102, 1127))
    return s


def check_extent(e, committed_end, what, lengths=range(1, 1 << 63)):
    """R-1.1."""
    need(what, length=e.length in lengths, multiple_of_8=e.offset % 8 == 0,
         in_bounds=DATA_START <= e.offset <= committed_end - e.length)


class Container:
    """An opened file: `header`, `slot` (the newest), `other` (None if invalid), `view`."""

    def __init__(self, path):
        self.file = open(path, "rb", buffering=0, opener=open_without_blocking)
        info = os.fstat(self.file.fileno())
        need("file", "io", regular=stat.S_ISREG(info.st_mode))
        self.size, self.header = info.st_size, read_header(self.bytes_at(0, 256))
        need("file", room_for_two_slots=self.size >= DATA_START)
        slots = sorted(filter(None, self.settled_slots()), key=lambda slot: slot.generation)
        need("slots", one_valid=slots)
        need("slots", successive=slots[-1].generation - slots[0].generation == len(slots) - 1)
        self.slot, self.other = slots[-1], slots[0] if len(slots) == 2 else None
        need("file", committed_end=self.slot.committed_end <= self.size)
        self.check_record(self.slot)
        self.view = View(self, self.slot, self.slot.generation)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """R-12.13: what was read without a pin counts while no newer slot gives its space away."""
        horizon = max((slot.horizon for slot in self.settled_slots() if slot), default=0)
        self.file.close()
        need("snapshot", "snapshot_expired", whole=horizon <= self.slot.generation)

    def bytes_at(self, offset, length):
        return os.pread(self.file.fileno(), length, offset)

    def settled_slots(self):
        """R-9.17, as a reader that cannot query locks: 10 ms without change, at most 1 s."""
        started, changed, before = time.monotonic(), math.inf, None
        while True:
            raw, now = self.bytes_at(4096, 8192), time.monotonic()
            slots = [read_slot(raw[4096 * i:], i, self.header.crc) for i in (0, 1)]
            changed = changed if raw == before else now
            if all(slots) or now - changed >= 0.01:
                return slots
            need("slots", "busy", settled=now < started + 1)
            before = raw
            time.sleep(0.002)

    def read(self, e, what, is_summed=True):
        """The bytes of an extent; whoever asks without the sum judges a sum of its own."""
        check_extent(e, self.slot.committed_end, what)
        need(what, "limit_exceeded", size=e.length <= HELD_MAX)
        raw = self.bytes_at(e.offset, e.length)
        need(what, in_file=len(raw) == e.length, crc=not is_summed or zlib.crc32(raw) == e.crc)
        return raw

    def check_record(self, slot):
        """R-9.2: the commit record repeats its slot."""
        e, what = EXTENT.read(slot.record), "commit record"
        raw = self.read(e, what, is_summed=False)
        r, crc, sum_at = COMMIT.read(raw), crc32c(raw[:-4]), len(raw) - 4
        copies = [(s.generation, s.root, s.level, s.time) for s in (r, slot)]
        need(what, crc=e.crc == crc == int.from_bytes(raw[sum_at:], "little"),
             magic=r.magic == b"ORTC", length=r.length == len(raw) == 102 + r.message_len,
             copy=copies[0] == copies[1], uuid=r.uuid == self.header.uuid,
             reserved=not any(r.reserved_57), previous=any(r.previous[:8]) or not any(r.previous))
        Cursor(raw[COMMIT.size:], what).text(r.message_len)


def open_without_blocking(path, flags):
    return os.open(path, flags | os.O_NONBLOCK)


# ---------------------------------------------------------------------------------------- the tree

class View:
    """Everything below one root, which a slot or snapshot names. `objects` by path."""

    def __init__(self, container, at, generation):
        self.container, self.generation, self.objects = container, generation, {}
        # Tag -> object id or generation -> rest of the key -> value (05).
        self.entries = {tag: {} for tag in (0x01, 0x02, 0x03, 0x08, 0x10, 0x11)}
        for key, value in self.walk(REFERENCE.read(at.root), at.level, generation, b"", None, True):
            k = Cursor(key[1:], f"key {key.hex()}")
            if key[0] in self.entries:
                of_id = self.entries[key[0]].setdefault(k.id(), {})
                need(k.what, ends=key[0] in (0x01, 0x03, 0x08) or k.at == len(k.data))
                of_id[k.rest()] = value
        todo, ids = [("", 0, 1)], [0]
        while todo:
            path, at, kind = todo.pop()
            children = list(self.children(at))
            need(path, group=kind == 1 or not children)
            self.objects[path or "/"] = Object(self, at, kind)
            todo += [(f"{path}/{name}", child, kind) for name, child, kind in children]
            ids += [child for _, child, _ in children]
            need("directory", one_entry_each=len(set(ids)) == len(ids))
        need("directory", no_orphan=set(ids) == set(self.entries[0x02]))

    def walk(self, ref, level, birth_max, lo, hi, is_root=False):
        """R-4.10: the entries below a node, each node judged before it is used."""
        what = f"node at {ref.offset}"
        need(what, reference_length=33 <= ref.length <= 65536)
        raw = self.container.read(ref, what, is_summed=False)
        node, crc = NODE.read(raw), crc32c(raw[:28] + raw[32:])
        need(what, magic=node.magic == b"ORTN", flags=node.flags <= 1, level=node.level == level,
             kind=node.kind == (2 if level else 1), length=node.length == ref.length,
             crc=node.crc == ref.crc == crc, birth=1 <= node.birth <= birth_max,
             entries=node.n >= (2 if is_root and level else 1))
        keys, values = zip(*node_cells(node, Cursor(raw[NODE.size:], what)))
        need(what, ascending=all(a < b for a, b in zip(keys, keys[1:])),
             prefix=node.prefix_len == len(os.path.commonprefix([keys[0], keys[-1]])),
             uniform=node.flags == (len(set(map(len, keys))) == len(set(map(len, values))) == 1),
             lengths=max(map(len, keys)) <= 512 and max(map(len, values)) <= 2048,
             bounds=lo <= keys[0] and (hi is None or keys[-1] < hi),
             values=all(len(value) == REFERENCE.size for value in values) if level else keys[0])
        if level == 0:
            yield from zip(keys, values)
            return
        for value, lower, upper in zip(values, keys, keys[1:] + (hi,)):
            yield from self.walk(REFERENCE.read(value), level - 1, node.birth, lower, upper)

    def children(self, parent):
        """(name, id, kind) of each directory entry of a group."""
        for name, value in self.entries[0x01].get(parent, {}).items():
            v = Cursor(value, "directory entry")
            name, child, kind = name_text(name, v.what), v.id(), v.number(1)
            v.end()
            need(v.what, name=name not in (".", "..") and not re.search(NOT_IN_CHILD_NAME, name),
                 child=child >= 1, kind=kind in (1, 2))
            yield name, child, kind

    def snapshots(self):
        """What is listed of each; `record` where this reader knows the flags."""
        for generation, values in self.entries[0x10].items():
            s = SNAPSHOT.read(values[b""])
            v = Cursor(values[b""][SNAPSHOT.size:], "snapshot record")
            shown = {"generation": generation, "time": s.time,
                     "label": name_text(v.take(s.label_len), v.what)}
            v.take(s.ext_len)
            v.end()
            need(v.what, generation=1 <= generation < self.generation, level=s.level <= 12,
                 ext_len=s.ext_len <= 1024)
            known = {"referenced": s.flags == 1, "record": s}
            yield {**shown, **({"error": "unsupported"} if s.flags > 1 else known)}

    def history(self):
        for generation, values in self.entries[0x11].items():
            h = HISTORY.read(values[b""])
            v = Cursor(values[b""][HISTORY.size:], "history record")
            need(v.what, generation=generation <= self.generation, flags=h.flags <= 1,
                 message_len=h.message_len <= 1024)
            yield {"generation": generation, "time": h.time, "changed": h.changed,
                   "restore": h.flags == 1, "message": v.text(h.message_len)}
            v.end()

    def blob(self, value):
        """07: (content, bytes)."""
        b, rest = BLOB.read(value), value[BLOB.size:]
        need("blob", "unsupported", form=b.form in (0, 2), content=b.content <= 2)
        if b.form == 0:
            need("blob", inline_length=len(rest) <= 1024)
            return b.content, rest
        e = BLOB_EXTENT.read(rest)
        need("blob", length=1024 < e.length == e.raw_length <= 4 << 20,
             no_bytes_behind=len(rest) == BLOB_EXTENT.size)
        return b.content, self.container.read(e, "blob")


def node_cells(node, c):
    """The keys and values of a node, from its prefix on (04)."""
    prefix, cells = c.take(node.prefix_len), []
    if node.flags:
        suffixes = [c.take(node.suffix_len) for _ in range(node.n)]
        cells = [(prefix + suffix, c.take(node.value_len)) for suffix in suffixes]
    else:
        need(c.what, zero_lengths=node.suffix_len == node.value_len == 0)
        for offset in [c.number(2) for _ in range(node.n)]:
            need(c.what, cell_offset=offset == NODE.size + c.at)
            suffix_len, value_len = c.number(2), c.number(2)
            cells.append((prefix + c.take(suffix_len), c.take(value_len)))
    c.end()
    return cells


def chunk_record(value):
    """06: the record as it is listed, with `place`: an extent, or the element of a constant."""
    r, what = CHUNK.read(value), "chunk record"
    need(what, "unsupported", kind=r.kind in KINDS, flags=r.flags == 0)
    need(what, length=len(value) == (28 if r.kind == 4 else 20))
    e = EXTENT.read(r.place)
    if r.kind in (2, 3):
        need(what, reserved=r.mask == 0 and (r.kind == 2 or not any(r.place)))
    if r.kind == 4:
        need(what, reserved=e.length == 0, length=not value[27] >> 7 and any(value[24:]))
        e = e._replace(length=int.from_bytes(value[20:], "little"))
    place = e if r.kind in (0, 4) else r.place
    return {"kind": KINDS[r.kind], "mask": r.mask, "place": place}


def caught(read, *arguments):
    """A fault in a value is of that value alone (R-4.11)."""
    try:
        return read(*arguments)
    except FormatError as e:
        return {"error": e.kind, "text": e.text}


def name_text(raw, what):
    name = Cursor(raw, what).text(len(raw))
    need(what, name_length=1 <= len(raw) <= 255, name_without_nul="\0" not in name,
         name_nfc=unicodedata.normalize("NFC", name) == name)
    return name


# ----------------------------------------------------------------------------------------- objects

class Object:
    """One group or array of a view. `error` says what makes it unreadable, if anything does."""

    def __init__(self, view, at, kind):
        self.view, self.id, self.kind = view, at, ("group", "array")[kind - 1]
        self.document, self.error, what = None, None, f"document of object {at}"
        try:
            content, raw = view.blob(view.entries[0x02].get(at, {}).get(b"", b""))
            need(what, json=content == 0)
            self.document = d = parse_json(raw, what)
            with reading(what):
                need(what, type=(d["zarr_format"], d["node_type"]) == (3, self.kind))
                own = d.get("orthant", {"must_understand": False})
                need("orthant", "unsupported", members=set(own) <= OWN_MEMBERS,
                     optional=own["must_understand"] is False, requires=not own.get("requires"))
                if kind == 2:
                    self.read_array(d, own)
        except FormatError as e:
            self.error = e

    def read_array(self, d, own):
        """10 and 11."""
        rank, key_order, self.domain = len(d["shape"]), own["key_order"], own["domain"]
        need("rank", "limit_exceeded", at_most_32=rank <= 32)
        grid, conf = named(d["chunk_grid"])
        need("chunk_grid", "unsupported", regular=grid == "regular")
        self.origin, self.chunk_shape = own["origin"], conf["chunk_shape"]
        per_axis = self.domain, self.origin, self.chunk_shape, d.get("dimension_names", key_order)
        need("array", ranks=all(len(values) == rank for values in per_axis),
             domain=all(lo in INDEX and lo <= hi <= INDEX.stop for lo, hi in self.domain),
             origin=all(first in INDEX for first in self.origin),
             chunk_shape=all(1 <= n < 1 << 32 for n in self.chunk_shape),
             key_order=sorted(key_order) == list(range(rank)),
             chunk_key_encoding=d["chunk_key_encoding"] == KEY_ENCODING)
        self.axes = [key_order.index(axis) for axis in range(rank)]
        self.shape = [hi - lo for lo, hi in self.domain]
        need("array", shape=d["shape"] == self.shape)
        self.dtype = DataType(d["data_type"])
        self.fill = self.dtype.from_json(d["fill_value"])
        self.pipeline = Pipeline(d["codecs"], self.dtype, self.chunk_shape, self.fill)

    def attributes(self):
        found = self.view.entries[0x03].get(self.id, {})
        return {name_text(name, "attribute name"): caught(self.attribute, value)
                for name, value in found.items()}

    def attribute(self, value):
        with reading("attribute"):
            return attribute_value(*self.view.blob(value))

    def chunks(self):
        """(coordinate per axis, record) in key order."""
        for key, value in self.view.entries[0x08].get(self.id, {}).items():
            k = Cursor(key, "chunk key")
            coordinates = [k.vint() for _ in self.axes]
            k.end()
            yield [coordinates[place] for place in self.axes], caught(chunk_record, value)

    def decode(self, record):
        """The elements of a whole chunk."""
        if "error" in record:
            raise FormatError(record["error"], record["text"])
        place, size = record["place"], self.dtype.size
        if record["kind"] == "fill":
            return self.dtype.filled(self.chunk_shape, self.fill)
        if record["kind"] == "constant":
            need("constant", size=size and size <= 16, padding=not any(place[size:]))
            self.dtype.to_json(place[:size])
            return self.dtype.filled(self.chunk_shape, place[:size])
        payload = self.view.container.read(place, "payload")
        return self.pipeline.decode(payload, record["mask"])

    def elements(self):
        """The elements of the domain in C order, each as its bytes."""
        if self.error:
            raise self.error
        with reading(f"values of object {self.id}"):
            out = self.dtype.filled(self.shape, self.fill)
            for coordinate, record in self.chunks():
                starts = [o + c * n for o, c, n in zip(self.origin, coordinate, self.chunk_shape)]
                box = [(start, max(start, lo), min(start + n, hi), lo)
                       for start, n, (lo, hi) in zip(starts, self.chunk_shape, self.domain)]
                if all(a < b for _, a, b, _ in box):            # others are ignored by reads
                    inside = tuple(slice(a - start, b - start) for start, a, b, _ in box)
                    place = tuple(slice(a - lo, b - lo) for _, a, b, lo in box)
                    out[place] = self.decode(record)[inside]
            return out.ravel().tolist()

    def listing(self, with_values):
        """In the schema of vectors/README.md."""
        out = {"kind": self.kind, "id": self.id, "document": self.document,
               "attributes": self.attributes()}
        if self.error:
            return {**out, "error": self.error.kind, "text": self.error.text}
        if self.kind == "group":
            return out
        chunks = [self.shown(*chunk) for chunk in self.chunks()]
        out.update(dtype=self.document["data_type"], domain=self.domain, chunks=chunks)
        return {**out, **(caught(self.values) if with_values else {})}

    def shown(self, coordinate, record):
        place = record.pop("place", None)
        shown = {"coord": coordinate, **record}
        if isinstance(place, EXTENT.fields):
            return {**shown, "offset": place.offset, "stored_bytes": place.length}
        if record.get("kind") == "constant" and self.dtype.size:
            shown["value"] = self.dtype.to_json(place[:self.dtype.size])
        return shown

    def values(self):
        elements = self.elements()
        if len(elements) <= VALUES_MAX:
            return {"values": [self.dtype.to_json(element) for element in elements]}
        digest = hashlib.sha256()
        for e in elements:
            digest.update(e if self.dtype.size else len(e).to_bytes(4, "little") + e)
        return {"sha256": digest.hexdigest()}


# ----------------------------------------------------------------------------------------- command

def listing(path, with_values=True):
    """Everything this reader finds, in the schema of vectors/README.md."""
    with Container(path) as c:
        snapshots, s, other = list(c.view.snapshots()), c.slot, {"state": "invalid"}
        for shown in snapshots:
            at, generation = shown.pop("record", None), shown["generation"]
            if at and with_values:
                shown.update(caught(lambda: objects_of(View(c, at, generation), True)))
        if c.other:
            other = {"state": "valid", "generation": c.other.generation}
        return {"schema": "orthant/vector/1", "file_bytes": c.size,
                **shown_fields(c.header), **shown_fields(s),
                "application": c.header.application.rstrip(b"\0").decode("utf-8", "replace"),
                "compact": bool(s.state & 1), "unconfirmed": bool(s.state & 2),
                "ignored_tail_bytes": c.size - s.committed_end, "other_slot": other,
                "history": list(c.view.history()), "snapshots": snapshots,
                **objects_of(c.view, with_values)}


def objects_of(view, with_values):
    paths = sorted(view.objects)
    return {"objects": {path: view.objects[path].listing(with_values) for path in paths}}


def shown_fields(fields):
    return {name: value.hex() if isinstance(value, bytes) else value
            for name, value in fields._asdict().items() if not name.startswith("reserved")}


def values_of(path, name):
    with Container(path) as c:
        found = c.view.objects.get("/" + name.strip("/"))
        need(name, "not_found", array=found and found.kind == "array")
        return [found.dtype.to_json(element) for element in found.elements()]


def differences(expected, found, at=""):
    """What `expected` states and `found` does not agree with (vectors/README.md, "Schema")."""
    if isinstance(expected, dict) and isinstance(found, dict):
        is_whole = ".document" in at or at.endswith((".objects", ".attributes"))
        for name in (expected.keys() | (found.keys() if is_whole else ())) - NOT_JUDGED:
            if name not in expected or name not in found:
                yield f"{at}.{name}: {'not expected' if name in found else 'missing'}"
            else:
                yield from differences(expected[name], found[name], f"{at}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, pair in enumerate(zip(expected, found)):
            yield from differences(*pair, f"{at}[{i}]")
    elif json.dumps(expected) != json.dumps(found):             # 1 is not 1.0, 0.0 is not -0.0
        yield f"{at}: expected {json.dumps(expected):.200}, found {json.dumps(found):.200}"


def check_vectors(folder):
    """Compares every golden file with what is expected of it; gives the exit status."""
    paths, failed = sorted(Path(folder).glob("*.orth")), 0
    for path in paths:
        expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
        problems = list(differences(expected, caught(listing, path)))
        failed += bool(problems)
        print("\n        ".join([f"{'FAILED' if problems else 'ok':8}{path.name}", *problems[:10]]))
    print(f"{len(paths) - failed} ok, {failed} failed")
    return 1 if failed or not paths else 0


def main():
    parser = argparse.ArgumentParser(description="A second reader of the orthant format.")
    parser.add_argument("file", nargs="?", help="a container")
    parser.add_argument("--array", metavar="PATH", help="print this array's values")
    parser.add_argument("--values", action="store_true", help="list values and snapshots' objects")
    parser.add_argument("--check-vectors", metavar="DIR", help="compare every golden file in DIR")
    options = parser.parse_args()
    if options.check_vectors:
        return check_vectors(options.check_vectors)
    if not options.file:
        parser.error("a FILE or --check-vectors DIR is needed")
    try:
        found = (values_of(options.file, options.array) if options.array
                 else listing(options.file, options.values))
        print(json.dumps(found, indent=None if options.array else 1, ensure_ascii=False))
        return 0
    except (FormatError, OSError) as e:
        print(e, file=sys.stderr)
        return 2 if getattr(e, "kind", "") == "not_found" else 4


if __name__ == "__main__":
    sys.exit(main())
