#!/usr/bin/env python3
"""Steps of a model that has learned its data by heart: gradients and moments become denormal numbers.

    python3 bench/denormals.py [--devices onednn,opencl,reference] [--tutti BINARY] [--json FILE]

Per device: the mean ms of the first and of the last 20 of 200 steps of an MLP with GELU, batch 512, on labels that it learns in a few
steps, and their ratio. Exit code 0.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAYERS = {"reference": "64,64,64,10"}  # in float64 and on one thread
STEPS, ENDS = 200, 20


def ends_of_steps(o, device):
    """Seconds at which each step ended, and the last loss."""
    layers = LAYERS.get(device, "1024,2048,2048,10")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([o.tutti, "train", "mlp", "--layers", layers, "--activation", "gelu", "--batch", "512", "--optimizer", "adamw", "--lr",
                        "0.01", "--data", f"synthetic:{layers.split(',')[0]}:10:512:64", "--steps", str(STEPS), "--device", device, "--no-eval",
                        "--quiet", "--log-dir", folder], check=True, stdout=subprocess.DEVNULL)
        rows = list(csv.DictReader((pathlib.Path(folder) / "steps.csv").open(encoding="utf-8")))
    return [float(row["seconds"]) for row in rows], float(rows[-1]["loss"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="onednn,opencl,reference")
    parser.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--json", help="write the figures there")
    o = parser.parse_args()
    rows = []
    for device in o.devices.split(","):
        ends, loss = ends_of_steps(o, device)
        first, last = (1000 * (x[-1] - x[0]) / ENDS for x in (ends[:ENDS + 1], ends[-ENDS - 1:]))
        rows.append({"device": device, "first_ms": round(first, 3), "last_ms": round(last, 3), "ratio": round(last / first, 3), "loss": loss})
        print("  ".join(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
