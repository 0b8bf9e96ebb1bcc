"""Flips bytes of small files of other formats and reads them back: what this format's figures stand beside.

    python tests/interop/flip_peers.py [--trials 2000] [NAME...]

One array of 64 x 64 int32 in chunks of 16 x 16; one byte XOR 0xFF at a time, at evenly spaced places; the whole array read in
a process of its own, five seconds at most. Formats whose library is not installed are skipped and said so. With `--orthant
PATH` the command is asked too.
"""

import argparse
import multiprocessing
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import numpy

RIGHT = numpy.arange(64 * 64, dtype="<i4").reshape(64, 64)
PATIENCE = 5


def hdf5(libver, **filters):
    def make(path):
        import h5py

        with h5py.File(path, "w", libver=libver) as f:
            f.create_dataset("a", data=RIGHT, chunks=(16, 16), **filters).attrs["units"] = "K"

    def read(path):
        import h5py

        with h5py.File(path, "r") as f:
            assert f["a"].attrs["units"] == "K"
            return f["a"][...]

    return make, read


def sqlite():
    def make(path):
        with sqlite3.connect(path) as db:
            db.execute("create table a (y integer, x integer, chunk blob, primary key (y, x))")
            for y in range(4):
                for x in range(4):
                    part = RIGHT[y * 16 : y * 16 + 16, x * 16 : x * 16 + 16].tobytes()
                    db.execute("insert into a values (?, ?, ?)", (y, x, part))
        db.close()

    def read(path):
        out = numpy.zeros_like(RIGHT)
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for y, x, part in db.execute("select y, x, chunk from a"):
            out[y * 16 : y * 16 + 16, x * 16 : x * 16 + 16] = numpy.frombuffer(part, "<i4").reshape(16, 16)
        db.close()
        return out

    return make, read


def blosc2():
    def make(path):
        import blosc2

        blosc2.asarray(RIGHT, chunks=(16, 16), urlpath=str(path), mode="w")

    def read(path):
        import blosc2

        return blosc2.open(str(path), mode="r")[...]

    return make, read


def tiff():
    def make(path):
        import tifffile

        tifffile.imwrite(path, RIGHT, tile=(16, 16), compression="zlib")

    def read(path):
        import tifffile

        return tifffile.imread(path)

    return make, read


def zarr_zip():
    def make(path):
        import zarr

        with zarr.storage.ZipStore(path, mode="w") as store:
            zarr.create_array(store, shape=RIGHT.shape, chunks=(16, 16), dtype="i4")[...] = RIGHT

    def read(path):
        import zarr

        with zarr.storage.ZipStore(path, mode="r") as store:
            return zarr.open_array(store, mode="r")[...]

    return make, read


def orthant(command):
    def make(path):
        raw = path.with_suffix(".raw")
        raw.write_bytes(RIGHT.tobytes())
        name = f"{path}:/a"
        for args in (["create", name, "--domain", "0:64,0:64", "--chunks", "16,16", "--dtype", "i32"],
                     ["put", name, str(raw), "--format", "raw"], ["attr", "set", name, "units", "K"]):
            subprocess.run([command, "-q", *args], check=True)

    def read(path):
        done = subprocess.run([command, "get", f"{path}:/a", "--format", "raw", "-o", "-"], capture_output=True)
        if done.returncode == 4 or done.returncode == 3:
            raise ValueError(done.stderr)
        assert done.returncode == 0, done.returncode
        # A file that opened on its older slot says so: that is an answer, not a wrong value.
        if b"note:" in done.stderr and done.stdout != RIGHT.tobytes():
            raise ValueError("older, and told")
        return numpy.frombuffer(done.stdout, "<i4").reshape(64, 64)

    return make, read


FORMATS = {
    "HDF5 earliest": hdf5("earliest"),
    "HDF5 earliest, gzip": hdf5("earliest", compression="gzip"),
    "HDF5 latest, gzip and fletcher32": hdf5("latest", compression="gzip", fletcher32=True),
    "SQLite": sqlite(),
    "Blosc2": blosc2(),
    "TIFF, zlib tiles": tiff(),
    "Zarr v3 in zip": zarr_zip(),
}


def worker(read, pipe):
    while True:
        path = pipe.recv()
        try:
            found = read(path)
            same = found.shape == RIGHT.shape and bool((found == RIGHT).all())
            pipe.send("right" if same else "wrong")
        except Exception:  # noqa: BLE001 - any error is an answer
            pipe.send("error")


class Reader:
    def __init__(self, read):
        self.read, self.process = read, None

    def ask(self, path):
        if self.process is None:
            self.pipe, other = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=worker, args=(self.read, other), daemon=True)
            self.process.start()
        self.pipe.send(path)
        try:
            if self.pipe.poll(PATIENCE):
                return self.pipe.recv()
        except EOFError:
            pass
        # No answer, or the process has ended: neither is one.
        self.process.kill()
        self.process.join()
        self.process = None
        return "none"


def sweep(name, make, read, trials, folder):
    path = folder / ("file.orth" if name == "orthant" else "file")
    make(path)
    good = path.read_bytes()
    reader, counts = Reader(read), {"right": 0, "error": 0, "wrong": 0, "none": 0}
    step = max(1, len(good) // trials)
    for at in range(0, len(good), step):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        path.write_bytes(bad)
        counts[reader.ask(path)] += 1
    if reader.process is not None:
        reader.process.kill()
    total = sum(counts.values())
    print(f"| {name} | {len(good)} | {total} | " + " | ".join(str(n) for n in counts.values()) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--orthant")
    args = parser.parse_args()
    formats = dict(FORMATS)
    if args.orthant:
        formats["orthant"] = orthant(args.orthant)
    print("| format | bytes | flips | right | error | wrong | no answer |\n|---|---|---|---|---|---|---|")
    for name, (make, read) in formats.items():
        if args.names and name not in args.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                sweep(name, make, read, args.trials, pathlib.Path(folder))
            except ImportError as missing:
                print(f"skipped: {name}: {missing}", file=sys.stderr)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
