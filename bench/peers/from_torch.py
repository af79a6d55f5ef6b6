#!/usr/bin/env python3
"""A model as a PyTorch module by tutti.from_torch beside the same model of Tutti's own, in turn on one device.

    PYTHONPATH=build/release/python PYTHON bench/peers/from_torch.py --models gpt:char,resnet18,lstm --json FILE

PYTHON is that of scripts/python-env.sh --torch. Per model: what torch.export takes by itself, what from_torch and the first
step take beyond that, and the median time of a step of both.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import warnings

import torch

import tutti
import zoo

ROOT = pathlib.Path(__file__).resolve().parents[2]
TUTTI = ROOT / "build/release/bin/tutti"


class Whole(torch.nn.Module):
    """A model of the zoo with its loss: columns in, the scalar out."""

    def __init__(self, twin, size, columns):
        super().__init__()
        self.model, self.twin, self.columns = twin.make(size), twin, columns

    def forward(self, *values):
        return self.twin.loss(self.model, dict(zip(self.columns, values)))


def own_step_ms(model, device, precision, seconds):
    """The median that `tutti bench` measures."""
    done = subprocess.run([TUTTI, "bench", "--models", model, "--ops", "none", "--device", device, "--precision", precision, "--time",
                           str(seconds), "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)["results"][0]["ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt:char", help="NAME[:SIZE], …")
    parser.add_argument("--device", default="onednn:0")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--time", type=float, default=5, help="seconds per measurement")
    parser.add_argument("--json", help="write the numbers there")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    known = {m["name"]: m for m in json.loads(subprocess.run([TUTTI, "models", "--json"], check=True, capture_output=True).stdout)["models"]}
    rows = []
    for text in o.models.split(","):
        name, _, size = text.partition(":")
        sizes = {s["name"]: s for s in known[name]["sizes"]}
        size = size or next(iter(sizes))
        twin, batch = zoo.model(name), sizes[size]["batch"]
        torch.manual_seed(1)
        columns = twin.draw(size, batch, 0)
        module = Whole(twin, size, list(columns))
        start = time.perf_counter()
        torch.export.export(module, tuple(columns.values()), strict=False)
        export = time.perf_counter() - start
        start = time.perf_counter()
        step = tutti.from_torch(module, tuple(columns.values()), optimizer=torch.optim.AdamW(module.parameters(), lr=1e-4),
                                device=o.device, precision=o.precision)
        step(*columns.values())
        first = time.perf_counter() - start
        best = {"from_torch": float("inf"), "own": float("inf")}
        for _ in range(2):  # in turn
            times, until = [], time.perf_counter() + o.time
            while time.perf_counter() < until or len(times) < 3:
                start = time.perf_counter()
                step(*columns.values())
                times.append(1000 * (time.perf_counter() - start))
            best["from_torch"] = min(best["from_torch"], sorted(times)[len(times) // 2])
            best["own"] = min(best["own"], own_step_ms(f"{name}:{size}", o.device, o.precision, o.time))
        row = {"model": f"{name}:{size}", "export_s": export, "beyond_export_s": first - export - best["from_torch"] / 1000,
               "from_torch_ms": best["from_torch"], "own_ms": best["own"], "ratio": best["from_torch"] / best["own"]}
        rows.append(row)
        print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{v:12}" for k, v in row.items()), flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"device": o.device, "precision": o.precision, "torch": torch.__version__,
                                                    "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
