#!/usr/bin/env python3
"""Writes tests/train/golden/schedules.json: the factors of PyTorch's learning-rate schedulers for 40 steps, and the norms
and gradients of clip_grad_norm_ and clip_grad_value_.

Run with any Python that has torch.
"""
import json
import pathlib

import torch
from torch.optim import lr_scheduler as s

STEPS = 40


def factors(make, steps=STEPS):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule, out = make(optimizer), []
    for _ in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return out


def short(total):
    """Of a run of so few steps; without what PyTorch divides by 0 for."""
    def one_cycle(rise):
        return lambda o: s.OneCycleLR(o, 1.0, total_steps=total, pct_start=rise, cycle_momentum=False)

    texts = {
        "step:1:0.5": lambda o: s.StepLR(o, 1, 0.5),
        "step:2": lambda o: s.StepLR(o, 2),
        "multi_step:0:0.5": lambda o: s.MultiStepLR(o, [0], 0.5),
        "multi_step:1,1,2:0.5": lambda o: s.MultiStepLR(o, [1, 1, 2], 0.5),
        "exponential:0": lambda o: s.ExponentialLR(o, 0.0),
        "exponential:1": lambda o: s.ExponentialLR(o, 1.0),
        "cosine": lambda o: s.CosineAnnealingLR(o, total),
        "cosine:1": lambda o: s.CosineAnnealingLR(o, total, 1.0),
        f"cosine:0:{total}": lambda o: s.CosineAnnealingWarmRestarts(o, 1),
        "linear": lambda o: s.LinearLR(o, 1, 0, total),
        "warmup:0": lambda o: s.LambdaLR(o, lambda k: 1.0),
        "warmup:2": lambda o: s.LambdaLR(o, lambda k: min(1.0, (k + 1) / 2)),
        **{f"one_cycle:{rise}": one_cycle(rise) for rise in (0.01, 0.25, 0.3, 0.5, 0.75, 0.99) if rise * total != 1},
    }
    return {text: factors(make, total) for text, make in texts.items()}


def main():
    texts = {
        "step:7:0.5": lambda o: s.StepLR(o, 7, 0.5),
        "multi_step:3,10,11:0.2": lambda o: s.MultiStepLR(o, [3, 10, 11], 0.2),
        "exponential:0.9": lambda o: s.ExponentialLR(o, 0.9),
        "cosine": lambda o: s.CosineAnnealingLR(o, STEPS),
        "cosine:0.1": lambda o: s.CosineAnnealingLR(o, STEPS, 0.1),
        "cosine:0.1:4": lambda o: s.CosineAnnealingWarmRestarts(o, STEPS // 4, 1, 0.1),
        "linear": lambda o: s.LinearLR(o, 1, 0, STEPS),
        "one_cycle": lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False),
        "one_cycle:0.25": lambda o: s.OneCycleLR(o, 1.0, total_steps=STEPS, pct_start=0.25, cycle_momentum=False),
        "warmup:5+exponential:0.9": lambda o: s.LambdaLR(o, lambda k: (k + 1) / 5 if k < 5 else 0.9 ** (k - 5)),
    }
    torch.manual_seed(1)
    p = [torch.nn.Parameter(torch.zeros(n, dtype=torch.float64)) for n in (3, 4)]
    before = [torch.round(torch.randn(n, dtype=torch.float64) * 100) / 100 for n in (3, 4)]
    clipped = {}
    for name, clip in (("norm", lambda: torch.nn.utils.clip_grad_norm_(p, 0.5)),
                       ("value", lambda: torch.nn.utils.clip_grad_value_(p, 0.5))):
        for q, g in zip(p, before):
            q.grad = g.clone()
        clip()
        clipped[name] = [q.grad.tolist() for q in p]
    losses = [5, 4, 4.0001, 3.9999, 4.1, 4, 4, 4, 3, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, 2]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule, after = s.ReduceLROnPlateau(optimizer, factor=0.5, patience=2), []
    for loss in losses:
        schedule.step(loss)
        after.append(optimizer.param_groups[0]["lr"])
    out = {"plateau": {"losses": losses, "factors": after}, "schedules": {text: factors(make) for text, make in texts.items()},
           "short": {str(total): short(total) for total in (1, 2, 3, 4)},
           "gradients": [g.tolist() for g in before], "clipped": clipped}
    (pathlib.Path(__file__).parent / "schedules.json").write_text(json.dumps(out) + "\n")


if __name__ == "__main__":
    main()
