#!/usr/bin/env python3
"""Writes tests/data/codec/: payloads made by zarr-python and numcodecs, for orthant's decoders.

    python -m venv .venv && .venv/bin/pip install -r tests/interop/requirements.txt
    .venv/bin/python tests/interop/make_codec_fixtures.py

`fixtures.json` lists cases; the bytes lie in `fixtures.bin`, where equal ones lie once. `decoded` is the chunk in C order,
little-endian; for `string` and `bytes` it is, item by item, a u32 length and the bytes.
"""

import json
import struct
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import zarr
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")
zarr.config.set({"array.write_empty_chunks": True})
FOLDER = Path(__file__).resolve().parents[1] / "data" / "codec"

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
PLAIN = {"name": "bytes"}
CRC = {"name": "crc32c"}


def zstd(level, checksum=False):
    return {"name": "zstd", "configuration": {"level": level, "checksum": checksum}}


def gzip(level):
    return {"name": "gzip", "configuration": {"level": level}}


def num(name, **configuration):
    return {"name": f"numcodecs.{name}", "configuration": configuration}


def transpose(*order):
    return {"name": "transpose", "configuration": {"order": list(order)}}


class Fixtures:
    """Cases, and the one file of their bytes."""

    def __init__(self):
        self.cases, self.blob, self.places = [], bytearray(), {}

    def place(self, data):
        data = bytes(data)
        if data not in self.places:
            self.places[data] = [len(self.blob), len(data)]
            self.blob += data
        return self.places[data]

    def add(self, made_by, data_type, shape, codecs, decoded, payload):
        self.cases.append({
            "made_by": made_by, "data_type": data_type, "shape": list(shape), "codecs": codecs,
            "decoded": self.place(decoded), "payload": self.place(payload),
        })

    def write(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in self.cases)
        versions = {"zarr": zarr.__version__, "numcodecs": numcodecs.__version__, "numpy": np.__version__}
        text = f'{{"versions":{json.dumps(versions)},\n"cases":[\n{lines}\n]}}\n'
        (FOLDER / "fixtures.json").write_text(text)
        (FOLDER / "fixtures.bin").write_bytes(self.blob)
        print(f"{len(self.cases)} cases, {len(text) + len(self.blob)} bytes")


def by_zarr(values, codecs, data_type=None):
    """The one chunk of an array that zarr-python writes with exactly these codecs."""
    store = MemoryStore()
    zarr.create_array(store, shape=values.shape, chunks=values.shape, dtype=data_type or values.dtype,
                      compressors=None, filters=None)
    document = json.loads(store._store_dict["zarr.json"].to_bytes())
    document["codecs"] = codecs
    store._store_dict["zarr.json"] = zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(
        json.dumps(document).encode())
    array = zarr.open_array(store, mode="r+")
    array[...] = values
    keys = [key for key in store._store_dict if key == "c" or key.startswith("c/")]
    assert len(keys) == 1, keys
    return document["data_type"], store._store_dict[keys[0]].to_bytes()


def little(values):
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def smooth(dtype, shape, rng):
    """Values that change slowly, with noise below: every codec has something to do and something it cannot."""
    count = int(np.prod(shape))
    wave = 40 * np.sin(np.arange(count) / 9.0) + rng.integers(0, 3, count)
    with np.errstate(all="ignore"):
        return wave.astype(dtype).reshape(shape)


def numeric(fixtures, rng):
    shape = (3, 4, 5)
    for code in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]:
        dtype = np.dtype(code)
        if dtype.kind in "iu":
            values = smooth("i8", shape, rng).astype(dtype)
            values.flat[:4] = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
        else:
            values = smooth(dtype, shape, rng)
            values.flat[:4] = [np.nan, -0.0, np.inf, -np.inf]
        size, one = dtype.itemsize, LITTLE if dtype.itemsize > 1 else PLAIN
        chains = [
            [one], [one, CRC], [transpose(2, 0, 1), one], [one, num("shuffle", elementsize=size)],
            [one, num("shuffle", elementsize=size), zstd(3)], [one, zstd(3), CRC],
            [one, num("zlib", level=1), CRC], [one, num("shuffle", elementsize=size), num("lz4", acceleration=1)],
            [transpose(1, 2, 0), one, num("shuffle", elementsize=size), gzip(5), CRC],
            [one, num("fletcher32")],
        ]
        if size > 1:
            chains += [[BIG], [transpose(2, 1, 0), BIG, num("shuffle", elementsize=size), zstd(1), CRC]]
        if dtype.kind in "iu":
            name = ("|" if size == 1 else "<") + code
            chains += [[num("delta", dtype=name), one], [num("delta", dtype=name), one, zstd(1)]]
        for codecs in chains:
            data_type, payload = by_zarr(values, codecs)
            fixtures.add("zarr-python", data_type, shape, codecs, little(values), payload)


def levels(fixtures, rng):
    """One chunk at every kind of level, and lengths around the codecs' own thresholds."""
    values = smooth("i4", (40, 25), rng)
    for codec in [zstd(-7), zstd(0), zstd(1), zstd(9), zstd(19), zstd(22), zstd(3, True), gzip(0), gzip(1), gzip(9),
                  num("zlib", level=0), num("zlib", level=1), num("zlib", level=9), num("zlib", level=-1),
                  num("lz4", acceleration=1), num("lz4", acceleration=10)]:
        data_type, payload = by_zarr(values, [LITTLE, codec])
        fixtures.add("zarr-python", data_type, values.shape, [LITTLE, codec], little(values), payload)
    for count in [1, 2, 3, 12, 13, 255, 256, 257, 1031]:
        for values in [rng.integers(0, 256, count).astype("u1"), np.zeros(count, "u1")]:
            for codec in [zstd(3), gzip(6), num("zlib", level=6), num("lz4", acceleration=1), num("fletcher32"), CRC,
                          num("shuffle", elementsize=4), num("shuffle", elementsize=3)]:
                if count % codec.get("configuration", {}).get("elementsize", 1):
                    continue  # numcodecs refuses a tail; shuffle_vectors.json has them
                data_type, payload = by_zarr(values, [PLAIN, codec])
                fixtures.add("zarr-python", data_type, values.shape, [PLAIN, codec], little(values), payload)
    # Longer than one LZ4 window, at an odd length.
    values = (np.arange(70_001) // 350 % 251).astype("u1")
    for codec in [zstd(1), gzip(1), num("zlib", level=9), num("lz4", acceleration=1)]:
        data_type, payload = by_zarr(values, [PLAIN, codec])
        fixtures.add("zarr-python", data_type, values.shape, [PLAIN, codec], little(values), payload)
    # Two compressors, one behind the other, and a checksum between them.
    values = smooth("f8", (6, 11), rng)
    for codecs in [[LITTLE, num("lz4", acceleration=1), zstd(3)], [LITTLE, zstd(1), CRC, gzip(5), num("fletcher32")],
                   [LITTLE, CRC, num("shuffle", elementsize=4), zstd(3)]]:
        data_type, payload = by_zarr(values, codecs)
        fixtures.add("zarr-python", data_type, values.shape, codecs, little(values), payload)


def shuffles(fixtures, rng):
    """Every element size at lengths around those that the fast paths take, straight from numcodecs."""
    for size in [1, 2, 3, 4, 5, 7, 8, 12, 16, 40]:
        for length in [size, 7 * size, 67 * size, 131 * size]:
            raw = rng.integers(0, 256, length).astype("u1").tobytes()
            codec = num("shuffle", elementsize=size)
            payload = bytes(numcodecs.Shuffle(size).encode(np.frombuffer(raw, "u1")))
            fixtures.add("numcodecs", "uint8", [length], [PLAIN, codec], raw, payload)


def others(fixtures, rng):
    """Types that are no plain numbers."""
    flags = rng.integers(0, 2, (3, 5)).astype("?")
    for codecs in [[PLAIN], [PLAIN, zstd(3), CRC], [transpose(1, 0), PLAIN]]:
        data_type, payload = by_zarr(flags, codecs)
        fixtures.add("zarr-python", data_type, flags.shape, codecs, flags.tobytes(), payload)
    times = np.array(["1970-01-01", "NaT", "2026-11-30", "1850-01-01"], "M8[s]").reshape(2, 2)
    for codecs in [[LITTLE], [BIG, num("shuffle", elementsize=8), zstd(3)]]:
        data_type, payload = by_zarr(times, codecs)
        fixtures.add("zarr-python", data_type, times.shape, codecs, little(times), payload)
    records = np.zeros(6, np.dtype([("a", "<i2"), ("b", "?"), ("c", "<f4")]))
    records["a"], records["b"], records["c"] = np.arange(6) * 1000, np.arange(6) % 2, np.arange(6) / 3
    for codecs in [[LITTLE], [PLAIN, num("shuffle", elementsize=7), zstd(3), CRC]]:
        data_type, payload = by_zarr(records, codecs)
        fixtures.add("zarr-python", data_type, records.shape, codecs, records.tobytes(), payload)
    opaque = rng.integers(0, 256, 30).astype("u1").view("V5")
    data_type, payload = by_zarr(opaque, [PLAIN, zstd(3)])
    fixtures.add("zarr-python", data_type, opaque.shape, [PLAIN, zstd(3)], opaque.tobytes(), payload)


def variable(fixtures):
    texts = ["", "a", "ein längerer Text", "日本語", "\x00", "x" * 300]
    for codecs in [[{"name": "vlen-utf8"}], [{"name": "vlen-utf8"}, zstd(3), CRC],
                   [{"name": "vlen-utf8"}, num("lz4", acceleration=1)], [{"name": "vlen-utf8"}, gzip(5)]]:
        values = np.array(texts, dtype=np.dtypes.StringDType()).reshape(2, 3)
        data_type, payload = by_zarr(values, codecs, data_type=str)
        fixtures.add("zarr-python", data_type, (2, 3), codecs, items(t.encode() for t in texts), payload)
    blobs = [b"", b"\x00", b"\xff\xfe", bytes(range(256)), b"abc", b"\x80"]
    payload = bytes(numcodecs.VLenBytes().encode(np.array(blobs, dtype=object)))
    for codecs, data in [([{"name": "vlen-bytes"}], payload),
                         ([{"name": "vlen-bytes"}, zstd(3)], bytes(numcodecs.Zstd(3).encode(payload)))]:
        fixtures.add("numcodecs", "bytes", (6,), codecs, items(blobs), data)


def items(values):
    return b"".join(struct.pack("<I", len(v)) + v for v in values)


def main():
    fixtures, rng = Fixtures(), np.random.default_rng(20261130)
    numeric(fixtures, rng)
    levels(fixtures, rng)
    shuffles(fixtures, rng)
    others(fixtures, rng)
    variable(fixtures)
    fixtures.write()


if __name__ == "__main__":
    main()
