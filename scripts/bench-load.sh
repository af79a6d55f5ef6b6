#!/usr/bin/env bash
# Training steps on a busy machine, beside PyTorch: builds tutti, makes the peers' environment, prints the table (bench/load.py --help).
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --help "* | *" -h "* | *" --from "*) exec python3 bench/load.py "$@" ;; esac
. scripts/build.sh
build tutti_cli tutti_onednn >&2
python=$(scripts/python-env.sh --torch | tail -1)
exec "$python" bench/load.py --python "$python" "$@"
