"""What the peers of the whole-step benchmark share: options, data, and the JSON document that bench/peers/compare.py reads."""
import argparse
import gzip
import json
import os
import statistics
import sys

import numpy as np


def arguments(description, more=None):
    """The options of every peer; `more` adds a peer's own to the parser."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["mlp", "cnn"])
    parser.add_argument("--layers", default="784,512,256,10")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--data", default="synthetic", choices=["synthetic", "fashion-mnist"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--optimizer", choices=["adam", "adamw", "sgd"], default="adam")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=0, help="0: by epochs")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="0: as the peer chooses")
    parser.add_argument("--seed", type=int, default=1)
    if more:
        more(parser)
    args = parser.parse_args()
    args.sizes = [int(n) for n in args.layers.split(",")]
    args.shape, args.classes = ((1, 28, 28), 10) if args.model == "cnn" else ((args.sizes[0],), args.sizes[-1])
    return args


def read_idx(path):
    with gzip.open(path) as f:
        rank = f.read(4)[3]
        shape = np.frombuffer(f.read(4 * rank), dtype=">u4")
        return np.frombuffer(f.read(), dtype=np.uint8).reshape([int(n) for n in shape]).copy()


def load(args):
    """Training and test arrays: samples u8 or f32, labels i64."""
    if args.data == "fashion-mnist":
        folder = os.path.join(os.environ["TUTTI_DATA_DIR"], "fashion-mnist") if "TUTTI_DATA_DIR" in os.environ else \
            "/usr/share/datasets/fashion-mnist"
        return [(read_idx(f"{folder}/{part}-images-idx3-ubyte.gz").reshape(-1, 1, 28, 28),
                 read_idx(f"{folder}/{part}-labels-idx1-ubyte.gz").astype(np.int64)) for part in ("train", "t10k")]
    random = np.random.default_rng(args.seed)
    prototypes = random.uniform(-1, 1, (args.classes, *args.shape)).astype(np.float32)
    halves = []
    for n in (8192, 2048):
        y = random.integers(0, args.classes, n)
        halves.append((prototypes[y] + random.uniform(-1, 1, (n, *args.shape)).astype(np.float32), y))
    return halves


def report(args, engine, device, parameters, threads, losses, accuracy, train_s, times, first_s):
    """Prints the document with the keys of `tutti train --json` that mean the same; `times`: ms of every step."""
    json.dump({
        "engine": engine,
        "device": device,
        "model": args.model,
        "parameters": parameters,
        "batch": args.batch,
        "steps": len(times),
        "threads": threads,
        "loss": losses[-1],
        "accuracy": accuracy,
        "first_step_s": first_s,
        "train_s": train_s,
        "samples_per_s": len(times) * args.batch / train_s,
        "step_ms_median": statistics.median(times[10:] or times),
    }, sys.stdout)
    print()
