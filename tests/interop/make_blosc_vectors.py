"""Makes `tests/data/codec/blosc_vectors.json`: Blosc 1 frames of numcodecs, with the rule that makes their bytes.

    .venv/bin/python tests/interop/make_blosc_vectors.py

The raw bytes are not stored: word i of `len` bytes is (i // 7) * 3 plus two noisy bits of a linear congruential generator
that starts at `seed`, as the test that reads the file makes them too. Needs numcodecs (`requirements.txt`).
"""

import json
import pathlib
import struct

import numpy as np
from numcodecs import Blosc, blosc

TARGET = pathlib.Path(__file__).parent.parent / "data/codec/blosc_vectors.json"


def raw(seed, length):
    state, words = seed, []
    for i in range(-(-length // 4)):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        words.append(((i // 7) * 3 + ((state >> 28) & 3)) & 0xFFFFFFFF)
    return struct.pack(f"<{len(words)}I", *words)[:length]


def case(seed, length, typesize, cname, clevel, shuffle, blocksize):
    data = np.frombuffer(raw(seed, length), dtype=f"V{typesize}") if length % typesize == 0 else raw(seed, length)
    if length % typesize:
        typesize = 1
    codec = Blosc(cname=cname, clevel=clevel, shuffle=shuffle, blocksize=blocksize)
    frame = bytes(codec.encode(data))
    assert frame[3] == typesize, (frame[3], typesize)
    assert codec.decode(frame) == raw(seed, length)
    return {
        "seed": seed, "len": length, "typesize": typesize, "cname": cname, "clevel": clevel, "shuffle": shuffle,
        "blocksize": blocksize, "flags": frame[2], "frame": frame.hex(),
    }


def main():
    blosc.use_threads = False
    cases = []
    for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in [Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE]:
            for length, typesize, blocksize in [(1200, 4, 0), (2504, 8, 1024), (900, 2, 0)]:
                cases.append(case(len(cases) + 1, length, typesize, cname, 5, shuffle, blocksize))
    # Elements that are no multiple of eight, bytes without an element size, very little, and no compression.
    cases.append(case(90, 1236, 4, "zstd", 1, Blosc.BITSHUFFLE, 0))
    cases.append(case(91, 1501, 4, "lz4", 9, Blosc.SHUFFLE, 0))
    cases.append(case(93, 7, 1, "lz4", 5, Blosc.SHUFFLE, 0))
    cases.append(case(94, 1200, 3, "blosclz", 9, Blosc.BITSHUFFLE, 0))
    cases.append(case(95, 400, 4, "blosclz", 0, Blosc.SHUFFLE, 0))
    cases.append(case(96, 40000, 16, "blosclz", 9, Blosc.SHUFFLE, 0))
    lines = ",\n".join("  " + json.dumps(c) for c in cases)
    TARGET.write_text(f'{{"cases": [\n{lines}\n]}}\n')
    flags = {(c["cname"], c["flags"]) for c in cases}
    print(len(cases), "cases,", TARGET.stat().st_size, "bytes,", sorted(flags))


if __name__ == "__main__":
    main()
