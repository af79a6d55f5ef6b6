#!/usr/bin/env python3
"""Every product of the zoo's training steps in each layout of its operands: rates of oneDNN and of PyTorch.

    scripts/bench-shapes.sh                          every shape in f32 and bf16
    scripts/bench-shapes.sh --models gpt:char,mlp --threads 1 --rounds 5 --json FILE
    scripts/bench-shapes.sh --from docs/results/FILE.json

Shapes are those of the matmul nodes of each model's step; the rate is that of the fastest run of all rounds. Layouts: "as stored" (what
the step has), both operands row-major, the weights transposed, the weights in oneDNN's own format ("own"; also with the time to
pack them for each product), both operands so, and dnnl_sgemm. PyTorch multiplies as stored; where it is not installed, its column is
missing. Exit code: 0, 2 for wrong options, 3 where the machine is not quiet (--anyway).
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = ["as stored", "row-major", "transposed", "own", "own, packed each time", "own, both", "own, both, packed each time", "sgemm", "PyTorch"]
PRECISIONS = ["f32", "bf16"]
LINE = re.compile(r"^((?:%\d+, )*%\d+) = (.*) : (.*?)(?:  # .*)?$")
PRODUCT = re.compile(r"matmul\(%(\d+), %(\d+)\) \{ta=(\d), tb=(\d)\}")


class Failed(Exception):
    """A program that did not do its work."""


def sizes(tutti, wanted):
    """[(model, size)] of "all" or "gpt:char,mlp"."""
    done = subprocess.run([tutti, "models", "--json"], check=True, stdout=subprocess.PIPE, text=True)
    known = {m["name"]: [s["name"] for s in m["sizes"]] for m in json.loads(done.stdout)["models"]}
    if wanted == "all":
        return [(m, s) for m, names in known.items() for s in names if s != "tiny"]
    pairs = []
    for text in wanted.split(","):
        name, _, size = text.partition(":")
        if name not in known or (size and size not in known[name]):
            raise Failed(f"--models: there is no {text}; known are {', '.join(f'{m}:{s}' for m, names in known.items() for s in names)}")
        pairs.append((name, size or known[name][0]))
    return pairs


def products(graph):
    """{(batch, m, k, n, ta, tb): how many nodes} of a graph as TUTTI_TRACE=graph prints it."""
    types, found = {}, {}
    for line in graph.splitlines():
        if not (node := LINE.match(line)):
            continue
        shapes = [[int(d) for d in dims.split(", ") if d] for dims in re.findall(r"\w+\[([^\]]*)\]", node.group(3))]
        types.update(zip(node.group(1).replace("%", "").split(", "), shapes))
        if not (product := PRODUCT.search(node.group(2))):
            continue
        (a, b), (ta, tb) = (types[v] for v in product.groups()[:2]), (int(v) for v in product.groups()[2:])
        y, k = shapes[0], a[-2] if ta else a[-1]
        folds = len(b) == 2 and not ta  # backends/onednn/matmul.cpp makes rows of the batch then
        batch, m = (1, math.prod(y[:-1])) if folds else (math.prod(y[:-2]), y[-2])
        shape = (batch, m, k, y[-1], ta, tb)
        found[shape] = found.get(shape, 0) + 1
    return found


def shapes_of_zoo(o):
    """{shape: [models that have it]}, the longest product last."""
    where = {}
    for name, size in sizes(o.tutti, o.models):
        done = subprocess.run([o.tutti, "plan", name, "--size", size, "--no-search", "--device", o.device], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, "TUTTI_TRACE": "graph"})
        if done.returncode != 0:
            raise Failed(f"tutti plan {name}: {(done.stdout.strip().splitlines() or ['?'])[-1]}")
        for shape in products(done.stdout.split("[graph]")[1]):  # the first program is the training step
            where.setdefault(shape, []).append(f"{name}:{size}")
    return {s: where[s] for s in sorted(where, key=lambda s: s[0] * s[1] * s[2] * s[3]) if s[0] * s[1] * s[2] * s[3] >= o.least}


class Torch:
    """Products of PyTorch, or none where it is not installed."""

    def __init__(self, threads, ms):
        self.seconds = ms / 1000
        try:
            import torch
        except ImportError:
            torch = None
            print("bench-shapes: PyTorch is not installed (scripts/python-env.sh --torch): no column of it", file=sys.stderr)
        self.torch = torch
        if torch:
            torch.set_num_threads(threads)

    def rate(self, precision, shape):
        if not self.torch:
            return None
        torch, (batch, m, k, n, ta, tb) = self.torch, shape
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
        batched = [batch] if batch > 1 else []
        a, b = (torch.full(batched + dims, 0.5, dtype=dtype) for dims in ([k, m] if ta else [m, k], [n, k] if tb else [k, n]))
        a, b = a.mT if ta else a, b.mT if tb else b
        y = torch.empty(batched + [m, n], dtype=dtype)
        best, runs = float("inf"), 0
        torch.matmul(a, b, out=y)
        begin = time.perf_counter()
        while runs < 3 or time.perf_counter() - begin < self.seconds:
            start = time.perf_counter()
            torch.matmul(a, b, out=y)
            best, runs = min(best, time.perf_counter() - start), runs + 1
        return 2e-9 * batch * m * k * n / best


def write(file, report):
    """One line per row, so that files can be compared."""
    if file:
        text = json.dumps({**report, "rows": None}, indent=1)
        rows = ",\n  ".join(map(json.dumps, report["rows"]))
        file.write_text(text.replace(' "rows": null', f' "rows": [\n  {rows}\n ]') + "\n", encoding="utf-8")


def measure(o, shapes, report):
    """Adds one row per shape and precision, in rounds over all of them, so that other load meets all alike."""
    server = subprocess.Popen([o.products, "--threads", str(o.threads), "--ms", str(o.ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    peer = Torch(o.threads, o.ms)
    rows = [{"precision": p, "shape": list(s), "models": models, "rates": {}} for s, models in shapes.items() for p in o.precision]
    for number in range(o.rounds):
        for at, row in enumerate(rows):
            if time.monotonic() > o.end:
                print(f"bench-shapes: out of time in round {number + 1}, at {at} of {len(rows)}", file=sys.stderr)
                break
            server.stdin.write(f"{row['precision']} {' '.join(map(str, row['shape']))}\n")
            server.stdin.flush()
            if not (line := server.stdout.readline()):
                raise Failed(f"{o.products}: exit code {server.wait()}")
            found = json.loads(line)
            if rate := peer.rate(row["precision"], row["shape"]):
                found["PyTorch"] = rate
            for way, rate in found.items():
                row["rates"][way] = round(max(rate, row["rates"].get(way, 0)), 1)
        print(f"bench-shapes: round {number + 1} of {o.rounds}", file=sys.stderr, flush=True)
        report["rows"] = [r for r in rows if r["rates"]]
        write(o.json, report)
    server.stdin.close()
    server.wait()


def kind(shape):
    ta, tb = shape[4:]
    return {(0, 0): "a b", (0, 1): "a b^T", (1, 0): "a^T b", (1, 1): "a^T b^T"}[(ta, tb)]


def table(report):
    """Rates as a share of "as stored", whose rate is in GFLOP/s."""
    lines = [f"{machine.told(report['machine'])}; oneDNN on {report['threads']} threads, {report['date']}", ""]
    for precision in PRECISIONS:
        rows = [r for r in report["rows"] if r["precision"] == precision]
        ways = [w for w in WAYS[1:] if any(w in r["rates"] for r in rows)]
        if not rows:
            continue
        lines += [f"## {precision}", ""]
        cells, ratios = [], {w: {} for w in ways}
        for r in rows:
            batch, m, k, n = r["shape"][:4]
            stored = r["rates"]["as stored"]
            for w in ways:
                if w in r["rates"]:
                    ratios[w].setdefault(kind(r["shape"]), []).append(r["rates"][w] / stored)
            cells.append([f"{f'{batch} x ' if batch > 1 else ''}{m}x{k}x{n}", kind(r["shape"]), f"{stored:.0f}",
                          *(f"{r['rates'][w] / stored:.2f}" if w in r["rates"] else "" for w in ways), len(r["models"])])
        lines += [machine.markdown(["m x k x n", "product", "as stored, GFLOP/s", *ways, "models"], cells), ""]
        for which in ("a b", "a b^T", "a^T b", "a^T b^T"):
            found = [f"{w} {statistics.median(by[which]):.2f} ({sum(x > 1.05 for x in by[which])} of {len(by[which])} above 1.05)"
                     for w, by in ratios.items() if which in by]
            lines += [f"- {which}, medians over as stored: {', '.join(found)}"] if found else []
        lines.append("")
    return "\n".join(lines).rstrip()


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--products", default=str(ROOT / "build/release/bin/product_layouts"), help="the program that runs oneDNN")
    p.add_argument("--device", default="onednn", help="whose training step is looked at (default: %(default)s)")
    p.add_argument("--models", default="all", help="NAME[:SIZE], … (default: every size but tiny)")
    p.add_argument("--precision", type=lambda text: text.split(","), default=PRECISIONS, help="f32, bf16 (default: both)")
    p.add_argument("--threads", type=int, default=machine.cpus())
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=float, default=50, help="per layout, shape and round (default: %(default)g)")
    p.add_argument("--least", type=float, default=1e6, help="leave out products of fewer multiplications (default: %(default)g)")
    p.add_argument("--deadline", type=float, default=3600, metavar="S", help="begin no shape after so many seconds (default: %(default)g)")
    p.add_argument("--anyway", action="store_true", help="measure on a machine that is not quiet, too")
    p.add_argument("--list", action="store_true", help="print the shapes and the models that have them, and measure nothing")
    p.add_argument("--json", type=pathlib.Path, help="the figures, into this file after every round")
    p.add_argument("--from", dest="source", type=pathlib.Path, help="print the table of such a file, and measure nothing")
    o = p.parse_args()
    if unknown := [x for x in o.precision if x not in PRECISIONS]:
        p.error(f"--precision: there is no {unknown[0]}; known are {', '.join(PRECISIONS)}")
    if not 1 <= o.threads <= machine.cpus():
        p.error(f"--threads {o.threads}: this process may use {machine.cpus()} CPUs")
    if o.rounds < 1 or o.ms <= 0:
        p.error("--rounds and --ms must be above 0")
    return p, o


def main():
    p, o = options()
    try:
        if o.source:
            print(table(json.loads(o.source.read_text(encoding="utf-8"))))
            return 0
        shapes = shapes_of_zoo(o)
        if o.list:
            print("\n".join(f"{'x'.join(map(str, s[:4]))} {kind(s)}: {', '.join(models)}" for s, models in shapes.items()))
            return 0
        report = {"date": datetime.date.today().isoformat(), "machine": machine.describe(machine.quiet_or_exit("bench-shapes", o.anyway)),
                  "threads": o.threads, "rounds": o.rounds, "rows": []}
        o.end = time.monotonic() + o.deadline
        measure(o, shapes, report)
    except (Failed, OSError, ValueError, KeyError) as e:
        p.error(str(e))
    print(table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
