#!/usr/bin/env python3
"""Checks that folders include only what they may depend on, and that no file grows past what one can hold in mind.

Two columns meet only in core/abi, core/os, core/base and core/geometry:
    cli -> verify, bench, onnx -> train -> nn, data -> graph -> core/runtime          plugins -> backends -> sdk -> kernels
Of graph only graph/lower knows devices. In train: run, hf, models -> io -> step -> task. Tests may include anything; nothing includes them.
Headers of the operating system are included in core/os alone, but for the exceptions that are named here.

usage: check-dependencies.py [--root FOLDER]     0: all is well, 1: violations (one line each), 2: bad usage
"""
import argparse
import os
import re
import sys

BASE = ["core/abi", "core/os", "core/base"]
GEOMETRY = BASE + ["core/geometry"]
BELOW_TRAIN = GEOMETRY + ["core/runtime", "core/world", "graph", "graph/lower", "nn", "data"]
TASK = BELOW_TRAIN + ["train/task"]
STEP = TASK + ["train", "train/step", "train/optimizers"]
ENGINE = STEP + ["train/io", "train/hf", "train/run", "train/models"]
PLUGIN = GEOMETRY + ["sdk", "kernels"]
# Longest matching folder decides; a folder may always include itself. A folder does not stand for those below it that have
# a rule of their own: "graph" is not "graph/lower".
MAY = {
    "core/abi": [],
    "core/os": [],
    "core/base": ["core/abi", "core/os"],
    "core/geometry": BASE,
    "core/runtime": BASE,
    "core/world": BASE + ["core/runtime"],
    "core/probe": BASE + ["core/runtime"],
    "graph": GEOMETRY,
    "graph/lower": GEOMETRY + ["core/runtime", "graph"],
    "nn": GEOMETRY + ["graph"],
    "data": GEOMETRY,
    "train": ENGINE,
    "train/task": BELOW_TRAIN,
    "train/step": STEP,
    "train/optimizers": STEP,
    "train/io": STEP,
    "train/hf": STEP + ["train/io"],
    "train/run": STEP + ["train/io"],
    "train/models": STEP + ["train/io"],
    "onnx": ENGINE,
    "verify": ENGINE,
    "bench": ENGINE,
    "cli": ENGINE + ["onnx", "verify", "bench"],
    "include": ENGINE,
    "python": ENGINE,
    "examples": ENGINE + ["include"],
    "examples/plugins": PLUGIN,
    "kernels": GEOMETRY,
    "sdk": GEOMETRY + ["kernels"],
    "backends": PLUGIN,
    "backends/reference": PLUGIN + ["graph"],  # the op records are the truth
    "backends/blas": PLUGIN + ["backends/cpu"],  # libraries on the shared device
    "backends/onednn": PLUGIN + ["backends/cpu"],
    "plugins": PLUGIN,
    "plugins/cpu": PLUGIN + ["backends/blas"],
    "tests": None,  # anything
}
# What only one operating system has. core/os asks it for everybody else; these may as well, each for its reason.
SYSTEM = re.compile(r"(sys|linux|asm|net|netinet|arpa|mach)/|(unistd|fcntl|dlfcn|link|elf|dirent|fnmatch|glob|grp|poll|pthread|pwd|sched|signal"
                    r"|spawn|strings|termios|ucontext|execinfo|malloc|semaphore|syslog|utime|io|direct|process|windows|winsock2|aclapi|psapi)\.h$"
                    r"|csignal$")
MAY_ASK_THE_SYSTEM = {
    "core/os": "the room for it",
    "tests": "they look from outside, and at what core/os does",
    "python": "CPython's interface: file descriptors and its types",
    "backends/cuda": "NVIDIA's driver and libraries, opened by name",
    "backends/onednn": "redirects calls inside oneDNN's ELF file",
    "plugins/template": "a project of its own, over an installed Tutti",
    "examples/plugins": "a project of its own, over an installed Tutti",
}
TOP = {folder.split("/")[0] for folder in MAY}
MAX_LINES, MAX_TEST_LINES, MAX_FUNCTION = 500, 700, 80
SOURCES = (".h", ".hpp", ".c", ".cpp", ".inc", ".py", ".sh", ".cmake", "CMakeLists.txt")
CODE = (".h", ".hpp", ".c", ".cpp", ".inc")
# A definition's first line: "int f(", "void C::f(", "C::C("; no type, namespace, object or macro.
FUNCTION = re.compile(r"(?!namespace|struct|class|enum|union|template|using|typedef|extern|static_assert|[A-Z_]+\()[A-Za-z][^=;]*\(")
# Messages of the library name options through option_text(); only whole commands, `tutti parity --full`, are written out.
LIBRARY = ("core", "data", "graph", "nn", "train", "onnx")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def own_folder(path):
    """The folder whose rule holds for this file: one backend is not another."""
    parts = path.split("/")
    if parts[0] in ("backends", "plugins") and len(parts) > 2:
        return "/".join(parts[:2])
    matches = [f for f in MAY if within(path, f)]
    return max(matches, key=len) if matches else parts[0]


def allowed(path):
    matches = [f for f in MAY if within(path, f)]
    if not matches:
        return []
    rule = MAY[max(matches, key=len)]
    if rule is None:
        return None
    extra = [own_folder(path)]
    if path.startswith("plugins/") and len(path.split("/")) > 2:
        extra.append("backends/" + path.split("/")[1])  # a plugin exports the backend of its name
    return rule + extra


def covered(path, may):
    """Whether one of these folders stands for the path's."""
    ruled = max((folder for folder in MAY if within(path, folder)), key=len, default="")
    return any(within(path, folder) and len(folder) >= len(ruled) for folder in may)


def target(root, path, mark, name):
    """The repository's file that an include means, or None for the system's."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    if mark == '"' and os.path.isfile(os.path.join(root, beside)):
        return beside
    name = os.path.normpath(name)
    if name.split("/")[0] in TOP:
        return name
    if name.startswith("tutti/"):
        return "include/" + name
    return None


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("build", "__pycache__"))
        for name in sorted(names):
            if name.endswith(SOURCES):
                yield os.path.relpath(os.path.join(folder, name), root)


def functions(lines):
    """(first line, number of lines) of the functions that begin and end at the left margin, as clang-format writes them."""
    first = None
    for number, line in enumerate(lines, 1):
        if first is None and FUNCTION.match(line) and not line.endswith((";", "}")):
            first = number
        elif line.startswith("}"):
            if first is not None:
                yield first, number - first + 1
            first = None
        elif first is not None and line.endswith(";") and not line.startswith(" "):
            first = None  # a declaration


def check(root):
    """All violations, one text each, and the number of files looked at."""
    found, count = [], 0
    for path in files(root):
        count += 1
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
        most = MAX_TEST_LINES if within(path, "tests") else MAX_LINES
        if len(lines) > most:
            found.append(f"{path}: {len(lines)} lines, at most {most}: split it")
        if path.endswith(".cpp") and not within(path, "tests"):
            found += [f"{path}:{first}: a function of {length} lines, at most {MAX_FUNCTION}: split it"
                      for first, length in functions(lines) if length > MAX_FUNCTION]
        if not path.endswith(CODE) or "/" not in path:
            continue
        if any(within(path, folder) for folder in LIBRARY):
            found += [f"{path}:{number}: {text}: name the option by option_text()" for number, line in enumerate(lines, 1)
                      for text in TEXT.findall(line) if re.search(r"--[a-z{]", text) and "tutti " not in text]
        may = allowed(path)
        if may is None:
            continue
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            included = target(root, path, *match.groups()) if match else None
            if match and match[1] == "<" and SYSTEM.match(match[2]) and not any(within(path, f) for f in MAY_ASK_THE_SYSTEM):
                found.append(f"{path}:{number}: includes <{match[2]}> of the operating system: ask through core/os")
            if included and not covered(included, may):
                found.append(f"{path}:{number}: includes {included}; {own_folder(path)} may include only "
                             + (", ".join(sorted(set(may))) or "nothing"))
    return found, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    root = os.path.normpath(parser.parse_args().root)
    if not os.path.isdir(root):
        parser.error(f"{root} is not a folder")
    found, count = check(root)
    for text in found:
        print(text)
    print(f"check-dependencies: {count} files, {len(found)} violations")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
