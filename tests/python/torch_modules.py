#!/usr/bin/env python3
"""Real PyTorch modules (torch_zoo.py) trained by tutti.from_torch beside PyTorch in float64: five steps from the same weights.

Judged: all gradients together, norm-wise 1e-3 (by a step of SGD with the rate 1); then the loss of each of five steps, relative
1e-5, what they changed (1e-2; 0.1 where steps are so small that parameters round them off), and the buffers. Prints a line per module and device, exits 1 where one does not agree.
"""
import argparse
import copy
import json
import os
import sys
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import torch_zoo  # noqa: E402
import tutti  # noqa: E402


HEAVY = ("resnet18", "mobilenet_v2")  # minutes of compiling kernels for lavapipe
RATES = {"mobilenet_v2": 1e-4, "resnet18": 1e-5}  # where larger steps amplify rounding


def beside(name, device, steps=5):
    lr = RATES.get(name, 0.01)
    module, inputs, targets, loss = torch_zoo.make(name)
    module.train()
    twin = copy.deepcopy(module).double()
    exact, exact_targets = ([x.double() if x.is_floating_point() else x for x in xs] for xs in (inputs, targets))
    start = {k: v.detach().clone() for k, v in module.state_dict().items()}
    trained = [k for k, p in twin.named_parameters()]

    def backward():
        twin.zero_grad()
        y = loss(twin(*exact), *exact_targets)
        y.backward()
        return y.item()

    def norm(tensors):
        return sum(float(t.double().pow(2).sum()) for t in tensors) ** 0.5

    began = time.perf_counter()
    ours = torch.optim.SGD(module.parameters(), lr=1.0)
    step = tutti.from_torch(module, inputs, loss=loss, optimizer=ours, device=device)
    step(*inputs, *targets)  # an update of SGD with the rate 1 is the gradient
    state = step.state_dict()
    backward()
    gradients = {k: p.grad.clone() for k, p in twin.named_parameters() if p.grad is not None}
    wrong = norm(start[k].double() - state[k].double() - g for k, g in gradients.items()) / norm(gradients.values())

    step.load_state_dict(start)
    twin.load_state_dict(start)
    ours.param_groups[0]["lr"] = lr
    theirs = torch.optim.SGD(twin.parameters(), lr=lr)
    worst_loss = 0.0
    for _ in range(steps):
        a, b = step(*inputs, *targets), backward()
        theirs.step()
        worst_loss = max(worst_loss, abs(a - b) / abs(b))
    state, wanted = step.state_dict(), twin.state_dict()
    apart = norm(wanted[k] - state[k].double() for k in trained)
    moved = norm(wanted[k] - start[k].double() for k in trained)
    buffers = max((float((wanted[k].double() - state[k].double()).abs().max()) for k in wanted if k not in trained), default=0.0)
    return {"module": name, "device": device, "lr": lr, "loss": worst_loss, "gradients": wrong, "update": apart / moved, "buffers": buffers,
            "ms": step.step_ms, "seconds": time.perf_counter() - began}


def agrees(r):
    return r["loss"] <= 1e-5 and r["gradients"] <= 1e-3 and r["update"] <= (1e-2 if r["lr"] > 1e-5 else 0.1) and r["buffers"] <= 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=", ".join(torch_zoo.ALL))
    parser.add_argument("--device", default="onednn", help="several, separated by commas")
    parser.add_argument("--light", action="store_true", help="on software devices only those that take no minutes")
    parser.add_argument("--json", help="a file for the figures")
    o = parser.parse_args()
    results, failed = [], 0
    for device in o.device.split(","):
        software = next((d.kind == "software" for d in tutti.devices(device) if d.usable), False)
        for name in o.modules or [m for m in torch_zoo.ALL if not (o.light and software and m in HEAVY)]:
            try:
                r = beside(name, device)
                bad = not agrees(r)
                print(f"{'FAIL' if bad else 'ok':4} {name:16} {device:8} loss {r['loss']:.1e}, gradients {r['gradients']:.1e}, five "
                      f"updates {r['update']:.1e}, buffers {r['buffers']:.1e}; {r['ms']:.1f} ms a step, {r['seconds']:.1f} s", flush=True)
                results.append(r)
            except Exception as e:  # noqa: BLE001  (the other modules still run)
                bad = True
                print(f"FAIL {name:16} {device:8} {type(e).__name__}: {e}", flush=True)
            failed += bad
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(r) for r in results) + "\n]\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
