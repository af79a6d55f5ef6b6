#!/usr/bin/env python3
"""PyTorch's side of the whole-step benchmark: the models and steps of `tutti train`, on the CPU or a CUDA device.

One step = take the batch by index from the set in the device's memory, forward, cross-entropy, backward, optimizer
(fused). Prints one JSON document with the keys of `tutti train --json` that mean the same. bench/compare.py runs it.
With a mode other than eager the model goes through torch.compile. On CUDA the host waits every 50 steps, and a step's
time is its share of them; the first steps (compiling, choosing algorithms) count as the first step, not among the timed
ones. f32 is strict unless --tf32 is given.
"""
import time

import torch
from torch import nn

import peer_common

MODES = ["eager", "compile", "reduce-overhead", "max-autotune"]


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


def options(parser):
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--mode", choices=MODES, default="eager")
    parser.add_argument("--tf32", action="store_true", help="products and convolutions in TF32 (CUDA)")


def main():
    args = peer_common.arguments(__doc__, options)
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    cuda = args.device == "cuda"
    if cuda and not torch.cuda.is_available():
        raise SystemExit("peer_torch: this PyTorch sees no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    model = make_model(args).to(device)
    (x, y), (test_x, test_y) = [(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device))
                                for a, b in peer_common.load(args)]
    optimizer = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[args.optimizer](
        model.parameters(), lr=args.lr, fused=True)
    loss_of = nn.CrossEntropyLoss()
    run = model if args.mode == "eager" else torch.compile(model, mode="default" if args.mode == "compile" else args.mode)

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
    for step in range(total + warm_up):
        if step == warm_up and warm_up:
            begin = start = time.perf_counter()
        at = max(0, step - warm_up) % per_epoch
        if order is None or (at == 0 and step >= warm_up):
            order = torch.randperm(len(y), generator=epoch_order).to(device)
        batch = order[at * args.batch:(at + 1) * args.batch]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(run(prepare(x[batch])), y[batch])
        loss.backward()
        optimizer.step()
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

    model.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(test_y), 256):
            right += int((model(prepare(test_x[i:i + 256])).argmax(1) == test_y[i:i + 256]).sum())
    where = torch.cuda.get_device_name() if cuda else "cpu"
    engine = f"PyTorch {torch.__version__}" + ("" if args.mode == "eager" else f" {args.mode}") + (" tf32" if args.tf32 else "")
    peer_common.report(args, engine, where, sum(p.numel() for p in model.parameters()), torch.get_num_threads(), losses,
                       right / len(test_y), train_s, times, first_s)


if __name__ == "__main__":
    main()
