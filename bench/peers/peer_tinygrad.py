#!/usr/bin/env python3
"""tinygrad's side of the whole-step benchmark on OpenCL: the models and steps of `tutti train`, the step under TinyJit.

One step = take the batch by index from the set in memory, forward, cross-entropy, backward, optimizer, wait. Prints one
JSON document with the keys of `tutti train --json` that mean the same. bench/peers/compare.py --peer tinygrad runs it. The
first steps (recording and compiling) count as the first step, not among the timed ones.
"""
import importlib.metadata
import os
import time

os.environ.setdefault("DEV", "CL")
import numpy as np  # noqa: E402
from tinygrad import Context, Device, Tensor, TinyJit, nn  # noqa: E402

import peer_common  # noqa: E402
import zoo_tinygrad  # noqa: E402


def main():
    args = peer_common.arguments(__doc__)
    Tensor.manual_seed(args.seed)
    case = {"layers": ",".join(map(str, args.sizes or [])), "dropout": args.dropout, "activation": "relu"}
    model = zoo_tinygrad.MODELS[args.model][0](case)
    parameters = nn.state.get_parameters(model)
    optimizer = zoo_tinygrad.OPTIMIZERS[args.optimizer](parameters, lr=args.lr)
    (x, y), (test_x, test_y) = peer_common.load(args)

    def prepare(a):
        return a.astype(np.float32) / 255 if a.dtype == np.uint8 else a

    @TinyJit
    def step_of(images, labels):
        optimizer.zero_grad()
        loss = model(images).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    per_epoch = len(y) // args.batch
    total = args.steps or args.epochs * per_epoch
    shuffled, order = np.random.default_rng(args.seed), None
    times, losses, first_s = [], [], None
    warm_up = 3  # plain, recorded, replayed
    begin = time.perf_counter()
    with Context(TRAINING=1):
        for step in range(total + warm_up):
            if step == warm_up:
                first_s, begin = time.perf_counter() - begin, time.perf_counter()
            start = time.perf_counter()
            at = max(0, step - warm_up) % per_epoch
            if order is None or (at == 0 and step >= warm_up):
                order = shuffled.permutation(len(y))
            batch = order[at * args.batch:(at + 1) * args.batch]
            loss = step_of(Tensor(prepare(x[batch])).realize(), Tensor(y[batch].astype(np.int32)).realize())
            Device[Device.DEFAULT].synchronize()
            if step >= warm_up:
                times.append((time.perf_counter() - start) * 1e3)
    train_s = time.perf_counter() - begin
    losses.append(loss.item())

    accuracy = None
    if args.data != "synthetic":
        right = 0
        for i in range(0, len(test_y), 500):
            guess = model(Tensor(prepare(test_x[i:i + 500]))).argmax(1).numpy()
            right += int((guess == test_y[i:i + 500]).sum())
        accuracy = right / len(test_y)
    peer_common.report(args, f"tinygrad {importlib.metadata.version('tinygrad')} on {Device.DEFAULT}", Device.DEFAULT,
                       sum(p.numel() for p in parameters), len(os.sched_getaffinity(0)), losses, accuracy, train_s, times,
                       first_s)


if __name__ == "__main__":
    main()
