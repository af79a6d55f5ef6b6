#!/usr/bin/env python3
"""Writes tests/golden/data/models_*.json: 20 training steps of each model at its tiny size in PyTorch, float64.

Run like make_golden.py; names of models limit it to them. lstm runs with every optimizer that PyTorch has, and with lion,
lamb and muon in NumPy. {"classes": {integer column: how many}, "batches": [{column: tensor}], "parameters": {name: tensor},
"runs": [{"optimizer", "options", "losses": [20 numbers], "after": {name: {"norm", "sample": [at most 64 elements]}}}]}: the
sample holds every k-th element, k = max(1, n // 64), and buffers (running statistics) stand beside parameters.
"""
import pathlib
import sys
import zlib

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
from make_golden import numbers, rand, tensor, write
import zoo

STEPS, BATCHES = 20, 4  # the batches come in turn


def batch_of(name):
    """A batch with short numbers."""
    drawn = zoo.model(name).draw("tiny", zoo.model(name).BATCH)
    return {k: torch.round(v, decimals=3) if v.is_floating_point() else v.int() for k, v in drawn.items()}


class Rule:
    """An optimizer that PyTorch lacks: `update(p, g, state, t)` in NumPy's float64 gives the next p."""

    def __init__(self, parameters, update):
        self.parameters, self.update, self.state, self.t = list(parameters), update, {}, 0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        self.t += 1
        for k, p in enumerate(self.parameters):
            state = self.state.setdefault(k, {})
            with torch.no_grad():
                p.copy_(torch.from_numpy(self.update(p.numpy().copy(), p.grad.numpy(), state, self.t)))


def lion(lr=1e-4, decay=0.0, b1=0.9, b2=0.99):  # Chen et al. (2023), algorithm 2
    def update(p, g, s, _):
        m = s.get("m", np.zeros_like(p))
        s["m"] = b2 * m + (1 - b2) * g
        return p - lr * (np.sign(b1 * m + (1 - b1) * g) + decay * p)
    return lambda parameters: Rule(parameters, update)


def lamb(lr=1e-3, decay=0.01, b1=0.9, b2=0.999, eps=1e-6):  # You et al. (2020), algorithm 2, phi the identity
    def update(p, g, s, t):
        s["m"] = b1 * s.get("m", np.zeros_like(p)) + (1 - b1) * g
        s["v"] = b2 * s.get("v", np.zeros_like(p)) + (1 - b2) * g * g
        r = s["m"] / (1 - b1 ** t) / (np.sqrt(s["v"] / (1 - b2 ** t)) + eps) + decay * p
        size, step = np.linalg.norm(p), np.linalg.norm(r)
        return p - lr * (size / step if size > 0 and step > 0 else 1.0) * r
    return lambda parameters: Rule(parameters, update)


def muon(lr=1e-3, decay=0.1, momentum=0.95, eps=1e-7, b1=0.9, b2=0.95):
    """torch.optim.Muon's steps (Jordan et al. 2024) without its bf16; what is no matrix takes AdamW's."""
    def orthogonal(x):
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / max(np.linalg.norm(x), eps)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.T if tall else x

    def update(p, g, s, t):
        kept = p * (1 - lr * decay)
        if p.ndim < 2:
            s["m"] = b1 * s.get("m", np.zeros_like(p)) + (1 - b1) * g
            s["v"] = b2 * s.get("v", np.zeros_like(p)) + (1 - b2) * g * g
            return kept - lr * (s["m"] / (1 - b1 ** t)) / (np.sqrt(s["v"] / (1 - b2 ** t)) + 1e-8)
        s["m"] = momentum * s.get("m", np.zeros_like(p)) + (1 - momentum) * g
        step = orthogonal((1 - momentum) * g + momentum * s["m"])
        return kept - lr * max(1.0, p.shape[0] / p.shape[1]) ** 0.5 * step
    return lambda parameters: Rule(parameters, update)


def of(optimizer, **options):
    return lambda parameters: optimizer(parameters, **options)


# Name of ours -> (our hyperparameters, what makes the other one).
EVERYWHERE = {
    "sgd": ({"lr": 0.05, "momentum": 0.9, "weight-decay": 0.01},
            of(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.01)),
    "adamw": ({"lr": 0.01, "weight-decay": 0.05}, of(torch.optim.AdamW, lr=0.01, weight_decay=0.05)),
}
OPTIMIZERS = EVERYWHERE | {
    "adam": ({"lr": 0.01, "weight-decay": 0.01}, of(torch.optim.Adam, lr=0.01, weight_decay=0.01)),
    "nadam": ({"lr": 0.01, "weight-decay": 0.01}, of(torch.optim.NAdam, lr=0.01, weight_decay=0.01)),
    "adamax": ({"lr": 0.01, "weight-decay": 0.01}, of(torch.optim.Adamax, lr=0.01, weight_decay=0.01)),
    "radam": ({"lr": 0.01, "weight-decay": 0.01}, of(torch.optim.RAdam, lr=0.01, weight_decay=0.01)),
    "rmsprop": ({"lr": 0.01, "momentum": 0.5, "centered": 1, "weight-decay": 0.01},
                of(torch.optim.RMSprop, lr=0.01, momentum=0.5, centered=True, weight_decay=0.01)),
    "adagrad": ({"lr": 0.02, "lr-decay": 0.1, "weight-decay": 0.01},
                of(torch.optim.Adagrad, lr=0.02, lr_decay=0.1, weight_decay=0.01)),
    "adadelta": ({"lr": 1.0, "weight-decay": 0.01}, of(torch.optim.Adadelta, lr=1.0, weight_decay=0.01)),
    "lion": ({"lr": 0.001, "weight-decay": 0.1}, lion(0.001, 0.1)),
    "lamb": ({"lr": 0.01, "weight-decay": 0.05}, lamb(0.01, 0.05)),
    "muon": ({"lr": 0.01, "weight-decay": 0.05}, muon(0.01, 0.05)),
}


def start(model):
    """Short numbers of about PyTorch's own size; scales stay near 1 and running variances at 1."""
    for name, p in model.named_parameters():
        with torch.no_grad():
            if p.dim() == 1:
                p.copy_(rand(p.shape, -0.1, 0.1) + (1 if name.endswith("weight") else 0))
            else:
                p.copy_(torch.round(rand(p.shape) * (p.numel() / p.shape[0]) ** -0.5 * 1000) / 1000)


def sample(t):
    flat = t.detach().reshape(-1)
    return {"norm": flat.norm().item(), "sample": numbers(flat[::max(1, flat.numel() // 64)][:64])}


def run(name):
    twin = zoo.model(name)
    batches = [batch_of(name) for _ in range(BATCHES)]
    model = twin.make("tiny").double()
    start(model)
    first = {k: v.clone() for k, v in model.state_dict().items()}
    runs = []
    for optimizer, (options, make_optimizer) in (OPTIMIZERS if name == "lstm" else EVERYWHERE).items():
        model.load_state_dict(first)
        model.train()
        step = make_optimizer(model.parameters())
        losses = []
        for i in range(STEPS):
            batch = batches[i % BATCHES]
            step.zero_grad()
            loss = twin.loss(model, batch)
            loss.backward()
            step.step()
            losses.append(loss.item())
        print(f"{name} {optimizer}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
        runs.append({"optimizer": optimizer, "options": options, "losses": losses,
                     "after": {k: sample(v) for k, v in model.state_dict().items() if v.is_floating_point()}})
    return {"classes": getattr(twin, "CLASSES", {}), "batches": [{k: tensor(v) for k, v in b.items()} for b in batches],
            "parameters": {k: tensor(v) for k, v in first.items() if v.is_floating_point()}, "runs": runs}


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    for name in sys.argv[1:] or zoo.NAMES:
        torch.manual_seed(zlib.crc32(name.encode()))
        write(f"models_{name}", run(name))


if __name__ == "__main__":
    main()
