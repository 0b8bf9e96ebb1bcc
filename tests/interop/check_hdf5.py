#!/usr/bin/env python3
"""Every chunk that `orthant import` adopts from HDF5 is the file's, byte for byte, by h5py's read_direct_chunk.

    .venv/bin/python tests/interop/check_hdf5.py [FILE...]

Without files: those of cli/tests/data/hdf5, and of ../shared/data (or ORTHANT_SHARED/data) where it is there.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("ORTHANT_SHARED", ROOT.parent / "shared")) / "data"


def orthant(*args):
    ran = subprocess.run([ROOT / "target/debug/orthant", *args, "--json"], capture_output=True, text=True)
    assert ran.returncode <= 1, f"{args}: {ran.stderr}"
    return json.loads(ran.stdout)


def compare(file, folder):
    """How many chunks of the file are compared, and how many of its arrays."""
    target = Path(folder, "x.orth")
    target.unlink(missing_ok=True)
    rows = orthant("import", str(file), str(target))["arrays"]
    rows = [row for row in rows if row["result"] == "adopted" and row["chunks"]]
    chunks = 0
    with h5py.File(file) as f, open(target, "rb") as raw:
        for row in rows:
            dataset = f[row["source"]]
            rank = len(dataset.chunks)
            for chunk in orthant("stat", f"{target}:{row['path']}", "--chunks")["chunks"]:
                start = tuple(c * n for c, n in zip(chunk["coord"], dataset.chunks))
                assert len(start) == rank
                _, wanted = dataset.id.read_direct_chunk(start)
                raw.seek(chunk["offset"])
                found = raw.read(chunk["stored_bytes"])
                assert found == wanted, f"{file} {row['source']} {start}"
                chunks += 1
    return chunks, len(rows)


def main():
    subprocess.run(["cargo", "build", "--quiet", "-p", "orthant-cli"], cwd=ROOT, check=True)
    files = [Path(name) for name in sys.argv[1:]]
    if not files:
        files = [p for p in sorted((ROOT / "cli/tests/data/hdf5").iterdir()) if p.suffix in (".h5", ".nc")]
        for kind in ("hdf5", "netcdf4"):
            files += sorted(p for p in (SHARED / kind).rglob("*") if p.is_file())
        if not SHARED.is_dir():
            print(f"note: skipped {SHARED}, which is not there")
    chunks = arrays = seen = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            try:
                h5py.File(file).close()
            except OSError:
                continue  # classic netCDF, and what h5py does not open
            done = compare(file, folder)
            chunks, arrays, seen = chunks + done[0], arrays + done[1], seen + 1
    assert chunks
    print(f"note: {chunks} adopted chunks of {arrays} arrays in {seen} files are the files' own bytes")


if __name__ == "__main__":
    main()
