#!/usr/bin/env python3
"""Where the time of each row of the peers' table goes: ops by their share of the kernels' time, and how near each is to its roofline.

    python3 bench/peers/profiles.py                              all rows in f32 and bf16, a Markdown table on stdout
    python3 bench/peers/profiles.py --rows gpt,lstm --precision bf16

The same steps as scripts/bench-peers.sh, by `tutti train --profile` on synthetic data.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

from table import ROOT, ROWS


def train_options(options):
    """Those of `tutti bench`, as `tutti train` takes them."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    model, _, size = given.pop("--models").partition(":")
    more = ["--size", size] if size else []
    if "--layers" in given:
        layers = given["--layers"].split(",")
        more += ["--data", f"synthetic:{layers[0]}:{layers[-1]}:{16 * int(given['--batch'])}:64"]
    return [model, *more, *(word for pair in given.items() for word in pair)]


def profile(o, row, precision):
    """[(op, share of the kernels' time, share of its roofline)], ms a step."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace.json"
        done = subprocess.run([o.tutti, "train", *train_options(ROWS[row][1]), "--precision", precision, "--device", o.device, "--steps", "12",
                               "--no-eval", "--quiet", "--profile", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{row}: {done.stderr.strip()}")
        trace = json.loads(file.read_text())
    took, least = collections.Counter(), collections.Counter()
    for e in trace["traceEvents"]:
        op = e.get("args", {}).get("op") if e["ph"] == "X" else None
        if op:
            took[op] += e["dur"]
            least[op] += e["dur"] * (e["args"]["roofline_share"] or 0)
    total = sum(took.values())
    return [(op, us / total, least[op] / us) for op, us in took.most_common()], trace["otherData"]["step_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--rows", default="all", help=", ".join(ROWS))
    p.add_argument("--precision", default="f32,bf16")
    o = p.parse_args()
    print("| step | | ms | share of the kernels' time (share of the roofline) |\n| --- | --- | --- | --- |")
    for row in ROWS if o.rows == "all" else o.rows.split(","):
        for precision in o.precision.split(","):
            ops, ms = profile(o, row, precision)
            text = ", ".join(f"{op} {100 * share:.0f} % ({roof:.2f})" for op, share, roof in ops[:6] if share >= 0.03)
            print(f"| {ROWS[row][0]} | {precision} | {ms:.1f} | {text} |", flush=True)


if __name__ == "__main__":
    main()
