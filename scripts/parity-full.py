#!/usr/bin/env python3
"""Runs `tutti parity --full` on every device, every op in a process of its own, and writes what came of it as one small
file, docs/results/DATE-parity-full.json, from which docs/OPS.md gets its matrix. Exits 1 when something failed."""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ["pass", "fail", "unsupported", "expected_failure", "no_room"]
LISTS = ["failures", "unsupported", "expected_failures", "no_room"]


def parity(options):
    """The document of the run; None where there is none, which stderr says."""
    command = [options.binary, "parity", "--full", "--json", "--device", options.device, "--jobs", str(options.jobs)]
    command += ["--ops", options.ops] if options.ops else []
    print(" ".join(command), flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    try:
        document = json.loads(result.stdout)
    except json.JSONDecodeError:
        print(f"no document: tutti ended with {result.returncode}", file=sys.stderr)
        return None
    return None if "error" in document else document


def shortened(document, made_by):
    """The same with one list of numbers per op and device, and one line per reason."""
    ops = {op["op"]: {device: [cell[c] for c in COUNTS] + [shown(cell["worst_share_of_bound"])]
                      for device, cell in op["devices"].items()} for op in document["ops"]}
    return {"made_by": made_by, "seed": document["seed"], "extent": document["extent"], "devices": document["devices"],
            "cell": COUNTS + ["worst_share_of_bound"], "ops": ops,
            **{key: [{**e, "why": e["why"].splitlines()[0][:300]} for e in document[key]] for key in LISTS}}


def shown(share):
    return share if share is None else float(f"{share:.2g}")


def merged(old, new, name):
    """The new result with the old one's ops that it lacks."""
    ids = [d["id"] for d in new["devices"]]
    if [d["id"] for d in old["devices"]] != ids:
        sys.exit(f"{name} is of other devices than {', '.join(ids)}")
    new["made_by"] += f", the other ops from {name}"
    for device, before in zip(new["devices"], old["devices"]):
        kept = [cells[device["id"]] for op, cells in old["ops"].items() if op not in new["ops"]]
        for k, count in enumerate(COUNTS):
            device[count] += sum(cell[k] for cell in kept)
        device["seconds"] += before["seconds"]
    for key in LISTS:
        new[key] += [e for e in old[key] if e["case"].split(":")[0] not in new["ops"]]
    new["ops"] = dict(sorted({**old["ops"], **new["ops"]}.items()))
    return new


def write(document, path):
    """JSON with one line per device, op and listed case."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f"  {json.dumps(key)}: {{\n{inner}\n  }}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            inner = ",\n".join(f"    {json.dumps(v, ensure_ascii=False)}" for v in value)
            lines.append(f"  {json.dumps(key)}: [\n{inner}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--device", default="all", help="ids and plugins, separated by commas (every usable device)")
    parser.add_argument("--ops", help="only these ops; for a try, or with --onto")
    parser.add_argument("--onto", type=pathlib.Path, help="an earlier result on the same devices: its other ops are kept")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--out", type=pathlib.Path,
                        default=ROOT / f"docs/results/{datetime.date.today().isoformat()}-parity-full.json")
    options = parser.parse_args()
    full = parity(options)
    if not full:
        return 1
    document = shortened(full, "scripts/parity-full.py" + (f" --ops {options.ops}" if options.ops else ""))
    if options.onto:
        document = merged(json.loads(options.onto.read_text()), document, options.onto.name)
    write(document, options.out)
    for device in document["devices"]:
        counts = ", ".join(f"{device[c]} {c}" for c in COUNTS if device[c] or c == "pass")
        print(f"{device['id']}: {counts} in {device['seconds']:.0f} s")
    bad = document["failures"] + document["unsupported"]
    for e in bad:
        print(f"{e['device']} {e['case']}: {e['why']}")
    print(f"{len(bad)} of {sum(sum(d[c] for c in COUNTS) for d in document['devices'])} cases failed or are unsupported; "
          f"written to {options.out}")
    return 0 if full["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
