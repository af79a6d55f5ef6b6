# shellcheck shell=bash
# Sourced by the other scripts: `build TARGET…` installs what is missing (the array `deps`: further options of deps.sh),
# configures preset release (`options`: further options of cmake; `python=yes`: the Python package too) and builds;
# for plugins that are off `tutti_reference` stands in, for oneDNN's `tutti_cpu` first.
# Output goes to build/release/script.log; a terminal also sees ninja's one line of progress.
stand_in() {  # LOG TARGET…: the targets, one a line; LOG is CMake's
  local log=$1 target off
  off=$(sed -n 's/^-- \([a-z0-9_]*\) plugin: off.*/tutti_\1/p' "$log")
  shift
  for target in "$@"; do
    if [ "$target" = tutti_onednn ] && grep -qxF -e "$target" <<<"$off"; then target=tutti_cpu; fi
    if grep -qxF -e "$target" <<<"$off"; then echo tutti_reference; else echo "$target"; fi
  done
}

build() {
  scripts/deps.sh ${deps[@]+"${deps[@]}"}
  if [ "${python:-no}" = yes ] && ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "build: Python package: off, because python3 is older than 3.11"
  elif [ "${python:-no}" = yes ]; then
    local env
    scripts/python-env.sh >&2
    env=$(scripts/python-env.sh | tail -n 1)
    options+=(-DTUTTI_PYTHON=ON "-DPython_EXECUTABLE=$env")
  fi
  local log=build/release/script.log
  mkdir -p build/release
  echo "build: cmake --preset release"
  if ! cmake --preset release ${options[@]+"${options[@]}"} >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "build: configuring failed; the whole output is in $log" >&2
    return 1
  fi
  grep -E 'plugin: ' "$log" | sed 's/^-- /build: /' || true
  local targets
  mapfile -t targets < <(stand_in "$log" "$@")
  set -- "${targets[@]}"
  echo "build: cmake --build --preset release${1:+ --target $*}"
  if [ -t 1 ]; then
    cmake --build --preset release ${1:+--target "$@"} || return 1
  elif ! cmake --build --preset release ${1:+--target "$@"} >>"$log" 2>&1; then
    grep -E -A 12 'FAILED|error:' "$log" | tail -n 60 >&2
    echo "build: building failed; the whole output is in $log" >&2
    return 1
  fi
}
