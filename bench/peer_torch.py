#!/usr/bin/env python3
"""PyTorch's side of the whole-step benchmark: the models and steps of `tutti train`, in eager mode on the CPU.

One step = take the batch by index from the set in memory, forward, cross-entropy, backward, optimizer (fused). Prints
one JSON document with the keys of `tutti train --json` that mean the same. bench/compare.py runs it.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import sys
import time

import numpy as np
import torch
from torch import nn


def make_model(args):
    if args.model == "cnn":
        layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)]
        return nn.Sequential(*layers), (1, 28, 28), 10
    sizes = [int(n) for n in args.layers.split(",")]
    layers = [nn.Flatten()]
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i + 2 < len(sizes):
            layers.append(nn.ReLU())
            if args.dropout > 0:
                layers.append(nn.Dropout(args.dropout))
    return nn.Sequential(*layers), (sizes[0],), sizes[-1]


def read_idx(path):
    with gzip.open(path) as f:
        rank = f.read(4)[3]
        shape = struct.unpack(f">{rank}I", f.read(4 * rank))
        return torch.from_numpy(np.frombuffer(f.read(), dtype=np.uint8).reshape(shape).copy())


def load(args, shape, classes):
    """Training and test tensors: samples u8 or f32, labels i64."""
    if args.data == "fashion-mnist":
        folder = os.path.join(os.environ["TUTTI_DATA_DIR"], "fashion-mnist") if "TUTTI_DATA_DIR" in os.environ else \
            "/usr/share/datasets/fashion-mnist"
        halves = []
        for part in ("train", "t10k"):
            x = read_idx(f"{folder}/{part}-images-idx3-ubyte.gz").unsqueeze(1)
            halves.append((x, read_idx(f"{folder}/{part}-labels-idx1-ubyte.gz").long()))
        return halves
    g = torch.Generator().manual_seed(args.seed)
    prototypes = torch.rand(classes, *shape, generator=g) * 2 - 1
    halves = []
    for n in (8192, 2048):
        y = torch.randint(classes, (n,), generator=g)
        halves.append((prototypes[y] + torch.rand(n, *shape, generator=g) * 2 - 1, y))
    return halves


def prepare(x):
    return x.float().mul_(1 / 255) if x.dtype == torch.uint8 else x


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["mlp", "cnn"])
    parser.add_argument("--layers", default="784,512,256,10")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--data", default="synthetic", choices=["synthetic", "fashion-mnist"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--optimizer", choices=["adam", "adamw", "sgd"], default="adam")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=0, help="0: by epochs")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="0: as PyTorch chooses")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    if args.threads > 0:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model, shape, classes = make_model(args)
    (x, y), (test_x, test_y) = load(args, shape, classes)
    optimizer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[args.optimizer](
        model.parameters(), lr=args.lr, fused=True)
    loss_of = nn.CrossEntropyLoss()

    per_epoch = len(y) // args.batch
    total = args.steps or args.epochs * per_epoch
    times, losses, loss = [], [], None
    order, epoch_order = None, torch.Generator().manual_seed(args.seed)
    model.train()
    begin = time.perf_counter()
    for step in range(total):
        start = time.perf_counter()
        at = step % per_epoch
        if at == 0:
            order = torch.randperm(len(y), generator=epoch_order)
        batch = order[at * args.batch:(at + 1) * args.batch]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(prepare(x[batch])), y[batch])
        loss.backward()
        optimizer.step()
        if step % 50 == 49 or step == total - 1:
            losses.append(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
    train_s = time.perf_counter() - begin

    model.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(test_y), 256):
            right += int((model(prepare(test_x[i:i + 256])).argmax(1) == test_y[i:i + 256]).sum())
    warm = times[10:] or times
    json.dump({
        "engine": f"PyTorch {torch.__version__}",
        "device": "cpu",
        "model": args.model,
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": args.batch,
        "steps": total,
        "threads": torch.get_num_threads(),
        "loss": losses[-1],
        "accuracy": right / len(test_y),
        "train_s": train_s,
        "samples_per_s": total * args.batch / train_s,
        "step_ms_median": statistics.median(warm),
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main()
