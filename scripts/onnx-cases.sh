#!/usr/bin/env bash
# Makes the node cases of ONNX's backend tests up to opset 22 with the package onnx of PyPI, and installs onnxruntime, which
# judges what Tutti exports; quick when they are there.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/onnx-cases.sh [--help]

Writes the cases (40 MB, half a minute) into $TUTTI_ONNX_CASES, or into tutti/onnx-cases of the user's cache folder, by a
virtual environment beside it, which also gets onnxruntime (for the CPU). The last line of the output is the folder. Those
of opsets 13 to 17 alone come with Debian's libonnx-testdata (scripts/deps.sh).
TEXT
}

case "${1:-}" in
  "") ;;
  -h | --help) usage; exit 0 ;;
  *) echo "onnx-cases: unknown option $1 (see scripts/onnx-cases.sh --help)" >&2; exit 2 ;;
esac

version=1.17.0  # opset 22
cases=${TUTTI_ONNX_CASES:-${XDG_CACHE_HOME:-$HOME/.cache}/tutti/onnx-cases}
env="$cases.env"
mkdir -p "$(dirname "$cases")"
exec 9>"$cases.lock"
flock 9  # two runs make them once
if [ "$(cat "$cases/version.txt" 2>/dev/null)" != "$version" ]; then
  echo "onnx-cases: pip install onnx==$version into $env"
  [ -x "$env/bin/python" ] || python3 -m venv "$env"
  "$env/bin/python" -m pip install -q --disable-pip-version-check "onnx==$version" pillow
  rm -rf "$cases" && mkdir -p "$cases/node"
  "$env/bin/python" -W ignore -m onnx.backend.test.cmd_tools generate-data -o "$cases"
  echo "$version" >"$cases/version.txt"
fi
# Its numbers count what hangs over the padded image; onnx 1.23, onnxruntime and PyTorch do not.
rm -rf "$cases/node/test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True"
if ! "$env/bin/python" -c 'import onnxruntime' 2>/dev/null; then
  echo "onnx-cases: pip install onnxruntime into $env"
  "$env/bin/python" -m pip install -q --disable-pip-version-check onnxruntime
fi
echo "$cases/node"
