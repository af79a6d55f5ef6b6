#!/usr/bin/env bash
# Builds everything and runs the tests but those with the label peers; arguments go to ctest in place of that
# (scripts/test.sh -L unit). Ends with CTest's summary.
# `--full` as first argument: no test spares software devices, and then every parity case runs on every device
# (scripts/parity-full.py, which writes docs/results/DATE-parity-full.json).
set -euo pipefail
cd "$(dirname "$0")/.."
full=no
if [ "${1:-}" = --full ]; then
  full=yes
  shift
  export TUTTI_TEST_ALL=1
fi
. scripts/build.sh
python=yes
build  # everything
selected=("$@")
[ $# -gt 0 ] || selected=(-LE peers)  # those take PyTorch, or minutes
[ "$full" = yes ] || exec ctest --preset release --parallel 2 "${selected[@]}"
failed=0
ctest --preset release --parallel 2 "${selected[@]}" || failed=1
scripts/parity-full.py || failed=1
exit "$failed"
