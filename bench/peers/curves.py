#!/usr/bin/env python3
"""The loss of `tutti train MODEL`, step by step, beside the same model in PyTorch (bench/peers/zoo).

Both start from the weights that Tutti draws and see the same samples in the same order: the samples lie in a safetensors file
with all that is drawn at random (noise, times, masks), and Tutti's shuffle is Philox's, computed here as data/loader.cpp does.
f32, the model's default optimizer and learning rate. The samples: Fashion-MNIST for vae and diffusion (Debian's package
dataset-fashion-mnist); discs and squares drawn here for unet; clicks drawn here by a linear rule for dlrm; a text for gpt and
bert.

PyTorch runs again without oneDNN and in float64: by how much its runs differ is rounding that training amplifies.

Prints the losses every 20 steps and the means of the last 50, writes all of them to --json, draws them to --svg, and exits 1
where Tutti's mean differs from PyTorch's by more than 2 % and by more than twice what PyTorch's runs differ.
"""
import argparse
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

import zoo

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 1


def block(seed, step, stream, at):
    """One block of Philox4x32-10 (Salmon et al. 2011) with key = seed and counter = (block, step, stream)."""
    c = [at & 0xffffffff, at >> 32, step & 0xffffffff, stream & 0xffffffff]
    k = [seed & 0xffffffff, seed >> 32]
    for i in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def order(n, seed, epoch):
    """Fisher-Yates with Lemire's bounded numbers, as data::shuffled_order."""
    at, words, out = 0, [], list(range(n))

    def word():
        nonlocal at, words
        if at % 4 == 0:
            words = block(seed, epoch, 0x64617404, at // 4)
        at += 1
        return words[(at - 1) % 4]

    for i in range(n, 1, -1):
        product = word() * i
        if product & 0xffffffff < i:
            while product & 0xffffffff < (1 << 32) % i:
                product = word() * i
        j = product >> 32
        out[i - 1], out[j] = out[j], out[i - 1]
    return out


def read(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    return {k: torch.from_numpy(np.frombuffer(data[8 + length:][slice(*v["data_offsets"])], np.float32).reshape(v["shape"]).copy())
            for k, v in header.items() if k != "__metadata__" and v["dtype"] == "F32"}


def write(path, columns, metadata):
    """As data/sets/safetensors.cpp reads it: training samples, and the first of them again as the test."""
    names = {np.dtype("float32"): "F32", np.dtype("int32"): "I32", np.dtype("uint8"): "U8"}
    header, blobs, at = {"__metadata__": metadata}, [], 0
    for name, column in columns.items():
        for key, values in ((name, column), ("test." + name, column[:1])):
            blob = np.ascontiguousarray(values).tobytes()
            header[key] = {"dtype": names[values.dtype], "shape": values.shape, "data_offsets": [at, at + len(blob)]}
            blobs.append(blob)
            at += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def fashion(count, margin=0):
    raw = gzip.decompress(pathlib.Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz").read_bytes())
    images = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 1, 28, 28)[:count]
    return np.pad(images, ((0, 0), (0, 0), (margin, margin), (margin, margin)))


def vae(rng, count, _):
    return {"input": fashion(count), "noise": rng.standard_normal((count, 20), np.float32)}


def diffusion(rng, count, _):
    return {"input": fashion(count, 2), "noise": rng.standard_normal((count, 1, 32, 32), np.float32),
            "time": rng.integers(0, 1000, count, np.int32)}


def unet(rng, count, _):
    """A disc (class 1), a square (2) and a bar (3) per image, each of another grey than the ground, under noise."""
    y, x = np.mgrid[:64, :64].astype(np.float32)
    images, labels = np.empty((count, 1, 64, 64), np.uint8), np.zeros((count, 64, 64), np.int32)
    for i in range(count):
        image = np.full((64, 64), rng.uniform(60, 120))
        for kind in rng.permutation([1, 2, 3]):
            (cx, cy), r = rng.uniform(8, 56, 2), rng.uniform(6, 14)
            inside = [(x - cx)**2 + (y - cy)**2 <= r * r, np.maximum(abs(x - cx), abs(y - cy)) <= r,
                      (abs(x - cx) <= r / 3) & (abs(y - cy) <= 2 * r)][kind - 1]
            labels[i][inside], image[inside] = kind, rng.choice([rng.uniform(0, 40), rng.uniform(150, 255)])
        images[i, 0] = np.clip(image + rng.normal(0, 8, image.shape), 0, 255)
    return {"input": images, "label": labels}


def dlrm(rng, count, _):
    dense, sparse = rng.uniform(-1, 1, (count, 13)).astype(np.float32), rng.integers(0, 1000, (count, 26, 4), np.int32)
    worth = rng.uniform(-1, 1, (26, 1000))
    score = dense @ rng.uniform(-1, 1, 13) + sum(worth[k][sparse[:, k]].mean(1) for k in range(26))
    return {"dense": dense, "sparse": sparse, "label": (score > 0).astype(np.float32)}


def tokens_of(text):
    known = {c: i for i, c in enumerate(sorted(set(text)))}
    return np.array([known[c] for c in text], np.int32), len(known)


def gpt(rng, count, text):
    """Windows of 256 characters from anywhere in the text, and what follows each character."""
    tokens, _ = tokens_of(text)
    first = rng.integers(0, len(tokens) - 256, count)
    return {"tokens": np.stack([tokens[i:i + 256] for i in first]), "next": np.stack([tokens[i + 1:i + 257] for i in first])}


def bert(rng, count, text):
    """Windows of 128 characters; of 15 % of them 80 % become the mask and 10 % any character."""
    tokens, n = tokens_of(text)
    rows = np.stack([tokens[i:i + 128] for i in rng.integers(0, len(tokens) - 128, count)])
    u = rng.uniform(0, 1, rows.shape)
    changed = np.where(u < 0.12, n, np.where(u < 0.135, rng.integers(0, n, rows.shape), rows)).astype(np.int32)
    return {"tokens": changed, "labels": np.where(u < 0.15, rows, -100).astype(np.int32)}


DRAWN = {f.__name__: f for f in (vae, unet, diffusion, bert, dlrm, gpt)}


def twin_of(name, size, text):
    """The twin at that size; of models of text with as many characters as it has."""
    module = zoo.model(name)
    if name == "bert":
        return module, module.Bert(len(set(text)), *module.SIZES[size][1:])
    if name == "gpt":
        return module, module.Gpt(len(set(text)), *module.SIZES[size][1:])
    return module, module.make(size)


def curve(name, o, folder):
    listed = next(m for m in json.loads(subprocess.run([o.binary, "models", "--json"], check=True, stdout=subprocess.PIPE).stdout)
                  ["models"] if m["name"] == name)
    size, text = listed["sizes"][0], o.text.read_text(encoding="utf-8")
    batch, rng = size["batch"], np.random.default_rng(0)
    columns = DRAWN[name](rng, o.steps * batch, text)
    classes = {"classes.sparse": "1000"} if name == "dlrm" else {}
    data, start = folder / f"{name}.safetensors", folder / f"{name}-start.safetensors"
    write(data, columns, classes)
    base = [o.binary, "train", name, "--data", f"safetensors:{data}", "--batch", str(batch), "--quiet", "--no-eval", "--json",
            "--device", o.device, "--seed", str(SEED)]
    subprocess.run([*base, "--steps", "1", "--optimizer", "sgd", "--lr", "0", "--checkpoint", start], check=True,
                   stdout=subprocess.DEVNULL)
    ours = json.loads(subprocess.run([*base, "--steps", str(o.steps)], check=True, stdout=subprocess.PIPE).stdout)["losses"]

    weights = {k: v for k, v in read(start).items() if not k.startswith("optimizer.")}
    module, model = twin_of(name, size["name"], text)
    lost = model.load_state_dict(weights, strict=False)
    missing = [k for k in lost.missing_keys if not k.endswith("num_batches_tracked")]
    if missing or lost.unexpected_keys:
        raise RuntimeError(f"{name}: parameters {missing} are only PyTorch's, {lost.unexpected_keys} only Tutti's")
    rows = order(o.steps * batch, SEED, 0)
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[listed["optimizer"]]

    def torch_losses(dtype, onednn=True):
        torch.backends.mkldnn.enabled = onednn
        model.load_state_dict(weights, strict=False)
        model.to(dtype)
        optimizer, losses = make(model.parameters(), lr=size["lr"]), []
        for step in range(o.steps):
            at = rows[step * batch:][:batch]
            x = {k: torch.from_numpy(v[at]) for k, v in columns.items()}
            x = {k: v.to(dtype) / 255 if v.dtype == torch.uint8 else v.to(dtype) if v.is_floating_point() else v for k, v in x.items()}
            optimizer.zero_grad()
            loss = module.loss(model, x)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    theirs, others = torch_losses(torch.float32), {"f32 without oneDNN": torch_losses(torch.float32, False),
                                                   "f64": torch_losses(torch.float64)}
    for step in [*range(0, o.steps, 20), o.steps - 1]:
        print(f"{name} step {step + 1:4}  tutti {ours[step]:.5f}  torch {theirs[step]:.5f}  "
              + "  ".join(f"{k} {v[step]:.5f}" for k, v in others.items()), flush=True)

    def mean(losses):
        return sum(losses[-50:]) / len(losses[-50:])

    ratio, spread = mean(ours) / mean(theirs), max(abs(mean(v) / mean(theirs) - 1) for v in others.values())
    print(f"{name}: mean of the last 50: tutti {mean(ours):.5f}, torch {mean(theirs):.5f}, "
          + ", ".join(f"{k} {mean(v):.5f}" for k, v in others.items()) + f"; tutti to torch {ratio:.5f}; largest difference of a "
          f"step {max(abs(a - b) for a, b in zip(ours, theirs)):.2g}", flush=True)
    return {"model": name, "batch": batch, "optimizer": listed["optimizer"], "lr": size["lr"], "ratio": ratio, "spread": spread,
            "tutti": [round(x, 6) for x in ours], "torch": [round(x, 6) for x in theirs]}


def svg(curves):
    """Small multiples: Tutti's loss as a line, PyTorch's as dots over every fourth step."""
    wide, high, pad = 300, 190, 34
    parts = []
    for i, c in enumerate(curves):
        low, top = min(c["tutti"] + c["torch"]), max(c["tutti"] + c["torch"])
        n = len(c["tutti"])

        def at(step, loss):
            return (pad + (wide - 2 * pad) * step / max(n - 1, 1), high - pad - (high - 2 * pad) * (loss - low) / ((top - low) or 1))

        line = " ".join("%.1f,%.1f" % at(*p) for p in enumerate(c["tutti"]))
        dots = "".join('<circle cx="%.1f" cy="%.1f" r="1.6"/>' % at(s, c["torch"][s]) for s in range(0, n, 4))
        parts.append(f'<g transform="translate({i % 3 * wide},{i // 3 * high})"><text x="{pad}" y="20" font-weight="bold">{c["model"]}'
                     f'</text><text x="2" y="{pad + 4}">{top:.3g}</text><text x="2" y="{high - pad + 4}">{low:.3g}</text>'
                     f'<text x="{pad}" y="{high - 16}">step 1</text><text x="{wide - pad}" y="{high - 16}" text-anchor="end">{n}</text>'
                     f'<polyline points="{line}" fill="none" stroke="#2563eb" stroke-width="1.5"/><g fill="#ea580c">{dots}</g></g>')
    width, height = wide * min(len(curves), 3), high * -(-len(curves) // 3)
    key = ('<g transform="translate(8,%d)"><path d="M0 0h24" stroke="#2563eb" stroke-width="2"/><text x="30" y="4">Tutti</text>'
           '<circle cx="82" cy="0" r="2.5" fill="#ea580c"/><text x="90" y="4">PyTorch</text></g>' % (height + 8))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 20}" font-family="sans-serif" font-size="10">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}{key}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=sorted(DRAWN), metavar="MODEL", help=", ".join(sorted(DRAWN)))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="onednn:0")
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path("/usr/share/common-licenses/GPL-3"))
    parser.add_argument("--json", type=pathlib.Path, help="where all losses go")
    parser.add_argument("--svg", type=pathlib.Path, help="where their picture goes")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        curves = [curve(name, o, pathlib.Path(folder)) for name in o.models]
    if o.json:
        o.json.write_text("[\n" + ",\n".join(json.dumps(c) for c in curves) + "\n]\n")
    if o.svg:
        o.svg.write_text(svg(curves))
    return 0 if all(abs(c["ratio"] - 1) <= max(0.02, 2 * c["spread"]) for c in curves) else 1


if __name__ == "__main__":
    sys.exit(main())
