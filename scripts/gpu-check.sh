#!/bin/sh
# Everything that needs a real GPU, from a build that was made elsewhere: `scripts/gpu-check.sh --help`.
command -v python3 >/dev/null || { echo "gpu-check: python3 is missing" >&2; exit 2; }
exec python3 -u -B "$(dirname "$0")/gpu_check" "$@"
