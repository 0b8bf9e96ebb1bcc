#!/usr/bin/env python3
"""Decodes payloads made by orthant with zarr-python and TensorStore, and says where one differs by a bit.

    .venv/bin/python tests/interop/check_codecs.py [FOLDER]

Without FOLDER the payloads are made first, by the library's own test. Each payload becomes the one chunk of a Zarr v3
array whose document holds exactly the codecs that orthant would store. A case that orthant's own table of readers denies
to a reader is expected to fail there, so that the table is checked from both sides.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import tensorstore
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")
ROOT = Path(__file__).resolve().parents[2]
FILLS = {"bool": False, "string": "", "complex64": [0, 0], "complex128": [0, 0], "bytes": "", "null_terminated_bytes": "", "fixed_length_utf32": "",
         "numpy.datetime64": 0}


def make(folder):
    subprocess.run(["cargo", "test", "--quiet", "--lib", "codec::tests::payloads", "--", "--ignored"], cwd=ROOT, check=True,
                   env=os.environ | {"ORTHANT_PAYLOADS": str(folder)}, stdout=subprocess.DEVNULL)


def fill_of(data_type):
    """Any valid fill value: the chunk is there, so it is never seen."""
    name = data_type if isinstance(data_type, str) else data_type["name"]
    if name == "raw_bytes":
        return "A" * 8 if data_type["configuration"]["length_bytes"] == 6 else "AAAAAAA="
    if name == "structured":
        return "AAAAAAAA"
    return FILLS.get(name, 0)


def document(case):
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": case["shape"], "data_type": case["data_type"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": case["shape"]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_of(case["data_type"]), "codecs": case["codecs"],
    }).encode()


def flat(values):
    """A chunk as orthant's manifest has it: C order, little-endian."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def by_zarr(case, payload):
    buffer = default_buffer_prototype().buffer
    key = "/".join(["c"] + ["0"] * len(case["shape"]))
    store = MemoryStore({"zarr.json": buffer.from_bytes(document(case)), key: buffer.from_bytes(payload)})
    values = zarr.open_array(store, mode="r")[...]
    if case["data_type"] in ("string", "bytes"):
        items = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(values).ravel()]
        return b"".join(struct.pack("<I", len(v)) + v for v in items)
    return flat(values)


def by_tensorstore(case, payload):
    with tempfile.TemporaryDirectory() as folder:
        chunk = Path(folder, "c", *["0"] * len(case["shape"]))
        chunk.parent.mkdir(parents=True)
        chunk.write_bytes(payload)
        Path(folder, "zarr.json").write_bytes(document(case))
        store = {"driver": "file", "path": folder + "/"}
        return flat(tensorstore.open({"driver": "zarr3", "kvstore": store}).result().read().result())


READERS = {"zarr-python": by_zarr, "tensorstore": by_tensorstore}


def check(folder):
    tally, failures = Counter(), []
    for index, case in enumerate(json.loads((folder / "cases.json").read_text())):
        payload = (folder / f"{index}.payload").read_bytes()
        decoded = (folder / f"{index}.decoded").read_bytes()
        for reader, read in READERS.items():
            claimed = reader in case["readers"]
            try:
                same, why = read(case, payload) == decoded, "other values"
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a payload that was not read
                same, why = False, f"{type(error).__name__}: {error}"
            if same == claimed:
                tally[f"{reader} {'reads' if same else 'is not claimed to read, and does not'}"] += 1
            else:
                verdict = f"claimed, but {why}" if claimed else "read, but not claimed"
                failures.append(f"{reader}: {case['list']} on {case['data_type']} {case['shape']}: {verdict}")
    return tally, failures


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        if len(sys.argv) < 2:
            make(folder)
        tally, failures = check(folder)
    for line in failures[:40] + [f"{reader}: {count}" for reader, count in sorted(tally.items())]:
        print(line)
    print(f"zarr-python {zarr.__version__}, numpy {np.__version__}: {len(failures)} wrong")
    return 1 if failures or not tally["zarr-python reads"] else 0


if __name__ == "__main__":
    sys.exit(main())
