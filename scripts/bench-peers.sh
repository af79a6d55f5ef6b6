#!/usr/bin/env bash
# Every model's training step beside PyTorch and JAX, taken in turn: builds tutti, makes the peers' environment, prints the
# table (bench/peers/table.py --help).
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --help "* | *" -h "* | *" --from "*) exec python3 bench/peers/table.py "$@" ;; esac
. scripts/build.sh
build tutti_cli tutti_plugins >&2
python=$(scripts/python-env.sh --torch | tail -1)
exec "$python" bench/peers/table.py "$@"
