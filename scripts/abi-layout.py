#!/usr/bin/env python3
"""Compares the layout of core/abi/tutti_plugin.h with the recorded one: docs/ABI.md's promise, checked.

Every struct's size, every field's offset, size and type, the order of the functions in the table, the value of every
constant are taken from the header itself, by the C compiler. Nothing recorded may move, change, go or get another name.
Structs marked [grows] may gain fields at their end, enums constants behind their last; both must be recorded
(--record, which refuses anything else).

usage: abi-layout.py [--record]     0: all is well, 1: differences (one line each), 2: the header cannot be read
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRUCT = re.compile(r"(/\*(?:(?!\*/).)*\*/\s*)?typedef struct(?: \w+)? \{(.*?)\n\} (\w+);", re.DOTALL)
ENUM = re.compile(r"\benum \{(.*?)\}", re.DOTALL)
TEXT = re.compile(r'^#define (TUTTI_\w+) +"([^"]*)"', re.MULTILINE)
DEFINE = re.compile(r"^#define (TUTTI_\w+) +\S", re.MULTILINE)
FUNCTION = re.compile(r"typedef ([^;{}]*)\(\*(\w+)\)(\([^;{}]*\));", re.DOTALL)


def squeezed(text):
    return re.sub(r"\s*\*\s*", " *", " ".join(text.split())).replace("* *", "**").replace("( *", "(*").strip()


def parted(text, at):
    """Splits at a character outside of parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == at and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]]


def nameless(parameter):
    """A parameter's type without its name."""
    match = re.match(r"^(.*[\s*])\w+((?:\[\w*\])?)$", parameter.strip(), re.DOTALL)
    has_type = match and re.sub(r"\bconst\b", "", match.group(1)).strip()
    return squeezed(match.group(1)) + match.group(2) if has_type else squeezed(parameter)


def fields_of(body):
    """(name, type) of every field of a struct's body, in order."""
    found = []
    for line in COMMENT.sub(" ", body).split(";"):
        line = " ".join(line.split())
        if not line:
            continue
        function = re.match(r"^(.*)\(\*(\w+)\)\s*\((.*)\)$", line)
        if function:
            parameters = ", ".join(nameless(p) for p in parted(function.group(3), ","))
            found.append((function.group(2), f"{squeezed(function.group(1))} (*)({parameters})"))
            continue
        first, *others = parted(line, ",")
        base = re.match(r"^((?:const )?(?:struct )?\w+)\b(.*)$", first.strip())
        if not base:
            raise ValueError(f"cannot read the field '{line}'")
        for declared in [base.group(2), *others]:
            match = re.match(r"^\s*((?:\*|\bconst\b|\s)*)(\w+)\s*((?:\[\w+\])?)\s*$", declared)
            if not match:
                raise ValueError(f"cannot read the field '{line}'")
            found.append((match.group(2), squeezed(f"{base.group(1)} {match.group(1)}") + match.group(3)))
    return found


def parse(text):
    structs = {}
    for comment, body, name in STRUCT.findall(text):
        grows = "[grows]" in comment or "[grows]" in body.split("\n")[0]
        structs[name] = {"grows": grows, "fields": fields_of(body)}
    bare = COMMENT.sub(" ", text)
    enums = [re.findall(r"\b(TUTTI_\w+)\s*=", body) for body in ENUM.findall(bare)]
    defines = [d for d in DEFINE.findall(bare) if d != "TUTTI_PLUGIN_H"]
    calls = {name: squeezed(f"{result} (*)") + "(" + ", ".join(nameless(p) for p in parted(rest[1:-1], ",")) + ")"
             for result, name, rest in FUNCTION.findall(bare)}
    return structs, enums, defines, calls


def measure(header, compiler):
    """The layout of a header, by the compiler."""
    with open(header, encoding="utf-8") as f:
        text = f.read()
    structs, enums, defines, calls = parse(text)
    texts = dict(TEXT.findall(text))
    lines = ['#include <stdio.h>', f'#include "{os.path.abspath(header)}"', "int main(void) {"]
    for name, struct in structs.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        for field, _ in struct["fields"]:
            lines.append(f'printf("%zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
    constants = [d for d in defines if d not in texts] + [c for e in enums for c in e]
    lines += [f'printf("%lld\\n", (long long){c});' for c in constants] + ["return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        done = subprocess.run([compiler, "-std=c99", "-o", program, source], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr)
        numbers = iter(subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())
    layout = {"structs": {}, "enums": [], "constants": {}, "functions": calls}
    for name, struct in structs.items():
        entry = {"grows": struct["grows"], "size": int(next(numbers)), "fields": []}
        for field, kind in struct["fields"]:
            offset, size = map(int, next(numbers).split())
            entry["fields"].append({"name": field, "offset": offset, "size": size, "type": kind})
        layout["structs"][name] = entry
    for name in defines:
        layout["constants"][name] = texts[name] if name in texts else int(next(numbers))
    for names in enums:
        layout["enums"].append({name: int(next(numbers)) for name in names})
    return layout


def compare_struct(name, old, new, broken, fresh):
    if old["grows"] != new["grows"]:
        broken.append(f"{name}: {'is no longer' if old['grows'] else 'was not'} marked [grows]")
    now = {f["name"]: f for f in new["fields"]}
    at = {f["offset"]: f for f in new["fields"]}
    for f in old["fields"]:
        what = f"{name}.{f['name']}"
        g = now.get(f["name"])
        if g is None:
            there = at.get(f["offset"])
            broken.append(f"{what}: removed" + (f"; its bytes at offset {f['offset']} are reused by '{there['name']}'"
                                                if there else ""))
        elif g["offset"] != f["offset"]:
            broken.append(f"{what}: moved from offset {f['offset']} to {g['offset']}")
        elif g["size"] != f["size"]:
            broken.append(f"{what}: resized from {f['size']} to {g['size']} bytes")
        elif g["type"] != f["type"]:
            broken.append(f"{what}: changed its type from '{f['type']}' to '{g['type']}'")
    known = {f["name"] for f in old["fields"]}
    for g in new["fields"]:
        if g["name"] in known:
            continue
        if not old["grows"]:
            broken.append(f"{name}.{g['name']}: added to a struct that is frozen")
        elif g["offset"] < old["size"]:
            broken.append(f"{name}.{g['name']}: added at offset {g['offset']}, inside the recorded {old['size']} bytes")
        else:
            fresh.append(f"{name}.{g['name']}: added at the end")
    if not old["grows"] and old["size"] != new["size"]:
        broken.append(f"{name}: resized from {old['size']} to {new['size']} bytes")


def compare_enum(old, now, enums, broken, fresh):
    for name, value in old.items():
        if name not in now:
            other = next((n for n, v in now.items() if v == value and n not in old and n.split("_")[1] == name.split("_")[1]),
                         None)
            broken.append(f"{name}: removed" + (f"; its value {value} is reused by {other}" if other else ""))
        elif now[name] != value:
            broken.append(f"{name}: changed from {value} to {now[name]}")
    new = next((e for e in enums if set(e) & set(old)), {})
    for name, value in new.items():
        if name in old:
            continue
        if value <= max(old.values()):
            broken.append(f"{name}: its value {value} is not behind the recorded ones, which end at {max(old.values())}")
        else:
            fresh.append(f"{name}: added with value {value}")


def compare(old, new):
    """(what breaks the promise, what is new and not recorded)."""
    broken, fresh = [], []
    for name, struct in old["structs"].items():
        if name in new["structs"]:
            compare_struct(name, struct, new["structs"][name], broken, fresh)
        else:
            broken.append(f"{name}: removed")
    fresh += [f"{name}: a new struct" for name in new["structs"] if name not in old["structs"]]
    now = {name: value for e in new["enums"] for name, value in e.items()}
    for e in old["enums"]:
        compare_enum(e, now, new["enums"], broken, fresh)
    recorded = {name for e in old["enums"] for name in e}
    fresh += [f"{next(iter(e))}: a new enum" for e in new["enums"] if not set(e) & recorded]
    for kind in ("constants", "functions"):
        for name, value in old[kind].items():
            got = new[kind].get(name)
            if got is None:
                broken.append(f"{name}: removed")
            elif got != value and not (name == "TUTTI_ABI" and got > value):
                broken.append(f"{name}: changed from {value} to {got}")
            elif got != value:
                fresh.append(f"{name}: raised from {value} to {got}")
        fresh += [f"{name}: new" for name in new[kind] if name not in old[kind]]
    return broken, fresh


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", default=os.path.join(ROOT, "core/abi/tutti_plugin.h"))
    parser.add_argument("--layout", default=os.path.join(ROOT, "core/abi/layout-1.json"), help="the recorded one")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--record", action="store_true", help="write what is new to the recorded layout")
    args = parser.parse_args()
    try:
        new = measure(args.header, args.cc)
        old = {"structs": {}, "enums": [], "constants": {}, "functions": {}}
        if os.path.exists(args.layout) or not args.record:
            with open(args.layout, encoding="utf-8") as f:
                old = json.load(f)
    except (OSError, ValueError) as e:
        print(f"abi-layout: {e}", file=sys.stderr)
        return 2
    broken, fresh = compare(old, new)
    for text in broken:
        print(f"breaks the ABI: {text}")
    if not broken and args.record:
        with open(args.layout, "w", encoding="utf-8") as f:
            text = json.dumps(new, indent=2)
            f.write(re.sub(r"\{\s+(\"name\"[^{}]*?)\s+\}", lambda m: "{" + " ".join(m.group(1).split()) + "}", text) + "\n")
        print(f"recorded: {len(fresh)} new")
        return 0
    for text in fresh:
        print(f"not recorded: {text} (run scripts/abi-layout.py --record and commit core/abi/layout-1.json)")
    fields = sum(len(s["fields"]) for s in new["structs"].values())
    print(f"abi-layout: {len(new['structs'])} structs, {fields} fields, {sum(map(len, new['enums']))} constants, "
          f"{len(broken)} breaks, {len(fresh)} not recorded")
    return 1 if broken or fresh else 0


if __name__ == "__main__":
    sys.exit(main())
