#!/usr/bin/env python3
"""Training steps on a busy machine: alone, two trainings at once, and beside processes that compute without end.

    scripts/bench-load.sh                        beside PyTorch
    scripts/bench-load.sh --cases mlp-784 --rounds 1 --json FILE
    scripts/bench-load.sh --from docs/results/FILE.json
    python3 bench/load.py --before BINARY        without PyTorch, beside another tutti

Sides take turns under each load: `tutti train`, the same with OMP_WAIT_POLICY=passive, the binary --before (as it is, and passive),
and PyTorch where --python has it. A time is the mean ms per step of a run; of several rounds the median. Each side's
factor is its time under a load over its own time alone. Exit code: 0, 1 where a run failed, 2 for wrong options, 3 where the machine is
not quiet (--anyway).
"""
import argparse
import datetime
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
import machine  # noqa: E402

CPUS = machine.cpus()
# Title, options of both, data of ours and of the peer, the peer's program, steps of a run.
CASES = {name: (title, [*options, "--optimizer", "adam"], ["--data", data], ["--data", data.split(":")[0]], "peer_torch.py", steps)
         for name, steps in (("mlp-784", 1600), ("cnn-64", 100)) for title, options, data, _ in [compare.CASES[name]]}
CASES["gpt-char"] = ("char-GPT 6x384, batch 8, 256 tokens, adamw",
                     ["gpt", "--size", "char", "--batch", "8", "--lr", "1e-6", "--optimizer", "adamw"], [], [], "peer_zoo.py", 4)
# How many trainings at once, beside how many other processes, of which niceness.
LOADS = {"alone": (1, 0, 0), "two at once": (2, 0, 0), "1 spinner": (1, 1, 0), f"{max(CPUS, 2)} spinners": (1, max(CPUS, 2), 0),
         f"{2 * max(CPUS, 2)} spinners with nice 19": (1, 2 * max(CPUS, 2), 19)}


class Failed(Exception):
    """A run that gave no times."""


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
    _, options, data, peer_data, peer, steps = CASES[case]
    words = [*options, "--steps", str(max(round(steps * o.scale), 2))]
    if ours:
        words = [program, "train", *words, *data, "--device", "onednn:0", "--quiet", "--json", "--no-eval"]
    else:
        words = [program, str(ROOT / "bench/peers" / peer), *words, *peer_data, "--threads", str(CPUS)]
    return words, {**{k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}, **more}


def mean_ms(result):
    """Of all steps; PyTorch's first one, which loads libraries, left out."""
    if "first_step_s" in result:
        return 1e3 * (result["train_s"] - result["first_step_s"]) / (result["steps"] - 1)
    return 1e3 * result["batch"] / result["samples_per_s"]


def run(side, case, load, o):
    """Mean ms per step of one run, of both where two run at once."""
    at_once, spinners, niceness = LOADS[load]
    words, environment = command(side, case, o)
    spinner = ["nice", "-n", str(niceness), sys.executable, "-c", "while True: pass"]
    others, runs, times = [subprocess.Popen(spinner) for _ in range(spinners)], [], []
    try:
        for _ in range(at_once):
            runs.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for r in runs:
            try:
                text, errors = r.communicate(timeout=o.patience)
            except subprocess.TimeoutExpired:
                raise Failed(f"no result after {o.patience:g} s") from None
            if r.returncode != 0:
                raise Failed(f"exit code {r.returncode}: {(errors.strip().splitlines() or ['?'])[-1][:300]}")
            times.append(mean_ms(json.loads(text)))
        return statistics.mean(times)
    finally:  # also after Ctrl-C
        for process in [*others, *runs]:
            process.kill()
            process.wait()


def measure(o):
    """{case: {load: {side: [ms, …]}}}, and what failed."""
    every, lost = sides(o), []
    times = {c: {load: {s: [] for s in every} for load in o.loads} for c in o.cases}
    for number in range(o.rounds):
        for case in o.cases:
            for load in o.loads:
                order = list(every)[number % len(every):] + list(every)[:number % len(every)]
                for side in order:
                    if time.monotonic() > o.end:
                        return times, lost
                    try:
                        times[case][load][side].append(run(every[side], case, load, o))
                    except Failed as e:
                        lost.append(f"{case}, {load}, {side}: {e}")
                print(f"bench-load: round {number + 1} of {o.rounds}: {case}, {load}: " +
                      "  ".join(f"{s} {t[-1]:.2f}" for s, t in times[case][load].items() if t), file=sys.stderr, flush=True)
    return times, lost


def verdicts(medians):
    """Lines that hold the table to what is promised."""
    lines = []

    def judge(what, ratio, most):
        lines.append(f"- {'holds' if ratio <= most else 'MISSED'}: {what}: {ratio:.2f} (at most {most:g})")
    for case, table in medians.items():
        alone = table.get("alone", {})
        if "before" in alone and "tutti" in alone:
            judge(f"{case} alone over before", alone["tutti"] / alone["before"], 1.02)
        for load, by_side in table.items():
            passive = "before, passive" if "before, passive" in by_side else "tutti, passive"
            if load == "alone" or "tutti" not in by_side:
                continue
            if passive in by_side:
                judge(f"{case}, {load}, over {passive}", by_side["tutti"] / by_side[passive], 1.1)
            if "PyTorch" in by_side and "PyTorch" in alone and "tutti" in alone:
                factor = {s: by_side[s] / alone[s] for s in ("tutti", "PyTorch")}
                judge(f"{case}, {load}: factor over PyTorch's ({factor['tutti']:.2f} and {factor['PyTorch']:.2f})",
                      factor["tutti"] / factor["PyTorch"], 1)
    return lines


def page(report):
    times = report["ms"]
    medians = {c: {load: {s: statistics.median(t) for s, t in by_side.items() if t} for load, by_side in table.items()}
               for c, table in times.items()}
    rounds = max(len(t) for table in times.values() for by_side in table.values() for t in by_side.values())
    lines = ["# Steps on a busy machine", "",
             f"Measured by `scripts/bench-load.sh` on {machine.told(report['machine'])}, {report['date']}. The tables show ms per "
             f"step: the mean of a run, and of {rounds} rounds at most the median. In brackets: the time divided by that of the same program "
             "alone on the machine. \"Two at once\": two trainings at the same time; the mean of both. \"Spinner\": a process that computes "
             "without end.", ""]
    for case, table in medians.items():
        names = list(next(iter(times[case].values())))

        def cell(load, side, by_side, alone):
            if side not in by_side:
                return "none"
            factor = "" if load == "alone" or side not in alone else f" ({by_side[side] / alone[side]:.2f}x)"
            return f"{by_side[side]:.2f}{factor}"
        rows = [[load, *(cell(load, s, by_side, table.get("alone", {})) for s in names)] for load, by_side in table.items()]
        lines += [f"## {CASES[case][0]}", "", machine.markdown(["load", *names], rows), ""]
    return "\n".join(lines + verdicts(medians) + [f"- failed: {what}" for what in report["failed"]]) + "\n"


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    p.add_argument("--before", metavar="BINARY", help="another tutti to compare with")
    p.add_argument("--python", default=os.environ.get("TUTTI_PYTHON"), help="an interpreter with PyTorch")
    p.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES), help=f"{', '.join(CASES)} (default: all)")
    p.add_argument("--loads", type=lambda text: text.split(","), default=list(LOADS), help=f"{', '.join(LOADS)} (default: all)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--deadline", type=float, default=1800, metavar="S", help="begin no run after so many seconds (default: %(default)g)")
    p.add_argument("--scale", type=float, default=1, help="so many times the usual steps")
    p.add_argument("--patience", type=float, default=120, help="seconds for one run (default: %(default)g)")
    p.add_argument("--anyway", action="store_true", help="measure on a machine that is not quiet, too")
    p.add_argument("--output", type=pathlib.Path, help="write the page there (default: stdout)")
    p.add_argument("--json", type=pathlib.Path, help="the figures, into this file")
    p.add_argument("--from", dest="source", type=pathlib.Path, help="write the page of such a file, and measure nothing")
    o = p.parse_args()
    for option, found, known in (("--cases", o.cases, CASES), ("--loads", o.loads, LOADS)):
        if unknown := [x for x in found if x not in known]:
            p.error(f"{option}: there is no {unknown[0]}; known are {', '.join(known)}")
    for option, value in (("--rounds", o.rounds), ("--scale", o.scale), ("--patience", o.patience), ("--deadline", o.deadline)):
        if value <= 0:
            p.error(f"{option} {value:g}: must be above 0")
    if missing := [x for x in (o.tutti, o.before) if x and not o.source and not os.path.exists(x)]:
        p.error(f"{missing[0]} does not exist")
    return p, o


def main():
    p, o = options()
    if o.source:
        try:
            report = json.loads(o.source.read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            p.error(f"--from: {e}")
    else:
        idle = machine.quiet_or_exit("bench-load", o.anyway)
        o.end = time.monotonic() + o.deadline
        times, lost = measure(o)
        report = {"date": datetime.date.today().isoformat(), "machine": machine.describe(idle), "ms": times, "failed": lost}
    if o.json:
        o.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    text = page(report)
    if o.output:
        o.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    for what in report["failed"]:
        print(f"bench-load: FAILED: {what}", file=sys.stderr)
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
