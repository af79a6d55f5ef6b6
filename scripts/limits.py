#!/usr/bin/env python3
"""Runs tutti on the software devices of Vulkan and OpenCL within the limits of each card of tests/limits: parity of all ops,
lockstep of every model's tiny size, and the plan of every model at every size. Cards that lower the same values of the device
to the same numbers are run once. Writes one table, docs/results/DATE-limits.md; exits 1 where something failed."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ["parity", "lockstep", "plan"]


class Api:
    def __init__(self, name, options):
        self.name, self.options = name, options
        self.device = f"{name}:0"

    def run(self, card, *arguments):
        """The finished command within the card's limits."""
        environment = {**os.environ, f"TUTTI_{self.name.upper()}_LIMITS": str(card)}
        return subprocess.run([self.options.binary, *arguments], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def document(self, card, *arguments):
        """The JSON document of a command, or one with the error."""
        result = self.run(card, *arguments, "--device", self.device, "--json")
        try:
            return json.loads(result.stdout)
        except json.JSONDecodeError:
            return {"error": (result.stderr.strip() or f"exit code {result.returncode}").splitlines()[-1]}

    def lowered(self, card):
        """The card's values that are lower than what the device reports."""
        opened = self.run(card, "plan", "mlp", "--size", "tiny", "--no-search", "--device", self.device)
        found = re.search(r"lower than what it reports are (.*?)(;|$)", opened.stderr, re.M)
        if not found:
            sys.exit(f"{card}: {self.name} does not say what its limits change:\n{opened.stdout}{opened.stderr}")
        section = json.loads(card.read_text())[self.name]
        return {key: section[key] for key in found[1].split(", ") if key != "none"}

    def parity(self, card):
        ops = ["--ops", self.options.ops] if self.options.ops else []
        document = self.document(card, "parity", "--quick", "--jobs", str(self.options.jobs), *ops)
        if "error" in document:
            return 0, [f"parity: {document['error']}"]
        bad = document["failures"] + document["unsupported"]
        return document["devices"][0]["pass"], [f"{e['case']}: {e['why'].splitlines()[0]}" for e in bad]

    def lockstep(self, card):
        passed, bad = 0, []
        for name, sizes in self.options.models.items():
            if "tiny" not in sizes:
                continue
            document = self.document(card, "parity", "--model", name, "--size", "tiny", "--steps", str(self.options.steps))
            if document.get("ok"):
                passed += 1
            else:
                devices = document.get("lockstep", [{}])
                why = document.get("error") or devices[0].get("problem") or devices[0].get("failures")
                bad.append(f"{name} in lockstep: {str(why)[:300]}")
        return passed, bad

    def plan(self, card):
        """How many plans there are, and the reasons of those that there are not: a limit, by name."""
        planned, bad = 0, []
        for name, sizes in self.options.models.items():
            for size, data in sizes.items():
                document = self.document(card, "plan", name, "--size", size, "--no-search", "--data", data)
                row = (document.get("plans") or document.get("devices") or [{}])[0]
                if "peak_bytes" in row:
                    planned += 1
                else:
                    bad.append(f"plan of {name} {size}: {row.get('problem') or document.get('error') or document}"[:300])
        return planned, bad


def made_up(data):
    """Data of the same shape that every machine has."""
    name, _, shape = data.partition(":")
    return f"synthetic:{shape or '1x28x28'}:10:8192:16" if name == "fashion-mnist" else data


def models(binary):
    """The data that each size of each model is planned with, by model."""
    document = json.loads(subprocess.run([binary, "models", "--json"], capture_output=True, text=True, check=True).stdout)
    return {m["name"]: {s["name"]: made_up(s["data"]) for s in m["sizes"]} for m in document["models"]}


def groups(api, cards):
    """Cards with the same effect on the device: [(names, file, lowered values)]."""
    found = {}
    for card in cards:
        if api.name in json.loads(card.read_text()):
            values = api.lowered(card)
            found.setdefault(json.dumps(values, sort_keys=True), ([], card, values))[0].append(card.stem)
    return list(found.values())


def table(rows, options, seconds):
    """The whole file."""
    head = ["API", "cards", "parity", "lockstep", "plans"]
    lines = ["# Within the limits of cards", "",
             f"`scripts/limits.py{' ' + ' '.join(sys.argv[1:]) if sys.argv[1:] else ''}` in {seconds:.0f} s: lavapipe and PoCL "
             "within the limits of tests/limits, with the kernels that GPUs get. *passed / failed*; of plans *made / refused*; "
             "a dash: not run.", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for api, names, values, results in rows:
        cells = [f"{results[k][0]} / {len(results[k][1])}" if k in results else "–" for k in KINDS]
        lines.append(f"| {api} | {', '.join(names)} | " + " | ".join(cells) + " |")
    lines += ["", "What the cards lower on these devices:", ""]
    for api, names, values, _ in rows:
        lines.append(f"- {api}, {', '.join(names)}: " + (", ".join(f"`{k}` {v}" for k, v in values.items()) or "nothing"))
    bad = [(api, names, text) for api, names, _, results in rows for _, texts in results.values() for text in texts]
    if bad:
        lines += ["", "Failed and refused:", ""]
        lines += [f"- {api}, {', '.join(names)}: {text}" for api, names, text in bad]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--cards", help="names of files, separated by commas (all)")
    parser.add_argument("--api", default="vulkan,opencl", help="vulkan, opencl or both")
    parser.add_argument("--only", default=",".join(KINDS), help="of parity, lockstep and plan")
    parser.add_argument("--ops", help="only these ops in parity, separated by commas")
    parser.add_argument("--steps", type=int, default=3, help="steps of a model in lockstep")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--out", type=pathlib.Path,
                        default=ROOT / f"docs/results/{datetime.date.today().isoformat()}-limits.md")
    options = parser.parse_args()
    options.models = models(options.binary)
    files = sorted((ROOT / "tests/limits").glob("*.json"))
    wanted = options.cards.split(",") if options.cards else [f.stem for f in files]
    if missing := set(wanted) - {f.stem for f in files}:
        parser.error(f"--cards: no such file in tests/limits: {', '.join(sorted(missing))}")
    start, rows, failed = time.monotonic(), [], False
    for api in [Api(name, options) for name in options.api.split(",")]:
        for names, card, values in groups(api, [f for f in files if f.stem in wanted]):
            results = {}
            for kind in options.only.split(","):
                results[kind] = getattr(api, kind)(card)
                print(f"{api.name}, {', '.join(names)}: {kind} {results[kind][0]}, not {len(results[kind][1])}", flush=True)
                for text in results[kind][1]:
                    print("  " + text, flush=True)
            failed = failed or any(results[k][1] for k in results if k != "plan")
            rows.append((api.name, names, values, results))
            options.out.write_text(table(rows, options, time.monotonic() - start))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
