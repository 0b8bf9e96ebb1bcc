#!/usr/bin/env python3
"""Opens containers through `orthant refs`: with zarr-python over files and HTTP ranges, Icechunk, xarray and Dask.

    .venv/bin/python tests/interop/check_refs.py

Every codec combination, true zeros and NaN, absent and constant chunks, signed domains that end inside chunks, chunks
within shards, references that are older than a hundred commits. What is read is compared bit by bit with what NumPy holds,
and the bytes that the server sends are counted.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import icechunk
import numpy as np
import xarray as xr
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore

warnings.simplefilter("ignore")
ROOT = Path(__file__).resolve().parents[2]
passed = 0
COMPRESSORS = ["", "lz4", "zstd:3", "zlib:6", "gzip:5"]
FILTERS = ["", "shuffle", "delta", "delta,shuffle"]
TYPES = {"u1": "|u1", "i2": "<i2", "i4": "<i4", "i8": "<i8", "f4": "<f4", "f8": "<f8", "c16": "<c16", "b1": "|b1",
         "f2": "<f2", "S5": "|S5", "U3": "<U3", "M8": "<M8[s]", "V3": "|V3"}


class Ranges(BaseHTTPRequestHandler):
    """Files of a folder, whole or by byte ranges; keeps what was asked for."""

    folder, asked, protocol_version = None, [], "HTTP/1.1"

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        path = self.folder / Path(self.path).name
        asked, size = self.headers.get("Range"), path.stat().st_size
        first, last = 0, size - 1
        if asked:
            low, _, high = asked.removeprefix("bytes=").partition("-")
            first, last = int(low), min(int(high or last), last)
        with path.open("rb") as file:
            file.seek(first)
            body = file.read(last + 1 - first)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.asked.append((Path(self.path).name, first, len(body)))
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """Readers ask for many chunks at once."""

    request_queue_size, daemon_threads = 512, True


def orthant(*arguments, code=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def equal(what, found, truth):
    global passed
    found, truth = np.ascontiguousarray(found), np.ascontiguousarray(truth)
    same = found.shape == truth.shape and found.astype(truth.dtype).tobytes() == truth.tobytes()
    assert same, f"{what}: differs\n{found}\n{truth}"
    passed += 1


def opened(references, **remote):
    """A zarr group over references."""
    fs = fsspec.filesystem("reference", fo=str(references), asynchronous=True, **remote)
    return zarr.open_group(FsspecStore(fs, read_only=True), mode="r")


def elements(dtype, shape):
    """Anything but fill: true zeros among them, and NaN where there is one."""
    n = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        return np.array([f"{i % 700:x}" for i in range(n)], dtype).reshape(shape)
    if dtype.kind == "V":
        return np.frombuffer(np.random.default_rng(1).bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
    if dtype.kind == "M":
        return (np.arange(n, dtype="i8") * 86399 - 10**6).astype(dtype).reshape(shape)
    values = (np.arange(n) % 251).astype(dtype).reshape(shape)
    if dtype.kind == "f":
        values[values == 7] = np.nan
    return values


def combinations(folder):
    """Every codec combination, plain and in shards; the arrays by name."""
    file, truth, number = folder / "codecs.orth", {}, 0
    orthant("create", file)
    for filters in FILTERS:
        for compressor in COMPRESSORS:
            for tail in ("", "crc32c", "fletcher32"):
                codecs = ",".join(filter(None, [filters, compressor, tail])) or "raw"
                for shard in ([], ["--shard", "8,10"]):
                    if shard and tail == "fletcher32":
                        continue
                    name, number = f"a{number:03}", number + 1
                    put(folder, file, name, "<i4", codecs, shard, truth)
    for code, dtype in TYPES.items():
        for profile in ("default", "portable", "archive", "raw"):
            put(folder, file, f"{code}_{profile}", dtype, profile, [], truth)
    return file, truth


def put(folder, file, name, dtype, codecs, shard, truth):
    """A 19 x 13 array at signed coordinates, its last rows never written, one chunk constant."""
    values = elements(dtype, (19, 13))
    kind = np.dtype(dtype).kind
    fill = {"b": "false", "S": "", "U": "", "V": "AAAA", "M": "NaT", "f": "nan", "c": "0"}.get(kind, "-1" if kind == "i" else "3")
    orthant("create", f"{file}:/{name}", "--domain", "-7:12,-3:10", "--chunks", "4,5", *shard, "--dims", f"y{name},x{name}",
            "--dtype", dtype, f"--codecs={codecs}", f"--fill={fill}")
    np.save(folder / "block.npy", values[:13])
    orthant("put", f"{file}:/{name}[-7:6,:]", folder / "block.npy")
    values[13:] = {"f": np.nan, "M": np.datetime64("NaT"), "i": -1, "u": 3}.get(kind, np.zeros((), values.dtype))
    if kind in "iuf":
        orthant("put", f"{file}:/{name}[-4:0,0:5]", "--value", "5")
        values[3:7, 3:8] = 5
    truth[name] = values


def compare(what, group, truth):
    for name, values in truth.items():
        found = group[name][...]
        low = group[name].attrs["orthant_pad"]
        cut = tuple(slice(p, p + n) for p, n in zip(low, values.shape))
        equal(f"{what} {name}", found[cut], values)


def codecs_over_file_and_http(folder, server):
    file, truth = combinations(folder)
    http = {"remote_protocol": "http", "remote_options": {"asynchronous": True}}
    for version in (3, 2):
        for inner in ([], ["--inner"]):
            code = 0 if version == 3 or inner else 1
            name = f"codecs-{version}{''.join(inner)}"
            orthant("refs", file, "--zarr", version, *inner, "-o", folder / f"{name}.json", code=code)
            orthant("refs", file, "--zarr", version, *inner, "-o", folder / f"{name}-http.json",
                    "--url", f"{server}/codecs.orth", code=code)
            readable = truth if not code else {k: v for k, v in truth.items() if k in opened(folder / f"{name}.json")}
            assert len(readable) > 100
            compare(f"{name} file", opened(folder / f"{name}.json"), readable)
            compare(f"{name} http", opened(folder / f"{name}-http.json", **http), readable)
    compare("icechunk", icechunk_repository(folder, folder / "codecs-3.json"), truth)


def icechunk_repository(folder, references):
    """The same references as virtual references of an Icechunk repository."""
    url = f"file://{folder}/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(url, icechunk.local_filesystem_store(f"{folder}/")))
    storage = icechunk.local_filesystem_storage(str(folder / "icechunk"))
    repo = icechunk.Repository.create(storage, config, authorize_virtual_chunk_access={url: None})
    session, make = repo.writable_session("main"), default_buffer_prototype().buffer.from_bytes
    refs = json.loads(references.read_text())["refs"]
    for key in sorted(refs, key=lambda key: not key.endswith("zarr.json")):
        value = refs[key]
        if isinstance(value, list):
            session.store.set_virtual_ref(key, f"file://{value[0]}", offset=value[1], length=value[2])
        else:
            data = base64.b64decode(value[7:]) if value.startswith("base64:") else value.encode()
            sync(session.store.set(key, make(data)))
    session.commit("references")
    return zarr.open_group(repo.readonly_session("main").store, mode="r")


def signed_in_xarray(folder, server):
    file = folder / "signed.orth"
    values = elements("<f4", (19, 13))
    values[2] = 0
    for name, chunks in (("v", "4,5"), ("w", "6,5")):
        orthant("create", f"{file}:/{name}", "--domain", "-7:12,-3:10", "--chunks", chunks, "--dims", "y,x", "--dtype", "f32",
                "--fill", "0")
        np.save(folder / "block.npy", values)
        orthant("put", f"{file}:/{name}", folder / "block.npy")
    orthant("create", f"{file}:/x", "--domain", "-3:10", "--chunks", "13", "--dims", "x", "--dtype", "f64")
    np.save(folder / "block.npy", np.arange(-3, 10) * 0.5 + 100)
    orthant("put", f"{file}:/x", folder / "block.npy")
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster):
        for version in (3, 2):
            for url in (file, f"{server}/signed.orth"):
                refs = folder / "signed.json"
                orthant("refs", file, "--zarr", version, "--url", url, "-o", refs, "--force")
                options = {"fo": str(refs)} | ({"remote_protocol": "http", "remote_options": {"asynchronous": True}} if url != file else {})
                ds = xr.open_zarr("reference://", storage_options=options, zarr_format=version, consolidated=False, chunks={})
                for name in ("v", "w"):
                    # Labels name both ends: slice(-7, 12) takes -7 to 11, the last there is.
                    part = ds[name].sel(y=slice(-7, 12), x=slice(98.5, 104.5))
                    equal(f"sel {name} {version} {url}", part.compute().values, values)
                    equal(f"one {name}", ds[name].sel(y=-5).isel(x=slice(2, 15)).compute().values, values[2])
                    # True zeros and the fill around the domain stay zero.
                    equal("NaN in two processes", ds[name].isnull().sum().compute().values, np.isnan(values).sum())
                assert ds.x.values[:3].tolist() == [97.5, 98.0, 98.5] and ds.x_index.values[2] == -3, ds


def one_inner_chunk(folder, server):
    """Through references, one chunk of a shard costs the shard's index and that chunk."""
    file, refs = folder / "shard.orth", folder / "shard.json"
    orthant("create", f"{file}:/s", "--domain", "-64:64,0:128", "--chunks", "16,16", "--shard", "64,64", "--dtype", "i32")
    values = elements("<i4", (128, 128))
    np.save(folder / "block.npy", values)
    orthant("put", f"{file}:/s", folder / "block.npy")
    orthant("refs", f"{file}", "--url", f"{server}/shard.orth", "-o", refs)
    array = opened(refs, remote_protocol="http", remote_options={"asynchronous": True})["s"]
    Ranges.asked.clear()
    equal("inner chunk", array[16:32, 0:16], values[16:32, 0:16])
    lengths = sorted(length for name, _, length in Ranges.asked if name == "shard.orth")
    stored = json.loads(refs.read_text())["refs"]["s/c/0/0"][2]
    assert len(lengths) == 2 and 16 * 16 + 4 in lengths and sum(lengths) < stored // 4, (lengths, stored)
    orthant("refs", f"{file}", "--url", f"{server}/shard.orth", "--inner", "-o", refs, "--force")
    inner = json.loads(refs.read_text())["refs"]["s/c/1/0"][2]
    assert inner in lengths, (lengths, inner)
    print(f"note: one inner chunk of a shard of {stored} bytes: {lengths} bytes fetched")
    array = opened(refs, remote_protocol="http", remote_options={"asynchronous": True})["s"]
    Ranges.asked.clear()
    equal("inner chunk, plain", array[16:32, 0:16], values[16:32, 0:16])
    assert [length for _, _, length in Ranges.asked] == [inner], Ranges.asked


def older_than_a_hundred_commits(folder):
    file, refs = folder / "old.orth", folder / "old.json"
    values = elements("<i4", (19, 13))
    orthant("create", f"{file}:/v", "--domain", "-7:12,-3:10", "--chunks", "4,5", "--dims", "y,x", "--dtype", "i32")
    np.save(folder / "block.npy", values)
    orthant("put", f"{file}:/v", folder / "block.npy")
    orthant("refs", file, "-o", refs)
    for i in range(100):
        np.save(folder / "block.npy", values + i + 1)
        orthant("put", f"{file}:/v", folder / "block.npy")
    size = file.stat().st_size
    # A commit writes 1 KiB of elements and an index: without reuse a hundred would take far more than this.
    assert size < 400_000, size
    compare("after 100 commits", opened(refs), {"v": values})
    name = json.loads(orthant("snapshot", "ls", file, "--json"))["snapshots"][0]["name"]
    orthant("compact", file, code=2)
    orthant("snapshot", "rm", file, name, code=2)
    compare("after two refusals", opened(refs), {"v": values})
    orthant("snapshot", "rm", file, name, "--break-references")
    orthant("compact", file)
    print(f"note: 100 commits over references: {size} bytes")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        Ranges.folder = folder
        server = Server(("127.0.0.1", 0), Ranges)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        codecs_over_file_and_http(folder, url)
        signed_in_xarray(folder, url)
        one_inner_chunk(folder, url)
        older_than_a_hundred_commits(folder)
    print(f"note: {passed} comparisons through references, all equal")


if __name__ == "__main__":
    COMMAND = os.environ.get("ORTHANT") or str(ROOT / "target/debug/orthant")
    if not os.environ.get("ORTHANT"):
        subprocess.run(["cargo", "build", "--quiet", "-p", "orthant-cli"], cwd=ROOT, check=True)
    sys.exit(main())
