#!/usr/bin/env python3
"""Training steps on a busy machine: alone, two trainings at once, beside one spinning process and beside two per CPU.

    python3 bench/load.py --python PYTHON --before BINARY --output docs/results/DATE-load.md

Sides take turns under each load: `tutti train`, the same with OMP_WAIT_POLICY=passive, the binary --before (as it is, and passive),
and PyTorch where --python has it. A time is the mean ms per step of a run; of several rounds the median. Each side's
factor is its time under a load over its own time alone. Exit code: 0, 1 where a run failed, 3 where the machine is not quiet (--anyway).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/peers"))
import compare  # noqa: E402

STEPS = {"mlp-784": 400, "cnn-64": 40}
CPUS = len(os.sched_getaffinity(0))
LOADS = {"alone": (1, 0), "two at once": (2, 0), "one spinner": (1, 1), f"{2 * CPUS} spinners": (1, 2 * CPUS)}


class Failed(Exception):
    """A run that gave no times."""


def idle_share(seconds=1.0):
    """How much of the machine nobody uses now."""
    def now():
        words = pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
        numbers = [int(w) for w in words[:8]]
        return sum(numbers), numbers[3] + numbers[4]
    first = now()
    time.sleep(seconds)
    last = now()
    return (last[1] - first[1]) / max(last[0] - first[0], 1)


def sides(o):
    """Name: (command in front of a case's options, whether it is ours, more environment)."""
    all_sides = {"tutti": (o.tutti, True, {}), "tutti, passive": (o.tutti, True, {"OMP_WAIT_POLICY": "passive"})}
    if o.before:
        all_sides["before"] = (o.before, True, {})
        all_sides["before, passive"] = (o.before, True, {"OMP_WAIT_POLICY": "passive"})
    if o.python:
        all_sides["PyTorch"] = (o.python, False, {})
    return all_sides


def command(side, case, o):
    program, ours, more = side
    _, options, data, _ = compare.CASES[case]
    steps = ["--steps", str(round(STEPS[case] * o.scale)), "--optimizer", "adam"]
    if ours:
        words = [program, "train", *options, *steps, "--data", data, "--device", "onednn:0", "--quiet", "--json", "--no-eval"]
    else:
        words = [program, str(ROOT / "bench/peers/peer_torch.py"), *options, *steps, "--data", data.split(":")[0], "--threads", str(CPUS)]
    return words, {**{k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}, **more}


def mean_ms(result):
    """Of all steps; PyTorch's first one, which loads libraries, left out."""
    if "first_step_s" in result:
        return 1e3 * (result["train_s"] - result["first_step_s"]) / (result["steps"] - 1)
    return 1e3 * result["batch"] / result["samples_per_s"]


def run(side, case, load, o):
    """Mean ms per step of one run, of both where two run at once."""
    at_once, spinners = LOADS[load]
    words, environment = command(side, case, o)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(spinners)]
    try:
        runs = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(at_once)]
        times = []
        for r in runs:
            try:
                text, errors = r.communicate(timeout=o.patience)
            except subprocess.TimeoutExpired:
                for late in runs:
                    late.kill()
                    late.wait()
                raise Failed(f"no result after {o.patience:g} s") from None
            if r.returncode != 0:
                raise Failed(f"exit code {r.returncode}: {(errors.strip().splitlines() or ['?'])[-1][:300]}")
            result = json.loads(text)
            times.append(mean_ms(result))
        return statistics.mean(times)
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(o):
    """{case: {load: {side: [ms, …]}}}, and what failed."""
    every, lost = sides(o), []
    times = {c: {load: {s: [] for s in every} for load in LOADS} for c in o.cases}
    for number in range(o.rounds):
        for case in o.cases:
            for load in LOADS:
                order = list(every)[number % len(every):] + list(every)[:number % len(every)]
                for side in order:
                    if time.monotonic() > o.end:
                        return times, lost
                    try:
                        times[case][load][side].append(run(every[side], case, load, o))
                    except Failed as e:
                        lost.append(f"{case}, {load}, {side}: {e}")
                print(f"load: round {number + 1} of {o.rounds}: {case}, {load}: " +
                      "  ".join(f"{s} {t[-1]:.2f}" for s, t in times[case][load].items() if t), file=sys.stderr, flush=True)
    return times, lost


def verdicts(medians, loads):
    """Lines that hold the table to what is promised."""
    lines = []

    def judge(what, ratio, most):
        lines.append(f"- {'holds' if ratio <= most else 'MISSED'}: {what}: {ratio:.2f} (at most {most:g})")
    for case, table in medians.items():
        alone = table["alone"]
        if "before" in alone:
            judge(f"{case} alone over before", alone["tutti"] / alone["before"], 1.02)
        passive = "before, passive" if "before, passive" in alone else "tutti, passive"
        for load in loads:
            if load == "alone" or not table[load].get("tutti"):
                continue
            if passive in table[load]:
                judge(f"{case}, {load}, over {passive}", table[load]["tutti"] / table[load][passive], 1.1)
            if "PyTorch" in table[load] and "PyTorch" in alone:
                factor = {s: table[load][s] / alone[s] for s in ("tutti", "PyTorch")}
                judge(f"{case}, {load}: factor over PyTorch's ({factor['tutti']:.2f} and {factor['PyTorch']:.2f})",
                      factor["tutti"] / factor["PyTorch"], 1)
    return lines


def page(o, times, lost, idle):
    medians = {c: {load: {s: statistics.median(t) for s, t in by_side.items() if t} for load, by_side in table.items()}
               for c, table in times.items()}
    rounds = max(len(t) for table in times.values() for by_side in table.values() for t in by_side.values())
    lines = ["# Steps on a busy machine", "",
             f"Measured by `bench/load.py` on {compare.cpu_name()}, {CPUS} CPUs, {idle:.0%} idle before the measurement. The tables show ms per "
             f"step: the mean of a run, and of {rounds} rounds at most the median. In brackets: the time divided by that of the same program "
             "alone on the machine. \"Two at once\": two trainings at the same time; the mean of both. \"Spinner\": a process that computes "
             "without end.", ""]
    for case, table in medians.items():
        names = list(next(iter(times[case].values())))
        lines += [f"## {compare.CASES[case][0]}", "", "| load | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
        for load, by_side in table.items():
            cells = []
            for s in names:
                if s not in by_side:
                    cells.append("none")
                elif load == "alone" or s not in table["alone"]:
                    cells.append(f"{by_side[s]:.2f}")
                else:
                    cells.append(f"{by_side[s]:.2f} ({by_side[s] / table['alone'][s]:.2f}x)")
            lines.append(f"| {load} | " + " | ".join(cells) + " |")
        lines.append("")
    complete = all("tutti" in table["alone"] for table in medians.values())
    lines += (verdicts(medians, LOADS) if complete else []) + [f"- failed: {what}" for what in lost]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--before", metavar="BINARY", help="another tutti to compare with")
    p.add_argument("--python", default=os.environ.get("TUTTI_PYTHON"), help="an interpreter with PyTorch")
    p.add_argument("--cases", type=lambda text: text.split(","), default=list(STEPS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--deadline", type=float, default=440, metavar="S", help="begin no run after so many seconds (default: %(default)g)")
    p.add_argument("--scale", type=float, default=1, help="so many times the usual steps")
    p.add_argument("--patience", type=float, default=60, help="seconds for one run")
    p.add_argument("--anyway", action="store_true", help="measure on a machine that is not quiet, too")
    p.add_argument("--output", type=pathlib.Path, help="write the page there (default: stdout)")
    o = p.parse_args()
    if unknown := [c for c in o.cases if c not in STEPS]:
        sys.exit(f"load: --cases: there is no {unknown[0]}; known are {', '.join(STEPS)}")
    idle = idle_share()
    if idle < 0.9 and not o.anyway:
        print(f"load: {idle:.0%} of the machine is idle, at least 90 % is needed (or --anyway)", file=sys.stderr)
        return 3
    o.end = time.monotonic() + o.deadline
    times, lost = measure(o)
    text = page(o, times, lost, idle)
    if o.output:
        o.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    for what in lost:
        print(f"load: FAILED: {what}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
