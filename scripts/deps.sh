#!/usr/bin/env bash
# Installs what Tutti is built from, on Debian 12 and Ubuntu 22.04/24.04. Safe to run again; quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/deps.sh [--help] [--cuda] [--vulkan] [--opencl]

Installs, by apt (as root or through sudo), what is missing of: a C++ compiler, CMake, ninja, ccache, git, Boost, CLI11,
fmt, nlohmann-json, zlib, GoogleTest, Google Benchmark and the data set Fashion-MNIST. Takes oneDNN from the system where
that is 3.0 or newer, else from two wheels of PyPI, unpacked into .deps/onednn.

  --cuda, --vulkan, --opencl   accepted; this version has no such plugin, so nothing is installed for them
TEXT
}

for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    --cuda | --vulkan | --opencl) echo "deps: $arg: this version has no such plugin; nothing to install for it" ;;
    *) echo "deps: unknown option $arg (see scripts/deps.sh --help)" >&2; exit 2 ;;
  esac
done

needed=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv libboost-dev libcli11-dev libfmt-dev
        nlohmann-json3-dev zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev)
dataset="dataset-fashion-mnist"

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '(none)' || true; }

as_root() {
  if [ "$(id -u)" = 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    echo "deps: needs root (no sudo here). Ask for: apt-get install -y ${needed[*]} $dataset" >&2
    return 1
  fi
}

updated=no
update_once() {
  [ "$updated" = yes ] && return 0
  echo "deps: apt-get update"
  as_root apt-get update -qq
  updated=yes
}

apt_install() {
  echo "deps: apt-get install $*"
  as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if ! command -v apt-get >/dev/null; then
  echo "deps: no apt here; install these yourself (Debian's names): ${needed[*]} $dataset"
else
  missing=()
  for p in "${needed[@]}"; do installed "$p" || missing+=("$p"); done
  if [ ${#missing[@]} -gt 0 ]; then
    update_once
    apt_install "${missing[@]}"
  fi
  if ! installed "$dataset"; then
    update_once
    if [ -n "$(candidate "$dataset")" ]; then
      apt_install "$dataset" || echo "deps: $dataset could not be installed; train with --data synthetic:1x28x28:10"
    else
      echo "deps: this system has no package $dataset; set TUTTI_DATA_DIR to a folder with the four IDX files," \
           "or train with --data synthetic:1x28x28:10"
    fi
  fi
fi

# ---- oneDNN, 3.x API ----
tree=.deps/onednn

has_onednn3() {  # a prefix whose headers say 3.0 or newer, with the library beside them
  local major
  major=$(sed -n 's/^#define DNNL_VERSION_MAJOR *\([0-9]*\).*/\1/p' "$1/include/oneapi/dnnl/dnnl_version.h" 2>/dev/null)
  [ "${major:-0}" -ge 3 ] && compgen -G "$1/lib/libdnnl.so" "$1/lib/*-linux-gnu/libdnnl.so" >/dev/null
}

onednn_from_pypi() {
  local version=2023.2.0 staging=.deps/staging wheel from
  echo "deps: oneDNN: fetching onednn-cpu-gomp and onednn-devel-cpu-gomp $version from PyPI (38 MB) into $tree"
  if ! python3 -m pip --version >/dev/null 2>&1; then
    command -v apt-get >/dev/null || { echo "deps: oneDNN: python3 has no pip" >&2; return 1; }
    update_once && apt_install python3-pip || return 1
  fi
  rm -rf "$staging" && mkdir -p "$staging" || return 1
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --dest "$staging" \
    "onednn-cpu-gomp==$version" "onednn-devel-cpu-gomp==$version" || return 1
  (cd "$staging" && sha256sum --quiet -c) <<'TEXT' || return 1
2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb  onednn_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284  onednn_devel_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
TEXT
  # Both wheels go into one tree: the CMake package of the second looks for the library of the first beside itself.
  mkdir "$staging/tree" || return 1
  for wheel in "$staging"/*.whl; do
    python3 -m zipfile -e "$wheel" "$staging/unpacked" || return 1
    for from in "$staging"/unpacked/*.data/data; do cp -a "$from/." "$staging/tree/" || return 1; done
    rm -rf "$staging/unpacked"
  done
  # The library comes three times, as whole files.
  ln -sf libdnnl.so.3.2 "$staging/tree/lib/libdnnl.so.3" && ln -sf libdnnl.so.3 "$staging/tree/lib/libdnnl.so" &&
    chmod 755 "$staging/tree/lib/libdnnl.so.3.2" && rm -rf "$tree" && mv "$staging/tree" "$tree" && rm -rf "$staging"
}

get_onednn() {
  local prefix package
  for prefix in "$tree" /usr /usr/local ${DNNL_ROOT:+"$DNNL_ROOT"}; do has_onednn3 "$prefix" && return 0; done
  if command -v apt-get >/dev/null; then
    package=$(candidate libdnnl-dev)
    if [ -n "$package" ] && dpkg --compare-versions "$package" ge 3; then
      update_once && apt_install libdnnl-dev && return 0
    fi
  fi
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps: oneDNN: no package >= 3 here, and the wheels are for x86_64 alone"
    return 1
  fi
  onednn_from_pypi
}

if ! get_onednn; then
  rm -rf .deps/staging
  echo "deps: oneDNN: not available, the onednn plugin will be off and models run on the slow reference device;" \
       "run scripts/deps.sh again to retry"
fi
echo "deps: ready"
