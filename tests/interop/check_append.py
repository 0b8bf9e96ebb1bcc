#!/usr/bin/env python3
"""`import --append` and `--prepend` of netCDF files and Zarr stores, day by day, against xarray's `concat` of them.

    .venv/bin/python tests/interop/check_append.py

Thirty days of six hours: a packed field along time, y, x; a field along x, time; the coordinates. Files of one day each are
appended in order, prepended backwards, and appended several at once; then every array is read back with `orthant get`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

ROOT = Path(__file__).resolve().parents[2]
ORTHANT = ROOT / "target/debug/orthant"
DAYS, STEPS = 30, 4
UNITS = "hours since 2026-01-01"


def day(n):
    rng = np.random.default_rng(n)
    time = np.arange(n * STEPS, (n + 1) * STEPS) * 6
    data = xr.Dataset(
        {
            "temp": (("time", "y", "x"), rng.integers(-900, 900, (STEPS, 7, 5)).astype("i2"), {"scale_factor": 0.1, "units": "K"}),
            "wind": (("x", "time"), rng.standard_normal((5, STEPS)).astype("f4")),
            "mask": (("y", "x"), np.arange(35, dtype="u1").reshape(7, 5)),
        },
        {
            "time": ("time", time.astype("i8"), {"units": UNITS, "calendar": "standard"}),
            "y": ("y", np.linspace(50, 44, 7)),
        },
    )
    return data


def write(data, path, chunks):
    encoding = {name: {"chunksizes": tuple(chunks.get(d, n) for d, n in v.sizes.items())} for name, v in data.variables.items()}
    if path.suffix == ".nc":
        for name in ("temp", "wind"):
            encoding[name] |= {"zlib": True, "shuffle": True, "complevel": 1}
        data.to_netcdf(path, engine="h5netcdf", encoding=encoding, unlimited_dims=["time"])
    else:
        encoding = {name: {"chunks": e["chunksizes"]} for name, e in encoding.items()}
        data.to_zarr(path, encoding=encoding, consolidated=False, zarr_format=3)


def orthant(*args, code=0):
    done = subprocess.run([ORTHANT, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def compare(container, whole, folder):
    for name, variable in whole.variables.items():
        out = folder / "got.npy"
        orthant("get", f"{container}:/{name}", "-o", out, "--force")
        got = np.load(out)
        assert got.dtype == variable.dtype and got.tobytes() == np.ascontiguousarray(variable.values).tobytes(), name
    orthant("check", "--level", "data", container)


def run(suffix, chunks, into, folder):
    days = [day(n) for n in range(DAYS)]
    whole = xr.concat(days, "time", data_vars="minimal", coords="minimal", compat="override", join="override", combine_attrs="override")
    # `wind` has its axes in another order, which concat keeps.
    assert whole["wind"].dims == ("x", "time")
    files = [folder / f"{n:02}{suffix}" for n in range(DAYS)]
    for data, path in zip(days, files):
        write(data, path, chunks)
    more = ["--chunks", into] if into else []
    first, last = folder / "up.orth", folder / "down.orth"
    orthant("import", files[0], first)
    for path in files[1:]:
        orthant("import", path, first, "--append", "time")
    compare(first, whole, folder)
    orthant("import", files[-1], last, *more)
    for path in reversed(files[:-1]):
        orthant("import", path, last, "--prepend", "time")
    compare(last, whole, folder)
    bulk = folder / "bulk.orth"
    orthant("import", files[0], bulk)
    orthant("import", *files[1:], bulk, "--append", "time")
    compare(bulk, whole, folder)
    # Another epoch is another meaning of the same numbers.
    other = days[-1].copy()
    other["time"].attrs["units"] = "hours since 2025-01-01"
    write(other, folder / f"other{suffix}", chunks)
    told = orthant("import", folder / f"other{suffix}", bulk, "--append", "time", code=2)
    assert "2025" in told and "2026" in told, told
    return 2 * (DAYS - 1) + 1


def main():
    subprocess.run(["cargo", "build", "--quiet", "-p", "orthant-cli"], cwd=ROOT, check=True)
    commits = 0
    for suffix in (".nc", ".zarr"):
        for chunks in ({"time": 4, "y": 4}, {"time": 3, "y": 7}):
            with tempfile.TemporaryDirectory() as folder:
                commits += run(suffix, chunks, None, Path(folder))
    print(f"note: {commits} imports that grow, of netCDF and Zarr, equal to xarray's concat")


if __name__ == "__main__":
    main()
