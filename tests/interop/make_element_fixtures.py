#!/usr/bin/env python3
"""Writes tests/data/elements.json: data types and single elements as NumPy and zarr-python spell them.

    python -m venv .venv && .venv/bin/pip install -r tests/interop/requirements.txt
    .venv/bin/python tests/interop/make_element_fixtures.py

`descr` is the text of a .npy header, `bytes` the element in NumPy's memory, `data_type` and `fill_value` what zarr-python
puts into a document for it.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import zarr

warnings.simplefilter("ignore")
PATH = Path(__file__).resolve().parents[1] / "data" / "elements.json"
RECORD = np.dtype([("a", "<i2"), ("b", "<f4"), ("t", "<M8[s]")])


def elements():
    for kind in "i1 i2 i4 i8 u1 u2 u4 u8".split():
        info = np.iinfo(kind)
        for value in (info.min, -1 if info.min else 1, info.max):
            yield np.array(value, dtype=kind)
    yield from (np.array(v) for v in (True, False))
    for kind in "f2 f4 f8".split():
        info = np.finfo(kind)
        for value in (0.0, -0.0, 1.0, 0.1, -1 / 3, info.max, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan):
            yield np.array(value, dtype=kind)
    yield from (np.array(v, dtype="<c8") for v in (1 - 2.5j, complex(0.1, np.inf), complex(-0.0, np.nan)))
    yield from (np.array(v, dtype="<c16") for v in (1 - 2.5j, complex(0.1, -np.inf)))
    yield np.array(b"\x01\x02\xff", dtype="V3")
    yield from (np.array(v, dtype="<M8[s]") for v in (0, -1, "2020-02-29T12:00:00", "NaT"))
    yield np.array(7, dtype="<M8[10ms]")
    yield np.array(-7, dtype="<m8[ns]")
    yield np.array((-2, 0.5, "1970-01-01T00:00:01"), dtype=RECORD)


def document(value):
    array = zarr.create_array(store={}, shape=(1,), chunks=(1,), dtype=value.dtype, fill_value=value[()])
    found = array.metadata.to_dict()
    return json.loads(json.dumps({name: found[name] for name in ("data_type", "fill_value")}))


def main():
    rows = []
    for value in elements():
        row = {"descr": repr(value.dtype.descr) if value.dtype.names else value.dtype.str, "bytes": value.tobytes().hex()}
        row |= document(value)
        rows.append(row)
    PATH.write_text(json.dumps(rows, indent=0) + "\n")


main()
