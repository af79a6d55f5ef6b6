#!/usr/bin/env python3
"""Writes docs/ROOFLINE.md: what a step of every model would take on three cards, predicted by `tutti plan --roofline`.

usage: roofline-table.py [--build FOLDER] [MODEL...]

The plans are those of the CUDA plugin on the software CUDA device (scripts/softcuda.sh), in bf16 for the H100, and of the
Vulkan plugin for the RX 7600, in f32, on lavapipe as a card of the same architecture. No such card is needed; nothing is
measured.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIKE_A_GPU = ROOT / "tests/limits/rx-7900-xtx.json"  # else lavapipe gets the kernels for CPUs
CARDS = [("h100", "cuda:0", "bf16"), ("rtx3060", "cuda:0", "f32"), ("rx7600", "vulkan", "f32")]
HEAD = """# Predicted step times

Written by `scripts/roofline-table.py`. **Predictions, not measurements**: each kernel of the compiled plan takes the larger of its
bytes by {memory} % of the memory's peak rate and its FLOPs by {products} % of the peak of products, and each launch a fixed time
([BENCH.md](BENCH.md#predictions)). "could save" is what the plan's adjacent kernels without products would save if they were one
kernel each. Each model has its default size and batch; {where}.

| model | batch | {cards} |
| --- | ---: | {line} |
"""


def predicted(tutti, model, card, device, precision):
    command = [tutti, "plan", model, "--device", device, "--precision", precision, "--no-eval", "--no-search", "--roofline",
               card, "--json"]
    if device.startswith("cuda"):
        command = [ROOT / "scripts/softcuda.sh", "--build", tutti.parent.parent, *command]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                         env={**os.environ, "TUTTI_VULKAN_LIMITS": str(LIKE_A_GPU)})
    if run.returncode not in (0, 1):
        sys.exit(f"roofline-table: {model} on {device}: {run.stderr.strip()}")
    document = json.loads(run.stdout)
    return document["batch"], document["plans"][0].get("roofline")


def cell(p):
    if not p:
        return "not planned"
    saved = sum(f["saved_us"] for f in p["fusable"]) / 1000
    return f"{p['step_ms']:.3g} ms, {p['launches']} launches, could save {saved:.2g} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    tutti = (args.build / "bin/tutti").resolve()
    listed = json.loads(subprocess.run([tutti, "models", "--json"], capture_output=True, text=True, check=True).stdout)
    names = args.models or [m["name"] for m in (listed["models"] if isinstance(listed, dict) else listed)]
    rows, plan = [], None
    for name in names:
        cells = [predicted(tutti, name, *card) for card in CARDS]
        plan = next((p for _, p in cells if p), plan)
        rows.append(f"| {name} | {cells[0][0]} | " + " | ".join(cell(p) for _, p in cells) + " |")
        print(rows[-1], file=sys.stderr)
    if args.models:
        return
    titles = [f"{card}, {precision}" for card, _, precision in CARDS]
    shares = {k: round(100 * plan[f"{k}_share"]) for k in ("memory", "product")}
    head = HEAD.format(memory=shares["memory"], products=shares["product"], cards=" | ".join(titles), line=" | ".join("---" for _ in CARDS),
                       where="the H100's and RTX 3060's plans are the CUDA plugin's without cuBLAS and cuDNN, the RX 7600's the Vulkan plugin's with the limits of "
                             "an RX 7900 XTX")
    (ROOT / "docs/ROOFLINE.md").write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
