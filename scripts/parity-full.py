#!/usr/bin/env python3
"""Runs `tutti parity --full` on every device, each in a process of its own, and writes what came of it as one small
file, docs/results/DATE-parity-full.json, from which docs/OPS.md gets its matrix. Exits 1 when something failed."""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ["pass", "fail", "unsupported", "expected_failure", "no_room"]
LISTS = ["failures", "unsupported", "expected_failures", "no_room"]


def usable_devices(binary):
    found = json.loads(subprocess.run([binary, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
    return [d["id"] for d in found["devices"] if d["usable"]]


def run(binary, device, args, folder):
    """The device's document. stderr (progress) goes to a file beside it."""
    name = device.replace(":", "-")
    with open(folder / f"{name}.json", "w") as out, open(folder / f"{name}.log", "w") as log:
        code = subprocess.run([binary, "parity", "--device", device, "--json", *args], stdout=out, stderr=log,
                              stdin=subprocess.DEVNULL).returncode
    ended = f"tutti ended with {code}; see {folder / name}.log"
    try:
        document = json.loads((folder / f"{name}.json").read_text())
        if "error" not in document and code != (0 if document["ok"] else 1):
            document = {"error": f"its document is whole, but {ended}"}
    except json.JSONDecodeError:
        document = {"error": ended}
    print(f"{device}: {document.get('error') or summary(document['devices'][0])}", flush=True)
    return document


def summary(device):
    counts = ", ".join(f"{device[c]} {c}" for c in COUNTS if device[c] or c == "pass")
    return f"{counts} in {device['seconds']:.0f} s"


def merged(documents, made_by):
    """One document of all devices; the devices that gave none are named under "lost"."""
    good = {d: doc for d, doc in documents.items() if "error" not in doc}
    ops = {}
    for device, doc in good.items():
        for op in doc["ops"]:
            cell = op["devices"][device]
            ops.setdefault(op["op"], {})[device] = [cell[c] for c in COUNTS] + [shown(cell["worst_share_of_bound"])]
    first = next(iter(good.values()), {})
    return {"made_by": made_by, "seed": first.get("seed"), "extent": first.get("extent"),
            "lost": [f"{d}: {doc['error']}" for d, doc in documents.items() if "error" in doc],
            "devices": [doc["devices"][0] for doc in good.values()], "cell": COUNTS + ["worst_share_of_bound"],
            "ops": ops,
            **{key: [{**e, "why": e["why"].splitlines()[0][:300]} for doc in good.values() for e in doc[key]]
               for key in LISTS}}


def shown(share):
    return share if share is None else float(f"{share:.2g}")


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
    parser.add_argument("--device", help="ids, separated by commas (every usable device)")
    parser.add_argument("--ops", help="only these ops; for a try")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="devices at a time")
    parser.add_argument("--out", type=pathlib.Path,
                        default=ROOT / f"docs/results/{datetime.date.today().isoformat()}-parity-full.json")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / "build/release/parity")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    devices = options.device.split(",") if options.device else usable_devices(options.binary)
    args = ["--full"] + (["--ops", options.ops] if options.ops else [])
    print(f"tutti parity {' '.join(args)} on {', '.join(devices)}; progress in {options.logs}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda d: run(options.binary, d, args, options.logs), devices)
        documents = dict(zip(devices, found))
    document = merged(documents, "scripts/parity-full.py" + (f" --ops {options.ops}" if options.ops else ""))
    write(document, options.out)
    bad = document["failures"] + document["unsupported"]
    for e in bad:
        print(f"{e['device']} {e['case']}: {e['why']}")
    print(f"{len(bad)} of {sum(sum(d[c] for c in COUNTS) for d in document['devices'])} cases failed or are unsupported; "
          f"written to {options.out}")
    return 1 if bad or document["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
