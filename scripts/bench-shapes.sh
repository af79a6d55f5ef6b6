#!/usr/bin/env bash
# Every product of the zoo in each layout of its operands, oneDNN and PyTorch: builds what it needs, makes the peers' environment,
# prints the table (bench/peers/shapes.py --help).
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --help "* | *" -h "* | *" --from "*) exec python3 bench/peers/shapes.py "$@" ;; esac
. scripts/build.sh
build tutti_cli tutti_onednn product_layouts >&2
python=$(scripts/python-env.sh --torch | tail -1)
exec "$python" bench/peers/shapes.py "$@"
