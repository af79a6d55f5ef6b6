#!/usr/bin/env python3
"""What a step costs while a checkpoint is written, step by step.

    python3 bench/saving.py [--steps 60] [--every 8] [--json FILE] [-- gpt --size char --batch 16]

Trains once and looks every 2 ms which lines steps.csv has and whether a checkpoint is being written. A step counts as one during a
save where a file was there for half of its time or more; the copy of the state, between two steps, is told apart. Behind `--`
stands what `tutti train` is given; steps of less than 50 ms are too short for it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import scaling


def watch(command, folder):
    """When each line of steps.csv was there, and the spans in which a file was written; seconds."""
    lines, spans, log, size = [], [], folder / "log/steps.csv", 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        writing = None
        while child.poll() is None:
            now = time.perf_counter()
            there = any(p.name.endswith(".tmp") for p in folder.iterdir())
            if there and writing is None:
                writing = now
            if not there and writing is not None:
                spans.append((writing, now))
                writing = None
            if log.exists() and log.stat().st_size != size:
                size = log.stat().st_size
                count = log.read_text(encoding="utf-8").count("\n") - 1
                lines += [now] * (count - len(lines))
            time.sleep(0.002)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit code {child.returncode}")
    return lines, spans


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(scaling.ROOT / "build/release/bin/tutti"))
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--every", type=int, default=8, help="steps between two saves")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("run", nargs="*", default=["gpt", "--size", "char", "--batch", "16"], help="what is trained")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "run.safetensors"
        lines, spans = watch([o.tutti, "train", *o.run, "--no-eval", "--quiet", "--steps", str(o.steps), "--checkpoint", str(file),
                              "--save-every", str(o.every), "--log-dir", str(folder / "log")], folder)
        size = file.stat().st_size
    during, without, copied = [], [], []
    for step, (begin, end) in enumerate(zip(lines, lines[1:]), 2):  # step: its number, from 1
        if step < 4:
            continue  # warming up
        written = sum(max(0, min(end, e) - max(begin, b)) for b, e in spans)
        if step % o.every == 1:
            copied.append(end - begin)
        elif written >= (end - begin) / 2:
            during.append(end - begin)
        elif written == 0:
            without.append(end - begin)
    if not during or not without:
        sys.exit(f"{len(during)} steps during a save and {len(without)} without: change --every, or train something larger")
    usual = statistics.median(without)
    record = {"run": o.run, "checkpoint_bytes": size, "saves": len(spans), "write_s": round(statistics.median(e - b for b, e in spans), 3),
              "step_ms": round(1000 * usual, 1), "steps_without": len(without), "steps_during": len(during),
              "during": {"median": round(statistics.median(during) / usual, 3), "worst": round(max(during) / usual, 3)},
              "without": {"worst": round(max(without) / usual, 3)},
              "copy_ms": round(1000 * (statistics.median(copied) - usual), 1)}
    print(json.dumps(record, indent=1))
    if o.json:
        o.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
