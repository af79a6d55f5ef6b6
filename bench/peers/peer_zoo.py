#!/usr/bin/env python3
"""PyTorch's side of bench/load.py for the models of zoo: steps on random data, eager, with the fused optimizer.

Prints the keys of `tutti train --json` that bench/load.py reads.
"""
import argparse
import json
import time

import rounds_torch
import torch
import zoo


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", choices=zoo.NAMES)
    p.add_argument("--size", default="tiny")
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--optimizer", choices=["adam", "adamw", "sgd"], default="adamw")
    p.add_argument("--lr", type=float, default=1e-6)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--threads", type=int, default=0, help="0: as PyTorch chooses")
    o = p.parse_args()
    if o.steps < 2:
        p.error("--steps: the first one is not counted, so at least 2")
    case = {"model": o.model, "size": o.size, "batch": o.batch, "optimizer": o.optimizer, "lr": o.lr, "precision": "f32", "samples": 64}
    step = rounds_torch.Peer(o.threads).zoo_step(case, torch.device("cpu"), "eager")
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    for _ in range(o.steps - 1):
        step()
    print(json.dumps({"first_step_s": first, "train_s": time.perf_counter() - start, "steps": o.steps, "batch": o.batch}))


if __name__ == "__main__":
    main()
