#!/usr/bin/env python3
"""PyTorch's side of the whole-step benchmark: the models and steps of `tutti train`, on the CPU or a CUDA device.

One step = take the batch by index from the set in the device's memory, forward, cross-entropy, backward, optimizer
(fused). Prints one JSON document with the keys of `tutti train --json` that mean the same. bench/peers/compare.py runs it.

Modes: eager; compile, reduce-overhead and max-autotune send the model through torch.compile; graph records the whole
eager step as a CUDA graph and replays it. f32 is strict; bf16 is autocast over f32 weights, as Tutti's. On CUDA the
host waits every 50 steps, and a step's time is its share of them; the first steps (compiling, choosing algorithms)
count as the first step, not among the timed ones.
"""
import argparse
import contextlib
import gzip
import json
import os
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn

MODES = ["eager", "compile", "reduce-overhead", "max-autotune", "graph"]


def make_model(args):
    if args.model == "cnn":
        layers = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                  nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)]
        return nn.Sequential(*layers)
    layers = [nn.Flatten()]
    for i, (a, b) in enumerate(zip(args.sizes, args.sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i + 2 < len(args.sizes):
            layers.append(nn.GELU() if args.activation == "gelu" else nn.ReLU())
            if args.dropout > 0:
                layers.append(nn.Dropout(args.dropout))
    return nn.Sequential(*layers)


def prepare(x):
    return x.float().mul_(1 / 255) if x.dtype == torch.uint8 else x


def arguments():
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
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32", help="tf32: CUDA alone")
    parser.add_argument("--activation", choices=["relu", "gelu"], default="relu", help="of the mlp")
    parser.add_argument("--channels-last", action="store_true", help="images and filters in channels-last memory")
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


class Trainer:
    """Whole steps on a set in the device's memory."""

    def __init__(self, args, model, x, y):
        self.args, self.model, self.x, self.y = args, model, x, y
        self.cuda = args.device == "cuda"
        compiled = args.mode not in ("eager", "graph")
        mode = "default" if args.mode == "compile" else args.mode
        self.run = torch.compile(model, mode=mode) if compiled else model
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[args.optimizer]
        graph = args.mode == "graph"
        more = {"capturable": True} if graph and args.optimizer != "sgd" else {}
        self.optimizer = kind(model.parameters(), lr=args.lr, fused=True, **more)
        self.loss_of = nn.CrossEntropyLoss()
        self.step = self.graphed() if graph else self.eager

    def autocast(self):
        if self.args.precision != "bf16":
            return contextlib.nullcontext()
        return torch.autocast(self.args.device, dtype=torch.bfloat16)

    def images(self, x):
        x = prepare(x)
        return x.contiguous(memory_format=torch.channels_last) if self.args.channels_last else x

    def eager(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.loss_of(self.run(self.images(self.x[batch])), self.y[batch])
        loss.backward()
        self.optimizer.step()
        return loss

    def graphed(self):
        """Records a step that reads its batch's indices from fixed memory; returns what replays it."""
        indices = torch.zeros(self.args.batch, dtype=torch.int64, device=self.x.device)
        kept = [p.detach().clone() for p in self.model.parameters()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries choose their algorithms before anything is recorded
            for _ in range(3):
                self.eager(indices)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.eager(indices)
        with torch.no_grad():
            for p, k in zip(self.model.parameters(), kept):
                p.copy_(k)

        def replay(batch):
            indices.copy_(batch)
            graph.replay()
            return loss
        return replay


def accuracy(trainer, x, y):
    trainer.model.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(y), 256):
            right += int((trainer.model(trainer.images(x[i:i + 256])).argmax(1) == y[i:i + 256]).sum())
    return right / len(y)


def main():
    args = arguments()
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    cuda = args.device == "cuda"
    if cuda and not torch.cuda.is_available():
        raise SystemExit("peer_torch: this PyTorch sees no CUDA device")
    if not cuda and (args.precision == "tf32" or args.mode == "graph"):
        raise SystemExit("peer_torch: --precision tf32 and --mode graph need --device cuda")
    if args.channels_last and args.model != "cnn":
        raise SystemExit("peer_torch: --channels-last is for the cnn")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = cuda  # algorithms chosen by measuring, in the first steps
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    model = make_model(args).to(device)
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    (x, y), (test_x, test_y) = [(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device))
                                for a, b in load(args)]

    def wait():
        if cuda:
            torch.cuda.synchronize()

    per_epoch = len(y) // args.batch
    total = args.steps or args.epochs * per_epoch
    warm_up = 10 if cuda or args.mode != "eager" else 0
    times, losses, loss, first_s, unread = [], [], None, None, 0
    order, epoch_order = None, torch.Generator().manual_seed(args.seed)
    model.train()
    wait()
    begin = start = time.perf_counter()
    trainer = Trainer(args, model, x, y)
    for step in range(total + warm_up):
        if step == warm_up and warm_up:
            begin = start = time.perf_counter()
        at = max(0, step - warm_up) % per_epoch
        if order is None or (at == 0 and step >= warm_up):
            order = torch.randperm(len(y), generator=epoch_order).to(device)
        loss = trainer.step(order[at * args.batch:(at + 1) * args.batch])
        if step < warm_up:
            wait()
        else:
            timed = step - warm_up
            unread += 1
            if timed % 50 == 49 or timed == total - 1:
                losses.append(loss.item())  # the host waits for the device here
            elif cuda:
                continue
            now = time.perf_counter()
            times += [(now - start) / unread * 1e3] * unread
            start, unread = now, 0
        if first_s is None:
            first_s = time.perf_counter() - begin
    wait()
    train_s = time.perf_counter() - begin

    where = torch.cuda.get_device_name() if cuda else "cpu"
    words = [f"PyTorch {torch.__version__}"] + [w for w in (args.mode, args.precision) if w not in ("eager", "f32")]
    if args.channels_last:
        words.append("channels-last")
    report(args, " ".join(words), where, sum(p.numel() for p in model.parameters()),
           torch.get_num_threads(), losses, accuracy(trainer, test_x, test_y), train_s, times, first_s)


if __name__ == "__main__":
    main()
