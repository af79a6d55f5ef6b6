#!/bin/sh
# In a minimal system, as root: installs the wheel for PYTHON from /wheels alone, and uses it (scripts/wheel.sh --test).
set -eu
start=$(date +%s)
"$1" -m venv /tmp/env
cd /tmp
env/bin/pip install -q --disable-pip-version-check --no-index --find-links /wheels tuttiml
test ! -e /usr/bin/cc
env/bin/tutti devices
env/bin/tutti train mlp --data synthetic:1x28x28:10 --steps 50 --checkpoint mlp.safetensors
env/bin/tutti eval mlp.safetensors --data synthetic:1x28x28:10 --device reference
env/bin/python /wheels/use-wheel.py
# A PyTorch module, where a PyTorch for this Python lies in /host. Ubuntu 22.04 has a prerelease of 3.11, which PyTorch does not support.
if [ -d /host/torch ] && env/bin/python -c 'import sys; sys.exit(sys.version_info.releaselevel != "final")'; then
  PYTHONPATH=/host env/bin/python /wheels/use-wheel.py torch
fi
echo "wheel: $(. /etc/os-release && echo "$PRETTY_NAME"), $1: trained after $(($(date +%s) - start)) s"
