#!/usr/bin/env bash
# Runs tutti on Oclgrind, an OpenCL device that checks kernels: data races, uninitialised values, bounds, and the calls of
# the API. Without COMMAND: every op of `tutti parity --quick`, and a step of five models' tiny size (minutes).
# Needs Debian's package oclgrind, and the target oclgrind_writes (tests/opencl/oclgrind_writes.cpp says why).
#
# usage: oclgrind.sh [--build FOLDER] [COMMAND...]
# Exit code: 0: no messages; 1: a command failed or Oclgrind said something; 2: a bad argument, or something is missing.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
build="$root/build/release"
if [ "${1:-}" = --build ]; then
  build="${2:?--build needs a folder}"
  shift 2
fi
driver=/usr/lib/oclgrind/liboclgrind-rt-icd.so
writes="$build/tests/opencl/liboclgrind_writes.so"
for file in "$driver" "$writes"; do
  if [ ! -e "$file" ]; then
    echo "oclgrind: $file is missing: install the package oclgrind and build the target oclgrind_writes" >&2
    exit 2
  fi
done
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
echo "$driver" >"$folder/oclgrind.icd"
export OCL_ICD_VENDORS="$folder" TUTTI_PLUGINS=opencl,reference OCLGRIND_MAX_ERRORS=100000
export OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1 OCLGRIND_CHECK_API=1
export OCLGRIND_NUM_THREADS=1  # its check of uninitialised values is made for one
# Its check of uninitialised values does not know the instruction `freeze`, which optimisations make.
export OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
failed=0

# Runs a command and counts the messages. That a copy of memory carries bytes that nobody wrote is none: reading them would be.
run() {
  local messages code=0
  env LD_PRELOAD="$writes" "$@" >"$folder/out" 2>"$folder/err" || code=$?
  messages=$(awk -v RS= '/\tKernel: |Oclgrind/ && !/Kernel: move[0-9]+\n/ && !/^opencl:/' "$folder/err")
  cat "$folder/out"
  [ -z "$messages" ] || printf '%s\n' "$messages" >&2
  [ $code = 0 ] || cat "$folder/err" >&2
  echo "oclgrind: exit code $code, $([ -z "$messages" ] && echo "no messages" || echo "with messages"): $*"
  [ $code = 0 ] && [ -z "$messages" ] || failed=1
}

if [ $# -gt 0 ]; then
  run "$@"
else
  tutti="$build/bin/tutti"
  run "$tutti" parity --quick --device opencl:0 --jobs "$(nproc)"
  for model in mlp cnn gpt lstm tabular; do
    run "$tutti" train "$model" --size tiny --device opencl:0 --steps 1 --no-eval
  done
fi
exit $failed
