"""Pipelines and shards, for `reader.py`. Mirrors the second half of 10-documents.md.

Holds what turns a payload into elements. Knows nothing of files, slots, nodes or keys. Needs numcodecs for zstd and LZ4
only. Public domain (CC0 1.0).
"""

import itertools
import math
import re
import struct
import zlib

from documents import Cursor, DataType, FormatError, crc32c, integers, named, need, ordered

U64 = (1 << 64) - 1
DECODED_MAX = 1 << 31
ELEMENTS_MAX = 1 << 24                            # this reader's own cap on elements held at once


def decode_shuffle(data, conf, _want):
    size = conf["elementsize"]
    n = len(data) // size
    whole = bytearray(n * size)
    for j in range(size):
        whole[j::size] = data[j * n:(j + 1) * n]
    return bytes(whole) + data[n * size:]


def zstd_content_size(data):
    """The content size, or None, of the one frame that `data` must be (R-10.25)."""
    c = Cursor(data, "zstd")
    need(c.u32() == 0xFD2FB528, "zstd: not a frame")
    head = c.u8()
    single, checksum = head >> 5 & 1, head >> 2 & 1
    need(not head & 8, "zstd: reserved bit")
    if not single:
        window = c.u8()
        base = 1 << (10 + (window >> 3))
        need(base + base // 8 * (window & 7) <= 1 << 27, "zstd: window", "limit_exceeded")
    need(c.number((0, 1, 2, 4)[head & 3]) == 0, "zstd: dictionary")
    width = (single, 2, 4, 8)[head >> 6]
    size = c.number(width) + (256 if width == 2 else 0) if width else None
    last = False
    while not last:
        block = c.number(3)
        last, kind = block & 1, block >> 1 & 3
        need(kind != 3, "zstd: reserved block type")
        c.take(1 if kind == 1 else block >> 3)
    c.take(4 * checksum)
    c.end()
    return size


def decode_zstd(data, _conf, want):
    import numcodecs
    size = zstd_content_size(data)
    need(size is None or size <= (DECODED_MAX if want is None else want), f"zstd: content size {size}, wanted {want}")
    return b"" if size == 0 else bytes(numcodecs.Zstd().decode(data))


def decode_lz4(data, _conf, want):
    size = Cursor(data, "lz4").u32()
    need(size <= DECODED_MAX, "lz4: size", "limit_exceeded")
    need(want in (None, size), f"lz4: decoded size {size}, wanted {want}")
    import numcodecs
    return bytes(numcodecs.LZ4().decode(data))


def decode_deflate(wbits):
    def decode(data, _conf, want):
        limit = DECODED_MAX if want is None else want
        stream = zlib.decompressobj(wbits)
        out = stream.decompress(data, limit + 1)
        need(stream.eof and not stream.unused_data and len(out) <= limit, "deflate: cut, too long, or bytes after it")
        return out
    return decode


def decode_crc32c(data, _conf, _want):
    need(len(data) >= 4 and crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), "crc32c codec: mismatch")
    return data[:-4]


def decode_fletcher32(data, _conf, _want):
    need(len(data) >= 4, "fletcher32: short")
    body, a, b = data[:-4], 0, 0
    for (word,) in struct.iter_unpack(">H", body + b"\0" * (len(body) & 1)):
        a += word
        b += a
    a, b = (x and (x - 1) % 65535 + 1 for x in (a, b))
    need(b << 16 | a == int.from_bytes(data[-4:], "little"), "fletcher32: mismatch")
    return body


ANY = (-(1 << 31), (1 << 31) - 1)
# name -> decoder, {integer parameter: (lo, hi, mandatory)}, bytes added when encoding (None: unknown)
BYTES_CODECS = {
    "numcodecs.shuffle": (decode_shuffle, {"elementsize": (1, ANY[1], False)}, 0),
    "zstd": (decode_zstd, {"level": (-131072, 22, False), "checksum": None}, None),
    "numcodecs.lz4": (decode_lz4, {"acceleration": (*ANY, False)}, None),
    "numcodecs.zlib": (decode_deflate(15), {"level": (-1, 9, False)}, None),
    "gzip": (decode_deflate(31), {"level": (0, 9, False)}, None),
    "crc32c": (decode_crc32c, {}, 4),
    "numcodecs.fletcher32": (decode_fletcher32, {}, 4),
}


CODEC_MEMBERS = ("order", "dtype", "astype", "endian", "elementsize", "level", "checksum", "acceleration",
                 "chunk_shape", "codecs", "index_codecs", "index_location")


class Pipeline:
    """10, "Pipelines": turns a payload into a list of elements in C order."""

    def __init__(self, specs, dtype, shape, fill, depth=0):
        need(isinstance(specs, list) and 1 <= len(specs) <= 8, "codecs: not 1..=8 of them")
        need(depth <= 4, "shards nested too deep", "unsupported")
        self.dtype, self.shape, self.fill = dtype, list(shape), fill
        self.orderless = dtype.size == 1 or dtype.name in ("raw_bytes", "structured")
        self.count = math.prod(shape)
        need(self.count * (dtype.size or 1) <= DECODED_MAX, "chunk too large", "limit_exceeded")
        self.steps, stage, inner = [], 0, self.shape          # stage: 0 array codecs, 1 after the array-to-bytes codec
        for spec in specs:
            name, conf = named(spec, "codec")
            need(isinstance(spec, dict), "codec is no object")
            if name in ("transpose", "numcodecs.delta"):
                need(stage == 0, f"codec {name} after the array-to-bytes codec")
                inner = self._array_codec(name, conf, inner)
            elif name in ("bytes", "vlen-utf8", "vlen-bytes", "sharding_indexed"):
                need(stage == 0, "two array-to-bytes codecs")
                self._bytes_codec(name, conf, inner, depth)
                stage = 1
            elif name in BYTES_CODECS:
                need(stage == 1, f"codec {name} before the array-to-bytes codec")
                self._parameters(name, conf, BYTES_CODECS[name][1])
                if name == "numcodecs.shuffle":
                    need(dtype.size or conf, "shuffle: no elementsize")
                    conf = {"elementsize": dtype.size, **conf}
                self.steps.append((name, conf))
            else:
                raise FormatError("unsupported", f"codec {name}")
        need(stage == 1, "no array-to-bytes codec")

    @staticmethod
    def _parameters(name, conf, rules):
        need(set(conf) <= set(rules), f"codec {name}: unknown parameter", "unsupported")
        for parameter, rule in rules.items():
            if rule is None:
                need(type(conf.get(parameter, False)) is bool, f"codec {name}: {parameter}")
            elif rule[2] or parameter in conf:
                integers([conf.get(parameter)], f"codec {name}: {parameter}", rule[0], rule[1])

    def _array_codec(self, name, conf, shape):
        if name == "transpose":
            self._parameters(name, {k: v for k, v in conf.items() if k != "order"}, {})
            order = integers(conf.get("order"), "transpose order", 0, 31)
            need(sorted(order) == list(range(len(shape))), f"transpose order {order}")
            self.steps.append((name, (order, shape)))
            return [shape[i] for i in order]
        self._parameters(name, {k: v for k, v in conf.items() if k not in ("dtype", "astype")}, {})
        need(self.dtype.integer, "delta on a type that is no integer")
        sign = r"[<>|=]?" if self.dtype.size == 1 else r"[<=]?"
        numpy = sign + ("i" if self.dtype.signed else "u") + str(self.dtype.size)
        for value in (conf.get("dtype"), *conf.values()):
            need(isinstance(value, str) and re.fullmatch(numpy + "|" + self.dtype.name, value), f"delta dtype {value}")
        self.steps.append((name, conf))
        return shape

    def _bytes_codec(self, name, conf, shape, depth):
        if name == "sharding_indexed":
            conf = Shard(conf, self.dtype, shape, self.fill, depth)
        elif name == "bytes":
            need(self.dtype.size is not None, "codec bytes on a type of variable length")
            self._parameters(name, {k: v for k, v in conf.items() if k != "endian"}, {})
            need(conf.get("endian") in (("little",) if self.dtype.fields else ("little", "big"))
                 or (self.orderless and "endian" not in conf), "codec bytes: endian")
        else:
            need((name, self.dtype.name) in (("vlen-utf8", "string"), ("vlen-bytes", "bytes")), f"{name}: data type")
            self._parameters(name, conf, {})
        self.steps.append((name, conf))

    def ordered(self, specs):
        """The specs with their members as R-10.2 and the table of codecs want them."""
        out = []
        for spec, (name, own) in zip(specs, self.steps):
            conf = ordered(spec.get("configuration", {}), CODEC_MEMBERS)
            if name == "sharding_indexed":
                conf["codecs"] = own.pipeline.ordered(conf["codecs"])
                conf["index_codecs"] = own.index.ordered(conf["index_codecs"])
            if name == "bytes" and self.orderless:
                conf.pop("endian", None)
            given = {"configuration": conf} if conf or name == "numcodecs.fletcher32" else {}
            out.append({"name": name, **given})
        return out

    def index_of_bytes_codec(self):
        return next(i for i, (name, _) in enumerate(self.steps) if name not in ("transpose", "numcodecs.delta"))

    def decode(self, payload, mask=0):
        middle = self.index_of_bytes_codec()
        need(mask < 1 << len(self.steps) and not mask >> middle & 1, f"filter mask {mask:#x}")
        steps = [(i, s) for i, s in enumerate(self.steps) if not mask >> i & 1]
        wants, size = {}, self.count * self.dtype.size if self.steps[middle][0] == "bytes" else None
        for i, (name, _) in steps:
            if i > middle:
                wants[i] = size
                added = BYTES_CODECS[name][2]
                size = size + added if None not in (size, added) else None
        for i, (name, conf) in reversed([s for s in steps if s[0] > middle]):
            try:
                payload = BYTES_CODECS[name][0](payload, conf, wants[i])
            except (RuntimeError, ValueError, zlib.error) as e:
                raise FormatError("corrupt", f"{name}: {e}") from None
            need(wants[i] in (None, len(payload)), f"{name}: {len(payload)} bytes, wanted {wants[i]}")
        cells = self._cells(*self.steps[middle], payload)
        for i, (name, conf) in reversed([s for s in steps if s[0] < middle]):
            cells = untranspose(cells, *conf) if name == "transpose" else self._undelta(cells)
        for cell in cells if self.dtype.name in ("bool", "string", "structured") else ():
            self.dtype.to_json(cell)
        return cells

    def _cells(self, name, conf, payload):
        if name == "sharding_indexed":
            return conf.decode(payload)
        if name == "bytes":
            size = self.dtype.size
            need(len(payload) == self.count * size, f"payload of {len(payload)} bytes for {self.count} elements")
            cells = [payload[i:i + size] for i in range(0, len(payload), size)]
            return [self.dtype.swapped(c) for c in cells] if conf.get("endian") == "big" else cells
        c = Cursor(payload, name)
        need(c.u32() == self.count, f"{name}: count")
        cells = [c.take(c.u32()) for _ in range(self.count)]
        c.end()
        return cells

    def _undelta(self, cells):
        size, total, out = self.dtype.size, 0, []
        for cell in cells:
            total = (total + int.from_bytes(cell, "little")) & ((1 << size * 8) - 1)
            out.append(total.to_bytes(size, "little"))
        return out


def untranspose(cells, order, shape):
    """The input of a transpose from its output; `shape` is the input's."""
    stored = [shape[i] for i in order]
    strides = [math.prod(stored[i + 1:]) for i in range(len(stored))]
    by_axis = [strides[order.index(a)] for a in range(len(shape))]
    return [cells[sum(x * s for x, s in zip(at, by_axis))] for at in itertools.product(*map(range, shape))]


def copy_box(src, src_shape, src_at, dst, dst_shape, dst_at, box):
    """Copies a box of `box` elements between C-order lists, row by row."""
    *outer, row = box or [1]
    for at in itertools.product(*map(range, outer)):
        at = list(at) + [0] * bool(box)
        s = d = 0
        for i, x in enumerate(at):
            s, d = s * src_shape[i] + src_at[i] + x, d * dst_shape[i] + dst_at[i] + x
        dst[d:d + row] = src[s:s + row]


class Shard:
    """10, "Shards"."""

    def __init__(self, conf, dtype, shape, fill, depth):
        known = {"chunk_shape", "codecs", "index_codecs", "index_location"}
        need(set(conf) <= known, "sharding_indexed: unknown parameter", "unsupported")
        self.shape, self.fill = shape, fill
        self.inner = integers(conf.get("chunk_shape"), "inner chunk_shape", 1, (1 << 32) - 1, len(shape))
        need(all(n % c == 0 for n, c in zip(shape, self.inner)), "inner chunks do not divide the shard")
        self.grid = [n // c for n, c in zip(shape, self.inner)]
        need(math.prod(self.grid) <= 1 << 24, "inner chunks", "limit_exceeded")
        self.pipeline = Pipeline(conf.get("codecs"), dtype, self.inner, fill, depth + 1)
        self.location = conf.get("index_location", "end")
        need(self.location in ("start", "end"), f"index_location {self.location}")
        index = Pipeline(conf.get("index_codecs"), DataType("uint64"), self.grid + [2], None)
        names = [name for name, _ in index.steps]
        need(names in (["bytes"], ["bytes", "crc32c"]), f"index_codecs {names}")
        self.index, self.index_len = index, 16 * math.prod(self.grid) + 4 * (len(names) - 1)

    def decode(self, shard):
        need(len(shard) >= self.index_len, "shard shorter than its index")
        end = len(shard) - self.index_len
        lo, hi = (0, end) if self.location == "end" else (self.index_len, len(shard))
        numbers = self.index.decode(shard[end:] if self.location == "end" else shard[:lo])
        cells = [self.fill] * math.prod(self.shape)
        taken = []
        for k, at in enumerate(itertools.product(*map(range, self.grid))):
            offset, length = (int.from_bytes(n, "little") for n in numbers[2 * k:2 * k + 2])
            if (offset, length) == (U64, U64):
                continue
            need(length >= 1 and lo <= offset and offset + length <= hi, f"inner chunk {at} at {offset}+{length}")
            taken.append((offset, offset + length))
            inner = self.pipeline.decode(shard[offset:offset + length])
            start = [a * c for a, c in zip(at, self.inner)]
            copy_box(inner, self.inner, [0] * len(at), cells, self.shape, start, self.inner)
        taken.sort()
        need(all(a[1] <= b[0] for a, b in zip(taken, taken[1:])), "inner chunks overlap")
        return cells
