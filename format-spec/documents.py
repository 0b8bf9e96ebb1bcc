"""Bytes, JSON, data types, attributes, pipelines and shards, for `reader.py`: 05, 07 and 10.

Holds what turns bytes and JSON into values. Knows nothing of files, slots or nodes. An element is
its little-endian bytes; an array of elements is a numpy array of dtype `V4` (4 being the size), or
`object` for text and bytes. Needs numcodecs for zstd and LZ4, and with it numpy. CC0 1.0.

Documents are used, not proven: what Python cannot use as the text says becomes an error, while
rules that only bind writers (spelling, unique field names, limits) are left to the library.
"""

import base64
import contextlib
import itertools
import json
import math
import re
import struct
import zlib
from collections import namedtuple

import numcodecs
import numpy

HELD_MAX = 1 << 28                  # this reader's own cap on bytes, or elements, held at once
I64_MIN, ABSENT = -1 << 63, (1 << 64) - 1


class FormatError(Exception):
    """The one error; `kind` is one of README.md: `corrupt`, `unsupported`, `limit_exceeded`..."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


def need(what, kind="corrupt", /, **rules):
    """Every rule must hold; the name of the first that does not says what is wrong."""
    for rule, holds in rules.items():
        if not holds:
            raise FormatError(kind, f"{what}: {rule.replace('_', ' ')}")


@contextlib.contextmanager
def reading(what):
    """Whatever text, numbers, streams or missing members make Python raise is `corrupt`."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
            struct.error, zlib.error) as e:
        raise FormatError("corrupt", f"{what}: {type(e).__name__}: {e}") from e


CRC_TABLE = list(range(256))
for _ in range(8):
    CRC_TABLE = [(n >> 1) ^ (0x82F63B78 if n & 1 else 0) for n in CRC_TABLE]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Cursor:
    """Takes parts off the front of some bytes; running short is an error, and so is a rest."""

    def __init__(self, data, what):
        self.data, self.at, self.what = data, 0, what

    def take(self, n):
        need(self.what, enough_bytes=n <= len(self.data) - self.at)
        self.at += n
        return self.data[self.at - n:self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        need(self.what, no_bytes_behind=self.at == len(self.data))

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def text(self, n):
        with reading(self.what):
            return self.take(n).decode("utf-8")

    def vint(self):
        """05: a signed number whose bytes order as it does."""
        first = self.number(1)
        if 0x08 <= first <= 0xF7:
            return first - 128
        n, flip = (first - 0xF7, 0) if first > 0xF7 else (8 - first, 255)
        m = int.from_bytes(bytes(b ^ flip for b in self.take(n)), "big")
        need(self.what, shortest_varint=n == max(1, (m.bit_length() + 7) // 8),
             varint_in_range=m <= (1 << 63) - 121)
        return -121 - m if flip else 120 + m

    def id(self):
        value = self.vint()
        need(self.what, id_in_range=0 <= value < 1 << 61)
        return value


def parse_json(raw, what):
    """R-7.4: strict JSON, names unique, no lone surrogates, no infinite numbers."""
    def members(pairs):
        need(what, unique_names=len(dict(pairs)) == len(pairs))
        return dict(pairs)

    def number(token):
        is_short = re.fullmatch("-?[0-9]{1,20}", token) and token != "-0"
        if is_short and I64_MIN <= int(token) < 1 << 64:
            return int(token)
        need(what, finite_number=math.isfinite(float(token)))
        return float(token)

    with reading(what):
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=members, parse_int=number,
                           parse_float=number, parse_constant=number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")   # fails at a lone surrogate
        return value


def named(value):
    """`"name"` or `{"name":.., "configuration":{..}}` as (name, configuration)."""
    if isinstance(value, str):
        return value, {}
    need("name", members=set(value) <= {"name", "configuration", "must_understand"})
    return value["name"], value.get("configuration", {})


# -------------------------------------------------------------------------------------- data types

FLOATS = dict(float16="<e", bfloat16=None, float32="<f", float64="<d")
COMPLEX = dict(complex64="float32", complex128="float64")
WHOLE = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4,
         "uint64": 8, "numpy.datetime64": 8, "numpy.timedelta64": 8}
SIZES = dict(bool=1, float16=2, bfloat16=2, float32=4, float64=8, complex64=8, complex128=16,
             raw_bytes=None, structured=None, null_terminated_bytes=None, fixed_length_utf32=None,
             string=None, bytes=None, **WHOLE)
SIZED = "raw_bytes", "structured", "null_terminated_bytes", "fixed_length_utf32"
OTHER_NAMES = dict(struct="structured", variable_length_bytes="bytes")


class DataType:
    """10, "Data types"; `size` is None for text and bytes."""

    def __init__(self, value):
        name, conf = named(value)
        if re.fullmatch("r[1-9][0-9]{0,9}", name) and int(name[1:]) % 8 == 0:
            name, conf = "raw_bytes", {"length_bytes": int(name[1:]) // 8}
        name = OTHER_NAMES.get(name, name)
        need(f"data type {name}", "unsupported", known=name in SIZES,
             parameters=set(conf) <= {"length_bytes", "unit", "scale_factor", "fields"})
        parts = [COMPLEX[name]] * 2 if name in COMPLEX else []
        if name == "structured":
            parts = [f["data_type"] if isinstance(f, dict) else f[1] for f in conf["fields"]]
        self.name, self.parts, self.size = name, [DataType(part) for part in parts], SIZES[name]
        need("record", flat=all(p.size and p.name != "structured" for p in self.parts))
        if name in SIZED:
            self.size = conf.get("length_bytes") or sum(part.size for part in self.parts)
            need(name, size=self.size >= 1 and (name[0] != "f" or self.size % 4 == 0))
        need("element", "limit_exceeded", size=(self.size or 0) <= 3 << 20)
        # The bytes that a byte order turns round together; 1 where the type has none.
        self.word = (self.parts[0].size if name in COMPLEX else 4 if name == "fixed_length_utf32"
                     else SIZES[name] or 1)
        self.element = f"V{self.size}" if self.size else object

    def filled(self, shape, element):
        """An array that is one element all over."""
        held = math.prod(shape) * (self.size or 1)
        need("array", "limit_exceeded", size_fit_for_this_reader=held <= HELD_MAX)
        return numpy.full(shape, numpy.void(element) if self.size else element, self.element)

    def to_json(self, element):
        """An element in the form of a fill value; refuses what is no element of the type."""
        if self.name == "bool":
            need("bool", zero_or_one=element in (b"\0", b"\1"))
            return element == b"\1"
        if self.name in WHOLE:
            value = int.from_bytes(element, "little", signed=self.name[0] != "u")
            return "NaT" if self.name.startswith("numpy") and value == I64_MIN else value
        if self.name in FLOATS:
            padded = b"\0\0" + element if self.name == "bfloat16" else element
            value, = struct.unpack(FLOATS[self.name] or "<f", padded)
            if math.isnan(value):
                return "NaN" if element == self._rounded(math.nan) else "0x" + element[::-1].hex()
            return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
        c = Cursor(element, self.name)
        if self.name == "string":
            return c.text(len(element))
        if self.name == "fixed_length_utf32":
            return element.decode("utf-32-le", "replace").rstrip("\0")
        if self.name == "null_terminated_bytes":
            element = element.rstrip(b"\0")
        parts = [part.to_json(c.take(part.size)) for part in self.parts]
        return parts if self.name in COMPLEX else base64.b64encode(element).decode()

    def from_json(self, value):
        """A fill value as the element's bytes."""
        what, is_text = f"fill value of {self.name}", isinstance(value, str)
        need(what, form=(type(value) is bool) == (self.name == "bool"))
        with reading(what):
            if self.name == "bool":
                element = bytes([value])
            elif self.name in WHOLE:
                value = I64_MIN if value == "NaT" and self.name.startswith("numpy") else value
                exact = type(value) is int or "int" in self.name and abs(value) < 1 << 53
                need(what, integer=exact and int(value) == value)
                element = int(value).to_bytes(self.size, "little", signed=self.name[0] != "u")
            elif self.name in FLOATS and is_text and value.startswith("0x"):
                element = bytes.fromhex(value[2:])[::-1]
            elif self.name in FLOATS:
                need(what, form=not is_text or value in ("NaN", "Infinity", "-Infinity"))
                element = self._rounded(float(value))
            elif self.name in COMPLEX:
                element = b"".join(map(self.parts[0].from_json, value))
            elif self.name == "string":
                element = value.encode("utf-8")
            elif self.name == "fixed_length_utf32":
                element = value.encode("utf-32-le").ljust(self.size, b"\0")
            else:
                element = base64.b64decode(value, validate=True)
                if self.name == "null_terminated_bytes":
                    element = element.ljust(self.size, b"\0")
        need(what, size=self.size in (None, len(element)))
        self.to_json(element)                                   # a bool in a record is still 0 or 1
        return element

    def _rounded(self, x):
        if self.name != "bfloat16":
            return struct.pack(FLOATS[self.name], x)
        if math.isfinite(x):                 # 8 bits of mantissa, ties to even; binary32 holds them
            ulp = max(math.frexp(x)[1] - 8, -133)
            x = math.copysign(math.ldexp(round(math.ldexp(x, -ulp)), ulp), x)
        return struct.pack("<f", x)[2:]


def attribute_value(content, raw):
    """07: an attribute by its content: JSON text, typed array, or tagged value."""
    c = Cursor(raw, "attribute")
    if content == 0:
        return {"content": "json", "value": parse_json(raw, c.what)}
    if content == 2:
        value = tagged(c)
        c.end()
        return {"content": "tagged", "value": value}
    json_type = parse_json(c.take(c.number(2)), c.what)
    dtype, rank = DataType(json_type), c.number(1)
    shape = [c.number(8) for _ in range(rank)]
    elements = c.rest()
    need(c.what, length=dtype.size and len(elements) == math.prod(shape) * dtype.size)
    starts = range(0, len(elements), dtype.size)
    values = [dtype.to_json(elements[start:start + dtype.size]) for start in starts]
    return {"content": "typed", "dtype": json_type, "shape": shape, "values": values}


def tagged(c):
    """07, content 2; every number carries its type, so that the comparison is exact."""
    tag = c.number(1)
    need(c.what, known_tag=tag <= 8)
    if tag < 3:
        return (None, False, True)[tag]
    if tag < 6:
        dtype = DataType(("int64", "uint64", "float64")[tag - 3])
        return {dtype.name: dtype.to_json(c.take(8))}
    if tag == 6:
        return c.text(c.number(4))
    if tag == 7:
        return [tagged(c) for _ in range(c.number(4))]
    pairs = [[c.text(c.number(4)), tagged(c)] for _ in range(c.number(4))]
    need(c.what, names_unique=len(dict(pairs)) == len(pairs))
    return {"map": pairs}


# --------------------------------------------------------------------------------------- pipelines

def unshuffle(data, size):
    whole = len(data) // size * size
    return numpy.frombuffer(data[:whole], "u1").reshape(size, -1).T.tobytes() + data[whole:]


def unzstd(data, _):
    """R-10.25: blocks are counted because decoders go on behind the first frame."""
    c, blocks, block = Cursor(data, "zstd"), 0, 0
    need("zstd", frame=c.number(4) == 0xFD2FB528)
    head = c.number(1)
    is_single = head >> 5 & 1
    c.take((0, 1, 2, 4)[head & 3] + 1 - is_single)              # dictionary id and window
    size = c.number((is_single, 2, 4, 8)[head >> 6])
    while not block & 1:
        block, blocks = c.number(3), blocks + 1
        c.take(1 if block >> 1 & 3 == 1 else block >> 3)
    c.take(head & 4)                                            # checksum
    c.end()
    need("zstd", "limit_exceeded", size=max(size, blocks << 17) <= HELD_MAX)     # 128 KiB a block
    return numcodecs.Zstd().decode(data)


def unlz4(data, _):
    need("lz4", size_is_possible=Cursor(data, "lz4").number(4) <= 255 * len(data))
    return numcodecs.LZ4().decode(data)


def inflate(data, wbits):
    stream = zlib.decompressobj(wbits)
    out = stream.decompress(data, HELD_MAX)
    need("deflate", one_whole_stream=stream.eof and not stream.unused_data)
    return out


def without_sum(data, checksum):
    body, stored = data[:-4], data[-4:]
    need(checksum.__name__, match=stored == checksum(body).to_bytes(4, "little"))
    return body


def fletcher32(data):
    words = [word for word, in struct.iter_unpack(">H", data + b"\0" * (len(data) % 2))]
    a, b = sum(words), sum(itertools.accumulate(words))
    return (b and (b - 1) % 65535 + 1) << 16 | (a and (a - 1) % 65535 + 1)


ARRAY, TO_BYTES, BYTES = range(3)                               # kinds ascend along a pipeline
# `parameters`: name -> the values that it may have, None where the codec itself judges them.
Codec = namedtuple("Codec", "kind parameters undo", defaults=(None,))
CODECS = {
    "transpose": Codec(ARRAY, {"order": None}),
    "numcodecs.delta": Codec(ARRAY, {"dtype": None, "astype": None}),
    "bytes": Codec(TO_BYTES, {"endian": ("little", "big")}),
    "vlen-utf8": Codec(TO_BYTES, {}),
    "vlen-bytes": Codec(TO_BYTES, {}),
    "sharding_indexed": Codec(TO_BYTES, {"chunk_shape": None, "codecs": None, "index_codecs": None,
                                         "index_location": ("end", "start")}),
    "numcodecs.shuffle": Codec(BYTES, {"elementsize": range(1, 1 << 31)}, unshuffle),
    "zstd": Codec(BYTES, {"level": range(-131072, 23), "checksum": (False, True)}, unzstd),
    "numcodecs.lz4": Codec(BYTES, {"acceleration": None}, unlz4),
    "numcodecs.zlib": Codec(BYTES, {"level": range(-1, 10)}, lambda data, _: inflate(data, 15)),
    "gzip": Codec(BYTES, {"level": range(10)}, lambda data, _: inflate(data, 31)),
    "crc32c": Codec(BYTES, {}, lambda data, _: without_sum(data, crc32c)),
    "numcodecs.fletcher32": Codec(BYTES, {}, lambda data, _: without_sum(data, fletcher32)),
}


class Pipeline:
    """Turns a payload into an array of `shape`."""

    def __init__(self, specs, dtype, shape, fill):
        need("codecs", one_to_eight=1 <= len(specs) <= 8)
        self.dtype, self.shape, self.count = dtype, list(shape), math.prod(shape)
        need("chunk", "limit_exceeded", size=self.count * (dtype.size or 1) <= 1 << 31)
        self.steps, self.shard, inner = [], None, self.shape
        for name, conf in map(named, specs):
            what, endian = f"codec {name}", conf.get("endian")
            need(what, "unsupported", known=name in CODECS)
            allowed = CODECS[name].parameters
            need(what, "unsupported", parameters=set(conf) <= set(allowed))
            need(what, **{p: allowed[p] is None or v in allowed[p] for p, v in conf.items()})
            if name == "transpose":
                need(what, permutation=sorted(conf["order"]) == list(range(len(inner))))
                inner = [inner[axis] for axis in conf["order"]]
            elif name == "numcodecs.delta":
                signs = "<=|>" if dtype.size == 1 else "<="
                names = {conf["dtype"].lstrip(signs), conf.get("astype", "").lstrip(signs)}
                need(what, type=names <= {dtype.name, f"{dtype.name[0]}{dtype.size}", ""},
                     integers=re.fullmatch("u?int[0-9]+", dtype.name))
            elif name == "bytes":
                need(what, type=dtype.size, endian=dtype.word == 1 or endian,
                     little_endian_record=dtype.name != "structured" or endian != "big")
            elif name.startswith("vlen-"):
                need(what, type=dtype.name == ("string" if name == "vlen-utf8" else "bytes"))
            elif name == "sharding_indexed":
                self.shard = Shard(conf, dtype, inner, fill)
            self.steps.append((name, CODECS[name], conf))
        kinds = [codec.kind for _, codec, _ in self.steps]
        need("codecs", order=kinds == sorted(kinds), one_to_bytes=kinds.count(TO_BYTES) == 1)

    def decode(self, payload, mask=0):
        """The elements; bit i of `mask` says that codec i was left out (R-6.4)."""
        steps = [step for i, step in enumerate(self.steps) if not mask >> i & 1]
        need(f"filter mask {mask:#x}", no_bit_beyond_codecs=not mask >> len(self.steps),
             array_to_bytes=any(codec.kind == TO_BYTES for _, codec, _ in steps))
        shape = self.shape
        for order in [conf["order"] for name, _, conf in steps if name == "transpose"]:
            shape = [shape[axis] for axis in order]
        for name, codec, conf in reversed(steps):
            if codec.kind == BYTES:
                with reading(name):
                    payload = bytes(codec.undo(payload, conf.get("elementsize", self.dtype.size)))
            elif codec.kind == TO_BYTES:
                cells = self._elements(name, conf, payload, shape)
            elif name == "transpose":
                order = conf["order"]
                cells = cells.transpose([order.index(axis) for axis in range(len(order))])
            else:                                               # delta wraps: signs do not matter
                unsigned = f"<u{self.dtype.size}"
                sums = numpy.cumsum(cells.ravel().view(unsigned), dtype=unsigned)
                cells = sums.view(cells.dtype).reshape(cells.shape)
        return cells

    def _elements(self, name, conf, payload, shape):
        """Undoes the array-to-bytes codec."""
        if self.shard:
            need("filter mask", keeps_shape_of_shard=shape == self.shard.shape)
            return self.shard.decode(payload)
        if name == "bytes":
            need("payload", length=len(payload) == self.count * self.dtype.size)
            if conf.get("endian") == "big":
                words = numpy.frombuffer(payload, "u1").reshape(-1, self.dtype.word)
                payload = words[:, ::-1].tobytes()
            cells = numpy.frombuffer(payload, self.dtype.element)
        else:
            c = Cursor(payload, name)
            need(name, count=c.number(4) == self.count)
            items = [c.take(c.number(4)) for _ in range(self.count)]
            c.end()
            cells = numpy.empty(self.count, object)
            cells[:] = items
        if self.dtype.name in ("bool", "string", "structured"):
            for element in cells.tolist():
                self.dtype.to_json(element)
        return cells.reshape(shape)


class Shard:
    """10, "Shards"."""

    def __init__(self, conf, dtype, shape, fill):
        self.dtype, self.shape, self.fill, self.inner = dtype, shape, fill, conf["chunk_shape"]
        self.grid = [n // c for n, c in zip(shape, self.inner)]
        need("inner chunks", divide=[n * c for n, c in zip(self.grid, self.inner)] == shape,
             rank=len(self.inner) == len(shape), extents=all(c > 0 for c in self.inner))
        count = math.prod(self.grid)
        need("inner chunks", "limit_exceeded", count=count <= 1 << 24)
        self.pipeline = Pipeline(conf["codecs"], dtype, self.inner, fill)
        self.index = Pipeline(conf["index_codecs"], DataType("uint64"), [count, 2], None)
        names = [name for name, _, _ in self.index.steps]
        need("index_codecs", names=names in (["bytes"], ["bytes", "crc32c"]))
        self.index_len = 16 * count + 4 * (len(names) - 1)
        self.is_index_first = conf.get("index_location") == "start"

    def decode(self, shard):
        need("shard", length=len(shard) >= self.index_len)
        index_at = 0 if self.is_index_first else len(shard) - self.index_len
        index = self.index.decode(shard[index_at:index_at + self.index_len]).view("<u8").tolist()
        taken = [(index_at, index_at + self.index_len)]
        cells = self.dtype.filled(self.shape, self.fill)
        for at, (offset, length) in zip(itertools.product(*map(range, self.grid)), index):
            if offset == length == ABSENT:
                continue
            need(f"inner chunk {at}", in_shard=1 <= length <= len(shard) - offset)
            box = tuple(slice(a * n, a * n + n) for a, n in zip(at, self.inner))
            cells[box] = self.pipeline.decode(shard[offset:offset + length])
            taken.append((offset, offset + length))
        taken.sort()
        need("inner chunks", share_no_byte=all(a[1] <= b[0] for a, b in zip(taken, taken[1:])))
        return cells
