#!/usr/bin/env python3
"""Runs the judge of ONNX's node cases over those that are here: Debian's and what scripts/onnx-cases.sh made.

usage: node_cases_test.py JUDGE DEBIAN [--device NAME]… [--share K/N]     77: no cases, or no such device
"""
import os
import subprocess
import sys


def main():
    judge, debian, *options = sys.argv[1:]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    made = os.environ.get("TUTTI_ONNX_CASES") or os.path.join(cache, "tutti", "onnx-cases")
    folders = [f for f in (os.path.join(made, "node"), debian) if os.path.isdir(f)]
    if not folders:
        print("no cases here: scripts/deps.sh, scripts/onnx-cases.sh")
        return 77
    if os.environ.get("TUTTI_TEST_ALL") and "--share" in options:
        at = options.index("--share")
        del options[at:at + 2]
    devices = [options[k + 1] for k, text in enumerate(options) if text == "--device"]
    required = os.environ.get("TUTTI_REQUIRE", "").split(",")
    for device in devices:
        tutti = os.path.join(os.path.dirname(judge), "..", "bin", "tutti")
        if subprocess.run([tutti, "devices", "--device", device], capture_output=True, check=False).returncode == 0:
            continue
        print(f"no device {device}")
        return 1 if device in required else 77
    return subprocess.run([judge, *options, *folders], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
