#!/usr/bin/env python3
"""PyTorch's side of the whole-step benchmark: the models and steps of `tutti train`, in eager mode on the CPU.

One step = take the batch by index from the set in memory, forward, cross-entropy, backward, optimizer (fused). Prints
one JSON document with the keys of `tutti train --json` that mean the same. bench/compare.py runs it.
"""
import time

import torch
from torch import nn

import peer_common


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
            layers.append(nn.ReLU())
            if args.dropout > 0:
                layers.append(nn.Dropout(args.dropout))
    return nn.Sequential(*layers)


def prepare(x):
    return x.float().mul_(1 / 255) if x.dtype == torch.uint8 else x


def main():
    args = peer_common.arguments(__doc__)
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model = make_model(args)
    (x, y), (test_x, test_y) = [(torch.from_numpy(a), torch.from_numpy(b)) for a, b in peer_common.load(args)]
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
    peer_common.report(args, f"PyTorch {torch.__version__}", "cpu", sum(p.numel() for p in model.parameters()),
                       torch.get_num_threads(), losses, right / len(test_y), train_s, times, times[0] / 1e3)


if __name__ == "__main__":
    main()
