"""What a table of times says about the machine that it was measured on."""
import math
import os
import pathlib
import platform
import re
import statistics
import sys
import time

QUIET = 0.95  # idle share of a machine on which times mean something
# Instruction sets that decide how fast products are, as /proc/cpuinfo names them (x86 and Arm).
FEATURES = ["avx2", "fma", "avx_vnni", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16", "asimd", "bf16", "sve", "sve2", "sme"]


def _cpuinfo(*names):
    """The value of the first such line."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(rf"^(?:{'|'.join(names)})\s*:\s*(.*)$", text, re.M)
    return found.group(1).strip() if found else ""


def cpu_name():
    return _cpuinfo("model name") or platform.machine()


def cpu_features():
    flags = set(_cpuinfo("flags", "Features").split())
    return [f for f in FEATURES if f in flags]


def cpus():
    return len(os.sched_getaffinity(0))


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


def describe(idle=None):
    """For a report in JSON."""
    machine = {"cpu": cpu_name(), "features": cpu_features(), "cpus": cpus()}
    return machine if idle is None else {**machine, "idle": round(idle, 3)}


def told(machine):
    """The same for people."""
    text = f"{machine['cpu']} ({', '.join(machine['features'])}), {machine['cpus']} CPUs"
    return text + (f", {machine['idle']:.0%} idle before the measurement" if "idle" in machine else "")


def quiet_or_exit(name, anyway, tries=1):
    """The share of the machine that is idle; where that is too little, in so many tries five seconds apart, says so and exits with code 3."""
    idle = idle_share()
    while idle < QUIET and not anyway and (tries := tries - 1) > 0:
        time.sleep(5)
        idle = idle_share()
    if idle < QUIET and not anyway:
        print(f"{name}: {idle:.0%} of the machine is idle, at least {QUIET:.0%} is needed (or --anyway)", file=sys.stderr)
        sys.exit(3)
    return idle


def markdown(head, rows):
    """A table; the first column is text, the others are figures or text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def geometric_mean(values):
    return math.exp(statistics.mean(map(math.log, values)))
