"""Bytes, JSON, data types, fill values and codecs, for `reader.py`. Mirrors 10-documents.md.

Holds everything that turns a document and a payload into elements. Knows nothing of files, slots, nodes or keys.
Needs numcodecs for zstd and LZ4 only. Public domain (CC0 1.0).
"""

import base64
import itertools
import json
import math
import re
import struct
import zlib
from fractions import Fraction

GENERATION_END, U64 = 1 << 61, (1 << 64) - 1
DECODED_MAX = 1 << 31
ELEMENTS_MAX = 1 << 24                            # this reader's own cap on elements held at once


class FormatError(Exception):
    """A rule is broken (`corrupt`), unknown (`unsupported`), or the input is no container at all."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def need(holds, text, kind="corrupt"):
    if not holds:
        raise FormatError(kind, text)


# ---------------------------------------------------------------------------------------------------- bytes

def _crc_table():
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        yield n


CRC_TABLE = list(_crc_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Cursor:
    """Takes fields off the front of some bytes; running short is an error, and so is leaving a rest."""

    def __init__(self, data, what):
        self.data, self.at, self.what = bytes(data), 0, what

    def take(self, n):
        need(n <= len(self.data) - self.at, f"{self.what}: wants {n} bytes at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, n, signed=False):
        return int.from_bytes(self.take(n), "little", signed=signed)

    def u8(self): return self.number(1)
    def u16(self): return self.number(2)
    def u32(self): return self.number(4)
    def u64(self): return self.number(8)
    def i64(self): return self.number(8, signed=True)
    def rest(self): return self.take(len(self.data) - self.at)

    def zeros(self, n):
        need(not any(self.take(n)), f"{self.what}: reserved bytes before {self.at} are not zero")

    def text(self, n):
        return utf8(self.take(n), self.what)

    def end(self):
        need(self.at == len(self.data), f"{self.what}: {len(self.data) - self.at} bytes too many")

    def vint(self):
        b = self.u8()
        if 0x08 <= b <= 0xF7:
            return b - 128
        n = b - 0xF7 if b >= 0xF8 else 8 - b
        raw = self.take(n) if b >= 0xF8 else bytes(x ^ 255 for x in self.take(n))
        m = int.from_bytes(raw, "big")
        need(n == max(1, (m.bit_length() + 7) // 8) and m <= (1 << 63) - 121, f"{self.what}: vint not canonical")
        return 120 + m if b >= 0xF8 else -121 - m

    def id(self):
        v = self.vint()
        need(0 <= v < GENERATION_END, f"{self.what}: id {v} out of range")
        return v


def utf8(raw, what):
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError("corrupt", f"{what}: not UTF-8") from None


# ---------------------------------------------------------------------------------------------------- JSON

def parse_json(raw, what):
    """R-7.4: strict JSON, unique names, bounded depth."""
    text = utf8(raw, what)
    depth = 0
    for c in re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.S):
        depth += (c in "[{") - (c in "]}")
        need(depth <= 64, f"{what}: nested deeper than 64")

    def members(pairs):
        need(len(dict(pairs)) == len(pairs), f"{what}: a name twice")
        return dict(pairs)

    def number(token):
        need(math.isfinite(float(token)), f"{what}: number {token} overflows")
        return float(token)

    def integer(token):
        return int(token) if len(token) <= 20 and -1 << 63 <= int(token) < 1 << 64 else number(token)

    def constant(token):
        raise FormatError("corrupt", f"{what}: {token} is not JSON")

    try:
        value = json.loads(text, object_pairs_hook=members, parse_int=integer, parse_float=number,
                           parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")          # lone surrogates fail here
        return value
    except (ValueError, UnicodeError) as e:
        raise FormatError("corrupt", f"{what}: {e}") from None


def float_text(x):
    """R-10.2: shortest digits, positional for -5 < e <= 16."""
    sign = "-" if math.copysign(1, x) < 0 else ""
    if x == 0:
        return sign + "0.0"
    mantissa, _, exponent = repr(abs(x)).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    e = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    if 0 < e <= 16:
        return f"{sign}{digits[:e].ljust(e, '0')}.{digits[e:] or '0'}"
    if -5 < e <= 0:
        return f"{sign}0.{'0' * -e}{digits}"
    return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{e - 1}"


def one_text(value):
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, dict):
        return "{" + ",".join(one_text(k) + ":" + one_text(v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(one_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def ordered(value, names):
    """The members of an object, known ones first in the order of `names`."""
    return {**{n: value[n] for n in names if n in value}, **{n: v for n, v in value.items() if n not in names}}


def integers(value, what, lo, hi, rank=None):
    need(isinstance(value, list) and all(type(v) is int and lo <= v <= hi for v in value), f"{what}: {value}")
    need(rank is None or len(value) == rank, f"{what}: {len(value)} entries for rank {rank}")
    return value


def named(value, what):
    """`"name"` or `{"name":.., "configuration":{..}}` as (name, configuration)."""
    if isinstance(value, str):
        return value, {}
    need(isinstance(value, dict) and isinstance(value.get("name"), str), f"{what}: no name")
    need(set(value) <= {"name", "configuration", "must_understand"}, f"{what}: unknown member")
    need(type(value.get("must_understand", False)) is bool, f"{what}: must_understand")
    configuration = value.get("configuration", {})
    need(isinstance(configuration, dict), f"{what}: configuration is no object")
    return value["name"], configuration


# ---------------------------------------------------------------------------------------------------- data types

class DataType:
    """10, "Data types". An element is its little-endian bytes, of `size`, or of any length where `size` is None."""

    FLOATS = {"float16": (2, 10, "<e"), "bfloat16": (2, 7, None), "float32": (4, 23, "<f"), "float64": (8, 52, "<d")}
    UNITS = "Y M W D h m s ms us ns ps fs as generic".split()

    def __init__(self, value, in_record=False):
        self.name, conf = named(value, "data type")
        bits = re.fullmatch(r"r([1-9]\d{0,9})", self.name)
        if bits and int(bits[1]) % 8 == 0:
            self.name, conf = "raw_bytes", {"length_bytes": int(bits[1]) // 8}
        self.fields, allowed = [], []
        integer = re.fullmatch(r"(u?)int(8|16|32|64)", self.name)
        self.signed = bool(integer and not integer[1])
        self.integer = bool(integer)
        if self.name == "bool":
            self.size = 1
        elif integer:
            self.size = int(integer[2]) // 8
        elif self.name in self.FLOATS:
            self.size = self.FLOATS[self.name][0]
        elif self.name in ("complex64", "complex128"):
            self.size = 8 if self.name == "complex64" else 16
            self.part = DataType("float32" if self.size == 8 else "float64")
        elif self.name == "raw_bytes":
            allowed, self.size = ["length_bytes"], conf.get("length_bytes")
            need(type(self.size) is int and 1 <= self.size < 1 << 31, "raw_bytes: length")
        elif self.name in ("numpy.datetime64", "numpy.timedelta64"):
            allowed, self.size = ["unit", "scale_factor"], 8
            integers([conf.get("scale_factor")], "scale_factor", 1, (1 << 31) - 1)
            need(conf.get("unit") in self.UNITS, f"time unit {conf.get('unit')}")
        elif self.name == "structured":
            need(not in_record, "a record within a record")
            allowed, fields = ["fields"], conf.get("fields")
            need(isinstance(fields, list) and fields, "structured: no fields")
            for f in fields:
                need(isinstance(f, list) and len(f) == 2 and isinstance(f[0], str), "structured: field")
                need(1 <= len(f[0].encode()) <= 255, "structured: field name")
                self.fields.append((f[0], DataType(f[1], in_record=True)))
            need(len(fields) <= 4096, "structured: fields", "limit_exceeded")
            need(len({n for n, _ in self.fields}) == len(self.fields), "structured: a field name twice")
            need(all(t.size for _, t in self.fields), "structured: field of variable length")
            self.size = sum(t.size for _, t in self.fields)
        elif self.name in ("string", "bytes"):
            self.size = None
        else:
            raise FormatError("unsupported", f"data type {self.name}")
        need((self.size or 0) <= 3 << 20, "bytes of one element", "limit_exceeded")
        need(set(conf) <= set(allowed), f"data type {self.name}: unknown parameter", "unsupported")
        self.json = {"name": self.name, "configuration": ordered(conf, allowed)} if allowed else self.name

    def swapped(self, cell):
        """The element in the other byte order."""
        if self.name == "raw_bytes":
            return cell
        if self.name.startswith("complex"):
            return cell[:self.size // 2][::-1] + cell[self.size // 2:][::-1]
        return cell[::-1]

    def to_json(self, cell):
        """An element in the form of a fill value."""
        if self.name == "bool":
            need(cell in (b"\0", b"\1"), "bool is neither 0 nor 1")
            return cell == b"\1"
        if self.integer:
            return int.from_bytes(cell, "little", signed=self.signed)
        if self.name in self.FLOATS:
            return self._float_to_json(cell)
        if self.name.startswith("complex"):
            return [self.part.to_json(cell[:self.size // 2]), self.part.to_json(cell[self.size // 2:])]
        if self.name.startswith("numpy."):
            count = int.from_bytes(cell, "little", signed=True)
            return "NaT" if count == -1 << 63 else count
        if self.name == "string":
            return utf8(cell, "text element")
        if self.name == "structured":
            at = 0
            for _, t in self.fields:
                t.to_json(cell[at:at + t.size])
                at += t.size
        return base64.b64encode(cell).decode()

    def _float_to_json(self, cell):
        size, mantissa, code = self.FLOATS[self.name]
        bits = int.from_bytes(cell, "little")
        exponent_mask = ((1 << (size * 8 - 1 - mantissa)) - 1) << mantissa
        if bits & exponent_mask == exponent_mask:
            if bits & ((1 << mantissa) - 1) == 0:
                return "-Infinity" if bits >> (size * 8 - 1) else "Infinity"
            quiet = exponent_mask | 1 << (mantissa - 1)
            return "NaN" if bits == quiet else f"0x{bits:0{size * 2}x}"
        return struct.unpack(code, cell)[0] if code else struct.unpack("<f", b"\0\0" + cell)[0]

    def from_json(self, v):
        """A fill value as the element's bytes."""
        what = f"fill value {v!r} of {self.name}"
        if self.name == "bool":
            need(type(v) is bool, what)
            return bytes([v])
        if self.integer or self.name.startswith("numpy."):
            signed = self.signed or not self.integer
            v = -1 << 63 if v == "NaT" and not self.integer else v
            v = int(v) if self.integer and type(v) is float and v.is_integer() and abs(v) < 1 << 53 else v
            lo, hi = (-1 << self.size * 8 - 1, 1 << self.size * 8 - 1) if signed else (0, 1 << self.size * 8)
            need(type(v) is int and lo <= v < hi, what)
            return v.to_bytes(self.size, "little", signed=signed)
        if self.name in self.FLOATS:
            return self._float_from_json(v, what)
        if self.name.startswith("complex"):
            need(isinstance(v, list) and len(v) == 2, what)
            return self.part.from_json(v[0]) + self.part.from_json(v[1])
        need(isinstance(v, str), what)
        if self.name == "string":
            return v.encode()
        try:
            cell = base64.b64decode(v, validate=True)
        except ValueError:
            raise FormatError("corrupt", what) from None
        need(base64.b64encode(cell).decode() == v and self.size in (None, len(cell)), what)
        self.to_json(cell)
        return cell

    def _float_from_json(self, v, what):
        size, mantissa, code = self.FLOATS[self.name]
        top = ((1 << (size * 8 - 1 - mantissa)) - 1) << mantissa
        if isinstance(v, str):
            special = {"NaN": top | 1 << (mantissa - 1), "Infinity": top, "-Infinity": top | 1 << (size * 8 - 1)}
            need(v in special or re.fullmatch("0x[0-9a-fA-F]{%d}" % (size * 2), v), what)
            return special.get(v, int(v, 16) if v.startswith("0x") else 0).to_bytes(size, "little")
        need(type(v) in (int, float), what)
        try:
            x = float(v)
            return struct.pack(code, x) if code else to_bfloat16(x)
        except OverflowError:
            raise FormatError("corrupt", what) from None


def to_bfloat16(x):
    """Nearest, ties to even; compared exactly, because rounding through binary32 would round twice."""
    def value(n):
        return Fraction(1 << 128) if n == 0x7F80 else Fraction(struct.unpack("<f", struct.pack("<I", n << 16))[0])

    exact = Fraction(abs(x))
    low = struct.unpack("<I", struct.pack("<f", abs(x)))[0] >> 16
    low -= value(low) > exact
    below, above = exact - value(low), value(low + 1) - exact
    n = low + (above < below or (above == below and low & 1))
    if n >= 0x7F80:
        raise OverflowError
    return struct.pack("<H", n | (0x8000 if math.copysign(1, x) < 0 else 0))


# ---------------------------------------------------------------------------------------------------- codecs

def decode_shuffle(data, conf, _want):
    size = conf["elementsize"]
    n = len(data) // size
    whole = bytearray(n * size)
    for j in range(size):
        whole[j::size] = data[j * n:(j + 1) * n]
    return bytes(whole) + data[n * size:]


def zstd_frames(c):
    """(first byte, end, content size or None) of every frame that holds data (R-10.25)."""
    while c.at < len(c.data):
        start, magic = c.at, c.u32()
        if magic & 0xFFFFFFF0 == 0x184D2A50:
            c.take(c.u32())
            continue
        need(magic == 0xFD2FB528, "zstd: not a frame")
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
        yield start, c.at, size


def decode_zstd(data, _conf, want):
    import numcodecs
    limit, out, frames = DECODED_MAX if want is None else want, b"", 0
    for start, end, size in zstd_frames(Cursor(data, "zstd")):
        need((size or 0) <= limit - len(out), f"zstd: content size {size}, wanted {want}")
        out += b"" if size == 0 else bytes(numcodecs.Zstd().decode(data[start:end]))
        frames += 1
    need(frames, "zstd: no frame")
    return out


def decode_lz4(data, _conf, want):
    size = Cursor(data, "lz4").u32()
    need(size <= DECODED_MAX, "lz4: size", "limit_exceeded")
    need(want in (None, size), f"lz4: decoded size {size}, wanted {want}")
    import numcodecs
    return bytes(numcodecs.LZ4().decode(data))


def decode_deflate(wbits, many):
    def decode(data, _conf, want):
        limit, out, rest = DECODED_MAX if want is None else want, b"", data
        while rest or not out:
            stream = zlib.decompressobj(wbits)
            out += stream.decompress(rest, limit - len(out) + 1)
            need(stream.eof and len(out) <= limit, "deflate: cut or too long")
            rest = stream.unused_data
            need(many or not rest, "deflate: bytes after the stream")
            if not rest:
                break
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
    "numcodecs.zlib": (decode_deflate(15, many=False), {"level": (-1, 9, False)}, None),
    "gzip": (decode_deflate(31, many=True), {"level": (-1, 9, False)}, None),
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
        numpy = r"[<>|=]?" + ("i" if self.dtype.signed else "u") + str(self.dtype.size)
        for value in conf.values():
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
