#!/usr/bin/env python3
"""What a newcomer waits for: ms from opening a device to the end of the first step, with empty caches and with full ones.

    python3 bench/first_steps.py --device opencl:0 --json FILE [--models resnet18,gpt]

Cold: XDG_CACHE_HOME is an empty folder, so that neither Tutti nor the driver (PoCL, Mesa) has a compiled kernel. Warm: the same
folder again, in a new process. Models in their usual size, f32.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import scaling


def first_ms(o, model, cache):
    options = ["--models", model, "--quick", "--batch", str(o.batch[model]), "--layers", "784,512,256,10", "--time", "0.01", "--repetitions", "2"]
    return round(scaling.bench(o, options, XDG_CACHE_HOME=cache)["first_ms"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(scaling.ROOT / "build/release/bin/tutti"))
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--models", default="", help="separated by commas (all)")
    p.add_argument("--json", type=pathlib.Path)
    o = p.parse_args()
    listed = json.loads(subprocess.run([o.tutti, "models", "--json"], check=True, stdout=subprocess.PIPE).stdout)["models"]
    usual = {m["name"]: m["sizes"][0] for m in listed}
    o.batch = {f"{m}:{size['name']}": size["batch"] for m, size in usual.items()}
    records = []
    for name in o.models.split(",") if o.models else usual:
        model = f"{name}:{usual[name]['name']}"
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = first_ms(o, model, cache), first_ms(o, model, cache)
        records.append({"model": model, "cold_ms": cold, "warm_ms": warm})
        print(f"{model:20} cold {cold:6} ms   warm {warm:6} ms", flush=True)
    if o.json:
        o.json.write_text(json.dumps({"device": o.device, "models": records}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
