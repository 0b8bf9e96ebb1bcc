"""Bytes, JSON, data types, fill values and attribute values, for `reader.py`. Mirrors 07-blobs.md and 10-documents.md.

Holds what turns bytes into numbers and documents into types. Knows nothing of payloads, files, slots, nodes or keys.
Public domain (CC0 1.0).
"""

import base64
import json
import math
import re
import struct
from fractions import Fraction

GENERATION_END = 1 << 61


class FormatError(Exception):
    """A rule is broken (`corrupt`), unknown (`unsupported`), or the input is no container at all."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


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


# ---------------------------------------------------------------------------------------------------- attributes

def attribute_value(content, raw):
    """07: an attribute by its content: JSON text, typed array, or tagged value."""
    if content == 0:
        return {"content": "json", "value": parse_json(raw, "attribute")}
    c = Cursor(raw, "attribute")
    if content == 2:
        value = tagged(c, 0)
        c.end()
        return {"content": "tagged", "value": value}
    dtype = DataType(parse_json(c.take(c.u16()), "attribute type"))
    need(dtype.size is not None, "typed attribute of variable length")
    rank = c.u8()
    need(rank <= 32, "typed attribute: rank")
    shape = [c.u64() for _ in range(rank)]
    need(len(raw) - c.at == math.prod(shape) * dtype.size, f"typed attribute: {len(raw) - c.at} bytes for {shape}")
    values = [dtype.to_json(c.take(dtype.size)) for _ in range(math.prod(shape))]
    return {"content": "typed", "dtype": dtype.json, "shape": shape, "values": values}


def tagged(c, depth):
    """07, content 2; every number carries its type, so that the comparison is exact."""
    tag = c.u8()
    need(tag <= 8 and (tag < 7 or depth < 64), f"{c.what}: tag {tag} at depth {depth}")
    if tag < 3:
        return (None, False, True)[tag]
    if tag < 6:
        dtype = DataType(("int64", "uint64", "float64")[tag - 3])
        return {dtype.name: dtype.to_json(c.take(8))}
    if tag == 6:
        return c.text(c.u32())
    if tag == 7:
        return [tagged(c, depth + 1) for _ in range(c.u32())]
    pairs = [(c.text(c.u32()), tagged(c, depth + 1)) for _ in range(c.u32())]
    need(len(dict(pairs)) == len(pairs), f"{c.what}: a name twice")
    return {"map": [list(p) for p in pairs]}
