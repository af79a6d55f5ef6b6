#!/usr/bin/env python3
"""Whole training steps of Tutti and of a peer, taken in turn on the same machine with the same threads; prints ratios.

Makes the peer's own virtual environment (.venv/PEER) the first time. Needs build/release/bin/tutti (scripts/quickstart.sh).

  bench/compare.py                      against PyTorch: two MLPs and the CNN
  bench/compare.py --full               also the CNN's three epochs on Fashion-MNIST, with accuracy
  bench/compare.py --peer tinygrad      against tinygrad, both through OpenCL
  bench/compare.py --device cuda --peer-device cuda --peer-modes eager,compile,reduce-overhead
                                        both on a CUDA device; the ratios are to the fastest of the peer's modes
  bench/compare.py --save NAME          writes docs/results/NAME.json too
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
TUTTI = os.path.join(ROOT, "build/release/bin/tutti")
PEERS = {"torch": (["torch", "numpy"], "auto"), "tinygrad": (["tinygrad", "numpy"], "opencl")}  # packages, our device

# name, options of both, data of Tutti, data of the peer. Single steps are timed at a learning rate that leaves the loss
# where it is: made-up data is soon solved, and the denormal numbers of a solved task slow every CPU down.
STEPS = [
    ("mlp 1024-2048-512-10, batch 128", ["mlp", "--layers", "1024,2048,512,10", "--batch", "128", "--lr", "1e-6"],
     "synthetic:1024:10", "synthetic"),
    ("mlp 784-512-256-10, batch 64", ["mlp", "--layers", "784,512,256,10", "--batch", "64", "--lr", "1e-6"],
     "synthetic:784:10", "synthetic"),
    ("cnn, batch 64", ["cnn", "--batch", "64", "--lr", "1e-6"], "synthetic:1x28x28:10", "synthetic"),
]
FULL = ("cnn, batch 64, 3 epochs of fashion-mnist", ["cnn", "--batch", "64", "--lr", "1e-3", "--epochs", "3"],
        "fashion-mnist", "fashion-mnist")


def peer_python(peer, device):
    """The interpreter of the peer's own environment, made when it is not there or not whole."""
    packages, _ = PEERS[peer]
    folder = os.path.join(ROOT, ".venv", peer if device == "cpu" else f"{peer}-{device}")
    python = os.path.join(folder, "bin/python")
    if os.path.exists(python) and \
            subprocess.run([python, "-c", f"import {', '.join(packages)}"], capture_output=True, check=False).returncode == 0:
        return python
    print(f"compare: making {os.path.relpath(folder)} with {', '.join(packages)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    cpu_only = ["--index-url", "https://download.pytorch.org/whl/cpu", "--retries", "0"]
    if peer != "torch" or device != "cpu" or subprocess.run(install + cpu_only + packages, check=False).returncode != 0:
        if peer == "torch" and device == "cpu":
            print("compare: no CPU build at download.pytorch.org; taking PyPI's (with CUDA, some GB)", file=sys.stderr)
        subprocess.run(install + packages, check=True)
    return python


def run(command, threads):
    """The JSON document that the command prints, with the wall time of the whole process."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if any("peer_" in part for part in command):  # some kernels put both threads on one core; Tutti binds its own, so the peer's are bound too
        env.setdefault("OMP_PROC_BIND", "true")
    start = time.perf_counter()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(command)}: exit code {done.returncode}")
    return dict(json.loads(done.stdout), wall_s=time.perf_counter() - start)


def summary(runs, key):
    values = [r[key] for r in runs]
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def take_turns(case, args, python, more, rounds):
    name, options, data, peer_data = case
    judged = data == peer_data  # made-up data differs, so its accuracy says nothing
    common = options + more + ["--optimizer", "adam"]
    threads = ["--threads", str(args.threads)]
    device = args.device or PEERS[args.peer][1]
    if args.tf32:
        common_peer, common = common + ["--tf32"], common + ["--precision", "tf32"]
    else:
        common_peer = common
    if args.peer == "torch":
        common_peer = common_peer + ["--device", args.peer_device]
    mine = common + (threads if device.startswith(("auto", "cpu", "onednn")) else [])  # GPUs' plugins have no such option
    modes = args.peer_modes if args.peer == "torch" else [""]
    ours, theirs = [], {mode: [] for mode in modes}
    for number in range(rounds):
        print(f"compare: {name}: round {number + 1} of {rounds}", file=sys.stderr)
        ours.append(run([args.binary, "train", *mine, "--data", data, "--device", device, "--quiet", "--json",
                         *([] if judged else ["--no-eval"])], args.threads))
        for mode in modes:
            theirs[mode].append(run([python, os.path.join(ROOT, f"bench/peer_{args.peer}.py"), *common_peer, *threads, "--data", peer_data,
                                     *(["--mode", mode] if mode else [])], args.threads))
    medians = {mode: summary(runs, "step_ms_median")["median"] for mode, runs in theirs.items()}
    theirs = theirs[min(medians, key=medians.get)]
    result = {"case": name, "rounds": rounds, "threads": args.threads, "tutti_device": ours[0]["device"],
              "peer": theirs[0]["engine"], "steps": ours[0]["steps"]}
    if len(modes) > 1:
        result["peer_step_ms_by_mode"] = medians
    assert ours[0]["parameters"] == theirs[0]["parameters"] and ours[0]["steps"] == theirs[0]["steps"], \
        f"not the same work: {ours[0]['parameters']} parameters, {ours[0]['steps']} steps against " \
        f"{theirs[0]['parameters']}, {theirs[0]['steps']}"
    for runs in (ours, theirs):
        for r in runs:
            r["train_s"] = r["steps"] * theirs[0]["batch"] / r["samples_per_s"]
    for r in ours:
        r["first_step_s"] = (r["compile_ms"] + r["step_ms_median"]) / 1e3
    for key in ("step_ms_median", "first_step_s", "train_s", "wall_s", "accuracy"):
        if key == "accuracy" and not judged:
            continue
        result[key] = {"tutti": summary(ours, key), "peer": summary(theirs, key)}
        if key != "accuracy":
            result[key]["ratio"] = result[key]["tutti"]["median"] / result[key]["peer"]["median"]
    return result


def show(result):
    peer = result["peer"].split()[0]
    print(f"\n{result['case']}   ({result['tutti_device']} against {result['peer']}, {result['threads']} threads, "
          f"{result['rounds']} rounds of {result['steps']} steps, medians)")
    for key, label in (("step_ms_median", "one step, ms"), ("first_step_s", "first step, s"), ("train_s", "training, s"), ("wall_s", "whole process, s"),
                       ("accuracy", "test accuracy")):
        if key in result:
            t, p = result[key]["tutti"]["median"], result[key]["peer"]["median"]
            ratio = f"   ratio {result[key]['ratio']:.2f}" if "ratio" in result[key] else ""
            print(f"  {label:18} tutti {t:10.4f}   {peer} {p:10.4f}{ratio}")
    for mode, ms in result.get("peer_step_ms_by_mode", {}).items():
        print(f"  {peer} {mode}: {ms:.4f} ms per step")


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=PEERS, default="torch")
    parser.add_argument("--device", help="of Tutti; default: auto against PyTorch, opencl against tinygrad")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="also three epochs of the CNN")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--save", metavar="NAME", help="write docs/results/NAME.json")
    parser.add_argument("--peer-device", choices=["cpu", "cuda"], default="cpu", help="where PyTorch runs")
    parser.add_argument("--peer-modes", type=lambda text: text.split(","), default=["eager"], metavar="MODE,…",
                        help="of PyTorch: eager, compile, reduce-overhead, max-autotune; the fastest one counts")
    parser.add_argument("--tf32", action="store_true", help="both in TF32")
    parser.add_argument("--binary", default=TUTTI, help="the tutti to run (default: %(default)s)")
    parser.add_argument("--python", help="an interpreter with the peer, in place of our own environment")
    args = parser.parse_args()
    if not os.path.exists(args.binary):
        sys.exit(f"compare: {os.path.relpath(args.binary)} is not built; run scripts/quickstart.sh")
    if args.peer != "torch" and (args.peer_device != "cpu" or args.peer_modes != ["eager"] or args.tf32):
        sys.exit("compare: --peer-device, --peer-modes and --tf32 are for --peer torch")

    python = args.python or peer_python(args.peer, args.peer_device)
    results = [take_turns(case, args, python, ["--steps", str(args.steps)], args.rounds) for case in STEPS]
    if args.full:
        results.append(take_turns(FULL, args, python, [], 1))
    document = {"date": datetime.date.today().isoformat(), "cpu": cpu_name(), "system": platform.platform(),
                "results": results}
    if args.json:
        print(json.dumps(document, indent=1))
    else:
        print(f"{document['cpu']}, {document['system']}")
        for result in results:
            show(result)
    if args.save:
        path = os.path.join(ROOT, "docs/results", args.save + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
            f.write("\n")
        print(f"\nwritten: {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
