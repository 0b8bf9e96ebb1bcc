#!/usr/bin/env python3
"""Import of an adoptable Zarr store against encoding it anew and against copying its files.

    ORTHANT=target/release/orthant .venv/bin/python tests/interop/bench_import.py [MiB] [FOLDER]

Three codecs, chunks of 1 MiB, best of three runs each, sources in the page cache. Nothing is synced by `cp`; the import's
commit is. Not run by CI; `benches/FIGURES.md` keeps its output.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

ORTHANT = os.environ.get("ORTHANT", "target/release/orthant")


def timed(args, out):
    best = None
    for _ in range(3):
        shutil.rmtree(out, ignore_errors=True)
        Path(out).unlink(missing_ok=True)
        os.sync()
        began = time.perf_counter()
        subprocess.run(args, check=True, capture_output=True)
        best = min(best or 1e9, time.perf_counter() - began)
    shutil.rmtree(out, ignore_errors=True)
    Path(out).unlink(missing_ok=True)
    return best


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    rng = np.random.default_rng(1)
    print(f"{mib} MiB of float32 | stored MiB | adopt s | --verify s | --recode s | cp s | recode/adopt | adopt/cp")
    for name, codecs in {
        "zstd 3": dict(compressors=zarr.codecs.ZstdCodec(level=3)),
        "gzip 6": dict(compressors=zarr.codecs.GzipCodec(level=6)),
        "blosc lz4": dict(compressors=zarr.codecs.BloscCodec(cname="lz4", clevel=5)),
    }.items():
        with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
            store, out = f"{folder}/s.zarr", f"{folder}/x.orth"
            array = zarr.create_array(store, shape=(mib, 512, 512), chunks=(1, 512, 512), dtype="f4", fill_value=0, **codecs)
            for i in range(mib):
                array[i] = np.round(np.cumsum(rng.standard_normal((512, 512), "f4"), axis=1), 2)
            size = sum(p.stat().st_size for p in Path(store).rglob("*") if p.is_file())
            run = [ORTHANT, "import", "-q", store, out]
            adopt, verify, recode = timed(run, out), timed([*run, "--verify"], out), timed([*run, "--recode"], out)
            copy = timed(["cp", "-r", store, f"{folder}/copy"], f"{folder}/copy")
            print(f"{name} | {size >> 20} | {adopt:.2f} | {verify:.2f} | {recode:.2f} | {copy:.2f} | {recode / adopt:.1f} | {adopt / copy:.1f}", flush=True)


if __name__ == "__main__":
    main()
