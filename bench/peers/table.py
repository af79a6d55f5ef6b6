#!/usr/bin/env python3
"""Every model's training step beside the fastest of its peers: ratios, shares of the roofline, geometric means.

Each row is one run of `tutti bench`: device and peers (PyTorch: the faster of eager and compile, both with fused optimizers; JAX)
are open side by side and take turns. A calibration refuses a busy machine. --runs N repeats all of it; the table shows medians.

    scripts/bench-peers.sh                         all rows in f32 and bf16
    scripts/bench-peers.sh --rows gpt,lstm --time 2
    scripts/bench-peers.sh --device opencl:0 --beside onednn:0 --peer tinygrad --precision f32
    scripts/bench-peers.sh --from docs/results/FILE.json

Exit code: 0, 1 where a row failed, 3 on a busy machine.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Name: what it is, options of `tutti bench`, the ratio to aim for in f32 and bf16, the share of the roofline in f32 and bf16.
ROWS = {
    "mlp-1024": ("MLP 1024-2048-512-10 B128 Adam", ["--models", "mlp", "--layers", "1024,2048,512,10", "--batch", "128"],
                 (0.75, 0.55), (0.85, 0.5)),
    "mlp-gelu": ("MLP 1024-2048-2048-10 GELU B512 AdamW",
                 ["--models", "mlp", "--layers", "1024,2048,2048,10", "--activation", "gelu", "--batch", "512", "--optimizer", "adamw"],
                 (0.88, 0.60), (0.85, 0.5)),
    "mlp-784": ("MLP 784-512-256-10 dropout B64 Adam",
                ["--models", "mlp", "--layers", "784,512,256,10", "--dropout", "0.2", "--batch", "64"], (0.40, 0.35), (0.85, 0.5)),
    "linear-4096": ("Linear 4096 B1024 AdamW",
                    ["--models", "mlp", "--layers", "4096,4096", "--batch", "1024", "--optimizer", "adamw"], (0.70, 0.55), (0.85, 0.5)),
    "cnn": ("CNN 32-64-fc128 B64 Adam", ["--models", "cnn", "--batch", "64"], (0.35, 0.30), (0.6, 0.5)),
    "cnn-256": ("CNN B256", ["--models", "cnn", "--batch", "256"], (0.40, 0.35), (0.6, 0.5)),
    "orientation": ("orientation CNN 128x128 B32 Adam", ["--models", "orientation", "--batch", "32"], (0.45, 0.35), (0.6, 0.5)),
    "resnet18": ("ResNet-18 CIFAR B32 SGD", ["--models", "resnet18:cifar", "--batch", "32", "--optimizer", "sgd"], (0.75, 0.45),
                 (0.6, 0.5)),
    "gpt": ("char-GPT 6x384 B8 T256 AdamW", ["--models", "gpt:char", "--batch", "8"], (0.80, 0.50), (0.85, 0.5)),
    "gpt2": ("GPT-2 124M B1 T256 AdamW", ["--models", "gpt:gpt2", "--batch", "1", "--context", "256"], (0.25, 0.65), (0.85, 0.5)),
    "lstm": ("LSTM 64-256 B64 T64 Adam", ["--models", "lstm", "--batch", "64"], (0.40, 0.35), (0, 0.5)),
    "vit": ("ViT CIFAR B32", ["--models", "vit"], (0.8, 0.8), (0, 0.5)),
    "unet": ("U-Net B8", ["--models", "unet"], (0.8, 0.8), (0, 0.5)),
    "vae": ("VAE B128", ["--models", "vae"], (0.8, 0.8), (0, 0.5)),
    "mobilenet_v2": ("MobileNetV2 CIFAR B32", ["--models", "mobilenet_v2"], (0.8, 0.8), (0, 0.5)),
    "dlrm": ("DLRM B128", ["--models", "dlrm"], (0.8, 0.8), (0, 0.5)),
}


def bench(o, row):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bench.json"
        devices = ",".join(filter(None, [o.device, o.beside]))
        done = subprocess.run([o.tutti, "bench", *ROWS[row][1], "--ops", "none", "--device", devices, "--precision", o.precision, "--peer",
                               o.peer, "--python", sys.executable, "--time", str(o.time), "--json", str(file)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if not file.exists():
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}")
        return json.loads(file.read_text())


def records(o, row, document):
    """Per precision: our time, share of the roofline and first run, and every other lane's time."""
    out = []
    for precision in o.precision.split(","):
        lanes = {r["lane"]: r for r in document["results"] if r["precision"] == precision}
        ours = next((r for lane, r in lanes.items() if lane.startswith(o.device.split(":")[0])), None)
        if not ours or ours["status"] != "measured":
            out.append({"row": row, "precision": precision, "failed": ours["reason"] if ours else "no such device"})
            continue
        others = {lane: {"ms": r["ms"]["median"], "first_ms": r["first_ms"]} if r["status"] == "measured" else {"reason": r["reason"]}
                  for lane, r in lanes.items() if r is not ours}
        out.append({"row": row, "precision": precision, "ms": ours["ms"]["median"], "first_ms": ours["first_ms"],
                    "share": ours["share_of_peaks"], "bound": ours["bound"], "memory": ours["peak_bytes"], "others": others})
    return out


def table(report):
    def best(r):
        times = {lane: x["ms"] for lane, x in r["others"].items() if "ms" in x and lane != report.get("beside")}
        lane = min(times, key=times.get) if times else None
        return (lane, times[lane]) if lane else None

    lines = [machine.told(report["cpu"]) + f", {report['date']}", ""] if "cpu" in report else []
    lines += ["| step | precision | ms | fastest peer | its ms | ratio | aim | share of the roofline | aim | first ms |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    ratios = {}
    for row, (title, _, aims, shares) in ROWS.items():
        for k, precision in enumerate(("f32", "bf16")):
            runs = [r for run in report["runs"] for r in run if r["row"] == row and r["precision"] == precision]
            good = [r for r in runs if "ms" in r]
            if not good:
                lines += [f"| {title} | {precision} | {runs[0]['failed']} | | | | | | | |"] if runs else []
                continue
            pairs = [(best(r), r) for r in good]
            ratio = [r["ms"] / b[1] for b, r in pairs if b]
            ratios.setdefault(precision, []).extend([statistics.median(ratio)] if ratio else [])
            share, mark = statistics.median([r["share"] for r in good]), lambda ok: "" if ok else " (missed)"
            peer = [f"{pairs[0][0][0]} | {statistics.median([b[1] for b, _ in pairs]):.2f} | {statistics.median(ratio):.2f}{mark(statistics.median(ratio) <= aims[k])}"
                    if ratio else "| | "]
            lines.append(f"| {title} | {precision} | {statistics.median([r['ms'] for r in good]):.2f} | {peer[0]} | {aims[k]} | "
                         f"{share:.2f}{mark(share >= shares[k])} | {shares[k] or ''} | {statistics.median([r['first_ms'] for r in good]):.0f} |")
    lines += [""] + [f"Geometric mean of the ratios in {p}: {machine.geometric_mean(r):.2f} over {len(r)} rows"
                     for p, r in ratios.items() if r]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--rows", default="all", help=", ".join(ROWS))
    p.add_argument("--device", default="onednn:0")
    p.add_argument("--beside", default="", help="another device of ours: its times go into the file, not into the ratios")
    p.add_argument("--peer", default="torch,jax")
    p.add_argument("--precision", default="f32,bf16")
    p.add_argument("--time", type=float, default=3, help="seconds per lane and row")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--json", help="the figures of all runs, into this file after every row")
    p.add_argument("--from", dest="source", help="print the table of such a file, and run nothing")
    p.add_argument("--anyway", "--even-busy", action="store_true", help="go on where others are at work")
    o = p.parse_args()
    if o.source:
        print(table(json.loads(pathlib.Path(o.source).read_text())))
        return 0
    rows = list(ROWS) if o.rows == "all" else o.rows.split(",")
    unknown = [r for r in rows if r not in ROWS]
    if unknown:
        p.error(f"--rows: no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    report = {"date": datetime.date.today().isoformat(), "device": o.device, "beside": o.beside, "peer": o.peer, "cpu": machine.describe(), "runs": [], "free": []}
    failed = False
    for run in range(o.runs):
        report["runs"].append([])
        for row in rows:
            # What the row before left behind ends by itself.
            report["free"].append(round(machine.quiet_or_exit("bench-peers", o.anyway, tries=6), 3))
            print(f"run {run + 1} of {o.runs}: {row}", file=sys.stderr, flush=True)
            try:
                document = bench(o, row)
                report.update(machine=document["machine"], lanes=[{k: x[k] for k in ("id", "name", "driver")} for x in document["lanes"]])
                report["runs"][-1] += records(o, row, document)
            except RuntimeError as e:
                report["runs"][-1] += [{"row": row, "precision": precision, "failed": str(e)} for precision in o.precision.split(",")]
            failed |= any("failed" in r for r in report["runs"][-1])
            if o.json:
                pathlib.Path(o.json).write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
