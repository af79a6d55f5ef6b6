#!/usr/bin/env bash
# PyTorch modules of usual sizes trained by tutti.from_torch and by PyTorch: builds the Python package, makes the peers' environment,
# prints the table (bench/peers/modules.py --help).
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --help "* | *" -h "* | *" --from "*) exec python3 bench/peers/modules.py "$@" ;; esac
. scripts/build.sh
python=yes
build tutti_python tutti_onednn >&2
interpreter=$(scripts/python-env.sh --torch | tail -1)
PYTHONPATH=build/release/python exec "$interpreter" bench/peers/modules.py "$@"
