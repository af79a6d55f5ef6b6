#!/usr/bin/env bash
# Static pages of what agrees on which device, from the reports in docs/results/devices: `scripts/site.sh --help`.
exec python3 -B "$(dirname "$0")/site" "$@"
