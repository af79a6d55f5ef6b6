#!/usr/bin/env python3
"""Trains the same model from the same seed on every device, each on its own, and says how far the final accuracies are
apart. Writes docs/results/DATE-free-runs-MODEL.json. Exits 1 when they are more than one point apart."""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ["accuracy", "test_loss", "loss", "steps", "seconds"]


def document_of(command):
    """The JSON object that the command prints, and "" or what went wrong."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    except OSError as e:
        return {}, str(e)
    ended = f"exit code {done.returncode}"
    try:
        document = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {}, f"{ended}, and {'part of a' if done.stdout.strip() else 'no'} JSON document on its output"
    return document, document.get("error", "" if done.returncode == 0 else ended)


def usable_devices(binary):
    """All but the reference, which would take hours."""
    found, why = document_of([binary, "devices", "--json"])
    if why:
        sys.exit(f"free-runs: {binary} devices --json: {why}")
    return [d["id"] for d in found["devices"] if d["usable"] and not d["id"].startswith("reference:")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="cnn", choices=["cnn", "mlp"])
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--device", help="ids, separated by commas (every usable device but the reference)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=float, default=1.0, help="how many points of accuracy they may be apart")
    parser.add_argument("--out", type=pathlib.Path)
    o = parser.parse_args()
    args = ["train", o.model, "--epochs", str(o.epochs), "--data", o.data, "--seed", str(o.seed)]
    runs, lost = [], []
    for device in o.device.split(",") if o.device else usable_devices(o.binary):
        start = time.monotonic()
        document, why = document_of([o.binary, *args, "--device", device, "--quiet", "--json"])
        if why or "accuracy" not in document:
            lost.append(f"{device}: {why or 'its document has no accuracy'}")
            print(lost[-1], flush=True)
            continue
        run = {"device": device, **{k: document[k] for k in KEPT if k in document},
               "wall_seconds": round(time.monotonic() - start, 1)}
        runs.append(run)
        print(f"{device:<14} accuracy {100 * run['accuracy']:.2f} %, {run['wall_seconds']} s", flush=True)
    accuracies = [100 * r["accuracy"] for r in runs]
    apart = round(max(accuracies) - min(accuracies), 3) if runs else None
    ok = not lost and len(runs) > 1 and apart <= o.points
    out = o.out or ROOT / f"docs/results/{datetime.date.today().isoformat()}-free-runs-{o.model}.json"
    document = {"made_by": f"scripts/free-runs.py {o.model} --epochs {o.epochs}", "data": o.data, "seed": o.seed,
                "points_apart": apart, "within": o.points, "ok": ok, "lost": lost, "runs": runs}
    out.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{apart} points apart, {o.points} allowed: {'ok' if ok else 'FAIL'}; written to {out}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
