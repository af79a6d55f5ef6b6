"""Makes build/gpu of a built tree: this program, an archive of what it runs, and Fashion-MNIST where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from machine import newest_version

MOST = 60 << 20  # bytes of everything that travels: the tracked tree and the pack
PROGRAMS = [
    "bin/tutti",
    "lib/tutti/tutti-probe",
    "tests/library_device_test",
    "tests/cuda_device_test",
    "tests/cuda_group_test",
]
PLUGINS = ["cuda", "reference", "opencl", "vulkan"]  # oneDNN's library alone is 55 MB
SYSTEM = re.compile(r"/(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|cuda|tutti)\.so.*)$")  # the C library's, the driver's, ours
FASHION = "/usr/share/datasets/fashion-mnist"


class Failed(Exception):
    """Nothing was packed, or nothing that may travel."""


def output(*command, env=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def copy(source, to):
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy(os.path.realpath(source), to)


def files_of(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in sorted(names)]


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def spare_libraries(binaries):
    """Libraries of this system that the programs need, and the Vulkan loader, which is opened at run time."""
    found = {}
    for line in output("ldd", *binaries).splitlines():
        m = re.match(r"\s+(\S+) => (/\S+)", line)
        if m and not SYSTEM.search(m[2]):
            found[m[1]] = m[2]
        elif "not found" in line and "libtutti" not in line:
            raise Failed(f"ldd: {line.strip()}")
    for line in output("/sbin/ldconfig", "-p").splitlines():
        if line.strip().startswith("libvulkan.so.1 ") and "x86-64" in line:
            found.setdefault("libvulkan.so.1", line.split("=> ")[1].strip())
    return found


def tests_of(program, env):
    names, suite = [], ""
    for line in output(program, "--gtest_list_tests", env=env).splitlines():
        name = line.split("#")[0].strip()
        if line.startswith(" ") and suite:
            names += [suite + name] if "Fakes" not in name else []  # they need no GPU
        elif re.fullmatch(r"[\w/]+\.", name):
            suite = name
    return names


def paths_inside(folder, roots):
    """Paths of the machine that packed, in what is packed: run-time paths, and strings that are no mere source positions."""
    wrong = []
    for path in files_of(folder):
        name = os.path.relpath(path, folder)
        with open(path, "rb") as f:
            data = f.read()
        for root in roots:
            for found in re.findall(re.escape(root.encode()) + rb"[^\0\n\"']*", data):
                if not re.search(rb"\.(cpp|cc|h|hpp)(:\d+)?$", found):
                    wrong.append(f"{name}: {found.decode('utf-8', 'replace')[:200]}")
        if data[:4] == b"\x7fELF":
            for entries in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", output("readelf", "-d", path)):
                wrong += [
                    f"{name}: run-time path {entry}" for entry in entries.split(":") if entry and not entry.startswith("$ORIGIN")
                ]
    return wrong


def stage(root, build, to):
    """Puts everything that goes into the archive under `to`."""
    for name in PROGRAMS:
        if not os.access(os.path.join(build, name), os.X_OK):
            raise Failed(f"{os.path.join(build, name)} is not built: scripts/build.sh, or `cmake --build --preset release`")
        copy(os.path.join(build, name), os.path.join(to, name))
    for name in PLUGINS:
        for file in (f"libtutti_{name}.so", f"{name}.json"):
            copy(os.path.join(build, "lib/tutti/plugins", file), os.path.join(to, "lib/tutti/plugins", file))
    peers = os.path.join(root, "bench", "peers")
    for folder in (".", "zoo"):
        for file in sorted(os.listdir(os.path.join(peers, folder))):
            if file.endswith(".py"):
                copy(os.path.join(peers, folder, file), os.path.join(to, "share/tutti/bench", folder, file))
    ours = [f for f in files_of(to) if is_elf(f)]
    needed = {prefix: max(newest_version(f, prefix) for f in ours) for prefix in ("GLIBCXX", "CXXABI")}
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(to, "lib"), "TUTTI_PLUGIN_PATH": os.path.join(to, "lib/tutti/plugins")}
    packed = {
        "commit": git(root, "describe", "--always", "--dirty").strip(),
        "libstdc++": needed,
        "glibc": ".".join(map(str, max(newest_version(f, "GLIBC") for f in ours))),
        **{kind: [one["name"] for one in json.loads(output(os.path.join(to, "bin/tutti"), kind, "--json", env=env))[kind]]
           for kind in ("ops", "models")},
        "tests": {os.path.basename(p): tests_of(os.path.join(to, p), env) for p in PROGRAMS if p.startswith("tests/")},
    }
    for name, listed in [("tutti ops", packed["ops"]), ("tutti models", packed["models"]), *packed["tests"].items()]:
        if not listed:
            raise Failed(f"{name} lists nothing")
    for name, path in spare_libraries(ours).items():
        copy(path, os.path.join(to, "spare", name))
    with open(os.path.join(to, "pack.json"), "w", encoding="utf-8") as f:
        json.dump(packed, f, indent=1)
    output("strip", "--strip-unneeded", *[f for f in files_of(to) if is_elf(f)])


def of_root(info):
    """Plugins are trusted by their owner: whoever unpacks them."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def git(root, *arguments):
    """What git says of the source tree; "" where it is none of git's."""
    try:
        return output("git", "-C", root, *arguments)
    except (Failed, OSError):
        return ""


def tracked(root):
    """What travels of the source tree: (bytes, name)."""
    names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    if names == [""]:
        names = [os.path.relpath(f, root) for f in files_of(root) if not f.startswith(os.path.join(root, "build") + os.sep)]
    return [(os.lstat(os.path.join(root, n)).st_size, n) for n in names if os.path.isfile(os.path.join(root, n))]


def total_of(travel, most):
    """The bytes of all (bytes, name). Throws Failed with the largest where they are more than `most`."""
    total = sum(size for size, _ in travel)
    if total > most:
        largest = "\n".join(f"  {size / 2**20:6.1f} MiB  {name}" for size, name in sorted(travel, reverse=True)[:8])
        raise Failed(f"the tree and the pack are {total / 2**20:.1f} MiB, more than {most / 2**20:.0f}; the largest:\n{largest}")
    return total


def pack(root, build, to, preset=6, data=FASHION, most=MOST):
    """Writes `to` and returns lines about it. Throws Failed."""
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to)
    with tempfile.TemporaryDirectory() as work:
        stage(root, build, work)
        wrong = paths_inside(work, {p for r in (root, build) for p in (r, os.path.realpath(r))})
        if wrong:
            raise Failed("paths of this machine are compiled in:\n  " + "\n  ".join(wrong[:20]))
        with tarfile.open(os.path.join(to, "pack.tar.xz"), "w:xz", preset=preset) as tar:
            tar.add(work, ".", filter=of_root)
    scripts = os.path.dirname(os.path.abspath(__file__))
    shutil.copytree(scripts, os.path.join(to, "gpu_check"), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(os.path.dirname(scripts), "gpu-check.sh"), to)

    def parts():
        return tracked(root) + [(os.path.getsize(f), os.path.relpath(f, root)) for f in files_of(to)]

    lines = []
    images = [f for f in files_of(data) if "ubyte" in f] if data else []
    if images and sum(size for size, _ in parts()) + sum(map(os.path.getsize, images)) <= most:
        for f in images:
            copy(f, os.path.join(to, "data/fashion-mnist", os.path.basename(f)))
    else:
        lines.append(
            f"without Fashion-MNIST ({'it does not fit' if images else f'{data} has none'}): its runs will be skipped there"
        )
    total = total_of(parts(), most)
    own = sum(os.path.getsize(f) for f in files_of(to))
    return lines + [
        f"{os.path.relpath(to, root)} {own / 2**20:.1f} MiB + the tree {(total - own) / 2**20:.1f} MiB = {total / 2**20:.1f} of at most "
        f"{most / 2**20:.0f} MiB"
    ]


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    to = os.path.join(root, "build/gpu")
    try:
        for line in pack(root, os.path.join(root, "build/release"), to):
            print(f"gpu-check: {line}")
        return 0
    except (Failed, OSError) as e:
        shutil.rmtree(to, ignore_errors=True)
        print(f"gpu-check: {e}", file=sys.stderr)
        return 2 if "is not built" in str(e) else 1
