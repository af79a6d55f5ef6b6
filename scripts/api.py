#!/usr/bin/env python3
"""Compares the functions and objects that libtutti.so exports with the recorded ones (include/api.txt), and names what
changed. Anything exported outside of the namespace tutti is a mistake: the build hides it.

usage: api.py LIBRARY [--record]     0: all is well, 1: differences (one line each), 2: the library cannot be read
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "include/api.txt"
OURS = re.compile(r"^((vtable|typeinfo|typeinfo name|VTT) for )?tutti::")


def exported(library):
    """Names with signatures. Weak symbols, such as instances of templates, depend on the compiler and are left out."""
    symbols = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True)
    if symbols.returncode != 0:
        sys.exit(print(f"api: {symbols.stderr.strip()}", file=sys.stderr) or 2)
    lines = (line.split(" ", 2) for line in symbols.stdout.splitlines())
    return sorted({name for _, kind, name in lines if kind in "TDBR"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--record", action="store_true", help="write what the library exports now")
    args = parser.parse_args()
    names = exported(args.library)
    foreign = [name for name in names if not OURS.match(name)]
    for name in foreign:
        print(f"exported, but not in the namespace tutti: {name}")
    if args.record:
        RECORDED.write_text("\n".join(names) + "\n")
        return bool(foreign)
    known = RECORDED.read_text().splitlines()
    changes = [line for line in difflib.ndiff(known, names) if line[0] in "+-"]
    for line in changes:
        print(("added:   " if line[0] == "+" else "removed: ") + line[2:])
    if changes:
        print(f"If that is meant: scripts/api.py {args.library} --record, and say in CHANGELOG.md what programs must change.")
    return bool(changes or foreign)


if __name__ == "__main__":
    sys.exit(main())
