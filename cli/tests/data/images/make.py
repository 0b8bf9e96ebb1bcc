#!/usr/bin/env python3
"""Writes the images of this folder with other software, and `images.json`: what each array of them decodes to there.

    python3 -m venv v && v/bin/pip install numpy==2.4.6 tifffile imagecodecs nibabel && v/bin/python make.py

A value of `images.json` is the SHA-256 of the elements (C order, little-endian), or `refused: WORD`.
"""

import gzip
import hashlib
import json
from pathlib import Path

import nibabel
import numpy as np
import tifffile

HERE = Path(__file__).parent
found = {}


def sha(array):
    array = np.ascontiguousarray(array)
    return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def ramp(dtype, *shape):
    array = (np.arange(np.prod(shape)) * 7 % 251).reshape(shape).astype(dtype)
    return array - array.dtype.type(3) if np.issubdtype(array.dtype, np.floating) else array


def nifti(name, array, endianness="<", two=False, slope=None):
    header = (nibabel.Nifti2Header if two else nibabel.Nifti1Header)(endianness=endianness)
    header.set_data_dtype(array.dtype.newbyteorder(endianness))
    header["descrip"] = b"a ramp"
    image = (nibabel.Nifti2Image if two else nibabel.Nifti1Image)(array, np.diag([2, 3, 4, 1]), header)
    if slope:
        image.header.set_slope_inter(*slope)
    nibabel.save(image, HERE / name)
    again = nibabel.load(HERE / name)
    found[name] = {"data": sha(np.asarray(again.dataobj.get_unscaled()))}


def tiff(name, pages, **options):
    with tifffile.TiffWriter(HERE / name, byteorder=options.pop("byteorder", "<"), bigtiff=options.pop("big", False)) as out:
        for page in pages:
            out.write(page, metadata=None, software=False, **options)
    with tifffile.TiffFile(HERE / name) as again:
        found[name] = {
            f"series{i}/level{j}": sha(level.asarray())
            for i, series in enumerate(again.series)
            for j, level in enumerate(series.levels)
        }


def refuse(name, word):
    found[name] = {inside: f"refused: {word}" for inside in found[name]}


def chunks(root, key, array, offset, chunk, pack):
    """A scale of a precomputed volume; `array` has axes x, y, z and maybe c."""
    folder = root / key
    folder.mkdir(parents=True, exist_ok=True)
    for x in range(0, array.shape[0], chunk[0]):
        for y in range(0, array.shape[1], chunk[1]):
            for z in range(0, array.shape[2], chunk[2]):
                part = array[x : x + chunk[0], y : y + chunk[1], z : z + chunk[2]]
                low = [a + o for a, o in zip((x, y, z), offset)]
                name = "_".join(f"{a}-{a + n}" for a, n in zip(low, part.shape))
                data = part.tobytes(order="F")
                (folder / (name + (".gz" if pack else ""))).write_bytes(gzip.compress(data, mtime=0) if pack else data)


def volume(name, channels):
    shape = (5, 4, 3) + ((channels,) if channels > 1 else ())
    array, offset, chunk = ramp("<u2", *shape), [-3, 0, 7], [2, 4, 2]
    scales = []
    for key, encoding, pack in [("s0", "raw", False), ("deep/s1", "raw", True), ("s2", "jpeg", None), ("s3", "compressed_segmentation", None), ("s4", "raw", None), ("../s5", "raw", None)]:
        scale = {"key": key, "size": [5, 4, 3], "resolution": [8, 8, 40], "voxel_offset": offset, "chunk_sizes": [chunk], "encoding": encoding}
        if key == "s4":
            scale["sharding"] = {"@type": "neuroglancer_uint64_sharded_v1"}
        scales.append(scale)
        if pack is not None:
            chunks(HERE / name, key, array, offset, chunk, pack)
    info = {"@type": "neuroglancer_multiscale_volume", "type": "image", "data_type": "uint16", "num_channels": channels, "scales": scales}
    (HERE / name / "info").write_text(json.dumps(info))
    found[name] = {"/s0": sha(array), "/deep/s1": sha(array), "/s2": "refused: jpeg", "/s3": "refused: compressed_segmentation", "/s4": "refused: shards", "/../s5": "refused: key"}


def main():
    nifti("be.nii", ramp("i2", 4, 3, 2), ">", slope=(0.5, 1))
    nifti("packed.nii.gz", ramp("f4", 3, 4, 2, 5))
    nifti("two.nii", ramp("u1", 5, 3), two=True)

    tiff("strips_lzw.tif", [ramp("u2", 21, 17)], compression="lzw", predictor=2, rowsperstrip=4)
    tiff("strips_plain.tif", [ramp("i4", 9, 7)], byteorder=">", rowsperstrip=2)
    tiff("strips_rgb.tif", [ramp("u1", 9, 7, 3)], photometric="rgb", compression="deflate", rowsperstrip=4)
    tiff("tiles_be.tif", [ramp("i2", 40, 33)], byteorder=">", tile=(16, 16), compression="deflate")
    tiff("tiles_float.tif", [ramp("f4", 20, 33)], tile=(16, 16), compression="deflate", predictor=3)
    tiff("tiles_zstd.tif", [ramp("f8", 20, 33)], tile=(16, 16), compression="zstd", big=True)
    tiff("planes.tif", [ramp("u1", 3, 20, 17)], tile=(16, 16), photometric="rgb", planarconfig="separate", compression="lzw")
    tiff("stack.tif", [ramp("u2", 6, 5) + i for i in range(3)], compression="packbits")
    tiff("bits.tif", [ramp("u1", 11, 13) % 2 == 0], compression="deflate")
    tiff("palette.tif", [ramp("u1", 8, 9)], photometric="palette", colormap=np.zeros((3, 256), "u2"))
    tiff("white.tif", [ramp("u1", 8, 9)], photometric="miniswhite", compression="lzw")
    tiff("jpeg.tif", [ramp("u1", 16, 16)], compression="jpeg", tile=(16, 16))
    refuse("jpeg.tif", "JPEG")
    with tifffile.TiffWriter(HERE / "pyramid.tif") as out:
        base = ramp("u2", 64, 48)
        geo = [(33550, "d", 3, (10.0, 10.0, 0.0), True), (33922, "d", 6, (0, 0, 0, 500000.0, 4600000.0, 0), True), (42113, "s", 0, "65535", True)]
        options = {"tile": (16, 16), "compression": "deflate", "metadata": None, "software": False}
        out.write(base, extratags=geo, **options)
        out.write(base[::2, ::2], subfiletype=1, **options)
        out.write(base[::4, ::4], subfiletype=1, **options)
    found["pyramid.tif"] = {f"series0/level{i}": sha(base[:: 2**i, :: 2**i]) for i in range(3)}

    volume("volume.precomputed", 1)
    volume("channels.precomputed", 2)
    (HERE / "images.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
