#!/usr/bin/env python3
"""Small .npz files by NumPy, and what is in them as safetensors.

usage: make_npz.py FOLDER, with `pip install numpy safetensors`; FOLDER gets
  plain.npz, packed.npz, large.npz   the same arrays stored, deflated, and with every size in zip64's fields
  arrays.safetensors                 those arrays, integers of 8 and 16 bits as i32
  big_endian.npz                     the same with the other order of bytes
  objects.npz, records.npz, complex.npz, lzma.npz   what is refused
"""
import io
import pathlib
import sys
import zipfile

import numpy as np
from safetensors.numpy import save_file

random = np.random.default_rng(1)
ARRAYS = {
    "f8": random.normal(size=(2, 3)), "f4": random.normal(size=(4, 1, 5)).astype("f4"), "f2": random.normal(size=7).astype("f2"),
    "i8": random.integers(-2**60, 2**60, 5), "i4": random.integers(-2**31, 2**31, (3, 2)).astype("i4"),
    "i2": np.array([-32768, 0, 32767], "i2"), "i1": np.array([[-128], [127]], "i1"), "u1": random.integers(0, 256, (2, 3, 4)).astype("u1"),
    "u2": np.array([0, 65535], "u2"), "u4": np.array([0, 2**32 - 1], "u4"), "b1": np.array([True, False, True]),
    "scalar": np.float32(2.5), "empty": np.zeros((0, 4), "f4"), "fortran": np.asfortranarray(random.normal(size=(3, 4, 5)).astype("f4")),
    "fortran_i2": np.asfortranarray(np.arange(6, dtype="i2").reshape(2, 3)), "0.weight": np.zeros((64, 64), "f4"),
}


def save_large(path):
    """Sizes and places beyond 32 bits, as zipfile sees them: all stand in zip64's fields."""
    limits = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = -1, 1
    np.savez(path, **ARRAYS)
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = limits


def main():
    folder = pathlib.Path(sys.argv[1])
    np.savez(folder / "plain.npz", **ARRAYS)
    np.savez_compressed(folder / "packed.npz", **ARRAYS)
    save_large(folder / "large.npz")
    wide = {k: v.astype("i4") if v.dtype in (np.int8, np.int16, np.uint16) else v for k, v in ARRAYS.items()}
    save_file({k: np.ascontiguousarray(v).reshape(v.shape) for k, v in wide.items()}, folder / "arrays.safetensors")
    np.savez(folder / "objects.npz", x=np.array([1, "two"], dtype=object))
    np.savez(folder / "records.npz", x=np.zeros(2, [("a", "f4"), ("b", "i4")]))
    np.savez(folder / "big_endian.npz", **{k: np.asarray(v).astype(np.asarray(v).dtype.newbyteorder(">")) for k, v in ARRAYS.items()})
    np.savez(folder / "complex.npz", x=np.zeros(2, "c8"))
    text = io.BytesIO()
    np.save(text, np.zeros(100))
    with zipfile.ZipFile(folder / "lzma.npz", "w", zipfile.ZIP_LZMA) as z:
        z.writestr("x.npy", text.getvalue())


if __name__ == "__main__":
    main()
