"""Edge cases of PyTorch's and every op's quick cases on the device onednn with one set of instructions: isa_test.py
VARIABLE=LEVEL GOLDEN_DEVICES TUTTI. VARIABLE is oneDNN's ONEDNN_MAX_CPU_ISA or our kernels' TUTTI_ISA. Skipped (77) where this
CPU lacks the level."""
import json
import os
import pathlib
import subprocess
import sys

# What our kernels for a level are compiled with.
FLAGS = {"baseline": set(), "avx2": {"avx2", "fma"},
         "avx512": {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}}
FLAGS["avx512_bf16"] = FLAGS["avx512"] | {"avx512_bf16"}


def flags():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return set(next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), []))


def has(variable, level, tutti):
    """Whether this CPU computes with that level where `variable` asks for it."""
    if variable == "TUTTI_ISA":
        return FLAGS[level] <= flags()
    devices = json.loads(subprocess.run([tutti, "devices", "--json"], capture_output=True, text=True, check=True).stdout)["devices"]
    driver = next(d["driver"] for d in devices if d["id"] == "onednn:0")
    name = level.lower().replace("_core", "").replace("_", " ").replace("sse41", "sse4.1")
    return f"({name})" in driver


def main():
    setting, golden_devices, tutti = sys.argv[1:]
    variable, level = setting.split("=")
    os.environ.update({variable: level, "TUTTI_PLUGINS": "onednn,reference", "TUTTI_REQUIRE": "onednn", "TUTTI_CACHE": "off",
                       "OMP_WAIT_POLICY": "passive"})
    if not has(variable, level, tutti):
        print(f"{setting}: this CPU has no such instructions")
        return 77
    golden = subprocess.run([golden_devices, "--gtest_brief=1"], check=False).returncode
    parity = subprocess.run([tutti, "parity", "--device", "onednn", "--quick"], check=False).returncode
    return 1 if golden or parity else 0


if __name__ == "__main__":
    sys.exit(main())
