#!/usr/bin/env python3
"""Trains the models that make pictures and draws docs/pictures/NAME.png of each, from what they were not trained on:

  autoencoder   images of Fashion-MNIST (odd rows) and what it makes of them (even rows)
  unet          drawn images, the class of every pixel, and the class that it gives (in threes, side by side)
  vae, diffusion  images drawn from noise by `tutti sample`

About a quarter of an hour on two cores. The data is what each trains on by default: where Fashion-MNIST is not installed
(Debian's package dataset-fashion-mnist), drawn shapes.
"""
import argparse
import ast
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = {"autoencoder": ["--epochs", "3"],
        "unet": ["--epochs", "1", "--schedule", "cosine"],
        "vae": ["--epochs", "10", "--schedule", "cosine"],
        "diffusion": ["--steps", "4000", "--lr", "1e-3", "--schedule", "cosine", "--ema", "0.995", "--no-eval"]}
COLOURS = [(20, 20, 20), (230, 159, 0), (86, 180, 233), (0, 158, 115)]  # of the background and three kinds of figure


def grey(image):
    return [[(int(255 * min(max(x, 0), 1) + 0.5),) * 3 for x in row] for row in image]


def coloured(classes):
    return [[COLOURS[c] for c in row] for row in classes]


def write_png(path, tiles, columns):
    """Tiles of one size, lists of rows of (r, g, b), row by row with a black line between; magnified twice."""
    high, wide = len(tiles[0]), len(tiles[0][0])
    lines = math.ceil(len(tiles) / columns)
    picture = [[(0, 0, 0)] * (columns * (wide + 1) - 1) for _ in range(lines * (high + 1) - 1)]
    for i, tile in enumerate(tiles):
        for y, row in enumerate(tile):
            at = i % columns * (wide + 1)
            picture[i // columns * (high + 1) + y][at:at + wide] = row
    raw = b""
    for row in picture:
        line = b"\0" + b"".join(bytes(p) * 2 for p in row)
        raw += line * 2

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", 2 * len(picture[0]), 2 * len(picture), 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def read_npy(path, samples):
    """The first samples of a NumPy file of f32, each as a flat tuple, and their shape."""
    with open(path, "rb") as file:
        length = struct.unpack("<8xH", file.read(10))[0]
        shape = ast.literal_eval(file.read(length).decode())["shape"]
        each = math.prod(shape[1:])
        return [struct.unpack(f"<{each}f", file.read(4 * each)) for _ in range(samples)], shape[1:]


def read_columns(path, names, samples):
    """The first samples of columns of a safetensors file."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        out = []
        for name in names:
            entry = header[name]
            each, code = math.prod(entry["shape"][1:]), {"U8": "B", "I32": "i", "F32": "f"}[entry["dtype"]]
            width = struct.calcsize("<" + code)
            file.seek(8 + length + entry["data_offsets"][0])
            out.append([struct.unpack(f"<{each}{code}", file.read(width * each)) for _ in range(samples)])
        return out


def rows(flat, width):
    return [flat[i:i + width] for i in range(0, len(flat), width)]


def tutti(options, *args):
    run = subprocess.run([options.binary, *map(str, args)], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout) if run.stdout.startswith(b"{") else None


def draw(options, name, folder, out):
    checkpoint, columns, outputs = (folder / f"{name}.{end}" for end in ("safetensors", "set", "npy"))
    tutti(options, "train", name, *RUNS[name], "--device", options.device, "--checkpoint", checkpoint)
    if name in ("vae", "diffusion"):
        tutti(options, "sample", checkpoint, "--output", out, "--count", 64, "--device", options.device)
        return
    run = tutti(options, "eval", checkpoint, "--json")
    tutti(options, "data", run["data"], "--output", columns)
    tutti(options, "predict", checkpoint, "--output", outputs, "--device", options.device)
    samples = 24 if name == "autoencoder" else 12
    made, shape = read_npy(outputs, samples)
    images, labels = read_columns(columns, ["test.input", "test.label"], samples)
    inputs = [grey(rows([x / 255 for x in image], shape[-1])) for image in images]
    if name == "autoencoder":
        results = [grey(rows(y, shape[-1])) for y in made]
        write_png(out, [tile for i in range(0, samples, 12) for tile in inputs[i:i + 12] + results[i:i + 12]], 12)
        return
    places = shape[1] * shape[2]
    found = [[max(range(shape[0]), key=lambda c: y[c * places + i]) for i in range(places)] for y in made]
    tiles = [[inputs[i], coloured(rows(labels[i], shape[-1])), coloured(rows(found[i], shape[-1]))] for i in range(samples)]
    write_png(out, [tile for three in tiles for tile in three], 6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="only these: " + ", ".join(RUNS))
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--device", default="onednn:0")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/pictures", help="the folder")
    options = parser.parse_args()
    for name in options.models:
        if name not in RUNS:
            parser.error(f"{name} makes no pictures; use {', '.join(RUNS)}")
    options.out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or RUNS:
            draw(options, name, pathlib.Path(folder), options.out / f"{name}.png")
            print(options.out / f"{name}.png", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
