#!/usr/bin/env python3
"""Writes the images of a data set as PNG files in folders by class, as `--data images:DIR` reads them.

usage: make-image-folder.py TUTTI SPEC FOLDER [--count N] [--turns 36]

TUTTI is the command, SPEC what `tutti data` takes: fashion-mnist, orientation:128:9000:1000, synthetic:… or any set of images u8
[1 or 3, H, W] with a label. FOLDER gets train/CLASS/*.png and test/CLASS/*.png, at most N of each half. Where a set has an angle
in place of labels, as orientation has, the class is the nearest of --turns equal turns, named by its degrees.
"""
import argparse
import ast
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib


def png(channels, height, width, planes):
    """The bytes of a PNG of 8 bits per channel; `planes`: u8 [channels, height, width]."""
    pixels = bytearray(len(planes))
    for c in range(channels):
        pixels[c::channels] = planes[c * height * width:(c + 1) * height * width]
    row = width * channels
    raw = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def array(file, name):
    """Shape, dtype and bytes of an array of a .npz file."""
    with file.open(name + ".npy") as npy:
        assert npy.read(8) == b"\x93NUMPY\x01\x00", name
        header = ast.literal_eval(npy.read(struct.unpack("<H", npy.read(2))[0]).decode())
        return header["shape"], header["descr"], npy.read()


def classes(file, prefix, turns):
    """A class name for every sample."""
    names = {n.removesuffix(".npy") for n in file.namelist()}
    if prefix + "label" in names:
        shape, dtype, data = array(file, prefix + "label")
        if len(shape) != 1 or dtype != "<i4":
            sys.exit(f"make-image-folder: the labels are {dtype} {shape}, expected one number per image")
        labels = struct.unpack(f"<{shape[0]}i", data)
        digits = len(str(max(labels)))
        return [f"{x:0{digits}}" for x in labels]
    if prefix + "angle" not in names:
        sys.exit(f"make-image-folder: neither label nor angle among {', '.join(sorted(names))}")
    shape, _, data = array(file, prefix + "angle")
    values = struct.unpack(f"<{2 * shape[0]}f", data)
    steps = [round(math.atan2(s, c) / math.tau * turns) % turns for s, c in zip(values[::2], values[1::2])]
    return [f"{k * 360 / turns:05.1f}" for k in steps]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tutti")
    p.add_argument("spec")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--count", type=int)
    p.add_argument("--turns", type=int, default=36)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as made:
        packed = pathlib.Path(made) / "set.npz"
        if code := subprocess.run([o.tutti, "data", o.spec, "--output", packed], stdout=subprocess.DEVNULL).returncode:
            sys.exit(code)
        with zipfile.ZipFile(packed) as file:
            for half, prefix in (("train", ""), ("test", "test.")):
                (count, *form), dtype, data = array(file, prefix + "input")
                if dtype != "|u1" or len(form) != 3 or form[0] not in (1, 3):
                    sys.exit(f"make-image-folder: the images are {dtype} {form}, expected u8 [1 or 3, H, W]")
                size = math.prod(form)
                names = classes(file, prefix, o.turns)
                count = min(count, o.count or count)
                for name in set(names[:count]):
                    (o.folder / half / name).mkdir(parents=True, exist_ok=True)
                for i in range(count):
                    image = png(*form, data[i * size:(i + 1) * size])
                    (o.folder / half / names[i] / f"{i:06}.png").write_bytes(image)
                print(f"{o.folder / half}: {count} images of {len(set(names[:count]))} classes")


if __name__ == "__main__":
    main()
