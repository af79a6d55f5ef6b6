#!/usr/bin/env python3
"""The loss of `tutti train gpt --size char` on a text beside the same model in PyTorch.

Both start from the weights that Tutti draws and see the same samples in the same order: Tutti's shuffle is Philox's, computed
here as data/loader.cpp does. Dropout 0, AdamW, f32.
Prints both losses every 20 steps and the mean of the last 50, and exits 1 where these differ by more than 2 %.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

from zoo import gpt

ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--device", default="onednn:0")
    parser.add_argument("--lr", type=float, default=1e-3)
    o = parser.parse_args()
    batch, context, seed = 8, 256, 1
    with tempfile.TemporaryDirectory() as folder:
        start = pathlib.Path(folder) / "start.safetensors"
        base = [ROOT / "build/release/bin/tutti", "train", "gpt", "--size", "char", "--data", f"text:{o.text}", "--quiet",
                "--no-eval", "--json", "--device", o.device, "--seed", str(seed)]
        subprocess.run([*base, "--steps", "1", "--lr", "0", "--weight-decay", "0", "--checkpoint", start], check=True,
                       stdout=subprocess.DEVNULL)
        first = read(start)
        ours = json.loads(subprocess.run([*base, "--steps", str(o.steps), "--lr", str(o.lr)], check=True,
                                         stdout=subprocess.PIPE).stdout)["losses"]
    text = o.text.read_text(encoding="utf-8")
    known = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([known[c] for c in text])
    train = tokens[:len(tokens) - len(tokens) // 10]
    model = gpt.Gpt(len(known), context, 6, 6, 384)
    model.load_state_dict({k: v for k, v in first.items() if not k.startswith("optimizer.")})
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=1e-2, fused=True)
    samples = (len(train) - 1) // context
    per_epoch, theirs = samples // batch, []
    for step in range(o.steps):
        rows = order(samples, seed, step // per_epoch)[step % per_epoch * batch:][:batch]
        x = torch.stack([train[i * context:(i + 1) * context] for i in rows])
        y = torch.stack([train[i * context + 1:(i + 1) * context + 1] for i in rows])
        optimizer.zero_grad()
        loss = gpt.loss(model, {"tokens": x, "next": y})
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
        if step % 20 == 0 or step + 1 == o.steps:
            print(f"step {step + 1:4}  tutti {ours[step]:.5f}  torch {theirs[step]:.5f}", flush=True)
    a, b = (sum(x[-50:]) / len(x[-50:]) for x in (ours, theirs))
    print(f"largest difference {max(abs(a - b) for a, b in zip(ours, theirs)):.5f}")
    print(f"mean of the last 50: tutti {a:.5f}, torch {b:.5f}, ratio {a / b:.5f}")
    return 0 if abs(a / b - 1) <= 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
