#!/usr/bin/env python3
"""Whole training steps of Tutti and of PyTorch, taken in turn on the same machine with the same threads; prints ratios.

Makes PyTorch's own virtual environment (.venv/torch) the first time. Needs build/release/bin/tutti (scripts/quickstart.sh).

  bench/peers/compare.py                      two MLPs and the CNN
  bench/peers/compare.py --cases all          also the larger MLP with GELU, one wide layer in bf16, the CNN at batch 256
  bench/peers/compare.py --full               also the CNN's three epochs on Fashion-MNIST, with accuracy
  bench/peers/compare.py --device cuda --peer-device cuda --precisions f32,tf32,bf16 \\
      --peer-modes eager,compile,reduce-overhead,max-autotune,graph,graph+channels-last
                                        both on a CUDA device; the ratios are to the fastest of PyTorch's modes
  bench/peers/compare.py --save NAME          writes docs/results/NAME.json too

Both sides run on the first --threads CPUs that this process may use, whatever device or library makes their threads.
Exit code: 0, 1 where something failed (the rest is still reported), 3 where --deadline left something out.
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

import machine

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
TUTTI = os.path.join(ROOT, "build/release/bin/tutti")
PACKAGES = ["torch", "numpy"]

# Options of both, data of Tutti, data of the peer, the precision where it has one of its own. Single steps are timed at
# a learning rate that leaves the loss where it is: synthetic data is soon solved, and the denormal numbers of a solved
# task slow every CPU down.
CASES = {
    "mlp-1024": ("mlp 1024-2048-512-10, batch 128, adam",
                 ["mlp", "--layers", "1024,2048,512,10", "--batch", "128", "--lr", "1e-6"], "synthetic:1024:10", ""),
    "mlp-784": ("mlp 784-512-256-10, batch 64, adam",
                ["mlp", "--layers", "784,512,256,10", "--batch", "64", "--lr", "1e-6"], "synthetic:784:10", ""),
    "cnn-64": ("cnn, batch 64, adam", ["cnn", "--batch", "64", "--lr", "1e-6"], "synthetic:1x28x28:10", ""),
    "mlp-gelu": ("mlp 1024-2048-2048-10 with gelu, batch 512, adamw",
                 ["mlp", "--layers", "1024,2048,2048,10", "--batch", "512", "--lr", "1e-6", "--activation", "gelu",
                  "--optimizer", "adamw"], "synthetic:1024:10", ""),
    "linear-4096": ("linear 4096-4096, batch 1024, adamw",
                    ["mlp", "--layers", "4096,4096", "--batch", "1024", "--lr", "1e-6", "--optimizer", "adamw"],
                    "synthetic:4096:4096", "bf16"),
    "cnn-256": ("cnn, batch 256, adam", ["cnn", "--batch", "256", "--lr", "1e-6"], "synthetic:1x28x28:10", ""),
}
USUAL = ["mlp-1024", "mlp-784", "cnn-64"]
FULL = ("cnn, batch 64, 3 epochs of fashion-mnist", ["cnn", "--batch", "64", "--lr", "1e-3", "--epochs", "3"],
        "fashion-mnist", "")
FIRST_STEP = {"tutti": "graph passes, kernels compiled or taken from the cache, memory, and one median step",
              "peer": "from the first call of the step, its compiling and recording included, to its end"}
MODES = ["eager", "compile", "reduce-overhead", "max-autotune", "graph"]


class Failed(Exception):
    """A process that did not do its work."""


class OutOfTime(Failed):
    """One that --deadline ended, or left out."""


def peer_python(device):
    """The interpreter of PyTorch's own environment, made when it is not there or not whole."""
    folder = os.path.join(ROOT, ".venv", "torch" if device == "cpu" else f"torch-{device}")
    python = os.path.join(folder, "bin/python")
    if os.path.exists(python) and \
            subprocess.run([python, "-c", f"import {', '.join(PACKAGES)}"], capture_output=True, check=False).returncode == 0:
        return python
    print(f"compare: making {os.path.relpath(folder)} with {', '.join(PACKAGES)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    cpu_only = ["--index-url", "https://download.pytorch.org/whl/cpu", "--retries", "0"]
    if device != "cpu" or subprocess.run(install + cpu_only + PACKAGES, check=False).returncode != 0:
        if device == "cpu":
            print("compare: no CPU build at download.pytorch.org; taking PyPI's (with CUDA, some GB)", file=sys.stderr)
        subprocess.run(install + PACKAGES, check=True)
    return python


def run(command, args):
    """The JSON document that the command prints, with the wall time of the whole process."""
    threads, left = args.threads, None
    if args.deadline and (left := args.deadline - time.monotonic()) <= 0:
        raise OutOfTime("not begun")
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if any("peer_" in part for part in command):  # some kernels put both threads on one core; Tutti binds its own, so the peer's are bound too
        env.setdefault("OMP_PROC_BIND", "true")
    cpus = sorted(os.sched_getaffinity(0))[:threads]  # OpenCL's and Vulkan's drivers take no other hint
    start = time.perf_counter()
    try:
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=left, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    except subprocess.TimeoutExpired:
        raise OutOfTime("ended") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {last[:400]}")
    return dict(json.loads(done.stdout), wall_s=time.perf_counter() - start)


def summary(runs, key):
    values = [r[key] for r in runs]
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def peer_options(mode):
    """The options of a mode of PyTorch's, "eager" or "eager+channels-last"."""
    name, *more = mode.split("+")
    return ["--mode", name] + [f"--{m}" for m in more]


def take_turns(case, precision, args, python, more, rounds):
    name, options, data, own = case
    precision = own or precision
    judged = data == "fashion-mnist"  # synthetic data differs, so its accuracy says nothing
    common = options + more + ([] if "--optimizer" in options else ["--optimizer", "adam"])
    threads = ["--threads", str(args.threads)]
    mine = common + ([] if precision == "f32" else ["--precision", precision])
    mine += threads if args.device.startswith(("auto", "cpu", "onednn")) else []  # no other plugin has such an option
    theirs = common + threads + ["--data", data.split(":")[0], "--device", args.peer_device, "--precision", precision]
    modes = [m for m in args.peer_modes if "cnn" in options or "channels-last" not in m]
    ours, runs, failed, skipped = [], {mode: [] for mode in modes}, {}, []
    for number in range(rounds):
        print(f"compare: {name}, {precision}: round {number + 1} of {rounds}", file=sys.stderr)
        ours.append(run([args.binary, "train", *mine, "--data", data, "--device", args.device, "--quiet", "--json",
                         *([] if judged else ["--no-eval"])], args))
        for mode in [m for m in modes if m not in failed and m not in skipped]:
            try:
                runs[mode].append(run([python, os.path.join(HERE, "peer_torch.py"), *theirs, *peer_options(mode)], args))
            except OutOfTime:
                skipped.append(mode)
            except Failed as e:
                failed[mode] = str(e)
    medians = {mode: summary(r, "step_ms_median")["median"] for mode, r in runs.items() if r and mode not in failed}
    if not medians:
        raise Failed("; ".join(failed.values())) if failed else OutOfTime()
    theirs = runs[min(medians, key=medians.get)]
    result = {"case": name, "precision": precision, "rounds": rounds, "threads": args.threads,
              "tutti_device": ours[0]["device"], "peer": theirs[0]["engine"], "steps": ours[0]["steps"],
              "first_step_s_is": FIRST_STEP}
    if len(modes) > 1:
        result["peer_step_ms_by_mode"] = medians
    if failed:
        result["peer_modes_failed"] = failed
    if skipped:
        result["peer_modes_skipped"] = skipped
    if ours[0]["parameters"] != theirs[0]["parameters"] or ours[0]["steps"] != theirs[0]["steps"]:
        raise Failed(f"not the same work: {ours[0]['parameters']} parameters, {ours[0]['steps']} steps against "
                     f"{theirs[0]['parameters']}, {theirs[0]['steps']}")
    for side in (ours, theirs):
        for r in side:
            r["train_s"] = r["steps"] * theirs[0]["batch"] / r["samples_per_s"]
    for r in ours:
        r["first_step_s"] = (r["compile_ms"] + r["step_ms_median"]) / 1e3
    for key in ("step_ms_median", "first_step_s", "train_s", "wall_s", "accuracy"):
        if key == "accuracy" and not judged:
            continue
        result[key] = {"tutti": summary(ours, key), "peer": summary(theirs, key)}
        if key not in ("accuracy", "first_step_s"):
            result[key]["ratio"] = result[key]["tutti"]["median"] / result[key]["peer"]["median"]
    return result


def show(result):
    peer = result["peer"].split()[0]
    print(f"\n{result['case']}, {result['precision']}   ({result['tutti_device']} against {result['peer']}, {result['threads']} threads, "
          f"{result['rounds']} rounds of {result['steps']} steps, medians)")
    for key, label in (("step_ms_median", "one step, ms"), ("first_step_s", "first step *, s"), ("train_s", "training, s"), ("wall_s", "whole process, s"),
                       ("accuracy", "test accuracy")):
        if key in result:
            t, p = result[key]["tutti"]["median"], result[key]["peer"]["median"]
            ratio = f"   ratio {result[key]['ratio']:.2f}" if "ratio" in result[key] else ""
            print(f"  {label:18} tutti {t:10.4f}   {peer} {p:10.4f}{ratio}")
    for mode, ms in result.get("peer_step_ms_by_mode", {}).items():
        print(f"  {peer} {mode}: {ms:.4f} ms per step")
    for mode, why in result.get("peer_modes_failed", {}).items():
        print(f"  {peer} {mode} FAILED: {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="of Tutti (default: auto)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="also three epochs of the CNN")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--save", metavar="NAME", help="write docs/results/NAME.json")
    parser.add_argument("--peer-device", choices=["cpu", "cuda"], default="cpu", help="where PyTorch runs")
    parser.add_argument("--peer-modes", type=lambda text: text.split(","), default=["eager"], metavar="MODE,…",
                        help=f"of PyTorch: {', '.join(MODES)}, each also as MODE+channels-last, which only the cnn takes; "
                             "the fastest one counts")
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=["f32"], metavar="P,…",
                        help="f32 (strict), tf32 (CUDA), bf16; of both")
    parser.add_argument("--cases", type=lambda text: list(CASES) if text == "all" else text.split(","), default=USUAL,
                        metavar="CASE,…", help=f"all, or of {', '.join(CASES)} (default: {','.join(USUAL)})")
    parser.add_argument("--deadline", type=float, metavar="S", help="end what still runs after S seconds, and begin nothing more")
    parser.add_argument("--binary", default=TUTTI, help="the tutti to run (default: %(default)s)")
    parser.add_argument("--python", help="an interpreter with the peer, in place of our own environment")
    args = parser.parse_args()
    if not os.path.exists(args.binary):
        sys.exit(f"compare: {os.path.relpath(args.binary)} is not built; run scripts/quickstart.sh")
    for option, found, known in (("--cases", args.cases, CASES), ("--precisions", args.precisions, ["f32", "tf32", "bf16"]),
                                 ("--peer-modes", [m.removesuffix("+channels-last") for m in args.peer_modes], MODES)):
        if unknown := [x for x in found if x not in known]:
            sys.exit(f"compare: {option}: there is no {unknown[0]}; known are {', '.join(known)}")
    if not 1 <= args.threads <= len(os.sched_getaffinity(0)):
        sys.exit(f"compare: --threads {args.threads}: this process may use {len(os.sched_getaffinity(0))} CPUs")

    python = args.python or peer_python(args.peer_device)
    if args.deadline:
        args.deadline += time.monotonic()
    todo = [(CASES[c], p, ["--steps", str(args.steps)], args.rounds)
            for p in args.precisions for c in args.cases if not CASES[c][3] or p == args.precisions[0]]
    todo += [(FULL, p, [], 1) for p in args.precisions] if args.full else []
    results, lost, skipped = [], [], []
    for case, precision, more, rounds in todo:
        what = f"{case[0]}, {case[3] or precision}"
        try:
            results.append(take_turns(case, precision, args, python, more, rounds))
        except OutOfTime:
            skipped.append(what)
        except Failed as e:
            lost.append(f"{what}: {e}")
    lost += [f"{r['case']}, {r['precision']}: {m}: {w}" for r in results for m, w in r.get("peer_modes_failed", {}).items()]
    skipped += [f"{r['case']}, {r['precision']}: {m}" for r in results for m in r.get("peer_modes_skipped", [])]
    document = {"date": datetime.date.today().isoformat(), "cpu": machine.cpu_name(), "features": machine.cpu_features(), "system": platform.platform(),
                "results": results, "failed": lost, "skipped": skipped}
    if args.json:
        print(json.dumps(document, indent=1))
    else:
        print(f"{document['cpu']}, {document['system']}")
        for result in results:
            show(result)
        print("\n* not the same on both sides: " + "; ".join(f"{side}: {what}" for side, what in FIRST_STEP.items()))
    if args.save:
        path = os.path.join(ROOT, "docs/results", args.save + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f, indent=1)
            f.write("\n")
        print(f"\nwritten: {os.path.relpath(path)}", file=sys.stderr)
    for what, names in (("FAILED", lost), ("skipped, out of time", skipped)):
        for n in names:
            print(f"compare: {what}: {n}", file=sys.stderr)
    return 1 if lost else 3 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
