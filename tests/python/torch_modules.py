#!/usr/bin/env python3
"""Real PyTorch modules trained by tutti.from_torch beside PyTorch in float64: five steps from the same weights. The modules are those
of torch_zoo.py; with --survey those of torch_families.py and torch_techniques.py, which may also be refused.

Judged: all gradients together, norm-wise 1e-3 (by a step of SGD with the rate 1); then the loss of each of five steps, relative
1e-5, what they changed (1e-2; 0.1 where steps are so small that parameters round them off), and the buffers. In a survey, ten times
what PyTorch itself is off in float32 is allowed, too, up to 0.5. Prints a line per module and device, exits 1 where one does not agree.
"""
import argparse
import copy
import json
import math
import os
import re
import sys
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import torch_families  # noqa: E402
import torch_techniques  # noqa: E402
import torch_zoo  # noqa: E402
import tutti  # noqa: E402


HEAVY = ("resnet18", "mobilenet_v2")  # minutes of compiling kernels for lavapipe
# Where larger steps amplify rounding: batch norms over few values.
RATES = {"mobilenet_v2": 1e-4, "resnet18": 1e-5,
         **dict.fromkeys(("densenet", "densenet_efficient", "mobilenet_v3", "vgg", "fcn", "deeplabv3", "lraspp", "mobilevit", "raft", "googlenet_small"), 1e-4),
         **dict.fromkeys(("levit", "mnasnet", "shufflenet", "googlenet", "googlenet_aux", "inception_aux", "efficientnet", "regnet"), 1e-6)}

SURVEY = {**torch_families.ALL, **torch_techniques.ALL}


def make(name):
    torch.manual_seed(0)
    return {**torch_zoo.ALL, **SURVEY, **torch_families.SMALL}[name]()


def norm(tensors):
    return sum(float(t.abs().double().pow(2).sum()) for t in tensors) ** 0.5


def wide(t):
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


class Loop:
    """PyTorch's own training of a module, in a dtype."""

    def __init__(self, module, inputs, targets, loss, dtype=torch.float64, narrow=False):
        self.module, self.loss, self.narrow = copy.deepcopy(module), loss, narrow
        self.dtype = dtype
        for t in (*self.module.parameters(), *self.module.buffers()):
            if t.is_floating_point() or t.is_complex():
                t.data = t.data.to(dtype.to_complex() if t.is_complex() else dtype)
        self.inputs, self.targets = ([x.to(dtype) if x.is_floating_point() else x for x in xs] for xs in (inputs, targets))

    def backward(self):
        self.module.zero_grad()
        default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            with torch.autocast("cpu", torch.bfloat16, enabled=self.narrow):
                y = self.loss(self.module(*(x.clone() for x in self.inputs)), *self.targets)
            y.backward()
        finally:
            torch.set_default_dtype(default)
        return y.item()

    def train(self, start, lr, steps):
        """The losses, the state afterwards, and the gradients of the first step."""
        self.module.load_state_dict(start)
        optimizer, losses, gradients = torch.optim.SGD(self.module.parameters(), lr=lr), [], None
        for _ in range(steps):
            losses.append(self.backward())
            if gradients is None:
                gradients = {k: wide(p.grad).clone() for k, p in self.module.named_parameters() if p.grad is not None}
            optimizer.step()
        return losses, {k: wide(v.detach()) for k, v in self.module.state_dict().items()}, gradients


def apart(ours, wanted, start, trained):
    """What losses, state and gradients differ by from those in float64."""
    (losses, state, gradients), (right, states, exact) = ours, wanted
    moved = norm(states[k] - wide(start[k]) for k in trained)
    return {"loss": max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(losses, right)),
            "gradients": norm(gradients[k] - g for k, g in exact.items()) / norm(exact.values()),
            "update": norm(states[k] - wide(state[k]) for k in trained) / moved,
            "buffers": max((float((states[k] - wide(state[k])).abs().max()) for k in states if k not in trained), default=0.0)}


def beside(name, device, steps, precision):
    lr = RATES.get(name, 0.01)
    module, inputs, targets, loss = make(name)
    module.train()
    start = copy.deepcopy(module.state_dict())
    trained = [k for k, p in module.named_parameters() if p.requires_grad]
    try:
        wanted = Loop(module, inputs, targets, loss).train(start, lr, steps)
    except RuntimeError:  # PyTorch has no float64 of it
        wanted = Loop(module, inputs, targets, loss, torch.float32).train(start, lr, steps)

    began = time.perf_counter()
    ours = torch.optim.SGD(module.parameters(), lr=1.0)
    step = tutti.from_torch(module, inputs, loss=loss, optimizer=ours, device=device, precision=precision)
    step(*inputs, *targets)  # an update of SGD with the rate 1 is the gradient
    state = step.state_dict()
    own = {k: wide(start[k]) - wide(state[k]) for k in wanted[2]}
    step.load_state_dict(start)
    ours.param_groups[0]["lr"] = lr
    losses = [step(*inputs, *targets) for _ in range(steps)]
    module.load_state_dict(step.state_dict())
    found = {"lr": lr, "precision": precision, **apart((losses, module.state_dict(), own), wanted, start, trained), "noise": {}}
    seconds = time.perf_counter() - began
    if (name in SURVEY or precision != "f32") and not agrees(found):  # is PyTorch itself off in float32, or by autocast?
        own = Loop(module, inputs, targets, loss, torch.float32, precision != "f32").train(start, lr, steps)
        found["noise"] = apart(own, wanted, start, trained)
    return {"module": name, "device": device, **found, "ms": step.step_ms, "seconds": seconds}


def agrees(r):
    if r["precision"] == "bf16":  # as far from float64 as autocast of PyTorch's, at most
        return all(r[k] <= max(most, 2 * r["noise"].get(k, 0)) for k, most in {"loss": 1e-2, "gradients": 5e-2, "buffers": 1e-2}.items())
    allowed = {"loss": 1e-5, "gradients": 1e-3, "update": 1e-2 if r["lr"] > 1e-5 else 0.1, "buffers": 1e-3}
    return all(r[k] <= max(most, 10 * min(r["noise"].get(k, 0), 0.05 if k != "buffers" else math.inf)) for k, most in allowed.items())


def tried(name, device, survey, **how):
    """The outcome of one module on one device, and a line of text. What is refused fails unless it is a survey."""
    try:
        r = beside(name, device, **how)
    except Exception as e:  # noqa: BLE001  (the other modules still run)
        outcome = "refused" if survey and isinstance(e, tutti.InvalidError) else "FAIL"
        return {"module": name, "device": device, "precision": how["precision"], "outcome": outcome, "reason": f"{type(e).__name__}: {e}"}
    return {**r, "outcome": "ok" if agrees(r) else "FAIL"}


def told(r):
    text = r.get("reason") or (f"loss {r['loss']:.1e}, gradients {r['gradients']:.1e}, updates {r['update']:.1e}, buffers {r['buffers']:.1e}; "
                               f"{r['ms']:.1f} ms a step, {r['seconds']:.1f} s")
    return f"{r['outcome']:7} {r['module']:20} {r['device']:8} {r.get('precision', 'f32'):4} {text}"


def table(results):
    """As Markdown: what each module came to, and by how much gradients and updates differ, norm-wise, or why it was refused."""
    several = len({(r["device"], r.get("precision")) for r in results}) > 1
    lines = [f"| module | {'device | dtype | ' * several}outcome | gradients | updates | why |", f"| --- | {'--- | --- | ' * several}--- | --- | --- | --- |"]
    for r in results:
        figures = ("", "") if "reason" in r else (f"{r['gradients']:.0e}", f"{r['update']:.0e}")
        why = re.sub(r"[^\s(]*/site-packages/", "", r.get("reason", "")).replace("|", "/")
        if r["outcome"] == "ok" and any(r["noise"].get(k, 0) > 1e-3 for k in ("gradients", "update")):
            why = f"PyTorch's own: {r['noise']['gradients']:.0e} and {r['noise']['update']:.0e}"
        where = f"{r['device']} | {r['precision']} | " if several else ""
        lines.append(f"| `{r['module']}` | {where}{'agrees' if r['outcome'] == 'ok' else r['outcome']} | {' | '.join(figures)} | {why} |")
    return "\n".join(lines) + "\n"


def jobs(o):
    """What is asked for: (device, name of a module, how it is trained)."""
    for device in o.device.split(","):
        software = next((d.kind == "software" for d in tutti.devices(device) if d.usable), False)
        if o.families:
            names = torch_families.DISTINCT if software and not o.all else torch_families.TESTED
            for name in o.modules or names:
                yield device, name, {"steps": 3, "precision": "f32"}
                if o.all or o.modules or name in torch_families.DISTINCT:
                    yield device, name, {"steps": 2, "precision": "bf16"}
        else:
            names = SURVEY if o.survey else [m for m in torch_zoo.ALL if not (o.light and software and m in HEAVY)]
            yield from ((device, name, {"steps": 5, "precision": "f32"}) for name in o.modules or names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=", ".join(torch_zoo.ALL) + " and those of a survey")
    parser.add_argument("--device", default="onednn", help="several, separated by commas")
    parser.add_argument("--light", action="store_true", help="on software devices only those that take no minutes")
    parser.add_argument("--survey", action="store_true", help="all families and techniques; what is refused is no failure")
    parser.add_argument("--families", action="store_true", help="the families that a test trains in f32, a few of them in bf16; on software devices only these few")
    parser.add_argument("--all", action="store_true", help="with --families: all of them in both, on software devices, too")
    parser.add_argument("--json", help="a file for the figures, written after every module")
    parser.add_argument("--resume", action="store_true", help="leaves out what the file of --json already has")
    parser.add_argument("--table", help="a file for the outcomes as a table in Markdown")
    o = parser.parse_args()
    results = []
    if o.resume and o.json and os.path.exists(o.json):
        with open(o.json, encoding="utf-8") as f:
            results = json.load(f)
    done = {(r["device"], r["module"], r["precision"]) for r in results}
    for device, name, how in jobs(o):
        if (device, name, how["precision"]) in done:
            continue
        results.append(tried(name, device, o.survey, **how))
        print(told(results[-1]), flush=True)
        if o.json:
            with open(o.json, "w", encoding="utf-8") as f:
                f.write("[\n" + ",\n".join(json.dumps(r) for r in results) + "\n]\n")
    counts = {outcome: sum(r["outcome"] == outcome for r in results) for outcome in ("ok", "refused", "FAIL")}
    if o.survey:
        print(f"{counts['ok']} agree, {counts['refused']} refused, {counts['FAIL']} fail")
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write(table(results))
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
