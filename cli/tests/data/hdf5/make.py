#!/usr/bin/env python3
"""Makes the HDF5 and netCDF files beside this script, and `expected.json`: what other software reads in them.

    python make.py          # h5py 3.16, netCDF4 1.7, numpy

`sha256` is of the elements in C order, little-endian and packed; of text a u32 count before each. `chunks` are digests of
chunks as they are stored, for arrays whose chunks a container reads as they are.
"""

import hashlib
import json
import os
import struct

import h5py
import netCDF4
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
os.chdir(HERE)
rng = np.random.default_rng(20)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def packed(values):
    """The bytes that a digest is of."""
    values = np.asarray(values)
    if values.dtype.kind == "O":
        texts = [v if isinstance(v, bytes) else v.encode() for v in values.ravel()]
        return b"".join(struct.pack("<I", len(t)) + t for t in texts)
    if values.dtype.names:
        columns = [(n, values.dtype[n].newbyteorder("<")) for n in values.dtype.names]
        out = np.empty(values.shape, columns)
        for name in values.dtype.names:
            out[name] = values[name]
        return out.tobytes()
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def stored(dataset):
    """Digests of a dataset's chunks by their coordinates."""
    found = {}
    for i in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(i)
        _, data = dataset.id.read_direct_chunk(info.chunk_offset)
        key = ".".join(str(o // c) for o, c in zip(info.chunk_offset, dataset.chunks))
        found[key] = sha(data)
    return found


SETTINGS = {
    "none": {},
    "shuffle": dict(shuffle=True),
    "gzip": dict(compression="gzip", compression_opts=4),
    "shuffle_gzip": dict(shuffle=True, compression="gzip"),
    "fletcher": dict(fletcher32=True),
    "shuffle_gzip_fletcher": dict(shuffle=True, compression="gzip", fletcher32=True),
    "lzf": dict(compression="lzf"),
    "scaleoffset": dict(scaleoffset=3),
}
ADOPTED = [s for s in SETTINGS if s not in ("lzf", "scaleoffset")]


def settings(file, libver):
    """Every filter over aligned and ragged grids, in every index that this version of the library makes."""
    expected = {}
    with h5py.File(file, "w", libver=libver) as f:
        field = rng.normal(0, 20, (24, 30)).round(2).astype("<f4")
        whole = (rng.integers(-400, 400, (24, 30))).astype(">i2")
        for name, options in SETTINGS.items():
            for kind, values in [("f4", field), ("i2be", whole)]:
                if name == "scaleoffset" and kind == "f4":
                    continue
                if name == "scaleoffset":
                    options = dict(scaleoffset=11)
                path = f"{name}_{kind}"
                d = f.create_dataset(path, data=values, chunks=(8, 10), **options)
                expected[path] = (d, name in ADOPTED)
        d = f.create_dataset("single", data=field, chunks=(24, 30), compression="gzip")
        expected["single"] = (d, True)
        d = f.create_dataset("grows", data=field, chunks=(8, 10), maxshape=(None, 30), compression="gzip")
        expected["grows"] = (d, True)
        d = f.create_dataset("grows_twice", data=field, chunks=(8, 10), maxshape=(None, None), shuffle=True)
        expected["grows_twice"] = (d, True)
        space = h5py.h5s.create_simple((24, 30))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 10))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(f.id, b"early", h5py.h5t.NATIVE_FLOAT, space, plist)
        f["early"][...] = field
        expected["early"] = (f["early"], True)
        # A ragged grid, a fill value, and chunks that are not there.
        d = f.create_dataset("holes", (21, 33), "<i4", chunks=(8, 10), fillvalue=-7, compression="gzip")
        d[0:8, 10:20] = 5
        d[16:21, 30:33] = 6
        expected["holes"] = (d, None)
        # A chunk that skipped the second of its filters.
        d = f.create_dataset("masked", (16,), "<u2", chunks=(8,), shuffle=True, compression="gzip")
        d[:8] = np.arange(8)
        raw = np.arange(100, 108, dtype="<u2")
        planes = raw.view("u1").reshape(8, 2).T.tobytes()
        d.id.write_direct_chunk((8,), planes, filter_mask=2)
        expected["masked"] = (d, True)
    with h5py.File(file) as f:
        expected = {path: (f[path], adopted) for path, (_, adopted) in expected.items()}
        return {
            "/" + path: {
                "sha256": sha(packed(d[...])),
                "result": {True: "adopted", False: "recoded", None: None}[adopted],
                "chunks": stored(d) if adopted else {},
            }
            for path, (d, adopted) in expected.items()
        }


def types(file):
    """Types, layouts, attributes, links, and a block of the user's before it all."""
    arrays, refused = {}, []
    with h5py.File(file, "w", libver=("earliest", "v110"), userblock_size=1024) as f:
        f.attrs["title"] = "types"
        f.attrs["numbers"] = np.array([1.5, np.nan, -0.0], ">f8")
        f.attrs["huge"] = np.uint64(2**64 - 1)
        f.attrs["words"] = ["one", "zwei"]
        f.attrs["nothing"] = h5py.Empty("f4")

        def add(path, values, **options):
            d = f.create_dataset(path, data=values, **options)
            arrays["/" + path] = {"sha256": sha(packed(d[...])), "result": None, "chunks": {}}
            return d

        add("scalar", np.float64(-2.5))
        add("half", np.array([1.5, -0.0, 65504], "f2"))
        add("complex", np.array([1 + 2j, -3.5j]))
        add("text", np.array([b"a", b"bcd", b""], "S4"))
        add("spaces", np.array([b"a  ", b"bcd"], "S3"))
        add("words", ["one", "", "dr\u00e9i"], dtype=h5py.string_dtype())
        add("words_in_chunks", [["one", "two"], ["", "four"]], dtype=h5py.string_dtype(), chunks=(1, 2))
        add("truth", np.array([True, False, True]), chunks=(2,))
        add("level", np.array([2, -1, 7], ">i2"), dtype=h5py.enum_dtype({"LOW": -1, "HIGH": 2}, ">i2"))
        add("opaque", np.array([b"\x01\x02\x03", b"\xff\0\0"], "V3"))
        add("when", np.array(["2001-02-03", "NaT"], "M8[s]").astype(h5py.opaque_dtype("M8[s]")))
        record = np.array([(1, 2.5, b"ab"), (-1, np.nan, b"")], [("n", "i2"), ("x", "f8"), ("s", "S3")])
        add("record", record, chunks=(2,), compression="gzip")
        add("record_be", record.astype([("n", ">i2"), ("x", ">f8"), ("s", "S3")]))
        add("record_gaps", record.astype(np.dtype([("n", "i2"), ("x", "f8"), ("s", "S3")], align=True)))
        add("pairs", np.arange(12, dtype="<i4").reshape(3, 2, 2)).attrs["note"] = np.arange(3, dtype="i1")
        add("nested/deep/er", np.arange(5, dtype=">u4"))
        rows = h5py.h5t.array_create(h5py.h5t.STD_I16LE, (3,))
        d = h5py.h5d.create(f.id, b"rows", rows, h5py.h5s.create_simple((4,)))
        values = np.arange(12, dtype="<i2").reshape(4, 3)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, rows)
        arrays["/rows"] = {"sha256": sha(packed(values)), "result": None, "chunks": {}}
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((3,)), compact)
        f["compact"][...] = [1, -2, 3]
        arrays["/compact"] = {"sha256": sha(packed(f["compact"][...])), "result": None, "chunks": {}}
        f["none"] = h5py.Empty("f4")
        arrays["/none"] = {"sha256": sha(b""), "result": None, "chunks": {}}
        f.create_dataset("unwritten", (1000, 1000, 1000), ">f4", fillvalue=3.5)
        # Axes.
        t = add("t", np.arange(4) * 6.0)
        t.make_scale()
        grid = add("grid", np.arange(12, dtype="f4").reshape(4, 3), chunks=(4, 3))
        grid.dims[0].attach_scale(t)
        grid.dims[1].label = "station"
        grid.attrs["units"] = "K"
        # Links.
        f["nested/up"] = f["/"]
        f["nested/soft"] = h5py.SoftLink("/scalar")
        f["nested/again"] = f["half"]
        arrays["/nested/again"] = arrays["/half"]
        f["elsewhere"] = h5py.ExternalLink("other.h5", "/x")
        f["named_type"] = np.dtype("<i4")
        # What is not taken.
        f.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        f.create_dataset("references", (2,), h5py.ref_dtype)
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("outside", (4,), "i4", external=[("other.bin", 0, 16)])
        refused += ["/elsewhere", "/lists", "/references", "/virtual", "/outside"]
    with open(file, "r+b") as f:
        f.write(b"# a block of the user's\n")
    return arrays, refused


def classic(file, form):
    """Records of several variables, padding between them, fixed variables, text."""
    with netCDF4.Dataset(file, "w", format=form) as f:
        f.title = "classic"
        f.createDimension("time", None)
        f.createDimension("x", 3)
        f.createVariable("x", "i2", ("x",))[:] = [3, 1, -2]
        v = f.createVariable("a", "i1", ("time", "x"), fill_value=-9)
        v[:] = np.arange(15).reshape(5, 3)
        v.valid_range = np.array([-9, 100], "i1")
        f.createVariable("b", "f8", ("time",))[:] = np.arange(5) / 3
        f.createVariable("letters", "S1", ("x",))[:] = np.array([b"p", b"q", b"r"])
        f.createVariable("one", "i4", ()).assignValue(77)
        if form == "NETCDF3_64BIT_DATA":
            f.createVariable("big", "u8", ("time",))[:] = np.array([2**64 - 1, 0, 1, 2, 3], "u8")
    with netCDF4.Dataset(file) as f:
        f.set_auto_mask(False)
        return {
            "/" + name: {"sha256": sha(packed(v[...])), "result": "recoded", "chunks": {}}
            for name, v in f.variables.items()
        }


def climate(file):
    """netCDF-4 as its own library writes it."""
    with netCDF4.Dataset(file, "w") as f:
        f.Conventions = "CF-1.8"
        f.createDimension("time", None)
        f.createDimension("lat", 4)
        f.createDimension("lon", 6)
        f.createDimension("bounds", 2)
        v = f.createVariable("time", "f8", ("time",))
        v.units, v.calendar = "days since 2000-01-01", "noleap"
        v[:] = np.arange(3)
        f.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-60, 60, 4)
        f.createVariable("lon", "f4", ("lon",))[:] = np.arange(6) * 60
        v = f.createVariable("tas", "i2", ("time", "lat", "lon"), fill_value=-32768, zlib=True, chunksizes=(1, 4, 6))
        v.scale_factor, v.add_offset, v.units = np.float32(0.01), 273.15, "K"
        v.set_auto_maskandscale(False)
        v[:] = rng.integers(-3000, 3000, (3, 4, 6))
        g = f.createGroup("model").createGroup("ocean")
        g.createVariable("depth", ">f4", ("lat", "lon"))[:] = rng.normal(size=(4, 6))
        names = f.createEnumType("u1", "surface", {"land": 0, "sea": 1})
        f.createVariable("mask", names, ("lat",))[:] = np.array([0, 1, 1, 0], "u1")
    expected = {}
    with h5py.File(file) as f:
        def visit(path, d):
            if isinstance(d, h5py.Dataset):
                adopted = d.chunks is not None and path != "time"
                expected["/" + path] = {
                    "sha256": sha(packed(d[...])),
                    "result": "adopted" if adopted else None,
                    "chunks": stored(d) if adopted else {},
                }
        f.visititems(visit)
    return expected


expected = {}
for file, libver in [("old.h5", ("earliest", "v108")), ("new.h5", ("v110", "v110")), ("newest.h5", ("latest", "latest"))]:
    expected[file] = {"arrays": settings(file, libver), "refused": []}
arrays, refused = types("types.h5")
expected["types.h5"] = {"arrays": arrays, "refused": refused}
expected["climate.nc"] = {"arrays": climate("climate.nc"), "refused": []}
for file, form in [
    ("classic.nc", "NETCDF3_CLASSIC"),
    ("offset64.nc", "NETCDF3_64BIT_OFFSET"),
    ("data64.nc", "NETCDF3_64BIT_DATA"),
]:
    expected[file] = {"arrays": classic(file, form), "refused": []}
with open("expected.json", "w") as out:
    json.dump(expected, out, indent=1, sort_keys=True)
    out.write("\n")
