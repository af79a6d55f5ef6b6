#!/usr/bin/env python3
"""The memory that a training step of every row of table.py takes, beside PyTorch's: each in a process of its own.

A figure is the peak of resident memory over five steps less what was resident when all was loaded and a linear layer of two
numbers had been trained: weights, gradients, optimizer state, activations, what kernels and libraries take for them, and the few samples.
PyTorch runs eagerly (torch.compile's own caches would count against it) with its fused optimizer.

    $(scripts/python-env.sh --torch | tail -1) bench/peers/memory.py --json FILE [--rows gpt,lstm] [--precision f32,bf16]

Exit code: 0, 1 where a row takes more than PyTorch's.
"""
import argparse
import ctypes
import gc
import json
import pathlib
import resource
import subprocess
import sys

import table

# Few samples of each row's kind of data: the sets are not what is compared.
DATA = {"mlp-1024": "synthetic:1024:10:512:16", "mlp-gelu": "synthetic:1024:10:512:16", "mlp-784": "synthetic:1x28x28:10:512:16",
        "linear-4096": "synthetic:4096:4096:1024:16", "cnn": "synthetic:1x28x28:10:512:16", "cnn-256": "synthetic:1x28x28:10:512:16",
        "orientation": "orientation:128:64:16", "resnet18": "synthetic:3x32x32:10:64:16", "gpt": "synthetic-text:65:8192",
        "gpt2": "synthetic-text:50257:8192", "lstm": "synthetic:64x64:10:512:16", "vit": "synthetic:3x32x32:10:64:16", "unet": "shapes:64:64:16",
        "vae": "synthetic:1x28x28:10:512:16", "mobilenet_v2": "synthetic:3x32x32:10:64:16", "dlrm": "synthetic-clicks:13:26:1000:512"}


LEAST = {"kind": "model", "model": "mlp", "size": "default", "layers": "2,2", "batch": 2, "optimizer": "sgd", "lr": 1e-6, "samples": 64,
         "dropout": 0, "activation": "relu", "context": 0, "precision": "f32"}


def run(command):
    """What a process that ends well prints."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, message = child.communicate()
    if child.returncode != 0:
        raise RuntimeError(message.strip().splitlines()[-1] if message.strip() else f"exit code {child.returncode}")
    return said


def option(options, name, default):
    return options[options.index(name) + 1] if name in options else default


def ours(o, options, data, precision):
    """Peak of resident MiB of the command."""
    model, _, size = option(options, "--models", "").partition(":")
    rest = [x for k in range(0, len(options), 2) if options[k] != "--models" for x in options[k:k + 2]]
    command = [o.tutti, "train", model, *(["--size", size] if size else []), *rest, "--data", data, "--steps", "5", "--no-eval", "--quiet",
               "--device", o.device, "--precision", precision]
    return float(run([sys.executable, __file__, "--peak-of", json.dumps(command)]))


def theirs(case):
    return float(run([sys.executable, __file__, "--step", json.dumps(case)]))


def peak_of(command):
    """Peak of resident MiB of the one child of this process."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def resident(field):
    """VmRSS or VmHWM of this process in MiB."""
    line = next(x for x in pathlib.Path("/proc/self/status").read_text().splitlines() if x.startswith(field))
    return int(line.split()[1]) / 1024


def step(case):
    """By how many MiB this process grows over five eager steps of PyTorch."""
    import rounds_torch
    import torch
    peer = rounds_torch.Peer(0)
    for _ in range(3):
        peer.step_in(LEAST, torch.device("cpu"), "eager")()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: proc(5)
    before, run_step = resident("VmRSS"), peer.step_in(case, torch.device("cpu"), "eager")
    for _ in range(5):
        run_step()
    return resident("VmHWM") - before


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(table.ROOT / "build/release/bin/tutti"))
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--rows", default="all", help=", ".join(table.ROWS))
    p.add_argument("--precision", default="f32,bf16")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    p.add_argument("--peak-of", type=json.loads, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.step or o.peak_of:
        print(step(o.step) if o.step else peak_of(o.peak_of))
        return 0
    listed = {m["name"]: m for m in json.loads(subprocess.run([o.tutti, "models", "--json"], check=True, stdout=subprocess.PIPE).stdout)["models"]}
    base = ours(o, ["--models", "mlp", "--layers", "2,2", "--batch", "2"], "synthetic:2:2:64:16", "f32")
    print("| step | precision | Tutti MiB | PyTorch MiB | ratio |\n| --- | --- | --- | --- | --- |")
    records = []
    for row in table.ROWS if o.rows == "all" else o.rows.split(","):
        title, options, *_ = table.ROWS[row]
        model, _, size = option(options, "--models", "").partition(":")
        sizes = {s["name"]: s for s in listed[model]["sizes"]}
        size = size or listed[model]["sizes"][0]["name"]
        for precision in o.precision.split(","):
            case = {**LEAST, "model": model, "size": size, "layers": option(options, "--layers", "784,512,256,10"),
                    "batch": int(option(options, "--batch", sizes[size]["batch"])),
                    "optimizer": option(options, "--optimizer", listed[model]["optimizer"]),
                    "dropout": float(option(options, "--dropout", 0)), "activation": option(options, "--activation", "relu"),
                    "context": int(option(options, "--context", 0)), "samples": 1024, "precision": precision}
            mine, other = ours(o, options, DATA[row], precision) - base, theirs(case)
            records.append({"row": row, "precision": precision, "tutti_mib": round(mine, 1), "torch_mib": round(other, 1)})
            print(f"| {title} | {precision} | {mine:.0f} | {other:.0f} | {mine / other:.2f} |", flush=True)
    if o.json:
        o.json.write_text(json.dumps(records, indent=1) + "\n")
    return 1 if any(r["tutti_mib"] > r["torch_mib"] for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
