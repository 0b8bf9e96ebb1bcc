#!/usr/bin/env python3
"""Reads what `orthant export` wrote with zarr-python and TensorStore, and compares payloads with those in the container.

    .venv/bin/python tests/interop/check_export.py
"""

import itertools
import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import tensorstore
import zarr

warnings.simplefilter("ignore")
ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("ORTHANT") or str(ROOT / "target/debug/orthant")
passed = 0


def orthant(*arguments, code=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def same(what, found, truth):
    global passed
    found = np.ascontiguousarray(found)
    assert found.shape == truth.shape and found.astype(truth.dtype).tobytes() == truth.tobytes(), f"{what}\n{found}\n{truth}"
    passed += 1


def payloads(file, folder):
    """Raw copies: every chunk file is the container's bytes."""
    raw = Path(file).read_bytes()
    stat = json.loads(orthant("stat", f"{file}:/v", "--chunks", "--json"))["chunks"]
    stored = sorted(raw[c["offset"]:c["offset"] + c["stored_bytes"]] for c in stat if c["state"] == "stored")
    files = sorted(p.read_bytes() for p in Path(folder).rglob("*") if p.is_file() and p.name[0] not in ".z")
    assert [f for f in files if f in set(stored)] == stored and len(files) >= len(stored)
    return len(stored)


def main():
    subprocess.run(["cargo", "build", "--quiet", "-p", "orthant-cli"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        folder, copied = Path(folder), 0
        grids = [((-7, 12), (-3, 10), ("4,5", "0,0")), ((-8, 12), (-5, 10), ("4,5", "0,0")), ((3, 17), (0, 9), ("4,5", "3,0"))]
        codecs = ["raw", "portable", "default", "archive", "delta,lz4,crc32c"]
        for n, ((y, x, (chunks, origin)), pipeline, dtype, shard) in enumerate(
                itertools.product(grids, codecs, ["<i4", "<f8", "U2"], [None, "8,10"])):
            if dtype != "<i4" and "delta" in pipeline or dtype == "U2" and pipeline != "default":
                continue
            file, truth = folder / f"{n}.orth", np.arange((y[1] - y[0]) * (x[1] - x[0])).reshape(y[1] - y[0], -1)
            truth = np.array([f"{v % 89}" for v in truth.ravel()], "<U2").reshape(truth.shape) if dtype == "U2" else truth.astype(dtype)
            orthant("create", f"{file}:/v", f"--domain={y[0]}:{y[1]},{x[0]}:{x[1]}", "--chunks", chunks, f"--origin={origin}",
                    "--dtype", dtype, "--dims", "y,x", f"--codecs={pipeline}", *(["--shard", shard] if shard else []))
            np.save(folder / "block.npy", truth)
            orthant("put", f"{file}:/v", folder / "block.npy")
            orthant("put", f"{file}:/v[{y[0]}:{y[0] + 9},:]", "--value", 1)
            truth[:9] = 1
            for version, mode in itertools.product((3, 2), (None, "pad", "recode")):
                out = folder / f"{n}-{version}-{mode}"
                refused = bool(shard and version == 2)
                told = json.loads(orthant("export", file, out, "--format", f"zarr{version}", "--json",
                                          *(["--aligned", mode] if mode else []), code=int(refused)))["arrays"][0]
                if refused:
                    assert "shards" in told["reason"]
                    continue
                array = zarr.open_array(out / "v", mode="r")
                place = array.attrs.get("orthant") or {"pad": [0, 0]}
                if mode == "pad":
                    cut = tuple(slice(p, None) for p in place["pad"])
                    same(f"{n} {version} {mode}", array[...][cut], truth)
                else:
                    assert place["pad"] == [0, 0]
                    same(f"{n} {version} {mode}", array[...], truth)
                if "inclusive_min" in place:
                    assert place["inclusive_min"] == [y[0], x[0]] and place["exclusive_max"] == [y[1], x[1]]
                if told["result"] in ("raw", "padded") and version == 3:
                    copied += payloads(file, out)
                if pipeline == "portable" and dtype != "U2" and mode is None:
                    driver = {"driver": f"zarr{'' if version == 2 else 3}", "kvstore": {"driver": "file", "path": f"{out}/v/"}}
                    if version == 3:
                        same(f"tensorstore {n}", tensorstore.open(driver).result().read().result(), truth)
    print(f"note: {passed} exports equal, {copied} payloads byte for byte the container's")


if __name__ == "__main__":
    main()
