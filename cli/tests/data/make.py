"""Makes the foreign files of this folder with NumPy: each NAME.npy and the bytes its elements have in C order, NAME.raw.

Run in this folder; needs numpy only.
"""

import numpy as np


def raw(a):
    """C order, little-endian, packed; text as UCS-4 of its width."""
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes()


def save(name, a):
    np.save(f"{name}.npy", a)
    with open(f"{name}.raw", "wb") as f:
        f.write(raw(a))


cube = np.arange(2 * 3 * 5, dtype="<i4").reshape(2, 3, 5) - 7
save("fortran_i4", np.asfortranarray(cube))
save("big_endian_f8", (cube / 3).astype(">f8"))
save("big_endian_fortran_c8", np.asfortranarray(cube + 1j * cube[::-1]).astype(">c8"))
save("text_u4", np.array([["a", "", "é✓x"], ["b,c", 'd"e', "line\n"]], dtype="<U4"))
save("bool", np.array([[True, False, True]]))
save("datetime_s", np.array(["1969-12-31T23:59:59", "NaT", "2020-02-29"], dtype="<M8[s]"))
save("record", np.array([(1, -1.5), (2, np.inf)], dtype=[("a", "<i2"), ("b,c", "<f8")]))
save("scalar_u8", np.array(2**64 - 1, dtype="<u8"))
save("empty_f4", np.zeros((0, 3), dtype="<f4"))
save("half_f2", np.array([1.5, -0.0, np.nan, 65504], dtype="<f2"))
np.savez_compressed("two.npz", temp=np.asfortranarray(cube), time=np.arange(5) * 10)
np.save("object.npy", np.array([None]), allow_pickle=True)
