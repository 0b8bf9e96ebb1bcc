#!/usr/bin/env python3
"""Import of HDF5: time beside a copy of the file and beside recoding, and the most anonymous memory held.

    cargo build --release -p orthant-cli
    python benches/import_hdf5.py FOLDER        # h5py, numpy; about 4 GB of room; Linux, for the memory

The files: 1 GiB of f32 under shuffle and deflate in chunks of 1 MiB; 600,000 chunks of one element, in a tree and in a fixed
array; a million texts of any length.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np

ORTHANT = Path(__file__).resolve().parents[1] / "target/release/orthant"


def files(folder):
    rng = np.random.default_rng(1)
    with h5py.File(folder / "cube.h5", "w") as f:
        d = f.create_dataset("a", (1024, 1024, 256), "<f4", chunks=(1, 1024, 256), shuffle=True,
                             compression="gzip", compression_opts=1)
        slabs = [rng.integers(0, 1 << 20, (1024, 256)).astype("f4") for _ in range(8)]
        for i in range(1024):
            d[i] = slabs[i % 8] + i
    for name, libver in [("tree.h5", "v108"), ("fixed_array.h5", "v110")]:
        with h5py.File(folder / name, "w", libver=libver) as f:
            f.create_dataset("t", data=np.arange(600_000, dtype="i4").reshape(600, 1000), chunks=(1, 1))
    with h5py.File(folder / "text.h5", "w") as f:
        f.create_dataset("s", data=[f"word{i}" * 5 for i in range(1_000_000)], dtype=h5py.string_dtype())


def run(folder, name, *flags):
    """Seconds, and the most anonymous memory seen, in MiB."""
    target = folder / "x.orth"
    target.unlink(missing_ok=True)
    began, peak = time.time(), 0
    child = subprocess.Popen([ORTHANT, "import", folder / name, target, "-q", *flags])
    while child.poll() is None:
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
            peak = max([peak] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")])
        except OSError:
            pass
        time.sleep(0.002)
    assert child.returncode == 0, name
    return time.time() - began, peak / 1024


def main():
    folder = Path(sys.argv[1])
    if not (folder / "text.h5").exists():
        files(folder)
    for _ in range(3):
        began = time.time()
        with open(folder / "cube.h5", "rb") as source, open(folder / "copy", "wb") as copy:
            while block := source.read(1 << 20):
                copy.write(block)
            os.fsync(copy.fileno())
        copied = time.time() - began
        adopted, recoded = run(folder, "cube.h5"), run(folder, "cube.h5", "--recode")
        print(f"copied {copied:.2f} s, adopted {adopted[0]:.2f} s, recoded {recoded[0]:.2f} s: "
              f"{adopted[0] / copied:.2f} of a copy, {recoded[0] / adopted[0]:.1f} times as fast as recoding; "
              f"{adopted[1]:.0f} and {recoded[1]:.0f} MiB")
    for name in ("tree.h5", "fixed_array.h5", "text.h5"):
        seconds, peak = run(folder, name)
        print(f"{name} {seconds:.2f} s, {peak:.0f} MiB")


if __name__ == "__main__":
    main()
