#!/usr/bin/env python3
"""Writes tests/data/shards/foreign.json: shards made by other software, with the values they stand for.

    .venv/bin/python tests/interop/make_shard_fixtures.py ZARR3_FOLDER

ZARR3_FOLDER holds Zarr v3 arrays of several writers. Small payloads stand in the file itself, as hex; of larger ones only
the place and the CRC32C of the values, so that a test can look for the folder and say that it found none. Two arrays are
made here, by zarr-python and TensorStore. Values are as zarr-python (or TensorStore) reads them: C order, little-endian.
"""

import json
import sys
import tempfile
from pathlib import Path

import google_crc32c
import numpy as np
import tensorstore
import zarr

ROOT = Path(__file__).resolve().parents[2]
INLINE_MAX = 20_000
ARRAYS = [
    ("zarrs", "zarrs/sharded_array_write_read.zarr/group/array"),
    ("zarrita.js", "zarrita-js/data.zarr/2d.chunked.ragged.compressed.sharded.i2"),
    ("zarrita.js", "zarrita-js/data.zarr/2d.chunked.compressed.sharded.filled.i2"),
    ("zarrita.js", "zarrita-js/data.zarr/3d.chunked.mixed.compressed.sharded.i2"),
    ("zarrita.js", "zarrita-js/data.zarr/1d.contiguous.compressed.sharded.b1"),
    ("zarr-java", "zarr-java/sharding_index_location/start"),
    ("zarr-python", "made/a1b_sharded.zarr/air_temperature"),
    ("tensorstore", "made/mni_t1_sharded.zarr"),
]


def flat(values):
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def fixture(maker, place, folder, inline):
    document = json.loads((folder / "zarr.json").read_text())
    values = flat(np.asarray(zarr.open_array(folder, mode="r")[...]))
    chunks = {p.relative_to(folder / "c").as_posix(): p for p in sorted((folder / "c").rglob("*")) if p.is_file()}
    entry = {
        "maker": maker, "place": place,
        **{k: document[k] for k in ("shape", "data_type", "fill_value", "codecs")},
        "chunk_shape": document["chunk_grid"]["configuration"]["chunk_shape"],
        "values_crc32c": f"{google_crc32c.value(values):08x}",
    }
    if inline or sum(p.stat().st_size for p in chunks.values()) + len(values) <= INLINE_MAX:
        entry["chunks"] = {k: p.read_bytes().hex() for k, p in chunks.items()}
    else:
        entry["chunks"] = {k: None for k in chunks}
    return entry


def by_zarr_python(folder):
    cells = (np.arange(40 * 24) % 700).astype("<i2").reshape(40, 24) - 300
    cells[8:16, 6:12] = -1
    array = zarr.create_array(folder, shape=cells.shape, chunks=(4, 6), shards=(16, 12), dtype="i2", fill_value=-1,
                              compressors=zarr.codecs.ZstdCodec(level=3))
    array[...] = cells
    return fixture("zarr-python", "made by make_shard_fixtures.py", folder, True)


def by_tensorstore(folder):
    codec = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [8, 8], "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}], "index_location": "start"}}
    store = tensorstore.open({
        "driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}/"},
        "metadata": {"shape": [32, 40], "data_type": "float32", "fill_value": 0.5, "codecs": [codec],
                     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [32, 24]}}}}, create=True).result()
    cells = np.arange(32 * 40, dtype="<f4").reshape(32, 40)
    cells[0:8, 8:16] = 0.5
    store.write(cells).result()
    return fixture("tensorstore", "made by make_shard_fixtures.py", folder, True)


def main():
    data = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary:
        made = [by_zarr_python(Path(temporary, "a")), by_tensorstore(Path(temporary, "b"))]
    entries = [fixture(maker, place, data / place, False) for maker, place in ARRAYS]
    text = json.dumps(made + entries, separators=(",", ":"))
    (ROOT / "tests/data/shards/foreign.json").write_text(text + "\n")
    print(len(made + entries), "arrays,", len(text), "bytes")


if __name__ == "__main__":
    main()
