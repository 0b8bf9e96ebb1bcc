"""The peers of the comparison that live in Python. Started by `--bin peers`, driven line by line (see `python.rs`).

Holds one class a peer, each with `write`, `read` (into memory touched before, where it can), `fresh`, and small reads.
Every peer may use two threads, compresses as its users would (Blosc with byte shuffle, where it has that), and writes to
the same folder. Nothing is compared within the timed part; results are compared after it.
"""

import os
import shutil
import sys
import time

os.environ.setdefault("BLOSC_NTHREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("ICECHUNK_LOG", "error")

import numpy as np

FOLDER, SHAPE = sys.argv[1], tuple(map(int, sys.argv[2:5]))
CUBE = np.fromfile(os.path.join(FOLDER, "cube.f32"), "<f4").reshape(SHAPE)
BUFFER = np.ones(SHAPE, "<f4")
ALL = (slice(None),) * 3
STRIDED = (slice(None, None, 4),) * 3
SMALL_READS = 40
MASK = (1 << 64) - 1


class Random:
    """The numbers of `data.rs` (splitmix64)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, end):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 1) % end

    def part(self, verb):
        place = [self.below(n) for n in SHAPE]
        lengths = {
            "box": (16, 16, 16),
            "series": (SHAPE[0], 1, 1),
            "map": (1, SHAPE[1], SHAPE[2]),
        }.get(verb, (1, 1, 1))
        starts = [min(p, n - length) for p, n, length in zip(place, SHAPE, lengths)]
        return tuple(slice(s, s + length) for s, length in zip(starts, lengths))


class Peer:
    """One peer. `create` makes an empty store and gives a handle, `open` one to read; a handle takes slices."""

    shards = False

    def path(self, codec, sides):
        return os.path.join(FOLDER, f"{type(self).__name__}-{codec}-{sides.replace('/', '_')}")

    def write(self, path, codec, chunk, inner):
        raise NotImplementedError

    def open(self, path):
        raise NotImplementedError

    def get(self, handle, part):
        return handle[part]

    def get_into(self, handle, out):
        """Reads all; False where only new memory can be filled."""
        return False

    def close(self, handle):
        pass


class H5py(Peer):
    def __init__(self):
        import h5py
        import hdf5plugin

        self.h5py, self.plugin = h5py, hdf5plugin
        self.name = f"h5py {h5py.__version__}"

    def write(self, path, codec, chunk, inner):
        kept = {} if codec == "raw" else self.plugin.Blosc(cname=codec, clevel=1, shuffle=1)
        with self.h5py.File(path, "w") as f:
            f.create_dataset("cube", data=CUBE, chunks=chunk, **kept)
            f.flush()

    def open(self, path):
        return self.h5py.File(path, "r")["cube"]

    def get_into(self, handle, out):
        handle.read_direct(out)
        return True

    def close(self, handle):
        handle.file.close()


class ZarrPython(Peer):
    shards = True

    def __init__(self):
        import zarr

        self.zarr = zarr
        zarr.config.set({"threading.max_workers": 2})
        self.name = f"zarr-python {zarr.__version__}"

    def create(self, store, codec, chunk, inner):
        compressors = None
        if codec != "raw":
            compressors = [self.zarr.codecs.BloscCodec(cname=codec, clevel=1, shuffle="shuffle")]
        return self.zarr.create_array(
            store, shape=SHAPE, dtype="f4", compressors=compressors, filters=None,
            chunks=inner or chunk, shards=chunk if inner else None, overwrite=True,
        )  # fmt: skip

    def write(self, path, codec, chunk, inner):
        self.create(path, codec, chunk, inner)[...] = CUBE

    def prepend(self, path):
        """A row before 1000 x 1000: there is no other way than to write all of it anew."""
        old = np.full((1000, 1000), 1.5, "<f4")
        options = {"dtype": "f4", "chunks": (100, 100), "compressors": None, "filters": None}
        self.zarr.create_array(path + ".old", shape=old.shape, overwrite=True, **options)[...] = old

        def anew():
            all_of_it = self.zarr.open_array(path + ".old", mode="r")[...]
            grown = np.concatenate([np.full((1, 1000), 2.5, "<f4"), all_of_it])
            made = self.zarr.create_array(path + ".new", shape=grown.shape, overwrite=True, **options)
            made[...] = grown

        return timed(anew)[0]

    def open(self, path):
        return self.zarr.open_array(path, mode="r")

    def get_into(self, handle, out):
        from zarr.core.buffer import default_buffer_prototype

        buffer = default_buffer_prototype().nd_buffer.from_numpy_array(out)
        handle.get_basic_selection(ALL, out=buffer)
        return True


class Icechunk(ZarrPython):
    shards = False

    def __init__(self):
        super().__init__()
        import icechunk

        self.icechunk = icechunk
        self.name = f"icechunk {icechunk.__version__}"

    def repository(self, path, make):
        storage = self.icechunk.local_filesystem_storage(path)
        return (self.icechunk.Repository.create if make else self.icechunk.Repository.open)(storage)

    def write(self, path, codec, chunk, inner):
        session = self.repository(path, True).writable_session("main")
        self.create(session.store, codec, chunk, inner)[...] = CUBE
        session.commit("cube")

    def open(self, path):
        session = self.repository(path, False).readonly_session("main")
        return self.zarr.open_array(session.store, mode="r")


class TensorStore(Peer):
    shards = True
    driver = "zarr3"

    def __init__(self):
        import tensorstore

        self.ts = tensorstore
        self.context = tensorstore.Context({
            "cache_pool": {"total_bytes_limit": 0},
            "data_copy_concurrency": {"limit": 2},
            "file_io_sync": False,
        })  # fmt: skip
        from importlib.metadata import version

        self.name = f"tensorstore {version('tensorstore')}"

    def spec(self, path):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": path + "/"}}

    def write(self, path, codec, chunk, inner):
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if codec != "raw":
            codecs.append({
                "name": "blosc",
                "configuration": {"cname": codec, "clevel": 1, "shuffle": "shuffle", "typesize": 4},
            })  # fmt: skip
        if inner:
            configuration = {"chunk_shape": list(inner), "codecs": codecs}
            codecs = [{"name": "sharding_indexed", "configuration": configuration}]
        spec = self.spec(path) | {
            "metadata": {
                "shape": list(SHAPE), "data_type": "float32", "codecs": codecs,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            }
        }  # fmt: skip
        self.ts.open(spec, create=True, context=self.context).result().write(CUBE).result()

    def open(self, path):
        return self.ts.open(self.spec(path), context=self.context).result()

    def get(self, handle, part):
        return handle[part].read().result()

    def get_into(self, handle, out):
        self.ts.array(out).write(handle).result()
        return True


class Ocdbt(TensorStore):
    shards = False

    def __init__(self):
        super().__init__()
        self.name += " ocdbt"

    def spec(self, path):
        base = {"driver": "file", "path": path + "/"}
        return {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": base, "path": "cube/"}}


class Blosc2(Peer):
    """Blocks of its chunks stand for inner chunks."""

    shards = True

    def __init__(self):
        import blosc2

        self.b2 = blosc2
        blosc2.set_nthreads(2)
        self.name = f"blosc2 {blosc2.__version__}"

    def write(self, path, codec, chunk, inner):
        b2 = self.b2
        named = {"zstd": b2.Codec.ZSTD, "lz4": b2.Codec.LZ4}.get(codec, b2.Codec.BLOSCLZ)
        kept = b2.CParams(
            codec=named, clevel=0 if codec == "raw" else 1, typesize=4, nthreads=2,
            filters=[b2.Filter.NOFILTER if codec == "raw" else b2.Filter.SHUFFLE],
        )  # fmt: skip
        more = {"blocks": inner} if inner else {}
        b2.asarray(CUBE, chunks=chunk, urlpath=path, mode="w", cparams=kept, **more)

    def open(self, path):
        return self.b2.open(path, mode="r")

    def get_into(self, handle, out):
        handle.get_slice_numpy(out, ((0, 0, 0), SHAPE))
        return True


class TileDb(Peer):
    def __init__(self):
        import tiledb

        self.td = tiledb
        self.context = tiledb.Ctx({
            "sm.compute_concurrency_level": "2", "sm.io_concurrency_level": "2",
            "sm.tile_cache_size": "0",
        })  # fmt: skip
        self.name = f"tiledb {tiledb.__version__}"

    def write(self, path, codec, chunk, inner):
        td = self.td
        named = {"zstd": td.ZstdFilter, "lz4": td.LZ4Filter}.get(codec)
        filters = td.FilterList([td.ByteShuffleFilter(), named(level=1)] if named else [])
        axes = [
            td.Dim(name, domain=(0, n - 1), tile=c, dtype=np.int32)
            for name, n, c in zip("tyx", SHAPE, chunk)
        ]
        attr = td.Attr(name="", dtype=np.float32, filters=filters)
        td.Array.create(path, td.ArraySchema(domain=td.Domain(*axes), attrs=[attr]))
        with td.open(path, "w", ctx=self.context) as array:
            array[:] = CUBE

    def open(self, path):
        return self.td.open(path, "r", ctx=self.context)

    def close(self, handle):
        handle.close()


def triple(side):
    return (int(side),) * 3 if side else None


class Driver:
    def __init__(self):
        self.peers, self.handles = {}, {}
        for kind in (H5py, ZarrPython, Icechunk, TensorStore, Ocdbt, Blosc2, TileDb):
            try:
                peer = kind()
            except ImportError as e:
                print(f"{kind.__name__}: {e}", file=sys.stderr)
                continue
            self.peers[peer.name] = peer

    def run(self, name, verb, codec, sides, seed):
        peer = self.peers[name]
        chunk, inner = (*map(triple, sides.split("/")), None)[:2]
        if inner and not peer.shards:
            return None
        path = peer.path(codec, sides)
        if verb == "prepend":
            return peer.prepend(path)
        if verb == "size":
            return size_of(path)
        if verb == "write":
            self.forget(path)
            shutil.rmtree(path, ignore_errors=True)
            if os.path.exists(path):
                os.remove(path)
            return timed(lambda: peer.write(path, codec, chunk, inner))[0]
        if verb == "open":
            self.forget(path)
            return timed(lambda: peer.get(peer.open(path), (slice(0, 1),) * 3))[0]
        if path not in self.handles:
            self.handles[path] = peer.open(path)
        handle = self.handles[path]
        if verb == "read":
            seconds, done = timed(lambda: peer.get_into(handle, BUFFER))
            if done is False:
                return None
            same(BUFFER, ALL)
            return seconds
        if verb == "fresh":
            return timed(lambda: peer.get(handle, ALL))[0]
        if verb == "strided":
            seconds, found = timed(lambda: peer.get(handle, STRIDED))
            same(found, STRIDED)
            return seconds
        random, total = Random(int(seed)), 0.0
        reads = 8 if verb == "map" else SMALL_READS
        for _ in range(reads):
            part = random.part(verb)
            seconds, found = timed(lambda: peer.get(handle, part))
            total += seconds
            same(found, part)
        return total / reads

    def forget(self, path):
        if path in self.handles:
            self.peers_of(path).close(self.handles.pop(path))

    def peers_of(self, path):
        return next(p for p in self.peers.values() if os.path.basename(path).startswith(type(p).__name__ + "-"))


def timed(work):
    began = time.perf_counter()
    made = work()
    return time.perf_counter() - began, made


def same(found, part):
    if not np.array_equal(np.asarray(found).reshape(CUBE[part].shape), CUBE[part]):
        raise ValueError("other values")


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(at, f)) for at, _, files in os.walk(path) for f in files)


def main():
    answers = os.fdopen(os.dup(1), "w")
    # What libraries print is no answer.
    os.dup2(2, 1)
    driver = Driver()
    print("\t".join(driver.peers), file=answers, flush=True)
    for line in sys.stdin:
        try:
            seconds = driver.run(*line.rstrip("\n").split("\t"))
            print("no" if seconds is None else f"ok {seconds!r}", file=answers, flush=True)
        except Exception as e:  # noqa: BLE001 - the other side decides
            print("error", type(e).__name__, str(e).replace("\n", " ")[:300], file=answers, flush=True)


main()
