#!/usr/bin/env bash
# Builds everything and runs the tests; arguments go to ctest (scripts/test.sh -L unit). Ends with CTest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/build.sh
build  # everything
exec ctest --preset release --parallel 2 "$@"
