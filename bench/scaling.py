#!/usr/bin/env python3
"""How a training step's time grows with the batch, and the first step's with the graph: figures and a picture of both.

    python3 bench/scaling.py --json FILE --svg FILE [--models mlp,cnn] [--device onednn:0]

Per model and batch: the median ms of a step, and the slope of log(time) over log(batch) at the largest batches (1: linear). Per
depth of an MLP of width 16: nodes of its step, and ms from opening the device to the end of the first step.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCHES = {"mlp": [16, 64, 256, 1024, 4096], "cnn": [8, 32, 128, 512], "resnet18:cifar": [4, 8, 16, 32, 64], "gpt:char": [1, 2, 4, 8, 16],
           "lstm": [16, 32, 64, 128, 256], "vit": [8, 16, 32, 64], "unet": [2, 4, 8, 16]}
DEPTHS = [64, 128, 256, 512, 1024]
COLORS = ["#2563eb", "#ea580c", "#16a34a", "#9333ea", "#0891b2", "#be123c", "#854d0e"]


def bench(o, options, **environment):
    """The one result of a run of `tutti bench`."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bench.json"
        subprocess.run([o.tutti, "bench", *options, "--ops", "none", "--device", o.device, "--precision", "f32", "--json", str(file)],
                       env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        result = json.loads(file.read_text())["results"][0]
    if result["status"] != "measured":
        raise RuntimeError(f"{' '.join(options)}: {result['reason']}")
    return result


def first_step(o, depth):
    """Nodes of the step of so deep an MLP, and ms of the first run."""
    layers = ",".join(["16"] * depth + ["10"])
    trace = subprocess.run([o.tutti, "train", "mlp", "--layers", layers, "--batch", "8", "--data", "synthetic:16:10:64:16", "--steps", "1",
                            "--no-eval", "--quiet", "--device", o.device], env={**os.environ, "TUTTI_TRACE": "graph"}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=True).stdout
    nodes = max(sum(" = " in line for line in graph.splitlines()) for graph in trace.split("graph"))
    return {"depth": depth, "nodes": nodes,
            "first_ms": round(bench(o, ["--models", "mlp", "--layers", layers, "--batch", "8", "--time", "0.1"])["first_ms"], 1)}


def chart(title, unit, curves, left):
    """A log-log chart of {name: [(x, y), …]}, with a line of slope 1 from each curve's last point back."""
    wide, high, pad = 460, 360, 48
    points = [p for c in curves.values() for p in c]
    low = [math.floor(math.log10(min(p[k] for p in points))) for k in (0, 1)]
    top = [math.log10(max(p[k] for p in points)) + 0.1 for k in (0, 1)]

    def at(p):
        x, y = ((math.log10(p[k]) - low[k]) / (top[k] - low[k]) for k in (0, 1))
        return left + pad + x * (wide - 2 * pad), high - pad - y * (high - 2 * pad)

    parts = [f'<text x="{left + pad}" y="24" font-size="13" font-weight="bold">{title}</text>']
    for axis in (0, 1):
        for power in range(low[axis], math.floor(top[axis]) + 1):
            x, y = at([10 ** power if k == axis else 10 ** low[k] for k in (0, 1)])
            end = (x, pad) if axis == 0 else (left + wide - pad, y)
            place = f'x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle"' if axis == 0 else f'x="{x - 4:.0f}" y="{y + 4:.0f}" text-anchor="end"'
            parts.append(f'<path d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}" stroke="#ddd"/><text {place}>{10.0 ** power:g}</text>')
    parts.append(f'<text x="{left + wide / 2}" y="{high - 12}" text-anchor="middle">{unit}</text>')
    for k, (name, curve) in enumerate(curves.items()):
        color, line = COLORS[k % len(COLORS)], " ".join("%.1f,%.1f" % at(p) for p in curve)
        back = (curve[0][0], curve[-1][1] * curve[0][0] / curve[-1][0])
        if back[1] >= 10 ** low[1]:
            parts.append('<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-dasharray="2 3" opacity="0.6"/>' % (*at(back), *at(curve[-1]), color))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append('<text x="%.1f" y="%.1f" fill="%s">%s</text>' % (at(curve[-1])[0] + 5, at(curve[-1])[1] + 4, color, name))
    return "".join(parts)


def measure(o):
    report = {"device": o.device, "batches": {}, "depths": []}
    for model in o.models.split(","):
        times = [(b, round(bench(o, ["--models", model, "--batch", str(b), "--time", o.time])["ms"]["median"], 3)) for b in BATCHES[model]]
        (b0, t0), (b1, t1) = times[-2:]
        slope = math.log(t1 / t0) / math.log(b1 / b0)
        report["batches"][model] = {"ms": times, "slope": round(slope, 3)}
        print(f"{model:16} slope {slope:.2f}   " + "  ".join(f"{b}: {t:.2f} ms" for b, t in times), flush=True)
    for depth in DEPTHS:
        report["depths"].append(first_step(o, depth))
        print("mlp {depth} deep: {nodes} nodes, first step after {first_ms:.0f} ms".format(**report["depths"][-1]), flush=True)
    return report


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--models", default=",".join(BATCHES))
    p.add_argument("--time", default="1", help="seconds per model and batch")
    p.add_argument("--from", dest="source", type=pathlib.Path, help="draw such a file's figures, and measure nothing")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--svg", type=pathlib.Path)
    o = p.parse_args()
    report = json.loads(o.source.read_text()) if o.source else measure(o)
    if o.json and not o.source:
        o.json.write_text(json.dumps(report) + "\n")
    if o.svg:
        steps = chart("ms per step (dotted: linear)", "samples per step", {m: r["ms"] for m, r in report["batches"].items()}, 0)
        first = chart("ms until the end of the first step", "nodes of the graph",
                      {"mlp": [(r["nodes"], r["first_ms"]) for r in report["depths"]]}, 460)
        o.svg.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="920" height="360" font-family="sans-serif" font-size="10">'
                         f'<rect width="100%" height="100%" fill="white"/>{steps}{first}</svg>\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
