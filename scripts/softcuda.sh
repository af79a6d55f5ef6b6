#!/usr/bin/env bash
# Runs a command with the software CUDA device (tests/softcuda): the plugin's kernels, compiled by the real NVRTC, are
# interpreted on the host. cuBLASLt and cuDNN need a real driver, so they are off (TUTTI_CUDA_LIBRARIES=0).
#
# usage: softcuda.sh [--build FOLDER] COMMAND...
# e.g.   scripts/softcuda.sh build/release/bin/tutti train cnn --device cuda:0 --steps 20
#
# SOFTCUDA_MAJOR=7 or 9   PTX for compute_75, or compute_90 (default)
# SOFTCUDA_CHECK=LIST     uninitialised, races: slower checks; bounds and barriers are always checked
# SOFTCUDA_INSTRUCTIONS=N instructions of a warp between two barriers after which it counts as stuck
# SOFTCUDA_SEED=N         streams and graph nodes run in a random order that the rules allow
# SOFTCUDA_DEVICES=N      so many devices, for ranks (mpiexec) with one each; a fake NCCL beside the device carries their sums
# SOFTCUDA_REPORT=1       prints launches and time of each kernel
# Exit code: the command's; 2: a bad argument, or the library is missing.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
build="$root/build/release"
if [ "${1:-}" = --build ]; then
  build="${2:?--build needs a folder}"
  shift 2
fi
if [ $# = 0 ]; then
  sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi
folder="$build/tests/softcuda"
if [ ! -e "$folder/libcuda.so.1" ]; then
  echo "softcuda: $folder/libcuda.so.1 is missing: build the target softcuda;" \
    "it needs cuda.h and nvrtc.h (scripts/deps.sh --cuda says what is missing)" >&2
  exit 2
fi
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export TUTTI_CUDA_LIBRARIES="${TUTTI_CUDA_LIBRARIES:-0}"
exec "$@"
